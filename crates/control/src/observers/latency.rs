//! The programming latency: how long a change in Kubernetes takes until Azure has confirmed it.
//!
//! The clock starts when this process sees the change, and ends in the step in which nothing is
//! left to be written on its account and nothing is under way. What was there at the first list,
//! and what changed while another process held the right to write, is not measured: nobody knows
//! when that began. A change that leads to no write is not measured either, or it would flatter
//! the numbers, nor is one that planning refuses: it is never confirmed.
//!
//! An object that changes again before it is confirmed keeps its first start: until then Azure was
//! never as wanted.

pub(crate) mod pods;

use crate::observers::histogram::Histogram;
use model::azure::{LoadBalancer, PoolAddress};
use model::plan::{Action, Change, Resource};
use model::{NodeName, ResourceId, ServiceUid};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use pods::{Owner, PodChange};

/// Upper bounds of the latencies that are told apart, in milliseconds: 0.1 s to 10 minutes.
pub const LATENCY_BOUNDS_MS: [u64; 13] =
    [100, 250, 500, 1_000, 2_500, 5_000, 10_000, 20_000, 30_000, 60_000, 120_000, 300_000, 600_000];

/// What changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChangeKind {
    /// A Service, or what its owner asks of it.
    Service,
    /// A Pod's address, where addresses of Pods are in Azure.
    Pod,
    /// A node, where pools hold nodes.
    Node,
}

impl ChangeKind {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Service, Self::Pod, Self::Node];

    /// Its name in metrics.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Service => "service",
            Self::Pod => "pod",
            Self::Node => "node",
        }
    }
}

/// A change that is not confirmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pending {
    pub since_ms: u64,
    /// Whether a write was sent on its account since.
    pub sent: bool,
}

impl Pending {
    fn since(since_ms: u64) -> Self {
        Self { since_ms, sent: false }
    }
}

/// A node that changed.
#[derive(Debug)]
pub(crate) struct NodeChange {
    pub pending: Pending,
    /// Addresses before and after.
    addresses: BTreeSet<IpAddr>,
    machine: Option<ResourceId>,
}

/// How far a change is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Something is still to be done for it.
    Open,
    /// Nothing is.
    Settled,
    /// Nothing will be.
    Void,
}

/// What has been measured, and what is being measured.
#[derive(Debug)]
pub struct Latencies {
    pub(crate) measured: BTreeMap<ChangeKind, Histogram>,
    pub(crate) services: BTreeMap<ServiceUid, Pending>,
    /// Those of them about which something is new.
    pub(crate) stirred: BTreeSet<ServiceUid>,
    pub(crate) nodes: BTreeMap<NodeName, NodeChange>,
    pub(crate) pods: BTreeMap<IpAddr, PodChange>,
    /// What the verdicts on Pods were last given from; none: something else has changed since.
    pub(crate) judged: Option<pods::Grounds>,
}

impl Default for Latencies {
    fn default() -> Self {
        let empty = |kind| (kind, Histogram::new(&LATENCY_BOUNDS_MS));
        Self {
            measured: ChangeKind::ALL.into_iter().map(empty).collect(),
            services: BTreeMap::new(),
            stirred: BTreeSet::new(),
            nodes: BTreeMap::new(),
            pods: BTreeMap::new(),
            judged: None,
        }
    }
}

impl Latencies {
    /// How long changes took, by kind, in milliseconds.
    pub fn measured(&self) -> impl Iterator<Item = (ChangeKind, &Histogram)> {
        self.measured.iter().map(|(kind, histogram)| (*kind, histogram))
    }

    /// How many changes wait to be confirmed.
    #[must_use]
    pub fn pending(&self, kind: ChangeKind) -> usize {
        match kind {
            ChangeKind::Service => self.services.len(),
            ChangeKind::Pod => self.pods.len(),
            ChangeKind::Node => self.nodes.len(),
        }
    }

    pub(crate) fn forget_pending(&mut self) {
        self.services.clear();
        self.stirred.clear();
        self.nodes.clear();
        self.pods.clear();
    }

    /// A write was sent: what it is made for has got its turn.
    pub(crate) fn sent(&mut self, change: &Change, addresses: &BTreeSet<IpAddr>) {
        for uid in &change.causes {
            if let Some(pending) = self.services.get_mut(uid) {
                pending.sent = true;
            }
        }
        if !self.nodes.is_empty() {
            let moved = Moved::by([change]);
            for node in self.nodes.values_mut().filter(|node| moved.touches(node)) {
                node.pending.sent = true;
            }
        }
        self.mark_pods(addresses, true);
    }

