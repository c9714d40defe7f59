//! Backend pools and their members.
//!
//! What is promised, of each pool that rules of Services lead to:
//! - Every node is in it that is not excluded (by label, or because it is not this cluster's) and
//!   no control-plane node. Readiness changes nothing.
//! - Where load balancers share the nodes out, those of its own set or configuration are in it, and
//!   each node is in the pools of one.
//! - The pool of a Local Service has the nodes with a ready endpoint of it.
//! - A node that is about to go stays if it was there, and gets no new connections: its address
//!   has the admin state Down. Pools of NICs have none: there a node leaves once it has drained,
//!   but for one that shared probes turn new connections away from.
//! - A node that is both about to go and excluded leaves once it has drained.
//! - Nothing else is in it: no node that is gone, no member that never was a node, and no second
//!   NIC of a machine.
//! - A pool is never emptied: where no node is left it stays as it is.
//! - Where a pool has nodes of a uniform scale set, its model names the pool: a machine that is
//!   made later is in it from its start. Azure takes one load balancer of a kind: a model that is
//!   on somebody else's is left.

use crate::Broken;
use crate::asks::Family;
use crate::case::Case;
use crate::estate::{has_failed, id, items, last, part, parts, text};
use crate::members;
use crate::nodes::Node;
use crate::site::PoolKind;
use crate::{names, rules, shares};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

const PROMISE: &str = "pool";

/// Whether a node is to be in a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stance {
    /// It is.
    Must,
    /// It may be or not.
    May,
    /// It is not.
    Never,
}

/// A pool that rules lead to.
struct Pool<'a> {
    balancer: &'a Value,
    name: String,
    family: Family,
    /// The Local Service that it belongs to, by its place in the list.
    local: Option<usize>,
}

/// Judges them.
pub(crate) fn judge(case: &Case<'_>, broken: &mut Vec<Broken>) {
    let mut pools: BTreeMap<(String, String), Pool<'_>> = BTreeMap::new();
    for (at, service) in case.services.iter().enumerate() {
        let Some(asks) = service.served().filter(|a| !case.site.preconfigured.holds(a.internal))
        else {
            continue;
        };
        if rules::heads(asks).is_empty() {
            continue;
        }
        for family in &asks.families {
            let Some(place) = case.place(service, *family) else { continue };
            let name = rules::pool(case, service, asks, *family);
            let own = !names::is_cluster_pool(&case.site, &name);
            let pool = Pool {
                balancer: place.balancer,
                name: name.clone(),
                family: *family,
                local: own.then_some(at),
            };
            pools.insert((id(&place.balancer["id"]), name), pool);
        }
    }
    let mut found = Vec::new();
    for pool in pools.values() {
        match part(pool.balancer, "backendAddressPools", &pool.name) {
            Some(standing) => {
                judge_one(case, pool, standing, &mut found);
                judge_models(case, pool, standing, &mut found);
            }
            None => {
                let on = last(text(&pool.balancer["id"]));
                found.push(format!("pool {} of {on} does not exist", pool.name));
            }
        }
    }
    shares::judge(case, &mut found);
    broken.extend(found.into_iter().map(|text| Broken { service: None, promise: PROMISE, text }));
}

/// Models of the scale sets whose machines are in a pool.
fn judge_models(case: &Case<'_>, pool: &Pool<'_>, standing: &Value, found: &mut Vec<String>) {
    let own = format!("{}/backendaddresspools/{}", id(&pool.balancer["id"]), pool.name);
    let joined = items(&standing["properties"]["backendIPConfigurations"]);
    // The last machine stays in a pool though its node is about to go, or its Node object is gone:
    // a machine that is made later is no member because of it.
    let stay = joined.filter_map(|c| node_of(case, text(&c["id"]))).filter(|node| !node.leaving);
    let sets = stay.filter_map(|node| {
        let machine = members::as_network(node.machine.as_deref()?);
        machine.split_once("/virtualmachines/").map(|(set, _)| set.to_owned())
    });
    let sets: BTreeSet<String> = sets.collect();
    for (set, model) in case.estate.of("Microsoft.Compute/virtualMachineScaleSets") {
        let profile = &model["properties"]["virtualMachineProfile"];
        if profile.is_null() || !sets.contains(&members::as_network(set)) {
            continue;
        }
        let nics = items(&profile["networkProfile"]["networkInterfaceConfigurations"]);
        let named: Vec<String> = nics
            .flat_map(|nic| items(&nic["properties"]["ipConfigurations"]))
            .flat_map(|c| items(&c["properties"]["loadBalancerBackendAddressPools"]))
            .map(|named| id(&named["id"]))
            .collect();
        let balancer = |pool: &str| pool.split("/backendaddresspools/").next().map(str::to_owned);
        let elsewhere = |pool: &String| {
            balancer(pool).is_none_or(|balancer| !case.is_balancer_of_ours(&balancer))
        };
        if !named.contains(&own.to_lowercase()) && !named.iter().any(elsewhere) {
            let (set, on) = (last(set), last(text(&pool.balancer["id"])));
            found.push(format!("the model of scale set {set} lacks pool {} of {on}", pool.name));
        }
    }
}

