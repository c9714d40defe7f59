//! `ballast run`.

use crate::azure::AzureConnection;
use crate::backend_health;
use crate::cloud_config::CloudConfigArgs;
use crate::cluster::{self, ClusterArgs};
use crate::command::serving::ServingArgs;
use crate::command::starting::{Start, log_summary};
use crate::engine::{Engine, options};
use crate::exit::{Exit, Failure, Outcome};
use crate::history::file::HistoryFile;
use crate::history::{Past, portal};
use crate::lease::{LeaseArgs, LeaseName, seconds};
use crate::majority;
use crate::pages::Pages;
use crate::shared::{SharedController, Turns};
use crate::signal;
use clap::ValueEnum;
use control::Controller;
use control::budget::Limits;
use edge::clock::Clock;
use edge::kubernetes::ConnectFrom;
use edge::log::{self, LogFormat};
use edge::notice::NoticeSink;
use edge::vital::Vital;
use health::object::NAMESPACE;
use kube::Client;
use model::Policy;
use model::policy::HealthCheck;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The longest pause between two tries to start.
const LONGEST_PAUSE_S: u64 = 30;

/// Arguments of `run`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Which cluster; without --kubeconfig, that of KUBECONFIG, else the one whose pod this is.
    #[command(flatten)]
    pub cluster: ClusterArgs,
    /// Which Azure.
    #[command(flatten)]
    pub config: CloudConfigArgs,
    /// The lease.
    #[command(flatten)]
    pub lease: LeaseArgs,
    /// Its name.
    #[command(flatten)]
    pub lease_name: LeaseName,
    /// Where health, metrics, status and the console are served.
    #[command(flatten)]
    pub serving: ServingArgs,
    /// Log level: error, warn, info, debug, trace, or target=level, separated by commas
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    pub log_level: String,
    /// Log format
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text")]
    pub log_format: Lines,
    /// Send traces to this OpenTelemetry collector, as OTLP over HTTP, as in http://127.0.0.1:4318
    #[cfg(feature = "otel")]
    #[arg(long, value_name = "URL")]
    pub otlp_endpoint: Option<String>,
    /// Also manage Services of this loadBalancerClass (repeatable)
    #[arg(long, value_name = "CLASS")]
    pub load_balancer_class: Vec<String>,
    /// Interval at which Azure is read again to detect drift, in seconds
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    #[arg(default_value_t = control::Options::default().check_interval_ms / 1_000)]
    pub check_interval: u64,
    /// Time after which a Pod's readiness gate is set to True although Azure does not list the Pod
    /// yet, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = seconds)]
    pub readiness_gate_timeout: u64,
    /// Keep the last writes to Azure in this file, for `ballast history` after a restart
    #[arg(long, value_name = "FILE")]
    pub history_file: Option<PathBuf>,
    /// Read from Azure Monitor which backends of each Service answer health probes, and show it in
    /// status, console, metrics and Events; needs the permission Microsoft.Insights/metrics/read
    #[arg(long)]
    pub backend_health: bool,
    /// With --backend-health: interval between reads, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 60, requires = "backend_health")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=300))]
    pub backend_health_interval: u64,
    /// With `healthCheck: agent` in the cloud config: namespace of the health agents' Leases and of
    /// the ConfigMap `ballast-majority`
    #[arg(long, value_name = "NAMESPACE", default_value = NAMESPACE)]
    pub agent_namespace: String,
    /// Call limits to assume until Azure's answers show what is left
    #[arg(long, value_enum, value_name = "LIMITS", default_value = "published")]
    pub azure_limits: AzureLimits,
}

/// What is believed of Azure's limits before Azure has said anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum AzureLimits {
    /// Azure's published limits.
    Published,
    /// No limits: for an emulator, or an Azure Stack without limits.
    Unknown,
}

impl From<AzureLimits> for Limits {
    fn from(limits: AzureLimits) -> Self {
        match limits {
            AzureLimits::Published => Self::Published,
            AzureLimits::Unknown => Self::Unknown,
        }
    }
}

/// How log lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Lines {
    /// For people.
    Text,
    /// One JSON object per line.
    Json,
}

