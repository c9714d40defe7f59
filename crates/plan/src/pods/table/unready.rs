//! Pods that a slice lists as not ready, and those of them that only wait for the gateway.

use model::ServiceName;
use model::kubernetes::{EndpointSlice, GatedPod, Others};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

/// The Pods that a slice lists as not ready.
pub(super) fn pods_behind(slice: &EndpointSlice) -> impl Iterator<Item = ServiceName> + '_ {
    let namespace = &slice.name.namespace;
    slice
        .unready
        .iter()
        .map(|(_, pod)| ServiceName { namespace: Arc::clone(namespace), name: Arc::clone(pod) })
}

/// Addresses of Pods that are not ready.
pub(super) struct Waiting {
    /// Those that Pods which are watched say are theirs.
    pub vouched: BTreeSet<IpAddr>,
    /// Those of them that are not ready only because they wait for their place in the gateway.
    pub holds: BTreeSet<IpAddr>,
}

/// Finds them in a slice.
pub(super) fn waiting(
    slice: &EndpointSlice,
    gated: &BTreeMap<ServiceName, Arc<GatedPod>>,
) -> Waiting {
    let mut waiting = Waiting { vouched: BTreeSet::new(), holds: BTreeSet::new() };
    for (pod, (address, _)) in pods_behind(slice).zip(&slice.unready) {
        let Some(pod) = gated.get(&pod).filter(|pod| pod.addresses.contains(address)) else {
            continue;
        };
        if pod.others != Others::Over {
            waiting.vouched.insert(*address);
        }
        if pod.others == Others::Hold {
            waiting.holds.insert(*address);
        }
    }
    waiting
}
