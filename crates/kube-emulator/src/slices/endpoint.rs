//! What a pod is in a slice.

use crate::json::{at, items, text};
use serde_json::{Value, json};
use std::net::IpAddr;

/// The pod's address of a family.
fn address_of(pod: &Value, family: &str) -> Option<String> {
    let listed = items(pod, "/status/podIPs").iter().map(|one| text(one, "/ip"));
    let fits = |address: &&str| match address.parse::<IpAddr>() {
        Ok(IpAddr::V4(_)) => family == "IPv4",
        Ok(IpAddr::V6(_)) => family == "IPv6",
        Err(_) => false,
    };
    listed.chain(std::iter::once(text(pod, "/status/podIP"))).find(fits).map(str::to_string)
}

fn is_ready(pod: &Value) -> bool {
    items(pod, "/status/conditions")
        .iter()
        .any(|one| text(one, "/type") == "Ready" && text(one, "/status") == "True")
}

/// The endpoint of a pod, if it has an address and is not over. A pod that is not ready is there,
/// too, and says so, as in a real cluster.
pub(super) fn endpoint_of(
    service: &Value,
    pod: &Value,
    family: &str,
    zone: Option<&str>,
) -> Option<Value> {
    if matches!(text(pod, "/status/phase"), "Succeeded" | "Failed") {
        return None;
    }
    let address = address_of(pod, family)?;
    let serving = is_ready(pod);
    let terminating = !text(pod, "/metadata/deletionTimestamp").is_empty();
    let anyway = at(service, "/spec/publishNotReadyAddresses") == &json!(true);
    let ready = anyway || (serving && !terminating);
    let mut endpoint = json!({
        "addresses": [address],
        "conditions": {"ready": ready, "serving": serving, "terminating": terminating},
        "targetRef": {"kind": "Pod", "namespace": text(pod, "/metadata/namespace"),
            "name": text(pod, "/metadata/name"), "uid": text(pod, "/metadata/uid")},
    });
    let node = text(pod, "/spec/nodeName");
    if !node.is_empty() {
        endpoint["nodeName"] = json!(node);
    }
    if let Some(zone) = zone {
        endpoint["zone"] = json!(zone);
    }
    let hostname = text(pod, "/spec/hostname");
    if !hostname.is_empty() && text(pod, "/spec/subdomain") == text(service, "/metadata/name") {
        endpoint["hostname"] = json!(hostname);
    }
    Some(endpoint)
}

/// The Service's ports as this pod serves them; a name the pod does not know is left out.
pub(super) fn ports_for(service: &Value, pod: &Value) -> Value {
    let mut ports = Vec::new();
    for port in items(service, "/spec/ports") {
        let protocol = text(port, "/protocol");
        let number = match at(port, "/targetPort") {
            Value::String(name) => named_port(pod, name, protocol),
            number => number.as_u64(),
        };
        let Some(number) = number else { continue };
        let mut entry = json!({"name": text(port, "/name"), "port": number, "protocol": protocol});
        if let Some(application) = port.get("appProtocol") {
            entry["appProtocol"] = application.clone();
        }
        ports.push(entry);
    }
    json!(ports)
}

fn named_port(pod: &Value, name: &str, protocol: &str) -> Option<u64> {
    let ports = items(pod, "/spec/containers").iter().flat_map(|one| items(one, "/ports"));
    let fits = |port: &&Value| text(port, "/name") == name && text(port, "/protocol") == protocol;
    let found = ports.into_iter().find(fits)?;
    at(found, "/containerPort").as_u64()
}
