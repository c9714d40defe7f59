#!/usr/bin/env python3
"""The container load balancer through the real binary, one scenario a line of its acceptance list.

    container.py --bin target/release/ballast [--only WORD]

Starts `azure-emulator --service-gateway`, `kube-emulator` and `run` on loopback and speaks HTTP to
them. Scenarios share a cluster and run side by side; those that kill the controller have one of
their own. Exits with 1 and says which scenarios fail and why. Python's standard library is enough.
"""
import argparse, concurrent.futures, json, os, random, re, signal, socket, subprocess, sys, tempfile, threading, time
import urllib.error, urllib.parse, urllib.request

EGRESS = "kubernetes.azure.com/service-egress-gateway"
INTERNAL = "service.beta.kubernetes.io/azure-load-balancer-internal"
SERVICE_FINALIZERS = ["service.kubernetes.io/load-balancer-cleanup", "servicegateway.azure.com/service-cleanup"]
POD_FINALIZER = "servicegateway.azure.com/pod-cleanup"
SHARED, KILLED = [], []


class Wrong(Exception):
    pass


def expect(what, got, wanted=True):
    if got != wanted:
        raise Wrong(f"{what}: {got!r} instead of {wanted!r}")


def scenario(name, group=SHARED):
    def keep(function):
        group.append((name, function))
        return function
    return keep


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def call(method, url, body=None):
    kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": kind, "Accept": "application/json"}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, json.loads(answer.read() or b"null")
    except urllib.error.HTTPError as e:
        text = e.read()
        try:
            return e.code, json.loads(text or b"null")
        except ValueError:
            return e.code, text.decode()


