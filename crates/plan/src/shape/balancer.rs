//! Load balancers of nodes: every Service's parts on one become one body.

use super::frontend::{self, Place, Wanted};
use super::private_link::{self, Linked};
use super::public_ip::Chosen;
use super::{pool, rule, unserved};
use crate::ask::{Intent, SHARED_PROBE};
use crate::claim::placement::Assignment;
use crate::claim::{contest, limit};
use crate::draft::{Draft, Traces};
use crate::order::moving::Mover;
use crate::order::{bridge, shell};
use crate::own::name::{self, is_of};
use crate::own::tags;
use model::azure::{Frontend, LoadBalancer, Provisioning, Rest, Rule, Sku};
use model::plan::{Action, Change, Resource};
use model::policy::BalancerSku;
use model::report::{Until, Wait};
use model::{Family, ResourceId, ServiceUid};
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

/// A load balancer while it is edited.
struct Build<'a> {
    seats: &'a Assignment,
    after: LoadBalancer,
    /// Services that are about to be ready to join.
    coming: BTreeSet<ServiceUid>,
    /// Frontends with a Private Link Service, which have to lose it before they go.
    linked: Linked,
    room: limit::Room,
    /// Private addresses on the way, once they are asked for.
    movers: OnceCell<Vec<Mover>>,
}

impl Build<'_> {
    /// The Private Link Service before a frontend.
    fn link(&self, frontend: &str) -> Option<&ResourceId> {
        self.linked.get(&self.after.id.child("frontendIPConfigurations", frontend))
    }

    /// Whether anything refers to a frontend.
    fn is_held(&self, frontend: &str) -> bool {
        is_used(&self.after, frontend) || self.link(frontend).is_some()
    }

    /// What stands before a frontend of this base name that goes and that no other Service's
    /// rules lead to.
    fn link_to_lose(&self, base: &str, goes: impl Fn(&str) -> bool) -> Option<ResourceId> {
        if self.linked.is_empty() {
            return None;
        }
        let own = self.after.frontends.iter().filter(|f| is_of(&f.name, base) && goes(&f.name));
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
        let after = &self.after;
        let linked = after.frontends.iter();
        let mut linked = linked.filter(|f| contest::is_inherited(draft, self.seats, &f.name));
        linked.find_map(|frontend| {
            let id = after.id.child("frontendIPConfigurations", &frontend.name);
            let rules = || after.rules.iter().filter(|r| r.frontend.as_ref() == Some(&id));
            let goes = rules().any(|r| is_of(&r.name, base)) && rules().all(|r| leaves(&r.name));
            self.link(&frontend.name).filter(|_| goes).cloned()
        })
    }

    /// Whether a rule leads to a frontend of such a name.
    fn leads(&self, rule: &str, to: impl Fn(&str) -> bool) -> bool {
        let rule = self.after.rules.iter().find(|r| same(&r.name, rule));
        rule.and_then(|r| r.frontend.as_ref()).is_some_and(|id| to(id.name()))
    }

    /// Whether rules that are not of this base name lead to a frontend.
    fn is_shared(&self, frontend: &str, base: &str) -> bool {
        let id = self.after.id.child("frontendIPConfigurations", frontend);
        let mut others = self.after.rules.iter().filter(|r| !is_of(&r.name, base));
        others.any(|r| r.frontend.as_ref() == Some(&id))
            || self.after.foreign.iter().any(|f| f.frontends.contains(&id))
    }

    /// Whether anything is left of this base name but frontends that others stay on.
    fn has_traces(&self, base: &str) -> bool {
        let own = |name: &str| is_of(name, base);
        let balancer = &self.after;
        balancer.rules.iter().any(|r| own(&r.name))
            || balancer.probes.iter().any(|p| own(&p.name))
            || balancer.frontends.iter().any(|f| own(&f.name) && !self.is_shared(&f.name, base))
    }
}

