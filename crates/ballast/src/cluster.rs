//! Which cluster, and whether it answers.

use crate::exit::{Exit, Failure};
use edge::kubernetes::{ConnectError, ConnectFrom, connect};
use edge::terminal::safe;
use edge::web::chain;
use http::Request;
use kube::Client;
use model::kubernetes::FIELD_MANAGER;
use model::pause::PAUSE;
use model::{Pause, ServiceName};
use serde_json::{Value, json};
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// How long the API server may take to answer one question.
const LIMIT: Duration = Duration::from_secs(10);
/// The Namespace whose UID identifies a cluster.
const KUBE_SYSTEM: &str = "/api/v1/namespaces/kube-system";

/// Which cluster.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct ClusterArgs {
    /// Use this kubeconfig [default: KUBECONFIG, else ~/.kube/config, else the Pod's service
    /// account; `run` and `node-agent` read ~/.kube/config only with --context]
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Use this context of the kubeconfig instead of the current one
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
}

impl ClusterArgs {
    /// Where the cluster's address comes from; `otherwise` is used where no flag says it.
    #[must_use]
    pub fn origin(&self, otherwise: ConnectFrom) -> ConnectFrom {
        match (&self.kubeconfig, &self.context) {
            (Some(path), context) => {
                ConnectFrom::Kubeconfig { path: path.clone(), context: context.clone() }
            }
            (None, Some(context)) => ConnectFrom::Context(context.clone()),
            (None, None) => otherwise,
        }
    }

    /// Whether a flag names a cluster.
    #[must_use]
    pub fn is_named(&self) -> bool {
        self.kubeconfig.is_some() || self.context.is_some()
    }
}

/// What requests say who they are from.
#[must_use]
pub fn user_agent() -> String {
    format!("ballast/{}", env!("CARGO_PKG_VERSION"))
}

/// A client; nothing is asked yet.
///
/// # Errors
/// Nothing says where the cluster is, or what says so is of no use.
pub async fn client(from: &ConnectFrom) -> Result<Client, Failure> {
    connect(from, &user_agent()).await.map_err(|e: ConnectError| Failure::new(Exit::Usage, e))
}

/// Asks the API server for its version.
///
/// # Errors
/// It does not answer, or not to us.
pub async fn probe(client: &Client) -> Result<(), Failure> {
    get(client, "/version").await.map(|_| ())
}

/// The UID of the Namespace `kube-system`, by which the field identifies a cluster. `None` without
/// the right to read it: then resources that carry a cluster's UID are this cluster's only by the
/// UIDs of its Services.
///
/// # Errors
/// The API server cannot be reached, or does not know who asks.
pub async fn uid(client: &Client) -> Result<Option<Arc<str>>, Failure> {
    match ask(client, KUBE_SYSTEM).await {
        Ok(found) => Ok(found["metadata"]["uid"].as_str().map(Arc::from)),
        Err((Some(403 | 404), failure)) => {
            tracing::warn!("the cluster's UID is not known: {failure}");
            Ok(None)
        }
        Err((_, failure)) => Err(failure),
    }
}

/// Reads one path.
///
/// # Errors
/// The API server cannot be reached, refuses, or has nothing there.
pub async fn get(client: &Client, path: &str) -> Result<Value, Failure> {
    let found = find(client, path).await?;
    found.ok_or_else(|| unread(Exit::Usage, path, "HTTP 404: it is not there", "Check the name"))
}

/// Reads one path, where there may be nothing.
///
/// # Errors
/// The API server cannot be reached, or refuses.
pub async fn find(client: &Client, path: &str) -> Result<Option<Value>, Failure> {
    match ask(client, path).await {
        Ok(value) => Ok(Some(value)),
        Err((Some(404), _)) => Ok(None),
        Err((_, failure)) => Err(failure),
    }
}