class Place:
    """Both emulators with a Service Gateway and some nodes; the controller comes and goes."""

    def __init__(self, binary, nodes=4, families=2, *azure_flags):
        self.binary, self.dir, self.running = binary, tempfile.mkdtemp(prefix="container-"), []
        kube_port, azure_port = free_port(), free_port()
        self.kubeconfig, self.config = (os.path.join(self.dir, n) for n in ("kubeconfig", "azure.json"))
        self.azure = f"http://127.0.0.1:{azure_port}"
        self.start("kube-emulator", "--listen", f"127.0.0.1:{kube_port}", "--write-kubeconfig", self.kubeconfig)
        self.start("azure-emulator", "--listen", f"127.0.0.1:{azure_port}", "--estate", "sample", "--service-gateway",
                   "--write-cloud-config", self.config, *azure_flags)
        wait("the emulators", lambda: os.path.exists(self.kubeconfig) and os.path.exists(self.config))
        self.kube = re.search(r"server:\s*\"?([^\s\",}]+)", open(self.kubeconfig).read()).group(1)
        wait("the emulators", lambda: answers(self.kube + "/readyz") and answers(self.azure + "/_/counts"))
        for n in range(nodes):
            self.node(n, families)
        self.controller, self.lock, self.next_ip = None, threading.Lock(), 0
        self.empty = self.resources()

    def start(self, *command):
        log = open(os.path.join(self.dir, command[0] + ".log"), "ab")
        process = subprocess.Popen([self.binary, *command], stdout=log, stderr=log)
        self.running.append(process)
        return process

    def run(self):
        # All scenarios together write more than Azure lets through in five minutes.
        self.controller = self.start("run", "--kubeconfig", self.kubeconfig, "--cloud-config", self.config,
                                     "--azure-limits=unknown", "--leader-elect=false", "--port", "0")

    def kill(self):
        self.controller.send_signal(signal.SIGKILL)
        self.controller.wait()
        self.running.remove(self.controller)

    def stop(self):
        for process in self.running:
            process.kill()
            process.wait()

    # Kubernetes
    def node(self, n, families=2, ip=None):
        addresses = [{"type": "InternalIP", "address": ip or f"10.224.0.{4 + n}"}]
        if families == 2:
            addresses.append({"type": "InternalIP", "address": f"fd00::{4 + n:x}"})
        call("POST", self.kube + "/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"node-{n}"}})
        call("PATCH", self.kube + f"/api/v1/nodes/node-{n}/status", {"status": {"addresses": addresses}})

    def path(self, kind, name=""):
        return f"{self.kube}/api/v1/namespaces/default/{kind}/{name}".rstrip("/")

    def service(self, name, app=None, ports=None, annotations=None, **spec):
        body = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "annotations": annotations or {}},
                "spec": {"type": "LoadBalancer", "selector": {"app": app or name},
                         "ports": ports or [{"name": "http", "port": 80, "targetPort": 8080}], **spec}}
        code, answer = call("POST", self.path("services"), body)
        expect(f"creating Service {name}", code, 201)
        return answer["metadata"]["uid"]

    def get(self, kind, name):
        code, answer = call("GET", self.path(kind, name))
        return answer if code == 200 else None

    def patch(self, kind, name, body, part=""):
        code, answer = call("PATCH", self.path(kind, name) + part, body)
        expect(f"patching {kind} {name}: {answer}", code, 200)

    def delete(self, kind, name):
        return call("DELETE", self.path(kind, name))[0]

    def address(self):
        with self.lock:
            self.next_ip += 1
            return f"10.244.{self.next_ip // 250}.{1 + self.next_ip % 250}"

    def pod(self, name, app="", node=0, egress=None, ips=None, ready=True, host_network=False, port=None):
        labels = {"app": app} if app else {}
        if egress is not None:
            labels[EGRESS] = egress
        ips = ips or ([f"10.224.0.{4 + node}"] if host_network else [self.address()])
        code, _ = call("POST", self.path("pods"), {
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels},
            "spec": {"nodeName": f"node-{node}", "hostNetwork": host_network, "containers": [
                {"name": "c", "image": "i", "ports": [{"name": "web", "containerPort": port}] if port else []}]}})
        expect(f"creating Pod {name}", code, 201)
        hosts = [f"10.224.0.{4 + node}", f"fd00::{4 + node:x}"]
        self.patch("pods", name, {"status": {
            "phase": "Running", "hostIP": hosts[0], "hostIPs": [{"ip": h} for h in hosts], "podIP": ips[0],
            "podIPs": [{"ip": ip} for ip in ips], "conditions": [{"type": "Ready", "status": str(ready)}]}}, "/status")
        return ips[0]

    def ready(self, name, yes):
        self.patch("pods", name, {"status": {"conditions": [{"type": "Ready", "status": str(yes)}]}}, "/status")

    def ip(self, name):
        found = (((self.get("services", name) or {}).get("status") or {}).get("loadBalancer") or {}).get("ingress")
        return found[0].get("ip") if found else None

    def addressed(self, name):
        wait(f"an address of {name}", lambda: self.ip(name))
        return self.ip(name)

    def reasons(self, name):
        events = call("GET", self.path("events"))[1]["items"]
        return [e["reason"] for e in events if e["involvedObject"]["name"] == name]

    # Azure
    def traffic(self, ip, port=80, protocol="TCP"):
        query = urllib.parse.urlencode({"ip": ip, "protocol": protocol, "port": port})
        code, answer = call("GET", f"{self.azure}/_/traffic?{query}")
        return answer if code == 200 and "rule" in answer else None

    def backends(self, name, port=80, protocol="TCP"):
        ip = self.ip(name)
        return sorted((self.traffic(ip, port, protocol) or {}).get("backends", [])) if ip else None

    def gets(self, name, ips, port=80, protocol="TCP"):
        wait(f"traffic of {name} at {ips}", lambda: self.backends(name, port, protocol) == sorted(ips),
             lambda: self.backends(name, port, protocol))

    def out(self, pod):
        code, answer = call("GET", f"{self.azure}/_/traffic?" + urllib.parse.urlencode({"pod": pod}))
        return answer.get("egress", answer) if isinstance(answer, dict) else answer

    def resources(self):
        return sorted(r["id"].lower() for r in call("GET", self.azure + "/_/state")[1])

    def exists(self, kind, name):
        return any(r.endswith(f"/{kind}/{name}".lower()) for r in self.resources())

    def table(self):
        (gateway,) = call("GET", self.azure + "/_/gateways")[1].values()
        return gateway

    def places(self, ip):
        return [where for where, at in self.table()["locations"].items() if ip in at]

    def gone(self, uid):
        wait(f"{uid} to leave nothing", lambda: not any(uid in r for r in self.resources())
             and uid not in self.table()["services"] and uid not in json.dumps(self.table()["locations"]))

    def writes(self, part=""):
        return [c for c in call("GET", self.azure + "/_/calls")[1] if c["method"] != "GET" and part in c["path"]]

    def clear(self):
        """Everything the scenarios made goes, and nothing is left over."""
        for kind in ("services", "pods"):
            for item in call("GET", self.path(kind))[1]["items"]:
                if item["metadata"]["name"] != "kubernetes":
                    self.delete(kind, item["metadata"]["name"])
        wait("Services and Pods to go", lambda: not [
            1 for kind in ("services", "pods") for i in call("GET", self.path(kind))[1]["items"]
            if i["metadata"]["name"] != "kubernetes"])
        wait("Azure to be empty", lambda: self.resources() == self.empty and not self.table()["locations"]
             and list(self.table()["services"]) == ["default-natgw"], lambda: [set(self.resources()) - set(self.empty), self.table()])


