//! What is written to egress Pods: our finalizer, on before they are published, or hold a gateway
//! that stands, and off after they are drained. And what is wrong with them.

use super::egress::Groups;
use super::egress_members as members;
use crate::draft::Draft;
use crate::own::pod_names;
use crate::pods::table::{DiffTracker, hosted, is_alive};
use model::kubernetes::{Custody, POD_FINALIZER, Pod};
use model::plan::{Edit, FinalizerPurpose, KubernetesWrite, Object};
use model::report::Finding;
use model::{ServiceName, ServiceUid};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const LABEL: &str = "metadata.labels[kubernetes.azure.com/service-egress-gateway]";

pub(super) fn conclude(
    draft: &mut Draft<'_>,
    tracker: &DiffTracker,
    groups: &Groups,
    uids: &BTreeMap<Arc<str>, ServiceUid>,
) {
    let table = pod_names::locations_table(draft.policy);
    let mut findings: BTreeMap<ServiceName, Vec<Finding>> = BTreeMap::new();
    for pod in draft.world.kubernetes.pods.values() {
        let claimed = pod.finalizers.contains(POD_FINALIZER);
        let label = pod.egress.as_ref().filter(|label| !label.is_empty());
        let valid = label.filter(|label| members::is_valid(label, uids));
        let stays = is_alive(pod);
        if stays {
            let found = complaints(draft, pod, valid.is_some(), tracker, groups);
            if !found.is_empty() {
                findings.insert(pod.name.clone(), found);
            }
        }
        let usable = stays
            && valid.is_some_and(|name| {
                let free = !groups.taken.contains(name) && !groups.full.contains(name);
                free && tracker.admits(pod, name)
            });
        // While the table is being written for its gateway nobody knows what it lists.
        let writing = match label {
            Some(label) => draft.is_written_for(&table, &ServiceUid::new(label)),
            None => draft.is_in_flight(&table),
        };
        let holds = |label: &&Arc<str>| {
            claimed || members::is_addressed(pod) || groups.staying.contains(*label)
        };
        let own = label.filter(|label| usable && holds(label));
        let marks: BTreeSet<Arc<str>> = members::marks(pod)
            .filter(|name| groups.needs_mark(name))
            .chain(own)
            .cloned()
            .collect();
        if let Some(own) = own {
            // A mark is there before the first write for its gateway, and goes after the last.
            let uncertain = pod.custody == Custody::Inherited && groups.unconfirmed.contains(own);
            let unmarked = !claimed || !pod.marks.contains(own);
            if uncertain || unmarked || (pod.marks != marks && !writing) {
                draft.steps.writes.push(write(pod, FinalizerPurpose::Claim, marks));
            }
        } else if !usable && claimed && !writing && is_drained(pod, tracker, groups) {
            draft.steps.writes.push(write(pod, FinalizerPurpose::Release, BTreeSet::new()));
        }
    }
    draft.told.pods = findings;
}

/// Whether nothing in Azure waits for this Pod to be let go any more.
fn is_drained(pod: &Pod, tracker: &DiffTracker, groups: &Groups) -> bool {
    let label = pod.egress.as_ref();
    if members::marks(pod).any(|name| groups.needs_mark(name)) {
        // It was the last one: the gateway is on its way out, or to a Pod that is yet to be marked.
        return false;
    }
    if pod.addresses.is_empty() {
        // Which addresses were its own nobody knows: none of the gateway's may be left over.
        return !label.is_some_and(|label| tracker.is_receding(label));
    }
    !pod.addresses.iter().any(|address| tracker.is_leftover(*address))
}

fn write(pod: &Pod, purpose: FinalizerPurpose, marks: BTreeSet<Arc<str>>) -> KubernetesWrite {
    let mut list: Vec<Arc<str>> = pod.finalizers.iter().cloned().collect();
    list.retain(|finalizer| **finalizer != *POD_FINALIZER);
    if purpose == FinalizerPurpose::Claim {
        list.push(Arc::from(POD_FINALIZER));
    }
    KubernetesWrite {
        object: Object::Pod { name: pod.name.clone(), uid: Arc::clone(&pod.uid) },
        edit: Edit::Finalizers {
            list,
            revision: Arc::clone(&pod.revision),
            purpose,
            marks: (purpose == FinalizerPurpose::Claim || !pod.marks.is_empty()).then_some(marks),
        },
    }
}

fn complaints(
    draft: &Draft<'_>,
    pod: &Pod,
    valid: bool,
    tracker: &DiffTracker,
    groups: &Groups,
) -> Vec<Finding> {
    let Some(label) = pod.egress.as_ref().filter(|label| !label.is_empty()) else {
        return Vec::new();
    };
    if pod_names::is_reserved(label) {
        let message = "{value} is reserved for the cluster's own egress; use another name";
        return vec![Finding::refusal("ServiceGatewayReservedEgressLabel", LABEL, label, message)];
    }
    if !valid {
        let message = "must be 1 to 73 characters of a-z, 0-9, dot, dash and underscore, \
                       beginning with a letter or digit, ending with one or an underscore, and \
                       not the UID of a Service";
        return vec![Finding::refusal("ServiceGatewayInvalidEgressLabel", LABEL, label, message)];
    }
    if groups.taken.contains(label) {
        let message = "must be a name that no other NAT gateway or public IP has";
        return vec![Finding::refusal("ServiceGatewayEgressNameTaken", LABEL, label, message)];
    }
    if !tracker.admits(pod, label) {
        let message = "{value} is held by another namespace; use another name, or have \
                       egressGatewayNamespaces of the cloud config list this namespace for it";
        return vec![Finding::refusal("ServiceGatewayEgressNameHeld", LABEL, label, message)];
    }
    if groups.full.contains(label) {
        let most = draft.policy.tenancy.most_egress;
        let message = format!(
            "{{value}} gets no gateway, because maximumEgressGateways of the cloud config allows \
             {most}; use a name that is in use, or have the number raised"
        );
        return vec![Finding::refusal("ServiceGatewayEgressLimit", LABEL, label, &message)];
    }
    if pod.hosts.is_empty() {
        return Vec::new();
    }
    let hosted: BTreeSet<_> = hosted(pod).map(|(address, _)| address).collect();
    let homeless = pod.addresses.iter().filter(|address| !hosted.contains(*address));
    homeless
        .map(|address| {
            let message = "must be of a family that status.hostIPs or status.hostIP has";
            let value = address.to_string();
            Finding::refusal("ServiceGatewayNoNodeLocation", "status.podIPs", &value, message)
        })
        .collect()
}
