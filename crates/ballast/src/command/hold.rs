//! `ballast pause`, `resume`, `confirm` and `retry`: what an operator does about one Service, by
//! its annotations.

use super::service::ServiceArgs;
use crate::cluster::{self, ClusterArgs};
use crate::exit::{Exit, Failure, Outcome};
use crate::output;
use edge::clock::Clock;
use edge::kubernetes::ConnectFrom;
use kube::Client;
use model::ServiceName;
use plan::ask::annotation::{CONFIRMED, PAUSE, RETRY};
use plan::ask::hold::to_confirm;

/// Arguments of `pause`, `resume`, `confirm` and `retry`.
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
    /// The interruption that waits for its owner goes ahead.
    Confirm,
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
    let mut confirmed = String::new();
    if verb == Verb::Confirm {
        let (names, message) = waiting(&client, &service).await?;
        output::print(&format!("{message}\n"))?;
        confirmed = names;
    }
    let (key, value, text) = match verb {
        Verb::Pause => (
            PAUSE,
            Some("true"),
            "is paused: nothing of it is written to Azure, and what it has stays. `resume` ends it",
        ),
        Verb::Resume => (PAUSE, None, "is resumed"),
        Verb::Confirm => (
            CONFIRMED,
            Some(confirmed.as_str()),
            "is confirmed: it loses what is listed above. Remove the annotation \
             ballast.dev/confirmed afterwards",
        ),
        Verb::Retry => (RETRY, Some(now.as_str()), "is attempted again at once"),
    };
    cluster::annotate(&client, &service, key, value).await?;
    output::print(&format!("Service {service} {text}.\n"))?;
    Ok(Exit::Done)
}

/// What a Service would lose, as the annotation lists it, and the text of its condition.
///
/// # Errors
/// There is no such Service, nothing of it waits for a confirmation, or the cluster cannot be
/// asked.
async fn waiting(client: &Client, service: &ServiceName) -> Result<(String, String), Failure> {
    let path = format!("/api/v1/namespaces/{}/services/{}", service.namespace, service.name);
    let Some(found) = cluster::find(client, &path).await? else {
        let text = format!("there is no Service {service}. Check the name and -n");
        return Err(Failure::new(Exit::Usage, text));
    };
    let conditions = found["status"]["conditions"].as_array().into_iter().flatten();
    let mut messages = conditions.filter_map(|condition| condition["message"].as_str());
    let due = messages.find_map(|message| {
        let names = to_confirm(message)?.to_owned();
        Some((names, message.to_owned()))
    });
    due.ok_or_else(|| {
        let text = format!(
            "cannot confirm a change of Service {service}: its condition lists nothing that waits \
             for a confirmation. See `ballast status`"
        );
        Failure::new(Exit::Usage, text)
    })
}
