//! Makes a failing seed smaller: fewer moves, fewer faults, fewer actors, as long as the same rule
//! breaks.

use crate::actor::ACTORS;
use crate::fault::FAULTS;
use crate::run::{Outcome, Settings, Tracing, run};

/// The smallest settings found under which the seed still breaks the rule, and what came of it.
#[must_use]
pub fn shrink(seed: u64, settings: &Settings, rule: &str) -> (Settings, Outcome) {
    let quiet = Settings { tracing: Tracing::Off, ..settings.clone() };
    let breaks = |tried: &Settings| {
        let outcome = run(seed, tried);
        outcome.breach.as_ref().is_some_and(|breach| breach.rule == rule).then_some(outcome)
    };
    let mut best = quiet.clone();
    if let Some(outcome) = breaks(&best) {
        best.moves = Some(outcome.moves);
    }
    shorten(&mut best, &breaks);
    for actor in ACTORS {
        let mut tried = best.clone();
        if tried.without_actors.insert(*actor) && breaks(&tried).is_some() {
            best = tried;
        }
    }
    for fault in FAULTS {
        let mut tried = best.clone();
        if tried.without.insert(*fault) && breaks(&tried).is_some() {
            best = tried;
        }
    }
    // Faults that the seed does not draw need no mention.
    for fault in FAULTS {
        let mut tried = best.clone();
        if tried.without.remove(fault) && breaks(&tried).is_some() {
            best = tried;
        }
    }
    shorten(&mut best, &breaks);
    for number in (1..=best.moves.unwrap_or(0)).rev() {
        let mut tried = best.clone();
        if tried.skipped.insert(number) && breaks(&tried).is_some() {
            best = tried;
        }
    }
    // Moves of those that make none need no mention.
    for number in best.skipped.clone() {
        let mut tried = best.clone();
        if tried.skipped.remove(&number) && breaks(&tried).is_some() {
            best = tried;
        }
    }
    best.tracing = Tracing::On;
    let outcome = run(seed, &best);
    (best, outcome)
}

/// The fewest moves at the start that still lead there.
fn shorten(best: &mut Settings, breaks: &impl Fn(&Settings) -> Option<Outcome>) {
    let mut low = 0;
    let mut high = best.moves.unwrap_or(64);
    while low < high {
        let middle = low + (high - low) / 2;
        let tried = Settings { moves: Some(middle), ..best.clone() };
        if breaks(&tried).is_some() {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    let tried = Settings { moves: Some(high), ..best.clone() };
    if breaks(&tried).is_some() {
        best.moves = Some(high);
    }
}
