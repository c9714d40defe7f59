//! Services whose finalizer somebody took off by hand, and that went: what they had may stay, and
//! stand in the way of a later one of the same name, which its public IP's tag names, too. Nothing
//! else is left out. A process that did not see one go cannot know that there was one: Kubernetes
//! tells of the end of an object only those who watch at that time.

use super::form::parts;
use crate::scene::TENANT;
use crate::stage::Stage;
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;

impl Stage {
    /// Addresses that only Services had whose finalizer somebody took off by hand.
    pub(super) fn stripped_addresses(&self) -> BTreeSet<String> {
        let opened = |stripped: bool| {
            let all = self.ledger.opened.iter();
            all.filter(move |(uid, _)| self.is_stripped(uid) == stripped).flat_map(|(_, all)| all)
        };
        let others: BTreeSet<&String> = opened(false).collect();
        let own = opened(true).filter(|address| !others.contains(address));
        // Several Services may list an address beside those of their frontends.
        let gone = self.truth.services.iter().filter(|(uid, _)| self.is_stripped(uid));
        own.chain(gone.flat_map(|(_, service)| &service.additional)).cloned().collect()
    }

    /// Whether any Service went without our finalizer: what it has left may keep others waiting,
    /// as a public IP waits for its frontend.
    pub(crate) fn has_stripped(&self) -> bool {
        self.truth.services.values().any(|s| s.stripped && s.gone_at.is_some())
    }

    /// Whether a Service went without our finalizer, because somebody had taken it off by hand.
    fn is_stripped(&self, uid: &str) -> bool {
        self.truth.services.get(uid).is_some_and(|service| self.is_name_stripped(&service.name))
    }

    /// Their names.
    pub(crate) fn stripped_names(&self) -> BTreeSet<String> {
        let gone = self.truth.services.values().filter(|s| s.stripped && s.gone_at.is_some());
        gone.map(|service| service.name.clone()).collect()
    }

    /// Whether such a Service had this name.
    pub(crate) fn is_name_stripped(&self, name: &str) -> bool {
        let mut gone = self.truth.services.values().filter(|s| s.stripped && s.gone_at.is_some());
        gone.any(|service| service.name == name)
    }

    /// Whether it is chance what a resource comes to. Of what a hostile tenant claims the first one
    /// gets it, and faults decide who that is. A security rule to an address stays where the
    /// finalizer of its Service was stripped, and Azure gives the address to another Service.
    pub(super) fn is_by_chance(&self, resource: &Value) -> bool {
        let kind = resource["type"].as_str().unwrap_or("").to_lowercase();
        let tenant = || {
            let name = name_of(resource);
            let name = name.strip_prefix("kubernetes-").unwrap_or(name);
            let owner = self.truth.owner_of(name).and_then(|uid| self.truth.services.get(uid));
            owner.is_some_and(|service| service.name.starts_with(&format!("{TENANT}/")))
        };
        (kind.ends_with("/networksecuritygroups") && self.has_stripped())
            || (kind.ends_with("/publicipaddresses") && tenant())
    }

    /// A resource without the parts of stripped Services; nothing where it is theirs, or stands
    /// for their parts alone.
    pub(super) fn without_stripped(&self, resource: &Arc<Value>) -> Option<Arc<Value>> {
        let is_one = |name: &str| {
            let name = name.strip_prefix("kubernetes-").unwrap_or(name);
            self.truth.owner_of(name).is_some_and(|uid| self.is_stripped(uid))
        };
        if !self.has_stripped() {
            return Some(Arc::clone(resource));
        }
        if is_one(name_of(resource)) {
            return None;
        }
        let mut kept = Value::clone(resource);
        let mut gone = 0;
        for collection in ["frontendIPConfigurations", "loadBalancingRules", "probes"] {
            if let Some(items) = kept["properties"][collection].as_array_mut() {
                let before = items.len();
                items.retain(|item| !is_one(name_of(item)));
                gone += before - items.len();
            }
        }
        forget_references(&mut kept, &is_one);
        let left = parts(&kept, "frontendIPConfigurations").len();
        (gone == 0 || left > 0).then(|| Arc::new(kept))
    }
}

fn name_of(part: &Value) -> &str {
    part["name"].as_str().unwrap_or("")
}

/// Takes out of every list the references to parts of these names: Azure fills in what refers to a
/// part.
fn forget_references(value: &mut Value, is_one: &dyn Fn(&str) -> bool) {
    match value {
        Value::Array(items) => {
            items.retain(|item| {
                let refers = item.as_object().is_some_and(|fields| fields.len() == 1);
                let id = item["id"].as_str().filter(|_| refers);
                !id.is_some_and(|id| is_one(id.rsplit('/').next().unwrap_or("")))
            });
            items.iter_mut().for_each(|item| forget_references(item, is_one));
        }
        Value::Object(fields) => {
            fields.values_mut().for_each(|field| forget_references(field, is_one));
        }
        _ => {}
    }
}
