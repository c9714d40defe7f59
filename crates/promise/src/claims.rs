//! Scarce things that Services ask for beside each other or beside others.

use crate::asks::{Asks, Family};
use crate::case::{Case, Fate, Service};
use crate::estate::{id, items, last, part, parts, same, text, told};
use crate::public_ip;
use crate::site::{Layout, Sharing};
use crate::{names, placement, rules, tags};
use serde_json::Value;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Why each Service has lost what it asks for; `None` for one that has not.
pub(crate) fn lost(case: &Case<'_>) -> Vec<Option<String>> {
    let mut lost: Vec<Option<String>> = vec![None; case.services.len()];
    let mut lose = |at: usize, why: String| {
        lost[at].get_or_insert(why);
    };
    for (at, why) in ports(case).into_iter().chain(pool_names(case)) {
        lose(at, why);
    }
    for (at, service) in case.services.iter().enumerate() {
        let Some(asks) = service.served() else { continue };
        let others = [
            own_ports(asks),
            label(case, service, asks),
            additional(case, service, asks),
            links_and_ipv6(case, service, asks),
            link_owned(case, service, asks),
            others_port(case, service, asks),
            all_ports(case, service, asks),
        ];
        if let Some(why) = others.into_iter().flatten().next() {
            lose(at, why);
        }
    }
    lost
}

/// What a rule takes of its frontend: a protocol and a port, or everything.
fn takes(asks: &Asks) -> Vec<(&'static str, u64)> {
    let heads = rules::heads(asks).into_iter();
    heads
        .map(|port| match port.protocol.in_rule() {
            _ if asks.ha_ports => ("All", 0),
            protocol => (protocol, port.number),
        })
        .collect()
}

/// HA ports take every port, SCTP takes its port for every protocol.
fn clash(one: (&str, u64), other: (&str, u64)) -> bool {
    let all = [one, other].contains(&("All", 0));
    let any = one.0 == "All" || other.0 == "All" || same(one.0, other.0);
    all || (any && one.1 == other.1)
}

/// Ports of frontends that Services share: who has a rule there keeps it, else the first.
fn ports(case: &Case<'_>) -> Vec<(usize, String)> {
    let mut on: BTreeMap<String, Vec<(usize, Family)>> = BTreeMap::new();
    for (at, service) in case.services.iter().enumerate() {
        let Some(asks) = service.served() else { continue };
        for family in &asks.families {
            if let Some(place) = case.place(service, *family) {
                on.entry(id(&place.frontend["id"])).or_default().push((at, *family));
            }
        }
    }
    let mut lost = Vec::new();
    for (frontend, mut users) in on.into_iter().filter(|(_, users)| users.len() > 1) {
        users.sort_by_key(|(at, family)| !has_rules(case, &case.services[*at], *family));
        for (place, (at, _)) in users.iter().enumerate() {
            let Some(asks) = case.services[*at].served() else { continue };
            let before = users[..place].iter().filter_map(|(o, _)| case.services[*o].served());
            let mut taken = before.flat_map(takes);
            if taken.any(|other| takes(asks).iter().any(|own| clash(*own, other))) {
                let why = format!("a port of frontend {} is another Service's", last(&frontend));
                lost.push((*at, why));
            }
        }
    }
    lost
}

/// A port that a Service itself asks for twice.
fn own_ports(asks: &Asks) -> Option<String> {
    let all = takes(asks);
    let twice = |at: usize| all[..at].iter().any(|other| clash(*other, all[at]));
    let at = (0..all.len()).find(|at| twice(*at))?;
    Some(format!("port {} is taken twice", all[at].1))
}

/// Whether a Service's rules stand.
fn has_rules(case: &Case<'_>, service: &Service<'_>, family: Family) -> bool {
    let (Some(asks), Some(place)) = (service.served(), case.place(service, family)) else {
        return false;
    };
    rules::heads(asks).iter().all(|port| {
        let name = names::rule(&service.base, asks, family, port);
        part(place.balancer, "loadBalancingRules", &name).is_some()
    })
}

/// A port, or a node port where backends are reached on it, that a rule of somebody else's has.
fn others_port(case: &Case<'_>, service: &Service<'_>, asks: &Asks) -> Option<String> {
    for family in &asks.families {
        let place = case.place(service, *family)?;
        let pool = rules::pool(case, service, asks, *family);
        for kind in ["loadBalancingRules", "inboundNatRules"] {
            for rule in parts(place.balancer, kind) {
                let inside = &rule["properties"];
                let of_service = names::base_of(text(&rule["name"]));
                if of_service.is_some_and(|base| !keeps(case, service, base)) {
                    continue;
                }
                let of = |key: &str| inside[key].as_u64().unwrap_or(0);
                let theirs = (text(&inside["protocol"]), of("frontendPort"));
                let here =
                    id(&inside["frontendIPConfiguration"]["id"]) == id(&place.frontend["id"]);
                if here && takes(asks).iter().any(|own| clash(*own, theirs)) {
                    return Some(format!("a port is taken by {}", text(&rule["name"])));
                }
                let backend = (theirs.0, of("backendPort"));
                let same_pool = same(last(text(&inside["backendAddressPool"]["id"])), &pool);
                let mut ports = asks.forwarded().map(|p| (p.protocol.in_rule(), p.node_port));
                let others = of_service.is_none() && !asks.floating && same_pool;
                if others && ports.any(|own| clash(own, backend)) {
                    return Some(format!("a node port is taken by {}", text(&rule["name"])));
                }
            }
        }
    }
    None
}