/// What the members of a load balancer's pools are: what the cloud config says, but behind a
/// Private Link Service Azure turns no pool of NICs into one of addresses
/// (PrivateLinkServiceIsNotSupportedForIPBasedLoadBalancer).
fn kind(case: &Case<'_>, balancer: &Value) -> PoolKind {
    let own = format!("{}/", id(&balancer["id"]));
    let mut frontends = case.estate.links().flat_map(|(_, link)| {
        items(&link["properties"]["loadBalancerFrontendIpConfigurations"]).map(|f| id(&f["id"]))
    });
    let has_addresses = |pool: &Value| {
        let mut held = items(&pool["properties"]["loadBalancerBackendAddresses"]);
        held.any(|member| member["properties"]["ipAddress"].is_string())
    };
    match case.site.pools {
        PoolKind::Addresses
            if frontends.any(|frontend| frontend.starts_with(&own))
                && !parts(balancer, "backendAddressPools").any(has_addresses) =>
        {
            PoolKind::Nics
        }
        kind => kind,
    }
}

/// The members of a pool, each with its admin state: nodes by name, others as they are.
fn members<'a>(
    case: &'a Case<'_>,
    kind: PoolKind,
    pool: &Value,
    family: Family,
) -> (BTreeMap<&'a str, bool>, Vec<String>) {
    let (mut nodes, mut strangers) = (BTreeMap::new(), Vec::new());
    let inside = &pool["properties"];
    for member in items(&inside["loadBalancerBackendAddresses"]) {
        let member = &member["properties"];
        let Ok(address) = text(&member["ipAddress"]).parse::<IpAddr>() else { continue };
        let down = text(&member["adminState"]).eq_ignore_ascii_case("down");
        let node = case.nodes.iter().find(|node| node.addresses.get(&family) == Some(&address));
        match node.filter(|_| kind == PoolKind::Addresses) {
            Some(node) => {
                nodes.insert(node.name, down);
            }
            None => strangers.push(address.to_string()),
        }
    }
    for configuration in items(&inside["backendIPConfigurations"]) {
        let configuration = text(&configuration["id"]);
        match node_of(case, configuration).filter(|_| kind == PoolKind::Nics) {
            Some(node) => {
                nodes.insert(node.name, false);
            }
            None => strangers.push(configuration.to_owned()),
        }
    }
    (nodes, strangers)
}

/// The node whose machine's primary NIC an IP configuration belongs to. Its other NICs are not
/// nodes: kube-proxy answers at the address of the primary one.
fn node_of<'a>(case: &'a Case<'_>, configuration: &str) -> Option<&'a Node<'a>> {
    let machine = members::machine_of(case, configuration)?;
    if members::is_secondary(case, &machine, configuration) {
        return None;
    }
    let machine = members::as_network(&machine);
    let mut nodes = case.nodes.iter();
    nodes.find(|node| node.machine.as_deref().map(members::as_network).as_ref() == Some(&machine))
}

