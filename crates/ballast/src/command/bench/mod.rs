//! `ballast bench`: measures the real program between both emulators, and the same controller in
//! simulated time.

pub mod arrival;
mod chart;
mod child;
mod cluster;
pub mod container;
pub mod page;
pub mod planning;
pub mod simulated;
mod sizes;
mod table;

use crate::exit::Outcome;

/// Arguments of `bench`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// What is measured.
    #[command(subcommand)]
    pub subject: Subject,
}

/// What is measured.
#[derive(Debug, clap::Subcommand)]
pub enum Subject {
    /// The container load balancer on this machine: times, calls and memory at a size
    Container(container::Args),
    /// Services that are created at once, in simulated time
    Converge(simulated::ConvergeArgs),
    /// A node more and a node less, in simulated time
    Nodes(simulated::NodesArgs),
    /// The container load balancer at rising sizes, in simulated time
    Pods(simulated::PodsArgs),
    /// What the processor takes for a plan on settled clusters of rising size
    Plan(planning::Args),
    /// What the processor takes for one Service more, whatever stands in it
    Arrival(arrival::Args),
    /// Measures everything and writes it into a page, between its markers, with its plots
    Page(page::Args),
}

/// Measures and prints.
///
/// # Errors
/// The emulators cannot be started, or the controller does not get there in time.
pub async fn run(args: Args) -> Outcome {
    match args.subject {
        Subject::Container(args) => container::run(args).await,
        Subject::Converge(args) => simulated::converge(&args),
        Subject::Nodes(args) => simulated::nodes(&args),
        Subject::Pods(args) => simulated::pods(&args),
        Subject::Plan(args) => planning::run(&args),
        Subject::Arrival(args) => arrival::run(&args),
        Subject::Page(args) => page::run(&args).await,
    }
}
