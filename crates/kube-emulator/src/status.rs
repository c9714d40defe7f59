//! Refusals in the shape of the Kubernetes `Status` object.

use crate::kinds::Kind;
use serde_json::{Value, json};

/// A refused request: the `Status` object and its HTTP code.
#[derive(Debug, Clone, PartialEq)]
pub struct ApiError {
    code: u16,
    retry_after_s: Option<u32>,
    status: Box<Value>,
}

impl std::fmt::Display for ApiError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}: {}", self.code, self.reason(), self.message())
    }
}

impl std::error::Error for ApiError {}

impl ApiError {
    /// A refusal without details.
    pub fn new(code: u16, reason: &str, message: impl Into<String>) -> Self {
        Self::with_details(code, reason, message, Value::Null)
    }

    pub(crate) fn with_details(
        code: u16,
        reason: &str,
        message: impl Into<String>,
        details: Value,
    ) -> Self {
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": message.into(), "reason": reason,
        });
        if !details.is_null() {
            status["details"] = details;
        }
        status["code"] = json!(code);
        Self { code, retry_after_s: None, status: Box::new(status) }
    }

    /// The HTTP code.
    pub fn code(&self) -> u16 {
        self.code
    }

    /// The reason word, such as `NotFound`.
    pub fn reason(&self) -> &str {
        self.status["reason"].as_str().unwrap_or("")
    }

    /// The message for people.
    pub fn message(&self) -> &str {
        self.status["message"].as_str().unwrap_or("")
    }

    /// Seconds for the `Retry-After` header, if the client shall wait.
    pub fn retry_after_s(&self) -> Option<u32> {
        self.retry_after_s
    }

    /// The `Status` object.
    pub fn status(&self) -> &Value {
        &self.status
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    pub(crate) fn unknown_path() -> Self {
        let mut error = Self::with_details(
            404,
            "NotFound",
            "the server could not find the requested resource",
            json!({}),
        );
        error.status["details"] = json!({});
        error
    }

    pub(crate) fn not_found(kind: &Kind, name: &str) -> Self {
        let message = format!("{} \"{name}\" not found", kind.qualified_plural());
        Self::with_details(404, "NotFound", message, resource_details(kind, name))
    }

    pub(crate) fn exists(kind: &Kind, name: &str) -> Self {
        let message = format!("{} \"{name}\" already exists", kind.qualified_plural());
        Self::with_details(409, "AlreadyExists", message, resource_details(kind, name))
    }

    pub(crate) fn conflict(kind: &Kind, name: &str, why: &str) -> Self {
        let message = format!(
            "Operation cannot be fulfilled on {} \"{name}\": {why}",
            kind.qualified_plural()
        );
        Self::with_details(409, "Conflict", message, resource_details(kind, name))
    }

    pub(crate) fn stale(kind: &Kind, name: &str) -> Self {
        let why = "the object has been modified; please apply your changes to the latest \
                   version and try again";
        Self::conflict(kind, name, why)
    }

    pub(crate) fn forbidden(kind: &Kind, name: &str, why: &str, cause: Option<Value>) -> Self {
        let message = format!("{} \"{name}\" is forbidden: {why}", kind.qualified_plural());
        let mut details = resource_details(kind, name);
        if let Some(cause) = cause {
            details["causes"] = json!([cause]);
        }
        Self::with_details(403, "Forbidden", message, details)
    }

    pub(crate) fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message)
    }

    pub(crate) fn method_not_allowed(kind: &Kind) -> Self {
        Self::with_details(
            405,
            "MethodNotAllowed",
            "the server does not allow this method on the requested resource",
            resource_details(kind, ""),
        )
    }

    pub(crate) fn throttled(retry_after_s: u32) -> Self {
        let mut error = Self::with_details(
            429,
            "TooManyRequests",
            "the server has received too many requests and has asked us to try again later",
            json!({"retryAfterSeconds": retry_after_s}),
        );
        error.retry_after_s = Some(retry_after_s);
        error
    }

    pub(crate) fn invalid(kind: &Kind, name: &str, faults: &[FieldFault]) -> Self {
        let text = match faults {
            [only] => only.to_string(),
            many => {
                let all: Vec<String> = many.iter().map(ToString::to_string).collect();
                format!("[{}]", all.join(", "))
            }
        };
        let causes: Vec<Value> = faults.iter().map(FieldFault::cause).collect();
        let mut details = resource_details(kind, name);
        details["kind"] = json!(kind.kind);
        details["causes"] = json!(causes);
        let message = format!("{} \"{name}\" is invalid: {text}", kind.qualified_kind());
        Self::with_details(422, "Invalid", message, details)
    }
}

fn resource_details(kind: &Kind, name: &str) -> Value {
    let mut details = json!({});
    if !name.is_empty() {
        details["name"] = json!(name);
    }
    if !kind.group.is_empty() {
        details["group"] = json!(kind.group);
    }
    details["kind"] = json!(kind.plural);
    details
}

/// One field of an object that is wrong.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FieldFault {
    field: String,
    reason: &'static str,
    body: String,
}

impl std::fmt::Display for FieldFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.field, self.body)
    }
}

impl FieldFault {
    fn new(field: impl Into<String>, reason: &'static str, body: String) -> Self {
        Self { field: field.into(), reason, body }
    }

    pub(crate) fn required(field: impl Into<String>, why: &str) -> Self {
        let body = match why {
            "" => "Required value".to_string(),
            why => format!("Required value: {why}"),
        };
        Self::new(field, "FieldValueRequired", body)
    }

    pub(crate) fn invalid(field: impl Into<String>, value: &Value, why: &str) -> Self {
        Self::new(field, "FieldValueInvalid", format!("Invalid value: {value}: {why}"))
    }

    pub(crate) fn duplicate(field: impl Into<String>, value: &Value) -> Self {
        Self::new(field, "FieldValueDuplicate", format!("Duplicate value: {value}"))
    }

    pub(crate) fn forbidden(field: impl Into<String>, why: &str) -> Self {
        Self::new(field, "FieldValueForbidden", format!("Forbidden: {why}"))
    }

    pub(crate) fn unsupported(field: impl Into<String>, value: &Value, allowed: &[&str]) -> Self {
        let quoted: Vec<String> = allowed.iter().map(|word| format!("\"{word}\"")).collect();
        let body = format!("Unsupported value: {value}: supported values: {}", quoted.join(", "));
        Self::new(field, "FieldValueNotSupported", body)
    }

    fn cause(&self) -> Value {
        json!({"reason": self.reason, "message": self.body, "field": self.field})
    }
}
