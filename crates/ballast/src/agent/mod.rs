//! `ballast node-agent` with its sockets: watches, questions to the proxy, reports, and the port
//! that probes ask.

mod mark;
mod metrics;
mod probes;
mod proxy;
mod reports;
mod sources;
mod stripped;

pub use mark::check as check_ready;
pub use proxy::ProxyUrl;

use crate::exit::{Exit, Failure};
use edge::clock::Clock;
use edge::kubernetes::{Pace, Watch};
use edge::vital::Vital;
use health::{Agent, Fact};
#[cfg(test)]
use health::{NodeFact, Part};
use kube::Client;
use model::NodeName;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;

/// Facts that may wait to be taken in.
const QUEUE: usize = 256;
/// Connections that may wait to be accepted.
const BACKLOG: u32 = 128;

/// How an agent runs.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Its node.
    pub node: NodeName,
    /// Where reports and the verdict are.
    pub namespace: String,
    /// Where the proxy tells its health; `None`: it is not asked.
    pub proxy: Option<ProxyUrl>,
    /// How long between two questions.
    pub interval: Duration,
    /// Where probes ask.
    pub listen: SocketAddr,
    /// Stands from when the port is open.
    pub ready_file: Option<PathBuf>,
}

/// One node's health, looked at by the port and by the reports. Clones share it.
#[derive(Clone)]
struct SharedAgent {
    agent: Arc<Mutex<Agent>>,
    /// Something was learnt.
    learnt: Arc<Notify>,
}

impl SharedAgent {
    fn new(node: NodeName) -> Self {
        Self { agent: Arc::new(Mutex::new(Agent::new(node))), learnt: Arc::default() }
    }

    /// Of a node of which all is listed, and its proxy not yet asked.
    #[cfg(test)]
    fn listed() -> Self {
        let agent = Self::new(NodeName::new("a"));
        for part in Part::ALL {
            agent.learn(Fact::Begin(part));
            if part == Part::Node {
                agent.learn(Fact::Node(NodeFact { uid: "u".to_owned(), leaving: None }));
            }
            agent.learn(Fact::End(part));
        }
        agent
    }

    fn lock(&self) -> MutexGuard<'_, Agent> {
        self.agent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn learn(&self, fact: Fact) {
        self.lock().learn(fact);
        self.learnt.notify_one();
    }
}

/// Runs until stopped. The port opens once all is known, and closes as soon as `stop` is cancelled:
/// a successor that listens on the same port already is asked from then on, and where there is
/// none, the node's probes fail, as they have to when the machine is shut down.
///
/// # Errors
/// The port cannot be opened, the file about it cannot be written, or a task has ended that must
/// not.
pub async fn run(
    client: Client,
    settings: Settings,
    clock: Clock,
    stop: CancellationToken,
) -> Result<(), Failure> {
    let mark = mark::Mark::cleared(settings.ready_file.clone())?;
    let agent = SharedAgent::new(settings.node.clone());
    let (sender, facts) = mpsc::channel(QUEUE);
    let mut tasks = Vital::default();
    for source in sources::sources(&settings) {
        let name = format!("the watch of {:?}", source.kind);
        let watch = Watch::new(client.clone(), source, sender.clone(), Pace::default());
        tasks.spawn(name, watch.run(stop.child_token()));
    }
    let asking = proxy::ask(settings.clone(), sender, stop.child_token());
    tasks.spawn("the question to the proxy", asking);
    let reports = reports::Reports::new(client, &settings, agent.clone(), clock);
    tasks.spawn("the reports", reports.run(stop.child_token()));
    let serving = serve(&settings, &agent, facts, mark, &stop);
    let (served, whole) = tasks.guard(serving, &stop).await;
    whole.map_err(|broken| Failure::new(Exit::Internal, broken))?;
    served
}

/// Learns, opens the port once all is known, and learns on.
async fn serve(
    settings: &Settings,
    agent: &SharedAgent,
    mut facts: mpsc::Receiver<Fact>,
    mark: mark::Mark,
    stop: &CancellationToken,
) -> Result<(), Failure> {
    loop {
        let fact = tokio::select! {
            () = stop.cancelled() => return Ok(()),
            fact = facts.recv() => fact,
        };
        // The proxy's task ends only when it is stopped.
        let Some(fact) = fact else { return Ok(()) };
        agent.learn(fact);
        if agent.lock().is_ready() {
            break;
        }
    }
    let (socket, address) = open(settings.listen)?;
    tracing::info!(node = settings.node.as_str(), "health of Services on http://{address}");
    let port = tokio::spawn(probes::serve(socket, agent.clone(), stop.clone()));
    mark.set()?;
    loop {
        let fact = tokio::select! {
            () = stop.cancelled() => break,
            fact = facts.recv() => fact,
        };
        let Some(fact) = fact else { break };
        agent.learn(fact);
    }
    // A panic in it has nothing left to close.
    let _ = port.await;
    Ok(())
}

/// Opens the port so that a successor can open it, too: during an update there is no moment in
/// which nothing listens.
fn open(address: SocketAddr) -> Result<(TcpListener, SocketAddr), Failure> {
    let failed = |e: std::io::Error| {
        let text = format!("cannot listen on {address}: {e}. Choose another with --listen");
        Failure::new(Exit::Blocked, text)
    };
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() };
    let socket = socket.map_err(failed)?;
    socket.set_reuseaddr(true).map_err(failed)?;
    #[cfg(unix)]
    socket.set_reuseport(true).map_err(failed)?;
    socket.bind(address).map_err(failed)?;
    let listener = socket.listen(BACKLOG).map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    Ok((listener, address))
}
