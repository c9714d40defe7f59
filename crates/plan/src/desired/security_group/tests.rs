//! What opens when.

use crate::check::check;
use crate::desired::stage::{ADDRESS, PINNED, change, internal, policy, settled, world};
use model::azure::Rest;
use model::kubernetes::Service;
use model::{World, world::Fact};
use std::collections::BTreeSet;
use std::sync::Arc;

/// A Service that only some may connect to; an internal one needs no rule otherwise.
fn closed(n: u16, port: u16, more: &[(&str, &str)]) -> Service {
    let some = [(PINNED, ADDRESS), ("azure-allowed-ip-ranges", "10.9.0.0/16")];
    internal(n, port, &[&some, more].concat())
}

/// Ports that rules of the security group lead to.
fn open(world: &World) -> BTreeSet<Arc<str>> {
    let group = world.azure.security_group.known().expect("read").as_ref().expect("there");
    group.rules.iter().flat_map(|rule| rule.ports.clone()).collect()
}

/// It shares an address that stands, so that nothing else has to come first.
#[test]
fn nothing_opens_for_a_service_without_our_finalizer() {
    let before = settled(world(vec![closed(1, 80, &[])]));
    let mut world = before.clone();
    let ruleless = closed(2, 82, &[("port_82_no_lb_rule", "true")]);
    change(&mut world, Service { finalizers: Vec::new(), ..ruleless });
    let (plan, _) = crate::plan(&world, &policy());
    assert_eq!(check(&world, &policy(), &plan), []);
    assert_eq!((plan.changes.len(), plan.writes.len()), (0, 1), "the finalizer comes first");
    assert_eq!(open(&settled(world)), ["80", "82"].map(Arc::from).into());
}

/// A rule is named after what it says beside the addresses.
#[test]
fn a_rule_goes_on_with_another_address_and_fields_that_we_do_not_know() {
    let mut world = settled(world(vec![closed(1, 80, &[])]));
    let fact = &mut world.azure.security_group;
    let group = fact.known_mut().and_then(Option::as_mut).expect("there");
    let rule = &mut Arc::make_mut(group).rules[0];
    let mut fields = rule.rest.unpack();
    fields.top.insert("theirs".to_owned(), true.into());
    let theirs = Rest::from(fields);
    rule.rest = theirs.clone();
    let before = rule.clone();
    change(&mut world, closed(1, 80, &[(PINNED, "10.224.9.10")]));
    let world = settled(world);
    let Fact::Known(Some(group)) = &world.azure.security_group else { panic!("it was there") };
    let [rule] = &group.rules[..] else { panic!("{:#?}", group.rules) };
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
