//! A small estate by hand in which every promise is kept, and each field of it spoilt.
#![allow(clippy::unwrap_used, reason = "a failed unwrap here is a failed test")]

use promise::{Broken, Scene, judge};
use serde_json::{Value, json};
use std::sync::Arc;

const ROOT: &str = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network";
const BASE: &str = "a0000000000000000000000000000001";
const SET: &str = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Compute\
    /virtualMachineScaleSets/vmss/virtualMachines";

fn id(rest: &str) -> String {
    format!("{ROOT}/{rest}")
}

fn below(rest: &str) -> Value {
    json!({"id": id(&format!("loadBalancers/kubernetes/{rest}"))})
}

fn node(name: &str, number: u32) -> Value {
    json!({"metadata": {"name": name, "labels": {}},
        "spec": {"providerID": format!("azure://{SET}/{number}")},
        "status": {"addresses": [
            {"type": "InternalIP", "address": format!("10.0.0.{number}")},
            {"type": "InternalIP", "address": format!("fd00::{number}")}]}})
}

fn service() -> Value {
    json!({"metadata": {"name": "web", "namespace": "default",
            "uid": "00000000-0000-0000-0000-000000000010",
            "finalizers": ["service.kubernetes.io/load-balancer-cleanup"],
            "annotations": {"service.beta.kubernetes.io/azure-load-balancer-tcp-idle-timeout": "9",
                "service.beta.kubernetes.io/azure-load-balancer-health-probe-interval": "7"}},
        "spec": {"type": "LoadBalancer", "ipFamilies": ["IPv4", "IPv6"],
            "sessionAffinity": "ClientIP", "ports": [
                {"name": "http", "protocol": "TCP", "port": 80, "nodePort": 30080,
                    "appProtocol": "http"},
                {"name": "dns", "protocol": "UDP", "port": 53, "nodePort": 30053}]},
        "status": {"loadBalancer": {"ingress": [{"ip": "20.0.0.1"}, {"ip": "2603::1"}]},
            "conditions": [{"type": "ballast.dev/Programmed", "status": "True"}]}})
}

fn public_ip(suffix: &str, version: &str, address: &str) -> Value {
    json!({"id": id(&format!("publicIPAddresses/kubernetes-{BASE}{suffix}")),
        "sku": {"name": "Standard"},
        "tags": {"k8s-azure-service": "default/web", "k8s-azure-cluster-name": "kubernetes"},
        "properties": {"publicIPAllocationMethod": "Static", "publicIPAddressVersion": version,
            "ipAddress": address}})
}

fn frontend(suffix: &str) -> Value {
    let name = format!("{BASE}{suffix}");
    let mut part = below(&format!("frontendIPConfigurations/{name}"));
    part["name"] = json!(name);
    let ip = id(&format!("publicIPAddresses/kubernetes-{BASE}{suffix}"));
    part["properties"] = json!({"publicIPAddress": {"id": ip}});
    part
}

fn rule(protocol: &str, port: u32, suffix: &str) -> Value {
    let name = format!("{BASE}-{}-{port}{suffix}", protocol.to_uppercase());
    let pool = format!("backendAddressPools/kubernetes{suffix}");
    let tcp = protocol == "Tcp";
    let mut inside = json!({"protocol": protocol, "frontendPort": port, "backendPort": port,
        "enableFloatingIP": true, "idleTimeoutInMinutes": 9, "loadDistribution": "SourceIP",
        "enableTcpReset": tcp, "disableOutboundSnat": true,
        "frontendIPConfiguration": below(&format!("frontendIPConfigurations/{BASE}{suffix}")),
        "backendAddressPool": below(&pool)});
    if tcp {
        inside["probe"] = below(&format!("probes/{name}"));
    }
    json!({"name": name, "properties": inside})
}

fn probe(suffix: &str) -> Value {
    json!({"name": format!("{BASE}-TCP-80{suffix}"), "properties": {"protocol": "Http",
        "port": 30080, "requestPath": "/", "intervalInSeconds": 7, "probeThreshold": 2}})
}

fn pool(suffix: &str, addresses: [&str; 2]) -> Value {
    let members: Vec<Value> = addresses
        .iter()
        .map(|address| json!({"name": address, "properties": {"ipAddress": address}}))
        .collect();
    json!({"name": format!("kubernetes{suffix}"),
        "properties": {"loadBalancerBackendAddresses": members}})
}

