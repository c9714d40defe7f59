//! Edits of the cluster, as their owners make them.

use crate::scene::objects;
use crate::stage::Stage;
use kube_emulator::{ObjectRef, Part, Patch};
use model::kubernetes::READINESS_GATE;
use serde_json::{Value, json};

pub(super) fn create(stage: &mut Stage, slot: u64) {
    let now = stage.now_ms;
    let _ = stage.kubernetes.create(objects::service("default", slot), now);
    stage.follow();
}

pub(super) fn create_two(stage: &mut Stage) {
    (0..2).for_each(|slot| create(stage, slot));
}

pub(super) fn delete(stage: &mut Stage, plural: &str, namespace: &str, name: &str) {
    let now = stage.now_ms;
    let _ = stage.kubernetes.delete(ObjectRef::new(plural, namespace, name), now);
    stage.follow();
}

pub(super) fn patch(stage: &mut Stage, name: &str, body: Value) {
    let now = stage.now_ms;
    let object = ObjectRef::new("services", "default", name);
    let _ = stage.kubernetes.patch(object, Part::Main, &Patch::Merge(body), now);
    stage.follow();
}

pub(super) fn annotate(stage: &mut Stage, name: &str, key: &str, value: Value) {
    let key = format!("service.beta.kubernetes.io/{key}");
    patch(stage, name, json!({"metadata": {"annotations": {key: value}}}));
}

pub(super) fn patch_node(stage: &mut Stage, index: u32, body: Value) {
    let now = stage.now_ms;
    let name = format!("vmss{index:06}");
    let object = ObjectRef::new("nodes", "", &name);
    let _ = stage.kubernetes.patch(object, Part::Main, &Patch::Merge(body), now);
    stage.follow();
}

pub(super) fn exclude_node(stage: &mut Stage, index: u32) {
    let key = "node.kubernetes.io/exclude-from-external-load-balancers";
    patch_node(stage, index, json!({"metadata": {"labels": {key: "true"}}}));
}

/// A Pod that runs on a node.
pub(super) fn add_pod(stage: &mut Stage, slot: u64, node: u64, labels: &Value) {
    let node = u32::try_from(node).unwrap_or(0);
    let address = format!("10.244.0.{}", 10 + slot);
    put_pod(stage, objects::pod(&format!("pod-{slot}"), labels, node, &address));
}

/// A Pod with our readiness gate whose containers have not started yet.
pub(super) fn add_gated_pod(stage: &mut Stage, slot: u64) {
    let labels = json!({"app": "web-0", READINESS_GATE: "enabled"});
    let address = format!("10.244.2.{}", 10 + slot);
    let mut pod = objects::pod(&format!("gated-{slot}"), &labels, 1, &address);
    pod["spec"]["readinessGates"] = json!([{"conditionType": READINESS_GATE}]);
    pod["status"]["conditions"] = json!([{"type": "ContainersReady", "status": "False"}]);
    put_pod(stage, pod);
}

/// The containers of a Pod with our readiness gate run. The kubelet leaves others' conditions.
pub(super) fn start_containers(stage: &mut Stage, slot: u64) {
    let now = stage.now_ms;
    let name = format!("gated-{slot}");
    let status = json!({"conditions": [{"type": "ContainersReady", "status": "True"}]});
    let patch = Patch::Strategic(json!({ "status": status }));
    let object = ObjectRef::new("pods", "default", &name);
    let _ = stage.kubernetes.patch(object, Part::Status, &patch, now);
    stage.follow();
}

fn put_pod(stage: &mut Stage, pod: Value) {
    let now = stage.now_ms;
    let status = Patch::Merge(json!({"status": pod["status"]}));
    let name = pod["metadata"]["name"].as_str().unwrap_or("").to_owned();
    let _ = stage.kubernetes.create(pod, now);
    let object = ObjectRef::new("pods", "default", &name);
    let _ = stage.kubernetes.patch(object, Part::Status, &status, now);
    stage.follow();
}

/// Every Service and every Pod is deleted.
pub(super) fn delete_all(stage: &mut Stage) {
    for plural in ["services", "pods"] {
        for object in stage.kubernetes.list(plural, None) {
            let name = |key: &str| object["metadata"][key].as_str().unwrap_or("").to_owned();
            delete(stage, plural, &name("namespace"), &name("name"));
        }
    }
}
