//! Services whose owners confirm interruptions.
//!
//! What is promised:
//! - With `ballast.dev/confirm` a Service loses no address, no port and no load balancer that
//!   `ballast.dev/confirmed` does not list. While what it asks for would take one, it keeps all
//!   that it has, and its condition says so.
//! - What it asks for beyond that is done at once.
//! - It does not count on container load balancers, nor for a Service that is deleted. On the way
//!   to them it does: both addresses are told until the former one is confirmed to go.

use crate::asks::{Asks, Family};
use crate::case::{Case, Service};
use crate::estate::{Estate, id, last, part, parts, same, text};
use crate::{names, placement, public_ip, rules};
use serde_json::Value;
use std::collections::BTreeSet;
use std::net::IpAddr;

const CONFIRM: &str = "ballast.dev/confirm";
const CONFIRMED: &str = "ballast.dev/confirmed";

/// What leads to a Service on one load balancer.
struct Way<'a> {
    balancer: &'a Value,
    rule: &'a Value,
    frontend: Option<&'a Value>,
}

/// Why a Service keeps what it has until its owner confirms.
pub(crate) fn unconfirmed(case: &Case<'_>, service: &Service<'_>, asks: &Asks) -> Option<String> {
    if !asks_first(service.object) {
        return None;
    }
    let eligible = placement::eligible(case, service, asks);
    let mut lost = BTreeSet::new();
    for Way { balancer, rule, frontend } in ways(&case.estate, &service.base) {
        if !eligible.is_empty() && !eligible.contains(&id(&balancer["id"])) {
            lost.insert(last(text(&balancer["id"])).to_lowercase());
        }
        let goes = |port: &String| !asks.ha_ports && !asked(asks).contains(port);
        lost.extend(Some(port(rule)).filter(goes));
        if let Some(frontend) = frontend
            && let Some(address) = case.address_of(frontend)
            && is_lost(case, service, asks, frontend, address)
        {
            lost.insert(address.to_lowercase());
        }
    }
    lost.retain(|name| !is_confirmed(service.object, name));
    let names: Vec<String> = lost.into_iter().collect();
    (!names.is_empty()).then(|| format!("its owner has not confirmed the loss of {names:?}"))
}

fn asks_first(service: &Value) -> bool {
    same(text(&service["metadata"]["annotations"][CONFIRM]), "true")
}

fn is_confirmed(service: &Value, name: &str) -> bool {
    let mut listed = text(&service["metadata"]["annotations"][CONFIRMED]).split(',');
    listed.any(|one| same(one.trim(), name))
}

fn ways<'a>(estate: &Estate<'a>, base: &str) -> Vec<Way<'a>> {
    let all = estate.balancers().flat_map(|(_, balancer)| {
        let own = parts(balancer, "loadBalancingRules");
        let own = own.filter(|rule| names::is_of(text(&rule["name"]), base));
        own.map(move |rule| {
            let to = last(text(&rule["properties"]["frontendIPConfiguration"]["id"]));
            let frontend = part(balancer, "frontendIPConfigurations", to);
            Way { balancer, rule, frontend }
        })
    });
    all.collect()
}

fn port(rule: &Value) -> String {
    let inside = &rule["properties"];
    format!("{}/{}", text(&inside["protocol"]), inside["frontendPort"]).to_lowercase()
}

fn asked(asks: &Asks) -> BTreeSet<String> {
    let heads = rules::heads(asks).into_iter();
    heads.map(|p| format!("{}/{}", p.protocol.in_rule(), p.number).to_lowercase()).collect()
}

fn is_lost(
    case: &Case<'_>,
    service: &Service<'_>,
    asks: &Asks,
    frontend: &Value,
    address: &str,
) -> bool {
    let inside = &frontend["properties"];
    let Ok(address) = address.parse::<IpAddr>() else { return false };
    let family = Family::of(&address);
    let on = text(&inside["publicIPAddress"]["id"]);
    if !asks.families.contains(&family) || asks.internal != on.is_empty() {
        return true;
    }
    if asks.internal {
        let subnet = asks.subnet.as_ref().map(|name| names::subnet_id(&case.site, name));
        let elsewhere = subnet.is_some_and(|subnet| id(&inside["subnet"]["id"]) != subnet);
        return elsewhere || asks.pinned.get(&family).is_some_and(|pinned| *pinned != address);
    }
    let wanted = public_ip::wanted(case, service, asks, family);
    wanted.id().is_some_and(|wanted| !same(wanted, on))
}
