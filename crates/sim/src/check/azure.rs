//! S1 to S5 at each write that Azure was asked for.

use super::differential::apart;
use super::fair::Lists;
use super::form::{foreign, is_in, parts, plain, told};
use crate::config::without_cluster;
use crate::path::bare_path;
use crate::scene::objects::{is_brought, is_theirs};
use crate::stage::{Rightful, Sent, Stage};
use crate::tally::count;
use arm::{Body, Method, Request};
use azure_emulator::Answer;
use kube_emulator::ObjectRef;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A write, and what it wrote before and after it.
/// A property of rules that people set and that no annotation asks for.
pub(crate) const UNKNOWN: &str = "enableConnectionTracking";

pub(super) struct Write<'a> {
    pub sent: &'a Sent,
    pub method: Method,
    pub path: &'a str,
    pub before: Option<&'a Value>,
    pub after: Option<&'a Value>,
    /// What was asked for: Azure may lose a part of it by itself.
    pub body: Option<&'a Value>,
}

impl Stage {
    /// Whether every pool of addresses holds every node.
    #[must_use]
    pub fn pools_hold_every_node(&self) -> bool {
        self.config.layout == model::policy::Layout::Single
            && self.config.pools == model::policy::PoolKind::NodeIp
    }

    /// Checks a write of Azure's by what it did.
    pub(crate) fn check_azure_write(
        &mut self,
        sent: &Sent,
        request: &Request,
        before: Option<&Value>,
        after: Option<&Value>,
        answer: &Answer,
    ) {
        let path = bare_path(request);
        if let Some(body) = &request.body {
            self.check_secret(&body.text());
        }
        let body = request.body.as_ref().map(Body::tree);
        let body = body.as_deref();
        let write = Write { sent, method: request.method, path, before, after, body };
        self.ledger.attempts += 1;
        let paged = self.azure.options().page_size > 0;
        let lists = if paged { Lists::Paged } else { Lists::Whole };
        self.ledger.round.note(request, path, answer, lists);
        self.check_mark(&write);
        self.check_attached(&write);
        if request.method == Method::Post {
            self.check_unregistering(&write);
        }
        if sent.rightful == Rightful::No {
            self.fail("S5", format!("process {} writes {path} without the lease", sent.process));
        }
        let took = matches!(answer.status, 200..300) && (before != after || answer.status == 202);
        let deletes = request.method == Method::Delete && matches!(answer.status, 200..300);
        if !took && !deletes {
            return;
        }
        self.tally.azure_writes += 1;
        self.ledger.writes += 1;
        self.check_term(&write);
        self.note_replaced(&write, request);
        self.check_ways_out(&write);
        if request.method == Method::Post {
            self.check_tables(&write);
            return;
        }
        self.check_foreign(&write);
        self.check_members(&write);
        self.check_apart(&write);
        self.check_order(&write);
        self.note_fresh(&write);
        self.note_taken(&write);
        self.check_users(&write);
        self.check_closed(&write);
        self.check_openings(&write);
        self.note_freed(&write);
        if is_in(path, "loadBalancers") {
            self.check_pools(&write);
            self.check_tenants(&write);
            self.check_numbers(&write);
            self.check_steadiness(&write);
            self.check_drains(&write);
            self.check_addresses(&write);
        }
        self.note_opened(&write);
        self.check_claims(&write);
    }

    /// S1.
    fn check_mark(&mut self, write: &Write<'_>) {
        count(&mut self.tally.checks, "S1");
        let name = write.path.rsplit('/').next().unwrap_or("");
        let brought = is_brought(name) && write.method != Method::Delete;
        if is_theirs(name) && !brought {
            let text = format!("{} {} is not ours", write.method.name(), write.path);
            self.fail("S1", text);
        }
    }

