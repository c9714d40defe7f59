//! What becomes of what is there when a wish, the config or the cloud changes.

use super::addresses::SIGNED;
use super::view::*;
use crate::support::{GROUP, network, policy};
use serde_json::{Value, json};

const OURS: &str = "k8s-azure-cluster-name=kubernetes k8s-azure-service=default/web";

/// [public IPs] From a public IP that was made to one that was brought, to one of a prefix, to one
/// in another group, and back: one at a time, and none is left.
#[test]
fn from_one_public_ip_to_another() {
    let mut s = asked(web("web"));
    let lines = ["frontend", "pip", "open", "status"];
    let made = |address: &str| {
        format!(
            "frontend <web> pip kubernetes-<web>
            open {{}} allow_IPv4_d39272f7 Allow Inbound Tcp Internet -> {address} [80]
            pip kubernetes-<web> Standard IPv4 Static {address} zones 1,2,3 tags {OURS}
            status web {address}"
        )
    };
    is(&s.lines(&lines), &made("20.0.0.1").replace("{}", "500"));
    s.annotate("web", &[("azure-pip-name", Some("byo-pip"))]);
    is(
        &s.lines(&lines),
        "frontend <web> pip byo-pip
        open 500 allow_IPv4_d39272f7 Allow Inbound Tcp Internet -> 20.50.0.10 [80]
        status web 20.50.0.10",
    );
    let prefix = network("publicIPPrefixes/prefix");
    s.annotate("web", &[("azure-pip-name", None), ("azure-pip-prefix-id", Some(&prefix))]);
    is(
        &s.lines(&lines),
        &format!(
            "frontend <web> pip kubernetes-<web>-prefix
            open 500 allow_IPv4_d39272f7 Allow Inbound Tcp Internet -> 20.99.0.0 [80]
            pip kubernetes-<web>-prefix Standard IPv4 Static 20.99.0.0 zones 1,2,3 tags {OURS} \
                prefix prefix
            status web 20.99.0.0"
        ),
    );
    s.annotate(
        "web",
        &[("azure-pip-prefix-id", None), ("azure-load-balancer-resource-group", Some("pip-rg"))],
    );
    is(
        &s.lines(&["frontend", "pip", "status"]),
        &format!(
            "pip pip-rg/kubernetes-<web> Standard IPv4 Static 20.0.0.2 zones 1,2,3 tags {SIGNED} \
                {OURS}
            frontend <web> pip pip-rg/kubernetes-<web>
            status web 20.0.0.2"
        ),
    );
    s.annotate("web", &[("azure-load-balancer-resource-group", None)]);
    is(&s.lines(&lines), &made("20.0.0.3").replace("{}", "500"));
}

/// [load balancers, public IPs, security rules] Tags of the config that change are written, on what
/// is there as well.
#[test]
fn tags_of_the_config_change() {
    let mut s = stage(&json!({"tags": "a=1"}));
    s.ask(web("web"));
    s.lab.restart_with(policy(&json!({"tags": "a=2,b=3"})));
    s.settle();
    is(
        &s.lines(&["lb", "nsg", "pip"]),
        &format!(
            "lb kubernetes Standard tags a=2 b=3
            nsg nsg tags a=2 b=3
            pip kubernetes-<web> Standard IPv4 Static 20.0.0.1 zones 1,2,3 tags a=2 b=3 {OURS}"
        ),
    );
    s.lab.restart_with(policy(&json!({"tags": "b=3", "systemTags": "k8s-azure"})));
    s.settle();
    is(
        &s.lines(&["lb", "nsg", "pip"]),
        &format!(
            "lb kubernetes Standard tags b=3
            nsg nsg tags b=3
            pip kubernetes-<web> Standard IPv4 Static 20.0.0.1 zones 1,2,3 tags b=3 {OURS}"
        ),
    );
}

/// [frontends] Another default subnet: what stands stays where it is, what comes is in the new one.
#[test]
fn the_default_subnet_changes() {
    let mut s = asked(web("in").internal());
    let writes = s.lab.calls().0;
    s.lab.excuse("frontend", "the subnet of", "Azure moves no frontend to another subnet");
    s.lab.restart_with(policy(&json!({"subnetName": "apps"})));
    s.settle();
    assert_eq!(s.lab.calls().0, writes);
    s.ask(web("on").internal().ports(&["TCP 81 30081"]));
    is(
        &s.lines(&["frontend"]),
        "frontend <in> nodes IPv4 Dynamic 10.224.100.5 zones 1,2,3
        frontend <on> apps IPv4 Dynamic 10.225.0.4 zones 1,2,3",
    );
}

