//! What was promised, held against what stands: the scene that [`promise::judge`] looks at.

use crate::config::Config;
use azure_emulator::Azure;
use kube_emulator::Store;
use promise::Scene;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What stood in Azure before the controller made anything.
#[derive(Clone, Debug, Default)]
pub struct Before {
    /// By id, lower case.
    resources: BTreeMap<String, Arc<Value>>,
    /// Ids, lower case, of what a controller has written.
    written: BTreeSet<String>,
}

impl Before {
    /// Takes in what stands and no controller has written.
    pub fn look(&mut self, azure: &Azure) {
        for resource in azure.shown() {
            let id = resource["id"].as_str().unwrap_or("").to_lowercase();
            if !self.written.contains(&id) {
                self.resources.entry(id).or_insert(resource);
            }
        }
    }

    /// A controller is about to write this resource.
    pub fn note(&mut self, path: &str) {
        let id = path.split('?').next().unwrap_or("").to_lowercase();
        if !self.resources.contains_key(&id) {
            self.written.insert(id);
        }
    }

    /// What stood, in the order of ids.
    #[must_use]
    pub fn resources(&self) -> Vec<Arc<Value>> {
        self.resources.values().cloned().collect()
    }
}

/// Everything that is judged, as it is now.
#[must_use]
pub fn scene(kubernetes: &Store, azure: &Azure, config: &Config, before: &Before) -> Scene {
    let list = |plural: &str| kubernetes.list(plural, None);
    Scene {
        config: config.written.clone(),
        cluster: config.cluster.to_owned(),
        services: list("services"),
        nodes: list("nodes"),
        slices: list("endpointslices"),
        pods: list("pods"),
        namespaces: list("namespaces"),
        resources: azure.shown().collect(),
        gateway: azure.gateway(config.gateway_id().as_str()),
        class: None,
        before: before.resources(),
        groups: Some(azure.group_names()),
        refused: BTreeSet::new(),
        forgotten: BTreeSet::new(),
        held: BTreeSet::new(),
        zones: Vec::new(),
    }
}
