//! Tells the controller that the proxy is ill, for as long as it is.
//!
//! An agent may write its report and not read it. Others can delete it: by hand, with its
//! namespace, or with the rights of another node's agent. So it is written again when the verdict
//! falls, and now and then; where it still stands, the API server says so.

use super::{Settings, SharedAgent};
use control::{KubernetesAnswer, KubernetesCall};
use edge::clock::Clock;
use edge::kubernetes::Sender;
use edge::random::Pause;
use health::{Verdict, object};
use kube::Client;
use serde_json::Value;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// Between two writes: a proxy that flaps must not cost the API server more.
const REST: Duration = Duration::from_secs(2);
/// How long a report is believed to stand.
const BELIEVED: Duration = Duration::from_secs(300);
/// Pauses after a write that failed.
const PAUSES_MS: (u64, u64) = (500, 30_000);

/// Writes and deletes the node's report.
pub(super) struct Reports {
    sender: Sender,
    namespace: String,
    agent: SharedAgent,
    clock: Clock,
    /// Whether it stands; `None`: a predecessor or a write without an answer may have left one, or
    /// others deleted it.
    stands: Option<bool>,
    /// When that was last heard.
    heard: Instant,
    /// The verdict when it was last looked at.
    verdict: Verdict,
}

impl Reports {
    pub(super) fn new(
        client: Client,
        settings: &Settings,
        agent: SharedAgent,
        clock: Clock,
    ) -> Self {
        let (sender, namespace) = (Sender::new(client), settings.namespace.clone());
        let (heard, verdict) = (Instant::now(), Verdict::Each);
        Self { sender, namespace, agent, clock, stands: None, heard, verdict }
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
            let known = self.stands.is_some();
            let answer = self.sender.send(&call).await;
            let wait = match self.take(&answer, stands) {
                Ok(()) => {
                    let node = self.agent.lock().name().clone();
                    if known || stands {
                        tracing::info!(node = node.as_str(), ill = stands, "the proxy's report");
                    }
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

    /// Takes in what has become of a write. Where it is not heard, it may be done all the same: by
    /// the next write the proxy may be as it was before, and the report has to follow.
    fn take(&mut self, answer: &KubernetesAnswer, stands: bool) -> Result<(), String> {
        let settled = settled(answer, stands);
        match settled {
            Ok(()) => self.hear(stands),
            Err(_) => self.stands = None,
        }
        settled
    }

    fn hear(&mut self, stands: bool) {
        self.stands = Some(stands);
        self.heard = Instant::now();
    }

    /// Forgets that the report stands where others may have deleted it.
    fn doubt(&mut self, verdict: Verdict) {
        let fell = self.verdict == Verdict::Together && verdict == Verdict::Each;
        self.verdict = verdict;
        if self.stands == Some(true) && (fell || self.heard.elapsed() >= BELIEVED) {
            self.stands = None;
        }
    }

    /// The write that is due, and whether the report stands after it.
    fn call(&mut self) -> Option<(KubernetesCall, bool)> {
        let shared = self.agent.clone();
        let agent = shared.lock();
        self.doubt(agent.verdict());
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

#[cfg(test)]
mod tests {
    use super::*;
    use edge::kubernetes::{ConnectFrom, connect};
    use health::{Fact, Proxy};

    /// The reports of a node whose proxy is ill, at an API server that is not there.
    async fn ill() -> Reports {
        let server = ConnectFrom::Address("http://127.0.0.1:1".to_owned());
        let client = connect(&server, "t").await.expect("nothing is asked yet");
        let agent = SharedAgent::listed();
        for _ in 0..2 {
            agent.learn(Fact::Proxy(Proxy::Ill("HTTP 503".to_owned())));
        }
        Reports {
            sender: Sender::new(client),
            namespace: object::NAMESPACE.to_owned(),
            agent,
            clock: Clock::start(),
            stands: None,
            heard: Instant::now(),
            verdict: Verdict::Each,
        }
    }

    fn due(reports: &mut Reports) -> Option<&'static str> {
        reports.call().map(|(call, _)| call.method)
    }

    #[tokio::test]
    async fn a_report_that_others_may_have_deleted_is_written_again() {
        let mut reports = ill().await;
        assert_eq!(due(&mut reports), Some("POST"));
        reports.hear(true);
        assert_eq!(due(&mut reports), None);
        reports.agent.learn(Fact::Verdict);
        assert_eq!(due(&mut reports), None);
        // While most are ill the verdict falls only where reports are missing.
        reports.agent.learn(Fact::VerdictGone);
        assert_eq!(due(&mut reports), Some("POST"));
        reports.hear(true);
        assert_eq!(due(&mut reports), None);
        reports.heard = reports.heard.checked_sub(BELIEVED).expect("the machine is up for longer");
        assert_eq!(due(&mut reports), Some("POST"));
        reports.hear(true);
        for _ in 0..2 {
            reports.agent.learn(Fact::Proxy(Proxy::Healthy));
        }
        assert_eq!(due(&mut reports), Some("DELETE"));
        reports.hear(false);
        reports.heard = reports.heard.checked_sub(BELIEVED).expect("the machine is up for longer");
        assert_eq!(due(&mut reports), None, "a healthy node writes nothing");
    }

    /// No other agent takes a report back, and it has no end: its node would count as ill for ever.
    #[tokio::test]
    async fn a_report_whose_answer_is_lost_is_taken_back() {
        let mut reports = ill().await;
        reports.hear(false);
        let lost = KubernetesAnswer::Fault("no whole answer within 30 s".to_owned());
        assert_eq!(due(&mut reports), Some("POST"));
        assert!(reports.take(&lost, true).is_err());
        for _ in 0..2 {
            reports.agent.learn(Fact::Proxy(Proxy::Healthy));
        }
        assert_eq!(due(&mut reports), Some("DELETE"));
        // The other way round it would be missing.
        reports.hear(true);
        assert!(reports.take(&lost, false).is_err());
        for _ in 0..2 {
            reports.agent.learn(Fact::Proxy(Proxy::Ill("HTTP 503".to_owned())));
        }
        assert_eq!(due(&mut reports), Some("POST"));
    }
}
