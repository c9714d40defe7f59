//! Start-up, what others left, and recovery.

use crate::support::container::*;
use crate::support::{call, create, delete, network, patch};
use kube_emulator::Part;
use serde_json::{Value, json};
use sim::Laboratory;

const UID: &str = "0f8fad5b-d9cb-469f-a165-70867728950e";

fn standing() -> Laboratory {
    let mut lab = container_laboratory(3);
    create(&mut lab, web(0));
    set_slice(&mut lab, &web_name(0), 0, ready(&[(1, 0)]));
    create_pod(&mut lab, egress_pod("out", "team-a", &["10.99.0.1", "fd12::1"], 1));
    rest(&mut lab);
    lab.azure.clear_calls();
    lab
}

fn restarted(lab: &mut Laboratory) {
    lab.restart();
    lab.pass(30_000);
    rest(lab);
}

fn put(lab: &mut Laboratory, kind_and_name: &str, body: Value) {
    call(lab, "PUT", &network(kind_and_name), Some(body));
    lab.azure.clear_calls();
}

fn is_there(lab: &Laboratory, kind_and_name: &str) -> bool {
    lab.azure.resource(&network(kind_and_name)).is_some()
}

fn public_ip(lab: &mut Laboratory, name: &str) {
    let body = json!({"location": "eastus", "sku": {"name": "StandardV2"}, "properties": {
        "publicIPAllocationMethod": "Static", "publicIPAddressVersion": "IPv4"}});
    put(lab, &format!("publicIPAddresses/{name}"), body);
}

#[test]
fn l88_a_start_amid_a_thousand_changes_comes_to_rest() {
    let mut lab = standing();
    lab.azure_latency_ms = 50;
    lab.restart();
    for n in 1..40 {
        create(&mut lab, web(n));
        lab.pass(7);
    }
    rest(&mut lab);
    assert_eq!(registered(&lab).len(), 42);
}

#[test]
fn l89_a_start_with_pods_that_end_sees_them_off() {
    let mut lab = standing();
    remove(&mut lab, "pods", "default", "out");
    lab.azure
        .add_fault(refusing(503, "ServiceUnavailable", "POST", "updateAddressLocations$").times(3));
    restarted(&mut lab);
    assert!(pod_of(&lab, "out").is_none() && !is_there(&lab, "natGateways/team-a"));
}

#[test]
fn l90_addresses_are_synced_at_the_start_although_every_new_service_is_refused() {
    let mut lab = standing();
    lab.azure.add_fault(refusing(400, "QuotaExceeded", "PUT", "loadBalancers/").always());
    create(&mut lab, web(1));
    set_slice(&mut lab, &web_name(0), 0, ready(&[(2, 1)]));
    lab.restart();
    lab.pass(2_000);
    assert_eq!(backends(&lab, &web_name(0)), [pod_ip(2)]);
}

/// A Service that ends, of which only a public IP is left.
fn only_a_public_ip(late_address: bool) -> Laboratory {
    let mut lab = container_laboratory(3);
    let mut service = web(0);
    service["spec"]["type"] = json!("ClusterIP");
    service["metadata"]["finalizers"] =
        json!([GATEWAY_FINALIZER, "service.kubernetes.io/load-balancer-cleanup"]);
    create(&mut lab, service);
    if late_address {
        lab.azure.options_mut().late_public_ip_address = azure_emulator::Switch::On;
        lab.azure.options_mut().lro_ms = 5_000;
    }
    let name = format!("{}-pip", uid_of(&lab, &web_name(0)));
    public_ip(&mut lab, &name);
    delete(&mut lab, "default", &web_name(0));
    lab
}

#[test]
fn l91_a_public_ip_without_an_address_is_one() {
    let mut lab = only_a_public_ip(true);
    lab.pass(2_000);
    assert!(service_of(&lab, &web_name(0)).is_some(), "it is not let go over its public IP");
    restarted(&mut lab);
    assert_eq!(container_leftovers(&lab), Vec::<String>::new());
    assert!(service_of(&lab, &web_name(0)).is_none());
}

