//! Tests of placement: the whole way, from the first read to the last.

mod addresses;
mod confirm;
mod underway;

use crate::own;
use explain::forecast::forecast;
use fixture::{load_balancer_config as config, uid};
use model::azure::{AdminState, ForeignCollection, ForeignRule, LoadBalancer, Rule};
use model::kubernetes::{
    Endpoint, EndpointSlice, Node, Readiness, SERVICE_FINALIZER, Service, TrafficPolicy, Wish,
};
use model::plan::{Action, Resource};
use model::policy::{
    BalancerSku, Layout, LoadBalancerConfig, Placement as Admission, PoolKind, Selector,
};
use model::report::{State, Wait};
use model::world::{Fact, Kind, Need, VirtualMachine};
use model::{Family, Group, NodeName, Policy, ResourceId, ServiceName, World};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

fn policy(layout: Layout) -> Policy {
    Policy { layout, primary_set: "vmss1".into(), ..fixture::bare_policy() }
}

fn two() -> Vec<LoadBalancerConfig> {
    vec![config("kubernetes", "vmss1"), config("lb2", "vmss2")]
}

fn selector(key: &str, value: &str) -> Option<Selector> {
    let labels = BTreeMap::from([(Arc::from(key), Arc::from(value))]);
    Some(Selector { labels, expressions: Vec::new() })
}

fn service(n: u8) -> Service {
    fixture::numbered(n, &[])
}

fn annotated(n: u8, key: &str, value: &str) -> Service {
    fixture::numbered(n, &[(key, value)])
}

fn local(n: u8) -> Service {
    Service {
        traffic_policy: TrafficPolicy::Local,
        health_check_node_port: Some(32000),
        ..service(n)
    }
}

fn add_node(world: &mut World, set: &str, n: u8, labels: &[(&str, &str)]) {
    let third = set.bytes().last().unwrap_or(0);
    let machine = format!("virtualMachineScaleSets/{set}/virtualMachines/{n}");
    let id = format!("/subscriptions/s/resourceGroups/rg/providers/Microsoft.Compute/{machine}");
    let address = format!("10.0.{third}.{n}").parse().expect("an address");
    let node = Node {
        provider_id: Some(format!("azure://{id}").into()),
        labels: Arc::new(labels.iter().map(|(k, v)| (Arc::from(*k), Arc::from(*v))).collect()),
        ..fixture::node(&format!("{set}-{n}"), vec![address])
    };
    world.kubernetes.nodes.insert(node.name.clone(), Arc::new(node));
}

/// Everything has been read; two nodes in each of two sets.
fn world(services: Vec<Service>) -> World {
    let mut world = World::default();
    world.kubernetes.complete =
        [Kind::Services, Kind::Nodes, Kind::EndpointSlices, Kind::Namespaces].into();
    for service in services {
        change(&mut world, service);
    }
    for n in 1..=2 {
        add_node(&mut world, "vmss1", n, &[]);
        add_node(&mut world, "vmss2", n, &[]);
    }
    world.azure.balancers = Fact::Known(BTreeMap::new());
    world.azure.public_ips.insert(Group::new("rg"), Fact::Known(BTreeMap::new()));
    world.azure.zones = Fact::Known(Vec::new());
    world
}

/// The same, and the subnet of private addresses has been read.
fn with_subnet(services: Vec<Service>) -> World {
    let mut world = world(services);
    let subnet = fixture::subnet("nodes", "10.0.0.0/16");
    world.azure.private_links.insert(Group::new("rg"), Fact::Known(BTreeMap::new()));
    world.azure.subnets.insert(subnet.id.clone(), Fact::Known(Some(Arc::new(subnet))));
    world
}

fn change(world: &mut World, service: Service) {
    world.kubernetes.services.insert(service.uid.clone(), Arc::new(service));
}

