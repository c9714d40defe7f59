//! Who has an address on a load balancer: it is on one frontend at a time, and those who share it
//! are all where that is.

use crate::ask::Intent;
use crate::draft::{Draft, Stance};
use crate::own::name;
use crate::shape::frontend;
use crate::shape::public_ip::Chosen;
use model::azure::{Frontend, FrontendAddress, LoadBalancer};
use model::plan::{Action, Resource};
use model::report::Wait;
use model::{Exposure, Family, ResourceId, ServiceUid};
use std::collections::BTreeSet;

/// Another load balancer that has an address, and what is to become of it there.
pub(crate) enum Held {
    /// It is let go.
    ReleasePending(ResourceId),
    /// Others stay on it.
    Staying(ResourceId),
}

/// Looks for an address on load balancers other than the asker's, as they are and as they are
/// drafted.
pub(crate) fn elsewhere(
    draft: &Draft<'_>,
    chosen: &Chosen,
    asker: &Intent,
    here: &ResourceId,
    is_it: impl Fn(&Frontend) -> bool,
) -> Option<Held> {
    for balancer in draft.balancers()?.values().filter(|b| b.id != *here) {
        if let Some(frontend) = balancer.frontends.iter().find(|f| is_it(f)) {
            let id = balancer.id.clone();
            let stays = is_others(draft, balancer, frontend)
                || keepers(draft, chosen, balancer, frontend)
                    .iter()
                    .any(|uid| *uid != asker.uid && is_seated(draft, uid, &id));
            return Some(if stays { Held::Staying(id) } else { Held::ReleasePending(id) });
        }
    }
    let mut drafted = drafted(draft).filter(|b| b.id != *here);
    let taken = drafted.find(|b| b.frontends.iter().any(&is_it))?;
    Some(Held::Staying(taken.id.clone()))
}

/// Load balancers that are to be written. Of all changes only those are looked at: there may be one
/// for each Service, and this is asked for each.
fn drafted<'d>(draft: &'d Draft<'_>) -> impl Iterator<Item = &'d LoadBalancer> {
    let first = draft.policy.balancer_id("");
    let kind = first.as_str().to_owned();
    let is_one = move |id: &ResourceId| {
        id.as_str().get(..kind.len()).is_some_and(|head| head.eq_ignore_ascii_case(&kind))
    };
    let changes = draft.changes.range(first..).take_while(move |(id, _)| is_one(id));
    changes.filter_map(|(_, change)| match &change.action {
        Action::Put { after: Resource::LoadBalancer(after), .. } => Some(&**after),
        _ => None,
    })
}

/// Whether somebody else made a frontend, or refers to it.
fn is_others(draft: &Draft<'_>, balancer: &LoadBalancer, frontend: &Frontend) -> bool {
    let id = balancer.id.child("frontendIPConfigurations", &frontend.name);
    name::base_of(&frontend.name).is_none()
        || balancer.foreign.iter().any(|f| f.frontends.contains(&id))
        || balancer.rules.iter().any(|rule| {
            let ours = draft.owner_of(&rule.name).is_some() || draft.is_orphaned(&rule.name);
            rule.frontend.as_ref() == Some(&id) && !ours
        })
}

/// Whether a Service is to be on a load balancer, or stays there as it is.
fn is_seated(draft: &Draft<'_>, uid: &ServiceUid, balancer: &ResourceId) -> bool {
    let case = &draft.cases[uid];
    let named = case.balancer.as_ref();
    case.intent().is_none() || named.is_some_and(|name| name.eq_ignore_ascii_case(balancer.name()))
}

/// Our Services that want to go on with a frontend that they stand on, as far as their own wishes
/// go. Of one about which something has to be read first nobody knows.
pub(crate) fn keepers(
    draft: &Draft<'_>,
    chosen: &Chosen,
    balancer: &LoadBalancer,
    frontend: &Frontend,
) -> BTreeSet<ServiceUid> {
    let id = balancer.id.child("frontendIPConfigurations", &frontend.name);
    let on_it = balancer.rules.iter().filter(|r| r.frontend.as_ref() == Some(&id));
    let owner = draft.owner_of(&frontend.name);
    let all = on_it.filter_map(|r| draft.owner_of(&r.name)).chain(owner);
    let keeps = |uid: &&ServiceUid| match &draft.cases[*uid].stance {
        Stance::Frozen(_) => !draft.cases[*uid].waits.iter().any(|w| matches!(w, Wait::Reading(_))),
        Stance::Container(_) => true,
        Stance::Leaving => false,
        Stance::Wanted(intent) => {
            let named =
                |f: &&Family| name::frontend(intent, **f).eq_ignore_ascii_case(&frontend.name);
            let own = intent.families.iter().find(named);
            let mut families = intent.families.iter();
            own.is_some_and(|family| wants(draft, chosen, intent, *family, frontend))
                || families.any(|f| frontend::is_asked_for(draft, intent, *f, frontend))
        }
    };
    all.filter(keeps).cloned().collect()
}

/// Whether a Service wants its own frontend to have the address that it has.
pub(crate) fn wants(
    draft: &Draft<'_>,
    chosen: &Chosen,
    intent: &Intent,
    family: Family,
    own: &Frontend,
) -> bool {
    match (&own.address, intent.exposure) {
        (FrontendAddress::Public(id), Exposure::Public) => {
            let chosen = chosen.get(&(intent.uid.clone(), family));
            chosen.is_none_or(|chosen| chosen == id)
        }
        (FrontendAddress::Private { .. }, Exposure::Internal) => {
            frontend::is_as_asked(draft, intent, family, own)
        }
        _ => true,
    }
}
