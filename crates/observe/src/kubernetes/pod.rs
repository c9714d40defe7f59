//! Pods.

use super::raw::{Ip, Metadata, RawPod};
use super::{ObjectError, addresses, deletion, full_name, parse};
use crate::intern::Interner;
use model::kubernetes::{Claim, EGRESS_MARKS, Pod, PodPhase};
use serde_json::Value;
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

/// The label that names a Pod's egress gateway.
pub(crate) const EGRESS_LABEL: &str = "kubernetes.azure.com/service-egress-gateway";

/// Reads a Pod.
///
/// # Errors
/// It has no name or no UID.
pub fn pod(raw: &RawPod, interner: &mut Interner) -> Result<Pod, ObjectError> {
    let metadata = &raw.metadata;
    let name = full_name("Pod", metadata, interner)?;
    if metadata.uid.is_empty() {
        return Err(ObjectError::new("Pod", metadata, "it has no uid"));
    }
    let status = &raw.status;
    let egress = metadata.labels.get(EGRESS_LABEL).map(|v| interner.text(&v.to_lowercase()));
    Ok(Pod {
        uid: Arc::from(metadata.uid.as_str()),
        name,
        revision: Arc::from(metadata.revision.as_str()),
        egress,
        deletion: deletion(metadata),
        phase: match status.phase.as_str() {
            "Pending" | "Running" => PodPhase::Alive,
            _ => PodPhase::Ended,
        },
        marks: marks(metadata, interner),
        claim: Claim::Needed,
        finalizers: metadata.finalizers.iter().map(|f| interner.text(f)).collect(),
        addresses: several_or_one(&status.pod_ips, &status.pod_ip),
        hosts: several_or_one(&status.host_ips, &status.host_ip),
    })
}

/// The same from parsed JSON.
///
/// # Errors
/// It is no Pod, or has no name or no UID.
pub fn pod_from_value(value: &Value, interner: &mut Interner) -> Result<Pod, ObjectError> {
    pod(&parse("Pod", value)?, interner)
}

fn marks(metadata: &Metadata, interner: &mut Interner) -> BTreeSet<Arc<str>> {
    let text = metadata.annotations.get(EGRESS_MARKS).map_or("", String::as_str);
    let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
    names.map(|name| interner.text(&name.to_lowercase())).collect()
}

/// Older API servers have the one field, newer ones both.
fn several_or_one(several: &[Ip], one: &str) -> Vec<IpAddr> {
    let found = addresses(several.iter().map(|ip| ip.ip.as_str()));
    if found.is_empty() { addresses([one]) } else { found }
}
