//! Addresses and backend ports of one load balancer that two Services claim at the same time.
//!
//! What one Service lets go of the other takes in the same write. Where the one cannot let go yet,
//! the other keeps what it has and waits.

use super::holder::{self, Address};
use super::placement::Assignment;
use crate::ask::{FloatingIp, Intent, RuleIntent, RuleKind};
use crate::draft::{Draft, Stance, Traces};
use crate::own::name;
use crate::own::name::is_of;
use crate::own::parts::View;
use crate::shape::body::Body;
use crate::shape::frontend::{self, Place};
use model::azure::{Frontend, FrontendAddress, LoadBalancer, Rule, RuleProtocol, rule_protocol};
use model::report::{Until, Wait};
use model::{Exposure, Family, ResourceId, ServiceUid};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

/// What a rule for all ports takes of its pool.
const ALL_PORTS: (RuleProtocol, u16) = (RuleProtocol::All, 0);

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

/// The family for which a Service has a frontend of this name.
fn family_of(intent: &Intent, frontend: &Frontend) -> Option<Family> {
    let named = |f: &Family| name::frontend(intent, *f).eq_ignore_ascii_case(&frontend.name);
    intent.families.iter().copied().find(named)
}

/// Whether a frontend that is named after a Service has the address that the Service asks for.
fn is_wanted_by(
    draft: &Draft<'_>,
    place: &Place<'_>,
    intent: &Intent,
    frontend: &Frontend,
) -> bool {
    let family = family_of(intent, frontend);
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
    let Some(family) = family_of(intent, frontend) else { return false };
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

/// Services that keep what they have stay on their address where the owner of their frontend moves
/// it to another: their rules lead to what stands on the address by then, else to a frontend of the
/// first of them.
pub(crate) fn leave_behind(draft: &Draft<'_>, before: View<'_>, after: &mut Body) {
    if !after.is_edited() {
        return;
    }
    for then in &before.frontends {
        let moves = |now: &&Frontend| !is_same(now, then);
        if after.view().frontend(&then.name).filter(moves).is_none() {
            continue;
        }
        let rules = before.rules_to(&then.name).into_iter();
        let staying: Vec<&Rule> = rules.filter(|r| stays(draft, &r.name)).collect();
        let first = staying.iter().map(|rule| &rule.name).min();
        let Some(own) = first.and_then(|rule| name::frontend_of(rule)) else { continue };
        let view = after.view();
        let there = view.frontends.iter().find(|f| is_same(f, then)).map(|f| Arc::clone(&f.name));
        let name: Arc<str> = match there {
            Some(there) => there,
            // The owner waits for them: `settle` gives it back what it had.
            None if view.frontend(&own).is_some() => continue,
            None => {
                let name = Arc::from(own);
                after.put_frontend(Frontend { name: Arc::clone(&name), ..then.clone() });
                name
            }
        };
        let id = before.id.child("frontendIPConfigurations", &name);
        for rule in staying {
            after.put_rule(Rule { frontend: Some(id.clone()), ..rule.clone() });
        }
    }
}

/// Whether a part is that of a Service that keeps what it has.
fn stays(draft: &Draft<'_>, part: &str) -> bool {
    let uid = draft.owner_of(part);
    uid.is_some_and(|uid| matches!(draft.cases[uid].stance, Stance::Frozen(_)))
}

/// Gives back what two Services have at once in the edited body: who had it keeps it, and the
/// other's parts are as they were, with what they stood on.
pub(crate) fn settle(draft: &mut Draft<'_>, before: View<'_>, after: &mut Body) {
    let mut undone: BTreeSet<String> = BTreeSet::new();
    let next = |draft: &Draft<'_>, after: &Body, undone: &BTreeSet<String>| {
        let then = after.is_edited().then_some(before);
        let mut all = intruders(draft, then, after.view(), undone).into_iter();
        all.find(|base| !undone.contains(base))
    };
    while let Some(base) = next(draft, after, &undone) {
        after.edit(|after| {
            give_back(&base, &before.rules, &mut after.rules, |r| &r.name);
            give_back(&base, &before.probes, &mut after.probes, |p| &p.name);
            give_back(&base, &before.frontends, &mut after.frontends, |f| &f.name);
        });
        if let Some(uid) = draft.owner_of(&base).cloned() {
            let id = before.id.clone();
            draft.wait(&uid, Wait::Resource { id, until: Until::Released });
        }
        undone.insert(base);
    }
}

