//! Tables and actions of a Service Gateway.

use crate::net;
use arm::body::{locations_update, read_gateway_service, read_locations, services_update};
use model::ResourceId;
use model::gateway::{
    DefaultService, Direction, GatewayService, GatewayServiceUpdate, LocationUpdate,
    LocationsUpdate, ServiceNames, ServicesUpdate, UpdateAction,
};
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::Arc;

const UID: &str = "0f8fad5b-d9cb-469f-a165-70867728950e";

fn service(name: &str, direction: Direction) -> GatewayService {
    GatewayService {
        name: Arc::from(name),
        direction,
        default: DefaultService::No,
        pools: BTreeSet::new(),
        nat_gateway: None,
    }
}

fn names(names: &[&str]) -> ServiceNames {
    Arc::new(names.iter().map(|n| Arc::from(*n)).collect())
}

#[test]
fn services_are_registered_detached_and_removed() {
    let network = Some(ResourceId::new(net("virtualNetworks/vnet1")));
    let pool = net(&format!("loadBalancers/{UID}/backendAddressPools/{UID}"));
    let mut inbound = service(UID, Direction::Inbound);
    inbound.pools = BTreeSet::from([ResourceId::new(&pool)]);
    let mut outbound = service("team-a", Direction::Outbound);
    outbound.nat_gateway = Some(ResourceId::new(net("natGateways/team-a")));
    let put = |service: GatewayService| GatewayServiceUpdate { service, network: network.clone() };
    let update = ServicesUpdate {
        put: vec![
            put(inbound),
            put(outbound),
            put(service("in", Direction::Inbound)),
            put(service("out", Direction::Outbound)),
        ],
        delete: vec![(Arc::from("gone"), Direction::Inbound)],
    };
    let request = |delete: bool, name: &str, properties| {
        let service = json!({"name": name, "properties": properties});
        json!({"isDelete": delete, "service": service})
    };
    assert_eq!(
        services_update(&update),
        json!({"action": "PartialUpdate", "serviceRequests": [
            request(false, UID, json!({"serviceType": "Inbound", "loadBalancerBackendPools": [
                {"id": pool, "name": UID, "properties":
                    {"virtualNetwork": {"id": net("virtualNetworks/vnet1")}}}]})),
            request(false, "team-a", json!({"serviceType": "Outbound",
                "loadBalancerBackendPools": [], "publicNatGatewayId": net("natGateways/team-a")})),
            request(false, "in", json!({"serviceType": "Inbound", "loadBalancerBackendPools": []})),
            request(false, "out", json!({"serviceType": "Outbound",
                "loadBalancerBackendPools": [], "publicNatGatewayId": null})),
            request(true, "gone", json!({"serviceType": "Inbound",
                "loadBalancerBackendPools": []})),
        ]})
    );
}

#[test]
fn locations_say_what_goes_with_empty_lists() {
    let ip = |text: &str| text.parse().unwrap();
    let update = LocationsUpdate {
        action: UpdateAction::PartialUpdate,
        locations: vec![
            LocationUpdate {
                location: ip("10.224.0.5"),
                action: UpdateAction::FullUpdate,
                addresses: vec![(ip("10.244.1.7"), names(&[UID])), (ip("10.244.1.8"), names(&[]))],
            },
            LocationUpdate {
                location: ip("fd00:10:0::6"),
                action: UpdateAction::PartialUpdate,
                addresses: Vec::new(),
            },
        ],
    };
    assert_eq!(
        locations_update(&update),
        json!({"action": "PartialUpdate", "addressLocations": [
            {"addressLocation": "10.224.0.5", "addressUpdateAction": "FullUpdate", "addresses": [
                {"address": "10.244.1.7", "services": [UID]},
                {"address": "10.244.1.8", "services": []}]},
            {"addressLocation": "fd00:10::6", "addressUpdateAction": "PartialUpdate",
                "addresses": []}]})
    );
}

#[test]
fn tables_are_read_with_what_is_not_in_the_model() {
    let found = read_gateway_service(&json!({
        "name": "default-natgw", "id": "i", "etag": "e", "type": "t",
        "properties": {"provisioningState": "Succeeded", "serviceType": "outbound",
            "isDefault": true, "loadBalancerBackendPools": [], "publicNatGatewayId": "/n"}}));
    let want = GatewayService {
        default: DefaultService::Yes,
        nat_gateway: Some(ResourceId::new("/n")),
        ..service("default-natgw", Direction::Outbound)
    };
    assert_eq!(found, Ok(want));
    let odd = read_gateway_service(&json!({"name": "x", "properties": {"serviceType": "?"}}));
    assert_eq!(odd, Ok(service("x", Direction::Unknown)));
    let odd = read_gateway_service(&json!({"properties": {"serviceType": "Inbound"}}));
    insta::assert_snapshot!(odd.unwrap_err(),
        @"cannot read the body of a gateway service: there is no name");
}

/// Otherwise addresses of other clients' services would be taken away, and our own be written again
/// after each read.
#[test]
fn names_in_other_letters_are_the_same_names() {
    let (table, problems) = read_locations(&[json!({"addressLocation": "10.0.0.1", "addresses": [
        {"address": "10.1.0.1", "services": [UID.to_uppercase(), "Team-A"]},
        {"address": "10.1.0.2", "services": ["team-a", "Team-A"]}]})]);
    assert_eq!(problems, []);
    let listed: Vec<&ServiceNames> = table.values().flat_map(|at| at.values()).collect();
    assert_eq!(listed, [&names(&[UID, "team-a"]), &names(&["team-a"])]);
}

#[test]
fn equal_sets_of_services_are_one() {
    let (table, problems) = read_locations(&[
        json!({"addressLocation": "FD00:10:0:0:0:0:0:6", "addresses": [
            {"address": "fd12:3456::a", "services": ["a", "b"]},
            {"address": "fd12:3456::b", "services": ["b", "a"]}, {"address": 4}]}),
        json!({"addressLocation": "10.0.0.1", "addresses": null}),
        json!({}),
    ]);
    let six = &table[&"fd00:10::6".parse().unwrap()];
    let sets: Vec<&ServiceNames> = six.values().collect();
    assert!(Arc::ptr_eq(sets[0], sets[1]));
    assert_eq!(table.len(), 2);
    let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
    assert_eq!(
        problems,
        [
            "cannot read the body of a gateway location: address is 4",
            "cannot read the body of a gateway location: addressLocation is absent"
        ]
    );
}