def answers(url):
    try:
        urllib.request.urlopen(url, timeout=2).read()
        return True
    except OSError:
        return False


def wait(what, done, shown=None, seconds=60):
    end = time.time() + seconds
    while not done():
        if time.time() > end:
            raise Wrong(f"waited {seconds} s for {what}" + (f"; it is {shown()!r}" if shown else ""))
        time.sleep(0.03)


def quiet(place, seconds=0.5):
    time.sleep(seconds)


# Services


@scenario("basic create/verify; finalizers")
def basic(p, n):
    uid = p.service(n)
    ips = [p.pod(f"{n}-{i}", n, i) for i in range(3)]
    p.addressed(n)
    p.gets(n, ips)
    expect("finalizers", sorted(p.get("services", n)["metadata"]["finalizers"]), SERVICE_FINALIZERS)
    p.delete("services", n)
    p.gone(uid)
    wait("the Service to go", lambda: p.get("services", n) is None)


@scenario("N services x M pods concurrently; isolation between services, distribution")
def many(p, n):
    names = [f"{n}-{i}" for i in range(10)]
    for name in names:
        p.service(name)
    ips = {name: [p.pod(f"{name}-{i}", name, i) for i in range(4)] for name in names}
    for name in names:
        p.addressed(name)
        p.gets(name, ips[name])
    expect("different addresses", len({p.ip(name) for name in names}), 10)


@scenario("traffic: multi-port; TCP+UDP on one port allowed; UDP without reset")
def ports(p, n):
    uid = p.service(n, ports=[{"name": "a", "port": 53, "targetPort": 53, "protocol": "TCP"},
                              {"name": "b", "port": 53, "targetPort": 53, "protocol": "UDP"},
                              {"name": "c", "port": 443, "targetPort": 8443}])
    ip = p.pod(f"{n}-0", n)
    p.addressed(n)
    for port, protocol in [(53, "TCP"), (53, "UDP"), (443, "TCP")]:
        p.gets(n, [ip], port, protocol)
    (lb,) = [r for r in call("GET", p.azure + "/_/state")[1] if r["id"].lower().endswith("/loadbalancers/" + uid)]
    rules = {r["name"]: r["properties"].get("enableTcpReset") for r in lb["properties"]["loadBalancingRules"]}
    expect("resets", [bool(rules["rule-tcp-53"]), bool(rules["rule-udp-53"])], [True, False])


@scenario("endpoints empty and refill; LB before pods; readiness flip")
def endpoints(p, n):
    p.service(n)
    p.addressed(n)
    p.gets(n, [])
    ip = p.pod(f"{n}-0", n)
    for _ in range(2):
        p.gets(n, [ip])
        p.ready(f"{n}-0", False)
        p.gets(n, [])
        p.ready(f"{n}-0", True)
    p.gets(n, [ip])


@scenario("selector/label update")
def selector(p, n):
    p.service(n)
    a, b = p.pod(f"{n}-a", n), p.pod(f"{n}-b", n + "-other")
    p.addressed(n)
    p.gets(n, [a])
    p.patch("services", n, {"spec": {"selector": {"app": n + "-other"}}})
    p.gets(n, [b])
    p.patch("pods", f"{n}-a", {"metadata": {"labels": {"app": n + "-other"}}})
    p.gets(n, [a, b])


