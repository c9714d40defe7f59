//! `ballast node-agent`.

use crate::agent::{self, ProxyUrl, Settings};
use crate::cluster::{self, ClusterArgs};
use crate::command::run::Lines;
use crate::exit::{Exit, Failure, Outcome};
use crate::lease::seconds;
use crate::signal;
use edge::clock::Clock;
use edge::kubernetes::ConnectFrom;
use edge::log::{self, LogFormat};
use health::object::NAMESPACE;
use model::NodeName;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Arguments of `node-agent`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Which cluster; without --kubeconfig, that of KUBECONFIG, else the one whose pod this is.
    #[command(flatten)]
    pub cluster: ClusterArgs,
    /// Name of the node on which the agent runs; required unless --check-ready is given
    #[arg(long, value_name = "NAME", required_unless_present = "check_ready")]
    pub node_name: Option<String>,
    /// Answer probes on this address; the port is healthCheckAgentPort of the cloud config
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "0.0.0.0:10272")]
    pub listen: SocketAddr,
    /// Health URL of the service proxy, or `none` to leave the proxy unchecked
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:10256/healthz")]
    pub proxy_health: String,
    /// Interval between checks of the service proxy, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    pub proxy_interval: u64,
    /// Namespace of the agents' Leases and of the ConfigMap `ballast-majority`; the same as `run
    /// --agent-namespace`
    #[arg(long, value_name = "NAMESPACE", default_value = NAMESPACE)]
    pub namespace: String,
    /// Remove this file at the start, and create it when the port is open
    #[arg(long, value_name = "FILE")]
    pub ready_file: Option<PathBuf>,
    /// Exit with 0 if the agent with this --ready-file has opened its port, else with 1; start no
    /// agent
    #[arg(long, value_name = "FILE", exclusive = true)]
    pub check_ready: Option<PathBuf>,
    /// Log level: error, warn, info, debug, trace, or target=level, separated by commas
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    pub log_level: String,
    /// Log format
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text")]
    pub log_format: Lines,
}

/// Serves the health of Services on one node until a signal.
///
/// # Errors
/// Wrong flags, no cluster, a port in use. An API server that does not answer is waited for.
pub async fn run(args: Args) -> Outcome {
    if let Some(file) = &args.check_ready {
        return agent::check_ready(file);
    }
    let stop = signal::stop();
    let format = match args.log_format {
        Lines::Text => LogFormat::Text,
        Lines::Json => LogFormat::Json,
    };
    log::start(format, &args.log_level).map_err(|e| Failure::new(Exit::Usage, e))?;
    let proxy = match args.proxy_health.as_str() {
        "none" => None,
        url => Some(url.parse::<ProxyUrl>().map_err(|why| {
            let text = format!("--proxy-health: {why} (got {url:?})");
            Failure::new(Exit::Usage, text)
        })?),
    };
    let client = cluster::client(&args.cluster.origin(ConnectFrom::Service)).await?;
    let settings = Settings {
        // The command line has it wherever there is no --check-ready.
        node: NodeName::new(args.node_name.unwrap_or_default()),
        namespace: args.namespace,
        proxy,
        interval: Duration::from_millis(args.proxy_interval.max(10)),
        listen: args.listen,
        ready_file: args.ready_file,
    };
    agent::run(client, settings, Clock::start(), stop).await?;
    tracing::info!("stopped");
    Ok(Exit::Done)
}
