//! Documents of a running controller: of one at an address, or of the leading pod, through a
//! port-forward that this program makes itself.

use crate::cluster::{self, ClusterArgs};
use crate::exit::{Exit, Failure};
use crate::lease::LeaseName;
use bytes::Bytes;
use edge::kubernetes::ConnectFrom;
use edge::kubernetes::connect::kubeconfig_names_cluster;
use edge::kubernetes::forward::{Forward, ForwardError};
use edge::web::Web;
use http_body_util::Full;
use model::ServiceName;
use serde::de::DeserializeOwned;
use std::time::Duration;
use tokio::net::TcpStream;

/// Where a controller on this machine serves its documents.
pub const SERVER: &str = "http://127.0.0.1:10270";
/// How long an answer may take.
const LIMIT: Duration = Duration::from_secs(10);

/// Asks a controller for a document; `noun` is what it is called.
///
/// # Errors
/// No controller answers, or it answers something else.
pub async fn ask<T: DeserializeOwned>(server: &str, path: &str, noun: &str) -> Result<T, Failure> {
    let url = format!("{}{path}", server.trim_end_matches('/'));
    let failed = |exit: Exit, why: &str| {
        let advice = "Check --server: it is where `ballast run` or `ballast up` serves health and \
                      metrics";
        Failure::new(exit, format!("no {noun} from {url}: {why}. {advice}"))
    };
    let request = http::Request::get(&url)
        .body(Full::new(Bytes::new()))
        .map_err(|e| failed(Exit::Usage, &e.to_string()))?;
    let web = if url.starts_with("https:") { Web::new() } else { Web::loopback() };
    let web = web.map_err(|e| Failure::new(Exit::Usage, e))?;
    let reply =
        web.send(request, LIMIT).await.map_err(|e| failed(Exit::Unavailable, &e.to_string()))?;
    if !reply.status.is_success() {
        let text = String::from_utf8_lossy(&reply.body);
        let why = format!("HTTP {}: {}", reply.status.as_u16(), text.trim());
        return Err(failed(Exit::Unavailable, &why));
    }
    serde_json::from_slice(&reply.body)
        .map_err(|e| failed(Exit::Unavailable, &format!("the answer is no {noun}: {e}")))
}

/// The port on a pod's loopback where the manifests in deploy/ have the console.
pub const CONSOLE_PORT: u16 = 10_271;

/// Whether the leading pod is asked.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct LeaderArgs {
    /// Ask the leader's Pod, which the Lease names, through a port-forward [default of `kubectl
    /// ballast`, unless another option says where to read from]
    #[arg(long)]
    pub leader: bool,
    /// Port of the console in the leader's Pod (`run --console-port`)
    #[arg(long, value_name = "PORT", default_value_t = CONSOLE_PORT)]
    pub leader_port: u16,
}

/// Which running controller is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Whom {
    /// The one at this URL.
    Server(String),
    /// The leading pod.
    Leader,
}

impl Whom {
    /// What flags name goes first. Without any the controller of this machine is asked; where none
    /// runs here, the leading pod of the cluster that kubectl would ask.
    pub async fn choose(server: Option<&str>, leader: LeaderArgs, cluster: &ClusterArgs) -> Self {
        if let Some(server) = server {
            return Self::Server(server.to_owned());
        }
        // Flags that name a cluster mean that cluster, and not whatever runs on this machine.
        let is_named = leader.leader || cluster.is_named();
        if is_named || (kubeconfig_names_cluster() && !runs_here().await) {
            return Self::Leader;
        }
        Self::Server(SERVER.to_owned())
    }
}

/// Whether anything listens where a controller of this machine would.
async fn runs_here() -> bool {
    let address = SERVER.trim_start_matches("http://");
    TcpStream::connect(address).await.is_ok()
}

/// The leading pod, reached through a port-forward.
#[derive(Debug)]
pub struct Leader {
    /// Its namespace and name.
    pub pod: ServiceName,
    /// The namespace of the kubeconfig's context.
    pub namespace: String,
    /// The Lease and when its holder last renewed it, in words.
    lease: String,
    port: u16,
    forward: Forward,
}

