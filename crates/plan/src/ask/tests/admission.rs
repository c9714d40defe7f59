//! Admission to the container load balancer.

use super::super::container::{self, ContainerIntent, ContainerPort};
use super::*;
use crate::ask::annotation;

fn read(service: &Service) -> Reading<ContainerIntent> {
    let policy = Policy { sku: BalancerSku::Service, layout: Layout::PerService, ..policy() };
    container::read(service, &policy)
}

fn plain(annotations: &[(&str, &str)]) -> Service {
    let mut service = service(annotations);
    service.ports[1].target_port = TargetPort::Number(0);
    service
}

#[test]
fn a_plain_service_is_admitted() {
    let reading = read(&plain(&[("azure-load-balancer-tcp-idle-timeout", " 10 ")]));
    assert_eq!(reading.findings, []);
    let intent = reading.intent.expect("nothing is wrong");
    assert_eq!((intent.family, intent.idle_timeout_min), (Family::V4, 10));
    let port = |port, backend_port| ContainerPort { protocol: Protocol::Tcp, port, backend_port };
    assert_eq!(intent.ports, [port(80, 8080), port(443, 443)]);
    let mut both = plain(&[]);
    both.ports[1] = ServicePort { protocol: Protocol::Udp, ..both.ports[0].clone() };
    assert!(read(&both).intent.is_some());
}

#[test]
fn each_check_refuses_under_its_own_name() {
    type Spoil = fn(&mut Service);
    let checks: [(Spoil, &str); 11] = [
        (|s| s.annotations = service(&[INTERNAL]).annotations, "UnsupportedInternalLoadBalancer"),
        (|s| s.affinity = Affinity::ClientIp, "UnsupportedSessionAffinity"),
        (|s| s.load_balancer_ip = Some("20.1.2.3".into()), "UnsupportedLoadBalancerIP"),
        (|s| s.families = vec![Family::V4, Family::V6], "UnsupportedDualStack"),
        (
            |s| {
                let timeout = [("azure-load-balancer-tcp-idle-timeout", "31")];
                s.annotations = service(&timeout).annotations;
            },
            "InvalidIdleTimeout",
        ),
        (|s| s.ports[0].protocol = Protocol::Sctp, "UnsupportedProtocol"),
        (
            |s| {
                s.ports[0].protocol = Protocol::Sctp;
                s.ports[0].target_port = TargetPort::Name("http".into());
            },
            "UnsupportedProtocol",
        ),
        (|s| s.ports[1].target_port = TargetPort::Number(8080), "UnsupportedBackendPortCollision"),
        (|s| s.ports[0].port = 65535, "InvalidFrontendPort"),
        (|s| s.ports[0].port = 0, "InvalidFrontendPort"),
        (
            |s| {
                s.ports[1].port = 0;
                s.ports[1].target_port = TargetPort::Number(0);
            },
            "InvalidBackendPort",
        ),
    ];
    for (spoil, rule) in checks {
        let mut service = plain(&[]);
        spoil(&mut service);
        let reading = read(&service);
        assert_eq!(reading.intent, None, "{rule}");
        assert!(names(&reading.findings).contains(&rule), "{rule}: {:?}", reading.findings);
    }
}

/// A port has its rule whether its target is a number or a name.
#[test]
fn more_ports_than_a_load_balancer_takes_are_refused() {
    let with = |count: u16| {
        let ports = (1..=count).map(|n| {
            let target_port = match n % 2 {
                0 => TargetPort::Number(n),
                _ => TargetPort::Name(format!("p{n}").into()),
            };
            ServicePort { target_port, ..port(&format!("p{n}"), Protocol::Tcp, n, 30_000 + n) }
        });
        read(&Service { ports: ports.collect(), ..service(&[]) })
    };
    let most = with(1_500);
    assert_eq!(most.findings, []);
    assert!(most.intent.is_some());
    let more = with(1_501);
    assert_eq!(more.intent, None);
    let [finding] = &more.findings[..] else { panic!("{:?}", more.findings) };
    let text = "spec.ports: \"1501 rules\" do not fit on a load balancer; it has at most 1500";
    assert_eq!((finding.rule, &*finding.to_string()), ("LoadBalancerRuleLimit", text));
}

