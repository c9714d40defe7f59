//! Who may connect.

use super::view::*;
use crate::support::network;
use serde_json::{Value, json};

const OPEN: [&str; 1] = ["open"];
const DENY: &str = "azure-deny-all-except-load-balancer-source-ranges";

fn with_ranges(asked: Asked, ranges: &[&str]) -> Asked {
    asked.field("loadBalancerSourceRanges", json!(ranges))
}

/// [security rules] Tags, ranges and a deny-all of both families and protocols: a rule a tag, then
/// the ranges, IPv4 before IPv6, Tcp before Udp; deny rules from the other end.
#[test]
fn tags_ranges_and_deny_all_of_both_families() {
    let s =
        asked(web("web").dual().ports(&["UDP 53 30053", "TCP 443 30443", "TCP 80 30080"]).with(&[
            ("azure-allowed-service-tags", "AzureCloud, Storage ,AzureCloud"),
            ("azure-allowed-ip-ranges", "10.1.0.0/16, 10.0.0.0/16,10.0.4.0/24,fd01::/64"),
            ("load-balancer-source-ranges", "192.0.2.0/24"),
            (DENY, "TRUE"),
        ]));
    let four = "10.0.0.0/15,192.0.2.0/24";
    is(
        &s.lines(&OPEN),
        &format!(
            "open 500 allow_IPv4_c37f1775 Allow Inbound Tcp AzureCloud -> 20.0.0.1 \
                [443,80]
            open 501 allow_IPv4_006582a6 Allow Inbound Tcp Storage -> 20.0.0.1 [443,80]
            open 502 allow_IPv4_601306e4 Allow Inbound Tcp [{four}] -> \
                20.0.0.1 [443,80]
            open 503 allow_IPv6_c37f1775 Allow Inbound Tcp AzureCloud -> \
                2603:1000::2 [443,80]
            open 504 allow_IPv6_006582a6 Allow Inbound Tcp Storage -> 2603:1000::2 \
                [443,80]
            open 505 allow_IPv6_fa49eecc Allow Inbound Tcp fd01::/64 -> 2603:1000::2 \
                [443,80]
            open 506 allow_IPv4_f0052cf4 Allow Inbound Udp AzureCloud -> 20.0.0.1 [53]
            open 507 allow_IPv4_ee502528 Allow Inbound Udp Storage -> 20.0.0.1 [53]
            open 508 allow_IPv4_1ea6e1ea Allow Inbound Udp [{four}] -> \
                20.0.0.1 [53]
            open 509 allow_IPv6_f0052cf4 Allow Inbound Udp AzureCloud -> 2603:1000::2 [53]
            open 510 allow_IPv6_ee502528 Allow Inbound Udp Storage -> 2603:1000::2 [53]
            open 511 allow_IPv6_d4075894 Allow Inbound Udp fd01::/64 -> 2603:1000::2 [53]
            open 4094 deny-all_IPv6 Deny Inbound * * -> 2603:1000::2 *
            open 4095 deny-all_IPv4 Deny Inbound * * -> 20.0.0.1 *"
        ),
    );
}

