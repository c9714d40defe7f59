//! What the API does to Services: defaults, allocation, validation, changes of type.

mod claims;
mod defaults;
mod families;
mod rules;
mod transition;

pub(crate) use claims::Numbers;
pub(crate) use rules::status_faults;

use crate::json::{child, text};
use crate::kinds::Kind;
use crate::status::{ApiError, FieldFault};
use serde_json::{Value, json};

/// The Service as it will be stored, or why it is refused. `old` is the stored one, if any.
pub(crate) fn admit(
    kind: &'static Kind,
    numbers: &Numbers,
    old: Option<&Value>,
    service: &mut Value,
) -> Result<(), ApiError> {
    if old.is_none() {
        service["status"] = json!({"loadBalancer": {}});
    }
    defaults::fill(service);
    if let Some(old) = old {
        transition::carry_over(old, service);
        transition::drop_foreign_fields(old, service);
        defaults::fill(service);
    }
    let name = text(service, "/metadata/name").to_string();
    let refuse = |faults: Vec<FieldFault>| match faults.is_empty() {
        true => Ok(()),
        false => Err(ApiError::invalid(kind, &name, &faults)),
    };
    refuse(families::settle(numbers, old, service))?;
    let mut faults = rules::spec_faults(service);
    if let Some(old) = old {
        faults.extend(rules::change_faults(old, service));
    }
    refuse(faults)?;
    refuse(claims::allocate(numbers, old, service))?;
    if old.is_some_and(is_load_balancer) && !is_load_balancer(service) {
        child(service, "status").insert("loadBalancer".to_string(), json!({}));
    }
    Ok(())
}

/// Defaults of the status.
pub(crate) fn fill_status(service: &mut Value) {
    let ingress = service.pointer_mut("/status/loadBalancer/ingress");
    for entry in ingress.and_then(Value::as_array_mut).into_iter().flatten() {
        if !text(entry, "/ip").is_empty() && text(entry, "/ipMode").is_empty() {
            entry["ipMode"] = json!("VIP");
        }
    }
}

pub(crate) fn service_type(service: &Value) -> &str {
    text(service, "/spec/type")
}

pub(crate) fn has_cluster_ip(service: &Value) -> bool {
    matches!(service_type(service), "ClusterIP" | "NodePort" | "LoadBalancer")
}

pub(crate) fn has_node_ports(service: &Value) -> bool {
    matches!(service_type(service), "NodePort" | "LoadBalancer")
}

pub(crate) fn is_load_balancer(service: &Value) -> bool {
    service_type(service) == "LoadBalancer"
}

pub(crate) fn has_health_port(service: &Value) -> bool {
    is_load_balancer(service) && text(service, "/spec/externalTrafficPolicy") == "Local"
}

pub(crate) fn is_headless(service: &Value) -> bool {
    text(service, "/spec/clusterIP") == "None"
}

/// Whether `externalTrafficPolicy` means anything for this Service.
pub(crate) fn is_reached_from_outside(service: &Value) -> bool {
    let external = service.pointer("/spec/externalIPs").and_then(Value::as_array);
    has_node_ports(service)
        || (service_type(service) == "ClusterIP" && external.is_some_and(|list| !list.is_empty()))
}

#[cfg(test)]
mod tests;
