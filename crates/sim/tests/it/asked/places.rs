//! Frontends of internal Services, pools, and several load balancers.

use super::rules::dual_subnet;
use super::view::*;
use crate::support::{create, network, scale_set};
use serde_json::{Value, json};

const FRONTS: [&str; 4] = ["lb", "frontend", "rule", "status"];

/// [names] The names of a Service in a subnet of its own; long ones are cut, and only a frontend's
/// ends in `_` where the cut leaves no letter.
#[test]
fn names_with_a_subnet() {
    // 32 characters of the base, a dash, and 42 of this: the last is a digit.
    let long = "subnet-of-the-internal-load-balancers-0000-and-more";
    let mut s = stage_with(&json!({}), vec![dual_subnet(long)]);
    s.ask(
        web("in")
            .internal()
            .dual()
            .local(32000)
            .with(&[("azure-load-balancer-internal-subnet", long)]),
    );
    let front = format!("<in>-{}_", &long[..41]);
    // 75 - 33 - 7 of "-TCP-80", and 75 - 33 - 10 of "-TCP-32000".
    let rule = format!("<in>-{}-TCP-80", &long[..35]);
    let probe = format!("<in>-{}-TCP-32000", &long[..32]);
    is(
        &s.lines(&["frontend", "rule", "probe"]),
        &format!(
            "frontend {front} {long} IPv4 Dynamic 10.226.0.4 zones 1,2,3
            frontend {front}-IPv6 {long} IPv6 Dynamic fd00:0:0:1::4 zones 1,2,3
            rule {rule} Tcp 80->80 from {front} to kubernetes probe {probe} idle 4 Default float \
                reset no-snat
            rule {rule}-IPv6 Tcp 80->30080 from {front}-IPv6 to kubernetes-IPv6 probe {probe}-IPv6 \
                idle 4 Default no-float reset no-snat
            probe {probe} Http:32000/healthz every 5 x2
            probe {probe}-IPv6 Http:32000/healthz every 5 x2"
        ),
    );
}

/// [names] The key of a subnet does not count for public Services.
#[test]
fn a_subnet_of_a_public_service_does_not_count() {
    let s = asked(web("web").with(&[("azure-load-balancer-internal-subnet", "apps")]));
    is(
        &s.lines(&FRONTS),
        "lb kubernetes Standard
        frontend <web> pip kubernetes-<web>
        rule <web>-TCP-80 Tcp 80->80 from <web> to kubernetes probe <web>-TCP-80 idle 4 Default \
            float reset no-snat
        status web 20.0.0.1",
    );
}

/// [frontends] Static addresses by family: of the annotation, else of the field.
#[test]
fn static_addresses() {
    let both = || vec![dual_subnet("both")];
    let rows = [
        ("", "10.226.0.44", "", "10.226.0.44", "fd00:0:0:1::4"),
        ("", "fd00:0:0:1::44", "", "10.226.0.4", "fd00:0:0:1::44"),
        ("10.226.0.45", "10.226.0.44", "", "10.226.0.45", "fd00:0:0:1::4"),
        ("10.226.0.45", "", "fd00:0:0:1::45", "10.226.0.45", "fd00:0:0:1::45"),
        (" 10.226.0.45 ", "", "", "10.226.0.45", "fd00:0:0:1::4"),
    ];
    for (four, field, six, want_four, want_six) in rows {
        let mut s = stage_with(&json!({"subnetName": "both"}), both());
        let mut asked = web("in").internal().dual();
        if !field.is_empty() {
            asked = asked.field("loadBalancerIP", json!(field));
        }
        if !four.is_empty() {
            asked = asked.with(&[("azure-load-balancer-ipv4", four)]);
        }
        if !six.is_empty() {
            asked = asked.with(&[("azure-load-balancer-ipv6", six)]);
        }
        s.ask(asked);
        let how = |want: &str| {
            if want.ends_with(":4") || want.ends_with(".4") { "Dynamic" } else { "Static" }
        };
        is(
            &s.lines(&["frontend", "status"]),
            &format!(
                "frontend <in> both IPv4 {} {want_four} zones 1,2,3
                frontend <in>-IPv6 both IPv6 {} {want_six} zones 1,2,3
                status in {want_four},{want_six}",
                how(want_four),
                how(want_six)
            ),
        );
    }
}

