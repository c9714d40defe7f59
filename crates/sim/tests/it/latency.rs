//! The programming latency, to the millisecond: what is measured, and what is not.

use crate::support::container::refusal;
use crate::support::{Backends, INTERNAL, TIMEOUT, patch, remove, sample_laboratory};
use azure_emulator::Fault;
use control::latency::LATENCY_BOUNDS_MS;
use control::{ChangeKind, Leadership, Options};
use kube_emulator::{ObjectRef, Part, Patch};
use serde_json::{Value, json};
use sim::Laboratory;

const HOUR_MS: u64 = 3_600_000;

/// A settled cluster without Services; from now on a call takes a second.
fn laboratory(backends: Backends, options: Options) -> Laboratory {
    let mut lab = sample_laboratory(backends, 3, options);
    lab.settle(HOUR_MS);
    lab.azure_latency_ms = 1_000;
    lab
}

fn node(name: &str, address: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name},
        "status": {"addresses": [{"type": "InternalIP", "address": address}]}})
}

fn service(lab: &mut Laboratory, name: &str, annotations: &Value) {
    let object = json!({"apiVersion": "v1", "kind": "Service",
        "metadata": {"name": name, "namespace": "default", "annotations": annotations},
        "spec": {"type": "LoadBalancer", "selector": {"app": "web"},
            "ports": [{"port": 80, "targetPort": 8080}]}});
    lab.kubernetes.create(object, lab.now_ms).expect("the Service is created");
}

fn annotate(lab: &mut Laboratory, name: &str, annotations: &Value) {
    let object = ObjectRef::new("services", "default", name);
    let patch = Patch::Merge(json!({ "metadata": { "annotations": annotations } }));
    lab.kubernetes.patch(object, Part::Main, &patch, lab.now_ms).expect("it is patched");
}

/// A Pod that is ready at once.
fn pod(lab: &mut Laboratory, number: u8) {
    let name = format!("web-{number}");
    let object = json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": {"app": "web"}},
        "spec": {"nodeName": "vmss000000", "containers": [{"name": "main", "image": "web"}]}});
    lab.kubernetes.create(object, lab.now_ms).expect("the Pod is created");
    let address = format!("10.244.0.{number}");
    let status = json!({"status": {"phase": "Running", "podIP": address,
        "podIPs": [{"ip": address}], "hostIP": "10.224.0.4",
        "conditions": [{"type": "Ready", "status": "True"}]}});
    let object = ObjectRef::new("pods", "default", &name);
    let patch = Patch::Strategic(status);
    lab.kubernetes.patch(object, Part::Status, &patch, lab.now_ms).expect("it is patched");
}

/// How many changes fell below which bound, and the time of all.
fn measured(lab: &Laboratory, kind: ChangeKind) -> (Vec<(u64, u64)>, u64) {
    let latencies = lab.controller().latencies();
    let (_, histogram) = latencies.measured().find(|(k, _)| *k == kind).expect("it is measured");
    let bounds = LATENCY_BOUNDS_MS.iter().copied().chain([u64::MAX]);
    let slots = bounds.zip(histogram.counts().iter().copied());
    (slots.filter(|(_, count)| *count > 0).collect(), histogram.sum())
}

fn pending(lab: &Laboratory) -> [usize; 3] {
    ChangeKind::ALL.map(|kind| lab.controller().latencies().pending(kind))
}

#[test]
fn a_pod_takes_as_long_as_the_call_and_the_one_before_it() {
    let mut lab = laboratory(Backends::Pods, Options::default());
    service(&mut lab, "web", &json!({}));
    assert!(lab.settle(HOUR_MS));
    pod(&mut lab, 1);
    lab.pass(400);
    // The call for the first is under way: the second and the third wait for the next.
    pod(&mut lab, 2);
    pod(&mut lab, 3);
    lab.pass(599);
    assert_eq!(measured(&lab, ChangeKind::Pod), (vec![], 0));
    assert_eq!(pending(&lab), [0, 3, 0]);
    lab.pass(1);
    assert_eq!(measured(&lab, ChangeKind::Pod), (vec![(1_000, 1)], 1_000));
    assert!(lab.settle(HOUR_MS));
    assert_eq!(measured(&lab, ChangeKind::Pod), (vec![(1_000, 1), (2_500, 2)], 1_000 + 2 * 1_600));
    assert_eq!(pending(&lab), [0, 0, 0]);
    remove(&mut lab, "pods", "default", "web-1");
    assert!(lab.settle(HOUR_MS));
    assert_eq!(measured(&lab, ChangeKind::Pod), (vec![(1_000, 2), (2_500, 2)], 5_200));
}

