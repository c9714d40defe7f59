#!/usr/bin/env python3
"""Drives the Kubernetes emulator with the official Python client.

The client knows nothing of this project, so what both agree on is the API itself.
Usage: kube_client.py --kubeconfig FILE
"""

import argparse
import datetime
import json
import sys
import threading
import time

from kubernetes import client, config, watch
from kubernetes.client.exceptions import ApiException

SPACE = "foreign"


def expect(what, got, want):
    if got != want:
        raise AssertionError(f"{what}: got {got!r}, want {want!r}")
    print(f"ok  {what}")


def refused(what, code, reason, call):
    try:
        call()
    except ApiException as error:
        expect(f"{what}: code", error.status, code)
        status = json.loads(error.body)
        expect(f"{what}: kind", status["kind"], "Status")
        expect(f"{what}: reason", status["reason"], reason)
        return status
    raise AssertionError(f"{what}: was not refused")


def service(name, **spec):
    ports = spec.pop("ports", [client.V1ServicePort(name="http", port=80, target_port=8080)])
    return client.V1Service(
        metadata=client.V1ObjectMeta(name=name, labels={"app": name}),
        spec=client.V1ServiceSpec(ports=ports, **spec),
    )


def pod(name, labels):
    container = client.V1Container(name="c", image="nginx")
    return client.V1Pod(
        metadata=client.V1ObjectMeta(name=name, labels=labels),
        spec=client.V1PodSpec(containers=[container], node_name="node-1"),
    )


def check_start(core):
    names = [one.metadata.name for one in core.list_namespace().items]
    expect("namespaces", names, ["default", "kube-node-lease", "kube-public", "kube-system"])
    expect("first service", core.read_namespaced_service("kubernetes", "default").spec.cluster_ip,
           "10.0.0.1")
    groups = [group.name for group in client.ApisApi().get_api_versions().groups]
    expect("groups", "discovery.k8s.io" in groups and "coordination.k8s.io" in groups, True)
    expect("version", client.VersionApi().get_code().major, "1")


