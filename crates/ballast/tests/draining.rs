//! Clients of a Service while nodes are drained, pods roll and the controller is killed: real
//! processes, real sockets, every connection counted.
#![allow(clippy::unwrap_used, reason = "a failed unwrap in a test is a failed test")]

mod support;

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use support::{Emulators, Process, http, wait_for};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio::task::JoinHandle;

const NODES: u32 = 4;
const CLIENTS: usize = 200;
/// A second of the emulated Azure's data path.
const SECOND: Duration = Duration::from_millis(100);

/// What clients met with.
#[derive(Debug, Default)]
struct Tally {
    /// Connections that said "ping" and were answered.
    opened: AtomicUsize,
    /// Connections that ended because their server said goodbye.
    ended: AtomicUsize,
    /// New connections that nobody took.
    refused: AtomicUsize,
    /// Established connections that broke without a goodbye.
    broken: AtomicUsize,
    stop: AtomicBool,
}

impl Tally {
    fn count(&self, what: &AtomicUsize) {
        what.fetch_add(1, Ordering::SeqCst);
    }

    fn failures(&self) -> usize {
        self.refused.load(Ordering::SeqCst) + self.broken.load(Ordering::SeqCst)
    }

    fn is_over(&self) -> bool {
        self.stop.load(Ordering::SeqCst)
    }
}

/// What a client hears when it pings.
#[derive(PartialEq)]
enum Heard {
    Pong,
    Bye,
    Nothing,
}

async fn ping(stream: &mut BufReader<TcpStream>) -> Heard {
    let mut line = String::new();
    if stream.get_mut().write_all(b"ping\n").await.is_err() {
        return Heard::Nothing;
    }
    match stream.read_line(&mut line).await {
        Ok(_) if line == "pong\n" => Heard::Pong,
        Ok(_) if line == "bye\n" => Heard::Bye,
        _ => Heard::Nothing,
    }
}

/// Keeps one connection after another for as long as its server likes.
async fn keep(at: SocketAddr, tally: Arc<Tally>) {
    while !tally.is_over() {
        let Some(mut stream) = open(at, &tally).await else { continue };
        loop {
            tokio::time::sleep(SECOND).await;
            if tally.is_over() {
                return;
            }
            match ping(&mut stream).await {
                Heard::Pong => continue,
                Heard::Bye => tally.count(&tally.ended),
                Heard::Nothing => tally.count(&tally.broken),
            }
            break;
        }
    }
}

/// Makes one connection after another.
async fn come_and_go(at: SocketAddr, tally: Arc<Tally>) {
    while !tally.is_over() {
        drop(open(at, &tally).await);
        tokio::time::sleep(SECOND / 10).await;
    }
}

async fn open(at: SocketAddr, tally: &Tally) -> Option<BufReader<TcpStream>> {
    let stream = TcpStream::connect(at).await.ok();
    let Some(mut stream) = stream.map(BufReader::new) else {
        tally.count(&tally.refused);
        return None;
    };
    if ping(&mut stream).await == Heard::Nothing {
        tally.count(&tally.refused);
        return None;
    }
    tally.count(&tally.opened);
    Some(stream)
}

/// A node: the Service's pods behind one port, kube-proxy's health behind another.
struct Node {
    port: u16,
    health: u16,
    /// Connections it has.
    connections: Arc<AtomicUsize>,
    /// Each change says goodbye to every connection made before it.
    pods: watch::Sender<u32>,
    tasks: [JoinHandle<()>; 2],
}

