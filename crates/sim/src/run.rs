//! One seed from its draw to its end.

use crate::actor::{Actor, Company, Planned};
use crate::canary::{Canary, Mutant};
use crate::check::Breach;
use crate::check::ends::{Form, difference};
use crate::check::form::plain;
use crate::fault::{ALL_ALONG, Fault};
use crate::random::Random;
use crate::scene::Layout;
use crate::stage::Stage;
use crate::swarm::{Profile, Swarm};
use crate::tally::{Tally, count};
use crate::trace::Trace;
use crate::weather::{Drawn, Weather};
use azure_emulator::{Empties, GatewayReply, Switch};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// How long everything may take to come right once faults and inputs have stopped.
const HEAL_MS: u64 = 45 * 60_000;
/// How long Services may take to come right beside one that cannot be satisfied.
const POISONED_MS: u64 = 20 * 60_000;
/// How long it must stay right.
const QUIET_MS: u64 = 90 * 60_000;

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
    let mut stage = play.stage;
    count(&mut stage.tally.layouts, swarm.scene.layout.name());
    // What a vandal takes away leads to other ways back than one, by when it is seen.
    let comparable = !play.company.stripped && !swarm.is_calm() && !swarm.has(Fault::Vandal);
    if stage.breach.is_none()
        && comparable
        && let Some(form) = form
    {
        let fair = Settings { canary: None, tracing: Tracing::Off, ..settings.clone() };
        let mut twin = Play::new(&random, swarm, &fair, Side::Fair);
        let want = twin.storm_and_heal();
        stage.tally.steps += twin.stage.tally.steps;
        stage.tally.controller_steps += twin.stage.tally.controller_steps;
        stage.tally.simulated_ms += twin.stage.now_ms - crate::stage::START_MS;
        count(&mut stage.tally.checks, "differential");
        match (twin.stage.breach, want) {
            (Some(breach), _) => {
                stage.fail(breach.rule, format!("without faults: {}", breach.text));
            }
            (None, Some(want)) if want != form => {
                let lines = difference(&form, &want);
                stage.fail("differential", lines.join("\n"));
            }
            _ => {}
        }
    }
    stage.tally.simulated_ms += stage.now_ms - crate::stage::START_MS;
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
        if settings.tracing == Tracing::On {
            stage.trace = Trace::kept();
        }
        if faulty {
            stage.mutant = settings.canary.map(Mutant::new);
            quirks(&mut stage, &swarm);
        }
        let mut planned = Company::plan(&swarm, random);
        let repaired = |actor: Actor| {
            use Actor::{Hand, Killer, Outage, Stripper, Vandal};
            matches!(actor, Hand | Outage | Killer | Stripper | Vandal)
        };
        let limit = settings.moves.unwrap_or(u64::MAX);
        planned.retain(|planned| {
            planned.number <= limit
                && !settings.skipped.contains(&planned.number)
                && !settings.without_actors.contains(&planned.actor)
        });
        planned.retain(|planned| faulty || !repaired(planned.actor));
        if faulty && swarm.has(Fault::Poison) {
            stage.poison = Some("default/web-1".to_owned());
        }
        stage.trace.say(crate::stage::START_MS, || head(&swarm, &planned));
        let calm = swarm.is_calm();
        let company = Company::new(&swarm);
        let estate = stage.ids();
        Self { stage, company, planned, side, calm, made: 0, cost: (0, 0), estate }
    }

    /// Everything, to the last deletion. The end's form where nothing broke.
    fn whole(&mut self) -> Option<Form> {
        let form = self.storm_and_heal()?;
        if self.stage.scene.with.contains(&Fault::Hostile) && !self.company.stripped {
            self.be_attacked();
        }
        if !self.company.stripped {
            self.stay_quiet();
        }
        self.leave();
        self.stage.breach.is_none().then_some(form)
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
            self.company.make(&planned, &mut self.stage);
            self.made = planned.number;
        }
        if self.calm {
            self.count_cost(self.stage.now_ms + 90_000);
            if self.side == Side::Faulty {
                self.check_cost();
            }
        }
        self.stage.weather = Weather::Fair;
        self.stage.api_down_until = 0;
        self.company.mend(&mut self.stage);
        for _ in 0..8 {
            self.company.take_notes_off(&mut self.stage);
            self.company.tend(&mut self.stage);
            self.stage.advance(self.stage.now_ms + 60_000);
        }
        if self.stage.poison.is_some() {
            self.come_right_beside_poison();
            self.stage.poison = None;
        }
        let start = self.stage.now_ms;
        while self.stage.breach.is_none() && self.stage.now_ms < start + HEAL_MS {
            self.company.tend(&mut self.stage);
            if self.stage.settle(60_000) && self.company.is_content(&self.stage) {
                break;
            }
        }
        let stuck = !self.stage.is_quiet() || !self.company.is_content(&self.stage);
        if stuck && !self.company.stripped {
            let mut text = self.stage.unsettled();
            if !self.company.is_content(&self.stage) {
                text.push_str(" the actors have not got what they want;");
            }
            self.stage.fail("L1", text);
        }
        if self.stage.breach.is_none() && !self.company.stripped {
            count(&mut self.stage.tally.checks, "L1");
            if let Some(text) = self.stage.undrained() {
                self.stage.fail("L1", text);
            }
            if let Some(text) = self.stage.unpublished().first() {
                self.stage.fail("L1", text.clone());
            }
            count(&mut self.stage.tally.checks, "L4");
            if let Some(first) = self.stage.untrue().first() {
                self.stage.fail("L4", first.clone());
            }
        }
        if let Some(first) = self.stage.held_back().first() {
            self.stage.fail("L1", first.clone());
        }
        let astray = self.stage.astray();
        if let Some(first) = astray.first().filter(|_| !self.company.stripped) {
            self.stage.fail("L1", first.clone());
        }
        self.stage.breach.is_none().then(|| self.stage.form())
    }

    /// S7: while one Service is refused, all others come right.
    fn come_right_beside_poison(&mut self) {
        if self.company.stripped {
            return;
        }
        let poisoned = self.stage.poison.clone().unwrap_or_default();
        if !self.stage.is_refused() {
            return;
        }
        count(&mut self.stage.tally.checks, "S7");
        let end = self.stage.now_ms + POISONED_MS;
        loop {
            let unpublished = self.stage.unpublished();
            let wrong: Vec<String> = self
                .stage
                .untrue()
                .into_iter()
                .chain(unpublished)
                .filter(|line| !line.starts_with(&format!("{poisoned} ")))
                .collect();
            if wrong.is_empty() || self.stage.breach.is_some() {
                return;
            }
            if self.stage.now_ms >= end {
                let text = format!("{} while {poisoned} is refused", wrong[0]);
                self.stage.fail("S7", text);
                return;
            }
            self.company.tend(&mut self.stage);
            self.stage.advance(self.stage.now_ms + 60_000);
        }
    }

    /// S9: a tenant claims everything that others have, and they keep it.
    fn be_attacked(&mut self) {
        count(&mut self.stage.tally.checks, "S9");
        let before = self.stage.of_victims();
        self.company.claim(&mut self.stage);
        let start = self.stage.now_ms;
        while self.stage.breach.is_none() && self.stage.now_ms < start + HEAL_MS {
            self.company.tend(&mut self.stage);
            self.stage.advance(self.stage.now_ms + 60_000);
            if self.stage.settle(60_000) {
                break;
            }
        }
        let after = self.stage.of_victims();
        if let Some((what, was)) = before.iter().find(|(what, was)| after.get(*what) != Some(was)) {
            let is = after.get(what).map_or("nothing", String::as_str);
            self.stage.fail("S9", format!("{what}: it was {was}, and is {is} for another tenant"));
        }
    }

    /// L1: once it is right nothing more is written, not even after a restart.
    fn stay_quiet(&mut self) {
        count(&mut self.stage.tally.checks, "L1");
        for restart in [false, true] {
            if restart {
                for number in 0..self.stage.processes.len() {
                    self.stage.kill(number, "restarted in peace");
                }
            }
            let before = self.stage.ledger.attempts;
            self.stage.advance(self.stage.now_ms + QUIET_MS / 2);
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
        }
    }

    /// L2: everybody leaves, and nothing of ours stays.
    fn leave(&mut self) {
        self.company.leave(&mut self.stage);
        let start = self.stage.now_ms;
        while self.stage.breach.is_none() && self.stage.now_ms < start + HEAL_MS {
            self.company.release_others(&mut self.stage);
            if self.stage.settle(60_000) {
                break;
            }
        }
        if self.stage.breach.is_some() {
            return;
        }
        if self.company.stripped {
            return;
        }
        count(&mut self.stage.tally.checks, "L2");
        if !self.stage.is_quiet() {
            let text = self.stage.unsettled();
            self.stage.fail("L2", text);
        }
        let services = self.stage.kubernetes.list("services", None);
        let stuck = services.iter().find(|s| !s["metadata"]["deletionTimestamp"].is_null());
        if let Some(stuck) = stuck {
            let text = format!("Service {} keeps its finalizer", stuck["metadata"]["name"]);
            self.stage.fail("L2", text);
        }
        if let Some(left) = self.stage.left_over(&self.estate).first() {
            let text = format!("{left} is left over");
            self.stage.fail("L2", text);
        }
    }

    /// L5: what one move costs, where nothing goes wrong.
    fn count_cost(&mut self, until_ms: u64) {
        let before = snapshot(&self.stage);
        let attempts = self.stage.ledger.attempts;
        self.stage.advance(until_ms);
        count(&mut self.stage.tally.checks, "L5");
        let after = snapshot(&self.stage);
        let ids: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
        let mut differ = ids.iter().filter(|id| before.get(**id) != after.get(**id)).count() as u64;
        // A NAT gateway has to let go of the Service Gateway before it can be deleted.
        let gone = |id: &&&String| id.contains("/natgateways/") && !after.contains_key(**id);
        differ += ids.iter().filter(gone).count() as u64;
        let written = self.stage.ledger.attempts - attempts;
        let (all_written, all_differ) = &mut self.cost;
        *all_written += written;
        *all_differ += differ;
    }

    /// L5: what all moves have cost together.
    fn check_cost(&mut self) {
        let (written, differ) = self.cost;
        if written * 5 > differ * 6 + 15 {
            let text = format!("{written} writes for {differ} resources that differ");
            self.stage.fail("L5", text);
        }
    }
}

