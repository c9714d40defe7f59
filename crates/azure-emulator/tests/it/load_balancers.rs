//! Load balancers and what hangs on them.

use crate::common::{self, *};
use azure_emulator::{Options, Request, Switch};
use serde_json::{Value, json};

#[test]
fn a_put_comes_back_with_what_azure_adds() {
    let mut cloud = Cloud::new();
    let pip = cloud.pip("a");
    let created = cloud.try_put(&lb_id(), balancer(&pip, vec![rule("r", "front", 80)]));
    assert_eq!(created.status, 201);
    let lb = cloud.get(&lb_id());
    assert_eq!(lb["type"], "Microsoft.Network/loadBalancers");
    assert_eq!(lb["properties"]["provisioningState"], "Succeeded");
    let front = &lb["properties"]["frontendIPConfigurations"][0];
    assert_eq!(front["id"], below("frontendIPConfigurations/front")["id"]);
    assert_eq!(front["etag"], lb["etag"]);
    assert_eq!(front["properties"]["loadBalancingRules"], json!([below("loadBalancingRules/r")]));
    let pool = &lb["properties"]["backendAddressPools"][0];
    assert_eq!(pool["properties"]["loadBalancingRules"][0], below("loadBalancingRules/r"));
    let rule = &lb["properties"]["loadBalancingRules"][0]["properties"];
    assert_eq!(rule["idleTimeoutInMinutes"], 4, "Azure fills in defaults");
    let shown = cloud.get(&pip);
    assert_eq!(shown["properties"]["ipAddress"], "20.0.0.1");
    assert_eq!(shown["properties"]["ipConfiguration"]["id"], front["id"]);
    let again = cloud.try_put(&lb_id(), lb.clone());
    assert_eq!(again.status, 200, "echoed read-only fields are no error");
    let mut after = again.body.unwrap();
    assert_ne!(after["etag"], lb["etag"]);
    let text = after.to_string().replace(&after["etag"].to_string(), &lb["etag"].to_string());
    after = serde_json::from_str(&text).unwrap();
    assert_eq!(after, lb, "a PUT of what was read changes nothing else");
}

#[test]
fn paths_are_compared_without_case_and_ids_keep_the_first_spelling() {
    let mut cloud = Cloud::new();
    let pip = cloud.pip("MixedCase");
    let shown = cloud.get(&pip.to_uppercase().replace("/SUBSCRIPTIONS", "/subscriptions"));
    assert_eq!(shown["id"], pip);
    cloud.put(&pip.to_lowercase(), common::pip("IPv4", "Standard"));
    assert_eq!(cloud.get(&pip)["id"], pip);
    assert_eq!(cloud.get(&pip)["properties"]["ipAddress"], "20.0.0.1", "the address stays");
}

#[test]
fn etags_guard_and_move_with_children() {
    let mut cloud = Cloud::new();
    let pip = cloud.pip("a");
    let first = cloud.put(&lb_id(), balancer(&pip, vec![]));
    let stale = Request::new("PUT", &lb_id())
        .with_body(balancer(&pip, vec![]))
        .with_if_match("W/\"other\"");
    let answer = cloud.call(stale);
    assert_eq!((answer.status, answer.code()), (412, Some("PreconditionFailed")));
    let pool = format!("{}/backendAddressPools/pool", lb_id());
    cloud.put(
        &pool,
        json!({"properties": {"virtualNetwork": {"id": net("virtualNetworks/vnet")},
        "loadBalancerBackendAddresses": [
            {"name": "n", "properties": {"ipAddress": "10.224.0.4"}}]}}),
    );
    let second = cloud.get(&lb_id());
    assert_ne!(first["etag"], second["etag"]);
    let pip_before = cloud.get(&pip)["etag"].clone();
    let mut without = second.clone();
    without["properties"]["frontendIPConfigurations"] = json!([]);
    cloud.put(&lb_id(), without);
    assert_ne!(cloud.get(&pip)["etag"], pip_before, "its ipConfiguration changed");
    let mut none_match = Request::new("PUT", &pip).with_body(common::pip("IPv4", "Standard"));
    none_match.if_none_match = Some("*".to_owned());
    assert_eq!(cloud.call(none_match).status, 412);
}

