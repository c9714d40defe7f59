//! Talks to the Kubernetes API server: one client, a sender for the controller's calls, and a
//! watch a kind.

pub mod connect;
pub mod forward;
mod items;
pub mod lines;
pub mod sender;
pub mod sources;
mod strays;
pub mod watch;
pub mod wire;

pub use connect::{ConnectError, ConnectFrom, connect};
pub use sender::Sender;
pub use sources::{SourceSettings, sources};
pub use watch::{Change, Listing, Pace, Read, Source, Told, Watch, watch_all};
