//! What probes have found out, and when they ask next.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;

use super::table::{Probe, ProbeKey, ProbeKind, Tables};

/// The longest that an answer to an Http probe is waited for.
const HTTP_PATIENCE_MS: u64 = 30_000;

/// Changes of mind that are remembered for each backend of a probe.
const CHANGES: usize = 32;

/// What a probe found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The backend answered as it should.
    Good,
    /// It did not, or not in time.
    Bad,
}

/// One question of a probe, to be asked now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// Whose question.
    pub probe: ProbeKey,
    /// Who is asked.
    pub backend: IpAddr,
    /// At which port.
    pub port: u16,
    /// How.
    pub kind: ProbeKind,
    /// How long the answer is waited for.
    pub patience_ms: u64,
}

/// What one probe thinks of one backend.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Opinion {
    /// Nothing has been found yet: one good answer is enough.
    fresh: bool,
    healthy: bool,
    /// Answers in a row that speak against it.
    against: u32,
    next_ms: u64,
    /// A question is out.
    asked: bool,
    /// When the mind was made up, and how; the last one last. Empty before the first answer.
    changes: VecDeque<(u64, bool)>,
}

impl Opinion {
    fn note(&mut self, now_ms: u64) {
        if self.changes.len() == CHANGES {
            self.changes.pop_front();
        }
        self.changes.push_back((now_ms, self.healthy));
    }
}

/// What all probes think.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Health {
    opinions: BTreeMap<(ProbeKey, IpAddr), Opinion>,
}

impl Health {
    /// Begins to ask who is new, and forgets who is gone.
    pub(super) fn load(&mut self, tables: &Tables, now_ms: u64) {
        let mut wanted = BTreeSet::new();
        for rule in &tables.rules {
            let Some(probe) = &rule.probe else { continue };
            wanted.extend(rule.backends.iter().map(|b| (probe.clone(), b.address)));
        }
        self.opinions.retain(|key, _| wanted.contains(key));
        for key in wanted {
            self.opinions.entry(key).or_insert(Opinion {
                fresh: true,
                healthy: false,
                against: 0,
                next_ms: now_ms,
                asked: false,
                changes: VecDeque::new(),
            });
        }
    }

    /// Whether a probe holds a backend to be healthy.
    pub(super) fn is_healthy(&self, probe: &ProbeKey, backend: IpAddr) -> bool {
        self.opinions.get(&(probe.clone(), backend)).is_some_and(|opinion| opinion.healthy)
    }

    /// The questions that are due. The answer to one is awaited before the next.
    pub(super) fn due(&mut self, tables: &Tables, now_ms: u64) -> Vec<Question> {
        let mut questions = Vec::new();
        for ((key, backend), opinion) in &mut self.opinions {
            // Asked for every ten milliseconds: what is not due costs no search.
            if opinion.asked || opinion.next_ms > now_ms {
                continue;
            }
            let Some(probe) = tables.probes.get(key) else { continue };
            opinion.asked = true;
            opinion.next_ms = now_ms + probe.interval_ms;
            questions.push(Question {
                probe: key.clone(),
                backend: *backend,
                port: probe.port,
                kind: probe.kind.clone(),
                patience_ms: patience_ms(probe),
            });
        }
        questions
    }

    /// Takes an answer in; returns whether it changed anybody's mind.
    pub(super) fn learn(
        &mut self,
        tables: &Tables,
        probe: &ProbeKey,
        backend: IpAddr,
        verdict: Verdict,
        now_ms: u64,
    ) -> bool {
        let threshold = tables.probes.get(probe).map_or(1, |probe| probe.threshold);
        let Some(opinion) = self.opinions.get_mut(&(probe.clone(), backend)) else { return false };
        opinion.asked = false;
        let good = verdict == Verdict::Good;
        if good == opinion.healthy {
            opinion.against = 0;
            opinion.fresh &= !good;
            if opinion.changes.is_empty() {
                opinion.note(now_ms);
            }
            return false;
        }
        opinion.against += 1;
        if opinion.against < threshold && !(good && opinion.fresh) {
            return false;
        }
        opinion.healthy = good;
        opinion.fresh = false;
        opinion.against = 0;
        opinion.note(now_ms);
        true
    }

    /// When a probe changed its mind about a backend, and to what; the last time last.
    pub(super) fn changes(&self, probe: &ProbeKey, backend: IpAddr) -> Vec<(u64, bool)> {
        let opinion = self.opinions.get(&(probe.clone(), backend));
        opinion.map(|opinion| opinion.changes.iter().copied().collect()).unwrap_or_default()
    }

    /// Everybody's opinion, for those who look in.
    pub(super) fn all(&self) -> impl Iterator<Item = (&ProbeKey, IpAddr, bool)> {
        self.opinions.iter().map(|((probe, backend), o)| (probe, *backend, o.healthy))
    }
}

fn patience_ms(probe: &Probe) -> u64 {
    match probe.kind {
        ProbeKind::Tcp => probe.interval_ms,
        ProbeKind::Http { .. } => probe.interval_ms.min(HTTP_PATIENCE_MS),
    }
}
