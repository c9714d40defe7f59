//! L3: whatever failed, or still runs, is called again within a time that follows from its answer.
//! It is judged by the calls alone: what a process believes that it waits for counts for nothing.

use super::api::{OURS, has_finalizer};
use super::budget::{Call, End, Heard, Key, Purpose};
use super::seen::Seen;
use super::tenants::is_refused;
use crate::scene::Layout;
use crate::stage::Stage;
use crate::tally::count;
use arm::Method;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The first pause after a failure: a Service that is set aside begins with 4 s, a lock with 8 s.
const FIRST_MS: u64 = 8_000;
/// The longest one.
const LONGEST_MS: u64 = 60_000;
/// What is added for others that gather, for the way there, and for a step that waits its turn.
const SLACK_MS: u64 = 20_000;
/// How long the call may wait for others of the same process: for the answer that says whether a
/// quota is open again, for an operation that its order depends on.
const OTHERS_MS: u64 = 30 * 60_000;
/// How soon a waiting call is looked at again.
const LOOK_MS: u64 = 10_000;
/// How often a Pod's finalizer is tried; then the Pod is published without it.
const CLAIM_TRIES: u32 = 4;

/// What processes have to come back to.
#[derive(Clone, Debug, Default)]
pub struct Waits {
    open: BTreeMap<Key, Wait>,
    /// When the first of them is due.
    next_ms: Option<u64>,
    /// When each life of a process was last told by a quota to wait, and until when.
    closed_ms: BTreeMap<(usize, u64), u64>,
    /// When each last sent a write to Azure.
    wrote_ms: BTreeMap<(usize, u64), u64>,
    /// Answers of Azure's that each has heard.
    news: BTreeMap<(usize, u64), u64>,
    /// How much people, nodes and Pods had done when that was last looked at, and the newest
    /// version of a Service then: who has not seen that one does not know the last of it.
    asked: (u64, u64),
}

/// Something that has to be called again.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Wait {
    purpose: Purpose,
    /// When it has to be by.
    until_ms: u64,
    /// Since when.
    since_ms: u64,
    failures: u32,
    /// Whether a deletion failed.
    deletes: bool,
    seen: Seen,
}

enum Verdict {
    Needless,
    Later(u64),
    Late,
}

impl Waits {
    /// Whether something has to be called again.
    pub(super) fn is_open(&self, key: &Key) -> bool {
        self.open.contains_key(key)
    }

    /// Whether one life of a process has to come back to anything else than this.
    pub(super) fn has_others(&self, life: (usize, u64), than: &BTreeSet<String>) -> bool {
        self.open.keys().any(|key| (key.0, key.1) == life && !than.contains(&key.2))
    }

    /// Until when one life of a process was last told to wait.
    pub(super) fn closed_ms(&self, life: (usize, u64)) -> u64 {
        self.closed_ms.get(&life).copied().unwrap_or(0)
    }

    /// One life of a process is told to wait.
    pub(super) fn close(&mut self, life: (usize, u64), until_ms: u64) {
        let closed = self.closed_ms.entry(life).or_insert(0);
        *closed = (*closed).max(until_ms);
    }
}

impl Stage {
    /// Something was called: whatever was open about it is followed up.
    pub(super) fn follow_up(&mut self, key: &Key, purpose: Purpose) {
        let life = (key.0, key.1);
        let waits = &mut self.ledger.waits;
        if purpose == Purpose::Write {
            waits.wrote_ms.insert(life, self.now_ms);
        }
        let mut followed = waits.open.remove(key).is_some();
        if purpose == Purpose::Read && !waits.open.is_empty() {
            // Reading its tables is what follows a failed write of them, and reading the list is
            // what follows a resource that somebody else is changing.
            let gateway = key.2.contains("/servicegateways/");
            let gateway = key.2.rsplit_once('/').filter(|_| gateway).map(|(gateway, _)| gateway);
            let before = waits.open.len();
            waits.open.retain(|other, wait| {
                let listed = wait.purpose == Purpose::Follow
                    && other.2.rsplit_once('/').is_some_and(|(list, _)| list == key.2);
                let about = gateway == Some(other.2.as_str());
                (other.0, other.1) != life || !(listed || about)
            });
            followed |= waits.open.len() < before;
        }
        if followed {
            count(&mut self.tally.checks, "L3");
        }
    }

