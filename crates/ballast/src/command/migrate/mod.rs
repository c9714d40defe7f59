//! `ballast migrate`.

mod document;
mod journal;
mod mover;
mod outbound;

use crate::cloud_config::CloudConfigArgs;
use crate::cluster::{self, ClusterArgs};
use crate::command::source::{Files, connect_and_read, offline};
use crate::confirm;
use crate::engine::options;
use crate::exit::{Exit, Failure, Outcome};
use crate::lease::LeaseArgs;
use crate::manifest;
use crate::once::ReadingArgs;
use crate::output::{self, ColorChoice, Format, Paint};
use crate::signal;
use clap::ValueEnum;
use control::Controller;
use document::{MigrationDocument, document, render};
use explain::forecast::forecast;
use journal::Journal;
use model::Policy;
use model::policy::{KeepBoth, Layout};
use mover::Mover;
use serde_json::{Map, Value, json};
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Arguments of `migrate`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Target of the migration, instead of the one in the cloud config (repeatable)
    #[arg(long, value_enum, value_name = "WHAT")]
    pub to: Vec<To>,
    /// To or from container load balancers: how long each Service keeps both addresses, as in 10m;
    /// with `untilTold`, until a later run of this command, or the cloud config's `keepBoth`, gives
    /// a time [default: `keepBoth`, else 1h]
    #[arg(long, value_name = "TIME")]
    pub keep_both: Option<String>,
    /// To or from container load balancers: move only this Service (repeatable)
    #[arg(long, value_name = "NAMESPACE/NAME")]
    pub service: Vec<String>,
    /// To or from container load balancers: move only Services of this namespace (repeatable)
    #[arg(long, value_name = "NAMESPACE")]
    pub namespace: Vec<String>,
    /// Show each step, what is interrupted and what is kept; write nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Skip the confirmation before the first write
    #[arg(long, conflicts_with = "dry_run")]
    pub yes: bool,
    /// Record each write in this file, with the resource before the write and the result
    #[arg(long, value_name = "FILE", default_value = "ballast-migration.jsonl")]
    pub journal: PathBuf,
    /// Which cluster.
    #[command(flatten)]
    pub cluster: ClusterArgs,
    /// Which Azure, and where to.
    #[command(flatten)]
    pub config: CloudConfigArgs,
    /// The lease: nobody else may write meanwhile.
    #[command(flatten)]
    pub lease: LeaseArgs,
    /// With --dry-run: read these manifests instead of a cluster (YAML or JSON; files, directories,
    /// or - for standard input)
    #[arg(short = 'f', long = "filename", value_name = "PATH")]
    #[arg(conflicts_with_all = ["kubeconfig", "context"], requires = "dry_run")]
    pub files: Vec<PathBuf>,
    /// With -f: read the Azure resources from this file, a JSON list
    #[arg(long, value_name = "FILE", requires = "files")]
    pub azure: Option<PathBuf>,
    /// Output format of the steps
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    pub output: Format,
    /// What is read, and for how long.
    #[command(flatten)]
    pub reading: ReadingArgs,
    /// Time limit for the migration, in seconds; at the limit the command exits, and what is done
    /// stays [default: 3600, plus the time for which Services have two addresses]
    #[arg(long, value_name = "SECONDS")]
    pub limit: Option<u64>,
}

/// Where a migration leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum To {
    /// Standard load balancers over nodes, from Basic or from container load balancers
    Standard,
    /// Container load balancers: one per Service, with Pods as backends
    ContainerLoadBalancer,
    /// Pools of node addresses
    NodeIp,
    /// Pools of the nodes' NICs
    Nic,
    /// One public and one internal load balancer
    Single,
    /// The load balancers of multipleStandardLoadBalancerConfigurations in the cloud config
    Multiple,
}

impl To {
    /// The keys of the cloud config that say so.
    fn keys(self) -> Map<String, Value> {
        let keys = match self {
            Self::Standard => json!({"loadBalancerSku": "standard"}),
            Self::ContainerLoadBalancer => json!({"loadBalancerSku": "service"}),
            Self::NodeIp => json!({"loadBalancerBackendPoolConfigurationType": "nodeIP"}),
            Self::Nic => json!({"loadBalancerBackendPoolConfigurationType": "nodeIPConfiguration"}),
            Self::Single => json!({"multipleStandardLoadBalancerConfigurations": [],
                "enableMultipleStandardLoadBalancers": false}),
            Self::Multiple => json!({}),
        };
        keys.as_object().cloned().unwrap_or_default()
    }
}

impl Args {
    /// The keys of the cloud config that say how Services move.
    fn moves(&self) -> Map<String, Value> {
        let mut keys = Map::new();
        if let Some(time) = &self.keep_both {
            keys.insert("keepBoth".to_owned(), json!(time));
        }
        for (key, list) in [("services", &self.service), ("namespaces", &self.namespace)] {
            if !list.is_empty() {
                keys.insert(key.to_owned(), json!(list));
            }
        }
        let moves = Map::from_iter([("layoutMigration".to_owned(), Value::Object(keys.clone()))]);
        if keys.is_empty() { Map::new() } else { moves }
    }

    fn limit(&self, policy: &Policy) -> Duration {
        let both = policy.migration.as_ref().map_or(0, |migration| match migration.keep_both {
            KeepBoth::For { seconds } => u64::from(seconds) + u64::from(migration.drain_s),
            KeepBoth::UntilTold => 0,
        });
        Duration::from_secs(self.limit.unwrap_or(3_600 + both))
    }
}