/// [frontends] Another address is another frontend of the same name, which keeps its zones; without
/// the pin the address stays; another subnet makes another name.
#[test]
fn an_internal_frontend_moves() {
    let mut s = asked(web("in").internal());
    s.annotate("in", &[("azure-load-balancer-ipv4", Some("10.224.0.77"))]);
    let pinned = "frontend <in> nodes IPv4 Static 10.224.0.77 zones 1,2,3\nstatus in 10.224.0.77";
    is(&s.lines(&["frontend", "status"]), pinned);
    s.annotate("in", &[("azure-load-balancer-ipv4", None)]);
    is(&s.lines(&["frontend", "status"]), pinned);
    s.annotate("in", &[("azure-load-balancer-internal-subnet", Some("apps"))]);
    is(
        &s.lines(&FRONTS),
        "lb kubernetes-internal Standard
        frontend <in>-apps apps IPv4 Dynamic 10.225.0.4 zones 1,2,3
        rule <in>-apps-TCP-80 Tcp 80->80 from <in>-apps to kubernetes probe <in>-apps-TCP-80 idle \
            4 Default float reset no-snat
        status in 10.225.0.4",
    );
    s.annotate("in", &[("azure-load-balancer-internal-subnet", Some("nowhere"))]);
    // A running Service keeps what it has.
    assert_ne!(s.refusal("in"), "");
    is(&s.lines(&["status"]), "status in 10.225.0.4");
}

/// [frontends] A Service that names the address of another's frontend shares it, whatever subnet it
/// names; an address that its subnet lacks is refused where there is no such frontend.
#[test]
fn an_address_of_another_subnet_is_shared() {
    let mut s = stage(&json!({}));
    let pin = ("azure-load-balancer-ipv4", "10.224.0.77");
    let apps = ("azure-load-balancer-internal-subnet", "apps");
    s.ask(web("guest").internal().ports(&["TCP 81 30081"]).with(&[pin, apps]));
    assert_ne!(s.refusal("guest"), "");
    s.ask(web("host").internal().with(&[pin]));
    assert_eq!(s.refusal("guest"), "");
    is(
        &s.lines(&["frontend", "rule", "status"]),
        "frontend <host> nodes IPv4 Static 10.224.0.77 zones 1,2,3
        rule <host>-TCP-80 Tcp 80->80 from <host> to kubernetes probe <host>-TCP-80 idle 4 \
            Default float reset no-snat
        rule <guest>-apps-TCP-81 Tcp 81->81 from <host> to kubernetes probe <guest>-apps-TCP-81 \
            idle 4 Default float reset no-snat
        status guest 10.224.0.77
        status host 10.224.0.77",
    );
}

/// [frontends] A Service whose address is in its status gets it again, where the subnet has it.
#[test]
fn the_address_of_the_status_is_asked_for_again() {
    let mut s = asked(web("in").internal().with(&[("azure-load-balancer-ipv4", "10.224.0.77")]));
    s.annotate("in", &[("azure-load-balancer-ipv4", None)]);
    // Somebody deletes the load balancer.
    s.forget(&network("loadBalancers/kubernetes-internal"));
    s.lab.restart();
    s.settle();
    is(
        &s.lines(&["frontend", "status"]),
        "frontend <in> nodes IPv4 Static 10.224.0.77 zones 1,2,3\nstatus in 10.224.0.77",
    );
}

