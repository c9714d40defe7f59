//! As much as one Service may ask for, and how much is said of one that asks for more.

use super::super::reader::LISTED;
use super::*;
use model::report::QUOTED;

const RANGES: &str = "azure-allowed-ip-ranges";
const TAGS: &str = "azure-allowed-service-tags";

fn list<T: ToString>(entries: impl IntoIterator<Item = T>, between: &str) -> String {
    entries.into_iter().map(|e| e.to_string()).collect::<Vec<_>>().join(between)
}

fn refusals(service: &Service, policy: &Policy) -> Vec<(&'static str, String)> {
    let reading = read(service, policy);
    let refusals = reading.findings.iter().filter(|f| f.severity == Severity::Refusal);
    let refusals: Vec<_> = refusals.map(|f| (f.rule, f.value.to_string())).collect();
    assert_eq!(reading.intent.is_none(), !refusals.is_empty());
    refusals
}

fn refused(annotations: &[(&str, &str)]) -> Vec<(&'static str, String)> {
    refusals(&service(annotations), &policy())
}

#[test]
fn what_is_wrong_over_and_over_is_counted() {
    let bad = list((0..40_000).map(|n| format!("{n:x}")), ",");
    assert!(bad.len() > 187_000);
    let all = [(RANGES, &*bad), (TAGS, &*bad), ("azure-additional-public-ips", &*bad)];
    let reading = read(&service(&all), &policy());
    let of = |rule: &str| -> Vec<&str> {
        let all = reading.findings.iter().filter(|f| f.rule == rule);
        all.map(|f| if f.value.is_empty() { &*f.message } else { &*f.value }).collect()
    };
    assert_eq!(of("InvalidSourceRange"), ["0", "1", "2", "3", "4", "and 39995 more"]);
    assert_eq!(of("InvalidAdditionalAddress").last(), Some(&"and 39995 more"));
    assert!(reading.findings.len() <= 4 * (LISTED + 1), "{}", reading.findings.len());
    assert_eq!(reading.intent, None);
}

#[test]
fn the_same_in_the_container_layout() {
    let keys: Vec<String> = (0..5_000).map(|n| format!("azure-bad-{n}")).collect();
    let all: Vec<(&str, &str)> = keys.iter().map(|key| (&**key, "x")).collect();
    for findings in [
        read(&service(&all), &policy()).findings,
        container::read(&service(&all), &policy()).findings,
    ] {
        let unknown = findings.iter().filter(|f| f.rule == "UnknownAnnotation");
        let last = unknown.clone().next_back().expect("there are some");
        assert_eq!((unknown.count(), &*last.message), (LISTED + 1, "and 4995 more"));
        assert_eq!(&*last.key, "metadata.annotations");
    }
}

#[test]
fn a_long_value_is_quoted_in_part() {
    let long = "é".repeat(90_000);
    let reading = read(&service(&[("azure-load-balancer-tcp-idle-timeout", &long)]), &policy());
    let [finding] = &reading.findings[..] else { panic!("{:?}", reading.findings) };
    assert!(finding.value.ends_with("… (180000 bytes)"), "{}", finding.value);
    assert!(finding.value.len() < QUOTED + 40);
}

#[test]
fn service_tags() {
    let tags = |count: usize| list((0..count).map(|n| format!("Tag{n}")), ",");
    assert_eq!(refused(&[(TAGS, &tags(1_000))]), []);
    assert_eq!(refused(&[(TAGS, &format!("{0},{0}", tags(1_000)))]), [], "each counts once");
    let value = "1001 service tags, which make 1001 rules".to_owned();
    assert_eq!(refused(&[(TAGS, &tags(1_001))]), [("SecurityRuleLimit", value)]);
    let off = ("azure-disable-load-balancer-nsg-rule", "true");
    assert_eq!(refused(&[(TAGS, &tags(1_001)), off]), [], "they are not written");
    let without = Policy { security_group_name: "".into(), ..policy() };
    assert_eq!(refusals(&service(&[(TAGS, &tags(1_001))]), &without), []);
}

#[test]
fn source_ranges_and_additional_addresses() {
    let ranges = |count: u32| {
        list(
            (0..count).map(|n| format!("{}/32", std::net::Ipv4Addr::from(0x0B00_0000 + n * 2))),
            ",",
        )
    };
    assert_eq!(refused(&[(RANGES, &ranges(4_000))]), []);
    let value = "ranges that make 4001 source prefixes".to_owned();
    assert_eq!(refused(&[(RANGES, &ranges(4_001))]), [("SecurityRuleLimit", value)]);
    let adjacent =
        (0..8_192u32).map(|n| format!("{}/32", std::net::Ipv4Addr::from(0x0B00_0000 + n)));
    assert_eq!(refused(&[(RANGES, &list(adjacent, ","))]), [], "they are one range");
    let key = "azure-additional-public-ips";
    let addresses =
        |count: u32| list((0..count).map(|n| std::net::Ipv4Addr::from(0x0B00_0000 + n)), ",");
    let some = |count| refused(&[(key, &addresses(count))]).len();
    assert_eq!((some(4_000), some(4_001)), (0, 1));
}