#[test]
fn machines_join_a_pool_and_the_balancer_shows_them() {
    let mut cloud = Cloud::new();
    let pip = cloud.pip("a");
    let before = cloud.put(&lb_id(), balancer(&pip, vec![rule("r", "front", 80)]));
    let vm = compute("virtualMachineScaleSets/vmss/virtualMachines/0");
    let mut machine = cloud.get(&vm);
    let nics = &mut machine["properties"]["networkProfileConfiguration"];
    nics["networkInterfaceConfigurations"][0]["properties"]["ipConfigurations"][0]["properties"]
        ["loadBalancerBackendAddressPools"] = json!([below("backendAddressPools/pool")]);
    let body = json!({"location": "eastus", "etag": null,
        "properties": {"networkProfileConfiguration": nics.clone()}});
    let put = cloud.put(&vm, body);
    assert_eq!(put["properties"]["osProfile"]["computerName"], "vmss000000", "a partial PUT");
    let lb = cloud.get(&lb_id());
    assert_ne!(lb["etag"], before["etag"]);
    let member = format!("{vm}/networkInterfaces/vmss-nic/ipConfigurations/ipconfig1");
    let pool = &lb["properties"]["backendAddressPools"][0]["properties"];
    assert_eq!(pool["backendIPConfigurations"], json!([{"id": member}]));
    let traffic = cloud.azure.traffic("20.0.0.1", "Tcp", 80).unwrap();
    assert_eq!(traffic.backends, ["10.224.0.4"]);
    cloud.refused(
        &format!("{}/backendAddressPools/pool", lb_id()),
        json!({"properties": {"virtualNetwork": {"id": net("virtualNetworks/vnet")},
            "loadBalancerBackendAddresses": [{"name": "n",
                "properties": {"ipAddress": "10.224.0.9"}}]}}),
        "BackendAddressPoolCannotMixNicsAndAddresses",
    );
    let moved = cloud.post(&format!("{}/migrateToIpBased", lb_id()), json!({"pools": ["pool"]}));
    assert_eq!((moved.status, moved.body.unwrap()), (200, json!({"migratedPools": ["pool"]})));
    let lb = cloud.get(&lb_id());
    let pool = &lb["properties"]["backendAddressPools"][0]["properties"];
    let address = &pool["loadBalancerBackendAddresses"][0]["properties"]["ipAddress"];
    assert_eq!(address, "10.224.0.4");
    assert!(pool["backendIPConfigurations"].is_null());
}

#[test]
fn a_scale_set_model_keeps_its_balancer_from_being_deleted() {
    let mut cloud = Cloud::new();
    let pip = cloud.pip("a");
    cloud.put(&lb_id(), balancer(&pip, vec![]));
    let vmss = compute("virtualMachineScaleSets/vmss");
    let mut set = cloud.get(&vmss);
    let profile = &mut set["properties"]["virtualMachineProfile"]["networkProfile"];
    let nics = &mut profile["networkInterfaceConfigurations"];
    nics[0]["properties"]["ipConfigurations"][0]["properties"]["loadBalancerBackendAddressPools"] =
        json!([below("backendAddressPools/pool")]);
    cloud.put(&vmss, set);
    let refused = cloud.delete(&lb_id());
    assert_eq!(refused.code(), Some("LoadBalancerInUseByVirtualMachineScaleSet"));
    let machine = cloud.get(&compute("virtualMachineScaleSets/vmss/virtualMachines/1"));
    assert_eq!(machine["properties"]["latestModelApplied"], false);
    assert_eq!(
        cloud.post(&format!("{vmss}/manualupgrade"), json!({"instanceIds": ["1", "2"]})).status,
        200
    );
    let lb = cloud.get(&lb_id());
    let members = &lb["properties"]["backendAddressPools"][0]["properties"];
    assert_eq!(members["backendIPConfigurations"].as_array().unwrap().len(), 2);
    // The model has left, and instances are as it was.
    let mut set = cloud.get(&vmss);
    let profile = &mut set["properties"]["virtualMachineProfile"]["networkProfile"];
    let nics = &mut profile["networkInterfaceConfigurations"];
    nics[0]["properties"]["ipConfigurations"][0]["properties"]["loadBalancerBackendAddressPools"] =
        json!([]);
    cloud.put(&vmss, set);
    let refused = cloud.delete(&lb_id());
    assert_eq!(refused.code(), Some("LoadBalancerInUseByVirtualMachineScaleSet"));
    let message = refused.body.as_ref().unwrap()["error"]["message"].to_string();
    assert!(message.to_lowercase().contains("virtualmachinescalesets/vmss."), "{message}");
    let all = json!({"instanceIds": ["*"]});
    assert_eq!(cloud.post(&format!("{vmss}/manualupgrade"), all).status, 200);
    assert!(cloud.delete(&lb_id()).status < 300);
}

