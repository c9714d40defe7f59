//! L4: the programming latency of a Service that comes alone, while nothing goes wrong
//! (docs/metrics.md): it is measured once, from when its process has seen it until Azure has all of
//! it.

use super::form::told;
use super::tenants::is_refused;
use crate::scene::Layout;
use crate::stage::Stage;
use crate::tally::count;
use control::latency::LATENCY_BOUNDS_MS;
use control::{ChangeKind, Latencies};
use kube_emulator::ObjectRef;
use serde_json::Value;

/// How things were before a Service came.
#[derive(Clone, Debug)]
pub(crate) struct Newcomer {
    /// Which life of which process leads, and its term.
    leader: (usize, u64, u64),
    measured: Measured,
    /// When it came.
    at_ms: u64,
    revision: u64,
}

/// What was measured of Services.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Measured {
    counts: Vec<u64>,
    sum_ms: u64,
}

impl Measured {
    fn of(latencies: &Latencies) -> Self {
        let mut all = latencies.measured();
        let services = all.find(|(kind, _)| *kind == ChangeKind::Service);
        services.map_or_else(Self::default, |(_, histogram)| Self {
            counts: histogram.counts().to_vec(),
            sum_ms: histogram.sum(),
        })
    }

    /// How long the one change took that was measured since; nothing where it was not one, or where
    /// it is counted among others.
    fn one_since(&self, before: &Self) -> Option<u64> {
        let took_ms = self.sum_ms.checked_sub(before.sum_ms)?;
        let slot = LATENCY_BOUNDS_MS.partition_point(|bound| *bound < took_ms);
        let mut counts = before.counts.clone();
        *counts.get_mut(slot)? += 1;
        (counts == self.counts).then_some(took_ms)
    }
}

impl Stage {
    /// A Service is about to come. Nothing where others are not all at rest.
    pub(crate) fn before_newcomer(&self) -> Option<Newcomer> {
        let mut processes = self.processes.iter().enumerate();
        let (number, leader) = processes.find(|(_, process)| process.may_write(self.now_ms))?;
        let latencies = leader.controller.latencies();
        let rests = self.is_quiet() && latencies.pending(ChangeKind::Service) == 0;
        rests.then(|| Newcomer {
            leader: (number, leader.epoch, self.lease.term),
            measured: Measured::of(latencies),
            at_ms: self.now_ms,
            revision: self.kubernetes.revision(),
        })
    }

    /// L4: what was measured of a Service that has come since, once all rests again. One that was
    /// refused on the way is not measured.
    pub(crate) fn check_newcomer(
        &mut self,
        before: Option<&Newcomer>,
        (space, name): (&str, &str),
    ) {
        // A canary spoils messages, so that the controller heard another time than Azure's; and
        // before all rests a write of Azure's may still be under way.
        if self.breach.is_some() || self.mutant.is_some() || !self.is_quiet() {
            return;
        }
        let Some(before) = before else { return };
        let (number, epoch, term) = before.leader;
        let process = self.processes.get(number).filter(|p| p.epoch == epoch);
        let Some(process) = process.filter(|_| self.lease.term == term) else { return };
        let Ok(events) = self.kubernetes.events_since("services", before.revision) else { return };
        let own = |meta: &Value| meta["namespace"] == space && meta["name"] == name;
        // One histogram holds all Services: the latency of one is known where no other has changed.
        let alone = events.iter().all(|event| own(&event.object["metadata"]));
        // Its owner has deleted it, or it was refused on the way (a Warning Event says so): neither
        // is measured (docs/metrics.md).
        let Ok(service) = self.kubernetes.get(ObjectRef::new("services", space, name)) else {
            return;
        };
        let has_all = told(&service).next().is_some() && !is_refused(&service);
        if !alone || !has_all || self.has_warned(&service) {
            return;
        }
        let measured = Measured::of(process.controller.latencies());
        let took_ms = measured.one_since(&before.measured);
        // Until then its process has seen it.
        let seen_ms = before.at_ms + self.pace.watch_ms;
        let least_ms = match self.scene.layout {
            // Nodes may go on moving between load balancers behind it.
            Layout::Several => 0,
            _ => self.ledger.books.taken_ms.saturating_sub(seen_ms),
        };
        let most_ms = self.now_ms.saturating_sub(before.at_ms);
        count(&mut self.tally.checks, "L4");
        if took_ms.is_none_or(|took| took < least_ms || took > most_ms) {
            let text = format!(
                "{space}/{name} was programmed within {least_ms} to {most_ms} ms, and its latency \
                 is {took_ms:?}"
            );
            self.fail("L4", text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::{Scene, objects};
    use crate::swarm::Pace;
    use crate::weather::Weather;

    const HOUR_MS: u64 = 3_600_000;

    /// A Service has come beside another one.
    fn newcomer(layout: Layout) -> (Stage, Newcomer) {
        let pace = Pace { azure_ms: 5, api_ms: 2, watch_ms: 5, operation_ms: 1_500 };
        let mut stage = Stage::new(Scene::plain(layout, 3, 7), pace, Weather::Fair, 1);
        let mut before = None;
        for slot in [0, 1] {
            assert!(stage.settle(HOUR_MS));
            before = stage.before_newcomer();
            let now_ms = stage.now_ms;
            let service = objects::service("default", slot);
            stage.kubernetes.create(service, now_ms).expect("a new Service");
            stage.follow();
        }
        assert!(stage.settle(HOUR_MS));
        (stage, before.expect("all was at rest"))
    }

    #[test]
    fn what_was_measured_is_what_it_took() {
        for layout in [Layout::Single, Layout::Nics, Layout::Containers] {
            let (mut stage, before) = newcomer(layout);
            stage.check_newcomer(Some(&before), ("default", "web-1"));
            assert_eq!(stage.breach, None, "{layout:?}");
        }
    }

    #[test]
    fn what_was_measured_otherwise_is_found() {
        type Spoil = fn(&mut Newcomer);
        let spoils: [Spoil; 4] = [
            // Not at all.
            |before| before.measured.counts[0] += 1,
            // Longer than until all was at rest, and below the wrong bound.
            |before| before.measured.sum_ms = 0,
            // Shorter than until Azure had taken the last write.
            |before| before.at_ms -= HOUR_MS,
            // Longer than it can be.
            |before| before.at_ms += HOUR_MS,
        ];
        for (at, spoil) in spoils.into_iter().enumerate() {
            let (mut stage, mut before) = newcomer(Layout::Single);
            spoil(&mut before);
            stage.check_newcomer(Some(&before), ("default", "web-1"));
            assert_eq!(stage.breach.map(|breach| breach.rule), Some("L4"), "{at}");
        }
    }
}
