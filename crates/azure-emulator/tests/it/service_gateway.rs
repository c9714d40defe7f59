//! Service Gateways.

use crate::common::{self, *};
use azure_emulator::{
    Azure, Fault, FaultKind, GatewayReply, Options, Request, SampleGateway, SampleOptions,
    sample_cloud_config, sample_estate,
};
use serde_json::{Value, json};

fn gateway() -> String {
    net("serviceGateways/servicegateway")
}

fn cloud(options: Options) -> Cloud {
    let mut azure = Azure::new(options);
    let gateway = SampleGateway::WithDefaultNat;
    azure.seed(sample_estate(&SampleOptions { gateway, ..Default::default() }));
    Cloud { azure, now_ms: 1 }
}

fn balancer_of(cloud: &mut Cloud, uid: &str) -> String {
    let pip = net(&format!("publicIPAddresses/{uid}-pip"));
    cloud.put(&pip, common::pip("IPv4", "StandardV2"));
    let id = net(&format!("loadBalancers/{uid}"));
    cloud.put(
        &id,
        json!({"location": "eastus", "sku": {"name": "Service"}, "properties": {
        "scope": "Public",
        "frontendIPConfigurations": [
            {"name": "frontend", "properties": {"publicIPAddress": {"id": pip}}}],
        "backendAddressPools": [{"name": uid, "properties": {}}],
        "loadBalancingRules": [{"name": "rule-tcp-80", "properties": {
            "protocol": "Tcp", "frontendPort": 80, "backendPort": 8080,
            "frontendIPConfiguration": {"id": format!("{id}/frontendIPConfigurations/frontend")},
            "backendAddressPool": {"id": format!("{id}/backendAddressPools/{uid}")}}}]}}),
    );
    id
}

fn service(uid: &str, pools: Value) -> Value {
    json!({"action": "PartialUpdate", "serviceRequests": [{"isDelete": false, "service": {
        "name": uid, "properties": {"serviceType": "Inbound",
            "loadBalancerBackendPools": pools}}}]})
}

fn unregister(uid: &str) -> Value {
    json!({"action": "PartialUpdate", "serviceRequests": [{"isDelete": true, "service": {
        "name": uid, "properties": {"serviceType": "Inbound", "loadBalancerBackendPools": []}}}]})
}

fn locations(action: &str, list: Value) -> Value {
    json!({"action": action, "addressLocations": list})
}

fn services(cloud: &mut Cloud, body: Value) -> azure_emulator::Answer {
    cloud.post(&format!("{}/updateServices", gateway()), body)
}

fn update(cloud: &mut Cloud, body: Value) -> azure_emulator::Answer {
    cloud.post(&format!("{}/updateAddressLocations", gateway()), body)
}

fn table(cloud: &Cloud) -> Value {
    cloud.azure.gateway(&gateway()).unwrap()["locations"].clone()
}

fn registered(uid: &str) -> Cloud {
    let mut cloud = cloud(Options::default());
    let lb = balancer_of(&mut cloud, uid);
    let pools = json!([{"id": format!("{lb}/backendAddressPools/{uid}")}]);
    assert_eq!(services(&mut cloud, service(uid, pools)).status, 200);
    cloud
}

#[test]
fn a_service_lives_from_registration_to_removal() {
    let mut cloud = registered("uid");
    let lb = net("loadBalancers/uid");
    let list = cloud.get(&format!("{}/services", gateway()));
    let names: Vec<&Value> =
        list["value"].as_array().unwrap().iter().map(|one| &one["name"]).collect();
    assert_eq!(names, ["default-natgw", "uid"]);
    let entry = json!([{"addressLocation": "10.224.0.4", "addressUpdateAction": "FullUpdate",
        "addresses": [{"address": "10.244.0.7", "services": ["uid"]}]}]);
    assert_eq!(update(&mut cloud, locations("PartialUpdate", entry)).status, 200);
    let address = cloud.get(&net("publicIPAddresses/uid-pip"))["properties"]["ipAddress"].clone();
    let traffic = cloud.azure.traffic(address.as_str().unwrap(), "Tcp", 80).unwrap();
    assert_eq!((traffic.backends, traffic.backend_port), (vec!["10.244.0.7".to_owned()], 8080));
    assert_eq!(cloud.azure.egress("10.244.0.7"), ["20.60.0.1"], "by the default gateway");
    let refused = services(&mut cloud, unregister("uid"));
    assert_eq!(refused.code(), Some("ServiceWithOverlayMappingsCannotBeDeleted"));
    let gone = json!([{"addressLocation": "10.224.0.4", "addressUpdateAction": "PartialUpdate",
        "addresses": [{"address": "10.244.0.7", "services": []}]}]);
    update(&mut cloud, locations("PartialUpdate", gone));
    assert_eq!(table(&cloud), json!({}));
    let held = cloud.delete(&lb);
    assert_eq!(held.code(), Some("LoadBalancerBackendPoolInUseByServiceGateway"));
    services(&mut cloud, service("uid", json!([])));
    assert_eq!(cloud.delete(&lb).status, 200);
    assert_eq!(services(&mut cloud, unregister("uid")).status, 200);
    assert_eq!(services(&mut cloud, unregister("uid")).status, 200, "twice is fine");
}

