//! Security rules: who may connect, to what, and nobody else.
//!
//! Rules are judged by what they mean: which sources reach which destination on which port. How
//! they are cut into rules and named is not.
//!
//! What is promised:
//! - Destinations are the addresses of a Service's frontends and its additional addresses. With
//!   floating IP disabled traffic reaches nodes on their own address: the members of the Service's
//!   pool take the place of the frontends, and node ports that of the ports.
//! - Sources are the Service tags and the ranges that the Service names, each range for
//!   destinations of its family. A public Service that names none is open to the Internet; an
//!   internal one is closed then.
//! - A port with `port_{port}_no_lb_rule` is not opened, and with
//!   `azure-disable-load-balancer-nsg-rule` nothing is.
//! - `azure-deny-all-except-load-balancer-source-ranges` denies the rest, where there are ranges:
//!   everything to an address that is the Service's alone, the Service's ports where others are
//!   reached at the address as well.
//! - Rules of ours are called `k8s-azure-lb…` and have the priorities 500 to 4096, each once; every
//!   rule that allows comes before every rule that denies.
//! - No rule of ours leads to an address that no Service has.

use crate::Broken;
use crate::asks::{Asks, Family, Port};
use crate::case::{Case, Fate, Service};
use crate::estate::{id, items, last, part, parts, text, told};
use crate::links;
use crate::members;
use crate::names::{self, SECURITY_RULE};
use crate::nodes::Node;
use crate::site::PoolKind;
use ipnet::IpNet;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::IpAddr;

const PROMISE: &str = "security";
const ADDITIONAL: &str = "service.beta.kubernetes.io/azure-additional-public-ips";
const PRIORITIES: std::ops::RangeInclusive<u64> = 500..=4096;

/// A destination, a protocol and a port; `*` is all of them.
type Door = (IpAddr, String, String);

/// Who may pass.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Sources {
    /// Service tags, and whatever else is not a range.
    tags: BTreeSet<String>,
    ranges: BTreeSet<IpNet>,
}

impl Sources {
    fn add(&mut self, source: &str) {
        let range = source.parse::<IpNet>().or_else(|_| source.parse::<IpAddr>().map(IpNet::from));
        match range {
            Ok(range) => self.ranges.insert(range.trunc()),
            Err(_) => self.tags.insert(source.to_owned()),
        };
    }

    fn join(&mut self, other: &Self) {
        self.tags.extend(other.tags.iter().cloned());
        self.ranges.extend(&other.ranges);
    }

    fn is_empty(&self) -> bool {
        self.tags.is_empty() && self.ranges.is_empty()
    }

    /// Ranges that lie in each other or beside each other, as one.
    fn merged(&self) -> Self {
        let ranges: Vec<IpNet> = self.ranges.iter().copied().collect();
        let ranges = IpNet::aggregate(&ranges).into_iter().collect();
        Self { tags: self.tags.clone(), ranges }
    }

    /// Whether it lets in everything that the other does.
    fn covers(&self, other: &Self) -> bool {
        let mut both = self.clone();
        both.join(other);
        both.merged() == self.merged()
    }
}

impl fmt::Display for Sources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let merged = self.merged();
        let ranges = merged.ranges.iter().map(ToString::to_string);
        let all: Vec<String> = merged.tags.iter().cloned().chain(ranges).collect();
        f.write_str(if all.is_empty() { "nobody" } else { "" })?;
        f.write_str(&all.join(","))
    }
}

/// What is open and what is denied.
#[derive(Debug, Default)]
struct Doors {
    open: BTreeMap<Door, Sources>,
    /// What may be open as well.
    may: BTreeMap<Door, Sources>,
    denied: BTreeSet<Door>,
    /// What may be denied as well.
    may_deny: BTreeSet<Door>,
}

/// What may be otherwise, because its Service is refused and keeps what it has.
#[derive(Debug, Default)]
struct Kept {
    addresses: BTreeSet<IpAddr>,
    /// Ports at single addresses.
    doors: BTreeSet<(IpAddr, String)>,
    /// Node ports: at nodes, whatever their addresses were.
    ports: BTreeSet<String>,
    /// Addresses at which no node is reached.
    frontends: BTreeSet<IpAddr>,
}

