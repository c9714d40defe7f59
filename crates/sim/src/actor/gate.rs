//! Pods with our readiness gate: their containers start, fail and start again, and the kubelet
//! writes conditions beside ours. Some have one label of a Service's selector and not the other,
//! and some have a gate of another controller beside ours, which says late, or never, that it is
//! open, and shuts again.

use super::{Company, living};
use crate::check::gates::is_ready_but_for_ours;
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
pub(crate) const FRONT: &str = "front";
const FRONT_NUMBER: u64 = 770;
/// A Pod of it whose address Azure does not take for a while.
const LATE: &str = "front-late";
/// Its Pods that have a gate of another controller, too.
const ATTENDED: [usize; 2] = [3, 4];

const CONTAINERS: &str = "ContainersReady";
/// The readiness gate of another controller.
const OTHERS: &str = "example.com/registered";
/// In how many of a thousand Pods with our gate it is there, too.
const BESIDE: u64 = 500;

fn pod(number: u64, app: u64, node: u32, containers: bool) -> Value {
    let labels = json!({"app": format!("web-{app}")});
    let address = format!("10.244.2.{}", 10 + number);
    gated(objects::pod(&format!("gated-{number}"), &labels, node, &address), containers)
}

/// The Pod with our gate.
fn gated(mut pod: Value, containers: bool) -> Value {
    pod["metadata"]["labels"][READINESS_GATE] = json!("enabled");
    pod["spec"]["readinessGates"] = json!([{"conditionType": READINESS_GATE}]);
    pod["status"]["conditions"] = json!([]);
    say(&mut pod, CONTAINERS, containers);
    pod
}

/// The Pod with another controller's gate before ours. Nothing is said of it yet.
fn attended(mut pod: Value) -> Value {
    let gates = [OTHERS, READINESS_GATE].map(|gate| json!({"conditionType": gate}));
    pod["spec"]["readinessGates"] = json!(gates);
    pod
}

/// The Pod, in some cases with another controller's gate: open, shut, or without a word of it.
fn maybe_attended(pod: Value, random: &mut Random) -> Value {
    if !random.permille(BESIDE) {
        return pod;
    }
    let mut pod = attended(pod);
    if let Some(opens) = *random.pick(&[None, Some(true), Some(false)]) {
        say(&mut pod, OTHERS, opens);
    }
    pod
}

/// Sets a condition of a Pod as it shall be. What is to be written for that.
fn say(pod: &mut Value, kind: &str, holds: bool) -> Value {
    let status = if holds { "True" } else { "False" };
    let condition = json!({"type": kind, "status": status});
    if let Some(all) = pod["status"]["conditions"].as_array_mut() {
        all.retain(|known| known["type"] != kind);
        all.push(condition.clone());
    }
    json!({"status": {"conditions": [condition]}})
}

/// Whether another controller has a gate of a Pod.
fn is_attended(pod: &Value) -> bool {
    let mut gates = pod["spec"]["readinessGates"].as_array().into_iter().flatten();
    gates.any(|gate| gate["conditionType"] == OTHERS)
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
        for number in ATTENDED {
            let name = format!("{FRONT}-{number}");
            let address = format!("10.244.5.{}", 10 + number);
            let pod = gated(objects::pod(&name, &labels[0], node, &address), true);
            self.pods.insert(name, attended(pod));
        }
        self.tend(stage);
    }

    /// Another Pod of that Service comes, with our gate. Its name, where the Service is there.
    pub(crate) fn bring_late(&mut self, stage: &mut Stage) -> Option<String> {
        let node = self.nodes.keys().next().copied()?;
        living(stage, "services", "default", FRONT)?;
        let labels = json!({"app": FRONT, "tier": "one"});
        let pod = gated(objects::pod(LATE, &labels, node, "10.244.5.90"), true);
        self.pods.insert(LATE.to_owned(), pod);
        self.tend(stage);
        Some(LATE.to_owned())
    }

    /// That Pod goes again.
    pub(crate) fn dismiss_late(&mut self, stage: &mut Stage) {
        if self.pods.remove(LATE).is_some() {
            self.remove_pod(stage, LATE);
        }
    }

    /// Another controller opens its gate of one of these Pods, and shuts that of the other: their
    /// containers run all the while.
    pub(crate) fn attend(&mut self, round: usize, stage: &mut Stage) {
        for number in ATTENDED {
            let opens = (round + number).is_multiple_of(2);
            self.say(&format!("{FRONT}-{number}"), OTHERS, opens, stage);
        }
    }

    /// A condition of a Pod is written. The kubelet and other controllers leave others' conditions
    /// as they are.
    fn say(&mut self, name: &str, kind: &str, holds: bool, stage: &mut Stage) {
        let Some(pod) = self.pods.get_mut(name) else { return };
        let patch = Patch::Strategic(say(pod, kind, holds));
        if living(stage, "pods", "default", name).is_some() {
            let object = ObjectRef::new("pods", "default", name);
            let _ = stage.kubernetes.patch(object, Part::Status, &patch, stage.now_ms);
        }
        stage.trace.say(stage.now_ms, || format!("pod {name}: {kind} {holds}"));
    }

    pub(super) fn gate(&mut self, random: &mut Random, stage: &mut Stage) -> &'static str {
        count(&mut stage.tally.faults, Fault::Gates.name());
        let number = random.below(PODS);
        let name = format!("gated-{number}");
        let nodes: Vec<u32> = self.nodes.keys().copied().collect();
        let node = random.choose(&nodes).copied().unwrap_or(0);
        let (app, containers) = (random.below(self.slots), random.permille(600));
        let mut others = random.fork("gates of others");
        if let Entry::Vacant(free) = self.pods.entry(name.clone()) {
            free.insert(maybe_attended(pod(number, app, node, containers), &mut others));
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
                let fresh = maybe_attended(pod(number, app, node, containers), &mut others);
                self.pods.insert(name.clone(), fresh);
                self.remove_pod(stage, &name);
                self.tend_pods(stage);
                "replace a Pod with our gate"
            }
            _ => {
                let attended = self.pods.get(&name).is_some_and(is_attended);
                if attended && others.permille(500) {
                    self.say(&name, OTHERS, others.permille(600), stage);
                    return "flip another controller's gate of a Pod with ours";
                }
                self.say(&name, CONTAINERS, containers, stage);
                "flip the containers of a Pod with our gate"
            }
        }
    }
}

impl Stage {
    /// Whether our gate of a Pod is open.
    pub(crate) fn is_let_through(&self, pod: &str) -> bool {
        let pod = self.kubernetes.get(ObjectRef::new("pods", "default", pod));
        pod.is_ok_and(|pod| holds(&pod, READINESS_GATE))
    }

    /// Pods with our gate that are held back although their containers and all other gates are
    /// ready, or let through although they are not: such a Pod would be ready again before the
    /// gateway leads to it again. Where load balancers lead to nodes there is nothing to wait for:
    /// the gate stays open.
    #[must_use]
    pub fn held_back(&self) -> Vec<String> {
        let pods = self.kubernetes.list("pods", None);
        let lives = |pod: &Value| pod["metadata"]["deletionTimestamp"].is_null();
        let waits = self.config.backends() == Backends::Pods;
        let wrong = |pod: &Value| {
            let name = &pod["metadata"]["name"];
            match (is_ready_but_for_ours(pod), holds(pod, READINESS_GATE)) {
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
