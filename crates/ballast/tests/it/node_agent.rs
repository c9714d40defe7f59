//! Twenty nodes with an agent each: real processes, real sockets, an emulated Azure that probes and
//! forwards. Proxies are restarted, fall ill one by one and in most places at once, and agents die;
//! what is counted is who leaves rotation, and every connection.

use crate::support::{Emulators, Process, http, http_text, node_address, node_name, run, wait_for};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;

const NODES: u32 = 20;
const CLIENTS: usize = 60;
/// A second of the emulated Azure's data path: it probes every five of them.
const SECOND: Duration = Duration::from_millis(400);
const AGENT_PORT: u16 = 10_272;

/// What clients met with.
#[derive(Debug, Default)]
struct Tally {
    opened: AtomicUsize,
    refused: AtomicUsize,
    broken: AtomicUsize,
    stop: AtomicBool,
}

impl Tally {
    fn get(&self, what: &AtomicUsize) -> usize {
        what.load(Ordering::SeqCst)
    }

    fn is_over(&self) -> bool {
        self.stop.load(Ordering::SeqCst)
    }
}

async fn ping(stream: &mut BufReader<TcpStream>) -> bool {
    let mut line = String::new();
    stream.get_mut().write_all(b"ping\n").await.is_ok()
        && stream.read_line(&mut line).await.is_ok()
        && line == "ping\n"
}

/// One connection after another; each is kept for so many pings.
async fn talk(at: SocketAddr, pings: usize, tally: Arc<Tally>) {
    while !tally.is_over() {
        let stream = TcpStream::connect(at).await.ok().map(BufReader::new);
        let Some(mut stream) = stream else {
            tally.refused.fetch_add(1, Ordering::SeqCst);
            continue;
        };
        if !ping(&mut stream).await {
            tally.refused.fetch_add(1, Ordering::SeqCst);
            continue;
        }
        tally.opened.fetch_add(1, Ordering::SeqCst);
        for _ in 1..pings {
            tokio::time::sleep(SECOND / 2).await;
            if tally.is_over() {
                return;
            }
            if !ping(&mut stream).await {
                tally.broken.fetch_add(1, Ordering::SeqCst);
                break;
            }
        }
        tokio::time::sleep(SECOND / 8).await;
    }
}

/// What the data path's probe of one node was answered, in order.
type Answers = Arc<Mutex<Vec<u16>>>;

/// A node: a Pod behind its node port, its service proxy's health, its agent, and between Azure and
/// the agent something that remembers the answers.
struct Node {
    port: u16,
    proxy: u16,
    probed: u16,
    /// Whether the proxy says that it is healthy.
    healthy: Arc<AtomicBool>,
    /// How often Azure has asked the proxy itself.
    asked: Arc<AtomicUsize>,
    accepted: Arc<AtomicUsize>,
    answers: Answers,
    /// Where its agent listens.
    agent_at: Arc<Mutex<Option<SocketAddr>>>,
    agent: Option<Process>,
}

async fn bind() -> (TcpListener, u16) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, port)
}

/// Whatever comes goes back.
async fn echo(listener: TcpListener, accepted: Arc<AtomicUsize>) {
    while let Ok((stream, _)) = listener.accept().await {
        accepted.fetch_add(1, Ordering::SeqCst);
        tokio::spawn(async move {
            let (mut from, mut to) = stream.into_split();
            let _ = tokio::io::copy(&mut from, &mut to).await;
        });
    }
}

/// Answers 200, or hangs up. Agents ask at another path than probes.
async fn proxy(listener: TcpListener, healthy: Arc<AtomicBool>, asked: Arc<AtomicUsize>) {
    while let Ok((mut stream, _)) = listener.accept().await {
        let (healthy, asked) = (healthy.load(Ordering::SeqCst), Arc::clone(&asked));
        tokio::spawn(async move {
            let mut head = [0; 1_024];
            let _ = stream.read(&mut head).await;
            asked.fetch_add(usize::from(head.starts_with(b"GET /healthz ")), Ordering::SeqCst);
            if healthy {
                let ok = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
                let _ = stream.write_all(ok).await;
            }
        });
    }
}

