//! Every annotation: what it does, and what comes of a wrong value.

use super::*;
use crate::ask::annotation::{
    CONFIRM, CONFIRMED, DISCONNECT, PAUSE, PORT, PROTECT, RETRY, SHARE, TABLE,
};
use fixture::several;
use model::azure::Distribution;

/// An annotation under test.
struct Case {
    key: &'static str,
    /// Annotations beside it.
    beside: &'static [(&'static str, &'static str)],
    good: &'static str,
    /// True with the good value, false without the annotation.
    effect: fn(&Intent) -> bool,
    bad: &'static str,
    rule: &'static str,
}

fn layout(key: &str) -> Layout {
    match key {
        "azure-load-balancer-mode" => Layout::PerNodeSet { without_own: Vec::new() },
        "azure-load-balancer-configurations" => several(),
        _ => Layout::Single,
    }
}

fn families(key: &str) -> Vec<Family> {
    if key.ends_with("ipv6") { Family::ALL.to_vec() } else { vec![Family::V4] }
}

fn probe(intent: &Intent) -> Option<&ProbeIntent> {
    intent.rules.first()?.probe.as_ref()
}

fn ranged(intent: &Intent) -> bool {
    intent.access.ranges.get(&Family::V4).is_some_and(|r| *r == [net("10.0.0.0/8")])
}

fn is_pinned(intent: &Intent) -> bool {
    intent.public_ips.get(&Family::V4) == Some(&PublicIpIntent::Pinned)
}

fn link(intent: &Intent) -> &PrivateLinkIntent {
    intent.private_link.as_ref().expect("created beside")
}

fn prefix_of(intent: &Intent, family: Family) -> bool {
    let source = intent.public_ips.get(&family);
    matches!(source, Some(PublicIpIntent::Managed { prefix: Some(id) }) if id.name() == "p")
}

const PREFIX_ID: &str =
    "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network/publicIPPrefixes/p";
const NOTHING: &[(&str, &str)] = &[];
const INSIDE: &[(&str, &str)] = &[INTERNAL];
const LINK: &[(&str, &str)] = &[INTERNAL, ("azure-pls-create", "true")];
const SEEN_LINK: &[(&str, &str)] =
    &[INTERNAL, ("azure-pls-create", "true"), ("azure-pls-visibility", "*")];
const HTTP: &[(&str, &str)] = &[("port_80_health-probe_protocol", "http")];
const RANGED: &[(&str, &str)] = &[("azure-allowed-ip-ranges", "10.0.0.0/8")];

macro_rules! cases {
    ($($key:literal $beside:ident $good:expr, $effect:expr, $bad:literal $rule:literal;)*) => {
        &[$(Case {
            key: $key, beside: $beside, good: $good, effect: $effect, bad: $bad, rule: $rule,
        }),*]
    };
}

