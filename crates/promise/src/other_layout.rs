//! The other layout's leftovers (docs/migrations.md): a start on load balancers of the other kind
//! writes nothing until they are gone, so that nothing is promised meanwhile.

use crate::case::Case;
use crate::estate::{id, last, parts, same, text};
use crate::site::Layout;
use crate::{container, names, tags};
use serde_json::Value;

/// Whether anything of the other layout stands.
pub(crate) fn stands(case: &Case<'_>) -> bool {
    match case.site.layout {
        Layout::Container => nodes(case),
        Layout::Single | Layout::Several(_) | Layout::PerSet { .. } => pods(case),
    }
}

fn is_of_pods(balancer: &Value) -> bool {
    same(text(&balancer["sku"]["name"]), "Service")
}

/// Load balancers over nodes: frontends and rules that are called after Services, and public IPs
/// that name one.
fn nodes(case: &Case<'_>) -> bool {
    let named = |part: &Value| names::base_of(text(&part["name"])).is_some();
    let mut balancers = case.estate.balancers().map(|(_, balancer)| balancer);
    let left = balancers.any(|balancer| {
        let collections = ["frontendIPConfigurations", "loadBalancingRules"];
        !is_of_pods(balancer) && collections.iter().any(|c| parts(balancer, c).any(named))
    });
    let mut ips = case.estate.public_ips().map(|(_, ip)| ip);
    left || ips.any(|ip| {
        let cluster =
            tags::tag(ip, tags::CLUSTER).is_some_and(|name| same(name, &case.site.cluster));
        cluster && tags::tag(ip, tags::SERVICE).is_some()
    })
}

/// Container load balancers, their public IPs, and NAT gateways of the Service Gateway.
fn pods(case: &Case<'_>) -> bool {
    let mut balancers = case.estate.balancers();
    let mut ips = case.estate.public_ips();
    let mut nats = case.estate.of("Microsoft.Network/natGateways");
    balancers.any(|(id, balancer)| is_of_pods(balancer) && container::is_uid(last(id)))
        || ips.any(|(id, _)| last(id).strip_suffix("-pip").is_some_and(container::is_uid))
        || nats.any(|(own, nat)| {
            let gateway = id(&nat["properties"]["serviceGateway"]["id"]);
            !gateway.is_empty() && !own.ends_with("/default-natgw")
        })
}
