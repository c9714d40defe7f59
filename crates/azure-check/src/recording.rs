//! A recording: one line of JSON about the run, then one for each exchange.

use crate::exchange::{ASYNC, Exchange};
use crate::site::Site;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The form of recordings. Another number is another form.
const FORM: u32 = 1;

/// What stands for a subscription that is not to be shown.
const HIDDEN: &str = "00000000-0000-0000-0000-000000000000";

/// The first line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Head {
    azure_check: u32,
    #[serde(flatten)]
    site: Site,
}

/// A run's requests and answers.
#[derive(Clone, Debug, PartialEq)]
pub struct Recording {
    /// Where it ran.
    pub site: Site,
    /// In the order in which they were sent.
    pub exchanges: Vec<Exchange>,
}

impl Recording {
    /// Whether an answer names an operation.
    #[must_use]
    pub fn has_operations(&self) -> bool {
        self.exchanges.iter().any(|exchange| exchange.answer.headers.contains_key(ASYNC))
    }
}

/// Why a text is no recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordingError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub why: String,
}

impl fmt::Display for RecordingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.why)
    }
}

impl std::error::Error for RecordingError {}

/// Whether a recording shows its subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subscription {
    /// It does.
    Shown,
    /// Zeros stand for it.
    Hidden,
}

/// Reads a recording.
///
/// # Errors
/// The text is no recording.
pub fn read(text: &str) -> Result<Recording, RecordingError> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let mut lines = lines.map(|(at, line)| (at + 1, line));
    let wrong = |line: usize, why: &dyn fmt::Display| RecordingError { line, why: why.to_string() };
    let (at, first) = lines.next().ok_or_else(|| wrong(1, &"there is nothing in it"))?;
    let head: Head = serde_json::from_str(first).map_err(|e| wrong(at, &e))?;
    if head.azure_check != FORM {
        let why = format!("azureCheck is {}; {FORM} is what can be read", head.azure_check);
        return Err(wrong(at, &why));
    }
    let mut exchanges = Vec::new();
    for (at, line) in lines {
        exchanges.push(serde_json::from_str(line).map_err(|e| wrong(at, &e))?);
    }
    Ok(Recording { site: head.site, exchanges })
}

/// Writes a recording.
///
/// # Errors
/// A value cannot be JSON.
pub fn write(recording: &Recording, shown: Subscription) -> Result<String, serde_json::Error> {
    let Recording { site, exchanges } = recording;
    let head = Head { azure_check: FORM, site: site.clone() };
    let mut text = serde_json::to_string(&head)?;
    text.push('\n');
    for exchange in exchanges {
        text.push_str(&serde_json::to_string(exchange)?);
        text.push('\n');
    }
    Ok(match shown {
        Subscription::Shown => text,
        Subscription::Hidden => hidden(&text, &site.subscription),
    })
}

/// The text without an id, in whatever letters Azure wrote it.
fn hidden(text: &str, id: &str) -> String {
    if id.is_empty() || !id.is_ascii() {
        return text.to_owned();
    }
    let (folded, id) = (text.to_ascii_lowercase(), id.to_ascii_lowercase());
    let mut out = String::with_capacity(text.len());
    let mut from = 0;
    while let Some(at) = folded[from..].find(&id) {
        out.push_str(&text[from..from + at]);
        out.push_str(HIDDEN);
        from += at + id.len();
    }
    out.push_str(&text[from..]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::{Came, Part, Sent};
    use serde_json::json;

    fn recording() -> Recording {
        let site = Site {
            subscription: "aBc-1".to_owned(),
            group: "rg".to_owned(),
            location: "eastus".to_owned(),
            run: "0123abcd".to_owned(),
        };
        let request = Sent {
            method: "PUT".to_owned(),
            path: "/subscriptions/aBc-1/x".to_owned(),
            if_match: Some("W/\"1\"".to_owned()),
            if_none_match: None,
            body: Some(json!({"id": "/subscriptions/ABC-1/x", "b": 1, "a": null})),
        };
        let answer = Came { status: 200, ..Came::default() };
        let exchange = Exchange {
            t_ms: 1,
            took_ms: 2,
            of: "x".to_owned(),
            part: Part::Probe,
            request,
            answer,
        };
        Recording { site, exchanges: vec![exchange] }
    }

    #[test]
    fn what_is_written_is_read() {
        let text = write(&recording(), Subscription::Shown).unwrap();
        assert_eq!(text.lines().count(), 2);
        assert_eq!(read(&text).unwrap(), recording());
    }

    #[test]
    fn a_hidden_subscription_is_nowhere() {
        let text = write(&recording(), Subscription::Hidden).unwrap();
        assert!(!text.to_lowercase().contains("abc-1"), "{text}");
        assert_eq!(text.matches(HIDDEN).count(), 3);
        assert_eq!(read(&text).unwrap().site.subscription, HIDDEN);
    }

    #[test]
    fn what_is_no_recording_says_where() {
        let error = |text: &str| read(text).unwrap_err().to_string();
        assert_eq!(error(""), "line 1: there is nothing in it");
        assert!(error("{}").starts_with("line 1: missing field"));
        let text = write(&recording(), Subscription::Shown).unwrap();
        let other = text.replacen("\"azureCheck\":1", "\"azureCheck\":2", 1);
        assert_eq!(error(&other), "line 1: azureCheck is 2; 1 is what can be read");
        assert!(error(&(text + "{")).starts_with("line 3: "));
    }
}
