//! How long planning takes where 1,000 public Services share four load balancers over 100 nodes:
//! `cargo run --profile measure -p plan --example shared_scale`.
//!
//! `shared_scale same|one|all|anew ROUNDS` makes plans of one kind only, for tools that count
//! instructions; the difference of two numbers of rounds is what they take.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a measurement reads the clock and its arguments"
)]

use model::azure::{LoadBalancer, PublicIp};
use model::kubernetes::{Affinity, Node, Service, ServicePort};
use model::policy::Layout;
use model::world::Fact;
use model::{NodeName, Policy, ServiceName, ServiceUid, World};
use plan::Planner;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

/// A kind of plan, and what changes before each.
type Kind = (&'static str, fn(&mut Stage));

const NODES: u16 = 100;
const SERVICES: u16 = 1_000;
const BALANCERS: usize = 4;
const ROUNDS: u32 = 15;

fn main() {
    let policy = policy();
    let (settled, _) = explain::forecast::settle(world(), &policy);
    let mut stage = Stage { world: settled, policy, planner: Planner::default() };
    let (plan, _) = stage.planner.plan(&stage.world, &stage.policy);
    assert!(plan.is_empty(), "nothing is left to do");
    let mut args = std::env::args().skip(1);
    let kinds: [Kind; 4] = [
        ("same", |_| {}),
        ("one", Stage::change_one),
        ("all", Stage::change_all),
        ("anew", |stage| stage.planner = Planner::default()),
    ];
    if let (Some(kind), Some(rounds)) = (args.next(), args.next()) {
        let rounds: u32 = rounds.parse().expect("a number of rounds");
        let (_, change) = kinds.iter().find(|(name, _)| *name == kind).expect("a kind of plan");
        for _ in 0..rounds {
            change(&mut stage);
            stage.plan();
        }
        return;
    }
    for (kind, change) in kinds {
        let mut times: Vec<f64> = Vec::new();
        for _ in 0..ROUNDS {
            change(&mut stage);
            let from = processor_ms();
            stage.plan();
            times.push(processor_ms() - from);
        }
        times.sort_by(f64::total_cmp);
        let median = times[times.len() / 2];
        println!("{kind}: {:.2} ms of the processor (least), {median:.2} ms (median)", times[0]);
    }
}

/// What the processor has spent on this thread: the clock also counts what it spends on others.
fn processor_ms() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let spent = text.split_whitespace().next().and_then(|n| n.parse::<f64>().ok());
    spent.unwrap_or_default() / 1e6
}

struct Stage {
    world: World,
    policy: Policy,
    planner: Planner,
}

impl Stage {
    #[inline(never)]
    fn plan(&mut self) {
        drop(self.planner.plan(&self.world, &self.policy));
    }

    /// Another session affinity of one Service.
    fn change_one(&mut self) {
        let mut all = self.world.kubernetes.services.values_mut();
        all.next().into_iter().for_each(turn);
    }

    /// The same of every Service, and every resource is another value in memory.
    fn change_all(&mut self) {
        self.world.kubernetes.services.values_mut().for_each(turn);
        let azure = &mut self.world.azure;
        for balancer in azure.balancers.known_mut().into_iter().flat_map(BTreeMap::values_mut) {
            *balancer = Arc::new(LoadBalancer::clone(balancer));
        }
        for ips in azure.public_ips.values_mut().filter_map(Fact::known_mut) {
            ips.values_mut().for_each(|ip| *ip = Arc::new(PublicIp::clone(ip)));
        }
    }
}

fn turn(service: &mut Arc<Service>) {
    let service = Arc::make_mut(service);
    service.affinity = match service.affinity {
        Affinity::None => Affinity::ClientIp,
        Affinity::ClientIp => Affinity::None,
    };
}

fn policy() -> Policy {
    let config = |n| fixture::load_balancer_config(&format!("lb-{n}"), &format!("set-{n}"));
    let layout = Layout::Several((0..BALANCERS).map(config).collect());
    Policy { layout, ..fixture::policy() }
}

/// Nothing is in Azure yet but an empty security group.
fn world() -> World {
    let mut world = fixture::world();
    world.azure.balancers = Fact::Known(BTreeMap::new());
    world.azure.public_ips.values_mut().filter_map(Fact::known_mut).for_each(BTreeMap::clear);
    fixture::security_group_mut(&mut world).rules.clear();
    if let Some(ledger) = world.kubernetes.ledger.known_mut() {
        Arc::make_mut(ledger).destinations.clear();
    }
    let kubernetes = &mut world.kubernetes;
    let first = kubernetes.nodes.pop_first().expect("the fixture has a node").1;
    for n in 0..NODES {
        let name = NodeName::new(format!("node-{n:03}"));
        let [high, low] = (n + 4).to_be_bytes();
        let addresses = vec![IpAddr::from([10, 224, high, low])];
        let node = Node { name: name.clone(), addresses, ..Node::clone(&first) };
        kubernetes.nodes.insert(name, Arc::new(node));
    }
    kubernetes.services.clear();
    for n in 0..SERVICES {
        let service = fixture::claimed(fixture::service(&[]));
        // Names made from UIDs begin alike as seldom as in a cluster.
        let uid = u32::from(n).wrapping_mul(0x9e37_79b1);
        let uid = ServiceUid::new(format!("{uid:08x}-1111-4222-8333-0123456789ab"));
        let port = ServicePort { node_port: Some(30_000 + n), ..service.ports[0].clone() };
        let name = ServiceName::new("default", format!("web-{n:04}"));
        let service = Service { uid: uid.clone(), name, ports: vec![port], ..service };
        kubernetes.services.insert(uid, Arc::new(service));
    }
    world
}
