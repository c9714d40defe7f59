//! Services that want each other's addresses, or ports, while one of them cannot let go yet.

use crate::shape::stage::{
    ADDRESS, PINNED, SUBNET, change, internal, parts, planned, policy, report,
};
use crate::shape::stage::{settled, uid, world};
use fixture::in_flight;
use model::azure::LoadBalancer;
use model::kubernetes::{Service, Wish};
use model::plan::{Action, KubernetesWrite, Object, Resource};
use model::report::{State, Until, Wait};
use model::{Family, World};
use std::sync::Arc;

fn balancers(world: &World) -> impl Iterator<Item = &Arc<LoadBalancer>> {
    world.azure.balancers.known().expect("read").values()
}

const ANOTHER: &str = "10.224.9.10";
const THIRD: &str = "10.224.9.11";
const ALL_PORTS: (&str, &str) = ("azure-load-balancer-enable-high-availability-ports", "true");

fn pinned(n: u16, address: &str) -> Service {
    internal(n, 80 + n, &[(PINNED, address)])
}

/// With a Private Link Service, which has to go before its frontend does.
fn linked(n: u16, address: &str) -> Service {
    internal(n, 80 + n, &[(PINNED, address), ("azure-pls-create", "true")])
}

/// Service 3 is to leave its frontend, and cannot yet.
fn leave(world: &mut World) {
    change(world, internal(3, 83, &[(PINNED, "10.225.0.77"), (SUBNET, "apps")]));
}

/// The load balancer is not written now, and these wait for the address.
fn assert_waiting(world: &World, waiting: &[u16]) {
    let (plan, _) = planned(world);
    let targets: Vec<&str> = plan.changes.iter().map(|c| c.target.name()).collect();
    assert_eq!(targets, ["pls-a000000031111422283330123456789a"]);
    let id = policy().balancer_id("kubernetes-internal");
    let wait = Wait::Resource { id, until: Until::Released };
    for n in waiting {
        let report = report(world, *n);
        assert!(report.waits.contains(&wait), "{}: {:?}", uid(*n), report.waits);
    }
}

/// The Service that made it has gone, and its Private Link Service stands before it.
#[test]
fn an_inherited_frontend_waits_for_what_stands_before_it() {
    let gone = |service: Service| Service { wish: Wish::Nothing, ..service };
    let mut world = settled(world(vec![pinned(1, ADDRESS), linked(2, ADDRESS)]));
    change(&mut world, gone(pinned(1, ADDRESS)));
    let mut world = settled(world);
    world.kubernetes.services.remove(&uid(1));
    let inherited = settled(world);
    assert_eq!(parts(&inherited), ["1 10.224.9.9", "2-TCP-82 -> 1"]);
    for edit in [pinned(2, ANOTHER), gone(linked(2, ADDRESS))] {
        let mut world = inherited.clone();
        change(&mut world, edit);
        let world = settled(world);
        let left = balancers(&world).flat_map(|b| &b.frontends);
        assert!(left.into_iter().all(|f| !f.name.starts_with("a00000001")), "it goes");
    }
}

/// The Service that made it is going, and another one's rule is all that is left on it.
#[test]
fn a_frontend_goes_with_the_last_rule_on_it_and_its_services_finalizer_after_it() {
    let gone = || Service { wish: Wish::Nothing, ..pinned(1, ADDRESS) };
    let mut world = settled(world(vec![pinned(1, ADDRESS), pinned(2, ADDRESS)]));
    change(&mut world, gone());
    let mut world = settled(world);
    // Its finalizer has not been taken off yet.
    change(&mut world, gone());
    let is_frontend = |name: &str| name.starts_with("a00000001");
    let (plan, _) = crate::plan(&world, &policy());
    assert_eq!(plan.writes.len(), 1, "nothing is left to wait for: {:#?}", plan.writes);
    change(&mut world, pinned(2, ANOTHER));
    let (plan, _) = crate::plan(&world, &policy());
    let put = plan.changes.iter().find_map(|change| match &change.action {
        Action::Put { after: Resource::LoadBalancer(after), .. } => Some((change, after)),
        _ => None,
    });
    let (put, after) = put.expect("the load balancer is written");
    assert!(!after.frontends.iter().any(|f| is_frontend(&f.name)), "{after:#?}");
    assert!(put.causes.contains(&uid(1)), "{:?}", put.causes);
    assert_eq!(plan.writes, [], "the finalizer waits for that write");
    assert_eq!(parts(&settled(world)), ["2 10.224.9.10", "2-TCP-82 -> 2"]);
}

