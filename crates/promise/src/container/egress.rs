//! Egress gateways: Pods with the label `kubernetes.azure.com/service-egress-gateway` leave through
//! a NAT gateway of that name, which Pods of the namespaces that have the name share.
//!
//! What is promised:
//! - The gateway stands from the first such Pod with an address to the last such Pod: a NAT gateway
//!   with the public IP `<name>-pip`, once a node has IPv6 `<name>-pip-v6` as well, and an
//!   Outbound service in the Service Gateway.
//! - Its Pods carry our finalizer, and no other Pod does. It is on one of them before anything is
//!   made: a public IP of that name which stood before is another's, and the name is refused.

use super::table::{Hosts, host_of, pod_addresses};
use super::{EGRESS_LABEL, Registered, held, id_of, judge_ip, rows, tenants};
use crate::case::Case;
use crate::estate::{has_finalizer, items, same, text};
use crate::names::POD_FINALIZER;
use crate::{region, tags};
use serde_json::Value;
use std::collections::BTreeSet;

/// The cluster's own way out.
const DEFAULT: &str = "default-natgw";
/// The longest name: the suffix of its IPv6 public IP has to fit into 80 letters.
const MOST: usize = 73;

/// Whether a label can name an egress gateway, after it was turned to lower case.
pub(super) fn is_valid(name: &str) -> bool {
    let first = name.chars().next();
    let last = name.chars().last();
    let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "._-".contains(c);
    let edge = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    name.len() <= MOST
        && name != DEFAULT
        && name.chars().all(inner)
        && first.is_some_and(edge)
        && last.is_some_and(|c| edge(c) || c == '_')
}

/// Egress gateways that Pods with an address ask for. A Service's UID is no name for one.
pub(super) fn wanted(case: &Case<'_>, registered: &Registered) -> BTreeSet<String> {
    let uids: BTreeSet<String> = case.services.iter().map(|s| super::uid_of(s.object)).collect();
    let pods = case.scene.pods.iter().filter(|pod| is_addressed(pod));
    let names = pods.filter_map(|pod| registered.egress_of(pod));
    let names = names.filter(|name| {
        !uids.contains(name) && !is_anothers(case, name) && !is_lent(case, registered, name)
    });
    let all: BTreeSet<String> = names.collect();
    all.iter().filter(|name| tenants::has_room(case, name, &all)).cloned().collect()
}

/// Whether another's public IP has the name: it stands, nothing else of a gateway does, and no Pod
/// carries our finalizer for it, which would have come first.
fn is_anothers(case: &Case<'_>, name: &str) -> bool {
    let stands = |kind: &str, name: &str| case.estate.get(&id_of(case, kind, name)).is_some();
    let mut ips = ["-pip", "-pip-v6"].iter().map(|suffix| format!("{name}{suffix}"));
    ips.any(|ip| stands("publicIPAddresses", &ip))
        && !stands("natGateways", name)
        && !rows(case).contains_key(name)
        && !held(case).contains(name)
}

/// Whether a gateway service that is another's has the name, or leads to the NAT gateway of that
/// name, as the cluster's own way out does.
fn is_lent(case: &Case<'_>, registered: &Registered, name: &str) -> bool {
    let nat = id_of(case, "natGateways", name);
    let rows = rows(case);
    let mut others = rows.iter().filter(|(other, _)| registered.others.contains(*other));
    let leads = |row: &Value| same(text(&row["properties"]["publicNatGatewayId"]), &nat);
    let free = rows.contains_key(name) && !registered.others.contains(name);
    !free && others.any(|(other, row)| other == name || leads(row))
}

/// Whether a Pod has an address, and its host one of the same family.
fn is_addressed(pod: &Value) -> bool {
    pod_addresses(pod).into_iter().any(|address| host_of(pod, address).is_some())
}

