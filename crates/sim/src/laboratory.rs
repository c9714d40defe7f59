//! The controller, a cluster and a cloud in one value.

mod pause;

use crate::config::Config;
use crate::judge::{self, Before};
use crate::{fact, wire};
use azure_emulator::Azure;
use control::budget::Limits;
use control::{Controller, Effect, Event, Leadership, Notice, Options};
use kube_emulator::{EventType, ObjectRef, Store, WatchEvent};
use model::World;
use model::kubernetes::{POD_FINALIZER, Pod};
use model::world::Kind;
use observe::KubernetesFact;
use observe::intern::Interner;
use observe::kubernetes as read;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// The kinds that are watched, with their plural names.
const KINDS: [(Kind, &str); 6] = [
    (Kind::Namespaces, "namespaces"),
    (Kind::Nodes, "nodes"),
    (Kind::Services, "services"),
    (Kind::EndpointSlices, "endpointslices"),
    (Kind::Pods, "pods"),
    (Kind::GatedPods, "pods"),
];

pub(crate) fn has_egress_label(object: &Value) -> bool {
    object["metadata"]["labels"].get(crate::scene::objects::EGRESS_LABEL).is_some()
}

pub(crate) fn has_egress_finalizer(object: &Value) -> bool {
    let finalizers = object["metadata"]["finalizers"].as_array();
    finalizers.is_some_and(|all| all.iter().any(|f| f == POD_FINALIZER))
}

/// On which side of a call the controller is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// The call is never sent.
    Before,
    /// The call is carried out, and nobody hears the answer.
    After,
}

/// Whether plans are read by [`plan_check::check`] before they are carried out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scrutiny {
    /// After every step.
    #[default]
    EveryStep,
    /// Not: for measurements at sizes where that is most of the work.
    None,
}

/// Whether what was promised is held against what stands ([`promise::judge`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Promises {
    /// Whenever everything has settled.
    #[default]
    WhenSettled,
    /// Not: for measurements at sizes where that is most of the work.
    NotJudged,
}

/// A promise that a test breaks on purpose.
#[derive(Clone, Debug)]
struct Excuse {
    promise: &'static str,
    part: String,
}

/// The UID by which a cluster is identified, as the edge reads it at a start.
pub(crate) fn cluster_uid(store: &Store) -> Option<Arc<str>> {
    let object = store.get(ObjectRef::new("namespaces", "", "kube-system")).ok()?;
    object["metadata"]["uid"].as_str().map(Arc::from)
}

/// What a witness does with the cluster, the cloud and the time.
type Look = dyn FnMut(&Store, &Azure, u64);

/// Looks at both sides after each write to Azure.
pub struct Witness(Box<Look>);

impl Witness {
    /// A witness gets the cluster, the cloud and the time.
    pub fn new(look: impl FnMut(&Store, &Azure, u64) + 'static) -> Self {
        Self(Box::new(look))
    }
}

impl std::fmt::Debug for Witness {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Witness")
    }
}

/// Counts what the controller's work takes, by the clock of whoever measures.
#[derive(Clone, Copy, Debug)]
pub struct Meter {
    /// The processor time of this thread so far.
    pub clock: fn() -> Duration,
    /// What reading objects and stepping took.
    pub spent: Duration,
}

/// A controller between two emulators, on a clock that only moves when told.
#[derive(Debug)]
pub struct Laboratory {
    /// The cluster.
    pub kubernetes: Store,
    /// The cloud.
    pub azure: Azure,
    /// The time, in milliseconds.
    pub now_ms: u64,
    /// Added to each Azure call, there and back.
    pub azure_latency_ms: u64,
    /// Everything the controller said.
    pub notices: Vec<Notice>,
    /// Looks at the cloud after each write that it took, and says what is wrong.
    pub inspect: Option<fn(&Azure) -> Vec<String>>,
    /// What was wrong, with the number of the call after which it was.
    pub seen: Vec<(usize, String)>,
    /// Calls that controllers have sent so far, to Azure and to Kubernetes.
    pub sent: u64,
    /// Looks on.
    pub witness: Option<Witness>,
    /// Whether plans are checked.
    pub scrutiny: Scrutiny,
    /// Whether promises are judged.
    pub promises: Promises,
    excuses: Vec<Excuse>,
    refused: BTreeSet<String>,
    before: Before,
    /// Counts the controller's work.
    pub meter: Option<Meter>,
    /// The controller is killed at the call with this number.
    crash: Option<(u64, Moment)>,
    controller: Controller,
    config: Config,
    options: Options,
    interner: Interner,
    /// Revision up to which each kind was watched.
    watched: BTreeMap<Kind, u64>,
    due: BTreeMap<(u64, u64), Event>,
    sequence: u64,
    restarts: u32,
}

