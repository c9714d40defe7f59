//! Anything may happen at any time; calls land late. What Azure would refuse is a panic on the
//! stage, and what is remembered between plans is compared with nothing after each step.

use super::stage::{Stage, gated, node_ip, pod, pod_ip, port, service};
use model::kubernetes::{Deletion, LoadBalancerType, Others, PodPhase, Wish};
use model::{NodeName, ServiceName};
use proptest::prelude::*;
use std::net::IpAddr;

#[derive(Clone, Debug)]
enum Happening {
    Add(u8),
    Delete(u8),
    Retype(u8),
    Port(u8, u16),
    Slice(u8, u8, Vec<(u8, u8)>),
    SliceGone(u8, u8),
    Node(u8, u8),
    NodeGone(u8),
    Pod(u8, u8, u8),
    PodIp(u8, u8),
    PodEnds(u8),
    PodDeleted(u8),
    Unready(u8, u8, Vec<(u8, u8)>),
    Gated(u8, Others),
    GatedGone(u8),
    Write,
    Send(usize),
    Land(usize),
}

fn happening() -> impl Strategy<Value = Happening> {
    use Happening as H;
    let service = 1..4_u8;
    let spot = || (1..7_u8, 1..4_u8);
    prop_oneof![
        2 => service.clone().prop_map(H::Add),
        1 => service.clone().prop_map(H::Delete),
        1 => service.clone().prop_map(H::Retype),
        1 => (service.clone(), 80..83_u16).prop_map(|(n, p)| H::Port(n, p)),
        3 => (service.clone(), 0..2_u8, prop::collection::vec(spot(), 0..4))
            .prop_map(|(n, part, at)| H::Slice(n, part, at)),
        1 => (service, 0..2_u8).prop_map(|(n, part)| H::SliceGone(n, part)),
        1 => (1..4_u8, 1..7_u8).prop_map(|(n, at)| H::Node(n, at)),
        1 => (1..4_u8).prop_map(H::NodeGone),
        3 => (1..5_u8, 0..2_u8, 1..4_u8).prop_map(|(n, l, at)| H::Pod(n, l, at)),
        1 => (1..5_u8, 1..7_u8).prop_map(|(n, at)| H::PodIp(n, at)),
        1 => (1..5_u8).prop_map(H::PodEnds),
        1 => (1..5_u8).prop_map(H::PodDeleted),
        2 => (1..4_u8, 0..2_u8, prop::collection::vec(spot(), 0..4))
            .prop_map(|(n, part, at)| H::Unready(n, part, at)),
        4 => (1..7_u8, prop_oneof![
            4 => Just(Others::Hold), 2 => Just(Others::Missing), 1 => Just(Others::Over)])
            .prop_map(|(n, others)| H::Gated(n, others)),
        1 => (1..7_u8).prop_map(H::GatedGone),
        6 => Just(H::Write),
        8 => (0..8_usize).prop_map(H::Send),
        8 => (0..8_usize).prop_map(H::Land),
    ]
}

