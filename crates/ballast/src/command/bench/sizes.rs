//! What the real program takes at a size, as tables for the page.

use super::chart::{Chart, Series, Stroke};
use super::container::{self, Args, Figures};
use super::planning::milliseconds;
use super::simulated::Result;
use super::table::{Table, grouped};
use crate::exit::Failure;
use serde_json::json;

/// Nodes and Services of the sizes that are measured; each Service has fifteen Pods.
const SIZES: [(u32, u32); 3] = [(50, 100), (500, 1_000), (5_000, 10_000)];

/// 200 Services of 500 Pods on 500 nodes, 200 ms a call, from nothing to nothing.
///
/// # Errors
/// The emulators cannot be started, or the controller does not get there in time.
pub async fn whole_life() -> std::result::Result<Result, Failure> {
    let args = Args { latency_ms: 200, ..Args::sized(500, 200, 500) };
    let figures = container::figures(&args).await?;
    let table = Table { columns: vec!["what", "measured", "promised"], rows: life_rows(&figures) };
    Ok(Result { table, json: vec![json!(figures)], charts: Vec::new() })
}

fn life_rows(f: &Figures) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    let mut row = |what: &str, measured: String, promised: &str| {
        rows.push(vec![what.to_owned(), measured, promised.to_owned()]);
    };
    if let Some(created) = &f.created {
        row("all created, 100,000 Pods in rotation", one_digit(created.ms), "at most 4 s");
        row("the controller's processor time for that", one_digit(created.processor_ms), "");
        row("writes for that", grouped(created.writes as u64), "");
        row("most memory until then", mib(created.peak_mib), "at most 80 MiB");
    }
    let pod = &f.one_pod;
    let median = format!("one Pod more or less, median of {}", pod.rounds);
    row(&median, milliseconds(pod.median_ms), "at most 220 ms");
    row("the same, worst", milliseconds(pod.worst_ms), "");
    row("calls for these", grouped(pod.calls as u64), &grouped(pod.rounds.into()));
    row("start of a second process until its first write", one_digit(f.started.ms), "");
    row("most memory of that", mib(f.started.peak_mib), "at most 80 MiB");
    if let Some(deleted) = &f.deleted {
        row("all deleted", one_digit(deleted.ms), "at most 5 s");
        row("the controller's processor time for that", one_digit(deleted.processor_ms), "");
        row("writes for that", grouped(deleted.writes as u64), "");
        row("most memory until then", mib(deleted.peak_mib), "at most 80 MiB");
    }
    rows
}

/// The start of a process in settled clusters of rising size.
///
/// # Errors
/// The emulators cannot be started, or the controller does not get there in time.
pub async fn starts() -> std::result::Result<Result, Failure> {
    let mut all = Vec::new();
    for (nodes, services) in SIZES {
        let args = Args { prepared: true, ..Args::sized(nodes, services, 15) };
        all.push(container::figures(&args).await?);
    }
    let columns = vec![
        "Services",
        "Pods",
        "nodes",
        "start until the first write",
        "the controller's processor time",
        "memory then",
        "at most",
        "one Pod, median",
        "steps of the controller for it",
    ];
    let cells = |f: &Figures| {
        vec![
            grouped(f.services.into()),
            grouped(f.pods as u64),
            grouped(f.nodes.into()),
            one_digit(f.started.ms),
            one_digit(f.started.processor_ms),
            mib(f.started.resident_mib),
            mib(f.started.peak_mib),
            milliseconds(f.one_pod.median_ms),
            milliseconds(f.one_pod.steps_ms),
        ]
    };
    let table = Table { columns, rows: all.iter().map(cells).collect() };
    let json = all.iter().map(|figures| json!(figures)).collect();
    Ok(Result { table, json, charts: vec![memory_chart(&all), start_chart(&all)] })
}

fn memory_chart(all: &[Figures]) -> Chart {
    let of = |mib: fn(&Figures) -> f64| points(all, mib);
    let series = vec![
        Series::new("once started", 0, Stroke::Solid, of(|f| f.started.resident_mib)),
        Series::new("at most", 1, Stroke::Solid, of(|f| f.started.peak_mib)),
    ];
    let title = "Memory of the controller";
    Chart { name: "memory", title, x: "Pods of all Services", y: "MiB", series }
}

fn start_chart(all: &[Figures]) -> Chart {
    let series = vec![Series::new(
        "until the first write",
        0,
        Stroke::Solid,
        points(all, |f| f.started.ms / 1e3),
    )];
    let title = "Start in a settled cluster, calls take no time";
    Chart { name: "start", title, x: "Pods of all Services", y: "time (s)", series }
}

fn points(all: &[Figures], value: fn(&Figures) -> f64) -> Vec<(f64, f64)> {
    all.iter().map(|f| (f.pods as f64, value(f))).collect()
}

fn one_digit(ms: f64) -> String {
    format!("{:.1} s", ms / 1e3)
}

fn mib(mib: f64) -> String {
    format!("{mib:.1} MiB")
}
