//! Egress Pods, their gateways and finalizers.

use crate::support::container::*;
use crate::support::{create, network};
use azure_emulator::Request;
use kube_emulator::{Failure, Fault as KubernetesFault, Method, Part};
use serde_json::json;
use sim::Laboratory;

const V4: &str = "10.99.0.1";
const V6: &str = "fd12::1";

fn empty() -> Laboratory {
    let mut lab = resting(3);
    lab.azure_latency_ms = 100;
    lab
}

/// Pods of team-a by name and addresses, all on node 1, programmed.
fn with(pods: &[(&str, &[&str])]) -> Laboratory {
    let mut lab = empty();
    for (name, addresses) in pods {
        create_pod(&mut lab, egress_pod(name, "team-a", addresses, 1));
    }
    rest(&mut lab);
    lab.azure.clear_calls();
    lab
}

fn nat(lab: &Laboratory, name: &str) -> bool {
    lab.azure.resource(&network(&format!("natGateways/{name}"))).is_some()
}

fn names_at(lab: &Laboratory, node: &str, ip: &str) -> Vec<String> {
    let found = table(lab).get(&(node.to_owned(), ip.to_owned())).cloned();
    found.unwrap_or_default().into_iter().collect()
}

fn label(lab: &mut Laboratory, pod: &str, value: &serde_json::Value) {
    let labels = json!({"metadata": {"labels": {EGRESS: value}}});
    merge(lab, "pods", pod, Part::Main, labels);
}

fn addresses(lab: &mut Laboratory, pod: &str, ips: &[&str]) {
    let list: Vec<serde_json::Value> = ips.iter().map(|ip| json!({"ip": ip})).collect();
    let status = json!({"status": {"podIP": ips.first(), "podIPs": list}});
    merge(lab, "pods", pod, Part::Status, status);
}

fn assert_clean(lab: &Laboratory) {
    assert_eq!(container_leftovers(lab), Vec::<String>::new());
    assert_eq!(lab.kubernetes.list("pods", None).len(), 0);
}

#[test]
fn l65_a_finalizer_stays_while_azure_lists_an_address() {
    for cleared in [false, true] {
        let mut lab = with(&[("a", &[V4]), ("b", &["10.99.0.2"])]);
        if cleared {
            addresses(&mut lab, "a", &[]);
        }
        remove(&mut lab, "pods", "default", "a");
        lab.azure.add_fault(
            refusing(503, "ServiceUnavailable", "POST", "updateAddressLocations$").always(),
        );
        lab.pass(30_000);
        assert_eq!(names_at(&lab, &location(1), V4), ["team-a"]);
        assert!(pod_of(&lab, "a").is_some(), "cleared: {cleared}");
        lab.azure.clear_faults();
        rest(&mut lab);
        assert!(pod_of(&lab, "a").is_none() && nat(&lab, "team-a"));
    }
}

#[test]
fn l66_a_pod_of_two_families_is_let_go_after_both() {
    let mut lab = with(&[("a", &[V4, V6]), ("b", &["10.99.0.2"])]);
    assert_eq!(names_at(&lab, "fd00::5", V6), ["team-a"]);
    remove(&mut lab, "pods", "default", "a");
    while pod_of(&lab, "a").is_some() {
        lab.pass(10);
    }
    assert!(
        names_at(&lab, &location(1), V4).is_empty() && names_at(&lab, "fd00::5", V6).is_empty()
    );
    assert!(nat(&lab, "team-a"), "it was not the last one");
}

#[test]
fn l67_each_family_is_at_the_node_address_of_its_own() {
    let lab = with(&[("a", &[V6, V4])]);
    let places: Vec<(String, String)> = table(&lab).into_keys().collect();
    let place = |a: &str, b: &str| (a.to_owned(), b.to_owned());
    assert_eq!(places, [place(&location(1), V4), place("fd00::5", V6)]);
}

#[test]
fn l68_a_pod_that_replaces_one_of_its_name_is_not_drained_for_it() {
    let mut lab = with(&[("a", &[V4]), ("b", &["10.99.0.2"])]);
    remove(&mut lab, "pods", "default", "a");
    while pod_of(&lab, "a").is_some() {
        lab.pass(10);
    }
    create_pod(&mut lab, egress_pod("a", "team-a", &[V4], 2));
    rest(&mut lab);
    assert_eq!(names_at(&lab, &location(2), V4), ["team-a"]);
    let pod = pod_of(&lab, "a").expect("it is there");
    assert!(has_finalizer(&pod, POD_FINALIZER));
}

