//! Faults on order: which calls they befall, and what goes wrong.

use regex::{Regex, RegexBuilder};
use serde_json::Value;

use crate::json::{number, text};
use crate::message::Request;

/// What goes wrong.
#[derive(Debug, Clone, PartialEq)]
pub enum FaultKind {
    /// The call is refused and has no effect.
    Status {
        /// HTTP status.
        status: u16,
        /// `error.code`.
        code: String,
        /// `error.message`.
        message: String,
        /// `Retry-After` in seconds.
        retry_after_s: Option<u64>,
        /// Further headers.
        headers: Vec<(String, String)>,
    },
    /// The connection breaks before the call has any effect.
    ConnectionResetBefore,
    /// The call takes effect, then the connection breaks.
    AppliedThenReset,
    /// The call is accepted; its operation ends as Failed and the resource is left Failed.
    OperationFails {
        /// The code in the operation's error.
        code: String,
    },
    /// The call is accepted; its operation ends as Canceled and what was before is back.
    OperationCanceled {
        /// The code in the operation's error.
        code: String,
    },
    /// All says Succeeded, but the backend pools written are empty afterwards.
    SucceedsButLosesPool,
    /// Half of the answer arrives.
    TruncatedBody,
    /// A LIST without what was created in the last `age_ms` milliseconds.
    StaleList {
        /// How old a resource must be to be listed.
        age_ms: u64,
    },
    /// The answer takes so much longer.
    Latency {
        /// Milliseconds.
        ms: u64,
    },
    /// The call takes no effect and no answer comes. Once the rules are cleared the connection
    /// breaks.
    Hang,
    /// A Service Gateway action has no effect and answers 200 with an error in the body.
    GatewayErrorIn200 {
        /// `error.code`.
        code: String,
    },
    /// The same with `{"code": …}` alone for a body.
    GatewayCodeIn200 {
        /// `code`.
        code: String,
    },
    /// The same with an empty object for a body and the header `x-ms-error-code`.
    GatewayHeaderIn200 {
        /// The header's value.
        code: String,
    },
    /// A Service Gateway action answers 202; its operation succeeds.
    GatewayAccepted,
    /// A Service Gateway action answers 202; its poll is 200 with status Failed, nothing changed.
    GatewayAcceptedThenFails {
        /// The code in the poll's error.
        code: String,
    },
}

/// A rule: the calls it matches go wrong in one way.
#[derive(Debug, Clone)]
pub struct Fault {
    method: Option<String>,
    path: Option<Regex>,
    body_contains: Option<String>,
    skip: u64,
    /// `None`: always.
    times: Option<u64>,
    kind: FaultKind,
}

impl Fault {
    /// Befalls the next call, whichever it is.
    pub fn new(kind: FaultKind) -> Self {
        Fault { method: None, path: None, body_contains: None, skip: 0, times: Some(1), kind }
    }

    /// Only calls of this method.
    #[must_use]
    pub fn on_method(mut self, method: &str) -> Self {
        self.method = Some(method.to_uppercase());
        self
    }

    /// Only calls whose path (without query) this regular expression finds, ignoring case.
    ///
    /// # Errors
    /// The regular expression does not parse.
    pub fn on_path(mut self, pattern: &str) -> Result<Self, String> {
        let built = RegexBuilder::new(pattern).case_insensitive(true).build();
        self.path = Some(built.map_err(|error| {
            format!("reading the fault's path pattern {pattern:?} failed: {error}; correct it")
        })?);
        Ok(self)
    }

    /// Only calls whose body, written as compact JSON, contains this text.
    #[must_use]
    pub fn on_body(mut self, part: &str) -> Self {
        self.body_contains = Some(part.to_owned());
        self
    }

    /// Lets the first `n` matching calls pass.
    #[must_use]
    pub fn skip(mut self, n: u64) -> Self {
        self.skip = n;
        self
    }

    /// Befalls `n` calls.
    #[must_use]
    pub fn times(mut self, n: u64) -> Self {
        self.times = Some(n);
        self
    }

    /// Befalls every matching call until the rules are cleared.
    #[must_use]
    pub fn always(mut self) -> Self {
        self.times = None;
        self
    }

    /// Reads a rule: `{method, path, body_contains, skip, times, kind, …}`. `times` is a number
    /// (1 if absent) or "always". Without `kind`, `status` and `code` say how the call is
    /// refused. The other kinds and their fields are named like the variants of [`FaultKind`],
    /// in snake case.
    ///
    /// # Errors
    /// The rule names an unknown kind or a path pattern that does not parse.
    pub fn from_json(rule: &Value) -> Result<Self, String> {
        let mut fault = Fault::new(kind_of(rule)?);
        if let Some(method) = rule["method"].as_str() {
            fault = fault.on_method(method);
        }
        if let Some(path) = rule["path"].as_str() {
            fault = fault.on_path(path)?;
        }
        fault.body_contains = rule["body_contains"].as_str().map(str::to_owned);
        fault.skip = rule["skip"].as_u64().unwrap_or(0);
        fault.times = match &rule["times"] {
            Value::String(word) if word == "always" => None,
            other => Some(other.as_u64().unwrap_or(1)),
        };
        Ok(fault)
    }