fn balancer() -> Value {
    json!({"id": id("loadBalancers/kubernetes"), "sku": {"name": "Standard"}, "properties": {
        "frontendIPConfigurations": [frontend(""), frontend("-IPv6")],
        "backendAddressPools": [pool("", ["10.0.0.1", "10.0.0.2"]),
            pool("-IPv6", ["fd00::1", "fd00::2"])],
        "loadBalancingRules": [rule("Tcp", 80, ""), rule("Udp", 53, ""),
            rule("Tcp", 80, "-IPv6"), rule("Udp", 53, "-IPv6")],
        "probes": [probe(""), probe("-IPv6")]}})
}

fn opening(name: &str, priority: u32, protocol: &str, port: &str, to: &str) -> Value {
    json!({"name": format!("k8s-azure-lb_allow_{name}"), "properties": {"access": "Allow",
        "direction": "Inbound", "priority": priority, "protocol": protocol,
        "sourceAddressPrefix": "Internet", "sourcePortRange": "*",
        "destinationAddressPrefix": to, "destinationPortRanges": [port]}})
}

fn group() -> Value {
    json!({"id": id("networkSecurityGroups/nsg"), "properties": {"securityRules": [
        opening("IPv4_1", 500, "Tcp", "80", "20.0.0.1"),
        opening("IPv4_2", 501, "Udp", "53", "20.0.0.1"),
        opening("IPv6_1", 502, "Tcp", "80", "2603::1"),
        opening("IPv6_2", 503, "Udp", "53", "2603::1")]}})
}

fn config() -> Value {
    json!({"subscriptionId": "s", "resourceGroup": "rg", "location": "eastus",
        "vnetName": "vnet", "subnetName": "nodes", "securityGroupName": "nsg",
        "primaryScaleSetName": "vmss", "disableOutboundSNAT": true,
        "loadBalancerBackendPoolConfigurationType": "nodeIP"})
}

/// A Service of two families and two ports on two nodes.
fn kept() -> [Vec<Value>; 3] {
    let resources = vec![
        balancer(),
        public_ip("", "IPv4", "20.0.0.1"),
        public_ip("-IPv6", "IPv6", "2603::1"),
        group(),
    ];
    [vec![service()], vec![node("n1", 1), node("n2", 2)], resources]
}

fn scene([services, nodes, resources]: [Vec<Value>; 3], config: Value) -> Scene {
    let shared = |all: Vec<Value>| all.into_iter().map(Arc::new).collect();
    Scene {
        config,
        cluster: "kubernetes".to_owned(),
        services: shared(services),
        nodes: shared(nodes),
        resources: shared(resources),
        ..Scene::default()
    }
}

fn look(all: [Vec<Value>; 3], config: Value) -> Vec<Broken> {
    judge(&scene(all, config))
}

/// The same in a region with two zones.
fn zoned(all: [Vec<Value>; 3], config: Value) -> Scene {
    Scene { zones: vec!["1".to_owned(), "2".to_owned()], ..scene(all, config) }
}

/// Puts a value at a place; one that ends with `/-` is appended, `null` takes a field away.
fn put(target: &mut Value, place: &str, value: &Value) {
    if let Some(list) = place.strip_suffix("/-") {
        target.pointer_mut(list).unwrap().as_array_mut().unwrap().push(value.clone());
        return;
    }
    let (parent, key) = place.rsplit_once('/').unwrap();
    let parent = target.pointer_mut(parent).unwrap();
    match parent {
        Value::Array(items) if value.is_null() => {
            items.remove(key.parse().unwrap());
        }
        Value::Array(items) => items[key.parse::<usize>().unwrap()] = value.clone(),
        other => other[key] = value.clone(),
    }
}

#[test]
fn what_is_kept_breaks_nothing() {
    assert_eq!(look(kept(), config()), Vec::new());
}

/// Spoils one place and looks whether that promise names it.
fn spoil(group: usize, at: usize, place: &str, value: &Value, promise: &str, named: &str) {
    let mut scene = kept();
    put(&mut scene[group][at], place, value);
    let broken = look(scene, config());
    let seen = broken.iter().any(|b| b.promise == promise && b.to_string().contains(named));
    assert!(seen, "{place} = {value}: {promise} does not name {named:?} in {broken:#?}");
}

