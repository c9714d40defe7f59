//! What Azure takes at most on a load balancer, and what two cannot have at once.

use super::balancer::is_of;
use super::{contest, pool, rule};
use crate::draft::Draft;
use crate::intent::Intent;
use crate::name;
use model::azure::{ForeignCollection, Frontend, LoadBalancer, RuleProtocol, Sku};
use model::plan::{Action, Resource};
use model::policy::PoolKind;
use model::report::{Finding, Severity};
use model::{Family, Policy, ResourceId};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Rules that lead to one NIC.
const NIC_RULES: usize = 300;

/// Load balancers of a subscription.
const BALANCERS: usize = 1_000;

/// Rules and frontends that a load balancer takes.
fn most(sku: Sku) -> (usize, usize) {
    if sku == Sku::Basic { (250, 200) } else { (1_500, 600) }
}

/// Addresses that a pool takes.
pub(crate) fn pool_addresses(sku: Sku) -> usize {
    if sku == Sku::Basic { 300 } else { 1_000 }
}

/// What keeps a Service from being written: its ports are taken on a shared frontend, or there is
/// no room.
pub(super) fn obstacle(
    draft: &Draft<'_>,
    balancer: &LoadBalancer,
    intent: &Intent,
    ready: &[(Family, Option<Frontend>, Arc<str>)],
    before: Option<&LoadBalancer>,
) -> Option<Finding> {
    if before.is_none()
        && let Some(finding) = no_balancer(draft, balancer)
    {
        return Some(finding);
    }
    for (family, _, name) in ready {
        if let Some(finding) = taken(balancer, intent, *family, name) {
            return Some(finding);
        }
    }
    // Known before there is an address.
    for family in &intent.families {
        let pool = pool::of(draft.policy, intent, *family);
        let id = balancer.id.child("backendAddressPools", &pool);
        if let Some(rule) = contest::foreign_port(draft, balancer, intent, *family, &id) {
            let value = rule.backend_port.to_string();
            let allowed = format!("a node port that is free in pool {pool}: {} has it", rule.name);
            return Some(refusal("NodePortTaken", "spec.ports", &value, &allowed));
        }
    }
    let own = |name: &str| is_of(name, &intent.base);
    let had = |count: &dyn Fn(&LoadBalancer) -> usize| before.map_or(0, count);
    let had_rules = had(&|b| b.rules.iter().filter(|r| own(&r.name)).count());
    let had_frontends = had(&|b| b.frontends.iter().filter(|f| own(&f.name)).count());
    let rules = intent.rules.len() * ready.len();
    let frontends = ready.iter().filter(|(_, own, _)| own.is_some()).count();
    let (most_rules, most_frontends) = most(balancer.sku);
    let others = balancer.rules.iter().filter(|r| !own(&r.name)).count();
    let name = balancer.id.name();
    let users = || users(draft, balancer);
    if rules > had_rules && others + rules > most_rules {
        let value = format!("{rules} rules");
        let allowed =
            format!("at most {most_rules} rules a load balancer; {name} has {others}{}", users());
        return Some(refusal("LoadBalancerRuleLimit", "spec.ports", &value, &allowed));
    }
    let standing = balancer.frontends.iter().filter(|f| !own(&f.name)).count();
    if frontends > had_frontends && standing + frontends > most_frontends {
        let value = format!("{frontends} frontends");
        let allowed =
            format!("at most {most_frontends} frontends a load balancer; {name} has {standing}");
        return Some(refusal("LoadBalancerFrontendLimit", "spec.type", &value, &allowed));
    }
    let on_nics = others + counterpart(draft, &balancer.id);
    let nics = pool::kind(draft, &balancer.id) == PoolKind::NodeNic;
    if nics && rules > had_rules && on_nics + rules > NIC_RULES {
        let value = format!("{rules} rules");
        let allowed = format!(
            "at most {NIC_RULES} rules a network interface, over its public and its internal load \
             balancer; they have {on_nics}{}; pools of addresses (nodeIP) have no such limit",
            users()
        );
        return Some(refusal("NetworkInterfaceRuleLimit", "spec.ports", &value, &allowed));
    }
    None
}

/// No load balancer can be added. Those of other resource groups are not seen and count, too: what
/// is refused here Azure would refuse; what is not, it may.
fn no_balancer(draft: &Draft<'_>, balancer: &LoadBalancer) -> Option<Finding> {
    let there = draft.balancers().map_or(0, BTreeMap::len);
    let made = draft.changes.values().filter(|change| match &change.action {
        Action::Put { before: None, after: Resource::LoadBalancer(after) } => {
            after.id != balancer.id
        }
        _ => false,
    });
    let count = there + made.count();
    (count >= BALANCERS).then(|| {
        let allowed = format!(
            "at most {BALANCERS} load balancers a subscription; resource group {} alone has \
             {count}",
            draft.policy.balancer_group
        );
        let value = format!("load balancer {}", balancer.id.name());
        refusal("LoadBalancerLimit", "spec.type", &value, &allowed)
    })
}

