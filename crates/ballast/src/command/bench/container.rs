//! `ballast bench container`.

use super::child::{Child, Memory};
use super::cluster::{Cluster, Presence, Size};
use crate::command::azure_emulator::{sample, sample_config};
use crate::command::kube_emulator::new_store;
use crate::command::listening;
use crate::exit::{Exit, Failure, Outcome};
use crate::output::{self, Format};
use crate::signal;
use azure_emulator::{Azure, Options, SampleGateway, Switch, sample_estate};
use kube_emulator::Shared;
use serde::Serialize;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// Arguments of `bench container`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Nodes
    #[arg(long, value_name = "N", default_value_t = 5_000)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub nodes: u32,
    /// Services
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub services: u32,
    /// Pods a Service
    #[arg(long, value_name = "N", default_value_t = 15)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub pods: u32,
    /// How long each Azure call takes
    #[arg(long, value_name = "MS", default_value_t = 0)]
    pub latency_ms: u64,
    /// How often one Pod comes or goes
    #[arg(long, value_name = "N", default_value_t = 20)]
    #[arg(value_parser = clap::value_parser!(u32).range(2..))]
    pub rounds: u32,
    /// How long a phase may take, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    pub limit: u64,
    /// How to print
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    pub output: Format,
}

/// What was measured. Times are milliseconds, memory is MiB of the controller's process.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Figures {
    nodes: u32,
    services: u32,
    pods: usize,
    latency_ms: u64,
    cores: usize,
    /// From the first Service's creation until all have addresses and all Pods are listed.
    created_ms: f64,
    create_writes: usize,
    create_peak_mib: f64,
    settled_mib: f64,
    one_pod_median_ms: f64,
    one_pod_worst_ms: f64,
    one_pod_calls: usize,
    /// Steps of the controller for one Pod: all together on average, and what none exceeded.
    one_pod_steps_ms: f64,
    one_pod_step_bound_ms: Option<f64>,
    /// From the start of a new process until the gateway has what changed meanwhile.
    restart_first_write_ms: f64,
    restart_writes: usize,
    restart_peak_mib: f64,
    restart_settled_mib: f64,
    deleted_ms: f64,
    delete_writes: usize,
    peak_mib: f64,
}

/// Both emulators, the cluster and where files are.
struct Place {
    cluster: Cluster,
    azure: Arc<Mutex<Azure>>,
    folder: tempfile::TempDir,
    limit: Duration,
    stop: CancellationToken,
}

/// Measures and prints.
///
/// # Errors
/// The emulators cannot be started, or the controller does not get there in time.
pub async fn run(args: Args) -> Outcome {
    let place = Place::prepare(&args).await?;
    let stop = signal::stop();
    let figures = tokio::select! {
        figures = measure(&place, &args) => figures,
        () = stop.cancelled() => return Ok(Exit::Failed),
    };
    place.stop.cancel();
    let figures = figures?;
    match args.output {
        Format::Json => output::print_json(&figures)?,
        Format::Text => output::print(&text(&figures))?,
    }
    Ok(Exit::Done)
}

impl Place {
    async fn prepare(args: &Args) -> Result<Self, Failure> {
        let folder = tempfile::Builder::new().prefix("ballast-bench-").tempdir().map_err(|e| {
            Failure::new(Exit::Blocked, format!("cannot make a folder: {e}. Set TMPDIR"))
        })?;
        let loopback = SocketAddr::from(([127, 0, 0, 1], 0));
        let (kube_socket, kube) = listening(loopback, "a free port").await?;
        let (azure_socket, address) = listening(loopback, "a free port").await?;
        let sample = sample(args.nodes, SampleGateway::WithDefaultNat);
        let config = sample_config(&format!("http://{address}"), &sample);
        let file = |name: &str| folder.path().join(name);
        output::write_file(&file("kubeconfig"), &kube_emulator::kubeconfig(kube))?;
        output::write_file(&file("cloud-config.json"), &format!("{config:#}\n"))?;
        let mut azure = Azure::new(Options {
            latency_ms: args.latency_ms,
            log_bodies: Switch::Off,
            ..Options::default()
        });
        azure.seed(sample_estate(&sample));
        let azure = Arc::new(Mutex::new(azure));
        let store = Shared::new(new_store());
        let stop = CancellationToken::new();
        let ended = stop.clone().cancelled_owned();
        tokio::spawn(kube_emulator::serve(kube_socket, store.clone(), ended));
        let ended = stop.clone().cancelled_owned();
        tokio::spawn(azure_emulator::serve(azure_socket, Arc::clone(&azure), ended));
        let size = Size { services: args.services, pods: args.pods };
        let cluster = Cluster::new(store, sample.machines(), size)?;
        Ok(Self { cluster, azure, folder, limit: Duration::from_secs(args.limit), stop })
    }

