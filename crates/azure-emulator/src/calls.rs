//! The log of calls.

use serde_json::{Value, json};

/// One call to Azure: what was asked and what was answered.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// When, on the clock of the one who drives the emulator.
    pub t_ms: u64,
    /// The method.
    pub method: String,
    /// The path without its query.
    pub path: String,
    /// The status answered (also when the answer never arrived).
    pub status: u16,
    /// The error code answered, if any.
    pub code: Option<String>,
    /// The body of the request.
    pub body: Option<Value>,
    /// The `x-ms-correlation-request-id` it came with.
    pub correlation: Option<String>,
}

impl Call {
    /// Whether the call changes something: everything but GET and HEAD.
    pub fn is_write(&self) -> bool {
        self.method != "GET" && self.method != "HEAD"
    }

    pub(crate) fn to_json(&self) -> Value {
        let Call { t_ms, method, path, status, code, body, correlation } = self;
        json!({
            "t": *t_ms as f64 / 1000.0, "t_ms": t_ms, "method": method, "path": path,
            "status": status, "code": code, "body": body, "correlation": correlation,
        })
    }
}
