//! Which nodes are behind which load balancer, where they are divided.

use super::{Backends, Placement, id_of};
use crate::claim::choice::Chosen;
use crate::draft::{Draft, Stance};
use crate::own::name::{self, has_own_pool};
use crate::own::{Owner, is_claimed};
use crate::standing::{pool, public_ip};
use model::azure::{LoadBalancer, Pool};
use model::kubernetes::{Node, NodeRole};
use model::policy::{ControlPlane, LoadBalancerConfig, PoolKind, Preconfigured};
use model::report::{Until, Wait};
use model::{Exposure, Family, NodeName, Policy, ResourceId, ServiceName, ServiceUid};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

const SCALE_SETS: &str = "/virtualmachinescalesets/";

/// Whether a node's id does not say which set it belongs to.
pub(super) fn is_machine(node: &Node) -> bool {
    node.machine().is_some_and(|id| !id.folded().contains(SCALE_SETS))
}

/// The scale set or availability set of a node, where it is known.
pub(super) fn set_of(draft: &Draft<'_>, node: &Node) -> Option<Arc<str>> {
    let id = node.machine()?;
    if let Some((_, rest)) = id.folded().split_once(SCALE_SETS) {
        return rest.split('/').next().map(Arc::from);
    }
    let machine = draft.world.azure.virtual_machines.known()?.get(&id)?;
    Some(Arc::from(name::folded(machine.set.as_ref()?.name())))
}

/// Whether a node runs on a VM that was not there when VMs were last read.
pub(super) fn is_unseen(draft: &Draft<'_>, node: &Node) -> bool {
    let seen = draft.world.azure.virtual_machines.known();
    is_machine(node)
        && seen.is_some_and(|all| node.machine().is_some_and(|id| !all.contains_key(&id)))
}

/// Nodes that are, or for now stay, behind a load balancer.
pub(super) fn eligible(draft: &Draft<'_>) -> Vec<Arc<Node>> {
    let mut nodes = pool::candidates(draft);
    nodes.retain(|n| !n.membership.is_left_out());
    nodes
}

/// Nodes of the control plane behind a load balancer: pools of NICs have them where the cloud
/// config does not keep them out, pools of addresses never do.
pub(crate) fn control_plane(draft: &Draft<'_>, balancer: &ResourceId) -> Vec<Arc<Node>> {
    let kept_out = draft.policy.exclude_control_plane == ControlPlane::Excluded;
    if kept_out || pool::kind(draft, balancer) != PoolKind::NodeNic {
        return Vec::new();
    }
    let nodes = draft.world.kubernetes.nodes.values();
    let of_it = nodes.filter(|node| node.role == NodeRole::ControlPlane);
    let fits =
        |node: &Arc<Node>| name::is_for_set(draft.policy, balancer, set_of(draft, node).as_deref());
    of_it.filter(|node| fits(node)).cloned().collect()
}

