//! What keeps a Service off a load balancer.

use super::rule;
use crate::intent::Intent;
use crate::name;
use model::Family;
use model::azure::{ForeignCollection, Frontend, LoadBalancer};
use model::report::{Finding, Severity};
use std::sync::Arc;

/// Rules a Standard load balancer takes.
const RULES: usize = 1_500;
/// Frontends a Standard load balancer takes.
const FRONTENDS: usize = 600;

/// What keeps a Service from being written: its ports are taken on a shared frontend, or the load
/// balancer is full.
pub(crate) fn obstacle(
    balancer: &LoadBalancer,
    intent: &Intent,
    ready: &[(Family, Option<Frontend>, Arc<str>)],
    before: Option<&LoadBalancer>,
) -> Option<Finding> {
    for (family, _, name) in ready {
        let id = balancer.id.child("frontendIPConfigurations", name);
        let pool = balancer.id.clone();
        let policyless =
            intent.rules.iter().map(|r| (&r.kind, name::rule(intent, &r.kind, *family)));
        for (kind, _) in policyless {
            let (protocol, port) = rule::signature(kind);
            let clash = balancer.rules.iter().find(|r| {
                !is_of(&r.name, &intent.base)
                    && r.frontend.as_ref() == Some(&id)
                    && rule::overlaps(r, protocol, port)
            });
            let nat = balancer.foreign.iter().find(|f| {
                f.collection != ForeignCollection::Outbound
                    && f.frontends.contains(&id)
                    && f.ports
                        .is_some_and(|(p, from, to)| p == protocol && (from..=to).contains(&port))
            });
            let taken = clash.map(|r| r.name.to_string());
            let taken = taken.or_else(|| nat.map(|_| "an inbound NAT rule".to_owned()));
            if let Some(taken) = taken {
                return Some(refusal(
                    "PortTaken",
                    "spec.ports",
                    &port.to_string(),
                    &format!(
                        "a port that is free on frontend {name} of {}: {taken} has it",
                        pool.name()
                    ),
                ));
            }
        }
    }
    let new = before.is_none_or(|b| !b.frontends.iter().any(|f| is_of(&f.name, &intent.base)));
    let rules = intent.rules.len() * ready.len();
    let frontends = ready.iter().filter(|(_, own, _)| own.is_some()).count();
    if new && balancer.rules.len() + rules > RULES {
        let value = format!("{rules} more rules");
        let allowed = format!(
            "at most {RULES} rules a load balancer; {} has {}",
            balancer.id.name(),
            balancer.rules.len()
        );
        return Some(refusal("LoadBalancerRuleLimit", "spec.ports", &value, &allowed));
    }
    if new && balancer.frontends.len() + frontends > FRONTENDS {
        let value = format!("{frontends} more frontends");
        let allowed = format!(
            "at most {FRONTENDS} frontends a load balancer; {} has {}",
            balancer.id.name(),
            balancer.frontends.len()
        );
        return Some(refusal("LoadBalancerFrontendLimit", "spec.type", &value, &allowed));
    }
    None
}

fn refusal(rule: &'static str, key: &str, value: &str, allowed: &str) -> Finding {
    Finding {
        severity: Severity::Refusal,
        rule,
        key: Arc::from(key),
        value: Arc::from(value),
        allowed: Arc::from(allowed),
    }
}

fn is_of(part: &str, base: &str) -> bool {
    name::base_of(part).is_some_and(|b| b.eq_ignore_ascii_case(base))
}
