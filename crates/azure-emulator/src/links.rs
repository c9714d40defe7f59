//! NAT gateways and Private Link Services.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::azure::Azure;
use crate::elements::{check_names, strip_elements};
use crate::json::{
    bare_reference, drop_keys, fill, list, list_mut, object, properties, references, same, text,
};
use crate::message::{Checked, refuse};
use crate::path::kind;
use crate::store::Entry;

const MAX_NAT_ADDRESSES: usize = 16;
const NAT_ADDRESSES: &[&str] = &["publicIpAddresses", "publicIpAddressesV6"];

impl Azure {
    pub(crate) fn prepare_nat_gateway(&self, entry: &mut Entry, old: Option<&Entry>) -> Checked {
        let value = object(&mut entry.value);
        fill(value, "sku", json!({"name": "Standard"}));
        let standing = old.map(|old| old.value["properties"]["serviceGateway"].clone());
        let inside = properties(&mut entry.value);
        drop_keys(inside, &["subnets"]);
        for key in NAT_ADDRESSES.iter().chain(&["publicIpPrefixes", "serviceGateway"]) {
            bare_reference(inside, key);
        }
        // An absent reference to the service gateway leaves it as it is, null clears it.
        match inside.get("serviceGateway") {
            Some(Value::Null) => {
                inside.shift_remove("serviceGateway");
            }
            Some(_) => {}
            None => {
                if let Some(standing) = standing.filter(Value::is_object) {
                    inside.insert("serviceGateway".to_owned(), standing);
                }
            }
        }
        fill(inside, "idleTimeoutInMinutes", 4);
        Ok(())
    }

    pub(crate) fn check_nat_gateway(&self, key: &str, entry: &Entry) -> Checked {
        let sku = text(&entry.value, &["sku", "name"]);
        let id = &entry.id;
        for property in NAT_ADDRESSES {
            let addresses = references(&entry.value["properties"][*property]);
            if addresses.len() > MAX_NAT_ADDRESSES {
                let message = format!("NAT gateway {id} has more than 16 {property}.");
                return refuse("NatGatewayPublicIpAddressLimitReached", message);
            }
            let mut seen = BTreeSet::new();
            for address in addresses {
                if !seen.insert(address.to_lowercase()) {
                    let message = format!("NAT gateway {id} references {address} twice.");
                    return refuse("PublicIPReferencedByMultipleIPConfigs", message);
                }
                self.check_nat_address(key, entry, address, property, sku)?;
            }
        }
        Ok(())
    }

    fn check_nat_address(
        &self,
        key: &str,
        entry: &Entry,
        address: &str,
        property: &str,
        sku: &str,
    ) -> Checked {
        let Some(found) = self.store.find(address) else { return Ok(()) };
        let id = &entry.id;
        if !same(text(&found.value, &["sku", "name"]), sku) {
            let message = format!(
                "NAT gateway {id} of SKU {sku} cannot use the public IP address {address} of \
                 another SKU."
            );
            return refuse("NatGatewayAndPublicIPSkuDoNotMatch", message);
        }
        let version = text(&found.value, &["properties", "publicIPAddressVersion"]);
        if same(version, "IPv6") != property.ends_with("V6") {
            let message = format!("{address} of {id} is {version}, which {property} cannot hold.");
            return refuse("NatGatewayPublicIPVersionMismatch", message);
        }
        if let Some(user) = self.store.users(address).find(|user| user.owner != key) {
            let message = format!(
                "Resource {id} is referencing public IP address {address} that is already \
                 allocated to resource {}.",
                user.element
            );
            return refuse("PublicIPAddressInUse", message);
        }
        self.check_provisioned(found, id)
    }

