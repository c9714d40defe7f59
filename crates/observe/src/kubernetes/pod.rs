//! Pods.

use super::raw::{Ip, Metadata, RawPod};
use super::{ObjectError, addresses, deletion, full_name, parse};
use crate::intern::Interner;
use model::kubernetes::{
    Claim, Custody, Deletion, EGRESS_MARKS, Gate, GatedPod, Others, Pod, PodPhase, READINESS_GATE,
};
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
    let egress = metadata.labels.get(EGRESS_LABEL).map(|v| interner.text(&v.to_lowercase()));
    Ok(Pod {
        uid: Arc::from(metadata.uid.as_str()),
        name,
        revision: Arc::from(metadata.revision.as_str()),
        egress,
        deletion: deletion(metadata),
        phase: phase(raw),
        marks: marks(metadata, interner),
        claim: Claim::Needed,
        custody: Custody::Own,
        finalizers: metadata.finalizers.iter().map(|f| interner.text(f)).collect(),
        addresses: several_or_one(&raw.status.pod_ips, &raw.status.pod_ip),
        hosts: hosts(raw),
    })
}

/// The same from parsed JSON.
///
/// # Errors
/// It is no Pod, or has no name or no UID.
pub fn pod_from_value(value: &Value, interner: &mut Interner) -> Result<Pod, ObjectError> {
    pod(&parse("Pod", value)?, interner)
}

/// Reads how far a Pod with our readiness gate is; nothing of one without the gate, or without the
/// label by which such Pods are found.
///
/// # Errors
/// It has no name or no UID.
pub fn gated_pod(raw: &RawPod, interner: &mut Interner) -> Result<Option<GatedPod>, ObjectError> {
    let metadata = &raw.metadata;
    let name = full_name("Pod", metadata, interner)?;
    if metadata.uid.is_empty() {
        return Err(ObjectError::new("Pod", metadata, "it has no uid"));
    }
    let gated = raw.spec.gates.iter().any(|gate| gate.condition == READINESS_GATE);
    if !gated || !metadata.labels.contains_key(READINESS_GATE) {
        return Ok(None);
    }
    let condition = |kind: &str| raw.status.conditions.iter().find(|c| c.kind == kind);
    let holds = |kind: &str| condition(kind).is_some_and(|c| c.status == "True");
    let mut gates = raw.spec.gates.iter().map(|gate| gate.condition.as_str());
    let others = if deletion(metadata) == Deletion::Requested || phase(raw) == PodPhase::Ended {
        Others::Over
    } else if holds("ContainersReady") && gates.all(|gate| gate == READINESS_GATE || holds(gate)) {
        Others::Hold
    } else {
        Others::Missing
    };
    let reason = condition(READINESS_GATE).map_or("", |c| c.reason.as_str());
    Ok(Some(GatedPod {
        uid: Arc::from(metadata.uid.as_str()),
        name,
        revision: Arc::from(metadata.revision.as_str()),
        labels: interner.labels(&metadata.labels),
        addresses: several_or_one(&raw.status.pod_ips, &raw.status.pod_ip),
        others,
        gate: if holds(READINESS_GATE) { Gate::Open } else { Gate::Shut },
        reason: interner.text(reason),
    }))
}

/// The same from parsed JSON.
///
/// # Errors
/// It is no Pod, or has no name or no UID.
pub fn gated_pod_from_value(
    value: &Value,
    interner: &mut Interner,
) -> Result<Option<GatedPod>, ObjectError> {
    gated_pod(&parse("Pod", value)?, interner)
}

fn phase(raw: &RawPod) -> PodPhase {
    match raw.status.phase.as_str() {
        "Pending" | "Running" => PodPhase::Alive,
        _ => PodPhase::Ended,
    }
}

fn marks(metadata: &Metadata, interner: &mut Interner) -> BTreeSet<Arc<str>> {
    let text = metadata.annotations.get(EGRESS_MARKS).map_or("", String::as_str);
    let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
    names.map(|name| interner.text(&name.to_lowercase())).collect()
}

/// The addresses of a Pod's host: those of `hostIPs` and last `hostIP`, which counts where the list
/// has no address of its family.
fn hosts(raw: &RawPod) -> Vec<IpAddr> {
    let status = &raw.status;
    addresses(status.host_ips.iter().map(|ip| ip.ip.as_str()).chain([status.host_ip.as_str()]))
}

/// Older API servers have the one field, newer ones both.
fn several_or_one(several: &[Ip], one: &str) -> Vec<IpAddr> {
    let found = addresses(several.iter().map(|ip| ip.ip.as_str()));
    if found.is_empty() { addresses([one]) } else { found }
}
