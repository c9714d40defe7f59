//! Faults as the Azure emulator knows them.

use crate::fault::Fault;
use crate::path::bare_path;
use arm::{Method, Request};
use azure_emulator::FaultKind;

/// Azure says no.
pub(crate) fn refusal(
    status: u16,
    code: &str,
    message: &str,
    retry_after_s: Option<u64>,
) -> FaultKind {
    let (code, message) = (code.to_owned(), message.to_owned());
    FaultKind::Status { status, code, message, retry_after_s, headers: Vec::new() }
}

/// A fault as the emulator knows it. `number` decides the details.
pub(crate) fn azure_fault(fault: Fault, request: &Request, number: u64) -> FaultKind {
    let some = |low: u64, high: u64| low + number % (high - low + 1);
    match fault {
        Fault::QuotaWithHeader => {
            refusal(429, "TooManyRequests", "too many requests", Some(some(1, 90)))
        }
        Fault::QuotaWithoutHeader => refusal(429, "TooManyRequests", "too many requests", None),
        Fault::QuotaInBody => {
            let text = format!("The operation can be retried in {} seconds.", some(1, 90));
            refusal(429, "TooManyRequests", &text, None)
        }
        Fault::LockThrottled => refusal(
            429,
            "RetryableErrorDueToAnotherOperation",
            "another operation has the lock",
            Some(some(1, 10)),
        ),
        Fault::NotProvisioned => refusal(
            429,
            "ReferencedResourceNotProvisioned",
            "a resource that is referred to is not in Succeeded state",
            Some(some(1, 10)),
        ),
        Fault::GatewayThrottled => refusal(429, "GatewayError", "the gateway is busy", None),
        Fault::OtherOperation => {
            refusal(409, "AnotherOperationInProgress", "another operation is in progress", None)
        }
        Fault::ScopeLocked => refusal(409, "ScopeLocked", "the scope is locked", None),
        Fault::Precondition => refusal(412, "PreconditionFailed", "the ETag does not match", None),
        Fault::Refused => refusal(400, refused_code(request, number), "on order", None),
        Fault::Forbidden => refusal(403, "AuthorizationFailed", "no right to do this", None),
        Fault::GroupMissing => refusal(404, "ResourceGroupNotFound", "no such group", None),
        Fault::TokenExpired => {
            refusal(401, "ExpiredAuthenticationToken", "the token has expired", None)
        }
        Fault::Preempted => refusal(409, "OperationPreempted", "preempted by another", None),
        Fault::ParentMissing => refusal(404, "ParentResourceNotFound", "no such parent", None),
        Fault::Superseded => FaultKind::OperationCanceled {
            code: "CanceledAndSupersededDueToAnotherOperation".to_owned(),
        },
        Fault::LosesPool => FaultKind::SucceedsButLosesPool,
        Fault::OperationFails => {
            FaultKind::OperationFails { code: "InternalServerError".to_owned() }
        }
        Fault::ErrorIn200 => {
            FaultKind::GatewayErrorIn200 { code: "InternalServerError".to_owned() }
        }
        Fault::AcceptedThenFails => {
            FaultKind::GatewayAcceptedThenFails { code: "InternalServerError".to_owned() }
        }
        Fault::ResetBefore => FaultKind::ConnectionResetBefore,
        Fault::ResetAfter => FaultKind::AppliedThenReset,
        Fault::Truncated => FaultKind::TruncatedBody,
        Fault::Hang => FaultKind::Hang,
        Fault::Slow => FaultKind::Latency { ms: some(500, 40_000) },
        Fault::StaleList => FaultKind::StaleList { age_ms: some(500, 9_000) },
        _ => {
            let statuses = [
                (500, "InternalServerError"),
                (502, "BadGateway"),
                (503, "ServiceUnavailable"),
                (504, "GatewayTimeout"),
            ];
            let (status, code) = statuses[usize::try_from(number % 4).unwrap_or(0)];
            refusal(status, code, "Azure failed", None)
        }
    }
}

/// A code that Azure refuses this kind of resource with.
fn refused_code(request: &Request, number: u64) -> &'static str {
    let path = bare_path(request);
    let deletes = request.method == Method::Delete;
    let codes: &[&str] = if path.contains("/publicIPAddresses/") {
        if deletes { &["PublicIPAddressCannotBeDeleted"] } else { &["PublicIPCountLimitReached"] }
    } else if path.contains("/loadBalancers/") {
        if deletes {
            &["LoadBalancerInUseByVirtualMachineScaleSet"]
        } else {
            &[
                "PublicIPAndLBSkuDoNotMatch",
                "PublicIPReferencedByMultipleIPConfigs",
                "AtleastOneIpV4RequiredForIpV6LbFrontendIpConfiguration",
            ]
        }
    } else if path.contains("/networkSecurityGroups/") {
        &["SecurityRuleCountLimitReached"]
    } else if path.contains("/Microsoft.Compute/") {
        &["NetworkInterfaceUsesMultipleLoadBalancersOfSameType"]
    } else {
        &["InvalidRequestFormat"]
    };
    codes[usize::try_from(number % codes.len() as u64).unwrap_or(0)]
}
