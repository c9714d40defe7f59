//! Each breach, by a plan that is broken in one way.

use super::{Breach, check};
use fixture::{
    balancer, claimed, policy, private_link, public_ip, security_group_mut, security_rule as rule,
    service, world,
};
use model::azure::{
    AdminState, FrontendAddress, LoadBalancer, PoolAddress, PrivateLinkService, PublicIp, Rule,
    RuleProtocol, SecurityGroup, SecurityRule, Sku,
};
use model::kubernetes::{Deletion, Endpoint, EndpointSlice, Ingress, Readiness, Target, Wish};
use model::plan::{
    Action, Change, ConditionEdit, Edit, FinalizerPurpose, KubernetesWrite, Object, Resource,
};
use model::report::{Until, Wait};
use model::world::Fact;
use model::{Etag, Family, NodeName, Plan, Policy, ResourceId, World};
use plan::own::name::local_pool;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A change of a resource in the World.
fn put(before: Option<Resource>, after: Resource) -> Change {
    let guard = match &before {
        Some(Resource::LoadBalancer(r)) => r.etag.clone(),
        Some(Resource::PublicIp(r)) => r.etag.clone(),
        Some(Resource::SecurityGroup(r)) => r.etag.clone(),
        _ => None,
    };
    let target = after.id().clone();
    let action = Action::Put { before, after };
    Change { target, action, guard, causes: BTreeSet::new(), waits: Vec::new() }
}

fn delete(before: Resource) -> Change {
    let target = before.id().clone();
    let action = Action::Delete { before };
    Change { target, action, guard: None, causes: BTreeSet::new(), waits: Vec::new() }
}

fn found(world: &World, changes: Vec<Change>) -> Vec<Breach> {
    let changes = changes.into_iter().map(Arc::new).collect();
    breaches(world, &Plan { changes, ..Plan::default() })
}

fn breaches(world: &World, plan: &Plan) -> Vec<Breach> {
    let mut all: Vec<Breach> =
        check(world, &policy(), plan).into_iter().map(|v| v.breach).collect();
    all.dedup();
    all
}

fn the(world: &World) -> Arc<LoadBalancer> {
    let all = world.azure.balancers.known().expect("listed");
    Arc::clone(all.values().next().expect("there is one"))
}

fn the_mut(world: &mut World) -> &mut LoadBalancer {
    let all = world.azure.balancers.known_mut().expect("listed");
    Arc::make_mut(all.values_mut().next().expect("there is one"))
}

/// An edit of the load balancer that is in the World.
fn edit(world: &World, edit: impl FnOnce(&mut LoadBalancer)) -> Change {
    let before = the(world);
    let mut after = LoadBalancer::clone(&before);
    edit(&mut after);
    put(Some(Resource::LoadBalancer(before)), Resource::LoadBalancer(Arc::new(after)))
}

fn ip_of(world: &World) -> Arc<PublicIp> {
    let facts = world.azure.public_ips.values().next().expect("a group");
    Arc::clone(facts.known().expect("listed").values().next().expect("there is one"))
}

fn edit_ip(world: &World, edit: impl FnOnce(&mut PublicIp)) -> Change {
    let before = ip_of(world);
    let mut after = PublicIp::clone(&before);
    edit(&mut after);
    put(Some(Resource::PublicIp(before)), Resource::PublicIp(Arc::new(after)))
}

fn grouped(rules: Vec<SecurityRule>) -> World {
    let mut world = world();
    security_group_mut(&mut world).rules.clone_from(&rules);
    world
}

fn edit_group(world: &World, edit: impl FnOnce(&mut SecurityGroup)) -> Change {
    let before = world.azure.security_group.known().cloned().flatten().expect("there is one");
    let mut after = SecurityGroup::clone(&before);
    edit(&mut after);
    put(Some(Resource::SecurityGroup(before)), Resource::SecurityGroup(Arc::new(after)))
}

fn linked(world: &mut World) -> Arc<PrivateLinkService> {
    let frontend = the(world).id.child("frontendIPConfigurations", &the(world).frontends[0].name);
    let group = policy().private_link_group;
    let link = Arc::new(PrivateLinkService { frontends: vec![frontend], ..private_link("link") });
    let all = BTreeMap::from([(link.id.clone(), Arc::clone(&link))]);
    world.azure.private_links.insert(group, Fact::Known(all));
    link
}

