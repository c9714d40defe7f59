//! Which Services have a Pod that is ready, and on a node that stays. Where none is, Pods on nodes
//! that are going take the traffic; where none of those is ready, Pods that are going themselves
//! and still answer, as they do behind kube-proxy (KEP-1669). Who goes stays until somebody who
//! stays can be listed with the same call: an address that is still listed somewhere else cannot,
//! nor can a new one of a gateway service whose new addresses Azure has refused.

use super::number::Number;
use super::unready::waiting;
use super::{DiffTracker, Standing, tenancy};
use crate::ask::findings::NO_BACKENDS;
use model::kubernetes::{Endpoint, EndpointSlice, GatedPod, Readiness};
use model::report::Finding;
use model::{Family, ServiceName};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

/// Who takes the traffic of a gateway service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Backing {
    /// No Pod is ready.
    #[default]
    None,
    /// All that are ready are on nodes that are going.
    Going,
    /// Some are on nodes that stay.
    Lasting,
}

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
            let lists = self.lists_of(&name).map(|(_, slice)| self.backs(&name, slice, gated));
            let (backing, moving) = lists
                .reduce(|(best, some), (backing, moving)| (best.max(backing), some | moving))
                .unwrap_or_default();
            let turned = match moving {
                true => self.ready.moving.insert(Arc::clone(&name)),
                false => self.ready.moving.remove(&name),
            };
            if backing == self.backing(&name) && !turned {
                continue;
            }
            let going = |slice: &EndpointSlice| {
                let mut all = slice.endpoints.iter();
                all.any(|e| e.readiness == Readiness::Terminating || self.is_on_going_node(e))
            };
            let of_it = self.lists_of(&name).filter(|(_, slice)| going(slice));
            again.extend(of_it.map(|(name, _)| name.clone()));
            self.tenancy.stir(Arc::clone(&name));
            match backing {
                Backing::None => self.ready.backed.remove(&name),
                Backing::Going | Backing::Lasting => self.ready.backed.insert(name, backing),
            };
        }
        again
    }

    /// The slices that list addresses for a gateway service.
    pub(super) fn lists_of<'a>(
        &'a self,
        name: &'a Arc<str>,
    ) -> impl Iterator<Item = (&'a ServiceName, &'a EndpointSlice)> {
        let title =
            self.services.published.get(name).and_then(|published| published.title.as_ref());
        let owned = title.into_iter().flat_map(move |_| self.slices.by_owner.of(name));
        let by_hand = title.into_iter().flat_map(|title| self.slices.by_hand.of(title));
        let slices =
            owned.chain(by_hand).filter_map(|of| Some((of, &*self.slices.taken.get(of)?.fact)));
        slices.filter(move |(_, slice)| title.is_some_and(|title| slice.suits(title)))
    }

    /// Who takes the traffic of a gateway service.
    pub(super) fn backing(&self, name: &Arc<str>) -> Backing {
        self.ready.backed.get(name).copied().unwrap_or_default()
    }

    /// Whether an endpoint is on a node that is going.
    pub(super) fn is_on_going_node(&self, endpoint: &Endpoint) -> bool {
        endpoint.node.as_ref().is_some_and(|node| self.homes.is_going(node))
    }

    /// What a slice has for its Service: Pods that are ready, known to be somewhere, and listed, or
    /// to be listed by the next call. Whether there are any that only a later one can list.
    fn backs(
        &self,
        name: &str,
        slice: &EndpointSlice,
        gated: &BTreeMap<ServiceName, Arc<GatedPod>>,
    ) -> (Backing, bool) {
        let holds = waiting(slice, gated).holds;
        let (mut backing, mut moving) = (Backing::None, false);
        for e in slice.endpoints.iter().filter(|e| tenancy::counts(e)) {
            if e.readiness != Readiness::Ready && !holds.contains(&e.address) {
                continue;
            }
            let node = e.node.as_ref();
            let home = node.and_then(|n| self.homes.of_node(n, Family::of(e.address)));
            let Some(home) = home else { continue };
            let later = self.is_later(name, e.address, home);
            moving |= later;
            if !later {
                let going = self.is_on_going_node(e);
                backing = backing.max(if going { Backing::Going } else { Backing::Lasting });
            }
        }
        (backing, moving)
    }

    /// Whether an address can be listed at its node for a gateway service by a later call only.
    fn is_later(&self, name: &str, address: IpAddr, home: Number) -> bool {
        let elsewhere = self.sides.seen(address).iter().any(|location| *location != home);
        let at = self.homes.address(home);
        let listed = |name| {
            let mut spots = self.spots(address);
            spots.any(|spot| spot.location == at && spot.services.contains(name))
        };
        elsewhere || (self.services.held.contains(name) && !listed(name))
    }

    /// What is said where traffic comes in and no Pod is ready.
    pub(super) fn unserved(&self, name: &Arc<str>) -> Option<Finding> {
        let inbound = self.services.published.get(name)?.standing == Standing::Inbound;
        let unbacked = self.backing(name) == Backing::None && !self.ready.moving.contains(name);
        let message = "no Pod of the Service is ready; connections fail until one is";
        (inbound && unbacked).then(|| NO_BACKENDS.found_with("endpoints", "", message))
    }
}
