//! What is remembered between two plans: Services that were looked at, found to be settled or to
//! wait, and whose facts are the same values in memory still.

use super::gated::Gates;
use super::registry::Registrations;
use super::take;
use super::waiting::{Standing, Waiting};
use crate::draft::{Draft, Stance};
use crate::own::{is_claimed, pod_names};
use crate::pods::table::{DiffTracker, changed};
use model::azure::{LoadBalancer, PublicIp};
use model::gateway::GatewayServices;
use model::kubernetes::Service;
use model::plan::{KubernetesWrite, Object};
use model::report::{Report, ServiceReport, Wait};
use model::world::{ById, Fact};
use model::{Plan, Policy, ServiceUid, World};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What is remembered between two plans.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    /// UIDs by the names of their load balancers.
    pub uids: BTreeMap<Arc<str>, ServiceUid>,
    /// The address table.
    pub tracker: DiffTracker,
    /// Pods with our readiness gate.
    pub gates: Gates,
    services: BTreeMap<ServiceUid, Arc<Service>>,
    balancers: ById<LoadBalancer>,
    ips: ById<PublicIp>,
    registered: GatewayServices,
    /// Reports of Services that need not be looked at.
    settled: BTreeMap<ServiceUid, Arc<ServiceReport>>,
    /// Those of them that are not done.
    waiting: Waiting,
    /// Names that have to be looked at.
    open: BTreeSet<Arc<str>>,
    /// How many times something was taken in.
    pub updates: u64,
}

/// What becomes of the Services that were looked at.
#[derive(Debug, Default)]
pub(super) struct Closing {
    /// They are done.
    pub done: Vec<ServiceUid>,
    /// They wait for something that will be seen when it comes.
    waiting: Vec<(Arc<str>, ServiceUid, Standing)>,
}

impl Memory {
    /// Takes in what has changed; gives the names that have to be looked at.
    pub fn update(&mut self, world: &World, policy: &Policy) -> BTreeSet<Arc<str>> {
        self.updates += 1;
        let moved = self.take_services(world);
        let shifted = self.take_registered(world);
        self.take_resources(world, policy);
        self.open.extend(moved.iter().chain(&shifted).cloned());
        self.open.extend(world.holds.keys().map(pod_names::of_service));
        let abandoned = world.abandoned.iter().filter(|name| pod_names::is_uid(name));
        self.open.extend(abandoned.cloned());
        let names = moved.union(&shifted).cloned().collect();
        let gated = self.gates.update(&world.kubernetes.gated_pods, &self.services);
        self.tracker.update(world, policy, &names, &self.uids, &gated);
        self.open.extend(self.tracker.take_stirred());
        self.open.extend(self.waiting.stirred(world, policy, &self.tracker));
        for name in &self.open {
            self.waiting.take(name);
            if let Some(uid) = self.uids.get(name) {
                self.settled.remove(uid);
            }
        }
        self.open.clone()
    }

    /// Whether Services, load balancers and public IPs are those that were taken in last.
    pub fn has_all(&self, world: &World, policy: &Policy) -> bool {
        let azure = &world.azure;
        let ips = azure.public_ips.get(&policy.group).and_then(Fact::known);
        is_same(&self.services, &world.kubernetes.services)
            && azure.balancers.known().is_some_and(|all| is_same(&self.balancers, all))
            && ips.is_some_and(|all| is_same(&self.ips, all))
    }

    /// Services that are not looked at and whose registration others may wait for.
    pub fn awaited(&self) -> usize {
        self.waiting.coming()
    }

    fn take_services(&mut self, world: &World) -> BTreeSet<Arc<str>> {
        let current = &world.kubernetes.services;
        let mut moved = BTreeSet::new();
        for uid in changed(&self.services, current, Arc::ptr_eq) {
            let name = pod_names::of_service(&uid);
            self.gates.note(self.services.get(&uid), current.get(&uid));
            match current.get(&uid) {
                Some(service) => {
                    self.uids.insert(Arc::clone(&name), uid.clone());
                    self.services.insert(uid, Arc::clone(service));
                }
                None => {
                    self.uids.remove(&name);
                    self.settled.remove(&uid);
                    self.services.remove(&uid);
                }
            }
            moved.insert(name);
        }
        moved
    }

    fn take_registered(&mut self, world: &World) -> BTreeSet<Arc<str>> {
        let Some(current) = world.azure.gateway_services.known() else { return BTreeSet::new() };
        let moved = take(&mut self.registered, current, |a, b| Arc::ptr_eq(a, b) || a == b);
        moved.into_iter().collect()
    }

