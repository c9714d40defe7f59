//! Dynamic public IPs: an address only while something uses them.

use crate::common::*;
use azure_emulator::{Azure, Fault, FaultKind, Options};
use serde_json::{Value, json};

fn ip(name: &str) -> String {
    net(&format!("publicIPAddresses/{name}"))
}

fn with_method(version: &str, method: &str) -> Value {
    let mut body = pip(version, "Basic");
    body["properties"]["publicIPAllocationMethod"] = json!(method);
    body
}

fn dynamic() -> Value {
    with_method("IPv4", "Dynamic")
}

/// A Basic load balancer with one frontend on a public IP, and a rule for port 80.
fn basic(ip: &str) -> Value {
    let mut body = balancer(ip, vec![rule("http", "front", 80)]);
    body["sku"] = json!({"name": "Basic"});
    body
}

/// A NIC whose only IP configuration has this public IP, or none.
fn nic(ip: Option<&str>) -> Value {
    let mut inside = json!({"subnet": {"id": net("virtualNetworks/vnet/subnets/nodes")}});
    if let Some(ip) = ip {
        inside["publicIPAddress"] = json!({"id": ip});
    }
    json!({"location": "eastus", "properties": {"ipConfigurations":
        [{"name": "c", "properties": inside}]}})
}

impl Cloud {
    fn address(&mut self, id: &str) -> Value {
        self.get(id)["properties"]["ipAddress"].clone()
    }

    /// Long enough for every operation to end.
    fn wait(&mut self) {
        self.now_ms += 1000;
    }
}

/// With the dynamic public IPs `a` and `b`.
fn slow_with_two() -> Cloud {
    let mut cloud = slow();
    cloud.put(&ip("a"), dynamic());
    cloud.put(&ip("b"), dynamic());
    cloud.wait();
    cloud
}

fn slow() -> Cloud {
    Cloud::with(Options { lro_ms: 1000, ..Options::default() })
}

#[test]
fn a_dynamic_address_comes_with_the_first_frontend_and_goes_with_the_last() {
    let mut cloud = Cloud::new();
    let made = cloud.put(&ip("a"), dynamic());
    assert!(made["properties"]["ipAddress"].is_null());
    cloud.put(&lb_id(), basic(&ip("a")));
    let used = cloud.get(&ip("a"));
    assert_eq!(used["properties"]["ipAddress"], "20.0.0.1");
    assert_ne!(used["etag"], made["etag"]);
    let traffic = cloud.azure.traffic("20.0.0.1", "Tcp", 80).unwrap();
    assert_eq!(traffic.rule, "http");
    cloud.put(&ip("a"), dynamic());
    cloud.put(&lb_id(), basic(&ip("a")));
    assert_eq!(cloud.address(&ip("a")), "20.0.0.1", "a write of either leaves it");
    let mut moved = basic(&ip("a"));
    moved["properties"]["frontendIPConfigurations"][0]["name"] = json!("other");
    moved["properties"]["loadBalancingRules"] = json!([rule("http", "other", 80)]);
    cloud.put(&lb_id(), moved);
    assert_eq!(cloud.address(&ip("a")), "20.0.0.1", "it is in use before and after");
    assert_eq!(cloud.delete(&lb_id()).status, 200);
    let free = cloud.get(&ip("a"));
    assert!(free["properties"]["ipAddress"].is_null());
    assert!(free["properties"]["ipConfiguration"].is_null());
    assert!(cloud.azure.traffic("20.0.0.1", "Tcp", 80).is_none());
    cloud.put(&lb_id(), basic(&ip("a")));
    assert_eq!(cloud.address(&ip("a")), "20.0.0.2", "Azure gives another one");
    cloud.put(&ip("b"), dynamic());
    cloud.put(&lb_id(), basic(&ip("b")));
    assert!(cloud.address(&ip("a")).is_null());
    assert_eq!(cloud.address(&ip("b")), "20.0.0.3");
}

