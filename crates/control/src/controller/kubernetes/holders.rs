//! Notes the holder of each contested address (one that EndpointSlices of several namespaces list)
//! in the ledger before a plan relies on it: a restart gives the address to no other tenant.
//!
//! # Guarantees
//! - The ledger is read and written for this only once an address is contested. Where there is no
//!   ConfigMap it is made.
//! - Where the note has no room for an address, the plan relies on its holder without a note: only
//!   this process knows that holder.

use crate::contested::Contested;
use crate::controller::Controller;
use crate::kubernetes::ledger::Notes;
use model::world::Fact;
use std::sync::Arc;

impl Controller {
    /// Decides what is to be noted: the holders in the plan, those that are noted already first.
    /// Holders that the plan has no longer are not relied on any more.
    pub(crate) fn follow_holders(&mut self) {
        let held = &self.planning.report.holders;
        self.world.holders.retain(|address, namespace| held.get(address) == Some(&*namespace));
        let noted = &self.kubernetes.ledger.noted.contested;
        let (old, new): (Vec<_>, Vec<_>) =
            held.iter().partition(|(address, namespace)| noted.has(**address, namespace));
        let mut wanted = Contested::default();
        for (address, namespace) in old.into_iter().chain(new) {
            wanted.add(*address, namespace);
        }
        let known = self.world.kubernetes.ledger.known().is_some();
        if known && self.term.is_held() {
            for (address, namespace) in held {
                if !wanted.has(*address, namespace) {
                    let before = self.world.holders.insert(*address, Arc::clone(namespace));
                    self.planning.dirty |= before.is_none();
                }
            }
        }
        self.kubernetes.contested = wanted;
    }

    /// Takes holders over from the note, where the World has none.
    pub(crate) fn recall_holders(&mut self) {
        for (address, namespace) in self.kubernetes.ledger.noted.contested.each() {
            self.world.holders.entry(address).or_insert_with(|| Arc::clone(namespace));
        }
    }

    /// The note to write, if it differs from the ledger. The end of a contest alone is not written
    /// at once: Pods of two namespaces often have the same address one after the other.
    pub(crate) fn due_holders(&self, noted: &Notes) -> Option<&Contested> {
        let (wanted, noted) = (&self.kubernetes.contested, &noted.contested);
        let soon = !wanted.is_within(noted);
        let due = soon || (*wanted != *noted && self.kubernetes.ledger.paced_ms.is_none());
        due.then_some(wanted)
    }

    /// Whether an address is contested and its noted holder is not read yet, so that a leader's
    /// plan may differ. False where the ledger cannot be read.
    #[must_use]
    pub fn awaits_holders(&self) -> bool {
        !self.planning.report.holders.is_empty()
            && self.world.kubernetes.ledger == Fact::Unknown
            && self.kubernetes.ledger.trouble().is_none()
    }

    /// Whether an address is contested whose holder is not recorded yet.
    pub(crate) fn owes_holders(&self) -> bool {
        self.term.is_held() && self.planning.report.holders != self.world.holders
    }

    /// Whether the ledger is read and written: something is opened in a security group, an address
    /// is contested, or the ledger was read in this term and so has to be kept up to date.
    pub(crate) fn uses_ledger(&self) -> bool {
        self.has_ledger()
            || !self.planning.report.holders.is_empty()
            || self.world.kubernetes.ledger != Fact::Unknown
    }
}

#[cfg(test)]
mod tests {
    use crate::calls::Caller;
    use crate::contested::Contested;
    use crate::controller::Controller;
    use crate::effect::Effect;
    use crate::event::{KubernetesAnswer, Leadership};
    use crate::kubernetes::ledger::{CONTESTED, LedgerCall, Notes};
    use crate::options::Options;
    use fixture::container_policy;
    use serde_json::{Value, json};
    use std::collections::BTreeMap;
    use std::net::IpAddr;
    use std::sync::Arc;

