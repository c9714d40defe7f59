//! Load-balancing rules and health probes.

use super::view::*;
use serde_json::{Value, json};

const TWO: [&str; 2] = ["TCP 80 30080", "UDP 53 30053"];
const RULES: [&str; 2] = ["rule", "probe"];

/// A subnet of both families, for internal Services.
pub fn dual_subnet(name: &str) -> Value {
    json!({"id": crate::support::network(&format!("virtualNetworks/vnet/subnets/{name}")),
        "properties": {"addressPrefixes": ["10.226.0.0/16", "fd00:0:0:1::/64"],
            "privateLinkServiceNetworkPolicies": "Enabled"}})
}

/// [rules, security rules] Without floating IP backends are reached on their own address and node
/// port, and that is what the security group opens.
#[test]
fn without_floating_ip_everything_is_about_node_ports() {
    let s = asked(web("web").ports(&TWO).field("sessionAffinity", json!("ClientIP")).with(&[
        ("azure-disable-load-balancer-floating-ip", "true"),
        ("azure-load-balancer-disable-tcp-reset", "true"),
        ("azure-load-balancer-tcp-idle-timeout", "100"),
    ]));
    is(
        &s.lines(&["rule", "probe", "open"]),
        "rule <web>-TCP-80 Tcp 80->30080 from <web> to kubernetes probe <web>-TCP-80 idle 100 \
            SourceIP no-float no-reset no-snat
        rule <web>-UDP-53 Udp 53->30053 from <web> to kubernetes idle 100 SourceIP no-float no-snat
        probe <web>-TCP-80 Tcp:30080 every 5 x2
        open 500 allow_IPv4_bc4e7461 Allow Inbound Tcp Internet -> \
            [10.224.0.4,10.224.0.5,10.224.0.6] [30080]
        open 501 allow_IPv4_6cf488f8 Allow Inbound Udp Internet -> \
            [10.224.0.4,10.224.0.5,10.224.0.6] [30053]",
    );
}

/// [rules, security rules] The same for both families.
#[test]
fn without_floating_ip_each_family_opens_the_nodes_of_its_pool() {
    let s = asked(web("web").dual().with(&[
        ("azure-disable-load-balancer-floating-ip", "true"),
        ("azure-additional-public-ips", "20.9.9.9"),
    ]));
    is(
        &s.lines(&["rule", "pool", "open", "status"]),
        "pool kubernetes 10.224.0.4,10.224.0.5,10.224.0.6
        pool kubernetes-IPv6 fd00::4,fd00::5,fd00::6
        rule <web>-TCP-80 Tcp 80->30080 from <web> to kubernetes probe <web>-TCP-80 idle 4 \
            Default no-float reset no-snat
        rule <web>-TCP-80-IPv6 Tcp 80->30080 from <web>-IPv6 to kubernetes-IPv6 probe \
            <web>-TCP-80-IPv6 idle 4 Default no-float reset no-snat
        open 500 allow_IPv4_bc4e7461 Allow Inbound Tcp Internet -> \
            [10.224.0.4,10.224.0.5,10.224.0.6,20.9.9.9] [30080]
        open 501 allow_IPv6_bc4e7461 Allow Inbound Tcp Internet -> \
            [fd00::4,fd00::5,fd00::6] [30080]
        status web 20.0.0.1,2603:1000::2,20.9.9.9",
    );
}