/// Edits one load balancer and drafts the change, if any.
pub(crate) fn plan(
    draft: &mut Draft<'_>,
    id: &ResourceId,
    seats: &Assignment,
    chosen: &Chosen,
    open: &BTreeSet<IpAddr>,
) {
    let before = draft.balancers().and_then(|all| all.get(id)).cloned();
    let after = before.as_deref().cloned().unwrap_or_else(|| fresh(draft, id));
    let (linked, room) = (private_link::linked(draft), limit::Room::default());
    let (coming, movers) = (BTreeSet::new(), OnceCell::new());
    let mut build = Build { seats, after, coming, linked, room, movers };
    clear(draft, &mut build, open);
    build.room = limit::Room::of(draft, &build.after, before.as_deref());
    let mut seated = Vec::new();
    for uid in build.room.turns(draft, id, &seats.services) {
        if seat(draft, &mut build, &uid, chosen, before.as_deref()) {
            seated.push(uid);
        }
    }
    if let Some(before) = &before {
        contest::settle(draft, before, &mut build.after);
        contest::drop_inherited(draft, seats, open, before, &mut build.after);
    }
    contest::drop_lost_ports(draft, &mut build.after);
    drop_unused_shared_probe(&mut build.after);
    if let Some(before) = &before {
        pool::drop_unused(draft, before, &mut build.after);
    }
    let ours = !seated.is_empty() || before.as_deref().is_some_and(|b| has_owned(draft, b));
    if ours && !draft.basics.contains(id) {
        let ways = bridge::transition_pools(draft, &build.after, seats);
        let draining = pool::ensure(draft, &mut build.after, seats, &seated);
        draft.draining.get_or_insert_default().extend(draining);
        bridge::lead(draft, &mut build.after, seats, ways);
        unserved::note(draft, &build.after, seats, &seated);
        let nodes = pool::count(seats);
        draft.findings.extend(limit::crowded(draft, &build.after, nodes));
        let none = BTreeMap::new();
        build.after.tags = tags::merged(build.after.tags.as_ref(), draft.policy, &none, &[]);
    }
    conclude(draft, before, build);
}

fn has_owned(draft: &Draft<'_>, balancer: &LoadBalancer) -> bool {
    balancer.frontends.iter().any(|f| draft.owner_of(&f.name).is_some())
}

