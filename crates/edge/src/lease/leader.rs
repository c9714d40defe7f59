//! Who leads, for those who look on.

use super::{Held, LeaseSettings};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Who holds the lease, as the election last saw it. Clones look at the same.
#[derive(Clone, Debug)]
pub struct Leader {
    lease: Arc<str>,
    identity: Arc<str>,
    held: Held,
    seen: Arc<Mutex<Seen>>,
}

/// Who may write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// This process.
    Ours,
    /// The process with this name in the Lease.
    Theirs(String),
    /// Nobody that is known; and why.
    Nobody(String),
}

#[derive(Debug)]
struct Seen {
    standing: Standing,
    changes: u64,
}

impl Leader {
    pub(super) fn new(settings: &LeaseSettings, held: Held) -> Self {
        let standing = Standing::Nobody("it has not been read yet".to_owned());
        Self {
            lease: format!("{}/{}", settings.namespace, settings.name).into(),
            identity: settings.identity.as_str().into(),
            held,
            seen: Arc::new(Mutex::new(Seen { standing, changes: 0 })),
        }
    }

    /// The Lease, as `namespace/name`.
    #[must_use]
    pub fn lease(&self) -> &str {
        &self.lease
    }

    /// This process's name in it.
    #[must_use]
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// Who may write now. A process that stood still does not take itself for the leader.
    #[must_use]
    pub fn standing(&self, now_ms: u64) -> Standing {
        let standing = self.seen().standing.clone();
        if standing == Standing::Ours && !self.held.allows(now_ms) {
            return Standing::Nobody("it was not renewed in time".to_owned());
        }
        standing
    }

    /// How often it has become another's.
    #[must_use]
    pub fn changes(&self) -> u64 {
        self.seen().changes
    }

    pub(super) fn note(&self, standing: Standing) {
        let mut seen = self.seen();
        if seen.standing != standing {
            seen.standing = standing;
            seen.changes += 1;
        }
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
