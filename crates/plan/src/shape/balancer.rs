//! Load balancers of nodes: every Service's parts on one become one body.

mod causes;
mod handover;
mod resting;

use super::body::Body;
use super::frontend::{self, Wanted};
use super::memory::Memory;
use super::private_link::{self, Linked};
use super::{bridge, pool, rule, unserved};
use crate::ask::{Intent, SHARED_PROBE};
use crate::claim::choice::Chosen;
use crate::claim::contest;
use crate::claim::holder::{Drafted, Place};
use crate::claim::limit::{self, Obstacle};
use crate::claim::placement::Assignment;
use crate::draft::Draft;
use crate::order::moving::Movers;
use crate::own::name::{self, is_of, is_one};
use crate::own::parts::{Share, View};
use crate::own::{Base, is_claimed, is_shell, tags};
use crate::standing::balancer::holds_others;
use crate::standing::frontend::address_of;
use crate::standing::pool::is_preconfigured;
use model::azure::{Frontend, LoadBalancer, Provisioning, Rest, Rule, Sku};
use model::plan::{Change, Resource};
use model::policy::BalancerSku;
use model::report::{Until, Wait};
use model::{Family, Policy, ResourceId, ServiceUid};
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

/// A load balancer while it is edited.
struct Build<'a> {
    seats: &'a Assignment,
    /// It as it stands.
    there: Option<Arc<LoadBalancer>>,
    memory: &'a mut Memory,
    after: Body,
    /// Services that are about to be ready to join.
    coming: BTreeSet<ServiceUid>,
    /// Frontends with a Private Link Service, which have to lose it before they go.
    linked: Linked,
    /// Whether parts have names of Services that are no more, or that leave it.
    inherits: bool,
    room: limit::Room,
    /// Private addresses on the way, once they are asked for.
    movers: Movers,
    /// The same of addresses on other load balancers.
    drafted: OnceCell<Drafted>,
}

impl Build<'_> {
    /// As far as it is edited.
    fn view(&self) -> View<'_> {
        self.after.view()
    }

    /// The Private Link Service before a frontend.
    fn link(&self, frontend: &str) -> Option<&ResourceId> {
        self.linked.get(&self.view().id.child("frontendIPConfigurations", frontend))
    }

    /// What stands before a frontend of this base name that goes and that no other Service's
    /// rules lead to.
    fn link_to_lose(&self, base: &str, goes: impl Fn(&str) -> bool) -> Option<ResourceId> {
        if self.linked.is_empty() {
            return None;
        }
        let own = self.view().frontends_of(base).into_iter().filter(|f| goes(&f.name));
        own.filter(|f| !self.is_shared(&f.name, base)).find_map(|f| self.link(&f.name).cloned())
    }

    /// What stands before a frontend that outlived its Service, where only rules that leave are
    /// left on it, one of this base name among them: such a frontend goes with the last rule.
    fn inherited_link(
        &self,
        draft: &Draft<'_>,
        base: &str,
        leaves: impl Fn(&str) -> bool,
    ) -> Option<ResourceId> {
        if self.linked.is_empty() {
            return None;
        }
        let linked = self.view().whole().frontends.iter();
        let mut linked = linked.filter(|f| contest::is_inherited(draft, self.seats, &f.name));
        linked.find_map(|frontend| {
            let rules = self.view().rules_to(&frontend.name);
            let mut all = rules.iter();
            let goes = rules.iter().any(|r| is_of(&r.name, base)) && all.all(|r| leaves(&r.name));
            self.link(&frontend.name).filter(|_| goes).cloned()
        })
    }

    /// Whether a rule leads to a frontend of such a name.
    fn leads(&self, rule: &str, to: impl Fn(&str) -> bool) -> bool {
        let rule = self.view().rule(rule);
        rule.and_then(|r| r.frontend.as_ref()).is_some_and(|id| to(id.name()))
    }

    /// Whether rules that are not of this base name lead to a frontend.
    fn is_shared(&self, frontend: &str, base: &str) -> bool {
        self.view().rules_to(frontend).iter().any(|r| !is_of(&r.name, base))
            || self.view().is_foreign(frontend)
    }

    /// Whether anything is left of this base name but frontends that others stay on.
    fn has_traces(&self, base: &str) -> bool {
        let balancer = self.view();
        !balancer.rules_of(base).is_empty()
            || !balancer.probes_of(base).is_empty()
            || balancer.frontends_of(base).iter().any(|f| !self.is_shared(&f.name, base))
    }
}

