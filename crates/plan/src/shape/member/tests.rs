use explain::forecast::{Forecast, forecast};
use model::azure::{
    AdminState, Ipv6Service, LoadBalancer, MemberConfiguration, MemberKind, MemberState, Pool,
    PoolAddress, PoolMember, PrivateLinkRank, Rest, Rule,
};
use model::drain::Drainer;
use model::kubernetes::{Membership, Node, NodeRole, Service, Wish};
use model::plan::{Action, Change, Edit, Resource};
use model::policy::{ClusterProbe, ControlPlane, MigrateApi, NodeDrain, PoolKind};
use model::report::{Until, Wait};
use model::world::{Fact, InFlight, Kind, Need, VirtualMachine};
use model::{Etag, Family, Group, NodeName, Policy, ResourceId, ServiceUid, World};
use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

fn policy(pools: PoolKind) -> Policy {
    Policy { pools, ..fixture::bare_policy() }
}

fn uid() -> ServiceUid {
    fixture::uid(1)
}

fn service() -> Service {
    fixture::claimed(fixture::service(&[]))
}

fn set() -> ResourceId {
    let kind = "Microsoft.Compute/virtualMachineScaleSets";
    ResourceId::of("s", &Group::new("rg"), kind, "vmss")
}

fn vm(n: u8) -> ResourceId {
    set().child("virtualMachines", &n.to_string())
}

/// A VM outside of uniform scale sets.
fn alone() -> ResourceId {
    ResourceId::of("s", &Group::new("rg"), "Microsoft.Compute/virtualMachines", "alone")
}

fn balancer() -> ResourceId {
    policy(PoolKind::NodeNic).balancer_id("kubernetes")
}

fn pool() -> ResourceId {
    balancer().child("backendAddressPools", "kubernetes")
}

fn node(n: u8) -> Node {
    Node {
        provider_id: Some(format!("azure://{}", vm(n)).into()),
        ..fixture::node(&format!("vmss{n:06}"), vec![[10, 0, 0, n].into()])
    }
}

fn configuration(name: &str, family: Family, rank: PrivateLinkRank) -> MemberConfiguration {
    MemberConfiguration { name: name.into(), family, rank, pools: BTreeSet::new() }
}

fn member(id: ResourceId, kind: MemberKind) -> PoolMember {
    PoolMember {
        etag: Some(Etag::new(format!("\"{}\"", id.name()))),
        kind,
        location: "eastus".into(),
        host: None,
        state: MemberState::Usable,
        ipv6: Ipv6Service::Served,
        configurations: vec![
            configuration("one", Family::V4, PrivateLinkRank::Primary),
            configuration("two", Family::V6, PrivateLinkRank::Secondary),
        ],
        owner: (kind == MemberKind::ScaleSetVm).then(set),
        rest: Rest::default(),
        id,
    }
}

/// Two nodes of one scale set, one Service, nothing in Azure.
fn world() -> World {
    let mut world = World::default();
    let kubernetes = &mut world.kubernetes;
    kubernetes.complete.extend([Kind::Services, Kind::Nodes]);
    kubernetes.services.insert(uid(), Arc::new(service()));
    for n in [0, 1] {
        kubernetes.nodes.insert(node(n).name, Arc::new(node(n)));
    }
    let azure = &mut world.azure;
    azure.balancers = Fact::Known(BTreeMap::new());
    azure.public_ips.insert(Group::new("rg"), Fact::Known(BTreeMap::new()));
    azure.private_links.insert(Group::new("rg"), Fact::Known(BTreeMap::new()));
    azure.zones = Fact::Known(Vec::new());
    azure.scale_sets =
        Fact::Known(BTreeMap::from([(set(), Arc::new(member(set(), MemberKind::ScaleSet)))]));
    let vms = [0, 1].map(|n| (vm(n), Arc::new(member(vm(n), MemberKind::ScaleSetVm))));
    azure.scale_set_vms.insert(set(), Fact::Known(BTreeMap::from(vms)));
    world
}

fn instance(world: &mut World, n: u8) -> &mut PoolMember {
    let fact = world.azure.scale_set_vms.get_mut(&set()).expect("tests know the scale set");
    let all = fact.known_mut().expect("tests know its instances");
    Arc::make_mut(all.get_mut(&vm(n)).expect("tests ask for instances that exist"))
}

fn model(world: &mut World) -> &mut PoolMember {
    let all = world.azure.scale_sets.known_mut().expect("tests know the scale sets");
    Arc::make_mut(all.get_mut(&set()).expect("tests have one scale set"))
}

