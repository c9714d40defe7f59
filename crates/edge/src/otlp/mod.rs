//! Sends traces to an OpenTelemetry collector: OTLP over HTTP, as JSON.
//!
//! # Guarantees
//! It listens to notices and is never waited for: what a collector does not take is dropped, and
//! the log says so once.

mod spans;

use crate::web::Web;
use bytes::Bytes;
use control::Notice;
use http::header::CONTENT_TYPE;
use http::{Request, Uri};
use http_body_util::Full;
use spans::{Span, Spans, body};
use std::time::Duration;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio_util::sync::CancellationToken;

/// Spans in one request.
const BATCH: usize = 500;
/// How long a span waits for others.
const GATHER: Duration = Duration::from_secs(2);
/// How long a collector may take.
const LIMIT: Duration = Duration::from_secs(10);

/// Why traces cannot be sent.
#[derive(Debug, thiserror::Error)]
#[error(
    "\"{url}\" is no address of a collector: {why}. Give http or https, a host and a port, as in \
     http://127.0.0.1:4318"
)]
pub struct NoCollector {
    url: String,
    why: String,
}

/// Sends traces.
#[derive(Debug)]
pub struct Exporter {
    web: Web,
    url: Uri,
    instance: String,
    /// What the collector said last, so that the log is told once.
    failing: Option<String>,
}

impl Exporter {
    /// An exporter to the collector at an address; `/v1/traces` is added.
    ///
    /// # Errors
    /// It is no such address.
    pub fn new(web: Web, collector: &str, instance: &str) -> Result<Self, NoCollector> {
        let wrong = |why: &str| NoCollector { url: collector.to_owned(), why: why.to_owned() };
        let text = format!("{}/v1/traces", collector.trim_end_matches('/'));
        let url: Uri = text.parse().map_err(|e: http::uri::InvalidUri| wrong(&e.to_string()))?;
        if !matches!(url.scheme_str(), Some("http" | "https")) || url.host().is_none() {
            return Err(wrong("it has no scheme or no host"));
        }
        Ok(Self { web, url, instance: instance.to_owned(), failing: None })
    }

    /// Sends what notices tell until stopped; then what is left.
    pub async fn run(mut self, mut heard: Receiver<Notice>, stop: CancellationToken) {
        let (mut spans, mut ready) = (Spans::default(), Vec::new());
        loop {
            let more = tokio::select! {
                biased;
                () = stop.cancelled() => false,
                more = gather(&mut heard, &mut spans, &mut ready) => more,
            };
            if !more {
                // What is said already is still heard.
                while let Ok(notice) = heard.try_recv() {
                    ready.extend(spans.take(&notice));
                }
            }
            self.send(std::mem::take(&mut ready)).await;
            if !more {
                return;
            }
        }
    }

    async fn send(&mut self, spans: Vec<Span>) {
        for part in spans.chunks(BATCH) {
            let outcome = self.post(part).await;
            match (&outcome, &self.failing) {
                (Some(why), None) => {
                    let url = &self.url;
                    tracing::warn!("traces are dropped: {url} does not take them: {why}");
                }
                (None, Some(_)) => tracing::info!("traces are taken again"),
                _ => {}
            }
            self.failing = outcome;
        }
    }

    /// Why it was not taken.
    async fn post(&self, spans: &[Span]) -> Option<String> {
        let text = body(spans, &self.instance).to_string();
        let request = Request::post(self.url.clone())
            .header(CONTENT_TYPE, "application/json")
            .body(Full::new(Bytes::from(text)));
        let request = match request {
            Ok(request) => request,
            Err(e) => return Some(e.to_string()),
        };
        match self.web.send(request, LIMIT).await {
            Ok(reply) if reply.status.is_success() => None,
            Ok(reply) => Some(format!("HTTP {}", reply.status.as_u16())),
            Err(fault) => Some(fault.to_string()),
        }
    }
}

/// Hears notices until there is something to send. False when nothing more will come.
async fn gather(heard: &mut Receiver<Notice>, spans: &mut Spans, ready: &mut Vec<Span>) -> bool {
    let mut due = std::pin::pin!(None);
    loop {
        let wait = async {
            match due.as_mut().as_pin_mut() {
                Some(sleep) => sleep.await,
                None => std::future::pending().await,
            }
        };
        let notice = tokio::select! {
            notice = heard.recv() => notice,
            () = wait => return true,
        };
        match notice {
            Ok(notice) => ready.extend(spans.take(&notice)),
            Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => return false,
        }
        if ready.len() >= BATCH {
            return true;
        }
        if !ready.is_empty() && due.is_none() {
            due.set(Some(tokio::time::sleep(GATHER)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{Act, Fake};
    use crate::notice::NoticeSink;
    use control::NoticeKind;
    use serde_json::Value;

    fn notices() -> [Notice; 2] {
        let notice = |kind, at_ms| Notice {
            at_ms,
            kind,
            services: Vec::new(),
            text: "PUT loadBalancers/kubernetes".to_owned(),
            changes: Vec::new(),
            correlation: Some("feedf00d-0000-4000-8000-000000000001".to_owned()),
        };
        [notice(NoticeKind::Sent, 1), notice(NoticeKind::Answered, 5)]
    }

    async fn export(status: u16) -> Fake {
        let fake = Fake::start(move |_, _| Act::Reply(status, vec![], "{}".to_owned())).await;
        let sink = NoticeSink::default();
        let exporter = Exporter::new(Web::loopback().unwrap(), &fake.url, "feedf00d").unwrap();
        let stop = CancellationToken::new();
        let running = tokio::spawn(exporter.run(sink.listen(), stop.clone()));
        notices().into_iter().for_each(|notice| sink.say(notice));
        stop.cancel();
        running.await.unwrap();
        fake
    }

    #[tokio::test]
    async fn a_collector_gets_spans_as_otlp_json_and_the_rest_at_the_end() {
        let fake = export(200).await;
        let seen = fake.seen();
        assert_eq!(seen.len(), 1);
        assert_eq!((seen[0].method.as_str(), seen[0].path.as_str()), ("POST", "/v1/traces"));
        assert_eq!(seen[0].header("content-type"), "application/json");
        let body: Value = serde_json::from_str(&seen[0].body).unwrap();
        let resource = &body["resourceSpans"][0];
        assert_eq!(resource["resource"]["attributes"][0]["value"]["stringValue"], "ballast");
        let span = &resource["scopeSpans"][0]["spans"][0];
        assert_eq!(span["traceId"], "feedf00d000040008000000000000001");
        assert_eq!((&span["name"], &span["endTimeUnixNano"]), (&"PUT".into(), &"5000000".into()));
    }

    #[tokio::test]
    async fn a_collector_that_refuses_is_asked_once_and_nothing_stops() {
        assert_eq!(export(503).await.seen().len(), 1);
    }

    #[test]
    fn an_address_without_a_scheme_is_refused() {
        let web = || Web::loopback().unwrap();
        assert!(Exporter::new(web(), "http://127.0.0.1:4318/", "i").is_ok());
        for wrong in ["collector:4318", "/v1", "ftp://host", ""] {
            let error = Exporter::new(web(), wrong, "i").unwrap_err().to_string();
            assert!(error.contains("http://127.0.0.1:4318"), "{error}");
        }
    }
}