/// [pools] Who is behind a load balancer: no control plane, nobody who is left out.
#[test]
fn nodes_that_are_not_behind_load_balancers() {
    for exclude in [true, false] {
        let mut s = stage(&json!({"excludeMasterFromStandardLB": exclude}));
        s.ask(web("web"));
        for (index, label) in [
            (10, ("node-role.kubernetes.io/control-plane", "")),
            (11, ("node-role.kubernetes.io/master", "x")),
            (12, ("node.kubernetes.io/exclude-from-external-load-balancers", "")),
            (13, ("node.kubernetes.io/exclude-from-external-load-balancers", "false")),
            (14, ("kubernetes.azure.com/managed", "false")),
            (15, ("kubernetes.azure.com/resource-group", "elsewhere")),
            (16, ("kubernetes.azure.com/resource-group", "RG")),
            (17, ("kubernetes.azure.com/managed", "true")),
        ] {
            s.add_node(index, &[label]);
        }
        is(
            &s.lines(&["pool"]),
            "pool kubernetes 10.224.0.20,10.224.0.21,10.224.0.4,10.224.0.5,10.224.0.6",
        );
    }
}

/// [pools] A node without an address of a family is in the other family's pool only.
#[test]
fn a_node_of_one_family() {
    let mut s = asked(web("web").dual());
    let mut node = crate::support::node(9);
    let internal = |address: &str| json!({"type": "InternalIP", "address": address});
    node["status"]["addresses"] = json!([internal("10.224.0.99"), internal("10.224.0.98")]);
    create(&mut s.lab, node);
    s.settle();
    is(
        &s.lines(&["pool"]),
        "pool kubernetes 10.224.0.4,10.224.0.5,10.224.0.6,10.224.0.99
        pool kubernetes-IPv6 fd00::4,fd00::5,fd00::6",
    );
}

fn preconfigured(name: &str) -> Value {
    json!({"id": network(&format!("loadBalancers/{name}")), "location": "eastus",
        "sku": {"name": "Standard"}, "properties": {
            "backendAddressPools": [{"name": "kubernetes", "properties": {
                "virtualNetwork": {"id": network("virtualNetworks/vnet")},
                "loadBalancerBackendAddresses": [
                    {"name": "mine", "properties": {"ipAddress": "10.224.9.9"}}]}}]}})
}

/// [pools] Pools that somebody else looks after: of one kind of load balancer, or of all; a load
/// balancer of that kind stays when its last Service goes.
#[test]
fn preconfigured_pools() {
    for (kind, public, internal) in [
        ("external", true, false),
        ("internal", false, true),
        ("all", true, true),
        ("All", false, false),
    ] {
        let all = || vec![preconfigured("kubernetes"), preconfigured("kubernetes-internal")];
        let config = json!({"preConfiguredBackendPoolLoadBalancerTypes": kind});
        let mut s = stage_with(&config, all());
        s.ask(web("web"));
        s.ask(web("in").internal().ports(&["TCP 81 30081"]));
        let theirs = "pool kubernetes 10.224.9.9";
        let ours = "pool kubernetes 10.224.0.4,10.224.0.5,10.224.0.6";
        let pool = |left: bool| if left { theirs } else { ours };
        is(&s.lines(&["pool"]), &format!("{}\n{}", pool(public), pool(internal)));
        s.delete("web");
        s.delete("in");
        let gone = s.lines(&["gone"]);
        assert_eq!(
            gone.contains("loadbalancers/kubernetes\n")
                || gone.ends_with("loadbalancers/kubernetes"),
            !public,
            "{kind}: {gone}"
        );
        assert_eq!(gone.contains("kubernetes-internal"), !internal, "{kind}: {gone}");
    }
}

