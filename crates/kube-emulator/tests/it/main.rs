//! The emulated API server over real sockets.
#![allow(clippy::unwrap_used, reason = "a failed unwrap in a test is a failed test")]

mod http;
mod protobuf;