/// Runs the controller until a signal.
///
/// # Errors
/// Wrong flags or config, a rejected credential, a port in use. What only has to be waited for
/// (the cluster, Azure) is waited for.
pub async fn run(args: Args) -> Outcome {
    let lines = args.log_format;
    let format = match lines {
        Lines::Text => LogFormat::Text,
        Lines::Json => LogFormat::Json,
    };
    log::start(format, &args.log_level).map_err(|e| Failure::new(Exit::Usage, e))?;
    let outcome = until_stopped(args).await;
    match outcome {
        Err(failure) if lines == Lines::Json => Err(logged(failure)),
        outcome => outcome,
    }
}

/// A reader of JSON lines gets the reason of the end as one of them, and nothing else.
fn logged(failure: Failure) -> Failure {
    tracing::error!(exit_code = failure.exit.code(), "{failure}");
    Failure::new(failure.exit, "")
}

async fn until_stopped(args: Args) -> Outcome {
    let stop = signal::stop();
    let clock = Clock::start();
    let pages = Pages::new(clock);
    args.serving.serve(&pages, &stop).await?;
    let Some(started) = start(&args, clock, &pages, &stop).await? else { return Ok(Exit::Done) };
    let classes: BTreeSet<String> = args.load_balancer_class.iter().cloned().collect();
    let right = args.lease.right(&args.lease_name);
    let summary = Start {
        lease: right.lease(),
        classes: &classes,
        check_interval_s: args.check_interval,
        cluster_uid: started.cluster_uid.as_deref(),
    };
    log_summary(&started.policy, &summary);
    let mut options = options(classes.clone());
    options.check_interval_ms = args.check_interval.saturating_mul(1_000);
    options.gate_timeout_ms = args.readiness_gate_timeout;
    options.limits = args.azure_limits.into();
    options.cluster_uid = started.cluster_uid;
    options.ledger = args.lease_name.ledger();
    options.leadership = right.leadership();
    let counted = counted(&args, &started.policy, &options.instance);
    let probed = probed(&args, &options.instance);
    let notices = NoticeSink::default();
    #[cfg(feature = "otel")]
    let traces = Traces::start(&args, &options.instance, &notices)?;
    let controller = SharedController::new(Controller::new(started.policy, options));
    let Started { client, azure, portal, .. } = started;
    let (file, earlier) = match args.history_file.as_deref().map(HistoryFile::open).transpose()? {
        Some((file, earlier)) => (Some(file), earlier),
        None => (None, Vec::new()),
    };
    pages.show(controller.clone(), &notices, Past { portal, earlier });
    let saved = CancellationToken::new();
    let saving = file.map(|f| tokio::spawn(f.follow(controller.clone(), portal, saved.clone())));
    let mut tasks = Vital::default();
    if let Some(counted) = counted {
        let (client, controller, stop) = (client.clone(), controller.clone(), stop.child_token());
        majority::follow(client, controller, counted, clock, stop, &mut tasks);
    }
    let engine = Engine { clock, client, azure, notices };
    if let Some(probed) = probed {
        let (engine, controller) = (engine.clone(), controller.clone());
        let following = backend_health::follow(engine, controller, probed, stop.clone());
        tasks.spawn("the reader of health probes", following);
    }
    let outcome = engine.run(controller, right, &classes, tasks, stop).await;
    saved.cancel();
    if let Some(saving) = saving {
        // What it could not write it has said.
        let _ = saving.await;
    }
    #[cfg(feature = "otel")]
    traces.end().await;
    outcome?;
    tracing::info!("stopped");
    Ok(Exit::Done)
}

/// How the reports of agents are counted, where there are agents.
fn counted(args: &Args, policy: &Policy, instance: &str) -> Option<majority::Settings> {
    let HealthCheck::Agent { majority_percent, .. } = policy.health_check else { return None };
    Some(majority::Settings {
        namespace: args.agent_namespace.clone(),
        share_percent: majority_percent,
        instance: instance.to_owned(),
        turns: if args.lease.leader_elect { Turns::Taken } else { Turns::Alone },
    })
}