/// Whether a rule of this name is another Service's that is refused, and keeps what it has. Its
/// node ports are whose Kubernetes says.
fn keeps(case: &Case<'_>, service: &Service<'_>, base: &str) -> bool {
    let refused = |other: &&Service<'_>| matches!(other.fate, Fate::Refused(_) | Fate::Denied(..));
    let mut refused = case.services.iter().filter(refused);
    !same(base, &service.base) && refused.any(|other| same(&other.base, base))
}

/// Azure has no floating IP for internal IPv6 frontends, and takes one rule for a backend port of a
/// pool without it: the first rule for all ports is the only one, and its Service keeps it. A
/// Service beside it is not moved away unasked: no address can be on two load balancers in Azure,
/// so that its own would be unreachable for a while.
fn all_ports(case: &Case<'_>, service: &Service<'_>, asks: &Asks) -> Option<String> {
    if !(asks.ha_ports && asks.internal && asks.families.contains(&Family::V6)) {
        return None;
    }
    let pool = rules::pool(case, service, asks, Family::V6);
    let holder = |balancer: &str| {
        let mut rules = parts(case.estate.get(balancer)?, "loadBalancingRules");
        rules.find_map(|rule| {
            let inside = &rule["properties"];
            let all = same(text(&inside["protocol"]), "All") && inside["backendPort"] == 0;
            let here = same(last(text(&inside["backendAddressPool"]["id"])), &pool);
            (all && here && inside["enableFloatingIP"] != true).then(|| text(&rule["name"]))
        })
    };
    let may = placement::eligible(case, service, asks);
    let stands = |id: &&String| {
        let balancer = case.estate.get(id);
        balancer.is_some_and(|balancer| placement::has_frontend(balancer, service))
    };
    let there: Vec<&String> = may.iter().filter(stands).collect();
    let may = if there.is_empty() { may.iter().collect() } else { there };
    let holders: Option<Vec<&str>> = may.into_iter().map(|id| holder(id)).collect();
    let mut holders = holders?.into_iter();
    let other = holders.all(|rule| !names::is_of(rule, &service.base));
    other.then(|| format!("all ports of pool {pool} are another rule's"))
}

/// A DNS label is one public IP's. It is the wish of the first Service on the public IP.
fn label(case: &Case<'_>, service: &Service<'_>, asks: &Asks) -> Option<String> {
    let label = asks.public_ip.label.as_deref()?;
    let own: Vec<String> = asks
        .families
        .iter()
        .filter_map(|f| public_ip::wanted(case, service, asks, *f).id().map(str::to_owned))
        .collect();
    let others = own.iter().filter_map(|id| case.estate.get(id)).find_map(|ip| {
        let owner = tags::tag(ip, tags::LABEL).filter(|owner| !same(owner, &service.key))?;
        case.services.iter().find(|other| other.wants() && same(&other.key, owner))
    });
    if let Some(other) = others {
        return Some(format!("the label of its public IP is that of {}", other.key));
    }
    if label.is_empty() {
        return None;
    }
    let has = |ip: &Value| same(text(&ip["properties"]["dnsSettings"]["domainNameLabel"]), label);
    let holder = case.estate.public_ips().find(|(id, ip)| has(ip) && !own.iter().any(|o| o == id));
    let mine = own.iter().filter_map(|id| case.estate.get(id)).any(has);
    holder.filter(|_| !mine).map(|(id, _)| format!("label {label} is that of {}", last(id)))
}

/// A shared frontend has one Private Link Service, and one Service says how it is.
fn link_owned(case: &Case<'_>, service: &Service<'_>, asks: &Asks) -> Option<String> {
    asks.link.as_ref().filter(|link| link.configured)?;
    let frontend = id(&case.place(service, Family::V4)?.frontend["id"]);
    let before = |link: &Value| {
        let mut on = parts(link, "loadBalancerFrontendIpConfigurations");
        on.any(|on| id(&on["id"]) == frontend)
    };
    let (_, link) = case.estate.links().find(|(_, link)| before(link))?;
    let owner = tags::tag(link, tags::OWNER).filter(|owner| !same(owner, &service.key))?;
    let asks_too = |other: &&Service<'_>| {
        same(&other.key, owner) && other.asks().is_some_and(|asks| asks.link.is_some())
    };
    let other = case.services.iter().find(asks_too)?;
    Some(format!("{} owns the Private Link Service", other.key))
}

