//! The data path's tables, from the emulated resources.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde_json::{Value, json};

use crate::azure::Azure;
use crate::json::{list, named, number, references, same, text};
use crate::path::{kind, last};
use crate::store::Entry;
use data_path::{
    Admin, Backend, Distribution, Floating, IdleReset, Ports, Probe, ProbeKey, ProbeKind, Rule,
    Sku, Tables, Transport,
};

/// `probeThreshold` and `numberOfProbes` of a probe that has neither.
const THRESHOLD: i64 = 1;
/// `intervalInSeconds` of a probe that has none.
const INTERVAL_S: i64 = 15;
/// `idleTimeoutInMinutes` of a rule that has none.
const IDLE_MIN: i64 = 4;

impl Azure {
    /// What the data path forwards by, as the resources are now.
    #[must_use]
    pub fn tables(&self) -> Tables {
        let mut tables = Tables::default();
        for key in self.store.keys_of(kind::LB, "") {
            let Some(entry) = self.store.get(key) else { continue };
            read_probes(key, entry, &mut tables.probes);
            for value in list(&entry.value, &["properties", "loadBalancingRules"]) {
                self.read_rule(key, entry, value, &mut tables);
            }
        }
        tables
    }

    fn read_rule(&self, key: &str, entry: &Entry, value: &Value, tables: &mut Tables) {
        let inside = &value["properties"];
        let frontend = last(text(inside, &["frontendIPConfiguration", "id"]));
        let Some(frontend) = self.frontend_address(entry, frontend) else { return };
        let protocol = text(inside, &["protocol"]);
        let port = number(inside, &["frontendPort"]).and_then(|port| u16::try_from(port).ok());
        let (transport, ports) = match port {
            _ if same(protocol, "All") => (Transport::Tcp, Ports::All),
            Some(port) if same(protocol, "Udp") => (Transport::Udp, Ports::One(port)),
            Some(port) => (Transport::Tcp, Ports::One(port)),
            None => return,
        };
        let backend_port = number(inside, &["backendPort"])
            .and_then(|port| u16::try_from(port).ok())
            .filter(|port| *port != 0);
        let probe = text(inside, &["probe", "id"]).to_lowercase();
        let probe = Some(ProbeKey(probe)).filter(|probe| tables.probes.contains_key(probe));
        let minutes = number(inside, &["idleTimeoutInMinutes"]).unwrap_or(IDLE_MIN);
        tables.rules.push(Rule {
            id: format!("{key}/loadbalancingrules/{}", text(value, &["name"]).to_lowercase()),
            frontend,
            transport,
            ports,
            backend_port,
            distribution: distribution(text(inside, &["loadDistribution"])),
            idle_ms: u64::try_from(minutes).unwrap_or_default() * 60_000,
            idle_reset: match inside["enableTcpReset"] == json!(true) {
                true => IdleReset::Sent,
                false => IdleReset::Silent,
            },
            floating: match inside["enableFloatingIP"] == json!(true) {
                true => Floating::Kept,
                false => Floating::Rewritten,
            },
            probe,
            backends: self.rule_backends(inside),
            sku: match same(text(&entry.value, &["sku", "name"]), "Basic") {
                true => Sku::Basic,
                false => Sku::Standard,
            },
        });
    }

    fn frontend_address(&self, entry: &Entry, name: &str) -> Option<IpAddr> {
        let frontends = list(&entry.value, &["properties", "frontendIPConfigurations"]);
        let inside = &named(frontends, name)?["properties"];
        let address = match text(inside, &["publicIPAddress", "id"]) {
            "" => text(inside, &["privateIPAddress"]),
            id => text(&self.store.find(id)?.value, &["properties", "ipAddress"]),
        };
        address.parse().ok()
    }

    fn rule_backends(&self, inside: &Value) -> Vec<Backend> {
        let mut pools = references(&inside["backendAddressPool"]);
        if pools.is_empty() {
            pools = references(&inside["backendAddressPools"]);
        }
        let mut found: BTreeMap<IpAddr, Admin> = BTreeMap::new();
        for pool in pools {
            for address in self.pool_backends(pool) {
                found.entry(address).or_insert(Admin::None);
            }
            let Some((_, Some(element))) = self.store.holder(pool) else { continue };
            for address in list(element, &["properties", "loadBalancerBackendAddresses"]) {
                let own = &address["properties"];
                if let Ok(address) = text(own, &["ipAddress"]).parse() {
                    found.insert(address, admin(text(own, &["adminState"])));
                }
            }
        }
        found.into_iter().map(|(address, admin)| Backend { address, admin }).collect()
    }
}

fn read_probes(key: &str, entry: &Entry, probes: &mut BTreeMap<ProbeKey, Probe>) {
    for value in list(&entry.value, &["properties", "probes"]) {
        let inside = &value["properties"];
        let port = number(inside, &["port"]).and_then(|port| u16::try_from(port).ok());
        let Some(port) = port else { continue };
        let path = || text(inside, &["requestPath"]).to_owned();
        let kind = match same(text(inside, &["protocol"]), "Http") {
            true => ProbeKind::Http { path: path() },
            false => ProbeKind::Tcp,
        };
        let seconds = number(inside, &["intervalInSeconds"]).unwrap_or(INTERVAL_S).max(1);
        let threshold = number(inside, &["probeThreshold"]).unwrap_or(THRESHOLD).max(1);
        let name = text(value, &["name"]).to_lowercase();
        let probe = Probe {
            kind,
            port,
            interval_ms: u64::try_from(seconds).unwrap_or_default() * 1_000,
            threshold: u32::try_from(threshold).unwrap_or(u32::MAX),
        };
        probes.insert(ProbeKey(format!("{key}/probes/{name}")), probe);
    }
}

fn distribution(text: &str) -> Distribution {
    if same(text, "SourceIP") {
        Distribution::SourceIp
    } else if same(text, "SourceIPProtocol") {
        Distribution::SourceIpProtocol
    } else {
        Distribution::FiveTuple
    }
}

fn admin(text: &str) -> Admin {
    if same(text, "Up") {
        Admin::Up
    } else if same(text, "Down") {
        Admin::Down
    } else {
        Admin::None
    }
}
