//! `ballast up`.

mod nodes;
mod objects;
mod proxies;
mod workload;

use crate::azure::AzureConnection;
use crate::backend_health::{Settings, follow};
use crate::command::azure_emulator::{Manner, sample, sample_config};
use crate::command::data_path::DataPathArgs;
use crate::command::kube_emulator::new_store;
use crate::command::listening;
use crate::console::access::Access;
use crate::engine::{Engine, Right, options};
use crate::exit::{Exit, Failure, Outcome};
use crate::history::Past;
use crate::output::{self, ColorChoice, Ink, Paint};
use crate::pages::Pages;
use crate::render::notice::render;
use crate::shared::{SharedController, Turns};
use crate::status::StatusDocument;
use crate::{cluster, command, signal};
use azure_emulator::{Azure, SampleGateway, SampleOptions, sample_estate};
use control::budget::Limits;
use control::{Controller, Notice};
use edge::clock::Clock;
use edge::kubernetes::ConnectFrom;
use edge::lease::LeaseSettings;
use edge::log::{self, LogFormat};
use edge::notice::NoticeSink;
use edge::vital::Vital;
use model::ServiceName;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::broadcast::{Receiver, error::RecvError};
use tokio_util::sync::CancellationToken;
use workload::Workload;

/// Between two rounds of reading health probes: the emulated metric is not late.
const PROBES: Duration = Duration::from_secs(2);

/// Arguments of `up`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Port of the emulated Kubernetes API; 0 takes a free one
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    pub kube_port: u16,
    /// Port of the emulated Azure; 0 takes a free one
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    pub azure_port: u16,
    /// Port of the console, health, metrics and status [default: 10270, or a free port where 10270
    /// is in use]
    #[arg(long, value_name = "PORT")]
    pub port: Option<u16>,
    /// Number of Services to create in the emulated cluster
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub services: u32,
    /// Number of nodes of the emulated cluster
    #[arg(long, value_name = "N", default_value_t = 3)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub nodes: u32,
    /// Use container load balancers: one per Service, with Pods as backends
    #[arg(long)]
    pub container_load_balancer: bool,
    /// Write kubeconfig and cloud config to this directory and keep them [default: a temporary
    /// directory]
    #[arg(long, value_name = "DIRECTORY")]
    pub directory: Option<PathBuf>,
    /// Stop after this many seconds
    #[arg(long = "for", value_name = "SECONDS")]
    pub seconds: Option<u64>,
    /// Log level on standard error
    #[arg(long, value_name = "LEVEL", default_value = "error")]
    pub log_level: String,
    /// How the emulated Azure behaves.
    #[command(flatten)]
    pub manner: Manner,
    /// Whether it forwards.
    #[command(flatten)]
    pub data_path: DataPathArgs,
}

impl Args {
    fn sample(&self) -> SampleOptions {
        let gateway = match self.container_load_balancer {
            true => SampleGateway::WithDefaultNat,
            false => SampleGateway::None,
        };
        sample(self.nodes, gateway)
    }
}

/// Where the files lie.
enum Folder {
    /// Goes when `up` ends.
    Passing(tempfile::TempDir),
    /// What was asked for; stays.
    Lasting(PathBuf),
}

impl Folder {
    fn open(asked: Option<&Path>) -> Result<Self, Failure> {
        let blocked = |why: String| Failure::new(Exit::Blocked, why);
        let Some(path) = asked else {
            let made = tempfile::Builder::new().prefix("ballast-").tempdir();
            return made
                .map(Self::Passing)
                .map_err(|e| blocked(format!("cannot make a folder for files: {e}. Set TMPDIR")));
        };
        std::fs::create_dir_all(path)
            .map_err(|e| blocked(format!("--directory {}: cannot make it: {e}", path.display())))?;
        Ok(Self::Lasting(path.to_owned()))
    }

    fn file(&self, name: &str) -> PathBuf {
        match self {
            Self::Passing(folder) => folder.path().join(name),
            Self::Lasting(path) => path.join(name),
        }
    }
}

/// Where everything is.
struct Places {
    kubeconfig: PathBuf,
    cloud_config: PathBuf,
    kubernetes: String,
    azure: String,
    pages: String,
}

