//! Egress gateways that Pods of several namespaces ask for.

use super::stage::{Stage, ip, node_ip, pod};
use crate::Planner;
use fixture::public_ips_mut;
use model::ServiceName;
use model::azure::{NatGateway, PublicIp};
use model::kubernetes::{Deletion, POD_FINALIZER, Pod};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Pod number `n` of a namespace.
fn of(n: u8, namespace: &str, label: &str) -> Pod {
    Pod { name: ServiceName::new(namespace, format!("pod-{n}")), ..pod(n, label, 1) }
}

/// One that says itself what only the controller is to say.
fn forged(n: u8, namespace: &str, label: &str) -> Pod {
    Pod {
        finalizers: BTreeSet::from([POD_FINALIZER.into()]),
        marks: BTreeSet::from([label.into()]),
        ..of(n, namespace, label)
    }
}

fn edit(stage: &mut Stage, n: u8, namespace: &str, edit: impl FnOnce(&mut Pod)) {
    let pods = &mut stage.world.kubernetes.pods;
    let pod = pods.get_mut(&ServiceName::new(namespace, format!("pod-{n}"))).expect("there");
    edit(Arc::make_mut(pod));
}

fn rules(stage: &mut Stage) -> Vec<(String, &'static str)> {
    let (_, report) = stage.plan();
    let all = report.pods.iter();
    all.flat_map(|(name, found)| found.iter().map(move |f| (name.to_string(), f.rule))).collect()
}

const HELD: &str = "ServiceGatewayEgressNameHeld";
const LIMIT: &str = "ServiceGatewayEgressLimit";

/// Namespace `a` has the gateway `team-a` with Pod 5; Pod 1 of `b` asks for it, too.
fn held() -> Stage {
    let mut stage = Stage::new();
    stage.put_pod(of(5, "a", "team-a"));
    stage.settle();
    stage.calls.clear();
    stage.put_pod(of(1, "b", "team-a"));
    stage.settle();
    stage
}

#[test]
fn a_name_is_that_of_the_namespace_which_used_it_first() {
    let mut stage = held();
    let mine = ["10.224.0.1 10.244.0.5 team-a"];
    assert_eq!(stage.table(), mine);
    assert_eq!(stage.calls, Vec::<String>::new());
    assert_eq!(rules(&mut stage), [("b/pod-1".to_owned(), HELD)]);
    // What a Pod says of itself changes nothing, nor does another process.
    stage.put_pod(forged(2, "b", "team-a"));
    stage.planner = Planner::default();
    stage.settle();
    assert_eq!(stage.table(), mine);
    let pod = &stage.world.kubernetes.pods[&ServiceName::new("b", "pod-2")];
    assert!(pod.finalizers.is_empty(), "it is let go");
    stage.put_pod(of(6, "a", "team-a"));
    stage.settle();
    assert_eq!(stage.table(), [mine[0], "10.224.0.1 10.244.0.6 team-a"]);
}

#[test]
fn of_two_that_come_together_one_has_the_name() {
    let mut stage = Stage::new();
    stage.put_pod(of(5, "a", "team-a"));
    stage.put_pod(of(1, "b", "team-a"));
    stage.settle();
    assert_eq!(stage.table(), ["10.224.0.1 10.244.0.1 team-a"], "the lowest UID");
    assert_eq!(rules(&mut stage), [("a/pod-5".to_owned(), HELD)]);
}

#[test]
fn nobody_inherits_the_address_of_another_namespace() {
    let mut stage = held();
    let before: Vec<_> = stage.ips().values().filter_map(|ip| ip.address).collect();
    edit(&mut stage, 5, "a", |pod| pod.deletion = Deletion::Requested);
    stage.settle();
    stage.world.kubernetes.pods.remove(&ServiceName::new("a", "pod-5"));
    stage.settle();
    assert_eq!(stage.table(), ["10.224.0.1 10.244.0.1 team-a"]);
    assert_eq!(rules(&mut stage), []);
    let gone = stage.calls.iter().position(|call| call == "DELETE team-a-pip").expect("gone");
    let made = stage.calls.iter().position(|call| call == "PUT team-a-pip").expect("made anew");
    assert!(gone < made, "{:?}", stage.calls);
    let after: Vec<_> = stage.ips().values().filter_map(|ip| ip.address).collect();
    assert_ne!(before, after);
}

#[test]
fn the_config_says_whose_a_name_is() {
    let mut stage = held();
    stage.policy.tenancy.egress.insert("team-a".into(), vec!["b".into()]);
    stage.settle();
    let both = ["10.224.0.1 10.244.0.1 team-a", "10.224.0.1 10.244.0.5 team-a"];
    assert_eq!(stage.table(), both, "whose Pods are there keeps it");
    stage.put_pod(of(7, "c", "team-a"));
    stage.settle();
    assert_eq!(rules(&mut stage), [("c/pod-7".to_owned(), HELD)]);
    stage.policy.tenancy.egress.insert("team-a".into(), vec!["*".into()]);
    stage.settle();
    assert_eq!((stage.table().len(), rules(&mut stage)), (3, vec![]));
    // Nothing is said any more: who shares it keeps it.
    stage.policy.tenancy.egress.clear();
    stage.settle();
    assert_eq!((stage.table().len(), rules(&mut stage)), (3, vec![]));
    stage.put_pod(of(8, "d", "team-a"));
    stage.settle();
    assert_eq!(rules(&mut stage), [("d/pod-8".to_owned(), HELD)]);
}

