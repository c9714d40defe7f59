//! The program as its users start it, between the emulators.
#![allow(clippy::unwrap_used, reason = "a failed unwrap in a test is a failed test")]

mod adopt;
mod azure_check;
mod backend_health;
mod benchmarks;
mod console;
mod deploy;
mod draining;
mod drift;
mod election;
mod history;
mod holds;
mod leader;
mod lint;
mod migrate;
mod moving;
mod night;
mod node_agent;
mod operating;
mod orphans;
mod outside_bytes;
mod plugin;
mod prometheus;
mod scenarios;
mod screen;
mod support;
mod tracing;
mod trouble;
mod version;
mod whole;
mod wrong_input;
