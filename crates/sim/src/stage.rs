//! The stage: both emulators, the processes between them, one clock, one queue of what is to
//! happen.

use crate::canary::Mutant;
use crate::check::{Breach, Ledger};
use crate::config::Config;
use crate::election::Lease;
use crate::fault::Fault;
pub use crate::happening::{Happening, Rightful, Sent};
use crate::interrupt::Interruption;
use crate::judge::Before;
use crate::poison::Poison;
use crate::process::{Cluster, Hold, Listed, Process, Reading, plural};
use crate::scene::Scene;
use crate::shortage::Shortage;
use crate::swarm::Pace;
use crate::tally::{Tally, count};
use crate::trace::Trace;
use crate::truth::Truth;
use crate::weather::Weather;
use azure_emulator::Azure;
use control::Event;
use kube_emulator::Store;
use model::world::Kind;
use std::collections::BTreeMap;

/// When a run begins, in milliseconds since 1970.
pub const START_MS: u64 = 1_700_000_000_000;

/// Happenings at one moment that are taken for going round and round.
const AT_ONCE: u32 = 5_000;

/// Everything in a run.
#[derive(Debug)]
pub struct Stage {
    /// The cluster.
    pub kubernetes: Store,
    /// The cloud.
    pub azure: Azure,
    /// The time, in milliseconds since 1970.
    pub now_ms: u64,
    /// The processes.
    pub processes: Vec<Process>,
    /// The lease, where there is more than one process.
    pub lease: Lease,
    /// The API server is unreachable until then.
    pub api_down_until: u64,
    /// A Service that Azure refuses.
    pub poison: Option<Poison>,
    /// A limit of Azure's that is used up.
    pub(crate) shortage: Option<Shortage>,
    /// Where faults come from.
    pub weather: Weather,
    /// How long things take.
    pub pace: Pace,
    /// How long Azure takes for a list beside that, in milliseconds.
    pub(crate) list_ms: u64,
    /// What is counted.
    pub tally: Tally,
    /// What is told.
    pub trace: Trace,
    /// What is really so.
    pub truth: Truth,
    /// What checks remember.
    pub ledger: Ledger,
    /// The first rule that was broken.
    pub breach: Option<Breach>,
    /// The first plan in which `plan-check` has found something, which counts where nothing else
    /// was broken: what Azure shows tells more.
    pub misplanned: Option<Breach>,
    /// What is wrong with the controller on purpose.
    pub mutant: Option<Mutant>,
    /// Effects carried out so far, and calls sent so far.
    pub numbers: (u64, u64),
    /// Pairs of calls in flight at the same time, recorded where faults are enumerated: for swaps.
    pub pairs: Vec<(u64, u64)>,
    /// Calls that write, to Azure or to Kubernetes, where it is written down what befalls them.
    pub writes: Vec<u64>,
    /// Faults that may befall each call, where it is written down what befalls them.
    pub suiting: Vec<(u64, Fault)>,
    /// Deliveries of watches so far: arranged, and made.
    pub deliveries: (u64, u64),
    pub(crate) under_way: BTreeMap<u64, ()>,
    pub(crate) swapped: BTreeMap<u64, Happening>,
    pub(crate) scene: Scene,
    pub(crate) config: Config,
    reading: Reading,
    /// What stood in Azure in the beginning.
    pub(crate) before: Before,
    pub(crate) queue: BTreeMap<(u64, u64), Happening>,
    sequence: u64,
    /// Happenings in the queue that are more than waiting.
    pub(crate) busy: u64,
    seen_revision: u64,
    /// Happenings since time last passed.
    at_once: u32,
}

