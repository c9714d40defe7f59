//! Private Link Services.
//!
//! What is promised:
//! - One stands before the IPv4 frontend of each Service that asks for it, under its name, in its
//!   resource group, with its addresses in its subnet, and with everything else that its
//!   annotations say.
//! - A frontend that Services share has one; the Service that owns it says how it is.
//! - It lives as long as its frontend: where the Service that made both leaves, one that shares the
//!   frontend owns it, and it stays as it is unless that one brings a configuration.
//! - One to which private endpoints are connected goes only when its owner has agreed: until then
//!   the owner keeps all that it has, whether it asks no longer or is being deleted. Where its
//!   owner is not known, the Service that made the frontend is asked; where there is none, it may
//!   stay, with what is called after its frontend.
//! - Azure takes addresses for it only from a subnet whose network policies for it are off.
//! - There is none that no Service asks for, or whose owner made the frontend and asks no longer.

use crate::Broken;
use crate::asks::{Asks, Family, Invalid, Link};
use crate::case::{Case, Fate, Service};
use crate::estate::{group_of, items, last, parts, same, text};
use crate::names;
use crate::tags::{self, CLUSTER, OWNER};
use serde_json::Value;
use std::collections::BTreeSet;

const PROMISE: &str = "links";

/// Judges them.
pub(crate) fn judge(case: &Case<'_>, broken: &mut Vec<Broken>) {
    for (service, asks) in case.served() {
        let Some(link) = &asks.link else { continue };
        let mut found = Vec::new();
        if let Some(place) = case.place(service, Family::V4) {
            judge_one(case, service, asks, link, place.frontend, &mut found);
        }
        broken.extend(found.into_iter().map(|text| service.broken(PROMISE, text)));
    }
    let mut found = Vec::new();
    let bereft = bereft(case);
    for (_, link) in case.estate.links() {
        let may_stay = !frontends(link).is_disjoint(&bereft);
        if is_ours(case, link) && !may_stay && !is_asked_for(case, link) {
            found.push(format!("{} stands, and no Service asks for it", last(text(&link["id"]))));
        }
    }
    broken.extend(found.into_iter().map(|text| Broken { service: None, promise: PROMISE, text }));
}

/// Frontends, by id in lower case, before which stands one with private endpoints connected, while
/// neither its owner nor the Service that made the frontend is there.
pub(crate) fn bereft(case: &Case<'_>) -> BTreeSet<String> {
    let is_known = |owner: &str| case.services.iter().any(|s| same(&s.key, owner));
    let is_made = |id: &String| case.services.iter().any(|s| names::is_of(last(id), &s.base));
    let lone = case.estate.links().map(|(_, link)| link).filter(|link| {
        is_ours(case, link)
            && is_connected(link)
            && !is_known(tags::tag(link, OWNER).unwrap_or(""))
            && !frontends(link).iter().any(is_made)
    });
    lone.flat_map(frontends).collect()
}

/// The annotation by which an owner agrees that private endpoints are disconnected.
const AGREES: &str = "ballast.dev/disconnect-private-endpoints";

/// Owners that keep what they have because somebody is connected.
pub(crate) fn hold(case: &mut Case<'_>) {
    let connected: Vec<(String, BTreeSet<String>)> = case
        .estate
        .links()
        .map(|(_, link)| link)
        .filter(|link| is_ours(case, link) && is_connected(link))
        .map(|link| (tags::tag(link, OWNER).unwrap_or("").to_owned(), frontends(link)))
        .collect();
    for (owner, before) in connected {
        let made = |s: &Service<'_>| before.iter().any(|id| names::is_of(last(id), &s.base));
        let mut all = case.services.iter();
        // Of an owner that is not known, whoever takes the frontend away is asked.
        let at = all
            .clone()
            .position(|s| same(&s.key, &owner))
            .or_else(|| all.position(|s| matches!(s.fate, Fate::Unwanted) && made(s)));
        let Some(at) = at else { continue };
        let service = &case.services[at];
        let agrees = text(&service.object["metadata"]["annotations"][AGREES]);
        let lets_go = match &service.fate {
            Fate::Unwanted => !has_guest(case, service, &before),
            Fate::Served(asks) => made(service) && asks.link.is_none(),
            Fate::Refused(_) | Fate::Denied(..) => false,
        };
        if lets_go && !same(agrees, "true") {
            let why = "private endpoints are connected to its Private Link Service";
            case.services[at].fate = Fate::Refused(Invalid(why.to_owned()));
        }
    }
}

