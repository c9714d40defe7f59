//! `ballast bench plan`: what the processor takes for a plan.

use super::chart::{Chart, Series, Stroke};
use super::simulated::{self, CONVERGE, Result, Writing};
use super::table::{Table, grouped};
use crate::exit::{Failure, Outcome};
use crate::progress::Bar;
use bench::Settled;
use clap::value_parser;
use plan::Planner;
use serde_json::json;
use std::time::Instant;

/// How often a thing is timed; the median counts.
const TIMES: usize = 5;

/// Arguments of `bench plan`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Numbers of Services. More than 2,000 are measured on container load balancers, because a
    /// cluster has only 2,768 node ports
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_values_t = CONVERGE)]
    #[arg(value_parser = value_parser!(u32).range(1..=20_000))]
    pub services: Vec<u32>,
    /// How results are written.
    #[command(flatten)]
    pub writing: Writing,
}

/// Measures and prints.
///
/// # Errors
/// The cluster does not come to rest, or the result cannot be written.
pub fn run(args: &Args) -> Outcome {
    measured(&args.services)?.write(&args.writing)
}

/// What plans of one size took, in milliseconds.
struct Row {
    services: u32,
    backends: &'static str,
    same: f64,
    one: f64,
    all: f64,
    anew: f64,
}

/// Plans for settled clusters of so many Services each.
///
/// # Errors
/// A cluster does not come to rest.
pub fn measured(services: &[u32]) -> std::result::Result<Result, Failure> {
    let mut rows = Vec::new();
    for &n in services {
        let mut bar = Bar::new(format!("{n} Services"));
        let settled = Settled::with(n, &mut |p| bar.show(p)).map_err(simulated::stuck)?;
        rows.push(row(n, &settled));
    }
    let columns = vec![
        "Services",
        "backends",
        "nothing changed",
        "one changed",
        "everything changed",
        "by a new process",
    ];
    let cells = |row: &Row| {
        let mut cells = vec![grouped(row.services.into()), row.backends.to_owned()];
        cells.extend([row.same, row.one, row.all, row.anew].map(milliseconds));
        cells
    };
    let value = |row: &Row| {
        json!({"services": row.services, "backends": row.backends, "nothingChangedMs": row.same,
            "oneChangedMs": row.one, "everythingChangedMs": row.all, "newProcessMs": row.anew})
    };
    let table = Table { columns, rows: rows.iter().map(cells).collect() };
    Ok(Result { table, json: rows.iter().map(value).collect(), charts: vec![chart(&rows)] })
}

fn row(services: u32, settled: &Settled) -> Row {
    let mut rounds: [Vec<f64>; 4] = Default::default();
    for _ in 0..TIMES {
        let mut settled = settled.clone();
        let mut planner = Planner::default();
        let take = |planner: &mut Planner, settled: &Settled| {
            let from = Instant::now();
            let plan = planner.plan(&settled.world, &settled.policy);
            let took = from.elapsed().as_secs_f64() * 1e3;
            drop(plan);
            took
        };
        rounds[3].push(take(&mut planner, &settled));
        rounds[0].push(take(&mut planner, &settled));
        settled.change_one();
        rounds[1].push(take(&mut planner, &settled));
        settled.change_all();
        rounds[2].push(take(&mut planner, &settled));
    }
    let [same, one, all, anew] = rounds.map(|mut times| median(&mut times));
    Row { services, backends: simulated::backends(settled.backends), same, one, all, anew }
}

/// The one in the middle; afterwards they are sorted.
pub(super) fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

/// As a person writes it: below 10 with two digits behind the point.
pub(super) fn milliseconds(ms: f64) -> String {
    if ms < 10.0 { format!("{ms:.2} ms") } else { format!("{ms:.0} ms") }
}

fn chart(rows: &[Row]) -> Chart {
    let of = |ms: fn(&Row) -> f64| rows.iter().map(|r| (f64::from(r.services), ms(r))).collect();
    let series = vec![
        Series::new("one changed", 0, Stroke::Solid, of(|row| row.one)),
        Series::new("everything changed", 1, Stroke::Solid, of(|row| row.all)),
    ];
    Chart { name: "plan", title: "One plan", x: "Services", y: "time (ms)", series }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_of_ten_services_is_timed() {
        let result = measured(&[10]).expect("ten Services settle");
        assert_eq!(result.json.len(), 1);
        for key in ["nothingChangedMs", "oneChangedMs", "everythingChangedMs", "newProcessMs"] {
            assert!(result.json[0][key].as_f64().is_some_and(|ms| ms > 0.0), "{key}");
        }
        assert_eq!(result.table.rows[0][..2], ["10".to_owned(), "nodes".to_owned()]);
    }

    #[test]
    fn the_median_is_the_middle_one() {
        assert_eq!(median(&mut [9.0, 1.0, 2.0]), 2.0);
        assert_eq!((milliseconds(0.123), milliseconds(74.6)), ("0.12 ms".into(), "75 ms".into()));
    }
}
