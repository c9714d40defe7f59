//! What a Service may name of what other namespaces have, as far as its annotations tell.

use super::findings::{INVALID_SHARING_NAMESPACE, RESOURCE_GROUP_NOT_ALLOWED};
use super::reader::Reader;
use crate::ask::annotation::{self, SHARE};
use model::Group;

/// Notes entries that are no names of namespaces.
pub(super) fn check(r: &mut Reader<'_>) {
    for entry in r.list(SHARE) {
        if entry != "*" && !is_namespace(entry) {
            r.find(&INVALID_SHARING_NAMESPACE, SHARE, entry);
        }
    }
}

/// Refuses a resource group that the cloud config neither has nor lists.
pub(super) fn group(r: &mut Reader<'_>, key: &str, name: &str, own: &Group) {
    let Some(listed) = &r.policy.tenancy.groups else { return };
    let group = Group::new(name);
    if group == *own || listed.contains(&group) {
        return;
    }
    let mut all = vec![own.as_str()];
    all.extend(listed.iter().map(Group::as_str));
    let message = format!(
        "must be a resource group that allowedResourceGroups of the cloud config lists ({})",
        all.join(", ")
    );
    r.find_with(&RESOURCE_GROUP_NOT_ALLOWED, &annotation::full(key), name, &message);
}

/// Whether Kubernetes takes a name for a namespace (RFC 1123 label).
fn is_namespace(name: &str) -> bool {
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    (1..=63).contains(&name.len())
        && name.bytes().all(inner)
        && !name.starts_with('-')
        && !name.ends_with('-')
}