#[test]
fn a_plan_of_ours_is_clean() {
    let world = world();
    let (plan, _) = plan::plan(&world, &policy());
    assert_eq!(check(&world, &policy(), &plan), []);
    let empty = World { azure: Default::default(), ..world };
    let (plan, _) = plan::plan(&empty, &policy());
    assert_eq!(check(&empty, &policy(), &plan), []);
}

#[test]
fn targets() {
    let world = world();
    let twice = edit(&world, |_| {});
    assert_eq!(found(&world, vec![twice.clone(), twice.clone()]), [Breach::TargetTwice]);
    let mut other = twice.clone();
    other.target = ResourceId::new("/subscriptions/s/other");
    assert!(found(&world, vec![other]).contains(&Breach::TargetMismatch));
    let mut newer = world.clone();
    the_mut(&mut newer).etag = Some(Etag::new("newer"));
    assert_eq!(found(&newer, vec![twice.clone()]), [Breach::Stale]);
    let bare = Change { guard: None, ..twice };
    assert_eq!(found(&world, vec![bare]), [Breach::Unguarded]);
}

#[test]
fn what_is_not_ours() {
    let mut world = world();
    let foreign = |b: &mut LoadBalancer| {
        let mut frontend = b.frontends[0].clone();
        frontend.name = "outbound".into();
        frontend.address = FrontendAddress::Other;
        b.frontends.push(frontend);
    };
    foreign(the_mut(&mut world));
    let gone = edit(&world, |b| b.frontends.retain(|f| &*f.name != "outbound"));
    assert_eq!(found(&world, vec![gone]), [Breach::ForeignChanged]);
    let whole = delete(Resource::LoadBalancer(the(&world)));
    assert!(found(&world, vec![whole]).contains(&Breach::ForeignDeleted));
    let field = edit(&world, |b| {
        let mut fields = b.rest.unpack();
        fields.top.insert("theirs".to_owned(), true.into());
        b.rest = fields.into();
    });
    assert_eq!(found(&world, vec![field]), [Breach::FieldLost]);
}

#[test]
fn a_frontend_of_a_service_that_is_no_more_goes_with_the_last_rule_on_it() {
    let gone = "a9999999911114222833301234567890";
    let mut world = grouped(Vec::new());
    let balancer = the_mut(&mut world);
    balancer.frontends[0].name = gone.into();
    balancer.rules[0].frontend = Some(balancer.id.child("frontendIPConfigurations", gone));
    let delete_it = |world: &World| found(world, vec![delete(Resource::LoadBalancer(the(world)))]);
    assert_eq!(delete_it(&world), []);
    the_mut(&mut world).rules.clear();
    assert_eq!(delete_it(&world), [Breach::ForeignDeleted]);
}

#[test]
fn public_ips_that_stay() {
    let mut world = world();
    let all = world.azure.balancers.known_mut().expect("listed");
    all.clear();
    let gone = |tags: &[(&str, &str)]| {
        let mut world = world.clone();
        let facts = world.azure.public_ips.values_mut().next().expect("a group");
        let ip = facts.known_mut().expect("listed").values_mut().next().expect("one");
        let tags = tags.iter().map(|(k, v)| (Arc::from(*k), Arc::from(*v)));
        Arc::make_mut(ip).tags = Some(tags.collect());
        let change = delete(Resource::PublicIp(ip_of(&world)));
        found(&world, vec![change])
    };
    assert_eq!(gone(&[]), [Breach::BroughtDeleted]);
    let ours = ("k8s-azure-service", "default/web");
    assert_eq!(gone(&[ours]), []);
    assert_eq!(gone(&[ours, ("k8s-azure-cluster-name", "other")]), [Breach::ForeignDeleted]);
    assert_eq!(gone(&[("k8s-azure-service", "default/who")]), [Breach::ForeignDeleted]);
    let moved = edit_ip(&world, |ip| ip.location = "westus".into());
    assert_eq!(found(&world, vec![moved]), [Breach::ForeignChanged]);
}