static CASES: &[Case] = cases! {
    "azure-load-balancer-internal" NOTHING
        "true", |i| i.exposure == Exposure::Internal, "yes" "InvalidBoolean";
    "azure-load-balancer-internal-subnet" INSIDE
        "apps", |i| i.subnet.as_deref() == Some("apps"), "a/b" "InvalidSubnet";
    "azure-load-balancer-mode" NOTHING
        "set1", |i| i.placement.mode == PlacementMode::Set("set1".into()), "a b" "InvalidNodeSet";
    "azure-load-balancer-configurations" NOTHING
        "LB2", |i| i.placement.configurations == ["lb2".into()], "lb9" "UnknownConfiguration";
    "azure-load-balancer-ipv4" NOTHING
        "20.1.2.3", |i| is_pinned(i),
        "fd00::1" "PrivatePinnedAddress";
    "azure-load-balancer-ipv6" NOTHING
        "2603::1", |i| i.pinned.contains_key(&Family::V6), "20.1.2.3" "InvalidPinnedAddress";
    "azure-additional-public-ips" NOTHING
        "20.1.2.3, 20.1.2.4", |i| i.additional.len() == 2,
        "20.1.2.3,host" "InvalidAdditionalAddress";
    "azure-load-balancer-tcp-idle-timeout" NOTHING
        "100", |i| i.rule_options.idle_timeout_min == 100, "101" "InvalidIdleTimeout";
    "azure-load-balancer-enable-high-availability-ports" INSIDE
        "True", |i| matches!(i.rules[0].kind, RuleKind::AllPorts { .. }), "1" "InvalidBoolean";
    "azure-disable-load-balancer-floating-ip" NOTHING
        "true", |i| i.rule_options.floating_ip == FloatingIp::Disabled, "on" "InvalidBoolean";
    "azure-load-balancer-disable-tcp-reset" NOTHING
        "true", |i| i.rule_options.tcp_reset == TcpReset::Disabled, "on" "InvalidBoolean";
    "port_{port}_no_lb_rule" NOTHING
        "true", |i| i.rules.len() == 1 && i.access.ports.len() == 1, "on" "InvalidBoolean";
    "azure-load-balancer-health-probe-protocol" NOTHING
        "Http", |i| probe(i).is_some_and(|p| p.protocol == ProbeProtocol::Http),
        "grpc" "InvalidProbeProtocol";
    "azure-load-balancer-health-probe-interval" NOTHING
        "10", |i| probe(i).is_some_and(|p| p.interval_s == 10), "4" "InvalidProbeInterval";
    "azure-load-balancer-health-probe-num-of-probe" NOTHING
        "3", |i| probe(i).is_some_and(|p| p.threshold == 3), "1" "InvalidProbeCount";
    "load-balancer-health-probe-num-of-probe" NOTHING
        "3", |i| probe(i).is_some_and(|p| p.threshold == 3), "1" "InvalidProbeCount";
    "azure-load-balancer-health-probe-request-path" HTTP
        "/r", |i| probe(i).is_some_and(|p| p.path.as_deref() == Some("/r")),
        "r" "InvalidRequestPath";
    "port_{port}_no_probe_rule" NOTHING
        "true", |i| i.rules.len() == 2 && probe(i).is_none(), "on" "InvalidBoolean";
    "port_{port}_health-probe_protocol" NOTHING
        "https", |i| probe(i).is_some_and(|p| p.protocol == ProbeProtocol::Https),
        "grpc" "InvalidProbeProtocol";
    "port_{port}_health-probe_port" NOTHING
        "HTTPS", |i| probe(i).is_some_and(|p| p.port == 30443), "admin" "InvalidProbePort";
    "port_{port}_health-probe_interval" NOTHING
        "20", |i| probe(i).is_some_and(|p| p.interval_s == 20), "60" "ProbeTooSlow";
    "port_{port}_health-probe_num-of-probe" NOTHING
        "4", |i| probe(i).is_some_and(|p| p.threshold == 4), "x" "InvalidProbeCount";
    "port_{port}_health-probe_request-path" HTTP
        "/r", |i| probe(i).is_some_and(|p| p.path.as_deref() == Some("/r")),
        "r" "InvalidRequestPath";
    "azure-allowed-service-tags" NOTHING
        "Storage", |i| i.access.tags == ["Storage".into()], "10.0.0.0/8" "InvalidServiceTag";
    "azure-allowed-ip-ranges" NOTHING
        "10.0.0.0/8", |i| ranged(i),
        "10.0.0.1/8" "InvalidSourceRange";
    "load-balancer-source-ranges" NOTHING
        "10.0.0.0/8", |i| ranged(i),
        "all" "InvalidSourceRange";
    "azure-deny-all-except-load-balancer-source-ranges" RANGED
        "true", |i| i.access.deny_all == DenyAll::Yes, "on" "InvalidBoolean";
    "azure-disable-load-balancer-nsg-rule" NOTHING
        "true", |i| i.access.rules == SecurityRules::Disabled, "on" "InvalidBoolean";
    "azure-pip-name" NOTHING
        "ip", |i| i.public_ips[&Family::V4] == PublicIpIntent::Named("ip".into()),
        "rg/ip" "InvalidPublicIpName";
    "azure-pip-name-ipv6" NOTHING
        "ip", |i| i.public_ips[&Family::V6] == PublicIpIntent::Named("ip".into()),
        "rg/ip" "InvalidPublicIpName";
    "azure-pip-prefix-id" NOTHING
        PREFIX_ID, |i| prefix_of(i, Family::V4), "p" "InvalidPublicIpPrefix";
    "azure-pip-prefix-id-ipv6" NOTHING
        PREFIX_ID, |i| prefix_of(i, Family::V6), "/p/q" "InvalidPublicIpPrefix";
    "azure-load-balancer-resource-group" NOTHING
        "IPs", |i| i.public_ip_group.as_str() == "ips", "a/b" "InvalidResourceGroup";
    "azure-dns-label-name" NOTHING
        "my-web", |i| i.public_ip_options.dns_label == DnsLabel::Set("my-web".into()),
        "My.Web" "InvalidDnsLabel";
    "azure-pip-tags" NOTHING
        "a=b", |i| i.public_ip_options.tags.get("a").is_some_and(|v| &**v == "b"),
        "a?=b" "InvalidTag";
    "azure-pip-ip-tags" NOTHING
        "RoutingPreference=Internet", |i| i.public_ip_options.ip_tags.is_some(),
        "Internet" "MalformedTag";
    "azure-pls-create" INSIDE
        "true", |i| i.private_link.is_some(), "on" "InvalidBoolean";
    "azure-pls-name" LINK
        "web", |i| link(i).name.as_deref() == Some("web"), "a/b" "InvalidPrivateLinkName";
    "azure-pls-resource-group" LINK
        "other", |i| link(i).group.as_str() == "other", "a/b" "InvalidResourceGroup";
    "azure-pls-ip-configuration-subnet" LINK
        "apps", |i| &*link(i).subnet == "apps", "a/b" "InvalidSubnet";
    "azure-pls-ip-configuration-ip-address-count" LINK
        "8", |i| link(i).count == 8, "9" "InvalidPrivateLinkCount";
    "azure-pls-ip-configuration-ip-address" LINK
        "10.0.0.9", |i| link(i).addresses.len() == 1, "fd00::1" "InvalidPrivateLinkAddress";
    "azure-pls-fqdns" LINK
        "a.example b.example", |i| link(i).fqdns.len() == 2, "a,b" "InvalidPrivateLinkFqdn";
    "azure-pls-proxy-protocol" LINK
        "true", |i| link(i).proxy_protocol == ProxyProtocol::Enabled, "on" "InvalidBoolean";
    "azure-pls-visibility" LINK
        "a-1 b-2", |i| link(i).visibility.len() == 2, "a,b" "InvalidSubscription";
    "azure-pls-auto-approval" SEEN_LINK
        "a-1", |i| link(i).auto_approval.len() == 1, "a,b" "InvalidSubscription";
};