    fn matches(&self, request: &Request, path: &str, collection: bool) -> bool {
        let suits = match &self.kind {
            FaultKind::OperationFails { .. }
            | FaultKind::OperationCanceled { .. }
            | FaultKind::SucceedsButLosesPool => {
                !matches!(request.method.as_str(), "GET" | "HEAD" | "POST")
            }
            FaultKind::GatewayErrorIn200 { .. }
            | FaultKind::GatewayCodeIn200 { .. }
            | FaultKind::GatewayHeaderIn200 { .. }
            | FaultKind::GatewayAccepted
            | FaultKind::GatewayAcceptedThenFails { .. } => request.method == "POST",
            FaultKind::StaleList { .. } => request.method == "GET" && collection,
            _ => true,
        };
        suits
            && self.method.as_ref().is_none_or(|method| *method == request.method)
            && self.path.as_ref().is_none_or(|pattern| pattern.is_match(path))
            && self.body_contains.as_ref().is_none_or(|part| {
                request.body.as_ref().is_some_and(|body| body.to_string().contains(part.as_str()))
            })
    }
}

fn kind_of(rule: &Value) -> Result<FaultKind, String> {
    let code = |otherwise: &str| {
        let given = text(rule, &["code"]);
        if given.is_empty() { otherwise.to_owned() } else { given.to_owned() }
    };
    let milliseconds = |key: &str, otherwise: u64| rule[key].as_u64().unwrap_or(otherwise);
    Ok(match rule["kind"].as_str().unwrap_or("status") {
        "status" => status_of(rule, code("InternalServerError")),
        "connection_reset_before" => FaultKind::ConnectionResetBefore,
        "applied_then_reset" => FaultKind::AppliedThenReset,
        "operation_fails" => FaultKind::OperationFails { code: code("InternalServerError") },
        "operation_canceled" => FaultKind::OperationCanceled { code: code("OperationPreempted") },
        "succeeds_but_loses_pool" => FaultKind::SucceedsButLosesPool,
        "truncated_body" => FaultKind::TruncatedBody,
        "stale_list" => FaultKind::StaleList { age_ms: milliseconds("age_ms", 60_000) },
        "latency" => FaultKind::Latency { ms: milliseconds("ms", 1_000) },
        "hang" => FaultKind::Hang,
        "gateway_error_in_200" => {
            FaultKind::GatewayErrorIn200 { code: code("InternalServerError") }
        }
        "gateway_code_in_200" => FaultKind::GatewayCodeIn200 { code: code("InternalServerError") },
        "gateway_header_in_200" => {
            FaultKind::GatewayHeaderIn200 { code: code("InternalServerError") }
        }
        "gateway_accepted" => FaultKind::GatewayAccepted,
        "gateway_accepted_then_fails" => {
            FaultKind::GatewayAcceptedThenFails { code: code("InternalServerError") }
        }
        other => return Err(format!("reading a fault rule failed: there is no kind {other:?}")),
    })
}

fn status_of(rule: &Value, code: String) -> FaultKind {
    let headers = rule["headers"].as_object().into_iter().flatten();
    let message = rule["message"].as_str().unwrap_or("Refused on order.").to_owned();
    FaultKind::Status {
        status: number(rule, &["status"]).and_then(|x| u16::try_from(x).ok()).unwrap_or(500),
        code,
        message,
        retry_after_s: rule["retry_after"].as_u64(),
        headers: headers
            .map(|(name, value)| {
                let plain = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                (name.clone(), plain)
            })
            .collect(),
    }
}

/// All rules; the first that matches befalls the call.
#[derive(Debug, Clone, Default)]
pub(crate) struct Faults {
    pub(crate) rules: Vec<Fault>,
    /// How many times they were cleared.
    pub(crate) cleared: u64,
}

impl Faults {
    pub(crate) fn take(
        &mut self,
        request: &Request,
        path: &str,
        collection: bool,
    ) -> Option<FaultKind> {
        for fault in &mut self.rules {
            if fault.times == Some(0) || !fault.matches(request, path, collection) {
                continue;
            }
            if fault.skip > 0 {
                fault.skip -= 1;
                continue;
            }
            fault.times = fault.times.map(|left| left - 1);
            return Some(fault.kind.clone());
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn rules_match_count_and_skip() {
        let rule = json!({
            "method": "put", "path": "loadbalancers/[^/]+$", "body_contains": "afoo",
            "skip": 1, "times": 2, "status": 400, "code": "X", "headers": {"A": 1},
        });
        let rules = vec![Fault::from_json(&rule).unwrap()];
        let mut faults = Faults { rules, cleared: 0 };
        let put = Request::new("PUT", "/x/loadBalancers/lb").with_body(json!({"name": "afoo"}));
        let other = Request::new("PUT", "/x/loadBalancers/lb").with_body(json!({"name": "abar"}));
        let mut take = |request: &Request| faults.take(request, &request.path, false);
        assert_eq!(take(&other), None);
        assert_eq!(take(&put), None, "the first is let through");
        assert!(matches!(take(&put), Some(FaultKind::Status { status: 400, .. })));
        assert!(take(&put).is_some());
        assert_eq!(take(&put), None, "used up");
    }

    #[test]
    fn operations_only_fail_on_writes() {
        let rule = json!({"kind": "operation_fails", "code": "Y", "times": "always"});
        let rules = vec![Fault::from_json(&rule).unwrap()];
        let mut faults = Faults { rules, cleared: 0 };
        assert_eq!(faults.take(&Request::new("GET", "/a"), "/a", false), None);
        for _ in 0..3 {
            assert!(faults.take(&Request::new("DELETE", "/a"), "/a", false).is_some());
        }
        assert!(Fault::from_json(&json!({"kind": "nonsense"})).is_err());
        assert!(Fault::from_json(&json!({"path": "("})).is_err());
    }
}
