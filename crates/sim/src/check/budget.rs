//! S6: Retry-After is honoured, and nothing is retried without measure. What answers ask for counts
//! as known once the process has taken them in: it may stand still when they arrive.

mod alone;
mod bursts;
mod record;
mod repeats;
mod reply;

use self::alone::Alone;
use self::bursts::Bursts;
use self::record::Learnt;
use self::repeats::Asked;
use self::reply::heard;
use super::seen::Seen;
use crate::path::{quotas, target_of};
use crate::stage::{Sent, Stage};
use crate::tally::count;
use arm::{Answer, Method, Request};
use control::{CallId, KubernetesAnswer, KubernetesCall};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Failed writes of one resource that one process may make in a minute. The back-off alone allows
/// six; a search for the Service at fault adds two for each halving.
const FAILURES_A_MINUTE: usize = 16;
/// Writes of one resource or object that one process may make in a minute, whatever becomes of
/// them: a seed makes at most a hundred moves, and each asks for one or two.
const WRITES_A_MINUTE: usize = 120;
/// Reads that follow writes of one resource, for each process in a minute: what runs is polled once
/// a second at most, and each write is read back.
const FOLLOWS_A_MINUTE: usize = 60 + WRITES_A_MINUTE;
const MINUTE_MS: u64 = 60_000;
/// The longest pause that a back-off comes to.
const LONGEST_MS: u64 = 60_000;

/// What a call is for: what has to follow when it fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Purpose {
    /// To change a resource.
    Write,
    /// To read a list, or what planning needs.
    Read,
    /// To follow a write: a poll, or a look at what it has come to.
    Follow,
    /// To change an object's finalizers.
    Finalizers,
    /// To change an object's status.
    Status,
}

impl Purpose {
    /// Writes of one object wait for each other, whatever of it they change.
    fn of_record(self) -> Self {
        if self == Self::Finalizers { Self::Status } else { self }
    }

    /// The shortest pause after so many failures in a row. What follows a write is polled at an
    /// even pace; a refused batch is written again in halves.
    fn pause_ms(self, failures: u32) -> u64 {
        let doubled = |from: u32| {
            let times = failures.saturating_sub(from);
            (1_000 << times.min(16)).min(LONGEST_MS)
        };
        match self {
            Self::Read if failures > 0 => doubled(1),
            // A conflict is over as soon as the watch has caught up: the first try comes sooner.
            Self::Finalizers | Self::Status if failures > 1 => doubled(2),
            _ => 0,
        }
    }
}

/// One process, one life of it, and what it calls.
pub(super) type Key = (usize, u64, String);

/// What is known of calls.
#[derive(Clone, Debug, Default)]
pub struct Budget {
    /// Calls under way.
    calls: BTreeMap<(usize, u64, CallId), Call>,
    /// Answers that have not been taken in.
    coming: BTreeMap<(usize, u64, CallId), (Call, Heard)>,
    /// No call that uses this quota before: it is used up. Since when that is known, and until
    /// when.
    quota: BTreeMap<Key, (u64, u64)>,
    records: BTreeMap<(Purpose, Key), Record>,
    /// Ids of writes to what they write: what follows a write bears its id.
    writes: BTreeMap<Key, String>,
    /// Ids of writes that Azure has refused: nothing of theirs runs.
    refused: BTreeSet<Key>,
    /// No poll of a write's operation, and no look at what it changes, before, by the write's id.
    polls: BTreeMap<Key, u64>,
    /// What resources were last written with, by whom.
    asked: BTreeMap<Key, Asked>,
    /// Resources that were last written by deleting them, by whom, and since when it is known there
    /// that they are gone.
    deleted: BTreeMap<Key, Option<u64>>,
    /// What was last written of one Service alone, by whom.
    alone: BTreeMap<Key, Alone>,
    /// Limits that Azure has closed.
    bursts: Bursts,
}

impl Budget {
    /// Whether a call about something is not answered yet, or its answer is not taken in.
    pub(super) fn is_under_way(&self, (number, epoch, about): &Key) -> bool {
        let of_it = |id: &(usize, u64, CallId), call: &Call| {
            (id.0, id.1, &call.about) == (*number, *epoch, about)
        };
        self.calls.iter().any(|(id, call)| of_it(id, call))
            || self.coming.iter().any(|(id, (call, _))| of_it(id, call))
    }
}

/// A call under way.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub target: String,
    /// The path that was called: a poll has one of its own.
    pub path: String,
    /// The id of what it belongs to.
    correlation: String,
    pub purpose: Purpose,
    pub method: Method,
    /// What has to be called again if it fails.
    pub about: String,
    /// How things were when it was sent.
    pub seen: Seen,
    pub sent_ms: u64,
}

