//! Bodies from Azure enter the World.

use crate::policy;
use arm::Item;
use model::azure::{MemberState, Provisioning};
use model::gateway::{
    DefaultService, Direction, GatewayService, GatewayServiceUpdate, LocationUpdate,
    LocationsUpdate, ServicesUpdate, UpdateAction,
};
use model::world::{Azure, Fact, Need};
use model::{Group, Policy, ResourceId};
use observe::Applied;
use observe::azure::{
    Gathering, Memo, apply_list, apply_locations_update, apply_missing, apply_resource,
    apply_services_update, apply_unreadable, remove,
};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;

fn rules() -> Policy {
    policy(json!({}))
}

fn balancer(name: &str, tag: &str) -> Value {
    json!({"id": rules().balancer_id(name).as_str(), "location": "eastus",
        "sku": {"name": "Standard"}, "tags": {"t": tag}})
}

fn list(azure: &mut Azure, need: &Need, items: &[Value]) -> Applied {
    let read = apply_list(azure, &rules(), need, items);
    assert_eq!(read.problems, []);
    read.applied
}

#[test]
fn a_list_replaces_and_what_is_as_it_was_stays_in_place() {
    let mut azure = Azure::default();
    let need = Need::Balancers;
    let (a, b) = (rules().balancer_id("a"), rules().balancer_id("b"));
    list(&mut azure, &need, &[balancer("a", "1"), balancer("b", "1")]);
    let before = azure.balancers.known().unwrap()[&a].clone();
    let again = list(&mut azure, &need, &[balancer("b", "1"), balancer("A", "1")]);
    assert_eq!(again, Applied::Unchanged, "ids compare ignoring case, lists have no order");
    assert_eq!(list(&mut azure, &need, &[balancer("a", "1")]), Applied::Changed);
    let held = azure.balancers.known().unwrap();
    assert!(Arc::ptr_eq(&held[&a], &before));
    assert!(!held.contains_key(&b));
}

/// A page as the wire brings it: its items are texts.
fn page(items: &[Value]) -> Vec<Item> {
    let texts = items.iter().map(ToString::to_string).map(Arc::new);
    texts.map(|text| Item::Text(Arc::clone(&text), 0..text.len())).collect()
}

/// Reads a list again, with what is remembered of it.
fn list_again(azure: &mut Azure, need: &Need, items: &[Value], memo: &mut Memo) -> Applied {
    let mut gathering = Gathering::again(std::mem::take(memo));
    gathering.take(azure, &rules(), need, &page(items));
    *memo = gathering.memo();
    gathering.finish(azure, need).applied
}

#[test]
fn an_item_that_says_the_same_again_counts_for_what_it_says() {
    let (mut azure, mut memo) = (Azure::default(), Memo::default());
    let need = Need::Balancers;
    let both = [balancer("a", "1"), balancer("b", "1")];
    assert_eq!(list_again(&mut azure, &need, &both, &mut memo), Applied::Changed);
    let first = azure.clone();
    assert_eq!(list_again(&mut azure, &need, &both, &mut memo), Applied::Unchanged);
    assert_eq!(list_again(&mut azure, &need, &[balancer("b", "1")], &mut memo), Applied::Changed);
    assert_eq!(azure.balancers.known().unwrap().len(), 1);
    assert_eq!(list_again(&mut azure, &need, &both, &mut memo), Applied::Changed);
    assert_eq!(azure, first);
    // Something else is held by now, and the list still says what it said.
    let id = rules().balancer_id("a");
    apply_resource(&mut azure, &rules(), &id, &balancer("a", "2")).unwrap();
    assert_ne!(azure, first);
    assert_eq!(list_again(&mut azure, &need, &both, &mut memo), Applied::Changed);
    assert_eq!(azure, first);
}

#[test]
fn an_item_that_cannot_be_read_is_named_and_what_was_known_stays() {
    let mut azure = Azure::default();
    list(&mut azure, &Need::Balancers, &[balancer("a", "1")]);
    let mut broken = balancer("a", "2");
    broken["properties"] = json!({"probes": [{}]});
    let read =
        apply_list(&mut azure, &rules(), &Need::Balancers, &[broken, balancer("b", "1"), json!(5)]);
    assert_eq!((read.applied, read.problems.len()), (Applied::Changed, 2));
    let held = azure.balancers.known().unwrap();
    let tag = |name: &str| held[&rules().balancer_id(name)].tags.as_ref().unwrap()["t"].clone();
    assert_eq!((&*tag("a"), &*tag("b")), ("1", "1"));
}

