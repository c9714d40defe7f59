//! Everything but load balancers: public IPs, security groups, networks, links, groups.

use crate::common::*;
use azure_emulator::{Azure, Options, Request, Switch};
use serde_json::{Value, json};

fn security_rule(name: &str, priority: i64) -> Value {
    json!({"name": name, "properties": {
        "access": "Allow", "direction": "Inbound", "protocol": "Tcp", "priority": priority,
        "sourceAddressPrefix": "Internet", "sourcePortRange": "*",
        "destinationAddressPrefixes": ["20.0.0.1"], "destinationPortRanges": ["80", "443"]}})
}

#[test]
fn security_rules_are_checked_and_can_be_written_singly() {
    let mut cloud = Cloud::new();
    let nsg = net("networkSecurityGroups/nsg");
    let group =
        |rules: Vec<Value>| json!({"location": "eastus", "properties": {"securityRules": rules}});
    let twice = vec![security_rule("a", 500), security_rule("b", 500)];
    cloud.refused(&nsg, group(twice), "SecurityRuleConflict");
    cloud.refused(&nsg, group(vec![security_rule("a", 99)]), "SecurityRuleInvalidPriority");
    let many = (0..1001).map(|n| security_rule(&format!("r{n}"), 100 + n)).collect();
    cloud.refused(&nsg, group(many), "SecurityRuleCountLimitReached");
    let mut mixed = security_rule("a", 500);
    mixed["properties"]["destinationAddressPrefixes"] = json!(["20.0.0.1", "2603::1"]);
    cloud.refused(&nsg, group(vec![mixed]), "SecurityRuleAddressPrefixFamiliesMixed");
    let mut ports = security_rule("a", 500);
    ports["properties"]["destinationPortRanges"] = json!(["80-70"]);
    cloud.refused(&nsg, group(vec![ports]), "SecurityRuleInvalidPortRange");
    let shown = cloud.put(&nsg, group(vec![security_rule("a", 500)]));
    assert_eq!(shown["properties"]["defaultSecurityRules"].as_array().unwrap().len(), 6);
    let single = format!("{nsg}/securityRules/b");
    let made = cloud.try_put(&single, security_rule("b", 501));
    assert_eq!((made.status, made.body.unwrap()["name"].clone()), (201, json!("b")));
    assert_ne!(cloud.get(&nsg)["etag"], shown["etag"]);
    assert_eq!(cloud.delete(&single).status, 200);
    assert_eq!(cloud.delete(&single).status, 204);
    let left = cloud.get(&format!("{nsg}/securityRules"));
    assert_eq!(left["value"].as_array().unwrap().len(), 1);
}

#[test]
fn public_ips_have_names_prefixes_and_a_quota() {
    let mut cloud = Cloud::with(Options { public_ip_quota: Some(3), ..Options::default() });
    let named = |label: &str| {
        let mut body = pip("IPv4", "Standard");
        body["properties"]["dnsSettings"] = json!({"domainNameLabel": label});
        body
    };
    let a = net("publicIPAddresses/a");
    let shown = cloud.put(&a, named("hello"));
    let name = &shown["properties"]["dnsSettings"]["fqdn"];
    assert_eq!(name, "hello.eastus.cloudapp.azure.com");
    cloud.refused(&net("publicIPAddresses/b"), named("hello"), "DnsRecordInUse");
    let mut from_prefix = pip("IPv4", "Standard");
    from_prefix["properties"]["publicIPPrefix"] = json!({"id": net("publicIPPrefixes/prefix")});
    let b = cloud.put(&net("publicIPAddresses/b"), from_prefix);
    assert_eq!(b["properties"]["ipAddress"], "20.99.0.0");
    let prefix = cloud.delete(&net("publicIPPrefixes/prefix"));
    assert_eq!(prefix.code(), Some("InUsePublicIpPrefixCannotBeDeleted"));
    cloud.pip("c");
    cloud.refused(
        &net("publicIPAddresses/d"),
        pip("IPv4", "Standard"),
        "PublicIPCountLimitReached",
    );
    let mut six = pip("IPv6", "Standard");
    cloud.refused(&a, six.clone(), "PublicIPAddressVersionCannotBeChanged");
    six["properties"]["publicIPAllocationMethod"] = json!("Dynamic");
    six["properties"]["publicIPAddressVersion"] = json!("IPv4");
    cloud.refused(&a, six, "StandardSkuPublicIPAddressesMustBeStatic");
    let freed = cloud.put(&a, named("other"));
    assert_eq!(freed["properties"]["ipAddress"], shown["properties"]["ipAddress"]);
    cloud.put(&net("publicIPAddresses/c"), named("hello"));
}