#[test]
fn references() {
    let mut world = world();
    let nowhere = policy().public_ip_id(&policy().group, "nowhere");
    let missing = edit(&world, |b| {
        b.frontends[0].address = FrontendAddress::Public(nowhere.clone());
    });
    assert_eq!(found(&world, vec![missing.clone()]), [Breach::MissingReference]);
    let fresh = put(None, Resource::PublicIp(Arc::new(public_ip("nowhere", None))));
    let mut later = missing;
    later.waits = vec![Wait::Resource { id: nowhere, until: Until::Ready }];
    assert_eq!(found(&world, vec![fresh, later]), []);
    let pool = edit(&world, |b| b.pools.clear());
    assert!(found(&world, vec![pool]).contains(&Breach::MissingReference));
    let used = delete(Resource::PublicIp(ip_of(&world)));
    assert_eq!(found(&world, vec![used]), [Breach::StillReferenced]);
    linked(&mut world);
    let frontend = edit(&world, |b| {
        b.frontends.clear();
        b.rules.clear();
    });
    assert_eq!(found(&world, vec![frontend]), [Breach::StillReferenced]);
}

#[test]
fn twice_in_one_body() {
    let world = world();
    let name = edit(&world, |b| b.probes.push(b.probes[0].clone()));
    assert_eq!(found(&world, vec![name]), [Breach::NameTwice]);
    let addresses = |names: [&'static str; 2]| {
        edit(&world, move |b| {
            let address = |(n, name): (u8, &str)| PoolAddress {
                address: [10, 0, 0, n].into(),
                name: name.into(),
                admin: AdminState::None,
                network: None,
            };
            b.pools[0].addresses = (40..).zip(names).map(address).collect();
        })
    };
    assert_eq!(found(&world, vec![addresses(["node", "Node"])]), [Breach::NameTwice]);
    assert_eq!(found(&world, vec![addresses(["node", "node-2"])]), []);
    let again = |b: &mut LoadBalancer, protocol: RuleProtocol, port: u16| {
        let mut rule = b.rules[0].clone();
        rule.name = format!("{}-x", rule.name).into();
        (rule.protocol, rule.frontend_port) = (protocol, port);
        b.rules.push(rule);
    };
    let port = edit(&world, |b| again(b, RuleProtocol::Tcp, 80));
    assert_eq!(found(&world, vec![port]), [Breach::PortTwice]);
    let all = edit(&world, |b| again(b, RuleProtocol::All, 0));
    assert_eq!(found(&world, vec![all]), [Breach::PortTwice]);
    let fine = edit(&world, |b| again(b, RuleProtocol::Udp, 80));
    assert_eq!(found(&world, vec![fine]), []);
    let mixed = edit(&world, |b| {
        let mut frontend = b.frontends[0].clone();
        frontend.name = format!("{}-apps", frontend.name).into();
        frontend.address = FrontendAddress::Private {
            subnet: policy().subnet_id("apps"),
            family: Family::V4,
            allocation: model::azure::Allocation::Dynamic,
            address: None,
        };
        b.frontends.push(frontend);
    });
    assert_eq!(found(&world, vec![mixed]), [Breach::MixedFrontends]);
    let world = grouped(vec![rule("a", 500, "20.0.0.1")]);
    let priority = edit_group(&world, |g| g.rules.push(rule("k8s-azure-lb_b", 500, "20.1.2.3")));
    assert_eq!(found(&world, vec![priority]), [Breach::PriorityTwice]);
}

