//! The admission policy refuses what reading refuses, and nothing else.

mod cost;

use super::{Action, policies};
use cel_interpreter::extractors::This;
use cel_interpreter::objects::{Key, Map};
use cel_interpreter::{Context, ExecutionError, Program, Value};
use fixture::{any_policy, any_service, policy, several};
use ipnet::IpNet;
use model::kubernetes::{Affinity, Ingress, Service, TargetPort, TrafficPolicy};
use model::policy::{BalancerSku, ClusterProbe, Layout};
use model::report::Severity;
use model::{Family, Policy, Protocol};
use plan::ask::annotation::{PORT, TABLE};
use plan::ask::{container, read};
use proptest::prelude::*;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;

const INTERNAL: (&str, &str) = ("azure-load-balancer-internal", "true");

/// A Service with the ports 80 and 443.
fn service(annotations: &[(&str, &str)]) -> Service {
    let ports = vec![fixture::port("http", 80, 30080), fixture::port("https", 443, 30443)];
    Service { ports, ..fixture::service(annotations) }
}

/// What Kubernetes adds to the language, as far as it is used.
fn language() -> Context<'static> {
    let mut context = Context::default();
    context.add_function("trim", |This(s): This<Arc<String>>| cost::spent(s.trim().to_owned()));
    context.add_function("lowerAscii", |This(s): This<Arc<String>>| {
        cost::spent(s.to_ascii_lowercase())
    });
    context.add_function("indexOf", |This(l): This<Arc<Vec<Value>>>, v: Value| {
        cost::spent(place(l.iter().position(|one| *one == v)))
    });
    context.add_function("lastIndexOf", |This(l): This<Arc<Vec<Value>>>, v: Value| {
        cost::spent(place(l.iter().rposition(|one| *one == v)))
    });
    context.add_function("split", split);
    context.add_function("isIP", |s: Arc<String>| {
        s.parse::<IpAddr>().is_ok_and(|a| a.to_canonical() == a)
    });
    context.add_function("ip", |s: Arc<String>| s);
    context.add_function("family", |This(s): This<Arc<String>>| match s.contains(':') {
        true => 6_i64,
        false => 4,
    });
    context.add_function("isCIDR", |s: Arc<String>| s.parse::<IpNet>().is_ok());
    context.add_function("cidr", |s: Arc<String>| range(&s).to_string());
    context.add_function("masked", |This(s): This<Arc<String>>| range(&s).trunc().to_string());
    context.add_function("containsIP", |This(s): This<Arc<String>>, ip: Arc<String>| {
        range(&s).contains(&ip.parse::<IpAddr>().expect("an address"))
    });
    context.add_function("type", |v: Value| {
        match v {
            Value::String(_) => "string",
            _ => "other",
        }
        .to_owned()
    });
    context.add_variable_from_value("string", text("string"));
    context
}

/// A place in a list; -1 where there is none.
fn place(at: Option<usize>) -> i64 {
    at.map_or(-1, |at| i64::try_from(at).expect("a short list"))
}

fn split(This(whole): This<Arc<String>>, by: Arc<String>) -> Result<Value, ExecutionError> {
    Ok(list(whole.split(&**by).map(text)))
}

fn range(text: &str) -> IpNet {
    text.parse().expect("a range")
}

fn text(text: &str) -> Value {
    Value::String(Arc::new(text.to_owned()))
}

fn map(entries: Vec<(&str, Option<Value>)>) -> Value {
    let there = entries
        .into_iter()
        .filter_map(|(key, value)| Some((Key::String(Arc::new(key.to_owned())), value?)));
    Value::Map(Map { map: Arc::new(there.collect()) })
}

fn list(items: impl IntoIterator<Item = Value>) -> Value {
    Value::List(Arc::new(items.into_iter().collect()))
}

