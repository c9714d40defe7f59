//! One seed from its draw to its end.

mod blind;
mod bursts;
mod confirm;
mod crowd;
mod guests;
mod handover;
mod keys;
mod lagging;
mod lists;
mod locks;
mod pauses;
mod phases;
mod records;
mod remaining;
mod report;
mod room;
mod spelling;
mod terms;
mod turns;
mod unclaimed;
mod variety;
mod work;

pub use keys::SET_LATER;

use crate::actor::{Actor, Company, Planned};
use crate::canary::{Canary, Mutant};
use crate::check::Breach;
use crate::check::cost::{differences, snapshot};
use crate::check::differential::{Form, difference};
use crate::check::fair::Round;
use crate::fault::Fault;
use crate::poison::Poison;
use crate::process::Reading;
use crate::random::Random;
use crate::stage::Stage;
use crate::swarm::{Profile, Swarm};
use crate::tally::{Tally, count};
use crate::trace::Trace;
use crate::weather::{Drawn, Weather};
use serde_json::Value;
use std::collections::BTreeSet;

/// How long everything may take to come right once faults and inputs have stopped.
const HEAL_MS: u64 = 45 * 60_000;
/// How long Services may take to come right beside one that cannot be satisfied.
const POISONED_MS: u64 = 20 * 60_000;
/// How long it must stay right: a night.
const QUIET_MS: u64 = 8 * 60 * 60_000;

/// In how many seeds of a thousand watched objects are read from their text.
const AS_TEXT: u64 = 250;

/// What a run is made with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// What seeds may draw.
    pub profile: Profile,
    /// Faults and troublemakers that are left out.
    pub without: BTreeSet<Fault>,
    /// Actors that do nothing.
    pub without_actors: BTreeSet<Actor>,
    /// Only the first so many moves.
    pub moves: Option<u64>,
    /// What is wrong with the controller on purpose.
    pub canary: Option<Canary>,
    /// Moves that are left out, by their numbers from 1 in the order of time.
    pub skipped: BTreeSet<u64>,
    /// Whether a trace is kept.
    pub tracing: Tracing,
}

/// Whether a trace is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tracing {
    /// Nothing is kept.
    #[default]
    Off,
    /// Every line is.
    On,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            profile: Profile::All,
            without: BTreeSet::new(),
            without_actors: BTreeSet::new(),
            moves: None,
            skipped: BTreeSet::new(),
            canary: None,
            tracing: Tracing::Off,
        }
    }
}

/// What came of a seed.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The seed.
    pub seed: u64,
    /// The rule that was broken, if one was.
    pub breach: Option<Breach>,
    /// What was met.
    pub tally: Tally,
    /// The number of the last move that was made.
    pub moves: u64,
    /// What happened, where it was kept.
    pub trace: Vec<String>,
}

/// Runs one seed, and the same inputs without faults to compare the ends.
#[must_use]
pub fn run(seed: u64, settings: &Settings) -> Outcome {
    let random = Random::new(seed);
    let swarm = Swarm::draw(&random, settings.profile, &settings.without);
    let mut play = Play::new(&random, swarm.clone(), settings, Side::Faulty);
    let form = play.whole();
    let stripped = std::mem::take(&mut play.stripped);
    let mut stage = play.stage;
    count(&mut stage.tally.layouts, swarm.scene.layout.name());
    let comparable = !swarm.is_calm();
    if stage.breach.is_none()
        && comparable
        && let Some(form) = form
    {
        let fair = Settings { canary: None, ..settings.clone() };
        let mut twin = Play::new(&random, swarm, &fair, Side::Fair);
        // Where a finalizer was there to be taken off in one run alone, both have other Services.
        let want = twin.storm_and_heal().filter(|_| twin.stripped == stripped);
        stage.tally.steps += twin.stage.tally.steps;
        stage.tally.controller_steps += twin.stage.tally.controller_steps;
        stage.tally.simulated_ms += twin.stage.now_ms - crate::stage::START_MS;
        count(&mut stage.tally.checks, "differential");
        if let (None, Some(twins)) = (&stage.misplanned, twin.stage.misplanned) {
            let text = format!("without faults: {}", twins.text);
            stage.misplanned = Some(Breach { text, ..twins });
            stage.trace = twin.stage.trace.clone();
        }
        match (twin.stage.breach, want) {
            (Some(breach), _) => {
                stage.trace = twin.stage.trace;
                stage.fail(breach.rule, format!("without faults: {}", breach.text));
            }
            (None, Some(want)) if want != form => {
                let lines = difference(&form, &want);
                stage.fail("differential", lines.join("\n"));
            }
            _ => {}
        }
    }
    if let Some(breach) = stage.misplanned.take() {
        stage.fail(breach.rule, breach.text);
    }
    stage.tally.simulated_ms += stage.now_ms - crate::stage::START_MS;
    let judged = stage.tally.checks.keys();
    stage.tally.judged = judged.map(|rule| (*rule, 1)).collect();
    Outcome {
        seed,
        breach: stage.breach,
        tally: stage.tally,
        moves: play.made,
        trace: stage.trace.lines.unwrap_or_default(),
    }
}

