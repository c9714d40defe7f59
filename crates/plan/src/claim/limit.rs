//! What Azure takes at most on a load balancer, and what two cannot have at once.

use super::Refusal;
use super::contest;
use super::listeners::{Listeners, overlaps, signature};
use super::share::{self, Scarce, Shortage};
use crate::ask::limit::{RULES, RULES_ON_BASIC};
use crate::ask::{Intent, annotation};
use crate::draft::Draft;
use crate::own::name;
use crate::own::name::is_of;
use crate::own::parts::View;
use crate::standing::pool;
use model::azure::{
    ForeignCollection, ForeignRule, Frontend, LoadBalancer, Rule, RuleProtocol, Sku,
};
use model::plan::{Action, Resource};
use model::policy::PoolKind;
use model::report::Finding;
use model::{Family, ResourceId, ServiceUid};
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Rules that lead to one NIC.
const NIC_RULES: usize = 300;

/// Load balancers of a subscription.
const BALANCERS: usize = 1_000;

/// Rules and frontends that a load balancer takes.
fn most(sku: Sku) -> (usize, usize) {
    if sku == Sku::Basic { (RULES_ON_BASIC, 200) } else { (RULES, 600) }
}

/// Members that a pool takes: addresses, or IP configurations of network interfaces.
pub(crate) fn pool_members(sku: Sku) -> usize {
    if sku == Sku::Basic { 300 } else { 1_000 }
}

/// What is counted on a load balancer, and who uses it.
#[derive(Debug, Default)]
pub(crate) struct Room {
    rules: Scarce,
    frontends: Scarce,
    /// Rules that lead to the NICs behind it, over both of its load balancers.
    on_nics: Scarce,
    /// Namespaces with Services that want a load balancer, once more is asked for.
    namespaces: OnceCell<usize>,
}

/// How many rules and frontends a Service has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Parts {
    pub rules: usize,
    pub frontends: usize,
}

impl Parts {
    /// Those of a base name, by its number.
    pub fn of(balancer: View<'_>, base: Option<u128>) -> Self {
        let (rules, frontends) = balancer.count_of(base);
        Self { rules, frontends }
    }
}

impl Room {
    /// Counts what is there.
    pub fn of(draft: &Draft<'_>, balancer: View<'_>) -> Self {
        let (rules, frontends) = most(balancer.sku);
        let mut room = Self {
            rules: Scarce::new(rules),
            frontends: Scarce::new(frontends),
            on_nics: Scarce::new(NIC_RULES),
            namespaces: OnceCell::new(),
        };
        room.rules.used = balancer.rules.len();
        room.frontends.used = balancer.frontends.len();
        room.on_nics.used = balancer.rules.len() + counterpart(draft, &balancer.id);
        for own in balancer.shares() {
            let Some(uid) = draft.owner_of_base(own.base) else { continue };
            let namespace = share::namespace(draft, uid);
            room.rules.count(&namespace, own.rules);
            room.on_nics.count(&namespace, own.rules);
            room.frontends.count(&namespace, own.frontends);
        }
        room
    }

    /// A Service of this namespace has other parts than it had.
    pub fn change(&mut self, namespace: &Arc<str>, had: Parts, has: Parts) {
        if had == has {
            return;
        }
        self.rules.change(namespace, had.rules, has.rules);
        self.on_nics.change(namespace, had.rules, has.rules);
        self.frontends.change(namespace, had.frontends, has.frontends);
    }

    /// The Services of a load balancer in the order in which they get room: as they come, and where
    /// there is not room for all, in turns of their namespaces.
    pub fn turns(
        &self,
        draft: &Draft<'_>,
        balancer: View<'_>,
        services: &[ServiceUid],
    ) -> Vec<ServiceUid> {
        let intents = services.iter().filter_map(|uid| draft.cases[uid].intent());
        let asks = |intent: &Intent| intent.rules.len().max(1) * intent.families.len();
        let asked: usize = intents.map(asks).sum();
        let nics = pool::kind(draft, &balancer.id) == PoolKind::NodeNic;
        let scarce = self.rules.is_scarce_at(asked)
            || self.frontends.is_scarce_at(2 * services.len())
            || (nics && self.on_nics.is_scarce_at(asked));
        if !scarce {
            return services.to_vec();
        }
        let more = |uid: &ServiceUid| {
            let intent = draft.cases[uid].intent();
            let has = |i: &Intent| Parts::of(balancer, name::base_number(&i.base)).rules;
            intent.map_or(0, |i| asks(i).saturating_sub(has(i)))
        };
        let asks = services.iter();
        let asks = asks.map(|uid| (share::namespace(draft, uid), more(uid), uid.clone())).collect();
        share::turns(asks, |namespace| self.rules.of(namespace))
    }
}

