//! Services whose owners confirm interruptions before they happen.

use super::{
    balancer, carry_out, change, on, placed, policy, service, settle, two, uid, with_subnet, world,
};
use crate::ask::annotation::{CONFIRM, CONFIRMED, PREFIX};
use crate::ask::hold::to_confirm;
use model::azure::FrontendAddress;
use model::kubernetes::{SERVICE_FINALIZER, Service, ServicePort, Wish};
use model::policy::Layout;
use model::report::{Severity, State};
use model::{Policy, World};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

const INTERNAL: &str = "azure-load-balancer-internal";
const PINNED: &str = "azure-load-balancer-ipv4";
const ON: &str = "azure-load-balancer-configurations";

/// A Service that stands on ports and has these annotations, beside that it asks first.
fn asking(n: u8, ports: &[u16], annotations: &[(&str, &str)]) -> Service {
    let whole = |key: &str| match key {
        CONFIRM | CONFIRMED => key.to_owned(),
        _ => format!("{PREFIX}{key}"),
    };
    let asks = [(CONFIRM, "True")];
    let all = asks.iter().chain(annotations).map(|(k, v)| (Arc::from(whole(k)), Arc::from(*v)));
    let base = service(n);
    let numbered = |port: &u16| ServicePort {
        name: port.to_string().into(),
        port: *port,
        node_port: Some(30_000 + *port),
        ..base.ports[0].clone()
    };
    Service {
        annotations: Arc::new(all.collect()),
        finalizers: vec![SERVICE_FINALIZER.into()],
        ports: ports.iter().map(numbered).collect(),
        ..base
    }
}

/// What a Service has: load balancer, ports and private addresses.
fn has(world: &World, n: u8) -> Vec<(String, Vec<u16>, Vec<IpAddr>)> {
    let base = uid(n).base_name();
    let all = world.azure.balancers.known().expect("read").values();
    let of_it = |name: &str| name.starts_with(&base);
    all.map(|balancer| {
        let mut rules: Vec<u16> = balancer
            .rules
            .iter()
            .filter(|rule| of_it(&rule.name))
            .map(|rule| rule.frontend_port)
            .collect();
        rules.sort_unstable();
        let own = balancer.frontends.iter().filter(|frontend| of_it(&frontend.name));
        let addresses = own.filter_map(|frontend| match &frontend.address {
            FrontendAddress::Private { address, .. } => *address,
            _ => None,
        });
        (balancer.id.name().to_owned(), rules, addresses.collect())
    })
    .filter(|(_, rules, _)| !rules.is_empty())
    .collect()
}

/// Nothing is written, and the Service waits for its owner: what the finding says.
#[track_caller]
fn held(world: &World, policy: &Policy, n: u8) -> (String, String) {
    let (plan, report) = crate::plan(world, policy);
    assert_eq!(plan.changes, []);
    let service = &report.services[&uid(n)];
    assert_eq!(service.state, State::Held, "{service:#?}");
    let [finding] = &service.findings[..] else { panic!("{service:#?}") };
    assert_eq!((finding.rule, &*finding.key), ("ConfirmationDue", CONFIRM));
    let text = finding.text();
    assert_eq!(to_confirm(&text), Some(&*finding.value), "{text}");
    (finding.value.to_string(), text)
}

#[test]
fn a_port_that_goes_waits_and_one_that_comes_does_not() {
    let (policy, mut world) = placed(Layout::Single, vec![asking(1, &[80, 443], &[]), service(2)]);
    let before = has(&world, 1);
    change(&mut world, asking(1, &[80], &[]));
    let (names, text) = held(&world, &policy, 1);
    assert_eq!(names, "TCP/443");
    assert_eq!(
        text,
        "what is planned would interrupt the Service (port TCP/443 → none); it keeps what it has \
         until ballast.dev/confirmed lists \"TCP/443\""
    );
    // Nothing of it is written, and those beside it go on.
    let mut beside = service(2);
    beside.ports[0].port = 8443;
    change(&mut world, beside);
    settle(&mut world, &policy);
    assert_eq!(has(&world, 1), before);
    assert_eq!(has(&world, 2)[0].1, [8443]);
    // What comes is not held up by itself.
    change(&mut world, asking(1, &[80, 443, 8080], &[]));
    settle(&mut world, &policy);
    assert_eq!(has(&world, 1)[0].1, [80, 443, 8080]);
    // Another port is not the one that was confirmed.
    change(&mut world, asking(1, &[80, 443], &[(CONFIRMED, "TCP/443")]));
    assert_eq!(held(&world, &policy, 1).0, "TCP/8080");
    change(&mut world, asking(1, &[80], &[(CONFIRMED, "TCP/443")]));
    assert_eq!(held(&world, &policy, 1).0, "TCP/8080");
    change(&mut world, asking(1, &[80], &[(CONFIRMED, "tcp/443 ,TCP/8080")]));
    settle(&mut world, &policy);
    assert_eq!(has(&world, 1)[0].1, [80]);
}