#[test]
fn tags_are_patched_as_a_whole() {
    let mut cloud = Cloud::new();
    let pip = cloud.pip("a");
    let patch = |tags: Value| Request::new("PATCH", &net("publicIPAddresses/a")).with_body(tags);
    cloud.call(patch(json!({"tags": {"x": "1", "y": "2"}})));
    let answer = cloud.call(patch(json!({"tags": {"z": "3"}})));
    assert_eq!(answer.status, 200);
    let shown = cloud.get(&pip);
    assert_eq!(shown["tags"], json!({"z": "3"}));
    assert_eq!(shown["sku"]["name"], "Standard");
    let missing = Request::new("PATCH", &net("publicIPAddresses/none"));
    assert_eq!(cloud.call(missing).code(), Some("ResourceNotFound"));
}

#[test]
fn networks_hold_their_subnets() {
    let mut cloud = Cloud::new();
    let vnet = net("virtualNetworks/vnet");
    let shown = cloud.get(&vnet);
    let names: Vec<&str> = shown["properties"]["subnets"]
        .as_array()
        .unwrap()
        .iter()
        .map(|subnet| subnet["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["apps", "nodes"]);
    let subnet = |prefix: &str| json!({"properties": {"addressPrefix": prefix}});
    let more = format!("{vnet}/subnets/more");
    cloud.refused(&more, subnet("10.224.8.0/24"), "NetcfgSubnetRangesOverlap");
    cloud.refused(&more, subnet("192.168.0.0/24"), "NetcfgSubnetRangeOutsideVnet");
    cloud.refused(&more, subnet("10.226.0.0"), "InvalidCIDRNotation");
    cloud.put(&more, subnet("10.226.0.0/16"));
    assert_ne!(cloud.get(&vnet)["etag"], shown["etag"]);
    let in_use = cloud.delete(&format!("{vnet}/subnets/nodes"));
    assert_eq!(in_use.code(), Some("InUseSubnetCannotBeDeleted"));
    let mut whole = cloud.get(&vnet);
    whole["properties"].as_object_mut().unwrap().remove("subnets");
    let kept = cloud.put(&vnet, whole.clone());
    assert_eq!(kept["properties"]["subnets"].as_array().unwrap().len(), 3, "not spoken of");
    let mut fewer = kept.clone();
    fewer["properties"]["subnets"].as_array_mut().unwrap().retain(|one| one["name"] != "more");
    let kept = cloud.put(&vnet, fewer.clone());
    assert_eq!(kept["properties"]["subnets"].as_array().unwrap().len(), 2);
    fewer["properties"]["subnets"] = json!([]);
    cloud.refused(&vnet, fewer, "InUseSubnetCannotBeDeleted");
    let parent = net("virtualNetworks/none/subnets/x");
    let orphan = cloud.try_put(&parent, subnet("10.226.0.0/16"));
    assert_eq!((orphan.status, orphan.code()), (404, Some("ParentResourceNotFound")));
}

fn internal_balancer() -> Value {
    json!({"location": "eastus", "sku": {"name": "Standard"}, "properties": {
        "frontendIPConfigurations": [{"name": "in", "properties": {
            "subnet": {"id": net("virtualNetworks/vnet/subnets/nodes")}}}]}})
}

#[test]
fn private_links_need_a_subnet_without_policies() {
    let mut cloud = Cloud::new();
    cloud.put(&lb_id(), internal_balancer());
    let body = link("in");
    let pls = net("privateLinkServices/pls");
    let code = "PrivateLinkServiceCannotBeCreatedInSubnetThatHasNetworkPoliciesEnabled";
    cloud.refused(&pls, body.clone(), code);
    cloud.open_to_links();
    let before = cloud.get(&lb_id())["etag"].clone();
    let shown = cloud.put(&pls, body.clone());
    assert!(shown["properties"]["alias"].as_str().unwrap().ends_with("azure.privatelinkservice"));
    assert_ne!(cloud.get(&lb_id())["etag"], before, "the frontend's user changed");
    let other = net("privateLinkServices/other");
    cloud.refused(&other, body.clone(), "FrontendIPConfigurationInUseByPrivateLinkService");
    let dropped = json!({"location": "eastus", "sku": {"name": "Standard"}, "properties": {}});
    cloud.refused(&lb_id(), dropped, "InUseFrontendIPConfigurationCannotBeDeleted");
    let connection = format!("{pls}/privateEndpointConnections/pe");
    cloud.put(
        &connection,
        json!({"properties": {
        "privateLinkServiceConnectionState": {"status": "Approved"}}}),
    );
    cloud.put(&pls, body);
    assert_eq!(cloud.get(&connection)["name"], "pe", "a PUT of the service keeps connections");
    assert!(cloud.delete(&pls).status == 400);
    assert_eq!(cloud.delete(&connection).status, 200);
    let before = cloud.get(&lb_id())["etag"].clone();
    assert_eq!(cloud.delete(&pls).status, 200);
    assert_ne!(cloud.get(&lb_id())["etag"], before);
}

/// Who comes later is refused: the link beside such a pool or frontend, or these beside the link.
#[test]
fn private_links_stand_beside_no_pool_of_addresses_and_no_ipv6_frontend() {
    let addresses = json!([{"name": "kubernetes", "properties": {
        "virtualNetwork": {"id": net("virtualNetworks/vnet")},
        "loadBalancerBackendAddresses": [
            {"name": "n", "properties": {"ipAddress": "10.224.0.9"}}]}}]);
    let mut pools = internal_balancer();
    pools["properties"]["backendAddressPools"] = addresses;
    let mut both = internal_balancer();
    let frontends = both["properties"]["frontendIPConfigurations"].as_array_mut().unwrap();
    frontends.push(json!({"name": "six", "properties": {"privateIPAddressVersion": "IPv6",
        "subnet": {"id": net("virtualNetworks/vnet/subnets/nodes")}}}));
    let pls = net("privateLinkServices/pls");
    for (body, code) in [
        (pools, "PrivateLinkServiceIsNotSupportedForIPBasedLoadBalancer"),
        (both, "PrivateLinkServiceIsNotSupportedForIPv6LoadBalancer"),
    ] {
        let mut cloud = Cloud::new();
        cloud.put(&lb_id(), body.clone());
        cloud.open_to_links();
        let link = link("in");
        cloud.refused(&pls, link.clone(), code);
        cloud.put(&lb_id(), internal_balancer());
        cloud.put(&pls, link);
        cloud.refused(&lb_id(), body.clone(), code);
        assert_eq!(cloud.delete(&pls).status, 200);
        cloud.put(&lb_id(), body);
    }
}

#[test]
fn pools_of_nics_stay_so_behind_a_private_link() {
    let mut cloud = Cloud::new();
    let mut balancer = internal_balancer();
    balancer["properties"]["backendAddressPools"] = json!([{"name": "pool"}]);
    cloud.put(&lb_id(), balancer);
    cloud.open_to_links();
    let link = link("in");
    cloud.put(&net("privateLinkServices/pls"), link);
    let vm = compute("virtualMachineScaleSets/vmss/virtualMachines/0");
    let mut machine = cloud.get(&vm);
    let nics = &mut machine["properties"]["networkProfileConfiguration"];
    nics["networkInterfaceConfigurations"][0]["properties"]["ipConfigurations"][0]["properties"]
        ["loadBalancerBackendAddressPools"] = json!([below("backendAddressPools/pool")]);
    let body = json!({"location": "eastus",
        "properties": {"networkProfileConfiguration": nics.clone()}});
    cloud.put(&vm, body);
    let before = (cloud.get(&lb_id()), cloud.get(&vm));
    let moved = cloud.post(&format!("{}/migrateToIpBased", lb_id()), json!({"pools": ["pool"]}));
    let code = "PrivateLinkServiceIsNotSupportedForIPBasedLoadBalancer";
    assert_eq!((moved.status, moved.code()), (400, Some(code)));
    assert_eq!((cloud.get(&lb_id()), cloud.get(&vm)), before, "nothing has changed");
}

#[test]
fn values_are_those_of_the_api_version_of_the_request() {
    let mut cloud = Cloud::new();
    let service = json!({"location": "eastus", "sku": {"name": "Service"}, "properties": {
        "scope": "Public"}});
    let put = |cloud: &mut Cloud, id: &str, version: &str, body: &Value| {
        cloud.try_put(&format!("{id}?api-version={version}"), body.clone())
    };
    let early = put(&mut cloud, &lb_id(), "2025-05-01", &service);
    assert_eq!((early.status, early.code()), (400, Some("InvalidRequestFormat")));
    assert_eq!(put(&mut cloud, &lb_id(), "2025-09-01", &service).status, 201);
    let id = compute("virtualMachineScaleSets/vmss");
    for (version, status) in [("2021-11-01", 400), ("2020-11-01", 200), ("2022-11-01", 200)] {
        let mut set = cloud.get(&id);
        set["properties"]["virtualMachineProfile"]["networkProfile"]["networkApiVersion"] =
            json!(version);
        assert_eq!(put(&mut cloud, &id, "2025-04-01", &set).status, status, "{version}");
    }
}

#[test]
fn nat_gateways_hold_addresses_of_their_sku() {
    let mut cloud = Cloud::new();
    let nat = net("natGateways/team");
    let standard = cloud.pip("a");
    let v2 = net("publicIPAddresses/v2");
    cloud.put(&v2, pip("IPv4", "StandardV2"));
    let body = |pip: &str| {
        json!({"location": "eastus", "sku": {"name": "StandardV2"},
            "properties": {"publicIpAddresses": [{"id": pip}]}})
    };
    cloud.refused(&nat, body(&standard), "NatGatewayAndPublicIPSkuDoNotMatch");
    cloud.put(&nat, body(&v2));
    assert_eq!(cloud.get(&v2)["properties"]["natGateway"]["id"], nat);
    assert_eq!(cloud.delete(&v2).code(), Some("PublicIPAddressCannotBeDeleted"));
    let mut six = body(&v2);
    six["properties"] = json!({"publicIpAddressesV6": [{"id": v2}]});
    cloud.refused(&nat, six, "NatGatewayPublicIPVersionMismatch");
    assert_eq!(cloud.delete(&nat).status, 200);
    assert_eq!(cloud.delete(&v2).status, 200);
}

#[test]
fn groups_exist_or_are_not_found() {
    let mut azure = Azure::new(Options { auto_groups: Switch::Off, ..Options::default() });
    let put = |group: &str| {
        let path = format!(
            "/subscriptions/s/resourceGroups/{group}/providers/Microsoft.Network\
             /publicIPAddresses/a"
        );
        Request::new("PUT", &path).with_body(pip("IPv4", "Standard"))
    };
    let answer = azure.handle(put("rg"), 0);
    assert_eq!((answer.status, answer.code()), (404, Some("ResourceGroupNotFound")));
    let group = "/subscriptions/s/resourceGroups/RG";
    let made = azure.handle(Request::new("PUT", group).with_body(json!({"location": "x"})), 0);
    assert_eq!(made.status, 201);
    assert_eq!(azure.handle(put("rg"), 0).status, 201);
    let list = azure.handle(Request::new("GET", "/subscriptions/S/resourcegroups"), 0);
    assert_eq!(list.body.unwrap()["value"][0]["name"], "RG");
    assert_eq!(azure.handle(Request::new("DELETE", group), 0).status, 202);
    assert!(azure.resources().is_empty());
    let gone = azure.handle(Request::new("GET", group), 1);
    assert_eq!(gone.code(), Some("ResourceGroupNotFound"));
}

#[test]
fn lists_are_cut_into_pages() {
    let mut cloud = Cloud::with(Options {
        page_size: 2,
        base_url: "http://h".to_owned(),
        ..Options::default()
    });
    ["a", "b", "c", "d", "e"].iter().for_each(|name| {
        cloud.pip(name);
    });
    let mut path = format!("{}?api-version=2025-05-01", net("publicIPAddresses"));
    let mut names = Vec::new();
    let mut pages = 0;
    loop {
        let page = cloud.get(&path);
        pages += 1;
        names.extend(page["value"].as_array().unwrap().iter().map(|x| x["name"].clone()));
        match page["nextLink"].as_str() {
            Some(next) => path = next.strip_prefix("http://h").unwrap().to_owned(),
            None => break,
        }
    }
    assert_eq!((pages, json!(names)), (3, json!(["a", "b", "c", "d", "e"])));
    cloud.azure.options_mut().page_size = 0;
    let all = cloud.get(
        "/subscriptions/00000000-0000-0000-0000-000000000001/providers/Microsoft.Network\
         /publicIPAddresses",
    );
    assert_eq!(all["value"].as_array().unwrap().len(), 5);
}

#[test]
fn providers_tell_of_zones_and_tokens_are_given() {
    let mut cloud = Cloud::new();
    let provider = cloud.get("/subscriptions/s/providers/Microsoft.Compute?api-version=2021-04-01");
    let machines = &provider["resourceTypes"][0];
    assert_eq!(machines["resourceType"], "virtualMachines");
    assert_eq!(machines["zoneMappings"][0]["location"], "East US");
    let endpoints = cloud.get("/metadata/endpoints?api-version=2019-05-01");
    assert_eq!(endpoints[0]["name"], "AzureCloud");
    let token = cloud.post("/tenant/oauth2/v2.0/token", Value::Null);
    assert_eq!(token.body.unwrap()["access_token"], "emulated");
    let identity = cloud.get("/metadata/identity/oauth2/token?resource=x");
    assert_eq!(identity["expires_in"], "86400");
    assert_eq!(cloud.azure.calls().len(), 1, "sign-in is not logged");
}

#[test]
fn flexible_machines_are_found_by_their_scale_set() {
    let mut cloud = Cloud::new();
    let set = compute("virtualMachineScaleSets/flex");
    cloud.put(&set, json!({"location": "eastus", "properties": {"orchestrationMode": "Flexible"}}));
    for name in ["flex_a", "flex_b", "lone"] {
        let mut body = json!({"location": "eastus", "properties": {
            "instanceView": {"statuses": [{"code": "PowerState/running"}]}}});
        if name != "lone" {
            body["properties"]["virtualMachineScaleSet"] = json!({"id": set.to_uppercase()
                .replace("/SUBSCRIPTIONS", "/subscriptions")});
        }
        cloud.put(&compute(&format!("virtualMachines/{name}")), body);
    }
    let filter = format!("?$filter='virtualMachineScaleSet/id'%20eq%20'{set}'");
    let found = cloud.get(&format!("{}{filter}", compute("virtualMachines")));
    assert_eq!(found["value"].as_array().unwrap().len(), 2);
    assert!(found["value"][0]["properties"]["instanceView"].is_null(), "not asked for");
    let machine = compute("virtualMachines/lone");
    cloud.post(&format!("{machine}/deallocate"), json!({}));
    let view = cloud.get(&format!("{machine}/instanceView"));
    assert_eq!(view["statuses"][1]["code"], "PowerState/deallocated");
}

#[test]
fn ten_thousand_public_ips_and_a_thousand_rules_are_no_burden() {
    let mut cloud = Cloud::with(Options { log_bodies: Switch::Off, ..Options::default() });
    for n in 0..10_000 {
        cloud.pip(&format!("pip{n}"));
    }
    let pip = net("publicIPAddresses/pip77");
    let rules: Vec<Value> = (1..=1000).map(|n| rule(&format!("r{n}"), "front", n)).collect();
    for _ in 0..20 {
        cloud.put(&lb_id(), balancer(&pip, rules.clone()));
    }
    let shown = cloud.get(&lb_id());
    let front = &shown["properties"]["frontendIPConfigurations"][0]["properties"];
    assert_eq!(front["loadBalancingRules"].as_array().unwrap().len(), 1000);
    assert_eq!(cloud.azure.call_counts(), (1, 10_020));
}
