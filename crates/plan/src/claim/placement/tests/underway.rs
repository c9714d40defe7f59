//! What a write that is under way brings a load balancer counts as there, and so does what lists do
//! not show yet.

use super::{annotated, balancer, carry_out, change, placed, pool, service, settle, two, uid};
use fixture::{in_flight, service_mut};
use model::World;
use model::azure::PublicIp;
use model::kubernetes::{Ingress, SERVICE_FINALIZER, Service};
use model::plan::{Action, Change, Resource};
use model::policy::Layout;
use model::report::Wait;
use model::world::{Fact, InFlight};
use std::collections::BTreeSet;
use std::sync::Arc;

#[test]
fn a_node_that_is_about_to_join_one_load_balancer_joins_no_other() {
    let (policy, mut world) = placed(Layout::Several(two()), vec![service(1)]);
    // A write that is not answered yet brings the second set's nodes.
    let all = world.azure.balancers.known_mut().expect("read").values_mut();
    let only = Arc::make_mut(all.last().expect("the only one"));
    let (id, addresses) = (only.id.clone(), crate::pooled(&policy, only));
    assert_eq!(addresses.len(), 4);
    only.pools[0].addresses.retain(|a| a.name.starts_with("vmss1"));
    let causes = BTreeSet::from([uid(1)]);
    let flight = InFlight { attempt: 1, causes, addresses: Arc::new(addresses), goes: false };
    world.in_flight.insert(id, flight);
    let finalizers = vec![SERVICE_FINALIZER.into()];
    change(&mut world, Service { finalizers, ..service(2) });
    let (plan, _) = crate::plan(&world, &policy);
    let is_ip =
        |c: &&Arc<Change>| matches!(c.action, Action::Put { after: Resource::PublicIp(_), .. });
    plan.changes.iter().filter(is_ip).for_each(|change| carry_out(&mut world, change));
    let (plan, _) = crate::plan(&world, &policy);
    let second = plan.changes.iter().find_map(|planned| match &planned.action {
        Action::Put { after: Resource::LoadBalancer(b), .. } if b.id.name() == "lb2" => Some(b),
        _ => None,
    });
    assert!(second.is_none_or(|b| b.pools.iter().all(|p| p.addresses.is_empty())), "{second:#?}");
}

/// The process before this one made a load balancer that no list shows yet: its nodes look free,
/// whether that process had told its Service's address or not.
#[test]
fn nodes_join_none_while_a_load_balancer_may_be_unlisted() {
    let told = Ingress { ip: Some("20.0.0.2".into()), hostname: None };
    for ingress in [vec![told], Vec::new()] {
        join_none_while_unlisted(ingress);
    }
}

fn join_none_while_unlisted(ingress: Vec<Ingress>) {
    let (policy, mut world) = placed(Layout::Several(two()), vec![service(1), service(2)]);
    service_mut(&mut world, &uid(2)).ingress = ingress;
    let id = balancer(&world, "lb2").expect("it was made").id.clone();
    let second = world.azure.balancers.known_mut().expect("read").remove(&id).expect("it is there");
    world.unseen.insert(uid(2));
    let (plan, report) = crate::plan(&world, &policy);
    assert!(plan.changes.is_empty(), "{:#?}", plan.changes);
    assert_eq!(report.services[&uid(2)].waits, [Wait::Listing]);
    world.azure.balancers.known_mut().expect("read").insert(id, second);
    world.unseen.clear();
    settle(&mut world, &policy);
    assert_eq!(pool(&world, "kubernetes", "kubernetes"), ["vmss1-1", "vmss1-2"]);
}

/// Where there are the fewest rules is asked with those that a write is bringing.
#[test]
fn rules_that_are_being_written_count() {
    let (policy, mut world) =
        placed(Layout::Several(two()), vec![service(1), service(2), service(3)]);
    let rules = |world: &World, name| balancer(world, name).map_or(0, |b| b.rules.len());
    assert_eq!((rules(&world, "kubernetes"), rules(&world, "lb2")), (2, 1));
    let finalizers = || vec![SERVICE_FINALIZER.into()];
    (4..=6).for_each(|n| change(&mut world, Service { finalizers: finalizers(), ..service(n) }));
    let id = balancer(&world, "lb2").expect("it was made").id.clone();
    let flight = in_flight([uid(4), uid(5)]);
    world.in_flight.insert(id, flight);
    let (_, report) = crate::plan(&world, &policy);
    let on = |n| report.services[&uid(n)].balancer.as_deref();
    assert_eq!([4, 5, 6].map(on), [Some("lb2"), Some("lb2"), Some("kubernetes")]);
}

/// Two Services bring one address along: one is being written to a load balancer, and of the other,
/// which comes first in order, another public IP is.
#[test]
fn a_shared_address_goes_where_it_is_being_written() {
    let (policy, mut world) =
        placed(Layout::Several(two()), vec![service(1), service(2), service(3)]);
    let all = world.azure.public_ips.get_mut(&policy.group).and_then(Fact::known_mut);
    let all = all.expect("read");
    let made = all.values().next().expect("of service 1").clone();
    let id = policy.public_ip_id(&policy.group, "shared");
    let address = Some("20.0.1.1".parse().expect("an address"));
    all.insert(
        id.clone(),
        Arc::new(PublicIp { id, address, tags: None, ..PublicIp::clone(&made) }),
    );
    let brings = |n: u8| {
        let finalizers = vec![SERVICE_FINALIZER.into()];
        let mut service = Service { finalizers, ..annotated(n, "azure-pip-name", "shared") };
        service.ports[0].port = 80 + u16::from(n);
        service
    };
    (4..=5).for_each(|n| change(&mut world, brings(n)));
    let flight = |n: u8| in_flight([uid(n)]);
    let id = balancer(&world, "kubernetes").expect("it was made").id.clone();
    world.in_flight.insert(id, flight(5));
    world.in_flight.insert(policy.public_ip_id(&policy.group, "another"), flight(4));
    let (_, report) = crate::plan(&world, &policy);
    let on = |n| report.services[&uid(n)].balancer.as_deref();
    assert_eq!([4, 5].map(on), [Some("kubernetes"); 2]);
}
