//! Private Link Services.

use super::view::*;
use crate::support::{policy, scale_set};
use serde_json::{Value, json};

/// Azure puts none before pools of addresses.
fn nics(more: &Value) -> Value {
    let mut config = more.clone();
    config["loadBalancerBackendPoolConfigurationType"] = json!("nodeIPConfiguration");
    config
}

const LINKS: [&str; 4] = ["pls", "nat", "subnet", "frontend"];

/// [Private Link Services] Everything that can be asked of one: static addresses first, the first
/// of them the primary; lists in the order written; in the subnet of the Service.
#[test]
fn everything_that_can_be_asked() {
    let mut s = stage(&nics(&json!({"tags": "team=x"})));
    s.ask(web("in").internal().with(&[
        ("azure-load-balancer-internal-subnet", "apps"),
        ("azure-pls-create", " True "),
        ("azure-pls-ip-configuration-ip-address-count", "4"),
        ("azure-pls-ip-configuration-ip-address", " 10.225.0.41  10.225.0.40 "),
        ("azure-pls-fqdns", "b.example  a.example"),
        ("azure-pls-proxy-protocol", "true"),
        ("azure-pls-visibility", "sub-2 sub-1"),
        ("azure-pls-auto-approval", "sub-2 sub-0"),
    ]));
    is(
        &s.lines(&LINKS),
        "frontend <in>-apps apps IPv4 Dynamic 10.225.0.4 zones 1,2,3
        pls pls-<in>-apps before <in>-apps proxy true fqdns b.example,a.example visible \
            sub-2,sub-1 approved sub-2,sub-0 tags k8s-azure-cluster-name=kubernetes \
            k8s-azure-owner-service=default/in team=x
        nat apps-pls-<in>-apps-static-10.225.0.41 apps IPv4 Static 10.225.0.41 primary
        nat apps-pls-<in>-apps-static-10.225.0.40 apps IPv4 Static 10.225.0.40
        nat apps-pls-<in>-apps-dynamic-0 apps IPv4 Dynamic 10.225.0.5
        nat apps-pls-<in>-apps-dynamic-1 apps IPv4 Dynamic 10.225.0.6
        subnet apps takes Private Link Services",
    );
    // What the other order says is the same: nothing is written.
    let writes = s.lab.calls().0;
    s.annotate(
        "in",
        &[
            ("azure-pls-fqdns", Some("a.example b.example")),
            ("azure-pls-visibility", Some("sub-1 sub-2")),
            ("azure-pls-auto-approval", Some("sub-0 sub-2")),
        ],
    );
    assert_eq!(s.lab.calls().0, writes);
    // `*` stands for all.
    s.annotate(
        "in",
        &[
            ("azure-pls-visibility", Some("sub-1 *")),
            ("azure-pls-auto-approval", None),
            ("azure-pls-fqdns", None),
            ("azure-pls-proxy-protocol", Some("false")),
        ],
    );
    let link = s.lines(&["pls"]);
    assert!(link.contains("proxy false visible * tags"), "{link}");
    s.annotate("in", &[("azure-pls-create", None)]);
    is(&s.lines(&["pls", "nat"]), "");
    s.delete("in");
    is(&s.text(), "nsg nsg tags team=x\nsubnet apps takes Private Link Services");
}

/// [Private Link Services] Name, group and subnet of its own; on a public frontend without
/// floating IP.
#[test]
fn a_named_one_before_a_public_frontend() {
    let mut s = stage(&nics(&json!({"privateLinkServiceResourceGroup": "pip-rg"})));
    s.ask(web("web").with(&[
        ("azure-disable-load-balancer-floating-ip", "true"),
        ("azure-pls-create", "true"),
        ("azure-pls-name", " my-link "),
        ("azure-pls-ip-configuration-subnet", "apps"),
    ]));
    is(
        &s.lines(&LINKS),
        "pls pip-rg/my-link before <web> proxy - tags k8s-azure-cluster-name=kubernetes \
            k8s-azure-owner-service=default/web
        nat apps-my-link-dynamic-0 apps IPv4 Dynamic 10.225.0.4 primary
        frontend <web> pip kubernetes-<web>
        subnet apps takes Private Link Services",
    );
    s.delete("web");
    let mut s = stage(&nics(&json!({"privateLinkServiceResourceGroup": "pip-rg"})));
    s.ask(
        web("in")
            .internal()
            .with(&[("azure-pls-create", "true"), ("azure-pls-resource-group", "rg")]),
    );
    assert!(s.lines(&["pls"]).starts_with("pls pls-<in> before"), "{}", s.lines(&["pls"]));
}

