//! What is wrong is told in one message, with an exit code, and without a trace of the inside.

use crate::support::{Emulators, Process, ballast, http_text, outcome, run};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpListener;

const SECRET: &str = "hunter2-hunter2";

fn config() -> Value {
    json!({"subscriptionId": "sub", "resourceGroup": "rg", "location": "eastus",
        "vnetName": "vnet", "subnetName": "nodes", "securityGroupName": "nsg",
        "tenantId": "tenant", "aadClientId": "client", "aadClientSecret": SECRET,
        "loadBalancerSku": "standard", "loadBalancerBackendPoolConfigurationType": "nodeIP"})
}

fn told(words: &[&str], code: i32, parts: &[&str]) {
    let (seen, out, err) = run(words);
    assert_eq!(seen, code, "{words:?}: {out}{err}");
    for part in parts {
        assert!(err.contains(part), "{words:?}: {part:?} is missing in:\n{err}");
    }
    let whole = format!("{out}{err}");
    for bad in ["panicked", "stack backtrace", "RUST_BACKTRACE", SECRET] {
        assert!(!whole.contains(bad), "{words:?}: {bad:?} is in:\n{whole}");
    }
}

/// A folder with a cloud config.
struct Folder(tempfile::TempDir);

impl Folder {
    fn with(config: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("azure.json"), config).unwrap();
        Self(folder)
    }

    /// Writes a kubeconfig; the flags that name it and the cloud config.
    fn flags(&self, server: &str, user: &str) -> [String; 2] {
        let kubeconfig = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: a\n\
             clusters: [{{name: a, cluster: {{server: '{server}'}}}}]\n\
             contexts: [{{name: a, context: {{cluster: a, user: a}}}}]\n\
             users: [{{name: a, user: {{{user}}}}}]\n"
        );
        std::fs::write(self.path("kubeconfig"), kubeconfig).unwrap();
        [("cloud-config", "azure.json"), ("kubeconfig", "kubeconfig")]
            .map(|(flag, name)| format!("--{flag}={}", self.path(name)))
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).display().to_string()
    }
}

/// A program that reads the log gets the reason of the end in the form of all other lines.
#[test]
fn with_a_log_of_json_the_last_error_is_json_too() {
    let words = ["run", "--port=0", "--log-format=json", "--cloud-config=/nowhere"];
    let (code, out, err) = run(&words);
    assert_eq!((code, out.as_str()), (64, ""), "{err}");
    let lines: Vec<Value> = err.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let last = lines.last().unwrap();
    assert_eq!((&last["level"], &last["exit_code"]), (&json!("ERROR"), &json!(64)), "{last}");
    assert!(last["message"].as_str().unwrap().contains("/nowhere"), "{last}");
}

/// There is no cluster to read the Secret from.
#[test]
fn a_secret_with_the_cloud_config_needs_a_cluster() {
    let named = ["plan", "-f", "/dev/null", "--cloud-config-secret-name=azure"];
    told(&named, 64, &["--cloud-config-secret-name", "Secret of a cluster", "--cloud-config FILE"]);
    // `lint` reads none: it has no such option.
    let (code, _, err) = run(&["lint", "-f", "/dev/null", "--cloud-config-secret-name=azure"]);
    assert_eq!(code, 64, "{err}");
    assert!(err.contains("unexpected argument '--cloud-config-secret-name'"), "{err}");
}

#[test]
fn a_cloud_config_that_is_absent_broken_or_wrong_is_64() {
    told(&["run", "--port=0"], 64, &["there is no cloud config", "--cloud-config"]);
    told(&["run", "--port=0", "--cloud-config=/nowhere"], 64, &["/nowhere", "No such file"]);
    let broken = Folder::with("{\"subscriptionId\": ");
    let flag = format!("--cloud-config={}", broken.path("azure.json"));
    told(&["run", "--port=0", &flag], 64, &["azure.json", "JSON or YAML"]);
    let mut without = config();
    without.as_object_mut().unwrap().remove("subscriptionId");
    without["loadBalancerSku"] = json!("premium");
    let wrong = Folder::with(&without.to_string());
    let flag = format!("--cloud-config={}", wrong.path("azure.json"));
    for command in ["run", "plan"] {
        let parts = ["subscriptionId", "loadBalancerSku", "premium", "standard"];
        let words: Vec<&str> = match command {
            "run" => vec!["run", "--port=0", &flag],
            _ => vec!["plan", &flag],
        };
        told(&words, 64, &parts);
    }
}

#[test]
fn wrong_flags_are_64_and_help_is_0() {
    told(&["frob"], 64, &["frob"]);
    told(&["plan", "--output", "xml"], 64, &["xml", "text", "json"]);
    told(&["run", "--leader-elect-lease-duration", "soon"], 64, &["soon"]);
    // Nothing is deleted on a supposition.
    for supposed in ["--as-if=web.yaml", "--as-if-deleted=web"] {
        told(&["orphans", "--delete", supposed], 64, &["'--delete' cannot be used with"]);
    }
    let (code, out, _) = run(&["--help"]);
    assert!(code == 0 && out.contains("Exit codes:"), "{out}");
    let (code, out, _) = run(&["run", "--help"]);
    assert!(code == 0 && out.contains("--leader-elect"), "{out}");
}