fn fresh(draft: &Draft<'_>, id: &ResourceId) -> LoadBalancer {
    let policy = draft.policy;
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

/// What is to become of a part, by its name.
enum Fate {
    /// It stays as it is, or its Service's seat decides.
    Stays,
    /// It goes.
    Goes(Option<ServiceUid>),
}

fn fate(draft: &Draft<'_>, seats: &Assignment, part: &str) -> Fate {
    match draft.owner_of(part) {
        Some(uid) if contest::leaves(draft, seats, uid) => Fate::Goes(Some(uid.clone())),
        None if draft.is_orphaned(part) => Fate::Goes(None),
        Some(_) | None => Fate::Stays,
    }
}

/// Takes out what belongs to Services that leave; a frontend whose address is still open in the
/// security group stays until it is closed.
fn clear(draft: &mut Draft<'_>, build: &mut Build<'_>, open: &BTreeSet<IpAddr>) {
    let mut leaving: BTreeMap<String, Option<ServiceUid>> = BTreeMap::new();
    let balancer = &build.after;
    let names = balancer.frontends.iter().map(|f| &f.name);
    let names = names.chain(balancer.rules.iter().map(|r| &r.name));
    for part in names.chain(balancer.probes.iter().map(|p| &p.name)) {
        if let Fate::Goes(uid) = fate(draft, build.seats, part)
            && let Some(base) = name::base_of(part)
        {
            leaving.insert(base.to_lowercase(), uid);
        }
    }
    let mut gone = BTreeSet::new();
    let bases: BTreeSet<String> = leaving.keys().cloned().collect();
    let leaves =
        |rule: &str| name::base_of(rule).is_some_and(|base| bases.contains(&base.to_lowercase()));
    for (base, uid) in leaving {
        let own = |name: &str| is_of(name, &base);
        let after = &build.after;
        let led = |f: &Frontend| {
            let id = after.id.child("frontendIPConfigurations", &f.name);
            let mut rules = after.rules.iter().filter(|r| own(&r.name));
            contest::is_inherited(draft, build.seats, &f.name)
                && rules.any(|r| r.frontend.as_ref() == Some(&id))
        };
        let mut held = after.frontends.iter().filter(|f| own(&f.name) || led(f));
        let held = held
            .find_map(|f| frontend::address_of(draft, f).filter(|address| open.contains(address)));
        if build.has_traces(&base)
            && let Some(case) = uid.as_ref().and_then(|uid| draft.cases.get_mut(uid))
        {
            case.traces = Traces::Some;
        }
        if held.is_some() {
            let id = draft.policy.security_group_id();
            let wait = Wait::Resource { id, until: Until::Released };
            if let Some(uid) = &uid {
                draft.wait(uid, wait);
            }
        } else if let Some(link) = build
            .link_to_lose(&base, |_| true)
            .or_else(|| build.inherited_link(draft, &base, leaves))
        {
            if let Some(uid) = &uid {
                draft.wait(uid, Wait::Resource { id: link, until: Until::Gone });
            }
        } else {
            gone.insert(base);
        }
    }
    let of_gone =
        |name: &str| name::base_of(name).is_some_and(|base| gone.contains(&base.to_lowercase()));
    build.after.rules.retain(|r| !of_gone(&r.name));
    build.after.probes.retain(|p| !of_gone(&p.name));
    let used: Vec<bool> = build.after.frontends.iter().map(|f| build.is_held(&f.name)).collect();
    let mut used = used.into_iter();
    build.after.frontends.retain(|f| used.next().unwrap_or(true) || !of_gone(&f.name));
}

/// Whether any rule left on the load balancer refers to this frontend.
fn is_used(balancer: &LoadBalancer, frontend: &str) -> bool {
    let id = balancer.id.child("frontendIPConfigurations", frontend);
    balancer.rules.iter().any(|r| r.frontend.as_ref() == Some(&id))
        || balancer.foreign.iter().any(|f| f.frontends.contains(&id))
}

/// Gives one Service its frontends, rules and probes. Whether it has any now.
fn seat(
    draft: &mut Draft<'_>,
    build: &mut Build<'_>,
    uid: &ServiceUid,
    chosen: &Chosen,
    before: Option<&LoadBalancer>,
) -> bool {
    let Some(intent) = draft.cases[uid].shared_intent() else { return false };
    if !crate::tell::kubernetes::is_claimed(draft.policy, draft.cases[uid].service) {
        draft.wait(uid, Wait::Finalizer);
        build.coming.insert(uid.clone());
        return false;
    }
    let mut ready: Vec<(Family, Option<Frontend>, Arc<str>)> = Vec::new();
    let (mut waiting, mut late) = (false, false);
    for &family in &intent.families {
        let Build { seats, after, movers, .. } = &*build;
        let place = Place { seats, chosen, balancer: after, movers };
        match frontend::wanted(draft, &intent, family, &place) {
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
    if let Some(finding) = limit::obstacle(draft, &build.after, &intent, &ready, room) {
        draft.refuse(uid, finding);
        return false;
    }
    if waiting && !late && !build.has_traces(&intent.base) {
        // Both families come in one write; one alone only where the other does not come soon.
        return false;
    }
    let any = !ready.is_empty();
    let stale = |name: &str| !ready.iter().any(|(_, _, wanted)| same(wanted, name));
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
    // Its nodes are still behind another one: rules to an empty pool would serve nobody.
    let empty = !build.after.pools.iter().any(|p| !p.addresses.is_empty() || !p.nics.is_empty());
    let id = build.seats.awaited.clone().filter(|_| empty)?;
    Some(Wait::Resource { id, until: Until::Released })
}

/// Puts a Service's parts into the body.
fn place(
    draft: &Draft<'_>,
    build: &mut Build<'_>,
    intent: &Intent,
    ready: Vec<(Family, Option<Frontend>, Arc<str>)>,
    waiting: bool,
) {
    let balancer = &mut build.after;
    let mut rules: Vec<Rule> = Vec::new();
    let mut probes = Vec::new();
    let mut frontends: BTreeSet<String> = BTreeSet::new();
    for (family, own, name) in ready {
        frontends.insert(name.to_lowercase());
        if let Some(own) = own {
            match balancer.frontends.iter_mut().find(|f| f.name == own.name) {
                Some(there) => *there = own,
                None => balancer.frontends.push(own),
            }
        }
        let frontend = balancer.id.child("frontendIPConfigurations", &name);
        let pool_name = pool::of(draft.policy, intent, family);
        let pool = balancer.id.child("backendAddressPools", &pool_name);
        let (r, p) = rule::wanted(draft.policy, intent, family, &frontend, &pool, &balancer.id);
        rules.extend(r);
        probes.extend(p);
    }
    // While one family's frontend is not known yet, its parts stay as they are.
    if !waiting {
        let own = |name: &str| is_of(name, &intent.base);
        balancer.rules.retain(|r| !own(&r.name) || rules.iter().any(|w| same(&w.name, &r.name)));
        balancer.probes.retain(|p| !own(&p.name) || probes.iter().any(|w| same(&w.name, &p.name)));
    }
    for rule in rules {
        rule::ensure_rule(&mut balancer.rules, rule);
    }
    for probe in probes {
        rule::ensure_probe(&mut balancer.probes, probe);
    }
    if !waiting {
        // Its rules lead elsewhere by now; other Services' may not.
        let stays = |f: &Frontend| {
            let stale = is_of(&f.name, &intent.base) && !frontends.contains(&f.name.to_lowercase());
            !stale || is_used(balancer, &f.name)
        };
        let stays: Vec<bool> = balancer.frontends.iter().map(stays).collect();
        let mut stays = stays.into_iter();
        balancer.frontends.retain(|_| stays.next().unwrap_or(true));
    }
    build.room.change(intent, balancer);
}

fn same(a: &str, b: &str) -> bool {
    a.eq_ignore_ascii_case(b)
}

fn drop_unused_shared_probe(balancer: &mut LoadBalancer) {
    let id = balancer.id.child("probes", SHARED_PROBE);
    if !balancer.rules.iter().any(|r| r.probe.as_ref() == Some(&id)) {
        balancer.probes.retain(|p| !same(&p.name, SHARED_PROBE));
    }
}

/// Services whose parts differ between two bodies.
fn causes(
    draft: &Draft<'_>,
    before: Option<&LoadBalancer>,
    after: &LoadBalancer,
) -> BTreeSet<ServiceUid> {
    let before = before.map(parts).unwrap_or_default();
    let after = parts(after);
    let bases: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    bases
        .into_iter()
        .filter(|base| before.get(*base) != after.get(*base))
        .filter_map(|base| draft.by_base.get(base).cloned())
        .collect()
}

type Parts<'a> = (Vec<&'a Frontend>, Vec<&'a Rule>, Vec<&'a model::azure::Probe>);

fn parts(balancer: &LoadBalancer) -> BTreeMap<String, Parts<'_>> {
    let mut parts: BTreeMap<String, Parts<'_>> = BTreeMap::new();
    let base = |name: &str| name::base_of(name).map(str::to_lowercase);
    for frontend in &balancer.frontends {
        if let Some(base) = base(&frontend.name) {
            parts.entry(base).or_default().0.push(frontend);
        }
    }
    for rule in &balancer.rules {
        if let Some(base) = base(&rule.name) {
            parts.entry(base).or_default().1.push(rule);
        }
    }
    for probe in &balancer.probes {
        if let Some(base) = base(&probe.name) {
            parts.entry(base).or_default().2.push(probe);
        }
    }
    parts
}

/// Drafts the change from the body as it is to the body as it is to be now.
fn conclude(draft: &mut Draft<'_>, before: Option<Arc<LoadBalancer>>, build: Build<'_>) {
    let Build { seats, after, coming, .. } = build;
    let causes = causes(draft, before.as_deref(), &after);
    // A Service that is about to join joins this write rather than asking for one of its own.
    let others = coming.iter().filter(|uid| !causes.contains(*uid)).count();
    let mut waits = Vec::new();
    let lets_go = |b: &Arc<LoadBalancer>| {
        let mut frontends = b.frontends.iter();
        frontends.any(|f| !after.frontends.iter().any(|kept| same(&kept.name, &f.name)))
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
        && (!before.frontends.is_empty()
            || shell::is_shell(draft, &before)
            || shell::lays_bare(&before, &after));
    let keeps = pool::is_preconfigured(draft, seats.exposure) || !after.foreign.is_empty();
    if emptied && !keeps && coming.is_empty() {
        // Its name outlives it: one that somebody has made anew is not the one to go.
        let guard = before.etag.clone();
        let before = Resource::LoadBalancer(before);
        let target = before.id().clone();
        let action = Action::Delete { before };
        draft.change(Change { target, action, guard, causes, waits });
    } else if *before != after || before.provisioning == Provisioning::Failed {
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
    draft.change(Change {
        target: after.id.clone(),
        guard: before.as_ref().and_then(|b| b.etag.clone()),
        action: Action::Put {
            before: before.map(Resource::LoadBalancer),
            after: Resource::LoadBalancer(Arc::new(after)),
        },
        causes,
        waits,
    });
}
