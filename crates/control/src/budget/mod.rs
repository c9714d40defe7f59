//! The budget of Azure calls: how many may be made, learnt from what Azure says.
//!
//! # Guarantees
//! A call is let go only when every limit that it counts against has room for it, and never before
//! Azure's `Retry-After`. A call that is not let go has a time at which to ask again.
//!
//! # How it learns
//! It starts with the published limits. `x-ms-ratelimit-remaining-*` says what is left; the refill
//! is measured from two such answers and our own calls between them, so that what others take
//! shows. A 429 closes its limit for the time that Azure asks, makes what is believed to be left
//! to us smaller, and lets a single call try it afterwards. Without refusals it grows back slowly,
//! and where a window is smaller than published and used up, one call goes beyond it, then as many
//! more as went through: what a storm taught is forgotten within seconds of its end.
//!
//! # Restart
//! A new process knows nothing of what the one before used up. It begins with the published limits
//! and believes the first answer; until that is there, ten calls at most are under way.

mod account;
mod bucket;
pub(crate) mod fair_queue;
pub mod limit;
pub(crate) mod queue;

use crate::effect::CallId;
use account::Account;
use arm::error::{ArmError, ErrorKind};
use arm::{Answer, Reply, Request, TransportFault};
use bucket::{Bucket, Tokens, Window};
use fair_queue::Shares;
use limit::limits_of;
pub use limit::{Limit, LimitKind};
use model::ServiceUid;
use queue::Queue;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const FIVE_MINUTES_MS: u64 = 300_000;

/// What is believed before Azure has said anything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Limits {
    /// The limits that Azure has published.
    #[default]
    Published,
    /// None: an emulator, or a stack that has no limits. What Azure answers still counts.
    Unknown,
}

/// How much a call is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Urgency {
    /// It may as well be made later: looking for drift.
    Background,
    /// Usual.
    Normal,
    /// Others depend on it: a poll of a write under way, a write for many Services.
    Urgent,
}

impl Urgency {
    /// What a call is worth that is made for these Services: what only one needs leaves a little
    /// for what many need.
    pub(crate) fn of(services: &BTreeSet<ServiceUid>) -> Self {
        if services.len() == 1 { Self::Normal } else { Self::Urgent }
    }
}

/// Why a call is not let go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The limit without room.
    pub limit: Limit,
    /// When to ask again.
    pub ready_ms: u64,
}

/// One limit, for metrics and status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Level {
    /// Which.
    pub limit: Limit,
    /// What was believed at first: where that is [`Limits::Unknown`], `left`, `full` and
    /// `share_percent` are no figures of Azure's, only large enough to limit nothing.
    pub start: Limits,
    /// Calls that may be made now.
    pub left: u64,
    /// Calls that may be made at once when nothing was called for long.
    pub full: u64,
    /// What is left to us of the published limit, in hundredths.
    pub share_percent: u64,
    /// Azure asked for no call before this time; 0 where it did not.
    pub closed_until_ms: u64,
    /// Calls that Azure refused since the start.
    pub throttled: u64,
}

/// Writes that wait for one limit, for metrics and status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waiting {
    /// How many.
    pub writes: u64,
    /// When it is the last one's turn, as far as can be told.
    pub until_ms: u64,
}

/// The state of all limits.
#[derive(Clone, Debug, Default)]
pub struct Budget {
    start: Limits,
    accounts: BTreeMap<Limit, Account>,
    /// The accounts of calls under way, with the call's number in each.
    tickets: BTreeMap<CallId, Vec<(Limit, u64)>>,
}

impl Budget {
    /// Begins with what is believed.
    #[must_use]
    pub fn new(start: Limits) -> Self {
        Self { start, accounts: BTreeMap::new(), tickets: BTreeMap::new() }
    }

    /// Whether a call that counts against these limits may be made now.
    ///
    /// # Errors
    /// A limit has no room: the one that has none for longest.
    pub fn ask(&mut self, limits: &[Limit], urgency: Urgency, now_ms: u64) -> Result<(), Refusal> {
        let mut worst: Option<Refusal> = None;
        for limit in limits {
            let account = self.account(limit, now_ms);
            let spare = spare(account, urgency);
            if let Err(ready_ms) = account.ask(spare, now_ms)
                && worst.as_ref().is_none_or(|w| w.ready_ms < ready_ms)
            {
                worst = Some(Refusal { limit: limit.clone(), ready_ms });
            }
        }
        worst.map_or(Ok(()), Err)
    }

    /// When as many calls may have been made, one after the other.
    pub fn ready_ms(&mut self, limits: &[Limit], calls: u64, urgency: Urgency, now_ms: u64) -> u64 {
        let ready = limits.iter().map(|limit| {
            let account = self.account(limit, now_ms);
            account.ready_ms(calls, spare(account, urgency), now_ms)
        });
        ready.max().unwrap_or(now_ms)
    }

    /// A call is made.
    pub fn take(&mut self, call: CallId, request: &Request, now_ms: u64) {
        let mut ticket = Vec::new();
        for limit in limits_of(request) {
            let number = self.account(&limit, now_ms).take(now_ms);
            ticket.push((limit, number));
        }
        self.tickets.insert(call, ticket);
    }

