#!/usr/bin/env python3
"""deploy/ as its users take it: rendered, applied, run, compared with what is really asked.

    deploy.py --bin FILE --tools DIRECTORY [--only NAME] [--kubeconfig FILE]

Every kustomize overlay and the chart with the values of the same name are rendered; both have to
mean the same. Then the overlay is applied to an emulated cluster with kubectl, the arguments in its
Deployment start the real binary, Services come and go, and the access rules are compared with the
calls that were made, both ways. All that is rendered is held against the API's own schema; with
--kubeconfig a real API server is asked, too (a dry run: nothing is kept there).
UPDATE_SNAPSHOTS=1 writes the chart's snapshots anew.
"""

import argparse
import base64
import json
import os
import pathlib
import re
import shutil
import sys
import tempfile

import yaml

import release
import schema
from place import Place, free_port, http, wait_for
from rules import compare, granted
from tools import Tools, documents

ROOT = pathlib.Path(__file__).resolve().parents[2]
HERE = ROOT / "tests/deploy"
OVERLAYS = ROOT / "deploy/kustomize/overlays"
CHART = ROOT / "deploy/helm/ballast"
ACCOUNT = ("ServiceAccount", "kube-system", "ballast")
GATE = "ballast.dev/load-balancer-ready"
# What workload identity's webhook puts into pods.
WEBHOOK = {"AZURE_CLIENT_ID": "c", "AZURE_TENANT_ID": "t", "AZURE_FEDERATED_TOKEN_FILE": "/token"}


def expect(what, got, want):
    if got != want:
        raise AssertionError(f"{what}: got {got!r}, want {want!r}")
    print(f"ok  {what}")


def names():
    return sorted(path.name for path in OVERLAYS.iterdir() if path.is_dir())


def find(objects, kind):
    found = [one for one in objects if one["kind"] == kind]
    if len(found) != 1:
        raise AssertionError(f"{len(found)} objects of kind {kind}")
    return found[0]


# --- rendering

def plain(one):
    """An object without what may differ between kustomize and Helm: labels of the tool, hashes."""
    one = json.loads(json.dumps(one))
    labels = one["metadata"].pop("labels", {})
    if one["kind"] != "Secret":
        kept = {k: v for k, v in labels.items() if k.endswith(("/name", "/instance"))}
        expect_labels = {"app.kubernetes.io/name": "ballast", "app.kubernetes.io/instance": "ballast"}
        if kept != expect_labels:
            raise AssertionError(f"labels of {one['kind']}: {labels}")
    if one["kind"] == "Secret":
        one["metadata"]["name"] = re.sub(r"-[a-z0-9]{10}$", "", one["metadata"]["name"])
        text = base64.b64decode(one["data"]["cloud-config"])
        one["data"] = {"cloud-config": json.loads(text)}
    if one["kind"] == "Deployment":
        template = one["spec"]["template"]
        template["metadata"]["annotations"].pop("checksum/cloud-config", None)
        for volume in template["spec"].get("volumes", []):
            secret = volume.get("secret")
            if secret is None:
                continue
            secret["secretName"] = re.sub(r"-[a-z0-9]{10}$", "", secret["secretName"])
    return one


def meaning(objects):
    return {f"{one['kind']} {plain(one)['metadata']['name']}": plain(one) for one in objects}


def render(tools, name):
    kustomized = documents(tools.good("kubectl", "kustomize", OVERLAYS / name))
    values = HERE / "values" / f"{name}.yaml"
    lint = tools.run("helm", "lint", "--strict", CHART, "--values", values)
    expect(f"{name}: helm lint", (lint[0], "[ERROR]" in lint[1]), (0, False))
    text = tools.good("helm", "template", "ballast", CHART, "-n", "kube-system", "--values", values)
    snapshot = HERE / "snapshots" / f"{name}.yaml"
    if os.environ.get("UPDATE_SNAPSHOTS"):
        snapshot.write_text(text)
    if not snapshot.exists() or snapshot.read_text() != text:
        raise AssertionError(f"{snapshot} is out of date: UPDATE_SNAPSHOTS=1 takes it as right")
    ours, theirs = meaning(kustomized), meaning(documents(text))
    expect(f"{name}: objects of the chart", sorted(theirs), sorted(ours))
    for key, one in ours.items():
        if one != theirs[key]:
            raise AssertionError(f"{name}: {key} differs\nkustomize: {one}\nHelm: {theirs[key]}")
    print(f"ok  {name}: the chart and the overlay mean the same")
    count = schema.check(kustomized) + schema.check(documents(text))
    print(f"ok  {name}: {count} objects are as the API's schema says")
    return kustomized


