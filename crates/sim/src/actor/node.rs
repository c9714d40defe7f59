//! Nodes come and go, are excluded, are about to be deleted, and are ready or not.

use super::Company;
use crate::fault::Fault;
use crate::random::Random;
use crate::scene::{Layout, MACHINES, MANAGED, NODE_GROUP, OLD_CONTROL_PLANE, machines, objects};
use crate::stage::Stage;
use crate::tally::count;
use crate::truth::{is_going, is_out};
use kube_emulator::{ObjectRef, Part, Patch};
use serde_json::{Value, json};

/// The finalizer of another controller, which holds nodes that are being deleted.
const HOLD: &str = "example.com/machine";

/// The scale set of a node pool that is added, and how many nodes it has.
const ADDED_SET: &str = "vmss4";
const ADDED: u32 = 4;

fn name_of(node: &Value) -> String {
    node["metadata"]["name"].as_str().unwrap_or("").to_owned()
}

/// A node with this label is behind no load balancer.
const EXCLUDE: &str = "node.kubernetes.io/exclude-from-external-load-balancers";
/// A node with this label is drained for planned work.
const DRAIN: &str = "ballast.dev/drain";
/// So many nodes are in good order while one of them is to go.
const WORKERS: usize = 3;

/// The cluster autoscaler's taint of nodes that it is about to delete.
fn taints() -> Value {
    json!([{"key": "ToBeDeletedByClusterAutoscaler", "effect": "NoSchedule", "value": "1"}])
}

/// Whether load balancers lead to a node, and will.
fn is_worker(node: &Value) -> bool {
    let addresses = node["status"]["addresses"].as_array();
    let whole = addresses.is_some_and(|all| !all.is_empty());
    whole && !node["spec"]["providerID"].is_null() && !is_out(node) && !is_going(node)
}

/// Who has a node go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sender {
    /// By the label for planned work, whatever it says.
    Operator,
    /// By the taint of the cluster autoscaler.
    Autoscaler,
    /// By a taint and the label that leaves nodes out of load balancers.
    Karpenter,
}

