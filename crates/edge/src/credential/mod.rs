//! Where access tokens come from.
//!
//! # Guarantees
//! A token or secret never appears in `Debug`, in an error or in the log. A token is asked for once
//! by many callers at a time, and again before it expires.
//!
//! # Errors
//! Every error says what was attempted, against which endpoint, and what to do.

pub mod assertion;
pub mod cache;
pub mod certificate;
pub mod choice;
pub mod cli;
pub mod entra;
pub mod identity_file;
pub mod managed;
pub mod reply;

pub use cache::Cached;
pub use choice::{Place, choose};
pub use observe::config::Secret;

use futures_util::future::BoxFuture;
use std::fmt;

/// An access token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// What goes into the Authorization header.
    pub secret: Secret,
    /// When it expires, in milliseconds since the Unix epoch.
    pub expires_ms: u64,
    /// When it had better be replaced, if the issuer says so.
    pub refresh_ms: Option<u64>,
}

/// No token could be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{attempt} at {endpoint} failed: {reason}. {advice}")]
pub struct CredentialError {
    /// What was attempted.
    pub attempt: String,
    /// Against which endpoint, file or command.
    pub endpoint: String,
    /// Why it failed.
    pub reason: String,
    /// The `AADSTS…` code, where the answer names one.
    pub code: Option<String>,
    /// What to do about it.
    pub advice: Box<str>,
    /// When asking again makes sense.
    pub retry: Retry,
}

/// How long a source is left alone that gave no token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Retry {
    /// For as long as callers at the same moment take to ask.
    #[default]
    Shortly,
    /// Longer after every failure in a row.
    BackOff,
    /// Every ten seconds: the service is being updated, which ends within 70 seconds.
    Updating,
}

/// Gives access tokens for one audience.
pub trait TokenSource: Send + Sync + fmt::Debug {
    /// A token that is good now.
    fn token(&self) -> BoxFuture<'_, Result<Token, CredentialError>>;

    /// This token was refused: do not give it again.
    fn forget(&self, token: &Token) {
        let _ = token;
    }
}

#[cfg(test)]
pub(crate) mod tests;
