//! The programming latency of Pods' addresses in a Service Gateway.

use super::Pending;
use model::NodeName;
use model::ServiceUid;
use model::kubernetes::{Deletion, EndpointSlice, Pod, PodPhase, Readiness};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

/// On whose account an address is in Azure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// A Service, by its EndpointSlices.
    Service(ServiceUid),
    /// An egress gateway, by the Pod's label.
    Egress,
    /// Whoever selects it.
    Any,
}

/// An address that changed.
#[derive(Debug)]
pub(crate) struct PodChange {
    pub pending: Pending,
    pub owner: Owner,
}

/// What is to be written of the address table, and what is being written.
pub(crate) struct TableWork {
    pub planned: BTreeSet<IpAddr>,
    /// Addresses of the call under way: until it has ended the next one is not planned.
    pub under_way: Option<Arc<BTreeSet<IpAddr>>>,
}

/// What decides on all Pods together.
#[derive(Debug, Default)]
pub(crate) struct Grounds {
    pub under_way: Option<Arc<BTreeSet<IpAddr>>>,
    /// Whether nothing at all is to be written.
    pub quiet: bool,
}

impl Grounds {
    /// Whether no verdict can be another on these grounds.
    pub fn is(&self, other: &Self) -> bool {
        let call = |grounds: &Self| grounds.under_way.as_ref().map(Arc::as_ptr);
        call(self) == call(other) && self.quiet == other.quiet
    }
}

/// Addresses that take traffic, with their nodes.
pub(crate) fn ready(slice: &EndpointSlice) -> BTreeMap<IpAddr, Option<&NodeName>> {
    let ready = slice.endpoints.iter().filter(|e| e.readiness == Readiness::Ready);
    ready.map(|e| (e.address, e.node.as_ref())).collect()
}

/// What of an egress Pod decides on its addresses.
pub(crate) fn place(pod: &Pod) -> (&Option<Arc<str>>, &[IpAddr], &[IpAddr], Deletion, PodPhase) {
    (&pod.egress, &pod.addresses, &pod.hosts, pod.deletion, pod.phase)
}