    pub(crate) fn prepare_private_link(&self, entry: &mut Entry, old: Option<&Entry>) -> Checked {
        check_names(entry, "ipConfigurations")?;
        strip_elements(entry, "ipConfigurations", &[]);
        let of_old =
            |key: &str| old.map_or(Value::Null, |old| old.value["properties"][key].clone());
        let (alias, connections) = (of_old("alias"), of_old("privateEndpointConnections"));
        let location = text(&entry.value, &["location"]).to_owned();
        let new_alias = format!(
            "{}.00000000-0000-0000-0000-000000000000.{location}.azure.privatelinkservice",
            text(&entry.value, &["name"])
        );
        let inside = properties(&mut entry.value);
        drop_keys(inside, &["alias", "networkInterfaces"]);
        bare_reference(inside, "loadBalancerFrontendIpConfigurations");
        inside.insert("alias".to_owned(), if alias.is_string() { alias } else { json!(new_alias) });
        // Connections are made by consumers; a PUT of the service does not drop them.
        if !inside.get("privateEndpointConnections").is_some_and(Value::is_array)
            && connections.is_array()
        {
            inside.insert("privateEndpointConnections".to_owned(), connections);
        }
        strip_elements(entry, "privateEndpointConnections", &[]);
        for element in list_mut(&mut entry.value, "ipConfigurations").into_iter().flatten() {
            let inside = properties(element);
            bare_reference(inside, "subnet");
            fill(inside, "privateIPAllocationMethod", "Dynamic");
        }
        Ok(())
    }

    pub(crate) fn check_private_link(&self, key: &str, entry: &Entry) -> Checked {
        let id = &entry.id;
        let configurations = list(&entry.value, &["properties", "ipConfigurations"]);
        if configurations.is_empty() || configurations.len() > 8 {
            let message = format!("Private link service {id} must have 1 to 8 ipConfigurations.");
            return refuse("PrivateLinkServiceIpConfigurationCountInvalid", message);
        }
        for configuration in configurations {
            let subnet = text(configuration, &["properties", "subnet", "id"]);
            let Some(subnet) = self.store.find(subnet) else { continue };
            let policies =
                text(&subnet.value, &["properties", "privateLinkServiceNetworkPolicies"]);
            if !same(policies, "Disabled") {
                let message = format!(
                    "Private link service {id} cannot be created in a subnet {} since it has \
                     private link service network policies enabled.",
                    subnet.id
                );
                let code = "PrivateLinkServiceCannotBeCreatedInSubnetThatHasNetworkPoliciesEnabled";
                return refuse(code, message);
            }
        }
        let frontends =
            references(&entry.value["properties"]["loadBalancerFrontendIpConfigurations"]);
        if frontends.is_empty()
            && text(&entry.value, &["properties", "destinationIPAddress"]).is_empty()
        {
            let message = format!("Private link service {id} references no frontend.");
            return refuse("PrivateLinkServiceMustReferenceLoadBalancerFrontend", message);
        }
        frontends
            .into_iter()
            .try_for_each(|frontend| self.check_link_frontend(key, entry, frontend))
    }

    /// Refuses what no load balancer has that a private link service stands before: pools of
    /// addresses (the code and text are those of Azure/azure-docs issue 75134, which got them when
    /// it added such a pool beside a link) and IPv6 frontends. No public thread has the latter's
    /// code.
    pub(crate) fn check_beside_link(&self, balancer: &Entry) -> Checked {
        let pools = list(&balancer.value, &["properties", "backendAddressPools"]);
        let mut addresses = pools
            .iter()
            .flat_map(|pool| list(pool, &["properties", "loadBalancerBackendAddresses"]));
        if addresses.any(|address| !text(address, &["properties", "ipAddress"]).is_empty()) {
            let message = format!(
                "Private link service is not supported for load balancer {} with backend addresses \
                 set by (virtualNetwork, ipAddress) or (subnet, ipAddress).",
                balancer.id
            );
            return refuse("PrivateLinkServiceIsNotSupportedForIPBasedLoadBalancer", message);
        }
        let frontends = list(&balancer.value, &["properties", "frontendIPConfigurations"]);
        if let Some(frontend) = frontends.iter().find(|frontend| self.is_ipv6(frontend)) {
            let message = format!(
                "Private link service is not supported for load balancer {} with the IPv6 frontend \
                 {}.",
                balancer.id,
                text(frontend, &["name"])
            );
            return refuse("PrivateLinkServiceIsNotSupportedForIPv6LoadBalancer", message);
        }
        Ok(())
    }

