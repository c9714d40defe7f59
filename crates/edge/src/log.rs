//! Starts the log, on standard error.

use crate::clock::Clock;
use crate::terminal::SafeError;
use serde_json::json;
use std::io::IsTerminal;
use std::sync::OnceLock;
use tracing_subscriber::EnvFilter;

/// How the log's lines look, once it has begun.
static BEGUN: OnceLock<LogFormat> = OnceLock::new();

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
    outcome.map_err(|e| LogError::Started(e.to_string()))?;
    let _ = BEGUN.set(format);
    Ok(())
}

/// The line that tells of a panic: in the form of the log's other lines, and not filtered by
/// level. The log itself is not used, as it may be what panicked.
#[must_use]
pub fn mistake(what: &str, place: &str) -> String {
    mistake_as(BEGUN.get().copied().unwrap_or_default(), what, place)
}

fn mistake_as(format: LogFormat, what: &str, place: &str) -> String {
    match format {
        LogFormat::Text => {
            format!("error: Ballast made a mistake: {what} ({place}). Please report this line")
        }
        LogFormat::Json => json!({
            "timestamp": Clock::start().utc(),
            "level": "ERROR",
            "message": "Ballast made a mistake. Please report this line",
            "what": what,
            "place": place,
        })
        .to_string(),
    }
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

    #[test]
    fn a_panic_is_a_line_in_the_form_of_the_log() {
        let text = mistake_as(LogFormat::Text, "out of range", "a.rs:1:2");
        assert_eq!(
            text,
            "error: Ballast made a mistake: out of range (a.rs:1:2). Please report this line"
        );
        let line = mistake_as(LogFormat::Json, "\"a\"\nb", "a.rs:1:2");
        assert!(!line.contains('\n'), "{line}");
        let line: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!((&line["level"], &line["what"]), (&json!("ERROR"), &json!("\"a\"\nb")));
        assert_eq!(line["place"], "a.rs:1:2");
        assert!(line["timestamp"].as_str().is_some_and(|time| time.ends_with('Z')), "{line}");
    }
}