/// Puts the parts of one Service back as they were, each in its place.
fn give_back<T: Clone>(base: &str, before: &[T], after: &mut Vec<T>, name: fn(&T) -> &Arc<str>) {
    let own = |part: &&T| is_of(name(part), base);
    after.retain(|part| !own(&part));
    after.extend(before.iter().filter(own).cloned());
    after.sort_by_key(|part| {
        let is_it = |b: &T| name(b).eq_ignore_ascii_case(name(part));
        before.iter().position(is_it).unwrap_or(before.len())
    });
}

/// Services whose new frontend has what another frontend has, whose rule has lost the frontend
/// that it leads to, whose frontend is no longer what rules that were given back, or are those
/// of Services that keep what they have, lead to, or whose new rule takes the ports of another.
/// Each is followed by the Service at the other end, should the first have been given back already.
/// `before` is there where anything was edited.
fn intruders(
    draft: &Draft<'_>,
    before: Option<View<'_>>,
    after: View<'_>,
    undone: &BTreeSet<String>,
) -> Vec<String> {
    let base = |part: &str| name::base_of(part).map(str::to_lowercase);
    let then = before.unwrap_or(after);
    let had = |f: &Frontend| then.frontend(&f.name).is_some_and(|then| is_same(then, f));
    let mut found = Vec::new();
    let mut first: BTreeMap<Address, &Frontend> = BTreeMap::new();
    let alone = !after.may_share_ips();
    let is_alone = |f: &Frontend| alone && matches!(f.address, FrontendAddress::Public(_));
    for one in after.frontends.iter().filter(|f| !is_alone(f)) {
        let Some(claimed) = Address::of(one) else { continue };
        let Some(other) = first.insert(claimed, one) else { continue };
        let (new, old) = if had(one) { (other, one) } else { (one, other) };
        found.extend([base(&new.name), base(&old.name)].into_iter().flatten());
    }
    for rule in &after.rules {
        let Some(id) = &rule.frontend else { continue };
        let Some(now) = after.frontend(id.name()) else {
            found.extend([base(&rule.name), base(id.name())].into_iter().flatten());
            continue;
        };
        let Some(before) = before else { continue };
        if before.frontend(id.name()).is_none_or(|then| is_same(now, then)) {
            continue;
        }
        let given_back = base(&rule.name).is_some_and(|base| undone.contains(&base));
        let led = before.rule(&rule.name).and_then(|then| then.frontend.as_ref());
        let stands = given_back || (led == Some(id) && stays(draft, &rule.name));
        found.extend(base(id.name()).filter(|_| stands));
    }
    if before.is_some() {
        found.extend(port_intruders(then, after));
    }
    found
}

/// Services whose new rule takes all ports of a pool while the rule that has them stays: its
/// Service leaves the load balancer, or gives the ports up, and cannot yet. A node port is another
/// matter, see [`drop_lost_ports`].
fn port_intruders(then: View<'_>, after: View<'_>) -> Vec<String> {
    let base = |rule: &Rule| name::base_of(&rule.name).map(str::to_lowercase);
    let before = then.rules_at(&[ALL_PORTS]);
    let had = |rule: &Rule| {
        let mut before = before.iter();
        before.any(|b| pool_taken(b) == pool_taken(rule) && base(b) == base(rule))
    };
    let mut found = Vec::new();
    let mut first: BTreeMap<&ResourceId, &Rule> = BTreeMap::new();
    for one in after.rules_at(&[ALL_PORTS]) {
        let Some(pool) = pool_taken(one) else { continue };
        let Some(other) = first.insert(pool, one) else { continue };
        if base(one) == base(other) {
            continue;
        }
        let (new, old) = if had(one) { (other, one) } else { (one, other) };
        found.extend([base(new), base(old)].into_iter().flatten());
    }
    found
}

/// The pool of which a rule has its backend port to itself.
fn pool_taken(rule: &Rule) -> Option<&ResourceId> {
    rule.pool.as_ref().filter(|_| rule.floating_ip != Some(true))
}

