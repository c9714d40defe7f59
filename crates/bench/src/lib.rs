//! Benchmarks in simulated time: how long the production controller takes between both emulators
//! on a clock that only moves when something is due. The same on every machine, to the byte.
//!
//! What the processor takes is not in these times: a step of the controller takes none here.

mod arrival;
mod container;
mod converge;
mod floor;
mod nodes;
mod settled;
mod site;

pub use arrival::{ArrivalRow, Cost, Guest, arrival};
pub use container::{ContainerRow, ContainerSize, Promise, container};
pub use converge::{Backends, ConvergeRow, backends_of, converge};
pub use floor::{Demand, Terms};
pub use nodes::{Change, NodeRow, Pools, node_changes, reads_elsewhere};
pub use settled::Settled;

use sim::Laboratory;
use std::collections::BTreeSet;

const DAY_MS: u64 = 86_400_000;

/// How far a simulation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Services that have an address.
    pub done: usize,
    /// Services.
    pub of: usize,
    /// Simulated time since the beginning.
    pub simulated_ms: u64,
}

/// It did not come to rest: what stands in the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stuck {
    /// What was simulated.
    pub what: String,
    /// What waits.
    pub why: String,
}

impl std::fmt::Display for Stuck {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: not settled after a simulated day: {}", self.what, self.why)
    }
}

impl std::error::Error for Stuck {}

/// Azure calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Calls {
    /// Writes.
    pub writes: u64,
    /// Reads, polls of operations among them.
    pub reads: u64,
    /// Of all, those that Azure refused because of a limit.
    pub refused: u64,
}

impl Calls {
    fn of(lab: &Laboratory) -> Self {
        let mut calls = Self::default();
        for call in lab.azure.calls() {
            calls.writes += u64::from(call.is_write());
            calls.reads += u64::from(!call.is_write());
            calls.refused += u64::from(call.status == 429);
        }
        calls
    }
}

/// Which Services have an address, followed event by event.
#[derive(Debug, Default)]
struct Addressed {
    seen: u64,
    names: BTreeSet<String>,
    /// When the last one got it.
    last_ms: u64,
}

impl Addressed {
    fn follow(&mut self, lab: &Laboratory) {
        let store = &lab.kubernetes;
        if self.seen == store.revision() {
            return;
        }
        for event in store.events_since("services", self.seen).unwrap_or_default() {
            let object = &event.object;
            if object["status"]["loadBalancer"]["ingress"][0]["ip"].is_null() {
                continue;
            }
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            if self.names.insert(name.to_owned()) {
                self.last_ms = lab.now_ms;
            }
        }
        self.seen = store.revision();
    }
}

/// Lets everything come to rest and counts Services with an address.
fn come_to_rest(
    lab: &mut Laboratory,
    what: &str,
    of: usize,
    tell: &mut dyn FnMut(Progress),
) -> Result<Addressed, Stuck> {
    let start = lab.now_ms;
    let mut addressed = Addressed { seen: lab.kubernetes.revision(), ..Addressed::default() };
    // What was created before this begins is new to whoever counts.
    addressed.last_ms = start;
    let settled = lab.settle_watched(DAY_MS, &mut |lab| {
        addressed.follow(lab);
        let simulated_ms = lab.now_ms - start;
        tell(Progress { done: addressed.names.len(), of, simulated_ms });
    });
    if !settled {
        return Err(Stuck { what: what.to_owned(), why: reason(lab) });
    }
    if addressed.names.len() != of {
        let found = lab.controller().report().services.values().flat_map(|s| &s.findings);
        let first = found.map(|finding| format!("{finding:?}")).next().unwrap_or_default();
        let why = format!("{} of {of} have an address. {first}", addressed.names.len());
        return Err(Stuck { what: what.to_owned(), why });
    }
    Ok(addressed)
}

fn reason(lab: &Laboratory) -> String {
    let report = lab.controller().report();
    let waits = report.services.values().flat_map(|s| &s.waits);
    let first: Vec<String> = waits.take(3).map(|wait| format!("{wait:?}")).collect();
    if first.is_empty() { "nothing says what it waits for".to_owned() } else { first.join(", ") }
}

/// Lets everything come to rest before anything is measured.
fn rest(lab: &mut Laboratory, what: &str) -> Result<(), Stuck> {
    if lab.settle(DAY_MS) {
        return Ok(());
    }
    Err(Stuck { what: what.to_owned(), why: reason(lab) })
}