/// Azure as it is after a change.
fn carry_out(world: &mut World, change: &model::plan::Change) {
    let azure = &mut world.azure;
    let addresses = azure.public_ips.get_mut(&Group::new("rg")).and_then(Fact::known_mut);
    let balancers = azure.balancers.known_mut().expect("read");
    match &change.action {
        Action::Put { after: Resource::LoadBalancer(b), .. } => {
            balancers.insert(b.id.clone(), Arc::clone(b));
        }
        Action::Delete { before: Resource::LoadBalancer(b) } => {
            balancers.remove(&b.id);
        }
        Action::Put { after: Resource::PublicIp(ip), .. } => {
            let mut ip = model::azure::PublicIp::clone(ip);
            let n = u8::from_str_radix(&ip.id.name()[12..20], 16).expect("a number");
            ip.address.get_or_insert([20, 0, 0, n].into());
            addresses.expect("read").insert(ip.id.clone(), Arc::new(ip));
        }
        Action::Delete { before: Resource::PublicIp(ip) } => {
            addresses.expect("read").remove(&ip.id);
        }
        other => panic!("not in these tests: {other:?}"),
    }
}

/// Carries everything out, and shows that nothing is left to do then.
fn settle(world: &mut World, policy: &Policy) {
    for change in &forecast(world, policy).changes {
        carry_out(world, change);
    }
    world.kubernetes.services.retain(|_, s| s.wish == Wish::LoadBalancer);
    for service in world.kubernetes.services.values_mut() {
        Arc::make_mut(service).finalizers = vec![SERVICE_FINALIZER.into()];
    }
    let (plan, _) = crate::plan(world, policy);
    assert!(plan.changes.is_empty(), "{:#?}", plan.changes);
}

/// The same from the start.
fn placed(layout: Layout, services: Vec<Service>) -> (Policy, World) {
    let (policy, mut world) = (policy(layout), world(services));
    settle(&mut world, &policy);
    (policy, world)
}

fn balancer<'w>(world: &'w World, name: &str) -> Option<&'w LoadBalancer> {
    let mut all = world.azure.balancers.known().expect("read").values();
    all.find(|b| b.id.name() == name).map(AsRef::as_ref)
}

/// Numbers of the Services on a load balancer.
fn on(world: &World, name: &str) -> Vec<u8> {
    let frontends = balancer(world, name).into_iter().flat_map(|b| &b.frontends);
    let mut all: Vec<u8> =
        frontends.map(|f| u8::from_str_radix(&f.name[1..9], 16).expect("a number")).collect();
    all.sort_unstable();
    all
}

/// Names of the nodes in a pool.
fn pool(world: &World, name: &str, pool: &str) -> Vec<String> {
    let pools = balancer(world, name).into_iter().flat_map(|b| &b.pools);
    let addresses = pools.filter(|p| *p.name == *pool).flat_map(|p| &p.addresses);
    addresses.map(|a| a.name.to_string()).collect()
}

fn slice(world: &mut World, n: u8, node: &str) {
    let endpoint = Endpoint {
        readiness: Readiness::NotReady,
        // kube-proxy leads there, whatever Pod it names.
        target: model::kubernetes::Target::Foreign,
        ..fixture::endpoint("10.244.0.1".parse().expect("an address"), node)
    };
    let slice = EndpointSlice {
        owner: Some(uid(n)),
        service: Some(ServiceName::new("default", format!("web-{n}"))),
        ..fixture::slice(&format!("web-{n}-{node}"), vec![endpoint])
    };
    world.kubernetes.slices.insert(slice.name.clone(), Arc::new(slice));
}

#[test]
fn services_fill_new_balancers_first_and_then_the_emptiest() {
    let (policy, mut world) =
        placed(Layout::Several(two()), vec![service(1), service(2), service(3)]);
    assert_eq!(on(&world, "kubernetes"), [1, 3]);
    assert_eq!(on(&world, "lb2"), [2]);
    assert_eq!(pool(&world, "kubernetes", "kubernetes"), ["vmss1-1", "vmss1-2"]);
    assert_eq!(pool(&world, "lb2", "kubernetes"), ["vmss2-1", "vmss2-2"]);
    change(&mut world, service(0));
    settle(&mut world, &policy);
    assert_eq!(on(&world, "lb2"), [0, 2], "a smaller UID moves nobody");
}

