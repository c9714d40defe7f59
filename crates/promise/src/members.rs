//! The nodes in the pool of a Service, as Azure has them.

use crate::asks::Family;
use crate::case::{Case, Service};
use crate::estate::{id, items, last, part, parts, text};
use serde_json::Value;
use std::collections::BTreeSet;
use std::net::IpAddr;

/// Addresses of a family of the nodes that rules of a Service lead to. A pool that no node is left
/// for keeps its last members, whose addresses may be other machines' by now: they count only where
/// the cluster shows no node at all, which may be an error of the API server's.
pub(crate) fn of(case: &Case<'_>, service: &Service<'_>, family: Family) -> BTreeSet<IpAddr> {
    let Some(place) = case.place(service, family) else { return BTreeSet::new() };
    let frontend = text(&place.frontend["id"]).to_lowercase();
    let own = parts(place.balancer, "loadBalancingRules").filter(|rule| {
        let named = text(&rule["name"]).to_lowercase().starts_with(&service.base.to_lowercase());
        named
            && text(&rule["properties"]["frontendIPConfiguration"]["id"])
                .eq_ignore_ascii_case(&frontend)
    });
    let names = own.map(|rule| last(text(&rule["properties"]["backendAddressPool"]["id"])));
    let names: BTreeSet<&str> = names.collect();
    let pools = names.iter().filter_map(|n| part(place.balancer, "backendAddressPools", n));
    pools.flat_map(|pool| addresses(case, pool, family)).collect()
}

fn addresses(case: &Case<'_>, pool: &Value, family: Family) -> Vec<IpAddr> {
    let inside = &pool["properties"];
    let listed = items(&inside["loadBalancerBackendAddresses"]);
    let listed = listed.filter_map(|a| text(&a["properties"]["ipAddress"]).parse().ok());
    let is_deserted = !case.nodes.iter().any(|node| !node.excluded && !node.control_plane);
    let is_nodes = |address: &IpAddr| {
        case.nodes.iter().any(|node| node.addresses.get(&family) == Some(address))
    };
    let listed = listed.filter(|address| is_deserted || is_nodes(address));
    let joined = items(&inside["backendIPConfigurations"]).filter_map(|configuration| {
        let machine = machine_of(case, text(&configuration["id"]))?;
        node_on(case, &machine).and_then(|node| internal(node, family))
    });
    let all = listed.chain(joined);
    all.filter(|address| Family::of(address) == family).collect()
}

/// The id, lower case, of the machine that an IP configuration of a NIC belongs to.
pub(crate) fn machine_of(case: &Case<'_>, configuration: &str) -> Option<String> {
    let configuration = configuration.to_lowercase();
    let (before, rest) = configuration.split_once("/networkinterfaces/")?;
    if before.contains("/virtualmachines/") {
        return Some(before.to_owned());
    }
    let nic = format!("{before}/networkinterfaces/{}", rest.split('/').next()?);
    let machine = text(&case.estate.get(&nic)?["properties"]["virtualMachine"]["id"]);
    (!machine.is_empty()).then(|| machine.to_lowercase())
}

/// Whether an IP configuration is on a NIC that its machine says is not its primary one.
pub(crate) fn is_secondary(case: &Case<'_>, machine: &str, configuration: &str) -> bool {
    let Some(machine) = case.estate.get(machine) else { return false };
    let configuration = configuration.to_lowercase();
    let mut nics = items(&machine["properties"]["networkProfile"]["networkInterfaces"]);
    nics.any(|nic| {
        nic["properties"]["primary"] == false
            && configuration.strip_prefix(&id(&nic["id"])).is_some_and(|r| r.starts_with('/'))
    })
}

fn node_on<'a>(case: &Case<'a>, machine: &str) -> Option<&'a Value> {
    let fits = |id: &str| {
        let id = id.to_lowercase();
        id.strip_prefix("azure://").is_some_and(|id| as_network(id) == as_network(machine))
    };
    let mut nodes = case.scene.nodes.iter();
    nodes.find(|node| fits(text(&node["spec"]["providerID"]))).map(|node| &**node)
}

/// NICs of a scale set's machines have ids of the provider of networks, machines themselves of
/// compute.
pub(crate) fn as_network(id: &str) -> String {
    id.replace("/microsoft.network/", "/microsoft.compute/")
}

fn internal(node: &Value, family: Family) -> Option<IpAddr> {
    let addresses = items(&node["status"]["addresses"]);
    let inner = addresses.filter(|address| address["type"] == "InternalIP");
    let mut inner = inner.filter_map(|a| text(&a["address"]).parse::<IpAddr>().ok());
    inner.find(|address| Family::of(address) == family)
}
