//! A cluster of three nodes and an estate for tests.
#![allow(dead_code)]

pub mod container;
pub mod replay;

use azure_emulator::{
    Azure, Options as AzureOptions, Request, SampleGateway, SampleOptions, Switch, sample_estate,
};
use control::Options;
use kube_emulator::{ObjectRef, Ownership, Part, Patch, Store, StoreOptions};
use serde_json::{Map, Value, json};
pub use sim::scene::objects::scale_set;
pub use sim::scene::{GROUP, SUBSCRIPTION, network};
use sim::{Config, Laboratory};

pub const HOUR_MS: u64 = 3_600_000;
pub const DAY_MS: u64 = 24 * HOUR_MS;
/// How often the controller looks for drift.
pub const INTERVAL_MS: u64 = 120_000;
/// What annotations of the cloud provider begin with.
pub const PREFIX: &str = "service.beta.kubernetes.io/";
pub const INTERNAL: &str = "service.beta.kubernetes.io/azure-load-balancer-internal";
pub const PIP_NAME: &str = "service.beta.kubernetes.io/azure-pip-name";
pub const TIMEOUT: &str = "service.beta.kubernetes.io/azure-load-balancer-tcp-idle-timeout";
/// The address of the estate's `byo-pip`.
pub const BYO_ADDRESS: &str = "20.50.0.10";

pub fn config(more: &Value) -> Value {
    let mut config = json!({
        "cloud": "AzurePublicCloud", "tenantId": "t", "aadClientId": "c", "aadClientSecret": "s",
        "subscriptionId": SUBSCRIPTION, "resourceGroup": "rg", "location": "eastus",
        "vmType": "vmss", "primaryScaleSetName": "vmss", "subnetName": "nodes",
        "securityGroupName": "nsg", "vnetName": "vnet", "vnetResourceGroup": "rg",
        "loadBalancerSku": "standard", "loadBalancerBackendPoolConfigurationType": "nodeIP",
        "disableOutboundSNAT": true, "resourceManagerEndpoint": "http://127.0.0.1:1",
    });
    for (key, value) in more.as_object().into_iter().flatten() {
        config[key] = value.clone();
    }
    config
}

pub fn policy(more: &Value) -> Config {
    Config::new(config(more))
}

pub fn estate() -> Vec<Value> {
    let vnet = network("virtualNetworks/vnet");
    let subnet = |name: &str, prefix: &str| {
        json!({"id": format!("{vnet}/subnets/{name}"), "properties": {
            "addressPrefix": prefix, "addressPrefixes": [prefix],
            "privateLinkServiceNetworkPolicies": "Enabled"}})
    };
    let pip = |id: String, address: &str| {
        json!({"id": id, "sku": {"name": "Standard", "tier": "Regional"}, "properties": {
            "publicIPAllocationMethod": "Static", "publicIPAddressVersion": "IPv4",
            "ipAddress": address, "idleTimeoutInMinutes": 4}})
    };
    let far = GROUP.replace("/rg", "/pip-rg");
    vec![
        json!({"id": vnet, "properties": {"addressSpace": {
            "addressPrefixes": ["10.224.0.0/12", "fd00::/48"]}, "subnets": []}}),
        subnet("nodes", "10.224.0.0/16"),
        subnet("apps", "10.225.0.0/16"),
        json!({"id": network("networkSecurityGroups/nsg"), "properties": {"securityRules": []}}),
        json!({"id": network("publicIPPrefixes/prefix"), "sku": {"name": "Standard"},
            "properties": {"ipPrefix": "20.99.0.0/28"}}),
        pip(network("publicIPAddresses/byo-pip"), "20.50.0.10"),
        pip(format!("{far}/providers/Microsoft.Network/publicIPAddresses/byo-pip2"), "20.50.0.11"),
    ]
}

