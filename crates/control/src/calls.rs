//! Calls that are under way, and who waits for their answers.

use crate::effect::{CallId, Effect};
use crate::kubernetes::ledger::LedgerCall;
use model::ResourceId;
use model::plan::Object;
use model::world::Need;
use std::collections::BTreeMap;

/// Who waits for an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Caller {
    /// A lane.
    Lane(ResourceId),
    /// A read.
    Read(Need),
    /// A Kubernetes object's lane.
    Object(Object),
    /// The ledger's lane.
    Ledger(LedgerCall),
    /// An Event was posted; its answer does not matter.
    Event,
}

/// A call that was sent and not answered yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Awaited {
    /// Who waits for the answer.
    pub caller: Caller,
    /// When it was sent, in milliseconds of the controller's clock.
    pub sent_ms: u64,
}

/// Calls that are not answered yet, and what the step has come to so far.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    pub callers: BTreeMap<CallId, Awaited>,
    /// Number of the last call.
    pub last: u64,
    /// Number of the last correlation id.
    pub named: u64,
    /// The time of the last step.
    pub now_ms: u64,
    pub effects: Vec<Effect>,
}

impl Calls {
    /// A call is about to be made.
    pub fn begin(&mut self, caller: Caller) -> CallId {
        self.last += 1;
        let call = CallId(self.last);
        self.callers.insert(call, Awaited { caller, sent_ms: self.now_ms });
        call
    }
}
