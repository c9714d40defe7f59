//! The HTTP server on loopback, driven by a plain HTTP client.

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::client::legacy::{Client, connect::HttpConnector};
use hyper_util::rt::TokioExecutor;
use kube_emulator::{ObjectRef, Shared, Store, StoreOptions, kubeconfig, serve};
use serde_json::{Value, json};
use std::net::SocketAddr;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

struct Server {
    address: SocketAddr,
    store: Shared,
    stop: oneshot::Sender<()>,
    task: JoinHandle<std::io::Result<()>>,
    client: Client<HttpConnector, Full<Bytes>>,
}

impl Server {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let store = Shared::new(Store::new(StoreOptions::default()));
        let (stop, stopped) = oneshot::channel::<()>();
        let shared = store.clone();
        let task = tokio::spawn(serve(listener, shared, async {
            let _ = stopped.await;
        }));
        let client = Client::builder(TokioExecutor::new()).build_http();
        Self { address, store, stop, task, client }
    }

    async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> hyper::Response<Incoming> {
        let mut request =
            hyper::Request::builder().method(method).uri(format!("http://{}{path}", self.address));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::new(Bytes::from(body.to_string()))).unwrap();
        self.client.request(request).await.unwrap()
    }

    async fn json(&self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let headers = [("content-type", "application/json"), ("accept", "application/json")];
        let text = if body.is_null() { String::new() } else { body.to_string() };
        let response = self.send(method, path, &headers, &text).await;
        let code = response.status().as_u16();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        (code, serde_json::from_slice(&bytes).unwrap())
    }
}

/// Lines of a watch.
struct Lines {
    body: Incoming,
    rest: Vec<u8>,
}

impl Lines {
    async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.rest.drain(..=end).collect();
                return Some(serde_json::from_slice(&line).unwrap());
            }
            let frame = self.body.frame().await?.ok()?;
            if let Ok(bytes) = frame.into_data() {
                self.rest.extend_from_slice(&bytes);
            }
        }
    }
}

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}})
}

#[tokio::test]
async fn objects_go_both_ways() {
    let server = Server::start().await;
    let (code, made) = server.json("POST", MAPS, &map("a")).await;
    assert_eq!((code, &made["metadata"]["name"]), (201, &json!("a")));
    let (code, status) = server.json("POST", MAPS, &map("a")).await;
    assert_eq!((code, &status["reason"]), (409, &json!("AlreadyExists")));
    let (code, list) = server.json("GET", MAPS, &Value::Null).await;
    assert_eq!((code, &list["items"][0]["metadata"]["name"]), (200, &json!("a")));
    let (code, _) = server.json("DELETE", &format!("{MAPS}/a"), &Value::Null).await;
    assert_eq!(code, 200);
    let (code, groups) = server.json("GET", "/apis", &Value::Null).await;
    assert_eq!((code, &groups["kind"]), (200, &json!("APIGroupList")));
    let response = server.send("GET", "/readyz", &[], "").await;
    assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "ok");
    let (code, _) = server.json("OPTIONS", MAPS, &Value::Null).await;
    assert_eq!(code, 405);
}

#[tokio::test]
async fn media_types_are_negotiated() {
    let server = Server::start().await;
    let protobuf = "application/vnd.kubernetes.protobuf";
    let response = server.send("GET", MAPS, &[("accept", "application/cbor")], "").await;
    assert_eq!(response.status(), 406);
    for (accept, want) in [
        (format!("{protobuf}, application/json"), protobuf),
        (format!("application/json, {protobuf}"), "application/json"),
    ] {
        let response = server.send("GET", MAPS, &[("accept", &accept)], "").await;
        assert_eq!(response.headers()["content-type"], want);
    }
    let response = server.send("POST", MAPS, &[("content-type", protobuf)], "k8s").await;
    assert_eq!(response.status(), 400);
    let response = server.send("POST", MAPS, &[("content-type", "application/cbor")], "x").await;
    assert_eq!(response.status(), 415);
    let yaml = "metadata:\n  name: from-yaml\n";
    let response = server.send("POST", MAPS, &[("content-type", "application/yaml")], yaml).await;
    assert_eq!(response.status(), 201);
}

