//! Requests that fail on demand.

use crate::request::{Method, Request};
use crate::route::Target;
use crate::status::ApiError;
use crate::store::Store;

/// How a request fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// 429 with a `Retry-After` of this many seconds.
    Throttled(u32),
    /// 500.
    Internal,
    /// 409, as if somebody else had written first.
    Conflict,
    /// 503.
    Unavailable,
}

/// Which coming requests fail, how, and how many of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The verb, or any.
    pub method: Option<Method>,
    /// The plural kind, or any.
    pub plural: Option<String>,
    /// The object's name, or any.
    pub name: Option<String>,
    /// How they fail.
    pub failure: Failure,
    /// How many requests fail.
    pub times: u32,
}

impl Fault {
    /// The next request of any kind fails.
    pub fn next(failure: Failure) -> Self {
        Self { method: None, plural: None, name: None, failure, times: 1 }
    }

    /// The same for one verb only.
    #[must_use]
    pub fn on_method(mut self, method: Method) -> Self {
        self.method = Some(method);
        self
    }

    /// The same for one kind only.
    #[must_use]
    pub fn on_kind(mut self, plural: &str) -> Self {
        self.plural = Some(plural.to_string());
        self
    }

    /// The same for one name only.
    #[must_use]
    pub fn on_name(mut self, name: &str) -> Self {
        self.name = Some(name.to_string());
        self
    }

    /// The same for several requests.
    #[must_use]
    pub fn times(mut self, times: u32) -> Self {
        self.times = times;
        self
    }

    fn strikes(&self, request: &Request, target: &Target) -> bool {
        self.times > 0
            && self.method.is_none_or(|method| method == request.method)
            && self.plural.as_ref().is_none_or(|plural| plural == target.kind.plural)
            && self.name.as_ref().is_none_or(|name| target.name.as_ref() == Some(name))
    }
}

impl Store {
    /// Fails the request if a fault waits for it.
    pub(crate) fn strike(&mut self, request: &Request, target: &Target) -> Result<(), ApiError> {
        let found = self.faults_mut().iter_mut().find(|fault| fault.strikes(request, target));
        let Some(fault) = found else { return Ok(()) };
        fault.times -= 1;
        let failure = fault.failure;
        self.faults_mut().retain(|fault| fault.times > 0);
        Err(match failure {
            Failure::Throttled(seconds) => ApiError::throttled(seconds),
            Failure::Internal => {
                ApiError::new(500, "InternalError", "Internal error occurred: injected fault")
            }
            Failure::Conflict => ApiError::stale(target.kind, target.name.as_deref().unwrap_or("")),
            Failure::Unavailable => ApiError::new(
                503,
                "ServiceUnavailable",
                "the server is currently unable to \
                     handle the request: injected fault",
            ),
        })
    }
}
