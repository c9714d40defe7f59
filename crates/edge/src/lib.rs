//! Sockets around the pure controller: requests to ARM ([`arm`]) with tokens ([`credential`]),
//! watches and writes in Kubernetes ([`kubernetes`]), the loop that drives the controller
//! ([`runner`]), the lease that allows writing ([`lease`]), encrypted listeners ([`tls`])
//! and the log ([`log`]).
//!
//! # Guarantees
//! Nothing here decides anything about Azure or Kubernetes: events go in, effects come out. No
//! secret is printed. One TLS library (rustls with ring) serves every connection.

pub mod arm;
pub mod clock;
pub mod cloud;
pub mod credential;
pub mod kubernetes;
pub mod lease;
pub mod log;
pub mod notice;
pub mod origin;
#[cfg(feature = "otel")]
pub mod otlp;
mod proxy;
pub mod random;
pub mod retry_after;
pub mod runner;
pub mod terminal;
pub mod tls;
pub mod vital;
pub mod web;

#[cfg(test)]
mod fake;
