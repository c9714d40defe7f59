//! The ledger ([`model::ledger`]) is read and written: one call at a time.
//!
//! It is read at the start, when the right to write is gained, after every write of it that was
//! not answered with success or not kept, and at the interval of the drift check. Nothing is
//! watched: only the leader writes it, and a hand that deletes it is seen at the
//! next read.

use crate::calls::Caller;
use crate::controller::Controller;
use crate::effect::{CallId, Effect, KubernetesCall, NoticeKind};
use crate::event::KubernetesAnswer;
use crate::kubernetes::ledger::{self, LedgerCall, Notes};
use crate::trouble::{Failure, Trouble};
use model::ServiceUid;
use model::kubernetes::Backends;
use model::ledger::{Holder, Ledger, LedgerWrite, SetTags};
use model::obstacle::ObstacleKind;
use model::report::Wait;
use model::world::Fact;
use observe::kubernetes::ledger_from_value;
use serde_json::Value;
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

/// A write was answered with success, and the ledger shows other data.
const NOT_KEPT: (&str, &str) =
    ("NotKept", "the API server acknowledged the write and did not keep it");

/// A gateway before the API server answers with a page of its own.
const NO_BODY: (&str, &str) = ("NoBody", "the answer has no JSON body");

impl Controller {
    /// Whether there is a security group at all in which something is opened.
    pub(crate) fn has_ledger(&self) -> bool {
        // Container load balancers open nothing, but those that Services leave for them did.
        let over_nodes = match self.policy.backends() {
            Backends::Nodes => true,
            Backends::Pods => self.has_finding(plan::SERVICES_MOVE),
        };
        over_nodes && !self.policy.security_group_name.is_empty()
    }

    /// Whether there is no ledger in which anything could be noted: this process knows it alone.
    pub(crate) fn notes_nothing(&self) -> bool {
        let known = self.world.kubernetes.ledger.known();
        !self.has_ledger() || known.is_some_and(|ledger| ledger.is_absent())
    }

    /// Whether the last plan found this of the whole.
    pub(crate) fn has_finding(&self, rule: &str) -> bool {
        self.planning.report.findings.iter().any(|finding| finding.rule == rule)
    }

    /// Whether nothing can be planned for want of the ledger.
    #[must_use]
    pub fn awaits_ledger(&self) -> bool {
        self.has_ledger() && self.world.kubernetes.ledger == Fact::Unknown
    }

    /// When the ledger is looked at again though nothing happens.
    pub(crate) fn wake_ledger_ms(&self) -> Option<u64> {
        let interval_ms = self.options.check_interval_ms;
        self.kubernetes.ledger.wake_ms(interval_ms).filter(|_| self.uses_ledger())
    }

    /// Forgets what was read and sent under another lease: until the ledger is read nothing is
    /// opened or closed by what it said then. It is read as soon as the failures before allow: they
    /// were this process's own, and who holds the lease does not change what made them.
    pub(crate) fn doubt_ledger(&mut self) {
        let lane = &mut self.kubernetes.ledger;
        (lane.call, lane.read_ms) = (None, None);
        self.world.kubernetes.ledger = Fact::Unknown;
        self.world.holders.clear();
        // What has been taken off since may be another client's tag by now.
        self.kubernetes.tags = SetTags::default();
        for name in self.reads.left.doubt() {
            self.world.abandoned.remove(&name);
        }
    }

    /// Sends the call that is due.
    pub(crate) fn go_on_with_ledger(&mut self, now_ms: u64) {
        let lane = &mut self.kubernetes.ledger;
        lane.pass(now_ms);
        if lane.call.is_some() || lane.next_ms().is_some() || !self.uses_ledger() {
            return;
        }
        let leads = self.term.is_held();
        let write = self.planning.plan.ledger.clone().filter(|_| leads);
        let call = match write {
            _ if self.kubernetes.ledger.is_old(self.options.check_interval_ms, now_ms) => {
                LedgerCall::Read
            }
            Some(write) if !self.is_turn_of_note() => LedgerCall::Write(write),
            write => {
                if write.is_none() {
                    self.kubernetes.ledger.writes.forget();
                }
                let Some(notes) = self.due_notes().filter(|_| leads) else {
                    self.kubernetes.ledger.notes.forget();
                    return;
                };
                if self.kubernetes.ledger.notes.retry.is_put_off() {
                    return;
                }
                LedgerCall::Note(notes)
            }
        };
        match &call {
            LedgerCall::Read => {}
            LedgerCall::Write(write) => {
                self.kubernetes.ledger.wrote = true;
                self.doubt_forgotten(write);
            }
            LedgerCall::Note(notes) => {
                let lane = &mut self.kubernetes.ledger;
                (lane.wrote, lane.noting) = (false, notes.gone.clone());
                // Tags that this write removes count as removed from now on.
                lane.noted.tags.keep(&notes.tags);
            }
        }
        let request = self.ledger_request(&call);
        self.observers.counts.kubernetes += u64::from(request.method != "GET");
        let id = self.calls.begin(Caller::Ledger(call));
        self.kubernetes.ledger.call = Some(id);
        self.calls.effects.push(Effect::Kubernetes { call: id, request });
    }

