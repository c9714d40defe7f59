//! Writes of our readiness gate's condition.

use crate::draft::Draft;
use model::kubernetes::{Gate, GateReason, GatedPod, Others};
use model::plan::{Edit, KubernetesWrite, Object};
use std::sync::Arc;

/// The condition of a Pod's gate becomes what the reason says.
pub(crate) fn write(pod: &GatedPod, reason: GateReason, message: &str) -> KubernetesWrite {
    let gate = match reason {
        GateReason::Programmed
        | GateReason::TimedOut
        | GateReason::NoService
        | GateReason::NodeBackends => Gate::Open,
        GateReason::PodNotReady => Gate::Shut,
    };
    KubernetesWrite {
        object: Object::Pod { name: pod.name.clone(), uid: Arc::clone(&pod.uid) },
        edit: Edit::Gate { gate, reason, message: Arc::from(message) },
    }
}

/// The load balancers of a Pod's Services lead to nodes.
pub(crate) fn open(pod: &GatedPod) -> KubernetesWrite {
    let message = "load balancers lead to nodes: there is nothing to wait for";
    write(pod, GateReason::NodeBackends, message)
}

/// Where backends are nodes no Pod waits for a load balancer.
pub(crate) fn open_all(draft: &mut Draft<'_>) {
    let pods = draft.world.kubernetes.gated_pods.values();
    let shut = pods.filter(|pod| pod.gate == Gate::Shut && pod.others != Others::Over);
    let writes: Vec<_> = shut.map(|pod| open(pod)).collect();
    draft.steps.writes.extend(writes);
}
