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
    /// Drives a controller until stopped.
    ///
    /// # Errors
    /// The lease's times do not fit.
    pub async fn run(
        &self,
        controller: SharedController,
        right: Right,
        classes: &BTreeSet<String>,
        stop: CancellationToken,
    ) -> Result<(), Failure> {
        let policy = controller.look(|c| c.policy().clone());
        let (sender, receiver) = channel();
        let election = self.stand(right, &sender, &stop).await?;
        if let Some(election) = &election {
            controller.note_leader(election.leader());
        }
        self.watch(&policy, classes, &sender, &stop);
        self.go(controller, election, (sender, receiver), stop).await;
        Ok(())
    }

    /// As [`Engine::run`], with something around the controller, which is given back.
    ///
    /// # Errors
    /// The lease's times do not fit.
    pub async fn drive<S: Step>(
        &self,
        controller: S,
        policy: &Policy,
        right: Right,
        classes: &BTreeSet<String>,
        stop: CancellationToken,
    ) -> Result<S, Failure> {
        let (sender, receiver) = channel();
        let election = self.stand(right, &sender, &stop).await?;
        self.watch(policy, classes, &sender, &stop);
        Ok(self.go(controller, election, (sender, receiver), stop).await)
    }

    /// Runs for leader, where processes take turns. Either way the controller hears of a pause
    /// before it may write.
    async fn stand(
        &self,
        right: Right,
        events: &mpsc::Sender<Event>,
        stop: &CancellationToken,
    ) -> Result<Option<Election>, Failure> {
        let (client, events) = (self.client.clone(), events.clone());
        match right {
            Right::Lease(settings) => Election::start(client, settings, self.clock, events)
                .map(Some)
                .map_err(|e| Failure::new(Exit::Usage, e)),
            Right::Alone(lease) => {
                heed_pauses(client, lease, events, stop.child_token()).await;
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
        stop: CancellationToken,
    ) -> S {
        let held = election.as_ref().map_or_else(Held::always, Election::held);
        let controller = self.runner(held).run(controller, sender, receiver, stop).await;
        if let Some(election) = election {
            election.release().await;
        }
        controller
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
