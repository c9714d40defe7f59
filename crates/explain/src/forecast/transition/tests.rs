use super::{Stage, Transition, transitions};
use crate::forecast::assumption::assume;
use crate::forecast::forecast;
use fixture::{policy, public_ip, service, world};
use model::azure::{Allocation, Provisioning, PublicIp, Sku};
use model::kubernetes::{Deletion, Service, Wish};
use model::policy::BalancerSku;
use model::report::State;
use model::world::Fact;
use model::{Policy, ServiceName, World};
use std::sync::Arc;

const PROGRAMMED: Stage = Stage::At(State::Programmed);

/// What becomes of the fixture's Service after an edit, in a World that is settled without it.
fn after(edit: impl Fn(&mut Service)) -> Transition {
    let mut world = world();
    world.kubernetes.services.values_mut().for_each(|s| edit(Arc::make_mut(s)));
    loop {
        let needs = forecast(&world, &policy()).last.needs;
        if needs.is_empty() {
            return only(&world);
        }
        needs.iter().for_each(|need| assume(&mut world.azure, &policy(), need));
        // What is assumed of a subnet takes every address, a public one as well.
        let subnets = world.azure.subnets.values_mut().filter_map(Fact::known_mut).flatten();
        subnets.for_each(|s| {
            Arc::make_mut(s).prefixes = vec!["10.224.0.0/16".parse().expect("a prefix")];
        });
    }
}

fn only(world: &World) -> Transition {
    let all = transitions(&forecast(world, &policy()), world);
    assert_eq!(all.len(), 1, "{all:?}");
    all.into_values().next().expect("there is one")
}

fn annotate(service: &mut Service, key: &str, value: &str) {
    service.annotations = self::service(&[(key, value)]).annotations;
}

fn expected(from: Stage, to: Stage, written: bool) -> Transition {
    let (lost, gained) = (Vec::new(), Vec::new());
    Transition { name: ServiceName::new("default", "web"), from, to, lost, gained, written }
}

/// The address that the fixture's Service has.
fn address() -> Arc<str> {
    let world = world();
    let service = world.kubernetes.services.values().next().expect("there is one");
    service.ingress[0].ip.clone().expect("it has an address")
}

#[test]
fn a_settled_service_stays_as_it_is() {
    assert_eq!(after(|_| {}), expected(PROGRAMMED, PROGRAMMED, false));
}

#[test]
fn a_new_service_gets_an_address() {
    let mut world = world();
    world.azure.balancers = Fact::Known(Default::default());
    world.azure.public_ips.values_mut().for_each(|ips| *ips = Fact::Known(Default::default()));
    world.kubernetes.services.values_mut().for_each(|s| {
        let service = Arc::make_mut(s);
        service.finalizers.clear();
        service.ingress.clear();
    });
    let transition = only(&world);
    assert_eq!((transition.from, transition.to), (Stage::New, PROGRAMMED));
    assert!(transition.gets_address() && transition.written);
    assert!(!transition.changes_address() && !transition.releases_address());
}

/// Azure allocates it when a frontend is put on the public IP.
#[test]
fn a_service_on_a_dynamic_public_ip_gets_an_address() {
    let policy = Policy { sku: BalancerSku::Basic, ..policy() };
    let mut world = world();
    world.azure.balancers = Fact::Known(Default::default());
    let bare = PublicIp { tags: None, sku: Sku::Basic, ..public_ip("mine", None) };
    let ip = PublicIp { allocation: Allocation::Dynamic, ..bare };
    let all = Fact::Known([(ip.id.clone(), Arc::new(ip))].into());
    world.azure.public_ips.insert(policy.group.clone(), all);
    world.kubernetes.services.values_mut().for_each(|s| {
        let service = Arc::make_mut(s);
        annotate(service, "azure-pip-name", "mine");
        service.ingress.clear();
    });
    let found = forecast(&world, &policy);
    let states: Vec<State> = found.last.services.values().map(|s| s.state).collect();
    assert_eq!(states, [State::Programmed], "{:#?}", found.last);
}

/// One write mends it.
#[test]
fn a_public_ip_that_failed_is_written_once() {
    let mut world = world();
    let all = world.azure.public_ips.values_mut().filter_map(Fact::known_mut);
    for ip in all.flat_map(|ips| ips.values_mut()) {
        Arc::make_mut(ip).provisioning = Provisioning::Failed;
    }
    let found = forecast(&world, &policy());
    let states: Vec<State> = found.last.services.values().map(|s| s.state).collect();
    assert_eq!(states, [State::Programmed], "{:#?}", found.last);
    assert!(found.steps.len() < 5, "{} calls", found.steps.len());
}

#[test]
fn an_edit_in_place_is_no_change_of_state() {
    let edited = after(|s| annotate(s, "azure-load-balancer-tcp-idle-timeout", "9"));
    assert_eq!(edited, expected(PROGRAMMED, PROGRAMMED, true));
}

#[test]
fn public_to_internal_changes_the_address() {
    let moved = after(|s| annotate(s, "azure-load-balancer-internal", "true"));
    assert_eq!((moved.from, moved.to), (PROGRAMMED, PROGRAMMED));
    assert_eq!(moved.lost, [address()]);
    assert_eq!(moved.gained.len(), 1);
    assert!(moved.changes_address() && !moved.gets_address());
}

#[test]
fn a_refused_edit_leaves_the_service_serving() {
    let refused = after(|s| annotate(s, "azure-load-balancer-tcp-idle-timeout", "soon"));
    assert_eq!(refused, expected(PROGRAMMED, Stage::At(State::RefusedServing), false));
}

#[test]
fn a_deleted_service_releases_its_address() {
    let deleted = after(|s| {
        s.wish = Wish::Nothing;
        s.deletion = Deletion::Requested;
    });
    assert_eq!((deleted.from, deleted.to), (Stage::At(State::Removing), Stage::Removed));
    assert_eq!(deleted.lost, [address()]);
    assert!(deleted.releases_address() && !deleted.changes_address());
}

/// The API server takes the addresses off its status with the type.
#[test]
fn a_service_of_another_type_releases_its_address() {
    let retyped = after(|s| {
        s.wish = Wish::Nothing;
        s.ingress.clear();
    });
    assert_eq!((retyped.from, retyped.to), (Stage::At(State::Removing), Stage::Removed));
    assert_eq!(retyped.lost, [address()]);
    assert!(retyped.releases_address() && !retyped.changes_address());
}
