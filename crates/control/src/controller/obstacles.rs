//! What stands in the way: gathered in one pass from lanes, reads, Kubernetes writes, Services that
//! Azure rejects, limits, and calls that are not answered; told to the Services concerned.
//!
//! # Guarantees
//! - The pass looks at what is in trouble and at resources with a lane, and at all Services only
//!   while a call to Azure fails.
//! - A Service gets one Event for each kind and code, and one write of its condition for each
//!   cause, however often it is attempted.

use crate::calls::Caller;
use crate::controller::{Controller, Planning};
use crate::effect::NoticeKind;
use crate::kubernetes::objects::{operation_on, services_of};
use crate::lanes::lane::{Lane, Stage, Work};
use crate::observers::kubernetes_events::failed;
use crate::request::method;
use model::obstacle::{Obstacle, ObstacleKind, Subject};
use model::plan::change_of;
use model::report::{State, Wait};
use model::world::Need;
use model::{ResourceId, ServiceUid};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A call that is not answered for so long stands in the way.
const SILENT_MS: u64 = 8_000;

/// A failure that passes within this time gets no Event and no condition: one call failed once.
const PATIENCE_MS: u64 = 3_000;

/// How often in a row a Kubernetes write fails before it stands in the way: one conflict is gone
/// as soon as the watch has caught up.
const KUBERNETES_ATTEMPTS: u32 = 2;

/// Services by what they wait for: a read, or a resource that is written or is to be.
#[derive(Default)]
struct Waiting<'w> {
    reads: BTreeMap<&'w Need, BTreeSet<ServiceUid>>,
    writes: BTreeMap<&'w ResourceId, BTreeSet<ServiceUid>>,
}

impl Waiting<'_> {
    /// The Services that a write holds up: those that it is for, and those that wait for it.
    fn on_write(&self, id: &ResourceId, mut causes: BTreeSet<ServiceUid>) -> BTreeSet<ServiceUid> {
        causes.extend(self.writes.get(id).into_iter().flatten().cloned());
        causes
    }
}

impl Controller {
    /// What stands in the way as of the last plan, and what it holds up.
    #[must_use]
    pub fn obstacles(&self) -> &[Obstacle] {
        &self.planning.report.obstacles
    }

    /// Reads that fail: why, and when each is attempted again.
    pub fn unread(&self) -> impl Iterator<Item = (&Need, String, Option<u64>)> {
        self.reads
            .store
            .iter()
            .filter_map(|(need, read)| Some((need, read.trouble.as_ref()?.cause(), read.next_ms())))
    }

    /// The time of the last step, in milliseconds of the controller's clock.
    #[must_use]
    pub fn now_ms(&self) -> u64 {
        self.calls.now_ms
    }

    /// When a call has been silent for long, or something has lasted long enough to be told.
    pub(crate) fn wake_obstacles_ms(&self) -> Option<u64> {
        let silent = self.calls.callers.values().filter(|call| call.caller != Caller::Event);
        let silent = silent.map(|call| call.sent_ms + SILENT_MS).find(|at| *at > self.calls.now_ms);
        let lasting = self.planning.report.obstacles.iter().map(|o| o.since_ms + PATIENCE_MS);
        lasting.filter(|at| *at > self.calls.now_ms).chain(silent).min()
    }

