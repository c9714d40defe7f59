//! Whose names of egress gateways are.
//!
//! What is promised (docs/security.md, "What a tenant cannot do"):
//! - A name that the cloud config lists is that of the namespaces which it lists, another that of
//!   the namespace which used it first. Whose Pods the table lists for it keeps it.
//! - There are no more gateways than the cloud config allows.

use super::table::pod_addresses;
use super::{egress_of, held, id_of};
use crate::case::Case;
use crate::estate::{items, text};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The namespaces that have each name.
pub(super) fn tenants(case: &Case<'_>) -> BTreeMap<String, BTreeSet<String>> {
    let mut by_name: BTreeMap<String, Vec<&Value>> = BTreeMap::new();
    for pod in &case.scene.pods {
        if let Some(name) = egress_of(pod) {
            by_name.entry(name).or_default().push(pod);
        }
    }
    let of = |pod: &Value| text(&pod["metadata"]["namespace"]).to_owned();
    let tenants = by_name.into_iter().map(|(name, pods)| {
        let listed = pods.iter().filter(|pod| is_listed(case, pod, &name));
        let mut tenants: BTreeSet<String> = listed.map(|pod| of(pod)).collect();
        match case.site.egress.get(&name) {
            Some(config) if config.iter().any(|namespace| namespace == "*") => {
                tenants.extend(pods.iter().map(|pod| of(pod)));
            }
            Some(config) => tenants.extend(config.iter().cloned()),
            None if tenants.is_empty() => {
                let first = pods.iter().min_by_key(|pod| text(&pod["metadata"]["uid"]));
                tenants.extend(first.map(|pod| of(pod)));
            }
            None => {}
        }
        (name, tenants)
    });
    tenants.collect()
}

/// Names for which there is room: those that have a NAT gateway, and all others while the cluster
/// has fewer than the cloud config allows. A gateway that a Pod without an address keeps takes up
/// room as every other does.
pub(super) fn has_room(case: &Case<'_>, name: &str, wanted: &BTreeSet<String>) -> bool {
    let stands = |name: &str| case.estate.get(&id_of(case, "natGateways", name)).is_some();
    let held = held(case);
    let standing = wanted.union(&held).filter(|name| stands(name)).count();
    stands(name) || standing < case.site.most_egress
}

/// Whether the table lists an address of a Pod for a name.
fn is_listed(case: &Case<'_>, pod: &Value, name: &str) -> bool {
    let addresses: BTreeSet<String> = pod_addresses(pod).iter().map(ToString::to_string).collect();
    let tables = case.scene.gateway.as_ref();
    let locations = tables.and_then(|tables| tables["locations"].as_object());
    locations.into_iter().flatten().any(|(_, rows)| {
        let mut rows = rows.as_object().into_iter().flatten();
        rows.any(|(address, row)| {
            let mut services = items(row).map(text);
            addresses.contains(address)
                && services.any(|service| service.eq_ignore_ascii_case(name))
        })
    })
}
