//! The controller as one pure step function: events in, effects out. Time is an argument.
//!
//! # Guarantees
//! Production, tests and simulation run the same [`Controller::step`]. It reads no clock, opens no
//! socket and draws no random number: the same events at the same times give the same effects.

pub mod backoff;
pub mod budget;
pub mod drift;
pub mod effect;
pub mod event;
pub mod gates;
pub mod histogram;
pub mod latency;
mod ledger;
pub mod reason;
pub mod request;
pub mod search;
pub mod tally;

mod azure_reads;
mod azure_sends;
mod azure_writes;
mod busy;
mod controller;
mod custody;
mod drains;
mod gateway;
mod holds;
mod keep;
mod kubernetes_writes;
mod lane;
mod lists;
mod notice;
mod obstacles;
mod queue;
mod said;
mod shares;
mod words;

pub use controller::{Controller, Counts, Options, ledger_of};
pub use drift::{DriftOutcome, DriftRecord};
pub use effect::{CallId, Effect, KubernetesCall, Notice, NoticeKind};
pub use event::{Event, KubernetesAnswer, Leadership};
pub use gates::Gates;
pub use histogram::Histogram;
pub use latency::{ChangeKind, Latencies};
pub use tally::{Outcome, ResourceKind, Tally};