#[test]
fn one_resource_takes_its_place() {
    let mut azure = Azure::default();
    let rules = rules();
    let id = rules.balancer_id("a");
    let mut put = |item: &Value| apply_resource(&mut azure, &rules, &id, item).unwrap();
    assert_eq!(put(&balancer("a", "1")), Applied::Unchanged, "one is no list");
    list(&mut azure, &Need::Balancers, &[]);
    let mut put = |item: &Value| apply_resource(&mut azure, &rules, &id, item).unwrap();
    assert_eq!(put(&balancer("a", "1")), Applied::Changed);
    assert_eq!(put(&balancer("a", "1")), Applied::Unchanged);
    assert_eq!(put(&json!({"properties": {"provisioningState": "Failed"}})), Applied::Changed);
    let held = &azure.balancers.known().unwrap()[&id];
    assert_eq!((&held.id, held.provisioning), (&id, Provisioning::Failed));
    assert!(apply_resource(&mut azure, &rules, &id, &json!([])).is_err());
    let group = Group::new("other");
    let elsewhere = rules.network_id(&group, "loadBalancers", "a");
    let other = apply_resource(&mut azure, &rules, &elsewhere, &balancer("a", "1"));
    assert_eq!(other, Ok(Applied::Unchanged));
    assert_eq!(remove(&mut azure, &id), Applied::Changed);
    assert_eq!(remove(&mut azure, &id), Applied::Unchanged);
}

#[test]
fn every_kind_of_resource_has_its_place() {
    let rules = rules();
    let mut azure = Azure::default();
    let set = ResourceId::of("sub", &rules.group, "Microsoft.Compute/virtualMachineScaleSets", "s");
    let machine = ResourceId::of("sub", &rules.group, "Microsoft.Compute/virtualMachines", "v");
    let table = [
        (Need::Balancers, rules.balancer_id("x")),
        (Need::PublicIps(rules.group.clone()), rules.public_ip_id(&rules.group, "x")),
        (
            Need::PrivateLinks(rules.group.clone()),
            rules.network_id(&rules.group, "privateLinkServices", "x"),
        ),
        (Need::NatGateways, rules.network_id(&rules.group, "natGateways", "x")),
        (Need::NetworkInterfaces, rules.network_id(&rules.group, "networkInterfaces", "x")),
        (Need::ScaleSets, set.clone()),
        (Need::ScaleSetVms(set.clone()), set.child("virtualMachines", "0")),
        (Need::VirtualMachines, machine),
        (Need::SecurityGroup, rules.security_group_id()),
        (Need::Subnet(rules.subnet_id("nodes")), rules.subnet_id("nodes")),
    ];
    for (need, id) in &table {
        assert_eq!(apply_missing(&mut azure, need), Applied::Changed, "{need:?}");
        let put = apply_resource(&mut azure, &rules, id, &json!({"location": "eastus"}));
        assert_eq!(put, Ok(Applied::Changed), "{need:?}");
        assert_eq!(remove(&mut azure, id), Applied::Changed, "{need:?}");
        assert_eq!(apply_missing(&mut azure, need), Applied::Unchanged, "{need:?}");
        let kept = azure.clone();
        assert_eq!(apply_unreadable(&mut azure, need, "forbidden"), Applied::Unchanged);
        assert_eq!(azure, kept, "{need:?}: what was read before is kept");
        let mut blind = Azure::default();
        assert_eq!(apply_unreadable(&mut blind, need, "forbidden"), Applied::Changed);
        assert_eq!(apply_unreadable(&mut blind, need, "forbidden"), Applied::Unchanged);
        let body = json!({"id": id.as_str(), "location": "eastus"});
        assert_eq!(
            list(&mut azure, need, std::slice::from_ref(&body)),
            Applied::Changed,
            "{need:?}"
        );
        assert_eq!(list(&mut azure, need, &[body]), Applied::Unchanged, "{need:?}");
    }
}

#[test]
fn a_group_that_cannot_be_read_is_unreadable_until_it_is_known() {
    let mut azure = Azure::default();
    let read = apply_list(&mut azure, &rules(), &Need::SecurityGroup, &[json!({"id": 5.5})]);
    assert_eq!(read.problems.len(), 1);
    assert!(matches!(&azure.security_group, Fact::Unreadable(why) if why.contains("no id")));
}

#[test]
fn an_instance_keeps_what_an_answer_leaves_out() {
    let rules = rules();
    let set = ResourceId::of("sub", &rules.group, "Microsoft.Compute/virtualMachineScaleSets", "s");
    let id = set.child("virtualMachines", "0");
    let mut azure = Azure::default();
    let mut body = json!({"id": id.as_str(), "location": "eastus", "properties": {
        "osProfile": {"computerName": "n0"},
        "instanceView": {"statuses": [{"code": "PowerState/running"}]}}});
    let need = Need::ScaleSetVms(set.clone());
    list(&mut azure, &need, std::slice::from_ref(&body));
    body["properties"] = json!({"provisioningState": "Updating"});
    apply_resource(&mut azure, &rules, &id, &body).unwrap();
    let held = |azure: &Azure| {
        let vm = &azure.scale_set_vms[&set].known().unwrap()[&id];
        (vm.host.clone(), vm.state)
    };
    assert_eq!(held(&azure), (Some("n0".into()), MemberState::Usable));
    body["properties"] = json!({"provisioningState": "Deleting"});
    apply_resource(&mut azure, &rules, &id, &body).unwrap();
    assert_eq!(held(&azure), (Some("n0".into()), MemberState::Unusable));
}

