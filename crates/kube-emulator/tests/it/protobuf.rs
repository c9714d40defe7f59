//! The bytes that client-go sends and reads, made and taken apart here by hand from Kubernetes'
//! published `generated.proto` files: nothing of the crate's own coding is used.
//!
//! client-go's marshallers write every field that is no pointer, also when it is empty, in the
//! order of its number.

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::client::legacy::{Client, connect::HttpConnector};
use hyper_util::rt::TokioExecutor;
use kube_emulator::{Shared, Store, StoreOptions, serve};
use serde_json::{Value, json};
use std::net::SocketAddr;

const MEDIA: &str = "application/vnd.kubernetes.protobuf";

fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let low = u8::try_from(value % 128).unwrap();
        value /= 128;
        if value == 0 {
            bytes.push(low);
            return bytes;
        }
        bytes.push(low + 128);
    }
}

fn number(field: u64, value: u64) -> Vec<u8> {
    [varint(field * 8), varint(value)].concat()
}

fn part(field: u64, bytes: impl AsRef<[u8]>) -> Vec<u8> {
    let bytes = bytes.as_ref();
    [varint(field * 8 + 2), varint(bytes.len() as u64), bytes.to_vec()].concat()
}

fn pair(field: u64, key: &str, value: impl AsRef<[u8]>) -> Vec<u8> {
    part(field, [part(1, key), part(2, value)].concat())
}

/// `Timestamp`: seconds and nanoseconds. `Time` and `MicroTime` are written as one.
fn instant(field: u64, seconds: u64, nanos: u64) -> Vec<u8> {
    part(field, [number(1, seconds), number(2, nanos)].concat())
}

fn metadata(name: &str, namespace: &str, version: &str, more: &[Vec<u8>]) -> Vec<u8> {
    let fields = [
        part(1, name),
        part(2, ""),
        part(3, namespace),
        part(4, ""),
        part(5, ""),
        part(6, version),
        number(7, 0),
        part(8, ""),
    ];
    part(1, [fields.concat(), more.concat()].concat())
}

fn envelope(version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
    let meta = [part(1, version), part(2, kind)].concat();
    [b"k8s\0".to_vec(), part(1, meta), part(2, raw), part(3, ""), part(4, "")].concat()
}

fn take_varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for place in 0..10 {
        let byte = bytes[0];
        *bytes = &bytes[1..];
        value += u64::from(byte % 128) << (7 * place);
        if byte < 128 {
            break;
        }
    }
    value
}

/// All values of a field: a number as its varint's bytes.
fn all(message: &[u8], field: u64) -> Vec<Vec<u8>> {
    let mut rest = message;
    let mut found = Vec::new();
    while !rest.is_empty() {
        let tag = take_varint(&mut rest);
        let value = match tag % 8 {
            0 => varint(take_varint(&mut rest)),
            2 => {
                let length = usize::try_from(take_varint(&mut rest)).unwrap();
                let (value, after) = rest.split_at(length);
                rest = after;
                value.to_vec()
            }
            wire => panic!("wire type {wire}"),
        };
        if tag / 8 == field {
            found.push(value);
        }
    }
    found
}

/// The first value on a way of field numbers; empty if there is none.
fn at(message: &[u8], way: &[u64]) -> Vec<u8> {
    way.iter().fold(message.to_vec(), |message, field| {
        all(&message, *field).into_iter().next().unwrap_or_default()
    })
}

fn word(message: &[u8], way: &[u64]) -> String {
    String::from_utf8(at(message, way)).unwrap()
}

/// Kind and message of an envelope.
fn opened(body: &[u8]) -> (String, Vec<u8>) {
    let envelope = body.strip_prefix(b"k8s\0").unwrap();
    let (version, kind) = (word(envelope, &[1, 1]), word(envelope, &[1, 2]));
    (format!("{version} {kind}"), at(envelope, &[2]))
}

struct Server {
    address: SocketAddr,
    client: Client<HttpConnector, Full<Bytes>>,
}