/// [security rules] What a single source gives.
#[test]
fn sources_of_a_service() {
    type Row = (&'static [&'static str], &'static [(&'static str, &'static str)], &'static str);
    const TAGS: &str = "azure-allowed-service-tags";
    const RANGES: &str = "azure-allowed-ip-ranges";
    let rows: [Row; 11] = [
        (
            &["0.0.0.0/0"],
            &[],
            "open 500 allow_IPv4_171627ef Allow Inbound Tcp 0.0.0.0/0 -> 20.0.0.1 [80]",
        ),
        (
            &["0.0.0.0/0", "10.0.0.0/8", "::/0"],
            &[],
            "open 500 allow_IPv4_171627ef Allow Inbound Tcp 0.0.0.0/0 -> 20.0.0.1 [80]",
        ),
        (
            &["0.0.0.0/0"],
            &[(DENY, "true")],
            "open 500 allow_IPv4_171627ef Allow Inbound Tcp 0.0.0.0/0 -> 20.0.0.1 [80]
            open 4095 deny-all_IPv4 Deny Inbound * * -> 20.0.0.1 *",
        ),
        // No source of the family: nothing is open to it.
        (&["fd01::/64"], &[], ""),
        (
            &["fd01::/64"],
            &[(DENY, "true")],
            "open 4095 deny-all_IPv4 Deny Inbound * * -> 20.0.0.1 *",
        ),
        // Without ranges there is nothing to be the exception from.
        (
            &[],
            &[(DENY, "true")],
            "open 500 allow_IPv4_d39272f7 Allow Inbound Tcp Internet -> 20.0.0.1 [80]",
        ),
        (
            &[],
            &[(DENY, "true"), (TAGS, "Storage")],
            "open 500 allow_IPv4_6ce51be4 Allow Inbound Tcp Storage -> 20.0.0.1 [80]",
        ),
        (
            &["10.0.0.0/8"],
            &[(TAGS, "Storage")],
            "open 500 allow_IPv4_6ce51be4 Allow Inbound Tcp Storage -> 20.0.0.1 [80]
            open 501 allow_IPv4_2e80b3cf Allow Inbound Tcp 10.0.0.0/8 -> 20.0.0.1 [80]",
        ),
        (
            &[],
            &[(RANGES, "10.0.0.0/9,10.128.0.0/9"), (TAGS, "Internet")],
            "open 500 allow_IPv4_d39272f7 Allow Inbound Tcp Internet -> 20.0.0.1 [80]
            open 501 allow_IPv4_2e80b3cf Allow Inbound Tcp 10.0.0.0/8 -> 20.0.0.1 [80]",
        ),
        (&[], &[("azure-disable-load-balancer-nsg-rule", "TRUE")], ""),
        (&["10.0.0.0/8"], &[("azure-disable-load-balancer-nsg-rule", "true"), (DENY, "true")], ""),
    ];
    for (ranges, annotations, want) in rows {
        let s = asked(with_ranges(web("web"), ranges).with(annotations));
        assert_eq!(s.refusal("web"), "");
        is(&s.lines(&OPEN), want);
    }
}

/// [security rules] Ranges in two places, or wrong ones, refuse the Service: nothing is opened.
#[test]
fn ranges_that_cannot_be() {
    type Row = (&'static [&'static str], &'static [(&'static str, &'static str)]);
    let rows: [Row; 7] = [
        (&["10.0.0.0/8"], &[("azure-allowed-ip-ranges", "10.0.0.0/8")]),
        (&["10.0.0.0/8"], &[("load-balancer-source-ranges", "10.0.0.0/8")]),
        (&[], &[("azure-allowed-ip-ranges", "10.0.0.1/8,10.0.0.0/8")]),
        (&[], &[("azure-allowed-ip-ranges", "10.0.0.1")]),
        (&[], &[("load-balancer-source-ranges", "fd01::1/64")]),
        // An empty list allows no source, as with the Go cloud provider: it does not open to all.
        (&[], &[("azure-allowed-ip-ranges", " ")]),
        (&[], &[("azure-allowed-service-tags", "")]),
    ];
    for (ranges, annotations) in rows {
        let s = asked(with_ranges(web("web"), ranges).with(annotations));
        assert_ne!(s.refusal("web"), "", "{annotations:?}");
        is(&s.text(), "status web ");
    }
}

/// [security rules] An internal Service opens what it names, and nothing without a name.
#[test]
fn an_internal_service_opens_what_it_names() {
    let mut s =
        asked(web("in").internal().with(&[("azure-allowed-service-tags", "VirtualNetwork")]));
    is(
        &s.lines(&OPEN),
        "open 500 allow_IPv4_0e1c32bd Allow Inbound Tcp VirtualNetwork -> \
            10.224.100.5 [80]",
    );
    s.annotate(
        "in",
        &[
            ("azure-allowed-service-tags", None),
            ("azure-allowed-ip-ranges", Some("0.0.0.0/0")),
            (DENY, Some("true")),
        ],
    );
    is(
        &s.lines(&OPEN),
        "open 501 allow_IPv4_171627ef Allow Inbound Tcp 0.0.0.0/0 -> 10.224.100.5 [80]
        open 4095 deny-all_IPv4 Deny Inbound * * -> 10.224.100.5 *",
    );
    s.annotate("in", &[("azure-allowed-ip-ranges", None), (DENY, None)]);
    is(&s.lines(&OPEN), "");
}