impl Kept {
    fn has(&self, (address, _, port): &Door) -> bool {
        self.addresses.contains(address)
            || self.doors.contains(&(*address, port.clone()))
            || (self.ports.contains(port) && !self.frontends.contains(address))
    }
}

/// Judges them.
pub(crate) fn judge(case: &Case<'_>, broken: &mut Vec<Broken>) {
    if last(&case.site.security_group).is_empty() {
        return;
    }
    let Some(group) = case.estate.get(&case.site.security_group) else { return };
    let mut found: Vec<String> = Vec::new();
    let managed: Vec<&Value> = parts(group, "securityRules").filter(|r| is_managed(r)).collect();
    let wanted = wanted(case);
    let standing = standing(&managed, &mut found);
    let kept = kept(case);
    judge_open(case, &wanted, &standing, &kept, &mut found);
    judge_denied(case, &wanted, &standing, &kept, &mut found);
    judge_order(group, &managed, &mut found);
    let lines = found.into_iter().map(|text| Broken { service: None, promise: PROMISE, text });
    broken.extend(lines);
}

/// Whether a rule is of the form of ours.
pub(crate) fn is_managed(rule: &Value) -> bool {
    let named = text(&rule["name"]).to_lowercase().starts_with(SECURITY_RULE);
    let priority = rule["properties"]["priority"].as_u64();
    named && priority.is_some_and(|priority| PRIORITIES.contains(&priority))
}

/// The destinations of a Service: the addresses that it is reached at through the security group.
fn destinations(case: &Case<'_>, service: &Service<'_>, asks: &Asks) -> BTreeSet<IpAddr> {
    let mut all: BTreeSet<IpAddr> = asks.additional.iter().copied().collect();
    for family in &asks.families {
        if leads_to_nodes(asks) {
            all.extend(members::of(case, service, *family));
        } else {
            all.extend(case.address(service, *family).and_then(|a| a.parse::<IpAddr>().ok()));
        }
    }
    all
}

/// Nodes that a Service may be open at beside the members of its pool. A machine joins a pool of
/// NICs when Azure has changed it, which it does not while the machine is stopped; the security
/// group is opened for every node that belongs there.
fn joining(case: &Case<'_>, asks: &Asks) -> BTreeSet<IpAddr> {
    if !leads_to_nodes(asks) || case.site.pools != PoolKind::Nics {
        return BTreeSet::new();
    }
    let belongs = |node: &&Node<'_>| {
        !(node.excluded || node.control_plane && case.site.exclude_control_plane)
    };
    let nodes = case.nodes.iter().filter(belongs);
    let of = |node: &Node<'_>| -> Vec<IpAddr> {
        asks.families.iter().filter_map(|family| node.addresses.get(family).copied()).collect()
    };
    nodes.flat_map(of).collect()
}

/// Whether traffic reaches nodes on their own addresses.
fn leads_to_nodes(asks: &Asks) -> bool {
    !asks.floating
}

fn door(address: IpAddr, asks: &Asks, port: &Port) -> Door {
    let number = if leads_to_nodes(asks) { port.node_port } else { port.number };
    (address, port.protocol.in_security_rule().to_owned(), number.to_string())
}

/// Who may connect to a destination of a family.
fn sources(asks: &Asks, address: &IpAddr) -> Sources {
    let access = &asks.access;
    let mut sources = Sources::default();
    sources.tags.extend(access.tags.iter().cloned());
    let family = Family::of(address);
    let alike = access.ranges.iter().filter(|range| Family::of(&range.addr()) == family);
    sources.ranges.extend(alike.map(IpNet::trunc));
    let unnamed = access.tags.is_empty() && access.ranges.is_empty();
    if unnamed && !asks.internal_loosely {
        sources.tags.insert("Internet".to_owned());
    }
    sources
}

