//! What must hold, looked up in the emulators and never in the controller's mind.

pub mod api;
pub mod azure;
pub mod budget;
pub mod drain;
pub mod ends;
pub mod form;
pub mod promised;
pub mod remains;
pub mod tables;
pub mod victims;

use std::collections::{BTreeMap, BTreeSet};

/// A rule that was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Breach {
    /// Which, as in `S3`.
    pub rule: &'static str,
    /// How.
    pub text: String,
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
}

/// A rule and what it says.
pub const RULES: [(&str, &str); 15] = [
    ("S1", "nothing without our mark is written or deleted"),
    ("S2", "every PUT carries what is not ours unharmed"),
    ("S3", "no ready backend is removed, no pool emptied, no address changed unasked"),
    ("S4", "finalizer before the first write and until the last; references in order"),
    ("S5", "only the leader's writes take effect"),
    ("S6", "Retry-After is honoured and retries are bounded"),
    ("S7", "a Service that cannot be satisfied delays no other"),
    ("S8", "no secret is told"),
    ("S9", "no tenant affects another"),
    ("L1", "Azure equals desired within bounded time and stays so"),
    ("L2", "nothing of ours is left after all Services are deleted"),
    ("L3", "nothing waits without a wake-up"),
    ("L4", "status tells the truth"),
    ("L5", "without faults, writes are at most 1.2 times the minimum"),
    ("differential", "the end with faults equals the end without"),
];

/// What checks remember between writes.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    /// Under which term of the lease a resource was last changed.
    pub(crate) terms: BTreeMap<String, u64>,
    /// Writes of who led before that an ETag kept off.
    pub fenced: u64,
    /// Frontends to their address and the revision their Service was last edited at.
    pub(crate) addresses: BTreeMap<(String, String), (String, u64)>,
    /// Which life of which process last changed a Service Gateway's addresses.
    pub(crate) tables_by: Option<(usize, u64)>,
    /// Addresses of frontends that rules of a Service have led to, by its UID.
    pub(crate) opened: BTreeMap<String, BTreeSet<String>>,
    /// When people last edited Azure by hand, or changed the cloud config.
    pub(crate) hands_ms: Option<u64>,
    /// Addresses of public IPs that people deleted, and how often processes had died by then.
    pub(crate) deleted: BTreeMap<String, u64>,
    /// What answers ask of writers.
    pub(crate) budget: budget::Budget,
    /// Writes that changed something, for L5.
    pub writes: u64,
    /// Every write that reached Azure, by what it was.
    pub attempts: u64,
}
