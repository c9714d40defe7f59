//! What opens when.

use crate::shape::stage::{ADDRESS, PINNED, balancer, change, internal, planned, policy, settled};
use crate::shape::stage::{uid, world};
use explain::forecast::settle;
use fixture::{in_flight, public_ips_mut, security_group_mut};
use model::azure::{
    ConnectionState, PrivateEndpointConnection, Provisioning, PublicIp, Rest, SecurityGroup,
    SecurityRule, Tags,
};
use model::kubernetes::{Deletion, Node, NodeRole, Service, Wish};
use model::plan::{Action, Edit, Resource};
use model::policy::{ControlPlane, PoolKind};
use model::report::Severity;
use model::world::{Fact, Hold};
use model::{Family, NodeName, Policy, World};
use plan_check::check;
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

/// A Service that only some may connect to; an internal one needs no rule otherwise.
fn closed(n: u16, port: u16, more: &[(&str, &str)]) -> Service {
    let some = [(PINNED, ADDRESS), ("azure-allowed-ip-ranges", "10.9.0.0/16")];
    internal(n, port, &[&some, more].concat())
}

fn group(world: &World) -> &SecurityGroup {
    world.azure.security_group.known().expect("read").as_ref().expect("there")
}

/// Ports that rules of the security group lead to.
fn open(world: &World) -> BTreeSet<Arc<str>> {
    group(world).rules.iter().flat_map(|rule| rule.ports.clone()).collect()
}

/// Its rules stand already, so that nothing else has to come first.
#[test]
fn nothing_opens_for_a_service_without_our_finalizer() {
    let mut world = settled(world(vec![closed(1, 80, &[]), closed(2, 82, &[])]));
    security_group_mut(&mut world).rules.retain(|rule| !rule.ports.contains("82"));
    change(&mut world, Service { finalizers: Vec::new(), ..closed(2, 82, &[]) });
    let (plan, _) = planned(&world);
    assert_eq!((plan.changes.len(), plan.writes.len()), (0, 1), "the finalizer comes first");
    assert_eq!(open(&settled(world)), ["80", "82"].map(Arc::from).into());
}

/// A former process has sent the write that opens the address, and this one does not follow it.
#[test]
fn an_address_is_told_once_the_write_that_opens_it_has_ended() {
    let mut world = settled(world(vec![closed(1, 80, &[])]));
    world.kubernetes.services.insert(uid(1), Arc::new(closed(1, 80, &[])));
    let told = |world: &World| {
        let (plan, _) = planned(world);
        plan.writes.iter().any(|write| matches!(write.edit, Edit::Status { .. }))
    };
    assert!(told(&world));
    security_group_mut(&mut world).provisioning = Provisioning::Busy;
    assert!(!told(&world));
}

/// The group, and often the load balancer, are the operator's, who tags them, too.
#[test]
fn others_tags_stay_where_the_config_has_none() {
    let mut world = settled(world(vec![closed(1, 80, &[])]));
    let others: Tags = [("team".into(), "net".into())].into();
    security_group_mut(&mut world).tags = Some(others.clone());
    for balancer in world.azure.balancers.known_mut().into_iter().flat_map(|all| all.values_mut()) {
        Arc::make_mut(balancer).tags = Some(others.clone());
    }
    let alone = Policy { system_tags: Some(vec!["aks-".into()]), ..policy() };
    assert_eq!(crate::plan(&world, &alone).0.changes, []);
    let (plan, _) =
        crate::plan(&world, &Policy { tags: [("cost".into(), "x".into())].into(), ..alone });
    assert_eq!(plan.changes.len(), 2, "what is neither wanted nor the system's goes: {plan:#?}");
}

const DENY: (&str, &str) = ("azure-deny-all-except-load-balancer-source-ranges", "true");
const NO_FLOAT: (&str, &str) = ("azure-disable-load-balancer-floating-ip", "true");

/// Protocol, destinations and ports of the rules that deny.
fn denied(world: &World) -> Vec<String> {
    let denied = group(world).rules.iter().filter(|rule| rule.access == model::azure::Access::Deny);
    let join =
        |set: &BTreeSet<Arc<str>>| set.iter().map(AsRef::as_ref).collect::<Vec<_>>().join(",");
    let text =
        |r: &SecurityRule| format!("{} {} [{}]", r.protocol, join(&r.destinations), join(&r.ports));
    let mut all: Vec<String> = denied.map(text).collect();
    all.sort_unstable();
    all
}

