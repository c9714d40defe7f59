//! Creating, changing and deleting run into each other.

use crate::support::container::*;
use crate::support::{create, delete, network, patch};
use azure_emulator::FaultKind;
use kube_emulator::{Failure, Fault as KubernetesFault, Method, Part};
use serde_json::{Value, json};
use sim::Laboratory;

/// One Service with two Pods, on its way; calls take 100 ms.
fn coming() -> Laboratory {
    let mut lab = resting(3);
    lab.azure_latency_ms = 100;
    create(&mut lab, web(0));
    set_slice(&mut lab, &web_name(0), 0, ready(&[(1, 0), (2, 1)]));
    lab
}

fn standing() -> Laboratory {
    let mut lab = coming();
    rest(&mut lab);
    lab.pass(11_000);
    rest(&mut lab);
    lab.azure.clear_calls();
    lab
}

fn assert_gone(lab: &Laboratory) {
    assert_eq!(container_leftovers(lab), Vec::<String>::new());
    assert_eq!(service_of(lab, &web_name(0)), None, "its finalizers are gone, and so is it");
}

fn ports(lab: &mut Laboratory, port: u16) {
    let spec = json!({"spec": {"ports": [{"port": port, "targetPort": 8080}]}});
    patch(lab, "services", "default", &web_name(0), spec);
}

fn kind(lab: &mut Laboratory, kind: &str) {
    patch(lab, "services", "default", &web_name(0), json!({"spec": {"type": kind}}));
}

#[test]
fn l01_a_delete_while_a_create_runs_is_a_delete() {
    for ms in (0..500).step_by(25) {
        let mut lab = coming();
        lab.pass(ms);
        delete(&mut lab, "default", &web_name(0));
        rest(&mut lab);
        assert_gone(&lab);
    }
}

#[test]
fn l02_a_delete_while_an_update_runs_with_addresses_that_come_back_is_a_delete() {
    for ms in (0..300).step_by(25) {
        let mut lab = standing();
        ports(&mut lab, 443);
        lab.pass(ms);
        delete(&mut lab, "default", &web_name(0));
        lab.pass(10);
        set_slice(&mut lab, &web_name(0), 0, ready(&[(1, 0), (2, 1), (3, 2)]));
        rest(&mut lab);
        assert_gone(&lab);
    }
}

#[test]
fn l03_what_a_failed_attempt_left_does_not_pass_for_another() {
    let mut lab = coming();
    lab.azure.add_fault(refusing(500, "InternalServerError", "PUT", "loadBalancers/"));
    lab.pass(250);
    delete(&mut lab, "default", &web_name(0));
    rest(&mut lab);
    assert_gone(&lab);
}

#[test]
fn l04_an_unregistration_that_is_refused_is_not_repeated_at_once() {
    let mut lab = standing();
    let code = "ServiceWithOverlayMappingsCannotBeDeleted";
    lab.azure.add_fault(refusing(400, code, "POST", "updateServices$").always());
    delete(&mut lab, "default", &web_name(0));
    lab.pass(60_000);
    assert!((3..=10).contains(&service_posts(&lab)), "{} in a minute", service_posts(&lab));
    lab.azure.clear_faults();
    rest(&mut lab);
    assert_gone(&lab);
}

#[test]
fn l05_still_mapped_is_told_by_the_code_and_by_the_text() {
    let code = "ServiceWithOverlayMappingsCannotBeDeleted";
    for (status, code, text) in [(400, code, "no"), (400, "BadRequest", code)] {
        let mut lab = standing();
        let (code, message) = (code.to_owned(), text.to_owned());
        let kind =
            FaultKind::Status { status, code, message, retry_after_s: None, headers: Vec::new() };
        lab.azure.add_fault(fault(kind, "POST", "updateServices$"));
        delete(&mut lab, "default", &web_name(0));
        lab.pass(500);
        assert!(lab.controller().world().holds.is_empty(), "nobody is blamed for it");
        assert_eq!(posts(&lab, "/addressLocations"), 1, "the table is read");
        rest(&mut lab);
        assert_gone(&lab);
    }
}