impl Server {
    async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let store = Shared::new(Store::new(StoreOptions::default()));
        tokio::spawn(serve(listener, store, std::future::pending::<()>()));
        Self { address, client: Client::builder(TokioExecutor::new()).build_http() }
    }

    async fn open(
        &self,
        method: &str,
        path: &str,
        content: &str,
        body: Vec<u8>,
    ) -> hyper::Response<Incoming> {
        let request = hyper::Request::builder()
            .method(method)
            .uri(format!("http://{}{path}", self.address))
            .header("accept", format!("{MEDIA}, */*"))
            .header("content-type", content)
            .body(Full::new(Bytes::from(body)));
        self.client.request(request.unwrap()).await.unwrap()
    }

    /// The code, the kind and the message answered.
    async fn send(&self, method: &str, path: &str, body: Vec<u8>) -> (u16, String, Vec<u8>) {
        let response = self.open(method, path, MEDIA, body).await;
        let code = response.status().as_u16();
        assert_eq!(response.headers()["content-type"], MEDIA, "{method} {path}: {code}");
        let (kind, message) = opened(&response.into_body().collect().await.unwrap().to_bytes());
        (code, kind, message)
    }

    /// The object as a client sees it that speaks JSON.
    async fn json(&self, path: &str) -> Value {
        let request = hyper::Request::get(format!("http://{}{path}", self.address));
        let request = request.body(Full::default()).unwrap();
        let body = self.client.request(request).await.unwrap().into_body();
        serde_json::from_slice(&body.collect().await.unwrap().to_bytes()).unwrap()
    }
}

const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases";

fn lease(version: &str, holder: &str, renewed: (u64, u64)) -> Vec<u8> {
    let spec = [
        part(1, holder),
        number(2, 15),
        instant(3, 1_700_000_000, 123_456_000),
        instant(4, renewed.0, renewed.1),
        number(5, 0),
    ];
    let raw = [metadata("leader", "default", version, &[]), part(2, spec.concat())].concat();
    envelope("coordination.k8s.io/v1", "Lease", &raw)
}

#[tokio::test]
async fn a_leader_is_elected_with_leases_in_protobuf() {
    let server = Server::start().await;
    let path = format!("{LEASES}/leader");
    let (code, kind, status) = server.send("GET", &path, vec![]).await;
    assert_eq!((code, kind.as_str()), (404, "v1 Status"));
    // Status: 2 status, 3 message, 4 reason, 5 details (1 name, 3 kind), 6 code.
    assert_eq!((word(&status, &[2]), word(&status, &[4])), ("Failure".into(), "NotFound".into()));
    assert_eq!(
        (word(&status, &[5, 1]), word(&status, &[5, 3])),
        ("leader".into(), "leases".into())
    );
    assert_eq!(at(&status, &[6]), varint(404));

    let sent = lease("", "one", (1_700_000_000, 123_456_000));
    let (code, kind, made) = server.send("POST", LEASES, sent).await;
    assert_eq!((code, kind.as_str()), (201, "coordination.k8s.io/v1 Lease"));
    assert_eq!((word(&made, &[2, 1]), at(&made, &[2, 2])), ("one".into(), varint(15)));
    assert_eq!(at(&made, &[2, 4]), [number(1, 1_700_000_000), number(2, 123_456_000)].concat());
    assert_eq!(at(&made, &[2, 5]), varint(0), "a pointer to zero is not forgotten");
    let first = word(&made, &[1, 6]);

    let renewed = lease(&first, "one", (1_700_000_002, 5_000));
    let (code, _, updated) = server.send("PUT", &path, renewed).await;
    assert_eq!((code, word(&updated, &[2, 1])), (200, "one".to_string()));
    assert_ne!(word(&updated, &[1, 6]), first);
    let read = server.json(&path).await;
    assert_eq!(read["spec"]["renewTime"], "2023-11-14T22:13:22.000005Z");
    assert_eq!(read["spec"]["leaseTransitions"], 0);

    let late = lease(&first, "two", (1_700_000_020, 0));
    let (code, kind, status) = server.send("PUT", &path, late).await;
    assert_eq!((code, kind.as_str()), (409, "v1 Status"));
    assert_eq!((word(&status, &[4]), at(&status, &[6])), ("Conflict".into(), varint(409)));
    assert_eq!(server.json(&path).await["spec"]["holderIdentity"], "one");
}

const SERVICES: &str = "/api/v1/namespaces/default/services";

fn service() -> Vec<u8> {
    let port = |name: &str, port: u64, target: Vec<u8>| {
        let fields =
            [part(1, name), part(2, "TCP"), number(3, port), part(4, target), number(5, 0)];
        part(1, fields.concat())
    };
    let to_text = [number(1, 1), number(2, 0), part(3, "http")].concat();
    let to_number = [number(1, 0), number(2, 8080), part(3, "")].concat();
    let spec = [
        port("a", 80, to_text),
        port("b", 443, to_number),
        pair(2, "app", "web"),
        part(3, ""),
        part(4, "LoadBalancer"),
        part(7, ""),
        part(8, ""),
        part(9, "10.0.0.0/8"),
        part(10, ""),
        part(11, ""),
        number(12, 0),
        number(13, 0),
        number(20, 0),
    ];
    let annotation = pair(12, "example.com/a", "b");
    // A field that no version of this server knows, as a newer client sends it.
    let newer = [number(900, 1), part(901, "later")].concat();
    let raw = [
        metadata("web", "default", "", &[pair(11, "x", "y"), annotation]),
        part(2, [spec.concat(), newer].concat()),
        part(3, part(1, "")),
    ];
    envelope("v1", "Service", &raw.concat())
}

