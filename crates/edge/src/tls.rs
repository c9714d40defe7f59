//! A listener that speaks TLS.

use rustls::ServerConfig;
use rustls_pki_types::pem::{self, PemObject};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// How long a client may take to shake hands.
const HANDSHAKE: Duration = Duration::from_secs(5);
/// Clients that may shake hands at a time; one more ends the oldest.
const HANDSHAKES: usize = 256;
/// Connections that wait to be served.
const BACKLOG: usize = 64;

/// Why TLS cannot be spoken.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read, or has not in it what is wanted.
    #[error("cannot read the {what} in {}: {why}. Give a PEM file", file.display())]
    File {
        /// Certificate or key.
        what: &'static str,
        /// The file.
        file: PathBuf,
        /// Why.
        why: pem::Error,
    },
    /// Certificate and key do not go together.
    #[error("cannot speak TLS with {}: {why}. Give the key that belongs to the certificate",
        file.display())]
    Pair {
        /// The certificate's file.
        file: PathBuf,
        /// Why.
        why: rustls::Error,
    },
}

/// A certificate and its key.
#[derive(Clone)]
pub struct Identity(Arc<ServerConfig>);

impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Identity")
    }
}

impl Identity {
    /// Reads both from PEM files.
    ///
    /// # Errors
    /// A file cannot be read, or the two do not go together.
    pub fn read(certificate: &Path, key: &Path) -> Result<Self, TlsError> {
        let failed = |what, file: &Path| {
            let file = file.to_owned();
            move |why| TlsError::File { what, file, why }
        };
        let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(certificate)
            .and_then(Iterator::collect)
            .map_err(failed("certificate", certificate))?;
        let private = PrivateKeyDer::from_pem_file(key).map_err(failed("key", key))?;
        let pair = |why| TlsError::Pair { file: certificate.to_owned(), why };
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(pair)?
            .with_no_client_auth()
            .with_single_cert(chain, private)
            .map_err(pair)?;
        Ok(Self(Arc::new(config)))
    }
}

/// Connections over TLS. Who is slow to shake hands holds up nobody else.
#[derive(Debug)]
pub struct TlsListener {
    ready: mpsc::Receiver<(TlsStream<TcpStream>, SocketAddr)>,
    address: SocketAddr,
}

impl TlsListener {
    /// Speaks TLS on a socket.
    ///
    /// # Errors
    /// The socket is not bound.
    pub fn new(socket: TcpListener, identity: &Identity) -> io::Result<Self> {
        let address = socket.local_addr()?;
        let acceptor = TlsAcceptor::from(Arc::clone(&identity.0));
        let (sender, ready) = mpsc::channel(BACKLOG);
        tokio::spawn(async move {
            let mut shaking: VecDeque<AbortHandle> = VecDeque::new();
            loop {
                let accepted = tokio::select! {
                    () = sender.closed() => return,
                    accepted = socket.accept() => accepted,
                };
                let Ok((stream, peer)) = accepted else {
                    // Out of file descriptors, for one: it passes.
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                };
                let (acceptor, sender) = (acceptor.clone(), sender.clone());
                shaking.retain(|task| !task.is_finished());
                if shaking.len() >= HANDSHAKES
                    && let Some(oldest) = shaking.pop_front()
                {
                    oldest.abort();
                }
                let task = tokio::spawn(async move {
                    let shaken = tokio::time::timeout(HANDSHAKE, acceptor.accept(stream)).await;
                    if let Ok(Ok(stream)) = shaken {
                        // Nobody serves any more: the connection ends.
                        let _ = sender.send((stream, peer)).await;
                    }
                });
                shaking.push_back(task.abort_handle());
            }
        });
        Ok(Self { ready, address })
    }
}

impl axum::serve::Listener for TlsListener {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        match self.ready.recv().await {
            Some(connection) => connection,
            // The task above ends only after this listener.
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        Ok(self.address)
    }
}
