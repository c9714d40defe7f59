//! Lists and watches one kind: LIST in pages, then WATCH with bookmarks, for ever.
//!
//! # Guarantees
//! Every list is framed by `ListBegin` and `ListEnd`; a list that breaks off is begun anew. A list
//! in one piece is never in memory as a whole. After a cut the watch goes on from the last revision
//! seen. When the server refuses or ends it with a status, or sends what is no event, the kind is
//! listed again, but for 429, which says nothing of the revision. An object that cannot be read is
//! logged and left out: one odd object never stops the others.
//!
//! # Errors
//! Nothing ends a watch but its stop: failures are logged and tried again with growing pauses.

use super::items::Items;
use super::lines::Lines;
use super::sender::{exchange, status_text};
use super::strays::Strays;
use super::wire::{Frame, read_frame, read_page};
use crate::credential::entra::form;
use crate::random::Pause;
use crate::retry_after::retry_after_ms;
use crate::vital::Vital;
use crate::web::chain;
use bytes::Bytes;
use control::Event;
use http::header::{ACCEPT, ACCEPT_ENCODING};
use http::{Request, Response, StatusCode};
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use model::world::Kind;
use observe::KubernetesFact;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Objects a page.
const PAGE: &str = "500";
/// EndpointSlices a page: one of a hundred endpoints takes 40 KB.
const PAGE_OF_SLICES: &str = "100";
/// How long a page may take.
const PAGE_LIMIT: Duration = Duration::from_secs(60);
/// How long the server keeps one watch.
const WATCH_S: u64 = 240;
/// How long a watch may be silent until it is opened anew. A server that lives sends a bookmark
/// each minute; if its machine is gone, nothing comes, and nothing closes the connection.
const SILENCE: Duration = Duration::from_secs(90);
/// A watch that ends sooner without a word is taken for a failure.
const TOO_SHORT: Duration = Duration::from_secs(5);

/// What happened to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It exists like this.
    Present,
    /// It is gone; this is its last state.
    Gone,
}

/// What a watch makes of objects, and how it tells it.
pub trait Told: Sized + Send + 'static {
    /// What the receiver takes.
    type Event: Send + 'static;
    /// What is watched.
    type Kind: Copy + fmt::Debug + Send + Sync + 'static;

    /// A list of this kind begins.
    fn begin(kind: Self::Kind) -> Self;
    /// It is complete.
    fn end(kind: Self::Kind, revision: &str) -> Self;
    /// As the receiver takes it.
    fn event(self) -> Self::Event;
    /// How a list is asked for.
    fn list(_kind: Self::Kind) -> Listing {
        Listing::Pages(PAGE)
    }
}

/// How a list is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listing {
    /// The newest state, with so many objects a page.
    Pages(&'static str),
    /// What the server has in memory, in one piece: for those of whom there is one on each node.
    /// The watch goes on from there, so that what is old in it is soon put right.
    Cached,
}

impl Told for KubernetesFact {
    type Event = Event;
    type Kind = Kind;

    fn begin(kind: Kind) -> Self {
        Self::ListBegin(kind)
    }

    fn end(kind: Kind, revision: &str) -> Self {
        Self::ListEnd(kind, Some(revision.into()))
    }

    fn event(self) -> Event {
        Event::Kubernetes(self)
    }

    fn list(kind: Kind) -> Listing {
        Listing::Pages(if kind == Kind::EndpointSlices { PAGE_OF_SLICES } else { PAGE })
    }
}

/// Reads an object's JSON; the error says what is wrong with it.
pub type Read<F = KubernetesFact> = Arc<dyn Fn(Change, &str) -> Result<F, String> + Send + Sync>;

/// What is watched.
#[derive(Clone)]
pub struct Source<F: Told = KubernetesFact> {
    /// Kind.
    pub kind: F::Kind,
    /// Path of the collection: `/api/v1/services`.
    pub path: String,
    /// Label selector, for the server.
    pub selector: Option<String>,
    /// Field selector, for the server.
    pub fields: Option<String>,
    /// Makes facts.
    pub read: Read<F>,
}

impl<F: Told> fmt::Debug for Source<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source").field("kind", &self.kind).field("path", &self.path).finish()
    }
}

