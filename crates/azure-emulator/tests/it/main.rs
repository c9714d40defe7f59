//! The emulated Azure as a client sees it.
#![allow(clippy::unwrap_used, reason = "a failed unwrap in a test is a failed test")]

mod common;
mod data_path;
mod http;
mod load_balancers;
mod operations;
mod public_ips;
mod resources;
mod service_gateway;
mod settings;
mod strict;
mod templates;
mod unknown_fields;