#[test]
fn l69_a_living_pod_that_moves_keeps_its_finalizer() {
    let mut lab = with(&[("a", &[V4]), ("b", &["10.99.0.2"])]);
    addresses(&mut lab, "a", &["10.99.0.7"]);
    for _ in 0..40 {
        lab.pass(10);
        assert!(has_finalizer(&pod_of(&lab, "a").expect("it is there"), POD_FINALIZER));
    }
    label(&mut lab, "a", &json!("team-b"));
    for _ in 0..100 {
        lab.pass(10);
        assert!(has_finalizer(&pod_of(&lab, "a").expect("it is there"), POD_FINALIZER));
    }
    rest(&mut lab);
    assert_eq!(names_at(&lab, &location(1), "10.99.0.7"), ["team-b"]);
}

#[test]
fn l70_the_only_pod_may_change_its_addresses_without_losing_its_gateway() {
    let mut lab = with(&[("a", &[V4])]);
    let out = lab.azure.egress(V4);
    for ips in [&[][..], &["10.99.0.7"], &["10.99.0.7", V6], &[V6], &[V4]] {
        addresses(&mut lab, "a", ips);
        rest(&mut lab);
        assert!(nat(&lab, "team-a"), "{ips:?}");
    }
    assert_eq!(lab.azure.egress(V4), out);
}

#[test]
fn l71_deleted_twice_is_deleted_once() {
    let mut lab = with(&[("a", &[V4]), ("b", &["10.99.0.2"])]);
    remove(&mut lab, "pods", "default", "a");
    lab.turn();
    remove(&mut lab, "pods", "default", "a");
    lab.kubernetes.compact();
    rest(&mut lab);
    assert!(nat(&lab, "team-a"));
    assert_eq!(names_at(&lab, &location(1), "10.99.0.2"), ["team-a"]);
}

#[test]
fn l72_a_pod_that_goes_before_anything_was_made_leaves_nothing_to_clean() {
    let mut lab = empty();
    create_pod(&mut lab, egress_pod("a", "team-a", &[V4], 1));
    remove(&mut lab, "pods", "default", "a");
    rest(&mut lab);
    assert_eq!(lab.calls().0, 0);
    assert_clean(&lab);
}

#[test]
fn l73_the_last_pod_may_go_at_any_moment_of_the_making() {
    for failing in [false, true] {
        for ms in (0..700).step_by(50) {
            let mut lab = empty();
            if failing {
                lab.azure.add_fault(refusing(
                    500,
                    "InternalServerError",
                    "PUT",
                    "natGateways/team-a",
                ));
            }
            create_pod(&mut lab, egress_pod("a", "team-a", &[V4], 1));
            lab.pass(ms);
            remove(&mut lab, "pods", "default", "a");
            rest(&mut lab);
            assert_clean(&lab);
        }
    }
}

#[test]
fn l74_a_pod_that_comes_while_its_gateway_goes_has_a_gateway() {
    for ms in (0..900).step_by(50) {
        let mut lab = with(&[("a", &[V4])]);
        remove(&mut lab, "pods", "default", "a");
        lab.pass(ms);
        create_pod(&mut lab, egress_pod("b", "team-a", &["10.99.0.2"], 2));
        rest(&mut lab);
        check(&lab, &format!("after {ms} ms"));
        assert_eq!(names_at(&lab, &location(2), "10.99.0.2"), ["team-a"], "after {ms} ms");
    }
}

#[test]
fn l75_a_deletion_that_is_found_at_the_start_is_not_called_off_half_way() {
    for ms in (0..700).step_by(50) {
        let mut lab = with(&[("a", &[V4])]);
        remove(&mut lab, "pods", "default", "a");
        lab.pass(ms);
        lab.restart();
        lab.pass(60);
        create_pod(&mut lab, egress_pod("b", "team-a", &["10.99.0.2"], 2));
        lab.pass(30_000);
        rest(&mut lab);
        check(&lab, &format!("after {ms} ms"));
        assert!(pod_of(&lab, "a").is_none());
    }
}

