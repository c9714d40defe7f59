"""Both emulators and the controller, as processes."""

import json
import re
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def http(method, url, body=None):
    kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": kind}, method=method)
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except urllib.error.URLError:
        return 0, ""


def kind_of(path):
    namespace, *rest = path.rsplit("/providers/", 1)[1].split("/")
    types = [rest[0], rest[2]] if rest[:1] == ["locations"] else rest[::2]
    return "/".join([namespace, *types])


def wait_for(what, look):
    for _ in range(1500):
        found = look()
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError(f"{what} did not come about")


class Place:
    """An emulated cluster and an emulated Azure in a folder."""

    def __init__(self, binary, folder, gateway):
        self.binary, self.folder, self.processes = binary, folder, []
        self.kubeconfig, self.config = folder / "kubeconfig", folder / "azure.json"
        self.kube = self.serve("kube-emulator", "--write-kubeconfig", self.kubeconfig)
        extra = ["--service-gateway"] if gateway else []
        self.azure = self.serve("azure-emulator", "--write-cloud-config", self.config, *extra)
        for index in range(2):
            set_id = ("/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/rg/providers"
                      "/Microsoft.Compute/virtualMachineScaleSets/vmss")
            address = {"type": "InternalIP", "address": f"10.224.0.{4 + index}"}
            self.kubernetes("POST", "/api/v1/nodes", {
                "apiVersion": "v1", "kind": "Node", "metadata": {"name": f"vmss00000{index}"},
                "spec": {"providerID": f"azure://{set_id}/virtualMachines/{index}"},
                "status": {"addresses": [address]}})

    def serve(self, *words):
        process = subprocess.Popen(
            [self.binary, *map(str, words), "--listen", "127.0.0.1:0"],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.processes.append(process)
        for line in process.stdout:
            found = re.search(r"http://127\.0\.0\.1:\d+", line)
            if found:
                return found.group()
        raise AssertionError(f"ballast {words[0]} did not start")

    def start(self, words, env):
        log = open(self.folder / "controller.log", "w")
        process = subprocess.Popen([self.binary, *words], env=env, stdout=log, stderr=log)
        self.processes.append(process)
        return process

    def kubernetes(self, method, path, body=None):
        code, text = http(method, self.kube + path, body)
        if code >= 400:
            raise AssertionError(f"{method} {path}: {code} {text}")
        return json.loads(text)

    def there(self, path):
        return http("GET", self.kube + path)[0] == 200

    def calls(self):
        """The controller's calls to Kubernetes."""
        calls = self.kubernetes("GET", "/_/calls")
        return [call for call in calls if call["userAgent"].startswith("ballast/")]

    def azure_calls(self):
        """Method, namespace and type of every call to Azure."""
        calls = json.loads(http("GET", self.azure + "/_/calls")[1])
        return {(call["method"], kind_of(call["path"])) for call in calls}

    def stop(self, process):
        process.send_signal(signal.SIGTERM)
        self.processes.remove(process)
        return process.wait()

    def end(self):
        for process in reversed(self.processes):
            process.kill()
            process.wait()
