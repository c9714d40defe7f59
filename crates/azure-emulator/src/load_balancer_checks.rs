//! What Azure refuses in a load balancer. Codes that no public thread confirms carry the name
//! that says what is wrong.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use serde_json::Value;

use crate::azure::Azure;
use crate::json::{at, list, named, number, references, same, text};
use crate::message::{Checked, refusal, refuse};
use crate::path::{kind, last};
use crate::store::Entry;

const MAX_RULES: usize = 1_500;
const MAX_FRONTENDS: usize = 600;
const MAX_POOL_ADDRESSES: usize = 1_000;

/// A frontend (lower-case name), a port and a protocol: where traffic enters.
type Listeners = BTreeMap<(String, i64, String), String>;

impl Azure {
    pub(crate) fn check_load_balancer(
        &self,
        key: &str,
        entry: &Entry,
        old: Option<&Entry>,
    ) -> Checked {
        let sku = text(&entry.value, &["sku", "name"]);
        if !["Basic", "Standard", "Gateway", "Service"].iter().any(|known| same(known, sku)) {
            let message = format!("{sku} is not a SKU of load balancers.");
            return refuse("InvalidParameterValue", message);
        }
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
        let user = self
            .store
            .users(&pool_id)
            .find(|user| self.store.get(&user.owner).is_some_and(|owner| owner.kind == kind::VMSS));
        if let Some(user) = user {
            let message = format!(
                "Cannot delete load balancer {id} since its child resources {pool} are in use by \
                 virtual machine scale set {}.",
                user.owner
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
                (true, false) => public += 1,
                (false, true) => private += 1,
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
        }
        Ok(())
    }
}

fn check_pool_addresses(id: &str, inside: &Value, addresses: &[Value]) -> Checked {
    let network = !text(inside, &["virtualNetwork", "id"]).is_empty();
    let mut seen = BTreeSet::new();
    for address in addresses {
        let own = &address["properties"];
        let given = text(own, &["ipAddress"]);
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
        let state = text(own, &["adminState"]);
        if !["", "None", "Up", "Down"].iter().any(|known| same(known, state)) {
            let message = format!("{state} is not an admin state of a backend address.");
            return refuse("InvalidParameterValue", message);
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

fn check_sku_change(from: &str, to: &str, id: &str) -> Checked {
    // Not even from Basic to Standard: Azure's guidance is another load balancer in its place
    // (learn.microsoft.com/azure/load-balancer/load-balancer-basic-upgrade-guidance).
    if same(from, to) || from.is_empty() {
        return Ok(());
    }
    let message = format!("The SKU of load balancer {id} cannot be changed from {from} to {to}.");
    refuse("LoadBalancerSkuCannotBeChanged", message)
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

/// Checks the rules of all sorts against the other elements and against one another.
fn check_rules(entry: &Entry) -> Checked {
    let rules = list(&entry.value, &["properties", "loadBalancingRules"]);
    let nat = list(&entry.value, &["properties", "inboundNatRules"]);
    if rules.len() + nat.len() > MAX_RULES {
        let message = format!("{} has more than {MAX_RULES} rules.", entry.id);
        return refuse("LoadBalancingRuleCountLimitReached", message);
    }
    let names = Names::new(entry);
    let mut listeners = Listeners::new();
    let mut backends = BTreeMap::new();
    for rule in rules {
        names.check(entry, rule, true)?;
        check_values(entry, rule)?;
        listen(&mut listeners, entry, rule, number(&rule["properties"], &["frontendPort"]))?;
        check_backend(&mut backends, entry, rule)?;
    }
    for rule in nat {
        names.check(entry, rule, false)?;
        if let Some(port) = number(&rule["properties"], &["frontendPort"]) {
            listen(&mut listeners, entry, rule, Some(port))?;
        }
    }
    for pool in list(&entry.value, &["properties", "inboundNatPools"]) {
        names.check(entry, pool, false)?;
        let inside = &pool["properties"];
        let first = number(inside, &["frontendPortRangeStart"]).unwrap_or(1);
        let final_ = number(inside, &["frontendPortRangeEnd"]).unwrap_or(first).min(65_535);
        for port in first..=final_ {
            listen(&mut listeners, entry, pool, Some(port))?;
        }
    }
    for rule in list(&entry.value, &["properties", "outboundRules"]) {
        names.check(entry, rule, false)?;
    }
    Ok(())
}

/// The lower-case ids of the elements rules may refer to.
struct Names(BTreeSet<String>);

impl Names {
    fn new(entry: &Entry) -> Self {
        let collections = ["frontendIPConfigurations", "backendAddressPools", "probes"];
        let ids = collections.iter().flat_map(|collection| {
            list(&entry.value, &["properties", collection]).iter().map(move |element| {
                format!("{}/{collection}/{}", entry.id, text(element, &["name"])).to_lowercase()
            })
        });
        Names(ids.collect())
    }

    fn check(&self, entry: &Entry, rule: &Value, needs_frontend: bool) -> Checked {
        let inside = &rule["properties"];
        let name = text(rule, &["name"]);
        for key in [
            "frontendIPConfiguration",
            "frontendIPConfigurations",
            "backendAddressPool",
            "backendAddressPools",
            "probe",
        ] {
            for id in references(at(inside, &[key])) {
                if !self.0.contains(&id.to_lowercase()) {
                    let message = format!(
                        "Resource {id} referenced by resource {}, rule {name}, was not found. \
                         Please make sure that the referenced resource exists, and that both \
                         resources are in the same region.",
                        entry.id
                    );
                    return refuse("InvalidResourceReference", message);
                }
            }
        }
        if needs_frontend && references(at(inside, &["frontendIPConfiguration"])).is_empty() {
            let message = format!("Rule {name} of {} has no frontend.", entry.id);
            return refuse("LoadBalancingRuleMustReferenceFrontendIPConfiguration", message);
        }
        Ok(())
    }
}

fn check_values(entry: &Entry, rule: &Value) -> Checked {
    let inside = &rule["properties"];
    let name = text(rule, &["name"]);
    let bad = |what: &str| {
        refuse("InvalidParameterValue", format!("Rule {name} of {}: {what}.", entry.id))
    };
    let protocol = text(inside, &["protocol"]).to_lowercase();
    let lowest = match protocol.as_str() {
        "tcp" | "udp" => 1,
        "all" => 0,
        _ => return bad("the protocol must be Tcp, Udp or All"),
    };
    let port = |key: &str| number(inside, &[key]).unwrap_or(-1);
    if !(lowest..=65_534).contains(&port("frontendPort")) {
        return bad("the frontend port must be 1 to 65534, or 0 with protocol All");
    }
    if !(lowest..=65_535).contains(&port("backendPort")) {
        return bad("the backend port must be 1 to 65535, or 0 with protocol All");
    }
    let idle = number(inside, &["idleTimeoutInMinutes"]).unwrap_or(4);
    let longest = if same(text(&entry.value, &["sku", "name"]), "Standard") { 100 } else { 30 };
    if !(4..=longest).contains(&idle) {
        return bad(&format!("idleTimeoutInMinutes must be 4 to {longest}"));
    }
    let spread = text(inside, &["loadDistribution"]);
    if !["", "Default", "SourceIP", "SourceIPProtocol"].iter().any(|known| same(known, spread)) {
        return bad("loadDistribution must be Default, SourceIP or SourceIPProtocol");
    }
    Ok(())
}

/// Protocol All takes its port of every protocol; with port 0 it takes every port.
fn listen(listeners: &mut Listeners, entry: &Entry, rule: &Value, port: Option<i64>) -> Checked {
    let inside = &rule["properties"];
    let frontend = last(text(inside, &["frontendIPConfiguration", "id"])).to_lowercase();
    let protocol = text(inside, &["protocol"]).to_lowercase();
    let name = text(rule, &["name"]).to_owned();
    let port = port.unwrap_or(0);
    let all = |protocol: &str| protocol == "all";
    let clash = |(_, at, other): &(String, i64, String)| {
        let whole = (all(&protocol) && port == 0) || (all(other) && *at == 0);
        whole || (*at == port && (*other == protocol || all(other) || all(&protocol)))
    };
    let from = (frontend.clone(), i64::MIN, String::new());
    let mut here = listeners.range(from..).take_while(|(key, _)| key.0 == frontend);
    let other = here.find(|(key, _)| clash(key)).map(|(_, found)| found.clone());
    listeners.insert((frontend, port, protocol), name.clone());
    match other {
        None => Ok(()),
        Some(other) => {
            let message = format!(
                "Load balancing rules {other} and {name} of {} use the same frontend port {port}, \
                 protocol and frontend ip configuration.",
                entry.id
            );
            refuse("RulesUseSameFrontendPortProtocolAndIPConfig", message)
        }
    }
}

/// Without floating IP, a pool's (protocol, port) can only serve one rule.
fn check_backend(
    backends: &mut BTreeMap<(String, String, i64), String>,
    entry: &Entry,
    rule: &Value,
) -> Checked {
    let inside = &rule["properties"];
    let pool = last(text(inside, &["backendAddressPool", "id"])).to_lowercase();
    if inside["enableFloatingIP"].as_bool() == Some(true) || pool.is_empty() {
        return Ok(());
    }
    let protocol = text(inside, &["protocol"]).to_lowercase();
    let port = number(inside, &["backendPort"]).unwrap_or(0);
    let name = text(rule, &["name"]);
    match backends.insert((pool, protocol, port), name.to_owned()) {
        None => Ok(()),
        Some(other) => {
            let message = format!(
                "Load balancing rules {other} and {name} belong to the load balancer {} and use \
                 the same backend port {port}, protocol and pool without floating IP.",
                entry.id
            );
            refuse("RulesUseSameBackendPortProtocolAndPool", message)
        }
    }
}
