//! Probes and rules.

use super::*;

fn probes(service: &Service, policy: &Policy) -> Vec<Option<(ProbeName, u16)>> {
    let rules = read_ok(service, policy).rules;
    rules.into_iter().map(|r| r.probe.map(|p| (p.name, p.port))).collect()
}

fn local(annotations: &[(&str, &str)]) -> Service {
    let mut service = service(annotations);
    service.traffic_policy = TrafficPolicy::Local;
    service.health_check_node_port = Some(31000);
    service.ports.push(port("dns", Protocol::Udp, 53, 30053));
    service
}

#[test]
fn a_local_service_has_one_probe_for_all_ports() {
    let health = Some((ProbeName::HealthCheck(31000), 31000));
    assert_eq!(probes(&local(&[]), &policy()), [health.clone(), health.clone(), health.clone()]);
    let own = [("port_443_health-probe_port", "http"), ("port_31000_health-probe_interval", "9")];
    let intent = read_ok(&local(&own), &policy());
    let first = intent.rules[0].probe.as_ref().expect("the common one");
    assert_eq!((first.protocol, first.path.as_deref()), (ProbeProtocol::Http, Some("/healthz")));
    assert_eq!(first.interval_s, 9);
    let second = intent.rules[1].probe.as_ref().expect("its own");
    assert_eq!((&second.name, second.port, second.interval_s), (&ProbeName::Rule, 30080, 5));
}

/// The topic page's `{port}` is that of the Service.
#[test]
fn a_port_of_a_local_service_says_how_often_it_is_probed() {
    let mut web = local(&[
        ("port_443_health-probe_interval", "9"),
        ("port_53_health-probe_num-of-probe", "3"),
        ("azure-load-balancer-health-probe-interval", "7"),
        ("port_31000_health-probe_num-of-probe", "4"),
    ]);
    assert_eq!(read(&web, &policy()).findings, []);
    let intent = read_ok(&web, &policy());
    let found: Vec<_> = intent
        .rules
        .iter()
        .filter_map(|rule| rule.probe.as_ref())
        .map(|p| (p.name.clone(), p.port, p.interval_s, p.threshold))
        .collect();
    let common = ProbeName::HealthCheck(31000);
    let of_rule = ProbeName::Rule;
    assert_eq!(
        found,
        [(common.clone(), 31000, 7, 4), (of_rule.clone(), 31000, 9, 2), (of_rule, 31000, 7, 3)]
    );
    let mut all = intent.rules.iter().filter_map(|rule| rule.probe.as_ref());
    assert!(all.all(|p| p.path.as_deref() == Some("/healthz")));
    // As often as the others: it needs no other probe.
    web = local(&[("port_443_health-probe_interval", "5")]);
    assert_eq!(probes(&web, &policy())[1], Some((common, 31000)));
    let wrong = local(&[("port_443_health-probe_interval", "3")]);
    assert_eq!(names(&read(&wrong, &policy()).findings), ["InvalidProbeInterval"]);
    let silent = [("port_443_health-probe_interval", "3"), ("port_443_no_probe_rule", "true")];
    assert_eq!(read(&local(&silent), &policy()).findings, []);
}

#[test]
fn settings_of_a_port_that_is_not_probed_alone_are_noted() {
    let notes = |annotations: &[(&str, &str)]| -> Vec<(String, String)> {
        let findings = read(&local(annotations), &policy()).findings;
        findings.iter().map(|f| (f.rule.to_owned(), f.key.to_string())).collect()
    };
    let key = |key: &str| format!("service.beta.kubernetes.io/{key}");
    let ignored = |of: &str| ("ProbeSettingIgnored".to_owned(), key(of));
    let interval = ("port_443_health-probe_interval", "9");
    let path = ("port_443_health-probe_request-path", "/ready");
    assert_eq!(notes(&[interval, path]), [ignored(path.0)]);
    // Its own probe takes them.
    assert_eq!(notes(&[("port_443_health-probe_port", "443"), interval, path]), []);
    assert_eq!(notes(&[("port_31000_health-probe_interval", "9")]), []);
    // The one rule of HA ports has the common probe, whatever a port asks for.
    let all = ("azure-load-balancer-enable-high-availability-ports", "true");
    let port = ("port_443_health-probe_port", "nothing");
    assert_eq!(notes(&[INTERNAL, all, port, interval]), [ignored(port.0), ignored(interval.0)]);
}

