//! The controller with its sockets: watches, ARM, lease and the loop that drives it.

use crate::azure::AzureConnection;
use crate::exit::{Exit, Failure};
use control::{Controller, Effect, Event, Histogram, Options};
use edge::clock::Clock;
use edge::kubernetes::sources::{SourceSettings, sources};
use edge::kubernetes::{Sender, watch_all};
use edge::lease::{Election, Held, LeaseSettings};
use edge::notice::NoticeSink;
use edge::runner::{Runner, Step, channel};
use kube::Client;
use model::Policy;
use model::policy::Layout;
use model::world::Kind;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError, TryLockError};
use std::time::Instant;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Upper bounds of the times that are told apart, in microseconds.
const STEP_BOUNDS_US: [u64; 9] =
    [1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000];

/// The controller, driven by the runner and looked at by pages.
#[derive(Clone, Debug)]
pub struct SharedController {
    controller: Arc<Mutex<Controller>>,
    steps_us: Arc<Mutex<Histogram>>,
}

impl SharedController {
    /// Shares a controller.
    #[must_use]
    pub fn new(controller: Controller) -> Self {
        let steps_us = Arc::new(Mutex::new(Histogram::new(&STEP_BOUNDS_US)));
        Self { controller: Arc::new(Mutex::new(controller)), steps_us }
    }

    /// How long its steps took, in microseconds: taking in what happened, planning, and making
    /// requests.
    #[must_use]
    pub fn step_times_us(&self) -> Histogram {
        self.steps_us.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Looks at it between two steps.
    pub fn look<T>(&self, look: impl FnOnce(&Controller) -> T) -> T {
        look(&self.controller.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Looks at it if no step is under way.
    pub fn try_look<T>(&self, look: impl FnOnce(&Controller) -> T) -> Option<T> {
        match self.controller.try_lock() {
            Ok(controller) => Some(look(&controller)),
            Err(TryLockError::Poisoned(poisoned)) => Some(look(&poisoned.into_inner())),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

impl Step for SharedController {
    fn step(&mut self, events: Vec<Event>, now_ms: u64) -> Vec<Effect> {
        let mut controller = self.controller.lock().unwrap_or_else(PoisonError::into_inner);
        let from = Instant::now();
        let effects = controller.step(events, now_ms);
        let took_us = u64::try_from(from.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.steps_us.lock().unwrap_or_else(PoisonError::into_inner).add(took_us);
        effects
    }

    fn next_wake_ms(&self) -> Option<u64> {
        self.look(Controller::next_wake_ms)
    }
}

/// Kinds that planning looks at under a policy.
#[must_use]
pub fn kinds(policy: &Policy) -> Vec<Kind> {
    let mut kinds = vec![Kind::Services, Kind::Nodes, Kind::GatedPods];
    match policy.layout {
        Layout::Single | Layout::PerNodeSet { .. } => {}
        Layout::Several(_) => kinds.extend([Kind::EndpointSlices, Kind::Namespaces]),
        Layout::PerService => return Kind::CONTAINER.to_vec(),
    }
    kinds
}

/// What a controller is connected to.
#[derive(Clone)]
pub struct Engine {
    /// The clock.
    pub clock: Clock,
    /// The cluster.
    pub client: Client,
    /// Azure.
    pub azure: AzureConnection,
    /// Where notices go.
    pub notices: NoticeSink,
}

impl Engine {
    /// Drives a controller until stopped. With `lease` it writes while it holds the lease, without
    /// one it always may.
    ///
    /// # Errors
    /// The lease's times do not fit.
    pub async fn run(
        &self,
        controller: SharedController,
        lease: Option<LeaseSettings>,
        classes: &BTreeSet<String>,
        stop: CancellationToken,
    ) -> Result<(), Failure> {
        let policy = controller.look(|c| c.policy().clone());
        self.drive(controller, &policy, lease, classes, stop).await.map(|_| ())
    }

    /// As [`Engine::run`], with something around the controller, which is given back.
    ///
    /// # Errors
    /// The lease's times do not fit.
    pub async fn drive<S: Step>(
        &self,
        controller: S,
        policy: &Policy,
        lease: Option<LeaseSettings>,
        classes: &BTreeSet<String>,
        stop: CancellationToken,
    ) -> Result<S, Failure> {
        let (sender, receiver) = channel();
        let election = lease
            .map(|settings| {
                Election::start(self.client.clone(), settings, self.clock, sender.clone())
            })
            .transpose()
            .map_err(|e| Failure::new(Exit::Usage, e))?;
        let held = election.as_ref().map_or_else(Held::always, Election::held);
        self.watch(policy, classes, &sender, &stop);
        let controller = self.runner(held).run(controller, sender, receiver, stop).await;
        if let Some(election) = election {
            election.release().await;
        }
        Ok(controller)
    }

    /// The loop, with this right to write.
    pub(crate) fn runner(&self, held: Held) -> Runner {
        Runner {
            clock: self.clock,
            azure: Arc::new(self.azure.sender.clone()),
            kubernetes: Arc::new(Sender::new(self.client.clone())),
            held,
            notices: self.notices.clone(),
        }
    }

    /// Starts a watch for each kind.
    pub(crate) fn watch(
        &self,
        policy: &Policy,
        classes: &BTreeSet<String>,
        events: &mpsc::Sender<Event>,
        stop: &CancellationToken,
    ) {
        let settings = SourceSettings { classes: classes.clone(), group: policy.group.clone() };
        let sources = sources(&kinds(policy), &settings);
        watch_all(&self.client, sources, events, &stop.child_token()).detach_all();
    }
}

/// The controller's options, with a name that differs between two processes.
#[must_use]
pub fn options(classes: BTreeSet<String>) -> Options {
    let instance = edge::random::uuid().chars().filter(|c| *c != '-').take(8).collect();
    Options { instance, classes, ..Options::default() }
}