    fn take_resources(&mut self, world: &World, policy: &Policy) {
        let azure = &world.azure;
        let mut open = Vec::new();
        if let Some(current) = azure.balancers.known() {
            let moved = take(&mut self.balancers, current, Arc::ptr_eq);
            open.extend(moved.iter().map(pod_names::of_balancer));
        }
        if let Some(current) = azure.public_ips.get(&policy.group).and_then(|f| f.known()) {
            let moved = take(&mut self.ips, current, Arc::ptr_eq);
            open.extend(moved.iter().filter_map(pod_names::of_ip));
        }
        let ours = open.into_iter().filter(|name| pod_names::is_uid(name));
        self.open.extend(ours.map(Arc::from));
    }

    /// Whether a name has to be looked at although no Service has it.
    pub fn is_orphan(&self, draft: &Draft<'_>, name: &str) -> bool {
        use model::gateway::Direction;
        let registered = self.registered.get(name).is_some_and(|service| {
            !pod_names::is_foreign(service) && service.direction == Direction::Inbound
        });
        let abandoned = draft.world.abandoned.contains(name)
            && (draft.container(name).is_some() || draft.container_ip(name).is_some());
        !self.uids.contains_key(name) && (registered || abandoned)
    }

    /// Notes which of the Services that were looked at need not be looked at again.
    pub(super) fn close(&mut self, draft: &Draft<'_>, registrations: &Registrations) -> Closing {
        let mut closing = Closing::default();
        let registering = Wait::Writing(pod_names::services_table(draft.policy));
        for name in std::mem::take(&mut self.open) {
            let Some(case) = self.uids.get(&name).and_then(|uid| draft.cases.get(uid)) else {
                if self.is_orphan(draft, &name) {
                    self.open.insert(name);
                }
                continue;
            };
            let uid = &case.service.uid;
            let over = match case.stance {
                Stance::Container(_) => {
                    case.waits.is_empty()
                        && is_claimed(draft.policy, case.service)
                        && !draft.claims.unconfirmed.contains(uid)
                }
                Stance::Frozen(_) => true,
                Stance::Wanted(_) | Stance::Leaving => false,
            };
            if over {
                closing.done.push(uid.clone());
                continue;
            }
            let abandoned = draft.world.abandoned.contains(&name);
            let leaves = matches!(case.stance, Stance::Leaving);
            let standing = Standing { leaves, coming: registrations.coming.contains(uid) };
            // Who has its turn at a table's write is decided among all of them, each time. That a
            // write which changed nothing has ended is seen nowhere else.
            if registrations.ready.contains(uid)
                || draft.hold(uid).is_some()
                || abandoned
                || case.waits.contains(&registering)
                || (leaves
                    && Waiting::is_stirred(draft.world, draft.policy, &self.tracker, &name, uid))
            {
                self.open.insert(name);
            } else {
                closing.waiting.push((name, uid.clone(), standing));
            }
        }
        closing
    }

    /// Whether a Service asks for something impossible.
    pub fn is_refused(&self, draft: &Draft<'_>, uid: &ServiceUid) -> bool {
        match draft.cases.get(uid) {
            Some(case) => matches!(case.stance, Stance::Frozen(_)),
            None => self.settled.get(uid).is_some_and(|service| service.state.is_frozen()),
        }
    }

    /// Adds what was not looked at to plan and report, and remembers what need not be again.
    ///
    /// A Service that is written is not done: the write may wait for another or fail, and nothing
    /// would be seen of it that has the Service looked at again.
    pub(super) fn complete(&mut self, plan: &mut Plan, report: &mut Report, closing: Closing) {
        let written: BTreeSet<&ServiceUid> = plan.writes.iter().filter_map(subject).collect();
        let (unwritten, done): (Vec<_>, Vec<_>) =
            closing.done.into_iter().partition(|uid| written.contains(uid));
        let standing = Standing { leaves: false, coming: false };
        let mut closing = Closing { done, ..closing };
        let names = unwritten.into_iter().map(|uid| (pod_names::of_service(&uid), uid, standing));
        closing.waiting.extend(names);
        let waiting = closing.waiting.iter().map(|(_, uid, _)| uid);
        for uid in closing.done.iter().chain(waiting) {
            if let Some(service) = report.services.get(uid) {
                self.settled.insert(uid.clone(), Arc::clone(service));
            }
        }
        let mut services = self.settled.clone();
        services.append(&mut report.services);
        report.services = services;
        self.waiting.put(plan, closing.waiting);
        self.waiting.complete(plan);
    }
}

fn subject(write: &KubernetesWrite) -> Option<&ServiceUid> {
    match &write.object {
        Object::Service { uid, .. } => Some(uid),
        Object::Pod { .. } => None,
    }
}

/// Whether two lists hold the same values in memory.
fn is_same<K: PartialEq, T>(a: &BTreeMap<K, Arc<T>>, b: &BTreeMap<K, Arc<T>>) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|((k, a), (l, b))| Arc::ptr_eq(a, b) && k == l)
}
