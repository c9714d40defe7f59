//! Readiness gates: a Pod that carries ours is ready only once the gateway lists it.
//!
//! # Guarantees
//! - A gate opens when the address table, as it was read or written, lists the Pod's address for
//!   every Service that selects the Pod, and no write of that address is under way.
//! - It opens, too, when there is nothing to wait for, and when the time allowed is over.
//! - It shuts only when the Pod is not ready for another reason. A Pod that is in use is never
//!   taken out because a Service more selects it, or because somebody changed the table.

use super::memory::Memory;
use crate::draft::Draft;
use crate::own::pod_names;
use crate::tell::gate;
use model::kubernetes::{Gate, GateReason, GatedPod, Others};
use model::plan::KubernetesWrite;
use model::{Family, ServiceUid};

/// Writes the conditions that are to be another.
pub(super) fn conclude(draft: &mut Draft<'_>, memory: &Memory) {
    let mut writes = Vec::new();
    for name in &memory.gates.open {
        let Some(pod) = memory.gates.pods.get(name) else { continue };
        match pod.others {
            Others::Missing => {
                let message = "it is not ready for another reason";
                writes.push(gate::write(pod, GateReason::PodNotReady, message));
            }
            Others::Hold => writes.extend(open(draft, memory, pod)),
            Others::Over => {}
        }
    }
    draft.steps.writes.extend(writes);
}

/// While the table is not known gates open only because the time allowed is over.
pub(super) fn conclude_blind(draft: &mut Draft<'_>) {
    let world = draft.world;
    if world.overdue.is_empty() {
        return;
    }
    let pods = world.kubernetes.gated_pods.values();
    let late = pods.filter(|pod| pod.others == Others::Hold && pod.gate == Gate::Shut);
    let late = late.filter(|pod| world.overdue.contains(&pod.uid));
    draft.steps.writes.extend(late.map(|pod| {
        let message = "the tables of the Service Gateway could not be read within the time allowed";
        gate::write(pod, GateReason::TimedOut, message)
    }));
}

fn open(draft: &Draft<'_>, memory: &Memory, pod: &GatedPod) -> Option<KubernetesWrite> {
    let mut awaited = Vec::new();
    let mut served = Vec::new();
    for uid in memory.gates.services(pod) {
        match standing(draft, memory, pod, &uid) {
            Standing::Served => served.push(uid),
            Standing::Awaited => awaited.push(uid),
            Standing::None => {}
        }
    }
    let say = |uids: &[ServiceUid]| {
        let services = &draft.world.kubernetes.services;
        let names = uids.iter().filter_map(|uid| services.get(uid)).map(|s| s.name.to_string());
        names.collect::<Vec<_>>().join(", ")
    };
    if !awaited.is_empty() {
        let late = draft.world.overdue.contains(&pod.uid);
        return late.then(|| {
            let names = say(&awaited);
            let message =
                format!("the Service Gateway did not list it for {names} within the time allowed");
            gate::write(pod, GateReason::TimedOut, &message)
        });
    }
    if served.is_empty() {
        let message = "no Service that has a load balancer or gets one selects it";
        return Some(gate::write(pod, GateReason::NoService, message));
    }
    let message = format!("the Service Gateway lists it for {}", say(&served));
    Some(gate::write(pod, GateReason::Programmed, &message))
}

/// What a Service that selects a Pod is to the Pod.
enum Standing {
    /// The gateway lists the Pod for it.
    Served,
    /// The gateway is going to.
    Awaited,
    /// The gateway never will, as things are.
    None,
}

fn standing(draft: &Draft<'_>, memory: &Memory, pod: &GatedPod, uid: &ServiceUid) -> Standing {
    let Some(service) = draft.world.kubernetes.services.get(uid) else { return Standing::None };
    let name = pod_names::of_service(uid);
    if draft.registered(&name).is_none() && memory.is_refused(draft, uid) {
        return Standing::None;
    }
    let family = service.families.first().copied();
    let address = pod.addresses.iter().find(|address| Some(Family::of(**address)) == family);
    let Some(address) = address else { return Standing::None };
    let table = pod_names::locations_table(draft.policy);
    let call = draft.world.in_flight.get(&table);
    let moving = call.is_some_and(|call| call.addresses.contains(address));
    if !moving && memory.tracker.serves(*address, &name) {
        Standing::Served
    } else {
        Standing::Awaited
    }
}
