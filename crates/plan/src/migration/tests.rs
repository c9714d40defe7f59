//! How far a Service is, by its status, its condition and the clock.

use super::stage::{Stage, Stages};
use super::view::Views;
use super::{Course, Sides, course};
use crate::Refused;
use crate::ask::hold;
use crate::own::pod_names;
use model::azure::{FrontendAddress, LoadBalancer, Sku};
use model::kubernetes::{
    Backends, Deletion, Endpoint, EndpointSlice, GATEWAY_FINALIZER, Ingress, LoadBalancerType,
    Move, MoveStage, Readiness, SERVICE_FINALIZER, Service, Target, Wish,
};
use model::policy::{BalancerSku, Chosen, KeepBoth, Layout, Migration, PoolKind};
use model::world::{Fact, Hold};
use model::{Ledger, NodeName, Policy, ServiceName, ServiceUid, World};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const POD: &str = "20.0.0.9";
const NODE: &str = "20.0.0.1";

fn sides() -> Sides {
    let former = fixture::policy();
    let target = Policy {
        sku: BalancerSku::Service,
        layout: Layout::PerService,
        pools: PoolKind::PodIp,
        ..fixture::policy()
    };
    let migration = Migration {
        from: Arc::new(former.clone()),
        keep_both: KeepBoth::For { seconds: 60 },
        drain_s: 60,
        chosen: Chosen::All,
    };
    Sides { target, former, migration, left: Vec::new() }
}

/// The stage of a Service that tells these addresses, with a container load balancer at [`POD`].
/// A Service, and the public IP of its container load balancer.
fn world_of(sides: &Sides, service: Service) -> World {
    let mut world = World::default();
    let name = pod_names::public_ip(&pod_names::of_service(&service.uid));
    let id = sides.target.public_ip_id(&sides.target.group, &name);
    let ip = fixture::public_ip(&name, POD.parse().ok());
    let ips = Fact::Known(BTreeMap::from([(id, Arc::new(ip))]));
    world.azure.public_ips.insert(sides.target.group.clone(), ips);
    world.azure.balancers = Fact::Known(BTreeMap::new());
    world.kubernetes.services.insert(service.uid.clone(), Arc::new(service));
    world
}

fn stage(told: &[&str], moving: Option<(Backends, MoveStage)>, elapsed: bool) -> Stage {
    stage_of(told, moving, elapsed, |_| ())
}

fn stage_of(
    told: &[&str],
    moving: Option<(Backends, MoveStage)>,
    elapsed: bool,
    change: impl FnOnce(&mut Service),
) -> Stage {
    let sides = sides();
    let ingress = |ip: &&str| Ingress { ip: Some(Arc::from(*ip)), hostname: None };
    let mut service = Service {
        ingress: told.iter().map(ingress).collect(),
        moving: moving.map(|(to, stage)| Move { to, stage, since: Arc::from("") }),
        ..fixture::service(&[])
    };
    change(&mut service);
    let uid = service.uid.clone();
    let mut world = world_of(&sides, service);
    world.elapsed = if elapsed { BTreeSet::from([uid.clone()]) } else { BTreeSet::new() };
    Stages::of(&world, &sides).all[&uid].stage
}

#[test]
fn the_stage_follows_from_what_the_service_tells() {
    let both = Some((Backends::Pods, MoveStage::Both));
    let draining = Some((Backends::Pods, MoveStage::Draining));
    let cases = [
        (&[NODE][..], None, false, Stage::Arriving),
        (&[POD, NODE], None, false, Stage::Arriving),
        (&[POD, NODE], both, false, Stage::Both),
        (&[POD, NODE], both, true, Stage::Withdrawing),
        (&[POD], both, false, Stage::Withdrawing),
        (&[POD], draining, false, Stage::Draining),
        (&[POD], draining, true, Stage::Gone),
        (&[POD], None, false, Stage::Gone),
        (&[], None, false, Stage::Gone),
        // Nothing is taken away from who has nothing else.
        (&[NODE], both, true, Stage::Arriving),
        (&[NODE], draining, true, Stage::Arriving),
        (&[], both, true, Stage::Arriving),
        // Another hand put the former address back.
        (&[POD, NODE], draining, true, Stage::Withdrawing),
    ];
    for (told, moving, elapsed, expected) in cases {
        assert_eq!(stage(told, moving, elapsed), expected, "{told:?} {moving:?} {elapsed}");
    }
}

