//! What reads are made, and what is found.

use super::*;
use arm::probe_status::Point;
use fixture::policy;
use model::ServiceName;
use model::report::{ServiceReport, State};
use model::world::Fact;
use observe::Interner;
use serde_json::{Value, json};

const MINUTE_MS: u64 = 60_000;
/// 2026-01-01T00:10:00Z.
const NOW_MS: u64 = 1_767_226_200_000;

fn id(name: &str) -> ResourceId {
    let group = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network";
    ResourceId::new(format!("{group}/loadBalancers/{name}"))
}

/// Two Standard load balancers and one Basic, and three nodes.
fn world() -> World {
    let (mut world, policy) = (World::default(), policy());
    world.azure.balancers = Fact::Known(BTreeMap::new());
    for (name, sku) in [("kubernetes", "Standard"), ("b", "Standard"), ("old", "Basic")] {
        let body = json!({"id": id(name).as_str(), "name": name, "location": "eastus",
            "sku": {"name": sku}, "properties": {"provisioningState": "Succeeded"}});
        let applied = observe::azure::apply_resource(&mut world.azure, &policy, &id(name), &body);
        applied.expect("a load balancer");
    }
    for number in 0..3 {
        let node = json!({"metadata": {"name": format!("n{number}")}, "status": {"addresses": [
            {"type": "InternalIP", "address": format!("10.0.0.{number}")},
            {"type": "InternalIP", "address": format!("fd00::{number}")}]}});
        let node =
            observe::kubernetes::node_from_value(&node, &policy.group, &mut Interner::default());
        let node = node.expect("a Node");
        world.kubernetes.nodes.insert(node.name.clone(), Arc::new(node));
    }
    world
}

fn add(world: &mut World, report: &mut Report, name: &str, at: (&str, &[&str]), ports: Value) {
    let (balancer, addresses) = at;
    let object = json!({"metadata": {"name": name, "namespace": "d", "uid": name},
        "spec": {"type": "LoadBalancer", "ports": ports}});
    let service = observe::kubernetes::service_from_value(
        &object,
        &BTreeSet::new(),
        &mut Interner::default(),
    );
    world.kubernetes.services.insert(ServiceUid::new(name), Arc::new(service.expect("one")));
    let own = ServiceReport {
        name: ServiceName::new("d", name),
        balancer: Some(Arc::from(balancer)),
        addresses: addresses.iter().map(|address| Arc::from(*address)).collect(),
        ..fixture::service_report(State::Programmed)
    };
    report.services.insert(ServiceUid::new(name), Arc::new(own));
}

/// A series whose last minute began at `last`, minutes after midnight.
fn series(at: (&str, u16), backend: &str, last: usize, states: &[ProbeState]) -> Series {
    let first = last + 1 - states.len();
    let points = states.iter().enumerate().map(|(after, state)| Point {
        time: format!("2026-01-01T00:{:02}:00Z", first + after),
        state: *state,
    });
    Series {
        frontend: at.0.parse().unwrap(),
        port: at.1,
        protocol: Some(Protocol::Tcp),
        backend: backend.parse().unwrap(),
        points: points.collect(),
    }
}

fn uid(name: &str) -> ServiceUid {
    ServiceUid::new(name)
}

use ProbeState::{Down, Partly, Up};

#[test]
fn reads_are_of_standard_load_balancers_and_of_addresses_that_services_have() {
    let (mut world, mut report) = (world(), Report::default());
    let port = json!([{"port": 80}]);
    add(&mut world, &mut report, "web", ("Kubernetes", &["20.0.0.1", "fd00::1"]), port.clone());
    add(&mut world, &mut report, "api", ("b", &["10.0.9.9"]), port.clone());
    add(&mut world, &mut report, "past", ("old", &["20.0.0.9"]), port.clone());
    add(&mut world, &mut report, "new", ("kubernetes", &[]), port);
    let frontends = |list: &[&str]| list.iter().map(|a| a.parse().unwrap()).collect();
    let want = [
        Read { balancer: id("b"), frontends: frontends(&["10.0.9.9"]) },
        Read { balancer: id("kubernetes"), frontends: frontends(&["20.0.0.1", "fd00::1"]) },
    ];
    assert_eq!(reads(&world, &report), want);
    assert_eq!(reads(&World::default(), &report), []);
}

