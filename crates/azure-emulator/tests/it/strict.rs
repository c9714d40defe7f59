//! What Azure refuses for its form: each with Azure's status and code.

use crate::common::*;
use azure_emulator::{Options, Request, Switch};
use serde_json::{Value, json};

/// A body and what is changed in it: a JSON pointer to the object, the member, its value.
fn with(mut body: Value, at: &str, member: &str, value: Value) -> Value {
    body.pointer_mut(at).unwrap()[member] = value;
    body
}

impl Cloud {
    /// Asserts status, code, and a part of the message or of the detail's.
    fn is_refused(&mut self, id: &str, body: Value, status: u16, code: &str, part: &str) {
        let before = self.azure.resource(id.split('?').next().unwrap());
        let answer = self.try_put(id, body.clone());
        assert_eq!((answer.status, answer.code()), (status, Some(code)), "{body} {answer:?}");
        let text = answer.body.unwrap()["error"].to_string();
        assert!(text.contains(part), "{text}");
        assert_eq!(self.azure.resource(id.split('?').next().unwrap()), before);
    }
}

fn plain_balancer(cloud: &mut Cloud) -> Value {
    let front = cloud.pip("front");
    let mut body = balancer(&front, vec![rule("r", "front", 80)]);
    body["properties"]["probes"] =
        json!([{"name": "p", "properties": {"protocol": "Tcp", "port": 80}}]);
    body
}

#[test]
fn members_that_the_contract_does_not_have() {
    let mut cloud = Cloud::new();
    let body = plain_balancer(&mut cloud);
    let format = "InvalidRequestFormat";
    for (at, member, part) in [
        ("/properties", "loadBalancingRulez", "'loadBalancingRulez' on object of type"),
        ("/properties/loadBalancingRules/0/properties", "frontendport", "'frontendport' on"),
        ("/properties/loadBalancingRules/0", "sku", "Path 'properties.loadBalancingRules[0].sku'"),
        ("/properties/probes/0/properties", "threshold", "properties.probes[0].properties"),
        ("/sku", "size", "'size' on object of type 'LoadBalancerSku'"),
        ("", "plan", "'plan' on object of type 'LoadBalancer'"),
    ] {
        let wrong = with(body.clone(), at, member, json!({}));
        cloud.is_refused(&lb_id(), wrong.clone(), 400, format, part);
        cloud.is_refused(&lb_id(), wrong, 400, format, "InvalidJson");
    }
    // Resource Manager reads the outermost members first.
    let wrong = with(body.clone(), "", "proprties", json!({}));
    let part = "on object of type 'ResourceDefinition'";
    cloud.is_refused(&lb_id(), wrong, 400, "InvalidRequestContent", part);
    // Microsoft.Compute has a code of its own.
    let set = compute("virtualMachineScaleSets/vmss");
    let wrong = with(cloud.get(&set), "/properties", "capacityy", json!(1));
    cloud.is_refused(&set, wrong, 400, "BadRequest", "Could not find member 'capacityy'");
    // Elements, patches and actions have contracts, too.
    cloud.put(&lb_id(), body);
    let pool = format!("{}/backendAddressPools/pool", lb_id());
    let wrong = json!({"properties": {"backendAddresses": []}});
    cloud.is_refused(&pool, wrong, 400, format, "'backendAddresses' on object of type");
    let patch = Request::new("PATCH", &lb_id()).with_body(json!({"properties": {}}));
    assert_eq!(cloud.call(patch).code(), Some(format));
    let moved = cloud.post(&format!("{}/migrateToIpBased", lb_id()), json!({"pool": ["pool"]}));
    assert_eq!((moved.status, moved.code()), (400, Some(format)));
}

