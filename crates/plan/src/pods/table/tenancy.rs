//! Which namespace an address is of, where EndpointSlices of several list it.
//!
//! An EndpointSlice says nothing that binds about addresses: whoever may write one lists what they
//! like. A tenant may lead traffic to Pods of its own namespace only, so of several namespaces one
//! has an address, and what the others list of it does not count. Within a namespace Services
//! share addresses, as they do in Kubernetes.
//!
//! # Guarantees
//! - A Pod that is watched has its own address.
//! - Otherwise the first holder keeps the address and its node: the namespace that is recorded to
//!   have it, else the one for whose Service the gateway's table lists it, else the one of the
//!   Service with the lowest UID.
//! - Until its holder is recorded, a contested address stays in the table as it is, and is removed
//!   only for Services of which no slice lists it any more. So a new process finds the same table,
//!   and gives the address to no Service before it has read its holder.
//! - The holder keeps it while a slice of its Services lists the address on a node that is known,
//!   whether the endpoint is ready or not. After that it is free.
//! - Addresses of nodes are shared: all Pods in a node's network have them. They stay at the node.

use super::claims::Claim;
use super::homes::Homes;
use super::{DiffTracker, changed};
use crate::ask::additional::AZURE;
use crate::ask::findings::{
    GATEWAY_ADDRESS_TAKEN, GATEWAY_FOREIGN_POD, GATEWAY_INVALID_ADDRESS, GATEWAY_NO_NODE,
    GATEWAY_TORN_SLICE, GATEWAY_UNKNOWN_NODE,
};
use crate::own::pod_names;
use model::kubernetes::{Endpoint, EndpointSlice, Readiness, Target};
use model::report::Finding;
use model::{Family, ServiceName};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

/// The key of findings about them.
const ENDPOINTS: &str = "endpoints";

/// An address that slices of several namespaces list.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Contest {
    /// The namespace that has it.
    holder: Arc<str>,
    /// Whether a new process would find the same holder, whatever the table lists.
    certain: bool,
    /// Gateway services of the others.
    losers: BTreeSet<Arc<str>>,
}

/// Why an endpoint does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fault {
    /// No Pod can have the address.
    Invalid,
    /// Its `targetRef` names a Pod of another namespace.
    Foreign,
    /// Nothing says on which node it is, and the gateway's table lists addresses by node.
    Nowhere,
    /// It is ready, and its node is not there, or has no address of its family.
    Unknown,
}

/// Endpoints of a slice that do not count for one reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Refused {
    first: IpAddr,
    count: usize,
}

/// What is contested and refused.
#[derive(Debug, Default)]
pub(super) struct Tenancy {
    contests: BTreeMap<IpAddr, Contest>,
    /// Holders as they are recorded.
    recorded: BTreeMap<IpAddr, Arc<str>>,
    /// Addresses that gateway services do not get because another namespace has them.
    taken: BTreeMap<Arc<str>, BTreeSet<IpAddr>>,
    /// Endpoints that do not count, by gateway service and slice.
    refused: BTreeMap<(Arc<str>, ServiceName), BTreeMap<Fault, Refused>>,
    /// Slices that name another Service than their owner is, by the owner's gateway service.
    torn: BTreeMap<Arc<str>, BTreeSet<ServiceName>>,
    /// Gateway services of which something else is to be said.
    stirred: BTreeSet<Arc<str>>,
}

fn fault(endpoint: &Endpoint) -> Option<Fault> {
    if is_no_pods(endpoint.address) {
        return Some(Fault::Invalid);
    }
    if endpoint.target == Target::Foreign {
        return Some(Fault::Foreign);
    }
    endpoint.node.is_none().then_some(Fault::Nowhere)
}

/// What is wrong with where a ready endpoint is.
fn lost(endpoint: &Endpoint, homes: &Homes) -> Option<Fault> {
    let node = endpoint.node.as_ref().filter(|_| endpoint.readiness == Readiness::Ready)?;
    homes.of_node(node, Family::of(endpoint.address)).is_none().then_some(Fault::Unknown)
}

/// Whether no Pod can have an address. The API server takes most of these in no slice either.
fn is_no_pods(address: IpAddr) -> bool {
    let address = address.to_canonical();
    let local = match address {
        IpAddr::V4(a) => a.is_link_local() || a.is_broadcast(),
        IpAddr::V6(a) => a.is_unicast_link_local(),
    };
    local
        || address.is_unspecified()
        || address.is_loopback()
        || address.is_multicast()
        || address == AZURE
}

