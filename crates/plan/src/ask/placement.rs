//! Where a Service may be placed.

use super::findings::{
    CONFIGURATIONS_IGNORED, CONFLICTING_PLACEMENT, INVALID_NODE_SET, MODE_IGNORED,
    UNKNOWN_CONFIGURATION, UNKNOWN_CONFIGURATION_NAME,
};
use super::reader::{Reader, is_resource_name};
use super::{PlacementIntent, PlacementMode, PublicIpIntent};
use crate::ask::annotation::CONFIGURATIONS;
use model::Family;
use model::policy::Layout;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

/// Reads both placement annotations.
pub(super) fn read(
    r: &mut Reader<'_>,
    pinned: &BTreeMap<Family, IpAddr>,
    public_ips: &BTreeMap<Family, PublicIpIntent>,
) -> PlacementIntent {
    let brought = public_ips.values().any(|ip| !matches!(ip, PublicIpIntent::Managed { .. }));
    let fixed = brought || !pinned.is_empty();
    PlacementIntent { mode: mode(r), configurations: configurations(r, fixed) }
}

fn mode(r: &mut Reader<'_>) -> PlacementMode {
    let key = "azure-load-balancer-mode";
    let Some(value) = r.text(key) else { return PlacementMode::Primary };
    if !matches!(r.policy.layout, Layout::PerNodeSet { .. }) {
        r.find(&MODE_IGNORED, key, value);
        return PlacementMode::Primary;
    }
    if value.eq_ignore_ascii_case("__auto__") {
        return PlacementMode::Auto;
    }
    if !is_resource_name(value) {
        r.find(&INVALID_NODE_SET, key, value);
    }
    PlacementMode::Set(Arc::from(value))
}

/// A list without an entry names none, as for the Go controller: it does not say that the Service
/// may be anywhere.
fn configurations(r: &mut Reader<'_>, fixed: bool) -> Vec<Arc<str>> {
    let Some(value) = r.raw(CONFIGURATIONS) else { return Vec::new() };
    let Layout::Several(known) = &r.policy.layout else {
        if !value.is_empty() {
            r.find(&CONFIGURATIONS_IGNORED, CONFIGURATIONS, value);
        }
        return Vec::new();
    };
    let mut names: Vec<Arc<str>> = Vec::new();
    let mut strangers = Vec::new();
    for name in r.list(CONFIGURATIONS) {
        if !known.iter().any(|config| config.name.eq_ignore_ascii_case(name)) {
            strangers.push(name);
        } else if !names.iter().any(|n| n.eq_ignore_ascii_case(name)) {
            names.push(Arc::from(name.to_lowercase()));
        }
    }
    if names.is_empty() {
        r.find(&UNKNOWN_CONFIGURATION, CONFIGURATIONS, value);
    } else if !strangers.is_empty() {
        r.find(&UNKNOWN_CONFIGURATION_NAME, CONFIGURATIONS, &strangers.join(","));
    }
    if fixed && !names.is_empty() {
        r.find(&CONFLICTING_PLACEMENT, CONFIGURATIONS, value);
    }
    names
}