    /// A call has ended. True when others were waiting to see whether it would go through, and it
    /// did.
    pub fn answered(&mut self, call: CallId, answer: &Answer, now_ms: u64) -> bool {
        let Some(ticket) = self.tickets.remove(&call) else { return false };
        let reply = match answer {
            Answer::Reply(reply) => reply,
            Answer::Fault(fault) => {
                for (limit, number) in &ticket {
                    let account = self.account(limit, now_ms);
                    match fault {
                        TransportFault::NotSent(_) | TransportFault::Foreign(_) => {
                            account.not_sent(*number);
                        }
                        TransportFault::Ambiguous(_) => account.lost(*number),
                    }
                }
                return false;
            }
        };
        let refusing = refusing(reply, &ticket);
        let mut opened = false;
        for (limit, number) in &ticket {
            let account = self.account(limit, now_ms);
            match &refusing {
                Some((by, asked_ms)) if by == limit => {
                    account.refused(*number, *asked_ms, now_ms);
                    continue;
                }
                // Whether the other limits counted a refused call nobody says.
                Some(_) => account.lost(*number),
                None => opened |= account.passed(*number),
            }
            account.learn(limit.kind, *number, reply, now_ms);
        }
        opened
    }

    /// All limits that were met, in order.
    pub fn levels(&self, now_ms: u64) -> impl Iterator<Item = Level> + '_ {
        self.accounts.iter().map(move |(limit, account)| {
            let mut account = account.clone();
            account.pass(now_ms);
            Level {
                limit: limit.clone(),
                start: self.start,
                left: if account.closed_until_ms > now_ms { 0 } else { account.bucket.left() },
                full: account.bucket.size(),
                share_percent: account.bucket.share_percent(),
                closed_until_ms: account.closed_until_ms,
                throttled: account.throttled,
            }
        })
    }

    fn account(&mut self, limit: &Limit, now_ms: u64) -> &mut Account {
        let start = self.start;
        let account = self
            .accounts
            .entry(limit.clone())
            .or_insert_with(|| Account::new(bucket(limit.kind, start), start, now_ms));
        account.pass(now_ms);
        account
    }
}

/// Azure's limits, and the writes that wait for room in them.
#[derive(Debug)]
pub(crate) struct Throttle {
    pub limits: Budget,
    pub shares: Shares,
    pub queue: Queue,
    /// Since when limits are closed, by their names.
    pub closed_since_ms: BTreeMap<Arc<str>, u64>,
}

impl Throttle {
    /// Begins with what is believed of Azure's limits.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits: Budget::new(limits),
            shares: Shares::default(),
            queue: Queue::default(),
            closed_since_ms: BTreeMap::new(),
        }
    }
}

impl Account {
    /// Takes from a reply's headers what they say about this limit.
    fn learn(&mut self, kind: LimitKind, number: u64, reply: &Reply, now_ms: u64) {
        const PREFIX: &str = "x-ms-ratelimit-remaining-";
        let noun = match kind {
            LimitKind::Reads => "reads",
            LimitKind::Writes => "writes",
            LimitKind::Deletes => "deletes",
            LimitKind::NetworkReads | LimitKind::NetworkWrites => "microsoft.network/",
            LimitKind::ComputeReads | LimitKind::ComputeWrites => "microsoft.compute/",
        };
        for (name, left) in &reply.remaining {
            if !kind.is_managers() {
                if name.starts_with(noun) {
                    self.bucket.cap_left(*left, now_ms);
                }
                continue;
            }
            let Some(scope) = name.strip_prefix(PREFIX).and_then(|n| n.strip_suffix(noun)) else {
                continue;
            };
            match scope {
                "subscription-" => self.hear(number, *left, now_ms),
                // Of all principals together, or of the tenant: never more for us than that.
                _ => self.bucket.cap_left(*left, now_ms),
            }
        }
    }
}

/// The limit that refused a call, and for how long Azure wants to be left alone.
fn refusing(reply: &Reply, ticket: &[(Limit, u64)]) -> Option<(Limit, Option<u64>)> {
    if reply.status != 429 {
        return None;
    }
    let error = ArmError::of_reply(reply);
    // A resource that is busy has its own 429s; they are no quota.
    if error.kind != ErrorKind::Throttled {
        return None;
    }
    let manager = error.code.eq_ignore_ascii_case("SubscriptionRequestsThrottled");
    let provider = ticket.iter().find(|(limit, _)| !limit.kind.is_managers());
    let by = if manager { ticket.first() } else { provider.or(ticket.first()) };
    by.map(|(limit, _)| (limit.clone(), error.retry_after_ms))
}

/// What has to be left for calls that are worth more.
fn spare(account: &Account, urgency: Urgency) -> u64 {
    match urgency {
        Urgency::Background => (account.bucket.size() / 5).min(50),
        Urgency::Normal => account.reserve(),
        Urgency::Urgent => 0,
    }
}

/// The published limits, and for compute reads, of which none is published, one of ours.
fn bucket(kind: LimitKind, start: Limits) -> Bucket {
    const PLENTY: u64 = 1_000_000;
    if start == Limits::Unknown {
        return match kind {
            LimitKind::NetworkReads | LimitKind::NetworkWrites => {
                Bucket::Window(Window::new(PLENTY, FIVE_MINUTES_MS))
            }
            _ => Bucket::Tokens(Tokens::new(PLENTY, PLENTY)),
        };
    }
    match kind {
        LimitKind::Reads => Bucket::Tokens(Tokens::new(250, 25)),
        LimitKind::Writes | LimitKind::Deletes => Bucket::Tokens(Tokens::new(200, 10)),
        LimitKind::NetworkReads => Bucket::Window(Window::new(10_000, FIVE_MINUTES_MS)),
        LimitKind::NetworkWrites => Bucket::Window(Window::new(1_000, FIVE_MINUTES_MS)),
        LimitKind::ComputeReads | LimitKind::ComputeWrites => {
            Bucket::Tokens(Tokens::new(1_500, 25))
        }
    }
}

#[cfg(test)]
mod tests;
