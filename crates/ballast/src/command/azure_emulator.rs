//! `ballast azure-emulator`.

use crate::command::data_path::DataPathArgs;
use crate::command::listening;
use crate::emulated::Emulated;
use crate::exit::{Exit, Failure, Outcome};
use crate::output::Format;
use crate::render::azure_check::render_differences;
use crate::{estate, output, signal};
use azure_emulator::{Azure, Options, SampleGateway, SampleOptions, Switch};
use azure_emulator::{sample_cloud_config, sample_estate};
use serde_json::Value;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// Arguments of `azure-emulator`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Listen on this address, with plain HTTP and without authentication: keep it on loopback
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8002")]
    pub listen: SocketAddr,
    /// Initial resources: `sample`, `empty`, or a file with a JSON list of resources
    #[arg(long, value_name = "sample|empty|FILE", default_value = "sample")]
    pub estate: String,
    /// Number of nodes in the sample
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub nodes: u32,
    /// Add a Service Gateway to the sample, for container load balancers
    #[arg(long)]
    pub service_gateway: bool,
    /// Write a cloud config for the sample to this file
    #[arg(long, value_name = "FILE")]
    pub write_cloud_config: Option<PathBuf>,
    /// Instead of serving, send the requests of this recording (`ballast azure-check --record`) to
    /// a fresh emulated Azure, and list where its answers differ from the recorded ones
    #[arg(long, value_name = "FILE", conflicts_with_all = ["estate", "write_cloud_config"])]
    pub compare: Option<PathBuf>,
    /// With --compare: output format
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT", requires = "compare")]
    pub output: Format,
    /// How it behaves.
    #[command(flatten)]
    pub manner: Manner,
    /// Whether it forwards.
    #[command(flatten)]
    pub data_path: DataPathArgs,
}

/// How an emulated Azure behaves.
#[derive(Clone, Debug, clap::Args)]
pub struct Manner {
    /// Duration of long-running operations, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 0)]
    pub lro_ms: u64,
    /// Latency of each answer, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 0)]
    pub latency_ms: u64,
    /// `Retry-After` of long-running operations, in seconds; 0 sends none
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub retry_after: u64,
    /// Throttle calls with Azure's limits
    #[arg(long)]
    pub throttle: bool,
}

impl Manner {
    /// The emulator's options.
    #[must_use]
    pub fn options(&self) -> Options {
        Options {
            lro_ms: self.lro_ms,
            latency_ms: self.latency_ms,
            retry_after_s: self.retry_after,
            api_version: Switch::On,
            ip_tags_for_life: Switch::On,
            throttle: if self.throttle { Switch::On } else { Switch::Off },
            ..Options::default()
        }
    }
}

/// The sample of a size.
#[must_use]
pub fn sample(nodes: u32, gateway: SampleGateway) -> SampleOptions {
    SampleOptions { machines: nodes, gateway, ..SampleOptions::default() }
}

/// A cloud config for the sample, without keys that have no effect or do not go with its SKU.
#[must_use]
pub fn sample_config(url: &str, sample: &SampleOptions) -> Value {
    let mut config = sample_cloud_config(url, sample);
    if let Value::Object(keys) = &mut config {
        keys.remove("cloudProviderBackoff");
        if sample.gateway == SampleGateway::WithDefaultNat {
            keys.remove("disableOutboundSNAT");
        }
    }
    config
}

/// Sends a recording's requests to a fresh emulated Azure and lists where it differs.
fn compare(path: &Path, manner: &Manner, format: Format) -> Outcome {
    let shown = path.display();
    let unusable = |why: &dyn std::fmt::Display| {
        let text = format!(
            "cannot read the recording {shown}: {why}. `ballast azure-check --record` writes one"
        );
        Failure::new(Exit::Input, text)
    };
    let text = std::fs::read_to_string(path).map_err(|e| unusable(&e))?;
    let recording = azure_check::read(&text).map_err(|e| unusable(&e))?;
    let mut options = manner.options();
    if recording.has_operations() {
        // An operation that has ended at once has no headers to compare.
        options.lro_ms = options.lro_ms.max(1);
    }
    let mut emulated = Emulated::new(&recording.site, options);
    let differences = azure_check::compare(&recording, &mut emulated);
    match format {
        Format::Json => output::print_json(&differences)?,
        Format::Text => {
            output::print(&render_differences(&differences, recording.exchanges.len()))?;
        }
    }
    Ok(if differences.is_empty() { Exit::Done } else { Exit::Changes })
}

/// Serves until a signal; or compares a recording.
///
/// # Errors
/// The port is taken, the estate or the recording cannot be read, or the cloud config cannot be
/// written.
pub async fn run(args: Args) -> Outcome {
    if let Some(path) = &args.compare {
        return compare(path, &args.manner, args.output);
    }
    let stop = signal::stop();
    let gateway =
        if args.service_gateway { SampleGateway::WithDefaultNat } else { SampleGateway::None };
    let sample = sample(args.nodes, gateway);
    let mut azure = Azure::new(args.manner.options());
    match args.estate.as_str() {
        "sample" => azure.seed(sample_estate(&sample)),
        "empty" => {}
        file => azure.seed(estate::read_snapshot(file.as_ref())?),
    }
    let (socket, address) = listening(args.listen, "--listen").await?;
    let url = format!("http://{address}");
    if let Some(path) = &args.write_cloud_config {
        output::write_file(path, &format!("{:#}\n", sample_config(&url, &sample)))?;
    }
    output::print(&format!("Azure Resource Manager on {url}\n"))?;
    let azure = Arc::new(Mutex::new(azure));
    let ended = stop.cancelled_owned();
    let served = match args.data_path.wire() {
        Some(wire) => azure_emulator::serve_with(socket, azure, wire, ended).await,
        None => azure_emulator::serve(socket, azure, ended).await,
    };
    served.map_err(|e| Failure::new(Exit::Failed, format!("the emulated Azure ended: {e}")))?;
    Ok(Exit::Done)
}
