//! Addresses and backend ports of one load balancer that two Services claim at the same time. What
//! one Service lets go of the other takes in the same write.

use super::holder::{self, Place};
use super::placement::Assignment;
use crate::ask::{FloatingIp, Intent, RuleIntent, RuleKind};
use crate::draft::{Draft, Stance};
use crate::own::name::{frontend_family, is_of};
use crate::own::parts::View;
use crate::own::{self, Owner};
use model::azure::{Frontend, Rule, RuleProtocol, rule_protocol};
use model::{Exposure, Family, ResourceId, ServiceUid};

/// What a rule for all ports takes of its frontend, and of its pool.
pub(crate) const ALL_PORTS: (RuleProtocol, u16) = (RuleProtocol::All, 0);

/// What the frontend that has an address is to another Service that wants it.
pub(crate) enum Tenancy {
    /// It can stand on it as well.
    Shared,
    /// The address is free with the same write.
    ReleasedBySameWrite,
    /// The address is free when the frontend has gone.
    ReleasePending,
}

/// What becomes of a frontend whose address another Service wants.
pub(crate) fn tenancy(
    draft: &Draft<'_>,
    place: &Place<'_>,
    asker: &Intent,
    other: &Frontend,
) -> Tenancy {
    let rules = place.balancer.rules_to(&other.name);
    let is_on = rules.iter().any(|r| is_of(&r.name, &asker.base));
    let Some(uid) = draft.owner_of(&other.name) else { return Tenancy::Shared };
    if *uid == asker.uid {
        // It has another name by now: the old one goes, unless others are on it.
        let shared = rules.iter().any(|r| !is_of(&r.name, &asker.base))
            || place.balancer.is_foreign(&other.name);
        return if shared { Tenancy::Shared } else { Tenancy::ReleasedBySameWrite };
    }
    // Other Services with rules on the frontend keep it where it is when its owner goes, refused
    // Services that keep what they have included.
    let is_kept = rules.iter().any(|r| {
        let by = draft.owner_of(&r.name).filter(|by| *by != uid);
        let keeps = |by| matches!(&draft.cases[by].stance, Stance::Frozen(_));
        by.is_some_and(|by| place.seats.services.contains(by) || keeps(by))
    });
    let ending = if is_on || is_kept { Tenancy::Shared } else { Tenancy::ReleasePending };
    match &draft.cases[uid].stance {
        Stance::Frozen(_) | Stance::Container(_) => Tenancy::Shared,
        Stance::Leaving => ending,
        Stance::Wanted(_) if !place.seats.services.contains(uid) => ending,
        Stance::Wanted(intent) if is_wanted_by(draft, place, intent, other) => Tenancy::Shared,
        // It stays for the sake of those who are on it, unless its owner takes its name along.
        Stance::Wanted(intent)
            if (is_on || is_kept) && !is_taken_along(draft, place, intent, other) =>
        {
            Tenancy::Shared
        }
        Stance::Wanted(_) => Tenancy::ReleasedBySameWrite,
    }
}

/// Whether a frontend that is named after a Service has the address that the Service asks for.
fn is_wanted_by(
    draft: &Draft<'_>,
    place: &Place<'_>,
    intent: &Intent,
    frontend: &Frontend,
) -> bool {
    let family = frontend_family(intent, &frontend.name);
    family.is_some_and(|family| holder::wants(draft, place.chosen, intent, family, frontend))
}

/// Whether a Service is going to have a frontend of this name at another address: not where it
/// joins another Service's there.
fn is_taken_along(
    draft: &Draft<'_>,
    place: &Place<'_>,
    intent: &Intent,
    frontend: &Frontend,
) -> bool {
    let Some(family) = frontend_family(intent, &frontend.name) else { return false };
    let stays = |other: &&Frontend| {
        let owner = draft.owner_of(&other.name).filter(|owner| **owner != intent.uid);
        owner.is_some_and(|uid| match &draft.cases[uid].stance {
            Stance::Wanted(owner) => {
                place.seats.services.contains(uid) && is_wanted_by(draft, place, owner, other)
            }
            // It has no seat, and keeps what it has.
            Stance::Frozen(_) | Stance::Container(_) => true,
            Stance::Leaving => false,
        })
    };
    let mut others = place.balancer.frontends.iter().filter(stays);
    !others.any(|other| holder::wants(draft, place.chosen, intent, family, other))
}

/// The pool of which a rule has its backend port to itself.
pub(crate) fn pool_taken(rule: &Rule) -> Option<&ResourceId> {
    rule.pool.as_ref().filter(|_| rule.floating_ip != Some(true))
}

/// The rule of another in a pool of this name that has the backend port of a wanted rule. Azure
/// takes one rule for each where floating IP is off. A node port is the Service's that Kubernetes
/// gave it to: another of ours with a rule for it has lost it. All ports stay with who has them;
/// whether who gives them up does so by the same write is seen once that is drafted.
pub(crate) fn backend_port_taken<'b>(
    draft: &Draft<'_>,
    balancer: View<'b>,
    intent: &Intent,
    family: Family,
    pool: &str,
) -> Option<&'b Rule> {
    let wanted = backend_ports(intent, family);
    if wanted.is_empty() {
        return None;
    }
    let pool = balancer.id.child("backendAddressPools", pool);
    let goes_on = |rule: &Rule| match draft.whose(&rule.name) {
        Owner::Foreign => true,
        Owner::Orphaned => false,
        Owner::Ours(uid) => {
            let asks = |other: &Intent| backend_ports(other, family).contains(&ALL_PORTS);
            let case = &draft.cases[uid];
            let leaves = matches!(case.stance, Stance::Leaving);
            rule.protocol == RuleProtocol::All && !leaves && case.intent().is_none_or(asks)
        }
    };
    let all = balancer.rules_at(&wanted).into_iter();
    let mut others = all.filter(|rule| !is_of(&rule.name, &intent.base));
    others.find(|rule| pool_taken(rule) == Some(&pool) && goes_on(rule))
}

/// Backend ports of a Service's rules without floating IP. The annotation that switches it off does
/// not count for HA ports.
pub(crate) fn backend_ports(intent: &Intent, family: Family) -> Vec<(RuleProtocol, u16)> {
    let inside = intent.exposure == Exposure::Internal && family == Family::V6;
    let translated = intent.rule_options.floating_ip == FloatingIp::Disabled || inside;
    let port = |wish: &RuleIntent| match wish.kind {
        RuleKind::Port { protocol, node_port, .. } if translated => {
            Some((rule_protocol(protocol), node_port?))
        }
        RuleKind::AllPorts { .. } if inside => Some(ALL_PORTS),
        RuleKind::Port { .. } | RuleKind::AllPorts { .. } => None,
    };
    intent.rules.iter().filter_map(port).collect()
}

/// Whether a frontend has the name of a Service that is no more, or that leaves the load balancer.
pub(crate) fn is_inherited(draft: &Draft<'_>, seats: &Assignment, frontend: &str) -> bool {
    own::is_named_after_one(frontend)
        && draft.owner_of(frontend).is_none_or(|uid| leaves(draft, seats, uid))
}

/// Whether a Service loses what it has on a load balancer.
pub(crate) fn leaves(draft: &Draft<'_>, seats: &Assignment, uid: &ServiceUid) -> bool {
    match draft.cases[uid].stance {
        Stance::Frozen(_) | Stance::Container(_) => false,
        Stance::Wanted(_) => !seats.has(uid),
        Stance::Leaving => true,
    }
}

#[cfg(test)]
mod tests;
