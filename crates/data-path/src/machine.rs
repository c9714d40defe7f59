//! The state machine: tables, health and flows in, admissions and endings out.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::health::{Health, Question, Verdict};
use super::pick::pick;
use super::table::{Admin, Backend, IdleReset, Ports, ProbeKey, Rule, Sku, Tables, Transport};
use crate::flow::{Admission, Ending, Flow, FlowCounts, Refusal, Seat};

/// How long a UDP flow is remembered after its last datagram; the rule's idle timeout is not for
/// UDP.
const UDP_IDLE_MS: u64 = 240_000;

/// What becomes of established TCP flows when the admin state of their backend becomes Down.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnDown {
    /// They live on, as the page on admin state says.
    #[default]
    Persist,
    /// They are reset, as the API reference says.
    Reset,
}

/// What becomes of flows whose backend leaves the pool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnRemoval {
    /// They end. Azure promises nothing else.
    #[default]
    End,
    /// They live on.
    Persist,
}

/// Where Azure's documents contradict each other or say nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Semantics {
    /// Admin state Down and established TCP flows.
    pub on_down: OnDown,
    /// A backend that leaves the pool and its flows.
    pub on_removal: OnRemoval,
    /// Flows at a time.
    pub most_flows: usize,
}

impl Default for Semantics {
    fn default() -> Self {
        Semantics {
            on_down: OnDown::default(),
            on_removal: OnRemoval::default(),
            most_flows: 4_096,
        }
    }
}

/// What a rule's probe found of one of its backends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probed {
    /// The rule's id, folded.
    pub rule: String,
    /// The frontend's address.
    pub frontend: IpAddr,
    /// The frontend's port; 0 where the rule takes all.
    pub port: u16,
    /// TCP or UDP.
    pub transport: Transport,
    /// The backend's address.
    pub backend: IpAddr,
    /// The port at the backend.
    pub backend_port: u16,
    /// When it was found healthy (or not), and which; the last time last, and empty before the
    /// first answer.
    pub changes: Vec<(u64, bool)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Held {
    seat: Seat,
    touched_ms: u64,
}

/// The data path. The caller says what time it is, and carries the bytes.
///
/// # Guarantees
/// The same calls in the same order give the same answers. No more flows are held than
/// [`Semantics::most_flows`] says.
#[derive(Debug, Clone, Default)]
pub struct DataPath {
    semantics: Semantics,
    tables: Tables,
    health: Health,
    flows: BTreeMap<Flow, Held>,
    counts: FlowCounts,
}

impl DataPath {
    /// One without rules.
    #[must_use]
    pub fn new(semantics: Semantics) -> Self {
        DataPath { semantics, ..DataPath::default() }
    }

    /// What it forwards by.
    #[must_use]
    pub fn tables(&self) -> &Tables {
        &self.tables
    }

    /// Other semantics, from now on.
    pub fn set_semantics(&mut self, semantics: Semantics) {
        self.semantics = semantics;
    }

    /// How many flows there were.
    #[must_use]
    pub fn counts(&self) -> FlowCounts {
        self.counts
    }

    /// How many flows there are.
    #[must_use]
    pub fn flows(&self) -> usize {
        self.flows.len()
    }

    /// How many TCP flows a backend has.
    #[must_use]
    pub fn flows_of(&self, backend: IpAddr) -> usize {
        self.flows.values().filter(|held| held.seat.backend == backend).count()
    }

    /// Puts new tables in force; returns the flows that end by it.
    pub fn load(&mut self, tables: Tables, now_ms: u64) -> Vec<(Flow, Ending)> {
        self.health.load(&tables, now_ms);
        self.tables = tables;
        self.sweep()
    }

