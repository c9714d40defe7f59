//! The controller's side of `healthCheck: agent`: counts the nodes whose proxy is ill, and tells
//! agents when so many are that nodes stay in rotation.

use crate::shared::{Proxies, SharedController, Turns};
use control::{Controller, KubernetesAnswer, KubernetesCall};
use edge::clock::Clock;
use edge::kubernetes::{Change, Pace, Sender, Source, Told, Watch};
use edge::lease::leader::Standing;
use edge::vital::Vital;
use health::object::{self, Count, Occasion};
use health::{Decision, Majority, ReportFact, ReportPart};
use kube::Client;
use model::NodeName;
use model::kubernetes::Membership;
use model::world::Kind;
use observe::kubernetes::raw::Metadata;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Facts that may wait to be taken in.
const QUEUE: usize = 256;
/// How often is looked while any proxy is ill or the verdict stands.
const PERIOD: Duration = Duration::from_secs(1);
/// How long a step of the controller may take until its nodes are asked for again.
const PATIENCE: Duration = Duration::from_secs(5);

/// Where and how it is counted.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The namespace of reports and verdict.
    pub namespace: String,
    /// More than this share of nodes is a majority.
    pub share_percent: u8,
    /// Differs between two processes.
    pub instance: String,
    /// Whether processes take turns.
    pub turns: Turns,
}

/// A fact that a watch tells.
struct Watched(ReportFact);

impl Told for Watched {
    type Event = ReportFact;
    type Kind = ReportPart;

    fn begin(kind: ReportPart) -> Self {
        Self(ReportFact::Begin(kind))
    }

    fn end(kind: ReportPart, _revision: &str) -> Self {
        Self(ReportFact::End(kind))
    }

    fn event(self) -> ReportFact {
        self.0
    }
}

#[derive(Deserialize)]
struct Named {
    metadata: Metadata,
}

fn sources(namespace: &str) -> [Source<Watched>; 2] {
    [
        Source {
            kind: ReportPart::Reports,
            path: object::leases(namespace),
            selector: Some(format!("{}={}", object::REPORT_LABEL, object::REPORT)),
            fields: None,
            read: Arc::new(|change, json| {
                let named: Named = serde_json::from_str(json).map_err(|e| e.to_string())?;
                let name = &named.metadata.name;
                let node = object::reported(name);
                let node = node.ok_or_else(|| format!("{name} is the name of no report"))?;
                Ok(Watched(match change {
                    Change::Present => ReportFact::Ill(node),
                    Change::Gone => ReportFact::Well(node),
                }))
            }),
        },
        Source {
            kind: ReportPart::Verdict,
            path: object::config_maps(namespace),
            selector: None,
            fields: Some(format!("metadata.name={}", object::VERDICT)),
            read: Arc::new(|change, _| {
                Ok(Watched(match change {
                    Change::Present => ReportFact::Verdict,
                    Change::Gone => ReportFact::VerdictGone,
                }))
            }),
        },
    ]
}

/// Counts until stopped, and writes while this process leads: in these tasks.
pub fn follow(
    client: Client,
    controller: SharedController,
    settings: Settings,
    clock: Clock,
    stop: CancellationToken,
    tasks: &mut Vital,
) {
    let (sender, facts) = mpsc::channel(QUEUE);
    for source in sources(&settings.namespace) {
        let name = format!("the watch of {:?}", source.kind);
        let watch = Watch::new(client.clone(), source, sender.clone(), Pace::default());
        tasks.spawn(name, watch.run(stop.child_token()));
    }
    let majority = Majority::new(settings.share_percent);
    let sender = Sender::new(client);
    let counter = Counter { controller, settings, clock, sender, majority };
    tasks.spawn("the count of agents' reports", counter.run(facts, stop));
}

struct Counter {
    controller: SharedController,
    settings: Settings,
    clock: Clock,
    sender: Sender,
    majority: Majority,
}

/// The nodes that take traffic; `None` before they were listed.
fn members(controller: &Controller) -> Option<BTreeSet<NodeName>> {
    let kubernetes = &controller.world().kubernetes;
    let nodes = kubernetes.nodes.values().filter(|node| node.membership == Membership::Member);
    kubernetes.complete.contains(&Kind::Nodes).then(|| nodes.map(|n| n.name.clone()).collect())
}

