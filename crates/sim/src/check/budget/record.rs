//! What the answers to calls of one purpose to one target have come to.

use super::{Call, End, Heard, Purpose, Record};
use control::CallId;

/// What an answer has changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Learnt {
    /// Failures in a row, whatever was wished.
    pub failures: u32,
    /// Whether it says nothing of how things are now.
    pub overtaken: bool,
    /// Whether it is about a list, or a resource, that was never read in this life of the process.
    pub awaited: bool,
}

impl Record {
    /// An answer has been taken in.
    pub(super) fn learn(&mut self, id: CallId, call: &Call, heard: &Heard, now_ms: u64) -> Learnt {
        self.not_before_ms = self.not_before_ms.max(now_ms + heard.wait_ms);
        // Two that were under way together fail for one reason: lists are asked for again when the
        // lease is won.
        let together = self.failed_ms.back().is_some_and(|at| call.sent_ms < *at);
        match heard.end {
            End::Failed => self.failed_ms.push_back(now_ms),
            End::Done | End::Runs => {
                (self.failures, self.in_a_row) = (0, 0);
                self.done = self.done.max(Some(id));
            }
        }
        // A call that was sent before one that has succeeded, and that fails after it, says nothing
        // of how things are now: a later list has been read since.
        let overtaken = heard.end == End::Failed && self.done > Some(id);
        if heard.end == End::Failed && !overtaken && !together {
            self.failures += u32::from(!heard.stale);
            self.in_a_row += 1;
        }
        let awaited = call.purpose == Purpose::Read && self.done.is_none();
        Learnt { failures: self.in_a_row, overtaken, awaited }
    }
}