#[test]
fn a_deny_rule_denies_only_what_is_the_services() {
    let alone = settled(world(vec![closed(1, 80, &[DENY])]));
    assert_eq!(denied(&alone), ["* 10.224.9.9 [*]"]);
    let shared = settled(world(vec![closed(1, 80, &[DENY]), closed(2, 82, &[])]));
    assert_eq!(denied(&shared), ["Tcp 10.224.9.9 [80]"]);
    let nodes = settled(world(vec![closed(1, 80, &[DENY, NO_FLOAT])]));
    assert_eq!(denied(&nodes), ["Tcp 10.224.0.4 [30001]"]);
    let more = closed(1, 80, &[DENY, ("azure-additional-public-ips", "20.9.9.9")]);
    assert_eq!(denied(&settled(world(vec![more]))), ["* 10.224.9.9 [*]", "Tcp 20.9.9.9 [80]"]);
}

/// Without floating IP traffic reaches every member of the pool at its own address.
#[test]
fn nodes_of_the_control_plane_are_open_where_pools_have_them() {
    let mut world = world(vec![closed(1, 80, &[NO_FLOAT])]);
    let worker = world.kubernetes.nodes.values().next().expect("there is one").clone();
    let name = NodeName::new("control");
    let addresses = vec!["10.224.0.5".parse().expect("an address")];
    let role = NodeRole::ControlPlane;
    let node = Node { name: name.clone(), addresses, role, ..Node::clone(&worker) };
    world.kubernetes.nodes.insert(name, Arc::new(node));
    let cases = [
        (ControlPlane::Excluded, PoolKind::NodeNic, vec!["10.224.0.4"]),
        (ControlPlane::Included, PoolKind::NodeNic, vec!["10.224.0.4", "10.224.0.5"]),
        (ControlPlane::Included, PoolKind::NodeIp, vec!["10.224.0.4"]),
    ];
    for (exclude_control_plane, pools, wanted) in cases {
        let policy = Policy { exclude_control_plane, pools, ..policy() };
        let (world, _) = settle(world.clone(), &policy);
        let open: BTreeSet<&str> = group(&world)
            .rules
            .iter()
            .flat_map(|rule| &rule.destinations)
            .map(AsRef::as_ref)
            .collect();
        assert_eq!(open, wanted.into_iter().collect(), "{exclude_control_plane:?} {pools:?}");
    }
}

fn bring(world: &mut World, name: &str, address: &str) {
    let address: IpAddr = address.parse().expect("an address");
    let base = fixture::public_ip(name, Some(address));
    let ip = PublicIp { tags: None, user: None, family: Family::of(address), ..base };
    public_ips_mut(world).insert(ip.id.clone(), Arc::new(ip));
}

/// The frontend of its only family is to be that of its IPv4 address, and still has the IPv6 one.
#[test]
fn a_service_that_becomes_dual_stack_opens_no_address_in_rules_of_the_other_family() {
    let public = |families: &[Family], annotations: &[(&str, &str)]| {
        let service = fixture::claimed(fixture::service(&[annotations, &[DENY]].concat()));
        Service { families: families.to_vec(), ..service }
    };
    let range = "azure-allowed-ip-ranges";
    let single = [("azure-pip-name", "six"), (range, "2001:db8::/32")];
    let mut world = world(vec![public(&[Family::V6], &single)]);
    bring(&mut world, "six", "2603:1030::10");
    bring(&mut world, "four", "20.50.0.14");
    let mut world = settled(world);
    assert_eq!(denied(&world), ["* 2603:1030::10 [*]"]);
    let pips = [("azure-pip-name", "four"), ("azure-pip-name-ipv6", "six")];
    let dual = [&pips[..], &[(range, "10.0.0.0/8,2001:db8::/32")]].concat();
    change(&mut world, public(&[Family::V6, Family::V4], &dual));
    let (plan, _) = planned(&world);
    let group = plan.changes.iter().find_map(|change| match &change.action {
        Action::Put { after: Resource::SecurityGroup(group), .. } => Some(Arc::clone(group)),
        _ => None,
    });
    let standing = world.azure.security_group.known().expect("read").clone().expect("there");
    for rule in &group.unwrap_or(standing).rules {
        let six = rule.name.contains("IPv6");
        assert!(rule.destinations.iter().all(|d| d.contains(':') == six), "{rule:?}");
    }
    assert_eq!(denied(&settled(world)), ["* 20.50.0.14 [*]", "* 2603:1030::10 [*]"]);
}