#[test]
fn manifests_and_snapshots_that_cannot_be_used_are_65() {
    let folder = Folder::with(&config().to_string());
    let flag = format!("--cloud-config={}", folder.path("azure.json"));
    std::fs::write(folder.path("bad.yaml"), "kind: [Service").unwrap();
    told(&["plan", &flag, "-f", &folder.path("bad.yaml")], 65, &["bad.yaml", "YAML"]);
    let refused = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\n\
                   spec: {type: LoadBalancer, ports: [{port: 70000}]}\n";
    std::fs::write(folder.path("refused.yaml"), refused).unwrap();
    told(&["plan", &flag, "-f", &folder.path("refused.yaml")], 65, &["web", "port"]);
    std::fs::write(folder.path("none.yaml"), "").unwrap();
    std::fs::write(folder.path("estate.json"), "{}").unwrap();
    let (none, estate) = (folder.path("none.yaml"), folder.path("estate.json"));
    told(&["plan", &flag, "-f", &none, "--azure", &estate], 65, &["estate.json", "list"]);
}

#[test]
fn an_unreachable_cluster_and_an_unreachable_azure_are_69_for_plan() {
    let mut there = config();
    there["resourceManagerEndpoint"] = json!("http://127.0.0.1:1");
    let folder = Folder::with(&there.to_string());
    let [flag, cluster] = folder.flags("http://127.0.0.1:1", "");
    told(&["plan", &flag, &cluster], 69, &["API server", "refused"]);
    told(&["plan", &flag, "--kubeconfig=/nowhere"], 64, &["/nowhere", "kubeconfig"]);

    let emulators = Emulators::start();
    emulators.create_service("web");
    let cluster = format!("--kubeconfig={}", emulators.path("kubeconfig").display());
    told(&["plan", &flag, &cluster], 69, &["GET loadBalancers", "127.0.0.1:1", "--timeout"]);
}

#[test]
fn run_takes_the_cluster_of_kubeconfig_from_the_environment() {
    let folder = Folder::with(&config().to_string());
    let flag = format!("--cloud-config={}", folder.path("azure.json"));
    let with = |variable: &str| {
        let mut command = ballast();
        command.args(["run", "--port=0", &flag]).env("KUBECONFIG", variable);
        outcome(command.output().unwrap())
    };
    let (code, _, err) = with("/nowhere/kubeconfig");
    assert!(code == 64 && err.contains("/nowhere/kubeconfig"), "{code}: {err}");
    let (code, _, err) = with("");
    assert!(code == 64 && err.contains("set KUBECONFIG, or run in a pod"), "{code}: {err}");
}

#[test]
fn plain_http_to_an_api_server_on_another_machine_is_refused() {
    let folder = Folder::with(&config().to_string());
    let [flag, cluster] = folder.flags("http://192.0.2.1:8080", "token: hunter2-hunter2");
    told(&["plan", &flag, &cluster], 64, &["http://192.0.2.1:8080", "plain HTTP", "https"]);
}

#[test]
fn run_waits_for_a_cluster_and_says_so() {
    let mut there = config();
    there["resourceManagerEndpoint"] = json!("http://127.0.0.1:1");
    let folder = Folder::with(&there.to_string());
    let [flag, cluster] = folder.flags("http://127.0.0.1:1", "");
    let mut process = Process::start_logging(&["run", "--port=0", &flag, &cluster]);
    let pages = process.address();
    process.line_with("not started yet");
    let (code, text) = http_text(&pages, "GET", "/readyz", None);
    assert_eq!(code, 503, "{text}");
    assert_eq!(text, "the Kubernetes API cannot be reached\n");
    let (_, text) = http_text(&pages, "GET", "/status", None);
    assert!(text.contains("cannot read /version from the API server"), "{text}");
    assert_eq!(http_text(&pages, "GET", "/livez", None).0, 200);
    assert_eq!(process.terminate(), 0);
}

#[test]
fn a_port_in_use_is_73_where_it_was_asked_for() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let folder = Folder::with(&config().to_string());
    let flag = format!("--cloud-config={}", folder.path("azure.json"));
    let asked = format!("--port={port}");
    told(&["run", &flag, &asked], 73, &[&port.to_string(), "in use", "--port"]);
    let listen = format!("127.0.0.1:{port}");
    told(&["kube-emulator", "--listen", &listen], 73, &[&listen, "in use", "--listen"]);
    told(&["up", "--kube-port", &port.to_string()], 73, &["in use", "--kube-port"]);
}

