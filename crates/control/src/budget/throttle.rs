//! When and in which order Azure writes are sent.

use super::fair_queue::Shares;
use super::queue::Queue;
use super::{Budget, Limits};
use std::collections::BTreeMap;
use std::sync::Arc;

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
