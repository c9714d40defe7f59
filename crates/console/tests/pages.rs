//! Pages made of a World: nothing escapes, nothing grows, nothing secret is shown.
#![allow(clippy::unwrap_used, reason = "a failed unwrap in a test is a failed test")]

use console::history::{Call, Entry, History, Kind, Limits, Outcome};
use console::page::{
    FindingsQuery, OverviewQuery, PlanQuery, ServiceQuery, ServiceView, Sort, TimelineQuery,
    TopologyQuery, Window, explained, findings, overview, plan, service, timeline, topology,
};
use console::plan_view::{ChangeView, FieldView, PlanView, Verb, WriteView};
use console::view::{Budget, Calls, DriftLine, Head, Room, Snapshot};
use model::azure::{
    Access, AdminState, Frontend, FrontendAddress, LoadBalancer, NatGateway, Pool, PoolAddress,
    PublicIp, Rest, Rule, RuleProtocol, SecurityRule,
};
use model::kubernetes::{Service, ServicePort, TargetPort};
use model::obstacle::{Obstacle, ObstacleKind, Subject};
use model::report::{Finding, Report, ServiceReport, Severity, State, Wait};
use model::world::Fact;
use model::{ResourceId, ServiceName, ServiceUid, World};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

const NOW_MS: u64 = 1_700_000_000_000;
const EVIL: &str = "<script>alert(\"1\")</script>'&";
const BALANCER: &str =
    "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network/loadBalancers/kubernetes";

fn uid(n: usize) -> ServiceUid {
    ServiceUid::new(format!("{n:08x}-1111-4222-8333-0123456789ab"))
}

fn a_service(n: usize, name: &str) -> Service {
    let annotations = [
        ("service.beta.kubernetes.io/azure-pip-name", EVIL),
        ("example.com/password", "hunter2"),
        ("kubectl.kubernetes.io/last-applied-configuration", "hunter2"),
    ];
    let annotations = annotations.map(|(k, v)| (Arc::from(k), Arc::from(v)));
    let target_port = TargetPort::Name(Arc::from(EVIL));
    let service = fixture::numbered(1, &[]);
    Service {
        uid: uid(n),
        name: ServiceName::new("default", name),
        annotations: Arc::new(BTreeMap::from(annotations)),
        ports: vec![ServicePort { target_port, ..service.ports[0].clone() }],
        ..service
    }
}

fn a_balancer(count: usize) -> LoadBalancer {
    let id = ResourceId::new(BALANCER);
    let rest = Rest::default;
    let frontend = |n: usize| Frontend {
        name: Arc::from(uid(n).base_name()),
        zones: Vec::new(),
        address: FrontendAddress::Other,
        rest: rest(),
    };
    let rule = |n: usize| Rule {
        name: Arc::from(format!("{}-TCP-80", uid(n).base_name())),
        protocol: RuleProtocol::Tcp,
        frontend_port: 80,
        backend_port: 80,
        frontend: Some(id.child("frontendIPConfigurations", &uid(n).base_name())),
        pool: Some(id.child("backendAddressPools", "kubernetes")),
        probe: None,
        floating_ip: None,
        idle_timeout_min: None,
        distribution: None,
        disable_outbound_snat: None,
        tcp_reset: None,
        rest: rest(),
    };
    let address = |n: u8| PoolAddress {
        address: [10, 0, 0, n].into(),
        name: Arc::from(format!("node-{n}{EVIL}")),
        admin: AdminState::None,
        network: None,
    };
    let pool = Pool {
        name: Arc::from("kubernetes"),
        network: None,
        addresses: (1..=20).map(address).collect(),
        nics: BTreeSet::new(),
        rest: rest(),
    };
    LoadBalancer {
        id: id.clone(),
        frontends: (0..count).map(frontend).collect(),
        pools: vec![pool],
        rules: (0..count).map(rule).collect(),
        probes: Vec::new(),
        ..fixture::balancer()
    }
}

/// So many Services on one load balancer; every third one has something wrong with it.
struct Stage {
    head: Head,
    world: World,
    report: Report,
    snapshot: Snapshot,
    plan: PlanView,
    history: History,
    calls: Vec<Call>,
}

