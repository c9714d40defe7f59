//! What fails: how often in a row, since when, and in which words.

use crate::request::method;
use arm::error::{ArmError, ErrorKind};
use model::obstacle::{Obstacle, ObstacleKind, Subject};
use model::plan::Action;
use model::{ResourceId, ServiceUid};
use std::collections::BTreeSet;
use std::sync::Arc;

/// What is kept of Azure's words, in bytes.
const MESSAGE: usize = 1_000;

/// Failures in a row of one thing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Trouble {
    kind: ObstacleKind,
    operation: Arc<str>,
    code: Arc<str>,
    message: Arc<str>,
    /// Failures in a row.
    pub attempt: u32,
    since_ms: u64,
    pub causes: BTreeSet<ServiceUid>,
}

/// A failed call.
pub(crate) struct Failure<'f> {
    pub kind: ObstacleKind,
    pub operation: String,
    pub code: &'f str,
    pub message: &'f str,
}

impl<'f> Failure<'f> {
    /// A write that Azure answered with an error.
    pub fn of_write(action: &Action, id: &ResourceId, error: &'f ArmError) -> Self {
        let kind = match error.kind {
            ErrorKind::Refused | ErrorKind::Forbidden | ErrorKind::Locked => ObstacleKind::Rejected,
            ErrorKind::Throttled => ObstacleKind::Throttled,
            ErrorKind::Stale
            | ErrorKind::Busy
            | ErrorKind::Missing
            | ErrorKind::Transient
            | ErrorKind::Unreachable
            | ErrorKind::Ambiguous => ObstacleKind::BackedOff,
        };
        let operation = format!("{} {}", method(action).name(), id.short());
        Self { kind, operation, code: &error.code, message: &error.message }
    }

    /// A read that Azure answered with an error.
    pub fn of_read(operation: String, error: &'f ArmError) -> Self {
        let kind = match error.kind {
            ErrorKind::Throttled => ObstacleKind::Throttled,
            _ => ObstacleKind::Unreadable,
        };
        Self { kind, operation, code: &error.code, message: &error.message }
    }
}

impl Trouble {
    /// Another failure after those before. Azure's words stay those of the first with its code:
    /// ids of requests and times in them are no news.
    pub fn after(
        before: Option<Self>,
        failure: Failure<'_>,
        causes: &BTreeSet<ServiceUid>,
        now_ms: u64,
    ) -> Self {
        let Failure { kind, operation, code, message } = failure;
        let attempt = before.as_ref().map_or(0, |before| before.attempt) + 1;
        let since_ms = before.as_ref().map_or(now_ms, |before| before.since_ms);
        let causes = causes.clone();
        match before {
            Some(before) if *before.code == *code && *before.operation == *operation => {
                Self { attempt, causes, ..before }
            }
            _ => Self {
                kind,
                operation: Arc::from(operation),
                code: Arc::from(code),
                message: Arc::from(&message[..message.floor_char_boundary(MESSAGE)]),
                attempt,
                since_ms,
                causes,
            },
        }
    }

    /// What was attempted and why it failed, in words that stay the same.
    pub fn cause(&self) -> String {
        self.obstacle(Subject::Cluster, BTreeSet::new(), None).cause()
    }

    /// What stands in the way of these Services, and until when.
    pub fn obstacle(
        &self,
        about: Subject,
        services: BTreeSet<ServiceUid>,
        next_ms: Option<u64>,
    ) -> Obstacle {
        Obstacle {
            about,
            services,
            kind: self.kind,
            operation: Arc::clone(&self.operation),
            code: Arc::clone(&self.code),
            message: Arc::clone(&self.message),
            attempt: self.attempt,
            since_ms: self.since_ms,
            next_ms,
        }
    }
}