/// Resources without their marks, by id; a gateway's tables as two resources.
fn snapshot(stage: &Stage) -> BTreeMap<String, Value> {
    let mut all = BTreeMap::new();
    for resource in stage.azure.shown() {
        let id = resource["id"].as_str().unwrap_or("").to_lowercase();
        all.insert(id, plain(&resource));
    }
    if let Some(tables) = stage.azure.gateway(&crate::scene::gateway()) {
        for table in ["services", "locations"] {
            all.insert(table.to_owned(), tables[table].clone());
        }
    }
    all
}

/// What is uneven for a whole run.
fn quirks(stage: &mut Stage, swarm: &Swarm) {
    let mut met = Vec::new();
    let mut on = |fault: Fault| {
        let has = swarm.has(fault);
        if has {
            met.push(fault);
        }
        has
    };
    let options = stage.azure.options_mut();
    if on(Fault::LetterCase) {
        options.shout_ids = Switch::On;
        options.odd_ipv6 = Switch::On;
    }
    if on(Fault::UnknownFields) {
        options.unknown_fields = Switch::On;
    }
    if on(Fault::EmptyLists) {
        options.empties = match swarm.moves % 3 {
            0 => Empties::List,
            1 => Empties::Null,
            _ => Empties::Absent,
        };
    }
    if on(Fault::Pages) {
        options.page_size = 2;
    }
    if on(Fault::LateEtag) && options.lro_ms > 0 {
        options.late_etag = Switch::On;
    }
    if on(Fault::ListLag) {
        options.list_lag_ms = 4_000;
    }
    if on(Fault::LateAddress) && options.lro_ms > 0 {
        options.late_public_ip_address = Switch::On;
    }
    if swarm.scene.layout == Layout::Containers && on(Fault::GatewayReply) {
        options.gateway_reply = match swarm.moves % 3 {
            0 => GatewayReply::Accepted,
            1 => GatewayReply::NoContent,
            _ => GatewayReply::DoneWithHeaders,
        };
    }
    if on(Fault::Buckets) {
        options.throttle = Switch::On;
    }
    for fault in ALL_ALONG {
        on(fault);
    }
    for fault in met {
        count(&mut stage.tally.faults, fault.name());
    }
}