#[tokio::test]
async fn watches_stream_and_end_with_the_server() {
    let server = Server::start().await;
    let response = server.send("GET", &format!("{MAPS}?watch=1"), &[], "").await;
    assert_eq!(response.status(), 200);
    let mut lines = Lines { body: response.into_body(), rest: Vec::new() };
    server.json("POST", MAPS, &map("a")).await;
    let event = lines.next().await.unwrap();
    assert_eq!(
        (&event["type"], &event["object"]["metadata"]["name"]),
        (&json!("ADDED"), &json!("a"))
    );
    // A change made inside the process is seen, too.
    server.store.with(|store, now| {
        store.delete(ObjectRef::new("configmaps", "default", "a"), now).unwrap();
    });
    assert_eq!(lines.next().await.unwrap()["type"], "DELETED");
    server.stop.send(()).unwrap();
    assert_eq!(lines.next().await, None, "the stream ends with the server");
    server.task.await.unwrap().unwrap();
}

#[tokio::test]
async fn watches_as_tables_name_their_columns_once() {
    let server = Server::start().await;
    let table = [("accept", "application/json;as=Table;v=v1;g=meta.k8s.io,application/json")];
    let path = "/api/v1/namespaces?watch=1&timeoutSeconds=1";
    let response = server.send("GET", path, &table, "").await;
    let mut lines = Lines { body: response.into_body(), rest: Vec::new() };
    let mut widths = Vec::new();
    while let Some(event) = lines.next().await {
        assert_eq!(event["object"]["kind"], "Table");
        widths.push(event["object"]["columnDefinitions"].as_array().unwrap().len());
    }
    assert_eq!(widths, [3, 0, 0, 0], "the watch ended by its own timeout");
}

#[tokio::test]
async fn expired_watches_say_so_inside_the_stream() {
    let server = Server::start().await;
    server.json("POST", MAPS, &map("a")).await;
    server.store.with(|store, _| store.compact());
    let response = server.send("GET", &format!("{MAPS}?watch=1&resourceVersion=1"), &[], "").await;
    let mut lines = Lines { body: response.into_body(), rest: Vec::new() };
    let event = lines.next().await.unwrap();
    assert_eq!((&event["type"], &event["object"]["code"]), (&json!("ERROR"), &json!(410)));
    assert_eq!(lines.next().await, None);
}

#[test]
fn the_kubeconfig_names_the_server() {
    let text = kubeconfig("127.0.0.1:8001".parse().unwrap());
    let read: Value = serde_saphyr::from_str(&text).unwrap();
    assert_eq!(read["clusters"][0]["cluster"]["server"], "http://127.0.0.1:8001");
    assert_eq!(read["current-context"], read["contexts"][0]["name"]);
}

/// A web page can reach loopback under a domain of its own, and can send a body that does not say
/// what it is.
#[tokio::test]
async fn a_web_page_cannot_write() {
    let server = Server::start().await;
    let body = map("a").to_string();
    let json = ("content-type", "application/json");
    for (headers, code) in [
        (vec![json, ("host", "evil.example.com")], 421),
        (vec![("origin", "http://evil.example.com")], 415),
        (vec![("content-type", "text/plain")], 415),
        (vec![json, ("host", "kubernetes.default.svc:443")], 201),
    ] {
        let answer = server.send("POST", MAPS, &headers, &body).await;
        assert_eq!(answer.status().as_u16(), code, "{headers:?}");
    }
    // A client that is no browser may leave out what the body is: JSON.
    let answer = server.send("POST", MAPS, &[], &map("b").to_string()).await;
    assert_eq!(answer.status().as_u16(), 201);
    server.stop.send(()).unwrap();
    server.task.await.unwrap().unwrap();
}
