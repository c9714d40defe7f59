use crate::Planner;
use fixture::{policy, service, world};
use model::kubernetes::{Affinity, Service};
use model::policy::{BalancerSku, Layout, PoolKind};
use model::world::Fact;
use model::{Policy, ServiceName, ServiceUid, World};
use std::sync::Arc;

/// A Service with as many bad annotations as the API server takes, beside `default/web`.
fn hostile() -> Service {
    let ranges: String = (0..60_000).map(|n| format!("{n:x},")).collect();
    Service {
        uid: ServiceUid::new("00000002-1111-4222-8333-0123456789ab"),
        name: ServiceName::new("evil", "web"),
        ..service(&[("azure-allowed-ip-ranges", &ranges)])
    }
}

fn reads_of(world: &mut World, policy: &Policy) -> Vec<u64> {
    let hostile = hostile();
    world.kubernetes.services.insert(hostile.uid.clone(), Arc::new(hostile.clone()));
    let mut planner = Planner::default();
    let mut reads = Vec::new();
    let mut plan = |world: &World| {
        let (_, report) = planner.plan(world, policy);
        assert_eq!(report.services.len(), world.kubernetes.services.len());
        reads.push(std::mem::take(&mut planner.readings.count));
    };
    plan(world);
    plan(world);
    let web = world.kubernetes.services.get_mut(&service(&[]).uid).expect("it is there");
    Arc::make_mut(web).affinity = Affinity::ClientIp;
    plan(world);
    let web = world.kubernetes.services.get_mut(&service(&[]).uid).expect("it is there");
    let web = Arc::make_mut(web);
    (web.revision, web.condition) = ("2".into(), None);
    web.finalizers.push("another".into());
    web.ingress.clear();
    plan(world);
    Arc::make_mut(world.kubernetes.nodes.values_mut().next().expect("one")).revision = "2".into();
    plan(world);
    world.kubernetes.services.remove(&hostile.uid);
    plan(world);
    assert!(planner.readings.nodes.len() + planner.readings.containers.len() <= 1);
    reads
}

#[test]
fn a_service_is_read_once_until_it_changes() {
    assert_eq!(reads_of(&mut world(), &policy()), [2, 0, 1, 0, 0, 0]);
}

#[test]
fn so_is_one_that_waits_for_a_container_load_balancer() {
    let policy = Policy {
        security_group_name: "".into(),
        sku: BalancerSku::Service,
        layout: Layout::PerService,
        pools: PoolKind::PodIp,
        ..policy()
    };
    let mut world = world();
    world.azure.balancers = Fact::Unknown;
    assert_eq!(reads_of(&mut world, &policy), [2, 0, 1, 0, 0, 0]);
}

#[test]
fn a_world_that_changed_is_planned_anew_and_no_other() {
    let (mut world, policy) = (world(), policy());
    let mut planner = Planner::default();
    let first = planner.plan(&world, &policy);
    assert_eq!(planner.plan(&world.clone(), &policy), first);
    world.azure.balancers = Fact::Unknown;
    let second = planner.plan(&world, &policy);
    assert_eq!(second, crate::plan(&world, &policy));
    assert_ne!(second, first);
}
