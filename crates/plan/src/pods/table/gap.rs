//! How the table differs from what it is to be.

use model::gateway::ServiceNames;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

/// The difference, address by address.
#[derive(Debug, Default)]
pub(super) struct Gap {
    /// Addresses that are not as they are to be.
    pub difference: BTreeSet<IpAddr>,
    /// Those of them that gateway services are to lose, and which these are.
    pub departing: BTreeMap<IpAddr, ServiceNames>,
    /// Gateway services that are to lose addresses, and how many each.
    pub receding: BTreeMap<Arc<str>, usize>,
    /// Addresses to compare again before the update is over.
    pub dirty: BTreeSet<IpAddr>,
}

impl Gap {
    /// Notes which gateway services are to lose an address by now.
    pub fn note_lost(&mut self, address: IpAddr, lost: Option<ServiceNames>) {
        for name in lost.iter().flat_map(|names| names.iter()) {
            *self.receding.entry(Arc::clone(name)).or_default() += 1;
        }
        let before = match lost {
            Some(lost) => self.departing.insert(address, lost),
            None => self.departing.remove(&address),
        };
        for name in before.iter().flat_map(|names| names.iter()) {
            if let Some(count) = self.receding.get_mut(name) {
                *count -= 1;
                if *count == 0 {
                    self.receding.remove(name);
                }
            }
        }
    }
}