/// The frontend keeps the name of the Service that made it, and is the other's alone.
#[test]
fn a_deny_rule_denies_all_of_an_address_that_only_others_were_on() {
    let both = vec![closed(1, 80, &[]), closed(2, 82, &[DENY])];
    let mut world = settled(world(both));
    assert_eq!(denied(&world), ["Tcp 10.224.9.9 [82]"]);
    let mut other = world.clone();
    change(&mut world, closed(1, 80, &[(PINNED, "10.224.9.10")]));
    assert_eq!(denied(&settled(world)), ["* 10.224.9.9 [*]"]);
    // Also where the one that made it goes on at another's frontend.
    change(&mut other, closed(3, 84, &[(PINNED, "10.224.9.10")]));
    let mut other = settled(other);
    change(&mut other, closed(1, 80, &[(PINNED, "10.224.9.10")]));
    assert_eq!(denied(&settled(other)), ["* 10.224.9.9 [*]"]);
}

/// A write that failed may have left rules that are shown and not in force.
#[test]
fn a_security_group_that_failed_is_written_again() {
    let mut world = settled(world(vec![closed(1, 80, &[])]));
    security_group_mut(&mut world).provisioning = Provisioning::Failed;
    let (plan, _) = crate::plan(&world, &policy());
    assert_eq!(plan.changes.len(), 1, "{plan:#?}");
    assert_eq!(check(&world, &policy(), &plan), []);
    world.kubernetes.services.clear();
    security_group_mut(&mut world).rules.clear();
    world.kubernetes.ledger = Fact::Known(Arc::default());
    let (plan, _) = crate::plan(&world, &policy());
    let touched = plan.changes.iter().any(|c| c.target == policy().security_group_id());
    assert!(!touched, "nothing of ours is in it: {plan:#?}");
}

/// The last write, which closed everything, failed: it may be open still, whatever is shown.
#[test]
fn a_security_group_that_failed_to_close_is_written_again() {
    let mut world = settled(world(vec![closed(1, 80, &[])]));
    let ledger = world.kubernetes.ledger.clone();
    world.kubernetes.services.clear();
    let failed = Provisioning::Failed;
    for (provisioning, writes) in [(failed, (1, 0)), (Provisioning::Succeeded, (0, 1))] {
        let group = security_group_mut(&mut world);
        group.rules.clear();
        group.provisioning = provisioning;
        group.etag = Some(model::Etag::new("written since"));
        assert_eq!(world.kubernetes.ledger, ledger);
        let (plan, _) = crate::plan(&world, &policy());
        let group = policy().security_group_id();
        let touched = plan.changes.iter().filter(|change| change.target == group).count();
        let forgets = plan.ledger.iter().filter(|write| write.destinations.is_empty()).count();
        assert_eq!((touched, forgets), writes, "{provisioning:?}: {plan:#?}");
    }
}

/// A refused Service keeps its own rules on a shared address, and not those of a Service that left.
#[test]
fn a_service_that_leaves_an_address_is_closed_there_beside_a_refused_one() {
    let mut world = settled(world(vec![closed(1, 80, &[]), closed(2, 82, &[])]));
    assert_eq!(open_at(&world, "10.224.9.9"), ["80", "82"]);
    change(&mut world, closed(2, 82, &[("azure-load-balancer-tcp-idle-timeout", "soon")]));
    change(&mut world, closed(1, 80, &[(PINNED, "10.224.9.10")]));
    let world = settled(world);
    assert_eq!(open_at(&world, "10.224.9.9"), ["82"]);
    assert_eq!(open_at(&world, "10.224.9.10"), ["80"]);
}

