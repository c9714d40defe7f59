//! Clients of two Services, one of TCP and one of UDP, while nodes are drained or deleted, pods
//! roll and the controller is killed: real processes, real sockets, every connection counted.

use crate::support::{Emulators, Process, http, node_address, node_name, wait_for};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

const NODES: u32 = 4;
const CLIENTS: usize = 200;
/// Clients that send datagrams, each from one port.
const SENDERS: usize = 24;
/// What is asked for in the cloud config; the nodes' pods need less.
const DRAIN_SECONDS: u32 = 6;
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
    /// Datagrams that were answered.
    answered: AtomicUsize,
    /// Datagrams that were sent once more, because no answer came.
    resent: AtomicUsize,
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

/// Asks from one port for as long as there is time. Who uses UDP has to ask again when a datagram
/// is lost.
async fn send(at: SocketAddr, tally: Arc<Tally>) {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    socket.connect(at).await.unwrap();
    let mut answer = [0; 16];
    while !tally.is_over() {
        let _ = socket.send(b"ping").await;
        tokio::select! {
            Ok(_) = socket.recv(&mut answer) => {
                tally.count(&tally.answered);
                tokio::time::sleep(SECOND / 4).await;
            }
            () = tokio::time::sleep(SECOND * 3) => tally.count(&tally.resent),
        }
    }
}

/// A node: the Services' pods behind one port, kube-proxy's health behind another.
struct Node {
    port: u16,
    health: u16,
    /// Connections it has.
    connections: Arc<AtomicUsize>,
    /// Datagrams it has answered.
    datagrams: Arc<AtomicUsize>,
    /// Whether kube-proxy says that its node stays.
    stays: Arc<AtomicBool>,
    /// Each change says goodbye to every connection made before it.
    pods: watch::Sender<u32>,
    tasks: [JoinHandle<()>; 3],
}

/// One port for connections and datagrams.
async fn bind_both() -> (TcpListener, UdpSocket) {
    loop {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        // Somebody else may have the same port for datagrams.
        if let Ok(socket) = UdpSocket::bind(listener.local_addr().unwrap()).await {
            return (listener, socket);
        }
    }
}

impl Node {
    fn start(runtime: &Runtime) -> Self {
        let (pods, watched) = watch::channel(0);
        let connections = Arc::new(AtomicUsize::new(0));
        let datagrams = Arc::new(AtomicUsize::new(0));
        let (service, socket) = runtime.block_on(bind_both());
        let proxy = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let (port, health) =
            (service.local_addr().unwrap().port(), proxy.local_addr().unwrap().port());
        let counted = Arc::clone(&connections);
        let serving = runtime.spawn(async move {
            // They end with the node.
            let mut all = JoinSet::new();
            loop {
                let Ok((stream, _)) = service.accept().await else { continue };
                counted.fetch_add(1, Ordering::SeqCst);
                let (counted, watched) = (Arc::clone(&counted), watched.clone());
                all.spawn(async move {
                    serve(stream, watched).await;
                    counted.fetch_sub(1, Ordering::SeqCst);
                });
                while all.try_join_next().is_some() {}
            }
        });
        let counted = Arc::clone(&datagrams);
        let answering = runtime.spawn(async move {
            let mut datagram = [0; 16];
            loop {
                let Ok((count, from)) = socket.recv_from(&mut datagram).await else { continue };
                counted.fetch_add(1, Ordering::SeqCst);
                let _ = socket.send_to(&datagram[..count], from).await;
            }
        });
        let stays = Arc::new(AtomicBool::new(true));
        let told = Arc::clone(&stays);
        let healthy = runtime.spawn(async move {
            loop {
                let Ok((mut stream, _)) = proxy.accept().await else { continue };
                let code = if told.load(Ordering::SeqCst) { "200 OK" } else { "503 Going" };
                let answer =
                    format!("HTTP/1.1 {code}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
                let _ = stream.write_all(answer.as_bytes()).await;
                let mut line = String::new();
                let _ = BufReader::new(stream).read_line(&mut line).await;
            }
        });
        let tasks = [serving, answering, healthy];
        Node { port, health, connections, datagrams, stays, pods, tasks }
    }

    /// How many datagrams it has got, with none left in its queue: the last one is ours.
    async fn datagrams(&self) -> usize {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        socket.send_to(b"mark", ("127.0.0.1", self.port)).await.unwrap();
        socket.recv(&mut [0; 16]).await.unwrap();
        self.datagrams.load(Ordering::SeqCst)
    }

    fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    /// Its pods are replaced: the old ones finish what they have.
    fn roll(&self) {
        self.pods.send_modify(|generation| *generation += 1);
    }

    /// The machine is gone: nothing listens any more, and what was open breaks.
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

/// How a node goes.
#[derive(Clone, Copy, PartialEq)]
enum Leaving {
    /// As with the cluster autoscaler: it taints the node, waits for a while, has its pods
    /// evicted, and deletes machine and node.
    Tainted,
    /// Somebody deletes the Node, and nothing was said before.
    Deleted,
    /// Its owner drains it by our label, for planned work, and deletes it afterwards.
    Planned,
}

/// How load balancers are laid out.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Layout {
    /// One load balancer, whose pools hold addresses.
    Addresses,
    /// One load balancer, which nodes join through their network interfaces.
    Interfaces,
    /// One for each set of nodes.
    PerSet,
    /// Several that are named in the config.
    Several,
    /// One for each Service, which leads to Pods.
    Container,
}

impl Layout {
    /// What the cloud config says of it.
    fn config(self) -> Value {
        match self {
            Layout::Addresses | Layout::Container => json!({}),
            Layout::Interfaces => {
                json!({"loadBalancerBackendPoolConfigurationType": "nodeIPConfiguration"})
            }
            Layout::PerSet => json!({"enableMultipleStandardLoadBalancers": true}),
            Layout::Several => json!({"multipleStandardLoadBalancerConfigurations": [
                {"name": "kubernetes", "primaryVMSet": "vmss"},
                {"name": "second", "primaryVMSet": SET}]}),
        }
    }

