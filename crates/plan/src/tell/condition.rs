//! Our condition on Services: whether Azure is as the Service asks, and if not, why.
//!
//! # Guarantees
//! - Every Finding of a Service stands in it, notes beside "True", refusals and holds as "False".
//! - A Service that is as it asks and never was anything else is not written for it alone: there
//!   "True" comes with the addresses, in one write.
//! - While something is on its way the condition stays as it was.
//! - What stands in the way of a Service is told by [`note_obstacles`]: once for each cause, not
//!   for each attempt.
//! - A programmed Service whose resources cannot be read stays "True": nothing says that it does
//!   not serve. The reason and the message say that it cannot be checked.

use super::kubernetes;
use crate::ask::annotation;
use model::kubernetes::{Condition, Service, Truth};
use model::obstacle::{Obstacle, Subject};
use model::plan::{ConditionEdit, Edit, KubernetesWrite, MoveEdit, Object};
use model::report::{Finding, ServiceReport, State, Wait};
use model::world::Need;
use model::{Group, Plan, Policy, Report, ServiceUid, World};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What the API server takes as a message, in bytes.
const MESSAGE: usize = 32_768;

/// Adds what conditions say to the writes of statuses, and writes where nothing else is written.
pub(crate) fn write_all(
    writes: &mut Vec<KubernetesWrite>,
    services: &BTreeMap<ServiceUid, (&Service, ServiceReport)>,
) {
    let statuses = statuses(writes);
    for (uid, (service, report)) in services {
        let status = statuses.get(uid);
        if status.is_none() && service.condition.is_none() && is_plain(report) {
            continue;
        }
        let Some(wanted) = wanted(service, report) else { continue };
        let set = ConditionEdit::Set(wanted);
        if let Some(at) = status {
            if let Edit::Status { condition, .. } = &mut writes[*at].edit {
                *condition = set;
            }
        } else {
            writes.push(kubernetes::status(service, None, set));
        }
    }
}

/// Where the status of each Service is written.
fn statuses(writes: &[KubernetesWrite]) -> BTreeMap<ServiceUid, usize> {
    let of = |(at, write): (usize, &KubernetesWrite)| match (&write.object, &write.edit) {
        (Object::Service { uid, .. }, Edit::Status { .. }) => Some((uid.clone(), at)),
        _ => None,
    };
    writes.iter().enumerate().filter_map(of).collect()
}

/// Adds to the plan the conditions of Services that these obstacles hold up or keep from being
/// checked: of several the one that stands longest. What planning itself has to say of a Service
/// that waits goes first.
pub fn note_obstacles<'o>(
    plan: &mut Plan,
    report: &Report,
    world: &World,
    policy: &Policy,
    obstacles: impl IntoIterator<Item = &'o Obstacle>,
) {
    let mut told: BTreeMap<&ServiceUid, &Obstacle> = BTreeMap::new();
    for obstacle in obstacles {
        let last_step =
            |uid: &ServiceUid| report.services.get(uid).is_some_and(|s| is_last_step(s));
        let held_up = obstacle.services.iter();
        let held_up = held_up.filter(|uid| is_held_up(report, uid) && !last_step(uid));
        for uid in held_up.chain(unchecked(obstacle, report, world, policy)) {
            let first = told.entry(uid).or_insert(obstacle);
            if (obstacle.since_ms, &obstacle.about) < (first.since_ms, &first.about) {
                *first = obstacle;
            }
        }
    }
    if told.is_empty() {
        return;
    }
    let statuses = statuses(&plan.writes);
    for (uid, obstacle) in told {
        let (Some(service), Some(own)) =
            (world.kubernetes.services.get(uid), report.services.get(uid))
        else {
            continue;
        };
        let wanted = match own.state {
            State::Programmed => doubted(service, own, obstacle),
            _ => changed(service, Truth::False, obstacle.kind.reason(), obstacle.standing()),
        };
        let set = wanted.map_or(ConditionEdit::Keep, ConditionEdit::Set);
        let planned = statuses.get(uid).map(|at| &mut plan.writes[*at].edit);
        match planned {
            Some(Edit::Status { condition, .. })
                if own.state == State::Programmed
                    || *condition == ConditionEdit::Keep
                    || says_true(condition) =>
            {
                *condition = set;
            }
            Some(_) => {}
            None => plan.writes.push(kubernetes::status(service, None, set)),
        }
    }
    let (condition, moving) = (ConditionEdit::Keep, MoveEdit::Keep);
    let nothing = Edit::Status { ingress: None, condition, moving };
    plan.writes.retain(|write| write.edit != nothing);
}

/// Whether an edit says that all is well. Planning says so of a Service that waits for nothing,
/// also while addresses of its Pods that Azure has refused are attempted again.
fn says_true(edit: &ConditionEdit) -> bool {
    matches!(edit, ConditionEdit::Set(condition) if condition.truth == Truth::True)
}

/// Whether something of a Service is still to be done.
#[must_use]
pub fn is_held_up(report: &Report, uid: &ServiceUid) -> bool {
    let state = report.services.get(uid).map(|service| service.state);
    matches!(state, Some(State::Waiting | State::Rejected | State::Removing))
}