fn stage(count: usize, name: impl Fn(usize) -> String) -> Stage {
    let (mut world, mut report) = (World::default(), Report::default());
    for n in 0..count {
        let service = a_service(n, &name(n));
        let finding = Finding {
            severity: Severity::Refusal,
            rule: "InvalidThing",
            key: Arc::from("service.beta.kubernetes.io/azure-thing"),
            value: Arc::from(EVIL),
            message: Arc::from("must be a number"),
        };
        let wrong = n % 3 == 2;
        let state = if wrong { State::Refused } else { State::Programmed };
        let said = ServiceReport {
            name: service.name.clone(),
            balancer: Some(Arc::from("kubernetes")),
            addresses: vec![Arc::from("20.0.0.1")],
            waits: if wrong { vec![Wait::Finalizer] } else { Vec::new() },
            findings: if wrong { vec![finding] } else { Vec::new() },
            ..fixture::service_report(state)
        };
        report.services.insert(uid(n), Arc::new(said));
        world.kubernetes.services.insert(uid(n), Arc::new(service));
    }
    let balancer = Arc::new(a_balancer(count));
    world.azure.balancers = Fact::Known(BTreeMap::from([(balancer.id.clone(), balancer)]));
    let mut snapshot = Snapshot::of(&world, &report, |_| Some(NOW_MS - 5_000));
    snapshot.drift = vec![DriftLine {
        resource: EVIL.to_owned(),
        what: format!("tag {EVIL} is gone"),
        services: (0..count.min(1)).map(|n| report.services[&uid(n)].name.clone()).collect(),
        outcome: "being repaired",
        noticed_ms: NOW_MS - 7_000,
    }];
    let names: Vec<String> = (0..count).map(&name).collect();
    Stage {
        head: Head {
            cluster: EVIL.to_owned(),
            leader: format!("Leader: {EVIL}"),
            now_ms: NOW_MS,
            ..Head::default()
        },
        world,
        report,
        snapshot,
        plan: a_plan(&names),
        history: a_history(&names),
        calls: some_calls(&names),
    }
}

fn a_plan(names: &[String]) -> PlanView {
    let fields = names.iter().map(|name| FieldView {
        path: format!("properties.rules[{name}].port"),
        old: Some(EVIL.to_owned()),
        new: None,
    });
    let writes = names.iter().map(|name| WriteView {
        kind: "Service".to_owned(),
        object: format!("default/{name}"),
        what: "its status gets 20.0.0.1".to_owned(),
    });
    let change = ChangeView {
        verb: Verb::Change,
        kind: "load balancer".to_owned(),
        name: EVIL.to_owned(),
        group: Some("rg".to_owned()),
        id: BALANCER.to_owned(),
        services: names.iter().map(|name| format!("default/{name}")).collect(),
        attempt: Some(2),
        body: Some(format!("name: {EVIL}\n").repeat(names.len())),
        fields: fields.collect(),
    };
    PlanView { changes: vec![change], writes: writes.collect(), calls: 1, ..PlanView::default() }
}

fn a_history(names: &[String]) -> History {
    let mut history = History::new(Limits::default());
    let services: Arc<[ServiceName]> =
        names.iter().map(|name| ServiceName::new("default", name)).collect();
    for at in 0..100 {
        for (kind, text) in [
            (Kind::Sent, format!("PUT loadBalancers/{EVIL} for 3 Services")),
            (Kind::Failed, format!("loadBalancers/{EVIL} for 3 Services failed: {EVIL}")),
        ] {
            history.push(Entry {
                at_ms: NOW_MS - 10_000 + at,
                kind,
                services: Arc::clone(&services),
                text,
                correlation: Some(Arc::from(at.to_string())),
            });
        }
    }
    history
}

