//! How many calls container load balancers cost, and how long things take on the clock of the
//! simulation. The numbers are exact, or bounds that the documents promise.

use crate::support::container::*;
use crate::support::{create, delete, patch};
use serde_json::{Value, json};
use sim::Laboratory;
use std::collections::BTreeMap;

/// Services with so many ready Pods each, spread over the nodes.
fn arrive(lab: &mut Laboratory, services: u32, pods: u32, nodes: u32) {
    for s in 0..services {
        create(lab, web(s));
        for part in 0..pods.div_ceil(100) {
            let (from, to) = (part * 100, pods.min(part * 100 + 100));
            let at: Vec<(u32, u32)> =
                (from..to).map(|p| (s * pods + p, (s * pods + p) % nodes)).collect();
            set_slice(lab, &web_name(s), part, ready(&at));
        }
    }
}

fn quiet(nodes: u32) -> Laboratory {
    let mut lab = resting(nodes);
    lab.azure.clear_calls();
    lab
}

/// So many Services are there, with so many Pods each.
fn arrived(services: u32, pods: u32, nodes: u32) -> Laboratory {
    let mut lab = quiet(nodes);
    arrive(&mut lab, services, pods, nodes);
    rest(&mut lab);
    lab
}

/// So many Services stand, with so many Pods each; calls take 200 ms.
fn standing(services: u32, pods: u32, nodes: u32) -> Laboratory {
    let mut lab = arrived(services, pods, nodes);
    assert_eq!(table(&lab).len() as u32, services * pods);
    // Past the time in which a list is not believed, so that checks do not fall into the test.
    lab.pass(11_000);
    rest(&mut lab);
    lab.azure_latency_ms = 200;
    lab.azure.clear_calls();
    lab
}

/// Lets everything come to rest; gives the time it took.
fn took(lab: &mut Laboratory) -> u64 {
    let start = lab.now_ms;
    rest(lab);
    lab.now_ms - start
}

fn largest_call(lab: &Laboratory) -> usize {
    let bodies = lab.azure.calls().iter().filter_map(|c| c.body.as_ref());
    bodies.map(|b| b.to_string().len()).max().unwrap_or(0)
}

#[test]
fn new_services_cost_two_puts_each_and_a_shared_registration() {
    for n in [1, 7, 50, 100, 101, 250] {
        let mut lab = quiet(10);
        arrive(&mut lab, n, 4, 10);
        rest(&mut lab);
        let n = n as usize;
        assert_eq!(writes_of(&lab, "PUT", "publicIPAddresses"), n);
        assert_eq!(writes_of(&lab, "PUT", "loadBalancers"), n);
        assert!(service_posts(&lab) <= n.div_ceil(100) + 2, "{n}: {}", service_posts(&lab));
        assert!(location_posts(&lab) <= 3, "{n}: {}", location_posts(&lab));
        let (writes, _) = lab.calls();
        assert_eq!(writes, 2 * n + service_posts(&lab) + location_posts(&lab));
        assert_eq!(table(&lab).len(), 4 * n);
    }
}

/// Azure refuses the load balancer of a Service whose Pods come and go. That their addresses are
/// written says nothing of it: it is tried less and less often.
#[test]
fn a_load_balancer_that_is_refused_is_not_tried_more_often_where_pods_come_and_go() {
    let mut lab = arrived(1, 2, 3);
    lab.azure.add_fault(refusing(400, "InvalidRequestFormat", "PUT", "/loadBalancers/").always());
    lab.azure.clear_calls();
    let ports = json!([{"name": "http", "port": 443, "targetPort": 8080, "protocol": "TCP"}]);
    patch(&mut lab, "services", "default", &web_name(0), json!({"spec": {"ports": ports}}));
    for second in 0..118 {
        set_slice(&mut lab, &web_name(0), 0, ready(&[(second % 2, 0)]));
        lab.pass(1_000);
    }
    assert!(location_posts(&lab) > 50, "{} calls with addresses", location_posts(&lab));
    // At once, then after 4, 8, 16 and 32 seconds; the next one comes after another 60.
    let tried = writes_of(&lab, "PUT", "loadBalancers");
    assert!((3..=6).contains(&tried), "it is tried {tried} times in two minutes");
}

