//! Addresses that move, a gateway that somebody else edits, and answers that nobody can trust: what
//! is in between is looked at, not only the end.

use crate::support::container::*;
use crate::support::{create, delete};
use azure_emulator::FaultKind;
use kube_emulator::Part;
use serde_json::{Value, json};
use sim::{Laboratory, Witness};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

fn two_services() -> Laboratory {
    let mut lab = container_laboratory(4);
    create(&mut lab, web(0));
    create(&mut lab, web(1));
    lab
}

/// Counts the states looked at, so that a test cannot pass by looking at none.
fn watch_over(lab: &mut Laboratory) -> Rc<RefCell<u32>> {
    let (old, new) = (uid_of(lab, &web_name(0)), uid_of(lab, &web_name(1)));
    let (at_old, at_new) = (address_of(lab, &web_name(0)), address_of(lab, &web_name(1)));
    let looks = Rc::new(RefCell::new(0));
    let count = Rc::clone(&looks);
    lab.witness = Some(Witness::new(move |_, azure, _| {
        *count.borrow_mut() += 1;
        let table = table_of(azure);
        // Pod 1 was the first Service's, on node 0; now it is the second one's, on node 1.
        let moved = table.get(&(location(1), pod_ip(1)));
        assert!(!moved.is_some_and(|names| names.contains(&old)), "the old Service's traffic");
        let stale = table.get(&(location(0), pod_ip(1)));
        assert!(!stale.is_some_and(|names| names.contains(&new)), "the new one's, too early");
        assert!(moved.is_none() || stale.is_none(), "the address is at two locations");
        let backends = |ip: &Option<String>| -> Vec<String> {
            let traffic = azure.traffic(ip.as_deref().unwrap_or(""), "Tcp", 80);
            traffic.map(|t| t.backends).unwrap_or_default()
        };
        let shared =
            backends(&at_old).contains(&pod_ip(1)) && backends(&at_new).contains(&pod_ip(1));
        assert!(!shared, "both Services send traffic to one address");
    }));
    looks
}

