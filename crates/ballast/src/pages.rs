//! What a running controller shows over HTTP: health, metrics, the status document, the console.

use crate::console::Console;
use crate::console::access::{Access, guard};
use crate::engine::SharedController;
use crate::metrics;
use crate::metrics::exposition::Format;
use crate::status::{LeaderStatus, StatusDocument};
use axum::Router;
use axum::http::header::{ACCEPT, CONTENT_TYPE};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::serve::Listener;
use control::Controller;
use edge::clock::Clock;
use edge::notice::NoticeSink;
use model::world::Kind;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use tokio_util::sync::CancellationToken;

/// What the pages look at: nothing but a reason until the controller runs.
#[derive(Clone)]
pub struct Pages {
    clock: Clock,
    controller: Arc<OnceLock<SharedController>>,
    starting: Arc<Mutex<String>>,
    console: Console,
}

impl Pages {
    /// Pages of a process that is about to start.
    #[must_use]
    pub fn new(clock: Clock) -> Self {
        let starting = Arc::new(Mutex::new("starting".to_owned()));
        let controller = Arc::default();
        let console = Console::new(clock, Arc::clone(&controller), Arc::clone(&starting));
        Self { clock, controller, starting, console }
    }

    /// Says why the controller does not run yet.
    pub fn say_starting(&self, why: &str) {
        why.clone_into(&mut self.starting.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// From now on this controller is shown, and what is said of it remembered.
    pub fn show(&self, controller: SharedController, notices: &NoticeSink) {
        self.console.listen(notices);
        // Only the first one counts; there is one a process.
        let _ = self.controller.set(controller);
    }

    /// Answers until stopped. Health and metrics are for everybody, the rest as `access` says.
    pub async fn serve<L>(self, listener: L, access: Access, stop: CancellationToken)
    where
        L: Listener,
        L::Addr: Debug,
    {
        let console = self.console.clone().routes(stop.clone());
        let (ready, metrics, status) = (self.clone(), self.clone(), self);
        let guarded = console
            .route("/status", get(async move || status.status()))
            .layer(from_fn_with_state(access, guard));
        let app = Router::new()
            .route("/healthz", get(async || "ok\n"))
            .route("/livez", get(async || "ok\n"))
            .route("/readyz", get(async move || ready.readiness()))
            .route("/metrics", get(async move |headers: HeaderMap| metrics.metrics(&headers)))
            .merge(guarded);
        let served = axum::serve(listener, app)
            .with_graceful_shutdown(async move { stop.cancelled().await })
            .await;
        if let Err(e) = served {
            tracing::error!("health and metrics are served no more: {e}");
        }
    }

    fn readiness(&self) -> Response {
        let reasons = match self.controller.get() {
            Some(controller) => controller.look(unready),
            None => vec![self.starting.lock().unwrap_or_else(PoisonError::into_inner).clone()],
        };
        if reasons.is_empty() {
            return "ok\n".into_response();
        }
        let text: String = reasons.iter().map(|r| format!("{r}\n")).collect();
        (StatusCode::SERVICE_UNAVAILABLE, text).into_response()
    }

    fn metrics(&self, headers: &HeaderMap) -> Response {
        let accept = headers.get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or("");
        let format = Format::accepted(accept);
        let text = match self.controller.get() {
            None => metrics::of_starting(format),
            Some(controller) => {
                let (steps_us, now_ms) = (controller.step_times_us(), self.clock.now_ms());
                controller.look(|c| metrics::of_controller(c, &steps_us, now_ms, format))
            }
        };
        ([(CONTENT_TYPE, format.content_type())], text).into_response()
    }

    fn status(&self) -> Response {
        let Some(controller) = self.controller.get() else {
            let why = self.starting.lock().unwrap_or_else(PoisonError::into_inner).clone();
            return (StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")).into_response();
        };
        let now_ms = self.clock.now_ms();
        let mut document = controller.look(|c| StatusDocument::of_controller(c, now_ms));
        document.leader = controller.leader().map(|leader| LeaderStatus::of(leader, now_ms));
        let json = [(CONTENT_TYPE, "application/json")];
        match serde_json::to_string(&document) {
            Ok(text) => (json, text).into_response(),
            Err(e) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{e}\n")).into_response(),
        }
    }
}

/// Why a controller is of no use yet, one line each.
#[must_use]
pub fn unready(controller: &Controller) -> Vec<String> {
    let complete = &controller.world().kubernetes.complete;
    let mut reasons: Vec<String> = crate::engine::kinds(controller.policy())
        .iter()
        .filter(|kind| !complete.contains(kind))
        .map(|kind| format!("{} are not listed yet", plural(*kind)))
        .collect();
    let failed = controller.unread().filter(|(need, ..)| controller.report().needs.contains(need));
    reasons.extend(failed.map(|(need, why, _)| format!("{need} cannot be read: {why}")));
    let findings = controller.report().findings.iter();
    let frozen = findings.filter(|finding| finding.rule == plan::OTHER_LAYOUT_STANDS);
    reasons.extend(frozen.map(ToString::to_string));
    reasons
}

/// The kind's name for people.
#[must_use]
pub fn plural(kind: Kind) -> &'static str {
    match kind {
        Kind::Services => "Services",
        Kind::Nodes => "Nodes",
        Kind::EndpointSlices => "EndpointSlices",
        Kind::Pods => "Pods",
        Kind::GatedPods => "Pods with our readiness gate",
        Kind::Namespaces => "Namespaces",
    }
}
