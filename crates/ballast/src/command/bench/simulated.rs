//! `ballast bench converge`, `nodes` and `pods`: simulated time, the same on every machine.

use super::chart::{Chart, Series, Stroke};
use super::table::{Table, factor, grouped, seconds};
use crate::exit::{Exit, Failure, Outcome};
use crate::output::{self, Format};
use crate::progress::Bar;
use bench::{
    Backends, ContainerRow, ContainerSize, ConvergeRow, NodeRow, Pools, Stuck, Terms,
    reads_elsewhere,
};
use clap::value_parser;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// How results are written.
#[derive(Debug, clap::Args)]
pub struct Writing {
    /// Output format
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    pub output: Format,
    /// Write plots into this directory, too
    #[arg(long, value_name = "DIRECTORY")]
    pub svg: Option<PathBuf>,
}

/// Arguments of `bench converge`.
#[derive(Debug, clap::Args)]
pub struct ConvergeArgs {
    /// Numbers of Services. More than 2,000 are measured on container load balancers, because a
    /// cluster has only 2,768 node ports
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_values_t = CONVERGE)]
    #[arg(value_parser = value_parser!(u32).range(1..=20_000))]
    pub services: Vec<u32>,
    /// How results are written.
    #[command(flatten)]
    pub writing: Writing,
}

/// Arguments of `bench nodes`.
#[derive(Debug, clap::Args)]
pub struct NodesArgs {
    /// How many nodes
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_values_t = NODES)]
    #[arg(value_parser = value_parser!(u32).range(1..=20_000))]
    pub nodes: Vec<u32>,
    /// How results are written.
    #[command(flatten)]
    pub writing: Writing,
}

/// Arguments of `bench pods`.
#[derive(Debug, clap::Args)]
pub struct PodsArgs {
    /// How results are written.
    #[command(flatten)]
    pub writing: Writing,
}

/// The Services of a whole `bench converge`.
pub const CONVERGE: [u32; 4] = [10, 100, 1_000, 10_000];
/// The nodes of a whole `bench nodes`.
pub const NODES: [u32; 3] = [100, 1_000, 5_000];
/// The sizes of a whole `bench pods`.
pub const PODS: [ContainerSize; 3] = [
    ContainerSize { services: 10, pods: 20, nodes: 20 },
    ContainerSize { services: 50, pods: 100, nodes: 100 },
    ContainerSize { services: 200, pods: 500, nodes: 500 },
];

/// What one subject came to.
#[derive(Clone, Debug, Default)]
pub struct Result {
    /// For people.
    pub table: Table,
    /// For programs.
    pub json: Vec<Value>,
    /// For the eye.
    pub charts: Vec<Chart>,
}

impl Result {
    /// Prints it, and writes its plots where they are asked for.
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) fn write(&self, writing: &Writing) -> Outcome {
        if let Some(directory) = &writing.svg {
            self.write_charts(directory)?;
        }
        match writing.output {
            Format::Json => output::print_json(&self.json)?,
            Format::Text => output::print(&self.table.text())?,
        }
        Ok(Exit::Done)
    }

    /// Writes the plots.
    ///
    /// # Errors
    /// The directory cannot be made or written to.
    pub fn write_charts(&self, directory: &Path) -> std::result::Result<(), Failure> {
        std::fs::create_dir_all(directory).map_err(|e| {
            let text = format!("cannot make {}: {e}. Choose another", directory.display());
            Failure::new(Exit::Blocked, text)
        })?;
        for chart in &self.charts {
            output::write_file(&directory.join(format!("{}.svg", chart.name)), &chart.svg())?;
        }
        Ok(())
    }
}

/// Measures and prints.
///
/// # Errors
/// It does not come to rest, or the result cannot be written.
pub fn converge(args: &ConvergeArgs) -> Outcome {
    converged(&args.services)?.write(&args.writing)
}

/// Measures and prints.
///
/// # Errors
/// It does not come to rest, or the result cannot be written.
pub fn nodes(args: &NodesArgs) -> Outcome {
    node_changes(&args.nodes)?.write(&args.writing)
}

/// Measures and prints.
///
/// # Errors
/// It does not come to rest, or the result cannot be written.
pub fn pods(args: &PodsArgs) -> Outcome {
    containers(&PODS)?.write(&args.writing)
}

