//! Readiness gates over time: who has waited too long, and how long Pods waited.
//!
//! The time is counted from when this process first saw that all but our gate held, so the clocks
//! of nodes do not matter, and a controller that was down gives the gateway its full time again.

use crate::controller::Controller;
use crate::observers::histogram::Histogram;
use crate::observers::kubernetes_events::timestamp;
use model::ServiceName;
use model::kubernetes::{Gate, GateReason, GatedPod, Others, READINESS_GATE};
use model::world::Kind;
use observe::KubernetesFact;
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

    fn wake_ms(&self, timeout_ms: u64, overdue: &BTreeSet<Arc<str>>) -> Option<u64> {
        let on_time = self.waiting.iter().filter(|(uid, _)| !overdue.contains(*uid));
        on_time.map(|(_, since)| since.saturating_add(timeout_ms)).min()
    }
}

/// The Pods whose gates a fact may be about.
pub(crate) enum Subject {
    /// None.
    Nobody,
    /// This one, and its UID as it was before the fact.
    Pod(ServiceName, Option<Arc<str>>),
    /// All of them.
    All,
}

impl Controller {
    /// The Pods whose gates a fact that is about to be applied may be about.
    pub(crate) fn gate_subject(&self, fact: &KubernetesFact) -> Subject {
        let name = match fact {
            KubernetesFact::GatedPod(pod) => &pod.name,
            KubernetesFact::GatedPodGone(name) => name,
            KubernetesFact::ListEnd(Kind::GatedPods, _) => return Subject::All,
            _ => return Subject::Nobody,
        };
        let held = self.world.kubernetes.gated_pods.get(name);
        Subject::Pod(name.clone(), held.map(|pod| Arc::clone(&pod.uid)))
    }

    /// Follows the Pods of a fact that was applied.
    pub(crate) fn follow_gates(&mut self, subject: Subject, now_ms: u64) {
        let pods = &self.world.kubernetes.gated_pods;
        match subject {
            Subject::Nobody => {}
            Subject::All => {
                let known: BTreeSet<&Arc<str>> = pods.values().map(|pod| &pod.uid).collect();
                self.kubernetes.gates.waiting.retain(|uid, _| known.contains(uid));
                self.world.overdue.retain(|uid| known.contains(uid));
            }
            Subject::Pod(name, before) => {
                let now = pods.get(&name).cloned();
                if let Some(before) = before.filter(|b| now.as_ref().is_none_or(|n| n.uid != *b)) {
                    self.forget_gate(&before);
                }
                if let Some(pod) = now {
                    self.follow_gate(&pod, now_ms);
                }
            }
        }
    }

    fn follow_gate(&mut self, pod: &GatedPod, now_ms: u64) {
        if (pod.others, pod.gate) == (Others::Hold, Gate::Shut) {
            if !self.kubernetes.gates.waiting.contains_key(&pod.uid) {
                self.kubernetes.gates.waiting.insert(Arc::clone(&pod.uid), now_ms);
                self.time_gated(&pod.addresses, now_ms);
            }
            return;
        }
        let Some(since) = self.forget_gate(&pod.uid) else { return };
        if pod.gate == Gate::Open && *pod.reason == *GateReason::Programmed.name() {
            self.kubernetes.gates.delays.add(now_ms.saturating_sub(since));
        } else if pod.gate == Gate::Open && *pod.reason == *GateReason::TimedOut.name() {
            self.kubernetes.gates.timeouts += 1;
        }
    }

    fn forget_gate(&mut self, uid: &Arc<str>) -> Option<u64> {
        self.world.overdue.remove(uid);
        self.kubernetes.gates.waiting.remove(uid)
    }

    /// Pods that have waited for the time allowed are let through.
    pub(crate) fn pass_gates(&mut self, now_ms: u64) {
        let timeout_ms = self.options.gate_timeout_ms;
        if self.wake_gates_ms().is_none_or(|at| at > now_ms) {
            return;
        }
        let late = self.kubernetes.gates.waiting.iter();
        let late = late.filter(|(_, since)| since.saturating_add(timeout_ms) <= now_ms);
        self.world.overdue.extend(late.map(|(uid, _)| Arc::clone(uid)));
        self.planning.dirty = true;
    }

    /// When the next Pod has waited too long.
    pub(crate) fn wake_gates_ms(&self) -> Option<u64> {
        self.kubernetes.gates.wake_ms(self.options.gate_timeout_ms, &self.world.overdue)
    }

    /// Readiness gates: who waits, and how long others have.
    #[must_use]
    pub fn gates(&self) -> &Gates {
        &self.kubernetes.gates
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
