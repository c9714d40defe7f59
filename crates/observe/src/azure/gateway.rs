//! The Service Gateway's tables: as read, and as they are after an update that succeeded.

use super::set;
use crate::apply::Applied;
use arm::body::{self, BodyError};
use model::gateway::{GatewayServices, Locations, LocationsUpdate, ServicesUpdate, folded};
use model::world::Azure;
use serde_json::Value;
use std::sync::Arc;

/// Reads one entry of the table of services.
pub(super) fn service(
    item: &Value,
    held: Option<&GatewayServices>,
    found: &mut GatewayServices,
    problems: &mut Vec<BodyError>,
) {
    if item.is_null() {
        return;
    }
    match body::read_gateway_service(item) {
        Ok(service) => {
            let name = folded(&service.name);
            let known = held.and_then(|held| held.get_key_value(&name));
            match known.filter(|(_, known)| ***known == service) {
                Some((name, known)) => found.insert(Arc::clone(name), Arc::clone(known)),
                None => found.insert(name, Arc::new(service)),
            };
        }
        Err(problem) => problems.push(problem),
    }
}

/// Takes an `updateServices` that succeeded.
pub fn apply_services_update(azure: &mut Azure, update: &ServicesUpdate) -> Applied {
    let table = azure.gateway_services.known_mut();
    Applied::of(table.is_some_and(|table| update.apply(table)))
}

/// Takes an `updateAddressLocations` that succeeded.
pub fn apply_locations_update(azure: &mut Azure, update: &LocationsUpdate) -> Applied {
    let Some(held) = azure.gateway_locations.known() else { return Applied::Unchanged };
    let mut locations = Locations::clone(held);
    update.apply(&mut locations);
    set(&mut azure.gateway_locations, Arc::new(locations))
}
