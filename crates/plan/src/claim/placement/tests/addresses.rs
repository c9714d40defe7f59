//! Addresses that Services on several load balancers insist on, and what is not read yet.

use super::{change, on, policy, pool, service, settle, two, uid, with_subnet as world};
use crate::ask::annotation::PREFIX;
use model::azure::{FrontendAddress, LoadBalancer};
use model::kubernetes::{Ingress, SERVICE_FINALIZER, Service, TrafficPolicy, Wish};
use model::policy::Layout;
use model::report::{ServiceReport, State, Until, Wait};
use model::world::{Fact, InFlight, Need};
use model::{Family, Group, Policy, World};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

const INTERNAL: (&str, &str) = ("azure-load-balancer-internal", "true");
const PINNED: (&str, &str) = ("azure-load-balancer-ipv4", "10.0.200.9");
const ANOTHER: (&str, &str) = ("azure-load-balancer-ipv4", "10.0.200.10");
const SET: (&str, &str) = ("azure-load-balancer-mode", "vmss2");
const FIRST: (&str, &str) = ("azure-load-balancer-configurations", "kubernetes");
const SECOND: (&str, &str) = ("azure-load-balancer-configurations", "lb2");

fn claimed(n: u8, annotations: &[(&str, &str)]) -> Service {
    let annotations =
        annotations.iter().map(|(k, v)| (Arc::from(format!("{PREFIX}{k}")), Arc::from(*v)));
    let finalizers = vec![SERVICE_FINALIZER.into()];
    Service { annotations: Arc::new(annotations.collect()), finalizers, ..service(n) }
}

/// On another port than the others are.
fn beside(service: Service) -> Service {
    let mut ports = service.ports.clone();
    (ports[0].port, ports[0].node_port) = (443, Some(30443));
    Service { ports, ..service }
}

/// Its status tells an address.
fn telling(address: &str, service: Service) -> Service {
    Service { ingress: vec![Ingress { ip: Some(address.into()), hostname: None }], ..service }
}

fn per_set() -> Policy {
    policy(Layout::PerNodeSet { without_own: Vec::new() })
}

/// The Service's report; nothing is written to Azure.
fn idle(world: &World, policy: &Policy, n: u8) -> Arc<ServiceReport> {
    let (plan, report) = crate::plan(world, policy);
    assert_eq!(plan.changes, []);
    Arc::clone(&report.services[&uid(n)])
}

fn assert_refused(report: &ServiceReport, rule: &str, message: &str) {
    assert_eq!(report.state, State::Refused, "{report:#?}");
    let [finding] = &report.findings[..] else { panic!("{:#?}", report.findings) };
    assert_eq!((finding.rule, &*finding.message), (rule, message));
}

/// It names a public IP for one family; for the other one Ballast makes it.
#[test]
fn a_service_that_may_not_be_where_its_public_ip_is_learns_which_one() {
    let six = ("azure-pip-name-ipv6", "six");
    let first = Service { families: vec![Family::V6], ..claimed(1, &[six]) };
    let mut world = world(vec![first]);
    let ip = fixture::public_ip("six", Some("2603::6".parse().expect("an address")));
    let ip = model::azure::PublicIp { tags: None, family: Family::V6, ..ip };
    let all = BTreeMap::from([(ip.id.clone(), Arc::new(ip))]);
    world.azure.public_ips.insert(Group::new("rg"), Fact::Known(all));
    let mut configs = two();
    let open = policy(Layout::Several(configs.clone()));
    let (mut world, _) = explain::forecast::settle(world, &open);
    assert_eq!(on(&world, "kubernetes"), [1]);
    configs[0].placement = model::policy::Placement::Closed;
    let families = vec![Family::V4, Family::V6];
    change(&mut world, beside(Service { families, ..claimed(2, &[six]) }));
    let (_, report) = crate::plan(&world, &policy(Layout::Several(configs)));
    let findings = &report.services[&uid(2)].findings;
    let found = findings.iter().find(|f| f.rule == "PinnedLoadBalancerNotEligible");
    let found = found.unwrap_or_else(|| panic!("{findings:#?}"));
    assert_eq!((&*found.key, &*found.value), (&*format!("{PREFIX}{}", six.0), six.1));
}