/// Azure refuses an address of a Service that is programmed, and stays so while its addresses
/// follow: each attempt comes later than the one before.
#[test]
fn an_address_that_is_refused_is_tried_less_and_less_often() {
    let mut lab = arrived(1, 2, 3);
    let refused = refusing(400, "BadRequest", "POST", "/updateAddressLocations");
    lab.azure.add_fault(refused.on_body(&pod_ip(9)).always());
    lab.azure.clear_calls();
    set_slice(&mut lab, &web_name(0), 0, ready(&[(0, 0), (1, 1), (9, 2)]));
    lab.pass(118_000);
    // At once, then after 4, 8, 16 and 32 seconds; the next one comes after another 60.
    let tried = location_posts(&lab);
    assert!((3..=6).contains(&tried), "it is tried {tried} times in two minutes");
    lab.azure.clear_faults();
    rest(&mut lab);
    assert_eq!(table(&lab).len(), 3);
}

/// Pods of the Service leave all the while, and calls take time: one that was sent while the
/// Service was set aside, and that ends later, has nothing of what was refused.
#[test]
fn a_call_that_outlasts_a_pause_makes_the_next_one_no_shorter() {
    let mut lab = arrived(1, 40, 3);
    let refused = refusing(400, "BadRequest", "POST", "/updateAddressLocations");
    lab.azure.add_fault(refused.on_body(&pod_ip(99)).always());
    lab.azure_latency_ms = 1_500;
    lab.azure.clear_calls();
    for gone in 0..39 {
        let stay = (gone..40).chain([99]).map(|pod| (pod, pod % 3));
        set_slice(&mut lab, &web_name(0), 0, ready(&stay.collect::<Vec<_>>()));
        lab.pass(3_000);
    }
    assert!(location_posts(&lab) > 15, "{} calls with addresses", location_posts(&lab));
    // At once, then after 4, 8, 16 and 32 seconds; the next one comes after another 60.
    let tried = lab.azure.calls().iter().filter(|call| call.status == 400).count();
    assert!((3..=6).contains(&tried), "it is tried {tried} times in two minutes");
}

/// What the condition of a Service says, and since when.
fn condition(lab: &Laboratory) -> (Value, Value) {
    let service = service_of(lab, &web_name(0)).expect("it is there");
    let mut all = service["status"]["conditions"].as_array().into_iter().flatten();
    let own = all.find(|c| c["type"] == "ballast.dev/Programmed").cloned().unwrap_or_default();
    (own["status"].clone(), own["lastTransitionTime"].clone())
}

/// Between two attempts and while one is under way: the Service is not as it asks until Azure takes
/// the address.
#[test]
fn a_service_whose_address_is_refused_is_not_called_programmed_while_it_is_attempted() {
    let mut lab = arrived(1, 2, 3);
    let refused = refusing(400, "BadRequest", "POST", "/updateAddressLocations");
    lab.azure.add_fault(refused.on_body(&pod_ip(9)).always());
    lab.azure_latency_ms = 300;
    set_slice(&mut lab, &web_name(0), 0, ready(&[(0, 0), (1, 1), (9, 2)]));
    lab.pass(3_000);
    let told = condition(&lab);
    assert_eq!(told.0, "False");
    for _ in 0..400 {
        lab.pass(100);
        assert_eq!(condition(&lab), told, "at {} ms", lab.now_ms);
    }
    lab.azure.clear_faults();
    rest(&mut lab);
    assert_eq!(condition(&lab).0, "True");
}

/// A new process cannot read NAT gateways for a while. A Service that is deleted waits for lists
/// that show what the process before may have made for it, and for nothing of egress.
#[test]
fn a_service_is_deleted_while_nat_gateways_cannot_be_read() {
    let mut lab = arrived(1, 2, 3);
    lab.azure.add_fault(refusing(500, "InternalServerError", "GET", "/natGateways$").always());
    lab.restart();
    delete(&mut lab, "default", &web_name(0));
    lab.pass(120_000);
    assert!(service_of(&lab, &web_name(0)).is_none(), "it is still there");
    lab.azure.clear_faults();
    rest(&mut lab);
    assert_eq!(container_leftovers(&lab), [""; 0]);
}