/// Carries out what the plan comes to.
fn settle(world: &mut World, policy: &Policy) -> Forecast {
    let found = forecast(world, policy);
    for change in &found.changes {
        match &change.action {
            Action::Put { after: Resource::LoadBalancer(b), .. } => {
                let all = world.azure.balancers.known_mut().expect("tests know them");
                all.insert(b.id.clone(), Arc::clone(b));
            }
            Action::Put { after: Resource::PublicIp(ip), .. } => {
                let mut ip = model::azure::PublicIp::clone(ip);
                ip.address = Some([20, 0, 0, 1].into());
                let all = world.azure.public_ips.get_mut(&Group::new("rg"));
                let all = all.and_then(Fact::known_mut).expect("tests know them");
                all.insert(ip.id.clone(), Arc::new(ip));
            }
            Action::Put { after: Resource::PoolMember(m), .. } => match m.kind {
                MemberKind::ScaleSetVm => {
                    let n = m.id.name().parse().expect("instances are numbered");
                    *instance(world, n) = PoolMember::clone(m);
                }
                MemberKind::NetworkInterface => {
                    let all = world.azure.network_interfaces.known_mut();
                    all.expect("tests know them").insert(m.id.clone(), Arc::clone(m));
                }
                _ => *model(world) = PoolMember::clone(m),
            },
            _ => {}
        }
    }
    found
}

/// Machines have joined the pool.
fn joined_world() -> (Policy, World) {
    let (policy, mut world) = (policy(PoolKind::NodeNic), world());
    settle(&mut world, &policy);
    (policy, world)
}

fn joined(change: &Change) -> Option<&BTreeSet<ResourceId>> {
    match &change.action {
        Action::Put { after: Resource::PoolMember(m), .. } => Some(&m.configurations[0].pools),
        _ => None,
    }
}

fn change<'a>(changes: &'a [impl Borrow<Change>], id: &ResourceId) -> Option<&'a Change> {
    changes.iter().map(Borrow::borrow).find(|c| c.target == *id)
}

fn edit_node(world: &mut World, n: u8, edit: impl FnOnce(&mut Node)) {
    let node = world.kubernetes.nodes.get_mut(&node(n).name);
    edit(Arc::make_mut(node.expect("tests change nodes that exist")));
}

#[test]
fn models_join_before_their_instances_once_the_pool_is_there() {
    let policy = policy(PoolKind::NodeNic);
    let mut world = world();
    let (plan, _) = crate::plan(&world, &policy);
    assert!(change(&plan.changes, &set()).is_none(), "there is no pool yet");
    let found = settle(&mut world, &policy);
    let order: Vec<&str> = found.changes.iter().map(|c| c.target.name()).collect();
    assert_eq!(order[1..], ["kubernetes", "vmss", "0", "1"]);
    for id in [set(), vm(0), vm(1)] {
        let change = change(&found.changes, &id).expect("it joins");
        assert_eq!(joined(change), Some(&BTreeSet::from([pool()])), "{id}");
        assert!(change.causes.is_empty());
        assert!(change.guard.is_some());
    }
    assert!(crate::plan(&world, &policy).0.changes.is_empty(), "all is done");
}

#[test]
fn an_instance_waits_for_its_model_and_no_service_for_either() {
    let (policy, mut world) = joined_world();
    model(&mut world).configurations[0].pools.clear();
    instance(&mut world, 0).configurations[0].pools.clear();
    let (plan, report) = crate::plan(&world, &policy);
    assert!(change(&plan.changes, &set()).expect("it joins").waits.is_empty());
    let wait = Wait::Resource { id: set(), until: Until::Written };
    assert_eq!(change(&plan.changes, &vm(0)).expect("it joins").waits, [wait]);
    assert!(change(&plan.changes, &vm(1)).is_none());
    let waits = &report.services[&uid()].waits;
    assert!(waits.iter().all(|w| *w == Wait::Status), "{waits:?}");
}

/// Azure refuses the model, of a scale set that another client has broken, say: its machines join
/// all the same.
#[test]
fn an_instance_does_not_wait_for_a_model_that_fails_again_and_again() {
    let (policy, mut world) = joined_world();
    model(&mut world).configurations[0].pools.clear();
    instance(&mut world, 0).configurations[0].pools.clear();
    let mut waits = |attempt: u32| {
        let flight = InFlight { attempt, ..fixture::in_flight([]) };
        world.in_flight.insert(set(), flight);
        let (plan, _) = crate::plan(&world, &policy);
        assert!(change(&plan.changes, &set()).expect("it is attempted").waits.is_empty());
        change(&plan.changes, &vm(0)).expect("it joins").waits.len()
    };
    assert_eq!([1, 2, 3].map(&mut waits), [1, 1, 0]);
}

