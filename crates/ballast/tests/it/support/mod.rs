//! Starts the real binary and speaks HTTP to it.
#![allow(dead_code, reason = "each test file uses its part")]

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

/// The binary, with nothing from the environment that could change what it does.
pub fn ballast() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ballast"));
    command.env_clear().env("NO_COLOR", "1");
    command
}

/// Runs it to its end.
pub fn run(words: &[&str]) -> (i32, String, String) {
    outcome(ballast().args(words).output().unwrap())
}

pub fn outcome(output: Output) -> (i32, String, String) {
    let code = output.status.code().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (code, text(output.stdout), text(output.stderr))
}

/// A process that is ended with the test.
pub struct Process {
    child: Child,
    lines: BufReader<Box<dyn Read + Send>>,
}

impl Process {
    pub fn start(words: &[&str]) -> Self {
        let mut command = ballast();
        let mut child =
            command.args(words).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let out = child.stdout.take().unwrap();
        Self { child, lines: BufReader::new(Box::new(out)) }
    }

    /// With the log, which is on standard error.
    pub fn start_logging(words: &[&str]) -> Self {
        let mut command = ballast();
        let mut child =
            command.args(words).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let err = child.stderr.take().unwrap();
        Self { child, lines: BufReader::new(Box::new(err)) }
    }

    /// The next line with this in it.
    pub fn line_with(&mut self, part: &str) -> String {
        let mut seen = String::new();
        loop {
            let mut line = String::new();
            let read = self.lines.read_line(&mut line).unwrap();
            assert!(read > 0, "no line with {part:?} before the end of:\n{seen}");
            if line.contains(part) {
                return line;
            }
            seen.push_str(&line);
        }
    }

    /// What stands after `http://` in the next line that has it.
    pub fn address(&mut self) -> String {
        let line = self.line_with("http://");
        let (_, rest) = line.split_once("http://").unwrap();
        rest.split(|c: char| c.is_whitespace()).next().unwrap().to_owned()
    }

    /// Asks it to end, and gives its exit code.
    pub fn terminate(self) -> i32 {
        self.end_by("-TERM")
    }

    /// As Ctrl-C does.
    pub fn interrupt(self) -> i32 {
        self.end_by("-INT")
    }

    /// As a machine that is switched off does: nothing is said, nothing is finished.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Stands still until it is told to go on.
    pub fn freeze(&self) {
        self.signal("-STOP");
    }

    /// Goes on.
    pub fn thaw(&self) {
        self.signal("-CONT");
    }

