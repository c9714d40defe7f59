//! Which Services have a Pod that is ready. Where none is, Pods that are going and still answer
//! take the traffic, as they do behind kube-proxy (KEP-1669).

use super::slices::waiting;
use super::{DiffTracker, Standing, tenancy};
use crate::ask::rules::NO_BACKENDS;
use model::kubernetes::{EndpointSlice, GatedPod, Readiness};
use model::report::Finding;
use model::{Family, ServiceName};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

impl DiffTracker {
    /// Looks again at which of these gateway services have a Pod that is ready. Gives the slices
    /// that are to be taken in again because of it.
    pub(super) fn back(
        &mut self,
        names: BTreeSet<Arc<str>>,
        gated: &BTreeMap<ServiceName, Arc<GatedPod>>,
    ) -> Vec<ServiceName> {
        let mut again = Vec::new();
        for name in names {
            let backed = self.lists_of(&name).any(|(_, slice)| self.backs(slice, gated));
            if backed == self.backed.contains(&name) {
                continue;
            }
            let going = |slice: &EndpointSlice| {
                slice.endpoints.iter().any(|e| e.readiness == Readiness::Terminating)
            };
            let of_it = self.lists_of(&name).filter(|(_, slice)| going(slice));
            again.extend(of_it.map(|(name, _)| name.clone()));
            self.tenancy.stir(Arc::clone(&name));
            match backed {
                true => self.backed.insert(name),
                false => self.backed.remove(&name),
            };
        }
        again
    }

    /// The slices that list addresses for a gateway service.
    fn lists_of<'a>(
        &'a self,
        name: &'a Arc<str>,
    ) -> impl Iterator<Item = (&'a ServiceName, &'a EndpointSlice)> {
        let title = self.published.get(name).and_then(|published| published.title.as_ref());
        let owned = title.into_iter().flat_map(move |_| self.slices_of.of(name));
        let by_hand = title.into_iter().flat_map(|title| self.by_hand.of(title));
        let slices = owned.chain(by_hand).filter_map(|of| Some((of, &*self.slices.get(of)?.fact)));
        slices.filter(move |(_, slice)| title.is_some_and(|title| slice.suits(title)))
    }

    /// Whether a slice lists a Pod that is ready, and known to be somewhere.
    fn backs(&self, slice: &EndpointSlice, gated: &BTreeMap<ServiceName, Arc<GatedPod>>) -> bool {
        let holds = waiting(slice, gated).holds;
        slice.endpoints.iter().any(|e| {
            let node = e.node.as_ref();
            (e.readiness == Readiness::Ready || holds.contains(&e.address))
                && tenancy::counts(e)
                && node.is_some_and(|n| self.homes.of_node(n, Family::of(e.address)).is_some())
        })
    }

    /// What is said where traffic comes in and no Pod is ready.
    pub(super) fn unserved(&self, name: &Arc<str>) -> Option<Finding> {
        let inbound = self.published.get(name)?.standing == Standing::Inbound;
        (inbound && !self.backed.contains(name)).then(|| Finding {
            severity: NO_BACKENDS.severity,
            rule: NO_BACKENDS.name,
            key: Arc::from("endpoints"),
            value: Arc::from(""),
            message: Arc::from("no Pod of the Service is ready; connections fail until one is"),
        })
    }
}
