//! What is assumed of Azure, tried on a subscription.
//!
//! An [`Assumption`] is a value: what is assumed, where `docs/dev/azure-facts.md` says so, and how
//! it is tried. [`ASSUMPTIONS`] is the one table of them. [`check`] tries them through a
//! [`Client`], deletes what it made, and returns a [`Report`] and every [`Exchange`]; [`compare`]
//! sends recorded exchanges to another Azure and lists where its answers differ.
//!
//! # Guarantees
//! - Only resources that the run made itself are written or deleted: their names begin with
//!   [`PREFIX`] and the run's id.
//! - Everything made is deleted, also when a probe fails or the client is stopped. What cannot be
//!   deleted is in [`Report::left`].
//! - A recording holds no credential: the client never sees one, and addresses of operations lose
//!   what Azure signs them with.
//!
//! # Assumptions
//! The client waits and tells the time; nothing here has a clock.

mod assumption;
mod compare;
mod cost;
mod estate;
mod exchange;
mod lab;
mod probes;
mod recording;
mod registry;
mod report;
mod run;
mod site;

pub use assumption::{Assumption, Section, Verdict, Way, find};
pub use compare::{Difference, compare};
pub use cost::cost_of;
pub use exchange::{Came, Exchange, Part, Sent};
pub use lab::{Client, Lab};
pub use recording::{Recording, RecordingError, Subscription, read, write};
pub use registry::ASSUMPTIONS;
pub use report::{Latency, Left, Line, Report, Shown};
pub use run::{Checked, check};
pub use site::{PREFIX, Site, TAG};
