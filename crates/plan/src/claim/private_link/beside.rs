//! What no load balancer has beside a Private Link Service: pools of addresses and IPv6 frontends
//! (learn.microsoft.com/azure/private-link/private-link-service-overview, "Limitations").
//!
//! What stands first stays, and what comes later is refused; of Services that come together, the
//! one with the first seat decides.

use super::{refusal, standing};
use crate::ask::Intent;
use crate::ask::private_link::CREATE;
use crate::claim::Refusal;
use crate::claim::placement::{Assignment, Placement};
use crate::draft::{Draft, Stance};
use crate::own::{Owner, name};
use crate::standing::private_link::{before, known, unread_beside};
use crate::standing::{frontend, pool};
use model::azure::{Frontend, Rule};
use model::policy::PoolKind;
use model::report::{Finding, Until, Wait};
use model::world::Need;
use model::{Exposure, Family, ResourceId, ServiceUid};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Refuses Services that ask for what cannot stand together. Returns those whose Private Link
/// Service waits for something of ours to go.
pub(super) fn settle(draft: &mut Draft<'_>, placement: &Placement) -> BTreeSet<ServiceUid> {
    let mut waiting = BTreeSet::new();
    for (id, seats) in &placement.balancers {
        let kept = kept_pools(draft, id, seats);
        draft.told.findings.extend(kept);
        let families = decide(draft, id, seats);
        let pools = pools(draft, id, seats);
        for uid in &seats.services {
            match obstacle(draft, id, uid, (&families, &pools)) {
                Some(Obstacle::Stays(finding)) => draft.refuse(uid, Refusal::new(finding)),
                Some(Obstacle::Goes) => {
                    draft.wait(uid, Wait::Resource { id: id.clone(), until: Until::Released });
                    waiting.insert(uid.clone());
                }
                None => {}
            }
        }
    }
    waiting
}

/// Services that would bring the first IPv6 frontend to a load balancer before which a Private Link
/// Service may stand, and what has to be read before that is known: Azure refuses the whole write.
pub(crate) fn unsure(draft: &Draft<'_>) -> Vec<(ServiceUid, Need)> {
    let has_six = |intent: &Intent| {
        let name = name::frontend(intent, Family::V6);
        draft.views().any(|balancer| balancer.frontend(&name).is_some())
    };
    let intents = draft.cases.values().filter_map(|case| case.intent());
    let coming: Vec<&Intent> =
        intents.filter(|intent| wants_six(intent) && !has_six(intent)).collect();
    let mut unsure = Vec::new();
    if coming.is_empty() {
        return unsure;
    }
    for exposure in Exposure::ALL {
        let mut all = draft.each_balancer().filter(|balancer| {
            name::exposure_of(&balancer.id) == exposure
                && !balancer.frontends.iter().any(|f| is_ipv6(draft, f))
        });
        let Some(need) = all.find_map(|balancer| unread_beside(draft, &balancer.id)) else {
            continue;
        };
        let own = coming.iter().filter(|intent| intent.exposure == exposure);
        unsure.extend(own.map(|intent| (intent.uid.clone(), need.clone())));
    }
    unsure
}

/// What is in the way of a Service that wants a Private Link Service, or an IPv6 frontend.
enum Obstacle {
    /// Something that stays.
    Stays(Finding),
    /// Something of ours that goes.
    Goes,
}

/// Which of the two a load balancer has, or takes next.
enum Families {
    /// IPv4 only: a Private Link Service stands or comes; its name, or its Service's.
    Link(String),
    /// IPv6 as well: a frontend's name, or its Service's.
    Six(String),
    /// IPv6 frontends that all go.
    SixLeaves,
    /// Neither.
    Free,
}

/// Pools of addresses on a load balancer that is to have none.
enum Pools {
    Nics,
    /// One of ours, on its way to be a pool of NICs.
    Switching,
    /// Another's, or one that another fills.
    Addresses(Arc<str>),
}

fn wants_six(intent: &Intent) -> bool {
    intent.families.contains(&Family::V6)
}

fn decide(draft: &Draft<'_>, id: &ResourceId, seats: &Assignment) -> Families {
    let balancer = draft.balancer(id);
    let frontends = balancer.into_iter().flat_map(|b| &b.frontends);
    let sixes: Vec<&Frontend> = frontends.filter(|f| is_ipv6(draft, f)).collect();
    if let Some(six) = sixes.iter().find(|f| !is_leaving(draft, (id, seats), f)) {
        return Families::Six(format!("frontend {}", six.name));
    }
    if let Some(link) = before(draft, id) {
        return Families::Link(link.id.name().to_owned());
    }
    let intents = seats.services.iter().filter_map(|uid| draft.cases.get(uid)?.intent());
    let mut intents = intents.filter(|intent| wants_six(intent) || intent.private_link.is_some());
    match intents.next() {
        Some(first) if wants_six(first) => Families::Six(format!("Service {}", first.name)),
        Some(_) if !sixes.is_empty() => Families::SixLeaves,
        Some(first) => Families::Link(format!("that of Service {}", first.name)),
        None => Families::Free,
    }
}

