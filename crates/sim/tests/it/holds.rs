//! An owner pauses a Service, or protects it from deletion: what it has in Azure stays as it is,
//! over restarts, until the annotation goes. Or confirms interruptions before they happen.

use crate::support::container::{
    backends, container_laboratory, pod_ip, ready, service_of, set_slice, web, web_name,
};
use crate::support::*;
use serde_json::{Value, json};
use sim::Laboratory;

const PAUSE: &str = "ballast.dev/pause";
const PROTECT: &str = "ballast.dev/deletion-protection";
const CONFIRM: &str = "ballast.dev/confirm";
const CONFIRMED: &str = "ballast.dev/confirmed";

fn laboratories() -> [Laboratory; 2] {
    [laboratory(&json!({})), container_laboratory(3)]
}

fn settle(lab: &mut Laboratory) {
    assert!(lab.settle(DAY_MS), "{:#?}", lab.controller().report());
}

fn annotate(lab: &mut Laboratory, name: &str, key: &str, value: Value) {
    patch(lab, "services", "default", name, json!({"metadata": {"annotations": {key: value}}}));
}

fn condition(lab: &Laboratory, name: &str) -> Value {
    service_of(lab, name).expect("it is there")["status"]["conditions"][0].clone()
}

/// The reason that its condition has.
fn reason(lab: &Laboratory, name: &str) -> Value {
    condition(lab, name)["reason"].clone()
}

fn ingress(lab: &Laboratory, name: &str) -> Value {
    service_of(lab, name).expect("it is there")["status"]["loadBalancer"].clone()
}

/// Everything in Azure.
fn all(lab: &Laboratory) -> Vec<Value> {
    lab.azure.resources()
}

/// Idle timeouts of the rules to a Service's public IP or under its name.
fn timeouts(lab: &Laboratory, name: &str) -> Vec<Value> {
    let service = service_of(lab, name).expect("it is there");
    let uid = service["metadata"]["uid"].as_str().expect("it has one").to_owned();
    let base: String = format!("a{}", uid.replace('-', "")).chars().take(32).collect();
    let balancers = all(lab).into_iter();
    let balancers = balancers.filter(|r| r["type"] == "Microsoft.Network/loadBalancers");
    let rules = balancers.flat_map(|balancer| {
        let own = balancer["name"].as_str().is_some_and(|name| name.eq_ignore_ascii_case(&uid));
        let rules = balancer["properties"]["loadBalancingRules"].as_array().cloned();
        let named = |rule: &Value| rule["name"].as_str().is_some_and(|n| n.starts_with(&base));
        rules
            .unwrap_or_default()
            .into_iter()
            .filter(move |rule| own || named(rule))
            .collect::<Vec<_>>()
    });
    rules.map(|rule| rule["properties"]["idleTimeoutInMinutes"].clone()).collect()
}

#[test]
fn a_paused_service_stays_as_it_is_and_those_beside_it_go_on() {
    for mut lab in laboratories() {
        let (paused, other) = ("web-0000", "web-0001");
        create(&mut lab, service(0));
        create(&mut lab, service(1));
        settle(&mut lab);
        let at = ingress(&lab, paused);
        annotate(&mut lab, paused, PAUSE, json!("true"));
        annotate(&mut lab, paused, TIMEOUT, json!("9"));
        annotate(&mut lab, other, TIMEOUT, json!("9"));
        settle(&mut lab);
        assert_eq!(
            (timeouts(&lab, paused), timeouts(&lab, other)),
            (vec![json!(4)], vec![json!(9)])
        );
        assert_eq!((reason(&lab, paused), ingress(&lab, paused)), (json!("Paused"), at.clone()));
        lab.restart();
        settle(&mut lab);
        assert_eq!((timeouts(&lab, paused), ingress(&lab, paused)), (vec![json!(4)], at.clone()));
        annotate(&mut lab, paused, PAUSE, Value::Null);
        settle(&mut lab);
        assert_eq!((timeouts(&lab, paused), ingress(&lab, paused)), (vec![json!(9)], at));
        // Nor is a paused Service taken away.
        annotate(&mut lab, paused, PAUSE, json!("True"));
        settle(&mut lab);
        let before = all(&lab);
        delete(&mut lab, "default", paused);
        settle(&mut lab);
        lab.restart();
        settle(&mut lab);
        assert_eq!(all(&lab), before);
        assert_eq!(reason(&lab, paused), "Paused");
        annotate(&mut lab, paused, PAUSE, Value::Null);
        settle(&mut lab);
        assert_eq!(service_of(&lab, paused), None);
    }
}