/// Divides the nodes among configurations: the public and the internal load balancer of one have
/// the same. What each may take now is for [`guard`] to say.
pub(super) fn divide(
    draft: &Draft<'_>,
    configs: &[LoadBalancerConfig],
    chosen: &Chosen,
    placement: &mut Placement,
) {
    let policy = draft.policy;
    let ids = |config| Exposure::ALL.map(|e| id_of(policy, config, e));
    let alive: Vec<bool> =
        configs.iter().map(|config| is_alive(draft, placement, &ids(config))).collect();
    let present: Vec<BTreeSet<IpAddr>> = configs
        .iter()
        .map(|config| ids(config).iter().flat_map(|id| addresses(draft, id)).collect())
        .collect();
    let left_first: Vec<Option<BTreeSet<ResourceId>>> =
        configs.iter().map(|config| left_first(draft, placement, chosen, &ids(config))).collect();
    // A node leaves a load balancer that other Services use only once the load balancer that it
    // moves to can be made: the Services of that have left their former load balancers, and have
    // their public IPs. Azure may refuse either for long.
    let stays_at = |node: &Node, home: usize| {
        let sources = left_first[home].as_ref()?;
        let here = |at: &usize| {
            alive[*at]
                && *at != home
                && !ids(&configs[*at]).iter().any(|id| sources.contains(id))
                && node.addresses.iter().any(|a| present[*at].contains(a))
        };
        (0..configs.len()).find(here)
    };
    let mut shares: Vec<Vec<Arc<Node>>> = vec![Vec::new(); configs.len()];
    let mut rest = Vec::new();
    for node in eligible(draft) {
        let set = set_of(draft, &node);
        let home = configs.iter().enumerate().position(|(at, config)| {
            alive[at] && set.as_ref().is_some_and(|s| config.primary_set.eq_ignore_ascii_case(s))
        });
        match home {
            Some(at) => shares[stays_at(&node, at).unwrap_or(at)].push(node),
            None => rest.push((fitting(configs, &alive, &node), node)),
        }
    }
    let mut homeless = Vec::new();
    for (fitting, node) in rest {
        let is_in = |at: &&usize| node.addresses.iter().any(|a| present[**at].contains(a));
        match fitting.iter().find(is_in) {
            Some(&at) => shares[at].push(node),
            None => homeless.push((fitting, node)),
        }
    }
    for (fitting, node) in homeless {
        if let Some(&at) = fitting.iter().min_by_key(|at| shares[**at].len()) {
            shares[at].push(node);
        }
    }
    for (config, share) in configs.iter().zip(shares) {
        let share: Arc<[Arc<Node>]> = share.into();
        for id in ids(config) {
            if let Some(seats) = placement.balancers.get_mut(&id) {
                seats.backends = Backends::Nodes(Arc::clone(&share));
            }
        }
    }
}

/// The configurations that a node of no primary set may go to.
fn fitting(configs: &[LoadBalancerConfig], alive: &[bool], node: &Node) -> Vec<usize> {
    let all = || configs.iter().enumerate().filter(|(at, _)| alive[*at]);
    let selects = |c: &LoadBalancerConfig| c.nodes.as_ref().map(|s| s.matches(&node.labels));
    let selected: Vec<usize> =
        all().filter(|(_, c)| selects(c) == Some(true)).map(|(at, _)| at).collect();
    if selected.is_empty() {
        return all().filter(|(_, c)| c.nodes.is_none()).map(|(at, _)| at).collect();
    }
    selected
}

/// Whether a configuration has a load balancer that is there to stay, or that is about to be made.
fn is_alive(draft: &Draft<'_>, placement: &Placement, ids: &[ResourceId; 2]) -> bool {
    let stays = |id| draft.balancer(id).is_some_and(|b| stays(draft, b));
    coming(draft, placement, ids).next().is_some() || ids.iter().any(stays)
}

/// Services that are to be on the load balancers of a configuration, as far as that is decided.
fn coming<'p>(
    draft: &Draft<'_>,
    placement: &'p Placement,
    ids: &[ResourceId; 2],
) -> impl Iterator<Item = &'p ServiceUid> {
    let seats = ids.iter().filter_map(|id| placement.balancers.get(id));
    seats.flat_map(|seats| &seats.services).filter(|uid| !draft.claims.undecided.contains(*uid))
}

/// The other load balancers that Services stand on for which those of a configuration are to be
/// made; `None` where those are there, or can be made now for a Service.
fn left_first(
    draft: &Draft<'_>,
    placement: &Placement,
    chosen: &Chosen,
    ids: &[ResourceId; 2],
) -> Option<BTreeSet<ResourceId>> {
    let mut all = BTreeSet::new();
    if ids.iter().any(|id| draft.balancer(id).is_some()) {
        return None;
    }
    for uid in coming(draft, placement, ids) {
        let base = &draft.cases[uid].base;
        let stands = draft
            .views()
            .filter(|b| !b.frontends_of(base).is_empty() || !b.rules_of(base).is_empty());
        let on: BTreeSet<ResourceId> = stands.map(|balancer| balancer.id.clone()).collect();
        if on.is_empty() && has_addresses(draft, chosen, uid) {
            return None;
        }
        all.extend(on);
    }
    Some(all)
}