fn wanted(case: &Case<'_>) -> Doors {
    let mut doors = Doors::default();
    let with: Vec<(&Service<'_>, &Asks, BTreeSet<IpAddr>)> = case
        .served()
        .map(|(service, asks)| (service, asks, destinations(case, service, asks)))
        .collect();
    for (service, asks, own) in with.iter().filter(|(_, asks, _)| !asks.access.no_rules) {
        for address in own {
            let sources = sources(asks, address);
            for port in asks.forwarded().filter(|_| !sources.is_empty()) {
                doors.open.entry(door(*address, asks, port)).or_default().join(&sources);
            }
            if !asks.access.deny_all || asks.access.ranges.is_empty() {
                continue;
            }
            if is_alone(case, service, asks, *address) {
                doors.denied.insert((*address, "*".to_owned(), "*".to_owned()));
            } else {
                doors.denied.extend(asks.forwarded().map(|port| door(*address, asks, port)));
            }
        }
    }
    // What denies everything denies a port as well.
    let closed: BTreeSet<IpAddr> =
        doors.denied.iter().filter(|(_, _, port)| port == "*").map(|(a, _, _)| *a).collect();
    doors.denied.retain(|(address, _, port)| port == "*" || !closed.contains(address));
    for (_, asks) in case.served().filter(|(_, asks)| !asks.access.no_rules) {
        for address in joining(case, asks) {
            let sources = sources(asks, &address);
            for port in asks.forwarded() {
                doors.may.entry(door(address, asks, port)).or_default().join(&sources);
            }
            // The group is closed there as it is opened.
            if asks.access.deny_all {
                doors.may_deny.extend(asks.forwarded().map(|port| door(address, asks, port)));
            }
        }
    }
    doors
}

/// Whether an address is a frontend of the Service and of no other. A Service that asks for an
/// address and is refused has no rule of a load balancer there, so what is denied at the address
/// stays denied.
fn is_alone(case: &Case<'_>, service: &Service<'_>, asks: &Asks, address: IpAddr) -> bool {
    if leads_to_nodes(asks) || asks.additional.contains(&address) {
        return false;
    }
    let has = |other: &Service<'_>| {
        let mut told = told(other.object).filter_map(|ip| ip.parse::<IpAddr>().ok());
        let asked = other.served().is_some_and(|asks| asks.additional.contains(&address));
        asked || told.any(|told| told == address)
    };
    !case.services.iter().any(|other| other.key != service.key && other.wants() && has(other))
}

fn standing(managed: &[&Value], found: &mut Vec<String>) -> Doors {
    let mut doors = Doors::default();
    for rule in managed {
        let inside = &rule["properties"];
        let name = text(&rule["name"]);
        if inside["direction"] != "Inbound" || one_or_list(inside, "sourcePortRange") != ["*"] {
            found.push(format!("rule {name} is not one for all inbound traffic of its sources"));
        }
        let mut sources = Sources::default();
        one_or_list(inside, "sourceAddressPrefix").iter().for_each(|source| sources.add(source));
        let ports = one_or_list(inside, "destinationPortRange");
        let protocol = text(&inside["protocol"]).to_owned();
        for destination in one_or_list(inside, "destinationAddressPrefix") {
            let Ok(address) = destination.parse::<IpAddr>() else {
                found.push(format!("rule {name} leads to {destination}, which no Service has"));
                continue;
            };
            for port in &ports {
                let door = (address, protocol.clone(), (*port).to_owned());
                if inside["access"] == "Allow" {
                    doors.open.entry(door).or_default().join(&sources);
                } else if sources.tags.contains("*") {
                    doors.denied.insert(door);
                } else {
                    found.push(format!("rule {name} denies {sources}; only all are denied"));
                }
            }
        }
    }
    let closed: BTreeSet<IpAddr> =
        doors.denied.iter().filter(|(_, _, port)| port == "*").map(|(a, _, _)| *a).collect();
    doors.denied.retain(|(address, _, port)| port == "*" || !closed.contains(address));
    doors
}