/// Pauses between tries.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// The first.
    pub first_ms: u64,
    /// The longest.
    pub cap_ms: u64,
}

impl Default for Pace {
    fn default() -> Self {
        Self { first_ms: 500, cap_ms: 30_000 }
    }
}

/// A watch of one kind.
pub struct Watch<F: Told = KubernetesFact> {
    client: Client,
    source: Source<F>,
    events: mpsc::Sender<F::Event>,
    pause: Pause,
    silence: Duration,
}

/// Names and values of a query.
type Query<'a> = Vec<(&'a str, &'a str)>;

/// Why a list or a watch came to an end.
enum End {
    /// The server closed it in good order; the revision to go on from.
    Closed(String),
    /// It broke; go on from there.
    Broken { revision: String, why: String, wait_ms: u64 },
    /// The server gives nothing readable from the revision on: list again.
    Useless { why: String, wait_ms: u64 },
    /// Nobody listens any more.
    Deaf,
}

/// Why a list failed.
enum ListFailure {
    Failed { why: String, wait_ms: u64 },
    Deaf,
}

impl<F: Told> Watch<F> {
    /// A watch that sends what it sees to `events`.
    #[must_use]
    pub fn new(
        client: Client,
        source: Source<F>,
        events: mpsc::Sender<F::Event>,
        pace: Pace,
    ) -> Self {
        let pause = Pause::new(pace.first_ms, pace.cap_ms);
        Self { client, source, events, pause, silence: SILENCE }
    }

    /// Lists and watches until stopped, or until nobody listens.
    pub async fn run(mut self, stop: CancellationToken) {
        let work = self.go_on();
        tokio::select! {
            () = stop.cancelled() => {}
            () = work => {}
        }
    }

    async fn go_on(&mut self) {
        let mut revision: Option<String> = None;
        loop {
            let from = match revision.take() {
                Some(from) => from,
                None => match self.list().await {
                    Ok(listed) => listed,
                    Err(ListFailure::Deaf) => return,
                    Err(ListFailure::Failed { why, wait_ms }) => {
                        self.wait(&format!("listing failed: {why}"), wait_ms).await;
                        continue;
                    }
                },
            };
            match self.watch(from).await {
                End::Closed(seen) => revision = Some(seen),
                End::Broken { revision: seen, why, wait_ms } => {
                    self.wait(&format!("the watch ended: {why}"), wait_ms).await;
                    revision = Some(seen);
                }
                End::Useless { why, wait_ms } => {
                    self.wait(&format!("the watch ended, listing again: {why}"), wait_ms).await;
                }
                End::Deaf => return,
            }
        }
    }

    async fn wait(&mut self, why: &str, floor_ms: u64) {
        let ms = self.pause.next_ms(floor_ms);
        tracing::warn!(kind = ?self.source.kind, path = %self.source.path, wait_ms = ms, "{why}");
        tokio::time::sleep(Duration::from_millis(ms)).await;
    }

    async fn list(&mut self) -> Result<String, ListFailure> {
        match F::list(self.source.kind) {
            Listing::Pages(limit) => self.list_pages(limit).await,
            Listing::Cached => self.list_whole().await,
        }
    }

    /// Hands on each object as it comes: there may be no room for all of them. A server that cuts
    /// the list up says so nevertheless: what has not come yet must not pass for gone.
    async fn list_whole(&mut self) -> Result<String, ListFailure> {
        let failed = |why: String| ListFailure::Failed { why, wait_ms: 0 };
        let mut next: Option<String> = None;
        loop {
            let query = match &next {
                Some(next) => vec![("continue", &**next)],
                None => vec![("resourceVersion", "0")],
            };
            let mut body = self.open(query).await?;
            if next.is_none() {
                self.tell(F::begin(self.source.kind)).await?;
            }
            let mut items = Items::default();
            while let Some(piece) = next_piece(&mut body).await.map_err(failed)? {
                for object in items.add(&piece).map_err(failed)? {
                    if let Some(fact) = self.read(Change::Present, &object) {
                        self.tell(fact).await?;
                    }
                }
            }
            let page = read_page(items.rest()).map_err(failed)?;
            next = page.next;
            if next.is_none() {
                self.tell(F::end(self.source.kind, &page.revision)).await?;
                return Ok(page.revision);
            }
        }
    }