#[test]
fn what_cannot_be_written_or_is_on_another_load_balancer_is_left_alone() {
    let policy = policy(PoolKind::NodeNic);
    let mut world = world();
    instance(&mut world, 0).state = MemberState::Unusable;
    let other = policy.balancer_id("other").child("backendAddressPools", "p");
    instance(&mut world, 1).configurations[0].pools.insert(other);
    let found = settle(&mut world, &policy);
    assert!(change(&found.changes, &set()).is_some());
    assert!(change(&found.changes, &vm(0)).is_none());
    assert!(change(&found.changes, &vm(1)).is_none());
    let near = policy.balancer_id("kubernetes-internal").child("backendAddressPools", "p");
    instance(&mut world, 1).configurations[0].pools = BTreeSet::from([near.clone()]);
    let found = settle(&mut world, &policy);
    let change = change(&found.changes, &vm(1)).expect("the internal one does not count");
    assert_eq!(joined(change), Some(&BTreeSet::from([pool(), near])));
}

#[test]
fn excluded_nodes_leave_but_never_the_last_one() {
    let (policy, mut world) = joined_world();
    edit_node(&mut world, 0, |n| n.membership = Membership::Excluded);
    let (plan, _) = crate::plan(&world, &policy);
    let leaves = change(&plan.changes, &vm(0)).expect("it leaves");
    assert_eq!(joined(leaves), Some(&BTreeSet::new()));
    assert_eq!(plan.changes.len(), 1, "the model and the other instance stay");
    edit_node(&mut world, 1, |n| n.membership = Membership::Excluded);
    assert!(crate::plan(&world, &policy).0.changes.is_empty());
    edit_node(&mut world, 1, |n| n.membership = Membership::Draining);
    let (plan, _) = crate::plan(&world, &policy);
    assert!(change(&plan.changes, &vm(0)).is_some());
    assert!(change(&plan.changes, &vm(1)).is_none(), "it takes traffic to its end");
}

/// What happens to the first of two instances in a pool, and what is said to drain.
fn goes(world: &World, policy: &Policy) -> (bool, Vec<String>) {
    let (plan, report) = crate::plan(world, policy);
    let leaves = change(&plan.changes, &vm(0)).is_some_and(|c| joined(c) == Some(&BTreeSet::new()));
    assert_eq!(plan.changes.len(), usize::from(leaves), "{:#?}", plan.changes);
    let draining = report.draining.expect("pools were looked at");
    (leaves, draining.iter().map(ToString::to_string).collect())
}

#[test]
fn nodes_in_pools_of_network_interfaces_drain() {
    let own = policy(PoolKind::NodeNic);
    let probe = ClusterProbe::Shared { port: 10256, path: "/healthz".into() };
    let shared = Policy { cluster_probe: probe, ..own.clone() };
    let off = Policy { node_drain: NodeDrain::Off, ..shared.clone() };
    let (stays, leaves, silent) = ((false, 1), (true, 1), 0);
    let label = |n: &mut Node| {
        n.membership = Membership::Draining;
        n.labels = Arc::new([(model::kubernetes::DRAIN_LABEL.into(), "".into())].into());
    };
    type Edit = fn(&mut Node);
    let edits: [Edit; 4] = [
        |n| n.membership = Membership::Draining,
        |n| n.membership = Membership::Leaving,
        |n| n.membership = Membership::Excluded,
        |_| {},
    ];
    let [going, both, excluded, nothing] = edits;
    type Case<'a> = (&'a str, &'a Policy, &'a dyn Fn(&mut Node), bool, bool, (bool, usize));
    let table: [Case<'_>; 15] = [
        ("nothing is so", &own, &nothing, false, false, (false, silent)),
        ("going", &own, &going, false, false, stays),
        ("going for long", &own, &going, true, false, leaves),
        ("going, kube-proxy says so", &shared, &going, true, false, stays),
        ("planned", &shared, &label, false, false, stays),
        ("planned for long: kube-proxy does not know", &shared, &label, true, false, leaves),
        ("left out and going", &shared, &both, false, false, stays),
        ("left out and going for long", &shared, &both, true, false, leaves),
        ("left out", &shared, &excluded, false, false, (true, silent)),
        ("gone, and no probe says so", &own, &nothing, false, true, leaves),
        ("gone, kube-proxy says so", &shared, &nothing, false, true, stays),
        ("gone for long", &shared, &nothing, true, true, leaves),
        ("drains off: going", &off, &going, true, false, (false, silent)),
        ("drains off: left out and going", &off, &both, false, false, (true, silent)),
        ("drains off: gone", &off, &nothing, false, true, (true, silent)),
    ];
    for (what, policy, edit, drained, gone, (leaves, named)) in table {
        let mut world = world();
        settle(&mut world, policy);
        edit_node(&mut world, 0, |n| edit(n));
        if gone {
            world.kubernetes.nodes.pop_first();
        }
        if drained {
            world.drained.insert(Drainer::Machine(vm(0)));
        }
        let named: Vec<String> = vec!["vmss/0".to_owned(); named];
        assert_eq!(goes(&world, policy), (leaves, named), "{what}");
    }
}