/// Whether two frontends have the same address.
fn is_same(one: &Frontend, other: &Frontend) -> bool {
    Address::of(one) == Address::of(other)
}

/// Takes out rules that lead to a node port which is another Service's by now. Azure lets one rule
/// of a pool have it, and the old rule would lead to the wrong Service.
pub(crate) fn drop_lost_ports(draft: &Draft<'_>, balancer: &mut LoadBalancer) {
    let mut taken: BTreeMap<(ResourceId, RuleProtocol, u16), BTreeSet<String>> = BTreeMap::new();
    let place = |rule: &Rule| {
        let pool = pool_taken(rule)?.clone();
        let base = name::base_of(&rule.name)?.to_lowercase();
        Some(((pool, rule.protocol, rule.backend_port), base))
    };
    for rule in &balancer.rules {
        if let Some((place, base)) = place(rule)
            && is_rightful(draft, rule)
        {
            taken.entry(place).or_default().insert(base);
        }
    }
    balancer.rules.retain(|rule| {
        let Some((place, base)) = place(rule) else { return true };
        let ours = draft.owner_of(&rule.name).is_some() || draft.is_abandoned(&base);
        let lost = taken.get(&place).is_some_and(|by| by.iter().any(|owner| *owner != base));
        !(ours && lost && !is_rightful(draft, rule))
    });
}

/// Whether a rule leads to a node port that its Service has and wants led to.
fn is_rightful(draft: &Draft<'_>, rule: &Rule) -> bool {
    let case = draft.owner_of(&rule.name).and_then(|uid| draft.cases.get(uid));
    let Some(intent) = case.and_then(|case| case.intent()) else { return false };
    intent.rules.iter().any(|wish| match wish.kind {
        RuleKind::Port { protocol, node_port, .. } => {
            rule_protocol(protocol) == rule.protocol && node_port == Some(rule.backend_port)
        }
        RuleKind::AllPorts { .. } => false,
    })
}

/// The rule of another in a pool of this name that has the backend port of a wanted rule. Azure
/// takes one rule for each where floating IP is off. A node port is the Service's that Kubernetes
/// gave it to: another of ours with a rule for it has lost it. All ports stay with who has them; of
/// who gives them up [`settle`] sees whether that is done by the same write.
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
    let goes_on = |rule: &Rule| match draft.owner_of(&rule.name) {
        None => !draft.is_orphaned(&rule.name),
        Some(uid) => {
            let asks = |other: &Intent| backend_ports(other, family).contains(&ALL_PORTS);
            rule.protocol == RuleProtocol::All && draft.cases[uid].intent().is_none_or(asks)
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

/// Takes out frontends that stood for other Services of ours alone, of whose rules this write takes
/// the last away: no later write would, once nothing tells any more whose they are. One whose
/// address is to be closed first stays with its Service until then.
pub(crate) fn drop_inherited(
    draft: &mut Draft<'_>,
    seats: &Assignment,
    open: &BTreeSet<IpAddr>,
    before: View<'_>,
    after: &mut Body,
) {
    let mut gone: BTreeSet<String> = BTreeSet::new();
    for frontend in &before.frontends {
        if !is_inherited(draft, seats, &frontend.name) || after.view().is_used(&frontend.name) {
            continue;
        }
        let rules = before.rules_to(&frontend.name);
        let ours = |r: &&Rule| draft.owner_of(&r.name).is_some() || draft.is_orphaned(&r.name);
        if rules.is_empty() || !rules.iter().all(ours) {
            continue;
        }
        let closes = frontend::address_of(draft, frontend).is_some_and(|ip| open.contains(&ip));
        match draft.owner_of(&frontend.name).filter(|_| closes).cloned() {
            Some(uid) => {
                draft.cases.entry(uid).and_modify(|case| case.traces = Traces::Some);
            }
            None => {
                gone.insert(frontend.name.to_lowercase());
            }
        }
    }
    if !gone.is_empty() {
        after.edit(|after| after.frontends.retain(|f| !gone.contains(&f.name.to_lowercase())));
    }
}

/// Whether a frontend has the name of a Service that is no more, or that leaves the load balancer.
pub(crate) fn is_inherited(draft: &Draft<'_>, seats: &Assignment, frontend: &str) -> bool {
    name::base_of(frontend).is_some()
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
