//! What a running controller shows over HTTP: health, metrics, the status document, the console.

use crate::console::Console;
use crate::console::access::{Access, guard};
use crate::engine::{STEP_BOUNDS_US, SharedController, StepTimes};
use crate::status::StatusDocument;
use axum::Router;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::serve::Listener;
use control::Controller;
use control::budget::Level;
use control::gates::DELAY_BOUNDS_MS;
use edge::clock::Clock;
use edge::notice::NoticeSink;
use model::report::State;
use model::world::Kind;
use std::fmt::{Debug, Write as _};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use tokio_util::sync::CancellationToken;

const METRICS_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

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
            .route("/metrics", get(async move || metrics.metrics()))
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

    fn metrics(&self) -> Response {
        let now_ms = self.clock.now_ms();
        let text = self.controller.get().map_or_else(
            || "# EOF\n".into(),
            |controller| controller.look(|c| metrics(c, &controller.step_times(), now_ms)),
        );
        ([(CONTENT_TYPE, METRICS_TYPE)], text).into_response()
    }

    fn status(&self) -> Response {
        let Some(controller) = self.controller.get() else {
            let why = self.starting.lock().unwrap_or_else(PoisonError::into_inner).clone();
            return (StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")).into_response();
        };
        let now_ms = self.clock.now_ms();
        let document = controller.look(|c| StatusDocument::of_controller(c, now_ms));
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

fn metrics(controller: &Controller, steps: &StepTimes, now_ms: u64) -> String {
    let counts = controller.counts();
    let mut text = String::new();
    let counters = [
        ("azure_writes", "Azure writes sent", counts.writes),
        ("azure_reads", "Azure reads sent, polls included", counts.reads),
        ("azure_failures", "Azure writes that failed", counts.failures),
        ("kubernetes_writes", "Kubernetes writes sent, Events not included", counts.kubernetes),
        ("plans", "Plans made", counts.plans),
        (
            "drift_noticed",
            "Fields of ours in Azure that somebody else changed",
            controller.drift_noticed(),
        ),
    ];
    for (name, help, value) in counters {
        // Writing to a String cannot fail.
        let _ = write!(
            text,
            "# TYPE ballast_{name} counter\n# HELP ballast_{name} {help}.\n\
             ballast_{name}_total {value}\n"
        );
    }
    text.push_str("# TYPE ballast_services gauge\n# HELP ballast_services Services by state.\n");
    let services = &controller.report().services;
    for (state, name) in [
        (State::Programmed, "programmed"),
        (State::Waiting, "waiting"),
        (State::Refused, "refused"),
        (State::Removing, "removing"),
    ] {
        let count = services.values().filter(|s| s.state == state).count();
        let _ = writeln!(text, "ballast_services{{state=\"{name}\"}} {count}");
    }
    let _ = write!(
        text,
        "# TYPE ballast_drift_fields gauge\n\
         # HELP ballast_drift_fields Fields of ours in Azure that are not as we left them now.\n\
         ballast_drift_fields {}\n",
        controller.drift_fields()
    );
    let what = "Taking in what happened, planning and making requests";
    let us = (&steps.counts[..], &STEP_BOUNDS_US[..], steps.sum_us);
    histogram(&mut text, "ballast_step_seconds", what, us, 1_000_000);
    gate_metrics(&mut text, controller);
    budget(&mut text, controller, now_ms);
    text.push_str("# EOF\n");
    text
}

/// Counts a bucket, bounds and sum; `unit` of them are a second.
fn histogram(
    text: &mut String,
    name: &str,
    help: &str,
    (counts, bounds, sum): (&[u64], &[u64], u64),
    unit: u64,
) {
    let _ = write!(text, "# TYPE {name} histogram\n# UNIT {name} seconds\n# HELP {name} {help}.\n");
    let digits = unit.ilog10() as usize;
    let seconds = |n: u64| format!("{}.{:0digits$}", n / unit, n % unit);
    let mut count = 0;
    for (slot, own) in counts.iter().enumerate() {
        count += own;
        let bound = bounds.get(slot).map_or_else(|| "+Inf".to_owned(), |bound| seconds(*bound));
        let _ = writeln!(text, "{name}_bucket{{le=\"{bound}\"}} {count}");
    }
    let _ = write!(text, "{name}_count {count}\n{name}_sum {}\n", seconds(sum));
}

/// How long Pods waited for our readiness gate after all else held.
fn gate_metrics(text: &mut String, controller: &Controller) {
    let gates = controller.gates();
    let delays = gates.delays();
    let what = "From ready but for our gate until the gateway lists the Pod";
    let ms = (&delays.counts[..], &DELAY_BOUNDS_MS[..], delays.sum_ms);
    histogram(text, "ballast_readiness_gate_delay_seconds", what, ms, 1_000);
    let _ = write!(
        text,
        "# TYPE ballast_readiness_gate_timeouts counter\n\
         # HELP ballast_readiness_gate_timeouts Pods let through because time was over.\n\
         ballast_readiness_gate_timeouts_total {}\n\
         # TYPE ballast_readiness_gates_waiting gauge\n\
         # HELP ballast_readiness_gates_waiting Pods that wait for nothing but our gate.\n\
         ballast_readiness_gates_waiting {}\n",
        gates.timeouts(),
        gates.waiting()
    );
}

/// What is left of Azure's limits, and how many writes wait for each.
fn budget(text: &mut String, controller: &Controller, now_ms: u64) {
    type Gauge<'a> = (&'a str, &'a str, &'a str, &'a dyn Fn(&Level) -> u64);
    let levels: Vec<Level> = controller.budget().levels(now_ms).collect();
    let waiting = controller.waiting_for_budget();
    let gauges: [Gauge<'_>; 4] = [
        ("budget_left", "gauge", "Calls that Azure's limit lets through now", &|l| l.left),
        (
            "budget_share_percent",
            "gauge",
            "Part of the published limit that is believed to be left to this process",
            &|l| l.share_percent,
        ),
        ("budget_waiting", "gauge", "Writes that wait for this limit", &|l| {
            waiting.get(&l.limit).map_or(0, |waiting| waiting.writes)
        }),
        ("budget_refusals", "counter", "Calls that Azure refused as too many", &|l| l.throttled),
    ];
    for (name, kind, help, value) in gauges {
        // Writing to a String cannot fail.
        let _ = write!(text, "# TYPE ballast_{name} {kind}\n# HELP ballast_{name} {help}.\n");
        let suffix = if kind == "counter" { "_total" } else { "" };
        for level in &levels {
            let (limit, subscription) = (level.limit.kind.label(), &level.limit.subscription);
            let value = value(level);
            let _ = writeln!(
                text,
                "ballast_{name}{suffix}{{limit=\"{limit}\",subscription=\"{subscription}\"}} \
                 {value}"
            );
        }
    }
}
