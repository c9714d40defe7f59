//! Small mishaps while all is right: the API server refuses a few calls, and meanwhile a user
//! takes something away.

use super::{Company, living};
use crate::scene::objects::{self, EGRESS_LABEL};
use crate::stage::Stage;
use kube_emulator::{Failure, Fault as ApiFault, Method, ObjectRef, Part, Patch};
use model::kubernetes::READINESS_GATE;
use model::world::Kind;
use serde_json::{Value, json};

const NAMESPACE: &str = "default";
/// Whose finalizer is taken off: a Service that no other user changes.
const BARED: &str = "bared";
const BARED_NUMBER: u64 = 730;
/// A Pod with our gate that goes while its gate is being written.
const FLEETING: &str = "fleeting";
/// How many calls in a row are refused: until the last of the tries behind them, more time passes
/// than writes to Azure wait for each other.
const REFUSED: u32 = 5;

/// Pods that leave through one egress gateway, which other Pods may ask for, too.
const LEAVING: [&str; 2] = ["leaving-0", "leaving-1"];
const GATEWAY: &str = "team-0";
/// How many patches of the second one are refused: with the waits between them two minutes.
const UNCLAIMED: u32 = 9;
/// How long after a deletion the kubelet writes of a Pod that its containers have ended.
const ENDED_MS: u64 = 400;

fn bared() -> (String, String) {
    (NAMESPACE.to_owned(), BARED.to_owned())
}

/// The next so many patches of an object are refused.
fn refuse(stage: &mut Stage, plural: &str, name: &str, times: u32) {
    let fault = ApiFault::next(Failure::Unavailable).on_method(Method::Patch).on_kind(plural);
    stage.kubernetes.inject(fault.on_name(name).times(times));
}

fn set_ready(stage: &mut Stage, ready: bool) {
    let status = if ready { "True" } else { "False" };
    let status = json!({"conditions": [{"type": "ContainersReady", "status": status}]});
    let object = ObjectRef::new("pods", NAMESPACE, FLEETING);
    let patch = Patch::Strategic(json!({ "status": status }));
    let _ = stage.kubernetes.patch(object, Part::Status, &patch, stage.now_ms);
    stage.follow();
}

impl Company {
    /// A Service comes whose finalizer will be taken off.
    pub(crate) fn bring_bared(&mut self, stage: &mut Stage) {
        let mut service = objects::service(NAMESPACE, BARED_NUMBER);
        service["metadata"]["name"] = json!(BARED);
        self.services.insert(bared(), service);
        self.tend(stage);
    }

    /// Its finalizer is taken off, and the API server refuses for a while to have it back: the
    /// Service stays, and so does what it has.
    pub(crate) fn bare(stage: &mut Stage) {
        if living(stage, "services", NAMESPACE, BARED).is_none() {
            return;
        }
        let object = ObjectRef::new("services", NAMESPACE, BARED);
        let patch = Patch::Merge(json!({"metadata": {"finalizers": null}}));
        let _ = stage.kubernetes.patch(object, Part::Main, &patch, stage.now_ms);
        refuse(stage, "services", BARED, REFUSED);
        stage.follow();
    }

    /// Meanwhile another controller says its own of the Service: that is nothing to Ballast, and
    /// the Service has another version.
    pub(crate) fn remark(stage: &mut Stage) {
        if living(stage, "services", NAMESPACE, BARED).is_none() {
            return;
        }
        let condition = json!({"type": "example.com/Seen", "status": "True", "reason": "Seen",
            "message": "It was seen.", "lastTransitionTime": "2023-11-14T22:13:20Z"});
        let patch = Patch::Strategic(json!({"status": {"conditions": [condition]}}));
        let object = ObjectRef::new("services", NAMESPACE, BARED);
        let _ = stage.kubernetes.patch(object, Part::Status, &patch, stage.now_ms);
        stage.follow();
    }

    /// It has its finalizer back, and nothing was lost meanwhile: when it goes, what it has goes
    /// with it, as with every other Service.
    pub(crate) fn cover(stage: &mut Stage) {
        let name = format!("{NAMESPACE}/{BARED}");
        for service in stage.truth.services.values_mut() {
            service.stripped &= service.name != name || !service.claimed;
        }
    }

    /// A Pod with our gate goes while its gate is still to be written, and the watch that would say
    /// so is late.
    pub(crate) fn flee(&self, stage: &mut Stage) {
        let node = self.nodes.keys().next().copied().unwrap_or(0);
        let labels = json!({"app": "nobody", READINESS_GATE: "enabled"});
        let mut pod = objects::pod(FLEETING, &labels, node, "10.244.3.10");
        pod["spec"]["readinessGates"] = json!([{"conditionType": READINESS_GATE}]);
        let status: Value = pod["status"].clone();
        let object = ObjectRef::new("pods", NAMESPACE, FLEETING);
        if stage.kubernetes.create(pod, stage.now_ms).is_err() {
            return;
        }
        let patch = Patch::Merge(json!({ "status": status }));
        let _ = stage.kubernetes.patch(object, Part::Status, &patch, stage.now_ms);
        set_ready(stage, false);
        stage.advance(stage.now_ms + 60_000);
        set_ready(stage, true);
        refuse(stage, "pods", FLEETING, 2);
        // The first try, and the one after the short wait, are refused by then.
        stage.advance(stage.now_ms + 700);
        for number in 0..stage.processes.len() {
            stage.delay_watch(number, Kind::GatedPods);
            stage.delay_watch(number, Kind::Pods);
        }
        let _ = stage.kubernetes.delete(object, stage.now_ms);
        stage.follow();
        stage.advance(stage.now_ms + 30_000);
    }

    /// A Pod comes that leaves through an egress gateway.
    pub(crate) fn bring_leaving(&mut self, stage: &mut Stage) {
        self.add_leaving(0, stage);
    }

    /// Another one comes, and the API server refuses for a while what Ballast writes of it.
    pub(crate) fn bring_unclaimed(&mut self, stage: &mut Stage) {
        refuse(stage, "pods", LEAVING[1], UNCLAIMED);
        self.add_leaving(1, stage);
    }

    fn add_leaving(&mut self, at: usize, stage: &mut Stage) {
        let node = self.nodes.keys().next().copied().unwrap_or(0);
        let address = format!("10.244.10.{}", 10 + at);
        let pod = objects::pod(LEAVING[at], &json!({ EGRESS_LABEL: GATEWAY }), node, &address);
        self.pods.insert(LEAVING[at].to_owned(), pod);
        self.tend_pods(stage);
        stage.follow();
    }

    /// The kubelet writes of the Pod that it is ready, or is not: its way out is the same.
    pub(crate) fn flip_unclaimed(&mut self, ready: bool, stage: &mut Stage) {
        self.set_status(stage, LEAVING[1], &readiness(ready));
        stage.follow();
    }

    /// These Pods go, and the kubelet writes what becomes of them on the way.
    pub(crate) fn dismiss_leaving(&mut self, stage: &mut Stage) {
        for name in LEAVING {
            self.pods.remove(name);
            self.remove_pod(stage, name);
        }
        stage.advance(stage.now_ms + ENDED_MS);
        for name in LEAVING {
            let object = ObjectRef::new("pods", NAMESPACE, name);
            let patch = Patch::Merge(readiness(false));
            let _ = stage.kubernetes.patch(object, Part::Status, &patch, stage.now_ms);
        }
        stage.follow();
    }
}

fn readiness(ready: bool) -> Value {
    let status = if ready { "True" } else { "False" };
    json!({"status": {"conditions": [{"type": "Ready", "status": status}]}})
}
