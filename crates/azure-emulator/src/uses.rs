//! What a resource refers to, and which addresses and names it holds.

use std::net::IpAddr;

use serde_json::Value;

use crate::entry::Entry;
use crate::json::{at, list, references, text};
use crate::path::kind;

/// One reference from a resource, or one of its elements, to another.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Use {
    /// The key of the resource that refers.
    pub(crate) owner: String,
    /// The id of the element that refers; the owner's own id if there is none.
    pub(crate) element: String,
    /// The property that holds the reference.
    pub(crate) property: &'static str,
    /// Lower-case id of what is referred to.
    pub(crate) target: String,
}

/// (kind, collection or "", properties that hold a reference or a list of them)
const PLACES: &[(&str, &str, &[&str])] = &[
    (
        kind::LB,
        "frontendIPConfigurations",
        &["publicIPAddress", "publicIPPrefix", "subnet", "gatewayLoadBalancer"],
    ),
    (kind::LB, "backendAddressPools", &["virtualNetwork"]),
    (kind::PIP, "", &["publicIPPrefix", "ddosProtectionPlan"]),
    (
        kind::NAT,
        "",
        &[
            "publicIpAddresses",
            "publicIpAddressesV6",
            "publicIpPrefixes",
            "publicIpPrefixesV6",
            "serviceGateway",
            "sourceVirtualNetwork",
        ],
    ),
    (kind::SUBNET, "", &["networkSecurityGroup", "routeTable", "natGateway", "serviceGateway"]),
    (kind::PLS, "", &["loadBalancerFrontendIpConfigurations"]),
    (kind::PLS, "ipConfigurations", &["subnet"]),
    (kind::NIC, "", &["networkSecurityGroup"]),
    (kind::NIC, "ipConfigurations", IP_CONFIGURATION),
    (kind::VMSS_NIC, "ipConfigurations", &["subnet", "publicIPAddress"]),
    (kind::SGW, "", &["virtualNetwork"]),
];

const IP_CONFIGURATION: &[&str] = &[
    "publicIPAddress",
    "subnet",
    "loadBalancerBackendAddressPools",
    "loadBalancerInboundNatRules",
];

/// Everything a resource refers to.
pub(crate) fn uses(key: &str, entry: &Entry) -> Vec<Use> {
    let mut found = Vec::new();
    let mut add = |element: &str, property: &'static str, value: &Value| {
        for target in references(value) {
            found.push(Use {
                owner: key.to_owned(),
                element: element.to_owned(),
                property,
                target: target.to_lowercase(),
            });
        }
    };
    for (kind, collection, keys) in PLACES {
        if *kind != entry.kind {
            continue;
        }
        if collection.is_empty() {
            keys.iter().for_each(|key| add(&entry.id, key, at(&entry.value, &["properties", key])));
        }
        for element in list(&entry.value, &["properties", collection]) {
            let id = format!("{}/{collection}/{}", entry.id, text(element, &["name"]));
            keys.iter().for_each(|key| add(&id, key, at(element, &["properties", key])));
        }
    }
    for address in ["routeTargetAddress", "routeTargetAddressV6"] {
        if entry.kind == kind::SGW {
            add(&entry.id, "subnet", at(&entry.value, &["properties", address, "subnet"]));
        }
    }
    for nic in nic_configurations(entry) {
        add(&entry.id, "networkSecurityGroup", at(nic, &["properties", "networkSecurityGroup"]));
        for configuration in list(nic, &["properties", "ipConfigurations"]) {
            let id = format!(
                "{}/networkInterfaces/{}/ipConfigurations/{}",
                entry.id,
                text(nic, &["name"]),
                text(configuration, &["name"])
            );
            for key in ["subnet", "loadBalancerBackendAddressPools"] {
                add(&id, key, at(configuration, &["properties", key]));
            }
        }
    }
    if entry.kind == kind::VM {
        add(
            &entry.id,
            "networkInterfaces",
            at(&entry.value, &["properties", "networkProfile", "networkInterfaces"]),
        );
        for key in ["availabilitySet", "virtualMachineScaleSet"] {
            add(&entry.id, key, at(&entry.value, &["properties", key]));
        }
    }
    found
}

/// The NICs that a scale set or one of its machines describes.
pub(crate) fn nic_configurations(entry: &Entry) -> &[Value] {
    let path: &[&str] = match entry.kind.as_str() {
        kind::VMSS => &["properties", "virtualMachineProfile", "networkProfile"],
        kind::VMSS_VM => &["properties", "networkProfileConfiguration"],
        _ => return &[],
    };
    list(at(&entry.value, path), &["networkInterfaceConfigurations"])
}

/// Subnet, address and holder of each private address of a resource.
pub(crate) fn private_addresses(entry: &Entry) -> Vec<(String, IpAddr, String)> {
    let collection = match entry.kind.as_str() {
        kind::LB => "frontendIPConfigurations",
        kind::NIC | kind::VMSS_NIC | kind::PLS => "ipConfigurations",
        _ => return Vec::new(),
    };
    let elements = list(&entry.value, &["properties", collection]).iter();
    elements
        .filter_map(|element| {
            let subnet = text(element, &["properties", "subnet", "id"]).to_lowercase();
            let address = text(element, &["properties", "privateIPAddress"]).parse().ok()?;
            let id = format!("{}/{collection}/{}", entry.id, text(element, &["name"]));
            (!subnet.is_empty()).then_some((subnet, address, id))
        })
        .collect()
}

/// The DNS name and the public address of a public IP.
pub(crate) fn public_name(entry: &Entry) -> Vec<String> {
    if entry.kind != kind::PIP {
        return Vec::new();
    }
    let name = text(&entry.value, &["properties", "dnsSettings", "fqdn"]).to_lowercase();
    let address = text(&entry.value, &["properties", "ipAddress"]);
    let address = address.parse::<IpAddr>().map_or(String::new(), |found| found.to_string());
    [name, address].into_iter().filter(|name| !name.is_empty()).collect()
}
