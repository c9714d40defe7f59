//! One namespace's EndpointSlices against another's Services and Pods.

use super::stage::{Stage, gated, ip, labels_of, node_ip, pod, pod_ip, service, uid};
use model::kubernetes::{Others, Service, Target, Wish};
use model::plan::Change;
use model::report::{Severity, State};
use model::{NodeName, ServiceName};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Service number `n` of another namespace.
fn stranger(n: u8) -> Service {
    let name = ServiceName::new("evil", format!("web-{n}"));
    Service { name, selector: labels_of(&[("app", "evil")]), ..service(n) }
}

/// A slice of the other namespace that Service `owner` there owns.
fn strange_slice(stage: &mut Stage, name: &str, owner: u8, endpoints: &[(u8, u8)]) {
    stage.slice(name, owner, endpoints);
    stage.edit_slice(name, |slice| slice.name.namespace = "evil".into());
}

fn rules(stage: &mut Stage, n: u8) -> Vec<(&'static str, String, Severity)> {
    let (_, report) = stage.plan();
    let found = report.services[&uid(n)].findings.iter();
    found.map(|f| (f.rule, f.value.to_string(), f.severity)).collect()
}

/// Service 1 of `default` has Pod 10 on node 1, Service 2 of `evil` Pod 20 on node 2.
fn two_tenants() -> Stage {
    let mut stage = Stage::asked(1);
    stage.slice("web-a", 1, &[(10, 1)]);
    stage.put(stranger(2));
    strange_slice(&mut stage, "own", 2, &[(20, 2)]);
    stage.settle();
    assert_eq!(stage.table(), [AT_HOME, "10.224.0.2 10.244.0.20 00000002"]);
    stage.calls.clear();
    stage
}

const AT_HOME: &str = "10.224.0.1 10.244.0.10 00000001";

#[test]
fn a_slice_of_another_namespace_brings_a_service_nothing() {
    let mut stage = two_tenants();
    strange_slice(&mut stage, "by-uid", 1, &[(66, 2)]);
    stage.slice("by-label", 1, &[(67, 2)]);
    stage.edit_slice("by-label", |slice| {
        slice.name.namespace = "evil".into();
        slice.owner = None;
        slice.service = Some(ServiceName::new("default", "web-1"));
    });
    stage.settle();
    assert_eq!(stage.calls, Vec::<String>::new());
}

#[test]
fn a_label_and_an_owner_name_one_service() {
    let mut stage = two_tenants();
    stage.put(service(3));
    // The label of one, the UID of the other: neither's.
    stage.slice("torn", 1, &[(30, 1)]);
    stage.edit_slice("torn", |s| s.service = Some(ServiceName::new("default", "web-3")));
    // Written by hand: a label alone.
    stage.slice("by-hand", 1, &[(31, 1)]);
    stage.edit_slice("by-hand", |slice| {
        slice.owner = None;
        slice.service = Some(ServiceName::new("default", "web-3"));
    });
    stage.settle();
    let table = stage.table();
    assert_eq!(table.iter().filter(|line| line.contains(".30 ")).count(), 0, "{table:?}");
    assert!(table.contains(&"10.224.0.1 10.244.0.31 00000003".to_owned()), "{table:?}");
    // Its owner hears of it, until it is put right.
    let torn = ("ServiceGatewayTornSlice", "torn".to_owned(), Severity::Note);
    assert_eq!((rules(&mut stage, 1), rules(&mut stage, 3)), (vec![torn], Vec::new()));
    stage.edit_slice("torn", |s| s.service = Some(ServiceName::new("default", "web-1")));
    stage.settle();
    assert_eq!(rules(&mut stage, 1), []);
    // The Service is made again under the same name: its slice follows.
    stage.world.kubernetes.services.remove(&uid(3));
    stage.put(Service { name: ServiceName::new("default", "web-3"), ..service(4) });
    stage.settle();
    assert!(stage.table().contains(&"10.224.0.1 10.244.0.31 00000004".to_owned()));
}

