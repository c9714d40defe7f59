//! What the answer to a PUT leaves out about a pool member.

use model::azure::{MemberKind, MemberState, PoolMember};
use serde_json::Value;
use std::sync::Arc;

/// The answer to a PUT of an instance has no instance view, and need not repeat its host name:
/// both are as they were.
pub(super) fn carry_over(
    old: Option<&PoolMember>,
    mut new: PoolMember,
    body: &Value,
) -> PoolMember {
    let Some(old) = old else { return new };
    let property = |key: &str| body.get("properties").and_then(|p| p.get(key));
    let told = property("osProfile").is_some()
        || property("virtualMachineProfile").and_then(|p| p.get("osProfile")).is_some();
    if !told && old.host.is_some() {
        new.host.clone_from(&old.host);
    }
    if property("virtualMachineProfile").and_then(|p| p.get("storageProfile")).is_none() {
        new.ipv6 = old.ipv6;
    }
    let state = property("provisioningState").and_then(Value::as_str).unwrap_or("Succeeded");
    let lives = !["Deleting", "Unknown"].iter().any(|s| state.eq_ignore_ascii_case(s));
    let unseen = new.kind == MemberKind::ScaleSetVm && property("instanceView").is_none();
    if unseen && lives && old.state == MemberState::Usable {
        new.state = MemberState::Usable;
    }
    if new.location.is_empty() {
        new.location = Arc::clone(&old.location);
    }
    new
}