    /// What Services say to get behind the nodes.
    fn annotations(self) -> Value {
        let prefix = "service.beta.kubernetes.io";
        match self {
            Layout::PerSet => json!({format!("{prefix}/azure-load-balancer-mode"): SET}),
            Layout::Several => {
                json!({format!("{prefix}/azure-load-balancer-configurations"): "second"})
            }
            Layout::Addresses | Layout::Interfaces | Layout::Container => json!({}),
        }
    }

    /// The set that the nodes are of: where there are several, not the first.
    fn set(self) -> &'static str {
        match self {
            Layout::PerSet | Layout::Several => SET,
            Layout::Addresses | Layout::Interfaces | Layout::Container => "vmss",
        }
    }

    /// What the data path calls a node.
    fn backend(self, number: u32) -> String {
        match self {
            Layout::Container => format!("10.244.{number}.10"),
            _ => node_address(number),
        }
    }

    /// How a node goes. In pools of network interfaces only kube-proxy turns new connections away,
    /// and kube-proxy does not know the drain label.
    fn way(self, number: u32) -> (Leaving, Killed) {
        match WAYS[number as usize] {
            (Leaving::Planned, killed) if self == Layout::Interfaces => (Leaving::Tainted, killed),
            way => way,
        }
    }
}

/// A set of nodes that is not the first.
const SET: &str = "others";

/// When the controller is killed with signal 9 and started again.
#[derive(Clone, Copy, PartialEq)]
enum Killed {
    AtTheBeginning,
    /// The node is Down and still has connections.
    InTheMiddle,
    AtTheEnd,
    Never,
}

/// How each of the nodes goes.
const WAYS: [(Leaving, Killed); NODES as usize] = [
    (Leaving::Tainted, Killed::AtTheEnd),
    (Leaving::Planned, Killed::AtTheBeginning),
    (Leaving::Deleted, Killed::Never),
    (Leaving::Tainted, Killed::InTheMiddle),
];

/// The cluster, its controller and its nodes.
struct Stage {
    runtime: Runtime,
    emulators: Emulators,
    controller: Option<Process>,
    nodes: BTreeMap<u32, Node>,
    layout: Layout,
    drains: bool,
}

