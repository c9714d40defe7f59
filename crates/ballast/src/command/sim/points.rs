//! `ballast sim --exhaustive`: the points of small scenarios, one after the other.

use crate::exit::{Exit, Failure, Outcome};
use crate::output::{self, Format};
use serde_json::{Value, json};
use sim::crew;
use sim::exhaust::{Count, KINDS, Kind, Place, Points, enumerate, places, usual};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Tries them on so many threads.
pub(super) fn run(jobs: usize, format: Format) -> Outcome {
    let places = places();
    let found = crew::all(&places, jobs, |place| enumerate(*place, usual));
    let mut sum = Points::default();
    found.iter().for_each(|points| sum.add(points));
    let wrong = sum.wrong.len();
    match format {
        Format::Json => output::print_json(&document(&places, &found, &sum))?,
        Format::Text => output::print(&table(&places, &found, &sum))?,
    }
    if wrong == 0 {
        return Ok(Exit::Done);
    }
    let text = format!("{wrong} of {} points ended wrong; see above", sum.tried());
    Err(Failure::new(Exit::Failed, text))
}

fn counted(count: Count) -> Value {
    json!({"tried": count.tried, "all": count.all})
}

fn document(places: &[Place], found: &[Points], sum: &Points) -> Value {
    let rows = places.iter().zip(found).map(|(place, points)| {
        let kinds: BTreeMap<&str, Value> =
            points.kinds.iter().map(|(kind, count)| (kind.name(), counted(*count))).collect();
        json!({"scenario": place.scenario.name(), "layout": place.layout.name(),
            "conditions": place.conditions.name(), "kinds": kinds, "wrong": points.wrong})
    });
    let rows: Vec<Value> = rows.collect();
    json!({"points": counted(sum.first()), "secondCrashes": counted(sum.of(Kind::Second)),
        "wrong": sum.wrong.len(), "scenarios": rows})
}

fn table(places: &[Place], found: &[Points], sum: &Points) -> String {
    let mut out = String::from("tried     of  second     of  wrong  scenario\n");
    // The conditions of a scenario follow one another.
    let all: Vec<(&Place, &Points)> = places.iter().zip(found).collect();
    for group in all.chunk_by(|(a, _), (b, _)| (a.layout, a.scenario) == (b.layout, b.scenario)) {
        let mut points = Points::default();
        group.iter().for_each(|(_, of_place)| points.add(of_place));
        let (first, second) = (points.first(), points.of(Kind::Second));
        let name = group.first().map_or(String::new(), |(place, _)| {
            format!("{} {}", place.layout.name(), place.scenario.name())
        });
        let _ = writeln!(
            out,
            "{:>5}  {:>5}  {:>6}  {:>5}  {:>5}  {name}",
            first.tried,
            first.all,
            second.tried,
            second.all,
            points.wrong.len(),
        );
        for line in &points.wrong {
            let _ = writeln!(out, "    {line}");
        }
    }
    out.push_str("\ntried      of  fault\n");
    for kind in KINDS {
        let Count { tried, all } = sum.of(*kind);
        let _ = writeln!(out, "{tried:>5}  {all:>6}  {}: {}", kind.name(), kind.what());
    }
    let (first, second) = (sum.first(), sum.of(Kind::Second));
    let _ = writeln!(
        out,
        "\nsampled: {} of {} points, {} of {} second crashes behind them; {} ended wrong",
        first.tried,
        first.all,
        second.tried,
        second.all,
        sum.wrong.len(),
    );
    out
}
