//! How lists and maps of the built-in kinds merge.

use serde_json::Value;

/// How a list merges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ListRule {
    /// Items are told apart by these members.
    Keyed(&'static [&'static str]),
    /// Items are plain values, each at most once.
    Set,
    /// The list is one value.
    Atomic,
}

/// The rule for the list at a path (member names only, without list positions).
pub(super) fn list_rule(kind: &str, path: &[&str]) -> ListRule {
    use ListRule::{Atomic, Keyed, Set};
    let parent = path.len().checked_sub(2).map_or("", |at| path[at]);
    let Some(last) = path.last() else { return Atomic };
    match (kind, parent, *last) {
        (_, "metadata", "finalizers") => Set,
        (_, "metadata", "ownerReferences") => Keyed(&["uid"]),
        ("Service", "spec", "ports") => Keyed(&["port", "protocol"]),
        ("EndpointSlice" | "NetworkPolicy" | "Event" | "Lease", _, _) => Atomic,
        (_, "status", "conditions") => Keyed(&["type"]),
        ("Node", "status", "addresses") => Keyed(&["type"]),
        ("Node", "spec", "podCIDRs") => Set,
        ("ServiceAccount", _, "secrets" | "imagePullSecrets") => Keyed(&["name"]),
        ("Pod" | "Deployment", parent, last) => pod_list_rule(parent, last),
        _ => Atomic,
    }
}

fn pod_list_rule(parent: &str, last: &str) -> ListRule {
    use ListRule::{Atomic, Keyed};
    match (parent, last) {
        (
            "spec",
            "containers"
            | "initContainers"
            | "ephemeralContainers"
            | "volumes"
            | "imagePullSecrets"
            | "resourceClaims"
            | "schedulingGates",
        ) => Keyed(&["name"]),
        ("spec", "hostAliases") => Keyed(&["ip"]),
        ("spec", "topologySpreadConstraints") => Keyed(&["topologyKey", "whenUnsatisfiable"]),
        ("status", "podIPs") => Keyed(&["ip"]),
        ("containers" | "initContainers" | "ephemeralContainers", inner) => match inner {
            "env" => Keyed(&["name"]),
            "ports" => Keyed(&["containerPort", "protocol"]),
            "volumeMounts" => Keyed(&["mountPath"]),
            "volumeDevices" => Keyed(&["devicePath"]),
            _ => Atomic,
        },
        _ => Atomic,
    }
}

/// Maps that are one value for field owners: a selector makes sense only whole.
pub(super) fn is_atomic_map(path: &[&str]) -> bool {
    matches!(
        path.last().copied().unwrap_or(""),
        "selector"
            | "nodeSelector"
            | "labelSelector"
            | "podSelector"
            | "namespaceSelector"
            | "involvedObject"
            | "related"
            | "targetRef"
            | "fieldRef"
            | "resourceFieldRef"
            | "configMapKeyRef"
            | "secretKeyRef"
    )
}

/// The value of a key member, with the default that the API would give it.
pub(super) fn key_value(item: &Value, key: &str) -> Value {
    match item.get(key) {
        Some(value) if !value.is_null() => value.clone(),
        _ if key == "protocol" => Value::from("TCP"),
        _ => Value::Null,
    }
}

/// Whether two items have the same keys.
pub(super) fn same_item(keys: &[&str], left: &Value, right: &Value) -> bool {
    keys.iter().all(|key| key_value(left, key) == key_value(right, key))
}
