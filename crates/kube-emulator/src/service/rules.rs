//! Which Services are refused.

use super::{
    has_cluster_ip, has_health_port, has_node_ports, is_headless, is_load_balancer,
    is_reached_from_outside, service_type,
};
use crate::json::{at, items, text, texts};
use crate::names::{is_dns_label, is_port_name};
use crate::status::FieldFault;
use ipnet::IpNet;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::net::IpAddr;

const TYPES: [&str; 4] = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
const POLICIES: [&str; 2] = ["Cluster", "Local"];
const ONLY_BALANCED: &str = "may only be used when `type` is 'LoadBalancer'";

/// What is wrong with a Service by itself.
pub(super) fn spec_faults(service: &Value) -> Vec<FieldFault> {
    let mut faults = Vec::new();
    let kind = service_type(service);
    if !TYPES.contains(&kind) {
        faults.push(FieldFault::unsupported("spec.type", &json!(kind), &TYPES));
    }
    let ports = items(service, "/spec/ports");
    if ports.is_empty() && !is_headless(service) && kind != "ExternalName" {
        faults.push(FieldFault::required("spec.ports", ""));
    }
    if is_headless(service) && has_node_ports(service) {
        let why = format!("may not be set to 'None' for {kind} services");
        faults.push(FieldFault::invalid("spec.clusterIPs[0]", &json!("None"), &why));
    }
    if kind == "ExternalName" {
        if text(service, "/spec/externalName").is_empty() {
            faults.push(FieldFault::required("spec.externalName", ""));
        }
        if !items(service, "/spec/clusterIPs").is_empty() {
            let why = "may not be set for ExternalName services";
            faults.push(FieldFault::forbidden("spec.clusterIPs", why));
        }
    }
    port_faults(service, ports, &mut faults);
    affinity_faults(service, &mut faults);
    policy_faults(service, &mut faults);
    balancer_faults(service, &mut faults);
    faults
}

fn port_faults(service: &Value, ports: &[Value], faults: &mut Vec<FieldFault>) {
    let mut names = BTreeSet::new();
    let mut numbers = BTreeSet::new();
    let mut node_ports = BTreeSet::new();
    for (index, port) in ports.iter().enumerate() {
        let field = format!("spec.ports[{index}]");
        let name = text(port, "/name");
        if name.is_empty() && ports.len() > 1 {
            faults.push(FieldFault::required(format!("{field}.name"), ""));
        } else if !name.is_empty() && !is_dns_label(name) {
            let why = "a DNS label must consist of lower case alphanumeric characters or '-'";
            faults.push(FieldFault::invalid(format!("{field}.name"), &json!(name), why));
        }
        if !name.is_empty() && !names.insert(name) {
            faults.push(FieldFault::duplicate(format!("{field}.name"), &json!(name)));
        }
        single_port_faults(&field, port, faults);
        let protocol = text(port, "/protocol");
        if !numbers.insert((at(port, "/port").as_u64(), protocol)) {
            faults.push(FieldFault::duplicate(field.clone(), port));
        }
        if let Some(node_port) = at(port, "/nodePort").as_u64() {
            let field = format!("{field}.nodePort");
            if !has_node_ports(service) {
                let why = format!("may not be used when `type` is '{}'", service_type(service));
                faults.push(FieldFault::forbidden(field, &why));
            } else if !node_ports.insert((node_port, protocol)) {
                faults.push(FieldFault::duplicate(field, port));
            }
        }
    }
}

fn single_port_faults(field: &str, port: &Value, faults: &mut Vec<FieldFault>) {
    let in_range = |value: &Value| value.as_u64().is_some_and(|n| (1..=65_535).contains(&n));
    let range = "must be between 1 and 65535, inclusive";
    let number = at(port, "/port");
    if !in_range(number) {
        faults.push(FieldFault::invalid(format!("{field}.port"), number, range));
    }
    match at(port, "/targetPort") {
        Value::String(name) if !is_port_name(name) => {
            let why = "must contain only alpha-numeric characters (a-z, 0-9), hyphens, and at \
                       least one letter, no more than 15 characters";
            let field = format!("{field}.targetPort");
            faults.push(FieldFault::invalid(field, &json!(name), why));
        }
        Value::Number(number) if !in_range(&json!(number)) => {
            let field = format!("{field}.targetPort");
            faults.push(FieldFault::invalid(field, &json!(number), range));
        }
        _ => {}
    }
    let protocol = text(port, "/protocol");
    let known = ["SCTP", "TCP", "UDP"];
    if !known.contains(&protocol) {
        let field = format!("{field}.protocol");
        faults.push(FieldFault::unsupported(field, &json!(protocol), &known));
    }
}

fn affinity_faults(service: &Value, faults: &mut Vec<FieldFault>) {
    let affinity = text(service, "/spec/sessionAffinity");
    let known = ["ClientIP", "None"];
    if !known.contains(&affinity) {
        let field = "spec.sessionAffinity";
        faults.push(FieldFault::unsupported(field, &json!(affinity), &known));
    }
    let seconds = at(service, "/spec/sessionAffinityConfig/clientIP/timeoutSeconds");
    if !seconds.is_null() && !seconds.as_u64().is_some_and(|n| (1..=86_400).contains(&n)) {
        let field = "spec.sessionAffinityConfig.clientIP.timeoutSeconds";
        let why = "must be greater than 0 and less than 86400";
        faults.push(FieldFault::invalid(field, seconds, why));
    }
}

