//! No node and no Pod behind a Service: its owner hears of it once, and sees when it is over.

use crate::support::container::{container_laboratory, ready, set_slice, web, web_name};
use crate::support::*;
use kube_emulator::ObjectRef;
use serde_json::{Value, json};
use sim::Laboratory;

const DAY_MS: u64 = 86_400_000;
const EXCLUDED: &str = "node.kubernetes.io/exclude-from-external-load-balancers";

/// The reason of a Service's condition, and how many Warnings there were about its backends.
fn told(lab: &Laboratory, name: &str) -> (String, usize) {
    let service = lab.kubernetes.get(ObjectRef::new("services", "default", name));
    let service = service.expect("it is there");
    let all = service["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let own = all.iter().find(|c| c["type"] == "ballast.dev/Programmed");
    let reason = own.and_then(|c| c["reason"].as_str()).unwrap_or_default().to_owned();
    let events = lab.kubernetes.list("events", None);
    let about = |e: &Value| e["reason"] == "NoBackends" && e["involvedObject"]["name"] == name;
    let warnings = events.iter().filter(|e| about(e) && e["type"] == "Warning").count();
    (reason, warnings)
}

fn settled(lab: &mut Laboratory) {
    assert!(lab.settle(DAY_MS), "{:#?}", lab.controller().report());
}

fn set_excluded(lab: &mut Laboratory, number: u32, excluded: &Value) {
    let labels = json!({"metadata": {"labels": {EXCLUDED: excluded}}});
    patch(lab, "nodes", "", &format!("vmss{number:06}"), labels);
}

/// The last node stays in its pool, where the label asks for the opposite.
#[test]
fn the_last_node_that_is_excluded() {
    let mut lab = laboratory(&json!({}));
    create(&mut lab, service(1));
    settled(&mut lab);
    assert_eq!(told(&lab, "web-0001"), ("Programmed".to_owned(), 0));
    (0..3).for_each(|number| set_excluded(&mut lab, number, &json!("true")));
    settled(&mut lab);
    lab.pass(600_000);
    assert_eq!(told(&lab, "web-0001"), ("NoBackends".to_owned(), 1));
    set_excluded(&mut lab, 0, &Value::Null);
    settled(&mut lab);
    assert_eq!(told(&lab, "web-0001"), ("Programmed".to_owned(), 1));
}

/// All nodes go, one kind of pool as the other.
#[test]
fn zero_nodes() {
    for kind in ["nodeIP", "nodeIPConfiguration"] {
        let mut lab = laboratory(&json!({"loadBalancerBackendPoolConfigurationType": kind}));
        lab.azure.seed(scale_set("vmss", 3));
        create(&mut lab, service(1));
        settled(&mut lab);
        assert_eq!(told(&lab, "web-0001"), ("Programmed".to_owned(), 0), "{kind}");
        (0..3).for_each(|number| remove(&mut lab, "nodes", "", &format!("vmss{number:06}")));
        lab.pass(600_000);
        assert_eq!(told(&lab, "web-0001"), ("NoBackends".to_owned(), 1), "{kind}");
        create(&mut lab, node(0));
        settled(&mut lab);
        assert_eq!(told(&lab, "web-0001"), ("Programmed".to_owned(), 1), "{kind}");
    }
}

/// A set that has a load balancer of its own loses its nodes; the others' Services go on.
#[test]
fn a_named_set_that_is_emptied() {
    let mut lab = pool_laboratory();
    create(&mut lab, pool_node(3));
    create(&mut lab, of_pool(service(1)));
    create(&mut lab, service(2));
    settled(&mut lab);
    assert_eq!(told(&lab, "web-0001"), ("Programmed".to_owned(), 0));
    remove(&mut lab, "nodes", "", "pool000003");
    lab.pass(600_000);
    assert_eq!(told(&lab, "web-0001"), ("NoBackends".to_owned(), 1));
    assert_eq!(told(&lab, "web-0002"), ("Programmed".to_owned(), 0));
}

#[test]
fn a_named_set_without_nodes() {
    let mut lab = pool_laboratory();
    create(&mut lab, of_pool(service(1)));
    create(&mut lab, service(2));
    settled(&mut lab);
    lab.pass(600_000);
    assert_eq!(told(&lab, "web-0001"), ("NoBackends".to_owned(), 1));
    assert_eq!(told(&lab, "web-0002"), ("Programmed".to_owned(), 0));
}

#[test]
fn no_pod_that_is_ready() {
    let mut lab = container_laboratory(2);
    create(&mut lab, web(1));
    settled(&mut lab);
    lab.pass(600_000);
    assert_eq!(told(&lab, &web_name(1)), ("NoBackends".to_owned(), 1));
    set_slice(&mut lab, &web_name(1), 0, ready(&[(1, 0)]));
    settled(&mut lab);
    assert_eq!(told(&lab, &web_name(1)), ("Programmed".to_owned(), 1));
}
