//! From one stored Service to the next: allocated values the client left out come back, and
//! values that have no meaning for the new type go, unless the client changed them (then
//! validation says so).

use super::{
    has_cluster_ip, has_health_port, has_node_ports, is_load_balancer, is_reached_from_outside,
};
use crate::json::{at, child, drop_key, is_blank, items, object, text};
use serde_json::Value;
use std::collections::BTreeMap;

fn copy(old: &Value, new: &mut Value, field: &str) {
    let value = at(old, &format!("/spec/{field}")).clone();
    if !value.is_null() {
        child(new, "spec").insert(field.to_string(), value);
    }
}

fn is_unset(service: &Value, field: &str) -> bool {
    is_blank(at(service, &format!("/spec/{field}")))
}

pub(super) fn carry_over(old: &Value, new: &mut Value) {
    if has_cluster_ip(old) && has_cluster_ip(new) {
        let single_unset = is_unset(new, "clusterIP");
        if single_unset && is_unset(new, "clusterIPs") {
            copy(old, new, "clusterIP");
        }
        let same = at(old, "/spec/clusterIP") == at(new, "/spec/clusterIP");
        if is_unset(new, "clusterIPs") && same {
            copy(old, new, "clusterIPs");
        }
        for field in ["ipFamilies", "ipFamilyPolicy"] {
            if is_unset(new, field) {
                copy(old, new, field);
            }
        }
    }
    if has_node_ports(old) && has_node_ports(new) {
        carry_node_ports(old, new);
    }
    if has_health_port(old) && has_health_port(new) && is_unset(new, "healthCheckNodePort") {
        copy(old, new, "healthCheckNodePort");
    }
}

/// Node ports come back by port name, unless they are in use for another port now.
fn carry_node_ports(old: &Value, new: &mut Value) {
    let known: BTreeMap<&str, &Value> = items(old, "/spec/ports")
        .iter()
        .filter(|port| !at(port, "/nodePort").is_null())
        .map(|port| (text(port, "/name"), at(port, "/nodePort")))
        .collect();
    let used: Vec<Value> = items(new, "/spec/ports")
        .iter()
        .map(|port| at(port, "/nodePort").clone())
        .filter(|port| !port.is_null())
        .collect();
    let ports = new.pointer_mut("/spec/ports").and_then(Value::as_array_mut);
    for port in ports.into_iter().flatten() {
        if !at(port, "/nodePort").is_null() {
            continue;
        }
        if let Some(node_port) = known.get(text(port, "/name")).copied()
            && !used.contains(node_port)
        {
            object(port).insert("nodePort".to_string(), node_port.clone());
        }
    }
}

pub(super) fn drop_foreign_fields(old: &Value, new: &mut Value) {
    if has_cluster_ip(old) && !has_cluster_ip(new) {
        drop_unchanged(old, new, &["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"]);
        drop_unchanged(old, new, &["internalTrafficPolicy"]);
    }
    if has_node_ports(old) && !has_node_ports(new) && node_ports(old) == node_ports(new) {
        let ports = new.pointer_mut("/spec/ports").and_then(Value::as_array_mut);
        for port in ports.into_iter().flatten() {
            drop_key(object(port), "nodePort");
        }
    }
    if has_health_port(old) && !has_health_port(new) {
        drop_unchanged(old, new, &["healthCheckNodePort"]);
    }
    if is_load_balancer(old) && !is_load_balancer(new) {
        drop_unchanged(old, new, &["allocateLoadBalancerNodePorts", "loadBalancerClass"]);
    }
    if is_reached_from_outside(old) && !is_reached_from_outside(new) {
        drop_unchanged(old, new, &["externalTrafficPolicy"]);
    }
}

fn node_ports(service: &Value) -> Vec<&Value> {
    items(service, "/spec/ports").iter().map(|port| at(port, "/nodePort")).collect()
}

fn drop_unchanged(old: &Value, new: &mut Value, fields: &[&str]) {
    for field in fields {
        let pointer = format!("/spec/{field}");
        if at(old, &pointer) == at(new, &pointer) {
            drop_key(child(new, "spec"), field);
        }
    }
}