#[test]
fn l76_the_last_pod_is_let_go_after_its_gateway_and_no_other_gateways() {
    let mut lab = with(&[("a", &[V4])]);
    create_pod(&mut lab, egress_pod("other", "team-b", &["10.99.0.9"], 2));
    rest(&mut lab);
    lab.azure
        .add_fault(refusing(500, "InternalServerError", "DELETE", "natGateways/team-a").times(2));
    remove(&mut lab, "pods", "default", "a");
    while nat(&lab, "team-a") {
        assert!(pod_of(&lab, "a").is_some(), "it was let go before its gateway");
        lab.pass(10);
    }
    rest(&mut lab);
    assert!(pod_of(&lab, "a").is_none());
    assert!(has_finalizer(&pod_of(&lab, "other").expect("it is there"), POD_FINALIZER));
}

#[test]
fn l77_a_last_pod_that_ends_late_is_not_forgotten() {
    for ms in (0..900).step_by(50) {
        let mut lab = with(&[("a", &[V4]), ("b", &["10.99.0.2"])]);
        remove(&mut lab, "pods", "default", "a");
        lab.pass(ms);
        remove(&mut lab, "pods", "default", "b");
        rest(&mut lab);
        assert_clean(&lab);
    }
}

#[test]
fn l78_a_finalizer_that_cannot_be_taken_off_is_tried_until_it_can() {
    let mut lab = with(&[("a", &[V4])]);
    let failing = KubernetesFault::next(Failure::Unavailable).on_kind("pods");
    lab.kubernetes.inject(failing.on_method(Method::Patch).times(8));
    remove(&mut lab, "pods", "default", "a");
    lab.pass(300_000);
    rest(&mut lab);
    assert_clean(&lab);
}

#[test]
fn l79_a_finalizer_that_cannot_be_put_on_holds_nobody_else_up_and_is_told() {
    let mut lab = empty();
    let failing = KubernetesFault::next(Failure::Internal).on_kind("pods").on_name("a");
    lab.kubernetes.inject(failing.on_method(Method::Patch).times(5));
    create_pod(&mut lab, egress_pod("a", "team-a", &[V4], 1));
    create_pod(&mut lab, egress_pod("b", "team-a", &["10.99.0.2"], 1));
    lab.pass(2_000);
    assert_eq!(names_at(&lab, &location(1), "10.99.0.2"), ["team-a"]);
    assert_eq!(names_at(&lab, &location(1), V4), Vec::<String>::new());
    assert_eq!(reasons(&lab, "a"), Vec::<String>::new());
    lab.pass(4_000);
    // It is published without, rather than to leave by another gateway for good.
    assert_eq!(names_at(&lab, &location(1), V4), ["team-a"]);
    assert!(!has_finalizer(&pod_of(&lab, "a").expect("it is there"), POD_FINALIZER));
    rest(&mut lab);
    assert_eq!(reasons(&lab, "a"), ["ServiceGatewayFinalizerAddFailed"], "once");
    assert!(has_finalizer(&pod_of(&lab, "a").expect("it is there"), POD_FINALIZER));
    check(&lab, "in the end");
}

#[test]
fn l79_a_pod_that_never_got_its_finalizer_leaves_no_address_behind() {
    let mut lab = empty();
    let failing = KubernetesFault::next(Failure::Internal).on_kind("pods").on_name("a");
    lab.kubernetes.inject(failing.on_method(Method::Patch).times(1_000));
    create_pod(&mut lab, egress_pod("a", "team-a", &[V4], 1));
    lab.pass(10_000);
    assert_eq!(names_at(&lab, &location(1), V4), ["team-a"]);
    remove(&mut lab, "pods", "default", "a");
    lab.pass(30_000);
    rest(&mut lab);
    assert_clean(&lab);
}

#[test]
fn l80_a_label_that_is_emptied_or_taken_off_takes_the_finalizer_along() {
    for value in [json!(""), json!(null)] {
        for unseen in [false, true] {
            let mut lab = with(&[("a", &[V4])]);
            if unseen {
                lab.restart();
            }
            label(&mut lab, "a", &value);
            if unseen {
                lab.kubernetes.compact();
            }
            lab.pass(30_000);
            rest(&mut lab);
            let pod = pod_of(&lab, "a").expect("it stays");
            assert!(!has_finalizer(&pod, POD_FINALIZER), "{value} unseen: {unseen}");
            assert_eq!(container_leftovers(&lab), Vec::<String>::new());
        }
    }
}

#[test]
fn l81_a_deletion_that_no_event_told_is_seen() {
    let mut lab = with(&[("a", &[V4])]);
    remove(&mut lab, "pods", "default", "a");
    lab.kubernetes.compact();
    rest(&mut lab);
    assert_clean(&lab);
}