/// Whether nothing is left but the write of the status: what that says is true once it is there,
/// and then it has not failed.
fn is_last_step(own: &ServiceReport) -> bool {
    own.waits == [Wait::Status]
}

/// Services that were programmed when Azure was last read, and that cannot be checked while this
/// read fails.
pub fn unchecked<'r>(
    obstacle: &Obstacle,
    report: &'r Report,
    world: &World,
    policy: &Policy,
) -> impl Iterator<Item = &'r ServiceUid> {
    let need = match &obstacle.about {
        Subject::Read(need) => Some(need),
        _ => None,
    };
    let services = need.into_iter().flat_map(move |need| {
        let programmed = report.services.iter().filter(|(_, own)| own.state == State::Programmed);
        programmed.map(|(uid, _)| uid).filter(move |uid| {
            let service = world.kubernetes.services.get(*uid);
            service.is_some_and(|service| depends(service, need, policy))
        })
    });
    services.collect::<Vec<_>>().into_iter()
}

/// Whether what a programmed Service has in Azure is among what is read.
fn depends(service: &Service, need: &Need, policy: &Policy) -> bool {
    let names = |group: &Group| {
        let mut values = service.annotations.values();
        values.any(|value| value.trim().eq_ignore_ascii_case(group.as_str()))
    };
    // As the Service is read: flags differ in what they take as true.
    let is_true = |key: &str| {
        let value = service.annotation(key);
        value.is_some_and(|value| annotation::truth(key).is_true(value))
    };
    match need {
        Need::Balancers
        | Need::SecurityGroup
        | Need::ScaleSets
        | Need::ScaleSetVms(_)
        | Need::NetworkInterfaces
        | Need::VirtualMachines
        | Need::GatewayServices
        | Need::GatewayLocations => true,
        Need::PublicIps(group) => *group == policy.group || names(group),
        Need::PrivateLinks(group) => {
            is_true("azure-pls-create") && (*group == policy.private_link_group || names(group))
        }
        Need::Subnet(_) => is_true("azure-load-balancer-internal") || is_true("azure-pls-create"),
        // New public IPs and egress gateways need them.
        Need::Zones | Need::NatGateways => false,
    }
}

/// The condition of a programmed Service that cannot be checked.
fn doubted(service: &Service, own: &ServiceReport, obstacle: &Obstacle) -> Option<Condition> {
    let notes = own.findings.iter().map(|finding| format!("{finding}; "));
    let message = format!(
        "{}Azure was as the Service asks when it was last read; {}",
        notes.collect::<String>(),
        obstacle.standing()
    );
    changed(service, Truth::True, obstacle.kind.reason(), message)
}

/// Whether there is nothing to say but that all is well.
fn is_plain(report: &ServiceReport) -> bool {
    report.state == State::Programmed && report.findings.is_empty()
}

/// What the condition becomes; `None` where it stays as it is.
fn wanted(service: &Service, report: &ServiceReport) -> Option<Condition> {
    let (truth, reason, message) = say(report)?;
    changed(service, truth, reason, message)
}

/// The condition with this in it; `None` where it is so already.
fn changed(service: &Service, truth: Truth, reason: &str, message: String) -> Option<Condition> {
    let message = clip(message);
    let held = service.condition.as_ref();
    let same = |c: &Condition| c.truth == truth && *c.reason == *reason && *c.message == *message;
    if held.is_some_and(same) {
        return None;
    }
    // The time is that of the last change of the status, not of the reason.
    let since = held.filter(|c| c.truth == truth).and_then(|c| c.since.clone());
    Some(Condition { truth, reason: Arc::from(reason), message: Arc::from(message), since })
}

fn say(report: &ServiceReport) -> Option<(Truth, &str, String)> {
    let texts = |chosen: &dyn Fn(&Finding) -> bool| {
        let chosen = report.findings.iter().filter(|f| chosen(f));
        chosen.map(ToString::to_string).collect::<Vec<_>>().join("; ")
    };
    let freezes = |f: &Finding| f.severity.freezes();
    let refusal = report.findings.iter().find(|f| freezes(f));
    if report.state == State::Removing {
        return None;
    }
    if let Some(refusal) = refusal {
        return Some((Truth::False, refusal.rule, texts(&freezes)));
    }
    // Only the owner's Pods end this wait: the condition says so meanwhile.
    if let ([Wait::Pods], Some(note)) = (report.waits.as_slice(), report.findings.first()) {
        return Some((Truth::False, note.rule, texts(&|_| true)));
    }
    if report.state != State::Programmed && !is_last_step(report) {
        return None;
    }
    match report.findings.first() {
        Some(note) => Some((Truth::True, note.rule, texts(&|_| true))),
        None => Some((Truth::True, "Programmed", "Azure is as the Service asks.".to_owned())),
    }
}

fn clip(mut message: String) -> String {
    if message.len() > MESSAGE {
        let mark = "…";
        message.truncate(message.floor_char_boundary(MESSAGE - mark.len()));
        message.push_str(mark);
    }
    message
}

#[cfg(test)]
mod tests;