#[test]
fn a_call_keeps_within_the_size_limit() {
    // 50 Services of 500 Pods are 25,000 addresses: more than one call may carry.
    let lab = arrived(50, 500, 50);
    assert_eq!(table(&lab).len(), 25_000);
    assert_eq!(location_posts(&lab), 2, "50,000 entries, 40,000 a call");
    // ARM takes 4 MB; a call stays well below.
    assert!(largest_call(&lab) <= 2_000_000, "{} bytes", largest_call(&lab));
    // And none is cut smaller than it has to be.
    assert!(largest_call(&lab) >= 1_500_000, "{} bytes", largest_call(&lab));
}

#[test]
fn fifty_services_of_a_hundred_pods_with_200_ms_a_call() {
    let mut lab = quiet(100);
    lab.azure_latency_ms = 200;
    arrive(&mut lab, 50, 100, 100);
    let created = took(&mut lab);
    assert!(created <= 1_500, "{created} ms");
    assert!(lab.calls().0 <= 106, "{:?}", lab.calls());
    assert_eq!(table(&lab).len(), 5_000);
    assert_eq!(backends(&lab, &web_name(17)).len(), 100);
    lab.pass(11_000);
    rest(&mut lab);

    lab.azure.clear_calls();
    for s in 0..50 {
        let at: Vec<(u32, u32)> = (0..50).map(|p| (s * 100 + p, (s * 100 + p) % 100)).collect();
        set_slice(&mut lab, &web_name(s), 0, ready(&at));
    }
    took(&mut lab);
    assert!(lab.calls().0 <= 2, "half of the Pods leave: {:?}", lab.calls());
    assert_eq!(table(&lab).len(), 2_500);

    lab.azure.clear_calls();
    (0..50).for_each(|s| delete(&mut lab, "default", &web_name(s)));
    let deleted = took(&mut lab);
    assert!(deleted <= 2_000, "{deleted} ms");
    assert!(lab.calls().0 <= 106, "{:?}", lab.calls());
    assert_eq!(container_leftovers(&lab), Vec::<String>::new());
}

#[test]
fn two_hundred_services_of_five_hundred_pods() {
    let mut lab = quiet(500);
    lab.azure_latency_ms = 200;
    arrive(&mut lab, 200, 500, 500);
    let created = took(&mut lab);
    assert!(created <= 4_000, "{created} ms");
    // 200,000 entries, 40,000 a call.
    assert!(location_posts(&lab) <= 7, "{}", location_posts(&lab));
    assert!(service_posts(&lab) <= 4, "{}", service_posts(&lab));
    assert_eq!(lab.calls().0, 400 + service_posts(&lab) + location_posts(&lab));
    assert_eq!(table(&lab).len(), 100_000);
    lab.azure.clear_calls();
    (0..200).for_each(|s| delete(&mut lab, "default", &web_name(s)));
    let deleted = took(&mut lab);
    assert!(deleted <= 5_000, "{deleted} ms");
    assert_eq!(container_leftovers(&lab), Vec::<String>::new());
}

#[test]
fn one_pod_more_in_quiet_is_one_call() {
    let mut lab = standing(5, 20, 10);
    let mut at: Vec<(u32, u32)> = (0..20).map(|p| (p, p % 10)).collect();
    at.push((9_000, 3));
    set_slice(&mut lab, &web_name(0), 0, ready(&at));
    let took = took(&mut lab);
    assert_eq!(write_log(&lab), ["POST updateAddressLocations"]);
    assert!(lab.calls().1 == 0 && (200..=220).contains(&took), "{took} ms, {:?}", lab.calls());
    assert!(table(&lab).contains_key(&(location(3), pod_ip(9_000))));
}

#[test]
fn one_pod_less_in_quiet_is_one_call() {
    let mut lab = standing(5, 20, 10);
    let at: Vec<(u32, u32)> = (1..20).map(|p| (p, p % 10)).collect();
    set_slice(&mut lab, &web_name(0), 0, ready(&at));
    let took = took(&mut lab);
    assert_eq!(write_log(&lab), ["POST updateAddressLocations"]);
    assert!(lab.calls().1 == 0 && (200..=220).contains(&took), "{took} ms, {:?}", lab.calls());
    assert_eq!(table(&lab).len(), 99);
}

