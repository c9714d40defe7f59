//! The table of addresses is written.

use crate::support::container::*;
use crate::support::{create, delete};
use azure_emulator::FaultKind;
use serde_json::{Value, json};
use sim::Laboratory;
use std::collections::BTreeSet;

fn standing() -> Laboratory {
    let mut lab = container_laboratory(3);
    (0..2).for_each(|n| create(&mut lab, web(n)));
    set_slice(&mut lab, &web_name(0), 0, ready(&[(1, 0), (2, 0), (3, 1)]));
    set_slice(&mut lab, &web_name(1), 0, ready(&[(4, 1)]));
    rest(&mut lab);
    lab.pass(11_000);
    rest(&mut lab);
    lab.azure.clear_calls();
    lab
}

fn refuse(lab: &mut Laboratory, status: u16, code: &str, body: &str) {
    let fault = fault(refusal(status, code, None), "POST", "updateAddressLocations$");
    lab.azure.add_fault(fault.on_body(body).always());
}

#[test]
fn l39_a_failed_call_is_tried_again_by_itself() {
    let mut lab = standing();
    refuse(&mut lab, 503, "ServiceUnavailable", "10.");
    set_slice(&mut lab, &web_name(1), 0, ready(&[(4, 1), (5, 2)]));
    lab.pass(10_000);
    lab.azure.clear_faults();
    lab.pass(20_000);
    assert_eq!(backends(&lab, &web_name(1)).len(), 2);
}

#[test]
fn l40_a_call_that_hangs_is_given_up() {
    let mut lab = standing();
    lab.azure.add_fault(fault(FaultKind::Hang, "POST", "updateAddressLocations$"));
    set_slice(&mut lab, &web_name(1), 0, ready(&[(4, 1), (5, 2)]));
    lab.pass(62_000);
    assert_eq!(backends(&lab, &web_name(1)).len(), 2);
}

#[test]
fn l41_a_call_that_is_always_refused_starves_nobody_and_drains_go_on() {
    let mut lab = standing();
    refuse(&mut lab, 400, "BadRequest", &pod_ip(66));
    set_slice(&mut lab, &web_name(0), 0, ready(&[(1, 0), (2, 0), (3, 1), (66, 2)]));
    set_slice(&mut lab, &web_name(1), 0, ready(&[(4, 1), (5, 2)]));
    lab.pass(2_000);
    assert_eq!(backends(&lab, &web_name(1)).len(), 2, "the other Service goes on");
    let event = "SyncLoadBalancerFailed".to_owned();
    assert!(reasons(&lab, &web_name(0)).contains(&event), "the one at fault is told");
    delete(&mut lab, "default", &web_name(1));
    delete(&mut lab, "default", &web_name(0));
    rest(&mut lab);
    assert_eq!(container_leftovers(&lab), Vec::<String>::new());
}

#[test]
fn l42_only_what_is_wrong_counts_as_refused() {
    for (status, code, held) in [
        (400, "BadRequest", true),
        (422, "Unprocessable", true),
        (404, "ResourceNotFound", false),
        (409, "AnotherOperationInProgress", false),
        (429, "TooManyRequests", false),
        (500, "InternalServerError", false),
        (503, "ServiceUnavailable", false),
    ] {
        let mut lab = standing();
        refuse(&mut lab, status, code, "10.");
        set_slice(&mut lab, &web_name(1), 0, ready(&[(4, 1), (5, 2)]));
        lab.pass(100);
        assert_eq!(!lab.controller().world().holds.is_empty(), held, "{status} {code}");
        lab.azure.clear_faults();
        rest(&mut lab);
        assert_eq!(backends(&lab, &web_name(1)).len(), 2, "{status} {code}");
    }
}

#[test]
fn l43_what_azure_asks_to_wait_is_waited_whatever_happens() {
    let mut lab = standing();
    let storm = refusal(429, "TooManyRequests", Some(10));
    lab.azure.add_fault(fault(storm, "POST", "updateAddressLocations$"));
    for pod in 0..50 {
        set_slice(&mut lab, &web_name(1), 0, ready(&[(4, 1), (100 + pod, 2)]));
        lab.pass(100);
    }
    assert_eq!(location_posts(&lab), 1, "new triggers do not cut it short");
    rest(&mut lab);
    assert_eq!(location_posts(&lab), 2);
}

fn sent(lab: &Laboratory) -> Vec<Value> {
    let calls = lab.azure.calls().iter();
    let calls = calls.filter(|c| c.path.ends_with("/updateAddressLocations"));
    calls.filter_map(|c| c.body.clone()).collect()
}

#[test]
fn l44_what_goes_is_an_empty_list_and_what_stays_is_not_named() {
    let mut lab = standing();
    set_slice(&mut lab, &web_name(0), 0, ready(&[(1, 0), (3, 1)]));
    set_slice(&mut lab, &web_name(1), 0, ready(&[(4, 1)]));
    rest(&mut lab);
    let pod_gone = json!({"action": "PartialUpdate", "addressLocations": [{
        "addressLocation": location(0), "addressUpdateAction": "PartialUpdate",
        "addresses": [{"address": pod_ip(2), "services": []}]}]});
    assert_eq!(sent(&lab), [pod_gone]);
    lab.azure.clear_calls();
    remove(&mut lab, "nodes", "", &node_name(0));
    rest(&mut lab);
    let node_gone = json!({"action": "PartialUpdate", "addressLocations": [{
        "addressLocation": location(0), "addressUpdateAction": "PartialUpdate",
        "addresses": []}]});
    assert_eq!(sent(&lab), [node_gone]);
}

#[test]
fn l45_a_location_stands_once_in_a_request() {
    let mut lab = standing();
    // Two Services, two slices each, one node, one request.
    for n in 0..2 {
        set_slice(&mut lab, &web_name(n), 5, ready(&[(50 + n, 2), (60 + n, 2)]));
    }
    rest(&mut lab);
    let bodies = sent(&lab);
    let entries = bodies[0]["addressLocations"].as_array().expect("a list");
    let locations: BTreeSet<&str> =
        entries.iter().filter_map(|e| e["addressLocation"].as_str()).collect();
    assert_eq!((bodies.len(), entries.len(), locations.len()), (1, 1, 1));
}

#[test]
fn l46_what_changes_during_a_call_is_the_next_calls() {
    let mut lab = standing();
    lab.azure_latency_ms = 200;
    set_slice(&mut lab, &web_name(0), 0, ready(&[(1, 0), (2, 0), (3, 1), (5, 2)]));
    lab.pass(100);
    set_slice(&mut lab, &web_name(0), 0, ready(&[(1, 0), (2, 0), (6, 2)]));
    rest(&mut lab);
    let mut wanted = vec![pod_ip(1), pod_ip(2), pod_ip(6)];
    wanted.sort();
    assert_eq!(backends(&lab, &web_name(0)), wanted);
    assert_eq!(location_posts(&lab), 2);
}

#[test]
fn l47_the_world_holds_the_whole_table_and_not_the_last_difference() {
    let mut lab = standing();
    set_slice(&mut lab, &web_name(1), 0, ready(&[(4, 1), (5, 2)]));
    rest(&mut lab);
    let table = lab.controller().world().azure.gateway_locations.known().expect("known");
    let addresses: usize = table.values().map(|at| at.len()).sum();
    assert_eq!((table.len(), addresses), (3, 5));
}