fn is_connected(link: &Value) -> bool {
    let status = "privateLinkServiceConnectionState";
    let mut all = parts(link, "privateEndpointConnections");
    all.any(|one| same(text(&one["properties"][status]["status"]), "Approved"))
}

/// Whether rules of another Service lead to one of these frontends.
fn has_guest(case: &Case<'_>, owner: &Service<'_>, frontends: &BTreeSet<String>) -> bool {
    let others = || case.services.iter().filter(|s| s.key != owner.key && s.wants());
    case.estate.balancers().flat_map(|(_, b)| parts(b, "loadBalancingRules")).any(|rule| {
        let to = text(&rule["properties"]["frontendIPConfiguration"]["id"]).to_lowercase();
        frontends.contains(&to) && others().any(|s| names::is_of(text(&rule["name"]), &s.base))
    })
}

fn frontends(link: &Value) -> BTreeSet<String> {
    let all = parts(link, "loadBalancerFrontendIpConfigurations");
    all.map(|frontend| text(&frontend["id"]).to_lowercase()).collect()
}

fn is_ours(case: &Case<'_>, link: &Value) -> bool {
    tags::is_of_cluster(case, link, &case.site.link_group)
}

/// Whether a Service that a Private Link Service stands before asks for one, or keeps what it has.
fn is_asked_for(case: &Case<'_>, link: &Value) -> bool {
    let owner = tags::tag(link, OWNER).unwrap_or("");
    let before = frontends(link);
    let on_it = |service: &Service<'_>| {
        let place = case.place(service, Family::V4);
        place.is_some_and(|place| before.contains(&text(&place.frontend["id"]).to_lowercase()))
    };
    let asks_no_longer = case.served().any(|(service, asks)| {
        let own = same(&service.key, owner) && !is_guest(case, service);
        own && asks.link.is_none() && on_it(service)
    });
    case.services.iter().any(|service| match &service.fate {
        Fate::Unwanted => false,
        Fate::Refused(_) | Fate::Denied(..) => {
            let made = before.iter().any(|id| names::is_of(last(id), &service.base));
            same(&service.key, owner) || made
        }
        Fate::Served(asks) => {
            let inherits = is_guest(case, service) && !asks_no_longer;
            (asks.link.is_some() || inherits) && on_it(service)
        }
    })
}

/// Whether a Service stands on a frontend that has another's name.
fn is_guest(case: &Case<'_>, service: &Service<'_>) -> bool {
    let place = case.place(service, Family::V4);
    place.is_some_and(|place| !names::is_of(text(&place.frontend["name"]), &service.base))
}

fn judge_one(
    case: &Case<'_>,
    service: &Service<'_>,
    asks: &Asks,
    wish: &Link,
    frontend: &Value,
    found: &mut Vec<String>,
) {
    let id = text(&frontend["id"]).to_lowercase();
    let standing: Vec<&Value> =
        case.estate.links().map(|(_, link)| link).filter(|l| frontends(l).contains(&id)).collect();
    let [link] = standing[..] else {
        let count = standing.len();
        found.push(format!("{count} Private Link Services stand before {}; one must", last(&id)));
        return;
    };
    let owner = tags::tag(link, OWNER).unwrap_or("");
    if !same(owner, &service.key) {
        let other = case.served().find(|(other, _)| same(&other.key, owner));
        let shares = other.is_some_and(|(other, asks)| {
            let place = case.place(other, Family::V4);
            let on = place.is_some_and(|place| same(text(&place.frontend["id"]), &id));
            on && (asks.link.is_some() || is_guest(case, other))
        });
        if !shares || wish.configured {
            found.push(format!("{} is owned by {owner:?}", last(text(&link["id"]))));
        }
        return;
    }
    if is_guest(case, service) && !wish.configured {
        return;
    }
    judge_link(case, asks, wish, frontend, link, found);
}

