//! `ballast adopt`.

use super::service::ServiceArgs;
use crate::cloud_config::CloudConfigArgs;
use crate::cluster::{self, ClusterArgs};
use crate::command::source::connect_and_read;
use crate::confirm;
use crate::exit::{Exit, Failure, Outcome};
use crate::once::ReadingArgs;
use crate::output::{self, ColorChoice, Format, Paint};
use crate::render::adopt::{AdoptionDocument, render};
use arm::path::{Contract, resource_path};
use arm::{ArmError, Condition, Method, Operation, Request, Step, Target, body};
use edge::arm::Sender;
use edge::terminal::safe;
use explain::adoption::{Handover, Refused, adoption};
use model::plan::{Action, Change};
use std::io::{self, Write};
use std::time::Duration;

/// Arguments of `adopt`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The Service.
    #[command(flatten)]
    pub service: ServiceArgs,
    /// Take public IPs back from Ballast: they become BYO public IPs, which it never deletes
    #[arg(long)]
    pub undo: bool,
    /// Show what would be written, and write nothing
    #[arg(long, conflicts_with = "yes")]
    pub dry_run: bool,
    /// Skip the confirmation
    #[arg(long)]
    pub yes: bool,
    /// Which cluster.
    #[command(flatten)]
    pub cluster: ClusterArgs,
    /// Which Azure.
    #[command(flatten)]
    pub config: CloudConfigArgs,
    /// What is read, and for how long.
    #[command(flatten)]
    pub reading: ReadingArgs,
    /// Output format
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    pub output: Format,
}

/// Shows what handing over comes to, and does it once it is confirmed.
///
/// # Errors
/// The cluster or Azure cannot be read, the Service has nothing to hand over, or Azure rejects it.
pub async fn run(args: Args, color: ColorChoice) -> Outcome {
    let reading = args.reading.reading();
    let (controller, engine) = connect_and_read(&args.cluster, &args.config, &reading).await?;
    let (world, policy) = (controller.world(), controller.policy());
    let service = args.service.name(engine.client.default_namespace());
    let handover = if args.undo { Handover::ToOperator } else { Handover::ToBallast };
    let found = adoption(world, policy, &service, handover).map_err(|refused| {
        let exit = if refused == Refused::NoService { Exit::Usage } else { Exit::Failed };
        let verb = if args.undo { "take back" } else { "adopt" };
        Failure::new(exit, format!("cannot {verb} a public IP of Service {service}: {refused}"))
    })?;
    let document = AdoptionDocument::of(&found, world, handover);
    match args.output {
        Format::Json => output::print_json(&document)?,
        Format::Text => output::print(&render(&document, Paint::choose(color)))?,
    }
    if args.dry_run {
        return Ok(Exit::Done);
    }
    if !args.yes && !asked(found.changes.len(), handover)? {
        return Err(Failure::new(Exit::Failed, "nothing was written: the answer was not \"yes\""));
    }
    // After the question, because a pause may begin while it waits for its answer.
    cluster::refuse_if_paused(&engine.client, &args.reading.lease_name.lease()).await?;
    let contract = Contract::for_policy(policy);
    for change in &found.changes {
        let Some(request) = put(contract, change) else { continue };
        let what = format!("PUT {}", change.target.short());
        carry_out(&engine.azure.sender, request).await.map_err(|error| {
            let text = format!("{what}: {error}. Run the same command again");
            Failure::new(Exit::Failed, text)
        })?;
        // A reader that is gone stops nothing.
        let _ = writeln!(io::stderr(), "{}", safe(&format!("{what}: done")));
    }
    Ok(Exit::Done)
}

fn asked(count: usize, handover: Handover) -> Result<bool, Failure> {
    let noun = if count == 1 { "this public IP" } else { "these public IPs" };
    let question = match handover {
        Handover::ToBallast => format!("Hand {noun} over to Ballast? Only \"yes\" does"),
        Handover::ToOperator => format!("Take {noun} back from Ballast? Only \"yes\" does"),
    };
    confirm::is_yes(&question, "Read what --dry-run prints, then give --yes")
}

/// Guarded by the ETag that was read: another client's edit meanwhile is not overwritten.
fn put(contract: Contract, change: &Change) -> Option<Request> {
    let Action::Put { after, .. } = &change.action else { return None };
    Some(Request {
        method: Method::Put,
        target: Target::Path(resource_path(contract, &change.target)),
        condition: change.guard.clone().map_or(Condition::None, Condition::Unchanged),
        body: Some(body::write_resource(after).into()),
        correlation: edge::random::uuid(),
    })
}

/// Sends a request and follows it to its end.
async fn carry_out(azure: &Sender, request: Request) -> Result<(), ArmError> {
    let mut operation = Operation::start(&request);
    let mut next = request;
    loop {
        let answer = azure.send(&next).await;
        next = match operation.advance(&answer) {
            Step::Done { .. } => return Ok(()),
            Step::Failed(error) => return Err(error),
            Step::ReadBack { request } => request,
            Step::Poll { request, after_ms } => {
                tokio::time::sleep(Duration::from_millis(after_ms)).await;
                request
            }
        };
    }
}
