//! What is told and measured. Nothing that decides reads it.

pub mod backends;
pub(crate) mod drift_log;
pub(crate) mod event_queue;
pub mod histogram;
pub mod history;
pub(crate) mod kubernetes_events;
pub mod latency;
pub mod reason;
pub mod tally;

use drift_log::DriftLog;
use history::History;
use kubernetes_events::Events;
use latency::Latencies;
use model::ServiceUid;
use std::collections::BTreeMap;
use std::sync::Arc;
use tally::Tally;

/// Those who look on.
#[derive(Debug, Default)]
pub(crate) struct Observers {
    pub counts: Counts,
    pub tally: Tally,
    pub latencies: Latencies,
    pub drift: DriftLog,
    pub history: History,
    pub events: Events,
    pub changes: Changes,
}

/// Ids of what Services' owners changed last, for the log.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    pub ids: BTreeMap<ServiceUid, Arc<str>>,
    /// Number of the last change.
    pub last: u64,
}

/// What has been counted since the start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Azure writes sent, by HTTP method.
    pub writes: u64,
    /// Azure reads sent, polls included.
    pub reads: u64,
    /// Kubernetes writes sent, Events not included.
    pub kubernetes: u64,
    /// Plans made.
    pub plans: u64,
    /// Azure writes that failed.
    pub failures: u64,
}