#[test]
fn every_field_of_a_rule() {
    let fields = [
        ("protocol", json!("Udp"), "protocol"),
        ("frontendPort", json!(81), "frontend port"),
        ("backendPort", json!(30080), "backend port"),
        ("enableFloatingIP", json!(false), "floating IP"),
        ("idleTimeoutInMinutes", json!(4), "idle timeout"),
        ("loadDistribution", json!("Default"), "affinity"),
        ("enableTcpReset", json!(false), "TCP reset"),
        ("disableOutboundSnat", json!(false), "outbound SNAT"),
        ("frontendIPConfiguration", below("frontendIPConfigurations/other"), "frontend"),
        ("backendAddressPool", below("backendAddressPools/other"), "pool"),
    ];
    for (field, value, named) in fields {
        let place = format!("/properties/loadBalancingRules/0/properties/{field}");
        spoil(2, 0, &place, &value, "rule", &format!("default/web: rule: the {named}"));
    }
    for at in 0..4 {
        let place = format!("/properties/loadBalancingRules/{at}");
        spoil(2, 0, &place, &Value::Null, "rule", "does not exist");
    }
}

#[test]
fn every_field_of_a_probe() {
    let fields = [
        ("protocol", json!("Tcp"), "protocol"),
        ("port", json!(80), "port"),
        ("requestPath", json!("/other"), "path"),
        ("intervalInSeconds", json!(5), "interval"),
        ("probeThreshold", json!(3), "threshold"),
    ];
    for (field, value, named) in fields {
        let place = format!("/properties/probes/1/properties/{field}");
        spoil(2, 0, &place, &value, "probe", &format!("the {named} of probe"));
    }
    spoil(2, 0, "/properties/probes/0", &Value::Null, "probe", "does not exist");
    let place = "/properties/loadBalancingRules/0/properties/probe";
    spoil(2, 0, place, &Value::Null, "probe", "the probe of rule");
    let place = "/properties/loadBalancingRules/1/properties/probe";
    spoil(2, 0, place, &below(&format!("probes/{BASE}-TCP-80")), "probe", "the probe of rule");
}

/// With HA ports the first probe that can be made counts: a Service is served with it, and refused
/// where all are wrong.
#[test]
fn ha_ports_need_one_probe_that_is_right() {
    let served = |annotations: &[(&str, &str)]| {
        let mut scene = kept();
        let service = &mut scene[0][0];
        let ha = "azure-load-balancer-enable-high-availability-ports";
        let all = [("azure-load-balancer-internal", "true"), (ha, "true")];
        for (key, value) in all.iter().chain(annotations) {
            let key = format!("service.beta.kubernetes.io/{key}");
            service["metadata"]["annotations"][key] = json!(value);
        }
        service["spec"]["ipFamilies"] = json!(["IPv4"]);
        service["spec"]["ports"][1] =
            json!({"name": "https", "protocol": "TCP", "port": 443, "nodePort": 30443});
        let subnet = id("virtualNetworks/vnet/subnets/nodes");
        scene[2].push(json!({"id": subnet, "properties": {"addressPrefix": "10.0.0.0/16"}}));
        look(scene, config()).iter().any(|broken| broken.promise == "frontend")
    };
    let first = ("port_80_health-probe_interval", "3");
    let second = ("port_443_health-probe_port", "admin");
    assert!(served(&[]));
    assert!(served(&[first]));
    assert!(served(&[second]));
    assert!(!served(&[first, second]));
    assert!(!served(&[("azure-load-balancer-health-probe-interval", "3")]));
}

#[test]
fn frontends_and_public_ips() {
    spoil(2, 0, "/properties/frontendIPConfigurations/1", &Value::Null, "frontend", "IPv6");
    spoil(2, 0, "/sku/name", &json!("Basic"), "frontend", "SKU");
    let place = "/properties/frontendIPConfigurations/0/properties/publicIPAddress/id";
    spoil(2, 0, place, &json!(id("publicIPAddresses/other")), "frontend", "public IP");
    spoil(2, 1, "/sku/name", &json!("Basic"), "public-ip", "SKU");
    spoil(2, 2, "/properties/publicIPAddressVersion", &json!("IPv4"), "public-ip", "version");
    let place = "/properties/publicIPAllocationMethod";
    spoil(2, 1, place, &json!("Dynamic"), "public-ip", "allocation");
    spoil(2, 1, "/properties/publicIPPrefix", &json!({"id": "/p"}), "public-ip", "prefix");
    spoil(2, 1, "/properties/ipAddress", &Value::Null, "public-ip", "no address");
}

