//! Nodes come and go, are excluded, are about to be deleted, and are ready or not.

use super::Company;
use crate::random::Random;
use crate::scene::MACHINES;
use crate::stage::Stage;
use kube_emulator::{ObjectRef, Part, Patch};
use serde_json::{Value, json};

fn name_of(node: &Value) -> String {
    node["metadata"]["name"].as_str().unwrap_or("").to_owned()
}

impl Company {
    pub(super) fn node(&mut self, random: &mut Random, stage: &mut Stage) -> &'static str {
        let index = u32::try_from(random.below(u64::from(MACHINES))).unwrap_or(0);
        let now = stage.now_ms;
        let Some(node) = self.nodes.get(&index).cloned() else {
            let mut node = self.scene.node(index);
            let what = match random.below(8) {
                0 => {
                    node["spec"].as_object_mut().and_then(|spec| spec.shift_remove("providerID"));
                    "add a node without providerID"
                }
                1 => {
                    node["status"]["addresses"] = json!([]);
                    "add a node without address"
                }
                _ => "add a node",
            };
            self.nodes.insert(index, node);
            self.tend_nodes(stage);
            return what;
        };
        let name = name_of(&node);
        let object = ObjectRef::new("nodes", "", &name);
        let exclude = "node.kubernetes.io/exclude-from-external-load-balancers";
        let (what, patch) = match random.below(6) {
            0 if self.nodes.len() > 1 => {
                self.nodes.remove(&index);
                let _ = stage.kubernetes.delete(object, now);
                stage.trace.say(now, || format!("node {name} is deleted"));
                return "remove a node";
            }
            1 => {
                // That the label is there counts, whatever it says.
                let says = if index.is_multiple_of(2) { "true" } else { "false" };
                let label = if random.permille(500) { json!(says) } else { Value::Null };
                ("exclude a node", json!({"metadata": {"labels": {exclude: label}}}))
            }
            2 if index % 3 == 2 => {
                let label = if random.permille(500) { json!("") } else { Value::Null };
                let patch = json!({"metadata": {"labels": {"ballast.dev/drain": label}}});
                ("drain a node for planned work", patch)
            }
            2 => {
                let taint = json!([{"key": "ToBeDeletedByClusterAutoscaler", "effect": "NoSchedule",
                    "value": "1"}]);
                let taints = if random.permille(500) { taint } else { Value::Null };
                ("taint a node for deletion", json!({"spec": {"taints": taints}}))
            }
            3 => {
                // It joins late: with its provider id, and with an address.
                let whole = self.scene.node(index);
                let patch = json!({"spec": {"providerID": whole["spec"]["providerID"]},
                    "status": {"addresses": whole["status"]["addresses"]}});
                ("complete a node", patch)
            }
            _ => {
                let status = if random.permille(500) { "True" } else { "False" };
                let conditions = json!([{"type": "Ready", "status": status}]);
                ("flip a node's readiness", json!({"status": {"conditions": conditions}}))
            }
        };
        if let Some(node) = self.nodes.get_mut(&index) {
            super::merge(node, &patch);
        }
        let patch = Patch::Merge(patch);
        for part in [Part::Main, Part::Status] {
            let object = ObjectRef::new("nodes", "", &name);
            let _ = stage.kubernetes.patch(object, part, &patch, now);
        }
        stage.trace.say(now, || format!("node {name}: {what}"));
        what
    }

    pub(super) fn tend_nodes(&self, stage: &mut Stage) {
        for node in self.nodes.values() {
            let name = name_of(node);
            if stage.kubernetes.get(ObjectRef::new("nodes", "", &name)).is_err() {
                let made = stage.kubernetes.create(node.clone(), stage.now_ms);
                stage.trace.say(stage.now_ms, || format!("node {name} is added"));
                if let Err(error) = made {
                    let text = format!("the actors' own node is refused: {}", error.message());
                    stage.fail("actors", text);
                }
            }
        }
    }
}