def places(tools, folder):
    """Every overlay has a place for what each user sets; what is written there comes through."""
    shutil.copytree(ROOT / "deploy/kustomize", folder / "kustomize")
    digest = "sha256:" + "1" * 64
    client = "11111111-2222-3333-4444-555555555555"
    for name in names():
        overlay = folder / "kustomize/overlays" / name
        file = overlay / "kustomization.yaml"
        text = file.read_text()
        for old, new in [
            ("newName: ballast\n", "newName: registry.example/ballast\n"),
            ("# digest: sha256:…", f"digest: {digest}"),
            ("- op: replace\n      path: /spec/template/spec/containers/0/args/1\n"
             "      value: --cluster-name=kubernetes",
             "- op: replace\n      path: /spec/template/spec/containers/0/args/1\n"
             "      value: --cluster-name=shop"),
        ]:
            expect(f"{name}: one place for {new.split()[-1]}", text.count(old), 1)
            text = text.replace(old, new)
        empty = "00000000-0000-0000-0000-000000000000"
        expect(f"{name}: a place for the client id", text.count(empty),
               int("components/workload-identity" in text))
        file.write_text(text.replace(empty, client))
        objects = documents(tools.good("kubectl", "kustomize", overlay))
        container, = find(objects, "Deployment")["spec"]["template"]["spec"]["containers"]
        named = [arg for arg in container["args"] if arg.startswith("--cluster-name=")]
        expect(f"{name}: image and load balancer", (container["image"], named),
               (f"registry.example/ballast@{digest}", ["--cluster-name=shop"]))
        account = find(objects, "ServiceAccount")["metadata"].get("annotations", {})
        expect(f"{name}: client id", list(account.values()),
               [client] if "components/workload-identity" in text else [])


def check_hardening(name, objects):
    """What the Pod Security Standard `restricted` asks, and a little more."""
    pod = find(objects, "Deployment")["spec"]["template"]["spec"]
    container, = pod["containers"]
    expect(f"{name}: pod", {key: pod.get(key) for key in ("hostNetwork", "hostPID", "hostIPC")},
           {"hostNetwork": None, "hostPID": None, "hostIPC": None})
    security = pod["securityContext"]
    expect(f"{name}: nobody", (security["runAsNonRoot"], security["runAsUser"] > 0), (True, True))
    expect(f"{name}: seccomp", security["seccompProfile"], {"type": "RuntimeDefault"})
    expect(f"{name}: container", container["securityContext"], {
        "allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]},
        "privileged": False, "readOnlyRootFilesystem": True})
    kinds = {next(key for key in volume if key != "name") for volume in pod.get("volumes", [])}
    known = {"hostPath"} if name == "host-file" else {"secret"}
    expect(f"{name}: only the cloud config is mounted", kinds - known, set())
    budget = find(objects, "PodDisruptionBudget")["spec"]["minAvailable"]
    replicas = find(objects, "Deployment")["spec"]["replicas"]
    expect(f"{name}: a node can be drained", (replicas, budget), (2, 1))


def check_config(tools, binary, name, folder):
    """The example of a cloud config is one that Ballast reads without a complaint."""
    config = OVERLAYS / name / "azure.json"
    if not config.exists():
        return
    service = folder / "service.yaml"
    service.write_text(yaml.safe_dump(web(0) | {"metadata": {"name": "web", "uid": "u"}}))
    code, _, err = tools.run(binary, "plan", "-f", service, "--cloud-config", config, env=WEBHOOK)
    expect(f"{name}: azure.json", (code, err), (0, ""))


# --- running

def web(index):
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": f"web-{index}"},
            "spec": {"type": "LoadBalancer", "selector": {"app": "web"},
                     "ports": [{"port": 80 + index, "targetPort": 8080, "nodePort": 30080 + index}]}}


def pod(name, labels, address):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels},
            "spec": {"nodeName": "vmss000000", "containers": [{"name": "c", "image": "i"}]},
            "status": {"phase": "Running", "hostIP": "10.224.0.4", "podIP": address,
                       "podIPs": [{"ip": address}], "hostIPs": [{"ip": "10.224.0.4"}],
                       "conditions": [{"type": "Ready", "status": "True"},
                                      {"type": "ContainersReady", "status": "True"}]}}


def cloud_config(place, name):
    """The emulated Azure's config, in the shape that the overlay is for."""
    config = json.loads(place.config.read_text())
    if name == "several-load-balancers":
        config["multipleStandardLoadBalancerConfigurations"] = [
            {"name": "kubernetes", "primaryVMSet": "vmss"}]
    return config


def arguments(place, deployment, config):
    """The container's arguments, with the pod's addresses and files replaced by this machine's."""
    spec = deployment["spec"]["template"]["spec"]
    container, = spec["containers"]
    port = next(p["containerPort"] for p in container["ports"] if p["name"] == "http")
    here = free_port()
    words = []
    for word in container["args"]:
        word = word.replace("$(POD_NAMESPACE)", deployment["metadata"]["namespace"])
        word = word.replace("--bind-address=0.0.0.0", "--bind-address=127.0.0.1")
        word = word.replace("--console-port=10271", "--console-port=0")
        word = word.replace(f"--port={port}", f"--port={here}")
        for mount in container.get("volumeMounts", []):
            inside = f"{mount['mountPath'].removesuffix('/cloud-config')}/cloud-config"
            word = word.replace(f"--cloud-config={inside}", f"--cloud-config={config}")
        words.append(word)
    expect("the probes ask the port that is served", f"--port={here}" in words, True)
    return [*words, "--kubeconfig", str(place.kubeconfig)], f"http://127.0.0.1:{here}"