#[test]
fn behind_the_proxy_protocol_a_local_service_is_probed_port_by_port() {
    let link = [INTERNAL, ("azure-pls-create", "true"), ("azure-pls-proxy-protocol", "true")];
    let own = |port| Some((ProbeName::Rule, port));
    let nics = Policy { pools: PoolKind::NodeNic, ..policy() };
    assert_eq!(probes(&local(&link), &nics), [own(30080), own(30443), None]);
}

#[test]
fn in_shared_mode_cluster_services_ignore_everything_else() {
    let path = Arc::from("/healthz");
    let policy = Policy { cluster_probe: ClusterProbe::Shared { port: 10256, path }, ..policy() };
    let shared = Some((ProbeName::Shared, 10256));
    let mut web = service(&[("azure-load-balancer-health-probe-interval", "3")]);
    web.ports.push(port("dns", Protocol::Udp, 53, 30053));
    assert_eq!(probes(&web, &policy), [shared.clone(), shared.clone(), shared]);
    Arc::make_mut(&mut web.annotations)
        .insert(full("port_80_health-probe_port").into(), "443".into());
    let noted: Vec<(&str, Arc<str>)> =
        read(&web, &policy).findings.iter().map(|f| (f.rule, Arc::clone(&f.key))).collect();
    let ignored = |key| ("ProbeSettingIgnored", Arc::from(full(key)));
    let keys = ["azure-load-balancer-health-probe-interval", "port_80_health-probe_port"];
    assert_eq!(noted, keys.map(ignored));
    let health = Some((ProbeName::HealthCheck(31000), 31000));
    assert_eq!(probes(&local(&[]), &policy)[0], health);
}

#[test]
fn an_agent_answers_for_local_services_and_for_nodes() {
    let asked = |service: &Service, policy: &Policy| -> Vec<Option<(u16, String)>> {
        let path = |p: ProbeIntent| (p.port, p.path.as_deref().unwrap_or_default().to_owned());
        read_ok(service, policy).rules.into_iter().map(|r| r.probe.map(path)).collect()
    };
    let health_check = HealthCheck::Agent { port: 10272, majority_percent: 50 };
    let nics = Policy { health_check, pools: PoolKind::NodeNic, ..policy() };
    let of_service = Some((10272, "/services/default/web".to_owned()));
    let all = [of_service.clone(), of_service.clone(), of_service];
    assert_eq!(asked(&local(&[]), &nics), all);
    // The probe's name is the one that it has without agents: it is changed where it stands.
    let name = Some((ProbeName::HealthCheck(31000), 10272));
    assert_eq!(probes(&local(&[]), &nics)[0], name);
    // Behind the PROXY protocol as well: an agent reads it.
    let link = [INTERNAL, ("azure-pls-create", "true"), ("azure-pls-proxy-protocol", "true")];
    assert_eq!(asked(&local(&link), &nics), all);
    // Ports of Cluster Services keep their own probes, which ask the application.
    assert_eq!(probes(&service(&[]), &nics), probes(&service(&[]), &policy()));
    let path = Arc::from("/healthz");
    let cluster_probe = ClusterProbe::Shared { port: 10256, path };
    let shared = Policy { cluster_probe, ..nics.clone() };
    let node = Some((10272, "/node".to_owned()));
    assert_eq!(asked(&service(&[]), &shared), [node.clone(), node.clone()]);
    let mut bare = service(&[]);
    bare.ports.iter_mut().for_each(|p| p.node_port = None);
    assert_eq!(asked(&bare, &nics), [node.clone(), node]);
}

