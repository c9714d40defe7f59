//! Tests of reading; the annotations one by one are in `tests/annotations.rs`.

mod admission;
mod annotations;
mod limits;
mod probes;
mod properties;

use super::reader::Reader;
use super::*;
use crate::ask::annotation::full;
use fixture::policy;
use model::Policy;
use model::kubernetes::{Affinity, Service, ServicePort, TargetPort, TrafficPolicy};
use model::policy::{BalancerSku, ClusterProbe, HealthCheck, Layout, PoolKind, Preconfigured};
use model::report::{Finding, Severity};
use std::collections::BTreeSet;

fn port(name: &str, protocol: Protocol, port: u16, node_port: u16) -> ServicePort {
    ServicePort { protocol, ..fixture::port(name, port, node_port) }
}

fn service(annotations: &[(&str, &str)]) -> Service {
    let ports =
        vec![port("http", Protocol::Tcp, 80, 30080), port("https", Protocol::Tcp, 443, 30443)];
    Service { ports, ..fixture::service(annotations) }
}

fn read_ok(service: &Service, policy: &Policy) -> Intent {
    let reading = read(service, policy);
    reading.intent.unwrap_or_else(|| panic!("refused: {:?}", reading.findings))
}

fn names(findings: &[Finding]) -> Vec<&'static str> {
    findings.iter().map(|f| f.rule).collect()
}

fn net(text: &str) -> IpNet {
    text.parse().expect("a range")
}

const INTERNAL: (&str, &str) = ("azure-load-balancer-internal", "true");

#[test]
fn a_plain_service_is_public_open_and_probed_on_its_node_ports() {
    let reading = read(&service(&[]), &policy());
    assert_eq!(reading.findings, []);
    let intent = reading.intent.expect("nothing is wrong");
    assert_eq!(&*intent.base, "a000000011111422283330123456789a");
    assert_eq!(intent.exposure, Exposure::Public);
    let managed = PublicIpIntent::Managed { prefix: None };
    assert_eq!(intent.public_ips, BTreeMap::from([(Family::V4, managed)]));
    assert_eq!(intent.access.tags, ["Internet".into()]);
    assert!(intent.access.ranges.is_empty());
    assert_eq!(intent.access.ports.len(), 2);
    assert_eq!(intent.rule_options.idle_timeout_min, 4);
    assert_eq!(intent.rule_options.floating_ip, FloatingIp::Enabled);
    let probe = intent.rules[0].probe.as_ref().expect("TCP is probed");
    assert_eq!((probe.protocol, probe.port, &probe.path), (ProbeProtocol::Tcp, 30080, &None));
    assert_eq!((probe.interval_s, probe.threshold, &probe.name), (5, 2, &ProbeName::Rule));
}

#[test]
fn an_internal_service_has_no_security_rules_and_no_public_ip() {
    let intent = read_ok(&service(&[INTERNAL]), &policy());
    assert_eq!(intent.exposure, Exposure::Internal);
    assert!(intent.public_ips.is_empty());
    assert!(intent.access.tags.is_empty() && intent.access.ranges.is_empty());
}

#[test]
fn flags_count_as_they_do_in_the_go_controller() {
    let (internal, link) = ("azure-load-balancer-internal", "azure-pls-create");
    let reset = "azure-load-balancer-disable-tcp-reset";
    for (key, value, counts, noted) in [
        (internal, "true", true, false),
        (internal, "True", false, true),
        (internal, " true", false, true),
        (internal, "False", false, false),
        (reset, "TRUE", true, false),
        (reset, "true ", false, true),
        (reset, "yes", false, true),
        (reset, "", false, false),
        ("port_80_no_lb_rule", "True", true, false),
        ("port_80_no_lb_rule", " true", false, true),
        (link, " True ", true, false),
        (link, "1", false, true),
    ] {
        let service = service(&[(key, value)]);
        let set = Reader::new(&service, &policy()).is_set(key);
        let reading = read(&service, &policy());
        let said = names(&reading.findings).contains(&"InvalidBoolean");
        assert_eq!((set, said), (counts, noted), "{key}: {value:?}");
    }
    let reading = read(&service(&[(internal, "True")]), &policy());
    let intent = reading.intent.expect("it is noted, not refused");
    assert_eq!(intent.exposure, Exposure::Public);
    assert_eq!(
        reading.findings[0].to_string(),
        "service.beta.kubernetes.io/azure-load-balancer-internal: treated as false; use \"true\" \
         or \"false\" (got \"True\")"
    );
}