#[test]
fn a_rule_without_a_probe_turns_no_connection_away() {
    let probe = ClusterProbe::Shared { port: 10256, path: "/healthz".into() };
    let policy = Policy { cluster_probe: probe, ..policy(PoolKind::NodeNic) };
    let mut world = world();
    let service = world.kubernetes.services.get_mut(&uid()).expect("it is there");
    let key = "service.beta.kubernetes.io/port_80_no_probe_rule";
    Arc::make_mut(service).annotations = Arc::new([(key.into(), "true".into())].into());
    settle(&mut world, &policy);
    world.kubernetes.nodes.pop_first();
    assert_eq!(goes(&world, &policy), (true, vec!["vmss/0".to_owned()]));
}

#[test]
fn control_plane_nodes_join_only_where_the_config_says_so() {
    let mut policy = policy(PoolKind::NodeNic);
    let mut world = world();
    edit_node(&mut world, 1, |n| n.role = NodeRole::ControlPlane);
    let found = forecast(&world, &policy);
    assert!(change(&found.changes, &vm(0)).is_some());
    assert!(change(&found.changes, &vm(1)).is_none());
    policy.exclude_control_plane = ControlPlane::Included;
    assert!(change(&forecast(&world, &policy).changes, &vm(1)).is_some());
}

#[test]
fn a_load_balancer_goes_after_its_members_have_left() {
    let (policy, mut world) = joined_world();
    let service = world.kubernetes.services.get_mut(&uid()).expect("it is there");
    Arc::make_mut(service).wish = Wish::Nothing;
    let (plan, _) = crate::plan(&world, &policy);
    let waits = &change(&plan.changes, &balancer()).expect("it is to go").waits;
    for id in [set(), vm(0), vm(1)] {
        assert!(waits.contains(&Wait::Resource { id, until: Until::Released }));
    }
    let found = forecast(&world, &policy);
    let order: Vec<&str> = found.changes.iter().map(|c| c.target.name()).collect();
    assert_eq!(order[..4], ["vmss", "0", "1", "kubernetes"]);
    assert!(matches!(found.changes[3].action, Action::Delete { .. }));
    assert!(!found.last.services.contains_key(&uid()), "its finalizer is off");
}

#[test]
fn members_are_read_only_where_they_matter_and_nobody_waits_for_it() {
    let mut world = world();
    settle(&mut world, &policy(PoolKind::NodeNic));
    world.azure.scale_sets = Fact::Unknown;
    world.azure.scale_set_vms.clear();
    let (_, report) = crate::plan(&world, &policy(PoolKind::NodeNic));
    assert_eq!(report.needs, BTreeSet::from([Need::ScaleSets, Need::ScaleSetVms(set())]));
    let reads = |w: &Wait| matches!(w, Wait::Reading(_));
    assert!(report.services[&uid()].waits.iter().any(reads), "its address leads to no node yet");
    let mut joined = world.clone();
    let balancers = joined.azure.balancers.known_mut().expect("read");
    let only = Arc::make_mut(balancers.get_mut(&balancer()).expect("made"));
    only.pools[0].nics.insert(vm(0).child("networkInterfaces", "vmss-nic"));
    let (_, report) = crate::plan(&joined, &policy(PoolKind::NodeNic));
    assert!(!report.services[&uid()].waits.iter().any(reads));
    let (_, report) = crate::plan(&world, &policy(PoolKind::NodeIp));
    assert_eq!(report.needs, BTreeSet::from([Need::ScaleSets]), "the pool stands empty");
    let mut filled = world.clone();
    filled.azure.balancers = Fact::Known(BTreeMap::new());
    settle(&mut filled, &policy(PoolKind::NodeIp));
    let (_, report) = crate::plan(&filled, &policy(PoolKind::NodeIp));
    assert!(report.needs.is_empty());
    edit_node(&mut world, 0, |n| n.provider_id = Some(format!("azure://{}", alone()).into()));
    let (_, report) = crate::plan(&world, &policy(PoolKind::NodeNic));
    assert!(report.needs.contains(&Need::NetworkInterfaces));
    assert!(report.needs.contains(&Need::VirtualMachines));
}

fn edit_pool(world: &mut World, edit: impl FnOnce(&mut Pool)) {
    let all = world.azure.balancers.known_mut().expect("tests know them");
    let balancer: &mut LoadBalancer = Arc::make_mut(all.get_mut(&balancer()).expect("it was made"));
    edit(&mut balancer.pools[0]);
}

