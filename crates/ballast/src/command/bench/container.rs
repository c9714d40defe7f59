//! `ballast bench container`.

use super::child::{Child, Memory};
use super::cluster::{Cluster, Presence, Size};
use super::planning::median;
use crate::command::azure_emulator::{sample, sample_config};
use crate::command::kube_emulator::new_store;
use crate::command::listening;
use crate::exit::{Exit, Failure, Outcome};
use crate::output::{self, Format};
use crate::progress::Bar;
use crate::signal;
use azure_emulator::{Azure, Options, SampleGateway, Switch, sample_estate};
use kube_emulator::Shared;
use serde::Serialize;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// Between two looks at something that takes long.
const PACE: Duration = Duration::from_millis(20);
/// After it a new process has read everything twice.
const GRACE: Duration = Duration::from_secs(15);

/// Arguments of `bench container`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Number of nodes
    #[arg(long, value_name = "N", default_value_t = 5_000)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub nodes: u32,
    /// Number of Services
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub services: u32,
    /// Number of Pods per Service
    #[arg(long, value_name = "N", default_value_t = 15)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub pods: u32,
    /// Latency of each Azure call, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 0)]
    pub latency_ms: u64,
    /// Begin with existing resources, and measure neither creation nor deletion
    #[arg(long)]
    pub prepared: bool,
    /// Items per page of Azure's lists
    #[arg(long, value_name = "N", default_value_t = 2_000)]
    pub page_size: usize,
    /// Number of times that one Pod is added or removed
    #[arg(long, value_name = "N", default_value_t = 20)]
    #[arg(value_parser = clap::value_parser!(u32).range(2..))]
    pub rounds: u32,
    /// Time limit for each phase, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    pub limit: u64,
    /// Output format
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    pub output: Format,
}

impl Args {
    /// What is chosen where nothing else is said, at this size.
    #[must_use]
    pub fn sized(nodes: u32, services: u32, pods: u32) -> Self {
        Self {
            nodes,
            services,
            pods,
            latency_ms: 0,
            prepared: false,
            page_size: 2_000,
            rounds: 20,
            limit: 600,
            output: Format::Text,
        }
    }
}

/// What was measured. Times are milliseconds, memory is MiB of the controller's process.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Figures {
    pub(super) nodes: u32,
    pub(super) services: u32,
    pub(super) pods: usize,
    latency_ms: u64,
    cores: usize,
    /// From the first Service's creation until all have addresses and all Pods are listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) created: Option<Phase>,
    pub(super) one_pod: OnePod,
    /// From the start of a process until the gateway has what changed while none ran.
    pub(super) started: Phase,
    /// From the first Service's deletion until nothing is left.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) deleted: Option<Phase>,
}

/// One phase.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Phase {
    pub(super) ms: f64,
    /// What the processor spent on the controller meanwhile.
    pub(super) processor_ms: f64,
    /// Azure writes.
    pub(super) writes: usize,
    /// The most memory of the process so far.
    pub(super) peak_mib: f64,
    /// Memory at the end of the phase.
    pub(super) resident_mib: f64,
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
    let figures = figures(&args).await?;
    match args.output {
        Format::Json => output::print_json(&figures)?,
        Format::Text => output::print(&text(&figures))?,
    }
    Ok(Exit::Done)
}

