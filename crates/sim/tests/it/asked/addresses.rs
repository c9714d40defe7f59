//! Public IPs, their names, tags and labels.

use super::view::*;
use crate::support::{GROUP, network};
use serde_json::{Value, json};

const FRONTS: [&str; 3] = ["frontend", "pip", "status"];
/// The UID of the emulated cluster's kube-system namespace, on what is in a group that only a
/// Service names.
pub(crate) const SIGNED: &str = "ballast-cluster-uid=00000004-fbab-4717-a80a-ba8c86640906";
const OURS: &str = "k8s-azure-cluster-name=kubernetes k8s-azure-service=default/web";

fn prefix(name: &str, range: &str) -> Value {
    let family = if range.contains(':') { "IPv6" } else { "IPv4" };
    json!({"id": network(&format!("publicIPPrefixes/{name}")), "sku": {"name": "Standard"},
        "properties": {"ipPrefix": range, "publicIPAddressVersion": family}})
}

pub fn brought(group: &str, name: &str, address: &str, tags: Value) -> Value {
    let family = if address.contains(':') { "IPv6" } else { "IPv4" };
    let group = GROUP.replace("/rg", &format!("/{group}"));
    json!({"id": format!("{group}/providers/Microsoft.Network/publicIPAddresses/{name}"),
        "tags": tags, "sku": {"name": "Standard", "tier": "Regional"}, "properties": {
            "publicIPAllocationMethod": "Static", "publicIPAddressVersion": family,
            "ipAddress": address, "idleTimeoutInMinutes": 4}})
}

/// [names, public IPs] Prefixes by family; a Service of both families takes each from its own key.
#[test]
fn prefixes_of_both_families() {
    let long = "a-prefix-whose-name-is-very-long-indeed-0123456789";
    let all = vec![prefix("six", "2603:99::/124"), prefix(long, "20.98.0.0/28")];
    let mut s = stage_with(&json!({}), all);
    let ids = [network(&format!("publicIPPrefixes/{long}")), network("publicIPPrefixes/six")];
    s.ask(
        web("web")
            .dual()
            .with(&[("azure-pip-prefix-id", &ids[0]), ("azure-pip-prefix-id-ipv6", &ids[1])]),
    );
    // 10 + 1 + 32 + 1 characters, and 31 of the prefix's name.
    let cut = &long[..31];
    is(
        &s.lines(&FRONTS),
        &format!(
            "frontend <web> pip kubernetes-<web>-{cut}
            frontend <web>-IPv6 pip kubernetes-<web>-six-IPv6
            pip kubernetes-<web>-{cut} Standard IPv4 Static 20.98.0.0 zones 1,2,3 tags {OURS} \
                prefix {long}
            pip kubernetes-<web>-six-IPv6 Standard IPv6 Static 2603:99:: zones 1,2,3 tags {OURS} \
                prefix six
            status web 20.98.0.0,2603:99::"
        ),
    );
}

/// [public IPs] The plain key of a prefix counts for IPv6 only where there is no IPv4.
#[test]
fn the_plain_prefix_key_and_ipv6() {
    let six = network("publicIPPrefixes/six");
    let all = || vec![prefix("six", "2603:99::/124")];
    let mut s = stage_with(&json!({}), all());
    s.ask(web("web").families(&["IPv6"]).with(&[("azure-pip-prefix-id", &six)]));
    is(
        &s.lines(&FRONTS),
        &format!(
            "frontend <web> pip kubernetes-<web>-six
            pip kubernetes-<web>-six Standard IPv6 Static 2603:99:: zones 1,2,3 tags {OURS} \
                prefix six
            status web 2603:99::"
        ),
    );
    let four = network("publicIPPrefixes/prefix");
    let mut s = stage_with(&json!({}), all());
    s.ask(web("web").dual().with(&[("azure-pip-prefix-id", &four)]));
    is(
        &s.lines(&["frontend"]),
        "frontend <web> pip kubernetes-<web>-prefix
        frontend <web>-IPv6 pip kubernetes-<web>-IPv6",
    );
}