#[test]
fn a_large_load_balancer_takes_several_reads() {
    let (mut world, mut report) = (world(), Report::default());
    for number in 0..45 {
        let (name, address) = (format!("s{number}"), format!("20.0.0.{number}"));
        let at: (&str, &[&str]) = ("kubernetes", &[&address]);
        add(&mut world, &mut report, &name, at, json!([{"port": 80}]));
    }
    let counts = |reads: &[Read]| reads.iter().map(|r| r.frontends.len()).collect::<Vec<_>>();
    assert_eq!(counts(&reads(&world, &report)), [20, 20, 5]);
    // 3 nodes and 300 ports are 900 series: two of these are a read.
    let many: Vec<Value> = (1..=300).map(|port| json!({"port": port, "name": "x"})).collect();
    let (mut world, mut report) = (self::world(), Report::default());
    for number in 0..3 {
        let (name, address) = (format!("s{number}"), format!("20.0.0.{number}"));
        add(&mut world, &mut report, &name, ("kubernetes", &[&address]), json!(many));
    }
    assert_eq!(counts(&reads(&world, &report)), [2, 1]);
}

#[test]
fn both_families_of_a_service_are_told_by_one_read() {
    let (mut world, mut report) = (world(), Report::default());
    for number in 0..30 {
        let (name, four) = (format!("s{number}"), format!("20.0.0.{number}"));
        let six = format!("fd00:9::{number:x}");
        let at: (&str, &[&str]) = ("kubernetes", &[&four, &six]);
        add(&mut world, &mut report, &name, at, json!([{"port": 80}]));
    }
    let all = reads(&world, &report);
    assert_eq!(all.iter().map(|read| read.frontends.len()).collect::<Vec<_>>(), [20, 20, 20]);
    let mut log = BackendLog::default();
    for now_ms in [NOW_MS, NOW_MS + MINUTE_MS] {
        for read in &all {
            let told = |address: &IpAddr| {
                let (backend, state) =
                    if address.is_ipv4() { ("10.0.0.0", Up) } else { ("fd00::0", Down) };
                series((&address.to_string(), 80), backend, 9, &[state, state])
            };
            let answer: Vec<Series> = read.frontends.iter().map(told).collect();
            assert_eq!(log.learn((&world, &report), read, &answer, now_ms), []);
        }
    }
    let found = log.of(&uid("s7"), NOW_MS + MINUTE_MS).unwrap();
    let states: Vec<(ProbeState, u64)> =
        found.all.iter().map(|b| (b.state, NOW_MS - b.since_ms)).collect();
    assert_eq!(states, [(Partly, 2 * MINUTE_MS)]);
    assert_eq!(log.changes(), 30, "the second round found nothing new");
}

#[test]
fn a_node_is_one_backend_whatever_its_addresses_and_ports() {
    let (mut world, mut report) = (world(), Report::default());
    let ports = json!([{"port": 80, "name": "a"}, {"port": 443, "name": "b"}]);
    add(&mut world, &mut report, "web", ("kubernetes", &["20.0.0.1", "fd00:9::1"]), ports);
    let read = reads(&world, &report).remove(0);
    let answer = [
        series(("20.0.0.1", 80), "10.0.0.0", 9, &[Up, Up, Up]),
        series(("fd00:9::1", 80), "fd00::0", 9, &[Up]),
        series(("20.0.0.1", 80), "10.0.0.1", 9, &[Up, Down, Down]),
        series(("20.0.0.1", 443), "10.0.0.1", 9, &[Up, Up, Down]),
        series(("20.0.0.1", 80), "10.0.0.2", 9, &[Up, Up]),
        series(("20.0.0.1", 443), "10.0.0.2", 9, &[Up, Down]),
        series(("20.0.0.1", 80), "10.0.0.77", 9, &[Down]),
        // It left the pool three minutes ago.
        series(("20.0.0.1", 80), "10.0.0.78", 6, &[Up]),
        // It has no value yet.
        series(("20.0.0.1", 80), "10.0.0.79", 9, &[]),
    ];
    let mut log = BackendLog::default();
    let turns = log.learn((&world, &report), &read, &answer, NOW_MS);
    assert_eq!(turns, [], "one backend takes connections");
    let found = log.of(&uid("web"), NOW_MS).unwrap();
    let lines: Vec<(String, ProbeState, u64)> =
        found.all.iter().map(|b| (b.name(), b.state, NOW_MS - b.since_ms)).collect();
    let want = [
        ("n0".to_owned(), Up, MINUTE_MS),
        ("n1".to_owned(), Down, MINUTE_MS),
        ("n2".to_owned(), Partly, MINUTE_MS),
        ("10.0.0.77".to_owned(), Down, MINUTE_MS),
    ];
    assert_eq!(lines, want);
    let ailing: Vec<String> = found.ailing().map(Backend::name).collect();
    assert_eq!(ailing, ["n1", "10.0.0.77", "n2"]);
}