#[test]
fn a_dynamic_address_comes_and_goes_when_the_operation_ends() {
    let mut cloud = slow_with_two();
    assert!(cloud.address(&ip("a")).is_null());
    cloud.put(&lb_id(), basic(&ip("a")));
    let taken = cloud.get(&ip("a"));
    assert!(taken["properties"]["ipConfiguration"].is_object());
    assert!(taken["properties"]["ipAddress"].is_null());
    cloud.wait();
    assert_eq!(cloud.address(&ip("a")), "20.0.0.1");
    // The second write supersedes the first, and goes back to what was there before.
    cloud.put(&lb_id(), basic(&ip("b")));
    cloud.put(&lb_id(), basic(&ip("a")));
    cloud.wait();
    assert_eq!(cloud.address(&ip("a")), "20.0.0.1");
    assert!(cloud.address(&ip("b")).is_null());
    // The second write supersedes the first, and says nothing new.
    cloud.put(&lb_id(), basic(&ip("b")));
    cloud.put(&lb_id(), basic(&ip("b")));
    assert_eq!(cloud.address(&ip("a")), "20.0.0.1");
    cloud.wait();
    assert!(cloud.address(&ip("a")).is_null());
    assert_eq!(cloud.address(&ip("b")), "20.0.0.2");
    // A DELETE supersedes a write.
    cloud.put(&lb_id(), basic(&ip("a")));
    assert_eq!(cloud.delete(&lb_id()).status, 202);
    assert_eq!(cloud.address(&ip("b")), "20.0.0.2");
    cloud.wait();
    assert!(cloud.address(&ip("a")).is_null());
    assert!(cloud.address(&ip("b")).is_null());
}

#[test]
fn a_canceled_write_changes_no_dynamic_address() {
    let mut cloud = slow_with_two();
    cloud.put(&lb_id(), basic(&ip("a")));
    cloud.wait();
    let canceled = FaultKind::OperationCanceled { code: "OperationPreempted".to_owned() };
    cloud.azure.add_fault(Fault::new(canceled));
    cloud.put(&lb_id(), basic(&ip("b")));
    cloud.wait();
    assert_eq!(cloud.address(&ip("a")), "20.0.0.1");
    assert!(cloud.address(&ip("b")).is_null());
}

/// What its write would have changed goes back, and not what its users change meanwhile.
#[test]
fn a_canceled_write_of_a_dynamic_public_ip_leaves_its_address_to_its_users() {
    let mut cloud = slow();
    cloud.put(&ip("a"), dynamic());
    cloud.wait();
    let cancel = |cloud: &mut Cloud| {
        cloud.now_ms += 500;
        let canceled = FaultKind::OperationCanceled { code: "OperationPreempted".to_owned() };
        cloud.azure.add_fault(Fault::new(canceled));
        let mut tagged = dynamic();
        tagged["tags"] = json!({"a": "b"});
        cloud.put(&ip("a"), tagged);
        cloud.now_ms += 600;
    };
    cloud.put(&lb_id(), basic(&ip("a")));
    cancel(&mut cloud);
    assert_eq!(cloud.address(&ip("a")), "20.0.0.1", "the load balancer stands");
    cloud.wait();
    let back = cloud.get(&ip("a"));
    assert!(back["tags"]["a"].is_null());
    assert_eq!(back["properties"]["ipAddress"], "20.0.0.1");
    assert_eq!(cloud.delete(&lb_id()).status, 202);
    cancel(&mut cloud);
    assert!(cloud.address(&ip("a")).is_null(), "the load balancer is gone");
    cloud.wait();
    assert!(cloud.address(&ip("a")).is_null());
}

#[test]
fn a_dynamic_address_is_kept_by_making_it_static() {
    let mut cloud = Cloud::new();
    cloud.put(&ip("a"), dynamic());
    cloud.put(&lb_id(), basic(&ip("a")));
    cloud.put(&ip("a"), with_method("IPv4", "Static"));
    assert_eq!(cloud.address(&ip("a")), "20.0.0.1");
    assert_eq!(cloud.delete(&lb_id()).status, 200);
    assert_eq!(cloud.address(&ip("a")), "20.0.0.1", "a static one stays");
    cloud.put(&ip("b"), dynamic());
    let fixed = cloud.put(&ip("b"), with_method("IPv4", "Static"));
    assert_eq!(fixed["properties"]["ipAddress"], "20.0.0.2", "it had none to keep");
    cloud.put(&lb_id(), basic(&ip("b")));
    cloud.put(&ip("b"), dynamic());
    assert_eq!(cloud.address(&ip("b")), "20.0.0.2", "it is in use");
    let freed = cloud.put(&ip("a"), dynamic());
    assert!(freed["properties"]["ipAddress"].is_null());
}

