//! Target ports that are names lead to the number that Pods agree on.
#![allow(clippy::unwrap_used, reason = "a failed unwrap here is a failed test")]

use promise::{Scene, judge, unanswered};
use serde_json::{Value, json};
use std::sync::Arc;

const ROOT: &str = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network";
const UID: &str = "00000000-0000-4000-8000-000000000010";

/// A Service with the ports `a` to a name and `b` to 8443.
fn service() -> Value {
    json!({"metadata": {"name": "web", "namespace": "default", "uid": UID,
            "finalizers": ["service.kubernetes.io/load-balancer-cleanup",
                "servicegateway.azure.com/service-cleanup"]},
        "spec": {"type": "LoadBalancer", "ipFamilies": ["IPv4"], "ports": [
            {"name": "a", "protocol": "TCP", "port": 80, "targetPort": "http"},
            {"name": "b", "protocol": "TCP", "port": 443, "targetPort": 8443}]}})
}

/// A slice with one Pod on node n.
fn slice(name: &str, number: u16, ready: bool) -> Arc<Value> {
    let last = name.len();
    Arc::new(json!({"metadata": {"name": name, "namespace": "default",
            "labels": {"kubernetes.io/service-name": "web"}},
        "ports": [{"name": "a", "port": number}, {"name": "b", "port": 8443}],
        "endpoints": [{"addresses": [format!("10.244.0.{last}")], "nodeName": "n",
            "conditions": {"ready": ready}}]}))
}

/// What is said of the rules that lead from these ports to those.
fn said(slices: &[Arc<Value>], rules: &[(u16, u16)]) -> Vec<String> {
    let balancer = format!("{ROOT}/loadBalancers/{UID}");
    let frontend = format!("{balancer}/frontendIPConfigurations/frontend");
    let rule = |(from, to): &(u16, u16)| {
        json!({"name": format!("rule-tcp-{from}"), "properties": {
            "protocol": "Tcp", "frontendPort": from, "backendPort": to,
            "idleTimeoutInMinutes": 4, "enableTcpReset": true,
            "frontendIPConfiguration": {"id": frontend},
            "backendAddressPool": {"id": format!("{balancer}/backendAddressPools/{UID}")}}})
    };
    let rules: Vec<Value> = rules.iter().map(rule).collect();
    let balancer = json!({"id": balancer, "properties": {"loadBalancingRules": rules}});
    let scene = scene(slices, vec![Arc::new(balancer)]);
    let broken = judge(&scene).into_iter().map(|broken| broken.text);
    broken.filter(|text| text.contains("rule")).collect()
}

fn scene(slices: &[Arc<Value>], resources: Vec<Arc<Value>>) -> Scene {
    Scene {
        config: json!({"subscriptionId": "s", "resourceGroup": "rg", "location": "eastus",
            "vnetName": "vnet", "subnetName": "nodes", "loadBalancerSku": "service",
            "serviceGatewayEnabled": true, "loadBalancerBackendPoolConfigurationType": "podIP"}),
        cluster: "kubernetes".to_owned(),
        services: vec![Arc::new(service())],
        slices: slices.to_vec(),
        resources,
        ..Scene::default()
    }
}

#[test]
fn where_pods_agree_the_rule_leads_to_their_number() {
    let agreed = [slice("w", 8080, true), slice("we", 8080, true), slice("web", 9090, false)];
    let kept: Vec<String> = Vec::new();
    assert_eq!(said(&agreed, &[(80, 8080), (443, 8443)]), kept);
    assert!(said(&agreed, &[(80, 9090), (443, 8443)])[0].contains("backendPort of rule-tcp-80"));
    assert!(said(&agreed, &[(443, 8443)])[0].contains("lacks rule-tcp-80"));
    assert!(said(&agreed, &[(80, 8080)])[0].contains("lacks rule-tcp-443"));
    let unready = [slice("w", 8080, false)];
    assert!(said(&unready, &[(443, 8443)])[0].contains("lacks rule-tcp-80"));
}

#[test]
fn where_they_do_not_it_is_as_before() {
    let differ = [slice("w", 8080, true), slice("we", 9090, true)];
    let kept: Vec<String> = Vec::new();
    for rules in [&[(80, 8080), (443, 8443)][..], &[(443, 8443)]] {
        assert_eq!(said(&differ, rules), kept);
        assert_eq!(said(&[], rules), kept);
    }
    assert!(said(&differ, &[(80, 8080)])[0].contains("lacks rule-tcp-443"));
}

#[test]
fn a_number_that_another_port_has_gets_no_rule() {
    let shared = [slice("w", 8443, true)];
    let kept: Vec<String> = Vec::new();
    assert_eq!(said(&shared, &[(443, 8443)]), kept);
    assert!(said(&shared, &[(80, 8443), (443, 8443)])[0].contains("shares another port's target"));
}

