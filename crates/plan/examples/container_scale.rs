//! How long planning takes on a large cluster of container load balancers that is settled:
//! `cargo run --profile measure -p plan --example container_scale`.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a measurement reads the clock and its own memory"
)]

use model::azure::{PublicIp, Sku};
use model::gateway::{DefaultService, Direction, GatewayService, Locations};
use model::kubernetes::{
    Endpoint, EndpointSlice, GATEWAY_FINALIZER, Ingress, Node, Readiness, SERVICE_FINALIZER,
    Service, ServicePort,
};
use model::plan::{Action, Edit, Plan, Resource};
use model::world::{Fact, Kind};
use model::{NodeName, Policy, ServiceName, ServiceUid, World};
use plan::Planner;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

const NODES: u16 = 5_000;
const SERVICES: u32 = 10_000;
const PODS_EACH: u32 = 15;
const ROUNDS: u32 = 50;

fn main() {
    let policy = fixture::container_policy();
    let mut world = world(&policy);
    let mut planner = Planner::default();
    let before = resident_kib();
    let (plan, _) = timed("the first plan", || planner.plan(&world, &policy));
    assert!(plan.changes.len() == 1, "only addresses are missing");
    settle(&mut world, &plan);
    let mut calls = 1;
    loop {
        let (plan, _) = planner.plan(&world, &policy);
        if plan.is_empty() {
            break;
        }
        settle(&mut world, &plan);
        calls += 1;
    }
    println!("{calls} calls fill the address table");
    println!("{} KiB more in memory", resident_kib() - before);
    timed("a plan with nothing new", || planner.plan(&world, &policy));
    one_pod(&mut world, &policy, &mut planner);
    change_everything(&mut world);
    let (plan, _) = timed("a plan after everything changed", || planner.plan(&world, &policy));
    assert_eq!(plan.changes.len(), 1);
    timed("a plan from nothing", || plan::plan(&world, &policy));
}

/// One Pod after the other goes: a plan for each, and one after its address call was stored.
fn one_pod(world: &mut World, policy: &Policy, planner: &mut Planner) {
    let (mut first, mut second) = (Vec::new(), Vec::new());
    let busy = processor_ms();
    for n in 0..ROUNDS {
        let key = ServiceName::new("default", format!("slice-{n}"));
        let mut slice = EndpointSlice::clone(&world.kubernetes.slices[&key]);
        slice.endpoints.pop();
        world.kubernetes.slices.insert(key, Arc::new(slice));
        let from = Instant::now();
        let (plan, _) = planner.plan(world, policy);
        first.push(from.elapsed().as_secs_f64() * 1e3);
        assert_eq!(plan.changes.len(), 1);
        settle(world, &plan);
        let from = Instant::now();
        let (plan, _) = planner.plan(world, policy);
        second.push(from.elapsed().as_secs_f64() * 1e3);
        assert!(plan.is_empty());
    }
    let each = (processor_ms() - busy) / f64::from(2 * ROUNDS);
    let median = |times: &mut Vec<f64>| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    };
    println!(
        "a plan after one Pod: {:.2} ms by the clock, and {:.2} ms for the one after its call \
         (medians of {ROUNDS}); {each:.2} ms of the processor each",
        median(&mut first),
        median(&mut second)
    );
}

/// Every fact is another value, and every Service has a Pod less.
fn change_everything(world: &mut World) {
    let revision: Arc<str> = "2".into();
    for slice in world.kubernetes.slices.values_mut() {
        let slice = Arc::make_mut(slice);
        slice.endpoints.pop();
        slice.revision = Arc::clone(&revision);
    }
    for service in world.kubernetes.services.values_mut() {
        Arc::make_mut(service).revision = Arc::clone(&revision);
    }
    for node in world.kubernetes.nodes.values_mut() {
        Arc::make_mut(node).revision = Arc::clone(&revision);
    }
    for balancer in world.azure.balancers.known_mut().into_iter().flatten() {
        *balancer.1 = Arc::new(model::azure::LoadBalancer::clone(balancer.1));
    }
    for ips in world.azure.public_ips.values_mut().filter_map(Fact::known_mut) {
        for ip in ips.values_mut() {
            *ip = Arc::new(PublicIp::clone(ip));
        }
    }
}

fn timed<T>(what: &str, work: impl FnOnce() -> T) -> T {
    let (from, busy) = (Instant::now(), processor_ms());
    let result = work();
    let (took, busy) = (from.elapsed().as_secs_f64() * 1e3, processor_ms() - busy);
    println!("{what}: {busy:.2} ms of the processor, {took:.2} ms by the clock");
    result
}

/// What the processor has spent on this thread: the clock also counts what it spends on others.
fn processor_ms() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let spent = text.split_whitespace().next().and_then(|n| n.parse::<f64>().ok());
    spent.unwrap_or_default() / 1e6
}

