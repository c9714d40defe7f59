//! Another Ballast cluster in the same resource group: its things have names of our form and, where
//! they stand under the cluster name that both have by default, its own UID.

use super::network;
use serde_json::{Value, json};

/// The other cluster's.
const OTHER_UID: &str = "5c1d3e0a-0000-4000-8000-00000000000b";
/// The base name of the other cluster's Service.
const BASE: &str = "a11111111222243334444555555555555";

/// The base name of a Service of another cluster that has our name.
const NAMESAKES: &str = "a22222222333344445555666666666666";

/// Whether a resource or a part of one is the other cluster's, by its name.
#[must_use]
pub fn is_second(name: &str) -> bool {
    let name = name.to_lowercase();
    name.contains(BASE) || name.contains(NAMESAKES) || name == "second" || name == "second-internal"
}

fn public_ip(group: &str, name: &str, address: &str) -> Value {
    let id = network(&format!("publicIPAddresses/{name}")).replace("/rg/", &format!("/{group}/"));
    json!({"id": id, "sku": {"name": "Standard", "tier": "Regional"},
        "tags": {"k8s-azure-cluster-name": "kubernetes", "k8s-azure-service": "default/web-1",
            "ballast-cluster-uid": OTHER_UID},
        "properties": {"publicIPAllocationMethod": "Static", "publicIPAddressVersion": "IPv4",
            "ipAddress": address, "idleTimeoutInMinutes": 4}})
}

fn balancer(name: &str, address: &Value) -> Value {
    let id = network(&format!("loadBalancers/{name}"));
    let part = |kind: &str, name: &str| json!({"id": format!("{id}/{kind}/{name}")});
    let rule = format!("{BASE}-TCP-80");
    json!({"id": id, "sku": {"name": "Standard", "tier": "Regional"}, "properties": {
        "frontendIPConfigurations": [{"name": BASE, "properties": address}],
        "backendAddressPools": [{"name": "second"}],
        "probes": [{"name": rule, "properties": {"protocol": "Tcp", "port": 30_080,
            "intervalInSeconds": 5, "numberOfProbes": 2}}],
        "loadBalancingRules": [{"name": rule, "properties": {
            "protocol": "Tcp", "frontendPort": 80, "backendPort": 80, "enableFloatingIP": true,
            "frontendIPConfiguration": part("frontendIPConfigurations", BASE),
            "backendAddressPool": part("backendAddressPools", "second"),
            "probe": part("probes", &rule)}}]}})
}

/// The name of that Service's public IP.
#[must_use]
pub fn ip_of_a_namesake(cluster: &str) -> String {
    format!("{cluster}-{NAMESAKES}")
}

/// A public IP of a cluster that the Go cloud provider serves, and that has our name: it is in a
/// resource group that only Services name, where a name says nothing, and carries no UID.
fn of_a_namesake(cluster: &str) -> Value {
    let mut ip = public_ip("pip-rg", &ip_of_a_namesake(cluster), "20.50.1.4");
    ip["tags"] =
        json!({"k8s-azure-cluster-name": cluster, "k8s-azure-service": "default/namesake"});
    ip
}

/// What the other cluster has, and what one of our name has.
#[must_use]
pub fn estate(cluster: &str) -> Vec<Value> {
    let ip = public_ip("rg", &format!("kubernetes-{BASE}"), "20.50.1.1");
    let orphan = public_ip("rg", &format!("kubernetes-{BASE}-ipv6"), "20.50.1.2");
    let far = public_ip("pip-rg", &format!("kubernetes-{BASE}"), "20.50.1.3");
    let subnet = json!({"id": network("virtualNetworks/vnet/subnets/apps")});
    let inside = json!({"privateIPAddress": "10.225.9.9", "privateIPAllocationMethod": "Static",
        "subnet": subnet});
    let frontend =
        network(&format!("loadBalancers/second-internal/frontendIPConfigurations/{BASE}"));
    let link = json!({"id": network(&format!("privateLinkServices/pls-{BASE}")),
        "tags": {"k8s-azure-cluster-name": "kubernetes", "ballast-cluster-uid": OTHER_UID,
            "k8s-azure-owner-service": "default/web-1"},
        "properties": {"loadBalancerFrontendIpConfigurations": [{"id": frontend}],
            "ipConfigurations": [{"name": "apps-0", "properties": {"primary": true,
                "privateIPAllocationMethod": "Dynamic", "subnet": subnet}}]}});
    let outside = json!({"publicIPAddress": {"id": ip["id"]}});
    let mut all = vec![ip, orphan, far, balancer("second", &outside), of_a_namesake(cluster)];
    all.extend([balancer("second-internal", &inside), link]);
    all
}