/// What an API server would make of a write that it is only asked to try.
#[derive(Clone, Debug, PartialEq)]
pub enum Rehearsal {
    /// It would store this.
    Stored(Value),
    /// It would refuse it, and why.
    Refused(String),
    /// It does not let this user try.
    NotAllowed,
}

/// Writes with `dryRun=All`: the API server's own defaulting and checks, and nothing is stored.
///
/// # Errors
/// The API server cannot be reached, or does not know who asks.
pub async fn rehearse(
    client: &Client,
    method: &str,
    path: &str,
    object: &Value,
) -> Result<Rehearsal, Failure> {
    let at = format!("{path}?dryRun=All&fieldManager={FIELD_MANAGER}");
    let body = object.to_string().into_bytes();
    let request = Request::builder()
        .method(method)
        .uri(&at)
        .header(http::header::CONTENT_TYPE, "application/json")
        .body(body)
        .map_err(|e| Failure::new(Exit::Usage, format!("{path} is no path: {e}")))?;
    match send(client, request, path).await {
        Ok(value) => Ok(Rehearsal::Stored(value)),
        Err((Some(400 | 409 | 422), _, message)) => Ok(Rehearsal::Refused(message)),
        // A namespace that is not there yet cannot be tried, either.
        Err((Some(403..=405), ..)) => Ok(Rehearsal::NotAllowed),
        Err((_, failure, _)) => Err(failure),
    }
}

/// The path of a Lease.
fn lease_path(lease: &ServiceName) -> String {
    let ServiceName { namespace, name } = lease;
    format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{name}")
}

/// What an operator has paused; `None` as well where the Lease cannot be read.
pub async fn pause(client: &Client, lease: &ServiceName) -> Option<Pause> {
    read_pause(client, lease).await.ok().flatten()
}