impl Laboratory {
    /// Puts a controller between a cluster and a cloud.
    #[must_use]
    pub fn new(kubernetes: Store, azure: Azure, config: Config, options: Options) -> Self {
        let options = Options { cluster_uid: cluster_uid(&kubernetes), ..options };
        Self {
            kubernetes,
            azure,
            now_ms: 1_700_000_000_000,
            azure_latency_ms: 0,
            notices: Vec::new(),
            inspect: None,
            seen: Vec::new(),
            sent: 0,
            witness: None,
            scrutiny: Scrutiny::EveryStep,
            promises: Promises::default(),
            excuses: Vec::new(),
            refused: BTreeSet::new(),
            before: Before::default(),
            meter: None,
            crash: None,
            controller: Controller::new(config.policy().clone(), options.clone()),
            config,
            options,
            interner: Interner::default(),
            watched: BTreeMap::new(),
            due: BTreeMap::new(),
            sequence: 0,
            restarts: 0,
        }
    }

    /// The controller.
    #[must_use]
    pub fn controller(&self) -> &Controller {
        &self.controller
    }

    /// The cloud config.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Kills the controller and starts another: what was under way is lost.
    pub fn restart(&mut self) {
        // Each process has an instance of its own, by which its Events are named.
        self.restarts += 1;
        self.options.instance = format!("{:08x}", self.restarts);
        self.controller = Controller::new(self.config.policy().clone(), self.options.clone());
        self.due.clear();
        self.watched.clear();
    }

    /// Kills the controller and starts another with another cloud config.
    pub fn restart_with(&mut self, config: Config) {
        self.config = config;
        self.restart();
    }

    /// Kills the controller and starts another that believes this of Azure's limits.
    pub fn restart_believing(&mut self, limits: Limits) {
        self.options.limits = limits;
        self.restart();
    }

    /// What a controller with another cloud config reads before it writes anything: what a dry run
    /// is made from.
    #[must_use]
    pub fn read_under(&mut self, config: &Config) -> World {
        let options = Options { leadership: Leadership::Lost, ..self.options.clone() };
        let reader = Controller::new(config.policy().clone(), options);
        let controller = std::mem::replace(&mut self.controller, reader);
        let (watched, due) = (std::mem::take(&mut self.watched), std::mem::take(&mut self.due));
        self.turn();
        self.due = due;
        self.watched = watched;
        std::mem::replace(&mut self.controller, controller).world().clone()
    }

    /// Kills the controller at the call that comes after so many others, and starts another.
    pub fn crash_after(&mut self, calls: u64, moment: Moment) {
        self.crash = Some((self.sent + calls + 1, moment));
    }

    /// Whether a crash that was ordered is still to come.
    #[must_use]
    pub fn awaits_crash(&self) -> bool {
        self.crash.is_some()
    }

    /// Lets things happen until nothing is under way and nothing waits, or this much time has
    /// passed. True when it has settled.
    pub fn settle(&mut self, limit_ms: u64) -> bool {
        self.settle_watched(limit_ms, &mut |_| ())
    }

    /// As [`Laboratory::settle`]; `look` is called at every moment at which something happened.
    pub fn settle_watched(&mut self, limit_ms: u64, look: &mut dyn FnMut(&Self)) -> bool {
        let end = self.now_ms + limit_ms;
        self.before.look(&self.azure);
        loop {
            self.turn();
            look(self);
            let settled = self.due.is_empty() && self.controller.is_settled();
            match self.next_ms() {
                Some(at) if at <= end && !settled => self.now_ms = self.now_ms.max(at),
                Some(_) | None => {
                    if settled {
                        self.judge();
                    }
                    return settled;
                }
            }
        }
    }

