//! What may be another process's since the right to write was gained, and an operator's pause.

mod barrier;
mod custody;
mod pause;
