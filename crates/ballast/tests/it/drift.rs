//! Drift and `status --watch`, with the real binary between emulators.

use crate::support::{Emulators, Process, http, http_text, run, wait_for};
use serde_json::{Value, json};

fn rules(emulators: &Emulators) -> usize {
    emulators.balancer()["properties"]["loadBalancingRules"].as_array().map_or(0, Vec::len)
}

fn drift(pages: &str, outcome: &str) -> Option<Value> {
    let (_, status) = http(pages, "GET", "/status", None);
    let line = status.pointer("/drift/0")?.clone();
    (line["outcome"] == outcome).then_some(line)
}

fn settled(emulators: &Emulators) {
    emulators.serve("web");
    wait_for("a rule", || (rules(emulators) == 1).then_some(()));
}

#[test]
fn a_rule_deleted_by_hand_is_back_and_was_shown() {
    let emulators = Emulators::start();
    let (mut controller, pages) = emulators.controller_with(&["--check-interval", "1"]);
    settled(&emulators);
    controller.line_with("is programmed at");
    let server = format!("http://{pages}");
    let mut watch = Process::start(&["status", "--watch", "--server", &server]);
    watch.line_with("default/web");
    emulators.delete_rules();
    wait_for("the rule", || (rules(&emulators) == 1).then_some(()));
    let said = controller.line_with("another client changed");
    assert!(said.contains("-TCP-80 is gone") && said.contains("WARN"), "{said}");
    let line = wait_for("the end of the drift", || drift(&pages, "over"));
    assert_eq!(line["resource"], "loadBalancers/kubernetes");
    assert_eq!(line["services"], json!(["default/web"]));
    let metrics = http_text(&pages, "GET", "/metrics", None).1;
    assert!(metrics.contains("ballast_drift_noticed_total 1\n"), "{metrics}");
    assert!(metrics.contains("ballast_drift_fields 0\n"), "{metrics}");
    let (_, out, _) = run(&["status", "--server", &server]);
    assert!(out.contains("Changed in Azure by another client:"), "{out}");
    let page = http_text(&pages, "GET", "/findings", None).1;
    assert!(page.contains("Changed in Azure by another client"), "{page}");
    watch.line_with("drift repaired");
    assert_eq!(watch.interrupt(), 0);
    assert_eq!(controller.terminate(), 0);
    let events = http(&emulators.kube, "GET", "/api/v1/namespaces/default/events", None).1;
    let events = events["items"].as_array().unwrap();
    assert_eq!(events.iter().filter(|e| e["reason"] == "AzureDrift").count(), 1);
}

#[test]
fn with_report_a_rule_deleted_by_hand_is_only_shown() {
    let emulators = Emulators::start();
    emulators.configure(&json!({"driftPolicy": "report"}));
    let (controller, pages) = emulators.controller_with(&["--check-interval", "1"]);
    settled(&emulators);
    emulators.delete_rules();
    wait_for("the drift", || drift(&pages, "reported"));
    let metrics = http_text(&pages, "GET", "/metrics", None).1;
    assert!(metrics.contains("ballast_drift_fields 1\n"), "{metrics}");
    // Another Service is programmed meanwhile, and the rule stays away.
    emulators.serve("api");
    wait_for("the other rule", || (rules(&emulators) == 1).then_some(()));
    assert!(drift(&pages, "reported").is_some());
    assert_eq!(controller.terminate(), 0);
}

#[test]
fn watching_goes_on_while_the_controller_restarts() {
    let emulators = Emulators::start();
    let (controller, pages) = emulators.controller();
    emulators.serve("web");
    let server = format!("http://{pages}");
    let mut watch = Process::start(&["status", "--watch", "--server", &server]);
    watch.line_with("default/web");
    assert_eq!(controller.terminate(), 0);
    watch.line_with("! no status from");
    let port = pages.rsplit(':').next().unwrap();
    let words = emulators.words(&["run", "--leader-elect=false", "--port", port]);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let again = Process::start_logging(&words);
    watch.line_with("the status is back");
    assert_eq!(watch.interrupt(), 0);
    assert_eq!(again.terminate(), 0);
}
