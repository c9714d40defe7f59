//! What ARM says when it does not do something, classified once.

use crate::exchange::{Method, Reply, TransportFault};
use serde_json::Value;
use thiserror::Error;

/// What a failure means for what to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ErrorKind {
    /// The resource has changed since it was read: read it and plan again.
    Stale,
    /// Too many requests: wait.
    Throttled,
    /// Something else is being done to the resource: wait and repeat.
    Busy,
    /// The resource has a lock, or all of its subscription is read-only: no attempt succeeds before
    /// people change that.
    Locked,
    /// It does not exist.
    Missing,
    /// Our identity may not do it.
    Forbidden,
    /// The request is wrong, or exceeds a limit: repeating it does not help.
    Refused,
    /// Azure failed: repeat.
    Transient,
    /// The request was not sent: repeat.
    Unreachable,
    /// It may or may not have been done: read, then plan again.
    Ambiguous,
}

impl ErrorKind {
    /// In words, for messages.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Stale => "the resource changed meanwhile",
            Self::Throttled => "too many requests",
            Self::Busy => "another operation is in progress",
            Self::Locked => "the resource is locked",
            Self::Missing => "not found",
            Self::Forbidden => "not allowed",
            Self::Refused => "refused",
            Self::Transient => "Azure failed",
            Self::Unreachable => "not sent",
            Self::Ambiguous => "outcome unknown",
        }
    }
}

/// A failed request or operation.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{}{}: {code}: {message}", .kind.name(), http(.status))]
pub struct ArmError {
    /// What it means.
    pub kind: ErrorKind,
    /// HTTP status; 0 where there was no answer.
    pub status: u16,
    /// ARM's error code, or one of ours where ARM gave none.
    pub code: String,
    /// ARM's words, for people.
    pub message: String,
    /// How long ARM asks to wait.
    pub retry_after_ms: Option<u64>,
}

fn http(status: &u16) -> String {
    if *status == 0 { String::new() } else { format!(" (HTTP {status})") }
}

/// Codes of conflicts that pass by themselves: the same request succeeds once the other operation
/// has ended. They come with 409, 429 or 400, or as the result of an operation. Every other 409 is
/// a refusal. Lower case; each with where it is documented or was seen.
const PASSING: [&str; 8] = [
    // Microsoft.Network: one operation at a time on a resource and those it refers to.
    "anotheroperationinprogress",
    // Microsoft.Network, as the result of an operation that a later PUT took the place of: retried
    // by cloud-provider-azure.
    "canceledandsupersededduetoanotheroperation",
    // Azure Resource Manager: "interrupted by a conflicting concurrent write on the same entity.
    // Please retry later." (pulumi-azure-native, pull request 4765).
    "conflictingconcurrentwritenotallowed",
    // Microsoft.Compute, where a later operation took the place of this one: cloud-provider-azure.
    "operationpreempted",
    // Microsoft.Network: a resource that is referred to "is not in Succeeded state"
    // (hashicorp/terraform 13934; cloud-provider-azure).
    "referencedresourcenotprovisioned",
    // Azure Resource Manager: "the resource entity provisioning state is not terminal. Please wait
    // … and then retry the request." (azure-rest-api-specs, issue 7984).
    "requestconflict",
    // Microsoft.Network: "A retryable error occurred." (hashicorp/terraform 13934).
    "retryableerror",
    "retryableerrorduetoanotheroperation",
];

/// A code that says nothing but "conflict": Compute's "another operation on this or dependent
/// resource is in progress" comes with it, and azure-service-operator retries it (pull request
/// 4671). Beside a code that says more, that one decides.
const CONFLICT: &str = "conflict";

/// The code of a 404 that says nothing of what is in a subscription: our identity does not see
/// the subscription, or Azure for the moment does not (Azure/azure-cli, issue 33657).
const UNSEEN_SUBSCRIPTION: &str = "subscriptionnotfound";

/// Codes with a meaning of their own, whatever the status: lower case.
const BY_CODE: [(&str, ErrorKind); 20] = [
    ("scopelocked", ErrorKind::Locked),
    // A subscription that is disabled takes no write, whoever it is for.
    ("readonlydisabledsubscription", ErrorKind::Locked),
    ("subscriptionrequeststhrottled", ErrorKind::Throttled),
    ("toomanyrequests", ErrorKind::Throttled),
    ("preconditionfailed", ErrorKind::Stale),
    ("requestdisallowedbypolicy", ErrorKind::Refused),
    ("publicipaddresscannotbedeleted", ErrorKind::Refused),
    ("publicipaddressinuse", ErrorKind::Refused),
    ("inusefrontendipconfigurationcannotbedeleted", ErrorKind::Refused),
    ("loadbalancerinusebyvirtualmachinescaleset", ErrorKind::Refused),
    ("servicewithoverlaymappingscannotbedeleted", ErrorKind::Refused),
    ("operationnotallowed", ErrorKind::Refused),
    ("missingsubscriptionregistration", ErrorKind::Refused),
    ("internalservererror", ErrorKind::Transient),
    ("internalerror", ErrorKind::Transient),
    ("networkinginternaloperationerror", ErrorKind::Transient),
    ("internalexecutionerror", ErrorKind::Transient),
    ("servicetimeout", ErrorKind::Transient),
    ("serviceunavailable", ErrorKind::Transient),
    ("serverbusy", ErrorKind::Transient),
];