pub(super) fn stuck(stuck: Stuck) -> Failure {
    Failure::new(Exit::Internal, stuck.to_string())
}

/// So many Services each, under all terms.
///
/// # Errors
/// It does not come to rest.
pub fn converged(services: &[u32]) -> std::result::Result<Result, Failure> {
    let mut rows = Vec::new();
    for terms in Terms::ALL {
        for &n in services {
            let mut bar = Bar::new(format!("{n} Services, {}", terms.name()));
            rows.push(bench::converge(n, terms, &mut |p| bar.show(p)).map_err(stuck)?);
        }
    }
    let columns = vec![
        "terms",
        "Services",
        "backends",
        "half have an address",
        "all done",
        "floor",
        "factor",
        "writes",
        "least",
        "reads",
        "refused",
    ];
    let cells = |row: &ConvergeRow| {
        vec![
            row.terms.name().to_owned(),
            grouped(row.services.into()),
            backends(row.backends).to_owned(),
            seconds(row.half_ms),
            seconds(row.time_ms),
            seconds(row.floor_ms()),
            factor(row.time_ms, row.floor_ms()),
            grouped(row.calls.writes),
            grouped(row.demand.writes()),
            grouped(row.calls.reads),
            grouped(row.calls.refused),
        ]
    };
    let value = |row: &ConvergeRow| {
        json!({"services": row.services, "backends": backends(row.backends),
            "loadBalancers": row.balancers, "terms": row.terms.name(), "halfMs": row.half_ms,
            "timeMs": row.time_ms, "floorMs": row.floor_ms(), "writes": row.calls.writes,
            "leastWrites": row.demand.writes(), "reads": row.calls.reads,
            "refused": row.calls.refused})
    };
    let table = Table { columns, rows: rows.iter().map(cells).collect() };
    let json = rows.iter().map(value).collect();
    Ok(Result { table, json, charts: vec![converge_chart(&rows)] })
}

pub(super) fn backends(backends: Backends) -> &'static str {
    match backends {
        Backends::Nodes => "nodes",
        Backends::Pods => "pods",
    }
}

fn converge_chart(rows: &[ConvergeRow]) -> Chart {
    let mut series = Vec::new();
    for (color, terms) in [Terms::Latency, Terms::Published].into_iter().enumerate() {
        let of = |ms: fn(&ConvergeRow) -> u64| {
            let mine = rows.iter().filter(|row| row.terms == terms);
            mine.map(|row| (f64::from(row.services), ms(row) as f64 / 1e3)).collect()
        };
        let name = terms.name();
        series.push(Series::new(name, color, Stroke::Solid, of(|row| row.time_ms)));
        let floor = of(ConvergeRow::floor_ms);
        series.push(Series::new(&format!("{name}, floor"), color, Stroke::Dashed, floor));
    }
    let title = "All Services created at once until all are done";
    Chart { name: "converge", title, x: "Services", y: "simulated time (s)", series }
}

/// A node more and less, in clusters of so many nodes.
///
/// # Errors
/// It does not come to rest.
pub fn node_changes(nodes: &[u32]) -> std::result::Result<Result, Failure> {
    let mut rows = Vec::new();
    for pools in Pools::ALL {
        for &n in nodes {
            let mut bar = Bar::new(format!("{n} nodes, {}", pools.name()));
            let two = bench::node_changes(n, pools, &mut |p| bar.show(p)).map_err(stuck)?;
            rows.extend(two);
        }
    }
    let columns = vec![
        "pools",
        "nodes",
        "load balancers",
        "a node is",
        "time",
        "floor",
        "factor",
        "writes",
        "least",
        "reads",
        "reads of the Go controller",
    ];
    let cells = |row: &NodeRow| {
        vec![
            row.pools.name().to_owned(),
            grouped(row.nodes.into()),
            grouped(row.balancers.into()),
            row.change.name().to_owned(),
            seconds(row.time_ms),
            seconds(row.floor_ms()),
            factor(row.time_ms, row.floor_ms()),
            grouped(row.calls.writes),
            grouped(row.demand.writes()),
            grouped(row.calls.reads),
            grouped(reads_elsewhere(row.services).into()),
        ]
    };
    let value = |row: &NodeRow| {
        json!({"pools": row.pools.name(), "nodes": row.nodes, "loadBalancers": row.balancers,
            "services": row.services, "change": row.change.name(), "timeMs": row.time_ms,
            "floorMs": row.floor_ms(), "writes": row.calls.writes,
            "leastWrites": row.demand.writes(), "reads": row.calls.reads,
            "goReads": reads_elsewhere(row.services)})
    };
    let table = Table { columns, rows: rows.iter().map(cells).collect() };
    let json = rows.iter().map(value).collect();
    Ok(Result { table, json, charts: vec![nodes_chart(&rows)] })
}

