//! What Azure refuses in a load balancer. Codes that no public thread confirms carry the name
//! that says what is wrong.

use std::collections::BTreeSet;
use std::net::IpAddr;

use serde_json::Value;

use crate::azure::Azure;
use crate::balancer_rules::check_rules;
use crate::envelope::check_name;
use crate::json::{list, named, number, same, text};
use crate::message::{Checked, refusal, refuse};
use crate::network::space;
use crate::path::kind;
use crate::store::Entry;
use crate::view::LB_COLLECTIONS;

const MAX_FRONTENDS: usize = 600;
const MAX_POOL_ADDRESSES: usize = 1_000;

impl Azure {
    pub(crate) fn check_load_balancer(
        &self,
        key: &str,
        entry: &Entry,
        old: Option<&Entry>,
    ) -> Checked {
        let sku = text(&entry.value, &["sku", "name"]);
        check_element_names(entry, old)?;
        if let Some(old) = old {
            check_sku_change(text(&old.value, &["sku", "name"]), sku, &entry.id)?;
            self.check_dropped(key, entry, old)?;
        }
        self.check_frontends(key, entry, sku)?;
        self.check_pools(entry, sku)?;
        if self.is_linked(key) {
            self.check_beside_link(entry)?;
        }
        check_probes(entry, sku)?;
        check_rules(entry)
    }

    /// Refuses to drop elements that others refer to.
    fn check_dropped(&self, key: &str, entry: &Entry, old: &Entry) -> Checked {
        let kept = |collection: &str, name: &str| {
            named(list(&entry.value, &["properties", collection]), name).is_some()
        };
        for frontend in list(&old.value, &["properties", "frontendIPConfigurations"]) {
            let name = text(frontend, &["name"]);
            let id = format!("{key}/frontendipconfigurations/{name}");
            if !kept("frontendIPConfigurations", name)
                && let Some(user) = self.store.users(&id).next()
            {
                return frontend_in_use(&entry.id, name, &user.element);
            }
        }
        for pool in list(&old.value, &["properties", "backendAddressPools"]) {
            let name = text(pool, &["name"]);
            if !kept("backendAddressPools", name) {
                self.check_pool_removal(&entry.id, name)?;
            }
        }
        Ok(())
    }

