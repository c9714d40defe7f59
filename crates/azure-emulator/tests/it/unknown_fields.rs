//! What the emulator does not know comes back unharmed: members of the published contract that no
//! rule of it looks at, and members of no contract that the service showed first. What a client
//! makes up is refused.

use crate::common::*;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

fn anything() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[a-zA-Z0-9 /äß]{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("x[a-z]{1,6}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn unknown() -> impl Strategy<Value = Map<String, Value>> {
    let fields = prop::collection::btree_map("future[A-Z][a-z]{1,6}", anything(), 1..4);
    fields.prop_map(|map| map.into_iter().collect())
}

/// Adds fields to every object with properties, and to the properties.
fn sprinkle(value: &mut Value, fields: &Map<String, Value>) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| sprinkle(item, fields)),
        Value::Object(map) => {
            let resource = map.contains_key("properties");
            map.iter_mut().for_each(|(_, inner)| sprinkle(inner, fields));
            if resource {
                map["properties"].as_object_mut().unwrap().extend(fields.clone());
                map.extend(fields.clone());
            }
        }
        _ => {}
    }
}

/// Whether all of `sent` is in `got`.
fn contains(got: &Value, sent: &Value) -> bool {
    match (got, sent) {
        (Value::Object(got), Value::Object(sent)) => {
            sent.iter().all(|(key, value)| got.get(key).is_some_and(|found| contains(found, value)))
        }
        (Value::Array(got), Value::Array(sent)) => {
            got.len() == sent.len() && got.iter().zip(sent).all(|(got, sent)| contains(got, sent))
        }
        _ => got == sent,
    }
}

fn bodies(cloud: &mut Cloud) -> Vec<(String, Value)> {
    let front = cloud.pip("front");
    let subnet = net("virtualNetworks/vnet/subnets/nodes");
    let mut lb = balancer(&front, vec![rule("r", "front", 80)]);
    lb["properties"]["probes"] =
        json!([{"name": "p", "properties": {"protocol": "Tcp", "port": 80}}]);
    lb["properties"]["backendAddressPools"][0]["properties"] = json!({
        "virtualNetwork": {"id": net("virtualNetworks/vnet")},
        "loadBalancerBackendAddresses": [
            {"name": "n", "properties": {"ipAddress": "10.224.0.4"}}]});
    let rules = json!([{"name": "r", "properties": {"access": "Deny", "direction": "Inbound",
        "protocol": "*", "priority": 100, "sourceAddressPrefix": "*", "sourcePortRange": "*",
        "destinationAddressPrefix": "*", "destinationPortRange": "*"}}]);
    vec![
        (lb_id(), lb),
        (net("publicIPAddresses/x"), pip("IPv4", "Standard")),
        (net("networkSecurityGroups/x"), json!({"properties": {"securityRules": rules}})),
        (
            net("routeTables/x"),
            json!({"properties": {"routes": [
                {"name": "r", "properties": {"nextHopType": "Internet"}}]}}),
        ),
        (net("natGateways/x"), json!({"sku": {"name": "Standard"}, "properties": {}})),
        (
            format!("{}/x", net("virtualNetworks/vnet/subnets")),
            json!({"properties": {"addressPrefix": "10.230.0.0/24"}}),
        ),
        (
            net("networkInterfaces/x"),
            json!({"properties": {"ipConfigurations": [
            {"name": "c", "properties": {"subnet": {"id": subnet}}}]}}),
        ),
        (
            net("virtualNetworks/x"),
            json!({"properties": {"addressSpace":
            {"addressPrefixes": ["10.0.0.0/8"]}, "subnets": [
                {"name": "s", "properties": {"addressPrefix": "10.0.0.0/24"}}]}}),
        ),
        (compute("availabilitySets/x"), json!({"properties": {}})),
        (compute("virtualMachines/x"), json!({"properties": {}})),
        (net("somethingNew/x"), json!({"properties": {"a": [1, null]}})),
    ]
}