fn resident_kib() -> i64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|l| l.starts_with("VmRSS:")).unwrap_or("");
    line.split_whitespace().nth(1).and_then(|n| n.parse().ok()).unwrap_or(0)
}

fn settle(world: &mut World, plan: &Plan) {
    for change in &plan.changes {
        if let (Action::UpdateLocations(update), Some(table)) =
            (&change.action, world.azure.gateway_locations.known_mut())
        {
            update.apply(Arc::make_mut(table));
        }
        if let Action::Put { after: Resource::LoadBalancer(b), .. } = &change.action {
            world.azure.balancers.known_mut().map(|all| all.insert(b.id.clone(), Arc::clone(b)));
        }
    }
    for write in &plan.writes {
        assert!(!matches!(write.edit, Edit::Finalizers { .. }));
    }
}

fn world(policy: &Policy) -> World {
    let mut world = World::default();
    world.kubernetes.complete = Kind::CONTAINER.into_iter().collect();
    for n in 0..NODES {
        let node = node(n);
        world.kubernetes.nodes.insert(node.name.clone(), Arc::new(node));
    }
    let mut services = BTreeMap::new();
    let mut ips = BTreeMap::new();
    for n in 0..SERVICES {
        let service = service(n);
        let name: Arc<str> = Arc::from(service.uid.as_str());
        let ip = public_ip(policy, &name, n);
        let pool = policy.balancer_id(&name).child("backendAddressPools", &name);
        let entry = GatewayService {
            name: Arc::clone(&name),
            direction: Direction::Inbound,
            default: DefaultService::No,
            pools: BTreeSet::from([pool]),
            nat_gateway: None,
        };
        services.insert(name, Arc::new(entry));
        ips.insert(ip.id.clone(), Arc::new(ip));
        let slice = slice(n, &service.uid);
        world.kubernetes.slices.insert(slice.name.clone(), Arc::new(slice));
        world.kubernetes.services.insert(service.uid.clone(), Arc::new(service));
    }
    world.azure.public_ips.insert(policy.group.clone(), Fact::Known(ips));
    world.azure.nat_gateways = Fact::Known(BTreeMap::new());
    world.azure.gateway_services = Fact::Known(services);
    world.azure.gateway_locations = Fact::Known(Arc::new(Locations::new()));
    world.azure.balancers = Fact::Known(BTreeMap::new());
    // The load balancers are those that planning asks for.
    let (plan, _) = plan::plan(&world, policy);
    let only = Plan {
        ledger: None,
        changes: plan
            .changes
            .into_iter()
            .filter(|c| !matches!(c.action, Action::UpdateLocations(_)))
            .collect(),
        writes: Vec::new(),
        tags: plan.tags,
    };
    settle(&mut world, &only);
    world
}

fn node(n: u16) -> Node {
    let [high, low] = n.to_be_bytes();
    let node = fixture::world().kubernetes.nodes.pop_first().expect("the fixture has a node").1;
    Node {
        name: NodeName::new(format!("node-{n}")),
        addresses: vec![IpAddr::from([10, 1, high, low])],
        ..Node::clone(&node)
    }
}

fn service(n: u32) -> Service {
    let address = format!("20.0.{}.{}", n / 256, n % 256);
    let service = fixture::numbered(0, &[]);
    Service {
        uid: ServiceUid::new(format!("{n:08x}-1111-4222-8333-0123456789ab")),
        name: ServiceName::new("default", format!("web-{n}")),
        finalizers: vec![SERVICE_FINALIZER.into(), GATEWAY_FINALIZER.into()],
        ports: vec![ServicePort { node_port: None, ..service.ports[0].clone() }],
        ingress: vec![Ingress { ip: Some(address.into()), hostname: None }],
        ..service
    }
}

fn public_ip(policy: &Policy, name: &str, n: u32) -> PublicIp {
    let [_, _, high, low] = n.to_be_bytes();
    PublicIp {
        id: policy.public_ip_id(&policy.group, &format!("{name}-pip")),
        etag: None,
        tags: None,
        sku: Sku::StandardV2,
        ..fixture::public_ip(name, Some(IpAddr::from([20, 0, high, low])))
    }
}

fn slice(n: u32, uid: &ServiceUid) -> EndpointSlice {
    let endpoints = (0..PODS_EACH).map(|k| {
        let pod = n * PODS_EACH + k;
        let [_, a, b, c] = pod.to_be_bytes();
        Endpoint {
            address: IpAddr::from([11, a, b, c]),
            node: Some(NodeName::new(format!("node-{}", pod % u32::from(NODES)))),
            readiness: Readiness::Ready,
            target: model::kubernetes::Target::Own,
        }
    });
    EndpointSlice {
        name: ServiceName::new("default", format!("slice-{n}")),
        revision: "1".into(),
        owner: Some(uid.clone()),
        service: None,
        ports: Vec::new(),
        endpoints: endpoints.collect(),
        unready: Vec::new(),
    }
}
