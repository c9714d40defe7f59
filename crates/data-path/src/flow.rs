//! Flows: one client's connection, or its exchange of datagrams, with a frontend.

use std::net::{IpAddr, SocketAddr};

use serde::Serialize;

use super::table::{EntryPoint, Floating};

/// The five-tuple.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Flow {
    /// Who knocks.
    pub client: SocketAddr,
    /// Where.
    pub entry: EntryPoint,
}

/// Where a flow is forwarded to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seat {
    /// The backend.
    pub backend: IpAddr,
    /// The port there.
    pub port: u16,
    /// Whether it is addressed by the frontend's address.
    pub floating: Floating,
}

/// Whether a flow is forwarded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// To this backend.
    To(Seat),
    /// To nobody.
    Refused(Refusal),
}

/// Why a flow is not forwarded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Refusal {
    /// No rule takes it.
    NoRule,
    /// The rule's pool is empty.
    NoBackend,
    /// Nobody in the pool takes new flows.
    NoneHealthy,
    /// There are as many flows as the data path holds.
    Full,
}

/// Why a flow ends that neither side ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Ending {
    /// It was idle; both sides hear of it.
    IdleReset,
    /// It was idle; nobody hears of it, and nothing is forwarded any more.
    IdleSilent,
    /// No rule takes it any more.
    RuleGone,
    /// Its backend left the pool.
    BackendGone,
    /// The admin state of its backend became Down, where that resets.
    AdminDown,
    /// No backend is healthy, where that ends flows.
    NoneHealthy,
    /// Its datagrams go to another backend from now on.
    Moved,
}

/// How many flows there were.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FlowCounts {
    /// Flows that were forwarded to a backend.
    pub admitted: u64,
    /// Flows that were not, and why: no rule takes them.
    pub without_rule: u64,
    /// The pool is empty.
    pub without_backend: u64,
    /// Nobody in it takes new flows.
    pub none_healthy: u64,
    /// Too many flows.
    pub full: u64,
    /// Flows that the data path itself ended.
    pub ended: u64,
    /// Flows of datagrams whose next one goes to another backend.
    pub moved: u64,
}
