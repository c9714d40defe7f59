//! The workspace, and samples of what would not be tidy.
#![allow(clippy::unwrap_used, reason = "a failed unwrap in a test is a failed test")]

mod book;
mod circles;
mod dependencies;
mod mutants;
mod samples;
mod workspace;