#[test]
fn scale_sets_grow_and_shrink() {
    let mut cloud = Cloud::new();
    let vmss = compute("virtualMachineScaleSets/vmss");
    cloud.put(&vmss, json!({"sku": {"capacity": 6}}));
    let list = cloud.get(&format!("{vmss}/virtualMachines?$expand=instanceView"));
    let machines = list["value"].as_array().unwrap();
    assert_eq!(machines.len(), 6);
    assert_eq!(machines[5]["properties"]["osProfile"]["computerName"], "vmss000005");
    assert!(machines[5]["properties"]["instanceView"].is_object());
    let nics = cloud.get(&format!("{vmss}/networkInterfaces"));
    assert_eq!(nics["value"].as_array().unwrap().len(), 6);
    let nic = cloud.get(&format!("{vmss}/virtualMachines/5/networkInterfaces/vmss-nic"));
    let first = &nic["properties"]["ipConfigurations"][0]["properties"];
    assert_eq!(first["privateIPAddress"], "10.224.0.9", "the next free one");
    cloud.put(&vmss, json!({"sku": {"capacity": 2}}));
    let list = cloud.get(&format!("{vmss}/virtualMachines"));
    assert_eq!(list["value"].as_array().unwrap().len(), 2);
    assert_eq!(cloud.get(&vmss)["sku"]["capacity"], 2);
    let gone = cloud.post(&format!("{vmss}/delete"), json!({"instanceIds": ["7"]}));
    assert!(gone.body.unwrap().to_string().contains("not an active Virtual Machine Scale Set"));
    let put = cloud.try_put(&format!("{vmss}/virtualMachines/7"), json!({"properties": {}}));
    assert!(put.body.unwrap().to_string().contains("not an active Virtual Machine Scale Set"));
}

#[test]
fn rules_and_references_are_checked() {
    let mut cloud = Cloud::new();
    let pip = cloud.pip("a");
    let twice = vec![rule("a", "front", 80), rule("b", "front", 80)];
    cloud.refused(&lb_id(), balancer(&pip, twice), "RulesUseSameFrontendPortProtocolAndIPConfig");
    let mut all = rule("ha", "front", 0);
    all["properties"]["protocol"] = json!("All");
    for both in [vec![all.clone(), rule("b", "front", 80)], vec![rule("b", "front", 80), all]] {
        let mut inner = balancer(&pip, both);
        inner["properties"]["frontendIPConfigurations"][0]["properties"] =
            json!({"subnet": {"id": net("virtualNetworks/vnet/subnets/nodes")}});
        cloud.refused(&lb_id(), inner, "RulesUseSameFrontendPortProtocolAndIPConfig");
    }
    let mut plain = [rule("a", "front", 80), rule("b", "front", 81)];
    for rule in &mut plain {
        rule["properties"]["enableFloatingIP"] = json!(false);
        rule["properties"]["backendPort"] = json!(8080);
    }
    let body = balancer(&pip, plain.to_vec());
    cloud.refused(&lb_id(), body, "RulesUseSameBackendPortProtocolAndPool");
    let nowhere = balancer(&pip, vec![rule("a", "nowhere", 80)]);
    cloud.refused(&lb_id(), nowhere, "InvalidResourceReference");
    let missing = balancer(&net("publicIPAddresses/none"), vec![]);
    cloud.refused(&lb_id(), missing, "InvalidResourceReference");
    let many = (1..=1501).map(|n| rule(&format!("r{n}"), "front", n)).collect();
    cloud.refused(&lb_id(), balancer(&pip, many), "LoadBalancingRuleCountLimitReached");
    let mut probe = balancer(&pip, vec![]);
    for bad in [
        json!({"protocol": "Tcp", "port": 0}),
        json!({"protocol": "Http", "port": 80}),
        json!({"protocol": "Tcp", "port": 80, "intervalInSeconds": 4}),
        json!({"protocol": "Tcp", "port": 80, "intervalInSeconds": 61, "probeThreshold": 2}),
    ] {
        probe["properties"]["probes"] = json!([{"name": "p", "properties": bad}]);
        cloud.refused(&lb_id(), probe.clone(), "InvalidParameterValue");
    }
    let mut named = balancer(&pip, vec![]);
    named["properties"]["backendAddressPools"] = json!([{"name": "x"}, {"name": "X"}]);
    cloud.refused(&lb_id(), named.clone(), "InvalidRequestFormat");
    named["properties"]["backendAddressPools"] = json!([pool_of(&["node", "NODE"])]);
    cloud.refused(&lb_id(), named, "InvalidRequestFormat");
}

