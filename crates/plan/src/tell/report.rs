//! The plan and the report that a draft becomes.

use super::condition;
use crate::draft::{Case, Draft, Stance, Steps, Told};
use model::kubernetes::Wish;
use model::report::{Report, ServiceReport, Severity, State, Wait};
use model::{Plan, ServiceUid};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Turns what was drafted into the plan and the report.
pub(crate) fn finish<'w>(draft: Draft<'w>) -> (Plan, Report) {
    let Steps { changes, mut writes, ledger, tags, needs } = draft.steps;
    let Told { findings, pods, draining, holders } = draft.told;
    // It goes once lists are certain to show all that it has, and are read.
    let lists = |wait: &Wait| matches!(wait, Wait::Listing | Wait::Reading(_));
    let leaves =
        |case: &Case<'_>| case.service.wish == Wish::Nothing && case.waits.iter().any(lists);
    let unread = draft.world.azure.balancers.known().is_none();
    let reported = |(uid, case): (ServiceUid, Case<'w>)| {
        let has = |severity| case.findings.iter().any(|f| f.severity == severity);
        let (refused, held) = (has(Severity::Refusal), has(Severity::Hold));
        let state = match case.stance {
            Stance::Leaving => State::Removing,
            _ if held => State::Held,
            _ if refused && serves(&case, unread) => State::RefusedServing,
            _ if refused => State::Refused,
            Stance::Frozen(_) if leaves(&case) => State::Removing,
            Stance::Frozen(_) => State::Waiting,
            Stance::Wanted(_) | Stance::Container(_) if case.waits.is_empty() => State::Programmed,
            Stance::Wanted(_) | Stance::Container(_) => State::Waiting,
        };
        let service = ServiceReport {
            name: case.service.name.clone(),
            balancer: case.balancer,
            addresses: case.addresses,
            state,
            waits: case.waits.into_iter().collect(),
            findings: case.findings,
        };
        (uid, (case.service, service))
    };
    // All at once: they are in order already.
    let services: BTreeMap<_, _> = draft.cases.into_iter().map(reported).collect();
    condition::write_all(&mut writes, &services);
    let services = services.into_iter().map(|(uid, (_, report))| (uid, Arc::new(report))).collect();
    let changes = changes.into_values().map(Arc::new).collect();
    let obstacles = Vec::new();
    let report = Report { services, pods, needs, findings, draining, holders, obstacles };
    (Plan { changes, writes, ledger, tags }, report)
}

/// Whether a Service has what leads to its nodes or Pods; until load balancers are read its status
/// says so.
fn serves(case: &Case<'_>, unread: bool) -> bool {
    let stands = case.balancer.is_some() && !case.addresses.is_empty();
    stands || (unread && !case.service.ingress.is_empty())
}