    /// An answer was taken in: what has to follow.
    pub(super) fn expect(&mut self, key: Key, call: &Call, heard: &Heard, failures: u32) {
        let life = (key.0, key.1);
        let now_ms = self.now_ms;
        let nodes = self.scene.layout != Layout::Containers;
        let waits = &mut self.ledger.waits;
        waits.close(life, now_ms + heard.wait_ms);
        let azure = matches!(call.purpose, Purpose::Write | Purpose::Read | Purpose::Follow);
        if azure {
            *waits.news.entry(life).or_insert(0) += 1;
        }
        // Azure is known to acknowledge a pool and lose it: a load balancer is looked at after a
        // write. The pool of a container load balancer is empty.
        let written = call.purpose == Purpose::Write && call.method == Method::Put;
        let read_back = written && nodes && call.about.contains("/loadbalancers/");
        if heard.end == End::Done && !read_back {
            waits.open.remove(&key);
            return;
        }
        let pause_ms = FIRST_MS << failures.saturating_sub(1).min(16);
        let pause_ms = pause_ms.min(LONGEST_MS).max(heard.wait_ms);
        let until_ms = now_ms + pause_ms + SLACK_MS;
        // What was taken is followed to its end, whatever becomes of its reason.
        let purpose = match heard.end {
            End::Runs | End::Done => Purpose::Follow,
            End::Failed => call.purpose,
        };
        // What Azure's answer itself changes is no news. The answer of the API server changes none:
        // what Azure has said since the call was sent may have made it needless by now.
        let news = if azure { waits.news.get(&life).copied().unwrap_or(0) } else { call.seen.news };
        let seen = Seen { news, ..call.seen.clone() };
        let deletes = call.method == Method::Delete;
        let wait = Wait { purpose, until_ms, since_ms: now_ms, failures, deletes, seen };
        waits.open.insert(key, wait);
        waits.next_ms = Some(waits.next_ms.map_or(until_ms, |next| next.min(until_ms)));
    }

    /// How things are for one life of a process, and with an object.
    pub(super) fn seen(&self, life: (usize, u64), object: Option<&str>) -> Seen {
        let object = object.and_then(|path| self.object_at(path));
        let version = object
            .and_then(|object| object["metadata"]["resourceVersion"].as_str().map(str::to_owned));
        Seen {
            term: self.lease.term,
            inputs: self.inputs(),
            writes: self.ledger.writes,
            news: self.ledger.waits.news.get(&life).copied().unwrap_or(0),
            version,
        }
    }

    /// How things are to a sender whose view of Services is of a version: a watch may lag.
    pub(super) fn seen_with(&mut self, life: (usize, u64), services: u64) -> Seen {
        let mut seen = self.seen(life, None);
        if self.ledger.waits.asked.0 != seen.inputs {
            let services = self.kubernetes.list("services", None);
            let version = |service: &Arc<Value>| {
                service["metadata"]["resourceVersion"].as_str().and_then(|v| v.parse().ok())
            };
            let newest = services.iter().filter_map(version).max().unwrap_or(0);
            self.ledger.waits.asked = (seen.inputs, newest);
        }
        if services < self.ledger.waits.asked.1 {
            seen.forget_last_input();
        }
        seen
    }

    /// What people, nodes and Pods have done so far.
    fn inputs(&self) -> u64 {
        self.ledger.inputs + self.truth.inputs
    }

    /// L3: looks at what is due.
    pub(crate) fn check_waits(&mut self) {
        if self.ledger.waits.next_ms.is_none_or(|next| next > self.now_ms) {
            return;
        }
        let open = &self.ledger.waits.open;
        let due = open.iter().filter(|(_, wait)| wait.until_ms <= self.now_ms);
        let due: Vec<(Key, Wait)> = due.map(|(key, wait)| (key.clone(), wait.clone())).collect();
        for (key, wait) in due {
            match self.verdict(&key, &wait) {
                Verdict::Needless => drop(self.ledger.waits.open.remove(&key)),
                Verdict::Later(at) => {
                    if let Some(wait) = self.ledger.waits.open.get_mut(&key) {
                        wait.until_ms = at;
                    }
                }
                Verdict::Late => {
                    let (number, passed) = (key.0, self.now_ms - wait.since_ms);
                    let text = format!(
                        "process {number} has not come back to {} for {passed} ms after a call \
                         to it {}",
                        key.2,
                        if wait.failures == 0 { "was taken" } else { "failed" }
                    );
                    self.ledger.waits.open.remove(&key);
                    self.fail("L3", text);
                }
            }
        }
        let waits = &mut self.ledger.waits;
        waits.next_ms = waits.open.values().map(|wait| wait.until_ms).min();
    }

