//! Where `run` serves health, metrics, status and the console, and to whom.

use crate::command::listening;
use crate::console::access::Access;
use crate::exit::{Exit, Failure};
use crate::pages::Pages;
use edge::tls::{Identity, TlsListener};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// The port of health, metrics and the console.
pub const PORT: u16 = 10_270;

/// Where and to whom pages are served.
#[derive(Debug, clap::Args)]
pub struct ServingArgs {
    /// Serve health and metrics on this address; on a loopback address, or with a token and TLS,
    /// also status and the console
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    pub bind_address: IpAddr,
    /// Port of --bind-address [default: 10270, or a free port where 10270 is in use]
    #[arg(long, value_name = "PORT")]
    pub port: Option<u16>,
    /// Also serve status and the console on this port of 127.0.0.1, for `kubectl port-forward`
    #[arg(long, value_name = "PORT")]
    pub console_port: Option<u16>,
    /// Require the token in this file for status and the console
    #[arg(long, value_name = "FILE")]
    pub console_token_file: Option<PathBuf>,
    /// Serve TLS with the certificate chain in this PEM file
    #[arg(long, value_name = "FILE", requires = "tls_key_file")]
    pub tls_cert_file: Option<PathBuf>,
    /// Private key of the certificate, a PEM file
    #[arg(long, value_name = "FILE", requires = "tls_cert_file")]
    pub tls_key_file: Option<PathBuf>,
}

impl ServingArgs {
    /// Binds, and serves until stopped.
    ///
    /// # Errors
    /// A port is taken, a file cannot be used, or a token would go over the network in plain.
    pub async fn serve(&self, pages: &Pages, stop: &CancellationToken) -> Result<(), Failure> {
        let identity = match (&self.tls_cert_file, &self.tls_key_file) {
            (Some(certificate), Some(key)) => {
                Some(Identity::read(certificate, key).map_err(|e| Failure::new(Exit::Usage, e))?)
            }
            _ => None,
        };
        let access = self.access(identity.is_some())?;
        let (socket, address) = self.bind().await?;
        let shown = match access {
            Access::Nobody => "health and metrics",
            Access::Machine | Access::Token(_) => "console, health, metrics and status",
        };
        let (served, stopped) = (pages.clone(), stop.child_token());
        match identity {
            Some(identity) => {
                let listener = TlsListener::new(socket, identity).map_err(|e| {
                    Failure::new(Exit::Blocked, format!("cannot listen on {address}: {e}"))
                })?;
                tracing::info!("{shown} on https://{address}");
                tokio::spawn(served.serve(listener, access, stopped));
            }
            None => {
                tracing::info!("{shown} on http://{address}");
                tokio::spawn(served.serve(socket, access, stopped));
            }
        }
        if let Some(port) = self.console_port {
            let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
            let (socket, address) = listening(address, "--console-port").await?;
            tracing::info!("console on http://{address}");
            let access = self.token()?.unwrap_or(Access::Machine);
            tokio::spawn(pages.clone().serve(socket, access, stop.child_token()));
        }
        Ok(())
    }

    fn token(&self) -> Result<Option<Access>, Failure> {
        self.console_token_file.as_deref().map(Access::with_token).transpose()
    }

    fn access(&self, over_tls: bool) -> Result<Access, Failure> {
        let address = SocketAddr::new(self.bind_address, 0);
        match self.token()? {
            None => Ok(Access::at(address)),
            Some(token) if over_tls || address.ip().is_loopback() => Ok(token),
            // With --console-port the token is for loopback, and the plain address shows nothing.
            Some(_) if self.console_port.is_some() => Ok(Access::Nobody),
            Some(_) => {
                let text = format!(
                    "the console's token would be sent in plain: {} is no loopback address. Give \
                     --tls-cert-file and --tls-key-file, or --console-port",
                    self.bind_address
                );
                Err(Failure::new(Exit::Usage, text))
            }
        }
    }

    /// A port that was not asked for gives way: several controllers may run on one machine.
    async fn bind(&self) -> Result<(TcpListener, SocketAddr), Failure> {
        let address = |port| SocketAddr::new(self.bind_address, port);
        match self.port {
            Some(port) => listening(address(port), "--port").await,
            None => match listening(address(PORT), "--port").await {
                Ok(bound) => Ok(bound),
                Err(taken) => {
                    tracing::warn!("{taken}; taking a free port");
                    listening(address(0), "--bind-address").await
                }
            },
        }
    }
}
