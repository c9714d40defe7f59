//! The programming latency of Pods' addresses in a Service Gateway: what changes, and when it is
//! written.

use crate::controller::Controller;
use crate::observers::latency::Verdict;
use crate::observers::latency::pods::{Grounds, Owner, PodChange, TableWork, place, ready};
use model::kubernetes::{Backends, EndpointSlice, Pod};
use model::plan::Action;
use model::report::State;
use model::world::Kind;
use observe::KubernetesFact;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

/// A call with fewer addresses has left none out: the largest takes tens of thousands.
const FAR_FROM_FULL: usize = 10_000;

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

    /// A Pod is ready but for our gate: from now on it is kept from its traffic by us alone. Where
    /// no addresses of Pods are in Azure, no write would ever end what is timed.
    pub(crate) fn time_gated(&mut self, addresses: &[IpAddr], now_ms: u64) {
        let pods_in_azure = self.policy.over(Backends::Pods).is_some();
        if pods_in_azure && self.is_timed(Kind::GatedPods) && self.is_timed(Kind::EndpointSlices) {
            for address in addresses {
                self.observers.latencies.time_pod(*address, Owner::Any, now_ms);
            }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Options;
    use crate::observers::latency::ChangeKind;
    use fixture::{container_policy, policy};
    use model::Policy;
    use serde_json::json;

    /// How many addresses of Pods are timed after so many Pods with our gate have begun.
    fn timed(policy: Policy, pods: u32) -> usize {
        let mut controller = Controller::new(policy, Options::default());
        let listed = [Kind::GatedPods, Kind::EndpointSlices];
        controller.world.kubernetes.complete.extend(listed);
        let mut interner = observe::Interner::default();
        for number in 0..pods {
            let pod = json!({"metadata": {"name": format!("web-{number}"), "namespace": "default",
                "uid": format!("uid-{number}"), "resourceVersion": "7",
                "labels": {"ballast.dev/load-balancer-ready": "enabled"}},
                "spec": {"readinessGates": [{"conditionType": "ballast.dev/load-balancer-ready"}]},
                "status": {"phase": "Running", "podIP": format!("10.244.0.{number}"),
                    "conditions": [{"type": "ContainersReady", "status": "True"}]}});
            let pod = observe::kubernetes::gated_pod_from_value(&pod, &mut interner);
            let pod = pod.expect("a Pod").expect("it has the gate");
            controller.learn(KubernetesFact::GatedPod(pod), 0);
        }
        controller.measure(1);
        controller.latencies().pending(ChangeKind::Pod)
    }

    #[test]
    fn the_gates_of_pods_behind_nodes_are_not_timed_for_ever() {
        assert_eq!(timed(container_policy(), 3), 3);
        let several = Policy { layout: fixture::several(), ..policy() };
        assert_eq!(timed(several, 3), 0);
    }
}
