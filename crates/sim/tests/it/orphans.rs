//! What is ours and belongs to nothing is found; what only looks like it is not.

use crate::support::container::*;
use crate::support::*;
use explain::orphans::{Orphans, find};
use kube_emulator::Part;
use serde_json::{Value, json};
use sim::Laboratory;

/// What somebody who looks now finds.
fn look(lab: &mut Laboratory) -> Orphans {
    let policy = lab.config().clone();
    let world = lab.read_under(&policy);
    find(&world, &policy)
}

fn listed(found: &Orphans) -> Vec<(&'static str, String)> {
    found.list.iter().map(|orphan| (orphan.kind, orphan.name.to_string())).collect()
}

/// A Service goes without its finalizer while no controller runs.
fn vanish_unseen(lab: &mut Laboratory, name: &str) {
    vanish(lab, name);
    lab.restart();
}

fn ip(name: &str, tags: &Value) -> Value {
    json!({"id": network(&format!("publicIPAddresses/{name}")), "tags": tags,
        "sku": {"name": "Standard", "tier": "Regional"}, "properties": {
            "publicIPAllocationMethod": "Static", "publicIPAddressVersion": "IPv4",
            "ipAddress": "20.77.0.1"}})
}

#[test]
fn nothing_is_left_over_of_services_that_are_there() {
    let mut lab = served((0..3).map(service));
    assert_eq!(look(&mut lab), Orphans::default());
}

#[test]
fn parts_of_a_service_that_vanished_are_found_in_the_order_they_can_go() {
    let mut lab = served((0..2).map(service));
    let base = model::ServiceUid::new(uid_of(&lab, "web-0001")).base_name();
    vanish_unseen(&mut lab, "web-0001");
    let found = look(&mut lab);
    let kinds: Vec<&str> = found.list.iter().map(|orphan| orphan.kind).collect();
    assert_eq!(kinds, ["security rule", "frontend", "probe", "rule", "public IP"]);
    assert_eq!(found.pending, 0);
    let parts = &found.list[1..];
    assert!(parts.iter().all(|orphan| orphan.name.contains(&base)), "{parts:?}");
}

#[test]
fn look_alikes_are_nobodys_orphans() {
    let mut lab = laboratory(&json!({}));
    create(&mut lab, service(0));
    let name = "kubernetes-a00000000000000000000000000000ba";
    let cluster = "k8s-azure-cluster-name";
    let user = "k8s-azure-service";
    lab.azure.seed(vec![
        ip(name, &json!({})),
        ip("named-after-us", &json!({cluster: "kubernetes"})),
        ip("another-clusters", &json!({user: "default/gone", cluster: "another"})),
        ip("of-no-cluster", &json!({user: "default/gone"})),
        json!({"id": network("natGateways/theirs"), "sku": {"name": "Standard"},
            "properties": {"idleTimeoutInMinutes": 4}}),
    ]);
    assert!(lab.settle(DAY_MS));
    assert_eq!(listed(&look(&mut lab)), []);
    // One with both tags is ours, whatever its name.
    let tags = |name: &str| json!({user: name, cluster: "kubernetes"});
    lab.azure.seed(vec![ip("made-by-hand", &tags("default/other"))]);
    assert_eq!(listed(&look(&mut lab)), [("public IP", "made-by-hand".to_owned())]);
    // Unless another one names the same Service and not the cluster: then both stay.
    lab.azure.seed(vec![ip("and-one-of-it", &tags("default/gone"))]);
    assert_eq!(listed(&look(&mut lab)), [("public IP", "made-by-hand".to_owned())]);
}

#[test]
fn what_is_due_for_services_that_are_there_is_told_apart() {
    let mut lab = served((0..2).map(service));
    vanish_unseen(&mut lab, "web-0001");
    create(&mut lab, service(2));
    let found = look(&mut lab);
    assert!(found.pending > 0, "a Service waits for its load balancer");
    assert_eq!(found.list.len(), 5, "{:?}", found.list);
}

#[test]
fn a_container_load_balancer_that_lost_its_service() {
    let mut lab = container_laboratory(2);
    (1..3).for_each(|n| create(&mut lab, web(n)));
    assert!(lab.settle(DAY_MS));
    let uid = uid_of(&lab, &web_name(2)).to_lowercase();
    vanish_unseen(&mut lab, &web_name(2));
    let found = look(&mut lab);
    let want = [
        ("load balancer", uid.clone()),
        ("public IP", format!("{uid}-pip")),
        ("gateway registration", uid),
    ];
    assert_eq!(listed(&found), want);
    // A public IP that only has the form of ours.
    let alike = "00000000-1111-2222-3333-444444444444-pip";
    lab.azure.seed(vec![ip(alike, &json!({}))]);
    assert!(!listed(&look(&mut lab)).iter().any(|(_, name)| name == alike));
}

#[test]
fn a_private_link_service_goes_before_the_frontend_it_stands_on() {
    let mut lab =
        laboratory(&json!({"loadBalancerBackendPoolConfigurationType": "nodeIPConfiguration"}));
    let annotations = json!({
        INTERNAL: "true",
        "service.beta.kubernetes.io/azure-pls-create": "true",
        "service.beta.kubernetes.io/azure-pls-name": "theirs-to-name",
    });
    create(&mut lab, annotated(1, annotations));
    create(&mut lab, service(0));
    assert!(lab.settle(DAY_MS), "{:#?}", lab.controller().report());
    assert_eq!(look(&mut lab), Orphans::default());
    vanish_unseen(&mut lab, "web-0001");
    // One that somebody else made stands beside it.
    let subnet = network("virtualNetworks/vnet/subnets/nodes");
    lab.azure.seed(vec![json!({"id": network("privateLinkServices/not-ours"), "properties": {
        "loadBalancerFrontendIpConfigurations": [], "ipConfigurations": [
            {"name": "a", "properties": {"subnet": {"id": subnet}, "primary": true}}]}})]);
    let found = listed(&look(&mut lab));
    assert_eq!(found[0], ("Private Link Service", "theirs-to-name".to_owned()), "{found:?}");
    let kinds: Vec<&str> = found.iter().map(|(kind, _)| *kind).collect();
    assert_eq!(kinds.iter().filter(|kind| **kind == "Private Link Service").count(), 1);
    assert!(kinds.contains(&"load balancer") && kinds.contains(&"frontend"), "{kinds:?}");
}

#[test]
fn a_nat_gateway_whose_pods_vanished() {
    let mut lab = container_laboratory(2);
    create_pod(&mut lab, egress_pod("leaving", "Team-A", &[&pod_ip(0)], 1));
    assert!(lab.settle(DAY_MS), "{:#?}", lab.controller().report());
    assert_eq!(look(&mut lab), Orphans::default());
    merge(&mut lab, "pods", "leaving", Part::Main, json!({"metadata": {"finalizers": null}}));
    remove(&mut lab, "pods", "default", "leaving");
    lab.restart();
    let want = [
        ("NAT gateway", "team-a".to_owned()),
        ("public IP", "team-a-pip".to_owned()),
        ("public IP", "team-a-pip-v6".to_owned()),
        ("gateway registration", "team-a".to_owned()),
    ];
    assert_eq!(listed(&look(&mut lab)), want);
    lab.excuse("container", "team-a", "it is taken away once lists are new enough");
    // Of these nobody but the Pods could say more: the controller takes them away by itself.
    assert!(lab.settle(DAY_MS));
    lab.pass(DAY_MS);
    assert_eq!(look(&mut lab), Orphans::default());
    assert_eq!(container_leftovers(&lab), Vec::<String>::new());
}