/// Its rule and its status have gone already, and the write that closes its port has not been sent.
#[test]
fn a_service_that_shares_its_address_keeps_its_finalizer_until_its_own_ports_are_closed() {
    let mut world = settled(world(vec![closed(1, 80, &[]), closed(2, 82, &[])]));
    for balancer in world.azure.balancers.known_mut().expect("read").values_mut() {
        let balancer = Arc::make_mut(balancer);
        balancer.rules.retain(|rule| rule.frontend_port != 82);
        balancer.probes.retain(|probe| !probe.name.ends_with("-82"));
    }
    let gone = Service { wish: Wish::Nothing, ..closed(2, 82, &[]) };
    world.kubernetes.services.insert(uid(2), Arc::new(gone));
    assert_eq!(open_at(&world, ADDRESS), ["80", "82"]);
    let release = |world: &World| {
        let (plan, _) = crate::plan(world, &policy());
        let mut writes = plan.writes.iter().map(|write| &write.edit);
        writes.any(|edit| matches!(edit, Edit::Finalizers { .. }))
    };
    assert!(!release(&world));
    security_group_mut(&mut world).rules.retain(|rule| !rule.ports.contains("82"));
    assert!(release(&world), "nothing of its own is open");
}

/// Ports that are open at an address.
fn open_at(world: &World, address: &str) -> Vec<String> {
    let there = group(world).rules.iter().filter(|rule| rule.destinations.contains(address));
    let mut ports: Vec<String> = there.flat_map(|r| &r.ports).map(ToString::to_string).collect();
    ports.sort_unstable();
    ports
}

/// As the Go provider leaves it, for a Service that is refused here.
#[test]
fn no_rule_that_denies_all_of_the_nodes_stays() {
    let mut world = settled(world(vec![closed(1, 80, &[DENY, NO_FLOAT])]));
    for rule in &mut security_group_mut(&mut world).rules {
        if rule.access == model::azure::Access::Deny {
            rule.name = crate::own::name::deny_rule(Family::V4).into();
            rule.protocol = "*".into();
            rule.ports = BTreeSet::from(["*".into()]);
        }
    }
    let timeout = ("azure-load-balancer-tcp-idle-timeout", "1");
    change(&mut world, closed(1, 80, &[DENY, NO_FLOAT, timeout]));
    assert_eq!(denied(&settled(world)), Vec::<String>::new());
}

/// A rule is named after what it says beside the addresses.
#[test]
fn a_rule_goes_on_with_another_address_and_fields_that_we_do_not_know() {
    let mut world = settled(world(vec![closed(1, 80, &[])]));
    let rule = &mut security_group_mut(&mut world).rules[0];
    let mut fields = rule.rest.unpack();
    fields.top.insert("theirs".to_owned(), true.into());
    let theirs = Rest::from(fields);
    rule.rest = theirs.clone();
    let before = rule.clone();
    change(&mut world, closed(1, 80, &[(PINNED, "10.224.9.10")]));
    let world = settled(world);
    let [rule] = &group(&world).rules[..] else { panic!("{:#?}", group(&world).rules) };
    assert_eq!((&rule.name, rule.priority, &rule.rest), (&before.name, before.priority, &theirs));
    assert_eq!(rule.destinations, [Arc::from("10.224.9.10")].into());
}

#[test]
fn what_is_open_stays_open_for_a_service_that_lost_our_finalizer() {
    let service = closed(1, 80, &[]);
    let mut world = settled(world(vec![service.clone()]));
    change(&mut world, Service { finalizers: Vec::new(), ..service });
    let (plan, _) = crate::plan(&world, &policy());
    assert_eq!((plan.changes.len(), plan.writes.len()), (0, 1), "{plan:#?}");
    assert_eq!(open(&settled(world)), [Arc::from("80")].into());
}

