//! The programming latency: what changes, and when Azure is as it is wanted.

use crate::controller::Controller;
use crate::observers::latency::{ChangeKind, Latencies, Moved, NodeChange, Stir, Verdict};
use model::kubernetes::{Node, Wish};
use model::plan::{Change, Edit, FinalizerPurpose, Object};
use model::policy::Layout;
use model::report::{ServiceReport, State, Wait};
use model::world::Kind;
use model::{NodeName, ServiceUid};
use observe::KubernetesFact;
use std::collections::{BTreeMap, BTreeSet};

impl Controller {
    /// How long changes took.
    #[must_use]
    pub fn latencies(&self) -> &Latencies {
        &self.observers.latencies
    }

    pub(super) fn is_timed(&self, kind: Kind) -> bool {
        self.term.is_held() && self.world.kubernetes.complete.contains(&kind)
    }

    /// A Service's owner changed it.
    pub(crate) fn time_service(&mut self, uid: &ServiceUid, now_ms: u64) {
        if self.is_timed(Kind::Services) {
            self.observers.latencies.time_service(uid, now_ms);
        }
    }

    /// What a fact that is about to be applied may change in Azure.
    pub(crate) fn stir(&self, fact: &KubernetesFact) -> Stir {
        let pods_in_azure = self.policy.layout == Layout::PerService;
        match fact {
            KubernetesFact::Node(node) if !pods_in_azure => self.stir_node(&node.name, Some(node)),
            KubernetesFact::NodeGone(name) if !pods_in_azure => self.stir_node(name, None),
            _ if pods_in_azure => Stir { node: None, pods: self.stir_pods(fact) },
            _ => Stir::default(),
        }
    }

    fn stir_node(&self, name: &NodeName, new: Option<&Node>) -> Stir {
        if !self.is_timed(Kind::Nodes) {
            return Stir::default();
        }
        let old = self.world.kubernetes.nodes.get(name).map(AsRef::as_ref);
        let backend = |node: &Node| (node.addresses.clone(), node.membership, node.machine());
        if old.map(backend) == new.map(backend) {
            return Stir::default();
        }
        let known = || old.into_iter().chain(new);
        let addresses = known().flat_map(|node| node.addresses.iter().copied()).collect();
        let machine = new.and_then(Node::machine).or_else(|| old.and_then(Node::machine));
        Stir { node: Some((name.clone(), addresses, machine)), pods: BTreeMap::new() }
    }

    /// Sees which changes are confirmed.
    pub(crate) fn measure(&mut self, now_ms: u64) {
        let mut latencies = std::mem::take(&mut self.observers.latencies);
        let Latencies { measured, services, stirred, nodes, pods, judged } = &mut latencies;
        if !services.is_empty() {
            let released = self.released();
            let stirred = std::mem::take(stirred);
            for uid in stirred.iter().chain(released.iter().copied()) {
                let Some(pending) = services.get(uid).copied() else { continue };
                let verdict = self.verdict_on_service(uid, &released);
                if !Latencies::stays(measured, ChangeKind::Service, pending, verdict, now_ms) {
                    services.remove(uid);
                }
            }
        }
        if !nodes.is_empty() {
            let moved = Moved::by(self.written_or_to_be());
            nodes.retain(|_, node| {
                let verdict = self.verdict_on_node(node, &moved);
                Latencies::stays(measured, ChangeKind::Node, node.pending, verdict, now_ms)
            });
        }
        // There may be as many as Pods, and a step for every answer of Azure's.
        if !pods.is_empty()
            && let Some(table) = self.table_work(judged)
        {
            pods.retain(|address, pod| {
                let verdict = self.verdict_on_pod(*address, pod, &table);
                Latencies::stays(measured, ChangeKind::Pod, pod.pending, verdict, now_ms)
            });
        }
        self.observers.latencies = latencies;
    }

    /// Changes of the plan, and those under way.
    fn written_or_to_be(&self) -> impl Iterator<Item = &Change> {
        let works = self.lanes.all.values().filter_map(|lane| lane.work.as_ref());
        self.planning.plan.changes.iter().map(AsRef::as_ref).chain(works.map(|work| &work.change))
    }

    /// Services whose finalizer goes, because nothing is left in Azure.
    fn released(&self) -> BTreeSet<&ServiceUid> {
        let goes = |edit: &Edit| {
            let Edit::Finalizers { purpose, .. } = edit else { return false };
            *purpose == FinalizerPurpose::Release
        };
        let writes = self.planning.plan.writes.iter().filter(|write| goes(&write.edit));
        let services = writes.filter_map(|write| match &write.object {
            Object::Service { uid, .. } => Some(uid),
            Object::Pod { .. } => None,
        });
        services.collect()
    }

    fn verdict_on_service(&self, uid: &ServiceUid, released: &BTreeSet<&ServiceUid>) -> Verdict {
        let report = self.planning.report.services.get(uid).map(AsRef::as_ref);
        let Some(ServiceReport { state, waits, .. }) = report else {
            let known = self.world.kubernetes.services.get(uid);
            let wanted = known.is_some_and(|service| service.wish == Wish::LoadBalancer);
            return if wanted { Verdict::Open } else { Verdict::Settled };
        };
        // Azure is done when nothing but the Service's own status is left to be written.
        let told = !waits.is_empty() && waits.iter().all(|wait| *wait == Wait::Status);
        match state {
            State::Refused | State::RefusedServing | State::Held => Verdict::Void,
            State::Programmed => Verdict::Settled,
            State::Waiting if told => Verdict::Settled,
            State::Removing if released.contains(uid) => Verdict::Settled,
            State::Waiting | State::Rejected | State::Removing => Verdict::Open,
        }
    }

    fn verdict_on_node(&self, node: &NodeChange, moved: &Moved) -> Verdict {
        // Where machines are in pools themselves, a new one has to be looked up first.
        let looked_up =
            node.pending.sent || (self.planning.report.needs.is_empty() && !self.is_reading());
        match moved.touches(node) || !looked_up {
            true => Verdict::Open,
            false => Verdict::Settled,
        }
    }
}
