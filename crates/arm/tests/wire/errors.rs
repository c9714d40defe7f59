//! Which failure means what.

use crate::reply;
use arm::{ArmError, ErrorKind, Method, TransportFault};
use serde_json::{Value, json};

fn coded(status: u16, code: &str) -> ArmError {
    ArmError::of_reply(&reply(status, json!({"error": {"code": code, "message": "m"}})))
}

#[test]
fn status_and_code_decide() {
    let table = [
        (412, "PreconditionFailed", ErrorKind::Stale),
        (429, "SubscriptionRequestsThrottled", ErrorKind::Throttled),
        (429, "TooManyRequests", ErrorKind::Throttled),
        (429, "RetryableErrorDueToAnotherOperation", ErrorKind::Busy),
        (429, "AnotherOperationInProgress", ErrorKind::Busy),
        (409, "AnotherOperationInProgress", ErrorKind::Busy),
        (409, "RetryableError", ErrorKind::Busy),
        (409, "Conflict", ErrorKind::Busy),
        (409, "ScopeLocked", ErrorKind::Locked),
        (409, "ReadOnlyDisabledSubscription", ErrorKind::Locked),
        (403, "ReadOnlyDisabledSubscription", ErrorKind::Locked),
        (409, "OperationPreempted", ErrorKind::Busy),
        (409, "PublicIPAddressInUse", ErrorKind::Refused),
        (409, "QuotaExceeded", ErrorKind::Refused),
        (409, "InvalidResourceLocation", ErrorKind::Refused),
        (409, "ResourceGroupBeingDeleted", ErrorKind::Refused),
        (409, "OperationNotAllowed", ErrorKind::Refused),
        (409, "SomethingNew", ErrorKind::Refused),
        (409, "ReferencedResourceNotProvisioned", ErrorKind::Busy),
        (409, "ConflictingConcurrentWriteNotAllowed", ErrorKind::Busy),
        (409, "RequestConflict", ErrorKind::Busy),
        (400, "CanceledAndSupersededDueToAnotherOperation", ErrorKind::Busy),
        (400, "ReferencedResourceNotProvisioned", ErrorKind::Busy),
        (400, "PublicIPAddressCannotBeDeleted", ErrorKind::Refused),
        (400, "SomethingNew", ErrorKind::Refused),
        (422, "Unprocessable", ErrorKind::Refused),
        (404, "ResourceNotFound", ErrorKind::Missing),
        (404, "ResourceGroupNotFound", ErrorKind::Missing),
        (404, "SubscriptionNotFound", ErrorKind::Forbidden),
        (401, "InvalidAuthenticationToken", ErrorKind::Forbidden),
        (403, "AuthorizationFailed", ErrorKind::Forbidden),
        (403, "RequestDisallowedByPolicy", ErrorKind::Refused),
        (408, "RequestTimeout", ErrorKind::Transient),
        (500, "InternalServerError", ErrorKind::Transient),
        (503, "AnotherOperationInProgress", ErrorKind::Transient),
    ];
    for (status, code, kind) in table {
        assert_eq!(coded(status, code).kind, kind, "{status} {code}");
    }
}

#[test]
fn a_conflict_passes_only_if_its_code_says_so() {
    let kind = |body: Value| ArmError::of_reply(&reply(409, body)).kind;
    assert_eq!(kind(json!(null)), ErrorKind::Refused, "no code");
    let inner = |code: &str| json!({"error": {"code": "Conflict", "details": [{"code": code}]}});
    assert_eq!(kind(inner("Conflict")), ErrorKind::Busy);
    assert_eq!(kind(inner("AnotherOperationInProgress")), ErrorKind::Busy);
    assert_eq!(kind(inner("InvalidResourceLocation")), ErrorKind::Refused);
}

#[test]
fn a_code_in_the_header_counts_where_the_body_has_none() {
    let mut bare = reply(409, json!(null));
    bare.error_code = Some("AnotherOperationInProgress".to_owned());
    let error = ArmError::of_reply(&bare);
    let code = "AnotherOperationInProgress";
    assert_eq!((error.kind, error.code.as_str()), (ErrorKind::Busy, code));
    let mut both = reply(409, json!({"error": {"code": "ScopeLocked", "message": "m"}}));
    both.error_code = Some("Conflict".to_owned());
    assert_eq!(ArmError::of_reply(&both).kind, ErrorKind::Locked);
}

