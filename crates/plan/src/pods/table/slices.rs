//! What EndpointSlices want of the address table.
//!
//! A slice comes whole, whatever has changed in it. Only addresses that it did not list before, or
//! that are elsewhere now, are looked at again.

use super::backing::Backing;
use super::claims::{Claim, Kind};
use super::number::Number;
use super::offers::offer;
use super::unready::{Waiting, pods_behind, waiting};
use super::{DiffTracker, Held, Moved, Standing, changed, tenancy};
use crate::own::pod_names;
use model::kubernetes::{Endpoint, EndpointSlice, GatedPod, Readiness};
use model::{Family, NodeName, ServiceName, World};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

impl DiffTracker {
    /// Takes in slices that changed, or whose Services' registrations, Pods' gates or nodes did.
    /// `owners` are gateway services of which it is asked anew who takes their traffic.
    pub(super) fn take_slices(
        &mut self,
        world: &World,
        moved: &Moved,
        gated: &[ServiceName],
        turned: &BTreeSet<NodeName>,
        mut owners: BTreeSet<Arc<str>>,
    ) {
        let slices = &world.kubernetes.slices;
        let mut names: BTreeSet<ServiceName> =
            changed(&self.slices.taken, slices, |a, b| Arc::ptr_eq(&a.fact, b))
                .into_iter()
                .collect();
        for owner in &moved.names {
            names.extend(self.slices.by_owner.of(owner).cloned());
        }
        for title in &moved.titles {
            names.extend(self.slices.by_hand.of(title).cloned());
        }
        for pod in gated {
            names.extend(self.slices.unready.of(pod).cloned());
        }
        if !turned.is_empty() {
            let on = |e: &Endpoint| e.node.as_ref().is_some_and(|node| turned.contains(node));
            let of =
                self.slices.taken.iter().filter(|(_, held)| held.fact.endpoints.iter().any(on));
            names.extend(of.map(|(name, _)| name.clone()));
        }
        let gated = &world.kubernetes.gated_pods;
        for name in names {
            let held = self.slices.taken.remove(&name);
            owners.extend(held.iter().map(|held| Arc::clone(self.sources.owner(held.source))));
            match slices.get(&name) {
                Some(slice) => {
                    owners.insert(self.owner(slice));
                    self.take_slice(name, slice, held, gated);
                }
                None => held.into_iter().for_each(|held| self.drop_slice(&name, &held)),
            }
        }
        // Whether Pods that are going take traffic depends on the Service's other slices.
        for name in self.back(owners, gated) {
            if let Some(held) = self.slices.taken.remove(&name) {
                self.take_slice(name, &Arc::clone(&held.fact), Some(held), gated);
            }
        }
    }

    fn drop_slice(&mut self, name: &ServiceName, held: &Held<EndpointSlice>) {
        self.withdraw(held.source, held.fact.endpoints.iter().map(|e| e.address));
        let owner = Arc::clone(self.sources.owner(held.source));
        self.tenancy.note(&owner, name, None, &self.homes);
        self.tenancy.tear(&owner, name, false);
        if offer(&held.fact).is_some() {
            self.tenancy.stir(Arc::clone(&owner));
        }
        match (&held.fact.owner, &held.fact.service) {
            (None, Some(title)) => self.slices.by_hand.remove(title.clone(), name),
            _ => self.slices.by_owner.remove(owner, name),
        }
        for pod in pods_behind(&held.fact) {
            self.slices.unready.remove(pod, name);
        }
    }

    /// The gateway service whose addresses a slice brings: empty for a slice of no Service.
    fn owner(&self, slice: &EndpointSlice) -> Arc<str> {
        match (&slice.owner, &slice.service) {
            (Some(uid), _) => pod_names::of_service(uid),
            (None, Some(title)) => self.services.titles.get(title).cloned().unwrap_or_default(),
            (None, None) => Arc::default(),
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
        let owner = self.owner(slice);
        let held = held.filter(|held| {
            let of = |slice: &EndpointSlice| (slice.owner.clone(), slice.service.clone());
            let kept = *self.sources.owner(held.source) == owner && of(&held.fact) == of(slice);
            if !kept {
                self.drop_slice(&name, held);
            }
            kept
        });
        let source = match &held {
            Some(held) => self.sources.renew(held.source, &slice.revision),
            None => {
                let namespace = &slice.name.namespace;
                self.sources.open(Arc::clone(&owner), Kind::Slice, namespace, &slice.revision)
            }
        };
        if held.as_ref().and_then(|held| offer(&held.fact)) != offer(slice) {
            self.tenancy.stir(Arc::clone(&owner));
        }
        let Wanted { places: wanted, vouched } = self.wanted(slice, &owner, gated);
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
            self.vouch(address, source, vouched.contains(&address));
        }
        match held {
            None => match (&slice.owner, &slice.service) {
                (None, Some(title)) => self.slices.by_hand.add(title.clone(), &name),
                _ => self.slices.by_owner.add(owner, &name),
            },
            Some(held) => {
                pods_behind(&held.fact).for_each(|pod| self.slices.unready.remove(pod, &name));
            }
        }
        for pod in pods_behind(slice) {
            self.slices.unready.add(pod, &name);
        }
        self.slices.taken.insert(name, Held { fact: Arc::clone(slice), source });
    }