#[test]
fn source_ranges_are_merged_by_family_and_close_the_internet() {
    let mut web = service(&[]);
    web.source_ranges =
        ["10.1.0.0/16", "fd00::/8", "10.0.0.0/16", "10.0.3.0/24"].map(Arc::from).to_vec();
    for annotations in [vec![], vec![INTERNAL]] {
        web.annotations = service(&annotations).annotations;
        let access = read_ok(&web, &policy()).access;
        assert_eq!(access.ranges[&Family::V4], [net("10.0.0.0/15")]);
        assert_eq!(access.ranges[&Family::V6], [net("fd00::/8")]);
        assert!(access.tags.is_empty());
        assert_eq!(access.deny_all, DenyAll::No);
    }
    web.source_ranges = vec!["0.0.0.0/0".into()];
    let access = read_ok(&web, &policy()).access;
    assert_eq!(access.ranges, BTreeMap::from([(Family::V4, vec![net("0.0.0.0/0")])]));
    assert!(access.tags.is_empty());
}

#[test]
fn ranges_are_in_one_place_and_valid() {
    let mut web = service(&[("azure-allowed-ip-ranges", "203.0.113.0/24")]);
    web.source_ranges = vec!["198.51.100.0/24".into()];
    assert_eq!(names(&read(&web, &policy()).findings), ["ConflictingSourceRanges"]);
    let lists = [
        ("azure-allowed-ip-ranges", "10.0.0.0/24"),
        ("load-balancer-source-ranges", "10.0.1.0/24"),
    ];
    let access = read_ok(&service(&lists), &policy()).access;
    assert_eq!(access.ranges[&Family::V4], [net("10.0.0.0/23")]);
    for wrong in ["203.0.113.0/99", "203.0.113.7/24", "203.0.113.7", "x"] {
        let reading = read(&service(&[("azure-allowed-ip-ranges", wrong)]), &policy());
        assert_eq!(names(&reading.findings), ["InvalidSourceRange"], "{wrong}");
        assert_eq!(reading.intent, None);
        web.annotations = Arc::default();
        web.source_ranges = vec![wrong.into()];
        let reading = read(&web, &policy());
        assert_eq!(names(&reading.findings), ["InvalidSourceRange"], "{wrong}");
        assert_eq!(&*reading.findings[0].key, "spec.loadBalancerSourceRanges");
    }
}

/// A value that a template left empty was to limit the sources.
#[test]
fn an_empty_list_of_sources_lets_in_nobody() {
    let cases = [
        ("azure-allowed-ip-ranges", "InvalidSourceRange"),
        ("load-balancer-source-ranges", "InvalidSourceRange"),
        ("azure-allowed-service-tags", "InvalidServiceTag"),
    ];
    for (key, rule) in cases {
        for value in ["", " ", ",", " , "] {
            let reading = read(&service(&[(key, value)]), &policy());
            assert_eq!(names(&reading.findings), [rule], "{key}: {value:?}");
            assert_eq!(reading.intent, None, "{key}: {value:?}");
        }
    }
    let reading = read(&service(&[("azure-allowed-ip-ranges", "10.0.0.0/8,")]), &policy());
    assert_eq!(names(&reading.findings), ["InvalidSourceRange"]);
}

