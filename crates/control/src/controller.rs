//! The controller's state and its step.

use crate::azure_reads::{Read, Ripening};
use crate::budget::{Budget, Limits, Urgency};
use crate::effect::{CallId, Effect};
use crate::event::{Event, Leadership};
use crate::kubernetes_writes::ObjectLane;
use crate::lane::Lane;
use crate::ledger::{LedgerCall, LedgerLane};
use crate::obstacles::{Awaited, Complaints, Strike};
use crate::queue::Queue;
use crate::said::Said;
use crate::search::Search;
use crate::shares::Shares;
use crate::tally::Tally;
use arm::path::Contract;
use model::plan::Object;
use model::world::{InFlight, Need};
use model::{Plan, Policy, Report, ResourceId, ServiceName, ServiceUid, World};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Choices that are the controller's own and not the cloud config's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Interval of the drift check: each list that is planned on is read again after it.
    pub check_interval_ms: u64,
    /// How long a write that could be sent waits for others that are about to join it.
    pub gather_ms: u64,
    /// Azure writes under way at a time.
    pub writes_at_once: usize,
    /// What is believed of Azure's limits before Azure has said anything.
    pub limits: Limits,
    /// Kubernetes writes under way at a time.
    pub kubernetes_writes_at_once: usize,
    /// Prefix of correlation ids and Event names; differs between two processes.
    pub instance: String,
    /// How long a Pod waits for our readiness gate before it is let through.
    pub gate_timeout_ms: u64,
    /// Values of `spec.loadBalancerClass` that are ours, beside none.
    pub classes: BTreeSet<String>,
    /// Whether the right to write is held from the start.
    pub leadership: Leadership,
    /// UID of the cluster, where it could be read.
    pub cluster_uid: Option<Arc<str>>,
    /// The ConfigMap that is the ledger.
    pub ledger: ServiceName,
}

/// The ledger of the processes that take turns by a Lease: two that do not share the Lease do not
/// share the ledger.
#[must_use]
pub fn ledger_of(namespace: &str, lease: &str) -> ServiceName {
    ServiceName::new(namespace, format!("{lease}-ledger"))
}

impl Default for Options {
    fn default() -> Self {
        Self {
            check_interval_ms: 120_000,
            gather_ms: 2_000,
            writes_at_once: 200,
            limits: Limits::Published,
            kubernetes_writes_at_once: 64,
            gate_timeout_ms: 60_000,
            instance: "00000000".to_owned(),
            classes: BTreeSet::new(),
            leadership: Leadership::Held,
            cluster_uid: None,
            ledger: ledger_of("kube-system", "ballast"),
        }
    }
}

/// Who waits for an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Caller {
    /// A lane.
    Lane(ResourceId),
    /// A read.
    Read(Need),
    /// A Kubernetes object's lane.
    Object(Object),
    /// The ledger's lane.
    Ledger(LedgerCall),
    /// An Event was posted; its answer does not matter.
    Event,
}