    /// Where a new TCP connection, or a datagram, goes. Datagrams of a flow go where the earlier
    /// ones went for as long as that backend takes flows.
    pub fn admit(&mut self, flow: Flow, now_ms: u64) -> Admission {
        let admission = self.choose(&flow);
        match admission {
            Admission::To(seat) => {
                if self.flows.insert(flow, Held { seat, touched_ms: now_ms }).is_none() {
                    self.counts.admitted += 1;
                }
            }
            Admission::Refused(Refusal::NoRule) => self.counts.without_rule += 1,
            Admission::Refused(Refusal::NoBackend) => self.counts.without_backend += 1,
            Admission::Refused(Refusal::NoneHealthy) => self.counts.none_healthy += 1,
            Admission::Refused(Refusal::Full) => self.counts.full += 1,
        }
        admission
    }

    fn choose(&self, flow: &Flow) -> Admission {
        let held = self.flows.get(flow);
        let Some(rule) = self.tables.rule(flow.entry) else {
            return Admission::Refused(Refusal::NoRule);
        };
        if let Some(held) = held
            && flow.entry.transport == Transport::Udp
            && rule.backend(held.seat.backend).is_some_and(|b| self.takes_flows(rule, b))
        {
            return Admission::To(self.seat(rule, held.seat.backend, flow));
        }
        if held.is_none() && self.flows.len() >= self.semantics.most_flows {
            return Admission::Refused(Refusal::Full);
        }
        if rule.backends.is_empty() {
            return Admission::Refused(Refusal::NoBackend);
        }
        let open: Vec<&Backend> =
            rule.backends.iter().filter(|b| self.takes_flows(rule, b)).collect();
        match open.get(pick(flow, rule.distribution, open.len())) {
            Some(backend) => Admission::To(self.seat(rule, backend.address, flow)),
            None => Admission::Refused(Refusal::NoneHealthy),
        }
    }

    fn seat(&self, rule: &Rule, backend: IpAddr, flow: &Flow) -> Seat {
        let port = rule.backend_port.unwrap_or(flow.entry.port);
        Seat { backend, port, floating: rule.floating }
    }

    /// Whether a backend takes new flows. Without a probe everybody does, whatever the admin state.
    fn takes_flows(&self, rule: &Rule, backend: &Backend) -> bool {
        let Some(probe) = &rule.probe else { return true };
        match backend.admin {
            Admin::Up => true,
            Admin::Down => false,
            Admin::None => self.health.is_healthy(probe, backend.address),
        }
    }

    /// Something was carried.
    pub fn touch(&mut self, flow: &Flow, now_ms: u64) {
        if let Some(held) = self.flows.get_mut(flow) {
            held.touched_ms = held.touched_ms.max(now_ms);
        }
    }

    /// One of the sides ended the flow.
    pub fn close(&mut self, flow: &Flow) {
        self.flows.remove(flow);
    }

    /// The flows that have been idle for too long, which end by it.
    pub fn expire(&mut self, now_ms: u64) -> Vec<(Flow, Ending)> {
        let mut ended = Vec::new();
        for (flow, held) in &self.flows {
            let idle_ms = now_ms.saturating_sub(held.touched_ms);
            let ending = match flow.entry.transport {
                Transport::Udp => (idle_ms >= UDP_IDLE_MS).then_some(Ending::IdleSilent),
                Transport::Tcp => self.tables.rule(flow.entry).and_then(|rule| {
                    let ending = match rule.idle_reset {
                        IdleReset::Sent => Ending::IdleReset,
                        IdleReset::Silent => Ending::IdleSilent,
                    };
                    (idle_ms >= rule.idle_ms).then_some(ending)
                }),
            };
            ended.extend(ending.map(|ending| (*flow, ending)));
        }
        self.end(ended)
    }

    /// The questions that probes ask now. Each is to be answered with [`DataPath::learn`].
    pub fn due(&mut self, now_ms: u64) -> Vec<Question> {
        self.health.due(&self.tables, now_ms)
    }

