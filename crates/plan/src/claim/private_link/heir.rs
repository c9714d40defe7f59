//! Who a Private Link Service passes to: it lives as long as its frontend, whoever made the two.

use super::{Held, is_ours, standing};
use crate::ask::Intent;
use crate::claim::placement::Placement;
use crate::draft::Draft;
use crate::own::name;
use crate::standing::frontend::is_asked_for;
use crate::standing::private_link::known;
use model::azure::PrivateLinkService;
use model::{Family, ResourceId, ServiceUid};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The first Service that stays on each frontend which another one made and which has a Private
/// Link Service of ours.
pub(super) fn guests(
    draft: &Draft<'_>,
    placement: &Placement,
) -> BTreeMap<ResourceId, Arc<Intent>> {
    let mut guests = BTreeMap::new();
    let ours = known(draft).filter(|link| is_ours(draft, link));
    let linked: BTreeSet<ResourceId> = ours.flat_map(|link| link.frontends.clone()).collect();
    let balancers: BTreeSet<ResourceId> = linked.iter().filter_map(ResourceId::parent).collect();
    for balancer in balancers {
        let seats = placement.balancers.get(&balancer);
        for uid in seats.into_iter().flat_map(|seats| &seats.services) {
            let intent = draft.cases.get(uid).and_then(|case| case.shared_intent());
            let Some(intent) = intent else { continue };
            let frontend = standing(draft, &balancer, &intent);
            if let Some(frontend) = frontend.filter(|f| is_guest(&intent, f))
                && linked.contains(&frontend)
                && stays(draft, &intent, &frontend)
            {
                guests.entry(frontend).or_insert(intent);
            }
        }
    }
    guests
}

/// Whether a Service asks for a Private Link Service, and for the address of this frontend.
pub(super) fn joins(draft: &Draft<'_>, uid: &ServiceUid, frontend: &ResourceId) -> bool {
    let intent = draft.cases.get(uid).and_then(|case| case.intent());
    intent.is_some_and(|intent| intent.private_link.is_some() && stays(draft, intent, frontend))
}

/// Whether a Service asks for the address of a frontend.
fn stays(draft: &Draft<'_>, intent: &Intent, frontend: &ResourceId) -> bool {
    let balancer = frontend.parent().and_then(|id| draft.view(&id));
    let found = balancer.and_then(|balancer| balancer.frontend(frontend.name()));
    found.is_some_and(|found| is_asked_for(draft, intent, Family::V4, found))
}

/// Whether a frontend is another Service's by its name.
pub(super) fn is_guest(intent: &Intent, frontend: &ResourceId) -> bool {
    !name::is_of(frontend.name(), &intent.base)
}

/// A Private Link Service that stays as it is, with another owner.
pub(super) fn inherit(
    frontend: &ResourceId,
    heir: &Intent,
    link: &Arc<PrivateLinkService>,
    past: Option<ServiceUid>,
) -> Held {
    Held {
        id: link.id.clone(),
        frontend: frontend.clone(),
        owner: heir.name.clone(),
        wish: None,
        there: Some(Arc::clone(link)),
        causes: past.into_iter().chain([heir.uid.clone()]).collect(),
    }
}
