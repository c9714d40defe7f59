//! Reading never panics, says the same twice, and refuses if and only if it says so.

use super::*;
use crate::ask::annotation::{PORT, TABLE};
use proptest::prelude::*;

fn value() -> impl Strategy<Value = String> {
    let words = [
        "",
        "true",
        "True",
        " true",
        "false",
        "yes",
        "0",
        "1",
        "4",
        "5",
        "80",
        "443",
        "65535",
        "65536",
        "-1",
        "http",
        "https",
        "tcp",
        "/",
        "ready",
        "10.0.0.0/8",
        "10.0.0.1/8",
        "::/0",
        "0.0.0.0/0",
        "20.1.2.3",
        "fd00::1",
        "a=b,c=d",
        "=",
        ",",
        " ",
        "*",
        "é",
        "__auto__",
        "kubernetes",
        "a-b",
    ];
    let word = proptest::sample::select(words.to_vec()).prop_map(str::to_owned);
    let list = proptest::collection::vec(word.clone(), 0..4);
    prop_oneof![word, list.prop_map(|l| l.join(",")), "\\PC{0,12}"]
}

fn key() -> impl Strategy<Value = String> {
    let port = proptest::sample::select(vec!["80", "443", "53", "31000", "99999", "x", ""]);
    let known = proptest::sample::select(TABLE.iter().map(|a| a.key).collect::<Vec<_>>());
    let known = (known, port).prop_map(|(key, port)| key.replace(PORT, port));
    prop_oneof![9 => known, 1 => "(azure-|port_)\\PC{0,20}"]
}

prop_compose! {
    fn any_port()(
        name in "[a-z]{0,5}",
        protocol in proptest::sample::select(Protocol::ALL.to_vec()),
        port in any::<u16>(),
        node_port in any::<Option<u16>>(),
        target in any::<Option<u16>>(),
        app in proptest::option::of(value()),
    ) -> ServicePort {
        ServicePort {
            name: name.into(),
            protocol,
            port,
            target_port: target.map_or(TargetPort::Name("x".into()), TargetPort::Number),
            node_port,
            app_protocol: app.map(Arc::from),
        }
    }
}

prop_compose! {
    pub(super) fn any_service()(
        annotations in proptest::collection::btree_map(key(), value(), 0..12),
        ports in proptest::collection::vec(any_port(), 0..4),
        families in proptest::sample::subsequence(Family::ALL.to_vec(), 0..=2),
        local in any::<bool>(),
        health in any::<Option<u16>>(),
        address in proptest::option::of(value()),
        ranges in proptest::collection::vec(value(), 0..3),
    ) -> Service {
        let pairs: Vec<(&str, &str)> =
            annotations.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        let mut service = service(&pairs);
        service.ports = ports;
        service.families = families;
        if local {
            service.traffic_policy = TrafficPolicy::Local;
        }
        service.health_check_node_port = health;
        service.load_balancer_ip = address.map(Arc::from);
        service.source_ranges = ranges.into_iter().map(Arc::from).collect();
        service
    }
}

pub(super) fn any_policy() -> impl Strategy<Value = Policy> {
    let layouts = vec![
        (BalancerSku::Standard, Layout::Single),
        (BalancerSku::Standard, annotations::several()),
        (BalancerSku::Basic, Layout::PerNodeSet { without_own: Vec::new() }),
    ];
    let pools = vec![
        (PoolKind::NodeNic, Preconfigured::None),
        (PoolKind::NodeIp, Preconfigured::None),
        (PoolKind::NodeIp, Preconfigured::Internal),
        (PoolKind::NodeIp, Preconfigured::External),
        (PoolKind::NodeIp, Preconfigured::All),
    ];
    let parts = (proptest::sample::select(layouts), proptest::sample::select(pools));
    parts.prop_map(|((sku, layout), (pools, preconfigured))| Policy {
        sku,
        layout,
        pools,
        preconfigured,
        ..policy()
    })
}

fn refuses(findings: &[Finding]) -> bool {
    findings.iter().any(|f| f.severity == Severity::Refusal)
}

proptest! {
    #[test]
    fn reading_is_total_and_deterministic(service in any_service(), policy in any_policy()) {
        let reading = read(&service, &policy);
        prop_assert_eq!(&reading, &read(&service, &policy));
        prop_assert_eq!(reading.intent.is_none(), refuses(&reading.findings));
        for finding in &reading.findings {
            let listed = rules::RULES.iter().find(|r| r.name == finding.rule);
            prop_assert_eq!(listed.map(|r| r.severity), Some(finding.severity));
        }
        if let Some(intent) = reading.intent {
            for probe in intent.rules.iter().filter_map(|r| r.probe.as_ref()) {
                let s = u32::from(probe.interval_s) * u32::from(probe.threshold);
                prop_assert!(probe.interval_s >= 5 && probe.threshold >= 2 && s < 120);
                prop_assert_eq!(probe.path.is_none(), probe.protocol == ProbeProtocol::Tcp);
            }
            let public = intent.exposure == Exposure::Public;
            let wanted = if public { intent.families.len() } else { 0 };
            prop_assert_eq!(intent.public_ips.len(), wanted);
        }
    }

    #[test]
    fn reading_for_containers_is_total_and_deterministic(service in any_service()) {
        let policy = Policy { sku: BalancerSku::Service, layout: Layout::PerService, ..policy() };
        let reading = container::read(&service, &policy);
        prop_assert_eq!(&reading, &container::read(&service, &policy));
        prop_assert_eq!(reading.intent.is_none(), refuses(&reading.findings));
    }
}
