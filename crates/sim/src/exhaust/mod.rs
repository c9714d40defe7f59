//! Small scenarios, in each of which one fault after the other is tried at every point: at each
//! effect, call, delivery of a watch, and pair of answers; and a second crash at each effect of the
//! recovery. What is too much is sampled by a fixed stride.
//!
//! # Guarantees
//! The same strides try the same points, and come to the same.

mod act;
mod edits;
mod pauses;
mod play;
mod point;
mod restarts;
mod scenario;

pub use pauses::{Pauses, enumerate_pauses};
pub use point::{KINDS, Kind};
pub use restarts::{Restarts, enumerate_restarts};
pub use scenario::{CONDITIONS, Conditions, SCENARIOS, Scenario, plays, suits};

use crate::check::Breach;
use crate::check::differential::{Form, difference};
use crate::run::Tracing;
use crate::scene::{LAYOUTS, Layout};
use crate::weather::Script;
use play::{Played, play};
use point::{Point, points};
use std::collections::BTreeMap;

/// How long a scenario may take to come right.
const LIMIT_MS: u64 = 30 * 60_000;

/// One scenario in one layout under some conditions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// What is done.
    pub scenario: Scenario,
    /// Which load balancers there are.
    pub layout: Layout,
    /// How Azure and the processes are.
    pub conditions: Conditions,
}

/// Every place that means something, in a fixed order.
#[must_use]
pub fn places() -> Vec<Place> {
    let mut all = Vec::new();
    for (layout, _) in LAYOUTS {
        for scenario in SCENARIOS.iter().copied().filter(|scenario| suits(*scenario, layout)) {
            let conditions = CONDITIONS.iter().copied();
            let conditions = conditions.filter(|conditions| plays(scenario, *conditions));
            all.extend(conditions.map(|conditions| Place { scenario, layout, conditions }));
        }
    }
    all
}

/// Of how many points of a kind one is tried; 0: none.
pub type Stride = fn(Kind, Conditions) -> usize;

/// The strides of `ballast sim --exhaustive`: about three minutes of one core. They are primes, so
/// that they are in step with no scenario.
#[must_use]
pub fn usual(kind: Kind, conditions: Conditions) -> usize {
    use Conditions::{Leaders, Paged, Plain, Slow};
    match (kind, conditions) {
        (Kind::Second, _) => 499,
        (Kind::Crash | Kind::Loss, Plain) => 7,
        (Kind::Operation, Plain) => 11,
        (Kind::Swap | Kind::Lag, Plain) => 29,
        (Kind::Error | Kind::Late, Plain) => 47,
        (Kind::Crash | Kind::Operation, Slow | Paged) => 29,
        (Kind::Loss | Kind::Swap | Kind::Lag, Slow | Paged) => 79,
        (Kind::Error | Kind::Late, Slow | Paged) => 199,
        // Two processes ask for the Lease every two seconds: a play takes five times as long.
        (Kind::Crash | Kind::Takeover, _) => 31,
        (_, Leaders) => 499,
    }
}

/// How many points were tried, of how many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Tried.
    pub tried: u64,
    /// All. Second crashes are counted behind points that were tried.
    pub all: u64,
}

/// What the enumeration of one place came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Points {
    /// Points by kind.
    pub kinds: BTreeMap<Kind, Count>,
    /// Points that did not end right, with what broke.
    pub wrong: Vec<String>,
}

impl Points {
    /// All points but second crashes.
    #[must_use]
    pub fn first(&self) -> Count {
        let first = self.kinds.iter().filter(|(kind, _)| **kind != Kind::Second);
        first.fold(Count::default(), |sum, (_, count)| sum.plus(*count))
    }

    /// The points of a kind.
    #[must_use]
    pub fn of(&self, kind: Kind) -> Count {
        self.kinds.get(&kind).copied().unwrap_or_default()
    }

    /// All points that were tried.
    #[must_use]
    pub fn tried(&self) -> u64 {
        self.kinds.values().map(|count| count.tried).sum()
    }

    /// Adds those of another place.
    pub fn add(&mut self, other: &Self) {
        for (kind, count) in &other.kinds {
            let sum = self.kinds.entry(*kind).or_default();
            *sum = sum.plus(*count);
        }
        self.wrong.extend(other.wrong.iter().cloned());
    }
}

impl Count {
    fn plus(self, other: Self) -> Self {
        Self { tried: self.tried + other.tried, all: self.all + other.all }
    }
}

/// Chooses points, and counts them.
struct Sampler {
    stride: Stride,
    conditions: Conditions,
    kinds: BTreeMap<Kind, Count>,
    /// Where the strides of this place begin: not all places try their first point.
    offset: u64,
}

impl Sampler {
    fn takes(&mut self, kind: Kind) -> bool {
        let stride = (self.stride)(kind, self.conditions) as u64;
        let count = self.kinds.entry(kind).or_default();
        count.all += 1;
        let taken = stride > 0 && (count.all + self.offset).is_multiple_of(stride);
        count.tried += u64::from(taken);
        taken
    }
}

/// Tries the points of one place.
#[must_use]
pub fn enumerate(place: Place, stride: Stride) -> Points {
    let fair = run(place, Script::default());
    let want = match &fair.end {
        Ok(want) => want.clone(),
        Err(Breach { rule, text, .. }) => {
            let conditions = place.conditions.name();
            let wrong = vec![format!("{conditions}, without faults: {rule}: {text}")];
            return Points { wrong, ..Points::default() };
        }
    };
    let position = places().iter().position(|other| *other == place).unwrap_or(0);
    let offset = position as u64 * 5;
    let conditions = place.conditions;
    let mut sampler = Sampler { stride, conditions, kinds: BTreeMap::new(), offset };
    let mut wrong = Vec::new();
    for point in points(&fair, conditions) {
        if !sampler.takes(point.kind) {
            continue;
        }
        let played = run(place, point.script);
        let mut judge = |point: &Point, played: &Played| {
            let line = judge(point, played, &want);
            wrong.extend(line.map(|line| format!("{}, {line}", conditions.name())));
        };
        judge(&point, &played);
        if played.end.is_err() {
            continue;
        }
        for second in point.followed(&played) {
            if sampler.takes(second.kind) {
                judge(&second, &run(place, second.script));
            }
        }
    }
    Points { kinds: sampler.kinds, wrong }
}

fn run(place: Place, script: Script) -> Played {
    play(place, script, Tracing::Off)
}

/// One point alone: the rule that broke, if one did, and everything that happened.
#[must_use]
pub fn replay(place: Place, script: Script) -> (Option<Breach>, Vec<String>) {
    let played = play(place, script, Tracing::On);
    (played.end.err(), played.trace)
}

/// What is wrong with the end of a point.
fn judge(point: &Point, played: &Played, want: &Form) -> Option<String> {
    let what = point.tell();
    match &played.end {
        Err(Breach { rule, text, .. }) => Some(format!("{what}: {rule}: {text}")),
        Ok(form) if form != want => {
            let lines = difference(form, want).join("\n");
            Some(format!("{what}: another end: {lines}"))
        }
        Ok(_) if played.met < point.counted() => Some(format!("{what}: it was not met")),
        Ok(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scenario_ends_right_without_faults() {
        for place in places() {
            let end = run(place, Script::default()).end;
            assert!(end.is_ok(), "{place:?}: {:?}", end.err().map(|breach| breach.text));
        }
    }
}
