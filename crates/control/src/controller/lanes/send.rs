//! Sends changes, polls and reads as far as the budget reaches.

use super::follow::describe;
use crate::budget::queue::Class;
use crate::budget::{Limit, Refusal, Urgency, Waiting, limit::limits_of};
use crate::calls::Caller;
use crate::controller::Controller;
use crate::effect::{Effect, NoticeKind};
use crate::lanes::lane::{Lane, Outcome, Pending, Stage, Work};
use crate::observers::tally::ResourceKind;
use crate::reads::LIST_LAG_MS;
use crate::request::{self, method};
use crate::trouble::Failure;
use arm::Request;
use arm::operation::Operation;
use model::azure::{FrontendAddress, PrivateLinkService, PublicIp};
use model::obstacle::ObstacleKind;
use model::plan::{Action, Change, Resource, change_of};
use model::report::Wait;
use model::world::Fact;
use model::{Report, ResourceId, ServiceUid, World};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// How often the same write may succeed without effect before it is slowed down.
const FUTILE: u32 = 1;
/// While writes wait for budget, a write that others are about to join waits for them longer: each
/// write of its own takes a call from one of them.
const SCARCE_FACTOR: u64 = 5;
/// Budget comes back a call at a time; so often calls are looked at while they wait for it, for
/// each look may lead to another plan.
const LOOK_MS: u64 = 500;

/// How often a load balancer is read again before it is written, while members of its pools keep
/// changing.
const REREADS: u32 = 3;
/// How often a public IP is: after the first time it shows who uses it.
const REREADS_OF_IP: u32 = 1;

impl Controller {
    /// Sends every change of the plan that waits on nothing, for which the ledger has its notes,
    /// and that no operator has paused.
    pub(crate) fn write_azure(&mut self, now_ms: u64) {
        let changes = std::mem::take(&mut self.planning.plan.changes);
        let open: Vec<(usize, bool)> = self.budget.queue.open().collect();
        let mut ready = Vec::new();
        for (at, clear) in open {
            let held_back = self.is_paused(&changes[at].target) || self.awaits_note(&changes[at]);
            if !held_back && (clear || self.is_due(at, &changes[at], now_ms)) {
                ready.push((at, self.budget.queue.ready(at, now_ms)));
            } else {
                self.budget.queue.unready(at);
            }
        }
        self.send_in_turn(&changes, &ready, now_ms);
        self.clear_lanes(&changes, now_ms);
        self.planning.plan.changes = changes;
    }

    /// Forgets what lanes knew that belongs to no change any more. When a write ended is known for
    /// as long as a list is read that may show the resource as it was before.
    pub(crate) fn clear_lanes(&mut self, changes: &[Arc<Change>], now_ms: u64) {
        let planned = |id: &ResourceId| change_of(changes, id);
        // Until all has been read, what failed or was not kept may only not be planned again yet.
        let read = self.planning.report.needs.is_empty();
        for (id, lane) in &mut self.lanes.all {
            let over = lane.last.is_some() || lane.is_free(now_ms);
            if read && over && lane.work.is_none() && planned(id).is_none() {
                // It is as it is to be, whatever came of the last write: what comes later has
                // nothing to do with it.
                lane.last = None;
                lane.recover();
            }
            if lane.gathering_since_ms.is_some()
                && planned(id).is_none_or(|change| lane.is_free(now_ms) && !change.is_ready())
            {
                lane.gathering_since_ms = None;
            }
        }
        let (interval_ms, asked_ms) = (self.options.check_interval_ms, self.reads.asked_ms());
        let is_recent = |ended_ms: u64| {
            let overtakes = asked_ms.is_some_and(|asked| asked <= ended_ms + LIST_LAG_MS);
            overtakes || ended_ms + interval_ms > now_ms
        };
        self.lanes.all.retain(|id, lane| {
            lane.work.is_some()
                || lane.retry.is_put_off()
                || lane.ended_ms.is_some_and(is_recent)
                || planned(id).is_some()
        });
    }

    /// How long a write waits for others that are about to join it.
    pub(crate) fn gather_ms(&self) -> u64 {
        let factor = if self.budget.queue.is_scarce() { SCARCE_FACTOR } else { 1 };
        self.options.gather_ms * factor
    }