    /// Notes what stands in the way in the plan's report, and in the conditions that it writes.
    pub(crate) fn note_obstacles(&mut self, now_ms: u64) {
        let obstacles = self.find_obstacles(now_ms);
        let rejected = obstacles.iter().filter(|o| o.kind == ObstacleKind::Rejected);
        for uid in rejected.flat_map(|o| &o.services) {
            // A Service waits for none of its Pods' addresses. While one that Azure has refused is
            // attempted again, the Service is no more as it asks than between two attempts.
            let refused = self.lanes.strikes.contains_key(uid);
            if let Some(service) = self.planning.report.services.get_mut(uid)
                && (service.state == State::Waiting
                    || (refused && service.state == State::Programmed))
            {
                Arc::make_mut(service).state = State::Rejected;
            }
        }
        let lasting = obstacles.iter().filter(|o| is_lasting(o, now_ms));
        let Self { planning: Planning { plan, report, .. }, world, policy, .. } = self;
        plan::note_obstacles(plan, report, world, policy, lasting);
        let limits = obstacles.iter().filter_map(|obstacle| match &obstacle.about {
            Subject::Limit(name) => Some((Arc::clone(name), obstacle.since_ms)),
            _ => None,
        });
        self.budget.closed_since_ms = limits.collect();
        self.planning.report.obstacles = obstacles;
    }

    /// Tells Services by Events what holds them up, or keeps them from being checked.
    pub(crate) fn say_obstacles(&mut self, now_ms: u64) {
        if self.planning.report.obstacles.is_empty() && self.observers.events.complaints.is_empty()
        {
            return;
        }
        let report = std::mem::take(&mut self.planning.report);
        let mut complaints = std::mem::take(&mut self.observers.events.complaints);
        let mut told: Vec<(&ServiceUid, &Obstacle)> = Vec::new();
        for obstacle in &report.obstacles {
            let held_up = obstacle.services.iter();
            let held_up = held_up.filter(|uid| plan::is_held_up(&report, uid));
            let unchecked = plan::unchecked(obstacle, &report, &self.world, &self.policy);
            told.extend(held_up.chain(unchecked).map(|uid| (uid, obstacle)));
        }
        // What is being attempted again at this moment is not forgotten.
        let concerned: BTreeSet<&ServiceUid> = told.iter().map(|(uid, _)| *uid).collect();
        complaints.retain(|uid, _| plan::is_held_up(&report, uid) || concerned.contains(uid));
        for (uid, obstacle) in told.into_iter().filter(|(_, o)| is_lasting(o, now_ms)) {
            let known = complaints.entry(uid.clone()).or_default();
            if known.insert((obstacle.kind, Arc::clone(&obstacle.code))) {
                let name = &report.services[uid].name;
                self.complain(name, uid, obstacle, now_ms);
            }
        }
        self.observers.events.complaints = complaints;
        self.planning.report = report;
    }

    fn complain(
        &mut self,
        name: &model::ServiceName,
        uid: &ServiceUid,
        obstacle: &Obstacle,
        now_ms: u64,
    ) {
        if obstacle.kind == ObstacleKind::Rejected {
            let text = format!("Service {name}: {}", obstacle.cause());
            self.say(now_ms, NoticeKind::Refused, &BTreeSet::from([uid.clone()]), text, None);
        }
        self.post(name, uid, failed(&obstacle.standing()), now_ms);
    }

    /// Everything that stands in the way now, in a stable order.
    fn find_obstacles(&self, now_ms: u64) -> Vec<Obstacle> {
        let waiting = self.waiters();
        let mut all = Vec::from_iter(self.pause_obstacle());
        self.find_limits(&mut all, now_ms);
        for (need, read) in &self.reads.store {
            let services = waiting.reads.get(need).cloned().unwrap_or_default();
            if let Some(trouble) = read.trouble.as_ref() {
                // A group that only a Service names is not needed once the Service is gone.
                if !services.is_empty() || self.is_needed(need) {
                    let next_ms = read.next_ms();
                    all.push(trouble.obstacle(Subject::Read(need.clone()), services, next_ms));
                }
            }
        }
        let lanes = self.lanes.all.iter();
        all.extend(lanes.filter_map(|(id, lane)| self.lane_obstacle(id, lane, &waiting)));
        for (object, lane) in &self.kubernetes.objects {
            let trouble = lane.trouble.as_ref();
            let Some(trouble) = trouble.filter(|t| t.attempt >= KUBERNETES_ATTEMPTS) else {
                continue;
            };
            let about = Subject::Object(object.clone());
            all.push(trouble.obstacle(about, trouble.causes.clone(), lane.retry.next_ms()));
        }
        let trouble = self.ledger_trouble();
        if let Some(trouble) = trouble.filter(|t| t.attempt >= KUBERNETES_ATTEMPTS) {
            let (services, next_ms) = (self.wait_for_ledger(), self.kubernetes.ledger.attempt_ms());
            all.push(trouble.obstacle(Subject::Ledger, services, next_ms));
        }
        for (uid, strike) in &self.lanes.strikes {
            if self.is_unfinished(uid) || self.is_asked(&strike.target, uid) {
                let next_ms = self.world.holds.get(uid).and_then(|hold| hold.until_ms);
                let about = Subject::Write(strike.target.clone());
                let services = BTreeSet::from([uid.clone()]);
                all.push(strike.trouble.obstacle(about, services, next_ms));
            }
        }
        self.find_silent(&waiting, &mut all, now_ms);
        all
    }

