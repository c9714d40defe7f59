//! Public IPs.
//!
//! What is promised:
//! - A public Service has one for each family: the one that it names, the one that has its pinned
//!   address, or one of its own, called after cluster and Service.
//! - It is in the resource group that the annotation names, else in the cluster's.
//! - It has the load balancer's SKU and the family's version. One that is made here is static (on
//!   Basic IPv6 ones are dynamic) and comes from the prefix that the annotation names.
//! - One that is made on a Standard load balancer is in all zones of the region, not so in an edge
//!   zone. Zones never change: one that stood before is left as it is.
//! - It has an address.
//! - One that was brought carries no tag of ours, and is never made here.

use crate::Broken;
use crate::asks::{Asks, Family};
use crate::case::{Case, Service};
use crate::estate::{group_of, id, items, last, same, text};
use crate::names;
use crate::site::Sku;
use crate::tags;
use serde_json::Value;
use std::net::IpAddr;

const PROMISE: &str = "public-ip";

/// Which public IP a Service is to have for a family.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// This one, by its id in lower case; it is made where it does not exist.
    Own(String),
    /// This one, which exists.
    Brought(String),
    /// It does not exist.
    Missing(String),
}

impl Wanted {
    /// Its id, lower case.
    pub(crate) fn id(&self) -> Option<&str> {
        match self {
            Self::Own(id) | Self::Brought(id) => Some(id),
            Self::Missing(_) => None,
        }
    }
}

/// The resource group of a Service's public IPs.
fn group<'c>(case: &'c Case<'_>, asks: &'c Asks) -> &'c str {
    asks.public_ip.group.as_deref().unwrap_or(&case.site.group)
}

/// Which public IP a Service is to have for a family; a name goes before a pinned address, and
/// a prefix as well, whose public IP is always a new one.
pub(crate) fn wanted(
    case: &Case<'_>,
    service: &Service<'_>,
    asks: &Asks,
    family: Family,
) -> Wanted {
    let group = group(case, asks);
    if let Some(name) = asks.public_ip.name.get(&family) {
        let id = names::public_ip_id(&case.site, group, name);
        return match case.estate.get(&id) {
            Some(_) => Wanted::Brought(id),
            None => Wanted::Missing(format!("public IP {name} does not exist")),
        };
    }
    let own = names::public_ip(&case.site, &service.base, asks, family);
    let own = names::public_ip_id(&case.site, group, &own);
    let pinned = asks.pinned.get(&family).filter(|_| !asks.public_ip.prefix.contains_key(&family));
    let Some(address) = pinned else { return Wanted::Own(own) };
    let mut all = case.estate.public_ips().filter(|(id, _)| same(group_of(id), group));
    let found = all.find(|(_, ip)| {
        text(&ip["properties"]["ipAddress"]).parse::<IpAddr>().ok() == Some(*address)
    });
    match found {
        Some((id, _)) if id == own => Wanted::Own(own),
        Some((id, _)) => Wanted::Brought(id.to_owned()),
        None => Wanted::Missing(format!("no public IP has the address {address}")),
    }
}

/// Why a public IP that was brought cannot be used, if it cannot.
pub(crate) fn unusable(case: &Case<'_>, family: Family, ip: &Value) -> Option<String> {
    let name = last(text(&ip["id"]));
    let inside = &ip["properties"];
    if version(ip) != family.name() {
        return Some(format!("public IP {name} is not of {}", family.name()));
    }
    if case.site.sku == Sku::Basic && !same(sku(ip), "Basic") {
        return Some(format!("public IP {name} is not Basic"));
    }
    let cluster = tags::tag(ip, tags::CLUSTER);
    if cluster.is_some_and(|cluster| !same(cluster, &case.site.cluster)) {
        return Some(format!("public IP {name} is another cluster's"));
    }
    let user = text(&inside["ipConfiguration"]["id"]).to_lowercase();
    let nat = !inside["natGateway"].is_null();
    let ours = user.split_once("/frontendipconfigurations/").is_some_and(|(balancer, _)| {
        case.estate.get(balancer).is_some() && case.is_balancer_of_ours(balancer)
    });
    if nat || !(user.is_empty() || ours) {
        return Some(format!("public IP {name} is in use by {user}"));
    }
    None
}