#[test]
fn a_ready_pod_on_a_node_that_is_not_there_is_named_until_it_is() {
    let mut stage = two_tenants();
    stage.slice("web-b", 1, &[(11, 7)]);
    stage.settle();
    assert_eq!(stage.calls, Vec::<String>::new());
    let lost = ("ServiceGatewayUnknownNode", "10.244.0.11".to_owned(), Severity::Note);
    assert_eq!(rules(&mut stage, 1), [lost]);
    stage.node(7, vec![node_ip(7)]);
    stage.settle();
    assert_eq!(rules(&mut stage, 1), []);
    assert!(stage.table().contains(&"10.224.0.7 10.244.0.11 00000001".to_owned()));
    // A Pod that is not ready is not named.
    stage.unready("web-b", 1, &[(11, 8)]);
    stage.settle();
    assert_eq!(rules(&mut stage, 1), []);
}

#[test]
fn who_has_an_address_keeps_it_and_its_node() {
    let mut stage = two_tenants();
    strange_slice(&mut stage, "taking", 2, &[(10, 2)]);
    stage.settle();
    assert_eq!(stage.calls, Vec::<String>::new());
    let taken = ("ServiceGatewayAddressTaken", "10.244.0.10".to_owned(), Severity::Note);
    assert_eq!(rules(&mut stage, 2), std::slice::from_ref(&taken));
    assert_eq!(rules(&mut stage, 1), []);
    let (_, report) = stage.plan();
    assert_eq!(report.services[&uid(2)].state, State::Programmed);
    // Its Pod is not ready for a while.
    stage.unready("web-a", 1, &[(10, 1)]);
    stage.settle();
    assert_eq!(stage.table(), ["10.224.0.2 10.244.0.20 00000002"]);
    assert_eq!(rules(&mut stage, 2), [taken]);
    stage.slice("web-a", 1, &[(10, 1)]);
    stage.settle();
    assert_eq!(stage.table()[0], AT_HOME);
    // Without a recorded holder, the one that the table lists it for counts.
    stage.world.holders.clear();
    stage.planner = crate::Planner::default();
    stage.calls.clear();
    stage.settle();
    assert_eq!(stage.calls, Vec::<String>::new());
}

/// While its Pod is not ready the table does not list the address, and its holder is not the
/// Service with the lowest UID.
#[test]
fn a_contested_address_stays_as_it_is_until_it_is_recorded_who_has_it() {
    let mut stage = two_tenants();
    stage.put(stranger(0));
    strange_slice(&mut stage, "own-0", 0, &[(21, 2)]);
    stage.settle();
    assert!(stage.table().contains(&AT_HOME.to_owned()), "{:?}", stage.table());
    let held: BTreeMap<_, Arc<str>> = BTreeMap::from([(pod_ip(10), Arc::from("default"))]);
    strange_slice(&mut stage, "taking", 0, &[(10, 2)]);
    stage.unready("web-a", 1, &[(10, 1)]);
    let mut planner = crate::Planner::default();
    let (plan, report) = planner.plan(&stage.world, &stage.policy);
    assert_eq!((plan.changes, &report.holders), (Vec::new(), &held));
    // It is recorded: the same planner takes it out, and so does a new one.
    stage.world.holders = held.clone();
    let (plan, _) = planner.plan(&stage.world, &stage.policy);
    assert_eq!(plan.changes.len(), 1);
    stage.settle();
    assert!(!stage.table().iter().any(|row| row.contains(" 10.244.0.10 ")), "{:?}", stage.table());
    stage.planner = crate::Planner::default();
    let (plan, report) = stage.plan();
    assert_eq!((plan.changes, report.holders), (Vec::new(), held));
    // What is recorded is not read yet.
    stage.world.holders.clear();
    let (plan, _) = crate::Planner::default().plan(&stage.world, &stage.policy);
    assert_eq!(plan.changes, Vec::new());
}

