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

pub mod leader;
pub mod record;
pub mod rule;

use crate::clock::{Clock, micro_time};
use crate::kubernetes::sender::{ServerReply, exchange, status_text};
use crate::random;
use control::{Event, Leadership};
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{Request, StatusCode};
use kube::Client;
use kube::client::Body;
use leader::{Leader, Standing};
use record::{Claim, Record, Sighting};
use rule::{Role, Verdict};
use std::fmt;
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

/// Which lease, for whom, and its times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseSettings {
    /// Namespace of the Lease.
    pub namespace: String,
    /// Name of the Lease.
    pub name: String,
    /// Who we are.
    pub identity: String,
    /// How long a holder that stays silent keeps it.
    pub lease_ms: u64,
    /// How long we go on without a renewal.
    pub renew_deadline_ms: u64,
    /// Time between renewals; those who stand by look twice as often.
    pub retry_ms: u64,
}

impl Default for LeaseSettings {
    fn default() -> Self {
        Self {
            namespace: "kube-system".into(),
            name: "ballast".into(),
            identity: identity(),
            lease_ms: 15_000,
            renew_deadline_ms: 10_000,
            retry_ms: 2_000,
        }
    }
}

impl LeaseSettings {
    /// Time between two looks of one that stands by. Half of the renewals': by default a lease that
    /// was given back has a holder after 1.2 s, and 1.8 s of the three that a successor has are
    /// left for the API server and for reading Azure.
    #[must_use]
    pub const fn look_ms(&self) -> u64 {
        if self.retry_ms > 1 { self.retry_ms / 2 } else { 1 }
    }

    /// How long a lease that was given back stays without a holder at most while another stands by.
    /// A call that takes d may be under way when it is given back, one reads it and one writes it:
    /// three times d come on top.
    #[must_use]
    pub const fn longest_vacancy_ms(&self) -> u64 {
        random::longest_jittered(self.look_ms())
    }

    /// How long after its last renewal a lease has another holder at most, if that one stood by:
    /// it runs out that long after it was seen, which is at most a look later. Three times d come
    /// on top, too.
    #[must_use]
    pub const fn longest_silence_ms(&self) -> u64 {
        self.lease_ms.saturating_add(random::longest_jittered(self.look_ms()))
    }
}

/// The times do not fit together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the lease times do not fit: lease {lease_ms} ms must be longer than the renew deadline \
     {renew_deadline_ms} ms, and that longer than the retry time {retry_ms} ms, which is above 0"
)]
pub struct LeaseTimesError {
    lease_ms: u64,
    renew_deadline_ms: u64,
    retry_ms: u64,
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
    task: JoinHandle<()>,
}

impl Election {
    /// Starts to run for leader. `Event::Leadership` tells what comes of it.
    ///
    /// # Errors
    /// The times do not fit together.
    pub fn start(
        client: Client,
        settings: LeaseSettings,
        clock: Clock,
        events: mpsc::Sender<Event>,
    ) -> Result<Self, LeaseTimesError> {
        let LeaseSettings { lease_ms, renew_deadline_ms, retry_ms, .. } = settings;
        if lease_ms <= renew_deadline_ms || renew_deadline_ms <= retry_ms || retry_ms == 0 {
            return Err(LeaseTimesError { lease_ms, renew_deadline_ms, retry_ms });
        }
        let held = Held::never();
        let leader = Leader::new(&settings, held.clone());
        let stop = CancellationToken::new();
        let candidate = Candidate {
            client,
            settings,
            leader: leader.clone(),
            clock,
            events,
            held: held.clone(),
            known: None,
            sighting: None,
            ends_ms: None,
            leading: false,
        };
        let task = tokio::spawn(candidate.run(stop.clone()));
        Ok(Self { held, leader, stop, task })
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
    settings: LeaseSettings,
    clock: Clock,
    events: mpsc::Sender<Event>,
    held: Held,
    leader: Leader,
    /// The record as we last read or wrote it; `None` makes the next try read it.
    known: Option<Record>,
    sighting: Option<Sighting>,
    /// When another's lease runs out, if it is not renewed.
    ends_ms: Option<u64>,
    leading: bool,
}

/// Why a try did not make us the holder.
enum Miss {
    /// Somebody else has it.
    Taken(String),
    /// The record changed under our hands; the next try reads it anew.
    Raced,
    /// The API server did not do as asked.
    Failed(String),
}

impl fmt::Display for Miss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Taken(holder) => write!(f, "{holder} holds it"),
            Self::Raced => f.write_str("somebody wrote it at the same time"),
            Self::Failed(why) => f.write_str(why),
        }
    }
}

impl Candidate {
    async fn run(mut self, stop: CancellationToken) {
        let mut said = String::new();
        loop {
            let started_ms = self.clock.now_ms();
            let outcome = tokio::select! {
                biased;
                () = stop.cancelled() => break,
                outcome = self.attempt() => outcome,
            };
            match outcome {
                Ok(()) => {
                    let deadline_ms = started_ms + self.settings.renew_deadline_ms;
                    self.held.set_deadline_ms(deadline_ms);
                    self.leader.note(Standing::Ours);
                    self.set_leading(true).await;
                    said.clear();
                }
                Err(miss) => {
                    self.show(&miss);
                    if matches!(miss, Miss::Taken(_)) || !self.held.allows(self.clock.now_ms()) {
                        self.held.set_deadline_ms(0);
                        self.set_leading(false).await;
                    }
                    let text = miss.to_string();
                    if text != said {
                        let lease = format!("{}/{}", self.settings.namespace, self.settings.name);
                        tracing::info!(lease, "the lease is not ours: {text}");
                        said = text;
                    }
                }
            }
            let wait = Duration::from_millis(self.pause_ms());
            tokio::select! {
                () = stop.cancelled() => break,
                () = tokio::time::sleep(wait) => {}
            }
        }
        self.held.set_deadline_ms(0);
        self.leader.note(Standing::Nobody("this process is ending".to_owned()));
        if self.leading {
            self.give_up().await;
        }
    }