/// Frames of a watch.
struct Frames {
    body: Incoming,
    rest: Vec<u8>,
}

impl Frames {
    /// The next event: its word, and the object's kind and message.
    async fn next(&mut self) -> (String, String, Vec<u8>) {
        loop {
            let head = self.rest.get(..4).map(|head| <[u8; 4]>::try_from(head).unwrap());
            let length = head.map(|head| u32::from_be_bytes(head) as usize);
            if let Some(length) = length.filter(|length| self.rest.len() >= 4 + length) {
                let frame: Vec<u8> = self.rest.drain(..4 + length).skip(4).collect();
                let (kind, object) = opened(&at(&frame, &[2, 1]));
                return (word(&frame, &[1]), kind, object);
            }
            let frame = self.body.frame().await.unwrap().unwrap();
            self.rest.extend_from_slice(&frame.into_data().unwrap());
        }
    }
}

#[tokio::test]
async fn services_are_made_watched_patched_and_deleted() {
    let server = Server::start().await;
    let (code, _, made) = server.send("POST", SERVICES, service()).await;
    assert_eq!(code, 201);
    assert_eq!(word(&made, &[2, 1, 4, 3]), "http");
    assert!(!word(&made, &[2, 3]).is_empty(), "clusterIP");
    let path = format!("{SERVICES}/web");
    let read = server.json(&path).await;
    assert_eq!(read["spec"]["ports"][1]["targetPort"], 8080);
    assert_eq!(read["spec"]["allocateLoadBalancerNodePorts"], false);
    assert_eq!(read["spec"]["loadBalancerSourceRanges"], json!(["10.0.0.0/8"]));
    assert_eq!(read["metadata"]["labels"], json!({"x": "y"}));
    assert_eq!(read["metadata"]["annotations"], json!({"example.com/a": "b"}));

    let watch = format!("{SERVICES}?watch=true&fieldSelector=metadata.name%3Dweb");
    let response = server.open("GET", &watch, MEDIA, vec![]).await;
    let streamed = format!("{MEDIA};stream=watch");
    assert_eq!(response.headers()["content-type"], streamed.as_str());
    let mut frames = Frames { body: response.into_body(), rest: Vec::new() };
    let (event, kind, object) = frames.next().await;
    assert_eq!((event.as_str(), kind.as_str()), ("ADDED", "v1 Service"));
    assert_eq!(word(&object, &[1, 1]), "web");

    let patch = json!({"metadata": {"labels": {"z": "z"}}}).to_string().into_bytes();
    let merge = "application/strategic-merge-patch+json";
    let response = server.open("PATCH", &path, merge, patch).await;
    let (kind, patched) = opened(&response.into_body().collect().await.unwrap().to_bytes());
    assert_eq!((kind.as_str(), all(&at(&patched, &[1]), 11).len()), ("v1 Service", 2));
    let (event, _, object) = frames.next().await;
    assert_eq!((event.as_str(), all(&at(&object, &[1]), 11).len()), ("MODIFIED", 2));

    // DeleteOptions: 2 preconditions (1 uid), 4 propagationPolicy.
    let options = |uid: &str| {
        let raw = [part(2, part(1, uid)), part(4, "Background")].concat();
        envelope("v1", "DeleteOptions", &raw)
    };
    let (code, _, status) = server.send("DELETE", &path, options("another")).await;
    assert_eq!((code, word(&status, &[4])), (409, "Conflict".to_string()));
    let uid = word(&made, &[1, 5]);
    let (code, _, _) = server.send("DELETE", &path, options(&uid)).await;
    assert_eq!(code, 200);
    assert_eq!(frames.next().await.0, "DELETED");
}

