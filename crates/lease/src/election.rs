//! An election as a state machine: calls out, answers in. It does nothing by itself.

use crate::record::{Claim, Record, Sighting};
use crate::rule::{self, Role, Verdict};
use crate::settings::LeaseSettings;
use serde_json::Value;
use std::fmt;

/// A call to the API server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// `GET`, `POST` or `PUT`.
    pub method: &'static str,
    /// Path.
    pub path: String,
    /// JSON, where the call has a body.
    pub body: Option<Value>,
}

/// What came of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The API server answered.
    Reply {
        /// HTTP status.
        status: u16,
        /// Body, where it is JSON.
        body: Option<Value>,
        /// What the answer says, for people, where it is a refusal.
        says: String,
    },
    /// No whole answer came; and why.
    Fault(String),
}

/// Why an attempt did not make us the holder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Miss {
    /// The process of this name has it.
    Taken(String),
    /// The record changed meanwhile; the next attempt reads it anew.
    Raced,
    /// The API server did not do as asked; and why.
    Failed(String),
}

impl fmt::Display for Miss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Taken(holder) => write!(f, "{holder} holds it"),
            Self::Raced => f.write_str("another process wrote it at the same time"),
            Self::Failed(why) => f.write_str(why),
        }
    }
}

/// What follows from an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// Another call.
    Call(Call),
    /// The attempt is over.
    Done(Result<(), Miss>),
}

#[derive(Clone, Debug, PartialEq)]
enum Step {
    /// The record is read.
    Reading,
    /// The record is written with our name.
    Claiming,
    /// The record is read, to be written without our name.
    Resigning,
    /// The record is written without our name.
    Releasing,
}

/// One process's part in an election.
#[derive(Clone, Debug)]
pub struct Election {
    settings: LeaseSettings,
    /// The record as we last read or wrote it; `None` makes the next attempt read it.
    known: Option<Record>,
    sighting: Option<Sighting>,
    /// When another's lease runs out, if it is not renewed.
    ends_ms: Option<u64>,
    /// From when on no write may be sent, unless the Lease is renewed.
    deadline_ms: u64,
    leading: bool,
    started_ms: u64,
    step: Step,
    /// Annotations of the Lease as it was last read or written.
    annotations: Value,
    /// Attempts to release the Lease that are left.
    tries: u32,
}

impl Election {
    /// Before the first attempt.
    #[must_use]
    pub fn new(settings: LeaseSettings) -> Self {
        Self {
            settings,
            known: None,
            sighting: None,
            ends_ms: None,
            deadline_ms: 0,
            leading: false,
            started_ms: 0,
            step: Step::Reading,
            annotations: Value::Null,
            tries: 0,
        }
    }

    /// Which Lease, for whom, and its times.
    #[must_use]
    pub fn settings(&self) -> &LeaseSettings {
        &self.settings
    }

    /// Whether this process leads, as of its last attempt.
    #[must_use]
    pub fn is_leading(&self) -> bool {
        self.leading
    }

    /// From when on no write may be sent, unless the Lease is renewed.
    #[must_use]
    pub fn deadline_ms(&self) -> u64 {
        self.deadline_ms
    }

