//! The data path as tables: what goes in, where flows go.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

use super::table::*;
use super::{
    Admission, DataPath, Ending, Flow, OnDown, OnRemoval, Refusal, Seat, Semantics, Verdict,
};

const FRONT: &str = "20.0.0.1";

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn node(number: usize) -> IpAddr {
    ip(&format!("10.224.0.{}", number + 1))
}

fn key() -> ProbeKey {
    ProbeKey("probe".to_owned())
}

fn entry(transport: Transport) -> EntryPoint {
    EntryPoint { address: ip(FRONT), transport, port: 80 }
}

fn flow(transport: Transport, port: u16) -> Flow {
    Flow { client: SocketAddr::new(ip("198.51.100.7"), port), entry: entry(transport) }
}

/// A rule for port 80 with so many backends and a probe.
fn rule(transport: Transport, admins: &[Admin]) -> Rule {
    let backends = admins.iter().enumerate();
    Rule {
        id: "rule".to_owned(),
        frontend: ip(FRONT),
        transport,
        ports: Ports::One(80),
        backend_port: None,
        distribution: Distribution::FiveTuple,
        idle_ms: 240_000,
        idle_reset: IdleReset::Sent,
        floating: Floating::Kept,
        probe: Some(key()),
        backends: backends
            .map(|(at, admin)| Backend { address: node(at), admin: *admin })
            .collect(),
        sku: Sku::Standard,
    }
}

fn tables(rules: Vec<Rule>) -> Tables {
    let kind = ProbeKind::Http { path: "/healthz".to_owned() };
    let probe = Probe { kind, port: 10_256, interval_ms: 5_000, threshold: 2 };
    Tables { rules, probes: BTreeMap::from([(key(), probe)]) }
}

/// One whose backends with these numbers are healthy, and no others.
fn path(rule: Rule, healthy: &[usize], semantics: Semantics) -> DataPath {
    let mut path = DataPath::new(semantics);
    path.load(tables(vec![rule]), 0);
    answer(&mut path, healthy, 0);
    path
}

/// All questions that are due are answered.
fn answer(path: &mut DataPath, healthy: &[usize], now_ms: u64) -> Vec<(Flow, Ending)> {
    let mut ended = Vec::new();
    for question in path.due(now_ms) {
        let good = healthy.iter().any(|at| node(*at) == question.backend);
        let verdict = if good { Verdict::Good } else { Verdict::Bad };
        ended.extend(path.learn(&question.probe, question.backend, verdict, now_ms));
    }
    ended
}

fn backend(path: &mut DataPath, flow: Flow, now_ms: u64) -> Option<IpAddr> {
    match path.admit(flow, now_ms) {
        Admission::To(seat) => Some(seat.backend),
        Admission::Refused(_) => None,
    }
}

/// The backends that 200 new flows go to.
fn takers(path: &mut DataPath, transport: Transport) -> BTreeSet<IpAddr> {
    let flows = (0..200).map(|at| flow(transport, 20_000 + at));
    flows.filter_map(|flow| backend(path, flow, 0)).collect()
}

/// Admin state and health decide about new flows: every pair of them, with a probe and without.
#[test]
fn new_flows_by_admin_state_and_health() {
    use Admin::{Down, None, Up};
    for (admin, healthy, probed, takes) in [
        (None, true, true, true),
        (None, false, true, false),
        (Up, true, true, true),
        (Up, false, true, true),
        (Down, true, true, false),
        (Down, false, true, false),
        // Admin state is for probed rules only.
        (None, true, false, true),
        (Up, true, false, true),
        (Down, true, false, true),
    ] {
        for transport in [Transport::Tcp, Transport::Udp] {
            let mut rule = rule(transport, &[admin, None]);
            if !probed {
                rule.probe = Option::None;
            }
            let health: &[usize] = if healthy { &[0, 1] } else { &[1] };
            let mut path = path(rule, health, Semantics::default());
            let found = takers(&mut path, transport).contains(&node(0));
            assert_eq!(found, takes, "{admin:?}, healthy {healthy}, probed {probed}");
        }
    }
}

