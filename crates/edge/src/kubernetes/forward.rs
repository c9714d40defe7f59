//! A port of a Pod as a port of this machine, through the API server, as `kubectl port-forward`.
//!
//! # Guarantees
//! The port is on loopback. Each connection to it is a port-forward of its own, so that one that
//! breaks takes no other with it.

use crate::web::chain;
use k8s_openapi::api::core::v1::Pod;
use kube::client::UpgradeConnectionError;
use kube::{Api, Client};
use model::ServiceName;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// How long the kubelet's last words may take once a connection has ended.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Why a connection was not forwarded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ForwardError {
    /// The API server answered this HTTP status in place of a WebSocket, and why; empty where it
    /// gave no reason.
    Refused(u16, String),
    /// The connection to the API server or to the pod failed, in words.
    Failed(String),
}

/// A port that is forwarded until this is dropped.
#[derive(Debug)]
pub struct Forward {
    address: SocketAddr,
    trouble: Arc<Mutex<Option<ForwardError>>>,
    task: JoinHandle<()>,
}

impl Forward {
    /// Begins: `local` is the port on this machine, 0 a free one.
    ///
    /// # Errors
    /// The port of this machine is taken.
    pub async fn start(
        client: Client,
        pod: &ServiceName,
        port: u16,
        local: u16,
    ) -> io::Result<Self> {
        let socket = TcpListener::bind((Ipv4Addr::LOCALHOST, local)).await?;
        let address = socket.local_addr()?;
        let trouble = Arc::new(Mutex::new(None));
        let pods: Api<Pod> = Api::namespaced(client, &pod.namespace);
        let (name, told) = (pod.name.to_string(), Arc::clone(&trouble));
        let task = tokio::spawn(async move {
            loop {
                let Ok((mut stream, _)) = socket.accept().await else { return };
                let (pods, name, told) = (pods.clone(), name.clone(), Arc::clone(&told));
                tokio::spawn(async move {
                    if let Err(why) = carry(&pods, &name, port, &mut stream).await {
                        *told.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
                    }
                    // Closed last: `trouble` has the reason by the time the client sees the end.
                    drop(stream);
                });
            }
        });
        Ok(Self { address, trouble, task })
    }

    /// Where it is on this machine.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Why the last connection that failed did.
    #[must_use]
    pub fn trouble(&self) -> Option<ForwardError> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Forward {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Carries one connection until the pod's side ends. The side of this machine stays open.
async fn carry(
    pods: &Api<Pod>,
    name: &str,
    port: u16,
    here: &mut TcpStream,
) -> Result<(), ForwardError> {
    let failed = |why: &str| ForwardError::Failed(why.to_owned());
    let mut forwarded = pods.portforward(name, &[port]).await.map_err(|e| match &e {
        kube::Error::Api(status) => ForwardError::Refused(status.code, status.message.clone()),
        kube::Error::UpgradeConnection(UpgradeConnectionError::ProtocolSwitch(status)) => {
            ForwardError::Refused(status.as_u16(), String::new())
        }
        _ => ForwardError::Failed(chain(&e)),
    })?;
    let told = forwarded.take_error(port);
    let there = forwarded.take_stream(port);
    let there = there.ok_or_else(|| failed("the API server forwards another port"))?;
    let copied = copy(here, there).await;
    // The kubelet tells of a Pod that does not listen while the connection ends.
    let last_words = async {
        if let Some(told) = told
            && let Some(why) = told.await
        {
            return Err(failed(&why));
        }
        forwarded.join().await.map_err(|e| failed(&chain(&e)))
    };
    if let Ok(Err(why)) = tokio::time::timeout(LAST_WORDS, last_words).await {
        return Err(why);
    }
    copied.map_err(|e| failed(&e.to_string()))
}

/// Copies both ways until the pod's side ends. `copy_bidirectional` would then close the side of
/// this machine before the reason is known.
async fn copy(here: &mut TcpStream, there: impl AsyncRead + AsyncWrite) -> io::Result<()> {
    let (mut from_here, mut to_here) = here.split();
    let (mut from_pod, mut to_pod) = tokio::io::split(there);
    let sending = async {
        tokio::io::copy(&mut from_here, &mut to_pod).await?;
        to_pod.shutdown().await
    };
    let receiving = tokio::io::copy(&mut from_pod, &mut to_here);
    tokio::pin!(sending, receiving);
    tokio::select! {
        sent = &mut sending => sent?,
        received = &mut receiving => return received.map(|_| ()),
    }
    receiving.await.map(|_| ())
}
