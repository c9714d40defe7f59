//! The first of so many seeds that breaks a rule, or one rule: `breach SEEDS [RULE]`.
//!
//! Prints `RULE<tab>SEED<tab>TEXT`, or `-` where none does. A panic counts as rule `panic`.
#![allow(clippy::expect_used, reason = "a mistake on the command line ends the program")]

use sim::run::{Settings, run};
use std::panic::catch_unwind;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let count: u64 = arguments.next().and_then(|n| n.parse().ok()).expect("the number of seeds");
    let wanted = arguments.next();
    let settings = Settings::default();
    let broken = (0..count).find_map(|seed| {
        let (rule, text) = match catch_unwind(|| run(seed, &settings).breach) {
            Ok(breach) => breach.map(|breach| (breach.rule, breach.text))?,
            Err(_) => ("panic", String::new()),
        };
        let is_it = wanted.as_deref().is_none_or(|wanted| wanted == rule);
        is_it.then(|| format!("{rule}\t{seed}\t{}", text.replace(['\n', '\t'], " ")))
    });
    println!("{}", broken.unwrap_or_else(|| "-".to_owned()));
}