/// [public IPs] Public IPs that were brought, by name and family: nothing is written on them.
#[test]
fn brought_by_name_for_both_families() {
    let six = || vec![brought("rg", "byo6", "2603:50::1", Value::Null)];
    let mut s = stage_with(&json!({}), six());
    s.ask(web("web").dual().with(&[
        ("azure-pip-name", "byo-pip"),
        ("azure-pip-name-ipv6", "byo6"),
        ("azure-pip-tags", "a=b"),
    ]));
    is(
        &s.lines(&["frontend", "rule", "status"]),
        "frontend <web> pip byo-pip
        frontend <web>-IPv6 pip byo6
        rule <web>-TCP-80 Tcp 80->80 from <web> to kubernetes probe <web>-TCP-80 idle 4 Default \
            float reset no-snat
        rule <web>-TCP-80-IPv6 Tcp 80->80 from <web>-IPv6 to kubernetes-IPv6 probe \
            <web>-TCP-80-IPv6 idle 4 Default float reset no-snat
        status web 20.50.0.10,2603:50::1",
    );
    assert!(!s.text().contains("tags"), "{}", s.text());
    // IPv6 alone: its own key before the plain one, and the plain one without it.
    for keys in [
        [("azure-pip-name", "byo6"), ("azure-pip-tags", "a=b")],
        [("azure-pip-name", "byo-pip"), ("azure-pip-name-ipv6", "byo6")],
    ] {
        let mut s = stage_with(&json!({}), six());
        s.ask(web("web").families(&["IPv6"]).with(&keys));
        is(&s.lines(&["frontend", "status"]), "frontend <web> pip byo6\nstatus web 2603:50::1");
    }
    // One family brought, the other made.
    let mut s = asked(web("web").dual().with(&[("azure-pip-name", "byo-pip")]));
    is(
        &s.lines(&["frontend", "status"]),
        "frontend <web> pip byo-pip
        frontend <web>-IPv6 pip kubernetes-<web>-IPv6
        status web 20.50.0.10,2603:1000::1",
    );
    s.delete("web");
    is(&s.text(), "");
}

/// [public IPs] A pinned address of one family, the other family's is made; the annotation goes
/// before the field.
#[test]
fn pinned_addresses() {
    let s = asked(
        web("web")
            .dual()
            .field("loadBalancerIP", json!("20.66.66.66"))
            .with(&[("azure-load-balancer-ipv4", "20.50.0.10")]),
    );
    is(
        &s.lines(&["frontend", "status"]),
        "frontend <web> pip byo-pip
        frontend <web>-IPv6 pip kubernetes-<web>-IPv6
        status web 20.50.0.10,2603:1000::1",
    );
    // In the group of the annotation, and nowhere else.
    let mut s = asked(web("web").field("loadBalancerIP", json!("20.50.0.11")));
    assert_ne!(s.refusal("web"), "");
    is(&s.text(), "status web ");
    s.annotate("web", &[("azure-load-balancer-resource-group", Some(" PIP-RG "))]);
    is(
        &s.lines(&["frontend", "status"]),
        "frontend <web> pip pip-rg/byo-pip2\nstatus web 20.50.0.11",
    );
    for wrong in
        ["10.1.2.3", "100.64.0.1", "168.63.129.16", "224.0.0.1", "2603::1", "20.1.2", "20.7.7.7"]
    {
        let s = asked(web("web").with(&[("azure-load-balancer-ipv4", wrong)]));
        assert_ne!(s.refusal("web"), "", "{wrong}");
        is(&s.text(), "status web ");
    }
}

/// [public IPs] A public IP that is made in another resource group; it goes with its Service.
#[test]
fn made_in_another_group() {
    let mut s = asked(web("web").with(&[("azure-load-balancer-resource-group", "pip-rg")]));
    is(
        &s.lines(&FRONTS),
        &format!(
            "pip pip-rg/kubernetes-<web> Standard IPv4 Static 20.0.0.1 zones 1,2,3 tags {SIGNED} \
                {OURS}
            frontend <web> pip pip-rg/kubernetes-<web>
            status web 20.0.0.1"
        ),
    );
    s.delete("web");
    is(&s.text(), "");
}