#[test]
fn nodes_move_to_their_own_balancer_once_there_is_one() {
    let (policy, mut world) = placed(Layout::Several(two()), vec![service(1)]);
    assert_eq!(pool(&world, "kubernetes", "kubernetes").len(), 4);
    change(&mut world, service(2));
    let (plan, _) = crate::plan(&world, &policy);
    for planned in &plan.changes {
        if let Action::Put { after: Resource::LoadBalancer(b), .. } = &planned.action {
            assert!(b.id.name() != "lb2" || b.pools.iter().all(|p| p.addresses.is_empty()));
        }
    }
    settle(&mut world, &policy);
    assert_eq!(pool(&world, "kubernetes", "kubernetes"), ["vmss1-1", "vmss1-2"]);
    assert_eq!(pool(&world, "lb2", "kubernetes"), ["vmss2-1", "vmss2-2"]);
    let gone = Service { wish: Wish::Nothing, ..service(2) };
    change(&mut world, Service { finalizers: vec![SERVICE_FINALIZER.into()], ..gone });
    settle(&mut world, &policy);
    settle(&mut world, &policy);
    assert!(balancer(&world, "lb2").is_none());
    assert_eq!(pool(&world, "kubernetes", "kubernetes").len(), 4);
}

/// Azure may refuse for long to let a Service go: until it has gone nothing needs room for it.
#[test]
fn nodes_stay_until_the_service_that_they_move_for_has_left() {
    let all = [config("kubernetes", "vmss1"), config("lb2", "vmss2"), config("lb3", "vmss3")];
    let key = "azure-load-balancer-configurations";
    let here = annotated(1, key, "kubernetes");
    let (policy, mut world) =
        placed(Layout::Several(all.to_vec()), vec![here, annotated(2, key, "lb3")]);
    let elsewhere = pool(&world, "lb3", "kubernetes");
    assert_eq!(elsewhere.len() + pool(&world, "kubernetes", "kubernetes").len(), 4);
    assert!(!elsewhere.is_empty());
    change(&mut world, annotated(1, key, "lb2"));
    let (plan, _) = crate::plan(&world, &policy);
    let written = |name: &str| plan.changes.iter().any(|c| c.target.name() == name);
    assert!(written("kubernetes") && !written("lb3"), "{:#?}", plan.changes);
    settle(&mut world, &policy);
    assert_eq!(pool(&world, "lb2", "kubernetes"), ["vmss2-1", "vmss2-2"]);
}

/// Azure takes one rule for all ports of a pool where there is no floating IP, which internal IPv6
/// frontends do not have.
#[test]
fn a_service_goes_where_its_backend_ports_are_free() {
    let policy = policy(Layout::Several(two()));
    let internal = ("azure-load-balancer-internal", "true");
    let all_ports = ("azure-load-balancer-enable-high-availability-ports", "true");
    let inner = |n| fixture::claimed(fixture::numbered(n, &[internal]));
    let whole = |n| {
        let service = fixture::numbered(n, &[internal, all_ports]);
        fixture::claimed(Service { families: vec![Family::V6], ..service })
    };
    let placed = |world: &World| {
        let (_, report) = crate::plan(world, &policy);
        report.services[&uid(3)].balancer.clone()
    };
    let second: Option<Arc<str>> = Some("lb2-internal".into());
    // They come together, and both load balancers have one rule by then.
    assert_eq!(placed(&with_subnet(vec![whole(1), inner(2), whole(3)])), second);
    // No load balancer is free.
    let world = with_subnet(vec![whole(1), whole(2), whole(3)]);
    let (_, last) = explain::forecast::settle(world, &policy);
    let last = &last.services[&uid(3)];
    let taken = last.findings.iter().any(|finding| finding.rule == "NodePortTaken");
    assert!(last.state == State::Refused && taken, "{last:#?}");
}

