//! `ballast pause`, `resume`, `confirm` and `retry`: what an operator does about one Service by its
//! annotations, or about all writes by an annotation of the Lease.

use super::service::{ServiceArgs, named};
use crate::cluster::{self, ClusterArgs};
use crate::exit::{Exit, Failure, Outcome};
use crate::lease::LeaseName;
use crate::output;
use clap::builder::PossibleValuesParser;
use edge::clock::Clock;
use edge::kubernetes::ConnectFrom;
use kube::Client;
use model::pause::{self, KINDS};
use model::{Pause, ServiceName};
use plan::ask::annotation::{CONFIRMED, PAUSE, RETRY};
use plan::ask::hold::to_confirm;

/// One Service, or all writes.
#[derive(Debug, clap::Args)]
pub struct ScopeArgs {
    /// The Service
    #[arg(value_name = "[NAMESPACE/]NAME")]
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    pub service: Option<String>,
    /// Namespace of the Service, where NAME has none [default: that of the kubeconfig's context]
    #[arg(short, long, value_name = "NAMESPACE", conflicts_with = "all")]
    pub namespace: Option<String>,
    /// All writes of the cluster to Azure, not those of one Service. The pause outlives restarts,
    /// until it is resumed; Services that are paused one by one stay so
    #[arg(long)]
    pub all: bool,
    /// Which cluster.
    #[command(flatten)]
    pub cluster: ClusterArgs,
    /// The lease of the controller.
    #[command(flatten)]
    pub lease_name: LeaseName,
}

/// Arguments of `pause`.
#[derive(Debug, clap::Args)]
pub struct PauseArgs {
    /// What is paused.
    #[command(flatten)]
    pub scope: ScopeArgs,
    /// With --all: pause only writes of resources of this kind (repeatable)
    #[arg(long, value_name = "KIND", conflicts_with = "service", ignore_case = true)]
    #[arg(value_parser = PossibleValuesParser::new(KINDS))]
    pub kind: Vec<String>,
}

/// Arguments of `confirm` and `retry`.
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

/// Pauses one Service, or all writes.
///
/// # Errors
/// There is no such Service or Lease, or the cluster cannot be asked.
pub async fn pause(args: PauseArgs) -> Outcome {
    let value = match args.kind.as_slice() {
        [] => "true".to_owned(),
        kinds => kinds.join(","),
    };
    in_scope(&args.scope, Verb::Pause, Some(&value)).await
}

/// Ends a pause of one Service, or of all writes.
///
/// # Errors
/// There is no such Service or Lease, or the cluster cannot be asked.
pub async fn resume(args: ScopeArgs) -> Outcome {
    in_scope(&args, Verb::Resume, None).await
}

/// `value` is that of the Lease's annotation.
async fn in_scope(args: &ScopeArgs, verb: Verb, value: Option<&str>) -> Outcome {
    let client = cluster::client(&args.cluster.origin(ConnectFrom::Environment)).await?;
    if let Some(service) = &args.service {
        let namespace = args.namespace.as_deref().unwrap_or(client.default_namespace());
        return annotate(&named(service, namespace), &client, verb).await;
    }
    let lease = args.lease_name.lease();
    cluster::annotate_lease(&client, &lease, pause::PAUSE, value).await?;
    let text = match value.and_then(Pause::read) {
        Some(pause) => format!(
            "Paused by an annotation of Lease {lease}, within 6 s: {pause}. A write \
             that is under way ends, and no resource is changed after it. `resume --all` ends the \
             pause."
        ),
        None => format!("Writes to Azure go on, within 6 s: Lease {lease} has no pause any more."),
    };
    output::print(&format!("{text}\n"))?;
    Ok(Exit::Done)
}

/// Annotates the Service; the controller does the rest.
///
/// # Errors
/// There is no such Service, or the cluster cannot be asked.
pub async fn run(args: Args, verb: Verb) -> Outcome {
    let client = cluster::client(&args.cluster.origin(ConnectFrom::Environment)).await?;
    annotate(&args.service.name(client.default_namespace()), &client, verb).await
}

async fn annotate(service: &ServiceName, client: &Client, verb: Verb) -> Outcome {
    let now = Clock::start().now_ms().to_string();
    let mut confirmed = String::new();
    if verb == Verb::Confirm {
        let (names, message) = waiting(client, service).await?;
        output::print(&format!("{message}\n"))?;
        confirmed = names;
    }
    let (key, value, text) = match verb {
        Verb::Pause => (
            PAUSE,
            Some("true"),
            "is paused: nothing of it is written to Azure, but its backends still follow nodes and \
             Pods. `resume` ends it",
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
    cluster::annotate(client, service, key, value).await?;
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
