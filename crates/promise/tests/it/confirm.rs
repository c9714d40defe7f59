//! A Service whose owner confirms interruptions: what it has stays until then.
#![allow(clippy::unwrap_used, reason = "a failed unwrap here is a failed test")]

use promise::{Broken, Scene, judge};
use serde_json::{Value, json};
use std::sync::Arc;

const ROOT: &str = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network";
const BASE: &str = "a0000000000000000000000000000001";

fn id(rest: &str) -> String {
    format!("{ROOT}/{rest}")
}

/// It asks for TCP/80.
fn service(annotations: &Value, condition: &str) -> Value {
    json!({"metadata": {"name": "web", "namespace": "default", "annotations": annotations,
            "uid": "00000000-0000-0000-0000-000000000010",
            "finalizers": ["service.kubernetes.io/load-balancer-cleanup"]},
        "spec": {"type": "LoadBalancer", "ipFamilies": ["IPv4"], "ports": [
            {"name": "http", "protocol": "TCP", "port": 80, "nodePort": 30080}]},
        "status": {"loadBalancer": {"ingress": [{"ip": "20.0.0.1"}]},
            "conditions": [{"type": "ballast.dev/Programmed", "status": condition}]}})
}

fn resources(ports: &[(&str, u32)]) -> Vec<Arc<Value>> {
    let frontend = id(&format!("loadBalancers/kubernetes/frontendIPConfigurations/{BASE}"));
    let rule = |(protocol, port): &(&str, u32)| {
        json!({"name": format!("{BASE}-{}-{port}", protocol.to_uppercase()), "properties": {
            "protocol": protocol, "frontendPort": port,
            "frontendIPConfiguration": {"id": frontend}}})
    };
    let ip = id(&format!("publicIPAddresses/kubernetes-{BASE}"));
    let balancer = json!({"id": id("loadBalancers/kubernetes"), "properties": {
        "frontendIPConfigurations": [{"name": BASE, "id": frontend,
            "properties": {"publicIPAddress": {"id": ip}}}],
        "loadBalancingRules": ports.iter().map(rule).collect::<Vec<_>>()}});
    let ip = json!({"id": ip, "properties": {"ipAddress": "20.0.0.1",
        "publicIPAddressVersion": "IPv4"}});
    let group = json!({"id": id("networkSecurityGroups/nsg"), "properties": {}});
    vec![Arc::new(balancer), Arc::new(ip), Arc::new(group)]
}

fn scene(annotations: &Value, condition: &str, ports: &[(&str, u32)]) -> Scene {
    Scene {
        config: json!({"subscriptionId": "s", "resourceGroup": "rg", "location": "eastus",
            "vnetName": "vnet", "subnetName": "nodes",
            "securityGroupName": "nsg"}),
        cluster: "kubernetes".to_owned(),
        services: vec![Arc::new(service(annotations, condition))],
        resources: resources(ports),
        ..Scene::default()
    }
}

/// What is said of these promises.
fn said(scene: &Scene, promise: &str) -> Vec<String> {
    let broken = judge(scene).into_iter().filter(|broken| broken.promise == promise);
    broken.map(|broken: Broken| broken.text).collect()
}

const BOTH: [(&str, u32); 2] = [("Tcp", 80), ("Udp", 53)];

#[test]
fn who_would_lose_something_is_told_and_keeps_it() {
    let asks = json!({"ballast.dev/confirm": "True"});
    assert_eq!(said(&scene(&asks, "False", &BOTH), "status"), [""; 0]);
    let told = said(&scene(&asks, "True", &BOTH), "status");
    assert!(told[0].contains("has not confirmed the loss of [\"udp/53\"]"), "{told:?}");
    // With nothing to lose, and with all of it confirmed, it gets what it asks.
    assert_eq!(said(&scene(&asks, "True", &BOTH[..1]), "status"), [""; 0]);
    let all = json!({"ballast.dev/confirm": "true", "ballast.dev/confirmed": "20.0.0.9, UDP/53"});
    assert_eq!(said(&scene(&all, "True", &BOTH), "status"), [""; 0]);
    // Whoever does not ask for it is not held up.
    let none = json!({"ballast.dev/confirm": "yes"});
    assert_eq!(said(&scene(&none, "True", &BOTH), "status"), [""; 0]);
}

#[test]
fn each_of_its_belongings_counts() {
    const KEY: &str = "service.beta.kubernetes.io/azure-load-balancer-internal";
    let asks = json!({"ballast.dev/confirm": "true", KEY: "true"});
    let told = said(&scene(&asks, "True", &BOTH[..1]), "status");
    assert!(told[0].contains("[\"20.0.0.1\", \"kubernetes\"]"), "{told:?}");
}