/// The Private Link Service of the Service that owns it.
fn judge_link(
    case: &Case<'_>,
    asks: &Asks,
    wish: &Link,
    frontend: &Value,
    link: &Value,
    found: &mut Vec<String>,
) {
    let id = text(&link["id"]);
    let must = names::link(wish.name.as_deref(), text(&frontend["name"]));
    if !same(last(id), &must) {
        found.push(format!("Private Link Service {} must be called {must}", last(id)));
    }
    let group = wish.group.as_deref().unwrap_or(&case.site.link_group);
    if !same(group_of(id), group) {
        found.push(format!("{must} is in the resource group {}; it must be {group}", group_of(id)));
    }
    let inside = &link["properties"];
    let list = |value: &Value| -> BTreeSet<String> {
        items(value).map(|item| text(item).to_lowercase()).collect()
    };
    let wished = |wish: &[String]| -> BTreeSet<String> {
        wish.iter().map(|item| item.to_lowercase()).collect()
    };
    let visible = if wish.visibility.iter().any(|item| item == "*") {
        BTreeSet::from(["*".to_owned()])
    } else {
        wished(&wish.visibility)
    };
    for (what, has, must) in [
        ("fqdns", list(&inside["fqdns"]), wished(&wish.fqdns)),
        ("visibility", list(&inside["visibility"]["subscriptions"]), visible),
        (
            "auto approval",
            list(&inside["autoApproval"]["subscriptions"]),
            wished(&wish.auto_approval),
        ),
    ] {
        if has != must {
            found.push(format!("the {what} of {} is {has:?}; it must be {must:?}", last(id)));
        }
    }
    if (inside["enableProxyProtocol"] == true) != wish.proxy_protocol {
        let must = wish.proxy_protocol;
        found.push(format!("the PROXY protocol of {} must be {must}", last(id)));
    }
    judge_addresses(case, asks, wish, link, found);
    tags::configured(case, link, &[CLUSTER, OWNER], found);
    if !tags::tag(link, CLUSTER).is_some_and(|name| same(name, &case.site.cluster)) {
        found.push(format!("tag {CLUSTER} of {} is not the cluster's name", last(id)));
    }
    tags::signed(case, link, &case.site.link_group, found);
}

fn judge_addresses(
    case: &Case<'_>,
    asks: &Asks,
    wish: &Link,
    link: &Value,
    found: &mut Vec<String>,
) {
    let name = last(text(&link["id"]));
    let own = asks.subnet.as_deref().filter(|_| asks.internal);
    let subnet = wish.subnet.as_deref().or(own).unwrap_or(&case.site.subnet);
    let subnet = names::subnet_id(&case.site, subnet);
    let all: Vec<&Value> = parts(link, "ipConfigurations").collect();
    if all.len() != wish.count {
        found.push(format!("{name} has {} addresses; it must be {}", all.len(), wish.count));
    }
    let mut fixed = BTreeSet::new();
    let mut primary = Vec::new();
    for address in all.iter().map(|configuration| &configuration["properties"]) {
        if !same(text(&address["subnet"]["id"]), &subnet) {
            found.push(format!("an address of {name} is in {}", text(&address["subnet"]["id"])));
        }
        if same(text(&address["privateIPAllocationMethod"]), "Static") {
            fixed.insert(text(&address["privateIPAddress"]).to_owned());
        }
        if address["primary"] == true {
            primary.push(text(&address["privateIPAddress"]).to_owned());
        }
    }
    let wanted: BTreeSet<String> = wish.addresses.iter().map(ToString::to_string).collect();
    if fixed != wanted {
        found.push(format!("{name} has the static addresses {fixed:?}; it must be {wanted:?}"));
    }
    let first = wish.addresses.first().map(ToString::to_string);
    if primary.len() != 1 || first.is_some_and(|first| primary != [first]) {
        found.push(format!("the primary address of {name} is {primary:?}"));
    }
    let policies = case
        .estate
        .get(&subnet)
        .map(|subnet| text(&subnet["properties"]["privateLinkServiceNetworkPolicies"]).to_owned());
    if policies.is_some_and(|policies| !same(&policies, "Disabled")) {
        found.push(format!("{} has network policies for Private Link Services", last(&subnet)));
    }
}