#[test]
fn codes_are_found_however_deep_they_lie() {
    let inner = json!({"error": {"code": "AnotherOperationInProgress", "message": "busy"}});
    let bodies = [
        json!({"code": "RetryableError", "message": "m"}),
        json!({"error": {"code": "Conflict", "details": [{"code": "OperationPreempted"}]}}),
        json!({"error": {"code": "BadRequest", "innererror": {"code": "OperationPreempted"}}}),
        json!({"error": {"code": "BadRequest", "message": inner.to_string()}}),
        json!({"Error": {"Code": "RetryableError", "Message": "m"}}),
    ];
    for body in bodies {
        assert_eq!(ArmError::of_reply(&reply(400, body.clone())).kind, ErrorKind::Busy, "{body}");
    }
    let prose = json!({"error": {"code": "BadRequest", "message": "AnotherOperationInProgress"}});
    assert_eq!(ArmError::of_reply(&reply(400, prose)).kind, ErrorKind::Refused);
    for body in [json!(null), json!([]), json!("x"), json!({"error": "x"}), json!({"error": null})]
    {
        let error = ArmError::of_reply(&reply(400, body));
        assert_eq!((error.kind, error.code.as_str()), (ErrorKind::Refused, "Http400"));
    }
}

#[test]
fn operations_fail_by_code_alone() {
    let kind = |code: &str| {
        let body = json!({"status": "Failed", "error": {"code": code, "message": "m"}});
        ArmError::of_operation(&reply(200, body)).kind
    };
    assert_eq!(kind("InternalServerError"), ErrorKind::Transient);
    assert_eq!(kind("Conflict"), ErrorKind::Busy);
    assert_eq!(kind("ResourceNotFound"), ErrorKind::Missing);
    assert_eq!(kind("SomethingNew"), ErrorKind::Refused);
    let canceled = ArmError::of_operation(&reply(200, json!({"status": "Canceled"})));
    assert_eq!((canceled.kind, canceled.code.as_str()), (ErrorKind::Busy, "Canceled"));
}

#[test]
fn a_wait_hidden_in_words_counts_only_without_a_header() {
    let said = |text: &str| json!({"error": {"code": "TooManyRequests", "message": text}});
    let wait = |status, body: Value| ArmError::of_reply(&reply(status, body)).retry_after_ms;
    assert_eq!(wait(429, said("It can be retried in 17 seconds.")), Some(17_000));
    assert_eq!(wait(429, said("Please try again after 3 seconds")), Some(3_000));
    assert_eq!(wait(429, said("Please try again after '372' seconds.")), Some(372_000));
    assert_eq!(wait(429, said("try after a while, or after 5 moons")), None);
    assert_eq!(wait(400, said("retried in 17 seconds")), None);
    let detail = json!({"error": {"code": "TooManyRequests", "message": "Throttled.", "details": [
        {"code": "TooManyRequests", "message": "It can be retried in 11 seconds."},
        {"code": "TooManyRequests", "message": "It can be retried in 4 seconds."}]}});
    assert_eq!(wait(429, detail), Some(11_000), "the longest");
    let mut both = reply(429, said("retried in 17 seconds"));
    both.retry_after_ms = Some(2_000);
    assert_eq!(ArmError::of_reply(&both).retry_after_ms, Some(2_000));
}

#[test]
fn a_write_that_broke_off_is_of_unknown_outcome_and_a_read_is_not() {
    let broken = TransportFault::Ambiguous("reset".to_owned());
    let unsent = TransportFault::NotSent("refused".to_owned());
    assert_eq!(ArmError::of_fault(Method::Put, &broken).kind, ErrorKind::Ambiguous);
    assert_eq!(ArmError::of_fault(Method::Get, &broken).kind, ErrorKind::Transient);
    assert_eq!(ArmError::of_fault(Method::Put, &unsent).kind, ErrorKind::Unreachable);
    insta::assert_snapshot!(ArmError::of_fault(Method::Put, &broken),
        @"outcome unknown: NoAnswer: reset");
    insta::assert_snapshot!(coded(409, "ScopeLocked"),
        @"the resource is locked (HTTP 409): ScopeLocked: m");
}

/// As Azure/azure-powershell, issue 13544, shows it: the outer message alone says nothing.
#[test]
fn the_message_of_a_detail_is_told() {
    let body = |details: Value| {
        json!({"error": {"code": "InvalidRequestFormat", "message": "Cannot parse the request.",
            "details": details}})
    };
    let message = |details| ArmError::of_reply(&reply(400, body(details))).message;
    let detail = |text: &str| json!({"code": "InvalidJson", "message": text});
    assert_eq!(message(json!([])), "Cannot parse the request.");
    assert_eq!(
        message(json!([detail("Could not find member 'x'."), detail("Nor 'y'.")])),
        "Cannot parse the request. Could not find member 'x'."
    );
    assert_eq!(message(json!([detail("Cannot parse")])), "Cannot parse the request.");
}
