//! L3: a limit that Azure has closed is tried again within a time that follows from its answers.
//! Azure counts calls by limits: once one is used up, all calls that are under way are refused. The
//! first answer says so, and those of the calls that were sent before say it again: they make no
//! pause longer.
//!
//! Judged by what a process reads for the first time: it plans nothing without, so that only the
//! limit, and what Azure has said of that very list, can hold such a call back. A write may wait
//! for another one, for others to join it, or for a lock on its resource, which Azure answers with
//! 429, too; what was read before is read again when nothing more urgent is to be read.

use super::{Call, Heard, Key, LONGEST_MS};
use crate::path::{quotas, target_of};
use crate::stage::Stage;
use crate::tally::count;
use arm::Request;
use control::CallId;
use std::collections::{BTreeMap, BTreeSet};

/// What is added for a bucket in which nothing was left, and for the way there.
const SLACK_MS: u64 = 2_500;
/// How soon a life of a process is looked at again that waits for something else first.
const LOOK_MS: u64 = 1_000;
/// The status for too many requests, and for locks.
const TOO_MANY: u16 = 429;

/// One life of a process.
type Life = (usize, u64);

/// What each life of a process knows of the limits that it calls within.
#[derive(Clone, Debug, Default)]
pub(super) struct Bursts {
    limits: BTreeMap<Key, Limit>,
    /// The last call that each has sent to Azure.
    sent: BTreeMap<Life, CallId>,
    /// When each is looked at that has been refused and has not called since.
    looks_ms: BTreeMap<Life, u64>,
    /// When each last waited for something else, or took in an answer.
    busy_ms: BTreeMap<Life, u64>,
}

/// What one life of a process knows of one limit.
#[derive(Clone, Debug, Default)]
struct Limit {
    /// Bursts of refusals in a row.
    bursts: u32,
    /// The last call that was sent before the last burst was known.
    known: Option<CallId>,
    /// The last burst, until a call follows that counts against the limit.
    open: Option<Burst>,
}

/// Reads that one limit was closed for.
#[derive(Clone, Debug, Default)]
struct Burst {
    /// Azure and a back-off ask for no call before.
    until_ms: u64,
    /// What is read.
    abouts: BTreeSet<String>,
}

impl Bursts {
    /// What a life of a process has been refused and not tried since, by the limit.
    fn open(&self, life: Life) -> impl Iterator<Item = (&str, &Burst)> {
        let from = (life.0, life.1, String::new());
        let own = self.limits.range(from..).take_while(move |(key, _)| (key.0, key.1) == life);
        own.filter_map(|(key, limit)| Some((key.2.as_str(), limit.open.as_ref()?)))
    }

    /// Nothing is to follow.
    fn close(&mut self, life: Life) {
        let own = self.limits.iter_mut().filter(|(key, _)| (key.0, key.1) == life);
        own.for_each(|(_, limit)| limit.open = None);
        self.looks_ms.remove(&life);
    }
}

/// The pause that a back-off comes to after so many failures in a row. From the second on it may be
/// the one after: of two reads of one list that were under way together, both may count.
fn pause_ms(failures: u32) -> u64 {
    let doubled = if failures > 1 { failures } else { 0 };
    (1_000 << doubled.min(16)).min(LONGEST_MS)
}

impl Stage {
    /// A call is about to be sent, by which it shows whether its limits are open.
    pub(super) fn try_limits(&mut self, life: Life, id: CallId, request: &Request) {
        let bursts = &mut self.ledger.budget.bursts;
        bursts.sent.insert(life, id);
        if bursts.limits.is_empty() {
            return;
        }
        for name in quotas(request.method, &target_of(request)) {
            if let Some(limit) = bursts.limits.get_mut(&(life.0, life.1, name)) {
                limit.open = None;
            }
        }
    }

    /// An answer of Azure's has been taken in: of what was never read before, with how often that
    /// has failed in a row.
    pub(super) fn learn_limits(
        &mut self,
        life: Life,
        id: CallId,
        (call, heard): (&Call, &Heard),
        failures: Option<u32>,
    ) {
        let now_ms = self.now_ms;
        let bursts = &mut self.ledger.budget.bursts;
        if bursts.open(life).next().is_some() {
            // Whatever it was, a call may have waited for it.
            bursts.busy_ms.insert(life, now_ms);
        }
        let refused = heard.status == TOO_MANY || heard.quota.is_some();
        if heard.status == 0 || (!refused && bursts.limits.is_empty()) {
            return;
        }
        let last = bursts.sent.get(&life).copied();
        for name in quotas(call.method, &call.path) {
            let named = heard.quota.as_ref() == Some(&name);
            // Whether one limit has counted a call that is refused for another is not known.
            if heard.quota.is_some() && !named {
                continue;
            }
            let limit = bursts.limits.entry((life.0, life.1, name)).or_default();
            let new = limit.known < Some(id);
            if !refused {
                limit.bursts = if new { 0 } else { limit.bursts };
                continue;
            }
            if new {
                limit.bursts += 1;
                limit.known = last;
            }
            // What has failed for other reasons, too, has a pause of its own.
            let alone = named && failures.is_some_and(|failures| failures <= limit.bursts);
            // A 429 of another kind may be taken for a limit's, and makes pauses longer then.
            let until_ms = now_ms + pause_ms(limit.bursts).max(heard.wait_ms);
            let burst = limit.open.take().or_else(|| alone.then(Burst::default));
            limit.open = burst.map(|mut burst| {
                burst.until_ms = burst.until_ms.max(until_ms);
                burst.abouts.extend(alone.then(|| call.about.clone()));
                burst
            });
        }
        let until_ms = bursts.open(life).map(|(_, burst)| burst.until_ms).max();
        bursts.looks_ms.extend(until_ms.map(|until_ms| (life, until_ms + SLACK_MS)));
    }