/// Why the cloud config does not let a Service name a public IP: it is in no list of those that
/// may be named, and was not made for a Service.
pub(crate) fn not_allowed(case: &Case<'_>, id: &str, ip: &Value) -> Option<String> {
    let allowed = case.site.allowed_ips.as_ref()?;
    let listed = allowed.iter().any(|name| match name.split_once('/') {
        Some((group, name)) => same(group, group_of(id)) && same(name, last(id)),
        None => same(&case.site.group, group_of(id)) && same(name, last(id)),
    });
    let made = tags::tag(ip, tags::SERVICE).is_some();
    (!listed && !made).then(|| format!("public IP {} is not listed", last(id)))
}

fn version(ip: &Value) -> &str {
    ip["properties"]["publicIPAddressVersion"].as_str().unwrap_or("IPv4")
}

/// A public IP without SKU is Basic.
fn sku(ip: &Value) -> &str {
    ip["sku"]["name"].as_str().unwrap_or("Basic")
}

/// Judges them.
pub(crate) fn judge(case: &Case<'_>, broken: &mut Vec<Broken>) {
    for (service, asks) in case.served().filter(|(_, asks)| !asks.internal) {
        for family in &asks.families {
            let wanted = wanted(case, service, asks, *family);
            let Some(must) = wanted.id() else { continue };
            let mut found = Vec::new();
            match case.estate.get(must) {
                None => found.push(format!("public IP {} does not exist", last(must))),
                Some(ip) => judge_one(case, asks, *family, &wanted, ip, &mut found),
            }
            broken.extend(found.into_iter().map(|text| service.broken(PROMISE, text)));
        }
    }
}

fn judge_one(
    case: &Case<'_>,
    asks: &Asks,
    family: Family,
    wanted: &Wanted,
    ip: &Value,
    found: &mut Vec<String>,
) {
    let name = last(text(&ip["id"]));
    let inside = &ip["properties"];
    let mut must = |what: &str, has: &str, must: &str| {
        if !same(has, must) {
            found.push(format!("the {what} of public IP {name} is {has:?}; it must be {must:?}"));
        }
    };
    let basic = case.site.sku == Sku::Basic;
    must("SKU", sku(ip), if basic { "Basic" } else { "Standard" });
    must("version", version(ip), family.name());
    if matches!(wanted, Wanted::Own(_)) {
        let dynamic = basic && family == Family::V6;
        let allocation = if dynamic { "Dynamic" } else { "Static" };
        must("allocation", text(&inside["publicIPAllocationMethod"]), allocation);
        let prefix = asks.public_ip.prefix.get(&family).map_or("", String::as_str);
        must("prefix", &id(&inside["publicIPPrefix"]["id"]), prefix.trim());
        let stood = case.scene.before.iter().any(|was| same(text(&was["id"]), text(&ip["id"])));
        let zonal = !basic && !stood && case.site.edge_zone.is_none();
        let zones: Vec<&str> = items(&ip["zones"]).map(text).collect();
        if zonal && !case.scene.zones.is_empty() {
            must("zones", &zones.join(","), &case.scene.zones.join(","));
        }
    } else if names_nobody(case, name) && tags::tag(ip, tags::SERVICE).is_none() {
        // What carries the tag of Services was made by this cluster, and another Service names it.
        let ours = tags::tag(ip, tags::CLUSTER).is_some() || tags::tag(ip, tags::LABEL).is_some();
        if ours {
            found.push(format!("public IP {name} was brought, and has a tag of ours"));
        }
    }
    if text(&inside["ipAddress"]).is_empty() {
        found.push(format!("public IP {name} has no address"));
    }
}

/// Whether a name is not of the form that this cluster gives.
fn names_nobody(case: &Case<'_>, name: &str) -> bool {
    let start = format!("{}-a", case.site.cluster);
    !name.get(..start.len()).is_some_and(|beginning| same(beginning, &start))
}