/// The Service as an API server shows it to a policy.
fn object(service: &Service) -> Value {
    let number = |n: u16| Some(Value::Int(n.into()));
    let annotations = service.annotations.iter().map(|(k, v)| (&**k, Some(text(v)))).collect();
    let ports = service.ports.iter().map(|p| {
        map(vec![
            ("name", (!p.name.is_empty()).then(|| text(&p.name))),
            ("protocol", Some(text(&p.protocol.name().to_uppercase()))),
            ("port", number(p.port)),
            (
                "targetPort",
                match &p.target_port {
                    TargetPort::Number(n) => number(*n),
                    TargetPort::Name(name) => Some(text(name)),
                },
            ),
            ("nodePort", p.node_port.and_then(number)),
            ("appProtocol", p.app_protocol.as_deref().map(text)),
        ])
    });
    let ranges = service.source_ranges.iter().map(|r| text(r));
    let spec = map(vec![
        ("ports", Some(list(ports))),
        ("ipFamilies", Some(list(service.families.iter().map(|f| text(f.name()))))),
        (
            "sessionAffinity",
            Some(text(match service.affinity {
                Affinity::None => "None",
                Affinity::ClientIp => "ClientIP",
            })),
        ),
        (
            "externalTrafficPolicy",
            Some(text(match service.traffic_policy {
                TrafficPolicy::Cluster => "Cluster",
                TrafficPolicy::Local => "Local",
            })),
        ),
        ("healthCheckNodePort", service.health_check_node_port.and_then(number)),
        ("loadBalancerIP", service.load_balancer_ip.as_deref().map(text)),
        ("loadBalancerSourceRanges", Some(list(ranges))),
    ]);
    let metadata = map(vec![("annotations", Some(map(annotations)))]);
    let addresses = service.ingress.iter().filter_map(|entry| entry.ip.as_deref().map(text));
    let ingress = (!service.ingress.is_empty()).then(|| list(addresses));
    let status = map(vec![("loadBalancer", Some(map(vec![("ingress", ingress)])))]);
    map(vec![("metadata", Some(metadata)), ("spec", Some(spec)), ("status", Some(status))])
}

/// Compiling takes longer than running, and the expressions are always the same few.
fn program(expression: &str) -> Rc<Program> {
    thread_local! {
        static COMPILED: RefCell<BTreeMap<String, Rc<Program>>> = RefCell::default();
    }
    COMPILED.with_borrow_mut(|compiled| {
        let made = compiled.entry(expression.to_owned()).or_insert_with(|| {
            let program = Program::compile(expression);
            Rc::new(program.unwrap_or_else(|e| panic!("{e}: {expression}")))
        });
        Rc::clone(made)
    })
}

/// The rules that an action's policy finds broken when a Service is created.
fn broken(service: &Service, policy: &Policy, action: Action) -> Vec<&'static str> {
    broken_by(None, service, policy, action)
}

/// The same when a Service that was `before` becomes this one.
fn broken_by(
    before: Option<&Service>,
    service: &Service,
    policy: &Policy,
    action: Action,
) -> Vec<&'static str> {
    let found = policies(policy).into_iter().find(|p| p.action == action).expect("there is one");
    let run = |context: &Context<'_>, expression: &str| program(expression).execute(context);
    let mut context = language();
    context.add_variable_from_value("object", object(service));
    context.add_variable_from_value("oldObject", before.map_or(Value::Null, object));
    let operation = if before.is_some() { "UPDATE" } else { "CREATE" };
    context.add_variable_from_value("request", map(vec![("operation", Some(text(operation)))]));
    let mut variables: Vec<(&str, Option<Value>)> = Vec::new();
    for (name, expression) in &found.variables {
        let value = run(&context, expression).unwrap_or_else(|e| panic!("{name}: {e}"));
        variables.push((name, Some(value)));
        context.add_variable_from_value("variables", map(variables.clone()));
    }
    let mut rules = Vec::new();
    for validation in &found.validations {
        match run(&context, &validation.expression) {
            Ok(Value::Bool(true)) => {}
            Ok(Value::Bool(false)) => rules.push(validation.rule),
            other => panic!("{}: {other:?}: {}", validation.rule, validation.expression),
        }
    }
    rules
}