/// A rule of unknown owner has its new node port on its load balancer; on the other it is free.
#[test]
fn a_service_that_serves_is_refused_where_it_is_and_moves_when_it_is_asked_to() {
    let policy = policy(Layout::Several(two()));
    let six = |port: u16, more: &[(&str, &str)]| {
        let internal = ("azure-load-balancer-internal", "true");
        let mut service = fixture::numbered(3, &[&[internal][..], more].concat());
        service.ports[0].node_port = Some(port);
        fixture::claimed(Service { families: vec![Family::V6], ..service })
    };
    let (mut world, _) = explain::forecast::settle(with_subnet(vec![six(30_080, &[])]), &policy);
    let id = policy.balancer_id("kubernetes-internal");
    let balancers = world.azure.balancers.known_mut().expect("read");
    let balancer = Arc::make_mut(balancers.get_mut(&id).expect("it was placed there"));
    let (frontend_port, backend_port) = (9, 31_000);
    let own = balancer.rules[0].clone();
    balancer.rules.push(Rule { name: "theirs".into(), frontend_port, backend_port, ..own });
    change(&mut world, six(backend_port, &[]));
    let (plan, report) = crate::plan(&world, &policy);
    let found: Vec<_> = report.services[&uid(3)].findings.iter().map(|f| f.rule).collect();
    assert_eq!(found, ["NodePortTaken"]);
    assert!(plan.changes.iter().all(|c| c.target.name() != "lb2-internal"), "{plan:#?}");
    change(&mut world, six(backend_port, &[("azure-load-balancer-configurations", "lb2")]));
    let (_, report) = crate::plan(&world, &policy);
    assert_eq!(report.services[&uid(3)].balancer.as_deref(), Some("lb2-internal"));
}

#[test]
fn selectors_choose_services_and_nodes() {
    let mut configs = two();
    configs[1].services = selector("tier", "front");
    configs[1].nodes = selector("pool", "front");
    let policy = policy(Layout::Several(configs));
    let labels = BTreeMap::from([(Arc::from("tier"), Arc::from("front"))]);
    let front = Service { labels: Arc::new(labels), ..service(1) };
    let mut world = world(vec![front, service(2), service(3)]);
    add_node(&mut world, "vmss3", 1, &[("pool", "front")]);
    add_node(&mut world, "vmss3", 2, &[]);
    settle(&mut world, &policy);
    assert_eq!(on(&world, "lb2"), [1]);
    assert_eq!(on(&world, "kubernetes"), [2, 3]);
    assert_eq!(pool(&world, "lb2", "kubernetes"), ["vmss2-1", "vmss2-2", "vmss3-1"]);
    assert_eq!(pool(&world, "kubernetes", "kubernetes"), ["vmss1-1", "vmss1-2", "vmss3-2"]);
    change(&mut world, service(1));
    settle(&mut world, &policy);
    assert_eq!(on(&world, "kubernetes"), [1, 2, 3], "it moves when its labels change");
    assert!(balancer(&world, "lb2").is_none());
}

/// The third load balancer gets no such node while no Service is on it.
#[test]
fn nodes_that_nothing_selects_go_where_services_are() {
    let third = vec![config("kubernetes", "vmss1"), config("lb2", "vmss2"), config("lb3", "vmss4")];
    let policy = policy(Layout::Several(third));
    let mut world = world(vec![service(1), service(2)]);
    (1..=3).for_each(|n| add_node(&mut world, "vmss3", n, &[]));
    settle(&mut world, &policy);
    let taken = ["kubernetes", "lb2"].map(|name| pool(&world, name, "kubernetes").len());
    assert_eq!(taken.iter().sum::<usize>(), 7, "{taken:?}");
}

#[test]
fn namespace_selectors_wait_for_namespaces() {
    let mut configs = two();
    configs[1].namespaces = selector("team", "a");
    let policy = policy(Layout::Several(configs));
    let mut world = world(vec![service(1)]);
    let labels = BTreeMap::from([(Arc::from("team"), Arc::from("a"))]);
    world.kubernetes.namespaces.insert("default".into(), Arc::new(labels));
    world.kubernetes.complete.remove(&Kind::Namespaces);
    assert!(crate::plan(&world, &policy).0.changes.is_empty());
    world.kubernetes.complete.insert(Kind::Namespaces);
    settle(&mut world, &policy);
    assert_eq!(on(&world, "lb2"), [1]);
    // A watch may tell of a Service before it tells of its namespace: what comes waits, and what
    // stands stays.
    let of_team = world.kubernetes.namespaces.remove("default");
    world.kubernetes.services.insert(uid(2), Arc::new(service(2)));
    let (plan, report) = crate::plan(&world, &policy);
    assert_eq!(plan.changes.len(), 0, "{:?}", plan.changes);
    for number in [1, 2] {
        assert_eq!(report.services[&uid(number)].waits, [Wait::Listing]);
    }
    world.kubernetes.namespaces.extend(of_team.map(|labels| ("default".into(), labels)));
    settle(&mut world, &policy);
    assert_eq!(on(&world, "lb2"), [1, 2]);
}

