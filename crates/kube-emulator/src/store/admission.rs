//! Defaults and checks of each kind before an object is stored.

use super::Store;
use crate::events;
use crate::json::{at, child, drop_key, items, object, set_default, text};
use crate::kinds::{Kind, StatusPart};
use crate::route::{Part, Target};
use crate::service;
use crate::status::{ApiError, FieldFault};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

/// Kinds whose `generation` counts the changes of their spec.
pub(super) fn has_generation(kind: &Kind) -> bool {
    let counted = ["deployments", "networkpolicies", "poddisruptionbudgets", "endpointslices"];
    counted.contains(&kind.plural)
}

/// A write to the main resource keeps the status, a write to `/status` keeps the rest.
pub(super) fn keep_apart(target: &Target, live: &Value, next: &mut Value) {
    if target.kind.status == StatusPart::None {
        return;
    }
    let map = object(next);
    let keep = |map: &mut Map<String, Value>, key: &str| match live.get(key) {
        Some(value) => {
            map.insert(key.to_string(), value.clone());
        }
        None => {
            drop_key(map, key);
        }
    };
    match target.part {
        Part::Main => {
            keep(map, "status");
            if target.kind.plural == "namespaces" {
                keep(map, "spec");
            }
        }
        Part::Status => {
            let others: Vec<String> = map
                .keys()
                .chain(live.as_object().into_iter().flat_map(|live| live.keys()))
                .filter(|key| *key != "status" && *key != "metadata")
                .cloned()
                .collect();
            for key in others {
                keep(map, &key);
            }
        }
        Part::Finalize => keep(map, "status"),
    }
}