/// What is known of calls of one purpose to one target.
#[derive(Clone, Debug, Default)]
struct Record {
    /// No other before.
    not_before_ms: u64,
    sent_ms: VecDeque<u64>,
    failed_ms: VecDeque<u64>,
    /// Failures in a row of the same wish.
    failures: u32,
    /// Failures in a row, whatever was wished.
    in_a_row: u32,
    /// How things were when it was last sent.
    seen: Option<Seen>,
    /// The last of those that ended as they should, in the order of sending.
    done: Option<CallId>,
}

/// What an answer says.
#[derive(Clone, Debug)]
pub(super) struct Heard {
    pub end: End,
    /// For how long Azure wants to be left alone.
    pub wait_ms: u64,
    quota: Option<String>,
    /// For how long the operation that was started or looked at is not to be polled.
    poll_ms: u64,
    /// Whether the state was another than it was planned on: no reason to wait.
    stale: bool,
    /// Whether an operation came to nothing: Azure answers that with a 200.
    undone: bool,
    /// Azure's HTTP status; 0 where Azure has not answered.
    status: u16,
}

impl Heard {
    fn of(end: End, wait_ms: u64) -> Self {
        Self { end, wait_ms, quota: None, poll_ms: 0, stale: false, undone: false, status: 0 }
    }
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// As it should.
    Done,
    /// It was taken, and its end has to be seen.
    Runs,
    /// It failed.
    Failed,
}

/// What a call is about: all that changes a gateway's tables, and what follows it, is about the
/// gateway.
fn about(target: &str) -> String {
    let action = target.rsplit('/').next().unwrap_or("");
    let tables = action.starts_with("update") && target.contains("/servicegateways/");
    let gateway = target.rsplit_once('/').filter(|_| tables).map(|(gateway, _)| gateway);
    gateway.unwrap_or(target).to_owned()
}

impl Stage {
    /// A call to Azure is about to be sent.
    pub(crate) fn check_sending(&mut self, sent: &Sent, id: CallId, request: &Request) {
        self.note_look(sent, request);
        let (number, epoch) = (sent.process, sent.epoch);
        self.ledger.books.note_sending((number, epoch), request.method);
        let path = target_of(request);
        let target = path.clone();
        let budget = &mut self.ledger.budget;
        let correlation = (number, epoch, request.correlation.clone());
        let (purpose, target) = if request.method.is_write() {
            budget.writes.insert(correlation, target.clone());
            (Purpose::Write, target)
        } else {
            match budget.writes.get(&correlation) {
                Some(target) => (Purpose::Follow, target.clone()),
                None => (Purpose::Read, target),
            }
        };
        // What was learnt in this very moment may have come after this call was decided on.
        let now_ms = self.now_ms;
        let id_of_write = (number, epoch, request.correlation.clone());
        let poll_ms = budget.polls.get(&id_of_write).copied().unwrap_or(0);
        if purpose == Purpose::Follow && now_ms < poll_ms {
            let early = poll_ms - now_ms;
            self.fail("S6", format!("the operation of {target} is polled {early} ms early"));
            return;
        }
        let mut open_ms = 0;
        if !budget.quota.is_empty() {
            for name in quotas(request.method, &path) {
                let until = budget.quota.get(&(number, epoch, name)).copied();
                let until = until.filter(|(since_ms, _)| *since_ms < now_ms);
                open_ms = open_ms.max(until.map_or(0, |(_, until_ms)| until_ms));
            }
        }
        if now_ms < open_ms {
            let early = open_ms - now_ms;
            let text = format!("{target} is called {early} ms before a quota allows");
            self.fail("S6", text);
        }
        self.try_limits((number, epoch), id, request);
        if request.method.is_write() {
            self.check_pause(&path);
            self.check_grounds(sent, &path);
            self.check_condition(sent, request, &path);
            self.check_etag(sent, request, &path);
            self.check_noted(sent, request, &path);
            self.check_repeats(sent, request, &target);
            self.check_alone(sent, request.method, &target);
            self.check_deleted(sent, request.method, &target);
        }
        let about = about(&target);
        let seen = self.seen_with((number, epoch), sent.services);
        let method = request.method;
        let correlation = request.correlation.clone();
        let call =
            Call { target, path, correlation, purpose, method, about, seen, sent_ms: now_ms };
        self.note_call(sent, id, call);
    }

