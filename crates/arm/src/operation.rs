//! The life of one request: sent, polled, read back.
//!
//! # Guarantees
//! A poll or a read-back that fails says nothing about the operation, so it is repeated and never
//! fails it, until [`MAX_FAULTS`] in a row make the outcome unknown. One that cannot be sent for
//! where Azure says the operation is makes it unknown at once.

use crate::body::read_provisioning;
use crate::error::{ArmError, ErrorKind, says_error};
use crate::exchange::{Answer, Method, Reply, Request, Target, TransportFault};
use crate::page::target;
use model::azure::Provisioning;
use serde_json::Value;
use std::sync::Arc;

/// Wait before the first poll: most network writes are done within a second or two.
pub const FIRST_POLL_MS: u64 = 1_000;
/// The longest wait between polls that ARM did not ask for: what Azure's own clients take.
pub const LONGEST_POLL_MS: u64 = 5_000;
/// Failed polls in a row after which the outcome is unknown: 60 times 5 s, five minutes.
pub const MAX_FAULTS: u32 = 60;
/// How long an operation is polled that Azure says is running: an hour, the longest of these that
/// operators report (a scale set's instances one after the other) with room to spare.
pub const LONGEST_RUN_MS: u64 = 3_600_000;
/// How long a resource is looked at whose state is all that says that it is being changed: fifteen
/// minutes. Nobody knows whether anything still runs, a resource may stay Updating for ever, and
/// writing it again is what helps it.
pub const LONGEST_SILENT_MS: u64 = 900_000;

/// What comes after an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Send this after a while.
    Poll {
        /// What to send.
        request: Request,
        /// When: milliseconds from now.
        after_ms: u64,
    },
    /// Done; send this now to see the result.
    ReadBack {
        /// What to send.
        request: Request,
    },
    /// Done.
    Done {
        /// The resource or the action's result, where one is known.
        body: Option<Arc<Value>>,
    },
    /// Not done, or not known to be.
    Failed(ArmError),
}

/// One request from its first answer to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// Without its body, which may be megabytes and is not sent again.
    request: Request,
    phase: Phase,
    polls: u32,
    /// The waits between polls of this phase.
    waited_ms: u64,
    faults: u32,
}

/// What the next answer is the answer to.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Phase {
    /// The request itself.
    Sent,
    /// A poll of `Azure-AsyncOperation`: its body has a status.
    Status(Target),
    /// A poll of `Location`: 202 until it is done.
    Location(Target),
    /// A read of the resource, whose own state says how far the operation is.
    Resource,
    /// A read of the resource after the operation has succeeded.
    ReadBack,
    /// A read of a resource that is to be gone.
    Absence,
}

impl Operation {
    /// Begins with a request that is about to be sent.
    #[must_use]
    pub fn start(request: &Request) -> Self {
        let Request { method, target, condition, body: _, correlation } = request;
        let request = Request {
            method: *method,
            target: target.clone(),
            condition: condition.clone(),
            body: None,
            correlation: correlation.clone(),
        };
        Self { request, phase: Phase::Sent, polls: 0, waited_ms: 0, faults: 0 }
    }

    /// Whether Azure has taken the request on: from then on a failure leaves the resource in a
    /// state that only reading it shows.
    #[must_use]
    pub fn is_accepted(&self) -> bool {
        self.phase != Phase::Sent
    }

    /// Whether the last answer was a read of the resource itself: it need not be read once more.
    #[must_use]
    pub fn has_read(&self) -> bool {
        matches!(self.phase, Phase::Resource | Phase::ReadBack)
    }

    /// Takes the answer to the request before.
    pub fn advance(&mut self, answer: &Answer) -> Step {
        if self.phase == Phase::Sent {
            return match answer {
                Answer::Fault(fault) => {
                    Step::Failed(ArmError::of_fault(self.request.method, fault))
                }
                Answer::Reply(reply) => self.answered(reply),
            };
        }
        let reply = match answer {
            Answer::Reply(reply) if !passes(reply.status) => reply,
            Answer::Reply(reply) => return self.repeat(ArmError::of_reply(reply)),
            Answer::Fault(TransportFault::Foreign(why)) => {
                let why = format!("the operation cannot be polled: {why}");
                let error = ArmError::own(ErrorKind::Ambiguous, 0, "OperationLost", why);
                return Step::Failed(error);
            }
            Answer::Fault(fault) => {
                return self.repeat(ArmError::of_fault(Method::Get, fault));
            }
        };
        self.faults = 0;
        match self.phase.clone() {
            Phase::Sent => self.answered(reply),
            Phase::Status(_) => self.status_polled(reply),
            Phase::Location(_) => self.location_polled(reply),
            Phase::Resource | Phase::ReadBack => self.resource_read(reply),
            Phase::Absence => self.absence_read(reply),
        }
    }