/// What becomes of an established flow when something happens to its backend, out of two.
#[test]
fn established_flows_when_their_backend_changes() {
    use Transport::{Tcp, Udp};
    let persist = Semantics::default();
    let reset = Semantics { on_down: OnDown::Reset, ..persist };
    let stay = Semantics { on_removal: OnRemoval::Persist, ..persist };
    for (what, transport, semantics, ends) in [
        ("down", Tcp, persist, None),
        ("down", Udp, persist, Some(Ending::Moved)),
        ("down", Tcp, reset, Some(Ending::AdminDown)),
        ("probe", Tcp, persist, None),
        ("probe", Tcp, reset, None),
        ("probe", Udp, persist, Some(Ending::Moved)),
        ("up", Tcp, persist, None),
        ("up", Udp, persist, None),
        ("gone", Tcp, persist, Some(Ending::BackendGone)),
        ("gone", Udp, persist, Some(Ending::BackendGone)),
        ("gone", Tcp, stay, None),
        ("gone", Udp, stay, Some(Ending::BackendGone)),
        ("rule", Tcp, persist, Some(Ending::RuleGone)),
        ("rule", Udp, stay, Some(Ending::RuleGone)),
    ] {
        let before = rule(transport, &[Admin::None, Admin::None]);
        let mut path = path(before.clone(), &[0, 1], semantics);
        let mine = flow(transport, 30_000);
        let home = backend(&mut path, mine, 0).unwrap();
        let mut after = before;
        let at = after.backends.iter().position(|b| b.address == home).unwrap();
        let mut rules = Vec::new();
        match what {
            "down" => after.backends[at].admin = Admin::Down,
            "up" => after.backends[at].admin = Admin::Up,
            "gone" => drop(after.backends.remove(at)),
            _ => {}
        }
        if what != "rule" {
            rules.push(after);
        }
        let mut ended = path.load(tables(rules), 1);
        for now_ms in [5_000, 10_000] {
            let healthy: Vec<usize> =
                (0..2).filter(|i| !matches!(what, "probe" | "up") || *i != at).collect();
            ended.extend(answer(&mut path, &healthy, now_ms));
        }
        let wanted: Vec<(Flow, Ending)> = ends.into_iter().map(|ending| (mine, ending)).collect();
        assert_eq!(ended, wanted, "{what} {transport:?} {semantics:?}");
        assert_eq!(path.flows(), usize::from(ends.is_none()), "{what} {transport:?}");
        // The next datagram of a flow that moved goes to the other backend.
        if ends == Some(Ending::Moved) {
            assert_eq!(backend(&mut path, mine, 10_000), Some(node(1 - at)));
        }
    }
}

/// With no healthy backend left: Standard keeps TCP where the pool has several, Basic none.
#[test]
fn established_flows_when_nobody_is_healthy() {
    use Transport::{Tcp, Udp};
    for (sku, backends, transport, ends) in [
        (Sku::Standard, 2, Tcp, false),
        (Sku::Standard, 1, Tcp, true),
        (Sku::Basic, 2, Tcp, true),
        (Sku::Basic, 1, Tcp, true),
        (Sku::Standard, 2, Udp, true),
        (Sku::Basic, 1, Udp, true),
    ] {
        let rule = Rule { sku, ..rule(transport, &vec![Admin::None; backends]) };
        let mut path = path(rule, &[0, 1], Semantics::default());
        let mine = flow(transport, 30_000);
        assert!(backend(&mut path, mine, 0).is_some());
        assert_eq!(answer(&mut path, &[], 5_000), [], "once is below the threshold");
        let ended = answer(&mut path, &[], 10_000);
        // Where one of two fell first, datagrams moved before they ended.
        let found = ended.iter().any(|(flow, _)| *flow == mine);
        assert_eq!(found, ends, "{sku:?} {backends} {transport:?}: {ended:?}");
        let other = flow(transport, 30_001);
        let refused = Admission::Refused(Refusal::NoneHealthy);
        assert_eq!(path.admit(other, 10_000), refused);
    }
}

#[test]
fn down_lets_tcp_live_even_if_it_is_the_only_backend() {
    let mut path = path(rule(Transport::Tcp, &[Admin::None]), &[0], Semantics::default());
    assert_eq!(backend(&mut path, flow(Transport::Tcp, 1), 0), Some(node(0)));
    let ended = path.load(tables(vec![rule(Transport::Tcp, &[Admin::Down])]), 1);
    assert_eq!(ended, []);
    assert_eq!(backend(&mut path, flow(Transport::Tcp, 2), 1), None);
}