    /// The answer to a list, which is about to come.
    async fn open<'a>(&'a self, query: Query<'a>) -> Result<Body, ListFailure> {
        let failed = |why: String| ListFailure::Failed { why, wait_ms: 0 };
        let request = self.request(query).map_err(|e| failed(e.to_string()))?;
        let reply = match tokio::time::timeout(PAGE_LIMIT, self.client.send(request)).await {
            Ok(Ok(reply)) => reply,
            Ok(Err(e)) => return Err(failed(chain(&e))),
            Err(_) => return Err(failed("no answer".into())),
        };
        if !reply.status().is_success() {
            let (why, wait_ms) = refusal(reply).await;
            return Err(ListFailure::Failed { why, wait_ms });
        }
        Ok(reply.into_body())
    }

    async fn list_pages(&mut self, limit: &str) -> Result<String, ListFailure> {
        let mut next: Option<String> = None;
        loop {
            let mut query = vec![("limit", limit)];
            if let Some(next) = &next {
                query.push(("continue", next));
            }
            let body = self.page(query).await?;
            let page = read_page(&body).map_err(|why| ListFailure::Failed { why, wait_ms: 0 })?;
            if next.is_none() {
                self.tell(F::begin(self.source.kind)).await?;
            }
            for item in page.items {
                if let Some(fact) = self.read(Change::Present, item) {
                    self.tell(fact).await?;
                }
            }
            next = page.next;
            if next.is_none() {
                self.tell(F::end(self.source.kind, &page.revision)).await?;
                return Ok(page.revision);
            }
        }
    }

    async fn page<'a>(&'a self, query: Query<'a>) -> Result<Bytes, ListFailure> {
        let failed = |why: String| ListFailure::Failed { why, wait_ms: 0 };
        let request = self.request(query).map_err(|e| failed(e.to_string()))?;
        let reply = exchange(&self.client, request, PAGE_LIMIT).await.map_err(failed)?;
        if reply.status.is_success() {
            return Ok(reply.body);
        }
        let wait_ms = retry_after_ms(&reply.headers, SystemTime::now()).unwrap_or(0);
        Err(ListFailure::Failed { why: status_text(reply.status, &reply.body), wait_ms })
    }

    async fn watch(&mut self, from: String) -> End {
        let broken = |revision: String, why: String| End::Broken { revision, why, wait_ms: 0 };
        let seconds = WATCH_S.to_string();
        let query = vec![
            ("watch", "true"),
            ("allowWatchBookmarks", "true"),
            ("resourceVersion", &from),
            ("timeoutSeconds", &seconds),
        ];
        let request = match self.request(query) {
            Ok(request) => request,
            Err(e) => return broken(from, e.to_string()),
        };
        let reply = match tokio::time::timeout(PAGE_LIMIT, self.client.send(request)).await {
            Ok(Ok(reply)) => reply,
            Ok(Err(e)) => return broken(from, chain(&e)),
            Err(_) => return broken(from, "no answer".into()),
        };
        let status = reply.status();
        if status.is_success() {
            return self.follow(from, Lines::new(reply.into_body())).await;
        }
        let (why, wait_ms) = refusal(reply).await;
        ended_by(status.as_u16(), why, wait_ms, from)
    }

    async fn follow(&mut self, mut revision: String, mut lines: Lines<Body>) -> End {
        let began = Instant::now();
        let mut quiet = true;
        loop {
            let line = match tokio::time::timeout(self.silence, lines.next()).await {
                Ok(Ok(Some(line))) => line,
                // A server that closes at once without a word would otherwise be asked in a loop.
                Ok(Ok(None)) if quiet && began.elapsed() < TOO_SHORT => {
                    let why = "it was closed before anything came".to_string();
                    return End::Broken { revision, why, wait_ms: 0 };
                }
                Ok(Ok(None)) => return End::Closed(revision),
                Ok(Err(why)) => return End::Broken { revision, why, wait_ms: 0 },
                // From a server without bookmarks this is no failure: the next request tells.
                Err(_) => return End::Closed(revision),
            };
            let seen = match read_frame(&line) {
                Ok(Frame::Object { change, object, revision: seen }) => {
                    if let Some(fact) = self.read(change, object)
                        && self.tell(fact).await.is_err()
                    {
                        return End::Deaf;
                    }
                    seen
                }
                Ok(Frame::Bookmark { revision: seen }) => seen,
                Ok(Frame::Ended { code, message }) => {
                    return ended_by(code, format!("HTTP {code}: {message}"), 0, revision);
                }
                Err(why) => return End::Useless { why, wait_ms: 0 },
            };
            if let Some(seen) = seen {
                revision = seen;
            }
            quiet = false;
            self.pause.reset();
        }
    }

    fn request<'a>(&'a self, mut query: Query<'a>) -> Result<Request<Body>, http::Error> {
        if let Some(selector) = &self.source.selector {
            query.push(("labelSelector", selector));
        }
        if let Some(fields) = &self.source.fields {
            query.push(("fieldSelector", fields));
        }
        // A compressed stream holds events back.
        Request::get(format!("{}?{}", self.source.path, form(&query)))
            .header(ACCEPT, "application/json")
            .header(ACCEPT_ENCODING, "identity")
            .body(Body::empty())
    }

    fn read(&self, change: Change, object: &str) -> Option<F> {
        match (self.source.read)(change, object) {
            Ok(fact) => Some(fact),
            Err(e) => {
                let kind = self.source.kind;
                tracing::warn!(?kind, "an object cannot be read and is left out: {e}");
                None
            }
        }
    }

    async fn tell(&self, fact: F) -> Result<(), ListFailure> {
        self.events.send(fact.event()).await.map_err(|_| ListFailure::Deaf)
    }
}

