//! The server over real sockets.

use std::sync::{Arc, Mutex};

use crate::common::*;
use azure_emulator::{
    Azure, Fault, FaultKind, Options, SampleOptions, Shared, sample_estate, serve,
};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

struct Running {
    azure: Shared,
    base: String,
    stop: Option<oneshot::Sender<()>>,
    task: tokio::task::JoinHandle<std::io::Result<()>>,
}

async fn start(options: Options) -> Running {
    let mut azure = Azure::new(options);
    azure.seed(sample_estate(&SampleOptions::default()));
    let azure = Arc::new(Mutex::new(azure));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let (stop, stopped) = oneshot::channel::<()>();
    let shared = Arc::clone(&azure);
    let task = tokio::spawn(serve(listener, shared, async {
        let _ = stopped.await;
    }));
    Running { azure, base, stop: Some(stop), task }
}

impl Running {
    async fn call(
        &self,
        method: &str,
        path: &str,
        body: Option<&str>,
    ) -> Result<(u16, http::HeaderMap, Value), String> {
        let client = Client::builder(TokioExecutor::new()).build_http::<Full<Bytes>>();
        let uri =
            if path.starts_with("http") { path.to_owned() } else { format!("{}{path}", self.base) };
        let request = http::Request::builder()
            .method(method)
            .uri(uri)
            .header("content-type", "application/json")
            .body(Full::new(Bytes::from(body.unwrap_or("").to_owned())))
            .unwrap();
        let response = client.request(request).await.map_err(|error| error.to_string())?;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let bytes = response.into_body().collect().await.map_err(|error| error.to_string())?;
        let bytes = bytes.to_bytes();
        let body =
            if bytes.is_empty() { Value::Null } else { serde_json::from_slice(&bytes).unwrap() };
        Ok((status, headers, body))
    }
}

#[tokio::test]
async fn a_resource_is_made_polled_read_and_deleted() {
    let mut server = start(Options { lro_ms: 30, ..Options::default() }).await;
    let path = net("publicIPAddresses/a");
    let body = pip("IPv4", "Standard").to_string();
    let (status, headers, _) = server.call("PUT", &path, Some(&body)).await.unwrap();
    assert_eq!(status, 201);
    assert!(headers.contains_key("x-ms-request-id"));
    let url = headers["azure-asyncoperation"].to_str().unwrap().to_owned();
    assert!(url.starts_with(&server.base), "links point at the listener");
    loop {
        let (_, _, poll) = server.call("GET", &url, None).await.unwrap();
        if poll["status"] == "Succeeded" {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    let (_, headers, shown) = server.call("GET", &path, None).await.unwrap();
    assert_eq!(shown["properties"]["ipAddress"], "20.0.0.1");
    assert_eq!(headers["etag"].to_str().unwrap(), shown["etag"].as_str().unwrap());
    let (status, _, _) = server.call("DELETE", &path, None).await.unwrap();
    assert_eq!(status, 202);
    let (status, _, body) = server.call("PUT", &path, Some("{")).await.unwrap();
    assert_eq!((status, &body["error"]["code"]), (400, &json!("InvalidRequestContent")));
    server.stop.take().unwrap().send(()).unwrap();
    server.task.await.unwrap().unwrap();
}

#[tokio::test]
async fn broken_connections_are_really_broken() {
    let server = start(Options::default()).await;
    let order = |kind| server.azure.lock().unwrap().add_fault(Fault::new(kind));
    let path = net("publicIPAddresses/a");
    let body = pip("IPv4", "Standard").to_string();
    let there = || server.azure.lock().unwrap().resource(&path).is_some();
    order(FaultKind::ConnectionResetBefore);
    assert!(server.call("PUT", &path, Some(&body)).await.is_err());
    assert!(!there());
    order(FaultKind::AppliedThenReset);
    assert!(server.call("PUT", &path, Some(&body)).await.is_err());
    assert!(there());
    order(FaultKind::TruncatedBody);
    assert!(server.call("GET", &path, None).await.is_err());
    let (status, _, _) = server.call("GET", &path, None).await.unwrap();
    assert_eq!(status, 200);
}

#[tokio::test]
async fn a_slow_call_does_not_hold_up_others() {
    let server = start(Options::default()).await;
    let slow = FaultKind::Latency { ms: 2_000 };
    let fault = Fault::new(slow).on_path("slow$").unwrap();
    server.azure.lock().unwrap().add_fault(fault);
    let (slow_path, fast_path) = (net("loadBalancers/slow"), net("virtualNetworks/vnet"));
    let slow = server.call("GET", &slow_path, None);
    tokio::pin!(slow);
    let mut answered = 0;
    loop {
        tokio::select! {
            _ = &mut slow => break,
            fast = server.call("GET", &fast_path, None), if answered < 5 => {
                assert_eq!(fast.unwrap().0, 200);
                answered += 1;
            }
        }
        if answered == 5 {
            break;
        }
    }
    assert_eq!(answered, 5, "five quick calls were answered while one was slow");
}

/// The head and body of an answer to a request as written here.
async fn raw(base: &str, head: &str, body: &str) -> String {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let at = base.strip_prefix("http://").unwrap();
    let mut stream = tokio::net::TcpStream::connect(at).await.unwrap();
    let length = body.len();
    let text = format!("{head}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}");
    stream.write_all(text.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

/// A web page can reach loopback under a domain of its own, and can send a body that is no JSON.
#[tokio::test]
async fn a_web_page_cannot_write() {
    let server = start(Options::default()).await;
    let path = net("publicIPAddresses/a");
    let body = pip("IPv4", "Standard").to_string();
    let put = |host: &str, kind: &str| {
        format!("PUT {path} HTTP/1.1\r\nhost: {host}\r\ncontent-type: {kind}")
    };
    let there = || server.azure.lock().unwrap().resource(&path).is_some();
    for (host, kind, status, code) in [
        ("evil.example.com", "application/json", "421", "MisdirectedRequest"),
        ("127.0.0.1", "text/plain", "415", "UnsupportedMediaType"),
        ("127.0.0.1", "application/x-www-form-urlencoded", "415", "UnsupportedMediaType"),
    ] {
        let answer = raw(&server.base, &put(host, kind), &body).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
        assert!(answer.contains(code) && !there(), "{answer}");
    }
    let reset = "POST /_/reset HTTP/1.1\r\nhost: 127.0.0.1";
    assert!(raw(&server.base, reset, "null").await.starts_with("HTTP/1.1 415 "));
    let kind = "application/json; charset=utf-8";
    assert!(raw(&server.base, &put("localhost:1", kind), &body).await.starts_with("HTTP/1.1 201 "));
    let form = "POST /tenant/oauth2/v2.0/token HTTP/1.1\r\nhost: 127.0.0.1\r\n\
                content-type: application/x-www-form-urlencoded";
    let token = raw(&server.base, form, "grant_type=client_credentials").await;
    assert!(token.starts_with("HTTP/1.1 200 "), "{token}");
}
