//! Leader election over a `coordination.k8s.io/v1` Lease.
//!
//! # Guarantees
//! Writing is allowed for the renew deadline after the start of the last renewal that succeeded,
//! which ends before anybody else may take the lease. On release the lease is left without a
//! holder, so that a waiting process takes it at its next look
//! ([`LeaseSettings::longest_vacancy_ms`]). A lease that is not renewed is taken when it has run
//! out, and not at the next look after that ([`LeaseSettings::longest_silence_ms`]).
//!
//! # Assumptions
//! Clocks of different machines may differ: a holder is judged by how long its record has not
//! changed before our eyes, never by the times in it.

pub mod alone;
pub mod leader;

pub use lease::{LeaseSettings, LeaseTimesError, record, rule};

use crate::clock::{Clock, micro_time};
use crate::kubernetes::sender::{exchange, status_text};
use crate::random;
use control::{Event, Leadership};
use http::Request;
use http::header::{ACCEPT, CONTENT_TYPE};
use kube::Client;
use kube::client::Body;
use leader::{Leader, Standing};
use lease::{Answer, Call, Miss, Next};
use model::Pause;
use model::pause::PAUSE;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// The right to write: a deadline that all who write look at.
#[derive(Clone, Debug)]
pub struct Held(Arc<AtomicU64>);

impl Held {
    /// For a process that is alone by arrangement: an emulator, a test, `--leader-elect=false`.
    #[must_use]
    pub fn always() -> Self {
        Self(Arc::new(AtomicU64::new(u64::MAX)))
    }

    /// Not yet.
    #[must_use]
    pub fn never() -> Self {
        Self(Arc::new(AtomicU64::new(0)))
    }

    /// Whether a write may be sent now.
    #[must_use]
    pub fn allows(&self, now_ms: u64) -> bool {
        now_ms < self.deadline_ms()
    }

    /// From when on no write may be sent, unless the lease is renewed.
    #[must_use]
    pub fn deadline_ms(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }

    /// Moves the deadline.
    pub fn set_deadline_ms(&self, deadline_ms: u64) {
        self.0.store(deadline_ms, Ordering::Release);
    }
}

/// A name for this process: host and random.
#[must_use]
pub fn identity() -> String {
    let host = std::env::var("HOSTNAME").ok().filter(|h| !h.is_empty());
    let host = host.or_else(|| {
        let text = std::fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
        Some(text.trim().to_string()).filter(|h| !h.is_empty())
    });
    format!("{}_{}", host.as_deref().unwrap_or("ballast"), random::uuid())
}

/// An election under way.
#[derive(Debug)]
pub struct Election {
    held: Held,
    leader: Leader,
    stop: CancellationToken,
    ended: CancellationToken,
    task: JoinHandle<()>,
}

impl Election {
    /// Starts to run for leader. `Event::Leadership` tells what comes of it, and `Event::Pause`,
    /// before the process leads, what an annotation of the Lease stops.
    ///
    /// # Errors
    /// The times do not fit together.
    pub fn start(
        client: Client,
        settings: LeaseSettings,
        clock: Clock,
        events: mpsc::Sender<Event>,
    ) -> Result<Self, LeaseTimesError> {
        settings.check()?;
        let held = Held::never();
        let leader = Leader::new(&settings, held.clone());
        let stop = CancellationToken::new();
        let candidate = Candidate {
            client,
            election: lease::Election::new(settings),
            leader: leader.clone(),
            clock,
            events,
            held: held.clone(),
            told: false,
            paused: None,
        };
        let ended = CancellationToken::new();
        let (running, last) = (candidate.run(stop.clone()), ended.clone().drop_guard());
        let task = tokio::spawn(async move {
            let _last = last;
            running.await;
        });
        Ok(Self { held, leader, stop, ended, task })
    }

    /// Ends when the election has ended: after [`Election::release`], or by a panic in it, after
    /// which this process never leads again.
    pub fn ended(&self) -> impl Future<Output = ()> + Send + use<> {
        self.ended.clone().cancelled_owned()
    }

    /// The right to write.
    #[must_use]
    pub fn held(&self) -> Held {
        self.held.clone()
    }

    /// Who leads.
    #[must_use]
    pub fn leader(&self) -> Leader {
        self.leader.clone()
    }

    /// Gives the lease up, so that a successor need not wait for it to run out. Call this when the
    /// last write has been answered.
    pub async fn release(self) {
        self.stop.cancel();
        // The task ends by itself; a panic in it has nothing left to release.
        let _ = self.task.await;
    }
}

