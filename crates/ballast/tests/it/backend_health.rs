//! Which backends answer health probes: from the emulated Azure's data path to status, console,
//! metrics and Events, with the real binary.

use crate::support::{Emulators, Process, http, http_text, run, wait_for};
use serde_json::{Value, json};

const POD: &str = "/api/v1/namespaces/default/pods";
const EVENTS: &str = "/api/v1/namespaces/default/events";

/// The Service in the status document.
fn service(pages: &str, name: &str) -> Value {
    let (_, document) = http(pages, "GET", "/status", None);
    let all = document["services"].as_array().cloned().unwrap_or_default();
    all.into_iter().find(|service| service["name"] == name).unwrap_or(Value::Null)
}

/// Waits until so many of a Service's backends are up.
fn backends(pages: &str, name: &str, up: u64, total: u64) -> Value {
    let what = format!("{up} of {total} backends of {name} up");
    wait_for(&what, || {
        let backends = service(pages, name)["backends"].clone();
        (backends["up"] == up && backends["total"] == total).then_some(backends)
    })
}

struct Up {
    process: Process,
    kube: String,
    pages: String,
}

fn up() -> Up {
    let mut process = Process::start(&["up", "--port", "0"]);
    let mut address = |name: &str| {
        let line = process.line_with(&format!("  {name} "));
        line.split("http://").nth(1).unwrap().trim().trim_end_matches('/').to_owned()
    };
    let (kube, pages) = (address("Kubernetes API"), address("console"));
    Up { process, kube, pages }
}

#[test]
fn a_node_without_a_ready_pod_is_down_by_name_and_back_again() {
    let Up { process, kube, pages } = up();
    backends(&pages, "web", 3, 3);
    backends(&pages, "api", 3, 3);
    let path = "/api/v1/namespaces/default/services/web";
    let local = json!({"spec": {"externalTrafficPolicy": "Local"}});
    assert_eq!(http(&kube, "PATCH", path, Some(&local)).0, 200);
    backends(&pages, "web", 3, 3);
    // The Pod on the first node is ready no more.
    let ready = |status: &str| {
        let patch = json!({"status": {"conditions": [{"type": "Ready", "status": status}]}});
        let path = format!("{POD}/web-0/status");
        assert_eq!(http(&kube, "PATCH", &path, Some(&patch)).0, 200);
    };
    ready("False");
    let found = backends(&pages, "web", 2, 3);
    let node = &found["ailing"][0];
    assert_eq!((&node["node"], &node["state"]), (&json!("vmss000000"), &json!("down")));
    assert_eq!(node["address"], "10.224.0.4");
    assert_eq!(found["someDownIsUsual"], true);
    let since_ms = node["sinceMs"].as_u64().unwrap();
    let now_ms = http(&pages, "GET", "/status", None).1["nowMs"].as_u64().unwrap();
    assert!(now_ms - since_ms < 60_000, "it was up a moment ago");
    let server = format!("http://{pages}");
    let (code, text, _) = run(&["status", "--server", &server]);
    assert_eq!(code, 0);
    assert!(text.contains("BACKENDS") && text.contains(" 2/3"), "{text}");
    assert!(text.contains("  ~ backends down: vmss000000 ("), "{text}");
    let page = http_text(&pages, "GET", "/services/default/web", None).1;
    assert!(page.contains("2 of 3 answer all of Azure") && page.contains("failed\"><svg"));
    assert!(http_text(&pages, "GET", "/", None).1.contains("Backends up"));
    let metric = |state: &str, count: u32| {
        format!(
            "ballast_service_backends{{service_namespace=\"default\",service_name=\"web\",\
             traffic_policy=\"Local\",state=\"{state}\"}} {count}\n"
        )
    };
    let metrics = http_text(&pages, "GET", "/metrics", None).1;
    assert!(metrics.contains(&metric("up", 2)) && metrics.contains(&metric("down", 1)));
    assert!(metrics.contains("ballast_service_backends_unreadable 0\n"));
    ready("True");
    backends(&pages, "web", 3, 3);
    assert_eq!(process.terminate(), 0);
}