#[test]
fn zones_are_those_of_the_region() {
    let mut azure = Azure::default();
    let mapping = |location: &str, zones: Value| json!({"location": location, "zones": zones});
    let provider = json!({"resourceTypes": [
        {"resourceType": "disks", "zoneMappings": [mapping("East US", json!(["9"]))]},
        {"resourceType": "virtualMachines", "zoneMappings": [
            mapping("West US", json!(["7"])), mapping("East US", json!(["3", "1", "2"]))]}]});
    list(&mut azure, &Need::Zones, &[provider]);
    let zones: Vec<&str> = azure.zones.known().unwrap().iter().map(AsRef::as_ref).collect();
    assert_eq!(zones, ["3", "1", "2"]);
    list(&mut azure, &Need::Zones, &[json!({})]);
    assert_eq!(azure.zones, Fact::Known(Vec::new()));
}

fn gateway_service(name: &str) -> GatewayService {
    GatewayService {
        name: Arc::from(name),
        direction: Direction::Inbound,
        default: DefaultService::No,
        pools: BTreeSet::new(),
        nat_gateway: None,
    }
}

#[test]
fn gateway_services_follow_their_updates() {
    let mut azure = Azure::default();
    let put = |name: &str| GatewayServiceUpdate { service: gateway_service(name), network: None };
    let update =
        ServicesUpdate { put: vec![put("B")], delete: vec![(Arc::from("A"), Direction::Inbound)] };
    assert_eq!(apply_services_update(&mut azure, &update), Applied::Unchanged, "not read yet");
    let entry = json!({"name": "a", "properties": {"serviceType": "Inbound"}});
    list(&mut azure, &Need::GatewayServices, &[entry]);
    assert_eq!(apply_services_update(&mut azure, &update), Applied::Changed);
    assert_eq!(apply_services_update(&mut azure, &update), Applied::Unchanged);
    let names: Vec<&str> =
        azure.gateway_services.known().unwrap().keys().map(AsRef::as_ref).collect();
    assert_eq!(names, ["b"]);
}

#[test]
fn gateway_locations_follow_their_updates() {
    let mut azure = Azure::default();
    let location = |ip: &str, addresses: &[&str]| {
        let entries: Vec<Value> =
            addresses.iter().map(|a| json!({"address": a, "services": ["s"]})).collect();
        json!({"addressLocation": ip, "addresses": entries})
    };
    list(
        &mut azure,
        &Need::GatewayLocations,
        &[
            location("10.0.0.1", &["10.1.0.1", "10.1.0.2"]),
            location("10.0.0.2", &["10.2.0.1"]),
            location("10.0.0.3", &["10.3.0.1"]),
        ],
    );
    let change = |ip: &str, action, addresses: &[(&str, &[&str])]| LocationUpdate {
        location: ip.parse().unwrap(),
        action,
        addresses: addresses
            .iter()
            .map(|(a, s)| (a.parse().unwrap(), Arc::new(s.iter().map(|n| Arc::from(*n)).collect())))
            .collect(),
    };
    let update = LocationsUpdate {
        action: UpdateAction::PartialUpdate,
        locations: vec![
            change(
                "10.0.0.1",
                UpdateAction::PartialUpdate,
                &[("10.1.0.1", &[]), ("10.1.0.3", &["t"])],
            ),
            change("10.0.0.2", UpdateAction::FullUpdate, &[("10.2.0.9", &["t"])]),
            change("10.0.0.3", UpdateAction::PartialUpdate, &[]),
        ],
    };
    assert_eq!(apply_locations_update(&mut azure, &update), Applied::Changed);
    assert_eq!(apply_locations_update(&mut azure, &update), Applied::Unchanged);
    let held = azure.gateway_locations.known().unwrap();
    let lines: Vec<String> = held
        .iter()
        .flat_map(|(l, t)| t.iter().map(move |(a, s)| format!("{l} {a} {s:?}")))
        .collect();
    assert_eq!(
        lines,
        [r#"10.0.0.1 10.1.0.2 {"s"}"#, r#"10.0.0.1 10.1.0.3 {"t"}"#, r#"10.0.0.2 10.2.0.9 {"t"}"#]
    );
    apply_missing(&mut azure, &Need::GatewayLocations);
    assert!(matches!(azure.gateway_locations, Fact::Unreadable(_)));
}