async fn read_pause(
    client: &Client,
    lease: &ServiceName,
) -> Result<Option<Pause>, (Option<u16>, Failure)> {
    match ask(client, &lease_path(lease)).await {
        Ok(found) => Ok(found["metadata"]["annotations"][PAUSE].as_str().and_then(Pause::read)),
        Err((Some(404), _)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether a command may begin to write to Azure: during a pause it would only wait for the pause
/// to end. A user without the right to read the Lease is warned.
///
/// # Errors
/// An operator has paused writes, or the Lease cannot be read for another reason than HTTP 403.
pub async fn refuse_if_paused(client: &Client, lease: &ServiceName) -> Result<(), Failure> {
    let pause = match read_pause(client, lease).await {
        Ok(pause) => pause,
        Err((Some(403), failure)) => {
            let text = format!("warning: `ballast pause --all` is not heeded: {failure}");
            // A closed stderr does not stop the command.
            let _ = writeln!(io::stderr(), "{}", safe(&text));
            None
        }
        Err((_, failure)) => return Err(failure),
    };
    let Some(pause) = pause else { return Ok(()) };
    let text = format!(
        "nothing was written: {pause} are paused by an operator. `ballast resume --all` ends the \
         pause"
    );
    Err(Failure::new(Exit::Failed, text))
}

/// The field manager of the edits that `ballast pause`, `resume` and `retry` make for a Service's
/// owner. The controller's own manager would not do: its edits do not count as the owner's.
const EDITOR: &str = "kubectl-ballast";

/// Sets an annotation of a Service, or takes it off.
///
/// # Errors
/// There is no such Service, or the API server cannot be reached or refuses.
pub async fn annotate(
    client: &Client,
    service: &ServiceName,
    key: &str,
    value: Option<&str>,
) -> Result<(), Failure> {
    let path = format!("/api/v1/namespaces/{}/services/{}", service.namespace, service.name);
    match patch_annotation(client, &path, key, value).await {
        Ok(()) => Ok(()),
        Err((Some(404), ..)) => {
            let text = format!("there is no Service {service}. Check the name and -n");
            Err(Failure::new(Exit::Usage, text))
        }
        Err((Some(status), failure, message)) => {
            let text = format!(
                "cannot annotate Service {service}: HTTP {status}: {message}. It needs the right \
                 to patch services in namespace {}",
                service.namespace
            );
            Err(Failure::new(failure.exit, text))
        }
        Err((None, failure, _)) => Err(failure),
    }
}

/// Sets an annotation of a Lease, or takes it off.
///
/// # Errors
/// There is no such Lease, or the API server cannot be reached or refuses.
pub async fn annotate_lease(
    client: &Client,
    lease: &ServiceName,
    key: &str,
    value: Option<&str>,
) -> Result<(), Failure> {
    match patch_annotation(client, &lease_path(lease), key, value).await {
        Ok(()) => Ok(()),
        Err((Some(404), ..)) => {
            let text = format!(
                "there is no Lease {lease}, by which a controller leads. Check \
                 --leader-elect-resource-namespace and --leader-elect-resource-name"
            );
            Err(Failure::new(Exit::Usage, text))
        }
        Err((Some(status), failure, message)) => {
            let text = format!(
                "cannot annotate Lease {lease}: HTTP {status}: {message}. It needs the right to \
                 patch leases in namespace {}",
                lease.namespace
            );
            Err(Failure::new(failure.exit, text))
        }
        Err((None, failure, _)) => Err(failure),
    }
}

/// Sets an annotation of an object, or takes it off; a failure comes with its HTTP status and the
/// API server's message.
async fn patch_annotation(
    client: &Client,
    path: &str,
    key: &str,
    value: Option<&str>,
) -> Result<(), (Option<u16>, Failure, String)> {
    let body = json!({"metadata": {"annotations": {key: value}}}).to_string().into_bytes();
    let request = Request::patch(format!("{path}?fieldManager={EDITOR}"))
        .header(http::header::CONTENT_TYPE, "application/merge-patch+json")
        .body(body)
        .map_err(|e| {
            (None, Failure::new(Exit::Usage, format!("{path} is no path: {e}")), String::new())
        })?;
    send(client, request, path).await.map(|_| ())
}

/// Reads one path; a failure comes with its HTTP status, where the API server answered.
async fn ask(client: &Client, path: &str) -> Result<Value, (Option<u16>, Failure)> {
    let request = Request::get(path)
        .body(Vec::new())
        .map_err(|e| (None, Failure::new(Exit::Usage, format!("{path} is no path: {e}"))))?;
    send(client, request, path).await.map_err(|(status, failure, _)| (status, failure))
}

/// Sends a request; a failure comes with its HTTP status and the API server's message.
async fn send(
    client: &Client,
    request: Request<Vec<u8>>,
    path: &str,
) -> Result<Value, (Option<u16>, Failure, String)> {
    let failed = |exit, why: String, advice| unread(exit, path, &why, advice);
    match tokio::time::timeout(LIMIT, client.request::<Value>(request)).await {
        Err(_) => {
            let why = format!("no answer within {} s", LIMIT.as_secs());
            let advice = "Check the server's address in the kubeconfig";
            Err((None, failed(Exit::Unavailable, why, advice), String::new()))
        }
        Ok(Ok(value)) => Ok(value),
        Ok(Err(kube::Error::Api(status))) => {
            let why = format!("HTTP {}: {}", status.code, status.message);
            let (exit, advice) = match status.code {
                401 => (Exit::Credential, "Check the credentials in the kubeconfig"),
                403 => (Exit::Credential, "Grant it to the user of the kubeconfig"),
                _ => (Exit::Unavailable, "Try again later"),
            };
            Err((Some(status.code), failed(exit, why, advice), status.message.clone()))
        }
        Ok(Err(e)) => {
            let advice = "Check that the cluster runs and the server's address in the kubeconfig";
            Err((None, failed(Exit::Unavailable, chain(&e), advice), String::new()))
        }
    }
}

fn unread(exit: Exit, path: &str, why: &str, advice: &str) -> Failure {
    Failure::new(exit, format!("cannot read {path} from the API server: {why}. {advice}"))
}
