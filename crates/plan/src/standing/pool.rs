//! The kind of pools that a load balancer has, who fills them, and the nodes that may be in them.

use super::private_link;
use crate::draft::Draft;
use model::azure::LoadBalancer;
use model::kubernetes::{Node, NodeRole};
use model::policy::PoolKind;
use model::{Exposure, ResourceId};
use std::sync::Arc;

/// Whether somebody else fills the pools of such a load balancer.
pub(crate) fn is_preconfigured(draft: &Draft<'_>, exposure: Exposure) -> bool {
    draft.policy.preconfigured.covers(exposure)
}

/// The kind of pools that a load balancer is to have: the policy's. Where a Private Link Service
/// stands before it, Azure turns no pool of NICs into one of addresses, and nodes go on joining;
/// the same until it is read whether one does.
pub(crate) fn kind(draft: &Draft<'_>, balancer: &ResourceId) -> PoolKind {
    let on_nics = || {
        let there = draft.balancer(balancer);
        there.is_some_and(|b| b.pools.iter().all(|pool| pool.addresses.is_empty()))
    };
    let is_linked = || {
        private_link::before(draft, balancer).is_some()
            || private_link::may_be_before(draft, balancer)
    };
    match draft.policy.pools {
        PoolKind::NodeIp if on_nics() && is_linked() => PoolKind::NodeNic,
        kind => kind,
    }
}

/// Whether a rule of one of our Services leads to a pool.
pub(crate) fn is_led_to(draft: &Draft<'_>, balancer: &LoadBalancer, pool: &ResourceId) -> bool {
    let mut rules = balancer.rules.iter().filter(|r| r.pool.as_ref() == Some(pool));
    rules.any(|r| draft.owner_of(&r.name).is_some())
}

/// The nodes that may be in pools, in the order of their names.
pub(crate) fn candidates(draft: &Draft<'_>) -> Vec<Arc<Node>> {
    let nodes = draft.world.kubernetes.nodes.values();
    nodes.filter(|n| n.role == NodeRole::Worker).cloned().collect()
}
