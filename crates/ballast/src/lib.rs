//! Ballast's command line: what it starts, what it prints, and how it ends.
//!
//! # Guarantees
//! Every failure is one clear message and an exit code ([`exit::Exit`]). No secret is printed.
//! A reader that goes away (`| head`) ends the program quietly.

pub mod agent;
pub mod args;
pub mod as_if;
pub mod azure;
pub mod backend_health;
pub mod backends;
pub mod cloud_config;
pub mod cluster;
pub mod command;
pub mod completion;
pub mod confirm;
pub mod console;
pub mod emulated;
pub mod engine;
pub mod estate;
pub mod exit;
pub mod heap;
pub mod history;
pub mod lease;
pub mod lint;
pub mod listener;
pub mod listing;
pub mod located;
pub mod majority;
pub mod manifest;
pub mod metrics;
pub mod once;
pub mod output;
pub mod pages;
pub mod program;
pub mod progress;
pub mod readiness;
pub mod remote;
pub mod render;
pub mod shared;
pub mod shown;
pub mod signal;
pub mod status;
pub mod version;
pub mod wire;
