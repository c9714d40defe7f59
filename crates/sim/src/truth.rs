//! What is really so in the cluster, and since which revision: what checks compare with.

use kube_emulator::{EventType, Store};
use model::ServiceUid;
use model::kubernetes::{GATEWAY_FINALIZER, SERVICE_FINALIZER};
use serde_json::Value;
use std::collections::BTreeMap;

/// A Service, also after it is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceTruth {
    /// `namespace/name`.
    pub name: String,
    /// Its parts' names begin with this.
    pub base: String,
    /// Whether it asks for a load balancer.
    pub wants: bool,
    /// Whether our finalizer is on it.
    pub claimed: bool,
    /// When somebody last took our finalizer off.
    pub unclaimed_at: Option<u64>,
    /// When its owner last changed what it asks for.
    pub edited_at: u64,
    /// When it went.
    pub gone_at: Option<u64>,
    /// What its owner decides on.
    asks: Value,
}

/// The cluster's history as far as checks look.
#[derive(Clone, Debug, Default)]
pub struct Truth {
    revision: u64,
    /// By UID.
    pub services: BTreeMap<String, ServiceTruth>,
    /// Base names and UIDs, lower case, to UIDs.
    pub bases: BTreeMap<String, String>,
    /// Addresses of nodes that may be in pools, and since which revision.
    pub members: BTreeMap<String, u64>,
    /// Node names to their addresses.
    nodes: BTreeMap<String, String>,
}

impl Truth {
    /// Takes in what happened since the last time.
    pub fn follow(&mut self, store: &Store) {
        let revision = store.revision();
        if revision == self.revision {
            return;
        }
        for event in store.events_since("services", self.revision).unwrap_or_default() {
            self.note_service(&event.object, event.event == EventType::Deleted, event.revision);
        }
        for event in store.events_since("nodes", self.revision).unwrap_or_default() {
            self.note_node(&event.object, event.event == EventType::Deleted, event.revision);
        }
        self.revision = revision;
    }

    fn note_service(&mut self, object: &Value, gone: bool, revision: u64) {
        let meta = &object["metadata"];
        let text = |key: &str| meta[key].as_str().unwrap_or("");
        let uid = text("uid").to_owned();
        let finalizers = meta["finalizers"].as_array();
        let claimed = finalizers.into_iter().flatten().filter_map(Value::as_str).any(is_ours);
        let lives = meta["deletionTimestamp"].is_null() && !gone;
        let wants = lives && object["spec"]["type"] == "LoadBalancer";
        let asks = serde_json::json!([object["spec"], meta["annotations"], lives]);
        let base = ServiceUid::new(&uid).base_name().to_lowercase();
        let known = self.services.entry(uid.clone()).or_insert_with(|| ServiceTruth {
            name: format!("{}/{}", text("namespace"), text("name")),
            base: base.clone(),
            wants,
            claimed,
            unclaimed_at: None,
            edited_at: revision,
            gone_at: None,
            asks: asks.clone(),
        });
        self.bases.entry(base).or_insert_with(|| uid.clone());
        self.bases.entry(uid.to_lowercase()).or_insert(uid);
        if known.claimed && (!claimed || gone) {
            known.unclaimed_at = Some(revision);
        }
        if known.asks != asks {
            known.asks = asks;
            known.edited_at = revision;
        }
        known.wants = wants;
        known.claimed = claimed && !gone;
        if gone {
            known.gone_at = Some(revision);
        }
    }

    fn note_node(&mut self, object: &Value, gone: bool, revision: u64) {
        let name = object["metadata"]["name"].as_str().unwrap_or("").to_owned();
        let addresses = object["status"]["addresses"].as_array();
        let internal = addresses.into_iter().flatten().filter(|a| a["type"] == "InternalIP");
        let address = internal.filter_map(|a| a["address"].as_str()).find(|a| a.contains('.'));
        let meta = &object["metadata"];
        let label = &meta["labels"]["node.kubernetes.io/exclude-from-external-load-balancers"];
        let taints = object["spec"]["taints"].as_array();
        let leaves = taints
            .into_iter()
            .flatten()
            .any(|taint| taint["key"] == "ToBeDeletedByClusterAutoscaler");
        let member = !gone
            && label.is_null()
            && !leaves
            && meta["deletionTimestamp"].is_null()
            && !object["spec"]["providerID"].is_null();
        let before = self.nodes.remove(&name);
        if before.as_deref() != address || !member {
            before.and_then(|before| self.members.remove(&before));
        }
        if let Some(address) = address.filter(|_| member) {
            self.members.entry(address.to_owned()).or_insert(revision);
            self.nodes.insert(name, address.to_owned());
        }
    }

    /// Whether an object of a while ago is still there and one that load balancers are about.
    #[must_use]
    pub fn still_matters(&self, old: &Value) -> bool {
        let meta = &old["metadata"];
        let name = meta["name"].as_str().unwrap_or("");
        let service = meta["uid"].as_str().and_then(|uid| self.services.get(uid));
        self.nodes.contains_key(name) || service.is_some_and(|s| s.claimed)
    }

    /// The UID that a part's name belongs to, by its form.
    #[must_use]
    pub fn owner_of(&self, part: &str) -> Option<&str> {
        let part = part.to_lowercase();
        let short = part.get(..32).and_then(|base| self.bases.get(base));
        let whole = || part.get(..36).and_then(|uid| self.bases.get(uid));
        short.or_else(whole).map(String::as_str)
    }
}

fn is_ours(finalizer: &str) -> bool {
    finalizer == SERVICE_FINALIZER || finalizer == GATEWAY_FINALIZER
}
