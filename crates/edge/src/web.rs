//! One HTTP client for ARM and for tokens: keep-alive connections, TLS by rustls and ring, roots
//! from the machine's store, through the proxy of the environment.

use crate::proxy::{Proxies, Sockets};
use bytes::{Bytes, BytesMut};
use http::header::CONTENT_LENGTH;
use http::{HeaderMap, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::{ClientConfig, RootCertStore};
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

/// Most bytes a body may have: a list of everything in a large group is far below.
pub const BODY_CAP: usize = 64 << 20;
/// How long a connection may take to come about.
const CONNECT: Duration = Duration::from_secs(10);
/// How long an unused connection is kept: below the idle cut-off of Azure's front ends (4 min).
const IDLE: Duration = Duration::from_secs(90);

/// The client. Clones share their connections.
#[derive(Clone, Debug)]
pub struct Web {
    client: Client<HttpsConnector<Sockets>, Full<Bytes>>,
    cap: usize,
}

/// A whole answer.
#[derive(Debug)]
pub struct WebReply {
    /// Status.
    pub status: StatusCode,
    /// Headers.
    pub headers: HeaderMap,
    /// Body.
    pub body: Bytes,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WebFault {
    /// No connection came about.
    #[error("no connection: {0}")]
    NotSent(String),
    /// The request went out, fully or in part.
    #[error("{0}")]
    Ambiguous(String),
}

/// The machine's TLS cannot be used.
#[derive(Debug, thiserror::Error)]
#[error(
    "cannot read this machine's certificate authorities: {0}. Install the package \
     ca-certificates, or name a bundle in the environment variable SSL_CERT_FILE"
)]
pub struct TlsUnusable(String);

impl Web {
    /// A client with this machine's certificate authorities.
    ///
    /// # Errors
    /// The machine has no usable certificate authorities.
    pub fn new() -> Result<Self, TlsUnusable> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = HttpsConnectorBuilder::new()
            .with_provider_and_platform_verifier(provider)
            .map_err(|e| TlsUnusable(e.to_string()))?;
        let sockets = sockets(Proxies::from_env());
        Ok(Self::over(builder.https_or_http().enable_http1().wrap_connector(sockets)))
    }

    /// A client for loopback alone: it trusts no certificate authority and needs none installed.
    ///
    /// # Errors
    /// The TLS library refuses its own defaults.
    pub fn loopback() -> Result<Self, TlsUnusable> {
        Self::trusting_nobody(Proxies::none())
    }

    fn trusting_nobody(proxies: Proxies) -> Result<Self, TlsUnusable> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|e| TlsUnusable(e.to_string()))?
            .with_root_certificates(RootCertStore::empty())
            .with_no_client_auth();
        let builder = HttpsConnectorBuilder::new().with_tls_config(config);
        let sockets = sockets(proxies);
        Ok(Self::over(builder.https_or_http().enable_http1().wrap_connector(sockets)))
    }

    fn over(connector: HttpsConnector<Sockets>) -> Self {
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .build(connector);
        Self { client, cap: BODY_CAP }
    }

    /// The same client with another cap on bodies.
    #[must_use]
    pub fn with_cap(&self, cap: usize) -> Self {
        Self { client: self.client.clone(), cap }
    }

    /// Sends a request and reads the whole answer. Redirects are not followed.
    ///
    /// # Errors
    /// There was no whole answer within `limit`.
    pub async fn send(
        &self,
        request: Request<Full<Bytes>>,
        limit: Duration,
    ) -> Result<WebReply, WebFault> {
        match tokio::time::timeout(limit, self.exchange(request)).await {
            Ok(outcome) => outcome,
            Err(_) => {
                let seconds = limit.as_secs_f32();
                Err(WebFault::Ambiguous(format!("no whole answer within {seconds} s")))
            }
        }
    }

    async fn exchange(&self, request: Request<Full<Bytes>>) -> Result<WebReply, WebFault> {
        let reply = self.client.request(request).await.map_err(|e| {
            let text = chain(&e);
            if e.is_connect() { WebFault::NotSent(text) } else { WebFault::Ambiguous(text) }
        })?;
        let (parts, mut incoming) = reply.into_parts();
        // A body that grows piece by piece would end with twice the room that it needs.
        let told = parts.headers.get(CONTENT_LENGTH).and_then(|v| v.to_str().ok()?.parse().ok());
        let mut body = BytesMut::with_capacity(told.unwrap_or(0).min(self.cap));
        while let Some(frame) = incoming.frame().await {
            let frame = frame
                .map_err(|e| WebFault::Ambiguous(format!("the answer broke off: {}", chain(&e))))?;
            let Ok(piece) = frame.into_data() else { continue };
            if body.len() + piece.len() > self.cap {
                let cap = self.cap;
                return Err(WebFault::Ambiguous(format!("the answer is longer than {cap} bytes")));
            }
            body.extend_from_slice(&piece);
        }
        Ok(WebReply { status: parts.status, headers: parts.headers, body: body.freeze() })
    }
}

fn sockets(proxies: Proxies) -> Sockets {
    let mut http = HttpConnector::new();
    http.enforce_http(false);
    http.set_nodelay(true);
    http.set_connect_timeout(Some(CONNECT));
    http.set_keepalive(Some(Duration::from_secs(30)));
    Sockets::new(http, proxies)
}

/// An error with its causes, each said once.
#[must_use]
pub fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        let said = next.to_string();
        if !text.contains(&said) {
            text.push_str(": ");
            text.push_str(&said);
        }
        cause = next.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    #[tokio::test]
    async fn a_server_behind_a_proxy_is_asked_through_a_tunnel() {
        let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let proxy = format!("http://{}", socket.local_addr().unwrap());
        let asked = tokio::spawn(async move {
            let (mut stream, _) = socket.accept().await.unwrap();
            let mut head = [0; 1_024];
            let read = stream.read(&mut head).await.unwrap();
            stream.write_all(b"HTTP/1.1 502 No\r\n\r\n").await.unwrap();
            String::from_utf8_lossy(&head[..read]).into_owned()
        });
        let web = Web::trusting_nobody(Proxies::of(&proxy, "")).unwrap();
        let request = Request::get("https://management.example/x").body(Full::default()).unwrap();
        let fault = web.send(request, Duration::from_secs(10)).await.unwrap_err();
        // Nothing of the request went out.
        assert!(matches!(fault, WebFault::NotSent(_)), "{fault}");
        let asked = asked.await.unwrap();
        assert!(asked.starts_with("CONNECT management.example:443 HTTP/1.1"), "{asked}");
    }
}
