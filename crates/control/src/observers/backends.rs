//! Whether the backends of each Service answer health probes: which reads of Azure's metric say so,
//! and what comes of their answers. Planning and writing never look here, and none of it is in the
//! World: what a probe finds changes no write.
//!
//! # Guarantees
//! The same answers at the same times give the same findings. What a read does not tell about stays
//! as it was, until it is too old to be shown.

use crate::clock::at_ms;
use crate::effect::KubernetesCall;
use crate::observers::event_queue::Waiting;
use crate::observers::kubernetes_events::word;
use crate::observers::reason;
use arm::probe_status::Series;
use model::azure::Sku;
use model::kubernetes::{Service, TrafficPolicy};
use model::{Backend, NodeName, ProbeState, Protocol, Report, ResourceId, ServiceBackends};
use model::{ServiceName, ServiceUid, World};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

/// Frontends of one read: their addresses stand in its path.
const FRONTENDS: usize = 20;
/// Series that one read may be expected to bring: half a megabyte of JSON.
const SERIES: usize = 2_000;
/// A series that ends so long before the newest one is of a backend that has left.
const GONE_MS: u64 = 120_000;
/// What was read so long ago is not shown any more.
pub const SHOWN_MS: u64 = 600_000;

/// One read: some frontends of a load balancer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Read {
    /// The load balancer.
    pub balancer: ResourceId,
    /// The frontends' addresses.
    pub frontends: Vec<IpAddr>,
}

/// The reads that tell about every Service: of Standard load balancers, which alone have the
/// metric, and of addresses that Services have. A large load balancer takes several.
#[must_use]
pub fn reads(world: &World, report: &Report) -> Vec<Read> {
    let Some(balancers) = world.azure.balancers.known() else { return Vec::new() };
    let standard = balancers.values().filter(|balancer| balancer.sku == Sku::Standard);
    let by_name: BTreeMap<String, &ResourceId> =
        standard.map(|balancer| (balancer.id.name().to_lowercase(), &balancer.id)).collect();
    let mut wanted: BTreeMap<&ResourceId, Groups> = BTreeMap::new();
    for (uid, service) in &report.services {
        let balancer = service.balancer.as_ref().map(|name| name.to_lowercase());
        let Some(id) = balancer.and_then(|name| by_name.get(&name)) else { continue };
        let ports = world.kubernetes.services.get(uid).map_or(1, |own| own.ports.len().max(1));
        let addresses = service.addresses.iter().filter_map(|text| text.parse().ok());
        wanted.entry(id).or_default().add(addresses.map(|address| (address, ports)).collect());
    }
    let nodes = world.kubernetes.nodes.len().max(1);
    wanted.into_iter().flat_map(|(id, groups)| parts(id, groups.all, nodes)).collect()
}

/// Frontends with the number of their ports, in groups that one read has to tell about: those of
/// one Service, and of all Services that share one of them. An answer is taken for all that there
/// is of a Service, so that each family in a read of its own would undo what the other told.
#[derive(Debug, Default)]
struct Groups {
    all: Vec<BTreeMap<IpAddr, usize>>,
    /// Where in `all` an address is.
    places: BTreeMap<IpAddr, usize>,
}

impl Groups {
    fn add(&mut self, mut own: BTreeMap<IpAddr, usize>) {
        let known = own.keys().filter_map(|address| self.places.get(address).copied());
        for place in known.collect::<BTreeSet<usize>>() {
            for (address, ports) in std::mem::take(&mut self.all[place]) {
                *own.entry(address).or_default() += ports;
            }
        }
        self.places.extend(own.keys().map(|address| (*address, self.all.len())));
        self.all.push(own);
    }
}

/// The reads of one load balancer, each of as many groups as it can tell about. One that is too
/// large for a read is parted all the same.
fn parts(id: &ResourceId, mut groups: Vec<BTreeMap<IpAddr, usize>>, nodes: usize) -> Vec<Read> {
    groups.sort();
    let mut parts: Vec<Read> = Vec::new();
    let mut series = 0;
    for group in groups {
        let group: Vec<(IpAddr, usize)> = group.into_iter().collect();
        for chunk in group.chunks(FRONTENDS) {
            let more = chunk.iter().map(|(_, ports)| ports * nodes).sum::<usize>();
            let addresses = chunk.iter().map(|(address, _)| *address);
            let fits = |last: &&mut Read| last.frontends.len() + chunk.len() <= FRONTENDS;
            match parts.last_mut().filter(fits).filter(|_| series + more <= SERIES) {
                Some(last) => {
                    last.frontends.extend(addresses);
                    series += more;
                }
                None => {
                    parts.push(Read { balancer: id.clone(), frontends: addresses.collect() });
                    series = more;
                }
            }
        }
    }
    parts
}

