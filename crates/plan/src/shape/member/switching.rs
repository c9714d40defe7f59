//! Pools that change between NICs and addresses.

use super::sources::{sources, unread};
use super::{Aim, Target, cards, changes, is_deleted, is_in, is_kept_out, set_of};
use crate::claim::placement::Placement;
use crate::draft::Draft;
use crate::own::name;
use crate::standing::pool::{self, is_led_to};
use model::azure::{LoadBalancer, MemberState, Pool, PoolMember, Sku};
use model::kubernetes::Membership;
use model::plan::{Action, Change};
use model::policy::{MigrateApi, PoolKind};
use model::world::{ById, Fact, Need};
use model::{Family, ResourceId};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Whether NICs are still in a pool that is to hold addresses: Azure takes no address before they
/// have left.
pub(crate) fn is_held(draft: &Draft<'_>, balancer: &ResourceId, pool: &Pool) -> bool {
    let id = balancer.child("backendAddressPools", &pool.name);
    if !pool.addresses.is_empty() || !has_nics(draft, &id, pool) {
        return false;
    }
    let sources = sources(draft, &[Target::new(balancer, pool, Family::V4, Aim::Leave)]);
    // The load balancer was read before they left, so what they say themselves counts.
    !unread(draft, &sources).is_empty()
        || draft.world.azure.scale_sets.each().any(|m| is_in(m, &id))
        || cards(draft, &sources).iter().any(|c| is_in(&c.member, &id))
}

/// Whether everybody who is to join a pool through a NIC is in it, but for those that fail again
/// and again.
pub(crate) fn has_joined(
    draft: &Draft<'_>,
    balancer: &ResourceId,
    pool: &Pool,
    family: Family,
) -> bool {
    let id = balancer.child("backendAddressPools", &pool.name);
    let targets = [Target::new(balancer, pool, family, Aim::Join)];
    let sources = sources(draft, &targets);
    let needs = unread(draft, &sources);
    needs.is_empty()
        && cards(draft, &sources).iter().any(|c| is_in(&c.member, &id))
        && changes(draft, &targets, &sources, &needs).iter().all(|c| draft.is_failing(&c.target))
}

/// Whether a node can join the pools of a load balancer through its NIC, as far as machines have
/// been read. As long as none can, a pool of addresses stays one: its rules would go over another
/// pool of the same addresses, and nothing would ever bring them back. So it is where all nodes are
/// gone, excluded or about to go, and where no machine is known of those that are left.
pub(crate) fn is_joinable(draft: &Draft<'_>, balancer: &ResourceId) -> bool {
    let azure = &draft.world.azure;
    let is_usable = |all: Option<&Fact<ById<PoolMember>>>, id: &ResourceId| {
        let member = all.and_then(Fact::known).and_then(|all| all.get(id));
        member.is_some_and(|member| member.state == MemberState::Usable)
    };
    let joins = |id: ResourceId| {
        if let Some(set) = set_of(&id) {
            let is_its = name::is_for_set(draft.policy, balancer, Some(set.name()));
            return is_its && is_usable(azure.scale_set_vms.get(&set), &id);
        }
        let machine = azure.virtual_machines.known().and_then(|all| all.get(&id));
        machine.is_some_and(|machine| {
            let set = machine.set.as_ref().map(ResourceId::name);
            let nics = Some(&azure.network_interfaces);
            let is_its = name::is_for_set(draft.policy, balancer, set);
            is_its && machine.nic.as_ref().is_some_and(|nic| is_usable(nics, nic))
        })
    };
    let nodes = draft.world.kubernetes.nodes.values();
    let nodes = nodes.filter(|n| n.membership == Membership::Member && !is_kept_out(draft, n));
    nodes.filter_map(|n| n.machine()).any(joins)
}

/// Whether NICs are in a pool. It shows those of instances; the model of a scale set is in it by
/// itself, from the write of the model to that of the first instance. In a pool of addresses none
/// is: a model that says so was read before Azure turned the pool into one.
pub(super) fn has_nics(draft: &Draft<'_>, id: &ResourceId, pool: &Pool) -> bool {
    let by_model = || draft.world.azure.scale_sets.each().any(|model| is_in(model, id));
    !pool.nics.is_empty() || (pool.addresses.is_empty() && by_model())
}

/// What has to be read before anything is planned: where a pool that is to hold addresses stands
/// empty, the models of scale sets say whether it can.
pub(crate) fn doubts(draft: &Draft<'_>) -> Option<Need> {
    if draft.policy.pools != PoolKind::NodeIp || draft.world.azure.scale_sets != Fact::Unknown {
        return None;
    }
    let mut balancers = draft.each_balancer();
    let is_empty = |pool: &Pool| pool.addresses.is_empty() && pool.nics.is_empty();
    let doubtful = |balancer: &Arc<LoadBalancer>| own_pools(draft, balancer).any(is_empty);
    balancers.any(doubtful).then_some(Need::ScaleSets)
}

/// The cluster's pools of a load balancer.
fn own_pools<'b>(
    draft: &'b Draft<'_>,
    balancer: &'b LoadBalancer,
) -> impl Iterator<Item = &'b Pool> {
    let cluster = &*draft.policy.cluster;
    balancer.pools.iter().filter(move |pool| name::is_pool(cluster, &pool.name))
}

/// Whether NICs may leave a pool that is to hold addresses: no rule of a Service leads to it any
/// more, or addresses are there already.
pub(super) fn may_leave(
    draft: &Draft<'_>,
    balancer: &LoadBalancer,
    id: &ResourceId,
    pool: &Pool,
) -> bool {
    !pool.addresses.is_empty() || !is_led_to(draft, balancer, id)
}

/// Lets Azure turn pools of NICs into pools of addresses, where the config asks for it.
pub(super) fn migrate(draft: &mut Draft<'_>, placement: &Placement) {
    if draft.policy.pools != PoolKind::NodeIp || draft.policy.migrate_api != MigrateApi::Used {
        return;
    }
    let mut found: BTreeMap<ResourceId, Vec<Arc<str>>> = BTreeMap::new();
    for (id, seats) in &placement.balancers {
        let Some(balancer) = draft.balancer(id) else { continue };
        let fixed = pool::is_preconfigured(draft, seats.exposure) || balancer.sku == Sku::Basic;
        if fixed || is_deleted(draft, id) || pool::kind(draft, id) != PoolKind::NodeIp {
            continue;
        }
        let held = own_pools(draft, balancer).filter(|pool| is_held(draft, id, pool));
        let pools: Vec<Arc<str>> = held.map(|p| Arc::clone(&p.name)).collect();
        if !pools.is_empty() {
            found.insert(id.clone(), pools);
        }
    }
    for (target, pools) in found {
        // Whatever else changes on the load balancer follows once it has been read again.
        let causes = draft.steps.changes.remove(&target).map(|c| c.causes).unwrap_or_default();
        let action = Action::MigratePools { pools };
        draft.change(Change::new(target, action, causes, Vec::new()));
    }
}
