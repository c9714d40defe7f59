//! Addresses that Services of several namespaces name.
//!
//! What is promised (docs/security.md, "What a tenant cannot do"):
//! - Within a namespace Services share an address.
//! - Across namespaces they do where the first holder's Service names the namespace in
//!   `ballast.dev/share-with-namespaces`, or the cloud config allows it for all; under `tenancy:
//!   strict` nobody does. Who shares an address keeps it.
//! - A Private Link Service stands before a frontend of another namespace with the same consent.
//! - A public IP that was made for Services is theirs, and their namespaces', until it is gone.

use crate::asks::{Asks, Family};
use crate::case::{Case, Service};
use crate::estate::{id, parts, same, text, told};
use crate::public_ip::{self, Wanted};
use crate::site::Sharing;
use crate::{names, tags};
use serde_json::Value;
use std::net::IpAddr;

const SHARE: &str = "ballast.dev/share-with-namespaces";

/// What a Service names: a public IP by its id, or a private address.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Named {
    Public(String),
    Private(IpAddr),
}

/// Why a Service cannot have an address that it names, or the link before it.
pub(crate) fn lacks(case: &Case<'_>, service: &Service<'_>, asks: &Asks) -> Option<String> {
    if case.site.sharing == Sharing::All {
        return None;
    }
    asks.families.iter().find_map(|family| {
        let named = named(case, service, asks, *family)?;
        let (on, frontends) = standing(case, &named);
        let users = users(case, &named);
        if let Some(first) = let_go(case, &on, &users)
            && !users.iter().any(|user| namespace(user) == service.namespace)
        {
            return Some(format!("{named:?} was made for {first}"));
        }
        let holder = holder(case, &on, &named)?;
        if holder.namespace == service.namespace || consents(case, holder, service) {
            return None;
        }
        let tagged = users.is_empty() || users.iter().any(|user| same(user, &service.key));
        let shares = on.iter().any(|base| same(base, &service.base))
            || (tagged && is_told(case, service, &named));
        if !shares {
            return Some(format!("{} holds {named:?}", holder.key));
        }
        asks.link.as_ref()?;
        let linked = case.estate.links().any(|(_, link)| {
            let own = tags::tag(link, tags::OWNER).is_some_and(|owner| same(owner, &service.key));
            let mut before = parts(link, "loadBalancerFrontendIpConfigurations");
            own && before.any(|frontend| frontends.contains(&id(&frontend["id"])))
        });
        (!linked).then(|| format!("the frontend is that of {}", holder.key))
    })
}

fn named(case: &Case<'_>, service: &Service<'_>, asks: &Asks, family: Family) -> Option<Named> {
    if asks.internal {
        return asks.pinned.get(&family).copied().map(Named::Private);
    }
    match public_ip::wanted(case, service, asks, family) {
        Wanted::Brought(id) => Some(Named::Public(id)),
        Wanted::Own(_) | Wanted::Missing(_) => None,
    }
}

/// The bases of names of Services that stand on frontends with an address, the frontend's own
/// first, and these frontends.
fn standing(case: &Case<'_>, named: &Named) -> (Vec<String>, Vec<String>) {
    let (mut on, mut ids) = (Vec::new(), Vec::new());
    for (_, balancer) in case.estate.balancers() {
        for frontend in parts(balancer, "frontendIPConfigurations") {
            let inside = &frontend["properties"];
            let has = match named {
                Named::Public(ip) => id(&inside["publicIPAddress"]["id"]) == *ip,
                Named::Private(address) => {
                    text(&inside["privateIPAddress"]).parse::<IpAddr>().ok() == Some(*address)
                }
            };
            if !has {
                continue;
            }
            let own = id(&frontend["id"]);
            let rules = parts(balancer, "loadBalancingRules");
            let here =
                |rule: &&Value| id(&rule["properties"]["frontendIPConfiguration"]["id"]) == own;
            let all = std::iter::once(frontend).chain(rules.filter(here));
            let bases = all.filter_map(|part| names::base_of(text(&part["name"])));
            on.extend(bases.map(str::to_owned));
            ids.push(own);
        }
    }
    (on, ids)
}

/// The Services on the tag of a public IP of this cluster.
fn users<'c>(case: &'c Case<'_>, named: &Named) -> Vec<&'c str> {
    let Named::Public(ip) = named else { return Vec::new() };
    let Some(ip) = case.estate.get(ip) else { return Vec::new() };
    let cluster = tags::tag(ip, tags::CLUSTER);
    if cluster.is_some_and(|cluster| !same(cluster, &case.site.cluster)) {
        return Vec::new();
    }
    let users = tags::tag(ip, tags::SERVICE).unwrap_or("").split(',').map(str::trim);
    users.filter(|user| !user.is_empty()).collect()
}

fn namespace(key: &str) -> &str {
    key.split_once('/').map_or("", |(namespace, _)| namespace)
}

/// The Service that a public IP was made for, where no Service on it wants a load balancer,
/// nor that Service itself.
fn let_go<'u>(case: &Case<'_>, on: &[String], users: &[&'u str]) -> Option<&'u str> {
    let first = *users.first()?;
    let mut wanting = case.services.iter().filter(|service| service.wants());
    let kept = |service: &Service<'_>| {
        same(&service.key, first) || on.iter().any(|base| same(base, &service.base))
    };
    (!wanting.any(kept)).then_some(first)
}

/// The Service that holds an address first.
fn holder<'c, 's>(case: &'c Case<'s>, on: &[String], named: &Named) -> Option<&'c Service<'s>> {
    let wanting = || case.services.iter().filter(|service| service.wants());
    let standing = on.iter().find_map(|base| wanting().find(|s| same(&s.base, base)));
    standing
        .or_else(|| {
            let Named::Public(ip) = named else { return None };
            let users = tags::tag(case.estate.get(ip)?, tags::SERVICE)?;
            let first = users.split(',').next()?.trim();
            wanting().find(|service| same(&service.key, first))
        })
        .or_else(|| {
            let mut naming: Vec<&Service<'_>> = wanting()
                .filter(|service| {
                    service.served().is_some_and(|asks| {
                        let mut families = asks.families.iter();
                        families
                            .any(|f| self::named(case, service, asks, *f).as_ref() == Some(named))
                    })
                })
                .collect();
            naming.sort_by_key(|service| (service.namespace, service.name));
            let first = naming.iter().find(|service| is_told(case, service, named));
            first.or(naming.first()).copied()
        })
}

fn consents(case: &Case<'_>, holder: &Service<'_>, asker: &Service<'_>) -> bool {
    let list = text(&holder.object["metadata"]["annotations"][SHARE]);
    let names = |name: &str| name == "*" || name == asker.namespace;
    case.site.sharing == Sharing::Consent && list.split(',').map(str::trim).any(names)
}

/// Whether a Service's status has an address.
fn is_told(case: &Case<'_>, service: &Service<'_>, named: &Named) -> bool {
    let address = match named {
        Named::Private(address) => Some(*address),
        Named::Public(ip) => case
            .estate
            .get(ip)
            .and_then(|ip| text(&ip["properties"]["ipAddress"]).parse::<IpAddr>().ok()),
    };
    let mut told = told(service.object).filter_map(|ip| ip.parse::<IpAddr>().ok());
    address.is_some_and(|address| told.any(|told| told == address))
}
