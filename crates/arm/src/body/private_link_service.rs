//! Private Link Services.

use super::compose::{
    child, head, put, put_list, put_location, put_some, put_tags, reference, references, texts,
    whole,
};
use super::fields::{
    BodyError, Child, Envelope, Object, address, flag, reference as read_reference, take,
    take_list, take_references, take_texts, word,
};
use super::public_ip::{ALLOCATIONS, allocation_name};
use model::Family;
use model::azure::{
    Allocation, ConnectionState, PrivateEndpointConnection, PrivateLinkAddress, PrivateLinkRank,
    PrivateLinkService, RestFields,
};
use serde_json::{Value, json};
use std::sync::Arc;

const FRONTENDS: &str = "loadBalancerFrontendIpConfigurations";
const ADDRESSES: &str = "ipConfigurations";

/// Reads a Private Link Service.
///
/// # Errors
/// The body is no object or has no id.
pub fn read_private_link_service(body: &Value) -> Result<PrivateLinkService, BodyError> {
    let read_only = ["alias", "networkInterfaces"];
    let mut found = Envelope::open("Private Link Service", body, &read_only)?;
    let p = &mut found.properties;
    let connections = take_list(p, "privateEndpointConnections");
    Ok(PrivateLinkService {
        id: found.id.clone(),
        etag: found.etag.clone(),
        location: Arc::clone(&found.location),
        edge_zone: found.edge_zone.clone(),
        tags: found.tags.clone(),
        frontends: take_references(p, FRONTENDS),
        addresses: take_addresses(p),
        proxy_protocol: take(p, "enableProxyProtocol", flag),
        fqdns: take_texts(p, "fqdns"),
        visibility: take_subscriptions(p, "visibility"),
        auto_approval: take_subscriptions(p, "autoApproval"),
        connections: connections.iter().filter_map(read_connection).collect(),
        provisioning: found.provisioning,
        rest: found.rest(),
    })
}

fn read_connection(item: &Value) -> Option<PrivateEndpointConnection> {
    let status = &item["properties"]["privateLinkServiceConnectionState"]["status"];
    let approved = status.as_str().is_some_and(|status| status.eq_ignore_ascii_case("Approved"));
    let state = if approved { ConnectionState::Connected } else { ConnectionState::Other };
    Some(PrivateEndpointConnection { id: read_reference(item)?, state })
}

/// What is not in the form that we write stays in the list.
fn take_addresses(p: &mut Object) -> Vec<PrivateLinkAddress> {
    let mut addresses = Vec::new();
    let mut strange = take_list(p, ADDRESSES);
    strange.retain(|item| match read_address(item) {
        Some(address) => {
            addresses.push(address);
            false
        }
        None => !item.is_null(),
    });
    put_list(p, ADDRESSES, strange);
    addresses
}

fn read_address(item: &Value) -> Option<PrivateLinkAddress> {
    let mut found = Child::open("IP configuration", item, &[]).ok()?;
    let p = &mut found.properties;
    let subnet = take(p, "subnet", read_reference)?;
    let allocation = take(p, "privateIPAllocationMethod", word(&ALLOCATIONS));
    let written = take(p, "privateIPAddress", address);
    let v4 = word(&[("IPv4", Family::V4)]);
    take(p, "privateIPAddressVersion", v4);
    let primary = take(p, "primary", flag).unwrap_or(false);
    // Azure fills in the address of a dynamic one, too.
    let address = match allocation {
        Some(Allocation::Static) => Some(written?),
        Some(Allocation::Dynamic) | None => None,
    };
    let rank = if primary { PrivateLinkRank::Primary } else { PrivateLinkRank::Secondary };
    let name = Arc::clone(&found.name);
    Some(PrivateLinkAddress { name, subnet, address, rank, rest: found.rest() })
}

fn take_subscriptions(p: &mut Object, key: &str) -> Vec<Arc<str>> {
    let Some(Value::Object(fields)) = p.get_mut(key) else { return Vec::new() };
    let found = take_texts(fields, "subscriptions");
    if fields.values().all(Value::is_null) {
        p.shift_remove(key);
    }
    found
}

/// Writes a Private Link Service.
#[must_use]
pub fn write_private_link_service(service: &PrivateLinkService) -> Value {
    let PrivateLinkService {
        id,
        etag: _,
        location,
        edge_zone,
        tags,
        frontends,
        addresses,
        proxy_protocol,
        fqdns,
        visibility,
        auto_approval,
        connections: _,
        provisioning: _,
        rest,
    } = service;
    let mut rest = rest.unpack();
    let mut top = head(id);
    put_location(&mut top, location, edge_zone.as_ref());
    put_tags(&mut top, tags.as_ref(), &mut rest);
    let mut p = Object::new();
    let mut items: Vec<Value> = addresses.iter().map(write_address).collect();
    items.extend(take_list(&mut rest.properties, ADDRESSES));
    put_list(&mut p, ADDRESSES, items);
    put_list(&mut p, FRONTENDS, references(frontends));
    put_some(&mut p, "enableProxyProtocol", *proxy_protocol);
    put_list(&mut p, "fqdns", texts(fqdns));
    // As the Go controller writes them: both, where there is one.
    if !visibility.is_empty() || !auto_approval.is_empty() {
        put_subscriptions(&mut p, "visibility", visibility, &mut rest);
        put_subscriptions(&mut p, "autoApproval", auto_approval, &mut rest);
    }
    whole(top, p, rest)
}

fn write_address(address: &PrivateLinkAddress) -> Value {
    let PrivateLinkAddress { name, subnet, address, rank, rest } = address;
    let allocation = if address.is_some() { Allocation::Static } else { Allocation::Dynamic };
    let mut p = Object::new();
    put(&mut p, "privateIPAllocationMethod", allocation_name(allocation));
    put_some(&mut p, "privateIPAddress", address.map(|a| a.to_string()));
    put(&mut p, "privateIPAddressVersion", "IPv4");
    put(&mut p, "subnet", reference(subnet));
    put(&mut p, "primary", *rank == PrivateLinkRank::Primary);
    child(name, Object::new(), p, rest.unpack())
}

/// Writes a list of subscriptions, also an empty one; what was no such list stays as it is.
fn put_subscriptions(p: &mut Object, key: &str, ids: &[Arc<str>], rest: &mut RestFields) {
    if ids.is_empty() && rest.properties.contains_key(key) {
        return;
    }
    let mut fields = json!({ "subscriptions": texts(ids) });
    if let (Value::Object(fields), Some(Value::Object(other))) =
        (&mut fields, rest.properties.shift_remove(key))
    {
        fields.extend(other);
    }
    put(p, key, fields);
}