/// What the seed has drawn, for whoever reads the trace.
fn head(swarm: &Swarm, planned: &[Planned]) -> String {
    let pace = &swarm.pace;
    let faults: Vec<String> =
        swarm.strengths.iter().map(|(fault, of)| format!("{} {of}", fault.name())).collect();
    let faults = if faults.is_empty() { "none".to_owned() } else { faults.join(", ") };
    format!(
        "layout {}, {} nodes, {} moves in {} s; one way: Azure {} ms, API server {} ms, watches \
         {} ms; operations {} ms; faults in a thousand: {faults}",
        swarm.scene.layout.name(),
        swarm.scene.nodes,
        planned.len(),
        swarm.horizon_ms / 1_000,
        pace.azure_ms,
        pace.api_ms,
        pace.watch_ms,
        pace.operation_ms,
    )
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Faulty,
    Fair,
}

struct Play {
    stage: Stage,
    company: Company,
    planned: Vec<Planned>,
    side: Side,
    calm: bool,
    made: u64,
    /// Writes, and resources that differ.
    cost: (u64, u64),
    estate: BTreeSet<String>,
    /// For what happens after the moves.
    late: Random,
    /// Services that went without the finalizer that somebody had taken off by hand.
    stripped: BTreeSet<String>,
}

impl Play {
    fn new(random: &Random, swarm: Swarm, settings: &Settings, side: Side) -> Self {
        let faulty = side == Side::Faulty;
        let weather = if faulty && !swarm.is_calm() {
            Weather::Drawn(Box::new(Drawn::new(&swarm, random)))
        } else {
            Weather::Fair
        };
        let processes = if faulty && swarm.has(Fault::TwoLeaders) { 2 } else { 1 };
        let mut stage = Stage::new(swarm.scene.clone(), swarm.pace, weather, processes);
        if random.fork("watches").permille(AS_TEXT) {
            stage.read_watches(Reading::Text);
        }
        if settings.tracing == Tracing::On {
            stage.trace = Trace::kept();
        }
        if faulty {
            stage.mutant = settings.canary.map(Mutant::new);
            crate::quirks::apply(&mut stage, &swarm);
        }
        let mut planned = Company::plan(&swarm, random);
        let repaired = |actor: Actor| {
            use Actor::{Hand, Killer, Outage, Vandal};
            matches!(actor, Hand | Outage | Killer | Vandal)
        };
        let limit = settings.moves.unwrap_or(u64::MAX);
        planned.retain(|planned| {
            planned.number <= limit
                && !settings.skipped.contains(&planned.number)
                && !settings.without_actors.contains(&planned.actor)
        });
        planned.retain(|planned| faulty || !repaired(planned.actor));
        if faulty && swarm.has(Fault::Poison) {
            let mut own = random.fork("who is poisoned");
            let slot = own.below(swarm.services);
            let namespace = if slot % 3 == 2 { "team" } else { "default" };
            let name = format!("{namespace}/web-{slot}");
            stage.poison = Some(Poison::draw(name, swarm.scene.layout, &mut own));
        }
        stage.trace.say(crate::stage::START_MS, || head(&swarm, &planned));
        let calm = swarm.is_calm();
        let company = Company::new(&swarm);
        let estate = stage.ids();
        let late = random.fork("after the moves");
        Self {
            stage,
            company,
            planned,
            side,
            calm,
            made: 0,
            cost: (0, 0),
            estate,
            late,
            stripped: BTreeSet::new(),
        }
    }

