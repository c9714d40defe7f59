//! Raw facts become model values: Kubernetes objects ([`kubernetes`]), ARM bodies ([`azure`]) and
//! the cloud config ([`config`]). The only crate that knows both raw worlds.
//!
//! # Guarantees
//! - Nothing that Kubernetes or Azure says makes anything here panic; what cannot be read is
//!   named, and the rest goes on.
//! - A fact that says nothing new changes nothing: what is held keeps its place in memory.

pub mod apply;
pub mod azure;
pub mod config;
pub mod fact;
mod gone;
pub mod intern;
pub mod kubernetes;
pub mod need;

pub use apply::{Applied, Listing, apply};
pub use fact::KubernetesFact;
pub use intern::Interner;
