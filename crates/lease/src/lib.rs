//! Leader election over a `coordination.k8s.io/v1` Lease, as plain functions: which call is made
//! next, what its answer means, until when the process may write and when it looks again.
//!
//! Production runs [`Election`] over sockets, the simulator over its API server with latency,
//! refusals and lost answers: both run the same rules.
//!
//! # Guarantees
//! Writing is allowed for the renew deadline after the start of the last attempt that renewed the
//! Lease, which ends before another process may take the Lease.
//!
//! # Assumptions
//! Clocks of different machines may differ: a holder is judged by how long its record has not
//! changed before our eyes, never by the times in it.

pub mod election;
pub mod record;
pub mod rule;
pub mod settings;

pub use election::{Answer, Call, Election, Miss, Next};
pub use settings::{LeaseSettings, LeaseTimesError};
