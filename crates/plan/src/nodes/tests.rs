//! Anything may happen to Services, to their public IPs and load balancers: what is remembered
//! between plans is compared with nothing after each step.

use crate::Planner;
use crate::shape::stage::{change, uid, world};
use explain::forecast::settle;
use model::azure::{LoadBalancer, Provisioning, PublicIp};
use model::kubernetes::{Affinity, Deletion, Service, ServicePort, Wish};
use model::policy::Layout;
use model::world::{Fact, InFlight};
use model::{Group, Policy, ServiceName, World};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// How many kinds of wishes there are.
const WISHES: u8 = 9;

#[derive(Clone, Debug)]
enum Happening {
    /// A Service asks for something, on a port.
    Ask(u16, u16, u8),
    /// Its owner deletes it.
    Leave(u16),
    /// It is gone, finalizer or not.
    Gone(u16),
    /// The last write of its public IP has failed, or was made again.
    Fail(u16),
    /// Others write a tag of its public IP.
    Tag(u16, u8),
    /// Others take its public IP away.
    Take(u16),
    /// Others take a rule, a probe or a frontend off a load balancer, or edit one.
    Spoil(usize, u8),
    /// A load balancer is being written.
    Fly(usize),
    /// Everything was read again.
    Read,
    /// What is planned is carried out, again and again.
    Settle,
}

fn happening() -> impl Strategy<Value = Happening> {
    use Happening as H;
    let n = || 1..5_u16;
    prop_oneof![
        8 => (n(), 80..83_u16, 0..WISHES).prop_map(|(n, port, wish)| H::Ask(n, port, wish)),
        1 => n().prop_map(H::Leave),
        1 => n().prop_map(H::Gone),
        1 => n().prop_map(H::Fail),
        2 => (n(), 0..4_u8).prop_map(|(n, tag)| H::Tag(n, tag)),
        1 => n().prop_map(H::Take),
        3 => (0..2_usize, 0..5_u8).prop_map(|(at, what)| H::Spoil(at, what)),
        1 => (0..2_usize).prop_map(H::Fly),
        1 => Just(H::Read),
        8 => Just(H::Settle),
    ]
}

fn service(n: u16, port: u16, wish: u8) -> Service {
    let other = format!("kubernetes-{}", uid(n % 4 + 1).base_name());
    let annotations: &[(&str, &str)] = match wish {
        2 => &[("azure-load-balancer-internal", "true")],
        3 => &[("azure-dns-label-name", "web")],
        4 => &[("azure-pip-name", &other)],
        5 => &[("azure-disable-load-balancer-floating-ip", "true")],
        6 => &[("azure-pip-tags", "a=b")],
        7 => &[("azure-allowed-ip-ranges", "20.3.0.0/16")],
        8 => &[("ballast.dev/pause", "true")],
        _ => &[],
    };
    let affinity = if wish == 1 { Affinity::ClientIp } else { Affinity::None };
    let service = fixture::claimed(fixture::service(annotations));
    let only = ServicePort { port, node_port: Some(30_000 + n), ..service.ports[0].clone() };
    let name = ServiceName::new("default", format!("web-{n}"));
    Service { uid: uid(n), name, ports: vec![only], affinity, ..service }
}

fn edit_ip(world: &mut World, n: u16, edit: impl FnOnce(&mut PublicIp)) {
    let base = uid(n).base_name();
    let ips = world.azure.public_ips.values_mut().filter_map(Fact::known_mut);
    let mut ips = ips.flat_map(BTreeMap::values_mut);
    if let Some(ip) = ips.find(|ip| ip.id.name().contains(&*base)) {
        edit(Arc::make_mut(ip));
    }
}

fn tag(ip: &mut PublicIp, tag: u8) {
    let tags = ip.tags.get_or_insert_default();
    match tag {
        0 => drop(tags.remove("k8s-azure-service")),
        1 => drop(tags.insert("k8s-azure-service".into(), "default/web-4,default/web-1".into())),
        2 => drop(tags.insert("k8s-azure-cluster-name".into(), "theirs".into())),
        _ => drop(tags.insert("cost".into(), "low".into())),
    }
}

