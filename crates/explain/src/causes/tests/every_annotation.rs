//! No annotation is forgotten: each of the table, on a Service where it counts, is the cause of
//! something.

use super::stage::{self, annotated, explained, node_world, policy, port};
use crate::causes::{Explanation, Source};
use model::kubernetes::Service;
use model::policy::{Layout, PoolKind};
use model::{Family, Policy, World};
use plan::ask::annotation::{
    CONFIRM, CONFIRMED, DISCONNECT, PAUSE, PORT, PROTECT, RETRY, SHARE, TABLE, full,
};

const RANGE: &str = "203.0.113.0/24";
const PREFIX_ID: &str =
    "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network/publicIPPrefixes/p";
const INTERNAL: (&str, &str) = ("azure-load-balancer-internal", "true");
const LINK: (&str, &str) = ("azure-pls-create", "true");
const HTTP: (&str, &str) = ("azure-load-balancer-health-probe-protocol", "http");

/// A value for a key, and what else the Service has to say for it to count.
fn telling(key: &str) -> (&'static str, Vec<(&'static str, &'static str)>) {
    match key.strip_prefix("port_{port}_").unwrap_or(key) {
        "azure-load-balancer-internal-subnet" => ("apps", vec![INTERNAL]),
        "azure-load-balancer-mode" => ("vmss2", vec![]),
        SHARE => ("team-b", vec![]),
        "azure-load-balancer-configurations" => ("lb2", vec![]),
        "azure-load-balancer-ipv4" => ("10.0.0.99", vec![INTERNAL]),
        "azure-load-balancer-ipv6" => ("fd00::99", vec![INTERNAL]),
        "azure-additional-public-ips" => ("20.9.9.9", vec![]),
        "azure-load-balancer-tcp-idle-timeout" => ("30", vec![]),
        "azure-load-balancer-enable-high-availability-ports" => ("true", vec![INTERNAL]),
        "azure-load-balancer-health-probe-protocol" | "health-probe_protocol" => ("http", vec![]),
        "azure-load-balancer-health-probe-interval" | "health-probe_interval" => ("10", vec![]),
        "azure-load-balancer-health-probe-num-of-probe"
        | "load-balancer-health-probe-num-of-probe"
        | "health-probe_num-of-probe" => ("3", vec![]),
        CONFIRMED => ("20.0.0.1", vec![]),
        RETRY => ("2026-11-25T03:00:00Z", vec![]),
        "azure-load-balancer-health-probe-request-path" | "health-probe_request-path" => {
            ("/ready", vec![HTTP])
        }
        "health-probe_port" => ("9000", vec![]),
        "azure-allowed-service-tags" => ("AzureCloud", vec![]),
        "azure-allowed-ip-ranges" | "load-balancer-source-ranges" => (RANGE, vec![]),
        "azure-deny-all-except-load-balancer-source-ranges" => {
            ("true", vec![("azure-allowed-ip-ranges", RANGE)])
        }
        "azure-pip-name" | "azure-pip-name-ipv6" => ("brought", vec![]),
        "azure-pip-prefix-id" | "azure-pip-prefix-id-ipv6" => (PREFIX_ID, vec![]),
        "azure-load-balancer-resource-group" => ("other", vec![]),
        "azure-dns-label-name" => ("shop", vec![]),
        "azure-pip-tags" => ("team=web", vec![]),
        "azure-pip-ip-tags" => ("RoutingPreference=Internet", vec![]),
        "azure-pls-create" => ("true", vec![INTERNAL]),
        "azure-pls-name" => ("link", vec![INTERNAL, LINK]),
        "azure-pls-resource-group" => ("other", vec![INTERNAL, LINK]),
        "azure-pls-ip-configuration-subnet" => ("apps", vec![INTERNAL, LINK]),
        "azure-pls-ip-configuration-ip-address-count" => ("2", vec![INTERNAL, LINK]),
        "azure-pls-ip-configuration-ip-address" => ("10.0.0.98", vec![INTERNAL, LINK]),
        "azure-pls-fqdns" => ("web.example", vec![INTERNAL, LINK]),
        "azure-pls-proxy-protocol" => ("true", vec![INTERNAL, LINK]),
        "azure-pls-visibility" => ("00000000-0000-0000-0000-000000000009", vec![INTERNAL, LINK]),
        "azure-pls-auto-approval" => (
            "00000000-0000-0000-0000-000000000009",
            vec![INTERNAL, LINK, ("azure-pls-visibility", "*")],
        ),
        // The other flags.
        _ => ("true", vec![]),
    }
}