/// Rules on the load balancer that the same NICs are behind, besides this one.
fn counterpart(draft: &Draft<'_>, id: &ResourceId) -> usize {
    let text = id.as_str();
    let other = match text.strip_suffix(name::INTERNAL) {
        Some(base) => ResourceId::new(base),
        None => ResourceId::new(format!("{text}{}", name::INTERNAL)),
    };
    draft.balancers().and_then(|all| all.get(&other)).map_or(0, |b| b.rules.len())
}

/// Who has the most rules on a load balancer.
fn users(draft: &Draft<'_>, balancer: &LoadBalancer) -> String {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for rule in &balancer.rules {
        if let Some(case) = draft.owner_of(&rule.name).and_then(|uid| draft.cases.get(uid)) {
            *counts.entry(case.service.name.to_string()).or_default() += 1;
        }
    }
    let mut counts: Vec<(String, usize)> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| Reverse(*count));
    let most: Vec<String> =
        counts.into_iter().take(3).map(|(name, count)| format!("{name} {count}")).collect();
    if most.is_empty() { String::new() } else { format!(" (most: {})", most.join(", ")) }
}

/// Says that there are more nodes than a pool takes.
pub(super) fn crowded(policy: &Policy, balancer: &LoadBalancer, nodes: usize) -> Option<Finding> {
    let most = pool_addresses(balancer.sku);
    (policy.pools == PoolKind::NodeIp && nodes > most).then(|| Finding {
        severity: Severity::Note,
        rule: "PoolAddressLimit",
        key: Arc::from("nodes"),
        value: Arc::from(nodes.to_string()),
        allowed: format!(
            "at most {most} addresses in a pool of load balancer {}; the others get no traffic \
             from it",
            balancer.id.name()
        )
        .into(),
    })
}

