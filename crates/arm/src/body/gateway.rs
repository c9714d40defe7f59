//! The two tables of a Service Gateway, and the two actions that change them.

use super::compose::{put, reference};
use super::fields::{
    BodyError, Object, flag, id_text, object, reference as read_reference, text, word,
};
use model::ResourceId;
use model::gateway::{
    Addresses, DefaultService, Direction, GatewayService, GatewayServiceUpdate, LocationUpdate,
    Locations, LocationsUpdate, NameSet, ServiceNames, ServicesUpdate, UpdateAction,
};
use serde::ser::{Serialize, SerializeStruct, Serializer};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

const DIRECTIONS: [(&str, Direction); 3] = [
    ("Inbound", Direction::Inbound),
    ("Outbound", Direction::Outbound),
    ("InboundOutbound", Direction::InboundOutbound),
];

/// Reads one entry of the gateway's services. One of a `serviceType` that is not known exists all
/// the same: without it, its addresses would count as left over, and its name as free.
///
/// # Errors
/// The entry is no object or has no name.
pub fn read_gateway_service(body: &Value) -> Result<GatewayService, BodyError> {
    let kind = "gateway service";
    let fields = object(kind, body)?;
    let name = fields.get("name").and_then(text);
    let name = name.ok_or_else(|| BodyError::new(kind, "there is no name"))?;
    let p = fields.get("properties");
    let field = |key: &str| p.and_then(|p| p.get(key));
    let direction = field("serviceType").and_then(word(&DIRECTIONS));
    let default = field("isDefault").and_then(flag) == Some(true);
    let pools = field("loadBalancerBackendPools").and_then(Value::as_array);
    Ok(GatewayService {
        name,
        direction: direction.unwrap_or(Direction::Unknown),
        default: if default { DefaultService::Yes } else { DefaultService::No },
        pools: pools.into_iter().flatten().filter_map(read_reference).collect(),
        nat_gateway: field("publicNatGatewayId").and_then(id_text),
    })
}

/// Reads all entries of the gateway's address table, and says which could not be read.
///
/// Addresses that belong to the same services share one set. Names of services are in lower case:
/// Azure compares them without regard to it, and the table of services may write them otherwise.
#[must_use]
pub fn read_locations(items: &[Value]) -> (Locations, Vec<BodyError>) {
    let mut table = LocationTable::default();
    for item in items {
        table.add(item, None);
    }
    table.finish()
}

/// An address table while its items are read.
#[derive(Clone, Debug, Default)]
pub struct LocationTable {
    locations: Locations,
    problems: Vec<BodyError>,
    names: BTreeMap<String, Arc<str>>,
    sets: BTreeSet<ServiceNames>,
}

impl LocationTable {
    /// All entries, and those that could not be read.
    #[must_use]
    pub fn finish(self) -> (Locations, Vec<BodyError>) {
        (self.locations, self.problems)
    }

    /// Reads one item. What is as it is in `held` is not held twice.
    pub fn add(&mut self, item: &Value, held: Option<&Locations>) {
        if item.is_null() {
            return;
        }
        let Some(location) = ip(item, "addressLocation") else {
            return self.complain("addressLocation", item);
        };
        let mut addresses = Vec::new();
        for entry in list(item, "addresses") {
            match ip(entry, "address") {
                Some(address) => {
                    let services = self.services(entry);
                    addresses.push((address, services));
                }
                None => self.complain("address", entry),
            }
        }
        // A location that comes twice has what both entries list.
        let known = self.locations.remove(&location);
        let known = known.iter().flat_map(|known| known.iter());
        let known = known.map(|(address, services)| (*address, Arc::clone(services)));
        let all: Addresses = known.chain(addresses).collect();
        let held = held.and_then(|held| held.get(&location)).filter(|held| ***held == all);
        let all = held.map_or_else(|| Arc::new(all), Arc::clone);
        self.locations.insert(location, all);
    }

    fn services(&mut self, entry: &Value) -> ServiceNames {
        let mut set = Vec::new();
        for name in list(entry, "services").filter_map(Value::as_str) {
            let shared = match self.names.get(name) {
                Some(shared) => Arc::clone(shared),
                None => {
                    let shared: Arc<str> = Arc::from(name.to_lowercase());
                    self.names.insert(name.to_owned(), Arc::clone(&shared));
                    shared
                }
            };
            set.push(shared);
        }
        let set: NameSet = set.into_iter().collect();
        if let Some(shared) = self.sets.get(&set) {
            return Arc::clone(shared);
        }
        let shared = Arc::new(set);
        self.sets.insert(Arc::clone(&shared));
        shared
    }

    fn complain(&mut self, key: &str, item: &Value) {
        let found = item.get(key).map_or_else(|| "absent".to_owned(), Value::to_string);
        self.problems.push(BodyError::new("gateway location", format!("{key} is {found}")));
    }
}

