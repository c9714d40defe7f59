//! What is recorded, opened, closed and forgotten, and in which order.

use crate::shape::stage::{
    ADDRESS, PINNED, change, internal, planned, policy, settled, uid, world,
};
use explain::forecast::settle;
use fixture::{in_flight, security_group_mut};
use model::azure::SecurityGroup;
use model::kubernetes::{Deletion, Service, Wish};
use model::ledger::{Destinations, Holder, Ledger};
use model::plan::{Action, Resource};
use model::report::Wait;
use model::world::Fact;
use model::{Etag, World};
use plan_check::{Breach, check};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

/// A Service that only some may connect to.
fn closed(n: u16, port: u16) -> Service {
    internal(n, port, &[(PINNED, ADDRESS), ("azure-allowed-ip-ranges", "10.9.0.0/16")])
}

fn group(world: &World) -> &Arc<SecurityGroup> {
    world.azure.security_group.known().expect("read").as_ref().expect("there")
}

fn ledger(world: &World) -> &Ledger {
    world.kubernetes.ledger.known().expect("read")
}

fn ledger_mut(world: &mut World) -> &mut Ledger {
    Arc::make_mut(world.kubernetes.ledger.known_mut().expect("read"))
}

fn address() -> IpAddr {
    ADDRESS.parse().expect("an address")
}

fn held_by(n: u16) -> Destinations {
    BTreeMap::from([(address(), BTreeSet::from([Holder::Service(uid(n))]))])
}

/// Whether the plan changes the security group, and whether that waits.
fn change_of(world: &World) -> Option<Vec<Wait>> {
    let (plan, _) = planned(world);
    let mut changes = plan.changes.iter();
    changes.find(|change| change.target == policy().security_group_id()).map(|c| c.waits.clone())
}

/// A Service whose frontend stands, and whose address is neither recorded nor open.
fn unopened() -> World {
    let mut world = settled(world(vec![closed(1, 80)]));
    security_group_mut(&mut world).rules.clear();
    ledger_mut(&mut world).destinations.clear();
    world
}

#[test]
fn an_address_is_recorded_before_it_is_opened() {
    let mut world = unopened();
    let (plan, report) = crate::plan(&world, &policy());
    assert_eq!(change_of(&world), None);
    let write = plan.ledger.expect("it is recorded");
    assert_eq!((&write.destinations, write.adopted.len()), (&held_by(1), 0));
    assert_eq!(write.planned_on, group(&world).etag);
    assert_eq!(report.services[&uid(1)].waits, [Wait::Ledger]);
    ledger_mut(&mut world).destinations = held_by(1);
    assert_eq!(change_of(&world), Some(Vec::new()));
}

#[test]
fn a_closing_waits_a_little_for_what_is_being_recorded() {
    let mut world = settled(world(vec![closed(1, 80)]));
    let other: IpAddr = "10.224.7.7".parse().expect("an address");
    security_group_mut(&mut world).rules[0].destinations.insert("10.224.7.7".into());
    let book = ledger_mut(&mut world);
    book.destinations = BTreeMap::from([(other, BTreeSet::new())]);
    assert_eq!(change_of(&world), Some(vec![Wait::Gathering { others: 1 }]));
}

#[test]
fn what_is_recorded_and_wanted_by_nobody_is_closed_and_then_forgotten() {
    let mut world = settled(world(vec![closed(1, 80)]));
    let service = closed(1, 80);
    change(&mut world, Service { deletion: Deletion::Requested, wish: Wish::Nothing, ..service });
    // Its frontend was taken away by hand, and no process that knew it is left.
    world.azure.balancers = Fact::Known(BTreeMap::new());
    let (plan, _) = crate::plan(&world, &policy());
    assert_eq!((plan.changes.len(), plan.writes.len()), (1, 0), "the finalizer stays: {plan:?}");
    let Action::Put { after: Resource::SecurityGroup(after), .. } = &plan.changes[0].action else {
        panic!("the group is written")
    };
    assert!(after.rules.is_empty());
    // The write that closed it has given the group another ETag.
    ledger_mut(&mut world).planned_on = None;
    let (world, _) = settle(world, &policy());
    assert!(world.kubernetes.services.is_empty());
    assert!(ledger(&world).destinations.is_empty(), "{:?}", ledger(&world));
}

#[test]
fn an_address_is_not_forgotten_while_a_write_may_open_it() {
    let mut world = settled(world(vec![closed(1, 80)]));
    world.kubernetes.services.clear();
    world.azure.balancers = Fact::Known(BTreeMap::new());
    security_group_mut(&mut world).rules.clear();
    let forgets = |world: &World| crate::plan(world, &policy()).0.ledger.is_some();
    ledger_mut(&mut world).planned_on = None;
    assert!(forgets(&world));
    let id = policy().security_group_id();
    let flight = in_flight([uid(1)]);
    let mut flying = world.clone();
    flying.in_flight.insert(id, flight);
    assert!(!forgets(&flying), "a write is under way");
    let etag = Some(Etag::new("as it was"));
    security_group_mut(&mut world).etag.clone_from(&etag);
    ledger_mut(&mut world).planned_on = etag;
    assert!(!forgets(&world), "one of a leader before may still take effect");
}