/// [pools] A preconfigured pool that is missing is made, with its nodes.
#[test]
fn a_preconfigured_pool_that_is_missing() {
    let mut s = stage(&json!({"preConfiguredBackendPoolLoadBalancerTypes": "all"}));
    s.ask(web("web"));
    is(&s.lines(&["pool"]), "pool kubernetes 10.224.0.4,10.224.0.5,10.224.0.6");
    s.delete("web");
    is(&s.lines(&["lb"]), "lb kubernetes Standard");
}

pub fn several() -> Stage {
    let config = json!({"multipleStandardLoadBalancerConfigurations": [
        {"name": "kubernetes", "primaryVMSet": "vmss"}, {"name": "LB2", "primaryVMSet": "vmss2"}]});
    let mut s = stage_with(&config, [scale_set("vmss", 4), scale_set("vmss2", 4)].concat());
    for index in 0..2 {
        let mut node = crate::support::node(index);
        node["metadata"]["name"] = json!(format!("vmss2{index:06}"));
        let id = node["spec"]["providerID"].as_str().expect("an id").replace("/vmss/", "/vmss2/");
        node["spec"]["providerID"] = json!(id);
        node["status"]["addresses"] = json!([
            {"type": "InternalIP", "address": format!("10.224.1.{}", 4 + index)},
            {"type": "InternalIP", "address": format!("fd00::2:{:x}", 4 + index)}]);
        create(&mut s.lab, node);
    }
    s.settle();
    s
}

/// A slice of a Service's endpoints on nodes; the dashes of `part` make its name.
fn slice(s: &mut Stage, service: &str, part: u32, nodes: &[&str]) {
    let uid = s.object(service)["metadata"]["uid"].clone();
    let endpoints: Vec<Value> = nodes
        .iter()
        .enumerate()
        .map(|(at, node)| {
            json!({"addresses": [format!("10.244.{part}.{at}")], "nodeName": node,
                "conditions": {"ready": at % 2 == 0}})
        })
        .collect();
    create(
        &mut s.lab,
        json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": {"name": format!("{service}-{part}"), "namespace": "default",
            "labels": {"kubernetes.io/service-name": service},
            "ownerReferences": [{"apiVersion": "v1", "kind": "Service", "name": service,
                "uid": uid, "controller": true}]},
        "addressType": "IPv4", "endpoints": endpoints, "ports": []}),
    );
    s.settle();
}

/// [pools, names] With several load balancers a Local Service has pools of its own: the nodes with
/// endpoints in any slice, ready or not; those of its load balancer, here the only one, while there
/// is no slice; they go when it is no longer Local.
#[test]
fn pools_of_a_local_service() {
    let mut s = several();
    let mut asked = web("Web".to_lowercase().as_str()).dual().local(32000);
    asked = asked.with(&[("azure-load-balancer-configurations", "lb2, unknown")]);
    s.ask(asked);
    let all = "10.224.0.4,10.224.0.5,10.224.0.6,10.224.1.4,10.224.1.5";
    let all_six = "fd00::2:4,fd00::2:5,fd00::4,fd00::5,fd00::6";
    let pools = s.lines(&["pool"]);
    assert!(pools.contains(&format!("pool default-web {all}")), "{pools}");
    assert!(pools.contains(&format!("pool default-web-ipv6 {all_six}")), "{pools}");
    slice(&mut s, "web", 1, &["vmss000000", "vmss2000001"]);
    slice(&mut s, "web", 2, &["vmss000002", "vmss000000"]);
    let rules = s.lines(&["lb", "frontend", "rule", "probe"]);
    is(
        &rules,
        "lb LB2 Standard
        frontend <web> pip kubernetes-<web>
        frontend <web>-IPv6 pip kubernetes-<web>-IPv6
        rule <web>-TCP-80 Tcp 80->80 from <web> to default-web probe <web>-TCP-32000 idle 4 \
            Default float reset no-snat
        rule <web>-TCP-80-IPv6 Tcp 80->80 from <web>-IPv6 to default-web-ipv6 probe \
            <web>-TCP-32000-IPv6 idle 4 Default float reset no-snat
        probe <web>-TCP-32000 Http:32000/healthz every 5 x2
        probe <web>-TCP-32000-IPv6 Http:32000/healthz every 5 x2",
    );
    let pools = s.lines(&["pool"]);
    assert!(pools.contains("pool default-web 10.224.0.4,10.224.0.6,10.224.1.5\n"), "{pools}");
    assert!(pools.contains("pool default-web-ipv6 fd00::2:5,fd00::4,fd00::6"), "{pools}");
    s.change(
        "web",
        json!({"spec": {"externalTrafficPolicy": "Cluster", "healthCheckNodePort": null}}),
    );
    let pools = s.lines(&["pool", "rule"]);
    assert!(!pools.contains("default-web"), "{pools}");
    assert!(pools.contains("pool kubernetes "), "{pools}");
}