/// kube-proxy leads to endpoints outside of the cluster, and no container load balancer does. A Pod
/// that is not ready will be.
#[test]
fn only_nodes_serve_who_has_nothing_but_endpoints_outside_of_the_cluster() {
    let mut sides = sides();
    let service = fixture::service(&[]);
    let uid = service.uid.clone();
    let mut world = world_of(&sides, service);
    let endpoint = |node: Option<&str>, target, readiness| Endpoint {
        address: "10.99.0.1".parse().expect("an address"),
        node: node.map(NodeName::new),
        readiness,
        target,
    };
    let (ready, not) = (Readiness::Ready, Readiness::NotReady);
    let out = |readiness| endpoint(None, Target::Own, readiness);
    let pod = |readiness| endpoint(Some("vmss000000"), Target::Own, readiness);
    let theirs = || endpoint(Some("vmss000000"), Target::Foreign, ready);
    let mut set = |sides: &Sides, endpoints: Vec<Endpoint>| {
        let service = Some(ServiceName::new("default", "web"));
        let slice = EndpointSlice { service, ..fixture::slice("web-1", endpoints) };
        world.kubernetes.slices.insert(slice.name.clone(), Arc::new(slice));
        Stages::of(&world, sides).all[&uid].outside
    };
    assert!(set(&sides, vec![out(ready)]) && set(&sides, vec![out(not)]));
    assert!(set(&sides, vec![out(ready), theirs()]), "a Pod of another namespace is none of its");
    assert!(!set(&sides, vec![out(ready), pod(ready)]));
    assert!(!set(&sides, vec![out(ready), pod(not)]));
    assert!(!set(&sides, Vec::new()) && !set(&sides, vec![theirs()]));
    std::mem::swap(&mut sides.target, &mut sides.former);
    assert!(!set(&sides, vec![out(ready)]), "it is on its way to nodes");
}

#[test]
fn a_condition_of_the_other_direction_counts_for_nothing() {
    let back = Some((Backends::Nodes, MoveStage::Draining));
    assert_eq!(stage(&[NODE, POD], back, true), Stage::Arriving);
    assert_eq!(stage(&[POD], back, true), Stage::Gone);
}

#[test]
fn what_its_owner_holds_or_deletes_stands_still() {
    let both = Some((Backends::Pods, MoveStage::Both));
    let still = |change: fn(&mut Service)| stage_of(&[POD, NODE], both, true, change);
    assert_eq!(still(|s| s.wish = Wish::Nothing), Stage::Still);
    let pause = |s: &mut Service| {
        let annotations = BTreeMap::from([(Arc::from("ballast.dev/pause"), Arc::from("true"))]);
        s.annotations = Arc::new(annotations);
    };
    assert_eq!(still(pause), Stage::Still);
}

/// Two load balancers that lead to a Service: from [`NODE`] to nodes, from [`POD`] to Pods.
fn led(sides: &Sides, service: Service) -> World {
    let uid = service.uid.clone();
    let nodes = fixture::balancer();
    let name = pod_names::of_service(&uid);
    let ip = |name: &str| sides.target.public_ip_id(&sides.target.group, name);
    let mut pods =
        LoadBalancer { id: sides.target.balancer_id(&name), sku: Sku::Service, ..nodes.clone() };
    let frontend = pods.id.child("frontendIPConfigurations", pod_names::FRONTEND);
    pods.frontends[0].name = pod_names::FRONTEND.into();
    pods.frontends[0].address = FrontendAddress::Public(ip(&pod_names::public_ip(&name)));
    pods.rules[0].name = "rule-tcp-80".into();
    pods.rules[0].frontend = Some(frontend);
    let own = fixture::public_ip(&format!("kubernetes-{}", uid.base_name()), NODE.parse().ok());
    let mut world = world_of(sides, service);
    fixture::public_ips_mut(&mut world).insert(own.id.clone(), Arc::new(own));
    let all = [nodes, pods].map(|balancer| (balancer.id.clone(), Arc::new(balancer)));
    world.azure.balancers = Fact::Known(BTreeMap::from(all));
    world.elapsed.insert(uid);
    world
}

