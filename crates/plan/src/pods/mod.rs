//! Plans container load balancers: one a Service, backends are Pods, all led through the two
//! tables of a Service Gateway.
//!
//! # Guarantees
//! - Finalizer, public IP, load balancer or NAT gateway, registration, addresses: each exists
//!   before the next refers to it, and goes after it.
//! - An address is never at two locations on our account, and never gets to a new location while
//!   it is at another: whoever takes an address over does not get its former owner's traffic.
//! - A registration is the mark of what is ours. It is made after and goes after everything else,
//!   so that what a lost Service left behind is found without it.
//! - No Service waits for egress: while NAT gateways are not known, egress gateways and their Pods
//!   stay as they are, and everything else goes on.

pub(crate) mod table;

mod addresses;
mod balancer;
mod egress;
mod egress_members;
mod egress_pods;
mod gated;
mod gates;
mod memory;
mod public_ip;
mod registry;
mod selectors;
mod service_removal;
mod service_setup;
mod targets;
#[cfg(test)]
mod tests;
mod waiting;

pub(crate) use egress_members::marks;
pub(crate) use memory::Memory;
pub(crate) use selectors::selects;

use crate::Beside;
use crate::ask::readings::Readings;
use crate::claim::{admission, other_layout};
use crate::draft::{Draft, Stance, UNREADABLE};
use crate::own::other_layout::is_suspected;
use crate::own::pod_names;
use crate::pods::table::{DiffTracker, changed};
use crate::tell::container;
use crate::tell::kubernetes;
use crate::tell::report;
use model::azure::{LoadBalancer, NatGateway, PublicIp};
use model::gateway::GatewayService;
use model::report::{Finding, Until, Wait};
use model::world::{Fact, Hold, Kind, Need};
use model::{Plan, Policy, Report, ResourceId, ServiceUid, World};
use registry::{Registrations, Registry};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Plans everything, or says what has to be read first.
pub(crate) fn plan(
    world: &World,
    policy: &Policy,
    (memory, readings): (&mut Memory, &mut Readings),
    Beside { left, refused }: Beside<'_>,
) -> (Plan, Report) {
    let mut draft = Draft::bare(world, policy);
    if !world.is_complete(&Kind::CONTAINER) {
        admission::admit_all(&mut draft, readings, refused);
        draft.wait_all(&Wait::Listing);
        return report::finish(draft);
    }
    if !is_known(&draft) || !left.is_empty() {
        admission::admit_all(&mut draft, readings, refused);
        note_unread(&mut draft);
        if !left.is_empty() {
            other_layout::freeze(&mut draft, left);
        } else if !is_suspected(world, policy) {
            kubernetes::claim(&mut draft);
        }
        gates::conclude_blind(&mut draft);
        return report::finish(draft);
    }
    let names = memory.update(world, policy);
    for uid in names.iter().filter_map(|name| memory.uids.get(name)) {
        admission::admit(&mut draft, &world.kubernetes.services[uid], readings, refused);
    }
    targets::resolve(&mut draft, memory, &names);
    complain(&mut draft, memory, &names);
    draft.told.holders = memory.tracker.holders();
    let registrations = draw(&mut draft, memory, &names);
    gates::conclude(&mut draft, memory);
    let closing = memory.close(&draft, &registrations);
    closing.done.iter().for_each(|uid| readings.forget(uid));
    let (mut plan, mut report) = report::finish(draft);
    memory.complete(&mut plan, &mut report, closing);
    (plan, report)
}

/// Drafts what is to be done about these names, about egress gateways and about addresses.
fn draw(draft: &mut Draft<'_>, memory: &Memory, names: &BTreeSet<Arc<str>>) -> Registrations {
    let Memory { uids, tracker, .. } = memory;
    let mut registry = Registry::default();
    for name in names {
        let Some(uid) = uids.get(name) else {
            if memory.is_orphan(draft, name) {
                service_removal::plan(draft, &mut registry, tracker, name, None);
            }
            continue;
        };
        match &draft.cases[uid].stance {
            Stance::Container(intent) => {
                let intent = intent.clone();
                service_setup::plan(draft, &mut registry, name, &intent);
            }
            Stance::Leaving => {
                service_removal::plan(draft, &mut registry, tracker, name, Some(uid))
            }
            Stance::Wanted(_) | Stance::Frozen(_) => {}
        }
        container::show(draft, name, uid);
    }
    let nats = draft.world.azure.is_known(&Need::NatGateways);
    let groups = nats.then(|| egress::plan(draft, &mut registry, tracker, uids));
    note_missing(draft, Need::NatGateways);
    addresses::plan(draft, tracker, uids);
    let registrations = registry.conclude(draft, memory.awaited());
    kubernetes::claim(draft);
    for name in names {
        if let Some(uid) = uids.get(name) {
            container::conclude(draft, name, uid);
        }
    }
    if let Some(groups) = groups {
        egress_pods::conclude(draft, tracker, &groups, uids);
    }
    registrations
}

