//! Tells the controller that the proxy is ill, for as long as it is.

use super::{Settings, SharedAgent};
use control::{KubernetesAnswer, KubernetesCall};
use edge::clock::Clock;
use edge::kubernetes::Sender;
use edge::random::Pause;
use health::object;
use kube::Client;
use serde_json::Value;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Between two writes: a proxy that flaps must not cost the API server more.
const REST: Duration = Duration::from_secs(2);
/// Pauses after a write that failed.
const PAUSES_MS: (u64, u64) = (500, 30_000);

/// Writes and deletes the node's report.
pub(super) struct Reports {
    sender: Sender,
    namespace: String,
    agent: SharedAgent,
    clock: Clock,
    /// Whether it stands; `None`: a predecessor may have left one.
    stands: Option<bool>,
}

impl Reports {
    pub(super) fn new(
        client: Client,
        settings: &Settings,
        agent: SharedAgent,
        clock: Clock,
    ) -> Self {
        let (sender, namespace) = (Sender::new(client), settings.namespace.clone());
        Self { sender, namespace, agent, clock, stands: None }
    }

    pub(super) async fn run(mut self, stop: CancellationToken) {
        let mut pause = Pause::new(PAUSES_MS.0, PAUSES_MS.1);
        loop {
            let Some((call, stands)) = self.call() else {
                tokio::select! {
                    () = stop.cancelled() => return,
                    () = self.agent.learnt.notified() => continue,
                }
            };
            let wait = match settled(&self.sender.send(&call).await, stands) {
                Ok(()) => {
                    let node = self.agent.lock().name().clone();
                    if self.stands.is_some() || stands {
                        tracing::info!(node = node.as_str(), ill = stands, "the proxy's report");
                    }
                    self.stands = Some(stands);
                    pause.reset();
                    REST
                }
                Err(why) => {
                    let wait = Duration::from_millis(pause.next_ms(0));
                    let (method, path) = (call.method, &call.path);
                    tracing::warn!("{method} {path}: {why}; next in {} s", wait.as_secs_f32());
                    wait
                }
            };
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(wait) => {}
            }
        }
    }

    /// The write that is due, and whether the report stands after it.
    fn call(&self) -> Option<(KubernetesCall, bool)> {
        let agent = self.agent.lock();
        let ill = agent.is_ready().then(|| agent.report()).flatten()?;
        if self.stands == Some(ill.is_some()) {
            return None;
        }
        let content_type = "application/json";
        let (method, path, body) = match (ill, agent.node_uid()) {
            (Some(why), Some(uid)) => {
                let body = object::report(agent.name(), uid, why, &self.clock.utc());
                ("POST", object::leases(&self.namespace), body)
            }
            // A node without an object takes no traffic: there is nothing to report about.
            (Some(_), None) => return None,
            (None, _) => {
                ("DELETE", object::report_path(&self.namespace, agent.name()), Value::Null)
            }
        };
        Some((KubernetesCall { method, path, content_type, body }, ill.is_some()))
    }
}

/// Whether the report is now as it should be. One that stood already, or was gone already, is.
fn settled(answer: &KubernetesAnswer, stands: bool) -> Result<(), String> {
    match answer {
        KubernetesAnswer::Reply { status: 200..=299, .. } => Ok(()),
        KubernetesAnswer::Reply { status: 409, .. } if stands => Ok(()),
        KubernetesAnswer::Reply { status: 404, .. } if !stands => Ok(()),
        KubernetesAnswer::Reply { status, body, .. } => {
            let message = body.as_ref().and_then(|body| body["message"].as_str());
            Err(format!("HTTP {status}: {}", message.unwrap_or("no explanation")))
        }
        KubernetesAnswer::Fault(why) => Err(why.clone()),
    }
}
