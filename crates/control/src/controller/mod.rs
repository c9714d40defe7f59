//! The controller's state and its step.

mod drift;
mod kubernetes;
mod lanes;
mod observers;
mod obstacles;
mod reads;
mod term;

use crate::budget::queue::Queue;
use crate::budget::{Budget, Throttle};
use crate::calls::{Caller, Calls};
use crate::drift::DriftCheck;
use crate::effect::Effect;
use crate::event::{Event, Leadership};
use crate::kubernetes::Kubernetes;
use crate::lanes::Lanes;
use crate::lanes::lane::Lane;
use crate::observers::tally::Tally;
use crate::observers::{Counts, Observers};
use crate::options::Options;
use crate::reads::Reads;
use crate::term::Term;
use arm::path::Contract;
use model::plan::{Action, Object, change_of};
use model::world::InFlight;
use model::{Plan, Policy, Report, World};
use std::sync::Arc;

/// The controller: a pure value that takes events and gives effects.
///
/// # Guarantees
/// - One write at a time for each Azure resource and each Kubernetes object.
/// - A wake-up is never lost: every event sets the same flag, and whatever has to be looked at
///   later is in [`Controller::next_wake_ms`].
/// - Nothing is written while the right to write is not held, and to Azure nothing that an operator
///   has paused.
#[derive(Debug)]
pub struct Controller {
    pub(crate) policy: Policy,
    pub(crate) options: Options,
    pub(crate) world: World,
    pub(crate) planning: Planning,
    pub(crate) drift: DriftCheck,
    pub(crate) term: Term,
    pub(crate) reads: Reads,
    pub(crate) lanes: Lanes,
    pub(crate) budget: Throttle,
    pub(crate) kubernetes: Kubernetes,
    pub(crate) calls: Calls,
    pub(crate) observers: Observers,
}

/// The plan as it stands, and whether it still does.
#[derive(Debug, Default)]
pub(crate) struct Planning {
    pub planner: plan::Planner,
    pub plan: Plan,
    pub report: Report,
    /// Something that planning looks at may have changed.
    pub dirty: bool,
    /// The plan stands; more of it may be sent, or read for it, than before.
    pub look: bool,
}

impl Controller {
    /// Starts with an empty World.
    #[must_use]
    pub fn new(policy: Policy, options: Options) -> Self {
        let mut world = World::default();
        world.kubernetes.cluster_uid.clone_from(&options.cluster_uid);
        Self {
            planning: Planning { dirty: true, ..Planning::default() },
            drift: DriftCheck::default(),
            term: Term::new(options.leadership),
            reads: Reads::default(),
            lanes: Lanes::default(),
            budget: Throttle::new(options.limits),
            kubernetes: Kubernetes::default(),
            calls: Calls::default(),
            observers: Observers::default(),
            policy,
            options,
            world,
        }
    }

    /// Everything known.
    #[must_use]
    pub fn world(&self) -> &World {
        &self.world
    }