/// [public IPs] Tags: the config's before the annotation's, keys compared without case; what the
/// annotation set goes with it, also after a restart.
#[test]
fn tags_of_config_and_annotation() {
    let mut s =
        stage(&json!({"tags": "a=1,Team=x,=no,odd=a=b", "tagsMap": {"A": "2", "b": " 3 "}}));
    s.ask(web("web").with(&[("azure-pip-tags", "team=y,new= z ,odd,=v")]));
    let ours = "k8s-azure-cluster-name=kubernetes k8s-azure-service=default/web";
    is(
        &s.lines(&["lb", "pip", "nsg"]),
        &format!(
            "lb kubernetes Standard tags A=2 Team=x b=3
            nsg nsg tags A=2 Team=x b=3
            pip kubernetes-<web> Standard IPv4 Static 20.0.0.1 zones 1,2,3 tags A=2 Team=x b=3 \
                {ours} new=z"
        ),
    );
    s.annotate("web", &[("azure-pip-tags", Some("NEW=q"))]);
    is(
        &s.lines(&["pip"]),
        &format!(
            "pip kubernetes-<web> Standard IPv4 Static 20.0.0.1 zones 1,2,3 tags A=2 Team=x b=3 \
                {ours} new=q"
        ),
    );
    let pip = format!(
        "pip kubernetes-<web> Standard IPv4 Static 20.0.0.1 zones 1,2,3 tags A=2 Team=x b=3 {ours}"
    );
    s.annotate("web", &[("azure-pip-tags", Some("more=1"))]);
    is(&s.lines(&["pip"]), &format!("{pip} more=1"));
    s.annotate("web", &[("azure-pip-tags", None)]);
    is(&s.lines(&["pip"]), &pip);
}

/// [public IPs] A tag that was there before stays when an annotation goes that asks for the same.
#[test]
fn tags_that_an_annotation_found_stay() {
    let mut s = stage(&json!({}));
    s.ask(web("web"));
    let id = s.public_ip("web");
    s.edit(&id, |ip| ip["tags"]["team"] = json!("net"));
    // What another client sets at the same time as the annotation counts as the annotation's.
    s.lab.pass(3 * 60_000);
    s.annotate("web", &[("azure-pip-tags", Some("team=net,env=prod"))]);
    assert!(s.lines(&["pip"]).contains("env=prod"), "{}", s.lines(&["pip"]));
    s.annotate("web", &[("azure-pip-tags", None)]);
    let pip = s.lines(&["pip"]);
    assert!(pip.contains(" team=net") && !pip.contains("env="), "{pip}");
}

/// [public IPs] With `systemTags`, tags that are neither wanted nor of the system go; ours stay.
#[test]
fn tags_where_system_tags_are_set() {
    let mut s = stage(&json!({"tags": "a=1", "systemTags": "keep, Sys"}));
    s.ask(
        web("web")
            .with(&[("azure-pip-tags", "new=z,keep-me=1"), ("azure-dns-label-name", "my-web")]),
    );
    let id = s.public_ip("web");
    s.edit(&id, |ip| {
        ip["tags"]["other"] = json!("1");
        ip["tags"]["SYSTEM"] = json!("2");
    });
    s.annotate("web", &[("azure-pip-tags", None)]);
    is(
        &s.lines(&["pip"]),
        "pip kubernetes-<web> Standard IPv4 Static 20.0.0.1 zones 1,2,3 tags SYSTEM=2 a=1 \
            k8s-azure-cluster-name=kubernetes k8s-azure-dns-label-service=default/web \
            k8s-azure-service=default/web keep-me=1 dns my-web",
    );
}

/// [public IPs] Services that share a public IP that was made stand on its tag, in the order in
/// which they came; it goes with the last.
#[test]
fn a_made_public_ip_is_shared() {
    let mut s = asked(web("web"));
    let id = s.public_ip("web");
    let name = id.rsplit('/').next().expect("a name").to_owned();
    s.ask(web("app").ports(&["TCP 81 30081"]).with(&[("azure-pip-name", &name)]));
    is(
        &s.lines(&["frontend", "rule", "open", "pip", "status"]),
        "frontend <web> pip kubernetes-<web>
        rule <web>-TCP-80 Tcp 80->80 from <web> to kubernetes probe <web>-TCP-80 idle 4 Default \
            float reset no-snat
        rule <app>-TCP-81 Tcp 81->81 from <web> to kubernetes probe <app>-TCP-81 idle 4 Default \
            float reset no-snat
        open 500 allow_IPv4_d39272f7 Allow Inbound Tcp Internet -> 20.0.0.1 [80]
        open 501 allow_IPv4_4938d664 Allow Inbound Tcp Internet -> 20.0.0.1 [81]
        pip kubernetes-<web> Standard IPv4 Static 20.0.0.1 zones 1,2,3 tags \
            k8s-azure-cluster-name=kubernetes k8s-azure-service=default/web,default/app
        status app 20.0.0.1
        status web 20.0.0.1",
    );
    s.delete("web");
    is(
        &s.lines(&["rule", "pip", "open", "status"]),
        "rule <app>-TCP-81 Tcp 81->81 from <web> to kubernetes probe <app>-TCP-81 idle 4 Default \
            float reset no-snat
        open 501 allow_IPv4_4938d664 Allow Inbound Tcp Internet -> 20.0.0.1 [81]
        pip kubernetes-<web> Standard IPv4 Static 20.0.0.1 zones 1,2,3 tags \
            k8s-azure-cluster-name=kubernetes k8s-azure-service=default/app
        status app 20.0.0.1",
    );
    s.delete("app");
    is(&s.text(), "");
}

