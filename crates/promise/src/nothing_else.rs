//! Nothing of ours that no Service asks for.
//!
//! What is promised, of the load balancers that the cloud config names:
//! - A frontend called after a Service is one that some Service stands on.
//! - A rule, a probe called after a Service is one that the Service asks for.
//! - The shared probe has a rule that it belongs to.
//! - The pool of a Local Service has one.
//! - A load balancer without frontends is gone, unless others fill its pools.
//! - A public IP that this cluster made has a Service.
//!
//! A Service that is refused keeps what it has. What stands behind a Private Link Service to which
//! private endpoints are connected may stay without a Service. Security rules and Private Link
//! Services are judged in their own files.

use crate::Broken;
use crate::asks::Asks;
use crate::case::{Case, Fate, Service};
use crate::estate::{id, last, parts, same, text};
use crate::site::{Layout, Preconfigured};
use crate::{links, names, probes, public_ip, rules, tags};
use serde_json::Value;
use std::collections::BTreeSet;

const PROMISE: &str = "nothing-else";

/// Judges it.
pub(crate) fn judge(case: &Case<'_>, broken: &mut Vec<Broken>) {
    if case.site.layout == Layout::Container {
        return;
    }
    let mut found = Vec::new();
    for (balancer_id, balancer) in case.estate.balancers() {
        if case.is_balancer_of_ours(balancer_id) {
            judge_balancer(case, balancer, &mut found);
        }
    }
    judge_public_ips(case, &mut found);
    broken.extend(found.into_iter().map(|text| Broken { service: None, promise: PROMISE, text }));
}

/// Whether a Service keeps what it has, whatever that is.
fn keeps(service: &Service<'_>) -> bool {
    matches!(service.fate, Fate::Refused(_) | Fate::Denied(..))
}

/// The Service that a part is called after.
fn owner<'c, 'a>(case: &'c Case<'a>, name: &str) -> Option<&'c Service<'a>> {
    case.services.iter().find(|service| names::is_of(name, &service.base))
}

fn judge_balancer(case: &Case<'_>, balancer: &Value, found: &mut Vec<String>) {
    let on = last(text(&balancer["id"]));
    let mut stands = 0;
    for frontend in parts(balancer, "frontendIPConfigurations") {
        stands += 1;
        let name = text(&frontend["name"]);
        if names::base_of(name).is_some() && !is_stood_on(case, balancer, frontend) {
            found.push(format!("frontend {name} of {on} is no Service's"));
        }
    }
    for (collection, kind) in [("loadBalancingRules", "rule"), ("probes", "probe")] {
        for part in parts(balancer, collection) {
            let name = text(&part["name"]);
            if names::base_of(name).is_some() && !is_asked_for(case, balancer, kind, name) {
                found.push(format!("{kind} {name} of {on} is asked for by no Service"));
            }
        }
    }
    let used = |kind: &str, name: &str| {
        parts(balancer, "loadBalancingRules")
            .any(|rule| same(last(text(&rule["properties"][kind]["id"])), name))
    };
    for probe in parts(balancer, "probes").filter(|p| same(text(&p["name"]), names::SHARED_PROBE)) {
        if !used("probe", text(&probe["name"])) {
            found.push(format!("the shared probe of {on} has no rule"));
        }
    }
    if matches!(case.site.layout, Layout::Several(_)) {
        for pool in parts(balancer, "backendAddressPools") {
            let name = text(&pool["name"]);
            let local = is_local_pool(case, name);
            if local
                && !names::is_cluster_pool(&case.site, name)
                && !used("backendAddressPool", name)
            {
                found.push(format!("pool {name} of {on} has no rule"));
            }
        }
    }
    let is_held = case.scene.held.contains(&id(&balancer["id"]));
    if stands == 0 && case.site.preconfigured == Preconfigured::None && !is_held {
        found.push(format!("load balancer {on} has no frontend, and is there"));
    }
}

/// Whether a Service stands on a frontend, or one that is called so keeps it, or one whose rules
/// lead there keeps those.
fn is_stood_on(case: &Case<'_>, balancer: &Value, frontend: &Value) -> bool {
    let wanted = id(&frontend["id"]);
    let stood = case.places.values().any(|place| id(&place.frontend["id"]) == wanted);
    let kept = |name: &Value| owner(case, text(name)).is_some_and(keeps);
    let leads = |rule: &Value| id(&rule["properties"]["frontendIPConfiguration"]["id"]) == wanted;
    let mut rules = parts(balancer, "loadBalancingRules");
    stood
        || kept(&frontend["name"])
        || rules.any(|rule| leads(rule) && kept(&rule["name"]))
        || links::bereft(case).contains(&wanted)
}

fn is_asked_for(case: &Case<'_>, balancer: &Value, kind: &str, name: &str) -> bool {
    let Some(service) = owner(case, name) else {
        let base = names::base_of(name).unwrap_or(name);
        return links::bereft(case).iter().any(|frontend| names::is_of(last(frontend), base));
    };
    match &service.fate {
        Fate::Unwanted => false,
        Fate::Refused(_) | Fate::Denied(..) => true,
        Fate::Served(asks) => {
            let wanted = asked(case, service, asks, balancer, kind);
            wanted.iter().any(|other| same(other, name))
        }
    }
}

/// Names of the rules or probes that a Service asks for on a load balancer.
fn asked(
    case: &Case<'_>,
    service: &Service<'_>,
    asks: &Asks,
    balancer: &Value,
    kind: &str,
) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for family in &asks.families {
        let place = case.place(service, *family);
        if place.is_none_or(|place| id(&place.balancer["id"]) != id(&balancer["id"])) {
            continue;
        }
        for port in rules::heads(asks) {
            if kind == "rule" {
                all.insert(names::rule(&service.base, asks, *family, port));
            } else if let Some((name, _)) = probes::wanted(case, service, asks, *family, port) {
                all.insert(name);
            }
        }
    }
    all
}

/// Whether a pool is called after a Service that is there.
fn is_local_pool(case: &Case<'_>, name: &str) -> bool {
    case.services.iter().any(|service| {
        let of = |family| names::local_pool(service.namespace, service.name, family);
        crate::asks::Family::BOTH.iter().any(|family| same(&of(*family), name))
    })
}

/// Public IPs that this cluster made: they carry its name and a Service's.
fn judge_public_ips(case: &Case<'_>, found: &mut Vec<String>) {
    let mut wanted = BTreeSet::new();
    for (service, asks) in case.served().filter(|(_, asks)| !asks.internal) {
        for family in &asks.families {
            let ip = public_ip::wanted(case, service, asks, *family);
            wanted.extend(ip.id().map(str::to_owned));
        }
    }
    let bereft = links::bereft(case);
    for frontend in case.estate.balancers().flat_map(|(_, b)| parts(b, "frontendIPConfigurations"))
    {
        if bereft.contains(&id(&frontend["id"])) {
            wanted.insert(id(&frontend["properties"]["publicIPAddress"]["id"]));
        }
    }
    for (id, ip) in case.estate.public_ips() {
        let made = tags::is_of_cluster(case, ip, &case.site.group)
            && tags::tag(ip, tags::SERVICE).is_some();
        let users = tags::tag(ip, tags::SERVICE).unwrap_or("");
        let kept = case.services.iter().any(|service| {
            keeps(service) && users.split(',').any(|user| same(user.trim(), &service.key))
        });
        if made && !kept && !wanted.contains(id) {
            found.push(format!("public IP {} is there, and no Service has it", last(id)));
        }
    }
}
