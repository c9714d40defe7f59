//! Notices drift, shows it before anything is done about it, and remembers it for a while.

use crate::Leadership;
use crate::controller::Controller;
use crate::effect::NoticeKind;
use crate::queue;
use model::drift::{Drift, Part};
use model::plan::{Action, Change};
use model::policy::DriftPolicy;
use model::{ResourceId, ServiceUid};
use plan::Planner;
use plan::drift::Confirmed;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

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
    /// It is as we left it again.
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

/// Azure as we left it, and what others made of it.
#[derive(Debug, Default)]
pub(crate) struct DriftLog {
    confirmed: Confirmed,
    /// Plans a World without drift, whose memory is another one's.
    planner: Planner,
    now: Vec<Drift>,
    records: BTreeMap<(ResourceId, Part), DriftRecord>,
    past: VecDeque<DriftRecord>,
    noticed: u64,
    settled_due: bool,
    /// What the last plan was made from is noted, and nothing has changed since.
    noted: bool,
    /// Resources that have lost the tags by which we know them.
    unmarked: BTreeSet<ResourceId>,
    marks_due: bool,
}

impl DriftLog {
    /// Something was read: what the next plan leaves alone is as it should be.
    pub fn expect_settled(&mut self) {
        self.settled_due = true;
        self.marks_due = true;
    }

    /// How many times a Service was read to plan around drift.
    pub fn services_read(&self) -> u64 {
        self.planner.services_read()
    }

    /// Whether another plan of the same World would find nothing that the last one did not.
    pub fn is_noted(&self) -> bool {
        self.noted
    }
}

impl Controller {
    /// Drift: what stands now, then what is over, the last first.
    pub fn drift(&self) -> impl Iterator<Item = &DriftRecord> {
        self.drift.records.values().chain(self.drift.past.iter().rev())
    }

    /// How many fields differ now.
    #[must_use]
    pub fn drift_fields(&self) -> u64 {
        self.drift.now.iter().map(Drift::fields).sum()
    }

    /// How many fields were seen to differ since the start.
    #[must_use]
    pub fn drift_noticed(&self) -> u64 {
        self.drift.noticed
    }

    /// Whoever may write now, another one may have written meanwhile.
    pub(crate) fn forget_drift(&mut self) {
        self.drift.confirmed = Confirmed::default();
        self.drift.records.clear();
        self.drift.now.clear();
        self.drift.unmarked.clear();
    }

    /// What a write has come to is what drift is told from.
    pub(crate) fn confirm_written(&mut self, id: &ResourceId, action: &Action) {
        // What was repaired is not kept as others had made it.
        let left = match self.policy.drift {
            DriftPolicy::Report => self.drift.now.as_slice(),
            DriftPolicy::Repair => &[],
        };
        self.drift.confirmed.note_written(id, action, &self.world.azure, left);
    }

    /// A write failed in a way that leaves open what it has come to: it is our own all the same.
    pub(crate) fn note_sent(&mut self, id: &ResourceId, action: &Action) {
        self.drift.confirmed.note_sent(id, action, &self.world.azure);
    }

    /// Compares what the plan is about to change with what we left.
    pub(crate) fn look_for_drift(&mut self, before: &[Arc<Change>], now_ms: u64) {
        self.drift.noted = false;
        if self.leadership == Leadership::Lost {
            return;
        }
        let log = &mut self.drift;
        if std::mem::take(&mut log.marks_due) {
            log.unmarked = plan::drift::unmarked(&log.confirmed, &self.world);
        }
        let mut findings = self.report.findings.iter();
        if findings.any(|finding| finding.rule == plan::OTHER_LAYOUT_STANDS) {
            return;
        }
        plan::drift::restore_marks(&log.confirmed, &self.world, &log.unmarked, &mut self.plan);
        let mut now = if log.now.is_empty() {
            // What was planned before was looked at then, and what is left of it is as it was.
            let changes = &self.plan.changes;
            let new = queue::news(before, changes).into_iter().map(|at| changes[at].as_ref());
            plan::drift::find_among(&log.confirmed, &self.world, new)
        } else {
            plan::drift::find(&log.confirmed, &self.world, &self.plan)
        };
        // While a resource is written nothing is planned for it: what was known of it still holds.
        let busy = &self.world.in_flight;
        let planned: BTreeSet<_> = now.iter().map(|drift| drift.target.clone()).collect();
        let known = log.now.iter();
        let known = known.filter(|d| busy.contains_key(&d.target) && !planned.contains(&d.target));
        now.extend(known.cloned());
        let is_quiet = self.report.needs.is_empty() && self.world.holds.is_empty();
        log.noted = log.settled_due && is_quiet;
        if log.noted {
            log.settled_due = false;
            log.confirmed.note_settled(&self.world, &self.plan);
        }
        if self.policy.drift == DriftPolicy::Report && !now.is_empty() {
            let (world, policy) = (&mut self.world, &self.policy);
            let (plan, report) =
                plan::drift::plan_around(&mut log.planner, world, policy, &log.confirmed, &mut now);
            self.plan = plan;
            self.report = report;
        }
        self.show_drift(now, now_ms);
    }

    fn show_drift(&mut self, now: Vec<Drift>, now_ms: u64) {
        let outcome = match self.policy.drift {
            DriftPolicy::Repair => DriftOutcome::Repairing,
            DriftPolicy::Report => DriftOutcome::Reported,
        };
        let log = &mut self.drift;
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
        for drift in &now {
            let known = log.records.get(&drift.place());
            let noticed_ms = known.map_or(now_ms, |record| record.noticed_ms);
            if known.is_none_or(|record| record.drift.departure != drift.departure) {
                log.noticed += drift.fields();
                new.push(drift.clone());
            }
            let drift = drift.clone();
            let record = DriftRecord { drift, noticed_ms, ended_ms: None, outcome };
            log.records.insert(record.drift.place(), record);
        }
        log.now = now;
        self.say_drift(&new, now_ms);
        for (resource, drifts) in by_resource(&over) {
            let text = format!("{resource} is as we left it again: {}", parts(&drifts));
            self.say(now_ms, NoticeKind::Drifted, &services(&drifts), text, None);
        }
    }

    /// One line a resource; one Event for each of its Services.
    fn say_drift(&mut self, new: &[Drift], now_ms: u64) {
        let then = match self.policy.drift {
            DriftPolicy::Repair => "it is written back (driftPolicy is repair)",
            DriftPolicy::Report => "it is left so (driftPolicy is report)",
        };
        for (resource, drifts) in by_resource(new) {
            let deeds = deeds(&drifts);
            let text = format!("somebody else changed {resource}: {deeds}; {then}");
            let uids = services(&drifts);
            self.say(now_ms, NoticeKind::Drifted, &uids, text, None);
            for uid in uids {
                let Some(service) = self.world.kubernetes.services.get(&uid) else { continue };
                let name = service.name.clone();
                let own = drifts.iter().filter(|d| d.services.contains(&uid)).copied();
                let deeds = self::deeds(&own.collect::<Vec<_>>());
                let text = format!("Somebody else changed {resource}: {deeds}; {then}");
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