#[test]
fn l06_a_create_that_azure_refuses_for_good_is_not_hammered() {
    let mut lab = coming();
    lab.azure.add_fault(refusing(400, "QuotaExceeded", "PUT", "loadBalancers/").always());
    lab.pass(60_000);
    let tries = writes_of(&lab, "PUT", "loadBalancers");
    assert!((2..=6).contains(&tries), "{tries} tries in a minute");
    lab.azure.clear_faults();
    // A change of the Service is tried at once.
    ports(&mut lab, 443);
    lab.pass(1_000);
    assert!(address_of(&lab, &web_name(0)).is_some());
}

#[test]
fn l07_an_update_that_azure_refuses_leaves_the_load_balancer_and_its_endpoints_moving() {
    let mut lab = standing();
    lab.azure.add_fault(refusing(400, "BadRequest", "PUT", "loadBalancers/").always());
    ports(&mut lab, 443);
    lab.pass(2_000);
    set_slice(&mut lab, &web_name(0), 0, ready(&[(2, 1), (3, 2)]));
    lab.pass(1_000);
    assert_eq!(backends(&lab, &web_name(0)), [pod_ip(2), pod_ip(3)]);
    assert!(reasons(&lab, &web_name(0)).contains(&"SyncLoadBalancerFailed".to_owned()));
}

#[test]
fn l08_a_spec_that_is_replaced_while_the_old_one_fails_is_sent() {
    let mut lab = standing();
    let refused = refusing(400, "BadRequest", "PUT", "loadBalancers/");
    lab.azure.add_fault(refused.on_body("\"frontendPort\":81").always());
    ports(&mut lab, 81);
    lab.pass(50);
    ports(&mut lab, 443);
    lab.pass(1_000);
    let address = address_of(&lab, &web_name(0)).expect("it has one");
    assert!(lab.azure.traffic(&address, "Tcp", 443).is_some());
}

#[test]
fn l09_a_service_of_the_same_name_after_a_refused_one_is_made() {
    let mut lab = coming();
    lab.azure.add_fault(refusing(400, "QuotaExceeded", "PUT", "loadBalancers/").always());
    lab.pass(1_000);
    delete(&mut lab, "default", &web_name(0));
    lab.pass(120_000);
    assert_gone(&lab);
    lab.azure.clear_faults();
    create(&mut lab, web(0));
    lab.pass(2_000);
    assert!(address_of(&lab, &web_name(0)).is_some());
}

#[test]
fn l10_nothing_gives_up_for_good() {
    let mut lab = coming();
    lab.azure.add_fault(refusing(500, "InternalServerError", "PUT", "loadBalancers/").always());
    lab.pass(3_600_000);
    lab.azure.clear_faults();
    lab.pass(62_000);
    assert!(address_of(&lab, &web_name(0)).is_some(), "within a minute, by itself");
}

#[test]
fn l11_a_resync_does_not_cut_a_back_off_short() {
    let mut lab = coming();
    lab.azure.add_fault(refusing(500, "InternalServerError", "PUT", "loadBalancers/").always());
    lab.pass(100_000);
    lab.azure.clear_calls();
    for _ in 0..50 {
        lab.kubernetes.compact();
        let body = json!({"metadata": {"annotations": {"a": lab.now_ms.to_string()}}});
        merge(&mut lab, "nodes", &node_name(0), Part::Main, body);
        lab.pass(100);
    }
    assert!(writes_of(&lab, "PUT", "loadBalancers") <= 1);
}

#[test]
fn l12_a_refused_service_holds_no_start_up() {
    let mut lab = standing();
    create(&mut lab, web(1));
    let uid = uid_of(&lab, &web_name(1));
    let path = format!("loadBalancers/{uid}$");
    lab.azure.add_fault(refusing(400, "QuotaExceeded", "PUT", &path).always());
    lab.pass(1_000);
    lab.restart();
    create(&mut lab, web(2));
    lab.pass(2_000);
    assert!(address_of(&lab, &web_name(2)).is_some());
}

#[test]
fn l13_deleted_wanted_again_and_deleted_again_is_deleted() {
    for ms in (0..600).step_by(50) {
        let mut lab = standing();
        kind(&mut lab, "ClusterIP");
        lab.pass(ms);
        kind(&mut lab, "LoadBalancer");
        lab.pass(ms / 2);
        kind(&mut lab, "ClusterIP");
        rest(&mut lab);
        assert_eq!(container_leftovers(&lab), Vec::<String>::new());
        let service = service_of(&lab, &web_name(0)).expect("it stays");
        assert!(!has_finalizer(&service, GATEWAY_FINALIZER));
    }
}

