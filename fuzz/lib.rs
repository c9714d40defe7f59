//! The doors, for the targets.

mod doors;
mod wire;

pub use doors::*;
pub use wire::*;
