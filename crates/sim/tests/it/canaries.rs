//! Every canary is caught, and docs/dev/simulation-tables.md says by which rule and how soon.
//!
//! `cargo test --release -p sim --test it canaries:: -- --ignored --nocapture` looks for the first
//! seed that catches each and prints the lines of `CAUGHT`;
//! `UPDATE=1 cargo test -p sim --test it canaries::` writes the tables of the page.

use sim::canary::{CANARIES, Canary};
use sim::check::RULES;
use sim::fault::FAULTS;
use sim::run::{Settings, run};
use sim::swarm::Profile;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// Within so many seeds each canary has to be caught.
const BOUND: u64 = 100;

/// Each canary, the profile in which it has the best chance to sing, the rule that it is made for,
/// and how many seeds that rule takes to catch it.
const CAUGHT: &[(Canary, Profile, &str, u64)] = &[
    (Canary::ForgetsFinalizer, Profile::All, "S4", 1),
    (Canary::DropsFinalizerEarly, Profile::All, "S4", 1),
    (Canary::KeepsFinalizer, Profile::All, "L1", 1),
    (Canary::DropsForeignParts, Profile::All, "S2", 1),
    (Canary::DropsForeignTags, Profile::All, "S2", 5),
    (Canary::IgnoresIfMatch, Profile::All, "S5", 1),
    (Canary::DeletesNeighbour, Profile::All, "S1", 1),
    (Canary::DeletesByoIp, Profile::All, "S1", 1),
    (Canary::EmptiesPoolOnError, Profile::Azure, "S3", 5),
    (Canary::BelievesHalfList, Profile::All, "S3", 1),
    (Canary::SwapsAddress, Profile::All, "S3", 2),
    (Canary::ForgetsPublicIp, Profile::All, "S4", 2),
    (Canary::ForgetsRule, Profile::Calm, "S3", 2),
    (Canary::SpoilsRules, Profile::Calm, "L5", 2),
    (Canary::TrustsOldList, Profile::Crashes, "S9", 1),
    (Canary::DropsWakeUp, Profile::All, "L1", 3),
    (Canary::LosesAnswer, Profile::All, "L3", 1),
    (Canary::IgnoresLease, Profile::Leaders, "S5", 1),
    (Canary::NoBackOff, Profile::Azure, "S6", 1),
    (Canary::IgnoresRetryAfter, Profile::Azure, "S6", 3),
    (Canary::StatusFirst, Profile::All, "L4", 1),
    (Canary::KeepsStatus, Profile::All, "L4", 1),
    (Canary::TellsSecret, Profile::All, "S8", 1),
    (Canary::WritesWhenQuiet, Profile::Calm, "L1", 1),
    (Canary::WritesTwice, Profile::Calm, "L5", 2),
    (Canary::WaitsForTheBroken, Profile::Azure, "S7", 1),
    (Canary::KeepsEgressAddress, Profile::Containers, "L2", 1),
    (Canary::NeverChangesTimeouts, Profile::All, "L1", 2),
    (Canary::SpoilsTheirRow, Profile::Containers, "S1", 1),
    (Canary::ReplacesLocations, Profile::Containers, "S3", 1),
    (Canary::RegistersEarly, Profile::Containers, "S4", 1),
    (Canary::UnregistersEarly, Profile::Containers, "S4", 1),
    (Canary::DoesNotDrain, Profile::All, "S3", 17),
    (Canary::KeepsOpen, Profile::All, "S4", 3),
    (Canary::ReleasesPodsEarly, Profile::Containers, "S4", 1),
    (Canary::ForgetsFailedObject, Profile::Kubernetes, "L3", 27),
    (Canary::ForgetsFailedRead, Profile::Azure, "L3", 8),
    (Canary::ForgetsOperation, Profile::All, "L3", 6),
];

/// The rule that catches a canary in one seed.
fn rule_that_catches(canary: Canary, profile: Profile, seed: u64) -> Option<&'static str> {
    let settings = Settings { profile, canary: Some(canary), ..Settings::default() };
    run(seed, &settings).breach.map(|breach| breach.rule)
}