#[test]
fn l14_wanted_again_during_the_deletion_has_its_endpoints() {
    for ms in (0..700).step_by(50) {
        let mut lab = standing();
        kind(&mut lab, "ClusterIP");
        lab.pass(ms);
        kind(&mut lab, "LoadBalancer");
        rest(&mut lab);
        assert_eq!(backends(&lab, &web_name(0)), [pod_ip(1), pod_ip(2)], "after {ms} ms");
    }
}

#[test]
fn l15_a_service_that_is_being_deleted_is_not_made() {
    let mut lab = container_laboratory(3);
    let mut service = web(0);
    service["metadata"]["finalizers"] = json!(["example.com/other"]);
    create(&mut lab, service);
    delete(&mut lab, "default", &web_name(0));
    rest(&mut lab);
    ports(&mut lab, 81);
    rest(&mut lab);
    assert_eq!(lab.calls().0, 0);
    assert!(service_of(&lab, &web_name(0)).is_some());
}

#[test]
fn l16_a_service_that_is_gone_before_its_create_makes_nothing_and_a_failed_write_is_not_gone() {
    let mut lab = resting(3);
    create(&mut lab, web(0));
    // It goes after it was seen and before its finalizers are on.
    let failing = KubernetesFault::next(Failure::Unavailable).on_kind("services");
    lab.kubernetes.inject(failing.on_method(Method::Patch).times(2));
    lab.turn();
    delete(&mut lab, "default", &web_name(0));
    rest(&mut lab);
    assert_eq!(lab.calls().0, 0);
    create(&mut lab, web(1));
    let failing = KubernetesFault::next(Failure::Unavailable).on_kind("services");
    lab.kubernetes.inject(failing.on_method(Method::Patch).times(3));
    rest(&mut lab);
    assert!(address_of(&lab, &web_name(1)).is_some());
}

#[test]
fn l17_retyped_and_then_deleted_loses_its_finalizers() {
    let mut lab = standing();
    kind(&mut lab, "ClusterIP");
    lab.pass(150);
    delete(&mut lab, "default", &web_name(0));
    lab.restart();
    lab.pass(15_000);
    rest(&mut lab);
    assert_gone(&lab);
}

#[test]
fn l18_a_status_that_cannot_be_written_withholds_no_endpoints() {
    let mut lab = coming();
    // The finalizers are on; then the API server fails for a while.
    lab.pass(50);
    let failing = KubernetesFault::next(Failure::Internal).on_kind("services");
    lab.kubernetes.inject(failing.on_method(Method::Patch).times(4));
    lab.pass(800);
    assert_eq!(address_of(&lab, &web_name(0)), None);
    assert_eq!(table(&lab).len(), 2, "traffic is led to the Pods all the same");
    rest(&mut lab);
    assert!(address_of(&lab, &web_name(0)).is_some());
}

#[test]
fn l19_a_public_ip_without_an_address_is_waited_for() {
    let mut lab = resting(3);
    lab.azure.options_mut().late_public_ip_address = azure_emulator::Switch::On;
    lab.azure.options_mut().lro_ms = 3_000;
    create(&mut lab, web(0));
    lab.pass(2_000);
    assert_eq!(writes_of(&lab, "PUT", "loadBalancers"), 0);
    rest(&mut lab);
    assert!(address_of(&lab, &web_name(0)).is_some());
}

#[test]
fn l20_a_finalizer_that_cannot_be_taken_off_is_tried_again() {
    let mut lab = standing();
    delete(&mut lab, "default", &web_name(0));
    let failing = KubernetesFault::next(Failure::Conflict).on_kind("services");
    lab.kubernetes.inject(failing.on_method(Method::Patch).times(7));
    lab.pass(5_000);
    assert!(service_of(&lab, &web_name(0)).is_some());
    rest(&mut lab);
    assert_gone(&lab);
}

