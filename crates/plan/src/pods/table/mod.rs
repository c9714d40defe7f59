//! The address table of the Service Gateway: as Kubernetes wants it, as it is, and the difference.
//!
//! What is remembered between plans is remembered by its inputs: a fact that is the same value in
//! memory is not looked at again. After one Pod has changed only its slice is walked.
//!
//! # Guarantees
//! - A tracker that was brought up to date holds what a fresh one would hold.
//! - The difference is kept address by address; nothing walks the whole table to find it.
//!
//! # Assumptions
//! Facts are replaced, never changed in place while a tracker holds them.

mod backing;
mod claims;
mod egress;
mod gap;
mod homes;
mod links;
mod number;
mod offers;
mod seen;
mod sides;
mod slices;
mod tenancy;
mod unready;

pub(crate) use seen::Spot;

use crate::ask::hold;
use crate::own::pod_names;
use backing::Backing;
use claims::{Claim, Kind, Sources};
use gap::Gap;
use homes::Homes;
use links::Links;
use model::gateway::{Direction, GatewayService, Locations, ServiceNames};
use model::kubernetes::{Deletion, EndpointSlice, Pod, PodPhase};
use model::policy::NodeDrain;
use model::world::Fact;
use model::{Family, Policy, ServiceName, ServiceUid, World};
use number::Number;
use sides::Sides;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;
use tenancy::Tenancy;

/// Both sides of the address table and their difference.
#[derive(Debug, Default)]
pub(crate) struct DiffTracker {
    homes: Homes,
    services: Services,
    slices: Slices,
    ready: Ready,
    pods: BTreeMap<ServiceName, Held<Pod>>,
    sources: Sources,
    sides: Sides,
    /// Addresses that sources list and that Pods which are watched say are theirs.
    vouched: BTreeSet<(IpAddr, Number)>,
    tenancy: Tenancy,
    /// Namespaces that have names of egress gateways.
    tenants: egress::Tenants,
    observed: Option<Arc<Locations>>,
    gap: Gap,
}

/// Gateway services, by what they mean to addresses.
#[derive(Debug, Default)]
struct Services {
    /// Those that addresses are, or are to be, published for.
    published: BTreeMap<Arc<str>, Publication>,
    /// Those of Services by the Services' names.
    titles: BTreeMap<ServiceName, Arc<str>>,
    /// Those that are not ours: what they list stays.
    foreign: BTreeSet<Arc<str>>,
    /// Those whose new addresses Azure has refused.
    held: BTreeSet<Arc<str>>,
}

/// Slices that were taken in, and where they count.
#[derive(Debug, Default)]
struct Slices {
    /// By name.
    taken: BTreeMap<ServiceName, Held<EndpointSlice>>,
    /// By the gateway services whose addresses they bring.
    by_owner: Links<Arc<str>>,
    /// Those without an owner by the Services that their labels name.
    by_hand: Links<ServiceName>,
    /// By the Pods that they list as not ready.
    unready: Links<ServiceName>,
}

/// Which gateway services have a Pod that is ready.
#[derive(Debug, Default)]
struct Ready {
    /// Those that have one, and how long that is going to last.
    backed: BTreeMap<Arc<str>, Backing>,
    /// Those for which it can only be listed by a later call.
    moving: BTreeSet<Arc<str>>,
}

/// How far a gateway service is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// Its Service is to have a load balancer and has none that leads anywhere yet.
    Coming,
    /// Traffic comes in through it.
    Inbound,
    /// Traffic leaves through it.
    Outbound,
}

/// A gateway service that addresses are published for.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Publication {
    standing: Standing,
    title: Option<ServiceName>,
}

/// What is published otherwise than before.
#[derive(Debug, Default)]
struct Moved {
    /// Gateway services.
    names: BTreeSet<Arc<str>>,
    /// Their Services.
    titles: BTreeSet<ServiceName>,
}

/// A fact that was taken in, and the number of what it claims.
#[derive(Debug)]
struct Held<T> {
    fact: Arc<T>,
    source: Number,
}

/// What an address is to become at one location.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Edit {
    pub location: IpAddr,
    pub address: IpAddr,
    /// Gateway services that list it there now.
    pub before: BTreeSet<Arc<str>>,
    /// Those that are to; empty: it goes.
    pub after: BTreeSet<Arc<str>>,
}

