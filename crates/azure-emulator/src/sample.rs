//! A small estate to start with: one group, one network, one scale set.

use serde_json::{Value, json};

use crate::compute::computer_name;

/// Whether the sample has a Service Gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SampleGateway {
    /// It has none: backends are nodes.
    #[default]
    None,
    /// `servicegateway` with its default NAT gateway `default-natgw`: backends are pods.
    WithDefaultNat,
}

/// How large the sample is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SampleOptions {
    /// The subscription.
    pub subscription: String,
    /// The resource group.
    pub group: String,
    /// The region.
    pub location: String,
    /// Machines in the scale set `vmss`.
    pub machines: u32,
    /// Whether there is a Service Gateway.
    pub gateway: SampleGateway,
}

impl Default for SampleOptions {
    fn default() -> Self {
        SampleOptions {
            subscription: "00000000-0000-0000-0000-000000000001".to_owned(),
            group: "rg".to_owned(),
            location: "eastus".to_owned(),
            machines: 4,
            gateway: SampleGateway::None,
        }
    }
}

impl SampleOptions {
    fn group_id(&self) -> String {
        format!("/subscriptions/{}/resourceGroups/{}", self.subscription, self.group)
    }

    fn network(&self) -> String {
        format!("{}/providers/Microsoft.Network", self.group_id())
    }

    /// The host names and addresses (IPv4, IPv6) of the machines, and their provider ids.
    pub fn machines(&self) -> Vec<SampleMachine> {
        let set =
            format!("{}/providers/Microsoft.Compute/virtualMachineScaleSets", self.group_id());
        let machine = |i: u32| SampleMachine {
            name: computer_name("vmss", i),
            ipv4: format!("10.224.{}.{}", i / 250, 4 + i % 250),
            ipv6: format!("fd00::{:x}", 4 + i),
            zone: (i % 3 + 1).to_string(),
            id: format!("{set}/vmss/virtualMachines/{i}"),
        };
        (0..self.machines).map(machine).collect()
    }
}

/// One machine of the sample's scale set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SampleMachine {
    /// The host name, which is the node's name.
    pub name: String,
    /// The IPv4 address.
    pub ipv4: String,
    /// The IPv6 address.
    pub ipv6: String,
    /// The availability zone.
    pub zone: String,
    /// The id; `azure://` before it makes a node's provider id.
    pub id: String,
}

/// The resources of the sample, to be given to [`crate::Azure::seed`].
pub fn sample_estate(options: &SampleOptions) -> Vec<Value> {
    let network = options.network();
    let location = &options.location;
    let vnet = format!("{network}/virtualNetworks/vnet");
    let subnet = |name: &str, v4: &str, v6: &str| {
        json!({"id": format!("{vnet}/subnets/{name}"), "name": name, "properties": {
            "addressPrefix": v4, "addressPrefixes": [v4, v6],
            "privateEndpointNetworkPolicies": "Disabled",
            "privateLinkServiceNetworkPolicies": "Enabled"}})
    };
    let routes = format!("{network}/routeTables/rt");
    let mut nodes = subnet("nodes", "10.224.0.0/16", "fd00::/64");
    nodes["properties"]["routeTable"] = json!({ "id": routes });
    let mut estate = vec![
        json!({"id": options.group_id(), "location": location}),
        json!({"id": vnet, "location": location, "properties": {
            "addressSpace": {"addressPrefixes": ["10.224.0.0/12", "fd00::/48"]}}}),
        json!({"id": routes, "location": location, "properties": {"routes": []}}),
        nodes,
        subnet("apps", "10.225.0.0/16", "fd00:0:0:1::/64"),
        json!({"id": format!("{network}/networkSecurityGroups/nsg"), "location": location,
            "properties": {"securityRules": []}}),
        json!({"id": format!("{network}/publicIPPrefixes/prefix"), "location": location,
            "sku": {"name": "Standard", "tier": "Regional"}, "properties": {
                "prefixLength": 28, "ipPrefix": "20.99.0.0/28",
                "publicIPAddressVersion": "IPv4"}}),
    ];
    estate.extend(scale_set(options));
    if options.gateway == SampleGateway::WithDefaultNat {
        estate.extend(gateway(options));
    }
    estate
}

fn nic_configuration(options: &SampleOptions) -> Value {
    let network = options.network();
    let subnet = json!({"id": format!("{network}/virtualNetworks/vnet/subnets/nodes")});
    json!({"name": "vmss-nic", "properties": {
    "primary": true, "enableIPForwarding": true,
    "networkSecurityGroup": {"id": format!("{network}/networkSecurityGroups/nsg")},
    "ipConfigurations": [
        {"name": "ipconfig1", "properties": {"primary": true,
            "privateIPAddressVersion": "IPv4", "subnet": subnet}},
        {"name": "ipconfig2", "properties": {"primary": false,
            "privateIPAddressVersion": "IPv6", "subnet": subnet}},
    ]}})
}