#[test]
fn a_nic_uses_a_public_ip_as_a_frontend_does() {
    let mut cloud = Cloud::new();
    let id = net("networkInterfaces/nic");
    cloud.put(&ip("a"), dynamic());
    cloud.put(&id, nic(Some(&ip("a"))));
    assert_eq!(cloud.address(&ip("a")), "20.0.0.1");
    cloud.put(&id, nic(None));
    assert!(cloud.address(&ip("a")).is_null());
}

#[test]
fn ipv6_and_prefixes_give_dynamic_addresses_as_well() {
    let mut cloud = Cloud::new();
    let six = cloud.put(&ip("six"), with_method("IPv6", "Dynamic"));
    assert!(six["properties"]["ipAddress"].is_null());
    let mut of_prefix = dynamic();
    of_prefix["properties"]["publicIPPrefix"] = json!({"id": net("publicIPPrefixes/prefix")});
    let four = cloud.put(&ip("four"), of_prefix);
    assert!(four["properties"]["ipAddress"].is_null());
    let mut both = basic(&ip("four"));
    let second = json!({"name": "six", "properties": {"publicIPAddress": {"id": ip("six")}}});
    both["properties"]["frontendIPConfigurations"].as_array_mut().unwrap().push(second);
    cloud.put(&lb_id(), both);
    assert_eq!(cloud.address(&ip("four")), "20.99.0.0");
    assert_eq!(cloud.address(&ip("six")), "2603:1000::1");
    assert_eq!(cloud.delete(&lb_id()).status, 200);
    assert!(cloud.address(&ip("four")).is_null());
    assert!(cloud.address(&ip("six")).is_null());
    let mut fixed = pip("IPv4", "Standard");
    fixed["properties"]["publicIPPrefix"] = json!({"id": net("publicIPPrefixes/prefix")});
    cloud.put(&ip("fixed"), fixed);
    assert_eq!(cloud.address(&ip("fixed")), "20.99.0.0", "the prefix has it back");
}

#[test]
fn a_seed_in_place_of_what_is_being_written_decides_who_uses_an_address() {
    let mut cloud = slow_with_two();
    cloud.put(&lb_id(), basic(&ip("a")));
    let mut seeded = basic(&ip("b"));
    seeded["id"] = json!(lb_id());
    cloud.azure.seed(vec![seeded]);
    assert_eq!(cloud.address(&ip("b")), "20.0.0.1");
    cloud.wait();
    assert!(cloud.address(&ip("a")).is_null());
    assert_eq!(cloud.address(&ip("b")), "20.0.0.1");
}

#[test]
fn a_seed_says_which_dynamic_addresses_there_were() {
    let seeded = |name: &str, address: Value| {
        let mut body = dynamic();
        body["id"] = json!(ip(name));
        body["properties"]["ipAddress"] = address;
        body
    };
    let mut user = basic(&ip("used"));
    user["id"] = json!(lb_id());
    let mut later = basic(&ip("bare"));
    later["id"] = json!(net("loadBalancers/later"));
    later["properties"]["loadBalancingRules"] = json!([]);
    let mut cloud = Cloud { azure: Azure::new(Options::default()), now_ms: 1 };
    cloud.azure.seed(vec![
        later,
        user.clone(),
        seeded("used", json!("20.7.0.1")),
        seeded("unused", json!("20.7.0.2")),
        seeded("bare", Value::Null),
        seeded("free", Value::Null),
    ]);
    assert_eq!(cloud.address(&ip("used")), "20.7.0.1");
    assert_eq!(cloud.address(&ip("unused")), "20.7.0.2", "its user may be out of sight");
    assert_eq!(cloud.address(&ip("bare")), "20.0.0.1", "a frontend uses it");
    assert!(cloud.address(&ip("free")).is_null());
    let mut tagged = dynamic();
    tagged["tags"] = json!({"a": "b"});
    cloud.put(&ip("unused"), tagged);
    assert_eq!(cloud.address(&ip("unused")), "20.7.0.2");
    user["properties"]["frontendIPConfigurations"] = json!([]);
    user["properties"]["loadBalancingRules"] = json!([]);
    cloud.azure.seed(vec![user]);
    assert!(cloud.address(&ip("used")).is_null(), "its user has let it go");
    assert_eq!(cloud.delete(&net("loadBalancers/later")).status, 200);
    assert!(cloud.address(&ip("bare")).is_null());
}
