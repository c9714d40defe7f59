//! Nodes without outbound connectivity: the reads that find it, and the finding `NoWayOut`.

use crate::support::*;
use kube_emulator::{ObjectRef, Part};
use serde_json::{Value, json};
use sim::Laboratory;

const NODES: &str = "virtualNetworks/vnet/subnets/nodes";

fn settled(lab: &mut Laboratory) {
    assert!(lab.settle(DAY_MS), "{:#?}", lab.controller().report());
}

/// How often the nodes' subnet was read since the calls were cleared.
fn reads(lab: &Laboratory) -> usize {
    let id = network(NODES).to_lowercase();
    let calls = lab.azure.calls().iter();
    calls.filter(|c| c.method == "GET" && c.path.to_lowercase() == id).count()
}

fn is_told(lab: &Laboratory) -> bool {
    lab.controller().report().findings.iter().any(|finding| finding.rule == "NoWayOut")
}

/// A Service that stands, its nodes without public IPs.
fn bound(more: &Value) -> Laboratory {
    let mut lab = laboratory(more);
    lab.azure.seed(scale_set("vmss", 3));
    for index in 0..3 {
        let name = format!("vmss{index:06}");
        let internal =
            json!([{"type": "InternalIP", "address": format!("10.224.0.{}", 4 + index)}]);
        let body = json!({"status": {"addresses": internal}});
        patch_part(&mut lab, ObjectRef::new("nodes", "", &name), Part::Status, body);
    }
    create(&mut lab, service(1));
    settled(&mut lab);
    lab
}

/// Another client changes the nodes' subnet.
fn set_subnet(lab: &mut Laboratory, key: &str, value: Value) {
    let mut subnet = resource(lab, NODES);
    subnet["properties"][key] = value;
    subnet.as_object_mut().expect("an object").remove("etag");
    lab.azure.seed(vec![subnet]);
}

#[test]
fn the_subnet_is_read_once_an_interval_and_what_it_gives_is_followed() {
    let mut lab =
        bound(&json!({"loadBalancerBackendPoolConfigurationType": "nodeIPConfiguration"}));
    assert!(is_told(&lab) && addressed(&lab) == (1, 0));
    lab.azure.clear_calls();
    lab.pass(3 * INTERVAL_MS);
    assert_eq!((reads(&lab), lab.calls().0), (3, 0));
    lab.azure.seed(vec![json!({"id": network("natGateways/nat"), "sku": {"name": "Standard"},
        "properties": {}})]);
    set_subnet(&mut lab, "natGateway", json!({"id": network("natGateways/nat")}));
    lab.pass(2 * INTERVAL_MS);
    assert!(!is_told(&lab), "a NAT gateway lets them out");
    set_subnet(&mut lab, "natGateway", Value::Null);
    lab.pass(2 * INTERVAL_MS);
    assert!(is_told(&lab));
    assert_eq!(lab.calls().0, 0, "nothing is written for it");
}

/// Behind pools of addresses nodes keep the default outbound access, where their subnet has it.
#[test]
fn a_private_subnet_lets_no_node_out() {
    let mut lab = bound(&json!({}));
    assert!(!is_told(&lab));
    set_subnet(&mut lab, "defaultOutboundAccess", json!(false));
    lab.pass(2 * INTERVAL_MS);
    assert!(is_told(&lab));
}

#[test]
fn nothing_is_read_where_rules_or_addresses_of_their_own_let_nodes_out() {
    let mut own = laboratory(&json!({}));
    create(&mut own, service(1));
    settled(&mut own);
    assert_eq!(reads(&own), 0, "they have public IPs");
    let by_rules = bound(&json!({"disableOutboundSNAT": false}));
    assert_eq!(reads(&by_rules), 0, "rules let them out");
}

/// A subnet that may not be read gives no finding, and no Service waits for it.
#[test]
fn a_subnet_that_cannot_be_read_holds_nothing_up() {
    let mut lab = laboratory(&json!({}));
    let refused = container::refusing(403, "AuthorizationFailed", "GET", "/subnets/nodes$");
    lab.azure.add_fault(refused.always());
    let body = json!({"status": {"addresses": [{"type": "InternalIP", "address": "10.224.0.4"}]}});
    patch_part(&mut lab, ObjectRef::new("nodes", "", "vmss000000"), Part::Status, body);
    create(&mut lab, service(1));
    lab.pass(HOUR_MS);
    assert_eq!(addressed(&lab), (1, 0));
    let report = lab.controller().report();
    assert!(report.needs.is_empty() && !is_told(&lab), "{report:#?}");
}