#[test]
fn values_of_another_type() {
    let mut cloud = Cloud::new();
    let body = plain_balancer(&mut cloud);
    let rule = "/properties/loadBalancingRules/0/properties";
    for (at, member, value, part) in [
        (rule, "frontendPort", json!("80"), "to type 'System.Int32'"),
        (rule, "frontendPort", json!(80.5), "to type 'System.Int32'"),
        (rule, "enableFloatingIP", json!("yes"), "to type 'System.Boolean'"),
        (rule, "protocol", json!("Sctp"), "\\\"Sctp\\\" to type 'TransportProtocol'"),
        (rule, "loadDistribution", json!("Random"), "to type 'LoadDistribution'"),
        (rule, "frontendIPConfiguration", json!("front"), "to type 'SubResource'"),
        ("/properties", "probes", json!({}), "to type 'List'"),
        ("/properties", "scope", json!("Everywhere"), "to type 'LoadBalancerScope'"),
        ("/sku", "name", json!("Premium"), "to type 'LoadBalancerSkuName'"),
        ("", "tags", json!({"a": 1}), "Path 'tags.a'"),
        ("", "location", json!(1), "to type 'System.String'"),
    ] {
        let wrong = with(body.clone(), at, member, value);
        cloud.is_refused(&lb_id(), wrong, 400, "InvalidRequestFormat", part);
    }
    let wrong = with(body.clone(), rule, "protocol", Value::Null);
    let part = "Required property 'protocol' not found in JSON";
    cloud.is_refused(&lb_id(), wrong, 400, "InvalidRequestFormat", part);
    cloud.put(&lb_id(), with(body, rule, "probe", Value::Null));
}

#[test]
fn what_only_the_service_writes_is_ignored() {
    let mut cloud = Cloud::new();
    let body = plain_balancer(&mut cloud);
    let made = cloud.put(&lb_id(), body.clone());
    let mut echoed = made.clone();
    echoed["etag"] = json!("W/\"other\"");
    echoed["type"] = json!("Microsoft.Network/other");
    echoed["properties"]["resourceGuid"] = json!("other");
    echoed["properties"]["provisioningState"] = json!("Failed");
    echoed["properties"]["frontendIPConfigurations"][0]["properties"]["inboundNatRules"] =
        json!([{"id": "/x"}]);
    let shown = cloud.put(&lb_id(), echoed);
    assert_eq!(shown["type"], made["type"]);
    assert_eq!(shown["properties"]["resourceGuid"], made["properties"]["resourceGuid"]);
    assert_eq!(shown["properties"]["provisioningState"], "Succeeded");
    let front = &shown["properties"]["frontendIPConfigurations"][0]["properties"];
    assert!(front["inboundNatRules"].is_null());
    // What stands of it stays where a body leaves it out.
    let vm = compute("virtualMachineScaleSets/vmss/virtualMachines/0");
    let zones = cloud.get(&vm)["zones"].clone();
    let shown = cloud.put(&vm, json!({"zones": ["2"], "properties": {}}));
    assert_eq!(shown["zones"], zones);
}

#[test]
fn api_versions() {
    let mut cloud = Cloud::with(Options { api_version: Switch::On, ..Options::default() });
    let get = |cloud: &mut Cloud, path: &str| {
        let answer = cloud.call(Request::new("GET", path));
        (answer.status, answer.code().map(str::to_owned))
    };
    let missing = (400, Some("MissingApiVersionParameter".to_owned()));
    let other = (400, Some("NoRegisteredProviderFound".to_owned()));
    let (vnet, set) = (net("virtualNetworks/vnet"), compute("virtualMachineScaleSets/vmss"));
    assert_eq!(get(&mut cloud, &vnet), missing);
    assert_eq!(get(&mut cloud, &format!("{vnet}?api-version=")), missing);
    assert_eq!(get(&mut cloud, &format!("{vnet}?api-version=2025-04-01")), other);
    assert_eq!(get(&mut cloud, &format!("{set}?api-version=2025-05-01")), other);
    assert_eq!(get(&mut cloud, &format!("{vnet}?api-version=latest")), other);
    for path in [
        format!("{vnet}?api-version=2025-05-01"),
        format!("{vnet}?API-Version=2024-05-01"),
        format!("{set}?api-version=2025-04-01"),
        format!("{set}/virtualMachines/0/networkInterfaces?api-version=2025-05-01"),
        format!("{GROUP}?api-version=2021-04-01"),
    ] {
        assert_eq!(get(&mut cloud, &path), (200, None), "{path}");
    }
}