    fn answered(&mut self, reply: &Reply) -> Step {
        let method = self.request.method;
        if method == Method::Delete && is_gone(reply) {
            return Step::Done { body: None };
        }
        if !(200..300).contains(&reply.status) {
            return Step::Failed(ArmError::of_reply(reply));
        }
        if says_error(reply) {
            return Step::Failed(ArmError::of_operation(reply));
        }
        match method {
            Method::Get => Step::Done { body: reply.body.clone() },
            Method::Put | Method::Patch => self.written(reply),
            Method::Post | Method::Delete => self.acted(reply),
        }
    }

    /// An answer to a PUT: the operation's URL leads, then the resource's own state.
    fn written(&mut self, reply: &Reply) -> Step {
        let state = reply.body.as_deref().and_then(read_provisioning);
        if reply.status != 202 && state == Some(Provisioning::Succeeded) {
            return Step::Done { body: reply.body.clone() };
        }
        if let Some(phase) = polled(reply) {
            return self.poll(phase, reply);
        }
        match (reply.status, state) {
            (_, Some(Provisioning::Failed)) => Step::Failed(failed_state(reply)),
            (200, None) => Step::Done { body: reply.body.clone() },
            _ => self.poll(Phase::Resource, reply),
        }
    }

    /// An answer to a POST or DELETE: done unless it is 202, whatever the headers say.
    fn acted(&mut self, reply: &Reply) -> Step {
        let status = reply.body.as_deref().and_then(operation_status);
        if status == Some(Status::Failed) {
            return Step::Failed(ArmError::of_operation(reply));
        }
        if reply.status != 202 {
            return Step::Done { body: reply.body.clone() };
        }
        match polled(reply) {
            Some(phase) => self.poll(phase, reply),
            None if self.request.method == Method::Delete => self.poll(Phase::Absence, reply),
            None => Step::Failed(lost(reply, "accepted, but there is nothing to poll")),
        }
    }

    fn status_polled(&mut self, reply: &Reply) -> Step {
        match reply.status {
            200..300 => {}
            404 => return self.forgotten(reply),
            _ => return Step::Failed(ArmError::of_reply(reply)),
        }
        let body = reply.body.as_deref();
        match body.and_then(operation_status) {
            Some(Status::Succeeded) => self.succeeded(None),
            Some(Status::Failed) => Step::Failed(ArmError::of_operation(reply)),
            None if says_error(reply) => Step::Failed(ArmError::of_operation(reply)),
            None if reply.status == 204 => self.succeeded(None),
            Some(Status::Running) | None => self.again(reply),
        }
    }

    fn location_polled(&mut self, reply: &Reply) -> Step {
        match reply.status {
            202 => return self.again(reply),
            200..300 => {}
            404 if self.request.method == Method::Delete && is_gone(reply) => {
                return Step::Done { body: None };
            }
            404 => return self.forgotten(reply),
            _ => return Step::Failed(ArmError::of_reply(reply)),
        }
        let body = reply.body.as_deref();
        match body.and_then(operation_status) {
            Some(Status::Failed) => Step::Failed(ArmError::of_operation(reply)),
            Some(Status::Running) => self.again(reply),
            None if says_error(reply) => Step::Failed(ArmError::of_operation(reply)),
            Some(Status::Succeeded) => self.succeeded(None),
            None => self.succeeded(reply.body.clone()),
        }
    }

    fn resource_read(&mut self, reply: &Reply) -> Step {
        if reply.status != 200 {
            return Step::Failed(ArmError::of_reply(reply));
        }
        match reply.body.as_deref().and_then(read_provisioning) {
            Some(Provisioning::Busy) => {
                self.phase = Phase::Resource;
                self.again(reply)
            }
            Some(Provisioning::Failed) => Step::Failed(failed_state(reply)),
            Some(Provisioning::Succeeded) | None => Step::Done { body: reply.body.clone() },
        }
    }

    fn absence_read(&mut self, reply: &Reply) -> Step {
        match reply.status {
            404 if is_gone(reply) => Step::Done { body: None },
            200 => match reply.body.as_deref().and_then(read_provisioning) {
                Some(Provisioning::Failed) => Step::Failed(failed_state(reply)),
                _ => self.again(reply),
            },
            _ => Step::Failed(ArmError::of_reply(reply)),
        }
    }

    /// Azure no longer knows the operation: what became of it shows in the resource.
    fn forgotten(&mut self, reply: &Reply) -> Step {
        match self.request.method {
            Method::Get | Method::Put | Method::Patch => self.poll(Phase::Resource, reply),
            Method::Delete => self.poll(Phase::Absence, reply),
            Method::Post => Step::Failed(lost(reply, "Azure no longer knows the operation")),
        }
    }

    fn succeeded(&mut self, body: Option<Arc<Value>>) -> Step {
        match self.request.method {
            Method::Put | Method::Patch => {
                self.phase = Phase::ReadBack;
                Step::ReadBack { request: self.resource_request() }
            }
            Method::Get | Method::Post | Method::Delete => Step::Done { body },
        }
    }