/// Hands a probe on to the agent, and remembers the answer; 0 is none.
async fn relay(listener: TcpListener, to: Arc<Mutex<Option<SocketAddr>>>, answers: Answers) {
    while let Ok((mut probe, _)) = listener.accept().await {
        let (to, answers) = (*to.lock().unwrap(), Arc::clone(&answers));
        tokio::spawn(async move {
            let mut answer = Vec::new();
            if let Some(to) = to
                && let Ok(mut agent) = TcpStream::connect(to).await
            {
                let mut head = [0; 2_048];
                let count = probe.read(&mut head).await.unwrap_or(0);
                let _ = agent.write_all(&head[..count]).await;
                let _ = agent.read_to_end(&mut answer).await;
            }
            let text = String::from_utf8_lossy(&answer);
            let status = text.split(' ').nth(1).and_then(|word| word.parse().ok());
            answers.lock().unwrap().push(status.unwrap_or(0));
            let _ = probe.write_all(&answer).await;
        });
    }
}

impl Node {
    fn start(runtime: &Runtime) -> Self {
        let (service, port) = runtime.block_on(bind());
        let (health, proxy_port) = runtime.block_on(bind());
        let (probes, probed) = runtime.block_on(bind());
        let (healthy, accepted) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicUsize::new(0)));
        let (answers, agent_at, asked) = (Answers::default(), Arc::default(), Arc::default());
        runtime.spawn(echo(service, Arc::clone(&accepted)));
        runtime.spawn(proxy(health, Arc::clone(&healthy), Arc::clone(&asked)));
        runtime.spawn(relay(probes, Arc::clone(&agent_at), Arc::clone(&answers)));
        let proxy = proxy_port;
        Self { port, proxy, probed, healthy, asked, accepted, answers, agent_at, agent: None }
    }

    fn set_healthy(&self, healthy: bool) {
        self.healthy.store(healthy, Ordering::SeqCst);
    }

    fn answers(&self) -> Vec<u16> {
        self.answers.lock().unwrap().clone()
    }

    /// Waits for so many more answers than there are.
    fn wait_for_answers(&self, more: usize) {
        let goal = self.answers().len() + more;
        wait_for("probes", || (self.answers().len() >= goal).then_some(()));
    }
}

struct Stage {
    runtime: Runtime,
    emulators: Emulators,
    nodes: BTreeMap<u32, Node>,
    controller: Option<Process>,
    pages: String,
    tally: Arc<Tally>,
}

