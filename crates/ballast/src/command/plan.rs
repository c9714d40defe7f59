//! `ballast plan`.

use crate::azure::AzureConnection;
use crate::cloud_config::CloudConfigArgs;
use crate::cluster::{self, ClusterArgs};
use crate::engine::Engine;
use crate::estate::{self, Estate};
use crate::exit::{Exit, Failure, Outcome};
use crate::manifest::{self, Manifest};
use crate::once;
use crate::output::{self, ColorChoice, Format, Paint};
use crate::render::plan::{document, render, render_by_service};
use control::Controller;
use edge::clock::Clock;
use edge::kubernetes::ConnectFrom;
use edge::notice::NoticeSink;
use model::{Policy, World};
use plan::forecast::forecast;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Arguments of `plan`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Which cluster.
    #[command(flatten)]
    pub cluster: ClusterArgs,
    /// Which Azure.
    #[command(flatten)]
    pub config: CloudConfigArgs,
    /// Plan for manifests (YAML or JSON; files, folders, or - for standard input) instead of a
    /// cluster
    #[arg(short = 'f', long = "filename", value_name = "PATH", conflicts_with = "kubeconfig")]
    pub files: Vec<PathBuf>,
    /// With -f: what there is in Azure, a JSON list of resources; without it there is nothing but
    /// what the cloud config names
    #[arg(long, value_name = "FILE", requires = "files")]
    pub azure: Option<PathBuf>,
    /// How to print
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    pub output: Format,
    /// Exit with 2 where there are changes
    #[arg(long)]
    pub exit_code: bool,
    /// Say for each Service whether anything would change, and what
    #[arg(long)]
    pub against_existing: bool,
    /// A value of spec.loadBalancerClass that is ours beside none (repeatable)
    #[arg(long, value_name = "CLASS")]
    pub load_balancer_class: Vec<String>,
    /// How long reading may take, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub timeout: u64,
}

/// Plans and prints; writes nothing.
///
/// # Errors
/// The input cannot be used, or the cluster or Azure cannot be read.
pub async fn run(args: Args, color: ColorChoice) -> Outcome {
    let classes: BTreeSet<String> = args.load_balancer_class.iter().cloned().collect();
    let mut notes = Vec::new();
    let (world, policy) = if args.files.is_empty() {
        let limit = Duration::from_secs(args.timeout);
        let (controller, _) = read_once(&args.cluster, &args.config, &classes, limit).await?;
        (controller.world().clone(), controller.policy().clone())
    } else {
        let manifests = manifest::read(&args.files)?;
        notes.extend(manifest::stand_ins(&manifests));
        let sources = Sources { manifests: &manifests, azure: args.azure.as_deref() };
        offline(&sources, &args.config, &classes).await?
    };
    let mut plan = document(&forecast(&world, &policy), &world);
    plan.notes = notes;
    match args.output {
        Format::Json => output::print_json(&plan)?,
        Format::Text => {
            let paint = Paint::choose(color);
            let text = match args.against_existing {
                true => render_by_service(&plan, paint),
                false => render(&plan, paint),
            };
            output::print(&text)?;
        }
    }
    Ok(if args.exit_code && !plan.is_empty() { Exit::Changes } else { Exit::Done })
}

/// A cluster and an Azure in files.
#[derive(Clone, Copy, Debug)]
pub struct Sources<'a> {
    /// Manifests.
    pub manifests: &'a [Manifest],
    /// Resources.
    pub azure: Option<&'a Path>,
}

/// Reads files in place of a cluster and an Azure.
///
/// # Errors
/// They cannot be used.
pub async fn offline(
    sources: &Sources<'_>,
    config: &CloudConfigArgs,
    classes: &BTreeSet<String>,
) -> Result<(World, Policy), Failure> {
    let config = config.load(None).await?;
    warn(&config.warnings);
    let policy = config.policy;
    let mut world = World {
        kubernetes: manifest::cluster(sources.manifests, &policy, classes)?,
        ..World::default()
    };
    let mut estate = match sources.azure {
        Some(path) => Estate::of(estate::read_snapshot(path)?, &policy),
        None => Estate::assumed(&policy),
    };
    estate.fill(&mut world, &policy);
    Ok((world, policy))
}

/// Reads a cluster and its Azure once.
///
/// # Errors
/// The config is wrong, or the cluster or Azure cannot be read.
pub async fn read_once(
    cluster: &ClusterArgs,
    config: &CloudConfigArgs,
    classes: &BTreeSet<String>,
    limit: Duration,
) -> Result<(Controller, Clock), Failure> {
    let (controller, engine) = connect_and_read(cluster, config, classes, limit).await?;
    Ok((controller, engine.clock))
}

/// Reads a cluster and its Azure once, and keeps the connections.
///
/// # Errors
/// As [`read_once`].
pub async fn connect_and_read(
    cluster: &ClusterArgs,
    config: &CloudConfigArgs,
    classes: &BTreeSet<String>,
    limit: Duration,
) -> Result<(Controller, Engine), Failure> {
    let clock = Clock::start();
    // A mistake in the file is told before anybody is asked for anything.
    let early = match config.is_in_cluster() {
        true => None,
        false => Some(config.load(None).await?),
    };
    let client = cluster::client(&cluster.origin(ConnectFrom::Environment)).await?;
    cluster::probe(&client).await?;
    let config = match early {
        Some(config) => config,
        None => config.load(Some(&client)).await?,
    };
    warn(&config.warnings);
    let azure = AzureConnection::open(&config.settings, clock).await?;
    azure.check_credential().await?;
    let engine = Engine { clock, client, azure, notices: NoticeSink::default() };
    let controller = once::read(&engine, config.policy, classes, limit).await?;
    Ok((controller, engine))
}

fn warn(warnings: &[String]) {
    for warning in warnings {
        eprintln!("warning: cloud config: {warning}");
    }
}
