//! The two tables of a Service Gateway: services, and addresses below locations.

use crate::id::ResourceId;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::IpAddr;
use std::slice::Iter;
use std::sync::Arc;

/// Name of the default egress service, its NAT gateway and (with `-pip`) public IP: never ours.
pub const DEFAULT_EGRESS: &str = "default-natgw";

/// Name of the Service Gateway resource.
pub const GATEWAY_NAME: &str = "servicegateway";

/// Direction of a gateway service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Direction {
    /// Traffic to pods.
    Inbound,
    /// Traffic from pods.
    Outbound,
    /// Both.
    InboundOutbound,
    /// Of a type that is not known. Such a service is another client's, and never written.
    Unknown,
}

/// A service registered in the gateway.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GatewayService {
    /// Name: a Service's UID, or an egress label's value.
    pub name: Arc<str>,
    /// Direction.
    pub direction: Direction,
    /// Whether it is the default of its direction: never ours.
    pub default: DefaultService,
    /// Backend pools of an inbound service.
    pub pools: BTreeSet<ResourceId>,
    /// NAT gateway of an outbound service.
    pub nat_gateway: Option<ResourceId>,
}

/// Services registered in the gateway by their names in lower case, shared by all who hold one.
pub type GatewayServices = BTreeMap<Arc<str>, Arc<GatewayService>>;

/// Whether a gateway service is its direction's default.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum DefaultService {
    /// It is.
    Yes,
    /// It is not.
    No,
}

/// Names of the gateway services an address belongs to, in lower case; shared, because most
/// addresses of a Service have the same set.
pub type ServiceNames = Arc<NameSet>;

/// A set of names in their order. Nearly all have one name, and there are as many as Services: a
/// tree would take ten times the room.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct NameSet(Box<[Arc<str>]>);

impl NameSet {
    /// Whether a name is in it.
    #[must_use]
    pub fn contains(&self, name: &str) -> bool {
        self.0.binary_search_by(|held| (**held).cmp(name)).is_ok()
    }

    /// The names in their order.
    pub fn iter(&self) -> Iter<'_, Arc<str>> {
        self.0.iter()
    }

    /// How many names there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no name.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromIterator<Arc<str>> for NameSet {
    fn from_iter<I: IntoIterator<Item = Arc<str>>>(names: I) -> Self {
        let mut names: Vec<Arc<str>> = names.into_iter().collect();
        names.sort_unstable();
        names.dedup();
        Self(names.into_boxed_slice())
    }
}

impl<'a> IntoIterator for &'a NameSet {
    type Item = &'a Arc<str>;
    type IntoIter = Iter<'a, Arc<str>>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl fmt::Debug for NameSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self).finish()
    }
}

/// Address (a pod's) → services, in the order of the addresses.
///
/// A location has a few dozen: two lists without free room take half of what a tree would, and
/// there are as many entries as Pods.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Addresses {
    addresses: Vec<IpAddr>,
    services: Vec<ServiceNames>,
}

impl Addresses {
    /// The services of an address.
    #[must_use]
    pub fn get(&self, address: &IpAddr) -> Option<&ServiceNames> {
        self.addresses.binary_search(address).ok().map(|at| &self.services[at])
    }

    /// Whether it has an address.
    #[must_use]
    pub fn contains_key(&self, address: &IpAddr) -> bool {
        self.addresses.binary_search(address).is_ok()
    }

    /// The addresses.
    pub fn keys(&self) -> Iter<'_, IpAddr> {
        self.addresses.iter()
    }

    /// The services of one address after the other.
    pub fn values(&self) -> Iter<'_, ServiceNames> {
        self.services.iter()
    }

    /// Addresses with their services.
    pub fn iter(&self) -> std::iter::Zip<Iter<'_, IpAddr>, Iter<'_, ServiceNames>> {
        self.addresses.iter().zip(&self.services)
    }

    /// How many addresses there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.addresses.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.addresses.is_empty()
    }

    /// Gives an address other services, or adds it.
    pub fn insert(&mut self, address: IpAddr, services: ServiceNames) {
        match self.addresses.binary_search(&address) {
            Ok(at) => self.services[at] = services,
            Err(at) => {
                self.addresses.reserve_exact(1);
                self.addresses.insert(at, address);
                self.services.reserve_exact(1);
                self.services.insert(at, services);
            }
        }
    }

    /// Takes an address away.
    pub fn remove(&mut self, address: &IpAddr) {
        if let Ok(at) = self.addresses.binary_search(address) {
            self.addresses.remove(at);
            self.services.remove(at);
        }
    }

    /// Takes all away.
    pub fn clear(&mut self) {
        *self = Self::default();
    }
}

impl FromIterator<(IpAddr, ServiceNames)> for Addresses {
    /// Of an address that comes twice the last one counts.
    fn from_iter<I: IntoIterator<Item = (IpAddr, ServiceNames)>>(entries: I) -> Self {
        let mut entries: Vec<(IpAddr, ServiceNames)> = entries.into_iter().collect();
        entries.reverse();
        entries.sort_by_key(|(address, _)| *address);
        entries.dedup_by_key(|(address, _)| *address);
        let addresses = entries.iter().map(|(address, _)| *address).collect();
        let mut services = Vec::with_capacity(entries.len());
        services.extend(entries.into_iter().map(|(_, services)| services));
        Self { addresses, services }
    }
}

impl<'a> IntoIterator for &'a Addresses {
    type Item = (&'a IpAddr, &'a ServiceNames);
    type IntoIter = std::iter::Zip<Iter<'a, IpAddr>, Iter<'a, ServiceNames>>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl fmt::Debug for Addresses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self).finish()
    }
}

