//! Virtual machines of no scale set, each with a NIC of its own.

use super::{GROUP, network, security_group};
use serde_json::{Value, json};

/// The id of a machine.
#[must_use]
pub fn machine(index: u32) -> String {
    format!("{GROUP}/providers/Microsoft.Compute/virtualMachines/alone-{index}")
}

/// The id of its NIC.
#[must_use]
pub fn nic(index: u32) -> String {
    network(&format!("networkInterfaces/alone-{index}-nic"))
}

/// The id of the NIC through which a machine joins pools, both in small letters.
#[must_use]
pub fn nic_of(machine: &str) -> Option<String> {
    let index = machine.rsplit('/').next()?.strip_prefix("alone-")?.parse().ok()?;
    Some(nic(index).to_lowercase())
}

/// Whether a resource is a NIC of such a machine, by its id.
#[must_use]
pub fn is_nic(id: &str) -> bool {
    id.rsplit('/').next().is_some_and(|name| name.starts_with("alone-") && name.contains("-nic"))
}

/// A machine with its NICs, of which the first one is the primary one.
pub(super) fn alone(index: u32) -> Vec<Value> {
    let subnet = json!({"id": network("virtualNetworks/vnet/subnets/nodes")});
    let second = format!("{}-2", nic(index));
    let card = |id: &str| {
        json!({"id": id, "properties": {"enableIPForwarding": true,
            "networkSecurityGroup": {"id": security_group()},
            "ipConfigurations": [
                {"name": "ipconfig1", "properties": {"primary": true,
                    "privateIPAddressVersion": "IPv4", "subnet": subnet}},
                {"name": "ipconfig2", "properties": {"primary": false,
                    "privateIPAddressVersion": "IPv6", "subnet": subnet}}]}})
    };
    vec![
        card(&nic(index)),
        card(&second),
        json!({"id": machine(index), "properties": {"vmId": format!("vm-alone-{index}"),
            "osProfile": {"computerName": format!("alone-{index}")},
            "instanceView": {"statuses": [{"code": "PowerState/running"}]},
            "networkProfile": {"networkInterfaces": [
                {"id": second, "properties": {"primary": false}},
                {"id": nic(index), "properties": {"primary": true}}]}}}),
    ]
}