#[test]
fn a_service_without_any_backend_up_gets_an_event_once() {
    let Up { process, kube, pages } = up();
    backends(&pages, "web", 3, 3);
    for pod in ["web-0", "web-1", "web-2"] {
        assert_eq!(http(&kube, "DELETE", &format!("{POD}/{pod}"), None).0, 200);
    }
    let found = backends(&pages, "web", 0, 3);
    assert_eq!((&found["down"], &found["someDownIsUsual"]), (&json!(3), &json!(false)));
    let events = |reason: &str| -> Vec<Value> {
        let (_, list) = http(&kube, "GET", EVENTS, None);
        let all = list["items"].as_array().cloned().unwrap_or_default();
        all.into_iter().filter(|event| event["reason"] == reason).collect()
    };
    let said = wait_for("the Event", || events("NoBackendUp").pop());
    assert_eq!(
        (&said["type"], &said["involvedObject"]["name"]),
        (&json!("Warning"), &json!("web"))
    );
    // A node that is not ready answers nothing, whatever its Pods.
    let patch = json!({"status": {"conditions": [{"type": "Ready", "status": "False"}]}});
    let node = "/api/v1/nodes/vmss000001/status";
    assert_eq!(http(&kube, "PATCH", node, Some(&patch)).0, 200);
    backends(&pages, "api", 2, 3);
    assert_eq!(events("NoBackendUp").len(), 1, "it is said once");
    assert_eq!(process.terminate(), 0);
}

/// The emulated Azure with its data path, in which nothing answers on any node, and a controller.
fn place() -> Emulators {
    let emulators = Emulators::start_with(&["--data-path", "--data-path-second", "20"]);
    emulators.create_service("web");
    emulators
}

#[test]
fn a_refusal_is_said_once_with_what_to_grant_and_nothing_else_suffers() {
    let emulators = place();
    let may = json!({"permissions": ["Microsoft.Network/*", "Microsoft.Compute/*"]});
    assert_eq!(http(&emulators.azure, "POST", "/_/options", Some(&may)).0, 200);
    let (mut process, pages) =
        emulators.controller_with(&["--backend-health", "--backend-health-interval", "1"]);
    emulators.address_of("web");
    let line = process.line_with("backend health");
    let grant = "grant Microsoft.Insights/metrics/read (`ballast azure-role --for backend-health`)";
    assert!(line.contains("AuthorizationFailed") && line.contains(grant), "{line}");
    let (_, document) = http(&pages, "GET", "/status", None);
    assert!(document["backendTrouble"].as_str().unwrap().contains(grant), "{document}");
    assert_eq!(document["services"][0]["state"], "programmed");
    let server = format!("http://{pages}");
    assert!(run(&["status", "--server", &server]).1.starts_with("! GET metrics of loadBalancers/"));
    let metrics = http_text(&pages, "GET", "/metrics", None).1;
    assert!(metrics.contains("ballast_service_backends_unreadable 1\n"));
    assert!(http_text(&pages, "GET", "/readyz", None).1.starts_with("ok\n"));
    // The permission is granted: it is read again, at the next of the rarer tries.
    let may = json!({"permissions": ["*"]});
    assert_eq!(http(&emulators.azure, "POST", "/_/options", Some(&may)).0, 200);
    backends(&pages, "web", 0, 1);
    assert_eq!(process.terminate(), 0);
}

#[test]
fn without_the_flag_azure_monitor_is_not_asked() {
    let emulators = place();
    let (process, pages) = emulators.controller();
    emulators.address_of("web");
    std::thread::sleep(std::time::Duration::from_secs(3));
    let (_, calls) = http(&emulators.azure, "GET", "/_/calls", None);
    let text = calls.to_string();
    assert!(text.contains("loadBalancers") && !text.contains("Insights"), "{text}");
    assert!(service(&pages, "web")["backends"].is_null());
    let metrics = http_text(&pages, "GET", "/metrics", None).1;
    assert!(!metrics.contains("ballast_service_backends"));
    assert_eq!(process.terminate(), 0);
}
