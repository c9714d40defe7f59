use super::*;
use crate::own::name::is_of;
use crate::shape::body::Body;
use model::azure::{ForeignCollection, ForeignRule};
use model::world::Fact;
use proptest::prelude::*;
use std::collections::BTreeSet;

const BASES: [&str; 3] = [
    "a000000011111422283330123456789a",
    "A000000011111422283330123456789B",
    "b000000011111422283330123456789a",
];

/// Few names, so that many are equal but for the letters' case, or are not of any Service.
fn part() -> impl Strategy<Value = String> {
    let tail = prop::sample::select(vec!["", "-TCP-80", "-tcp-80", "-UDP-53", "x"]);
    let base = prop::sample::select(BASES.to_vec());
    (base, tail, any::<bool>()).prop_map(|(base, tail, upper)| {
        let name = format!("{base}{tail}");
        if upper { name.to_uppercase() } else { name }
    })
}

fn ip(n: u8, cased: bool) -> ResourceId {
    let group = if cased { "RG" } else { "rg" };
    ResourceId::new(format!("/subscriptions/s/resourceGroups/{group}{}/x/y/ip-{}", n / 3, n % 3))
}

prop_compose! {
    fn frontend()(name in part(), n in 0u8..7, cased in any::<bool>()) -> Frontend {
        let address = match n {
            6 => FrontendAddress::Other,
            n => FrontendAddress::Public(ip(n, cased)),
        };
        Frontend { name: name.into(), address, ..fixture::balancer().frontends[0].clone() }
    }
}

prop_compose! {
    fn rule()(name in part(), to in part(), kind in 0u8..4, port in 80u16..83) -> Rule {
        let rule = fixture::balancer().rules[0].clone();
        let id = fixture::balancer().id;
        let frontend = match kind {
            0 => None,
            1 => Some(id.child("elsewhere", &to)),
            _ => Some(id.child("frontendIPConfigurations", &to)),
        };
        let protocol = if kind == 3 { RuleProtocol::Udp } else { RuleProtocol::Tcp };
        Rule { name: name.into(), protocol, frontend, backend_port: port, ..rule }
    }
}

prop_compose! {
    fn balancer()(
        frontends in prop::collection::vec(frontend(), 0..8),
        rules in prop::collection::vec(rule(), 0..8),
        probes in prop::collection::vec(part(), 0..8),
    ) -> LoadBalancer {
        let probe = fixture::balancer().probes[0].clone();
        let named = |name: String| Probe { name: name.into(), ..probe.clone() };
        let probes = probes.into_iter().map(named).collect();
        LoadBalancer { frontends, rules, probes, ..fixture::balancer() }
    }
}