/// Addresses that something else is reached at.
fn additional(case: &Case<'_>, service: &Service<'_>, asks: &Asks) -> Option<String> {
    asks.additional.iter().find_map(|address| {
        let strict = case.site.sharing == Sharing::None;
        let listed = case.site.allowed_additional.iter().any(|net| net.contains(address));
        let allowed = listed && !strict;
        let others = case.services.iter().filter(|other| other.key != service.key);
        let cluster = others.clone().any(|other| {
            let mut all = items(&other.object["spec"]["clusterIPs"]);
            all.any(|ip| text(ip).parse::<IpAddr>().ok().as_ref() == Some(address))
        });
        let frontend = is_anothers_frontend(case, service, address);
        let elsewhere = others.filter(|other| other.namespace != service.namespace).any(|other| {
            let listed = other.asks().is_some_and(|asks| asks.additional.contains(address));
            listed && is_told(other, address)
        });
        let node = case.nodes.iter().any(|node| node.addresses.values().any(|a| a == address));
        let pod = case.scene.pods.iter().any(|pod| {
            items(&pod["status"]["podIPs"]).any(|ip| text(&ip["ip"]).parse().ok() == Some(*address))
        });
        let taken = frontend || cluster || (elsewhere && !allowed) || node || pod;
        taken.then(|| format!("address {address} is in use"))
    })
}

/// Whether an address is that of a frontend on a cluster's load balancer, and neither the
/// frontend's name nor a rule's that leads there says that it is this Service's.
fn is_anothers_frontend(case: &Case<'_>, service: &Service<'_>, address: &IpAddr) -> bool {
    let mut balancers = case.estate.balancers().filter(|(id, balancer)| {
        let mut frontends = parts(balancer, "frontendIPConfigurations");
        let of_cluster = frontends.any(|part| names::base_of(text(&part["name"])).is_some());
        of_cluster || case.is_balancer_of_ours(id)
    });
    balancers.any(|(_, balancer)| {
        parts(balancer, "frontendIPConfigurations").any(|frontend| {
            let has = case.address_of(frontend).and_then(|ip| ip.parse::<IpAddr>().ok());
            let own = |part: &Value| names::is_of(text(&part["name"]), &service.base);
            let leads = |rule: &Value| {
                let to = id(&rule["properties"]["frontendIPConfiguration"]["id"]);
                own(rule) && to == id(&frontend["id"])
            };
            let used = own(frontend) || parts(balancer, "loadBalancingRules").any(leads);
            has.as_ref() == Some(address) && !used
        })
    })
}

fn is_told(service: &Service<'_>, address: &IpAddr) -> bool {
    told(service.object).any(|ip| ip.parse::<IpAddr>().ok().as_ref() == Some(address))
}

/// A Private Link Service stands on no load balancer with IPv6 frontends: what stands first stays.
fn links_and_ipv6(case: &Case<'_>, service: &Service<'_>, asks: &Asks) -> Option<String> {
    let may = placement::eligible(case, service, asks);
    let balancer = may.iter().find_map(|id| case.estate.get(id))?;
    let on = id(&balancer["id"]);
    let link_of = |frontend: &str| {
        case.estate.links().any(|(_, link)| {
            let mut before = parts(link, "loadBalancerFrontendIpConfigurations");
            before.any(|part| id(&part["id"]).starts_with(frontend))
        })
    };
    let is_ipv6 = |frontend: &Value| {
        let inside = &frontend["properties"];
        let ip = case.estate.get(text(&inside["publicIPAddress"]["id"]));
        let of_ip = ip.map_or("", |ip| text(&ip["properties"]["publicIPAddressVersion"]));
        text(&inside["privateIPAddressVersion"]) == "IPv6" || of_ip == "IPv6"
    };
    if asks.link.is_some() {
        let place = case.place(service, Family::V4);
        let stands = place.is_some_and(|place| link_of(&id(&place.frontend["id"])));
        let beside = parts(balancer, "frontendIPConfigurations").any(is_ipv6);
        return (beside && !stands).then(|| "an IPv6 frontend is on the load balancer".to_owned());
    }
    let wants = asks.families.contains(&Family::V6);
    let stands = case.place(service, Family::V6).is_some();
    let beside = link_of(&format!("{on}/"));
    (wants && !stands && beside)
        .then(|| "a Private Link Service is before the load balancer".to_owned())
}

/// Several load balancers: Local Services whose pools would have one name, or the cluster's.
fn pool_names(case: &Case<'_>) -> Vec<(usize, String)> {
    if !matches!(case.site.layout, Layout::Several(_)) {
        return Vec::new();
    }
    let mut by_name: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (at, service) in case.services.iter().enumerate() {
        if service.served().is_some_and(|asks| asks.local) {
            let name = names::local_pool(service.namespace, service.name, Family::V4);
            by_name.entry(name).or_default().push(at);
        }
    }
    let mut lost = Vec::new();
    for (name, mut all) in by_name {
        let clusters = names::is_cluster_pool(&case.site, &name);
        let uid = |at: &usize| text(&case.services[*at].object["metadata"]["uid"]).to_owned();
        let stands = |at: &usize| has_rules(case, &case.services[*at], Family::V4);
        all.sort_by_key(|at| (!stands(at), uid(at)));
        let losers = if clusters { &all[..] } else { &all[1..] };
        lost.extend(losers.iter().map(|at| (*at, format!("pool {name} is another's"))));
    }
    lost
}