/// [Private Link Services] Azure takes no IPv6 frontend beside one: of two Services that ask for
/// one of them each, the later is refused, until the earlier has gone. Nothing is asked of Azure
/// that it would refuse.
#[test]
fn beside_ipv6_who_comes_first_stays() {
    let link = |name| web(name).internal().with(&[("azure-pls-create", "true")]);
    let six = |name| web(name).internal().dual().ports(&["TCP 81 30081"]);
    let stand = || {
        let both = vec![super::rules::dual_subnet("both")];
        stage_with(&nics(&json!({"subnetName": "both"})), both)
    };
    for (first, second) in [(link("one"), six("two")), (six("one"), link("two"))] {
        let mut s = stand();
        s.ask(first.clone());
        let before = s.lines(&["frontend", "pls"]);
        s.ask(second.clone());
        assert_ne!(s.refusal("two"), "");
        assert_eq!(s.refusal("one"), "");
        assert_eq!(s.lines(&["frontend", "pls"]), before);
        s.delete("one");
        assert_eq!(s.refusal("two"), "");
        assert!(s.lines(&["frontend"]).contains("<two>"), "{}", s.text());
    }
    // Of its own IPv6 frontend, too.
    let mut s = stand();
    s.ask(web("in").internal().dual().with(&[("azure-pls-create", "true")]));
    assert_ne!(s.refusal("in"), "");
    is(&s.text(), "status in ");
}

/// [Private Link Services] None stands before pools of addresses.
#[test]
fn before_a_pool_of_addresses_none_stands() {
    let mut s = asked(web("in").internal().with(&[("azure-pls-create", "true")]));
    assert_ne!(s.refusal("in"), "");
    is(&s.text(), "status in ");
    s.annotate("in", &[("azure-pls-create", None)]);
    assert_eq!(s.refusal("in"), "");
    s.annotate("in", &[("azure-pls-create", Some("true"))]);
    assert_ne!(s.refusal("in"), "");
    assert_eq!(s.lines(&["pls"]), "");
}

/// [Private Link Services] A cloud config that turns to pools of addresses leaves those behind a
/// Private Link Service as they are, and says so; they turn when it has gone.
#[test]
fn pools_behind_one_stay_pools_of_nics() {
    for api in [false, true] {
        let mut s = stage_with(&nics(&json!({})), scale_set("vmss", 3));
        s.ask(web("in").internal().with(&[("azure-pls-create", "true")]));
        let pools = |s: &Stage| s.lines(&["pool", "pls"]);
        let before = pools(&s);
        assert!(before.contains("pls pls-<in>"), "{before}");
        s.lab.restart_with(policy(&json!({"enableMigrateToIPBasedBackendPoolAPI": api})));
        s.settle();
        assert_eq!(pools(&s), before);
        let findings = &s.lab.controller().report().findings;
        let rules: Vec<&str> = findings.iter().map(|f| f.rule).collect();
        assert_eq!(rules, ["AddressPoolsBehindPrivateLink"]);
        s.annotate("in", &[("azure-pls-create", None)]);
        assert_eq!(s.refusal("in"), "");
        assert!(pools(&s).contains("10.224.0.4"), "{}", s.text());
        assert!(s.lab.controller().report().findings.is_empty());
    }
}

