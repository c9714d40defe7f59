//! What a Service of one namespace cannot do to those of others.

use super::addresses::brought;
use super::places::several;
use super::view::*;
use serde_json::json;

const DENY: &str = "azure-deny-all-except-load-balancer-source-ranges";
const NO_FLOAT: (&str, &str) = ("azure-disable-load-balancer-floating-ip", "true");
const MORE: &str = "azure-additional-public-ips";
const NODES: &str = "[10.224.0.4,10.224.0.5,10.224.0.6]";

/// [security rules] A Service on node ports denies its own node ports: other Services' node ports,
/// their probes and the nodes' own traffic are left alone.
#[test]
fn deny_all_leaves_the_nodes_alone() {
    let mut s = asked(web("web").with(&[NO_FLOAT]));
    s.ask(web("greedy").of("evil").ports(&["TCP 81 30180", "UDP 81 30181"]).with(&[
        NO_FLOAT,
        (DENY, "true"),
        ("azure-allowed-ip-ranges", "10.9.0.0/16"),
    ]));
    let text = s.lines(&["open"]);
    let denied: Vec<&str> = text.lines().filter(|line| line.contains(" Deny ")).collect();
    assert_eq!(denied.len(), 2, "{text}");
    assert!(denied[0].ends_with(&format!("Deny Inbound Udp * -> {NODES} [30181]")), "{text}");
    assert!(denied[1].ends_with(&format!("Deny Inbound Tcp * -> {NODES} [30180]")), "{text}");
    let victims = format!("Allow Inbound Tcp Internet -> {NODES} [30080]");
    assert!(text.lines().any(|line| line.ends_with(&victims)), "{text}");
}

/// [security rules] On a frontend that Services share, each denies its own ports.
#[test]
fn deny_all_leaves_others_on_the_frontend_alone() {
    let mut s = asked(web("web").internal().with(&[("azure-load-balancer-ipv4", "10.224.9.9")]));
    s.ask(web("greedy").internal().ports(&["TCP 81 30180"]).with(&[
        ("azure-load-balancer-ipv4", "10.224.9.9"),
        ("azure-allowed-ip-ranges", "10.9.0.0/16"),
        (DENY, "true"),
    ]));
    let text = s.lines(&["open"]);
    assert!(text.ends_with("Deny Inbound Tcp * -> 10.224.9.9 [81]"), "{text}");
    // Alone, it denies everything.
    s.delete("web");
    let text = s.lines(&["open"]);
    assert!(text.ends_with("deny-all_IPv4 Deny Inbound * * -> 10.224.9.9 *"), "{text}");
}

/// [status, security rules] Addresses that others depend on are nobody's additional ones.
#[test]
fn addresses_of_others_are_refused() {
    let mut s = asked(web("web").field("loadBalancerSourceRanges", json!(["10.9.0.0/16"])));
    let before = s.lines(&["open", "status"]);
    let taken = ["20.0.0.1", "10.224.0.4", "10.0.0.1", "169.254.169.254", "168.63.129.16"];
    let taken = taken.iter().chain(&["0.0.0.0", "127.0.0.1", "224.0.0.1", "::1", "fe80::1"]);
    for (at, address) in taken.chain(&["::ffff:20.0.0.1"]).enumerate() {
        let name = format!("thief{at}");
        let port = format!("TCP {} {}", 90 + at, 30090 + at);
        let list = format!("20.9.9.9,{address}");
        s.ask(web(&name).of("evil").ports(&[&port]).with(&[(MORE, &list)]));
        assert!(s.refusal(&name).contains(MORE), "{address}: {}", s.refusal(&name));
        let text = s.lines(&["open", "status"]);
        let text: Vec<&str> = text.lines().filter(|line| !line.contains("thief")).collect();
        assert_eq!(text.join("\n"), before, "{address}");
    }
    is(&s.lines(&["pip"]).lines().count().to_string(), "1");
}

/// [security rules] A Service that asks for another's address and is refused has no rule there:
/// what the other denies stays denied, whether the refused one is new or has been served before.
#[test]
fn a_refused_service_takes_nothing_off_what_another_denies() {
    let mut s = stage(&json!({}));
    let ranges = json!(["10.9.0.0/16"]);
    s.ask(web("web").field("loadBalancerSourceRanges", ranges).with(&[(DENY, "true")]));
    s.ask(web("twin").ports(&["TCP 81 30181"]));
    let before = s.lines(&["open", "status"]);
    assert!(before.contains("deny-all_IPv4 Deny Inbound * * -> 20.0.0.1 *"), "{before}");
    s.annotate("twin", &[(MORE, Some("20.0.0.1"))]);
    s.ask(web("thief").of("evil").ports(&["TCP 82 30182"]).with(&[(MORE, "20.0.0.1")]));
    for name in ["twin", "thief"] {
        assert!(s.refusal(name).contains(MORE), "{name}: {}", s.refusal(name));
    }
    let text = s.lines(&["open", "status"]);
    let text: Vec<&str> = text.lines().filter(|line| !line.contains("thief")).collect();
    is(&text.join("\n"), &before);
}

