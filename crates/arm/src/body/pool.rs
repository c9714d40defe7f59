//! Backend address pools.

use super::compose::{child, put, put_some, reference};
use super::fields::{
    BACK_REFERENCES, BodyError, Child, Object, address, reference as read_reference, take,
    take_list, text, word,
};
use model::azure::{AdminState, Pool, PoolAddress, RestFields};
use serde_json::{Value, json};
use std::sync::Arc;

const ADDRESSES: &str = "loadBalancerBackendAddresses";
const ADMIN_STATES: [(&str, AdminState); 3] =
    [("None", AdminState::None), ("Up", AdminState::Up), ("Down", AdminState::Down)];
/// Fields of an address that Azure fills in.
const ADDRESS_READ_ONLY: [&str; 2] =
    ["networkInterfaceIPConfiguration", "inboundNatRulesPortMapping"];

/// Addresses with fields that are not known are typed, and stay in the rest as well; the two are
/// put together again when the pool is written.
pub(super) fn read_pool(body: &Value) -> Result<Pool, BodyError> {
    let mut found = Child::open("backend pool", body, &BACK_REFERENCES)?;
    let p = &mut found.properties;
    p.shift_remove("outboundRule");
    let nics = take_list(p, "backendIPConfigurations");
    let mut addresses = Vec::new();
    let mut strange = Vec::new();
    for item in take_list(p, ADDRESSES) {
        let known = read_address(&item);
        if known.as_ref().is_none_or(|(_, plain)| *plain == Plain::No) && is_kept(&item) {
            strange.push(item);
        }
        addresses.extend(known.map(|(address, _)| address));
    }
    if !strange.is_empty() {
        put(p, ADDRESSES, strange);
    }
    addresses.sort();
    Ok(Pool {
        name: Arc::clone(&found.name),
        network: take(p, "virtualNetwork", read_reference),
        addresses,
        nics: nics.iter().filter_map(read_reference).collect(),
        rest: found.rest(),
    })
}

/// Whether an address has only fields that are typed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Plain {
    Yes,
    No,
}

fn read_address(item: &Value) -> Option<(PoolAddress, Plain)> {
    let mut top = item.as_object()?.clone();
    let Some(Value::Object(mut p)) = top.shift_remove("properties") else { return None };
    let address = take(&mut p, "ipAddress", address)?;
    let known = PoolAddress {
        address,
        name: take(&mut top, "name", text).unwrap_or_else(|| Arc::from("")),
        admin: take(&mut p, "adminState", word(&ADMIN_STATES)).unwrap_or_default(),
        network: take(&mut p, "virtualNetwork", read_reference),
    };
    let plain = top.is_empty()
        && p.iter().all(|(k, v)| v.is_null() || ADDRESS_READ_ONLY.contains(&k.as_str()));
    Some((known, if plain { Plain::Yes } else { Plain::No }))
}

/// An entry without an address stands for a NIC and is Azure's to list, unless it is the frontend
/// of a regional load balancer in a global one.
fn is_kept(item: &Value) -> bool {
    let filled = |key: &str| {
        let field = item.get("properties").and_then(|p| p.get(key));
        field.is_some_and(|v| !v.is_null() && v != "")
    };
    filled("ipAddress") || filled("loadBalancerFrontendIPConfiguration")
}

pub(super) fn write_pool(pool: &Pool) -> Value {
    let Pool { name, network, addresses, nics, rest } = pool;
    let mut rest = rest.unpack();
    let mut p = Object::new();
    put_some(&mut p, "virtualNetwork", network.as_ref().map(reference));
    let items = write_addresses(addresses, &mut rest);
    if !items.is_empty() || (network.is_some() && nics.is_empty()) {
        put(&mut p, ADDRESSES, items);
    }
    child(name, Object::new(), p, rest)
}

fn write_addresses(addresses: &[PoolAddress], rest: &mut RestFields) -> Vec<Value> {
    let strange = take_list(&mut rest.properties, ADDRESSES);
    let (with_address, other): (Vec<Value>, Vec<Value>) =
        strange.into_iter().partition(|item| read_address(item).is_some());
    let mut items: Vec<Value> = addresses
        .iter()
        .map(|address| {
            let same = |item: &&Value| {
                read_address(item).is_some_and(|(known, _)| known.address == address.address)
            };
            write_address(address, with_address.iter().find(same))
        })
        .collect();
    items.extend(other);
    items
}

fn write_address(address: &PoolAddress, found: Option<&Value>) -> Value {
    let PoolAddress { address, name, admin, network } = address;
    let mut item = found.cloned().unwrap_or_else(|| json!({}));
    let mut p = match item.get_mut("properties").map(Value::take) {
        Some(Value::Object(mut p)) => {
            p.retain(|key, value| !value.is_null() && !ADDRESS_READ_ONLY.contains(&key.as_str()));
            p
        }
        _ => Object::new(),
    };
    put(&mut p, "ipAddress", address.to_string());
    match admin {
        // A word that is not known stays.
        AdminState::None => drop(take(&mut p, "adminState", word(&ADMIN_STATES))),
        AdminState::Up => put(&mut p, "adminState", "Up"),
        AdminState::Down => put(&mut p, "adminState", "Down"),
    }
    p.shift_remove("virtualNetwork");
    put_some(&mut p, "virtualNetwork", network.as_ref().map(reference));
    if let Value::Object(top) = &mut item {
        top.shift_remove("properties");
        if !name.is_empty() {
            put(top, "name", &**name);
        }
        put(top, "properties", p);
    }
    item
}