    fn is_ipv6(&self, frontend: &Value) -> bool {
        let inside = &frontend["properties"];
        let version = match self.store.find(text(inside, &["publicIPAddress", "id"])) {
            Some(address) => text(&address.value, &["properties", "publicIPAddressVersion"]),
            None => text(inside, &["privateIPAddressVersion"]),
        };
        same(version, "IPv6")
    }

    /// The keys of the private link services before the frontends of a load balancer.
    fn links_of(&self, balancer: &str) -> impl Iterator<Item = &String> {
        let below = format!("{balancer}/frontendipconfigurations/").to_lowercase();
        self.store.keys_of(kind::PLS, "").filter(move |key| {
            let link = self.store.get(key);
            let of = link.map(|link| &link.value["properties"]);
            let of = of.map(|inside| references(&inside["loadBalancerFrontendIpConfigurations"]));
            of.into_iter().flatten().any(|front| front.to_lowercase().starts_with(&below))
        })
    }

    /// Whether a private link service stands before a frontend of a load balancer.
    pub(crate) fn is_linked(&self, balancer: &str) -> bool {
        self.links_of(balancer).next().is_some()
    }

    /// Azure documentation, "Azure subscription and service limits", Private Link, has both
    /// numbers. No public thread has the codes.
    fn check_link_count(&self, key: &str, entry: &Entry, balancer: &str) -> Checked {
        let most = self.options.private_links_of_balancer;
        let others = self.links_of(balancer).filter(|other| *other != key).count();
        if let Some(most) = most.filter(|most| others >= *most) {
            let message = format!(
                "Load balancer {balancer} has {most} private link services before its frontends; \
                 {} cannot be one more.",
                entry.id
            );
            return refuse("PrivateLinkServiceCountOfLoadBalancerLimitReached", message);
        }
        let subscription = format!("{}/", key.split("/resourcegroups/").next().unwrap_or_default());
        let all = self.store.keys_of(kind::PLS, &subscription);
        let others = all.filter(|other| *other != key).count();
        match self.options.private_links_of_subscription {
            Some(most) if others >= most => {
                let message = format!("The subscription has {most} private link services.");
                refuse("PrivateLinkServiceCountLimitReached", message)
            }
            _ => Ok(()),
        }
    }

    fn check_link_frontend(&self, key: &str, entry: &Entry, frontend: &str) -> Checked {
        let Some((balancer, Some(element))) = self.store.holder(frontend) else { return Ok(()) };
        let id = &entry.id;
        if !same(text(&balancer.value, &["sku", "name"]), "Standard") {
            let message = format!(
                "Private link service {id} needs a Standard load balancer; {} is none.",
                balancer.id
            );
            return refuse("PrivateLinkServiceRequiresStandardLoadBalancer", message);
        }
        self.check_beside_link(balancer)?;
        self.check_link_count(key, entry, &balancer.id)?;
        // A public frontend does as long as none of its rules has floating IP.
        let floats = |rule: &&Value| {
            same(text(rule, &["properties", "frontendIPConfiguration", "id"]), frontend)
                && rule["properties"]["enableFloatingIP"].as_bool() == Some(true)
        };
        let rules = list(&balancer.value, &["properties", "loadBalancingRules"]);
        if text(element, &["properties", "subnet", "id"]).is_empty()
            && rules.iter().any(|rule| floats(&rule))
        {
            let message = format!(
                "Private link service {id} needs an internal frontend, or one whose rules have no \
                 floating IP; {frontend} is public."
            );
            return refuse("PrivateLinkServiceRequiresInternalFrontend", message);
        }
        let users = self.store.users(frontend);
        let is_link = |owner: &str| self.store.get(owner).is_some_and(|x| x.kind == kind::PLS);
        if let Some(other) =
            users.into_iter().find(|user| user.owner != key && is_link(&user.owner))
        {
            let message = format!(
                "Frontend {frontend} of {id} is used by the private link service {} already.",
                other.element
            );
            return refuse("FrontendIPConfigurationInUseByPrivateLinkService", message);
        }
        self.check_provisioned(balancer, id)
    }
}