    /// S5: a write sent under an earlier term undoes nothing of a later one.
    fn check_term(&mut self, write: &Write<'_>) {
        count(&mut self.tally.checks, "S5");
        let key = write.path.to_lowercase();
        let last = self.ledger.terms.get(&key).copied().unwrap_or(0);
        let changed = || match (write.before, write.after) {
            (Some(before), Some(after)) => plain(before) != plain(after),
            // A late deletion of what is gone, or on its way.
            (None, None) => false,
            (Some(before), None) => before["properties"]["provisioningState"] != "Deleting",
            _ => true,
        };
        // The Service Gateway's tables have no ETag: nothing fences them but the lease's times. Nor
        // does anything fence off making what has been made and deleted since. It has to go again.
        // Azure refuses to write what it is deleting (409): where such a write took effect, the
        // deletion had ended, and it made the resource anew.
        let deleting = |value: &Value| value["properties"]["provisioningState"] == "Deleting";
        let made = write.before.is_none_or(deleting) && write.after.is_some();
        if write.sent.term < self.lease.term && made {
            self.ledger.made_late.insert(key.clone());
        } else {
            self.ledger.made_late.remove(&key);
        }
        let fenced = write.method != Method::Post && !made;
        if fenced && write.sent.term < last && changed() {
            let text = format!(
                "{} was sent under term {} and undid a write of term {last}",
                write.path, write.sent.term
            );
            self.fail("S5", text);
        }
        self.ledger.terms.insert(key, last.max(write.sent.term));
    }

    /// S2.
    fn check_foreign(&mut self, write: &Write<'_>) {
        let Some(before) = write.before else { return };
        self.check_unknown(write, before);
        let kept = foreign(before);
        // A public IP of ours goes with what somebody wrote on it.
        let goes = write.method == Method::Delete && is_in(write.path, "publicIPAddresses");
        if kept.is_empty() || goes {
            return;
        }
        count(&mut self.tally.checks, "S2");
        let now = write.after.map(foreign).unwrap_or_default();
        if let Some((key, was)) = kept.iter().find(|(key, was)| now.get(*key) != Some(*was)) {
            // Our own part may go with all that stands on it.
            let is = now.get(key).map_or("gone".to_owned(), ToString::to_string);
            let (was, is) = apart(&was.to_string(), &is);
            let name = write.path.rsplit('/').next().unwrap_or("");
            let text = format!("{key} of {name}: it was …{was}, now …{is}");
            self.fail("S2", text);
        }
    }

    /// S2: what we do not know of a rule of ours stays for as long as the rule does.
    fn check_unknown(&mut self, write: &Write<'_>, before: &Value) {
        let Some(after) = write.after else { return };
        let now = parts(after, "loadBalancingRules");
        for (name, was) in parts(before, "loadBalancingRules") {
            let was = &was["properties"][UNKNOWN];
            let is = now.get(&name).map(|is| &is["properties"][UNKNOWN]);
            if !was.is_null() && is.is_some_and(|is| is != was) {
                self.fail("S2", format!("{UNKNOWN} of rule {name} is not ours, and is lost"));
                return;
            }
        }
    }

    /// S3: backends.
    fn check_pools(&mut self, write: &Write<'_>) {
        let (Some(before), Some(after)) = (write.before, write.body) else { return };
        if !self.pools_hold_every_node() || self.is_rebuilding() {
            return;
        }
        count(&mut self.tally.checks, "S3");
        let (was, is) = (pools(before), pools(after));
        for (name, was) in &was {
            let Some(is) = is.get(name) else { continue };
            if is.is_empty() && !was.is_empty() && is_led_to(after, name) {
                // Without a node in good order a pool stays as it is.
                self.fail("S3", format!("pool {name} is emptied, and rules lead to it"));
                return;
            }
            for address in was.iter().filter(|address| !is.contains(*address)) {
                let since = self.truth.members.get(address).copied();
                if since.is_some_and(|since| since <= write.sent.nodes) {
                    let text = format!("{address} left pool {name} and is a node in good order");
                    self.fail("S3", text);
                    return;
                }
            }
        }
    }

