//! Where the gateway's table has an address.

use super::DiffTracker;
use model::gateway::{Locations, ServiceNames};
use std::net::IpAddr;
use std::sync::Arc;

/// One place of an address in the table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spot<'a> {
    pub location: IpAddr,
    /// Gateway services that list the address there.
    pub services: &'a ServiceNames,
}

impl DiffTracker {
    /// Takes in the table as it is now.
    pub(super) fn see(&mut self, table: &Arc<Locations>) {
        let old = self.observed.replace(Arc::clone(table));
        if old.as_ref().is_some_and(|old| Arc::ptr_eq(old, table)) {
            return;
        }
        let empty = Locations::new();
        let old = old.as_deref().unwrap_or(&empty);
        let none = Arc::default();
        for (location, before) in old {
            let after = table.get(location).unwrap_or(&none);
            if Arc::ptr_eq(before, after) {
                continue;
            }
            let number = self.homes.number(*location);
            for address in before.keys().filter(|a| !after.contains_key(a)) {
                if self.sides.lose(*address, number) {
                    self.gap.dirty.insert(*address);
                }
            }
        }
        for (location, after) in table.iter() {
            let before = old.get(location).unwrap_or(&none);
            if Arc::ptr_eq(before, after) {
                continue;
            }
            let number = self.homes.number(*location);
            for (address, services) in after.iter() {
                if before.get(address) != Some(services) {
                    self.sides.see(*address, number);
                    self.gap.dirty.insert(*address);
                }
            }
        }
    }
}
