//! What EndpointSlices want of the address table.
//!
//! A slice comes whole, whatever has changed in it. Only addresses that it did not list before, or
//! that are elsewhere now, are looked at again.

use super::claims::Claim;
use super::number::Number;
use super::{DiffTracker, Held, changed};
use crate::container::names;
use model::gateway::Direction;
use model::kubernetes::{Endpoint, EndpointSlice, GatedPod, Others, Readiness};
use model::{Family, ServiceName, World};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

impl DiffTracker {
    /// Takes in slices that changed, or whose Services' registrations or Pods' gates did.
    pub(super) fn take_slices(
        &mut self,
        world: &World,
        moved: &BTreeSet<Arc<str>>,
        gated: &[ServiceName],
    ) {
        let slices = &world.kubernetes.slices;
        let mut names: BTreeSet<ServiceName> =
            changed(&self.slices, slices, |a, b| Arc::ptr_eq(&a.fact, b)).into_iter().collect();
        for owner in moved {
            names.extend(self.slices_of.of(owner).cloned());
        }
        for pod in gated {
            names.extend(self.unready.of(pod).cloned());
        }
        for name in names {
            let held = self.slices.remove(&name);
            match slices.get(&name) {
                Some(slice) => self.take_slice(name, slice, held, &world.kubernetes.gated_pods),
                None => held.into_iter().for_each(|held| self.drop_slice(&name, &held)),
            }
        }
    }

    fn drop_slice(&mut self, name: &ServiceName, held: &Held<EndpointSlice>) {
        self.withdraw(held.source, held.fact.endpoints.iter().map(|e| e.address));
        self.slices_of.remove(owner(&held.fact), name);
        for pod in pods_behind(&held.fact) {
            self.unready.remove(pod, name);
        }
    }

    /// Takes a slice in, in place of what was held of it.
    fn take_slice(
        &mut self,
        name: ServiceName,
        slice: &Arc<EndpointSlice>,
        held: Option<Held<EndpointSlice>>,
        gated: &BTreeMap<ServiceName, Arc<GatedPod>>,
    ) {
        let held = held.filter(|held| {
            let kept = held.fact.owner == slice.owner;
            if !kept {
                self.drop_slice(&name, held);
            }
            kept
        });
        let owner = owner(slice);
        let source = match &held {
            Some(held) => self.sources.renew(held.source, &slice.revision),
            None => self.sources.open(Arc::clone(&owner), &slice.revision),
        };
        let wanted = self.wanted(slice, &owner, gated);
        let before = held.iter().flat_map(|held| &held.fact.endpoints).map(|e| e.address);
        let mut addresses: Vec<IpAddr> =
            before.chain(wanted.iter().map(|(address, _)| *address)).collect();
        addresses.sort_unstable();
        addresses.dedup();
        let mut rest = wanted.as_slice();
        for address in addresses {
            let count = rest.iter().take_while(|(of, _)| *of == address).count();
            let (homes, others) = rest.split_at(count);
            rest = others;
            self.claim_all(address, source, homes);
        }
        match held {
            None => self.slices_of.add(owner, &name),
            Some(held) => {
                pods_behind(&held.fact).for_each(|pod| self.unready.remove(pod, &name));
            }
        }
        for pod in pods_behind(slice) {
            self.unready.add(pod, &name);
        }
        self.slices.insert(name, Held { fact: Arc::clone(slice), source });
    }

    /// The addresses of a slice that are to be published, and where, in order and each once.
    fn wanted(
        &self,
        slice: &EndpointSlice,
        owner: &Arc<str>,
        gated: &BTreeMap<ServiceName, Arc<GatedPod>>,
    ) -> Vec<(IpAddr, Number)> {
        if self.published.get(owner) != Some(&Direction::Inbound) {
            return Vec::new();
        }
        let waiting = waiting(slice, gated);
        let takes = |e: &&Endpoint| e.readiness == Readiness::Ready || waiting.contains(&e.address);
        let home = |e: &Endpoint| {
            let home = self.homes.of_node(e.node.as_ref()?, Family::of(e.address))?;
            Some((e.address, home))
        };
        let mut wanted: Vec<_> = slice.endpoints.iter().filter(takes).filter_map(home).collect();
        wanted.sort_unstable();
        wanted.dedup();
        wanted
    }

    /// A source wants an address at these places and no other.
    fn claim_all(&mut self, address: IpAddr, source: Number, homes: &[(IpAddr, Number)]) {
        let claims = self.sides.claims(address);
        let own = claims.iter().filter(|claim| claim.source == source).map(|claim| claim.home);
        let same = match homes {
            [] | [_] => own.eq(homes.iter().map(|(_, home)| *home)),
            _ => own.collect::<BTreeSet<_>>().iter().eq(homes.iter().map(|(_, home)| home)),
        };
        if same {
            // Which of several sources is right depends on how old they are.
            if claims.len() > 1 {
                self.dirty.insert(address);
            }
            return;
        }
        let had_any = claims.iter().any(|claim| claim.source == source);
        if had_any && self.sides.withdraw(address, source) {
            self.dirty.insert(address);
        }
        for (_, home) in homes {
            self.claim(address, Claim { source, home: *home });
        }
    }
}

/// The Pods that a slice lists as not ready.
fn pods_behind(slice: &EndpointSlice) -> impl Iterator<Item = ServiceName> + '_ {
    let namespace = &slice.name.namespace;
    slice
        .unready
        .iter()
        .map(|(_, pod)| ServiceName { namespace: Arc::clone(namespace), name: Arc::clone(pod) })
}

/// Addresses of Pods that are not ready only because they wait for their place in the gateway.
fn waiting(
    slice: &EndpointSlice,
    gated: &BTreeMap<ServiceName, Arc<GatedPod>>,
) -> BTreeSet<IpAddr> {
    let pods = pods_behind(slice).zip(slice.unready.iter().map(|(address, _)| *address));
    let waits = |pod: &ServiceName| gated.get(pod).is_some_and(|p| p.others == Others::Hold);
    pods.filter(|(pod, _)| waits(pod)).map(|(_, address)| address).collect()
}

/// The gateway service whose addresses a slice brings: empty for a slice that no Service owns.
fn owner(slice: &EndpointSlice) -> Arc<str> {
    slice.owner.as_ref().map_or_else(|| Arc::from(""), names::of_service)
}