/// It is found by its address, and bears another name.
#[test]
fn a_frontend_is_called_after_its_service() {
    let named = |by_others: bool| {
        let mut scene = kept();
        let old = below(&format!("frontendIPConfigurations/{BASE}-old"));
        let balancer = &mut scene[2][0]["properties"];
        balancer["frontendIPConfigurations"][0]["name"] = json!(format!("{BASE}-old"));
        balancer["frontendIPConfigurations"][0]["id"] = old["id"].clone();
        for at in 0..2 {
            let rule = &mut balancer["loadBalancingRules"][at];
            rule["properties"]["frontendIPConfiguration"] = old.clone();
        }
        if by_others {
            let other = json!({"name": "theirs", "properties": {"frontendIPConfiguration": old,
                "protocol": "Tcp", "frontendPort": 8_080, "backendPort": 8_080}});
            balancer["loadBalancingRules"].as_array_mut().unwrap().push(other);
        }
        let broken = look(scene, config());
        broken.iter().any(|b| b.text.starts_with("the name of frontend"))
    };
    assert!(named(false));
    assert!(!named(true), "another's rule leads from it");
}

#[test]
fn nothing_is_left_failed() {
    for at in 0..4 {
        let place = "/properties/provisioningState";
        spoil(2, at, place, &json!("Failed"), "state", "the last write of");
    }
}

#[test]
fn members_of_pools() {
    let members = "/properties/backendAddressPools/0/properties/loadBalancerBackendAddresses";
    spoil(2, 0, &format!("{members}/1"), &Value::Null, "pool", "node n2 is not in pool");
    let gone = json!({"properties": {"ipAddress": "10.0.0.9"}});
    spoil(2, 0, &format!("{members}/-"), &gone, "pool", "10.0.0.9 is in pool");
    spoil(2, 0, &format!("{members}/0/properties/adminState"), &json!("Down"), "pool", "Down");
    let exclude = json!({"node.kubernetes.io/exclude-from-external-load-balancers": "false"});
    spoil(1, 0, "/metadata/labels", &exclude, "pool", "node n1 is in pool");
    let control = json!({"node-role.kubernetes.io/control-plane": ""});
    spoil(1, 0, "/metadata/labels", &control, "pool", "node n1 is in pool");
    let taints = json!([{"key": "ToBeDeletedByClusterAutoscaler"}]);
    spoil(1, 1, "/spec/taints", &taints, "pool", "not Down");
    spoil(2, 0, "/properties/backendAddressPools/1", &Value::Null, "pool", "does not exist");
}

#[test]
fn nics_join_by_machine() {
    let nics = |numbers: [u32; 2]| -> Value {
        let nic =
            |n: &u32| json!({"id": format!("{SET}/{n}/networkInterfaces/n/ipConfigurations/a")});
        numbers.iter().map(nic).collect()
    };
    let machine = |number: u32| {
        let nic = |version| json!({"properties": {"privateIPAddressVersion": version}});
        json!({"id": format!("{SET}/{number}"), "properties": {
            "instanceView": {"statuses": [{"code": "PowerState/running"}]},
            "networkProfileConfiguration": {"networkInterfaceConfigurations": [
                {"properties": {"ipConfigurations": [nic("IPv4"), nic("IPv6")]}}]}}})
    };
    let set = |pools: [&str; 2]| {
        let pools = pools.map(|pool| below(&format!("backendAddressPools/{pool}")));
        let named =
            pools.map(|pool| json!({"properties": {"loadBalancerBackendAddressPools": [pool]}}));
        json!({"id": SET.trim_end_matches("/virtualMachines"), "properties": {
            "virtualMachineProfile": {"networkProfile": {"networkInterfaceConfigurations": [
                {"properties": {"ipConfigurations": named}}]}}}})
    };
    let with_model = |numbers, pools| {
        let mut scene = kept();
        scene[2].extend([machine(1), machine(2), set(pools)]);
        for at in 0..2 {
            let inside = json!({ "backendIPConfigurations": nics(numbers) });
            let place = format!("/properties/backendAddressPools/{at}/properties");
            put(&mut scene[2][0], &place, &inside);
        }
        let mut config = config();
        config["loadBalancerBackendPoolConfigurationType"] = json!("nodeIPConfiguration");
        look(scene, config)
    };
    let both = ["kubernetes", "kubernetes-IPv6"];
    assert_eq!(with_model([1, 2], both), Vec::new());
    let named = |broken: &[Broken], word: &str| {
        broken.iter().any(|b| b.promise == "pool" && b.text.contains(word))
    };
    let broken = with_model([1, 9], both);
    assert!(named(&broken, "node n2 is not in pool"), "{broken:#?}");
    assert!(named(&broken, "is no node"), "{broken:#?}");
    let broken = with_model([1, 2], ["kubernetes", "other"]);
    assert!(named(&broken, "scale set vmss lacks pool kubernetes-IPv6"), "{broken:#?}");
}