fn happen(stage: &mut Stage, happening: &Happening) {
    let name = |n: u8, part: u8| format!("slice-{n}-{part}");
    match happening {
        Happening::Add(n) => {
            let uid = super::stage::uid(*n);
            if stage.world.kubernetes.services.contains_key(&uid) {
                stage.edit(*n, |s| {
                    if s.deletion == Deletion::None {
                        s.wish = Wish::LoadBalancer;
                        s.load_balancer_type = LoadBalancerType::Ours;
                    }
                });
            } else {
                stage.put(service(*n));
            }
        }
        Happening::Delete(n) => stage.edit(*n, |s| {
            s.wish = Wish::Nothing;
            s.deletion = Deletion::Requested;
        }),
        Happening::Retype(n) => stage.edit(*n, |s| {
            s.wish = Wish::Nothing;
            s.load_balancer_type = LoadBalancerType::Other;
        }),
        Happening::Port(n, p) => stage.edit(*n, |s| s.ports = vec![port(*p, 8080)]),
        Happening::Slice(n, part, at) => stage.slice(&name(*n, *part), *n, at),
        Happening::SliceGone(n, part) => {
            let name = ServiceName::new("default", name(*n, *part));
            stage.world.kubernetes.slices.remove(&name);
        }
        Happening::Node(n, at) => stage.node(*n, vec![node_ip(*at)]),
        Happening::NodeGone(n) => {
            let name = NodeName::new(format!("node-{n}"));
            stage.world.kubernetes.nodes.remove(&name);
        }
        Happening::Pod(n, label, at) => {
            let name = ServiceName::new("default", format!("pod-{n}"));
            if !stage.world.kubernetes.pods.contains_key(&name) {
                stage.put_pod(pod(*n, ["team-a", "team-b"][usize::from(*label)], *at));
            }
        }
        Happening::PodIp(n, at) => stage.edit_pod(*n, |p| p.addresses = vec![pod_ip(*at)]),
        Happening::PodEnds(n) => stage.edit_pod(*n, |p| p.phase = PodPhase::Ended),
        Happening::PodDeleted(n) => delete_pod(stage, *n),
        Happening::Unready(n, part, at) => stage.unready(&name(*n, *part), *n, at),
        Happening::Gated(n, others) => put_gated(stage, *n, *others),
        Happening::GatedGone(n) => {
            stage.world.kubernetes.gated_pods.remove(&gated_name(*n));
        }
        Happening::Write => {
            let (_, writes) = stage.ready();
            writes.iter().for_each(|write| stage.write(write));
        }
        Happening::Send(k) => {
            let (changes, _) = stage.ready();
            if let Some(change) = changes.into_iter().nth(*k) {
                stage.flying.push(change);
            }
        }
        Happening::Land(k) => {
            if *k < stage.flying.len() {
                let change = stage.flying.remove(*k);
                stage.apply(change);
            }
        }
    }
}

fn gated_name(n: u8) -> ServiceName {
    ServiceName::new("default", format!("pod-{n}"))
}

fn put_gated(stage: &mut Stage, n: u8, others: Others) {
    let name = gated_name(n);
    if !stage.world.kubernetes.gated_pods.contains_key(&name) {
        stage.put_gated(gated(n, &[("app", "web")]));
    }
    stage.edit_gated(&name, |pod| pod.others = others);
}

fn delete_pod(stage: &mut Stage, n: u8) {
    let name = ServiceName::new("default", format!("pod-{n}"));
    let held = stage.world.kubernetes.pods.get(&name).is_some_and(|p| !p.finalizers.is_empty());
    if held {
        stage.edit_pod(n, |p| p.deletion = Deletion::Requested);
    } else {
        stage.world.kubernetes.pods.remove(&name);
    }
}

fn config() -> ProptestConfig {
    ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn whatever_happens_it_settles_and_nothing_is_left_over(
        happenings in prop::collection::vec(happening(), 0..120)
    ) {
        let mut stage = Stage::new();
        for happening in &happenings {
            happen(&mut stage, happening);
            stage.plan();
        }
        stage.settle();
        let wanted = stage.world.kubernetes.services.values();
        let wanted = wanted.filter(|s| s.wish == Wish::LoadBalancer).count();
        prop_assert_eq!(stage.balancers().len(), wanted);
        let mut seen: std::collections::BTreeSet<IpAddr> = std::collections::BTreeSet::new();
        for address in stage.locations().values().flat_map(|a| a.keys()) {
            prop_assert!(seen.insert(*address), "{} is at two locations", address);
        }
        for n in 1..4 {
            stage.edit(n, |s| {
                s.wish = Wish::Nothing;
                s.deletion = Deletion::Requested;
            });
            stage.world.kubernetes.slices.clear();
        }
        for n in 1..5 {
            delete_pod(&mut stage, n);
        }
        stage.settle();
        prop_assert!(stage.world.kubernetes.services.is_empty());
        prop_assert!(stage.world.kubernetes.pods.is_empty());
        prop_assert!(stage.balancers().is_empty() && stage.nats().is_empty());
        prop_assert!(stage.ips().is_empty() && stage.table().is_empty());
        prop_assert_eq!(stage.services().len(), 1);
    }
}