def address_of(place, name):
    service = place.kubernetes("GET", f"/api/v1/namespaces/default/services/{name}")
    found = service.get("status", {}).get("loadBalancer", {}).get("ingress") or [{}]
    return found[0].get("ip")


def contest(place, address):
    """A Service of another namespace lists an address: the ledger notes who has it, until it goes."""
    space, ledger = "/api/v1/namespaces/other", "/api/v1/namespaces/kube-system/configmaps/ballast-ledger"
    slices = "/apis/discovery.k8s.io/v1/namespaces/other/endpointslices"
    rival = web(2)
    rival["metadata"]["name"] = "rival"
    del rival["spec"]["selector"]
    place.kubernetes("POST", "/api/v1/namespaces", {
        "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}})
    place.kubernetes("POST", f"{space}/services", rival)
    place.kubernetes("POST", slices, {
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
        "metadata": {"name": "rival", "labels": {"kubernetes.io/service-name": "rival"}},
        "endpoints": [{"addresses": [address], "nodeName": "vmss000000",
                       "conditions": {"ready": True}}],
        "ports": [{"name": "", "port": 8080, "protocol": "TCP"}]})
    wait_for("the note of who has the address", lambda: place.there(ledger) and (
        place.kubernetes("GET", ledger)["data"].get("contested") == f"{address} default\n"))
    place.kubernetes("DELETE", f"{slices}/rival")
    place.kubernetes("DELETE", f"{space}/services/rival")
    wait_for("the end of rival", lambda: not place.there(f"{space}/services/rival"))
    wait_for("the end of the note", lambda: (
        "contested" not in place.kubernetes("GET", ledger)["data"]))


def scenario(place, container):
    """Services, and pods behind and beside them, come and go."""
    space = "/api/v1/namespaces/default"
    backend = pod("backend", {"app": "web"}, "10.244.0.20")
    egress = pod("egress", {"kubernetes.azure.com/service-egress-gateway": "team"}, "10.244.0.21")
    gated = pod("gated", {"app": "web", GATE: "enabled"}, "10.244.0.22")
    gated["spec"]["readinessGates"] = [{"conditionType": GATE}]
    for one in (backend, egress, gated):
        place.kubernetes("POST", f"{space}/pods", one)
        name = one["metadata"]["name"]
        place.kubernetes("PATCH", f"{space}/pods/{name}/status", {"status": one["status"]})
    for index in range(2):
        place.kubernetes("POST", f"{space}/services", web(index))
    for index in range(2):
        wait_for(f"the address of web-{index}", lambda: address_of(place, f"web-{index}"))
    wait_for("the readiness gate", lambda: any(
        one["type"] == GATE and one["status"] == "True"
        for one in place.kubernetes("GET", f"{space}/pods/gated")["status"]["conditions"]))
    if container:
        contest(place, "10.244.0.20")
        path = f"{space}/pods/egress"
        wait_for("the pod's finalizer",
                 lambda: place.kubernetes("GET", path)["metadata"].get("finalizers"))
        place.kubernetes("DELETE", path)
        wait_for("the pod's end", lambda: not place.there(path))
    for index in range(2):
        path = f"{space}/services/web-{index}"
        place.kubernetes("DELETE", path)
        wait_for(f"the end of web-{index}", lambda: not place.there(path))


def secrets(tools, place, config, folder):
    """The Secret that the Go cloud provider has, for the overlay that shares it."""
    target = folder / "go-cloud-config"
    target.write_text(json.dumps(config))
    tools.good("kubectl", "create", "secret", "generic", "azure-cloud-provider", "-n", "kube-system",
               f"--from-file=cloud-config={target}")


def switch_service_controller_off(tools, folder):
    """The patch for the Go cloud provider's Deployment."""
    manifest = folder / "cloud-controller-manager.yaml"
    manifest.write_text(yaml.safe_dump({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "cloud-controller-manager", "namespace": "kube-system"},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {
            "metadata": {"labels": {"a": "b"}},
            "spec": {"containers": [{"name": "c", "image": "i", "args": ["--cloud-provider=azure"]}]}}}}))
    tools.good("kubectl", "apply", "-f", manifest)
    patch = OVERLAYS / "beside-go-provider/cloud-controller-manager.json"
    tools.good("kubectl", "-n", "kube-system", "patch", "deployment", "cloud-controller-manager",
               "--type=json", "--patch-file", patch)
    path = "jsonpath={.spec.template.spec.containers[0].args}"
    args = tools.good("kubectl", "-n", "kube-system", "get", "deployment", "cloud-controller-manager",
                      "-o", path)
    expect("the Go provider's service controller is off", json.loads(args),
           ["--cloud-provider=azure", "--controllers=*,-service-lb-controller"])


