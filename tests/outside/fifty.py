#!/usr/bin/env python3
"""Fifty Services through the real binary: time and writes, then kill -9 in the middle.

    fifty.py --bin target/release/ballast [--kills 20]

Starts `azure-emulator`, `kube-emulator` and `run` on loopback, and talks to them over HTTP. Python's
standard library is all it needs. Exits with 1 and says why when something is not as promised.
"""
import argparse, concurrent.futures, json, os, random, re, signal, socket, subprocess, sys, tempfile, time
import urllib.error, urllib.request


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def call(method, url, body=None):
    kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": kind, "Accept": "application/json"}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.status, json.loads(answer.read() or b"null")
    except urllib.error.HTTPError as e:
        return e.code, json.loads(e.read() or b"null")


class Place:
    """Both emulators; the controller comes and goes."""

    def __init__(self, binary, *azure_flags):
        self.binary, self.dir, self.running = binary, tempfile.mkdtemp(prefix="fifty-"), []
        kube_port, azure_port = free_port(), free_port()
        self.kubeconfig = os.path.join(self.dir, "kubeconfig")
        self.config = os.path.join(self.dir, "azure.json")
        self.azure = f"http://127.0.0.1:{azure_port}"
        self.start("kube-emulator", "--listen", f"127.0.0.1:{kube_port}", "--write-kubeconfig", self.kubeconfig)
        self.start("azure-emulator", "--listen", f"127.0.0.1:{azure_port}", "--estate", "sample",
                   "--write-cloud-config", self.config, *azure_flags)
        self.wait(lambda: os.path.exists(self.kubeconfig) and os.path.exists(self.config))
        self.kube = re.search(r"server:\s*\"?([^\s\",}]+)", open(self.kubeconfig).read()).group(1)
        self.wait(lambda: self.answers(self.kube + "/readyz") and self.answers(self.azure + "/_/counts"))
        for i in range(3):
            call("POST", self.kube + "/api/v1/nodes", {
                "apiVersion": "v1", "kind": "Node", "metadata": {"name": f"vmss00000{i}"},
                "status": {"addresses": [{"type": "InternalIP", "address": f"10.224.0.{4 + i}"}]}})
        self.controller = None

    def start(self, *command):
        log = open(os.path.join(self.dir, command[0] + ".log"), "ab")
        process = subprocess.Popen([self.binary, *command], stdout=log, stderr=log)
        self.running.append(process)
        return process

    def run(self):
        self.controller = self.start("run", "--kubeconfig", self.kubeconfig, "--cloud-config", self.config,
                                     "--leader-elect=false")

    def kill(self, with_signal):
        self.controller.send_signal(with_signal)
        self.controller.wait()
        self.running.remove(self.controller)

    def stop(self):
        for process in self.running:
            process.kill()
            process.wait()

    def answers(self, url):
        try:
            urllib.request.urlopen(url, timeout=2).read()
            return True
        except OSError:
            return False

    def wait(self, done, seconds=60):
        end = time.time() + seconds
        while not done():
            if time.time() > end:
                fail(f"gave up waiting after {seconds} s; logs are in {self.dir}")
            time.sleep(0.01)

    def each(self, act):
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            list(pool.map(act, range(50)))

    def create(self, i):
        code, _ = call("POST", self.kube + "/api/v1/namespaces/default/services", {
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": f"web-{i:02}"},
            "spec": {"type": "LoadBalancer", "selector": {"app": "web"}, "ports": [{"port": 80}]}})
        if code != 201:
            fail(f"creating Service {i}: {code}")

    def delete(self, i):
        call("DELETE", self.kube + f"/api/v1/namespaces/default/services/web-{i:02}")

    def services(self):
        items = call("GET", self.kube + "/api/v1/services")[1]["items"]
        return [s for s in items if s["spec"].get("type") == "LoadBalancer"]

    def addressed(self):
        return sum(bool((s["status"].get("loadBalancer") or {}).get("ingress")) for s in self.services())

    def left(self):
        """What is in Azure on account of Services."""
        state = call("GET", self.azure + "/_/state")[1]
        out = [r["id"] for r in state if r["type"].lower().endswith("/loadbalancers")]
        for r in state:
            if r["type"].lower().endswith("/publicipaddresses") and (r.get("tags") or {}).get("k8s-azure-service"):
                out.append(r["id"])
            if r["type"].lower().endswith("/networksecuritygroups"):
                out += [x["name"] for x in r["properties"].get("securityRules") or []]
        return out

    def writes(self):
        return sum(c["method"] != "GET" for c in call("GET", self.azure + "/_/calls")[1])


def fail(why):
    print("FAILED:", why, flush=True)
    sys.exit(1)


def together(binary, name, *flags):
    place = Place(binary, *flags)
    try:
        place.run()
        time.sleep(1)
        call("POST", place.azure + "/_/reset")
        start = time.time()
        place.each(place.create)
        place.wait(lambda: place.addressed() == 50)
        print(f"{name}: 50 Services have addresses after {time.time() - start:.2f} s, {place.writes()} writes", flush=True)
    finally:
        place.stop()


def killed(binary, kills):
    rng = random.Random(7)
    place = Place(binary, "--latency-ms", "20", "--lro-ms", "40")
    try:
        for n in range(kills):
            place.run()
            place.each(place.create)
            time.sleep(rng.uniform(0, 0.4))
            place.kill(signal.SIGKILL)
            place.run()
            place.wait(lambda: place.addressed() == 50)
            place.each(place.delete)
            time.sleep(rng.uniform(0, 0.4))
            place.kill(signal.SIGKILL)
            place.run()
            place.wait(lambda: not place.services())
            place.wait(lambda: not place.left())
            place.kill(signal.SIGTERM)
        print(f"kill -9: {kills} times while creating and {kills} while deleting, nothing left over", flush=True)
    finally:
        place.stop()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--kills", type=int, default=20)
    arguments = parser.parse_args()
    binary = os.path.abspath(arguments.bin)
    together(binary, "no latency")
    together(binary, "100 ms a call", "--latency-ms", "100")
    together(binary, "100 ms a call, operations of 500 ms", "--latency-ms", "100", "--lro-ms", "500")
    killed(binary, arguments.kills)