fn pool_of(names: &[&str]) -> Value {
    let address = |(n, name): (usize, &&str)| {
        json!({"name": name, "properties": {
        "ipAddress": format!("10.224.0.{}", 40 + n),
        "virtualNetwork": {"id": net("virtualNetworks/vnet")}}})
    };
    let addresses: Vec<Value> = names.iter().enumerate().map(address).collect();
    json!({"name": "pool", "properties": {"loadBalancerBackendAddresses": addresses}})
}

#[test]
fn addresses_of_a_pool_have_names_of_their_own() {
    let mut cloud = Cloud::new();
    let pip = cloud.pip("a");
    cloud.put(&lb_id(), balancer(&pip, vec![]));
    let pool = format!("{}/backendAddressPools/pool", lb_id());
    let refused = cloud.try_put(&pool, pool_of(&["node", "Node"]));
    let error = &refused.body.as_ref().unwrap()["error"];
    let message = format!("Resource {pool} has two child resources with the same name (Node).");
    assert_eq!(refused.status, 400);
    assert_eq!(error["code"], "InvalidRequestFormat");
    assert_eq!(error["details"], json!([{"code": "DuplicateResourceName", "message": message}]));
    cloud.put(&pool, pool_of(&["node", "node-2"]));
}

/// Instances of a scale set have NICs of one name.
#[test]
fn pools_that_move_to_addresses_get_names_apart() {
    let mut cloud = Cloud::new();
    cloud.azure.options_mut().nic_pool_addresses = Switch::On;
    let pip = cloud.pip("a");
    cloud.put(&lb_id(), balancer(&pip, vec![]));
    for machine in 0..2 {
        let vm = compute(&format!("virtualMachineScaleSets/vmss/virtualMachines/{machine}"));
        let mut nics = cloud.get(&vm)["properties"]["networkProfileConfiguration"].clone();
        nics["networkInterfaceConfigurations"][0]["properties"]["ipConfigurations"][0]["properties"]
            ["loadBalancerBackendAddressPools"] = json!([below("backendAddressPools/pool")]);
        let body = json!({"location": "eastus",
            "properties": {"networkProfileConfiguration": nics}});
        cloud.put(&vm, body);
    }
    let names = |cloud: &mut Cloud| -> Vec<String> {
        let lb = cloud.get(&lb_id());
        let pool = &lb["properties"]["backendAddressPools"][0]["properties"];
        let addresses = pool["loadBalancerBackendAddresses"].as_array().unwrap();
        addresses.iter().map(|a| a["name"].as_str().unwrap().to_owned()).collect()
    };
    let derived = names(&mut cloud);
    assert_eq!(derived.len(), 2);
    assert_ne!(derived[0], derived[1]);
    let moved = cloud.post(&format!("{}/migrateToIpBased", lb_id()), json!({"pools": ["pool"]}));
    assert_eq!(moved.status, 200);
    assert_eq!(names(&mut cloud), derived);
    let echo = cloud.get(&lb_id());
    cloud.put(&lb_id(), echo);
}