/// The rules that reading finds broken.
fn read_rules(service: &Service, policy: &Policy, severity: Severity) -> Vec<&'static str> {
    let findings = match policy.sku {
        BalancerSku::Service => container::read(service, policy).findings,
        BalancerSku::Basic | BalancerSku::Standard => read(service, policy).findings,
    };
    findings.iter().filter(|f| f.severity == severity).map(|f| f.rule).collect()
}

/// A server gives no port 0, and an empty protocol of its own to none.
fn as_served(mut service: Service) -> Service {
    for port in &mut service.ports {
        port.node_port = port.node_port.filter(|number| *number > 0);
    }
    service.health_check_node_port = service.health_check_node_port.filter(|number| *number > 0);
    service
}

fn containers() -> Policy {
    Policy { sku: BalancerSku::Service, layout: Layout::PerService, ..policy() }
}

/// Additional addresses are those of a list.
fn listed() -> Policy {
    let ranges = ["20.0.0.0/8", "10.0.0.0/8"].map(|r| r.parse().expect("a range"));
    Policy { additional_addresses: Some(ranges.into()), ..policy() }
}

fn shared_probe() -> Policy {
    let probe = ClusterProbe::Shared { port: 10256, path: "/healthz".into() };
    Policy { cluster_probe: probe, ..policy() }
}

fn known_key() -> impl Strategy<Value = String> {
    let key = proptest::sample::select(TABLE.iter().map(|a| a.key).collect::<Vec<_>>());
    let port = proptest::sample::select(vec!["80", "443", "53", "31000"]);
    (key, port).prop_map(|(key, port)| key.replace(PORT, port))
}

/// Values that are right for some key, or nearly.
fn likely_value() -> impl Strategy<Value = String> {
    let words = [
        "true",
        "true",
        "true",
        "false",
        "",
        "3",
        "4",
        "5",
        "60",
        "100",
        "101",
        "+5",
        "8",
        "9",
        "http",
        "https",
        "/ready",
        "ready",
        "443",
        "0",
        "65536",
        "20.1.2.3",
        "10.0.0.9",
        "fd00::1",
        "2603::7",
        "168.63.129.16",
        "20.1.2.3, 169.254.169.254",
        "::ffff:20.1.2.3",
        "service=a/b",
        "aks-managed-x/y=z",
        "10.0.4.9 10.0.4.10",
        "10.0.4.9 10.0.4.9",
        "203.0.113.0/24",
        "203.0.113.7/24",
        "203.0.113.0/24, 2001:db8::/32",
        "AzureCloud",
        "Azure Cloud",
        "web",
        "My_Web",
        "we",
        "w-",
        "a/b",
        "group(1)",
        "group.",
        "a=b",
        "a/b=c",
        "k8s-azure-x/y=z",
        "a=b=c",
        "lb1",
        "LB2,lb9",
        "lb9",
        "__auto__",
        "a.example b.example",
        "a.example,b.example",
        "a,b",
        "*",
        "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network/publicIPPrefixes/p",
        "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network/publicIPAddresses/p",
    ];
    proptest::sample::select(words.to_vec()).prop_map(str::to_owned)
}

prop_compose! {
    fn likely_service()(
        families in proptest::sample::select(vec![
            vec![Family::V4], vec![Family::V6], vec![Family::V4, Family::V6],
        ]),
        change in 0..12_u8,
    ) -> Service {
        let mut web = service(&[]);
        web.families = families;
        web.ports[1].target_port = TargetPort::Number(8443);
        match change {
            0 => web.ports[1].protocol = Protocol::Udp,
            1 => web.ports[1].protocol = Protocol::Sctp,
            2 => web.ports[0].node_port = None,
            3 => web.ports[0].target_port = TargetPort::Name("http".into()),
            4 => web.affinity = Affinity::ClientIp,
            5 => web.source_ranges = vec!["203.0.113.0/24".into()],
            6 => web.load_balancer_ip = Some("20.1.2.3".into()),
            7 => web.load_balancer_ip = Some("10.0.0.4".into()),
            8 => web.traffic_policy = TrafficPolicy::Local,
            9 => {
                web.traffic_policy = TrafficPolicy::Local;
                web.health_check_node_port = Some(31000);
            }
            10 => web.ports[0].app_protocol = Some("https".into()),
            _ => {}
        }
        web
    }
}

