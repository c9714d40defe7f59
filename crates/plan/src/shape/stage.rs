//! Internal Services in a network of two subnets, for tests.

use explain::forecast::settle;
use model::azure::LoadBalancer;
use model::kubernetes::{Service, ServicePort};
use model::policy::PoolKind;
use model::report::ServiceReport;
use model::world::Fact;
use model::{Plan, Policy, Report, ServiceName, ServiceUid, World};
use plan_check::check;
use std::collections::BTreeMap;
use std::sync::Arc;

pub(crate) const ADDRESS: &str = "10.224.9.9";
pub(crate) const SUBNET: &str = "azure-load-balancer-internal-subnet";
pub(crate) const PINNED: &str = "azure-load-balancer-ipv4";

pub(crate) fn policy() -> Policy {
    Policy { pools: PoolKind::NodeNic, ..fixture::policy() }
}

pub(crate) fn uid(n: u16) -> ServiceUid {
    ServiceUid::new(format!("{n:08x}-1111-4222-8333-0123456789ab"))
}

fn numbered(n: u16, namespace: &str, port: u16, annotations: &[(&str, &str)]) -> Service {
    let service = fixture::claimed(fixture::service(annotations));
    let only = ServicePort { port, node_port: Some(30_000 + n), ..service.ports[0].clone() };
    let name = ServiceName::new(namespace, format!("web-{n}"));
    Service { uid: uid(n), name, ports: vec![only], ..service }
}

/// Internal Service number `n`, on a port.
pub(crate) fn internal(n: u16, port: u16, annotations: &[(&str, &str)]) -> Service {
    let mut all = vec![("azure-load-balancer-internal", "true")];
    all.extend(annotations);
    numbered(n, "default", port, &all)
}

/// Public Service number `n` of a namespace.
pub(crate) fn public(n: u16, namespace: &str, annotations: &[(&str, &str)]) -> Service {
    numbered(n, namespace, 80 + n, annotations)
}

/// The Services, a node, two subnets and an empty security group; nothing else is in Azure yet.
pub(crate) fn world(services: Vec<Service>) -> World {
    let mut world = fixture::world();
    world.kubernetes.services.clear();
    services.into_iter().for_each(|service| change(&mut world, service));
    let azure = &mut world.azure;
    azure.balancers = Fact::Known(BTreeMap::new());
    azure.public_ips.insert(policy().group, Fact::Known(BTreeMap::new()));
    for (name, prefix) in [("nodes", "10.224.0.0/16"), ("apps", "10.225.0.0/16")] {
        let subnet = fixture::subnet(name, prefix);
        azure.subnets.insert(subnet.id.clone(), Fact::Known(Some(Arc::new(subnet))));
    }
    azure.subnets.insert(policy().subnet_id("nowhere"), Fact::Known(None));
    fixture::security_group_mut(&mut world).rules.clear();
    world
}

/// What the controller sees of a Service now; its status and finalizers stay.
pub(crate) fn change(world: &mut World, service: Service) {
    let old = world.kubernetes.services.get(&service.uid);
    let ingress = old.map(|old| old.ingress.clone()).unwrap_or_default();
    let service = Service { ingress, ..service };
    world.kubernetes.services.insert(service.uid.clone(), Arc::new(service));
}

/// What is planned now, which breaks no rule.
pub(crate) fn planned(world: &World) -> (Plan, Report) {
    let (plan, report) = crate::plan(world, &policy());
    assert_eq!(check(world, &policy(), &plan), []);
    (plan, report)
}

/// The World once all is done: the plan on the way is clean, and nothing is left to do.
pub(crate) fn settled(world: World) -> World {
    planned(&world);
    let (world, _) = settle(world, &policy());
    let (plan, _) = crate::plan(&world, &policy());
    assert!(plan.is_empty(), "{plan:#?}");
    world
}

pub(crate) fn report(world: &World, n: u16) -> Arc<ServiceReport> {
    let (_, report) = crate::plan(world, &policy());
    Arc::clone(&report.services[&uid(n)])
}

/// The internal load balancer.
pub(crate) fn balancer(world: &World) -> &LoadBalancer {
    let all = world.azure.balancers.known().expect("read");
    &all[&policy().balancer_id("kubernetes-internal")]
}

/// Frontends with their addresses, and rules with the frontends they lead to, sorted: the number of
/// the Service stands for the base of each name.
pub(crate) fn parts(world: &World) -> Vec<String> {
    let balancer = balancer(world);
    let short = |name: &str| format!("{}{}", &name[8..9], &name[32..]);
    let frontends = balancer.frontends.iter().map(|f| {
        let address = f.private().expect("a private one");
        format!("{} {address}", short(&f.name))
    });
    let rules = balancer.rules.iter().map(|r| {
        let frontend = r.frontend.as_ref().expect("it leads somewhere");
        format!("{} -> {}", short(&r.name), short(frontend.name()))
    });
    let mut all: Vec<String> = frontends.chain(rules).collect();
    all.sort_unstable();
    all
}
