//! `ballast pause`, `resume` and `retry`: what an operator does about one Service, by its
//! annotations.

use super::service::ServiceArgs;
use crate::cluster::{self, ClusterArgs};
use crate::exit::{Exit, Outcome};
use crate::output;
use edge::clock::Clock;
use edge::kubernetes::ConnectFrom;
use plan::ask::annotation::{PAUSE, RETRY};

/// Arguments of `pause`, `resume` and `retry`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The Service.
    #[command(flatten)]
    pub service: ServiceArgs,
    /// Which cluster.
    #[command(flatten)]
    pub cluster: ClusterArgs,
}

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Nothing of it is written any more.
    Pause,
    /// It is written again.
    Resume,
    /// What Azure rejected is attempted at once.
    Retry,
}

/// Annotates the Service; the controller does the rest.
///
/// # Errors
/// There is no such Service, or the cluster cannot be asked.
pub async fn run(args: Args, verb: Verb) -> Outcome {
    let service = args.service.name();
    let client = cluster::client(&args.cluster.origin(ConnectFrom::Environment)).await?;
    let now = Clock::start().now_ms().to_string();
    let (key, value, text) = match verb {
        Verb::Pause => (
            PAUSE,
            Some("true"),
            "is paused: nothing of it is written to Azure, and what it has stays. `resume` ends it",
        ),
        Verb::Resume => (PAUSE, None, "is resumed"),
        Verb::Retry => (RETRY, Some(now.as_str()), "is attempted again at once"),
    };
    cluster::annotate(&client, &service, key, value).await?;
    output::print(&format!("Service {service} {text}.\n"))?;
    Ok(Exit::Done)
}
