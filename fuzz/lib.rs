//! The doors, for the targets.

mod doors;
mod steps;
mod wire;

pub use doors::*;
pub use steps::*;
pub use wire::*;