    /// A write has failed: what it was made for waits for its turn again.
    pub(crate) fn failed(&mut self, addresses: &BTreeSet<IpAddr>) {
        self.mark_pods(addresses, false);
    }

    fn mark_pods(&mut self, addresses: &BTreeSet<IpAddr>, sent: bool) {
        if self.pods.is_empty() {
            return;
        }
        for address in addresses {
            if let Some(pod) = self.pods.get_mut(address) {
                pod.pending.sent = sent;
                self.judged = None;
            }
        }
    }

    /// There is news of a Service: what became of its change is to be looked at.
    pub(crate) fn look_at_service(&mut self, uid: &ServiceUid) {
        if self.services.contains_key(uid) {
            self.stirred.insert(uid.clone());
        }
    }

    /// A Service is in another state: its Pods are to be looked at.
    pub(crate) fn look_at_pods(&mut self) {
        self.judged = None;
    }

    /// A Service's owner changed it.
    pub(crate) fn time_service(&mut self, uid: &ServiceUid, now_ms: u64) {
        self.services.entry(uid.clone()).or_insert_with(|| Pending::since(now_ms));
        self.look_at_service(uid);
    }

    /// A fact was applied that has stirred these.
    pub(crate) fn time(&mut self, stir: Stir, now_ms: u64) {
        if let Some((name, addresses, machine)) = stir.node {
            let node = self.nodes.entry(name).or_insert_with(|| NodeChange {
                pending: Pending::since(now_ms),
                addresses: BTreeSet::new(),
                machine: None,
            });
            node.addresses.extend(addresses);
            node.machine = machine.or(node.machine.take());
        }
        for (address, owner) in stir.pods {
            self.time_pod(address, owner, now_ms);
        }
    }

    /// An address of a Pod has changed.
    pub(crate) fn time_pod(&mut self, address: IpAddr, owner: Owner, now_ms: u64) {
        let pod = PodChange { pending: Pending::since(now_ms), owner };
        self.pods.entry(address).or_insert(pod);
        self.judged = None;
    }

    /// Takes the verdict on a change; false when it is no longer followed.
    pub(crate) fn stays(
        measured: &mut BTreeMap<ChangeKind, Histogram>,
        kind: ChangeKind,
        pending: Pending,
        verdict: Verdict,
        now_ms: u64,
    ) -> bool {
        if verdict == Verdict::Settled && pending.sent {
            let latency_ms = now_ms.saturating_sub(pending.since_ms);
            if let Some(histogram) = measured.get_mut(&kind) {
                histogram.add(latency_ms);
            }
        }
        verdict == Verdict::Open
    }
}

/// Backends that writes bring in, take out or alter.
#[derive(Debug, Default)]
pub(crate) struct Moved {
    addresses: BTreeSet<IpAddr>,
    machines: BTreeSet<ResourceId>,
}

impl Moved {
    /// Backends of these changes.
    pub fn by<'a>(changes: impl IntoIterator<Item = &'a Change>) -> Self {
        let mut moved = Self::default();
        for change in changes {
            let Action::Put { before, after } = &change.action else { continue };
            match (before, after) {
                (before, Resource::LoadBalancer(after)) => {
                    let before = match before {
                        Some(Resource::LoadBalancer(before)) => backends(before),
                        _ => BTreeSet::new(),
                    };
                    let after = backends(after);
                    let differ = before.symmetric_difference(&after);
                    moved.addresses.extend(differ.map(|(_, backend)| backend.address));
                }
                (_, Resource::PoolMember(member)) => {
                    moved.machines.insert(member.id.clone());
                    moved.machines.extend(member.owner.clone());
                }
                _ => {}
            }
        }
        moved
    }

    /// Whether a node is among them.
    pub fn touches(&self, node: &NodeChange) -> bool {
        !self.addresses.is_disjoint(&node.addresses)
            || node.machine.as_ref().is_some_and(|machine| self.machines.contains(machine))
    }
}

fn backends(balancer: &LoadBalancer) -> BTreeSet<(&Arc<str>, &PoolAddress)> {
    let pools = balancer.pools.iter();
    pools.flat_map(|pool| pool.addresses.iter().map(|address| (&pool.name, address))).collect()
}

/// Objects that a fact is about to change, where that may lead to writes.
#[derive(Debug, Default)]
pub(crate) struct Stir {
    pub node: Option<(NodeName, BTreeSet<IpAddr>, Option<ResourceId>)>,
    pub pods: BTreeMap<IpAddr, Owner>,
}
