//! What is wrong with a cloud config.

use thiserror::Error;

/// One mistake.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ConfigError {
    /// The text is neither JSON nor YAML.
    #[error("cannot read the cloud config: {0}; it has to be one JSON or YAML object")]
    Unreadable(String),
    /// A key has a value that it cannot have.
    #[error("cloud config: {key}: must be {allowed} (got {value})")]
    Value {
        /// The key, as it is written here.
        key: String,
        /// The value found.
        value: String,
        /// What it may be.
        allowed: String,
    },
    /// A key has to be there.
    #[error("cloud config: {key} is not set; it is needed: {purpose}")]
    Missing {
        /// The key.
        key: String,
        /// What it is for.
        purpose: String,
    },
    /// Keys that do not go together.
    #[error("cloud config: {at}{what}", at = prefix(.at))]
    Clash {
        /// Below which key; empty for the whole config.
        at: String,
        /// What does not go together, and what would.
        what: String,
    },
}

pub(super) fn allowed(key: &str, value: &str, allowed: &str) -> ConfigError {
    ConfigError::Value {
        key: key.to_owned(),
        value: format!("{value:?}"),
        allowed: allowed.to_owned(),
    }
}

pub(super) fn missing(key: &str, purpose: &str) -> ConfigError {
    ConfigError::Missing { key: key.to_owned(), purpose: purpose.to_owned() }
}

pub(super) fn clash(what: &str) -> ConfigError {
    ConfigError::Clash { at: String::new(), what: what.to_owned() }
}

fn prefix(at: &str) -> String {
    if at.is_empty() { String::new() } else { format!("{at}: ") }
}