proptest! {
    #[test]
    fn what_is_found_is_what_a_walk_finds(balancer in balancer(), name in part(), n in 0u8..6) {
        let parts = Parts::of(&balancer);
        let view = View::new(&balancer, &parts);
        let LoadBalancer { frontends, rules, probes, .. } = &balancer;
        prop_assert_eq!(view.frontend(&name), frontends.iter().find(|f| same(&f.name, &name)));
        prop_assert_eq!(view.rule(&name), rules.iter().find(|r| same(&r.name, &name)));
        prop_assert_eq!(view.probe_at(&name), probes.iter().position(|p| same(&p.name, &name)));
        let at = balancer.id.child("frontendIPConfigurations", &name);
        let led = rules.iter().filter(|r| r.frontend.as_ref() == Some(&at));
        prop_assert_eq!(view.rules_to(&name), led.collect::<Vec<_>>());
        for base in BASES {
            let of: Vec<_> = frontends.iter().filter(|f| is_of(&f.name, base)).collect();
            prop_assert_eq!(view.frontends_of(base), of);
            let of: Vec<_> = rules.iter().filter(|r| is_of(&r.name, base)).collect();
            prop_assert_eq!(view.rules_of(base), of);
            let counts = (view.rules_of(base).len(), view.frontends_of(base).len());
            prop_assert_eq!(view.count_of(base_number(base)), counts);
            let of: Vec<_> = probes.iter().filter(|p| is_of(&p.name, base)).collect();
            prop_assert_eq!(view.probes_of(base), of);
        }
        let shares = view.shares();
        let all = frontends.iter().map(|f| &f.name).chain(rules.iter().map(|r| &r.name));
        let all = all.chain(probes.iter().map(|p| &p.name));
        let bases: BTreeSet<u128> = all.filter_map(|name| base_number(name)).collect();
        prop_assert!(shares.iter().map(|share| share.base).eq(bases));
        for share in shares {
            prop_assert_eq!(base_number(share.part), Some(share.base));
            prop_assert_eq!(view.count_of(Some(share.base)), (share.rules, share.frontends));
        }
        let on = |f: &Frontend| match &f.address {
            FrontendAddress::Public(id) => Some(id.clone()),
            _ => None,
        };
        let ips: Vec<ResourceId> = frontends.iter().filter_map(on).collect();
        let once = ips.iter().collect::<BTreeSet<_>>().len() == ips.len();
        prop_assert!(once || view.may_share_ips());
        let ip = ip(n, true);
        let on = |f: &&Frontend| matches!(&f.address, FrontendAddress::Public(id) if *id == ip);
        prop_assert_eq!(view.frontends_on(&ip), frontends.iter().filter(on).collect::<Vec<_>>());
        let ports = [(RuleProtocol::Tcp, 80), (RuleProtocol::Udp, 82)];
        let at = rules.iter().filter(|r| ports.contains(&backend(r)));
        prop_assert_eq!(view.rules_at(&ports), at.collect::<Vec<_>>());
    }

    #[test]
    fn what_differs_makes_of_one_list_the_other(
        a in prop::collection::vec(0u8..3, 0..6),
        b in prop::collection::vec(0u8..3, 0..6),
    ) {
        let (x, y) = differing(&a, &b);
        let begin = a.iter().zip(&b).take_while(|(a, b)| a == b).count();
        let end = &a[begin + x.len()..];
        prop_assert_eq!([&a[..begin], x, end].concat(), a.clone());
        prop_assert_eq!([&a[..begin], y, end].concat(), b.clone());
        prop_assert_eq!(a == b, x.is_empty() && y.is_empty());
    }

    #[test]
    fn what_is_edited_is_found_where_it_is(
        balancer in balancer(),
        frontends in prop::collection::vec(frontend(), 0..4),
        rules in prop::collection::vec(rule(), 0..4),
        probes in prop::collection::vec(part(), 0..4),
    ) {
        let probe = fixture::balancer().probes[0].clone();
        let mut body = Body::new(balancer);
        frontends.into_iter().for_each(|frontend| body.put_frontend(frontend));
        rules.into_iter().for_each(|rule| body.put_rule(rule));
        for name in probes {
            body.put_probe(Probe { name: name.into(), ..probe.clone() });
        }
        let found = body.view().parts().clone();
        prop_assert_eq!(found, Parts::of(&body.finish()));
    }

    #[test]
    fn a_public_ip_is_found_by_its_id(all in prop::collection::vec((0u8..9, any::<bool>()), 0..9)) {
        let mut world = World::default();
        let mut index = Index::new();
        for (n, cased) in all {
            let id = ip(n, cased);
            let group = id.group().expect("it has one");
            let list = world.azure.public_ips.entry(group).or_insert(Fact::Known(BTreeMap::new()));
            let new = PublicIp { id: id.clone(), ..fixture::public_ip("ip", None) };
            list.known_mut().expect("read").insert(id, Arc::new(new));
            index.renew(&world);
            for id in (0..9).map(|n| ip(n, true)) {
                let facts = world.azure.public_ips.values().filter_map(Fact::known);
                let there = facts.flat_map(BTreeMap::values).find(|ip| ip.id == id);
                prop_assert_eq!(index.public_ip(&id), there);
            }
        }
    }

    #[test]
    fn what_is_remembered_is_what_is_found(all in prop::collection::vec(balancer(), 0..6)) {
        let mut world = World::default();
        let mut index = Index::new();
        for (n, balancer) in all.into_iter().enumerate() {
            let mut there = world.azure.balancers.known().cloned().unwrap_or_default();
            let id = ResourceId::new(format!("{}{}", balancer.id, n % 3));
            there.insert(id.clone(), Arc::new(LoadBalancer { id, ..balancer }));
            if n % 4 == 3 {
                there.pop_first();
            }
            world.azure.balancers = Fact::Known(there.clone());
            index.renew(&world);
            prop_assert_eq!(index.all().count(), there.len());
            for (id, balancer) in &there {
                let view = index.get(id).expect("it is there");
                prop_assert_eq!(view.whole(), &**balancer);
                prop_assert_eq!(view.parts(), &Parts::of(balancer));
            }
        }
    }
}

/// Azure takes letters of every script there, and answers in those of whoever asked.
#[test]
fn a_public_ip_is_found_whatever_the_letters_of_its_resource_group_are() {
    let ip = |group: &str| {
        let kind = "providers/Microsoft.Network/publicIPAddresses";
        ResourceId::new(format!("/subscriptions/s/resourceGroups/{group}/{kind}/ip"))
    };
    let on = |group: &str| {
        let address = FrontendAddress::Public(ip(group));
        Frontend { address, ..fixture::balancer().frontends[0].clone() }
    };
    let frontends = vec![on("\u{440}\u{44f}\u{434}"), on("\u{420}\u{42f}\u{414}")];
    let balancer = LoadBalancer { frontends, ..fixture::balancer() };
    let parts = Parts::of(&balancer);
    let view = View::new(&balancer, &parts);
    for group in ["\u{440}\u{44f}\u{434}", "\u{420}\u{42f}\u{414}"] {
        assert_eq!(view.frontends_on(&ip(group)).len(), 2, "{group}");
    }
    assert!(view.may_share_ips());
}

/// Azure refuses a load balancer whose outbound rule names a frontend that it lacks.
#[test]
fn a_frontend_that_an_outbound_rule_names_is_used() {
    let mut balancer = LoadBalancer { rules: Vec::new(), ..fixture::balancer() };
    let name = Arc::clone(&balancer.frontends[0].name);
    let is_used = |balancer: &LoadBalancer| {
        let parts = Parts::of(balancer);
        View::new(balancer, &parts).is_used(&name)
    };
    assert!(!is_used(&balancer), "nothing refers to it");
    let frontend = balancer.id.child("frontendIPConfigurations", &name);
    balancer.foreign.push(ForeignRule {
        collection: ForeignCollection::Outbound,
        frontends: vec![frontend],
        ports: None,
        body: Default::default(),
    });
    assert!(is_used(&balancer));
}