/// The controller: a pure value that takes events and gives effects.
///
/// # Guarantees
/// - One write at a time for each Azure resource and each Kubernetes object.
/// - A wake-up is never lost: every event sets the same flag, and whatever has to be looked at
///   later is in [`Controller::next_wake_ms`].
/// - Nothing is written while the right to write is not held.
#[derive(Debug)]
pub struct Controller {
    pub(crate) policy: Policy,
    pub(crate) options: Options,
    pub(crate) world: World,
    pub(crate) planner: plan::Planner,
    pub(crate) touched: crate::gateway::Touched,
    pub(crate) inheritance: crate::gateway::Inheritance,
    /// Texts of findings that were said about Pods.
    pub(crate) said_of_pods: BTreeMap<ServiceName, BTreeSet<Arc<str>>>,
    pub(crate) listing: observe::apply::Listing,
    pub(crate) interner: observe::intern::Interner,
    pub(crate) plan: Plan,
    pub(crate) report: Report,
    pub(crate) lanes: BTreeMap<ResourceId, Lane>,
    pub(crate) reads: BTreeMap<Need, Read>,
    pub(crate) objects: BTreeMap<Object, ObjectLane>,
    pub(crate) ledger: LedgerLane,
    pub(crate) callers: BTreeMap<CallId, Awaited>,
    pub(crate) searches: BTreeMap<ResourceId, Search>,
    /// UIDs of Pods that could not be given our finalizer.
    pub(crate) waived: BTreeSet<Arc<str>>,
    /// When Services were last changed by their owners.
    pub(crate) asked_ms: BTreeMap<ServiceUid, u64>,
    /// Ids of those changes, for the log.
    pub(crate) change_ids: BTreeMap<ServiceUid, Arc<str>>,
    /// Services that Azure rejects, until a write for them goes through.
    pub(crate) strikes: BTreeMap<ServiceUid, Strike>,
    /// What Services were told that holds them up.
    pub(crate) complaints: Complaints,
    /// Since when limits are closed, by their names.
    pub(crate) closed_since_ms: BTreeMap<Arc<str>, u64>,
    /// The time of the last step.
    pub(crate) now_ms: u64,
    pub(crate) said: BTreeMap<ServiceUid, Said>,
    pub(crate) leadership: Leadership,
    pub(crate) ripening: Ripening,
    /// Finalizers of ours that were asked for and not seen yet.
    pub(crate) claims: BTreeSet<Object>,
    /// Services of another process's that were not looked for in lists yet.
    pub(crate) unlooked: BTreeSet<ServiceUid>,
    /// Something that planning looks at may have changed.
    pub(crate) dirty: bool,
    /// The plan stands; more of it may be sent, or read for it, than before.
    pub(crate) look: bool,
    pub(crate) next_call: u64,
    pub(crate) next_event: u64,
    pub(crate) next_change: u64,
    pub(crate) budget: Budget,
    pub(crate) shares: Shares,
    /// Writes that wait for budget.
    pub(crate) queue: Queue,
    pub(crate) effects: Vec<Effect>,
    pub(crate) counts: Counts,
    /// Writes of pool members so far: each gives a new ETag to the load balancers it is behind.
    pub(crate) member_writes: u64,
    pub(crate) gates: crate::gates::Gates,
    pub(crate) latencies: crate::latency::Latencies,
    pub(crate) tally: Tally,
    pub(crate) words: crate::words::Words,
    pub(crate) drift: crate::drift::DriftLog,
    pub(crate) drains: crate::drains::Drains,
}

/// What has been counted since the start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Azure writes sent, by HTTP method.
    pub writes: u64,
    /// Azure reads sent, polls included.
    pub reads: u64,
    /// Kubernetes writes sent, Events not included.
    pub kubernetes: u64,
    /// Plans made.
    pub plans: u64,
    /// Azure writes that failed.
    pub failures: u64,
}