#[test]
fn l21_an_error_of_an_early_step_is_not_forgotten_over_a_later_success() {
    let mut lab = standing();
    lab.azure.add_fault(refusing(400, "LoadBalancerInUse", "DELETE", "loadBalancers/").times(3));
    delete(&mut lab, "default", &web_name(0));
    lab.pass(3_000);
    let service = service_of(&lab, &web_name(0)).expect("it waits");
    assert!(has_finalizer(&service, GATEWAY_FINALIZER));
    rest(&mut lab);
    assert_gone(&lab);
}

#[test]
fn l22_one_service_in_trouble_leaves_the_others_their_slots() {
    let mut lab = resting(3);
    lab.azure.add_fault(fault(FaultKind::Hang, "PUT", "publicIPAddresses/").times(5));
    lab.azure_latency_ms = 100;
    (0..20).for_each(|n| create(&mut lab, web(n)));
    lab.pass(3_000);
    let done = (0..20).filter(|n| address_of(&lab, &web_name(*n)).is_some()).count();
    assert_eq!(done, 15);
    rest(&mut lab);
}

#[test]
fn l23_said_twice_is_said_once() {
    let mut lab = standing();
    lab.kubernetes.compact();
    lab.pass(100);
    delete(&mut lab, "default", &web_name(0));
    lab.turn();
    delete(&mut lab, "default", &web_name(0));
    lab.kubernetes.compact();
    rest(&mut lab);
    assert_gone(&lab);
    let deleted = write_log(&lab).iter().filter(|w| w.starts_with("DELETE")).count();
    assert_eq!(deleted, 2, "load balancer and public IP, once each");
}

#[test]
fn l24_a_change_at_the_moment_of_completion_is_not_lost() {
    for ms in [99, 100, 101] {
        let mut lab = standing();
        ports(&mut lab, 81);
        lab.pass(ms);
        ports(&mut lab, 443);
        set_slice(&mut lab, &web_name(0), 0, ready(&[(2, 1)]));
        rest(&mut lab);
        let address = address_of(&lab, &web_name(0)).expect("it has one");
        let traffic = lab.azure.traffic(&address, "Tcp", 443).expect("a rule");
        assert_eq!(traffic.backends, [pod_ip(2)], "after {ms} ms");
    }
}

#[test]
fn l25_a_controller_that_ends_amid_everything_leaves_a_state_to_go_on_from() {
    for ms in (0..600).step_by(40) {
        let mut lab = coming();
        lab.pass(ms);
        lab.restart();
        rest(&mut lab);
        assert_eq!(backends(&lab, &web_name(0)), [pod_ip(1), pod_ip(2)]);
        let pip = format!("publicIPAddresses/{}-pip", uid_of(&lab, &web_name(0)));
        assert!(lab.azure.resource(&network(&pip)).is_some());
    }
}

/// Azure documents no second family of a container load balancer.
#[test]
fn a_service_that_turns_dual_stack_is_refused_and_serves_as_before() {
    let mut lab = standing();
    let families = |lab: &mut Laboratory, policy: &str, families: Value| {
        let spec = json!({"ipFamilyPolicy": policy, "ipFamilies": families});
        patch(lab, "services", "default", &web_name(0), json!({ "spec": spec }));
        rest(lab);
    };
    let condition = |lab: &Laboratory| {
        let service = service_of(lab, &web_name(0)).expect("it is there");
        let all = service["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let own = all.into_iter().find(|c| c["type"] == "ballast.dev/Programmed");
        own.unwrap_or_default()
    };
    let serves = |lab: &Laboratory| (table(lab), registered(lab), address_of(lab, &web_name(0)));
    let before = serves(&lab);
    assert!(before.0.len() == 2 && before.2.is_some(), "{before:?}");
    families(&mut lab, "PreferDualStack", json!(["IPv4", "IPv6"]));
    let told = condition(&lab);
    assert_eq!(
        (&told["status"], &told["reason"]),
        (&json!("False"), &json!("UnsupportedDualStack"))
    );
    let message = told["message"].as_str().unwrap_or_default();
    assert!(message.contains("must be one family") && message.contains("IPv4,IPv6"), "{message}");
    lab.restart();
    rest(&mut lab);
    assert_eq!((serves(&lab), lab.calls().0), (before.clone(), 0));
    families(&mut lab, "SingleStack", json!(["IPv4"]));
    assert_eq!(condition(&lab)["reason"], "Programmed");
    assert_eq!((serves(&lab), lab.calls().0), (before, 0));
}
