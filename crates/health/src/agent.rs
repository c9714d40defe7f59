//! One node: what its probes are answered.

use crate::Verdict;
use model::kubernetes::{EndpointSlice, Membership, Readiness};
use model::policy::HealthCheck;
use model::{Family, NodeName, ServiceName};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// What is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// The agent's own Node.
    Node,
    /// EndpointSlices of Services.
    Slices,
    /// The verdict over all nodes.
    Verdict,
}

impl Part {
    /// Every part: an agent answers once each was listed.
    pub const ALL: [Self; 3] = [Self::Node, Self::Slices, Self::Verdict];
}

/// Something an agent learns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fact {
    /// A list begins. What was known stays in force until its end.
    Begin(Part),
    /// It is complete: what it did not have is gone.
    End(Part),
    /// A slice.
    Slice(EndpointSlice),
    /// A slice is gone.
    SliceGone(ServiceName),
    /// The agent's Node.
    Node(NodeFact),
    /// It is gone.
    NodeGone,
    /// The object stands by which the controller tells that nodes stay in rotation.
    Verdict,
    /// It does not stand any more.
    VerdictGone,
    /// What the proxy answered.
    Proxy(Proxy),
}

/// The agent's Node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeFact {
    /// `metadata.uid`.
    pub uid: String,
    /// Why it takes no new connections; `None`: it takes them.
    pub leaving: Option<Leaving>,
}

/// Why a node takes no new connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaving {
    /// Its Node object is gone.
    Deleted,
    /// It is being deleted, or drained: deletion timestamp, autoscaler's taint, or the label.
    Draining,
    /// A label leaves it out of load balancers.
    Excluded,
    /// The kubelet says that the machine is being shut down.
    ShuttingDown,
}

impl Leaving {
    /// What follows from whether the controller has the node in its pools.
    #[must_use]
    pub fn of(membership: Membership) -> Option<Self> {
        match membership {
            Membership::Member => None,
            Membership::Excluded => Some(Self::Excluded),
            Membership::Draining | Membership::Leaving => Some(Self::Draining),
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Deleted => "deleted",
            Self::Draining => "draining",
            Self::Excluded => "excluded",
            Self::ShuttingDown => "shutting down",
        }
    }
}

/// What the proxy answered when it was asked for its health.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Proxy {
    /// It is healthy, or is not to be asked.
    Healthy,
    /// It is not, or did not answer; and why.
    Ill(String),
}

/// What a probe is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// HTTP status.
    pub status: u16,
    /// Body, JSON or text.
    pub body: String,
    /// Ready endpoints on this node, for answers about a Service.
    pub endpoints: Option<usize>,
}

impl Answer {
    fn text(status: u16, body: &str) -> Self {
        Self { status, body: format!("{body}\n"), endpoints: None }
    }
}

/// Equal answers of the proxy, one after another, before they are reported: a restart of a second
/// is no news for the API server.
const REPORTED_AFTER: u32 = 2;

/// The ready endpoints of a slice that are on this node.
#[derive(Debug)]
struct Local {
    service: ServiceName,
    addresses: BTreeSet<IpAddr>,
}

/// One node's health.
#[derive(Debug)]
pub struct Agent {
    name: NodeName,
    complete: BTreeSet<Part>,
    /// Slices that a list under way has had.
    listed: BTreeMap<Part, BTreeSet<ServiceName>>,
    /// Slices with ready endpoints here.
    slices: BTreeMap<ServiceName, Local>,
    /// Names of those slices, by Service.
    services: BTreeMap<ServiceName, BTreeSet<ServiceName>>,
    node: Option<NodeFact>,
    verdict: Verdict,
    proxy: Proxy,
    /// How often it has answered so in a row.
    equal: u32,
}

impl Agent {
    /// The agent of a node, of which nothing is known yet.
    #[must_use]
    pub fn new(name: NodeName) -> Self {
        Self {
            name,
            complete: BTreeSet::new(),
            listed: BTreeMap::new(),
            slices: BTreeMap::new(),
            services: BTreeMap::new(),
            node: None,
            verdict: Verdict::Each,
            proxy: Proxy::Healthy,
            equal: 0,
        }
    }

    /// Takes a fact in.
    pub fn learn(&mut self, fact: Fact) {
        match fact {
            Fact::Begin(part) => {
                self.listed.insert(part, BTreeSet::new());
            }
            Fact::End(part) => self.end(part),
            Fact::Slice(slice) => self.slice(slice),
            Fact::SliceGone(name) => self.forget(&name),
            Fact::Node(node) => {
                self.seen(Part::Node, || ServiceName::new("", ""));
                self.node = Some(node);
            }
            Fact::NodeGone => self.node = None,
            Fact::Verdict => {
                self.seen(Part::Verdict, || ServiceName::new("", ""));
                self.verdict = Verdict::Together;
            }
            Fact::VerdictGone => self.verdict = Verdict::Each,
            Fact::Proxy(proxy) => {
                let same = matches!(
                    (&self.proxy, &proxy),
                    (Proxy::Healthy, Proxy::Healthy) | (Proxy::Ill(_), Proxy::Ill(_))
                );
                self.equal = if same { self.equal.saturating_add(1) } else { 1 };
                self.proxy = proxy;
            }
        }
    }

    fn seen(&mut self, part: Part, name: impl FnOnce() -> ServiceName) {
        if let Some(listed) = self.listed.get_mut(&part) {
            listed.insert(name());
        }
    }