fn some_calls(names: &[String]) -> Vec<Call> {
    let services: Arc<[ServiceName]> =
        names.iter().map(|name| ServiceName::new("default", name)).collect();
    let fields = names.iter().take(200).map(|name| FieldView {
        path: format!("properties.rules[{name}].port"),
        old: Some(EVIL.to_owned()),
        new: None,
    });
    let fields: Vec<FieldView> = fields.collect();
    let call = |at: u64| Call {
        method: "PUT".to_owned(),
        resource: format!("loadBalancers/{EVIL}"),
        id: BALANCER.to_owned(),
        services: Arc::clone(&services),
        gateways: Vec::new(),
        sent_ms: NOW_MS - 10_000 + at,
        ended_ms: Some(NOW_MS - 9_000 + at),
        outcome: Outcome::Failed(EVIL.to_owned()),
        attempt: 2,
        correlation: format!("c{at}"),
        fields: fields.clone(),
        more_fields: names.len().saturating_sub(200),
        causes: names.iter().take(20).map(|name| format!("{name} was edited by {EVIL}")).collect(),
        portal: Some(format!("https://portal.azure.com/#resource{BALANCER}")),
        activity_log: Some(format!("https://portal.azure.com/#resource{BALANCER}/eventlogs")),
    };
    (0..100).map(call).rev().collect()
}

fn pages(stage: &Stage) -> Vec<(&'static str, String)> {
    let Stage { head, world, snapshot, plan: coming, history, calls, .. } = stage;
    let line = &snapshot.services[0];
    let query = ServiceQuery::default();
    let view = ServiceView { query, line, world, plan: coming, history, calls };
    let wanted = OverviewQuery { wanted: "default".to_owned(), ..OverviewQuery::default() };
    let write = TimelineQuery { write: "c7".to_owned(), ..TimelineQuery::default() };
    let one = PlanQuery { id: BALANCER.to_owned(), ..PlanQuery::default() };
    vec![
        ("overview", overview(head, snapshot, (Calls::default(), &[]), &wanted)),
        ("topology", topology(head, snapshot, world, &TopologyQuery::default())),
        ("service", service(head, &view)),
        ("explained", explained(head, &line.name, EVIL)),
        ("plan", plan(head, coming, &PlanQuery::default())),
        ("plan of one", plan(head, coming, &one)),
        ("timeline", timeline(head, calls, &TimelineQuery::default())),
        ("one write", timeline(head, calls, &write)),
        ("findings", findings(head, snapshot, &FindingsQuery::default())),
    ]
}

#[test]
fn names_and_values_stay_text_on_every_page() {
    for (name, page) in pages(&stage(7, |n| format!("s{n}{EVIL}"))) {
        assert!(page.contains("&lt;script&gt;alert(&quot;1&quot;)"), "{name} shows none of it");
        assert_eq!(page.matches("<script").count(), 1, "{name} has a script that is not its own");
        let in_line = |attribute: &&str| {
            let name = attribute.rsplit(' ').next().unwrap_or_default();
            name == "style" || name.starts_with("on")
        };
        assert_eq!(page.split("=\"").find(in_line), None, "{name} has something in line");
    }
}

#[test]
fn secrets_in_foreign_annotations_are_on_no_page() {
    for (name, page) in pages(&stage(3, |n| format!("s{n}"))) {
        assert!(!page.contains("hunter2"), "{name} shows a foreign annotation");
    }
}

#[test]
fn the_same_views_give_the_same_page() {
    let name = |n| format!("s{n}");
    assert_eq!(pages(&stage(40, name)), pages(&stage(40, name)));
}

#[test]
fn pages_do_not_grow_with_the_number_of_services() {
    const BOUND: usize = 170_000;
    let few = pages(&stage(500, |n| format!("s{n:05}")));
    let many = pages(&stage(3_000, |n| format!("s{n:05}")));
    for ((name, few), (_, many)) in few.iter().zip(&many) {
        assert!(many.len() < BOUND, "{name} has {} bytes", many.len());
        let growth = many.len() as f64 / few.len() as f64;
        assert!(growth < 1.1, "{name} grows from {} to {} bytes", few.len(), many.len());
    }
}