/// Another client has taken away what the new load balancer leads with, while time went by.
#[test]
fn the_former_load_balancer_stays_until_the_new_one_is_seen_to_lead_on() {
    let mut sides = sides();
    for (home, new, former) in [(Backends::Pods, POD, NODE), (Backends::Nodes, NODE, POD)] {
        assert_eq!(sides.target.backends(), home);
        let stage = |told: &[&str], stage, change: fn(&mut LoadBalancer), spoilt: &[Backends]| {
            let ingress = |ip: &&str| Ingress { ip: Some(Arc::from(*ip)), hostname: None };
            let service = Service {
                ingress: told.iter().map(ingress).collect(),
                moving: Some(Move { to: home, stage, since: Arc::from("") }),
                ..fixture::service(&[])
            };
            let uid = service.uid.clone();
            let mut world = led(&sides, service);
            for balancer in
                world.azure.balancers.known_mut().into_iter().flat_map(|a| a.values_mut())
            {
                let pods = balancer.sku == Sku::Service;
                let of = if pods { Backends::Pods } else { Backends::Nodes };
                if spoilt.contains(&of) {
                    change(Arc::make_mut(balancer));
                }
            }
            Stages::of(&world, &sides).all[&uid].stage
        };
        let (none, both, own) = (&[][..], [home, home.other()], [home]);
        let changes: [fn(&mut LoadBalancer); 2] = [|b| b.rules.clear(), |b| b.frontends.clear()];
        for change in changes {
            let of = |spoilt| {
                [
                    stage(&[new, former], MoveStage::Both, change, spoilt),
                    stage(&[new], MoveStage::Draining, change, spoilt),
                ]
            };
            assert_eq!(of(none), [Stage::Withdrawing, Stage::Gone], "{home:?}");
            assert_eq!(of(&own), [Stage::Both, Stage::Draining], "{home:?}");
            assert_eq!(of(&both), [Stage::Withdrawing, Stage::Gone], "{home:?}: neither leads on");
        }
        std::mem::swap(&mut sides.target, &mut sides.former);
    }
}

/// The cause does not matter, and the cloud config is one.
#[test]
fn whose_owner_confirms_interruptions_has_both_addresses_until_then() {
    let both = Some((Backends::Pods, MoveStage::Both));
    let asking = |confirmed: &str| {
        stage_of(&[POD, NODE], both, true, |s| {
            let pairs = [("ballast.dev/confirm", "true"), ("ballast.dev/confirmed", confirmed)];
            let pairs = pairs.map(|(key, value)| (Arc::from(key), Arc::from(value)));
            s.annotations = Arc::new(BTreeMap::from(pairs));
        })
    };
    assert_eq!(asking(""), Stage::Both);
    assert_eq!(asking("20.0.0.7, kubernetes"), Stage::Both);
    assert_eq!(asking("20.0.0.7, 20.0.0.1"), Stage::Withdrawing);
}

/// The node-based load balancers are gone, and the security group still has their rules.
#[test]
fn a_move_goes_on_until_nothing_is_open() {
    let sides = sides();
    let policy = Policy { migration: Some(sides.migration), ..sides.target };
    let mut world = World::default();
    assert!(matches!(course(&world, &policy), Course::Alone));
    let mut ledger = Ledger::default();
    ledger.destinations.entry(NODE.parse().expect("an address")).or_default();
    world.kubernetes.ledger = Fact::Known(Arc::new(ledger));
    assert!(matches!(course(&world, &policy), Course::Moving(_)));
}

/// Protection acts on a Service that is deleted or gets another type.
#[test]
fn a_protected_service_leaves_the_load_balancer_that_it_has_moved_from() {
    let sides = sides();
    let protected = (Arc::from("ballast.dev/deletion-protection"), Arc::from("true"));
    let service = Service {
        ingress: vec![Ingress { ip: Some(Arc::from(POD)), hostname: None }],
        finalizers: vec![SERVICE_FINALIZER.into(), GATEWAY_FINALIZER.into()],
        annotations: Arc::new(BTreeMap::from([protected])),
        ..fixture::service(&[])
    };
    let uid = service.uid.clone();
    let world = world_of(&sides, service);
    let stages = Stages::of(&world, &sides);
    assert_eq!(stages.all[&uid].stage, Stage::Gone);
    let former = Views::default().of(&world, &sides, &stages, (Backends::Nodes, &Refused::new()));
    let shown = &former.kubernetes.services[&uid];
    assert_eq!(shown.wish, Wish::Nothing);
    assert!(hold::find(shown).is_none(), "what it has left would stand for ever");
    let deleted = Service { deletion: Deletion::Requested, ..Service::clone(shown) };
    assert!(hold::find(&deleted).is_some());
    let retyped = Service { load_balancer_type: LoadBalancerType::Other, ..Service::clone(shown) };
    assert!(hold::find(&retyped).is_some());
}