    /// Whether the note is sent before the destinations: a write to Azure or a contested address
    /// waits for the note, the note is not backing off, and the last write was of destinations.
    fn is_turn_of_note(&self) -> bool {
        let lane = &self.kubernetes.ledger;
        lane.wrote
            && !lane.notes.retry.is_put_off()
            && self.due_notes().is_some()
            && (self.owes_holders() || !self.wait_for_notes().is_empty())
    }

    /// What a write takes out counts as out from when it is sent: until it is read again, nothing
    /// is opened on the strength of it. A Service that was held back may want it again meanwhile.
    fn doubt_forgotten(&mut self, write: &LedgerWrite) {
        let Fact::Known(ledger) = &mut self.world.kubernetes.ledger else { return };
        let kept = |(address, holders): (&IpAddr, &BTreeSet<Holder>)| {
            write.destinations.get(address).is_some_and(|kept| holders.is_subset(kept))
        };
        if ledger.destinations.iter().all(kept) {
            return;
        }
        Arc::make_mut(ledger).destinations.retain(|address, holders| {
            let kept = write.destinations.get(address);
            holders.retain(|holder| kept.is_some_and(|kept| kept.contains(holder)));
            kept.is_some()
        });
    }

    /// The notes as they are to be, where the ledger has them otherwise. Notes that change nothing
    /// are none: the API server keeps the revision of what is written as it stands.
    fn due_notes(&self) -> Option<Notes> {
        let ledger = self.world.kubernetes.ledger.known()?;
        let noted = &self.kubernetes.ledger.noted;
        // What the plan of a security group relies on is noted beside destinations.
        let whole = !ledger.is_absent();
        let drift = self.drift.kept().filter(|_| whole).unwrap_or(&noted.drift);
        let gone = self.reads.left.wanted().filter(|_| whole).unwrap_or(&noted.gone);
        let tags = if whole { &self.kubernetes.tags } else { &noted.tags };
        let contested = self.due_holders(noted);
        let due = *drift != noted.drift || *gone != noted.gone || *tags != noted.tags;
        (due || contested.is_some()).then(|| Notes {
            drift: drift.clone(),
            gone: gone.clone(),
            tags: tags.clone(),
            contested: contested.unwrap_or(&noted.contested).clone(),
        })
    }

    fn ledger_request(&self, call: &LedgerCall) -> KubernetesCall {
        let known = self.world.kubernetes.ledger.known();
        let revision = known.and_then(|ledger| ledger.revision.as_deref());
        ledger::request(&self.options.ledger, revision, call)
    }