/// [public IPs] The tags that older releases wrote are read; what is written has the new keys.
#[test]
fn legacy_tags_are_read() {
    let tags = json!({"service": "default/web", "kubernetes-cluster-name": "kubernetes"});
    let mut s = stage_with(&json!({}), vec![brought("rg", "old", "20.50.1.1", tags)]);
    s.ask(web("web").with(&[("azure-pip-name", "old"), ("azure-pip-tags", "a=b")]));
    let pip = s.lines(&["pip"]);
    assert!(pip.contains("a=b"), "{pip}");
    assert!(pip.contains("k8s-azure-service=default/web"), "{pip}");
    assert!(pip.contains("k8s-azure-cluster-name=kubernetes"), "{pip}");
    // It is managed, so it goes with its Service.
    s.delete("web");
    assert_eq!(s.lines(&["gone"]).lines().count(), 1, "{}", s.text());
}

/// [public IPs] A DNS label comes, changes, and goes when it is empty; without the annotation it is
/// left alone. The tag that says whose label it is stays.
#[test]
fn a_dns_label_comes_and_goes() {
    let mut s = asked(web("web").with(&[("azure-dns-label-name", "my-web")]));
    let line = |label: &str| {
        format!(
            "pip kubernetes-<web> Standard IPv4 Static 20.0.0.1 zones 1,2,3 tags \
             k8s-azure-cluster-name=kubernetes k8s-azure-dns-label-service=default/web \
             k8s-azure-service=default/web{label}"
        )
    };
    is(&s.lines(&["pip"]), &line(" dns my-web"));
    s.annotate("web", &[("azure-dns-label-name", Some("other-web"))]);
    is(&s.lines(&["pip"]), &line(" dns other-web"));
    s.annotate("web", &[("azure-dns-label-name", None)]);
    is(&s.lines(&["pip"]), &line(" dns other-web"));
    s.annotate("web", &[("azure-dns-label-name", Some(""))]);
    is(&s.lines(&["pip"]), &line(""));
    s.annotate("web", &[("azure-dns-label-name", Some("third-web"))]);
    is(&s.lines(&["pip"]), &line(" dns third-web"));
}

/// [public IPs] On a public IP that was brought the label is set, and no tag says so: so it is not
/// taken away, for it may be its owner's.
#[test]
fn a_dns_label_of_a_brought_public_ip() {
    let mut s = asked(web("web").with(&[
        ("azure-load-balancer-resource-group", "pip-rg"),
        ("azure-pip-name", "byo-pip2"),
        ("azure-dns-label-name", "my-web"),
    ]));
    is(&s.lines(&["pip"]), "pip pip-rg/byo-pip2 Standard IPv4 Static 20.50.0.11 dns my-web");
    s.annotate("web", &[("azure-dns-label-name", Some("your-web"))]);
    is(&s.lines(&["pip"]), "pip pip-rg/byo-pip2 Standard IPv4 Static 20.50.0.11 dns your-web");
    s.annotate("web", &[("azure-dns-label-name", Some(""))]);
    is(&s.lines(&["pip"]), "pip pip-rg/byo-pip2 Standard IPv4 Static 20.50.0.11 dns your-web");
}

/// [public IPs] A label that another Service has on the same public IP is neither changed nor
/// taken away.
#[test]
fn a_dns_label_of_another_service() {
    let mut s = asked(web("web").with(&[("azure-dns-label-name", "my-web")]));
    let id = s.public_ip("web");
    let name = id.rsplit('/').next().expect("a name").to_owned();
    for (index, label) in ["", "your-web"].iter().enumerate() {
        let app = format!("app{index}");
        let port = format!("TCP {} {}", 90 + index, 30090 + index);
        s.ask(
            web(&app)
                .ports(&[&port])
                .with(&[("azure-pip-name", &name), ("azure-dns-label-name", label)]),
        );
        assert_ne!(s.refusal(&app), "", "{label:?}");
        assert!(s.lines(&["pip"]).ends_with("dns my-web"), "{}", s.lines(&["pip"]));
    }
}

