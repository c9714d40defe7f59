//! Services that wait: they were looked at, are not done, and nothing that decides on them has
//! changed since. What was drafted for them holds.
//!
//! With ten thousand of them Azure's limits let one go on now and then; the others are not looked
//! at for that.

use crate::own::pod_names;
use crate::pods::table::DiffTracker;
use model::plan::{Action, Change, ConditionEdit, Edit, FinalizerPurpose, KubernetesWrite, Object};
use model::{Plan, Policy, ResourceId, ServiceUid, World};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// So many new changes are put into their places one by one; of more all are sorted.
const FEW: usize = 16;

/// What was drafted for Services that wait.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    services: BTreeMap<Arc<str>, Held>,
    /// By target.
    changes: Vec<Arc<Change>>,
    writes: BTreeMap<Place, KubernetesWrite>,
    /// How many of them will soon be ready to be registered or unregistered.
    coming: usize,
    /// How many of them leave.
    leaving: usize,
    /// Writes that were under way when they were looked at, and whether each had failed before.
    flights: BTreeMap<ResourceId, bool>,
}

/// How a Service waits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Standing {
    /// It loses what it has.
    pub leaves: bool,
    /// It will soon be ready to be registered or unregistered.
    pub coming: bool,
}

/// What belongs to one Service.
#[derive(Debug)]
struct Held {
    standing: Standing,
    targets: Vec<ResourceId>,
    places: Vec<Place>,
}

/// Where a write stands among the others of a plan.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    /// Finalizers that come, by UID.
    Claim(ServiceUid),
    /// Addresses, and finalizers that go, by name.
    Status(Arc<str>),
    /// Finalizers of Pods.
    Pod,
    /// Readiness gates.
    Gate,
    /// Conditions alone, by UID.
    Condition(ServiceUid),
}

impl Place {
    fn of(write: &KubernetesWrite) -> Self {
        let Object::Service { uid, .. } = &write.object else {
            return if matches!(write.edit, Edit::Gate { .. }) { Self::Gate } else { Self::Pod };
        };
        match &write.edit {
            Edit::Finalizers { purpose: FinalizerPurpose::Claim, .. } => Self::Claim(uid.clone()),
            Edit::Status { ingress: None, condition: ConditionEdit::Set(_), .. } => {
                Self::Condition(uid.clone())
            }
            Edit::Finalizers { .. } | Edit::Status { .. } | Edit::Gate { .. } => {
                Self::Status(pod_names::of_service(uid))
            }
        }
    }
}

impl Waiting {
    /// Services that will soon be ready to be registered or unregistered.
    pub fn coming(&self) -> usize {
        self.coming
    }

    /// Names of whom something may have changed that is no fact about the Service itself or about
    /// what it has: a write is under way now, or is no longer.
    pub fn stirred(
        &mut self,
        world: &World,
        policy: &Policy,
        tracker: &DiffTracker,
    ) -> BTreeSet<Arc<str>> {
        let flights: BTreeMap<ResourceId, bool> =
            world.in_flight.iter().map(|(id, call)| (id.clone(), call.attempt > 1)).collect();
        let differs = |(id, late): (&ResourceId, &bool), others: &BTreeMap<ResourceId, bool>| {
            (others.get(id) != Some(late)).then(|| id.clone())
        };
        let ended = self.flights.iter().filter_map(|flight| differs(flight, &flights));
        let begun = flights.iter().filter_map(|flight| differs(flight, &self.flights));
        let ids: BTreeSet<ResourceId> = ended.chain(begun).collect();
        self.flights = flights;
        let named = |id: &ResourceId| [Some(pod_names::of_balancer(id)), pod_names::of_ip(id)];
        let own = ids.iter().flat_map(named).flatten();
        let mut stirred: BTreeSet<Arc<str>> = own
            .filter_map(|name| Some(Arc::clone(self.services.get_key_value(&*name)?.0)))
            .collect();
        if self.leaving > 0 {
            let is_leaving =
                |name: &str| self.services.get(name).is_some_and(|h| h.standing.leaves);
            let tables = [pod_names::services_table(policy), pod_names::locations_table(policy)];
            let calls = tables.iter().filter_map(|table| world.in_flight.get(table));
            let causes = calls.flat_map(|call| &call.causes).chain(&world.inherited);
            let causes = causes.map(pod_names::of_service);
            let leaving = causes.chain(tracker.receding()).filter(|name| is_leaving(name));
            stirred.extend(leaving);
        }
        stirred
    }