    /// The cloud config.
    #[must_use]
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// The plan as it stands.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.planning.plan
    }

    /// The report that belongs to the plan. It does not say who waits for budget: that is in
    /// [`Controller::report_with_budget`].
    #[must_use]
    pub fn report(&self) -> &Report {
        &self.planning.report
    }

    /// What is known of Azure's limits.
    #[must_use]
    pub fn budget(&self) -> &Budget {
        &self.budget.limits
    }

    /// Takes Services by these names for gone, for good: what they have in Azure is taken away.
    /// One that is seen after all is not gone.
    pub fn abandon(&mut self, names: impl IntoIterator<Item = Arc<str>>) {
        self.world.abandoned.extend(names);
        self.planning.dirty = true;
    }

    /// What has been counted.
    #[must_use]
    pub fn counts(&self) -> &Counts {
        &self.observers.counts
    }

    /// Azure calls by what they were about and what came of them.
    #[must_use]
    pub fn tally(&self) -> &Tally {
        &self.observers.tally
    }

    /// How many times planning read a Service, the look for drift included.
    #[must_use]
    pub fn services_read(&self) -> u64 {
        self.planning.planner.services_read() + self.drift.planner.services_read()
    }

    /// The contracts that requests to Azure are made by.
    pub(crate) fn contract(&self) -> Contract {
        Contract::for_policy(&self.policy)
    }

    /// Whether this process may write.
    #[must_use]
    pub fn leadership(&self) -> Leadership {
        self.term.leadership
    }

    /// Takes in all that has happened, then plans once and says what to do.
    pub fn step(&mut self, events: impl IntoIterator<Item = Event>, now_ms: u64) -> Vec<Effect> {
        self.planning.dirty |= self.wake_obstacles_ms().is_some_and(|at| at <= now_ms);
        self.calls.now_ms = now_ms;
        for event in events {
            self.take(event, now_ms);
        }
        self.pass_time(now_ms);
        // A search that goes on, or a hold that begins or ends, makes another plan. Each time fewer
        // halves wait for their turn, and fewer Services are left to be held back.
        let mut rounds = 0;
        let mut planned = false;
        while (self.planning.dirty || self.planning.look) && rounds < 64 {
            rounds += 1;
            self.planning.look = false;
            // A plan is dear, and without a new fact it comes to the same.
            if std::mem::take(&mut self.planning.dirty) {
                self.make_plan(now_ms);
                planned = true;
            }
            self.follow_busy(now_ms);
            self.read_needs(now_ms);
            self.go_on_with_ledger(now_ms);
            if self.term.is_held() {
                self.go_on_searching();
                // Who is let in joins what is sent.
                if self.planning.dirty {
                    continue;
                }
                self.write_azure(now_ms);
                self.write_kubernetes(now_ms);
            }
        }
        // Without a plan there is no news: a page of a list, or an answer that is polled for.
        if planned {
            self.close_causes();
            self.say_changes(now_ms);
            self.say_obstacles(now_ms);
        }
        if rounds > 0 {
            self.measure(now_ms);
        }
        std::mem::take(&mut self.calls.effects)
    }

    fn take(&mut self, event: Event, now_ms: u64) {
        match event {
            Event::Kubernetes(fact) => self.learn(fact, now_ms),
            Event::Azure { call, answer } => {
                self.observers.tally.answered(call, &answer);
                // Those that waited for this answer go at once.
                self.planning.look |= self.budget.limits.answered(call, &answer, now_ms);
                match self.calls.callers.remove(&call).map(|call| call.caller) {
                    Some(Caller::Lane(id)) => self.advance_lane(&id, &answer, now_ms),
                    Some(Caller::Read(need)) => {
                        self.advance_read(&need, answer, now_ms);
                        self.decide_left(now_ms);
                        self.forget_unused(&need, now_ms);
                    }
                    Some(Caller::Object(_) | Caller::Ledger(_) | Caller::Event) | None => {}
                }
            }
            Event::KubernetesWritten { call, answer } => {
                match self.calls.callers.remove(&call).map(|call| call.caller) {
                    Some(Caller::Object(object)) => self.written(&object, answer, now_ms),
                    Some(Caller::Ledger(about)) => {
                        self.heard_of_ledger(call, &about, answer, now_ms);
                    }
                    Some(Caller::Event) => self.posted(),
                    Some(Caller::Lane(_) | Caller::Read(_)) | None => {}
                }
            }
            Event::Leadership(leadership) => {
                if leadership == Leadership::Held && !self.term.is_held() {
                    self.take_over_reads();
                    self.doubt_ledger();
                    self.inherit_all(now_ms);
                }
                if leadership == Leadership::Lost {
                    self.budget.queue = Queue::default();
                    self.observers.latencies.forget_pending();
                }
                self.term.leadership = leadership;
                self.forget_drift();
                self.planning.dirty = true;
            }
            Event::Pause(pause) => self.hear_of_pause(pause, now_ms),
            Event::Tick => self.planning.dirty = true,
        }
    }

    fn pass_time(&mut self, now_ms: u64) {
        self.wake_lanes(now_ms);
        if self.gathered_ms().is_some_and(|at| at <= now_ms) {
            self.planning.look = true;
        }
        let held = self.world.holds.len();
        self.world.holds.retain(|_, hold| hold.until_ms.is_none_or(|until| until > now_ms));
        self.planning.dirty |= self.world.holds.len() != held;
        for lane in self.kubernetes.objects.values_mut() {
            self.planning.dirty |= lane.retry.pass(now_ms);
        }
        if self.budget.queue.wake_ms.is_some_and(|at| at <= now_ms) {
            self.budget.queue.wake_ms = None;
            self.planning.look = true;
        }
        self.planning.look |= self.wake_ledger_ms().is_some_and(|at| at <= now_ms);
        self.pass_gates(now_ms);
        self.go_on_reading(now_ms);
        self.forget_names();
        self.pass_drains(now_ms);
        self.planning.dirty |= self.wake_moves_ms().is_some_and(|at| at <= now_ms);
        self.check_drift(now_ms);
        self.pass_barrier(now_ms);
    }

    fn make_plan(&mut self, now_ms: u64) {
        self.look_for_inherited();
        self.follow_names(now_ms);
        self.follow_moves(now_ms);
        self.world.in_flight = self
            .lanes
            .all
            .iter()
            .filter(|(_, lane)| lane.work.is_some() || lane.retry.is_put_off())
            .map(|(id, lane)| {
                let work = lane.work.as_ref();
                let flight = InFlight {
                    attempt: lane.retry.failures() + 1,
                    causes: work.map(|work| work.change.causes.clone()).unwrap_or_default(),
                    addresses: work.map(|work| Arc::clone(&work.addresses)).unwrap_or_default(),
                    goes: work.is_some_and(|w| matches!(w.change.action, Action::Delete { .. })),
                };
                (id.clone(), flight)
            })
            .collect();
        let told = self.kubernetes.objects.iter().filter_map(|(object, lane)| match object {
            Object::Service { uid, .. } => Some((uid.clone(), lane.tells()?.clone())),
            Object::Pod { .. } => None,
        });
        self.world.told = told.collect();
        let (plan, report) = self.planning.planner.plan(&self.world, &self.policy);
        self.observers.counts.plans += 1;
        let before = std::mem::replace(&mut self.planning.plan, plan).changes;
        self.planning.report = report;
        self.follow_holders();
        self.look_for_drift(&before, now_ms);
        self.follow_tags();
        self.budget.queue.follow(&before, &self.planning.plan.changes, &self.lanes.all);
        self.acquit_programmed();
        self.note_obstacles(now_ms);
        self.follow_drains(now_ms);
    }

    /// When the controller wants to be stepped even if nothing happens.
    #[must_use]
    pub fn next_wake_ms(&self) -> Option<u64> {
        let lanes = self.lanes.all.values().filter_map(Lane::wake_ms);
        let gathered = self.gathered_ms().into_iter();
        let reads = self.wake_reads_ms();
        let holds = self.world.holds.values().filter_map(|h| h.until_ms);
        let objects = self.kubernetes.objects.values().filter_map(|o| o.retry.next_ms());
        let queue = self.budget.queue.wake_ms.into_iter();
        let ripe = self.term.wake_ms().into_iter();
        let late = self.wake_gates_ms().into_iter().chain(self.wake_drains_ms());
        let late = late.chain(self.wake_moves_ms());
        let late = late.chain(self.wake_obstacles_ms()).chain(self.wake_ledger_ms());
        lanes
            .chain(gathered)
            .chain(ripe)
            .chain(late)
            .chain(reads)
            .chain(holds)
            .chain(objects)
            .chain(queue)
            .min()
    }

    /// When the first write has waited long enough for others to join it. One that waits for
    /// budget since is looked at when there is some.
    fn gathered_ms(&self) -> Option<u64> {
        let may_write = self.term.is_held();
        let gather_ms = self.gather_ms();
        let changes = &self.planning.plan.changes;
        self.lanes
            .all
            .iter()
            .filter(|(id, lane)| may_write && lane.work.is_none() && !self.is_paused(id))
            .filter(|(id, _)| !change_of(changes, id).is_some_and(|c| self.awaits_note(c)))
            // What is shut until later is not looked at before, or waiting would be spinning.
            .filter_map(|(id, lane)| {
                let (since, until) = (lane.gathering_since_ms?, lane.retry.next_ms().unwrap_or(0));
                (!self.budget.queue.is_ready(changes, id)).then_some((since, until))
            })
            .map(|(since, until)| (since + gather_ms).max(until))
            .min()
    }
}