#[test]
fn a_rejected_credential_is_77_and_not_printed() {
    let login = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = login.local_addr().unwrap();
    std::thread::spawn(move || {
        let body = r#"{"error": "invalid_client",
            "error_description": "AADSTS7000215: Invalid client secret provided."}"#;
        for stream in login.incoming() {
            let mut stream = stream.unwrap();
            let mut request = [0; 4096];
            let _ = stream.read(&mut request);
            let length = body.len();
            let head = format!(
                "HTTP/1.1 401 Unauthorized\r\ncontent-type: application/json\r\n\
                 connection: close\r\ncontent-length: {length}\r\n\r\n{body}"
            );
            let _ = stream.write_all(head.as_bytes());
        }
    });
    let mut stack = config();
    stack["cloud"] = json!("AZURESTACKCLOUD");
    let folder = Folder::with(&stack.to_string());
    let environment = json!({"name": "Stack", "resourceManagerEndpoint": "https://127.0.0.1:1/",
        "activeDirectoryEndpoint": format!("http://{address}/"), "tokenAudience": "https://arm"});
    std::fs::write(folder.path("stack.json"), environment.to_string()).unwrap();
    let emulators = Emulators::start();
    let output = ballast()
        .args(["run", "--port=0", "--leader-elect=false"])
        .arg(format!("--kubeconfig={}", emulators.path("kubeconfig").display()))
        .arg(format!("--cloud-config={}", folder.path("azure.json")))
        .env("AZURE_ENVIRONMENT_FILEPATH", folder.path("stack.json"))
        .output()
        .unwrap();
    let (code, out, err) = outcome(output);
    assert_eq!(code, 77, "{out}{err}");
    assert!(err.contains("AADSTS7000215") && !err.contains(SECRET), "{err}");
}

#[test]
fn a_reader_that_goes_away_ends_the_program_quietly() {
    let mut child = ballast()
        .args(["completions", "bash"])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let (code, _, err) = outcome(child.wait_with_output().unwrap());
    assert_eq!((code, err.as_str()), (0, ""));
}

#[test]
fn as_a_kubectl_plugin_it_calls_itself_so() {
    let folder = tempfile::tempdir().unwrap();
    let link = folder.path().join("kubectl-ballast");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_ballast"), &link).unwrap();
    let output = std::process::Command::new(&link).args(["plan", "--help"]).output().unwrap();
    let (code, out, _) = outcome(output);
    assert!(code == 0 && out.contains("Usage: kubectl ballast plan"), "{out}");
}

/// A proxy that nothing listens at: what is on this machine is reached without it.
#[test]
fn a_proxy_of_the_environment_does_not_lead_to_loopback() {
    let emulators = Emulators::start();
    let mut command = ballast();
    command.args(emulators.words(&["plan"])).env("HTTPS_PROXY", "http://127.0.0.1:1");
    let (code, out, err) = outcome(command.output().unwrap());
    assert_eq!(code, 0, "{out}{err}");
}

/// Without the right to read the zones the controller goes on after four refusals, seven seconds
/// after the first. So does who looks.
#[test]
fn who_may_not_read_the_zones_may_plan() {
    let emulators = Emulators::start();
    emulators.create_service("web");
    let rule = json!([{"kind": "status", "status": 403, "code": "AuthorizationFailed",
        "times": "always", "method": "GET", "path": "/Microsoft.Compute$"}]);
    emulators.order(&rule);
    let (code, out, err) = emulators.run(&["plan", "--exit-code"]);
    assert_eq!(code, 2, "{out}{err}");
}

/// A controller of another cluster may run on this machine.
#[test]
fn flags_that_name_a_cluster_do_not_ask_the_controller_of_this_machine() {
    let emulators = Emulators::start();
    let kubeconfig = emulators.path("kubeconfig").display().to_string();
    let lease = "cannot find the leading pod: Lease kube-system/ballast does not exist";
    told(&["history", "--kubeconfig", &kubeconfig], 69, &[lease]);
    let mut status = ballast();
    status.args(["status", "--cloud-config-secret-name=absent"]).env("KUBECONFIG", &kubeconfig);
    let (code, out, err) = outcome(status.output().unwrap());
    assert!(code == 64 && err.contains("kube-system/secrets/absent"), "{code} {out}{err}");
    told(&["history", "--file=/nowhere", "--kubeconfig", &kubeconfig], 64, &["cannot be used"]);
}

/// Azure says when it answers again: that is waited for as long as --timeout allows.
#[test]
fn a_read_that_azure_throttles_is_waited_for() {
    let emulators = Emulators::start();
    emulators.create_service("web");
    let rule = json!([{"kind": "status", "status": 429, "code": "TooManyRequests",
        "retry_after": 6, "method": "GET", "path": "loadBalancers"}]);
    emulators.order(&rule);
    let cluster = format!("--kubeconfig={}", emulators.path("kubeconfig").display());
    let config = format!("--cloud-config={}", emulators.path("azure.json").display());
    let (code, out, err) = run(&["plan", &cluster, &config]);
    assert_eq!(code, 0, "{out}{err}");
}

/// A user who may not list a kind learns which, and does not wait until the time is over.
#[test]
fn a_list_that_is_refused_is_named_at_once() {
    let emulators = Emulators::start();
    let front = emulators.refusing("/api/v1/pods", 403);
    let config = emulators.path("azure.json").display().to_string();
    let words =
        ["plan", "--timeout", "5", "--kubeconfig", &front, "--cloud-config", config.as_str()];
    told(&words, 77, &["/api/v1/pods", "HTTP 403: on order", "Grant it"]);
}