    /// Lets this much time pass.
    pub fn pass(&mut self, ms: u64) {
        let end = self.now_ms + ms;
        loop {
            self.turn();
            match self.next_ms() {
                Some(at) if at <= end => self.now_ms = self.now_ms.max(at),
                Some(_) | None => break,
            }
        }
        self.now_ms = end;
        self.turn();
    }

    fn next_ms(&self) -> Option<u64> {
        let due = self.due.keys().next().map(|(at, _)| *at);
        due.into_iter().chain(self.controller.next_wake_ms()).min()
    }

    /// Everything that is due at this moment, until nothing more is. One step for all that has
    /// piled up.
    pub fn turn(&mut self) {
        for _ in 0..10_000 {
            let mut events = self.metered(Self::watch);
            while let Some(entry) = self.due.first_entry()
                && entry.key().0 <= self.now_ms
            {
                events.push(entry.remove());
            }
            let waits = self.controller.next_wake_ms().is_some_and(|at| at <= self.now_ms);
            if events.is_empty() && !waits {
                return;
            }
            let effects = self.metered(|lab| lab.controller.step(events, lab.now_ms));
            self.check();
            let idle = effects.is_empty();
            for effect in effects {
                if self.dies_at(&effect, Moment::Before) {
                    break;
                }
                self.carry_out(&effect);
                if self.dies_at(&effect, Moment::After) {
                    break;
                }
            }
            if idle && self.due.first_key_value().is_none_or(|((at, _), _)| *at > self.now_ms) {
                // A wake-up that led to nothing is looked at again when time has passed.
                if self.controller.next_wake_ms().is_some_and(|at| at <= self.now_ms) {
                    self.now_ms += 1;
                }
            }
        }
    }

    /// From now on this promise may be broken where its text contains this. A test that leaves
    /// something wrong on purpose says so, and why.
    pub fn excuse(&mut self, promise: &'static str, part: impl Into<String>, _why: &'static str) {
        self.excuses.push(Excuse { promise, part: part.into() });
    }

    /// From now on this Service is to be refused, for a reason that only the test knows: what is
    /// promised of refused Services is judged.
    pub fn is_refused(&mut self, service: &str, _why: &'static str) {
        self.refused.insert(service.to_owned());
    }

    /// From now on this Service is to be served again.
    pub fn is_served(&mut self, service: &str) {
        self.refused.remove(service);
    }

    /// Holds what stands against what was promised.
    ///
    /// # Panics
    /// When a promise is broken that no test has excused: no test goes on from there.
    fn judge(&self) {
        // A node that drains is taken out when its time is over.
        let drains = self.controller.report().draining.as_ref().is_some_and(|all| !all.is_empty());
        if self.promises == Promises::NotJudged || drains {
            return;
        }
        let scene = judge::scene(&self.kubernetes, &self.azure, &self.config, &self.before);
        let scene = promise::Scene { refused: self.refused.clone(), ..scene };
        let broken =
            promise::judge(&scene).into_iter().map(|broken| (broken.promise, broken.to_string()));
        let excused = |promise: &str, line: &str| {
            self.excuses.iter().any(|e| e.promise == promise && line.contains(&e.part))
        };
        let broken = broken.filter(|(promise, line)| !excused(promise, line));
        let lines: Vec<String> = broken.map(|(_, line)| line).collect();
        assert!(lines.is_empty(), "promises are broken:\n{}", lines.join("\n"));
    }

    fn metered<T>(&mut self, work: impl FnOnce(&mut Self) -> T) -> T {
        let from = self.meter.map(|meter| (meter.clock)());
        let result = work(self);
        if let (Some(meter), Some(from)) = (&mut self.meter, from) {
            meter.spent += (meter.clock)().saturating_sub(from);
        }
        result
    }

    /// Reads the plan as a stranger would.
    ///
    /// # Panics
    /// When something is in it that must not be: no test goes on from there.
    fn check(&self) {
        if self.scrutiny == Scrutiny::None {
            return;
        }
        let (world, plan) = (self.controller.world(), self.controller.plan());
        let found = plan_check::check(world, self.config.policy(), plan);
        let lines: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert!(lines.is_empty(), "the plan breaks rules:\n{}", lines.join("\n"));
    }

