//! What goes over the wire, and what answers mean.

use crate::support::container::*;
use crate::support::{create, delete, network};
use azure_emulator::{FaultKind, GatewayReply};
use serde_json::{Value, json};
use sim::Laboratory;

fn lab_with(reply: GatewayReply) -> Laboratory {
    let mut lab = container_laboratory(3);
    lab.azure.options_mut().gateway_reply = reply;
    rest(&mut lab);
    create(&mut lab, web(0));
    set_slice(&mut lab, &web_name(0), 0, ready(&[(1, 0)]));
    lab
}

fn bodies(lab: &Laboratory, end: &str) -> Vec<Value> {
    let calls = lab.azure.calls().iter().filter(|c| c.is_write() && c.path.ends_with(end));
    calls.filter_map(|c| c.body.clone()).collect()
}

#[test]
fn l48_a_plain_200_is_done_whatever_its_headers_say() {
    for reply in [
        GatewayReply::Done,
        GatewayReply::DoneWithHeaders,
        GatewayReply::NoContent,
        GatewayReply::Accepted,
    ] {
        let mut lab = lab_with(reply);
        lab.pass(10_000);
        assert_eq!(backends(&lab, &web_name(0)), [pod_ip(1)], "{reply:?}");
    }
}

#[test]
fn l49_a_poll_of_200_that_says_failed_is_a_failure() {
    let mut lab = lab_with(GatewayReply::Done);
    let kind = FaultKind::GatewayAcceptedThenFails { code: "InternalServerError".to_owned() };
    lab.azure.add_fault(fault(kind, "POST", "updateServices$").times(2));
    rest(&mut lab);
    assert_eq!(service_posts(&lab), 3);
    assert_eq!(backends(&lab, &web_name(0)), [pod_ip(1)]);
}

#[test]
fn l50_a_200_that_names_an_error_is_a_failure() {
    let code = || "InternalServerError".to_owned();
    for kind in [
        FaultKind::GatewayErrorIn200 { code: code() },
        FaultKind::GatewayCodeIn200 { code: code() },
        FaultKind::GatewayHeaderIn200 { code: code() },
    ] {
        let mut lab = lab_with(GatewayReply::Done);
        lab.azure.add_fault(fault(kind.clone(), "POST", "update").times(2));
        rest(&mut lab);
        assert_eq!(backends(&lab, &web_name(0)), [pod_ip(1)], "{kind:?}");
        assert_eq!(table(&lab).len(), 1, "{kind:?}");
    }
}

fn egress(lab: &mut Laboratory) {
    create_pod(lab, egress_pod("out", "team-a", &["10.99.0.1"], 1));
    rest(lab);
    lab.azure.clear_calls();
    remove(lab, "pods", "default", "out");
    rest(lab);
}

#[test]
fn l51_references_are_cleared_by_an_explicit_null() {
    let mut lab = container_laboratory(3);
    egress(&mut lab);
    let detach = &bodies(&lab, "/updateServices")[0]["serviceRequests"][0]["service"];
    assert!(
        detach["properties"].as_object().expect("it has some").contains_key("publicNatGatewayId")
    );
    assert_eq!(detach["properties"]["publicNatGatewayId"], Value::Null);
    let nat = &bodies(&lab, "/natGateways/team-a")[0];
    assert!(nat["properties"].as_object().expect("it has some").contains_key("serviceGateway"));
    assert_eq!(nat["properties"]["serviceGateway"], Value::Null);
}

#[test]
fn l52_words_are_spelled_as_azure_spells_them() {
    let mut lab = lab_with(GatewayReply::Done);
    rest(&mut lab);
    let uid = uid_of(&lab, &web_name(0));
    let balancer = &bodies(&lab, &format!("/loadBalancers/{uid}"))[0];
    assert_eq!(balancer["sku"]["name"], "Service");
    assert_eq!(balancer["properties"]["scope"], "Public");
    assert_eq!(balancer["properties"]["loadBalancingRules"][0]["properties"]["protocol"], "Tcp");
    let pip = &bodies(&lab, "-pip")[0];
    assert_eq!(pip["sku"]["name"], "StandardV2");
    assert_eq!(pip["properties"]["publicIPAllocationMethod"], "Static");
    assert_eq!(pip["properties"]["publicIPAddressVersion"], "IPv4");
    let register = &bodies(&lab, "/updateServices")[0];
    assert_eq!(register["action"], "PartialUpdate");
    let service = &register["serviceRequests"][0]["service"];
    assert_eq!(service["properties"]["serviceType"], "Inbound");
    let addresses = &bodies(&lab, "/updateAddressLocations")[0];
    assert_eq!(addresses["action"], "PartialUpdate");
    assert_eq!(addresses["addressLocations"][0]["addressUpdateAction"], "FullUpdate");
}