#[test]
fn an_address_is_taken_only_when_the_one_who_has_it_can_let_go() {
    let mut world = settled(world(vec![internal(1, 81, &[]), linked(3, ADDRESS)]));
    leave(&mut world);
    change(&mut world, pinned(1, ADDRESS));
    assert_waiting(&world, &[1]);
    assert_eq!(
        parts(&settled(world)),
        ["1 10.224.9.9", "1-TCP-81 -> 1", "3-apps 10.225.0.77", "3-apps-TCP-83 -> 3-apps"]
    );
}

/// Service 2 cannot leave the frontend of Service 4, which is to have another address, by the same
/// name or by another.
#[test]
fn who_cannot_take_an_address_keeps_the_frontend_of_another_that_it_stands_on() {
    // With a frontend of its own, it is looked at before Service 4. Azure has no IPv6 frontend
    // beside a Private Link Service: it is put there by hand.
    let both = |address| Service { families: Family::ALL.into(), ..pinned(2, address) };
    let mut before = settled(world(vec![pinned(3, ANOTHER), pinned(4, ADDRESS)]));
    change(&mut before, both(ADDRESS));
    let mut before = settled(before);
    before.azure.private_links = settled(world(vec![linked(3, ANOTHER)])).azure.private_links;
    let named = internal(4, 84, &[(PINNED, THIRD), (SUBNET, "nodes")]);
    for (edit, own) in [(pinned(4, THIRD), "4"), (named, "4-nodes")] {
        let mut world = before.clone();
        leave(&mut world);
        change(&mut world, edit);
        change(&mut world, both(ANOTHER));
        assert_waiting(&world, &[2, 4]);
        let mut parts = parts(&settled(world));
        parts.retain(|part| !part.contains("IPv6"));
        let expected = [
            "2 10.224.9.10".to_owned(),
            "2-TCP-82 -> 2".to_owned(),
            "3-apps 10.225.0.77".to_owned(),
            "3-apps-TCP-83 -> 3-apps".to_owned(),
            format!("{own} 10.224.9.11"),
            format!("{own}-TCP-84 -> {own}"),
        ];
        assert_eq!(parts, expected);
    }
}

/// A frontend of its name stands elsewhere for another's sake: until the new rule stands, the old
/// one says where the Service is.
#[test]
fn another_port_takes_no_address_from_a_service_on_anothers_frontend() {
    let all = vec![pinned(1, ADDRESS), pinned(2, ANOTHER), pinned(3, ANOTHER)];
    let mut world = settled(world(all));
    change(&mut world, pinned(2, ADDRESS));
    let mut world = settled(world);
    assert!(parts(&world).contains(&"2 10.224.9.10".to_owned()), "{:?}", parts(&world));
    change(&mut world, internal(2, 8082, &[(PINNED, ADDRESS)]));
    let (plan, _) = crate::plan(&world, &policy());
    let own = |write: &&KubernetesWrite| match &write.object {
        Object::Service { uid: of, .. } => *of == uid(2),
        Object::Pod { .. } => false,
    };
    assert_eq!(plan.writes.iter().find(own), None, "its status stays");
}

/// The owner of the frontend moves it to another address: two that are refused stay where they
/// are, on a frontend of their own.
#[test]
fn refused_services_stay_on_their_address_when_the_one_they_share_it_with_moves() {
    let all = (1..=3).map(|n| pinned(n, ADDRESS)).collect();
    let mut world = settled(world(all));
    let wrong = ("azure-load-balancer-tcp-idle-timeout", "soon");
    for n in [2, 3] {
        change(&mut world, internal(n, 80 + n, &[(PINNED, ADDRESS), wrong]));
    }
    change(&mut world, pinned(1, ANOTHER));
    let mut world = settled(world);
    let apart =
        ["1 10.224.9.10", "1-TCP-81 -> 1", "2 10.224.9.9", "2-TCP-82 -> 2", "3-TCP-83 -> 2"];
    assert_eq!(parts(&world), apart);
    for n in [2, 3] {
        change(&mut world, pinned(n, ADDRESS));
    }
    assert_eq!(parts(&settled(world)), apart);
}

/// A third takes the address that its owner leaves: the refused one is on the third's frontend,
/// whichever of them is looked at first.
#[test]
fn a_refused_service_stays_on_its_address_with_who_takes_it() {
    for (owner, taker) in [(1, 3), (3, 1)] {
        let first = vec![pinned(owner, ADDRESS), pinned(taker, ANOTHER)];
        let mut world = settled(world(first));
        change(&mut world, pinned(2, ADDRESS));
        let mut world = settled(world);
        let wrong = ("azure-load-balancer-tcp-idle-timeout", "soon");
        change(&mut world, internal(2, 82, &[(PINNED, ADDRESS), wrong]));
        change(&mut world, pinned(owner, THIRD));
        change(&mut world, pinned(taker, ADDRESS));
        let mut expected = vec![
            format!("{owner} {THIRD}"),
            format!("{owner}-TCP-8{owner} -> {owner}"),
            format!("{taker} {ADDRESS}"),
            format!("{taker}-TCP-8{taker} -> {taker}"),
            format!("2-TCP-82 -> {taker}"),
        ];
        expected.sort_unstable();
        let found = parts(&settled(world));
        assert_eq!(found, expected);
    }
}