fn stage(key: &str, service: &Service) -> (World, Policy) {
    let mut world = node_world(service);
    let mut policy = policy();
    let family = if key.contains("ipv6") { Family::V6 } else { Family::V4 };
    match key {
        "azure-pip-name" | "azure-pip-name-ipv6" => stage::bring(&mut world, "brought", family),
        "azure-load-balancer-mode" => {
            policy.layout = Layout::PerNodeSet { without_own: Vec::new() };
            stage::add_node(&mut world, "vmss2", 6);
        }
        "azure-load-balancer-configurations" => {
            policy.layout = Layout::Several(vec![
                fixture::load_balancer_config("kubernetes", "vmss1"),
                fixture::load_balancer_config("lb2", "vmss2"),
            ]);
        }
        // None stands before pools of addresses.
        _ if key.contains("-pls-") => policy.pools = PoolKind::NodeNic,
        _ => {}
    }
    (world, policy)
}

/// Everything that an explanation names this annotation for.
fn named(explanation: &Explanation, key: &str) -> usize {
    let is_it =
        |source: &Source| matches!(source, Source::Annotation { key: k, .. } if **k == *key);
    let mut count = 0;
    for resource in &explanation.resources {
        let parts = resource.parts.iter();
        let fields = resource.fields.iter().chain(parts.clone().flat_map(|p| &p.fields));
        let sources = fields.map(|f| &f.sources).chain(parts.map(|p| &p.sources));
        count += sources.chain([&resource.sources]).flatten().filter(|s| is_it(s)).count();
    }
    count += explanation.absent.iter().filter(|a| is_it(&a.source)).count();
    count + explanation.needed.iter().filter(|n| is_it(&n.source)).count()
}

#[test]
fn every_annotation_of_the_table_is_the_cause_of_something() {
    for entry in TABLE {
        let key = entry.key.replace(PORT, "80");
        let (value, mut rest) = telling(entry.key);
        rest.push((key.as_str(), value));
        let mut service = annotated(&rest);
        service.ports.push(port(443, 30_443));
        if key.contains("ipv6") {
            service.families = vec![Family::V4, Family::V6];
        }
        let (world, policy) = stage(entry.key, &service);
        let found = explained(&world, &policy, &service);
        let whole = full(&key);
        let unused = found.unused.iter().find(|u| *u.key == *whole);
        if key == PAUSE {
            assert!(found.findings.iter().all(|f| *f.key == *whole), "{:?}", found.findings);
            assert_eq!(found.findings.len(), 1, "the Service is held");
            continue;
        }
        assert!(found.findings.is_empty(), "{key}: {:?}", found.findings);
        if entry.skus.is_empty() {
            assert!(!unused.expect(&key).reason.is_empty());
            continue;
        }
        assert_eq!(unused, None, "{key} counts here");
        // Others' Services have something by it, this one has not; or it has once it goes, or once
        // Azure refuses it.
        let later = [SHARE, DISCONNECT, PROTECT, CONFIRM, CONFIRMED, RETRY];
        let counts = named(&found, &whole) > 0 || later.contains(&&*key);
        assert!(counts, "{key} is the cause of nothing");
    }
}

/// Annotations that a container load balancer cannot do, and not to do it would matter.
const REFUSED: [&str; 4] = [
    "azure-load-balancer-internal",
    "azure-allowed-service-tags",
    "azure-allowed-ip-ranges",
    "load-balancer-source-ranges",
];

#[test]
fn every_annotation_without_effect_has_a_reason() {
    // On a container load balancer hardly anything counts.
    let mut policy = policy();
    policy.sku = model::policy::BalancerSku::Service;
    policy.layout = Layout::PerService;
    policy.pools = PoolKind::PodIp;
    for entry in TABLE {
        let key = entry.key.replace(PORT, "80");
        let (value, _) = telling(entry.key);
        let service = annotated(&[(key.as_str(), value)]);
        let found = explained(&node_world(&service), &policy, &service);
        let whole = full(&key);
        if REFUSED.contains(&entry.key) {
            assert!(found.findings.iter().any(|f| *f.key == *whole), "{key} is not refused");
            continue;
        }
        let unused = found.unused.iter().find(|u| *u.key == *whole);
        match entry.works_on(policy.sku) {
            true if [PAUSE, PROTECT, RETRY].contains(&&*key) => {
                assert_eq!(unused, None, "{key}: a Service of any layout can be held");
            }
            true => assert!(named(&found, &whole) > 0, "{key}"),
            false => assert_eq!(
                unused.expect(&key).reason,
                format!("{value:?} has no effect on container load balancers")
            ),
        }
    }
}