impl Stage {
    fn new() -> Self {
        let runtime = Runtime::new().unwrap();
        let (count, second) = (NODES.to_string(), SECOND.as_millis().to_string());
        let words = ["--nodes", &count, "--data-path", "--data-path-second", &second];
        let emulators = Emulators::start_with(&words);
        emulators.configure(&json!({"healthCheck": "agent"}));
        let nodes = (0..NODES).map(|number| (number, Node::start(&runtime))).collect();
        let (pages, tally) = (String::new(), Arc::default());
        let mut stage = Self { runtime, emulators, nodes, controller: None, pages, tally };
        (1..NODES).for_each(|number| stage.emulators.create_node(number));
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": "ballast-agents"}});
        stage.emulators.create("/api/v1/namespaces", &namespace);
        let service = json!({"apiVersion": "v1", "kind": "Service",
            "metadata": {"name": "web", "namespace": "default"},
            "spec": {"type": "LoadBalancer", "externalTrafficPolicy": "Local",
                "ports": [{"port": 80}]}});
        stage.emulators.create("/api/v1/namespaces/default/services", &service);
        let endpoint = |number: u32| {
            json!({"addresses": [format!("10.244.{number}.5")], "nodeName": node_name(number),
                "conditions": {"ready": true}})
        };
        let endpoints: Vec<Value> = (0..NODES).map(endpoint).collect();
        let slice = json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
            "metadata": {"name": "web-1", "namespace": "default",
                "labels": {"kubernetes.io/service-name": "web"}},
            "addressType": "IPv4", "endpoints": endpoints,
            "ports": [{"name": "", "port": 8080, "protocol": "TCP"}]});
        stage
            .emulators
            .create("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices", &slice);
        (0..NODES).for_each(|number| stage.start_agent(number));
        stage.place();
        stage.restart_controller();
        stage.wait_for_rotation("all nodes", &[]);
        stage
    }

    /// Tells the data path where nodes are.
    fn place(&self) {
        let path = "/api/v1/namespaces/default/services/web";
        let service = http(&self.emulators.kube, "GET", path, None).1;
        let health = service["spec"]["healthCheckNodePort"].to_string();
        let host = |node: &Node| {
            let ports = json!({AGENT_PORT.to_string(): node.probed, &health: node.proxy});
            json!({"address": "127.0.0.1", "others": node.port, "ports": ports})
        };
        let hosts = self.nodes.iter().map(|(number, node)| (node_address(*number), host(node)));
        let hosts: serde_json::Map<String, Value> = hosts.collect();
        self.emulators.place(&hosts.into());
    }

    fn start_agent(&mut self, number: u32) {
        let node = &self.nodes[&number];
        let proxy = format!("http://127.0.0.1:{}/of-proxy", node.proxy);
        let kubeconfig = self.emulators.path("kubeconfig").display().to_string();
        let mut agent = Process::start_logging(&[
            "node-agent",
            "--node-name",
            &node_name(number),
            "--listen",
            "127.0.0.1:0",
            "--proxy-health",
            &proxy,
            "--proxy-interval",
            "100ms",
            "--kubeconfig",
            &kubeconfig,
        ]);
        let at = agent.address().parse().unwrap();
        let node = self.nodes.get_mut(&number).unwrap();
        *node.agent_at.lock().unwrap() = Some(at);
        node.agent = Some(agent);
    }

    /// Signal 9.
    fn kill_agent(&mut self, number: u32) {
        self.nodes.get_mut(&number).unwrap().agent = None;
    }

    fn restart_controller(&mut self) {
        self.controller = None;
        let (controller, pages) = self.emulators.controller();
        (self.controller, self.pages) = (Some(controller), pages);
    }

    /// The nodes that take no new connections.
    fn out(&self) -> Option<Vec<u32>> {
        let view = self.emulators.data_path();
        let backends = view.pointer("/rules/0/backends")?.as_array()?;
        let out = |number: &u32| {
            let address = node_address(*number);
            let found = backends.iter().find(|b| b["address"] == address.as_str());
            found.is_none_or(|backend| backend["takesNewFlows"] != true)
        };
        Some((0..NODES).filter(out).collect())
    }

    fn wait_for_rotation(&self, what: &str, out: &[u32]) {
        wait_for(what, || (self.out().as_deref() == Some(out)).then_some(()));
    }

    fn begin_traffic(&self) {
        let at: SocketAddr = wait_for("the frontend's listener", || {
            self.emulators.data_path().pointer("/frontends/0/at")?.as_str()?.parse().ok()
        });
        for _ in 0..CLIENTS {
            self.runtime.spawn(talk(at, usize::MAX, Arc::clone(&self.tally)));
        }
        for _ in 0..4 {
            self.runtime.spawn(talk(at, 1, Arc::clone(&self.tally)));
        }
        wait_for("the clients' connections", || {
            (self.tally.get(&self.tally.opened) > 2 * CLIENTS).then_some(())
        });
    }

    fn assert_no_failure(&self, when: &str) {
        let Tally { refused, broken, .. } = &*self.tally;
        let found = (self.tally.get(refused), self.tally.get(broken));
        assert_eq!(found, (0, 0), "refused and broken connections {when}");
    }

    fn events(&self, reason: &str) -> Vec<String> {
        let path = "/api/v1/namespaces/ballast-agents/events";
        let all = http(&self.emulators.kube, "GET", path, None).1;
        let all = all["items"].as_array().cloned().unwrap_or_default();
        let found = all.into_iter().filter(|event| event["reason"] == reason);
        found.map(|event| event["message"].as_str().unwrap_or_default().to_owned()).collect()
    }

    fn reports(&self) -> usize {
        let path = "/apis/coordination.k8s.io/v1/namespaces/ballast-agents/leases\
                    ?labelSelector=ballast.dev%2Freport%3Dproxy-ill";
        http(&self.emulators.kube, "GET", path, None).1["items"].as_array().map_or(0, Vec::len)
    }

    fn wait_for_metric(&self, line: &str) {
        wait_for(line, || {
            let text = http_text(&self.pages, "GET", "/metrics", None).1;
            text.contains(&format!("\n{line}\n")).then_some(())
        });
    }

    /// Every proxy goes away for as long as a probe fails, a fifth of them at a time.
    fn restart_proxies(&self) {
        let all: Vec<&Node> = self.nodes.values().collect();
        for wave in all.chunks(NODES as usize / 5) {
            let began: Vec<usize> = wave.iter().map(|node| node.answers().len()).collect();
            wave.iter().for_each(|node| node.set_healthy(false));
            // Each is back as soon as its probe has failed.
            wait_for("a failed probe of each", || {
                let failed = |(node, began): (&&Node, &usize)| {
                    let failed = node.answers()[*began..].contains(&503);
                    node.set_healthy(failed);
                    failed
                };
                let failed = wave.iter().zip(&began).filter(|pair| failed(*pair)).count();
                (failed == wave.len()).then_some(())
            });
            wave.iter().for_each(|node| node.wait_for_answers(1));
        }
        for (number, node) in &self.nodes {
            let answers = node.answers();
            let failed = answers.iter().filter(|status| **status != 200).count();
            assert_eq!(failed, 1, "node {number} was probed with {answers:?}");
        }
        assert_eq!(self.out(), Some(Vec::new()));
        self.assert_no_failure("while every proxy is restarted");
    }

    /// One proxy is ill and stays so.
    fn one_is_ill(&self, number: u32) {
        let node = &self.nodes[&number];
        let before = node.answers().len();
        node.set_healthy(false);
        self.wait_for_rotation("the ill node's leaving", &[number]);
        let after = &node.answers()[before..];
        let failed = after.iter().filter(|status| **status == 503).count();
        assert!(failed == 2 && after.len() <= 3, "out after two failed probes: {after:?}");
        wait_for("its report", || (self.reports() == 1).then_some(()));
        self.wait_for_metric("ballast_proxies_ill 1");
        // No new connection comes; those that it has live on.
        let accepted = node.accepted.load(Ordering::SeqCst);
        let opened = self.tally.get(&self.tally.opened) + 4 * NODES as usize;
        wait_for("new connections", || (self.tally.get(&self.tally.opened) > opened).then_some(()));
        assert_eq!(node.accepted.load(Ordering::SeqCst), accepted, "it gets no new connection");
        self.assert_no_failure("while one node leaves rotation");
        node.set_healthy(true);
        self.wait_for_rotation("its coming back", &[]);
        wait_for("the end of its report", || (self.reports() == 0).then_some(()));
        self.wait_for_metric("ballast_proxies_ill 0");
    }

    /// A bad roll-out: most proxies are ill at once.
    fn most_are_ill(&mut self) {
        let ill: Vec<u32> = (0..NODES * 3 / 5).collect();
        ill.iter().for_each(|number| self.nodes[number].set_healthy(false));
        self.wait_for_metric("ballast_proxies_majority 1");
        let began: Vec<usize> = ill.iter().map(|n| self.nodes[n].answers().len()).collect();
        wait_for("four probes of each", || {
            assert_eq!(self.out(), Some(Vec::new()), "no node leaves rotation");
            let probed = |(n, began): (&u32, &usize)| self.nodes[n].answers().len() - began;
            ill.iter().zip(&began).all(|pair| probed(pair) >= 4).then_some(())
        });
        assert_eq!(self.reports(), ill.len());
        // A new leader finds the verdict, and tells of it no second time.
        self.restart_controller();
        self.wait_for_metric("ballast_proxies_majority 1");
        self.wait_for_metric("ballast_proxies_ill 12");
        self.nodes[&0].wait_for_answers(2);
        let told = self.events("MostProxiesIll");
        assert_eq!(told.len(), 1, "{told:?}");
        // It is written as soon as there are more than ten.
        assert!(["11", "12"].iter().any(|n| told[0].contains(&format!("on {n} of 20 nodes"))));
        ill.iter().for_each(|number| self.nodes[number].set_healthy(true));
        self.wait_for_metric("ballast_proxies_majority 0");
        assert_eq!((self.reports(), self.events("FewProxiesIll").len()), (0, 1));
        assert_eq!(self.out(), Some(Vec::new()));
        self.assert_no_failure("while most proxies are ill");
    }

    /// The counter-proof: the same roll-out where no share is a majority.
    fn without_a_majority_all_of_them_leave(&mut self) {
        self.emulators.configure(&json!({"healthCheckMajorityPercent": 100}));
        self.restart_controller();
        let ill: Vec<u32> = (0..NODES * 3 / 5).collect();
        ill.iter().for_each(|number| self.nodes[number].set_healthy(false));
        self.wait_for_rotation("the leaving of all that are ill", &ill);
        ill.iter().for_each(|number| self.nodes[number].set_healthy(true));
        self.wait_for_rotation("their coming back", &[]);
        assert_eq!(self.events("MostProxiesIll").len(), 1, "no second one");
    }

    /// An agent dies: its node leaves as if the proxy were ill, and no other flaps. Another agent
    /// brings it back.
    fn an_agent_dies(&mut self, number: u32) {
        let before: Vec<usize> = self.nodes.values().map(|n| n.answers().len()).collect();
        self.kill_agent(number);
        self.wait_for_rotation("the leaving of the node without agent", &[number]);
        self.start_agent(number);
        self.wait_for_rotation("its coming back", &[]);
        for ((other, node), before) in self.nodes.iter().zip(before) {
            let after = &node.answers()[before..];
            assert!(*other == number || after.iter().all(|s| *s == 200), "{other}: {after:?}");
        }
        self.assert_no_failure("while an agent is dead");
    }

    /// The config names the proxy again: probes ask it, and agents may go.
    fn fall_back(&mut self) {
        self.emulators.configure(&json!({"healthCheck": "proxy"}));
        self.restart_controller();
        assert!(self.nodes.values().all(|node| node.asked.load(Ordering::SeqCst) == 0));
        wait_for("probes of every proxy", || {
            let asked = |node: &Node| node.asked.load(Ordering::SeqCst) > 0;
            self.nodes.values().all(asked).then_some(())
        });
        self.wait_for_rotation("all nodes by their proxies", &[]);
        (0..NODES).for_each(|number| self.kill_agent(number));
        let asked = |node: &Node| node.asked.load(Ordering::SeqCst);
        let before: Vec<usize> = self.nodes.values().map(asked).collect();
        wait_for("four more probes of every proxy", || {
            assert_eq!(self.out(), Some(Vec::new()), "no node leaves with its agent");
            let probed = |(node, before): (&Node, &usize)| asked(node) >= before + 4;
            self.nodes.values().zip(&before).all(probed).then_some(())
        });
        self.nodes[&0].set_healthy(false);
        self.wait_for_rotation("the leaving of the node whose proxy is ill", &[0]);
        let broken = self.tally.get(&self.tally.broken);
        assert_eq!(broken, 0, "established connections live through all of it");
    }
}