/// Its finalizer was removed by hand: what private endpoints are connected to stays until an
/// operator deletes it as an orphan, which makes its names known as gone.
#[test]
fn what_private_endpoints_are_connected_to_stays_open_without_its_service() {
    let linked = closed(1, 80, &[("azure-pls-create", "true")]);
    let beside = closed(2, 82, &[(PINNED, "10.224.9.10")]);
    let before = settled(world(vec![linked, beside]));
    for (state, is_gone, stays) in [
        (ConnectionState::Connected, false, true),
        (ConnectionState::Other, false, false),
        (ConnectionState::Connected, true, false),
    ] {
        let mut world = before.clone();
        let facts = world.azure.private_links.values_mut().filter_map(Fact::known_mut);
        for link in facts.flat_map(|all| all.values_mut()) {
            let id = link.id.child("privateEndpointConnections", "c");
            Arc::make_mut(link).connections.push(PrivateEndpointConnection { id, state });
        }
        world.kubernetes.services.remove(&uid(1)).expect("it was there");
        let name: Arc<str> = uid(1).base_name().into();
        world.abandoned.extend(is_gone.then_some(name));
        let (plan, _) = planned(&world);
        let group = policy().security_group_id();
        let is_written = plan.changes.iter().any(|change| change.target == group);
        assert_eq!((is_written, plan.ledger.is_some()), (!stays, false), "{state:?} {is_gone}");
    }
}

/// Internal Service number `n` of a namespace, that so many ranges may connect to; no two of them
/// can be written as one.
fn ranged(namespace: &str, n: u16, ranges: u32) -> Service {
    let text: Vec<String> = (0..ranges)
        .map(|k| {
            format!("{}/32", std::net::Ipv4Addr::from(0x0B00_0000 + u32::from(n) * 8_192 + 2 * k))
        })
        .collect();
    let address = format!("10.224.10.{n}");
    let service =
        internal(n, 80 + n, &[(PINNED, &address), ("azure-allowed-ip-ranges", &text.join(","))]);
    Service { name: model::ServiceName::new(namespace, format!("web-{n}")), ..service }
}

/// What a Service is refused for, and the rule of the finding.
fn refused(world: &World, n: u16) -> Option<(&'static str, String)> {
    let report = crate::shape::stage::report(world, n);
    let mut refusals = report.findings.iter().filter(|f| f.severity == Severity::Refusal);
    refusals.next().map(|f| (f.rule, f.message.to_string()))
}

#[test]
fn one_service_with_3999_ranges_pushes_out_no_neighbour() {
    // Whoever comes first, and whatever the names are.
    for (greedy, first) in [("aaa", true), ("zzz", true), ("aaa", false), ("zzz", false)] {
        let mut world = if first {
            settled(world(vec![ranged(greedy, 1, 3_999)]))
        } else {
            world(vec![ranged(greedy, 1, 3_999)])
        };
        (2..6).for_each(|n| change(&mut world, ranged("team", n, 90)));
        let world = settled(world);
        for n in 2..6 {
            assert_eq!(refused(&world, n), None, "{greedy} {first}: {n}");
        }
        let (rule, allowed) = refused(&world, 1).expect("it asks for more than its share");
        assert_eq!(rule, "SecurityRuleLimit");
        assert!(allowed.contains("namespaces with most source prefixes: team 360"), "{allowed}");
    }
}

#[test]
fn what_is_left_goes_to_the_namespaces_that_use_least() {
    // Each of the greedy one's asks for 600, twelve in all; the others for 700 and 900.
    let mut services: Vec<Service> = (1..13).map(|n| ranged("aaa", n, 600)).collect();
    services.push(ranged("bbb", 20, 700));
    services.push(ranged("ccc", 21, 900));
    let mut world = settled(world(services));
    let greedy = |world: &World| (1..13).filter(|n| refused(world, *n).is_none()).count();
    assert_eq!((refused(&world, 20), refused(&world, 21)), (None, None));
    assert_eq!(greedy(&world), 3, "1,800 of what the others leave");
    let (_, allowed) = (1..13).find_map(|n| refused(&world, n)).expect("most are refused");
    let users = "namespaces with most source prefixes: aaa 1800, ccc 900, bbb 700";
    assert!(allowed.contains(users), "{allowed}");
    // What runs stays, and who is below the share still grows.
    let before = open(&world);
    change(&mut world, ranged("ddd", 22, 500));
    let world = settled(world);
    assert_eq!(refused(&world, 22), None);
    assert!(before.is_subset(&open(&world)));
    assert_eq!(greedy(&world), 3);
}

