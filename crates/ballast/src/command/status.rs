//! `ballast status`.

use crate::cloud_config::CloudConfigArgs;
use crate::cluster::ClusterArgs;
use crate::command::source::read_once;
use crate::exit::{Exit, Failure, Outcome};
use crate::once::ReadingArgs;
use crate::output::{self, ColorChoice, Format, Paint};
use crate::remote::{self, Leader, LeaderArgs, Whom};
use crate::render::status::render;
use crate::render::watch::Watch;
use crate::signal;
use crate::status::StatusDocument;
use std::io::IsTerminal;
use std::time::Duration;

/// Between two looks of --watch at a controller.
const PACE: Duration = Duration::from_secs(1);
/// Between two looks of --watch that read the cluster and Azure, whose limits others need too.
const SLOW_PACE: Duration = Duration::from_secs(15);

/// Arguments of `status`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Ask the controller at this URL [default of `ballast`: http://127.0.0.1:10270; if nothing
    /// listens there, or with --kubeconfig or --context, the leader's Pod instead]
    #[arg(long, value_name = "URL")]
    pub server: Option<String>,
    /// The leading pod.
    #[command(flatten)]
    pub leader: LeaderArgs,
    /// Which cluster.
    #[command(flatten)]
    pub cluster: ClusterArgs,
    /// Which Azure.
    #[command(flatten)]
    pub config: CloudConfigArgs,
    /// Output format
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    pub output: Format,
    /// Refresh until Ctrl-C: on a terminal the current state, elsewhere one line per change
    #[arg(short, long)]
    pub watch: bool,
    /// What is read, and for how long.
    #[command(flatten)]
    pub reading: ReadingArgs,
}

/// Prints each Service.
///
/// # Errors
/// Neither a controller nor the cluster can be asked.
pub async fn run(args: Args, color: ColorChoice) -> Outcome {
    let paint = Paint::choose(color);
    let (whom, mut leader) = (args.whom().await, None);
    let document = look(&args, whom.as_ref(), &mut leader).await?;
    if !args.watch {
        match args.output {
            Format::Json => output::print_json(&document)?,
            Format::Text => output::print(&render(&document, paint))?,
        }
        return Ok(Exit::Done);
    }
    let stop = signal::stop();
    let terminal = std::io::stdout().is_terminal();
    let mut watch = Watch::new(args.output, paint, terminal);
    output::draw(&watch.begin(document))?;
    loop {
        // Only a controller counts its calls.
        let pace = if watch.is_of_controller() { PACE } else { SLOW_PACE };
        let next = async {
            tokio::time::sleep(pace).await;
            look(&args, whom.as_ref(), &mut leader).await
        };
        let seen = tokio::select! {
            () = stop.cancelled() => break,
            seen = next => seen,
        };
        // A controller that restarts is looked for until it is back.
        output::draw(&watch.see(seen.map_err(|failure| failure.text)))?;
    }
    output::draw(&watch.end())?;
    Ok(Exit::Done)
}

impl Args {
    /// Which controller is asked; `None`: none, the cluster and Azure are read.
    async fn whom(&self) -> Option<Whom> {
        let server = self.server.as_deref();
        let reads = self.config.cloud_config.is_some() || self.config.is_in_cluster();
        if reads && server.is_none() && !self.leader.leader {
            return None;
        }
        Some(Whom::choose(server, self.leader, &self.cluster).await)
    }
}

/// `leader` is kept from one look to the next; a leader that is not reached is looked for anew.
async fn look(
    args: &Args,
    whom: Option<&Whom>,
    leader: &mut Option<Leader>,
) -> Result<StatusDocument, Failure> {
    match whom {
        Some(Whom::Leader) => {
            let port = args.leader.leader_port;
            let found = match leader.take() {
                Some(found) => found,
                None => Leader::find(&args.cluster, &args.reading.lease_name, port, 0).await?,
            };
            let document = found.ask("/status", "status").await?;
            *leader = Some(found);
            Ok(document)
        }
        Some(Whom::Server(server)) => {
            let answer = remote::ask(server, "/status", "status").await;
            answer.map_err(|failure| match args.server {
                Some(_) => failure,
                None => {
                    let text = format!(
                        "{failure}; or give --kubeconfig to ask the leader's Pod, with \
                         --cloud-config to read the cluster and Azure directly"
                    );
                    Failure::new(failure.exit, text)
                }
            })
        }
        None => read_directly(args).await,
    }
}

async fn read_directly(args: &Args) -> Result<StatusDocument, Failure> {
    let reading = args.reading.reading();
    let (controller, clock) = read_once(&args.cluster, &args.config, &reading).await?;
    let (world, policy) = (controller.world(), controller.policy());
    Ok(StatusDocument::of_report(world, policy, controller.report(), clock.now_ms()))
}