    /// The answer to a call about the ledger. That to a call before another one is no news of the
    /// ledger; how long the API server wants to be left alone counts, whoever's answer says it.
    pub(crate) fn heard_of_ledger(
        &mut self,
        id: CallId,
        call: &LedgerCall,
        answer: KubernetesAnswer,
        now_ms: u64,
    ) {
        let asked_ms = match &answer {
            KubernetesAnswer::Reply { retry_after_ms, .. } => *retry_after_ms,
            KubernetesAnswer::Fault(_) => None,
        };
        let lane = &mut self.kubernetes.ledger;
        lane.quiet_until_ms = lane.quiet_until_ms.max(asked_ms.map(|ms| now_ms + ms));
        if lane.call != Some(id) {
            return;
        }
        lane.call = None;
        self.planning.dirty = true;
        match (answer, call) {
            (KubernetesAnswer::Reply { status: 200..300, body: Some(body), .. }, _) => {
                self.take_ledger(&body, now_ms);
                if self.is_kept(call) {
                    self.kubernetes.ledger.rest(call, now_ms);
                    self.tell_adoption(call, now_ms);
                } else {
                    self.delay_ledger(call, NOT_KEPT, asked_ms, now_ms);
                }
            }
            (KubernetesAnswer::Reply { status: 404, .. }, LedgerCall::Read) => {
                self.kubernetes.ledger.rest(call, now_ms);
                self.note_absence(now_ms);
            }
            (KubernetesAnswer::Reply { status: 200..300, .. }, _) => {
                self.delay_ledger(call, NO_BODY, asked_ms, now_ms);
            }
            (KubernetesAnswer::Reply { status, body, .. }, _) => {
                let message = body.as_ref().and_then(|b| b.get("message")).and_then(Value::as_str);
                let code = status.to_string();
                let message = message.unwrap_or("no message");
                self.delay_ledger(call, (&code, message), asked_ms, now_ms);
            }
            (KubernetesAnswer::Fault(why), _) => {
                self.delay_ledger(call, ("NoAnswer", &why), None, now_ms);
            }
        }
    }

    fn take_ledger(&mut self, body: &Value, now_ms: u64) {
        self.kubernetes.ledger.noted = Notes::read(body.get("data"));
        self.retake_noted();
        self.recall_holders();
        self.reads.left.stir();
        let held = &mut self.world.kubernetes.ledger;
        let read = match ledger_from_value(body) {
            Ok(ledger) => Fact::Known(Arc::new(ledger)),
            Err(why) => Fact::Unreadable(Arc::from(why)),
        };
        let news = *held != read;
        *held = read;
        if let Fact::Unreadable(why) = &self.world.kubernetes.ledger
            && news
        {
            let text = format!("the ledger {} cannot be read: {why}", self.options.ledger);
            self.say(now_ms, NoticeKind::Failed, &BTreeSet::new(), text, None);
        }
    }

    /// Whether the ledger shows what a write has put there.
    fn is_kept(&self, call: &LedgerCall) -> bool {
        let write = match call {
            LedgerCall::Read => return true,
            LedgerCall::Note(notes) => return *notes == self.kubernetes.ledger.noted,
            LedgerCall::Write(write) => write,
        };
        self.world.kubernetes.ledger.known().is_some_and(|ledger| {
            ledger.destinations == write.destinations && ledger.planned_on == write.planned_on
        })
    }

    /// There is no ledger. What this process knows of it stays.
    fn note_absence(&mut self, now_ms: u64) {
        self.kubernetes.ledger.noted = Notes::default();
        self.reads.left.stir();
        let held = self.world.kubernetes.ledger.known();
        let gone = held.is_some_and(|ledger| !ledger.is_absent());
        let known = held.map(|ledger| Ledger { revision: None, ..Ledger::clone(ledger) });
        self.world.kubernetes.ledger = Fact::Known(Arc::new(known.unwrap_or_default()));
        if gone {
            let text = format!("the ledger {} is gone; it is made again", self.options.ledger);
            self.say(now_ms, NoticeKind::Drifted, &BTreeSet::new(), text, None);
        }
    }

    fn tell_adoption(&mut self, call: &LedgerCall, now_ms: u64) {
        let LedgerCall::Write(write) = call else { return };
        if write.adopted.is_empty() {
            return;
        }
        let text = format!(
            "there was no ledger {}: {} destinations that are open in the security group and are \
             addresses of this cluster's frontends, public IPs, Services or nodes are recorded in \
             it; others count as another cluster's",
            self.options.ledger,
            write.adopted.len()
        );
        self.say(now_ms, NoticeKind::Planned, &BTreeSet::new(), text, None);
    }

    fn delay_ledger(
        &mut self,
        call: &LedgerCall,
        (code, message): (&str, &str),
        asked_ms: Option<u64>,
        now_ms: u64,
    ) {
        let operation = self.ledger_operation(call);
        let text = format!("{operation} failed: {code}: {message}");
        let failure = Failure { kind: ObstacleKind::Kubernetes, operation, code, message };
        let until_ms = self.kubernetes.ledger.fail(call, failure, asked_ms, now_ms);
        let text = format!("{text}; next try in {} ms", until_ms - now_ms);
        self.say(now_ms, NoticeKind::Failed, &BTreeSet::new(), text, None);
    }

