//! What replies of Azure's say.

use super::{Call, End, Heard, Purpose};
use crate::path::quotas;
use arm::{Method, Reply};
use serde_json::Value;

/// How long what Azure says is running is left alone where it asks for no pause: what `arm` keeps
/// to (`FIRST_POLL_MS`). Azure's own clients wait longer.
pub(super) const UNASKED_MS: u64 = 1_000;

/// What a reply of Azure's says.
pub(super) fn heard(call: &Call, reply: &Reply) -> Heard {
    let body = reply.body.as_deref();
    // A read of what does not exist says so.
    let absent = reply.status == 404 && call.purpose != Purpose::Write;
    let gone = reply.status == 404 && call.method == Method::Delete;
    let end = match reply.status {
        200..300 if runs(call, reply) => End::Runs,
        200..300 => End::Done,
        _ if absent || gone => End::Done,
        _ => End::Failed,
    };
    let error = body.map(|body| &body["error"]);
    let quota = match error.and_then(|error| error["code"].as_str()) {
        Some("SubscriptionRequestsThrottled") => Some(0),
        Some("TooManyRequests") => Some(1),
        _ => None,
    };
    let quota = quota.filter(|_| end == End::Failed);
    let quota = quota.map(|at| quotas(call.method, &call.path)[at].clone());
    let said_ms = || seconds_in(error?["message"].as_str()?).map(|seconds| seconds * 1_000);
    let wait_ms = match end {
        End::Failed => reply.retry_after_ms.or_else(said_ms).unwrap_or(0),
        End::Done | End::Runs => 0,
    };
    let status = body.map_or("", |body| body["status"].as_str().unwrap_or(""));
    let undone = matches!(status, "Failed" | "Canceled");
    let poll_ms = reply.retry_after_ms.unwrap_or(UNASKED_MS);
    let (stale, status) = (reply.status == 412, reply.status);
    Heard { end, wait_ms, quota, poll_ms, stale, undone, status }
}

/// Whether what was asked for still runs.
fn runs(call: &Call, reply: &Reply) -> bool {
    if call.purpose == Purpose::Read {
        return false;
    }
    let body = reply.body.as_deref();
    let is = |value: &Value, words: &[&str]| {
        let text = value.as_str();
        text.is_some_and(|text| words.iter().any(|word| text.eq_ignore_ascii_case(word)))
    };
    let inside = body.map_or(&Value::Null, |body| &body["properties"]["provisioningState"]);
    let state = body.map_or(&Value::Null, |body| &body["status"]);
    reply.status == 202
        || is(inside, &["Updating", "Deleting", "Creating"])
        || is(state, &["InProgress", "Running", "Accepted"])
}

/// The seconds in "The operation can be retried in 15 seconds", which stand in for Retry-After.
fn seconds_in(message: &str) -> Option<u64> {
    let (_, rest) = message.split_once("can be retried in ")?;
    let (number, unit) = rest.split_once(' ')?;
    number.parse().ok().filter(|_| unit.starts_with("second"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::seen::Seen;
    use serde_json::json;

    #[test]
    fn what_runs_is_left_alone_whether_or_not_azure_asks_for_it() {
        let correlation = String::new();
        let (target, path, about) = (String::new(), String::new(), String::new());
        let (purpose, method, sent_ms) = (Purpose::Follow, Method::Get, 0);
        let (term, inputs, writes, news, version) = (0, 0, 0, 0, None);
        let seen = Seen { term, inputs, writes, news, version };
        let call = Call { target, path, correlation, purpose, method, about, seen, sent_ms };
        let poll_ms = |retry_after_ms: Option<u64>| {
            let body = Some(json!({"status": "InProgress"}).into());
            let reply = Reply { status: 200, retry_after_ms, body, ..Reply::default() };
            let heard = heard(&call, &reply);
            assert_eq!(heard.end, End::Runs);
            heard.poll_ms
        };
        assert_eq!(poll_ms(None), 1_000);
        assert_eq!(poll_ms(Some(4_000)), 4_000);
    }

    #[test]
    fn seconds_stand_in_the_message() {
        let said = "The operation can be retried in 15 seconds.";
        assert_eq!(seconds_in(said), Some(15));
        assert_eq!(seconds_in("The operation can be retried in 3 minutes."), None);
        assert_eq!(seconds_in("too many requests"), None);
    }
}