#[test]
fn without_the_annotation_nothing_waits() {
    let policy = policy(Layout::Single);
    for (key, value) in [(CONFIRM, "false"), (CONFIRMED, "TCP/443")] {
        let mut world = world(vec![service(1)]);
        let other = |ports: &[u16]| {
            let annotations = BTreeMap::from([(Arc::from(key), Arc::from(value))]);
            Service { annotations: Arc::new(annotations), ..asking(1, ports, &[]) }
        };
        change(&mut world, other(&[80, 443]));
        settle(&mut world, &policy);
        change(&mut world, other(&[443]));
        settle(&mut world, &policy);
        assert_eq!(has(&world, 1)[0].1, [443]);
    }
}

#[test]
fn an_address_that_changes_waits() {
    let policy = policy(Layout::Single);
    let inside = |address, confirmed| {
        let all = [(INTERNAL, "true"), (PINNED, address), (CONFIRMED, confirmed)];
        asking(1, &[80], &all)
    };
    let mut world = with_subnet(vec![inside("10.0.200.9", "")]);
    settle(&mut world, &policy);
    let before = has(&world, 1);
    change(&mut world, inside("10.0.200.10", ""));
    let (names, text) = held(&world, &policy, 1);
    assert_eq!(names, "10.0.200.9");
    assert!(text.contains("(address 10.0.200.9 → 10.0.200.10);"), "{text}");
    assert_eq!(has(&world, 1), before);
    change(&mut world, inside("10.0.200.10", "10.0.200.9"));
    settle(&mut world, &policy);
    assert_eq!(has(&world, 1)[0].2, ["10.0.200.10".parse::<IpAddr>().expect("one")]);
    // The next one is another change.
    change(&mut world, inside("10.0.200.11", "10.0.200.9"));
    assert_eq!(held(&world, &policy, 1).0, "10.0.200.10");
    // An address that need not be that one any more stays.
    change(&mut world, asking(1, &[80], &[(INTERNAL, "true")]));
    settle(&mut world, &policy);
    assert_eq!(has(&world, 1)[0].2, ["10.0.200.10".parse::<IpAddr>().expect("one")]);
}

#[test]
fn from_outside_to_inside_both_address_and_load_balancer_go() {
    let policy = policy(Layout::Single);
    let mut world = with_subnet(vec![asking(1, &[80], &[])]);
    settle(&mut world, &policy);
    change(&mut world, asking(1, &[80], &[(INTERNAL, "true")]));
    let (names, text) = held(&world, &policy, 1);
    assert_eq!(names, "20.0.0.1, kubernetes");
    let lost = "(address 20.0.0.1 → a new one, load balancer kubernetes → kubernetes-internal);";
    assert!(text.contains(lost), "{text}");
    // Half of it is not enough.
    change(&mut world, asking(1, &[80], &[(INTERNAL, "true"), (CONFIRMED, "20.0.0.1")]));
    assert_eq!(held(&world, &policy, 1).0, "kubernetes");
}

/// The confirmation of the whole covers each step, whatever has gone already.
#[test]
fn a_confirmed_move_goes_on_to_its_end() {
    let policy = policy(Layout::Several(two()));
    let confirmed = (CONFIRMED, "KUBERNETES");
    let mut world = world(vec![
        asking(1, &[80], &[(ON, "kubernetes")]),
        service(2),
        asking(3, &[8080], &[(ON, "lb2")]),
    ]);
    settle(&mut world, &policy);
    assert_eq!(has(&world, 1)[0].0, "kubernetes");
    change(&mut world, asking(1, &[80], &[(ON, "lb2")]));
    let (names, text) = held(&world, &policy, 1);
    assert_eq!(names, "kubernetes");
    assert!(text.contains("(load balancer kubernetes → lb2);"), "{text}");
    change(&mut world, asking(1, &[80], &[(ON, "lb2"), confirmed]));
    let mut steps = 0;
    loop {
        let (plan, report) = crate::plan(&world, &policy);
        let service = &report.services[&uid(1)];
        assert!(service.findings.iter().all(|f| f.severity == Severity::Note), "{service:#?}");
        let now: Vec<_> = plan.changes.iter().filter(|change| change.waits.is_empty()).collect();
        let Some(first) = now.first() else { break };
        carry_out(&mut world, first);
        steps += 1;
    }
    assert!(steps > 1, "{steps} steps");
    assert_eq!(has(&world, 1)[0].0, "lb2");
    // Back again is another change.
    change(&mut world, asking(1, &[80], &[(ON, "kubernetes"), confirmed]));
    assert_eq!(held(&world, &policy, 1).0, "lb2");
}

