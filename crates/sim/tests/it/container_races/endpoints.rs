//! Endpoints: which addresses, at which node, for whom.

use crate::support::container::*;
use crate::support::{create, delete, node, patch};
use kube_emulator::Part;
use serde_json::{Value, json};
use sim::Laboratory;

fn coming() -> Laboratory {
    let mut lab = resting(3);
    lab.azure_latency_ms = 100;
    create(&mut lab, web(0));
    lab
}

fn standing() -> Laboratory {
    let mut lab = coming();
    set_slice(&mut lab, &web_name(0), 0, ready(&[(1, 0), (2, 1)]));
    rest(&mut lab);
    lab.azure.clear_calls();
    lab
}

fn at(lab: &Laboratory) -> Vec<(String, String)> {
    table(lab).into_keys().collect()
}

fn spot(node: u32, pod: u32) -> (String, String) {
    (location(node), pod_ip(pod))
}

#[test]
fn l26_added_and_removed_while_the_service_is_made_is_removed() {
    let mut lab = coming();
    set_slice(&mut lab, &web_name(0), 0, ready(&[(1, 0), (2, 1)]));
    lab.pass(120);
    set_slice(&mut lab, &web_name(0), 0, ready(&[(2, 1)]));
    rest(&mut lab);
    assert_eq!(at(&lab), [spot(1, 2)]);
}

#[test]
fn l27_an_address_added_while_the_service_goes_is_not_published() {
    for ms in (0..500).step_by(50) {
        let mut lab = standing();
        delete(&mut lab, "default", &web_name(0));
        lab.pass(ms);
        if service_of(&lab, &web_name(0)).is_some() {
            set_slice(&mut lab, &web_name(0), 1, ready(&[(7, 2)]));
        }
        rest(&mut lab);
        assert_eq!(at(&lab), []);
        let sent = lab.azure.calls().iter().filter_map(|c| c.body.as_ref());
        assert!(sent.into_iter().all(|b| !b.to_string().contains(&pod_ip(7))));
    }
}

#[test]
fn l28_updates_during_the_deletion_count_only_if_it_is_wanted_again() {
    let mut lab = standing();
    patch(&mut lab, "services", "default", &web_name(0), json!({"spec": {"type": "ClusterIP"}}));
    lab.pass(250);
    set_slice(&mut lab, &web_name(0), 0, ready(&[(3, 2)]));
    lab.pass(50);
    assert!(!at(&lab).contains(&spot(2, 3)));
    let again = json!({"spec": {"type": "LoadBalancer"}});
    patch(&mut lab, "services", "default", &web_name(0), again);
    rest(&mut lab);
    assert_eq!(at(&lab), [spot(2, 3)]);
}

#[test]
fn l29_endpoints_of_other_services_are_nobodys() {
    let mut lab = standing();
    let mut service = web(1);
    service["spec"]["type"] = json!("ClusterIP");
    create(&mut lab, service);
    for part in 0..5 {
        set_slice(&mut lab, &web_name(1), part, ready(&[(10 + part, 0)]));
        rest(&mut lab);
    }
    assert_eq!(at(&lab).len(), 2);
    assert_eq!(lab.calls(), (0, 0));
}

#[test]
fn l30_an_address_whose_node_was_not_known_comes_with_its_node() {
    let mut lab = standing();
    set_slice(&mut lab, &web_name(0), 0, ready(&[(1, 0), (2, 1), (9, 7)]));
    rest(&mut lab);
    assert_eq!(at(&lab).len(), 2);
    create(&mut lab, node(7));
    rest(&mut lab);
    assert!(at(&lab).contains(&spot(7, 9)));
}

#[test]
fn l31_a_node_that_is_looked_at_again_does_not_bring_a_removed_address_back() {
    let mut lab = standing();
    set_slice(&mut lab, &web_name(0), 0, ready(&[(2, 1)]));
    lab.turn();
    let labels = json!({"metadata": {"labels": {"a": "b"}}});
    merge(&mut lab, "nodes", &node_name(0), Part::Main, labels);
    create(&mut lab, node(8));
    rest(&mut lab);
    assert_eq!(at(&lab), [spot(1, 2)]);
}

