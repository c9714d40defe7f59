//! One thread, one clock: the production controller between both emulators' cores.

pub mod laboratory;
pub mod wire;

pub use laboratory::{Laboratory, Moment, Witness};