    /// Whether one that leaves has to be looked at each time, because what it waits for is seen
    /// nowhere else.
    pub fn is_stirred(
        world: &World,
        policy: &Policy,
        tracker: &DiffTracker,
        name: &str,
        uid: &ServiceUid,
    ) -> bool {
        let tables = [pod_names::services_table(policy), pod_names::locations_table(policy)];
        let mut calls = tables.iter().filter_map(|table| world.in_flight.get(table));
        world.inherited.contains(uid)
            || tracker.is_receding(name)
            || calls.any(|call| call.causes.contains(uid))
    }

    /// A Service is looked at again: what was drafted for it holds no longer.
    pub fn take(&mut self, name: &str) {
        let Some(held) = self.services.remove(name) else { return };
        let Held { standing: Standing { leaves, coming }, targets, places } = held;
        self.leaving -= usize::from(leaves);
        self.coming -= usize::from(coming);
        for target in targets {
            if let Ok(at) = self.changes.binary_search_by(|change| change.target.cmp(&target)) {
                self.changes.remove(at);
            }
        }
        for place in places {
            self.writes.remove(&place);
        }
    }

    /// These wait: what a plan has of them is remembered, and taken out of it.
    pub fn put(&mut self, plan: &mut Plan, services: Vec<(Arc<str>, ServiceUid, Standing)>) {
        if services.is_empty() {
            return;
        }
        let mut names = BTreeMap::new();
        for (name, uid, standing) in services {
            self.leaving += usize::from(standing.leaves);
            self.coming += usize::from(standing.coming);
            let held = Held { standing, targets: Vec::new(), places: Vec::new() };
            self.services.insert(Arc::clone(&name), held);
            names.insert(uid, name);
        }
        let mut new = Vec::new();
        plan.changes.retain(|change| {
            let Some(held) = self.held_mut(&names, owner(change)) else { return true };
            held.targets.push(change.target.clone());
            new.push(Arc::clone(change));
            false
        });
        join(&mut self.changes, new);
        plan.writes.retain(|write| {
            let Object::Service { uid, .. } = &write.object else { return true };
            let Some(held) = self.held_mut(&names, Some(uid)) else { return true };
            let place = Place::of(write);
            held.places.push(place.clone());
            self.writes.insert(place, write.clone());
            false
        });
    }

    fn held_mut(
        &mut self,
        names: &BTreeMap<ServiceUid, Arc<str>>,
        uid: Option<&ServiceUid>,
    ) -> Option<&mut Held> {
        self.services.get_mut(names.get(uid?)?)
    }

    /// Adds what is remembered to a plan.
    pub fn complete(&self, plan: &mut Plan) {
        let new = std::mem::replace(&mut plan.changes, self.changes.clone());
        join(&mut plan.changes, new);
        if self.writes.is_empty() {
            return;
        }
        let known = self.writes.iter().map(|(place, write)| (place.clone(), write.clone()));
        let new = std::mem::take(&mut plan.writes).into_iter();
        let mut all: Vec<(Place, KubernetesWrite)> =
            known.chain(new.map(|write| (Place::of(&write), write))).collect();
        // Those of Pods stay in their order.
        all.sort_by(|(a, _), (b, _)| a.cmp(b));
        plan.writes = all.into_iter().map(|(_, write)| write).collect();
    }
}

/// The Service whose own resource a change is about.
fn owner(change: &Change) -> Option<&ServiceUid> {
    match change.action {
        Action::Put { .. } | Action::Delete { .. } => change.causes.first(),
        _ => None,
    }
}

/// Puts changes among others; both are in order.
fn join(all: &mut Vec<Arc<Change>>, new: Vec<Arc<Change>>) {
    if new.len() > FEW {
        all.extend(new);
        all.sort_by(|a, b| a.target.cmp(&b.target));
        return;
    }
    for change in new {
        let at = all.partition_point(|known| known.target < change.target);
        all.insert(at, change);
    }
}
