//! What Azure says, keyed by the read that brings it: the one place that knows in which field of
//! [`Azure`] a [`Need`] is held, and a resource that is written.

use crate::azure::{
    LoadBalancer, NatGateway, PoolMember, PrivateLinkService, PublicIp, SecurityGroup, Subnet,
};
use crate::gateway::{GatewayServices, Locations};
use crate::id::ResourceId;
use crate::plan::Resource;
use crate::world::{Azure, ById, Fact, Need, VirtualMachine};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What one read brings.
pub trait Shelf {
    /// How far the read came, without what was read.
    fn answered(&self) -> Fact<()>;

    /// The ids of a list; empty where a resource that the list lacks may exist all the same.
    fn ids(&self) -> Vec<ResourceId>;

    /// All resources that are written.
    fn all(&self) -> Vec<Resource>;

    /// One resource that is written.
    fn get(&self, id: &ResourceId) -> Option<Resource>;

    /// Puts a resource in its place, where something has been read.
    fn put(&mut self, id: &ResourceId, resource: Resource);

    /// Nothing is there. Says whether that is news.
    fn clear(&mut self) -> bool;

    /// It cannot be read. Says whether that is news.
    fn spoil(&mut self, why: &str) -> bool;
}

impl<V: Held + Default + PartialEq> Shelf for Fact<V> {
    fn answered(&self) -> Fact<()> {
        match self {
            Self::Unknown => Fact::Unknown,
            Self::Known(_) => Fact::Known(()),
            Self::Unreadable(why) => Fact::Unreadable(Arc::clone(why)),
        }
    }

    fn ids(&self) -> Vec<ResourceId> {
        self.known().map(Held::ids).unwrap_or_default()
    }

    fn all(&self) -> Vec<Resource> {
        self.known().map(Held::all).unwrap_or_default()
    }

    fn get(&self, id: &ResourceId) -> Option<Resource> {
        self.known()?.get(id)
    }

    fn put(&mut self, id: &ResourceId, resource: Resource) {
        if let Some(held) = self.known_mut() {
            held.put(id, resource);
        }
    }

    fn clear(&mut self) -> bool {
        let before = std::mem::replace(self, Self::Known(V::default()));
        before != *self
    }

    fn spoil(&mut self, why: &str) -> bool {
        let news = !matches!(self, Self::Unreadable(held) if **held == *why);
        if news {
            *self = Self::Unreadable(Arc::from(why));
        }
        news
    }
}

/// What has been read, as far as it is resources that are written.
trait Held {
    fn ids(&self) -> Vec<ResourceId> {
        Vec::new()
    }

    fn all(&self) -> Vec<Resource> {
        Vec::new()
    }

    fn get(&self, _id: &ResourceId) -> Option<Resource> {
        None
    }

    fn put(&mut self, _id: &ResourceId, _resource: Resource) {}
}

/// A kind of resource that is written.
trait Written: Sized {
    fn resource(this: &Arc<Self>) -> Resource;

    fn of(resource: Resource) -> Option<Arc<Self>>;
}

macro_rules! written {
    ($($kind:ident)*) => {
        $(
            impl Written for $kind {
                fn resource(this: &Arc<Self>) -> Resource {
                    Resource::$kind(Arc::clone(this))
                }

                fn of(resource: Resource) -> Option<Arc<Self>> {
                    match resource {
                        Resource::$kind(resource) => Some(resource),
                        _ => None,
                    }
                }
            }
        )*
    };
}

written! { LoadBalancer PublicIp PrivateLinkService NatGateway PoolMember SecurityGroup Subnet }

impl<T: Written> Held for BTreeMap<ResourceId, Arc<T>> {
    fn ids(&self) -> Vec<ResourceId> {
        self.keys().cloned().collect()
    }

    fn all(&self) -> Vec<Resource> {
        self.values().map(T::resource).collect()
    }

    fn get(&self, id: &ResourceId) -> Option<Resource> {
        self.get(id).map(T::resource)
    }

    fn put(&mut self, id: &ResourceId, resource: Resource) {
        if let Some(resource) = T::of(resource) {
            self.insert(id.clone(), resource);
        }
    }
}

/// One resource, which may not exist.
impl<T: Written> Held for Option<Arc<T>> {
    fn all(&self) -> Vec<Resource> {
        self.iter().map(T::resource).collect()
    }

    fn get(&self, id: &ResourceId) -> Option<Resource> {
        self.as_ref().map(T::resource).filter(|resource| resource.id() == id)
    }

    fn put(&mut self, _id: &ResourceId, resource: Resource) {
        if let Some(resource) = T::of(resource) {
            *self = Some(resource);
        }
    }
}

/// Machines are read, and never written.
impl Held for ById<VirtualMachine> {}
impl Held for Vec<Arc<str>> {}
impl Held for GatewayServices {}
impl Held for Arc<Locations> {}

