//! Sends changes, polls and reads as far as the budget reaches.

use crate::azure_writes::describe;
use crate::backoff;
use crate::budget::limit::limits_of_path;
use crate::budget::{Limit, Urgency, Waiting, limit::limits_of};
use crate::controller::{Caller, Controller};
use crate::effect::{Effect, NoticeKind};
use crate::lane::{Pending, Stage, Work};
use crate::request;
use crate::shares::Line;
use arm::operation::Operation;
use arm::{Method, Request};
use model::azure::{FrontendAddress, PublicIp};
use model::plan::{Action, Change, Resource};
use model::report::Wait;
use model::{ResourceId, World};
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

/// Writes that could be sent but for the budget.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    /// What each waits for.
    pub waits: BTreeMap<ResourceId, BudgetWait>,
    /// When there is budget for the first of them.
    pub wake_ms: Option<u64>,
}

/// Why a write waits for budget.
#[derive(Clone, Debug)]
pub(crate) struct BudgetWait {
    /// The limit without room.
    pub limit: Limit,
    /// When it is its turn, as far as can be told.
    pub until_ms: u64,
}

/// How often a public IP is: after the first time it shows who uses it.
const REREADS_OF_IP: u32 = 1;

impl Controller {
    /// Sends every change of the plan that waits on nothing.
    pub(crate) fn write_azure(&mut self, now_ms: u64) {
        let changes = std::mem::take(&mut self.plan.changes);
        let asked: BTreeSet<ResourceId> = changes.iter().map(|c| c.target.clone()).collect();
        let mut ready = Vec::new();
        for (at, change) in changes.iter().enumerate() {
            if self.is_due(change, now_ms) {
                ready.push(at);
            } else if let Some(lane) = self.lanes.get_mut(&change.target) {
                lane.ready_since_ms = None;
            }
        }
        self.send_in_turn(&changes, &ready, now_ms);
        self.show_waits(&changes);
        self.plan.changes = changes;
        for (id, lane) in &mut self.lanes {
            if !asked.contains(id) {
                lane.gathering_since_ms = None;
                lane.ready_since_ms = None;
            }
        }
        self.lanes.retain(|id, lane| {
            lane.work.is_some()
                || lane.wait_until_ms.is_some()
                || lane.ended_ms.is_some_and(|at| at + self.options.check_interval_ms > now_ms)
                || asked.contains(id)
        });
    }

    /// How long a write waits for others that are about to join it.
    pub(crate) fn gather_ms(&self) -> u64 {
        let factor = if self.queue.waits.is_empty() { 1 } else { SCARCE_FACTOR };
        self.options.gather_ms * factor
    }

    /// Whether nothing but other writes and the budget keeps a change.
    fn is_due(&mut self, change: &Change, now_ms: u64) -> bool {
        let gather_ms = self.gather_ms();
        let lane = self.lanes.entry(change.target.clone()).or_default();
        if !lane.is_free(now_ms) {
            return false;
        }
        let hard = change.waits.iter().any(|w| !matches!(w, Wait::Gathering { .. }));
        if hard {
            lane.gathering_since_ms = None;
            return false;
        }
        if !change.waits.is_empty() {
            let since = *lane.gathering_since_ms.get_or_insert(now_ms);
            if now_ms < since + gather_ms {
                return false;
            }
        }
        let again = lane.last.as_ref() == Some(&change.action);
        if self.rereads_first(change, now_ms) {
            return false;
        }
        let lane = self.lanes.entry(change.target.clone()).or_default();
        if again {
            // It was acknowledged before, and Azure still is as it was.
            lane.failures += 1;
            lane.last = None;
            if lane.failures > FUTILE {
                lane.wait_until_ms = Some(now_ms + backoff::after(lane.failures, None));
                lane.reason = Some(Arc::from("Azure acknowledged the write and did not keep it"));
                return false;
            }
        }
        true
    }