/// [rules] Internal IPv6 frontends have no floating IP; a Service of IPv6 alone has no suffix, its
/// pool has.
#[test]
fn an_internal_ipv6_service_leads_to_node_ports() {
    let mut s = stage_with(&json!({"subnetName": "both"}), vec![dual_subnet("both")]);
    s.ask(web("in").internal().families(&["IPv6"]).ports(&["TCP 80 30080", "UDP 53 30053"]));
    is(
        &s.lines(&["lb", "frontend", "pool", "rule", "probe", "open", "pip"]),
        "lb kubernetes-internal Standard
        frontend <in> both IPv6 Dynamic fd00:0:0:1::4 zones 1,2,3
        pool kubernetes-IPv6 fd00::4,fd00::5,fd00::6
        rule <in>-TCP-80 Tcp 80->30080 from <in> to kubernetes-IPv6 probe <in>-TCP-80 idle 4 \
            Default no-float reset no-snat
        rule <in>-UDP-53 Udp 53->30053 from <in> to kubernetes-IPv6 idle 4 Default no-float no-snat
        probe <in>-TCP-80 Tcp:30080 every 5 x2",
    );
}

/// [rules, probes] HA ports: one rule a family, named after the first port; its probe is that of
/// the first port that has one, and floating IP stays on.
#[test]
fn ha_ports_of_several_ports_and_both_families() {
    let mut s = stage_with(&json!({"subnetName": "both"}), vec![dual_subnet("both")]);
    s.ask(
        web("in")
            .internal()
            .dual()
            .ports(&["UDP 53 30053", "TCP 80 30080 http", "TCP 81 30081"])
            .with(&[
                ("azure-load-balancer-enable-high-availability-ports", "True"),
                ("azure-disable-load-balancer-floating-ip", "true"),
                ("port_80_health-probe_request-path", "/up"),
                ("port_80_health-probe_interval", "7"),
            ]),
    );
    is(
        &s.lines(&RULES),
        "rule <in>-UDP-53 All 0->0 from <in> to kubernetes probe <in>-UDP-53 idle 4 Default float \
            reset no-snat
        rule <in>-UDP-53-IPv6 All 0->0 from <in>-IPv6 to kubernetes-IPv6 probe <in>-UDP-53-IPv6 \
            idle 4 Default no-float reset no-snat
        probe <in>-UDP-53 Http:30080/up every 7 x2
        probe <in>-UDP-53-IPv6 Http:30080/up every 7 x2",
    );
}

/// [probes] HA ports have the probe of the first port of which one can be made.
#[test]
fn ha_ports_with_a_probe_that_is_wrong() {
    let s = asked(web("in").internal().ports(&["TCP 80 30080", "TCP 81 30081"]).with(&[
        ("azure-load-balancer-enable-high-availability-ports", "true"),
        ("port_80_health-probe_port", "admin"),
        ("port_81_health-probe_interval", "7"),
    ]));
    is(
        &s.lines(&RULES),
        "rule <in>-TCP-80 All 0->0 from <in> to kubernetes probe <in>-TCP-80 idle 4 Default float \
            reset no-snat
        probe <in>-TCP-80 Tcp:30081 every 7 x2",
    );
}

/// [rules, probes] HA ports of a Local Service are probed on the health check node port.
#[test]
fn ha_ports_of_a_local_service() {
    let mut s = stage_with(&json!({"subnetName": "both"}), vec![dual_subnet("both")]);
    s.ask(web("in").internal().dual().local(32000).with(&[
        ("azure-load-balancer-enable-high-availability-ports", "true"),
        ("azure-load-balancer-disable-tcp-reset", "TRUE"),
    ]));
    is(
        &s.lines(&RULES),
        "rule <in>-TCP-80 All 0->0 from <in> to kubernetes probe <in>-TCP-32000 idle 4 Default \
            float no-reset no-snat
        rule <in>-TCP-80-IPv6 All 0->0 from <in>-IPv6 to kubernetes-IPv6 probe \
            <in>-TCP-32000-IPv6 idle 4 Default no-float no-reset no-snat
        probe <in>-TCP-32000 Http:32000/healthz every 5 x2
        probe <in>-TCP-32000-IPv6 Http:32000/healthz every 5 x2",
    );
}

