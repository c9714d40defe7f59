//! What owners hold back: paused Services, and those protected from their deletion.

use super::{Forecast, forecast};
use model::{Policy, World};
use plan::ask::hold::let_go;
use std::sync::Arc;

/// What would be written once no owner holds a Service back any more, after all that is written
/// now. `end` is the World that [`follow`](super::follow) leads to; `None` where no Service is
/// held back.
#[must_use]
pub fn held_back(end: &World, policy: &Policy) -> Option<Forecast> {
    let services = end.kubernetes.services.iter();
    let free: Vec<_> =
        services.filter_map(|(uid, held)| Some((uid.clone(), Arc::new(let_go(held)?)))).collect();
    if free.is_empty() {
        return None;
    }
    let mut world = end.clone();
    world.kubernetes.services.extend(free);
    Some(forecast(&world, policy))
}
