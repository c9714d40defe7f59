//! The things that scenes are made of.

use super::{GROUP, THEIRS, network};
use serde_json::{Map, Value, json};

/// The name of another cluster's rule in our security group: a digest of what it allows.
pub const OTHER_CLUSTERS: &str = "k8s-azure-lb_allow_IPv4_c5f86050edc6fef4cc77f3bc4473ce34";

/// Where that rule leads.
pub const OTHER_ADDRESS: &str = "20.50.0.12";

/// The label by which a Pod asks for an egress gateway.
pub(crate) const EGRESS_LABEL: &str = "kubernetes.azure.com/service-egress-gateway";

/// The egress gateway that a Pod asks for, whose names have no letter case.
pub(crate) fn gateway_of(pod: &Value) -> Option<String> {
    pod["metadata"]["labels"][EGRESS_LABEL].as_str().map(str::to_lowercase)
}

/// What is in Azure before anybody asks for a load balancer: a network, a security group with
/// rules of others, public IPs that were brought, and another cluster's things.
#[must_use]
pub fn estate() -> Vec<Value> {
    let vnet = network("virtualNetworks/vnet");
    let subnet = |name: &str, prefix: &str, ipv6: &str| {
        json!({"id": format!("{vnet}/subnets/{name}"), "properties": {
            "addressPrefix": prefix, "addressPrefixes": [prefix, ipv6],
            "privateLinkServiceNetworkPolicies": "Enabled"}})
    };
    let their_ip = network("publicIPAddresses/theirs-ip");
    let their_balancer = network("loadBalancers/theirs");
    vec![
        json!({"id": vnet, "properties": {"addressSpace": {
            "addressPrefixes": ["10.224.0.0/12", "fd00::/48"]}, "subnets": []}}),
        subnet("nodes", "10.224.0.0/16", "fd00::/64"),
        subnet("apps", "10.225.0.0/16", "fd00:0:0:1::/64"),
        json!({"id": super::security_group(), "properties": {"securityRules": [
            their_rule("theirs-ssh", 100), other_clusters_rule()]}}),
        public_ip("byo-pip", "Standard", "20.50.0.10", &json!({})),
        public_ip("byo-pip2", "Standard", "20.50.0.11", &json!({})),
        public_ip(
            "theirs-ip",
            "Standard",
            "20.50.0.12",
            &json!({
            "k8s-azure-cluster-name": "another", "k8s-azure-service": "default/web-0"}),
        ),
        json!({"id": their_balancer, "sku": {"name": "Standard", "tier": "Regional"},
            "properties": {"frontendIPConfigurations": [{"name": "theirs-frontend",
                "properties": {"publicIPAddress": {"id": their_ip}}}],
                "backendAddressPools": [{"name": "another"}]}}),
    ]
}

/// What annotations name beside the estate: BYO public IPs of both families, one of another
/// resource group, prefixes.
#[must_use]
pub fn what_annotations_name(sku: &str) -> Vec<Value> {
    let mut ipv6 = public_ip("byo-pip6", sku, "2603:1030::10", &json!({}));
    ipv6["properties"]["publicIPAddressVersion"] = json!("IPv6");
    let mut far = public_ip("byo-pip4", sku, "20.50.0.15", &json!({}));
    far["id"] = json!(network("publicIPAddresses/byo-pip4").replace("/rg/", "/pip-rg/"));
    let prefix = |name: &str, range: &str, family: &str| {
        json!({"id": network(&format!("publicIPPrefixes/{name}")), "sku": {"name": "Standard"},
            "properties": {"ipPrefix": range, "publicIPAddressVersion": family}})
    };
    let mut labelled = public_ip("byo-pip3", sku, "20.50.0.14", &json!({}));
    labelled["properties"]["dnsSettings"] = json!({"domainNameLabel": "theirs"});
    vec![
        labelled,
        ipv6,
        far,
        prefix("theirs-prefix", "20.99.0.0/28", "IPv4"),
        prefix("theirs-prefix6", "2603:1040::/124", "IPv6"),
    ]
}

fn public_ip(name: &str, sku: &str, address: &str, tags: &Value) -> Value {
    json!({"id": network(&format!("publicIPAddresses/{name}")), "tags": tags,
        "sku": {"name": sku, "tier": "Regional"},
        "properties": {"publicIPAllocationMethod": "Static", "publicIPAddressVersion": "IPv4",
            "ipAddress": address, "idleTimeoutInMinutes": 4}})
}

