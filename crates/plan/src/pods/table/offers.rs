//! Which numbers Pods give the ports of their Services.

use super::{DiffTracker, tenancy};
use model::kubernetes::{EndpointSlice, Readiness, SlicePort};
use std::collections::BTreeSet;
use std::sync::Arc;

/// What a slice says of ports, and of how many Pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Offer<'a> {
    ports: &'a [SlicePort],
    by: By,
}

/// Whose numbers they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum By {
    /// Those of Pods that are not ready.
    Unready,
    /// Those of Pods of which one is ready.
    Ready,
}

/// What a slice says of ports; nothing where it lists no Pod.
pub(super) fn offer(slice: &EndpointSlice) -> Option<Offer<'_>> {
    let listed = slice.endpoints.iter().filter(|e| tenancy::counts(e));
    let by = listed.map(|e| if e.readiness == Readiness::Ready { By::Ready } else { By::Unready });
    Some(Offer { ports: &slice.ports, by: by.max()? })
}

impl DiffTracker {
    /// The numbers that a Service's Pods give one of its ports: those that are ready, or where none
    /// is, all of them.
    pub fn numbers(&self, name: &Arc<str>, port: &str) -> BTreeSet<u16> {
        let offers: Vec<Offer<'_>> =
            self.lists_of(name).filter_map(|(_, slice)| offer(slice)).collect();
        let best = offers.iter().map(|offer| offer.by).max();
        let heard = offers.iter().filter(|offer| Some(offer.by) == best);
        let ports = heard.flat_map(|offer| offer.ports).filter(|entry| *entry.name == *port);
        ports.map(|entry| entry.number).collect()
    }
}