    /// Whether nothing but other writes and the budget keeps a change that waits on nothing hard.
    fn is_due(&mut self, at: usize, change: &Change, now_ms: u64) -> bool {
        let gather_ms = self.gather_ms();
        self.budget.queue.lay(at);
        let lane = self.lanes.all.entry(change.target.clone()).or_default();
        if !lane.is_free(now_ms) {
            return false;
        }
        if !change.waits.is_empty() {
            let since = *lane.gathering_since_ms.get_or_insert(now_ms);
            if now_ms < since + gather_ms {
                return false;
            }
        }
        if self.rereads_first(change, now_ms) {
            return false;
        }
        let lane = self.lanes.all.entry(change.target.clone()).or_default();
        let last = lane.last.as_mut().filter(|last| !last.lost && last.is(&change.action));
        if let Some(last) = last {
            last.lost = true;
            if lane.retry.failures() >= FUTILE {
                lane.retry.failed(None, now_ms);
                let failure = Failure {
                    kind: ObstacleKind::BackedOff,
                    operation: format!(
                        "{} {}",
                        method(&change.action).name(),
                        change.target.short()
                    ),
                    code: "NotKept",
                    message: "Azure acknowledged the write and did not keep it",
                };
                lane.note(failure, &change.causes, now_ms);
                return false;
            }
            lane.retry.count();
        }
        true
    }

    /// Sends as many as the budget and the number of writes at a time let through; the rest keep
    /// their place in line.
    fn send_in_turn(&mut self, changes: &[Arc<Change>], ready: &[(usize, u64)], now_ms: u64) {
        if ready.is_empty() {
            // Whether there is budget shows when something is to be sent. Until then it is as
            // scarce as it was: how long a write waits for others must not hang on who was due.
            self.budget.shares.settle(now_ms);
            return;
        }
        self.budget.queue.begin(now_ms);
        let mut under_way = self.lanes.all.values().filter(|l| l.work.is_some()).count();
        if under_way >= self.options.writes_at_once {
            return;
        }
        // Where there is budget for none of them it does not matter whose turn it is.
        let classes: BTreeSet<usize> =
            ready.iter().filter_map(|(at, _)| self.budget.queue.class_of(*at)).collect();
        if classes.into_iter().filter(|class| self.has_budget(*class, now_ms)).count() == 0 {
            return;
        }
        let mut line =
            self.budget.shares.line_up(changes, ready, &self.world.kubernetes.services, now_ms);
        while let Some((at, flow)) = self.budget.shares.next(&mut line) {
            if under_way >= self.options.writes_at_once {
                break;
            }
            let class = self.budget.queue.class_of(at);
            if !class.is_some_and(|class| self.has_budget(class, now_ms)) {
                continue;
            }
            let change = &changes[at];
            if self.refers_to_a_write(change) {
                continue;
            }
            under_way += 1;
            self.budget.shares.charge(
                &change.causes,
                flow,
                &line,
                &self.world.kubernetes.services,
                now_ms,
            );
            self.budget.queue.unready(at);
            self.budget.queue.lay(at);
            self.send(Change::clone(change), now_ms);
        }
    }

    /// Whether something that the body refers to is being written: Azure refuses a reference to
    /// what is not in Succeeded state (ReferencedResourceNotProvisioned). Its answer comes first.
    fn refers_to_a_write(&self, change: &Change) -> bool {
        let is_written = |id: &ResourceId| self.lanes.all.get(id).is_some_and(|l| l.work.is_some());
        let leads = |link: &PrivateLinkService| {
            let balancers = link.frontends.iter().filter_map(ResourceId::parent);
            balancers.into_iter().any(|balancer| is_written(&balancer))
        };
        match &change.action {
            Action::Put { after: Resource::LoadBalancer(after), .. } => {
                after.frontends.iter().any(|frontend| match &frontend.address {
                    FrontendAddress::Public(ip) => is_written(ip),
                    _ => false,
                })
            }
            Action::Put { after: Resource::PrivateLinkService(after), .. } => leads(after),
            // Deleting a connection is a write of its Private Link Service.
            Action::DeleteChild => {
                let link = change.target.parent();
                let held = self.world.azure.private_links.values().filter_map(Fact::known);
                let mut links = held.filter_map(|links| links.get(link.as_ref()?));
                links.any(|link| leads(link))
            }
            _ => false,
        }
    }

    /// Whether a change of this class may be sent; else it is noted when to look again.
    fn has_budget(&mut self, class: usize, now_ms: u64) -> bool {
        if self.budget.queue.is_refused(class) {
            return false;
        }
        let Some(Class { limits, urgency }) = self.budget.queue.class(class) else { return false };
        match self.budget.limits.ask(limits, *urgency, now_ms) {
            Ok(()) => true,
            Err(refusal) => {
                self.budget.queue.refuse(class, refusal.ready_ms.max(now_ms + LOOK_MS));
                false
            }
        }
    }

