//! The other layout's leftovers (docs/migrations.md): a start on load balancers of the other kind
//! writes nothing until they are gone, so that nothing is promised meanwhile.
//!
//! What carries another cluster's UID does not count, nor do parts of others on load balancers that
//! have not the cluster's name.

use crate::case::Case;
use crate::estate::{group_of, id, last, parts, same, text};
use crate::site::Layout;
use crate::{container, names, tags};
use serde_json::Value;

/// The id, lower case, of a resource on which anything of the other layout stands.
pub(crate) fn left<'c>(case: &'c Case<'_>) -> Option<&'c str> {
    match case.site.layout {
        Layout::Container => nodes(case),
        Layout::Single | Layout::Several(_) | Layout::PerSet { .. } => pods(case),
    }
}

fn is_of_pods(balancer: &Value) -> bool {
    same(text(&balancer["sku"]["name"]), "Service")
}

/// Whether a resource carries another cluster's UID.
fn is_another_clusters(case: &Case<'_>, resource: &Value) -> bool {
    tags::tag(resource, tags::UID).is_some_and(|uid| tags::cluster_uid(case) != Some(uid))
}

/// Load balancers over nodes: frontends and rules that are called after Services, and public IPs
/// that name one.
fn nodes<'c>(case: &'c Case<'_>) -> Option<&'c str> {
    let is_ones = |name: &str| case.services.iter().any(|s| names::is_of(name, &s.base));
    let balancers = case.estate.balancers().filter(|(id, balancer)| {
        let common = case.is_balancer_of_ours(id);
        let left = |part: &Value| {
            let name = text(&part["name"]);
            names::base_of(name).is_some() && (common || is_ones(name))
        };
        let collections = ["frontendIPConfigurations", "loadBalancingRules"];
        let mut all = collections.iter().flat_map(|collection| parts(balancer, collection));
        !is_of_pods(balancer) && !is_another_clusters(case, balancer) && all.any(left)
    });
    let group = &case.site.group;
    let ips = case.estate.public_ips().filter(|(id, ip)| {
        let ours = same(group_of(id), group) && tags::is_of_cluster(case, ip, group);
        let named =
            tags::tag(ip, tags::CLUSTER).is_some() && tags::tag(ip, tags::SERVICE).is_some();
        ours && named
    });
    balancers.chain(ips).map(|(id, _)| id).next()
}

/// Container load balancers, their public IPs, and NAT gateways of the Service Gateway.
fn pods<'c>(case: &'c Case<'_>) -> Option<&'c str> {
    let balancers = case.estate.balancers();
    let balancers =
        balancers.filter(|(id, balancer)| is_of_pods(balancer) && container::is_uid(last(id)));
    let ips = case.estate.public_ips();
    let ips = ips.filter(|(id, _)| last(id).strip_suffix("-pip").is_some_and(container::is_uid));
    let nats = case.estate.of("Microsoft.Network/natGateways").filter(|(own, nat)| {
        let gateway = id(&nat["properties"]["serviceGateway"]["id"]);
        !gateway.is_empty() && !own.ends_with("/default-natgw")
    });
    let mut all = balancers.chain(ips).chain(nats);
    all.find(|(_, resource)| !is_another_clusters(case, resource)).map(|(id, _)| id)
}
