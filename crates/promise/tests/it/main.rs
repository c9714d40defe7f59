//! Small estates by hand: promises that are kept, and each one broken.

mod confirm;
mod estate;
mod spread;
mod targets;
