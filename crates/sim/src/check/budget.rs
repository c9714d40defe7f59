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
    /// What answers under way will have asked for once they have arrived.
    coming: Vec<(u64, Asked)>,
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
    process: (usize, u64),
    target: Option<String>,
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
        self.learn_answers();
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
        let asked = match answer {
            Answer::Reply(reply) if reply.status >= 400 => {
                let code = reply.body.as_ref().and_then(|b| b["error"]["code"].as_str());
                let quota = match code {
                    Some("SubscriptionRequestsThrottled") => Some(quotas.manager),
                    Some("TooManyRequests") => Some(quotas.provider),
                    _ => None,
                };
                Asked {
                    process: (sent.process, sent.epoch),
                    target: Some(target),
                    until_ms: at_ms + reply.retry_after_ms.unwrap_or(0),
                    quota,
                    failed: Failed::Yes,
                }
            }
            Answer::Reply(_) => Asked {
                process: (sent.process, sent.epoch),
                target: Some(target),
                until_ms: 0,
                quota: None,
                failed: Failed::No,
            },
            Answer::Fault(_) => return,
        };
        budget.coming.push((at_ms, asked));
    }

    fn learn_answers(&mut self) {
        let now_ms = self.now_ms;
        let budget = &mut self.ledger.budget;
        let coming = std::mem::take(&mut budget.coming);
        for (at_ms, asked) in coming {
            // What arrives at this very moment may not have been read yet.
            if at_ms >= now_ms {
                budget.coming.push((at_ms, asked));
                continue;
            }
            let Asked { process, target, until_ms, quota, failed } = asked;
            if let Some(name) = quota {
                let quota = budget.quota.entry((process.0, process.1, name)).or_insert(0);
                *quota = (*quota).max(until_ms);
            }
            let Some(target) = target else { continue };
            let key = (process.0, process.1, target);
            if failed == Failed::Yes {
                let wait = budget.targets.entry(key.clone()).or_insert(0);
                *wait = (*wait).max(until_ms);
                budget.failures.entry(key).or_default().push_back(at_ms);
            }
        }
        for times in budget.failures.values_mut() {
            while times.front().is_some_and(|at| at + MINUTE_MS < now_ms) {
                times.pop_front();
            }
        }
        budget.failures.retain(|_, times| !times.is_empty());
    }
}