#[test]
fn what_the_distribution_looks_at() {
    let changed = |mut flow: Flow, what: &str| {
        match what {
            "client port" => flow.client.set_port(41_111),
            "frontend port" => flow.entry.port = 81,
            "transport" => flow.entry.transport = Transport::Udp,
            _ => flow.client.set_ip(ip("198.51.100.99")),
        }
        flow
    };
    use Distribution::{FiveTuple, SourceIp, SourceIpProtocol};
    for (distribution, what, matters) in [
        (FiveTuple, "client port", true),
        (FiveTuple, "frontend port", true),
        (FiveTuple, "transport", true),
        (FiveTuple, "client", true),
        (SourceIp, "client port", false),
        (SourceIp, "frontend port", false),
        (SourceIp, "transport", false),
        (SourceIp, "client", true),
        (SourceIpProtocol, "client port", false),
        (SourceIpProtocol, "frontend port", false),
        (SourceIpProtocol, "transport", true),
        (SourceIpProtocol, "client", true),
    ] {
        // Among very many backends, another hash is another backend.
        let one = flow(Transport::Tcp, 40_000);
        let pick = |flow: &Flow| super::pick::pick(flow, distribution, usize::MAX);
        let differs = pick(&one) != pick(&changed(one, what));
        assert_eq!(differs, matters, "{distribution:?} by {what}");
    }
}

#[test]
fn five_tuples_spread_evenly() {
    let mut path =
        path(rule(Transport::Tcp, &[Admin::None; 4]), &[0, 1, 2, 3], Semantics::default());
    let mut counts: BTreeMap<IpAddr, u32> = BTreeMap::new();
    for port in 20_000..24_000 {
        *counts.entry(backend(&mut path, flow(Transport::Tcp, port), 0).unwrap()).or_default() += 1;
    }
    assert_eq!(counts.len(), 4);
    assert!(counts.values().all(|count| (900..1_100).contains(count)), "{counts:?}");
}

#[test]
fn datagrams_stay_with_their_backend_when_others_come() {
    let mut path = path(rule(Transport::Udp, &[Admin::None; 2]), &[0, 1], Semantics::default());
    let homes: Vec<_> =
        (0..50).map(|at| backend(&mut path, flow(Transport::Udp, at), 0).unwrap()).collect();
    path.load(tables(vec![rule(Transport::Udp, &[Admin::None; 5])]), 1);
    answer(&mut path, &[0, 1, 2, 3, 4], 1);
    for (at, home) in (0..50).zip(homes) {
        assert_eq!(backend(&mut path, flow(Transport::Udp, at), 2), Some(home));
    }
    assert_eq!(path.counts().admitted, 50, "fifty flows, however many datagrams");
}

#[test]
fn idle_flows_end_at_their_time_and_not_before() {
    for (reset, ending) in
        [(IdleReset::Sent, Ending::IdleReset), (IdleReset::Silent, Ending::IdleSilent)]
    {
        let rule = Rule { idle_reset: reset, ..rule(Transport::Tcp, &[Admin::None]) };
        let mut path = path(rule, &[0], Semantics::default());
        let (busy, idle) = (flow(Transport::Tcp, 1), flow(Transport::Tcp, 2));
        backend(&mut path, busy, 0);
        backend(&mut path, idle, 0);
        path.touch(&busy, 200_000);
        assert_eq!(path.expire(239_999), []);
        assert_eq!(path.expire(240_000), [(idle, ending)]);
        assert_eq!(path.expire(439_999), []);
        assert_eq!(path.expire(440_000), [(busy, ending)]);
    }
    // The rule's idle timeout is not for UDP.
    let rule = Rule { idle_ms: 1_800_000, ..rule(Transport::Udp, &[Admin::None]) };
    let mut path = path(rule, &[0], Semantics::default());
    backend(&mut path, flow(Transport::Udp, 1), 0);
    assert_eq!(path.expire(239_999), []);
    assert_eq!(path.expire(240_000), [(flow(Transport::Udp, 1), Ending::IdleSilent)]);
}

#[test]
fn probes_ask_at_their_interval_and_believe_at_their_threshold() {
    let mut path = DataPath::new(Semantics::default());
    path.load(tables(vec![rule(Transport::Tcp, &[Admin::None])]), 1_000);
    let takes = |path: &mut DataPath| !takers(path, Transport::Tcp).is_empty();
    assert!(!takes(&mut path), "nobody has asked yet");
    let first = path.due(1_000);
    let [question] = first.as_slice() else { panic!("one question: {first:?}") };
    let kind = ProbeKind::Http { path: "/healthz".to_owned() };
    assert_eq!((question.port, &question.kind), (10_256, &kind));
    assert_eq!(question.patience_ms, 5_000);
    assert_eq!(path.due(9_000), [], "the first answer is awaited");
    path.learn(&key(), node(0), Verdict::Good, 9_000);
    assert!(takes(&mut path), "the first good answer is enough");
    let mut now_ms = 9_000;
    for (verdict, after) in [
        (Verdict::Bad, true),
        (Verdict::Good, true),
        (Verdict::Bad, true),
        (Verdict::Bad, false),
        (Verdict::Good, false),
        (Verdict::Bad, false),
        (Verdict::Good, false),
        (Verdict::Good, true),
    ] {
        assert_eq!(path.due(now_ms).len(), 1, "at {now_ms}");
        assert_eq!(path.due(now_ms + 4_999), [], "before the interval is over");
        path.learn(&key(), node(0), verdict, now_ms);
        assert_eq!(takes(&mut path), after, "{verdict:?} at {now_ms}");
        now_ms += 5_000;
    }
    // Whoever left the pool is asked no more, and starts anew when it comes back.
    path.load(tables(vec![rule(Transport::Tcp, &[])]), now_ms);
    assert_eq!(path.due(now_ms + 10_000), []);
    path.load(tables(vec![rule(Transport::Tcp, &[Admin::None])]), now_ms + 10_000);
    assert!(!takes(&mut path));
}

