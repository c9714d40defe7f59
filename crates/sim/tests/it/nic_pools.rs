//! Pools that nodes join through their machines.

use crate::support::container::{fault, refusing, service_of};
use crate::support::*;
use azure_emulator::FaultKind;
use serde_json::json;
use std::collections::BTreeSet;

const LIMIT_MS: u64 = 100_000;

/// Three machines, and no Service.
fn machines() -> sim::Laboratory {
    let mut lab = laboratory(&json!({
        "loadBalancerBackendPoolConfigurationType": "nodeIPConfiguration"
    }));
    lab.azure.seed(scale_set("vmss", 3));
    lab
}

fn bound() -> sim::Laboratory {
    let mut lab = machines();
    (0..3).for_each(|index| create(&mut lab, service(index)));
    assert!(lab.settle(LIMIT_MS), "{:#?}", lab.controller().report());
    lab
}

fn pools_of(lab: &sim::Laboratory, machine: u32) -> usize {
    let id = format!(
        "{GROUP}/providers/Microsoft.Compute/virtualMachineScaleSets/vmss/virtualMachines/{machine}"
    );
    let vm = lab.azure.resource(&id).expect("the machine is there");
    let nics = &vm["properties"]["networkProfileConfiguration"]["networkInterfaceConfigurations"];
    let first = &nics[0]["properties"]["ipConfigurations"][0];
    first["properties"]["loadBalancerBackendAddressPools"].as_array().map_or(0, Vec::len)
}

#[test]
fn every_machine_is_in_the_pool() {
    let lab = bound();
    assert_eq!(addressed(&lab), (3, 0));
    assert_eq!((0..3).map(|n| pools_of(&lab, n)).collect::<Vec<_>>(), [1, 1, 1]);
}

#[test]
fn a_new_machine_joins_at_once_and_alone() {
    let mut lab = bound();
    lab.azure.clear_calls();
    let machine = scale_set("vmss", 4).pop().expect("the fourth machine");
    lab.azure.seed(vec![machine]);
    create(&mut lab, node(3));
    assert!(lab.settle(LIMIT_MS));
    assert_eq!(pools_of(&lab, 3), 1);
    assert_eq!(lab.calls().0, 1, "a write for that machine only");
}

/// It joins the pools of both load balancers in one write, and the model of the scale set has what
/// it needs.
#[test]
fn a_scale_out_behind_two_load_balancers_writes_each_machine_once() {
    let mut lab = bound();
    create(
        &mut lab,
        annotated(9, json!({"service.beta.kubernetes.io/azure-load-balancer-internal": "true"})),
    );
    assert!(lab.settle(LIMIT_MS), "{:#?}", lab.controller().report());
    lab.azure.clear_calls();
    let all = scale_set("vmss", 5);
    lab.azure.seed(all[all.len() - 2..].to_vec());
    (3..5).for_each(|n| create(&mut lab, node(n)));
    assert!(lab.settle(LIMIT_MS), "{:#?}", lab.controller().report());
    assert_eq!([3, 4].map(|n| pools_of(&lab, n)), [2, 2]);
    assert_eq!(lab.calls().0, 2, "{:?}", lab.azure.calls());
}

#[test]
fn machines_leave_before_the_load_balancer_goes() {
    let mut lab = bound();
    (0..3).for_each(|n| delete(&mut lab, "default", &format!("web-{n:04}")));
    assert!(lab.settle(LIMIT_MS), "{:#?}", lab.controller().report());
    assert_eq!((0..3).map(|n| pools_of(&lab, n)).collect::<Vec<_>>(), [0, 0, 0]);
    let left: Vec<String> =
        leftovers(&lab).into_iter().filter(|id| !id.contains("microsoft.compute")).collect();
    assert_eq!(left, Vec::<String>::new());
}

fn take_machine(lab: &mut sim::Laboratory) {
    let id = "virtualMachineScaleSets/vmss/virtualMachines/2";
    call(lab, "DELETE", &format!("{GROUP}/providers/Microsoft.Compute/{id}"), None);
    lab.azure.clear_calls();
}

fn take_node(lab: &mut sim::Laboratory) {
    remove(lab, "nodes", "", "vmss000002");
}

