//! Load-balancing rules and their probes.

use crate::ask::{FloatingIp, Intent, ProbeName, RuleKind, TcpReset};
use crate::own::{name, part};
use model::azure::{Distribution, Probe, Rest, Rule, RuleProtocol, rule_protocol};
use model::policy::{BalancerSku, OutboundSnat};
use model::{Exposure, Family, Policy, Protocol, ResourceId};
use std::sync::Arc;

/// The rules and probes of a Service on one frontend.
pub(crate) fn wanted(
    policy: &Policy,
    intent: &Intent,
    family: Family,
    frontend: &ResourceId,
    pool: &ResourceId,
    balancer: &ResourceId,
) -> (Vec<Rule>, Vec<Probe>) {
    let mut rules = Vec::new();
    let mut probes: Vec<Probe> = Vec::new();
    for wish in &intent.rules {
        let mut rule = rule(policy, intent, &wish.kind, family);
        if let Some(probe) = &wish.probe {
            let name = match probe.name {
                ProbeName::Rule => Arc::clone(&rule.name),
                _ => Arc::from(name::probe(intent, &wish.kind, probe, family)),
            };
            rule.probe = Some(balancer.child("probes", &name));
            if !probes.iter().any(|p| p.name == name) {
                probes.push(Probe {
                    name,
                    protocol: probe.protocol,
                    port: probe.port,
                    path: probe.path.clone(),
                    interval_s: probe.interval_s,
                    threshold: probe.threshold,
                    rest: Rest::default(),
                });
            }
        }
        rule.frontend = Some(frontend.clone());
        rule.pool = Some(pool.clone());
        rules.push(rule);
    }
    (rules, probes)
}

fn rule(policy: &Policy, intent: &Intent, kind: &RuleKind, family: Family) -> Rule {
    let standard = policy.sku != BalancerSku::Basic;
    let options = intent.rule_options;
    // Azure has no floating IP for IPv6 frontends of internal load balancers.
    let unfloating = intent.exposure == Exposure::Internal && family == Family::V6;
    let translated = options.floating_ip == FloatingIp::Disabled || unfloating;
    let (protocol, frontend_port, backend_port, floating) = match *kind {
        RuleKind::Port { protocol, port, node_port } => {
            let backend = if translated { node_port.unwrap_or(port) } else { port };
            (rule_protocol(protocol), port, backend, !translated)
        }
        // The annotation is for rules of ports: as in the Go controller it does not count here.
        RuleKind::AllPorts { .. } => (RuleProtocol::All, 0, 0, !unfloating),
    };
    let resets = match *kind {
        RuleKind::Port { protocol, .. } => protocol == Protocol::Tcp && standard,
        RuleKind::AllPorts { .. } => true,
    };
    let snat = policy.outbound_snat == OutboundSnat::Disabled && standard;
    Rule {
        name: Arc::from(name::rule(intent, kind, family)),
        protocol,
        frontend_port,
        backend_port,
        frontend: None,
        pool: None,
        probe: None,
        floating_ip: Some(floating),
        idle_timeout_min: Some(options.idle_timeout_min),
        distribution: Some(options.distribution),
        disable_outbound_snat: Some(snat),
        tcp_reset: resets.then_some(options.tcp_reset == TcpReset::Enabled),
        rest: Rest::default(),
    }
}

/// Whether a rule in Azure already is the wanted one; absent and false are the same. What `spread`
/// makes of its distribution counts.
pub(crate) fn is_same(
    there: &Rule,
    wanted: &Rule,
    spread: impl Fn(Option<Distribution>) -> Option<Distribution>,
) -> bool {
    let Rule {
        name,
        protocol,
        frontend_port,
        backend_port,
        frontend,
        pool,
        probe,
        floating_ip,
        idle_timeout_min,
        distribution,
        disable_outbound_snat,
        tcp_reset,
        rest: _,
    } = wanted;
    part::is_called(there, name)
        && there.protocol == *protocol
        && there.frontend_port == *frontend_port
        && there.backend_port == *backend_port
        && there.frontend == *frontend
        && there.pool == *pool
        && there.probe == *probe
        && there.floating_ip.unwrap_or(false) == floating_ip.unwrap_or(false)
        && there.idle_timeout_min.unwrap_or(4) == idle_timeout_min.unwrap_or(4)
        && spread(there.distribution) == spread(*distribution)
        && there.disable_outbound_snat.unwrap_or(false) == disable_outbound_snat.unwrap_or(false)
        && there.tcp_reset.unwrap_or(false) == tcp_reset.unwrap_or(false)
}

/// What a rule in Azure becomes where another is wanted; `None`: it is the wanted one.
pub(super) fn renewed(there: &Rule, wanted: Rule) -> Option<Rule> {
    (!is_same(there, &wanted, |d| d)).then(|| Rule { rest: there.rest.clone(), ..wanted })
}

/// What a probe in Azure becomes where another is wanted; `None`: it is the wanted one.
pub(super) fn renewed_probe(there: &Probe, wanted: Probe) -> Option<Probe> {
    let Probe { name: _, protocol, port, path, interval_s, threshold, rest: _ } = &wanted;
    let same_path = match (&there.path, path) {
        (Some(a), Some(b)) => a.eq_ignore_ascii_case(b),
        (a, b) => a == b,
    };
    let same = there.protocol == *protocol
        && there.port == *port
        && same_path
        && there.interval_s == *interval_s
        && there.threshold == *threshold;
    (!same).then(|| Probe { rest: there.rest.clone(), ..wanted })
}