/// [probes] Behind the PROXY protocol a Local Service is probed on its own ports.
#[test]
fn a_local_service_behind_the_proxy_protocol() {
    let mut s = stage(&nics(&json!({})));
    s.ask(
        web("in")
            .internal()
            .local(32000)
            .ports(&["TCP 80 30080 http", "UDP 53 30053"])
            .with(&[("azure-pls-create", "true"), ("azure-pls-proxy-protocol", "True")]),
    );
    is(
        &s.lines(&["rule", "probe"]),
        "rule <in>-TCP-80 Tcp 80->80 from <in> to kubernetes probe <in>-TCP-80 idle 4 Default \
            float reset no-snat
        rule <in>-UDP-53 Udp 53->53 from <in> to kubernetes idle 4 Default float no-snat
        probe <in>-TCP-80 Http:30080/ every 5 x2",
    );
}

/// [Private Link Services] A Service that shares a frontend shares what stands before it, unless it
/// brings a configuration.
#[test]
fn shared_by_services_of_one_frontend() {
    let mut s = stage(&nics(&json!({})));
    let pinned = ("azure-load-balancer-ipv4", "10.224.0.77");
    s.ask(web("one").internal().with(&[
        pinned,
        ("azure-pls-create", "true"),
        ("azure-pls-name", "link"),
    ]));
    let before = s.lines(&["pls", "nat"]);
    s.ask(
        web("two")
            .internal()
            .ports(&["TCP 81 30081"])
            .with(&[pinned, ("azure-pls-create", "true")]),
    );
    assert_eq!(s.refusal("two"), "");
    assert_eq!(s.lines(&["pls", "nat"]), before);
    // Where it is says nothing about how it is to be.
    s.ask(web("four").internal().ports(&["TCP 83 30083"]).with(&[
        pinned,
        ("azure-pls-create", "true"),
        ("azure-pls-resource-group", "rg"),
    ]));
    assert_eq!(s.refusal("four"), "");
    assert_eq!(s.lines(&["pls", "nat"]), before);
    s.ask(web("three").internal().ports(&["TCP 82 30082"]).with(&[
        pinned,
        ("azure-pls-create", "true"),
        ("azure-pls-fqdns", "a.example"),
    ]));
    assert_ne!(s.refusal("three"), "");
    is(
        &s.lines(&["status"]),
        "status four 10.224.0.77
        status one 10.224.0.77
        status three
        status two 10.224.0.77",
    );
}

/// [Private Link Services] What cannot be.
#[test]
fn links_that_cannot_be() {
    let on = ("azure-pls-create", "true");
    let count = "azure-pls-ip-configuration-ip-address-count";
    let fixed = "azure-pls-ip-configuration-ip-address";
    let rows: [&[(&str, &str)]; 7] = [
        &[on, (count, "0")],
        &[on, (count, "9")],
        &[on, (count, "two")],
        &[on, (fixed, "10.224.0.40 10.224.0.41")],
        &[on, (fixed, "fd00::9")],
        &[on, (fixed, "10.224.0.4.4")],
        &[on, ("azure-pls-ip-configuration-subnet", "nowhere")],
    ];
    for annotations in rows {
        let mut s = stage(&nics(&json!({})));
        s.ask(web("in").internal().with(annotations));
        assert_ne!(s.refusal("in"), "", "{annotations:?}");
        is(&s.lines(&["pls", "nat", "subnet"]), "");
    }
    // Public with floating IP; IPv6 alone.
    let mut s = stage(&nics(&json!({})));
    s.ask(web("web").with(&[on]));
    assert_ne!(s.refusal("web"), "");
    is(&s.text(), "status web ");
    let both = vec![super::rules::dual_subnet("both")];
    let mut s = stage_with(&nics(&json!({"subnetName": "both"})), both);
    s.ask(web("in").internal().families(&["IPv6"]).with(&[on]));
    assert_ne!(s.refusal("in"), "");
    is(&s.text(), "status in ");
}
