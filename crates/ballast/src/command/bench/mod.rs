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
    /// Measure container load balancers on this machine: times, calls and memory at one size
    Container(container::Args),
    /// Measure the creation of many Services at once, in simulated time
    Converge(simulated::ConvergeArgs),
    /// Measure the addition and the removal of a node, in simulated time
    Nodes(simulated::NodesArgs),
    /// Measure container load balancers at rising sizes, in simulated time
    Pods(simulated::PodsArgs),
    /// Measure the processor time of a plan on settled clusters of rising size
    Plan(planning::Args),
    /// Measure the processor time of one more Service, at rising numbers of Services
    Arrival(arrival::Args),
    /// Measure everything, and write tables and plots between the markers of a Markdown page
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
