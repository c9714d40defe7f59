//! Processes take, renew and lose the lease by the production rules ([`lease::Election`]), over
//! calls to the API server that take time, are refused, conflict and lose their answers.

use crate::fault::Fault;
use crate::process::{Hold, RENEW_MS};
use crate::stage::{Happening, Stage};
use crate::tally::count;
use crate::weather::Weather;
use control::{Event, Leadership};
use kube_emulator::{ObjectRef, Ownership, Store, StoreOptions};
use lease::{Answer, Call, Election, LeaseSettings, Next};
use serde_json::Value;

/// The time in a Lease. Nobody goes by it, so that it need not be right; but a Lease that is
/// written as it was has not changed.
fn micro_time(now_ms: u64) -> String {
    format!("2023-11-14T22:13:20.{:06}Z", now_ms % 1_000_000)
}

/// The lease, as the API server has it.
#[derive(Debug)]
pub struct Lease {
    /// The process and its life that hold it.
    pub holder: Option<(usize, u64)>,
    /// When it was last written by its holder.
    pub renewed_ms: u64,
    /// How often it changed hands.
    pub term: u64,
    /// Where it is kept: its revisions are none of the watches'.
    store: Store,
}

impl Default for Lease {
    fn default() -> Self {
        // Cheap, because it is written every two seconds for hours: elections do not read field
        // managers, and no client watches it.
        let ownership = Ownership::AppliedOnly;
        let options = StoreOptions { ownership, history_limit: 1, ..StoreOptions::default() };
        Self { holder: None, renewed_ms: 0, term: 0, store: Store::new(options) }
    }
}

impl Lease {
    /// Another client annotates the Lease, if there is one.
    pub(crate) fn annotate(&mut self, key: &str, value: &str, now_ms: u64) {
        let lease = ObjectRef::new("leases", NAMESPACE, NAME);
        if let Ok(held) = self.store.get(lease) {
            let mut annotated = Value::clone(&held);
            annotated["metadata"]["annotations"][key] = Value::from(value);
            let _ = self.store.replace(annotated, now_ms);
        }
    }
}

/// What befalls a call on the Lease.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ordeal {
    /// What the API server does, or what becomes of the call or its answer.
    pub fault: Option<Fault>,
    /// How much later than usual it arrives.
    pub late_ms: u64,
}

/// The election of a life of a process.
#[must_use]
pub fn election(number: usize, epoch: u64) -> Election {
    let identity = format!("{number}.{epoch}");
    Election::new(LeaseSettings { identity, ..LeaseSettings::default() })
}

/// Where the Lease stands.
const NAMESPACE: &str = "kube-system";
/// Its name.
const NAME: &str = "ballast";

fn life_of(identity: &str) -> Option<(usize, u64)> {
    let (number, epoch) = identity.split_once('.')?;
    Some((number.parse().ok()?, epoch.parse().ok()?))
}

impl Stage {
    /// A process begins an attempt to take the lease or to renew it.
    pub(crate) fn renew(&mut self, number: usize) {
        let process = &mut self.processes[number];
        let now_ms = process.clock_ms(self.now_ms);
        let next = process.election.attempt(now_ms, &micro_time(now_ms));
        self.follow_election(number, next);
    }

    /// What came of a call on the Lease reaches its process.
    pub(crate) fn hear_of_lease(&mut self, number: usize, answer: Answer) {
        let process = &mut self.processes[number];
        let now_ms = process.clock_ms(self.now_ms);
        let next = process.election.answered(answer, now_ms, &micro_time(now_ms));
        self.follow_election(number, next);
    }

    fn follow_election(&mut self, number: usize, next: Next) {
        let epoch = self.processes[number].epoch;
        match next {
            Next::Call(call) => {
                let there = self.weather.lease_ms(self.pace.api_ms);
                let ordeal = self.weather.lease();
                let at = self.now_ms + there + ordeal.late_ms;
                let limit =
                    self.now_ms + self.processes[number].election.settings().call_limit_ms();
                let arrives = Happening::LeaseArrives(number, epoch, Box::new(call), ordeal, limit);
                self.queue_at(at, arrives);
            }
            Next::Done(outcome) => {
                if let Err(miss) = outcome {
                    self.trace.say(self.now_ms, || format!("process {number}: the lease: {miss}"));
                }
                self.learn_standing(number);
                let process = &self.processes[number];
                let now_ms = process.clock_ms(self.now_ms);
                let spread = self.weather.spread();
                let wait = process.election.pause_ms(now_ms, |ms| ms + ms / 5 * spread / 1_000);
                self.queue_at(self.now_ms + wait, Happening::Renew(number, epoch));
            }
        }
    }

