//! The least that a thing takes: what Azure's limits let through, and the longest chain of calls
//! of which each needs the one before.

use azure_emulator::Switch;
use control::budget::Limits;

/// A call, there and back.
const CALL_MS: u64 = 200;
/// How long a write runs in Azure after it was taken on.
const OPERATION_MS: u64 = 500;
/// What Azure asks for between an operation's begin and the first look at it.
const RETRY_AFTER_MS: u64 = 1_000;

/// Under which terms Azure answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Terms {
    /// At once and without limits.
    Unlimited,
    /// 200 ms a call and 500 ms an operation, without limits.
    Latency,
    /// As fast, under the limits that Azure has published.
    Published,
}

impl Terms {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Unlimited, Self::Latency, Self::Published];

    /// In a word or two.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Unlimited => "no limit",
            Self::Latency => "latency",
            Self::Published => "published limits",
        }
    }

    pub(super) fn call_ms(self) -> u64 {
        if self == Self::Unlimited { 0 } else { CALL_MS }
    }

    pub(super) fn operation_ms(self) -> u64 {
        if self == Self::Unlimited { 0 } else { OPERATION_MS }
    }

    pub(super) fn throttle(self) -> Switch {
        if self == Self::Published { Switch::On } else { Switch::Off }
    }

    /// What the controller believes at its start.
    pub(super) fn limits(self) -> Limits {
        if self == Self::Published { Limits::Published } else { Limits::Unknown }
    }
}

/// What has to be done at least.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Demand {
    /// Writes that are long-running operations.
    pub operations: u64,
    /// Writes that are answered when they are done.
    pub calls: u64,
    /// Operations that need each other, one after the other.
    pub chained_operations: u64,
    /// Calls in that chain that are answered when they are done.
    pub chained_calls: u64,
}

impl Demand {
    /// All writes.
    #[must_use]
    pub fn writes(&self) -> u64 {
        self.operations + self.calls
    }

    /// The least time: the slower of chain and limits.
    #[must_use]
    pub fn floor_ms(&self, terms: Terms) -> u64 {
        let limits = if terms == Terms::Published { self.limits_ms() } else { 0 };
        self.chain_ms(terms).max(limits)
    }

    /// An operation is the write, the pause that Azure asks for, a poll and a look at what it has
    /// come to.
    fn chain_ms(&self, terms: Terms) -> u64 {
        let operation = match terms.operation_ms() {
            0 => terms.call_ms(),
            ms => 3 * terms.call_ms() + ms.max(RETRY_AFTER_MS),
        };
        self.chained_operations * operation + self.chained_calls * terms.call_ms()
    }

    /// Resource Manager takes 200 writes and then 10 a second, 250 reads and then 25 a second; the
    /// network provider takes 1,000 writes and 10,000 reads in five minutes. An operation costs a
    /// poll and a look. All limits run at the same time, so the slowest counts.
    fn limits_ms(&self) -> u64 {
        let (writes, reads) = (self.writes(), 2 * self.operations);
        let manager_writes = writes.saturating_sub(200) * 100;
        let manager_reads = reads.saturating_sub(250) * 40;
        let network_writes = writes.saturating_sub(1) / 1_000 * 300_000;
        let network_reads = reads.saturating_sub(1) / 10_000 * 300_000;
        manager_writes.max(manager_reads).max(network_writes).max(network_reads)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thousand_services_take_five_minutes_and_nine_hundred_seventy_seconds() {
        let of = |writes| Demand { operations: writes, ..Demand::default() };
        assert_eq!(of(1_005).floor_ms(Terms::Published), 300_000);
        assert_eq!(of(904).floor_ms(Terms::Published), 70_400);
        assert_eq!(of(1_005).floor_ms(Terms::Latency), 0);
    }

    #[test]
    fn a_chain_is_an_operation_after_the_other() {
        let chain = Demand { chained_operations: 3, chained_calls: 1, ..Demand::default() };
        assert_eq!(chain.floor_ms(Terms::Unlimited), 0);
        assert_eq!(chain.floor_ms(Terms::Latency), 3 * 1_600 + 200);
        assert_eq!(chain.floor_ms(Terms::Published), 3 * 1_600 + 200);
    }
}
