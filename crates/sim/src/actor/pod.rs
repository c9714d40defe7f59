//! Pods come, go, move to another node under the same address, and leave through egress gateways,
//! whose Pods may all be replaced at once.

use super::crew::is_homeless;
use super::{Company, living};
use crate::random::Random;
use crate::scene::objects;
use crate::scene::objects::gateway_of;
use crate::stage::Stage;
use kube_emulator::{ObjectRef, Part, Patch};
use serde_json::{Value, json};

const PODS: u64 = 10;
/// In how many of a thousand moves of a Pod with an egress gateway all its Pods are replaced.
const REPLACED: u64 = 200;

impl Company {
    pub(super) fn pod(&mut self, random: &mut Random, stage: &mut Stage) -> &'static str {
        let slot = random.below(PODS);
        let name = self.name_of(format!("pod-{slot}"));
        let replaced = random.fork("replaced").permille(REPLACED);
        let nodes: Vec<u32> = self.nodes.keys().copied().collect();
        let node = random.choose(&nodes).copied().unwrap_or(0);
        // Addresses are few, so that they are taken over.
        let address = format!("10.244.0.{}", 10 + random.below(PODS + 4));
        let app = json!({"app": format!("web-{}", random.below(self.slots))});
        let egress = json!({"kubernetes.azure.com/service-egress-gateway":
            format!("team-{}", random.below(2))});
        let labels = if slot >= 7 { egress } else { app };
        let taken = self.pods.values().any(|pod| pod["status"]["podIP"] == json!(address));
        match self.pods.get(&name) {
            None if taken => "a pod finds no address",
            Some(pod) if taken && is_homeless(pod) => "a pod finds no address",
            None => {
                let pod = objects::pod(&name, &labels, node, &address);
                self.pods.insert(name, pod);
                self.tend_pods(stage);
                "add a pod"
            }
            Some(pod) if is_homeless(pod) => {
                self.house(&name, &address, stage);
                "give a pod its address"
            }
            Some(pod) => match (random.below(4), gateway_of(pod)) {
                (_, Some(gateway)) if replaced => {
                    self.replace_crew(&gateway, stage);
                    "replace all pods of an egress gateway"
                }
                (0, _) => {
                    self.pods.remove(&name);
                    self.remove_pod(stage, &name);
                    "remove a pod"
                }
                (1, _) => {
                    let address = pod["status"]["podIP"].as_str().unwrap_or("").to_owned();
                    let labels = pod["metadata"]["labels"].clone();
                    let moved = objects::pod(&name, &labels, node, &address);
                    self.pods.insert(name.clone(), moved);
                    self.remove_pod(stage, &name);
                    self.tend_pods(stage);
                    "move a pod"
                }
                _ => {
                    let status = if random.permille(500) { "True" } else { "False" };
                    let patch =
                        json!({"status": {"conditions": [{"type": "Ready", "status": status}]}});
                    self.set_status(stage, &name, &patch);
                    "flip a pod's readiness"
                }
            },
        }
    }

    pub(super) fn remove_pod(&self, stage: &mut Stage, name: &str) {
        let now = stage.now_ms;
        let _ = stage.kubernetes.delete(ObjectRef::new("pods", "default", name), now);
        stage.trace.say(now, || format!("pod {name} is deleted"));
        stage.follow();
    }

    pub(super) fn set_status(&mut self, stage: &mut Stage, name: &str, patch: &Value) {
        let Some(pod) = self.pods.get_mut(name) else { return };
        super::merge(pod, patch);
        if living(stage, "pods", "default", name).is_some() {
            let object = ObjectRef::new("pods", "default", name);
            let now = stage.now_ms;
            let patch = Patch::Merge(patch.clone());
            let _ = stage.kubernetes.patch(object, Part::Status, &patch, now);
        }
    }

    pub(super) fn tend_pods(&self, stage: &mut Stage) {
        let now = stage.now_ms;
        for (name, pod) in &self.pods {
            if stage.kubernetes.get(ObjectRef::new("pods", "default", name)).is_ok() {
                continue;
            }
            if stage.kubernetes.create(pod.clone(), now).is_ok() {
                let object = ObjectRef::new("pods", "default", name);
                let patch = Patch::Merge(json!({"status": pod["status"]}));
                let _ = stage.kubernetes.patch(object, Part::Status, &patch, now);
                stage.trace.say(now, || {
                    let host = &pod["spec"]["nodeName"];
                    format!("pod {name} runs on {host} at {}", pod["status"]["podIP"])
                });
            }
        }
    }
}
