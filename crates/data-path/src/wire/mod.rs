//! The data path on sockets: it listens on loopback for each frontend, carries bytes to where the
//! backends really are, and asks what the probes want to know. What is decided is decided by
//! [`DataPath`]; this holds the clock, the sockets and the lock.

mod hosts;
mod listeners;
mod probe;
mod tcp;
mod udp;

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

use crate::{
    Admission, DataPath, Ending, EntryPoint, Floating, Flow, Probed, Refusal, Seat, Semantics,
    Tables,
};
pub use hosts::{Floated, Host, Hosts};

/// How often Azure, idle flows and probes are looked at.
const TICK: Duration = Duration::from_millis(10);

/// How the data path is put on sockets.
#[derive(Debug, Clone)]
pub struct WireOptions {
    /// How long a second of probes and idle timeouts really is.
    pub second_ms: u32,
    /// The network of the frontends: each gets the next address of this /16 of loopback.
    pub network: Ipv4Addr,
    /// Frontend ports that are listened at, at most.
    pub max_listeners: usize,
    /// Where Azure leaves a choice.
    pub semantics: Semantics,
}

impl Default for WireOptions {
    fn default() -> Self {
        WireOptions {
            second_ms: 1_000,
            network: Ipv4Addr::new(127, 88, 0, 0),
            max_listeners: 256,
            semantics: Semantics::default(),
        }
    }
}

/// Where a frontend's port really is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Place {
    /// The port in Azure.
    #[serde(flatten)]
    pub entry: EntryPoint,
    /// Where it is listened at.
    pub at: Option<SocketAddr>,
    /// Why it is not listened at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing: Option<String>,
}

#[derive(Debug)]
struct State {
    core: DataPath,
    hosts: Hosts,
    places: BTreeMap<EntryPoint, Place>,
    /// Who is to hear that a flow ends.
    ends: BTreeMap<Flow, oneshot::Sender<Ending>>,
    /// Flows whose backend could not be reached.
    unreached: u64,
}

/// A data path on sockets; its clones are the same one.
#[derive(Debug, Clone)]
pub struct Wire {
    options: Arc<WireOptions>,
    started: Instant,
    state: Arc<Mutex<State>>,
}

impl Wire {
    /// One that nobody runs yet: [`Wire::run`] does.
    #[must_use]
    pub fn new(options: WireOptions) -> Self {
        let state = State {
            core: DataPath::new(options.semantics),
            hosts: Hosts::default(),
            places: BTreeMap::new(),
            ends: BTreeMap::new(),
            unreached: 0,
        };
        Wire {
            options: Arc::new(options),
            started: Instant::now(),
            state: Arc::new(Mutex::new(state)),
        }
    }

    /// Says where nodes and pods really are, in place of what was said before.
    ///
    /// # Errors
    /// An address is not a loopback address.
    pub fn place(&self, hosts: Hosts) -> Result<(), String> {
        hosts.check()?;
        self.lock().hosts = hosts;
        Ok(())
    }

    /// Where the frontends' ports really are.
    #[must_use]
    pub fn places(&self) -> Vec<Place> {
        self.lock().places.values().cloned().collect()
    }

    /// Everything there is to see.
    #[must_use]
    pub fn view(&self) -> Value {
        let state = self.lock();
        let mut view = state.core.to_json();
        view["frontends"] = json!(state.places.values().collect::<Vec<_>>());
        view["hosts"] = json!(state.hosts);
        view["unreached"] = json!(state.unreached);
        view
    }

    /// What probes found. The times are how many real milliseconds ago it was.
    #[must_use]
    pub fn probed(&self) -> Vec<Probed> {
        let now_ms = self.now_ms();
        let mut probed = self.lock().core.probed();
        for (at_ms, _) in probed.iter_mut().flat_map(|one| &mut one.changes) {
            let ago = self.really(now_ms.saturating_sub(*at_ms));
            *at_ms = u64::try_from(ago.as_millis()).unwrap_or(u64::MAX);
        }
        probed
    }

    /// Decides from now on where Azure leaves a choice.
    pub fn set_semantics(&self, semantics: Semantics) {
        self.lock().core.set_semantics(semantics);
    }

    /// Runs until it is dropped. `changes` gives the tables whenever they are others than it gave
    /// before; it is asked every ten milliseconds.
    pub async fn run(self, mut changes: impl FnMut() -> Option<Tables>) {
        let mut listeners = listeners::Listeners::default();
        let mut questions = JoinSet::new();
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tick.tick().await;
            let fresh = changes();
            let now_ms = self.now_ms();
            if let Some(tables) = fresh {
                let wanted = tables.entry_points();
                self.lock().load(tables, now_ms);
                listeners.open(&self, &wanted).await;
            }
            let due = {
                let mut state = self.lock();
                let ended = state.core.expire(now_ms);
                state.end(ended);
                state.core.due(now_ms)
            };
            for question in due {
                questions.spawn(probe::ask(self.clone(), question));
            }
            while questions.try_join_next().is_some() {}
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The time in the data path's own milliseconds.
    fn now_ms(&self) -> u64 {
        let real = self.started.elapsed().as_millis();
        let scaled = real * 1_000 / u128::from(self.options.second_ms.max(1));
        u64::try_from(scaled).unwrap_or(u64::MAX)
    }

    /// How long some of the data path's milliseconds really are.
    fn really(&self, ms: u64) -> Duration {
        Duration::from_millis(ms.saturating_mul(u64::from(self.options.second_ms)) / 1_000)
    }

    /// Where a flow goes, and who tells of its end unless somebody does already.
    fn admit(&self, flow: Flow) -> Result<Admitted, Refusal> {
        let now_ms = self.now_ms();
        let mut state = self.lock();
        let seat = match state.core.admit(flow, now_ms) {
            Admission::To(seat) => seat,
            Admission::Refused(reason) => return Err(reason),
        };
        let ended = (!state.ends.contains_key(&flow)).then(|| {
            let (sender, ended) = oneshot::channel();
            state.ends.insert(flow, sender);
            ended
        });
        Ok(Admitted { seat, ended })
    }

    /// Where a backend really is.
    fn target(&self, seat: Seat, entry: EntryPoint) -> Option<SocketAddr> {
        let frontend = (seat.floating == Floating::Kept).then_some(entry.address);
        self.lock().hosts.find(seat.backend, frontend, seat.port)
    }

    fn touch(&self, flow: &Flow) {
        let now_ms = self.now_ms();
        self.lock().core.touch(flow, now_ms);
    }

    fn close(&self, flow: &Flow) {
        let mut state = self.lock();
        state.core.close(flow);
        state.ends.remove(flow);
    }

    fn miss(&self) {
        self.lock().unreached += 1;
    }
}

/// A flow that is forwarded.
struct Admitted {
    seat: Seat,
    ended: Option<oneshot::Receiver<Ending>>,
}

impl State {
    fn load(&mut self, tables: Tables, now_ms: u64) {
        let ended = self.core.load(tables, now_ms);
        self.end(ended);
    }

    fn end(&mut self, ended: Vec<(Flow, Ending)>) {
        for (flow, ending) in ended {
            if let Some(sender) = self.ends.remove(&flow) {
                // Its task may have ended a moment ago.
                let _ = sender.send(ending);
            }
        }
    }
}
