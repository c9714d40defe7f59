//! A small listener for probes and metrics.

use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderName, StatusCode};
use axum::routing::get;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// Where it listens unless told otherwise: this machine alone.
pub const DEFAULT_ADDRESS: &str = "127.0.0.1:10358";
const METRICS_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// How something is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Health {
    /// Well.
    Good,
    /// Not, and why, one line each.
    Bad(Vec<String>),
}

/// What the pages say.
pub trait Pages: Send + Sync {
    /// Whether the process works; if not, it is restarted.
    fn live(&self) -> Health;
    /// Whether it is of use: everything listed, and so on.
    fn ready(&self) -> Health;
    /// Metrics as OpenMetrics text.
    fn metrics(&self) -> String;
}

/// Why it does not listen.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// Somebody else is there.
    #[error(
        "cannot listen on {address}: the port is in use. Stop what listens there, \
         or choose another with {flag} ADDRESS:PORT (port 0 takes a free one)"
    )]
    InUse {
        /// Where.
        address: SocketAddr,
        /// The flag that chooses.
        flag: &'static str,
    },
    /// Something else.
    #[error("cannot listen on {address}: {why}. Choose an address of this machine with {flag}")]
    Other {
        /// Where.
        address: SocketAddr,
        /// The flag that chooses.
        flag: &'static str,
        /// Why.
        why: io::Error,
    },
}

/// A bound listener.
#[derive(Debug)]
pub struct Listener {
    socket: TcpListener,
    address: SocketAddr,
}

impl Listener {
    /// Binds; `flag` is the option to name when that fails.
    ///
    /// # Errors
    /// The address is taken, or not this machine's.
    pub async fn bind(address: SocketAddr, flag: &'static str) -> Result<Self, ListenError> {
        let failed = |why: io::Error| match why.kind() {
            io::ErrorKind::AddrInUse => ListenError::InUse { address, flag },
            _ => ListenError::Other { address, flag, why },
        };
        let socket = TcpListener::bind(address).await.map_err(failed)?;
        let address = socket.local_addr().map_err(failed)?;
        Ok(Self { socket, address })
    }

    /// Where it listens, with the port that was taken.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers until stopped.
    ///
    /// # Errors
    /// The socket fails for good.
    pub async fn serve(self, pages: Arc<dyn Pages>, stop: CancellationToken) -> io::Result<()> {
        let (live, ready, metrics) = (Arc::clone(&pages), Arc::clone(&pages), pages);
        let app = Router::new()
            .route("/livez", get(async move || page(live.live())))
            .route("/readyz", get(async move || page(ready.ready())))
            .route(
                "/metrics",
                get(async move || ([(CONTENT_TYPE, METRICS_TYPE)], metrics.metrics())),
            );
        axum::serve(self.socket, app)
            .with_graceful_shutdown(async move { stop.cancelled().await })
            .await
    }
}

fn page(health: Health) -> (StatusCode, [(HeaderName, &'static str); 1], String) {
    let plain = [(CONTENT_TYPE, "text/plain; charset=utf-8")];
    match health {
        Health::Good => (StatusCode::OK, plain, "ok\n".into()),
        Health::Bad(reasons) => {
            let text = reasons.iter().map(|r| format!("{r}\n")).collect();
            (StatusCode::SERVICE_UNAVAILABLE, plain, text)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::web::Web;
    use bytes::Bytes;
    use http_body_util::Full;
    use std::time::Duration;

    struct Fixed;

    impl Pages for Fixed {
        fn live(&self) -> Health {
            Health::Good
        }
        fn ready(&self) -> Health {
            Health::Bad(vec!["Services are not listed yet".into()])
        }
        fn metrics(&self) -> String {
            "# EOF\n".into()
        }
    }

    #[tokio::test]
    async fn pages_are_served_and_a_second_listener_is_told_the_address_and_flag() {
        let any: SocketAddr = "127.0.0.1:0".parse().unwrap();
        let listener = Listener::bind(any, "--listen").await.unwrap();
        let address = listener.address();
        let error = Listener::bind(address, "--listen").await.unwrap_err().to_string();
        assert!(error.contains(&address.to_string()) && error.contains("--listen"), "{error}");
        let stop = CancellationToken::new();
        let server = tokio::spawn(listener.serve(Arc::new(Fixed), stop.clone()));
        let web = Web::loopback().unwrap();
        for (path, status, body) in [
            ("livez", 200, "ok\n"),
            ("readyz", 503, "Services are not listed yet\n"),
            ("metrics", 200, "# EOF\n"),
            ("other", 404, ""),
        ] {
            let request = http::Request::get(format!("http://{address}/{path}"));
            let request = request.body(Full::new(Bytes::new())).unwrap();
            let reply = web.send(request, Duration::from_secs(60)).await.unwrap();
            assert_eq!((reply.status.as_u16(), &reply.body[..]), (status, body.as_bytes()));
        }
        drop(web);
        stop.cancel();
        server.await.unwrap().unwrap();
    }
}