/// Runs everything until a signal, or for as long as asked.
///
/// # Errors
/// A port is taken, or a file cannot be written.
pub async fn run(args: Args, color: ColorChoice) -> Outcome {
    let stop = signal::stop();
    log::start(LogFormat::Text, &args.log_level).map_err(|e| Failure::new(Exit::Usage, e))?;
    let paint = Paint::choose(color);
    let clock = Clock::start();
    let sample = args.sample();
    let folder = Folder::open(args.directory.as_deref())?;
    let loopback = |port| SocketAddr::from(([127, 0, 0, 1], port));
    let (kube_socket, kube) = listening(loopback(args.kube_port), "--kube-port").await?;
    let (azure_socket, azure) = listening(loopback(args.azure_port), "--azure-port").await?;
    let (pages_socket, pages) = listening_for_pages(&args).await?;
    let places = Places {
        kubeconfig: folder.file("kubeconfig"),
        cloud_config: folder.file("cloud-config.json"),
        kubernetes: format!("http://{kube}"),
        azure: format!("http://{azure}"),
        pages: format!("http://{pages}"),
    };
    let config = sample_config(&places.azure, &sample);
    output::write_file(&places.kubeconfig, &kube_emulator::kubeconfig(kube))?;
    output::write_file(&places.cloud_config, &format!("{config:#}\n"))?;

    let store = kube_emulator::Shared::new(new_store());
    let mut cloud = Azure::new(args.manner.options());
    cloud.seed(sample_estate(&sample));
    let ended = stop.clone().cancelled_owned();
    tokio::spawn(kube_emulator::serve(kube_socket, store.clone(), ended));
    let ended = stop.clone().cancelled_owned();
    let cloud = Arc::new(Mutex::new(cloud));
    // Without a data path probes are asked all the same, and no frontend is listened at.
    let asked = args.data_path.wire();
    let few = nodes::are_few(args.nodes, args.services);
    match asked.clone().or_else(|| few.then(nodes::probing)) {
        Some(wire) => {
            nodes::answer(&wire, &sample, &store, &stop).await?;
            tokio::spawn(azure_emulator::serve_with(azure_socket, cloud, wire, ended));
        }
        None => drop(tokio::spawn(azure_emulator::serve(azure_socket, cloud, ended))),
    }

    let notices = NoticeSink::default();
    let heard = notices.listen();
    let (engine, controller) =
        connect(&config.to_string(), &places, clock, notices, &args.manner).await?;
    let shown = Pages::new(clock);
    shown.show(controller.clone(), &engine.notices, Past::default());
    tokio::spawn(shown.serve(pages_socket, Access::Machine, stop.child_token()));
    output::print(&introduction(&places, &args, paint))?;

    let workload = Workload::new(store, &sample, args.services);
    workload.create_nodes();
    let watched = controller.clone();
    let classes = BTreeSet::new();
    let probed = Settings { pace: PROBES, instance: "up".to_owned(), turns: Turns::Alone };
    let mut tasks = Vital::default();
    let following = follow(engine.clone(), controller.clone(), probed, stop.clone());
    tasks.spawn("the reader of health probes", following);
    let running = engine.run(controller, alone(), &classes, tasks, stop.clone());
    let showing = show(heard, clock.now_ms(), paint, stop.clone());
    let acting = workload.act(stop.clone());
    let waiting = end_after(args.seconds, stop.clone());
    let placing = nodes::show_places(asked, paint, stop.clone());
    let (ran, showed, (), (), placed) = tokio::join!(running, showing, acting, waiting, placing);
    ran?;
    showed?;
    placed?;
    output::print(&farewell(&watched, clock, paint))?;
    Ok(Exit::Done)
}

/// The emulated cluster has no other controller; `pause --all` finds the Lease where it is usual.
fn alone() -> Right {
    let LeaseSettings { namespace, name, .. } = LeaseSettings::default();
    Right::Alone(ServiceName::new(namespace, name))
}

async fn listening_for_pages(args: &Args) -> Result<(TcpListener, SocketAddr), Failure> {
    let loopback = |port| SocketAddr::from(([127, 0, 0, 1], port));
    match args.port {
        Some(port) => listening(loopback(port), "--port").await,
        None => match listening(loopback(command::serving::PORT), "--port").await {
            Ok(bound) => Ok(bound),
            Err(_) => listening(loopback(0), "--port").await,
        },
    }
}

