//! A leader that stands still before every write while another takes over and is asked for more.

use super::act::{act, ask_for_more, set};
use super::play::{Mark, Played, come_right};
use super::point::PAUSE_MS;
use super::scenario::{Conditions, Scenario};
use super::{LIMIT_MS, Place};
use crate::canary::{Canary, Mutant};
use crate::check::Breach;
use crate::check::differential::difference;
use crate::scene::Layout;
use crate::weather::Script;

/// When more is asked for while it stands still.
const AGAIN_MS: u64 = 60_000;

/// What leaders that stand still came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pauses {
    /// Writes before which the leader stood still, after its look at the lease.
    pub tried: u64,
    /// Writes of theirs that reached Azure late and were refused.
    pub refused: u64,
    /// Pauses that did not end right, with what broke.
    pub wrong: Vec<String>,
}

/// Two processes. The leader stands still at each write in turn, after its look at the lease and
/// before the write is on its way. The other takes over, is asked for more and does it. Then the
/// first one's write arrives.
#[must_use]
pub fn enumerate_pauses(scenario: Scenario, layout: Layout, canary: Option<Canary>) -> Pauses {
    let mut pauses = Pauses::default();
    let fair = play_two(scenario, layout, Script::default(), None);
    let want = match fair.end {
        Ok(want) => want,
        Err(breach) => {
            pauses.wrong.push(format!("without a pause: {}: {}", breach.rule, breach.text));
            return pauses;
        }
    };
    for call in fair.writes {
        let script = Script { pause: Some((call, PAUSE_MS)), ..Script::default() };
        let played = play_two(scenario, layout, script, canary);
        pauses.tried += 1;
        pauses.refused += played.refused;
        match played.end {
            Err(Breach { rule, text, .. }) => {
                pauses.wrong.push(format!("pause at call {call}: {rule}: {text}"));
            }
            Ok(form) if form != want => {
                let lines = difference(&form, &want).join("\n");
                pauses.wrong.push(format!("pause at call {call}: another end: {lines}"));
            }
            Ok(_) => {}
        }
    }
    pauses
}

/// Plays one scenario with two processes, and asks for more while one may stand still.
fn play_two(scenario: Scenario, layout: Layout, script: Script, canary: Option<Canary>) -> Played {
    let place = Place { scenario, layout, conditions: Conditions::Leaders };
    let mut stage = set(place, script);
    let estate = stage.ids();
    stage.settle(LIMIT_MS);
    stage.mutant = canary.map(Mutant::new);
    let mark = Mark::set(&mut stage, estate);
    act(scenario, &mut stage);
    stage.advance(stage.now_ms + AGAIN_MS);
    // Without a pause everything is at rest by now.
    let writes = std::mem::take(&mut stage.writes);
    ask_for_more(scenario, &mut stage);
    stage.advance(stage.now_ms + PAUSE_MS);
    come_right(&mut stage);
    let played = Played::note(&mut stage, &mark);
    Played { writes, ..played.conclude(stage) }
}
