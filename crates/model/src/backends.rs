//! Whether the backends of a Service answer Azure's health probes. Shown and measured; nothing that
//! decides reads it.

use crate::id::NodeName;
use serde::Serialize;
use std::net::IpAddr;

/// What health probes found of a backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ProbeState {
    /// No probe is answered: it takes no new connections.
    Down,
    /// Some probes are answered: of some ports, or for a part of the minute.
    Partly,
    /// All probes are answered.
    Up,
}

impl ProbeState {
    /// Every state, those first that need attention.
    pub const ALL: [Self; 3] = [Self::Down, Self::Partly, Self::Up];

    /// Its name in metrics and JSON.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Down => "down",
            Self::Partly => "partly",
            Self::Up => "up",
        }
    }

    /// What several findings about one backend come to.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        if self == other { self } else { Self::Partly }
    }
}

/// One backend of a Service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Backend {
    /// The node that has the address, where one is known to.
    pub node: Option<NodeName>,
    /// Its address; of a node with several the first.
    pub address: IpAddr,
    /// What the probes found last.
    pub state: ProbeState,
    /// Since when, in milliseconds since the Unix epoch: to the minute, as Azure's metric is, and
    /// at the earliest the start of what was read.
    pub since_ms: u64,
}

impl Backend {
    /// The node's name, or the address where no node has it.
    #[must_use]
    pub fn name(&self) -> String {
        self.node.as_ref().map_or_else(|| self.address.to_string(), ToString::to_string)
    }
}

/// The backends of a Service, as they were measured last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ServiceBackends {
    /// When they were read, in milliseconds since the Unix epoch.
    pub read_ms: u64,
    /// By node and address; never empty.
    pub all: Vec<Backend>,
}

impl ServiceBackends {
    /// How many are in a state.
    #[must_use]
    pub fn count(&self, state: ProbeState) -> usize {
        self.all.iter().filter(|backend| backend.state == state).count()
    }

    /// Whether no backend answers any probe: clients get no connection.
    #[must_use]
    pub fn is_out(&self) -> bool {
        self.count(ProbeState::Down) == self.all.len()
    }

    /// Those that do not answer all probes, the worst first.
    pub fn ailing(&self) -> impl Iterator<Item = &Backend> {
        let bad = ProbeState::ALL.into_iter().filter(|state| *state != ProbeState::Up);
        bad.flat_map(|state| self.all.iter().filter(move |backend| backend.state == state))
    }
}
