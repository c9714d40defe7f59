//! `ballast bench arrival`: the processor time of one Service more, whatever stands in it.

use super::planning::milliseconds;
use super::simulated::{self, Result, Writing};
use super::table::{Table, grouped};
use crate::exit::{Failure, Outcome};
use crate::progress::Bar;
use bench::{ArrivalRow, Cost, Guest, arrival, backends_of};
use clap::value_parser;
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};
use std::time::Duration;

/// How often each Service arrives; the median counts.
const TIMES: usize = 5;

/// The Services of a whole `bench arrival`: backends are nodes, then Pods.
pub const ARRIVAL: [u32; 2] = [1_000, 2_001];

/// Arguments of `bench arrival`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Numbers of Services before the addition; above 2,000 with container load balancers
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_values_t = ARRIVAL)]
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

/// Lets each kind of Service arrive at so many others.
///
/// # Errors
/// A cluster does not come to rest.
pub fn measured(services: &[u32]) -> std::result::Result<Result, Failure> {
    let mut rows = Vec::new();
    for &n in services {
        for guest in Guest::ALL {
            let mut bar = Bar::new(format!("{n} Services, {}", guest.name()));
            let row = arrival(n, guest, TIMES, processor_time, &mut |p| bar.show(p));
            rows.push(row.map_err(simulated::stuck)?);
        }
    }
    let columns = vec![
        "Services",
        "backends",
        "the Service that arrives",
        "processor time",
        "plans",
        "Services read",
        "another one changes",
        "plans",
        "Services read",
    ];
    let table = Table { columns, rows: rows.iter().map(cells).collect() };
    Ok(Result { table, json: rows.iter().map(value).collect(), charts: Vec::new() })
}

/// What the processor spent on this thread: unlike the clock, it leaves out what else the machine
/// does.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let (seconds, nanos) = (u64::try_from(time.tv_sec), u32::try_from(time.tv_nsec));
    Duration::new(seconds.unwrap_or_default(), nanos.unwrap_or_default())
}

fn cells(row: &ArrivalRow) -> Vec<String> {
    let ArrivalRow { services, guest, arrival, change } = row;
    let backends = simulated::backends(backends_of(*services));
    let mut cells = vec![grouped((*services).into()), backends.to_owned(), guest.name().to_owned()];
    for Cost { spent, plans, reads } in [arrival, change] {
        cells.extend([milliseconds(ms(*spent)), grouped(*plans), grouped(*reads)]);
    }
    cells
}

fn value(row: &ArrivalRow) -> Value {
    let ArrivalRow { services, guest, arrival, change } = row;
    let cost = |cost: &Cost| {
        json!({"processorMs": ms(cost.spent), "plans": cost.plans,
        "servicesRead": cost.reads})
    };
    json!({"services": services, "backends": simulated::backends(backends_of(*services)),
        "guest": guest.name(), "arrival": cost(arrival), "change": cost(change)})
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
