//! Reports what others changed in Azure: a line for each resource, and Events for its Services.

use crate::controller::Controller;
use crate::effect::NoticeKind;
use crate::observers::drift_log::{DriftNews, DriftRecord};
use crate::observers::kubernetes_events::word;
use crate::observers::reason;
use model::ServiceUid;
use model::drift::{Drift, Part};
use model::policy::DriftPolicy;
use std::collections::{BTreeMap, BTreeSet};

/// Parts of one resource that one line names.
const NAMED: usize = 5;

impl Controller {
    /// Drift: what stands now, then what is over, the last first.
    pub fn drift(&self) -> impl Iterator<Item = &DriftRecord> {
        self.observers.drift.records()
    }

    /// How many fields were seen to differ since the start.
    #[must_use]
    pub fn drift_noticed(&self) -> u64 {
        self.observers.drift.noticed()
    }

    /// Shows what differs, before anything is done about it.
    pub(crate) fn show_drift(&mut self, now: &[Drift], now_ms: u64) {
        let rules = (self.policy.drift, self.term.paused.as_ref().map(|paused| &paused.pause));
        let DriftNews { new, over } = self.observers.drift.compare(now, rules, now_ms);
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
                self.post(&name, &uid, word(&reason::DRIFT, &text), now_ms);
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
