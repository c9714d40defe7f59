//! What the properties found, each as small as it gets.

use crate::support::{create, delete, network, object, patch, remove, resource, security_group};
use crate::wishes::*;
use azure_emulator::Azure;
use serde_json::json;
use sim::{Laboratory, Moment};
use std::collections::BTreeSet;

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
    settled_in(Shape::Addresses, wishes)
}

fn settled_in(shape: Shape, wishes: &[Wish]) -> Laboratory {
    let mut lab = world(shape);
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
        // No Private Link Service stands before a pool of addresses.
        let mut lab = world(Shape::Nics);
        lab.settle(LIMIT_MS);
        create_all(&mut lab, &wishes);
        assert!(lab.settle(LIMIT_MS), "{:#?}", lab.controller().report());
        quiet(&lab);
        assert_eq!(findings(&lab), [rule]);
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
    let group = resource(&lab, "networkSecurityGroups/nsg");
    let rules = group["properties"]["securityRules"].as_array().cloned().unwrap_or_default();
    let theirs = rules.iter().find(|r| r["name"] == "k8s-azure-lb_theirs").expect("it stays");
    assert_eq!(theirs["properties"]["destinationPortRange"], "22");
}

#[test]
fn a_private_link_service_whose_annotation_went_unseen_goes_before_its_frontend() {
    let link = [("azure-pls-create", "true")];
    let mut lab = settled_in(Shape::Nics, &[Wish { internal: true, ..with(&link) }]);
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
    let mut lab = settled_in(Shape::Nics, &[plain()]);
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
    let is_open = |lab: &Laboratory| security_group(lab).contains("20.9.9.2");
    assert!(is_open(&lab));
    plain().replace(&mut lab, 0);
    let body = json!({"spec": {"type": "ClusterIP", "allocateLoadBalancerNodePorts": null}});
    patch(&mut lab, "services", "default", &name(0), body);
    assert!(lab.settle(LIMIT_MS));
    assert!(!is_open(&lab));
}

#[test]
fn a_service_that_named_a_group_that_is_not_there_can_go() {
    let mut lab = settled(&[]);
    create_all(&mut lab, &[with(&[("azure-load-balancer-resource-group", "no-such-group")])]);
    assert!(lab.settle(LIMIT_MS));
    assert_eq!(findings(&lab), ["PublicIpGroupUnreadable"]);
    delete(&mut lab, "default", &name(0));
    assert!(lab.settle(LIMIT_MS), "{:#?}", lab.controller().report());
    let left = lab.kubernetes.list("services", None);
    assert!(left.iter().all(|s| s["metadata"]["name"] == "kubernetes"), "{left:#?}");
}

/// Everything written from now on.
fn writes_after(lab: &mut Laboratory, act: impl FnOnce(&mut Laboratory)) -> Vec<String> {
    lab.azure.clear_calls();
    act(lab);
    assert!(lab.settle(LIMIT_MS), "{:#?}", lab.controller().report());
    quiet(lab);
    let writes = lab.azure.calls().iter().filter(|c| c.is_write());
    writes.map(|c| format!("{} {}", c.method, c.path.rsplit_once('/').expect("a path").1)).collect()
}

fn inside() -> Wish {
    Wish { internal: true, ..plain() }
}

/// An edit is refused for this reason, writes nothing, and neither does the next process.
fn stays_refused(lab: &mut Laboratory, edit: &Wish, index: usize, rule: &str) {
    assert_eq!(writes_after(lab, |lab| edit.replace(lab, index)), Vec::<String>::new());
    assert_eq!(findings(lab), [rule]);
    assert_eq!(writes_after(lab, Laboratory::restart), Vec::<String>::new());
}

const ADDRESS: &str = "10.224.9.9";
const ANOTHER: &str = "10.224.9.10";

fn at(address: &'static str) -> Wish {
    Wish { address: Some(address), ..inside() }
}

