//! How many machines Azure takes behind a load balancer.

use super::{Aim, Card, Target, Verdict, is_in, serves, speaks};
use crate::claim::limit;
use crate::draft::Draft;
use model::ResourceId;
use model::report::Finding;
use std::collections::BTreeSet;

/// Backend resources of a load balancer: a scale set, an availability set or a VM in none of them
/// counts as one each.
const RESOURCES: usize = 150;

/// What a card counts as.
fn resource(card: &Card) -> &ResourceId {
    card.set.as_ref().unwrap_or(&card.member.id)
}

/// Scale sets, availability sets and NICs that do not fit: who is in a pool stays, the others come
/// in the order of their ids.
pub(super) fn left_out(targets: &[Target], cards: &[Card]) -> BTreeSet<ResourceId> {
    let joined = |card: &&Card| {
        let pools = targets.iter().filter(|t| t.aim == Aim::Join).map(|t| &t.pool);
        pools.into_iter().any(|pool| is_in(&card.member, pool))
    };
    let there: BTreeSet<&ResourceId> = cards.iter().filter(joined).map(resource).collect();
    let coming = cards.iter().filter(|card| card.verdict == Verdict::Joins).map(resource);
    let coming: BTreeSet<&ResourceId> = coming.filter(|id| !there.contains(id)).collect();
    let room = RESOURCES.saturating_sub(there.len());
    coming.into_iter().skip(room).cloned().collect()
}

/// Instances and NICs for which a pool has no room: who is in stays, the others come in the order
/// of their ids. The findings of the load balancer count them.
pub(super) fn unseated(
    draft: &Draft<'_>,
    targets: &[Target],
    cards: &[Card],
) -> BTreeSet<ResourceId> {
    let mut unseated = BTreeSet::new();
    for target in targets.iter().filter(|t| t.aim == Aim::Join) {
        let Some(balancer) = draft.balancer(&target.balancer) else {
            continue;
        };
        let there = cards.iter().filter(|card| is_in(&card.member, &target.pool)).count();
        let comes = |card: &&Card| {
            let set = card.set.as_ref();
            let fits = serves(draft, target, set) && speaks(draft, target, set);
            card.verdict == Verdict::Joins && fits && !is_in(&card.member, &target.pool)
        };
        let coming: BTreeSet<&ResourceId> =
            cards.iter().filter(comes).map(|card| &card.member.id).collect();
        let room = limit::pool_members(balancer.sku).saturating_sub(there);
        unseated.extend(coming.into_iter().skip(room).cloned());
    }
    unseated
}

/// Whether a card is one of them.
pub(super) fn is_left_out(card: &Card, left_out: &BTreeSet<ResourceId>) -> bool {
    left_out.contains(resource(card))
}

/// Says that some are left out.
pub(super) fn finding(left_out: &BTreeSet<ResourceId>) -> Option<Finding> {
    let first = left_out.first()?;
    let count = RESOURCES + left_out.len();
    let message = format!(
        "{} of {count} scale sets, availability sets and single VMs get no traffic, the first is \
         {}; a load balancer whose pools contain network interfaces has at most {RESOURCES} behind \
         it, pools of addresses (nodeIP) have no such limit",
        left_out.len(),
        first.name()
    );
    Some(Finding::note("BackendResourceLimit", "nodes", "", &message))
}