/// [security rules] A security group that is not there: nobody gets anything, and it is said.
#[test]
fn a_security_group_that_is_not_there() {
    let mut s = stage(&json!({"securityGroupName": "nowhere"}));
    s.ask(web("web"));
    let report = s.lab.controller().report();
    let said = format!("{:?}", report.findings) + &s.refusal("web");
    assert!(said.contains("SecurityGroupNotFound") || said.contains("nowhere"), "{said}");
    is(&s.text(), "status web ");
}

/// [security rules] A security group in a group of its own.
#[test]
fn a_security_group_in_another_group() {
    let far = GROUP.replace("/rg", "/nets");
    let group = json!({"id": format!("{far}/providers/Microsoft.Network/networkSecurityGroups/n2"),
        "properties": {"securityRules": []}});
    let config = json!({"securityGroupName": "n2", "securityGroupResourceGroup": "NETS"});
    let mut s = stage_with(&config, vec![group]);
    s.ask(web("web"));
    is(
        &s.lines(&["nsg", "open"]),
        "nsg nets/n2
        open 500 allow_IPv4_d39272f7 Allow Inbound Tcp Internet -> 20.0.0.1 [80]",
    );
}

/// [rules] On one frontend a port is one Service's: by TCP, UDP, SCTP or a NAT rule of somebody.
#[test]
fn a_port_that_is_taken() {
    let mut s = stage(&json!({}));
    let pinned = ("azure-pip-name", "byo-pip");
    s.ask(web("a").ports(&["TCP 80 30080", "UDP 53 30053"]).with(&[pinned]));
    s.ask(web("b").ports(&["TCP 81 30181", "TCP 80 30180"]).with(&[pinned]));
    s.ask(web("c").ports(&["UDP 80 30280", "TCP 53 30253"]).with(&[pinned]));
    assert_ne!(s.refusal("b"), "");
    assert_eq!(s.refusal("c"), "");
    is(&s.lines(&["status"]), "status a 20.50.0.10\nstatus b \nstatus c 20.50.0.10");
    let id = network("loadBalancers/kubernetes");
    s.edit(&id, |balancer| {
        let front = balancer["properties"]["frontendIPConfigurations"][0]["id"].clone();
        balancer["properties"]["inboundNatRules"] = json!([{"name": "ssh", "properties": {
            "protocol": "Tcp", "frontendPort": 22, "backendPort": 22,
            "frontendIPConfiguration": {"id": front}}}]);
    });
    s.ask(web("d").ports(&["TCP 22 30322"]).with(&[pinned]));
    assert_ne!(s.refusal("d"), "");
    s.ask(web("e").ports(&["UDP 22 30422"]).with(&[pinned]));
    assert_eq!(s.refusal("e"), "");
    // The port is free once its Service is gone.
    s.delete("a");
    assert_eq!(s.refusal("b"), "");
    is(
        &s.lines(&["status", "inboundNatRules"]),
        "inboundNatRules ssh\nstatus b 20.50.0.10\nstatus c 20.50.0.10\nstatus d \n\
         status e 20.50.0.10",
    );
}

/// [load balancers] Somebody's outbound rule and its parts stay when the last Service goes.
#[test]
fn outbound_rules_of_others_stay() {
    let id = network("loadBalancers/kubernetes");
    let ip = json!({"id": network("publicIPAddresses/byo-pip")});
    let balancer = json!({"id": id, "location": "eastus", "sku": {"name": "Standard"},
        "tags": {"theirs": "1"}, "properties": {
            "frontendIPConfigurations": [{"name": "out", "properties": {"publicIPAddress": ip}}],
            "backendAddressPools": [{"name": "out"}, {"name": "kubernetes"}],
            "outboundRules": [{"name": "out", "properties": {
                "frontendIPConfigurations": [{"id": format!("{id}/frontendIPConfigurations/out")}],
                "backendAddressPool": {"id": format!("{id}/backendAddressPools/out")},
                "protocol": "All", "idleTimeoutInMinutes": 4}}]}});
    let mut s = stage_with(&json!({"tags": "a=1"}), vec![balancer]);
    s.ask(web("web").dual());
    is(
        &s.lines(&["lb", "frontend", "pool", "outboundRules"]),
        "lb kubernetes Standard tags a=1 theirs=1
        frontend out pip byo-pip
        frontend <web> pip kubernetes-<web>
        frontend <web>-IPv6 pip kubernetes-<web>-IPv6
        pool out 
        pool kubernetes 10.224.0.4,10.224.0.5,10.224.0.6
        pool kubernetes-IPv6 fd00::4,fd00::5,fd00::6
        outboundRules out",
    );
    s.delete("web");
    let left = s.lines(&["lb", "frontend", "rule", "probe", "outboundRules", "pip", "gone"]);
    is(
        &left,
        "lb kubernetes Standard tags a=1 theirs=1\nfrontend out pip byo-pip\noutboundRules out",
    );
}