/// What was found of all Services.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BackendLog {
    services: BTreeMap<ServiceUid, Arc<ServiceBackends>>,
    /// Services of which it was said that no backend is up.
    said: BTreeSet<ServiceUid>,
    changes: u64,
}

/// A Service whose last backend was found gone twice in a row, or that has one again. Once is not
/// enough: a new backend may have a value before its first probe was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn {
    /// The Service.
    pub uid: ServiceUid,
    /// What was found of it.
    pub now: Arc<ServiceBackends>,
}

impl Turn {
    /// What is said of it.
    #[must_use]
    pub fn message(&self) -> String {
        let (all, down) = (self.now.all.len(), self.now.count(ProbeState::Down));
        match self.now.is_out() {
            true => format!(
                "No backend answers Azure's health probes (0 of {all}): clients get no connection."
            ),
            false => format!("{} of {all} backends answer Azure's health probes.", all - down),
        }
    }

    /// The Event about it. Its name differs from those of the controller's own Events.
    #[must_use]
    pub fn event(
        &self,
        name: &ServiceName,
        (instance, number): (&str, u64),
        now_ms: u64,
    ) -> KubernetesCall {
        let reason = if self.now.is_out() { &reason::NO_BACKEND_UP } else { &reason::BACKEND_UP };
        let (name, uid) = (name.clone(), Arc::from(self.uid.as_str()));
        let word = word(reason, &self.message());
        let waiting = Waiting { kind: "Service", name, uid, word, at_ms: now_ms };
        waiting.call(instance, &format!("b{number:08x}"))
    }
}

impl BackendLog {
    /// What was found of a Service, unless that was too long ago.
    #[must_use]
    pub fn of(&self, uid: &ServiceUid, now_ms: u64) -> Option<&Arc<ServiceBackends>> {
        let fresh =
            |found: &&Arc<ServiceBackends>| now_ms.saturating_sub(found.read_ms) <= SHOWN_MS;
        self.services.get(uid).filter(fresh)
    }

    /// A number that grows whenever a backend is found to be otherwise.
    #[must_use]
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// Takes in the answer to a read; returns the Services that turned.
    pub fn learn(
        &mut self,
        (world, report): (&World, &Report),
        read: &Read,
        series: &[Series],
        now_ms: u64,
    ) -> Vec<Turn> {
        self.services.retain(|uid, _| report.services.contains_key(uid));
        self.said.retain(|uid| report.services.contains_key(uid));
        let owners = Owners::of(world, report);
        let nodes = nodes(world);
        let newest = series.iter().filter_map(Run::of).map(|run| run.last_ms).max().unwrap_or(0);
        let mut found: BTreeMap<ServiceUid, BTreeMap<Key, Found>> = BTreeMap::new();
        for one in series {
            let Some(run) = Run::of(one).filter(|run| run.last_ms + GONE_MS >= newest) else {
                continue;
            };
            let Some(uid) = owners.find(one) else { continue };
            let node = nodes.get(&one.backend).map(|node| NodeName::clone(node));
            let key = match &node {
                Some(node) => Key::Node(node.clone()),
                None => Key::Address(one.backend),
            };
            let backends = found.entry(uid.clone()).or_default();
            let seen = Found { node, address: one.backend, run };
            backends.entry(key).and_modify(|known| known.add(&seen)).or_insert(seen);
        }
        let asked: BTreeSet<ServiceUid> = owners.of_frontends(&read.frontends).cloned().collect();
        let mut turns = Vec::new();
        for uid in asked {
            let before = self.services.get(&uid);
            let now = found.remove(&uid).map(|own| settle(own, before.map(|old| &**old), now_ms));
            let now = now.map(Arc::new);
            let known = before.filter(|old| now_ms.saturating_sub(old.read_ms) <= SHOWN_MS);
            if let Some(now) = &now {
                let turned = match now.is_out() {
                    true => known.is_some_and(|old| old.is_out()) && self.said.insert(uid.clone()),
                    false => self.said.remove(&uid),
                };
                turns.extend(turned.then(|| Turn { uid: uid.clone(), now: Arc::clone(now) }));
            }
            if before.map(|old| &old.all) != now.as_ref().map(|new| &new.all) {
                self.changes += 1;
            }
            match now {
                Some(now) => self.services.insert(uid, now),
                None => self.services.remove(&uid),
            };
        }
        turns
    }
}