/// [public IPs] A label of both families' public IPs.
#[test]
fn a_dns_label_of_both_families() {
    let s = asked(web("web").dual().with(&[("azure-dns-label-name", "my-web")]));
    assert_eq!(s.refusal("web"), "");
    let pips = s.lines(&["pip"]);
    assert_eq!(pips.lines().count(), 2, "{pips}");
    assert!(pips.lines().all(|line| line.ends_with("dns my-web")), "{pips}");
}

/// [public IPs] IP tags are given when a public IP is made; another tag makes another public IP,
/// or changes it in place where the config says so.
#[test]
fn ip_tags() {
    for in_place in [false, true] {
        let mut s = stage(&json!({"enableIPTagMutationForExistingPublicIP": in_place}));
        s.ask(
            web("web")
                .with(&[("azure-pip-ip-tags", "RoutingPreference=Internet,x,FirstPartyUsage=/a")]),
        );
        let first = s.lines(&["pip"]);
        assert!(first.contains("RoutingPreference=Internet"), "{first}");
        assert!(first.contains("FirstPartyUsage=/a"), "{first}");
        s.annotate("web", &[("azure-pip-ip-tags", Some("FirstPartyUsage=/b"))]);
        let second = s.lines(&["pip"]);
        assert!(second.ends_with("iptags FirstPartyUsage=/b"), "{second}");
        assert_eq!(second.contains("20.0.0.1 "), in_place, "{second}");
        // Without the annotation they are left alone.
        s.annotate("web", &[("azure-pip-ip-tags", None)]);
        assert_eq!(s.lines(&["pip"]), second);
    }
}

/// [public IPs, load balancers] In an edge zone: the place instead of zones.
#[test]
fn an_edge_zone() {
    let mut s =
        stage(&json!({"extendedLocationName": "losangeles", "extendedLocationType": "EdgeZone"}));
    s.ask(web("web"));
    s.ask(web("in").internal().ports(&["TCP 81 30081"]));
    is(
        &s.lines(&["lb", "frontend", "pip"]),
        &format!(
            "lb kubernetes Standard edge losangeles
            frontend <web> pip kubernetes-<web>
            lb kubernetes-internal Standard edge losangeles
            frontend <in> nodes IPv4 Dynamic 10.224.100.5
            pip kubernetes-<web> Standard IPv4 Static 20.0.0.1 edge losangeles tags {OURS}"
        ),
    );
}

/// [names, load balancers] A load balancer with a name and a group of its own; public IPs and pools
/// keep the cluster's name and group.
#[test]
fn a_named_load_balancer_in_a_group_of_its_own() {
    let mut s = stage(&json!({"loadBalancerName": "edge", "loadBalancerResourceGroup": "pip-rg"}));
    s.ask(web("web"));
    s.ask(web("in").internal().ports(&["TCP 81 30081"]));
    is(
        &s.lines(&["lb", "frontend", "pool", "pip"]),
        &format!(
            "lb pip-rg/edge Standard
            frontend <web> pip kubernetes-<web>
            pool kubernetes 10.224.0.4,10.224.0.5,10.224.0.6
            lb pip-rg/edge-internal Standard
            frontend <in> nodes IPv4 Dynamic 10.224.100.5 zones 1,2,3
            pool kubernetes 10.224.0.4,10.224.0.5,10.224.0.6
            pip kubernetes-<web> Standard IPv4 Static 20.0.0.1 zones 1,2,3 tags {OURS}"
        ),
    );
    s.delete("web");
    s.delete("in");
    is(&s.text(), "");
}

/// [public IPs, names] From one family to two and back.
#[test]
fn from_one_family_to_two_and_back() {
    let mut s = asked(web("web"));
    let one = s.text();
    s.change(
        "web",
        json!({"spec": {"ipFamilyPolicy": "RequireDualStack",
        "ipFamilies": ["IPv4", "IPv6"]}}),
    );
    is(
        &s.lines(&["frontend", "pool", "rule", "pip", "status"]),
        &format!(
            "frontend <web> pip kubernetes-<web>
            frontend <web>-IPv6 pip kubernetes-<web>-IPv6
            pool kubernetes 10.224.0.4,10.224.0.5,10.224.0.6
            pool kubernetes-IPv6 fd00::4,fd00::5,fd00::6
            rule <web>-TCP-80 Tcp 80->80 from <web> to kubernetes probe <web>-TCP-80 idle 4 \
                Default float reset no-snat
            rule <web>-TCP-80-IPv6 Tcp 80->80 from <web>-IPv6 to kubernetes-IPv6 probe \
                <web>-TCP-80-IPv6 idle 4 Default float reset no-snat
            pip kubernetes-<web> Standard IPv4 Static 20.0.0.1 zones 1,2,3 tags {OURS}
            pip kubernetes-<web>-IPv6 Standard IPv6 Static 2603:1000::2 zones 1,2,3 tags {OURS}
            status web 20.0.0.1,2603:1000::2"
        ),
    );
    s.change(
        "web",
        json!({"spec": {"ipFamilyPolicy": "SingleStack", "ipFamilies": ["IPv4"],
        "clusterIPs": [s.object("web")["spec"]["clusterIP"]]}}),
    );
    let back = s.text();
    let without_pool: Vec<&str> =
        back.lines().filter(|line| !line.starts_with("pool kubernetes-IPv6")).collect();
    assert_eq!(without_pool, one.lines().collect::<Vec<_>>());
}

