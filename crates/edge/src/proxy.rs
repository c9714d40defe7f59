//! Connections through the proxy that the environment names: `HTTPS_PROXY`, else `ALL_PROXY`, with
//! `NO_PROXY`, in capitals or small letters.
//!
//! # Guarantees
//! Only what is TLS goes through a proxy, in a tunnel (CONNECT): the proxy reads nothing of it.
//! Loopback and the instance metadata service, which is plain HTTP, are reached directly.

use crate::origin::is_loopback;
use futures_util::future::BoxFuture;
use futures_util::{FutureExt, TryFutureExt};
use http::Uri;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use hyper_util::rt::TokioIo;
use std::error::Error;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::net::TcpStream;
use tower_service::Service;

type BoxError = Box<dyn Error + Send + Sync>;

/// Which servers are reached through which proxy.
#[derive(Clone, Debug)]
pub(crate) struct Proxies(Arc<Matcher>);

impl Proxies {
    /// As the environment says.
    pub fn from_env() -> Self {
        Self(Arc::new(Matcher::from_env()))
    }

    /// Every server is reached directly.
    pub fn none() -> Self {
        Self(Arc::new(Matcher::builder().build()))
    }

    #[cfg(test)]
    pub fn of(proxy: &str, no: &str) -> Self {
        let matcher = Matcher::builder().https(proxy.to_owned()).no(no.to_owned());
        Self(Arc::new(matcher.build()))
    }

    /// Whether a server is reached through a proxy.
    pub fn lead_to(&self, server: &Uri) -> bool {
        self.toward(server).is_some()
    }

    fn toward(&self, server: &Uri) -> Option<Intercept> {
        let direct = server.scheme_str() != Some("https") || server.host().is_none_or(is_loopback);
        if direct { None } else { self.0.intercept(server) }
    }
}

/// Opens sockets, directly or through a proxy.
#[derive(Clone, Debug)]
pub struct Sockets {
    direct: HttpConnector,
    proxies: Proxies,
}

impl Sockets {
    /// Sockets of `direct`, through `proxies` where they lead to a server.
    pub(crate) fn new(direct: HttpConnector, proxies: Proxies) -> Self {
        Self { direct, proxies }
    }
}

impl Service<Uri> for Sockets {
    type Response = TokioIo<TcpStream>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.direct.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, server: Uri) -> Self::Future {
        let Some(proxy) = self.proxies.toward(&server) else {
            return self.direct.call(server).map_err(Into::into).boxed();
        };
        if proxy.uri().scheme_str() != Some("http") {
            let why = format!("the proxy {} cannot be used: only http:// can be", proxy.uri());
            return async move { Err(why.into()) }.boxed();
        }
        let mut tunnel = Tunnel::new(proxy.uri().clone(), self.direct.clone());
        if let Some(password) = proxy.basic_auth() {
            tunnel = tunnel.with_auth(password.clone());
        }
        tunnel.call(server).map_err(Into::into).boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leads(no: &str, url: &str) -> bool {
        Proxies::of("http://proxy.example:3128", no).lead_to(&url.parse().unwrap())
    }

    #[test]
    fn what_is_tls_goes_through_the_proxy_unless_it_is_excepted() {
        assert!(leads("", "https://management.azure.com/subscriptions"));
        assert!(leads(".svc", "https://login.microsoftonline.com"));
        assert!(!leads("azure.com", "https://management.azure.com"));
        assert!(!leads("10.0.0.0/8", "https://10.1.2.3:6443"));
        for direct in ["http://169.254.169.254/metadata", "https://127.0.0.1:1", "https://[::1]"] {
            assert!(!leads("", direct), "{direct}");
        }
        assert!(!Proxies::none().lead_to(&Uri::from_static("https://management.azure.com")));
    }
}
