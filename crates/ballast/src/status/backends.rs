//! The part of the status document about backends: which of them answer Azure's health probes.

use super::StatusDocument;
use crate::backends::{BackendHealth, is_usual_of};
use control::Controller;
use model::{Backend, ProbeState, ServiceBackends, ServiceUid};
use serde::{Deserialize, Serialize};

/// BackendHealth of one Service that are listed; the others are counted.
const LISTED: usize = 50;

/// The backends of a Service.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BackendsStatus {
    /// How many answer all probes.
    pub up: usize,
    /// How many answer no probe.
    pub down: usize,
    /// How many there are.
    pub total: usize,
    /// Whether it is usual that some do not: with `externalTrafficPolicy: Local` only nodes with a
    /// ready Pod of the Service answer.
    pub some_down_is_usual: bool,
    /// Those that do not answer all probes, the worst first; at most fifty.
    pub ailing: Vec<BackendStatus>,
    /// How many of those are not listed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more: usize,
}

/// One backend.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BackendStatus {
    /// The node; absent where no node has the address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Its address in the pool.
    pub address: String,
    /// `down`, or `partly` where some probes are answered.
    pub state: String,
    /// Since when, in milliseconds since the Unix epoch.
    pub since_ms: u64,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

impl BackendsStatus {
    /// Of what was found.
    #[must_use]
    pub fn of(found: &ServiceBackends, some_down_is_usual: bool) -> Self {
        let listed = found.ailing().take(LISTED).map(BackendStatus::of).collect();
        let (up, down) = (found.count(ProbeState::Up), found.count(ProbeState::Down));
        let total = found.all.len();
        let more = (total - up).saturating_sub(LISTED);
        Self { up, down, total, some_down_is_usual, ailing: listed, more }
    }

    /// Whether none answers any probe.
    #[must_use]
    pub fn is_out(&self) -> bool {
        self.down == self.total
    }

    /// How many are up, in short.
    #[must_use]
    pub fn brief(&self) -> String {
        format!("{}/{}", self.up, self.total)
    }
}

impl BackendStatus {
    fn of(backend: &Backend) -> Self {
        Self {
            node: backend.node.as_ref().map(ToString::to_string),
            address: backend.address.to_string(),
            state: backend.state.word().to_owned(),
            since_ms: backend.since_ms,
        }
    }

    /// The node's name, or the address.
    #[must_use]
    pub fn name(&self) -> &str {
        self.node.as_deref().unwrap_or(&self.address)
    }
}

impl StatusDocument {
    /// Adds what is known of the backends, where that is read.
    pub fn add_backends(&mut self, controller: &Controller, backends: Option<&BackendHealth>) {
        let Some(backends) = backends else { return };
        for service in &mut self.services {
            let uid = ServiceUid::new(&service.uid);
            let usual = is_usual_of(controller, &uid);
            let found = backends.of(&uid, self.now_ms);
            service.backends = found.map(|found| BackendsStatus::of(&found, usual));
        }
        self.backend_trouble = backends.trouble().map(|why| why.to_string());
    }
}