fn address_of(lab: &Laboratory, index: usize) -> Vec<String> {
    let reports = lab.controller().report().services.values();
    let report = reports.into_iter().find(|r| r.name.to_string().ends_with(&name(index)));
    report.expect("it is known").addresses.iter().map(ToString::to_string).collect()
}

/// What is refused after reading the subnet must not be written in part before that.
#[test]
fn a_refused_edit_of_a_dual_stack_service_stays_refused_over_a_restart() {
    let dual = Wish { families: &["IPv4", "IPv6"], ..inside() };
    let mut lab = settled(std::slice::from_ref(&dual));
    let edit = Wish { address: Some("20.50.0.10"), ports: vec![("TCP", 443, None)], ..dual };
    stays_refused(&mut lab, &edit, 0, "PinnedAddressUnusable");
}

#[test]
fn who_shared_a_pinned_address_gets_another_when_it_no_longer_pins() {
    let mut lab = settled(&[at(ADDRESS), Wish { ports: vec![("TCP", 443, None)], ..at(ADDRESS) }]);
    let edit = Wish { ports: vec![("TCP", 443, None)], ..inside() };
    let writes = writes_after(&mut lab, |lab| edit.replace(lab, 1));
    assert_eq!(writes, ["PUT kubernetes-internal"]);
    assert_eq!(address_of(&lab, 0), [ADDRESS]);
    assert_ne!(address_of(&lab, 1), [ADDRESS]);
}

#[test]
fn a_pinned_address_that_another_service_has_is_shared_by_one_that_stands() {
    let other = Wish { ports: vec![("TCP", 443, None)], ..at(ADDRESS) };
    let mut lab = settled(&[at(ADDRESS), Wish { address: None, ..other.clone() }]);
    let writes = writes_after(&mut lab, |lab| other.replace(lab, 1));
    assert_eq!(writes, ["PUT kubernetes-internal"]);
    assert_eq!(address_of(&lab, 0), [ADDRESS]);
    assert_eq!(address_of(&lab, 1), [ADDRESS]);
}

#[test]
fn an_address_passes_from_one_service_to_the_other_in_one_write() {
    for (taker, giver) in [(0, 1), (1, 0)] {
        let mut wishes = [inside(), inside()];
        wishes[giver] = at(ADDRESS);
        let mut lab = settled(&wishes);
        let writes = writes_after(&mut lab, |lab| {
            at(ANOTHER).replace(lab, giver);
            at(ADDRESS).replace(lab, taker);
        });
        assert_eq!(writes, ["PUT kubernetes-internal"]);
        assert_eq!(address_of(&lab, taker), [ADDRESS]);
        assert_eq!(address_of(&lab, giver), [ANOTHER]);
        let writes = writes_after(&mut lab, |lab| {
            at(ADDRESS).replace(lab, giver);
            at(ANOTHER).replace(lab, taker);
        });
        assert_eq!(writes, ["PUT kubernetes-internal"], "they change places");
    }
}

#[test]
fn an_address_of_a_service_that_goes_is_taken_when_it_is_free() {
    let ranges = Wish { ranges: true, ..at(ADDRESS) };
    let mut lab = settled(&[ranges, inside()]);
    writes_after(&mut lab, |lab| {
        delete(lab, "default", &name(0));
        at(ADDRESS).replace(lab, 1);
    });
    assert_eq!(address_of(&lab, 1), [ADDRESS]);
    let balancer = resource(&lab, "loadBalancers/kubernetes-internal");
    let frontends = balancer["properties"]["frontendIPConfigurations"].as_array();
    assert_eq!(frontends.map(Vec::len), Some(1), "{frontends:#?}");
}

#[test]
fn a_shared_frontend_goes_with_the_last_service_on_it() {
    let brought =
        |port| Wish { address: Some("20.50.0.10"), ports: vec![("TCP", port, None)], ..plain() };
    for (first, then) in [(0, 1), (1, 0)] {
        let mut lab = settled(&[brought(80), brought(443), plain()]);
        writes_after(&mut lab, |lab| delete(lab, "default", &name(first)));
        lab.restart();
        writes_after(&mut lab, |lab| delete(lab, "default", &name(then)));
        let ip = resource(&lab, "publicIPAddresses/byo-pip");
        assert!(ip["properties"]["ipConfiguration"].is_null(), "{ip:#?}");
    }
}