#[test]
fn a_new_service_that_is_paused_has_nothing_and_goes_at_once() {
    for mut lab in laboratories() {
        let before = all(&lab);
        create(&mut lab, annotated(0, json!({PAUSE: "true"})));
        settle(&mut lab);
        assert_eq!((all(&lab), reason(&lab, "web-0000")), (before, json!("Paused")));
        assert_eq!(
            service_of(&lab, "web-0000").expect("it is there")["metadata"]["finalizers"],
            json!(null)
        );
        delete(&mut lab, "default", "web-0000");
        settle(&mut lab);
        assert_eq!(service_of(&lab, "web-0000"), None);
    }
}

#[test]
fn a_protected_service_keeps_what_it_has_until_the_annotation_goes() {
    for mut lab in laboratories() {
        let name = "web-0000";
        let estate = all(&lab);
        create(&mut lab, service(0));
        annotate(&mut lab, name, PROTECT, json!("true"));
        settle(&mut lab);
        assert_ne!(reason(&lab, name), "DeletionProtected", "it asks for what it has");
        let (before, at) = (all(&lab), ingress(&lab, name));
        delete(&mut lab, "default", name);
        settle(&mut lab);
        assert_eq!((all(&lab), ingress(&lab, name)), (before.clone(), at.clone()));
        assert_eq!(reason(&lab, name), "DeletionProtected");
        lab.restart();
        settle(&mut lab);
        assert_eq!((all(&lab), ingress(&lab, name)), (before, at));
        annotate(&mut lab, name, PROTECT, json!("false"));
        settle(&mut lab);
        assert_eq!((service_of(&lab, name), all(&lab).len()), (None, estate.len()));
    }
}

#[test]
fn a_protected_service_keeps_what_it_has_under_another_type() {
    for mut lab in laboratories() {
        let name = "web-0000";
        let estate = all(&lab).len();
        create(&mut lab, service(0));
        annotate(&mut lab, name, PROTECT, json!("true"));
        settle(&mut lab);
        let before = all(&lab);
        patch(&mut lab, "services", "default", name, json!({"spec": {"type": "NodePort"}}));
        settle(&mut lab);
        assert_eq!((all(&lab), reason(&lab, name)), (before.clone(), json!("DeletionProtected")));
        // Back to what it was.
        patch(&mut lab, "services", "default", name, json!({"spec": {"type": "LoadBalancer"}}));
        settle(&mut lab);
        assert_eq!(all(&lab).len(), before.len());
        assert_eq!(condition(&lab, name)["status"], "True");
        patch(&mut lab, "services", "default", name, json!({"spec": {"type": "NodePort"}}));
        annotate(&mut lab, name, PROTECT, Value::Null);
        settle(&mut lab);
        assert_eq!(all(&lab).len(), estate);
        // What asks for nothing and has nothing is held back by nothing.
        annotate(&mut lab, name, PROTECT, json!("true"));
        annotate(&mut lab, name, PAUSE, json!("true"));
        settle(&mut lab);
        assert_eq!(reason(&lab, name), json!(null));
    }
}

/// A rolling update goes on while the Service is held back: it serves what it has.
#[test]
fn pods_of_a_service_that_is_held_back_are_followed() {
    for (key, deleted) in [(PAUSE, false), (PAUSE, true), (PROTECT, true)] {
        let mut lab = container_laboratory(3);
        let name = &web_name(0);
        create(&mut lab, web(0));
        set_slice(&mut lab, name, 0, ready(&[(1, 0)]));
        annotate(&mut lab, name, PROTECT, json!("true"));
        settle(&mut lab);
        annotate(&mut lab, name, key, json!("true"));
        if deleted {
            delete(&mut lab, "default", name);
        }
        settle(&mut lab);
        assert_eq!(backends(&lab, name), [pod_ip(1)], "{key}");
        set_slice(&mut lab, name, 0, ready(&[(2, 1)]));
        settle(&mut lab);
        assert_eq!(backends(&lab, name), [pod_ip(2)], "{key}");
        lab.restart();
        settle(&mut lab);
        assert_eq!(backends(&lab, name), [pod_ip(2)], "{key}");
    }
}