    /// S3: addresses.
    fn check_addresses(&mut self, write: &Write<'_>) {
        let frontends = |value: Option<&Value>| -> BTreeMap<String, String> {
            value
                .map(|v| parts(v, "frontendIPConfigurations"))
                .unwrap_or_default()
                .into_iter()
                .map(|(name, part)| (name, address_of(part)))
                .collect()
        };
        let (was, is) = (frontends(write.before), frontends(write.after));
        if was.is_empty() && is.is_empty() {
            return;
        }
        count(&mut self.tally.checks, "S3");
        let balancer = write.path.to_lowercase();
        for (name, address) in &is {
            let Some(owner) = self.owner_of_part(&balancer, name) else { continue };
            let Some(service) = self.truth.services.get(&owner) else { continue };
            let key = (balancer.clone(), name.clone());
            let edited = service.placed_at;
            let wants = service.wants;
            // One that was made by a write that Azure canceled was never there: it is new.
            let known = self.ledger.addresses.get(&key).filter(|_| was.contains_key(name)).cloned();
            if known.as_ref().is_some_and(|(old, _)| old == address) {
                continue;
            }
            // One that came back, because the write that took it away was canceled, is of an
            // earlier wish.
            let came_back = known.is_none() && was.contains_key(name);
            if let Some((old, at)) = known
                && at == edited
                && wants
                && !self.is_rebuilding()
            {
                let text = format!("frontend {name} went from {old} to {address} unasked");
                self.fail("S3", text);
            }
            // Made for an earlier wish where its sender did not know the newest yet.
            let asked = if came_back { 0 } else { edited.min(write.sent.services) };
            self.ledger.addresses.insert(key, (address.clone(), asked));
        }
        for name in was.keys().filter(|name| !is.contains_key(*name)) {
            let key = (balancer.clone(), name.clone());
            let Some((address, at)) = self.ledger.addresses.remove(&key) else { continue };
            let Some(owner) = self.owner_of_part(&balancer, name) else { continue };
            let Some(service) = self.truth.services.get(&owner) else { continue };
            let known = service.placed_at <= write.sent.services;
            let asked = !service.wants || at != service.placed_at || !known;
            // What no status tells and no rule of the Service leads to serves it no more
            // (`note_settled`); nor does a frontend where the Service stands elsewhere.
            let spare = !self.is_told(&service.name, &address)
                && (self.stands_elsewhere(&balancer, name)
                    || write.before.is_some_and(|before| !self.is_led_to(before, name, &owner))
                    || self.wants_other_side(&service.name, &balancer));
            // One that people took away comes back with the end of a write of ours that Azure had
            // accepted before, and may stand in two places for a while.
            let touched = self.was_frontend_touched(name);
            let spare = spare || self.has_moved_from(&service.name, &address);
            if !asked && !spare && !touched && !self.is_rebuilding() {
                let text = format!("frontend {name} of {} was taken away unasked", service.name);
                self.fail("S3", text);
            }
        }
    }

    /// Whether a frontend stands on another load balancer of the same side, too: a write of a dead
    /// process came after its successor had placed the Service anew. One of the two has to go.
    fn stands_elsewhere(&self, balancer: &str, frontend: &str) -> bool {
        let side = |id: &str| id.ends_with("-internal");
        self.azure.resources_of("Microsoft.Network/loadBalancers").iter().any(|other| {
            let id = other["id"].as_str().unwrap_or("").to_lowercase();
            let other_place = id != balancer && side(&id) == side(balancer);
            other_place && parts(other, "frontendIPConfigurations").contains_key(frontend)
        })
    }

    /// Whether a Service wants to be inside and the load balancer is not, or the other way round. A
    /// frontend that others share stays for their sake when its owner moves, and goes with them.
    pub(super) fn wants_other_side(&self, service: &str, balancer: &str) -> bool {
        let (namespace, name) = service.split_once('/').unwrap_or(("", service));
        let object = self.kubernetes.get(ObjectRef::new("services", namespace, name));
        let key = "service.beta.kubernetes.io/azure-load-balancer-internal";
        let inside = |object: Arc<Value>| object["metadata"]["annotations"][key] == "true";
        object.is_ok_and(|object| inside(object) != balancer.ends_with("-internal"))
    }