fn ip(item: &Value, key: &str) -> Option<IpAddr> {
    item.get(key)?.as_str()?.trim().parse().ok()
}

fn list<'a>(item: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    item.get(key).and_then(Value::as_array).into_iter().flatten()
}

/// The body of `updateServices`: only what is listed changes.
#[must_use]
pub fn services_update(update: &ServicesUpdate) -> Value {
    let ServicesUpdate { put, delete } = update;
    let mut requests: Vec<Value> = put.iter().map(put_service).collect();
    requests.extend(delete.iter().map(|(name, direction)| {
        let p = json!({
            "serviceType": direction_name(*direction),
            "loadBalancerBackendPools": [],
        });
        json!({ "isDelete": true, "service": { "name": &**name, "properties": p } })
    }));
    json!({ "action": "PartialUpdate", "serviceRequests": requests })
}

/// No pools are written as an empty list and no NAT gateway as null: an absent field would leave
/// in Azure what is there.
fn put_service(update: &GatewayServiceUpdate) -> Value {
    let service = write_gateway_service(&update.service, update.network.as_ref());
    json!({ "isDelete": false, "service": service })
}

/// One service of a Service Gateway; `network` is that of its pools.
#[must_use]
pub fn write_gateway_service(service: &GatewayService, network: Option<&ResourceId>) -> Value {
    let GatewayService { name, direction, default, pools, nat_gateway } = service;
    let mut p = Object::new();
    put(&mut p, "serviceType", direction_name(*direction));
    if *default == DefaultService::Yes {
        put(&mut p, "isDefault", true);
    }
    let pools: Vec<Value> = pools.iter().map(|pool| pool_entry(pool, network)).collect();
    put(&mut p, "loadBalancerBackendPools", pools);
    if *direction != Direction::Inbound {
        let nat = nat_gateway.as_ref().map_or(Value::Null, |id| id.as_str().into());
        put(&mut p, "publicNatGatewayId", nat);
    }
    json!({ "name": &**name, "properties": p })
}

fn pool_entry(pool: &ResourceId, network: Option<&ResourceId>) -> Value {
    let mut p = Object::new();
    if let Some(network) = network {
        put(&mut p, "virtualNetwork", reference(network));
    }
    json!({ "id": pool.as_str(), "name": pool.name(), "properties": p })
}

fn direction_name(direction: Direction) -> &'static str {
    match direction {
        Direction::Inbound => "Inbound",
        Direction::Outbound => "Outbound",
        Direction::InboundOutbound => "InboundOutbound",
        Direction::Unknown => "Unknown",
    }
}

fn action_name(action: UpdateAction) -> &'static str {
    match action {
        UpdateAction::FullUpdate => "FullUpdate",
        UpdateAction::PartialUpdate => "PartialUpdate",
    }
}

/// The body of `updateAddressLocations` as text.
#[must_use]
pub fn locations_update_text(update: &LocationsUpdate) -> String {
    serde_json::to_string(&UpdateBody(update)).expect("it has no map and no key that is no text")
}

/// The body of `updateAddressLocations`, for one that is looked at rather than sent: of tens of
/// thousands of addresses the text takes a twentieth of the room.
#[must_use]
pub fn locations_update(update: &LocationsUpdate) -> Value {
    serde_json::to_value(UpdateBody(update)).expect("it has no map and no key that is no text")
}

/// Writes itself as Azure takes it.
struct UpdateBody<'a>(&'a LocationsUpdate);

struct LocationBody<'a>(&'a LocationUpdate);

struct AddressBody<'a>(&'a IpAddr, &'a ServiceNames);

impl Serialize for UpdateBody<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let LocationsUpdate { action, locations } = self.0;
        let mut body = to.serialize_struct("UpdateBody", 2)?;
        body.serialize_field("action", action_name(*action))?;
        body.serialize_field("addressLocations", &List(|| locations.iter().map(LocationBody)))?;
        body.end()
    }
}

impl Serialize for LocationBody<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let LocationUpdate { location, action, addresses } = self.0;
        let entries = || addresses.iter().map(|(address, names)| AddressBody(address, names));
        let mut body = to.serialize_struct("LocationBody", 3)?;
        body.serialize_field("addressLocation", location)?;
        body.serialize_field("addressUpdateAction", action_name(*action))?;
        body.serialize_field("addresses", &List(entries))?;
        body.end()
    }
}

impl Serialize for AddressBody<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let Self(address, services) = self;
        let mut body = to.serialize_struct("AddressBody", 2)?;
        body.serialize_field("address", address)?;
        body.serialize_field("services", &List(|| services.iter()))?;
        body.end()
    }
}

/// A list that is written while it is walked.
struct List<F>(F);

impl<F, I> Serialize for List<F>
where
    F: Fn() -> I,
    I: Iterator<Item: Serialize>,
{
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq((self.0)())
    }
}