#[test]
fn addresses_leave_a_pool_before_nics_join_it() {
    let policy = policy(PoolKind::NodeNic);
    let mut world = world();
    let (scale_sets, vms) = (world.azure.scale_sets.clone(), world.azure.scale_set_vms.clone());
    settle(&mut world, &policy);
    (world.azure.scale_sets, world.azure.scale_set_vms) = (scale_sets, vms);
    edit_pool(&mut world, |pool| {
        let (address, name) = ([10, 0, 0, 1].into(), Arc::from("vmss000001"));
        let admin = AdminState::None;
        pool.addresses.push(PoolAddress { address, name, admin, network: None });
    });
    let (plan, _) = crate::plan(&world, &policy);
    assert_eq!(plan.changes.len(), 1, "only the load balancer");
    let found = forecast(&world, &policy);
    assert_eq!(steps(&found), ["kubernetes", "vmss", "0", "1", "kubernetes"]);
    assert_eq!(found.steps.iter().map(|s| s.cut.len()).sum::<usize>(), 0, "nobody is cut off");
    let Action::Put { after: Resource::LoadBalancer(first), .. } = &found.steps[0].change.action
    else {
        panic!("the load balancer is written");
    };
    let over = balancer().child("backendAddressPools", "kubernetes_switch");
    assert_eq!(first.rules[0].pool, Some(over));
    assert_eq!(first.pools[0].addresses, []);
    assert_eq!(first.pools[1].addresses.len(), 2);
    let Action::Put { after: Resource::LoadBalancer(last), .. } = &found.steps[4].change.action
    else {
        panic!("the load balancer is written");
    };
    assert_eq!(last.rules[0].pool, Some(pool()));
    assert_eq!(last.pools.len(), 1);
}

/// All nodes are excluded, then the machine of the one that is left is not known: rules over
/// another pool would stay there.
#[test]
fn a_pool_of_addresses_stays_one_until_a_node_can_join_through_its_nic() {
    let mut world = world();
    settle(&mut world, &policy(PoolKind::NodeIp));
    for n in [0, 1] {
        edit_node(&mut world, n, |node| node.membership = Membership::Excluded);
    }
    let to = policy(PoolKind::NodeNic);
    let (plan, _) = crate::plan(&world, &to);
    assert!(change(&plan.changes, &balancer()).is_none(), "{:#?}", plan.changes);
    let written = |world: &World| {
        let (plan, _) = crate::plan(world, &to);
        match change(&plan.changes, &balancer()).map(|change| change.action.clone()) {
            Some(Action::Put { after: Resource::LoadBalancer(after), .. }) => after,
            other => panic!("the load balancer is written: {other:?}"),
        }
    };
    edit_node(&mut world, 0, |n| {
        n.membership = Membership::Member;
        n.provider_id = None;
    });
    let after = written(&world);
    assert_eq!(after.rules[0].pool, Some(pool()));
    let names: Vec<&str> = after.pools[0].addresses.iter().map(|a| &*a.name).collect();
    assert_eq!((names, after.pools.len()), (vec!["vmss000000"], 1));
    edit_node(&mut world, 0, |n| n.provider_id = node(0).provider_id);
    let over = balancer().child("backendAddressPools", "kubernetes_switch");
    assert_eq!(written(&world).rules[0].pool, Some(over));
    let found = forecast(&world, &to);
    let mut puts = found.steps.iter().filter_map(|step| match &step.change.action {
        Action::Put { after: Resource::LoadBalancer(after), .. } => Some(after),
        _ => None,
    });
    let last = puts.next_back().expect("the load balancer is written");
    assert_eq!((last.rules[0].pool.clone(), last.pools.len()), (Some(pool()), 1));
}

/// Another client's rule leads to the pool.
#[test]
fn a_pool_of_a_switch_that_stays_holds_the_nodes() {
    let policy = policy(PoolKind::NodeIp);
    let mut world = world();
    settle(&mut world, &policy);
    let over = balancer().child("backendAddressPools", "kubernetes_switch");
    let all = world.azure.balancers.known_mut().expect("tests know them");
    let there = Arc::make_mut(all.get_mut(&balancer()).expect("it was made"));
    there.pools.push(Pool { name: "kubernetes_switch".into(), ..there.pools[0].clone() });
    let own = there.rules[0].clone();
    there.rules.push(Rule { name: "theirs".into(), pool: Some(over), frontend_port: 8080, ..own });
    assert!(crate::plan(&world, &policy).0.changes.is_empty(), "nothing is to be done");
    world.kubernetes.nodes.remove(&node(0).name);
    let (plan, _) = crate::plan(&world, &policy);
    let written = change(&plan.changes, &balancer()).map(|change| &change.action);
    let Some(Action::Put { after: Resource::LoadBalancer(after), .. }) = written else {
        panic!("the load balancer is written");
    };
    for pool in &after.pools {
        let held: Vec<_> = pool.addresses.iter().map(|a| (&*a.name, a.admin)).collect();
        assert_eq!(held, [("vmss000000", AdminState::Down), ("vmss000001", AdminState::None)]);
    }
}