    /// What a process believes after an attempt, and what its controller is told of it.
    fn learn_standing(&mut self, number: usize) {
        self.learn_pause(number);
        let process = &mut self.processes[number];
        let led = matches!(process.hold, Hold::Since(_));
        let leads = process.election.is_leading();
        process.hold = if leads {
            let deadline_ms = process.election.deadline_ms();
            let deadline_ms = deadline_ms.saturating_add_signed(-process.skew_ms);
            Hold::Since(deadline_ms.saturating_sub(RENEW_MS))
        } else {
            Hold::Not
        };
        if led == leads {
            return;
        }
        let leadership = if leads { Leadership::Held } else { Leadership::Lost };
        process.inbox.push(Event::Leadership(leadership));
        if leads {
            self.ledger.grounds.begin((number, process.epoch), self.now_ms);
            self.ledger.told.begin((number, process.epoch), self.now_ms);
        }
        self.trace.say(self.now_ms, || format!("process {number}: the lease is {leadership:?}"));
        self.queue_step(number);
    }

    /// A call on the Lease reaches the API server. Its process waits for the answer up to a limit.
    pub(crate) fn lease_arrives(
        &mut self,
        (number, epoch): (usize, u64),
        call: Call,
        ordeal: Ordeal,
        limit_ms: u64,
    ) {
        if let Some(fault) = ordeal.fault {
            count(&mut self.tally.faults, Fault::LeaseCalls.name());
            let method = call.method;
            self.trace.say(self.now_ms, || format!("{method} lease: {}", fault.what()));
        }
        let down = self.api_down_until > self.now_ms;
        let gone = down || ordeal.fault == Some(Fault::ApiAnswerLostNotApplied);
        let answer = if gone { None } else { Some(self.lease_call(call, ordeal.fault)) };
        let answer = answer.filter(|_| ordeal.fault != Some(Fault::ApiAnswerLostApplied));
        let at = self.now_ms + self.weather.lease_ms(self.pace.api_ms);
        let (at, answer) = match answer {
            Some(answer) if at <= limit_ms => (at, answer),
            _ => (limit_ms, Answer::Fault("no whole answer in time".to_owned())),
        };
        self.queue_at(at, Happening::LeaseAnswers(number, epoch, Box::new(answer)));
    }

    /// The API server takes a call on the Lease in.
    fn lease_call(&mut self, call: Call, fault: Option<Fault>) -> Answer {
        let writes = call.body.is_some();
        let refused = match fault {
            Some(Fault::ApiThrottled) => Some(429),
            Some(Fault::ApiError) => Some(500),
            Some(Fault::ApiUnavailable) => Some(503),
            Some(Fault::ApiConflict) if writes => Some(409),
            _ => None,
        };
        if let Some(status) = refused {
            return Answer::Reply { status, body: None, says: format!("HTTP {status}") };
        }
        let store = &mut self.lease.store;
        let done = match call.body {
            None => store.get(ObjectRef::new("leases", NAMESPACE, NAME)),
            Some(body) if call.method == "POST" => store.create(body, self.now_ms),
            Some(body) => store.replace(body, self.now_ms),
        };
        match done {
            Ok(object) => {
                if writes {
                    self.note_holder(&object);
                }
                let body = Some(Value::clone(&object));
                Answer::Reply { status: 200, body, says: String::new() }
            }
            Err(error) => {
                let says = error.message().to_owned();
                Answer::Reply { status: error.code(), body: None, says }
            }
        }
    }

    fn note_holder(&mut self, written: &Value) {
        let holder = written["spec"]["holderIdentity"].as_str().and_then(life_of);
        if holder.is_some() {
            self.lease.renewed_ms = self.now_ms;
            self.lease.term += u64::from(holder != self.lease.holder);
        }
        self.lease.holder = holder;
    }

    /// A process that ends in order gives the lease back.
    pub(crate) fn resign(&mut self, number: usize) {
        let mut next = self.processes[number].election.resign(&micro_time(self.now_ms));
        while let Next::Call(call) = next {
            let answer = self.lease_call(call, None);
            let now_ms = self.processes[number].clock_ms(self.now_ms);
            let election = &mut self.processes[number].election;
            next = election.answered(answer, now_ms, &micro_time(now_ms));
        }
    }
}

impl Weather {
    /// What befalls a call on the Lease.
    pub fn lease(&mut self) -> Ordeal {
        let Self::Drawn(drawn) = self else { return Ordeal::default() };
        drawn.lease_ordeal()
    }

    /// How long a call on the Lease takes, one way.
    pub fn lease_ms(&mut self, usual_ms: u64) -> u64 {
        match self {
            Self::Drawn(drawn) if usual_ms > 0 => drawn.lease_lag(usual_ms),
            _ => usual_ms,
        }
    }

    /// How much of the longest spread a wait is lengthened by, in a thousand.
    pub fn spread(&mut self) -> u64 {
        match self {
            Self::Drawn(drawn) => drawn.lease_spread(),
            _ => 0,
        }
    }
}