/// Keys whose values are not the same.
pub(crate) fn changed<K: Ord + Clone, T, U>(
    old: &BTreeMap<K, T>,
    new: &BTreeMap<K, U>,
    same: impl Fn(&T, &U) -> bool,
) -> Vec<K> {
    let mut changed = Vec::new();
    let (mut olds, mut news) = (old.iter().peekable(), new.iter().peekable());
    loop {
        let order = match (olds.peek(), news.peek()) {
            (None, None) => return changed,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            // Most keys are the same value in memory, which equality sees at once.
            (Some((a, _)), Some((b, _))) if a == b => Ordering::Equal,
            (Some((a, _)), Some((b, _))) => a.cmp(b),
        };
        let old = if order.is_le() { olds.next() } else { None };
        let new = if order.is_ge() { news.next() } else { None };
        match (old, new) {
            (Some((_, a)), Some((_, b))) if same(a, b) => {}
            (Some((key, _)), _) | (None, Some((key, _))) => changed.push(key.clone()),
            (None, None) => {}
        }
    }
}

impl DiffTracker {
    /// Takes in what has changed: `names` are the gateway services that were registered, changed
    /// or removed, and those whose Services were; `gated` the Pods whose readiness gates were.
    pub fn update(
        &mut self,
        world: &World,
        policy: &Policy,
        names: &BTreeSet<Arc<str>>,
        uids: &BTreeMap<Arc<str>, ServiceUid>,
        gated: &[ServiceName],
    ) {
        let drain = policy.node_drain != NodeDrain::Off;
        let shift = self.homes.update(&world.kubernetes.nodes, drain);
        let mut doubted = self.hold(world, policy);
        if shift.moved {
            self.withdraw_all();
            doubted.extend(self.ready.backed.keys().cloned());
        }
        let mut moved = self.publish(world, names, uids);
        if let Fact::Known(table) = &world.azure.gateway_locations {
            self.see(table);
        }
        doubted.extend(moved.names.union(&self.ready.moving).cloned());
        self.take_slices(world, &moved, gated, &shift.turned, doubted);
        moved.names.extend(self.judge_egress(world, &policy.tenancy.egress));
        self.take_pods(world, &moved);
        self.gap.dirty.extend(self.tenancy.take_recorded(&world.holders));
        for address in std::mem::take(&mut self.gap.dirty) {
            self.compare(address);
        }
    }

