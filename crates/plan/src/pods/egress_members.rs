//! The Pods that ask for each egress gateway, and what of them tells whose the gateway is.

use crate::draft::Draft;
use crate::own::pod_names;
use crate::pods::table::{DiffTracker, hosted, is_alive};
use model::ServiceUid;
use model::kubernetes::{Claim, Custody, POD_FINALIZER, Pod};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Pods with one label value.
#[derive(Debug, Default)]
pub(super) struct Members {
    /// The namespace of the first of them that is alive.
    pub namespace: Option<Arc<str>>,
    /// One of them has an address that can be published.
    pub addressed: bool,
    /// One of them is alive, with or without an address, with or without our finalizer.
    pub asked: bool,
    /// One of them has our finalizer and is alive, with or without an address.
    pub alive: bool,
    /// One of them is certain to have it still.
    pub certain: bool,
    /// One of them is published without: the API server did not take it.
    pub waived: bool,
    /// Something may be in Azure on account of a Pod with our finalizer, alive or not, whatever
    /// its label says by now.
    pub marked: bool,
}

/// What tells whose the public IPs of a gateway are until its NAT gateway stands: it is there
/// before they are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Record {
    /// The mark of a Pod; where the API server takes none, the name in the Service Gateway.
    There,
    /// No Pod has a mark yet.
    Missing,
    /// Another process may have taken the marks off.
    Unconfirmed,
    /// The API server takes no mark: the name is registered first.
    ToRegister,
}

impl Members {
    /// What tells whose the public IPs of their gateway are, if its name is registered or not.
    pub fn record(&self, registered: bool) -> Record {
        if self.certain || (self.waived && registered) {
            Record::There
        } else if self.waived {
            Record::ToRegister
        } else if self.alive {
            Record::Unconfirmed
        } else {
            Record::Missing
        }
    }
}

/// Whether a label's value can name a gateway, and none of ours for something else.
pub(super) fn is_valid(name: &str, uids: &BTreeMap<Arc<str>, ServiceUid>) -> bool {
    pod_names::is_egress(name) && !pod_names::is_reserved(name) && !uids.contains_key(name)
}

/// The Pods of each label value that can name a gateway.
pub(super) fn members(
    draft: &Draft<'_>,
    tracker: &DiffTracker,
    uids: &BTreeMap<Arc<str>, ServiceUid>,
) -> BTreeMap<Arc<str>, Members> {
    let mut members: BTreeMap<Arc<str>, Members> = BTreeMap::new();
    for pod in draft.world.kubernetes.pods.values() {
        for name in marks(pod).filter(|name| is_valid(name, uids)) {
            members.entry(Arc::clone(name)).or_default().marked = true;
        }
        let Some(name) = pod.egress.as_ref().filter(|name| is_valid(name, uids)) else { continue };
        if !tracker.admits(pod, name) {
            continue;
        }
        let of = members.entry(Arc::clone(name)).or_default();
        if is_alive(pod) {
            of.namespace.get_or_insert_with(|| Arc::clone(&pod.name.namespace));
            of.asked = true;
            of.addressed |= is_addressed(pod);
            of.alive |= pod.is_claimed_for(name);
            let certain = pod.custody == Custody::Own && marks(pod).any(|mark| mark == name);
            of.certain |= certain;
            of.waived |= pod.claim == Claim::Waived && !certain;
        }
    }
    members
}

/// Gateways that may have something in Azure on account of a Pod with our finalizer.
pub(crate) fn marks(pod: &Pod) -> impl Iterator<Item = &Arc<str>> {
    let claimed = pod.finalizers.contains(POD_FINALIZER);
    let label = pod.egress.iter().filter(|_| pod.marks.is_empty());
    pod.marks.iter().chain(label).filter(move |name| claimed && !name.is_empty())
}

/// Whether a Pod has an address that can be published.
pub(super) fn is_addressed(pod: &Pod) -> bool {
    hosted(pod).next().is_some()
}