/// Whether frontends can be made for a Service now: it carries our finalizer, and its public IPs
/// are there.
fn has_addresses(draft: &Draft<'_>, chosen: &Chosen, uid: &ServiceUid) -> bool {
    let case = &draft.cases[uid];
    let Some(intent) = case.intent() else { return false };
    let is_there = |family: &Family| {
        let id = chosen.get(&(uid.clone(), *family));
        id.is_some_and(|id| public_ip::is_ready(draft, id))
    };
    is_claimed(draft.policy, case.service)
        && (intent.exposure == Exposure::Internal || intent.families.iter().all(is_there))
}

/// Whether a load balancer stays although no Service is to be on it.
fn stays(draft: &Draft<'_>, balancer: &LoadBalancer) -> bool {
    !balancer.foreign.is_empty()
        || draft.policy.preconfigured != Preconfigured::None
        || balancer.frontends.iter().any(|f| match draft.whose(&f.name) {
            Owner::Ours(uid) => is_kept(draft, uid),
            Owner::Orphaned => false,
            Owner::Foreign => true,
        })
}

fn is_kept(draft: &Draft<'_>, uid: &ServiceUid) -> bool {
    matches!(draft.cases[uid].stance, Stance::Frozen(_) | Stance::Container(_))
}

/// The cluster's pools of a load balancer, and those that a switch of their kind goes over.
fn pools<'a>(policy: &'a Policy, balancer: &'a LoadBalancer) -> impl Iterator<Item = &'a Pool> {
    balancer.pools.iter().filter(|pool| name::is_common_pool(&policy.cluster, &pool.name))
}

/// Addresses in the pools of a load balancer that its Services share.
#[must_use]
pub fn pooled(policy: &Policy, balancer: &LoadBalancer) -> BTreeSet<IpAddr> {
    pools(policy, balancer).flat_map(|p| &p.addresses).map(|a| a.address).collect()
}

/// Addresses of the nodes that a load balancer has, or may have by the write that is under way.
fn addresses(draft: &Draft<'_>, id: &ResourceId) -> BTreeSet<IpAddr> {
    let write = draft.world.in_flight.get(id);
    let mut found: BTreeSet<IpAddr> = write.map(|w| (*w.addresses).clone()).unwrap_or_default();
    let Some(balancer) = draft.balancer(id) else { return found };
    found.extend(pooled(draft.policy, balancer));
    for nic in pools(draft.policy, balancer).flat_map(|p| &p.nics) {
        let nodes = draft.world.kubernetes.nodes.values();
        found.extend(nodes.filter(|n| n.has_nic(nic)).flat_map(|n| n.addresses.clone()));
    }
    found
}

/// Leaves the pools of load balancers that are about to go as they are, and keeps nodes apart.
pub(super) fn guard(draft: &Draft<'_>, placement: &mut Placement) {
    for (id, seats) in &mut placement.balancers {
        let there = draft.balancer(id);
        if seats.services.is_empty() {
            let kept = there.is_some_and(|b| {
                let owners = b.frontends.iter().filter_map(|f| draft.owner_of(&f.name));
                owners.into_iter().any(|uid| is_kept(draft, uid))
            });
            let goes = there.is_some_and(|b| !stays(draft, b));
            let named = matches!(&seats.backends, Backends::Nodes(nodes) if !nodes.is_empty());
            seats.backends = match &seats.backends {
                backends if kept && named => backends.clone(),
                _ if kept || goes => Backends::AsTheyAre,
                Backends::AsTheyAre => Backends::Nodes(Arc::from([])),
                backends @ Backends::Nodes(_) => backends.clone(),
            };
        }
        if !seats.services.is_empty() && seats.backends == Backends::AsTheyAre {
            // Its set has no nodes (yet), but its rules need a pool.
            seats.backends = Backends::Nodes(Arc::from([]));
        }
    }
    keep_apart(draft, placement);
}