/// Edits one load balancer and drafts the change, if any.
pub(crate) fn plan(
    draft: &mut Draft<'_>,
    memory: &mut Memory,
    (id, seats): (&ResourceId, &Assignment),
    chosen: &Chosen,
    open: &BTreeSet<IpAddr>,
) {
    let before = draft.view(id);
    let there = draft.balancers().and_then(|all| all.get(id)).cloned();
    let after = before.map_or_else(|| Body::new(fresh(draft.policy, id)), Body::of);
    let (linked, room) = (private_link::linked(draft), limit::Room::default());
    let (coming, movers, drafted) = (BTreeSet::new(), OnceCell::new(), OnceCell::new());
    let inherits = false;
    let mut build =
        Build { seats, there, memory, after, coming, linked, inherits, room, movers, drafted };
    clear(draft, &mut build, open);
    build.room = limit::Room::of(draft, build.view());
    let mut seated = Vec::new();
    for uid in build.room.turns(draft, build.view(), &seats.services) {
        if build.rests(draft, &uid, chosen) {
            seated.push(uid);
        } else if seat(draft, &mut build, &uid, chosen, before) {
            build.note(draft, &uid, chosen);
            seated.push(uid);
        }
    }
    if let Some(before) = before {
        handover::leave_behind(draft, before, &mut build.after);
        handover::settle(draft, before, &mut build.after);
        if build.inherits {
            handover::drop_inherited(draft, seats, open, before, &mut build.after);
        }
    }
    let Build { after, coming, .. } = build;
    let mut after = after.finish();
    handover::drop_lost_ports(draft, &mut after);
    drop_unused_shared_probe(&mut after);
    if let Some(before) = before {
        pool::drop_unused(draft, &before, &mut after);
    }
    let owned = |b: View<'_>| b.frontends.iter().any(|f| draft.owner_of(&f.name).is_some());
    let ours = !seated.is_empty() || before.is_some_and(owned);
    if ours && !draft.basics.contains(id) {
        let ways = bridge::transition_pools(draft, &after, seats);
        let mut draining = pool::ensure(draft, &mut after, seats, &seated);
        draining.extend(bridge::lead(draft, &mut after, seats, ways));
        draft.told.draining.get_or_insert_default().extend(draining);
        unserved::note(draft, &after, seats, &seated);
        let nodes = pool::count(seats);
        draft.told.findings.extend(limit::crowded(draft, &after, nodes));
        after.tags = tags::shared(after.tags.as_ref(), draft.policy);
    }
    conclude(draft, seats, after, &coming);
}

/// A load balancer that does not exist yet.
pub(crate) fn fresh(policy: &Policy, id: &ResourceId) -> LoadBalancer {
    let sku = if policy.sku == BalancerSku::Basic { Sku::Basic } else { Sku::Standard };
    LoadBalancer {
        id: id.clone(),
        etag: None,
        location: Arc::clone(&policy.location),
        edge_zone: policy.edge_zone.clone(),
        tags: None,
        sku,
        scope: None,
        frontends: Vec::new(),
        pools: Vec::new(),
        rules: Vec::new(),
        probes: Vec::new(),
        foreign: Vec::new(),
        provisioning: Provisioning::Succeeded,
        rest: Rest::default(),
    }
}

/// What is to become of the parts of a base name.
enum Fate {
    /// They stay as they are, or their Service's seat decides.
    Stays,
    /// They stay as they are, and no Service has their name.
    Outlives,
    /// They go.
    Goes(Option<ServiceUid>),
}