fn policy_faults(service: &Value, faults: &mut Vec<FieldFault>) {
    for name in ["externalTrafficPolicy", "internalTrafficPolicy"] {
        let policy = text(service, &format!("/spec/{name}"));
        if !policy.is_empty() && !POLICIES.contains(&policy) {
            let field = format!("spec.{name}");
            faults.push(FieldFault::unsupported(field, &json!(policy), &POLICIES));
        }
    }
    let external = at(service, "/spec/externalTrafficPolicy");
    if !external.is_null() && !is_reached_from_outside(service) {
        let why = "may only be set for externally-accessible services";
        faults.push(FieldFault::invalid("spec.externalTrafficPolicy", external, why));
    }
    let health = at(service, "/spec/healthCheckNodePort");
    if !health.is_null() && !has_health_port(service) {
        let why = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is \
                   'Local'";
        faults.push(FieldFault::invalid("spec.healthCheckNodePort", health, why));
    }
    for (index, address) in texts(service, "/spec/externalIPs").iter().enumerate() {
        if address.parse::<IpAddr>().is_err() {
            let field = format!("spec.externalIPs[{index}]");
            let why = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
            faults.push(FieldFault::invalid(field, &json!(address), why));
        }
    }
}

fn balancer_faults(service: &Value, faults: &mut Vec<FieldFault>) {
    let ranges = texts(service, "/spec/loadBalancerSourceRanges");
    if !ranges.is_empty() && !is_load_balancer(service) {
        faults.push(FieldFault::forbidden("spec.LoadBalancerSourceRanges", ONLY_BALANCED));
    }
    for (index, range) in ranges.iter().enumerate() {
        // Blanks around a range are allowed: manifests older than the field have them.
        if range.trim().parse::<IpNet>().is_err() {
            let field = format!("spec.LoadBalancerSourceRanges[{index}]");
            let why = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";
            faults.push(FieldFault::invalid(field, &json!(range), why));
        }
    }
    if is_load_balancer(service) {
        return;
    }
    for name in ["loadBalancerClass", "allocateLoadBalancerNodePorts"] {
        if !at(service, &format!("/spec/{name}")).is_null() {
            faults.push(FieldFault::forbidden(format!("spec.{name}"), ONLY_BALANCED));
        }
    }
}

/// What is wrong with the step from one stored Service to the next.
pub(super) fn change_faults(old: &Value, new: &Value) -> Vec<FieldFault> {
    let mut faults = Vec::new();
    if has_cluster_ip(old) && has_cluster_ip(new) {
        let (before, after) = (texts(old, "/spec/clusterIPs"), texts(new, "/spec/clusterIPs"));
        for (index, (was, is)) in before.iter().zip(&after).enumerate() {
            if was != is {
                let field = format!("spec.clusterIPs[{index}]");
                let why = "may not change once set";
                faults.push(FieldFault::invalid(field, &json!(after), why));
            }
        }
        let first = at(old, "/spec/ipFamilies/0");
        let now = at(new, "/spec/ipFamilies/0");
        if !first.is_null() && first != now {
            let why = "may not change once set";
            faults.push(FieldFault::invalid("spec.ipFamilies[0]", now, why));
        }
    }
    if is_load_balancer(old) && is_load_balancer(new) {
        let pointer = "/spec/loadBalancerClass";
        if at(old, pointer) != at(new, pointer) {
            let why = "may not change once set";
            faults.push(FieldFault::invalid("spec.loadBalancerClass", at(new, pointer), why));
        }
    }
    if has_health_port(old) && has_health_port(new) {
        let pointer = "/spec/healthCheckNodePort";
        if at(old, pointer) != at(new, pointer) {
            let why = "field is immutable";
            faults.push(FieldFault::forbidden("spec.healthCheckNodePort", why));
        }
    }
    faults
}

/// What is wrong with a Service's status.
pub(crate) fn status_faults(service: &Value) -> Vec<FieldFault> {
    let mut faults = Vec::new();
    let ingress = items(service, "/status/loadBalancer/ingress");
    let field = "status.loadBalancer.ingress";
    if !ingress.is_empty() && !is_load_balancer(service) {
        let why = "may only be used when `spec.type` is \"LoadBalancer\"";
        faults.push(FieldFault::forbidden(field, why));
    }
    for (index, entry) in ingress.iter().enumerate() {
        let (ip, mode) = (text(entry, "/ip"), text(entry, "/ipMode"));
        if !ip.is_empty() && ip.parse::<IpAddr>().is_err() {
            let why = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
            faults.push(FieldFault::invalid(format!("{field}[{index}].ip"), &json!(ip), why));
        }
        if ip.is_empty() && !mode.is_empty() {
            let why = "may not be used when `ip` is not set";
            faults.push(FieldFault::forbidden(format!("{field}[{index}].ipMode"), why));
        }
        let known = ["Proxy", "VIP"];
        if !mode.is_empty() && !known.contains(&mode) {
            let field = format!("{field}[{index}].ipMode");
            faults.push(FieldFault::unsupported(field, &json!(mode), &known));
        }
        if text(entry, "/hostname").parse::<IpAddr>().is_ok() {
            let field = format!("{field}[{index}].hostname");
            let why = "must be a DNS name, not an IP address";
            faults.push(FieldFault::invalid(field, at(entry, "/hostname"), why));
        }
    }
    faults
}