proptest! {
    // Reading the language is slow; PROPTEST_CASES has no say here.
    #![proptest_config(ProptestConfig::with_cases(250))]

    #[test]
    fn what_reading_refuses_is_denied_and_nothing_else(
        service in any_service(),
        policy in prop_oneof![any_policy(), Just(containers()), Just(shared_probe())],
    ) {
        let service = as_served(service);
        let denied = broken(&service, &policy, Action::Deny);
        let refused = read_rules(&service, &policy, Severity::Refusal);
        prop_assert_eq!(denied.is_empty(), refused.is_empty(), "{:?} {:?}", denied, refused);
    }

    #[test]
    fn a_single_mistake_is_denied_under_its_own_name(
        pairs in proptest::collection::vec((known_key(), likely_value()), 0..4),
        plain in likely_service(),
        policy in prop_oneof![
            any_policy(), Just(containers()), Just(shared_probe()), Just(listed()),
        ],
    ) {
        let pairs: Vec<(&str, &str)> =
            pairs.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        let service = Service { annotations: service(&pairs).annotations, ..plain };
        let denied: BTreeSet<&str> = broken(&service, &policy, Action::Deny).into_iter().collect();
        let refused: BTreeSet<&str> =
            read_rules(&service, &policy, Severity::Refusal).into_iter().collect();
        // Reading stops at the first thing wrong with a value; the policy names all.
        prop_assert!(refused.is_subset(&denied), "{:?} {:?}", denied, refused);
        prop_assert_eq!(denied.is_empty(), refused.is_empty(), "{:?}", denied);
    }

    #[test]
    fn unknown_keys_and_odd_flags_are_warned_of(
        service in any_service(),
        policy in prop_oneof![any_policy(), Just(containers())],
    ) {
        let warned = broken(&service, &policy, Action::Warn);
        let noted = read_rules(&service, &policy, Severity::Note);
        for rule in ["UnknownAnnotation", "InvalidBoolean"] {
            prop_assert_eq!(warned.contains(&rule), noted.contains(&rule), "{}", rule);
        }
    }
}

#[test]
fn a_plain_service_is_taken() {
    for policy in [policy(), shared_probe(), Policy { layout: several(), ..policy() }] {
        assert_eq!(broken(&service(&[]), &policy, Action::Deny), Vec::<&str>::new());
        assert_eq!(broken(&service(&[]), &policy, Action::Warn), Vec::<&str>::new());
    }
}

#[test]
fn the_rule_for_all_ports_needs_one_probe_that_is_right() {
    let ha = ("azure-load-balancer-enable-high-availability-ports", "true");
    let first = [
        ("port_80_health-probe_port", "admin"),
        ("port_80_health-probe_interval", "3"),
        ("port_80_health-probe_interval", "60"),
        ("port_80_health-probe_num-of-probe", "1"),
        ("port_80_health-probe_request-path", "ready"),
        ("azure-load-balancer-health-probe-interval", "x"),
        ("azure-load-balancer-health-probe-request-path", "ready"),
        ("port_80_health-probe_interval", "+9"),
    ];
    let second = [
        ("port_443_health-probe_port", "nothing"),
        ("port_443_health-probe_interval", "9"),
        ("port_443_health-probe_num-of-probe", "100"),
        ("port_443_health-probe_request-path", "/up"),
        ("port_443_health-probe_protocol", "tcp"),
        ("port_443_health-probe_port", "8080"),
    ];
    let http = ("azure-load-balancer-health-probe-protocol", "http");
    let mut bare = service(&[]);
    bare.ports[1].node_port = None;
    let mut datagrams = service(&[]);
    datagrams.ports[1].protocol = Protocol::Udp;
    for plain in [service(&[]), bare, datagrams] {
        for (one, two) in first.iter().flat_map(|one| second.iter().map(move |two| (one, two))) {
            let annotations = service(&[INTERNAL, ha, http, *one, *two]).annotations;
            let web = Service { annotations, ..plain.clone() };
            let denied = broken(&web, &policy(), Action::Deny);
            let refused = read_rules(&web, &policy(), Severity::Refusal);
            let both = (&denied, &refused);
            assert_eq!(denied.is_empty(), refused.is_empty(), "{one:?} {two:?}: {both:?}");
        }
    }
    let one_wrong = service(&[INTERNAL, ha, first[0]]);
    assert_eq!(broken(&one_wrong, &policy(), Action::Deny), Vec::<&str>::new());
    let both_wrong = service(&[INTERNAL, ha, first[0], second[0]]);
    assert_eq!(broken(&both_wrong, &policy(), Action::Deny), ["InvalidProbePort"]);
}