fn pools(draft: &Draft<'_>, id: &ResourceId, seats: &Assignment) -> Pools {
    let balancer = draft.balancer(id);
    let mut pools = balancer.into_iter().flat_map(|b| &b.pools);
    let Some(found) = pools.find(|p| !p.addresses.is_empty()) else { return Pools::Nics };
    let is_ours = draft.policy.pools == PoolKind::NodeNic
        && !pool::is_preconfigured(draft, seats.exposure)
        && name::is_common_pool(&draft.policy.cluster, &found.name);
    if is_ours { Pools::Switching } else { Pools::Addresses(Arc::clone(&found.name)) }
}

fn obstacle(
    draft: &Draft<'_>,
    id: &ResourceId,
    uid: &ServiceUid,
    (families, pools): (&Families, &Pools),
) -> Option<Obstacle> {
    let intent = draft.cases.get(uid)?.intent()?;
    if wants_six(intent)
        && let Families::Link(link) = families
    {
        return Some(Obstacle::Stays(late_six(id, link)));
    }
    intent.private_link.as_ref()?;
    let frontend = standing(draft, id, intent);
    if frontend.is_some_and(|f| known(draft).any(|link| link.frontends.contains(&f))) {
        return None;
    }
    let refuse = |rule, message| Some(Obstacle::Stays(refusal(CREATE, "true", rule, message)));
    match (pools, families) {
        (Pools::Addresses(pool), _) => {
            let message = format!(
                "{{value}} requires pools of network interfaces; pool {pool} of {} holds addresses",
                id.name()
            );
            refuse("PrivateLinkNeedsNicPools", message)
        }
        (_, Families::Six(six)) => {
            let message = format!(
                "{{value}} requires a load balancer without IPv6 frontends; {} has that of {six}",
                id.name()
            );
            refuse("PrivateLinkBesideIpv6", message)
        }
        (Pools::Switching, _) | (_, Families::SixLeaves) => Some(Obstacle::Goes),
        (Pools::Nics, Families::Link(_) | Families::Free) => None,
    }
}

fn late_six(id: &ResourceId, link: &str) -> Finding {
    let message = format!(
        "{{value}} is not possible on load balancer {}, which has Private Link Service {link}; use \
         IPv4",
        id.name()
    );
    Finding::refusal("Ipv6BesidePrivateLink", "spec.ipFamilies", Family::V6.name(), &message)
}

fn is_ipv6(draft: &Draft<'_>, frontend: &Frontend) -> bool {
    frontend::family(draft, frontend) == Some(Family::V6)
}

/// Whether an IPv6 frontend goes: the Service that it is named after takes it away, and none whose
/// rules lead to it stays on it.
fn is_leaving(
    draft: &Draft<'_>,
    (id, seats): (&ResourceId, &Assignment),
    frontend: &Frontend,
) -> bool {
    let goes = match draft.whose(&frontend.name) {
        Owner::Ours(uid) => lets_go(draft, seats, uid),
        Owner::Orphaned => true,
        Owner::Foreign => false,
    };
    let Some(balancer) = draft.view(id).filter(|_| goes) else { return goes };
    let owner = draft.owner_of(&frontend.name);
    let stays = |rule: &Rule| match draft.whose(&rule.name) {
        Owner::Ours(uid) => Some(uid) != owner && is_kept(draft, seats, uid, frontend),
        Owner::Orphaned => false,
        Owner::Foreign => true,
    };
    !balancer.is_foreign(&frontend.name)
        && !balancer.rules_to(&frontend.name).into_iter().any(stays)
}

/// Whether a Service gives up an IPv6 frontend of its own.
fn lets_go(draft: &Draft<'_>, seats: &Assignment, uid: &ServiceUid) -> bool {
    match &draft.cases[uid].stance {
        Stance::Leaving => true,
        Stance::Wanted(intent) => !wants_six(intent) || !seats.has(uid),
        Stance::Frozen(_) | Stance::Container(_) => false,
    }
}

/// Whether a Service stays on an IPv6 frontend of another's.
fn is_kept(draft: &Draft<'_>, seats: &Assignment, uid: &ServiceUid, frontend: &Frontend) -> bool {
    match &draft.cases[uid].stance {
        Stance::Leaving => false,
        Stance::Wanted(intent) => {
            let asks = || frontend::is_asked_for(draft, intent, Family::V6, frontend);
            wants_six(intent) && seats.has(uid) && asks()
        }
        Stance::Frozen(_) | Stance::Container(_) => true,
    }
}

/// Says that the pools of a load balancer are not turned into pools of addresses.
fn kept_pools(draft: &Draft<'_>, id: &ResourceId, seats: &Assignment) -> Option<Finding> {
    let kept = pool::kind(draft, id) != draft.policy.pools
        && !pool::is_preconfigured(draft, seats.exposure);
    let link = before(draft, id).filter(|_| kept)?;
    let message = format!(
        "{{value}} is not possible on load balancer {}, which has Private Link Service {}; remove \
         it first (Azure: PrivateLinkServiceIsNotSupportedForIPBasedLoadBalancer)",
        id.name(),
        link.id.name()
    );
    let key = "loadBalancerBackendPoolConfigurationType";
    Some(Finding::refusal("AddressPoolsBehindPrivateLink", key, "nodeIP", &message))
}