def check_role(tools, binary, name, calls):
    """The Azure role for just this purpose covers what was asked (`cargo test` has both ways)."""
    purpose = "container" if name == "container-load-balancer" else "basic"
    rows = tools.good(binary, "azure-role", "--for", purpose)
    listed = set(re.findall(r"([A-Z]+) of (\S+)", rows))
    if not calls or calls - listed:
        raise AssertionError(f"{name}: the role for {purpose} lacks {calls - listed} of {calls}")
    print(f"ok  {name}: the Azure role covers {len(calls)} kinds of calls")


def check_hold(tools, place, url):
    """On standby Ballast is ready and writes nothing, however much there is to write."""
    path = "/api/v1/namespaces/default/services"
    place.kubernetes("POST", path, web(9))
    wait_for("/readyz on standby", lambda: http("GET", url + "/readyz")[0] == 200)
    wait_for("the plan's reads", lambda: len(place.azure_calls()) > 3)
    wait_for("a second look at the Lease", lambda: sum(
        call["resource"] == "leases" for call in place.calls()) > 3)
    expect("on standby: Azure is read only", {method for method, _ in place.azure_calls()}, {"GET"})
    expect("on standby: the cluster is read only", {call["verb"] for call in place.calls()}
           <= {"get", "list", "watch"}, True)
    tools.good("kubectl", "-n", "kube-system", "delete", "lease", "ballast")
    wait_for("the address of web-9", lambda: address_of(place, "web-9"))
    place.kubernetes("DELETE", f"{path}/web-9")
    wait_for("the end of web-9", lambda: not place.there(f"{path}/web-9"))
    print("ok  beside-go-provider: Ballast stands by until the Lease is deleted")


def revisions(tools, name):
    """What each object's last change was; kubectl says "configured" of some that it did not change."""
    found = json.loads(tools.good("kubectl", "get", "-k", OVERLAYS / name, "-o", "json"))
    return {f"{one['kind']} {one['metadata']['name']}": one["metadata"]["resourceVersion"]
            for one in found["items"]}


def run(tools, binary, name, objects, folder):
    container = name == "container-load-balancer"
    place = Place(binary, folder, gateway=container)
    tools.env["KUBECONFIG"] = str(place.kubeconfig)
    try:
        config = folder / "config.json"
        config.write_text(json.dumps(cloud_config(place, name)))
        if name == "beside-go-provider":
            secrets(tools, place, cloud_config(place, name), folder)
            switch_service_controller_off(tools, folder)
        tools.good("kubectl", "apply", "-k", OVERLAYS / name)
        first = revisions(tools, name)
        tools.good("kubectl", "apply", "-k", OVERLAYS / name)
        expect(f"{name}: {len(first)} objects, applied again", revisions(tools, name), first)
        deployment = find(objects, "Deployment")
        words, url = arguments(place, deployment, config)
        if name == "beside-go-provider":
            tools.good("kubectl", "apply", "-f", ROOT / "deploy/hold.yaml")
        process = place.start(words, {"PATH": "/usr/bin:/bin", **WEBHOOK})
        if name == "beside-go-provider":
            check_hold(tools, place, url)
        scenario(place, container)
        probes = deployment["spec"]["template"]["spec"]["containers"][0]
        for probe in ("livenessProbe", "readinessProbe"):
            path = probes[probe]["httpGet"]["path"]
            expect(f"{name}: {path}", http("GET", url + path)[0], 200)
        # A second renewal of the Lease, and watches after the lists.
        wait_for("an update of the Lease", lambda: any(
            call["resource"] == "leases" and call["verb"] == "update" for call in place.calls()))
        expect(f"{name}: exit code", place.stop(process), 0)
        count = compare(granted(objects, ACCOUNT), place.calls())
        print(f"ok  {name}: {count} permissions, none missing, none unused")
        check_role(tools, binary, name, place.azure_calls())
        tools.good("kubectl", "delete", "-k", OVERLAYS / name)
        for kind in ("deployments", "clusterroles", "roles", "serviceaccounts", "networkpolicies"):
            left = tools.good("kubectl", "get", kind, "-A", "-l", "app.kubernetes.io/name=ballast", "-o", "name")
            expect(f"{name}: {kind} left over", left, "")
    finally:
        place.end()
        log = folder / "controller.log"
        if sys.exc_info()[0] and log.exists():
            print(log.read_text())


# --- Helm

