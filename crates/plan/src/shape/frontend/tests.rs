//! Edits of the subnet of an internal Service with an address that it insists on.

use crate::shape::stage::{ADDRESS, PINNED, SUBNET, change, internal, parts, report};
use crate::shape::stage::{balancer, planned, policy, settled, uid, world};
use explain::forecast::forecast;
use model::kubernetes::{Service, Wish};
use model::plan::{Action, Resource};
use model::report::State;
use model::world::Fact;
use model::{Family, ResourceId};
use std::collections::BTreeSet;
use std::sync::Arc;

fn pinned(n: u16, port: u16, subnet: &str) -> Service {
    internal(n, port, &[(PINNED, ADDRESS), (SUBNET, subnet)])
}

#[test]
fn an_edit_to_a_subnet_that_does_not_have_the_address_leaves_all_as_it_was() {
    let before = settled(world(vec![pinned(1, 80, "nodes")]));
    assert_eq!(parts(&before), ["1-nodes 10.224.9.9", "1-nodes-TCP-80 -> 1-nodes"]);
    for (subnet, rule, key, message) in [
        ("apps", "PinnedAddressUnusable", PINNED, "must be an address in subnet apps"),
        ("nowhere", "SubnetNotFound", SUBNET, "must be a subnet of virtual network vnet"),
    ] {
        let mut world = before.clone();
        change(&mut world, pinned(1, 443, subnet));
        let report = report(&world, 1);
        let [finding] = &report.findings[..] else { panic!("{:#?}", report.findings) };
        assert_eq!((finding.rule, &*finding.message), (rule, message));
        assert!(finding.key.ends_with(key), "{}", finding.key);
        assert_eq!(report.state, State::RefusedServing);
        assert_eq!(parts(&settled(world)), parts(&before));
    }
}

#[test]
fn an_edit_to_another_subnet_with_an_address_of_it_is_carried_out_whole() {
    let mut world = settled(world(vec![pinned(1, 80, "nodes")]));
    change(&mut world, internal(1, 443, &[(PINNED, "10.225.0.77"), (SUBNET, "apps")]));
    let world = settled(world);
    assert_eq!(parts(&world), ["1-apps 10.225.0.77", "1-apps-TCP-443 -> 1-apps"]);
}

/// A frontend is named after the subnet that the annotation says.
#[test]
fn a_subnet_that_is_now_said_by_name_keeps_the_address_on_a_frontend_of_the_new_name() {
    let mut world = settled(world(vec![internal(1, 80, &[(PINNED, ADDRESS)])]));
    assert_eq!(parts(&world), ["1 10.224.9.9", "1-TCP-80 -> 1"]);
    change(&mut world, pinned(1, 443, "nodes"));
    let world = settled(world);
    assert_eq!(parts(&world), ["1-nodes 10.224.9.9", "1-nodes-TCP-443 -> 1-nodes"]);
}

#[test]
fn a_frontend_that_others_stand_on_keeps_its_name() {
    let services =
        vec![internal(1, 80, &[(PINNED, ADDRESS)]), internal(2, 81, &[(PINNED, ADDRESS)])];
    let mut world = settled(world(services));
    change(&mut world, pinned(1, 443, "nodes"));
    let mut world = settled(world);
    assert_eq!(parts(&world), ["1 10.224.9.9", "1-nodes-TCP-443 -> 1", "2-TCP-81 -> 1"]);
    change(&mut world, pinned(1, 8443, "apps"));
    assert_eq!(report(&world, 1).state, State::RefusedServing);
    let world = settled(world);
    assert_eq!(parts(&world), ["1 10.224.9.9", "1-nodes-TCP-443 -> 1", "2-TCP-81 -> 1"]);
}

/// It no longer insists on the address, and its frontend has another name from now on.
#[test]
fn a_service_that_drops_an_address_which_others_share_gets_another_one() {
    let shared = |n, port| internal(n, port, &[(PINNED, ADDRESS)]);
    let before = settled(world(vec![shared(1, 80), shared(2, 81)]));
    assert_eq!(parts(&before), ["1 10.224.9.9", "1-TCP-80 -> 1", "2-TCP-81 -> 1"]);
    let mut world = before.clone();
    change(&mut world, internal(1, 80, &[(SUBNET, "nodes")]));
    let world = settled(world);
    let led = ["1-nodes-TCP-80 -> 1-nodes", "2-TCP-81 -> 1"];
    assert_eq!(parts(&world)[2..], led);
    assert_eq!(parts(&world)[0], "1 10.224.9.9", "the other one stays");
    // Under its old name it keeps it.
    let mut world = before;
    change(&mut world, internal(1, 80, &[]));
    assert_eq!(parts(&settled(world)), ["1 10.224.9.9", "1-TCP-80 -> 1", "2-TCP-81 -> 1"]);
}

