//! The Azure role is neither too narrow nor too wide: what the controller asked of Azure in the
//! recorded cases and in the scenarios below is what arm's tables list, both ways. That nothing
//! else is asked anywhere is checked at each call of every other simulation, too.

use crate::support::replay::{Run, cases};
use crate::support::*;
use arm::Method;
use arm::permission::{JOINS, OPERATIONS, needed};
use azure_emulator::GatewayReply;
use serde_json::{Value, json};
use sim::Laboratory;
use std::collections::BTreeSet;

const LIMIT_MS: u64 = 1_000_000;

/// Rows that calls needed, as text.
type Seen = BTreeSet<String>;

fn note(seen: &mut Seen, lab: &mut Laboratory) {
    for call in lab.azure.calls() {
        let methods = [Method::Get, Method::Put, Method::Post, Method::Delete, Method::Patch];
        let method = methods.into_iter().find(|m| m.name() == call.method).expect("a known one");
        let needed = needed(method, &call.path, call.body.as_ref());
        let needed = needed.unwrap_or_else(|e| panic!("the role lacks what allows {e}"));
        seen.insert(format!("{:?}", needed.operation));
        seen.extend(needed.joins.iter().map(|join| format!("{join:?}")));
    }
    lab.azure.clear_calls();
}

fn recorded(seen: &mut Seen) {
    for case in cases() {
        let mut run = Run::start(&case);
        run.lab.azure.options_mut().gateway_reply = GatewayReply::Accepted;
        run.play(&case);
        note(seen, &mut run.lab);
    }
}

/// Operations that run for a while are polled.
fn slow(lab: &mut Laboratory) {
    lab.azure.options_mut().lro_ms = 300;
}

/// A subnet as clusters have it: with a security group, routes and a NAT gateway.
fn dressed_subnet() -> Value {
    let mut subnet = estate()
        .into_iter()
        .find(|r| r["id"].as_str().is_some_and(|id| id.ends_with("subnets/nodes")))
        .expect("the estate has it");
    for (field, id) in [
        ("networkSecurityGroup", network("networkSecurityGroups/nsg")),
        ("routeTable", network("routeTables/rt")),
        ("natGateway", network("natGateways/nat")),
    ] {
        subnet["properties"][field] = json!({"id": id});
    }
    subnet
}

fn private_link(seen: &mut Seen) {
    let mut lab =
        laboratory(&json!({"loadBalancerBackendPoolConfigurationType": "nodeIPConfiguration"}));
    slow(&mut lab);
    lab.azure.seed(vec![
        json!({"id": network("routeTables/rt"), "properties": {"routes": []}}),
        json!({"id": network("natGateways/nat"), "sku": {"name": "Standard"}, "properties": {}}),
        dressed_subnet(),
    ]);
    let annotations = json!({
        INTERNAL: "true",
        "service.beta.kubernetes.io/azure-pls-create": "true",
        "service.beta.kubernetes.io/azure-pls-name": "link"});
    create(&mut lab, annotated(0, annotations));
    assert!(lab.settle(LIMIT_MS), "{:#?}", lab.controller().report());
    let id = network("privateLinkServices/link");
    let mut link = lab.azure.resource(&id).expect("it was made");
    link["properties"]["privateEndpointConnections"] = json!([{"name": "somebody",
        "id": format!("{id}/privateEndpointConnections/somebody"), "properties": {}}]);
    lab.azure.seed(vec![link]);
    lab.restart();
    assert!(lab.settle(LIMIT_MS));
    delete(&mut lab, "default", "web-0000");
    assert!(lab.settle(LIMIT_MS), "{:#?}", lab.controller().report());
    assert!(lab.azure.resource(&id).is_none());
    note(seen, &mut lab);
}

/// A scale set's pools, then pools of addresses instead.
fn scale_sets(seen: &mut Seen) {
    let nics = json!({"loadBalancerBackendPoolConfigurationType": "nodeIPConfiguration"});
    let mut lab = laboratory(&nics);
    slow(&mut lab);
    lab.azure.seed(scale_set("vmss", 3));
    create(&mut lab, service(0));
    assert!(lab.settle(LIMIT_MS), "{:#?}", lab.controller().report());
    lab.restart_with(policy(&json!({"enableMigrateToIPBasedBackendPoolAPI": true})));
    assert!(lab.settle(LIMIT_MS), "{:#?}", lab.controller().report());
    note(seen, &mut lab);
}

/// A machine outside of scale sets, with its NIC.
fn machine() -> Vec<Value> {
    let id = format!("{GROUP}/providers/Microsoft.Compute/virtualMachines/vm-0");
    let nic = network("networkInterfaces/vm-0-nic");
    vec![
        json!({"id": nic, "properties": {"primary": true, "virtualMachine": {"id": id},
            "networkSecurityGroup": {"id": network("networkSecurityGroups/nsg")},
            "ipConfigurations": [{"name": "one", "properties": {"primary": true,
                "privateIPAddress": "10.224.9.4", "privateIPAddressVersion": "IPv4",
                "subnet": {"id": network("virtualNetworks/vnet/subnets/nodes")}}}]}}),
        json!({"id": id, "properties": {"networkProfile": {"networkInterfaces":
            [{"id": nic, "properties": {"primary": true}}]}}}),
    ]
}

/// A security group with a rule of another client between two application security groups.
fn shared_group() -> Value {
    let set = |name: &str| json!([{"id": network(&format!("applicationSecurityGroups/{name}"))}]);
    json!({"id": network("networkSecurityGroups/nsg"), "properties": {"securityRules": [
        {"name": "jump-hosts", "properties": {"access": "Allow", "direction": "Inbound",
            "priority": 200, "protocol": "Tcp", "sourcePortRange": "*",
            "destinationPortRange": "22", "sourceApplicationSecurityGroups": set("jump"),
            "destinationApplicationSecurityGroups": set("nodes")}}]}})
}

fn machines(seen: &mut Seen) {
    let mut lab = laboratory(&json!({"vmType": "standard",
        "loadBalancerBackendPoolConfigurationType": "nodeIPConfiguration"}));
    lab.azure.seed(scale_set("vmss", 3));
    lab.azure.seed(machine());
    lab.azure.seed(vec![shared_group()]);
    let id = format!("azure://{GROUP}/providers/Microsoft.Compute/virtualMachines/vm-0");
    create(
        &mut lab,
        json!({"apiVersion": "v1", "kind": "Node",
        "metadata": {"name": "vm-0"}, "spec": {"providerID": id},
        "status": {"addresses": [{"type": "InternalIP", "address": "10.224.9.4"}]}}),
    );
    create(&mut lab, service(0));
    assert!(lab.settle(LIMIT_MS), "{:#?}", lab.controller().report());
    note(seen, &mut lab);
}

#[test]
fn the_role_lists_what_is_asked_of_azure_and_no_more() {
    let mut seen = Seen::new();
    recorded(&mut seen);
    private_link(&mut seen);
    scale_sets(&mut seen);
    machines(&mut seen);
    let operations = OPERATIONS.iter().map(|row| format!("{row:?}"));
    let rows: Seen = operations.chain(JOINS.iter().map(|row| format!("{row:?}"))).collect();
    let unused: Vec<&String> = rows.difference(&seen).collect();
    assert!(unused.is_empty(), "nothing asks for these: {unused:#?}");
    let unlisted: Vec<&String> = seen.difference(&rows).collect();
    assert!(unlisted.is_empty(), "{unlisted:#?}");
}
