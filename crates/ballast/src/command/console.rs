//! `ballast console`.

use crate::cluster::ClusterArgs;
use crate::exit::{Exit, Outcome};
use crate::lease::LeaseName;
use crate::output;
use crate::remote::{CONSOLE_PORT, Leader};
use crate::signal;
use std::process::Stdio;
use tokio::process::Command;

/// Arguments of `console`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Which cluster.
    #[command(flatten)]
    pub cluster: ClusterArgs,
    /// The lease of the controller.
    #[command(flatten)]
    pub lease_name: LeaseName,
    /// Port of the console in the leader's Pod (`run --console-port`)
    #[arg(long, value_name = "PORT", default_value_t = CONSOLE_PORT)]
    pub leader_port: u16,
    /// Local port; 0 takes a free one
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    pub port: u16,
    /// Print the address without opening a browser
    #[arg(long)]
    pub no_open: bool,
}

/// Forwards a port of this machine to the leading pod's console and opens it, until Ctrl-C.
///
/// # Errors
/// The cluster cannot be asked, no process leads, or the port of this machine is taken.
pub async fn run(args: Args) -> Outcome {
    let stop = signal::stop();
    let leader = Leader::find(&args.cluster, &args.lease_name, args.leader_port, args.port).await?;
    // Told before a browser is opened: a pod that cannot be reached opens none.
    leader.ask::<serde_json::Value>("/status", "status").await?;
    let url = format!("{}/", leader.server());
    output::print(&format!("Console of {} at {url}; Ctrl-C ends it\n", leader.pod))?;
    if !args.no_open {
        open(&url);
    }
    stop.cancelled().await;
    Ok(Exit::Done)
}

/// Where there is no browser, the address is printed all the same.
fn open(url: &str) {
    let opener = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let silent = || Stdio::null();
    let _ = Command::new(opener).arg(url).stdin(silent()).stdout(silent()).stderr(silent()).spawn();
}