/// The same request, carried out one location after the other in either order, and stopped after
/// each: nobody says how Azure does it.
fn assert_every_order_is_safe(lab: &Laboratory, before: &Table) {
    let mut state = before.clone();
    for call in lab.azure.calls().iter().filter(|c| c.path.ends_with("/updateAddressLocations")) {
        let body = call.body.as_ref().expect("it has a body");
        let homes: BTreeMap<String, BTreeSet<String>> =
            state.keys().fold(BTreeMap::new(), |mut all, (location, address)| {
                let _ = all
                    .entry(address.clone())
                    .or_insert_with(BTreeSet::new)
                    .insert(location.clone());
                all
            });
        for entry in body["addressLocations"].as_array().expect("a list") {
            let location = entry["addressLocation"].as_str().expect("a location").to_owned();
            let addresses = entry["addresses"].as_array().cloned().unwrap_or_default();
            if addresses.is_empty() {
                state.retain(|(at, _), _| *at != location);
            }
            for item in addresses {
                let address = item["address"].as_str().expect("an address").to_owned();
                let names: BTreeSet<String> = item["services"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .filter_map(|n| n.as_str().map(str::to_owned))
                    .collect();
                let elsewhere =
                    homes.get(&address).is_some_and(|at| at.iter().any(|l| *l != location));
                assert!(names.is_empty() || !elsewhere, "{address} is added while it is elsewhere");
                let key = (location.clone(), address);
                if names.is_empty() {
                    state.remove(&key);
                } else {
                    state.insert(key, names);
                }
            }
        }
    }
    assert_eq!(state, table(lab), "the log is the whole story");
}

#[test]
fn an_address_that_moves_to_another_node_within_a_batch_never_has_the_old_services_traffic() {
    for latency_ms in [0, 50, 200] {
        for busy in [false, true] {
            let mut lab = two_services();
            set_slice(&mut lab, &web_name(0), 0, ready(&[(1, 0), (2, 0)]));
            set_slice(&mut lab, &web_name(1), 0, ready(&[(3, 1)]));
            rest(&mut lab);
            lab.azure_latency_ms = latency_ms;
            lab.azure.clear_calls();
            let looks = watch_over(&mut lab);
            let before = table(&lab);
            if busy {
                // A call is under way, so that what follows becomes one batch.
                set_slice(&mut lab, &web_name(1), 1, ready(&[(9, 2)]));
                lab.turn();
            }
            set_slice(&mut lab, &web_name(0), 0, ready(&[(2, 0)]));
            set_slice(&mut lab, &web_name(1), 0, ready(&[(1, 1), (3, 1)]));
            rest(&mut lab);
            assert_eq!(backends(&lab, &web_name(0)), [pod_ip(2)]);
            assert!(backends(&lab, &web_name(1)).contains(&pod_ip(1)));
            assert_eq!(*looks.borrow(), if busy { 3 } else { 2 }, "away first, then there");
            assert_every_order_is_safe(&lab, &before);
        }
    }
}

#[test]
fn slices_may_tell_of_a_moved_address_in_either_order() {
    for new_first in [false, true] {
        let mut lab = two_services();
        set_slice(&mut lab, &web_name(0), 0, ready(&[(1, 0), (2, 0)]));
        set_slice(&mut lab, &web_name(1), 0, ready(&[(3, 1)]));
        rest(&mut lab);
        lab.azure_latency_ms = 50;
        watch_over(&mut lab);
        let after = [(0, vec![(2, 0)]), (1, vec![(1, 1), (3, 1)])];
        let order = if new_first { [1, 0] } else { [0, 1] };
        for at in order {
            set_slice(&mut lab, &web_name(after[at].0), 0, ready(&after[at].1));
            lab.pass(10);
        }
        rest(&mut lab);
        assert_eq!(backends(&lab, &web_name(0)), [pod_ip(2)]);
        assert!(backends(&lab, &web_name(1)).contains(&pod_ip(1)));
    }
}

#[test]
fn a_hundred_addresses_swap_nodes_at_once() {
    let mut lab = two_services();
    let at = |shift: u32| -> Vec<(u32, u32)> { (0..100).map(|p| (p, (p + shift) % 4)).collect() };
    set_slice(&mut lab, &web_name(0), 0, ready(&at(0)));
    rest(&mut lab);
    lab.azure_latency_ms = 200;
    lab.azure.clear_calls();
    let before = table(&lab);
    set_slice(&mut lab, &web_name(0), 0, ready(&at(1)));
    rest(&mut lab);
    assert_eq!(location_posts(&lab), 2, "away, then there");
    assert_every_order_is_safe(&lab, &before);
}

/// Somebody else writes one of the tables.
fn meddle(lab: &mut Laboratory, action: &str, body: Value) {
    write_table(lab, action, body);
    lab.azure.clear_calls();
}

fn standing() -> Laboratory {
    let mut lab = two_services();
    set_slice(&mut lab, &web_name(0), 0, ready(&[(1, 0), (2, 1)]));
    set_slice(&mut lab, &web_name(1), 0, ready(&[(3, 1)]));
    rest(&mut lab);
    // Just after a check, and past the time in which our own writes are believed.
    lab.pass(130_000);
    rest(&mut lab);
    lab.azure.clear_calls();
    lab
}

/// The drift check's interval.
const INTERVAL_MS: u64 = 120_000;

#[test]
fn an_address_that_somebody_takes_away_is_back_after_an_interval() {
    let mut lab = standing();
    let whole = table(&lab);
    meddle(&mut lab, "updateAddressLocations", entry(&location(0), &pod_ip(1), &[]));
    assert_eq!(backends(&lab, &web_name(0)), [pod_ip(2)]);
    lab.pass(INTERVAL_MS + 1_000);
    assert_eq!(table(&lab), whole);
    assert_eq!(write_log(&lab), ["POST updateAddressLocations"]);
}

#[test]
fn an_address_that_somebody_adds_is_gone_after_an_interval() {
    let mut lab = standing();
    let whole = table(&lab);
    let uid = uid_of(&lab, &web_name(1));
    meddle(&mut lab, "updateAddressLocations", entry(&location(2), "10.250.0.1", &[&uid]));
    assert_eq!(backends(&lab, &web_name(1)).len(), 2);
    lab.pass(INTERVAL_MS + 1_000);
    assert_eq!(table(&lab), whole);
    assert_eq!(write_log(&lab), ["POST updateAddressLocations"]);
}

#[test]
fn a_registration_that_somebody_takes_away_is_back_after_an_interval() {
    let mut lab = standing();
    let whole = table(&lab);
    let uid = uid_of(&lab, &web_name(1));
    meddle(&mut lab, "updateAddressLocations", entry(&location(1), &pod_ip(3), &[]));
    let gone = json!({"isDelete": true, "service": {"name": uid, "properties": {}}});
    let body = json!({"action": "PartialUpdate", "serviceRequests": [gone]});
    meddle(&mut lab, "updateServices", body);
    assert!(!registered(&lab).contains(&uid));
    lab.pass(INTERVAL_MS + 5_000);
    assert!(registered(&lab).contains(&uid));
    assert_eq!(table(&lab), whole);
    assert_eq!(backends(&lab, &web_name(1)), [pod_ip(3)]);
}

#[test]
fn a_pool_that_somebody_detaches_is_back_after_an_interval() {
    let mut lab = standing();
    let uid = uid_of(&lab, &web_name(1));
    let service = json!({"name": uid, "properties": {"loadBalancerBackendPools": []}});
    let request = json!({"isDelete": false, "service": service});
    let body = json!({"action": "PartialUpdate", "serviceRequests": [request]});
    meddle(&mut lab, "updateServices", body);
    assert_eq!(backends(&lab, &web_name(1)), Vec::<String>::new());
    lab.pass(INTERVAL_MS + 5_000);
    assert_eq!(backends(&lab, &web_name(1)), [pod_ip(3)]);
}

#[test]
fn both_tables_are_read_once_an_interval_and_not_more_often() {
    let mut lab = standing();
    lab.pass(10 * INTERVAL_MS);
    assert_eq!(lab.calls().0, 0);
    assert_eq!(posts(&lab, "/services"), 10);
    assert_eq!(posts(&lab, "/addressLocations"), 10);
}

#[test]
fn after_an_answer_that_nobody_heard_both_tables_are_read() {
    for (kind, writes) in [
        (FaultKind::AppliedThenReset, 1),
        (FaultKind::ConnectionResetBefore, 2),
        (refusal(500, "InternalServerError", None), 2),
        (FaultKind::GatewayAcceptedThenFails { code: "InternalServerError".to_owned() }, 2),
    ] {
        let mut lab = standing();
        lab.azure.add_fault(fault(kind.clone(), "POST", "updateAddressLocations$"));
        set_slice(&mut lab, &web_name(0), 0, ready(&[(1, 0), (2, 1), (4, 2)]));
        rest(&mut lab);
        assert_eq!(location_posts(&lab), writes, "{kind:?}");
        assert_eq!(posts(&lab, "/addressLocations"), 1, "{kind:?}: it is read");
        assert_eq!(backends(&lab, &web_name(0)).len(), 3);
    }
}

#[test]
fn an_address_whose_addition_nobody_acknowledged_is_taken_away_when_its_pod_goes() {
    let mut lab = standing();
    lab.azure.add_fault(fault(FaultKind::AppliedThenReset, "POST", "updateAddressLocations$"));
    set_slice(&mut lab, &web_name(0), 0, ready(&[(1, 0), (2, 1), (4, 2)]));
    lab.turn();
    set_slice(&mut lab, &web_name(0), 0, ready(&[(1, 0), (2, 1)]));
    rest(&mut lab);
    assert_eq!(table(&lab).len(), 3);
    delete(&mut lab, "default", &web_name(0));
    rest(&mut lab);
    assert_eq!(backends(&lab, &web_name(1)), [pod_ip(3)]);
    assert_eq!(table(&lab).len(), 1);
}

/// Both tables are unknown while one of them still is being written: reading it then brings
/// nothing that counts, and used to be repeated without a pause.
#[test]
fn a_table_that_is_being_written_is_not_read_over_and_over() {
    let mut lab = standing();
    lab.azure.options_mut().lro_ms = 5_000;
    lab.azure.add_fault(fault(FaultKind::GatewayAccepted, "POST", "updateAddressLocations$"));
    lab.azure.add_fault(fault(FaultKind::AppliedThenReset, "POST", "updateServices$"));
    set_slice(&mut lab, &web_name(0), 0, ready(&[(1, 0), (2, 1), (4, 2)]));
    create(&mut lab, web(2));
    lab.azure_latency_ms = 1;
    lab.pass(30_000);
    rest(&mut lab);
    assert!(posts(&lab, "/addressLocations") <= 4, "{}", posts(&lab, "/addressLocations"));
    assert!(address_of(&lab, &web_name(2)).is_some());
}

/// The write that has put addresses back is not acknowledged yet, and the Service goes: nothing
/// of it is taken away before it is known what the table lists.
#[test]
fn nothing_goes_while_addresses_are_in_flight() {
    let mut lab = standing();
    lab.azure_latency_ms = 500;
    set_slice(&mut lab, &web_name(0), 0, Vec::new());
    lab.turn();
    // The table is being emptied; the Service goes before that is acknowledged.
    delete(&mut lab, "default", &web_name(0));
    lab.pass(400);
    assert_eq!(write_log(&lab), ["POST updateAddressLocations"], "nothing more yet");
    rest(&mut lab);
    assert_eq!(registered(&lab).len(), 2);

    // The same with the only address on its way in: the table as we know it lists nothing.
    let mut lab = standing();
    set_slice(&mut lab, &web_name(0), 0, Vec::new());
    rest(&mut lab);
    lab.azure.clear_calls();
    lab.azure_latency_ms = 500;
    set_slice(&mut lab, &web_name(0), 0, ready(&[(4, 2)]));
    lab.turn();
    delete(&mut lab, "default", &web_name(0));
    lab.pass(400);
    assert_eq!(write_log(&lab), ["POST updateAddressLocations"], "nothing more yet");
    rest(&mut lab);
    let refused = lab.azure.calls().iter().filter(|c| c.code.is_some()).count();
    assert_eq!(refused, 0, "Azure never had to refuse anything");
    assert_eq!(registered(&lab).len(), 2);
}

#[test]
fn an_egress_gateway_with_only_a_public_ip_goes_when_its_pod_changes_its_mind() {
    for (crash, label) in [(false, "team-b"), (true, "team-b"), (false, ""), (true, "")] {
        let mut lab = resting(2);
        lab.azure_latency_ms = 100;
        create_pod(&mut lab, egress_pod("out", "team-a", &["10.99.0.1"], 1));
        lab.pass(50);
        assert_eq!(write_log(&lab), ["PUT team-a-pip"]);
        let labels = json!({"metadata": {"labels": {EGRESS: label}}});
        merge(&mut lab, "pods", "out", Part::Main, labels);
        if crash {
            lab.restart();
        }
        lab.pass(30_000);
        rest(&mut lab);
        let pip = |name: &str| {
            lab.azure.resource(&crate::support::network(&format!("publicIPAddresses/{name}")))
        };
        assert_eq!(pip("team-a-pip"), None, "crash: {crash}, label {label:?}");
        let pod = pod_of(&lab, "out").expect("it is there");
        assert_eq!(has_finalizer(&pod, POD_FINALIZER), !label.is_empty());
        let marks = pod["metadata"]["annotations"]["ballast.dev/egress-gateways"].as_str();
        assert_eq!(marks.unwrap_or(""), label);
    }
}
