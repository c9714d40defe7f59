//! Load balancers that no node is behind yet. Their addresses are told once the first one has
//! joined: until then nobody answers there.

use super::{Aim, Sources, Target, cards, is_in};
use crate::draft::Draft;
use crate::own::part;
use model::ResourceId;
use model::azure::LoadBalancer;
use model::plan::{Action, Change, Resource};
use model::report::Wait;
use model::world::Need;
use std::collections::{BTreeMap, BTreeSet};

/// Load balancers that lead to no node until one of these changes has been made, or until the list
/// of machines has been read. One of them that fails is what the Services wait for all the same: a
/// Service's status has no address without a backend, and its condition has Azure's error.
pub(super) fn find(
    draft: &Draft<'_>,
    targets: &[Target],
    sources: &Sources,
    changes: &[Change],
    needs: &BTreeSet<Need>,
) -> BTreeMap<ResourceId, Wait> {
    let cards = cards(draft, sources);
    let mut unjoined = BTreeMap::new();
    for target in targets.iter().filter(|t| t.aim == Aim::Join && t.nics.is_empty()) {
        if cards.iter().any(|card| is_in(&card.member, &target.pool)) {
            continue;
        }
        let joins = |change: &&Change| match &change.action {
            Action::Put { after: Resource::PoolMember(after), .. } => {
                let is_card = cards.iter().any(|card| card.member.id == after.id);
                is_card && is_in(after, &target.pool)
            }
            _ => false,
        };
        let joining = changes.iter().find(joins).map(|c| Wait::Writing(c.target.clone()));
        let unread = needs.first().map(|need| Wait::Reading(need.clone()));
        if let Some(wait) = joining.or(unread) {
            unjoined.insert(target.balancer.clone(), wait);
        }
    }
    unjoined
}

/// Whether the plan brings the first addresses to a pool that a Service's rules lead to. The rules
/// were made while NICs were to join the pool, and the cloud config says otherwise by now.
pub(crate) fn is_filled(draft: &Draft<'_>, balancer: &ResourceId, base: &str) -> bool {
    let Some(view) = draft.view(balancer) else { return false };
    let put = draft.steps.changes.get(balancer).map(|change| &change.action);
    let Some(Action::Put { after: Resource::LoadBalancer(after), .. }) = put else { return false };
    let rules = view.rules_of(base).into_iter();
    let mut names = rules.filter_map(|rule| rule.pool.as_ref()).map(ResourceId::name);
    names.any(|name| {
        let holds = |balancer: &LoadBalancer| {
            let mut own = balancer.pools.iter().filter(|p| part::is_called(*p, name));
            own.any(|pool| !pool.addresses.is_empty() || !pool.nics.is_empty())
        };
        !holds(view.whole()) && holds(after)
    })
}