#[test]
fn l82_the_clusters_own_way_out_cannot_be_asked_for() {
    let mut lab = empty();
    for (n, name) in ["default-natgw", "Default-NatGW", "DEFAULT-NATGW"].iter().enumerate() {
        let pod = format!("p{n}");
        create_pod(&mut lab, egress_pod(&pod, name, &[&format!("10.99.0.{n}")], 1));
        rest(&mut lab);
        assert_eq!(reasons(&lab, &pod), ["ServiceGatewayReservedEgressLabel"]);
        remove(&mut lab, "pods", "default", &pod);
    }
    rest(&mut lab);
    assert_eq!(lab.calls().0, 0);
    assert!(nat(&lab, "default-natgw"));
}

#[test]
fn l83_a_label_that_cannot_be_a_name_makes_no_call() {
    let mut lab = empty();
    for (n, name) in ["a.-", "-a", "a.", "_a"].iter().enumerate() {
        let mut pod = egress_pod(&format!("p{n}"), "x", &[&format!("10.99.0.{n}")], 1);
        pod["metadata"]["labels"][EGRESS] = json!(name);
        let now = lab.now_ms;
        // The API server itself refuses most of them.
        let _ = lab.kubernetes.create(pod, now);
    }
    rest(&mut lab);
    assert_eq!(lab.calls().0, 0);
}

#[test]
fn l84_a_services_uid_as_a_label_takes_nothing_over() {
    let mut lab = empty();
    create(&mut lab, web(0));
    set_slice(&mut lab, &web_name(0), 0, ready(&[(1, 0)]));
    rest(&mut lab);
    let uid = uid_of(&lab, &web_name(0));
    create_pod(&mut lab, egress_pod("a", &uid, &[V4], 1));
    rest(&mut lab);
    lab.restart();
    rest(&mut lab);
    assert_eq!(reasons(&lab, "a")[0], "ServiceGatewayInvalidEgressLabel");
    assert_eq!(backends(&lab, &web_name(0)), [pod_ip(1)]);
    remove(&mut lab, "pods", "default", "a");
    rest(&mut lab);
    assert_eq!(backends(&lab, &web_name(0)), [pod_ip(1)]);
}

#[test]
fn l85_losing_the_way_out_does_not_lose_the_way_in() {
    let mut lab = empty();
    create(&mut lab, web(0));
    set_slice(&mut lab, &web_name(0), 0, vec![endpoint(V4, 1, true)]);
    create_pod(&mut lab, egress_pod("a", "team-a", &[V4], 1));
    rest(&mut lab);
    assert_eq!(names_at(&lab, &location(1), V4).len(), 2);
    label(&mut lab, "a", &json!(null));
    rest(&mut lab);
    assert_eq!(names_at(&lab, &location(1), V4), [uid_of(&lab, &web_name(0))]);
    assert_eq!(backends(&lab, &web_name(0)), [V4]);
}

#[test]
fn l86_letters_of_a_label_do_not_count_nor_does_saying_it_twice() {
    let mut lab = empty();
    for (n, name) in ["Team-A", "team-a", "TEAM-A"].iter().enumerate() {
        let (pod, ip) = (format!("p{n}"), format!("10.99.0.{n}"));
        create_pod(&mut lab, egress_pod(&pod, name, &[&ip], 1));
    }
    rest(&mut lab);
    assert_eq!(writes_of(&lab, "PUT", "natGateways"), 1);
    for n in 0..3 {
        assert!(nat(&lab, "team-a"), "{n} are gone");
        remove(&mut lab, "pods", "default", &format!("p{n}"));
        rest(&mut lab);
    }
    assert_clean(&lab);
}

#[test]
fn l87_a_gateway_that_stands_is_not_written_again() {
    let mut lab = with(&[("a", &[V4])]);
    create_pod(&mut lab, egress_pod("b", "team-a", &["10.99.0.2"], 2));
    rest(&mut lab);
    assert_eq!(write_log(&lab), ["POST updateAddressLocations"]);
    let before = lab.controller().counts().writes;
    lab.pass(600_000);
    assert_eq!(lab.controller().counts().writes, before);
    let path = format!("{}/services?api-version=2025-05-01", gateway_id());
    let now = lab.now_ms;
    assert_eq!(lab.azure.handle(Request::new("GET", &path), now).status, 200);
}
