//! The data path on real sockets. Everything is on loopback.
#![allow(clippy::unwrap_used, reason = "a failed unwrap here is a failed test")]

mod common;

use azure_emulator::{Azure, Host, Hosts, Options, Request, Shared, Wire, WireOptions, serve_with};
use common::net;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

const PUBLIC: &str = "20.50.0.7";

/// An Azure with one load balancer, and its data path.
struct Field {
    azure: Shared,
    wire: Wire,
    http: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
    pool: Vec<(String, &'static str)>,
    transport: &'static str,
}

impl Field {
    async fn new(transport: &'static str, second_ms: u32) -> Self {
        let azure = Arc::new(Mutex::new(Azure::new(Options::default())));
        azure.lock().unwrap().seed(vec![json!({"id": net("publicIPAddresses/pip"),
            "sku": {"name": "Standard"}, "properties": {"ipAddress": PUBLIC}})]);
        let wire = Wire::new(WireOptions { second_ms, ..WireOptions::default() });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let http = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let served = serve_with(listener, Arc::clone(&azure), wire.clone(), async {
            let _ = stopped.await;
        });
        let task = tokio::spawn(async { served.await.unwrap() });
        Field { azure, wire, http, stop: Some(stop), task, pool: Vec::new(), transport }
    }

    /// Nodes that are really at these ports of 127.0.0.1.
    fn place(&mut self, ports: &[u16]) {
        let mut hosts = Hosts::default();
        self.pool.clear();
        for (at, port) in ports.iter().enumerate() {
            let node = format!("10.224.0.{}", 4 + at);
            let address = IpAddr::from([127, 0, 0, 1]);
            let host = Host { address, ports: BTreeMap::new(), others: Some(*port) };
            hosts.hosts.insert(node.parse().unwrap(), host);
            self.pool.push((node, "None"));
        }
        self.wire.place(hosts).unwrap();
        self.write();
    }

    /// Writes the load balancer as a client would.
    fn write(&self) {
        let id = net("loadBalancers/lb");
        let part = |rest: &str| json!({"id": format!("{id}/{rest}")});
        let addresses: Vec<Value> = self
            .pool
            .iter()
            .map(|(node, admin)| {
                json!({"name": node, "properties": {"ipAddress": node, "adminState": admin}})
            })
            .collect();
        let rule = json!({"name": "rule", "properties": {
            "frontendIPConfiguration": part("frontendIPConfigurations/front"),
            "backendAddressPool": part("backendAddressPools/pool"), "probe": part("probes/probe"),
            "protocol": self.transport, "frontendPort": 80, "backendPort": 80,
            "enableFloatingIP": true, "enableTcpReset": true, "idleTimeoutInMinutes": 4}});
        let body = json!({"location": "eastus", "sku": {"name": "Standard"}, "properties": {
            "frontendIPConfigurations": [{"name": "front", "properties": {
                "publicIPAddress": {"id": net("publicIPAddresses/pip")}}}],
            "backendAddressPools": [{"name": "pool", "properties": {
                "virtualNetwork": {"id": net("virtualNetworks/vnet")},
                "loadBalancerBackendAddresses": addresses}}],
            "probes": [{"name": "probe", "properties": {"protocol": "Tcp", "port": 10_256,
                "intervalInSeconds": 5, "probeThreshold": 1}}],
            "loadBalancingRules": [rule]}});
        let mut azure = self.azure.lock().unwrap();
        azure.options_mut().references = azure_emulator::Switch::Off;
        let answer = azure.handle(Request::new("PUT", &id).with_body(body), 1);
        assert!(matches!(answer.status, 200 | 201), "{answer:?}");
    }