/// Starts a watch a source. The tasks end when stopped.
pub fn watch_all(
    client: &Client,
    sources: Vec<Source>,
    events: &mpsc::Sender<Event>,
    stop: &CancellationToken,
    tasks: &mut Vital,
) {
    for source in sources {
        if source.kind == Kind::Pods {
            let (client, source) = (client.clone(), source.clone());
            let strays = Strays::new(client, source, events.clone(), Pace::default());
            tasks.spawn("the search for Pods without their label", strays.run(stop.clone()));
        }
        let name = format!("the watch of {:?}", source.kind);
        let watch = Watch::new(client.clone(), source, events.clone(), Pace::default());
        tasks.spawn(name, watch.run(stop.clone()));
    }
}

/// Why the server refuses, and for how long it wants to be left alone.
async fn refusal(reply: Response<Body>) -> (String, u64) {
    let status = reply.status();
    let wait_ms = retry_after_ms(reply.headers(), SystemTime::now()).unwrap_or(0);
    let body = tokio::time::timeout(PAGE_LIMIT, reply.into_body().collect_bytes()).await;
    let body = body.ok().and_then(Result::ok).unwrap_or_default();
    (status_text(status, &body), wait_ms)
}

/// What comes next of an answer; `None` at its end.
async fn next_piece(body: &mut Body) -> Result<Option<Bytes>, String> {
    loop {
        let frame = tokio::time::timeout(PAGE_LIMIT, body.frame()).await;
        let frame = frame.map_err(|_| "the answer stands still".to_owned())?;
        let Some(frame) = frame else { return Ok(None) };
        let frame = frame.map_err(|e| format!("the answer broke off: {}", chain(&e)))?;
        if let Ok(piece) = frame.into_data() {
            return Ok(Some(piece));
        }
    }
}

/// What follows from a status: it may come again for as long as a watch goes on from the same
/// revision, as when the server cannot decode one change after it. Only 429 speaks of the server's
/// load alone. client-go's reflector (k8s.io/client-go/tools/cache) decides so, too.
fn ended_by(code: u16, why: String, wait_ms: u64, revision: String) -> End {
    if code == StatusCode::TOO_MANY_REQUESTS.as_u16() {
        return End::Broken { revision, why, wait_ms };
    }
    End::Useless { why, wait_ms }
}

#[cfg(test)]
#[path = "watch_tests.rs"]
mod tests;