    fn verdict(&self, key: &Key, wait: &Wait) -> Verdict {
        let now_ms = self.now_ms;
        let process = &self.processes[key.0];
        let seen = self.seen((key.0, key.1), Some(&key.2));
        // Another life, or another leader: it begins with what it reads.
        if process.epoch != key.1 || !process.may_write(now_ms) || seen.term != wait.seen.term {
            return Verdict::Needless;
        }
        if self.is_needless(wait, &seen, &key.2) {
            return Verdict::Needless;
        }
        let pause_ms = LONGEST_MS + SLACK_MS;
        let life = (key.0, key.1);
        let waits = &self.ledger.waits;
        let since = |times: &BTreeMap<(usize, u64), u64>| times.get(&life).copied().unwrap_or(0);
        let mut until_ms = process.paused_until + pause_ms;
        let azure = matches!(wait.purpose, Purpose::Write | Purpose::Read | Purpose::Follow);
        if azure {
            until_ms = until_ms.max(since(&waits.closed_ms) + pause_ms);
        }
        // A write may come after another; a list is not read while what it shows is being changed.
        if matches!(wait.purpose, Purpose::Write | Purpose::Read | Purpose::Finalizers) {
            until_ms = until_ms.max(since(&waits.wrote_ms) + pause_ms);
            let runs = |(other, wait): (&Key, &Wait)| {
                (other.0, other.1) == life && other != key && wait.purpose == Purpose::Follow
            };
            if process.outstanding > 0 || waits.open.iter().any(runs) {
                until_ms = until_ms.max(now_ms + LOOK_MS);
            }
        } else if azure && process.outstanding > 0 {
            until_ms = until_ms.max(now_ms + LOOK_MS);
        }
        let end_ms = wait.since_ms + OTHERS_MS;
        if until_ms > now_ms && now_ms < end_ms {
            return Verdict::Later(until_ms.min(end_ms).max(now_ms + 1));
        }
        Verdict::Late
    }

    /// Whether an object that stays and asks for a load balancer, or a Pod, has our finalizer.
    fn is_claimed(&self, target: &str) -> bool {
        let Some(object) = self.object_at(target) else { return false };
        let asks = object["kind"] != "Service" || object["spec"]["type"] == "LoadBalancer";
        let stays = object["metadata"]["deletionTimestamp"].is_null();
        asks && stays && OURS.iter().any(|finalizer| has_finalizer(&object, finalizer))
    }

    /// Whether a call that failed has still to be made again.
    pub(super) fn has_to_come_back(&self, key: &Key) -> bool {
        let Some(wait) = self.ledger.waits.open.get(key) else { return false };
        let seen = self.seen((key.0, key.1), Some(&key.2));
        seen.term == wait.seen.term && !self.is_needless(wait, &seen, &key.2)
    }

    /// Whether something has happened since that may have made a call needless. What was taken by
    /// Azure is followed all the same.
    fn is_needless(&self, wait: &Wait, seen: &Seen, target: &str) -> bool {
        let was = &wait.seen;
        match wait.purpose {
            Purpose::Follow => false,
            // Azure answers 409 to a deletion while an earlier one runs, which ends by itself.
            Purpose::Write => {
                let gone = || self.azure.shown_by_id(target).is_none();
                seen.inputs != was.inputs || (wait.deletes && gone())
            }
            Purpose::Read => (seen.inputs, seen.writes) != (was.inputs, was.writes),
            Purpose::Finalizers => {
                let waived = target.contains("/pods/") && wait.failures >= CLAIM_TRIES;
                // A finalizer that is there is confirmed for a write that follows; Azure's answers
                // since may have made that write needless.
                let confirmed = seen.news != was.news && self.is_claimed(target);
                // Who is refused by what Azure has answered since gets none.
                let refused = || self.object_at(target).is_some_and(|object| is_refused(&object));
                let refused = seen.news != was.news && refused();
                waived
                    || confirmed
                    || refused
                    || (seen.inputs, &seen.version) != (was.inputs, &was.version)
            }
            // What a condition says changes with what Azure answers.
            Purpose::Status => {
                (seen.inputs, seen.news, &seen.version) != (was.inputs, was.news, &was.version)
            }
        }
    }
}