fn fate(draft: &Draft<'_>, seats: &Assignment, parts: Share<'_>) -> Fate {
    match draft.owner_of_base(parts.base) {
        Some(uid) if contest::leaves(draft, seats, uid) => Fate::Goes(Some(uid.clone())),
        Some(_) => Fate::Stays,
        None if draft.is_orphaned(parts.part) => Fate::Goes(None),
        None => Fate::Outlives,
    }
}

/// Takes out what belongs to Services that leave; a frontend whose address is still open in the
/// security group stays until it is closed.
fn clear(draft: &mut Draft<'_>, build: &mut Build<'_>, open: &BTreeSet<IpAddr>) {
    let mut leaving: BTreeMap<Base, Option<ServiceUid>> = BTreeMap::new();
    let mut inherits = false;
    for parts in build.view().shares() {
        match fate(draft, build.seats, parts) {
            Fate::Stays => continue,
            Fate::Outlives => {}
            Fate::Goes(uid) => {
                leaving.extend(Base::of(parts.part).map(|base| (base, uid)));
            }
        }
        inherits = true;
    }
    build.inherits = inherits;
    if leaving.is_empty() {
        return;
    }
    let group = draft.policy.security_group_id();
    let mut gone = BTreeSet::new();
    let bases: BTreeSet<Base> = leaving.keys().cloned().collect();
    let leaves = |rule: &str| Base::of(rule).is_some_and(|base| bases.contains(&base));
    for (of, uid) in leaving {
        let base = of.as_str();
        let inherited = |f: &&Frontend| contest::is_inherited(draft, build.seats, &f.name);
        let led = build.view().led_by(base).into_iter().filter(inherited);
        let mut stands = build.view().frontends_of(base).into_iter().chain(led);
        let is_held =
            stands.any(|f| address_of(draft, f).is_some_and(|address| open.contains(&address)));
        if build.has_traces(base)
            && let Some(case) = uid.as_ref().and_then(|uid| draft.cases.get_mut(uid))
        {
            case.has_traces = true;
        }
        if is_held || draft.may_open(&group, uid.as_ref()) {
            let wait = Wait::Resource { id: group.clone(), until: Until::Released };
            if let Some(uid) = &uid {
                draft.wait(uid, wait);
            }
        } else if let Some(link) =
            build.link_to_lose(base, |_| true).or_else(|| build.inherited_link(draft, base, leaves))
        {
            if let Some(uid) = &uid {
                draft.wait(uid, Wait::Resource { id: link, until: Until::Gone });
            }
        } else {
            gone.insert(of);
        }
    }
    let of_gone = |name: &str| Base::of(name).is_some_and(|base| gone.contains(&base));
    build.after.edit(|after| {
        after.rules.retain(|r| !of_gone(&r.name));
        after.probes.retain(|p| !of_gone(&p.name));
    });
    let view = build.view();
    let held = |f: &&Frontend| view.is_used(&f.name) || build.link(&f.name).is_some();
    let all = view.frontends.iter().filter(|f| of_gone(&f.name) && !held(f));
    let unheld: BTreeSet<Arc<str>> = all.map(|f| Arc::clone(&f.name)).collect();
    build.after.edit(|after| after.frontends.retain(|f| !unheld.contains(&f.name)));
}

