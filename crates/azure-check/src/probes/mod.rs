//! How assumptions are tried, by what they are about.

pub(crate) mod echoes;
pub(crate) mod etags;
pub(crate) mod gateway;
pub(crate) mod links;
pub(crate) mod metrics;
pub(crate) mod mistakes;
pub(crate) mod operations;
pub(crate) mod permissions;
pub(crate) mod refusals;
pub(crate) mod throttle;
pub(crate) mod versions;

use crate::assumption::{Tried, Verdict};
use crate::exchange::Came;
use crate::lab::Done;
use arm::ErrorKind;

/// Codes that say nothing about what was tried: the subscription or its policy stands before it.
const BESIDE_THE_POINT: [&str; 9] = [
    "MissingSubscriptionRegistration",
    "SubscriptionNotRegisteredForFeature",
    "RequestDisallowedByPolicy",
    "PublicIPCountLimitReached",
    "QuotaExceeded",
    "SkuNotAvailable",
    "ResourceGroupNotFound",
    "ReadOnlyDisabledSubscription",
    "ScopeLocked",
];

/// Why an answer says nothing about what was tried.
pub(crate) fn beside_the_point(came: &Came) -> Option<String> {
    let code = came.code().unwrap_or_default();
    let beside = matches!(came.status, 0 | 401 | 403 | 429 | 500..)
        || BESIDE_THE_POINT.iter().any(|known| known.eq_ignore_ascii_case(code));
    beside.then(|| format!("{}: {}", came.short(), came.message()))
}

/// A request that Azure is expected to refuse with a status and, where one is given, a code.
pub(crate) fn refused(done: &Done, status: u16, code: Option<&str>) -> Verdict {
    let came = &done.came;
    if let Some(why) = beside_the_point(came) {
        return Verdict::NotTried(why);
    }
    let right = came.status == status
        && code.is_none_or(|code| came.code().is_some_and(|found| found == code));
    match right {
        true => Verdict::AS_ASSUMED,
        false if came.is_taken() => Verdict::Differs(format!("taken ({})", came.status)),
        false => Verdict::Differs(format!("refused with {}", came.short())),
    }
}

/// A request that Azure is expected to take.
pub(crate) fn taken(done: &Done) -> Tried {
    let came = &done.came;
    match &done.result {
        Ok(_) => Ok(Verdict::AS_ASSUMED),
        Err(error) if error.kind != ErrorKind::Refused && error.kind != ErrorKind::Stale => {
            Err(done.blocked("the request"))
        }
        Err(_) if beside_the_point(came).is_some() => Err(done.blocked("the request")),
        Err(_) if came.is_taken() => {
            let why = done.blocked("the operation").0;
            Ok(Verdict::Differs(why))
        }
        Err(_) => {
            Ok(Verdict::Differs(format!("refused with {}: {}", came.short(), came.message())))
        }
    }
}