    /// L3: looks at who was refused and has not called since.
    pub(crate) fn check_bursts(&mut self) {
        let looks = self.ledger.budget.bursts.looks_ms.iter();
        let due = looks.filter(|(_, at)| **at <= self.now_ms);
        let due: Vec<Life> = due.map(|(life, _)| *life).collect();
        due.into_iter().for_each(|life| self.look_at_bursts(life));
    }

    fn look_at_bursts(&mut self, life: Life) {
        let now_ms = self.now_ms;
        let bursts = &self.ledger.budget.bursts;
        let abouts = bursts.open(life).flat_map(|(_, burst)| burst.abouts.iter().cloned());
        let abouts: BTreeSet<String> = abouts.collect();
        let last = bursts.open(life).max_by_key(|(_, burst)| burst.until_ms);
        let last = last.map(|(name, burst)| (name.to_owned(), burst.until_ms));
        let process = &self.processes[life.0];
        // Another life, or another leader, begins with what it reads.
        let leads = process.epoch == life.1 && process.may_write(now_ms);
        let mut keys = abouts.iter().map(|about| (life.0, life.1, about.clone()));
        let asked = leads && keys.any(|key| self.has_to_come_back(&key));
        let Some((name, until_ms)) = last.filter(|_| asked && self.mutant.is_none()) else {
            self.ledger.budget.bursts.close(life);
            return;
        };
        count(&mut self.tally.checks, "L3");
        // What comes first may have to be answered first, or has a pause of its own.
        let waits = &self.ledger.waits;
        let busy = process.outstanding > 0
            || self.api_down_until > now_ms
            || waits.has_others(life, &abouts);
        let process_ms = process.paused_until.max(waits.closed_ms(life));
        let bursts = &mut self.ledger.budget.bursts;
        let busy_ms = bursts.busy_ms.entry(life).or_insert(0);
        if busy {
            *busy_ms = now_ms;
        }
        let end_ms = until_ms.max(process_ms).max(*busy_ms) + SLACK_MS;
        if now_ms < end_ms {
            let look_ms = if busy { now_ms + LOOK_MS } else { end_ms };
            bursts.looks_ms.insert(life, look_ms);
            return;
        }
        bursts.close(life);
        let number = life.0;
        let text = format!(
            "process {number} has called nothing more that counts against {name}, and was to wait \
             for it until {} ms ago at most",
            now_ms - until_ms
        );
        self.fail("L3", text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::{Layout, network};
    use crate::stage::Sent;
    use arm::{Answer, Condition, Method, Reply, Target};
    use serde_json::json;

    /// The only process asks for one of five lists.
    fn send(stage: &mut Stage, number: u64) {
        let request = Request {
            method: Method::Get,
            target: Target::Path(network(&format!("kind{}", number % 5))),
            condition: Condition::None,
            body: None,
            correlation: number.to_string(),
        };
        let sent = Sent::now(stage);
        stage.check_sending(&sent, CallId(number), &request);
    }

    /// Azure refuses the call a moment later.
    fn refuse(stage: &mut Stage, number: u64) {
        stage.now_ms += 5;
        let body = Some(json!({"error": {"code": "TooManyRequests", "message": "m"}}).into());
        let reply = Reply { status: 429, body, ..Reply::default() };
        let sent = Sent::now(stage);
        stage.note_answer(&sent, CallId(number), &Answer::Reply(reply.into()));
        stage.learn_answer(0, CallId(number));
    }

    fn breaks(stage: &mut Stage, passed_ms: u64) -> Option<&'static str> {
        stage.now_ms += passed_ms;
        stage.check_bursts();
        stage.breach.take().map(|breach| breach.rule)
    }

    #[test]
    fn all_refusals_of_a_burst_are_one() {
        let mut stage = Stage::plain(Layout::Single, 1_500);
        (1..=5).for_each(|number| send(&mut stage, number));
        (1..=5).for_each(|number| refuse(&mut stage, number));
        assert_eq!(stage.breach, None);
        assert_eq!(breaks(&mut stage, 1_000 + SLACK_MS - 1), None);
        assert_eq!(breaks(&mut stage, 1), Some("L3"));
    }

    #[test]
    fn a_call_after_the_pause_is_what_is_asked_for() {
        let mut stage = Stage::plain(Layout::Single, 1_500);
        (1..=5).for_each(|number| send(&mut stage, number));
        (1..=5).for_each(|number| refuse(&mut stage, number));
        stage.now_ms += 1_000;
        (6..=10).for_each(|number| send(&mut stage, number));
        assert_eq!(breaks(&mut stage, 5_000), None);
        // Two bursts in a row: the pause is a longer one.
        (6..=10).for_each(|number| refuse(&mut stage, number));
        assert_eq!(breaks(&mut stage, 4_000 + SLACK_MS - 1), None);
        assert_eq!(breaks(&mut stage, 1), Some("L3"));
    }
}
