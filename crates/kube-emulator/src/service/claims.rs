//! Addresses and ports that Services hold. What is taken always follows from the stored
//! Services, so a refused or dry request leaves nothing behind.

use super::{has_cluster_ip, has_health_port, has_node_ports, is_headless, is_load_balancer};
use crate::json::{at, child, items, texts};
use crate::pool::Pool;
use crate::status::FieldFault;
use ipnet::IpNet;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::RangeInclusive;

/// The pools Services draw from.
#[derive(Debug, Clone)]
pub(crate) struct Numbers {
    ranges: Vec<(IpNet, Pool)>,
    ports: Pool,
    port_range: (u16, u16),
}

impl Numbers {
    pub(crate) fn new(ranges: &[IpNet], ports: &RangeInclusive<u16>) -> Self {
        let ranges = ranges.iter().map(|range| {
            let (first, last) = (number(range.network()), number(range.broadcast()));
            // The network address and, for IPv4, the broadcast address are never handed out.
            let last = if range.addr().is_ipv4() { last.saturating_sub(1) } else { last };
            (*range, Pool::new(first + 1, last))
        });
        let port_range = (*ports.start(), *ports.end());
        let ports = Pool::new(u128::from(port_range.0), u128::from(port_range.1));
        Self { ranges: ranges.collect(), ports, port_range }
    }

    pub(super) fn main_family(&self) -> &'static str {
        self.ranges.first().map_or("IPv4", |(range, _)| family_of_net(range))
    }

    pub(super) fn serves(&self, family: &str) -> bool {
        self.ranges.iter().any(|(range, _)| family_of_net(range) == family)
    }

    fn range_for(&self, family: &str) -> Option<&(IpNet, Pool)> {
        self.ranges.iter().find(|(range, _)| family_of_net(range) == family)
    }

    fn pool_of(&mut self, address: IpAddr) -> Option<&mut Pool> {
        let found = self.ranges.iter_mut().find(|(range, _)| range.contains(&address));
        found.map(|(_, pool)| pool)
    }

    /// Gives back what a Service held.
    pub(crate) fn release(&mut self, service: &Value) {
        for address in held_addresses(service) {
            if let Some(pool) = self.pool_of(address) {
                pool.release(number(address));
            }
        }
        for port in held_ports(service) {
            self.ports.release(port);
        }
    }

    /// Takes what a Service holds.
    pub(crate) fn take(&mut self, service: &Value) {
        for address in held_addresses(service) {
            if let Some(pool) = self.pool_of(address) {
                pool.take(number(address));
            }
        }
        for port in held_ports(service) {
            self.ports.take(port);
        }
    }
}

pub(super) fn family_of(address: &str) -> Option<&'static str> {
    match address.trim().parse::<IpAddr>().ok()? {
        IpAddr::V4(_) => Some("IPv4"),
        IpAddr::V6(_) => Some("IPv6"),
    }
}

fn family_of_net(range: &IpNet) -> &'static str {
    match range {
        IpNet::V4(_) => "IPv4",
        IpNet::V6(_) => "IPv6",
    }
}

fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(v4) => u128::from(u32::from(v4)),
        IpAddr::V6(v6) => u128::from(v6),
    }
}

fn address(family: &str, number: u128) -> String {
    match (family, u32::try_from(number)) {
        ("IPv4", Ok(bits)) => Ipv4Addr::from(bits).to_string(),
        _ => Ipv6Addr::from(number).to_string(),
    }
}

fn held_addresses(service: &Value) -> Vec<IpAddr> {
    texts(service, "/spec/clusterIPs").iter().filter_map(|text| text.parse().ok()).collect()
}

fn held_ports(service: &Value) -> BTreeSet<u128> {
    let node_ports = items(service, "/spec/ports").iter().map(|port| at(port, "/nodePort"));
    let health = std::iter::once(at(service, "/spec/healthCheckNodePort"));
    node_ports.chain(health).filter_map(Value::as_u64).map(u128::from).collect()
}

/// Gives the Service the addresses and ports it needs and does not have.
pub(super) fn allocate(
    numbers: &Numbers,
    old: Option<&Value>,
    service: &mut Value,
) -> Vec<FieldFault> {
    let mut faults = Vec::new();
    if has_cluster_ip(service) && !is_headless(service) {
        faults.extend(allocate_addresses(numbers, old, service));
    }
    faults.extend(allocate_ports(numbers, old, service));
    faults
}