#[test]
fn a_body_that_is_another_resource() {
    let mut cloud = Cloud::new();
    let id = net("publicIPAddresses/a");
    let other = with(pip("IPv4", "Standard"), "", "id", json!(net("publicIPAddresses/b")));
    cloud.is_refused(&id, other, 400, "MismatchingResourceId", "publicIPAddresses/b");
    let other = with(pip("IPv4", "Standard"), "", "name", json!("b"));
    cloud.is_refused(&id, other, 400, "MismatchingResourceName", "'b' did not match");
    let same = with(pip("IPv4", "Standard"), "", "id", json!(id.to_uppercase()));
    cloud.put(&id, with(same, "", "name", json!("A")));
}

#[test]
fn names_locations_zones_and_tags() {
    let mut cloud = Cloud::new();
    let body = pip("IPv4", "Standard");
    for name in ["a".repeat(81), "ends-".to_owned(), "-starts".to_owned(), "a+b".to_owned()] {
        let id = net(&format!("publicIPAddresses/{name}"));
        cloud.is_refused(&id, body.clone(), 400, "InvalidResourceName", &name);
    }
    cloud.put(&net(&format!("publicIPAddresses/{}", "a".repeat(80))), body.clone());
    let id = net("publicIPAddresses/a");
    let tags = |count: usize| -> Value {
        (0..count).map(|n| (format!("t{n}"), json!("x"))).collect::<serde_json::Map<_, _>>().into()
    };
    for (member, value, code) in [
        ("location", json!("atlantis"), "LocationNotAvailableForResourceType"),
        ("location", json!(""), "LocationRequired"),
        ("zones", json!(["9"]), "AvailabilityZoneNotSupported"),
        ("tags", tags(51), "TagCountLimitExceeded"),
        ("tags", json!({"a/b": "x"}), "InvalidTagNameCharacters"),
        ("tags", json!({"a".repeat(513): "x"}), "InvalidTagNameLength"),
        ("tags", json!({"a": "x".repeat(257)}), "InvalidTagValueLength"),
    ] {
        cloud.is_refused(&id, with(body.clone(), "", member, value), 400, code, "");
    }
    let mut zonal = with(body.clone(), "", "zones", json!(["1", "2"]));
    zonal = with(zonal, "", "tags", tags(50));
    zonal["location"] = json!("East US");
    cloud.put(&id, zonal.clone());
    let code = "ResourceAvailabilityZonesCannotBeModified";
    for zones in [json!(["1"]), json!([]), Value::Null] {
        cloud.is_refused(&id, with(zonal.clone(), "", "zones", zones), 400, code, "1, 2");
    }
    let elsewhere = with(zonal.clone(), "", "location", json!("westeurope"));
    cloud.is_refused(&id, elsewhere, 409, "InvalidResourceLocation", "westeurope");
    zonal["zones"] = json!(["2", "1"]);
    cloud.put(&id, zonal);
    let front = cloud.pip("front");
    let mut lb = balancer(&front, vec![]);
    lb["properties"]["backendAddressPools"] = json!([{"name": "ends-"}]);
    cloud.is_refused(&lb_id(), lb, 400, "InvalidResourceName", "ends-");
}

#[test]
fn a_put_without_a_sku_asks_for_basic() {
    let mut cloud = Cloud::new();
    let body = plain_balancer(&mut cloud);
    cloud.put(&lb_id(), body.clone());
    let code = "SkuCannotBeChangedOnUpdate";
    let part = "cannot be changed from Standard to Basic";
    cloud.is_refused(&lb_id(), with(body, "", "sku", Value::Null), 400, code, part);
    let id = net("publicIPAddresses/free");
    cloud.put(&id, pip("IPv4", "Standard"));
    let mut bare = pip("IPv4", "Standard");
    bare.as_object_mut().unwrap().remove("sku");
    cloud.is_refused(&id, bare, 400, code, part);
    let patch = Request::new("PATCH", &id).with_body(json!({"tags": {"a": "b"}}));
    assert_eq!(cloud.call(patch).status, 200);
}