impl Stage {
    /// Sets a stage with so many processes.
    #[must_use]
    pub fn new(scene: Scene, pace: Pace, weather: Weather, processes: usize) -> Self {
        let config = scene.config(&serde_json::json!({}));
        let mut azure = scene.cloud();
        azure.options_mut().lro_ms = pace.operation_ms;
        let mut before = Before::default();
        before.look(&azure);
        let mut stage = Self {
            kubernetes: scene.cluster(START_MS),
            azure,
            now_ms: START_MS,
            processes: Vec::new(),
            lease: Lease::default(),
            api_down_until: 0,
            poison: None,
            shortage: None,
            weather,
            pace,
            list_ms: 0,
            tally: Tally::default(),
            trace: Trace::default(),
            truth: Truth::default(),
            ledger: Ledger::default(),
            breach: None,
            misplanned: None,
            mutant: None,
            numbers: (0, 0),
            pairs: Vec::new(),
            writes: Vec::new(),
            suiting: Vec::new(),
            deliveries: (0, 0),
            under_way: BTreeMap::new(),
            swapped: BTreeMap::new(),
            scene,
            config,
            reading: Reading::default(),
            before,
            queue: BTreeMap::new(),
            sequence: 0,
            busy: 0,
            seen_revision: 0,
            at_once: 0,
        };
        let hold = if processes > 1 { Hold::Not } else { Hold::Always };
        for number in 0..processes {
            let mut process = Process::start(&stage.cluster(), number, 0, hold);
            process.skew_ms = stage.weather.skew_ms();
            stage.processes.push(process);
            if processes > 1 {
                stage.queue_at(stage.now_ms + number as u64, Happening::Renew(number, 0));
            }
        }
        stage.truth.placed_by_labels = stage.scene.has_selectors();
        stage.truth.follow(&stage.kubernetes, START_MS);
        stage.arrange_watches();
        stage
    }

    /// What a process that starts now is told of its cluster.
    pub(crate) fn cluster(&self) -> Cluster {
        let policy = self.config.policy().clone();
        let uid = crate::laboratory::cluster_uid(&self.kubernetes);
        Cluster { policy, layout: self.scene.layout, uid, reading: self.reading }
    }

    /// All processes read what they watch in this way, those that start later, too.
    pub(crate) fn read_watches(&mut self, reading: Reading) {
        self.reading = reading;
        self.processes.iter_mut().for_each(|process| process.reading = reading);
    }

    /// Puts something into the queue.
    pub(crate) fn queue_at(&mut self, at_ms: u64, happening: Happening) {
        self.sequence += 1;
        if !happening.is_waiting() {
            self.busy += 1;
        }
        self.queue.insert((at_ms.max(self.now_ms), self.sequence), happening);
    }

    /// What is in the queue beside waiting, in a few words.
    pub(crate) fn queued(&self) -> Vec<String> {
        let queue = self.queue.iter().filter(|(_, happening)| !happening.is_waiting());
        let soon = |at: u64| at.saturating_sub(self.now_ms);
        queue.map(|((at, _), what)| format!("in {} ms {what}", soon(*at))).collect()
    }

    /// Lets everything happen up to a time, that time included.
    pub fn advance(&mut self, until_ms: u64) {
        while self.breach.is_none() && self.next_ms().is_some_and(|at| at <= until_ms) {
            self.happen();
        }
        self.now_ms = self.now_ms.max(until_ms);
    }

    /// Lets things happen until so many effects were carried out, or this much time has passed.
    pub(crate) fn reach_effect(&mut self, effect: u64, limit_ms: u64) {
        let end = self.now_ms + limit_ms;
        while self.breach.is_none()
            && self.numbers.0 < effect
            && self.next_ms().is_some_and(|at| at <= end)
        {
            self.happen();
        }
    }

    fn next_ms(&self) -> Option<u64> {
        self.queue.first_key_value().map(|((at, _), _)| *at)
    }

    /// Lets things happen until nothing is under way and nothing waits, or this much time has
    /// passed. True when it has settled.
    pub fn settle(&mut self, limit_ms: u64) -> bool {
        let end = self.now_ms + limit_ms;
        while self.breach.is_none() {
            if self.is_quiet() {
                return true;
            }
            match self.next_ms() {
                Some(at) if at <= end => self.happen(),
                Some(_) | None => break,
            }
        }
        self.now_ms = self.now_ms.max(end);
        false
    }

    /// Whether nothing is on its way to anybody.
    #[must_use]
    pub fn rests(&self) -> bool {
        self.busy == 0
    }

