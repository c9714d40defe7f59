//! Pods with our readiness gate: their containers start, fail and start again, and the kubelet
//! writes conditions beside ours. Some have one label of a Service's selector and not the other.

use super::{Company, living, merge};
use crate::fault::Fault;
use crate::random::Random;
use crate::scene::{Layout, objects};
use crate::stage::Stage;
use crate::tally::count;
use kube_emulator::{ObjectRef, Part, Patch};
use model::kubernetes::{Backends, READINESS_GATE};
use serde_json::{Value, json};
use std::collections::btree_map::Entry;

/// Pods that are made here.
const PODS: u64 = 4;

/// A Service whose selector has two labels.
const FRONT: &str = "front";
const FRONT_NUMBER: u64 = 770;

fn status(containers: bool) -> Value {
    let status = if containers { "True" } else { "False" };
    json!({"conditions": [{"type": "ContainersReady", "status": status}]})
}

fn pod(number: u64, app: u64, node: u32, containers: bool) -> Value {
    let labels = json!({"app": format!("web-{app}")});
    let address = format!("10.244.2.{}", 10 + number);
    gated(objects::pod(&format!("gated-{number}"), &labels, node, &address), containers)
}

/// The Pod with our gate.
fn gated(mut pod: Value, containers: bool) -> Value {
    pod["metadata"]["labels"][READINESS_GATE] = json!("enabled");
    pod["spec"]["readinessGates"] = json!([{"conditionType": READINESS_GATE}]);
    merge(&mut pod["status"], &status(containers));
    pod
}

/// Whether a condition of a Pod is True.
fn holds(pod: &Value, condition: &str) -> bool {
    let mut all = pod["status"]["conditions"].as_array().into_iter().flatten();
    all.any(|c| c["type"] == condition && c["status"] == "True")
}

impl Company {
    /// Creates a Service whose selector has two labels, and Pods with our gate: one with both
    /// labels, one with the first, and one with another value of the second.
    pub(crate) fn bring_front(&mut self, stage: &mut Stage) {
        let node = self.nodes.keys().next().copied();
        let Some(node) = node.filter(|_| self.scene.layout == Layout::Containers) else { return };
        let mut service = objects::service("default", FRONT_NUMBER);
        service["metadata"]["name"] = json!(FRONT);
        service["spec"]["selector"] = json!({"app": FRONT, "tier": "one"});
        self.services.insert(("default".to_owned(), FRONT.to_owned()), service);
        let labels = [
            json!({"app": FRONT, "tier": "one"}),
            json!({"app": FRONT}),
            json!({"app": FRONT, "tier": "two"}),
        ];
        for (number, labels) in labels.iter().enumerate() {
            let name = format!("{FRONT}-{number}");
            let address = format!("10.244.5.{}", 10 + number);
            let pod = gated(objects::pod(&name, labels, node, &address), true);
            self.pods.insert(name, pod);
        }
        self.tend(stage);
    }

    pub(super) fn gate(&mut self, random: &mut Random, stage: &mut Stage) -> &'static str {
        count(&mut stage.tally.faults, Fault::Gates.name());
        let number = random.below(PODS);
        let name = format!("gated-{number}");
        let nodes: Vec<u32> = self.nodes.keys().copied().collect();
        let node = random.choose(&nodes).copied().unwrap_or(0);
        let (app, containers) = (random.below(self.slots), random.permille(600));
        if let Entry::Vacant(free) = self.pods.entry(name.clone()) {
            free.insert(pod(number, app, node, containers));
            self.tend_pods(stage);
            return "add a Pod with our gate";
        }
        match random.below(5) {
            0 => {
                self.pods.remove(&name);
                self.remove_pod(stage, &name);
                "remove a Pod with our gate"
            }
            1 => {
                self.pods.insert(name.clone(), pod(number, app, node, containers));
                self.remove_pod(stage, &name);
                self.tend_pods(stage);
                "replace a Pod with our gate"
            }
            _ => {
                let status = status(containers);
                if let Some(pod) = self.pods.get_mut(&name) {
                    merge(&mut pod["status"], &status);
                }
                if living(stage, "pods", "default", &name).is_some() {
                    // The kubelet leaves others' conditions as they are.
                    let patch = Patch::Strategic(json!({ "status": status }));
                    let object = ObjectRef::new("pods", "default", &name);
                    let now = stage.now_ms;
                    let _ = stage.kubernetes.patch(object, Part::Status, &patch, now);
                }
                stage.trace.say(stage.now_ms, || format!("pod {name}: containers {containers}"));
                "flip the containers of a Pod with our gate"
            }
        }
    }
}

impl Stage {
    /// Pods with our gate that are held back although their containers run, or let through although
    /// they do not: such a Pod would be ready again before the gateway leads to it again. Where
    /// load balancers lead to nodes there is nothing to wait for: the gate stays open.
    #[must_use]
    pub fn held_back(&self) -> Vec<String> {
        let pods = self.kubernetes.list("pods", None);
        let lives = |pod: &Value| pod["metadata"]["deletionTimestamp"].is_null();
        let waits = self.config.backends() == Backends::Pods;
        let wrong = |pod: &Value| {
            let name = &pod["metadata"]["name"];
            match (holds(pod, "ContainersReady"), holds(pod, READINESS_GATE)) {
                (true, false) => Some(format!("Pod {name} waits at our readiness gate")),
                (false, true) if waits => Some(format!("our readiness gate of Pod {name} is open")),
                (true, true) | (false, _) => None,
            }
        };
        pods.iter()
            .filter(|pod| !pod["spec"]["readinessGates"].is_null() && lives(pod))
            .filter_map(|pod| wrong(pod))
            .collect()
    }
}