fn judge_one(case: &Case<'_>, pool: &Pool<'_>, standing: &Value, found: &mut Vec<String>) {
    let on = format!("{} of {}", pool.name, last(text(&pool.balancer["id"])));
    let kind = kind(case, pool.balancer);
    let (has, strangers) = members(case, kind, standing, pool.family);
    let stances: Vec<(&Node<'_>, Stance)> =
        case.nodes.iter().map(|node| (node, stance(case, kind, pool, node))).collect();
    if stances.iter().all(|(_, stance)| *stance != Stance::Must) {
        return;
    }
    for (node, stance) in stances {
        let name = node.name;
        match (stance, has.get(name)) {
            (Stance::Must, None) => found.push(format!("node {name} is not in pool {on}")),
            (Stance::Never, Some(_)) => found.push(format!("node {name} is in pool {on}")),
            (_, Some(true)) if !node.leaving => {
                found.push(format!("node {name} is Down in pool {on}, and is not about to go"));
            }
            (_, Some(false)) if node.leaving && drains(case, kind) => {
                found.push(format!("node {name} is about to go, and not Down in pool {on}"));
            }
            _ => {}
        }
    }
    for stranger in strangers {
        found.push(format!("{stranger} is in pool {on}, and is no node"));
    }
}

/// Whether nodes that go are drained: pools of NICs have no admin state.
fn drains(case: &Case<'_>, kind: PoolKind) -> bool {
    kind == PoolKind::Addresses && case.site.drain_seconds > 0
}

fn stance(case: &Case<'_>, kind: PoolKind, pool: &Pool<'_>, node: &Node<'_>) -> Stance {
    let general = general(case, kind, pool.family, node);
    let special = pool.local.and_then(|at| local(case, at, node));
    let special = special.unwrap_or_else(|| shares::stance(case, pool.balancer, node));
    match (general, special) {
        (Stance::Never, _) | (_, Stance::Never) => Stance::Never,
        (Stance::May, _) | (_, Stance::May) => Stance::May,
        _ => Stance::Must,
    }
}

/// What holds for a node whichever pool it is.
pub(crate) fn general(case: &Case<'_>, kind: PoolKind, family: Family, node: &Node<'_>) -> Stance {
    let nics = kind == PoolKind::Nics;
    let control = node.control_plane && (!nics || case.site.exclude_control_plane);
    if node.excluded || control {
        return Stance::Never;
    }
    if node.leaving && nics && leaves_in_time(case, node) {
        return Stance::Never;
    }
    if node.leaving || (nics && node.unnamed) {
        return Stance::May;
    }
    let joins = match nics {
        true => node.machine.as_deref().is_some_and(|id| can_join(case, id, family)),
        false => node.addresses.contains_key(&family),
    };
    if joins { Stance::Must } else { Stance::May }
}

/// Whether a node that is about to go leaves pools of NICs: kube-proxy answers shared probes that
/// its node goes, unless only Ballast's label says so.
fn leaves_in_time(case: &Case<'_>, node: &Node<'_>) -> bool {
    case.site.drain_seconds > 0 && (case.site.shared_probe.is_none() || node.planned)
}

/// Whether a machine has a NIC of the family that can be written, and runs: Azure takes no changes
/// of others.
fn can_join(case: &Case<'_>, machine: &str, family: Family) -> bool {
    let Some(machine) = case.estate.get(machine) else { return false };
    let inside = &machine["properties"];
    let going = ["Deleting", "Unknown"].contains(&text(&inside["provisioningState"]));
    let mut states = items(&inside["instanceView"]["statuses"]);
    let runs = states.any(|state| state["code"] == "PowerState/running");
    let nics = &inside["networkProfileConfiguration"]["networkInterfaceConfigurations"];
    let mut configurations =
        items(nics).flat_map(|nic| items(&nic["properties"]["ipConfigurations"]));
    let of_family = configurations.any(|configuration| {
        let version = configuration["properties"]["privateIPAddressVersion"].as_str();
        version.unwrap_or("IPv4") == family.name()
    });
    // A single machine's NICs stand for themselves.
    runs && !going && !has_failed_nic(case, machine) && (of_family || nics.is_null())
}

/// Whether the last write of a single machine's primary NIC failed, and it is in no pool: it is
/// left to whoever wrote it, as the Go cloud provider leaves it.
fn has_failed_nic(case: &Case<'_>, machine: &Value) -> bool {
    let mut nics = items(&machine["properties"]["networkProfile"]["networkInterfaces"]);
    nics.any(|nic| {
        let primary = nic["properties"]["primary"] != false;
        let standing = case.estate.get(text(&nic["id"]));
        primary && standing.is_some_and(|nic| has_failed(nic) && !is_in_a_pool(nic))
    })
}

fn is_in_a_pool(nic: &Value) -> bool {
    let mut configurations = parts(nic, "ipConfigurations");
    configurations.any(|c| items(&c["properties"]["loadBalancerBackendAddressPools"]).count() > 0)
}

/// The pool of a Local Service: nodes with an endpoint that is not ready may be in it, as with the
/// Go cloud provider. While there is no EndpointSlice, those of its load balancer are. A slice of
/// which label and owner reference name two Services is neither's, as in the Service Gateway's
/// table: Kubernetes writes both for one Service.
fn local(case: &Case<'_>, at: usize, node: &Node<'_>) -> Option<Stance> {
    let service = &case.services[at];
    let uid = text(&service.object["metadata"]["uid"]);
    let mut stance = None;
    for slice in &case.scene.slices {
        let meta = &slice["metadata"];
        let label = text(&meta["labels"]["kubernetes.io/service-name"]);
        let mut owners = items(&meta["ownerReferences"]).filter(|o| o["kind"] == "Service");
        let owner = owners.next().map(|owner| text(&owner["uid"]));
        let labelled = label == service.name;
        let counts = match owner {
            Some(owner) => owner == uid && (labelled || label.is_empty()),
            None => labelled,
        };
        if text(&meta["namespace"]) != service.namespace || !counts {
            continue;
        }
        stance.get_or_insert(Stance::Never);
        for endpoint in items(&slice["endpoints"]) {
            let here = text(&endpoint["nodeName"]) == node.name;
            if here && labelled && endpoint["conditions"]["ready"] != false {
                return Some(Stance::Must);
            }
            if here {
                stance = Some(Stance::May);
            }
        }
    }
    stance
}

/// Nodes that are in a pool of the cluster, by name.
pub(crate) fn held<'a>(case: &'a Case<'_>, balancer: &Value) -> BTreeSet<&'a str> {
    let pools = Family::BOTH.iter().filter_map(|family| {
        let name = names::pool(&case.site, *family);
        Some((part(balancer, "backendAddressPools", &name)?, *family))
    });
    let kind = kind(case, balancer);
    pools.flat_map(|(pool, family)| members(case, kind, pool, family).0.into_keys()).collect()
}
