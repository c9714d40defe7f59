//! Which numbers Pods give the ports of their Services.

use super::{DiffTracker, tenancy};
use model::kubernetes::{EndpointSlice, Readiness, SlicePort};
use std::collections::BTreeSet;
use std::sync::Arc;

/// What a slice says of ports, and of how many Pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Offer<'a> {
    ports: &'a [SlicePort],
    /// Whether one of the Pods is ready.
    ready: bool,
}

/// What a slice says of ports; nothing where it lists no Pod.
pub(super) fn offer(slice: &EndpointSlice) -> Option<Offer<'_>> {
    let listed = slice.endpoints.iter().filter(|e| tenancy::counts(e));
    let ready = listed.map(|e| e.readiness == Readiness::Ready).max()?;
    Some(Offer { ports: &slice.ports, ready })
}

impl DiffTracker {
    /// The numbers that a Service's Pods give one of its ports: those that are ready, or where none
    /// is, all of them.
    pub fn numbers(&self, name: &Arc<str>, port: &str) -> BTreeSet<u16> {
        let offers: Vec<Offer<'_>> =
            self.lists_of(name).filter_map(|(_, slice)| offer(slice)).collect();
        let ready = offers.iter().any(|offer| offer.ready);
        let heard = offers.iter().filter(|offer| offer.ready == ready);
        let ports = heard.flat_map(|offer| offer.ports).filter(|entry| *entry.name == *port);
        ports.map(|entry| entry.number).collect()
    }
}