/// [rules, names] TCP and UDP of one port, both families, Local and Cluster in turn.
#[test]
fn from_cluster_to_local_with_both_families() {
    let mut s = asked(web("web").dual().ports(&["TCP 53 30053", "UDP 53 30054"]));
    let text = s.lines(&["rule", "probe", "open"]);
    let of = |six: &str, pool: &str, probe: &str| {
        let udp =
            if probe.contains("32000") { format!(" probe {probe}{six}") } else { String::new() };
        format!(
            "rule <web>-TCP-53{six} Tcp 53->53 from <web>{six} to kubernetes{pool} \
                probe {probe}{six} idle 4 Default float reset no-snat
            rule <web>-UDP-53{six} Udp 53->53 from <web>{six} to kubernetes{pool}{udp} \
                idle 4 Default float no-snat\n"
        )
    };
    let opened = "open 500 allow_IPv4_234b136f Allow Inbound Tcp Internet -> 20.0.0.1 [53]
        open 501 allow_IPv6_234b136f Allow Inbound Tcp Internet -> 2603:1000::2 [53]
        open 502 allow_IPv4_eacf5e21 Allow Inbound Udp Internet -> 20.0.0.1 [53]
        open 503 allow_IPv6_eacf5e21 Allow Inbound Udp Internet -> 2603:1000::2 [53]";
    let cluster = of("", "", "<web>-TCP-53")
        + &of("-IPv6", "-IPv6", "<web>-TCP-53")
        + "probe <web>-TCP-53 Tcp:30053 every 5 x2
        probe <web>-TCP-53-IPv6 Tcp:30053 every 5 x2\n"
        + opened;
    is(&text, &cluster);
    s.change(
        "web",
        json!({"spec": {"externalTrafficPolicy": "Local", "healthCheckNodePort": 32000}}),
    );
    let local = of("", "", "<web>-TCP-32000")
        + &of("-IPv6", "-IPv6", "<web>-TCP-32000")
        + "probe <web>-TCP-32000 Http:32000/healthz every 5 x2
        probe <web>-TCP-32000-IPv6 Http:32000/healthz every 5 x2\n"
        + opened;
    is(&s.lines(&["rule", "probe", "open"]), &local);
    s.change(
        "web",
        json!({"spec": {"externalTrafficPolicy": "Cluster", "healthCheckNodePort": null}}),
    );
    is(&s.lines(&["rule", "probe", "open"]), &cluster);
}

/// [rules] A running Service whose edit is refused keeps what it has, and takes up the next edit.
#[test]
fn a_refused_edit_and_the_next() {
    let mut s = asked(web("web").dual().with(&[("azure-allowed-ip-ranges", "10.0.0.0/8")]));
    let before = s.text();
    for (key, value) in [
        ("azure-allowed-ip-ranges", "10.0.0.1/8"),
        ("azure-load-balancer-tcp-idle-timeout", "3"),
        ("azure-pip-name-ipv6", "nowhere"),
        ("azure-pls-create", "true"),
        ("azure-additional-public-ips", "20.1.2.3,x"),
        ("azure-load-balancer-ipv4", "10.1.2.3"),
    ] {
        s.annotate("web", &[(key, Some(value))]);
        assert_ne!(s.refusal("web"), "", "{key}");
        assert_eq!(s.text(), before, "{key}");
        let was = (key == "azure-allowed-ip-ranges").then_some("10.0.0.0/8");
        s.annotate("web", &[(key, was)]);
        assert_eq!(s.refusal("web"), "", "{key}");
    }
    assert_eq!(s.text(), before);
    s.annotate("web", &[("azure-allowed-ip-ranges", None)]);
    assert!(s.text().contains("Internet"), "{}", s.text());
    let _: Value = s.object("web");
}