#[test]
fn a_service_that_nobody_takes_is_refused_with_counts() {
    let mut configs = two();
    configs[0].placement = Admission::Closed;
    configs[1].services = selector("tier", "front");
    let policy = policy(Layout::Several(configs));
    let (_, report) = crate::plan(&world(vec![service(1)]), &policy);
    let service = &report.services[&uid(1)];
    assert_eq!(service.state, State::Refused);
    let finding = &service.findings[0];
    assert_eq!(finding.rule, "NoEligibleLoadBalancer");
    assert!(finding.message.contains("(2 configured, 2 of them named"), "{}", finding.message);
    assert!(finding.message.contains("1 of them open"), "{}", finding.message);
    assert!(finding.message.contains("0 of them for the Service's labels"), "{}", finding.message);
}

#[test]
fn a_service_that_names_a_closed_configuration_is_refused_by_its_annotation() {
    let mut configs = two();
    configs[1].placement = Admission::Closed;
    let named = annotated(1, "azure-load-balancer-configurations", "LB2");
    let (_, report) = crate::plan(&world(vec![named]), &policy(Layout::Several(configs)));
    let finding = &report.services[&uid(1)].findings[0];
    let key = "service.beta.kubernetes.io/azure-load-balancer-configurations";
    assert_eq!((finding.rule, &*finding.key), ("NoEligibleLoadBalancer", key));
    assert_eq!(&*finding.value, "lb2");
}

#[test]
fn a_closed_balancer_keeps_whom_it_has() {
    let mut world = world(vec![service(1), service(2)]);
    settle(&mut world, &policy(Layout::Several(two())));
    let mut configs = two();
    configs[1].placement = Admission::Closed;
    let policy = policy(Layout::Several(configs));
    change(&mut world, service(3));
    change(&mut world, service(4));
    settle(&mut world, &policy);
    assert_eq!(on(&world, "lb2"), [2]);
    assert_eq!(on(&world, "kubernetes"), [1, 3, 4]);
}

#[test]
fn the_annotation_moves_a_service() {
    let (policy, mut world) = placed(Layout::Several(two()), vec![service(1), service(2)]);
    change(&mut world, annotated(1, "azure-load-balancer-configurations", "LB2"));
    settle(&mut world, &policy);
    assert_eq!(on(&world, "lb2"), [1, 2]);
    assert!(balancer(&world, "kubernetes").is_none());
}

#[test]
fn a_local_service_has_a_pool_of_the_nodes_with_endpoints() {
    let (policy, mut world) = placed(Layout::Several(two()), vec![local(1), service(2)]);
    let own = ["vmss1-1", "vmss1-2"];
    assert_eq!(pool(&world, "kubernetes", "default-web-1"), own, "no slice is known");
    slice(&mut world, 1, "vmss1-2");
    slice(&mut world, 1, "vmss2-1");
    settle(&mut world, &policy);
    assert_eq!(pool(&world, "kubernetes", "default-web-1"), ["vmss1-2", "vmss2-1"]);
    let there = balancer(&world, "kubernetes").expect("there");
    let lead = there.rules[0].pool.as_ref().map(|p| p.name().to_owned());
    assert_eq!(lead.as_deref(), Some("default-web-1"));
    change(&mut world, service(1));
    settle(&mut world, &policy);
    let there = balancer(&world, "kubernetes").expect("there");
    assert_eq!(there.pools.len(), 1, "its own pool goes with the policy");
    assert_eq!(pool(&world, "kubernetes", "kubernetes"), ["vmss1-1", "vmss1-2"]);
}

