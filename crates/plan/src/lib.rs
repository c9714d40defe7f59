//! `(&World, &Policy) -> (Plan, Report)`: pure, total, deterministic.
//!
//! # Guarantees
//! - Planning never fails and never panics: what is wrong with a Service is a Finding of its own.
//! - The same World and Policy give the same Plan, byte for byte.
//! - Planning again after everything was carried out gives an empty Plan.
//! - What we do not own is in every body as it was read.
//!
//! # Rooms
//! The way of a Service, by folder: `ask` (what it asks for), `own` (what of Azure is ours),
//! `standing` (what is there), `claim` (what only one can have), `shape` (how each resource is to
//! be), `order` (what has to wait), `tell` (what Kubernetes is told). `pods` is the container load
//! balancer. `migration` plans both kinds side by side while Services move from one to the other.
//!
//! # Assumptions
//! Ids in the World are folded once, when they are read. Two Services have different base names.

pub mod ask;
pub mod own;

mod claim;
mod draft;
mod migration;
mod nodes;
mod order;
mod pods;
mod shape;
mod standing;
mod tag_keys;
mod tell;
mod verdict;

pub use claim::placement::pooled;
pub use claim::private_link::{bereft, unread_links};
pub use claim::unread::unfound;
pub use migration::MOVING as SERVICES_MOVE;
pub use own::other_layout::RULE as OTHER_LAYOUT_STANDS;
pub use shape::unserved::RULE as NO_BACKENDS;
pub use tell::condition::{is_held_up, note_obstacles, unchecked};

use ask::readings::Readings;
use migration::Course;
use model::policy::Layout;
use model::report::Finding;
use model::{Plan, Policy, Report, ServiceUid, World};
use own::other_layout::Leftover;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Plans: what is to be written now, and who waits on what.
#[must_use]
pub fn plan(world: &World, policy: &Policy) -> (Plan, Report) {
    Planner::default().plan(world, policy)
}

/// What stands of the other kind of load balancers, and whether Services move away from it; where
/// they do not, nothing is written until it is gone.
#[must_use]
pub fn standing(world: &World, policy: &Policy) -> (Vec<Leftover>, bool) {
    match migration::course(world, policy) {
        Course::Alone => (Vec::new(), false),
        Course::Blocked(left) => (left, false),
        Course::Moving(sides) => (sides.left, true),
    }
}

/// Services, and why they keep what they have.
pub(crate) type Refused = BTreeMap<ServiceUid, Vec<Finding>>;

/// What the other kind of load balancers has a say in, where one kind is planned.
#[derive(Clone, Copy)]
pub(crate) struct Beside<'a> {
    /// What stands of it in the way.
    pub left: &'a [Leftover],
    /// Services that have both kinds and that it refuses: they keep what they have, of either.
    pub refused: &'a Refused,
}

/// Plans again and again, and remembers between two plans what has not changed.
///
/// # Guarantees
/// The plan is the one that [`plan`] makes from nothing.
///
/// # Assumptions
/// One Planner looks at one World under one Policy: facts that are the same value in memory are
/// the same.
#[derive(Debug, Default)]
pub struct Planner {
    containers: pods::Memory,
    readings: Readings,
    index: own::parts::Index,
    memory: nodes::Memory,
    last: Option<Planned>,
    migration: Option<Box<migration::Memory>>,
    alone: Option<Alone>,
}

/// What else than Services, load balancers and public IPs it followed from that nothing of the
/// other kind of load balancers stands, and that no Service says that it moves.
#[derive(Debug, PartialEq, Eq)]
struct Alone {
    cluster_uid: Option<Arc<str>>,
    abandoned: BTreeSet<Arc<str>>,
}

impl Alone {
    fn of(world: &World) -> Self {
        let (cluster_uid, abandoned) = (&world.kubernetes.cluster_uid, &world.abandoned);
        Self { cluster_uid: cluster_uid.clone(), abandoned: abandoned.clone() }
    }
}

/// A World with nodes as backends, and what was planned of it.
#[derive(Debug)]
struct Planned {
    world: World,
    plan: Plan,
    report: Report,
}

impl Planner {
    /// Plans: what is to be written now, and who waits on what.
    #[must_use]
    pub fn plan(&mut self, world: &World, policy: &Policy) -> (Plan, Report) {
        let (plan, mut report) = self.planned(world, policy);
        tell::report::await_statuses(world, &mut report);
        (plan, report)
    }

    fn planned(&mut self, world: &World, policy: &Policy) -> (Plan, Report) {
        if let Some(last) = self.last.as_ref().filter(|last| last.world == *world) {
            return (last.plan.clone(), last.report.clone());
        }
        // Where ten thousand Services are on container load balancers, to find nothing of the
        // other kind is most of a plan.
        let single = policy.layout == Layout::PerService && policy.migration.is_none();
        let alone = self.alone.take().filter(|alone| {
            single && *alone == Alone::of(world) && self.containers.has_all(world, policy)
        });
        let left = match alone.is_none().then(|| migration::course(world, policy)) {
            None | Some(Course::Alone) => Vec::new(),
            Some(Course::Blocked(left)) => left,
            Some(Course::Moving(sides)) => {
                let mut memory = self.migration.take().unwrap_or_default();
                let planned = migration::plan(self, &mut memory, world, &sides);
                self.migration = Some(memory);
                // What was planned last was one side's.
                self.last = None;
                return planned;
            }
        };
        self.migration = None;
        let updates = self.containers.updates;
        let none = Refused::new();
        let beside = Beside { left: &left, refused: &none };
        let (mut plan, report) = self.side(world, policy, beside);
        if alone.is_some() {
            self.alone = alone;
        } else if left.is_empty() && migration::end(world, policy, &mut plan) {
            let taken_in = single && self.containers.updates > updates;
            self.alone = taken_in.then(|| Alone::of(world));
        }
        if policy.layout != Layout::PerService {
            // Events that change nothing, such as a list that is as it was, are many.
            let (plan, report) = (plan.clone(), report.clone());
            self.last = Some(Planned { world: world.clone(), plan, report });
        }
        (plan, report)
    }

    /// Plans the load balancers of one kind, or says that what is left of the other kind stands in
    /// the way.
    fn side(&mut self, world: &World, policy: &Policy, beside: Beside<'_>) -> (Plan, Report) {
        let Self { containers, readings, index, memory, .. } = self;
        readings.sweep(&world.kubernetes.services);
        match policy.layout {
            Layout::PerService => pods::plan(world, policy, (containers, readings), beside),
            Layout::Single | Layout::Several(_) | Layout::PerNodeSet { .. } => {
                index.renew(world);
                let mut draft = nodes::settled(world, policy, (index, readings, memory), beside);
                tell::gate::open_all(&mut draft);
                tell::report::finish(draft)
            }
        }
    }

    /// How many times a Service was read. A Service that has not changed is not read again.
    #[must_use]
    pub fn services_read(&self) -> u64 {
        self.readings.count
    }
}