fn scale_set(options: &SampleOptions) -> Vec<Value> {
    let nic = nic_configuration(options);
    let subnet = nic["properties"]["ipConfigurations"][0]["properties"]["subnet"].clone();
    let root =
        format!("{}/providers/Microsoft.Compute/virtualMachineScaleSets/vmss", options.group_id());
    let sku = json!({"name": "Standard_D2s_v5", "tier": "Standard", "capacity": options.machines});
    let mut found = vec![json!({"id": root, "location": options.location, "sku": sku,
        "zones": ["1", "2", "3"], "properties": {
            "orchestrationMode": "Uniform", "singlePlacementGroup": false,
            "upgradePolicy": {"mode": "Manual"},
            "virtualMachineProfile": {"osProfile": {"computerNamePrefix": "vmss"},
                "networkProfile": {"networkInterfaceConfigurations": [nic]}}}})];
    for (i, machine) in options.machines().into_iter().enumerate() {
        let SampleMachine { name, ipv4, ipv6, zone, id } = machine;
        let nic_id = format!("{id}/networkInterfaces/vmss-nic");
        found.push(json!({"id": id, "name": format!("vmss_{i}"), "instanceId": i.to_string(),
            "location": options.location, "sku": {"name": "Standard_D2s_v5"}, "zones": [zone],
            "properties": {
                "latestModelApplied": true, "vmId": format!("vm-vmss-{i}"),
                "hardwareProfile": {"vmSize": "Standard_D2s_v5"},
                "osProfile": {"computerName": name},
                "instanceView": {"statuses": [{"code": "PowerState/running"}]},
                "networkProfile": {"networkInterfaces":
                    [{"id": nic_id, "properties": {"primary": true}}]},
                "networkProfileConfiguration": {"networkInterfaceConfigurations": [nic]}}}));
        let configuration = |name: &str, address: &str, version: &str| {
            json!({"name": name, "properties": {"primary": version == "IPv4", "subnet": subnet,
                "privateIPAddress": address, "privateIPAddressVersion": version,
                "privateIPAllocationMethod": "Dynamic"}})
        };
        found.push(json!({"id": nic_id, "location": options.location, "properties": {
            "primary": true, "virtualMachine": {"id": id}, "ipConfigurations": [
                configuration("ipconfig1", &ipv4, "IPv4"),
                configuration("ipconfig2", &ipv6, "IPv6")]}}));
    }
    found
}

fn gateway(options: &SampleOptions) -> Vec<Value> {
    let network = options.network();
    let location = &options.location;
    let nat = format!("{network}/natGateways/default-natgw");
    let pip = format!("{network}/publicIPAddresses/default-natgw-pip");
    let id = format!("{network}/serviceGateways/servicegateway");
    vec![
        json!({"id": pip, "location": location, "sku": {"name": "StandardV2", "tier": "Regional"},
            "properties": {"publicIPAddressVersion": "IPv4", "publicIPAllocationMethod": "Static",
                "ipAddress": "20.60.0.1", "idleTimeoutInMinutes": 4}}),
        json!({"id": nat, "location": location, "sku": {"name": "StandardV2"}, "properties": {
            "publicIpAddresses": [{"id": pip}], "serviceGateway": {"id": id}}}),
        json!({"id": id, "location": location, "sku": {"name": "Standard", "tier": "Regional"},
            "properties": {"virtualNetwork": {"id": format!("{network}/virtualNetworks/vnet")},
                "services": [{"name": "default-natgw", "properties": {
                    "serviceType": "Outbound", "isDefault": true,
                    "loadBalancerBackendPools": [], "publicNatGatewayId": nat}}]}}),
    ]
}

/// A cloud config of the Go cloud provider's form for the sample.
pub fn sample_cloud_config(base_url: &str, options: &SampleOptions) -> Value {
    let mut config = json!({
        "cloud": "AzurePublicCloud", "resourceManagerEndpoint": base_url, "tenantId": "adfs",
        "aadClientId": "22222222-2222-2222-2222-222222222222", "aadClientSecret": "s",
        "subscriptionId": options.subscription, "resourceGroup": options.group,
        "location": options.location, "vmType": "vmss", "primaryScaleSetName": "vmss",
        "subnetName": "nodes", "securityGroupName": "nsg", "vnetName": "vnet",
        "vnetResourceGroup": options.group, "routeTableName": "rt",
        "loadBalancerSku": "standard", "loadBalancerBackendPoolConfigurationType": "nodeIP",
        "disableOutboundSNAT": true, "excludeMasterFromStandardLB": true,
        "useInstanceMetadata": false, "maximumLoadBalancerRuleCount": 250,
        "cloudProviderBackoff": true,
    });
    if options.gateway == SampleGateway::WithDefaultNat {
        config["loadBalancerSku"] = json!("service");
        config["loadBalancerBackendPoolConfigurationType"] = json!("podIP");
        config["serviceGatewayEnabled"] = json!(true);
    }
    config
}
