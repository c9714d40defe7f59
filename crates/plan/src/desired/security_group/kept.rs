//! What stays open for Services that keep what they have: those that are refused or set aside,
//! those about which something has to be read first, and those that do not carry our finalizer yet.

use super::super::{balancer, frontend};
use crate::draft::{Draft, Stance};
use crate::kubernetes::is_claimed;
use crate::placement::Placement;
use model::azure::{Access, Frontend, SecurityRule};
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

/// What is open for Services that keep what they have, and stays so.
#[derive(Debug, Default)]
pub(super) struct Kept {
    /// Addresses that stay open.
    pub destinations: BTreeSet<Arc<str>>,
    /// Node ports that are led to without floating IP: rules to them name the nodes.
    node_ports: BTreeSet<Arc<str>>,
    /// Addresses of nodes.
    nodes: BTreeSet<Arc<str>>,
}

impl Kept {
    /// Whether a destination of a rule of ours stays.
    pub fn has(&self, rule: &SecurityRule, destination: &Arc<str>) -> bool {
        let leads = || !rule.ports.is_disjoint(&self.node_ports);
        let by_port = || match rule.access {
            Access::Allow => leads(),
            Access::Deny => !self.node_ports.is_empty(),
        };
        self.destinations.contains(destination) || (self.nodes.contains(destination) && by_port())
    }
}

/// Works out what is open for Services that keep what they have.
pub(super) fn kept(draft: &Draft<'_>, placement: &Placement) -> Kept {
    let mut kept = Kept::default();
    let text = |address: IpAddr| -> Arc<str> { Arc::from(address.to_string()) };
    let cases = draft.cases.values().filter(|case| match case.stance {
        Stance::Kept => true,
        Stance::Wanted(_) => !is_claimed(draft.policy, case.service),
        Stance::Container(_) | Stance::Leaving => false,
    });
    let all = || placement.balancers.keys().filter_map(|id| draft.balancers()?.get(id));
    for case in cases {
        kept.destinations.extend(case.service.ingress.iter().filter_map(|i| i.ip.clone()));
        for balancer in all() {
            let own = |name: &str| balancer::is_of(name, &case.base);
            let rules: Vec<_> = balancer.rules.iter().filter(|r| own(&r.name)).collect();
            let led = |f: &Frontend| {
                let id = balancer.id.child("frontendIPConfigurations", &f.name);
                rules.iter().any(|r| r.frontend.as_ref() == Some(&id))
            };
            let mut fronts =
                balancer.frontends.iter().filter(|f| own(&f.name) || led(f)).peekable();
            if fronts.peek().is_none() {
                continue;
            }
            let addresses = fronts.filter_map(|f| frontend::address_of(draft, f));
            kept.destinations.extend(addresses.map(text));
            let ports = case.service.ports.iter().filter_map(|p| p.node_port);
            let ports = ports.chain(rules.iter().map(|r| r.backend_port));
            kept.node_ports.extend(ports.map(|port| Arc::from(port.to_string())));
        }
    }
    if !kept.node_ports.is_empty() {
        let pools = all().flat_map(|b| &b.pools).flat_map(|p| &p.addresses).map(|a| a.address);
        let nodes = draft.world.kubernetes.nodes.values().flat_map(|n| n.addresses.iter().copied());
        kept.nodes = pools.chain(nodes).map(text).collect();
    }
    kept
}
