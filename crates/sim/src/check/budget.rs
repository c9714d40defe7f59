//! S6: Retry-After is honoured, and nothing is retried without measure.

use crate::carry::bare_path;
use crate::stage::{Sent, Stage};
use crate::tally::count;
use arm::{Answer, Method, Request};
use control::CallId;
use std::collections::{BTreeMap, VecDeque};

/// Failed writes of one resource that one process may make in a minute. The back-off alone allows
/// six; a search for the Service at fault adds two for each halving.
const FAILURES_A_MINUTE: usize = 24;
/// Writes of one resource that one process may make in a minute, whatever becomes of them: a seed
/// makes at most a hundred moves, and each asks for one or two.
const WRITES_A_MINUTE: usize = 120;
const MINUTE_MS: u64 = 60_000;

/// What answers have asked for.
#[derive(Clone, Debug, Default)]
pub struct Budget {
    /// Writes under way: process, life, call to what they write and the quotas they use.
    calls: BTreeMap<(usize, u64, CallId), (String, Quotas)>,
    /// No write of this process that uses this quota before: it is used up.
    quota: BTreeMap<(usize, u64, String), u64>,
    /// No write of this resource before.
    targets: BTreeMap<(usize, u64, String), u64>,
    /// Failures of this resource's writes.
    failures: BTreeMap<(usize, u64, String), VecDeque<u64>>,
    /// Writes of this resource.
    writes: BTreeMap<(usize, u64, String), VecDeque<u64>>,
    /// What answers under way ask for: known once the process has taken them in, which may stand
    /// still when they arrive.
    coming: BTreeMap<(usize, u64, CallId), Asked>,
}

/// What a write uses: Resource Manager counts writes and deletes of a subscription apart, each
/// provider counts both together.
#[derive(Clone, Debug)]
struct Quotas {
    manager: String,
    provider: String,
}

impl Quotas {
    fn of(method: Method, path: &str) -> Self {
        let part = |name: &str| {
            let mut parts = path.split('/').skip_while(|part| *part != name);
            parts.nth(1).unwrap_or_default().to_owned()
        };
        let subscription = part("subscriptions");
        let side = if method == Method::Delete { "deletes" } else { "writes" };
        Self {
            manager: format!("{side} of {subscription}"),
            provider: format!("{} of {subscription}", part("providers")),
        }
    }
}

#[derive(Clone, Debug)]
struct Asked {
    at_ms: u64,
    target: String,
    until_ms: u64,
    /// The quota that is used up.
    quota: Option<String>,
    failed: Failed,
}

/// Whether the answer says that the write failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Failed {
    Yes,
    No,
}

impl Stage {
    /// A write is about to be sent.
    pub(crate) fn check_sending(&mut self, sent: &Sent, call: CallId, request: &Request) {
        count(&mut self.tally.checks, "S6");
        self.forget_failures();
        let target = bare_path(request).to_lowercase();
        let process = (sent.process, sent.epoch);
        let budget = &mut self.ledger.budget;
        let quotas = Quotas::of(request.method, &target);
        budget.calls.insert((process.0, process.1, call), (target.clone(), quotas.clone()));
        let key = (process.0, process.1, target.clone());
        let now_ms = self.now_ms;
        let used_up = |name: String| budget.quota.get(&(process.0, process.1, name)).copied();
        let quota = used_up(quotas.manager).max(used_up(quotas.provider)).unwrap_or(0);
        let wait = budget.targets.get(&key).copied().unwrap_or(0);
        let failures = budget.failures.get(&key).map_or(0, VecDeque::len);
        let writes = budget.writes.entry(key).or_default();
        writes.push_back(now_ms);
        while writes.front().is_some_and(|at| at + MINUTE_MS < now_ms) {
            writes.pop_front();
        }
        let writes = writes.len();
        if now_ms < quota {
            let text = format!("{target} is written {} ms before a quota allows", quota - now_ms);
            self.fail("S6", text);
        } else if now_ms < wait {
            let text = format!("{target} is written {} ms before Azure asked", wait - now_ms);
            self.fail("S6", text);
        } else if failures > FAILURES_A_MINUTE {
            let text = format!("{target} failed {failures} times within a minute");
            self.fail("S6", text);
        } else if writes > WRITES_A_MINUTE {
            let text = format!("{target} is written {writes} times within a minute");
            self.fail("S6", text);
        }
    }

    /// An answer that will have arrived at a time.
    pub(crate) fn note_answer(&mut self, sent: &Sent, call: CallId, answer: &Answer, at_ms: u64) {
        let budget = &mut self.ledger.budget;
        let key = (sent.process, sent.epoch, call);
        // Only the answer to the write itself; polls are other calls.
        let Some((target, quotas)) = budget.calls.remove(&key) else { return };
        let Answer::Reply(reply) = answer else { return };
        let failed = if reply.status >= 400 { Failed::Yes } else { Failed::No };
        let error = reply.body.as_ref().map(|body| &body["error"]);
        let quota = match error.and_then(|error| error["code"].as_str()) {
            Some("SubscriptionRequestsThrottled") => Some(quotas.manager),
            Some("TooManyRequests") => Some(quotas.provider),
            _ => None,
        };
        let said_ms = || seconds_in(error?["message"].as_str()?).map(|seconds| seconds * 1_000);
        let wait_ms = match failed {
            Failed::Yes => reply.retry_after_ms.or_else(said_ms).unwrap_or(0),
            Failed::No => 0,
        };
        let asked = Asked {
            at_ms,
            target,
            until_ms: at_ms + wait_ms,
            quota: quota.filter(|_| failed == Failed::Yes),
            failed,
        };
        budget.coming.insert(key, asked);
    }

    /// An answer has reached a process: its next step takes it in before it sends anything.
    pub(crate) fn learn_answer(&mut self, number: usize, call: CallId) {
        let epoch = self.processes[number].epoch;
        let budget = &mut self.ledger.budget;
        let Some(asked) = budget.coming.remove(&(number, epoch, call)) else { return };
        let Asked { at_ms, target, until_ms, quota, failed } = asked;
        if failed == Failed::No {
            return;
        }
        if let Some(name) = quota {
            let quota = budget.quota.entry((number, epoch, name)).or_insert(0);
            *quota = (*quota).max(until_ms);
        }
        let key = (number, epoch, target);
        let wait = budget.targets.entry(key.clone()).or_insert(0);
        *wait = (*wait).max(until_ms);
        budget.failures.entry(key).or_default().push_back(at_ms);
    }

    fn forget_failures(&mut self) {
        let now_ms = self.now_ms;
        let failures = &mut self.ledger.budget.failures;
        for times in failures.values_mut() {
            while times.front().is_some_and(|at| at + MINUTE_MS < now_ms) {
                times.pop_front();
            }
        }
        failures.retain(|_, times| !times.is_empty());
    }
}

/// The seconds in "The operation can be retried in 15 seconds", which stand in for Retry-After.
fn seconds_in(message: &str) -> Option<u64> {
    let (_, rest) = message.split_once("can be retried in ")?;
    let (number, unit) = rest.split_once(' ')?;
    number.parse().ok().filter(|_| unit.starts_with("second"))
}

#[cfg(test)]
mod tests {
    use super::seconds_in;

    #[test]
    fn seconds_stand_in_the_message() {
        let said = "The operation can be retried in 15 seconds.";
        assert_eq!(seconds_in(said), Some(15));
        assert_eq!(seconds_in("The operation can be retried in 3 minutes."), None);
        assert_eq!(seconds_in("too many requests"), None);
    }
}