/// Location (a node's address) → its addresses; those of one location are one value, so that a
/// change of the table costs what it touches.
pub type Locations = BTreeMap<IpAddr, Arc<Addresses>>;

/// Replace everything listed, or only what is listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum UpdateAction {
    /// What is not listed goes.
    FullUpdate,
    /// What is not listed stays.
    PartialUpdate,
}

/// One call of `updateServices`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ServicesUpdate {
    /// Services to register or change.
    pub put: Vec<GatewayServiceUpdate>,
    /// Names to remove, with their direction.
    pub delete: Vec<(Arc<str>, Direction)>,
}

impl ServicesUpdate {
    /// Names of the services that it is about.
    pub fn names(&self) -> impl Iterator<Item = &Arc<str>> {
        let put = self.put.iter().map(|put| &put.service.name);
        put.chain(self.delete.iter().map(|(name, _)| name))
    }

    /// Changes the table as Azure does; says whether that makes a difference.
    pub fn apply(&self, table: &mut GatewayServices) -> bool {
        let mut changed = false;
        for put in &self.put {
            let before = table.insert(folded(&put.service.name), Arc::new(put.service.clone()));
            changed |= before.as_deref() != Some(&put.service);
        }
        for (name, _) in &self.delete {
            changed |= table.remove(name.to_lowercase().as_str()).is_some();
        }
        changed
    }
}

/// A name in lower case; the same text where it is so already.
#[must_use]
pub fn folded(name: &Arc<str>) -> Arc<str> {
    let folded = name.to_lowercase();
    if *folded == **name { Arc::clone(name) } else { Arc::from(folded) }
}

/// One service in an update.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GatewayServiceUpdate {
    /// What is registered; pools empty or NAT gateway `None` detaches.
    pub service: GatewayService,
    /// Virtual network of the pools.
    pub network: Option<ResourceId>,
}

/// One call of `updateAddressLocations`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LocationsUpdate {
    /// Whether locations that are not listed go.
    pub action: UpdateAction,
    /// Locations, sorted, each once.
    pub locations: Vec<LocationUpdate>,
}

impl LocationsUpdate {
    /// Changes the table as Azure does: a location without addresses goes.
    pub fn apply(&self, table: &mut Locations) {
        if self.action == UpdateAction::FullUpdate {
            table.retain(|ip, _| self.locations.iter().any(|at| at.location == *ip));
        }
        self.locations.iter().for_each(|at| at.apply(table));
    }

    /// Every address that a partial update may change, given the table that it is made on.
    #[must_use]
    pub fn touched(&self, table: Option<&Locations>) -> BTreeSet<IpAddr> {
        let mut touched = BTreeSet::new();
        for at in &self.locations {
            touched.extend(at.addresses.iter().map(|(address, _)| *address));
            if at.addresses.is_empty() {
                let known = table.and_then(|table| table.get(&at.location));
                touched.extend(known.into_iter().flat_map(|known| known.keys().copied()));
            }
        }
        touched
    }
}

/// One location in an update.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LocationUpdate {
    /// The location.
    pub location: IpAddr,
    /// Whether addresses that are not listed go.
    pub action: UpdateAction,
    /// Addresses; an empty set of services removes the address; no address removes the location.
    pub addresses: Vec<(IpAddr, ServiceNames)>,
}

impl LocationUpdate {
    /// Whether addresses that are not listed go.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.addresses.is_empty() || self.action == UpdateAction::FullUpdate
    }

    fn apply(&self, table: &mut Locations) {
        let at = table.entry(self.location).or_default();
        if self.is_whole() {
            *at = Arc::default();
        }
        let held = Arc::make_mut(at);
        if held.is_empty() {
            let all = self.addresses.iter().filter(|(_, services)| !services.is_empty());
            *held = all.map(|(address, services)| (*address, Arc::clone(services))).collect();
        } else {
            for (address, services) in &self.addresses {
                if services.is_empty() {
                    held.remove(address);
                } else {
                    held.insert(*address, Arc::clone(services));
                }
            }
        }
        if held.is_empty() {
            table.remove(&self.location);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_in_order_and_each_is_there_once() {
        let set = |name: &str| -> ServiceNames { Arc::new(NameSet::from_iter([Arc::from(name)])) };
        let ip = |n: u8| IpAddr::from([10, 0, 0, n]);
        let mut all: Addresses =
            [(ip(3), set("a")), (ip(1), set("a")), (ip(3), set("b"))].into_iter().collect();
        assert_eq!(all.keys().copied().collect::<Vec<_>>(), [ip(1), ip(3)]);
        assert_eq!(all.get(&ip(3)), Some(&set("b")), "the last one counts");
        all.insert(ip(2), set("c"));
        all.insert(ip(1), set("d"));
        all.remove(&ip(3));
        all.remove(&ip(9));
        let entries: Vec<_> = all.iter().map(|(a, s)| (*a, Arc::clone(s))).collect();
        assert_eq!(entries, [(ip(1), set("d")), (ip(2), set("c"))]);
        assert_eq!(
            (all.len(), all.contains_key(&ip(2)), all.contains_key(&ip(3))),
            (2, true, false)
        );
        all.clear();
        assert!(all.is_empty() && all.values().next().is_none());
    }

    #[test]
    fn a_set_of_names_is_the_same_in_whatever_order_it_was_filled() {
        let names = |names: &[&str]| names.iter().map(|n| Arc::from(*n)).collect::<NameSet>();
        let set = names(&["b", "a", "b"]);
        assert_eq!(set, names(&["a", "b"]));
        assert_eq!(format!("{set:?}"), r#"{"a", "b"}"#);
        assert!(set.contains("a") && set.contains("b") && !set.contains("c"));
        assert_eq!((set.len(), set.is_empty(), names(&[]).is_empty()), (2, false, true));
    }
}
