//! What waits on what.

use super::{Breach, Lint};
use model::ResourceId;
use model::kubernetes::{Custody, GATEWAY_FINALIZER, SERVICE_FINALIZER, Wish};
use model::plan::{Action, Change, FinalizerPurpose, Resource};
use model::policy::Layout;
use model::report::Wait;
use std::collections::{BTreeMap, BTreeSet};

impl Lint<'_> {
    /// Each target once, no circle, and nothing waits on what will never come.
    pub(super) fn order(&mut self) {
        let plan = self.plan;
        let mut targets: BTreeSet<&ResourceId> = BTreeSet::new();
        for change in &plan.changes {
            if !targets.insert(&change.target) {
                self.say(Breach::TargetTwice, &change.target, "two changes");
            }
        }
        let mut edges: BTreeMap<&ResourceId, Vec<&ResourceId>> = BTreeMap::new();
        for change in &plan.changes {
            for wait in &change.waits {
                let (Wait::Resource { id, .. } | Wait::Writing(id)) = wait else { continue };
                // A write that is under way ends by itself, whatever waits on what.
                if self.world.in_flight.contains_key(id) {
                    continue;
                }
                if targets.contains(id) {
                    edges.entry(&change.target).or_default().push(id);
                } else if !self.exists(id) {
                    self.say(Breach::WaitsOnNothing, &change.target, id.as_str());
                }
            }
            self.finalizers(change);
        }
        // Whoever waits on nothing goes, then who waits on those; what is left waits in circles.
        let mut left: BTreeSet<&ResourceId> = edges.keys().copied().collect();
        loop {
            let ready: Vec<&ResourceId> = left
                .iter()
                .copied()
                .filter(|id| edges[id].iter().all(|other| !left.contains(other)))
                .collect();
            if ready.is_empty() {
                break;
            }
            ready.iter().for_each(|id| {
                left.remove(id);
            });
        }
        for id in &left {
            let others = edges[id].iter().filter(|other| left.contains(*other));
            let others: Vec<&str> = others.map(|other| other.name()).collect();
            let detail = format!("waits on itself, by way of {}", others.join(", "));
            self.say(Breach::Circle, id, detail);
        }
    }

    /// Whether a resource, or the table it stands for, is known to be in Azure.
    fn exists(&self, id: &ResourceId) -> bool {
        self.world.azure.find(id).is_some()
            || self.links().any(|link| link.connections.iter().any(|c| c.id == *id))
            || id.parent().is_some_and(|p| p == self.policy.gateway_id())
            || id.as_str().starts_with(self.policy.gateway_id().as_str())
    }

    /// The finalizer is there before the first Azure write on account of a Service. Of one that
    /// has something in Azure anybody may have taken it off: it is written back meanwhile.
    fn finalizers(&mut self, change: &Change) {
        let put = matches!(
            change.action,
            Action::Put { .. } | Action::UpdateServices(_) | Action::UpdateLocations(_)
        );
        if !put || change.waits.contains(&Wait::Finalizer) {
            return;
        }
        let world = self.world;
        let services = || change.causes.iter().filter_map(|uid| world.kubernetes.services.get(uid));
        let doubtful = services().next().is_some()
            && services().all(|service| service.custody == Custody::Inherited);
        let makes =
            matches!(&change.action, Action::Put { before: None, after: Resource::PublicIp(_) });
        if doubtful && makes {
            let detail = "another process may have let go those that it is for".to_owned();
            self.say(Breach::BeforeFinalizer, &change.target, detail);
        }
        let required: &[&str] = match self.policy.layout {
            Layout::PerService => &[SERVICE_FINALIZER, GATEWAY_FINALIZER],
            Layout::Single | Layout::Several(_) | Layout::PerNodeSet { .. } => &[SERVICE_FINALIZER],
        };
        for uid in &change.causes {
            let Some(service) = world.kubernetes.services.get(uid) else { continue };
            let wants = service.wish == Wish::LoadBalancer;
            let bare = !required.iter().all(|f| service.has_finalizer(f));
            if wants && bare && self.trace(service).is_none() {
                let detail = format!("{} has no finalizer", service.name);
                self.say(Breach::BeforeFinalizer, &change.target, detail);
            }
        }
    }

    /// Whether anything of a Service is in the plan beside this purpose.
    pub(super) fn is_planned(&self, uid: &model::ServiceUid, purpose: FinalizerPurpose) -> bool {
        purpose == FinalizerPurpose::Release
            && (self.plan.changes.iter().any(|change| change.causes.contains(uid))
                || self.world.in_flight.values().any(|call| call.causes.contains(uid)))
    }
}
