//! Services that are gone, by the names that what they had bears in Azure: what still bears one is
//! taken away.
//!
//! # Guarantees
//! - A name is kept while anything that was read bears it.
//! - Any other name is forgotten once lists are certain to show what was written for the Service:
//!   each was read when an operation that began before the Service went had had its time.

use super::read::Read;
use super::{LIST_LAG_MS, UNFOLLOWED_MS};
use model::world::Need;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Names of Services that are gone.
#[derive(Debug, Default)]
pub(crate) struct Left {
    /// Since when no Service has the name.
    since_ms: BTreeMap<Arc<str>, u64>,
    /// When the oldest list had been read at the last look.
    looked_ms: u64,
}

/// Lists of what bears names of Services.
fn bears_names(need: &Need) -> bool {
    matches!(
        need,
        Need::Balancers | Need::PublicIps(_) | Need::PrivateLinks(_) | Need::GatewayServices
    )
}

impl Left {
    /// No Service has a name any more.
    pub fn leave(&mut self, name: Arc<str>, now_ms: u64) {
        self.since_ms.insert(name, now_ms);
    }

    /// A Service has a name, or nothing bears it.
    pub fn forget(&mut self, name: &Arc<str>) {
        self.since_ms.remove(name);
    }

    /// The names of Services that went before all lists were read, long enough before for the lists
    /// to show what was written for them; none where no list was read since the last look.
    pub fn certain(
        &mut self,
        store: &BTreeMap<Need, Read>,
        oldest_sent_ms: Option<u64>,
    ) -> Vec<Arc<str>> {
        if self.since_ms.is_empty() {
            return Vec::new();
        }
        let lists = store.iter().filter(|(need, _)| bears_names(need));
        // A list that was not read is older than any other.
        let oldest_ms = lists.map(|(_, read)| read.read_ms()).min().flatten();
        let Some(oldest_ms) = oldest_ms.filter(|at| *at > self.looked_ms) else {
            return Vec::new();
        };
        self.looked_ms = oldest_ms;
        let certain_ms = oldest_ms.saturating_sub(UNFOLLOWED_MS + LIST_LAG_MS);
        // This process follows what it has sent for as long as it takes.
        let certain_ms = oldest_sent_ms.map_or(certain_ms, |sent| sent.min(certain_ms));
        let old = self.since_ms.iter().filter(|(_, at)| **at < certain_ms);
        old.map(|(name, _)| Arc::clone(name)).collect()
    }
}
