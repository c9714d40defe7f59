//! A wrong value on a running Service: what it has stays, and its owner hears of it at once.

use crate::support::*;
use serde_json::json;

#[test]
fn a_typo_leaves_a_running_service_as_it_is_and_says_so_at_once() {
    let wrong = [
        ("azure-load-balancer-tcp-idle-timeout", "15m", "a whole number of minutes from 4 to 100"),
        ("azure-load-balancer-health-probe-interval", "3", "a whole number of seconds, at least 5"),
        ("azure-allowed-ip-ranges", "10.0.0.0/99", "must be an IP range such as 203.0.113.0/24"),
        ("port_80_health-probe_port", "admin", "the name or number of a port of the Service"),
        ("azure-pip-name", "nobody", "the name of a public IP in resource group rg"),
    ];
    for (suffix, value, allowed) in wrong {
        let mut lab = served([service(1), service(2)]);
        let before = lab.azure.resources();
        lab.azure.clear_calls();
        let events = lab.kubernetes.list("events", None).len();
        let key = format!("service.beta.kubernetes.io/{suffix}");
        let body = json!({"metadata": {"annotations": {&key: value}}});
        patch(&mut lab, "services", "default", "web-0001", body);
        lab.turn();
        assert_eq!(lab.calls().0, 0, "{suffix}: nothing is written to Azure");
        let said = lab.kubernetes.list("events", None);
        assert_eq!(said.len(), events + 1, "{suffix}: one Event, at once");
        let warning = said.iter().find(|e| e["type"] == "Warning").expect("it is a warning");
        assert_eq!(warning["reason"], "SyncLoadBalancerFailed");
        assert_eq!(warning["involvedObject"]["name"], "web-0001");
        let text = warning["message"].as_str().unwrap_or("");
        for part in [key.as_str(), value, allowed] {
            assert!(text.contains(part), "{text:?} does not say {part:?}");
        }
        let (status, reason, message, _) = condition(&lab);
        assert_eq!(status, "False", "{suffix}: it stands on the Service");
        assert!(text.ends_with(&message) && !reason.is_empty(), "{reason}: {message}");
        lab.pass(600_000);
        assert_eq!(lab.calls().0, 0, "{suffix}: nor later");
        assert_eq!(lab.azure.resources(), before, "{suffix}");
        assert_eq!(lab.kubernetes.list("events", None).len(), events + 1, "{suffix}: said once");
        assert_eq!(addressed(&lab), (2, 0), "{suffix}: its address stands");
        let mended = json!({"metadata": {"annotations": {&key: null}}});
        patch(&mut lab, "services", "default", "web-0001", mended);
        assert!(lab.settle(DAY_MS));
        assert_eq!(lab.calls().0, 0, "{suffix}: mended, it is as it was");
        let (status, reason, _, _) = condition(&lab);
        assert_eq!((status.as_str(), reason.as_str()), ("True", "Programmed"));
    }
}

/// Status, reason, message and time of our condition on `web-0001`.
fn condition(lab: &sim::Laboratory) -> (String, String, String, String) {
    let service = object(lab, "services", "default", "web-0001").expect("it is there");
    let all = service["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let own: Vec<_> = all.iter().filter(|c| c["type"] == "ballast.dev/Programmed").collect();
    let [own] = own.as_slice() else { panic!("{all:?}") };
    let text = |key: &str| own[key].as_str().unwrap_or_default().to_owned();
    (text("status"), text("reason"), text("message"), text("lastTransitionTime"))
}

#[test]
fn a_condition_costs_no_call_while_all_is_well_and_leaves_those_of_others() {
    let mut lab = served([service(1)]);
    assert_eq!(lab.controller().counts().kubernetes, 3, "finalizer; ledger; address and condition");
    let (status, reason, _, since) = condition(&lab);
    assert_eq!((status.as_str(), reason.as_str()), ("True", "Programmed"));
    let theirs = json!({"type": "example.com/theirs", "status": "True", "reason": "Theirs",
        "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let place = kube_emulator::ObjectRef::new("services", "default", "web-0001");
    let body = kube_emulator::Patch::Strategic(json!({"status": {"conditions": [theirs]}}));
    let status = kube_emulator::Part::Status;
    lab.kubernetes.patch(place, status, &body, lab.now_ms).expect("it is patched");
    let annotate = |lab: &mut sim::Laboratory, minutes: &str| {
        let body = json!({"metadata": {"annotations": {TIMEOUT: minutes}}});
        patch(lab, "services", "default", "web-0001", body);
        lab.pass(60_000);
        lab.controller().counts().kubernetes
    };
    assert_eq!(annotate(&mut lab, "10"), 3, "a good change is none of its business");
    assert_eq!(annotate(&mut lab, "ten"), 4);
    let (_, _, _, failed) = condition(&lab);
    assert_ne!(failed, since);
    assert_eq!(annotate(&mut lab, "eleven"), 5);
    assert_eq!(condition(&lab).3, failed, "it has not held since then");
    let body = json!({"spec": {"type": "ClusterIP"}});
    patch(&mut lab, "services", "default", "web-0001", body);
    assert!(lab.settle(DAY_MS));
    let service = object(&lab, "services", "default", "web-0001").expect("it is there");
    assert_eq!(service["status"]["conditions"], json!([theirs]), "ours went, theirs stands");
    assert_eq!(lab.controller().counts().kubernetes, 8, "status, ledger, then finalizer");
}
