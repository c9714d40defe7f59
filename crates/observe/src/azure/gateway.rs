//! The Service Gateway's tables: as read, and as they are after an update that succeeded.

use crate::apply::Applied;
use arm::body::{self, BodyError};
use model::gateway::{
    Addresses, GatewayServices, LocationUpdate, Locations, LocationsUpdate, ServicesUpdate,
    UpdateAction,
};
use model::world::{Azure, Fact};
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

/// A name in lower case; the same text where it is so already.
fn folded(name: &Arc<str>) -> Arc<str> {
    let folded = name.to_lowercase();
    if *folded == **name { Arc::clone(name) } else { Arc::from(folded) }
}

/// Takes an `updateServices` that succeeded.
pub fn apply_services_update(azure: &mut Azure, update: &ServicesUpdate) -> Applied {
    let Fact::Known(services) = &mut azure.gateway_services else { return Applied::Unchanged };
    let mut applied = Applied::Unchanged;
    for put in &update.put {
        let service = Arc::new(put.service.clone());
        let before = services.insert(folded(&put.service.name), service);
        if before.as_deref() != Some(&put.service) {
            applied = Applied::Changed;
        }
    }
    for (name, _) in &update.delete {
        if services.remove(name.to_lowercase().as_str()).is_some() {
            applied = Applied::Changed;
        }
    }
    applied
}

/// Takes an `updateAddressLocations` that succeeded.
pub fn apply_locations_update(azure: &mut Azure, update: &LocationsUpdate) -> Applied {
    let Fact::Known(held) = &mut azure.gateway_locations else { return Applied::Unchanged };
    let mut locations = Locations::clone(held);
    if update.action == UpdateAction::FullUpdate {
        locations.retain(|ip, _| update.locations.iter().any(|l| l.location == *ip));
    }
    for location in &update.locations {
        update_location(&mut locations, location);
    }
    if locations == **held {
        return Applied::Unchanged;
    }
    *held = Arc::new(locations);
    Applied::Changed
}

/// No addresses remove the location, no services an address.
fn update_location(locations: &mut Locations, update: &LocationUpdate) {
    if update.addresses.is_empty() {
        locations.remove(&update.location);
        return;
    }
    let table = Arc::make_mut(locations.entry(update.location).or_default());
    if update.action == UpdateAction::FullUpdate {
        table.clear();
    }
    if table.is_empty() {
        let all = update.addresses.iter().filter(|(_, services)| !services.is_empty());
        *table = all.map(|(address, services)| (*address, Arc::clone(services))).collect();
    } else {
        change_addresses(table, update);
    }
    if table.is_empty() {
        locations.remove(&update.location);
    }
}

fn change_addresses(table: &mut Addresses, update: &LocationUpdate) {
    for (address, services) in &update.addresses {
        if services.is_empty() {
            table.remove(address);
        } else {
            table.insert(*address, Arc::clone(services));
        }
    }
}