/// A public IP that another client has for a while: it stands before ours in every list.
#[must_use]
pub fn spare(number: u64) -> Value {
    let id = network(&format!("publicIPAddresses/byo-pip-spare-{number}"));
    json!({"id": id, "location": "eastus", "sku": {"name": "Standard", "tier": "Regional"},
        "properties": {"publicIPAllocationMethod": "Static", "publicIPAddressVersion": "IPv4"}})
}

/// A security rule of somebody else's.
#[must_use]
pub fn their_rule(name: &str, priority: u64) -> Value {
    json!({"name": name, "properties": {"protocol": "Tcp", "access": "Allow",
        "direction": "Inbound", "priority": priority, "sourcePortRange": "*",
        "sourceAddressPrefix": "203.0.113.7", "destinationAddressPrefix": "10.224.0.0/16",
        "destinationPortRange": "22", "description": "kept as it came"}})
}

/// A rule in our form that opens another cluster's address.
fn other_clusters_rule() -> Value {
    json!({"name": OTHER_CLUSTERS, "properties": {
        "protocol": "Tcp", "access": "Allow", "direction": "Inbound", "priority": 3000,
        "sourcePortRange": "*", "sourceAddressPrefixes": ["203.0.113.0/24"],
        "destinationAddressPrefixes": ["20.50.0.12"], "destinationPortRanges": ["24080"]}})
}

/// A load balancer under our name with somebody else's frontend and outbound rule on it.
#[must_use]
pub fn outbound_balancer() -> Vec<Value> {
    let id = network("loadBalancers/kubernetes");
    let ip = network("publicIPAddresses/theirs-outbound");
    vec![
        public_ip("theirs-outbound", "Standard", "20.50.0.13", &json!({})),
        json!({"id": id, "sku": {"name": "Standard", "tier": "Regional"}, "properties": {
            "frontendIPConfigurations": [{"name": "theirs-outbound",
                "properties": {"publicIPAddress": {"id": ip}}}],
            "backendAddressPools": [{"name": "theirs-pool"}],
            "outboundRules": [{"name": "theirs-outbound", "properties": {
                "frontendIPConfigurations": [
                    {"id": format!("{id}/frontendIPConfigurations/theirs-outbound")}],
                "backendAddressPool": {"id": format!("{id}/backendAddressPools/theirs-pool")},
                "protocol": "All", "idleTimeoutInMinutes": 30,
                "theirNote": "kept as it came"}}]}}),
    ]
}

/// A Service Gateway and the cluster's own way out.
#[must_use]
pub fn gateway() -> Vec<Value> {
    let nat = network("natGateways/default-natgw");
    let ip = network("publicIPAddresses/default-natgw-pip");
    vec![
        json!({"id": super::gateway(), "sku": {"name": "Standard", "tier": "Regional"},
            "properties": {"virtualNetwork": {"id": network("virtualNetworks/vnet")}}}),
        json!({"id": ip, "sku": {"name": "StandardV2"}, "properties": {
            "publicIPAllocationMethod": "Static", "publicIPAddressVersion": "IPv4",
            "ipAddress": "20.60.0.1"}}),
        json!({"id": nat, "sku": {"name": "StandardV2"}, "properties": {
            "publicIpAddresses": [{"id": ip}], "serviceGateway": {"id": super::gateway()}}}),
    ]
}

/// What the Service Gateway's tables hold from the start.
#[must_use]
pub fn gateway_tables() -> Value {
    json!({"services": {"default-natgw": {"name": "default-natgw", "properties": {
        "isDefault": true, "loadBalancerBackendPools": [],
        "publicNatGatewayId": network("natGateways/default-natgw"),
        "serviceType": "Outbound"}}}, "locations": {}})
}

/// The address of a node.
#[must_use]
pub fn node_address(set: &str, index: u32) -> String {
    let third = if set == "vmss" { 0 } else { 1 };
    format!("10.224.{third}.{}", 4 + index)
}