/// [security rules] Services with the same sources and ports share a rule, with other ports they do
/// not; others' rules keep their priorities, and who goes takes only its address.
#[test]
fn rules_are_shared_by_content() {
    let foreign = json!({"id": network("networkSecurityGroups/nsg"), "properties": {
        "securityRules": [
            {"name": "theirs", "properties": {"access": "Allow", "direction": "Inbound",
                "priority": 500, "protocol": "Tcp", "sourceAddressPrefix": "Internet",
                "sourcePortRange": "*", "destinationAddressPrefix": "20.0.0.1",
                "destinationPortRange": "80"}},
            {"name": "k8s-azure-lb_allow_IPv4_of_another_kind", "properties": {"access": "Deny",
                "direction": "Inbound", "priority": 4095, "protocol": "*",
                "sourceAddressPrefix": "*", "sourcePortRange": "*",
                "destinationAddressPrefix": "30.0.0.1", "destinationPortRange": "*"}}]}});
    let mut s = stage_with(&json!({}), vec![foreign]);
    s.ask(with_ranges(web("a"), &["10.0.0.0/8"]).with(&[(DENY, "true")]));
    s.ask(
        with_ranges(web("b").ports(&["TCP 80 30180"]), &["10.0.0.0/8"])
            .with(&[(DENY, "true"), ("azure-additional-public-ips", "20.9.9.9")]),
    );
    s.ask(with_ranges(web("c").ports(&["TCP 80 30280", "TCP 81 30281"]), &["10.0.0.0/8"]));
    let theirs = "open 500 theirs Allow Inbound Tcp Internet -> 20.0.0.1 80";
    let odd = "open 4095 allow_IPv4_of_another_kind Deny Inbound * * -> 30.0.0.1 *";
    let text = s.lines(&OPEN);
    let rest: Vec<&str> = text.lines().filter(|line| !line.contains(" 4095 ")).collect();
    is(
        &rest.join("\n"),
        &format!(
            "{theirs}
            open 501 allow_IPv4_2e80b3cf Allow Inbound Tcp 10.0.0.0/8 -> \
                [20.0.0.1,20.0.0.2,20.9.9.9] [80]
            open 502 allow_IPv4_48e0e60c Allow Inbound Tcp 10.0.0.0/8 -> 20.0.0.3 \
                [80,81]
            open 4093 deny_IPv4_1bbe942b Deny Inbound Tcp * -> 20.9.9.9 [80]
            open 4094 deny-all_IPv4 Deny Inbound * * -> [20.0.0.1,20.0.0.2] *"
        ),
    );
    assert!(text.contains("-> 30.0.0.1 *"), "{text} {odd}");
    s.delete("b");
    let text = s.lines(&OPEN);
    let rest: Vec<&str> = text.lines().filter(|line| !line.contains(" 4095 ")).collect();
    is(
        &rest.join("\n"),
        &format!(
            "{theirs}
            open 501 allow_IPv4_2e80b3cf Allow Inbound Tcp 10.0.0.0/8 -> 20.0.0.1 [80]
            open 502 allow_IPv4_48e0e60c Allow Inbound Tcp 10.0.0.0/8 -> 20.0.0.3 \
                [80,81]
            open 4094 deny-all_IPv4 Deny Inbound * * -> 20.0.0.1 *"
        ),
    );
}