    fn signal(&self, signal: &str) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
    }

    fn end_by(mut self, signal: &str) -> i32 {
        self.signal(signal);
        // Whatever it still has to say must not fill the pipe.
        let mut rest = Vec::new();
        let _ = self.lines.read_to_end(&mut rest);
        self.child.wait().unwrap().code().unwrap()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// One request; a body is JSON, or a merge patch where the method is PATCH.
pub fn http(address: &str, method: &str, path: &str, body: Option<&Value>) -> (u16, Value) {
    let (code, text) = http_text(address, method, path, body);
    (code, serde_json::from_str(&text).unwrap_or(Value::Null))
}

pub fn http_text(address: &str, method: &str, path: &str, body: Option<&Value>) -> (u16, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    let body = body.map(ToString::to_string).unwrap_or_default();
    let kind = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
    let length = body.len();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\
         content-type: {kind}\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let code = head.split(' ').nth(1).unwrap().parse().unwrap();
    (code, body.to_owned())
}

/// Looks until it finds something.
pub fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    for _ in 0..1_500 {
        if let Some(found) = look() {
            return found;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("{what} did not come about");
}

/// Waits until a controller has written everything.
pub fn wait_until_programmed(pages: &str) {
    wait_for("the end of the writes", || {
        let (_, status) = http(pages, "GET", "/status", None);
        let all = status["services"].as_array()?.clone();
        all.iter().all(|s| s["state"] == "programmed").then_some(())
    });
}

const GROUP: &str = "/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/rg";
const BALANCER: &str = "loadBalancers/kubernetes";

fn network_path(kind_and_name: &str) -> String {
    format!("{GROUP}/providers/Microsoft.Network/{kind_and_name}?api-version=2024-05-01")
}

/// The name of a node of the sample.
pub fn node_name(number: u32) -> String {
    format!("vmss{number:06}")
}

/// The address of a node of the sample.
pub fn node_address(number: u32) -> String {
    format!("10.224.0.{}", 4 + number)
}

/// An emulated cluster and an emulated Azure.
pub struct Emulators {
    pub kube: String,
    pub azure: String,
    folder: tempfile::TempDir,
    processes: Vec<Process>,
}

impl Emulators {
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// With further words for the emulated Azure.
    pub fn start_with(azure_words: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).display().to_string();
        let mut kube = Process::start(&[
            "kube-emulator",
            "--listen",
            "127.0.0.1:0",
            "--write-kubeconfig",
            &path("kubeconfig"),
        ]);
        let config = path("azure.json");
        let listen = ["--listen", "127.0.0.1:0", "--write-cloud-config", &config];
        let mut azure = Process::start(&[&["azure-emulator"], &listen[..], azure_words].concat());
        let (kube_at, azure_at) = (kube.address(), azure.address());
        let started = Self { kube: kube_at, azure: azure_at, folder, processes: vec![kube, azure] };
        started.create_node(0);
        started
    }

    /// The node on this machine of the sample.
    pub fn create_node(&self, number: u32) {
        self.create_node_of("vmss", number);
    }

    /// A node that says it is of a scale set.
    pub fn create_node_of(&self, set: &str, number: u32) {
        self.create_node_on(&node_name(number), &node_address(number), set, number);
    }

    /// A node on a machine of a scale set.
    pub fn create_node_on(&self, name: &str, address: &str, set: &str, machine: u32) {
        let sets = "Microsoft.Compute/virtualMachineScaleSets";
        let provider = format!("azure://{GROUP}/providers/{sets}/{set}/virtualMachines/{machine}");
        let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name},
            "spec": {"providerID": provider}});
        self.create("/api/v1/nodes", &node);
        let status = json!({"status": {"addresses": [{"type": "InternalIP", "address": address}]}});
        let path = format!("/api/v1/nodes/{name}/status");
        assert_eq!(http(&self.kube, "PATCH", &path, Some(&status)).0, 200);
    }

    /// A new object of the cluster.
    pub fn create(&self, path: &str, object: &Value) {
        let (code, answer) = http(&self.kube, "POST", path, Some(object));
        assert_eq!(code, 201, "{answer}");
    }

    /// A slice with one Pod that is ready.
    pub fn create_slice(&self, name: &str, service: &str, address: &str, node: &str) {
        let slice = json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
            "metadata": {"name": name, "namespace": "default",
                "labels": {"kubernetes.io/service-name": service}},
            "addressType": "IPv4", "endpoints": [{"addresses": [address], "nodeName": node,
                "conditions": {"ready": true}}]});
        self.create("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices", &slice);
    }

    /// A resource of the network as another client of Azure reads it, and the answer's code.
    pub fn read(&self, kind_and_name: &str) -> (u16, Value) {
        http(&self.azure, "GET", &network_path(kind_and_name), None)
    }

    /// Another client of Azure writes a resource of the network.
    pub fn write(&self, kind_and_name: &str, body: &Value) {
        let (code, answer) = http(&self.azure, "PUT", &network_path(kind_and_name), Some(body));
        assert!(code < 300, "{answer}");
    }

    pub fn balancer(&self) -> Value {
        self.read(BALANCER).1
    }

    /// Another client of Azure takes all rules away.
    pub fn delete_rules(&self) {
        let mut body = self.balancer();
        body["properties"]["loadBalancingRules"] = json!([]);
        self.write(BALANCER, &body);
    }

    /// How the emulated Azure is to answer calls from now on.
    pub fn order(&self, rules: &Value) {
        assert_eq!(http(&self.azure, "POST", "/_/fail", Some(rules)).0, 200);
    }

    /// All calls that Azure has had.
    pub fn azure_calls(&self) -> Vec<Value> {
        let calls = http(&self.azure, "GET", "/_/calls", None).1;
        calls.as_array().expect("the emulator answers with a list").clone()
    }

    /// All that stands in Azure.
    pub fn resources(&self) -> Vec<Value> {
        let all = http(&self.azure, "GET", "/_/state", None).1;
        all.as_array().expect("the emulator answers with a list").clone()
    }

    /// Tells the data path where backends really are.
    pub fn place(&self, hosts: &Value) {
        let body = json!({ "hosts": hosts });
        let (code, answer) = http(&self.azure, "POST", "/_/data-path/hosts", Some(&body));
        assert_eq!(code, 200, "{answer}");
    }

    /// What the data path leads where.
    pub fn data_path(&self) -> Value {
        http(&self.azure, "GET", "/_/data-path", None).1
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A command with the flags that name both.
    pub fn words(&self, words: &[&str]) -> Vec<String> {
        let mut all: Vec<String> = words.iter().map(ToString::to_string).collect();
        for (flag, name) in [("--kubeconfig", "kubeconfig"), ("--cloud-config", "azure.json")] {
            all.extend([flag.to_owned(), self.path(name).display().to_string()]);
        }
        all
    }

    pub fn run(&self, words: &[&str]) -> (i32, String, String) {
        outcome(ballast().args(self.words(words)).output().unwrap())
    }

    /// The kubeconfig of a proxy before the emulated API server. The proxy answers GETs of paths
    /// with this prefix with `status`.
    pub fn refusing(&self, path: &'static str, status: u16) -> String {
        let text = std::fs::read_to_string(self.path("kubeconfig")).unwrap();
        let address = refusing(self.kube.clone(), path, status);
        let front = self.path(&format!("refusing-{status}")).display().to_string();
        std::fs::write(&front, text.replace(&self.kube, &address)).unwrap();
        front
    }

    pub fn controller(&self) -> (Process, String) {
        self.controller_with(&[])
    }

    /// A controller with more words, and where it serves its pages.
    pub fn controller_with(&self, more: &[&str]) -> (Process, String) {
        let words = [&["run", "--leader-elect=false", "--port", "0"], more].concat();
        let words = self.words(&words);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let mut process = Process::start_logging(&words);
        let address = process.address();
        (process, address)
    }

    /// Adds keys to the cloud config.
    pub fn configure(&self, more: &Value) {
        let path = self.path("azure.json");
        let mut config: Value =
            serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        for (key, value) in more.as_object().unwrap() {
            config[key] = value.clone();
        }
        std::fs::write(path, config.to_string()).unwrap();
    }

    pub fn create_service(&self, name: &str) {
        let service = json!({"apiVersion": "v1", "kind": "Service",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"type": "LoadBalancer", "ports": [{"port": 80}]}});
        self.create("/api/v1/namespaces/default/services", &service);
    }

    /// A Service that gets its address, which this gives.
    pub fn serve(&self, name: &str) -> String {
        self.create_service(name);
        self.address_of(name)
    }

    pub fn delete_service(&self, name: &str) {
        let path = format!("/api/v1/namespaces/default/services/{name}");
        assert_eq!(http(&self.kube, "DELETE", &path, None).0, 200);
    }

    pub fn patch_service(&self, name: &str, patch: &Value) {
        let path = format!("/api/v1/namespaces/default/services/{name}");
        assert_eq!(http(&self.kube, "PATCH", &path, Some(patch)).0, 200);
    }

    pub fn address_of(&self, name: &str) -> String {
        let path = format!("/api/v1/namespaces/default/services/{name}");
        wait_for("the Service's address", || {
            let (_, service) = http(&self.kube, "GET", &path, None);
            let ip = service.pointer("/status/loadBalancer/ingress/0/ip")?;
            Some(ip.as_str()?.to_owned())
        })
    }
}

fn refusing(kube: String, refused: &'static str, status: u16) -> String {
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for mut stream in socket.incoming().flatten() {
            let kube = kube.clone();
            std::thread::spawn(move || {
                let (mut head, mut byte) = (Vec::new(), [0]);
                while !head.ends_with(b"\r\n\r\n") && stream.read_exact(&mut byte).is_ok() {
                    head.extend(byte);
                }
                let head = String::from_utf8_lossy(&head).into_owned();
                let path = head.split(' ').nth(1).unwrap_or("/");
                let refusal = json!({"kind": "Status", "apiVersion": "v1", "metadata": {},
                    "status": "Failure", "message": "on order", "code": status});
                let (status, body) = match path.starts_with(refused) {
                    true => (status, refusal.to_string()),
                    false => http_text(&kube, "GET", path, None),
                };
                let length = body.len();
                let _ = write!(
                    stream,
                    "HTTP/1.1 {status} A\r\ncontent-type: application/json\r\n\
                     connection: close\r\ncontent-length: {length}\r\n\r\n{body}"
                );
            });
        }
    });
    address
}
