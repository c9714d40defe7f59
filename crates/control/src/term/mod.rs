//! The term: whether this process may write, and what may be another's since it may.

use crate::event::Leadership;
use model::plan::Object;
use model::{Pause, ServiceUid};
use std::collections::BTreeSet;

/// The right to write, and what is not certain since it was gained.
#[derive(Debug)]
pub(crate) struct Term {
    pub leadership: Leadership,
    pub barrier: TakeoverBarrier,
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

    /// When lists are to be read again.
    pub fn wake_ms(&self) -> Option<u64> {
        match self.barrier {
            TakeoverBarrier::Until(at) => Some(at),
            TakeoverBarrier::Done | TakeoverBarrier::Reading(_) => None,
        }
    }
}