impl Stage {
    fn new(layout: Layout, drain_seconds: u32) -> Self {
        let runtime = Runtime::new().unwrap();
        let (nodes, second) = (NODES.to_string(), SECOND.as_millis().to_string());
        let mut words = vec!["--nodes", &nodes, "--data-path", "--data-path-second", &second];
        if layout == Layout::Container {
            words.push("--service-gateway");
        }
        let emulators = Emulators::start_with(&words);
        emulators.configure(&layout.config());
        emulators.configure(&json!({"clusterServiceLoadBalancerHealthProbeMode": "shared",
            "nodeDrainSeconds": drain_seconds}));
        let mut stage = Stage {
            runtime,
            emulators,
            controller: None,
            nodes: BTreeMap::new(),
            layout,
            drains: drain_seconds > 0,
        };
        stage.delete_node(0);
        for number in 0..NODES {
            let node = Node::start(&stage.runtime);
            stage.nodes.insert(number, node);
            stage.emulators.create_node_of(layout.set(), number);
        }
        stage.place();
        if layout == Layout::Container {
            // What becomes of connections to an address that leaves the table is not documented:
            // what is seen here is what Ballast does where they live on.
            let (path, body) = ("/_/data-path/semantics", json!({"onRemoval": "persist"}));
            assert_eq!(http(&stage.emulators.azure, "POST", path, Some(&body)).0, 200);
        }
        for (name, port, protocol) in [("web", 80, "TCP"), ("dns", 53, "UDP")] {
            stage.create_service(name, port, protocol);
        }
        stage.restart();
        (0..NODES).for_each(|number| stage.wait_until_open(number));
        stage
    }

    fn create_service(&self, name: &str, port: u16, protocol: &str) {
        let service = json!({"apiVersion": "v1", "kind": "Service",
            "metadata": {"name": name, "namespace": "default",
                "annotations": self.layout.annotations()},
            "spec": {"type": "LoadBalancer", "ports": [{"port": port, "protocol": protocol}]}});
        self.emulators.create("/api/v1/namespaces/default/services", &service);
        if self.layout == Layout::Container {
            (0..NODES).for_each(|number| self.list_pod(name, number));
        }
    }

    /// The Service's Pod on a node gets a slice of its own.
    fn list_pod(&self, service: &str, number: u32) {
        let (name, address) = (format!("{service}-{number}"), self.layout.backend(number));
        self.emulators.create_slice(&name, service, &address, &node_name(number));
    }

    /// The Pods of a node are gone.
    fn unlist_pods(&self, number: u32) {
        for service in ["web", "dns"].into_iter().filter(|_| self.layout == Layout::Container) {
            let folder = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
            let path = format!("{folder}/{service}-{number}");
            assert_eq!(http(&self.emulators.kube, "DELETE", &path, None).0, 200);
        }
    }

    /// Tells the data path where nodes are, and their Pods.
    fn place(&self) {
        let hosts = self.nodes.iter().map(|(number, node)| {
            let ports = json!({"10256": node.health});
            let host = json!({"address": "127.0.0.1", "others": node.port, "ports": ports});
            (self.layout.backend(*number), host)
        });
        let hosts: serde_json::Map<String, Value> = hosts.collect();
        self.emulators.place(&hosts.into());
    }

    /// Kills the controller, if there is one, and starts another.
    fn restart(&mut self) {
        // Dropping a process kills it with signal 9.
        self.controller = None;
        self.controller = Some(self.emulators.controller().0);
    }

    /// A node as the data path sees it behind the Service of a transport.
    fn backend(&self, transport: &str, number: u32) -> Option<Value> {
        let address = self.layout.backend(number);
        let view = self.emulators.data_path();
        let mut rules = view["rules"].as_array()?.iter();
        // Its name says it.
        let is_of = |rule: &&Value| {
            rule["id"].as_str().is_some_and(|id| id.contains(&transport.to_lowercase()))
        };
        let rule = rules.find(is_of)?;
        let mut backends = rule["backends"].as_array()?.iter();
        backends.find(|backend| backend["address"] == address.as_str()).cloned()
    }

    /// Whether new flows of both transports go to other nodes.
    fn is_avoided(&self, number: u32) -> bool {
        let avoids = |transport| match self.backend(transport, number) {
            // Its address stays, unless it is in a table that knows nothing else.
            None => self.layout == Layout::Container,
            Some(backend) => backend["takesNewFlows"] == false,
        };
        avoids("Tcp") && avoids("Udp")
    }

    /// Connections that the data path carries to a node.
    fn flows(&self, number: u32) -> u64 {
        let backend = self.backend("Tcp", number);
        backend.and_then(|backend| backend["flows"].as_u64()).unwrap_or(0)
    }

    fn wait_until_open(&self, number: u32) {
        wait_for("a node that takes connections", || {
            let open = |transport| {
                self.backend(transport, number).is_some_and(|b| b["takesNewFlows"] == true)
            };
            (open("Tcp") && open("Udp")).then_some(())
        });
    }

