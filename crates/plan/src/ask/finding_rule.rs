//! A rule that a Service can break, and the finding that says so.

use model::report::{Finding, Severity, with_value};

/// A rule that a Service can break.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FindingRule {
    /// Its stable name.
    pub name: &'static str,
    /// What breaking it means.
    pub severity: Severity,
    /// What breaks it: the key without `PREFIX`, and `: ` with the value where there is one.
    pub example: &'static str,
    /// A [`model::report::Finding::message`].
    pub message: &'static str,
}

impl FindingRule {
    /// Key and value of the example.
    #[must_use]
    pub fn example(&self) -> (&'static str, &'static str) {
        self.example.split_once(": ").unwrap_or((self.example, ""))
    }

    /// A finding that this key and value break the rule.
    #[must_use]
    pub fn found(&self, key: &str, value: &str) -> Finding {
        self.found_with(key, value, self.message)
    }

    /// The same with a message of its own.
    #[must_use]
    pub fn found_with(&self, key: &str, value: &str, message: &str) -> Finding {
        Finding::new(self.severity, self.name, key, value, message)
    }

    /// The text about the example, without its key.
    #[must_use]
    pub fn text(&self) -> String {
        with_value(self.message, self.example().1)
    }

    /// The text about any value.
    #[must_use]
    pub fn general(&self) -> String {
        self.message.replace("{value}", "the value")
    }
}
