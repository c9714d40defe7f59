//! The first of so many seeds that breaks a rule, or one rule: `breach SEEDS [RULE]`; `breach A..B`
//! prints each of these seeds that breaks one.
//!
//! Prints `RULE<tab>SEED<tab>TEXT`, or `-` where none does. A panic counts as rule `panic`.
#![allow(clippy::expect_used, reason = "a mistake on the command line ends the program")]

use sim::run::{Settings, run};
use std::ops::Range;
use std::panic::catch_unwind;

fn seeds(text: &str) -> Option<Range<u64>> {
    match text.split_once("..") {
        None => Some(0..text.parse().ok()?),
        Some((from, to)) => Some(from.parse().ok()?..to.parse().ok()?),
    }
}

/// A line, where the seed breaks a rule.
fn breach(seed: u64, wanted: Option<&str>) -> Option<String> {
    let settings = Settings::default();
    let (rule, text) = match catch_unwind(|| run(seed, &settings).breach) {
        Ok(breach) => breach.map(|breach| (breach.rule, breach.text))?,
        Err(_) => ("panic", String::new()),
    };
    let is_it = wanted.is_none_or(|wanted| wanted == rule);
    is_it.then(|| format!("{rule}\t{seed}\t{}", text.replace(['\n', '\t'], " ")))
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let range = arguments.next().expect("seeds");
    let mut broken = {
        let (all, wanted) = (seeds(&range).expect("a number of seeds, or A..B"), arguments.next());
        all.filter_map(move |seed| breach(seed, wanted.as_deref()))
    };
    let first = broken.next();
    println!("{}", first.as_deref().unwrap_or("-"));
    if range.contains("..") {
        broken.for_each(|line| println!("{line}"));
    }
}
