#!/usr/bin/env python3
"""One namespace attacks, two hundred Services of others must not notice.

    hostile.py --bin target/release/ballast

Runs the real binary between the emulators twice: with the neighbours alone, and with a tenant beside
them who may create and edit Services in a namespace of its own and open connections to the
controller's listener, and nothing else. Fails unless

- every neighbour has its address within twice the time that it took without the attacker,
- nothing of another owner or another cluster in Azure is changed,
- /livez answers 200 throughout,
- the controller's memory stays below 128 MB.

Python's standard library is all it needs. Load goes to loopback only and is bounded.
"""
import argparse, concurrent.futures, json, os, socket, sys, threading, time
import urllib.request

from fifty import Place, call, fail, free_port

PREFIX = "service.beta.kubernetes.io/"
NEIGHBOURS, TEAMS = 200, 10
MEMORY_KB = 128 * 1024
VERSION = "?api-version=2024-05-01"


class Stage(Place):
    def __init__(self, binary):
        super().__init__(binary, "--latency-ms", "100", "--lro-ms", "500")
        self.port = free_port()
        config = json.load(open(self.config))
        self.subscription, self.group = config["subscriptionId"], config["resourceGroup"]
        for namespace in ["evil", *(f"team-{i}" for i in range(TEAMS))]:
            call("POST", self.kube + "/api/v1/namespaces",
                 {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})

    def go(self):
        self.controller = self.start("run", "--kubeconfig", self.kubeconfig, "--cloud-config", self.config,
                                     "--leader-elect=false", "--port", str(self.port))
        self.wait(lambda: self.answers(f"http://127.0.0.1:{self.port}/readyz"))

    def service(self, namespace, name, annotations=None, ports=None, **spec):
        body = {"apiVersion": "v1", "kind": "Service", "metadata": {
                    "name": name, "annotations": {PREFIX + k: v for k, v in (annotations or {}).items()}},
                "spec": {"type": "LoadBalancer", "selector": {"app": name},
                         "ports": ports or [{"name": "http", "port": 80}], **spec}}
        code, answer = call("POST", f"{self.kube}/api/v1/namespaces/{namespace}/services", body)
        if code != 201:
            fail(f"creating Service {namespace}/{name}: {code} {str(answer)[:300]}")

    def annotate(self, namespace, name, **annotations):
        patch = {"metadata": {"annotations": {PREFIX + k.replace("_", "-"): v for k, v in annotations.items()}}}
        call("PATCH", f"{self.kube}/api/v1/namespaces/{namespace}/services/{name}", patch)

    def neighbours(self):
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            list(pool.map(lambda i: self.service(f"team-{i % TEAMS}", f"web-{i:03}"), range(NEIGHBOURS)))

    def programmed(self):
        def has(service):
            return bool((service["status"].get("loadBalancer") or {}).get("ingress"))
        teams = (s for s in self.services() if s["metadata"]["namespace"].startswith("team-"))
        return sum(map(has, teams))

    def until_programmed(self, since):
        self.wait(lambda: self.programmed() == NEIGHBOURS, 240)
        return time.time() - since

    def put(self, path, body):
        code, answer = call("PUT", self.azure + path + VERSION, body)
        if code >= 300:
            fail(f"PUT {path}: {code} {answer}")

    def get(self, path):
        code, answer = call("GET", self.azure + path + VERSION)
        if code != 200:
            fail(f"GET {path}: {code}: it is gone")
        return answer

    def ip(self, group, name):
        return (f"/subscriptions/{self.subscription}/resourceGroups/{group}"
                f"/providers/Microsoft.Network/publicIPAddresses/{name}")

    def peak_kb(self):
        lines = open(f"/proc/{self.controller.pid}/status").read().splitlines()
        return int(next(line.split()[1] for line in lines if line.startswith("VmHWM")))