fn steps(found: &Forecast) -> Vec<&str> {
    found.steps.iter().map(|s| s.change.target.name()).collect()
}

#[test]
fn nics_leave_a_pool_before_addresses_fill_it() {
    let mut world = world();
    settle(&mut world, &policy(PoolKind::NodeNic));
    edit_pool(&mut world, |pool| {
        let nic = vm(0).child("networkInterfaces", "nic").child("ipConfigurations", "one");
        pool.nics.insert(nic);
    });
    let mut to = policy(PoolKind::NodeIp);
    let found = forecast(&world, &to);
    assert_eq!(steps(&found), ["kubernetes", "vmss", "0", "1", "kubernetes"]);
    assert_eq!(found.steps.iter().map(|s| s.cut.len()).sum::<usize>(), 0, "nobody is cut off");
    let Action::Put { after: Resource::LoadBalancer(after), .. } = &found.changes[3].action else {
        panic!("the load balancer is written");
    };
    assert_eq!(after.pools[0].addresses.len(), 2);
    to.migrate_api = MigrateApi::Used;
    let (plan, _) = crate::plan(&world, &to);
    let first = change(&plan.changes, &balancer()).map(|c| &c.action);
    assert_eq!(first, Some(&Action::MigratePools { pools: vec!["kubernetes".into()] }));
}

#[test]
fn a_scale_set_leaves_a_pool_that_none_of_its_instances_is_in_before_addresses_fill_it() {
    let mut world = world();
    settle(&mut world, &policy(PoolKind::NodeNic));
    // Its model was written, and none of its instances yet.
    for n in [0, 1] {
        for configuration in &mut instance(&mut world, n).configurations {
            configuration.pools.clear();
        }
    }
    assert!(super::is_in(model(&mut world), &pool()));
    let found = forecast(&world, &policy(PoolKind::NodeIp));
    assert_eq!(steps(&found), ["kubernetes", "vmss", "kubernetes"]);
    let Action::Put { after: Resource::LoadBalancer(last), .. } = &found.steps[2].change.action
    else {
        panic!("the load balancer is written");
    };
    assert_eq!(last.pools.len(), 1);
    assert_eq!(last.pools[0].addresses.len(), 2);
}

#[test]
fn vms_outside_of_uniform_scale_sets_join_through_their_primary_nic() {
    let policy = policy(PoolKind::NodeNic);
    let mut world = world();
    edit_node(&mut world, 0, |n| n.provider_id = Some(format!("azure://{}", alone()).into()));
    let card = |name: &str| {
        let kind = "Microsoft.Network/networkInterfaces";
        let id = ResourceId::of("s", &Group::new("rg"), kind, name);
        let mut nic = member(id.clone(), MemberKind::NetworkInterface);
        nic.owner = Some(alone());
        (id, Arc::new(nic))
    };
    let nics = [card("first"), card("second")];
    let first = nics[0].0.clone();
    let flexible = ResourceId::new(set().as_str().replace("vmss", "flexible"));
    let vm = VirtualMachine {
        id: alone(),
        host: Some("vmss000000".into()),
        set: Some(flexible.clone()),
        nic: Some(first.clone()),
    };
    world.azure.network_interfaces = Fact::Known(BTreeMap::from(nics));
    world.azure.virtual_machines = Fact::Known(BTreeMap::from([(alone(), Arc::new(vm))]));
    let all = world.azure.scale_sets.known_mut().expect("tests know the scale sets");
    let model = member(flexible.clone(), MemberKind::FlexibleScaleSet);
    all.insert(flexible.clone(), Arc::new(model));
    let found = forecast(&world, &policy);
    let names: BTreeSet<&str> = found.changes.iter().map(|c| c.target.name()).collect();
    for name in ["flexible", "vmss", "first", "1"] {
        assert!(names.contains(name), "{name} joins");
    }
    assert!(!names.contains("second"), "only the primary NIC joins");
    let at = |id: &ResourceId| found.changes.iter().position(|c| c.target == *id);
    assert!(at(&flexible) < at(&first));
    assert_eq!(change(&found.changes, &flexible).expect("it joins").guard, None);
    let joins = change(&found.changes, &first).expect("it joins");
    assert_eq!(joined(joins), Some(&BTreeSet::from([pool()])));
}