#[test]
fn service_tags_close_the_internet_and_are_limited_by_source_ranges() {
    let mut web = service(&[("azure-allowed-service-tags", "AzureCloud, Storage,,AzureCloud")]);
    let reading = read(&web, &policy());
    assert_eq!(names(&reading.findings), ["EmptyServiceTags"]);
    let access = reading.intent.expect("noted, not refused").access;
    assert_eq!(access.tags, ["AzureCloud".into(), "Storage".into()]);
    web.annotations = service(&[("azure-allowed-service-tags", "AzureCloud")]).annotations;
    web.source_ranges = vec!["10.0.0.0/8".into()];
    let reading = read(&web, &policy());
    assert_eq!(names(&reading.findings), ["SourceRangesLimitTags"]);
    assert!(reading.intent.is_some());
}

#[test]
fn ranges_without_one_of_the_services_families_are_noted() {
    let (four, six) = ("10.0.0.0/8", "2001:db8::/32");
    for (families, ranges, noted) in [
        (&[Family::V4][..], six, true),
        (&[Family::V6][..], four, true),
        (&[Family::V4][..], "2001:db8::/32,10.0.0.0/8", false),
        (&[Family::V4, Family::V6][..], four, false),
    ] {
        let web = Service { families: families.to_vec(), ..service(&[]) };
        let annotations = service(&[("azure-allowed-ip-ranges", ranges)]).annotations;
        let annotated = Service { annotations, ..web.clone() };
        let limited = Service { source_ranges: ranges.split(',').map(Arc::from).collect(), ..web };
        for service in [annotated, limited] {
            let found = names(&read(&service, &policy()).findings);
            assert_eq!(found.contains(&"SourceRangesOfOtherFamily"), noted, "{ranges}");
        }
    }
}

#[test]
fn pinned_addresses_fit_the_load_balancer() {
    let pinned = |address: &str, annotations: &[(&str, &str)]| {
        let mut web = service(annotations);
        web.load_balancer_ip = Some(address.into());
        let reading = read(&web, &policy());
        (names(&reading.findings), reading.intent.map(|i| (i.pinned, i.public_ips)))
    };
    let (findings, intent) = pinned("20.50.0.10", &[]);
    assert_eq!(findings, Vec::<&str>::new());
    let (addresses, public_ips) = intent.expect("a public address is fine");
    assert_eq!(addresses[&Family::V4].to_string(), "20.50.0.10");
    assert_eq!(public_ips[&Family::V4], PublicIpIntent::Pinned);
    for address in ["10.0.0.1", "100.64.0.1", "168.63.129.16", "127.0.0.1", "224.0.0.1", "0.0.0.0"]
    {
        assert_eq!(pinned(address, &[]).0, ["PrivatePinnedAddress"], "{address}");
    }
    assert_eq!(pinned("fd00::1", &[]).0, ["UnusedPinnedAddress"]);
    assert_eq!(pinned("10.0.0.1", &[INTERNAL]).0, Vec::<&str>::new());
    assert_eq!(pinned("web", &[INTERNAL]).0, ["InvalidPinnedAddress"]);
    assert_eq!(pinned("fd00::1", &[INTERNAL]).0, ["UnusedPinnedAddress"]);
    let (_, intent) = pinned("web", &[("azure-load-balancer-ipv4", "20.1.2.3")]);
    let (addresses, _) = intent.expect("the annotation hides the field");
    assert_eq!(addresses[&Family::V4].to_string(), "20.1.2.3");
}

#[test]
fn families_are_ordered_and_have_their_own_public_ips() {
    let mut web = service(&[("azure-pip-name", "plain"), ("azure-pip-name-ipv6", "six")]);
    web.families = vec![Family::V6, Family::V4];
    let intent = read_ok(&web, &policy());
    assert_eq!(intent.families, Family::ALL);
    assert_eq!(intent.public_ips[&Family::V4], PublicIpIntent::Named("plain".into()));
    assert_eq!(intent.public_ips[&Family::V6], PublicIpIntent::Named("six".into()));
    web.annotations = service(&[("azure-pip-name", "plain")]).annotations;
    let managed = PublicIpIntent::Managed { prefix: None };
    assert_eq!(read_ok(&web, &policy()).public_ips[&Family::V6], managed);
    web.families = vec![Family::V6];
    let named = PublicIpIntent::Named("plain".into());
    assert_eq!(read_ok(&web, &policy()).public_ips, BTreeMap::from([(Family::V6, named)]));
}