def check_services(core):
    made = core.create_namespaced_service(SPACE, service("web", type="LoadBalancer"))
    expect("allocated", bool(made.spec.cluster_ip and made.spec.ports[0].node_port), True)
    expect("type", made.spec.type, "LoadBalancer")
    refused("second create", 409, "AlreadyExists",
            lambda: core.create_namespaced_service(SPACE, service("web")))
    status = refused("bad service", 422, "Invalid",
                     lambda: core.create_namespaced_service(SPACE, service("bad", type="Odd")))
    expect("cause", status["details"]["causes"][0]["field"], "spec.type")

    patch = {"status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}}
    done = core.patch_namespaced_service_status("web", SPACE, patch)
    expect("ip mode", done.status.load_balancer.ingress[0].ip_mode, "VIP")
    done = core.patch_namespaced_service("web", SPACE, {"metadata": {"finalizers": ["a/b"]}})
    expect("finalizers", done.metadata.finalizers, ["a/b"])

    stale = core.read_namespaced_service("web", SPACE)
    core.patch_namespaced_service("web", SPACE, {"metadata": {"labels": {"x": "y"}}})
    stale.spec.session_affinity = "ClientIP"
    refused("stale update", 409, "Conflict",
            lambda: core.replace_namespaced_service("web", SPACE, stale))
    fresh = core.read_namespaced_service("web", SPACE)
    fresh.spec.session_affinity = "ClientIP"
    done = core.replace_namespaced_service("web", SPACE, fresh)
    expect("affinity default", done.spec.session_affinity_config.client_ip.timeout_seconds, 10800)

    core.delete_namespaced_service("web", SPACE)
    held = core.read_namespaced_service("web", SPACE)
    expect("held by finalizer", held.metadata.deletion_timestamp is not None, True)
    core.patch_namespaced_service(
        "web", SPACE, [{"op": "remove", "path": "/metadata/finalizers"}])
    refused("gone", 404, "NotFound", lambda: core.read_namespaced_service("web", SPACE))


def check_lists(core):
    for index in range(7):
        labels = {"parity": "even" if index % 2 == 0 else "odd"}
        meta = client.V1ObjectMeta(name=f"cm-{index}", labels=labels)
        core.create_namespaced_config_map(SPACE, client.V1ConfigMap(metadata=meta))
    found, token = [], None
    while True:
        page = core.list_namespaced_config_map(SPACE, limit=3, _continue=token)
        found += [one.metadata.name for one in page.items]
        token = page.metadata._continue
        if not token:
            break
    expect("pages", found, [f"cm-{index}" for index in range(7)])
    odd = core.list_namespaced_config_map(SPACE, label_selector="parity in (odd)").items
    expect("labels", len(odd), 3)
    one = core.list_namespaced_config_map(SPACE, field_selector="metadata.name=cm-2").items
    expect("fields", [item.metadata.name for item in one], ["cm-2"])
    core.delete_collection_namespaced_config_map(SPACE, label_selector="parity=odd")
    expect("collection", len(core.list_namespaced_config_map(SPACE).items), 4)


def check_watch(core):
    seen = []
    start = core.list_namespaced_secret(SPACE).metadata.resource_version

    def follow():
        stream = watch.Watch()
        for event in stream.stream(core.list_namespaced_secret, SPACE, resource_version=start,
                                   label_selector="keep=yes", timeout_seconds=20):
            seen.append((event["type"], event["object"].metadata.name))
            if len(seen) == 4:
                stream.stop()

    thread = threading.Thread(target=follow)
    thread.start()
    time.sleep(0.2)
    meta = client.V1ObjectMeta(name="s", labels={"keep": "yes"})
    secret = client.V1Secret(metadata=meta, string_data={"a": "b"})
    core.create_namespaced_secret(SPACE, secret)
    expect("encoded", core.read_namespaced_secret("s", SPACE).data, {"a": "Yg=="})
    core.patch_namespaced_secret("s", SPACE, {"metadata": {"labels": {"more": "1"}}})
    core.patch_namespaced_secret("s", SPACE, {"metadata": {"labels": {"keep": "no"}}})
    core.patch_namespaced_secret("s", SPACE, {"metadata": {"labels": {"keep": "yes"}}})
    thread.join()
    expect("watch", seen, [("ADDED", "s"), ("MODIFIED", "s"), ("DELETED", "s"), ("ADDED", "s")])


def check_slices(core):
    slices = client.DiscoveryV1Api()
    meta = client.V1ObjectMeta(name="node-1")
    core.create_node(client.V1Node(metadata=meta))
    core.create_namespaced_service(SPACE, service("app", selector={"app": "app"}))
    label = "kubernetes.io/service-name=app"
    expect("no pods, no slice",
           slices.list_namespaced_endpoint_slice(SPACE, label_selector=label).items, [])
    core.create_namespaced_pod(SPACE, pod("app-1", {"app": "app"}))
    ready = {"status": {"podIP": "10.1.0.1", "podIPs": [{"ip": "10.1.0.1"}], "phase": "Running",
                        "conditions": [{"type": "Ready", "status": "True"}]}}
    core.patch_namespaced_pod_status("app-1", SPACE, ready)
    found = slices.list_namespaced_endpoint_slice(SPACE, label_selector=label).items
    expect("one slice", len(found), 1)
    expect("address", found[0].endpoints[0].addresses, ["10.1.0.1"])
    expect("ready", found[0].endpoints[0].conditions.ready, True)
    expect("port", found[0].ports[0].port, 8080)
    core.delete_namespaced_service("app", SPACE)
    expect("collected",
           slices.list_namespaced_endpoint_slice(SPACE, label_selector=label).items, [])


def check_others(core):
    leases = client.CoordinationV1Api()
    lease = client.V1Lease(metadata=client.V1ObjectMeta(name="leader"),
                           spec=client.V1LeaseSpec(holder_identity="me"))
    made = leases.create_namespaced_lease(SPACE, lease)
    made.spec.holder_identity = "you"
    done = leases.replace_namespaced_lease("leader", SPACE, made)
    expect("lease", done.spec.holder_identity, "you")

    about = client.V1ObjectReference(kind="Service", name="app", namespace=SPACE)
    event = client.EventsV1Event(metadata=client.V1ObjectMeta(generate_name="app."),
                                 event_time=datetime.datetime.now(datetime.timezone.utc),
                                 regarding=about, reason="Tested", note="hello", action="Test",
                                 type="Normal", reporting_controller="foreign",
                                 reporting_instance="one")
    made = client.EventsV1Api().create_namespaced_event(SPACE, event)
    expect("generated name", made.metadata.name.startswith("app."), True)
    other = core.list_namespaced_event(SPACE, field_selector="involvedObject.name=app").items
    expect("other face", [(one.message, one.involved_object.name) for one in other],
           [("hello", "app")])


def check_end(core):
    core.delete_namespace(SPACE)
    names = [one.metadata.name for one in core.list_namespace().items]
    expect("namespace gone", SPACE in names, False)
    expect("contents gone", core.list_namespaced_config_map(SPACE).items, [])
    core.delete_node("node-1")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kubeconfig", required=True)
    config.load_kube_config(config_file=parser.parse_args().kubeconfig)
    core = client.CoreV1Api()
    check_start(core)
    core.create_namespace(client.V1Namespace(metadata=client.V1ObjectMeta(name=SPACE)))
    for check in (check_services, check_lists, check_watch, check_slices, check_others, check_end):
        check(core)
    print("all good")


if __name__ == "__main__":
    sys.exit(main())
