//! Drives the controller: collects events, steps, and carries out effects.
//!
//! # Guarantees
//! The loop never waits for a call. Every call is answered with exactly one event, even if the task
//! that made it panics. No write is sent while the lease is not held. Time never goes back.

use crate::clock::Clock;
use crate::lease::Held;
use crate::notice::NoticeSink;
use arm::{Answer, TransportFault};
use control::{CallId, Effect, Event, KubernetesAnswer, KubernetesCall};
use futures_util::future::BoxFuture;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// Most events taken into one step, so that a flood of facts does not keep answers waiting.
const GULP: usize = 20_000;
/// Longest sleep: a wake-up lost to a mistake costs no more than this.
const LONGEST_SLEEP_MS: u64 = 60_000;
/// How long calls under way may take to end at a shutdown.
const GRACE: Duration = Duration::from_secs(5);
/// Events that may wait between two steps.
pub const QUEUE: usize = 8_192;

/// The controller, as the runner sees it.
pub trait Step: Send {
    /// Takes in what happened and says what to do.
    fn step(&mut self, events: Vec<Event>, now_ms: u64) -> Vec<Effect>;

    /// When it wants to be stepped though nothing happens.
    fn next_wake_ms(&self) -> Option<u64>;
}

/// Sends requests to ARM.
pub trait AzureCalls: Send + Sync {
    /// Sends one.
    fn call(&self, request: arm::Request) -> BoxFuture<'static, Answer>;
}

/// Sends requests to the API server.
pub trait KubernetesCalls: Send + Sync {
    /// Sends one.
    fn call(&self, call: KubernetesCall) -> BoxFuture<'static, KubernetesAnswer>;
}

impl AzureCalls for crate::arm::Sender {
    fn call(&self, request: arm::Request) -> BoxFuture<'static, Answer> {
        let sender = self.clone();
        Box::pin(async move { sender.send(&request).await })
    }
}

impl KubernetesCalls for crate::kubernetes::Sender {
    fn call(&self, call: KubernetesCall) -> BoxFuture<'static, KubernetesAnswer> {
        let sender = self.clone();
        Box::pin(async move { sender.send(&call).await })
    }
}

/// What the runner needs.
#[derive(Clone)]
pub struct Runner {
    /// The clock, shared with the lease.
    pub clock: Clock,
    /// Azure.
    pub azure: Arc<dyn AzureCalls>,
    /// Kubernetes.
    pub kubernetes: Arc<dyn KubernetesCalls>,
    /// The right to write.
    pub held: Held,
    /// Where notices go.
    pub notices: NoticeSink,
}