/// Azure lets one rule of a pool have a backend port.
#[test]
fn a_node_port_that_another_service_has_got_is_not_led_to_by_the_old_rule() {
    let six = Wish { families: &["IPv6"], ports: vec![("TCP", 8080, None)], ..inside() };
    let mut lab = settled(std::slice::from_ref(&six));
    let service = |lab: &Laboratory, index| {
        object(lab, "services", "default", &name(index)).expect("it is there")
    };
    let port = service(&lab, 0)["spec"]["ports"][0]["nodePort"].clone();
    // The edit is refused, and gives its node port up all the same.
    let refused =
        Wish { address: Some("fd99::1"), ports: vec![("TCP", 9090, None)], ..six.clone() };
    writes_after(&mut lab, |lab| {
        refused.replace(lab, 0);
        let ports = serde_json::json!([{"name": "other", "protocol": "TCP", "port": 9090,
            "targetPort": 8080, "nodePort": 31999}]);
        patch(lab, "services", "default", &name(0), serde_json::json!({"spec": {"ports": ports}}));
    });
    assert_eq!(findings(&lab), ["PinnedAddressUnusable"]);
    let mut other = six.service(1);
    other["spec"]["ports"][0]["nodePort"] = port.clone();
    let writes = writes_after(&mut lab, |lab| create(lab, other));
    assert_eq!(writes, ["PUT kubernetes-internal"]);
    assert_eq!(service(&lab, 1)["spec"]["ports"][0]["nodePort"], port);
    assert_eq!(address_of(&lab, 1).len(), 1);
}

#[test]
fn a_service_without_rules_shows_the_address_that_it_shares() {
    let none = ("port_{port}_no_lb_rule", "true");
    let brought = Wish { address: Some("20.50.0.10"), ..plain() };
    let lab = settled(&[brought, Wish { address: Some("20.50.0.10"), ..with(&[none]) }]);
    assert_eq!(address_of(&lab, 1), ["20.50.0.10"]);
    let none = ("port_{port}_no_lb_rule", "true");
    let lab = settled(&[at(ADDRESS), Wish { annotations: vec![none], ..at(ADDRESS) }]);
    assert_eq!(address_of(&lab, 1), [ADDRESS]);
}

/// A group that has to be read first may turn out not to be there.
#[test]
fn a_refused_move_to_the_other_load_balancer_stays_refused_over_a_restart() {
    for internal in [true, false] {
        let mut lab = settled(&[Wish { internal, ..plain() }]);
        let group = ("azure-load-balancer-resource-group", "no-such-group");
        let subnet = ("azure-load-balancer-internal-subnet", "nowhere");
        let edit = with(&[if internal { group } else { subnet }]);
        let edit = Wish { internal: !internal, ..edit };
        assert_eq!(writes_after(&mut lab, |lab| edit.replace(lab, 0)), Vec::<String>::new());
        assert_eq!(writes_after(&mut lab, Laboratory::restart), Vec::<String>::new());
        assert_eq!(findings(&lab).len(), 1, "{:?}", findings(&lab));
        let writes = writes_after(&mut lab, |lab| plain().replace(lab, 0));
        assert_eq!(writes.is_empty(), !internal, "{writes:?}");
    }
}

/// Addresses of nodes that the security group leads to, and those that pools hold.
fn open_and_held(azure: &Azure) -> (BTreeSet<String>, BTreeSet<String>) {
    let words = |id: &str| -> BTreeSet<String> {
        let text = azure.resource(&network(id)).unwrap_or_default().to_string();
        let words = text.split('"').filter(|word| word.starts_with("10.224.0."));
        words.filter(|word| !word.contains('/')).map(str::to_owned).collect()
    };
    (words("networkSecurityGroups/nsg"), words("loadBalancers/kubernetes"))
}

