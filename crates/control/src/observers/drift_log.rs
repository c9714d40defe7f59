//! What others changed in Azure, remembered for a while.

use model::drift::{Drift, Part};
use model::policy::DriftPolicy;
use model::{Pause, ResourceId};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Drift that is over and still shown.
const REMEMBERED: usize = 50;

/// What became of drift.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DriftOutcome {
    /// It is being written back.
    Repairing,
    /// It is left as others made it.
    Reported,
    /// It is left until an operator ends the pause of writes.
    Paused,
    /// The parts are as Ballast set them again.
    Over,
}

/// Drift, and when it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriftRecord {
    /// What differs.
    pub drift: Drift,
    /// When it was noticed, in milliseconds of the controller's clock.
    pub noticed_ms: u64,
    /// When it was over.
    pub ended_ms: Option<u64>,
    /// What became of it.
    pub outcome: DriftOutcome,
}

/// Drift that was told of.
#[derive(Debug, Default)]
pub(crate) struct DriftLog {
    records: BTreeMap<(ResourceId, Part), DriftRecord>,
    past: VecDeque<DriftRecord>,
    noticed: u64,
}

/// What is news of drift.
#[derive(Debug, Default)]
pub(crate) struct DriftNews {
    /// What was not known, or was otherwise.
    pub new: Vec<Drift>,
    /// What is over.
    pub over: Vec<Drift>,
}

impl DriftLog {
    /// What stands now, then what is over, the last first.
    pub fn records(&self) -> impl Iterator<Item = &DriftRecord> {
        self.records.values().chain(self.past.iter().rev())
    }

    /// How many fields were seen to differ since the start.
    pub fn noticed(&self) -> u64 {
        self.noticed
    }

    /// Compares what differs now with what did before.
    pub fn compare(
        &mut self,
        now: &[Drift],
        (policy, pause): (DriftPolicy, Option<&Pause>),
        now_ms: u64,
    ) -> DriftNews {
        let outcome_of = |id: &ResourceId| match policy {
            DriftPolicy::Report => DriftOutcome::Reported,
            DriftPolicy::Repair if pause.is_some_and(|pause| pause.stops(id)) => {
                DriftOutcome::Paused
            }
            DriftPolicy::Repair => DriftOutcome::Repairing,
        };
        let mut news = DriftNews::default();
        let places: BTreeSet<(ResourceId, Part)> = now.iter().map(Drift::place).collect();
        for (place, mut record) in std::mem::take(&mut self.records) {
            if places.contains(&place) {
                self.records.insert(place, record);
                continue;
            }
            record.ended_ms = Some(now_ms);
            record.outcome = DriftOutcome::Over;
            news.over.push(record.drift.clone());
            self.past.push_back(record);
            if self.past.len() > REMEMBERED {
                self.past.pop_front();
            }
        }
        for drift in now {
            let known = self.records.get(&drift.place());
            let noticed_ms = known.map_or(now_ms, |record| record.noticed_ms);
            if known.is_none_or(|record| record.drift.departure != drift.departure) {
                self.noticed += drift.fields();
                news.new.push(drift.clone());
            }
            let drift = drift.clone();
            let outcome = outcome_of(&drift.target);
            let record = DriftRecord { drift, noticed_ms, ended_ms: None, outcome };
            self.records.insert(record.drift.place(), record);
        }
        news
    }

    /// What stands is not told from what was before.
    pub fn forget(&mut self) {
        self.records.clear();
    }
}