#[test]
fn the_documented_table_of_probes_holds() {
    use ProbeProtocol::{Http, Https, Tcp};
    let standard = BalancerSku::Standard;
    let rows = [
        (standard, None, None, Tcp, None),
        (standard, None, Some("/ready"), Tcp, None),
        (standard, Some("tcp"), Some("/ready"), Tcp, None),
        (standard, Some("http"), None, Http, Some("/")),
        (standard, Some("HTTPS"), Some("/ready"), Https, Some("/ready")),
        (standard, Some("grpc"), Some("/ready"), Tcp, None),
        (BalancerSku::Basic, Some("http"), Some("/ready"), Http, Some("/ready")),
        (BalancerSku::Basic, Some("https"), None, Tcp, None),
    ];
    for (sku, app, path, protocol, wanted) in rows {
        let path = path.map(|p| ("azure-load-balancer-health-probe-request-path", p));
        let mut web = service(path.as_slice());
        web.ports[0].app_protocol = app.map(Arc::from);
        let intent = read_ok(&web, &Policy { sku, ..policy() });
        let probe = intent.rules[0].probe.as_ref().expect("TCP is probed");
        assert_eq!((probe.protocol, probe.path.as_deref()), (protocol, wanted), "{sku:?} {app:?}");
    }
    let mut udp = service(&[]);
    udp.ports = vec![port("dns", Protocol::Udp, 53, 30053)];
    assert_eq!(probes(&udp, &policy()), [None]);
}

#[test]
fn a_port_goes_before_app_protocol_and_that_before_the_annotation_for_all() {
    let mut web = service(&[
        ("azure-load-balancer-health-probe-protocol", "http"),
        ("port_443_health-probe_protocol", "https"),
        ("port_443_health-probe_num-of-probe", "4"),
        ("azure-load-balancer-health-probe-num-of-probe", "5"),
    ]);
    web.ports[1].app_protocol = Some("http".into());
    web.ports.push(port("grpc", Protocol::Tcp, 50, 30050));
    web.ports[2].app_protocol = Some("grpc".into());
    let intent = read_ok(&web, &policy());
    let probes: Vec<_> = intent.rules.iter().filter_map(|r| r.probe.as_ref()).collect();
    let found: Vec<_> = probes.iter().map(|p| (p.protocol, p.threshold)).collect();
    use ProbeProtocol::{Http, Https, Tcp};
    assert_eq!(found, [(Http, 5), (Https, 4), (Tcp, 5)]);
}

/// What a template has left empty is no protocol, and not the absence of the annotation.
#[test]
fn an_empty_protocol_of_a_port_counts_as_tcp() {
    let mut web = service(&[
        ("port_80_health-probe_protocol", " "),
        ("azure-load-balancer-health-probe-protocol", "http"),
    ]);
    web.ports.iter_mut().for_each(|port| port.app_protocol = Some("https".into()));
    let reading = read(&web, &policy());
    assert_eq!(names(&reading.findings), ["InvalidProbeProtocol"]);
    let rules = reading.intent.expect("accepted").rules;
    let probes = rules.iter().filter_map(|rule| rule.probe.as_ref());
    let protocols: Vec<_> = probes.map(|probe| probe.protocol).collect();
    assert_eq!(protocols, [ProbeProtocol::Tcp, ProbeProtocol::Https]);
}

#[test]
fn high_availability_ports_are_one_rule_with_the_first_probe() {
    let ha = ("azure-load-balancer-enable-high-availability-ports", "true");
    let mut web = service(&[INTERNAL, ha]);
    web.ports.insert(0, port("dns", Protocol::Udp, 53, 30053));
    let rules = read_ok(&web, &policy()).rules;
    assert_eq!(rules.len(), 1);
    assert_eq!(rules[0].kind, RuleKind::AllPorts { protocol: Protocol::Udp, port: 53 });
    assert_eq!(rules[0].probe.as_ref().map(|p| p.port), Some(30080));
    web.annotations = service(&[ha]).annotations;
    assert_eq!(read_ok(&web, &policy()).rules.len(), 3);
}

