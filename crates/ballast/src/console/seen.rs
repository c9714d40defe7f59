//! What a controller knew at one moment, as far as pages look at it.

use crate::backends::BackendHealth;
use crate::listing::unlisted;
use ::console::view::{Budget, Calls, DriftLine, Room, Snapshot};
use control::budget::{Level, Limits, Waiting};
use control::{Controller, DriftOutcome, WriteRecord};
use model::{Policy, World};
use std::sync::Arc;

/// What a controller knew at one moment.
pub(super) struct Seen {
    /// Plans it had made.
    pub plans: u64,
    /// Everything known.
    pub world: World,
    /// The policy.
    pub policy: Policy,
    /// Each Service.
    pub snapshot: Snapshot,
    /// What calls came to.
    pub calls: Calls,
    /// What Azure's limits still allow.
    pub budget: Vec<Budget>,
    /// Azure writes, the first first.
    pub writes: Vec<Arc<WriteRecord>>,
    /// Kinds that are not listed yet.
    pub unlisted: Vec<String>,
}

impl Seen {
    /// What it knows now.
    pub fn of(controller: &Controller, backends: Option<&BackendHealth>, now_ms: u64) -> Self {
        Self {
            plans: controller.counts().plans,
            world: controller.world().clone(),
            policy: controller.policy().clone(),
            snapshot: snapshot(controller, backends, now_ms),
            calls: calls(controller),
            budget: budget(controller, now_ms),
            writes: controller.history().cloned().collect(),
            unlisted: unlisted(controller),
        }
    }
}

/// Each Service.
fn snapshot(controller: &Controller, backends: Option<&BackendHealth>, now_ms: u64) -> Snapshot {
    let (world, report) = (controller.world(), controller.report_with_budget());
    let mut snapshot = Snapshot::of(world, &report, |uid| controller.since_ms(uid));
    let services = &world.kubernetes.services;
    let lines = controller.drift().map(|record| DriftLine {
        resource: record.drift.resource().to_owned(),
        what: record.drift.deed(),
        services: {
            let known = record.drift.services.iter().filter_map(|uid| services.get(uid));
            known.map(|service| service.name.clone()).collect()
        },
        outcome: match record.outcome {
            DriftOutcome::Repairing => "being repaired",
            DriftOutcome::Reported => "left so (driftPolicy is report)",
            DriftOutcome::Paused => "left so (writes are paused)",
            DriftOutcome::Over => "drift repaired",
        },
        noticed_ms: record.noticed_ms,
    });
    snapshot.drift = lines.collect();
    if let Some(backends) = backends {
        let services = snapshot.services.iter_mut();
        services.for_each(|line| line.backends = backends.of(&line.uid, now_ms));
        snapshot.backend_trouble = backends.trouble();
    }
    snapshot
}

/// What calls came to.
fn calls(controller: &Controller) -> Calls {
    let counts = controller.counts();
    let in_flight = controller.world().in_flight.values();
    Calls {
        writes: counts.writes,
        reads: counts.reads,
        failures: counts.failures,
        under_way: in_flight.filter(|f| !f.causes.is_empty()).count() as u64,
        kubernetes: counts.kubernetes,
    }
}

/// What Azure's limits still allow, and what waits for them. A limit of which no figure is known is
/// among them only while calls wait for it.
fn budget(controller: &Controller, now_ms: u64) -> Vec<Budget> {
    let waiting = controller.waiting_for_budget();
    let levels: Vec<Level> = controller.budget().levels(now_ms).collect();
    let first = levels.first().map(|level| Arc::clone(&level.limit.subscription));
    let several = levels.iter().any(|level| Some(&level.limit.subscription) != first.as_ref());
    let row = |level: &Level| {
        let waits = waiting.get(&level.limit).filter(|waiting| waiting.writes > 0);
        let held = match waits {
            _ if level.closed_until_ms > now_ms => {
                Some(("Azure asked for none".to_owned(), level.closed_until_ms))
            }
            Some(Waiting { writes: 1, until_ms }) => Some(("1 write waits".to_owned(), *until_ms)),
            Some(Waiting { writes, until_ms }) => {
                Some((format!("{writes} writes wait"), *until_ms))
            }
            None => None,
        };
        let kind = level.limit.kind.name();
        let name = if several {
            format!("{kind} of subscription {}", level.limit.subscription)
        } else {
            kind.to_owned()
        };
        let known = level.start == Limits::Published;
        let room = known.then_some(Room { left: level.left, full: level.full });
        (room.is_some() || held.is_some()).then_some(Budget { name, room, held })
    };
    levels.iter().filter_map(row).collect()
}
