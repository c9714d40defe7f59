//! `ballast kube-emulator`.

use crate::command::listening;
use crate::exit::{Exit, Failure, Outcome};
use crate::{output, signal};
use kube_emulator::{Shared, Store, StoreOptions};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

/// Arguments of `kube-emulator`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Listen on this address, with plain HTTP and without authentication: keep it on loopback
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8001")]
    pub listen: SocketAddr,
    /// Write a kubeconfig for the emulated cluster to this file
    #[arg(long, value_name = "FILE")]
    pub write_kubeconfig: Option<PathBuf>,
}

/// An empty store whose names and UIDs differ from those of the last one.
#[must_use]
pub fn new_store() -> Store {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Store::new(StoreOptions {
        seed: u64::try_from(since.as_nanos() & u128::from(u64::MAX)).unwrap_or_default(),
        started_ms: u64::try_from(since.as_millis()).unwrap_or_default(),
        ..StoreOptions::default()
    })
}

/// Serves until a signal.
///
/// # Errors
/// The port is taken, or the kubeconfig cannot be written.
pub async fn run(args: Args) -> Outcome {
    let stop = signal::stop();
    let (socket, address) = listening(args.listen, "--listen").await?;
    if let Some(path) = &args.write_kubeconfig {
        output::write_file(path, &kube_emulator::kubeconfig(address))?;
    }
    output::print(&format!("Kubernetes API on http://{address}\n"))?;
    kube_emulator::serve(socket, Shared::new(new_store()), stop.cancelled_owned())
        .await
        .map_err(|e| Failure::new(Exit::Failed, format!("the Kubernetes API ended: {e}")))?;
    Ok(Exit::Done)
}