/// During an update two agents share a port, and the kubelet asks it about either of them. Of a
/// successor that cannot list the predecessor's answer must not count, nor what an earlier process
/// left in its file.
#[test]
fn a_successor_is_not_ready_while_only_its_predecessor_listens() {
    let emulators = Emulators::start();
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": "ballast-agents"}});
    emulators.create("/api/v1/namespaces", &namespace);
    let path = |name: &str| emulators.path(name).display().to_string();
    let kubeconfig = std::fs::read_to_string(path("kubeconfig")).unwrap();
    let cut = kubeconfig.replace(&emulators.kube, "127.0.0.1:1");
    assert_ne!(cut, kubeconfig);
    std::fs::write(path("cut"), cut).unwrap();
    let agent = |listen: &str, kubeconfig: &str, ready: &str| {
        Process::start_logging(&[
            "node-agent",
            "--node-name",
            &node_name(0),
            "--listen",
            listen,
            "--proxy-health",
            "none",
            "--ready-file",
            &path(ready),
            "--kubeconfig",
            &path(kubeconfig),
        ])
    };
    let is_ready = |ready: &str| run(&["node-agent", "--check-ready", &path(ready)]).0;
    let mut first = agent("127.0.0.1:0", "kubeconfig", "first");
    let at = first.address();
    wait_for("the first agent's file", || (is_ready("first") == 0).then_some(()));
    std::fs::write(path("second"), "").unwrap();
    let mut second = agent(&at, "cut", "second");
    second.line_with("listing failed");
    assert_eq!(http_text(&at, "GET", "/readyz", None).0, 200, "the first one answers for both");
    assert_eq!((is_ready("first"), is_ready("second")), (0, 1));
    // Once it lists, both listen; then the first one can go.
    drop(second);
    let mut second = agent(&at, "kubeconfig", "second");
    second.address();
    wait_for("the second agent's file", || (is_ready("second") == 0).then_some(()));
    assert_eq!(first.terminate(), 0);
    assert_eq!(http_text(&at, "GET", "/readyz", None).0, 200, "the second one answers");
}

#[test]
fn agents_take_out_an_ill_node_and_keep_the_nodes_of_a_bad_roll_out() {
    let mut stage = Stage::new();
    stage.begin_traffic();
    stage.restart_proxies();
    stage.one_is_ill(7);
    stage.most_are_ill();
    stage.without_a_majority_all_of_them_leave();
    stage.an_agent_dies(3);
    stage.fall_back();
    stage.tally.stop.store(true, Ordering::SeqCst);
    println!("{:?}", stage.tally);
}