/// Whether an endpoint may be somebody's.
pub(super) fn counts(endpoint: &Endpoint) -> bool {
    fault(endpoint).is_none()
}

impl Tenancy {
    /// The namespace that alone has an address, where several list it.
    pub fn holder(&self, address: IpAddr) -> Option<&Arc<str>> {
        self.contests.get(&address).map(|contest| &contest.holder)
    }

    /// Whether an address is contested and its holder is not recorded yet.
    pub fn awaits_record(&self, address: IpAddr) -> bool {
        self.contests.get(&address).is_some_and(|contest| !contest.certain)
    }

    /// Takes in the recorded holders. Returns the addresses whose recorded holder has changed.
    pub fn take_recorded(&mut self, recorded: &BTreeMap<IpAddr, Arc<str>>) -> Vec<IpAddr> {
        let news = changed(&self.recorded, recorded, |a, b| a == b);
        if !news.is_empty() {
            self.recorded.clone_from(recorded);
        }
        news
    }

    /// Learns which endpoints of a slice do not count; none of one that is gone.
    pub fn note(
        &mut self,
        owner: &Arc<str>,
        name: &ServiceName,
        slice: Option<&EndpointSlice>,
        homes: &Homes,
    ) {
        let mut found: BTreeMap<Fault, Refused> = BTreeMap::new();
        for endpoint in slice.into_iter().flat_map(|slice| &slice.endpoints) {
            if let Some(fault) = fault(endpoint).or_else(|| lost(endpoint, homes)) {
                let first = endpoint.address;
                found.entry(fault).or_insert(Refused { first, count: 0 }).count += 1;
            }
        }
        if found.is_empty() && self.refused.is_empty() {
            return;
        }
        let key = (Arc::clone(owner), name.clone());
        let before = match found.is_empty() {
            true => self.refused.remove(&key),
            false => self.refused.insert(key.clone(), found),
        };
        if before.as_ref() != self.refused.get(&key) {
            self.stirred.insert(Arc::clone(owner));
        }
    }

    /// Learns whether a slice names another Service than its owner is.
    pub fn tear(&mut self, owner: &Arc<str>, name: &ServiceName, torn: bool) {
        let changed = match (torn, self.torn.get_mut(owner)) {
            (true, _) => self.torn.entry(Arc::clone(owner)).or_default().insert(name.clone()),
            (false, Some(all)) => all.remove(name),
            (false, None) => false,
        };
        if changed {
            self.torn.retain(|_, all| !all.is_empty());
            self.stirred.insert(Arc::clone(owner));
        }
    }

    /// Something else is to be said of a gateway service.
    pub fn stir(&mut self, name: Arc<str>) {
        self.stirred.insert(name);
    }

    /// Forgets which endpoints do not count: all slices are looked at again.
    pub fn forget_endpoints(&mut self) {
        let refused = std::mem::take(&mut self.refused);
        self.stirred.extend(refused.into_keys().map(|(owner, _)| owner));
        self.stirred.extend(std::mem::take(&mut self.torn).into_keys());
    }

    fn settle(&mut self, address: IpAddr, contest: Option<Contest>) {
        let before = match &contest {
            Some(contest) => self.contests.insert(address, contest.clone()),
            None => self.contests.remove(&address),
        };
        if before == contest {
            return;
        }
        for loser in before.iter().flat_map(|contest| &contest.losers) {
            if let Some(all) = self.taken.get_mut(loser) {
                all.remove(&address);
                if all.is_empty() {
                    self.taken.remove(loser);
                }
            }
            self.stirred.insert(Arc::clone(loser));
        }
        for loser in contest.into_iter().flat_map(|contest| contest.losers) {
            self.taken.entry(Arc::clone(&loser)).or_default().insert(address);
            self.stirred.insert(loser);
        }
    }
}

impl DiffTracker {
    /// Gateway services of which something else is to be said since the last time.
    pub fn take_stirred(&mut self) -> BTreeSet<Arc<str>> {
        std::mem::take(&mut self.tenancy.stirred)
    }