/// What a code means that comes without a status of its own, in an operation's result.
const IN_RESULT: [(&str, ErrorKind); 8] = [
    ("resourcenotfound", ErrorKind::Missing),
    ("resourcegroupnotfound", ErrorKind::Missing),
    ("notfound", ErrorKind::Missing),
    ("authorizationfailed", ErrorKind::Forbidden),
    ("linkedauthorizationfailed", ErrorKind::Forbidden),
    ("canceled", ErrorKind::Busy),
    ("operationcanceled", ErrorKind::Busy),
    ("gatewaytimeout", ErrorKind::Transient),
];

impl ArmError {
    /// Of an answer that is not what was asked for.
    #[must_use]
    pub fn of_reply(reply: &Reply) -> Self {
        let found = Found::in_reply(reply);
        let code = found.code.unwrap_or_else(|| format!("Http{}", reply.status));
        let kind = kind_of_status(reply.status, &found.codes);
        let hinted = || (reply.status == 429).then_some(found.wait_ms).flatten();
        Self {
            kind,
            status: reply.status,
            code,
            retry_after_ms: reply.retry_after_ms.or_else(hinted),
            message: found.message,
        }
    }

    /// Of an operation's result, which comes with HTTP 200: only the code says what it means.
    #[must_use]
    pub fn of_operation(reply: &Reply) -> Self {
        let found = Found::in_reply(reply);
        let status = reply.body.as_deref().and_then(|b| b.get("status")).and_then(Value::as_str);
        let code = found.code.or_else(|| status.map(str::to_owned));
        let code = code.unwrap_or_else(|| "OperationFailed".to_owned());
        let mut codes = found.codes;
        codes.push(code.to_lowercase());
        let kind = kind_by_code(&codes)
            .or_else(|| is_plain_conflict(&codes).then_some(ErrorKind::Busy))
            .or_else(|| codes.iter().find_map(|c| listed(&IN_RESULT, c)))
            .unwrap_or(ErrorKind::Refused);
        Self {
            kind,
            status: reply.status,
            code,
            message: found.message,
            retry_after_ms: reply.retry_after_ms,
        }
    }

    /// Of a request without an answer. A read that broke off is simply repeated.
    #[must_use]
    pub fn of_fault(method: Method, fault: &TransportFault) -> Self {
        let (kind, code, message) = match fault {
            TransportFault::NotSent(why) => (ErrorKind::Unreachable, "NotSent", why),
            TransportFault::Foreign(why) => (ErrorKind::Unreachable, "ForeignAddress", why),
            TransportFault::Ambiguous(why) if method.is_write() => {
                (ErrorKind::Ambiguous, "NoAnswer", why)
            }
            TransportFault::Ambiguous(why) => (ErrorKind::Transient, "NoAnswer", why),
        };
        Self {
            kind,
            status: 0,
            code: code.to_owned(),
            message: message.clone(),
            retry_after_ms: None,
        }
    }

    /// Whether it says nothing about the one resource that was asked for: its resource group is not
    /// found, or something that is not ARM answered.
    #[must_use]
    pub fn is_about_group(&self) -> bool {
        self.code.eq_ignore_ascii_case("ResourceGroupNotFound") || self.code.starts_with("Http")
    }

    /// One that no answer of ARM's stands behind.
    pub(crate) fn own(
        kind: ErrorKind,
        status: u16,
        code: &str,
        message: impl Into<String>,
    ) -> Self {
        let message = message.into();
        Self { kind, status, code: code.to_owned(), message, retry_after_ms: None }
    }
}

fn listed(table: &[(&str, ErrorKind)], code: &str) -> Option<ErrorKind> {
    table.iter().find(|(c, _)| *c == code).map(|(_, kind)| *kind)
}

fn kind_by_code(codes: &[String]) -> Option<ErrorKind> {
    codes.iter().find_map(|code| {
        let passing = PASSING.contains(&code.as_str()) || code.starts_with("retryableerror");
        if passing { Some(ErrorKind::Busy) } else { listed(&BY_CODE, code) }
    })
}

fn is_plain_conflict(codes: &[String]) -> bool {
    !codes.is_empty() && codes.iter().all(|code| code == CONFLICT)
}

/// The status decides, but where it is too coarse the code does.
fn kind_of_status(status: u16, codes: &[String]) -> ErrorKind {
    let by_code = kind_by_code(codes);
    match status {
        412 => ErrorKind::Stale,
        408 => ErrorKind::Transient,
        500.. => ErrorKind::Transient,
        429 if by_code == Some(ErrorKind::Busy) => ErrorKind::Busy,
        429 => ErrorKind::Throttled,
        404 if codes.iter().any(|code| code == UNSEEN_SUBSCRIPTION) => ErrorKind::Forbidden,
        404 | 410 => ErrorKind::Missing,
        401 => ErrorKind::Forbidden,
        403 => by_code.unwrap_or(ErrorKind::Forbidden),
        409 => by_code.unwrap_or_else(|| conflict(codes)),
        400..500 => by_code.unwrap_or(ErrorKind::Refused),
        // An answer below 400 that nobody expected here.
        _ => by_code.unwrap_or(ErrorKind::Transient),
    }
}

