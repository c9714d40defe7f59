//! Nodes that are in pools through their NICs: models of scale sets, their instances, and NICs.

mod capacity;
mod drains;
mod sources;
mod switching;
mod unjoined;

use crate::claim::placement::{Assignment, Placement};
use crate::draft::{Draft, Stance};
use crate::own::name;
use crate::standing::pool;
use model::azure::{
    Ipv6Service, MemberConfiguration, MemberState, Pool, PoolMember, PrivateLinkRank, Sku,
};
use model::kubernetes::{Node, NodeRole};
use model::plan::{Action, Change, Resource};
use model::policy::{BalancerSku, ControlPlane, PoolKind};
use model::report::{Until, Wait};
use model::world::{Fact, Need};
use model::{Family, ResourceId};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub(crate) use switching::{doubts, has_joined, is_held, is_joinable};
pub(crate) use unjoined::is_filled;

use sources::{Sources, say_unreadable, sources, unread};
use switching::{has_nics, may_leave, migrate};

const SCALE_SETS: &str = "/virtualmachinescalesets/";

/// What is to happen to a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Aim {
    /// Nodes join it through their NICs.
    Join,
    /// Whoever is in it leaves it: its load balancer goes, or it is to hold addresses.
    Leave,
    /// Whoever is in it will leave it, once no rule leads to it: for now they are looked for.
    Stay,
}

#[derive(Debug)]
struct Target {
    balancer: ResourceId,
    pool: ResourceId,
    family: Family,
    aim: Aim,
    nics: BTreeSet<ResourceId>,
}

impl Target {
    fn new(balancer: &ResourceId, pool: &Pool, family: Family, aim: Aim) -> Self {
        let id = balancer.child("backendAddressPools", &pool.name);
        Self { balancer: balancer.clone(), pool: id, family, aim, nics: pool.nics.clone() }
    }
}

/// Whether what runs a node is to be in pools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Joins,
    /// It stays as it is: its node drains.
    Stays,
    Leaves,
}

/// An instance or a NIC.
struct Card {
    member: Arc<PoolMember>,
    verdict: Verdict,
    /// Whether its node is going or gone.
    drains: bool,
    /// Its scale set or availability set.
    set: Option<ResourceId>,
}

/// What has to be read of the nodes that will join, before any load balancer is known.
pub(crate) fn needs(draft: &Draft<'_>) -> BTreeSet<Need> {
    unread(draft, &sources(draft, &[]))
}

/// Drafts the changes of pool members. Returns what has to be read for it; no Service waits for
/// that, except one whose load balancer goes.
pub(crate) fn plan(draft: &mut Draft<'_>, placement: &Placement) -> BTreeSet<Need> {
    let targets = targets(draft, placement);
    migrate(draft, placement);
    let sources = sources(draft, &targets);
    let needs = unread(draft, &sources);
    if !targets.is_empty() {
        say_unreadable(draft, &sources);
        let cards = cards(draft, &sources);
        draft.told.draining.get_or_insert_default().extend(drains::find(&targets, &cards));
        let left_out = capacity::left_out(&targets, &cards);
        draft.told.findings.extend(capacity::finding(&left_out));
        let changes = changes(draft, &targets, &sources, &needs);
        hold_deletions(draft, &targets, &changes, &needs);
        draft.unjoined = unjoined::find(draft, &targets, &sources, &changes, &needs);
        changes.into_iter().for_each(|change| draft.change(change));
    }
    needs
}

