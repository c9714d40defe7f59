//! Whether a new process plans what the old one was about to do. At a point of a scenario the
//! operator pauses writes to Azure, so that nothing changes there any more, and both processes read
//! everything, one after the other. What a plan follows from beside facts shows as a difference.
//!
//! # Assumptions
//! Plans are compared when every time is over for both that has no record in Kubernetes or Azure:
//! - Azure's lists lag, and do not say by how much. A new process removes nothing before they are
//!   certain to show what was written before it.
//! - A deleted Node leaves nothing behind, and a label has no time. A new process lets nodes drain
//!   for their whole time.
//! - A Pod that waits for the gateway did so while no process could list it there. A new process
//!   gives the gateway its whole time.

use super::act::{act, set};
use super::{LIMIT_MS, Place};
use crate::stage::Stage;
use crate::weather::Script;
use control::Event;
use model::Pause;
use model::plan::Change;

/// How long a process reads before its plan counts: longer than it waits for the end of an
/// operation that it cannot follow.
const READ_MS: u64 = 20 * 60_000;

/// What restarts at the points of a place came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Restarts {
    /// Points at which plans were compared.
    pub tried: u64,
    /// Those of them at which the old process had something to do.
    pub planned: u64,
    /// What only one of both processes plans, and what else broke.
    pub wrong: Vec<String>,
}

/// Compares the old process and a new one at one point in so many of a place, counted by effects.
/// `edit` is what others do in the cluster while writes to Azure are paused.
#[must_use]
pub fn enumerate_restarts(place: Place, stride: u64, edit: fn(&mut Stage)) -> Restarts {
    let mut fair = begin(place);
    let mut effect = fair.numbers.0;
    fair.settle(LIMIT_MS);
    let end = fair.numbers.0;
    let mut restarts = Restarts::default();
    while effect <= end {
        let mut stage = begin(place);
        stage.reach_effect(effect, LIMIT_MS);
        // One step may have several effects.
        effect = effect.max(stage.numbers.0);
        restarts.compare(stage, &format!("effect {effect}"), edit);
        effect += stride.max(1);
    }
    restarts
}

impl Restarts {
    /// The old process reads everything and is killed; a new one does in its place.
    fn compare(&mut self, mut stage: Stage, point: &str, edit: fn(&mut Stage)) {
        pause(&mut stage);
        edit(&mut stage);
        stage.advance(stage.now_ms + READ_MS);
        let lived = next_step(&stage);
        stage.kill(0, "its plan was noted");
        pause(&mut stage);
        stage.advance(stage.now_ms + READ_MS);
        let fresh = next_step(&stage);
        self.tried += 1;
        self.planned += u64::from(!lived.is_empty());
        for line in lived.iter().filter(|line| !fresh.contains(line)) {
            self.wrong.push(format!("{point}: only the old process plans {line}"));
        }
        for line in fresh.iter().filter(|line| !lived.contains(line)) {
            self.wrong.push(format!("{point}: only the new process plans {line}"));
        }
        let breach = stage.breach.take();
        self.wrong.extend(breach.map(|b| format!("{point}: {}: {}", b.rule, b.text)));
    }
}

/// A stage on which a scenario has just been acted.
fn begin(place: Place) -> Stage {
    let mut stage = set(place, Script::default());
    stage.settle(LIMIT_MS);
    act(place.scenario, &mut stage);
    stage
}

/// No write of Azure's begins any more; one under way ends.
fn pause(stage: &mut Stage) {
    stage.tell(0, Event::Pause(Some(Pause::All)));
}

/// Everything that the process is about to write, in words: whether it may be sent counts, and on
/// whose account it is does not.
fn next_step(stage: &Stage) -> Vec<String> {
    let plan = stage.processes[0].controller.plan();
    let changes = plan.changes.iter().map(|change| {
        let Change { target, action, guard, causes: _, waits } = change.as_ref();
        let when = if waits.is_empty() { "now" } else { "later" };
        format!("{target} {when}: {action:?} if {guard:?}")
    });
    let writes = plan.writes.iter().map(|write| format!("{write:?}"));
    let ledger = plan.ledger.iter().map(|write| format!("{write:?}"));
    changes.chain(writes).chain(ledger).collect()
}