/// A machine that is of no scale set, with such a NIC, which the cluster's pools lack.
fn beside_a_single_machine(nic_body: Value) -> Vec<Broken> {
    let (machine, nic) = (id("virtualMachines/alone"), id("networkInterfaces/alone"));
    let mut scene = kept();
    scene[1].truncate(1);
    let mut node = node("n2", 2);
    node["spec"]["providerID"] = json!(format!("azure://{machine}"));
    scene[1].push(node);
    scene[2].push(json!({"id": machine, "properties": {
        "instanceView": {"statuses": [{"code": "PowerState/running"}]},
        "networkProfile": {"networkInterfaces": [{"id": nic, "properties": {"primary": true}}]}}}));
    scene[2].push(json!({"id": nic, "properties": nic_body}));
    let mut config = config();
    config["loadBalancerBackendPoolConfigurationType"] = json!("nodeIPConfiguration");
    look(scene, config)
}

#[test]
fn a_second_nic_of_a_machine_is_no_node() {
    let (machine, nic) = (id("virtualMachines/alone"), id("networkInterfaces/alone"));
    let joined = |nic: &str| json!({"id": format!("{nic}/ipConfigurations/a")});
    let mut scene = kept();
    scene[1].truncate(1);
    let second = format!("{nic}-2");
    let own = json!({"virtualMachine": {"id": machine}});
    scene[2].extend([
        json!({"id": machine, "properties": {
            "instanceView": {"statuses": [{"code": "PowerState/running"}]},
            "networkProfile": {"networkInterfaces": [
            {"id": second, "properties": {"primary": false}},
            {"id": nic, "properties": {"primary": true}}]}}}),
        json!({"id": nic, "properties": own}),
        json!({"id": second, "properties": own}),
    ]);
    scene[1][0]["spec"]["providerID"] = json!(format!("azure://{machine}"));
    let mut config = config();
    config["loadBalancerBackendPoolConfigurationType"] = json!("nodeIPConfiguration");
    let mut strangers = |nics: &[&str]| {
        let members: Vec<Value> = nics.iter().map(|nic| joined(nic)).collect();
        let inside = json!({ "backendIPConfigurations": members });
        put(&mut scene[2][0], "/properties/backendAddressPools/0/properties", &inside);
        let broken = look(scene.clone(), config.clone());
        broken
            .iter()
            .filter(|b| b.text.contains("pool kubernetes of") && b.text.contains("no node"))
            .count()
    };
    assert_eq!(strangers(&[&nic]), 0);
    assert_eq!(strangers(&[&nic, &second]), 1);
}

#[test]
fn a_nic_that_failed_may_be_left_out() {
    let lacks = |nic: Value| {
        beside_a_single_machine(nic).iter().any(|b| b.text.contains("node n2 is not in pool"))
    };
    assert!(lacks(json!({"provisioningState": "Succeeded"})));
    assert!(!lacks(json!({"provisioningState": "Failed"})), "left to whoever wrote it");
    let pool =
        json!({"id": id("loadBalancers/kubernetes-internal/backendAddressPools/kubernetes")});
    let joined = json!({"properties": {"loadBalancerBackendAddressPools": [pool]}});
    assert!(lacks(json!({"provisioningState": "Failed", "ipConfigurations": [joined]})));
}

/// A second Service without parts of its own, which is refused.
fn beside(annotations: Value, first: Value) -> Vec<String> {
    let mut scene = kept();
    scene[0][0]["metadata"]["annotations"] = first;
    let mut second = service();
    put(&mut second, "/metadata/name", &json!("other"));
    put(&mut second, "/metadata/uid", &json!("00000000-0000-0000-0000-000000000020"));
    put(&mut second, "/metadata/annotations", &annotations);
    put(&mut second, "/status/loadBalancer", &json!({}));
    put(&mut second, "/status/conditions/0/status", &json!("False"));
    scene[0].push(second);
    let broken = look(scene, config());
    let of_second = broken.into_iter().filter(|b| b.service.as_deref() == Some("default/other"));
    of_second.map(|b| b.text).collect()
}

