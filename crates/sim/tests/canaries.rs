//! Every canary is caught, and docs/simulation.md says by which rule and how soon.
//! `UPDATE=1 cargo test --release -p sim --test canaries -- --ignored` writes the tables.

use sim::canary::{CANARIES, Canary};
use sim::check::RULES;
use sim::fault::FAULTS;
use sim::run::{Settings, run};
use sim::swarm::Profile;
use std::fmt::Write;

/// Within so many seeds each canary has to be caught.
const BOUND: u64 = 40;

/// Where a canary has the best chance to sing.
fn profile(canary: Canary) -> Profile {
    match canary {
        Canary::IgnoresLease => Profile::Leaders,
        Canary::NoBackOff | Canary::IgnoresRetryAfter | Canary::EmptiesPoolOnError => {
            Profile::Azure
        }
        Canary::BelievesHalfList => Profile::Kubernetes,
        Canary::WritesTwice | Canary::WritesWhenQuiet => Profile::Calm,
        _ => Profile::All,
    }
}

/// The rule that caught it, and after how many seeds.
fn caught(canary: Canary) -> Option<(String, u64)> {
    for seed in 0..BOUND {
        let settings =
            Settings { profile: profile(canary), canary: Some(canary), ..Settings::default() };
        if let Some(breach) = run(seed, &settings).breach {
            return Some((breach.rule.to_owned(), seed + 1));
        }
    }
    None
}

fn canary_table() -> String {
    let mut out = String::from(
        "| canary | what is wrong | profile | caught by | seeds |\n\
         | --- | --- | --- | --- | --- |\n",
    );
    let mut missed = Vec::new();
    for canary in CANARIES {
        let Some((rule, seeds)) = caught(*canary) else {
            missed.push(canary.name());
            continue;
        };
        let (name, what) = (canary.name(), canary.what());
        let profile = profile(*canary).name();
        let _ = writeln!(out, "| {name} | {what} | {profile} | {rule} | {seeds} |");
    }
    assert_eq!(missed, Vec::<&str>::new(), "not caught within {BOUND} seeds");
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

#[test]
#[ignore = "minutes in a debug build: CI runs it on a release build"]
fn every_canary_is_caught_and_the_page_says_so() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/simulation.md");
    let page = std::fs::read_to_string(path).expect("the page is there");
    let want = put(&page, "rules", &rule_table());
    let want = put(&want, "faults", &fault_table());
    let want = put(&want, "canaries", &canary_table());
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(path, want).expect("the page can be written");
    } else {
        assert_eq!(page, want, "docs/simulation.md is old: run this test with UPDATE=1");
    }
}