#[test]
fn turned_and_searched_lists_show_what_is_asked_for() {
    let stage = stage(60, |n| format!("s{n:02}"));
    let (head, calls) = (&stage.head, (Calls::default(), [].as_slice()));
    let of = |query: &OverviewQuery| overview(head, &stage.snapshot, calls, query);
    let second = of(&OverviewQuery { page: 1, ..OverviewQuery::default() });
    assert!(second.contains("51 to 60 of 60 Services") && !second.contains("rel=\"next\""));
    let beyond = of(&OverviewQuery { page: 99, ..OverviewQuery::default() });
    assert_eq!(beyond, second, "a page beyond the last is the last");
    let state = Some(State::Refused);
    let wanted = "S05".to_owned();
    let refused = of(&OverviewQuery { state, wanted, ..OverviewQuery::default() });
    assert_eq!(refused.matches("class=\"why\"").count(), 1);
    assert!(refused.contains("href=\"/services/default/s05\""));
    let query = TopologyQuery { wanted: "s07".to_owned(), ..TopologyQuery::default() };
    let drawn = topology(head, &stage.snapshot, &stage.world, &query);
    for part in ["TCP 80 → 80", "20 members", "12 more", "no address yet"] {
        assert!(drawn.contains(part), "{part:?} is not drawn");
    }
    assert_eq!(drawn.matches("class=\"topology\"").count(), 1);
}

/// What a drawing, a row or a bar cuts short leads to the whole of it.
#[test]
fn what_is_cut_short_leads_to_the_whole() {
    let mut stage = stage(60, |n| format!("s{n:02}"));
    for (at, line) in stage.snapshot.services.iter_mut().enumerate() {
        line.name = ServiceName::new(format!("n{at:02}"), "web");
    }
    let mut balancer = a_balancer(1);
    let rule = balancer.rules[0].clone();
    balancer.rules = (0..30).map(|n| Rule { frontend_port: 8_000 + n, ..rule.clone() }).collect();
    let all = BTreeMap::from([(balancer.id.clone(), Arc::new(balancer))]);
    stage.world.azure.balancers = Fact::Known(all);
    let show = |query: &TopologyQuery| topology(&stage.head, &stage.snapshot, &stage.world, query);
    let wanted = "n00/".to_owned();
    let drawn = show(&TopologyQuery { wanted, ..TopologyQuery::default() });
    let frontend = uid(0).base_name();
    for (kind, name, more) in
        [("pool", "kubernetes", "12 more"), ("frontend", frontend.as_str(), "14 more rules")]
    {
        let link = format!("href=\"/topology?balancer=kubernetes&amp;{kind}={name}\"");
        assert!(drawn.contains(&link) && drawn.contains(more), "{link}: {drawn}");
    }
    let balancer = || "kubernetes".to_owned();
    let query = TopologyQuery { balancer: balancer(), pool: balancer(), ..Default::default() };
    let members = show(&query);
    assert!(members.contains("20 on load balancer ") && members.contains("10.0.0.20"), "{members}");
    let query = TopologyQuery { balancer: balancer(), frontend, ..Default::default() };
    let rules = show(&query);
    assert!(rules.contains("30 on load balancer ") && rules.contains("TCP 8029 → 80"), "{rules}");
    let gone = TopologyQuery { pool: "gone".to_owned(), ..query };
    assert!(show(&gone).contains("class=\"topology\""), "what is not there is not listed");
    let all = OverviewQuery::default();
    let page = overview(&stage.head, &stage.snapshot, (Calls::default(), &[]), &all);
    assert!(page.contains("and 48 more") && page.contains("href=\"/?namespace=n59\""), "{page}");
    let list = timeline(&stage.head, &stage.calls, &TimelineQuery::default());
    assert!(list.contains("<a href=\"/timeline?write=c99\">37 more</a>"), "{list}");
    let write = TimelineQuery { write: "c99".to_owned(), ..TimelineQuery::default() };
    let one = timeline(&stage.head, &stage.calls, &write);
    assert!(one.contains("href=\"/services/default/s59\""), "{one}");
}

