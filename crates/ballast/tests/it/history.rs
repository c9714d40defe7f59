//! `ballast history`, with the real binary between emulators.

use crate::support::{Emulators, ballast, http, http_text, outcome, run, wait_for};
use serde_json::{Value, json};

const TIMEOUT: &str = "service.beta.kubernetes.io/azure-load-balancer-tcp-idle-timeout";

/// An edit as `kubectl edit` makes it.
fn edit(emulators: &Emulators, minutes: &str) {
    let patch =
        json!({"metadata": {"annotations": {TIMEOUT: minutes, "example.com/note": "hunter2"}}});
    let path = "/api/v1/namespaces/default/services/web?fieldManager=kubectl-edit";
    assert_eq!(http(&emulators.kube, "PATCH", path, Some(&patch)).0, 200);
}

/// The write that an edit led to, once it is done.
fn write_with(server: &str, minutes: u64) -> Value {
    wait_for("the write", || {
        let (_, out, _) = run(&["history", "web", "--server", server, "-o", "json"]);
        let document: Value = serde_json::from_str(&out).ok()?;
        let writes = document["writes"].as_array()?.clone();
        writes.into_iter().find(|write| {
            let fields = write["fields"].as_array().unwrap();
            write["outcome"] == "done" && fields.iter().any(|f| f["new"] == json!(minutes))
        })
    })
}

#[test]
fn a_write_is_told_with_the_edit_that_caused_it_and_outlives_a_restart() {
    let emulators = Emulators::start();
    let file = emulators.path("history").display().to_string();
    let (controller, pages) = emulators.controller_with(&["--history-file", &file]);
    emulators.create_service("web");
    emulators.create_service("other");
    emulators.address_of("web");
    emulators.address_of("other");
    let server = format!("http://{pages}");
    edit(&emulators, "9");
    let write = write_with(&server, 9);
    assert_eq!(write["resource"], "loadBalancers/kubernetes");
    assert_eq!(write["services"], json!(["default/web"]));
    let cause = &write["causes"][0];
    assert_eq!((&cause["kind"], &cause["manager"]), (&json!("edit"), &json!("kubectl-edit")));
    let (_, out, _) = run(&["history", "web", "--server", &server, "--since", "1h"]);
    let told = format!("default/web was edited by kubectl-edit: metadata.annotations[{TIMEOUT}]");
    assert!(!out.contains("hunter2"), "a foreign annotation's value is shown: {out}");
    assert!(out.contains("example.com/note"), "{out}");
    let because = out.lines().find(|line| line.contains("was edited by kubectl-edit"));
    assert!(because.is_some(), "no {told} in {out}");
    let id = write["correlationId"].as_str().unwrap();
    assert!(out.contains(&format!("correlation id {id}, /subscriptions/")), "{out}");
    let page = http_text(&pages, "GET", "/services/default/web", None).1;
    assert!(page.contains("Writes to Azure") && page.contains(id), "{page}");
    let page = http_text(&pages, "GET", &format!("/timeline?write={id}"), None).1;
    assert!(page.contains("idleTimeoutInMinutes") && page.contains("kubectl-edit"), "{page}");
    assert_eq!(controller.terminate(), 0);
    // What is in the file is read without a controller, and by the next one.
    let (code, out, _) = run(&["history", "web", "--file", &file]);
    assert!(code == 0 && out.contains(id), "{out}");
    let (controller, pages) = emulators.controller_with(&["--history-file", &file]);
    let server = format!("http://{pages}");
    let again = write_with(&server, 9);
    assert_eq!(again, write);
    let page = http_text(&pages, "GET", "/timeline", None).1;
    assert!(page.contains(id), "the time line shows the last process' writes");
    // Another Service's history has none of it.
    let (_, out, _) = run(&["history", "default/other", "--server", &server]);
    assert!(out.contains("publicIPAddresses/") && !out.contains("kubectl-edit"), "{out}");
    // A namespace alone is that of the Services whose writes are shown.
    let of = |namespace: &str| run(&["history", "-n", namespace, "--server", &server]).1;
    assert!(of("default").contains(id), "{}", of("default"));
    assert!(of("shop").starts_with("No write to Azure"), "{}", of("shop"));
    assert_eq!(controller.terminate(), 0);
    let (code, _, err) = run(&["history", "--file", "/nowhere/history"]);
    assert!(code != 0 && err.contains("there is no such file"), "{err}");
}

#[test]
fn drift_stands_in_the_history_with_the_way_to_who_made_it() {
    let emulators = Emulators::start();
    let (controller, pages) = emulators.controller_with(&["--check-interval", "1"]);
    emulators.serve("web");
    wait_for("a rule to take away", || {
        let there = emulators.balancer().pointer("/properties/loadBalancingRules/0").is_some();
        let quiet = http_text(&pages, "GET", "/plan", None).1.contains("Nothing to do.");
        (there && quiet).then(|| emulators.delete_rules())
    });
    let server = format!("http://{pages}");
    let out = wait_for("the repair", || {
        let words = ["history", "web", "--server", &server];
        let (_, out, _) = outcome(ballast().args(words).output().unwrap());
        out.contains("because repairs drift").then_some(out)
    });
    assert!(out.contains(" DRIFT loadBalancers/kubernetes: rule "), "{out}");
    let id = "/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/rg/providers/\
              Microsoft.Network/loadBalancers/kubernetes";
    assert!(out.contains(&format!("az monitor activity-log list --resource-id {id}")), "{out}");
    assert_eq!(controller.terminate(), 0);
}
