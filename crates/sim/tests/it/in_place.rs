//! Nodes and namespaces that stay and become others.

use crate::support::*;
use kube_emulator::{ObjectRef, Part};
use serde_json::{Value, json};
use sim::Laboratory;

/// Long before anything is looked at for drift.
const AT_ONCE_MS: u64 = 30_000;

fn pools(lab: &Laboratory, balancer: &str) -> String {
    let balancer = resource(lab, &format!("loadBalancers/{balancer}"));
    balancer["properties"]["backendAddressPools"].to_string()
}

/// A machine that is stopped and started may come back with another address.
#[test]
fn a_node_with_another_address_is_in_its_pool_under_that_one_at_once() {
    let mut lab = served([service(0)]);
    assert!(pools(&lab, "kubernetes").contains("\"10.224.0.4\""));
    let addresses = json!([{"type": "InternalIP", "address": "10.224.9.9"}]);
    let body = json!({"status": {"addresses": addresses}});
    patch_part(&mut lab, ObjectRef::new("nodes", "", "vmss000000"), Part::Status, body);
    lab.pass(AT_ONCE_MS);
    let now = pools(&lab, "kubernetes");
    assert!(now.contains("\"10.224.9.9\"") && !now.contains("\"10.224.0.4\""), "{now}");
}

/// Which load balancer serves a namespace may hang on its labels.
#[test]
fn a_namespace_with_other_labels_goes_to_another_load_balancer_at_once() {
    let of = |team: &str| json!({"matchLabels": {"team": team}});
    let mut lab = laboratory(&json!({"multipleStandardLoadBalancerConfigurations": [
        {"name": "kubernetes", "primaryVMSet": "vmss", "serviceNamespaceSelector": of("a")},
        {"name": "pool", "primaryVMSet": "pool", "serviceNamespaceSelector": of("b")}]}));
    create(&mut lab, pool_node(3));
    let label = |lab: &mut Laboratory, team: &str| {
        let body = json!({"metadata": {"labels": {"team": team}}});
        patch(lab, "namespaces", "", "default", body);
    };
    label(&mut lab, "a");
    create(&mut lab, service(0));
    assert!(lab.settle(DAY_MS), "{:#?}", lab.controller().report());
    let base = base_of(&lab, "web-0000");
    let on = |lab: &Laboratory, balancer: &str| {
        let balancer = lab.azure.resource(&network(&format!("loadBalancers/{balancer}")));
        balancer.as_ref().map_or(String::new(), Value::to_string).contains(&base)
    };
    assert_eq!((on(&lab, "kubernetes"), on(&lab, "pool")), (true, false));
    label(&mut lab, "b");
    lab.pass(AT_ONCE_MS);
    assert_eq!((on(&lab, "kubernetes"), on(&lab, "pool")), (false, true));
}
