//! Frontends.
//!
//! What is promised:
//! - One for each family of a Service, all on one load balancer, on which the Service may stand.
//! - It is called after the Service (and the subnet that an annotation names), unless the Service
//!   shares the frontend of another one that has the same address.
//! - A public one has the Service's public IP. An internal one has an address of the subnet that
//!   the annotation names, else of the config's; the pinned one, where one is pinned. On another's
//!   frontend, which it shares for the address, the subnet is the other's.
//! - An internal one that is made on a Standard load balancer is in all zones of the region, not so
//!   in an edge zone.
//! - The load balancer has the SKU of the cloud config.

use crate::Broken;
use crate::asks::{Asks, Family};
use crate::case::{Case, Place, Service};
use crate::estate::{id, items, last, parts, same, text};
use crate::names;
use crate::placement;
use crate::public_ip;
use crate::site::Sku;
use std::collections::BTreeSet;
use std::net::IpAddr;

const PROMISE: &str = "frontend";

/// Judges them.
pub(crate) fn judge(case: &Case<'_>, broken: &mut Vec<Broken>) {
    for (service, asks) in case.served() {
        let mut found = Vec::new();
        let mut on = BTreeSet::new();
        for family in &asks.families {
            match case.place(service, *family) {
                None => {
                    let name = names::frontend(&service.base, asks, *family);
                    let may = placement::eligible(case, service, asks);
                    let may: Vec<&str> = may.iter().map(|id| last(id)).collect();
                    let may = may.join(", ");
                    found.push(format!("{} frontend {name} is not on {may}", family.name()));
                }
                Some(place) => {
                    on.insert(id(&place.balancer["id"]));
                    judge_one(case, service, asks, *family, place, &mut found);
                }
            }
        }
        if on.len() > 1 {
            found.push(format!("its frontends are on different load balancers: {on:?}"));
        }
        broken.extend(found.into_iter().map(|text| service.broken(PROMISE, text)));
    }
}

fn judge_one(
    case: &Case<'_>,
    service: &Service<'_>,
    asks: &Asks,
    family: Family,
    place: Place<'_>,
    found: &mut Vec<String>,
) {
    let name = text(&place.frontend["name"]);
    let inside = &place.frontend["properties"];
    let mut must = |what: &str, has: &str, must: &str| {
        if !same(has, must) {
            found.push(format!("the {what} of frontend {name} is {has:?}; it must be {must:?}"));
        }
    };
    let sku = match case.site.sku {
        Sku::Basic => "Basic",
        Sku::Standard => "Standard",
        Sku::Service => "Service",
    };
    must("load balancer's SKU", text(&place.balancer["sku"]["name"]), sku);
    let own = names::is_of(name, &service.base);
    if own && !serves_others(place, &service.base) {
        must("name", name, &names::frontend(&service.base, asks, family));
    }
    if asks.internal {
        let subnet = asks.subnet.as_deref().unwrap_or(&case.site.subnet);
        let subnet = names::subnet_id(&case.site, subnet);
        // Who shares another Service's frontend takes it as that one asks for it.
        if own {
            must("subnet", &id(&inside["subnet"]["id"]), &subnet);
        }
        let version = inside["privateIPAddressVersion"].as_str().unwrap_or("IPv4");
        must("version", version, family.name());
        must("public IP", text(&inside["publicIPAddress"]["id"]), "");
        let address = text(&inside["privateIPAddress"]);
        let parsed = address.parse::<IpAddr>().ok();
        if let Some(pinned) = asks.pinned.get(&family) {
            if parsed != Some(*pinned) {
                must("address", address, &pinned.to_string());
            }
            if own {
                must("allocation", text(&inside["privateIPAllocationMethod"]), "Static");
            }
        } else if parsed.is_none_or(|address| Family::of(&address) != family) {
            must("address", address, &format!("one of {}", family.name()));
        }
        let zones: Vec<&str> = items(&place.frontend["zones"]).map(text).collect();
        let zonal = case.site.sku == Sku::Standard && case.site.edge_zone.is_none();
        let wanted = if zonal { &case.scene.zones[..] } else { &[] };
        if !zonal || !wanted.is_empty() {
            must("zones", &zones.join(","), &wanted.join(","));
        }
    } else {
        let wanted = public_ip::wanted(case, service, asks, family);
        must("public IP", &id(&inside["publicIPAddress"]["id"]), wanted.id().unwrap_or(""));
        must("subnet", text(&inside["subnet"]["id"]), "");
    }
}

/// Whether rules of others lead from a frontend: it keeps its name for them, because Azure renames
/// nothing, and another one would have to take the address away.
fn serves_others(place: Place<'_>, base: &str) -> bool {
    let own = id(&place.frontend["id"]);
    let kinds = ["loadBalancingRules", "inboundNatRules"];
    let mut rules = kinds.iter().flat_map(|kind| parts(place.balancer, kind));
    let led = rules.any(|rule| {
        let to = id(&rule["properties"]["frontendIPConfiguration"]["id"]);
        to == own && !names::is_of(text(&rule["name"]), base)
    });
    let outbound = parts(place.balancer, "outboundRules");
    let mut from = outbound.flat_map(|rule| items(&rule["properties"]["frontendIPConfigurations"]));
    led || from.any(|frontend| id(&frontend["id"]) == own)
}
