//! A process without leader election (`--leader-elect=false`) takes no Lease, but reads it to know
//! what an operator has paused.
//!
//! # Guarantees
//! - The controller hears of a pause before it hears of anything else.
//! - A read that fails neither begins nor ends a pause.
//! - The process waits for the first answer, and retries. An answer that no retry can change, such
//!   as 403, does not keep it from beginning: the log says that pauses are not heeded.
//! - A Lease that is not there is created without a holder, so that there is one to annotate; one
//!   that another client has deleted, with the annotations that were seen on it.

use crate::kubernetes::sender::{ServerReply, exchange, status_text};
use crate::vital::Vital;
use control::Event;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{Request, StatusCode};
use kube::Client;
use kube::client::Body;
use lease::record::Record;
use model::pause::PAUSE;
use model::{Pause, ServiceName};
use serde_json::Value;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Between two reads: as often as a leader renews by default.
const PACE: Duration = Duration::from_secs(2);
/// How long one call may take.
const LIMIT: Duration = Duration::from_secs(5);

/// Why it is not known what is paused.
struct Unknown {
    /// Whether a retry is pointless: the API server refuses the read, or there is no Lease and none
    /// can be created.
    refused: bool,
    why: String,
}

struct Reader {
    client: Client,
    lease: ServiceName,
    events: mpsc::Sender<Event>,
    /// What the controller was told that an operator has paused.
    told: Option<Pause>,
    /// The annotations that were last seen on the Lease; null before.
    annotations: Value,
    /// The last trouble that was logged.
    logged: String,
    /// Whether the controller has begun.
    begun: bool,
}

/// Reads the Lease until `stop`, and tells of pauses. Returns once the first read was answered; a
/// task reads on.
pub async fn heed_pauses(
    client: Client,
    lease: ServiceName,
    events: mpsc::Sender<Event>,
    stop: CancellationToken,
    tasks: &mut Vital,
) {
    let mut reader = Reader::new(client, lease, events);
    while !reader.look().await {
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(PACE) => {}
        }
    }
    reader.begun = true;
    tasks.spawn("the reader of the Lease", reader.run(stop));
}

impl Reader {
    fn new(client: Client, lease: ServiceName, events: mpsc::Sender<Event>) -> Self {
        let (told, annotations, logged) = (None, Value::Null, String::new());
        Self { client, lease, events, told, annotations, logged, begun: false }
    }

    async fn run(mut self, stop: CancellationToken) {
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(PACE) => {}
            }
            self.look().await;
        }
    }

    /// Whether the API server answered the question, or never will.
    async fn look(&mut self) -> bool {
        match self.read().await {
            Ok(pause) => {
                self.logged.clear();
                if self.told != pause {
                    self.told.clone_from(&pause);
                    // At a shutdown nothing listens any more.
                    let _ = self.events.send(Event::Pause(pause)).await;
                }
                true
            }
            Err(Unknown { refused, why }) => {
                if self.logged != why {
                    let lease = self.lease.to_string();
                    let then = self.consequence(refused);
                    tracing::warn!(lease, "{then}: {why}");
                    self.logged = why;
                }
                refused
            }
        }
    }

    /// What follows from a read that failed.
    fn consequence(&self, refused: bool) -> &'static str {
        match (refused, self.begun) {
            (true, _) => "`ballast pause --all` is not heeded",
            (false, false) => "the controller waits until it is known what an operator has paused",
            (false, true) => "an operator's pause stays as it was last read",
        }
    }

    async fn read(&mut self) -> Result<Option<Pause>, Unknown> {
        let ServiceName { namespace, name } = &self.lease;
        let all = format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases");
        let reply = self.call("GET", &format!("{all}/{name}"), None).await?;
        if reply.status == StatusCode::NOT_FOUND {
            let fresh = Record::absent(namespace, name).annotated(&self.annotations);
            let made = self.call("POST", &all, Some(fresh.object())).await;
            return match made {
                Ok(made) if made.status.is_success() => Ok(self.told.clone()),
                // Another client was faster: its Lease may have an annotation already.
                Ok(made) if made.status == StatusCode::CONFLICT => Err(unknown(&made)),
                Ok(made) => Err(Unknown { refused: true, ..unknown(&made) }),
                Err(trouble) => Err(Unknown { refused: true, ..trouble }),
            };
        }
        if !reply.status.is_success() {
            return Err(unknown(&reply));
        }
        let found: Value = serde_json::from_slice(&reply.body).map_err(|e| Unknown {
            refused: false,
            why: format!("the Lease cannot be read: {e}"),
        })?;
        self.annotations = found["metadata"]["annotations"].clone();
        Ok(self.annotations[PAUSE].as_str().and_then(Pause::read))
    }

    async fn call(
        &self,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> Result<ServerReply, Unknown> {
        let body = body.map_or_else(Body::empty, |b| Body::from(b.to_string().into_bytes()));
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(ACCEPT, "application/json")
            .header(CONTENT_TYPE, "application/json")
            .body(body)
            .map_err(|e| Unknown { refused: true, why: format!("{path} is no path: {e}") })?;
        let answer = exchange(&self.client, request, LIMIT).await;
        answer.map_err(|why| Unknown { refused: false, why: format!("{method} {path}: {why}") })
    }
}