/// The ledger cannot be read, so the next holder, one of two other namespaces, is not recorded.
#[test]
fn a_service_that_goes_waits_for_no_record_of_who_has_its_address_next() {
    let mut stage = two_tenants();
    stage.put(Service { name: ServiceName::new("other", "web-3"), ..stranger(3) });
    stage.slice("own-3", 3, &[(30, 3), (10, 3)]);
    stage.edit_slice("own-3", |slice| slice.name.namespace = "other".into());
    strange_slice(&mut stage, "taking", 2, &[(10, 2)]);
    stage.settle();
    let theirs = ["10.224.0.2 10.244.0.20 00000002", "10.224.0.3 10.244.0.30 00000003"];
    assert_eq!(stage.table(), [&[AT_HOME][..], &theirs].concat());
    stage.edit(1, |service| service.wish = Wish::Nothing);
    let mut planner = crate::Planner::default();
    for _ in 0..2 {
        stage.world.holders.clear();
        let (plan, _) = planner.plan(&stage.world, &stage.policy);
        let changes = plan.changes.iter().map(|change| Change::clone(change));
        let ready: Vec<Change> = changes.filter(|change| change.waits.is_empty()).collect();
        ready.into_iter().for_each(|change| stage.apply(change));
        assert_eq!(stage.table(), theirs, "no other Service gets it");
    }
}

#[test]
fn an_address_that_its_holder_lists_no_longer_is_free() {
    let mut stage = two_tenants();
    strange_slice(&mut stage, "next", 2, &[(10, 2)]);
    stage.settle();
    stage.slice("web-a", 1, &[(11, 1)]);
    stage.settle();
    let wanted = [
        "10.224.0.1 10.244.0.11 00000001",
        "10.224.0.2 10.244.0.10 00000002",
        "10.224.0.2 10.244.0.20 00000002",
    ];
    assert_eq!(stage.table(), wanted);
    assert_eq!(rules(&mut stage, 2), []);
}

#[test]
fn an_address_of_another_namespaces_pod_is_refused() {
    let mut stage = two_tenants();
    strange_slice(&mut stage, "foreign", 2, &[(66, 2), (67, 2)]);
    let name = ServiceName::new("evil", "foreign");
    let slice = stage.world.kubernetes.slices.get_mut(&name).expect("it was put there");
    Arc::make_mut(slice).endpoints.iter_mut().for_each(|e| e.target = Target::Foreign);
    stage.settle();
    assert_eq!(stage.calls, Vec::<String>::new());
    let value = "10.244.0.66 and 1 more".to_owned();
    assert_eq!(rules(&mut stage, 2), [("ServiceGatewayForeignPod", value, Severity::Note)]);
}

#[test]
fn an_endpoint_without_a_node_is_told() {
    let mut stage = two_tenants();
    stage.slice("by-hand", 1, &[(66, 2), (67, 2)]);
    let name = ServiceName::new("default", "by-hand");
    let slice = stage.world.kubernetes.slices.get_mut(&name).expect("it was put there");
    Arc::make_mut(slice).endpoints[0].node = None;
    stage.settle();
    assert!(stage.table().contains(&"10.224.0.2 10.244.0.67 00000001".to_owned()));
    assert!(!stage.table().iter().any(|row| row.contains("10.244.0.66")), "{:?}", stage.table());
    let value = "10.244.0.66".to_owned();
    assert_eq!(rules(&mut stage, 1), [("ServiceGatewayNoNode", value, Severity::Note)]);
    stage.slice("by-hand", 1, &[(66, 2), (67, 2)]);
    stage.settle();
    assert_eq!(rules(&mut stage, 1), []);
}

#[test]
fn addresses_that_no_pod_has_are_refused() {
    let mut stage = two_tenants();
    let all = [
        "0.0.0.0",
        "127.0.0.1",
        "168.63.129.16",
        "169.254.169.254",
        "224.0.0.1",
        "255.255.255.255",
        "::1",
        "::ffff:127.0.0.1",
        "fe80::1",
        "ff02::1",
    ];
    for (n, text) in all.into_iter().enumerate() {
        stage.node(2, vec![node_ip(2), ip("fd00::2")]);
        strange_slice(&mut stage, "odd", 2, &[(66, 2)]);
        let name = ServiceName::new("evil", "odd");
        let slice = stage.world.kubernetes.slices.get_mut(&name).expect("it was put there");
        Arc::make_mut(slice).endpoints[0].address = ip(text);
        stage.settle();
        assert_eq!(stage.calls, Vec::<String>::new(), "{n}: {text}");
        let found = rules(&mut stage, 2);
        assert_eq!(found.len(), 1, "{text}");
        assert_eq!((found[0].0, found[0].2), ("ServiceGatewayInvalidAddress", Severity::Note));
    }
}