impl Company {
    pub(super) fn node(&mut self, random: &mut Random, stage: &mut Stage) -> &'static str {
        let index = u32::try_from(random.below(u64::from(MACHINES))).unwrap_or(0);
        let now = stage.now_ms;
        if self.scene.with.contains(&Fault::OddNodes) && random.permille(500) {
            return self.odd_node(index, random, stage);
        }
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
                ("exclude a node", json!({"metadata": {"labels": {EXCLUDE: label}}}))
            }
            2 if index % 3 == 2 => {
                let label = if random.permille(500) { json!("") } else { Value::Null };
                let patch = json!({"metadata": {"labels": {DRAIN: label}}});
                ("drain a node for planned work", patch)
            }
            2 => {
                let taints = if random.permille(500) { taints() } else { Value::Null };
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
        self.change_node(index, &name, patch, stage);
        stage.trace.say(now, || format!("node {name}: {what}"));
        what
    }

    fn change_node(&mut self, index: u32, name: &str, patch: Value, stage: &mut Stage) {
        if let Some(node) = self.nodes.get_mut(&index) {
            super::merge(node, &patch);
        }
        let patch = Patch::Merge(patch);
        for part in [Part::Main, Part::Status] {
            let object = ObjectRef::new("nodes", "", name);
            let _ = stage.kubernetes.patch(object, part, &patch, stage.now_ms);
        }
    }

    /// What clouds, operators and other controllers do to a node.
    fn odd_node(&mut self, index: u32, random: &mut Random, stage: &mut Stage) -> &'static str {
        count(&mut stage.tally.faults, Fault::OddNodes.name());
        let name = name_of(&self.scene.node(index));
        let choice = random.below(6);
        let on = random.permille(500);
        if !self.nodes.contains_key(&index) || choice == 0 {
            return self.release_node(&name, stage);
        }
        let label = |key: &str, value: &str| {
            let value = if on { json!(value) } else { Value::Null };
            json!({"metadata": {"labels": {key: value}}})
        };
        let (what, patch) = match choice {
            1 => ("let a node be managed or not", label(MANAGED, "False")),
            2 => ("move a node between resource groups", label(NODE_GROUP, "elsewhere")),
            // One worker there is in any case.
            3 if index > 0 => ("make a node a control plane", label(OLD_CONTROL_PLANE, "")),
            4 if self.nodes.len() > 1 => return self.hold_in_deletion(index, &name, stage),
            _ => {
                let mut addresses = self.scene.node(index)["status"]["addresses"].clone();
                let second = format!("10.224.7.{}", 4 + index);
                if let Some(all) = addresses.as_array_mut().filter(|_| on) {
                    all.push(json!({"type": "InternalIP", "address": second}));
                }
                let patch = json!({"status": {"addresses": addresses}});
                ("give a node a second address", patch)
            }
        };
        self.change_node(index, &name, patch, stage);
        stage.trace.say(stage.now_ms, || format!("node {name}: {what}"));
        what
    }

    /// A node is deleted, and another controller's finalizer holds it.
    fn hold_in_deletion(&mut self, index: u32, name: &str, stage: &mut Stage) -> &'static str {
        let held = json!({"metadata": {"finalizers": [HOLD]}});
        self.change_node(index, name, held, stage);
        self.nodes.remove(&index);
        let _ = stage.kubernetes.delete(ObjectRef::new("nodes", "", name), stage.now_ms);
        stage.trace.say(stage.now_ms, || format!("node {name} is being deleted"));
        "begin to delete a node"
    }

    /// The cluster shrinks: two nodes go, the second one while the first one drains.
    pub(crate) fn scale_in(&mut self, random: &mut Random, stage: &mut Stage) {
        if self.nodes.len() < 3 || !random.permille(500) {
            return;
        }
        for _ in 0..2 {
            let there: Vec<u32> = self.nodes.keys().copied().collect();
            let gone = random.choose(&there).and_then(|index| self.nodes.remove(index));
            let name = gone.map(|node| name_of(&node)).unwrap_or_default();
            let now = stage.now_ms;
            let _ = stage.kubernetes.delete(ObjectRef::new("nodes", "", &name), now);
            stage.trace.say(now, || format!("node {name} goes, as the cluster shrinks"));
            stage.follow();
            stage.advance(now + random.between(2_000, 25_000));
        }
    }

    /// A node pool is added: where there are several load balancers one whose scale set none calls
    /// its own, and the first one with IPv6.
    pub(crate) fn scale_out(&mut self, stage: &mut Stage) {
        if self.scene.layout == Layout::Several || self.scene.is_ipv4_at_first() {
            let nodes = MACHINES..MACHINES + ADDED;
            self.nodes.extend(nodes.map(|index| (index, objects::node(ADDED_SET, index))));
            self.tend_nodes(stage);
        }
    }

    /// Nodes come until enough are in good order.
    pub(crate) fn bring_workers(&mut self, stage: &mut Stage) {
        for index in 0..MACHINES {
            let workers = self.nodes.values().filter(|node| is_worker(node)).count();
            if workers < WORKERS && !self.nodes.contains_key(&index) {
                self.nodes.insert(index, self.scene.node(index));
            }
        }
        self.tend_nodes(stage);
        stage.follow();
    }

    /// A node in good order that is not the only one, and the id of its machine, or of the NIC of
    /// one.
    pub(crate) fn choose_worker(&self, random: &mut Random) -> Option<(u32, String)> {
        let workers: Vec<(&u32, &Value)> =
            self.nodes.iter().filter(|(_, node)| is_worker(node)).collect();
        let (index, node) = *random.choose(&workers).filter(|_| workers.len() > 1)?;
        let machine = node["spec"]["providerID"].as_str()?.trim_start_matches("azure://");
        Some((*index, machines::nic_of(machine).unwrap_or_else(|| machine.to_lowercase())))
    }

    /// The node is to go, or is not any more.
    pub(crate) fn send_worker(&mut self, index: u32, by: Sender, goes: bool, stage: &mut Stage) {
        let says = if index.is_multiple_of(2) { "" } else { "false" };
        let (label, taints) =
            if goes { (json!(says), taints()) } else { (Value::Null, Value::Null) };
        let patch = match by {
            Sender::Operator => json!({"metadata": {"labels": {DRAIN: label}}}),
            Sender::Autoscaler => json!({"spec": {"taints": taints}}),
            Sender::Karpenter => {
                json!({"spec": {"taints": taints}, "metadata": {"labels": {EXCLUDE: label}}})
            }
        };
        let name = self.nodes.get(&index).map(name_of).unwrap_or_default();
        self.change_node(index, &name, patch, stage);
        let what = if goes { "is to go" } else { "stays" };
        stage.trace.say(stage.now_ms, || format!("node {name} {what}, by {by:?}"));
        stage.follow();
    }

    /// The other controller lets a node go that is being deleted.
    fn release_node(&self, name: &str, stage: &mut Stage) -> &'static str {
        let object = ObjectRef::new("nodes", "", name);
        let node = stage.kubernetes.get(object);
        if node.is_ok_and(|node| !node["metadata"]["deletionTimestamp"].is_null()) {
            let patch = Patch::Merge(json!({"metadata": {"finalizers": null}}));
            let object = ObjectRef::new("nodes", "", name);
            let _ = stage.kubernetes.patch(object, Part::Main, &patch, stage.now_ms);
            stage.trace.say(stage.now_ms, || format!("node {name} goes"));
        }
        "let a node go"
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