/// A node with a public IP of its own: it needs no other way out.
pub fn node(index: u32) -> Value {
    let name = format!("vmss{index:06}");
    let labels: Map<String, Value> =
        Map::from_iter([("kubernetes.io/hostname".to_owned(), json!(name))]);
    let id = format!(
        "azure://{GROUP}/providers/Microsoft.Compute/virtualMachineScaleSets/vmss\
         /virtualMachines/{index}"
    );
    let address = format!("10.224.{}.{}", index / 250, 4 + index % 250);
    json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels},
        "spec": {"providerID": id},
        "status": {"addresses": [
            {"type": "InternalIP", "address": address},
            {"type": "InternalIP", "address": format!("fd00::{:x}", 4 + index)},
            {"type": "ExternalIP", "address": format!("198.51.100.{}", 4 + index % 250)}]}})
}

/// A Service of one port; `index` makes its name and node port its own.
pub fn service(index: u32) -> Value {
    json!({"apiVersion": "v1", "kind": "Service",
        "metadata": {"name": format!("web-{index:04}"), "namespace": "default"},
        "spec": {"type": "LoadBalancer", "selector": {"app": "web"},
            "ports": [{"name": "http", "port": 80, "targetPort": 8080, "protocol": "TCP"}]}})
}

/// The same, with annotations under their whole keys.
pub fn annotated(index: u32, annotations: Value) -> Value {
    let mut service = service(index);
    service["metadata"]["annotations"] = annotations;
    service
}

pub fn laboratory(more: &Value) -> Laboratory {
    let store = StoreOptions { ownership: Ownership::AppliedOnly, ..StoreOptions::default() };
    let azure = AzureOptions { defaults: Switch::Off, ..AzureOptions::default() };
    let mut azure = Azure::new(azure);
    azure.seed(estate());
    let mut store = Store::new(store);
    for index in 0..3 {
        store.create(node(index), 0).expect("a node is created");
    }
    Laboratory::new(store, azure, policy(more), Options::default())
}

/// The same with a second load balancer, for the nodes of a set `pool` and the Services of a team.
pub fn pool_laboratory() -> Laboratory {
    laboratory(&json!({"multipleStandardLoadBalancerConfigurations": [
        {"name": "kubernetes", "primaryVMSet": "vmss"},
        {"name": "pool", "primaryVMSet": "pool",
            "serviceLabelSelector": {"matchLabels": {"team": "pool"}}}]}))
}

/// A node of the set `pool`.
pub fn pool_node(index: u32) -> Value {
    let mut node = node(index);
    let id = node["spec"]["providerID"].as_str().expect("it has one").replace("/vmss/", "/pool/");
    node["spec"]["providerID"] = json!(id);
    node["metadata"]["name"] = json!(format!("pool{index:06}"));
    node
}

/// This Service is of the team of the load balancer `pool`.
pub fn of_pool(mut service: Value) -> Value {
    service["metadata"]["labels"] = json!({"team": "pool"});
    service
}

/// The laboratory at rest with these Services.
pub fn served(services: impl IntoIterator<Item = Value>) -> Laboratory {
    let mut lab = laboratory(&json!({}));
    services.into_iter().for_each(|service| create(&mut lab, service));
    assert!(lab.settle(DAY_MS), "{:#?}", lab.controller().report());
    lab
}

/// What the load balancers of a sample estate lead to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backends {
    Pods,
    Nodes,
}

/// A cluster with a node for each machine of the emulator's sample estate.
pub fn sample_laboratory(backends: Backends, machines: u32, options: Options) -> Laboratory {
    let (gateway, more) = match backends {
        Backends::Pods => (
            SampleGateway::WithDefaultNat,
            json!({"loadBalancerSku": "service", "serviceGatewayEnabled": true,
                "disableOutboundSNAT": false,
                "loadBalancerBackendPoolConfigurationType": "podIP"}),
        ),
        Backends::Nodes => (SampleGateway::None, json!({"disableOutboundSNAT": false})),
    };
    let sample = SampleOptions { machines, gateway, ..SampleOptions::default() };
    let mut azure = Azure::new(AzureOptions { defaults: Switch::Off, ..AzureOptions::default() });
    azure.seed(sample_estate(&sample));
    let mut store =
        Store::new(StoreOptions { ownership: Ownership::AppliedOnly, ..StoreOptions::default() });
    for machine in sample.machines() {
        let node = json!({"apiVersion": "v1", "kind": "Node",
            "metadata": {"name": machine.name},
            "spec": {"providerID": format!("azure://{}", machine.id)},
            "status": {"addresses": [{"type": "InternalIP", "address": machine.ipv4}]}});
        store.create(node, 0).expect("a node is created");
    }
    Laboratory::new(store, azure, policy(&more), options)
}

