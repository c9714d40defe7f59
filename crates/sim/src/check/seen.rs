//! What was so when a call was sent.

/// How things were when a call was sent: where they are not so any more it may be needless.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    pub term: u64,
    /// What people, nodes and Pods had done.
    pub inputs: u64,
    /// What had been written to Azure.
    pub writes: u64,
    pub news: u64,
    /// The object's version.
    pub version: Option<String>,
}

impl Seen {
    /// A version that is newer than a sender knew is none that it can have meant.
    pub(super) fn forget_unseen(&mut self, known: u64) {
        let newer = |version: &String| version.parse::<u64>().is_ok_and(|at| at > known);
        if self.version.as_ref().is_some_and(newer) {
            self.version = None;
        }
    }

    /// A sender that does not know the last of what was asked for planned on what was before.
    pub(super) fn forget_last_input(&mut self) {
        self.inputs = self.inputs.saturating_sub(1);
    }

    /// Whether nobody has asked for anything else between the two. What is written into objects
    /// follows from what Azure has answered, too.
    pub(super) fn is_same_wish(&self, other: &Self, objects: bool) -> bool {
        let same = (self.inputs, &self.version) == (other.inputs, &other.version);
        same && (!objects || self.news == other.news)
    }
}