    /// Whether nothing is under way and nothing waits.
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        let rests = |(number, process): (usize, &Process)| {
            if process.hold == Hold::Ended {
                return true;
            }
            let leads = match process.hold {
                Hold::Always => true,
                Hold::Since(_) => self.lease.holder == Some((number, process.epoch)),
                Hold::Not | Hold::Ended => false,
            };
            process.inbox.is_empty()
                && process.paused_until <= self.now_ms
                && (!leads || (process.is_listed() && self.is_settled(&process.controller)))
        };
        let led = self.processes.iter().any(|p| p.may_write(self.now_ms));
        self.busy == 0 && led && self.processes.iter().enumerate().all(rests)
    }

    /// One thing happens.
    fn happen(&mut self) {
        let Some(((at, _), happening)) = self.queue.pop_first() else { return };
        self.at_once = if at > self.now_ms { 0 } else { self.at_once + 1 };
        self.now_ms = self.now_ms.max(at);
        if !happening.is_waiting() {
            self.busy -= 1;
        }
        if self.at_once > AT_ONCE {
            self.fail("L3", "things go round and round while no time passes".to_owned());
        }
        self.tally.steps += 1;
        self.check_waits();
        self.check_bursts();
        match happening {
            Happening::AzureArrives(sent, call, request, number) => {
                self.azure_arrives(sent, call, *request, number);
            }
            Happening::ApiArrives(sent, call, request, number) => {
                self.api_arrives(sent, call, *request, number);
            }
            Happening::LeaseArrives(number, epoch, call, ordeal, limit) => {
                self.lease_arrives((number, epoch), *call, ordeal, limit);
            }
            other => self.reach(other),
        }
        self.follow();
    }

    /// What the checks and the watches make of what has changed in the cluster.
    pub fn follow(&mut self) {
        if self.kubernetes.revision() != self.seen_revision {
            self.truth.follow(&self.kubernetes, self.now_ms);
            self.arrange_watches();
        }
    }

    /// One process in fair weather, beside Azure whose operations take so long.
    #[cfg(test)]
    pub(crate) fn plain(layout: crate::scene::Layout, operation_ms: u64) -> Self {
        let pace = Pace { azure_ms: 5, api_ms: 2, watch_ms: 5, operation_ms };
        Self::new(Scene::plain(layout, 3, 7), pace, Weather::Fair, 1)
    }

    /// A new object, which is noticed at once.
    #[cfg(test)]
    pub(crate) fn create(&mut self, object: serde_json::Value) -> serde_json::Value {
        let made = self.kubernetes.create(object, self.now_ms).expect("a new object");
        self.follow();
        serde_json::Value::clone(&made)
    }

    /// Something reaches a process, unless that life of it is over.
    fn reach(&mut self, happening: Happening) {
        let (number, epoch) = match &happening {
            Happening::AzureAnswers(number, epoch, ..)
            | Happening::ApiAnswers(number, epoch, ..)
            | Happening::Watch(number, epoch, _)
            | Happening::Step(number, epoch)
            | Happening::Renew(number, epoch)
            | Happening::LeaseAnswers(number, epoch, _)
            | Happening::Wake(number, epoch, _) => (*number, *epoch),
            Happening::AzureArrives(..)
            | Happening::ApiArrives(..)
            | Happening::LeaseArrives(..) => return,
        };
        let process = &mut self.processes[number];
        if epoch != process.epoch || process.hold == Hold::Ended {
            return;
        }
        if let Happening::Wake(_, _, at) = happening
            && process.wake_at != Some(at)
        {
            // An earlier one has taken its place.
            return;
        }
        if process.paused_until > self.now_ms {
            let until = process.paused_until;
            if let Happening::Wake(number, epoch, _) = happening {
                process.wake_at = Some(until);
                self.queue_at(until, Happening::Wake(number, epoch, until));
            } else {
                self.queue_at(until, happening);
            }
            return;
        }
        match happening {
            Happening::AzureAnswers(_, _, call, answer, id) => {
                self.deliver(number, id, Event::Azure { call, answer: *answer });
            }
            Happening::ApiAnswers(_, _, call, answer, id) => {
                self.processes[number].note_answer(&answer);
                self.deliver(number, id, Event::KubernetesWritten { call, answer: *answer });
            }
            Happening::Watch(_, _, kind) => self.watch(number, kind),
            Happening::Step(..) => {
                self.processes[number].step_queued = false;
                self.step(number);
            }
            Happening::Wake(..) => {
                self.processes[number].wake_at = None;
                self.step(number);
            }
            Happening::Renew(..) => self.renew(number),
            Happening::LeaseAnswers(_, _, answer) => self.hear_of_lease(number, *answer),
            Happening::AzureArrives(..)
            | Happening::ApiArrives(..)
            | Happening::LeaseArrives(..) => {}
        }
    }

    fn deliver(&mut self, number: usize, id: u64, event: Event) {
        self.under_way.remove(&id);
        if let Event::Azure { call, .. } | Event::KubernetesWritten { call, .. } = &event {
            self.learn_answer(number, *call);
        }
        let process = &mut self.processes[number];
        process.outstanding = process.outstanding.saturating_sub(1);
        process.inbox.push(event);
        self.queue_step(number);
    }

    pub(crate) fn queue_step(&mut self, number: usize) {
        let process = &mut self.processes[number];
        if !process.step_queued {
            process.step_queued = true;
            let epoch = process.epoch;
            self.queue_at(self.now_ms, Happening::Step(number, epoch));
        }
    }

    /// A delivery for each watch that something happened to.
    pub(crate) fn arrange_watches(&mut self) {
        let revision = self.kubernetes.revision();
        self.seen_revision = revision;
        let mut due = Vec::new();
        for (number, process) in self.processes.iter_mut().enumerate() {
            for (kind, stream) in &mut process.streams {
                if stream.queued {
                    continue;
                }
                let news = stream.listed == Listed::No
                    || match self.kubernetes.events_since(plural(*kind), stream.revision) {
                        Ok(events) => !events.is_empty(),
                        Err(_) => true,
                    };
                if news {
                    stream.queued = true;
                    due.push((number, process.epoch, *kind));
                } else {
                    stream.reach(revision);
                }
            }
        }
        for (number, epoch, kind) in due {
            let usual = self.weather.jitter_ms(self.pace.watch_ms);
            self.deliveries.0 += 1;
            let lag = match self.weather.watch_lag_ms(self.deliveries.0) {
                Some(lag) => {
                    count(&mut self.tally.faults, Fault::WatchLag.name());
                    lag
                }
                None => usual,
            };
            self.queue_at(self.now_ms + lag, Happening::Watch(number, epoch, kind));
        }
    }

    /// A watch brings what is new, or breaks.
    fn watch(&mut self, number: usize, kind: Kind) {
        if self.api_down_until > self.now_ms {
            let epoch = self.processes[number].epoch;
            let again = self.api_down_until + 1_000;
            self.queue_at(again, Happening::Watch(number, epoch, kind));
            return;
        }
        self.deliveries.1 += 1;
        let fault = self.weather.watch(self.deliveries.1);
        if let Some(fault) = fault {
            count(&mut self.tally.faults, fault.name());
            self.trace.say(self.now_ms, || format!("watch of {}: {}", plural(kind), fault.what()));
        }
        let back = self.weather.stale_relist(self.deliveries.1);
        let (now_ms, newest) = (self.now_ms, self.kubernetes.revision());
        let process = &mut self.processes[number];
        let Some(stream) = process.streams.get_mut(&kind) else { return };
        stream.queued = false;
        let interrupted = stream.interrupted.take();
        let fault = interrupted.map_or(fault, |_| Some(Fault::WatchBroken));
        let old = match interrupted {
            Some(Interruption::Old(revision)) => Some(newest.saturating_sub(revision)),
            Some(Interruption::Missed) | None => None,
        };
        let back = old.or(back);
        let seen = stream.revision;
        let events = match stream.listed {
            Listed::No => None,
            Listed::Yes => self.kubernetes.events_since(plural(kind), seen).ok(),
        };
        match (events, fault) {
            (None, _) | (Some(_), Some(Fault::WatchExpired | Fault::WatchBroken)) => {
                let again = stream.listed == Listed::Yes;
                let stale =
                    process.list(&mut self.kubernetes, kind, back.filter(|_| again), now_ms);
                if stale && old.is_none() {
                    count(&mut self.tally.faults, Fault::StaleRelist.name());
                }
            }
            (Some(events), fault) => {
                let first = if fault == Some(Fault::WatchPartial) { 1 } else { events.len() };
                for event in events.iter().take(first) {
                    process.hear(kind, event);
                }
                match fault {
                    Some(Fault::WatchDuplicate) => {
                        events.iter().take(first).for_each(|event| process.hear(kind, event));
                    }
                    Some(Fault::WatchReplay) => {
                        // Not after the end of an object: no server sends that.
                        let old = process.streams.get(&kind).and_then(|s| s.old.clone());
                        if let Some(old) = old.filter(|old| self.truth.still_matters(old)) {
                            process.tell(kind, &old, false);
                        }
                    }
                    Some(Fault::Bookmark) => process.inbox.push(Event::Tick),
                    _ => {}
                }
            }
        }
        if !process.inbox.is_empty() {
            self.queue_step(number);
        }
        if old.is_some() {
            self.delay_watch(number, kind);
        }
        self.arrange_watches();
    }

    /// Notes that a rule was broken, unless one was before.
    pub(crate) fn fail(&mut self, rule: &'static str, text: String) {
        if self.breach.is_none() {
            self.trace.say(self.now_ms, || format!("BROKEN {rule}: {text}"));
            self.breach = Some(Breach { rule, text, at_ms: self.now_ms });
        }
    }
}
