//! The data path on real sockets. Everything is on loopback.

use crate::common::net;
use azure_emulator::{Azure, Options, Request, Shared, serve_with};
use data_path::{Floated, Host, Hosts, Wire, WireOptions};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream, UdpSocket};
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
    /// Frontend ports.
    ports: Vec<u16>,
    /// What stands in the rules beside what all have.
    rule: Value,
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
        Field {
            azure,
            wire,
            http,
            stop: Some(stop),
            task,
            pool: Vec::new(),
            transport,
            ports: vec![80],
            rule: json!({"enableFloatingIP": true, "enableTcpReset": true,
                "loadDistribution": "Default"}),
        }
    }

    fn hosts(ports: &[u16]) -> Hosts {
        let mut hosts = Hosts::default();
        for (at, port) in ports.iter().enumerate() {
            hosts.hosts.insert(node(at).parse().unwrap(), host(*port));
        }
        hosts
    }

    /// Nodes that are really at these ports of 127.0.0.1.
    fn place(&mut self, ports: &[u16]) {
        self.wire.place(Self::hosts(ports)).unwrap();
        self.pool = (0..ports.len()).map(|at| (node(at), "None")).collect();
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
        let rule = |port: &u16| {
            let mut properties = json!({
                "frontendIPConfiguration": part("frontendIPConfigurations/front"),
                "backendAddressPool": part("backendAddressPools/pool"),
                "probe": part("probes/probe"), "protocol": self.transport, "frontendPort": port,
                "backendPort": port, "idleTimeoutInMinutes": 4});
            for (key, value) in self.rule.as_object().unwrap() {
                properties[key] = value.clone();
            }
            json!({"name": format!("rule-{port}"), "properties": properties})
        };
        let rules: Vec<Value> = self.ports.iter().map(rule).collect();
        let body = json!({"location": "eastus", "sku": {"name": "Standard"}, "properties": {
            "frontendIPConfigurations": [{"name": "front", "properties": {
                "publicIPAddress": {"id": net("publicIPAddresses/pip")}}}],
            "backendAddressPools": [{"name": "pool", "properties": {
                "virtualNetwork": {"id": net("virtualNetworks/vnet")},
                "loadBalancerBackendAddresses": addresses}}],
            "probes": [{"name": "probe", "properties": {"protocol": "Tcp", "port": 10_256,
                "intervalInSeconds": 5, "probeThreshold": 1}}],
            "loadBalancingRules": rules}});
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

/// The address of a node in Azure.
fn node(at: usize) -> String {
    format!("10.224.0.{}", 4 + at)
}

/// Where a node really is.
fn host(port: u16) -> Host {
    Host { address: IpAddr::from([127, 0, 0, 1]), ports: BTreeMap::new(), others: Some(port) }
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

/// Twenty connections, each with the node that answered on it.
async fn twenty(at: SocketAddr) -> Vec<(TcpStream, u8)> {
    let mut all = Vec::new();
    for _ in 0..20 {
        let mut stream = TcpStream::connect(at).await.unwrap();
        let node = say(&mut stream, "x").await.unwrap();
        all.push((stream, node));
    }
    all
}

#[tokio::test]
async fn tcp_by_health_and_admin_state() {
    let mut field = Field::new("Tcp", 20).await;
    field.place(&[tcp_node(1).await, tcp_node(2).await]);
    let at = field.open(&[true, true]).await;
    assert!(at.ip().is_loopback() && at.to_string().starts_with("127.88."), "{at}");
    assert_eq!(reached(at).await, [1, 2]);

    // Down: established connections live on, new ones go elsewhere.
    let mut old = twenty(at).await;
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
        let heard = say(stream, "?").await.map_err(|e| e.kind());
        match node {
            2 => assert_eq!(heard, Ok(2)),
            _ => assert_eq!(heard, Err(std::io::ErrorKind::ConnectionReset)),
        }
    }
    field.end().await;
}

/// A connection of a client with this address.
async fn connect_from(client: [u8; 4], at: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind((IpAddr::from(client), 0).into()).unwrap();
    socket.connect(at).await.unwrap()
}

/// Whatever its ports and the frontend's: with a hash of both addresses one client is always at
/// one node. With a hash of everything it is not.
#[tokio::test]
async fn by_source_address_all_connections_of_a_client_reach_one_node() {
    for (distribution, spreads) in
        [("SourceIP", false), ("SourceIPProtocol", false), ("Default", true)]
    {
        let mut field = Field::new("Tcp", 20).await;
        field.ports = vec![80, 443];
        field.rule["loadDistribution"] = json!(distribution);
        field.place(&[tcp_node(1).await, tcp_node(2).await, tcp_node(3).await]);
        field.open(&[true, true, true]).await;
        let view = field.until("both ports", |view| view["frontends"][1]["at"].is_string()).await;
        let listeners: Vec<SocketAddr> = view["frontends"]
            .as_array()
            .unwrap()
            .iter()
            .map(|frontend| frontend["at"].as_str().unwrap().parse().unwrap())
            .collect();
        assert_eq!(listeners.len(), 2);
        let mut nodes = Vec::new();
        for client in 2..32 {
            let mut found = Vec::new();
            for at in [0, 1, 0, 1, 0, 1, 0, 1] {
                let mut stream = connect_from([127, 0, 0, client], listeners[at]).await;
                found.push(say(&mut stream, "x").await.unwrap());
            }
            found.sort_unstable();
            found.dedup();
            nodes.push(found);
        }
        let wandered = nodes.iter().any(|found| found.len() > 1);
        assert_eq!(wandered, spreads, "{distribution}: {nodes:?}");
        let mut all = nodes.concat();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all, [1, 2, 3], "{distribution}");
        field.end().await;
    }
}

