//! Sends changes and follows them to their end.

use crate::backoff;
use crate::controller::{Caller, Controller};
use crate::effect::{Effect, NoticeKind};
use crate::gateway;
use crate::lane::{Lane, Pending, Stage, Work};
use crate::request;
use arm::error::{ArmError, ErrorKind};
use arm::operation::{Operation, Step};
use arm::{Answer, Request};
use model::azure::Sku;
use model::plan::{Action, Change, Resource};
use model::report::{State, Wait};
use model::{ResourceId, ServiceUid};
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;

/// How often the same write may succeed without effect before it is slowed down.
const FUTILE: u32 = 1;

/// How often a load balancer is read again before it is written, while members of its pools keep
/// changing.
const REREADS: u32 = 3;

impl Controller {
    /// Sends every change of the plan that waits on nothing.
    pub(crate) fn write_azure(&mut self, now_ms: u64) {
        let changes = std::mem::take(&mut self.plan.changes);
        let mut asked = BTreeSet::new();
        for change in &changes {
            asked.insert(change.target.clone());
            if self.may_send(change, now_ms) {
                self.send(change.clone(), now_ms);
            }
        }
        self.plan.changes = changes;
        for (id, lane) in &mut self.lanes {
            if !asked.contains(id) {
                lane.gathering_since_ms = None;
            }
        }
        self.lanes.retain(|id, lane| {
            lane.work.is_some()
                || lane.wait_until_ms.is_some()
                || lane.ended_ms.is_some_and(|at| at + self.options.check_interval_ms > now_ms)
                || asked.contains(id)
        });
    }