/// What is one backend: a node with all its addresses, or an address that no node has.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Node(NodeName),
    Address(IpAddr),
}

/// What a series ends with: the state of its last minutes, and since when it has been so.
#[derive(Clone, Copy, Debug)]
struct Run {
    state: ProbeState,
    from_ms: u64,
    last_ms: u64,
}

impl Run {
    fn of(series: &Series) -> Option<Self> {
        let mut points = series.points.iter().rev();
        let last = points.next()?;
        let last_ms = at_ms(&last.time)?;
        let same = points.take_while(|point| point.state == last.state);
        let from_ms = same.filter_map(|point| at_ms(&point.time)).last().unwrap_or(last_ms);
        Some(Self { state: last.state, from_ms, last_ms })
    }
}

/// What all series about one backend of a Service come to.
#[derive(Clone, Debug)]
struct Found {
    node: Option<NodeName>,
    address: IpAddr,
    run: Run,
}

impl Found {
    fn add(&mut self, other: &Self) {
        self.run.state = self.run.state.and(other.run.state);
        // The backend is as it is since the last of its ports became so.
        self.run.from_ms = self.run.from_ms.max(other.run.from_ms);
        self.address = self.address.min(other.address);
    }
}

/// The backends of a Service, each with since when it is as it is: what was found before counts,
/// because a read looks only some minutes back.
fn settle(
    found: BTreeMap<Key, Found>,
    before: Option<&ServiceBackends>,
    now_ms: u64,
) -> ServiceBackends {
    let all = found.into_values().map(|Found { node, address, run }| {
        let known = before.and_then(|before| {
            let same = |old: &&Backend| match &node {
                Some(node) => old.node.as_ref() == Some(node),
                None => old.address == address,
            };
            before.all.iter().find(same).map(|old| (old, before.read_ms))
        });
        let since_ms = match known {
            Some((old, _)) if old.state == run.state => old.since_ms,
            // It was otherwise when it was read before: a minute's value tells of all the minute.
            Some((_, read_ms)) => run.from_ms.max(read_ms),
            None => run.from_ms,
        };
        Backend { node, address, state: run.state, since_ms: since_ms.min(now_ms) }
    });
    ServiceBackends { read_ms: now_ms, all: all.collect() }
}

fn nodes(world: &World) -> BTreeMap<IpAddr, &NodeName> {
    let nodes = world.kubernetes.nodes.values();
    nodes.flat_map(|node| node.addresses.iter().map(|address| (*address, &node.name))).collect()
}

/// Whose a frontend's port is.
struct Owners<'a> {
    by_address: BTreeMap<IpAddr, Vec<(&'a ServiceUid, Option<&'a Service>)>>,
}

impl<'a> Owners<'a> {
    fn of(world: &'a World, report: &'a Report) -> Self {
        let mut by_address: BTreeMap<IpAddr, Vec<_>> = BTreeMap::new();
        for (uid, service) in &report.services {
            let own = world.kubernetes.services.get(uid).map(|own| &**own);
            for address in service.addresses.iter().filter_map(|text| text.parse().ok()) {
                by_address.entry(address).or_default().push((uid, own));
            }
        }
        Self { by_address }
    }

    fn of_frontends<'s>(&'s self, frontends: &'s [IpAddr]) -> impl Iterator<Item = &'a ServiceUid> {
        let known = frontends.iter().filter_map(|address| self.by_address.get(address));
        known.flatten().map(|(uid, _)| *uid)
    }

    /// The Service that a series is about: the one with the port where several share an address,
    /// and the only one whatever the port, because a rule may take all ports.
    fn find(&self, series: &Series) -> Option<&'a ServiceUid> {
        let sharers = self.by_address.get(&series.frontend)?;
        if let [(only, _)] = sharers.as_slice() {
            return Some(only);
        }
        let protocol = |own: Protocol| series.protocol.is_none_or(|told| told == own);
        let has = |service: &Service| {
            service.ports.iter().any(|p| p.port == series.port && protocol(p.protocol))
        };
        sharers.iter().find(|(_, service)| service.is_some_and(has)).map(|(uid, _)| *uid)
    }
}

/// Whether it is usual that some backends of a Service fail their probes: those without a Pod.
#[must_use]
pub fn is_usual(service: &Service) -> bool {
    service.traffic_policy == TrafficPolicy::Local
}

#[cfg(test)]
mod tests;