/// Nodes would move to its load balancer, and back once it is refused.
#[test]
fn nodes_stay_until_it_is_known_whether_a_new_service_is_refused() {
    let policy = policy(Layout::Several(two()));
    let group = ("azure-load-balancer-resource-group", "other");
    let subnet = ("azure-load-balancer-internal-subnet", "unread");
    let other = Need::PublicIps(Group::new("other"));
    let unread = Need::Subnet(policy.subnet_id("unread"));
    for (wishes, need) in [(&[group, SECOND][..], other), (&[INTERNAL, subnet, SECOND], unread)] {
        let mut world = world(vec![service(1)]);
        settle(&mut world, &policy);
        assert_eq!(pool(&world, "kubernetes", "kubernetes").len(), 4);
        change(&mut world, claimed(2, wishes));
        let (plan, report) = crate::plan(&world, &policy);
        assert_eq!(plan.changes, []);
        assert!(report.needs.contains(&need), "{:?}", report.needs);
    }
}

/// Its load balancer would have taken nodes from the others.
#[test]
fn nodes_stay_where_they_are_when_a_new_service_is_refused() {
    let policy = policy(Layout::Several(two()));
    let mut world = world(vec![claimed(1, &[INTERNAL])]);
    settle(&mut world, &policy);
    assert_eq!(pool(&world, "kubernetes-internal", "kubernetes").len(), 4);
    let outside = ("azure-load-balancer-ipv4", "10.9.9.9");
    change(&mut world, claimed(2, &[INTERNAL, outside]));
    assert_refused(
        &idle(&world, &policy, 2),
        "PinnedAddressUnusable",
        "must be an address in subnet nodes",
    );
}

#[test]
fn a_local_service_without_rules_has_no_pool() {
    let policy = policy(Layout::Several(two()));
    let ruleless = claimed(1, &[("port_80_no_lb_rule", "true")]);
    let local = Service { traffic_policy: TrafficPolicy::Local, ..ruleless };
    let mut world = world(vec![local]);
    settle(&mut world, &policy);
    assert_eq!(on(&world, "kubernetes"), [1]);
    let pools = &super::balancer(&world, "kubernetes").expect("there").pools;
    assert!(pools.iter().all(|pool| &*pool.name == "kubernetes"), "{pools:#?}");
}

#[test]
fn an_address_that_others_keep_on_another_balancer_is_refused_and_taken_when_it_is_free() {
    let policy = per_set();
    let mut world = world(vec![claimed(1, &[INTERNAL, SET, PINNED]), claimed(2, &[INTERNAL])]);
    settle(&mut world, &policy);
    assert_eq!(on(&world, "kubernetes-internal"), [2]);
    change(&mut world, claimed(2, &[INTERNAL, PINNED]));
    let message =
        "must be an address in subnet nodes that is free; load balancer vmss2-internal has it";
    assert_refused(&idle(&world, &policy, 2), "PinnedAddressUnusable", message);
    change(&mut world, claimed(1, &[INTERNAL, SET, ANOTHER]));
    settle(&mut world, &policy);
    let report = idle(&world, &policy, 2);
    assert_eq!(report.addresses, [Arc::from(PINNED.1)]);
}

/// It has parts on both load balancers then, and its former address is given up already.
#[test]
fn a_service_on_its_way_to_a_shared_address_is_not_turned_back() {
    let policy = policy(Layout::Several(two()));
    let mut world = world(vec![beside(claimed(2, &[INTERNAL, ANOTHER]))]);
    settle(&mut world, &policy);
    change(&mut world, claimed(1, &[INTERNAL, PINNED]));
    settle(&mut world, &policy);
    assert_eq!((on(&world, "kubernetes-internal"), on(&world, "lb2-internal")), (vec![2], vec![1]));
    change(&mut world, beside(claimed(2, &[INTERNAL, PINNED])));
    let (plan, _) = crate::plan(&world, &policy);
    let joins = |change: &&Arc<model::plan::Change>| change.target.name() == "lb2-internal";
    let join = plan.changes.iter().find(joins).expect("it joins the other load balancer");
    super::carry_out(&mut world, join);
    assert_eq!(on(&world, "kubernetes-internal"), [2], "and has not left the former one");
    let (_, report) = crate::plan(&world, &policy);
    assert_eq!(report.services[&uid(2)].findings, []);
    settle(&mut world, &policy);
    assert!(super::balancer(&world, "kubernetes-internal").is_none());
}