@scenario("port edits, rapid edits, add/remove ports, unchanged spec no-op, edit + scale together; TCP->UDP")
def edits(p, n):
    uid = p.service(n)
    ip = p.pod(f"{n}-0", n)
    address = p.addressed(n)
    p.gets(n, [ip])

    def edit(*ports):
        p.patch("services", n, {"spec": {"ports": [{"name": f"p{x}{y}".lower(), "port": x, "targetPort": x, "protocol": y} for x, y in ports]}})
    for port in range(81, 95):
        edit((port, "TCP"))
    edit((443, "TCP"), (444, "TCP"))
    p.gets(n, [ip], 444)
    more = p.pod(f"{n}-1", n, 1)
    edit((443, "UDP"))
    p.gets(n, [ip, more], 443, "UDP")
    expect("the old ports", [p.traffic(address, port) for port in (80, 94, 444, 443)], [None] * 4)
    expect("the address stays", p.ip(n), address)
    before = len(p.writes(uid))
    p.patch("services", n, {"metadata": {"labels": {"nothing": "new"}}})
    quiet(p)
    expect("writes for nothing", len(p.writes(uid)), before)


@scenario("terminal update must not drain; multiport collision rejected")
def terminal(p, n):
    p.service(n)
    ip = p.pod(f"{n}-0", n)
    p.addressed(n)
    p.gets(n, [ip])
    p.patch("services", n, {"spec": {"ports": [{"name": "a", "port": 80, "targetPort": 80}, {"name": "b", "port": 81, "targetPort": 80}]}})
    wait("the Event", lambda: "UnsupportedBackendPortCollision" in p.reasons(n))
    more = p.pod(f"{n}-1", n, 1)
    p.gets(n, [ip, more])


@scenario("ETP flip; no nodePorts")
def policies(p, n):
    uid = p.service(n, allocateLoadBalancerNodePorts=False, externalTrafficPolicy="Local")
    ip = p.pod(f"{n}-0", n)
    p.addressed(n)
    p.gets(n, [ip])
    before = len(p.writes(uid))
    p.patch("services", n, {"spec": {"externalTrafficPolicy": "Cluster"}})
    quiet(p)
    expect("writes", len(p.writes(uid)), before)
    p.gets(n, [ip])


@scenario("named port leads to the Pods' number")
def named_port(p, n):
    uid = p.service(n, ports=[{"name": "a", "port": 80, "targetPort": "web"}])
    wait("the Event", lambda: "TargetPortUnknown" in p.reasons(n))
    ip = p.pod(f"{n}-0", n, port=9090)
    p.addressed(n)
    p.gets(n, [ip])
    (lb,) = [r for r in call("GET", p.azure + "/_/state")[1] if r["id"].lower().endswith("/loadbalancers/" + uid)]
    expect("the rule", [r["properties"]["backendPort"] for r in lb["properties"]["loadBalancingRules"]], [9090])


@scenario("SCTP/dual-stack/internal rejected; foreign LB class ignored")
def rejected(p, n):
    cases = {
        "UnsupportedProtocol": {"ports": [{"name": "a", "port": 80, "targetPort": 80, "protocol": "SCTP"}]},
        "UnsupportedDualStack": {"ipFamilyPolicy": "RequireDualStack", "ipFamilies": ["IPv4", "IPv6"]},
        "UnsupportedInternalLoadBalancer": {"annotations": {INTERNAL: "True"}},
    }
    uids = []
    for i, (reason, spec) in enumerate(cases.items()):
        uids.append(p.service(f"{n}-{i}", **spec))
    uids.append(p.service(f"{n}-class", loadBalancerClass="example.com/other"))
    for i, reason in enumerate(cases):
        wait(reason, lambda: reason in p.reasons(f"{n}-{i}"))
    quiet(p)
    expect("resources", [r for r in p.resources() for uid in uids if uid in r], [])
    expect("finalizers", p.get("services", f"{n}-class")["metadata"].get("finalizers"), None)