#[test]
fn high_availability_ports_have_the_first_probe_that_can_be_made() {
    let ha = ("azure-load-balancer-enable-high-availability-ports", "true");
    let asked = |more: &[(&str, &str)]| {
        let mut all = vec![INTERNAL, ha];
        all.extend(more);
        let reading = read(&service(&all), &policy());
        let probe = reading.intent.map(|i| i.rules[0].probe.as_ref().map(|p| p.port));
        (probe, names(&reading.findings))
    };
    let ignored = "ProbeSettingIgnored";
    let http = ("port_80_health-probe_protocol", "http");
    for (key, value) in [
        ("port_80_health-probe_port", "admin"),
        ("port_80_health-probe_interval", "3"),
        ("port_80_health-probe_num-of-probe", "1"),
        ("port_80_health-probe_interval", "60"),
        ("port_80_health-probe_request-path", "ready"),
    ] {
        assert_eq!(asked(&[http, (key, value)]), (Some(Some(30443)), vec![ignored]), "{key}");
    }
    // The first one is right: nothing is read of those behind it.
    let behind = ("port_443_health-probe_interval", "3");
    assert_eq!(asked(&[behind]), (Some(Some(30080)), vec![]));
    // None is right.
    let first = ("port_80_health-probe_port", "admin");
    assert_eq!(asked(&[first, behind]), (None, vec!["InvalidProbePort", "InvalidProbeInterval"]));
    let all = ("azure-load-balancer-health-probe-interval", "3");
    assert_eq!(asked(&[all]), (None, vec!["InvalidProbeInterval"]));
    let own = ("port_443_health-probe_interval", "9");
    assert_eq!(asked(&[all, own]), (Some(Some(30443)), vec![ignored]));
    // Findings tell what is probed instead.
    let reading = read(&service(&[INTERNAL, ha, first]), &policy());
    let finding = &reading.findings[0];
    assert_eq!((finding.severity, &*finding.value), (Severity::Note, "admin"));
    assert!(finding.message.ends_with("as port 443 is"), "{}", finding.message);
}

#[test]
fn without_node_ports_the_node_is_probed() {
    let strip = |annotations: &[(&str, &str)]| {
        let mut web = service(annotations);
        web.ports.iter_mut().for_each(|p| p.node_port = None);
        web
    };
    let shared = Some((ProbeName::Shared, 10256));
    assert_eq!(probes(&strip(&[]), &policy()), [shared.clone(), shared.clone()]);
    let other = strip(&[("port_80_health-probe_port", "9000")]);
    assert_eq!(probes(&other, &policy()), [Some((ProbeName::Rule, 9000)), shared]);
    let translated = strip(&[("azure-disable-load-balancer-floating-ip", "true")]);
    assert_eq!(names(&read(&translated, &policy()).findings), ["NodePortsRequired"]);
    let mut six = strip(&[INTERNAL]);
    six.families = vec![Family::V6];
    assert_eq!(names(&read(&six, &policy()).findings), ["NodePortsRequired"]);
}

/// Both probes have one name: one load balancer cannot have them at two ports.
#[test]
fn a_node_is_probed_where_the_cloud_config_says() {
    let path: Arc<str> = Arc::from("/alive");
    let cluster_probe = ClusterProbe::Shared { port: 10300, path };
    let policy = Policy { cluster_probe, ..policy() };
    let mut web = local(&[]);
    web.health_check_node_port = None;
    web.ports.truncate(2);
    web.ports.iter_mut().for_each(|p| p.node_port = None);
    let shared = Some((ProbeName::Shared, 10300));
    assert_eq!(probes(&web, &policy), [shared.clone(), shared]);
}

#[test]
fn sctp_is_for_internal_standard_load_balancers() {
    let sctp = |annotations: &[(&str, &str)], sku| {
        let mut web = service(annotations);
        web.ports = vec![port("s", Protocol::Sctp, 5000, 30500)];
        names(&read(&web, &Policy { sku, ..policy() }).findings)
    };
    assert_eq!(sctp(&[], BalancerSku::Standard), ["UnsupportedSctp"]);
    assert_eq!(sctp(&[INTERNAL], BalancerSku::Basic), ["UnsupportedSctp"]);
    assert_eq!(sctp(&[INTERNAL], BalancerSku::Standard), Vec::<&str>::new());
    assert_eq!(
        sctp(&[("port_5000_no_lb_rule", "true")], BalancerSku::Standard),
        Vec::<&str>::new()
    );
}

#[test]
fn a_probe_is_not_slower_than_two_minutes() {
    let found = |interval, count| {
        let both = [
            ("azure-load-balancer-health-probe-interval", interval),
            ("azure-load-balancer-health-probe-num-of-probe", count),
        ];
        names(&read(&service(&both), &policy()).findings)
    };
    assert_eq!(found("10", "4"), Vec::<&str>::new());
    assert_eq!(found("59", "2"), Vec::<&str>::new());
    assert_eq!(found("60", "2"), ["ProbeTooSlow"]);
    assert_eq!(found("4294967295", "4294967295"), ["ProbeTooSlow"]);
    assert_eq!(found("", "2"), ["InvalidProbeInterval"]);
    assert_eq!(found("5s", "1"), ["InvalidProbeInterval", "InvalidProbeCount"]);
}