/// Also where the Service that has it is refused for something else, and keeps what it has.
#[test]
fn an_additional_address_is_that_of_no_frontend() {
    let wants =
        |address: &str| json!({"service.beta.kubernetes.io/azure-additional-public-ips": address});
    let refused =
        json!({"service.beta.kubernetes.io/azure-load-balancer-tcp-idle-timeout": "soon"});
    for first in [json!({}), refused] {
        assert_eq!(beside(wants("20.0.0.1"), first.clone()), Vec::<String>::new(), "{first}");
        assert_ne!(beside(wants("20.9.9.9"), first), Vec::<String>::new());
    }
}

#[test]
fn zones_of_a_public_ip_that_was_made() {
    let judged = |before: bool| {
        let mut all = kept();
        all[2][1]["zones"] = json!(["1", "2"]);
        let mut scene = zoned(all, config());
        if before {
            scene.before.clone_from(&scene.resources);
        }
        judge(&scene)
    };
    let zones = |broken: &[Broken]| broken.iter().filter(|b| b.text.contains("zones")).count();
    assert_eq!(zones(&judged(false)), 1, "that of IPv6 has none");
    assert_eq!(zones(&judged(true)), 0, "what stood before is left");
}

/// A Service on an internal load balancer, whose frontends have these zones.
fn inside(zones: &Value, config: Value, more: &[(&str, &str)]) -> Vec<Broken> {
    let [mut services, nodes, mut resources] = kept();
    for (key, value) in [("internal", "true")].iter().chain(more) {
        let key = format!("service.beta.kubernetes.io/azure-load-balancer-{key}");
        services[0]["metadata"]["annotations"][key] = json!(value);
    }
    resources[0]["id"] = json!(id("loadBalancers/kubernetes-internal"));
    for (at, address) in ["10.0.0.99", "fd00::99"].into_iter().enumerate() {
        let frontend = &mut resources[0]["properties"]["frontendIPConfigurations"][at];
        frontend["zones"] = zones.clone();
        frontend["properties"] = json!({"privateIPAddress": address,
            "subnet": {"id": id("virtualNetworks/vnet/subnets/nodes")},
            "privateIPAddressVersion": if at == 0 { "IPv4" } else { "IPv6" }});
    }
    resources.push(json!({"id": id("virtualNetworks/vnet"), "properties": {"subnets": [
        {"id": id("virtualNetworks/vnet/subnets/nodes"), "name": "nodes",
            "properties": {"addressPrefixes": ["10.0.0.0/24", "fd00::/64"]}},
        {"id": id("virtualNetworks/vnet/subnets/apps"), "name": "apps",
            "properties": {"addressPrefixes": ["10.0.1.0/24", "fd00:1::/64"]}}]}}));
    judge(&zoned([services, nodes, resources], config))
}

#[test]
fn zones_of_an_internal_frontend() {
    let count = |zones: Value, config: Value| {
        inside(&zones, config, &[])
            .iter()
            .filter(|b| b.text.starts_with("the zones of frontend"))
            .count()
    };
    assert_eq!(count(json!(["1", "2"]), config()), 0);
    assert_eq!(count(json!(["1"]), config()), 2);
    assert_eq!(count(json!([]), config()), 2);
    let mut edge = config();
    edge["extendedLocationName"] = json!("losangeles");
    edge["extendedLocationType"] = json!("EdgeZone");
    assert_eq!(count(json!(["1", "2"]), edge.clone()), 2, "there are none in an edge zone");
    assert_eq!(count(json!([]), edge), 0);
}

/// Its frontend has the address, in the subnet that it names no more.
#[test]
fn a_pinned_address_is_of_the_subnet_that_is_named() {
    let denied = |more: &[(&str, &str)]| {
        let broken = inside(&json!(["1", "2"]), config(), more);
        broken.iter().any(|b| b.text.contains("the Service is refused: 10.0.0.99 is no free"))
    };
    assert!(!denied(&[("ipv4", "10.0.0.99")]), "it has that address");
    assert!(denied(&[("ipv4", "10.0.0.99"), ("internal-subnet", "apps")]));
}

