//! Which Lease, for whom, and its times.

use std::fmt;

/// Which Lease, for whom, and its times in milliseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseSettings {
    /// Namespace of the Lease.
    pub namespace: String,
    /// Name of the Lease.
    pub name: String,
    /// Who we are. By default nobody: no two processes may share a name.
    pub identity: String,
    /// How long a holder that stays silent keeps it.
    pub lease_ms: u64,
    /// How long we go on without a renewal.
    pub renew_deadline_ms: u64,
    /// Time between renewals; processes that stand by look twice as often.
    pub retry_ms: u64,
}

impl Default for LeaseSettings {
    fn default() -> Self {
        Self {
            namespace: "kube-system".into(),
            name: "ballast".into(),
            identity: String::new(),
            lease_ms: 15_000,
            renew_deadline_ms: 10_000,
            retry_ms: 2_000,
        }
    }
}

/// The longest that a wait becomes when it is spread: a fifth more.
#[must_use]
pub const fn longest_spread(ms: u64) -> u64 {
    ms.saturating_add(ms / 5)
}

impl LeaseSettings {
    /// Whether the times fit together.
    ///
    /// # Errors
    /// They do not.
    pub fn check(&self) -> Result<(), LeaseTimesError> {
        let Self { lease_ms, renew_deadline_ms, retry_ms, .. } = *self;
        if lease_ms <= renew_deadline_ms || renew_deadline_ms <= retry_ms || retry_ms == 0 {
            return Err(LeaseTimesError { lease_ms, renew_deadline_ms, retry_ms });
        }
        Ok(())
    }

    /// Time between two looks of a process that stands by. Half of the renewals': by default a
    /// Lease that was released has a holder after 1.2 s, and 1.8 s of the three that a successor
    /// has are left for the API server and for reading Azure.
    #[must_use]
    pub const fn look_ms(&self) -> u64 {
        if self.retry_ms > 1 { self.retry_ms / 2 } else { 1 }
    }

    /// How long a call may take: an attempt that hangs leaves time for another before the deadline.
    #[must_use]
    pub const fn call_limit_ms(&self) -> u64 {
        self.renew_deadline_ms / 2
    }

    /// How long a Lease that was released stays without a holder at most while another process
    /// stands by. A call that takes d may be under way at the release, one reads the Lease and one
    /// writes it: three times d come on top.
    #[must_use]
    pub const fn longest_vacancy_ms(&self) -> u64 {
        longest_spread(self.look_ms())
    }

    /// How long after its last renewal a Lease has another holder at most, if that process stood
    /// by: it runs out that long after it was seen, which is at most a look later. Three times d
    /// come on top, too.
    #[must_use]
    pub const fn longest_silence_ms(&self) -> u64 {
        self.lease_ms.saturating_add(longest_spread(self.look_ms()))
    }
}

/// The times do not fit together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseTimesError {
    lease_ms: u64,
    renew_deadline_ms: u64,
    retry_ms: u64,
}

impl fmt::Display for LeaseTimesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { lease_ms, renew_deadline_ms, retry_ms } = self;
        write!(
            f,
            "the lease times do not fit: lease {lease_ms} ms must be longer than the renew \
             deadline {renew_deadline_ms} ms, and that longer than the retry time {retry_ms} ms, \
             which is above 0"
        )
    }
}

impl std::error::Error for LeaseTimesError {}
