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
//! `claim` (what only one can have), `shape` (how each resource is to be), `order` (what has to
//! wait), `tell` (what Kubernetes is told). `pods` is the container load balancer.
//!
//! # Assumptions
//! Ids in the World are folded once, when they are read. Two Services have different base names.

pub mod admission;
pub mod ask;
pub mod drift;
pub mod own;

mod check;
mod claim;
mod draft;
mod nodes;
mod order;
mod pods;
mod shape;
mod tell;

pub use check::{Breach, Violation, check};
pub use own::other_layout::RULE as OTHER_LAYOUT_STANDS;
pub use shape::unserved::RULE as NO_BACKENDS;
pub use tell::condition::{is_held_up, note_obstacles, unchecked};

use ask::readings::Readings;
use model::policy::Layout;
use model::{Plan, Policy, Report, World};

/// Plans: what is to be written now, and who waits on what.
#[must_use]
pub fn plan(world: &World, policy: &Policy) -> (Plan, Report) {
    Planner::default().plan(world, policy)
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
    last: Option<Planned>,
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
        let Self { containers, readings, index, last } = self;
        if let Some(last) = last.as_ref().filter(|last| last.world == *world) {
            return (last.plan.clone(), last.report.clone());
        }
        readings.sweep(&world.kubernetes.services);
        match policy.layout {
            Layout::PerService => pods::plan(world, policy, containers, readings),
            Layout::Single | Layout::Several(_) | Layout::PerNodeSet { .. } => {
                index.renew(world);
                let mut draft = nodes::settled(world, policy, index, readings);
                tell::gate::open_all(&mut draft);
                let (plan, report) = draft.finish();
                // Events that change nothing, such as a list that is as it was, are many.
                let last = last.insert(Planned { world: world.clone(), plan, report });
                (last.plan.clone(), last.report.clone())
            }
        }
    }

    /// How many times a Service was read. A Service that has not changed is not read again.
    #[must_use]
    pub fn services_read(&self) -> u64 {
        self.readings.count
    }
}