#[test]
fn ip_tags_stay_for_life() {
    let mut cloud = Cloud::with(Options { ip_tags_for_life: Switch::On, ..Options::default() });
    let id = net("publicIPAddresses/a");
    let (usage, routing) = (("FirstPartyUsage", "/a"), ("RoutingPreference", "Internet"));
    let body = |tags: Vec<(&str, &str)>| {
        let tags = tags.into_iter().map(|(kind, tag)| json!({"ipTagType": kind, "tag": tag}));
        with(pip("IPv4", "Standard"), "/properties", "ipTags", tags.collect())
    };
    cloud.put(&id, body(vec![usage, routing]));
    for other in [vec![usage], vec![], vec![usage, ("RoutingPreference", "Microsoft")]] {
        let code = "PublicIPAddressIpTagsCannotBeChanged";
        cloud.is_refused(&id, body(other), 400, code, "publicIPAddresses/a");
    }
    // The same in another order, and beside it what may change.
    let mut same = body(vec![routing, usage]);
    same["tags"] = json!({"a": "b"});
    cloud.put(&id, same);
    // A subscription that may change them.
    cloud.azure.options_mut().ip_tags_for_life = Switch::Off;
    let shown = cloud.put(&id, body(vec![usage]));
    assert_eq!(shown["properties"]["ipTags"].as_array().unwrap().len(), 1);
}

#[test]
fn security_rules() {
    let mut cloud = Cloud::new();
    let id = net("networkSecurityGroups/nsg");
    let with = |members: Value| {
        let mut rule = json!({"access": "Allow", "direction": "Inbound", "protocol": "Tcp",
            "priority": 500, "sourceAddressPrefix": "10.0.0.0/8", "sourcePortRange": "*",
            "destinationAddressPrefix": "20.0.0.1", "destinationPortRange": "80"});
        for (key, value) in members.as_object().unwrap() {
            rule[key] = value.clone();
        }
        json!({"location": "eastus",
            "properties": {"securityRules": [{"name": "r", "properties": rule}]}})
    };
    let overlapping = "OverlappingSubnetsNotPermittedInSecurityRule";
    let unsupported = "SecurityRuleParameterContainsUnsupportedValue";
    let both = "SecurityRuleBothAddressPrefixAndPrefixesSpecified";
    let mixed = "SecurityRuleAddressPrefixFamiliesMixed";
    let sources = |all: Value| json!({"sourceAddressPrefix": null, "sourceAddressPrefixes": all});
    for (members, code, part) in [
        (
            sources(json!(["10.0.0.0/8", "192.168.0.0/16", "10.1.0.0/16"])),
            overlapping,
            "10.1.0.0/16",
        ),
        (sources(json!(["10.0.0.4", "10.0.0.4/32"])), overlapping, "10.0.0.4/32"),
        (sources(json!(["fd00::/8", "fd00::1"])), overlapping, "fd00::1"),
        (sources(json!(["10.0.0.0/8", "Internet"])), unsupported, "Internet"),
        (sources(json!(["*"])), unsupported, "*"),
        (sources(json!(["10.0.0.1/8"])), "SecurityRuleInvalidAddressPrefix", "10.0.0.1/8"),
        (json!({"sourceAddressPrefix": "10.0.0.1/8"}), "SecurityRuleInvalidAddressPrefix", "10.0"),
        (json!({"sourceAddressPrefixes": ["11.0.0.0/8"]}), both, "source"),
        (json!({"destinationAddressPrefix": "fd00::1"}), mixed, "different families"),
        (
            json!({"destinationPortRange": null, "destinationPortRanges": ["80", "*"]}),
            "SecurityRuleInvalidPortRange",
            "destination",
        ),
    ] {
        cloud.is_refused(&id, with(members), 400, code, part);
    }
    let mut named = with(json!({}));
    named["properties"]["securityRules"][0]["name"] = json!("ends-");
    cloud.is_refused(&id, named, 400, "InvalidResourceName", "ends-");
    for members in [
        sources(json!(["10.0.0.0/9", "10.128.0.0/9", "11.0.0.0/8"])),
        json!({"sourceAddressPrefix": "AzureCloud.WestEurope"}),
        json!({"sourceAddressPrefix": "*", "destinationPortRange": "*"}),
        json!({"sourceAddressPrefixes": []}),
    ] {
        cloud.put(&id, with(members));
    }
}

