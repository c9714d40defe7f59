//! One module a command.

pub mod adopt;
pub mod azure_check;
#[cfg(feature = "emulators")]
pub mod azure_emulator;
pub mod azure_role;
#[cfg(feature = "bench")]
pub mod bench;
pub mod completions;
pub mod console;
#[cfg(feature = "emulators")]
pub mod data_path;
pub mod explain;
pub mod history;
pub mod hold;
#[cfg(feature = "emulators")]
pub mod kube_emulator;
pub mod lint;
pub mod man;
pub mod migrate;
pub mod node_agent;
pub mod orphans;
pub mod plan;
pub mod run;
pub mod service;
pub mod serving;
#[cfg(feature = "sim")]
pub mod sim;
pub mod source;
pub mod starting;
pub mod status;
#[cfg(feature = "emulators")]
pub mod up;

use crate::exit::{Exit, Failure};
use std::io;
use std::net::SocketAddr;
use tokio::net::TcpListener;

/// Listens; `flag` is the option to name when that fails.
///
/// # Errors
/// The port is taken, or the address is not this machine's.
pub async fn listening(
    address: SocketAddr,
    flag: &str,
) -> Result<(TcpListener, SocketAddr), Failure> {
    let failed = |e: io::Error| {
        let text = match e.kind() {
            io::ErrorKind::AddrInUse => format!(
                "cannot listen on {address}: the port is in use. Stop what listens there, or \
                 choose another with {flag} (port 0 takes a free one)"
            ),
            _ => format!("cannot listen on {address}: {e}. Choose another with {flag}"),
        };
        Failure::new(Exit::Blocked, text)
    };
    let socket = TcpListener::bind(address).await.map_err(failed)?;
    let address = socket.local_addr().map_err(failed)?;
    Ok((socket, address))
}
