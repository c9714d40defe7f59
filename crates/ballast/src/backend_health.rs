//! Reads Azure's metric of health probes beside the controller.
//!
//! # Guarantees
//! - Planning and writing never wait for it and never see it: it looks at the controller between
//!   two steps, and sends by itself.
//! - One read a second at most, and each part of a load balancer once in a round.
//! - A refusal is logged once, with what to grant; reads then go at a tenth of the pace.

use crate::backends::BackendHealth;
use crate::engine::Engine;
use crate::shared::{SharedController, Turns};
use arm::{Answer, ArmError, Method, probe_status};
use control::Controller;
use control::backends::{Read, Turn, reads};
use edge::arm::Sender as Azure;
use edge::clock::{Clock, utc_seconds};
use edge::kubernetes::Sender as Kubernetes;
use edge::lease::leader::Standing;
use model::{ResourceId, ServiceName};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Between two reads.
const SPACING: Duration = Duration::from_secs(1);
/// Until it is looked again, where there was nothing to read.
const SOON: Duration = Duration::from_secs(5);
/// How far a read looks back: Azure's metric is some minutes late.
const LOOK_BACK_MS: u64 = 600_000;
/// How long a step of the controller may take until it is looked at again.
const PATIENCE: Duration = Duration::from_secs(5);
/// Rounds left out after a refusal: an operator has to grant the permission first.
const AFTER_REFUSAL: u32 = 10;

/// How it reads.
#[derive(Clone, Debug)]
pub struct Settings {
    /// From the start of one round to the next.
    pub pace: Duration,
    /// Differs between two processes.
    pub instance: String,
    /// Whether this process writes only while it holds the Lease.
    pub turns: Turns,
}

/// Reads until stopped, while this process leads.
pub async fn follow(
    engine: Engine,
    controller: SharedController,
    settings: Settings,
    stop: CancellationToken,
) {
    let Engine { clock, client, azure, .. } = engine;
    let (azure, kubernetes) = (azure.sender, Kubernetes::new(client));
    let backends = controller.watch_backends();
    let events = AtomicU64::new(0);
    let observer = Observer { azure, kubernetes, controller, settings, clock, backends, events };
    tokio::select! {
        () = stop.cancelled() => {}
        () = observer.run() => {}
    }
}

struct Observer {
    azure: Azure,
    kubernetes: Kubernetes,
    controller: SharedController,
    settings: Settings,
    clock: Clock,
    backends: BackendHealth,
    /// Number of the last Event.
    events: AtomicU64,
}

/// What became of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Round {
    /// There was nothing to read.
    Empty,
    /// The next one comes as usual.
    Done,
    /// Azure asked for a pause.
    Throttled(Duration),
    /// Azure refused.
    Refused,
}

impl Observer {
    async fn run(&self) {
        loop {
            let pause = match self.round().await {
                Round::Empty => self.settings.pace.min(SOON),
                Round::Done => self.settings.pace,
                Round::Throttled(pause) => pause.max(self.settings.pace),
                Round::Refused => self.settings.pace * AFTER_REFUSAL,
            };
            tokio::time::sleep(pause).await;
        }
    }

    async fn round(&self) -> Round {
        if !self.leads() {
            return Round::Empty;
        }
        let wanted = |c: &Controller| reads(c.world(), c.report());
        let Some(reads) = self.controller.look_within(PATIENCE, wanted).await else {
            return Round::Empty;
        };
        if reads.is_empty() {
            return Round::Empty;
        }
        let stand: BTreeSet<ResourceId> = reads.iter().map(|read| read.balancer.clone()).collect();
        self.backends.keep_troubles(&stand);
        for (at, read) in reads.into_iter().enumerate() {
            if at > 0 {
                tokio::time::sleep(SPACING).await;
            }
            match self.read(read).await {
                Round::Done => {}
                other => return other,
            }
        }
        Round::Done
    }

    fn leads(&self) -> bool {
        match self.controller.leader() {
            Some(leader) => leader.standing(self.clock.now_ms()) == Standing::Ours,
            None => self.settings.turns == Turns::Alone,
        }
    }

    async fn read(&self, read: Read) -> Round {
        let to_ms = self.clock.now_ms();
        let span = (utc_seconds(to_ms.saturating_sub(LOOK_BACK_MS)), utc_seconds(to_ms));
        let correlation = edge::random::uuid();
        let span = (span.0.as_str(), span.1.as_str());
        let request = probe_status::request(&read.balancer, &read.frontends, span, &correlation);
        let answer = match self.azure.send(&request).await {
            Answer::Reply(reply) if reply.status == 200 => {
                probe_status::read(&reply).map_err(|why| (why, Round::Done))
            }
            Answer::Reply(reply) => {
                let error = ArmError::of_reply(&reply);
                let round = match error.retry_after_ms.filter(|_| reply.status == 429) {
                    Some(ms) => Round::Throttled(Duration::from_millis(ms)),
                    None if reply.status == 403 => Round::Refused,
                    None => Round::Done,
                };
                Err((error.to_string(), round))
            }
            Answer::Fault(fault) => {
                Err((ArmError::of_fault(Method::Get, &fault).to_string(), Round::Done))
            }
        };
        match answer {
            Ok(series) => {
                self.note_trouble(&read, None);
                self.learn(read, series).await;
                Round::Done
            }
            Err((why, round)) => {
                let trouble = trouble(&read, &why, round);
                self.note_trouble(&read, Some(trouble));
                round
            }
        }
    }

    /// Says each trouble once, and that it is over.
    fn note_trouble(&self, read: &Read, now: Option<String>) {
        if !self.backends.note_trouble(&read.balancer, now.as_deref()) {
            return;
        }
        match now {
            Some(new) => tracing::warn!("backend health: {new}"),
            None => tracing::info!("backend health: {} is read again", last(&read.balancer)),
        }
    }

    async fn learn(&self, read: Read, series: Vec<probe_status::Series>) {
        let (backends, clock) = (self.backends.clone(), self.clock);
        let learn = move |controller: &Controller| {
            let facts = (controller.world(), controller.report());
            let turns = backends.learn(facts, &read, &series, clock.now_ms());
            let services = &controller.report().services;
            let named = turns.into_iter().filter_map(|turn| {
                let name = services.get(&turn.uid)?.name.clone();
                Some((turn, name))
            });
            named.collect::<Vec<_>>()
        };
        let turns = self.controller.look_within(PATIENCE, learn).await.unwrap_or_default();
        for (turn, name) in turns {
            self.tell(&turn, &name).await;
        }
    }

    /// Writes the Event, whose text is in the log, too.
    async fn tell(&self, turn: &Turn, name: &ServiceName) {
        let message = turn.message();
        match turn.now.is_out() {
            true => tracing::warn!("{name}: {message}"),
            false => tracing::info!("{name}: {message}"),
        }
        let number = self.events.fetch_add(1, Ordering::Relaxed) + 1;
        let call = turn.event(name, (&self.settings.instance, number), self.clock.now_ms());
        // What it says stands in the log.
        let _ = self.kubernetes.send(&call).await;
    }
}

fn last(id: &ResourceId) -> &str {
    id.as_str().rsplit('/').next().unwrap_or_default()
}

fn trouble(read: &Read, why: &str, round: Round) -> String {
    let name = last(&read.balancer);
    let next = match round {
        Round::Refused => {
            "; grant Microsoft.Insights/metrics/read (`ballast azure-role --for backend-health`)"
        }
        Round::Throttled(_) | Round::Done | Round::Empty => "; the next round reads it again",
    };
    format!("GET metrics of loadBalancers/{name}: {why}{next}")
}