    /// Services by what they wait for; looked for only while calls fail or are late.
    fn waiters(&self) -> Waiting<'_> {
        let mut waiting = Waiting::default();
        let failing = self.reads.store.values().any(|read| read.trouble.is_some())
            || self.lanes.all.values().any(|lane| lane.trouble.is_some());
        if !failing && self.silent_calls(self.calls.now_ms).next().is_none() {
            return waiting;
        }
        for (uid, service) in &self.planning.report.services {
            for wait in &service.waits {
                let waiters = match wait {
                    Wait::Reading(need) => waiting.reads.entry(need).or_default(),
                    Wait::Writing(id) | Wait::Resource { id, .. } => {
                        waiting.writes.entry(id).or_default()
                    }
                    _ => continue,
                };
                waiters.insert(uid.clone());
            }
        }
        waiting
    }

    fn is_needed(&self, need: &Need) -> bool {
        let Some(group) = self.named_group(need) else { return true };
        let report = &self.planning.report;
        let mut findings = report.services.values().flat_map(|service| &service.findings);
        let mut refers = || findings.any(|f| f.value.eq_ignore_ascii_case(group.as_str()));
        report.needs.contains(need) || refers()
    }

    fn is_unfinished(&self, uid: &ServiceUid) -> bool {
        let report = self.planning.report.services.get(uid);
        self.world.holds.contains_key(uid)
            || report.is_some_and(|service| service.state != State::Programmed)
    }

    /// What stands in the way of a resource's writes, where something is still to be written.
    fn lane_obstacle(
        &self,
        id: &ResourceId,
        lane: &Lane,
        waiting: &Waiting<'_>,
    ) -> Option<Obstacle> {
        let trouble = lane.trouble.as_ref()?;
        let planned = change_of(&self.planning.plan.changes, id);
        let causes: BTreeSet<ServiceUid> = match (planned, &lane.work) {
            (Some(change), _) => change.causes.clone(),
            (None, Some(work)) => work.change.causes.clone(),
            // Planning may leave out what is tried later.
            (None, None) => {
                lane.retry.next_ms()?;
                trouble.causes.iter().filter(|uid| self.is_unfinished(uid)).cloned().collect()
            }
        };
        let services = waiting.on_write(id, causes);
        if services.is_empty() && planned.is_none() && lane.work.is_none() {
            return None;
        }
        let next_ms = lane.retry.next_ms().filter(|_| lane.work.is_none());
        Some(trouble.obstacle(Subject::Write(id.clone()), services, next_ms))
    }

    /// Limits of which Azure said that they are used up, and the Services whose writes wait.
    fn find_limits(&self, all: &mut Vec<Obstacle>, now_ms: u64) {
        let closed = self.budget.limits.levels(now_ms).filter(|l| l.closed_until_ms > now_ms);
        for level in closed {
            let waits = |at: usize| {
                let class = self.budget.queue.class_at(at);
                class.is_some_and(|class| class.limits.contains(&level.limit))
            };
            let kept = self.budget.queue.kept();
            let kept = kept.iter().filter(|(at, _)| waits(*at));
            let causes = kept.flat_map(|(at, _)| &self.planning.plan.changes[*at].causes);
            let name = level.limit.to_string();
            all.push(Obstacle {
                about: Subject::Limit(Arc::from(name.as_str())),
                services: causes.cloned().collect(),
                kind: ObstacleKind::Throttled,
                operation: Arc::from(format!("calls within the limit on {name}")),
                code: Arc::from("429"),
                message: Arc::default(),
                attempt: 1,
                since_ms: self.budget.closed_since_ms.get(name.as_str()).copied().unwrap_or(now_ms),
                next_ms: Some(level.closed_until_ms),
            });
        }
    }

    fn silent_calls(&self, now_ms: u64) -> impl Iterator<Item = (&Caller, u64)> {
        let calls = self.calls.callers.values().filter(|call| call.caller != Caller::Event);
        calls
            .map(|call| (&call.caller, call.sent_ms))
            .take_while(move |(_, sent_ms)| sent_ms + SILENT_MS <= now_ms)
    }

    /// Calls that are not answered, unless what they are about is in trouble already.
    fn find_silent(&self, waiting: &Waiting<'_>, all: &mut Vec<Obstacle>, now_ms: u64) {
        for (caller, sent_ms) in self.silent_calls(now_ms) {
            let (about, operation, services) = match caller {
                Caller::Event => continue,
                Caller::Read(need) => {
                    let services = waiting.reads.get(need).cloned().unwrap_or_default();
                    (Subject::Read(need.clone()), need.operation(), services)
                }
                Caller::Lane(id) => {
                    let work = self.lanes.all.get(id).and_then(|lane| lane.work.as_ref());
                    let Some(work) = work else { continue };
                    let operation = format!("{} {}", awaited(work), id.short());
                    let services = waiting.on_write(id, work.change.causes.clone());
                    (Subject::Write(id.clone()), operation, services)
                }
                Caller::Ledger(call) => {
                    (Subject::Ledger, self.ledger_operation(call), self.wait_for_ledger())
                }
                Caller::Object(object) => {
                    let about = Subject::Object(object.clone());
                    (about, operation_on(object), services_of(object))
                }
            };
            if all.iter().any(|known| known.about == about) {
                continue;
            }
            all.push(Obstacle {
                about,
                services,
                kind: ObstacleKind::NoAnswer,
                operation: Arc::from(operation),
                code: Arc::from("NoAnswer"),
                message: Arc::default(),
                attempt: 1,
                since_ms: sent_ms,
                next_ms: None,
            });
        }
    }
}

fn is_lasting(obstacle: &Obstacle, now_ms: u64) -> bool {
    let certain = obstacle.kind == ObstacleKind::Rejected;
    certain || obstacle.since_ms + PATIENCE_MS <= now_ms
}

/// The method of the call that a write awaits.
fn awaited(work: &Work) -> &'static str {
    match &work.stage {
        Stage::Operating(operation) if !operation.is_accepted() => {
            method(&work.change.action).name()
        }
        Stage::Operating(_) | Stage::Verifying | Stage::Rereading(_) => "GET",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Options;
    use fixture::policy;

    #[test]
    fn a_timer_goes_off_once_trouble_has_lasted_long_enough_to_be_told() {
        let mut controller = Controller::new(policy(), Options::default());
        let obstacle = Obstacle {
            since_ms: 1_000,
            ..fixture::obstacle(Subject::Ledger, ObstacleKind::NoAnswer)
        };
        controller.planning.report.obstacles = vec![obstacle];
        assert_eq!(controller.wake_obstacles_ms(), Some(1_000 + PATIENCE_MS));
        controller.calls.now_ms = 1_000 + PATIENCE_MS;
        assert_eq!(controller.wake_obstacles_ms(), None);
    }
}