impl Node {
    fn start(runtime: &Runtime) -> Self {
        let (pods, watched) = watch::channel(0);
        let connections = Arc::new(AtomicUsize::new(0));
        let bind = || runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let (service, proxy) = (bind(), bind());
        let (port, health) =
            (service.local_addr().unwrap().port(), proxy.local_addr().unwrap().port());
        let counted = Arc::clone(&connections);
        let serving = runtime.spawn(async move {
            loop {
                let Ok((stream, _)) = service.accept().await else { continue };
                counted.fetch_add(1, Ordering::SeqCst);
                let (counted, watched) = (Arc::clone(&counted), watched.clone());
                tokio::spawn(async move {
                    serve(stream, watched).await;
                    counted.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        let healthy = runtime.spawn(async move {
            loop {
                let Ok((mut stream, _)) = proxy.accept().await else { continue };
                let ok = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
                let _ = stream.write_all(ok).await;
                let mut line = String::new();
                let _ = BufReader::new(stream).read_line(&mut line).await;
            }
        });
        Node { port, health, connections, pods, tasks: [serving, healthy] }
    }

    fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    /// Its pods are replaced: the old ones finish what they have.
    fn roll(&self) {
        self.pods.send_modify(|generation| *generation += 1);
    }

    /// Nothing listens any more.
    fn stop(&self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

/// A pod's side of a connection. It says goodbye as an answer, so that no ping is left over.
async fn serve(stream: TcpStream, mut pods: watch::Receiver<u32>) {
    pods.mark_unchanged();
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    while let Ok(1..) = stream.read_line(&mut line).await {
        let leaves = pods.has_changed().unwrap_or(true);
        let answer: &[u8] = if leaves { b"bye\n" } else { b"pong\n" };
        if stream.get_mut().write_all(answer).await.is_err() {
            return;
        }
        line.clear();
    }
}

/// The cluster, its controller and its nodes.
struct Stage {
    runtime: Runtime,
    emulators: Emulators,
    controller: Option<Process>,
    nodes: BTreeMap<u32, Node>,
    drains: bool,
}

fn address(number: u32) -> String {
    format!("10.224.0.{}", 4 + number)
}

impl Stage {
    fn new(drain_seconds: u32) -> Self {
        let runtime = Runtime::new().unwrap();
        let (nodes, second) = (NODES.to_string(), SECOND.as_millis().to_string());
        let emulators = Emulators::start_with(&[
            "--nodes",
            &nodes,
            "--data-path",
            "--data-path-second",
            &second,
        ]);
        let path = emulators.path("azure.json");
        let mut config: Value =
            serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        config["clusterServiceLoadBalancerHealthProbeMode"] = json!("shared");
        config["nodeDrainSeconds"] = json!(drain_seconds);
        std::fs::write(&path, config.to_string()).unwrap();
        let mut stage = Stage {
            runtime,
            emulators,
            controller: None,
            nodes: BTreeMap::new(),
            drains: drain_seconds > 0,
        };
        for number in 0..NODES {
            let node = Node::start(&stage.runtime);
            stage.nodes.insert(number, node);
            if number > 0 {
                stage.emulators.create_node(number);
            }
        }
        stage.place();
        stage.emulators.create_service("web");
        stage.restart();
        (0..NODES).for_each(|number| stage.wait_until_open(number));
        stage
    }

    /// Tells the data path where nodes are.
    fn place(&self) {
        let hosts = self.nodes.iter().map(|(number, node)| {
            let ports = json!({"10256": node.health});
            let host = json!({"address": "127.0.0.1", "others": node.port, "ports": ports});
            (address(*number), host)
        });
        let hosts: serde_json::Map<String, Value> = hosts.collect();
        let body = json!({ "hosts": hosts });
        let path = "/_/data-path/hosts";
        assert_eq!(http(&self.emulators.azure, "POST", path, Some(&body)).0, 200);
    }

    /// Kills the controller, if there is one, and starts another.
    fn restart(&mut self) {
        // Dropping a process kills it with signal 9.
        self.controller = None;
        self.controller = Some(self.emulators.controller().0);
    }

    fn view(&self) -> Value {
        http(&self.emulators.azure, "GET", "/_/data-path", None).1
    }

    /// A node in the pool, as the data path sees it.
    fn backend(&self, number: u32) -> Option<Value> {
        let address = address(number);
        let view = self.view();
        let backends = view.pointer("/rules/0/backends")?.as_array()?;
        backends.iter().find(|backend| backend["address"] == address.as_str()).cloned()
    }

    fn wait_until_open(&self, number: u32) {
        wait_for("a node that takes connections", || {
            (self.backend(number)?["takesNewFlows"] == true).then_some(())
        });
    }

    fn frontend(&self) -> SocketAddr {
        wait_for("the frontend's listener", || {
            self.view().pointer("/frontends/0/at")?.as_str()?.parse().ok()
        })
    }

    fn node_path(number: u32) -> String {
        format!("/api/v1/nodes/vmss{number:06}")
    }

    /// What a cluster autoscaler does: it taints the node, waits for a while, has its pods evicted,
    /// and deletes machine and node.
    fn drain(&mut self, number: u32) {
        let key = "ToBeDeletedByClusterAutoscaler";
        let taint = json!({"spec": {"taints": [{"key": key, "effect": "NoSchedule"}]}});
        let path = Self::node_path(number);
        assert_eq!(http(&self.emulators.kube, "PATCH", &path, Some(&taint)).0, 200);
        if !number.is_multiple_of(2) {
            self.restart();
        }
        let node = &self.nodes[&number];
        if self.drains {
            wait_for("admin state Down", || {
                (self.backend(number)?["adminState"] == "Down").then_some(())
            });
            node.roll();
            wait_for("the end of its connections", || {
                let there = self.backend(number)?["flows"] == 0;
                (there && node.connections() == 0).then_some(())
            });
        } else {
            // The autoscaler's own default is five seconds.
            std::thread::sleep(SECOND * 5);
            node.roll();
        }
        node.stop();
        assert_eq!(http(&self.emulators.kube, "DELETE", &path, None).0, 200);
        if number.is_multiple_of(2) {
            self.restart();
        }
        wait_for("a pool without the node", || self.backend(number).is_none().then_some(()));
    }

    /// Another machine takes its place.
    fn replace(&mut self, number: u32) {
        self.nodes.insert(number, Node::start(&self.runtime));
        self.place();
        self.emulators.create_node(number);
        self.wait_until_open(number);
    }
}

/// Drains every node once, under load.
fn run(drain_seconds: u32) -> Arc<Tally> {
    let mut stage = Stage::new(drain_seconds);
    let at = stage.frontend();
    let tally = Arc::new(Tally::default());
    let mut clients: Vec<JoinHandle<()>> = Vec::new();
    for _ in 0..CLIENTS {
        clients.push(stage.runtime.spawn(keep(at, Arc::clone(&tally))));
    }
    for _ in 0..4 {
        clients.push(stage.runtime.spawn(come_and_go(at, Arc::clone(&tally))));
    }
    let held = |stage: &Stage| stage.nodes.values().map(Node::connections).sum::<usize>();
    wait_for("the clients' connections", || (held(&stage) >= CLIENTS).then_some(()));
    for number in 0..NODES {
        assert!(stage.nodes[&number].connections() > 0, "node {number} has connections to lose");
        stage.nodes[&((number + 1) % NODES)].roll();
        stage.drain(number);
        stage.replace(number);
        wait_for("connections of the new node", || {
            (stage.nodes[&number].connections() > 0).then_some(())
        });
    }
    wait_for("the clients' connections", || {
        (held(&stage) >= CLIENTS || !stage.drains).then_some(())
    });
    tally.stop.store(true, Ordering::SeqCst);
    stage.runtime.block_on(async {
        for client in clients {
            client.await.unwrap();
        }
    });
    if stage.drains {
        let view = stage.view();
        assert_eq!(view["unreached"], 0, "{view:#}");
        assert_eq!(view["counts"]["noneHealthy"], 0, "{view:#}");
        assert_eq!(view["counts"]["ended"], 0, "the data path itself ended none: {view:#}");
    }
    tally
}

/// Two runs at a time would only slow each other down.
static TURN: Mutex<()> = Mutex::new(());

#[test]
fn no_connection_is_lost_while_nodes_drain_pods_roll_and_the_controller_is_killed() {
    let turn = TURN.lock();
    let tally = run(1);
    drop(turn);
    println!("{tally:?}");
    assert_eq!(tally.failures(), 0, "{tally:?}");
    // Every node had its share of 200, and let it go with a goodbye.
    assert!(tally.ended.load(Ordering::SeqCst) >= CLIENTS, "{tally:?}");
    assert!(tally.opened.load(Ordering::SeqCst) > 2 * CLIENTS, "{tally:?}");
}

#[test]
fn without_draining_the_same_run_counts_failures() {
    let turn = TURN.lock();
    let tally = run(0);
    drop(turn);
    println!("{tally:?}");
    // Not to mention those that broke, where a document might say otherwise of Azure.
    assert!(tally.refused.load(Ordering::SeqCst) > 0, "{tally:?}");
}