fn nodes_chart(rows: &[NodeRow]) -> Chart {
    let added = || rows.iter().filter(|row| row.change == bench::Change::Added);
    let mut series = Vec::new();
    for (color, pools) in Pools::ALL.into_iter().enumerate() {
        let calls = |row: &NodeRow| (row.calls.writes + row.calls.reads) as f64;
        let mine = added().filter(|row| row.pools == pools);
        let points = mine.map(|row| (f64::from(row.nodes), calls(row))).collect();
        series.push(Series::new(pools.name(), color, Stroke::Solid, points));
    }
    let go = added().filter(|row| row.pools == Pools::NodeIp);
    let go = go.map(|row| (f64::from(row.nodes), f64::from(reads_elsewhere(row.services))));
    series.push(Series::new("Go controller, reads", 2, Stroke::Dashed, go.collect()));
    let title = "One node more, 100 Services";
    Chart { name: "nodes", title, x: "nodes", y: "Azure calls", series }
}

/// Container load balancers of these sizes.
///
/// # Errors
/// It does not come to rest.
pub fn containers(sizes: &[ContainerSize]) -> std::result::Result<Result, Failure> {
    let mut rows = Vec::new();
    for &size in sizes {
        let mut bar = Bar::new(format!("{} Services of {} Pods", size.services, size.pods));
        rows.extend(bench::container(size, &mut |p| bar.show(p)).map_err(stuck)?);
    }
    let columns = vec![
        "Services × Pods",
        "what",
        "time",
        "floor",
        "factor",
        "promised",
        "writes",
        "least",
        "promised",
    ];
    let promised = |text: Option<String>| text.unwrap_or_else(|| "–".to_owned());
    let cells = |row: &ContainerRow| {
        vec![
            format!("{} × {}", row.size.services, row.size.pods),
            row.phase.to_owned(),
            seconds(row.time_ms),
            seconds(row.floor_ms),
            factor(row.time_ms, row.floor_ms),
            promised(row.promise.time_ms.map(seconds)),
            grouped(row.calls.writes),
            grouped(row.least_writes),
            promised(row.promise.writes.map(grouped)),
        ]
    };
    let value = |row: &ContainerRow| {
        json!({"services": row.size.services, "pods": row.size.pods, "nodes": row.size.nodes,
            "phase": row.phase, "timeMs": row.time_ms, "floorMs": row.floor_ms,
            "promisedMs": row.promise.time_ms, "writes": row.calls.writes,
            "leastWrites": row.least_writes, "promisedWrites": row.promise.writes,
            "reads": row.calls.reads})
    };
    let table = Table { columns, rows: rows.iter().map(cells).collect() };
    let json = rows.iter().map(value).collect();
    Ok(Result { table, json, charts: vec![container_chart(&rows)] })
}

fn container_chart(rows: &[ContainerRow]) -> Chart {
    let mut series = Vec::new();
    for (color, phase) in ["created", "deleted"].into_iter().enumerate() {
        let of = |ms: fn(&ContainerRow) -> u64| {
            let mine = rows.iter().filter(|row| row.phase == phase);
            let pods = |row: &ContainerRow| f64::from(row.size.services * row.size.pods);
            mine.map(|row| (pods(row), ms(row) as f64 / 1e3)).collect()
        };
        series.push(Series::new(phase, color, Stroke::Solid, of(|row| row.time_ms)));
        let floor = of(|row| row.floor_ms);
        series.push(Series::new(&format!("{phase}, floor"), color, Stroke::Dashed, floor));
    }
    let title = "Container load balancer, 200 ms a call";
    Chart { name: "pods", title, x: "Pods of all Services", y: "simulated time (s)", series }
}
