//! The plan and the report that a draft becomes.

use super::condition;
use crate::draft::{Case, Draft, Stance, Steps, Told};
use model::kubernetes::Wish;
use model::report::{Report, ServiceReport, Severity, State, Wait};
use model::{Plan, ServiceUid, World};
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

/// A status that is being written is not what is known of it: a Service of which nothing else is
/// left to do waits until the answer says what its status tells.
pub(crate) fn await_statuses(world: &World, report: &mut Report) {
    for (uid, told) in &world.told {
        let known = world.kubernetes.services.get(uid).map(|service| &service.ingress);
        let own = report.services.get_mut(uid);
        let done = own.filter(|own| own.state == State::Programmed && known != Some(told));
        if let Some(own) = done.map(Arc::make_mut) {
            own.state = State::Waiting;
            own.waits.push(Wait::Status);
        }
    }
}

/// Whether a Service has what leads to its nodes or Pods; until load balancers are read its status
/// says so.
fn serves(case: &Case<'_>, unread: bool) -> bool {
    let stands = case.balancer.is_some() && !case.addresses.is_empty();
    stands || (unread && !case.service.ingress.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use fixture::{service, world};
    use model::kubernetes::Ingress;

    /// The status shows the address still, and a write takes it out.
    #[test]
    fn who_has_a_status_on_its_way_is_not_done() {
        let web = service(&[]);
        let told = |addresses: &[&str]| {
            let uid = web.uid.clone();
            let known = Ingress { ip: Some(Arc::from("20.0.0.1")), hostname: None };
            let entry = |ip: &&str| Ingress { ip: Some(Arc::from(*ip)), hostname: None };
            let mut world = world();
            let shown = model::kubernetes::Service { ingress: vec![known], ..web.clone() };
            world.kubernetes.services.insert(uid.clone(), Arc::new(shown));
            world.told.insert(uid.clone(), addresses.iter().map(entry).collect());
            let own = fixture::service_report(State::Programmed);
            let services = BTreeMap::from([(uid.clone(), Arc::new(own))]);
            let mut report = Report { services, ..Report::default() };
            await_statuses(&world, &mut report);
            let own = &report.services[&uid];
            (own.state, own.waits.clone())
        };
        assert_eq!(told(&[]), (State::Waiting, vec![Wait::Status]));
        assert_eq!(told(&["20.0.0.1"]), (State::Programmed, Vec::new()));
    }
}
