//! What must hold, looked up in the emulators and never in the controller's mind.

pub mod api;
pub mod azure;
mod books;
pub mod budget;
mod conditions;
pub mod cost;
pub mod differential;
pub mod drain;
pub mod ends;
mod etags;
mod events;
pub mod fair;
pub mod form;
pub(crate) mod gates;
pub mod grounds;
pub mod hands;
pub(crate) mod history;
mod joining;
mod latency;
mod looks;
mod moves;
mod noted;
mod numbers;
mod openings;
mod order;
pub(crate) mod pauses;
mod pieces;
pub mod plans;
pub mod promised;
pub mod remains;
mod said;
mod seen;
mod steady;
pub mod stripped;
pub mod tables;
pub mod tenants;
pub mod victims;
pub mod waits;
mod ways_out;

use serde_json::Value;
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
pub const RULES: [(&str, &str); 16] = [
    ("S1", "nothing without our mark is written or deleted"),
    ("S2", "every PUT carries what is not ours unharmed"),
    ("S3", "no ready backend is removed, no pool emptied, no address changed unasked"),
    ("S4", "finalizer before the first write and until the last; references in order"),
    ("S5", "only the leader's writes take effect, it has read what it writes, and none is paused"),
    ("S6", "Retry-After is honoured, retries are bounded, and without faults nothing is refused"),
    ("S7", "a Service that cannot be satisfied delays no other"),
    ("S8", "no secret is disclosed"),
    ("S9", "no tenant affects another: what a Service has changes for its own sake only"),
    ("L1", "Azure equals desired within bounded time and stays so"),
    ("L2", "nothing of ours is left after all Services are deleted"),
    ("L3", "what failed or still runs is called again within a time that follows from its answer"),
    ("L4", "status, metrics and the history of writes tell the truth"),
    ("L5", "without faults, writes are at most 1.2 times the minimum, at rest reads 1.5 times"),
    ("differential", "the end with faults equals the end without"),
    ("plan", "what a leader plans keeps ownership, references, order and limits"),
];

/// What checks remember between writes.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    /// Under which term of the lease a resource was last changed.
    pub(crate) terms: BTreeMap<String, u64>,
    /// Resources, lower case, that who led before has made late: who leads now learns of them with
    /// its next lists.
    pub(crate) made_late: BTreeSet<String>,
    /// Frontends and rules that the last writes of a load balancer, lower case, make or change, and
    /// the ETag that it has by then.
    pub(crate) fresh: BTreeMap<String, (Value, BTreeMap<String, joining::Fresh>)>,
    /// Addresses that rules lead to no longer, and which call took the rules away.
    pub(crate) taken: BTreeMap<String, u64>,
    /// Writes of who led before that an ETag kept off.
    pub fenced: u64,
    /// Frontends to their address, and when their Service had last asked for another place.
    pub(crate) addresses: BTreeMap<(String, String), (String, u64)>,
    /// Which life of which process last changed a Service Gateway's addresses.
    pub(crate) tables_by: Option<(usize, u64)>,
    /// Who put the rows of Pods that leave through egress gateways into the table.
    pub(crate) rows_out: ways_out::Rows,
    /// Addresses of frontends that rules of a Service have led to, and of its public IPs, by its
    /// UID.
    pub(crate) opened: BTreeMap<String, BTreeSet<String>>,
    /// What people have touched in Azure by hand.
    pub(crate) touched: hands::Touched,
    /// What each Service had when all was settled for the last time.
    pub(crate) settled: BTreeMap<String, tenants::Settled>,
    /// What is remembered of Services that move.
    pub(crate) moves: moves::Moves,
    /// What Services have lost for a while.
    pub(crate) given_up: openings::GivenUp,
    /// What Services tell and have lost for good.
    pub(crate) freed: openings::Freed,
    /// What each process has read since it leads.
    pub(crate) grounds: grounds::Grounds,
    /// ETags that writes have replaced.
    pub(crate) etags: etags::Etags,
    /// What processes have been shown of the ledger.
    pub(crate) noted: noted::Noted,
    /// What answers ask of callers.
    pub(crate) budget: budget::Budget,
    /// What has to be called again.
    pub(crate) waits: waits::Waits,
    /// What Events have told.
    pub(crate) told: events::Told,
    /// What processes have said of Services.
    pub(crate) said: said::Said,
    /// What has been read while nothing changed.
    pub(crate) looks: looks::Looks,
    /// What processes have called, and what Azure has answered.
    pub(crate) books: books::Books,
    /// The Service that Azure refuses while nothing else goes wrong.
    pub(crate) refused_alone: Option<String>,
    /// What an operator has paused.
    pub(crate) paused: Option<pauses::Paused>,
    /// What actors have done so far: their moves, and what they brought about since.
    pub(crate) inputs: u64,
    /// Writes that changed something, for L5.
    pub writes: u64,
    /// Every write that reached Azure, by what it was.
    pub attempts: u64,
    /// What Azure has made of writes while nothing goes wrong.
    pub(crate) round: fair::Round,
}