/// Why a Service is not written.
pub(crate) enum Obstacle {
    /// What it asks for is taken, or exceeds a limit.
    Refused(Refusal),
    /// It needs the place of a rule whose Service is gone, until that rule is removed.
    Goes,
}

/// What keeps a Service from being written, if anything does.
pub(crate) fn obstacle(
    draft: &Draft<'_>,
    balancer: View<'_>,
    intent: &Intent,
    ready: &[(Family, Option<Frontend>, Arc<str>)],
    room: (Option<View<'_>>, &Room),
) -> Option<Obstacle> {
    let (finding, by) = finding(draft, balancer, intent, ready, room)?;
    let goes = by.is_some_and(|rule| draft.is_departed(&rule.name));
    Some(if goes { Obstacle::Goes } else { Obstacle::Refused(Refusal::new(finding)) })
}

/// The finding where ports are taken, with the rule that has them, or where a limit is exceeded.
fn finding<'b>(
    draft: &Draft<'_>,
    balancer: View<'b>,
    intent: &Intent,
    ready: &[(Family, Option<Frontend>, Arc<str>)],
    (before, room): (Option<View<'_>>, &Room),
) -> Option<(Finding, Option<&'b Rule>)> {
    if before.is_none()
        && let Some(finding) = no_balancer(draft, &balancer)
    {
        return Some((finding, None));
    }
    for (family, _, name) in ready {
        if let Some(found) = taken(draft, balancer, intent, (*family, &**name)) {
            return Some(found);
        }
    }
    // Known before there is an address.
    for family in &intent.families {
        let pool = name::pool_of(draft.policy, intent, *family);
        let taken = contest::backend_port_taken(draft, balancer, intent, *family, &pool);
        if let Some(rule) = taken {
            return Some((backend_port_taken(rule, &pool), Some(rule)));
        }
    }
    Some((no_room(draft, balancer, intent, ready, (before, room))?, None))
}

fn backend_port_taken(rule: &Rule, pool: &str) -> Finding {
    let name = &rule.name;
    if rule.protocol == RuleProtocol::All {
        let message = format!("all ports of pool {pool} are used by rule {name}; use single ones");
        let key = annotation::full("azure-load-balancer-enable-high-availability-ports");
        return Finding::refusal("NodePortTaken", &key, "true", &message);
    }
    let message = format!("node port {{value}} is used by rule {name} in pool {pool}; use another");
    Finding::refusal("NodePortTaken", "spec.ports", &rule.backend_port.to_string(), &message)
}

/// There is no room for what a Service has more than before.
fn no_room(
    draft: &Draft<'_>,
    balancer: View<'_>,
    intent: &Intent,
    ready: &[(Family, Option<Frontend>, Arc<str>)],
    (before, room): (Option<View<'_>>, &Room),
) -> Option<Finding> {
    let base = name::base_number(&intent.base);
    let stood = before.map(|before| Parts::of(before, base)).unwrap_or_default();
    let has = Parts::of(balancer, base);
    let rules = intent.rules.len() * ready.len();
    let frontends = ready.iter().filter(|(_, own, _)| own.is_some()).count();
    let namespace = &intent.name.namespace;
    let short = |scarce: &Scarce, stood: usize, has: usize, wants: usize, what: &str| {
        let more = if wants > stood { wants.saturating_sub(has) } else { 0 };
        if more == 0 {
            return None;
        }
        let namespaces = *room.namespaces.get_or_init(|| share::namespaces(draft));
        let shortage = scarce.ask(namespace, more, namespaces).err()?;
        let reserved = match shortage {
            Shortage::Full => String::new(),
            Shortage::Reserved { share } => format!(
                "; the last tenth is for namespaces with less than {share}, {namespace} has {}",
                scarce.of(namespace)
            ),
        };
        let others = scarce.used - has.min(scarce.used);
        Some((scarce.limit, others, format!("{reserved}{}", scarce.users(what))))
    };
    let name = balancer.id.name();
    if let Some((most, others, who)) = short(&room.rules, stood.rules, has.rules, rules, "rules") {
        let message = format!(
            "{} do not fit on load balancer {name}, which has {others}; it has at most {most}{who}",
            counted(rules, "rule")
        );
        return Some(Finding::refusal("LoadBalancerRuleLimit", "spec.ports", "", &message));
    }
    let (stood_on, has_on) = (stood.frontends, has.frontends);
    if let Some((most, others, who)) =
        short(&room.frontends, stood_on, has_on, frontends, "frontends")
    {
        let message = format!(
            "{} do not fit on load balancer {name}, which has {others}; it has at most {most}{who}",
            counted(frontends, "frontend")
        );
        return Some(Finding::refusal("LoadBalancerFrontendLimit", "spec.type", "", &message));
    }
    if pool::kind(draft, &balancer.id) != PoolKind::NodeNic {
        return None;
    }
    let (most, others, who) = short(&room.on_nics, stood.rules, has.rules, rules, "rules")?;
    let message = format!(
        "{} do not fit on the nodes' network interfaces, which have {others} from the public and \
         the internal load balancer; a network interface has at most {most}, pools of addresses \
         (nodeIP) have no such limit{who}",
        counted(rules, "rule")
    );
    Some(Finding::refusal("NetworkInterfaceRuleLimit", "spec.ports", "", &message))
}

/// No load balancer can be added. Those of other resource groups are not seen and count, too: what
/// is refused here Azure would refuse; what is not, it may.
fn no_balancer(draft: &Draft<'_>, balancer: &LoadBalancer) -> Option<Finding> {
    let there = draft.balancers().map_or(0, BTreeMap::len);
    let made = draft.steps.changes.values().filter(|change| match &change.action {
        Action::Put { before: None, after: Resource::LoadBalancer(after) } => {
            after.id != balancer.id
        }
        _ => false,
    });
    let count = there + made.count();
    (count >= BALANCERS).then(|| {
        let message = format!(
            "load balancer {} cannot be added, because resource group {} has {count}; a \
             subscription has at most {BALANCERS}",
            balancer.id.name(),
            draft.policy.balancer_group
        );
        Finding::refusal("LoadBalancerLimit", "spec.type", "", &message)
    })
}

/// Rules on the load balancer that the same NICs are behind, besides this one.
fn counterpart(draft: &Draft<'_>, id: &ResourceId) -> usize {
    draft.balancer(&name::counterpart(id)).map_or(0, |b| b.rules.len())
}

/// Says that there are more nodes than a pool takes.
pub(crate) fn crowded(draft: &Draft<'_>, balancer: &LoadBalancer, nodes: usize) -> Option<Finding> {
    let most = pool_members(balancer.sku);
    let what = match pool::kind(draft, &balancer.id) {
        PoolKind::NodeIp => "addresses",
        PoolKind::NodeNic => "network interfaces",
        // Who is in a Service Gateway is no pool's business.
        PoolKind::PodIp => return None,
    };
    (nodes > most).then(|| {
        let message = format!(
            "{} of {nodes} nodes get no traffic from load balancer {}; a pool has at most {most} \
             {what}",
            nodes.saturating_sub(most),
            balancer.id.name()
        );
        Finding::note("PoolAddressLimit", "nodes", "", &message)
    })
}

/// A port of the Service that something else has on the frontend, or another port of its own.
fn taken<'b>(
    draft: &Draft<'_>,
    balancer: View<'b>,
    intent: &Intent,
    (family, frontend): (Family, &str),
) -> Option<(Finding, Option<&'b Rule>)> {
    let others = balancer.rules_to(frontend).into_iter();
    let mut theirs = Listeners::default();
    for rule in others.filter(|r| !is_of(&r.name, &intent.base)) {
        theirs.add((rule.protocol, rule.frontend_port), rule);
    }
    let translated = translated(balancer, frontend);
    let mut own = Listeners::default();
    for wish in &intent.rules {
        let (protocol, port) = signature(&wish.kind);
        let before = own.find((protocol, port)).map(|kind| name::rule(intent, kind, family));
        own.add((protocol, port), &wish.kind);
        let by = theirs.find((protocol, port)).filter(|_| before.is_none());
        let clash = by.map(|rule| user(draft, intent, rule));
        let nat = translated.iter().find(|f| {
            f.ports.is_some_and(|(by, from, to)| {
                let at = if (from..=to).contains(&port) { port } else { from };
                overlaps((by, at), (protocol, port))
            })
        });
        let nat = nat.map(|_| "an inbound NAT rule".to_owned());
        if let Some(taken) = before.or(clash).or(nat) {
            let message = format!(
                "port {{value}} of frontend {frontend} of {} is used by {taken}; use a free one",
                balancer.id.name()
            );
            let port = port.to_string();
            return Some((Finding::refusal("PortTaken", "spec.ports", &port, &message), by));
        }
    }
    None
}

/// The user of a rule, for a message: the Service by name only within the asker's namespace.
fn user(draft: &Draft<'_>, asker: &Intent, rule: &Rule) -> String {
    let owner = draft.owner_of(&rule.name).and_then(|uid| draft.cases.get(uid));
    let owner = owner.map(|case| &case.service.name);
    let near = owner.filter(|name| name.namespace == asker.name.namespace);
    near.map_or_else(|| rule.name.to_string(), |name| format!("Service {name}"))
}

/// Rules and pools of inbound NAT on a frontend.
fn translated<'b>(balancer: View<'b>, frontend: &str) -> Vec<&'b ForeignRule> {
    let all = &balancer.whole().foreign;
    if all.is_empty() {
        return Vec::new();
    }
    let id = balancer.id.child("frontendIPConfigurations", frontend);
    let inbound =
        |f: &&ForeignRule| f.collection != ForeignCollection::Outbound && f.frontends.contains(&id);
    all.iter().filter(inbound).collect()
}

fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use crate::plan;
    use fixture::{policy, service, world};
    use model::azure::{
        ForeignCollection, ForeignRule, LoadBalancer, Rule, RuleProtocol, SecurityRule, Sku,
    };
    use model::kubernetes::{Node, Service, ServicePort};
    use model::policy::{BalancerSku, PoolKind};
    use model::world::Fact;
    use model::{NodeName, Policy, ServiceName, ServiceUid, World};
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
        assert_eq!(plan_check::check(world, policy, &plan), []);
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
    fn a_full_load_balancer_is_shared_by_namespaces() {
        let policy = Policy { security_group_name: "".into(), ..policy() };
        let mut world = crowded(1_300, 1);
        let sample = Service::clone(&world.kubernetes.services[&service(&[]).uid]);
        world.kubernetes.services.clear();
        let mut add = |namespace: &str, n: u16, ports: u16| {
            let uid = ServiceUid::new(format!("{n:08x}-1111-4222-8333-0123456789ab"));
            let name = ServiceName::new(namespace, format!("web-{n}"));
            let port = |k: u16| ServicePort {
                name: format!("p{k}").into(),
                port: 1_000 + k,
                node_port: Some(30_000 + n * 50 + k),
                ..sample.ports[0].clone()
            };
            let ports = (0..ports).map(port).collect();
            let ingress = Vec::new();
            let more = Service { uid: uid.clone(), name, ports, ingress, ..sample.clone() };
            world.kubernetes.services.insert(uid, Arc::new(more));
        };
        (1..9).for_each(|n| add("aaa", n, 40));
        (9..13).for_each(|n| add("zzz", n, 20));
        let (world, report) = explain::forecast::settle(world, &policy);
        let refused = |namespace: &str| {
            let of = report.services.values().filter(|s| &*s.name.namespace == namespace);
            of.flat_map(|s| &s.findings).map(|f| (f.rule, f.message.to_string())).collect()
        };
        let (greedy, small): (Vec<_>, Vec<_>) = (refused("aaa"), refused("zzz"));
        assert_eq!(small, []);
        assert_eq!(greedy.len(), 5, "{greedy:?}");
        assert_eq!(greedy[0].0, "LoadBalancerRuleLimit");
        let who = "namespaces with most rules: aaa 120, zzz 80";
        assert!(greedy.iter().any(|(_, allowed)| allowed.contains(who)), "{greedy:?}");
        let all = world.azure.balancers.known().expect("listed");
        assert_eq!(all.values().next().expect("one").rules.len(), 1_500);
    }

    /// Port 80 is the Service's.
    #[test]
    fn inbound_nat_of_all_protocols_takes_its_ports_of_each() {
        let with = |protocol: RuleProtocol, from: u16, to: u16| {
            let mut world = world();
            let all = world.azure.balancers.known_mut().expect("listed");
            let balancer = Arc::make_mut(all.values_mut().next().expect("one"));
            let frontend = balancer.frontends[0].name.clone();
            balancer.foreign.push(ForeignRule {
                collection: ForeignCollection::NatRule,
                frontends: vec![balancer.id.child("frontendIPConfigurations", &frontend)],
                ports: Some((protocol, from, to)),
                body: "theirs".to_owned().into(),
            });
            refused(&world, &policy())
        };
        for protocol in [RuleProtocol::Tcp, RuleProtocol::All] {
            assert_eq!(with(protocol, 80, 80), ["PortTaken"], "{protocol:?}");
            assert_eq!(with(protocol, 70, 90), ["PortTaken"], "{protocol:?}");
            assert_eq!(with(protocol, 81, 90), Vec::<&str>::new(), "{protocol:?}");
        }
        assert_eq!(with(RuleProtocol::Udp, 80, 80), Vec::<&str>::new());
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
        let cases =
            [(Sku::Standard, BalancerSku::Standard, 1_000), (Sku::Basic, BalancerSku::Basic, 300)];
        for (sku, config, most) in cases {
            for pools in [PoolKind::NodeIp, PoolKind::NodeNic] {
                if (sku, pools) == (Sku::Basic, PoolKind::NodeIp) {
                    // The config is refused: pools of addresses are Standard's.
                    continue;
                }
                let none = "".into();
                let policy = Policy { security_group_name: none, pools, sku: config, ..policy() };
                let with = |nodes: u32| {
                    let mut world = crowd(nodes);
                    let all = world.azure.balancers.known_mut().expect("listed");
                    Arc::make_mut(all.values_mut().next().expect("one")).sku = sku;
                    for ip in world.azure.public_ips.values_mut().filter_map(Fact::known_mut) {
                        ip.values_mut().for_each(|ip| Arc::make_mut(ip).sku = sku);
                    }
                    refused(&world, &policy)
                };
                assert_eq!(with(most), Vec::<&str>::new(), "{pools:?} {sku:?}");
                assert_eq!(with(most + 5), ["PoolAddressLimit"], "{pools:?} {sku:?}");
            }
        }
    }

    /// So many nodes.
    fn crowd(nodes: u32) -> World {
        let mut world = world();
        let sample = Node::clone(world.kubernetes.nodes.values().next().expect("one"));
        for n in 1..nodes {
            let name = NodeName::new(format!("more{n:06}"));
            let addresses = vec![Ipv4Addr::from(0x0AE1_0004 + n).into()];
            let node = Node { name: name.clone(), addresses, ..sample.clone() };
            world.kubernetes.nodes.insert(name, Arc::new(node));
        }
        world
    }

    #[test]
    fn what_a_security_group_takes() {
        let with = |rules: u16, prefixes: u32| {
            let mut world = world();
            let any = || BTreeSet::from([Arc::from("*")]);
            let theirs = |n: u16| SecurityRule {
                direction: "Outbound".into(),
                sources: any(),
                destinations: (0..prefixes)
                    .map(|n| Arc::from(Ipv4Addr::from(n).to_string()))
                    .collect(),
                ports: any(),
                ..fixture::security_rule(&format!("theirs-{n}"), 100 + n, "*")
            };
            let group = fixture::security_group((0..rules).map(theirs).collect());
            world.azure.security_group = Fact::Known(Some(Arc::new(group)));
            refused(&world, &policy())
        };
        assert_eq!(with(999, 1), Vec::<&str>::new());
        assert_eq!(with(1_000, 1), ["SecurityRuleLimit"]);
        assert_eq!(with(1, 3_999), Vec::<&str>::new());
        assert_eq!(with(1, 4_000), ["SecurityRuleLimit"]);
    }
}