#[test]
fn region_and_edge_zone() {
    spoil(2, 0, "/location", &json!("westus"), "region", "the region of kubernetes is");
    spoil(2, 1, "/location", &json!("westus"), "region", "the region of kubernetes-a");
    let zone = json!({"type": "EdgeZone", "name": "losangeles"});
    spoil(2, 0, "/extendedLocation", &zone, "region", "the edge zone of kubernetes is");
    let mut scene = kept();
    put(&mut scene[2][0], "/location", &json!("East US"));
    assert_eq!(look(scene, config()), Vec::new());
}

#[test]
fn status_condition_and_finalizer() {
    let ingress = "/status/loadBalancer/ingress";
    spoil(0, 0, &format!("{ingress}/1"), &Value::Null, "status", "the ingress is");
    spoil(0, 0, &format!("{ingress}/-"), &json!({"ip": "20.0.0.7"}), "status", "the ingress is");
    let host = json!({"ip": "20.0.0.1", "hostname": "a"});
    spoil(0, 0, &format!("{ingress}/0"), &host, "status", "the ingress is");
    let place = "/status/conditions/0/status";
    spoil(0, 0, place, &json!("False"), "status", "the condition is not True");
    spoil(0, 0, "/metadata/finalizers", &json!([]), "finalizer", "is absent");
    spoil(0, 0, "/spec/type", &json!("ClusterIP"), "finalizer", "wants no load balancer");
    spoil(0, 0, "/spec/type", &json!("ClusterIP"), "status", "wants no load balancer");
    spoil(0, 0, "/spec/type", &json!("ClusterIP"), "status", "the condition ballast.dev");
    let moved = json!({"type": "ballast.dev/Migrated", "status": "True"});
    spoil(0, 0, "/status/conditions/-", &moved, "status", "the Service has moved");
    let annotations = json!(
        {"service.beta.kubernetes.io/azure-load-balancer-tcp-idle-timeout": "3"});
    spoil(0, 0, "/metadata/annotations", &annotations, "status", "the Service is refused");
}

#[test]
fn a_note_is_told_by_the_condition() {
    const MODE: &str = "service.beta.kubernetes.io/azure-load-balancer-mode";
    let said = |annotation: Option<&str>, reason: &str, message: &str| {
        let mut scene = kept();
        let service = &mut scene[0][0];
        if let Some(value) = annotation {
            service["metadata"]["annotations"][MODE] = json!(value);
        }
        let condition = &mut service["status"]["conditions"][0];
        condition["reason"] = json!(reason);
        condition["message"] = json!(message);
        look(scene, config()).into_iter().map(|broken| broken.text).collect::<Vec<_>>()
    };
    let none: Vec<String> = Vec::new();
    let told = format!("{MODE}: \"other\" has no effect");
    assert_eq!(said(Some("other"), "ModeIgnored", &told), none);
    assert_eq!(said(Some(""), "Programmed", "Azure is as the Service asks."), none);
    let well = said(Some("other"), "Programmed", "Azure is as the Service asks.");
    assert!(well[0].contains("it must tell ModeIgnored"), "{well:?}");
    let of_another = said(Some("other"), "MalformedTag", "azure-pip-tags: \"a\" is ignored");
    assert!(of_another[0].contains("it must tell ModeIgnored"), "{of_another:?}");
    let idle = said(None, "ModeIgnored", &told);
    assert!(idle[0].contains("nothing is there to be noted"), "{idle:?}");
}

#[test]
fn who_is_held_back_is_told_by_which_annotation() {
    let said = |message: &str| {
        let mut scene = kept();
        scene[0][0]["metadata"]["annotations"]["ballast.dev/pause"] = json!("true");
        let condition = json!({"type": "ballast.dev/Programmed", "status": "False",
            "reason": "Paused", "message": message});
        scene[0][0]["status"]["conditions"] = json!([condition]);
        let broken = look(scene, config());
        broken.iter().any(|b| b.text.contains("names no annotation; its owner pauses it"))
    };
    assert!(!said("ballast.dev/pause: nothing of the Service is written (got \"true\")"));
    assert!(said("nothing is written"));
}

