//! Where everything stands, and who cannot be served.
//!
//! A Service is not served, and told so, where Azure lacks what it names (a public IP, a subnet, a
//! load balancer that takes it, room), and where it asks for something scarce that another has: a
//! port of a shared frontend, a DNS label, the name of a pool, an address. Who has it keeps it.

use crate::asks::{Asks, Family, Invalid};
use crate::case::{Case, Fate, Place, Service};
use crate::estate::{id, items, parts, same, text};
use crate::public_ip::{self, Wanted};
use crate::site::{Layout, PoolKind, Sku};
use crate::{claims, confirm, consent, names, placement, rules, tags};
use ipnet::IpNet;
use serde_json::Value;
use std::net::IpAddr;

/// Finds who stands where, and who cannot be served.
pub(crate) fn settle(case: &mut Case<'_>) {
    if case.site.layout == Layout::Container {
        return;
    }
    hold(case);
    let mut places = std::collections::BTreeMap::new();
    for service in &case.services {
        let Some(asks) = service.asks() else { continue };
        for family in &asks.families {
            if let Some(place) = stands(case, service, asks, *family) {
                places.insert((service.key.clone(), *family), place);
            }
        }
    }
    case.places = places;
    let known = |service: &Service<'_>| {
        let known = service.served().is_some() && case.scene.refused.contains(&service.key);
        known.then(|| "the scene says so".to_owned())
    };
    let denied = case.services.iter().map(known).collect();
    deny(case, denied);
    let denied: Vec<Option<String>> =
        case.services.iter().map(|s| s.served().and_then(|asks| lacks(case, s, asks))).collect();
    deny(case, denied);
    let denied = case
        .services
        .iter()
        .map(|s| s.served().and_then(|asks| consent::lacks(case, s, asks)))
        .collect();
    deny(case, denied);
    let denied = claims::lost(case);
    deny(case, denied);
}

/// Who would lose what its owner has not confirmed keeps what it has.
fn hold(case: &mut Case<'_>) {
    let waits: Vec<Option<String>> = case
        .services
        .iter()
        .map(|s| s.served().and_then(|asks| confirm::unconfirmed(case, s, asks)))
        .collect();
    for (service, why) in case.services.iter_mut().zip(waits) {
        if let Some(why) = why {
            service.fate = Fate::Refused(Invalid(why));
        }
    }
}

fn deny(case: &mut Case<'_>, reasons: Vec<Option<String>>) {
    for (service, reason) in case.services.iter_mut().zip(reasons) {
        if let (Fate::Served(asks), Some(reason)) = (&service.fate, reason) {
            service.fate = Fate::Denied(asks.clone(), reason);
        }
    }
}

/// The frontend of a Service's own name; else one that has the address which the Service names. A
/// Service joins another's frontend by its address alone, whatever subnet it names.
fn stands<'a>(
    case: &Case<'a>,
    service: &Service<'_>,
    asks: &Asks,
    family: Family,
) -> Option<Place<'a>> {
    let name = names::frontend(&service.base, asks, family);
    let address = public_ip::wanted(case, service, asks, family);
    let pinned = asks.pinned.get(&family);
    let subnet = asks.subnet.as_deref().unwrap_or(&case.site.subnet);
    let subnet = names::subnet_id(&case.site, subnet);
    let has_address = |frontend: &Value| {
        let inside = &frontend["properties"];
        match asks.internal {
            true => {
                let has = text(&inside["privateIPAddress"]).parse::<IpAddr>().ok();
                let within = id(&inside["subnet"]["id"]) == subnet;
                let own = names::is_of(text(&frontend["name"]), &service.base);
                pinned.is_some() && has.as_ref() == pinned && (within || !own)
            }
            false => address.id().is_some_and(|ip| id(&inside["publicIPAddress"]["id"]) == ip),
        }
    };
    let may = placement::eligible(case, service, asks);
    let balancers: Vec<&'a Value> = may.iter().filter_map(|id| case.estate.get(id)).collect();
    let all = || {
        balancers.iter().flat_map(|balancer| {
            let frontends = parts(balancer, "frontendIPConfigurations");
            frontends.map(|frontend| Place { balancer, frontend })
        })
    };
    let named = |place: &Place<'_>| same(text(&place.frontend["name"]), &name);
    all()
        .find(|place| named(place) && has_address(place.frontend))
        .or_else(|| all().find(|place| has_address(place.frontend)))
        .or_else(|| all().find(named))
}

/// What Azure lacks for a Service, if it lacks something.
fn lacks(case: &Case<'_>, service: &Service<'_>, asks: &Asks) -> Option<String> {
    let may = placement::eligible(case, service, asks);
    if may.is_empty() {
        return Some("no load balancer takes the Service".to_owned());
    }
    if !asks.access.no_rules && case.estate.get(&case.site.security_group).is_none() {
        return Some("the security group does not exist".to_owned());
    }
    if let Some(group) = groups(asks).find(|group| !is_there(case, group)) {
        return Some(format!("resource group {group} does not exist"));
    }
    let stands = asks.families.iter().all(|family| case.place(service, *family).is_some());
    if !stands && !may.iter().any(|id| has_room(case, asks, id)) {
        return Some("no load balancer has room".to_owned());
    }
    if asks.internal {
        lacks_inside(case, service, asks)
    } else {
        lacks_outside(case, service, asks)
    }
}

