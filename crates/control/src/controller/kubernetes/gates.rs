//! Readiness gates over time: Pods of facts are followed, and let through when they have waited too
//! long.

use crate::controller::Controller;
use crate::kubernetes::gates::Gates;
use model::ServiceName;
use model::kubernetes::{Gate, GatedPod, Others};
use model::world::Kind;
use observe::KubernetesFact;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The Pods whose gates a fact may be about.
pub(crate) enum Subject {
    /// None.
    None,
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
            _ => return Subject::None,
        };
        let held = self.world.kubernetes.gated_pods.get(name);
        Subject::Pod(name.clone(), held.map(|pod| Arc::clone(&pod.uid)))
    }

    /// Follows the Pods of a fact that was applied.
    pub(crate) fn follow_gates(&mut self, subject: Subject, now_ms: u64) {
        let pods = &self.world.kubernetes.gated_pods;
        match subject {
            Subject::None => {}
            Subject::All => {
                let known: BTreeSet<&Arc<str>> = pods.values().map(|pod| &pod.uid).collect();
                self.kubernetes.gates.retain(&known);
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
            if self.kubernetes.gates.begin(&pod.uid, now_ms) {
                self.time_gated(&pod.addresses, now_ms);
            }
            return;
        }
        let Some(since) = self.forget_gate(&pod.uid) else { return };
        self.kubernetes.gates.count(pod, since, now_ms);
    }

    fn forget_gate(&mut self, uid: &Arc<str>) -> Option<u64> {
        self.world.overdue.remove(uid);
        self.kubernetes.gates.forget(uid)
    }

    /// Pods that have waited for the time allowed are let through.
    pub(crate) fn pass_gates(&mut self, now_ms: u64) {
        let timeout_ms = self.options.gate_timeout_ms;
        if self.wake_gates_ms().is_none_or(|at| at > now_ms) {
            return;
        }
        self.world.overdue.extend(self.kubernetes.gates.late(timeout_ms, now_ms).map(Arc::clone));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Options;
    use fixture::policy;

    #[test]
    fn a_pod_that_waits_again_has_not_waited_too_long_yet() {
        let mut controller = Controller::new(policy(), Options::default());
        let uid: Arc<str> = Arc::from("uid");
        controller.world.overdue.insert(Arc::clone(&uid));
        controller.forget_gate(&uid);
        assert!(controller.world.overdue.is_empty());
    }
}