    /// An annotation of the Lease, as it was last read or written.
    ///
    /// # Guarantees
    /// Whoever leads has read the annotations that were there before it led. Later ones are seen at
    /// the second renewal at the latest: the first one is refused, because the Lease has changed.
    /// Where another client has deleted the Lease, it is made again with the annotations that this
    /// process has seen on it.
    #[must_use]
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.annotations.get(key)?.as_str()
    }

    /// Begins an attempt to take or renew the Lease. `now` is the time as `MicroTime`.
    pub fn attempt(&mut self, now_ms: u64, now: &str) -> Next {
        self.started_ms = now_ms;
        self.ends_ms = None;
        match self.known.take() {
            Some(known) => self.claim(known, now_ms, now),
            None => {
                self.step = Step::Reading;
                Next::Call(self.get())
            }
        }
    }

    /// Begins to give the Lease up, so that a successor need not wait for it to run out. Nothing
    /// may be written from here on.
    pub fn resign(&mut self, now: &str) -> Next {
        self.deadline_ms = 0;
        if !self.leading {
            return Next::Done(Ok(()));
        }
        self.leading = false;
        self.tries = 2;
        self.release(now)
    }

    /// Takes in what came of the last call.
    pub fn answered(&mut self, answer: Answer, now_ms: u64, now: &str) -> Next {
        match self.step {
            Step::Reading => match self.read(answer) {
                Ok(known) => self.claim(known, now_ms, now),
                Err(miss) => self.miss(miss, now_ms),
            },
            Step::Claiming => match written(answer) {
                Ok(known) => {
                    self.annotations = known.annotations();
                    self.known = Some(known);
                    self.leading = true;
                    // From before the first call: the Lease was ours by then at the latest.
                    self.deadline_ms =
                        self.started_ms.saturating_add(self.settings.renew_deadline_ms);
                    Next::Done(Ok(()))
                }
                Err(miss) => self.miss(miss, now_ms),
            },
            Step::Resigning => match self.read(answer) {
                Ok(known) => {
                    self.known = Some(known);
                    self.release(now)
                }
                Err(miss) => Next::Done(Err(miss)),
            },
            Step::Releasing => match written(answer) {
                Ok(_) => Next::Done(Ok(())),
                Err(Miss::Raced) if self.tries > 0 => self.release(now),
                Err(miss) => Next::Done(Err(miss)),
            },
        }
    }

    /// Until the next attempt. `spread` lengthens a wait, so that not all look at one moment.
    #[must_use]
    pub fn pause_ms(&self, now_ms: u64, spread: impl Fn(u64) -> u64) -> u64 {
        let role = match self.leading {
            true => Role::Leads { deadline_ms: self.deadline_ms },
            false => Role::StandsBy { ends_ms: self.ends_ms },
        };
        rule::pause_ms(role, &self.settings, now_ms, spread)
    }

    fn claim(&mut self, known: Record, now_ms: u64, now: &str) -> Next {
        self.annotations = known.annotations();
        let sighting = Sighting::of(&known, self.sighting.take(), now_ms);
        let LeaseSettings { identity, lease_ms, .. } = &self.settings;
        let verdict = rule::judge(&known, &sighting, identity, *lease_ms, now_ms);
        self.sighting = Some(sighting);
        if let Verdict::Taken { ends_ms } = verdict {
            self.ends_ms = Some(ends_ms);
            return self.miss(Miss::Taken(known.holder().to_owned()), now_ms);
        }
        let seconds = lease_ms.div_ceil(1_000);
        let wanted = known.claimed(&Claim { holder: identity, seconds, now });
        self.step = Step::Claiming;
        Next::Call(self.put(wanted))
    }

    fn miss(&mut self, miss: Miss, now_ms: u64) -> Next {
        if matches!(miss, Miss::Taken(_)) || now_ms >= self.deadline_ms {
            self.deadline_ms = 0;
            self.leading = false;
        }
        Next::Done(Err(miss))
    }

    fn release(&mut self, now: &str) -> Next {
        self.tries = self.tries.saturating_sub(1);
        match self.known.take() {
            None => {
                self.step = Step::Resigning;
                Next::Call(self.get())
            }
            Some(known) if known.holder() != self.settings.identity => Next::Done(Ok(())),
            Some(known) => {
                self.step = Step::Releasing;
                Next::Call(self.put(known.released(now)))
            }
        }
    }

    fn read(&self, answer: Answer) -> Result<Record, Miss> {
        match answer {
            Answer::Reply { status: 404, .. } => {
                let absent = Record::absent(&self.settings.namespace, &self.settings.name);
                Ok(absent.annotated(&self.annotations))
            }
            other => written(other),
        }
    }

    fn get(&self) -> Call {
        Call { method: "GET", path: self.path(), body: None }
    }

    fn put(&self, record: Record) -> Call {
        let (method, path) = match record.is_new() {
            true => ("POST", self.collection()),
            false => ("PUT", self.path()),
        };
        Call { method, path, body: Some(record.into_object()) }
    }

    fn collection(&self) -> String {
        let namespace = &self.settings.namespace;
        format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases")
    }

    fn path(&self) -> String {
        format!("{}/{}", self.collection(), self.settings.name)
    }
}