#[test]
fn two_balancers_that_are_made_at_once_do_not_both_get_an_address() {
    let policy = per_set();
    let mut world =
        world(vec![claimed(1, &[INTERNAL, SET, PINNED]), claimed(2, &[INTERNAL, PINNED])]);
    settle(&mut world, &policy);
    assert_eq!(on(&world, "kubernetes-internal"), [2]);
    assert!(on(&world, "vmss2-internal").is_empty());
    let message =
        "must be an address in subnet nodes that is free; load balancer kubernetes-internal has it";
    assert_refused(&idle(&world, &policy, 1), "PinnedAddressUnusable", message);
}

#[test]
fn a_public_ip_that_others_keep_on_another_balancer_is_refused() {
    let policy = per_set();
    let brought = ("azure-pip-name", "brought");
    let mut world = world(vec![claimed(1, &[SET, brought])]);
    let ip = fixture::public_ip("brought", Some([20, 9, 9, 9].into()));
    let ip = model::azure::PublicIp { tags: None, ..ip };
    let all = BTreeMap::from([(ip.id.clone(), Arc::new(ip))]);
    world.azure.public_ips.insert(Group::new("rg"), Fact::Known(all));
    settle(&mut world, &policy);
    assert_eq!(on(&world, "vmss2"), [1]);
    change(&mut world, claimed(2, &[brought]));
    let message = "must be a public IP that is free; brought is on load balancer vmss2";
    assert_refused(&idle(&world, &policy, 2), "PublicIpInUse", message);
}

/// It would have left the load balancer it is on for one that cannot have the address.
#[test]
fn a_service_goes_to_the_balancer_that_has_the_address_it_is_to_share() {
    let policy = policy(Layout::Several(two()));
    let first = vec![claimed(1, &[INTERNAL, PINNED]), claimed(2, &[SECOND])];
    let mut world = world(first);
    settle(&mut world, &policy);
    assert_eq!((on(&world, "kubernetes-internal"), on(&world, "lb2")), (vec![1], vec![2]));
    change(&mut world, claimed(2, &[INTERNAL, PINNED]));
    let report = idle(&world, &policy, 2);
    assert_eq!((report.state, report.findings[0].rule), (State::RefusedServing, "PortTaken"));
    let message = &report.findings[0].message;
    assert!(message.contains("is used by Service default/web-1;"), "{message}");
    change(&mut world, beside(claimed(2, &[INTERNAL, PINNED])));
    settle(&mut world, &policy);
    assert_eq!((on(&world, "kubernetes-internal"), on(&world, "lb2")), (vec![1], vec![]));
    let report = idle(&world, &policy, 2);
    assert_eq!(report.addresses, [Arc::from(PINNED.1)]);
    assert_eq!(report.state, State::Waiting, "its status is to be written");
}

/// A process died with a write under way, its successor placed the Service elsewhere, and then the
/// write came after all: the address that people were told of stays, wherever it is.
#[test]
fn a_service_on_two_balancers_keeps_the_one_that_its_status_tells_of() {
    let policy = policy(Layout::Several(two()));
    let places = [("kubernetes-internal", [10, 0, 200, 1]), ("lb2-internal", [10, 0, 200, 2])];
    for (name, address) in places {
        let mut world = world(vec![claimed(1, &[INTERNAL])]);
        settle(&mut world, &policy);
        let one = super::balancer(&world, places[0].0).expect("there");
        let stand = |(name, address): (&str, [u8; 4])| {
            let mut copy = LoadBalancer::clone(one);
            copy.id = policy.balancer_id(name);
            for rule in &mut copy.rules {
                for id in [&mut rule.frontend, &mut rule.pool, &mut rule.probe] {
                    let Some(of_one) = id.take() else { continue };
                    let parts: Vec<&str> = of_one.as_str().rsplit('/').take(2).collect();
                    let [part, collection] = parts[..] else { panic!("{of_one} is no part") };
                    *id = Some(copy.id.child(collection, part));
                }
            }
            for frontend in &mut copy.frontends {
                if let FrontendAddress::Private { address: at, .. } = &mut frontend.address {
                    *at = Some(address.into());
                }
            }
            (copy.id.clone(), Arc::new(copy))
        };
        let both: BTreeMap<_, _> = places.into_iter().map(stand).collect();
        world.azure.balancers = Fact::Known(both);
        let told: IpAddr = address.into();
        let ingress = vec![Ingress { ip: Some(told.to_string().into()), hostname: None }];
        change(&mut world, Service { ingress, ..claimed(1, &[INTERNAL]) });
        settle(&mut world, &policy);
        assert_eq!(on(&world, name), [1]);
        let report = idle(&world, &policy, 1);
        assert_eq!(report.addresses, [Arc::from(told.to_string())]);
    }
}

