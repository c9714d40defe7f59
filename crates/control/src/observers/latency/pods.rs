//! The programming latency of Pods' addresses in a Service Gateway.

use super::{Pending, Verdict};
use crate::controller::Controller;
use model::NodeName;
use model::ServiceUid;
use model::kubernetes::{Deletion, EndpointSlice, Pod, PodPhase, Readiness};
use model::plan::Action;
use model::report::State;
use model::world::Kind;
use observe::KubernetesFact;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

/// A call with fewer addresses has left none out: the largest takes tens of thousands.
const FAR_FROM_FULL: usize = 10_000;

/// On whose account an address is in Azure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// A Service, by its EndpointSlices.
    Service(ServiceUid),
    /// An egress gateway, by the Pod's label.
    Egress,
    /// Whoever selects it.
    Any,
}

/// An address that changed.
#[derive(Debug)]
pub(super) struct PodChange {
    pub pending: Pending,
    owner: Owner,
}

/// What is to be written of the address table, and what is being written.
pub(super) struct TableWork {
    planned: BTreeSet<IpAddr>,
    /// Addresses of the call under way: until it has ended the next one is not planned.
    under_way: Option<Arc<BTreeSet<IpAddr>>>,
}

/// What decides on all Pods together.
#[derive(Debug, Default)]
pub(crate) struct Grounds {
    under_way: Option<Arc<BTreeSet<IpAddr>>>,
    /// Whether nothing at all is to be written.
    quiet: bool,
}

impl Grounds {
    fn is(&self, other: &Self) -> bool {
        let Self { under_way, quiet } = self;
        let same_call = match (under_way, &other.under_way) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (None, None) => true,
            _ => false,
        };
        same_call && *quiet == other.quiet
    }
}

/// Addresses that take traffic, with their nodes.
fn ready(slice: &EndpointSlice) -> BTreeMap<IpAddr, Option<&NodeName>> {
    let ready = slice.endpoints.iter().filter(|e| e.readiness == Readiness::Ready);
    ready.map(|e| (e.address, e.node.as_ref())).collect()
}

/// What of an egress Pod decides on its addresses.
fn place(pod: &Pod) -> (&Option<Arc<str>>, &[IpAddr], &[IpAddr], Deletion, PodPhase) {
    (&pod.egress, &pod.addresses, &pod.hosts, pod.deletion, pod.phase)
}

impl Controller {
    pub(super) fn stir_pods(&self, fact: &KubernetesFact) -> BTreeMap<IpAddr, Owner> {
        let held = &self.world.kubernetes;
        match fact {
            KubernetesFact::Slice(slice) => {
                let old = held.slices.get(&slice.name).map(AsRef::as_ref);
                self.stir_slice(old, Some(slice))
            }
            KubernetesFact::SliceGone(name) => {
                self.stir_slice(held.slices.get(name).map(AsRef::as_ref), None)
            }
            KubernetesFact::Pod(pod) => {
                let old = held.pods.get(&pod.name).map(AsRef::as_ref);
                self.stir_pod(old, Some(pod))
            }
            KubernetesFact::PodGone(name) => {
                self.stir_pod(held.pods.get(name).map(AsRef::as_ref), None)
            }
            _ => BTreeMap::new(),
        }
    }

    fn stir_slice(
        &self,
        old: Option<&EndpointSlice>,
        new: Option<&EndpointSlice>,
    ) -> BTreeMap<IpAddr, Owner> {
        let services = &self.world.kubernetes.services;
        let owned = new.or(old).and_then(|slice| Some((slice, slice.owner.as_ref()?)));
        let owner = owned.filter(|(slice, uid)| services.get(*uid).is_some_and(|s| slice.is_of(s)));
        let Some((_, uid)) = owner.filter(|_| self.is_timed(Kind::EndpointSlices)) else {
            return BTreeMap::new();
        };
        let (old, new) = (old.map(ready).unwrap_or_default(), new.map(ready).unwrap_or_default());
        let all = old.keys().chain(new.keys());
        let changed = all.filter(|address| old.get(*address) != new.get(*address));
        changed.map(|address| (*address, Owner::Service(uid.clone()))).collect()
    }

    fn stir_pod(&self, old: Option<&Pod>, new: Option<&Pod>) -> BTreeMap<IpAddr, Owner> {
        if !self.is_timed(Kind::Pods) || old.map(place) == new.map(place) {
            return BTreeMap::new();
        }
        let pods = old.into_iter().chain(new);
        pods.flat_map(|pod| &pod.addresses).map(|address| (*address, Owner::Egress)).collect()
    }

    pub(crate) fn time_pod(&mut self, address: IpAddr, owner: Owner, now_ms: u64) {
        let pod = PodChange { pending: Pending::since(now_ms), owner };
        self.observers.latencies.pods.entry(address).or_insert(pod);
        self.observers.latencies.judged = None;
    }

    /// A Pod is ready but for our gate: from now on it is kept from its traffic by us alone.
    pub(crate) fn time_gated(&mut self, addresses: &[IpAddr], now_ms: u64) {
        if self.is_timed(Kind::GatedPods) && self.is_timed(Kind::EndpointSlices) {
            addresses.iter().for_each(|address| self.time_pod(*address, Owner::Any, now_ms));
        }
    }

    /// What is written of the table. Nothing where no verdict can be another than the last time,
    /// or none can be given: of a call that is full, and of a table that nobody knows, what comes
    /// next cannot be told.
    pub(super) fn table_work(&self, judged: &mut Option<Grounds>) -> Option<TableWork> {
        let table = self.world.azure.gateway_locations.known()?;
        let mut planned = BTreeSet::new();
        for change in self.budget.queue.tables().filter_map(|at| self.planning.plan.changes.get(at))
        {
            if let Action::UpdateLocations(update) = &change.action {
                planned.extend(update.touched(Some(table)));
            }
        }
        if planned.len() >= FAR_FROM_FULL {
            return None;
        }
        let works = self.lanes.all.values().filter_map(|lane| lane.work.as_ref());
        let mut calls = works.map(|work| &work.addresses).filter(|all| !all.is_empty());
        let under_way = calls.next().map(Arc::clone);
        let grounds =
            Grounds { under_way: under_way.clone(), quiet: self.planning.plan.is_empty() };
        let same = judged.as_ref().is_some_and(|judged| judged.is(&grounds));
        *judged = Some(grounds);
        (!same || !planned.is_empty()).then_some(TableWork { planned, under_way })
    }

    pub(super) fn verdict_on_pod(
        &self,
        address: IpAddr,
        pod: &PodChange,
        table: &TableWork,
    ) -> Verdict {
        let TableWork { planned, under_way } = table;
        let is_written = under_way.as_ref().is_some_and(|call| call.contains(&address));
        if is_written || planned.contains(&address) {
            return Verdict::Open;
        }
        if pod.pending.sent {
            return Verdict::Settled;
        }
        // Its turn may come: after its Service is registered, after it has our finalizer.
        let hopeful = match &pod.owner {
            Owner::Service(uid) => {
                let service = self.planning.report.services.get(uid);
                service.is_some_and(|s| matches!(s.state, State::Waiting | State::Rejected))
            }
            Owner::Egress => !self.planning.plan.is_empty(),
            Owner::Any => false,
        };
        match under_way.is_some() || hopeful {
            true => Verdict::Open,
            false => Verdict::Void,
        }
    }
}