#[test]
fn public_ips_are_guarded() {
    let mut cloud = Cloud::new();
    let pip = cloud.pip("a");
    let basic = net("publicIPAddresses/basic");
    cloud.put(&basic, common::pip("IPv4", "Basic"));
    cloud.refused(&lb_id(), balancer(&basic, vec![]), "PublicIPAndLBSkuDoNotMatch");
    let mut twice = balancer(&pip, vec![]);
    let second = json!({"name": "b", "properties": {"publicIPAddress": {"id": pip}}});
    twice["properties"]["frontendIPConfigurations"].as_array_mut().unwrap().push(second);
    cloud.refused(&lb_id(), twice, "PublicIPReferencedByMultipleIPConfigs");
    cloud.put(&lb_id(), balancer(&pip, vec![]));
    let other = net("loadBalancers/other");
    cloud.refused(&other, balancer(&pip, vec![]), "PublicIPAddressInUse");
    let refused = cloud.delete(&pip);
    assert_eq!((refused.status, refused.code()), (400, Some("PublicIPAddressCannotBeDeleted")));
    assert_eq!(cloud.delete(&lb_id()).status, 200);
    assert_eq!(cloud.delete(&pip).status, 200);
    assert_eq!(cloud.delete(&pip).status, 204);
}

#[test]
fn frontends_are_all_public_or_all_internal() {
    let mut cloud = Cloud::new();
    let pip = cloud.pip("a");
    let subnet = json!({"id": net("virtualNetworks/vnet/subnets/nodes")});
    let mut mixed = balancer(&pip, vec![]);
    let inner = json!({"name": "in", "properties": {"subnet": subnet}});
    mixed["properties"]["frontendIPConfigurations"].as_array_mut().unwrap().push(inner);
    let code = "PublicAndPrivateFrontendIPConfigurationsNotAllowed";
    cloud.refused(&lb_id(), mixed, code);
    let mut v6 = Cloud::with(Options { ipv6_needs_ipv4: Switch::On, ..Options::default() });
    let pip = net("publicIPAddresses/six");
    v6.put(&pip, common::pip("IPv6", "Standard"));
    assert_eq!(v6.get(&pip)["properties"]["ipAddress"], "2603:1000::1");
    let code = "AtleastOneIpV4RequiredForIpV6LbFrontendIpConfiguration";
    v6.refused(&lb_id(), balancer(&pip, vec![]), code);
}

fn internal(frontends: &[(&str, Value)]) -> Value {
    let list: Vec<Value> = frontends
        .iter()
        .map(|(name, inside)| json!({"name": name, "properties": inside}))
        .collect();
    json!({"location": "eastus", "sku": {"name": "Standard"},
        "properties": {"frontendIPConfigurations": list}})
}

#[test]
fn private_addresses_are_given_out_and_kept() {
    let mut cloud = Cloud::new();
    let nodes = json!({"id": net("virtualNetworks/vnet/subnets/nodes")});
    let apps = json!({"id": net("virtualNetworks/vnet/subnets/apps")});
    let dynamic = |subnet: &Value| json!({"subnet": subnet});
    let fixed = |ip: &str| {
        json!({
        "subnet": nodes, "privateIPAllocationMethod": "Static", "privateIPAddress": ip})
    };
    let address = |lb: &Value, n: usize| -> String {
        let front = &lb["properties"]["frontendIPConfigurations"][n]["properties"];
        front["privateIPAddress"].as_str().unwrap().to_owned()
    };
    let v6 = json!({"subnet": nodes, "privateIPAddressVersion": "IPv6"});
    let lb = cloud.put(
        &lb_id(),
        internal(&[
            ("a", dynamic(&nodes)),
            ("b", dynamic(&nodes)),
            ("c", dynamic(&apps)),
            ("d", v6),
        ]),
    );
    let found: Vec<String> = (0..4).map(|n| address(&lb, n)).collect();
    assert_eq!(found, ["10.224.100.5", "10.224.100.6", "10.225.0.4", "fd00::ff:1"]);
    let again = cloud.put(&lb_id(), internal(&[("b", dynamic(&nodes)), ("e", dynamic(&nodes))]));
    assert_eq!(address(&again, 0), "10.224.100.6", "b keeps its address");
    assert_eq!(address(&again, 1), "10.224.100.5", "a's is free again");
    let other = net("loadBalancers/other");
    let taken = internal(&[("x", fixed("10.224.100.6"))]);
    cloud.refused(&other, taken, "PrivateIPAddressIsAllocated");
    let machine = internal(&[("x", fixed("10.224.0.4"))]);
    cloud.refused(&other, machine, "PrivateIPAddressIsAllocated");
    let outside = internal(&[("x", fixed("10.9.0.4"))]);
    cloud.refused(&other, outside, "PrivateIPAddressNotInSubnet");
    let reserved = internal(&[("x", fixed("10.224.0.1"))]);
    cloud.refused(&other, reserved, "PrivateIPAddressInReservedRange");
    cloud.put(&other, internal(&[("x", fixed("10.224.200.1"))]));
}

