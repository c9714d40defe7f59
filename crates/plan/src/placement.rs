//! Which load balancer each Service is on.

use crate::draft::Draft;
use crate::name;
use model::{Exposure, ResourceId, ServiceUid};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Services by the load balancer they are to be on. Load balancers of ours that no Service is to
/// be on have an empty list.
#[derive(Debug, Default)]
pub(crate) struct Placement {
    /// Seats by load balancer.
    pub balancers: BTreeMap<ResourceId, Seats>,
}

/// Who is to be on a load balancer.
#[derive(Debug)]
pub(crate) struct Seats {
    /// Public or internal.
    pub exposure: Exposure,
    /// Services, those that are there already first, then by name.
    pub services: Vec<ServiceUid>,
}

/// Places every Service that gets what it asks.
pub(crate) fn place(draft: &mut Draft<'_>) -> Placement {
    let mut placement = Placement::default();
    for exposure in [Exposure::Public, Exposure::Internal] {
        let id = draft.policy.balancer_id(&name::balancer(draft.policy, exposure));
        placement.balancers.insert(id, Seats { exposure, services: Vec::new() });
    }
    add_others(draft, &mut placement);
    let uids: Vec<ServiceUid> = draft.by_name.values().cloned().collect();
    for uid in uids {
        let Some(case) = draft.cases.get_mut(&uid) else { continue };
        let Some(exposure) = case.intent().map(|i| i.exposure) else { continue };
        let name = name::balancer(draft.policy, exposure);
        case.balancer = Some(Arc::from(name.as_str()));
        let id = draft.policy.balancer_id(&name);
        if let Some(seats) = placement.balancers.get_mut(&id) {
            seats.services.push(uid);
        }
    }
    settle(draft, &mut placement);
    placement
}

/// Load balancers outside the layout that hold a frontend of one of our Services: left by another
/// layout, to be emptied.
fn add_others(draft: &Draft<'_>, placement: &mut Placement) {
    for balancer in draft.balancers().into_iter().flat_map(BTreeMap::values) {
        if balancer.frontends.iter().any(|f| draft.owner_of(&f.name).is_some()) {
            let internal = balancer.id.name().to_lowercase().ends_with(name::INTERNAL);
            let exposure = if internal { Exposure::Internal } else { Exposure::Public };
            placement
                .balancers
                .entry(balancer.id.clone())
                .or_insert_with(|| Seats { exposure, services: Vec::new() });
        }
    }
}

/// Services that are on the load balancer already come first: a shared frontend stays with the
/// one that made it.
fn settle(draft: &Draft<'_>, placement: &mut Placement) {
    for (id, seats) in &mut placement.balancers {
        let Some(balancer) = draft.balancers().and_then(|all| all.get(id)) else { continue };
        let there: std::collections::BTreeSet<&ServiceUid> =
            balancer.frontends.iter().filter_map(|f| draft.owner_of(&f.name)).collect();
        seats.services.sort_by_key(|uid| !there.contains(uid));
    }
}
