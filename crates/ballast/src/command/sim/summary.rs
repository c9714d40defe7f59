//! What came of the seeds, for people and for programs.

use super::crew::Result;
use serde_json::{Value, json};
use sim::check::RULES;
use sim::fault::FAULTS;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Lines of a failing seed's trace that are shown of many seeds; one alone shows all.
const LAST: usize = 40;
/// Failures whose trace is shown.
const TOLD: usize = 3;

fn rate(count: f64, seconds: f64) -> f64 {
    if seconds > 0.0 { count / seconds } else { 0.0 }
}

fn hours(result: &Result) -> f64 {
    result.tally.simulated_ms as f64 / 3_600_000.0
}

/// Faults that were never met.
fn missing(result: &Result) -> Vec<&'static str> {
    let met = &result.tally.faults;
    FAULTS.iter().map(|f| f.name()).filter(|name| !met.contains_key(name)).collect()
}

/// Faults and points to die at that were never met.
pub(super) fn never_met(result: &Result) -> Vec<String> {
    let points = result.tally.crashes_never_met();
    missing(result).into_iter().map(str::to_owned).chain(points).collect()
}

/// For programs.
pub(super) fn json(result: &Result, seconds: f64) -> Value {
    let tally = &result.tally;
    json!({
        "from": result.seeds.start,
        "seeds": result.runs,
        "failed": result.failures,
        "seconds": seconds,
        "steps": tally.steps,
        "stepsPerSecond": rate(tally.steps as f64, seconds).round(),
        "controllerSteps": tally.controller_steps,
        "azureWrites": tally.azure_writes,
        "simulatedHours": hours(result),
        "simulatedHoursPerSecond": rate(hours(result), seconds),
        "faults": tally.faults,
        "faultsNeverMet": missing(result),
        "crashPoints": tally.crashes,
        "crashPointsNeverMet": tally.crashes_never_met(),
        "moves": tally.moves,
        "checks": tally.checks,
        "seedsJudged": seeds_judged(result),
        "layouts": tally.layouts,
    })
}

/// For people.
pub(super) fn text(result: &Result, seconds: f64, single: bool) -> String {
    let mut out = String::new();
    if single {
        for line in &result.trace {
            let _ = writeln!(out, "{line}");
        }
    }
    for (number, failure) in result.failures.iter().enumerate() {
        let _ = writeln!(out, "seed {} breaks {}: {}", failure.seed, failure.rule, failure.text);
        if !single && number < TOLD {
            let from = failure.trace.len().saturating_sub(LAST);
            for line in &failure.trace[from..] {
                let _ = writeln!(out, "    {line}");
            }
        }
        let _ = writeln!(out, "    again: {}", failure.replay);
    }
    if single {
        let held = if result.failures.is_empty() { "every rule held" } else { "a rule broke" };
        let _ = writeln!(out, "seed {}: {held}", result.seeds.start);
        return out;
    }
    let tally = &result.tally;
    let _ = writeln!(
        out,
        "{} seeds from {} in {seconds:.1} s, {} failed",
        result.runs,
        result.seeds.start,
        result.failures.len()
    );
    let _ = writeln!(
        out,
        "{:.0} simulated hours, {:.1} in a second; {} steps, {:.0} in a second; {} Azure writes",
        hours(result),
        rate(hours(result), seconds),
        tally.steps,
        rate(tally.steps as f64, seconds),
        tally.azure_writes
    );
    table(&mut out, "layouts", &tally.layouts);
    table(&mut out, "faults met", &tally.faults);
    let missing = missing(result);
    if !missing.is_empty() {
        let _ = writeln!(out, "faults never met: {}", missing.join(", "));
    }
    table(&mut out, "crash points met", &tally.crashes);
    let missing = tally.crashes_never_met();
    if !missing.is_empty() {
        let _ = writeln!(out, "crash points never met: {}", missing.join(", "));
    }
    table(&mut out, "moves", &tally.moves);
    table(&mut out, "checks", &tally.checks);
    let _ = writeln!(out, "seeds judged by each rule:");
    for (rule, seeds) in seeds_judged(result) {
        let _ = writeln!(out, "  {seeds:>9}  {:>3} %  {rule}", seeds * 100 / result.runs.max(1));
    }
    out
}

/// How many seeds each rule has judged at least once, those that never came to it included.
fn seeds_judged(result: &Result) -> BTreeMap<&'static str, u64> {
    let judged = |rule: &str| result.tally.judged.get(rule).copied().unwrap_or(0);
    RULES.iter().map(|(rule, _)| (*rule, judged(rule))).collect()
}

fn table<K: AsRef<str> + Ord>(out: &mut String, title: &str, counts: &BTreeMap<K, u64>) {
    let _ = writeln!(out, "{title}:");
    for (name, count) in counts {
        let _ = writeln!(out, "  {count:>9}  {}", name.as_ref());
    }
}