/// Between two load balancers nobody has the address, and Azure gives it to the next frontend that
/// asks for any.
#[test]
fn who_asks_for_any_private_address_waits_for_one_that_moves() {
    for (newcomer, at) in [("kubernetes", [vec![3], vec![1, 2]]), ("lb2", [vec![], vec![1, 2, 3]])]
    {
        let (policy, mut world) = one_moves_and_another_comes(newcomer);
        let (plan, report) = crate::plan(&world, &policy);
        let waits = &report.services[&uid(3)].waits;
        assert!(waits.contains(&written(&policy)), "{waits:#?}");
        let one = policy.balancer_id("kubernetes-internal");
        assert!(plan.changes.iter().any(|change| change.target == one), "it lets go at once");
        settle(&mut world, &policy);
        assert_eq!(["kubernetes-internal", "lb2-internal"].map(|name| on(&world, name)), at);
    }
}

/// Azure keeps the address where it is. What comes to that load balancer would come with the write
/// that releases it.
#[test]
fn a_load_balancer_that_cannot_be_written_delays_nothing_on_others() {
    for (newcomer, waits) in [("kubernetes", true), ("lb2", false)] {
        let (policy, mut world) = one_moves_and_another_comes(newcomer);
        let failing = InFlight { attempt: 3, ..fixture::in_flight([]) };
        world.in_flight.insert(policy.balancer_id("kubernetes-internal"), failing);
        let (_, report) = crate::plan(&world, &policy);
        let report = &report.services[&uid(3)];
        assert_eq!(report.waits.contains(&written(&policy)), waits, "{report:#?}");
    }
}

fn written(policy: &Policy) -> Wait {
    Wait::Resource { id: policy.balancer_id("lb2-internal"), until: Until::Written }
}

/// The first Service moves from one load balancer to the other, and the third one comes.
fn one_moves_and_another_comes(newcomer: &str) -> (Policy, World) {
    let policy = policy(Layout::Several(two()));
    let mut world = world(vec![claimed(1, &[INTERNAL, FIRST]), claimed(2, &[INTERNAL, SECOND])]);
    settle(&mut world, &policy);
    let told: IpAddr = [10, 0, 200, 9].into();
    let balancers = world.azure.balancers.known_mut().expect("read");
    for balancer in balancers.values_mut().filter(|b| b.id.name() == "kubernetes-internal") {
        let FrontendAddress::Private { address, .. } =
            &mut Arc::make_mut(balancer).frontends[0].address
        else {
            panic!("a private one")
        };
        *address = Some(told);
    }
    change(&mut world, telling(PINNED.1, claimed(1, &[INTERNAL, SECOND])));
    let newcomer = ("azure-load-balancer-configurations", newcomer);
    change(&mut world, beside(claimed(3, &[INTERNAL, newcomer])));
    (policy, world)
}