#[test]
fn a_service_may_wait_for_its_pods_only_where_no_port_has_a_number() {
    let mut scene = scene(&[], Vec::new());
    assert!(unanswered(&scene).is_empty());
    let mut web = service();
    web["spec"]["ports"].as_array_mut().unwrap().truncate(1);
    web["status"]["conditions"] = json!([{"type": "ballast.dev/Programmed", "status": "True"}]);
    scene.services = vec![Arc::new(web)];
    let told = |scene: &Scene| judge(scene).iter().any(|b| b.text.contains("is not False"));
    assert!(told(&scene));
    assert_eq!(unanswered(&scene).into_iter().collect::<Vec<_>>(), ["default/web"]);
    scene.slices.push(slice("w", 8080, true));
    assert!(unanswered(&scene).is_empty() && !told(&scene));
}

#[test]
fn an_address_is_where_the_slice_that_was_written_last_says() {
    let node = |name: &str, address: &str| {
        Arc::new(json!({"metadata": {"name": name},
            "status": {"addresses": [{"type": "InternalIP", "address": address}]}}))
    };
    let said = |versions: [&str; 2], location: &str| {
        let listed = ["n", "m"].iter().zip(versions).map(|(node, version)| {
            let mut slice = Value::clone(&slice("w", 8080, true));
            slice["metadata"]["resourceVersion"] = json!(version);
            slice["endpoints"][0]["nodeName"] = json!(node);
            Arc::new(slice)
        });
        let mut scene = scene(&listed.collect::<Vec<_>>(), Vec::new());
        scene.nodes = vec![node("n", "10.224.0.4"), node("m", "10.224.0.5")];
        scene.gateway = Some(json!({"locations": {location: {"10.244.0.1": [UID]}}}));
        judge(&scene).iter().any(|broken| broken.text.contains("lists 10.244.0.1 as"))
    };
    for (versions, right, wrong) in
        [(["9", "10"], "10.224.0.5", "10.224.0.4"), (["10", "9"], "10.224.0.4", "10.224.0.5")]
    {
        assert!(!said(versions, right) && said(versions, wrong), "{versions:?}");
    }
}

#[test]
fn a_container_load_balancer_is_in_the_region_of_the_cloud_config_and_in_no_edge_zone() {
    let said = |mut balancer: Value, stood: bool| {
        balancer["id"] = json!(format!("{ROOT}/loadBalancers/{UID}"));
        let balancer = Arc::new(balancer);
        let mut scene = scene(&[], vec![Arc::clone(&balancer)]);
        scene.before = if stood { vec![balancer] } else { Vec::new() };
        let broken = judge(&scene).into_iter().map(|broken| broken.text);
        let found = broken.filter(|text| text.contains("region") || text.contains("edge zone"));
        found.collect::<Vec<String>>()
    };
    let edge = json!({"type": "EdgeZone", "name": "losangeles"});
    let none: Vec<String> = Vec::new();
    assert_eq!(said(json!({"location": "East US"}), false), none);
    assert!(said(json!({"location": "westus"}), false)[0].contains("the region of"));
    assert!(said(json!({"extendedLocation": edge}), false)[0].contains("the edge zone of"));
    assert_eq!(said(json!({"location": "westus"}), true), none, "it stood before");
}

#[test]
fn another_clusters_load_balancers_over_nodes_suspend_no_promise() {
    let base = "a0000000000000000000000000000001";
    let ip = |uid: &str| {
        let mut ip = json!({"id": format!("{ROOT}/publicIPAddresses/kubernetes-{base}"),
            "sku": {"name": "Standard"}, "properties": {"ipAddress": "20.0.0.1"},
            "tags": {"k8s-azure-service": "default/web", "k8s-azure-cluster-name": "kubernetes",
                "ballast-cluster-uid": uid}});
        if uid.is_empty() {
            ip["tags"].as_object_mut().unwrap().retain(|key, _| key != "ballast-cluster-uid");
        }
        ip
    };
    let balancer = |name: &str| {
        json!({"id": format!("{ROOT}/loadBalancers/{name}"), "sku": {"name": "Standard"},
            "properties": {"frontendIPConfigurations": [{"name": base, "properties": {}}]}})
    };
    let judged = |resource: Value| {
        let mut scene = scene(&[], vec![Arc::new(resource)]);
        let system = json!({"metadata": {"name": "kube-system", "uid": "ours"}});
        scene.namespaces = vec![Arc::new(system)];
        !judge(&scene).is_empty()
    };
    // A Service without its load balancer is a promise that is not kept.
    assert!(judged(ip("another")) && judged(balancer("second")));
    assert!(!judged(ip("ours")) && !judged(ip("")) && !judged(balancer("kubernetes")));
}
