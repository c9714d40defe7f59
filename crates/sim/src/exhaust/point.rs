//! Points of a scenario: what may befall each of its effects, calls and deliveries of watches.

use super::play::Played;
use super::scenario::Conditions;
use crate::fault::Fault;
use crate::weather::{Script, Side, WATCHES};

named! {
    /// Kinds of faults.
    pub enum Kind;
    /// Every kind.
    pub const KINDS;
    Crash, "crash", "the process dies before or after an effect";
    Loss, "answer-lost", "an answer is lost, its call carried out or not";
    Swap, "answers-swapped", "two answers under way at the same time change places";
    Error, "error-answer", "Azure or the API server answers with an error";
    Operation, "operation", "an operation fails, takes minutes, or loses what it was to write";
    Late, "late-answer", "an answer is cut off, takes 20 s, or never comes";
    Lag, "lag", "a list or a watch is late, old, or says a thing twice";
    Takeover, "takeover", "the leader stands still before a call, and the other one takes over";
    Second, "second-crash", "the process dies while it recovers from another fault";
}

/// How long a leader stands still: long enough for another to take over and to be done.
pub(super) const PAUSE_MS: u64 = 120_000;

/// One thing to try.
#[derive(Clone, Copy, Debug)]
pub(super) struct Point {
    pub kind: Kind,
    pub script: Script,
}

impl Point {
    /// The first effect after the fault.
    fn recovery(&self) -> Option<u64> {
        let Script { crash, lose, fault, pause, .. } = self.script;
        // Until something befell it, a process has sent a call for each effect.
        let crash = crash.map(|(effect, _)| effect);
        let lose = lose.map(|(call, _)| call);
        let fault = fault.map(|(call, ..)| call);
        let pause = pause.map(|(call, _)| call);
        crash.or(lose).or(fault).or(pause).map(|at| at + 1)
    }

    /// The same with a second crash at each effect of the recovery.
    pub(super) fn followed(&self, played: &Played) -> Vec<Self> {
        let Some(from) = self.recovery() else { return Vec::new() };
        let effects = from..played.effects.end;
        let sides = |effect| [(effect, Side::Before), (effect, Side::After)];
        let points = effects.flat_map(sides).map(|crash| Self {
            kind: Kind::Second,
            script: Script { second_crash: Some(crash), ..self.script },
        });
        points.collect()
    }

    /// How many faults of it are counted when they strike.
    pub(super) fn counted(&self) -> u64 {
        let Script { crash, second_crash, fault, watch, pause, .. } = self.script;
        let crashes = [crash, second_crash].iter().flatten().count() as u64;
        crashes
            + u64::from(fault.is_some())
            + u64::from(watch.is_some())
            + u64::from(pause.is_some())
    }

    /// What befalls, in a few words.
    pub(super) fn tell(&self) -> String {
        let Script { crash, second_crash, fault, watch, lose, swap, pause } = self.script;
        let mut words = Vec::new();
        if let Some((effect, side)) = crash {
            words.push(format!("crash {side:?} effect {effect}"));
        }
        if let Some((call, side)) = lose {
            words.push(format!("answer {call} lost {side:?}"));
        }
        if let Some((one, two)) = swap {
            words.push(format!("answers {one} and {two} swapped"));
        }
        if let Some((call, fault, number)) = fault {
            words.push(format!("{} ({number}) at call {call}", fault.name()));
        }
        if let Some((delivery, fault)) = watch {
            words.push(format!("{} at delivery {delivery}", fault.name()));
        }
        if let Some((call, ms)) = pause {
            words.push(format!("pause of {} s at call {call}", ms / 1_000));
        }
        if let Some((effect, side)) = second_crash {
            words.push(format!("crash {side:?} effect {effect}"));
        }
        words.join(", then ")
    }
}

fn kind_of(fault: Fault) -> Kind {
    match fault {
        Fault::StaleList => Kind::Lag,
        Fault::Truncated | Fault::Hang | Fault::Slow => Kind::Late,
        Fault::Superseded
        | Fault::LosesPool
        | Fault::OperationFails
        | Fault::Stuck
        | Fault::ErrorIn200
        | Fault::AcceptedThenFails => Kind::Operation,
        _ => Kind::Error,
    }
}

/// Details of a fault that are tried: they choose a status, a code or a time.
fn details(fault: Fault) -> &'static [u64] {
    match fault {
        Fault::ServerError => &[0, 2],
        Fault::Refused => &[0, 1],
        Fault::QuotaWithHeader => &[29],
        Fault::Stuck => &[240_000],
        Fault::Slow => &[19_500],
        Fault::StaleList => &[8_500],
        _ => &[0],
    }
}

/// Every point of a play without faults, kind by kind.
pub(super) fn points(fair: &Played, conditions: Conditions) -> Vec<Point> {
    let point = |kind, script| Point { kind, script };
    let mut all = Vec::new();
    let sides = [Side::Before, Side::After];
    for effect in fair.effects.clone() {
        let crash = |side| Script { crash: Some((effect, side)), ..Script::default() };
        all.extend(sides.map(|side| point(Kind::Crash, crash(side))));
    }
    for call in fair.calls.clone() {
        let lose = |side| Script { lose: Some((call, side)), ..Script::default() };
        all.extend(sides.map(|side| point(Kind::Loss, lose(side))));
    }
    for pair in &fair.pairs {
        all.push(point(Kind::Swap, Script { swap: Some(*pair), ..Script::default() }));
    }
    for (call, fault) in &fair.suiting {
        for number in details(*fault) {
            let script = Script { fault: Some((*call, *fault, *number)), ..Script::default() };
            all.push(point(kind_of(*fault), script));
        }
    }
    let lag = |at, fault| Script { watch: Some((at, fault)), ..Script::default() };
    for delivery in fair.arranged.clone() {
        all.push(point(Kind::Lag, lag(delivery, Fault::WatchLag)));
    }
    for delivery in fair.delivered.clone() {
        let faults = WATCHES.iter().chain([&Fault::StaleRelist]);
        all.extend(faults.map(|fault| point(Kind::Lag, lag(delivery, *fault))));
    }
    if conditions == Conditions::Leaders {
        for call in fair.calls.clone() {
            let pause = Script { pause: Some((call, PAUSE_MS)), ..Script::default() };
            all.push(point(Kind::Takeover, pause));
        }
    }
    all
}
