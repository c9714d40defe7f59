//! Every Azure write: what it changed, what it was caused by, and what Azure answered.
//!
//! # Guarantees
//! - Nothing that decides reads it. Times are those of the step's argument.
//! - It holds at most [`RECORDS`] writes and about [`BYTES`]; the oldest are forgotten first.
//! - A value of a field that may carry a secret is not kept.

mod cause;
mod fields;

pub use cause::{Cause, Edit};
pub use fields::FieldChange;
pub(crate) use fields::of_action;

use arm::error::ArmError;
use cause::Causes;
use model::{ResourceId, ServiceName};
use std::collections::VecDeque;
use std::sync::Arc;

/// Writes that are held at most.
pub const RECORDS: usize = 1_000;
/// Bytes that they take at most, about.
pub const BYTES: usize = 16 << 20;
/// What is kept of Azure's words, in bytes.
const MESSAGE: usize = 1_000;

/// What Azure answered to a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WriteOutcome {
    /// Nothing yet.
    UnderWay,
    /// It is done.
    Done,
    /// It failed.
    Failed {
        /// HTTP status; 0 where there was no answer.
        status: u16,
        /// Azure's error code.
        code: Arc<str>,
        /// Azure's message.
        message: Arc<str>,
    },
}

/// The first of a list, and how many further ones there were.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Few<T> {
    /// The first.
    pub shown: Vec<T>,
    /// How many there were besides.
    pub more: usize,
}

/// One Azure write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteRecord {
    /// Its number: later writes have greater ones.
    pub number: u64,
    /// HTTP method.
    pub method: &'static str,
    /// What is written.
    pub target: ResourceId,
    /// `x-ms-correlation-request-id`.
    pub correlation: Arc<str>,
    /// The number of the attempt in a row for this resource, from 1.
    pub attempt: u32,
    /// When it was sent, in milliseconds of the controller's clock.
    pub sent_ms: u64,
    /// When it ended.
    pub ended_ms: Option<u64>,
    /// What Azure answered.
    pub outcome: WriteOutcome,
    /// The Services that it was for, by namespace and name.
    pub services: Arc<[ServiceName]>,
    /// The egress gateways that it was for, by name.
    pub gateways: Arc<[Arc<str>]>,
    /// What it changes, field by field.
    pub fields: Few<FieldChange>,
    /// What it was caused by.
    pub causes: Few<Cause>,
}

impl WriteRecord {
    /// What it takes in memory, about: names are shared with others, and so may edits be.
    fn bytes(&self) -> usize {
        let fields: usize = self.fields.shown.iter().map(FieldChange::bytes).sum();
        let message = match &self.outcome {
            WriteOutcome::Failed { message, .. } => message.len(),
            WriteOutcome::UnderWay | WriteOutcome::Done => 0,
        };
        let gateways = self.gateways.iter().map(|name| size_of::<Arc<str>>() + name.len());
        let names = self.services.len() * size_of::<ServiceName>() + gateways.sum::<usize>();
        let causes = self.causes.shown.iter().map(Cause::bytes).sum::<usize>();
        size_of::<Self>() + self.target.as_str().len() + fields + message + names + causes
    }
}

/// The writes, and what they may be caused by.
#[derive(Debug, Default)]
pub(crate) struct History {
    records: VecDeque<Arc<WriteRecord>>,
    bytes: usize,
    last: u64,
    pub causes: Causes,
}

impl WriteOutcome {
    /// A write failed.
    pub(crate) fn failed(error: &ArmError) -> Self {
        let message = &error.message[..error.message.floor_char_boundary(MESSAGE)];
        Self::Failed {
            status: error.status,
            code: Arc::from(error.code.as_str()),
            message: Arc::from(message),
        }
    }
}

impl History {
    /// The writes that are held, the first first.
    pub fn records(&self) -> impl DoubleEndedIterator<Item = &Arc<WriteRecord>> {
        self.records.iter()
    }

    /// The number of the next write.
    pub fn next_number(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// A write is sent.
    pub fn push(&mut self, record: WriteRecord) {
        self.bytes += record.bytes();
        self.records.push_back(Arc::new(record));
        while self.records.len() > RECORDS || (self.bytes > BYTES && self.records.len() > 1) {
            let Some(oldest) = self.records.pop_front() else { return };
            self.bytes = self.bytes.saturating_sub(oldest.bytes());
        }
    }

    /// A write was answered.
    pub fn end(&mut self, correlation: &str, outcome: WriteOutcome, now_ms: u64) {
        let mut records = self.records.iter_mut().rev();
        let Some(record) = records.find(|record| *record.correlation == *correlation) else {
            return;
        };
        self.bytes = self.bytes.saturating_sub(record.bytes());
        let ended = Arc::make_mut(record);
        ended.ended_ms = Some(now_ms);
        ended.outcome = outcome;
        self.bytes += record.bytes();
    }
}

#[cfg(test)]
mod tests;