/// A conflict that no code calls passing is a refusal: `InvalidResourceLocation`, a quota,
/// something in use. So is one without a code.
fn conflict(codes: &[String]) -> ErrorKind {
    if is_plain_conflict(codes) { ErrorKind::Busy } else { ErrorKind::Refused }
}

/// How deep errors are looked for inside errors; ARM nests two or three levels.
const DEPTH: usize = 6;

/// What a body says about an error.
#[derive(Default)]
struct Found {
    /// The outermost code, as written.
    code: Option<String>,
    message: String,
    /// Whether a detail's message has been added to it.
    detailed: bool,
    /// All codes, outermost first, lower case.
    codes: Vec<String>,
    /// The longest wait that a message asks for.
    wait_ms: Option<u64>,
}

impl Found {
    /// The body says more than the header, which counts where the body has no code.
    fn in_reply(reply: &Reply) -> Self {
        let mut found = Self::default();
        if let Some(body) = reply.body.as_deref() {
            let error = ["error", "Error"].iter().find_map(|key| body.get(*key));
            found.gather(error.filter(|e| !e.is_null()).unwrap_or(body), DEPTH);
        }
        if let (None, Some(code)) = (&found.code, &reply.error_code) {
            found.code = Some(code.clone());
            found.codes.push(code.to_lowercase());
        }
        found
    }

    fn gather(&mut self, error: &Value, depth: usize) {
        if depth == 0 {
            return;
        }
        let field = |keys: [&str; 2]| keys.iter().find_map(|key| error.get(*key));
        let code = field(["code", "Code"]).and_then(Value::as_str).filter(|c| !c.is_empty());
        let message = field(["message", "Message"]).and_then(Value::as_str);
        if let Some(code) = code {
            self.code.get_or_insert_with(|| code.to_owned());
            self.codes.push(code.to_lowercase());
        }
        if let Some(message) = message {
            self.add(message, depth);
            self.wait_ms = self.wait_ms.max(hinted_wait_ms(message));
            self.gather_text(message, depth);
        }
        for inner in field(["details", "Details"]).and_then(Value::as_array).into_iter().flatten() {
            self.gather(inner, depth - 1);
        }
        for key in ["error", "innererror", "innerError"] {
            if let Some(inner) = error.get(key) {
                self.gather(inner, depth - 1);
            }
        }
    }

    /// The outermost message, and after it the first that a detail of it adds: the network
    /// provider says in a detail which member it cannot parse (Azure/azure-powershell, issue
    /// 13544).
    fn add(&mut self, message: &str, depth: usize) {
        if self.message.is_empty() {
            self.message = message.to_owned();
        } else if depth + 1 == DEPTH && !self.detailed && !self.message.contains(message) {
            self.detailed = true;
            self.message = format!("{} {message}", self.message);
        }
    }

    /// Some providers pass on another's whole answer as their message.
    fn gather_text(&mut self, message: &str, depth: usize) {
        let message = message.trim_start();
        if !message.starts_with('{') {
            return;
        }
        if let Ok(inner) = serde_json::from_str::<Value>(message) {
            self.gather(&inner, depth - 1);
        }
    }
}

/// Whether an answer that came with a success says that it is none: in a header, as an error, or,
/// as a Service Gateway's actions do, by a code alone. No resource has a `code` beside its `id`.
pub(crate) fn says_error(reply: &Reply) -> bool {
    let in_body = |body: &Value| {
        let alone = body.get("id").is_none() && body.get("properties").is_none();
        let error =
            ["error", "Error"].iter().find_map(|key| body.get(*key)).filter(|e| !e.is_null());
        let place = if alone { error.or(Some(body)) } else { error };
        let code = place.and_then(|at| at.get("code").or_else(|| at.get("Code")));
        code.and_then(Value::as_str).is_some_and(|code| !code.is_empty())
    };
    reply.error_code.is_some() || reply.body.as_deref().is_some_and(in_body)
}

/// The network provider tells the wait of some throttled calls only in a message, its own or that
/// of a detail: "can be retried in 17 seconds", "try again after 17 seconds" (cloud-provider-azure,
/// issue 792; gardener's Azure extension, issue 384). Resource Manager quotes the number, as in
/// "after '17' seconds" (azqr, issue 34; azure-docs, issue 105248). Nothing else is read from
/// prose.
fn hinted_wait_ms(message: &str) -> Option<u64> {
    let message = message.to_lowercase();
    ["retried in ", "after "].iter().find_map(|before| {
        message.match_indices(before).find_map(|(at, _)| {
            let rest = message[at + before.len()..].trim_start_matches('\'');
            let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
            let unit = rest[digits.len()..].trim_start_matches('\'').trim_start();
            let seconds: u64 = digits.parse().ok()?;
            unit.starts_with("second").then(|| seconds.saturating_mul(1000))
        })
    })
}
