//! Services that their owners hold back.
//!
//! What is promised:
//! - Of one that is paused nothing is written: it keeps what it has, and its condition says so. Its
//!   backends are those of every other Service on its load balancer.
//! - One that is protected from deletion keeps what it has when it is deleted or asks for no load
//!   balancer any more, its finalizer first, until the annotation is taken off.
//! - An annotation on a Service that has nothing, or that is another controller's, holds nothing.

use crate::asks::Invalid;
use crate::estate::{has_finalizer, same, text};
use crate::names::{FINALIZER, GATEWAY_FINALIZER};
use serde_json::Value;

const PAUSE: &str = "ballast.dev/pause";
const PROTECT: &str = "ballast.dev/deletion-protection";

/// What is said of a Service that its owner pauses.
pub(crate) const PAUSED: &str = "its owner pauses it";
/// What is said of one that is to go, and whose owner keeps it.
pub(crate) const KEPT: &str = "its owner has it kept";

/// Why nothing is written for a Service that asks for a load balancer.
pub(crate) fn paused(service: &Value) -> Option<Invalid> {
    is_set(service, PAUSE).then(|| Invalid(PAUSED.to_owned()))
}

/// Why a Service that asks for none keeps what it has.
pub(crate) fn kept(service: &Value, own: Option<&str>) -> Option<Invalid> {
    let spec = &service["spec"];
    let class = spec["loadBalancerClass"].as_str();
    let is_ours = text(&spec["type"]) != "LoadBalancer" || class.is_none() || class == own;
    let held = [FINALIZER, GATEWAY_FINALIZER].iter().any(|f| has_finalizer(service, f));
    let asked = is_set(service, PAUSE) || is_set(service, PROTECT);
    (is_ours && held && asked).then(|| Invalid(KEPT.to_owned()))
}

/// The annotations by which a Service's owner holds it back.
pub(crate) fn keys(service: &Value) -> impl Iterator<Item = &'static str> {
    [PAUSE, PROTECT].into_iter().filter(move |key| is_set(service, key))
}

fn is_set(service: &Value, key: &str) -> bool {
    same(text(&service["metadata"]["annotations"][key]), "true")
}