pub fn create(lab: &mut Laboratory, object: Value) {
    lab.kubernetes.create(object, lab.now_ms).expect("the object is created");
}

pub fn remove(lab: &mut Laboratory, plural: &str, namespace: &str, name: &str) {
    let object = ObjectRef::new(plural, namespace, name);
    lab.kubernetes.delete(object, lab.now_ms).expect("it is deleted");
}

pub fn delete(lab: &mut Laboratory, namespace: &str, name: &str) {
    remove(lab, "services", namespace, name);
}

/// Its finalizers are taken off, and it is gone.
pub fn vanish(lab: &mut Laboratory, name: &str) {
    patch(lab, "services", "default", name, json!({"metadata": {"finalizers": null}}));
    delete(lab, "default", name);
}

pub fn patch(lab: &mut Laboratory, plural: &str, namespace: &str, name: &str, body: Value) {
    patch_part(lab, ObjectRef::new(plural, namespace, name), Part::Main, body);
}

pub fn patch_part(lab: &mut Laboratory, object: ObjectRef<'_>, part: Part, body: Value) {
    lab.kubernetes.patch(object, part, &Patch::Merge(body), lab.now_ms).expect("it is patched");
}

pub fn object(lab: &Laboratory, plural: &str, namespace: &str, name: &str) -> Option<Value> {
    let object = ObjectRef::new(plural, namespace, name);
    lab.kubernetes.get(object).ok().map(|object| Value::clone(&object))
}

/// A resource of the network's group.
pub fn resource(lab: &Laboratory, kind_and_name: &str) -> Value {
    lab.azure.resource(&network(kind_and_name)).expect("it is there")
}

/// The security group as a text.
pub fn security_group(lab: &Laboratory) -> String {
    resource(lab, "networkSecurityGroups/nsg").to_string()
}

/// A call of another client of Azure, by the newest contract; it is granted.
pub fn call(lab: &mut Laboratory, method: &str, path: &str, body: Option<Value>) {
    let request = Request { body, ..Request::new(method, path) };
    let answer = lab.azure.handle(request, lab.now_ms);
    assert!(answer.status < 300, "{} {:?}", answer.status, answer.body);
}

/// What the names of a Service's parts begin with.
pub fn base_of(lab: &Laboratory, name: &str) -> String {
    model::ServiceUid::new(container::uid_of(lab, name)).base_name()
}

/// An edit of another client of Azure.
pub fn edit(lab: &mut Laboratory, kind_and_name: &str, change: impl FnOnce(&mut Value)) {
    let id = network(kind_and_name);
    let mut body = lab.azure.resource(&id).expect("the resource is there");
    change(&mut body);
    call(lab, "PUT", &id, Some(body));
    lab.azure.clear_calls();
}

/// Services of type LoadBalancer with an address, and without.
pub fn addressed(lab: &Laboratory) -> (usize, usize) {
    let services = lab.kubernetes.list("services", None);
    let wants = services.iter().filter(|s| s["spec"]["type"] == "LoadBalancer");
    let has =
        |s: &&&std::sync::Arc<Value>| !s["status"]["loadBalancer"]["ingress"][0]["ip"].is_null();
    let all: Vec<_> = wants.collect();
    let with = all.iter().filter(has).count();
    (with, all.len() - with)
}

/// What is in Azure beside the estate, by kind and name.
pub fn leftovers(lab: &Laboratory) -> Vec<String> {
    let estate: Vec<String> =
        estate().iter().filter_map(|r| r["id"].as_str().map(str::to_lowercase)).collect();
    let ids = lab.azure.resources().into_iter();
    let ids = ids.filter_map(|r| r["id"].as_str().map(str::to_lowercase));
    let mut left: Vec<String> = ids.filter(|id| !estate.contains(id)).collect();
    let group = lab.azure.resource(&network("networkSecurityGroups/nsg")).unwrap_or_default();
    let rules = group["properties"]["securityRules"].as_array().cloned().unwrap_or_default();
    left.extend(rules.iter().map(|r| format!("security rule {}", r["name"])));
    left
}