@scenario("IPv6 single stack; dual-stack nodes with single-stack services (family-pure locations)")
def ipv6(p, n):
    p.service(n, ipFamilies=["IPv6"], ipFamilyPolicy="SingleStack")
    p.pod(f"{n}-0", n, 1, ips=["10.99.1.1", "fd12::99:1"])
    address = p.addressed(n)
    expect("an IPv6 address", ":" in address)
    p.gets(n, ["fd12::99:1"])
    expect("its location", p.places("fd12::99:1"), ["fd00::5"])
    expect("no IPv4", p.places("10.99.1.1"), [])


@scenario("status back-fill")
def status(p, n):
    p.service(n)
    address = p.addressed(n)
    p.patch("services", n, {"status": {"loadBalancer": {"ingress": None}}}, "/status")
    wait("the address to be back", lambda: p.ip(n) == address)


@scenario("LB->ClusterIP->LB slow and fast")
def retyped(p, n):
    uid = p.service(n)
    ip = p.pod(f"{n}-0", n)
    p.addressed(n)
    p.gets(n, [ip])
    p.patch("services", n, {"spec": {"type": "ClusterIP"}})
    p.gone(uid)
    wait("the status to be empty", lambda: p.ip(n) is None)
    wait("the finalizers to go", lambda: not p.get("services", n)["metadata"].get("finalizers"))
    p.patch("services", n, {"spec": {"type": "LoadBalancer"}})
    p.addressed(n)
    p.gets(n, [ip])
    for kind in ("ClusterIP", "LoadBalancer", "ClusterIP", "LoadBalancer"):
        p.patch("services", n, {"spec": {"type": kind}})
    p.addressed(n)
    p.gets(n, [ip])


@scenario("node delete drains; multi-node")
def nodes(p, n):
    p.node(50)
    p.service(n)
    stays = p.pod(f"{n}-0", n, 1)
    goes = p.pod(f"{n}-1", n, 50)
    p.addressed(n)
    p.gets(n, [stays, goes])
    call("DELETE", p.kube + "/api/v1/nodes/node-50")
    p.gets(n, [stays])


@scenario("10->100->10->... scaling; traffic during pod deletion")
def scaling(p, n):
    p.service(n)
    ips = [p.pod(f"{n}-{i}", n, i % 4) for i in range(10)]
    p.addressed(n)
    for _ in range(2):
        more = [p.pod(f"{n}-more-{i}", n, i % 4) for i in range(90)]
        p.gets(n, ips + more)
        for i in range(90):
            p.delete("pods", f"{n}-more-{i}")
        p.gets(n, ips)


@scenario("rapid same-name create/delete cycles")
def cycles(p, n):
    uids = []
    for i in range(6):
        uids.append(p.service(n))
        time.sleep(i * 0.03)
        p.delete("services", n)
        wait("the Service to go", lambda: p.get("services", n) is None)
    for uid in uids:
        p.gone(uid)
    p.service(n)
    p.addressed(n)


@scenario("churn leak-free; churn/stress")
def churn(p, n):
    rng = random.Random(7)
    p.service(n)
    alive = {}
    for i in range(120):
        if alive and rng.random() < 0.5:
            name = rng.choice(sorted(alive))
            p.delete("pods", name)
            del alive[name]
        else:
            alive[f"{n}-{i}"] = p.pod(f"{n}-{i}", n, rng.randrange(4))
    p.addressed(n)
    p.gets(n, alive.values())


# Egress


@scenario("egress connectivity + SNAT IP; dual-stack egress (v4+v6 PIPs on separate NAT properties)")
def egress(p, n):
    v4, v6 = p.address(), "fd12::77:1"
    p.pod(f"{n}-0", egress=n, ips=[v4, v6])
    wait("its way out", lambda: p.places(v4) and p.places(v6))
    (nat,) = [r for r in call("GET", p.azure + "/_/state")[1] if r["id"].lower().endswith("/natgateways/" + n)]
    expect("IPv4", [x["id"].split("/")[-1] for x in nat["properties"]["publicIpAddresses"]], [n + "-pip"])
    expect("IPv6", [x["id"].split("/")[-1] for x in nat["properties"]["publicIpAddressesV6"]], [n + "-pip-v6"])
    expect("listed", p.table()["locations"]["10.224.0.4"][v4], [n])


