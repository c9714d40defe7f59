//! What is read: lists and resources of Azure, and facts from Kubernetes.

pub(crate) mod keep;
pub(crate) mod left;
pub(crate) mod read;
pub(crate) mod tables;

use left::Left;
use model::world::Need;
use observe::apply::Listing;
use observe::intern::Interner;
use read::Read;
use std::collections::BTreeMap;

/// Lists may lack what was just made: for this long our own write is believed instead.
pub(crate) const LIST_LAG_MS: u64 = 10_000;

/// The end of an operation that no process can poll is awaited as long as one that only the state
/// of its resource tells of.
pub(crate) const UNFOLLOWED_MS: u64 = arm::operation::LONGEST_SILENT_MS;

/// How soon a list is read again in which an operation of another client, or of this controller
/// before a restart, is still running: its end can only be seen by reading.
pub(crate) const BUSY_MS: u64 = 1_000;

/// The longest pause between two such reads: the operation of another client may never end.
pub(crate) const LONGEST_BUSY_MS: u64 = 30_000;

/// What was read and is to be read.
#[derive(Debug, Default)]
pub(crate) struct Reads {
    pub store: BTreeMap<Need, Read>,
    pub listing: Listing,
    pub interner: Interner,
    pub left: Left,
}

impl Reads {
    /// When the oldest read under way was asked for.
    pub fn asked_ms(&self) -> Option<u64> {
        self.store.values().filter_map(Read::asked_ms).min()
    }
}