/// Says what is wrong with endpoints of Services that want a load balancer.
fn complain(draft: &mut Draft<'_>, memory: &Memory, names: &BTreeSet<Arc<str>>) {
    for name in names {
        let case = memory.uids.get(name).and_then(|uid| draft.cases.get_mut(uid));
        if let Some(case) = case.filter(|case| !matches!(case.stance, Stance::Leaving)) {
            case.findings.extend(memory.tracker.complaints(name));
        }
    }
}

/// What Services are planned on.
fn needs(policy: &Policy) -> [Need; 4] {
    let ips = Need::PublicIps(policy.group.clone());
    [Need::Balancers, ips, Need::GatewayServices, Need::GatewayLocations]
}

fn is_known(draft: &Draft<'_>) -> bool {
    needs(draft.policy).iter().all(|need| draft.world.azure.is_known(need))
}

/// What is not known becomes a need, or a finding where reading does not help.
fn note_unread(draft: &mut Draft<'_>) {
    for need in needs(draft.policy) {
        if !draft.world.azure.is_known(&need) {
            draft.wait_all(&Wait::Reading(need.clone()));
        }
        note_missing(draft, need);
    }
    note_missing(draft, Need::NatGateways);
}

fn note_missing(draft: &mut Draft<'_>, need: Need) {
    match draft.world.azure.answered(&need) {
        Fact::Known(()) => {}
        Fact::Unknown => {
            draft.steps.needs.insert(need);
        }
        Fact::Unreadable(why) => {
            let (rule, key) = ("ServiceGatewayUnreadable", need.to_string());
            draft.told.findings.push(Finding::refusal(rule, &key, &why, UNREADABLE));
        }
    }
}

impl<'w> Draft<'w> {
    /// A Service's container load balancer.
    pub(crate) fn container(&self, name: &str) -> Option<&'w Arc<LoadBalancer>> {
        self.balancer(&self.policy.balancer_id(name))
    }

    /// A Service's public IP.
    pub(crate) fn container_ip(&self, name: &str) -> Option<&'w Arc<PublicIp>> {
        self.public_ip(&self.container_ip_id(name))
    }

    pub(crate) fn container_ip_id(&self, name: &str) -> ResourceId {
        self.policy.public_ip_id(&self.policy.group, &pod_names::public_ip(name))
    }

    fn nat_id(&self, name: &str) -> ResourceId {
        self.policy.network_id(&self.policy.group, "natGateways", name)
    }

    fn nat(&self, name: &str) -> Option<&'w Arc<NatGateway>> {
        self.world.azure.nat_gateways.known()?.get(&self.nat_id(name))
    }

    /// A gateway service by its name in lower case.
    pub(crate) fn registered(&self, name: &str) -> Option<&'w Arc<GatewayService>> {
        self.world.azure.gateway_services.known()?.get(name)
    }

    /// Why a Service or egress gateway is set aside.
    fn hold(&self, uid: &ServiceUid) -> Option<&'w Hold> {
        self.world.holds.get(uid)
    }

    pub(crate) fn is_in_flight(&self, id: &ResourceId) -> bool {
        self.world.in_flight.contains_key(id)
    }

    /// Whether a resource is being written on account of a Service or egress gateway.
    pub(crate) fn is_written_for(&self, id: &ResourceId, uid: &ServiceUid) -> bool {
        self.world.in_flight.get(id).is_some_and(|call| call.causes.contains(uid))
    }

    /// Whether a resource's write has failed before: nobody gathers for it any more.
    fn is_late(&self, id: &ResourceId) -> bool {
        self.world.in_flight.get(id).is_some_and(|call| call.attempt > 1)
    }
}

/// What has to be over before anything of a Service or egress gateway is taken away.
fn obstacles(draft: &Draft<'_>, tracker: &DiffTracker, name: &str, uid: &ServiceUid) -> Vec<Wait> {
    let mut waits = Vec::new();
    let addresses = pod_names::locations_table(draft.policy);
    if tracker.is_receding(name) || draft.is_written_for(&addresses, uid) {
        waits.push(until(&addresses, Until::Released));
    }
    let services = pod_names::services_table(draft.policy);
    if draft.is_written_for(&services, uid) {
        waits.push(Wait::Writing(services));
    }
    if let Some(hold) = draft.hold(uid) {
        let (reason, until_ms) = (Arc::clone(&hold.reason), hold.until_ms);
        waits.push(Wait::SetAside { reason, until_ms });
    }
    waits
}

fn until(id: &ResourceId, until: Until) -> Wait {
    Wait::Resource { id: id.clone(), until }
}

/// Brings a remembered list up to date; gives the keys of which the values are not the same.
fn take<K: Ord + Clone, T>(
    held: &mut BTreeMap<K, Arc<T>>,
    current: &BTreeMap<K, Arc<T>>,
    same: impl Fn(&Arc<T>, &Arc<T>) -> bool,
) -> Vec<K> {
    let keys = changed(held, current, same);
    for key in &keys {
        match current.get(key) {
            Some(value) => held.insert(key.clone(), Arc::clone(value)),
            None => held.remove(key),
        };
    }
    keys
}