/// Azure may refuse the public IP for long.
#[test]
fn nodes_stay_until_a_load_balancer_can_be_made_for_them() {
    let (policy, mut world) = placed(Layout::Several(two()), vec![service(1)]);
    let all = ["vmss1-1", "vmss1-2", "vmss2-1", "vmss2-2"];
    assert_eq!(pool(&world, "kubernetes", "kubernetes"), all);
    let other = annotated(2, "azure-load-balancer-configurations", "lb2");
    change(&mut world, fixture::claimed(other));
    let (plan, _) = crate::plan(&world, &policy);
    let [only] = &plan.changes[..] else { panic!("{:#?}", plan.changes) };
    assert!(matches!(&only.action, Action::Put { after: Resource::PublicIp(_), .. }));
    settle(&mut world, &policy);
    assert_eq!(pool(&world, "kubernetes", "kubernetes"), ["vmss1-1", "vmss1-2"]);
    assert_eq!(pool(&world, "lb2", "kubernetes"), ["vmss2-1", "vmss2-2"]);
}

/// Another client's rule led to the pool until the Service was deleted.
#[test]
fn a_pool_that_a_service_had_to_itself_goes_after_it() {
    let (policy, mut world) = placed(Layout::Several(two()), vec![local(1), service(2)]);
    change(&mut world, annotated(2, "azure-load-balancer-configurations", "kubernetes"));
    settle(&mut world, &policy);
    let there = |world: &World| {
        let there = balancer(world, "kubernetes").expect("there");
        there.pools.iter().any(|pool| &*pool.name == "default-web-1")
    };
    assert!(there(&world));
    let gone = world.kubernetes.services.remove(&uid(1)).expect("there");
    let all = world.azure.balancers.known_mut().expect("read");
    let all = all.get_mut(&policy.balancer_id("kubernetes")).map(Arc::make_mut);
    let left = all.expect("there");
    left.frontends.retain(|f| !f.name.starts_with(&gone.uid.base_name()));
    left.rules.retain(|r| !r.name.starts_with(&gone.uid.base_name()));
    let names = BTreeSet::from(["default/web-1".into()]);
    assert_eq!(own::borne::among(&world, &policy, &names), names);
    settle(&mut world, &policy);
    assert!(there(&world), "it is not known to be gone");
    world.abandoned.extend(names);
    settle(&mut world, &policy);
    assert!(!there(&world));
}

/// Slices that are written by hand have no owner reference: their label says whose they are.
#[test]
fn a_slice_without_an_owner_counts_by_its_label() {
    let (policy, mut world) = placed(Layout::Several(two()), vec![local(1), service(2)]);
    slice(&mut world, 1, "vmss1-2");
    for slice in world.kubernetes.slices.values_mut() {
        Arc::make_mut(slice).owner = None;
    }
    settle(&mut world, &policy);
    assert_eq!(pool(&world, "kubernetes", "default-web-1"), ["vmss1-2"]);
}

/// Another client's outbound rule names the pool of a Service whose traffic policy changes.
#[test]
fn a_pool_that_the_rule_of_another_client_names_stays() {
    let (policy, mut world) = placed(Layout::Several(two()), vec![local(1), service(2)]);
    let id = policy.balancer_id("kubernetes");
    let own = id.child("backendAddressPools", "default-web-1");
    let balancers = world.azure.balancers.known_mut().expect("read");
    let there = Arc::make_mut(balancers.get_mut(&id).expect("it was made"));
    there.foreign.push(ForeignRule {
        collection: ForeignCollection::Outbound,
        frontends: Vec::new(),
        ports: None,
        body: own.as_str().to_owned().into(),
    });
    change(&mut world, service(1));
    settle(&mut world, &policy);
    let mut pools = balancer(&world, "kubernetes").expect("there").pools.iter();
    assert!(pools.any(|pool| *pool.name == *"default-web-1"));
}