/// The last part of each list of a page, and what only that part shows.
#[test]
fn every_list_can_be_turned_to_its_end() {
    let stage = stage(450, |n| format!("s{n:03}"));
    let Stage { head, world, snapshot, plan: coming, history, calls, .. } = &stage;
    let shows = |page: &str, parts: &[&str]| {
        for part in parts {
            assert!(page.contains(part), "no {part:?} in {page}");
        }
    };
    let all = plan(head, coming, &PlanQuery::default());
    shows(&all, &["1 to 100 of 450 Kubernetes writes", "href=\"/plan?writes=1\"", "445 more</a>"]);
    let last = plan(head, coming, &PlanQuery { writes: 4, ..PlanQuery::default() });
    shows(&last, &["401 to 450 of 450 Kubernetes writes"]);
    let id = || BALANCER.to_owned();
    let one = plan(head, coming, &PlanQuery { id: id(), ..PlanQuery::default() });
    shows(&one, &["1 to 200 of 450 fields", "1 to 200 of 450 lines", "1 to 200 of 450 Services"]);
    let query = PlanQuery { id: id(), page: 2, lines: 2, services: 2, ..PlanQuery::default() };
    let parts = ["401 to 450 of 450 fields", "401 to 450 of 450 lines", "/services/default/s449"];
    shows(&plan(head, coming, &query), &parts);
    let query = ServiceQuery { writes: 6, entries: 1, ..ServiceQuery::default() };
    let line = &snapshot.services[0];
    let page = service(head, &ServiceView { query, line, world, plan: coming, history, calls });
    // The history holds 50,000 names: 111 entries of 450 Services.
    shows(&page, &["91 to 100 of 100 writes", "101 to 111 of 111 entries"]);
    let query = TimelineQuery { write: "c99".to_owned(), ..TimelineQuery::default() };
    shows(&timeline(head, calls, &query), &["s019 was edited by"]);
}

fn rejected(operation: &str, code: &str) -> Obstacle {
    Obstacle {
        operation: operation.into(),
        code: code.into(),
        message: "a lock".into(),
        attempt: 3,
        since_ms: NOW_MS - 9_000,
        ..fixture::obstacle(Subject::Cluster, ObstacleKind::Rejected)
    }
}

/// A call that holds up more Services than a finding names leads to all of them.
#[test]
fn a_call_leads_to_all_services_that_it_holds_up() {
    let mut stage = stage(300, |n| format!("s{n:03}"));
    let obstacle = |services: Range<usize>, code: &str| Obstacle {
        services: services.map(uid).collect(),
        ..rejected("PUT loadBalancers/kubernetes", code)
    };
    // Azure has rejected one of them for itself before.
    stage.snapshot.obstacles = vec![obstacle(7..8, "Odd"), obstacle(0..300, "ScopeLocked")];
    // Behind a hundred refusals.
    let last = FindingsQuery { page: 2, ..FindingsQuery::default() };
    let page = findings(&stage.head, &stage.snapshot, &last);
    let link = "<a href=\"/findings?call=PUT%20loadBalancers%2Fkubernetes\">277 more</a>";
    assert!(page.contains(link), "{page}");
    let query = FindingsQuery { call: "PUT loadBalancers/kubernetes".to_owned(), page: 1 };
    let page = findings(&stage.head, &stage.snapshot, &query);
    assert!(page.contains("201 to 300 of 300 Services"), "{page}");
    assert!(page.contains("href=\"/services/default/s299\"") && page.contains("ScopeLocked"));
}

#[test]
fn findings_are_counted_on_every_page() {
    let stage = stage(60, |n| format!("s{n:02}"));
    let head = Head { findings: stage.snapshot.findings(), ..stage.head };
    let page = findings(&head, &stage.snapshot, &FindingsQuery::default());
    assert!(page.contains(">Findings (20)</a>"), "{page}");
    assert!(page.contains("20 findings: 20 refused."), "{page}");
    let none = findings(&Head::default(), &Snapshot::default(), &FindingsQuery::default());
    assert!(none.contains(">Findings</a>") && none.contains("Nothing is wrong."), "{none}");
}

