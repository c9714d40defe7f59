//! What `/metrics` exports.

mod budget;
pub mod exposition;
mod process;
pub mod table;
mod trouble;

use crate::backends::{BackendHealth, is_usual_of};
use crate::readiness::Readiness;
use crate::shared::{Proxies, SharedController};
use control::{ChangeKind, Controller, Histogram, Leadership, Outcome, ResourceKind};
use exposition::{Exposition, Format, Scale};
use health::Verdict;
use model::ObstacleKind;
use model::ProbeState;
use model::report::{Finding, Severity, State};
use std::collections::{BTreeMap, BTreeSet};

/// What is known of a process that has no controller yet.
#[must_use]
pub fn of_starting(format: Format) -> String {
    let mut exposition = Exposition::new(format);
    build(&mut exposition);
    exposition.add(&table::READY, &[], 0);
    exposition.add(&table::LEADER, &[], 0);
    process::add(&mut exposition);
    exposition.finish()
}

/// Metrics of the process around a controller.
#[derive(Clone, Debug)]
pub struct Beside {
    /// How long its steps took.
    steps_us: Histogram,
    /// What agents tell of the service proxies.
    proxies: Proxies,
    /// What health probes find, where that is read.
    backends: Option<BackendHealth>,
}

impl Beside {
    /// As it stands now.
    #[must_use]
    pub fn of(controller: &SharedController) -> Self {
        let backends = controller.backends().cloned();
        Self { steps_us: controller.step_times_us(), proxies: controller.proxies(), backends }
    }
}

/// All metrics of a controller.
#[must_use]
pub fn of_controller(
    controller: &Controller,
    beside: &Beside,
    now_ms: u64,
    format: Format,
) -> String {
    let mut exposition = Exposition::new(format);
    build(&mut exposition);
    exposition.add(&table::READY, &[], u8::from(Readiness::of(controller).reasons.is_empty()));
    let leads = controller.leadership() == Leadership::Held;
    exposition.add(&table::LEADER, &[], u8::from(leads));
    latencies(&mut exposition, controller);
    services(&mut exposition, controller, now_ms);
    trouble::add(&mut exposition, controller, now_ms);
    if let Some(backends) = &beside.backends {
        of_backends(&mut exposition, controller, backends, now_ms);
    }
    azure(&mut exposition, controller);
    budget::add(&mut exposition, controller, now_ms);
    exposition.add(&table::DRIFT_FIELDS, &[], controller.drift_fields());
    exposition.add(&table::DRIFT_NOTICED, &[], controller.drift_noticed());
    let counts = controller.counts();
    exposition.add(&table::KUBERNETES, &[], counts.kubernetes);
    exposition.add(&table::PLANS, &[], counts.plans);
    exposition.add_histogram(&table::STEP, &[], &beside.steps_us, Scale::Microseconds);
    let gates = controller.gates();
    exposition.add_histogram(&table::GATE_DELAY, &[], gates.delays(), Scale::Milliseconds);
    exposition.add(&table::GATE_TIMEOUTS, &[], gates.timeouts());
    exposition.add(&table::GATES_WAITING, &[], gates.waiting());
    exposition.add(&table::PROXIES_ILL, &[], beside.proxies.ill);
    let together = beside.proxies.verdict == Verdict::Together;
    exposition.add(&table::PROXIES_MAJORITY, &[], u8::from(together));
    process::add(&mut exposition);
    exposition.finish()
}

/// The program.
pub(crate) fn build(exposition: &mut Exposition) {
    exposition.add(&table::BUILD, &[("version", env!("CARGO_PKG_VERSION"))], 1);
}

/// The process.
pub(crate) fn process(exposition: &mut Exposition) {
    process::add(exposition);
}

fn latencies(exposition: &mut Exposition, controller: &Controller) {
    let latencies = controller.latencies();
    for (kind, histogram) in latencies.measured() {
        let labels = [("kind", kind.name())];
        exposition.add_histogram(&table::LATENCY, &labels, histogram, Scale::Milliseconds);
    }
    for kind in ChangeKind::ALL {
        exposition.add(&table::PENDING, &[("kind", kind.name())], latencies.pending(kind));
    }
}