fn readdress(lab: &mut Laboratory, index: u32, addresses: &[&str]) {
    let list: Vec<Value> =
        addresses.iter().map(|ip| json!({"type": "InternalIP", "address": ip})).collect();
    let body = json!({"status": {"addresses": list}});
    merge(lab, "nodes", &node_name(index), Part::Status, body);
}

#[test]
fn l32_a_node_with_another_address_takes_its_pods_along() {
    let mut lab = standing();
    readdress(&mut lab, 0, &["10.224.9.9"]);
    rest(&mut lab);
    assert_eq!(at(&lab), [spot(1, 2), ("10.224.9.9".to_owned(), pod_ip(1))]);
}

#[test]
fn l33_the_family_is_that_of_the_address_and_not_of_the_slice() {
    let mut lab = standing();
    set_slice(&mut lab, &web_name(0), 0, vec![endpoint("fd12::7", 2, true)]);
    rest(&mut lab);
    assert_eq!(at(&lab), [("fd00::6".to_owned(), "fd12::7".to_owned())]);
}

#[test]
fn l34_a_pod_that_moved_leaves_its_old_node() {
    let mut lab = standing();
    set_slice(&mut lab, &web_name(0), 0, ready(&[(1, 2), (2, 1)]));
    rest(&mut lab);
    assert_eq!(at(&lab), [spot(1, 2), spot(2, 1)]);
    assert_eq!(location_posts(&lab), 2);
}

#[test]
fn l35_endpoints_that_are_not_ready_are_left_out_at_the_start_too() {
    let mut lab = coming();
    let endpoints = vec![endpoint(&pod_ip(1), 0, false), endpoint(&pod_ip(2), 1, true)];
    set_slice(&mut lab, &web_name(0), 0, endpoints);
    rest(&mut lab);
    assert_eq!(at(&lab), [spot(1, 2)]);
    lab.restart();
    rest(&mut lab);
    assert_eq!(at(&lab), [spot(1, 2)]);
}

#[test]
fn l36_what_is_no_address_spoils_nothing() {
    let mut lab = coming();
    let mut endpoints = ready(&[(1, 0)]);
    endpoints.extend([
        endpoint("db.example.com", 1, true),
        endpoint("10.64.0.300", 1, true),
        endpoint("", 1, true),
        json!({"addresses": [pod_ip(5)], "conditions": {"ready": true}}),
    ]);
    set_slice(&mut lab, &web_name(0), 0, endpoints);
    rest(&mut lab);
    assert_eq!(at(&lab), [spot(0, 1)]);
}

#[test]
fn l37_of_several_node_addresses_the_same_is_chosen_whenever_it_is_asked() {
    let mut lab = standing();
    readdress(&mut lab, 0, &["10.224.9.9", "10.224.10.1", "10.224.2.7"]);
    rest(&mut lab);
    let seen = at(&lab);
    readdress(&mut lab, 0, &["10.224.2.7", "10.224.9.9", "10.224.10.1"]);
    rest(&mut lab);
    assert_eq!(at(&lab), seen);
    lab.azure.clear_calls();
    lab.restart();
    rest(&mut lab);
    assert_eq!((at(&lab), lab.calls().0), (seen, 0));
}

#[test]
fn l38_other_spellings_of_an_ipv6_address_are_the_same_address() {
    let mut lab = standing();
    lab.azure.options_mut().odd_ipv6 = azure_emulator::Switch::On;
    set_slice(&mut lab, &web_name(0), 0, vec![endpoint("FD12:0:0:0:0:0:0:A", 2, true)]);
    rest(&mut lab);
    assert_eq!(at(&lab), [("fd00::6".to_owned(), "fd12::a".to_owned())]);
    lab.azure.clear_calls();
    set_slice(&mut lab, &web_name(0), 0, vec![endpoint("fd12::a", 2, true)]);
    lab.restart();
    rest(&mut lab);
    assert_eq!(lab.calls().0, 0);
}
