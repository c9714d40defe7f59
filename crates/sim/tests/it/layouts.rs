//! Where Services cannot move between load balancers over nodes and container load balancers, a
//! switch leaks nothing: a start over the other layout's leftovers writes nothing, says why, and
//! goes on once they are gone.

use crate::support::container::*;
use crate::support::*;
use explain::orphans::{Origin, find};
use serde_json::{Value, json};
use sim::{Config, Laboratory};

/// Long enough for Azure to be read again several times.
const WHILE_MS: u64 = 600_000;

fn nodes() -> Config {
    policy(&json!({}))
}

/// Without a security group Services cannot move: it would stay open for them.
fn pods() -> Config {
    let mut keys = keys();
    keys["securityGroupName"] = json!("");
    policy(&keys)
}

fn resources(lab: &Laboratory) -> Vec<Value> {
    lab.azure.resources()
}

fn finding(lab: &Laboratory) -> Option<String> {
    let mut findings = lab.controller().report().findings.iter();
    findings.find(|f| f.rule == plan::OTHER_LAYOUT_STANDS).map(ToString::to_string)
}

fn kinds(lab: &Laboratory) -> Vec<&'static str> {
    let found = find(lab.controller().world(), lab.controller().policy());
    assert_eq!(found.origin, Origin::OtherLayout);
    found.list.iter().map(|orphan| orphan.kind).collect()
}

/// Restarts with another layout and holds that nothing is written: neither to Azure nor to a
/// Service, also when a Service is deleted.
fn switch(lab: &mut Laboratory, to: Config) {
    let (azure, services) = (resources(lab), lab.kubernetes.list("services", None));
    let written = lab.controller().counts().kubernetes;
    lab.restart_with(to);
    lab.settle(DAY_MS);
    lab.pass(WHILE_MS);
    assert_eq!(resources(lab), azure);
    assert_eq!(lab.kubernetes.list("services", None), services);
    let counts = lab.controller().counts().clone();
    assert_eq!((counts.writes, counts.kubernetes), (0, 0), "{written} before");
    let name = web_name(1);
    delete(lab, "default", &name);
    lab.pass(WHILE_MS);
    assert!(service_of(lab, &name).is_some(), "its finalizer stays while its leftovers stand");
    assert_eq!(resources(lab), azure);
}

/// Two Services on load balancers over nodes.
fn over_nodes() -> Laboratory {
    let mut lab = container_laboratory(3);
    lab.restart_with(nodes());
    (1..3).for_each(|n| create(&mut lab, web(n)));
    assert!(lab.settle(DAY_MS), "{:#?}", lab.controller().report());
    lab
}

#[test]
fn nodes_to_containers() {
    let mut lab = over_nodes();
    assert_eq!(finding(&lab), None);
    switch(&mut lab, pods());
    let text = finding(&lab).expect("the start is refused");
    for word in ["loadBalancerSku", "ballast orphans", "kubernetes"] {
        assert!(text.contains(word), "{text}");
    }
    let found = kinds(&lab);
    assert_eq!(found.iter().filter(|kind| **kind == "public IP").count(), 2, "{found:?}");
    assert!(found.contains(&"load balancer"), "{found:?}");
    // Back, and one Service goes; then the other.
    lab.restart_with(nodes());
    assert!(lab.settle(DAY_MS));
    assert!(service_of(&lab, &web_name(1)).is_none());
    delete(&mut lab, "default", &web_name(2));
    assert!(lab.settle(DAY_MS));
    lab.restart_with(pods());
    create(&mut lab, web(3));
    assert!(lab.settle(DAY_MS), "{:#?}", lab.controller().report());
    assert_eq!((finding(&lab), addressed(&lab)), (None, (1, 0)));
}

/// The operator deletes the leftovers in Azure: the next look at Azure lets the start go on.
#[test]
fn it_goes_on_by_itself_once_the_leftovers_are_gone() {
    let mut lab = over_nodes();
    switch(&mut lab, pods());
    for kind in ["/loadBalancers/kubernetes", "/publicIPAddresses/kubernetes-"] {
        let ids = resources(&lab).into_iter().filter_map(|r| r["id"].as_str().map(str::to_owned));
        let ids: Vec<String> = ids.filter(|id| id.contains(kind)).collect();
        assert!(!ids.is_empty(), "{kind}");
        for id in ids {
            call(&mut lab, "DELETE", &id, None);
        }
    }
    lab.pass(WHILE_MS);
    assert!(lab.settle(DAY_MS), "{:#?}", lab.controller().report());
    assert_eq!((finding(&lab), addressed(&lab)), (None, (1, 0)));
    assert!(service_of(&lab, &web_name(1)).is_none());
}

#[test]
fn containers_to_nodes() {
    let mut lab = container_laboratory(3);
    (1..3).for_each(|n| create(&mut lab, web(n)));
    create_pod(&mut lab, egress_pod("leaving", "Team-A", &[&pod_ip(0)], 1));
    assert!(lab.settle(DAY_MS), "{:#?}", lab.controller().report());
    assert_eq!(finding(&lab), None);
    switch(&mut lab, nodes());
    let text = finding(&lab).expect("the start is refused");
    assert!(text.contains("ballast orphans") && text.contains("load balancer"), "{text}");
    let found = kinds(&lab);
    let count = |kind: &str| found.iter().filter(|k| **k == kind).count();
    let counts = ["load balancer", "NAT gateway", "public IP", "gateway registration"].map(count);
    assert_eq!(counts, [2, 1, 4, 3], "{found:?}");
    lab.restart_with(pods());
    assert!(lab.settle(DAY_MS));
    delete(&mut lab, "default", &web_name(2));
    remove(&mut lab, "pods", "default", "leaving");
    assert!(lab.settle(DAY_MS));
    assert_eq!(container_leftovers(&lab), Vec::<String>::new());
    lab.restart_with(nodes());
    create(&mut lab, service(3));
    assert!(lab.settle(DAY_MS), "{:#?}", lab.controller().report());
    assert_eq!((finding(&lab), addressed(&lab)), (None, (1, 0)));
}

/// A registration alone stands when the switch comes between the last two writes.
#[test]
fn a_registration_alone_is_found_by_the_finalizer_of_its_service() {
    let mut lab = container_laboratory(3);
    create(&mut lab, web(1));
    assert!(lab.settle(DAY_MS));
    let uid = uid_of(&lab, &web_name(1)).to_lowercase();
    for id in [format!("loadBalancers/{uid}"), format!("publicIPAddresses/{uid}-pip")] {
        let request = azure_emulator::Request::new("DELETE", &network(&id));
        lab.azure.handle(request, lab.now_ms);
    }
    lab.restart_with(nodes());
    lab.settle(DAY_MS);
    assert!(kinds(&lab).contains(&"gateway registration"));
}
