//! Finds Pods that carry our finalizer and no longer the label by which they are watched: somebody
//! took it off while nobody watched. Once, at the start, all Pods without the label are listed.
//!
//! Only their metadata is asked for, about 1 KB a Pod; a server that does not know that form sends
//! whole Pods. Those that have the finalizer, nearly always none, are then read one by one.

use super::sender::{exchange, status_text};
use super::sources::EGRESS_LABEL;
use super::watch::{Change, Pace, Source};
use super::wire::read_page;
use crate::credential::entra::form;
use crate::random::Pause;
use crate::retry_after::retry_after_ms;
use bytes::Bytes;
use control::Event;
use http::header::ACCEPT;
use http::{Request, StatusCode};
use kube::Client;
use kube::client::Body;
use model::kubernetes::POD_FINALIZER;
use observe::kubernetes::raw::Metadata;
use serde::Deserialize;
use std::time::{Duration, SystemTime};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Pods a page.
const PAGE: &str = "500";
/// How long a page may take.
const PAGE_LIMIT: Duration = Duration::from_secs(60);
/// Metadata where the server can, all of it where not.
const SLIM: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,\
                    application/json";

const WHOLE: &str = "application/json";

/// A search for Pods that lost their label.
pub(super) struct Strays {
    client: Client,
    source: Source,
    events: mpsc::Sender<Event>,
    pause: Pause,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Item {
    metadata: Metadata,
}

/// Why a search broke off.
struct Failure {
    why: String,
    wait_ms: u64,
}

impl Strays {
    /// A search whose finds are read as those of this source.
    pub fn new(client: Client, source: Source, events: mpsc::Sender<Event>, pace: Pace) -> Self {
        Self { client, source, events, pause: Pause::new(pace.first_ms, pace.cap_ms) }
    }

    /// Searches until every page has been seen, then waits for the stop.
    pub async fn run(mut self, stop: CancellationToken) {
        let work = async {
            while let Err(Failure { why, wait_ms }) = self.search().await {
                let ms = self.pause.next_ms(wait_ms);
                tracing::warn!(
                    wait_ms = ms,
                    "looking for Pods that lost their label failed: {why}"
                );
                tokio::time::sleep(Duration::from_millis(ms)).await;
            }
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = stop.cancelled() => {}
            () = work => {}
        }
    }

    async fn search(&self) -> Result<(), Failure> {
        let selector = format!("!{EGRESS_LABEL}");
        let mut next: Option<String> = None;
        loop {
            let mut query = vec![("labelSelector", selector.as_str()), ("limit", PAGE)];
            if let Some(next) = &next {
                query.push(("continue", next));
            }
            let path = format!("{}?{}", self.source.path, form(&query));
            let Some(body) = self.get(&path, SLIM).await? else { return Ok(()) };
            let page = read_page(&body).map_err(|why| Failure { why, wait_ms: 0 })?;
            for item in page.items {
                if item.contains(POD_FINALIZER) {
                    self.tell(item).await?;
                }
            }
            next = page.next;
            if next.is_none() {
                return Ok(());
            }
        }
    }

    async fn tell(&self, item: &str) -> Result<(), Failure> {
        let Ok(Item { metadata }) = serde_json::from_str(item) else { return Ok(()) };
        // A list of one Pod: the ClusterRole has `list` for Pods, and not `get`.
        let name = format!("metadata.name={}", metadata.name);
        let query = form(&[("fieldSelector", name.as_str())]);
        let path = format!("/api/v1/namespaces/{}/pods?{query}", metadata.namespace);
        let Some(body) = self.get(&path, WHOLE).await? else { return Ok(()) };
        let page = read_page(&body).map_err(|why| Failure { why, wait_ms: 0 })?;
        for pod in page.items {
            match (self.source.read)(Change::Present, pod) {
                Ok(fact) => {
                    // Should the receiver be gone, the process is about to end.
                    let _ = self.events.send(Event::Kubernetes(fact)).await;
                }
                Err(e) => tracing::warn!("a Pod cannot be read and is left out: {e}"),
            }
        }
        Ok(())
    }

    /// A body; nothing of what is not there any more.
    async fn get(&self, path: &str, form: &str) -> Result<Option<Bytes>, Failure> {
        let failed = |why: String| Failure { why, wait_ms: 0 };
        let request = Request::get(path).header(ACCEPT, form).body(Body::empty());
        let request = request.map_err(|e| failed(e.to_string()))?;
        let reply = exchange(&self.client, request, PAGE_LIMIT).await.map_err(failed)?;
        if reply.status == StatusCode::NOT_FOUND {
            return Ok(None);
        }
        if reply.status.is_success() {
            return Ok(Some(reply.body));
        }
        let wait_ms = retry_after_ms(&reply.headers, SystemTime::now()).unwrap_or(0);
        Err(Failure { why: status_text(reply.status, &reply.body), wait_ms })
    }
}

#[cfg(test)]
#[path = "strays_tests.rs"]
mod tests;
