//! A controller that is driven and looked at at the same time.

use crate::backends::BackendHealth;
use crate::readiness::Readiness;
use control::{Controller, Effect, Event, Histogram};
use edge::lease::leader::Leader;
use edge::runner::Step;
use health::Verdict;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// Upper bounds of the histogram's buckets, in microseconds.
const STEP_BOUNDS_US: [u64; 9] =
    [1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000];

/// How long the loop may go without coming round until it counts as stuck. It comes round at least
/// once a minute; a step that takes seconds is slow, and no reason to begin anew.
const STUCK: Duration = Duration::from_secs(180);

type Ask = Box<dyn FnOnce(&Controller) + Send>;

/// Whether this process writes only while it holds the Lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turns {
    /// It does.
    Taken,
    /// It is alone by arrangement.
    Alone,
}

/// What is counted, for metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Proxies {
    /// Nodes whose proxy is ill.
    pub ill: usize,
    /// The verdict as it stands.
    pub verdict: Verdict,
}

/// The controller, driven by the runner and looked at by pages.
///
/// # Guarantees
/// A step never waits for a page, but for one that has begun to look, and a page never blocks a
/// thread for a step: it leaves a question, which the step answers when it ends.
#[derive(Clone)]
pub struct SharedController {
    controller: Arc<Mutex<Controller>>,
    asked: Arc<Mutex<Vec<Ask>>>,
    pulse: Arc<Pulse>,
    steps_us: Arc<Mutex<Histogram>>,
    proxies: Arc<Mutex<Proxies>>,
    leader: Arc<OnceLock<Leader>>,
    backends: Arc<OnceLock<BackendHealth>>,
}

impl std::fmt::Debug for SharedController {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SharedController")
    }
}

/// What can be said of the loop while a step is under way.
#[derive(Debug)]
struct Pulse {
    start: Instant,
    /// When a step began or ended last, in milliseconds since `start`.
    beat_ms: AtomicU64,
    /// What `/readyz` says after the last step.
    readiness: Mutex<Arc<Readiness>>,
}

impl Pulse {
    fn beat(&self) {
        let now_ms = u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.beat_ms.store(now_ms, Ordering::Relaxed);
    }
}

impl SharedController {
    /// Shares a controller.
    #[must_use]
    pub fn new(controller: Controller) -> Self {
        let steps_us = Arc::new(Mutex::new(Histogram::new(&STEP_BOUNDS_US)));
        let readiness = Mutex::new(Arc::new(Readiness::of(&controller)));
        let pulse = Pulse { start: Instant::now(), beat_ms: AtomicU64::new(0), readiness };
        let controller = Arc::new(Mutex::new(controller));
        let (asked, pulse, leader) = (Arc::default(), Arc::new(pulse), Arc::default());
        let (proxies, backends) = (Arc::default(), Arc::default());
        Self { controller, asked, pulse, steps_us, proxies, leader, backends }
    }

    /// What `/readyz` says after the last step; asked without waiting.
    #[must_use]
    pub fn readiness(&self) -> Arc<Readiness> {
        Arc::clone(&lock(&self.pulse.readiness))
    }

    /// For how long the loop has not come round, where that is too long: only a new start helps.
    #[must_use]
    pub fn stuck(&self) -> Option<Duration> {
        let beat = Duration::from_millis(self.pulse.beat_ms.load(Ordering::Relaxed));
        let since = self.pulse.start.elapsed().saturating_sub(beat);
        (since > STUCK).then_some(since)
    }

    /// Looks at it now, or at the end of the step that is under way, if that comes soon enough.
    pub async fn look_within<T: Send + 'static>(
        &self,
        patience: Duration,
        look: impl FnOnce(&Controller) -> T + Send + 'static,
    ) -> Option<T> {
        let (answer, answered) = oneshot::channel();
        let ask = move |controller: &Controller| {
            // Who has given up wants no answer.
            if !answer.is_closed() {
                let _ = answer.send(look(controller));
            }
        };
        lock(&self.asked).push(Box::new(ask));
        self.answer_all();
        tokio::time::timeout(patience, answered).await.ok()?.ok()
    }

    /// Answers what was asked, unless a step is under way: that one does when it has ended.
    fn answer_all(&self) {
        while !lock(&self.asked).is_empty() {
            let answered = self.try_look(|controller| {
                let asked = std::mem::take(&mut *lock(&self.asked));
                asked.into_iter().for_each(|ask| ask(controller));
            });
            if answered.is_none() {
                return;
            }
        }
    }

    /// Who leads; `None` where processes do not take turns.
    #[must_use]
    pub fn leader(&self) -> Option<&Leader> {
        self.leader.get()
    }

    /// Who leads, from now on. A controller is run once: only the first counts.
    pub(crate) fn note_leader(&self, leader: Leader) {
        let _ = self.leader.set(leader);
    }

    /// How long its steps took, in microseconds: taking in what happened, planning, and making
    /// requests.
    #[must_use]
    pub fn step_times_us(&self) -> Histogram {
        lock(&self.steps_us).clone()
    }

    /// What agents tell of the service proxies, as it was counted last.
    #[must_use]
    pub fn proxies(&self) -> Proxies {
        *lock(&self.proxies)
    }

    /// Remembers it for [`SharedController::proxies`].
    pub fn note_proxies(&self, proxies: Proxies) {
        *lock(&self.proxies) = proxies;
    }

    /// What is known of the backends; `None` where health probes are not read.
    #[must_use]
    pub fn backends(&self) -> Option<&BackendHealth> {
        self.backends.get()
    }

    /// What is known of the backends from now on.
    pub fn watch_backends(&self) -> BackendHealth {
        self.backends.get_or_init(BackendHealth::default).clone()
    }

    /// Looks at it between two steps.
    pub fn look<T>(&self, look: impl FnOnce(&Controller) -> T) -> T {
        look(&lock(&self.controller))
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
        self.pulse.beat();
        let mut controller = lock(&self.controller);
        let from = Instant::now();
        let effects = controller.step(events, now_ms);
        let took_us = u64::try_from(from.elapsed().as_micros()).unwrap_or(u64::MAX);
        lock(&self.steps_us).add(took_us);
        *lock(&self.pulse.readiness) = Arc::new(Readiness::of(&controller));
        drop(controller);
        self.pulse.beat();
        // What was asked before the lock was given back is answered here, what is asked after that
        // by who asks.
        self.answer_all();
        effects
    }

    fn next_wake_ms(&self) -> Option<u64> {
        self.look(Controller::next_wake_ms)
    }
}

fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