#[test]
fn full_and_partial_updates_nest() {
    let mut cloud = registered("u");
    let pod = |ip: &str| json!({"address": ip, "services": ["u"]});
    let at = |node: &str, action: &str, pods: Vec<Value>| {
        json!({
        "addressLocation": node, "addressUpdateAction": action, "addresses": pods})
    };
    let (full, part) = ("FullUpdate", "PartialUpdate");
    update(
        &mut cloud,
        locations(
            part,
            json!([
                at("10.0.0.1", full, vec![pod("10.1.0.1"), pod("10.1.0.2")]),
                at("10.0.0.2", full, vec![pod("10.1.0.3")])
            ]),
        ),
    );
    update(&mut cloud, locations(part, json!([at("10.0.0.1", part, vec![pod("10.1.0.9")])])));
    assert_eq!(table(&cloud)["10.0.0.1"].as_object().unwrap().len(), 3);
    update(&mut cloud, locations(part, json!([at("10.0.0.1", full, vec![pod("10.1.0.9")])])));
    assert_eq!(table(&cloud)["10.0.0.1"].as_object().unwrap().len(), 1);
    assert!(table(&cloud)["10.0.0.2"].is_object(), "not listed, not touched");
    update(&mut cloud, locations(part, json!([{"addressLocation": "10.0.0.2"}])));
    assert!(table(&cloud)["10.0.0.2"].is_null(), "listed without addresses: gone");
    update(&mut cloud, locations(full, json!([at("10.0.0.3", full, vec![pod("10.1.0.4")])])));
    assert_eq!(table(&cloud), json!({"10.0.0.3": {"10.1.0.4": ["u"]}}));
    let six = json!([{"addressLocation": "FD00:0:0:0:0:0:0:9", "addresses": [
        {"address": "fd12::A", "services": ["u"]}]}]);
    update(&mut cloud, locations(full, six));
    assert_eq!(table(&cloud), json!({"fd00::9": {"fd12::a": ["u"]}}));
    let list = cloud.get(&format!("{}/addressLocations", gateway()));
    assert_eq!(list["value"][0]["addresses"][0]["address"], "fd12::a");
}

#[test]
fn bad_requests_change_nothing() {
    let mut cloud = registered("u");
    let pod = |ip: &str, name: &str| json!([{"address": ip, "services": [name]}]);
    let good = json!({"addressLocation": "10.0.0.1", "addresses": pod("10.1.0.1", "u")});
    let cases = [
        (json!([good, good]), "DuplicateLocationsInRequest"),
        (
            json!([good, {"addressLocation": "10.0.0.2", "addresses": pod("fd00::1", "u")}]),
            "IPv4LocationCannotContainIPv6Addresses",
        ),
        (
            json!([good, {"addressLocation": "fd00::2", "addresses": pod("10.1.0.1", "u")}]),
            "IPv6LocationCannotContainIPv4Addresses",
        ),
        (
            json!([good, {"addressLocation": "10.0.0.2", "addresses": pod("10.1.0.2", "none")}]),
            "ServiceNotFoundInServiceGateway",
        ),
        (json!([good, {"addressLocation": "node"}]), "InvalidIPAddressFormat"),
    ];
    for (list, code) in cases {
        let answer = update(&mut cloud, locations("PartialUpdate", list));
        assert_eq!((answer.status, answer.code()), (400, Some(code)));
        assert_eq!(table(&cloud), json!({}));
    }
    let default = json!({"action": "PartialUpdate", "serviceRequests": [{"service": {
        "name": "x", "properties": {"serviceType": "Outbound", "isDefault": true}}}]});
    let answer = services(&mut cloud, default);
    assert_eq!(answer.code(), Some("MultipleDefaultServicesNotAllowedInServiceGateway"));
    let missing = cloud.post(&net("serviceGateways/none/updateServices"), json!({}));
    assert_eq!((missing.status, missing.code()), (404, Some("ResourceNotFound")));
}

