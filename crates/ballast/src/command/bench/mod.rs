//! `ballast bench`: measures the real program between both emulators.

mod child;
mod cluster;
pub mod container;

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
    /// The container load balancer: times, calls and memory at a size
    Container(container::Args),
}

/// Measures and prints.
///
/// # Errors
/// The emulators cannot be started, or the controller does not get there in time.
pub async fn run(args: Args) -> Outcome {
    match args.subject {
        Subject::Container(args) => container::run(args).await,
    }
}
