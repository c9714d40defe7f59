//! S3 while Services move between load balancers over nodes and container load balancers
//! (docs/migrations.md): the status tells the addresses of both for `keepBoth`, what serves a
//! Service at its former address stays until the status has told only others for `drainSeconds`,
//! and who is not to move stays.

use super::form::{parts, told};
use super::tenants::BALANCERS;
use crate::fault::Fault;
use crate::scene;
use crate::stage::Stage;
use crate::tally::count;
use kube_emulator::ObjectRef;
use model::kubernetes::Backends;
use model::policy::{KeepBoth, Migration};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Times of conditions are whole seconds, and are those of the sending: what counts from one may
/// end that much earlier.
const SECOND_MS: u64 = 1_000;

/// What is remembered of Services that move.
#[derive(Clone, Debug, Default)]
pub(crate) struct Moves {
    /// When each address was last taken out of a status.
    untold: BTreeMap<String, u64>,
    /// Services by their UID that tell addresses beside their former ones.
    together: BTreeMap<String, Together>,
}

/// A Service that has two addresses for a while.
#[derive(Clone, Debug)]
struct Together {
    /// Since when.
    since_ms: u64,
    /// The last edit of its owner's before that.
    edited_at: u64,
    /// What it told before.
    former: BTreeSet<String>,
}

impl Stage {
    /// Services move because the operator has said so: what one had where it was, it need not have
    /// on the way. A config that is set back turns them around, to the address that they had
    /// (docs/migrations.md): container load balancers take public IPs of a SKU of their own, so
    /// that no address can stay on the way there or back.
    pub(crate) fn begin_moves(&mut self) {
        self.ledger.settled.clear();
        self.ledger.given_up.clear();
        self.ledger.moves.together.clear();
    }

    /// Whether load balancers stand that Services are to leave. What belongs to a Service without
    /// its finalizer stays: Kubernetes deletes such a Service without waiting for the controller.
    pub(crate) fn are_moving(&self) -> bool {
        if self.config.migration.is_none() {
            return false;
        }
        let to_pods = self.config.backends() == Backends::Pods;
        let is_served = |name: &str| {
            let owner = self.truth.owner_of(name).and_then(|uid| self.truth.services.get(uid));
            owner.is_some_and(|service| !service.stripped)
        };
        self.azure.resources_of(BALANCERS).iter().any(|balancer| {
            let of_pods = balancer["sku"]["name"] == "Service";
            let own = balancer["id"].as_str().and_then(|id| id.rsplit('/').next());
            let frontends = parts(balancer, "frontendIPConfigurations");
            let mut names = frontends.keys().map(String::as_str).chain(own);
            of_pods != to_pods && names.any(is_served)
        })
    }

    /// Looks at a write of a status while Services move.
    pub(super) fn check_moving(&mut self, before: &Value, after: &Value) {
        let (was, is): (BTreeSet<&str>, BTreeSet<&str>) =
            (told(before).collect(), told(after).collect());
        let lost: Vec<&str> = was.difference(&is).copied().collect();
        let gained: Vec<&str> = is.difference(&was).copied().collect();
        self.ledger.moves.untold.extend(lost.iter().map(|ip| ((*ip).to_owned(), self.now_ms)));
        let Some(migration) = self.config.migration.clone() else { return };
        let uid = after["metadata"]["uid"].as_str().unwrap_or("");
        let Some(known) = self.truth.services.get(uid) else { return };
        let (name, edited_at) = (known.name.clone(), known.edited_at);
        let listed = known.additional.clone();
        let own = |ip: &&&str| !listed.contains(**ip);
        let wants = known.wants;
        count(&mut self.tally.checks, "S3");
        if lost.iter().filter(own).any(|ip| self.is_early(&migration, uid, (edited_at, ip))) {
            self.fail("S3", format!("{name} loses an address before keepBoth is over"));
        }
        let elsewhere = |ip: &&&str| self.stays(uid, &name, (ip, &was));
        if let Some(ip) = gained.iter().filter(own).find(elsewhere) {
            self.fail("S3", format!("{name} is not to move, and its status tells {ip}"));
        }
        let begins = lost.is_empty() && gained.iter().any(|ip| own(&ip));
        if wants && !was.is_empty() && begins {
            let former = was.iter().map(|ip| (*ip).to_owned()).collect();
            let together = Together { since_ms: self.now_ms, edited_at, former };
            self.ledger.moves.together.insert(uid.to_owned(), together);
        }
    }

    /// Whether an address that leads to a Service has not been told beside the new one for as long
    /// as it is to be.
    fn is_early(&self, migration: &Migration, uid: &str, (edited_at, ip): (u64, &str)) -> bool {
        let known = self.ledger.moves.together.get(uid);
        let known = known.filter(|known| known.edited_at == edited_at && self.clocks_agree());
        let known = known.filter(|known| known.former.contains(ip));
        let early = known.is_some_and(|known| match migration.keep_both {
            KeepBoth::UntilTold => true,
            KeepBoth::For { seconds } => {
                self.now_ms + SECOND_MS < known.since_ms + u64::from(seconds) * 1_000
            }
        });
        early && self.standing_addresses().iter().any(|standing| standing == ip)
    }

    /// Whether the config lets only others move to load balancers over nodes, and this one tells
    /// nothing but its container load balancer's address, which this one is not.
    fn stays(&self, uid: &str, name: &str, (ip, was): (&str, &BTreeSet<&str>)) -> bool {
        let course = &self.config.written["layoutMigration"];
        let [services, namespaces] = ["services", "namespaces"].map(|key| course[key].as_array());
        let namespace = name.split_once('/').unwrap_or_default().0;
        let has = |list: Option<&Vec<Value>>, value: &str| {
            list.is_some_and(|list| list.contains(&json!(value)))
        };
        let chosen = has(services, name) || has(namespaces, namespace);
        let some = services.is_some() || namespaces.is_some();
        let own = self.container_address(&uid.to_lowercase());
        let there = own.is_some_and(|own| own != ip && was.iter().all(|was| *was == own));
        some && !chosen && there && self.config.backends() == Backends::Nodes
    }

    /// Whether no status tells this address of a Service that moves, so that what leads there may
    /// go: who has not been told it yet is not interrupted.
    pub(super) fn has_moved_from(&self, service: &str, address: &str) -> bool {
        let Some(migration) = &self.config.migration else { return false };
        let (namespace, name) = service.split_once('/').unwrap_or_default();
        let object = ObjectRef::new("services", namespace, name);
        let Ok(object) = self.kubernetes.get(object) else { return false };
        let drained = |untold: &u64| {
            let until = untold + u64::from(migration.drain_s) * 1_000;
            self.now_ms + SECOND_MS >= until || !self.clocks_agree()
        };
        let left = told(&object).all(|ip| ip != address);
        left && self.ledger.moves.untold.get(address).is_none_or(drained)
    }

    /// The same of what leads to the container load balancer of a name.
    pub(super) fn has_moved_from_container(&self, service: &str, name: &str) -> bool {
        let address = self.container_address(name);
        self.has_moved_from(service, address.as_deref().unwrap_or(""))
    }

    fn container_address(&self, name: &str) -> Option<String> {
        let ip = self.azure.shown_by_id(&scene::network(&format!("publicIPAddresses/{name}-pip")));
        ip?["properties"]["ipAddress"].as_str().map(str::to_owned)
    }

    /// Whether a condition's time, which one process writes, is the same time for another.
    fn clocks_agree(&self) -> bool {
        !self.scene.with.contains(&Fault::WrongClock)
    }
}