#[test]
fn every_key_that_does_nothing_here_is_noted_once() {
    for entry in annotation::TABLE {
        let key = entry.key.replace(annotation::PORT, "80");
        if SOURCES.contains(&entry.key) {
            continue;
        }
        let reading = read(&plain(&[(key.as_str(), "true")]));
        let ignored = names(&reading.findings) == ["IgnoredByContainerLoadBalancer"];
        assert_eq!(ignored, !entry.works_on(BalancerSku::Service), "{key}");
    }
}

#[test]
fn who_asks_to_keep_somebody_out_is_refused() {
    const REFUSED: &str = "UnenforcedSources";
    const NOTED: &str = "IgnoredByContainerLoadBalancer";
    let annotated = |key: &str, value: &str| names(&read(&plain(&[(key, value)])).findings);
    for key in SOURCES {
        assert_eq!(annotated(key, "10.0.0.0/8, 0.0.0.0/0"), [NOTED], "{key}");
        // A list without an entry opens nothing on the other load balancers, either.
        for none in ["", " , "] {
            assert_eq!(annotated(key, none), [REFUSED], "{key}");
        }
        assert_eq!(annotated(key, "10.0.0.0/8, ::/0"), [REFUSED], "{key}");
        assert_eq!(annotated(key, "Storage"), [REFUSED], "{key}");
    }
    assert_eq!(annotated("azure-allowed-service-tags", "Storage,Internet"), [NOTED]);
    let beside = [("azure-allowed-service-tags", "Internet"), ("azure-allowed-ip-ranges", "")];
    assert_eq!(names(&read(&plain(&beside)).findings), [NOTED; 2], "one opens to all");
    let empty = read(&plain(&[("azure-allowed-ip-ranges", "")]));
    let text = "service.beta.kubernetes.io/azure-allowed-ip-ranges: allows no source, which cannot \
                be enforced on container load balancers; remove it, and use a NetworkPolicy";
    assert_eq!(empty.findings[0].to_string(), text);
    let deny = "azure-deny-all-except-load-balancer-source-ranges";
    assert_eq!(annotated(deny, "true"), [NOTED], "it has no effect without ranges anywhere");

    let ranged = |family: Family, ranges: &[&str]| {
        let mut service = plain(&[]);
        service.families = vec![family];
        service.source_ranges = ranges.iter().map(|range| Arc::from(*range)).collect();
        read(&service)
    };
    assert_eq!(names(&ranged(Family::V4, &["10.0.0.0/8", " 0.0.0.0/0 "]).findings), [NOTED]);
    assert_eq!(names(&ranged(Family::V6, &["::/0"]).findings), [NOTED]);
    assert_eq!(names(&ranged(Family::V6, &["0.0.0.0/0"]).findings), [REFUSED]);
    let reading = ranged(Family::V4, &["10.0.0.0/8", "192.0.2.0/24"]);
    assert_eq!(names(&reading.findings), [REFUSED]);
    let finding = &reading.findings[0];
    assert_eq!(&*finding.key, "spec.loadBalancerSourceRanges");
    assert_eq!(&*finding.value, "10.0.0.0/8,192.0.2.0/24");
    assert_eq!(reading.intent, None);
}

/// Where nodes are behind a load balancer kube-proxy drops all other sources, whatever the security
/// group lets in.
#[test]
fn who_has_kube_proxy_keep_somebody_out_is_refused_whatever_else_is_open() {
    const CORE: &str = "load-balancer-source-ranges";
    let found = |annotations: &[(&str, &str)], field: &[&str]| {
        let mut service = plain(annotations);
        service.source_ranges = field.iter().map(|range| Arc::from(*range)).collect();
        let refused = read(&service).findings;
        let refused = refused.into_iter().filter(|found| found.rule == "UnenforcedSources");
        refused.map(|found| found.key.to_string()).collect::<Vec<_>>()
    };
    let field = ["spec.loadBalancerSourceRanges"];
    let core = [full(CORE)];
    let tags = ("azure-allowed-service-tags", "Internet");
    for open in [tags, ("azure-allowed-ip-ranges", "0.0.0.0/0")] {
        assert_eq!(found(&[open], &["203.0.113.0/24"]), field);
        assert_eq!(found(&[open, (CORE, "203.0.113.0/24")], &[]), core);
        // Of the two kube-proxy heeds the field.
        assert_eq!(found(&[open, (CORE, "203.0.113.0/24")], &["0.0.0.0/0"]), [""; 0]);
        assert_eq!(found(&[open, (CORE, "")], &[]), [""; 0]);
    }
}