#[test]
fn nothing_that_no_service_asks_for() {
    let other = BASE.replace('1', "2");
    let part = json!({"name": other, "properties": {}});
    let rule = json!({"name": format!("{other}-TCP-80"), "properties": {}});
    let list = "/properties/frontendIPConfigurations/-";
    spoil(2, 0, list, &part, "nothing-else", &format!("frontend {other}"));
    spoil(2, 0, "/properties/loadBalancingRules/-", &rule, "nothing-else", "rule a");
    spoil(2, 0, "/properties/probes/-", &rule, "nothing-else", "probe a");
    let shared = json!({"name": "cluster-service-shared-health-probe", "properties": {}});
    spoil(2, 0, "/properties/probes/-", &shared, "nothing-else", "the shared probe");
    spoil(0, 0, "/spec/ports/1", &Value::Null, "nothing-else", "-UDP-53");
    spoil(0, 0, "/spec/type", &json!("ClusterIP"), "nothing-else", "public IP kubernetes-a");
    let place = "/properties/frontendIPConfigurations";
    spoil(2, 0, place, &json!([]), "nothing-else", "has no frontend");
}

/// How the names of another Service's parts begin.
fn other() -> String {
    BASE.replace('1', "2")
}

/// Another frontend, at 20.0.0.2, with a rule for the port 443; the frontend's id.
fn with_another_frontend() -> ([Vec<Value>; 3], Value) {
    let mut scene = kept();
    let other = other();
    let before = below(&format!("frontendIPConfigurations/{other}"));
    let ip = id(&format!("publicIPAddresses/kubernetes-{other}"));
    let frontend = json!({"name": other, "id": before["id"],
        "properties": {"publicIPAddress": {"id": ip}}});
    let rule = json!({"name": format!("{other}-TCP-443"), "properties": {"protocol": "Tcp",
        "frontendPort": 443, "backendPort": 443, "enableFloatingIP": true,
        "frontendIPConfiguration": before}});
    put(&mut scene[2][0], "/properties/frontendIPConfigurations/-", &frontend);
    put(&mut scene[2][0], "/properties/loadBalancingRules/-", &rule);
    scene[2].push(json!({"id": ip, "properties": {"ipAddress": "20.0.0.2"}}));
    (scene, before)
}

/// The port 443 may be open at the other frontend's address, and at no other.
fn opens_its_own_address_alone(scene: &[Vec<Value>; 3]) {
    for (to, named) in [("20.0.0.2", false), ("20.0.0.1", true)] {
        let mut scene = scene.clone();
        let door = opening("IPv4_3", 504, "Tcp", "443", to);
        put(&mut scene[2][3], "/properties/securityRules/-", &door);
        let broken = look(scene, config());
        let texts = broken.iter().map(ToString::to_string);
        let seen = texts.filter(|text| text.contains("/443 is open")).any(|t| t.contains(to));
        assert_eq!(seen, named, "{broken:#?}");
    }
}

/// What stays without its Service excuses no open rule to another Service's address.
#[test]
fn what_private_endpoints_are_connected_to_opens_its_own_address_alone() {
    let (mut scene, before) = with_another_frontend();
    let link = json!({"id": id("privateLinkServices/pls"),
        "tags": {"k8s-azure-owner-service": "default/gone",
            "k8s-azure-cluster-name": "kubernetes"},
        "properties": {"loadBalancerFrontendIpConfigurations": [before],
            "privateEndpointConnections": [{"properties": {
                "privateLinkServiceConnectionState": {"status": "Approved"}}}]}});
    scene[2].push(link);
    opens_its_own_address_alone(&scene);
}

/// Nor does what a refused Service keeps, though its status tells no address.
#[test]
fn what_a_refused_service_keeps_opens_its_own_address_alone() {
    let (mut scene, _) = with_another_frontend();
    let key = "service.beta.kubernetes.io/azure-load-balancer-tcp-idle-timeout";
    scene[0].push(json!({"metadata": {"name": "other", "namespace": "default",
            "uid": "00000000-0000-0000-0000-000000000020", "annotations": {key: "soon"}},
        "spec": {"type": "LoadBalancer", "ipFamilies": ["IPv4"], "ports": [
            {"name": "https", "protocol": "TCP", "port": 443, "nodePort": 30443}]}}));
    opens_its_own_address_alone(&scene);
}

#[test]
fn what_is_not_ours_breaks_nothing() {
    let mut scene = kept();
    let theirs = json!({"name": "theirs", "properties": {}});
    for collection in ["frontendIPConfigurations", "loadBalancingRules", "probes"] {
        put(&mut scene[2][0], &format!("/properties/{collection}/-"), &theirs);
    }
    scene[2].push(json!({"id": id("publicIPAddresses/theirs"), "properties": {}}));
    scene[2].push(json!({"id": id("loadBalancers/theirs"), "properties": {}}));
    assert_eq!(look(scene, config()), Vec::new());
}