#[test]
fn limits() {
    let world = world();
    let wrong = |change: &dyn Fn(&mut LoadBalancer)| {
        let change = edit(&world, |b| change(b));
        assert_eq!(found(&world, vec![change]), [Breach::Limit]);
    };
    wrong(&|b| b.rules[0].idle_timeout_min = Some(3));
    wrong(&|b| b.probes[0].interval_s = 100);
    wrong(&|b| b.probes[0].port = 0);
    wrong(&|b| {
        let rule = b.rules[0].clone();
        b.rules = (0..1_501u16)
            .map(|n| {
                let name = format!("{}-{n}", rule.name).into();
                Rule { name, frontend_port: 1 + n, backend_port: 1 + n, ..rule.clone() }
            })
            .collect();
    });
    wrong(&|b| {
        let sample = b.pools[0].addresses[0].clone();
        b.pools[0].addresses = (0..1_001u32)
            .map(|n| PoolAddress {
                address: std::net::Ipv4Addr::from(0x0AE0_0004 + n).into(),
                name: format!("node-{n}").into(),
                ..sample.clone()
            })
            .collect();
    });
    let world = grouped(Vec::new());
    let many = edit_group(&world, |g| {
        let one = rule("k8s-azure-lb_x", 500, "20.0.0.1");
        let many = (0..4_001u32).map(|n| Arc::from(std::net::Ipv4Addr::from(n).to_string()));
        g.rules.push(SecurityRule { destinations: many.collect(), ..one });
    });
    assert_eq!(found(&world, vec![many]), [Breach::Limit, Breach::Unrecorded]);
}

#[test]
fn backends_and_order() {
    let world = world();
    let empty = edit(&world, |b| b.pools[0].addresses.clear());
    assert_eq!(found(&world, vec![empty.clone()]), [Breach::PoolEmptied]);
    let mut leaving = world.clone();
    for service in leaving.kubernetes.services.values_mut() {
        Arc::make_mut(service).deletion = Deletion::Requested;
    }
    assert_eq!(found(&leaving, vec![empty]), []);
    let mut bare = world.clone();
    bare.kubernetes.services.values_mut().for_each(|s| Arc::make_mut(s).finalizers.clear());
    let causes: BTreeSet<_> = bare.kubernetes.services.keys().cloned().collect();
    let again = edit(&bare, |b| b.rules[0].idle_timeout_min = Some(9));
    // Somebody took it off a Service that stands: what it has is written on.
    assert_eq!(found(&bare, vec![Change { causes: causes.clone(), ..again }]), []);
    let made = ip_of(&bare);
    bare.azure.balancers.known_mut().expect("listed").clear();
    bare.azure.public_ips.values_mut().filter_map(Fact::known_mut).for_each(BTreeMap::clear);
    let early = Change { causes, ..put(None, Resource::PublicIp(made)) };
    assert_eq!(found(&bare, vec![early]), [Breach::BeforeFinalizer]);
    let (a, b) = (edit(&world, |_| {}), edit_ip(&world, |_| {}));
    let on = |c: &Change| vec![Wait::Resource { id: c.target.clone(), until: Until::Written }];
    let circle = vec![Change { waits: on(&b), ..a.clone() }, Change { waits: on(&a), ..b.clone() }];
    assert_eq!(found(&world, circle.clone()), [Breach::Circle]);
    // A write that is under way ends whatever waits for it.
    let mut sent = world.clone();
    for id in [&a.target, &b.target] {
        let write = fixture::in_flight([]);
        sent.in_flight.insert(id.clone(), write);
    }
    assert_eq!(found(&sent, circle), []);
    let nothing = ResourceId::new("/subscriptions/s/nothing");
    let wait = Wait::Resource { id: nothing, until: Until::Ready };
    let waits = Change { waits: vec![wait], ..a };
    assert_eq!(found(&world, vec![waits]), [Breach::WaitsOnNothing]);
    let mut open = grouped(vec![rule("k8s-azure-lb_allow_IPv4_x", 500, "20.1.2.3")]);
    let services = &mut open.kubernetes.services;
    services.values_mut().for_each(|s| Arc::make_mut(s).wish = Wish::Nothing);
    let gone = edit(&open, |b| {
        b.frontends.clear();
        b.rules.clear();
    });
    assert_eq!(found(&open, vec![gone]), [Breach::OpenWithoutFrontend]);
    // Another Service that shares the frontend changes to its own.
    let heir = fixture::numbered(2, &[]);
    let name = format!("{}-TCP-81", heir.uid.base_name());
    let own = the(&open).rules[0].clone();
    the_mut(&mut open).rules.push(Rule { name: name.into(), frontend_port: 81, ..own });
    open.kubernetes.services.insert(heir.uid.clone(), Arc::new(heir));
    let gone = edit(&open, |b| {
        b.frontends.clear();
        b.rules.clear();
    });
    assert_eq!(found(&open, vec![gone]), []);
}

