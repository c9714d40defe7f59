//! Changes of Services that are on hold: paused, or protected from deletion.

use super::{Forecast, forecast};
use model::{Policy, World};
use plan::ask::hold::resumed;
use std::sync::Arc;

/// The forecast of every Service on hold, as if all owners removed the annotations: what Ballast
/// would write after everything that it can write now. `end` is the World that
/// [`follow`](super::follow) leads to.
#[must_use]
pub fn held_back(end: &World, policy: &Policy) -> Forecast {
    let services = end.kubernetes.services.iter();
    let resumed: Vec<_> = services
        .filter_map(|(uid, service)| Some((uid.clone(), Arc::new(resumed(service)?))))
        .collect();
    if resumed.is_empty() {
        return Forecast::default();
    }
    let mut world = end.clone();
    world.kubernetes.services.extend(resumed);
    forecast(&world, policy)
}