    /// A call to the API server is about to be sent. Events are posted once, whatever comes of it.
    pub(crate) fn check_calling(&mut self, sent: &Sent, id: CallId, request: &KubernetesCall) {
        self.ledger.books.note_calling((sent.process, sent.epoch), request);
        // The ledger is read and written by turns: they are calls on one object. A read that the
        // API server takes is no success of the write that it refuses again and again.
        let ledger = request.path.find("/configmaps").map(|at| &request.path[..at]);
        if request.method == "POST" && ledger.is_none() {
            return;
        }
        let status = ledger.or_else(|| request.path.strip_suffix("/status"));
        let purpose = if status.is_some() { Purpose::Status } else { Purpose::Finalizers };
        let target = status.unwrap_or(&request.path).to_owned();
        let about = target.clone();
        // What the sender has not seen yet of the object may have made the call needless.
        let mut seen = self.seen((sent.process, sent.epoch), Some(&target));
        seen.forget_unseen(sent.services);
        let (path, correlation) = (String::new(), String::new());
        let (method, sent_ms) = (Method::Patch, self.now_ms);
        // Who has the name of one that is gone is another object, and its call another call.
        let uid = request.body["metadata"]["uid"].as_str().unwrap_or("");
        // No destination waits for a note that fails.
        let notes = ledger.is_some() && request.body["data"]["destinations"].is_null();
        let what = match request.method {
            "GET" => "read",
            _ if notes => "notes",
            _ => uid,
        };
        let target = format!("{target} {what}").trim_end().to_owned();
        let call = Call { target, path, correlation, purpose, method, about, seen, sent_ms };
        self.note_call(sent, id, call);
    }

    fn note_call(&mut self, sent: &Sent, id: CallId, call: Call) {
        count(&mut self.tally.checks, "S6");
        let now_ms = self.now_ms;
        let key = (sent.process, sent.epoch, call.target.clone());
        self.follow_up(&(sent.process, sent.epoch, call.about.clone()), call.purpose);
        let budget = &mut self.ledger.budget;
        let record = budget.records.entry((call.purpose.of_record(), key)).or_default();
        for times in [&mut record.sent_ms, &mut record.failed_ms] {
            while times.front().is_some_and(|at| at + MINUTE_MS < now_ms) {
                times.pop_front();
            }
        }
        record.sent_ms.push_back(now_ms);
        // Another wish, another row of failures; so with an object that is another by now.
        let objects = matches!(call.purpose, Purpose::Finalizers | Purpose::Status);
        let same = |seen: &Seen| seen.is_same_wish(&call.seen, objects);
        if !record.seen.as_ref().is_some_and(same) {
            record.failures = 0;
        }
        record.seen = Some(call.seen.clone());
        let target = &call.target;
        let failed = record.failed_ms.len();
        let pause_ms = call.purpose.pause_ms(record.failures);
        let last_ms = record.failed_ms.back().copied().unwrap_or(0);
        let (writes, follows) = (call.purpose == Purpose::Write, call.purpose == Purpose::Follow);
        let often = writes || (objects && !target.contains("/configmaps"));
        let text = if now_ms < record.not_before_ms {
            let early = record.not_before_ms - now_ms;
            Some(format!("{target} is called {early} ms before it was asked for"))
        } else if now_ms < last_ms + pause_ms {
            let (failures, early) = (record.failures, last_ms + pause_ms - now_ms);
            Some(format!("{target} is called {early} ms too early after {failures} failures"))
        } else if writes && failed > FAILURES_A_MINUTE {
            Some(format!("{target} failed {failed} times within a minute"))
        } else if often && record.sent_ms.len() > WRITES_A_MINUTE {
            Some(format!("{target} is written {} times within a minute", record.sent_ms.len()))
        } else if follows && record.sent_ms.len() > FOLLOWS_A_MINUTE {
            Some(format!("{target} is followed {} times within a minute", record.sent_ms.len()))
        } else {
            None
        };
        budget.calls.insert((sent.process, sent.epoch, id), call);
        if let Some(text) = text {
            self.fail("S6", text);
        }
    }

    /// How much later than usual the answer to a call comes: lists may take long, and so may reads
    /// of one resource that follow no write.
    pub(crate) fn late_ms(&self, sent: &Sent, id: CallId) -> u64 {
        let call = self.ledger.budget.calls.get(&(sent.process, sent.epoch, id));
        let lists = call.is_some_and(|call| call.purpose == Purpose::Read);
        if lists { self.list_ms } else { 0 }
    }