/// As another controller may have written them.
#[test]
fn addresses_of_a_status_keep_the_order_that_is_found() {
    let more = ("azure-additional-public-ips", "20.1.2.3,20.1.2.4");
    let mut world = settled(world(vec![internal(1, 80, &[(PINNED, ADDRESS), more])]));
    let service = world.kubernetes.services.values_mut().next().expect("one");
    assert_eq!(service.ingress.len(), 3);
    Arc::make_mut(service).ingress.reverse();
    let (plan, _) = crate::plan(&world, &policy());
    assert!(plan.is_empty(), "{plan:#?}");
}

/// A frontend that is named after a released Service is held by the Services whose rules lead to
/// it.
#[test]
fn a_frontend_that_was_handed_on_goes_on_account_of_those_who_stand_on_it() {
    let shared = |n, port| internal(n, port, &[(PINNED, ADDRESS)]);
    let mut world = settled(world(vec![shared(1, 80), shared(2, 81)]));
    change(&mut world, Service { wish: Wish::Nothing, ..shared(1, 80) });
    let mut world = settled(world);
    assert_eq!(parts(&world), ["1 10.224.9.9", "2-TCP-81 -> 1"]);
    let other = internal(1, 80, &[(PINNED, "10.224.9.10")]);
    change(&mut world, Service { finalizers: Vec::new(), ..other });
    change(&mut world, internal(2, 81, &[(PINNED, "10.224.9.11")]));
    let (plan, _) = planned(&world);
    let id = &balancer(&world).id;
    let goes = plan.changes.iter().find(|change| change.target == *id);
    assert_eq!(goes.map(|change| &change.causes), Some(&BTreeSet::from([uid(2)])));
}

/// The frontend of a Service's only family has the name that IPv4's has where it has both.
#[test]
fn an_internal_service_of_ipv6_keeps_its_address_when_it_gets_ipv4_and_when_it_loses_it() {
    let ranges = ("azure-allowed-ip-ranges", "10.0.0.0/8,2001:db8::/32");
    let six = |families: &[Family]| {
        let families = families.to_vec();
        Service { families, ..internal(1, 80, &[ranges]) }
    };
    let mut world = world(vec![six(&[Family::V6])]);
    for node in world.kubernetes.nodes.values_mut() {
        Arc::make_mut(node).addresses.push("fd00::4".parse().expect("an address"));
    }
    let all = world.azure.subnets.values_mut().filter_map(Fact::known_mut).flatten();
    // Addresses that only Azure knows are of no range of their own.
    all.for_each(|s| Arc::make_mut(s).prefixes.push("::/0".parse().expect("a range")));
    let mut world = settled(world);
    let alone = ["1 ::1:1", "1-TCP-80 -> 1"];
    assert_eq!(parts(&world), alone);
    for (families, expected) in [
        (
            &[Family::V6, Family::V4][..],
            &["1 0.1.0.2", "1-IPv6 ::1:1", "1-TCP-80 -> 1", "1-TCP-80-IPv6 -> 1-IPv6"][..],
        ),
        (&[Family::V6], &alone),
    ] {
        change(&mut world, six(families));
        for step in forecast(&world, &policy()).steps {
            if let Action::Put { after: Resource::SecurityGroup(group), .. } = step.change.action {
                let mut open = group.rules.iter().flat_map(|rule| &rule.destinations);
                assert!(open.any(|to| **to == *"::1:1"), "it stays open: {group:#?}");
            }
        }
        world = settled(world);
        assert_eq!(parts(&world), expected);
        for rule in &balancer(&world).rules {
            let six = families.len() == 1 || rule.name.ends_with("-IPv6");
            let pool = rule.pool.as_ref().map(ResourceId::name);
            assert_eq!(pool.is_some_and(|name| name.ends_with("-IPv6")), six, "{rule:#?}");
        }
    }
}
