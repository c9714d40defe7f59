//! What replies of Azure's say.

use super::{Call, End, Heard, Purpose, quotas};
use arm::{Method, Reply};
use serde_json::Value;

/// What a reply of Azure's says.
pub(super) fn heard(call: &Call, reply: &Reply) -> Heard {
    let body = reply.body.as_ref();
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
    let poll_ms = reply.retry_after_ms.unwrap_or(0);
    Heard { end, wait_ms, quota, poll_ms, stale: reply.status == 412, undone }
}

/// Whether what was asked for still runs.
fn runs(call: &Call, reply: &Reply) -> bool {
    if call.purpose == Purpose::Read {
        return false;
    }
    let body = reply.body.as_ref();
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

    #[test]
    fn seconds_stand_in_the_message() {
        let said = "The operation can be retried in 15 seconds.";
        assert_eq!(seconds_in(said), Some(15));
        assert_eq!(seconds_in("The operation can be retried in 3 minutes."), None);
        assert_eq!(seconds_in("too many requests"), None);
    }
}