#[test]
fn unknown_keys_are_noted_with_what_was_meant() {
    let reading = read(&service(&[("azure-load-balancer-intern", "true")]), &policy());
    assert_eq!(names(&reading.findings), ["UnknownAnnotation"]);
    assert_eq!(
        reading.findings[0].to_string(),
        "service.beta.kubernetes.io/azure-load-balancer-intern: unknown annotation; did you mean \
         service.beta.kubernetes.io/azure-load-balancer-internal?"
    );
    assert!(reading.intent.is_some());
    let reading = read(&service(&[("port_81_no_lb_rule", "true")]), &policy());
    assert_eq!(names(&reading.findings), ["UnknownPort"]);
    let reading = read(&service(&[("aws-load-balancer-type", "nlb")]), &policy());
    assert_eq!(reading.findings, []);
}

#[test]
fn what_does_not_count_here_is_noted() {
    let notes = |annotations: &[(&str, &str)], sku| {
        let reading = read(&service(annotations), &Policy { sku, ..policy() });
        assert!(reading.intent.is_some());
        names(&reading.findings)
    };
    let ignored = ["AnnotationIgnored"];
    let standard = BalancerSku::Standard;
    assert_eq!(notes(&[INTERNAL, ("azure-pip-name", "x")], standard), ignored);
    assert_eq!(notes(&[("azure-load-balancer-internal-subnet", "x")], standard), ignored);
    let ha = ("azure-load-balancer-enable-high-availability-ports", "true");
    assert_eq!(notes(&[ha], standard), ignored);
    assert_eq!(notes(&[INTERNAL, ha], BalancerSku::Basic), ignored);
    assert_eq!(notes(&[(ha.0, "false")], standard), Vec::<&str>::new());
    assert_eq!(notes(&[("azure-load-balancer-mode", "__auto__")], standard), ["ModeIgnored"]);
}

#[test]
fn a_port_without_a_rule_is_not_open_behind_the_rule_for_all_ports_either() {
    let first = read(&service(&[]), &policy()).intent.expect("plain").access.ports[0].port;
    let key = format!("port_{first}_no_lb_rule");
    let ha = ("azure-load-balancer-enable-high-availability-ports", "true");
    let reading = read(&service(&[INTERNAL, ha, (&key, "true")]), &policy());
    let intent = reading.intent.expect("accepted");
    assert_eq!((intent.rules.len(), intent.access.ports.len()), (1, 1));
    assert!(intent.access.ports.iter().all(|open| open.port != first));
}

#[test]
fn tags_that_are_ours_or_malformed_do_not_count() {
    let tags = "team=net, env = prod ,k8s-azure-service=x/y,odd,a=b=c,=d";
    let reading = read(&service(&[("azure-pip-tags", tags)]), &policy());
    let found = names(&reading.findings);
    assert_eq!(found, ["MalformedTag", "MalformedTag", "MalformedTag", "ReservedTag"]);
    let tags = reading.intent.expect("noted, not refused").public_ip_options.tags;
    let wanted = [("env", "prod"), ("team", "net")].map(|(k, v)| (Arc::from(k), Arc::from(v)));
    assert_eq!(tags, BTreeMap::from(wanted));
}