#[test]
fn a_public_ip_with_a_dns_label_shows_its_host_name() {
    let mut stage = stage(1, |n| format!("s{n:02}"));
    let host: Arc<str> = format!("shop.eastus.example{EVIL}").into();
    let address = Some([20, 0, 0, 1].into());
    let ip = PublicIp { fqdn: Some(host), ..fixture::public_ip("labelled", address) };
    let group = fixture::policy().group;
    let all = BTreeMap::from([(ip.id.clone(), Arc::new(ip))]);
    stage.world.azure.public_ips.insert(group, Fact::Known(all));
    let report = stage.report.clone();
    stage.snapshot = Snapshot::of(&stage.world, &report, |_| None);
    let all = pages(&stage);
    for page in ["overview", "service"] {
        let (_, text) = all.iter().find(|(name, _)| *name == page).unwrap();
        assert!(text.contains("shop.eastus.example&lt;script&gt;"), "{page}: {text}");
    }
    let wanted = "EASTUS.example".to_owned();
    let query = OverviewQuery { wanted, ..OverviewQuery::default() };
    let found = overview(&stage.head, &stage.snapshot, (Calls::default(), &[]), &query);
    assert!(found.contains("href=\"/services/default/s00\""), "{found}");
}

#[test]
fn security_rules_and_nat_gateways_are_shown() {
    let mut stage = stage(1, |n| format!("s{n:02}"));
    let rule = |name: &str, priority, access, to: &str| SecurityRule {
        access,
        sources: (0..7).map(|n| Arc::from(format!("203.0.113.{n}/32"))).collect(),
        ports: BTreeSet::from([Arc::from("8443")]),
        ..fixture::security_rule(name, priority, to)
    };
    let group = fixture::security_group(vec![
        rule("second", 501, Access::Deny, "20.0.0.1"),
        rule(EVIL, 500, Access::Allow, "20.0.0.1"),
        rule("elsewhere", 499, Access::Allow, "20.9.9.9"),
    ]);
    stage.world.azure.security_group = Fact::Known(Some(Arc::new(group)));
    let gateway = NatGateway {
        public_ips: vec![ResourceId::new(format!("{BALANCER}/publicIPAddresses/way-out-ip"))],
        ..fixture::nat_gateway("way-out")
    };
    let gateways = BTreeMap::from([(gateway.id.clone(), Arc::new(gateway))]);
    stage.world.azure.nat_gateways = Fact::Known(gateways);
    let all = pages(&stage);
    let page = |name: &str| &all.iter().find(|(known, _)| *known == name).unwrap().1;
    let service = page("service");
    let order = [
        "Security rules",
        "allow",
        "203.0.113.4/32<details><summary>and 2 more</summary>203.0.113.5/32, 203.0.113.6/32",
        "8443",
        "&lt;script",
        "deny",
    ];
    let places: Vec<_> = order.map(|part| service.find(part)).into_iter().collect();
    assert!(places.iter().all(Option::is_some), "{places:?} in {service}");
    assert!(!service.contains("elsewhere"), "{service}");
    let topology = page("topology");
    assert!(topology.contains("way-out</code>") && topology.contains("way-out-ip"), "{topology}");
}

#[test]
fn services_are_chosen_by_namespace_and_sorted() {
    let mut stage = stage(6, |n| format!("s{n:02}"));
    for (at, line) in stage.snapshot.services.iter_mut().enumerate() {
        let namespace = if at % 2 == 1 { "shop" } else { "default" };
        line.name = ServiceName::new(namespace, format!("s{at:02}"));
        line.since_ms = Some(NOW_MS - 60_000 + at as u64);
    }
    stage.snapshot.services.sort_by(|a, b| a.name.cmp(&b.name));
    let of = |query: &OverviewQuery| {
        let page = overview(&stage.head, &stage.snapshot, (Calls::default(), &[]), query);
        let links = page.split("href=\"/services/").skip(1);
        let names = links.map(|rest| rest.split('"').next().unwrap_or_default().to_owned());
        let mut names: Vec<String> = names.collect();
        // A row leads to its Service twice where it has more findings than one.
        names.dedup();
        (names, page)
    };
    let (all, page) = of(&OverviewQuery::default());
    assert_eq!(all.len(), 6);
    assert!(page.contains("<a href=\"/?namespace=shop\">shop (3)</a>"), "{page}");
    assert!(page.contains("<a href=\"/?sort=since\">since</a>"), "{page}");
    let namespace = "shop".to_owned();
    let (shop, page) = of(&OverviewQuery { namespace, ..OverviewQuery::default() });
    assert!(shop.len() == 3 && shop.iter().all(|name| name.starts_with("shop/")), "{shop:?}");
    assert!(page.contains("<a href=\"/?namespace=shop\" aria-current=\"true\">"), "{page}");
    let (by_name, _) = of(&OverviewQuery { sort: Sort::Name, ..OverviewQuery::default() });
    assert!(by_name.is_sorted(), "{by_name:?}");
    let (by_since, _) = of(&OverviewQuery { sort: Sort::Since, ..OverviewQuery::default() });
    let last = ["shop/s05", "default/s04", "shop/s03", "default/s02", "shop/s01", "default/s00"];
    assert_eq!(by_since, last);
}