    fn set(&mut self, admins: &[&'static str]) {
        self.pool.iter_mut().zip(admins).for_each(|((_, admin), to)| *admin = to);
        self.write();
    }

    /// Waits until the view says so.
    async fn until(&self, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
        for _ in 0..2_000 {
            let view = self.wire.view();
            if holds(&view) {
                return view;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("{what} did not come about: {:#}", self.wire.view());
    }

    /// Waits until exactly these backends take new flows; gives where the frontend is.
    async fn open(&self, takers: &[bool]) -> SocketAddr {
        let view = self
            .until("the backends that take flows", |view| {
                let backends = view["rules"][0]["backends"].as_array();
                let found = backends.into_iter().flatten().map(|b| b["takesNewFlows"] == true);
                found.eq(takers.iter().copied()) && view["frontends"][0]["at"].is_string()
            })
            .await;
        assert_eq!(view["frontends"][0]["address"], PUBLIC);
        view["frontends"][0]["at"].as_str().unwrap().parse().unwrap()
    }

    async fn end(mut self) {
        self.stop.take().unwrap().send(()).unwrap();
        self.task.await.unwrap();
    }
}

/// A node that puts its name before what it gives back.
async fn tcp_node(name: u8) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        loop {
            let Ok((mut stream, _)) = listener.accept().await else { return };
            tokio::spawn(async move {
                let mut buffer = [0; 1_024];
                while let Ok(count @ 1..) = stream.read(&mut buffer).await {
                    let mut said = vec![name];
                    said.extend(&buffer[..count]);
                    if stream.write_all(&said).await.is_err() {
                        return;
                    }
                }
            });
        }
    });
    port
}

/// The same for datagrams; connections are taken, too, for the probe.
async fn udp_node(name: u8) -> u16 {
    let port = tcp_node(name).await;
    let socket = UdpSocket::bind(("127.0.0.1", port)).await.unwrap();
    tokio::spawn(async move {
        let mut buffer = [0; 1_024];
        while let Ok((count, from)) = socket.recv_from(&mut buffer).await {
            let mut said = vec![name];
            said.extend(&buffer[..count]);
            let _ = socket.send_to(&said, from).await;
        }
    });
    port
}

async fn say(stream: &mut TcpStream, text: &str) -> std::io::Result<u8> {
    stream.write_all(text.as_bytes()).await?;
    let mut answer = vec![0; text.len() + 1];
    stream.read_exact(&mut answer).await?;
    assert_eq!(&answer[1..], text.as_bytes());
    Ok(answer[0])
}

/// Which nodes new connections reach; a connection that is refused counts as 0.
async fn reached(at: SocketAddr) -> Vec<u8> {
    let mut found = Vec::new();
    for _ in 0..40 {
        let mut stream = TcpStream::connect(at).await.unwrap();
        found.push(say(&mut stream, "x").await.unwrap_or(0));
    }
    found.sort_unstable();
    found.dedup();
    found
}

#[tokio::test]
async fn tcp_by_health_and_admin_state() {
    let mut field = Field::new("Tcp", 20).await;
    field.place(&[tcp_node(1).await, tcp_node(2).await]);
    let at = field.open(&[true, true]).await;
    assert!(at.ip().is_loopback() && at.to_string().starts_with("127.88."), "{at}");
    assert_eq!(reached(at).await, [1, 2]);

    // Down: established connections live on, new ones go elsewhere.
    let mut old = Vec::new();
    for _ in 0..20 {
        let mut stream = TcpStream::connect(at).await.unwrap();
        let node = say(&mut stream, "x").await.unwrap();
        old.push((stream, node));
    }
    assert!(old.iter().any(|(_, node)| *node == 1));
    field.set(&["Down", "None"]);
    field.open(&[false, true]).await;
    assert_eq!(reached(at).await, [2]);
    for (stream, node) in &mut old {
        assert_eq!(say(stream, "still there").await.unwrap(), *node);
    }

    // Both down: a connection is made and reset; Azure would not answer at all.
    field.set(&["Down", "Down"]);
    field.open(&[false, false]).await;
    assert_eq!(reached(at).await, [0]);

    // With the switch, Down resets.
    let path = "/_/data-path/semantics";
    assert_eq!(post(field.http, path, &json!({"onDown": "reset"})).await, 200);
    field.set(&["Down", "None"]);
    field.open(&[false, true]).await;
    for (stream, node) in &mut old {
        assert_eq!(say(stream, "?").await.is_ok(), *node == 2, "node {node}");
    }
    field.end().await;
}

#[tokio::test]
async fn a_backend_that_leaves_the_pool_breaks_its_connections() {
    let mut field = Field::new("Tcp", 20).await;
    let ports = [tcp_node(1).await, tcp_node(2).await];
    field.place(&ports);
    let at = field.open(&[true, true]).await;
    let mut streams = Vec::new();
    for _ in 0..20 {
        let mut stream = TcpStream::connect(at).await.unwrap();
        let node = say(&mut stream, "x").await.unwrap();
        streams.push((stream, node));
    }
    field.pool.pop();
    field.write();
    field.until("one backend", |view| view["rules"][0]["backends"][1].is_null()).await;
    for (stream, node) in &mut streams {
        assert_eq!(say(stream, "x").await.is_ok(), *node == 1, "node {node}");
    }
    // The rule goes: nobody listens any more.
    let id = net("loadBalancers/lb");
    field.azure.lock().unwrap().handle(Request::new("DELETE", &id), 2);
    field.until("no frontend", |view| view["frontends"][0].is_null()).await;
    assert!(field.wire.places().is_empty());
    let mut refused = false;
    for _ in 0..200 {
        refused = TcpStream::connect(at).await.is_err();
        if refused {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(refused, "the listener is closed");
    field.end().await;
}

#[tokio::test]
async fn both_halves_of_a_connection_end_by_themselves() {
    let mut field = Field::new("Tcp", 20).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    field.place(&[listener.local_addr().unwrap().port()]);
    let server = tokio::spawn(async move {
        // Probes connect and say nothing.
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            tokio::spawn(async move {
                let mut all = Vec::new();
                if stream.read_to_end(&mut all).await.is_ok() && !all.is_empty() {
                    let count = all.len().to_string();
                    stream.write_all(count.as_bytes()).await.unwrap();
                }
            });
        }
    });
    let at = field.open(&[true]).await;
    let mut stream = TcpStream::connect(at).await.unwrap();
    stream.write_all(&vec![b'x'; 3_000_000]).await.unwrap();
    stream.shutdown().await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert_eq!(answer, "3000000");
    server.abort();
    field.end().await;
}

#[tokio::test]
async fn idle_connections_are_reset_and_busy_ones_live() {
    // Four minutes take 480 ms.
    let mut field = Field::new("Tcp", 2).await;
    field.place(&[tcp_node(1).await]);
    let at = field.open(&[true]).await;
    let mut busy = TcpStream::connect(at).await.unwrap();
    let mut idle = TcpStream::connect(at).await.unwrap();
    say(&mut idle, "x").await.unwrap();
    let mut byte = [0];
    // A machine that is busy elsewhere may make the busy one idle, too: it is opened anew then.
    loop {
        tokio::select! {
            heard = idle.read(&mut byte) => {
                assert_eq!(heard.unwrap_err().kind(), std::io::ErrorKind::ConnectionReset);
                break;
            }
            () = tokio::time::sleep(Duration::from_millis(5)) => {
                if say(&mut busy, "y").await.is_err() {
                    busy = TcpStream::connect(at).await.unwrap();
                }
            }
        }
    }
    field.end().await;
}

#[tokio::test]
async fn datagrams_move_when_their_backend_is_down() {
    let mut field = Field::new("Udp", 20).await;
    field.place(&[udp_node(1).await, udp_node(2).await]);
    let at = field.open(&[true, true]).await;
    let ask = async |socket: &UdpSocket| {
        let mut buffer = [0; 16];
        socket.send_to(b"x", at).await.unwrap();
        let (count, from) = socket.recv_from(&mut buffer).await.unwrap();
        assert_eq!((count, from, buffer[1]), (2, at, b'x'));
        buffer[0]
    };
    let mut clients = Vec::new();
    for _ in 0..20 {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let node = ask(&socket).await;
        assert_eq!(ask(&socket).await, node, "the same flow");
        clients.push((socket, node));
    }
    assert!(clients.iter().any(|(_, node)| *node == 1));
    field.set(&["Down", "None"]);
    field.open(&[false, true]).await;
    for (socket, _) in &clients {
        assert_eq!(ask(socket).await, 2);
    }
    field.end().await;
}

async fn post(at: SocketAddr, path: &str, body: &Value) -> u16 {
    let mut stream = TcpStream::connect(at).await.unwrap();
    let body = body.to_string();
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer.split(' ').nth(1).unwrap().parse().unwrap()
}

#[tokio::test]
async fn only_loopback_is_reached() {
    let field = Field::new("Tcp", 20).await;
    let path = "/_/data-path/hosts";
    let host = |address: &str| json!({"hosts": {"10.224.0.4": {"address": address}}});
    assert_eq!(post(field.http, path, &host("10.0.0.1")).await, 400);
    assert_eq!(post(field.http, path, &host("0.0.0.0")).await, 400);
    assert_eq!(post(field.http, path, &json!({"anybody": {"address": "8.8.8.8"}})).await, 400);
    assert_eq!(post(field.http, path, &json!({"unknown": {}})).await, 400);
    assert_eq!(post(field.http, path, &host("127.0.16.4")).await, 200);
    assert_eq!(field.wire.view()["hosts"]["hosts"]["10.224.0.4"]["address"], "127.0.16.4");
    field.end().await;
}
