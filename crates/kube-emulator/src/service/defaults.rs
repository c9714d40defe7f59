//! Defaults of a Service's spec.

use super::{has_node_ports, is_load_balancer, is_reached_from_outside, service_type};
use crate::json::{child, drop_key, is_blank, object, set_default, text};
use serde_json::{Value, json};

pub(super) fn fill(service: &mut Value) {
    let spec = child(service, "spec");
    set_default(spec, "type", json!("ClusterIP"));
    set_default(spec, "sessionAffinity", json!("None"));
    fill_affinity(service);
    fill_policies(service);
    let ports = service.pointer_mut("/spec/ports").and_then(Value::as_array_mut);
    for port in ports.into_iter().flatten() {
        let port = object(port);
        set_default(port, "protocol", json!("TCP"));
        let target = port.get("targetPort").unwrap_or(&Value::Null);
        if is_blank(target) || *target == json!(0) {
            let number = port.get("port").cloned().unwrap_or(Value::Null);
            port.insert("targetPort".to_string(), number);
        }
        if port.get("nodePort") == Some(&json!(0)) {
            drop_key(port, "nodePort");
        }
    }
}

fn fill_affinity(service: &mut Value) {
    let affine = text(service, "/spec/sessionAffinity") == "ClientIP";
    let timeout = service.pointer("/spec/sessionAffinityConfig/clientIP/timeoutSeconds");
    let unset = timeout.is_none_or(Value::is_null);
    let spec = child(service, "spec");
    match affine {
        true if unset => {
            let config = json!({"clientIP": {"timeoutSeconds": 10_800}});
            spec.insert("sessionAffinityConfig".to_string(), config);
        }
        true => {}
        false => {
            drop_key(spec, "sessionAffinityConfig");
        }
    }
}

fn fill_policies(service: &mut Value) {
    let external = is_reached_from_outside(service);
    let balanced = is_load_balancer(service);
    let internal = service_type(service) == "ClusterIP" || has_node_ports(service);
    let spec = child(service, "spec");
    if internal {
        set_default(spec, "internalTrafficPolicy", json!("Cluster"));
    }
    if external {
        set_default(spec, "externalTrafficPolicy", json!("Cluster"));
    }
    if balanced && !spec.get("allocateLoadBalancerNodePorts").is_some_and(Value::is_boolean) {
        spec.insert("allocateLoadBalancerNodePorts".to_string(), json!(true));
    }
    if spec.get("healthCheckNodePort") == Some(&json!(0)) {
        drop_key(spec, "healthCheckNodePort");
    }
}
