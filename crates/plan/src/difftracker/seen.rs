//! Where the gateway's table has an address.

use super::DiffTracker;
use model::gateway::{Locations, ServiceNames};
use std::net::IpAddr;
use std::sync::Arc;

/// One place of an address in the table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spot<'a> {
    /// The location.
    pub location: IpAddr,
    /// Gateway services that list the address there.
    pub services: &'a ServiceNames,
}

/// Locations that have an address; nearly always one.
#[derive(Debug, Default)]
pub(super) enum Seen {
    #[default]
    Nowhere,
    At(IpAddr),
    Several(Box<[IpAddr]>),
}

impl Seen {
    pub fn locations(&self) -> impl Iterator<Item = IpAddr> + '_ {
        match self {
            Self::Nowhere => [].iter(),
            Self::At(location) => std::slice::from_ref(location).iter(),
            Self::Several(locations) => locations.iter(),
        }
        .copied()
    }

    fn add(&mut self, location: IpAddr) {
        match self {
            Self::Nowhere => *self = Self::At(location),
            Self::At(one) if *one == location => {}
            Self::At(one) => *self = Self::Several(Box::new([*one, location])),
            Self::Several(all) if all.contains(&location) => {}
            Self::Several(all) => *all = all.iter().copied().chain([location]).collect(),
        }
    }

    fn remove(&mut self, location: IpAddr) {
        match self {
            Self::At(one) if *one == location => *self = Self::Nowhere,
            Self::Nowhere | Self::At(_) => {}
            Self::Several(all) => {
                let left: Vec<IpAddr> = all.iter().copied().filter(|at| *at != location).collect();
                *self = match left.as_slice() {
                    [] => Self::Nowhere,
                    [one] => Self::At(*one),
                    _ => Self::Several(left.into_boxed_slice()),
                };
            }
        }
    }
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
            for address in before.keys().filter(|a| !after.contains_key(*a)) {
                if let Some(sides) = self.addresses.get_mut(address) {
                    sides.seen.remove(*location);
                    self.dirty.insert(*address);
                }
            }
        }
        for (location, after) in table.iter() {
            let before = old.get(location).unwrap_or(&none);
            if Arc::ptr_eq(before, after) {
                continue;
            }
            for (address, services) in after.iter() {
                if before.get(address) != Some(services) {
                    self.addresses.entry(*address).or_default().seen.add(*location);
                    self.dirty.insert(*address);
                }
            }
        }
    }
}