/// [public IPs, names] A Service that had IPv6 alone gets IPv4 as well: the names without suffix
/// are IPv4's from then on.
#[test]
fn from_ipv6_to_two_families() {
    let mut s = asked(web("web").families(&["IPv6"]));
    is(
        &s.lines(&FRONTS),
        &format!(
            "frontend <web> pip kubernetes-<web>
            pip kubernetes-<web> Standard IPv6 Static 2603:1000::1 zones 1,2,3 tags {OURS}
            status web 2603:1000::1"
        ),
    );
    s.change(
        "web",
        json!({"spec": {"ipFamilyPolicy": "RequireDualStack",
        "ipFamilies": ["IPv6", "IPv4"]}}),
    );
    is(
        &s.lines(&["frontend", "rule", "pip"]),
        &format!(
            "frontend <web> pip kubernetes-<web>
            frontend <web>-IPv6 pip kubernetes-<web>-IPv6
            rule <web>-TCP-80 Tcp 80->80 from <web> to kubernetes probe <web>-TCP-80 idle 4 \
                Default float reset no-snat
            rule <web>-TCP-80-IPv6 Tcp 80->80 from <web>-IPv6 to kubernetes-IPv6 probe \
                <web>-TCP-80-IPv6 idle 4 Default float reset no-snat
            pip kubernetes-<web> Standard IPv4 Static 20.0.0.2 zones 1,2,3 tags {OURS}
            pip kubernetes-<web>-IPv6 Standard IPv6 Static 2603:1000::3 zones 1,2,3 tags {OURS}"
        ),
    );
}

/// [public IPs] IPv6 first in the spec: the parts are the same, IPv4 comes first in Azure.
#[test]
fn the_order_of_families_does_not_count() {
    let s = asked(web("web").families(&["IPv6", "IPv4"]));
    is(
        &s.lines(&["frontend", "status"]),
        "frontend <web> pip kubernetes-<web>
        frontend <web>-IPv6 pip kubernetes-<web>-IPv6
        status web 20.0.0.1,2603:1000::2",
    );
}

/// [public IPs, frontends] Public to internal, to ClusterIP, to public: nothing is left over.
#[test]
fn from_public_to_internal_to_none_to_public() {
    let mut s = asked(web("web").dual().with(&[("azure-dns-label-name", "my-web")]));
    let public = s.text();
    s.change("web", json!({"spec": {"type": "ClusterIP"}}));
    is(&s.text(), "status web ");
    s.change(
        "web",
        json!({"spec": {"type": "LoadBalancer",
        "ports": [{"name": "http", "port": 80, "nodePort": 30080, "protocol": "TCP"}]}}),
    );
    let again = s.text();
    assert_eq!(again.lines().count(), public.lines().count(), "{again}\n{public}");
    s.change(
        "web",
        json!({"metadata": {"annotations":
        {"service.beta.kubernetes.io/azure-load-balancer-internal": "true"}},
        "spec": {"ipFamilyPolicy": "SingleStack", "ipFamilies": ["IPv4"],
            "clusterIPs": [s.object("web")["spec"]["clusterIP"]]}}),
    );
    is(
        &s.text(),
        "lb kubernetes-internal Standard
        frontend <web> nodes IPv4 Dynamic 10.224.100.5 zones 1,2,3
        pool kubernetes 10.224.0.4,10.224.0.5,10.224.0.6
        rule <web>-TCP-80 Tcp 80->80 from <web> to kubernetes probe <web>-TCP-80 idle 4 Default \
            float reset no-snat
        probe <web>-TCP-80 Tcp:30080 every 5 x2
        status web 10.224.100.5",
    );
}