/// What a security rule says in a field of one value or in the field of several beside it.
fn one_or_list<'v>(inside: &'v Value, field: &str) -> Vec<&'v str> {
    let several = if field.ends_with("Prefix") { "es" } else { "s" };
    let list = items(&inside[format!("{field}{several}")]).map(text);
    list.chain(inside[field].as_str()).filter(|value| !value.is_empty()).collect()
}

/// A Service that is refused keeps what it has: its addresses as its status and its frontends tell
/// them, and nodes on its node ports, those that its rules lead to included. What stays without a
/// Service for private endpoints may stay open: their traffic reaches the backends from an address
/// in the virtual network, which the security group filters.
fn kept(case: &Case<'_>) -> Kept {
    let mut kept = Kept { frontends: frontends(case), ..Kept::default() };
    let refused = case
        .services
        .iter()
        .filter(|service| matches!(service.fate, Fate::Refused(_) | Fate::Denied(..)));
    for service in refused {
        kept.addresses.extend(told(service.object).filter_map(|ip| ip.parse::<IpAddr>().ok()));
        // A change of its type and back takes the addresses off its status, and no frontend.
        let all = case.estate.balancers();
        let all = all.flat_map(|(_, balancer)| parts(balancer, "frontendIPConfigurations"));
        let own = all.filter(|frontend| names::is_of(text(&frontend["name"]), &service.base));
        let own = own.filter_map(|frontend| case.address_of(frontend));
        kept.addresses.extend(own.filter_map(|address| address.parse::<IpAddr>().ok()));
        let listed = text(&service.object["metadata"]["annotations"][ADDITIONAL]).split(',');
        let listed: Vec<IpAddr> = listed.filter_map(|ip| ip.trim().parse().ok()).collect();
        // The ports of the Service may be others by now.
        for (_, balancer) in case.estate.balancers() {
            let rules = parts(balancer, "loadBalancingRules");
            for rule in rules.filter(|rule| names::is_of(text(&rule["name"]), &service.base)) {
                keep_rule(case, balancer, (rule, &listed[..]), &mut kept);
            }
        }
        let ports = items(&service.object["spec"]["ports"]);
        kept.ports.extend(ports.filter_map(|p| p["nodePort"].as_u64()).map(|p| p.to_string()));
    }
    let bereft = links::bereft(case);
    for (_, balancer) in case.estate.balancers() {
        let all = parts(balancer, "frontendIPConfigurations");
        let all = all.filter(|frontend| bereft.contains(&id(&frontend["id"])));
        let addresses = all.filter_map(|frontend| case.address_of(frontend));
        kept.addresses.extend(addresses.filter_map(|address| address.parse::<IpAddr>().ok()));
        // With floating IP a rule leads to the frontend's address alone.
        let leads = |rule: &&Value| {
            let inside = &rule["properties"];
            bereft.contains(&id(&inside["frontendIPConfiguration"]["id"]))
                && inside["enableFloatingIP"] != true
        };
        let rules = parts(balancer, "loadBalancingRules").filter(leads);
        let ports = rules.filter_map(|rule| rule["properties"]["backendPort"].as_u64());
        kept.ports.extend(ports.map(|port| port.to_string()));
    }
    kept
}

/// What a rule of a refused Service leads through the security group: with floating IP the port of
/// its frontend, and of the addresses that the Service lists besides, else the node port of every
/// node.
fn keep_rule<'a>(
    case: &Case<'a>,
    balancer: &'a Value,
    (rule, listed): (&Value, &[IpAddr]),
    kept: &mut Kept,
) {
    let inside = &rule["properties"];
    if inside["enableFloatingIP"] != true {
        kept.ports.extend(inside["backendPort"].as_u64().map(|port| port.to_string()));
        return;
    }
    let to = last(text(&inside["frontendIPConfiguration"]["id"]));
    let frontend = part(balancer, "frontendIPConfigurations", to);
    let address = frontend.and_then(|frontend| case.address_of(frontend)?.parse::<IpAddr>().ok());
    let all = listed.iter().copied().chain(address);
    match inside["frontendPort"].as_u64() {
        // It leads all ports.
        None | Some(0) => kept.addresses.extend(all),
        Some(port) => kept.doors.extend(all.map(|address| (address, port.to_string()))),
    }
}