    /// The addresses that a slice lists for its Service, and where they are to be published if they
    /// are, in order and each once.
    fn wanted(
        &mut self,
        slice: &EndpointSlice,
        owner: &Arc<str>,
        gated: &BTreeMap<ServiceName, Arc<GatedPod>>,
    ) -> Wanted {
        let publication = self.services.published.get(owner);
        let own = publication.and_then(|p| Some((p.standing, p.title.as_ref()?)));
        let Some((standing, _)) = own.filter(|(_, title)| slice.suits(title)) else {
            // Who may write slices in one namespace has no word in another.
            let here = own.is_some_and(|(_, title)| title.namespace == slice.name.namespace);
            let torn = here && !slice.endpoints.is_empty();
            self.tenancy.tear(owner, &slice.name, torn);
            self.tenancy.note(owner, &slice.name, None, &self.homes);
            return Wanted::default();
        };
        self.tenancy.tear(owner, &slice.name, false);
        self.tenancy.note(owner, &slice.name, Some(slice), &self.homes);
        let Waiting { vouched, holds } = waiting(slice, gated);
        let backing = self.backing(owner);
        let takes = |e: &Endpoint| match e.readiness {
            _ if e.readiness == Readiness::Ready || holds.contains(&e.address) => {
                backing != Backing::Lasting || !self.is_on_going_node(e)
            }
            Readiness::Terminating => backing == Backing::None,
            Readiness::Ready | Readiness::NotReady => false,
        };
        let place = |e: &Endpoint| {
            let home = self.homes.of_node(e.node.as_ref()?, Family::of(e.address))?;
            let published = standing == Standing::Inbound && takes(e);
            Some((e.address, published.then_some(home)))
        };
        let counted = slice.endpoints.iter().filter(|e| tenancy::counts(e));
        let mut places: Vec<_> = counted.filter_map(place).collect();
        // What is published somewhere is listed, too.
        places.sort_unstable_by(|a, b| b.cmp(a));
        places.dedup();
        places.dedup_by(|later, kept| later.0 == kept.0 && later.1.is_none());
        places.reverse();
        Wanted { places, vouched }
    }

    /// Notes whether a Pod that is watched says that an address which a source lists is its own.
    fn vouch(&mut self, address: IpAddr, source: Number, is_so: bool) {
        let changed = match is_so {
            true => self.vouched.insert((address, source)),
            false => self.vouched.remove(&(address, source)),
        };
        if changed {
            self.gap.dirty.insert(address);
        }
    }

    /// A source wants an address at these places and no other.
    fn claim_all(&mut self, address: IpAddr, source: Number, homes: &[(IpAddr, Option<Number>)]) {
        let claims = self.sides.claims(address);
        let own = claims.iter().filter(|claim| claim.source == source).map(|claim| claim.home);
        let same = match homes {
            [] | [_] => own.eq(homes.iter().map(|(_, home)| *home)),
            _ => own.collect::<BTreeSet<_>>().iter().eq(homes.iter().map(|(_, home)| home)),
        };
        if same {
            // Which of several sources is right depends on how old they are.
            if claims.len() > 1 {
                self.gap.dirty.insert(address);
            }
            return;
        }
        let had_any = claims.iter().any(|claim| claim.source == source);
        if had_any && self.sides.withdraw(address, source) {
            self.gap.dirty.insert(address);
        }
        for (_, home) in homes {
            self.claim(address, Claim { source, home: *home });
        }
    }
}

/// What a slice lists.
#[derive(Default)]
struct Wanted {
    places: Vec<(IpAddr, Option<Number>)>,
    vouched: BTreeSet<IpAddr>,
}
