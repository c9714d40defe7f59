//! Readiness gates over time: who has waited too long, and how long Pods waited.
//!
//! The time is counted from when this process first saw that all but our gate held, so the clocks
//! of nodes do not matter, and a controller that was down gives the gateway its full time again.

use crate::clock::timestamp;
use crate::observers::histogram::Histogram;
use model::kubernetes::{Gate, GateReason, GatedPod, READINESS_GATE};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Upper bounds of the delays that are told apart, in milliseconds.
pub const DELAY_BOUNDS_MS: [u64; 9] = [100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000];

/// Pods that wait for our gate, and what has been measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gates {
    /// By UID: since when all but our gate holds.
    waiting: BTreeMap<Arc<str>, u64>,
    delays: Histogram,
    timeouts: u64,
}

impl Default for Gates {
    fn default() -> Self {
        let delays = Histogram::new(&DELAY_BOUNDS_MS);
        Self { waiting: BTreeMap::new(), delays, timeouts: 0 }
    }
}

impl Gates {
    /// How many Pods wait for nothing but our gate.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// How long Pods waited until the gateway listed them, in milliseconds.
    #[must_use]
    pub fn delays(&self) -> &Histogram {
        &self.delays
    }

    /// How many Pods were let through because the time allowed was over.
    #[must_use]
    pub fn timeouts(&self) -> u64 {
        self.timeouts
    }

    /// All but our gate hold for a Pod. True when that is news.
    pub(crate) fn begin(&mut self, uid: &Arc<str>, now_ms: u64) -> bool {
        let news = !self.waiting.contains_key(uid);
        if news {
            self.waiting.insert(Arc::clone(uid), now_ms);
        }
        news
    }

    /// A Pod waits no longer; since when it has.
    pub(crate) fn forget(&mut self, uid: &Arc<str>) -> Option<u64> {
        self.waiting.remove(uid)
    }

    /// Forgets all Pods but these.
    pub(crate) fn retain(&mut self, known: &BTreeSet<&Arc<str>>) {
        self.waiting.retain(|uid, _| known.contains(uid));
    }

    /// Counts how long a Pod that waits no longer has waited.
    pub(crate) fn count(&mut self, pod: &GatedPod, since_ms: u64, now_ms: u64) {
        if pod.gate == Gate::Open && *pod.reason == *GateReason::Programmed.name() {
            self.delays.add(now_ms.saturating_sub(since_ms));
        } else if pod.gate == Gate::Open && *pod.reason == *GateReason::TimedOut.name() {
            self.timeouts += 1;
        }
    }

    /// UIDs of Pods that have waited for the time allowed.
    pub(crate) fn late(&self, timeout_ms: u64, now_ms: u64) -> impl Iterator<Item = &Arc<str>> {
        let late = self.waiting.iter();
        let late = late.filter(move |(_, since)| since.saturating_add(timeout_ms) <= now_ms);
        late.map(|(uid, _)| uid)
    }

    /// When the next Pod has waited too long.
    pub(crate) fn wake_ms(&self, timeout_ms: u64, overdue: &BTreeSet<Arc<str>>) -> Option<u64> {
        let on_time = self.waiting.iter().filter(|(uid, _)| !overdue.contains(*uid));
        on_time.map(|(_, since)| since.saturating_add(timeout_ms)).min()
    }
}

/// The condition as it is written.
pub(crate) fn condition(gate: Gate, reason: GateReason, message: &str, now_ms: u64) -> Value {
    let status = match gate {
        Gate::Open => "True",
        Gate::Shut => "False",
    };
    json!({
        "type": READINESS_GATE,
        "status": status,
        "reason": reason.name(),
        "message": message,
        "lastTransitionTime": timestamp(now_ms),
    })
}