    /// The moves, then time to come right.
    fn storm_and_heal(&mut self) -> Option<Form> {
        for planned in std::mem::take(&mut self.planned) {
            if self.calm {
                self.count_cost(planned.at_ms);
            } else {
                self.stage.advance(planned.at_ms);
            }
            if self.stage.breach.is_some() {
                return None;
            }
            self.make(&planned);
            self.made = planned.number;
        }
        if self.calm {
            self.count_cost(self.stage.now_ms + 90_000);
            if self.side == Side::Faulty {
                self.check_cost(self.cost);
            }
        }
        self.stage.weather = Weather::Fair;
        self.stage.api_down_until = 0;
        self.company.mend(&mut self.stage);
        for _ in 0..8 {
            self.company.take_notes_off(&mut self.stage);
            self.tend();
            self.stage.advance(self.stage.now_ms + 60_000);
        }
        if self.stage.poison.is_some() {
            self.come_right_beside_poison();
            self.stage.poison = None;
        }
        self.heal();
        self.judge_end();
        let names = self.stage.stripped_names().into_iter().map(str::to_owned);
        self.stripped = names.collect();
        self.stage.breach.is_none().then(|| self.stage.form())
    }

    /// L1 and L4, once all has come right.
    fn judge_end(&mut self) {
        if self.stage.breach.is_none() {
            count(&mut self.stage.tally.checks, "L1");
            if let Some(text) = self.stage.undrained() {
                self.stage.fail("L1", text);
            }
            if let Some(text) = self.stage.unkept_holds() {
                self.stage.fail("L1", text);
            }
            if let Some(text) = self.stage.unpublished().first() {
                self.stage.fail("L1", text.clone());
            }
            if let Some(text) = self.stage.stuck_mover() {
                self.stage.fail("L1", text);
            }
            let unkept = self.stage.unkept();
            if !unkept.is_empty() {
                let lines: Vec<String> = unkept.iter().take(6).map(ToString::to_string).collect();
                self.stage.fail("L1", lines.join("; "));
            }
            if let Some(first) = self.stage.unfinished().first() {
                self.stage.fail("L1", first.clone());
            }
            count(&mut self.stage.tally.checks, "L4");
            if let Some(first) = self.stage.untrue().first() {
                self.stage.fail("L4", first.clone());
            }
            if let Some(text) = self.stage.unwarned() {
                self.stage.fail("L4", text);
            }
            if let Some(text) = self.stage.miscounted() {
                self.stage.fail("L4", text);
            }
        }
        if let Some(first) = self.stage.held_back().first() {
            self.stage.fail("L1", first.clone());
        }
        let astray = self.stage.astray();
        if let Some(first) = astray.first() {
            self.stage.fail("L1", first.clone());
        }
    }

    /// Actors bring about what could not be done before.
    fn tend(&mut self) {
        let before = self.stage.kubernetes.revision();
        self.company.tend(&mut self.stage);
        let changed = self.stage.kubernetes.revision() != before;
        self.stage.ledger.inputs += u64::from(changed);
    }

    /// One move, and what it touched by hand.
    fn make(&mut self, planned: &Planned) {
        self.stage.ledger.inputs += 1;
        self.stage.note_settled();
        let hands = matches!(planned.actor, Actor::Hand | Actor::Vandal);
        let before = hands.then(|| self.stage.before_hands());
        self.company.make(planned, &mut self.stage);
        if let Some(before) = before {
            self.stage.after_hands(&before);
        }
        if planned.actor == Actor::Config {
            self.stage.ledger.settled.clear();
        }
    }

