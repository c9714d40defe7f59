//! What becomes of each Service between now and the end of a forecast.

use super::Forecast;
use crate::reach;
use model::kubernetes::{Condition, Ingress, SERVICE_FINALIZER, Service, Truth, Wish};
use model::plan::{Edit, KubernetesWrite, Object};
use model::report::{Severity, State};
use model::{ObstacleKind, ServiceName, ServiceUid, World};
use plan::ask::findings::{FindingRule, RULES};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Where a Service stands at one end of a forecast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Ballast has done nothing for it yet.
    New,
    /// As reports call it.
    At(State),
    /// Nothing of it is left in Azure, and its finalizer is gone.
    Removed,
}

/// One Service at both ends of a forecast.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transition {
    /// Namespace and name.
    pub name: ServiceName,
    /// Where it stands now, by its status, its condition and its finalizer.
    pub from: Stage,
    /// Where it stands in the end.
    pub to: Stage,
    /// Addresses in its status now that are not there in the end, in its status' order; those of
    /// its frontends, where it has another type by now and the status is empty.
    pub lost: Vec<Arc<str>>,
    /// Addresses in its status in the end that are not there now, in that order.
    pub gained: Vec<Arc<str>>,
    /// Whether anything is written in Azure on its account.
    pub written: bool,
}

impl Transition {
    /// Whether clients that use an address of the Service have to use another one, or none.
    #[must_use]
    pub fn changes_address(&self) -> bool {
        !self.lost.is_empty() && self.to != Stage::Removed
    }

    /// Whether an address is given up with the Service.
    #[must_use]
    pub fn releases_address(&self) -> bool {
        !self.lost.is_empty() && self.to == Stage::Removed
    }

    /// Whether the Service gets an address beside those that it has, if any.
    #[must_use]
    pub fn gets_address(&self) -> bool {
        self.lost.is_empty() && !self.gained.is_empty()
    }
}

/// The transition of every Service of a forecast that was made from this World.
#[must_use]
pub fn transitions(forecast: &Forecast, world: &World) -> BTreeMap<ServiceUid, Transition> {
    let told = told(&forecast.writes);
    let written: BTreeSet<&ServiceUid> =
        forecast.changes.iter().flat_map(|change| &change.causes).collect();
    let services = &world.kubernetes.services;
    let of = |uid: &ServiceUid| {
        let service = services.get(uid)?;
        let first = forecast.report.services.get(uid)?.state;
        let last = forecast.last.services.get(uid).map(|report| report.state);
        let before = held(service, world);
        let after = match last {
            None => Vec::new(),
            Some(_) => told.get(uid).map_or_else(|| before.clone(), |list| addresses(list)),
        };
        let missing_in = |from: &[Arc<str>], there: &[Arc<str>]| {
            from.iter().filter(|address| !there.contains(address)).cloned().collect()
        };
        let transition = Transition {
            name: service.name.clone(),
            from: from(service, first),
            to: last.map_or(Stage::Removed, Stage::At),
            lost: missing_in(&before, &after),
            gained: missing_in(&after, &before),
            written: written.contains(uid),
        };
        Some((uid.clone(), transition))
    };
    forecast.report.services.keys().filter_map(of).collect()
}

/// The addresses that a Service has now. The API server takes them off the status of one that gets
/// another type, while its frontends still stand.
fn held(service: &Service, world: &World) -> Vec<Arc<str>> {
    let told = addresses(&service.ingress);
    if !told.is_empty() || service.wish != Wish::Nothing {
        return told;
    }
    let standing = reach::addresses(world, &service.uid);
    standing.into_iter().map(|address| Arc::from(address.to_string())).collect()
}

/// What the status of each Service says in the end, where it is written.
fn told(writes: &[KubernetesWrite]) -> BTreeMap<&ServiceUid, &[Ingress]> {
    let lists = writes.iter().filter_map(|write| match (&write.object, &write.edit) {
        (Object::Service { uid, .. }, Edit::Status { ingress: Some(list), .. }) => {
            Some((uid, list.as_slice()))
        }
        _ => None,
    });
    lists.collect()
}

fn addresses(list: &[Ingress]) -> Vec<Arc<str>> {
    list.iter().filter_map(|ingress| ingress.ip.clone()).collect()
}

/// The first report cannot tell: it calls every Service waiting that is about to be written, and
/// refused one that was programmed before the edit at hand.
fn from(service: &Service, first: State) -> Stage {
    let condition = service.condition.as_ref().filter(|c| c.truth == Truth::False);
    let holds = |rule: &&FindingRule| rule.severity == Severity::Hold;
    let held = |c: &Condition| RULES.iter().filter(holds).any(|rule| rule.name == &*c.reason);
    if condition.is_some_and(held) {
        return Stage::At(State::Held);
    }
    if service.wish == Wish::Nothing || first == State::Removing {
        return Stage::At(State::Removing);
    }
    // What only holds it up is no refusal.
    let passes = |reason: &str| ObstacleKind::ALL.iter().any(|kind| kind.reason() == reason);
    let refused = condition.is_some_and(|c| !passes(&c.reason));
    let serves = service.ingress.iter().any(|ingress| ingress.ip.is_some());
    match (refused, serves) {
        (true, true) => Stage::At(State::RefusedServing),
        (true, false) => Stage::At(State::Refused),
        (false, true) => Stage::At(State::Programmed),
        (false, false) if !service.has_finalizer(SERVICE_FINALIZER) => Stage::New,
        (false, false) => Stage::At(State::Waiting),
    }
}

#[cfg(test)]
mod tests;