#[test]
fn nics_do_not_mix_balancers() {
    let mut cloud = Cloud::new();
    let (a, b) = (cloud.pip("a"), cloud.pip("b"));
    cloud.put(&lb_id(), balancer(&a, vec![]));
    let other = net("loadBalancers/other");
    cloud.put(&other, balancer(&b, vec![]));
    let nic = net("networkInterfaces/nic");
    let body = |pools: Value| {
        json!({"location": "eastus", "properties": {"ipConfigurations": [{"name": "c",
            "properties": {"subnet": {"id": net("virtualNetworks/vnet/subnets/nodes")},
                "loadBalancerBackendAddressPools": pools}}]}})
    };
    let one = below("backendAddressPools/pool");
    let two = json!({"id": format!("{other}/backendAddressPools/pool")});
    let code = "NetworkInterfaceUsesMultipleLoadBalancersOfSameType";
    cloud.refused(&nic, body(json!([one, two])), code);
    cloud.put(&nic, body(json!([one])));
    assert_eq!(cloud.delete(&lb_id()).status, 200);
    let left = cloud.get(&nic);
    let inside = &left["properties"]["ipConfigurations"][0]["properties"];
    assert_eq!(inside["loadBalancerBackendAddressPools"], json!([]), "the pool is gone");
}

#[test]
fn a_load_balancer_keeps_its_sku() {
    let mut cloud = Cloud::new();
    let address = net("publicIPAddresses/a");
    cloud.put(&address, pip("IPv4", "Basic"));
    let mut basic = balancer(&address, vec![]);
    basic["sku"] = json!({"name": "Basic"});
    cloud.put(&lb_id(), basic.clone());
    basic["sku"] = json!({"name": "Standard"});
    cloud.refused(&lb_id(), basic, "SkuCannotBeChangedOnUpdate");
}

#[test]
fn only_a_static_address_that_nobody_uses_becomes_standard() {
    let mut cloud = Cloud::new();
    let address = net("publicIPAddresses/a");
    let mut basic = pip("IPv4", "Basic");
    basic["properties"]["publicIPAllocationMethod"] = json!("Dynamic");
    cloud.put(&address, basic.clone());
    cloud.refused(&address, pip("IPv4", "Standard"), "SkuCannotBeChangedOnUpdate");
    basic["properties"]["publicIPAllocationMethod"] = json!("Static");
    cloud.put(&address, basic);
    let mut user = balancer(&address, vec![]);
    user["sku"] = json!({"name": "Basic"});
    cloud.put(&lb_id(), user);
    cloud.refused(&address, pip("IPv4", "Standard"), "SkuCannotBeChangedOnUpdate");
    assert_eq!(cloud.delete(&lb_id()).status, 200);
    cloud.put(&address, pip("IPv4", "Standard"));
}

#[test]
fn pools_of_basic_load_balancers_take_no_addresses() {
    let mut cloud = Cloud::new();
    let address = net("publicIPAddresses/a");
    cloud.put(&address, pip("IPv4", "Basic"));
    let mut basic = balancer(&address, vec![]);
    basic["sku"] = json!({"name": "Basic"});
    basic["properties"]["backendAddressPools"] = json!([{"name": "p", "properties": {
        "virtualNetwork": {"id": net("virtualNetworks/vnet")},
        "loadBalancerBackendAddresses": [
            {"name": "n", "properties": {"ipAddress": "10.224.0.4"}}]}}]);
    cloud.refused(&lb_id(), basic, "BackendAddressPoolAddressesNeedStandardSku");
}
