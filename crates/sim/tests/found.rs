//! What the properties found, each as small as it gets.

mod wishes;

use serde_json::json;
use sim::Laboratory;
use wishes::support::{delete, network, patch};
use wishes::*;

const LIMIT_MS: u64 = 60_000;

fn plain() -> Wish {
    Wish {
        internal: false,
        annotations: Vec::new(),
        ports: vec![("TCP", 80, None)],
        families: &["IPv4"],
        local: false,
        affinity: false,
        ranges: false,
        node_ports: true,
        address: None,
    }
}

fn with(annotations: &[(&'static str, &'static str)]) -> Wish {
    Wish { annotations: annotations.to_vec(), ..plain() }
}

/// Creates the Services on a fresh estate. Azure must not refuse anything.
fn settled(wishes: &[Wish]) -> Laboratory {
    let mut lab = world(Shape::Addresses);
    lab.settle(LIMIT_MS);
    create_all(&mut lab, wishes);
    assert!(lab.settle(LIMIT_MS), "{:#?}", lab.controller().report());
    quiet(&lab);
    lab
}

fn quiet(lab: &Laboratory) {
    let refused = lab.azure.calls().iter().find(|c| c.is_write() && c.status >= 400);
    assert!(refused.is_none(), "{refused:#?}");
}

fn findings(lab: &Laboratory) -> Vec<&'static str> {
    let services = lab.controller().report().services.values();
    services.flat_map(|s| &s.findings).map(|f| f.rule).collect()
}

#[test]
fn what_cannot_be_is_a_finding_and_no_error_from_azure() {
    let six = |annotations: &[(&'static str, &'static str)]| Wish {
        families: &["IPv6"],
        ..with(annotations)
    };
    let inside =
        |annotations: &[(&'static str, &'static str)]| Wish { internal: true, ..with(annotations) };
    let sctp = Wish { ports: vec![("TCP", 5000, None), ("SCTP", 5000, None)], ..inside(&[]) };
    let link = ("azure-pls-create", "true");
    let cases: Vec<(&str, Vec<Wish>)> = vec![
        ("PortTaken", vec![sctp]),
        ("PublicIpFamilyMismatch", vec![six(&[("azure-pip-name-ipv6", "byo-pip")])]),
        ("PinnedAddressUnusable", vec![inside(&[("azure-load-balancer-ipv4", "10.99.0.9")])]),
        ("PinnedAddressUnusable", vec![inside(&[("azure-load-balancer-ipv4", "10.224.0.3")])]),
        ("PinnedAddressUnusable", vec![inside(&[("azure-load-balancer-ipv4", "10.224.0.4")])]),
        (
            "PublicIpGroupUnreadable",
            vec![with(&[("azure-load-balancer-resource-group", "no-such-group")])],
        ),
        (
            "PrivateLinkGroupUnreadable",
            vec![inside(&[link, ("azure-pls-resource-group", "no-such-group")])],
        ),
        (
            "PrivateLinkAddressUnusable",
            vec![inside(&[link, ("azure-pls-ip-configuration-ip-address", "10.224.0.5")])],
        ),
        ("DnsLabelTaken", vec![with(&[("azure-dns-label-name", "web-label")]); 2]),
    ];
    for (rule, wishes) in cases {
        assert_eq!(findings(&settled(&wishes)), [rule]);
    }
}

#[test]
fn a_deleted_service_is_forgotten_when_its_last_write_is_answered_late() {
    let mut lab = settled(&[plain()]);
    delete(&mut lab, "default", &name(0));
    assert!(lab.settle(LIMIT_MS));
    assert!(lab.controller().report().services.is_empty());
    assert!(lab.controller().world().kubernetes.services.is_empty());
}

#[test]
fn a_rule_of_others_goes_through_as_it_came_even_with_a_name_like_ours() {
    let lab = settled(&[plain()]);
    let group = lab.azure.resource(&network("networkSecurityGroups/nsg")).expect("it is there");
    let rules = group["properties"]["securityRules"].as_array().cloned().unwrap_or_default();
    let theirs = rules.iter().find(|r| r["name"] == "k8s-azure-lb_theirs").expect("it stays");
    assert_eq!(theirs["properties"]["destinationPortRange"], "22");
}

#[test]
fn a_private_link_service_whose_annotation_went_unseen_goes_before_its_frontend() {
    let link = [("azure-pls-create", "true")];
    let mut lab = settled(&[Wish { internal: true, ..with(&link) }]);
    let key = "service.beta.kubernetes.io/azure-pls-create";
    let body = json!({"metadata": {"annotations": {key: null}}});
    patch(&mut lab, "services", "default", &name(0), body);
    lab.restart();
    assert!(lab.settle(LIMIT_MS));
    delete(&mut lab, "default", &name(0));
    assert!(lab.settle(LIMIT_MS));
    quiet(&lab);
    let left = lab.azure.resources();
    assert!(!left.iter().any(|r| r["type"] == "Microsoft.Network/privateLinkServices"));
}

#[test]
fn a_private_link_service_waits_until_floating_ip_is_off() {
    let mut lab = settled(&[plain()]);
    let both = [("azure-pls-create", "true"), ("azure-disable-load-balancer-floating-ip", "true")];
    with(&both).replace(&mut lab, 0);
    assert!(lab.settle(LIMIT_MS));
    quiet(&lab);
    let all = lab.azure.resources();
    assert!(all.iter().any(|r| r["type"] == "Microsoft.Network/privateLinkServices"));
}

#[test]
fn an_address_that_was_shown_is_closed_although_nothing_shows_it_any_more() {
    let more = [("azure-additional-public-ips", "20.9.9.2")];
    let mut lab = settled(&[with(&more)]);
    let is_open = |lab: &Laboratory| {
        let group = lab.azure.resource(&network("networkSecurityGroups/nsg"));
        group.expect("it is there").to_string().contains("20.9.9.2")
    };
    assert!(is_open(&lab));
    plain().replace(&mut lab, 0);
    let body = json!({"spec": {"type": "ClusterIP", "allocateLoadBalancerNodePorts": null}});
    patch(&mut lab, "services", "default", &name(0), body);
    assert!(lab.settle(LIMIT_MS));
    assert!(!is_open(&lab));
}

#[test]
fn a_service_that_named_a_group_that_is_not_there_can_go() {
    let mut lab = settled(&[with(&[("azure-load-balancer-resource-group", "no-such-group")])]);
    assert_eq!(findings(&lab), ["PublicIpGroupUnreadable"]);
    delete(&mut lab, "default", &name(0));
    assert!(lab.settle(LIMIT_MS), "{:#?}", lab.controller().report());
    let left = lab.kubernetes.list("services", None);
    assert!(left.iter().all(|s| s["metadata"]["name"] == "kubernetes"), "{left:#?}");
}