/// Not the Service but the cloud config changes.
#[test]
fn a_load_balancer_that_the_cloud_config_gives_waits() {
    let mut world = world(vec![asking(1, &[80], &[])]);
    settle(&mut world, &policy(Layout::Single));
    let sets = policy(Layout::PerNodeSet { without_own: Vec::new() });
    let named = Policy { cluster: "another".into(), ..sets };
    let (_, report) = crate::plan(&world, &named);
    let service = &report.services[&uid(1)];
    let value = service.findings.first().map(|finding| finding.value.to_string());
    assert_eq!(value.as_deref(), Some("20.0.0.1, kubernetes"), "{service:#?}");
    assert_eq!(service.state, State::Held);
}

/// A Service that is held back gives others nothing, and takes nothing from them.
#[test]
fn what_waits_blocks_no_other_service() {
    let policy = policy(Layout::Single);
    let inside = |n, address| asking(n, &[80], &[(INTERNAL, "true"), (PINNED, address)]);
    let mut world = with_subnet(vec![inside(1, "10.0.200.9")]);
    settle(&mut world, &policy);
    // It would share the port of an address with the new one.
    change(&mut world, inside(1, "10.0.200.10"));
    change(&mut world, inside(2, "10.0.200.10"));
    settle(&mut world, &policy);
    assert_eq!(has(&world, 2).len(), 1, "{:#?}", crate::plan(&world, &policy).1.services);
    assert_eq!(has(&world, 1)[0].2, ["10.0.200.9".parse::<IpAddr>().expect("one")]);
}

#[test]
fn a_deletion_and_another_type_do_not_wait() {
    let (policy, mut world) = placed(Layout::Single, vec![asking(1, &[80], &[])]);
    change(&mut world, Service { wish: Wish::Nothing, ..asking(1, &[80], &[]) });
    settle(&mut world, &policy);
    assert_eq!(on(&world, "kubernetes"), [0_u8; 0]);
    assert!(balancer(&world, "kubernetes").is_none());
}

/// What is confirmed in advance would go unasked one day.
#[test]
fn what_is_confirmed_and_stays_is_noted() {
    let policy = policy(Layout::Single);
    let confirmed = (CONFIRMED, "TCP/443, 20.0.0.1, TCP/9999");
    let mut world = world(vec![asking(1, &[80, 443], &[confirmed])]);
    settle(&mut world, &policy);
    let (_, report) = crate::plan(&world, &policy);
    let service = &report.services[&uid(1)];
    assert_ne!(service.state, State::Held);
    let [finding] = &service.findings[..] else { panic!("{service:#?}") };
    assert_eq!((finding.rule, &*finding.value), ("ConfirmationLeft", "20.0.0.1, TCP/443"));
}

/// Each would give up its port for one that all of them want. One gets it and waits for its owner,
/// so that the next one gets it: with as many drafts as Services one owner would hold up all.
#[test]
fn who_wait_for_their_owners_cost_no_draft_each() {
    const ALL: u8 = 40;
    let policy = policy(Layout::Single);
    let inside =
        |n: u8, port: u16| asking(n, &[port], &[(INTERNAL, "true"), (PINNED, "10.0.200.9")]);
    let own = |n: u8| 1_000 + u16::from(n);
    let mut world = with_subnet((1..=ALL).map(|n| inside(n, own(n))).collect());
    settle(&mut world, &policy);
    (1..=ALL).for_each(|n| change(&mut world, inside(n, 80)));
    let (plan, report) = crate::plan(&world, &policy);
    assert_eq!(plan.changes, []);
    let found = |rule: &str| {
        let all = report.services.values().flat_map(|service| &service.findings);
        all.filter(|finding| finding.rule == rule).count()
    };
    let (held, taken) = (found("ConfirmationDue"), found("PortTaken"));
    assert_eq!(held + taken, usize::from(ALL), "{report:#?}");
    assert!((1..=8).contains(&held), "{held}");
}
