//! Drift in the tables of a Service Gateway.

use model::drift::Part;
use model::gateway::{
    Addresses, GatewayService, LocationUpdate, LocationsUpdate, ServiceNames, ServicesUpdate,
};
use model::world::{Azure, Fact};
use plan::own::name::folded;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use super::Tables;

const SERVICE: &str = "gateway service";
const ADDRESS: &str = "gateway address";

/// A part as we left it and as it is.
pub(super) type Pair = (Part, Option<Value>, Option<Value>);

fn shown(service: &GatewayService) -> Value {
    let GatewayService { name: _, direction, default: _, pools, nat_gateway } = service;
    json!({"direction": direction, "pools": pools, "nat_gateway": nat_gateway})
}

/// Services that an update puts back to what they were.
pub(super) fn of_services(tables: &Tables, azure: &Azure, update: &ServicesUpdate) -> Vec<Pair> {
    let (Some(ours), Some(found)) = (&tables.services, azure.gateway_services.known()) else {
        return Vec::new();
    };
    let mut pairs = Vec::new();
    for (part, wanted) in made_services(update) {
        let ours = ours.get(&part.name).map(|service| shown(service));
        let found = found.get(&part.name).map(|service| shown(service));
        if ours != found && wanted == ours {
            pairs.push((part, ours, found));
        }
    }
    pairs
}

/// Addresses that an update puts back to what they were.
pub(super) fn of_locations(tables: &Tables, azure: &Azure, update: &LocationsUpdate) -> Vec<Pair> {
    let (Some(ours), Some(found)) = (&tables.locations, azure.gateway_locations.known()) else {
        return Vec::new();
    };
    let mut pairs = Vec::new();
    for at in &update.locations {
        let none = Arc::default();
        let ours = ours.get(&at.location).unwrap_or(&none);
        let found = found.get(&at.location).unwrap_or(&none);
        if Arc::ptr_eq(ours, found) {
            continue;
        }
        for (address, names) in wanted(at, found) {
            let (ours, found) = (ours.get(&address), found.get(&address));
            if ours != found && names == ours {
                let value = |names: Option<&ServiceNames>| names.map(|names| json!(names));
                pairs.push((row(at.location, address), value(ours), value(found)));
            }
        }
    }
    pairs
}

/// Rows as an update of services makes them.
pub(super) fn made_services(update: &ServicesUpdate) -> BTreeMap<Part, Option<Value>> {
    let put = update.put.iter().map(|p| (&p.service.name, Some(shown(&p.service))));
    let rows = put.chain(update.delete.iter().map(|(name, _)| (name, None)));
    let part = |name: &str| Part { kind: SERVICE, name: Arc::from(folded(name)) };
    rows.map(|(name, value)| (part(name), value)).collect()
}

/// Rows as an update of addresses makes them.
pub(super) fn made_locations(
    azure: &Azure,
    update: &LocationsUpdate,
) -> BTreeMap<Part, Option<Value>> {
    let none = Arc::default();
    let known = azure.gateway_locations.known();
    let mut made = BTreeMap::new();
    for at in &update.locations {
        let found = known.and_then(|all| all.get(&at.location)).unwrap_or(&none);
        for (address, names) in wanted(at, found) {
            made.insert(row(at.location, address), names.map(|names| json!(names)));
        }
    }
    made
}

/// What an update says of each address of a location; `None` where it takes it away.
fn wanted<'a>(
    at: &'a LocationUpdate,
    found: &'a Addresses,
) -> BTreeMap<IpAddr, Option<&'a ServiceNames>> {
    let mut wanted: BTreeMap<IpAddr, Option<&ServiceNames>> = BTreeMap::new();
    if at.is_whole() {
        wanted.extend(found.keys().map(|address| (*address, None)));
    }
    let listed = at.addresses.iter();
    let listed = listed.map(|(address, names)| (*address, Some(names)));
    wanted.extend(listed.map(|(address, names)| (address, names.filter(|n| !n.is_empty()))));
    wanted
}

/// Whether a part is a row of the table of services, or of that of addresses, if it is one.
pub(super) fn is_of_services(part: &Part) -> Option<bool> {
    match part.kind {
        SERVICE => Some(true),
        ADDRESS => Some(false),
        _ => None,
    }
}

fn row(location: IpAddr, address: IpAddr) -> Part {
    Part { kind: ADDRESS, name: Arc::from(format!("{location}/{address}")) }
}

