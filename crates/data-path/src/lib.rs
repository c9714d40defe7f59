//! Azure's data path as a pure state machine: which backend a flow goes to, when it ends, and whom
//! the probes ask. It has no clock and no sockets; [`Wire`] puts it on sockets.
//!
//! What it takes for true of Azure, and from which source, is in `docs/dev/data-path.md`.

mod flow;
mod health;
mod machine;
mod pick;
mod table;
mod wire;

pub use flow::{Admission, Ending, Flow, FlowCounts, Refusal, Seat};
pub use health::{Question, Verdict};
pub use machine::{DataPath, OnDown, OnRemoval, Probed, Semantics};
pub use table::{
    Admin, Backend, Distribution, EntryPoint, Floating, IdleReset, Ports, Probe, ProbeKey,
    ProbeKind, Rule, Sku, Tables, Transport,
};
pub use wire::{Floated, Host, Hosts, Place, Wire, WireOptions};

#[cfg(test)]
mod tests;
