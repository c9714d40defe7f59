//! Starts the log, on standard error.

use crate::terminal::SafeError;
use std::io::IsTerminal;
use tracing_subscriber::EnvFilter;

/// How lines look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// Why there is no log.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The filter cannot be read.
    #[error(
        "\"{level}\" is no log level: {why}. Use error, warn, info, debug or \
         trace, or TARGET=LEVEL with commas"
    )]
    Level {
        /// What was given.
        level: String,
        /// Why.
        why: String,
    },
    /// There is one already.
    #[error("the log was started before: {0}")]
    Started(String),
}

/// Starts it. `level` is a level, or `target=level` pairs with commas.
///
/// # Errors
/// The level cannot be read; the log was started before.
pub fn start(format: LogFormat, level: &str) -> Result<(), LogError> {
    let filter = filter(level)?;
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(SafeError::default)
        .with_ansi(std::io::stderr().is_terminal());
    let outcome = match format {
        LogFormat::Text => builder.with_target(false).try_init(),
        LogFormat::Json => builder.json().flatten_event(true).try_init(),
    };
    outcome.map_err(|e| LogError::Started(e.to_string()))
}

fn filter(level: &str) -> Result<EnvFilter, LogError> {
    let unreadable = |why: String| LogError::Level { level: level.to_string(), why };
    // A lone word that is no level would be taken for a target, and nothing would be logged.
    for part in level.split(',').filter(|p| !p.contains('=')) {
        part.trim()
            .parse::<tracing_subscriber::filter::LevelFilter>()
            .map_err(|e| unreadable(e.to_string()))?;
    }
    EnvFilter::try_new(level).map_err(|e| unreadable(e.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_and_targets_are_read_and_words_are_refused() {
        assert!(filter("info").is_ok());
        assert!(filter("warn,edge=debug").is_ok());
        assert!(filter("loud").unwrap_err().to_string().contains("loud"));
    }
}
