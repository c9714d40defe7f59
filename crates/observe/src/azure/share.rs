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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::azure::apply_list;
    use crate::config::Sources;
    use model::world::Need;
    use serde_json::{Value, json};
    use std::collections::BTreeMap;

    const NETWORK: &str = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network";

    /// The load balancer, the public IP and the registration of one Service, as Azure lists them.
    fn lists(uid: &str) -> [(Need, Value); 3] {
        let balancer = format!("{NETWORK}/loadBalancers/{uid}");
        let ip = format!("{NETWORK}/publicIPAddresses/{uid}-pip");
        let frontend = format!("{balancer}/frontendIPConfigurations/frontend");
        let pool = format!("{balancer}/backendAddressPools/{uid}");
        let rule = json!({"name": "rule-tcp-80", "properties": {"protocol": "Tcp",
            "frontendPort": 80, "backendPort": 8080,
            "frontendIPConfiguration": {"id": frontend}, "backendAddressPool": {"id": pool}}});
        let balancers = json!({"id": balancer, "location": "eastus", "sku": {"name": "Service"},
            "properties": {
                "frontendIPConfigurations": [{"name": "frontend",
                    "properties": {"publicIPAddress": {"id": ip}}}],
                "backendAddressPools": [{"name": uid, "properties": {}}],
                "loadBalancingRules": [rule]}});
        let ips = json!({"id": ip, "location": "eastus", "sku": {"name": "StandardV2"},
            "properties": {"ipAddress": "20.0.0.1", "publicIPAddressVersion": "IPv4",
                "publicIPAllocationMethod": "Static", "ipConfiguration": {"id": frontend}}});
        let services = json!({"name": uid, "properties": {"serviceType": "Inbound",
            "loadBalancerBackendPools": [{"id": pool}]}});
        [
            (Need::Balancers, balancers),
            (Need::PublicIps(model::Group::new("rg")), ips),
            (Need::GatewayServices, services),
        ]
    }

    fn read(order: [usize; 3], uid: &str) -> Azure {
        let text = r#"{"tenantId": "t", "aadClientId": "c", "aadClientSecret": "s",
            "subscriptionId": "s", "resourceGroup": "rg", "location": "eastus",
            "vnetName": "vnet", "subnetName": "nodes", "securityGroupName": "nsg"}"#;
        let environment = BTreeMap::new();
        let sources = Sources { text, cluster: "kubernetes", environment: &environment };
        let policy = crate::config::read(&sources).expect("the config is whole").policy;
        let lists = lists(uid);
        let mut azure = Azure::default();
        for at in order {
            let (need, item) = &lists[at];
            let read = apply_list(&mut azure, &policy, need, std::slice::from_ref(item));
            assert_eq!(read.problems, []);
        }
        azure
    }

    /// Ids that two resources name, each pair: as the one holds it and as the other does.
    fn pairs(azure: &Azure) -> Vec<(ResourceId, ResourceId)> {
        let balancer = azure.balancers.known().expect("known").values().next().expect("one");
        let ips = azure.public_ips.values().next().and_then(Fact::known).expect("known");
        let ip = ips.values().next().expect("one");
        let services = azure.gateway_services.known().expect("known");
        let pools = services.values().flat_map(|service| &service.pools);
        let FrontendAddress::Public(named) = &balancer.frontends[0].address else {
            panic!("the frontend is public")
        };
        let rule = &balancer.rules[0];
        let frontend = rule.frontend.clone().expect("a frontend");
        let pool = rule.pool.clone().expect("a pool");
        vec![
            (named.clone(), ip.id.clone()),
            (frontend, ip.user.clone().expect("it is used")),
            (pool, pools.clone().next().cloned().expect("one pool")),
        ]
    }

    #[test]
    fn what_several_resources_name_is_held_once_in_whatever_order_they_were_read() {
        let uid = "0f8fad5b-d9cb-469f-a165-70867728950e";
        for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
            for (one, other) in pairs(&read(order, uid)) {
                assert_eq!(one, other);
                let (here, there) = (one.as_str().as_ptr(), other.as_str().as_ptr());
                assert_eq!(here, there, "{one} is held twice when read in the order {order:?}");
            }
        }
    }

    #[test]
    fn an_id_in_other_letters_stays_as_it_came() {
        let uid = "0f8fad5b-d9cb-469f-a165-70867728950e";
        let mut id = ResourceId::new(format!("{NETWORK}/loadBalancers/{uid}"));
        let other = ResourceId::new(id.as_str().to_uppercase());
        assert_eq!(id, other, "Azure compares without regard to case");
        share(&mut id, &other);
        assert_ne!(id.as_str(), other.as_str());
        let same = ResourceId::new(id.as_str());
        share(&mut id, &same);
        assert_eq!(id.as_str().as_ptr(), same.as_str().as_ptr());
    }

    #[test]
    fn a_registration_that_is_held_is_not_made_anew_by_another_read() {
        let uid = "0f8fad5b-d9cb-469f-a165-70867728950e";
        let azure = read([0, 1, 2], uid);
        let services = azure.gateway_services.known().expect("known").clone();
        let again = super::services(services.clone(), &azure);
        let (before, after) = (&services[uid], &again[uid]);
        assert!(Arc::ptr_eq(before, after));
    }
}