def wrong_values(tools):
    """Values that the schema or a template refuses, and by which word."""
    right = ["--set", "identity.clientId=c", "--set", "cloudConfig.location=eastus"]
    for words, why in [
        (["--set", "loadBalancer=both"], "loadBalancer"),
        (["--set", "replicaCount=0"], "replicaCount"),
        (["--set", "replicas=2"], "replicas"),
        (["--set", "identity.clientId="], "clientId"),
        (["--set", "identity.type=magic"], "identity"),
        (["--set", "networkPolicy.egressPorts={70000}"], "egressPorts"),
        (["--set-json", "networkPolicy.egressPorts=[]"], "egressPorts"),
        (["--set", "existingSecret=also"], "both set"),
        (["--set", "cloudConfig=null"], "there is no cloud config"),
        (["--set", "cloudConfigHostFile=/etc/kubernetes/azure.json"], "both set"),
        (["--set", "cloudConfigHostFile=azure.json"], "cloudConfigHostFile"),
        (["--set", "image.digest=sha256:12"], "digest"),
        (["--set", "cloudConfig.HealthCheck=agent"], "nodeAgent.enabled is false"),
        (["--set", "cloudConfig.healthCheck=agent,nodeAgent.enabled=true,nodeAgent.port=10273"],
         "healthCheckAgentPort is 10272"),
        (["--set", "nodeAgent.enabled=true,nodeAgent.external=true"], "both set"),
        (["--set", "topologySpread[0].maxSkew=1"], "topologyKey"),
        (["--set", "env[0].value=x"], "env"),
        (["--set", "monitoring.serviceMonitor.enabled=yes"], "enabled"),
        (["--set", "monitoring.serviceMonitor.interval=often"], "interval"),
    ]:
        code, _, err = tools.run("helm", "template", "ballast", CHART, *right, *words)
        expect(f"helm {words[1]} is refused", (code != 0, why in err), (True, True))
    code, _, err = tools.run("helm", "template", "ballast", CHART, *right)
    # Helm tells that the chart's rules and dashboard are links to deploy/prometheus.
    told = [line for line in err.splitlines() if line and "found symbolic link" not in line]
    expect("helm with as little as is needed", (code, told), (0, []))
    port = "cloudConfig.healthCheckAgentPort=10273,nodeAgent.port=10273"
    agents = ["--set", f"cloudConfig.healthCheck=agent,nodeAgent.enabled=true,{port}"]
    code, _, err = tools.run("helm", "template", "ballast", CHART, *right, *agents)
    expect(f"helm with agents at one port: {err}", code, 0)
    port = "cloudConfig.healthCheckAgentPort=10273,nodeAgent.external=true"
    words = [CHART, "-n", "kube-system", *right, "--set", f"cloudConfig.healthCheck=agent,{port}"]
    objects = documents(tools.good("helm", "template", "ballast", *words))
    found = [(one["kind"], one["metadata"]["name"]) for one in objects
             if one["metadata"].get("namespace") == "ballast-agents" or one["kind"] == "DaemonSet"]
    expect("helm with agents from elsewhere", found,
           [("Role", "ballast-agents"), ("RoleBinding", "ballast-agents")])
    binding = find([one for one in objects if one["metadata"]["name"] == "ballast-agents"],
                   "RoleBinding")
    expect("helm: the controller counts reports of agents from elsewhere",
           (binding["roleRef"]["name"], [one["name"] for one in binding["subjects"]]),
           ("ballast-agents", ["ballast"]))


def schema_finds_mistakes(deployment):
    """The check of the schema can fail."""
    for path, value, why in [
        (("spec", "replicas"), "3", "spec.replicas"),
        (("spec", "replica"), 3, ".spec.replica"),
        (("spec", "selector"), None, "spec.selector"),
        (("spec", "template", "spec", "affinity"), {"nodeAffinit": {}}, ".nodeAffinit"),
        (("spec", "template", "spec", "containers", 0, "ports", 0, "containerPort"), "http", "ports"),
    ]:
        wrong = json.loads(json.dumps(deployment))
        inner = wrong
        for key in path[:-1]:
            inner = inner[key]
        inner[path[-1]] = value
        found = " ".join(schema.problems(wrong))
        expect(f"the schema refuses {path[-1]}: {value!r}", why in found, True)


def dry_run(tools, objects, folder, kubeconfig):
    """What an API server says of all objects whose kinds it serves; nothing is kept there.

    A namespace among them is not made: what is to stand in it is asked for in `default`.
    """
    env = {"KUBECONFIG": str(kubeconfig)}
    lines = tools.good("kubectl", "api-resources", "--no-headers", env=env).splitlines()
    served = {(words[-3], words[-1]) for words in map(str.split, lines)}
    own = {one["metadata"]["name"] for one in objects if one["kind"] == "Namespace"}
    asked = [json.loads(json.dumps(one)) for one in objects
             if (one["apiVersion"], one["kind"]) in served]
    for one in asked:
        if one["metadata"].get("namespace") in own:
            one["metadata"]["namespace"] = "default"
    file = folder / "dry-run.yaml"
    file.write_text(yaml.safe_dump_all(asked))
    out = tools.good("kubectl", "apply", "--dry-run=server", "-f", file, env=env)
    expect(f"everything: a dry run of {len(asked)} objects", out.count("(server dry run)"), len(asked))
    return asked