async fn connect(
    config: &str,
    places: &Places,
    clock: Clock,
    notices: NoticeSink,
    manner: &Manner,
) -> Result<(Engine, SharedController), Failure> {
    let environment = BTreeMap::new();
    let sources =
        observe::config::Sources { text: config, cluster: "kubernetes", environment: &environment };
    let config = observe::config::read(&sources).map_err(|errors| {
        let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
        Failure::new(Exit::Internal, errors.join("; "))
    })?;
    let azure = AzureConnection::open(&config.settings, clock).await?;
    let client = cluster::client(&ConnectFrom::Address(places.kubernetes.clone())).await?;
    let mut options = options(BTreeSet::new());
    options.cluster_uid = cluster::uid(&client).await?;
    // The emulated Azure has the published limits when it is told to.
    options.limits = if manner.throttle { Limits::Published } else { Limits::Unknown };
    let controller = Controller::new(config.policy, options);
    let engine = Engine { clock, client, azure, notices };
    Ok((engine, SharedController::new(controller)))
}

async fn end_after(seconds: Option<u64>, stop: CancellationToken) {
    let Some(seconds) = seconds else { return };
    tokio::select! {
        () = stop.cancelled() => {}
        () = tokio::time::sleep(Duration::from_secs(seconds)) => stop.cancel(),
    }
}

/// Prints what happens until stopped; a reader that went away stops everything.
async fn show(
    mut heard: Receiver<Notice>,
    started_ms: u64,
    paint: Paint,
    stop: CancellationToken,
) -> Result<(), Failure> {
    loop {
        let notice = tokio::select! {
            () = stop.cancelled() => return Ok(()),
            notice = heard.recv() => notice,
        };
        let line = match notice {
            Ok(notice) => render(&notice, started_ms, paint),
            Err(RecvError::Lagged(missed)) => format!("          ({missed} lines left out)\n"),
            Err(RecvError::Closed) => return Ok(()),
        };
        if let Err(gone) = output::print(&line) {
            stop.cancel();
            return Err(gone);
        }
    }
}

fn introduction(places: &Places, args: &Args, paint: Paint) -> String {
    let kubectl = format!("kubectl --kubeconfig {}", places.kubeconfig.display());
    let flags = format!(
        "--kubeconfig {} --cloud-config {}",
        places.kubeconfig.display(),
        places.cloud_config.display()
    );
    let program = program(&std::env::args().next().unwrap_or_default());
    let title = "Ballast is up: an emulated cluster, an emulated Azure, and the controller.";
    let mut text = format!("{}\n\n", paint.ink(Ink::Bold, title));
    for (name, place) in [
        ("kubeconfig", places.kubeconfig.display().to_string()),
        ("cloud config", places.cloud_config.display().to_string()),
        ("Kubernetes API", places.kubernetes.clone()),
        ("Azure", places.azure.clone()),
        ("console", format!("{}/", places.pages)),
    ] {
        text.push_str(&format!("  {name:<16}{}\n", paint.ink(Ink::Cyan, place)));
    }
    text.push_str("\nTry in another terminal:\n");
    for command in [
        format!("{kubectl} get services --watch"),
        format!("{kubectl} create service loadbalancer shop --tcp=80:8080"),
        format!("{kubectl} delete service shop"),
        format!("{program} status --server {}", places.pages),
        format!("{program} history --server {}", places.pages),
        format!("{program} plan {flags}"),
    ] {
        text.push_str(&format!("  {command}\n"));
    }
    let end = match args.seconds {
        Some(seconds) => format!("It ends by itself after {seconds} s."),
        None if args.directory.is_some() => {
            "Ctrl-C ends it; nothing is kept but the files in the directory.".to_owned()
        }
        None => "Ctrl-C ends it; nothing is kept.".to_owned(),
    };
    text.push_str(&format!("\n{end} What happens, in seconds since the start:\n\n"));
    text
}

/// How to call this program again.
fn program(called_as: &str) -> String {
    match Path::new(called_as).file_stem().and_then(|s| s.to_str()) {
        Some("kubectl-ballast") => "kubectl ballast".to_owned(),
        _ if called_as.is_empty() => "ballast".to_owned(),
        _ => called_as.to_owned(),
    }
}

fn farewell(controller: &SharedController, clock: Clock, paint: Paint) -> String {
    let now_ms = clock.now_ms();
    let document = controller.look(|c| StatusDocument::of_controller(c, now_ms));
    let programmed = document.services.iter().filter(|s| s.state == "programmed").count();
    let (writes, reads) = (document.writes.unwrap_or(0), document.reads.unwrap_or(0));
    let text = format!(
        "Stopped: {programmed} of {} Services programmed, with {writes} Azure writes and {reads} \
         reads.",
        document.services.len()
    );
    format!("\n{}\n", paint.ink(Ink::Bold, text))
}