#[test]
fn windows_2019_joins_no_ipv6_pool() {
    let policy = policy(PoolKind::NodeNic);
    let joined_of = |world: &mut World| {
        let uids: Vec<ServiceUid> = world.kubernetes.services.keys().cloned().collect();
        for uid in uids {
            let service = world.kubernetes.services.get_mut(&uid).expect("it is there");
            Arc::make_mut(service).families = vec![Family::V4, Family::V6];
        }
        let way = forecast(world, &policy);
        let last = |id: &ResourceId| {
            let mut steps = way.steps.iter().rev().filter(|s| s.change.target == *id);
            joined(&steps.next().expect("it joins").change).map_or(0, BTreeSet::len)
        };
        let v6 = |id: &ResourceId| {
            let change = way.changes.iter().find(|c| c.target == *id).expect("it joins");
            let Action::Put { after: Resource::PoolMember(after), .. } = &change.action else {
                panic!("it is written");
            };
            after.configurations[1].pools.len()
        };
        [(last(&set()), v6(&set())), (last(&vm(0)), v6(&vm(0)))]
    };
    assert_eq!(joined_of(&mut world()), [(1, 1), (1, 1)]);
    let mut windows = world();
    let all = windows.azure.scale_sets.known_mut().expect("tests know the scale sets");
    let model = all.get_mut(&set()).expect("it is there");
    Arc::make_mut(model).ipv6 = Ipv6Service::Refused;
    assert_eq!(joined_of(&mut windows), [(1, 0), (1, 0)]);
}

/// So many VMs that are in no set.
fn singles(count: u8) -> World {
    let mut world = world();
    world.kubernetes.nodes.clear();
    let (mut nics, mut machines) = (BTreeMap::new(), BTreeMap::new());
    for n in 0..count {
        let name = format!("single{n:03}");
        let at = |kind: &str| ResourceId::of("s", &Group::new("rg"), kind, &name);
        let id = at("Microsoft.Compute/virtualMachines");
        let nic = at("Microsoft.Network/networkInterfaces");
        let mut card = member(nic.clone(), MemberKind::NetworkInterface);
        card.owner = Some(id.clone());
        let provider_id = Some(format!("azure://{id}").into());
        let node = Node { name: NodeName::new(&name), provider_id, ..node(n) };
        world.kubernetes.nodes.insert(node.name.clone(), Arc::new(node));
        nics.insert(nic.clone(), Arc::new(card));
        let machine = VirtualMachine { id: id.clone(), host: None, set: None, nic: Some(nic) };
        machines.insert(id, Arc::new(machine));
    }
    world.azure.network_interfaces = Fact::Known(nics);
    world.azure.virtual_machines = Fact::Known(machines);
    world
}

/// Azure keeps what a write that failed asked for, and a PUT repairs the NIC.
#[test]
fn a_nic_that_failed_is_repaired_where_it_is_in_a_pool_of_ours() {
    let policy = policy(PoolKind::NodeNic);
    let mut world = singles(2);
    settle(&mut world, &policy);
    let first = world.azure.network_interfaces.known().expect("known").keys().next().cloned();
    let first = first.expect("there are two");
    let failed = |world: &mut World| -> Option<PoolMember> {
        let nics = world.azure.network_interfaces.known_mut().expect("known");
        let nic = Arc::make_mut(nics.get_mut(&first).expect("it is there"));
        nic.state = MemberState::Failed;
        let (plan, _) = crate::plan(world, &policy);
        match &change(&plan.changes, &first)?.action {
            Action::Put { after: Resource::PoolMember(after), .. } => Some((**after).clone()),
            other => panic!("{other:?}"),
        }
    };
    let repaired = failed(&mut world).expect("it is written again");
    assert_eq!(repaired.configurations[0].pools, BTreeSet::from([pool()]));
    assert_eq!(repaired.state, MemberState::Usable);
    let nics = world.azure.network_interfaces.known_mut().expect("known");
    Arc::make_mut(nics.get_mut(&first).expect("it is there")).configurations[0].pools.clear();
    assert_eq!(failed(&mut world), None, "the write that failed was another client's");
    // It leaves as any other once its node is gone.
    let nics = world.azure.network_interfaces.known_mut().expect("known");
    let nic = Arc::make_mut(nics.get_mut(&first).expect("it is there"));
    nic.configurations[0].pools.insert(pool());
    world.kubernetes.nodes.pop_first();
    let off = Policy { node_drain: NodeDrain::Off, ..policy.clone() };
    let (plan, _) = crate::plan(&world, &off);
    let left = change(&plan.changes, &first).expect("it leaves");
    assert_eq!(joined(left), Some(&BTreeSet::new()));
}

#[test]
fn what_fits_behind_a_load_balancer_joins_and_the_rest_is_named() {
    let policy = policy(PoolKind::NodeNic);
    let nics = |found: &Forecast| {
        let all = found.changes.iter().filter_map(joined);
        all.filter(|pools| pools.contains(&pool())).count()
    };
    let full = forecast(&singles(150), &policy);
    assert_eq!((nics(&full), full.last.findings.as_slice()), (150, &[][..]));
    let mut world = singles(151);
    let over = settle(&mut world, &policy);
    assert_eq!(nics(&over), 150);
    let [finding] = over.last.findings.as_slice() else { panic!("{:?}", over.last.findings) };
    assert_eq!(finding.rule, "BackendResourceLimit");
    assert!(finding.message.contains("the first is single150;"), "{}", finding.message);
    // Who is in stays, also where one comes whose name is before its own.
    assert_eq!(nics(&forecast(&world, &policy)), 0);
    world.kubernetes.nodes.remove(&NodeName::new("single000"));
    let next = forecast(&world, &policy);
    let names: Vec<&str> = next.changes.iter().map(|c| c.target.name()).collect();
    assert_eq!(names, ["single000", "single150"]);
}

