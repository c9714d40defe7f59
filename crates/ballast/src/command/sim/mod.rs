//! `ballast sim`: the controller between both emulators, under faults drawn from seeds.

mod crew;
mod points;
mod summary;

use crate::exit::{Exit, Failure, Outcome};
use crate::output::{self, Format};
use clap::ArgGroup;
use sim::actor::{ACTORS, Actor};
use sim::fault::Fault;
use sim::run::{Settings, Tracing};
use sim::swarm::{PROFILES, Profile};
use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::time::Instant;

/// So many seeds meet every fault and every point at which a process can die.
const ENOUGH: u64 = 10_000;

/// Arguments of `sim`.
#[derive(Debug, clap::Args)]
#[command(group(ArgGroup::new("which").args(["seed", "seeds"])))]
pub struct Args {
    /// Run only this seed, and show its trace
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Number of seeds to run
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub seeds: u64,
    /// First seed
    #[arg(long, value_name = "N", default_value_t = 0, conflicts_with = "seed")]
    pub from: u64,
    /// Limit the moves of all actors (users, nodes, operators and others) in a run
    #[arg(long, value_name = "N")]
    pub steps: Option<u64>,
    /// Kinds of faults and moves that seeds may draw: all, calm, azure, kubernetes, crashes,
    /// leaders, containers
    #[arg(long, value_name = "NAME", default_value = "all", value_parser = profile)]
    pub profile: Profile,
    /// Leave out these faults and actors, separated by commas; a wrong name lists the right ones
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = part)]
    pub without: Vec<Part>,
    /// Leave out these moves, numbered in the order of time: those that `--shrink` found needless
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', conflicts_with = "exhaustive")]
    pub skip: Vec<u64>,
    /// If the seed breaks a rule, search for fewer moves and faults that break the same rule
    #[arg(long)]
    pub shrink: bool,
    /// Instead of running seeds, go through small scenarios and inject a fault at each point in
    /// turn, and a second crash after each crash
    #[arg(long, conflicts_with_all = ["seed", "from", "steps", "without", "shrink"])]
    pub exhaustive: bool,
    /// Number of seeds to run in parallel [default: one per processor]
    #[arg(long, value_name = "N")]
    pub jobs: Option<NonZeroUsize>,
    /// Output format
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    pub output: Format,
}

/// Something that can be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// A fault.
    Fault(Fault),
    /// An actor.
    Actor(Actor),
}

fn profile(name: &str) -> Result<Profile, String> {
    Profile::parse(name).ok_or_else(|| {
        let known: Vec<&str> = PROFILES.iter().map(|profile| profile.name()).collect();
        format!("there is none of that name; there are {}", known.join(", "))
    })
}

fn part(name: &str) -> Result<Part, String> {
    let actor = Actor::parse(name).map(Part::Actor);
    let fault = Fault::parse(name).map(Part::Fault);
    fault.or(actor).ok_or_else(|| {
        let faults = sim::fault::FAULTS.iter().map(|fault| fault.name());
        let known: Vec<&str> = ACTORS.iter().map(|actor| actor.name()).chain(faults).collect();
        format!("there is no fault or actor of that name; there are {}", known.join(", "))
    })
}

impl Args {
    fn settings(&self) -> Settings {
        let mut without = BTreeSet::new();
        let mut without_actors = BTreeSet::new();
        for part in &self.without {
            match part {
                Part::Fault(fault) => without.insert(*fault),
                Part::Actor(actor) => without_actors.insert(*actor),
            };
        }
        Settings {
            profile: self.profile,
            without,
            without_actors,
            moves: self.steps,
            skipped: self.skip.iter().copied().collect(),
            canary: None,
            tracing: Tracing::Off,
        }
    }
}

/// The command that runs a seed under these settings again.
pub(crate) fn replay(seed: u64, settings: &Settings) -> String {
    let mut words = vec![format!("ballast sim --seed {seed}")];
    if settings.profile != Profile::All {
        words.push(format!("--profile {}", settings.profile.name()));
    }
    if let Some(moves) = settings.moves {
        words.push(format!("--steps {moves}"));
    }
    if !settings.skipped.is_empty() {
        let numbers: Vec<String> = settings.skipped.iter().map(u64::to_string).collect();
        words.push(format!("--skip {}", numbers.join(",")));
    }
    let actors = settings.without_actors.iter().map(|actor| actor.name());
    let faults = settings.without.iter().map(|fault| fault.name());
    let parts: Vec<&str> = actors.chain(faults).collect();
    if !parts.is_empty() {
        words.push(format!("--without {}", parts.join(",")));
    }
    words.join(" ")
}

/// Runs the seeds. Exit code 1 when a rule was broken.
///
/// # Errors
/// Standard output cannot be written.
pub fn run(args: &Args) -> Outcome {
    let jobs = args.jobs.or_else(|| std::thread::available_parallelism().ok());
    let jobs = jobs.map_or(1, NonZeroUsize::get);
    if args.exhaustive {
        return points::run(jobs, args.output);
    }
    let settings = args.settings();
    let started = Instant::now();
    let seeds = match args.seed {
        Some(seed) => seed..seed + 1,
        None => args.from..args.from.saturating_add(args.seeds),
    };
    let single = args.seed.is_some();
    let told =
        Settings { tracing: if single { Tracing::On } else { Tracing::Off }, ..settings.clone() };
    let mut result = crew::run_seeds(seeds, &told, jobs);
    let seconds = started.elapsed().as_secs_f64();
    for failure in &mut result.failures {
        if args.shrink && failure.rule != crew::PANIC {
            let (smaller, outcome) = sim::shrink::shrink(failure.seed, &settings, &failure.rule);
            failure.replay = replay(failure.seed, &smaller);
            failure.trace = outcome.trace;
        } else if !single && failure.rule != crew::PANIC && failure.trace.is_empty() {
            let again = Settings { tracing: Tracing::On, ..settings.clone() };
            failure.trace = sim::run::run(failure.seed, &again).trace;
        }
    }
    match args.output {
        Format::Json => output::print_json(&summary::json(&result, seconds))?,
        Format::Text => output::print(&summary::text(&result, seconds, single))?,
    }
    let count = result.failures.len();
    if count > 0 {
        let text = format!("{count} of {} seeds broke a rule; see above", result.runs);
        return Err(Failure::new(Exit::Failed, text));
    }
    let never = summary::never_met(&result);
    if result.runs >= ENOUGH && settings == Settings::default() && !never.is_empty() {
        let text = format!("{} seeds never met {}", result.runs, never.join(", "));
        return Err(Failure::new(Exit::Failed, text));
    }
    Ok(Exit::Done)
}
