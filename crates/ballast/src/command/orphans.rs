//! `ballast orphans`.

use crate::cluster;
use crate::command::source::{SourceArgs, connect_and_read};
use crate::confirm;
use crate::engine::{Engine, options};
use crate::exit::{Exit, Failure, Outcome};
use crate::lease::LeaseArgs;
use crate::listing::{kinds, unlisted};
use crate::output::{self, ColorChoice, Format, Paint};
use crate::render::orphans::{OrphansDocument, render};
use crate::signal;
use control::{Controller, Effect, Event, NoticeKind};
use edge::runner::Step;
use explain::orphans::{Origin, Orphans, find};
use model::Policy;
use std::collections::BTreeSet;
use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Arguments of `orphans`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Where to look.
    #[command(flatten)]
    pub source: SourceArgs,
    /// Delete the listed resources, after a confirmation
    #[arg(long, conflicts_with_all = ["files", "as_if", "as_if_deleted"])]
    pub delete: bool,
    /// With --delete: skip the confirmation
    #[arg(long, requires = "delete")]
    pub yes: bool,
    /// With --delete: the lease, so that nobody else writes meanwhile.
    #[command(flatten)]
    pub lease: LeaseArgs,
    /// With --delete: time limit, in seconds; what is deleted by then stays deleted
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    pub limit: u64,
    /// Output format
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    pub output: Format,
}

/// Lists what belongs to nothing; deletes it if told to.
///
/// # Errors
/// The input cannot be used, the cluster or Azure cannot be read, or something is left over.
pub async fn run(args: Args, color: ColorChoice) -> Outcome {
    let paint = Paint::choose(color);
    if !args.delete {
        let source = args.source.read().await?;
        let found = find(&source.world, &source.policy);
        show(&found, &source.policy, args.output, paint)?;
        return Ok(if found.list.is_empty() { Exit::Done } else { Exit::Changes });
    }
    let reading = args.source.reading.reading();
    let (cluster, config) = (&args.source.cluster, &args.source.config);
    let (reader, engine) = connect_and_read(cluster, config, &reading).await?;
    let policy = reader.policy().clone();
    let found = find(reader.world(), &policy);
    show(&found, &policy, args.output, paint)?;
    if found.list.is_empty() {
        return Ok(Exit::Done);
    }
    if found.origin == Origin::OtherLayout {
        let text = "nothing was deleted: these are the other layout's. Delete their Services under \
                    the former cloud config, or these resources in Azure";
        return Err(Failure::new(Exit::Failed, text));
    }
    if found.pending > 0 {
        let text = format!(
            "nothing was deleted: other changes are due in Azure ({}), which `ballast plan` shows. \
             Let the controller finish them first",
            found.pending
        );
        return Err(Failure::new(Exit::Failed, text));
    }
    if !args.yes && !asked(found.list.len())? {
        return Err(Failure::new(Exit::Failed, "nothing was deleted: the answer was not \"yes\""));
    }
    delete(&args, &engine, policy, &reading.classes, found.names).await
}

fn show(found: &Orphans, policy: &Policy, format: Format, paint: Paint) -> Result<(), Failure> {
    let document = OrphansDocument::of(found, policy);
    match format {
        Format::Json => output::print_json(&document),
        Format::Text => output::print(&render(&document, paint)),
    }
}

/// Asks whether to delete.
fn asked(count: usize) -> Result<bool, Failure> {
    let question = format!("Delete these {count} from Azure? Only \"yes\" deletes");
    confirm::is_yes(&question, "Read the list, then give --yes")
}

/// The controller, until nothing is left over.
struct Sweeper {
    controller: Controller,
    done: CancellationToken,
}

impl Sweeper {
    fn is_done(&self) -> bool {
        let world = self.controller.world();
        world.is_complete(&kinds(self.controller.policy())) && self.controller.is_settled()
    }

    fn waits(&self) -> Vec<String> {
        let now_ms = self.controller.now_ms();
        let mut waits = unlisted(&self.controller);
        waits.extend(self.controller.report().in_the_way().map(|obstacle| obstacle.text(now_ms)));
        if waits.is_empty() {
            waits.push(
                "the lease may be another process's: stop the controller that writes now"
                    .to_owned(),
            );
        }
        waits
    }
}

impl Step for Sweeper {
    fn step(&mut self, events: Vec<Event>, now_ms: u64) -> Vec<Effect> {
        let effects = self.controller.step(events, now_ms);
        for effect in &effects {
            if let Effect::Say(notice) = effect
                && matches!(notice.kind, NoticeKind::Answered | NoticeKind::Failed)
            {
                // A reader that is gone stops nothing.
                let _ = writeln!(io::stderr(), "  {}", notice.text);
            }
        }
        if self.is_done() {
            self.done.cancel();
        }
        effects
    }

    fn next_wake_ms(&self) -> Option<u64> {
        self.controller.next_wake_ms()
    }
}

async fn delete(
    args: &Args,
    engine: &Engine,
    policy: Policy,
    classes: &BTreeSet<String>,
    names: BTreeSet<Arc<str>>,
) -> Outcome {
    let mut options = options(classes.clone());
    options.cluster_uid = cluster::uid(&engine.client).await?;
    options.ledger = args.source.reading.lease_name.ledger();
    cluster::refuse_if_paused(&engine.client, &args.source.reading.lease_name.lease()).await?;
    let right = args.lease.right(&args.source.reading.lease_name);
    options.leadership = right.leadership();
    let done = signal::stop().child_token();
    let mut controller = Controller::new(policy.clone(), options);
    controller.abandon(names);
    let sweeper = Sweeper { controller, done: done.clone() };
    let ended = done.clone();
    let limit = Duration::from_secs(args.limit);
    tokio::spawn(async move {
        tokio::select! {
            () = ended.cancelled() => {}
            () = tokio::time::sleep(limit) => ended.cancel(),
        }
    });
    let sweeper = engine.drive(sweeper, &policy, right, classes, done).await?;
    let left = find(sweeper.controller.world(), &policy).list;
    if sweeper.is_done() && left.is_empty() {
        let writes = sweeper.controller.counts().writes;
        let _ = writeln!(io::stderr(), "Nothing is left over: {writes} Azure writes.");
        return Ok(Exit::Done);
    }
    let lines: String = sweeper.waits().iter().map(|why| format!("\n  {why}")).collect();
    let text = format!("{} are left over:{lines}\nRun the same command again", left.len());
    Err(Failure::new(Exit::Failed, text))
}
