//! Lists that cannot be read any more, and waits that are long. Found by the simulator.

use crate::support::container::refusal;
use crate::support::*;
use azure_emulator::Fault;
use serde_json::{Value, json};

const LIMIT_MS: u64 = 100_000;

fn refused(status: u16, code: &str, retry_after_s: Option<u64>) -> Fault {
    Fault::new(refusal(status, code, retry_after_s)).on_method("GET").always()
}

fn on_list(fault: Fault, kind: &str) -> Fault {
    fault.on_path(&format!("{kind}$")).expect("the path is a regular expression")
}

fn outbound(lab: &mut sim::Laboratory) {
    let ip = network("publicIPAddresses/theirs");
    let id = network("loadBalancers/kubernetes");
    lab.azure.seed(vec![
        json!({"id": ip, "sku": {"name": "Standard"}, "properties": {
            "publicIPAllocationMethod": "Static", "ipAddress": "20.50.0.13"}}),
        json!({"id": id, "sku": {"name": "Standard", "tier": "Regional"}, "properties": {
            "frontendIPConfigurations": [{"name": "theirs",
                "properties": {"publicIPAddress": {"id": ip}}}],
            "backendAddressPools": [{"name": "theirs"}]}}),
    ]);
}

fn frontends(lab: &sim::Laboratory) -> Vec<String> {
    let balancer = lab.azure.resource(&network("loadBalancers/kubernetes")).unwrap_or_default();
    let all = balancer["properties"]["frontendIPConfigurations"].as_array().cloned();
    let name = |f: &Value| f["name"].as_str().unwrap_or("").to_owned();
    all.unwrap_or_default().iter().map(name).collect()
}

#[test]
fn load_balancers_that_cannot_be_read_any_more_are_not_written_anew() {
    let mut lab = laboratory(&json!({}));
    outbound(&mut lab);
    create(&mut lab, service(1));
    assert!(lab.settle(LIMIT_MS));
    assert_eq!(frontends(&lab).len(), 2);
    lab.azure.add_fault(on_list(refused(403, "AuthorizationFailed", None), "loadBalancers"));
    lab.pass(300_000);
    create(&mut lab, service(2));
    lab.pass(60_000);
    let standing = frontends(&lab);
    assert_eq!(standing.len(), 3, "{standing:?}");
    assert_eq!(standing[0], "theirs");
}

#[test]
fn load_balancers_that_could_never_be_read_are_not_written() {
    let mut lab = laboratory(&json!({}));
    outbound(&mut lab);
    lab.azure.add_fault(on_list(refused(403, "AuthorizationFailed", None), "loadBalancers"));
    create(&mut lab, service(1));
    lab.pass(300_000);
    assert_eq!(frontends(&lab), ["theirs"]);
    let findings = &lab.controller().report().findings;
    assert!(findings.iter().any(|f| f.rule == "LoadBalancersUnreadable"), "{findings:?}");
    lab.azure.clear_faults();
    assert!(lab.settle(LIMIT_MS));
    assert_eq!(frontends(&lab).len(), 2);
}

#[test]
fn a_finalizer_stays_while_public_ips_cannot_be_read() {
    let mut lab = laboratory(&json!({}));
    lab.azure.add_fault(on_list(refused(403, "AuthorizationFailed", None), "publicIPAddresses"));
    let mut leaving = service(1);
    leaving["metadata"]["finalizers"] = json!(["service.kubernetes.io/load-balancer-cleanup"]);
    create(&mut lab, leaving);
    delete(&mut lab, "default", "web-0001");
    lab.pass(120_000);
    let services = lab.kubernetes.list("services", None);
    assert!(
        services.iter().any(|s| s["metadata"]["name"] == "web-0001"),
        "nobody knows what is left"
    );
    lab.azure.clear_faults();
    assert!(lab.settle(LIMIT_MS), "{:#?}", lab.controller().report());
    let services = lab.kubernetes.list("services", None);
    assert!(services.iter().all(|s| s["metadata"]["name"] != "web-0001"));
}

#[test]
fn a_quota_is_waited_for_and_not_asked_for_again_and_again() {
    let mut lab = laboratory(&json!({}));
    create(&mut lab, service(1));
    assert!(lab.settle(LIMIT_MS));
    let quota = refused(429, "TooManyRequests", Some(90)).times(1);
    lab.azure.add_fault(on_list(quota, "loadBalancers"));
    // The check of drift reads four lists; the quota shuts all of them.
    lab.pass(120_000);
    let (now, wake) = (lab.now_ms, lab.controller().next_wake_ms());
    assert!(wake.is_some_and(|at| at > now), "{wake:?} at {now}: it would wake at once, for ever");
}
