//! A listener that speaks TLS.
//!
//! # Guarantees
//! The certificate and its key are read again while connections are accepted: cert-manager and the
//! kubelet renew them in place. Files that cannot be used leave what is in use, and the log says
//! so.

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
use tokio::sync::{mpsc, watch};
use tokio::task::AbortHandle;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// How long a client may take to shake hands.
const HANDSHAKE: Duration = Duration::from_secs(5);
/// Clients that may shake hands at a time; one more ends the oldest.
const HANDSHAKES: usize = 256;
/// How often the files are looked at: a certificate is renewed days before it expires, but one
/// that was revoked has to go soon.
const RENEWAL: Duration = Duration::from_secs(10);
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

/// A certificate and its key, and the files that they come from.
#[derive(Clone)]
pub struct Identity {
    config: Arc<ServerConfig>,
    chain: Vec<CertificateDer<'static>>,
    certificate: PathBuf,
    key: PathBuf,
}

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
            .with_single_cert(chain.clone(), private)
            .map_err(pair)?;
        let (certificate, key) = (certificate.to_owned(), key.to_owned());
        Ok(Self { config: Arc::new(config), chain, certificate, key })
    }

    fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(Arc::clone(&self.config))
    }

    /// Reads the files again and again while anyone looks at `acceptors`. A chain that is the same
    /// has the same key.
    async fn renew(mut self, acceptors: watch::Sender<TlsAcceptor>, pace: Duration) {
        let mut said = String::new();
        loop {
            tokio::select! {
                () = acceptors.closed() => return,
                () = tokio::time::sleep(pace) => {}
            }
            let (certificate, key) = (self.certificate.clone(), self.key.clone());
            let reading = tokio::task::spawn_blocking(move || Self::read(&certificate, &key));
            let Ok(read) = reading.await else { continue };
            let shown = self.certificate.display();
            match read {
                Ok(read) if read.chain == self.chain => said.clear(),
                Ok(read) => {
                    tracing::info!("the certificate in {shown} was renewed, and is in use");
                    acceptors.send_replace(read.acceptor());
                    self = read;
                    said.clear();
                }
                Err(why) => {
                    let why = why.to_string();
                    if said != why {
                        tracing::warn!("the certificate in use stays: {why}");
                        said = why;
                    }
                }
            }
        }
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
    pub fn new(socket: TcpListener, identity: Identity) -> io::Result<Self> {
        Self::renewing(socket, identity, RENEWAL)
    }

    fn renewing(socket: TcpListener, identity: Identity, pace: Duration) -> io::Result<Self> {
        let address = socket.local_addr()?;
        let (acceptors, acceptor) = watch::channel(identity.acceptor());
        tokio::spawn(identity.renew(acceptors, pace));
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
                let (acceptor, sender) = (acceptor.borrow().clone(), sender.clone());
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

#[cfg(test)]
mod tests {
    use super::*;
    use axum::serve::Listener as _;
    use std::process::{Command, Stdio};

    /// A certificate for this name and its key, in these files.
    fn make(name: &str, certificate: &Path, key: &Path) {
        let made = Command::new("openssl")
            .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"])
            .args(["-nodes", "-subj", &format!("/CN={name}"), "-keyout"])
            .args([key.as_os_str(), "-out".as_ref(), certificate.as_os_str()])
            .stderr(Stdio::null())
            .status();
        assert!(made.unwrap().success());
    }

    /// What a client is shown.
    async fn shown(address: SocketAddr) -> String {
        let client = tokio::task::spawn_blocking(move || {
            Command::new("openssl")
                .args(["s_client", "-connect", &address.to_string()])
                .stdin(Stdio::null())
                .stderr(Stdio::null())
                .output()
        });
        String::from_utf8_lossy(&client.await.unwrap().unwrap().stdout).into_owned()
    }

    #[tokio::test]
    async fn a_certificate_that_is_renewed_is_shown_and_an_unfit_one_is_not() {
        let folder = std::env::temp_dir().join(format!("ballast-tls-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (certificate, key) = (folder.join("tls.crt"), folder.join("tls.key"));
        make("first.example", &certificate, &key);
        let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let identity = Identity::read(&certificate, &key).unwrap();
        let pace = Duration::from_millis(20);
        let mut listener = TlsListener::renewing(socket, identity, pace).unwrap();
        let address = listener.local_addr().unwrap();
        let serving = tokio::spawn(async move {
            loop {
                drop(listener.accept().await);
            }
        });
        assert!(shown(address).await.contains("first.example"));
        std::fs::write(&key, "half").unwrap();
        tokio::time::sleep(pace * 5).await;
        assert!(shown(address).await.contains("first.example"), "the one in use stays");
        make("second.example", &certificate, &key);
        let renewed = async { while !shown(address).await.contains("second.example") {} };
        tokio::time::timeout(Duration::from_secs(20), renewed).await.expect("it is renewed");
        serving.abort();
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