struct Candidate {
    client: Client,
    /// The rules: what is asked of the API server, and what its answers mean.
    election: lease::Election,
    clock: Clock,
    events: mpsc::Sender<Event>,
    held: Held,
    leader: Leader,
    /// Whether the controller was told that it leads.
    told: bool,
    /// What the controller was told that an operator has paused.
    paused: Option<Pause>,
}

impl Candidate {
    async fn run(mut self, stop: CancellationToken) {
        let mut said = String::new();
        loop {
            let outcome = tokio::select! {
                biased;
                () = stop.cancelled() => break,
                outcome = self.attempt() => outcome,
            };
            self.held.set_deadline_ms(self.election.deadline_ms());
            match outcome {
                Ok(()) => {
                    self.leader.note(Standing::Ours);
                    said.clear();
                }
                Err(miss) => {
                    self.show(&miss);
                    let text = miss.to_string();
                    if text != said {
                        let settings = self.election.settings();
                        let lease = format!("{}/{}", settings.namespace, settings.name);
                        tracing::info!(lease, "the lease is not ours: {text}");
                        said = text;
                    }
                }
            }
            self.tell().await;
            let wait = self.election.pause_ms(self.clock.now_ms(), random::jittered);
            tokio::select! {
                () = stop.cancelled() => break,
                () = tokio::time::sleep(Duration::from_millis(wait)) => {}
            }
        }
        self.held.set_deadline_ms(0);
        self.leader.note(Standing::Nobody("this process is ending".to_owned()));
        if self.election.is_leading() {
            self.give_up().await;
        }
    }

    /// What an attempt that failed tells those who look on.
    fn show(&self, miss: &Miss) {
        match miss {
            Miss::Taken(holder) => self.leader.note(Standing::Theirs(holder.clone())),
            Miss::Failed(why) if !self.held.allows(self.clock.now_ms()) => {
                self.leader.note(Standing::Nobody(why.clone()));
            }
            Miss::Failed(_) | Miss::Raced => {}
        }
    }

    /// The controller learns what is paused, and after that whether it leads.
    async fn tell(&mut self) {
        let pause = self.election.annotation(PAUSE).and_then(Pause::read);
        if self.paused != pause {
            self.paused.clone_from(&pause);
            let _ = self.events.send(Event::Pause(pause)).await;
        }
        let leading = self.election.is_leading();
        if self.told == leading {
            return;
        }
        self.told = leading;
        let leadership = if leading { Leadership::Held } else { Leadership::Lost };
        let identity = &self.election.settings().identity;
        let what = if leading { "became leader" } else { "is no longer leader" };
        tracing::info!(identity, "{what}");
        // At a shutdown nobody listens any more.
        let _ = self.events.send(Event::Leadership(leadership)).await;
    }

    async fn attempt(&mut self) -> Result<(), Miss> {
        let now_ms = self.clock.now_ms();
        let next = self.election.attempt(now_ms, &micro_time(now_ms));
        self.follow(next).await
    }

    async fn give_up(&mut self) {
        let next = self.election.resign(&micro_time(self.clock.now_ms()));
        match self.follow(next).await {
            Ok(()) => tracing::info!("the lease is released"),
            Err(miss) => {
                tracing::warn!("the lease is not released and has to run out: {miss}");
            }
        }
    }

    /// Makes calls until the attempt is over.
    async fn follow(&mut self, mut next: Next) -> Result<(), Miss> {
        loop {
            match next {
                Next::Done(outcome) => return outcome,
                Next::Call(call) => {
                    let answer = self.call(&call).await;
                    let now_ms = self.clock.now_ms();
                    next = self.election.answered(answer, now_ms, &micro_time(now_ms));
                }
            }
        }
    }

    async fn call(&self, call: &Call) -> Answer {
        let request = Request::builder()
            .method(call.method)
            .uri(&call.path)
            .header(ACCEPT, "application/json")
            .header(CONTENT_TYPE, "application/json")
            .body(
                call.body
                    .as_ref()
                    .map_or_else(Body::empty, |body| Body::from(body.to_string().into_bytes())),
            );
        let request = match request {
            Ok(request) => request,
            Err(e) => return Answer::Fault(format!("{} is no path: {e}", call.path)),
        };
        let limit = Duration::from_millis(self.election.settings().call_limit_ms());
        match exchange(&self.client, request, limit).await {
            Ok(reply) => Answer::Reply {
                status: reply.status.as_u16(),
                says: status_text(reply.status, &reply.body),
                body: serde_json::from_slice(&reply.body).ok(),
            },
            Err(why) => Answer::Fault(why),
        }
    }
}

#[cfg(test)]
mod tests;