impl Leader {
    /// Finds it by the Lease, and forwards a port of this machine to it: `local`, 0 is a free one.
    ///
    /// # Errors
    /// The cluster cannot be asked, no process leads, or the port of this machine is taken.
    pub async fn find(
        cluster: &ClusterArgs,
        lease: &LeaseName,
        port: u16,
        local: u16,
    ) -> Result<Self, Failure> {
        let client = cluster::client(&cluster.origin(ConnectFrom::Environment)).await?;
        let namespace = &lease.leader_elect_resource_namespace;
        let name = &lease.leader_elect_resource_name;
        let path = format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{name}");
        let none = |why: &str| {
            let text = format!(
                "cannot find the leading pod: Lease {namespace}/{name} {why}. Check that a \
                 controller runs in the cluster, and --leader-elect-resource-namespace and \
                 --leader-elect-resource-name; --server asks a controller at an address"
            );
            Failure::new(Exit::Unavailable, text)
        };
        let Some(found) = cluster::find(&client, &path).await? else {
            return Err(none("does not exist"));
        };
        let holder = found["spec"]["holderIdentity"].as_str().unwrap_or_default();
        if holder.is_empty() {
            return Err(none("has no holder"));
        }
        let renewed = found["spec"]["renewTime"].as_str().unwrap_or("an unknown time");
        let lease = format!("Lease {namespace}/{name}, last renewed at {renewed}");
        // A holder is called after its host, which is the pod, and a random number.
        let pod = holder.rsplit_once('_').map_or(holder, |(pod, _)| pod);
        let pod = ServiceName::new(namespace, pod);
        let namespace = client.default_namespace().to_owned();
        let forward = Forward::start(client, &pod, port, local).await.map_err(|e| {
            let text = format!(
                "cannot listen on port {local} of loopback: {e}. Choose another with --port"
            );
            Failure::new(Exit::Blocked, text)
        })?;
        Ok(Self { pod, namespace, lease, port, forward })
    }

    /// Where it is reached on this machine.
    #[must_use]
    pub fn server(&self) -> String {
        format!("http://{}", self.forward.address())
    }

    /// Asks it for a document.
    ///
    /// # Errors
    /// The port-forward fails, or the pod does not answer.
    pub async fn ask<T: DeserializeOwned>(&self, path: &str, noun: &str) -> Result<T, Failure> {
        let asked = ask(&self.server(), path, noun).await;
        asked.map_err(|failure| match self.forward.trouble() {
            None => failure,
            Some(trouble) => {
                let (exit, why) = self.explain(&trouble);
                let text = format!("no {noun} from pod {}: port-forward {why}", self.pod);
                Failure::new(exit, text)
            }
        })
    }

    /// What a failed port-forward means, and what to do.
    fn explain(&self, trouble: &ForwardError) -> (Exit, String) {
        let Self { pod, lease, port, .. } = self;
        let (status, message) = match trouble {
            ForwardError::Refused(status, message) => (*status, message),
            ForwardError::Failed(why) => {
                let text = format!(
                    "to port {port} failed: {why}. --leader-port must be the --console-port of \
                     the pod"
                );
                return (Exit::Unavailable, text);
            }
        };
        let (exit, advice) = match status {
            401 => (Exit::Credential, "Check the credentials in the kubeconfig".to_owned()),
            // A WebSocket is opened with GET; newer API servers ask for `create` besides.
            403 => (
                Exit::Credential,
                format!(
                    "Grant the verbs get and create on pods/portforward in namespace {} to your \
                     user",
                    pod.namespace
                ),
            ),
            404 => (
                Exit::Unavailable,
                format!(
                    "It is the holder of {lease}. If the pod is gone, a standby leads after the \
                     lease duration: try again. If the controller runs with hostNetwork or \
                     outside of the cluster, give --server"
                ),
            ),
            _ => (Exit::Unavailable, "Check that the pod runs, and try again".to_owned()),
        };
        (exit, format!("refused with HTTP {status}: {message}. {advice}"))
    }
}
