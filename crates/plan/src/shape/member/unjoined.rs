//! Load balancers that no node is behind yet. Their addresses are told once the first one has
//! joined: until then nobody answers there.

use super::{Aim, Sources, Target, cards, is_in};
use crate::draft::{Draft, PATIENCE};
use model::ResourceId;
use model::plan::{Action, Change, Resource};
use std::collections::BTreeMap;

/// Load balancers that lead to nobody until one of these changes has been made. One that fails
/// again and again does not count: others may join, and what is wrong with it is told.
pub(super) fn find(
    draft: &Draft<'_>,
    targets: &[Target],
    sources: &Sources,
    changes: &[Change],
) -> BTreeMap<ResourceId, ResourceId> {
    let fails =
        |id: &ResourceId| draft.world.in_flight.get(id).is_some_and(|f| f.attempt >= PATIENCE);
    let cards = cards(draft, sources);
    let mut unjoined = BTreeMap::new();
    for target in targets.iter().filter(|t| t.aim == Aim::Join && t.nics.is_empty()) {
        if cards.iter().any(|card| is_in(&card.member, &target.pool)) {
            continue;
        }
        let joins = |change: &&Change| match &change.action {
            Action::Put { after: Resource::PoolMember(after), .. } => {
                let is_card = cards.iter().any(|card| card.member.id == after.id);
                is_card && is_in(after, &target.pool) && !fails(&change.target)
            }
            _ => false,
        };
        if let Some(change) = changes.iter().find(joins) {
            unjoined.insert(target.balancer.clone(), change.target.clone());
        }
    }
    unjoined
}
