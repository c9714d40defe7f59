//! A worker for each processor; what comes of the seeds is put in their order.

use sim::crew;
use sim::run::{Outcome, Settings, run};
use sim::tally::Tally;
use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The rule that a panic breaks.
pub(crate) const PANIC: &str = "panic";
/// Failures that are told in full; the rest is only counted.
const TOLD: usize = 5;

/// A seed that broke a rule.
#[derive(Clone, Debug, serde::Serialize)]
pub(crate) struct Failure {
    pub seed: u64,
    pub rule: String,
    pub text: String,
    pub replay: String,
    pub trace: Vec<String>,
}

/// What came of all seeds.
#[derive(Debug)]
pub(crate) struct Result {
    pub seeds: Range<u64>,
    pub runs: u64,
    pub tally: Tally,
    /// In the order of seeds.
    pub failures: Vec<Failure>,
    /// What happened, of a single seed.
    pub trace: Vec<String>,
}

/// Runs seeds on so many threads.
pub(crate) fn run_seeds(seeds: Range<u64>, settings: &Settings, jobs: usize) -> Result {
    let total = seeds.end - seeds.start;
    let mut result = Result {
        seeds: seeds.clone(),
        runs: 0,
        tally: Tally::default(),
        failures: Vec::new(),
        trace: Vec::new(),
    };
    let mut failures: BTreeMap<u64, Failure> = BTreeMap::new();
    let mut bar = Bar::new(total);
    let simulate = |seed: u64| {
        let outcome = catch_unwind(AssertUnwindSafe(|| run(seed, settings)));
        outcome.map_err(|panic| last_words(&*panic))
    };
    crew::each(seeds, jobs, simulate, |seed, outcome| {
        result.runs += 1;
        if let Some(failure) = failure(seed, &outcome, settings) {
            failures.insert(seed, failure);
        }
        if let Ok(outcome) = outcome {
            result.tally.add(&outcome.tally);
            if total == 1 {
                result.trace = outcome.trace;
            }
        }
        bar.show(result.runs, failures.len());
    });
    bar.end();
    result.failures = failures.into_values().collect();
    for failure in result.failures.iter_mut().skip(TOLD) {
        failure.trace.clear();
    }
    result
}

/// What a panic said.
fn last_words(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("no words").to_owned()
}

fn failure(
    seed: u64,
    outcome: &std::result::Result<Outcome, String>,
    settings: &Settings,
) -> Option<Failure> {
    let (rule, text, trace) = match outcome {
        Err(words) => (PANIC.to_owned(), format!("the controller panicked: {words}"), Vec::new()),
        Ok(outcome) => {
            let breach = outcome.breach.as_ref()?;
            (breach.rule.to_owned(), breach.text.clone(), outcome.trace.clone())
        }
    };
    let replay = super::replay(seed, settings);
    Some(Failure { seed, rule, text, replay, trace })
}

/// How far it is, on standard error where that is a terminal.
struct Bar {
    total: u64,
    shown: u64,
    terminal: bool,
}

impl Bar {
    fn new(total: u64) -> Self {
        let terminal = std::io::stderr().is_terminal() && total > 1;
        Self { total, shown: u64::MAX, terminal }
    }

    fn show(&mut self, done: u64, failed: usize) {
        let percent = done * 100 / self.total.max(1);
        if self.terminal && percent != self.shown {
            self.shown = percent;
            let full = usize::try_from(percent * 30 / 100).unwrap_or(0);
            let bar = format!("{}{}", "#".repeat(full), ".".repeat(30 - full));
            let _ =
                write!(std::io::stderr(), "\r[{bar}] {done}/{} seeds, {failed} failed", self.total);
        }
    }

    fn end(&self) {
        if self.terminal {
            let _ = writeln!(std::io::stderr());
        }
    }
}