/// The write of a machine has no Service as its cause: the Service that waits for it names the
/// error in its condition.
#[test]
fn a_service_behind_which_no_machine_may_come_tells_no_address_and_says_why() {
    let mut lab = machines();
    lab.azure.add_fault(refusing(409, "ScopeLocked", "PUT", "/virtualMachines/").always());
    create(&mut lab, service(0));
    lab.pass(1_800_000);
    let told = |lab: &sim::Laboratory| {
        let status = service_of(lab, "web-0000").expect("it is there")["status"].clone();
        let ingress = status["loadBalancer"]["ingress"].as_array().map_or(0, Vec::len);
        (ingress, status["conditions"][0].clone())
    };
    let (addresses, condition) = told(&lab);
    assert_eq!(addresses, 0, "no backend is behind it");
    assert_eq!(
        (&condition["status"], &condition["reason"]),
        (&json!("False"), &json!("AzureRejected"))
    );
    let message = condition["message"].as_str().unwrap_or_default();
    assert!(message.contains("virtualMachines/") && message.contains("ScopeLocked"), "{message}");
    lab.azure.clear_faults();
    lab.pass(LIMIT_MS);
    let (addresses, condition) = told(&lab);
    assert_eq!((addresses, &condition["status"]), (1, &json!("True")));
}

/// The same where the write of a machine is not answered: the condition says what is awaited.
#[test]
fn a_service_that_waits_for_an_unanswered_write_of_a_machine_says_so() {
    let mut lab = machines();
    let slow = FaultKind::Latency { ms: 40_000 };
    lab.azure.add_fault(fault(slow, "PUT", "/virtualMachines/").always());
    create(&mut lab, service(0));
    let mut told = BTreeSet::new();
    for _ in 0..60 {
        lab.pass(1_000);
        let status = service_of(&lab, "web-0000").expect("it is there")["status"].clone();
        told.insert(status["conditions"][0]["message"].as_str().unwrap_or("").to_owned());
    }
    let awaited = |text: &String| text.contains("virtualMachines/") && text.contains("no answer");
    assert!(told.iter().any(awaited), "{told:#?}");
}

/// A scale set takes a machine away, and its node object stays for a while.
#[test]
fn a_machine_that_goes_before_its_node_costs_no_write() {
    let mut lab = bound();
    take_machine(&mut lab);
    lab.pass(600_000);
    take_node(&mut lab);
    lab.pass(600_000);
    assert_eq!(lab.calls().0, 0, "{:?}", lab.azure.calls());
    assert!(lab.settle(LIMIT_MS), "{:#?}", lab.controller().report());
}

/// The node goes before anybody has looked at the machines again.
#[test]
fn a_machine_that_goes_with_its_node_is_written_to_once_at_most() {
    let mut lab = bound();
    // Past the time in which a list may lag behind our own writes.
    lab.pass(60_000);
    take_machine(&mut lab);
    take_node(&mut lab);
    lab.pass(1_200_000);
    let calls = lab.azure.calls().iter();
    let calls: Vec<String> =
        calls.map(|c| format!("{} {} {} {}\n", c.t_ms, c.status, c.method, c.path)).collect();
    assert!(lab.calls().0 <= 1, "{}", calls.concat());
    assert!(lab.settle(LIMIT_MS), "{:#?}", lab.controller().report());
}

/// Its model is in the pool by itself, which no instance and no node tells.
#[test]
fn a_scale_set_without_nodes_lets_go_of_a_load_balancer_that_goes() {
    let mut lab = bound();
    let id = network("loadBalancers/kubernetes");
    let pool = format!("{id}/backendAddressPools/kubernetes");
    let set = format!("{GROUP}/providers/Microsoft.Compute/virtualMachineScaleSets/vmss");
    let model = lab.azure.resource(&set).expect("the scale set is there").to_string();
    assert!(model.contains(&pool), "{model}");
    for number in 0..3 {
        call(&mut lab, "DELETE", &format!("{set}/virtualMachines/{number}"), None);
        remove(&mut lab, "nodes", "", &format!("vmss{number:06}"));
    }
    lab.pass(600_000);
    lab.restart();
    assert!(lab.settle(LIMIT_MS));
    (0..3).for_each(|n| delete(&mut lab, "default", &format!("web-{n:04}")));
    lab.pass(120_000);
    assert!(lab.settle(LIMIT_MS), "{:#?}", lab.controller().report());
    assert!(lab.azure.resource(&id).is_none(), "it is deleted");
    let model = lab.azure.resource(&set).expect("the scale set is there").to_string();
    assert!(!model.contains(&pool), "{model}");
}