def everything(tools, binary, folder, kubeconfig):
    """Each value of the chart set: valid by the schema, applied to a cluster."""
    values = HERE / "chart/everything.yaml"
    text = tools.good("helm", "template", "ballast", CHART, "-n", "kube-system", "--values", values)
    objects = documents(text)
    expect("everything: kinds", sorted({one["kind"] for one in objects}), sorted([
        "ClusterRole", "ClusterRoleBinding", "ConfigMap", "DaemonSet", "Deployment", "Namespace",
        "NetworkPolicy", "PodDisruptionBudget", "PrometheusRule", "Role", "RoleBinding", "Service",
        "ServiceAccount", "ServiceMonitor"]))
    print(f"ok  everything: {schema.check(objects)} objects are as the API's schema says")
    schema_finds_mistakes(find(objects, "Deployment"))
    pod = find(objects, "Deployment")["spec"]["template"]["spec"]
    image = yaml.safe_load(values.read_text())["image"]
    expect("everything: the image by its digest", pod["containers"][0]["image"],
           f"{image['repository']}@{image['digest']}")
    container = pod["containers"][0]
    file, = [arg.split("=", 1)[1] for arg in container["args"] if arg.startswith("--history-file=")]
    writable = {mount["name"] for mount in container["volumeMounts"]
                if file.startswith(mount["mountPath"] + "/") and not mount.get("readOnly")}
    expect("everything: the history's file is on a volume that can be written",
           [volume["name"] for volume in pod["volumes"] if "emptyDir" in volume], list(writable))
    rules = yaml.safe_load((ROOT / "deploy/prometheus/rules.yaml").read_text())
    expect("everything: the rules", find(objects, "PrometheusRule")["spec"], rules)
    dashboard = json.loads((ROOT / "deploy/prometheus/dashboard.json").read_text())
    expect("everything: the dashboard",
           json.loads(find(objects, "ConfigMap")["data"]["ballast.json"]), dashboard)
    expect("everything: the ServiceMonitor finds the Service",
           find(objects, "ServiceMonitor")["spec"]["selector"]["matchLabels"].items()
           <= find(objects, "Service")["metadata"]["labels"].items(), True)
    if kubeconfig:
        dry_run(tools, objects, folder, kubeconfig)
        print("ok  everything: the API server of --kubeconfig takes it")
    # The emulated cluster has no DaemonSets and no kinds of Prometheus' operator: the schema judged those.
    built_in = folder / "built-in.yaml"
    known = [one for one in objects
             if one["kind"] != "DaemonSet" and "monitoring.coreos.com" not in one["apiVersion"]]
    built_in.write_text(yaml.safe_dump_all(known))
    place = Place(binary, folder, gateway=False)
    tools.env["KUBECONFIG"] = str(place.kubeconfig)
    try:
        asked = dry_run(tools, objects, folder, place.kubeconfig)
        expect("everything: kinds of the emulated cluster", sorted(one["kind"] for one in asked),
               sorted(one["kind"] for one in known))
        out = tools.good("kubectl", "apply", "-f", built_in)
        expect("everything: applied", len(out.splitlines()), len(known))
        out = tools.good("kubectl", "apply", "--dry-run=server", "-f", built_in)
        expect("everything: a dry run", out.count("(server dry run)"), len(known))
    finally:
        place.end()


def install(tools, binary, folder):
    place = Place(binary, folder, gateway=False)
    tools.env["KUBECONFIG"] = str(place.kubeconfig)
    try:
        values = HERE / "values/workload-identity.yaml"
        words = [CHART, "-n", "kube-system", "--values", values]
        out = tools.good("helm", "install", "ballast", *words)
        expect("helm install shows the notes", "port-forward deployment/ballast" in out, True)
        tools.good("helm", "upgrade", "ballast", *words, "--set", "replicaCount=3")
        path = "/apis/apps/v1/namespaces/kube-system/deployments/ballast"
        expect("helm upgrade", place.kubernetes("GET", path)["spec"]["replicas"], 3)
        tools.good("helm", "uninstall", "ballast", "-n", "kube-system")
        expect("helm uninstall", place.there(path), False)
    finally:
        place.end()


def put_together(folder, overlay, component):
    """A kustomization of an overlay and a component that is in none."""
    relative = {"resources": OVERLAYS / overlay,
                "components": ROOT / "deploy/kustomize/components" / component}
    (folder / "kustomization.yaml").write_text(yaml.safe_dump({
        "apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization",
        **{key: [os.path.relpath(path, folder)] for key, path in relative.items()}}))