    /// What a try that failed tells those who look on.
    fn show(&self, miss: &Miss) {
        match miss {
            Miss::Taken(holder) => self.leader.note(Standing::Theirs(holder.clone())),
            Miss::Failed(why) if !self.held.allows(self.clock.now_ms()) => {
                self.leader.note(Standing::Nobody(why.clone()));
            }
            Miss::Failed(_) | Miss::Raced => {}
        }
    }

    fn pause_ms(&self) -> u64 {
        let role = match self.leading {
            true => Role::Leads { deadline_ms: self.held.deadline_ms() },
            false => Role::StandsBy { ends_ms: self.ends_ms },
        };
        rule::pause_ms(role, &self.settings, self.clock.now_ms(), random::jittered)
    }

    async fn set_leading(&mut self, leading: bool) {
        if self.leading == leading {
            return;
        }
        self.leading = leading;
        let leadership = if leading { Leadership::Held } else { Leadership::Lost };
        let identity = &self.settings.identity;
        tracing::info!(identity, ?leadership, "the right to write changed");
        // At a shutdown nobody listens any more.
        let _ = self.events.send(Event::Leadership(leadership)).await;
    }

    async fn attempt(&mut self) -> Result<(), Miss> {
        self.ends_ms = None;
        let known = match self.known.take() {
            Some(known) => known,
            None => self.read().await?,
        };
        let now_ms = self.clock.now_ms();
        let sighting = Sighting::of(&known, self.sighting.take(), now_ms);
        let LeaseSettings { identity, lease_ms, .. } = &self.settings;
        let verdict = rule::judge(&known, &sighting, identity, *lease_ms, now_ms);
        self.sighting = Some(sighting);
        if let Verdict::Taken { ends_ms } = verdict {
            self.ends_ms = Some(ends_ms);
            return Err(Miss::Taken(known.holder().to_owned()));
        }
        let claim = Claim {
            holder: &self.settings.identity,
            seconds: self.settings.lease_ms.div_ceil(1000),
            now: &micro_time(now_ms),
        };
        let wanted = known.claimed(&claim);
        let written = self.write(&wanted).await?;
        self.known = Some(written);
        Ok(())
    }

    async fn give_up(&mut self) {
        for _ in 0..2 {
            let known = match self.known.take() {
                Some(known) => Ok(known),
                None => self.read().await,
            };
            let outcome = match known {
                Ok(known) if known.holder() != self.settings.identity => return,
                Ok(known) => {
                    let released = known.released(&micro_time(self.clock.now_ms()));
                    self.write(&released).await.map(|_| ())
                }
                Err(miss) => Err(miss),
            };
            match outcome {
                Ok(()) => {
                    tracing::info!("the lease is released");
                    return;
                }
                Err(Miss::Raced) => {}
                Err(miss) => {
                    tracing::warn!("the lease is not released and has to run out: {miss}");
                    return;
                }
            }
        }
    }

    async fn read(&self) -> Result<Record, Miss> {
        let reply = self.call("GET", &self.path(), Body::empty()).await?;
        match reply.status {
            StatusCode::NOT_FOUND => {
                Ok(Record::absent(&self.settings.namespace, &self.settings.name))
            }
            status if status.is_success() => Self::parse(&reply),
            status => Err(Miss::Failed(status_text(status, &reply.body))),
        }
    }

    async fn write(&self, record: &Record) -> Result<Record, Miss> {
        let body = Body::from(record.body().into_bytes());
        let reply = if record.is_new() {
            self.call("POST", &self.collection(), body).await?
        } else {
            self.call("PUT", &self.path(), body).await?
        };
        match reply.status {
            status if status.is_success() => Self::parse(&reply),
            StatusCode::CONFLICT => Err(Miss::Raced),
            status => Err(Miss::Failed(status_text(status, &reply.body))),
        }
    }

    fn parse(reply: &ServerReply) -> Result<Record, Miss> {
        Record::parse(&reply.body)
            .ok_or_else(|| Miss::Failed("the API server's answer is no Lease".into()))
    }

    async fn call(&self, method: &str, path: &str, body: Body) -> Result<ServerReply, Miss> {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(ACCEPT, "application/json")
            .header(CONTENT_TYPE, "application/json")
            .body(body)
            .map_err(|e| Miss::Failed(format!("{path} is no path: {e}")))?;
        // A try that hangs must leave time for another before the deadline.
        let limit = Duration::from_millis(self.settings.renew_deadline_ms / 2);
        exchange(&self.client, request, limit).await.map_err(Miss::Failed)
    }

    fn collection(&self) -> String {
        let namespace = &self.settings.namespace;
        format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases")
    }

    fn path(&self) -> String {
        format!("{}/{}", self.collection(), self.settings.name)
    }
}

#[cfg(test)]
mod tests;