/// They would wait for each other: neither address is on its way.
#[test]
fn two_services_that_leave_shared_addresses_for_each_others_load_balancers_both_come() {
    let policy = policy(Layout::Several(two()));
    let mut world = world(vec![
        telling(PINNED.1, claimed(1, &[INTERNAL, FIRST])),
        telling(ANOTHER.1, claimed(2, &[INTERNAL, SECOND])),
    ]);
    settle(&mut world, &policy);
    let guest = |n: u8, address: &str, annotations: &[(&str, &str)]| {
        let service = telling(address, claimed(n, annotations));
        let mut ports = service.ports.clone();
        (ports[0].port, ports[0].node_port) = (440 + u16::from(n), Some(30440 + u16::from(n)));
        Service { ports, ..service }
    };
    change(&mut world, guest(3, PINNED.1, &[INTERNAL, PINNED]));
    change(&mut world, guest(4, ANOTHER.1, &[INTERNAL, ANOTHER]));
    settle(&mut world, &policy);
    assert_eq!(idle(&world, &policy, 3).addresses, [Arc::from(PINNED.1)]);
    assert_eq!(idle(&world, &policy, 4).addresses, [Arc::from(ANOTHER.1)]);
    change(&mut world, guest(3, PINNED.1, &[INTERNAL, SECOND]));
    change(&mut world, guest(4, ANOTHER.1, &[INTERNAL, FIRST]));
    let mut unowned = world.clone();
    for service in [claimed(1, &[INTERNAL, FIRST]), claimed(2, &[INTERNAL, SECOND])] {
        change(&mut unowned, Service { wish: Wish::Nothing, ..service });
    }
    let (_, report) = crate::plan(&unowned, &policy);
    let awaited = [3, 4].map(|n| &report.services[&uid(n)].waits);
    let written = |wait: &&Wait| matches!(wait, Wait::Resource { until: Until::Written, .. });
    assert_eq!(awaited.into_iter().flatten().find(written), None, "the owners go as well");
    settle(&mut world, &policy);
    assert_eq!(
        (on(&world, "kubernetes-internal"), on(&world, "lb2-internal")),
        (vec![1, 4], vec![2, 3])
    );
}

/// Its load balancer was deleted by hand, and a node has got its address since.
#[test]
fn a_service_that_is_refused_for_its_address_delays_nothing() {
    let nodes = ("azure-load-balancer-ipv4", "10.0.50.1");
    let mut world = world(vec![telling(nodes.1, claimed(1, &[INTERNAL, SET, nodes]))]);
    assert_refused(
        &idle(&world, &per_set(), 1),
        "PinnedAddressUnusable",
        "must be an address in subnet nodes that is free; node vmss2-1 has it",
    );
    change(&mut world, beside(claimed(2, &[INTERNAL])));
    settle(&mut world, &per_set());
    assert_eq!(on(&world, "kubernetes-internal"), [2]);
}

/// The load balancer with the fewest rules is looked for when a Service comes, not when the set
/// that it stands on has no nodes any more.
#[test]
fn auto_stays_where_it_is_when_the_last_node_of_its_set_goes() {
    let auto = ("azure-load-balancer-mode", "__auto__");
    let first = ("azure-load-balancer-mode", "vmss1");
    let both = |world: &World| (on(world, "vmss2"), on(world, "vmss2-internal"));
    let mut world = world(vec![service(1), claimed(2, &[auto])]);
    change(&mut world, claimed(4, &[INTERNAL, first]));
    change(&mut world, claimed(5, &[INTERNAL, auto]));
    settle(&mut world, &per_set());
    assert_eq!(both(&world), (vec![2], vec![5]));
    world.kubernetes.nodes.retain(|name, _| name.as_str().starts_with("vmss1"));
    settle(&mut world, &per_set());
    assert_eq!(both(&world), (vec![2], vec![5]));
    change(&mut world, claimed(3, &[auto]));
    settle(&mut world, &per_set());
    assert_eq!(both(&world), (vec![2], vec![5]));
    assert_eq!(on(&world, "kubernetes"), [1, 3], "there are nodes of one set only");
    change(&mut world, claimed(5, &[auto]));
    settle(&mut world, &per_set());
    assert_eq!(both(&world), (vec![2], vec![]));
    assert_eq!(on(&world, "kubernetes"), [1, 3, 5], "public, it comes to a load balancer anew");
}

/// Azure would refuse the load balancer whole, with what others have on it.
#[test]
fn the_internal_load_balancer_of_a_set_is_no_set_for_public_services() {
    let inside = ("azure-load-balancer-mode", "kubernetes-internal");
    let mut world = world(vec![claimed(1, &[INTERNAL])]);
    settle(&mut world, &per_set());
    assert_eq!(on(&world, "kubernetes-internal"), [1]);
    change(&mut world, claimed(2, &[inside]));
    let report = idle(&world, &per_set(), 2);
    assert_eq!((report.state, report.findings[0].rule), (State::Refused, "UnknownNodeSet"));
}