/// Gives one Service its frontends, rules and probes. Whether it has any now.
fn seat(
    draft: &mut Draft<'_>,
    build: &mut Build<'_>,
    uid: &ServiceUid,
    chosen: &Chosen,
    before: Option<View<'_>>,
) -> bool {
    let case = &draft.cases[uid];
    let Some(intent) = case.shared_intent() else { return false };
    if !is_claimed(draft.policy, case.service) {
        draft.wait(uid, Wait::Finalizer);
        build.coming.insert(uid.clone());
        return false;
    }
    let mut ready: Vec<(Family, Option<Frontend>, Arc<str>)> = Vec::new();
    let (mut waiting, mut late) = (false, false);
    for &family in &intent.families {
        if draft.claims.is_recreated(uid, family) {
            continue;
        }
        let Build { seats, movers, drafted, .. } = &*build;
        let place = Place { seats, chosen, balancer: build.view(), drafted };
        match frontend::wanted(draft, &intent, family, &place, movers) {
            Wanted::Own(own) => {
                let name = Arc::clone(&own.name);
                ready.push((family, Some(own), name));
            }
            Wanted::Shared(name) => ready.push((family, None, name)),
            Wanted::Wait(wait) => {
                let soon = draft.is_soon_over(&wait);
                if soon {
                    build.coming.insert(uid.clone());
                }
                late |= !soon;
                draft.wait(uid, wait);
                waiting = true;
            }
            Wanted::Refuse(finding) => {
                draft.refuse(uid, *finding);
                return false;
            }
        }
    }
    if let Some(wait) = seat_wait(draft, build) {
        draft.wait(uid, wait);
        return false;
    }
    let room = (before, &build.room);
    if let Some(obstacle) = limit::obstacle(draft, build.view(), &intent, &ready, room) {
        let id = build.view().id.clone();
        match obstacle {
            Obstacle::Refused(refusal) => draft.refuse(uid, refusal),
            Obstacle::Goes => draft.wait(uid, Wait::Resource { id, until: Until::Released }),
        }
        return false;
    }
    if waiting && !late && !build.has_traces(&intent.base) {
        // Both families come in one write; one alone only where the other does not come soon.
        return false;
    }
    let any = !ready.is_empty();
    let stale = |name: &str| !ready.iter().any(|(_, _, wanted)| is_one(wanted, name));
    let leaves = |rule: &str| is_of(rule, &intent.base) && build.leads(rule, stale);
    let link = || {
        let own = build.link_to_lose(&intent.base, stale);
        own.or_else(|| build.inherited_link(draft, &intent.base, leaves))
    };
    if !waiting && let Some(id) = link() {
        // Its parts stay as they are until nothing stands before the frontend that goes.
        draft.wait(uid, Wait::Resource { id, until: Until::Gone });
        return true;
    }
    place(draft, build, &intent, ready, waiting);
    any
}

/// What has to happen before anything is put on a load balancer.
fn seat_wait(draft: &Draft<'_>, build: &Build<'_>) -> Option<Wait> {
    if let Some(basic) = draft.basics.first() {
        // A NIC takes no load balancers of two SKUs.
        return Some(Wait::Resource { id: basic.clone(), until: Until::Gone });
    }
    // Its nodes are, or may be, behind another one: rules to an empty pool would lead nowhere.
    let empty = !build.view().pools.iter().any(|p| !p.addresses.is_empty() || !p.nics.is_empty());
    build.seats.awaited.clone().filter(|_| empty)
}

/// Puts a Service's parts into the body.
fn place(
    draft: &Draft<'_>,
    build: &mut Build<'_>,
    intent: &Intent,
    ready: Vec<(Family, Option<Frontend>, Arc<str>)>,
    waiting: bool,
) {
    let body = &mut build.after;
    let id = body.view().id.clone();
    let base = name::base_number(&intent.base);
    let had = limit::Parts::of(body.view(), base);
    let mut rules: Vec<Rule> = Vec::new();
    let mut probes = Vec::new();
    let mut frontends: Vec<Arc<str>> = Vec::new();
    for (family, own, name) in ready {
        if let Some(own) = own {
            body.put_frontend(own);
        }
        let frontend = id.child("frontendIPConfigurations", &name);
        let pool = id.child("backendAddressPools", &name::pool_of(draft.policy, intent, family));
        let (r, p) = rule::wanted(draft.policy, intent, family, &frontend, &pool, &id);
        rules.extend(r);
        probes.extend(p);
        frontends.push(name);
    }
    // While one family's frontend is not known yet, its parts stay as they are.
    if waiting {
        handover::drop_own_ports(body, &intent.base, &rules);
    } else {
        let own = |name: &str| is_of(name, &intent.base);
        let wants_rule = |name: &str| rules.iter().any(|wanted| is_one(&wanted.name, name));
        let wants_probe = |name: &str| probes.iter().any(|wanted| is_one(&wanted.name, name));
        let view = body.view();
        let stale = view.rules_of(&intent.base).iter().any(|r| !wants_rule(&r.name))
            || view.probes_of(&intent.base).iter().any(|p| !wants_probe(&p.name));
        if stale {
            body.edit(|after| {
                after.rules.retain(|r| !own(&r.name) || wants_rule(&r.name));
                after.probes.retain(|p| !own(&p.name) || wants_probe(&p.name));
            });
        }
    }
    rules.into_iter().for_each(|rule| body.put_rule(rule));
    probes.into_iter().for_each(|probe| body.put_probe(probe));
    if !waiting {
        // Its rules lead elsewhere by now; other Services' may not.
        let view = body.view();
        let stale = |f: &&&Frontend| !frontends.iter().any(|wanted| is_one(wanted, &f.name));
        let own = view.frontends_of(&intent.base);
        let unused = own.iter().filter(stale).filter(|f| !view.is_used(&f.name));
        let unused: BTreeSet<Arc<str>> = unused.map(|f| Arc::clone(&f.name)).collect();
        if !unused.is_empty() {
            body.edit(|after| after.frontends.retain(|f| !unused.contains(&f.name)));
        }
    }
    let has = limit::Parts::of(body.view(), base);
    build.room.change(&intent.name.namespace, had, has);
}