def same(tools, folder, what, overlay, setting):
    """The component in `folder` and a value of the chart mean the same; the objects."""
    objects = documents(tools.good("kubectl", "kustomize", folder))
    values = HERE / f"values/{overlay}.yaml"
    ours, theirs = meaning(objects), meaning(documents(tools.good(
        "helm", "template", "ballast", CHART, "-n", "kube-system", "--values", values,
        "--set", setting)))
    expect(f"{what}: objects of the chart", sorted(theirs), sorted(ours))
    for key, one in ours.items():
        expect(f"{what}: {key}", theirs[key], one)
    print(f"ok  {what}: {schema.check(objects)} objects are as the API's schema says")
    return objects


def node_agent(tools, binary, folder):
    """The agents' component and the chart's value mean the same; what is added is as it should be."""
    overlay = OVERLAYS / "workload-identity"
    put_together(folder, "workload-identity", "node-agent")
    values = HERE / "values/workload-identity.yaml"
    words = ["helm", "template", "ballast", CHART, "-n", "kube-system", "--values", values]
    key = lambda one: (one["kind"], one["metadata"].get("namespace", ""), one["metadata"]["name"])
    def added(before, after):
        before = {key(one) for one in before}
        found = {key(one): one for one in after if key(one) not in before}
        for one in found.values():
            one["metadata"].pop("labels", None)
        return found
    ours = added(documents(tools.good("kubectl", "kustomize", overlay)),
                 documents(tools.good("kubectl", "kustomize", folder)))
    theirs = added(documents(tools.good(*words)),
                   documents(tools.good(*words, "--set", "nodeAgent.enabled=true")))
    expect("node-agent: objects of the chart", sorted(theirs), sorted(ours))
    for name, one in ours.items():
        expect(f"node-agent: {name[0]} {name[1]}/{name[2]}", theirs[name], one)
    daemons = ours[("DaemonSet", "kube-system", "ballast-node-agent")]["spec"]
    pod = daemons["template"]["spec"]
    container, = pod["containers"]
    expect("node-agent: every node", (pod["tolerations"], pod["hostNetwork"]), ([{"operator": "Exists"}], True))
    expect("node-agent: a second one beside the first", (
        daemons["updateStrategy"]["rollingUpdate"]["maxUnavailable"], "ports" in container), (0, False))
    expect("node-agent: container", container["securityContext"], {
        "allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]},
        "privileged": False, "readOnlyRootFilesystem": True})
    expect("node-agent: nobody", pod["securityContext"]["runAsNonRoot"], True)
    # The port may be answered by the agent that is replaced: whether this one is up, its file says.
    ready, = [arg.split("=", 1)[1] for arg in container["args"] if arg.startswith("--ready-file=")]
    command = container["startupProbe"]["exec"]["command"]
    installed = f"{command[0]}\n" in (ROOT / "deploy/Containerfile").read_text()
    expect("node-agent: started when its own file is there", (installed, command[1:]),
           (True, ["node-agent", f"--check-ready={ready}"]))
    writable, = [mount["name"] for mount in container["volumeMounts"]
                 if ready.startswith(mount["mountPath"] + "/") and not mount.get("readOnly")]
    expect("node-agent: the file is on a volume that can be written",
           [volume["name"] for volume in pod["volumes"] if "emptyDir" in volume], [writable])
    mark = folder / "ready"
    before = tools.run(binary, "node-agent", f"--check-ready={mark}")[0]
    mark.touch()
    expect("node-agent: the file is looked for",
           (before, tools.run(binary, "node-agent", f"--check-ready={mark}")[0]), (1, 0))
    # The command line takes the arguments: what is missing is only the cluster.
    said = tools.run(binary, *container["args"], env={"KUBECONFIG": "/nowhere"})
    expect("node-agent: arguments", "no Kubernetes cluster" in said[2] or "kubeconfig" in said[2], True)


def moving(tools, _, folder):
    """While Services move: the component and the chart's value mean the same, and give what either
    kind of load balancers needs."""
    put_together(folder, "workload-identity", "moving")
    objects = same(tools, folder, "moving", "workload-identity", "loadBalancer=moving")
    atoms = granted(objects, ACCOUNT)
    for name in ("workload-identity", "several-load-balancers", "container-load-balancer"):
        kind = documents(tools.good("kubectl", "kustomize", OVERLAYS / name))
        expect(f"moving: has the rights of {name}", granted(kind, ACCOUNT) - atoms, set())


def history(tools, _, folder):
    """The component and the chart's value keep the history alike, also where the cloud config is no
    volume; the file is on a volume that can be written."""
    for overlay in ("workload-identity", "host-file", "beside-go-provider"):
        put_together(folder, overlay, "history")
        what = f"history: {overlay}"
        objects = same(tools, folder, what, overlay, "history.enabled=true")
        pod = find(objects, "Deployment")["spec"]["template"]["spec"]
        container, = pod["containers"]
        file, = [arg.split("=", 1)[1] for arg in container["args"] if arg.startswith("--history-file=")]
        writable = [mount["name"] for mount in container["volumeMounts"]
                    if file.startswith(mount["mountPath"] + "/") and not mount.get("readOnly")]
        expect(f"{what}: a volume that can be written",
               [volume["name"] for volume in pod["volumes"] if "emptyDir" in volume], writable)