@scenario("IPv4-only pod still gets dual gateway, independent pairs, scale to 0 and back")
def pairs(p, n):
    ips = {g: p.pod(g, egress=g) for g in (n + "-a", n + "-b")}
    for g, ip in ips.items():
        wait("its way out", lambda: p.places(ip))
        expect("both families", [p.exists("publicipaddresses", g + s) for s in ("-pip", "-pip-v6")], [True, True])
    g = n + "-a"
    p.delete("pods", g)
    wait("the gateway to go", lambda: not p.exists("natgateways", g) and not p.exists("publicipaddresses", g + "-pip-v6"))
    expect("the other stays", p.exists("natgateways", n + "-b"))
    # The finalizer goes after the gateway.
    wait("the Pod to go", lambda: p.get("pods", g) is None)
    ip = p.pod(g, egress=g)
    wait("its way out again", lambda: p.places(ip))


@scenario("last pod teardown and rebuild; force delete")
def last(p, n):
    for _ in range(2):
        p.pod(n, egress=n)
        wait("the gateway", lambda: n in p.table()["services"])
        wait("the finalizer", lambda: POD_FINALIZER in p.get("pods", n)["metadata"].get("finalizers", []))
        call("DELETE", p.path("pods", n) + "?gracePeriodSeconds=0")
        wait("the Pod to go", lambda: p.get("pods", n) is None)
        expect("the gateway went first", p.exists("natgateways", n), False)


@scenario("label move")
def label(p, n):
    ip = p.pod(n, egress=n + "-a")
    wait("its way out", lambda: p.places(ip))
    p.patch("pods", n, {"metadata": {"labels": {EGRESS: n + "-b"}}})
    wait("the move", lambda: (n + "-b") in json.dumps(p.table()["locations"]) and not p.exists("natgateways", n + "-a"))
    p.patch("pods", n, {"metadata": {"labels": {EGRESS: None}}})
    wait("the end", lambda: not p.exists("natgateways", n + "-b") and not p.places(ip))
    wait("the finalizer to go", lambda: not p.get("pods", n)["metadata"].get("finalizers"))


@scenario("inbound+egress on same pod")
def both(p, n):
    p.service(n)
    ip = p.pod(n, n, egress=n + "-out")
    p.addressed(n)
    p.gets(n, [ip])
    wait("both", lambda: any(len(at.get(ip, [])) == 2 for at in p.table()["locations"].values()))
    p.patch("pods", n, {"metadata": {"labels": {EGRESS: None}}})
    wait("the way out to end", lambda: not p.exists("natgateways", n + "-out"))
    p.gets(n, [ip])


@scenario("hostNetwork egress")
def host(p, n):
    p.node(60)
    ip = p.pod(n, node=60, egress=n, host_network=True)
    wait("its way out", lambda: p.places(ip) == [ip])


@scenario("50 gateways; 100 egress pods")
def gateways(p, n):
    first = [p.pod(f"{n}-{i}", node=i % 4, egress=f"{n}-{i}") for i in range(50)]
    second = [p.pod(f"{n}-same-{i}", node=i % 4, egress=f"{n}-same") for i in range(100)]
    wait("all of them", lambda: all(ip in json.dumps(p.table()["locations"]) for ip in first + second))


@scenario("200 services")
def two_hundred(p, n):
    names = [f"{n}-{i}" for i in range(200)]
    for name in names:
        p.service(name)
    wait("all addresses", lambda: sum(bool((s["status"].get("loadBalancer") or {}).get("ingress"))
         for s in call("GET", p.path("services"))[1]["items"] if s["metadata"]["name"].startswith(n + "-")) == 200)


# The controller is killed