/// Whoever joins a rule that others have changes nothing for them.
#[test]
fn who_finds_no_room_in_a_rule_is_refused_alone() {
    let shared = |n: u16| closed(n, 80, &[(PINNED, &*format!("10.224.10.{n}"))]);
    let mut world = settled(world(vec![shared(1), shared(2)]));
    let group = world.azure.security_group.known_mut().and_then(Option::as_mut).expect("there");
    let mut theirs = group.rules[0].clone();
    theirs.name = "theirs".into();
    theirs.direction = "Outbound".into();
    theirs.destinations =
        (0..3_998).map(|n| Arc::from(std::net::Ipv4Addr::from(n).to_string())).collect();
    Arc::make_mut(group).rules.push(theirs);
    change(&mut world, shared(3));
    let world = settled(world);
    assert_eq!((refused(&world, 1), refused(&world, 2)), (None, None));
    assert_eq!(refused(&world, 3).map(|(rule, _)| rule), Some("SecurityRuleLimit"));
}

/// A Service without floating IP that is programmed, and refused after an edit; a second node may
/// come, and the first may go.
fn refused_beside(nodes: &[u8]) -> World {
    let off = ("azure-disable-load-balancer-floating-ip", "true");
    let mut world = steady(world(vec![closed(1, 80, &[off])]));
    assert_eq!(led_to(&world), ["10.224.0.4"]);
    let wrong = ("azure-load-balancer-tcp-idle-timeout", "soon");
    change(&mut world, closed(1, 80, &[off, wrong]));
    let first = world.kubernetes.nodes.pop_first().expect("the fixture has a node").1;
    for last in nodes {
        let mut node = (*first).clone();
        node.name = NodeName::new(format!("vmss00000{last}"));
        node.addresses = vec![IpAddr::from([10, 224, 0, *last])];
        world.kubernetes.nodes.insert(node.name.clone(), Arc::new(node));
    }
    world
}

/// The World once all is done, where pools hold addresses.
fn steady(world: World) -> World {
    let policy = fixture::policy();
    let (plan, _) = crate::plan(&world, &policy);
    assert_eq!(check(&world, &policy, &plan), []);
    let (world, _) = settle(world, &policy);
    let (plan, _) = crate::plan(&world, &policy);
    assert!(plan.is_empty(), "{plan:#?}");
    world
}

fn led_to(world: &World) -> Vec<String> {
    group(world).rules.iter().flat_map(|r| &r.destinations).map(ToString::to_string).collect()
}

fn members(world: &World) -> Vec<String> {
    let pools = &balancer(world).pools;
    pools.iter().flat_map(|p| &p.addresses).map(|a| a.address.to_string()).collect()
}

#[test]
fn rules_to_node_ports_of_a_refused_service_follow_the_nodes() {
    for nodes in [&[4, 5][..], &[5], &[4]] {
        let mut world = steady(refused_beside(nodes));
        // The time to drain is over.
        world.drained.insert(IpAddr::from([10, 224, 0, 4]).into());
        let world = steady(world);
        let wanted: Vec<String> = nodes.iter().map(|n| format!("10.224.0.{n}")).collect();
        assert_eq!((led_to(&world), members(&world)), (wanted.clone(), wanted));
    }
}

#[test]
fn rules_of_a_service_that_azure_refuses_are_left_alone() {
    let mut world = refused_beside(&[4, 5]);
    let hold = fixture::hold(policy().security_group_id(), "Refused");
    world.holds.insert(uid(1), Hold { until_ms: None, ..hold });
    let (world, _) = settle(world, &fixture::policy());
    assert_eq!(led_to(&world), ["10.224.0.4"]);
}

