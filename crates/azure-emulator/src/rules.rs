//! Which kind's rules apply: preparing a body, checking it, giving it addresses, removing it.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::azure::Azure;
use crate::elements::strip_elements;
use crate::json::{drop_keys, list, properties, text};
use crate::message::{Checked, refuse};
use crate::path::kind;
use crate::public_ip::is_dynamic;
use crate::store::Entry;
use crate::uses::uses;

impl Azure {
    /// Takes out of a body what clients echo but do not decide, and adds what Azure adds.
    pub(crate) fn prepare(&self, entry: &mut Entry, old: Option<&Entry>) -> Checked {
        let defaults = self.options.defaults;
        match entry.kind.as_str() {
            kind::LB => crate::load_balancer::prepare(entry, defaults),
            kind::PIP => self.prepare_public_ip(entry, old),
            kind::PREFIX => self.prepare_prefix(entry, old),
            kind::NSG => crate::security_group::prepare(entry),
            kind::SUBNET => crate::network::prepare_subnet(entry),
            kind::NAT => self.prepare_nat_gateway(entry, old),
            kind::PLS => self.prepare_private_link(entry, old),
            kind::NIC => crate::compute::prepare_nic(entry, old),
            kind::SGW => crate::gateway::prepare(entry),
            kind::VMSS => {
                crate::compute::prepare_scale_set(entry);
                Ok(())
            }
            kind::ROUTES => {
                drop_keys(properties(&mut entry.value), &["subnets"]);
                strip_elements(entry, "routes", &[]);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Refuses what Azure refuses.
    pub(crate) fn check(&self, key: &str, entry: &Entry, old: Option<&Entry>) -> Checked {
        self.check_references(key, entry)?;
        match entry.kind.as_str() {
            kind::LB => self.check_load_balancer(key, entry, old),
            kind::PIP => self.check_public_ip(key, entry, old),
            kind::NSG => crate::security_group::check(entry),
            kind::VNET => self.check_network(key, entry),
            kind::SUBNET => self.check_subnet(key, entry),
            kind::NAT => self.check_nat_gateway(key, entry),
            kind::PLS => self.check_private_link(key, entry),
            kind::NIC | kind::VMSS | kind::VMSS_VM => self.check_membership(entry),
            _ => Ok(()),
        }
    }

    /// Refuses references to what does not exist.
    fn check_references(&self, key: &str, entry: &Entry) -> Checked {
        if !self.options.references.is_on() {
            return Ok(());
        }
        for item in uses(key, entry) {
            let inside = item.target == key || item.target.starts_with(&format!("{key}/"));
            if !inside && self.store.holder(&item.target).is_none() {
                let message = format!(
                    "Resource {} referenced by resource {} was not found. Please make sure that \
                     the referenced resource exists, and that both resources are in the same \
                     region.",
                    item.target, item.element
                );
                return refuse("InvalidResourceReference", message);
            }
        }
        Ok(())
    }

    /// Gives out the addresses a resource still lacks.
    pub(crate) fn assign(&mut self, key: &str, entry: &mut Entry, old: Option<&Entry>) -> Checked {
        match entry.kind.as_str() {
            kind::LB => self.assign_private(key, entry, old, "frontendIPConfigurations"),
            kind::NIC | kind::VMSS_NIC | kind::PLS => {
                self.assign_private(key, entry, old, "ipConfigurations")
            }
            // A dynamic one gets it from whoever uses it first.
            kind::PIP if is_dynamic(entry) => Ok(()),
            kind::PIP => self.assign_public(entry),
            kind::PREFIX => {
                self.assign_prefix(entry);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// What a write changes elsewhere.
    pub(crate) fn after_write(&mut self, key: &str, old: Option<&Entry>) {
        let Some(kind) = self.store.get(key).map(|entry| entry.kind.clone()) else { return };
        match kind.as_str() {
            kind::LB => {
                let names = |entry: &Entry| -> BTreeSet<String> {
                    let pools = list(&entry.value, &["properties", "backendAddressPools"]);
                    pools.iter().map(|pool| text(pool, &["name"]).to_lowercase()).collect()
                };
                let now = self.store.get(key).map(names).unwrap_or_default();
                for gone in old.map(names).unwrap_or_default().difference(&now) {
                    self.detach_pool(&format!("{key}/backendaddresspools/{gone}"));
                }
            }
            kind::SUBNET => self.touch_network(key),
            kind::VMSS => self.size_scale_set(key),
            kind::VMSS_VM => self.describe_nics(key),
            _ => {}
        }
    }

    /// Refuses to delete what is in use.
    pub(crate) fn check_removal(&self, key: &str, entry: &Entry) -> Checked {
        match entry.kind.as_str() {
            kind::LB => self.check_balancer_removal(key, entry),
            kind::PIP => {
                let user = self.store.users(key).next();
                let Some(user) = user else { return Ok(()) };
                let message = format!(
                    "Public IP address {} can not be deleted since it is still allocated to \
                     resource {}. In order to delete the public IP, disassociate/detach the \
                     Public IP address from the resource.",
                    entry.id, user.element
                );
                refuse("PublicIPAddressCannotBeDeleted", message)
            }
            kind::NSG => self.in_use(key, entry, "InUseNetworkSecurityGroupCannotBeDeleted"),
            kind::ROUTES => self.in_use(key, entry, "InUseRouteTableCannotBeDeleted"),
            kind::PREFIX => self.in_use(key, entry, "InUsePublicIpPrefixCannotBeDeleted"),
            kind::NAT => {
                self.check_gateway_services(entry)?;
                self.in_use(key, entry, "InUseNatGatewayCannotBeDeleted")
            }
            kind::SUBNET => self.in_use(key, entry, "InUseSubnetCannotBeDeleted"),
            kind::VNET => {
                let prefix = format!("{key}/subnets/");
                for subnet in self.store.keys_of(kind::SUBNET, &prefix) {
                    self.in_use(subnet, entry, "InUseSubnetCannotBeDeleted")?;
                }
                Ok(())
            }
            kind::NIC => self.in_use(key, entry, "NicInUse"),
            kind::SGW => self.in_use(key, entry, "InUseServiceGatewayCannotBeDeleted"),
            kind::PLS => {
                let connections = list(&entry.value, &["properties", "privateEndpointConnections"]);
                match connections.first() {
                    None => Ok(()),
                    Some(first) => refuse(
                        "PrivateLinkServiceWithPrivateEndpointConnectionsCannotBeDeleted",
                        format!(
                            "Private link service {} still has the private endpoint connection \
                             {}. Delete it first.",
                            entry.id,
                            text(first, &["name"])
                        ),
                    ),
                }
            }
            _ => Ok(()),
        }
    }

    fn in_use(&self, key: &str, entry: &Entry, code: &str) -> Checked {
        match self.store.users(key).find(|user| user.owner != *key) {
            None => Ok(()),
            Some(user) => {
                let message =
                    format!("{} is in use by {} and cannot be deleted.", entry.id, user.element);
                refuse(code, message)
            }
        }
    }

    /// Takes a resource and what lies below it away, whatever refers to it.
    pub(crate) fn remove_now(&mut self, key: &str) {
        for below in self.store.keys_below(key) {
            self.remove_now(&below);
        }
        let Some((entry, touched)) = self.store.remove(key) else { return };
        self.settle_addresses(key);
        self.touch(&touched);
        self.gateways.remove(key);
        match entry.kind.as_str() {
            kind::LB => {
                for pool in list(&entry.value, &["properties", "backendAddressPools"]) {
                    let name = text(pool, &["name"]);
                    self.detach_pool(&format!("{key}/backendaddresspools/{name}"));
                }
            }
            kind::SUBNET => self.touch_network(key),
            kind::VMSS_VM => self.count_down(key),
            _ => {}
        }
    }

    /// Takes a pool that is gone out of all NICs and machines.
    pub(crate) fn detach_pool(&mut self, pool: &str) {
        let owners: BTreeSet<String> =
            self.store.users(pool).map(|user| user.owner.clone()).collect();
        for owner in owners {
            let Some(mut entry) = self.store.get(&owner).cloned() else { continue };
            forget(&mut entry.value, &pool.to_lowercase());
            entry.value["etag"] = json!(self.guids.etag());
            let touched = self.store.insert(owner.clone(), entry);
            self.touch(&touched);
            self.after_write(&owner, None);
        }
    }

    fn touch_network(&mut self, subnet: &str) {
        let etag = self.guids.etag();
        let network = crate::path::parent(subnet).and_then(|key| self.store.get_mut(key));
        if let Some(network) = network {
            network.value["etag"] = json!(etag);
        }
    }
}

/// Removes `{"id": pool}` from every list of backend pools in a value.
fn forget(value: &mut Value, pool: &str) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| forget(item, pool)),
        Value::Object(map) => {
            for (key, value) in map {
                match value {
                    Value::Array(items) if key == "loadBalancerBackendAddressPools" => {
                        items.retain(|item| text(item, &["id"]).to_lowercase() != pool);
                    }
                    other => forget(other, pool),
                }
            }
        }
        _ => {}
    }
}