    /// Sends as many as the budget and the number of writes at a time let through; the rest keep
    /// their place in line.
    fn send_in_turn(&mut self, changes: &[Change], ready: &[usize], now_ms: u64) {
        let mut since = BTreeMap::new();
        for at in ready {
            let target = &changes[*at].target;
            let lane = self.lanes.entry(target.clone()).or_default();
            since.insert(target, *lane.ready_since_ms.get_or_insert(now_ms));
        }
        let mut under_way = self.lanes.values().filter(|l| l.work.is_some()).count();
        let mut line = self.shares.line_up(changes, ready, &since, now_ms);
        self.queue = Queue::default();
        let mut ahead: BTreeMap<Limit, u64> = BTreeMap::new();
        while let Some((at, flow)) = self.shares.next(&mut line) {
            let change = &changes[at];
            if under_way >= self.options.writes_at_once {
                break;
            }
            if !self.has_budget(change, &mut ahead, now_ms) {
                continue;
            }
            under_way += 1;
            self.shares.charge(&change.causes, flow, now_ms);
            self.level_shares(&line);
            self.send(change.clone(), now_ms);
        }
        if ready.is_empty() {
            self.shares.settle(now_ms);
        }
    }

    fn level_shares(&mut self, line: &Line) {
        if !line.is_contested() {
            self.shares.level();
        }
    }

    /// Whether a change may be sent; else it is noted what it waits for.
    fn has_budget(
        &mut self,
        change: &Change,
        ahead: &mut BTreeMap<Limit, u64>,
        now_ms: u64,
    ) -> bool {
        let limits = limits_of_path(method(&change.action), change.target.as_str());
        // What only one Service needs leaves a little for what many need.
        let urgency = if change.causes.len() == 1 { Urgency::Normal } else { Urgency::Urgent };
        let Err(refusal) = self.budget.ask(&limits, urgency, now_ms) else { return true };
        let before = ahead.entry(refusal.limit.clone()).or_default();
        *before += 1;
        let turn_ms = self.budget.ready_ms(&limits, *before, urgency, now_ms);
        let until_ms = refusal.ready_ms.max(turn_ms);
        let wake_ms = refusal.ready_ms.max(now_ms + LOOK_MS);
        let wake_ms = self.queue.wake_ms.map_or(wake_ms, |at| at.min(wake_ms));
        self.queue.wake_ms = Some(wake_ms);
        let wait = BudgetWait { limit: refusal.limit, until_ms };
        self.queue.waits.insert(change.target.clone(), wait);
        false
    }

    /// Tells each Service that a write for it waits for budget.
    fn show_waits(&mut self, changes: &[Change]) {
        let is_old = |wait: &Wait| matches!(wait, Wait::Budget { .. });
        // Reports are shared with planning: only one that changes is made anew.
        for service in self.report.services.values_mut().filter(|s| s.waits.iter().any(is_old)) {
            Arc::make_mut(service).waits.retain(|wait| !is_old(wait));
        }
        if self.queue.waits.is_empty() {
            return;
        }
        for change in changes {
            let Some(wait) = self.queue.waits.get(&change.target) else { continue };
            let wait = Wait::Budget { limit: wait.limit.kind.name(), until_ms: wait.until_ms };
            for uid in &change.causes {
                if let Some(service) = self.report.services.get_mut(uid) {
                    Arc::make_mut(service).waits.push(wait.clone());
                }
            }
        }
    }

    /// Writes that wait for budget, by the limit that has no room.
    #[must_use]
    pub fn waiting_for_budget(&self) -> BTreeMap<Limit, Waiting> {
        let mut all: BTreeMap<Limit, Waiting> = BTreeMap::new();
        for wait in self.queue.waits.values() {
            let waiting = all.entry(wait.limit.clone()).or_default();
            waiting.writes += 1;
            waiting.until_ms = waiting.until_ms.max(wait.until_ms);
        }
        all
    }