impl Azure {
    /// What a read brings; `None` where it has not been asked for.
    #[must_use]
    pub fn shelf(&self, need: &Need) -> Option<&dyn Shelf> {
        let shelf: &dyn Shelf = match need {
            Need::Balancers => &self.balancers,
            Need::PublicIps(group) => self.public_ips.get(group)?,
            Need::SecurityGroup => &self.security_group,
            Need::Subnet(subnet) => self.subnets.get(subnet)?,
            Need::Zones => &self.zones,
            Need::PrivateLinks(group) => self.private_links.get(group)?,
            Need::ScaleSets => &self.scale_sets,
            Need::ScaleSetVms(set) => self.scale_set_vms.get(set)?,
            Need::NetworkInterfaces => &self.network_interfaces,
            Need::VirtualMachines => &self.virtual_machines,
            Need::NatGateways => &self.nat_gateways,
            Need::GatewayServices => &self.gateway_services,
            Need::GatewayLocations => &self.gateway_locations,
        };
        Some(shelf)
    }

    /// The same, to be changed.
    pub fn shelf_mut(&mut self, need: &Need) -> &mut dyn Shelf {
        match need {
            Need::Balancers => &mut self.balancers,
            Need::PublicIps(group) => self.public_ips.entry(group.clone()).or_default(),
            Need::SecurityGroup => &mut self.security_group,
            Need::Subnet(subnet) => self.subnets.entry(subnet.clone()).or_default(),
            Need::Zones => &mut self.zones,
            Need::PrivateLinks(group) => self.private_links.entry(group.clone()).or_default(),
            Need::ScaleSets => &mut self.scale_sets,
            Need::ScaleSetVms(set) => self.scale_set_vms.entry(set.clone()).or_default(),
            Need::NetworkInterfaces => &mut self.network_interfaces,
            Need::VirtualMachines => &mut self.virtual_machines,
            Need::NatGateways => &mut self.nat_gateways,
            Need::GatewayServices => &mut self.gateway_services,
            Need::GatewayLocations => &mut self.gateway_locations,
        }
    }

    /// How far a read came, without what was read.
    #[must_use]
    pub fn answered(&self, need: &Need) -> Fact<()> {
        self.shelf(need).map_or(Fact::Unknown, |shelf| shelf.answered())
    }

    /// Whether something has been read.
    #[must_use]
    pub fn is_known(&self, need: &Need) -> bool {
        self.answered(need).known().is_some()
    }

    /// Whether a read is still to be made.
    #[must_use]
    pub fn is_unread(&self, need: &Need) -> bool {
        self.answered(need) == Fact::Unknown
    }

    /// Every shelf with resources that are written.
    fn shelves(&self) -> impl Iterator<Item = &dyn Shelf> {
        let lists: [&dyn Shelf; 1] = [&self.balancers];
        let rest: [&dyn Shelf; 4] =
            [&self.nat_gateways, &self.security_group, &self.scale_sets, &self.network_interfaces];
        lists
            .into_iter()
            .chain(self.public_ips.values().map(|fact| fact as &dyn Shelf))
            .chain(self.private_links.values().map(|fact| fact as &dyn Shelf))
            .chain(rest)
            .chain(self.subnets.values().map(|fact| fact as &dyn Shelf))
            .chain(self.scale_set_vms.values().map(|fact| fact as &dyn Shelf))
    }

    /// Every resource of a kind that is written.
    pub fn resources(&self) -> impl Iterator<Item = Resource> {
        self.shelves().flat_map(|shelf| shelf.all())
    }

    /// A resource, where it is of a kind that is written.
    #[must_use]
    pub fn find(&self, id: &ResourceId) -> Option<Resource> {
        self.shelves().find_map(|shelf| shelf.get(id))
    }

    /// Puts a resource where its kind is held; a pool member only where there is one.
    pub fn put(&mut self, resource: Resource) {
        let id = resource.id().clone();
        let group = id.group();
        match resource {
            Resource::LoadBalancer(_) => self.balancers.put(&id, resource),
            Resource::NatGateway(_) => self.nat_gateways.put(&id, resource),
            Resource::PublicIp(_) => {
                if let Some(all) = group.and_then(|group| self.public_ips.get_mut(&group)) {
                    all.put(&id, resource);
                }
            }
            Resource::PrivateLinkService(_) => {
                if let Some(all) = group.and_then(|group| self.private_links.get_mut(&group)) {
                    all.put(&id, resource);
                }
            }
            Resource::SecurityGroup(r) => self.security_group = Fact::Known(Some(r)),
            Resource::Subnet(r) => {
                self.subnets.insert(id, Fact::Known(Some(r)));
            }
            Resource::PoolMember(_) => {
                let lists = [&mut self.scale_sets, &mut self.network_interfaces];
                for all in lists.into_iter().chain(self.scale_set_vms.values_mut()) {
                    if all.get(&id).is_some() {
                        all.put(&id, resource.clone());
                    }
                }
            }
        }
    }
}