/// The resource groups that a Service names.
fn groups(asks: &Asks) -> impl Iterator<Item = &String> {
    let of_ips = asks.public_ip.group.as_ref().filter(|_| !asks.internal);
    let of_link = asks.link.as_ref().and_then(|link| link.group.as_ref());
    of_ips.into_iter().chain(of_link)
}

fn is_there(case: &Case<'_>, group: &str) -> bool {
    case.scene.groups.as_ref().is_none_or(|all| all.contains(&group.to_lowercase()))
}

fn lacks_outside(case: &Case<'_>, service: &Service<'_>, asks: &Asks) -> Option<String> {
    asks.families.iter().find_map(|family| match public_ip::wanted(case, service, asks, *family) {
        Wanted::Missing(why) => Some(why),
        Wanted::Brought(id) => {
            let ip = case.estate.get(&id)?;
            public_ip::not_allowed(case, &id, ip).or_else(|| public_ip::unusable(case, *family, ip))
        }
        Wanted::Own(_) => None,
    })
}

fn lacks_inside(case: &Case<'_>, service: &Service<'_>, asks: &Asks) -> Option<String> {
    let of_link = asks.link.as_ref().and_then(|link| link.subnet.as_deref());
    let subnet = asks.subnet.as_deref().unwrap_or(&case.site.subnet);
    for name in std::iter::once(subnet).chain(of_link) {
        if find_subnet(case, name).is_none() {
            return Some(format!("subnet {name} does not exist"));
        }
    }
    let fixed = asks.link.iter().flat_map(|link| &link.addresses);
    let subnet_of_link = of_link.unwrap_or(subnet);
    for address in fixed.filter(|address| !is_of_link(case, service, address)) {
        if !is_free(case, subnet_of_link, address) {
            return Some(format!("{address} is no free address of subnet {subnet_of_link}"));
        }
    }
    asks.families.iter().find_map(|family| {
        let address = asks.pinned.get(family)?;
        let has = case.address(service, *family).and_then(|has| has.parse::<IpAddr>().ok());
        let usable = has.as_ref() == Some(address) || is_free(case, subnet, address);
        (!usable).then(|| format!("{address} is no free address of subnet {subnet}"))
    })
}

/// Whether a Service's Private Link Service has an address.
fn is_of_link(case: &Case<'_>, service: &Service<'_>, address: &IpAddr) -> bool {
    let mut links = case.estate.links().map(|(_, link)| link);
    links.any(|link| {
        let own = tags::tag(link, tags::OWNER).is_some_and(|owner| same(owner, &service.key));
        let mut all = parts(link, "ipConfigurations");
        own && all.any(|one| {
            let has = text(&one["properties"]["privateIPAddress"]);
            has.parse::<IpAddr>().ok().as_ref() == Some(address)
        })
    })
}

/// A subnet of the cluster's network, as a resource or within the network.
fn find_subnet<'a>(case: &Case<'a>, name: &str) -> Option<&'a Value> {
    let own = case.estate.get(&names::subnet_id(&case.site, name));
    own.or_else(|| {
        let network = case.estate.get(&case.site.network)?;
        parts(network, "subnets").find(|subnet| same(text(&subnet["name"]), name))
    })
}

/// Azure keeps the first four addresses of a subnet and the last.
fn is_free(case: &Case<'_>, subnet: &str, address: &IpAddr) -> bool {
    let Some(subnet) = find_subnet(case, subnet) else { return false };
    let inside = &subnet["properties"];
    let many = items(&inside["addressPrefixes"]);
    let prefixes = many.chain(std::iter::once(&inside["addressPrefix"]));
    let nets = prefixes.filter_map(|prefix| text(prefix).parse::<IpNet>().ok());
    let fits = |net: IpNet| match (net, address) {
        (IpNet::V4(net), IpAddr::V4(address)) => {
            let (first, at) = (u32::from(net.network()), u32::from(*address));
            net.contains(address) && at >= first + 4 && *address != net.broadcast()
        }
        (IpNet::V6(net), IpAddr::V6(address)) => {
            let (first, at) = (u128::from(net.network()), u128::from(*address));
            net.contains(address) && at >= first + 4
        }
        _ => false,
    };
    let is_it = |value: &Value| text(value).parse::<IpAddr>().ok().as_ref() == Some(address);
    let taken = case.estate.balancers().any(|(_, balancer)| {
        let mut frontends = parts(balancer, "frontendIPConfigurations");
        frontends.any(|frontend| is_it(&frontend["properties"]["privateIPAddress"]))
    });
    let node = case.nodes.iter().any(|node| node.addresses.values().any(|a| a == address));
    nets.into_iter().any(fits) && !taken && !node
}

/// Whether a load balancer takes a Service that is not there yet. The last tenth is kept for
/// namespaces that use less than others, so nothing is promised of it.
fn has_room(case: &Case<'_>, asks: &Asks, id: &str) -> bool {
    let Some(balancer) = case.estate.get(id) else { return true };
    let (of_rules, of_frontends) = match case.site.sku {
        Sku::Basic => (250, 200),
        Sku::Standard | Sku::Service => (1_500, 600),
    };
    let of_rules = if case.site.pools == PoolKind::Nics { of_rules.min(300) } else { of_rules };
    let families = asks.families.len();
    let rules = parts(balancer, "loadBalancingRules").count() + rules::heads(asks).len() * families;
    let frontends = parts(balancer, "frontendIPConfigurations").count() + families;
    rules * 10 <= of_rules * 9 && frontends * 10 <= of_frontends * 9
}