/// A Service whose rules lead to nodes, as they do without floating IP.
fn led_to_nodes() -> Laboratory {
    let lab = settled(&[with(&[("azure-disable-load-balancer-floating-ip", "true")])]);
    let (open, held) = open_and_held(&lab.azure);
    assert_eq!((open.len(), &open), (3, &held));
    lab
}

fn exclude(lab: &mut Laboratory, name: &str) {
    let label = "node.kubernetes.io/exclude-from-external-load-balancers";
    patch(lab, "nodes", "", name, json!({"metadata": {"labels": {label: "true"}}}));
}

#[test]
fn a_node_leaves_its_pool_and_the_security_group() {
    for goes in [true, false] {
        let mut lab = led_to_nodes();
        if goes {
            lab_deletes_node(&mut lab);
        } else {
            exclude(&mut lab, "vmss000000");
        }
        assert!(lab.settle(LIMIT_MS));
        let_drain(&mut lab);
        let (open, held) = open_and_held(&lab.azure);
        assert_eq!((open.len(), &open), (2, &held), "the node is in neither");
        quiet(&lab);
    }
}

/// A node that is gone stays in its pools for as long as it drains.
fn let_drain(lab: &mut Laboratory) {
    lab.pass(31_000);
    assert!(lab.settle(LIMIT_MS));
}

fn lab_deletes_node(lab: &mut Laboratory) {
    remove(lab, "nodes", "", "vmss000000");
}

#[test]
fn an_address_is_closed_although_its_node_went_while_the_controller_was_dead() {
    for calls in 0..12 {
        for moment in [Moment::Before, Moment::After] {
            let mut lab = led_to_nodes();
            lab.crash_after(calls, moment);
            lab_deletes_node(&mut lab);
            assert!(lab.settle(LIMIT_MS));
            let_drain(&mut lab);
            lab.restart();
            assert!(lab.settle(LIMIT_MS));
            let_drain(&mut lab);
            let (open, held) = open_and_held(&lab.azure);
            assert_eq!((open.len(), &open), (2, &held), "killed {moment:?} call {calls}");
        }
    }
}

/// It has rules in Azure and no frontend of its own.
#[test]
fn a_refused_edit_of_one_that_shares_an_address_stays_refused_over_a_restart() {
    let other = Wish { ports: vec![("TCP", 443, None)], ..at(ADDRESS) };
    let mut lab = settled(&[at(ADDRESS), other]);
    let ports = vec![("TCP", 443, None), ("TCP", 8443, None)];
    let edit = Wish { ports, ..at("10.99.0.9") };
    stays_refused(&mut lab, &edit, 1, "PinnedAddressUnusable");
}

#[test]
fn a_node_port_that_a_rule_of_others_leads_to_is_refused() {
    let mut lab = settled(&[plain()]);
    let id = network("loadBalancers/kubernetes");
    let mut balancer = lab.azure.resource(&id).expect("it is there");
    let part = |kind: &str, name: &str| json!({"id": format!("{id}/{kind}/{name}")});
    let rule = json!({"name": "theirs", "properties": {"protocol": "Tcp", "frontendPort": 7000,
        "backendPort": 31000, "enableFloatingIP": false,
        "frontendIPConfiguration": part("frontendIPConfigurations", "outbound"),
        "backendAddressPool": part("backendAddressPools", "kubernetes")}});
    let rules = balancer["properties"]["loadBalancingRules"].as_array_mut().expect("rules");
    rules.push(rule);
    lab.azure.seed(vec![balancer]);
    lab.restart();
    let wish = with(&[("azure-disable-load-balancer-floating-ip", "true")]);
    let mut service = wish.service(1);
    service["spec"]["ports"][0]["nodePort"] = json!(31000);
    lab.is_refused("default/web-0001", "somebody's rule leads to its node port");
    let writes = writes_after(&mut lab, |lab| create(lab, service));
    assert_eq!(writes, Vec::<String>::new());
    assert_eq!(findings(&lab), ["NodePortTaken"]);
}