/// Keeps a node out of a pool until the load balancer that it comes from has let it go: Azure
/// takes a node on one public and one internal load balancer only. While lists may lack one that
/// another process made, nodes stay where they are seen.
pub(super) fn keep_apart(draft: &Draft<'_>, placement: &mut Placement) {
    let held: BTreeMap<ResourceId, (Exposure, BTreeSet<IpAddr>)> = placement
        .balancers
        .iter()
        .map(|(id, seats)| (id.clone(), (seats.exposure, addresses(draft, id))))
        .filter(|(_, (_, held))| !held.is_empty())
        .collect();
    let all_listed = draft.world.unseen.is_empty();
    for (id, seats) in &mut placement.balancers {
        let Backends::Nodes(nodes) = &seats.backends else { continue };
        let own = held.get(id).map(|(_, held)| held);
        let elsewhere = |address: &IpAddr| {
            if own.is_some_and(|own| own.contains(address)) {
                return None;
            }
            let mut others = held.iter().filter(|(other, _)| *other != id);
            let holds = |(exposure, held): &(Exposure, BTreeSet<IpAddr>)| {
                *exposure == seats.exposure && held.contains(address)
            };
            others.find(|(_, share)| holds(share)).map(|(other, _)| other.clone())
        };
        let holder = |node: &Arc<Node>| node.addresses.iter().find_map(elsewhere);
        let is_here = |node: &Arc<Node>| {
            own.is_some_and(|own| node.addresses.iter().any(|a| own.contains(a)))
        };
        let may_join = |n: &Arc<Node>| holder(n).is_none() && (all_listed || is_here(n));
        if nodes.iter().all(may_join) {
            continue;
        }
        let free: Vec<Arc<Node>> = nodes.iter().filter(|n| may_join(n)).cloned().collect();
        let released = |id| Wait::Resource { id, until: Until::Released };
        let first = || nodes.iter().find_map(holder).map_or(Wait::Listing, released);
        seats.awaited = free.is_empty().then(first);
        seats.backends = Backends::Nodes(free.into());
    }
}

/// Finds the nodes of the Services that have a pool to themselves: those with endpoints; while no
/// slice is known, those of the load balancer: nodes of another one have no reason to be here.
pub(super) fn localize(draft: &Draft<'_>, placement: &mut Placement) {
    let mut hosts: BTreeMap<ServiceUid, BTreeSet<NodeName>> = BTreeMap::new();
    let local = |uid: &ServiceUid| {
        let intent = draft.cases.get(uid)?.intent()?;
        has_own_pool(draft.policy, intent).then(|| intent.uid.clone())
    };
    let named = |name: &ServiceName| draft.by_name.get(name).and_then(local);
    for slice in draft.world.kubernetes.slices.values() {
        let uid = match &slice.owner {
            Some(owner) => local(owner),
            None => slice.service.as_ref().and_then(named),
        };
        // A slice of another namespace says nothing about where a Service has its Pods.
        let uid = uid.filter(|uid| slice.is_of(draft.cases[uid].service));
        let Some(uid) = uid else { continue };
        // kube-proxy leads to an endpoint whatever Pod it names.
        let nodes = slice.endpoints.iter().filter_map(|e| e.node.clone());
        hosts.entry(uid).or_default().extend(nodes);
    }
    let nodes: Arc<[Arc<Node>]> = eligible(draft).into();
    for seats in placement.balancers.values_mut() {
        for uid in seats.services.iter().filter_map(local) {
            let share = match hosts.get(&uid) {
                Some(hosts) => nodes.iter().filter(|n| hosts.contains(&n.name)).cloned().collect(),
                None => match &seats.backends {
                    Backends::Nodes(own) => Arc::clone(own),
                    Backends::AsTheyAre => Arc::clone(&nodes),
                },
            };
            seats.local.insert(uid, share);
        }
    }
}
