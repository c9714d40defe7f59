//! Addresses and ports that pass from one Service to another by one write of a load balancer. Where
//! the one cannot let go yet, the other keeps what it has and waits.

use crate::ask::RuleKind;
use crate::claim::contest::{ALL_PORTS, is_inherited, pool_taken};
use crate::claim::holder::Address;
use crate::claim::placement::Assignment;
use crate::draft::{Draft, Stance};
use crate::own::name::{self, is_of};
use crate::own::part::{Named, place};
use crate::own::parts::View;
use crate::own::{Base, Owner};
use crate::shape::body::Body;
use crate::standing::frontend;
use model::ResourceId;
use model::azure::{Frontend, FrontendAddress, LoadBalancer, Rule, RuleProtocol, rule_protocol};
use model::report::{Until, Wait};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

/// Services that keep what they have stay on their address where the owner of their frontend moves
/// it to another: their rules lead to what stands on the address by then, else to a frontend of the
/// first of them.
pub(super) fn leave_behind(draft: &Draft<'_>, before: View<'_>, after: &mut Body) {
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
pub(super) fn settle(draft: &mut Draft<'_>, before: View<'_>, after: &mut Body) {
    let mut undone: BTreeSet<Base> = BTreeSet::new();
    let next = |draft: &Draft<'_>, after: &Body, undone: &BTreeSet<Base>| {
        let then = after.is_edited().then_some(before);
        let mut all = intruders(draft, then, after.view(), undone).into_iter();
        all.find(|base| !undone.contains(base))
    };
    while let Some(base) = next(draft, after, &undone) {
        after.edit(|after| {
            let base = base.as_str();
            give_back(base, &before.rules, &mut after.rules);
            give_back(base, &before.probes, &mut after.probes);
            give_back(base, &before.frontends, &mut after.frontends);
        });
        if let Some(uid) = draft.owner_of(base.as_str()).cloned() {
            let id = before.id.clone();
            draft.wait(&uid, Wait::Resource { id, until: Until::Released });
        }
        undone.insert(base);
    }
}

/// Puts the parts of one Service back as they were, each in its place.
fn give_back<T: Clone + Named>(base: &str, before: &[T], after: &mut Vec<T>) {
    let own = |part: &&T| is_of(part.name(), base);
    after.retain(|part| !own(&part));
    after.extend(before.iter().filter(own).cloned());
    after.sort_by_key(|part| place(before, part.name()).unwrap_or(before.len()));
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
    undone: &BTreeSet<Base>,
) -> Vec<Base> {
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
        found.extend([Base::of(&new.name), Base::of(&old.name)].into_iter().flatten());
    }
    for rule in &after.rules {
        let Some(id) = &rule.frontend else { continue };
        let Some(now) = after.frontend(id.name()) else {
            found.extend([Base::of(&rule.name), Base::of(id.name())].into_iter().flatten());
            continue;
        };
        let Some(before) = before else { continue };
        if before.frontend(id.name()).is_none_or(|then| is_same(now, then)) {
            continue;
        }
        let given_back = Base::of(&rule.name).is_some_and(|base| undone.contains(&base));
        let led = before.rule(&rule.name).and_then(|then| then.frontend.as_ref());
        let stands = given_back || (led == Some(id) && stays(draft, &rule.name));
        found.extend(Base::of(id.name()).filter(|_| stands));
    }
    if before.is_some() {
        found.extend(port_intruders(then, after));
    }
    found
}

/// Services whose new rule takes all ports of a pool while the rule that has them stays: its
/// Service leaves the load balancer, or gives the ports up, and cannot yet. A node port is another
/// matter, see [`drop_lost_ports`].
fn port_intruders(then: View<'_>, after: View<'_>) -> Vec<Base> {
    let base = |rule: &Rule| Base::of(&rule.name);
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

/// Whether two frontends have the same address.
fn is_same(one: &Frontend, other: &Frontend) -> bool {
    Address::of(one) == Address::of(other)
}

/// Takes out rules that lead to a node port which is another Service's by now. Azure lets one rule
/// of a pool have it, and the old rule would lead to the wrong Service.
pub(super) fn drop_lost_ports(draft: &Draft<'_>, balancer: &mut LoadBalancer) {
    let mut taken: BTreeMap<(ResourceId, RuleProtocol, u16), BTreeSet<Base>> = BTreeMap::new();
    let place = |rule: &Rule| {
        let pool = pool_taken(rule)?.clone();
        Some(((pool, rule.protocol, rule.backend_port), Base::of(&rule.name)?))
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
        let ours = draft.whose(&rule.name) != Owner::Foreign;
        let lost = taken.get(&place).is_some_and(|by| by.iter().any(|owner| *owner != base));
        !(ours && lost && !is_rightful(draft, rule))
    });
}

/// Removes former rules of a Service whose backend port one of these rules of the Service uses:
/// without floating IP Azure accepts one rule for each port of a pool.
pub(super) fn drop_own_ports(body: &mut Body, base: &str, rules: &[Rule]) {
    let place = |rule: &Rule| Some((pool_taken(rule)?.clone(), rule.protocol, rule.backend_port));
    let taken: BTreeSet<_> = rules.iter().filter_map(place).collect();
    let stays = |rule: &Rule| rules.iter().any(|r| name::is_one(&r.name, &rule.name));
    let lost = |rule: &Rule| {
        is_of(&rule.name, base)
            && !stays(rule)
            && place(rule).is_some_and(|place| taken.contains(&place))
    };
    if body.view().rules_of(base).into_iter().any(lost) {
        body.edit(|after| after.rules.retain(|rule| !lost(rule)));
    }
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

/// Takes out frontends that stood for other Services of ours alone, of whose rules this write takes
/// the last away: no later write would, once nothing tells any more whose they are. One whose
/// address is to be closed first stays with its Service until then.
pub(super) fn drop_inherited(
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
        let ours = |r: &&Rule| draft.whose(&r.name) != Owner::Foreign;
        if rules.is_empty() || !rules.iter().all(ours) {
            continue;
        }
        let closes = frontend::address_of(draft, frontend).is_some_and(|ip| open.contains(&ip));
        match draft.owner_of(&frontend.name).filter(|_| closes).cloned() {
            Some(uid) => {
                draft.cases.entry(uid).and_modify(|case| case.has_traces = true);
            }
            None => {
                gone.insert(name::folded(&frontend.name));
            }
        }
    }
    if !gone.is_empty() {
        after.edit(|after| after.frontends.retain(|f| !gone.contains(&name::folded(&f.name))));
    }
}