/// No slice is known, so that its own pool is to hold the nodes of its load balancer, the only one.
#[test]
fn a_local_services_own_pool_has_a_limit_as_well() {
    let policy = policy(Layout::Several(two()));
    let with = |more: u16| {
        let mut world = world(vec![local(1)]);
        for n in 0..more {
            let set = ["vmss1", "vmss2"][usize::from(n % 2)];
            let [high, low] = n.to_be_bytes();
            let twin = world.kubernetes.nodes[&NodeName::new(format!("{set}-1"))].clone();
            let name = NodeName::new(format!("{set}-more-{n}"));
            let addresses = vec![IpAddr::from([10, 1, high, low])];
            let node = Node { name: name.clone(), addresses, ..Node::clone(&twin) };
            world.kubernetes.nodes.insert(name, Arc::new(node));
        }
        settle(&mut world, &policy);
        let (_, report) = crate::plan(&world, &policy);
        let found = report.findings.iter().filter(|f| f.rule == "PoolAddressLimit").count();
        (pool(&world, "kubernetes", "default-web-1").len(), found)
    };
    assert_eq!(with(996), (1_000, 0));
    assert_eq!(with(1_000), (1_000, 1));
}

#[test]
fn each_set_has_its_balancer_by_mode() {
    let policy = policy(Layout::PerNodeSet { without_own: vec!["vmss3".into()] });
    let mode = "azure-load-balancer-mode";
    let mut world = world(vec![
        service(1),
        annotated(2, mode, "VMSS2"),
        annotated(3, mode, "vmss3"),
        annotated(4, mode, "__auto__"),
    ]);
    add_node(&mut world, "vmss3", 1, &[]);
    settle(&mut world, &policy);
    assert_eq!(on(&world, "kubernetes"), [1, 3]);
    assert_eq!(on(&world, "vmss2"), [2, 4]);
    assert_eq!(pool(&world, "kubernetes", "kubernetes"), ["vmss1-1", "vmss1-2", "vmss3-1"]);
    assert_eq!(pool(&world, "vmss2", "kubernetes"), ["vmss2-1", "vmss2-2"]);
    change(&mut world, annotated(5, mode, "nowhere"));
    let (_, report) = crate::plan(&world, &policy);
    assert_eq!(report.services[&uid(5)].findings[0].rule, "UnknownNodeSet");
}

#[test]
fn auto_is_the_balancer_with_the_fewest_rules_unless_a_set_is_called_so() {
    let policy = policy(Layout::PerNodeSet { without_own: Vec::new() });
    let auto = || annotated(2, "azure-load-balancer-mode", "Auto");
    let mut world = world(vec![service(1), auto()]);
    settle(&mut world, &policy);
    assert_eq!(on(&world, "vmss2"), [2]);
    let mut world = self::world(vec![service(1), auto()]);
    add_node(&mut world, "auto", 1, &[]);
    settle(&mut world, &policy);
    assert_eq!(on(&world, "auto"), [2]);
}

/// As in the Go controller, rules are counted however the load balancer is chosen.
#[test]
fn a_full_basic_balancer_takes_no_new_service() {
    let layout = Layout::PerNodeSet { without_own: Vec::new() };
    let (sku, pools) = (BalancerSku::Basic, PoolKind::NodeNic);
    let policy = Policy { sku, pools, maximum_rules: 1, ..policy(layout) };
    let mode = "azure-load-balancer-mode";
    let services = vec![
        service(1),
        service(2),
        annotated(3, mode, "vmss2"),
        annotated(4, mode, "vmss2"),
        annotated(5, mode, "__auto__"),
    ];
    let (_, report) = crate::plan(&world(services), &policy);
    let full = |n: &u8| {
        let findings = &report.services[&uid(*n)].findings;
        findings.iter().any(|finding| finding.rule == "LoadBalancersFull")
    };
    assert_eq!((1..=5).filter(full).collect::<Vec<u8>>(), [2, 4, 5]);
    let raised = Policy { maximum_rules: 2, ..policy };
    let (_, report) = crate::plan(&world(vec![service(1), service(2)]), &raised);
    assert_eq!(report.services[&uid(2)].findings, []);
}

/// Until every node's set is known, one of them may yet be called so.
#[test]
fn auto_stays_where_it_is_while_a_node_says_no_set() {
    let policy = policy(Layout::PerNodeSet { without_own: Vec::new() });
    let auto = || annotated(2, "azure-load-balancer-mode", "auto");
    let mut world = world(vec![service(1), auto()]);
    settle(&mut world, &policy);
    add_node(&mut world, "vmss2", 3, &[]);
    let node = world.kubernetes.nodes.get_mut("vmss2-3").expect("it was added");
    Arc::make_mut(node).provider_id = None;
    let (plan, report) = crate::plan(&world, &policy);
    assert_eq!(report.services[&uid(2)].balancer.as_deref(), Some("vmss2"));
    let id = policy.balancer_id("vmss2");
    assert!(plan.changes.iter().all(|change| change.target != id), "{:#?}", plan.changes);
}