/// Pods in the node's network have its address, in whatever namespace they are.
#[test]
fn a_nodes_address_is_shared_and_stays_at_the_node() {
    let mut stage = two_tenants();
    for (name, owner, node) in [("web-h", 1, 1), ("evil-h", 2, 3)] {
        stage.slice(name, owner, &[(66, node)]);
        stage.edit_slice(name, |slice| {
            slice.endpoints[0].address = node_ip(1);
            if owner == 2 {
                slice.name.namespace = "evil".into();
            }
        });
        stage.settle();
    }
    let table = stage.table();
    assert!(table.contains(&"10.224.0.1 10.224.0.1 00000001".to_owned()), "{table:?}");
    assert_eq!(rules(&mut stage, 1), []);
    stage.slice("right", 2, &[(66, 1)]);
    stage.edit_slice("right", |slice| {
        slice.endpoints[0].address = node_ip(1);
        slice.name.namespace = "evil".into();
    });
    stage.settle();
    let table = stage.table();
    assert!(table.contains(&"10.224.0.1 10.224.0.1 00000001,00000002".to_owned()), "{table:?}");
}

/// Who listed an address before the Pod had it does not get it: the Pod is watched.
#[test]
fn a_pod_that_waits_for_our_gate_gets_its_own_address() {
    let mut stage = two_tenants();
    strange_slice(&mut stage, "ahead", 2, &[(12, 2)]);
    stage.settle();
    assert_eq!(stage.table()[1], "10.224.0.2 10.244.0.12 00000002");
    stage.put_gated(gated(12, &[("app", "web")]));
    stage.unready("web-b", 1, &[(12, 3)]);
    stage.settle();
    assert_eq!(stage.table()[2], "10.224.0.3 10.244.0.12 00000001");
    assert_eq!(rules(&mut stage, 2)[0].0, "ServiceGatewayAddressTaken");
    // A Pod that has another address vouches for nothing.
    stage.edit_gated(&ServiceName::new("default", "pod-12"), |p| p.addresses = vec![pod_ip(13)]);
    stage.settle();
    let table = stage.table();
    assert!(table.iter().all(|line| !line.contains(".12 00000001")), "{table:?}");
    stage.edit_gated(&ServiceName::new("default", "pod-12"), |p| p.others = Others::Over);
    stage.settle();
}

#[test]
fn the_address_of_an_egress_pod_stays_where_the_pod_is() {
    let mut stage = two_tenants();
    stage.put_pod(pod(40, "team-a", 1));
    stage.settle();
    let home = "10.224.0.1 10.244.0.40 team-a".to_owned();
    assert!(stage.table().contains(&home), "{:?}", stage.table());
    strange_slice(&mut stage, "taking", 2, &[(40, 2)]);
    stage.settle();
    assert!(stage.table().contains(&home), "{:?}", stage.table());
    assert_eq!(rules(&mut stage, 2)[0].0, "ServiceGatewayAddressTaken");
    // In the Pod's own namespace both lead to it.
    stage.slice("web-b", 1, &[(40, 1)]);
    stage.settle();
    let both = "10.224.0.1 10.244.0.40 00000001,team-a".to_owned();
    assert!(stage.table().contains(&both), "{:?}", stage.table());
}

#[test]
fn an_endpoint_without_a_known_node_holds_nothing() {
    let mut stage = two_tenants();
    stage.slice("lost", 1, &[(50, 1)]);
    stage.edit_slice("lost", |s| s.endpoints[0].node = Some(NodeName::new("gone")));
    strange_slice(&mut stage, "next", 2, &[(50, 2)]);
    stage.settle();
    assert!(stage.table().contains(&"10.224.0.2 10.244.0.50 00000002".to_owned()));
}