/// Pools of load balancers as they were last read: one that is not there yet cannot be joined.
fn targets(draft: &Draft<'_>, placement: &Placement) -> Vec<Target> {
    let mut targets = Vec::new();
    for (id, seats) in &placement.balancers {
        let Some(balancer) = draft.balancer(id) else { continue };
        if pool::is_preconfigured(draft, seats.exposure) {
            continue;
        }
        let goes = is_deleted(draft, id);
        // On a Basic load balancer that cannot be replaced yet everything stays.
        let standard = draft.policy.sku != BalancerSku::Basic;
        if balancer.sku == Sku::Basic && standard && !goes {
            continue;
        }
        let used = is_used(draft, id, seats);
        let kind = pool::kind(draft, id);
        for pool in &balancer.pools {
            let pool_id = id.child("backendAddressPools", &pool.name);
            let own = name::pool_family(&draft.policy.cluster, &pool.name);
            let aim = match (kind, own) {
                (PoolKind::NodeNic, _) if goes => Aim::Leave,
                (PoolKind::NodeNic, Some(_)) if used && pool.addresses.is_empty() => Aim::Join,
                (PoolKind::NodeIp, Some(_)) if has_nics(draft, &pool_id, pool) => {
                    match goes || may_leave(draft, balancer, &pool_id, pool) {
                        true => Aim::Leave,
                        false => Aim::Stay,
                    }
                }
                (PoolKind::NodeIp, None) if goes && !pool.nics.is_empty() => Aim::Leave,
                _ => continue,
            };
            targets.push(Target::new(id, pool, own.unwrap_or(Family::V4), aim));
        }
    }
    targets
}

/// Whether a load balancer is to be deleted, or is being deleted.
fn is_deleted(draft: &Draft<'_>, id: &ResourceId) -> bool {
    let goes = draft.world.in_flight.get(id).is_some_and(|write| write.goes);
    goes || draft.steps.changes.get(id).is_some_and(|c| matches!(c.action, Action::Delete { .. }))
}

/// Whether a Service is, or stays, on a load balancer.
fn is_used(draft: &Draft<'_>, id: &ResourceId, seats: &Assignment) -> bool {
    let balancer = draft.balancer(id);
    let mut owners = balancer.into_iter().flat_map(|b| &b.frontends).filter_map(|f| {
        let uid = draft.owner_of(&f.name)?;
        Some(&draft.cases[uid].stance)
    });
    !seats.services.is_empty() || owners.any(|stance| matches!(stance, Stance::Frozen(_)))
}

/// The uniform scale set that an instance, or anything below it, is part of.
fn set_of(id: &ResourceId) -> Option<ResourceId> {
    let text = id.as_str();
    let folded = text.to_ascii_lowercase();
    let from = folded.find(SCALE_SETS)? + SCALE_SETS.len();
    let end = from + folded[from..].find('/')?;
    folded[end..].starts_with("/virtualmachines/").then(|| ResourceId::new(&text[..end]))
}

/// Whether a node is in no pool because it is of the control plane.
fn is_kept_out(draft: &Draft<'_>, node: &Node) -> bool {
    node.role == NodeRole::ControlPlane
        && draft.policy.exclude_control_plane == ControlPlane::Excluded
}

/// The instances and NICs that may be in pools.
fn cards(draft: &Draft<'_>, sources: &Sources) -> Vec<Card> {
    let azure = &draft.world.azure;
    let nodes = draft.world.kubernetes.nodes.values();
    let by_id: BTreeMap<ResourceId, &Arc<Node>> =
        nodes.clone().filter_map(|n| Some((n.machine()?, n))).collect();
    let unnamed = nodes.filter(|n| n.provider_id.is_none());
    let by_host: BTreeMap<String, &Arc<Node>> =
        unnamed.map(|n| (name::folded(n.name.as_str()), n)).collect();
    let card = |member: &Arc<PoolMember>,
                id: &ResourceId,
                host: Option<&Arc<str>>,
                set: Option<ResourceId>| {
        let named = || by_host.get(&name::folded(host?));
        let node = by_id.get(id).or_else(named).copied();
        let drains = drains::drains(draft, node, member);
        let verdict = drains::verdict(draft, node, member);
        Card { member: Arc::clone(member), verdict, drains, set }
    };
    let mut cards = Vec::new();
    for set in &sources.sets {
        let members = azure.scale_set_vms.get(set).into_iter().flat_map(Fact::each);
        cards.extend(members.map(|m| card(m, &m.id, m.host.as_ref(), Some(set.clone()))));
    }
    let Some(machines) = azure.virtual_machines.known().filter(|_| sources.loose) else {
        return cards;
    };
    for member in azure.network_interfaces.each() {
        let vm = member.owner.as_ref().and_then(|owner| machines.get(owner));
        // A VM's other NICs, and those of no VM, are not ours to change.
        if let Some(vm) = vm.filter(|vm| vm.nic.as_ref() == Some(&member.id)) {
            cards.push(card(member, &vm.id, vm.host.as_ref(), vm.set.clone()));
        }
    }
    cards
}

