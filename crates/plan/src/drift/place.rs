//! Where the World holds a resource.

use model::ResourceId;
use model::azure::PoolMember;
use model::plan::Resource;
use model::world::{Azure, ById, Fact};
use std::sync::Arc;

fn of<T>(all: Option<&Fact<ById<T>>>, id: &ResourceId) -> Option<Arc<T>> {
    all?.known()?.get(id).cloned()
}

/// Every list of pool members.
fn members(azure: &Azure) -> impl Iterator<Item = &Fact<ById<PoolMember>>> {
    let sets = [&azure.scale_sets, &azure.network_interfaces];
    sets.into_iter().chain(azure.scale_set_vms.values())
}

/// A resource as the World has it, where it is of a kind that we write.
pub(super) fn find(azure: &Azure, id: &ResourceId) -> Option<Resource> {
    let group = id.group();
    let in_group = |g: &model::Group| group.as_ref() == Some(g);
    let ips = azure.public_ips.iter().find(|(g, _)| in_group(g)).map(|(_, all)| all);
    let links = azure.private_links.iter().find(|(g, _)| in_group(g)).map(|(_, all)| all);
    of(Some(&azure.balancers), id)
        .map(Resource::LoadBalancer)
        .or_else(|| of(ips, id).map(Resource::PublicIp))
        .or_else(|| of(links, id).map(Resource::PrivateLinkService))
        .or_else(|| of(Some(&azure.nat_gateways), id).map(Resource::NatGateway))
        .or_else(|| {
            let group = azure.security_group.known()?.as_ref()?;
            (group.id == *id).then(|| Resource::SecurityGroup(Arc::clone(group)))
        })
        .or_else(|| Some(Resource::Subnet(azure.subnets.get(id)?.known()?.clone()?)))
        .or_else(|| members(azure).find_map(|all| of(Some(all), id)).map(Resource::PoolMember))
}

fn put<T>(all: Option<&mut Fact<ById<T>>>, id: &ResourceId, value: Option<Arc<T>>) {
    let Some(all) = all.and_then(Fact::known_mut) else { return };
    match value {
        Some(value) => all.insert(id.clone(), value),
        None => all.remove(id),
    };
}

/// Puts a resource where the World holds its kind.
pub(super) fn set(azure: &mut Azure, resource: Resource) {
    let id = resource.id().clone();
    let group = id.group();
    match resource {
        Resource::LoadBalancer(r) => put(Some(&mut azure.balancers), &id, Some(r)),
        Resource::PublicIp(r) => {
            put(group.and_then(|g| azure.public_ips.get_mut(&g)), &id, Some(r));
        }
        Resource::PrivateLinkService(r) => {
            put(group.and_then(|g| azure.private_links.get_mut(&g)), &id, Some(r));
        }
        Resource::NatGateway(r) => put(Some(&mut azure.nat_gateways), &id, Some(r)),
        Resource::SecurityGroup(r) => azure.security_group = Fact::Known(Some(r)),
        Resource::Subnet(r) => {
            azure.subnets.insert(id, Fact::Known(Some(r)));
        }
        Resource::PoolMember(r) => {
            let lists = [&mut azure.scale_sets, &mut azure.network_interfaces];
            for all in lists.into_iter().chain(azure.scale_set_vms.values_mut()) {
                if let Some(known) = all.known_mut().and_then(|all| all.get_mut(&id)) {
                    *known = Arc::clone(&r);
                }
            }
        }
    }
}

/// Every resource of a kind that we write.
pub(super) fn all(azure: &Azure) -> impl Iterator<Item = Resource> + '_ {
    let balancers = azure.balancers.known().into_iter().flat_map(|all| all.values());
    let ips = azure.public_ips.values().filter_map(Fact::known).flat_map(|all| all.values());
    let links = azure.private_links.values().filter_map(Fact::known);
    let links = links.flat_map(|all| all.values());
    let gateways = azure.nat_gateways.known().into_iter().flat_map(|all| all.values());
    let group = azure.security_group.known().and_then(Option::as_ref);
    let subnets = azure.subnets.values().filter_map(|fact| fact.known()?.as_ref());
    let members = members(azure).filter_map(Fact::known).flat_map(|all| all.values());
    balancers
        .map(|r| Resource::LoadBalancer(Arc::clone(r)))
        .chain(ips.map(|r| Resource::PublicIp(Arc::clone(r))))
        .chain(links.map(|r| Resource::PrivateLinkService(Arc::clone(r))))
        .chain(gateways.map(|r| Resource::NatGateway(Arc::clone(r))))
        .chain(group.map(|r| Resource::SecurityGroup(Arc::clone(r))))
        .chain(subnets.map(|r| Resource::Subnet(Arc::clone(r))))
        .chain(members.map(|r| Resource::PoolMember(Arc::clone(r))))
}