# --- kubectl

def plugin(tools, binary, folder):
    """The binary under kubectl's names."""
    install = ROOT / "deploy/release/install-plugin"
    code, _, err = tools.run("sh", install, folder / "absent", folder)
    expect("the plugin's installer asks for a program", (code, "no program" in err), (64, True))
    out = tools.good("sh", install, binary, folder)
    expect("the plugin's installer says what it made", out.splitlines(),
           [f"{folder}/{name} -> {binary}" for name in ("kubectl-ballast", "kubectl_complete-ballast")])
    env = {"PATH": f"{folder}:{tools.env['PATH']}"}
    code, out, err = tools.run("kubectl", "plugin", "list", env=env)
    expect("kubectl sees the plugin", (code, str(folder / "kubectl-ballast") in out), (0, True))
    code, out, _ = tools.run("kubectl", "ballast", "status", "--help", env=env)
    expect("kubectl ballast", (code, "Usage: kubectl ballast status" in out), (0, True))
    code, out, _ = tools.run("kubectl", "ballast", "azure-role", "--for", "x", env=env)
    expect("exit codes come through", code, 64)
    code, out, _ = tools.run("kubectl", "__complete", "ballast", "stat", env=env)
    expect("kubectl completes commands", (code, out.startswith("status\t")), (0, True))
    code, out, _ = tools.run("kubectl", "__complete", "ballast", "status", "-o", "js", env=env)
    expect("kubectl completes values", (code, out.startswith("json\t")), (0, True))


# --- the image

def check_containerfile():
    lines = (ROOT / "deploy/Containerfile").read_text().replace("\\\n", " ").splitlines()
    lines = [line for line in lines if line and not line.startswith("#")]
    stages = [index for index, line in enumerate(lines) if line.startswith("FROM ")]
    expect("Containerfile: stages", len(stages), 2)
    bases = dict(line.removeprefix("ARG ").split("=", 1) for line in lines[:stages[0]])
    named = [lines[index].split()[1].strip("${}") for index in stages]
    expect("Containerfile: bases can be named by digest", sorted(named), sorted(bases))
    workspace = (ROOT / "Cargo.toml").read_text()
    rust = re.search(r'^rust-version = "(\d+\.\d+)', workspace, re.M).group(1)
    expect("Containerfile: the workspace's Rust", f"/rust:{rust}-" in bases[named[0]], True)
    build, last = lines[stages[0]:stages[1]], lines[stages[1]:]
    users = [line.split()[1] for line in build if line.startswith("USER ")]
    first_run = next(index for index, line in enumerate(build) if line.startswith("RUN "))
    expect("Containerfile: nothing is built as root",
           (users, build.index(f"USER {users[0]}") < first_run), (["65532:65532"], True))
    users = [line.split()[1] for line in last if line.startswith("USER ")]
    pod_spec = yaml.safe_load((ROOT / "deploy/kustomize/base/deployment.yaml").read_text())
    security = pod_spec["spec"]["template"]["spec"]["securityContext"]
    expect("Containerfile: the user is the Deployment's", users,
           [f"{security['runAsUser']}:{security['runAsGroup']}"])
    built, = [line for line in build if line.startswith("RUN cargo build")]
    flags = ("--locked", "--profile ship", "--package ballast", "--no-default-features")
    expect("Containerfile: what is shipped, without emulators", [f for f in flags if f not in built], [])
    expect("Containerfile: nothing runs in the last stage",
           [line for line in last if line.startswith("RUN")], [])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    parser.add_argument("--tools", required=True)
    parser.add_argument("--only")
    parser.add_argument("--kubeconfig", help="of a real cluster, for a dry run")
    args = parser.parse_args()
    binary = str(pathlib.Path(args.bin).resolve())
    work = pathlib.Path(tempfile.mkdtemp(prefix="ballast-deploy-"))
    try:
        tools = Tools(args.tools, work)
        for name in names():
            if args.only in (None, name):
                folder = work / name
                folder.mkdir()
                objects = render(tools, name)
                check_hardening(name, objects)
                check_config(tools, binary, name, folder)
                run(tools, binary, name, objects, folder)
        if args.only is None:
            wrong_values(tools)
            check_containerfile()
            for part in (install, node_agent, moving, history, plugin, release.check):
                folder = work / part.__name__
                folder.mkdir()
                part(tools, binary, folder)
            overlays = work / "places"
            overlays.mkdir()
            places(tools, overlays)
            folder = work / "everything"
            folder.mkdir()
            everything(tools, binary, folder, args.kubeconfig)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    print("deploy/ is as it should be")


if __name__ == "__main__":
    main()
