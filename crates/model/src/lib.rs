//! The nouns of Ballast.
//!
//! Facts from Kubernetes ([`kubernetes`]) and from Azure ([`azure`]) together are the [`World`].
//! The validated cloud config is the [`Policy`]. What the planner makes of both is a [`Plan`] (what
//! to write) and a [`Report`] (who waits on what, and what is wrong with whom).
//!
//! # Guarantees
//! Everything here is a plain value: it compares, orders and prints the same on every machine.
//! Nothing reads a clock, a socket or a random number.

pub mod azure;
pub mod backends;
mod distance;
pub mod drain;
pub mod drift;
pub mod editors;
pub mod family;
pub mod gateway;
pub mod id;
pub mod kubernetes;
pub mod ledger;
mod machine;
pub mod migration;
pub mod obstacle;
pub mod pause;
pub mod plan;
pub mod policy;
pub mod report;
pub mod store;
pub mod world;

pub use backends::{Backend, ProbeState, ServiceBackends};
pub use distance::distance;
pub use family::{Exposure, Family, Protocol};
pub use id::{Etag, Group, NodeName, ResourceId, ServiceName, ServiceUid};
pub use ledger::{Holder, Ledger};
pub use obstacle::{Obstacle, ObstacleKind};
pub use pause::Pause;
pub use plan::Plan;
pub use policy::Policy;
pub use report::Report;
pub use world::World;
