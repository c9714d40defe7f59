//! A fixed set of seeds, and every seed that once failed.

use sim::actor::ACTORS;
use sim::crew;
use sim::fault::{Fault, LATER};
use sim::run::{Settings, Tracing, run};
use sim::shrink::shrink;
use sim::swarm::{PROFILES, Profile};
use std::collections::BTreeSet;
use std::num::NonZero;
use std::thread::available_parallelism;

/// Seeds that broke a rule before something was mended: each line has the number, the profile, and
/// what was wrong.
const ONCE_FAILED: &str = include_str!("../seeds/once-failed.txt");
/// Seeds that failed with every fault that is drawn today: they run with the other tests.
const FAILED_LAST: &str = include_str!("../seeds/failed-last.txt");
/// As the first, with faults that came later: instead of a profile a line has which of them.
const FAILED_LATER: &str = include_str!("../seeds/failed-later.txt");

/// Each line's number and second word.
fn lines(text: &'static str) -> impl Iterator<Item = (u64, &'static str)> {
    text.lines().map(|line| {
        let mut words = line.split(' ');
        let seed = words.next().and_then(|word| word.parse::<u64>().ok()).expect("a seed");
        (seed, words.next().expect("a profile, or faults"))
    })
}

/// Seeds with their profiles.
fn profiled(text: &'static str) -> impl Iterator<Item = (u64, Profile)> {
    lines(text).map(|(seed, name)| (seed, Profile::parse(name).expect("the name of a profile")))
}

/// What a seed breaks.
fn breach(seed: u64, settings: &Settings) -> Option<String> {
    let breach = run(seed, settings).breach?;
    let profile = settings.profile.name();
    Some(format!("seed {seed} of {profile} breaks {}: {}", breach.rule, breach.text))
}

/// What these seeds break, in their order, simulated on every processor.
fn breaches(seeds: &[(u64, Settings)]) -> Vec<String> {
    let jobs = available_parallelism().map_or(1, NonZero::get);
    let found = crew::all(seeds, jobs, |(seed, settings)| breach(*seed, settings));
    found.into_iter().flatten().collect()
}

#[test]
fn every_rule_holds_for_the_fixed_seeds() {
    let all = (1_000..1_012).map(|seed| (seed, Settings::default()));
    let each =
        PROFILES.iter().map(|profile| (7, Settings { profile: *profile, ..Settings::default() }));
    assert_eq!(breaches(&all.chain(each).collect::<Vec<_>>()), Vec::<String>::new());
}

/// Seeds without the faults that came later.
fn early() -> impl Iterator<Item = (u64, Settings)> {
    let without: BTreeSet<_> = LATER.iter().copied().collect();
    profiled(ONCE_FAILED).map(move |(seed, profile)| {
        (seed, Settings { profile, without: without.clone(), ..Settings::default() })
    })
}

/// Seeds with some of the faults that came later.
fn later() -> impl Iterator<Item = (u64, Settings)> {
    lines(FAILED_LATER).map(|(seed, words)| {
        let with: Vec<&str> = words.split(',').collect();
        let mut without: BTreeSet<Fault> = LATER.iter().copied().collect();
        without.retain(|fault| words != "all" && !with.contains(&fault.name()));
        let known = words == "all" || without.len() + with.len() == LATER.len();
        assert!(known, "seed {seed}: {words}");
        (seed, Settings { without, ..Settings::default() })
    })
}

#[test]
fn what_was_mended_last_stays_mended() {
    let settings = |profile| Settings { profile, ..Settings::default() };
    let all = profiled(FAILED_LAST).map(|(seed, profile)| (seed, settings(profile)));
    assert_eq!(breaches(&all.collect::<Vec<_>>()), Vec::<String>::new());
}

/// What is drawn has changed since, so that these are seeds like any other by now.
#[test]
#[cfg_attr(debug_assertions, ignore = "minutes: cargo test --release -p sim --test it seeds::")]
fn what_was_mended_stays_mended() {
    let all: Vec<_> = early().chain(later()).collect();
    assert_eq!(breaches(&all), Vec::<String>::new());
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let settings = Settings { tracing: Tracing::On, ..Settings::default() };
    let (one, two) = (run(5, &settings), run(5, &settings));
    assert!(one.trace.len() > 50, "something happens: {} lines", one.trace.len());
    assert_eq!(one.trace, two.trace);
    assert_eq!(one.tally, two.tally);
}

#[test]
fn a_failing_seed_is_made_smaller() {
    let canary = Some(sim::canary::Canary::ForgetsFinalizer);
    let settings = Settings { canary, ..Settings::default() };
    let first = run(3, &settings);
    let rule = first.breach.expect("the canary is caught").rule;
    let (small, outcome) = shrink(3, &settings, rule);
    assert_eq!(outcome.breach.map(|breach| breach.rule), Some(rule));
    assert!(small.moves.is_some_and(|moves| moves <= 3), "{:?}", small.moves);
    let users: BTreeSet<_> = ACTORS.iter().copied().collect();
    let left: Vec<_> = users.difference(&small.without_actors).collect();
    assert!(left.len() <= 1, "one actor is enough: {left:?}");
}