/// When each address was acknowledged, by the log of calls that take 200 ms.
fn acknowledged(lab: &Laboratory) -> BTreeMap<String, u64> {
    let mut found = BTreeMap::new();
    let calls = lab.azure.calls().iter();
    for call in calls.filter(|c| c.path.ends_with("/updateAddressLocations")) {
        let body = call.body.as_ref().expect("it has a body");
        for location in body["addressLocations"].as_array().into_iter().flatten() {
            for address in location["addresses"].as_array().into_iter().flatten() {
                let ip = address["address"].as_str().expect("an address").to_owned();
                found.entry(ip).or_insert(call.t_ms + 200);
            }
        }
    }
    found
}

#[test]
fn a_thousand_pods_ready_within_a_second_take_at_most_seven_calls() {
    let mut lab = standing(1, 1, 20);
    let mut became = BTreeMap::new();
    let mut parts: Vec<Vec<(u32, u32)>> = vec![Vec::new(); 10];
    for pod in 0..1_000_u32 {
        let part = pod / 100;
        parts[part as usize].push((1_000 + pod, pod % 20));
        set_slice(&mut lab, &web_name(0), 1 + part, ready(&parts[part as usize]));
        became.insert(pod_ip(1_000 + pod), lab.now_ms);
        lab.pass(1);
    }
    rest(&mut lab);
    assert!(location_posts(&lab) <= 7, "{}", location_posts(&lab));
    assert_eq!(lab.calls().0, location_posts(&lab));
    let acknowledged = acknowledged(&lab);
    for (address, at) in became {
        let late = acknowledged[&address] - at;
        assert!(late <= 400, "{address} was programmed {late} ms after it was ready");
    }
    assert_eq!(table(&lab).len(), 1_001);
}

#[test]
fn churn_that_ends_where_it_began_calls_nobody() {
    let mut lab = standing(2, 20, 10);
    let all: Vec<(u32, u32)> = (0..20).map(|p| (p, p % 10)).collect();
    for flip in 0..500 {
        let left = if flip % 2 == 0 { &all[5..] } else { &all[..] };
        set_slice(&mut lab, &web_name(0), 0, ready(left));
    }
    took(&mut lab);
    assert_eq!(lab.calls().0, 0);
}

#[test]
fn churn_during_a_call_that_ends_where_it_began_adds_none() {
    let mut lab = standing(2, 20, 10);
    let all: Vec<(u32, u32)> = (0..20).map(|p| (p, p % 10)).collect();
    set_slice(&mut lab, &web_name(1), 0, ready(&[(20, 0)]));
    lab.pass(1);
    for flip in 0..100 {
        let left = if flip % 2 == 0 { &all[5..] } else { &all[..] };
        set_slice(&mut lab, &web_name(0), 0, ready(left));
        lab.pass(1);
    }
    rest(&mut lab);
    assert_eq!(write_log(&lab), ["POST updateAddressLocations"], "that of the other Service");
}

#[test]
fn a_restart_with_nothing_changed_writes_nothing() {
    let mut lab = standing(20, 20, 10);
    create_pod(&mut lab, egress_pod("out", "team-a", &["10.99.0.1"], 1));
    rest(&mut lab);
    lab.azure.clear_calls();
    let told = lab.kubernetes.list("events", None);
    lab.restart();
    rest(&mut lab);
    assert_eq!(lab.kubernetes.list("events", None), told, "nothing new to anybody");
    assert_eq!(lab.calls().0, 0);
    assert_eq!(lab.calls().1, 5, "each list once");
    assert!(lab.controller().plan().is_empty());
}

#[test]
fn a_port_change_is_one_put() {
    let mut lab = standing(3, 5, 5);
    let body = serde_json::json!({"spec": {"ports": [{"port": 443, "targetPort": 8443}]}});
    merge(&mut lab, "services", &web_name(1), kube_emulator::Part::Main, body);
    rest(&mut lab);
    assert_eq!(write_log(&lab), [format!("PUT {}", uid_of(&lab, &web_name(1)))]);
}