fn spoil(balancer: &mut LoadBalancer, what: u8) {
    match what {
        0 => drop(balancer.rules.pop()),
        1 => drop(balancer.probes.pop()),
        2 => drop(balancer.frontends.pop()),
        3 => balancer.rules.iter_mut().for_each(|rule| rule.idle_timeout_min = Some(9)),
        _ => balancer.provisioning = Provisioning::Failed,
    }
}

fn happen(world: &mut World, policy: &Policy, happening: &Happening) {
    let azure = &mut world.azure;
    let mut balancers = azure.balancers.known_mut().into_iter().flat_map(BTreeMap::values_mut);
    match *happening {
        Happening::Ask(n, port, wish) => change(world, service(n, port, wish)),
        Happening::Leave(n) => {
            if let Some(service) = world.kubernetes.services.get_mut(&uid(n)) {
                let service = Arc::make_mut(service);
                (service.wish, service.deletion) = (Wish::Nothing, Deletion::Requested);
            }
        }
        Happening::Gone(n) => drop(world.kubernetes.services.remove(&uid(n))),
        Happening::Fail(n) => edit_ip(world, n, |ip| {
            ip.provisioning = match ip.provisioning {
                Provisioning::Succeeded => Provisioning::Failed,
                _ => Provisioning::Succeeded,
            };
        }),
        Happening::Tag(n, which) => edit_ip(world, n, |ip| tag(ip, which)),
        Happening::Take(n) => {
            let base = uid(n).base_name();
            for ips in azure.public_ips.values_mut().filter_map(Fact::known_mut) {
                ips.retain(|id, _| !id.name().contains(&*base));
            }
        }
        Happening::Spoil(at, what) => {
            balancers.nth(at).into_iter().for_each(|b| spoil(Arc::make_mut(b), what));
        }
        Happening::Fly(at) => {
            let id = balancers.nth(at).map(|balancer| balancer.id.clone());
            let (causes, addresses) = (BTreeSet::from([uid(1)]), Arc::default());
            let flight = InFlight { attempt: 1, causes, addresses, goes: false };
            world.in_flight.extend(id.map(|id| (id, flight)));
        }
        Happening::Read => {
            balancers.for_each(|b| *b = Arc::new(LoadBalancer::clone(b)));
            for ips in azure.public_ips.values_mut().filter_map(Fact::known_mut) {
                ips.values_mut().for_each(|ip| *ip = Arc::new(PublicIp::clone(ip)));
            }
        }
        Happening::Settle => {
            world.in_flight.clear();
            (*world, _) = settle(world.clone(), policy);
        }
    }
}

fn policy(divided: bool) -> Policy {
    let several = || {
        Layout::Several(vec![
            fixture::load_balancer_config("kubernetes", ""),
            fixture::load_balancer_config("other", ""),
        ])
    };
    let layout = if divided { several() } else { Layout::Single };
    Policy { private_link_group: Group::new("rg"), layout, ..fixture::policy() }
}

fn config() -> ProptestConfig {
    ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn what_is_remembered_is_what_is_planned_from_nothing(
        divided in any::<bool>(),
        happenings in prop::collection::vec(happening(), 1..24),
    ) {
        let policy = policy(divided);
        let mut world = world((1..4).map(|n| service(n, 80, 0)).collect());
        let mut planner = Planner::default();
        for happening in std::iter::once(&Happening::Settle).chain(&happenings) {
            happen(&mut world, &policy, happening);
            prop_assert_eq!(planner.plan(&world, &policy), crate::plan(&world, &policy));
            // Once more with another Service, so that not all of it is what it was.
            let mut beside = world.clone();
            change(&mut beside, service(4, 84, 0));
            prop_assert_eq!(planner.plan(&beside, &policy), crate::plan(&beside, &policy));
        }
    }
}
