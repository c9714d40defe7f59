//! What Pods leave through while Services move between load balancers over nodes and container load
//! balancers.

use explain::forecast::Forecast;
use model::azure::{LoadBalancer, Sku};
use model::gateway::DEFAULT_EGRESS;
use model::kubernetes::Backends;
use model::plan::Action;
use model::{Policy, World};
use plan::own::pod_names::is_reserved;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What changes about the way out; `None` where the kind of load balancers stays.
pub(super) fn note(forecast: &Forecast, world: &World, policy: &Policy) -> Option<String> {
    let kinds = forecast.steps.iter().filter(|step| is_balancer(&step.change.action));
    let skus: Vec<bool> = kinds.filter_map(|step| is_container(&step.change.action)).collect();
    let both = skus.contains(&true) && skus.contains(&false);
    if policy.migration.is_none() || !both {
        return None;
    }
    let over_nodes = through_nodes(world);
    let has_nat = world.azure.nat_gateways.each().any(|nat| is_reserved(nat.id.name()));
    let over_pods = format!("through NAT gateway {DEFAULT_EGRESS}");
    let missing = match has_nat {
        true => String::new(),
        false => format!("; NAT gateway {DEFAULT_EGRESS} does not exist"),
    };
    let (before, after) = match policy.backends() {
        Backends::Pods => (over_nodes, over_pods),
        Backends::Nodes => (over_pods, "through what the nodes' subnet has".to_owned()),
    };
    let egress = match policy.backends() {
        Backends::Nodes if !world.kubernetes.pods.is_empty() => {
            "; egress gateways go with the last container load balancer, whatever labels Pods have"
        }
        _ => "",
    };
    Some(format!(
        "Outbound: before, and while both load balancers stand, Pods leave {before}; after, \
         {after}{egress}{missing} (docs/outbound.md)"
    ))
}

fn is_balancer(action: &Action) -> bool {
    is_container(action).is_some()
}

/// Whether a change is of a container load balancer; `None`: of no load balancer.
fn is_container(action: &Action) -> Option<bool> {
    use model::plan::Resource::LoadBalancer as Balancer;
    match action {
        Action::Put { after: Balancer(balancer), .. }
        | Action::Delete { before: Balancer(balancer) } => Some(balancer.sku == Sku::Service),
        _ => None,
    }
}

/// What load balancers over nodes do for connections that begin at nodes.
fn through_nodes(world: &World) -> String {
    let balancers = world.azure.balancers.known().into_iter().flat_map(BTreeMap::values);
    let over_nodes: Vec<&Arc<LoadBalancer>> =
        balancers.filter(|balancer| balancer.sku != Sku::Service).collect();
    let named = |wanted: &dyn Fn(&LoadBalancer) -> bool| {
        over_nodes.iter().find(|balancer| wanted(balancer)).map(|b| b.id.name().to_owned())
    };
    let outbound = |balancer: &LoadBalancer| !balancer.foreign.is_empty();
    let snat = |balancer: &LoadBalancer| {
        balancer.rules.iter().any(|rule| rule.disable_outbound_snat != Some(true))
    };
    if let Some(name) = named(&outbound) {
        return format!("through what the nodes' subnet has, or rules of others on {name}");
    }
    match named(&snat) {
        Some(name) => format!("through the addresses of Services on {name} (outbound SNAT)"),
        None => "through what the nodes' subnet has".to_owned(),
    }
}