/// A tenant may create Services with our finalizer all the time.
#[test]
fn an_address_is_forgotten_although_services_with_our_finalizer_go_on_arriving() {
    let arriving = Service { ingress: Vec::new(), ..closed(2, 81) };
    let mut world = settled(world(vec![closed(1, 80), arriving]));
    ledger_mut(&mut world).planned_on = None;
    let gone: IpAddr = "10.224.7.7".parse().expect("an address");
    let forgets = |world: &World, holder: Option<u16>| {
        let mut world = world.clone();
        let holders = holder.map(|n| Holder::Service(uid(n))).into_iter().collect();
        ledger_mut(&mut world).destinations.insert(gone, holders);
        let write = planned(&world).0.ledger;
        write.is_some_and(|write| !write.destinations.contains_key(&gone))
    };
    assert!(forgets(&world, Some(1)) && forgets(&world, Some(2)) && forgets(&world, None));
    world.inherited.insert(uid(2));
    assert!(forgets(&world, Some(1)), "another Service's finalizer says nothing of it");
    assert!(!forgets(&world, Some(2)), "another process may be about to open it");
    assert!(!forgets(&world, None) && !forgets(&world, Some(9)), "nothing says for whom it was");
}

#[test]
fn another_clusters_address_stays_although_ours_is_beside_it() {
    let mut world = settled(world(vec![closed(1, 80)]));
    security_group_mut(&mut world).rules[0].destinations.insert("10.7.7.7".into());
    assert_eq!(change_of(&world), None);
    let service = closed(1, 80);
    change(&mut world, Service { deletion: Deletion::Requested, wish: Wish::Nothing, ..service });
    let (world, _) = settle(world, &policy());
    let rules = &group(&world).rules;
    assert_eq!(rules.len(), 1);
    assert_eq!(rules[0].destinations, BTreeSet::from(["10.7.7.7".into()]));
}

#[test]
fn without_a_ledger_what_is_this_clusters_is_adopted_and_nothing_else() {
    let mut world = settled(world(vec![closed(1, 80)]));
    security_group_mut(&mut world).rules[0].destinations.insert("10.7.7.7".into());
    world.kubernetes.ledger = Fact::Known(Arc::default());
    let (plan, _) = crate::plan(&world, &policy());
    assert!(plan.changes.is_empty());
    let write = plan.ledger.expect("it is made");
    assert_eq!(write.revision, None);
    assert_eq!(write.adopted, BTreeSet::from([address()]));
    assert_eq!(write.destinations, held_by(1));
    // What the process knew of one that was deleted goes on.
    let gone: IpAddr = "10.8.8.8".parse().expect("an address");
    security_group_mut(&mut world).rules[0].destinations.insert("10.8.8.8".into());
    ledger_mut(&mut world).destinations.entry(gone).or_default();
    let (world, _) = settle(world, &policy());
    let left = ["10.7.7.7", ADDRESS].map(Arc::from);
    assert_eq!(group(&world).rules[0].destinations, left.into());
}

#[test]
fn a_ledger_that_cannot_be_read_is_told_and_changes_nothing() {
    let mut world = unopened();
    world.kubernetes.ledger = Fact::Unreadable("data.destinations is missing".into());
    let (plan, report) = crate::plan(&world, &policy());
    assert_eq!((plan.changes.len(), plan.ledger.is_none()), (0, true), "{plan:?}");
    assert_eq!(report.findings[0].rule, "LedgerUnreadable");
    assert_eq!(report.services[&uid(1)].waits, [Wait::Ledger]);
    world.kubernetes.ledger = Fact::Unknown;
    let (plan, report) = crate::plan(&world, &policy());
    assert!(plan.is_empty());
    assert_eq!(report.services[&uid(1)].waits, [Wait::Listing]);
}

#[test]
fn a_plan_that_opens_what_is_not_recorded_is_found() {
    let mut world = unopened();
    ledger_mut(&mut world).destinations = held_by(1);
    let (plan, _) = crate::plan(&world, &policy());
    ledger_mut(&mut world).destinations.clear();
    let found = check(&world, &policy(), &plan);
    assert!(found.iter().any(|violation| violation.breach == Breach::Unrecorded), "{found:?}");
}

#[test]
fn what_cannot_be_opened_is_not_recorded_again_and_again() {
    let mut world = settled(world(vec![closed(1, 80)]));
    // Somebody else's rule has the name of ours.
    security_group_mut(&mut world).rules[0].priority = 100;
    ledger_mut(&mut world).planned_on = None;
    let (world, report) = settle(world, &policy());
    assert_eq!(report.services[&uid(1)].findings[0].rule, "SecurityRuleNameTaken");
    let (plan, _) = crate::plan(&world, &policy());
    assert!(plan.is_empty(), "{plan:#?}");
    assert!(ledger(&world).destinations.is_empty());
}
