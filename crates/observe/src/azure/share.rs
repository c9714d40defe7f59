//! Ids that several resources name are held once. A container load balancer, its public IP and its
//! registration name each other; there are as many of them as Services, and an id takes 200 bytes.
//!
//! Lists are read in any order: whichever comes later takes the texts of those that came before.

use model::ResourceId;
use model::azure::{FrontendAddress, LoadBalancer, PublicIp};
use model::gateway::{GatewayService, GatewayServices};
use model::world::{Azure, ById, Fact};
use std::sync::Arc;

/// Shares ids of load balancers that were read with public IPs and registrations.
pub(super) fn balancers(found: ById<LoadBalancer>, azure: &Azure) -> ById<LoadBalancer> {
    let share = |mut balancer: Arc<LoadBalancer>| {
        // One that is held already shares what it can.
        if let Some(new) = Arc::get_mut(&mut balancer) {
            share_balancer(new, azure);
        }
        (balancer.id.clone(), balancer)
    };
    found.into_values().map(share).collect()
}

fn share_balancer(balancer: &mut LoadBalancer, azure: &Azure) {
    let LoadBalancer { id, frontends, rules, .. } = balancer;
    let mut users = Vec::new();
    for frontend in frontends {
        let FrontendAddress::Public(ip) = &mut frontend.address else { continue };
        let held = ip.group().and_then(|group| azure.public_ips.get(&group)?.known());
        if let Some((known, held)) = held.and_then(|held| held.get_key_value(ip)) {
            share(ip, known);
            users.extend(held.user.clone());
        }
    }
    let services = azure.gateway_services.known();
    let service = services.and_then(|all| all.get(id.name().to_lowercase().as_str()));
    let mut pools: Vec<ResourceId> =
        service.map(|service| service.pools.iter().cloned().collect()).unwrap_or_default();
    for rule in rules {
        share_or_add(rule.frontend.as_mut(), &mut users);
        share_or_add(rule.pool.as_mut(), &mut pools);
    }
}

/// Shares ids of public IPs that were read with load balancers.
pub(super) fn public_ips(found: ById<PublicIp>, azure: &Azure) -> ById<PublicIp> {
    let share_ip = |mut ip: Arc<PublicIp>| {
        let user = ip.user.as_ref().and_then(ResourceId::parent);
        let held = azure.balancers.known().zip(user).and_then(|(all, user)| all.get(&user));
        if let Some((balancer, new)) = held.zip(Arc::get_mut(&mut ip)) {
            for frontend in &balancer.frontends {
                if let FrontendAddress::Public(known) = &frontend.address {
                    share(&mut new.id, known);
                }
            }
            for known in balancer.rules.iter().filter_map(|rule| rule.frontend.as_ref()) {
                new.user.iter_mut().for_each(|user| share(user, known));
            }
        }
        (ip.id.clone(), ip)
    };
    found.into_values().map(share_ip).collect()
}

/// Shares ids of registrations that were read with load balancers.
pub(super) fn services(found: GatewayServices, azure: &Azure) -> GatewayServices {
    let Fact::Known(balancers) = &azure.balancers else { return found };
    let share_pool = |mut pool: ResourceId| {
        let balancer = pool.parent().and_then(|id| balancers.get(&id));
        let rules = balancer.into_iter().flat_map(|balancer| &balancer.rules);
        rules.filter_map(|rule| rule.pool.as_ref()).for_each(|known| share(&mut pool, known));
        pool
    };
    let share_service = |(name, mut service): (Arc<str>, Arc<GatewayService>)| {
        // One that is held already shares what it can.
        if let Some(new) = Arc::get_mut(&mut service) {
            new.pools = std::mem::take(&mut new.pools).into_iter().map(share_pool).collect();
        }
        (name, service)
    };
    found.into_iter().map(share_service).collect()
}

/// Takes the text that is known, where it is the same to the letter.
fn share(id: &mut ResourceId, known: &ResourceId) {
    if id.as_str() == known.as_str() {
        *id = known.clone();
    }
}

fn share_or_add(id: Option<&mut ResourceId>, known: &mut Vec<ResourceId>) {
    let Some(id) = id else { return };
    match known.iter().find(|known| known.as_str() == id.as_str()) {
        Some(known) => *id = known.clone(),
        None => known.push(id.clone()),
    }
}