fn is_in(member: &PoolMember, pool: &ResourceId) -> bool {
    member.configurations.iter().any(|c| c.pools.contains(pool))
}

/// Changes of models first; instances and NICs wait for the model of their scale set, and for no
/// other model. If the write of the model fails repeatedly, instances are written without it.
fn changes(
    draft: &Draft<'_>,
    targets: &[Target],
    sources: &Sources,
    needs: &BTreeSet<Need>,
) -> Vec<Change> {
    let cards = cards(draft, sources);
    let left_out = capacity::left_out(targets, &cards);
    let unseated = capacity::unseated(draft, targets, &cards);
    let joining: BTreeSet<&ResourceId> = cards
        .iter()
        .filter(|c| c.verdict == Verdict::Joins && !capacity::is_left_out(c, &left_out))
        .filter_map(|c| c.set.as_ref())
        .collect();
    let mut changes: BTreeMap<ResourceId, Change> = BTreeMap::new();
    for model in draft.world.azure.scale_sets.each() {
        let verdict = if joining.contains(&model.id) { Verdict::Joins } else { Verdict::Stays };
        let after = edit(draft, model, verdict, Some(&model.id), targets, &BTreeSet::new());
        if let Some(after) = after {
            changes.insert(model.id.clone(), put(model, after, Vec::new()));
        }
    }
    let mut thinned = BTreeSet::new();
    for target in targets.iter().filter(|t| t.aim == Aim::Join && needs.is_empty()) {
        // The last ones stay until others are there: an empty pool serves nobody.
        let stays = |c: &Card| c.verdict != Verdict::Leaves && is_in(&c.member, &target.pool);
        if cards.iter().any(stays) {
            thinned.insert(&target.pool);
        }
    }
    for card in &cards {
        let Card { member, verdict, set, drains: _ } = card;
        let full = capacity::is_left_out(card, &left_out) || unseated.contains(&member.id);
        let verdict = if full { Verdict::Stays } else { *verdict };
        let after = edit(draft, member, verdict, set.as_ref(), targets, &thinned);
        let Some(after) = after else { continue };
        let awaited = |set: &&ResourceId| changes.contains_key(*set) && !draft.is_failing(set);
        let model = set.as_ref().filter(awaited);
        let wait = model.map(|id| Wait::Resource { id: id.clone(), until: Until::Written });
        changes.insert(member.id.clone(), put(member, after, wait.into_iter().collect()));
    }
    if let Some(id) = arriving(draft) {
        let joins = |change: &&mut Change| match &change.action {
            Action::Put {
                before: Some(Resource::PoolMember(before)),
                after: Resource::PoolMember(after),
            } => after.configurations.iter().flat_map(|c| &c.pools).any(|p| !is_in(before, p)),
            _ => false,
        };
        for change in changes.values_mut().filter(joins) {
            change.waits.push(Wait::Resource { id: id.clone(), until: Until::Written });
        }
    }
    changes.into_values().collect()
}

/// A load balancer that is being made, and has not failed to be: NICs join it and others in one
/// write each, once it is there.
fn arriving(draft: &Draft<'_>) -> Option<ResourceId> {
    let is_made = |change: &&Change| {
        let made = matches!(
            &change.action,
            Action::Put { before: None, after: Resource::LoadBalancer(_) }
        );
        let tried = draft.world.in_flight.get(&change.target).is_some_and(|f| f.attempt > 1);
        made && change.waits.is_empty() && !tried
    };
    draft.steps.changes.values().find(is_made).map(|change| change.target.clone())
}