    /// What each write that waits for budget waits for, and when it is its turn, as far as can be
    /// told; in the order of their turns.
    fn budget_waits(&self) -> Vec<(usize, Refusal)> {
        let (changes, now_ms) = (&self.planning.plan.changes, self.budget.queue.looked_ms);
        let mut budget = self.budget.limits.clone();
        let services = &self.world.kubernetes.services;
        let mut line =
            self.budget.shares.line_up(changes, &self.budget.queue.kept(), services, now_ms);
        let mut ahead: BTreeMap<Limit, u64> = BTreeMap::new();
        let mut waits = Vec::new();
        while let Some((at, _)) = self.budget.shares.next(&mut line) {
            let class = self.budget.queue.class_at(at);
            let Some(Class { limits, urgency }) = class else { continue };
            let Err(refusal) = budget.ask(limits, *urgency, now_ms) else { continue };
            let before = ahead.entry(refusal.limit.clone()).or_default();
            *before += 1;
            let turn_ms = budget.ready_ms(limits, *before, *urgency, now_ms);
            let ready_ms = refusal.ready_ms.max(turn_ms);
            waits.push((at, Refusal { ready_ms, ..refusal }));
        }
        waits
    }

    /// The report that belongs to the plan, and for each Service the writes for it that wait for
    /// budget.
    #[must_use]
    pub fn report_with_budget(&self) -> Report {
        let mut report = self.planning.report.clone();
        let mut waits = self.budget_waits();
        waits.sort_by_key(|(at, _)| *at);
        for (at, Refusal { limit, ready_ms }) in waits {
            let wait = Wait::Budget { limit: limit.kind.name(), until_ms: ready_ms };
            for uid in &self.planning.plan.changes[at].causes {
                if let Some(service) = report.services.get_mut(uid) {
                    Arc::make_mut(service).waits.push(wait.clone());
                }
            }
        }
        report
    }

    /// Writes that wait for budget, by the limit that has no room.
    #[must_use]
    pub fn waiting_for_budget(&self) -> BTreeMap<Limit, Waiting> {
        let mut all: BTreeMap<Limit, Waiting> = BTreeMap::new();
        for (_, wait) in self.budget_waits() {
            let waiting = all.entry(wait.limit).or_default();
            waiting.writes += 1;
            waiting.until_ms = waiting.until_ms.max(wait.ready_ms);
        }
        all
    }

    fn send(&mut self, change: Change, now_ms: u64) {
        let correlation = self.correlation();
        let request = request::of_change(self.contract(), &change, correlation.clone());
        let method = request.method.name();
        self.record_sent(&change, &request, now_ms);
        let text = format!("{method} {}", describe(&change));
        self.say(now_ms, NoticeKind::Sent, &change.causes, text, Some(correlation.clone()));
        let operation = Operation::start(&request);
        self.request(Caller::Lane(change.target.clone()), request, now_ms);
        let table = self.world.azure.gateway_locations.known().map(AsRef::as_ref);
        let addresses = match &change.action {
            Action::UpdateLocations(update) => Arc::new(update.touched(table)),
            Action::Put { after: Resource::LoadBalancer(after), .. } => {
                Arc::new(plan::pooled(&self.policy, after))
            }
            _ => Arc::default(),
        };
        self.observers.tally.write_sent(&change.target, change.causes.len(), addresses.len());
        self.observers.latencies.sent(&change, &addresses);
        let set_aside = |uid: &&ServiceUid| self.world.holds.contains_key(*uid);
        let held = change.causes.iter().filter(set_aside).cloned().collect();
        let lane = self.lanes.all.entry(change.target.clone()).or_default();
        lane.gathering_since_ms = None;
        lane.retry.resume();
        lane.work = Some(Work {
            change,
            correlation,
            stage: Stage::Operating(Box::new(operation)),
            pending: Pending::Answer,
            sent_ms: now_ms,
            addresses,
            held,
        });
    }

    /// Whether a resource is read again before it is written, because it has another ETag than
    /// when it was read: a load balancer if its pools have other members since, a public IP if
    /// another frontend uses it.
    fn rereads_first(&mut self, change: &Change, now_ms: u64) -> bool {
        let (is_old, most) = match &change.action {
            Action::Put { before: Some(Resource::LoadBalancer(_)), .. }
            | Action::Delete { before: Resource::LoadBalancer(_) } => {
                let shown = self.lanes.all.get(&change.target).map_or(0, |lane| lane.members_shown);
                (shown != self.lanes.member_writes, REREADS)
            }
            Action::Put { before: Some(Resource::PublicIp(ip)), .. } => {
                (is_used_otherwise(&self.world, ip), REREADS_OF_IP)
            }
            _ => return false,
        };
        let lane = self.lanes.all.entry(change.target.clone()).or_default();
        if !is_old || lane.rereads >= most {
            lane.rereads = 0;
            return false;
        }
        lane.rereads += 1;
        lane.members_shown = self.lanes.member_writes;
        let correlation = self.correlation();
        let request = request::of_read(self.contract(), &change.target, correlation.clone());
        let lane = self.lanes.all.entry(change.target.clone()).or_default();
        lane.work = Some(Work {
            change: change.clone(),
            correlation,
            stage: Stage::Rereading(Outcome::Not),
            pending: Pending::Answer,
            sent_ms: now_ms,
            addresses: Arc::default(),
            held: BTreeSet::new(),
        });
        self.call_lane(&change.target, request, now_ms);
        true
    }