/// The record in an answer.
fn written(answer: Answer) -> Result<Record, Miss> {
    match answer {
        Answer::Reply { status: 200..300, body, .. } => body
            .and_then(Record::new)
            .ok_or_else(|| Miss::Failed("the API server's answer is no Lease".to_owned())),
        Answer::Reply { status: 409, .. } => Err(Miss::Raced),
        Answer::Reply { says, .. } => Err(Miss::Failed(says)),
        Answer::Fault(why) => Err(Miss::Failed(why)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn election(identity: &str) -> Election {
        Election::new(LeaseSettings { identity: identity.to_owned(), ..LeaseSettings::default() })
    }

    fn reply(status: u16, body: &Value) -> Answer {
        Answer::Reply { status, body: Some(body.clone()), says: "refused".to_owned() }
    }

    /// What the API server makes of a call that it takes.
    fn stored(next: &Next, revision: &str) -> Answer {
        let Next::Call(call) = next else { panic!("{next:?} is no call") };
        let mut object = call.body.clone().expect("it has a body");
        object["metadata"]["resourceVersion"] = json!(revision);
        reply(200, &object)
    }

    fn lead(election: &mut Election, now_ms: u64) {
        let next = election.attempt(now_ms, "t");
        assert!(matches!(&next, Next::Call(call) if call.method == "GET"));
        let next = election.answered(reply(404, &json!({})), now_ms + 10, "t");
        assert!(matches!(&next, Next::Call(call) if call.method == "POST"));
        let answer = stored(&next, "1");
        assert_eq!(election.answered(answer, now_ms + 20, "t"), Next::Done(Ok(())));
    }

    #[test]
    fn the_deadline_counts_from_before_the_first_call() {
        let mut election = election("a");
        lead(&mut election, 1_000);
        assert!(election.is_leading());
        assert_eq!(election.deadline_ms(), 11_000);
    }

    #[test]
    fn a_renewal_that_fails_costs_the_lease_at_the_deadline_and_not_before() {
        let mut election = election("a");
        lead(&mut election, 0);
        let lost = || Answer::Fault("no answer".to_owned());
        let miss = Next::Done(Err(Miss::Failed("no answer".to_owned())));
        assert!(matches!(election.attempt(2_000, "t"), Next::Call(call) if call.method == "PUT"));
        assert_eq!(election.answered(lost(), 7_000, "t"), miss);
        assert!(election.is_leading());
        // Whether the write took effect is not known: the record is read first.
        assert!(matches!(election.attempt(9_000, "t"), Next::Call(call) if call.method == "GET"));
        assert_eq!(election.answered(lost(), 10_000, "t"), miss);
        assert!(!election.is_leading());
    }

    #[test]
    fn a_process_that_finds_another_holder_stops_at_once() {
        let mut election = election("a");
        lead(&mut election, 0);
        election.attempt(2_000, "t");
        assert_eq!(
            election.answered(reply(409, &json!({})), 2_010, "t"),
            Next::Done(Err(Miss::Raced))
        );
        assert!(election.is_leading(), "it may have been a write of no consequence");
        election.attempt(4_000, "t");
        let theirs = json!({"metadata": {"resourceVersion": "9"},
            "spec": {"holderIdentity": "b", "leaseDurationSeconds": 15}});
        let next = election.answered(reply(200, &theirs), 4_010, "t");
        assert_eq!(next, Next::Done(Err(Miss::Taken("b".to_owned()))));
        assert_eq!((election.is_leading(), election.deadline_ms()), (false, 0));
        assert_eq!(election.pause_ms(4_010, |ms| ms), 1_000);
    }

    #[test]
    fn an_annotation_is_known_before_the_process_leads_and_after_two_renewals() {
        let mut election = election("a");
        let free = |note: &str, revision: &str| {
            json!({"metadata": {"resourceVersion": revision, "annotations": {"note": note}},
                "spec": {"holderIdentity": ""}})
        };
        election.attempt(0, "t");
        let next = election.answered(reply(200, &free("first", "1")), 10, "t");
        assert_eq!((election.is_leading(), election.annotation("note")), (false, Some("first")));
        assert_eq!(election.answered(stored(&next, "2"), 20, "t"), Next::Done(Ok(())));
        assert_eq!((election.is_leading(), election.annotation("note")), (true, Some("first")));
        // Another client annotates it.
        election.attempt(2_000, "t");
        election.answered(reply(409, &json!({})), 2_010, "t");
        election.attempt(4_000, "t");
        let mut ours = free("second", "3");
        ours["spec"]["holderIdentity"] = json!("a");
        let next = election.answered(reply(200, &ours), 4_010, "t");
        assert_eq!(election.annotation("note"), Some("second"));
        assert_eq!(election.answered(stored(&next, "4"), 4_020, "t"), Next::Done(Ok(())));
        assert_eq!((election.is_leading(), election.annotation("note")), (true, Some("second")));
        assert_eq!(election.annotation("other"), None);
    }

    #[test]
    fn a_holder_that_does_not_renew_for_the_lease_duration_loses_it() {
        let mut election = election("b");
        let theirs = json!({"metadata": {"resourceVersion": "1"},
            "spec": {"holderIdentity": "a", "leaseDurationSeconds": 15}});
        let mut look = |now_ms: u64| {
            election.attempt(now_ms, "t");
            election.answered(reply(200, &theirs), now_ms, "t")
        };
        assert_eq!(look(0), Next::Done(Err(Miss::Taken("a".to_owned()))));
        assert!(matches!(look(15_000), Next::Call(_)));
    }

    /// Who deletes the Lease, to have another process lead, does not end what its annotations stop.
    #[test]
    fn a_lease_that_was_deleted_is_made_again_with_its_annotations() {
        let mut election = election("a");
        let free = json!({"metadata": {"resourceVersion": "1", "annotations": {"note": "first"}},
            "spec": {"holderIdentity": ""}});
        election.attempt(0, "t");
        let next = election.answered(reply(200, &free), 10, "t");
        assert_eq!(election.answered(stored(&next, "2"), 20, "t"), Next::Done(Ok(())));
        election.attempt(2_000, "t");
        let gone = Answer::Reply { status: 404, body: None, says: "gone".to_owned() };
        election.answered(gone, 2_010, "t");
        election.attempt(4_000, "t");
        let next = election.answered(reply(404, &json!({})), 4_010, "t");
        let Next::Call(call) = &next else { panic!("{next:?}") };
        let body = call.body.clone().expect("it has a body");
        assert_eq!(call.method, "POST");
        assert_eq!(body["metadata"]["annotations"]["note"], "first");
        assert_eq!(election.answered(stored(&next, "3"), 4_020, "t"), Next::Done(Ok(())));
        assert_eq!(election.annotation("note"), Some("first"));
    }

    #[test]
    fn a_process_that_resigns_writes_the_lease_without_a_holder() {
        let mut election = election("a");
        lead(&mut election, 0);
        let next = election.resign("t");
        let Next::Call(call) = &next else { panic!("{next:?}") };
        let body = call.body.clone().expect("it has a body");
        assert_eq!(body["spec"]["holderIdentity"], "");
        assert_eq!(election.deadline_ms(), 0);
        // Raced once: it reads, and leaves alone what is another's by now.
        assert!(matches!(election.answered(reply(409, &json!({})), 5, "t"), Next::Call(_)));
        let theirs = json!({"metadata": {"resourceVersion": "9"},
            "spec": {"holderIdentity": "b"}});
        assert_eq!(election.answered(reply(200, &theirs), 6, "t"), Next::Done(Ok(())));
    }
}