fn canary_table() -> String {
    let mut out = String::from(
        "| canary | what is wrong | profile | caught by | seeds |\n\
         | --- | --- | --- | --- | --- |\n",
    );
    for (canary, profile, rule, seeds) in CAUGHT {
        let (name, what, profile) = (canary.name(), canary.what(), profile.name());
        let _ = writeln!(out, "| {name} | {what} | {profile} | {rule} | {seeds} |");
    }
    out
}

fn fault_table() -> String {
    let mut out = String::from("| fault | what |\n| --- | --- |\n");
    for fault in FAULTS {
        let _ = writeln!(out, "| {} | {} |", fault.name(), fault.what());
    }
    out
}

fn rule_table() -> String {
    let mut out = String::from("| rule | what |\n| --- | --- |\n");
    for (rule, what) in RULES {
        let _ = writeln!(out, "| {rule} | {what} |");
    }
    out
}

/// The page with a table put between its marks.
fn put(page: &str, name: &str, table: &str) -> String {
    let (begin, end) = (format!("<!-- {name} -->\n"), format!("<!-- end of {name} -->"));
    let (head, rest) = page.split_once(&begin).expect("the page has the mark");
    let (_, tail) = rest.split_once(&end).expect("the page has the end mark");
    format!("{head}{begin}{table}{end}{tail}")
}

/// Within so many seeds each is caught in every build: a change of the controller shifts what a
/// seed comes to.
const SOON: u64 = 20;

/// Every second row, so that two tests run beside each other. They start from the page's seed.
/// What another rule catches does not count: it says nothing of the rule that a canary is made for.
fn is_caught_soon(from: usize) {
    for (canary, profile, rule, seeds) in CAUGHT.iter().skip(from).step_by(2) {
        assert!(*seeds <= BOUND, "{} takes {seeds} seeds", canary.name());
        let mut others = BTreeSet::new();
        let mut tries = (seeds - 1)..(seeds - 1 + SOON);
        let caught = tries.any(|seed| {
            let broken = rule_that_catches(*canary, *profile, seed);
            assert_ne!(broken, Some("actors"), "{} spoils the stage itself", canary.name());
            others.extend(broken);
            broken == Some(*rule)
        });
        let name = canary.name();
        assert!(caught, "{rule} does not catch {name} in {SOON} seeds; {others:?} did");
    }
}

#[test]
fn every_canary_has_a_row() {
    let listed: Vec<Canary> = CAUGHT.iter().map(|row| row.0).collect();
    assert_eq!(listed, CANARIES);
}

#[test]
fn every_canary_of_an_odd_row_is_caught_soon() {
    is_caught_soon(0);
}

#[test]
fn every_canary_of_an_even_row_is_caught_soon() {
    is_caught_soon(1);
}

#[test]
#[ignore = "minutes: looks for the first seed that catches each canary"]
fn every_canary_is_caught_as_soon_as_the_page_says() {
    let mut rows = Vec::new();
    for (canary, profile, rule, _) in CAUGHT {
        let mut others = BTreeMap::new();
        let first = (0..BOUND).find(|seed| {
            let broken = rule_that_catches(*canary, *profile, *seed);
            *others.entry(broken).or_insert(0) += 1;
            broken == Some(*rule)
        });
        let row = (*canary, *profile, *rule, first.map_or(0, |seed| seed + 1));
        println!("    (Canary::{canary:?}, Profile::{profile:?}, {rule:?}, {}), {others:?}", row.3);
        rows.push(row);
    }
    let want: Vec<_> = CAUGHT.to_vec();
    assert_eq!(rows, want, "CAUGHT is old");
}

#[test]
fn the_pages_have_the_rules_the_faults_and_the_canaries() {
    let docs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let tables: [(&str, &[(&str, String)]); 2] = [
        ("dev/simulation.md", &[("rules", rule_table())]),
        ("dev/simulation-tables.md", &[("faults", fault_table()), ("canaries", canary_table())]),
    ];
    for (name, tables) in tables {
        let path = docs.join(name);
        let page = std::fs::read_to_string(&path).expect("the page is there");
        let want = tables.iter().fold(page.clone(), |page, (at, table)| put(&page, at, table));
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(path, want).expect("the page can be written");
        } else {
            assert_eq!(page, want, "docs/{name} is old: run this test with UPDATE=1");
        }
    }
}