#[test]
fn load_balancers() {
    let mut cloud = Cloud::new();
    let body = plain_balancer(&mut cloud);
    let rule = "/properties/loadBalancingRules/0/properties";
    let mut every = with(body.clone(), rule, "protocol", json!("All"));
    cloud.is_refused(
        &lb_id(),
        every.clone(),
        400,
        "LoadBalancingRuleProtocolAllRequiresPortZero",
        "",
    );
    every = with(with(every, rule, "frontendPort", json!(0)), rule, "backendPort", json!(0));
    let code = "HighAvailabilityPortsNotAllowedOnPublicLoadBalancer";
    cloud.is_refused(&lb_id(), every.clone(), 400, code, "");
    let front = "/properties/frontendIPConfigurations/0";
    let subnet = json!({"id": net("virtualNetworks/vnet/subnets/nodes")});
    let inner = with(every, front, "properties", json!({"subnet": subnet}));
    let inside = format!("{front}/properties");
    let fixed = with(inner.clone(), &inside, "privateIPAllocationMethod", json!("Static"));
    let code = "PrivateIPAddressRequiredForStaticAllocation";
    cloud.is_refused(&lb_id(), fixed, 400, code, "");
    let zonal = with(body.clone(), front, "zones", json!(["1"]));
    let code = "LoadBalancerFrontendIPConfigCannotHaveZoneWhenReferencingPublicIPAddress";
    cloud.is_refused(&lb_id(), zonal, 400, code, "");
    let pool = |addresses: Value| {
        json!([{"name": "pool", "properties": {
            "virtualNetwork": {"id": net("virtualNetworks/vnet")},
            "loadBalancerBackendAddresses": addresses}}])
    };
    let outside = pool(json!([{"name": "n", "properties": {"ipAddress": "192.168.0.4"}}]));
    let outside = with(body.clone(), "/properties", "backendAddressPools", outside);
    cloud.is_refused(&lb_id(), outside, 400, "BackendAddressNotInVirtualNetwork", "192.168.0.4");
    let nameless = pool(json!([{"properties": {"ipAddress": "10.224.0.4"}}]));
    let nameless = with(body, "/properties", "backendAddressPools", nameless);
    cloud.is_refused(&lb_id(), nameless, 400, "InvalidRequestFormat", "has no name");
    cloud.put(&lb_id(), with(inner, front, "zones", json!(["1"])));
}

#[test]
fn service_gateways_list_what_their_contract_has() {
    use azure_emulator::{Azure, SampleGateway, SampleOptions, sample_estate};
    let mut azure = Azure::new(Options::default());
    let gateway = SampleGateway::WithDefaultNat;
    azure.seed(sample_estate(&SampleOptions { gateway, ..Default::default() }));
    let mut cloud = Cloud { azure, now_ms: 1 };
    let id = net("serviceGateways/servicegateway");
    let list = cloud.get(&format!("{id}/services"));
    let keys: Vec<&String> = list["value"][0].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["name", "properties"]);
    assert!(list["value"][0]["properties"].get("provisioningState").is_none());
    let body = json!({"action": "PartialUpdate", "serviceRequests": [{"isDelete": false,
        "service": {"name": "u", "properties": {"serviceType": "Sideways"}}}]});
    let answer = cloud.post(&format!("{id}/updateServices"), body);
    assert_eq!((answer.status, answer.code()), (400, Some("InvalidRequestFormat")));
    let body = json!({"action": "PartialUpdate", "addressLocation": []});
    let answer = cloud.post(&format!("{id}/updateAddressLocations"), body);
    assert_eq!((answer.status, answer.code()), (400, Some("InvalidRequestFormat")));
}