fn allocate_addresses(
    numbers: &Numbers,
    old: Option<&Value>,
    service: &mut Value,
) -> Vec<FieldFault> {
    let held = old.map(held_addresses).unwrap_or_default();
    let mut addresses = texts(service, "/spec/clusterIPs");
    let mut faults = Vec::new();
    let refuse = |addresses: &[String], why: String| {
        FieldFault::invalid("spec.clusterIPs", &json!(addresses), &why)
    };
    for text in &addresses {
        let Ok(ip) = text.parse::<IpAddr>() else { continue };
        if held.contains(&ip) {
            continue;
        }
        let family = family_of(text).unwrap_or("IPv4");
        let Some((range, pool)) = numbers.range_for(family) else {
            let why = format!("failed to allocate IP {text}: no range of family {family}");
            faults.push(refuse(&addresses, why));
            continue;
        };
        if !pool.contains(number(ip)) {
            let why = format!(
                "failed to allocate IP {text}: the provided IP ({text}) is not in the valid \
                 range. The range of valid IPs is {range}"
            );
            faults.push(refuse(&addresses, why));
        } else if !pool.is_free(number(ip)) {
            let why = format!("failed to allocate IP {text}: provided IP is already allocated");
            faults.push(refuse(&addresses, why));
        }
    }
    for family in texts(service, "/spec/ipFamilies").iter().skip(addresses.len()) {
        let free = numbers.range_for(family).and_then(|(_, pool)| pool.find(&BTreeSet::new()));
        match free {
            Some(free) => addresses.push(address(family, free)),
            None => {
                let why = format!("failed to allocate an IP of family {family}: range is full");
                faults.push(refuse(&addresses, why));
            }
        }
    }
    let spec = child(service, "spec");
    if let Some(first) = addresses.first() {
        spec.insert("clusterIP".to_string(), json!(first));
    }
    spec.insert("clusterIPs".to_string(), json!(addresses));
    faults
}

fn requested_faults(numbers: &Numbers, held: &BTreeSet<u128>, service: &Value) -> Vec<FieldFault> {
    let mut faults = Vec::new();
    let (first, last) = numbers.port_range;
    let mut check = |field: String, port: u64| {
        let wanted = u128::from(port);
        if held.contains(&wanted) {
            return;
        }
        if !numbers.ports.contains(wanted) {
            let why = format!(
                "provided port is not in the valid range. The range of valid ports is \
                 {first}-{last}"
            );
            faults.push(FieldFault::invalid(field, &json!(port), &why));
        } else if !numbers.ports.is_free(wanted) {
            let why = "provided port is already allocated";
            faults.push(FieldFault::invalid(field, &json!(port), why));
        }
    };
    for (index, port) in items(service, "/spec/ports").iter().enumerate() {
        if let Some(port) = at(port, "/nodePort").as_u64() {
            check(format!("spec.ports[{index}].nodePort"), port);
        }
    }
    if let Some(port) = at(service, "/spec/healthCheckNodePort").as_u64() {
        check("spec.healthCheckNodePort".to_string(), port);
    }
    faults
}

fn allocate_ports(numbers: &Numbers, old: Option<&Value>, service: &mut Value) -> Vec<FieldFault> {
    let held = old.map(held_ports).unwrap_or_default();
    let mut faults = requested_faults(numbers, &held, service);
    let mut chosen = held_ports(service);
    let mut draw = |field: String| {
        let found = numbers.ports.find(&chosen);
        match found {
            Some(port) => {
                chosen.insert(port);
                Some(json!(u64::try_from(port).unwrap_or_default()))
            }
            None => {
                let why = "failed to allocate a nodePort: range is full";
                faults.push(FieldFault::invalid(field, &Value::Null, why));
                None
            }
        }
    };
    let refrains = at(service, "/spec/allocateLoadBalancerNodePorts") == &json!(false);
    let wants = has_node_ports(service) && !(is_load_balancer(service) && refrains);
    let health = has_health_port(service);
    let mut shared = match old {
        None => requested_ports(service),
        Some(_) => BTreeMap::new(),
    };
    let spec = child(service, "spec");
    let ports = spec.get_mut("ports").and_then(Value::as_array_mut);
    // Ports of a new Service with the same number and another protocol share a node port, as
    // DNS over TCP and UDP wants it.
    for (index, port) in ports.into_iter().flatten().enumerate() {
        if !wants || !at(port, "/nodePort").is_null() {
            continue;
        }
        let number = at(port, "/port").as_u64().unwrap_or_default();
        let known = shared.get(&number).cloned();
        let Some(free) = known.or_else(|| draw(format!("spec.ports[{index}].nodePort"))) else {
            continue;
        };
        if old.is_none() {
            shared.insert(number, free.clone());
        }
        port["nodePort"] = free;
    }
    if health
        && !spec.contains_key("healthCheckNodePort")
        && let Some(free) = draw("spec.healthCheckNodePort".to_string())
    {
        spec.insert("healthCheckNodePort".to_string(), free);
    }
    faults
}

/// Port numbers to the node ports the client asked for.
fn requested_ports(service: &Value) -> BTreeMap<u64, Value> {
    let ports = items(service, "/spec/ports").iter();
    ports
        .filter_map(|port| {
            let wanted = at(port, "/nodePort");
            at(port, "/port").as_u64().filter(|_| !wanted.is_null()).map(|n| (n, wanted.clone()))
        })
        .collect()
}