/// Packets that keep the frontend's address arrive where that address is on the node; others, and
/// the probe's, where the node is.
#[tokio::test]
async fn a_floating_address_arrives_where_the_node_has_it() {
    let mut field = Field::new("Tcp", 20).await;
    let ports = [tcp_node(1).await, tcp_node(2).await];
    let mut hosts = Field::hosts(&ports);
    hosts.floating.push(Floated {
        backend: node(1).parse().unwrap(),
        frontend: PUBLIC.parse().unwrap(),
        host: host(tcp_node(9).await),
    });
    field.place(&ports);
    field.wire.place(hosts).unwrap();
    let at = field.open(&[true, true]).await;
    assert_eq!(reached(at).await, [1, 9]);
    let mut old = twenty(at).await;
    field.rule["enableFloatingIP"] = json!(false);
    field.write();
    // Who was forwarded with the address is so no longer.
    for (stream, _) in &mut old {
        let mut byte = [0];
        assert!(stream.read(&mut byte).await.is_err());
    }
    field.open(&[true, true]).await;
    assert_eq!(reached(at).await, [1, 2]);
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

/// Without `enableTcpReset` neither side hears of it: what the client says then goes nowhere.
#[tokio::test]
async fn an_idle_connection_without_reset_ends_in_silence() {
    let mut field = Field::new("Tcp", 8).await;
    field.rule["enableTcpReset"] = json!(false);
    let heard = Arc::new(AtomicUsize::new(0));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    field.place(&[listener.local_addr().unwrap().port()]);
    let counted = Arc::clone(&heard);
    let server = tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let counted = Arc::clone(&counted);
            tokio::spawn(async move {
                let mut byte = [0];
                while let Ok(1) = stream.read(&mut byte).await {
                    counted.fetch_add(1, Ordering::SeqCst);
                    stream.write_all(b"!").await.unwrap();
                }
            });
        }
    });
    let at = field.open(&[true]).await;
    let mut idle = TcpStream::connect(at).await.unwrap();
    idle.write_all(b"a").await.unwrap();
    let mut byte = [0];
    idle.read_exact(&mut byte).await.unwrap();
    let ended = |view: &Value| view["flows"] == 0 && view["counts"]["ended"] == 1;
    field.until("the end of the flow", ended).await;
    idle.write_all(b"b").await.unwrap();
    idle.shutdown().await.unwrap();
    let mut rest = Vec::new();
    // The end, and neither an answer nor a reset before it.
    assert_eq!(idle.read_to_end(&mut rest).await.unwrap(), 0);
    assert_eq!(heard.load(Ordering::SeqCst), 1, "nothing was forwarded");
    server.abort();
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
    let moved = clients.iter().filter(|(_, node)| *node == 1).count();
    let counts = &field.wire.view()["counts"];
    assert_eq!((&counts["moved"], &counts["ended"]), (&json!(moved), &json!(0)));
    field.end().await;
}

