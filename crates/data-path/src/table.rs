//! What the data path forwards by: rules, backends and probes, read from load balancers.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::Serialize;

/// What a rule forwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Transport {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

/// The frontend ports of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ports {
    /// One.
    One(u16),
    /// All of them, of TCP and UDP: "HA ports".
    All,
}

/// Where clients knock: an address, a transport and a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct EntryPoint {
    /// The frontend's address.
    pub address: IpAddr,
    /// TCP or UDP.
    pub transport: Transport,
    /// The port.
    pub port: u16,
}

/// What a backend is chosen by (`loadDistribution`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Distribution {
    /// `Default`: both addresses, both ports and the transport.
    FiveTuple,
    /// `SourceIP`: both addresses.
    SourceIp,
    /// `SourceIPProtocol`: both addresses and the transport.
    SourceIpProtocol,
}

/// What a client and a backend hear of a flow that was idle for too long (`enableTcpReset`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdleReset {
    /// A reset.
    Sent,
    /// Nothing.
    Silent,
}

/// Whether packets arrive with the frontend's address (`enableFloatingIP`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Floating {
    /// They do.
    Kept,
    /// They carry the backend's.
    Rewritten,
}

/// The SKU of a load balancer, as far as flows depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sku {
    /// Basic: TCP flows end once no backend is healthy.
    Basic,
    /// Standard, and Service.
    Standard,
}

/// `adminState` of a backend address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admin {
    /// The probe decides.
    None,
    /// It takes flows whatever the probe says.
    Up,
    /// It takes no new flows whatever the probe says.
    Down,
}

/// One address of a pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Backend {
    /// The address.
    pub address: IpAddr,
    /// Its admin state.
    pub admin: Admin,
}

/// The id of a probe, folded.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ProbeKey(pub String);

/// How a probe asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProbeKind {
    /// It connects. Https probes ask so, too: the emulator has no TLS.
    Tcp,
    /// It gets a path, and 200 counts.
    Http {
        /// The path.
        path: String,
    },
}

/// A health probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    /// How it asks.
    pub kind: ProbeKind,
    /// The port it asks at.
    pub port: u16,
    /// From one question to the next.
    pub interval_ms: u64,
    /// Equal answers in a row that change its mind.
    pub threshold: u32,
}

/// A load balancing rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// Its id, folded.
    pub id: String,
    /// The frontend's address.
    pub frontend: IpAddr,
    /// The transport; rules for all ports take both.
    pub transport: Transport,
    /// The ports it takes.
    pub ports: Ports,
    /// The port at backends; `None` keeps the frontend's.
    pub backend_port: Option<u16>,
    /// How backends are chosen.
    pub distribution: Distribution,
    /// How long a TCP flow may be idle.
    pub idle_ms: u64,
    /// What is heard of one that was idle for longer.
    pub idle_reset: IdleReset,
    /// Whether packets keep the frontend's address.
    pub floating: Floating,
    /// Its probe.
    pub probe: Option<ProbeKey>,
    /// Its backends, by address.
    pub backends: Vec<Backend>,
    /// The SKU of its load balancer.
    pub sku: Sku,
}

impl Rule {
    /// Whether an entry point is this rule's.
    #[must_use]
    pub fn takes(&self, entry: EntryPoint) -> bool {
        let port = match self.ports {
            Ports::One(port) => port == entry.port && self.transport == entry.transport,
            Ports::All => true,
        };
        port && self.frontend == entry.address
    }

    /// The backend with an address.
    #[must_use]
    pub fn backend(&self, address: IpAddr) -> Option<&Backend> {
        self.backends.iter().find(|backend| backend.address == address)
    }
}

/// Everything that is forwarded by.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tables {
    /// Rules, by id; of two that take an entry point, the one for its very port comes first.
    pub rules: Vec<Rule>,
    /// Probes.
    pub probes: BTreeMap<ProbeKey, Probe>,
}

impl Tables {
    /// The rule that takes an entry point: one for its port, else one for all ports.
    #[must_use]
    pub fn rule(&self, entry: EntryPoint) -> Option<&Rule> {
        let mut found = self.rules.iter().filter(|rule| rule.takes(entry));
        let first = found.next()?;
        if first.ports == Ports::All {
            return Some(found.find(|rule| rule.ports != Ports::All).unwrap_or(first));
        }
        Some(first)
    }

    /// The entry points that can be listened at, in order. Rules for all ports have none.
    #[must_use]
    pub fn entry_points(&self) -> Vec<EntryPoint> {
        let entry = |rule: &Rule| match rule.ports {
            Ports::One(port) => {
                Some(EntryPoint { address: rule.frontend, transport: rule.transport, port })
            }
            Ports::All => None,
        };
        let mut entry_points: Vec<EntryPoint> = self.rules.iter().filter_map(entry).collect();
        entry_points.sort();
        entry_points.dedup();
        entry_points
    }
}