/// Shows a migration, asks, and carries it out.
///
/// # Errors
/// The input cannot be used, the cluster or Azure cannot be read, the migration cannot be begun or
/// did not come to its end.
pub async fn run(mut args: Args, color: ColorChoice) -> Outcome {
    for to in args.to.clone() {
        args.config.overrides.extend(to.keys());
    }
    args.config.overrides.extend(args.moves());
    let reading = args.reading.reading();
    if !args.files.is_empty() {
        let manifests = manifest::read(&args.files)?;
        let files = Files { manifests: &manifests, azure: args.azure.as_deref() };
        let (world, policy) = offline(&files, &args.config, &reading.classes).await?;
        check(&args, &policy)?;
        let found = document(&forecast(&world, &policy), &world, &policy);
        show(&found, args.output, color)?;
        return Ok(if found.obstacles.is_empty() { Exit::Done } else { Exit::Failed });
    }
    let (controller, engine) = connect_and_read(&args.cluster, &args.config, &reading).await?;
    let policy = controller.policy().clone();
    check(&args, &policy)?;
    let found = document(&forecast(controller.world(), &policy), controller.world(), &policy);
    show(&found, args.output, color)?;
    if found.is_empty() || args.dry_run {
        return Ok(if found.obstacles.is_empty() { Exit::Done } else { Exit::Failed });
    }
    if !found.obstacles.is_empty() {
        let why = "the migration is not begun: see what stands in its way above";
        return Err(Failure::new(Exit::Failed, why));
    }
    cluster::refuse_if_paused(&engine.client, &args.reading.lease_name.lease()).await?;
    let mut journal = Journal::open(&args.journal, engine.clock)?;
    if let Some(before) = journal.unfinished() {
        say(&format!("{before}\n"))?;
    }
    if !args.yes && !asked(found.calls)? {
        return Err(Failure::new(Exit::Failed, "nothing was written: the answer was not \"yes\""));
    }
    journal.begin(&found.to, found.calls)?;
    let mut options = options(reading.classes.clone());
    options.cluster_uid = cluster::uid(&engine.client).await?;
    options.ledger = reading.ledger;
    let right = args.lease.right(&args.reading.lease_name);
    options.leadership = right.leadership();
    let done = signal::stop().child_token();
    let mover = Mover::new(Controller::new(policy.clone(), options), journal, done.clone());
    end_after(args.limit(&policy), &done);
    let mover = engine.drive(mover, &policy, right, &reading.classes, done).await?;
    finish(mover, &args)
}

/// `--to multiple` names no load balancers: the cloud config has to.
fn check(args: &Args, policy: &Policy) -> Result<(), Failure> {
    if args.to.contains(&To::Multiple) && !matches!(policy.layout, Layout::Several(_)) {
        let text = "--to multiple: the cloud config names no load balancers. Put them under \
                    multipleStandardLoadBalancerConfigurations (docs/migrations.md has an example)";
        return Err(Failure::new(Exit::Usage, text));
    }
    Ok(())
}

fn show(found: &MigrationDocument, format: Format, color: ColorChoice) -> Result<(), Failure> {
    match format {
        Format::Json => output::print_json(found),
        Format::Text => output::print(&render(found, Paint::choose(color))),
    }
}

fn say(text: &str) -> Result<(), Failure> {
    io::stderr()
        .write_all(text.as_bytes())
        .map_err(|e| Failure::new(Exit::Blocked, format!("cannot write to standard error: {e}")))
}

/// Asks whether to begin.
fn asked(calls: usize) -> Result<bool, Failure> {
    let word = if calls == 1 { "write" } else { "writes" };
    let question = format!("Begin with {calls} {word} to Azure? Only \"yes\" begins");
    confirm::is_yes(&question, "Read what --dry-run prints, then give --yes")
}

fn end_after(limit: Duration, done: &CancellationToken) {
    let done = done.clone();
    tokio::spawn(async move {
        tokio::select! {
            () = done.cancelled() => {}
            () = tokio::time::sleep(limit) => done.cancel(),
        }
    });
}

fn finish(mut mover: Mover, args: &Args) -> Outcome {
    let shown = args.journal.display();
    let outcome = if mover.is_done() { "done" } else { "stopped" };
    mover.journal.end(outcome, mover.writes())?;
    if let Some(why) = mover.broken() {
        return Err(Failure::new(Exit::Blocked, why));
    }
    if mover.is_done() {
        let writes = mover.writes();
        say(&format!("Done with {writes} Azure writes. The journal is {shown}.\n"))?;
        let completed = args.config.completed.get().filter(|keys| !keys.is_empty());
        if let Some(keys) = completed.filter(|_| !args.to.is_empty()) {
            let keys = Value::Object(keys.clone());
            say(&format!("Put this into the cloud config before `ballast run` starts: {keys}\n"))?;
        }
        return Ok(Exit::Done);
    }
    let lines: String = mover.waits().iter().map(|why| format!("\n  {why}")).collect();
    let text = format!(
        "the migration is not at its end:{lines}\nRun the same command again to go on; the \
         journal is {shown}"
    );
    Err(Failure::new(Exit::Failed, text))
}
