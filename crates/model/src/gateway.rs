//! The two tables of a Service Gateway: services, and addresses below locations.

use crate::id::ResourceId;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::IpAddr;
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

/// Whether a gateway service is its direction's default.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum DefaultService {
    /// It is.
    Yes,
    /// It is not.
    No,
}

/// Names of the gateway services an address belongs to; shared, because most addresses of a
/// Service have the same set.
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
    pub fn iter(&self) -> std::slice::Iter<'_, Arc<str>> {
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
    type IntoIter = std::slice::Iter<'a, Arc<str>>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl fmt::Debug for NameSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self).finish()
    }
}

/// Address (a pod's) → services.
pub type Addresses = BTreeMap<IpAddr, ServiceNames>;

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

#[cfg(test)]
mod tests {
    use super::*;

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