/// The channel that brings events.
#[must_use]
pub fn channel() -> (mpsc::Sender<Event>, mpsc::Receiver<Event>) {
    mpsc::channel(QUEUE)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Woken {
    Events,
    /// The time that the controller asked for has come.
    Time,
    /// It has not, but the longest sleep is over.
    Late,
    Stop,
}

impl Runner {
    /// Steps the controller until `stop`. Then calls under way may end for a few seconds; release
    /// the lease after this returns.
    pub async fn run<S: Step>(
        &self,
        mut controller: S,
        sender: mpsc::Sender<Event>,
        mut receiver: mpsc::Receiver<Event>,
        stop: CancellationToken,
    ) -> S {
        let mut calls = JoinSet::new();
        let mut events = Vec::new();
        loop {
            let wake = self.sleep(controller.next_wake_ms());
            let woken = tokio::select! {
                biased;
                () = stop.cancelled() => Woken::Stop,
                _ = receiver.recv_many(&mut events, GULP) => Woken::Events,
                woken = wake => woken,
            };
            match woken {
                Woken::Stop => break,
                // The controller knows what it asked for. A poll that is due, and there may be
                // hundreds a second, is no reason to plan.
                Woken::Events | Woken::Time => {}
                Woken::Late => events.push(Event::Tick),
            }
            // Whatever else has piled up meanwhile belongs to the same step.
            while events.len() < GULP
                && let Ok(event) = receiver.try_recv()
            {
                events.push(event);
            }
            let effects = controller.step(std::mem::take(&mut events), self.clock.now_ms());
            for effect in effects {
                self.carry_out(effect, &sender, &mut calls);
            }
            while calls.try_join_next().is_some() {}
        }
        receiver.close();
        drop(receiver);
        if tokio::time::timeout(GRACE, async { while calls.join_next().await.is_some() {} })
            .await
            .is_err()
        {
            let left = calls.len();
            tracing::warn!(
                left,
                "calls under way are given up; the next start reads what they did"
            );
        }
        calls.abort_all();
        controller
    }

    async fn sleep(&self, wake_ms: Option<u64>) -> Woken {
        let (wait_ms, woken) = nap(wake_ms, self.clock.now_ms());
        tokio::time::sleep(Duration::from_millis(wait_ms)).await;
        woken
    }

    fn carry_out(&self, effect: Effect, sender: &mpsc::Sender<Event>, calls: &mut JoinSet<()>) {
        match effect {
            Effect::Say(notice) => self.notices.say(notice),
            Effect::Azure { call, request } => {
                let answer = self.azure_answer(request);
                calls.spawn(report(sender.clone(), answer, move |a| Event::Azure {
                    call,
                    answer: a.unwrap_or_else(|why| {
                        Answer::Fault(TransportFault::Ambiguous(broken(call, &why)))
                    }),
                }));
            }
            Effect::Kubernetes { call, request } => {
                let answer = self.kubernetes_answer(request);
                calls.spawn(report(sender.clone(), answer, move |a| Event::KubernetesWritten {
                    call,
                    answer: a.unwrap_or_else(|why| KubernetesAnswer::Fault(broken(call, &why))),
                }));
            }
        }
    }

    fn azure_answer(&self, request: arm::Request) -> BoxFuture<'static, Answer> {
        if request.method.is_write() && !self.held.allows(self.clock.now_ms()) {
            let why = "the lease is not held".to_string();
            return Box::pin(async { Answer::Fault(TransportFault::NotSent(why)) });
        }
        self.azure.call(request)
    }

    fn kubernetes_answer(&self, call: KubernetesCall) -> BoxFuture<'static, KubernetesAnswer> {
        if call.method != "GET" && !self.held.allows(self.clock.now_ms()) {
            let why = "not sent: the lease is not held".to_string();
            return Box::pin(async { KubernetesAnswer::Fault(why) });
        }
        self.kubernetes.call(call)
    }
}

/// How long to sleep, and what it is that wakes then.
fn nap(wake_ms: Option<u64>, now_ms: u64) -> (u64, Woken) {
    match wake_ms.map(|at| at.saturating_sub(now_ms)) {
        Some(wait_ms) if wait_ms <= LONGEST_SLEEP_MS => (wait_ms, Woken::Time),
        Some(_) | None => (LONGEST_SLEEP_MS, Woken::Late),
    }
}

fn broken(call: CallId, why: &str) -> String {
    format!("call {} ended without an answer, which is a mistake of Ballast: {why}", call.0)
}

/// Makes the call in a task of its own, so that its panic becomes an answer too.
async fn report<T: Send + 'static>(
    sender: mpsc::Sender<Event>,
    call: BoxFuture<'static, T>,
    event: impl FnOnce(Result<T, String>) -> Event,
) {
    let task = AbortOnDrop(tokio::spawn(call));
    let outcome = task.outcome().await;
    // After a shutdown nobody listens.
    let _ = sender.send(event(outcome)).await;
}

struct AbortOnDrop<T>(tokio::task::JoinHandle<T>);

impl<T> AbortOnDrop<T> {
    async fn outcome(mut self) -> Result<T, String> {
        (&mut self.0).await.map_err(|e| e.to_string())
    }
}

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[cfg(test)]
mod tests;