    /// Whether a Service's status tells an address.
    fn is_told(&self, service: &str, address: &str) -> bool {
        let (namespace, name) = service.split_once('/').unwrap_or(("", service));
        let object = self.kubernetes.get(ObjectRef::new("services", namespace, name));
        object.is_ok_and(|object| told(&object).any(|ip| ip == address))
    }

    /// S4: the finalizer is there before anything of a Service is in Azure.
    fn check_claims(&mut self, write: &Write<'_>) {
        let Some(after) = write.after.filter(|_| write.method == Method::Put) else { return };
        count(&mut self.tally.checks, "S4");
        let mut fresh: Vec<String> = Vec::new();
        if write.before.is_none() {
            let name = write.path.rsplit('/').next().unwrap_or("");
            let name = without_cluster(name);
            fresh.push(name.to_owned());
        }
        for collection in ["frontendIPConfigurations", "loadBalancingRules"] {
            let was = write.before.map(|v| parts(v, collection)).unwrap_or_default();
            let is = parts(after, collection);
            fresh.extend(is.into_keys().filter(|name| !was.contains_key(name)));
        }
        for name in fresh {
            let Some(uid) = self.truth.owner_of(&name) else { continue };
            let Some(service) = self.truth.services.get(uid) else { continue };
            if !service.was_claimed(write.sent.services) {
                let text =
                    format!("{name} was made for Service {}, which has no finalizer", service.name);
                self.fail("S4", text);
                return;
            }
        }
    }

    /// The UID of the Service that a part of a load balancer is of.
    pub(super) fn owner_of_part(&self, balancer: &str, name: &str) -> Option<String> {
        let own = balancer.rsplit('/').next().unwrap_or("");
        let owner = self.truth.owner_of(name).or_else(|| self.truth.owner_of(own));
        owner.map(str::to_owned)
    }
}

/// Where a frontend stands.
pub(super) fn address_of(frontend: &Value) -> String {
    let inside = &frontend["properties"];
    match inside["publicIPAddress"]["id"].as_str() {
        Some(id) => id.to_lowercase(),
        None => inside["privateIPAddress"].as_str().unwrap_or("").to_owned(),
    }
}

/// Pools of addresses: names to what they hold.
pub(super) fn pools(balancer: &Value) -> BTreeMap<String, Vec<String>> {
    let held = |pool: &Value| -> Vec<String> {
        let all = pool["properties"]["loadBalancerBackendAddresses"].as_array();
        let all = all.into_iter().flatten();
        all.filter_map(|a| a["properties"]["ipAddress"].as_str()).map(str::to_owned).collect()
    };
    parts(balancer, "backendAddressPools")
        .into_iter()
        .filter(|(name, _)| !is_theirs(name))
        .map(|(name, pool)| (name, held(pool)))
        .collect()
}

/// Whether rules of a load balancer lead to its pool of this name.
fn is_led_to(balancer: &Value, pool: &str) -> bool {
    let end = format!("/backendaddresspools/{}", pool.to_lowercase());
    parts(balancer, "loadBalancingRules").into_values().any(|rule| {
        let to = rule["properties"]["backendAddressPool"]["id"].as_str().unwrap_or("");
        to.to_lowercase().ends_with(&end)
    })
}

/// The pools that a machine's NICs are in, lower case.
pub(crate) fn memberships(machine: &Value) -> BTreeSet<String> {
    fn walk(value: &Value, found: &mut BTreeSet<String>) {
        match value {
            Value::Object(fields) => {
                for (key, value) in fields {
                    if key == "loadBalancerBackendAddressPools" {
                        let all = value.as_array().into_iter().flatten();
                        found.extend(all.filter_map(|p| p["id"].as_str()).map(str::to_lowercase));
                    } else {
                        walk(value, found);
                    }
                }
            }
            Value::Array(items) => items.iter().for_each(|item| walk(item, found)),
            _ => {}
        }
    }
    let mut found = BTreeSet::new();
    walk(machine, &mut found);
    found
}