/// Accepted without effect on the intent, so that they have no row.
const WITHOUT_EFFECT: [&str; 8] =
    ["azure-shared-securityrule", SHARE, DISCONNECT, PAUSE, PROTECT, CONFIRM, CONFIRMED, RETRY];

#[test]
fn every_annotation_has_a_row_here() {
    let tested: BTreeSet<&str> = CASES.iter().map(|c| c.key).chain(WITHOUT_EFFECT).collect();
    let listed: BTreeSet<&str> = TABLE.iter().map(|a| a.key).collect();
    assert_eq!(tested, listed);
    assert_eq!(CASES.len() + WITHOUT_EFFECT.len(), TABLE.len());
}

#[test]
fn every_annotation_does_what_it_says() {
    for case in CASES {
        let link = case.key.contains("-pls-");
        let pools = if link { PoolKind::NodeNic } else { policy().pools };
        let policy = Policy { layout: layout(case.key), pools, ..policy() };
        let key = case.key.replace(PORT, "80");
        let annotated = |value: Option<&'static str>| {
            let mut all = case.beside.to_vec();
            all.extend(value.map(|value| (key.as_str(), value)));
            let mut service = service(&all);
            service.families = families(case.key);
            read(&service, &policy)
        };
        let effect = |reading: &Reading| {
            let intent = reading.intent.as_ref();
            let intent = intent.unwrap_or_else(|| panic!("{key}: {:?}", reading.findings));
            (case.effect)(intent)
        };
        let without = annotated(None);
        assert!(!effect(&without), "{key}: the effect is there without it");
        let good = annotated(Some(case.good));
        assert!(effect(&good), "{key}: no effect");
        assert_eq!(good.findings, [], "{key}");
        let bad = annotated(Some(case.bad));
        assert!(names(&bad.findings).contains(&case.rule), "{key}: {:?}", bad.findings);
        assert!(bad.findings.iter().any(|f| *f.key == *full(&key)), "{key}");
    }
}

#[test]
fn sharing_security_rules_is_always_on() {
    let plain = read(&service(&[]), &policy());
    for value in ["true", "false"] {
        let shared = read(&service(&[(WITHOUT_EFFECT[0], value)]), &policy());
        assert_eq!(names(&shared.findings), ["SharedRulesAlwaysOn"]);
        assert_eq!(shared.intent, plain.intent);
    }
    let odd = read(&service(&[(WITHOUT_EFFECT[0], "on")]), &policy());
    assert_eq!(names(&odd.findings), ["InvalidBoolean", "SharedRulesAlwaysOn"]);
}

#[test]
fn affinity_decides_the_distribution() {
    let mut web = service(&[]);
    assert_eq!(read_ok(&web, &policy()).rule_options.distribution, Distribution::Default);
    web.affinity = Affinity::ClientIp;
    assert_eq!(read_ok(&web, &policy()).rule_options.distribution, Distribution::SourceIp);
}

#[test]
fn an_empty_label_is_removed_and_none_is_left_alone() {
    let label = |annotations: &[(&str, &str)]| {
        read_ok(&service(annotations), &policy()).public_ip_options.dns_label
    };
    assert_eq!(label(&[]), DnsLabel::Untouched);
    assert_eq!(label(&[("azure-dns-label-name", "")]), DnsLabel::Removed);
    for wrong in ["ab", "1ab", "ab-", "a_b", "Abc", &"a".repeat(64)] {
        let reading = read(&service(&[("azure-dns-label-name", wrong)]), &policy());
        assert_eq!(names(&reading.findings), ["InvalidDnsLabel"], "{wrong}");
    }
}
