//! Verdicts about Services. Only `claim` makes them, which `crates/tidy` sees to; what they hold is
//! private.

use model::report::Finding;

/// Why a Service does not get what it asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal(Finding);

impl Refusal {
    /// Refuses for this reason.
    pub fn new(finding: Finding) -> Self {
        Self(finding)
    }

    /// What its owner is told.
    pub fn finding(&self) -> &Finding {
        &self.0
    }

    /// What becomes of a Service that is refused.
    pub fn freezes(&self) -> Frozen {
        Frozen(())
    }
}

/// Shows that it was decided that a Service keeps what it has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frozen(());

impl Frozen {
    /// Decides that it does.
    pub fn new() -> Self {
        Self(())
    }
}
