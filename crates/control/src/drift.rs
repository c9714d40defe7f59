//! What others made of Azure, as far as it was looked at.

use model::ResourceId;
use model::drift::Drift;
use plan::Planner;
use plan_drift::{Confirmed, Kept};
use std::collections::BTreeSet;

/// Azure as we left it, and what others made of it.
#[derive(Debug, Default)]
pub(crate) struct DriftCheck {
    pub confirmed: Confirmed,
    /// Plans a World without drift, whose memory is another one's.
    pub planner: Planner,
    pub now: Vec<Drift>,
    pub settled_due: bool,
    /// The drift of the last plan is recorded, and the World has not changed since: another plan
    /// would find no other drift.
    pub noted: bool,
    /// Resources that have lost the tags by which we know them.
    pub unmarked: BTreeSet<ResourceId>,
    pub marks_due: bool,
    /// What is left, for the next process.
    pub kept: Kept,
    /// The last look was at all there is: what it found to be left can be noted.
    pub seen: bool,
}

impl DriftCheck {
    /// What is to be noted of the drift that is left; `None` until all has been looked at.
    pub fn kept(&self) -> Option<&Kept> {
        self.seen.then_some(&self.kept)
    }

    /// This is left, as if a look had found it.
    #[cfg(test)]
    pub fn keep(&mut self, kept: Kept) {
        (self.kept, self.seen) = (kept, true);
    }
}