#[tokio::test]
async fn nodes_go_both_ways_with_quantities_and_are_listed() {
    let server = Server::start().await;
    let spec = [part(1, "10.1.0.0/24"), part(3, "azure:///n"), number(4, 1)].concat();
    let cpu = pair(1, "cpu", part(1, "3800m"));
    let ready = [part(1, "Ready"), part(2, "True"), instant(3, 1_700_000_000, 0), part(4, "")];
    let address = [part(1, "InternalIP"), part(2, "10.0.0.4")].concat();
    let status = [cpu.clone(), part(4, ready.concat()), part(5, address)].concat();
    let head = metadata("n1", "", "", &[pair(11, "kubernetes.io/os", "linux")]);
    let node = envelope("v1", "Node", &[head, part(2, spec), part(3, status)].concat());
    let (code, kind, _) = server.send("POST", "/api/v1/nodes", node.clone()).await;
    assert_eq!((code, kind.as_str()), (201, "v1 Node"));
    let (code, _, _) = server.send("PUT", "/api/v1/nodes/n1/status", node).await;
    assert_eq!(code, 200);
    let read = server.json("/api/v1/nodes/n1").await;
    assert_eq!(read["status"]["capacity"], json!({"cpu": "3800m"}));
    assert_eq!(read["status"]["conditions"][0]["lastHeartbeatTime"], "2023-11-14T22:13:20Z");
    assert_eq!(read["spec"]["unschedulable"], true);
    let (code, kind, list) = server.send("GET", "/api/v1/nodes", vec![]).await;
    assert_eq!((code, kind.as_str()), (200, "v1 NodeList"));
    assert!(!word(&list, &[1, 2]).is_empty(), "the list's resourceVersion");
    assert_eq!((all(&list, 2).len(), word(&list, &[2, 1, 1])), (1, "n1".to_string()));
    assert_eq!(part(1, at(&list, &[2, 3, 1])), cpu);
}

#[tokio::test]
async fn an_endpoint_that_is_not_ready_stays_so() {
    let server = Server::start().await;
    let target = [part(1, "Pod"), part(2, "default"), part(3, "p"), part(4, "u")].concat();
    let endpoint = [
        part(1, "10.1.0.7"),
        part(2, [number(1, 0), number(2, 1), number(3, 1)].concat()),
        part(4, target),
        part(6, "n1"),
    ];
    let port = [part(1, "http"), part(2, "TCP"), number(3, 8080)].concat();
    let raw = [
        metadata("web-1", "default", "", &[pair(11, "kubernetes.io/service-name", "web")]),
        part(2, endpoint.concat()),
        part(3, port),
        part(4, "IPv4"),
    ];
    let slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
    let slice = envelope("discovery.k8s.io/v1", "EndpointSlice", &raw.concat());
    let (code, _, made) = server.send("POST", slices, slice).await;
    assert_eq!(code, 201);
    assert_eq!(at(&made, &[2, 2, 1]), varint(0), "ready: false is no absence");
    let read = server.json(&format!("{slices}/web-1")).await;
    let want = json!([{"addresses": ["10.1.0.7"], "nodeName": "n1",
        "conditions": {"ready": false, "serving": true, "terminating": true},
        "targetRef": {"kind": "Pod", "namespace": "default", "name": "p", "uid": "u"}}]);
    assert_eq!(read["endpoints"], want);
    assert_eq!(read["ports"], json!([{"name": "http", "protocol": "TCP", "port": 8080}]));
}

#[tokio::test]
async fn events_of_both_groups_are_one() {
    let server = Server::start().await;
    let about = [part(1, "Service"), part(2, "default"), part(3, "web")].concat();
    let old = [
        metadata("e1", "default", "", &[]),
        part(2, &about),
        part(3, "EnsuringLoadBalancer"),
        part(4, "old"),
        part(5, [part(1, "service-controller"), part(2, "")].concat()),
        instant(6, 1_700_000_000, 0),
        instant(7, 1_700_000_001, 0),
        number(8, 2),
        part(9, "Normal"),
        part(10, ""),
    ];
    let path = "/api/v1/namespaces/default/events";
    let (code, _, _) = server.send("POST", path, envelope("v1", "Event", &old.concat())).await;
    assert_eq!(code, 201);
    let new = [
        metadata("e2", "default", "", &[]),
        instant(2, 1_700_000_000, 7_000),
        part(4, "c"),
        part(5, "c-0"),
        part(6, "Ensure"),
        part(7, "Ensured"),
        part(8, &about),
        part(10, "new"),
        part(11, "Warning"),
    ];
    let newer = "/apis/events.k8s.io/v1/namespaces/default/events";
    let new = envelope("events.k8s.io/v1", "Event", &new.concat());
    let (code, kind, _) = server.send("POST", newer, new).await;
    assert_eq!((code, kind.as_str()), (201, "events.k8s.io/v1 Event"));
    let (_, kind, list) = server.send("GET", path, vec![]).await;
    assert_eq!((kind.as_str(), all(&list, 2).len()), ("v1 EventList", 2));
    let second = &all(&list, 2)[1];
    assert_eq!((word(second, &[4]), word(second, &[2, 3])), ("new".into(), "web".into()));
    assert_eq!(at(second, &[10]), [number(1, 1_700_000_000), number(2, 7_000)].concat());
    let (_, _, list) = server.send("GET", newer, vec![]).await;
    assert_eq!(word(&all(&list, 2)[0], &[10]), "old");
}