#[test]
fn a_write_shows_its_cause_its_difference_and_where_azure_shows_it() {
    let stage = stage(30, |n| format!("s{n:02}"));
    let list = timeline(&stage.head, &stage.calls, &TimelineQuery::default());
    for part in ["30 fields changed", "27 more fields", "correlation id", "and 15 more causes"] {
        assert!(list.contains(part), "{part:?} is not shown");
    }
    for end in ["loadBalancers/kubernetes\"", "loadBalancers/kubernetes/eventlogs\""] {
        assert!(list.contains(end), "there is no link to the portal: {end}");
    }
    assert!(list.contains("href=\"/timeline?write=c99\""));
    let query = TimelineQuery { write: "c99".to_owned(), ..TimelineQuery::default() };
    let one = timeline(&stage.head, &stage.calls, &query);
    assert!(one.contains("rules[s29].port") && one.contains("attempt 2"));
    let line = &stage.snapshot.services[0];
    let Stage { world, plan, history, calls, .. } = &stage;
    let query = ServiceQuery::default();
    let page = service(&stage.head, &ServiceView { query, line, world, plan, history, calls });
    assert!(page.contains("Writes to Azure") && page.contains("30 fields changed"));
}

#[test]
fn a_limit_of_which_no_figure_is_known_has_none() {
    let stage = stage(1, |n| format!("web-{n}"));
    let row = |name: &str, room| Budget { name: name.to_owned(), room, held: None };
    let known = Some(Room { left: 11_997, full: 12_000 });
    let budget = [row("Resource Manager writes", known), row("network reads", None)];
    let query = OverviewQuery::default();
    let page = overview(&stage.head, &stage.snapshot, (Calls::default(), &budget), &query);
    assert!(page.contains("11\u{2009}997 of 12\u{2009}000"), "{page}");
    assert_eq!(page.matches("<meter").count(), 1, "{page}");
    assert!(page.contains("unknown"), "{page}");
}

/// The drawing ends now, whenever the last write was.
#[test]
fn the_time_line_draws_the_last_hour() {
    let mut stage = stage(1, |n| format!("s{n:02}"));
    let one = stage.calls[0].clone();
    let call = |minutes: u64| {
        let sent_ms = NOW_MS - minutes * 60_000;
        let resource = format!("loadBalancers/before-{minutes}");
        Call { sent_ms, ended_ms: Some(sent_ms + 2_000), resource, ..one.clone() }
    };
    stage.calls = [2, 10, 50, 70].map(call).to_vec();
    let show = |window: Window| {
        let query = TimelineQuery { window, ..TimelineQuery::default() };
        let page = timeline(&stage.head, &stage.calls, &query);
        let drawn = page.split_once("<svg class=\"lanes\"").map(|(_, rest)| rest.to_owned());
        let drawn = drawn.and_then(|rest| Some(rest.split_once("</svg>")?.0.to_owned()));
        (drawn.unwrap_or_default(), page)
    };
    let lanes = |drawn: &str| [2, 10, 50, 70].map(|n| drawn.contains(&format!("before-{n}<")));
    let (drawn, page) = show(Window::Hour);
    assert_eq!(lanes(&drawn), [true, true, true, false], "{drawn}");
    // NOW_MS is 22:13:20.
    assert!(drawn.contains(">21:13:20<") && drawn.contains(">22:13:20<"), "{drawn}");
    assert!(page.contains("<a href=\"/timeline?span=15m\">last 15 minutes</a>"), "{page}");
    let (drawn, _) = show(Window::Quarter);
    assert_eq!(lanes(&drawn), [true, true, false, false], "{drawn}");
    let (drawn, page) = show(Window::Minute);
    assert!(drawn.is_empty() && page.contains("within the last minute."), "{page}");
    assert!(page.contains("before-70"), "the list below has all of them");
}