/// The owner of the frontend has joined another frontend: a third Service wants the address too.
#[test]
fn who_comes_to_a_frontend_whose_maker_joined_anothers_shares_it() {
    let first = vec![pinned(1, ADDRESS), pinned(2, ADDRESS), pinned(3, ANOTHER), pinned(4, THIRD)];
    for order in [&[1, 4][..], &[4, 1], &[14]] {
        let mut world = settled(world(first.clone()));
        for step in order {
            if [1, 14].contains(step) {
                change(&mut world, pinned(1, ANOTHER));
            }
            if [4, 14].contains(step) {
                change(&mut world, pinned(4, ADDRESS));
            }
            world = settled(world);
        }
        let expected = [
            "1 10.224.9.9",
            "1-TCP-81 -> 3",
            "2-TCP-82 -> 1",
            "3 10.224.9.10",
            "3-TCP-83 -> 3",
            "4-TCP-84 -> 1",
        ];
        assert_eq!(parts(&world), expected, "{order:?}");
    }
}

/// The one that the frontend is named after has moved to that of a refused Service, which keeps it.
#[test]
fn who_stays_on_a_frontend_whose_maker_joined_a_refused_service_goes_on() {
    let first = vec![pinned(1, ADDRESS), pinned(2, ADDRESS), pinned(3, ANOTHER)];
    let mut world = settled(world(first));
    let wrong = ("azure-load-balancer-tcp-idle-timeout", "soon");
    change(&mut world, internal(3, 83, &[(PINNED, ANOTHER), wrong]));
    change(&mut world, pinned(1, ANOTHER));
    let mut world = settled(world);
    change(&mut world, internal(2, 8082, &[(PINNED, ADDRESS)]));
    assert_eq!(
        parts(&settled(world)),
        ["1 10.224.9.9", "1-TCP-81 -> 3", "2-TCP-8082 -> 1", "3 10.224.9.10", "3-TCP-83 -> 3",]
    );
}

/// Azure takes one rule for all ports of a pool where there is no floating IP. The Service that has
/// it is to have a public IP, or none at all, and what opens its private address may be under way:
/// until that is known its rule stays.
#[test]
fn all_ports_are_taken_only_when_their_holder_can_release_them() {
    let six = |n| Service { families: vec![Family::V6], ..internal(n, 80 + n, &[ALL_PORTS]) };
    let public = Service { annotations: Arc::default(), ..six(1) };
    for edit in [public, Service { wish: Wish::Nothing, ..six(1) }] {
        let mut world = settled(world(vec![six(1)]));
        let opening = in_flight([uid(1)]);
        world.in_flight.insert(policy().security_group_id(), opening);
        change(&mut world, edit);
        change(&mut world, six(2));
        let (plan, _) = planned(&world);
        let id = policy().balancer_id("kubernetes-internal");
        assert!(plan.changes.iter().all(|change| change.target != id), "{:#?}", plan.changes);
        let report = report(&world, 2);
        let wait = Wait::Resource { id, until: Until::Released };
        let waits = report.waits.contains(&wait);
        assert_eq!((report.state, waits), (State::Waiting, true), "{report:#?}");
        world.in_flight.clear();
        let parts = parts(&settled(world));
        assert!(parts.iter().all(|part| part.starts_with('2')), "{parts:?}");
        assert!(parts.contains(&"2-TCP-82 -> 2".to_owned()), "{parts:?}");
    }
}

/// Its finalizer was removed by hand: its resources are deleted once its names are noted.
#[test]
fn a_service_waits_for_the_place_of_one_that_is_gone_and_not_noted() {
    let before = settled(world(vec![pinned(1, ADDRESS)]));
    for is_known in [false, true] {
        let mut world = before.clone();
        world.kubernetes.services.remove(&uid(1)).expect("it was there");
        let name: Arc<str> = uid(1).base_name().into();
        world.departed.extend(is_known.then_some(name));
        change(&mut world, internal(2, 81, &[(PINNED, ADDRESS)]));
        let report = report(&world, 2);
        let id = policy().balancer_id("kubernetes-internal");
        let waits = report.waits.contains(&Wait::Resource { id, until: Until::Released });
        let state = if is_known { State::Waiting } else { State::Refused };
        assert_eq!((report.state, waits), (state, is_known), "{report:#?}");
    }
}