impl Counter {
    async fn run(mut self, mut facts: mpsc::Receiver<ReportFact>, stop: CancellationToken) {
        loop {
            let quiet = self.majority.is_quiet();
            tokio::select! {
                () = stop.cancelled() => return,
                fact = facts.recv() => {
                    let Some(fact) = fact else { return };
                    self.majority.learn(fact);
                    while let Ok(fact) = facts.try_recv() {
                        self.majority.learn(fact);
                    }
                }
                () = tokio::time::sleep(PERIOD), if !quiet => {}
            }
            self.look().await;
        }
    }

    async fn look(&mut self) {
        let Some(nodes) = self.controller.look_within(PATIENCE, members).await.flatten() else {
            return;
        };
        let (ill, verdict) = (self.majority.ill_among(&nodes), self.majority.standing());
        self.controller.note_proxies(Proxies { ill, verdict });
        if !self.leads() {
            return;
        }
        let count = Count { ill, nodes: nodes.len(), share_percent: self.settings.share_percent };
        match self.majority.decide(&nodes, self.clock.now_ms()) {
            Decision::Keep => {}
            Decision::Raise => self.raise(count).await,
            Decision::Lift => self.lift(count).await,
        }
        let verdict = self.majority.standing();
        self.controller.note_proxies(Proxies { ill, verdict });
    }

    fn leads(&self) -> bool {
        match self.controller.leader() {
            Some(leader) => leader.standing(self.clock.now_ms()) == Standing::Ours,
            None => self.settings.turns == Turns::Alone,
        }
    }

    /// Only who made the object tells of it: two leaders at once write one Event.
    async fn raise(&mut self, count: Count) {
        let body = object::verdict(count, &self.clock.utc());
        let path = object::config_maps(&self.settings.namespace);
        match self.call("POST", path, body).await {
            Some(200..=299) => {
                let Count { ill, nodes, share_percent } = count;
                tracing::warn!(
                    ill,
                    nodes,
                    share_percent,
                    "most service proxies are ill: nodes with an ill one stay in rotation"
                );
                self.tell(Occasion::Raised, count).await;
            }
            Some(409) => {}
            _ => return,
        }
        self.majority.learn(ReportFact::Verdict);
    }

    async fn lift(&mut self, count: Count) {
        let path = object::verdict_path(&self.settings.namespace);
        match self.call("DELETE", path, Value::Null).await {
            Some(200..=299) => {
                let Count { ill, nodes, .. } = count;
                tracing::info!(ill, nodes, "few service proxies are ill: each counts again");
                self.tell(Occasion::Lifted, count).await;
            }
            Some(404) => {}
            _ => return,
        }
        self.majority.learn(ReportFact::VerdictGone);
    }

    async fn tell(&self, occasion: Occasion, count: Count) {
        let Settings { namespace, instance, .. } = &self.settings;
        let at = self.clock.utc();
        let now = (at.as_str(), self.clock.now_ms());
        let body = object::event(occasion, count, (namespace, instance), now);
        // What the Event says stands in the log and in the ConfigMap, too.
        self.call("POST", format!("/api/v1/namespaces/{namespace}/events"), body).await;
    }

    /// The status of the answer; a failure is in the log, and tried again at the next look.
    async fn call(&self, method: &'static str, path: String, body: Value) -> Option<u16> {
        let call = KubernetesCall { method, path, content_type: "application/json", body };
        match self.sender.send(&call).await {
            KubernetesAnswer::Reply { status, body, .. } => {
                if status >= 400 && status != 404 && status != 409 {
                    let message = body.as_ref().and_then(|body| body["message"].as_str());
                    let message = message.unwrap_or("no explanation");
                    tracing::warn!("{method} {}: HTTP {status}: {message}", call.path);
                }
                Some(status)
            }
            KubernetesAnswer::Fault(why) => {
                tracing::warn!("{why}");
                None
            }
        }
    }
}