fn put(before: &Arc<PoolMember>, after: PoolMember, waits: Vec<Wait>) -> Change {
    let before = Some(Resource::PoolMember(Arc::clone(before)));
    Change::put(before, Resource::PoolMember(Arc::new(after)), BTreeSet::new(), waits)
}

/// The member as it is to be, where that differs from what it is.
fn edit(
    draft: &Draft<'_>,
    before: &PoolMember,
    verdict: Verdict,
    set: Option<&ResourceId>,
    targets: &[Target],
    thinned: &BTreeSet<&ResourceId>,
) -> Option<PoolMember> {
    // A NIC whose last write failed is repaired where that write put it in a pool of ours; else it
    // is left to whoever wrote it.
    let repaired = before.state == MemberState::Failed
        && targets.iter().any(|target| is_in(before, &target.pool));
    if before.state != MemberState::Usable && !repaired {
        return None;
    }
    let mut after = PoolMember { state: MemberState::Usable, ..before.clone() };
    for target in targets {
        let excluded = verdict == Verdict::Leaves && thinned.contains(&target.pool);
        if target.aim == Aim::Leave || excluded {
            for configuration in &mut after.configurations {
                configuration.pools.remove(&target.pool);
            }
        }
    }
    for target in targets {
        let joins = target.aim == Aim::Join && verdict == Verdict::Joins;
        if joins && serves(draft, target, set) && speaks(draft, target, set) {
            join(&mut after.configurations, target);
        }
    }
    (after != *before).then_some(after)
}

/// Puts the IP configuration of a family into a pool, unless it is in one of another load
/// balancer: a NIC takes only one public and one internal load balancer.
fn join(configurations: &mut [MemberConfiguration], target: &Target) {
    let found = match target.family {
        Family::V4 => configurations.iter_mut().find(|c| c.rank == PrivateLinkRank::Primary),
        Family::V6 => configurations.iter_mut().find(|c| c.family == Family::V6),
    };
    let Some(configuration) = found else { return };
    let own = name::common_base(&target.balancer);
    let same = |pool: &ResourceId| {
        pool.parent().is_some_and(|balancer| name::common_base(&balancer) == own)
    };
    if configuration.pools.iter().all(same) {
        configuration.pools.insert(target.pool.clone());
    }
}

/// Whether the machines of a set can be in a pool of this family.
fn speaks(draft: &Draft<'_>, target: &Target, set: Option<&ResourceId>) -> bool {
    let model = set.and_then(|set| draft.world.azure.scale_sets.known()?.get(set));
    target.family == Family::V4 || model.is_none_or(|m| m.ipv6 == Ipv6Service::Served)
}

/// Whether a pool is for the nodes of a set.
fn serves(draft: &Draft<'_>, target: &Target, set: Option<&ResourceId>) -> bool {
    name::is_for_set(draft.policy, &target.balancer, set.map(ResourceId::name))
}

/// Azure deletes no load balancer while anybody is in its pools.
fn hold_deletions(
    draft: &mut Draft<'_>,
    targets: &[Target],
    changes: &[Change],
    needs: &BTreeSet<Need>,
) {
    let mut waits: BTreeMap<ResourceId, BTreeSet<Wait>> = BTreeMap::new();
    for target in targets.iter().filter(|t| t.aim == Aim::Leave) {
        let held = waits.entry(target.balancer.clone()).or_default();
        held.extend(needs.iter().cloned().map(Wait::Reading));
        for change in changes {
            if let Action::Put { before: Some(Resource::PoolMember(before)), .. } = &change.action
                && is_in(before, &target.pool)
            {
                let id = change.target.clone();
                held.insert(Wait::Resource { id, until: Until::Released });
            }
        }
    }
    for (id, waits) in waits {
        if !is_deleted(draft, &id) {
            continue;
        }
        let Some(change) = draft.steps.changes.get_mut(&id) else { continue };
        change.waits.extend(waits.iter().cloned());
        let causes = change.causes.clone();
        for uid in &causes {
            waits.iter().for_each(|wait| draft.wait(uid, wait.clone()));
        }
    }
}

#[cfg(test)]
mod tests;