/// It counts as `tcp`, which has no path.
#[test]
fn an_empty_protocol_of_a_port_needs_no_path() {
    let all = [
        ("port_80_health-probe_protocol", ""),
        ("port_443_health-probe_protocol", " "),
        ("azure-load-balancer-health-probe-protocol", "http"),
        ("azure-load-balancer-health-probe-request-path", "ready"),
    ];
    for (annotations, wanted) in [(&all[..], None), (&all[2..], Some("InvalidRequestPath"))] {
        let web = service(annotations);
        let denied = broken(&web, &policy(), Action::Deny);
        assert_eq!(denied.first().copied(), wanted);
        assert_eq!(read_rules(&web, &policy(), Severity::Refusal).first().copied(), wanted);
    }
}

/// `__auto__` says where a Service is placed: it moves none that stands.
#[test]
fn a_service_that_stands_is_not_changed_to_auto() {
    let per_set = Policy { layout: Layout::PerNodeSet { without_own: Vec::new() }, ..policy() };
    let mode = |value| ("azure-load-balancer-mode", value);
    for (word, other) in [("__AUTO__", "auto"), ("Auto", "__auto__")] {
        changed_to_auto(&per_set, mode(word), mode(other));
    }
    // The policy knows node sets from the cloud config alone.
    let called = Policy { primary_set: "auto".into(), ..per_set };
    let named = service(&[mode("auto")]);
    let ip = Some("20.1.2.3".into());
    let ingress = vec![Ingress { ip, hostname: None }];
    let before = Service { ingress, ..service(&[mode("vmss2")]) };
    assert!(broken_by(Some(&before), &named, &called, Action::Deny).is_empty(), "it moves there");
}

/// A change to `word`; `other` is another spelling of the same mode.
fn changed_to_auto(per_set: &Policy, word: (&str, &str), other: (&str, &str)) {
    let mode = |value| ("azure-load-balancer-mode", value);
    let auto = service(&[word]);
    let standing = |annotations: &[(&str, &str)]| {
        let ip = Some("20.1.2.3".into());
        Service { ingress: vec![Ingress { ip, hostname: None }], ..service(annotations) }
    };
    let found = |before: &Service, after: &Service, policy: &Policy| {
        broken_by(Some(before), after, policy, Action::Deny)
    };
    for before in [standing(&[]), standing(&[mode("vmss2")])] {
        assert_eq!(found(&before, &auto, per_set), ["ModeChanged"]);
        assert!(found(&before, &auto, &policy()).is_empty(), "it has no effect there");
        assert!(found(&before, &service(&[mode("vmss3")]), per_set).is_empty(), "it moves");
        let internal = service(&[word, INTERNAL]);
        assert!(found(&before, &internal, per_set).is_empty(), "it is placed anew");
    }
    for before in [standing(&[word]), standing(&[other]), service(&[])] {
        assert!(found(&before, &auto, per_set).is_empty());
    }
    assert!(broken(&auto, per_set, Action::Deny).is_empty());
}