    /// Whether the controller is killed at this effect, which then has happened.
    fn dies_at(&mut self, effect: &Effect, moment: Moment) -> bool {
        if matches!(effect, Effect::Say(_)) {
            return false;
        }
        if moment == Moment::Before {
            self.sent += 1;
        }
        if self.crash != Some((self.sent, moment)) {
            return false;
        }
        self.crash = None;
        self.restart();
        true
    }

    fn carry_out(&mut self, effect: &Effect) {
        self.sequence += 1;
        match effect {
            Effect::Azure { call, request } => {
                let call = *call;
                let needed = arm::permission::needed_by(request);
                debug_assert!(needed.is_ok(), "the Azure role does not have it: {needed:?}");
                let base = self.azure.options().base_url.clone();
                let sent = wire::azure_request(request, &base);
                if sent.method == "PUT" {
                    self.before.note(&sent.path);
                }
                let answer = self.azure.handle_shared(sent, self.now_ms);
                if request.method.is_write() {
                    if let Some(inspect) = self.inspect {
                        let at = self.azure.calls().len();
                        self.seen.extend(inspect(&self.azure).into_iter().map(|what| (at, what)));
                    }
                    if let Some(Witness(look)) = &mut self.witness {
                        look(&self.kubernetes, &self.azure, self.now_ms);
                    }
                }
                let (answer, delay) = wire::azure_answer(answer);
                let at = self.now_ms + delay + self.azure_latency_ms;
                self.due.insert((at, self.sequence), Event::Azure { call, answer });
            }
            Effect::Kubernetes { call, request } => {
                let call = *call;
                let answer = wire::kubernetes_call(&mut self.kubernetes, request, self.now_ms);
                let event = Event::KubernetesWritten { call, answer };
                self.due.insert((self.now_ms, self.sequence), event);
            }
            Effect::Say(notice) => self.notices.push(notice.clone()),
        }
    }

    /// What the watches bring.
    fn watch(&mut self) -> Vec<Event> {
        let mut facts = Vec::new();
        let revision = self.kubernetes.revision();
        for (kind, plural) in KINDS {
            match self.watched.get(&kind) {
                Some(seen) if *seen == revision => {}
                Some(seen) => match self.kubernetes.events_since(plural, *seen) {
                    Ok(events) => {
                        for WatchEvent { event, object, .. } in events {
                            let outside = kind == Kind::Pods && !has_egress_label(&object);
                            let gone = event == EventType::Deleted || outside;
                            facts.extend(self.fact(kind, &object, gone));
                        }
                    }
                    Err(_) => facts.extend(self.list(kind, plural)),
                },
                None => facts.extend(self.list(kind, plural)),
            }
            self.watched.insert(kind, revision);
        }
        facts.into_iter().map(Event::Kubernetes).collect()
    }

    fn list(&mut self, kind: Kind, plural: &str) -> Vec<KubernetesFact> {
        let mut facts = vec![KubernetesFact::ListBegin(kind)];
        let (listed, strays): (Vec<_>, Vec<_>) = (self.kubernetes.list(plural, None).into_iter())
            .partition(|object| kind != Kind::Pods || has_egress_label(object));
        for object in listed {
            facts.extend(self.fact(kind, &object, false));
        }
        facts.push(KubernetesFact::ListEnd(kind, None));
        if !self.watched.contains_key(&kind) {
            // Pods without the label are looked through once, at the start.
            for object in strays.iter().filter(|object| has_egress_finalizer(object)) {
                facts.extend(self.fact(kind, object, false));
            }
        }
        facts
    }

    fn fact(&mut self, kind: Kind, object: &Value, gone: bool) -> Option<KubernetesFact> {
        let interner = &mut self.interner;
        if kind == Kind::Pods && gone && has_egress_finalizer(object) {
            // It only lost its label.
            let pod = read::pod_from_value(object, interner).ok()?;
            return Some(KubernetesFact::Pod(Pod { egress: None, ..pod }));
        }
        fact::read(interner, self.config.policy(), &self.options.classes, kind, object, gone)
    }

    /// Azure writes and reads since the log was last cleared; polls of operations are reads.
    #[must_use]
    pub fn calls(&self) -> (usize, usize) {
        let writes = self.azure.calls().iter().filter(|c| c.method != "GET").count();
        (writes, self.azure.calls().len() - writes)
    }
}