/// [security rules] Additional addresses belong to their families; those that another Service has
/// stay open when one goes.
#[test]
fn additional_addresses() {
    let mut s = asked(
        web("a").dual().with(&[("azure-additional-public-ips", " 20.9.9.9,2603:9::9,20.9.9.8 ")]),
    );
    s.ask(web("b").ports(&["TCP 80 30180"]).with(&[("azure-additional-public-ips", "20.9.9.9")]));
    is(
        &s.lines(&["open", "status"]),
        "open 500 allow_IPv4_d39272f7 Allow Inbound Tcp Internet -> \
            [20.0.0.1,20.0.0.3,20.9.9.8,20.9.9.9] [80]
        open 501 allow_IPv6_d39272f7 Allow Inbound Tcp Internet -> \
            [2603:1000::2,2603:9::9] [80]
        status a 20.0.0.1,2603:1000::2,20.9.9.9,2603:9::9,20.9.9.8
        status b 20.0.0.3,20.9.9.9",
    );
    s.delete("a");
    is(
        &s.lines(&["open", "status"]),
        "open 500 allow_IPv4_d39272f7 Allow Inbound Tcp Internet -> \
            [20.0.0.3,20.9.9.9] [80]
        status b 20.0.0.3,20.9.9.9",
    );
    s.annotate("b", &[("azure-additional-public-ips", None)]);
    is(
        &s.lines(&["open", "status"]),
        "open 500 allow_IPv4_d39272f7 Allow Inbound Tcp Internet -> 20.0.0.3 [80]
        status b 20.0.0.3",
    );
}

/// [security rules] Rules that are not wanted any more go: for the sources, for the annotation that
/// says so, for node ports that are another Service's.
#[test]
fn rules_go_with_their_reason() {
    let mut s = asked(with_ranges(web("a"), &["10.0.0.0/8"]).with(&[(DENY, "true")]));
    s.ask(web("b").ports(&["TCP 81 30081", "UDP 81 30082"]).with(&[
        ("azure-disable-load-balancer-floating-ip", "true"),
        ("azure-allowed-service-tags", "Storage"),
    ]));
    s.ask(
        web("c")
            .ports(&["TCP 82 30083"])
            .with(&[("azure-disable-load-balancer-floating-ip", "true")]),
    );
    let nodes = "[10.224.0.4,10.224.0.5,10.224.0.6]";
    let of_c = "0ac9cb53";
    is(
        &s.lines(&OPEN),
        &format!(
            "open 500 allow_IPv4_2e80b3cf Allow Inbound Tcp 10.0.0.0/8 -> 20.0.0.1 [80]
            open 501 allow_IPv4_4ae59bb3 Allow Inbound Tcp Storage -> {nodes} [30081]
            open 502 allow_IPv4_3f6d4e92 Allow Inbound Udp Storage -> {nodes} [30082]
            open 503 allow_IPv4_{of_c} Allow Inbound Tcp Internet -> {nodes} [30083]
            open 4095 deny-all_IPv4 Deny Inbound * * -> 20.0.0.1 *"
        ),
    );
    s.delete("b");
    s.annotate("a", &[("azure-disable-load-balancer-nsg-rule", Some("true"))]);
    is(
        &s.lines(&OPEN),
        &format!("open 503 allow_IPv4_{of_c} Allow Inbound Tcp Internet -> {nodes} [30083]"),
    );
    s.delete("c");
    is(&s.lines(&OPEN), "");
}

/// [security rules] The nodes of a Service without floating IP are those of its pool.
#[test]
fn nodes_come_and_go_in_rules_to_node_ports() {
    let mut s = asked(web("web").with(&[("azure-disable-load-balancer-floating-ip", "true")]));
    s.add_node(7, &[]);
    s.add_node(8, &[("node.kubernetes.io/exclude-from-external-load-balancers", "false")]);
    let four = "10.224.0.11,10.224.0.4,10.224.0.5,10.224.0.6";
    is(
        &s.lines(&["pool", "open"]),
        &format!(
            "pool kubernetes {four}
            open 500 allow_IPv4_bc4e7461 Allow Inbound Tcp Internet -> [{four}] [30080]"
        ),
    );
    let _: Value = s.object("web");
}
