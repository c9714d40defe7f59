//! Verdicts about Services. Only this room makes them, and the compiler sees to it: what they hold
//! is private.

use crate::ask::rules::FindingRule;
use model::report::Finding;

/// Why a Service does not get what it asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal(Finding);

impl Refusal {
    pub(in crate::claim) fn new(finding: Finding) -> Self {
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

/// Shows that it was decided here that a Service keeps what it has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frozen(());

impl Frozen {
    pub(in crate::claim) fn new() -> Self {
        Self(())
    }
}

/// The finding of a Service that its owner holds back.
pub(in crate::claim) fn hold(rule: &FindingRule, key: &str) -> Finding {
    rule.found(key, "")
}