    fn poll(&mut self, phase: Phase, reply: &Reply) -> Step {
        self.phase = phase;
        self.again(reply)
    }

    /// The next poll of the same phase.
    fn again(&mut self, reply: &Reply) -> Step {
        // An operation may move to another URL while it runs.
        self.phase = match (&self.phase, &reply.async_operation, &reply.location) {
            (Phase::Status(_), Some(url), _) => Phase::Status(target(url)),
            (Phase::Location(_), _, Some(url)) => Phase::Location(target(url)),
            (phase, _, _) => phase.clone(),
        };
        if self.waited_ms >= self.longest_ms() {
            return Step::Failed(lost(reply, "the operation does not end"));
        }
        let grown = FIRST_POLL_MS.saturating_mul(1 << self.polls.min(8)).min(LONGEST_POLL_MS);
        self.polls += 1;
        let after_ms = asked_ms(reply.retry_after_ms).unwrap_or(grown);
        // A poll that asks for hardly any wait still takes time.
        self.waited_ms += after_ms.max(FIRST_POLL_MS);
        Step::Poll { request: self.poll_request(), after_ms }
    }

    fn longest_ms(&self) -> u64 {
        match self.phase {
            Phase::Status(_) | Phase::Location(_) => LONGEST_RUN_MS,
            Phase::Sent | Phase::Resource | Phase::ReadBack | Phase::Absence => LONGEST_SILENT_MS,
        }
    }

    /// The same poll again, because its answer said nothing.
    fn repeat(&mut self, why: ArmError) -> Step {
        self.faults += 1;
        if self.faults > MAX_FAULTS {
            return match self.phase {
                // It is known to have succeeded; only what became of it is not.
                Phase::ReadBack => Step::Done { body: None },
                _ => Step::Failed(ArmError {
                    kind: ErrorKind::Ambiguous,
                    message: format!("the operation can no longer be polled: {}", why.message),
                    ..why
                }),
            };
        }
        let after_ms = asked_ms(why.retry_after_ms).unwrap_or(LONGEST_POLL_MS);
        Step::Poll { request: self.poll_request(), after_ms }
    }

    fn poll_request(&self) -> Request {
        match &self.phase {
            Phase::Status(target) | Phase::Location(target) => self.get(target.clone()),
            Phase::Sent | Phase::Resource | Phase::ReadBack | Phase::Absence => {
                self.resource_request()
            }
        }
    }

    fn resource_request(&self) -> Request {
        self.get(self.request.target.clone())
    }

    fn get(&self, target: Target) -> Request {
        let correlation = self.request.correlation.clone();
        Request {
            method: Method::Get,
            target,
            condition: crate::Condition::None,
            body: None,
            correlation,
        }
    }
}

/// The wait that an answer asks for. None at all is not asked for: an operation that runs would be
/// polled as fast as answers come, and take the calls of all others. Azure's own client for Python
/// takes a zero as if nothing were said, too (azure-core, `_extract_delay` of its base polling).
fn asked_ms(retry_after_ms: Option<u64>) -> Option<u64> {
    retry_after_ms.filter(|ms| *ms > 0)
}

/// Whether an answer says that a resource does not stand: a 404 about its subscription does not.
fn is_gone(reply: &Reply) -> bool {
    reply.status == 404 && ArmError::of_reply(reply).kind == ErrorKind::Missing
}

/// Statuses of a poll that say nothing about the operation.
fn passes(status: u16) -> bool {
    matches!(status, 408 | 429 | 500..)
}

/// What is to be polled after an answer.
fn polled(reply: &Reply) -> Option<Phase> {
    let link = |header: &Option<String>| header.clone().filter(|url| !url.trim().is_empty());
    let status = link(&reply.async_operation).map(|url| Phase::Status(target(&url)));
    status.or_else(|| link(&reply.location).map(|url| Phase::Location(target(&url))))
}

/// How far an operation is by its own account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Status {
    Running,
    Succeeded,
    Failed,
}

/// `status` of an operation's body; `None` where there is none, as in a resource.
fn operation_status(body: &Value) -> Option<Status> {
    let word = body.get("status")?.as_str()?;
    let is = |w: &str| word.eq_ignore_ascii_case(w);
    if is("Succeeded") {
        Some(Status::Succeeded)
    } else if is("Failed") || is("Canceled") || is("Cancelled") {
        Some(Status::Failed)
    } else {
        Some(Status::Running)
    }
}

fn failed_state(reply: &Reply) -> ArmError {
    let message = "Azure took the request, and then the resource's provisioning failed";
    ArmError::own(ErrorKind::Transient, reply.status, "ProvisioningFailed", message)
}

fn lost(reply: &Reply, why: &str) -> ArmError {
    ArmError::own(ErrorKind::Ambiguous, reply.status, "OperationLost", why)
}