/// Judges egress gateways and their Pods.
pub(super) fn judge(case: &Case<'_>, registered: &Registered, wrong: &mut Vec<String>) {
    for name in &registered.outbound {
        judge_gateway(case, name, wrong);
    }
    for (id, nat) in case.estate.of("Microsoft.Network/natGateways") {
        let name = id.rsplit('/').next().unwrap_or("");
        let gateway = text(&nat["properties"]["serviceGateway"]["id"]).to_lowercase();
        let ours = gateway == id_of(case, "serviceGateways", "servicegateway");
        let asked = registered.outbound.contains(name) || registered.held.contains(name);
        if ours && is_valid(name) && !asked && !is_default(case, id) {
            wrong.push(format!("NAT gateway {name} has no Pod"));
        }
    }
    for pod in &case.scene.pods {
        let meta = &pod["metadata"];
        let key = format!("{}/{}", text(&meta["namespace"]), text(&meta["name"]));
        let name = registered.egress_of(pod);
        let asks = name.is_some_and(|name| registered.outbound.contains(&name));
        let has = has_finalizer(pod, POD_FINALIZER);
        if asks && is_addressed(pod) && !has {
            wrong.push(format!("finalizer {POD_FINALIZER} is not on Pod {key}"));
        }
        let released =
            !meta["deletionTimestamp"].is_null() || meta["labels"][EGRESS_LABEL].is_null();
        if released && has {
            wrong.push(format!("finalizer {POD_FINALIZER} is still on Pod {key}"));
        }
    }
}

/// Whether a NAT gateway is the cluster's default way out.
fn is_default(case: &Case<'_>, id: &str) -> bool {
    let rows = rows(case);
    let mut defaults = rows.values().filter(|row| row["properties"]["isDefault"] == true);
    defaults.any(|row| same(text(&row["properties"]["publicNatGatewayId"]), id))
}

fn judge_gateway(case: &Case<'_>, name: &str, wrong: &mut Vec<String>) {
    let nat_id = id_of(case, "natGateways", name);
    let ip_id = |suffix: &str| id_of(case, "publicIPAddresses", &format!("{name}{suffix}"));
    let (four, six) = (ip_id("-pip"), ip_id("-pip-v6"));
    judge_ip(case, &four, "IPv4", wrong);
    for ip in [&four, &six].into_iter().filter_map(|id| case.estate.get(id)) {
        tags::configured(case, ip, &[], wrong);
    }
    match case.estate.get(&nat_id) {
        Some(nat) => {
            let inside = &nat["properties"];
            tags::configured(case, nat, &[], wrong);
            wrong.extend(region::wrong(case, nat, None));
            if !same(text(&nat["sku"]["name"]), "StandardV2") {
                wrong.push(format!("NAT gateway {name} has the SKU {}", nat["sku"]["name"]));
            }
            let gateway = id_of(case, "serviceGateways", "servicegateway");
            if !same(text(&inside["serviceGateway"]["id"]), &gateway) {
                wrong.push(format!("NAT gateway {name} is not of the Service Gateway"));
            }
            let ids = |field: &str| -> Vec<String> {
                items(&inside[field]).map(|ip| text(&ip["id"]).to_lowercase()).collect()
            };
            if ids("publicIpAddresses") != [four] {
                let has = ids("publicIpAddresses");
                wrong.push(format!("NAT gateway {name} has the public IPs {has:?}"));
            }
            let second = ids("publicIpAddressesV6");
            if !second.is_empty() && second != [six.clone()] {
                wrong.push(format!("NAT gateway {name} has the IPv6 public IPs {second:?}"));
            }
            if second.is_empty() && Hosts::of(case).have_ipv6() {
                wrong
                    .push(format!("NAT gateway {name} has no IPv6 public IP; the nodes have IPv6"));
            }
            if !second.is_empty() {
                judge_ip(case, &six, "IPv6", wrong);
            }
        }
        None => wrong.push(format!("NAT gateway {name} does not stand")),
    }
    let rows = rows(case);
    let Some(row) = rows.get(name) else {
        wrong.push(format!("service {name} of the Service Gateway is not registered"));
        return;
    };
    let inside = &row["properties"];
    let leads = same(text(&inside["publicNatGatewayId"]), &nat_id);
    let outbound = same(text(&inside["serviceType"]), "Outbound");
    if !leads || !outbound || items(&inside["loadBalancerBackendPools"]).count() > 0 {
        wrong.push(format!("service {name} of the Service Gateway is {inside}"));
    }
}