/// What is wrong with `10.0.0.0/8,` cannot be seen otherwise.
#[test]
fn an_empty_value_that_is_refused_is_shown() {
    for (key, value) in [
        ("azure-allowed-ip-ranges", "10.0.0.0/8,"),
        ("azure-load-balancer-tcp-idle-timeout", ""),
        ("azure-load-balancer-health-probe-interval", ""),
        ("azure-allowed-service-tags", ""),
    ] {
        let reading = read(&service(&[(key, value)]), &policy());
        let text = reading.findings[0].to_string();
        assert!(text.ends_with("(got \"\")"), "{text}");
    }
}

#[test]
fn a_prefix_beside_the_name_of_a_public_ip_is_noted() {
    let id = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network/publicIPPrefixes/p";
    let found = |service: &Service, annotations: &[(&str, &str)]| {
        let annotations = fixture::service(annotations).annotations;
        let service = Service { annotations, ..service.clone() };
        names(&read(&service, &policy()).findings)
    };
    let (name, prefix) = (("azure-pip-name", "byo"), ("azure-pip-prefix-id", id));
    let four = service(&[]);
    let six = Service { families: vec![Family::V6], ..service(&[]) };
    for service in [&four, &six] {
        assert_eq!(found(service, &[name, prefix]), ["AnnotationIgnored"]);
        assert_eq!(found(service, &[name]), Vec::<&str>::new());
        assert_eq!(found(service, &[prefix]), Vec::<&str>::new());
    }
    // No prefix counts there, and that is said once.
    let basic = Policy { sku: BalancerSku::Basic, ..policy() };
    for keys in [&[name, prefix][..], &[("azure-pip-prefix-id-ipv6", id)]] {
        let findings = read(&service(keys), &basic).findings;
        let ignored = findings.iter().filter(|f| f.rule == "AnnotationIgnored");
        assert_eq!(ignored.count(), 1, "{findings:#?}");
    }
}

#[test]
fn a_key_that_counts_for_none_of_the_services_public_ips_is_noted() {
    let both = [("azure-pip-name", "four"), ("azure-pip-name-ipv6", "six")];
    for (families, idle) in [
        (&[Family::V4][..], &["six"][..]),
        (&[Family::V6][..], &["four"][..]),
        (&[Family::V4, Family::V6][..], &[][..]),
    ] {
        let web = Service { families: families.to_vec(), ..service(&both) };
        let reading = read(&web, &policy());
        let noted = reading.findings.iter().filter(|f| f.rule == "AnnotationIgnored");
        assert_eq!(noted.map(|f| &*f.value).collect::<Vec<_>>(), idle);
    }
}

#[test]
fn of_keys_that_differ_in_letter_case_the_last_counts() {
    let wanted = BTreeMap::from([(Arc::from("A"), Arc::from("z"))]);
    for key in ["azure-pip-tags", "azure-pip-ip-tags"] {
        let reading = read(&service(&[(key, "a=b,A=z")]), &policy());
        let options = reading.intent.expect("accepted").public_ip_options;
        let tags = if key == "azure-pip-tags" { Some(options.tags) } else { options.ip_tags };
        assert_eq!(tags.as_ref(), Some(&wanted), "{key}");
    }
}

#[test]
fn a_port_in_a_key_has_no_leading_zero() {
    let found = |key| names(&read(&service(&[(key, "true")]), &policy()).findings);
    assert_eq!(found("port_80_no_lb_rule"), Vec::<&str>::new());
    assert_eq!(found("port_080_no_lb_rule"), ["UnknownAnnotation"]);
}

#[test]
fn who_is_approved_by_itself_has_to_see_the_private_link_service() {
    let nics = Policy { pools: PoolKind::NodeNic, ..policy() };
    let keys = [("azure-pls-create", "true"), INTERNAL, ("azure-pls-auto-approval", "b-2")];
    assert_eq!(names(&read(&service(&keys), &nics).findings), ["AutoApprovalNotVisible"]);
}

