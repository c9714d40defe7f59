//! Where packets would go: the backends behind a frontend, and the address a pod leaves with.

use std::collections::BTreeSet;
use std::net::IpAddr;

use serde_json::{Value, json};

use crate::azure::Azure;
use crate::json::{list, number, references, same, text};
use crate::path::kind;
use crate::store::Entry;

/// Where traffic to one address, protocol and port goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Traffic {
    /// The load balancer's id.
    pub balancer: String,
    /// The name of the rule.
    pub rule: String,
    /// The port at the backends.
    pub backend_port: u16,
    /// Whether packets keep the frontend's address.
    pub floating_ip: FloatingIp,
    /// The addresses of the backends, sorted.
    pub backends: Vec<String>,
}

/// Whether packets arrive with the frontend's address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FloatingIp {
    /// They do: the backend must hold that address.
    Kept,
    /// They carry the backend's own.
    Rewritten,
}

impl Traffic {
    pub(crate) fn to_json(&self) -> Value {
        json!({
            "balancer": self.balancer, "rule": self.rule, "backendPort": self.backend_port,
            "floatingIP": self.floating_ip == FloatingIp::Kept, "backends": self.backends,
        })
    }
}

impl Azure {
    /// Where traffic to a frontend's address goes; `None` if no rule takes it. Probes and
    /// security groups are not looked at: a backend listed here may still refuse.
    pub fn traffic(&self, ip: &str, protocol: &str, port: u16) -> Option<Traffic> {
        let address: IpAddr = ip.parse().ok()?;
        let (frontend, balancer) = self.frontend_of(&address)?;
        let rules = list(&balancer.value, &["properties", "loadBalancingRules"]);
        let takes = |rule: &&Value| {
            let inside = &rule["properties"];
            let own = text(inside, &["protocol"]);
            let here = text(inside, &["frontendIPConfiguration", "id"]);
            let exact =
                same(own, protocol) && number(inside, &["frontendPort"]) == Some(i64::from(port));
            same(here, &frontend) && (same(own, "All") || exact)
        };
        let rule = rules.iter().find(takes)?;
        let inside = &rule["properties"];
        let backend_port = match number(inside, &["backendPort"]).unwrap_or(0) {
            0 => port,
            other => u16::try_from(other).unwrap_or(port),
        };
        let floating = inside["enableFloatingIP"] == json!(true);
        let mut pools = references(&inside["backendAddressPool"]);
        if pools.is_empty() {
            pools = references(&inside["backendAddressPools"]);
        }
        let backends: BTreeSet<IpAddr> =
            pools.into_iter().flat_map(|pool| self.pool_backends(pool)).collect();
        Some(Traffic {
            balancer: balancer.id.clone(),
            rule: text(rule, &["name"]).to_owned(),
            backend_port,
            floating_ip: if floating { FloatingIp::Kept } else { FloatingIp::Rewritten },
            backends: backends.iter().map(IpAddr::to_string).collect(),
        })
    }

    /// The frontend that has an address, public or private, and its load balancer.
    fn frontend_of(&self, address: &IpAddr) -> Option<(String, &Entry)> {
        if let Some(pip) = self.store.owner_of_name(&address.to_string()) {
            let user = self.store.users(pip).find(|user| user.property == "publicIPAddress")?;
            return Some((user.element.clone(), self.store.get(&user.owner)?));
        }
        self.store.keys_of(kind::SUBNET, "").find_map(|subnet| {
            let element = self.store.owner_of_address(subnet, address)?;
            let (balancer, _) = self.store.holder(element)?;
            (balancer.kind == kind::LB).then(|| (element.to_owned(), balancer))
        })
    }

    /// The addresses behind a pool: its own, its NICs', and those a Service Gateway maps to it.
    pub(crate) fn pool_backends(&self, pool: &str) -> BTreeSet<IpAddr> {
        let mut found: BTreeSet<IpAddr> = BTreeSet::new();
        if let Some((_, Some(element))) = self.store.holder(pool) {
            for address in list(element, &["properties", "loadBalancerBackendAddresses"]) {
                let inside = &address["properties"];
                if !same(text(inside, &["adminState"]), "Down") {
                    found.extend(text(inside, &["ipAddress"]).parse::<IpAddr>().ok());
                }
            }
        }
        let members = self.members(pool);
        found.extend(members.iter().filter_map(|(_, address)| address.parse::<IpAddr>().ok()));
        for gateway in self.gateways.values() {
            for name in gateway.services_at(pool) {
                found.extend(gateway.addresses_of(name));
            }
        }
        found
    }

    /// The public addresses and prefixes a pod leaves with: those of the NAT gateways of the
    /// outbound services that list it, else of the default one.
    pub fn egress(&self, pod: &str) -> Vec<String> {
        let Ok(pod) = pod.parse::<IpAddr>() else { return Vec::new() };
        let mut found = BTreeSet::new();
        for gateway in self.gateways.values() {
            let mapped = gateway.locations.values().filter_map(|at| at.get(&pod)).flatten();
            let outbound = |service: &&Value| {
                let kind = text(service, &["properties", "serviceType"]).to_lowercase();
                kind.ends_with("outbound")
            };
            let own: Vec<&Value> = mapped
                .filter_map(|name| gateway.services.get(&name.to_lowercase()))
                .filter(outbound)
                .collect();
            let default = gateway.services.values().filter(outbound);
            let default =
                default.filter(|service| service["properties"]["isDefault"] == json!(true));
            let chosen = if own.is_empty() { default.collect() } else { own };
            for service in chosen {
                let nat = text(service, &["properties", "publicNatGatewayId"]);
                found.extend(self.nat_addresses(nat, pod.is_ipv6()));
            }
        }
        found.into_iter().collect()
    }

    fn nat_addresses(&self, nat: &str, v6: bool) -> Vec<String> {
        let Some(nat) = self.store.find(nat) else { return Vec::new() };
        let inside = &nat.value["properties"];
        let suffix = if v6 { "V6" } else { "" };
        let addresses = references(&inside[format!("publicIpAddresses{suffix}").as_str()]);
        let prefixes = references(&inside[format!("publicIpPrefixes{suffix}").as_str()]);
        let read = |ids: Vec<&str>, key: &str| -> Vec<String> {
            let entries = ids.into_iter().filter_map(|id| self.store.find(id));
            let texts = entries.map(|entry| text(&entry.value, &["properties", key]).to_owned());
            texts.filter(|found| !found.is_empty()).collect()
        };
        let mut found = read(addresses, "ipAddress");
        found.extend(read(prefixes, "ipPrefix"));
        found
    }
}