impl Store {
    /// Fills defaults and checks an object that is about to be stored over `old`.
    pub(super) fn admit(
        &self,
        kind: &'static Kind,
        old: Option<&Value>,
        object: &mut Value,
    ) -> Result<(), ApiError> {
        let name = text(object, "/metadata/name").to_string();
        let refuse = |faults: Vec<FieldFault>| match faults.is_empty() {
            true => Ok(()),
            false => Err(ApiError::invalid(kind, &name, &faults)),
        };
        match kind.plural {
            "services" => {
                service::admit(kind, &self.numbers, old, object)?;
                service::fill_status(object);
                refuse(service::status_faults(object))
            }
            "pods" => {
                fill_pod(old, object);
                settle_readiness(object);
                Ok(())
            }
            "namespaces" => {
                fill_namespace(old, object);
                Ok(())
            }
            "secrets" => {
                fill_secret(object);
                refuse(immutable_faults(old, object))
            }
            "configmaps" => refuse(immutable_faults(old, object)),
            "endpointslices" => refuse(slice_faults(old, object)),
            "events" => {
                events::fill(object);
                refuse(event_faults(object))
            }
            "deployments" => {
                set_default(child(object, "spec"), "replicas", json!(1));
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

fn fill_pod(old: Option<&Value>, pod: &mut Value) {
    let spec = child(pod, "spec");
    for (key, value) in [
        ("restartPolicy", json!("Always")),
        ("dnsPolicy", json!("ClusterFirst")),
        ("schedulerName", json!("default-scheduler")),
        ("terminationGracePeriodSeconds", json!(30)),
        ("enableServiceLinks", json!(true)),
    ] {
        set_default(spec, key, value);
    }
    spec.entry("securityContext").or_insert(json!({}));
    for container in spec.get_mut("containers").and_then(Value::as_array_mut).into_iter().flatten()
    {
        let container = object(container);
        container.entry("resources").or_insert(json!({}));
        for port in container.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
            set_default(object(port), "protocol", json!("TCP"));
        }
    }
    if old.is_none() {
        pod["status"] = json!({"phase": "Pending", "qosClass": "BestEffort"});
    }
    let status = child(pod, "status");
    // Both spellings of the pod's address are one value, as for cluster IPs.
    let single = status.get("podIP").and_then(Value::as_str).unwrap_or("").to_string();
    let first = status.get("podIPs").and_then(|list| list.pointer("/0/ip")).cloned();
    match (single.as_str(), first) {
        ("", Some(first)) => {
            status.insert("podIP".to_string(), first);
        }
        (single, None) if !single.is_empty() => {
            status.insert("podIPs".to_string(), json!([{"ip": single}]));
        }
        _ => {}
    }
}

/// The kubelet's part: a pod with readiness gates is ready when its containers are and the
/// condition of every gate is True. Pods without gates are as ready as their status says.
fn settle_readiness(pod: &mut Value) {
    let gates: Vec<String> = items(pod, "/spec/readinessGates")
        .iter()
        .map(|gate| text(gate, "/conditionType").to_string())
        .collect();
    if gates.is_empty() {
        return;
    }
    let needed: Vec<&str> =
        std::iter::once("ContainersReady").chain(gates.iter().map(String::as_str)).collect();
    let conditions = items(pod, "/status/conditions");
    let of = |kind: &str| conditions.iter().find(|one| text(one, "/type") == kind);
    let holds = |kind: &&&str| of(kind).is_some_and(|one| text(one, "/status") == "True");
    let missing = needed.iter().find(|kind| !holds(kind)).copied();
    let status = if missing.is_none() { "True" } else { "False" };
    let time = |one: &Value| text(one, "/lastTransitionTime").to_string();
    let same = of("Ready").filter(|ready| text(ready, "/status") == status).map(time);
    let same = same.filter(|time| !time.is_empty());
    let newest = || needed.iter().filter_map(|kind| of(kind)).map(time).max();
    let last = same.or_else(newest).unwrap_or_default();
    let mut ready = json!({"type": "Ready", "status": status});
    if !last.is_empty() {
        ready["lastTransitionTime"] = json!(last);
    }
    match missing {
        None => {}
        Some("ContainersReady") => ready["reason"] = json!("ContainersNotReady"),
        Some(gate) => {
            ready["reason"] = json!("ReadinessGatesNotReady");
            let message = format!("the status of pod readiness gate {gate:?} is not \"True\"");
            ready["message"] = json!(message);
        }
    }
    let mut next: Vec<Value> =
        conditions.iter().filter(|one| text(one, "/type") != "Ready").cloned().collect();
    next.push(ready);
    child(pod, "status").insert("conditions".to_string(), json!(next));
}

fn fill_namespace(old: Option<&Value>, namespace: &mut Value) {
    let name = text(namespace, "/metadata/name").to_string();
    if old.is_none() {
        namespace["spec"] = json!({"finalizers": ["kubernetes"]});
        namespace["status"] = json!({"phase": "Active"});
    }
    let labels = child(child_value(namespace, "metadata"), "labels");
    labels.insert("kubernetes.io/metadata.name".to_string(), json!(name));
}

fn child_value<'a>(value: &'a mut Value, key: &str) -> &'a mut Value {
    object(value).entry(key.to_string()).or_insert(json!({}))
}

fn fill_secret(secret: &mut Value) {
    let map = object(secret);
    if let Some(Value::Object(plain)) = drop_key(map, "stringData") {
        let stored = child(secret, "data");
        for (key, value) in plain {
            let encoded = STANDARD.encode(value.as_str().unwrap_or(""));
            stored.insert(key, json!(encoded));
        }
    }
    set_default(object(secret), "type", json!("Opaque"));
}

fn immutable_faults(old: Option<&Value>, object: &Value) -> Vec<FieldFault> {
    let Some(old) = old.filter(|old| at(old, "/immutable") == &json!(true)) else {
        return Vec::new();
    };
    let why = "field is immutable when `immutable` is set";
    let members = ["immutable", "data", "binaryData", "type"];
    let changed = members.iter().filter(|key| old.get(**key) != object.get(**key));
    changed.map(|key| FieldFault::forbidden(*key, why)).collect()
}

fn slice_faults(old: Option<&Value>, slice: &Value) -> Vec<FieldFault> {
    let mut faults = Vec::new();
    let family = at(slice, "/addressType");
    let known = ["FQDN", "IPv4", "IPv6"];
    if family.is_null() {
        faults.push(FieldFault::required("addressType", ""));
    } else if !known.contains(&family.as_str().unwrap_or("")) {
        faults.push(FieldFault::unsupported("addressType", family, &known));
    }
    if old.is_some_and(|old| at(old, "/addressType") != family) {
        faults.push(FieldFault::invalid("addressType", family, "field is immutable"));
    }
    faults
}

fn event_faults(event: &Value) -> Vec<FieldFault> {
    let place = text(event, "/metadata/namespace");
    let about = text(event, "/involvedObject/namespace");
    let cluster_wide = about.is_empty() && matches!(place, "default" | "kube-system");
    if about == place || cluster_wide {
        return Vec::new();
    }
    let why = "does not match event.namespace";
    vec![FieldFault::invalid("involvedObject.namespace", &json!(about), why)]
}

/// Takes out members of the metadata that are empty: the API server leaves them out.
pub(super) fn drop_empty(metadata: &mut Map<String, Value>) {
    for member in ["annotations", "labels", "finalizers", "ownerReferences"] {
        let is_empty = match metadata.get(member) {
            Some(Value::Object(map)) => map.is_empty(),
            Some(Value::Array(items)) => items.is_empty(),
            _ => false,
        };
        if is_empty {
            drop_key(metadata, member);
        }
    }
}