    /// Lets things happen until all is settled, or for as long as that may take.
    fn come_to_rest(&mut self) {
        let start = self.stage.now_ms;
        while self.stage.breach.is_none() && self.stage.now_ms < start + HEAL_MS {
            self.company.release_others(&mut self.stage);
            if self.stage.settle(60_000) {
                break;
            }
        }
        // Who waits for us to let go.
        self.company.release_others(&mut self.stage);
        self.stage.follow();
        self.stage.settle(60_000);
    }

    /// L1: once it is right nothing more is written, not even after a restart. L5: nor is it looked
    /// at more often than it has to be.
    fn stay_quiet(&mut self) {
        count(&mut self.stage.tally.checks, "L1");
        for restart in [false, true] {
            if restart {
                for number in 0..self.stage.processes.len() {
                    self.stage.kill(number, "restarted in peace");
                }
            }
            let before = self.stage.ledger.attempts;
            let noticed = self.stage.drift_noticed();
            self.stage.begin_looks();
            let start_ms = self.stage.now_ms;
            self.stage.advance(start_ms + QUIET_MS / 2);
            // A look for drift may be under way at this very moment.
            let rests = self.stage.settle(60_000);
            let written = self.stage.ledger.attempts - before;
            if written > 0 {
                let text = format!("{written} writes although all was right");
                self.stage.fail("L1", text);
            } else if !rests && self.stage.breach.is_none() {
                let text = self.stage.unsettled();
                self.stage.fail("L1", text);
            }
            self.stage.check_looks(self.stage.now_ms - start_ms);
            self.stage.check_peace(noticed);
        }
    }

    /// L2: everybody leaves, and nothing of ours stays. Nothing goes wrong, so that Azure refuses
    /// nothing: what others refer to goes after them.
    fn leave(&mut self) {
        let (before, attempts) = (snapshot(&self.stage), self.stage.ledger.attempts);
        self.stage.ledger.inputs += 1;
        self.stage.ledger.round = Round::default();
        self.company.leave(&mut self.stage);
        self.come_to_rest();
        if self.stage.breach.is_some() {
            return;
        }
        let differ = differences(&before, &snapshot(&self.stage));
        self.check_cost((self.stage.ledger.attempts - attempts, differ));
        self.stage.check_round(false);
        count(&mut self.stage.tally.checks, "L2");
        if !self.stage.is_quiet() {
            let text = self.stage.unsettled();
            self.stage.fail("L2", text);
        }
        let services = self.stage.kubernetes.list("services", None);
        let stuck = services.iter().filter(|s| !s["metadata"]["deletionTimestamp"].is_null());
        let name = |meta: &Value| {
            let text = |key: &str| meta[key].as_str().unwrap_or("").to_owned();
            format!("{}/{}", text("namespace"), text("name"))
        };
        let names = stuck.map(|s| name(&s["metadata"]));
        let names: Vec<String> = names.filter(|n| !self.stage.is_name_stripped(n)).collect();
        if let Some(name) = names.first() {
            let text = format!("Service {name} keeps its finalizer");
            self.stage.fail("L2", text);
        }
        if let Some(left) = self.stage.left_over(&self.estate).first() {
            let text = format!("{left} is left over");
            self.stage.fail("L2", text);
        }
        if let Some(address) = self.stage.only_recorded() {
            let text = format!("{address} is in the ledger, and open nowhere");
            self.stage.fail("L2", text);
        }
    }

    /// L5: what one move costs, where nothing goes wrong.
    fn count_cost(&mut self, until_ms: u64) {
        let before = snapshot(&self.stage);
        let attempts = self.stage.ledger.attempts;
        self.stage.advance(until_ms);
        let after = snapshot(&self.stage);
        let differ = differences(&before, &after);
        let written = self.stage.ledger.attempts - attempts;
        let (all_written, all_differ) = &mut self.cost;
        *all_written += written;
        *all_differ += differ;
    }

    /// L5: what was written for resources that differ.
    fn check_cost(&mut self, (written, differ): (u64, u64)) {
        count(&mut self.stage.tally.checks, "L5");
        if written * 5 > differ * 6 + 15 {
            let text = format!("{written} writes for {differ} resources that differ");
            self.stage.fail("L5", text);
        }
    }
}
