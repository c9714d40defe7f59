//! The load balancer of one Service: a frontend, an empty pool, and a rule for each port.

use crate::ask::container::{ContainerIntent, ContainerPort};
use crate::draft::Draft;
use crate::own::pod_names::{self, FRONTEND};
use crate::own::{part, tags};
use crate::shape::balancer::fresh;
use crate::shape::pool;
use crate::shape::rule::is_same;
use model::azure::{
    Distribution, Frontend, FrontendAddress, LoadBalancer, Pool, Provisioning, Rest, Rule, Sku,
    rule_protocol,
};
use model::{Protocol, ResourceId};
use std::sync::Arc;

/// The load balancer as it is to be, made from the one that is there.
pub(super) fn wanted(
    draft: &Draft<'_>,
    name: &str,
    intent: &ContainerIntent,
    before: Option<&LoadBalancer>,
) -> LoadBalancer {
    let id = draft.policy.balancer_id(name);
    let new = || LoadBalancer { edge_zone: None, ..fresh(draft.policy, &id) };
    let mut balancer = before.cloned().unwrap_or_else(new);
    balancer.tags = tags::configured(balancer.tags.as_ref(), draft.policy);
    balancer.sku = Sku::Service;
    balancer.provisioning = Provisioning::Succeeded;
    if !balancer.scope.as_deref().is_some_and(|scope| scope.eq_ignore_ascii_case("Public")) {
        balancer.scope = Some(Arc::from("Public"));
    }
    ensure_frontend(&mut balancer.frontends, draft.container_ip_id(name));
    ensure_pool(&mut balancer.pools, name);
    let frontend = balancer.id.child("frontendIPConfigurations", FRONTEND);
    let pool = balancer.id.child("backendAddressPools", name);
    let old = std::mem::take(&mut balancer.rules);
    balancer.rules = ensure_rules(old, intent, &frontend, &pool);
    balancer.probes.clear();
    balancer.foreign.clear();
    balancer
}

fn ensure_frontend(frontends: &mut Vec<Frontend>, ip: ResourceId) {
    frontends.retain(|f| part::is_called(f, FRONTEND));
    let address = FrontendAddress::Public(ip);
    match frontends.first_mut() {
        Some(frontend) => frontend.address = address,
        None => frontends.push(Frontend {
            name: Arc::from(FRONTEND),
            zones: Vec::new(),
            address,
            rest: Rest::default(),
        }),
    }
}

fn ensure_pool(pools: &mut Vec<Pool>, name: &str) {
    pools.retain(|p| part::is_called(p, name));
    if pools.is_empty() {
        pools.push(pool::empty(name));
    }
}

/// One rule a port; those that are right already stay in their places.
fn ensure_rules(
    mut old: Vec<Rule>,
    intent: &ContainerIntent,
    frontend: &ResourceId,
    pool: &ResourceId,
) -> Vec<Rule> {
    let mut coming: Vec<Rule> =
        intent.ports.iter().map(|port| rule(port, intent, frontend, pool)).collect();
    old.retain_mut(|there| {
        let at = part::place(&coming, &there.name);
        let Some(at) = at else { return false };
        let wanted = coming.remove(at);
        // An absent distribution is the default.
        let spread = |d: Option<Distribution>| d.or(Some(Distribution::Default));
        if !is_same(there, &wanted, spread) {
            *there = Rule { rest: there.rest.clone(), ..wanted };
        }
        true
    });
    old.append(&mut coming);
    old
}

fn rule(
    port: &ContainerPort,
    intent: &ContainerIntent,
    frontend: &ResourceId,
    pool: &ResourceId,
) -> Rule {
    Rule {
        name: Arc::from(pod_names::rule(port.protocol, port.port)),
        protocol: rule_protocol(port.protocol),
        frontend_port: port.port,
        backend_port: port.backend_port,
        frontend: Some(frontend.clone()),
        pool: Some(pool.clone()),
        probe: None,
        floating_ip: Some(false),
        idle_timeout_min: Some(intent.idle_timeout_min),
        distribution: None,
        disable_outbound_snat: None,
        tcp_reset: (port.protocol == Protocol::Tcp).then_some(true),
        rest: Rest::default(),
    }
}
