//! `ballast history`.

use super::service::{NAMESPACE, named};
use crate::cluster::ClusterArgs;
use crate::exit::{Exit, Failure, Outcome};
use crate::history::{HistoryDocument, Wanted, file};
use crate::lease::LeaseName;
use crate::output::{self, ColorChoice, Format, Paint};
use crate::remote::{self, Leader, LeaderArgs, Whom};
use crate::render::history::render;
use edge::clock::Clock;
use std::path::{Path, PathBuf};

/// Arguments of `history`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Show only the writes for this Service
    #[arg(value_name = "[NAMESPACE/]NAME")]
    pub service: Option<String>,
    /// Namespace of the Service, where NAME has none [default: that of the kubeconfig's context
    /// where the leader's Pod is asked, else `default`]; without NAME, show only the writes for
    /// Services of this namespace
    #[arg(short, long, value_name = "NAMESPACE")]
    pub namespace: Option<String>,
    /// Show only what happened within this time: 30s, 15m, 1h, 2d
    #[arg(long, value_name = "SPAN", value_parser = span_ms)]
    pub since: Option<u64>,
    /// Ask the controller at this URL [default of `ballast`: http://127.0.0.1:10270; if nothing
    /// listens there, or with --kubeconfig or --context, the leader's Pod instead]
    #[arg(long, value_name = "URL")]
    pub server: Option<String>,
    /// Read this file of `ballast run --history-file` instead of asking a controller
    #[arg(long, value_name = "FILE")]
    #[arg(conflicts_with_all = ["server", "leader", "kubeconfig", "context"])]
    pub file: Option<PathBuf>,
    /// The leading pod.
    #[command(flatten)]
    pub leader: LeaderArgs,
    /// Which cluster.
    #[command(flatten)]
    pub cluster: ClusterArgs,
    /// The lease of the controller.
    #[command(flatten)]
    pub lease_name: LeaseName,
    /// Output format
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    pub output: Format,
}

impl Args {
    /// What a running controller remembers, and the namespace of a name without one.
    async fn ask(&self) -> Result<(HistoryDocument, String), Failure> {
        match Whom::choose(self.server.as_deref(), self.leader, &self.cluster).await {
            Whom::Leader => {
                let port = self.leader.leader_port;
                let leader = Leader::find(&self.cluster, &self.lease_name, port, 0).await?;
                let document = leader.ask("/history", "history").await?;
                Ok((document, leader.namespace))
            }
            Whom::Server(server) => {
                let document = remote::ask(&server, "/history", "history").await?;
                Ok((document, NAMESPACE.to_owned()))
            }
        }
    }
}

/// A time span in words, in milliseconds.
fn span_ms(text: &str) -> Result<u64, String> {
    let wrong = || "must be a whole number and s, m, h or d, as in 90s or 1h".to_owned();
    let unit = text.chars().last().ok_or_else(wrong)?;
    let factor = match unit {
        's' => 1_000,
        'm' => 60_000,
        'h' => 3_600_000,
        'd' => 86_400_000,
        _ => return Err(wrong()),
    };
    let number: u64 = text[..text.len() - 1].parse().map_err(|_| wrong())?;
    number.checked_mul(factor).ok_or_else(wrong)
}

/// Prints each Azure write, why it was made and what it changed.
///
/// # Errors
/// Neither a controller nor the file can be read.
pub async fn run(args: Args, color: ColorChoice) -> Outcome {
    let (mut document, namespace) = match &args.file {
        Some(path) => (of_file(path)?, NAMESPACE.to_owned()),
        None => args.ask().await?,
    };
    let within = args.namespace.as_ref().unwrap_or(&namespace);
    let service = args.service.as_ref().map(|service| named(service, within).to_string());
    let wanted = match (&service, &args.namespace) {
        (Some(service), _) => Wanted::Service(service),
        (None, Some(namespace)) => Wanted::Namespace(namespace),
        (None, None) => Wanted::Everything,
    };
    let since_ms = args.since.map_or(0, |span| document.now_ms.saturating_sub(span));
    document.narrow(wanted, since_ms);
    match args.output {
        Format::Json => output::print_json(&document)?,
        Format::Text => output::print(&render(&document, wanted, Paint::choose(color)))?,
    }
    Ok(Exit::Done)
}

fn of_file(path: &Path) -> Result<HistoryDocument, Failure> {
    let failed = |why: &dyn std::fmt::Display| {
        let path = path.display();
        Failure::new(Exit::Input, format!("cannot read the history file {path}: {why}"))
    };
    if !path.exists() {
        return Err(failed(&"there is no such file"));
    }
    let writes = file::read(path).map_err(|e| failed(&e))?;
    let now_ms = Clock::start().now_ms();
    Ok(HistoryDocument { now_ms, writes, drift: Vec::new() })
}

#[cfg(test)]
mod tests {
    use super::span_ms;

    #[test]
    fn spans_have_a_number_and_a_unit() {
        let spans = ["90s", "15m", "1h", "2d"].map(span_ms);
        assert_eq!(spans, [Ok(90_000), Ok(900_000), Ok(3_600_000), Ok(172_800_000)]);
        for wrong in ["", "h", "1", "1.5h", "-1h", "1w", "ä", "99999999999999999999d"] {
            assert!(span_ms(wrong).is_err(), "{wrong}");
        }
    }
}