/// Makes a part of the tables as we left it.
pub(super) fn restore(tables: &Tables, azure: &mut Azure, part: &Part) {
    if part.kind == SERVICE {
        let Some(found) = azure.gateway_services.known_mut() else { return };
        match tables.services.as_ref().and_then(|all| all.get(&part.name)) {
            Some(service) => found.insert(Arc::clone(&part.name), Arc::clone(service)),
            None => found.remove(&part.name),
        };
        return;
    }
    let Some((location, address)) = place(part) else { return };
    let Fact::Known(found) = &mut azure.gateway_locations else { return };
    let all = Arc::make_mut(found);
    let at = Arc::make_mut(all.entry(location).or_default());
    let ours = tables.locations.as_ref().and_then(|all| all.get(&location)?.get(&address));
    match ours {
        Some(names) => at.insert(address, Arc::clone(names)),
        None => at.remove(&address),
    };
    if at.is_empty() {
        all.remove(&location);
    }
}

/// Location and address of a part.
fn place(part: &Part) -> Option<(IpAddr, IpAddr)> {
    let (location, address) = part.name.split_once('/')?;
    (part.kind == ADDRESS).then_some((location.parse().ok()?, address.parse().ok()?))
}

/// Services of the gateway that a part names.
pub(super) fn services_of<'a>(part: &'a Part, values: [Option<&'a Value>; 2]) -> Vec<&'a str> {
    if part.kind == SERVICE {
        return vec![&part.name];
    }
    let lists = values.into_iter().flatten().filter_map(Value::as_array);
    lists.flatten().filter_map(Value::as_str).collect()
}

/// Rows among these parts that name a service which an update takes away: Azure refuses that as
/// long as an address names the service.
pub(super) fn naming_who_goes(
    azure: &Azure,
    update: &ServicesUpdate,
    parts: &BTreeSet<Part>,
) -> Vec<Part> {
    let Some(found) = azure.gateway_locations.known() else { return Vec::new() };
    let goes: BTreeSet<String> = update.delete.iter().map(|(name, _)| folded(name)).collect();
    let names_one = |part: &&Part| {
        let at = place(part).and_then(|(location, address)| found.get(&location)?.get(&address));
        at.is_some_and(|names| names.iter().any(|name| goes.contains(&folded(name))))
    };
    parts.iter().filter(names_one).cloned().collect()
}

/// Registrations among these parts that are gone and that an update's rows name: Azure refuses a
/// row whose service is not registered.
pub(super) fn named_and_gone(
    azure: &Azure,
    update: &LocationsUpdate,
    parts: &BTreeSet<Part>,
) -> Vec<Part> {
    let Some(found) = azure.gateway_services.known() else { return Vec::new() };
    let rows = update.locations.iter().flat_map(|at| &at.addresses);
    let named: BTreeSet<String> =
        rows.flat_map(|(_, names)| names.iter()).map(|name| folded(name)).collect();
    let lost = |part: &&Part| part.kind == SERVICE && !found.contains_key(&part.name);
    parts.iter().filter(lost).filter(|part| named.contains(&*part.name)).cloned().collect()
}

/// Notes what an update of services has come to.
pub(super) fn note_services(tables: &mut Tables, azure: &Azure, update: &ServicesUpdate) {
    let (Some(ours), Some(found)) = (&mut tables.services, azure.gateway_services.known()) else {
        return;
    };
    for name in update.names() {
        let key: Arc<str> = Arc::from(folded(name));
        match found.get(&key) {
            Some(service) => ours.insert(key, Arc::clone(service)),
            None => ours.remove(&key),
        };
    }
}

/// Notes what an update of addresses has come to.
pub(super) fn note_locations(tables: &mut Tables, azure: &Azure, update: &LocationsUpdate) {
    let (Some(ours), Some(found)) = (&mut tables.locations, azure.gateway_locations.known()) else {
        return;
    };
    let ours = Arc::make_mut(ours);
    let none = Arc::default();
    for at in &update.locations {
        let found = found.get(&at.location).unwrap_or(&none);
        let was = ours.get(&at.location).unwrap_or(&none);
        let mut now = Addresses::clone(was);
        if at.is_whole() {
            now = Addresses::clone(found);
        }
        for (address, _) in &at.addresses {
            match found.get(address) {
                Some(names) => now.insert(*address, Arc::clone(names)),
                None => now.remove(address),
            };
        }
        match (now.is_empty(), now == **found) {
            (true, _) => ours.remove(&at.location),
            (false, true) => ours.insert(at.location, Arc::clone(found)),
            (false, false) => ours.insert(at.location, Arc::new(now)),
        };
    }
}