#[test]
fn since_when_is_kept_longer_than_a_read_looks_back() {
    let (mut world, mut report) = (world(), Report::default());
    add(&mut world, &mut report, "web", ("kubernetes", &["20.0.0.1"]), json!([{"port": 80}]));
    let read = reads(&world, &report).remove(0);
    let mut log = BackendLog::default();
    let at = ("20.0.0.1", 80);
    let learn = |log: &mut BackendLog, last: usize, states: &[ProbeState], now_ms: u64| {
        let answer = [series(at, "10.0.0.0", last, states)];
        let turns = log.learn((&world, &report), &read, &answer, now_ms).len();
        (turns, log.of(&uid("web"), now_ms).unwrap().all[0].since_ms)
    };
    let start = NOW_MS - 10 * MINUTE_MS;
    assert_eq!(learn(&mut log, 9, &[Up, Up], NOW_MS), (0, start + 8 * MINUTE_MS));
    // The minute that is down began before the last read, which found it up.
    let down_since = NOW_MS;
    assert_eq!(learn(&mut log, 9, &[Up, Down], NOW_MS + 20_000), (0, down_since));
    assert_eq!(learn(&mut log, 10, &[Down, Down], NOW_MS + MINUTE_MS), (1, down_since), "twice");
    let later = NOW_MS + 30 * MINUTE_MS;
    assert_eq!(learn(&mut log, 39, &[Down, Down], later), (0, down_since), "it was said");
    let soon = later + MINUTE_MS;
    assert_eq!(learn(&mut log, 40, &[Down, Down], soon), (0, down_since), "it was said");
    assert_eq!(learn(&mut log, 41, &[Down, Up], soon + MINUTE_MS), (1, soon), "it is back");
    assert_eq!(log.changes(), 3);
}

#[test]
fn an_address_that_services_share_is_told_apart_by_port_and_protocol() {
    let (mut world, mut report) = (world(), Report::default());
    let at: (&str, &[&str]) = ("kubernetes", &["20.0.0.1"]);
    add(&mut world, &mut report, "dns", at, json!([{"port": 53, "protocol": "UDP"}]));
    add(&mut world, &mut report, "tcp", at, json!([{"port": 53}]));
    add(&mut world, &mut report, "web", at, json!([{"port": 80}]));
    let read = reads(&world, &report).remove(0);
    let udp = Series {
        protocol: Some(Protocol::Udp),
        ..series(("20.0.0.1", 53), "10.0.0.0", 9, &[Down])
    };
    let answer = [
        udp,
        series(("20.0.0.1", 53), "10.0.0.0", 9, &[Up]),
        series(("20.0.0.1", 99), "10.0.0.0", 9, &[Down]),
    ];
    let mut log = BackendLog::default();
    assert_eq!(log.learn((&world, &report), &read, &answer, NOW_MS), []);
    let turns = log.learn((&world, &report), &read, &answer, NOW_MS);
    assert_eq!(turns.iter().map(|turn| turn.uid.clone()).collect::<Vec<_>>(), [uid("dns")]);
    let state = |name: &str| log.of(&uid(name), NOW_MS).map(|found| found.all[0].state);
    assert_eq!((state("dns"), state("tcp"), state("web")), (Some(Down), Some(Up), None));
    let event = turns[0].event(&ServiceName::new("d", "dns"), ("1a2b", 3), NOW_MS);
    assert_eq!(event.path, "/api/v1/namespaces/d/events");
    assert_eq!(event.body["metadata"]["name"], "dns.1a2bb00000003");
    assert_eq!(event.body["reason"], "NoBackendUp");
    assert!(event.body["message"].as_str().unwrap().contains("(0 of 1)"));
}

#[test]
fn nothing_old_is_shown_and_services_that_are_gone_are_forgotten() {
    let (mut world, mut report) = (world(), Report::default());
    add(&mut world, &mut report, "web", ("kubernetes", &["20.0.0.1"]), json!([{"port": 80}]));
    let read = reads(&world, &report).remove(0);
    let answer = [series(("20.0.0.1", 80), "10.0.0.0", 9, &[Down])];
    let mut log = BackendLog::default();
    log.learn((&world, &report), &read, &answer, NOW_MS);
    assert!(log.of(&uid("web"), NOW_MS + SHOWN_MS).is_some());
    assert!(log.of(&uid("web"), NOW_MS + SHOWN_MS + 1).is_none());
    // An answer without it: it has no probe, or no backend.
    log.learn((&world, &report), &read, &[], NOW_MS);
    assert!(log.of(&uid("web"), NOW_MS).is_none());
    log.learn((&world, &report), &read, &answer, NOW_MS);
    report.services.clear();
    log.learn((&world, &report), &Read { frontends: Vec::new(), ..read }, &[], NOW_MS);
    assert_eq!(log.services.len(), 0);
}