fn services(exposition: &mut Exposition, controller: &Controller, now_ms: u64) {
    let report = controller.report_with_budget();
    let states = State::ALL.map(|state| (state, state.word()));
    let of = |state: State| report.services.iter().filter(move |(_, s)| s.state == state);
    for (state, name) in states {
        exposition.add(&table::SERVICES, &[("state", name)], of(state).count());
    }
    let mut waits: BTreeMap<&str, usize> = REASONS.iter().map(|reason| (*reason, 0)).collect();
    for service in report.services.values() {
        let reasons: BTreeSet<&str> = service.waits.iter().map(|wait| wait.reason()).collect();
        for reason in reasons {
            *waits.entry(reason).or_default() += 1;
        }
    }
    for reason in REASONS {
        exposition.add(&table::WAITS, &[("reason", reason)], waits[reason]);
    }
    for (state, name) in states.into_iter().filter(|(state, _)| is_on_its_way(*state)) {
        let since_ms = of(state).filter_map(|(uid, _)| controller.since_ms(uid)).min();
        let longest_ms = since_ms.map_or(0, |since| now_ms.saturating_sub(since));
        exposition.add(&table::LONGEST_WAIT, &[("state", name)], longest_ms / 1_000);
    }
    exposition.add(&table::REJECTED, &[], controller.world().holds.len());
    let mut obstacles: BTreeMap<ObstacleKind, usize> = BTreeMap::new();
    for obstacle in report.in_the_way() {
        *obstacles.entry(obstacle.kind).or_default() += 1;
    }
    for kind in ObstacleKind::ALL {
        let count = obstacles.get(&kind).copied().unwrap_or_default();
        exposition.add(&table::OBSTACLES, &[("kind", kind.word())], count);
    }
    let mut findings: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    let of_services = report.services.values().flat_map(|service| &service.findings);
    let all = of_services.chain(report.pods.values().flatten()).chain(&report.findings);
    for Finding { severity, rule, .. } in all {
        let severity = match severity {
            Severity::Refusal => "refusal",
            Severity::Hold => "hold",
            Severity::Note => "note",
        };
        *findings.entry((severity, rule)).or_default() += 1;
    }
    for ((severity, rule), count) in findings {
        exposition.add(&table::FINDINGS, &[("severity", severity), ("rule", rule)], count);
    }
}

/// What health probes find of each Service.
fn of_backends(
    exposition: &mut Exposition,
    controller: &Controller,
    backends: &BackendHealth,
    now_ms: u64,
) {
    // Of one process: a former leader does not count what it remembers beside the new one.
    let leads = controller.leadership() == Leadership::Held;
    for (uid, service) in controller.report().services.iter().filter(|_| leads) {
        let Some(found) = backends.of(uid, now_ms) else { continue };
        let policy = if is_usual_of(controller, uid) { "Local" } else { "Cluster" };
        for state in ProbeState::ALL {
            let labels = [
                ("service_namespace", &*service.name.namespace),
                ("service_name", &*service.name.name),
                ("traffic_policy", policy),
                ("state", state.word()),
            ];
            exposition.add(&table::BACKENDS, &labels, found.count(state));
        }
    }
    let trouble = u8::from(leads && backends.trouble().is_some());
    exposition.add(&table::BACKENDS_UNREAD, &[], trouble);
}

/// What a Service can wait for.
const REASONS: [&str; model::report::WAIT_REASONS.len()] = model::report::WAIT_REASONS;

fn is_on_its_way(state: State) -> bool {
    matches!(state, State::Waiting | State::Rejected | State::Removing)
}

fn azure(exposition: &mut Exposition, controller: &Controller) {
    let tally = controller.tally();
    for resource in ResourceKind::WRITTEN.into_iter().chain([ResourceKind::Other]) {
        for outcome in Outcome::OF_WRITES {
            let labels = [("resource", resource.name()), ("outcome", outcome.name())];
            exposition.add(&table::WRITES, &labels, tally.writes(resource, outcome));
        }
    }
    let written = ResourceKind::WRITTEN.into_iter();
    for resource in written.chain(ResourceKind::READ_ALONE).chain([ResourceKind::Other]) {
        for outcome in Outcome::OF_READS {
            let labels = [("resource", resource.name()), ("outcome", outcome.name())];
            exposition.add(&table::READS, &labels, tally.reads(resource, outcome));
        }
    }
    exposition.add(&table::FAILURES, &[], controller.counts().failures);
    exposition.add_histogram(&table::BATCH_SERVICES, &[], tally.services(), Scale::Whole);
    exposition.add_histogram(&table::BATCH_ADDRESSES, &[], tally.addresses(), Scale::Whole);
    let waiting = controller.waiting().filter(|(_, _, until)| until.is_some());
    exposition.add(&table::BACKING_OFF, &[], waiting.count());
    exposition.add(&table::READS_FAILING, &[], controller.unread().count());
}