    /// An answer of Azure's that is on its way.
    pub(crate) fn note_answer(&mut self, sent: &Sent, id: CallId, answer: &Answer) {
        let budget = &mut self.ledger.budget;
        let key = (sent.process, sent.epoch, id);
        let Some(call) = budget.calls.remove(&key) else { return };
        let what = (call.method, &*call.path, &*call.correlation);
        self.ledger.books.note_answer((sent.process, sent.epoch), what, answer, self.now_ms);
        let mut heard = match answer {
            Answer::Fault(_) => Heard::of(End::Failed, 0),
            Answer::Reply(reply) => heard(&call, reply),
        };
        let write = (sent.process, sent.epoch, call.correlation.clone());
        match (call.purpose, answer) {
            (Purpose::Write, Answer::Reply(reply)) if (400..500).contains(&reply.status) => {
                budget.refused.insert(write);
            }
            (Purpose::Write, _) => drop(budget.refused.remove(&write)),
            // What is read after a refusal and is being changed is changed by another's operation.
            (Purpose::Follow, _) if heard.end == End::Runs && budget.refused.contains(&write) => {
                heard.end = End::Done;
            }
            _ => {}
        }
        budget.coming.insert(key, (call, heard));
    }

    /// An answer of the API server's that is on its way. An object that is gone needs nothing more.
    pub(crate) fn note_api_answer(&mut self, sent: &Sent, id: CallId, answer: &KubernetesAnswer) {
        let key = (sent.process, sent.epoch, id);
        self.ledger.noted.note(key, answer, self.lease.term);
        let budget = &mut self.ledger.budget;
        let Some(call) = budget.calls.remove(&key) else { return };
        let (end, wait_ms) = match answer {
            KubernetesAnswer::Reply { status: 200..300 | 404, .. } => (End::Done, 0),
            KubernetesAnswer::Reply { retry_after_ms, .. } => {
                (End::Failed, retry_after_ms.unwrap_or(0))
            }
            KubernetesAnswer::Fault(_) => (End::Failed, 0),
        };
        budget.coming.insert(key, (call, Heard::of(end, wait_ms)));
    }

    /// An answer has reached a process: its next step takes it in before it sends anything.
    pub(crate) fn learn_answer(&mut self, number: usize, id: CallId) {
        let epoch = self.processes[number].epoch;
        let now_ms = self.now_ms;
        self.ledger.noted.learn((number, epoch, id));
        let budget = &mut self.ledger.budget;
        let Some((call, heard)) = budget.coming.remove(&(number, epoch, id)) else { return };
        if heard.end == End::Done {
            self.ledger.grounds.learn((number, epoch), &call);
        }
        let budget = &mut self.ledger.budget;
        let key = (number, epoch, call.target.clone());
        if let Some(asked) = budget.asked.get_mut(&key) {
            asked.ended_ms = now_ms;
            // What Azure does not take has pauses of its own.
            let taken = heard.end != End::Failed && !heard.undone;
            asked.times = if taken { asked.times } else { 0 };
        }
        let write = (number, epoch, call.correlation.clone());
        let ends = heard.end == End::Done && !heard.undone && !budget.refused.contains(&write);
        if ends {
            self.ledger.etags.learn(&write);
        }
        // A look at the resource may show that it is there.
        let looks = call.purpose == Purpose::Follow && call.path == call.target;
        if ends
            && !looks
            && matches!(call.purpose, Purpose::Write | Purpose::Follow)
            && let Some(known) = budget.deleted.get_mut(&key)
        {
            *known = known.or(Some(now_ms));
        }
        if heard.end == End::Runs {
            let id_of_write = (number, epoch, call.correlation.clone());
            budget.polls.insert(id_of_write, now_ms + heard.poll_ms);
        }
        if let Some(name) = &heard.quota {
            let (since_ms, until_ms) =
                budget.quota.entry((number, epoch, name.clone())).or_insert((now_ms, 0));
            if *until_ms <= now_ms {
                *since_ms = now_ms;
            }
            *until_ms = (*until_ms).max(now_ms + heard.wait_ms);
        }
        let record = budget.records.get_mut(&(call.purpose.of_record(), key));
        let learnt = record.map(|record| record.learn(id, &call, &heard, now_ms));
        let Learnt { failures, overtaken, awaited } = learnt.unwrap_or_default();
        self.learn_limits((number, epoch), id, (&call, &heard), awaited.then_some(failures));
        self.learn_alone((number, epoch), &call, &heard);
        if overtaken {
            self.ledger.waits.close((number, epoch), now_ms + heard.wait_ms);
            return;
        }
        self.expect((number, epoch, call.about.clone()), &call, &heard, failures);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_minute() {
        let pauses = |purpose: Purpose| (1..=8).map(move |n| purpose.pause_ms(n));
        let reads = [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000];
        assert!(pauses(Purpose::Read).eq(reads));
        let objects = [0, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000];
        assert!(pauses(Purpose::Status).eq(objects));
    }
}