#[test]
fn l92_a_public_ip_alone_is_removed_and_the_finalizer_with_it() {
    let mut lab = only_a_public_ip(false);
    restarted(&mut lab);
    assert_eq!(container_leftovers(&lab), Vec::<String>::new());
    assert!(service_of(&lab, &web_name(0)).is_none());
}

#[test]
fn l93_the_public_ip_of_a_service_that_is_refused_stays() {
    let mut lab = container_laboratory(3);
    lab.azure.add_fault(refusing(400, "QuotaExceeded", "PUT", "loadBalancers/").always());
    create(&mut lab, web(0));
    lab.pass(2_000);
    lab.restart();
    lab.pass(300_000);
    let pip = format!("publicIPAddresses/{}-pip", uid_of(&lab, &web_name(0)));
    assert!(is_there(&lab, &pip));
    assert_eq!(writes_of(&lab, "DELETE", "publicIPAddresses"), 0);
}

#[test]
fn l94_what_is_wanted_or_not_ours_is_no_orphan() {
    let mut lab = standing();
    public_ip(&mut lab, "mine-pip");
    public_ip(&mut lab, &format!("{UID}-pip"));
    let own = json!({"location": "eastus", "sku": {"name": "Service"}, "properties": {}});
    put(&mut lab, "loadBalancers/my-own", own);
    let nat = json!({"location": "eastus", "sku": {"name": "StandardV2"}, "properties": {}});
    put(&mut lab, "natGateways/my-nat", nat);
    restarted(&mut lab);
    lab.pass(600_000);
    assert_eq!(lab.calls().0, 0);
    for id in [
        "publicIPAddresses/mine-pip",
        "loadBalancers/my-own",
        "natGateways/my-nat",
        "natGateways/default-natgw",
        "publicIPAddresses/default-natgw-pip",
    ] {
        assert!(is_there(&lab, id), "{id}");
    }
}

#[test]
fn l95_the_ipv6_public_ip_of_a_lost_gateway_goes_too() {
    let mut lab = standing();
    assert!(is_there(&lab, "publicIPAddresses/team-a-pip-v6"));
    // The Pod vanishes although its finalizer should have kept it.
    merge(&mut lab, "pods", "out", Part::Main, json!({"metadata": {"finalizers": null}}));
    remove(&mut lab, "pods", "default", "out");
    restarted(&mut lab);
    assert!(!is_there(&lab, "publicIPAddresses/team-a-pip-v6"));
    assert!(!is_there(&lab, "publicIPAddresses/team-a-pip"));
    assert!(!is_there(&lab, "natGateways/team-a"));
}

#[test]
fn l96_a_list_that_fails_is_read_again_and_nothing_is_decided_before() {
    let mut lab = standing();
    delete(&mut lab, "default", &web_name(0));
    lab.azure.add_fault(refusing(500, "InternalServerError", "GET", "publicIPAddresses$").times(4));
    lab.restart();
    lab.pass(3_000);
    assert_eq!(lab.calls().0, 0, "nothing is known, nothing is written");
    lab.pass(60_000);
    rest(&mut lab);
    assert!(service_of(&lab, &web_name(0)).is_none());
}

#[test]
fn l97_types_in_other_letters_are_known_and_unknown_ones_are_left_alone() {
    let mut lab = standing();
    let tables = lab.azure.gateway(&gateway_id()).expect("it is there");
    let uid = uid_of(&lab, &web_name(0));
    let mut service = tables["services"][&uid].clone();
    service["properties"]["serviceType"] = json!("INBOUND");
    let mut odd = service.clone();
    odd["name"] = json!(UID);
    odd["properties"]["serviceType"] = json!("Sideways");
    odd["properties"]["loadBalancerBackendPools"] = json!([]);
    lab.azure.seed_gateway(&gateway_id(), &json!({"services": {uid: service, UID: odd}}));
    restarted(&mut lab);
    assert_eq!(lab.calls().0, 0);
    assert!(registered(&lab).contains(UID));
}

