//! The recorded cases, and how one is run again.

use super::{GROUP, create, laboratory, node, scale_set};
use kube_emulator::{ObjectRef, Part, Patch};
use serde_json::{Value, json};
use sim::Laboratory;
use std::collections::BTreeMap;

const LIMIT_MS: u64 = 100_000;

pub struct Case {
    pub name: String,
    pub data: Value,
}

pub fn cases() -> Vec<Case> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cases");
    let files = std::fs::read_dir(folder).expect("the cases are there");
    let mut cases: Vec<Case> = files
        .map(|file| {
            let path = file.expect("a file").path();
            let text = std::fs::read_to_string(&path).expect("a case can be read");
            let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
            Case { name, data: serde_json::from_str(&text).expect("a case is JSON") }
        })
        .collect();
    cases.sort_by(|a, b| a.name.cmp(&b.name));
    cases
}

/// A case under way.
pub struct Run {
    pub lab: Laboratory,
    /// What was in Azure at first.
    pub before: Vec<Value>,
    /// Live UID → recorded UID.
    pub uids: BTreeMap<String, String>,
    /// "namespace/name" → live UID.
    pub live: BTreeMap<String, String>,
    /// Whether the controller looks on while the case is played.
    watched: bool,
}

impl Run {
    /// The case's cluster and cloud, before its Services.
    pub fn start(case: &Case) -> Self {
        let mut run = Self::asleep(case);
        run.watched = true;
        run.settle();
        run
    }

    /// The same, with a controller that has not been started.
    pub fn asleep(case: &Case) -> Self {
        let data = &case.data;
        let mut lab = laboratory(&data["config"]);
        lab.azure.seed(scale_sets(data));
        lab.azure.seed(data["resources"].as_array().cloned().unwrap_or_default());
        for (id, tables) in data["gateways"].as_object().into_iter().flatten() {
            lab.azure.seed_gateway(id, tables);
        }
        let count = u32::try_from(data["nodes"].as_u64().unwrap_or(0)).expect("few nodes");
        if count == 4 {
            let mut excluded = node(3);
            let label = "node.kubernetes.io/exclude-from-external-load-balancers";
            excluded["metadata"]["labels"][label] = json!("true");
            create(&mut lab, excluded);
        }
        for index in 0..data["nodes2"].as_u64().unwrap_or(0) {
            create(&mut lab, second_set_node(index));
        }
        let before = lab.azure.resources();
        Self { lab, before, uids: BTreeMap::new(), live: BTreeMap::new(), watched: false }
    }

    fn settle(&mut self) {
        if self.watched {
            self.lab.settle(LIMIT_MS);
        }
    }

    /// Creates what the case says and makes its changes.
    pub fn play(&mut self, case: &Case) {
        let list = |key: &str| case.data[key].as_array().cloned().unwrap_or_default();
        list("services").iter().for_each(|service| self.create_service(service));
        list("objects").iter().for_each(|object| self.create_object(object));
        self.settle();
        for change in list("then") {
            let text = |at: usize| change[at].as_str().unwrap_or("").to_owned();
            self.change(&text(0), &text(1), &change[2]);
        }
    }

    fn create_service(&mut self, service: &Value) {
        let mut service = service.clone();
        let recorded = service["metadata"]["uid"].as_str().expect("recorded").to_owned();
        if let Some(metadata) = service["metadata"].as_object_mut() {
            metadata.shift_remove("uid");
        }
        let now = self.lab.now_ms;
        let made = self.lab.kubernetes.create(service, now).expect("a Service is created");
        let uid = made["metadata"]["uid"].as_str().expect("it has one").to_owned();
        let key = format!(
            "{}/{}",
            made["metadata"]["namespace"].as_str().unwrap_or(""),
            made["metadata"]["name"].as_str().unwrap_or("")
        );
        self.uids.insert(uid.clone(), recorded);
        self.live.insert(key, uid);
        self.settle();
    }

    fn create_object(&mut self, object: &Value) {
        let mut text = object.to_string();
        for (key, uid) in &self.live {
            text = text.replace(&format!("{{uid of {key}}}"), uid);
        }
        let object: Value = serde_json::from_str(&text).expect("still JSON");
        let now = self.lab.now_ms;
        let made = self.lab.kubernetes.create(object.clone(), now).expect("it is created");
        if !object["status"].is_null() {
            let plural = format!("{}s", object["kind"].as_str().unwrap_or("").to_lowercase());
            let text = |key: &str| made["metadata"][key].as_str().unwrap_or("").to_owned();
            let (namespace, name) = (text("namespace"), text("name"));
            let target = ObjectRef::new(&plural, &namespace, &name);
            let patch = Patch::Merge(json!({"status": object["status"]}));
            self.lab.kubernetes.patch(target, Part::Status, &patch, now).expect("status");
        }
    }

    fn change(&mut self, operation: &str, key: &str, body: &Value) {
        let path: Vec<&str> = key.split('/').collect();
        let (plural, namespace, name) = match path.as_slice() {
            [namespace, name] => ("services", *namespace, *name),
            [.., "namespaces", namespace, plural, name] => (*plural, *namespace, *name),
            _ => panic!("an unknown path {key}"),
        };
        let object = ObjectRef::new(plural, namespace, name);
        let now = self.lab.now_ms;
        if operation == "patch" {
            let patch = Patch::Merge(body.clone());
            self.lab.kubernetes.patch(object, Part::Main, &patch, now).expect("it is patched");
        } else {
            self.lab.kubernetes.delete(object, now).expect("it is deleted");
        }
        self.settle();
    }
}

fn second_set_node(index: u64) -> Value {
    let name = format!("vmss2{index:06}");
    let id = format!(
        "azure://{GROUP}/providers/Microsoft.Compute/virtualMachineScaleSets/vmss2\
         /virtualMachines/{index}"
    );
    json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {}},
        "spec": {"providerID": id},
        "status": {"addresses": [
            {"type": "InternalIP", "address": format!("10.224.1.{}", 4 + index)},
            {"type": "InternalIP", "address": format!("fd00::2:{:x}", 4 + index)}]}})
}

/// The scale sets of the recordings, as far as a case looks at them.
fn scale_sets(data: &Value) -> Vec<Value> {
    let several = !data["config"]["multipleStandardLoadBalancerConfigurations"].is_null();
    let names: &[&str] = if several { &["vmss", "vmss2"] } else { &["vmss"] };
    names.iter().flat_map(|name| scale_set(name, 4)).collect()
}
