//! What holds for every body.

use crate::net;
use arm::body::{
    read_gateway_service, read_load_balancer, read_locations, read_nat_gateway, read_pool_member,
    read_private_link_service, read_public_ip, read_security_group, read_subnet,
    read_virtual_machine, write_load_balancer, write_nat_gateway, write_pool_member,
    write_private_link_service, write_public_ip, write_security_group, write_subnet,
};
use arm::{ArmError, Operation, Pages};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// Any JSON, with keys and words that mean something somewhere.
fn any_json() -> impl Strategy<Value = Value> {
    let words = prop_oneof![
        Just("Tcp"),
        Just("Basic"),
        Just("IPv6"),
        Just("10.0.0.1"),
        Just("*"),
        Just(""),
        Just("80"),
        Just("/subscriptions/s"),
        Just("Succeeded")
    ];
    let keys = prop::sample::select(vec![
        "id",
        "name",
        "properties",
        "sku",
        "tags",
        "zones",
        "location",
        "frontendIPConfigurations",
        "backendAddressPools",
        "loadBalancingRules",
        "probes",
        "outboundRules",
        "inboundNatRules",
        "securityRules",
        "ipConfigurations",
        "loadBalancerBackendAddresses",
        "ipAddress",
        "ipTags",
        "dnsSettings",
        "extendedLocation",
        "subnet",
        "publicIPAddress",
        "addressPrefixes",
        "value",
        "nextLink",
        "status",
        "error",
        "code",
        "details",
        "message",
        "visibility",
        "addresses",
        "networkProfileConfiguration",
        "networkInterfaceConfigurations",
        "virtualMachineProfile",
        "networkProfile",
        "instanceView",
        "statuses",
        "addressLocation",
        "services",
        "x",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        words.prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 5, move |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::Array),
            vec((keys.clone(), inner), 0..6).prop_map(|pairs| {
                Value::Object(pairs.into_iter().map(|(k, v)| (k.to_owned(), v)).collect())
            }),
        ]
    })
}

/// Fields that no codec knows.
fn unknown() -> impl Strategy<Value = Map<String, Value>> {
    let value = prop_oneof![
        Just(json!(1)),
        Just(json!("text")),
        Just(json!({"a": [1, {"b": null}]})),
        Just(json!([])),
        Just(json!(false))
    ];
    vec((prop::sample::select(vec!["new1", "new2", "new3"]), value), 0..3)
        .prop_map(|pairs| pairs.into_iter().map(|(k, v)| (k.to_owned(), v)).collect())
}