    fn frontend(&self, transport: &str) -> SocketAddr {
        wait_for("the frontend's listener", || {
            let view = self.emulators.data_path();
            let mut all = view["frontends"].as_array()?.iter();
            let found = all.find(|frontend| frontend["transport"] == transport)?;
            found["at"].as_str()?.parse().ok()
        })
    }

    fn node_path(number: u32) -> String {
        format!("/api/v1/nodes/{}", node_name(number))
    }

    fn delete_node(&self, number: u32) {
        let path = Self::node_path(number);
        assert_eq!(http(&self.emulators.kube, "DELETE", &path, None).0, 200);
    }

    fn patch_node(&self, number: u32, patch: &Value) {
        let path = Self::node_path(number);
        assert_eq!(http(&self.emulators.kube, "PATCH", &path, Some(patch)).0, 200);
    }

    /// Something says that a node is about to go.
    fn announce(&self, number: u32, leaving: Leaving) {
        match leaving {
            Leaving::Tainted => {
                let key = "ToBeDeletedByClusterAutoscaler";
                let taint = json!({"key": key, "effect": "NoSchedule"});
                self.patch_node(number, &json!({"spec": {"taints": [taint]}}));
            }
            Leaving::Planned => {
                let labels = json!({"ballast.dev/drain": ""});
                self.patch_node(number, &json!({"metadata": {"labels": labels}}));
            }
            Leaving::Deleted => self.delete_node(number),
        }
        if self.layout == Layout::Interfaces && self.drains {
            // kube-proxy has seen it.
            self.nodes[&number].stays.store(false, Ordering::SeqCst);
        }
    }

    /// A node goes, and its pods with it.
    fn drain(&mut self, number: u32, tally: &Tally) {
        let (leaving, killed) = self.layout.way(number);
        self.announce(number, leaving);
        if killed == Killed::AtTheBeginning {
            self.restart();
        }
        if self.drains {
            wait_for("a node that is left alone", || self.is_avoided(number).then_some(()));
            assert!(self.nodes[&number].connections() > 0, "established connections live on");
            if killed == Killed::InTheMiddle {
                self.restart();
            }
            self.assert_no_datagrams(number, tally);
            self.nodes[&number].roll();
            let node = &self.nodes[&number];
            wait_for("the end of its connections", || {
                (self.flows(number) == 0 && node.connections() == 0).then_some(())
            });
        } else {
            self.go_on_without_draining(number, leaving);
        }
        self.nodes[&number].stop();
        if !self.drains {
            // The machine goes first, and who comes meanwhile finds nobody.
            std::thread::sleep(SECOND * 2);
        }
        if leaving != Leaving::Deleted {
            self.delete_node(number);
        }
        self.unlist_pods(number);
        if killed == Killed::AtTheEnd {
            self.restart();
        }
        wait_for("a pool without the node", || {
            let there = |transport| self.backend(transport, number).is_some();
            (!there("Tcp") && !there("Udp")).then_some(())
        });
    }

    /// Datagrams go to other nodes at once; one may have been on its way.
    fn assert_no_datagrams(&self, number: u32, tally: &Tally) {
        let node = &self.nodes[&number];
        let before = self.runtime.block_on(node.datagrams());
        let answered = || tally.answered.load(Ordering::SeqCst);
        let goal = answered() + 2 * SENDERS;
        wait_for("answers of others", || (answered() >= goal).then_some(()));
        let after = self.runtime.block_on(node.datagrams());
        // The mark is one of them.
        assert!(after - before <= 2, "node {number} got {} datagrams", after - before - 1);
    }

    /// New connections still come after the pods there were told to end, until the machine is gone
    /// and takes them along. Of a node that was deleted they have broken already.
    fn go_on_without_draining(&self, number: u32, leaving: Leaving) {
        // The autoscaler's own default is five seconds.
        std::thread::sleep(SECOND * 5);
        let node = &self.nodes[&number];
        node.roll();
        if leaving != Leaving::Deleted {
            std::thread::sleep(SECOND * 5);
            wait_for("new connections", || (node.connections() > 0).then_some(()));
        }
    }

    /// Another machine takes its place.
    fn replace(&mut self, number: u32) {
        self.nodes.insert(number, Node::start(&self.runtime));
        self.place();
        self.emulators.create_node_of(self.layout.set(), number);
        if self.layout == Layout::Container {
            ["web", "dns"].iter().for_each(|service| self.list_pod(service, number));
        }
        self.wait_until_open(number);
    }
}

