//! The port that probes ask.

use super::stripped::Stripping;
use super::{SharedAgent, metrics};
use crate::listener::{self, Limits};
use crate::metrics::exposition::Format;
use axum::Router;
use axum::http::header::{ACCEPT, CACHE_CONTROL, CONNECTION, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use health::Answer;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// How many ready endpoints are here, as kube-proxy's health check node port tells it.
const WEIGHT: HeaderName = HeaderName::from_static("x-load-balancing-endpoint-weight");

/// Answers until stopped.
pub(super) async fn serve(socket: TcpListener, agent: SharedAgent, stop: CancellationToken) {
    let counted = agent.clone();
    let app = Router::new()
        .route("/metrics", get(async move |headers: HeaderMap| metrics_page(&counted, &headers)))
        .fallback(get(async move |uri: Uri| probe(&agent, uri.path())));
    listener::serve(Stripping(socket), app, Limits::default(), stop).await;
}

fn probe(agent: &SharedAgent, path: &str) -> Response {
    let Answer { status, body, endpoints } = agent.lock().answer(path);
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::SERVICE_UNAVAILABLE);
    let json = body.starts_with('{');
    let content = if json { "application/json" } else { "text/plain; charset=utf-8" };
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // The next probe may be for a successor of this process, so that it needs a new connection.
    headers.insert(CONNECTION, HeaderValue::from_static("close"));
    if let Some(endpoints) = endpoints {
        headers.insert(WEIGHT, HeaderValue::from(endpoints));
    }
    (status, headers, body).into_response()
}

fn metrics_page(agent: &SharedAgent, headers: &HeaderMap) -> Response {
    let accept = headers.get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or("");
    let format = Format::accepted(accept);
    let page = metrics::of_agent(&agent.lock(), format);
    ([(CONTENT_TYPE, format.content_type())], page).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::table::{AGENT_METRICS, Metric};
    use health::{Fact, Proxy};
    use std::net::SocketAddr;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;

    async fn served() -> SocketAddr {
        let agent = SharedAgent::listed();
        agent.learn(Fact::Proxy(Proxy::Healthy));
        let socket = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = socket.local_addr().expect("it is bound");
        tokio::spawn(serve(socket, agent, CancellationToken::new()));
        address
    }

    /// Sends pieces one after another, and reads all that comes.
    async fn send(address: SocketAddr, pieces: &[&[u8]]) -> String {
        let mut stream = TcpStream::connect(address).await.expect("it listens");
        stream.set_nodelay(true).expect("it is a TCP socket");
        for piece in pieces {
            stream.write_all(piece).await.expect("it takes bytes");
            tokio::task::yield_now().await;
        }
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes).await;
        String::from_utf8_lossy(&bytes).into_owned()
    }

    #[tokio::test]
    async fn a_probe_is_answered_with_and_without_the_proxy_protocol() {
        let address = served().await;
        let probe: &[u8] = b"GET /node HTTP/1.1\r\nhost: a\r\n\r\n";
        let second: &[u8] =
            b"\r\n\r\n\0\r\nQUIT\n\x21\x11\x00\x0c\x0a\0\0\x04\x0a\0\0\x05\x9c\x40\x28\x20";
        let first: &[u8] = b"PROXY TCP4 10.0.0.4 10.0.0.5 40000 10272\r\n";
        let whole = [second, probe].concat();
        for pieces in [
            vec![probe],
            vec![&whole[..]],
            vec![second, probe],
            vec![&second[..5], &second[5..20], &second[20..], probe],
            vec![first, probe],
        ] {
            let answer = send(address, &pieces).await;
            assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
            assert!(answer.contains("connection: close\r\n"), "{answer}");
        }
    }

    #[tokio::test]
    async fn answers_tell_the_weight_and_the_kind() {
        let address = served().await;
        let web = send(address, &[b"GET /services/s/web HTTP/1.1\r\nhost: a\r\n\r\n"]).await;
        assert!(web.starts_with("HTTP/1.1 503 Service Unavailable\r\n"), "{web}");
        assert!(web.contains("x-load-balancing-endpoint-weight: 0\r\n"), "{web}");
        assert!(web.ends_with("\"localEndpoints\":0}\n"), "{web}");
        let page =
            send(address, &[b"GET /metrics HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n"])
                .await;
        assert!(page.contains("\nballast_agent_proxy_healthy 1\n"), "{page}");
        for name in AGENT_METRICS.iter().flat_map(Metric::samples) {
            let sample = |line: &str| line.split(['{', ' ']).next() == Some(name.as_str());
            assert!(page.lines().any(sample), "{name}: {page}");
        }
        let damaged = send(address, &[b"\r\n\r\n\0\r\nQUIT\n\x31\x11\0\0GET /"]).await;
        assert_eq!(damaged, "");
    }
}