    /// What a complete list did not have is gone.
    fn end(&mut self, part: Part) {
        let Some(listed) = self.listed.remove(&part) else { return };
        self.complete.insert(part);
        match part {
            Part::Slices => {
                let gone = self.slices.keys().filter(|name| !listed.contains(name));
                let gone: Vec<ServiceName> = gone.cloned().collect();
                gone.iter().for_each(|name| self.forget(name));
            }
            Part::Node if listed.is_empty() => self.node = None,
            Part::Verdict if listed.is_empty() => self.verdict = Verdict::Each,
            Part::Node | Part::Verdict => {}
        }
    }

    fn slice(&mut self, slice: EndpointSlice) {
        self.seen(Part::Slices, || slice.name.clone());
        self.forget(&slice.name);
        let Some(service) = slice.service else { return };
        let here = slice.endpoints.iter().filter(|endpoint| {
            endpoint.readiness == Readiness::Ready && endpoint.node.as_ref() == Some(&self.name)
        });
        let addresses: BTreeSet<IpAddr> = here.map(|endpoint| endpoint.address).collect();
        if !addresses.is_empty() {
            self.services.entry(service.clone()).or_default().insert(slice.name.clone());
            self.slices.insert(slice.name, Local { service, addresses });
        }
    }

    fn forget(&mut self, name: &ServiceName) {
        let Some(Local { service, .. }) = self.slices.remove(name) else { return };
        if let Some(names) = self.services.get_mut(&service) {
            names.remove(name);
            if names.is_empty() {
                self.services.remove(&service);
            }
        }
    }

    /// Whether all that is watched was listed once. Before that no probe is answered: nothing
    /// listens.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        Part::ALL.iter().all(|part| self.complete.contains(part)) && self.equal > 0
    }

    /// The node's name.
    #[must_use]
    pub fn name(&self) -> &NodeName {
        &self.name
    }

    /// The UID of the Node, where it stands.
    #[must_use]
    pub fn node_uid(&self) -> Option<&str> {
        self.node.as_ref().map(|node| node.uid.as_str())
    }

    /// Why the node takes no new connections; `None`: it takes them.
    #[must_use]
    pub fn leaving(&self) -> Option<Leaving> {
        match &self.node {
            Some(node) => node.leaving,
            None => Some(Leaving::Deleted),
        }
    }

    /// Whether the proxy was healthy when it was asked last.
    #[must_use]
    pub fn is_proxy_healthy(&self) -> bool {
        self.proxy == Proxy::Healthy
    }

    /// The verdict that is in force.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        self.verdict
    }

    /// How many Services have ready endpoints here.
    #[must_use]
    pub fn local_services(&self) -> usize {
        self.services.len()
    }

    /// Ready endpoints of a Service on this node. A Pod with an address of each family is one.
    #[must_use]
    pub fn endpoints(&self, service: &ServiceName) -> usize {
        let slices = self.services.get(service).into_iter().flatten();
        let slices = slices.filter_map(|name| self.slices.get(name));
        let all: BTreeSet<IpAddr> = slices.flat_map(|local| &local.addresses).copied().collect();
        let six = all.iter().filter(|address| Family::of(**address) == Family::V6).count();
        six.max(all.len() - six)
    }

    /// Whether the proxy is to be reported as ill, and why. `None` from a node that is leaving:
    /// kube-proxy itself calls such a node unhealthy, and it is no news.
    ///
    /// The outer `None`: no two answers in a row were equal, so what was reported stays.
    #[must_use]
    pub fn report(&self) -> Option<Option<&str>> {
        if self.leaving().is_some() {
            return Some(None);
        }
        (self.equal >= REPORTED_AFTER).then_some(match &self.proxy {
            Proxy::Healthy => None,
            Proxy::Ill(why) => Some(why),
        })
    }

    /// Whether the node can take new connections at all.
    fn takes_connections(&self) -> bool {
        let stays = self.is_proxy_healthy() || self.verdict == Verdict::Together;
        self.leaving().is_none() && stays
    }

    /// The answer to a GET of this path.
    #[must_use]
    pub fn answer(&self, path: &str) -> Answer {
        let (path, _) = path.split_once('?').unwrap_or((path, ""));
        if let Some(service) = HealthCheck::service_of(path) {
            let endpoints = self.endpoints(&service);
            return self.judged(Some(endpoints), endpoints > 0);
        }
        match path {
            HealthCheck::NODE_PATH => self.judged(None, true),
            "/livez" => Answer::text(200, "ok"),
            "/readyz" if self.is_ready() => Answer::text(200, "ok"),
            "/readyz" => Answer::text(503, "not all is listed yet"),
            _ => Answer::text(
                404,
                "there is /services/NAMESPACE/NAME, /node, /livez, /readyz and /metrics",
            ),
        }
    }

    fn judged(&self, endpoints: Option<usize>, serves: bool) -> Answer {
        let good = serves && self.is_ready() && self.takes_connections();
        let mut body = json!({
            "node": self.leaving().map_or("serving", Leaving::word),
            "proxy": match &self.proxy {
                Proxy::Healthy => "healthy",
                Proxy::Ill(why) => why,
            },
        });
        if let Some(endpoints) = endpoints {
            body["localEndpoints"] = json!(endpoints);
        }
        if self.verdict == Verdict::Together {
            body["majority"] = json!("most proxies are ill: theirs do not count");
        }
        Answer { status: if good { 200 } else { 503 }, body: format!("{body}\n"), endpoints }
    }
}

#[cfg(test)]
#[path = "agent_tests.rs"]
mod tests;
