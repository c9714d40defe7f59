//! The web console: what a running controller knows, as pages for a browser.

pub mod access;
mod kept;
mod live;
mod seen;
mod views;

use crate::history::Past;
use crate::shared::SharedController;
use ::console::history::{History, Limits};
use ::console::page::{
    self, FindingsQuery, OverviewQuery, PlanQuery, ServiceQuery, ServiceView, Sort, TimelineQuery,
    TopologyQuery, Window,
};
use ::console::view::Head;
use axum::Router;
use axum::extract::{Path, Query, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use edge::clock::Clock;
use edge::notice::NoticeSink;
use kept::Kept;
use model::ServiceName;
use model::report::State as ServiceState;
use seen::Seen;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use tokio::sync::Semaphore;
use tokio::sync::broadcast::error::RecvError;
use tokio_util::sync::CancellationToken;

/// Browsers that may listen at the same time.
const LISTENERS: usize = 64;

/// What every page is sent with.
const HEADERS: [(HeaderName, &str); 4] = [
    (CONTENT_SECURITY_POLICY, ::console::CONTENT_SECURITY_POLICY),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (REFERRER_POLICY, "no-referrer"),
    (CACHE_CONTROL, "no-store"),
];

/// The pages of one process.
#[derive(Clone)]
pub struct Console {
    clock: Clock,
    controller: Arc<OnceLock<SharedController>>,
    starting: Arc<Mutex<String>>,
    history: Arc<Mutex<History>>,
    kept: Arc<Kept>,
    past: Arc<OnceLock<Past>>,
    listeners: Arc<Semaphore>,
    stop: CancellationToken,
}

type Asked = Query<BTreeMap<String, String>>;

impl Console {
    /// Pages over a controller that may still be about to start.
    #[must_use]
    pub fn new(
        clock: Clock,
        controller: Arc<OnceLock<SharedController>>,
        starting: Arc<Mutex<String>>,
        past: Arc<OnceLock<Past>>,
    ) -> Self {
        Self {
            clock,
            controller,
            starting,
            history: Arc::new(Mutex::new(History::new(Limits::default()))),
            kept: Arc::default(),
            past,
            listeners: Arc::new(Semaphore::new(LISTENERS)),
            stop: CancellationToken::new(),
        }
    }

    /// Remembers what is said from now on.
    pub fn listen(&self, notices: &NoticeSink) {
        let (mut heard, history) = (notices.listen(), Arc::clone(&self.history));
        tokio::spawn(async move {
            loop {
                match heard.recv().await {
                    Ok(notice) => lock(&history).push(views::entry(notice)),
                    // The oldest ones are lost, as they will be for want of room.
                    Err(RecvError::Lagged(_)) => {}
                    Err(RecvError::Closed) => return,
                }
            }
        });
    }

    /// The routes of all pages, for as long as `stop` allows.
    pub fn routes(mut self, stop: CancellationToken) -> Router {
        self.stop = stop;
        Router::new()
            .route("/", get(overview))
            .route("/topology", get(topology))
            .route("/services/{namespace}/{name}", get(service))
            .route("/services/{namespace}/{name}/explained", get(explained))
            .route("/plan", get(plan))
            .route("/timeline", get(timeline))
            .route("/findings", get(findings))
            .route("/events", get(live::events))
            .route("/console.css", get(async || asset("text/css", ::console::STYLE)))
            .route("/console.js", get(async || asset("text/javascript", ::console::SCRIPT)))
            .route("/console.svg", get(async || asset("image/svg+xml", ::console::ICON)))
            .with_state(self)
    }

    /// Makes a page of what was seen; before there is a controller, a page that says so.
    async fn page<F>(&self, make: F) -> Response
    where
        F: FnOnce(&Self, &Arc<Seen>, &Head) -> Option<String> + Send + 'static,
    {
        let console = self.clone();
        // A page of a large cluster is some milliseconds of work: it holds up no connection.
        let made = tokio::task::spawn_blocking(move || {
            let now_ms = console.clock.now_ms();
            let Some(controller) = console.controller.get() else {
                let why = lock(&console.starting).clone();
                let text = page::message(&views::head(None, None, now_ms), "Starting", &why);
                return (StatusCode::SERVICE_UNAVAILABLE, text);
            };
            let seen = console.kept.see(controller, now_ms);
            let head = views::head(Some(&seen), controller.leader(), now_ms);
            match make(&console, &seen, &head) {
                Some(text) => (StatusCode::OK, text),
                None => {
                    let why = "There is no such Service of type LoadBalancer, or none any more.";
                    (StatusCode::NOT_FOUND, page::message(&head, "Not found", why))
                }
            }
        });
        match made.await {
            Ok((status, text)) => html(status, text),
            Err(e) => {
                tracing::error!("a page of the console cannot be made: {e}");
                StatusCode::INTERNAL_SERVER_ERROR.into_response()
            }
        }
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn html(status: StatusCode, text: String) -> Response {
    (status, HEADERS, [(CONTENT_TYPE, "text/html; charset=utf-8")], text).into_response()
}

fn asset(kind: &'static str, text: &'static str) -> Response {
    let kind = HeaderValue::from_str(&format!("{kind}; charset=utf-8"));
    // The kinds are literals that fit into a header.
    let kind = kind.unwrap_or(HeaderValue::from_static("text/plain"));
    (HEADERS, [(CONTENT_TYPE, kind)], text).into_response()
}

fn page_number(asked: &BTreeMap<String, String>) -> usize {
    part(asked, "page")
}

/// Which part of a list is asked for, from 0.
fn part(asked: &BTreeMap<String, String>, key: &str) -> usize {
    asked.get(key).and_then(|p| p.parse().ok()).unwrap_or(0)
}

/// A short text of a query: nobody searches with more.
fn text(asked: &BTreeMap<String, String>, key: &str) -> String {
    asked.get(key).map(|t| t.chars().take(1_000).collect()).unwrap_or_default()
}

async fn overview(State(console): State<Console>, Query(asked): Asked) -> Response {
    let state =
        asked.get("state").and_then(|s| ServiceState::ALL.into_iter().find(|i| i.word() == s));
    let sort = asked.get("sort").and_then(|s| Sort::ALL.into_iter().find(|i| i.word() == s));
    let query = OverviewQuery {
        wanted: text(&asked, "q"),
        state,
        namespace: text(&asked, "namespace"),
        sort: sort.unwrap_or_default(),
        page: page_number(&asked),
    };
    let make = move |_: &Console, seen: &Arc<Seen>, head: &Head| {
        Some(page::overview(head, &seen.snapshot, (seen.calls, &seen.budget), &query))
    };
    console.page(make).await
}

async fn topology(State(console): State<Console>, Query(asked): Asked) -> Response {
    let query = TopologyQuery {
        wanted: text(&asked, "q"),
        balancer: text(&asked, "balancer"),
        pool: text(&asked, "pool"),
        frontend: text(&asked, "frontend"),
        page: page_number(&asked),
        balancers: part(&asked, "balancers"),
        gateways: part(&asked, "gateways"),
        labels: part(&asked, "labels"),
    };
    let make = move |_: &Console, seen: &Arc<Seen>, head: &Head| {
        Some(page::topology(head, &seen.snapshot, &seen.world, &query))
    };
    console.page(make).await
}

async fn service(
    State(console): State<Console>,
    Path((namespace, name)): Path<(String, String)>,
    Query(asked): Asked,
) -> Response {
    let name = ServiceName::new(namespace, name);
    let query = ServiceQuery {
        backends: part(&asked, "backends"),
        rules: part(&asked, "rules"),
        writes: part(&asked, "writes"),
        entries: part(&asked, "entries"),
    };
    let make = move |console: &Console, seen: &Arc<Seen>, head: &Head| {
        let line = seen.snapshot.service(&name)?;
        let plan = console.kept.plan(seen);
        let history = lock(&console.history).clone();
        let calls = views::writes(seen, console.past.get());
        let (world, calls) = (&seen.world, calls.as_slice());
        let view = ServiceView { query, line, world, plan: &plan, history: &history, calls };
        Some(page::service(head, &view))
    };
    console.page(make).await
}

async fn explained(
    State(console): State<Console>,
    Path((namespace, name)): Path<(String, String)>,
) -> Response {
    let name = ServiceName::new(namespace, name);
    let make = move |console: &Console, seen: &Arc<Seen>, head: &Head| {
        let text = console.kept.explanation(seen, &name)?;
        Some(page::explained(head, &name, &text))
    };
    console.page(make).await
}

async fn plan(State(console): State<Console>, Query(asked): Asked) -> Response {
    let query = PlanQuery {
        id: text(&asked, "id"),
        page: page_number(&asked),
        writes: part(&asked, "writes"),
        lines: part(&asked, "lines"),
        services: part(&asked, "services"),
    };
    let make = move |console: &Console, seen: &Arc<Seen>, head: &Head| {
        Some(page::plan(head, &console.kept.plan(seen), &query))
    };
    console.page(make).await
}

async fn timeline(State(console): State<Console>, Query(asked): Asked) -> Response {
    let window = asked.get("span").and_then(|s| Window::ALL.into_iter().find(|i| i.word() == s));
    let query = TimelineQuery {
        write: text(&asked, "write"),
        window: window.unwrap_or_default(),
        page: page_number(&asked),
    };
    let make = move |console: &Console, seen: &Arc<Seen>, head: &Head| {
        Some(page::timeline(head, &views::writes(seen, console.past.get()), &query))
    };
    console.page(make).await
}

async fn findings(State(console): State<Console>, Query(asked): Asked) -> Response {
    let query = FindingsQuery { call: text(&asked, "call"), page: page_number(&asked) };
    let make = move |_: &Console, seen: &Arc<Seen>, head: &Head| {
        Some(page::findings(head, &seen.snapshot, &query))
    };
    console.page(make).await
}
