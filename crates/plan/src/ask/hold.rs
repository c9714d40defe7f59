//! How an owner holds a Service back.

use super::annotation::{CONFIRM, PAUSE, PROTECT, truth};
use super::findings::{CONFIRMATION_DUE, DELETION_PROTECTED, FindingRule, PAUSED};
use model::kubernetes::{
    Deletion, GATEWAY_FINALIZER, LoadBalancerType, SERVICE_FINALIZER, Service, Wish,
};
use std::sync::Arc;

/// The rule by which what a Service has stays as it is, and its annotation; `None` where its owner
/// does not hold it back.
pub(crate) fn find(service: &Service) -> Option<(&'static FindingRule, &'static str)> {
    let is_set = |key: &str| is_set(service, key);
    if is_set(PAUSE) && (service.wish == Wish::LoadBalancer || has_something(service)) {
        return Some((&PAUSED, PAUSE));
    }
    // A Service that moves to other load balancers wants none of the former kind, and its owner has
    // taken nothing back.
    let taken_back = service.deletion == Deletion::Requested
        || service.load_balancer_type != LoadBalancerType::Ours;
    let leaves = taken_back && has_something(service);
    (leaves && is_set(PROTECT)).then_some((&DELETION_PROTECTED, PROTECT))
}

/// Whether a flag of a Service, by its whole key, says true.
pub(crate) fn is_set(service: &Service, key: &str) -> bool {
    let value = service.annotations.get(key);
    value.is_some_and(|value| truth(key).is_true(value))
}

/// The list that `ballast.dev/confirmed` has to have, in a text about a Service that waits for it.
#[must_use]
pub fn to_confirm(text: &str) -> Option<&str> {
    let before = CONFIRMATION_DUE.message.rsplit_once("; ")?.1.split("{value}").next()?;
    let (_, list) = text.split_once(before)?;
    list.strip_prefix('"')?.split_once('"').map(|(list, _)| list)
}

/// Whether its owner wants to confirm interruptions of a Service before they happen.
pub(crate) fn asks_first(service: &Service) -> bool {
    is_set(service, CONFIRM)
}

/// A Service that is on hold, or whose owner confirms interruptions, without the annotations that
/// hold it; `None` where it has none of these.
#[must_use]
pub fn resumed(service: &Service) -> Option<Service> {
    if find(service).is_none() && !asks_first(service) {
        return None;
    }
    let mut service = service.clone();
    let holding = [PAUSE, PROTECT, CONFIRM];
    Arc::make_mut(&mut service.annotations).retain(|key, _| !holding.contains(&&**key));
    Some(service)
}

/// Whether a Service has a load balancer, or keeps the one it has because its owner holds it back.
pub(crate) fn keeps_balancer(service: &Service) -> bool {
    service.wish == Wish::LoadBalancer || find(service).is_some()
}

/// Whether a Service that wants no load balancer may have one. Our finalizers are there as long as
/// it has; those on a Service of another class are that controller's.
fn has_something(service: &Service) -> bool {
    let claimed = [SERVICE_FINALIZER, GATEWAY_FINALIZER].iter().any(|f| service.has_finalizer(f));
    claimed && service.load_balancer_type != LoadBalancerType::Foreign
}
