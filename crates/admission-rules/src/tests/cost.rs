//! What an evaluation costs grows no faster than what is evaluated.

use super::*;
use crate::container::COMPARED;
use model::kubernetes::ServicePort;
use model::policy::PoolKind;
use std::cell::Cell;

thread_local! {
    static CALLS: Cell<u64> = const { Cell::new(0) };
}

/// Counts a call of a function of the language.
pub(super) fn spent<T>(value: T) -> T {
    CALLS.set(CALLS.get() + 1);
    value
}

/// Calls until a Service has been judged.
fn calls(service: &Service, policy: &Policy) -> u64 {
    CALLS.set(0);
    broken(service, policy, Action::Deny);
    CALLS.get()
}

/// A Service whose ports have the probe ports of the next ones, by name.
fn probed(count: u16) -> Service {
    probed_by(count, |n| format!("P{}", n % count + 1))
}

/// A Service whose ports have probe ports by these names.
fn probed_by(count: u16, name: impl Fn(u16) -> String) -> Service {
    let keys: Vec<String> = (1..=count).map(|n| format!("port_{n}_health-probe_port")).collect();
    let names: Vec<String> = (1..=count).map(name).collect();
    let pairs: Vec<(&str, &str)> =
        keys.iter().zip(&names).map(|(key, name)| (key.as_str(), name.as_str())).collect();
    Service { ports: targeted(count, |n| n).ports, ..service(&pairs) }
}

/// A Service whose ports lead to these.
fn targeted(count: u16, target: impl Fn(u16) -> u16) -> Service {
    let ports = (1..=count).map(|n| {
        let target_port = TargetPort::Number(target(n));
        ServicePort { target_port, ..fixture::port(&format!("p{n}"), n, 30_000 + n) }
    });
    Service { ports: ports.collect(), ..service(&[]) }
}

/// A Service whose Private Link Service has addresses.
fn linked(addresses: &[String]) -> Service {
    service(&[
        INTERNAL,
        ("azure-pls-create", "true"),
        ("azure-pls-ip-configuration-ip-address-count", "8"),
        ("azure-pls-ip-configuration-ip-address", &addresses.join(" ")),
    ])
}

fn distinct(count: usize) -> Vec<String> {
    (0..count).map(|n| format!("10.0.{}.{}", n / 250, n % 250 + 1)).collect()
}

fn with_links() -> Policy {
    Policy { pools: PoolKind::NodeNic, ..policy() }
}

#[test]
fn twice_as_much_costs_no_more_than_twice() {
    // None of their probes can be made, so each is looked at.
    let high = |count| {
        let ha = ("azure-load-balancer-enable-high-availability-ports", "true");
        let mut web = probed_by(count, |_| "none".to_owned());
        let more = service(&[INTERNAL, ha]).annotations;
        let more = more.iter().map(|(key, value)| (Arc::clone(key), Arc::clone(value)));
        Arc::make_mut(&mut web.annotations).extend(more);
        web
    };
    let costs = [
        ("probes", [20, 40].map(|n| calls(&probed(n), &policy()))),
        ("probes of HA ports", [20, 40].map(|n| calls(&high(n), &policy()))),
        ("targets", [20, 40].map(|n| calls(&targeted(n, |n| n), &containers()))),
        ("links", [20, 40].map(|n| calls(&linked(&distinct(n)), &with_links()))),
    ];
    for (what, [one, two]) in costs {
        assert!(one > 0 && two <= 2 * one, "{what}: {one}, then {two}");
    }
}

#[test]
fn names_of_ports_and_addresses_are_judged() {
    let denied = |service: &Service, policy: &Policy| broken(service, policy, Action::Deny);
    assert!(denied(&probed(40), &policy()).is_empty());
    let mut unnamed = probed(40);
    unnamed.ports[7].node_port = None;
    assert_eq!(denied(&unnamed, &policy()), ["InvalidProbePort"], "it is no probe port");
    assert!(denied(&linked(&distinct(8)), &with_links()).is_empty());
    let twice = [distinct(4), distinct(1)].concat();
    assert_eq!(denied(&linked(&twice), &with_links()), ["InvalidPrivateLinkAddress"]);
    let many = denied(&linked(&[distinct(9), distinct(1)].concat()), &with_links());
    assert_eq!(many, ["InvalidPrivateLinkCount"]);
}

#[test]
fn target_ports_are_compared_as_far_as_the_server_goes() {
    let denied = |service: &Service| broken(service, &containers(), Action::Deny);
    let most = u16::try_from(COMPARED).expect("a port");
    let same = |n: u16| if n == 1 { 2 } else { n };
    assert!(denied(&targeted(most, |n| n)).is_empty());
    assert_eq!(denied(&targeted(most, same)), ["UnsupportedBackendPortCollision"]);
    assert!(denied(&targeted(most + 1, same)).is_empty(), "reading refuses it");
    assert!(container::read(&targeted(most + 1, same), &containers()).intent.is_none());
    let mut both = targeted(2, |_| 80);
    both.ports[1].protocol = Protocol::Udp;
    assert!(denied(&both).is_empty(), "TCP and UDP are apart");
    both.ports[0].target_port = TargetPort::Name("http".into());
    both.ports[1].target_port = TargetPort::Name("http".into());
    assert!(denied(&both).is_empty(), "Pods know the number");
}