    fn check_pool_removal(&self, id: &str, pool: &str) -> Checked {
        let pool_id = format!("{id}/backendAddressPools/{pool}");
        // The model of a scale set, or an instance that is still as an earlier model was.
        let set_of = |owner: &str| match self.store.get(owner)?.kind.as_str() {
            kind::VMSS => Some(owner.to_owned()),
            kind::VMSS_VM => Some(owner.rsplitn(3, '/').last()?.to_owned()),
            _ => None,
        };
        if let Some(set) = self.store.users(&pool_id).find_map(|user| set_of(&user.owner)) {
            let message = format!(
                "Cannot delete load balancer {id} since its child resources {pool} are in use by \
                 virtual machine scale set {set}."
            );
            return refuse("LoadBalancerInUseByVirtualMachineScaleSet", message);
        }
        match self.gateway_user(&pool_id) {
            Some(service) if self.options.gateway_references.is_on() => {
                let message = format!(
                    "Backend pool {pool_id} is in use by the service gateway service {service}. \
                     Detach it first."
                );
                refuse("LoadBalancerBackendPoolInUseByServiceGateway", message)
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn check_balancer_removal(&self, key: &str, entry: &Entry) -> Checked {
        for pool in list(&entry.value, &["properties", "backendAddressPools"]) {
            self.check_pool_removal(&entry.id, text(pool, &["name"]))?;
        }
        for frontend in list(&entry.value, &["properties", "frontendIPConfigurations"]) {
            let name = text(frontend, &["name"]);
            let id = format!("{key}/frontendipconfigurations/{name}");
            if let Some(user) = self.store.users(&id).next() {
                return frontend_in_use(&entry.id, name, &user.element);
            }
        }
        Ok(())
    }

    fn check_frontends(&self, key: &str, entry: &Entry, sku: &str) -> Checked {
        let frontends = list(&entry.value, &["properties", "frontendIPConfigurations"]);
        if frontends.len() > MAX_FRONTENDS {
            let message = format!("{} has more than {MAX_FRONTENDS} frontends.", entry.id);
            return refuse("FrontendIPConfigurationCountLimitReached", message);
        }
        let (mut public, mut private) = (0, 0);
        let (mut v4, mut v6) = (0, 0);
        let mut seen = BTreeSet::new();
        for frontend in frontends {
            let id = format!("{}/frontendIPConfigurations/{}", entry.id, text(frontend, &["name"]));
            let inside = &frontend["properties"];
            let pip = text(inside, &["publicIPAddress", "id"]);
            let has = |key: &str| !text(inside, &[key, "id"]).is_empty();
            match (!pip.is_empty() || has("publicIPPrefix"), has("subnet")) {
                (true, false) => {
                    public += 1;
                    check_public_frontend(frontend, &id)?;
                }
                (false, true) => {
                    private += 1;
                    check_private_frontend(inside, &id)?;
                }
                _ => {
                    let message = format!(
                        "Frontend {id} must reference either a public IP address (or prefix) or a \
                         subnet."
                    );
                    return refuse("InvalidFrontendIPConfiguration", message);
                }
            }
            if !pip.is_empty() {
                if !seen.insert(pip.to_lowercase()) {
                    let message = format!(
                        "Public IP address {pip} is referenced by multiple ipconfigs in resource \
                         {}.",
                        entry.id
                    );
                    return refuse("PublicIPReferencedByMultipleIPConfigs", message);
                }
                let family = self.check_frontend_address(key, entry, &id, pip, sku)?;
                if family == "IPv6" { v6 += 1 } else { v4 += 1 }
            }
        }
        if public > 0 && private > 0 {
            let message = format!(
                "Load balancer {} has public and internal frontends; all must be of one sort.",
                entry.id
            );
            return refuse("PublicAndPrivateFrontendIPConfigurationsNotAllowed", message);
        }
        if self.options.ipv6_needs_ipv4.is_on() && v6 > 0 && v4 == 0 {
            let message = format!(
                "At least one IPv4 frontend ip configuration is required for the IPv6 frontend ip \
                 configuration of load balancer {}.",
                entry.id
            );
            return refuse("AtleastOneIpV4RequiredForIpV6LbFrontendIpConfiguration", message);
        }
        Ok(())
    }

    /// Checks the public IP of a frontend; returns its family.
    fn check_frontend_address(
        &self,
        key: &str,
        entry: &Entry,
        frontend: &str,
        pip: &str,
        sku: &str,
    ) -> Checked<String> {
        let Some(address) = self.store.find(pip) else { return Ok("IPv4".to_owned()) };
        if address.kind != kind::PIP {
            let message = format!("{pip}, referenced by {frontend}, is not a public IP address.");
            return Err(refusal(400, "InvalidResourceReference", message));
        }
        let address_sku = text(&address.value, &["sku", "name"]);
        let fitting = if same(sku, "Service") { "StandardV2" } else { sku };
        if !same(if address_sku.is_empty() { "Basic" } else { address_sku }, fitting) {
            let message = format!(
                "{sku} sku load balancer {} cannot reference {address_sku} sku publicIP {pip}.",
                entry.id
            );
            return Err(refusal(400, "PublicIPAndLBSkuDoNotMatch", message));
        }
        if let Some(user) = self.store.users(pip).find(|user| user.owner != key) {
            let message = format!(
                "Resource {frontend} is referencing public IP address {pip} that is already \
                 allocated to resource {}.",
                user.element
            );
            return Err(refusal(400, "PublicIPAddressInUse", message));
        }
        self.check_provisioned(address, &entry.id)?;
        Ok(text(&address.value, &["properties", "publicIPAddressVersion"]).to_owned())
    }

    fn check_pools(&self, entry: &Entry, sku: &str) -> Checked {
        for pool in list(&entry.value, &["properties", "backendAddressPools"]) {
            let id = format!("{}/backendAddressPools/{}", entry.id, text(pool, &["name"]));
            let inside = &pool["properties"];
            let addresses = list(inside, &["loadBalancerBackendAddresses"]);
            if addresses.len() > MAX_POOL_ADDRESSES {
                let message =
                    format!("Backend pool {id} has more than {MAX_POOL_ADDRESSES} addresses.");
                return refuse("LoadBalancerBackendAddressPoolAddressLimitReached", message);
            }
            if addresses.is_empty() {
                continue;
            }
            // learn.microsoft.com/azure/load-balancer/backend-pool-management, "Limitations".
            if same(sku, "Basic") {
                let message =
                    format!("Backend pool {id} of a Basic load balancer takes no addresses.");
                return refuse("BackendAddressPoolAddressesNeedStandardSku", message);
            }
            if let Some(user) = self.store.users(&id).next() {
                let message = format!(
                    "Backend pool {id} cannot have addresses while the NIC {} is in it.",
                    user.element
                );
                return refuse("BackendAddressPoolCannotMixNicsAndAddresses", message);
            }
            check_pool_addresses(&id, inside, addresses)?;
            self.check_pool_network(&id, inside, addresses)?;
        }
        Ok(())
    }

    /// Addresses stand in the virtual network that the pool, or the address, names.
    fn check_pool_network(&self, id: &str, inside: &Value, addresses: &[Value]) -> Checked {
        let of = |holder: &Value| {
            let network = self.store.find(text(holder, &["virtualNetwork", "id"]))?;
            Some((network.id.clone(), space(network)))
        };
        let common = of(inside);
        for address in addresses {
            let own = &address["properties"];
            let given = text(own, &["ipAddress"]);
            let (Ok(parsed), Some((network, ranges))) =
                (given.parse::<IpAddr>(), of(own).as_ref().or(common.as_ref()).cloned())
            else {
                continue;
            };
            if !ranges.iter().any(|range| range.contains(&parsed)) {
                let message = format!(
                    "Address {given} of backend pool {id} is not in the address space of virtual \
                     network {network}."
                );
                return refuse("BackendAddressNotInVirtualNetwork", message);
            }
        }
        Ok(())
    }
}

/// Refuses new elements with names that nothing can have.
fn check_element_names(entry: &Entry, old: Option<&Entry>) -> Checked {
    for collection in LB_COLLECTIONS {
        let standing = old.map_or(&[][..], |old| list(&old.value, &["properties", collection]));
        let mut names: BTreeSet<&str> = BTreeSet::new();
        names.extend(standing.iter().map(|element| text(element, &["name"])));
        let given = list(&entry.value, &["properties", collection]);
        let mut given = given.iter().map(|element| text(element, &["name"]));
        if let Some(bad) = given.find(|name| !names.contains(name) && check_name(name).is_err()) {
            return check_name(bad);
        }
    }
    Ok(())
}

/// The zones of a public frontend are those of its address (Azure's documentation of the property
/// `zones`; the code is that of terraform-provider-azurerm's threads).
fn check_public_frontend(frontend: &Value, id: &str) -> Checked {
    if list(frontend, &["zones"]).is_empty() {
        return Ok(());
    }
    let message =
        format!("Frontend {id} cannot have zones when it references a public IP address.");
    refuse("LoadBalancerFrontendIPConfigCannotHaveZoneWhenReferencingPublicIPAddress", message)
}

fn check_private_frontend(inside: &Value, id: &str) -> Checked {
    let fixed = same(text(inside, &["privateIPAllocationMethod"]), "Static");
    if !fixed || !text(inside, &["privateIPAddress"]).is_empty() {
        return Ok(());
    }
    let message = format!("Frontend {id} has the allocation method Static and no address.");
    refuse("PrivateIPAddressRequiredForStaticAllocation", message)
}

fn check_pool_addresses(id: &str, inside: &Value, addresses: &[Value]) -> Checked {
    let network = !text(inside, &["virtualNetwork", "id"]).is_empty();
    let mut seen = BTreeSet::new();
    for address in addresses {
        let own = &address["properties"];
        let given = text(own, &["ipAddress"]);
        if text(address, &["name"]).is_empty() {
            let message = format!("An address of backend pool {id} has no name.");
            return refuse("InvalidRequestFormat", message);
        }
        let Ok(parsed) = given.parse::<IpAddr>() else {
            if !text(own, &["loadBalancerFrontendIPConfiguration", "id"]).is_empty() {
                continue;
            }
            let message = format!("\"{given}\" in backend pool {id} is not an IP address.");
            return refuse("InvalidIPAddressFormat", message);
        };
        if !seen.insert(parsed) {
            let message = format!("Backend pool {id} has the address {given} twice.");
            return refuse("DuplicateBackendAddress", message);
        }
        let near = ["virtualNetwork", "subnet"];
        if !network && near.iter().all(|key| text(own, &[key, "id"]).is_empty()) {
            let message = format!(
                "Address {given} of backend pool {id} needs a virtual network, of its own or of \
                 the pool."
            );
            return refuse("BackendAddressPoolVirtualNetworkRequired", message);
        }
    }
    Ok(())
}

fn frontend_in_use(balancer: &str, name: &str, user: &str) -> Checked {
    let message = format!(
        "Frontend ip configuration {balancer}/frontendIPConfigurations/{name} is in use by {user} \
         and cannot be deleted."
    );
    refuse("InUseFrontendIPConfigurationCannotBeDeleted", message)
}

/// The code and text of Azure/azure-cli issue 27806. A PUT without a SKU asks for Basic.
pub(crate) fn sku_changed(id: &str, from: &str, to: &str) -> Checked {
    let message = format!(
        "Sku property is set at creation time and cannot be changed from {from} to {to} on \
         resource update for resource {id}."
    );
    refuse("SkuCannotBeChangedOnUpdate", message)
}

fn check_sku_change(from: &str, to: &str, id: &str) -> Checked {
    // Not even from Basic to Standard: Azure's guidance is another load balancer in its place
    // (learn.microsoft.com/azure/load-balancer/load-balancer-basic-upgrade-guidance).
    if same(from, to) || from.is_empty() {
        return Ok(());
    }
    sku_changed(id, from, to)
}

fn check_probes(entry: &Entry, sku: &str) -> Checked {
    for probe in list(&entry.value, &["properties", "probes"]) {
        let inside = &probe["properties"];
        let name = text(probe, &["name"]);
        let bad = |what: &str| {
            refuse("InvalidParameterValue", format!("Probe {name} of {}: {what}.", entry.id))
        };
        let protocol = text(inside, &["protocol"]).to_lowercase();
        match protocol.as_str() {
            "tcp" if !text(inside, &["requestPath"]).is_empty() => {
                return bad("a Tcp probe has no requestPath");
            }
            "https" if same(sku, "Basic") => return bad("Https needs the Standard SKU"),
            "http" | "https" if text(inside, &["requestPath"]).is_empty() => {
                return bad("an Http probe needs a requestPath");
            }
            "tcp" | "http" | "https" => {}
            _ => return bad("the protocol must be Tcp, Http or Https"),
        }
        if !number(inside, &["port"]).is_some_and(|port| (1..=65_535).contains(&port)) {
            return bad("the port must be 1 to 65535");
        }
        let interval = number(inside, &["intervalInSeconds"]).unwrap_or(15);
        let count = number(inside, &["probeThreshold"])
            .max(number(inside, &["numberOfProbes"]))
            .unwrap_or(1);
        if interval < 5 {
            return bad("intervalInSeconds must be at least 5");
        }
        if count < 1 || interval * count > 120 {
            return bad("interval times number of probes must be at most 120 seconds");
        }
    }
    Ok(())
}