/// The write that opens an address is in flight when its Service is deleted: what it opens is to be
/// closed before the frontend lets the address go, which Azure then gives to the next that asks.
#[test]
fn a_frontend_stays_until_the_write_that_opens_its_address_has_ended() {
    let mut world = settled(world(vec![closed(1, 80, &[]), closed(2, 82, &[])]));
    security_group_mut(&mut world).rules.retain(|rule| !rule.ports.contains("82"));
    let leaving = Service { wish: Wish::Nothing, ..closed(2, 82, &[]) };
    change(&mut world, Service { deletion: Deletion::Requested, ..leaving });
    let targets = |world: &World| -> Vec<String> {
        let (plan, _) = planned(world);
        plan.changes.iter().map(|change| change.target.name().to_owned()).collect()
    };
    assert_eq!(targets(&world), ["kubernetes-internal"]);
    let id = policy().security_group_id();
    let flight = |n| in_flight([uid(n)]);
    world.in_flight.insert(id.clone(), flight(1));
    assert_eq!(targets(&world), ["kubernetes-internal"], "it opens others");
    world.in_flight.insert(id, flight(2));
    assert!(targets(&world).is_empty());
}

/// A Service becomes ClusterIP, for which Kubernetes empties its status, and wants a load balancer
/// again: Azure has closed nothing yet, and its frontend has gone.
#[test]
fn what_comes_back_before_it_is_closed_stays_open() {
    let mut world = settled(world(vec![closed(1, 80, &[])]));
    let frontend = balancer(&world).frontends[0].clone();
    for balancer in world.azure.balancers.known_mut().into_iter().flat_map(|all| all.values_mut()) {
        let balancer = Arc::make_mut(balancer);
        balancer.frontends.retain(|f| f.name != frontend.name);
        balancer.rules.clear();
    }
    change(&mut world, Service { ingress: Vec::new(), ..closed(1, 80, &[]) });
    let (plan, _) = planned(&world);
    let targets: Vec<&str> = plan.changes.iter().map(|change| change.target.name()).collect();
    assert_eq!(targets, ["kubernetes-internal"], "its address is on the way");
}

/// What is open for a Service that leaves is closed before another gets its address, also where the
/// ports are the same: the sources are not.
#[test]
fn an_address_is_closed_before_another_service_gets_it() {
    let mut world = settled(world(vec![closed(1, 80, &[])]));
    change(&mut world, Service { wish: Wish::Nothing, ..closed(1, 80, &[]) });
    change(
        &mut world,
        internal(2, 80, &[(PINNED, ADDRESS), ("azure-allowed-ip-ranges", "10.8.0.0/16")]),
    );
    let (plan, _) = crate::plan(&world, &policy());
    assert_eq!(check(&world, &policy(), &plan), []);
    let [closing] = &plan.changes[..] else { panic!("{:?}", plan.changes) };
    assert_eq!(closing.target, policy().security_group_id());
}

/// Until such a write has ended the Service is not told an address that it closes.
#[test]
fn a_write_that_closes_an_address_is_on_its_services_account() {
    let mut world = settled(world(vec![closed(1, 80, &[])]));
    let gone = Service { wish: Wish::Nothing, ingress: Vec::new(), ..closed(1, 80, &[]) };
    change(&mut world, gone);
    let (plan, _) = planned(&world);
    let [closing] = &plan.changes[..] else { panic!("{:?}", plan.changes) };
    assert_eq!(closing.target, policy().security_group_id());
    assert_eq!(closing.causes, BTreeSet::from([uid(1)]));
    world.in_flight.insert(closing.target.clone(), in_flight(closing.causes.clone()));
    change(&mut world, Service { ingress: Vec::new(), ..closed(1, 80, &[]) });
    let (plan, _) = planned(&world);
    assert_eq!(plan.writes, [], "its address is told once it is open");
}

/// The ledger names a released Service as long as other Services have the address open. When the
/// Service asks again, it has nothing open there.
#[test]
fn what_a_service_once_had_is_not_closed_on_its_account() {
    let mut world = settled(world(vec![closed(1, 80, &[]), closed(2, 82, &[])]));
    change(&mut world, Service { wish: Wish::Nothing, ..closed(2, 82, &[]) });
    let mut world = settled(world);
    let other = internal(2, 82, &[(PINNED, "10.224.9.10")]);
    change(&mut world, Service { finalizers: Vec::new(), ..other });
    change(&mut world, closed(1, 81, &[]));
    let (plan, _) = planned(&world);
    let closing = plan.changes.iter().find(|c| c.target == policy().security_group_id());
    assert_eq!(closing.map(|closing| &closing.causes), Some(&BTreeSet::from([uid(1)])));
}
