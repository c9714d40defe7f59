//! Services and nodes that have come to one of two load balancers.

use promise::{Scene, judge_newcomers};
use serde_json::{Value, json};
use std::sync::Arc;

const ROOT: &str = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network";

fn base(n: u8) -> String {
    format!("a{n:031}")
}

fn service(n: u8, annotations: &Value) -> Value {
    json!({"metadata": {"name": format!("web-{n}"), "namespace": "default",
            "uid": format!("00000000-0000-0000-0000-0000000000{n}0"), "annotations": annotations},
        "spec": {"type": "LoadBalancer", "ports": [{"port": 80, "protocol": "TCP"}]}})
}

/// A load balancer with so many rules of each of these Services.
fn balancer(name: &str, services: &[(u8, usize)]) -> Value {
    let id = format!("{ROOT}/loadBalancers/{name}");
    let below = |n: u8| format!("{id}/frontendIPConfigurations/{}", base(n));
    let frontend = |n: u8| {
        let ip = format!("{ROOT}/publicIPAddresses/kubernetes-{}", base(n));
        json!({"name": base(n), "id": below(n), "properties": {"publicIPAddress": {"id": ip}}})
    };
    let rule = |n: u8, at: usize| {
        json!({"name": format!("{}-TCP-{at}", base(n)),
            "properties": {"frontendIPConfiguration": {"id": below(n)}}})
    };
    let frontends = services.iter().map(|(n, _)| frontend(*n));
    let rules = services.iter().flat_map(|(n, rules)| (0..*rules).map(|at| rule(*n, at)));
    json!({"id": id, "properties": {
        "frontendIPConfigurations": frontends.collect::<Vec<_>>(),
        "loadBalancingRules": rules.collect::<Vec<_>>()}})
}

/// The cloud config of two load balancers.
fn two() -> Value {
    json!({"subscriptionId": "s", "resourceGroup": "rg", "location": "here",
        "loadBalancerSku": "standard", "vnetName": "vnet", "subnetName": "nodes",
        "securityGroupName": "nsg", "loadBalancerBackendPoolConfigurationType": "nodeIP",
        "multipleStandardLoadBalancerConfigurations":
            [{"name": "kubernetes", "primaryVMSet": "one"},
                {"name": "lb2", "primaryVMSet": "two"},
                {"name": "lb3", "primaryVMSet": "four", "allowServicePlacement": false}]})
}

/// Service 1 stood on `kubernetes` with four rules; what of the others is wrong.
fn found(services: &[(u8, Value)], now: [Value; 2]) -> Vec<String> {
    let group = json!({"id": format!("{ROOT}/networkSecurityGroups/nsg"), "properties": {}});
    let all = services.iter().map(|(n, annotations)| Arc::new(service(*n, annotations)));
    let scene = Scene {
        config: two(),
        cluster: "kubernetes".to_owned(),
        services: all.collect(),
        resources: now.into_iter().chain([group]).map(Arc::new).collect(),
        ..Scene::default()
    };
    let earlier = [balancer("kubernetes", &[(1, 4)]), balancer("lb2", &[])].map(Arc::new);
    let broken = judge_newcomers(&scene, &earlier);
    broken.iter().map(|b| format!("{} {}", b.service.as_deref().unwrap_or(""), b.promise)).collect()
}

#[test]
fn a_new_service_goes_where_the_fewest_rules_are() {
    let services = [(1, json!({})), (2, json!({})), (3, json!({}))];
    let on_lb2 = [balancer("kubernetes", &[(1, 4)]), balancer("lb2", &[(2, 2), (3, 2)])];
    assert_eq!(found(&services, on_lb2), Vec::<String>::new());
    // Whichever of the two came last found four rules on the one and two on the other.
    let parted = [balancer("kubernetes", &[(1, 4), (3, 2)]), balancer("lb2", &[(2, 2)])];
    assert_eq!(found(&services, parted), ["default/web-3 spread"]);
    // Service 3 came when there were five on the other.
    let full = [balancer("kubernetes", &[(1, 4), (3, 2)]), balancer("lb2", &[(2, 5)])];
    assert_eq!(found(&services, full), Vec::<String>::new());
}

#[test]
fn a_new_service_goes_to_none_that_is_closed() {
    let services = [(1, json!({})), (2, json!({}))];
    let closed = [balancer("kubernetes", &[(1, 4)]), balancer("lb3", &[(2, 1)])];
    assert_eq!(found(&services, closed), ["default/web-2 spread"]);
}

#[test]
fn a_service_that_names_its_place_or_address_is_not_judged() {
    let prefix = "service.beta.kubernetes.io";
    let placed = json!({format!("{prefix}/azure-load-balancer-configurations"): "kubernetes"});
    let byo = json!({format!("{prefix}/azure-pip-name"): "theirs"});
    for annotations in [placed, byo] {
        let services = [(1, json!({})), (2, annotations)];
        let now = [balancer("kubernetes", &[(1, 4), (2, 1)]), balancer("lb2", &[])];
        assert_eq!(found(&services, now), Vec::<String>::new());
    }
}

/// A node of a scale set that no load balancer calls its own.
fn node(n: u8) -> Arc<Value> {
    let machine = "providers/Microsoft.Compute/virtualMachineScaleSets/three/virtualMachines";
    let id = format!("azure:///subscriptions/s/resourceGroups/rg/{machine}/{n}");
    Arc::new(json!({"metadata": {"name": format!("n{n}")}, "spec": {"providerID": id},
        "status": {"addresses": [{"type": "InternalIP", "address": format!("10.0.0.{n}")}]}}))
}

/// Whether nodes that have come are where they are to be: these are behind the two load balancers,
/// and before there was but node 1 behind `kubernetes`.
fn are_spread(first: &[u8], second: &[u8]) -> bool {
    let behind = |name: &str, service: u8, nodes: &[u8]| {
        let mut balancer = balancer(name, &[(service, 1)]);
        let member = |n: &u8| json!({"properties": {"ipAddress": format!("10.0.0.{n}")}});
        let members: Vec<Value> = nodes.iter().map(member).collect();
        balancer["properties"]["backendAddressPools"] = json!([{"name": "kubernetes",
            "properties": {"loadBalancerBackendAddresses": members}}]);
        Arc::new(balancer)
    };
    let scene = Scene {
        config: two(),
        cluster: "kubernetes".to_owned(),
        nodes: first.iter().chain(second).map(|n| node(*n)).collect(),
        resources: vec![behind("kubernetes", 1, first), behind("lb2", 2, second)],
        ..Scene::default()
    };
    let earlier = [behind("kubernetes", 1, &[1]), behind("lb2", 2, &[])];
    let broken = judge_newcomers(&scene, &earlier);
    assert!(broken.iter().all(|b| b.promise == "spread" && b.service.is_none()), "{broken:?}");
    broken.is_empty()
}

#[test]
fn a_new_node_goes_where_the_fewest_nodes_are() {
    assert!(are_spread(&[1, 4], &[2, 3]));
    assert!(are_spread(&[1], &[2, 3]), "the last of them found one on each");
    assert!(!are_spread(&[1, 2, 3], &[4]), "the last of them found two there, and one");
    assert!(!are_spread(&[1, 2], &[]), "the new one found one there, and none");
    // One that stands stays.
    assert!(are_spread(&[1], &[]));
}