/// With floating IP off the destinations are the nodes, which no frontend has.
#[test]
fn a_refused_edit_without_floating_ip_leaves_the_ways_to_the_nodes_open() {
    let off = ("azure-disable-load-balancer-floating-ip", "true");
    let mut lab = settled(&[with(&[off]), plain()]);
    let edit = with(&[off, ("azure-pip-name", "nobody")]);
    stays_refused(&mut lab, &edit, 0, "PublicIpNotFound");
}

/// Who has left a shared frontend leaves it to those who are on it, and others may still join.
#[test]
fn a_service_joins_a_frontend_whose_owner_has_moved_inside() {
    let brought =
        |port| Wish { ports: vec![("TCP", port, None)], ..with(&[("azure-pip-name", "byo-pip")]) };
    let mut lab = settled(&[brought(80), brought(81)]);
    let inside = Wish { internal: true, ports: vec![("TCP", 80, None)], ..plain() };
    inside.replace(&mut lab, 0);
    assert!(lab.settle(LIMIT_MS));
    create(&mut lab, brought(82).service(2));
    assert!(lab.settle(LIMIT_MS));
    assert_eq!(address_of(&lab, 2), ["20.50.0.10"]);
}

#[test]
fn nodes_stay_open_for_a_service_whose_next_ports_are_refused() {
    let nodes = with(&[("azure-disable-load-balancer-floating-ip", "true")]);
    let mut lab = settled(&[nodes]);
    let (open, held) = open_and_held(&lab.azure);
    assert_eq!(open, held);
    let edit = Wish { ports: vec![("SCTP", 5000, None)], node_ports: false, ..plain() };
    assert_eq!(writes_after(&mut lab, |lab| edit.replace(lab, 0)), Vec::<String>::new());
    assert_eq!(findings(&lab), ["UnsupportedSctp"]);
    assert_eq!(open_and_held(&lab.azure), (open, held));
}

#[test]
fn a_private_address_of_a_family_that_a_public_service_does_not_have_has_no_effect() {
    let lab = settled(&[Wish { families: &["IPv6"], ..at("10.224.9.9") }]);
    assert_eq!(findings(&lab), ["UnusedPinnedAddress"]);
    assert_eq!(address_of(&lab, 0).len(), 1);
}

/// Azure has no floating IP for internal IPv6 frontends, so that a rule for all ports is the only
/// one in its pool.
#[test]
fn a_second_internal_ipv6_service_with_ha_ports_is_refused() {
    let ha = ("azure-load-balancer-enable-high-availability-ports", "true");
    let wish = Wish { internal: true, families: &["IPv6"], ..with(&[ha]) };
    let lab = settled(&[wish.clone(), Wish { ports: vec![("UDP", 53, None)], ..wish }]);
    assert_eq!(findings(&lab), ["NodePortTaken"]);
    assert_eq!(address_of(&lab, 0).len() + address_of(&lab, 1).len(), 1);
}

#[test]
fn a_local_service_without_rules_needs_no_pool_of_its_own() {
    let mut lab = settled_in(Shape::Several, &[plain()]);
    let edit = Wish { local: true, ..with(&[("port_{port}_no_lb_rule", "true")]) };
    edit.replace(&mut lab, 0);
    assert!(lab.settle(LIMIT_MS));
    assert_eq!(address_of(&lab, 0).len(), 1);
}

#[test]
fn a_port_that_a_refused_service_keeps_is_taken() {
    let brought = [("azure-pip-name", "byo-pip6")];
    let six = Wish { families: &["IPv6"], ..with(&brought) };
    let mut lab = settled(&[six.clone(), six.clone()]);
    assert_eq!(findings(&lab), ["PortTaken"]);
    let sctp = Wish { ports: vec![("TCP", 80, None), ("SCTP", 5000, None)], ..six };
    assert_eq!(writes_after(&mut lab, |lab| sctp.replace(lab, 0)), Vec::<String>::new());
    assert_eq!(findings(&lab), ["UnsupportedSctp", "PortTaken"]);
}