    pub(crate) fn request(&mut self, caller: Caller, request: Request, now_ms: u64) {
        if request.method.is_write() {
            self.observers.counts.writes += 1;
        } else {
            self.observers.counts.reads += 1;
        }
        let read = if request.method.is_write() { None } else { kind_of(&caller) };
        let call = self.calls.begin(caller);
        if let Some(kind) = read {
            self.observers.tally.read_sent(call, kind);
        }
        self.budget.limits.take(call, &request, now_ms);
        self.calls.effects.push(Effect::Azure { call, request });
    }

    /// Polls that are due are sent, and waits that are over end. Where there is not enough budget
    /// for all polls, those that many Services wait for come first, then the one that is due for
    /// longest.
    pub(crate) fn wake_lanes(&mut self, now_ms: u64) {
        let due = self.lanes.all.iter().filter(|(_, l)| l.wake_ms().is_some_and(|at| at <= now_ms));
        let mut due: Vec<(Reverse<Urgency>, u64, ResourceId)> =
            due.map(|(id, l)| (Reverse(urgency(l)), l.due_ms(), id.clone())).collect();
        due.sort_unstable();
        for (_, _, id) in due {
            self.wake_lane(&id, now_ms);
        }
    }

    /// A poll is due, or a wait is over.
    pub(crate) fn wake_lane(&mut self, id: &ResourceId, now_ms: u64) {
        let Some(lane) = self.lanes.all.get_mut(id) else { return };
        let urgency = urgency(lane);
        let Some(work) = &mut lane.work else {
            lane.retry.resume();
            self.planning.dirty = true;
            return;
        };
        let Pending::Poll { request, at_ms, held_ms } = &mut work.pending else { return };
        if *at_ms > now_ms {
            return;
        }
        match self.budget.limits.ask(&limits_of(request), urgency, now_ms) {
            Err(refusal) => *held_ms = refusal.ready_ms.max(now_ms + LOOK_MS),
            Ok(()) => {
                let request = request.clone();
                work.pending = Pending::Answer;
                self.request(Caller::Lane(id.clone()), request, now_ms);
            }
        }
    }

    /// Sends a read that belongs to a write under way, as soon as there is budget.
    pub(crate) fn call_lane(&mut self, id: &ResourceId, request: Request, now_ms: u64) {
        if let Some(work) = self.lanes.all.get_mut(id).and_then(|l| l.work.as_mut()) {
            work.pending = Pending::Poll { request, at_ms: now_ms, held_ms: 0 };
        }
        self.wake_lane(id, now_ms);
    }
}

/// How much a lane's calls are worth.
fn urgency(lane: &Lane) -> Urgency {
    lane.work.as_ref().map_or(Urgency::Urgent, |work| Urgency::of(&work.change.causes))
}

/// What a caller wants to know of Azure.
fn kind_of(caller: &Caller) -> Option<ResourceKind> {
    match caller {
        Caller::Lane(id) => Some(ResourceKind::of_id(id)),
        Caller::Read(need) => Some(ResourceKind::of_need(need)),
        Caller::Object(_) | Caller::Ledger(_) | Caller::Event => None,
    }
}

/// Whether load balancers, which were read later, use a public IP in another way than it shows.
fn is_used_otherwise(world: &World, ip: &PublicIp) -> bool {
    let Some(balancers) = world.azure.balancers.known() else { return false };
    let address = FrontendAddress::Public(ip.id.clone());
    let user = balancers.values().find_map(|balancer| {
        let frontend = balancer.frontends.iter().find(|f| f.address == address)?;
        Some(balancer.id.child("frontendIPConfigurations", &frontend.name))
    });
    // What else may use it, as a NAT gateway, is not among them.
    let shown = ip.user.as_ref().filter(|user| {
        user.parent().is_some_and(|parent| parent.folded().contains("/loadbalancers/"))
    });
    user.as_ref() != shown
}
