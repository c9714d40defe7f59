//! What a running controller shows over HTTP: health, metrics, the status document, the console.

use crate::console::Console;
use crate::console::access::{Access, guard};
use crate::history::{HistoryDocument, Past, Remembered};
use crate::listener::{self, Limits};
use crate::metrics;
use crate::metrics::Beside;
use crate::metrics::exposition::Format;
use crate::readiness::Line;
use crate::shared::SharedController;
use crate::shown::Shown;
use crate::status::{LeaderStatus, StatusDocument};
use axum::Router;
use axum::http::header::{ACCEPT, AGE, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::serve::Listener;
use bytes::Bytes;
use control::Controller;
use edge::clock::Clock;
use edge::notice::NoticeSink;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// What the pages look at: nothing but a reason until the controller runs.
#[derive(Clone)]
pub struct Pages {
    clock: Clock,
    controller: Arc<OnceLock<SharedController>>,
    starting: Arc<Mutex<String>>,
    /// The same for everybody: without ids.
    starting_brief: Arc<Mutex<&'static str>>,
    console: Console,
    kept: Arc<Kept>,
    limits: Limits,
    past: Arc<OnceLock<Past>>,
}

/// Pages as they were made last.
#[derive(Default)]
struct Kept {
    status: Shown,
    history: Shown,
    text: Shown,
    open_metrics: Shown,
}

impl Kept {
    fn metrics(&self, format: Format) -> &Shown {
        match format {
            Format::Text => &self.text,
            Format::OpenMetrics => &self.open_metrics,
        }
    }
}

impl Pages {
    /// Pages of a process that is about to start.
    #[must_use]
    pub fn new(clock: Clock) -> Self {
        let starting = Arc::new(Mutex::new("starting".to_owned()));
        let controller = Arc::default();
        let past = Arc::default();
        let (shared, why) = (Arc::clone(&controller), Arc::clone(&starting));
        let console = Console::new(clock, shared, why, Arc::clone(&past));
        let starting_brief = Arc::new(Mutex::new("starting"));
        let (kept, limits) = (Arc::default(), Limits::default());
        Self { clock, controller, starting, starting_brief, console, kept, limits, past }
    }

    /// Says why the controller does not run yet: `brief` to everybody, `why` to those who may read
    /// ids.
    pub fn say_starting(&self, brief: &'static str, why: &str) {
        *self.starting_brief.lock().unwrap_or_else(PoisonError::into_inner) = brief;
        why.clone_into(&mut self.starting.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// From now on this controller is shown, and what is said of it remembered; `past` is what was
    /// before it.
    pub fn show(&self, controller: SharedController, notices: &NoticeSink, past: Past) {
        // Only the first one counts, as for the controller.
        let past = self.past.get_or_init(|| past);
        self.console.listen(notices);
        let now_ms = self.clock.now_ms();
        controller.look(|c| {
            for format in [Format::Text, Format::OpenMetrics] {
                let beside = Beside::of(&controller);
                let page = metrics::of_controller(c, &beside, now_ms, format);
                self.kept.metrics(format).begin_with(page);
            }
            let mut document = StatusDocument::of_controller(c, now_ms);
            document.add_backends(c, controller.backends());
            let page = serde_json::to_string(&document);
            self.kept.status.begin_with(page.unwrap_or_default());
            let history = HistoryDocument::of(&Remembered::of(c), past, now_ms);
            self.kept.history.begin_with(serde_json::to_string(&history).unwrap_or_default());
        });
        // Only the first one counts; there is one a process.
        let _ = self.controller.set(controller);
    }

    /// Answers until stopped. Health and metrics are for everybody, the rest as `access` says.
    ///
    /// # Guarantees
    /// Health, metrics and status are answered while the controller is busy: /livez always, /readyz
    /// with what held after the last step, metrics and status as they were made last, with their
    /// age in seconds.
    pub async fn serve<L>(self, listener: L, access: Access, stop: CancellationToken)
    where
        L: Listener<Addr = SocketAddr>,
    {
        let limits = self.limits;
        let (healthy, alive) = (self.clone(), self.clone());
        let console = self.console.clone().routes(stop.clone());
        let (ready, metrics, status, history) = (self.clone(), self.clone(), self.clone(), self);
        let guarded = console
            .route("/status", get(async move || status.status().await))
            .route("/history", get(async move || history.history().await))
            .layer(from_fn_with_state(access, guard));
        let app = Router::new()
            .route("/healthz", get(async move || healthy.liveness()))
            .route("/livez", get(async move || alive.liveness()))
            .route("/readyz", get(async move || ready.readiness()))
            .route("/metrics", get(async move |headers: HeaderMap| metrics.metrics(&headers).await))
            .merge(guarded);
        listener::serve(listener, app, limits, stop).await;
    }

    /// Whether the process is worth keeping: it answers, and its loop, if it runs, comes round.
    fn liveness(&self) -> Response {
        match self.controller.get().and_then(SharedController::stuck) {
            None => "ok\n".into_response(),
            Some(since) => {
                let text = format!("the loop has not come round for {} s\n", since.as_secs());
                (StatusCode::SERVICE_UNAVAILABLE, text).into_response()
            }
        }
    }

    fn readiness(&self) -> Response {
        let Some(controller) = self.controller.get() else {
            let brief = *self.starting_brief.lock().unwrap_or_else(PoisonError::into_inner);
            return (StatusCode::SERVICE_UNAVAILABLE, format!("{brief}\n")).into_response();
        };
        let readiness = controller.readiness();
        let now_ms = self.clock.now_ms();
        let lines = |lines: &[Line]| -> String {
            lines.iter().map(|line| format!("{}\n", line.text(now_ms))).collect()
        };
        if !readiness.reasons.is_empty() {
            return (StatusCode::SERVICE_UNAVAILABLE, lines(&readiness.reasons)).into_response();
        }
        let mut text = format!("ok\n{}", lines(&readiness.details));
        if readiness.more > 0 {
            text.push_str(&format!("and {} more\n", readiness.more));
        }
        text.into_response()
    }

    async fn metrics(&self, headers: &HeaderMap) -> Response {
        let accept = headers.get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or("");
        let format = Format::accepted(accept);
        let content = [(CONTENT_TYPE, format.content_type())];
        let Some(controller) = self.controller.get() else {
            return (content, metrics::of_starting(format)).into_response();
        };
        let (beside, clock) = (Beside::of(controller), self.clock);
        let look = move |c: &Controller| metrics::of_controller(c, &beside, clock.now_ms(), format);
        let page = self.kept.metrics(format).make(controller, look, |page| page).await;
        answer(page, format.content_type())
    }

    async fn status(&self) -> Response {
        let Some(controller) = self.controller.get() else {
            let why = self.starting.lock().unwrap_or_else(PoisonError::into_inner).clone();
            return (StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")).into_response();
        };
        let (clock, backends) = (self.clock, controller.backends().cloned());
        let look = move |c: &Controller| {
            let mut document = StatusDocument::of_controller(c, clock.now_ms());
            document.add_backends(c, backends.as_ref());
            document
        };
        let write = |mut document: StatusDocument| {
            let now_ms = document.now_ms;
            document.leader = controller.leader().map(|leader| LeaderStatus::of(leader, now_ms));
            serde_json::to_string(&document).unwrap_or_default()
        };
        let page = self.kept.status.make(controller, look, write).await;
        answer(page, "application/json")
    }

    async fn history(&self) -> Response {
        let Some(controller) = self.controller.get() else {
            let why = self.starting.lock().unwrap_or_else(PoisonError::into_inner).clone();
            return (StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")).into_response();
        };
        let (past, now_ms) = (self.past.get().unwrap_or(&NO_PAST), self.clock.now_ms());
        let write = |seen: Remembered| {
            serde_json::to_string(&HistoryDocument::of(&seen, past, now_ms)).unwrap_or_default()
        };
        let page = self.kept.history.make(controller, Remembered::of, write).await;
        answer(page, "application/json")
    }
}

/// What the history is made of until the controller runs.
static NO_PAST: Past = Past { portal: None, earlier: Vec::new() };

/// A page and its age, which is there: one is made before the first step.
fn answer(page: Option<(Duration, Bytes)>, content_type: &'static str) -> Response {
    let Some((age, page)) = page else {
        return (StatusCode::SERVICE_UNAVAILABLE, "the first step is under way\n").into_response();
    };
    let content_type = HeaderValue::from_static(content_type);
    let headers = [(CONTENT_TYPE, content_type), (AGE, HeaderValue::from(age.as_secs()))];
    (headers, page).into_response()
}

#[cfg(test)]
mod tests;
