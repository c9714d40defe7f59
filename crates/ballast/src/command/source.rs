//! What a command that only looks plans on: a cluster and its Azure, or files.

use super::service::NAMESPACE;
use crate::as_if::{self, AsIf, Asked};
use crate::azure::AzureConnection;
use crate::cloud_config::CloudConfigArgs;
use crate::cluster::{self, ClusterArgs};
use crate::engine::Engine;
use crate::estate::{self, Estate};
use crate::exit::Failure;
use crate::manifest::{self, Manifest};
use crate::once::{self, Reading, ReadingArgs};
use control::Controller;
use edge::clock::Clock;
use edge::kubernetes::ConnectFrom;
use edge::notice::NoticeSink;
use model::{Obstacle, Pause, Policy, World};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Where to look.
#[derive(Debug, clap::Args)]
pub struct SourceArgs {
    /// Which cluster.
    #[command(flatten)]
    pub cluster: ClusterArgs,
    /// Which Azure.
    #[command(flatten)]
    pub config: CloudConfigArgs,
    /// Read these manifests instead of a cluster (YAML or JSON; files, directories, or - for
    /// standard input)
    #[arg(short = 'f', long = "filename", value_name = "PATH")]
    #[arg(conflicts_with_all = ["kubeconfig", "context"])]
    pub files: Vec<PathBuf>,
    /// With -f: read the Azure resources from this file, a JSON list; without it, assume only those
    /// that the cloud config names
    #[arg(long, value_name = "FILE", requires = "files")]
    pub azure: Option<PathBuf>,
    /// Answer as if these manifests of Services had been applied to the cluster (files,
    /// directories, or - for standard input)
    #[arg(long, value_name = "PATH", conflicts_with = "files")]
    pub as_if: Vec<PathBuf>,
    /// Answer as if this Service had been deleted from the cluster; where NAME has no namespace,
    /// that of the kubeconfig's context (repeatable)
    #[arg(long, value_name = "[NAMESPACE/]NAME", conflicts_with = "files")]
    pub as_if_deleted: Vec<String>,
    /// What is read, and for how long.
    #[command(flatten)]
    pub reading: ReadingArgs,
}

/// What is there.
#[derive(Debug)]
pub struct Source {
    /// Everything known.
    pub world: World,
    /// The cloud config.
    pub policy: Policy,
    /// The manifests that it was made from, or that were laid over it.
    pub manifests: Vec<Manifest>,
    /// Reads that failed.
    pub obstacles: Vec<Obstacle>,
    /// The namespace of names without one: that of the kubeconfig's context.
    pub namespace: String,
    /// What an operator has paused, where a cluster was read.
    pub pause: Option<Pause>,
}

impl SourceArgs {
    /// What is taken for granted of Azure where neither it nor a file says what there is.
    #[must_use]
    pub fn assumption(&self) -> Option<&'static str> {
        let assumed = !self.files.is_empty() && self.azure.is_none();
        assumed.then_some(
            "Azure is not read: there is nothing but what the cloud config names, and its subnets \
             take every address. --azure FILE says what there is.",
        )
    }

    /// Reads everything that planning needs.
    ///
    /// # Errors
    /// The input cannot be used, or the cluster or Azure cannot be read.
    pub async fn read(&self) -> Result<Source, Failure> {
        let reading = self.reading.reading();
        if self.files.is_empty() {
            return self.read_live(&reading).await;
        }
        let manifests = manifest::read(&self.files)?;
        let files = Files { manifests: &manifests, azure: self.azure.as_deref() };
        let (world, policy) = offline(&files, &self.config, &reading.classes).await?;
        let (namespace, obstacles) = (NAMESPACE.to_owned(), Vec::new());
        Ok(Source { world, policy, manifests, obstacles, namespace, pause: None })
    }

    async fn read_live(&self, reading: &Reading) -> Result<Source, Failure> {
        let (engine, policy) = connect(&self.cluster, &self.config).await?;
        let supposed = Asked { manifests: &self.as_if, deleted: &self.as_if_deleted };
        let AsIf { facts, manifests } =
            as_if::read(supposed, &engine.client, &policy, &reading.classes).await?;
        let controller = once::read(&engine, policy, reading, facts).await?;
        let (world, policy) = (controller.world().clone(), controller.policy().clone());
        let obstacles = controller.obstacles().to_vec();
        let lease = self.reading.lease_name.lease();
        let pause = cluster::pause(&engine.client, &lease).await;
        let namespace = engine.client.default_namespace().to_owned();
        Ok(Source { world, policy, manifests, obstacles, namespace, pause })
    }
}

/// A cluster and an Azure in files.
#[derive(Clone, Copy, Debug)]
pub struct Files<'a> {
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
    files: &Files<'_>,
    config: &CloudConfigArgs,
    classes: &BTreeSet<String>,
) -> Result<(World, Policy), Failure> {
    let config = config.load(None).await?;
    warn(&config.warnings);
    let policy = config.policy;
    let kubernetes = manifest::cluster(files.manifests, &policy, classes)?;
    let mut world = World { kubernetes, ..World::default() };
    let mut estate = match files.azure {
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
    reading: &Reading,
) -> Result<(Controller, Clock), Failure> {
    let (controller, engine) = connect_and_read(cluster, config, reading).await?;
    Ok((controller, engine.clock))
}

/// Reads a cluster and its Azure once, and keeps the connections.
///
/// # Errors
/// As [`read_once`].
pub async fn connect_and_read(
    cluster: &ClusterArgs,
    config: &CloudConfigArgs,
    reading: &Reading,
) -> Result<(Controller, Engine), Failure> {
    let (engine, policy) = connect(cluster, config).await?;
    let controller = once::read(&engine, policy, reading, Vec::new()).await?;
    Ok((controller, engine))
}

/// Connects to a cluster and its Azure.
async fn connect(
    cluster: &ClusterArgs,
    config: &CloudConfigArgs,
) -> Result<(Engine, Policy), Failure> {
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
    Ok((engine, config.policy))
}

fn warn(warnings: &[String]) {
    for warning in warnings {
        eprintln!("warning: cloud config: {}", edge::terminal::safe(&warning.to_string()));
    }
}