#[test]
fn what_probes_found_is_remembered_with_its_time() {
    let admins = [Admin::None, Admin::None];
    let mut path = path(rule(Transport::Tcp, &admins), &[0], Semantics::default());
    let changes = |path: &DataPath| -> Vec<Vec<(u64, bool)>> {
        path.probed().into_iter().map(|one| one.changes).collect()
    };
    assert_eq!(changes(&path), [vec![(0, true)], vec![(0, false)]]);
    answer(&mut path, &[], 5_000);
    assert_eq!(changes(&path)[0], [(0, true)], "one bad answer is not believed");
    answer(&mut path, &[], 10_000);
    assert_eq!(changes(&path)[0], [(0, true), (10_000, false)]);
    let first = path.probed().remove(0);
    assert_eq!((first.port, first.backend, first.backend_port), (80, node(0), 80));
    let bare = Rule { probe: None, ..rule(Transport::Tcp, &[Admin::None]) };
    path.load(tables(vec![bare]), 11_000);
    assert_eq!(path.probed(), [], "a rule without a probe finds nothing");
}

#[test]
fn entry_points_ports_and_refusals() {
    let mut path = DataPath::new(Semantics { most_flows: 2, ..Semantics::default() });
    let tcp = flow(Transport::Tcp, 1);
    assert_eq!(path.admit(tcp, 0), Admission::Refused(Refusal::NoRule));
    let all = Rule { ports: Ports::All, probe: None, ..rule(Transport::Tcp, &[Admin::None]) };
    let own = Rule {
        id: "own".to_owned(),
        backend_port: Some(8_080),
        floating: Floating::Rewritten,
        backends: vec![Backend { address: node(7), admin: Admin::None }],
        probe: None,
        ..rule(Transport::Tcp, &[])
    };
    path.load(tables(vec![all, own]), 0);
    assert_eq!(
        path.tables().entry_points(),
        [entry(Transport::Tcp)],
        "all ports are no entry point"
    );
    let seat = Seat { backend: node(7), port: 8_080, floating: Floating::Rewritten };
    assert_eq!(path.admit(tcp, 0), Admission::To(seat), "the rule for the very port");
    let seat = Seat { backend: node(0), port: 80, floating: Floating::Kept };
    assert_eq!(path.admit(flow(Transport::Udp, 2), 0), Admission::To(seat), "all the others");
    assert_eq!(path.admit(flow(Transport::Tcp, 3), 0), Admission::Refused(Refusal::Full));
    path.close(&tcp);
    assert!(matches!(path.admit(flow(Transport::Tcp, 3), 0), Admission::To(_)));
    path.load(tables(vec![rule(Transport::Tcp, &[])]), 0);
    assert_eq!(path.admit(tcp, 0), Admission::Refused(Refusal::NoBackend));
    let counts = path.counts();
    assert_eq!((counts.admitted, counts.without_rule, counts.without_backend), (3, 1, 1));
    assert_eq!((counts.full, counts.none_healthy, counts.ended), (1, 0, 2));
}

/// A flow outlives whatever changes that is not about it: the port order of rules, other backends,
/// the rule's name, health.
#[test]
fn a_rule_that_is_written_anew_keeps_its_flows() {
    let mut path = path(rule(Transport::Tcp, &[Admin::None; 3]), &[0, 1, 2], Semantics::default());
    for port in 0..100 {
        backend(&mut path, flow(Transport::Tcp, port), 0);
    }
    let mut after = rule(Transport::Tcp, &[Admin::None; 6]);
    after.id = "another name".to_owned();
    after.idle_ms = 300_000;
    after.distribution = Distribution::SourceIp;
    assert_eq!(path.load(tables(vec![after]), 1), []);
    assert_eq!(path.flows(), 100);
}
