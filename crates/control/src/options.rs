//! Intervals, limits and names that a process is started with.

use crate::budget::Limits;
use crate::event::Leadership;
use model::ServiceName;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Choices that are the controller's own and not the cloud config's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Interval of the drift check: each list that is planned on is read again after it.
    pub check_interval_ms: u64,
    /// How long a write that could be sent waits for others that are about to join it.
    pub gather_ms: u64,
    /// Azure writes under way at a time.
    pub writes_at_once: usize,
    /// Azure's limits as assumed until its answers show others.
    pub limits: Limits,
    /// Kubernetes writes under way at a time.
    pub kubernetes_writes_at_once: usize,
    /// Prefix of correlation ids and Event names; differs between two processes.
    pub instance: String,
    /// How long a Pod waits for our readiness gate before the gate opens anyway.
    pub gate_timeout_ms: u64,
    /// Values of `spec.loadBalancerClass` that are ours; Services without a class always are.
    pub classes: BTreeSet<String>,
    /// Whether the right to write is held from the start.
    pub leadership: Leadership,
    /// UID of the cluster, where it could be read.
    pub cluster_uid: Option<Arc<str>>,
    /// The ConfigMap that is the ledger.
    pub ledger: ServiceName,
}

/// The ledger of the processes that take turns by a Lease: two that do not share the Lease do not
/// share the ledger.
#[must_use]
pub fn ledger_of(namespace: &str, lease: &str) -> ServiceName {
    ServiceName::new(namespace, format!("{lease}-ledger"))
}

impl Default for Options {
    fn default() -> Self {
        Self {
            check_interval_ms: 120_000,
            gather_ms: 2_000,
            writes_at_once: 200,
            limits: Limits::Published,
            kubernetes_writes_at_once: 64,
            gate_timeout_ms: 60_000,
            instance: "00000000".to_owned(),
            classes: BTreeSet::new(),
            leadership: Leadership::Held,
            cluster_uid: None,
            ledger: ledger_of("kube-system", "ballast"),
        }
    }
}
