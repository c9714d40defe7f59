//! Nodes.

use super::raw::RawNode;
use super::{ObjectError, addresses, deletion, filled, parse};
use crate::intern::Interner;
use ipnet::IpNet;
use model::Group;
use model::kubernetes::{DRAIN_LABEL, Deletion, Membership, Node, NodeRole};
use serde_json::Value;
use std::sync::Arc;

const EXCLUDE_LABEL: &str = "node.kubernetes.io/exclude-from-external-load-balancers";
const MANAGED_LABEL: &str = "kubernetes.azure.com/managed";
const GROUP_LABEL: &str = "kubernetes.azure.com/resource-group";
const CONTROL_PLANE_LABELS: [&str; 2] =
    ["node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"];
/// The old label that says a node's role in its value.
const ROLE_LABEL: &str = "kubernetes.io/role";
const DELETION_TAINT: &str = "ToBeDeletedByClusterAutoscaler";

/// Reads a Node; `group` is the cluster's resource group.
///
/// # Errors
/// It has no name.
pub fn node(raw: &RawNode, group: &Group, interner: &mut Interner) -> Result<Node, ObjectError> {
    let metadata = &raw.metadata;
    if metadata.name.is_empty() {
        return Err(ObjectError::new("Node", metadata, "it has no name"));
    }
    let internal = raw.status.addresses.iter().filter(|a| a.kind == "InternalIP");
    let labels = &metadata.labels;
    let control_plane = CONTROL_PLANE_LABELS.iter().any(|l| labels.contains_key(*l))
        || labels.get(ROLE_LABEL).is_some_and(|r| r == "master");
    Ok(Node {
        name: interner.node(&metadata.name),
        revision: Arc::from(metadata.revision.as_str()),
        addresses: addresses(internal.map(|a| a.address.as_str())),
        ranges: ranges(raw),
        provider_id: filled(raw.spec.provider_id.as_ref()),
        labels: interner.labels(labels),
        membership: membership(raw, group),
        role: if control_plane { NodeRole::ControlPlane } else { NodeRole::Worker },
    })
}

/// The ranges of the node's Pods, and its addresses outside the virtual network.
fn ranges(raw: &RawNode) -> Vec<IpNet> {
    let spec = &raw.spec;
    let pods = spec.pod_ranges.iter().chain(std::iter::once(&spec.pod_range));
    let external = raw.status.addresses.iter().filter(|a| a.kind == "ExternalIP");
    let external = addresses(external.map(|a| a.address.as_str())).into_iter().map(IpNet::from);
    let mut all: Vec<IpNet> = pods.filter_map(|text| text.parse().ok()).chain(external).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// The same from parsed JSON.
///
/// # Errors
/// It is no Node, or has no name.
pub fn node_from_value(
    value: &Value,
    group: &Group,
    interner: &mut Interner,
) -> Result<Node, ObjectError> {
    node(&parse("Node", value)?, group, interner)
}

fn membership(raw: &RawNode, group: &Group) -> Membership {
    let label = |key: &str| raw.metadata.labels.get(key).map(String::as_str);
    // The label's presence counts, as its definition says; `false` is a value like any other.
    let excluded = label(EXCLUDE_LABEL).is_some();
    let unmanaged = label(MANAGED_LABEL).is_some_and(|v| v.eq_ignore_ascii_case("false"));
    // A group without a name is none, as for the Go cloud provider.
    let other = |v: &str| !v.is_empty() && Group::new(v) != *group;
    let elsewhere = label(GROUP_LABEL).is_some_and(other);
    let going = deletion(&raw.metadata) == Deletion::Requested
        || label(DRAIN_LABEL).is_some()
        || raw.spec.taints.iter().any(|t| t.key == DELETION_TAINT);
    match (excluded || unmanaged || elsewhere, going) {
        (false, false) => Membership::Member,
        (true, false) => Membership::Excluded,
        (false, true) => Membership::Draining,
        (true, true) => Membership::Leaving,
    }
}