fn drop_unused_shared_probe(balancer: &mut LoadBalancer) {
    let id = balancer.id.child("probes", SHARED_PROBE);
    if !balancer.rules.iter().any(|r| r.probe.as_ref() == Some(&id)) {
        balancer.probes.retain(|p| !is_one(&p.name, SHARED_PROBE));
    }
}

/// Drafts the change from the body as it is to the body as it is to be now.
fn conclude(
    draft: &mut Draft<'_>,
    seats: &Assignment,
    after: LoadBalancer,
    coming: &BTreeSet<ServiceUid>,
) {
    let before = draft.balancer(&after.id).cloned();
    let differs = before.as_deref() != Some(&after);
    let failed = before.as_ref().is_some_and(|b| b.provisioning == Provisioning::Failed);
    if !differs && !failed && !after.frontends.is_empty() {
        return;
    }
    let causes = causes::of(draft, before.as_deref(), &after);
    // A Service that is about to join joins this write rather than asking for one of its own.
    let others = coming.iter().filter(|uid| !causes.contains(*uid)).count();
    let mut waits = Vec::new();
    let lets_go = |b: &Arc<LoadBalancer>| {
        let mut frontends = b.frontends.iter();
        frontends.any(|f| !after.frontends.iter().any(|kept| is_one(&kept.name, &f.name)))
    };
    // Who waits for an address to be let go does not wait for that as well.
    if others > 0 && !before.as_ref().is_some_and(lets_go) {
        waits.push(Wait::Gathering { others });
    }
    let Some(before) = before else {
        if !after.frontends.is_empty() {
            put(draft, None, after, causes, waits);
        }
        return;
    };
    let emptied = after.frontends.is_empty()
        && (!before.frontends.is_empty() || is_shell(draft.policy, &after));
    let keeps = is_preconfigured(draft, seats.exposure) || holds_others(draft, &before, &after);
    if emptied && !keeps && coming.is_empty() {
        // Its name outlives it: one that somebody has made anew is not the one to go.
        let guard = before.etag.clone();
        let delete = Change::delete(Resource::LoadBalancer(before), causes, waits);
        draft.change(Change { guard, ..delete });
    } else if differs || failed {
        put(draft, Some(before), after, causes, waits);
    }
}

fn put(
    draft: &mut Draft<'_>,
    before: Option<Arc<LoadBalancer>>,
    after: LoadBalancer,
    causes: BTreeSet<ServiceUid>,
    waits: Vec<Wait>,
) {
    let (before, after) =
        (before.map(Resource::LoadBalancer), Resource::LoadBalancer(Arc::new(after)));
    draft.change(Change::put(before, after, causes, waits));
}

#[cfg(test)]
mod tests;
