//! Which cluster, and whether it answers.

use crate::exit::{Exit, Failure};
use edge::kubernetes::{ConnectError, ConnectFrom, connect};
use http::Request;
use kube::Client;
use serde_json::Value;
use std::path::PathBuf;
use std::time::Duration;

/// How long the API server may take to answer one question.
const LIMIT: Duration = Duration::from_secs(10);

/// Which cluster.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct ClusterArgs {
    /// A kubeconfig file
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// A context of the kubeconfig other than its current one
    #[arg(long, value_name = "NAME", requires = "kubeconfig")]
    pub context: Option<String>,
}

impl ClusterArgs {
    /// Where the cluster's address comes from; `otherwise` is used without --kubeconfig.
    #[must_use]
    pub fn origin(&self, otherwise: ConnectFrom) -> ConnectFrom {
        match &self.kubeconfig {
            Some(path) => {
                ConnectFrom::Kubeconfig { path: path.clone(), context: self.context.clone() }
            }
            None => otherwise,
        }
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
    let request = Request::get(path)
        .body(Vec::new())
        .map_err(|e| Failure::new(Exit::Usage, format!("{path} is no path: {e}")))?;
    let failed = |exit, why: String, advice| Err(unread(exit, path, &why, advice));
    match tokio::time::timeout(LIMIT, client.request::<Value>(request)).await {
        Err(_) => {
            let why = format!("no answer within {} s", LIMIT.as_secs());
            failed(Exit::Unavailable, why, "Check the server's address in the kubeconfig")
        }
        Ok(Ok(value)) => Ok(Some(value)),
        Ok(Err(kube::Error::Api(status))) => {
            let why = format!("HTTP {}: {}", status.code, status.message);
            match status.code {
                401 => failed(Exit::Credential, why, "Check the credentials in the kubeconfig"),
                403 => failed(Exit::Credential, why, "Grant it to the user of the kubeconfig"),
                404 => Ok(None),
                _ => failed(Exit::Unavailable, why, "Try again later"),
            }
        }
        Ok(Err(e)) => {
            let advice = "Check that the cluster runs and the server's address in the kubeconfig";
            failed(Exit::Unavailable, causes(&e), advice)
        }
    }
}

fn unread(exit: Exit, path: &str, why: &str, advice: &str) -> Failure {
    Failure::new(exit, format!("cannot read {path} from the API server: {why}. {advice}"))
}

/// An error with its causes, each said once.
fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let said = cause.to_string();
        if !text.contains(&said) {
            text.push_str(": ");
            text.push_str(&said);
        }
        next = cause.source();
    }
    text
}