/// [load balancers] What a Service may not ask of several load balancers.
#[test]
fn configurations_that_cannot_be() {
    let mut s = several();
    for (at, annotations) in [
        [("azure-load-balancer-configurations", "lb9"), ("x", "")],
        [("azure-load-balancer-configurations", "lb2"), ("azure-pip-name", "byo-pip")],
        [("azure-load-balancer-configurations", "lb2"), ("azure-load-balancer-ipv4", "20.50.0.10")],
    ]
    .iter()
    .enumerate()
    {
        let name = format!("web{at}");
        s.ask(web(&name).ports(&[&format!("TCP {} {}", 80 + at, 30080 + at)]).with(annotations));
        assert_ne!(s.refusal(&name), "", "{annotations:?}");
        is(&s.lines(&["lb"]), "");
    }
}

/// [load balancers] A Service of another class is nobody's; one of ours by class is the plan's.
#[test]
fn a_service_of_another_class() {
    let s = asked(web("web").field("loadBalancerClass", json!("example.com/other")));
    is(&s.text(), "status web ");
    assert!(s.object("web")["metadata"]["finalizers"].is_null());
}

/// [load balancers] With `enableMultipleStandardLoadBalancers` each set has its own; `__auto__`
/// takes the one with the fewest rules, a name that set's, nothing the primary's.
#[test]
fn a_load_balancer_for_each_set() {
    let config = json!({"enableMultipleStandardLoadBalancers": true});
    let mut s = stage_with(&config, [scale_set("vmss", 4), scale_set("vmss2", 4)].concat());
    let mut node = crate::support::node(0);
    node["metadata"]["name"] = json!("vmss2000000");
    let id = node["spec"]["providerID"].as_str().expect("an id").replace("/vmss/", "/vmss2/");
    node["spec"]["providerID"] = json!(id);
    node["status"]["addresses"] = json!([{"type": "InternalIP", "address": "10.224.1.4"}]);
    create(&mut s.lab, node);
    s.settle();
    s.ask(web("one"));
    s.ask(web("two").ports(&["TCP 81 30081"]).with(&[("azure-load-balancer-mode", "__AUTO__")]));
    s.ask(
        web("three")
            .internal()
            .ports(&["TCP 82 30082"])
            .with(&[("azure-load-balancer-mode", "VMSS2")]),
    );
    is(
        &s.lines(&["lb", "frontend", "pool"]),
        "lb kubernetes Standard
        frontend <one> pip kubernetes-<one>
        pool kubernetes 10.224.0.4,10.224.0.5,10.224.0.6
        lb vmss2 Standard
        frontend <two> pip kubernetes-<two>
        pool kubernetes 10.224.1.4
        lb vmss2-internal Standard
        frontend <three> nodes IPv4 Dynamic 10.224.100.5 zones 1,2,3
        pool kubernetes 10.224.1.4",
    );
    s.ask(web("four").ports(&["TCP 83 30083"]).with(&[("azure-load-balancer-mode", "vmss9")]));
    assert_ne!(s.refusal("four"), "");
}