    /// Takes the answer to a question in; returns the flows that end by it.
    pub fn learn(
        &mut self,
        probe: &ProbeKey,
        backend: IpAddr,
        verdict: Verdict,
        now_ms: u64,
    ) -> Vec<(Flow, Ending)> {
        match self.health.learn(&self.tables, probe, backend, verdict, now_ms) {
            true => self.sweep(),
            false => Vec::new(),
        }
    }

    /// What probes found of the backends of each rule that has one.
    #[must_use]
    pub fn probed(&self) -> Vec<Probed> {
        let of_rule = |rule: &Rule| {
            let probe = rule.probe.clone()?;
            let port = match rule.ports {
                Ports::One(port) => port,
                Ports::All => 0,
            };
            let backends = rule.backends.iter().map(|backend| backend.address);
            let found = backends.map(|backend| Probed {
                rule: rule.id.clone(),
                frontend: rule.frontend,
                port,
                transport: rule.transport,
                backend,
                backend_port: rule.backend_port.unwrap_or(port),
                changes: self.health.changes(&probe, backend),
            });
            Some(found.collect::<Vec<_>>())
        };
        self.tables.rules.iter().filter_map(of_rule).flatten().collect()
    }

    /// Ends the flows that the tables and the probes no longer allow.
    fn sweep(&mut self) -> Vec<(Flow, Ending)> {
        let judged = self.flows.iter().filter_map(|(flow, held)| {
            let ending = self.verdict(flow, held)?;
            Some((*flow, ending))
        });
        let ended = judged.collect();
        self.end(ended)
    }

    fn end(&mut self, ended: Vec<(Flow, Ending)>) -> Vec<(Flow, Ending)> {
        for (flow, ending) in &ended {
            self.flows.remove(flow);
            match ending {
                Ending::Moved => self.counts.moved += 1,
                _ => self.counts.ended += 1,
            }
        }
        ended
    }

    fn verdict(&self, flow: &Flow, held: &Held) -> Option<Ending> {
        let Some(rule) = self.tables.rule(flow.entry) else { return Some(Ending::RuleGone) };
        let udp = flow.entry.transport == Transport::Udp;
        let same = self.seat(rule, held.seat.backend, flow) == held.seat;
        let backend = rule.backend(held.seat.backend).filter(|_| same);
        let Some(backend) = backend else {
            let persists = self.semantics.on_removal == OnRemoval::Persist && !udp;
            return (!persists).then_some(Ending::BackendGone);
        };
        if self.takes_flows(rule, backend) {
            return None;
        }
        let others = rule.backends.iter().any(|b| self.takes_flows(rule, b));
        if udp {
            return Some(if others { Ending::Moved } else { Ending::NoneHealthy });
        }
        let down = backend.admin == Admin::Down;
        if down && self.semantics.on_down == OnDown::Reset {
            return Some(Ending::AdminDown);
        }
        // With all of them down, Standard keeps TCP flows where the pool has several; Basic none.
        let ends = !others && (rule.sku == Sku::Basic || rule.backends.len() < 2) && !down;
        ends.then_some(Ending::NoneHealthy)
    }

    /// Rules, backends and what is thought of them.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let rules: Vec<Value> = self.tables.rules.iter().map(|rule| self.rule_json(rule)).collect();
        let probes: Vec<Value> = self
            .health
            .all()
            .map(|(probe, backend, healthy)| {
                json!({"probe": probe.0, "backend": backend, "healthy": healthy})
            })
            .collect();
        json!({"rules": rules, "probes": probes, "flows": self.flows(), "counts": self.counts})
    }

    fn rule_json(&self, rule: &Rule) -> Value {
        let backends = rule.backends.iter().map(|backend| {
            json!({
                "address": backend.address,
                "adminState": format!("{:?}", backend.admin),
                "takesNewFlows": self.takes_flows(rule, backend),
                "flows": self.flows_of(backend.address),
            })
        });
        json!({"id": rule.id, "backends": backends.collect::<Vec<_>>()})
    }
}
