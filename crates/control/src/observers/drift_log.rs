//! What others changed in Azure: told, and remembered for a while.

use crate::controller::Controller;
use crate::effect::NoticeKind;
use model::drift::{Drift, Part};
use model::policy::DriftPolicy;
use model::{ResourceId, ServiceUid};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Drift that is over and still shown.
const REMEMBERED: usize = 50;

/// Parts of one resource that one line names.
const NAMED: usize = 5;

/// What became of drift.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DriftOutcome {
    /// It is being written back.
    Repairing,
    /// It is left as others made it.
    Reported,
    /// It is left until an operator ends the pause of writes.
    Paused,
    /// The parts are as Ballast set them again.
    Over,
}

/// Drift, and when it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriftRecord {
    /// What differs.
    pub drift: Drift,
    /// When it was noticed, in milliseconds of the controller's clock.
    pub noticed_ms: u64,
    /// When it was over.
    pub ended_ms: Option<u64>,
    /// What became of it.
    pub outcome: DriftOutcome,
}

/// Drift that was told of.
#[derive(Debug, Default)]
pub(crate) struct DriftLog {
    records: BTreeMap<(ResourceId, Part), DriftRecord>,
    past: VecDeque<DriftRecord>,
    noticed: u64,
}

impl DriftLog {
    /// What stands is not told from what was before.
    pub fn forget(&mut self) {
        self.records.clear();
    }
}

impl Controller {
    /// Drift: what stands now, then what is over, the last first.
    pub fn drift(&self) -> impl Iterator<Item = &DriftRecord> {
        self.observers.drift.records.values().chain(self.observers.drift.past.iter().rev())
    }

    /// How many fields were seen to differ since the start.
    #[must_use]
    pub fn drift_noticed(&self) -> u64 {
        self.observers.drift.noticed
    }

    /// Shows what differs, before anything is done about it.
    pub(crate) fn show_drift(&mut self, now: &[Drift], now_ms: u64) {
        let pause = self.pause().cloned();
        let policy = self.policy.drift;
        let outcome_of = |id: &ResourceId| match policy {
            DriftPolicy::Report => DriftOutcome::Reported,
            DriftPolicy::Repair if pause.as_ref().is_some_and(|pause| pause.stops(id)) => {
                DriftOutcome::Paused
            }
            DriftPolicy::Repair => DriftOutcome::Repairing,
        };
        let log = &mut self.observers.drift;
        let places: BTreeSet<(ResourceId, Part)> = now.iter().map(Drift::place).collect();
        let mut over: Vec<Drift> = Vec::new();
        for (place, mut record) in std::mem::take(&mut log.records) {
            if places.contains(&place) {
                log.records.insert(place, record);
                continue;
            }
            record.ended_ms = Some(now_ms);
            record.outcome = DriftOutcome::Over;
            over.push(record.drift.clone());
            log.past.push_back(record);
            if log.past.len() > REMEMBERED {
                log.past.pop_front();
            }
        }
        let mut new: Vec<Drift> = Vec::new();
        for drift in now {
            let known = log.records.get(&drift.place());
            let noticed_ms = known.map_or(now_ms, |record| record.noticed_ms);
            if known.is_none_or(|record| record.drift.departure != drift.departure) {
                log.noticed += drift.fields();
                new.push(drift.clone());
            }
            let drift = drift.clone();
            let outcome = outcome_of(&drift.target);
            let record = DriftRecord { drift, noticed_ms, ended_ms: None, outcome };
            log.records.insert(record.drift.place(), record);
        }
        self.say_drift(&new, now_ms);
        for (resource, drifts) in by_resource(&over) {
            let text = format!("{resource}: drift repaired: {}", parts(&drifts));
            self.say(now_ms, NoticeKind::Drifted, &services(&drifts), text, None);
        }
    }

    /// One line a resource; one Event for each of its Services.
    fn say_drift(&mut self, new: &[Drift], now_ms: u64) {
        for (resource, drifts) in by_resource(new) {
            let paused = drifts.iter().any(|drift| self.is_paused(&drift.target));
            let then = match self.policy.drift {
                DriftPolicy::Report => "it is left so (driftPolicy is report)",
                DriftPolicy::Repair if paused => "it is left so while writes are paused",
                DriftPolicy::Repair => "it is written back (driftPolicy is repair)",
            };
            let deeds = deeds(&drifts);
            let text = format!("another client changed {resource}: {deeds}; {then}");
            let uids = services(&drifts);
            self.say(now_ms, NoticeKind::Drifted, &uids, text, None);
            for uid in uids {
                let Some(service) = self.world.kubernetes.services.get(&uid) else { continue };
                let name = service.name.clone();
                let own = drifts.iter().filter(|d| d.services.contains(&uid)).copied();
                let deeds = self::deeds(&own.collect::<Vec<_>>());
                let text = format!("Another client changed {resource}: {deeds}; {then}");
                self.tell_drift(&name, &uid, &text, now_ms);
            }
        }
    }
}

fn by_resource(drifts: &[Drift]) -> BTreeMap<&str, Vec<&Drift>> {
    let mut all: BTreeMap<&str, Vec<&Drift>> = BTreeMap::new();
    for drift in drifts {
        all.entry(drift.resource()).or_default().push(drift);
    }
    all
}

fn services(drifts: &[&Drift]) -> BTreeSet<ServiceUid> {
    drifts.iter().flat_map(|drift| drift.services.iter().cloned()).collect()
}

fn deeds(drifts: &[&Drift]) -> String {
    listed(drifts.len(), drifts.iter().map(|drift| drift.deed()))
}

fn parts(drifts: &[&Drift]) -> String {
    let name = |part: &Part| match part.is_whole() {
        true => "all of it".to_owned(),
        false => format!("{} {}", part.kind, part.name),
    };
    listed(drifts.len(), drifts.iter().map(|drift| name(&drift.part)))
}

fn listed(count: usize, texts: impl Iterator<Item = String>) -> String {
    let shown: Vec<String> = texts.take(NAMED).collect();
    let more = count.saturating_sub(NAMED);
    let rest = if more == 0 { String::new() } else { format!(" and {more} more") };
    format!("{}{rest}", shown.join(", "))
}
