//! What a Service may ask for.

use crate::support::container::*;
use crate::support::{create, delete, patch};
use serde_json::{Value, json};
use sim::Laboratory;

const INTERNAL: &str = "service.beta.kubernetes.io/azure-load-balancer-internal";
const TIMEOUT: &str = "service.beta.kubernetes.io/azure-load-balancer-tcp-idle-timeout";

fn with(change: impl Fn(&mut Value)) -> Laboratory {
    let mut lab = resting(3);
    let mut service = web(0);
    change(&mut service);
    create(&mut lab, service);
    rest(&mut lab);
    lab
}

fn annotated(key: &str, value: &str) -> Laboratory {
    with(|service| service["metadata"]["annotations"] = json!({key: value}))
}

#[test]
fn l57_internal_in_any_letters_is_never_public_not_after_a_restart_either() {
    for value in ["true", "True", "TRUE"] {
        let mut lab = annotated(INTERNAL, value);
        lab.restart();
        rest(&mut lab);
        assert_eq!(lab.calls().0, 0, "{value}");
        let reason = "UnsupportedInternalLoadBalancer".to_owned();
        assert!(reasons(&lab, &web_name(0)).contains(&reason));
    }
}

#[test]
fn l58_another_class_is_left_alone_at_the_start_too() {
    let mut lab = with(|service| service["spec"]["loadBalancerClass"] = json!("example.com/x"));
    lab.restart();
    rest(&mut lab);
    assert_eq!(lab.calls().0, 0);
    let service = service_of(&lab, &web_name(0)).expect("it is there");
    assert!(!has_finalizer(&service, GATEWAY_FINALIZER));
}

#[test]
fn l59_a_service_that_was_made_impossible_keeps_its_load_balancer_over_a_restart() {
    let mut lab = container_laboratory(3);
    create(&mut lab, web(0));
    set_slice(&mut lab, &web_name(0), 0, ready(&[(1, 0)]));
    rest(&mut lab);
    let wrong = json!({"metadata": {"annotations": {INTERNAL: "true"}}});
    patch(&mut lab, "services", "default", &web_name(0), wrong);
    lab.restart();
    lab.pass(30_000);
    rest(&mut lab);
    assert_eq!(backends(&lab, &web_name(0)), [pod_ip(1)]);
    delete(&mut lab, "default", &web_name(0));
    lab.pass(30_000);
    rest(&mut lab);
    assert_eq!(container_leftovers(&lab), Vec::<String>::new());
}

#[test]
fn l60_an_idle_timeout_is_taken_or_refused_but_never_ignored() {
    for value in ["3", "31", "4.5", "x", "", "-4"] {
        let lab = annotated(TIMEOUT, value);
        assert_eq!(lab.calls().0, 0, "{value:?}");
        let said = reasons(&lab, &web_name(0));
        assert!(said.contains(&"InvalidIdleTimeout".to_owned()), "{value:?}: {said:?}");
    }
    for (value, minutes) in [("4", 4), (" 17 ", 17), ("30", 30)] {
        let lab = annotated(TIMEOUT, value);
        let id = format!("loadBalancers/{}", uid_of(&lab, &web_name(0)));
        let balancer = lab.azure.resource(&crate::support::network(&id)).expect("it is there");
        let rule = &balancer["properties"]["loadBalancingRules"][0]["properties"];
        assert_eq!(rule["idleTimeoutInMinutes"], minutes);
    }
}

#[test]
fn l61_every_field_that_counts_makes_a_difference() {
    for body in [
        json!({"spec": {"ports": [{"name": "http", "port": 81, "targetPort": 8080}]}}),
        json!({"spec": {"ports": [{"name": "http", "port": 80, "targetPort": 8081}]}}),
        json!({"spec": {"ports": [{"name": "http", "port": 80, "targetPort": 8080,
            "protocol": "UDP"}]}}),
        json!({"metadata": {"annotations": {TIMEOUT: "9"}}}),
    ] {
        let mut lab = with(|_| {});
        lab.azure.clear_calls();
        patch(&mut lab, "services", "default", &web_name(0), body.clone());
        rest(&mut lab);
        assert_eq!(lab.calls().0, 1, "{body}");
    }
    let mut lab = with(|_| {});
    lab.azure.clear_calls();
    let nothing = json!({"metadata": {"labels": {"a": "b"}}});
    patch(&mut lab, "services", "default", &web_name(0), nothing);
    rest(&mut lab);
    assert_eq!(lab.calls().0, 0);
}

#[test]
fn l62_a_refusal_is_told_once_with_its_reason() {
    for (reason, spec) in [
        ("UnsupportedSessionAffinity", json!({"sessionAffinity": "ClientIP"})),
        ("UnsupportedLoadBalancerIP", json!({"loadBalancerIP": "20.0.0.9"})),
        (
            "UnsupportedProtocol",
            json!({"ports": [{"name": "http", "port": 80, "targetPort": 80, "protocol": "SCTP"}]}),
        ),
    ] {
        let mut lab = with(|service| {
            for (key, value) in spec.as_object().expect("fields") {
                service["spec"][key] = value.clone();
            }
        });
        lab.pass(600_000);
        let said = reasons(&lab, &web_name(0));
        assert_eq!(said.iter().filter(|r| *r == reason).count(), 1, "{said:?}");
        assert_eq!(lab.calls().0, 0);
    }
}

#[test]
fn l63_a_service_without_anything_panics_nobody() {
    let mut lab = with(|service| service["spec"]["ports"] = json!([{"port": 80}]));
    lab.pass(1_000);
    assert!(address_of(&lab, &web_name(0)).is_some());
}

#[test]
fn l64_the_address_does_not_flap() {
    let mut lab = with(|_| {});
    let address = address_of(&lab, &web_name(0));
    for port in 81..91 {
        let body = json!({"spec": {"ports": [{"name": "http", "port": port, "targetPort": 80}]}});
        patch(&mut lab, "services", "default", &web_name(0), body);
        for _ in 0..10 {
            lab.pass(10);
            assert_eq!(address_of(&lab, &web_name(0)), address);
        }
    }
    lab.restart();
    lab.pass(5);
    assert_eq!(address_of(&lab, &web_name(0)), address);
    rest(&mut lab);
    assert_eq!(address_of(&lab, &web_name(0)), address);
}