/// Addresses of frontends and of public IPs.
fn frontends(case: &Case<'_>) -> BTreeSet<IpAddr> {
    let all = case.estate.balancers();
    let all = all.flat_map(|(_, balancer)| parts(balancer, "frontendIPConfigurations"));
    let all = all.filter_map(|frontend| case.address_of(frontend));
    let ips = case.estate.public_ips();
    let ips = ips.map(|(_, ip)| text(&ip["properties"]["ipAddress"]));
    all.chain(ips).filter_map(|address| address.parse().ok()).collect()
}

/// Whose an address that no Service asks for is: others' rules may lead to it under names of our
/// form, because every cluster on the security group uses that form.
fn is_others(case: &Case<'_>, address: &IpAddr) -> bool {
    let group = case.before(&case.site.security_group);
    let rules = group.into_iter().flat_map(|group| parts(group, "securityRules"));
    let before = rules.filter(|rule| is_managed(rule)).any(|rule| {
        let leads = one_or_list(&rule["properties"], "destinationAddressPrefix");
        leads.iter().any(|leads| leads.parse::<IpAddr>().ok().as_ref() == Some(address))
    });
    before || case.scene.forgotten.contains(address)
}

fn judge_open(
    case: &Case<'_>,
    wanted: &Doors,
    standing: &Doors,
    kept: &Kept,
    found: &mut Vec<String>,
) {
    let none = Sources::default();
    let all: BTreeSet<&Door> = wanted.open.keys().chain(standing.open.keys()).collect();
    for door in all {
        let want = wanted.open.get(door).unwrap_or(&none);
        let has = standing.open.get(door).unwrap_or(&none);
        let (address, protocol, port) = door;
        if !has.covers(want) {
            let text =
                format!("{address} {protocol}/{port} is open to {has}; it must be to {want}");
            found.push(text);
            continue;
        }
        let mut may = want.clone();
        may.join(wanted.may.get(door).unwrap_or(&none));
        if !may.covers(has) && !kept.has(door) && !is_others(case, address) {
            let text = format!("{address} {protocol}/{port} is open to {has}; {want} may pass");
            found.push(text);
        }
    }
}

fn judge_denied(
    case: &Case<'_>,
    wanted: &Doors,
    standing: &Doors,
    kept: &Kept,
    found: &mut Vec<String>,
) {
    for (address, protocol, port) in wanted.denied.difference(&standing.denied) {
        found.push(format!("{address} {protocol}/{port} must be denied to all others, and is not"));
    }
    for door in standing.denied.difference(&wanted.denied) {
        let (address, protocol, port) = door;
        if !kept.has(door) && !wanted.may_deny.contains(door) && !is_others(case, address) {
            found
                .push(format!("{address} {protocol}/{port} is denied, and no Service asks for it"));
        }
    }
}

/// Every priority is used once, and what allows comes before what denies.
fn judge_order(group: &Value, managed: &[&Value], found: &mut Vec<String>) {
    let mut taken: BTreeMap<(String, u64), &str> = BTreeMap::new();
    for rule in parts(group, "securityRules") {
        let inside = &rule["properties"];
        let key = (text(&inside["direction"]).to_owned(), inside["priority"].as_u64().unwrap_or(0));
        if let Some(other) = taken.insert(key, text(&rule["name"])) {
            let (name, priority) = (text(&rule["name"]), &inside["priority"]);
            found.push(format!("rules {other} and {name} have the same priority {priority}"));
        }
    }
    let of = |access: &str| -> Vec<u64> {
        let own = managed.iter().filter(|r| r["properties"]["access"] == *access);
        own.filter_map(|rule| rule["properties"]["priority"].as_u64()).collect()
    };
    let (allow, deny) = (of("Allow").into_iter().max(), of("Deny").into_iter().min());
    if let (Some(allow), Some(deny)) = (allow, deny)
        && allow >= deny
    {
        found.push(format!("a rule allows at priority {allow}, after one denies at {deny}"));
    }
}