class Liveness(threading.Thread):
    """Asks /livez ten times a second."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self.url, self.failures, self.asked, self.ended = f"http://127.0.0.1:{port}/livez", [], 0, False
        self.slowest_s = 0.0

    def run(self):
        while not self.ended:
            start = time.time()
            try:
                urllib.request.urlopen(self.url, timeout=5).read()
            except OSError as e:
                self.failures.append(str(e))
            self.asked += 1
            self.slowest_s = max(self.slowest_s, time.time() - start)
            time.sleep(0.1)


def public_ip(label, tags):
    return {"location": "eastus", "sku": {"name": "Standard"}, "tags": tags,
            "properties": {"publicIPAllocationMethod": "Static", "dnsSettings": {"domainNameLabel": label}}}


def strangers(stage):
    """What the attacker names and must not change: another owner's public IP, and one of another
    cluster of the same (default) name in a group of its own."""
    netops = stage.ip(stage.group, "netops")
    stage.put(f"/subscriptions/{stage.subscription}/resourceGroups/other-cluster", {"location": "eastus"})
    stage.put(netops, public_ip("netops", {"owner": "netops", "cost": "42"}))
    theirs = stage.ip("other-cluster", "kubernetes-afeed0000000000000000000000000000")
    stage.put(theirs, public_ip("theirs", {"k8s-azure-cluster-name": "kubernetes", "k8s-azure-service": "default/web"}))
    return {path: stage.get(path) for path in (netops, theirs)}


def attack(stage, victim):
    """Every row of the tenancy review that node-based load balancers can show."""
    junk = ",".join("a" * (1 + i % 5) + str(i) for i in range(25_000))[:187_000]
    for i in range(3):
        stage.service("evil", f"junk-{i}", {"azure-allowed-ip-ranges": junk})
    ports = [{"name": f"p{i}", "port": 1000 + i} for i in range(1000)]
    tags = ",".join(f"k{i}=v" for i in range(12_000))
    stage.service("evil", "tags", {"azure-pip-tags": tags}, ports)
    stage.service("evil", "deny", {"azure-deny-all-except-load-balancer-source-ranges": "true",
                                   "azure-disable-load-balancer-floating-ip": "true"},
                  loadBalancerSourceRanges=["203.0.113.0/24"])
    stage.service("evil", "group", {"azure-load-balancer-resource-group": "other-cluster",
                                    "azure-load-balancer-tcp-idle-timeout": "soon"})
    stage.service("evil", "hijack", {"azure-additional-public-ips":
                                     f"8.8.8.8,169.254.169.254,10.224.0.4,0.0.0.0,{victim}"})
    stage.service("evil", "label", {"azure-pip-name": "netops", "azure-dns-label-name": "",
                                    "azure-pip-tags": "owner=evil,k8s-azure-service=evil/label"})
    stage.service("evil", "escape", {"azure-pip-tags": "\x1b[2Jk=v",
                                     "azure-load-balancer-health-probe-request-path": "\x1b]0;owned\x07"})
    ranges = [f"100.{64 + i // 250}.{i % 250}.0/24" for i in range(3_999)]
    stage.service("evil", "ranges", {"azure-allowed-ip-ranges": ",".join(ranges)})


def toggle(stage, ended):
    turn = 0
    while not ended.is_set():
        turn += 1
        stage.annotate("evil", "group", azure_load_balancer_tcp_idle_timeout=f"soon-{turn}")
        ended.wait(0.5)


def half_requests(port, ended):
    """At most 1,500 connections with a request that never ends."""
    kept = []
    while not ended.is_set() and len(kept) < 1_500:
        try:
            s = socket.create_connection(("127.0.0.1", port), timeout=1)
            s.sendall(b"GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\nX-A: " + b"a" * 4_000)
            kept.append(s)
        except OSError:
            pass
        ended.wait(0.01)
    ended.wait(240)
    for s in kept:
        s.close()


def alone(binary):
    stage = Stage(binary)
    try:
        stage.go()
        start = time.time()
        stage.neighbours()
        return stage.until_programmed(start)
    finally:
        stage.stop()


def attacked(binary, alone_s):
    stage, ended = Stage(binary), threading.Event()
    try:
        before = strangers(stage)
        stage.service("team-0", "victim")
        stage.go()
        stage.wait(lambda: stage.programmed() == 1)
        victim = next(s for s in stage.services() if s["metadata"]["name"] == "victim")
        address = victim["status"]["loadBalancer"]["ingress"][0]["ip"]
        call("DELETE", f"{stage.kube}/api/v1/namespaces/team-0/services/victim")
        stage.wait(lambda: not stage.services())
        liveness = Liveness(stage.port)
        liveness.start()
        attack(stage, address)
        for target, arguments in ((toggle, (stage, ended)), (half_requests, (stage.port, ended))):
            threading.Thread(target=target, args=arguments, daemon=True).start()
        start = time.time()
        stage.neighbours()
        took_s = stage.until_programmed(start)
        liveness.ended = True
        ended.set()
        peak_kb = stage.peak_kb()
        after = {path: stage.get(path) for path in before}
    finally:
        ended.set()
        stage.stop()
    print(f"200 neighbours: {alone_s:.1f} s alone, {took_s:.1f} s beside the attacker; "
          f"peak memory {peak_kb // 1024} MiB; /livez {liveness.asked} times, slowest {liveness.slowest_s:.2f} s, "
          f"{len(liveness.failures)} failures", flush=True)
    if took_s > 2 * alone_s:
        fail(f"neighbours took {took_s:.1f} s, more than twice {alone_s:.1f} s")
    if peak_kb > MEMORY_KB:
        fail(f"the controller used {peak_kb} KiB of {MEMORY_KB}")
    if liveness.failures:
        fail(f"/livez failed {len(liveness.failures)} times, first: {liveness.failures[0]}")
    for path, was in before.items():
        is_now = after[path]
        for part in ("tags", "properties"):
            kept = {k: v for k, v in (was.get(part) or {}).items() if k not in ("ipConfiguration", "provisioningState")}
            now = {k: v for k, v in (is_now.get(part) or {}).items() if k not in ("ipConfiguration", "provisioningState")}
            if kept != now:
                fail(f"{path}: {part} were {kept}, are {now}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True)
    binary = os.path.abspath(parser.parse_args().bin)
    attacked(binary, alone(binary))