/// Members of the contract that no rule of the emulator looks at.
#[test]
fn members_of_the_contract_survive() {
    let mut cloud = Cloud::new();
    let mut all = bodies(&mut cloud);
    let set = |body: &mut Value, at: &str, value: Value| {
        *body.pointer_mut(at).unwrap() = value;
    };
    for (id, body) in &mut all {
        body["tags"] = json!({"a": "b"});
        match id.rsplit('/').nth(1).unwrap() {
            "loadBalancers" => {
                body["extendedLocation"] = json!({"name": "edge", "type": "EdgeZone"});
                for (at, member, value) in [
                    ("/properties", "scope", json!("Public")),
                    (
                        "/properties/loadBalancingRules/0/properties",
                        "enableConnectionTracking",
                        json!(true),
                    ),
                    (
                        "/properties/probes/0/properties",
                        "noHealthyBackendsBehavior",
                        json!("AllProbedUp"),
                    ),
                    (
                        "/properties/backendAddressPools/0/properties",
                        "drainPeriodInSeconds",
                        json!(30),
                    ),
                ] {
                    let mut inside = body.pointer(at).unwrap().clone();
                    inside[member] = value;
                    set(body, at, inside);
                }
            }
            "publicIPAddresses" => {
                body["properties"]["deleteOption"] = json!("Detach");
                body["properties"]["ddosSettings"] = json!({"protectionMode": "Enabled"});
            }
            "networkSecurityGroups" => {
                body["properties"]["flushConnection"] = json!(true);
                body["properties"]["securityRules"][0]["properties"]["description"] = json!("why");
            }
            "subnets" => {
                body.as_object_mut().unwrap().remove("tags");
                body["properties"]["defaultOutboundAccess"] = json!(false);
            }
            "networkInterfaces" => body["properties"]["disableTcpStateTracking"] = json!(true),
            "virtualNetworks" => body["properties"]["flowTimeoutInMinutes"] = json!(10),
            _ => {}
        }
    }
    for (id, body) in all {
        cloud.put(&id, body.clone());
        let first = cloud.get(&id);
        assert!(contains(&first, &body), "{id}: sent {body}, got {first}");
        cloud.put(&id, first);
        assert!(contains(&cloud.get(&id), &body), "{id}: lost by writing back what was read");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn unknown_fields_survive(fields in unknown()) {
        let mut cloud = Cloud::new();
        for (id, mut body) in bodies(&mut cloud) {
            cloud.put(&id, body.clone());
            sprinkle(&mut body, &fields);
            let made_up = cloud.try_put(&id, body.clone());
            prop_assert_eq!(made_up.status == 400, !id.contains("somethingNew"), "{}", id);
            // The service shows them: it is ahead of its published contract.
            let mut seeded = body.clone();
            seeded["id"] = json!(id);
            seeded["location"] = json!("eastus");
            cloud.post("/_/seed", json!([seeded]));
            let first = cloud.get(&id);
            prop_assert!(contains(&first, &body), "{id}: seeded {body}, got {first}");
            cloud.put(&id, first);
            let second = cloud.get(&id);
            prop_assert!(contains(&second, &body), "{id}: lost by writing back what was read");
        }
    }

    #[test]
    fn nonsense_is_refused_or_kept_and_never_a_panic(
        nonsense in anything(),
        at in any::<prop::sample::Index>(),
    ) {
        let mut cloud = Cloud::new();
        for (id, mut body) in bodies(&mut cloud) {
            let at = at.index(count(&body).max(1));
            put_at(&mut body, &nonsense, &mut (at + 1));
            let answer = cloud.try_put(&id, body.clone());
            prop_assert!(matches!(answer.status, 200..500), "{id}: {body}: {answer:?}");
            cloud.call(azure_emulator::Request::new("PATCH", &id).with_body(nonsense.clone()));
            cloud.call(azure_emulator::Request::new("POST", &id).with_body(nonsense.clone()));
            cloud.delete(&id);
        }
        cloud.post("/_/seed", json!([{"id": lb_id(), "properties": nonsense}]));
        cloud.get("/_/state");
    }
}

/// How many values there are below this one.
fn count(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.iter().map(|item| 1 + count(item)).sum(),
        Value::Object(map) => map.values().map(|item| 1 + count(item)).sum(),
        _ => 0,
    }
}

/// Replaces the nth value below this one.
fn put_at(value: &mut Value, nonsense: &Value, left: &mut usize) {
    let inner: Vec<&mut Value> = match value {
        Value::Array(items) => items.iter_mut().collect(),
        Value::Object(map) => map.iter_mut().map(|(_, item)| item).collect(),
        _ => return,
    };
    for item in inner {
        if *left == 0 {
            return;
        }
        *left -= 1;
        if *left == 0 {
            *item = nonsense.clone();
        } else {
            put_at(item, nonsense, left);
        }
    }
}