/// Load balancers and ports of the rules to a Service.
fn ways(lab: &Laboratory, name: &str) -> Vec<(String, u64)> {
    let service = service_of(lab, name).expect("it is there");
    let uid = service["metadata"]["uid"].as_str().expect("it has one").to_owned();
    let base: String = format!("a{}", uid.replace('-', "")).chars().take(32).collect();
    let mut ways = Vec::new();
    for balancer in all(lab).iter().filter(|r| r["type"] == "Microsoft.Network/loadBalancers") {
        for rule in balancer["properties"]["loadBalancingRules"].as_array().into_iter().flatten() {
            if rule["name"].as_str().is_some_and(|name| name.starts_with(&base)) {
                let port = rule["properties"]["frontendPort"].as_u64().expect("a port");
                ways.push((balancer["name"].as_str().expect("a name").to_owned(), port));
            }
        }
    }
    ways
}

/// Whether the Service waits for its owner; the list that confirms.
fn due(lab: &Laboratory, name: &str) -> Option<String> {
    let condition = condition(lab, name);
    let text = condition["message"].as_str().expect("it says something");
    let list = plan::ask::hold::to_confirm(text).map(str::to_owned);
    assert_eq!(list.is_some(), condition["reason"] == "ConfirmationDue", "{condition}");
    list
}

#[test]
fn an_interruption_waits_until_its_owner_confirms_it() {
    let mut lab = laboratory(&json!({}));
    let (asking, other) = ("web-0000", "web-0001");
    create(&mut lab, service(0));
    create(&mut lab, service(1));
    annotate(&mut lab, asking, CONFIRM, json!("true"));
    settle(&mut lab);
    let (before, at) = (ways(&lab, asking), ingress(&lab, asking));
    // It would become internal.
    annotate(&mut lab, asking, INTERNAL, json!("true"));
    annotate(&mut lab, other, TIMEOUT, json!("9"));
    settle(&mut lab);
    let list = due(&lab, asking).expect("it waits");
    assert!(list.ends_with(", kubernetes"), "{list}");
    assert_eq!((ways(&lab, asking), ingress(&lab, asking)), (before.clone(), at.clone()));
    assert_eq!(timeouts(&lab, other), [json!(9)]);
    lab.restart();
    settle(&mut lab);
    assert_eq!((ways(&lab, asking), ingress(&lab, asking)), (before, at.clone()));
    annotate(&mut lab, asking, CONFIRMED, json!(list));
    settle(&mut lab);
    assert_eq!((due(&lab, asking), &condition(&lab, asking)["status"]), (None, &json!("True")));
    assert!(ways(&lab, asking).iter().all(|(balancer, _)| balancer == "kubernetes-internal"));
    assert_ne!(ingress(&lab, asking), at);
    // The way back is another change, and waits no more once its owner does not ask for that.
    annotate(&mut lab, asking, INTERNAL, Value::Null);
    settle(&mut lab);
    assert!(due(&lab, asking).expect("it waits").ends_with(", kubernetes-internal"));
    annotate(&mut lab, asking, CONFIRM, json!("false"));
    settle(&mut lab);
    assert!(ways(&lab, asking).iter().all(|(balancer, _)| balancer == "kubernetes"));
    // A deletion needs no confirmation.
    annotate(&mut lab, asking, CONFIRM, json!("true"));
    delete(&mut lab, "default", asking);
    settle(&mut lab);
    assert_eq!(service_of(&lab, asking), None);
}

#[test]
fn a_confirmed_interruption_goes_on_after_each_restart() {
    let mut lab = laboratory(&json!({}));
    let name = "web-0000";
    create(&mut lab, service(0));
    annotate(&mut lab, name, CONFIRM, json!("true"));
    settle(&mut lab);
    annotate(&mut lab, name, INTERNAL, json!("true"));
    settle(&mut lab);
    let list = due(&lab, name).expect("it waits");
    annotate(&mut lab, name, CONFIRMED, json!(list));
    for _ in 0..200 {
        lab.settle(200);
        lab.restart();
        assert_eq!(due(&lab, name).filter(|now| *now != list), None);
    }
    settle(&mut lab);
    assert!(ways(&lab, name).iter().all(|(balancer, _)| balancer == "kubernetes-internal"));
}

/// The annotation has no effect there, and the condition says so.
#[test]
fn on_a_container_load_balancer_there_is_nothing_to_confirm() {
    let mut lab = container_laboratory(3);
    create(&mut lab, service(0));
    annotate(&mut lab, "web-0000", CONFIRM, json!("true"));
    settle(&mut lab);
    let condition = condition(&lab, "web-0000");
    let text = condition["message"].as_str().expect("it says something");
    assert!(text.contains("ballast.dev/confirm: \"true\" has no effect"), "{text}");
}
