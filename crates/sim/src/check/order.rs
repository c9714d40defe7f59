//! S4: what is written after what.
//!
//! - The address of a second family is asked for after that of the first one: where that one is
//!   refused no second one is left behind.
//! - A security rule does not take the priority that the same write frees: flow logs and whoever
//!   reads them know a rule by its number, too.

use super::azure::Write;
use super::form::{is_in, parts};
use super::openings::OURS;
use crate::config::without_cluster;
use crate::stage::Stage;
use crate::tally::count;
use arm::Method;
use kube_emulator::ObjectRef;
use plan::ask::annotation::full;
use serde_json::Value;
use std::collections::BTreeMap;

/// What names an address that is there, or gives the public IPs of the two families other names.
const NAMED: [&str; 6] = [
    "azure-pip-name",
    "azure-load-balancer-ipv4",
    "azure-pip-prefix-id",
    "azure-pip-prefix-id-ipv6",
    "azure-load-balancer-resource-group",
    "azure-load-balancer-internal",
];

impl Stage {
    /// Looks at a write of Azure.
    pub(super) fn check_order(&mut self, write: &Write<'_>) {
        if let Some(text) = self.alone(write).or_else(|| renumbered(write)) {
            self.fail("S4", text);
        }
    }

    /// A public IP of IPv6 that is made before the same Service's of IPv4.
    fn alone(&mut self, write: &Write<'_>) -> Option<String> {
        let name = write.path.rsplit('/').next().unwrap_or("");
        let made = write.method == Method::Put && write.before.is_none();
        if !made || !is_in(write.path, "publicIPAddresses") {
            return None;
        }
        let first = name.strip_suffix("-IPv6")?;
        let uid = self.truth.owner_of(without_cluster(first))?.to_owned();
        let service = self.truth.services.get(&uid).filter(|s| s.edited_at <= write.sent.services);
        let (namespace, name) = service?.name.split_once('/')?;
        let service = self.kubernetes.get(ObjectRef::new("services", namespace, name)).ok()?;
        let meta = &service["metadata"];
        let both = service["spec"]["ipFamilies"].as_array().is_some_and(|all| all.len() == 2);
        let named = NAMED.iter().any(|key| meta["annotations"].get(full(key)).is_some());
        let pinned = service["spec"]["loadBalancerIP"].is_string();
        if meta["uid"] != *uid || !both || named || pinned {
            return None;
        }
        count(&mut self.tally.checks, "S4");
        let path = write.path.strip_suffix("-IPv6")?;
        // A public IP that people deleted counts as there until the next look for drift shows it.
        let lacks = self.azure.shown_by_id(path).is_none() && !self.was_deleted(path);
        lacks.then(|| format!("{first}-IPv6 is asked for before {first}"))
    }
}

/// A security rule of ours that takes the priority of one that goes.
fn renumbered(write: &Write<'_>) -> Option<String> {
    if !is_in(write.path, "networkSecurityGroups") {
        return None;
    }
    let (was, is) = (numbered(write.before?), numbered(write.after?));
    let taken = is.iter().find(|(priority, name)| {
        was.get(*priority)
            .is_some_and(|before| before != *name && !is.values().any(|n| n == before))
    });
    taken.map(|(priority, name)| format!("rule {name} takes priority {priority} of one that goes"))
}

/// Our rules by their priorities.
fn numbered(group: &Value) -> BTreeMap<u64, String> {
    let rules = parts(group, "securityRules").into_iter();
    let ours = rules.filter(|(name, _)| name.starts_with(OURS));
    ours.filter_map(|(name, rule)| Some((rule["properties"]["priority"].as_u64()?, name))).collect()
}
