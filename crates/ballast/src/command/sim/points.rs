//! `ballast sim --exhaustive`: every point of small scenarios, one after the other.

use crate::exit::{Exit, Failure, Outcome};
use crate::output::{self, Format};
use serde_json::json;
use sim::exhaust::{Points, SCENARIOS, enumerate, suits};
use sim::scene::LAYOUTS;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

/// Swaps tried of one scenario in one layout.
const SWAPS: usize = usize::MAX;

/// Tries them all on so many threads.
pub(super) fn run(jobs: usize, format: Format) -> Outcome {
    let mut work = Vec::new();
    for (layout, layout_name) in LAYOUTS {
        for (scenario, scenario_name) in SCENARIOS {
            if suits(scenario, layout) {
                work.push((layout, scenario, format!("{layout_name} {scenario_name}")));
            }
        }
    }
    let next = AtomicUsize::new(0);
    let mut found: BTreeMap<usize, Points> = BTreeMap::new();
    let (sender, receiver) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            let (sender, next, work) = (sender.clone(), &next, &work);
            scope.spawn(move || {
                while let Some((layout, scenario, _)) =
                    work.get(next.fetch_add(1, Ordering::Relaxed)).map(|w| (w.0, w.1, &w.2))
                {
                    let at = work.iter().position(|w| (w.0, w.1) == (layout, scenario));
                    let points = enumerate(scenario, layout, SWAPS);
                    if sender.send((at.unwrap_or(0), points)).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        found.extend(receiver);
    });
    let all: u64 = found.values().map(Points::all).sum();
    let wrong: usize = found.values().map(|points| points.wrong.len()).sum();
    match format {
        Format::Json => {
            let rows: Vec<_> = found
                .iter()
                .map(|(at, p)| {
                    json!({"scenario": work[*at].2, "crashes": p.crashes, "losses": p.losses,
                        "swaps": p.swaps, "wrong": p.wrong})
                })
                .collect();
            output::print_json(&json!({"points": all, "wrong": wrong, "scenarios": rows}))?;
        }
        Format::Text => {
            let mut out = String::from("crashes  losses  swaps  wrong  scenario\n");
            for (at, p) in &found {
                let _ = writeln!(
                    out,
                    "{:>7}  {:>6}  {:>5}  {:>5}  {}",
                    p.crashes,
                    p.losses,
                    p.swaps,
                    p.wrong.len(),
                    work[*at].2
                );
                for line in &p.wrong {
                    let _ = writeln!(out, "    {line}");
                }
            }
            let _ = writeln!(out, "{all} points tried, {wrong} ended wrong");
            output::print(&out)?;
        }
    }
    if wrong == 0 {
        return Ok(Exit::Done);
    }
    Err(Failure::new(Exit::Failed, format!("{wrong} of {all} points ended wrong; see above")))
}