#[test]
fn a_pool_of_one_service_is_for_nodes_with_its_endpoints() {
    let mut world = world();
    let service = world.kubernetes.services.values().next().expect("one").clone();
    let pool: Arc<str> = local_pool(&service.name, Family::V4).into();
    let mut balancer = LoadBalancer::clone(&the(&world));
    let id = balancer.id.child("backendAddressPools", &pool);
    balancer.pools[0].name = pool;
    balancer.rules.iter_mut().for_each(|rule| rule.pool = Some(id.clone()));
    let all = world.azure.balancers.known_mut().expect("listed");
    all.insert(balancer.id.clone(), Arc::new(balancer));
    let node = world.kubernetes.nodes.keys().next().expect("one").clone();
    let mut emptied = |node: Option<NodeName>| {
        let endpoint = Endpoint {
            address: "10.1.0.1".parse().expect("an address"),
            node,
            readiness: Readiness::Ready,
            target: Target::Own,
        };
        let slice = EndpointSlice {
            service: Some(service.name.clone()),
            ..fixture::slice("web-1", vec![endpoint])
        };
        world.kubernetes.slices.insert(slice.name.clone(), Arc::new(slice));
        let empty = edit(&world, |b| b.pools[0].addresses.clear());
        found(&world, vec![empty])
    };
    assert_eq!(emptied(Some(node)), [Breach::PoolEmptied]);
    assert_eq!(emptied(Some(NodeName::new("elsewhere"))), []);
}

#[test]
fn kubernetes() {
    let world = world();
    let service = world.kubernetes.services.values().next().expect("one");
    let object = Object::Service { name: service.name.clone(), uid: service.uid.clone() };
    let write = |world: &World, edits: Vec<Edit>| {
        let writes = edits.into_iter().map(|edit| KubernetesWrite { object: object.clone(), edit });
        breaches(world, &Plan { writes: writes.collect(), ..Plan::default() })
    };
    let list = |text: &str| Edit::Status {
        moving: model::plan::MoveEdit::Keep,
        ingress: Some(vec![Ingress { ip: Some(Arc::from(text)), hostname: None }]),
        condition: ConditionEdit::Keep,
    };
    assert_eq!(write(&world, vec![list("20.1.2.3")]), []);
    assert_eq!(write(&world, vec![list("20.1.2.4")]), [Breach::StatusUntrue]);
    assert_eq!(write(&world, vec![list("20.1.2.3"), list("20.1.2.3")]), [Breach::TargetTwice]);
    let release = |list: Vec<Arc<str>>| Edit::Finalizers {
        marks: None,
        list,
        revision: "1".into(),
        purpose: FinalizerPurpose::Release,
    };
    let mut leaving = world.clone();
    leaving.kubernetes.services.values_mut().for_each(|s| {
        let service = Arc::make_mut(s);
        (service.wish, service.deletion) = (Wish::Nothing, Deletion::Requested);
    });
    assert_eq!(write(&leaving, vec![release(Vec::new())]), [Breach::FinalizerEarly]);
    leaving.azure.balancers.known_mut().expect("listed").clear();
    leaving.azure.public_ips.clear();
    assert_eq!(write(&leaving, vec![release(Vec::new())]), []);
    let theirs = release(vec!["example.com/theirs".into()]);
    assert_eq!(write(&leaving, vec![theirs]), [Breach::FinalizerForeign]);
    leaving.kubernetes.services.clear();
    assert_eq!(write(&leaving, vec![release(Vec::new())]), [Breach::Stale]);
}

#[test]
fn the_fixture_is_what_planning_wants() {
    let (world, policy): (World, Policy) = (world(), policy());
    let (plan, report) = plan::plan(&world, &policy);
    assert!(plan.changes.is_empty(), "{plan:#?} {report:#?}");
    assert!(claimed(service(&[])).finalizers.len() == 1 && balancer().sku == Sku::Standard);
}