    fn child(&self) -> Result<Child, Failure> {
        let file = |name: &str| self.folder.path().join(name);
        Child::start(&file("kubeconfig"), &file("cloud-config.json"))
    }

    fn azure<T>(&self, look: impl FnOnce(&mut Azure) -> T) -> T {
        look(&mut self.azure.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Waits for something; gives the time since `from` in milliseconds.
    async fn until(
        &self,
        what: &str,
        from: Instant,
        pace: Duration,
        mut done: impl FnMut() -> bool,
    ) -> Result<f64, Failure> {
        while !done() {
            if from.elapsed() > self.limit {
                let log = self.folder.path().join("run.log");
                let log = std::fs::read_to_string(log).unwrap_or_default();
                let last: Vec<&str> = log.lines().rev().take(5).collect();
                let s = self.limit.as_secs();
                let text = format!("{what}: not within {s} s. The log ends: {}", last.join("; "));
                return Err(Failure::new(Exit::Failed, text));
            }
            tokio::time::sleep(pace).await;
        }
        Ok(from.elapsed().as_secs_f64() * 1e3)
    }

    fn listed(&self) -> usize {
        self.azure(|azure| azure.gateway_sizes().1)
    }

    fn writes(&self) -> usize {
        self.azure(|azure| azure.call_counts().1)
    }

    /// Waits until no call has come for a while.
    async fn quiet(&self) {
        let mut last = usize::MAX;
        loop {
            let now = self.azure(|azure| azure.calls().len());
            if now == last {
                return;
            }
            last = now;
            tokio::time::sleep(Duration::from_secs(2)).await;
        }
    }
}

async fn measure(place: &Place, args: &Args) -> Result<Figures, Failure> {
    let slow = Duration::from_millis(20);
    let all = place.cluster.addresses();
    let child = place.child()?;
    place.until("the first start", child.started, slow, || place.writes_or_reads() > 0).await?;
    place.quiet().await;
    place.azure(Azure::clear_calls);
    let from = Instant::now();
    place.cluster.create_services()?;
    let created_ms = place
        .until("creating", from, slow, || {
            place.listed() == all && place.cluster.services().0 == args.services as usize
        })
        .await?;
    let create_writes = place.writes();
    let created = child.memory();
    place.quiet().await;
    let pods = one_pod(place, &child, args).await?;
    let settled = child.memory();
    child.end().await;

    place.cluster.set_pod(args.services / 2, Presence::Gone)?;
    place.azure(Azure::clear_calls);
    let child = place.child()?;
    let first = place.until("the restart", child.started, slow, || place.listed() == all - 1);
    let restart_first_write_ms = first.await?;
    let restart_writes = place.writes();
    place.quiet().await;
    let restarted = child.memory();

    place.azure(Azure::clear_calls);
    let from = Instant::now();
    place.cluster.delete_services()?;
    let gone = || place.cluster.services().1 == 0 && place.listed() == 0;
    let deleted_ms = place.until("deleting", from, slow, gone).await?;
    let delete_writes = place.writes();
    let end = child.memory();
    child.end().await;
    let mib = |kib: u64| kib as f64 / 1024.0;
    let peak = |of: &Memory| mib(of.peak_kib);
    Ok(Figures {
        nodes: args.nodes,
        services: args.services,
        pods: all,
        latency_ms: args.latency_ms,
        cores: std::thread::available_parallelism().map_or(0, usize::from),
        created_ms,
        create_writes,
        create_peak_mib: peak(&created),
        settled_mib: mib(settled.resident_kib),
        one_pod_median_ms: pods.median_ms,
        one_pod_worst_ms: pods.worst_ms,
        one_pod_calls: pods.calls,
        one_pod_steps_ms: pods.steps_ms,
        one_pod_step_bound_ms: pods.step_bound_ms,
        restart_first_write_ms,
        restart_writes,
        restart_peak_mib: peak(&restarted),
        restart_settled_mib: mib(restarted.resident_kib),
        deleted_ms,
        delete_writes,
        peak_mib: peak(&settled).max(peak(&end)),
    })
}

struct OnePod {
    median_ms: f64,
    worst_ms: f64,
    calls: usize,
    steps_ms: f64,
    step_bound_ms: Option<f64>,
}

/// One Pod goes, and comes again, of one Service after the other.
async fn one_pod(place: &Place, child: &Child, args: &Args) -> Result<OnePod, Failure> {
    let all = place.cluster.addresses();
    let fast = Duration::from_millis(1);
    let before = child.steps().await;
    place.azure(Azure::clear_calls);
    let mut times = Vec::new();
    for round in 0..args.rounds {
        let service = (round / 2 * 7) % args.services;
        let (pod, wanted) = match round % 2 {
            0 => (Presence::Gone, all - 1),
            _ => (Presence::There, all),
        };
        let from = Instant::now();
        place.cluster.set_pod(service, pod)?;
        let took = place.until("one Pod", from, fast, || place.listed() == wanted).await?;
        // The table changes when a call arrives; the answer takes its time.
        times.push(took + args.latency_ms as f64);
        let rest = Duration::from_millis(args.latency_ms + 300);
        tokio::time::sleep(rest).await;
    }
    let after = child.steps().await;
    times.sort_by(f64::total_cmp);
    let calls = place.azure(|azure| azure.call_counts().1);
    Ok(OnePod {
        median_ms: times[times.len() / 2],
        worst_ms: times.last().copied().unwrap_or_default(),
        calls,
        steps_ms: (after.sum_ms - before.sum_ms) / f64::from(args.rounds),
        step_bound_ms: after.bound_since(&before),
    })
}

impl Place {
    fn writes_or_reads(&self) -> usize {
        self.azure(|azure| azure.calls().len())
    }
}

fn text(f: &Figures) -> String {
    let bound = f.one_pod_step_bound_ms.map_or("over 500".to_owned(), |ms| format!("{ms:.1}"));
    format!(
        "{} nodes, {} Services, {} Pods; {} ms a call; {} cores\n\
         created     {:.0} ms, {} writes, peak {:.1} MiB\n\
         one Pod     median {:.1} ms, worst {:.1} ms, {} calls; steps {:.2} ms, none over {} ms\n\
         settled     {:.1} MiB\n\
         restart     first write after {:.0} ms, {} writes, peak {:.1} MiB, then {:.1} MiB\n\
         deleted     {:.0} ms, {} writes\n\
         peak        {:.1} MiB\n",
        f.nodes,
        f.services,
        f.pods,
        f.latency_ms,
        f.cores,
        f.created_ms,
        f.create_writes,
        f.create_peak_mib,
        f.one_pod_median_ms,
        f.one_pod_worst_ms,
        f.one_pod_calls,
        f.one_pod_steps_ms,
        bound,
        f.settled_mib,
        f.restart_first_write_ms,
        f.restart_writes,
        f.restart_peak_mib,
        f.restart_settled_mib,
        f.deleted_ms,
        f.delete_writes,
        f.peak_mib,
    )
}