#[test]
fn a_private_link_service_needs_a_place_to_stand() {
    let create = ("azure-pls-create", "true");
    let nics = Policy { pools: PoolKind::NodeNic, ..policy() };
    let refused = |service: &Service, sku| {
        let reading = read(service, &Policy { sku, ..nics.clone() });
        assert_eq!(reading.intent, None);
        names(&reading.findings)
    };
    let standard = BalancerSku::Standard;
    assert_eq!(refused(&service(&[create]), standard), ["PrivateLinkUnreachable"]);
    let basic = refused(&service(&[create, INTERNAL]), BalancerSku::Basic);
    assert_eq!(basic, ["PrivateLinkNeedsStandard"]);
    let mut six = service(&[create, INTERNAL]);
    six.families = vec![Family::V6];
    assert_eq!(refused(&six, standard), ["PrivateLinkNeedsIpv4"]);
    // Azure takes no IPv6 frontend beside it, the Service's own among them.
    six.families = Family::ALL.to_vec();
    assert_eq!(refused(&six, standard), ["PrivateLinkNeedsIpv4"]);

    let link = |annotations: &[(&str, &str)]| {
        read_ok(&service(annotations), &nics).private_link.expect("it is asked for")
    };
    let open = link(&[create, ("azure-disable-load-balancer-floating-ip", "true")]);
    assert_eq!((&*open.subnet, open.count, open.group.as_str()), ("nodes", 1, "links"));
    assert_eq!(open.ownership, PrivateLinkOwnership::Shared);
    let apps = link(&[create, INTERNAL, ("azure-load-balancer-internal-subnet", "apps")]);
    assert_eq!(&*apps.subnet, "apps");
    let all = link(&[create, INTERNAL, ("azure-pls-visibility", "a-1 * b-2")]);
    assert_eq!(all.visibility, ["*".into()]);
    assert_eq!(all.ownership, PrivateLinkOwnership::Own);
    for (visible, notes) in
        [("a-1 b-2", vec![]), ("*", vec![]), ("a-1", vec!["AutoApprovalNotVisible"])]
    {
        let keys = [
            create,
            INTERNAL,
            ("azure-pls-visibility", visible),
            ("azure-pls-auto-approval", "B-2"),
        ];
        assert_eq!(names(&read(&service(&keys), &nics).findings), notes, "{visible}");
    }
    let note = read(&service(&[("azure-pls-name", "x")]), &policy()).findings;
    assert_eq!(names(&note), ["PrivateLinkNotCreated"]);
}

/// Azure: PrivateLinkServiceIsNotSupportedForIPBasedLoadBalancer. Pools that another fills may hold
/// NICs.
#[test]
fn no_private_link_service_stands_before_pools_of_addresses() {
    let asked = |exposure| match exposure {
        Exposure::Internal => service(&[("azure-pls-create", "true"), INTERNAL]),
        Exposure::Public => service(&[
            ("azure-pls-create", "true"),
            ("azure-disable-load-balancer-floating-ip", "true"),
        ]),
    };
    for (preconfigured, exposure, expected) in [
        (Preconfigured::None, Exposure::Internal, vec!["PrivateLinkNeedsNicPools"]),
        (Preconfigured::None, Exposure::Public, vec!["PrivateLinkNeedsNicPools"]),
        (Preconfigured::Internal, Exposure::Public, vec!["PrivateLinkNeedsNicPools"]),
        (Preconfigured::Internal, Exposure::Internal, vec![]),
        (Preconfigured::All, Exposure::Public, vec![]),
    ] {
        let policy = Policy { pools: PoolKind::NodeIp, preconfigured, ..policy() };
        let reading = read(&asked(exposure), &policy);
        assert_eq!(names(&reading.findings), expected, "{preconfigured:?} {exposure:?}");
        let policy =
            Policy { pools: PoolKind::NodeNic, preconfigured: Preconfigured::None, ..policy };
        assert!(read(&asked(exposure), &policy).intent.is_some());
    }
}

