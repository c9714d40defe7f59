//! One thread, one clock: the production controller between both emulators' cores.

#[macro_use]
mod named;

pub mod actor;
pub mod canary;
pub mod check;
pub mod config;
pub mod crew;
pub mod election;
mod entries;
pub mod exhaust;
pub mod fault;
pub mod happening;
pub mod interrupt;
pub mod judge;
pub mod laboratory;
pub mod letters;
pub mod life;
pub mod poison;
pub mod process;
mod quirks;
pub mod random;
pub mod run;
pub mod scene;
pub mod shrink;
pub mod stage;
pub mod swarm;
pub mod tally;
pub mod trace;
pub mod truth;
pub mod weather;
pub mod wire;

mod carry;
mod edits;
mod fact;
mod path;
mod refusal;
mod shortage;

pub use config::Config;
pub use laboratory::{Laboratory, Meter, Moment, Promises, Scrutiny, Witness};