    /// Addresses that are not as they are to be.
    pub fn difference(&self) -> impl Iterator<Item = IpAddr> + '_ {
        self.gap.difference.iter().copied()
    }

    /// Addresses that a gateway service is to lose at some location.
    pub fn departing(&self) -> impl Iterator<Item = IpAddr> + '_ {
        self.gap.departing.keys().copied()
    }

    /// The edits that are due for an address, one per location. Until its holder is recorded, it is
    /// only removed from gateway services that do not claim it.
    pub fn edits(&self, address: IpAddr) -> Vec<Edit> {
        if !self.tenancy.awaits_record(address) {
            return self.edits_to_come(address);
        }
        let claims = self.sides.claims(address);
        let stays = |name: &&Arc<str>| {
            self.services.foreign.contains(*name)
                || claims.iter().any(|claim| self.sources.owner(claim.source) == *name)
        };
        let edit = |Spot { location, services }: Spot<'_>| {
            let before: BTreeSet<Arc<str>> = services.iter().cloned().collect();
            let after: BTreeSet<Arc<str>> = before.iter().filter(stays).cloned().collect();
            (after != before).then_some(Edit { location, address, before, after })
        };
        self.spots(address).filter_map(edit).collect()
    }

    /// What is to be done about an address.
    fn edits_to_come(&self, address: IpAddr) -> Vec<Edit> {
        let home = self.home(address);
        let mut edits = Vec::new();
        let mut at_home = false;
        for spot in self.spots(address) {
            let mut after: BTreeSet<Arc<str>> = spot
                .services
                .iter()
                .filter(|n| self.services.foreign.contains(*n))
                .cloned()
                .collect();
            if home == Some(spot.location) {
                at_home = true;
                after.extend(self.owners(address, spot.location));
            }
            if !after.iter().eq(spot.services.iter()) {
                let (location, before) = (spot.location, spot.services.iter().cloned().collect());
                edits.push(Edit { location, address, before, after });
            }
        }
        if let Some(location) = home.filter(|_| !at_home) {
            let after = self.owners(address, location).collect();
            edits.push(Edit { location, address, before: BTreeSet::new(), after });
        }
        edits
    }

    pub fn has_location(&self, location: IpAddr) -> bool {
        self.observed.as_ref().is_some_and(|table| table.contains_key(&location))
    }

    /// Gateway services for which the table lists addresses that they are not to have.
    pub fn receding(&self) -> impl Iterator<Item = Arc<str>> + '_ {
        self.gap.receding.keys().cloned()
    }

    /// How many addresses the table has at a location.
    pub fn population(&self, location: IpAddr) -> usize {
        let table = self.observed.as_ref();
        table.and_then(|table| table.get(&location)).map_or(0, |at| at.len())
    }

    /// Whether the table lists addresses for a gateway service that it is not to have.
    pub fn is_receding(&self, name: &str) -> bool {
        self.gap.receding.contains_key(name)
    }

    /// Whether the table lists an address for a gateway service where it is to be.
    pub fn serves(&self, address: IpAddr, name: &str) -> bool {
        let home = self.home(address);
        let mut spots = self.spots(address);
        spots.any(|spot| Some(spot.location) == home && spot.services.contains(name))
    }

    /// Whether the table lists anything for an address that it is not to have.
    pub fn is_leftover(&self, address: IpAddr) -> bool {
        self.gap.departing.contains_key(&address)
    }

    fn spots(&self, address: IpAddr) -> impl Iterator<Item = Spot<'_>> {
        let table = self.observed.as_deref();
        self.sides.seen(address).iter().filter_map(move |location| {
            let location = self.homes.address(*location);
            let services = table?.get(&location)?.get(&address)?;
            Some(Spot { location, services })
        })
    }

    /// The claims of an address that count: those of the namespace that has it.
    fn claims(&self, address: IpAddr) -> impl Iterator<Item = &Claim> {
        let holder = self.tenancy.holder(address);
        let counts =
            move |claim: &&Claim| holder.is_none_or(|h| h == self.sources.namespace(claim.source));
        self.sides.claims(address).iter().filter(counts)
    }

    /// The location that an address is to be at. An address of a node's own is at that node.
    fn home(&self, address: IpAddr) -> Option<IpAddr> {
        let home = claims::home(self.claims(address), &self.sources, &self.homes)?;
        Some(self.homes.at_host(address).unwrap_or(home))
    }

    fn owners(&self, address: IpAddr, location: IpAddr) -> impl Iterator<Item = Arc<str>> + '_ {
        let at = move |claim: &&Claim| {
            claim.home.is_some_and(|home| self.homes.address(home) == location)
        };
        self.claims(address).filter(at).map(|claim| Arc::clone(self.sources.owner(claim.source)))
    }

    fn compare(&mut self, address: IpAddr) {
        self.sides.forget_bare(address);
        self.judge(address);
        let edits = self.edits_to_come(address);
        if edits.is_empty() {
            self.gap.difference.remove(&address);
        } else {
            self.gap.difference.insert(address);
        }
        let lost: BTreeSet<Arc<str>> =
            edits.iter().flat_map(|e| e.before.difference(&e.after)).cloned().collect();
        let lost = (!lost.is_empty()).then(|| self.shared(address, lost));
        self.gap.note_lost(address, lost);
    }

    /// The set of names as the table holds it, where it is the same.
    fn shared(&self, address: IpAddr, names: BTreeSet<Arc<str>>) -> ServiceNames {
        let held = self.spots(address).find(|spot| spot.services.iter().eq(&names));
        let made = || Arc::new(names.iter().cloned().collect());
        held.map_or_else(made, |spot| Arc::clone(spot.services))
    }

    /// Learns which gateway services addresses may be published for; gives those that changed.
    fn publish(
        &mut self,
        world: &World,
        names: &BTreeSet<Arc<str>>,
        uids: &BTreeMap<Arc<str>, ServiceUid>,
    ) -> Moved {
        let mut moved = Moved::default();
        for name in names {
            let service = world.azure.gateway_services.known().and_then(|all| all.get(name));
            let foreign = service.is_some_and(|service| pod_names::is_foreign(service));
            let stranger = if foreign {
                self.services.foreign.insert(Arc::clone(name))
            } else {
                self.services.foreign.remove(name)
            };
            if stranger {
                self.gap.dirty.extend(self.sides.addresses());
            }
            let wanted = uids.get(name).and_then(|uid| world.kubernetes.services.get(uid));
            let wanted = wanted.filter(|s| hold::keeps_balancer(s) && !foreign);
            let title = wanted.map(|service| service.name.clone());
            let direction = service.filter(|s| !foreign && is_connected(s)).map(|s| s.direction);
            let standing = match direction {
                Some(Direction::Outbound) => Some(Standing::Outbound),
                Some(_) if title.is_some() => Some(Standing::Inbound),
                _ => title.is_some().then_some(Standing::Coming),
            };
            let after = standing.map(|standing| Publication { standing, title });
            let before = match &after {
                Some(after) => self.services.published.insert(Arc::clone(name), after.clone()),
                None => self.services.published.remove(name),
            };
            if before == after {
                continue;
            }
            let title = |publication: Option<Publication>| publication.and_then(|p| p.title);
            let (before, after) = (title(before), title(after));
            if let Some(title) = before {
                if self.services.titles.get(&title) == Some(name) {
                    self.services.titles.remove(&title);
                }
                moved.titles.insert(title);
            }
            if let Some(title) = after {
                self.services.titles.insert(title.clone(), Arc::clone(name));
                moved.titles.insert(title);
            }
            moved.names.insert(Arc::clone(name));
        }
        moved
    }

    /// Takes in the gateway services whose new addresses Azure has refused, and returns them. A
    /// gateway service with addresses that only the end of its hold lets a call list is looked at
    /// with each plan.
    fn hold(&mut self, world: &World, policy: &Policy) -> BTreeSet<Arc<str>> {
        let table = pod_names::locations_table(policy);
        let holds = world.holds.iter().filter(|(_, hold)| hold.target == table);
        self.services.held = holds.map(|(uid, _)| pod_names::of_service(uid)).collect();
        self.services.held.clone()
    }

    fn withdraw_all(&mut self) {
        self.gap.dirty.extend(self.sides.addresses());
        self.sides.withdraw_all();
        for held in self.slices.taken.values() {
            self.sources.free(held.source);
        }
        for held in self.pods.values() {
            self.sources.free(held.source);
        }
        self.slices.taken.clear();
        self.slices.by_owner.clear();
        self.slices.by_hand.clear();
        self.vouched.clear();
        self.tenancy.forget_endpoints();
        self.slices.unready.clear();
        self.pods.clear();
    }

    fn take_pods(&mut self, world: &World, moved: &Moved) {
        let moved = &moved.names;
        let pods = &world.kubernetes.pods;
        let mut names: BTreeSet<ServiceName> =
            changed(&self.pods, pods, |a, b| Arc::ptr_eq(&a.fact, b)).into_iter().collect();
        if !moved.is_empty() {
            let label = |held: &Held<Pod>| {
                held.fact.egress.as_ref().is_some_and(|egress| moved.contains(egress))
            };
            names.extend(self.pods.iter().filter(|(_, h)| label(h)).map(|(n, _)| n.clone()));
        }
        for name in names {
            if let Some(held) = self.pods.remove(&name) {
                self.withdraw(held.source, held.fact.addresses.iter().copied());
            }
            if let Some(pod) = pods.get(&name) {
                self.take_pod(name, pod);
            }
        }
    }

    fn take_pod(&mut self, name: ServiceName, pod: &Arc<Pod>) {
        let label = pod.egress.clone().unwrap_or_else(|| Arc::from(""));
        let standing = self.services.published.get(&label).map(|publication| publication.standing);
        let outbound = standing == Some(Standing::Outbound);
        let published = outbound && pod.is_claimed_for(&label) && self.admits(pod, &label);
        let source = self.sources.open(label, Kind::Pod, &pod.name.namespace, &pod.revision);
        for (address, host) in hosted(pod).filter(|_| is_alive(pod)) {
            let home = published.then(|| self.homes.of_host(host));
            self.claim(address, Claim { source, home });
        }
        self.pods.insert(name, Held { fact: Arc::clone(pod), source });
    }

    fn claim(&mut self, address: IpAddr, claim: Claim) {
        self.sides.claim(address, claim);
        self.gap.dirty.insert(address);
    }

    fn withdraw(&mut self, source: Number, addresses: impl Iterator<Item = IpAddr>) {
        for address in addresses {
            self.vouched.remove(&(address, source));
            if self.sides.withdraw(address, source) {
                self.gap.dirty.insert(address);
            }
        }
        self.sources.free(source);
    }
}

/// Whether a gateway service leads somewhere.
fn is_connected(service: &GatewayService) -> bool {
    match service.direction {
        Direction::Inbound => !service.pools.is_empty(),
        Direction::Outbound => service.nat_gateway.is_some(),
        Direction::InboundOutbound | Direction::Unknown => false,
    }
}

/// Whether a Pod is alive and stays, whatever gateway it asks for.
pub(crate) fn is_alive(pod: &Pod) -> bool {
    pod.deletion == Deletion::None && pod.phase == PodPhase::Alive
}

/// The addresses of a Pod, each with the first host address of its family.
pub(crate) fn hosted(pod: &Pod) -> impl Iterator<Item = (IpAddr, IpAddr)> + '_ {
    pod.addresses.iter().filter_map(|address| {
        let host = pod.hosts.iter().find(|h| Family::of(**h) == Family::of(*address))?;
        Some((*address, *host))
    })
}