    fn may_send(&mut self, change: &Change, now_ms: u64) -> bool {
        let under_way = self.lanes.values().filter(|l| l.work.is_some()).count();
        if now_ms < self.writes_from_ms || under_way >= self.options.writes_at_once {
            return false;
        }
        let gather_ms = self.options.gather_ms;
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

    fn send(&mut self, change: Change, now_ms: u64) {
        let correlation = self.correlation();
        let request = request::of_change(&change, correlation.clone());
        let text = format!("{} {}", request.method.name(), describe(&change));
        self.say(now_ms, NoticeKind::Sent, &change.causes, text, Some(correlation.clone()));
        let operation = Operation::start(&request);
        self.request(Caller::Lane(change.target.clone()), request);
        let table = self.world.azure.gateway_locations.known().map(AsRef::as_ref);
        let addresses = match &change.action {
            Action::UpdateLocations(update) => Arc::new(update.touched(table)),
            _ => Arc::default(),
        };
        let lane = self.lanes.entry(change.target.clone()).or_default();
        lane.gathering_since_ms = None;
        lane.wait_until_ms = None;
        lane.work = Some(Work {
            change,
            correlation,
            stage: Stage::Operating(operation),
            pending: Pending::Answer,
            sent_ms: now_ms,
            addresses,
        });
    }

    /// Whether a load balancer is read again before it is written: its pools have other members
    /// than when it was read, and with them another ETag.
    fn rereads_first(&mut self, change: &Change, now_ms: u64) -> bool {
        let Action::Put { before: Some(Resource::LoadBalancer(_)), .. } = &change.action else {
            return false;
        };
        let lane = self.lanes.entry(change.target.clone()).or_default();
        if lane.members_shown == self.member_writes || lane.rereads >= REREADS {
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
        self.call_lane(&change.target, request);
        true
    }

    pub(crate) fn request(&mut self, caller: Caller, request: Request) {
        if request.method.is_write() {
            self.counts.writes += 1;
        } else {
            self.counts.reads += 1;
        }
        let call = self.call(caller);
        self.effects.push(Effect::Azure { call, request });
    }

    /// A poll is due, or a wait is over.
    pub(crate) fn wake_lane(&mut self, id: &ResourceId, now_ms: u64) {
        let Some(lane) = self.lanes.get_mut(id) else { return };
        if lane.work.is_none() {
            lane.wait_until_ms = None;
            self.dirty = true;
            return;
        }
        let poll = lane.work.as_ref().and_then(|work| match &work.pending {
            Pending::Poll { request, at_ms } if *at_ms <= now_ms => Some(request.clone()),
            Pending::Poll { .. } | Pending::Answer => None,
        });
        if let Some(request) = poll {
            self.call_lane(id, request);
        }
    }

    fn call_lane(&mut self, id: &ResourceId, request: Request) {
        self.request(Caller::Lane(id.clone()), request);
        if let Some(work) = self.lanes.get_mut(id).and_then(|l| l.work.as_mut()) {
            work.pending = Pending::Answer;
        }
    }

    /// An answer to a lane's call.
    pub(crate) fn advance_lane(&mut self, id: &ResourceId, answer: &Answer, now_ms: u64) {
        self.dirty = true;
        let Some(work) = self.lanes.get_mut(id).and_then(|l| l.work.as_mut()) else { return };
        match &mut work.stage {
            Stage::Operating(operation) => match operation.advance(answer) {
                Step::Poll { request, after_ms } => {
                    work.pending = Pending::Poll { request, at_ms: now_ms + after_ms };
                }
                Step::ReadBack { request } => self.call_lane(id, request),
                Step::Done { body } => self.succeeded(id, body, now_ms),
                Step::Failed(error) => self.failed(id, &error, now_ms),
            },
            Stage::Verifying | Stage::Rereading => self.reread(id, answer, now_ms),
        }
    }

    fn succeeded(&mut self, id: &ResourceId, body: Option<Value>, now_ms: u64) {
        let Some(lane) = self.lanes.get_mut(id) else { return };
        let Some(work) = lane.work.as_mut() else { return };
        let took = now_ms.saturating_sub(work.sent_ms);
        let text = format!("{} done in {took} ms", describe(&work.change));
        let (causes, correlation) = (work.change.causes.clone(), work.correlation.clone());
        let verify = must_verify(&work.change, body.as_ref());
        if verify {
            work.stage = Stage::Verifying;
            lane.members_shown = self.member_writes;
            let read = request::of_read(id, correlation.clone());
            self.call_lane(id, read);
        } else {
            let Some(work) = lane.work.take() else { return };
            self.store(&work.change, body);
            self.touch(&work.change.action, now_ms);
            self.widen_table_search(id, &work.change.action);
            self.end(id, Some(work.change.action), now_ms);
        }
        self.say(now_ms, NoticeKind::Answered, &causes, text, Some(correlation));
        for uid in &causes {
            self.strikes.remove(uid);
        }
    }

    /// Stores what a write has come to.
    fn store(&mut self, change: &Change, body: Option<Value>) {
        if let Action::Put { after: Resource::PoolMember(_), .. } = &change.action {
            self.member_writes += 1;
        }
        let (azure, policy) = (&mut self.world.azure, &self.policy);
        let unreadable = match (&change.action, body) {
            (Action::Put { .. }, Some(body)) => {
                observe::azure::apply_resource(azure, policy, &change.target, &body).is_err()
            }
            (Action::Delete { .. } | Action::DeleteChild, _) => {
                observe::azure::remove(azure, &change.target);
                self.look_at_released();
                false
            }
            (Action::UpdateServices(update), _) => {
                observe::azure::apply_services_update(azure, update);
                false
            }
            (Action::UpdateLocations(update), _) => {
                observe::azure::apply_locations_update(azure, update);
                false
            }
            (Action::MigratePools { .. } | Action::Put { .. }, _) => false,
        };
        if unreadable {
            self.reread_everything();
        }
    }

    fn end(&mut self, id: &ResourceId, done: Option<Action>, now_ms: u64) {
        let Some(lane) = self.lanes.get_mut(id) else { return };
        lane.work = None;
        lane.ended_ms = Some(now_ms);
        if done.is_some() && lane.last != done {
            lane.failures = 0;
            lane.reason = None;
        }
        lane.last = done;
    }

    /// The resource was read after a write.
    fn reread(&mut self, id: &ResourceId, answer: &Answer, now_ms: u64) {
        let Some(lane) = self.lanes.get_mut(id) else { return };
        let Some(work) = lane.work.take() else { return };
        let reply = match answer {
            Answer::Reply(reply) if matches!(reply.status, 200 | 404) => reply,
            Answer::Reply(_) | Answer::Fault(_) => {
                // Not knowing is no reason to guess: read again in a while.
                lane.failures += 1;
                let at_ms = now_ms + backoff::after(lane.failures, None);
                let request = request::of_read(id, work.correlation.clone());
                let stage = Stage::Rereading;
                lane.work = Some(Work { stage, pending: Pending::Poll { request, at_ms }, ..work });
                return;
            }
        };
        match (&reply.body, reply.status) {
            (Some(body), 200) => {
                let azure = &mut self.world.azure;
                if observe::azure::apply_resource(azure, &self.policy, id, body).is_err() {
                    self.reread_everything();
                }
            }
            _ => {
                observe::azure::remove(&mut self.world.azure, id);
            }
        }
        let verified = matches!(work.stage, Stage::Verifying);
        self.end(id, verified.then_some(work.change.action), now_ms);
    }

    fn failed(&mut self, id: &ResourceId, error: &ArmError, now_ms: u64) {
        self.counts.failures += 1;
        let Some(lane) = self.lanes.get_mut(id) else { return };
        let Some(work) = lane.work.take() else { return };
        lane.ended_ms = Some(now_ms);
        lane.last = None;
        let text = format!("{} failed: {error}", describe(&work.change));
        let correlation = work.correlation.clone();
        self.say(now_ms, NoticeKind::Failed, &work.change.causes, text, Some(correlation));
        match error.kind {
            ErrorKind::Stale => {}
            ErrorKind::Refused => self.refused(id, &work, error, now_ms),
            ErrorKind::Throttled => {
                let wait = backoff::after(1, error.retry_after_ms);
                self.writes_from_ms = self.writes_from_ms.max(now_ms + wait);
                self.back_off(id, error, now_ms);
            }
            ErrorKind::Missing => {
                self.forget_lists(id);
                self.back_off(id, error, now_ms);
            }
            ErrorKind::Unreachable
            | ErrorKind::Busy
            | ErrorKind::Locked
            | ErrorKind::Forbidden
            | ErrorKind::Transient
            | ErrorKind::Ambiguous => self.back_off(id, error, now_ms),
        }
        if is_open(&work, error.kind) {
            self.read_again(id, work);
        }
    }

    fn back_off(&mut self, id: &ResourceId, error: &ArmError, now_ms: u64) {
        let Some(lane) = self.lanes.get_mut(id) else { return };
        lane.failures += 1;
        let wait = backoff::after(lane.failures, error.retry_after_ms);
        lane.wait_until_ms = Some(now_ms + wait);
        lane.reason = Some(Arc::from(format!("{}: {}", error.code, error.message)));
    }

    /// Reads the resource before anything else is done with it.
    fn read_again(&mut self, id: &ResourceId, work: Work) {
        if gateway::is_table(&work.change.action) {
            self.forget_tables();
            return;
        }
        let request = request::of_read(id, work.correlation.clone());
        let Some(lane) = self.lanes.get_mut(id) else { return };
        let pending = Pending::Poll { request: request.clone(), at_ms: 0 };
        lane.work = Some(Work { stage: Stage::Rereading, pending, ..work });
        self.call_lane(id, request);
    }

    /// Azure refuses the write: some Service's part in it is wrong.
    fn refused(&mut self, id: &ResourceId, work: &Work, error: &ArmError, now_ms: u64) {
        self.forget_lists(id);
        // The tables were not as we thought: once they are read, the write is another one.
        let first = self.lanes.get(id).is_none_or(|lane| lane.failures == 0);
        if first && gateway::is_still_mapped(error) {
            self.back_off(id, error, now_ms);
            return;
        }
        // What was refused is not what its owner asks for any more: that is tried at once.
        let changed =
            |uid: &ServiceUid| self.asked_ms.get(uid).is_some_and(|at| *at > work.sent_ms);
        if !work.change.causes.is_empty() && work.change.causes.iter().all(changed) {
            return;
        }
        let deletes = matches!(work.change.action, Action::Delete { .. } | Action::DeleteChild);
        if deletes || !self.blame(id, &work.change.causes, error, now_ms) {
            self.back_off(id, error, now_ms);
        }
    }

    fn nobody_leaves(&self) -> bool {
        self.report.services.values().all(|s| s.state != State::Removing)
    }

    /// Lanes that are wholly free of work: for tests and the simulator.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.lanes.values().all(|l| l.work.is_none() && l.wait_until_ms.is_none())
            && self.objects.values().all(|o| o.call.is_none())
            && self.plan.is_empty()
            && self.world.holds.is_empty()
            && self.report.needs.is_empty()
            && !self.is_reading()
            && (self.world.inherited.is_empty() || self.nobody_leaves())
    }

    /// The change that is carried out under a correlation id.
    #[must_use]
    pub fn under_way(&self, correlation: &str) -> Option<&Change> {
        let mut work = self.lanes.values().filter_map(|lane| lane.work.as_ref());
        work.find(|work| work.correlation == correlation).map(|work| &work.change)
    }

    /// Why a resource's writes wait, and until when.
    pub fn waiting(&self) -> impl Iterator<Item = (&ResourceId, &str, Option<u64>)> {
        self.lanes.iter().filter_map(|(id, lane): (_, &Lane)| {
            Some((id, lane.reason.as_deref()?, lane.wait_until_ms))
        })
    }
}

/// A load balancer is always read back: Azure is known to acknowledge a pool and lose it.
fn must_verify(change: &Change, body: Option<&Value>) -> bool {
    match &change.action {
        Action::Put { after, .. } => {
            // The pool of a container load balancer is empty: there is nothing to lose.
            let pooled = matches!(after, Resource::LoadBalancer(b) if b.sku != Sku::Service);
            body.is_none() || pooled
        }
        Action::MigratePools { .. } => true,
        Action::Delete { .. }
        | Action::DeleteChild
        | Action::UpdateServices(_)
        | Action::UpdateLocations(_) => false,
    }
}

/// Whether a failed write may have changed the resource all the same.
fn is_open(work: &Work, kind: ErrorKind) -> bool {
    let accepted = matches!(&work.stage, Stage::Operating(operation) if operation.is_accepted());
    let superseded = kind == ErrorKind::Busy && !gateway::is_table(&work.change.action);
    let unknown = matches!(kind, ErrorKind::Stale | ErrorKind::Transient | ErrorKind::Ambiguous);
    accepted || superseded || unknown
}

/// A change in a few words.
pub(crate) fn describe(change: &Change) -> String {
    let text = change.target.as_str();
    let from = text.rfind("/providers/").map_or(0, |at| at + "/providers/".len());
    let name = text[from..].split_once('/').map_or(text, |(_, rest)| rest);
    let services = match change.causes.len() {
        0 => String::new(),
        1 => " for 1 Service".to_owned(),
        n => format!(" for {n} Services"),
    };
    format!("{name}{services}")
}

impl Controller {
    /// Names the Services that a refused write was made for, for a search.
    pub(crate) fn batch(&self, causes: &BTreeSet<ServiceUid>) -> BTreeSet<ServiceUid> {
        let held = |uid: &&ServiceUid| !self.world.holds.contains_key(*uid);
        causes.iter().filter(held).cloned().collect()
    }
}