    /// A call about the ledger as an operation.
    pub(crate) fn ledger_operation(&self, call: &LedgerCall) -> String {
        format!("{} ConfigMap {}", self.ledger_request(call).method, self.options.ledger)
    }

    /// Why calls about the ledger fail, while the ledger is used and a call is due.
    pub(crate) fn ledger_trouble(&self) -> Option<&Trouble> {
        let planned = self.planning.plan.ledger.is_some() || self.due_notes().is_some();
        let due = !self.kubernetes.ledger.is_idle() || planned;
        self.kubernetes.ledger.trouble().filter(|_| due && self.uses_ledger())
    }

    /// The Services that wait for the ledger.
    pub(crate) fn wait_for_ledger(&self) -> BTreeSet<ServiceUid> {
        let unread = self.world.kubernetes.ledger == Fact::Unknown;
        let waits = |wait: &Wait| *wait == Wait::Ledger || (unread && *wait == Wait::Listing);
        let services = self.planning.report.services.iter();
        let held_up = services.filter(|(_, report)| report.waits.iter().any(waits));
        held_up.map(|(uid, _)| uid.clone()).chain(self.wait_for_notes()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Event, Leadership};
    use crate::kubernetes::ledger::{DRIFT, GONE};
    use crate::retry::SOON_MS;
    use fixture::policy;
    use model::ledger::Destinations;
    use model::plan::{Action, Change};
    use observe::kubernetes::{LEDGER_DESTINATIONS, LEDGER_PLANNED_ON};
    use plan_drift::Kept;
    use serde_json::json;

    /// A Service that was held back asks again while the ledger is on its way without it: what it
    /// asks for is recorded anew before it is opened.
    #[test]
    fn what_a_write_takes_out_of_the_ledger_counts_as_out_from_when_it_is_sent() {
        let recorded = |last: u8| {
            let holder = Holder::Service(ServiceUid::new(format!("uid-{last}")));
            (IpAddr::from([20, 0, 0, last]), BTreeSet::from([holder]))
        };
        let both = Destinations::from([recorded(1), recorded(2)]);
        let kept = Destinations::from([recorded(1)]);
        let revision: Option<Arc<str>> = Some("7".into());
        let mut controller = Controller::new(policy(), crate::Options::default());
        controller.term.leadership = Leadership::Held;
        controller.kubernetes.ledger.read_ms = Some(0);
        let ledger = Ledger { revision: revision.clone(), destinations: both, ..Ledger::default() };
        controller.world.kubernetes.ledger = Fact::Known(Arc::new(ledger));
        let destinations = kept.clone();
        let write = LedgerWrite { revision, planned_on: None, destinations, adopted: [].into() };
        controller.planning.plan.ledger = Some(Arc::new(write));

        controller.go_on_with_ledger(1);
        let known = controller.world.kubernetes.ledger.known().expect("it was read");
        assert_eq!((&known.destinations, known.revision.as_deref()), (&kept, Some("7")));
    }

    /// The API server was away, and is back: the first write that fails is tried again at once, as
    /// any first one, and a row of them is not shortened by the reads between.
    #[test]
    fn reads_that_failed_put_off_no_write() {
        let mut controller = Controller::new(policy(), crate::Options::default());
        let write = LedgerCall::Write(Arc::new(LedgerWrite {
            revision: None,
            planned_on: None,
            destinations: Destinations::new(),
            adopted: [].into(),
        }));
        let mut waits = |call: &LedgerCall, fails: bool| {
            let id = controller.calls.begin(Caller::Ledger(call.clone()));
            controller.kubernetes.ledger.call = Some(id);
            let answer = match fails {
                true => KubernetesAnswer::Fault("refused".to_owned()),
                false => KubernetesAnswer::Reply { status: 404, retry_after_ms: None, body: None },
            };
            controller.heard_of_ledger(id, call, answer, 0);
            controller.kubernetes.ledger.next_ms()
        };
        let read = LedgerCall::Read;
        let reads: Vec<_> = (0..8).map(|_| waits(&read, true)).collect();
        assert_eq!((reads[0], reads[7]), (Some(SOON_MS), Some(60_000)));
        assert_eq!(waits(&read, false), None);
        assert_eq!(waits(&write, true), Some(SOON_MS));
        assert_eq!(waits(&read, false), None);
        assert_eq!(waits(&write, true), Some(1_000));
    }

    /// A webhook takes out what we put in, and the API server says that all is well: the writes
    /// do not follow each other at its pace.
    #[test]
    fn a_write_that_is_not_kept_is_tried_again_later_and_later() {
        let mut controller = Controller::new(policy(), crate::Options::default());
        let address = IpAddr::from([20, 0, 0, 1]);
        let destinations = Destinations::from([(address, BTreeSet::from([Holder::Node]))]);
        let (revision, planned_on) = (Some("7".into()), Some(model::Etag::new("W/\"1\"")));
        let write = LedgerWrite { revision, planned_on, destinations, adopted: [].into() };
        let write = LedgerCall::Write(Arc::new(write));
        let mut waits = |call: &LedgerCall, text: &str| {
            let id = controller.calls.begin(Caller::Ledger(call.clone()));
            controller.kubernetes.ledger.call = Some(id);
            controller.kubernetes.ledger.pass(u64::MAX);
            let body = json!({ "metadata": { "resourceVersion": "8" }, "data": {
                LEDGER_DESTINATIONS: text, LEDGER_PLANNED_ON: "W/\"1\"" } });
            let body = Some(body);
            let answer = KubernetesAnswer::Reply { status: 200, retry_after_ms: None, body };
            controller.heard_of_ledger(id, call, answer, 0);
            (controller.kubernetes.ledger.next_ms(), controller.kubernetes.ledger.is_idle())
        };
        assert_eq!(waits(&write, ""), (Some(SOON_MS), false));
        assert_eq!(waits(&LedgerCall::Read, ""), (None, true));
        assert_eq!(waits(&write, ""), (Some(1_000), false));
        assert_eq!(waits(&write, "node 20.0.0.1\n"), (None, true));
        assert_eq!(waits(&write, "no ledger"), (Some(SOON_MS), false));
    }

    /// A gateway before the API server asks whoever calls to sign in, with success and a page.
    #[test]
    fn an_answer_without_the_ledger_is_no_reason_to_ask_again_at_once() {
        let mut controller = Controller::new(policy(), crate::Options::default());
        let mut waits = Vec::new();
        let mut now_ms = 0;
        for _ in 0..4 {
            controller.step([Event::Tick], now_ms);
            let call = controller.kubernetes.ledger.call.expect("it is read");
            let answer = KubernetesAnswer::Reply { status: 200, retry_after_ms: None, body: None };
            controller.step([Event::KubernetesWritten { call, answer }], now_ms);
            assert_eq!(controller.kubernetes.ledger.call, None, "it is asked again at once");
            waits.push(controller.kubernetes.ledger.next_ms().expect("it waits") - now_ms);
            now_ms += waits[waits.len() - 1];
        }
        assert_eq!(waits, [SOON_MS, 1_000, 2_000, 4_000]);
    }

    /// A controller that leads, whose ledger has been read, with one part that is left.
    fn leaving() -> (Controller, Kept) {
        let mut controller = Controller::new(policy(), crate::Options::default());
        controller.term.leadership = Leadership::Held;
        controller.kubernetes.ledger.read_ms = Some(0);
        let ledger = Ledger { revision: Some("7".into()), ..Ledger::default() };
        controller.world.kubernetes.ledger = Fact::Known(Arc::new(ledger));
        let kept = Kept::read(r#"{"/subscriptions/s":{"rule a-TCP-80":"00"}}"#);
        controller.drift.keep(kept.clone());
        (controller, kept)
    }

    fn drifted(kept: &Kept) -> Notes {
        Notes { drift: kept.clone(), ..Notes::default() }
    }

    /// The note that is sent now.
    fn note(controller: &mut Controller, now_ms: u64) -> Option<CallId> {
        controller.go_on_with_ledger(now_ms);
        let sent = controller.kubernetes.ledger.call?;
        let caller = controller.calls.callers.get(&sent).map(|call| &call.caller);
        matches!(caller, Some(Caller::Ledger(LedgerCall::Note(_)))).then_some(sent)
    }

    /// As the API server answers a write or a read, with this text for the drift.
    fn shown(drift: Option<&str>) -> KubernetesAnswer {
        let body = json!({ "metadata": { "resourceVersion": "7" },
            "data": { LEDGER_DESTINATIONS: "", DRIFT: drift } });
        KubernetesAnswer::Reply { status: 200, retry_after_ms: None, body: Some(body) }
    }

    /// A patch that changes nothing leaves the revision as it is: nothing but what the ledger has
    /// says that the note stands.
    #[test]
    fn drift_is_noted_once() {
        let (mut controller, kept) = leaving();
        let id = note(&mut controller, 1).expect("it is noted");
        let call = LedgerCall::Note(drifted(&kept));
        controller.heard_of_ledger(id, &call, shown(Some(&kept.encode())), 1);
        assert_eq!(note(&mut controller, 2), None);
        // It is read again at the interval.
        controller.kubernetes.ledger.call = Some(id);
        controller.heard_of_ledger(id, &LedgerCall::Read, shown(Some(&kept.encode())), 2);
        assert_eq!(note(&mut controller, 3), None);
        // Another client has taken it out.
        controller.kubernetes.ledger.call = Some(id);
        controller.heard_of_ledger(id, &LedgerCall::Read, shown(None), 3);
        assert!(note(&mut controller, 4).is_some());
    }

    /// The ledger is read before Services and nodes are listed: what the process before has left is
    /// not known to be over.
    #[test]
    fn what_was_noted_stays_until_everything_was_looked_at() {
        let (_, kept) = leaving();
        let mut controller = Controller::new(policy(), crate::Options::default());
        controller.step([Event::Tick], 0);
        let call = controller.kubernetes.ledger.call.expect("it is read");
        let answer = shown(Some(&kept.encode()));
        controller.step([Event::KubernetesWritten { call, answer }], 1);
        assert_eq!(controller.kubernetes.ledger.noted.drift, kept);
        assert_eq!(controller.kubernetes.ledger.call, None, "nothing is written");
    }

    /// Destinations to be written, with a write in Azure that waits for a note if `waits`.
    fn record(controller: &mut Controller, waits: bool) {
        let write = LedgerWrite {
            revision: Some("7".into()),
            planned_on: None,
            destinations: Destinations::new(),
            adopted: [].into(),
        };
        controller.planning.plan.ledger = Some(Arc::new(write));
        let uid = ServiceUid::new("uid-1");
        let (target, causes) = (policy().balancer_id("kubernetes"), BTreeSet::from([uid.clone()]));
        if waits {
            controller.reads.left.retake(uid);
            let change = Change::new(target, Action::DeleteChild, causes, Vec::new());
            controller.planning.plan.changes = vec![Arc::new(change)];
        }
    }

    /// The call that is sent now.
    fn sent(controller: &mut Controller, now_ms: u64) -> (CallId, LedgerCall) {
        controller.go_on_with_ledger(now_ms);
        let id = controller.kubernetes.ledger.call.expect("a call is due");
        let caller = controller.calls.callers.get(&id).map(|call| call.caller.clone());
        let Some(Caller::Ledger(call)) = caller else { panic!("a call about the ledger") };
        (id, call)
    }

    /// Services are created all the time, so that destinations are always due.
    #[test]
    fn a_note_that_a_write_waits_for_takes_turns_with_destinations() {
        let (mut controller, kept) = leaving();
        let mut notes = |waits: bool| {
            record(&mut controller, waits);
            let (id, call) = sent(&mut controller, 1);
            let is_note = matches!(call, LedgerCall::Note(_));
            let noted = is_note.then(|| kept.encode());
            controller.heard_of_ledger(id, &call, shown(noted.as_deref()), 1);
            is_note
        };
        assert_eq!([false, false].map(&mut notes), [false, false], "nothing waits for it");
        assert_eq!([true, true].map(&mut notes), [true, false]);
    }

    /// A webhook refuses destinations, and no note.
    #[test]
    fn a_note_that_a_write_waits_for_does_not_wait_until_destinations_are_taken() {
        let (mut controller, _) = leaving();
        record(&mut controller, true);
        let (id, call) = sent(&mut controller, 1);
        assert!(matches!(call, LedgerCall::Write(_)));
        let refused = KubernetesAnswer::Reply { status: 403, retry_after_ms: None, body: None };
        controller.heard_of_ledger(id, &call, refused, 1);
        let (id, call) = sent(&mut controller, 1 + SOON_MS);
        assert_eq!(call, LedgerCall::Read);
        controller.heard_of_ledger(id, &call, shown(None), 1 + SOON_MS);
        let (_, call) = sent(&mut controller, 2 + SOON_MS);
        assert!(matches!(call, LedgerCall::Note(_)), "{call:?}");
    }

    /// The gateway's table keeps a contested address until its holder is noted.
    #[test]
    fn a_note_of_who_has_an_address_takes_turns_with_destinations() {
        let (mut controller, _) = leaving();
        let holder = (IpAddr::from([10, 244, 0, 10]), Arc::from("team-a"));
        controller.planning.report.holders = [holder].into();
        controller.follow_holders();
        for is_note in [false, true] {
            record(&mut controller, false);
            let (id, call) = sent(&mut controller, 1);
            assert_eq!(matches!(call, LedgerCall::Note(_)), is_note);
            controller.heard_of_ledger(id, &call, shown(None), 1);
        }
    }

    /// Whether the note was carried out is seen in the ledger.
    #[test]
    fn after_a_lost_answer_drift_is_noted_where_the_ledger_lacks_it() {
        for carried_out in [true, false] {
            let (mut controller, kept) = leaving();
            let id = note(&mut controller, 1).expect("it is noted");
            let lost = KubernetesAnswer::Fault("closed".to_owned());
            let call = LedgerCall::Note(drifted(&kept));
            controller.heard_of_ledger(id, &call, lost, 1);
            assert_eq!(note(&mut controller, 2), None, "it is read first");
            let read = controller.kubernetes.ledger.call.expect("a read");
            let text = kept.encode();
            let answer = shown(carried_out.then_some(&*text));
            controller.heard_of_ledger(read, &LedgerCall::Read, answer, 2);
            assert_eq!(note(&mut controller, 1 + SOON_MS).is_none(), carried_out);
        }
    }

    /// A webhook takes the note out: it is tried later and later, and destinations do not wait.
    #[test]
    fn a_note_that_is_not_kept_holds_nothing_up() {
        let (mut controller, kept) = leaving();
        let call = LedgerCall::Note(drifted(&kept));
        let mut waits = || {
            let id = controller.calls.begin(Caller::Ledger(call.clone()));
            controller.kubernetes.ledger.call = Some(id);
            controller.kubernetes.ledger.pass(u64::MAX);
            controller.heard_of_ledger(id, &call, shown(None), 0);
            let lane = &controller.kubernetes.ledger;
            (lane.next_ms(), lane.attempt_ms())
        };
        assert_eq!(waits(), (None, Some(SOON_MS)));
        assert_eq!(waits(), (None, Some(1_000)));
    }

    /// A process that begins now and has not seen the Service would take it for gone.
    #[test]
    fn a_service_that_was_heard_of_before_the_ledger_was_read_waits_for_its_names_as_well() {
        let mut controller = Controller::new(policy(), crate::Options::default());
        controller.world = fixture::world();
        let uid = fixture::service(&[]).uid;
        let mut reads = |names: &str| {
            controller.take_ledger(
                &json!({ "metadata": { "resourceVersion": "7" },
                "data": { LEDGER_DESTINATIONS: "", GONE: names } }),
                0,
            );
            controller.follow_names(0);
            controller.reads.left.is_retaken(&uid)
        };
        assert!(!reads("2026-01-01T00:00:00Z default/other\n"));
        assert!(reads("2026-01-01T00:00:00Z default/web\n"));
        assert!(!reads(""), "they are out");
    }

    /// The lease was won while a read was under way: what that read finds is of no use, but that
    /// the API server asks for two seconds is.
    #[test]
    fn a_read_of_another_term_says_how_long_to_wait_all_the_same() {
        let mut controller = Controller::new(policy(), crate::Options::default());
        let read = LedgerCall::Read;
        let former = controller.calls.begin(Caller::Ledger(read.clone()));
        let id = controller.calls.begin(Caller::Ledger(read.clone()));
        controller.kubernetes.ledger.call = Some(id);
        let busy = KubernetesAnswer::Reply { status: 429, retry_after_ms: Some(2_000), body: None };
        controller.heard_of_ledger(former, &read, busy, 0);
        controller.heard_of_ledger(id, &read, KubernetesAnswer::Fault("refused".to_owned()), 10);
        assert_eq!(controller.kubernetes.ledger.next_ms(), Some(2_000));
    }
}
