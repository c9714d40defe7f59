//! The term: whether this process may write, and what may be another's since it may.

use crate::event::Leadership;
use crate::reads::LIST_LAG_MS;
use model::plan::Object;
use model::{Pause, ServiceUid};
use std::collections::{BTreeMap, BTreeSet};

/// The right to write, and what is not certain since it was gained.
#[derive(Debug)]
pub(crate) struct Term {
    pub leadership: Leadership,
    pub barrier: TakeoverBarrier,
    /// Whether the barrier was passed in this term: lists show what was written before the term,
    /// and only who was heard of since waits for a barrier of its own.
    pub passed: bool,
    /// Since when the barrier is waited for.
    pub waited_ms: u64,
    /// What was another process's and is not certain yet, and when this process heard of each.
    pub heard_ms: BTreeMap<ServiceUid, u64>,
    pub inheritance: Inheritance,
    /// Finalizers of ours that were asked for and not seen yet.
    pub claims: BTreeSet<Object>,
    /// Services of another process's that were not looked for in lists yet.
    pub unlooked: BTreeSet<ServiceUid>,
    /// What an operator has paused.
    pub paused: Option<Paused>,
}

/// How far lists have come that may be older than what another process wrote before us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TakeoverBarrier {
    /// They are old enough, or nothing was inherited.
    Done,
    /// They are read again at this time.
    Until(u64),
    /// They have been read again since then, and until nobody changes any of it any more: an
    /// operation of another process's may yet be canceled, and what it took away comes back.
    Reading(u64),
}

/// Whether what another process left was taken note of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Inheritance {
    /// Not yet: it is at the next read of the tables.
    #[default]
    Open,
    /// It was.
    Taken,
}

/// What is paused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Paused {
    pub pause: Pause,
    /// Since when this process knows, in milliseconds of the controller's clock.
    pub since_ms: u64,
}

impl Term {
    /// Begins with or without the right to write.
    pub fn new(leadership: Leadership) -> Self {
        Self {
            leadership,
            barrier: TakeoverBarrier::Done,
            passed: false,
            waited_ms: 0,
            heard_ms: BTreeMap::new(),
            inheritance: Inheritance::Open,
            claims: BTreeSet::new(),
            unlooked: BTreeSet::new(),
            paused: None,
        }
    }

    /// Whether this process may write.
    pub fn is_held(&self) -> bool {
        self.leadership == Leadership::Held
    }

    /// A term begins: nothing of it is certain.
    pub fn begin(&mut self) {
        self.barrier = TakeoverBarrier::Done;
        self.passed = false;
        self.heard_ms.clear();
        self.inheritance = Inheritance::Open;
        self.claims.clear();
    }

    /// Something was another process's. Those that are heard of together wait together; whoever
    /// comes later puts the barrier of those that wait already off no further.
    pub fn hear(&mut self, uid: &ServiceUid, now_ms: u64) {
        self.heard_ms.insert(uid.clone(), now_ms);
        let at_ms = ripe_ms(now_ms);
        self.barrier = match self.barrier {
            TakeoverBarrier::Done => {
                self.waited_ms = now_ms;
                TakeoverBarrier::Until(at_ms)
            }
            TakeoverBarrier::Until(before_ms) => {
                let latest_ms = self.waited_ms + 2 * LIST_LAG_MS;
                TakeoverBarrier::Until(at_ms.min(latest_ms).max(before_ms))
            }
            reading @ TakeoverBarrier::Reading(_) => reading,
        };
    }

    /// Whether lists that were asked for since a time may not show what was written for this.
    pub fn is_late(&self, uid: &ServiceUid, since_ms: u64) -> bool {
        self.heard_ms.get(uid).is_some_and(|heard_ms| ripe_ms(*heard_ms) > since_ms)
    }

    /// Lists that were asked for since a time show what was written for all that was heard of long
    /// enough before; the rest waits for the next ones.
    pub fn pass(&mut self, since_ms: u64, now_ms: u64) {
        self.passed = true;
        self.heard_ms.retain(|_, heard_ms| ripe_ms(*heard_ms) > since_ms);
        self.waited_ms = now_ms;
        self.barrier = match self.heard_ms.values().max() {
            Some(last_ms) => TakeoverBarrier::Until(ripe_ms(*last_ms)),
            None => TakeoverBarrier::Done,
        };
    }

    /// Whether lists show what was written before the term.
    pub fn is_certain(&self) -> bool {
        self.passed || self.barrier == TakeoverBarrier::Done
    }

    /// When lists are to be read again.
    pub fn wake_ms(&self) -> Option<u64> {
        match self.barrier {
            TakeoverBarrier::Until(at) => Some(at),
            TakeoverBarrier::Done | TakeoverBarrier::Reading(_) => None,
        }
    }
}

/// From when on lists show what was written before something was heard of.
fn ripe_ms(heard_ms: u64) -> u64 {
    heard_ms + LIST_LAG_MS
}