#[test]
fn ports() {
    let with = |count: u16| {
        let ports = (1..=count).map(|n| port(&format!("p{n}"), Protocol::Tcp, n, 30_000 + n));
        Service { ports: ports.collect(), ..service(&[]) }
    };
    assert_eq!(refusals(&with(1_500), &policy()), []);
    let limit = |value: &str| vec![("LoadBalancerRuleLimit", value.to_owned())];
    assert_eq!(refusals(&with(1_501), &policy()), limit("1501 rules"));
    let both = Service { families: vec![Family::V4, Family::V6], ..with(751) };
    assert_eq!(refusals(&both, &policy()), limit("1502 rules"));
    let basic = Policy { sku: BalancerSku::Basic, ..policy() };
    assert_eq!(refusals(&with(251), &basic), limit("251 rules"));
    let tags = list((0..1_000).map(|n| format!("Tag{n}")), ",");
    let many = Service { annotations: service(&[(TAGS, &tags)]).annotations, ..with(1_500) };
    let [(rule, value)] = &refusals(&many, &policy())[..] else { panic!("one") };
    assert_eq!((*rule, &value[..11]), ("SecurityRuleLimit", "1500 ports,"));
}

/// A value that counts for all ports is read for each of them, and is no longer with each.
#[test]
fn a_value_for_all_ports_is_held_once() {
    let with = |count: u16, key: &str, value: &str| {
        let http = ("azure-load-balancer-health-probe-protocol", "http");
        let ports = (1..=count).map(|n| port(&format!("p{n}"), Protocol::Tcp, n, 30_000 + n));
        Service { ports: ports.collect(), ..service(&[http, (key, value)]) }
    };
    let path = "azure-load-balancer-health-probe-request-path";
    let long = |bytes: usize| format!("/{}", "a".repeat(bytes - 1));
    let rules = read_ok(&with(2, path, &long(200_000)), &policy()).rules;
    let paths: Vec<_> = rules.iter().filter_map(|r| r.probe.as_ref()?.path.as_ref()).collect();
    assert!(Arc::ptr_eq(paths[0], paths[1]) && paths[0].len() == 200_000);
    assert_eq!(refusals(&with(1_024, path, &long(4_096)), &policy()), []);
    let value = "1024 request paths of probes, 4195328 bytes".to_owned();
    let found = refusals(&with(1_024, path, &long(4_097)), &policy());
    assert_eq!(found, [("LoadBalancerRuleLimit", value)]);
    let interval = "azure-load-balancer-health-probe-interval";
    assert_eq!(refusals(&with(1, interval, &format!("+{:018}", 5)), &policy()), []);
    let zeros = format!("{:019}", 5);
    let found = refusals(&with(1, interval, &format!("+{zeros}")), &policy());
    assert_eq!(found, [("InvalidProbeInterval", format!("+{zeros}"))]);
}

#[test]
fn idle_timeouts_by_sku() {
    let minutes = |text: &str| service(&[("azure-load-balancer-tcp-idle-timeout", text)]);
    let basic = Policy { sku: BalancerSku::Basic, ..policy() };
    assert_eq!(refusals(&minutes("31"), &policy()), []);
    assert_eq!(refusals(&minutes("30"), &basic), []);
    let refused = vec![("InvalidIdleTimeout", "31".to_owned())];
    assert_eq!(refusals(&minutes("31"), &basic), refused);
}

#[test]
fn tags_and_subscriptions() {
    let tags = |count: usize| list((0..count).map(|n| format!("k{n}=v")), ",");
    assert_eq!(refused(&[("azure-pip-tags", &tags(50))]), []);
    let limit = vec![("TooManyTags", "51 tags".to_owned())];
    assert_eq!(refused(&[("azure-pip-tags", &tags(51))]), limit);
    let own = |count: usize| {
        let ids = list((0..count).map(|n| format!("id-{n}")), " ");
        let internal = ("azure-load-balancer-internal", "true");
        let link = [("azure-pls-create", "true"), internal, ("azure-pls-visibility", &ids)];
        let nics = Policy { pools: PoolKind::NodeNic, ..policy() };
        refusals(&service(&link), &nics)
    };
    assert_eq!(own(100), []);
    assert_eq!(own(101), vec![("TooManySubscriptions", "101 subscriptions".to_owned())]);
}

/// Both lists have as many as an annotation holds: each id is looked for once.
#[test]
fn long_lists_of_subscriptions() {
    let ids = |from: usize| list((from..from + 20_000).map(|n| format!("id-{n:05}")), " ");
    let internal = ("azure-load-balancer-internal", "true");
    let (visible, approved) = (ids(0).to_uppercase(), ids(1));
    let link = [
        ("azure-pls-create", "true"),
        internal,
        ("azure-pls-visibility", &*visible),
        ("azure-pls-auto-approval", &*approved),
    ];
    let nics = Policy { pools: PoolKind::NodeNic, ..policy() };
    let reading = read(&service(&link), &nics);
    let unseen = reading.findings.iter().filter(|f| f.rule == "AutoApprovalNotVisible");
    let unseen: Vec<&str> = unseen.map(|f| &*f.value).collect();
    assert_eq!(unseen, ["id-20000"]);
}