/// [status, security rules] An address that was free when a Service named it becomes another's
/// frontend: it is the other's from then on.
#[test]
fn an_address_that_becomes_anothers_is_let_go() {
    let mut s = asked(web("thief").of("evil").with(&[(MORE, "20.0.0.2")]));
    is(&s.lines(&["status"]), "status thief 20.0.0.1,20.0.0.2");
    s.ask(
        web("web")
            .ports(&["TCP 80 30180"])
            .field("loadBalancerSourceRanges", json!(["10.9.0.0/16"])),
    );
    assert!(s.refusal("thief").contains("20.0.0.2"), "{}", s.refusal("thief"));
    is(
        &s.lines(&["open", "status"]),
        "open 500 allow_IPv4_d39272f7 Allow Inbound Tcp Internet -> 20.0.0.1 [80]
        open 501 allow_IPv4_872b39f3 Allow Inbound Tcp 10.9.0.0/16 -> 20.0.0.2 [80]
        status web 20.0.0.2
        status thief 20.0.0.1",
    );
}

/// [status] Another namespace's additional address is taken, too, unless the cloud config lists it.
#[test]
fn additional_addresses_of_another_namespace() {
    for (config, refused) in
        [(json!({}), true), (json!({"allowedAdditionalPublicIPs": "20.9.9.0/24"}), false)]
    {
        let mut s = stage(&config);
        s.ask(web("web").with(&[(MORE, "20.9.9.9")]));
        s.ask(web("twin").ports(&["TCP 81 30181"]).with(&[(MORE, "20.9.9.9")]));
        assert_eq!(s.refusal("twin"), "");
        s.ask(web("thief").of("evil").ports(&["TCP 82 30182"]).with(&[(MORE, "20.9.9.9")]));
        assert_eq!(!s.refusal("thief").is_empty(), refused, "{}", s.refusal("thief"));
        s.ask(web("other").of("evil").ports(&["TCP 83 30183"]).with(&[(MORE, "20.8.8.8")]));
        assert_eq!(s.refusal("other").is_empty(), refused, "{}", s.refusal("other"));
    }
}

/// [public IPs] Label and tags of a public IP that was brought are its owner's and the first
/// Service's.
#[test]
fn labels_and_tags_of_others() {
    let mut pip = brought("rg", "front-door", "20.50.1.1", json!({"owner": "netops"}));
    pip["properties"]["dnsSettings"] = json!({"domainNameLabel": "netops"});
    let mut legacy =
        brought("rg", "dns", "20.50.1.2", json!({"service": "dns", "owner": "netops"}));
    legacy["properties"]["dnsSettings"] = json!({"domainNameLabel": "netops-dns"});
    let mut s = stage_with(&json!({"allowSharingAcrossNamespaces": true}), vec![pip, legacy]);
    s.ask(web("web").with(&[("azure-pip-name", "front-door")]));
    let own = [("azure-pip-tags", "owner=evil"), ("azure-dns-label-name", "")];
    for (at, name) in ["front-door", "dns"].iter().enumerate() {
        let thief = format!("thief{at}");
        let port = format!("TCP {} {}", 90 + at, 30090 + at);
        s.ask(web(&thief).of("evil").ports(&[&port]).with(&own).with(&[("azure-pip-name", name)]));
        assert_eq!(s.refusal(&thief), "");
    }
    let port = ["TCP 99 30099"];
    let label = [("azure-pip-name", "front-door"), ("azure-dns-label-name", "evil")];
    s.ask(web("thief9").of("evil").ports(&port).with(&label));
    is(&s.lines(&["pip"]), "");
}

/// [pools] With several load balancers, no Service has the pool of another, or the cluster's.
#[test]
fn pools_of_others() {
    let mut s = several();
    s.ask(web("b-c").of("a").local(32000));
    s.ask(web("web").ports(&["TCP 83 30083"]));
    let before = s.lines(&["pool"]);
    assert!(before.contains("pool a-b-c "), "{before}");
    s.ask(web("c").of("a-b").ports(&["TCP 81 30081"]).local(32001));
    assert!(s.refusal("c").contains("a/b-c"), "{}", s.refusal("c"));
    s.ask(web("ipv6").of("kubernetes").ports(&["TCP 82 30082"]).local(32002));
    assert!(s.refusal("ipv6").contains("the cluster's own"), "{}", s.refusal("ipv6"));
    is(&s.lines(&["pool"]), &before);
}