    fn send(&mut self, change: Change, now_ms: u64) {
        let correlation = self.correlation();
        let request = request::of_change(&change, correlation.clone());
        let text = format!("{} {}", request.method.name(), describe(&change));
        self.say(now_ms, NoticeKind::Sent, &change.causes, text, Some(correlation.clone()));
        let operation = Operation::start(&request);
        self.request(Caller::Lane(change.target.clone()), request, now_ms);
        let table = self.world.azure.gateway_locations.known().map(AsRef::as_ref);
        let addresses = match &change.action {
            Action::UpdateLocations(update) => Arc::new(update.touched(table)),
            _ => Arc::default(),
        };
        self.tally.write_sent(&change.target, change.causes.len(), addresses.len());
        self.latencies.sent(&change, &addresses);
        let lane = self.lanes.entry(change.target.clone()).or_default();
        lane.gathering_since_ms = None;
        lane.ready_since_ms = None;
        lane.wait_until_ms = None;
        lane.work = Some(Work {
            change,
            correlation,
            stage: Stage::Operating(Box::new(operation)),
            pending: Pending::Answer,
            sent_ms: now_ms,
            addresses,
        });
    }

    /// Whether a resource is read again before it is written, because it has another ETag than
    /// when it was read: a load balancer if its pools have other members since, a public IP if
    /// another frontend uses it.
    fn rereads_first(&mut self, change: &Change, now_ms: u64) -> bool {
        let (is_old, most) = match &change.action {
            Action::Put { before: Some(Resource::LoadBalancer(_)), .. }
            | Action::Delete { before: Resource::LoadBalancer(_) } => {
                let shown = self.lanes.get(&change.target).map_or(0, |lane| lane.members_shown);
                (shown != self.member_writes, REREADS)
            }
            Action::Put { before: Some(Resource::PublicIp(ip)), .. } => {
                (is_used_otherwise(&self.world, ip), REREADS_OF_IP)
            }
            _ => return false,
        };
        let lane = self.lanes.entry(change.target.clone()).or_default();
        if !is_old || lane.rereads >= most {
            lane.rereads = 0;
            return false;
        }
        lane.rereads += 1;
        lane.members_shown = self.member_writes;
        let correlation = self.correlation();
        let request = request::of_read(&change.target, correlation.clone());
        let lane = self.lanes.entry(change.target.clone()).or_default();
        lane.work = Some(Work {
            change: change.clone(),
            correlation,
            stage: Stage::Rereading,
            pending: Pending::Answer,
            sent_ms: now_ms,
            addresses: Arc::default(),
        });
        self.call_lane(&change.target, request, now_ms);
        true
    }

    pub(crate) fn request(&mut self, caller: Caller, request: Request, now_ms: u64) {
        if request.method.is_write() {
            self.counts.writes += 1;
        } else {
            self.counts.reads += 1;
        }
        let read = (!request.method.is_write()).then(|| caller.clone());
        let call = self.call(caller);
        if let Some(caller) = read {
            self.tally.read_sent(call, &caller);
        }
        self.budget.take(call, &request, now_ms);
        self.effects.push(Effect::Azure { call, request });
    }

    /// A poll is due, or a wait is over.
    pub(crate) fn wake_lane(&mut self, id: &ResourceId, now_ms: u64) {
        let Some(lane) = self.lanes.get_mut(id) else { return };
        let urgency = lane.urgency();
        let Some(work) = &mut lane.work else {
            lane.wait_until_ms = None;
            self.dirty = true;
            return;
        };
        let Pending::Poll { request, at_ms, held_ms } = &mut work.pending else { return };
        if *at_ms > now_ms {
            return;
        }
        match self.budget.ask(&limits_of(request), urgency, now_ms) {
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
        if let Some(work) = self.lanes.get_mut(id).and_then(|l| l.work.as_mut()) {
            work.pending = Pending::Poll { request, at_ms: now_ms, held_ms: 0 };
        }
        self.wake_lane(id, now_ms);
    }
}

fn method(action: &Action) -> Method {
    match action {
        Action::Put { .. } => Method::Put,
        Action::Delete { .. } | Action::DeleteChild => Method::Delete,
        Action::MigratePools { .. } | Action::UpdateServices(_) | Action::UpdateLocations(_) => {
            Method::Post
        }
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