@scenario("CCM crash stable/creating/deleting (inbound, egress, mixed, repeated); traffic during restart", KILLED)
def crash(p, n):
    rng = random.Random(11)
    p.run()
    p.service("stable")
    ip = p.pod("stable-0", "stable", egress="stable-out")
    address = p.addressed("stable")
    p.gets("stable", [ip])
    for round in range(3):
        names = [f"{n}-{round}-{i}" for i in range(5)]
        for name in names:
            p.service(name)
            p.pod(name, name, egress=name if round % 2 else None)
        time.sleep(rng.uniform(0, 0.5))
        p.kill()
        expect("traffic while nobody is there", p.backends("stable"), [ip])
        p.run()
        for name in names:
            p.addressed(name)
            p.delete("services", name)
            p.delete("pods", name)
        time.sleep(rng.uniform(0, 0.5))
        p.kill()
        p.run()
        wait("all to go", lambda: not any(p.get(kind, name) for name in names for kind in ("services", "pods")))
        expect("the address", p.ip("stable"), address)
    p.gets("stable", [ip])


@scenario("init with 5 added/4 deleted services and gateways; mixed downtime; families kept/reclaimed across downtime", KILLED)
def downtime(p, n):
    p.run()
    uids = {}
    for i in range(6):
        uids[i] = p.service(f"{n}-{i}")
        p.pod(f"{n}-{i}", f"{n}-{i}", egress=f"{n}-out-{i}")
        p.addressed(f"{n}-{i}")
    wait("the gateways", lambda: all(f"{n}-out-{i}" in p.table()["services"] for i in range(6)))
    kept = p.ip(f"{n}-5")
    p.kill()
    for i in range(4):
        p.delete("services", f"{n}-{i}")
        p.delete("pods", f"{n}-{i}")
    for i in range(6, 11):
        p.service(f"{n}-{i}")
        p.pod(f"{n}-{i}", f"{n}-{i}", egress=f"{n}-out-{i}")
    p.patch("pods", f"{n}-4", {"metadata": {"labels": {EGRESS: None}}})
    p.run()
    for i in range(6, 11):
        p.addressed(f"{n}-{i}")
    for i in range(4):
        p.gone(uids[i])
    wait("the lost label's gateway", lambda: not p.exists("natgateways", f"{n}-out-4"))
    wait("its finalizer", lambda: not p.get("pods", f"{n}-4")["metadata"].get("finalizers"))
    expect("both families kept", [p.exists("publicipaddresses", f"{n}-out-5{s}") for s in ("-pip", "-pip-v6")], [True, True])
    expect("the address stays", p.ip(f"{n}-5"), kept)
    expect("families reclaimed", [r for r in p.resources() if f"{n}-out-0" in r], [])


def v4_only(binary):
    """v4-only cluster gets no v6"""
    place = Place(binary, 2, 1)
    try:
        place.run()
        ip = place.pod("out", egress="team")
        wait("its way out", lambda: place.places(ip))
        expect("an IPv6 address", place.exists("publicipaddresses", "team-pip-v6"), False)
        place.clear()
    finally:
        place.stop()


def attempt(name, work):
    start = time.time()
    try:
        work()
        print(f"ok      {name} ({time.time() - start:.1f} s)", flush=True)
        return True
    except Exception as why:
        print(f"FAILED  {name}: {type(why).__name__} {why}", flush=True)
        return False


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    binary = os.path.abspath(arguments.bin)
    chosen = lambda group: [(i, name, f) for i, (name, f) in enumerate(group) if arguments.only in name]
    good = []
    place = Place(binary)
    try:
        place.run()
        with concurrent.futures.ThreadPoolExecutor(6) as pool:
            runs = [pool.submit(attempt, name, lambda f=f, i=i: f(place, f"s{i}")) for i, name, f in chosen(SHARED)]
            good += [run.result() for run in runs]
        good.append(attempt("nothing is left over of all of them", place.clear))
    finally:
        place.stop()
    for i, name, f in chosen(KILLED):
        place = Place(binary, 4, 2, "--latency-ms", "20", "--lro-ms", "40")
        try:
            good.append(attempt(name, lambda: f(place, f"k{i}")))
            good.append(attempt("nothing is left over of it", place.clear))
        finally:
            place.stop()
    if arguments.only in v4_only.__doc__:
        good.append(attempt(v4_only.__doc__, lambda: v4_only(binary)))
    print(f"{sum(good)} of {len(good)} scenarios pass", flush=True)
    sys.exit(0 if all(good) else 1)


if __name__ == "__main__":
    main()
