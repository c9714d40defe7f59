//! One play of a scenario: what is done, the fault, time to come right, peace, leaving.

use super::act::{act, set};
use super::edits::delete_all;
use super::{LIMIT_MS, Place};
use crate::check::Breach;
use crate::check::differential::Form;
use crate::fault::Fault;
use crate::run::Tracing;
use crate::stage::Stage;
use crate::trace::Trace;
use crate::weather::{Script, Weather};
use std::collections::BTreeSet;
use std::ops::Range;

/// How long nothing may be written once all is right, before a restart and after it.
const PEACE_MS: u64 = 15 * 60_000;
/// How long a look for drift may take that a fault befell: longer than a leader stands still.
const REPEAT_MS: u64 = 5 * 60_000;

/// What came of a play. Numbers are those of what was done, without what it began from.
pub(super) struct Played {
    /// The end, or the rule that was broken.
    pub end: Result<Form, Breach>,
    /// Faults that struck.
    pub met: u64,
    /// Effects.
    pub effects: Range<u64>,
    /// Calls.
    pub calls: Range<u64>,
    /// Deliveries of watches that were arranged.
    pub arranged: Range<u64>,
    /// Deliveries of watches that were made.
    pub delivered: Range<u64>,
    /// Calls that were under way at the same time.
    pub pairs: Vec<(u64, u64)>,
    /// Faults that may befall each call.
    pub suiting: Vec<(u64, Fault)>,
    /// Calls that write.
    pub writes: Vec<u64>,
    /// Late writes that were refused.
    pub refused: u64,
    /// What happened, where it was kept.
    pub trace: Vec<String>,
}

/// What the numbers were when something began.
pub(super) struct Mark {
    effects: u64,
    calls: u64,
    deliveries: (u64, u64),
    /// Ids of what stood before any Service came.
    estate: BTreeSet<String>,
}

impl Mark {
    /// From here on everything is a point.
    pub(super) fn set(stage: &mut Stage, estate: BTreeSet<String>) -> Self {
        stage.pairs.clear();
        stage.suiting.clear();
        stage.writes.clear();
        let (effects, calls) = stage.numbers;
        Self { effects, calls, deliveries: stage.deliveries, estate }
    }
}

/// Plays one scenario. Effects are numbered from the start, so that a script means the same point
/// each time.
pub(super) fn play(place: Place, script: Script, tracing: Tracing) -> Played {
    let mut stage = set(place, script);
    if tracing == Tracing::On {
        stage.trace = Trace::kept();
    }
    let estate = stage.ids();
    stage.settle(LIMIT_MS);
    let mark = Mark::set(&mut stage, estate);
    act(place.scenario, &mut stage);
    come_right(&mut stage);
    let played = Played::note(&mut stage, &mark);
    stage.weather = Weather::Fair;
    keep_quiet(&mut stage);
    leave(&mut stage, &mark.estate);
    played.conclude(stage)
}

impl Played {
    /// What came of what was done.
    pub(super) fn note(stage: &mut Stage, mark: &Mark) -> Self {
        let range = |from: u64, to: u64| from + 1..to + 1;
        Self {
            end: Ok(stage.form()),
            met: stage.tally.faults.values().sum(),
            effects: range(mark.effects, stage.numbers.0),
            calls: range(mark.calls, stage.numbers.1),
            arranged: range(mark.deliveries.0, stage.deliveries.0),
            delivered: range(mark.deliveries.1, stage.deliveries.1),
            pairs: std::mem::take(&mut stage.pairs),
            suiting: std::mem::take(&mut stage.suiting),
            writes: std::mem::take(&mut stage.writes),
            refused: 0,
            trace: Vec::new(),
        }
    }

    /// What broke by the end, if anything did.
    pub(super) fn conclude(mut self, mut stage: Stage) -> Self {
        if let Some(breach) = stage.breach.take() {
            self.end = Err(breach);
        }
        self.refused = stage.ledger.fenced;
        self.trace = stage.trace.lines.take().unwrap_or_default();
        self
    }
}

/// L1 and L4: everything comes right, and is what was promised.
pub(super) fn come_right(stage: &mut Stage) {
    let done = stage.settle(LIMIT_MS);
    // What a list may not show yet is waited for.
    stage.advance(stage.now_ms + 10 * 60_000);
    // The fault may have befallen a look for drift of just now: it is repeated.
    let rests = stage.settle(REPEAT_MS);
    if !done || !rests {
        let text = stage.unsettled();
        stage.fail("L1", text);
    }
    if stage.breach.is_some() {
        return;
    }
    if let Some(wrong) = stage.untrue().first() {
        stage.fail("L4", wrong.clone());
    }
    let unkept = stage.unkept().first().map(ToString::to_string);
    let wrong = [stage.unpublished().first().cloned(), stage.held_back().first().cloned()];
    for text in [unkept, stage.undrained()].into_iter().chain(wrong).flatten() {
        stage.fail("L1", text);
    }
}

/// L1: nothing is written once all is right, not even after a restart.
fn keep_quiet(stage: &mut Stage) {
    for restart in [false, true] {
        if restart {
            (0..stage.processes.len()).for_each(|number| stage.kill(number, "restarted in peace"));
        }
        let before = stage.ledger.attempts;
        stage.advance(stage.now_ms + PEACE_MS);
        // A look for drift may be under way at this very moment.
        let rests = stage.settle(60_000);
        let written = stage.ledger.attempts - before;
        if written > 0 {
            let when = if restart { "after a restart in peace" } else { "in peace" };
            stage.fail("L1", format!("{written} writes {when}"));
        } else if !rests {
            let text = stage.unsettled();
            stage.fail("L1", text);
        }
    }
}

/// L2: everything is deleted, and nothing of ours stays.
fn leave(stage: &mut Stage, estate: &BTreeSet<String>) {
    delete_all(stage);
    if !stage.settle(LIMIT_MS) {
        let text = stage.unsettled();
        stage.fail("L2", text);
    }
    if stage.breach.is_some() {
        return;
    }
    for plural in ["services", "pods"] {
        let stuck = stage.kubernetes.list(plural, None);
        if let Some(object) = stuck.first() {
            let text = format!("{plural} {} keeps its finalizer", object["metadata"]["name"]);
            stage.fail("L2", text);
        }
    }
    if let Some(left) = stage.left_over(estate).first() {
        stage.fail("L2", format!("{left} is left over"));
    }
    if let Some(broken) = stage.unkept().first() {
        stage.fail("L2", broken.to_string());
    }
}