/// [probes] Which probe a TCP port of a Cluster Service has: annotation of the port, appProtocol,
/// annotation for all, Tcp.
#[test]
fn the_probe_of_a_port() {
    const ALL: &str = "azure-load-balancer-health-probe-protocol";
    const PATH: &str = "azure-load-balancer-health-probe-request-path";
    const OWN: &str = "port_80_health-probe_protocol";
    const OWN_PATH: &str = "port_80_health-probe_request-path";
    const TARGET: &str = "port_80_health-probe_port";
    const INTERVAL: &str = "azure-load-balancer-health-probe-interval";
    const COUNT: &str = "azure-load-balancer-health-probe-num-of-probe";
    type Row = (&'static str, &'static [(&'static str, &'static str)], &'static str);
    let rows: [Row; 26] = [
        ("", &[], "Tcp:30080 every 5 x2"),
        ("", &[(PATH, "/x")], "Tcp:30080 every 5 x2"),
        ("tcp", &[(PATH, "/x")], "Tcp:30080 every 5 x2"),
        ("http", &[], "Http:30080/ every 5 x2"),
        ("HTTP", &[(PATH, "/x")], "Http:30080/x every 5 x2"),
        ("https", &[], "Https:30080/ every 5 x2"),
        ("https", &[(PATH, "/x"), (OWN_PATH, "/y")], "Https:30080/y every 5 x2"),
        ("kubernetes.io/h2c", &[(PATH, "/x")], "Tcp:30080 every 5 x2"),
        ("mqtt", &[(ALL, "http")], "Tcp:30080 every 5 x2"),
        ("", &[(ALL, " HTTPS ")], "Https:30080/ every 5 x2"),
        ("", &[(ALL, "grpc"), (PATH, "/x")], "Tcp:30080 every 5 x2"),
        ("https", &[(ALL, "http")], "Https:30080/ every 5 x2"),
        ("http", &[(OWN, "tcp"), (OWN_PATH, "/y")], "Tcp:30080 every 5 x2"),
        ("http", &[(OWN, "quic")], "Tcp:30080 every 5 x2"),
        ("", &[(OWN, "Http"), (ALL, "https"), (PATH, "/x")], "Http:30080/x every 5 x2"),
        ("", &[(TARGET, "tcp-81")], "Tcp:30081 every 5 x2"),
        ("", &[(TARGET, "TCP-81")], "Tcp:30081 every 5 x2"),
        ("", &[(TARGET, "81")], "Tcp:30081 every 5 x2"),
        ("http", &[(TARGET, "10256"), (PATH, "/healthz")], "Http:10256/healthz every 5 x2"),
        ("", &[(INTERVAL, "10"), (COUNT, "11")], "Tcp:30080 every 10 x11"),
        ("", &[(INTERVAL, " 59 ")], "Tcp:30080 every 59 x2"),
        ("", &[(INTERVAL, "50"), ("port_80_health-probe_interval", "6")], "Tcp:30080 every 6 x2"),
        ("", &[(COUNT, "9"), ("port_80_health-probe_num-of-probe", "3")], "Tcp:30080 every 5 x3"),
        (
            "",
            &[(COUNT, "3"), ("load-balancer-health-probe-num-of-probe", "9")],
            "Tcp:30080 every 5 x3",
        ),
        (
            "",
            &[
                (INTERVAL, "100"),
                ("port_80_health-probe_interval", "6"),
                ("port_81_health-probe_interval", "8"),
            ],
            "Tcp:30080 every 6 x2",
        ),
        (
            "",
            &[("port_80_health-probe_interval", "39"), ("port_80_health-probe_num-of-probe", "3")],
            "Tcp:30080 every 39 x3",
        ),
    ];
    for (app, annotations, want) in rows {
        let mut s = stage(&json!({}));
        let first = format!("TCP 80 30080 {app}");
        s.ask(web("web").ports(&[first.trim(), "TCP 81 30081"]).with(annotations));
        let probes = s.lines(&["probe"]);
        let probe = probes.lines().next().unwrap_or("");
        assert_eq!(probe, format!("probe <web>-TCP-80 {want}"), "{app} {annotations:?}");
    }
}

/// [probes] What no probe can be made from refuses the Service, and leaves nothing in Azure.
#[test]
fn probes_that_cannot_be() {
    let rows: [&[(&str, &str)]; 11] = [
        &[("azure-load-balancer-health-probe-interval", "4")],
        &[("azure-load-balancer-health-probe-interval", "5.5")],
        &[("azure-load-balancer-health-probe-interval", "")],
        &[("azure-load-balancer-health-probe-interval", "60")],
        &[("azure-load-balancer-health-probe-num-of-probe", "24")],
        &[("azure-load-balancer-health-probe-num-of-probe", "1")],
        &[("port_80_health-probe_interval", "three")],
        &[("port_80_health-probe_num-of-probe", "-2")],
        &[("port_80_health-probe_interval", "40"), ("port_80_health-probe_num-of-probe", "3")],
        &[("port_80_health-probe_port", "admin")],
        &[("port_80_health-probe_port", "65536")],
    ];
    for annotations in rows {
        let s = asked(web("web").with(annotations));
        is(&s.text(), "status web ");
        assert_ne!(s.refusal("web"), "", "{annotations:?}");
    }
}

/// [probes] A Local Service's one probe is under all its rules, UDP included; a port with a probe
/// port of its own has its own, and so has one that is to be probed more or less often; one without
/// probe has none.
#[test]
fn probes_of_a_local_service() {
    let mut s = stage(&json!({"clusterServiceLoadBalancerHealthProbeMode": "shared"}));
    s.ask(
        web("web")
            .local(32000)
            .ports(&["TCP 80 30080 http", "UDP 53 30053", "TCP 81 30081 http", "TCP 82 30082"])
            .with(&[
                ("azure-load-balancer-health-probe-interval", "6"),
                ("port_32000_health-probe_num-of-probe", "4"),
                ("port_80_health-probe_interval", "9"),
                ("port_81_health-probe_port", "82"),
                ("port_82_no_probe_rule", "TRUE"),
            ]),
    );
    is(
        &s.lines(&RULES),
        "rule <web>-TCP-80 Tcp 80->80 from <web> to kubernetes probe <web>-TCP-80 idle 4 Default \
            float reset no-snat
        rule <web>-UDP-53 Udp 53->53 from <web> to kubernetes probe <web>-TCP-32000 idle 4 \
            Default float no-snat
        rule <web>-TCP-81 Tcp 81->81 from <web> to kubernetes probe <web>-TCP-81 idle 4 Default \
            float reset no-snat
        rule <web>-TCP-82 Tcp 82->82 from <web> to kubernetes idle 4 Default float reset no-snat
        probe <web>-TCP-80 Http:32000/healthz every 9 x2
        probe <web>-TCP-32000 Http:32000/healthz every 6 x4
        probe <web>-TCP-81 Http:30082/ every 6 x2",
    );
}

/// [probes] Shared mode: one probe for all Cluster Services and both families, also under UDP; it
/// goes with the last that needs it.
#[test]
fn the_shared_probe() {
    let mut s = stage(&json!({"clusterServiceLoadBalancerHealthProbeMode": "shared",
        "clusterServiceSharedLoadBalancerHealthProbePort": 10356,
        "clusterServiceSharedLoadBalancerHealthProbePath": "/ready"}));
    s.ask(web("one").dual().ports(&TWO).with(&[
        ("azure-load-balancer-health-probe-interval", "9"),
        ("port_80_health-probe_protocol", "https"),
    ]));
    s.ask(web("two").ports(&["TCP 80 30180"]));
    let shared = "probe cluster-service-shared-health-probe";
    is(
        &s.lines(&RULES),
        &format!(
            "rule <one>-TCP-80 Tcp 80->80 from <one> to kubernetes {shared} idle 4 Default float \
                reset no-snat
            rule <one>-UDP-53 Udp 53->53 from <one> to kubernetes {shared} idle 4 Default float \
                no-snat
            rule <one>-TCP-80-IPv6 Tcp 80->80 from <one>-IPv6 to kubernetes-IPv6 {shared} idle 4 \
                Default float reset no-snat
            rule <one>-UDP-53-IPv6 Udp 53->53 from <one>-IPv6 to kubernetes-IPv6 {shared} idle 4 \
                Default float no-snat
            rule <two>-TCP-80 Tcp 80->80 from <two> to kubernetes {shared} idle 4 Default float \
                reset no-snat
            {shared} Http:10356/ready every 5 x2"
        ),
    );
    s.delete("one");
    s.change(
        "two",
        json!({"spec": {"externalTrafficPolicy": "Local", "healthCheckNodePort": 32001}}),
    );
    is(
        &s.lines(&RULES),
        "rule <two>-TCP-80 Tcp 80->80 from <two> to kubernetes probe <two>-TCP-32001 idle 4 \
            Default float reset no-snat
        probe <two>-TCP-32001 Http:32001/healthz every 5 x2",
    );
}

/// [probes] With agents on nodes they answer: for a Local Service, also behind the PROXY protocol,
/// and for nodes in shared mode. Taken out of the config, all is as it was.
#[test]
fn probes_of_agents() {
    let shared = json!({"clusterServiceLoadBalancerHealthProbeMode": "shared"});
    let mut agents = shared.clone();
    agents["healthCheck"] = json!("agent");
    agents["healthCheckAgentPort"] = json!(10300);
    let ask = |config: &Value| {
        let mut s = stage(config);
        s.ask(web("web").local(32000).ports(&["TCP 80 30080", "UDP 53 30053"]));
        s.ask(web("one").ports(&["TCP 80 30180"]));
        s.lines(&["probe"])
    };
    is(
        &ask(&agents),
        "probe <web>-TCP-32000 Http:10300/services/default/web every 5 x2
        probe cluster-service-shared-health-probe Http:10300/node every 5 x2",
    );
    is(
        &ask(&shared),
        "probe <web>-TCP-32000 Http:32000/healthz every 5 x2
        probe cluster-service-shared-health-probe Http:10256/healthz every 5 x2",
    );
}

/// [probes] HA ports in shared mode.
#[test]
fn ha_ports_in_shared_mode() {
    let mut s = stage(&json!({"clusterServiceLoadBalancerHealthProbeMode": "Shared"}));
    s.ask(
        web("in")
            .internal()
            .ports(&["UDP 53 30053"])
            .with(&[("azure-load-balancer-enable-high-availability-ports", "true")]),
    );
    is(
        &s.lines(&RULES),
        "rule <in>-UDP-53 All 0->0 from <in> to kubernetes probe \
            cluster-service-shared-health-probe idle 4 Default float reset no-snat
        probe cluster-service-shared-health-probe Http:10256/healthz every 5 x2",
    );
}

/// [rules] SCTP is all protocols of a port, and internal only.
#[test]
fn sctp() {
    let mut s = stage(&json!({"disableOutboundSNAT": false}));
    let ports = ["SCTP 5000 30500", "TCP 80 30080"];
    s.ask(web("web").ports(&ports));
    is(&s.text(), "status web ");
    assert!(s.refusal("web").contains("SCTP"), "{}", s.refusal("web"));
    s.ask(
        web("in")
            .internal()
            .ports(&["SCTP 5001 30501", "TCP 81 30081"])
            .with(&[("azure-allowed-ip-ranges", "10.0.0.0/8")]),
    );
    is(
        &s.lines(&["rule", "probe", "open"]),
        "rule <in>-SCTP-5001 All 5001->5001 from <in> to kubernetes idle 4 Default float
        rule <in>-TCP-81 Tcp 81->81 from <in> to kubernetes probe <in>-TCP-81 idle 4 Default \
            float reset
        probe <in>-TCP-81 Tcp:30081 every 5 x2
        open 500 allow_IPv4_f80e6f2c Allow Inbound Tcp 10.0.0.0/8 -> 10.224.100.5 [81]
        open 501 allow_IPv4_8dcae8aa Allow Inbound * 10.0.0.0/8 -> 10.224.100.5 [5001]",
    );
}

/// [rules] Every port taken out of the rules: the frontend stays, and nothing is open.
#[test]
fn a_service_without_rules() {
    let s = asked(
        web("web")
            .ports(&TWO)
            .with(&[("port_80_no_lb_rule", "True"), ("port_53_no_lb_rule", "true")]),
    );
    is(
        &s.lines(&["lb", "frontend", "rule", "probe", "open", "status"]),
        "lb kubernetes Standard
        frontend <web> pip kubernetes-<web>
        status web 20.0.0.1",
    );
}

/// [rules] Flags that are neither true nor false are false.
#[test]
fn odd_flags_are_false() {
    let s = asked(web("web").with(&[
        ("azure-disable-load-balancer-floating-ip", "yes"),
        ("azure-load-balancer-disable-tcp-reset", "1"),
        ("port_80_no_lb_rule", "on"),
        ("azure-load-balancer-internal", "y"),
    ]));
    is(
        &s.lines(&["lb", "rule"]),
        "lb kubernetes Standard
        rule <web>-TCP-80 Tcp 80->80 from <web> to kubernetes probe <web>-TCP-80 idle 4 Default \
            float reset no-snat",
    );
}

/// [rules, probes] A running Service's rules follow every change, in their places.
#[test]
fn rules_follow_their_service() {
    let mut s = asked(web("web").ports(&["TCP 80 30080", "TCP 81 30081"]));
    s.annotate(
        "web",
        &[
            ("azure-load-balancer-tcp-idle-timeout", Some("30")),
            ("port_81_no_probe_rule", Some("true")),
            ("azure-disable-load-balancer-floating-ip", Some("true")),
        ],
    );
    s.change("web", json!({"spec": {"sessionAffinity": "ClientIP"}}));
    is(
        &s.lines(&["rule", "probe", "open"]),
        "rule <web>-TCP-80 Tcp 80->30080 from <web> to kubernetes probe <web>-TCP-80 idle 30 \
            SourceIP no-float reset no-snat
        rule <web>-TCP-81 Tcp 81->30081 from <web> to kubernetes idle 30 SourceIP no-float reset \
            no-snat
        probe <web>-TCP-80 Tcp:30080 every 5 x2
        open 501 allow_IPv4_fd4da48c Allow Inbound Tcp Internet -> \
            [10.224.0.4,10.224.0.5,10.224.0.6] [30080,30081]",
    );
    s.annotate(
        "web",
        &[
            ("azure-load-balancer-tcp-idle-timeout", None),
            ("port_81_no_probe_rule", None),
            ("azure-disable-load-balancer-floating-ip", None),
        ],
    );
    s.change("web", json!({"spec": {"sessionAffinity": "None"}}));
    is(
        &s.lines(&["rule", "probe", "open"]),
        "rule <web>-TCP-80 Tcp 80->80 from <web> to kubernetes probe <web>-TCP-80 idle 4 Default \
            float reset no-snat
        rule <web>-TCP-81 Tcp 81->81 from <web> to kubernetes probe <web>-TCP-81 idle 4 Default \
            float reset no-snat
        probe <web>-TCP-80 Tcp:30080 every 5 x2
        probe <web>-TCP-81 Tcp:30081 every 5 x2
        open 500 allow_IPv4_d8edf550 Allow Inbound Tcp Internet -> 20.0.0.1 [80,81]",
    );
}
