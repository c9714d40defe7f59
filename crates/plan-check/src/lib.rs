//! Checks a plan without the code that made it, and returns its breaches.
//!
//! It shares no decision with planning: references, order and the limits of Azure are worked out
//! here a second time. Of `plan` it uses only ownership (`own`) and names: those of annotations and
//! of the shared probe.

mod body;
mod kubernetes;
mod limit;
mod order;
mod ownership;
mod pool;
mod reference;
#[cfg(test)]
mod tests;

use model::azure::{LoadBalancer, PrivateLinkService, PublicIp};
use model::kubernetes::Service;
use model::plan::{Action, Change, Resource};
use model::world::Fact;
use model::{Plan, Policy, ResourceId, World};
use plan::own::{Base, Own};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Something in a plan that must not be.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Violation {
    /// What is broken.
    pub breach: Breach,
    /// The resource or object that is written.
    pub target: Arc<str>,
    /// Which part of it, and how.
    pub detail: Arc<str>,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} at {}: {}", self.breach, self.target, self.detail)
    }
}

/// What a plan can break.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Breach {
    /// Two changes have one target, or two writes one object and field.
    TargetTwice,
    /// The body is another resource's than the target.
    TargetMismatch,
    /// The plan was made on something else than the World says.
    Stale,
    /// A resource that was read is written without the ETag it was read with.
    Unguarded,
    /// Something without our mark is deleted.
    ForeignDeleted,
    /// Something without our mark is changed.
    ForeignChanged,
    /// A public IP that its user brought is deleted.
    BroughtDeleted,
    /// A field that planning does not look into is not carried along.
    FieldLost,
    /// A written resource refers to something that is not there and does not come before.
    MissingReference,
    /// Something goes that is still referred to.
    StillReferenced,
    /// Two parts of a resource have one name.
    NameTwice,
    /// Two rules take the same protocol and port of a frontend, or of a pool without floating IP.
    PortTwice,
    /// Two security rules have one priority.
    PriorityTwice,
    /// More than Azure takes, or a value outside of what it takes.
    Limit,
    /// Public and internal frontends on one load balancer.
    MixedFrontends,
    /// A pool loses its last backend while there are nodes for it.
    PoolEmptied,
    /// Azure is written on account of a Service that has no finalizer yet.
    BeforeFinalizer,
    /// A finalizer goes while something of its Service is in Azure, or is being written.
    FinalizerEarly,
    /// A finalizer that is not ours comes or goes.
    FinalizerForeign,
    /// A status shows an address that does not stand.
    StatusUntrue,
    /// An address is opened in the security group that the ledger does not have.
    Unrecorded,
    /// An address is open in the security group while its frontend goes.
    OpenWithoutFrontend,
    /// Changes wait on each other in a circle.
    Circle,
    /// A change waits on something that is neither there nor planned nor under way.
    WaitsOnNothing,
}

/// Reads a plan and says what in it must not be; nothing: it is clean.
#[must_use]
pub fn check(world: &World, policy: &Policy, plan: &Plan) -> Vec<Violation> {
    let services = world.kubernetes.services.values();
    let services = services.map(|s| (Base::of_service(&s.uid), &**s)).collect();
    let own = Own::new(world, policy);
    let mut lint = Lint { world, policy, plan, own, services, found: Vec::new() };
    for change in &plan.changes {
        lint.target(change);
        lint.ownership(change);
        lint.references(change);
        lint.goodbyes(change);
        if let Action::Put { before, after } = &change.action {
            lint.body(change, after);
            lint.limits(change, before.as_ref(), after);
        }
        lint.pools(change);
    }
    lint.order();
    lint.writes();
    lint.found.sort();
    lint.found.dedup();
    lint.found
}

/// A plan while it is read.
struct Lint<'a> {
    world: &'a World,
    policy: &'a Policy,
    plan: &'a Plan,
    own: Own<'a>,
    /// Services by folded base name.
    services: BTreeMap<Base, &'a Service>,
    found: Vec<Violation>,
}

/// Whether something is in Azure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Presence {
    There,
    Absent,
    /// It was not read.
    Unread,
}

impl<'a> Lint<'a> {
    fn say(&mut self, breach: Breach, target: impl fmt::Display, detail: impl Into<Arc<str>>) {
        let target = Arc::from(target.to_string());
        self.found.push(Violation { breach, target, detail: detail.into() });
    }

    /// Whether a part's name is that of a Service of ours, known or gone.
    fn is_ours(&self, part: &str) -> bool {
        Base::of(part).is_some_and(|base| {
            self.services.contains_key(&base) || self.world.abandoned.contains(base.as_str())
        })
    }

    fn balancer(&self, id: &ResourceId) -> Option<&'a Arc<LoadBalancer>> {
        self.world.azure.balancers.known()?.get(id)
    }

    fn public_ip(&self, id: &ResourceId) -> Option<&'a Arc<PublicIp>> {
        self.world.azure.public_ips.get(&id.group()?)?.known()?.get(id)
    }

    fn links(&self) -> impl Iterator<Item = &'a Arc<PrivateLinkService>> + use<'a> {
        self.world.azure.private_links.values().flat_map(Fact::each)
    }

    fn members(&self) -> impl Iterator<Item = &'a Arc<model::azure::PoolMember>> + use<'a> {
        let azure = &self.world.azure;
        let facts = azure.scale_set_vms.values();
        facts.chain([&azure.scale_sets, &azure.network_interfaces]).flat_map(Fact::each)
    }

    /// One target a change, and made on what the World says.
    fn target(&mut self, change: &Change) {
        let (before, after) = match &change.action {
            Action::Put { before, after } => (before.as_ref(), Some(after)),
            Action::Delete { before } => (Some(before), None),
            Action::DeleteChild
            | Action::MigratePools { .. }
            | Action::UpdateServices(_)
            | Action::UpdateLocations(_) => return,
        };
        for resource in before.into_iter().chain(after) {
            if *resource.id() != change.target {
                self.say(Breach::TargetMismatch, &change.target, resource.id().as_str());
            }
        }
        let Some(like) = before.or(after) else { return };
        let there = self.world.azure.find(&change.target);
        if there.as_ref() != before {
            self.say(Breach::Stale, &change.target, "the World has another one");
        }
        // Azure checks the ETags of these.
        let etag = match like {
            Resource::LoadBalancer(r) => &r.etag,
            Resource::PublicIp(r) => &r.etag,
            Resource::SecurityGroup(r) => &r.etag,
            _ => return,
        };
        if before.is_some() && after.is_some() && change.guard != *etag {
            self.say(Breach::Unguarded, &change.target, "the ETag is not the one it was read with");
        }
    }
}