/// A port of the Service that something else has on the frontend, or another port of its own.
fn taken(
    balancer: &LoadBalancer,
    intent: &Intent,
    family: Family,
    frontend: &str,
) -> Option<Finding> {
    let id = balancer.id.child("frontendIPConfigurations", frontend);
    for (at, wish) in intent.rules.iter().enumerate() {
        let (protocol, port) = rule::signature(&wish.kind);
        let own = intent.rules[..at]
            .iter()
            .find(|r| rule::overlaps(rule::signature(&r.kind), (protocol, port)))
            .map(|r| name::rule(intent, &r.kind, family));
        let others = balancer.rules.iter().filter(|r| !is_of(&r.name, &intent.base));
        let clash = others
            .filter(|r| r.frontend.as_ref() == Some(&id))
            .find(|r| rule::overlaps((r.protocol, r.frontend_port), (protocol, port)))
            .map(|r| r.name.to_string());
        let all = protocol == RuleProtocol::All && port == 0;
        let nat = balancer.foreign.iter().find(|f| {
            f.collection != ForeignCollection::Outbound
                && f.frontends.contains(&id)
                && f.ports.is_some_and(|(p, from, to)| {
                    all || (p == protocol && (from..=to).contains(&port))
                })
        });
        let nat = nat.map(|_| "an inbound NAT rule".to_owned());
        if let Some(taken) = own.or(clash).or(nat) {
            let allowed = format!(
                "a port that is free on frontend {frontend} of {}: {taken} has it",
                balancer.id.name()
            );
            return Some(refusal("PortTaken", "spec.ports", &port.to_string(), &allowed));
        }
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

#[cfg(test)]
mod tests {
    use crate::fixture::{policy, service, world};
    use crate::plan;
    use model::azure::{LoadBalancer, Rule, SecurityGroup, SecurityRule};
    use model::kubernetes::Node;
    use model::policy::PoolKind;
    use model::world::Fact;
    use model::{NodeName, Policy, World};
    use std::collections::BTreeSet;
    use std::net::Ipv4Addr;
    use std::sync::Arc;

    /// The Service is not on its load balancer yet, which has so many rules and frontends of
    /// somebody else's.
    fn crowded(rules: u16, frontends: u16) -> World {
        let mut world = world();
        let all = world.azure.balancers.known_mut().expect("listed");
        let balancer = Arc::make_mut(all.values_mut().next().expect("one"));
        let (frontend, rule) = (balancer.frontends[0].clone(), balancer.rules[0].clone());
        balancer.frontends = (0..frontends)
            .map(|n| {
                let address = model::azure::FrontendAddress::Other;
                let name = format!("theirs-{n}").into();
                model::azure::Frontend { name, address, ..frontend.clone() }
            })
            .collect();
        let first = balancer.id.child("frontendIPConfigurations", "theirs-0");
        balancer.rules = (0..rules)
            .map(|n| Rule {
                name: format!("theirs-{n}").into(),
                frontend_port: n + 1,
                frontend: Some(first.clone()),
                probe: None,
                ..rule.clone()
            })
            .collect();
        balancer.probes.clear();
        world
    }

    fn refused(world: &World, policy: &Policy) -> Vec<&'static str> {
        let (plan, report) = plan(world, policy);
        assert_eq!(crate::check(world, policy, &plan), []);
        let own = report.services[&service(&[]).uid].findings.iter().map(|f| f.rule);
        let all = own.chain(report.findings.iter().map(|f| f.rule));
        // The pools hold addresses, so NICs would be a switch.
        all.filter(|rule| *rule != "PoolKindSwitching").collect()
    }

    #[test]
    fn what_a_load_balancer_takes() {
        let nics = Policy { pools: PoolKind::NodeNic, ..policy() };
        let cases = [
            (1_499, 1, policy(), vec![]),
            (1_500, 1, policy(), vec!["LoadBalancerRuleLimit"]),
            (1, 599, policy(), vec![]),
            (1, 600, policy(), vec!["LoadBalancerFrontendLimit"]),
            (299, 1, nics.clone(), vec![]),
            (300, 1, nics, vec!["NetworkInterfaceRuleLimit"]),
        ];
        for (rules, frontends, policy, wanted) in cases {
            let policy = Policy { security_group_name: "".into(), ..policy };
            let found = refused(&crowded(rules, frontends), &policy);
            assert_eq!(found, wanted, "{rules} rules, {frontends} frontends");
        }
    }

    #[test]
    fn what_a_subscription_takes() {
        let with = |others: usize| {
            let mut world = world();
            let all = world.azure.balancers.known_mut().expect("listed");
            let (_, own) = all.pop_first().expect("one");
            for n in 0..others {
                let id = policy().balancer_id(&format!("theirs-{n}"));
                let (frontends, rules, probes) = Default::default();
                let their = LoadBalancer { id, frontends, rules, probes, ..(*own).clone() };
                all.insert(their.id.clone(), Arc::new(their));
            }
            let policy = Policy { security_group_name: "".into(), ..policy() };
            refused(&world, &policy)
        };
        assert_eq!(with(999), Vec::<&str>::new());
        assert_eq!(with(1_000), ["LoadBalancerLimit"]);
    }

    #[test]
    fn what_a_pool_takes() {
        let policy = Policy { security_group_name: "".into(), ..policy() };
        let mut world = world();
        let sample = Node::clone(world.kubernetes.nodes.values().next().expect("one"));
        for n in 1..1_001u32 {
            let name = NodeName::new(format!("more{n:06}"));
            let addresses = vec![Ipv4Addr::from(0x0AE1_0004 + n).into()];
            let node = Node { name: name.clone(), addresses, ..sample.clone() };
            world.kubernetes.nodes.insert(name, Arc::new(node));
        }
        assert_eq!(refused(&world, &policy), ["PoolAddressLimit"]);
        world.kubernetes.nodes.remove(&NodeName::new("more000001"));
        assert_eq!(refused(&world, &policy), Vec::<&str>::new());
    }

    #[test]
    fn what_a_security_group_takes() {
        let with = |rules: u16, prefixes: u32| {
            let mut world = world();
            let any = || BTreeSet::from([Arc::from("*")]);
            let theirs = |n: u16| SecurityRule {
                name: format!("theirs-{n}").into(),
                access: model::azure::Access::Allow,
                direction: "Outbound".into(),
                priority: 100 + n,
                protocol: "Tcp".into(),
                sources: any(),
                source_ports: any(),
                destinations: (0..prefixes)
                    .map(|n| Arc::from(Ipv4Addr::from(n).to_string()))
                    .collect(),
                ports: any(),
                rest: model::azure::Rest::default(),
            };
            let group = SecurityGroup {
                id: policy().security_group_id(),
                etag: None,
                location: "eastus".into(),
                tags: None,
                rules: (0..rules).map(theirs).collect(),
                provisioning: model::azure::Provisioning::Succeeded,
                rest: model::azure::Rest::default(),
            };
            world.azure.security_group = Fact::Known(Some(Arc::new(group)));
            refused(&world, &policy())
        };
        assert_eq!(with(999, 1), Vec::<&str>::new());
        assert_eq!(with(1_000, 1), ["SecurityRuleLimit"]);
        assert_eq!(with(1, 3_999), Vec::<&str>::new());
        assert_eq!(with(1, 4_000), ["SecurityRuleLimit"]);
    }
}