/// Measures.
///
/// # Errors
/// The emulators cannot be started, the controller does not get there in time, or it was
/// interrupted.
pub(super) async fn figures(args: &Args) -> Result<Figures, Failure> {
    let place = Place::prepare(args).await?;
    let stop = signal::stop();
    let figures = tokio::select! {
        figures = measure(&place, args) => figures,
        () = stop.cancelled() => Err(Failure::new(Exit::Failed, "interrupted".to_owned())),
    };
    place.stop.cancel();
    figures
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
            page_size: args.page_size,
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
        let mut bar = Bar::new(what.to_owned());
        while !done() {
            bar.wait(self.limit);
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
    let all = place.cluster.addresses();
    let mut created = None;
    let mut early = None;
    if args.prepared {
        place.cluster.create_services()?;
        place.azure(|azure| place.cluster.prepare(azure))?;
    } else {
        let child = place.child()?;
        created = Some(create(place, &child, args).await?);
        early = Some(one_pod(place, &child, args).await?);
        child.end().await;
    }
    place.cluster.set_pod(args.services / 2, Presence::Gone)?;
    place.azure(Azure::clear_calls);
    let child = place.child()?;
    let first = || place.listed() == all - 1;
    let ms = place.until("the start", child.started, PACE, first).await?;
    let (writes, spent_ms) = (place.writes(), child.processor_ms());
    place.quiet().await;
    let started = Phase::of(ms, spent_ms, writes, child.memory());
    place.cluster.set_pod(args.services / 2, Presence::There)?;
    place.until("one Pod", Instant::now(), PACE, || place.listed() == all).await?;
    let one_pod = match early {
        Some(early) => early,
        None => one_pod(place, &child, args).await?,
    };
    let deleted = match args.prepared {
        true => None,
        false => Some(delete(place, &child).await?),
    };
    child.end().await;
    Ok(Figures {
        nodes: args.nodes,
        services: args.services,
        pods: all,
        latency_ms: args.latency_ms,
        cores: std::thread::available_parallelism().map_or(0, usize::from),
        created,
        one_pod,
        started,
        deleted,
    })
}

async fn create(place: &Place, child: &Child, args: &Args) -> Result<Phase, Failure> {
    let called = || place.azure(|azure| !azure.calls().is_empty());
    place.until("the first start", child.started, PACE, called).await?;
    place.quiet().await;
    place.azure(Azure::clear_calls);
    let (from, before_ms) = (Instant::now(), child.processor_ms());
    place.cluster.create_services()?;
    let services = args.services as usize;
    let done =
        || place.listed() == place.cluster.addresses() && place.cluster.services().0 == services;
    let ms = place.until("creating", from, PACE, done).await?;
    let spent_ms = child.processor_ms() - before_ms;
    let phase = Phase::of(ms, spent_ms, place.writes(), child.memory());
    place.quiet().await;
    Ok(phase)
}

async fn delete(place: &Place, child: &Child) -> Result<Phase, Failure> {
    // A process that is new leaves in the gateway's table what the one before may still write.
    tokio::time::sleep(GRACE.saturating_sub(child.started.elapsed())).await;
    place.quiet().await;
    place.azure(Azure::clear_calls);
    let (from, before_ms) = (Instant::now(), child.processor_ms());
    place.cluster.delete_services()?;
    let gone = || place.listed() == 0 && place.cluster.services().1 == 0;
    let ms = place.until("deleting", from, PACE, gone).await?;
    let spent_ms = child.processor_ms() - before_ms;
    Ok(Phase::of(ms, spent_ms, place.writes(), child.memory()))
}

impl Phase {
    fn of(ms: f64, processor_ms: f64, writes: usize, memory: Memory) -> Self {
        let mib = |kib: u64| kib as f64 / 1024.0;
        let (peak_mib, resident_mib) = (mib(memory.peak_kib), mib(memory.resident_kib));
        Self { ms, processor_ms, writes, peak_mib, resident_mib }
    }
}

/// One Pod goes or comes in quiet.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct OnePod {
    pub(super) rounds: u32,
    pub(super) median_ms: f64,
    pub(super) worst_ms: f64,
    /// Azure writes.
    pub(super) calls: usize,
    /// Steps of the controller for one Pod, all together, on average.
    pub(super) steps_ms: f64,
    /// What no step exceeded; none: 500 ms were.
    step_bound_ms: Option<f64>,
    peak_mib: f64,
    resident_mib: f64,
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
    let median_ms = median(&mut times);
    let calls = place.azure(|azure| azure.call_counts().1);
    let Phase { peak_mib, resident_mib, .. } = Phase::of(0.0, 0.0, 0, child.memory());
    Ok(OnePod {
        rounds: args.rounds,
        median_ms,
        worst_ms: times.last().copied().unwrap_or_default(),
        calls,
        steps_ms: (after.sum_ms - before.sum_ms) / f64::from(args.rounds),
        step_bound_ms: after.bound_since(&before),
        peak_mib,
        resident_mib,
    })
}

fn text(f: &Figures) -> String {
    let mut text = format!(
        "{} nodes, {} Services, {} Pods; {} ms a call; {} cores\n",
        f.nodes, f.services, f.pods, f.latency_ms, f.cores
    );
    let phase = |name: &str, phase: &Phase| {
        let Phase { ms, processor_ms, writes, peak_mib, resident_mib } = phase;
        format!(
            "{name:<8} {ms:.0} ms, {processor_ms:.0} ms of the processor, {writes} writes; memory \
             {resident_mib:.1} MiB, at most {peak_mib:.1} MiB\n"
        )
    };
    if let Some(created) = &f.created {
        text += &phase("created", created);
    }
    let pod = &f.one_pod;
    let bound = pod.step_bound_ms.map_or("500 ms or more".to_owned(), |ms| format!("{ms} ms"));
    text += &format!(
        "one Pod  median {:.1} ms, worst {:.1} ms, {} calls in {} rounds; steps {:.2} ms, none \
         over {bound}; memory {:.1} MiB, at most {:.1} MiB\n",
        pod.median_ms,
        pod.worst_ms,
        pod.calls,
        pod.rounds,
        pod.steps_ms,
        pod.resident_mib,
        pod.peak_mib
    );
    text += &phase("started", &f.started);
    if let Some(deleted) = &f.deleted {
        text += &phase("deleted", deleted);
    }
    text
}