async fn post(at: SocketAddr, path: &str, body: &Value) -> u16 {
    let mut stream = TcpStream::connect(at).await.unwrap();
    let body = body.to_string();
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n{body}",
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

async fn get(at: SocketAddr, path: &str) -> (u16, Value) {
    let mut stream = TcpStream::connect(at).await.unwrap();
    let head = format!("GET {path} HTTP/1.1\r\nhost: {at}\r\nconnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, serde_json::from_str(body).unwrap_or(Value::Null))
}

/// What is asked for metrics of a load balancer, split by frontend port and backend.
fn metrics_of(balancer: &str) -> String {
    let filter = "FrontendIPAddress%20eq%20%2720.50.0.7%27%20and%20FrontendPort%20eq%20%27*%27\
        %20and%20ProtocolType%20eq%20%27*%27%20and%20BackendIPAddress%20eq%20%27*%27";
    let span = "2026-01-01T00:00:00Z%2F2026-01-01T00:02:00Z";
    format!(
        "{balancer}/providers/Microsoft.Insights/metrics?api-version=2018-01-01\
         &metricnames=DipAvailability&timespan={span}&interval=PT1M&aggregation=Average&top=100\
         &$filter={filter}"
    )
}

#[tokio::test]
async fn azure_monitor_tells_which_backends_answer_their_probes() {
    let mut field = Field::new("Tcp", 10).await;
    let (a, closed) = (tcp_node(b'a').await, {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        listener.local_addr().unwrap().port()
    });
    field.ports = vec![80, 443];
    field.place(&[a, closed]);
    field.open(&[true, false]).await;
    while field.wire.probed().iter().any(|one| one.changes.is_empty()) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let path = metrics_of(&net("loadBalancers/lb"));
    let (status, body) = get(field.http, &path).await;
    assert_eq!(status, 200, "{body}");
    let metric = &body["value"][0];
    assert_eq!(
        (&metric["name"]["value"], &metric["unit"]),
        (&json!("DipAvailability"), &json!("Count"))
    );
    let found: Vec<(Vec<&str>, Option<f64>)> = metric["timeseries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|series| {
            let labels = series["metadatavalues"].as_array().unwrap().iter();
            let last = series["data"].as_array().unwrap().last().unwrap();
            assert_eq!(last["timeStamp"], "2026-01-01T00:01:00Z");
            (labels.map(|l| l["value"].as_str().unwrap()).collect(), last["average"].as_f64())
        })
        .collect();
    let want: Vec<(Vec<&str>, Option<f64>)> = [("10.224.0.4", 100.0), ("10.224.0.5", 0.0)]
        .iter()
        .flat_map(|(node, value)| {
            ["443", "80"].map(|port| (vec![*node, PUBLIC, port, "TCP"], Some(*value)))
        })
        .collect();
    assert_eq!(found, want);
    // A node that goes shows at once; the minute before it does not change.
    let mut hosts = Field::hosts(&[closed, closed]);
    hosts.anybody = None;
    field.wire.place(hosts).unwrap();
    field.open(&[false, false]).await;
    let (_, body) = get(field.http, &path).await;
    let series = &body["value"][0]["timeseries"];
    assert_eq!(series[0]["data"].as_array().unwrap().last().unwrap()["average"], 0.0);
    field.end().await;
}

#[tokio::test]
async fn azure_monitor_refuses_what_azure_refuses() {
    let field = Field::new("Tcp", 10).await;
    field.write();
    let path = metrics_of(&net("loadBalancers/lb"));
    for (wrong, status, code) in [
        (path.replace("loadBalancers/lb", "loadBalancers/other"), 404, "ResourceNotFound"),
        (path.replace("DipAvailability", "Nonsense"), 400, "BadRequest"),
        (path.replace("BackendIPAddress", "Color"), 400, "BadRequest"),
        (path.replace("2026-01-01T00:02", "2025-01-01T00:02"), 400, "BadRequest"),
    ] {
        let (answered, body) = get(field.http, &wrong).await;
        assert_eq!((answered, &body["error"]["code"]), (status, &json!(code)), "{wrong}: {body}");
    }
    let may = vec!["Microsoft.Network/*".to_owned()];
    field.azure.lock().unwrap().options_mut().permissions = may;
    let (status, body) = get(field.http, &path).await;
    assert_eq!((status, &body["error"]["code"]), (403, &json!("AuthorizationFailed")));
    assert!(body["error"]["message"].as_str().unwrap().contains("Microsoft.Insights/metrics/read"));
    field.end().await;
}