    const ADDRESS: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 244, 0, 10));

    /// A leader of container load balancers whose plan says that this namespace has the address.
    fn contested(namespace: &str) -> Controller {
        let mut controller = Controller::new(container_policy(), Options::default());
        controller.term.leadership = Leadership::Held;
        decide(&mut controller, namespace);
        controller
    }

    fn decide(controller: &mut Controller, namespace: &str) {
        controller.planning.report.holders = BTreeMap::from([(ADDRESS, Arc::from(namespace))]);
        controller.follow_holders();
    }

    /// The call that is under way.
    fn sent(controller: &mut Controller, now_ms: u64) -> Option<LedgerCall> {
        controller.go_on_with_ledger(now_ms);
        let id = controller.kubernetes.ledger.call?;
        match &controller.calls.callers.get(&id)?.caller {
            Caller::Ledger(call) => Some(call.clone()),
            _ => None,
        }
    }

    fn answered(controller: &mut Controller, status: u16, data: Option<Value>, now_ms: u64) {
        let call = sent(controller, now_ms).expect("one is under way");
        let id = controller.kubernetes.ledger.call.expect("one is under way");
        let body = data.map(|data| json!({"metadata": {"resourceVersion": "7"}, "data": data}));
        let answer = KubernetesAnswer::Reply { status, retry_after_ms: None, body };
        controller.heard_of_ledger(id, &call, answer, now_ms);
    }

    fn noting(namespace: &str) -> LedgerCall {
        let mut contested = Contested::default();
        contested.add(ADDRESS, &Arc::from(namespace));
        LedgerCall::Note(Notes { contested, ..Notes::default() })
    }

    #[test]
    fn a_holder_is_relied_on_once_the_ledger_has_it() {
        let mut controller = contested("team-a");
        assert_eq!(sent(&mut controller, 0), Some(LedgerCall::Read));
        answered(&mut controller, 404, None, 1);
        decide(&mut controller, "team-a");
        assert!(controller.world.holders.is_empty() && controller.owes_holders());
        assert_eq!(sent(&mut controller, 2), Some(noting("team-a")));
        let Some(Effect::Kubernetes { request, .. }) = controller.calls.effects.last() else {
            panic!("it was sent: {:?}", controller.calls.effects)
        };
        assert_eq!(request.method, "POST", "there is none");
        let data = json!({"notesAlone": "true", CONTESTED: "10.244.0.10 team-a\n"});
        answered(&mut controller, 201, Some(data), 3);
        decide(&mut controller, "team-a");
        assert!(!controller.owes_holders());
        assert_eq!(controller.world.holders, controller.planning.report.holders);
        assert_eq!(sent(&mut controller, 4), None);
        // The contest ends; that is noted, and not at once.
        controller.planning.report.holders.clear();
        controller.follow_holders();
        assert!(controller.world.holders.is_empty());
        assert_eq!(sent(&mut controller, 5), None);
        let none = LedgerCall::Note(Notes::default());
        assert_eq!(sent(&mut controller, 60_000), Some(none));
    }

    #[test]
    fn what_is_noted_is_relied_on_by_a_new_process() {
        let mut controller = contested("evil");
        assert_eq!(sent(&mut controller, 0), Some(LedgerCall::Read));
        assert!(controller.awaits_holders());
        let data = json!({"notesAlone": "true", CONTESTED: "10.244.0.10 team-a\n"});
        answered(&mut controller, 200, Some(data), 1);
        assert!(!controller.awaits_holders());
        // Another plan is due, with the recorded holder.
        assert_eq!(controller.world.holders.get(&ADDRESS).map(AsRef::as_ref), Some("team-a"));
        assert!(controller.planning.dirty);
    }

    /// The Role lacks the right until the contest is over: then the call is not attempted again.
    #[test]
    fn a_ledger_that_is_looked_at_no_longer_stands_in_no_way() {
        let mut controller = contested("team-a");
        answered(&mut controller, 403, None, 0);
        assert!(controller.ledger_trouble().is_some() && !controller.awaits_holders());
        controller.planning.report.holders.clear();
        controller.follow_holders();
        assert_eq!((sent(&mut controller, 60_000), controller.wake_ledger_ms()), (None, None));
        assert!(controller.ledger_trouble().is_none());
    }

    #[test]
    fn without_a_contest_the_ledger_is_not_looked_at() {
        let mut controller = contested("team-a");
        controller.planning.report.holders.clear();
        controller.follow_holders();
        assert!(!controller.awaits_holders());
        assert_eq!((sent(&mut controller, 0), controller.wake_ledger_ms()), (None, None));
    }
}