impl Controller {
    /// Starts with an empty World.
    #[must_use]
    pub fn new(policy: Policy, options: Options) -> Self {
        let mut world = World::default();
        world.kubernetes.cluster_uid.clone_from(&options.cluster_uid);
        Self {
            leadership: options.leadership,
            budget: Budget::new(options.limits),
            policy,
            options,
            world,
            planner: plan::Planner::default(),
            touched: crate::gateway::Touched::default(),
            inheritance: crate::gateway::Inheritance::default(),
            said_of_pods: BTreeMap::new(),
            listing: observe::apply::Listing::default(),
            interner: observe::intern::Interner::default(),
            plan: Plan::default(),
            report: Report::default(),
            lanes: BTreeMap::new(),
            reads: BTreeMap::new(),
            objects: BTreeMap::new(),
            ledger: LedgerLane::default(),
            callers: BTreeMap::new(),
            searches: BTreeMap::new(),
            waived: BTreeSet::new(),
            asked_ms: BTreeMap::new(),
            change_ids: BTreeMap::new(),
            strikes: BTreeMap::new(),
            complaints: BTreeMap::new(),
            closed_since_ms: BTreeMap::new(),
            now_ms: 0,
            said: BTreeMap::new(),
            ripening: Ripening::Done,
            claims: BTreeSet::new(),
            unlooked: BTreeSet::new(),
            dirty: true,
            look: false,
            next_call: 0,
            next_event: 0,
            next_change: 0,
            shares: Shares::default(),
            queue: Queue::default(),
            effects: Vec::new(),
            counts: Counts::default(),
            member_writes: 0,
            gates: crate::gates::Gates::default(),
            latencies: crate::latency::Latencies::default(),
            tally: Tally::default(),
            words: crate::words::Words::default(),
            drift: crate::drift::DriftLog::default(),
            drains: crate::drains::Drains::default(),
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
        &self.plan
    }

    /// The report that belongs to the plan. It does not say who waits for budget: that is in
    /// [`Controller::report_with_budget`].
    #[must_use]
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// What is known of Azure's limits.
    #[must_use]
    pub fn budget(&self) -> &Budget {
        &self.budget
    }

    /// Takes Services by these names for gone, for good: what they have in Azure is taken away.
    /// One that is seen after all is not gone.
    pub fn abandon(&mut self, names: impl IntoIterator<Item = Arc<str>>) {
        self.world.abandoned.extend(names);
        self.dirty = true;
    }

    /// What has been counted.
    #[must_use]
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Azure calls by what they were about and what came of them.
    #[must_use]
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// How many times planning read a Service, the look for drift included.
    #[must_use]
    pub fn services_read(&self) -> u64 {
        self.planner.services_read() + self.drift.services_read()
    }

    /// The contracts that requests to Azure are made by.
    pub(crate) fn contract(&self) -> Contract {
        Contract::of(self.policy.sku)
    }

    /// Whether this process may write.
    #[must_use]
    pub fn leadership(&self) -> Leadership {
        self.leadership
    }

    /// Takes in all that has happened, then plans once and says what to do.
    pub fn step(&mut self, events: impl IntoIterator<Item = Event>, now_ms: u64) -> Vec<Effect> {
        self.dirty |= self.wake_obstacles_ms().is_some_and(|at| at <= now_ms);
        self.now_ms = now_ms;
        for event in events {
            self.take(event, now_ms);
        }
        self.pass_time(now_ms);
        // A search that goes on, or a hold that ends, makes another plan; each time fewer wait.
        let mut rounds = 0;
        let mut planned = false;
        while (self.dirty || self.look) && rounds < 64 {
            rounds += 1;
            self.look = false;
            // A plan is dear, and without a new fact it comes to the same.
            if std::mem::take(&mut self.dirty) {
                self.make_plan(now_ms);
                planned = true;
            }
            self.follow_busy(now_ms);
            self.read_needs(now_ms);
            self.go_on_with_ledger(now_ms);
            if self.leadership == Leadership::Held {
                self.write_azure(now_ms);
                self.write_kubernetes(now_ms);
                self.go_on_searching();
            }
        }
        // Without a plan there is no news: a page of a list, or an answer that is polled for.
        if planned {
            self.say_changes(now_ms);
            self.say_obstacles(now_ms);
        }
        if rounds > 0 {
            self.measure(now_ms);
        }
        std::mem::take(&mut self.effects)
    }

    fn take(&mut self, event: Event, now_ms: u64) {
        match event {
            Event::Kubernetes(fact) => self.learn(fact, now_ms),
            Event::Azure { call, answer } => {
                self.tally.answered(call, &answer);
                // Those that waited for this answer go at once.
                self.look |= self.budget.answered(call, &answer, now_ms);
                match self.callers.remove(&call).map(|call| call.caller) {
                    Some(Caller::Lane(id)) => self.advance_lane(&id, &answer, now_ms),
                    Some(Caller::Read(need)) => self.advance_read(&need, answer, now_ms),
                    Some(Caller::Object(_) | Caller::Ledger(_) | Caller::Event) | None => {}
                }
            }
            Event::KubernetesWritten { call, answer } => {
                match self.callers.remove(&call).map(|call| call.caller) {
                    Some(Caller::Object(object)) => self.written(&object, answer, now_ms),
                    Some(Caller::Ledger(about)) => {
                        self.heard_of_ledger(call, &about, answer, now_ms);
                    }
                    Some(Caller::Event) => self.posted(),
                    Some(Caller::Lane(_) | Caller::Read(_)) | None => {}
                }
            }
            Event::Leadership(leadership) => {
                if leadership == Leadership::Held && self.leadership == Leadership::Lost {
                    // Somebody else may have written meanwhile.
                    self.reread_everything();
                    self.ledger.doubt();
                    self.take_over_tables();
                    self.inherit_all(now_ms);
                }
                if leadership == Leadership::Lost {
                    self.queue = Queue::default();
                    self.latencies.forget_pending();
                }
                self.leadership = leadership;
                self.forget_drift();
                self.dirty = true;
            }
            Event::Tick => self.dirty = true,
        }
    }

    fn pass_time(&mut self, now_ms: u64) {
        let due = self.lanes.iter().filter(|(_, l)| l.wake_ms().is_some_and(|at| at <= now_ms));
        // Where there is not enough budget for all polls, those that many Services wait for come
        // first, then the one that is due for longest.
        let mut due: Vec<(Reverse<Urgency>, u64, ResourceId)> =
            due.map(|(id, l)| (Reverse(l.urgency()), l.due_ms(), id.clone())).collect();
        due.sort_unstable();
        for (_, _, id) in due {
            self.wake_lane(&id, now_ms);
        }
        if self.gathered_ms().is_some_and(|at| at <= now_ms) {
            self.look = true;
        }
        let ended: Vec<ServiceUid> = self
            .world
            .holds
            .iter()
            .filter(|(_, hold)| hold.until_ms.is_some_and(|until| until <= now_ms))
            .map(|(uid, _)| uid.clone())
            .collect();
        for uid in ended {
            self.world.holds.remove(&uid);
            self.dirty = true;
        }
        if self.objects.values().any(|o| o.wait_until_ms.is_some_and(|at| at <= now_ms)) {
            // How often a write has failed is kept: the next wait is longer.
            for lane in self.objects.values_mut() {
                lane.wait_until_ms = lane.wait_until_ms.filter(|at| *at > now_ms);
            }
            self.dirty = true;
        }
        if self.queue.wake_ms.is_some_and(|at| at <= now_ms) {
            self.queue.wake_ms = None;
            self.look = true;
        }
        self.look |= self.wake_ledger_ms().is_some_and(|at| at <= now_ms);
        self.pass_gates(now_ms);
        self.go_on_reading(now_ms);
        self.pass_drains(now_ms);
        self.check_drift(now_ms);
        self.ripen(now_ms);
    }

    fn make_plan(&mut self, now_ms: u64) {
        self.look_for_inherited();
        self.world.in_flight = self
            .lanes
            .iter()
            .filter(|(_, lane)| lane.work.is_some() || lane.wait_until_ms.is_some())
            .map(|(id, lane)| {
                let work = lane.work.as_ref();
                let flight = InFlight {
                    attempt: lane.failures + 1,
                    causes: work.map(|work| work.change.causes.clone()).unwrap_or_default(),
                    addresses: work.map(|work| Arc::clone(&work.addresses)).unwrap_or_default(),
                };
                (id.clone(), flight)
            })
            .collect();
        let (plan, report) = self.planner.plan(&self.world, &self.policy);
        self.counts.plans += 1;
        let before = std::mem::replace(&mut self.plan, plan).changes;
        self.world.holders.clone_from(&report.holders);
        self.report = report;
        self.look_for_drift(&before, now_ms);
        self.queue.follow(&before, &self.plan.changes, &self.lanes);
        self.note_obstacles(now_ms);
        self.follow_drains(now_ms);
    }

    /// When the controller wants to be stepped even if nothing happens.
    #[must_use]
    pub fn next_wake_ms(&self) -> Option<u64> {
        let lanes = self.lanes.values().filter_map(Lane::wake_ms);
        let gathered = self.gathered_ms().into_iter();
        let reads = self.wake_reads_ms();
        let holds = self.world.holds.values().filter_map(|h| h.until_ms);
        let objects = self.objects.values().filter_map(|o| o.wait_until_ms);
        let queue = self.queue.wake_ms.into_iter();
        let ripe = self.ripening.wake_ms().into_iter();
        let late = self.wake_gates_ms().into_iter().chain(self.wake_drains_ms());
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
        let may_write = self.leadership == Leadership::Held;
        let gather_ms = self.gather_ms();
        self.lanes
            .iter()
            .filter(|(_, lane)| may_write && lane.work.is_none())
            // What is shut until later is not looked at before, or waiting would be spinning.
            .filter_map(|(id, lane)| {
                let (since, until) = (lane.gathering_since_ms?, lane.wait_until_ms.unwrap_or(0));
                (!self.queue.is_ready(&self.plan.changes, id)).then_some((since, until))
            })
            .map(|(since, until)| (since + gather_ms).max(until))
            .min()
    }

    pub(crate) fn call(&mut self, caller: Caller) -> CallId {
        self.next_call += 1;
        let call = CallId(self.next_call);
        self.callers.insert(call, Awaited { caller, sent_ms: self.now_ms });
        call
    }
}