#[test]
fn there_are_as_many_gateways_as_the_config_allows() {
    let mut stage = Stage::new();
    stage.policy.tenancy.most_egress = 2;
    stage.put_pod(of(1, "a", "a-1"));
    stage.put_pod(of(2, "a", "a-2"));
    stage.put_pod(of(3, "a", "a-3"));
    stage.put_pod(of(4, "b", "z"));
    stage.settle();
    let names = |stage: &Stage| stage.nats().keys().map(|id| id.name().to_owned()).collect();
    let made: Vec<String> = names(&stage);
    assert_eq!(made, ["a-1", "z"], "each namespace in turn");
    assert_eq!(rules(&mut stage), [("a/pod-2".to_owned(), LIMIT), ("a/pod-3".to_owned(), LIMIT)]);
    stage.planner = Planner::default();
    stage.put_pod(forged(5, "c", "c"));
    stage.settle();
    assert_eq!(names(&stage), made, "what stands stays");
    edit(&mut stage, 1, "a", |pod| pod.deletion = Deletion::Requested);
    stage.settle();
    stage.world.kubernetes.pods.remove(&ServiceName::new("a", "pod-1"));
    stage.settle();
    assert_eq!(names(&stage).len(), 2);
    stage.policy.tenancy.most_egress = 9;
    stage.settle();
    assert_eq!((names(&stage).len(), rules(&mut stage)), (4, vec![]));
}

/// A node joins before it has addresses, or a cluster becomes dual-stack: what a gateway has hangs
/// on the nodes that there are, not on when it was made.
#[test]
fn a_gateway_gets_ipv6_with_the_first_node_that_has_it() {
    let mut stage = Stage::leaving();
    assert!(!stage.calls.contains(&"PUT team-a-pip-v6".to_owned()), "{:?}", stage.calls);
    stage.calls.clear();
    stage.node(9, vec![node_ip(9), ip("fd00::9")]);
    stage.settle();
    assert_eq!(stage.calls, ["PUT team-a-pip-v6", "PUT team-a"]);
    let nat = stage.nats().values().next().expect("it was made");
    assert_eq!((nat.public_ips.len(), nat.public_ips_v6.len()), (1, 1));
    // It keeps it when that node goes.
    stage.calls.clear();
    stage.node(9, vec![node_ip(9)]);
    stage.settle();
    assert_eq!(stage.calls, Vec::<String>::new());
}

/// Another client writes a NAT gateway.
fn put_nat(stage: &mut Stage, nat: NatGateway) {
    let all = stage.world.azure.nat_gateways.known_mut().expect("the stage knows everything");
    all.insert(nat.id.clone(), Arc::new(nat));
}

/// Another client removed the public IPs from the NAT gateway, which leaves its Pods without
/// outbound connectivity, and attached a public IP of its own.
#[test]
fn a_gateway_gets_back_a_public_ip_that_was_taken_from_it() {
    let mut stage = Stage::new();
    stage.node(9, vec![node_ip(9), ip("fd00::9")]);
    stage.put_pod(pod(1, "team-a", 1));
    stage.settle();
    let made = Arc::clone(stage.nats().values().next().expect("it was made"));
    let theirs = stage.policy.public_ip_id(&stage.policy.group, "theirs");
    let mine = stage.ips()[&made.public_ips[0]].clone();
    let other = PublicIp { id: theirs.clone(), ..PublicIp::clone(&mine) };
    public_ips_mut(&mut stage.world).insert(theirs.clone(), Arc::new(other));
    let left = NatGateway {
        public_ips: vec![theirs.clone()],
        public_ips_v6: Vec::new(),
        ..NatGateway::clone(&made)
    };
    put_nat(&mut stage, left);
    stage.calls.clear();
    stage.settle();
    assert_eq!(stage.calls, ["PUT team-a"], "its public IPs stand still");
    let nat = stage.nats().values().next().expect("it stands");
    assert_eq!(nat.public_ips, [theirs, made.public_ips[0].clone()]);
    assert_eq!(nat.public_ips_v6, made.public_ips_v6);
    // The public IP was deleted, too: another one is made.
    put_nat(&mut stage, NatGateway { public_ips: Vec::new(), ..NatGateway::clone(&made) });
    public_ips_mut(&mut stage.world).remove(&made.public_ips[0]);
    stage.calls.clear();
    stage.settle();
    assert_eq!(stage.calls, ["PUT team-a-pip", "PUT team-a"]);
}