/// Azure refuses the write of a NIC for which its pool has no room: none is tried.
#[test]
fn a_pool_takes_a_thousand_network_interfaces() {
    let policy = policy(PoolKind::NodeNic);
    let mut world = world();
    world.kubernetes.nodes.clear();
    let mut vms = BTreeMap::new();
    for n in 0..1_005_u32 {
        let id = set().child("virtualMachines", &format!("{n:04}"));
        let [_, _, high, low] = n.to_be_bytes();
        let node = Node {
            name: NodeName::new(format!("vmss{n:06}")),
            addresses: vec![[10, 1, high, low].into()],
            provider_id: Some(format!("azure://{id}").into()),
            ..node(0)
        };
        world.kubernetes.nodes.insert(node.name.clone(), Arc::new(node));
        vms.insert(id.clone(), Arc::new(member(id, MemberKind::ScaleSetVm)));
    }
    world.azure.scale_set_vms.insert(set(), Fact::Known(vms));
    let (mut world, report) = explain::forecast::settle(world, &policy);
    let all = world.azure.scale_set_vms[&set()].known().expect("tests know its instances");
    let in_it = |member: &PoolMember| member.configurations[0].pools.contains(&pool());
    assert_eq!(all.values().filter(|member| in_it(member)).count(), 1_000);
    let instances = |found: &Forecast| {
        let all = found.changes.iter().filter(|c| c.target != set()).filter_map(joined);
        all.filter(|pools| pools.contains(&pool())).count()
    };
    let rules: Vec<&str> = report.findings.iter().map(|f| f.rule).collect();
    assert_eq!(rules, ["PoolAddressLimit"]);
    // Who is in stays; one that goes makes room for one.
    assert_eq!(instances(&forecast(&world, &policy)), 0);
    world.kubernetes.nodes.remove(&NodeName::new("vmss000007"));
    let next = forecast(&world, &policy);
    let names: Vec<&str> = next.changes.iter().map(|c| c.target.name()).collect();
    assert_eq!(names, ["0007", "1000"]);
}

#[test]
fn an_address_is_told_once_a_node_has_joined() {
    let (policy, mut world) = joined_world();
    let told = |world: &World| {
        let (plan, report) = crate::plan(world, &policy);
        let waits = report.services[&uid()].waits.clone();
        let writes = plan.writes.iter().filter(|w| matches!(w.edit, Edit::Status { .. })).count();
        (writes, waits)
    };
    assert_eq!(told(&world), (1, vec![Wait::Status]), "both have joined");
    model(&mut world).configurations[0].pools.clear();
    for n in [0, 1] {
        instance(&mut world, n).configurations[0].pools.clear();
    }
    assert_eq!(told(&world), (0, vec![Wait::Writing(vm(0))]), "none has");
    let mut unread = world.clone();
    unread.azure.scale_set_vms.clear();
    let need = Need::ScaleSetVms(set());
    assert_eq!(told(&unread), (0, vec![Wait::Reading(need)]), "nothing is known of them");
    let mut one = world.clone();
    instance(&mut one, 1).configurations[0].pools.insert(pool());
    assert_eq!(told(&one), (1, vec![Wait::Status]), "one has");
    for n in [0, 1] {
        let failing = InFlight {
            attempt: 3,
            causes: BTreeSet::new(),
            addresses: Arc::default(),
            goes: false,
        };
        world.in_flight.insert(vm(n), failing);
    }
    assert_eq!(told(&world), (0, vec![Wait::Writing(vm(0))]), "Azure refuses them all");
}

/// The load balancer was made while NICs were to join it, and the cloud config has addresses now.
#[test]
fn an_address_is_told_once_its_pool_has_been_filled() {
    let mut world = world();
    settle(&mut world, &policy(PoolKind::NodeNic));
    model(&mut world).configurations[0].pools.clear();
    for n in [0, 1] {
        instance(&mut world, n).configurations[0].pools.clear();
    }
    let (plan, report) = crate::plan(&world, &policy(PoolKind::NodeIp));
    let told = plan.writes.iter().any(|write| matches!(write.edit, Edit::Status { .. }));
    let waits = report.services[&uid()].waits.clone();
    assert_eq!((told, waits), (false, vec![Wait::Writing(balancer())]));
}