fn unknown(reply: &ServerReply) -> Unknown {
    let may_pass = reply.status.is_server_error()
        || matches!(
            reply.status,
            StatusCode::REQUEST_TIMEOUT | StatusCode::CONFLICT | StatusCode::TOO_MANY_REQUESTS
        );
    Unknown { refused: !may_pass, why: status_text(reply.status, &reply.body) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{Act, Fake, json};
    use crate::kubernetes::{ConnectFrom, connect};
    use serde_json::json;

    async fn heed(script: impl Fn(&str, usize) -> Act + Send + Sync + 'static) -> Option<Event> {
        let fake = Fake::start(move |seen, number| script(&seen.method, number)).await;
        let client = connect(&ConnectFrom::Address(fake.url.clone()), "t").await.unwrap();
        let (sender, mut events) = mpsc::channel(8);
        let stop = CancellationToken::new();
        let lease = ServiceName::new("n", "l");
        heed_pauses(client, lease, sender, stop.clone(), &mut Vital::default()).await;
        // What the first read says is there when it returns.
        let heard = events.try_recv().ok();
        stop.cancel();
        heard
    }

    fn annotated(value: &str) -> Value {
        json!({"metadata": {"annotations": {PAUSE: value}, "resourceVersion": "1"}})
    }

    #[tokio::test]
    async fn a_pause_is_heard_of_before_anything_else() {
        let heard = heed(|_, _| json(200, &annotated("true"))).await;
        assert_eq!(heard, Some(Event::Pause(Some(Pause::All))));
        assert_eq!(heed(|_, _| json(200, &annotated("false"))).await, None);
    }

    #[tokio::test]
    async fn a_lease_that_is_not_there_is_created() {
        let heard = heed(|method, number| match (method, number) {
            ("GET", 0) => json(404, &json!({"message": "no such lease"})),
            ("POST", 1) => json(201, &json!({})),
            other => panic!("{other:?}"),
        });
        assert_eq!(heard.await, None);
    }

    /// Who deletes the Lease does not end what its annotations stop.
    #[tokio::test]
    async fn a_lease_that_was_deleted_is_made_again_with_its_annotations() {
        let fake = Fake::start(|_, number| match number {
            0 => json(200, &annotated("true")),
            1 => json(404, &json!({"message": "no such lease"})),
            _ => json(201, &json!({})),
        })
        .await;
        let client = connect(&ConnectFrom::Address(fake.url.clone()), "t").await.unwrap();
        let (sender, mut events) = mpsc::channel(8);
        let mut reader = Reader::new(client, ServiceName::new("n", "l"), sender);
        assert!(reader.look().await && reader.look().await);
        assert_eq!(events.try_recv().ok(), Some(Event::Pause(Some(Pause::All))));
        assert_eq!(events.try_recv().ok(), None, "it does not end");
        let made: Value = serde_json::from_str(&fake.seen()[2].body).unwrap();
        assert_eq!(made["metadata"]["annotations"][PAUSE], "true");
    }

    #[tokio::test]
    async fn a_lease_that_another_client_has_just_created_is_read() {
        let heard = heed(|method, number| match (method, number) {
            ("GET", 0) => json(404, &json!({"message": "no such lease"})),
            ("POST", 1) => json(409, &json!({"message": "it exists"})),
            _ => json(200, &annotated("true")),
        });
        assert_eq!(heard.await, Some(Event::Pause(Some(Pause::All))));
    }

    #[tokio::test]
    async fn a_lease_that_cannot_be_created_is_not_waited_for() {
        let heard = heed(|method, _| match method {
            "GET" => json(404, &json!({"message": "no such lease"})),
            _ => json(404, &json!({"message": "no such namespace"})),
        });
        assert_eq!(heard.await, None);
    }

    #[tokio::test]
    async fn a_server_that_does_not_answer_is_asked_again_and_one_that_refuses_is_not_waited_for() {
        for status in [503, 429] {
            let heard = heed(move |_, number| match number {
                0 => json(status, &json!({"message": "broken"})),
                _ => json(200, &annotated("loadBalancers")),
            });
            assert_eq!(heard.await, Some(Event::Pause(Pause::read("loadBalancers"))));
        }
        for status in [400, 401, 403, 405] {
            assert_eq!(heed(move |_, _| json(status, &json!({"message": "no"}))).await, None);
        }
    }
}
