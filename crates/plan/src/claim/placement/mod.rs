//! Which load balancer each Service is on, and which nodes are behind each load balancer.

mod backends;
mod capacity;
mod per_set;
mod several;
#[cfg(test)]
mod tests;

pub(crate) use backends::control_plane;
pub use backends::pooled;

use crate::ask::EndpointScope;
use crate::claim::choice::Chosen;
use crate::draft::Draft;
use crate::own::name;
use crate::standing::pool;
use model::kubernetes::Node;
use model::policy::{Layout, LoadBalancerConfig, PoolKind};
use model::report::Wait;
use model::world::{Fact, Kind, Need};
use model::{Exposure, Policy, ResourceId, ServiceUid};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Services by the load balancer they are to be on. Load balancers of ours that no Service is to
/// be on have an empty list.
#[derive(Debug, Default)]
pub(crate) struct Placement {
    /// Assignment by load balancer.
    pub balancers: BTreeMap<ResourceId, Assignment>,
}

/// Who is to be on a load balancer.
#[derive(Debug)]
pub(crate) struct Assignment {
    /// Public or internal.
    pub exposure: Exposure,
    /// Services, those that are there already first, then by name.
    pub services: Vec<ServiceUid>,
    /// The same, to be asked for one.
    uids: BTreeSet<ServiceUid>,
    /// What its pools hold.
    pub backends: Backends,
    /// Nodes of the Services that have a pool to themselves.
    pub local: BTreeMap<ServiceUid, Arc<[Arc<Node>]>>,
    /// What has to happen before any node can be behind it: another load balancer lets its nodes
    /// go, or lists are certain to show the one that may have them.
    pub awaited: Option<Wait>,
}

/// What the cluster's pools of a load balancer hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Backends {
    /// What they hold now: the load balancer is about to go, or nobody may touch its Services.
    AsTheyAre,
    /// These nodes.
    Nodes(Arc<[Arc<Node>]>),
}

impl Assignment {
    fn empty(exposure: Exposure) -> Self {
        Self {
            exposure,
            services: Vec::new(),
            uids: BTreeSet::new(),
            backends: Backends::AsTheyAre,
            local: BTreeMap::new(),
            awaited: None,
        }
    }

    pub fn has(&self, uid: &ServiceUid) -> bool {
        self.uids.contains(uid)
    }
}

/// The load balancer of a configuration for an exposure.
fn id_of(policy: &Policy, config: &LoadBalancerConfig, exposure: Exposure) -> ResourceId {
    policy.balancer_id(&name::balancer_of(&config.name, exposure))
}

/// The kinds that have to be listed before anything is placed.
pub(crate) fn kinds(draft: &Draft<'_>) -> Vec<Kind> {
    let mut kinds = vec![Kind::Services, Kind::Nodes];
    if let Layout::Several(configs) = &draft.policy.layout {
        if configs.iter().any(|c| c.namespaces.is_some()) {
            kinds.push(Kind::Namespaces);
        }
        let mut intents = draft.cases.values().filter_map(|case| case.intent());
        if intents.any(|i| i.scope == EndpointScope::Local) {
            kinds.push(Kind::EndpointSlices);
        }
    }
    kinds
}

/// What has to be read of Azure to know the nodes' sets.
pub(crate) fn need(draft: &Draft<'_>) -> Option<Need> {
    let divided = matches!(draft.policy.layout, Layout::Several(_) | Layout::PerNodeSet { .. });
    let unread = draft.world.azure.virtual_machines == Fact::Unknown;
    let mut nodes = draft.world.kubernetes.nodes.values();
    (divided && unread && nodes.any(|n| backends::is_machine(n))).then_some(Need::VirtualMachines)
}

/// Places every Service that gets what it asks, and every node.
pub(crate) fn place(draft: &mut Draft<'_>, chosen: &Chosen) -> Placement {
    let policy = draft.policy;
    let mut placement = match &policy.layout {
        Layout::Single | Layout::PerService => single(draft),
        Layout::Several(configs) => several::place(draft, configs, chosen),
        Layout::PerNodeSet { without_own } => per_set::place(draft, without_own),
    };
    settle(draft, &mut placement);
    placement
}

/// One public and one internal load balancer, each with every node.
fn single(draft: &mut Draft<'_>) -> Placement {
    let mut placement = Placement::default();
    for exposure in Exposure::ALL {
        let id = draft.policy.balancer_id(&name::balancer(draft.policy, exposure));
        placement.balancers.insert(id, Assignment::empty(exposure));
    }
    let layout: BTreeSet<ResourceId> = placement.balancers.keys().cloned().collect();
    add_others(draft, &mut placement);
    let uids: Vec<ServiceUid> = draft.by_name.values().cloned().collect();
    for uid in uids {
        let Some(exposure) = draft.cases[&uid].intent().map(|i| i.exposure) else { continue };
        let id = draft.policy.balancer_id(&name::balancer(draft.policy, exposure));
        seat(draft, &mut placement, &id, &uid);
    }
    let nodes: Arc<[Arc<Node>]> = pool::candidates(draft).into();
    for seats in placement.balancers.values_mut() {
        seats.backends = Backends::Nodes(Arc::clone(&nodes));
    }
    if placement.balancers.len() > 2 && draft.policy.pools == PoolKind::NodeIp {
        for (id, seats) in &mut placement.balancers {
            if !layout.contains(id) && seats.services.is_empty() {
                seats.backends = Backends::AsTheyAre;
            }
        }
        backends::keep_apart(draft, &mut placement);
    }
    placement
}

/// Puts a Service on a load balancer.
fn seat(draft: &mut Draft<'_>, placement: &mut Placement, id: &ResourceId, uid: &ServiceUid) {
    let Some(intent) = draft.cases.get(uid).and_then(|case| case.intent()) else { return };
    // Without any address it is on none.
    if intent.families.iter().all(|family| draft.claims.is_recreated(uid, *family)) {
        return;
    }
    let exposure = intent.exposure;
    if let Some(case) = draft.cases.get_mut(uid) {
        case.balancer = Some(Arc::from(id.name()));
    }
    let seats =
        placement.balancers.entry(id.clone()).or_insert_with(|| Assignment::empty(exposure));
    seats.services.push(uid.clone());
    seats.uids.insert(uid.clone());
}

/// Load balancers outside the layout that hold a frontend of one of our Services: left by another
/// layout, to be emptied.
fn add_others(draft: &Draft<'_>, placement: &mut Placement) {
    for balancer in draft.each_balancer() {
        if balancer.frontends.iter().any(|f| draft.owner_of(&f.name).is_some()) {
            let exposure = name::exposure_of(&balancer.id);
            placement
                .balancers
                .entry(balancer.id.clone())
                .or_insert_with(|| Assignment::empty(exposure));
        }
    }
}

/// Services that are on the load balancer already come first: a shared frontend stays with the
/// one that made it.
fn settle(draft: &Draft<'_>, placement: &mut Placement) {
    for (id, seats) in &mut placement.balancers {
        let name = |uid: &ServiceUid| draft.cases.get(uid).map(|case| &case.service.name);
        seats.services.sort_by_cached_key(name);
        let Some(balancer) = draft.balancer(id) else { continue };
        let there: BTreeSet<&ServiceUid> =
            balancer.frontends.iter().filter_map(|f| draft.owner_of(&f.name)).collect();
        seats.services.sort_by_cached_key(|uid| !there.contains(uid));
    }
}