#[test]
fn configurations_exclude_pinned_addresses() {
    let mut several = policy();
    several.layout = fixture::several();
    let chosen = ("Azure-load-balancer-configurations", "LB2, lb9");
    let reading = read(&service(&[chosen]), &several);
    assert_eq!(names(&reading.findings), ["UnknownConfigurationName"]);
    let intent = reading.intent.expect("noted, not refused");
    assert_eq!(intent.placement.configurations, ["lb2".into()]);
    let pinned = ("azure-load-balancer-ipv4", "20.1.2.3");
    let both = read(&service(&[("azure-load-balancer-configurations", "lb2"), pinned]), &several);
    assert_eq!(names(&both.findings), ["ConflictingPlacement"]);
    let single = read(&service(&[("azure-load-balancer-configurations", "lb2")]), &policy());
    assert_eq!(names(&single.findings), ["ConfigurationsIgnored"]);
}

/// A value that a template left empty was to say where the Service may be.
#[test]
fn an_empty_list_of_configurations_names_none() {
    let several = Policy { layout: fixture::several(), ..policy() };
    for value in ["", " ", ",", " , "] {
        let web = service(&[("azure-load-balancer-configurations", value)]);
        assert_eq!(names(&read(&web, &several).findings), ["UnknownConfiguration"], "{value:?}");
    }
    let empty = service(&[("azure-load-balancer-configurations", "")]);
    assert_eq!(read(&empty, &policy()).findings, []);
}

#[test]
fn a_refusal_leaves_no_intent_and_a_note_leaves_one() {
    let bad = ("azure-load-balancer-tcp-idle-timeout", "3");
    let odd = ("azure-pls-create", "yes");
    let reading = read(&service(&[bad, odd]), &policy());
    assert_eq!(reading.intent, None);
    let severities: Vec<Severity> = reading.findings.iter().map(|f| f.severity).collect();
    assert_eq!(severities, [Severity::Note, Severity::Refusal]);
    assert!(read(&service(&[odd]), &policy()).intent.is_some());
}

#[test]
fn additional_addresses_are_public_or_listed() {
    let read_one = |policy: &Policy, address: &str| {
        let reading = read(&service(&[("azure-additional-public-ips", address)]), policy);
        names(&reading.findings).first().copied().unwrap_or("").to_owned()
    };
    let listed = |ranges: &[&str]| {
        let ranges = ranges.iter().map(|r| r.parse().expect("a range")).collect();
        Policy { additional_addresses: Some(ranges), ..policy() }
    };
    let everything = listed(&["0.0.0.0/0", "::/0"]);
    for never in [
        "0.0.0.0",
        "0.1.2.3",
        "127.0.0.1",
        "169.254.1.1",
        "169.254.169.254",
        "168.63.129.16",
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "fe80::1",
        "ff02::1",
        "::7f00:1",
        "64:ff9b::a9fe:a9fe",
    ] {
        for policy in [&policy(), &everything] {
            assert_eq!(read_one(policy, never), "ForbiddenAdditionalAddress", "{never}");
        }
    }
    for dressed in ["::ffff:169.254.169.254", "::ffff:20.1.2.3"] {
        assert_eq!(read_one(&everything, dressed), "InvalidAdditionalAddress", "{dressed}");
    }
    for private in ["10.0.0.1", "100.64.0.1", "172.16.0.1", "192.168.0.1", "fd00::1"] {
        assert_eq!(read_one(&policy(), private), "ForbiddenAdditionalAddress", "{private}");
        assert_eq!(read_one(&everything, private), "", "{private}");
    }
    let some = listed(&["20.9.9.0/24", "10.1.0.0/16"]);
    for (address, found) in [
        ("20.9.9.9", ""),
        ("10.1.2.3", ""),
        ("20.9.8.9", "ForbiddenAdditionalAddress"),
        ("10.2.0.1", "ForbiddenAdditionalAddress"),
    ] {
        assert_eq!(read_one(&some, address), found, "{address}");
    }
    assert_eq!(read_one(&policy(), "20.1.2.3,2603::1"), "");
}
