//! The controller with its sockets: watches, ARM, lease and the loop that drives it.

use crate::azure::AzureConnection;
use crate::exit::{Exit, Failure};
use control::{Controller, Effect, Event, Options};
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
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// The controller, driven by the runner and looked at by pages.
#[derive(Clone, Debug)]
pub struct SharedController(Arc<Mutex<Controller>>);

impl SharedController {
    /// Shares a controller.
    #[must_use]
    pub fn new(controller: Controller) -> Self {
        Self(Arc::new(Mutex::new(controller)))
    }

    /// Looks at it between two steps.
    pub fn look<T>(&self, look: impl FnOnce(&Controller) -> T) -> T {
        look(&self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Step for SharedController {
    fn step(&mut self, events: Vec<Event>, now_ms: u64) -> Vec<Effect> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).step(events, now_ms)
    }

    fn next_wake_ms(&self) -> Option<u64> {
        self.look(Controller::next_wake_ms)
    }
}

/// Kinds that planning looks at under a policy.
#[must_use]
pub fn kinds(policy: &Policy) -> Vec<Kind> {
    let mut kinds = vec![Kind::Services, Kind::Nodes];
    match policy.layout {
        Layout::Single | Layout::PerNodeSet { .. } => {}
        Layout::Several(_) => kinds.extend([Kind::EndpointSlices, Kind::Namespaces]),
        Layout::PerService => kinds.extend([Kind::EndpointSlices, Kind::Pods]),
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
        let (sender, receiver) = channel();
        let election = lease
            .map(|settings| {
                Election::start(self.client.clone(), settings, self.clock, sender.clone())
            })
            .transpose()
            .map_err(|e| Failure::new(Exit::Usage, e))?;
        let held = election.as_ref().map_or_else(Held::always, Election::held);
        let policy = controller.look(|c| c.policy().clone());
        self.watch(&policy, classes, &sender, &stop);
        self.runner(held).run(controller, sender, receiver, stop).await;
        if let Some(election) = election {
            election.release().await;
        }
        Ok(())
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
