//! The controller with its sockets: watches, ARM, lease and the loop that drives it.

use crate::azure::AzureConnection;
use crate::exit::{Exit, Failure};
use crate::listing::kinds;
use crate::shared::SharedController;
use control::{Event, Leadership, Options};
use edge::clock::Clock;
use edge::kubernetes::sources::{SourceSettings, sources};
use edge::kubernetes::{Sender, watch_all};
use edge::lease::alone::heed_pauses;
use edge::lease::{Election, Held, LeaseSettings};
use edge::notice::NoticeSink;
use edge::runner::{Runner, Step, channel};
use edge::vital::Vital;
use kube::Client;
use model::{Policy, ServiceName};
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// By what right a process writes.
#[derive(Clone, Debug)]
pub enum Right {
    /// It holds this Lease.
    Lease(LeaseSettings),
    /// It is alone by arrangement; this Lease only says what an operator has paused.
    Alone(ServiceName),
}

impl Right {
    /// What a controller begins with.
    #[must_use]
    pub fn leadership(&self) -> Leadership {
        match self {
            Self::Lease(_) => Leadership::Lost,
            Self::Alone(_) => Leadership::Held,
        }
    }

    /// The Lease that has to be held.
    #[must_use]
    pub fn lease(&self) -> Option<&LeaseSettings> {
        match self {
            Self::Lease(settings) => Some(settings),
            Self::Alone(_) => None,
        }
    }
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
    /// Drives a controller until stopped, with these tasks beside it.
    ///
    /// # Errors
    /// The lease's times do not fit, or a task has ended that must not: `stop` is cancelled then.
    pub async fn run(
        &self,
        controller: SharedController,
        right: Right,
        classes: &BTreeSet<String>,
        mut tasks: Vital,
        stop: CancellationToken,
    ) -> Result<(), Failure> {
        let policy = controller.look(|c| c.policy().clone());
        let (sender, receiver) = channel();
        let election = self.stand(right, &sender, &stop, &mut tasks).await?;
        if let Some(election) = &election {
            controller.note_leader(election.leader());
        }
        self.watch(&policy, classes, &sender, &stop, &mut tasks);
        self.go(controller, election, (sender, receiver), tasks, stop).await?;
        Ok(())
    }

    /// As [`Engine::run`], with something around the controller, which is given back.
    ///
    /// # Errors
    /// As [`Engine::run`].
    pub async fn drive<S: Step>(
        &self,
        controller: S,
        policy: &Policy,
        right: Right,
        classes: &BTreeSet<String>,
        stop: CancellationToken,
    ) -> Result<S, Failure> {
        let (sender, receiver) = channel();
        let mut tasks = Vital::default();
        let election = self.stand(right, &sender, &stop, &mut tasks).await?;
        self.watch(policy, classes, &sender, &stop, &mut tasks);
        self.go(controller, election, (sender, receiver), tasks, stop).await
    }

    /// Runs for leader, where processes take turns. Either way the controller hears of a pause
    /// before it may write.
    async fn stand(
        &self,
        right: Right,
        events: &mpsc::Sender<Event>,
        stop: &CancellationToken,
        tasks: &mut Vital,
    ) -> Result<Option<Election>, Failure> {
        let (client, events) = (self.client.clone(), events.clone());
        match right {
            Right::Lease(settings) => {
                let election = Election::start(client, settings, self.clock, events);
                let election = election.map_err(|e| Failure::new(Exit::Usage, e))?;
                tasks.spawn("the election of a leader", election.ended());
                Ok(Some(election))
            }
            Right::Alone(lease) => {
                heed_pauses(client, lease, events, stop.child_token(), tasks).await;
                Ok(None)
            }
        }
    }

    /// The loop until `stop`; then the lease is given up.
    async fn go<S: Step>(
        &self,
        controller: S,
        election: Option<Election>,
        (sender, receiver): (mpsc::Sender<Event>, mpsc::Receiver<Event>),
        mut tasks: Vital,
        stop: CancellationToken,
    ) -> Result<S, Failure> {
        let held = election.as_ref().map_or_else(Held::always, Election::held);
        let runner = self.runner(held);
        let running = runner.run(controller, sender, receiver, stop.clone());
        let (controller, whole) = tasks.guard(running, &stop).await;
        if let Some(election) = election {
            election.release().await;
        }
        whole.map(|()| controller).map_err(|broken| Failure::new(Exit::Internal, broken))
    }

    /// The loop, with this right to write.
    pub(crate) fn runner(&self, held: Held) -> Runner {
        Runner {
            clock: self.clock,
            azure: Arc::new(self.azure.sender.clone().under_lease(held.clone(), self.clock)),
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
        tasks: &mut Vital,
    ) {
        let settings = SourceSettings { classes: classes.clone(), group: policy.group.clone() };
        let sources = sources(&kinds(policy), &settings);
        watch_all(&self.client, sources, events, &stop.child_token(), tasks);
    }
}

/// The controller's options, with a name that differs between two processes.
#[must_use]
pub fn options(classes: BTreeSet<String>) -> Options {
    let instance = edge::random::uuid().chars().filter(|c| *c != '-').take(8).collect();
    Options { instance, classes, ..Options::default() }
}