#[test]
fn an_outbound_service_lets_go_of_its_gateway() {
    let mut cloud = cloud(Options::default());
    let pip = net("publicIPAddresses/team-pip");
    cloud.put(&pip, common::pip("IPv4", "StandardV2"));
    let nat = net("natGateways/team");
    cloud.put(
        &nat,
        json!({"location": "eastus", "sku": {"name": "StandardV2"}, "properties": {
        "serviceGateway": {"id": gateway()}, "publicIpAddresses": [{"id": pip}]}}),
    );
    let out = |nat: Value| {
        json!({"action": "PartialUpdate", "serviceRequests": [{"service": {"name": "team",
            "properties": {"serviceType": "Outbound", "publicNatGatewayId": nat}}}]})
    };
    services(&mut cloud, out(json!(nat)));
    let pods = json!([{"addressLocation": "10.224.0.4", "addresses":
        [{"address": "10.244.0.8", "services": ["team"]}]}]);
    update(&mut cloud, locations("PartialUpdate", pods));
    let address = cloud.get(&pip)["properties"]["ipAddress"].clone();
    assert_eq!(cloud.azure.egress("10.244.0.8"), [address.as_str().unwrap()]);
    assert_eq!(cloud.delete(&nat).code(), Some("NatGatewayInUseByServiceGateway"));
    services(&mut cloud, out(Value::Null));
    let list = cloud.get(&format!("{}/services", gateway()));
    assert!(list["value"][1]["properties"]["publicNatGatewayId"].is_null());
    let mut read = cloud.get(&nat);
    read["properties"].as_object_mut().unwrap().remove("serviceGateway");
    let kept = cloud.put(&nat, read.clone());
    assert!(kept["properties"]["serviceGateway"].is_object(), "absent is unchanged");
    read["properties"]["serviceGateway"] = Value::Null;
    let cleared = cloud.put(&nat, read);
    assert!(cleared["properties"]["serviceGateway"].is_null());
    assert_eq!(cloud.delete(&nat).status, 200);
}

#[test]
fn actions_answer_in_every_known_way() {
    let base_url = "http://h".to_owned();
    let mut cloud = cloud(Options { base_url, lro_ms: 50, ..Options::default() });
    let empty = || json!({"action": "PartialUpdate", "serviceRequests": []});
    cloud.azure.options_mut().gateway_reply = GatewayReply::DoneWithHeaders;
    let answer = services(&mut cloud, empty());
    assert_eq!((answer.status, answer.header("location").is_some()), (200, true));
    cloud.azure.options_mut().gateway_reply = GatewayReply::Accepted;
    let answer = services(&mut cloud, empty());
    assert_eq!(answer.status, 202);
    let poll = answer.header("location").unwrap().strip_prefix("http://h").unwrap().to_owned();
    assert_eq!(cloud.call(Request::new("GET", &poll)).status, 202);
    cloud.now_ms += 50;
    assert_eq!(cloud.call(Request::new("GET", &poll)).status, 200);
    let code = "InternalServerError".to_owned();
    cloud.azure.add_fault(Fault::new(FaultKind::GatewayErrorIn200 { code: code.clone() }));
    cloud.azure.add_fault(Fault::new(FaultKind::GatewayAcceptedThenFails { code }));
    let answer = services(&mut cloud, service("x", json!([])));
    assert_eq!((answer.status, answer.code()), (200, Some("InternalServerError")));
    let answer = services(&mut cloud, service("x", json!([])));
    assert_eq!(answer.status, 202);
    let poll = answer.header("location").unwrap().strip_prefix("http://h").unwrap().to_owned();
    cloud.now_ms += 50;
    let failed = cloud.call(Request::new("GET", &poll));
    assert_eq!((failed.status, failed.body.unwrap()["status"].clone()), (200, json!("Failed")));
    let tables = cloud.azure.gateway(&gateway()).unwrap();
    assert!(tables["services"]["x"].is_null(), "neither took effect");
    let config = sample_cloud_config(
        "http://h",
        &SampleOptions { gateway: SampleGateway::WithDefaultNat, ..Default::default() },
    );
    assert_eq!(config["loadBalancerSku"], "service");
}