/// How health probes are read, where they are.
fn probed(args: &Args, instance: &str) -> Option<backend_health::Settings> {
    args.backend_health.then(|| backend_health::Settings {
        pace: Duration::from_secs(args.backend_health_interval),
        instance: instance.to_owned(),
        turns: if args.lease.leader_elect { Turns::Taken } else { Turns::Alone },
    })
}

/// The task that sends traces, where they are wanted.
#[cfg(feature = "otel")]
struct Traces {
    task: Option<tokio::task::JoinHandle<()>>,
    stop: CancellationToken,
}

#[cfg(feature = "otel")]
impl Traces {
    fn start(args: &Args, instance: &str, notices: &NoticeSink) -> Result<Self, Failure> {
        let stop = CancellationToken::new();
        let Some(collector) = &args.otlp_endpoint else { return Ok(Self { task: None, stop }) };
        let web = edge::web::Web::new().map_err(|e| Failure::new(Exit::Blocked, e))?;
        let exporter = edge::otlp::Exporter::new(web, collector, instance)
            .map_err(|e| Failure::new(Exit::Usage, e))?;
        let task = tokio::spawn(exporter.run(notices.listen(), stop.clone()));
        Ok(Self { task: Some(task), stop })
    }

    /// Sends what is left; a collector that hangs has ten seconds.
    async fn end(self) {
        self.stop.cancel();
        if let Some(task) = self.task {
            // Traces that are lost are no reason to fail.
            let _ = task.await;
        }
    }
}

/// Why the process cannot start yet.
struct Halt {
    /// What cannot be done, without ids: everybody may read it.
    brief: &'static str,
    failure: Failure,
}

struct Started {
    policy: Policy,
    client: Client,
    azure: AzureConnection,
    portal: Option<&'static str>,
    cluster_uid: Option<Arc<str>>,
}

/// Connects; what cannot be reached yet is tried again. `None`: it was stopped meanwhile.
async fn start(
    args: &Args,
    clock: Clock,
    pages: &Pages,
    stop: &CancellationToken,
) -> Result<Option<Started>, Failure> {
    let mut pause_s = 1;
    loop {
        let outcome = tokio::select! {
            () = stop.cancelled() => return Ok(None),
            outcome = connect(args, clock) => outcome,
        };
        match outcome {
            Ok(started) => return Ok(Some(started)),
            Err(Halt { brief, failure }) if failure.exit == Exit::Unavailable => {
                // Who reads the log may look at /readyz at once.
                pages.say_starting(brief, &failure.text);
                tracing::warn!("not started yet, next try in {pause_s} s: {failure}");
            }
            Err(Halt { failure, .. }) => return Err(failure),
        }
        tokio::select! {
            () = stop.cancelled() => return Ok(None),
            () = tokio::time::sleep(Duration::from_secs(pause_s)) => {}
        }
        pause_s = (pause_s * 2).min(LONGEST_PAUSE_S);
    }
}

async fn connect(args: &Args, clock: Clock) -> Result<Started, Halt> {
    let halt = |brief| move |failure| Halt { brief, failure };
    let no_config = halt("the cloud config cannot be read");
    let no_cluster = halt("the Kubernetes API cannot be reached");
    // The config first: a mistake in it is told even where there is no cluster.
    let early = match args.config.is_in_cluster() {
        true => None,
        false => Some(args.config.load(None).await.map_err(no_config)?),
    };
    let origin = args.cluster.origin(ConnectFrom::Service);
    let client = cluster::client(&origin).await.map_err(no_cluster)?;
    let config = match early {
        Some(config) => config,
        None => args.config.load(Some(&client)).await.map_err(no_config)?,
    };
    for warning in &config.warnings {
        tracing::warn!("cloud config: {warning}");
    }
    let azure = AzureConnection::open(&config.settings, clock).await;
    let azure = azure.map_err(halt("the connection to Azure cannot be set up"))?;
    azure.check_credential().await.map_err(halt("signing in to Azure failed"))?;
    cluster::probe(&client).await.map_err(no_cluster)?;
    let portal = portal(&config.settings);
    let cluster_uid = cluster::uid(&client).await.map_err(no_cluster)?;
    Ok(Started { policy: config.policy, client, azure, portal, cluster_uid })
}