/// Puts one set of unknown fields after the other into objects that may have them: resources and
/// elements of collections (those with a name or an id beside their properties), and below their
/// properties.
fn sprinkle(value: &mut Value, fields: &mut impl Iterator<Item = Map<String, Value>>) {
    match value {
        Value::Object(object) => {
            for (_, inner) in object.iter_mut() {
                sprinkle(inner, fields);
            }
            if let Some(Value::Object(properties)) = object.get_mut("properties") {
                properties.extend(fields.next().unwrap_or_default());
                object.extend(fields.next().unwrap_or_default());
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| sprinkle(item, fields)),
        _ => {}
    }
}

fn samples() -> Vec<Value> {
    vec![
        json!({"id": net("loadBalancers/l"), "name": "l", "location": "eastus",
            "sku": {"name": "Standard", "tier": "Regional"}, "tags": {"a": "b"},
            "properties": {"scope": "Public",
            "frontendIPConfigurations": [
                {"name": "a", "properties": {"publicIPAddress": {"id": "/p"}}},
                {"name": "b", "zones": ["1"], "properties": {"subnet": {"id": "/s"},
                    "privateIPAllocationMethod": "Static", "privateIPAddress": "fd00::1",
                    "privateIPAddressVersion": "IPv6"}},
                {"name": "c", "properties": {"publicIPPrefix": {"id": "/x"}}}],
            "backendAddressPools": [
                {"name": "nodes", "properties": {"virtualNetwork": {"id": "/v"},
                    "loadBalancerBackendAddresses": [
                        {"name": "n1", "properties": {"ipAddress": "10.0.0.1"}},
                        {"name": "n2", "properties": {"ipAddress": "10.0.0.2",
                            "adminState": "Up"}}]}},
                {"name": "nics", "properties": {}}],
            "loadBalancingRules": [{"name": "r", "properties": {"protocol": "Udp",
                "frontendPort": 53, "backendPort": 53, "frontendIPConfiguration": {"id": "/f"},
                "backendAddressPool": {"id": "/b"}, "probe": {"id": "/p"},
                "enableFloatingIP": true, "idleTimeoutInMinutes": 4,
                "loadDistribution": "Default", "disableOutboundSnat": false,
                "enableTcpReset": true}}],
            "probes": [{"name": "p", "properties": {"protocol": "Https", "port": 443,
                "requestPath": "/", "intervalInSeconds": 5, "numberOfProbes": 2,
                "probeThreshold": 2}}],
            "outboundRules": [{"name": "o", "properties": {"protocol": "All"}}],
            "inboundNatRules": [{"name": "n", "properties": {"frontendPort": 1}}]}}),
        json!({"id": net("publicIPAddresses/p"), "name": "p", "location": "eastus",
            "sku": {"name": "Standard"}, "zones": ["1", "2"], "properties": {
            "publicIPAddressVersion": "IPv6", "publicIPAllocationMethod": "Static",
            "ipAddress": "2603:1000::2", "publicIPPrefix": {"id": "/x"},
            "ipTags": [{"ipTagType": "RoutingPreference", "tag": "Internet"}],
            "dnsSettings": {"domainNameLabel": "a", "reverseFqdn": "b"}}}),
        json!({"id": net("networkSecurityGroups/g"), "name": "g", "location": "eastus",
            "properties": {"securityRules": [
            {"name": "ssh", "properties": {"access": "Deny", "direction": "Outbound",
                "priority": 100, "protocol": "*", "sourceAddressPrefixes": ["b", "a"],
                "sourcePortRanges": ["1-2"], "destinationAddressPrefix": "*",
                "destinationPortRange": "22"}},
            {"name": "k8s-azure-lb_allow_IPv4_x", "properties": {"access": "Allow",
                "direction": "Inbound", "priority": 500, "protocol": "Tcp",
                "sourceAddressPrefix": "Internet", "sourcePortRange": "*",
                "destinationAddressPrefixes": ["1.1.1.1", "2.2.2.2"],
                "destinationPortRanges": ["443", "80"]}}]}}),
        json!({"id": net("virtualNetworks/v/subnets/s"), "name": "s", "properties": {
            "addressPrefix": "10.0.0.0/16", "privateLinkServiceNetworkPolicies": "Disabled"}}),
        json!({"id": net("privateLinkServices/p"), "name": "p", "location": "eastus",
            "properties": {"loadBalancerFrontendIpConfigurations": [{"id": "/f"}],
            "ipConfigurations": [{"name": "i", "properties": {"subnet": {"id": "/s"},
                "primary": true, "privateIPAllocationMethod": "Static",
                "privateIPAddress": "10.0.0.9", "privateIPAddressVersion": "IPv4"}}],
            "enableProxyProtocol": false, "fqdns": ["a"], "visibility": {"subscriptions": ["*"]},
            "autoApproval": {"subscriptions": ["s"]}}}),
        json!({"id": net("natGateways/n"), "name": "n", "location": "eastus",
            "sku": {"name": "StandardV2"}, "properties": {"serviceGateway": {"id": "/g"},
            "publicIpAddresses": [{"id": "/p"}]}}),
        json!({"id": net("networkInterfaces/n"), "name": "n", "location": "eastus",
            "tags": {"a": "b"}, "properties": {"ipConfigurations": [
            {"name": "c", "properties": {"privateIPAddressVersion": "IPv4",
                "loadBalancerBackendAddressPools": [{"id": "/p"}]}}]}}),
    ]
}

/// Reads and writes; `None` where a body cannot be read.
fn through(body: &Value) -> Option<Value> {
    let id = body.get("id")?.as_str()?;
    let kind = id.rsplit('/').nth(1)?;
    match kind {
        "loadBalancers" => read_load_balancer(body).ok().map(|r| write_load_balancer(&r)),
        "publicIPAddresses" => read_public_ip(body).ok().map(|r| write_public_ip(&r)),
        "networkSecurityGroups" => read_security_group(body).ok().map(|r| write_security_group(&r)),
        "subnets" => read_subnet(body).ok().map(|r| write_subnet(&r)),
        "privateLinkServices" => {
            read_private_link_service(body).ok().map(|r| write_private_link_service(&r))
        }
        "natGateways" => read_nat_gateway(body).ok().map(|r| write_nat_gateway(&r)),
        _ => read_pool_member(body).ok().map(|r| write_pool_member(&r)),
    }
}

/// Absent, null and empty lists are the same at the places that a codec looks at.
fn without_empty(value: Value) -> Value {
    match value {
        Value::Object(object) => Value::Object(
            object
                .into_iter()
                .filter(|(_, v)| !v.is_null() && *v != json!([]))
                .map(|(k, v)| (k, without_empty(v)))
                .collect(),
        ),
        Value::Array(items) => Value::Array(items.into_iter().map(without_empty).collect()),
        other => other,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None,
        ..ProptestConfig::default() })]

    #[test]
    fn unknown_fields_go_through_unharmed(fields in vec(unknown(), 60), which in 0..7usize) {
        let mut body = samples().swap_remove(which);
        sprinkle(&mut body, &mut fields.into_iter());
        let written = through(&body).expect("a sample can be read");
        prop_assert_eq!(without_empty(written.clone()), without_empty(body));
        prop_assert_eq!(through(&written), Some(written));
    }

    #[test]
    fn no_json_makes_anything_panic(body in any_json(), status in prop::sample::select(
        vec![200u16, 201, 202, 204, 404, 409, 429, 500]), which in 0..7usize)
    {
        let _ = read_load_balancer(&body);
        let _ = read_gateway_service(&body);
        let _ = read_locations(std::slice::from_ref(&body));
        let _ = read_virtual_machine(&body);
        let reply = crate::reply(status, body.clone());
        let _ = ArmError::of_reply(&reply);
        let _ = ArmError::of_operation(&reply);
        let answer = crate::answer(status, body.clone());
        let _ = Pages::start(&crate::request(arm::Method::Get)).advance(answer.clone());
        for method in [arm::Method::Put, arm::Method::Post, arm::Method::Delete] {
            let mut operation = Operation::start(&crate::request(method));
            let _ = operation.advance(&answer);
            let _ = operation.advance(&answer);
        }
        // The same inside a body of each kind, so that its reader gets past the id.
        let mut whole = samples().swap_remove(which);
        if let Some(Value::Object(extra)) = body.get("properties") {
            whole["properties"].as_object_mut().unwrap().extend(extra.clone());
        }
        if let Value::Object(extra) = &body {
            for (key, value) in extra.iter().filter(|(k, _)| *k != "id" && *k != "properties") {
                whole.as_object_mut().unwrap().insert(key.clone(), value.clone());
            }
        }
        if let Some(written) = through(&whole) {
            prop_assert_eq!(through(&written), Some(written), "what is written is read the same");
        }
    }
}