    /// Addresses that slices of several namespaces list, with the namespace that has each.
    pub fn holders(&self) -> BTreeMap<IpAddr, Arc<str>> {
        let all = self.tenancy.contests.iter();
        all.map(|(address, contest)| (*address, Arc::clone(&contest.holder))).collect()
    }

    /// What is wrong with endpoints of a gateway service: one finding for each rule.
    pub fn complaints(&self, name: &Arc<str>) -> Vec<Finding> {
        let mut findings: Vec<Finding> = self.unserved(name).into_iter().collect();
        if let Some(taken) = self.tenancy.taken.get(name)
            && let Some(first) = taken.first()
        {
            let holder = self.tenancy.holder(*first).map_or("", AsRef::as_ref);
            let message = format!(
                "{{value}} gets no traffic, because namespace {holder:?} had it first; an address \
                 is free once no EndpointSlice there lists it"
            );
            let value = listed(first, taken.len());
            findings.push(GATEWAY_ADDRESS_TAKEN.found_with(ENDPOINTS, &value, &message));
        }
        let least = ServiceName { namespace: Arc::default(), name: Arc::default() };
        let own = self.tenancy.refused.range((Arc::clone(name), least)..);
        let mut all: BTreeMap<Fault, Refused> = BTreeMap::new();
        for (_, faults) in own.take_while(|((of, _), _)| of == name) {
            for (fault, refused) in faults {
                let first = refused.first;
                all.entry(*fault).or_insert(Refused { first, count: 0 }).count += refused.count;
            }
        }
        for (fault, Refused { first, count }) in all {
            let rule = match fault {
                Fault::Invalid => GATEWAY_INVALID_ADDRESS,
                Fault::Foreign => GATEWAY_FOREIGN_POD,
                Fault::Nowhere => GATEWAY_NO_NODE,
                Fault::Unknown => GATEWAY_UNKNOWN_NODE,
            };
            findings.push(rule.found(ENDPOINTS, &listed(&first, count)));
        }
        if let Some(torn) = self.tenancy.torn.get(name)
            && let Some(first) = torn.first()
        {
            let value = listed(&first.name, torn.len());
            findings.push(GATEWAY_TORN_SLICE.found(ENDPOINTS, &value));
        }
        findings
    }

    /// Finds out which namespace has an address.
    pub(super) fn judge(&mut self, address: IpAddr) {
        let contest = self.contest(address);
        self.tenancy.settle(address, contest);
    }

    fn contest(&self, address: IpAddr) -> Option<Contest> {
        let claims = self.sides.claims(address);
        let of = |claim: &Claim| self.sources.namespace(claim.source);
        let first = of(claims.first()?);
        if claims.iter().all(|claim| of(claim) == first) || self.homes.at_host(address).is_some() {
            return None;
        }
        let vouched = |claim: &&Claim| {
            self.sources.is_pod(claim.source) || self.vouched.contains(&(address, claim.source))
        };
        let mut rivals: Vec<&Claim> = claims.iter().filter(vouched).collect();
        if rivals.is_empty() {
            rivals = claims.iter().collect();
        }
        let recorded = self.tenancy.recorded.get(&address);
        let recorded = recorded.filter(|held| rivals.iter().any(|claim| of(claim) == *held));
        let alone = |first: &&Claim| rivals.iter().all(|claim| of(claim) == of(first));
        let certain = recorded.is_some() || rivals.first().is_some_and(alone);
        let lowest = |claims: &mut dyn Iterator<Item = &Claim>| {
            claims.min_by_key(|claim| self.sources.owner(claim.source)).map(of).cloned()
        };
        let holder = recorded.cloned().or_else(|| {
            let is_listed = |claim: &Claim| {
                let owner = self.sources.owner(claim.source);
                self.spots(address).any(|spot| spot.services.contains(owner))
            };
            lowest(&mut rivals.iter().copied().filter(|claim| is_listed(claim)))
                .or_else(|| lowest(&mut rivals.iter().copied()))
        })?;
        let lost = claims.iter().filter(|claim| *of(claim) != holder);
        let losers = lost.map(|claim| Arc::clone(self.sources.owner(claim.source)));
        let losers = losers.filter(|name| pod_names::is_uid(name)).collect();
        Some(Contest { holder, certain, losers })
    }
}

/// The first of so many.
fn listed(first: &dyn fmt::Display, count: usize) -> String {
    match count {
        1 => first.to_string(),
        _ => format!("{first} and {} more", count - 1),
    }
}