/// So many nodes go, one after another, under load.
fn run(layout: Layout, going: u32, drain_seconds: u32) -> Arc<Tally> {
    let mut stage = Stage::new(layout, drain_seconds);
    let at = stage.frontend("Tcp");
    let datagrams_at = stage.frontend("Udp");
    let tally = Arc::new(Tally::default());
    let mut clients: Vec<JoinHandle<()>> = Vec::new();
    for _ in 0..CLIENTS {
        clients.push(stage.runtime.spawn(keep(at, Arc::clone(&tally))));
    }
    for _ in 0..4 {
        clients.push(stage.runtime.spawn(come_and_go(at, Arc::clone(&tally))));
    }
    for _ in 0..SENDERS {
        clients.push(stage.runtime.spawn(send(datagrams_at, Arc::clone(&tally))));
    }
    let held = |stage: &Stage| stage.nodes.values().map(Node::connections).sum::<usize>();
    wait_for("the clients' connections", || (held(&stage) >= CLIENTS).then_some(()));
    for number in 0..going {
        assert!(stage.nodes[&number].connections() > 0, "node {number} has connections to lose");
        stage.nodes[&((number + 1) % NODES)].roll();
        stage.drain(number, &tally);
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
        let view = stage.emulators.data_path();
        assert_eq!(view["unreached"], 0, "{view:#}");
        assert_eq!(view["counts"]["noneHealthy"], 0, "{view:#}");
        // An admin state moves datagrams to another node and ends nothing. An address that leaves
        // the table ends the flow of its datagrams, and the next ones begin another.
        let (none, some) = match layout {
            Layout::Container => ("moved", "ended"),
            _ => ("ended", "moved"),
        };
        assert_eq!(view["counts"][none], 0, "{view:#}");
        assert!(view["counts"][some].as_u64() > Some(0), "{view:#}");
    }
    tally
}

/// Two runs at a time would only slow each other down.
static TURN: Mutex<()> = Mutex::new(());

/// No connection breaks, and none is refused.
fn holds(layout: Layout) {
    let turn = TURN.lock();
    let tally = run(layout, NODES, DRAIN_SECONDS);
    drop(turn);
    println!("{layout:?}: {tally:?}");
    assert_eq!(tally.failures(), 0, "{tally:?}");
    // Every node had its share of 200, and let it go with a goodbye.
    assert!(tally.ended.load(Ordering::SeqCst) >= CLIENTS, "{tally:?}");
    assert!(tally.opened.load(Ordering::SeqCst) > 2 * CLIENTS, "{tally:?}");
    assert!(tally.answered.load(Ordering::SeqCst) > 8 * SENDERS, "{tally:?}");
}

/// The same without draining: Azure promises nothing to connections of an address that leaves its
/// pool, and a machine that is gone keeps none.
fn breaks(layout: Layout) {
    let turn = TURN.lock();
    let tally = run(layout, 2, 0);
    drop(turn);
    println!("{layout:?}: {tally:?}");
    assert!(tally.refused.load(Ordering::SeqCst) > 0, "{tally:?}");
    assert!(tally.broken.load(Ordering::SeqCst) > 0, "{tally:?}");
}

#[test]
fn no_connection_is_lost_while_nodes_go_pods_roll_and_the_controller_is_killed() {
    holds(Layout::Addresses);
}

#[test]
fn without_draining_the_same_run_counts_failures() {
    breaks(Layout::Addresses);
}

#[test]
fn no_connection_is_lost_where_nodes_join_through_their_network_interfaces() {
    holds(Layout::Interfaces);
}

#[test]
fn without_draining_network_interfaces_lose_connections() {
    breaks(Layout::Interfaces);
}

#[test]
fn no_connection_is_lost_where_each_set_has_a_load_balancer() {
    holds(Layout::PerSet);
}

#[test]
fn without_draining_a_set_loses_connections() {
    breaks(Layout::PerSet);
}

#[test]
fn no_connection_is_lost_behind_several_load_balancers() {
    holds(Layout::Several);
}

#[test]
fn without_draining_several_load_balancers_lose_connections() {
    breaks(Layout::Several);
}

#[test]
fn no_connection_is_lost_behind_a_container_load_balancer() {
    holds(Layout::Container);
}

#[test]
fn without_draining_a_container_load_balancer_loses_connections() {
    breaks(Layout::Container);
}
