//! A resource as it is stored.

use serde_json::Value;

/// A resource of its own. Elements (frontends, rules, …) stand inside their resource's value.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    /// The id as first written.
    pub(crate) id: String,
    /// `namespace/type`, lower case.
    pub(crate) kind: String,
    pub(crate) value: Value,
    pub(crate) created_ms: u64,
    /// The operation under way.
    pub(crate) operation: Option<String>,
}