#[test]
fn a_set_that_loses_its_balancer_joins_the_primary() {
    let mode = "azure-load-balancer-mode";
    let mut world = world(vec![service(1), annotated(2, mode, "vmss2")]);
    settle(&mut world, &policy(Layout::PerNodeSet { without_own: Vec::new() }));
    assert_eq!(pool(&world, "kubernetes", "kubernetes").len(), 2);
    settle(&mut world, &policy(Layout::PerNodeSet { without_own: vec!["vmss2".into()] }));
    assert!(balancer(&world, "vmss2").is_none());
    assert_eq!(on(&world, "kubernetes"), [1, 2]);
    assert_eq!(pool(&world, "kubernetes", "kubernetes").len(), 4);
}

#[test]
fn a_virtual_machine_belongs_to_its_set_once_that_is_known() {
    let policy = policy(Layout::PerNodeSet { without_own: Vec::new() });
    let mut world = world(vec![service(1), annotated(2, "azure-load-balancer-mode", "set2")]);
    let compute = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Compute";
    add_node(&mut world, "vm4", 1, &[]);
    let node = world.kubernetes.nodes.get_mut("vm4-1").expect("there");
    let id = ResourceId::new(format!("{compute}/virtualMachines/vm4-1"));
    Arc::make_mut(node).provider_id = Some(format!("azure://{}", id.as_str()).into());
    let (plan, report) = crate::plan(&world, &policy);
    assert!(plan.changes.is_empty());
    assert!(report.needs.contains(&Need::VirtualMachines));
    world.azure.virtual_machines = Fact::Known(BTreeMap::new());
    world.azure.scale_sets = Fact::Known(BTreeMap::new());
    settle(&mut world, &policy);
    assert_eq!(pool(&world, "kubernetes", "kubernetes"), ["vmss1-1", "vmss1-2"]);
    let set = Some(ResourceId::new(format!("{compute}/availabilitySets/SET2")));
    let machine = VirtualMachine { id: id.clone(), host: None, set, nic: None };
    world.azure.virtual_machines = Fact::Known([(id, Arc::new(machine))].into());
    settle(&mut world, &policy);
    assert_eq!(pool(&world, "kubernetes", "kubernetes"), ["vmss1-1", "vmss1-2"]);
    assert_eq!(pool(&world, "set2", "kubernetes"), ["vm4-1"]);
}

#[test]
fn a_set_without_nodes_keeps_its_balancer_and_an_empty_pool() {
    let (policy, mut world) = placed(
        Layout::PerNodeSet { without_own: Vec::new() },
        vec![service(1), annotated(2, "azure-load-balancer-mode", "vmss2")],
    );
    world.kubernetes.nodes.retain(|name, _| name.as_str().starts_with("vmss1"));
    settle(&mut world, &policy);
    assert_eq!(on(&world, "vmss2"), [2]);
    let there = balancer(&world, "vmss2").expect("there");
    assert_eq!(there.pools.len(), 1);
    // They drain first.
    let gone: BTreeSet<IpAddr> = there.pools[0].addresses.iter().map(|a| a.address).collect();
    assert!(there.pools[0].addresses.iter().all(|a| a.admin == AdminState::Down));
    world.drained.extend(gone.iter().copied().map(model::drain::Drainer::from));
    settle(&mut world, &policy);
    let there = balancer(&world, "vmss2").expect("there");
    assert!(!gone.is_empty() && there.pools.len() == 1 && there.pools[0].addresses.is_empty());
    // The pool stands empty: no scale set is in it by its model alone.
    world.azure.scale_sets = Fact::Known(BTreeMap::new());
    let (_, report) = crate::plan(&world, &policy);
    let found: Vec<_> = report.services[&uid(2)].findings.iter().map(|f| f.rule).collect();
    assert_eq!(found, ["NoBackends"]);
    assert_eq!(report.services[&uid(1)].findings, []);
}
