//! One lane a resource: idle, or one write under way.

use crate::request;
use crate::retry::Retry;
use crate::trouble::{Failure, Trouble};
use arm::Request;
use arm::body;
use arm::operation::Operation;
use arm::path::Contract;
use model::plan::{Action, Change};
use model::{ResourceId, ServiceUid};
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

/// The state of one resource's writes.
#[derive(Debug, Default)]
pub(crate) struct Lane {
    /// The write under way.
    pub work: Option<Work>,
    pub retry: Retry,
    /// How often in a row Azure did not take the write without a fault of its own: too many
    /// requests, or another client's write that came first. What waits for the write goes on
    /// waiting: that is no failure.
    pub turned_away: u32,
    /// Why the last writes failed.
    pub trouble: Option<Trouble>,
    /// Since when a write waits for others to join it.
    pub gathering_since_ms: Option<u64>,
    /// When the last write ended that may have changed the resource.
    pub ended_ms: Option<u64>,
    /// A list that came while a write was under way was not believed.
    pub overruled: bool,
    /// A list showed the resource while it was being made: it may be another process's, and what
    /// is in it is not known before the write ends.
    pub hidden: bool,
    /// The last write that succeeded, for as long as it is not seen that Azure keeps it.
    pub last: Option<Acknowledged>,
    /// How many writes of pool members the load balancer shows.
    pub members_shown: u64,
    /// How often it was read again before the write that is due.
    pub rereads: u32,
}

/// A write that Azure has acknowledged.
#[derive(Debug)]
pub(crate) struct Acknowledged {
    /// What was carried out.
    pub action: Action,
    /// The same has to be written again: Azure did not keep it.
    pub lost: bool,
}

impl Acknowledged {
    /// Whether an action asks for what was acknowledged. What it was planned on is another each
    /// time: a write gives its resource another ETag, kept or not.
    pub fn is(&self, action: &Action) -> bool {
        match (&self.action, action) {
            (Action::Put { after, .. }, Action::Put { after: again, .. }) => {
                after == again || body::write_resource(after) == body::write_resource(again)
            }
            (Action::Delete { .. }, Action::Delete { .. }) => true,
            (last, action) => last == action,
        }
    }
}

/// A write under way.
#[derive(Debug)]
pub(crate) struct Work {
    /// What is carried out.
    pub change: Change,
    /// Correlation id of all its calls.
    pub correlation: String,
    /// How far it is.
    pub stage: Stage,
    pub pending: Pending,
    /// When it was sent.
    pub sent_ms: u64,
    /// Addresses that it changes in the Service Gateway's table, or has in a load balancer's pools.
    pub addresses: Arc<BTreeSet<IpAddr>>,
    /// Services that it is made for and that were set aside when it was sent: what Azure has
    /// refused of them is not in it.
    pub held: BTreeSet<ServiceUid>,
}

impl Work {
    /// Services that it has all of what they ask for of its resource: its answer tells whether
    /// Azure takes that.
    pub fn tried(&self) -> BTreeSet<ServiceUid> {
        self.change.causes.difference(&self.held).cloned().collect()
    }
}

/// How far a write is.
#[derive(Debug)]
pub(crate) enum Stage {
    /// The operation runs.
    Operating(Box<Operation>),
    /// It has succeeded; the resource is read to see what it has come to.
    Verifying,
    /// It failed in a way that leaves the resource's state open; the resource is read.
    Rereading(Outcome),
}

/// What is known of a write that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Azure did not take it: the resource is another than it was planned on.
    Not,
    /// Azure may have taken it: while the resource is being changed it shows what was asked for,
    /// and what was there before comes back should the operation be canceled.
    Open,
}

/// What a write awaits.
#[derive(Debug)]
pub(crate) enum Pending {
    /// The answer to a call.
    Answer,
    /// The time of the next poll.
    Poll {
        /// What is sent then.
        request: Request,
        /// When.
        at_ms: u64,
        /// Not before, for want of budget.
        held_ms: u64,
    },
}

impl Lane {
    /// The resource of a write is read at a time.
    pub fn look_again(&mut self, contract: Contract, id: &ResourceId, work: Work, at_ms: u64) {
        let request = request::of_read(contract, id, work.correlation.clone());
        let pending = Pending::Poll { request, at_ms, held_ms: 0 };
        self.work = Some(Work { pending, ..work });
    }

    /// A call about the resource failed.
    pub fn note(&mut self, failure: Failure<'_>, causes: &BTreeSet<ServiceUid>, now_ms: u64) {
        self.trouble = Some(Trouble::after(self.trouble.take(), failure, causes, now_ms));
    }

    /// Nothing is wrong with its writes any more.
    pub fn recover(&mut self) {
        self.retry.succeeded();
        self.turned_away = 0;
        self.trouble = None;
    }

    /// Whether a write may be sent now.
    pub fn is_free(&self, now_ms: u64) -> bool {
        self.work.is_none() && self.retry.is_due(now_ms)
    }

    /// When what it does next was due, were there budget enough.
    pub fn due_ms(&self) -> u64 {
        match &self.work {
            Some(Work { pending: Pending::Poll { at_ms, .. }, .. }) => *at_ms,
            Some(_) | None => 0,
        }
    }

    /// When this lane needs attention again without an answer.
    pub fn wake_ms(&self) -> Option<u64> {
        match &self.work {
            Some(Work { pending: Pending::Poll { at_ms, held_ms, .. }, .. }) => {
                Some(*at_ms.max(held_ms))
            }
            Some(_) => None,
            None => self.retry.next_ms(),
        }
    }
}
