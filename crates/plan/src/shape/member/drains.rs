//! Nodes that go away, and are in pools through their NICs. No admin state is written there: how
//! REST takes one for a NIC is not published, and Azure refuses a load balancer as a whole. What
//! turns new connections away is a probe that asks kube-proxy; else the NIC leaves in time, before
//! its machine does.

use super::{Aim, Card, Target, Verdict, is_in, is_kept_out};
use crate::draft::Draft;
use crate::order::drain;
use model::azure::PoolMember;
use model::drain::Drainer;
use model::kubernetes::{DRAIN_LABEL, Membership, Node};
use model::policy::NodeDrain;
use std::sync::Arc;

/// What is to happen to what runs a node, or ran one.
pub(super) fn verdict(draft: &Draft<'_>, node: Option<&Arc<Node>>, member: &PoolMember) -> Verdict {
    if !drains(draft, node, member) {
        return match node.filter(|node| !is_kept_out(draft, node)).map(|node| node.membership) {
            Some(Membership::Member) => Verdict::Joins,
            Some(Membership::Draining) => Verdict::Stays,
            Some(Membership::Excluded | Membership::Leaving) | None => Verdict::Leaves,
        };
    }
    let turned_away = || {
        let pools = || member.configurations.iter().flat_map(|c| &c.pools);
        pools().all(|pool| drain::is_turned_away(draft, pool))
    };
    let stays = match node {
        // kube-proxy knows nothing of our label.
        Some(node) if node.membership == Membership::Draining => {
            let told = !node.labels.contains_key(DRAIN_LABEL);
            (told && turned_away()) || !has_drained(draft, member)
        }
        Some(_) => !has_drained(draft, member),
        // Without such a probe new connections would go on arriving.
        None => !has_drained(draft, member) && turned_away(),
    };
    if stays { Verdict::Stays } else { Verdict::Leaves }
}

/// Whether what runs a node, or ran one, is to drain.
pub(super) fn drains(draft: &Draft<'_>, node: Option<&Arc<Node>>, member: &PoolMember) -> bool {
    let off = draft.policy.node_drain == NodeDrain::Off;
    let joined = || member.configurations.iter().any(|c| !c.pools.is_empty());
    let goes = |node: &Arc<Node>| node.membership.is_going() && !is_kept_out(draft, node);
    !off && joined() && node.is_none_or(goes)
}

fn has_drained(draft: &Draft<'_>, member: &PoolMember) -> bool {
    draft.world.drained.contains(&Drainer::Machine(member.id.clone()))
}

/// What drains in these pools.
pub(super) fn find(targets: &[Target], cards: &[Card]) -> Vec<Drainer> {
    let joined = |card: &&Card| {
        let mut pools = targets.iter().filter(|t| t.aim == Aim::Join);
        card.drains && pools.any(|t| is_in(&card.member, &t.pool))
    };
    cards.iter().filter(joined).map(|card| Drainer::Machine(card.member.id.clone())).collect()
}
