//! Finds the API server.

use crate::origin::{Origin, Scheme};
use crate::proxy::Proxies;
use crate::web::chain;
use http::header::USER_AGENT;
use http::{HeaderValue, Uri};
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};
use std::path::PathBuf;

/// The kubeconfig where nothing names another.
const HOME: &str = "~/.kube/config";

/// Whether `KUBECONFIG` or `~/.kube/config` names a cluster, as kubectl asks it.
#[must_use]
pub fn kubeconfig_names_cluster() -> bool {
    Kubeconfig::read().is_ok_and(|file| file.current_context.is_some_and(|c| !c.is_empty()))
}

/// Where the cluster's address and credentials come from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ConnectFrom {
    /// `KUBECONFIG` or `~/.kube/config`, else the pod's service account.
    #[default]
    Environment,
    /// `KUBECONFIG`, else the pod's service account. The file in the user's home is left alone: a
    /// controller writes, and which cluster that file points at changes with the user's work.
    Service,
    /// A kubeconfig file.
    Kubeconfig {
        /// The file.
        path: PathBuf,
        /// A context other than the current one.
        context: Option<String>,
    },
    /// A context of `KUBECONFIG`, without that of `~/.kube/config`: who names the context means one
    /// cluster.
    Context(String),
    /// A server without credentials: an emulator on loopback.
    Address(String),
}

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// Nothing says where the cluster is.
    #[error(
        "no Kubernetes cluster is configured: {0}. Give --kubeconfig, set \
         KUBECONFIG, or run in a pod"
    )]
    Nowhere(String),
    /// The file is of no use.
    #[error(
        "cannot use the kubeconfig {path}: {why}. Check --kubeconfig, KUBECONFIG and the \
         context"
    )]
    Kubeconfig {
        /// The file.
        path: String,
        /// Why.
        why: String,
    },
    /// The address is no URL.
    #[error("the API server's address is refused: {0}")]
    Address(#[from] crate::origin::OriginError),
    /// The client cannot be built.
    #[error(
        "cannot build a client for the API server {server}: {why}. \
         Check its certificates and credentials in the kubeconfig"
    )]
    Client {
        /// The server.
        server: String,
        /// Why.
        why: String,
    },
}

/// A client. It does not retry by itself: retries are the controller's business.
///
/// # Errors
/// See [`ConnectError`]. The server is not asked for anything yet.
pub async fn connect(from: &ConnectFrom, user_agent: &str) -> Result<Client, ConnectError> {
    let mut config = match from {
        ConnectFrom::Environment => {
            Config::infer().await.map_err(|e| ConnectError::Nowhere(chain(&e)))?
        }
        ConnectFrom::Service => match Kubeconfig::from_env() {
            Ok(None) => Config::incluster().map_err(|e| ConnectError::Nowhere(chain(&e)))?,
            file => {
                let path = std::env::var("KUBECONFIG").unwrap_or_default();
                read(file.map(Option::unwrap_or_default), &path, None).await?
            }
        },
        ConnectFrom::Kubeconfig { path, context } => {
            let file = Kubeconfig::read_from(path);
            read(file, &path.display().to_string(), context.clone()).await?
        }
        ConnectFrom::Context(context) => {
            let path = std::env::var("KUBECONFIG").unwrap_or_else(|_| HOME.to_owned());
            read(Kubeconfig::read(), &path, Some(context.clone())).await?
        }
        ConnectFrom::Address(url) => {
            let origin = Origin::parse("the API server", url)?;
            let unusable = |_| ConnectError::Nowhere(format!("{origin} is no URL"));
            let mut config = Config::new(origin.to_string().parse().map_err(unusable)?);
            if origin.scheme() == Scheme::LoopbackHttp {
                // No TLS, so no need for this machine to have certificate authorities.
                config.root_cert = Some(Vec::new());
            }
            config
        }
    };
    check_transport(&config)?;
    config.proxy_url = proxy(&config);
    config.default_retry = false;
    if let Ok(value) = HeaderValue::from_str(user_agent) {
        config.headers.push((USER_AGENT, value));
    }
    let server = config.cluster_url.to_string();
    Client::try_from(config).map_err(|e| ConnectError::Client { server, why: chain(&e) })
}

async fn read(
    file: Result<Kubeconfig, KubeconfigError>,
    path: &str,
    context: Option<String>,
) -> Result<Config, ConnectError> {
    let unusable = |why: String| ConnectError::Kubeconfig { path: path.to_owned(), why };
    let file = file.map_err(|e| unusable(chain(&e)))?;
    let options = KubeConfigOptions { context, ..Default::default() };
    let config = Config::from_custom_kubeconfig(file, &options).await;
    config.map_err(|e| unusable(chain(&e)))
}

/// The proxy that leads to the server. The library has `HTTPS_PROXY` lead to every server of a
/// kubeconfig, also to those that `NO_PROXY` names and to loopback.
fn proxy(config: &Config) -> Option<Uri> {
    let named = config.proxy_url.clone()?;
    let value = |name: &&str| std::env::var(name).ok();
    let mut of_environment = ["HTTPS_PROXY", "https_proxy"].iter().filter_map(value);
    let is_of_environment = of_environment.any(|url| url.parse::<Uri>().is_ok_and(|u| u == named));
    (!is_of_environment || Proxies::from_env().lead_to(&config.cluster_url)).then_some(named)
}

/// A token, and all that is read with it, must not cross a network in the clear.
fn check_transport(config: &Config) -> Result<(), ConnectError> {
    let server = config.cluster_url.to_string();
    Origin::parse("the API server", server.trim_end_matches('/'))?;
    if config.accept_invalid_certs {
        tracing::warn!(
            "the API server's certificate is not verified: the kubeconfig sets \
             insecure-skip-tls-verify for {server}; give certificate-authority instead"
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{self, Write};
    use std::sync::{Arc, Mutex};

    /// What is logged.
    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<u8>>>);

    impl Write for Log {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// The connection that a kubeconfig asks for whose cluster has one more key.
    async fn config(key: &str) -> Config {
        let text = format!(
            "{{apiVersion: v1, kind: Config, current-context: c,
            clusters: [{{name: c, cluster: {{server: 'https://api.example:6443', {key}}}}}],
            contexts: [{{name: c, context: {{cluster: c, user: u}}}}],
            users: [{{name: u, user: {{token: t}}}}]}}"
        );
        read(Kubeconfig::from_yaml(&text), "kubeconfig", None).await.unwrap()
    }

    /// It is taken, as kubectl takes it, and the log says what the operator has to give in its
    /// place.
    #[tokio::test]
    async fn a_certificate_that_is_not_verified_is_warned_of() {
        let verified = config("insecure-skip-tls-verify: false").await;
        let unverified = config("insecure-skip-tls-verify: true").await;
        let log = Log::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_ansi(false)
            .with_target(false)
            .with_writer(move || writer.clone())
            .finish();
        let text = || String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
        tracing::subscriber::with_default(subscriber, || {
            check_transport(&verified).unwrap();
            assert_eq!(text(), "");
            check_transport(&unverified).unwrap();
        });
        let text = text();
        let warning = "WARN the API server's certificate is not verified: the kubeconfig sets \
                       insecure-skip-tls-verify for https://api.example:6443/; give \
                       certificate-authority instead\n";
        assert!(text.ends_with(warning) && text.lines().count() == 1, "{text}");
    }
}
