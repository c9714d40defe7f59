//! The controller as one pure step function: events in, effects out. Time is an argument.
//!
//! # Guarantees
//! Production, tests and simulation run the same [`Controller::step`]. It reads no clock, opens no
//! socket and draws no random number: the same events at the same times give the same effects.

pub mod backoff;
pub mod budget;
pub mod effect;
pub mod event;
mod kubernetes;
mod lanes;
mod observers;
pub mod request;

mod calls;
mod clock;
mod contested;
mod controller;
mod drift;
mod gone;
mod options;
mod reads;
mod retry;
#[cfg(test)]
mod sample;
mod term;
mod trouble;

pub use controller::Controller;
pub use effect::{CallId, Effect, KubernetesCall, Notice, NoticeKind};
pub use event::{Event, KubernetesAnswer, Leadership};
pub use kubernetes::gates::{self, Gates};
pub use lanes::search;
pub use observers::backends::{self, BackendLog};
pub use observers::drift_log::{DriftOutcome, DriftRecord};
pub use observers::histogram::{self, Histogram};
pub use observers::history::{self, WriteOutcome, WriteRecord};
pub use observers::latency::{self, ChangeKind, Latencies};
pub use observers::tally::{self, Outcome, ResourceKind, Tally};
pub use observers::{Counts, reason};
pub use options::{Options, ledger_of};
