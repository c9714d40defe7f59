//! Which Services traffic reaches, as far as load balancers decide it, and at which addresses.

use model::azure::{FrontendAddress, LoadBalancer, MemberKind, Pool, PoolMember, Sku};
use model::world::Fact;
use model::{Family, ResourceId, ServiceUid, World};
use plan::own::{Base, part, pod_names};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

/// A Service and a family of its addresses.
pub type Reached = BTreeSet<(ServiceUid, Family)>;

/// The Services with a rule that leads from an address of theirs to a pool with members.
#[must_use]
pub fn reached(world: &World) -> Reached {
    let services = world.kubernetes.services.values();
    let by_base: BTreeMap<Base, &ServiceUid> =
        services.map(|s| (Base::of_service(&s.uid), &s.uid)).collect();
    let mut reached = Reached::new();
    for balancer in world.azure.balancers.each() {
        reached.extend(through_gateway(world, balancer));
        for rule in &balancer.rules {
            let Some(uid) = Base::of(&rule.name).and_then(|base| by_base.get(&base)) else {
                continue;
            };
            let family = rule.frontend.as_ref().and_then(|id| family(world, balancer, id));
            let filled = rule.pool.as_ref().is_some_and(|id| is_filled(world, balancer, id));
            if let Some(family) = family.filter(|_| filled) {
                reached.insert(((*uid).clone(), family));
            }
        }
    }
    reached
}

/// The Service of a container load balancer that is registered with the Service Gateway.
fn through_gateway(world: &World, balancer: &LoadBalancer) -> Option<(ServiceUid, Family)> {
    if balancer.sku != Sku::Service {
        return None;
    }
    let name = balancer.id.name().to_lowercase();
    let entry = world.azure.gateway_services.known()?.get(name.as_str())?;
    let services = world.kubernetes.services.keys();
    let uid = services.into_iter().find(|uid| pod_names::is_of(&name, uid))?;
    let rule = balancer.rules.iter().find_map(|rule| rule.frontend.as_ref())?;
    let family = family(world, balancer, rule)?;
    (!entry.pools.is_empty()).then(|| (uid.clone(), family))
}

/// The addresses that the rules of a Service lead from, each once.
pub fn addresses(world: &World, uid: &ServiceUid) -> Vec<IpAddr> {
    let base = Base::of_service(uid);
    let mut found = Vec::new();
    for balancer in world.azure.balancers.known().into_iter().flat_map(BTreeMap::values) {
        let whole = balancer.sku == Sku::Service && pod_names::is_of(balancer.id.name(), uid);
        let is_own = |name: &str| whole || Base::of(name).is_some_and(|of| of == base);
        let own = balancer.rules.iter().filter(|rule| is_own(&rule.name));
        for address in own.filter_map(|rule| address(world, balancer, rule.frontend.as_ref()?)) {
            if !found.contains(&address) {
                found.push(address);
            }
        }
    }
    found
}

/// The family of a frontend's address.
fn family(world: &World, balancer: &LoadBalancer, id: &ResourceId) -> Option<Family> {
    address(world, balancer, id).map(Family::of)
}

fn address(world: &World, balancer: &LoadBalancer, id: &ResourceId) -> Option<IpAddr> {
    let frontend = part::named(&balancer.frontends, id.name())?;
    match &frontend.address {
        FrontendAddress::Private { address, .. } => *address,
        FrontendAddress::Public(id) => {
            let facts = world.azure.public_ips.get(&id.group()?)?.known()?;
            facts.get(id)?.address
        }
        FrontendAddress::Other => None,
    }
}

fn is_filled(world: &World, balancer: &LoadBalancer, id: &ResourceId) -> bool {
    let pool = part::named(&balancer.pools, id.name());
    pool.is_some_and(|pool| !pool.addresses.is_empty() || has_nics(world, pool, id))
}

/// What members say themselves counts: a load balancer may have been read before they changed.
fn has_nics(world: &World, pool: &Pool, id: &ResourceId) -> bool {
    let mut known = false;
    for member in members(world) {
        known = true;
        if member.configurations.iter().any(|c| c.pools.contains(id)) {
            return true;
        }
    }
    !known && !pool.nics.is_empty()
}

/// Instances and NICs that were read.
fn members(world: &World) -> impl Iterator<Item = &Arc<PoolMember>> {
    let instances = world.azure.scale_set_vms.values().flat_map(Fact::each);
    let all = instances.chain(world.azure.network_interfaces.each());
    all.filter(|m| matches!(m.kind, MemberKind::ScaleSetVm | MemberKind::NetworkInterface))
}
