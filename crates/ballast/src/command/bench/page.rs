//! `ballast bench page`: everything that is measured, written into a page between its markers.

use super::arrival::{self, ARRIVAL};
use super::planning;
use super::simulated::{self, CONVERGE, NODES, PODS, Result};
use super::sizes;
use crate::exit::{Exit, Failure, Outcome};
use crate::output;
use clap::ValueEnum;
use std::path::PathBuf;

/// A section of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Section {
    /// Services created at once, simulated
    Converge,
    /// A node more and a node less, simulated
    Nodes,
    /// The container load balancer at rising sizes, simulated
    Pods,
    /// What a plan takes, on this machine
    Plan,
    /// One Service more, on this machine
    Arrival,
    /// Creation and deletion of 200 Services with 500 Pods each, on this machine
    Life,
    /// Start and memory at rising sizes, on this machine
    Starts,
}

impl Section {
    /// The name in the markers.
    fn name(self) -> &'static str {
        match self {
            Self::Converge => "converge",
            Self::Nodes => "nodes",
            Self::Pods => "pods",
            Self::Plan => "plan",
            Self::Arrival => "arrival",
            Self::Life => "life",
            Self::Starts => "starts",
        }
    }

    async fn measured(self) -> std::result::Result<Result, Failure> {
        match self {
            Self::Converge => simulated::converged(&CONVERGE),
            Self::Nodes => simulated::node_changes(&NODES),
            Self::Pods => simulated::containers(&PODS),
            Self::Plan => planning::measured(&CONVERGE),
            Self::Arrival => arrival::measured(&ARRIVAL),
            Self::Life => sizes::whole_life().await,
            Self::Starts => sizes::starts().await,
        }
    }

    /// The machine, where the figures depend on it: cores and what else ran just before.
    fn place(self) -> String {
        match self {
            Self::Converge | Self::Nodes | Self::Pods => String::new(),
            Self::Plan | Self::Arrival | Self::Life | Self::Starts => {
                let cores = std::thread::available_parallelism().map_or(0, usize::from);
                let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
                let load = load.split(' ').next().unwrap_or("unknown").to_owned();
                format!("On {cores} cores; load average before it: {load}.\n\n")
            }
        }
    }
}

/// Arguments of `bench page`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The page; plots go into the directory beside it that has its name without the extension
    #[arg(value_name = "FILE", default_value = "docs/dev/benchmarks.md")]
    pub file: PathBuf,
    /// Only these sections
    #[arg(long, value_enum, value_name = "SECTION,…", value_delimiter = ',')]
    #[arg(default_values_t = Section::value_variants().to_vec())]
    pub only: Vec<Section>,
}

/// Measures, and replaces what is between the markers.
///
/// # Errors
/// The page cannot be read or written, a marker is missing, or something cannot be measured.
pub async fn run(args: &Args) -> Outcome {
    let shown = args.file.display();
    let mut page = std::fs::read_to_string(&args.file).map_err(|e| {
        Failure::new(Exit::Input, format!("cannot read {shown}: {e}. Name the page"))
    })?;
    let directory = args.file.with_extension("");
    for section in &args.only {
        let (begin, end) = markers(section.name());
        let missing = || {
            let text =
                format!("{shown} has no lines {begin:?} and {end:?} in this order; add them");
            Failure::new(Exit::Input, text)
        };
        let (head, rest) = page.split_once(&begin).ok_or_else(missing)?;
        let (_, tail) = rest.split_once(&end).ok_or_else(missing)?;
        let place = section.place();
        let result = section.measured().await?;
        result.write_charts(&directory)?;
        let table = result.table.markdown();
        page = format!("{head}{begin}\n\n{place}{table}\n{end}{tail}");
        output::write_file(&args.file, &page)?;
    }
    Ok(Exit::Done)
}

/// What begins and ends a section that is written by the command.
#[must_use]
pub fn markers(name: &str) -> (String, String) {
    (format!("<!-- begin {name} -->"), format!("<!-- end {name} -->"))
}