/// A node of a scale set.
#[must_use]
pub fn node(set: &str, index: u32) -> Value {
    let name = format!("{set}{index:06}");
    let labels: Map<String, Value> =
        Map::from_iter([("kubernetes.io/hostname".to_owned(), json!(name))]);
    let id = format!(
        "azure://{GROUP}/providers/Microsoft.Compute/virtualMachineScaleSets/{set}\
         /virtualMachines/{index}"
    );
    // Its outbound connectivity; no pool holds this address. It is listed first or last.
    let outside = json!({"type": "ExternalIP", "address": format!("198.51.100.{}", 4 + index)});
    let mut addresses = vec![
        json!({"type": "InternalIP", "address": node_address(set, index)}),
        json!({"type": "InternalIP", "address": format!("fd00::{:x}", 4 + index)}),
    ];
    let place = if index.is_multiple_of(2) { addresses.len() } else { 0 };
    addresses.insert(place, outside);
    json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels},
        "spec": {"providerID": id}, "status": {"addresses": addresses}})
}

/// A Service of one port; `index` makes its name and port its own.
#[must_use]
pub fn service(namespace: &str, index: u64) -> Value {
    json!({"apiVersion": "v1", "kind": "Service",
        "metadata": {"name": format!("web-{index}"), "namespace": namespace,
            "annotations": {}},
        "spec": {"type": "LoadBalancer", "selector": {"app": format!("web-{index}")},
            "ports": [{"name": "http", "port": 80 + index, "targetPort": 8080,
                "protocol": "TCP", "nodePort": 30_080 + index}]}})
}

/// A Pod that runs on a node and has an address.
#[must_use]
pub fn pod(name: &str, labels: &Value, node: u32, address: &str) -> Value {
    let host = node_address("vmss", node);
    json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": labels},
        "spec": {"nodeName": format!("vmss{node:06}"),
            "automountServiceAccountToken": false,
            "containers": [{"name": "c", "image": "i"}]},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}],
            "hostIP": host, "hostIPs": [{"ip": host}],
            "podIP": address, "podIPs": [{"ip": address}]}})
}

/// A uniform scale set with so many instances.
#[must_use]
pub fn scale_set(name: &str, machines: u32) -> Vec<Value> {
    let subnet = json!({"id": network("virtualNetworks/vnet/subnets/nodes")});
    let nic = json!({"name": format!("{name}-nic"), "properties": {
        "primary": true, "enableIPForwarding": true,
        "networkSecurityGroup": {"id": super::security_group()},
        "ipConfigurations": [
            {"name": "ipconfig1", "properties": {"primary": true,
                "privateIPAddressVersion": "IPv4", "subnet": subnet,
                "loadBalancerBackendAddressPools": []}},
            {"name": "ipconfig2", "properties": {"primary": false,
                "privateIPAddressVersion": "IPv6", "subnet": subnet}}]}});
    let root = format!("{GROUP}/providers/Microsoft.Compute/virtualMachineScaleSets/{name}");
    let mut out =
        vec![json!({"id": root, "sku": {"name": "Standard_D2s_v5", "capacity": machines},
            "properties": {"orchestrationMode": "Uniform", "singlePlacementGroup": true,
                "virtualMachineProfile": {"osProfile": {"computerNamePrefix": name},
                    "networkProfile": {"networkInterfaceConfigurations": [nic]}}}})];
    for index in 0..machines {
        let vm = format!("{root}/virtualMachines/{index}");
        out.push(json!({"id": vm, "name": format!("{name}_{index}"),
            "instanceId": index.to_string(),
            "type": "Microsoft.Compute/virtualMachineScaleSets/virtualMachines",
            "sku": {"name": "Standard_D2s_v5"}, "zones": [(index % 3 + 1).to_string()],
            "properties": {"latestModelApplied": true, "vmId": format!("vm-{name}-{index}"),
                "osProfile": {"computerName": format!("{name}{index:06}")},
                "instanceView": {"statuses": [{"code": "PowerState/running"}]},
                "networkProfile": {"networkInterfaces": [
                    {"id": format!("{vm}/networkInterfaces/{name}-nic"),
                        "properties": {"primary": true}}]},
                "networkProfileConfiguration": {"networkInterfaceConfigurations": [nic]}}}));
    }
    out
}

/// Whether a name is that of somebody else's thing.
#[must_use]
pub fn is_theirs(name: &str) -> bool {
    name.starts_with(THEIRS)
        || is_brought(name)
        || super::second::is_second(name)
        || matches!(name, "default-natgw" | "default-natgw-pip")
}

/// Whether a name is that of a public IP that Services bring.
#[must_use]
pub fn is_brought(name: &str) -> bool {
    name.starts_with("byo-pip")
}