#[test]
fn pods_of_a_new_service_wait_for_its_registration() {
    let mut lab = laboratory(Backends::Pods, Options::default());
    service(&mut lab, "web", &json!({}));
    pod(&mut lab, 1);
    assert!(lab.settle(HOUR_MS));
    // Public IP, load balancer, registration: a second each; then the address.
    assert_eq!(measured(&lab, ChangeKind::Service), (vec![(5_000, 1)], 3_000));
    assert_eq!(measured(&lab, ChangeKind::Pod), (vec![(5_000, 1)], 4_000));
    assert_eq!(pending(&lab), [0, 0, 0]);
}

#[test]
fn a_service_is_measured_until_azure_has_all_of_it() {
    let mut lab = laboratory(Backends::Nodes, Options::default());
    service(&mut lab, "web", &json!({}));
    assert!(lab.settle(HOUR_MS));
    let created = measured(&lab, ChangeKind::Service);
    // Public IP; load balancer, written and read back; security group.
    assert_eq!(created, (vec![(5_000, 1)], 4_000));
    // Written and read back.
    annotate(&mut lab, "web", &json!({ TIMEOUT: "10" }));
    assert!(lab.settle(HOUR_MS));
    assert_eq!(measured(&lab, ChangeKind::Service), (vec![(2_500, 1), (5_000, 1)], 6_000));
    remove(&mut lab, "services", "default", "web");
    assert!(lab.settle(HOUR_MS));
    // Security group, load balancer, public IP.
    assert_eq!(measured(&lab, ChangeKind::Service), (vec![(2_500, 1), (5_000, 2)], 9_000));
    assert_eq!(pending(&lab), [0, 0, 0]);
}

#[test]
fn a_change_that_leads_to_no_write_and_one_that_is_refused_are_not_measured() {
    let mut lab = laboratory(Backends::Nodes, Options::default());
    service(&mut lab, "web", &json!({}));
    assert!(lab.settle(HOUR_MS));
    let before = measured(&lab, ChangeKind::Service);
    annotate(&mut lab, "web", &json!({ "team": "blue" }));
    assert!(lab.settle(HOUR_MS));
    annotate(&mut lab, "web", &json!({ TIMEOUT: "1000" }));
    lab.pass(60_000);
    assert_eq!(measured(&lab, ChangeKind::Service), before);
    assert_eq!(pending(&lab), [0, 0, 0]);
}

#[test]
fn what_is_there_at_the_start_is_not_measured_nor_what_another_process_writes() {
    let mut lab = laboratory(Backends::Nodes, Options::default());
    service(&mut lab, "web", &json!({}));
    lab.restart();
    assert!(lab.settle(HOUR_MS));
    assert!(lab.calls().0 > 0, "it was programmed after the start");
    assert_eq!(measured(&lab, ChangeKind::Service), (vec![], 0));

    let follower = Options { leadership: Leadership::Lost, ..Options::default() };
    let mut lab = laboratory(Backends::Nodes, follower);
    service(&mut lab, "web", &json!({}));
    lab.pass(60_000);
    assert_eq!(pending(&lab), [0, 0, 0]);
}

#[test]
fn a_node_is_measured_until_every_pool_has_it() {
    let mut lab = laboratory(Backends::Nodes, Options::default());
    service(&mut lab, "web", &json!({}));
    service(&mut lab, "api", &json!({ INTERNAL: "true" }));
    assert!(lab.settle(HOUR_MS));
    assert_eq!(measured(&lab, ChangeKind::Node), (vec![], 0), "they were there before");
    lab.kubernetes.create(node("new", "10.224.0.99"), lab.now_ms).expect("a node is created");
    assert!(lab.settle(HOUR_MS));
    // Both load balancers at once, each written and read back.
    assert_eq!(measured(&lab, ChangeKind::Node), (vec![(2_500, 1)], 2_000));
    // A label that no pool depends on.
    patch(&mut lab, "nodes", "", "new", json!({ "metadata": { "labels": { "zone": "9" } } }));
    assert!(lab.settle(HOUR_MS));
    remove(&mut lab, "nodes", "", "new");
    assert!(lab.settle(HOUR_MS));
    assert_eq!(measured(&lab, ChangeKind::Node), (vec![(2_500, 2)], 4_000));
    assert_eq!(pending(&lab), [0, 0, 0]);
}

#[test]
fn failures_on_the_way_are_part_of_it() {
    let mut lab = laboratory(Backends::Pods, Options::default());
    service(&mut lab, "web", &json!({}));
    assert!(lab.settle(HOUR_MS));
    let kind = refusal(429, "TooManyRequests", Some(30));
    let fault = Fault::new(kind).on_path("updateAddressLocations");
    lab.azure.add_fault(fault.expect("the pattern is right"));
    pod(&mut lab, 1);
    assert!(lab.settle(HOUR_MS));
    // A second until it is refused, thirty as asked, a second for the call that is taken.
    assert_eq!(measured(&lab, ChangeKind::Pod), (vec![(60_000, 1)], 32_000));
}