#[test]
fn a_write_for_an_egress_gateway_names_it() {
    let stage = stage(1, |n| format!("s{n:02}"));
    let one = stage.calls[0].clone();
    let alone = Call { services: Arc::default(), ..one };
    let show = |call: &Call, query: &TimelineQuery| {
        timeline(&stage.head, std::slice::from_ref(call), query)
    };
    let all = TimelineQuery::default();
    assert!(show(&alone, &all).contains(">no Service<"));
    let gateways = (0..5).map(|n| format!("team-{n}{EVIL}")).collect();
    let call = Call { gateways, ..alone };
    let page = show(&call, &all);
    assert!(page.contains("egress gateway team-0&lt;") && !page.contains("no Service"), "{page}");
    assert!(page.contains("and 2 more egress gateways") && !page.contains("team-3"), "{page}");
    let write = TimelineQuery { write: call.correlation.clone(), ..all };
    assert!(show(&call, &write).contains("egress gateway team-4&lt;"));
}

/// A burst is drawn as far as a page has room for it.
#[test]
fn a_drawing_of_many_calls_is_bounded() {
    let mut stage = stage(1, |n| format!("s{n:02}"));
    let one = stage.calls[0].clone();
    stage.calls = vec![one; 1_000];
    let page = timeline(&stage.head, &stage.calls, &TimelineQuery::default());
    assert!(page.contains("700 earlier calls are in the list below."), "{page}");
    assert!(page.len() < 200_000, "{} bytes", page.len());
}

#[test]
fn an_empty_plan_says_so_only_when_all_is_read() {
    let head = Head::default();
    let empty = plan(&head, &PlanView::default(), &PlanQuery::default());
    assert!(empty.contains("Nothing to do."));
    let unread = PlanView { unread: vec!["load balancers".to_owned()], ..PlanView::default() };
    let unread = plan(&head, &unread, &PlanQuery::default());
    assert!(!unread.contains("Nothing to do.") && unread.contains("<li>load balancers</li>"));
}

#[test]
fn no_page_says_that_all_is_well_while_something_stands_in_the_way() {
    let mut stage = stage(1, |_| "web".to_owned());
    stage.snapshot.obstacles = vec![Obstacle {
        services: BTreeSet::from([uid(0)]),
        next_ms: Some(NOW_MS + 40_000),
        ..rejected("PUT publicIPAddresses/a", "ScopeLocked")
    }];
    let text = "PUT publicIPAddresses/a: rejected by Azure (ScopeLocked: a lock)";
    let head = Head { troubles: stage.snapshot.troubles(NOW_MS), ..stage.head };
    assert_eq!(head.troubles, [format!("{text}; attempt 3, next in 40 s; 1 Service is held up")]);
    let page = findings(&head, &stage.snapshot, &FindingsQuery::default());
    assert!(page.contains(text) && !page.contains("Nothing is wrong."), "{page}");
    let held_up = PlanView { held_up: vec![text.to_owned()], ..PlanView::default() };
    let page = plan(&head, &held_up, &PlanQuery::default());
    assert!(page.contains(text) && !page.contains("Nothing to do."), "{page}");
}

#[test]
fn the_policy_allows_nothing_from_elsewhere_and_nothing_in_line() {
    let policy = console::CONTENT_SECURITY_POLICY;
    for part in [
        "default-src 'none'",
        "style-src 'self'",
        "script-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
        "form-action 'self'",
    ] {
        assert!(policy.split("; ").any(|p| p == part), "{part} is missing in {policy}");
    }
    assert!(!policy.contains("unsafe") && !policy.contains('*') && !policy.contains("http"));
    for asset in [console::STYLE, console::SCRIPT] {
        assert!(!asset.contains("http:") && !asset.contains("https:") && !asset.contains("//cdn"));
    }
}