#[test]
fn l53_taking_an_egress_gateway_away_names_no_nat_gateway() {
    let mut lab = container_laboratory(3);
    egress(&mut lab);
    let all = bodies(&lab, "/updateServices");
    let last = &all.last().expect("it was sent")["serviceRequests"][0];
    assert_eq!(last["isDelete"], true);
    assert_eq!(last["service"]["properties"]["serviceType"], "Outbound");
    let properties = last["service"]["properties"].as_object().expect("it has some");
    assert!(!properties.contains_key("publicNatGatewayId"));
}

#[test]
fn l54_the_network_is_that_of_its_own_resource_group() {
    let more = json!({"vnetResourceGroup": "net-rg", "loadBalancerSku": "service",
        "loadBalancerBackendPoolConfigurationType": "podIP", "serviceGatewayEnabled": true,
        "disableOutboundSNAT": false});
    let network = crate::support::policy(&more).network();
    assert!(network.as_str().contains("/resourceGroups/net-rg/"), "{}", network.as_str());
}

#[test]
fn l55_one_rule_a_port_with_resets_for_tcp_and_nothing_more() {
    let mut lab = container_laboratory(3);
    let mut service = web(0);
    service["spec"]["ports"] = json!([
        {"name": "a", "port": 65534, "targetPort": 65535, "protocol": "TCP"},
        {"name": "b", "port": 53, "targetPort": 53, "protocol": "UDP"}]);
    create(&mut lab, service);
    rest(&mut lab);
    let uid = uid_of(&lab, &web_name(0));
    let id = network(&format!("loadBalancers/{uid}"));
    let rules = |lab: &Laboratory| {
        let balancer = lab.azure.resource(&id).expect("it is there");
        let rules = balancer["properties"]["loadBalancingRules"].as_array().cloned();
        assert!(balancer["properties"]["probes"].as_array().is_none_or(Vec::is_empty));
        rules.unwrap_or_default()
    };
    let all = rules(&lab);
    assert_eq!(all.len(), 2);
    assert_eq!(all[0]["properties"]["enableTcpReset"], true);
    assert_ne!(all[1]["properties"]["enableTcpReset"], true);
    assert!(all.iter().all(|r| r["properties"]["enableFloatingIP"] != true));
    let one = json!({"spec": {"ports": [{"name": "b", "port": 53, "targetPort": 53,
        "protocol": "UDP"}]}});
    crate::support::patch(&mut lab, "services", "default", &web_name(0), one);
    rest(&mut lab);
    assert_eq!(rules(&lab).len(), 1);
    let mut high = web(1);
    high["spec"]["ports"] = json!([{"port": 65535, "targetPort": 80}]);
    create(&mut lab, high);
    rest(&mut lab);
    assert_eq!(address_of(&lab, &web_name(1)), None, "65535 is too high at the front");
}

#[test]
fn l56_two_ports_to_one_backend_port_are_refused_before_azure_is_asked() {
    let mut lab = resting(3);
    lab.azure.clear_calls();
    let mut twice = web(0);
    twice["spec"]["ports"] = json!([{"name": "a", "port": 80, "targetPort": 8080},
        {"name": "b", "port": 81, "targetPort": 8080}]);
    create(&mut lab, twice);
    rest(&mut lab);
    assert_eq!(lab.calls().0, 0);
    let reason = "UnsupportedBackendPortCollision".to_owned();
    assert!(reasons(&lab, &web_name(0)).contains(&reason));
    let mut both = web(1);
    both["spec"]["ports"] = json!([{"name": "a", "port": 53, "targetPort": 53, "protocol": "TCP"},
        {"name": "b", "port": 53, "targetPort": 53, "protocol": "UDP"}]);
    create(&mut lab, both);
    rest(&mut lab);
    assert!(address_of(&lab, &web_name(1)).is_some());
    delete(&mut lab, "default", &web_name(1));
}