/// A new process reads lists that do not show yet what the one before it has just made, or another
/// client has deleted the public IP. Taken for one over nodes, its address would have the container
/// load balancer deleted while it serves.
#[test]
fn an_address_that_no_list_shows_is_not_one_over_nodes() {
    let mut sides = sides();
    std::mem::swap(&mut sides.target, &mut sides.former);
    let service = Service {
        ingress: vec![Ingress { ip: Some(Arc::from(POD)), hostname: None }],
        ..fixture::service(&[])
    };
    let uid = service.uid.clone();
    let mut world = World::default();
    let group = sides.target.group.clone();
    world.azure.balancers = Fact::Known(BTreeMap::new());
    world.azure.public_ips.insert(group.clone(), Fact::Known(BTreeMap::new()));
    let name = pod_names::of_service(&uid);
    let entry = fixture::gateway_service(&name);
    world.azure.gateway_services = Fact::Known([(name, Arc::new(entry))].into_iter().collect());
    world.kubernetes.services.insert(uid.clone(), Arc::new(service));
    let stage = |world: &World| Stages::of(world, &sides).all[&uid].stage;
    assert_eq!(stage(&world), Stage::Arriving);
    let mut alone = world.clone();
    alone.azure.gateway_services = Fact::Known(BTreeMap::new());
    assert_eq!(stage(&alone), Stage::Gone, "nothing of a container load balancer stands");
    let mut listed = world.clone();
    let annotated = fixture::service(&[("azure-additional-public-ips", POD)]);
    let service = listed.kubernetes.services.get_mut(&uid).expect("it is there");
    Arc::make_mut(service).annotations = annotated.annotations;
    assert_eq!(stage(&listed), Stage::Gone, "its owner lists the address");
    let node = Arc::new(fixture::public_ip("node", POD.parse().ok()));
    let shown = Fact::Known(BTreeMap::from([(node.id.clone(), node)]));
    world.azure.public_ips.insert(group, shown);
    assert_eq!(stage(&world), Stage::Gone, "it is that of a load balancer over nodes");
}

/// Who does not see that a write was refused sends it again at once.
#[test]
fn whoever_plans_a_write_sees_that_it_was_refused() {
    let sides = sides();
    let policy = &sides.target;
    let ip = |name: &str| policy.public_ip_id(&policy.group, name);
    let uid = "00000001-1111-4222-8333-0123456789ab";
    let of_pods = [
        (uid, ip(&pod_names::public_ip(uid))),
        (uid, policy.balancer_id(uid)),
        (uid, pod_names::services_table(policy)),
        (uid, pod_names::locations_table(policy)),
        ("team-a", ip("team-a-pip")),
        ("Team-A", ip("team-a-pip-v6")),
        ("team-a", policy.network_id(&policy.group, "natGateways", "team-a")),
    ];
    let of_nodes = [(uid, ip("kubernetes-a0000")), (uid, policy.balancer_id("kubernetes"))];
    let is_seen = |(cause, target): (&str, model::ResourceId), backends| {
        let (reason, code) = (Arc::from("refused"), Arc::from("PublicIPCountLimitReached"));
        let hold = Hold { target, reason, code, until_ms: Some(1), attempt: 1 };
        let mut world = World::default();
        world.holds.insert(ServiceUid::new(cause), hold);
        let stages = Stages::of(&world, &sides);
        !Views::default().of(&world, &sides, &stages, (backends, &Refused::new())).holds.is_empty()
    };
    for (all, own) in [(&of_pods[..], Backends::Pods), (&of_nodes[..], Backends::Nodes)] {
        for refused in all {
            assert!(is_seen(refused.clone(), own), "{refused:?}");
            assert!(!is_seen(refused.clone(), own.other()), "{refused:?}");
        }
    }
}