#[test]
fn l98_the_default_gateway_is_never_touched() {
    let mut lab = standing();
    let before = lab.azure.gateway(&gateway_id()).expect("it is there");
    remove(&mut lab, "pods", "default", "out");
    delete(&mut lab, "default", &web_name(0));
    restarted(&mut lab);
    let after = lab.azure.gateway(&gateway_id()).expect("it is there");
    assert_eq!(after["services"]["default-natgw"], before["services"]["default-natgw"]);
    let sent = lab.azure.calls().iter().filter(|c| c.is_write());
    assert!(
        sent.into_iter().all(|c| !format!("{} {:?}", c.path, c.body).contains("default-natgw"))
    );
}

#[test]
fn l99_pods_that_have_ended_or_have_no_home_make_no_gateway() {
    let mut lab = container_laboratory(3);
    let mut ended = egress_pod("ended", "team-x", &["10.99.0.1"], 1);
    ended["status"]["phase"] = json!("Succeeded");
    create_pod(&mut lab, ended);
    let mut homeless = egress_pod("homeless", "team-y", &["fd12::9"], 1);
    homeless["status"]["hostIPs"] = json!([{"ip": location(1)}]);
    create_pod(&mut lab, homeless);
    rest(&mut lab);
    assert_eq!(lab.calls().0, 0);
    assert_eq!(reasons(&lab, "homeless"), ["ServiceGatewayNoNodeLocation"]);
}

#[test]
fn l100_whether_there_is_ipv6_is_decided_when_the_nodes_are_known() {
    let mut lab = standing();
    lab.restart();
    create_pod(&mut lab, egress_pod("second", "team-b", &["10.99.0.2"], 2));
    rest(&mut lab);
    assert!(is_there(&lab, "publicIPAddresses/team-b-pip-v6"));
    let mut nodes: Vec<Value> = (0..2).map(crate::support::node).collect();
    for (n, node) in nodes.iter_mut().enumerate() {
        let address = location(u32::try_from(n).expect("small"));
        node["status"]["addresses"] = json!([{"type": "InternalIP", "address": address}]);
    }
    let mut lab = container_laboratory_of(nodes);
    create_pod(&mut lab, egress_pod("out", "team-a", &["10.99.0.1"], 1));
    rest(&mut lab);
    assert!(!is_there(&lab, "publicIPAddresses/team-a-pip-v6"), "a cluster of IPv4 gets none");
}

#[test]
fn l101_an_address_that_is_missing_or_wrong_in_the_status_is_mended_at_the_start() {
    for wrong in [json!(null), json!([{"ip": "192.0.2.9"}])] {
        let mut lab = standing();
        let right = address_of(&lab, &web_name(0));
        let status = json!({"status": {"loadBalancer": {"ingress": wrong}}});
        merge(&mut lab, "services", &web_name(0), Part::Status, status);
        restarted(&mut lab);
        assert_eq!(address_of(&lab, &web_name(0)), right);
        assert_eq!(lab.calls().0, 0);
    }
}

#[test]
fn l102_a_restart_on_nodes_of_two_families_calls_for_nothing() {
    let mut lab = standing();
    lab.azure.options_mut().odd_ipv6 = azure_emulator::Switch::On;
    lab.azure.options_mut().shout_ids = azure_emulator::Switch::On;
    lab.azure.options_mut().unknown_fields = azure_emulator::Switch::On;
    restarted(&mut lab);
    assert_eq!(lab.calls().0, 0);
}

#[test]
fn l103_a_start_that_fails_is_begun_anew() {
    let mut lab = standing();
    for _ in 0..5 {
        lab.restart();
        lab.turn();
    }
    set_slice(&mut lab, &web_name(0), 0, ready(&[(1, 0), (2, 1)]));
    restarted(&mut lab);
    assert_eq!(backends(&lab, &web_name(0)).len(), 2);
}

#[test]
fn l104_each_attempt_is_counted_once() {
    let mut lab = standing();
    let before = lab.controller().counts().clone();
    lab.azure.add_fault(refusing(500, "InternalServerError", "PUT", "loadBalancers/").times(2));
    let ports = json!({"spec": {"ports": [{"name": "http", "port": 81, "targetPort": 8080}]}});
    patch(&mut lab, "services", "default", &web_name(0), ports);
    rest(&mut lab);
    let after = lab.controller().counts();
    assert_eq!((after.writes - before.writes, after.failures - before.failures), (3, 2));
}
