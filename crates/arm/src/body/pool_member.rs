//! What brings nodes into pools through their NICs: models of scale sets, their instances, NICs.

use super::compose::{head, put, put_location, put_tags, references, whole};
use super::fields::{
    BodyError, Envelope, Object, drop_fields, family, flag, reference, take_references, text,
};
use model::azure::{
    Ipv6Service, MemberConfiguration, MemberKind, MemberState, PoolMember, PrivateLinkRank,
    RestFields,
};
use model::{Family, ResourceId};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;

const POOLS: &str = "loadBalancerBackendAddressPools";
/// The network API that Azure demands where the model of a flexible scale set has NICs, of the two
/// that `networkApiVersion` takes (2020-11-01 and 2022-11-01: the published models of
/// Microsoft.Compute 2025-04-01). The Go cloud provider sends this one.
const FLEXIBLE_NETWORK_API: &str = "2020-11-01";
/// Power states of a VM that takes no traffic and no write.
const STOPPED: [&str; 5] = ["stopped", "stopping", "deallocated", "deallocating", "unknown"];

/// Reads a scale set, one of its instances, or a NIC: its id says which.
///
/// Of scale sets and instances only what a PUT has to carry is kept, which is not all: Azure
/// leaves alone what such a PUT does not name.
///
/// # Errors
/// The body is no object, or has no id, or an id of another kind.
pub fn read_pool_member(body: &Value) -> Result<PoolMember, BodyError> {
    let found = Envelope::open("pool member", body, &[])?;
    let parent = found.id.parent();
    let kind_of =
        |id: &ResourceId| id.folded().rsplit('/').nth(1).map(str::to_owned).unwrap_or_default();
    let of_set = parent.as_ref().is_some_and(|p| kind_of(p) == "virtualmachinescalesets");
    match kind_of(&found.id).as_str() {
        "virtualmachinescalesets" => Ok(read_scale_set(found)),
        "virtualmachines" if of_set => Ok(read_instance(found, parent)),
        "networkinterfaces" => Ok(read_nic(found)),
        other => Err(BodyError {
            kind: "pool member",
            id: Some(found.id.clone()),
            reason: format!("{other} is no kind that joins pools"),
        }),
    }
}

fn read_scale_set(mut found: Envelope) -> PoolMember {
    let mode = found.properties.get("orchestrationMode").and_then(Value::as_str);
    let flexible = mode.is_some_and(|m| m.eq_ignore_ascii_case("Flexible"));
    let kind = if flexible { MemberKind::FlexibleScaleSet } else { MemberKind::ScaleSet };
    let profile = found.properties.get("virtualMachineProfile");
    let prefix = profile
        .and_then(|p| p.get("osProfile"))
        .and_then(|o| o.get("computerNamePrefix"))
        .and_then(text);
    let host = prefix.or_else(|| Some(Arc::from(found.id.name())));
    let ipv6 = ipv6_service(profile);
    let network = profile.and_then(|p| p.get("networkProfile"));
    let api = network.and_then(|n| n.get("networkApiVersion")).and_then(text);
    let mut nics = cards(network);
    let configurations = take_pools(&mut nics);
    let mut kept = Object::new();
    put(&mut kept, "networkInterfaceConfigurations", nics);
    if let Some(api) = api {
        put(&mut kept, "networkApiVersion", &*api);
    }
    let mut properties = Object::new();
    put(&mut properties, "virtualMachineProfile", json!({ "networkProfile": kept }));
    let state = usable(!has_state(&found, &["Deleting"]));
    found.properties = properties;
    PoolMember { ipv6, ..member(found, kind, host, state, configurations, None) }
}

/// The image says whether the nodes run Windows Server 2019.
fn ipv6_service(profile: Option<&Value>) -> Ipv6Service {
    let at = |path: &str| profile.and_then(|p| p.pointer(path)).and_then(Value::as_str);
    let windows = at("/storageProfile/osDisk/osType").is_some_and(|s| s == "Windows")
        || profile.is_some_and(|p| p.pointer("/osProfile/windowsConfiguration").is_some());
    let of_2019 = ["id", "offer", "sku"].iter().any(|key| {
        let name = at(&format!("/storageProfile/imageReference/{key}")).unwrap_or("");
        let image = name.to_lowercase();
        let image = image.split_once("/images/").map_or(image.as_str(), |(_, image)| image);
        image.contains("2019")
    });
    if windows && of_2019 { Ipv6Service::Refused } else { Ipv6Service::Served }
}

/// The state of an instance without an instance view is not known, so it is not written.
fn read_instance(mut found: Envelope, set: Option<ResourceId>) -> PoolMember {
    let p = &found.properties;
    let host = p.get("osProfile").and_then(|o| o.get("computerName")).and_then(text);
    let state = usable(!has_state(&found, &["Deleting", "Unknown"]) && is_running(p));
    let mut nics = cards(p.get("networkProfileConfiguration"));
    let configurations = take_pools(&mut nics);
    let mut properties = Object::new();
    if let Some(hardware) = p.get("hardwareProfile") {
        put(&mut properties, "hardwareProfile", hardware.clone());
    }
    put(
        &mut properties,
        "networkProfileConfiguration",
        json!({ "networkInterfaceConfigurations": nics }),
    );
    found.properties = properties;
    member(found, MemberKind::ScaleSetVm, host, state, configurations, set)
}

fn read_nic(mut found: Envelope) -> PoolMember {
    let failed = has_state(&found, &["Failed", "Canceled"]);
    let state = match usable(!has_state(&found, &["Deleting"])) {
        MemberState::Usable if failed => MemberState::Failed,
        state => state,
    };
    let owner = found.properties.shift_remove("virtualMachine");
    let owner = owner.as_ref().and_then(reference);
    let configurations = match found.properties.get_mut("ipConfigurations") {
        Some(Value::Array(items)) => {
            items.iter_mut().filter_map(Value::as_object_mut).for_each(drop_read_only);
            take_configurations(items)
        }
        _ => Vec::new(),
    };
    // A NIC is written whole.
    let mut top = std::mem::take(&mut found.top);
    if let Some(tags) = &found.tags {
        put_tags(&mut top, Some(tags), &mut RestFields::default());
    }
    let mut nic = member(found, MemberKind::NetworkInterface, None, state, configurations, owner);
    let mut rest = nic.rest.unpack();
    rest.top.extend(top);
    nic.rest = rest.into();
    nic
}

fn usable(is: bool) -> MemberState {
    if is { MemberState::Usable } else { MemberState::Unusable }
}

fn drop_read_only(configuration: &mut Object) {
    drop_fields(configuration, &["etag"]);
    if let Some(Value::Object(p)) = configuration.get_mut("properties") {
        drop_fields(p, &["provisioningState"]);
    }
}

fn member(
    found: Envelope,
    kind: MemberKind,
    host: Option<Arc<str>>,
    state: MemberState,
    configurations: Vec<MemberConfiguration>,
    owner: Option<ResourceId>,
) -> PoolMember {
    let mut top = Object::new();
    if let Some(zone) = &found.edge_zone {
        put(&mut top, "extendedLocation", json!({ "name": &**zone, "type": "EdgeZone" }));
    }
    PoolMember {
        id: found.id,
        kind,
        etag: found.etag,
        location: found.location,
        host,
        state,
        ipv6: Ipv6Service::Served,
        configurations,
        owner,
        rest: RestFields { top, properties: found.properties }.into(),
    }
}

fn has_state(found: &Envelope, states: &[&str]) -> bool {
    states.iter().any(|s| found.state.eq_ignore_ascii_case(s))
}

fn is_running(properties: &Object) -> bool {
    let statuses = properties.get("instanceView").and_then(|v| v.get("statuses"));
    let codes = statuses.and_then(Value::as_array).into_iter().flatten();
    let mut power = codes.filter_map(|s| {
        let (kind, state) = s.get("code")?.as_str()?.split_once('/')?;
        kind.eq_ignore_ascii_case("PowerState").then_some(state)
    });
    power.next().is_some_and(|state| !STOPPED.iter().any(|s| state.eq_ignore_ascii_case(s)))
}

/// The NIC configurations of a network profile.
fn cards(profile: Option<&Value>) -> Vec<Value> {
    let cards = profile.and_then(|p| p.get("networkInterfaceConfigurations"));
    cards.and_then(Value::as_array).cloned().unwrap_or_default()
}

/// The primary NIC: the only one, or the one that says so.
fn primary(cards: &mut [Value]) -> Option<&mut Value> {
    if cards.len() == 1 {
        return cards.first_mut();
    }
    cards.iter_mut().find(|card| property(card, "primary").and_then(flag) == Some(true))
}

fn property<'a>(item: &'a Value, key: &str) -> Option<&'a Value> {
    item.get("properties")?.get(key)
}

fn take_pools(cards: &mut [Value]) -> Vec<MemberConfiguration> {
    match primary(cards).and_then(|card| card.pointer_mut("/properties/ipConfigurations")) {
        Some(Value::Array(items)) => take_configurations(items),
        _ => Vec::new(),
    }
}

/// Reads IP configurations and takes their pools out; what has no name is left alone.
fn take_configurations(items: &mut [Value]) -> Vec<MemberConfiguration> {
    let single = items.len() == 1;
    items
        .iter_mut()
        .filter_map(|item| {
            let name = item.get("name").and_then(text)?;
            let version = property(item, "privateIPAddressVersion").and_then(family);
            let said = property(item, "primary").and_then(flag) == Some(true);
            let primary = single || said;
            let pools = match item.get_mut("properties") {
                Some(Value::Object(p)) => {
                    p.retain(|key, value| key != POOLS || !value.is_null());
                    take_references(p, POOLS)
                }
                _ => BTreeSet::new(),
            };
            Some(MemberConfiguration {
                name,
                family: version.unwrap_or(Family::V4),
                rank: if primary { PrivateLinkRank::Primary } else { PrivateLinkRank::Secondary },
                pools,
            })
        })
        .collect()
}

/// Writes a pool member. The pools of each IP configuration are written even when there are none,
/// because in a scale set an absent list would leave the pools as they are.
#[must_use]
pub fn write_pool_member(member: &PoolMember) -> Value {
    let PoolMember {
        id,
        kind,
        etag: _,
        location,
        host: _,
        state: _,
        ipv6: _,
        configurations,
        owner: _,
        rest,
    } = member;
    let mut rest = rest.unpack();
    let mut top = head(id);
    put_location(&mut top, location, None);
    let mut typed = Object::new();
    let p = &mut rest.properties;
    match kind {
        MemberKind::ScaleSet | MemberKind::FlexibleScaleSet => {
            let network = section(section(p, "virtualMachineProfile"), "networkProfile");
            put_pools(network, configurations);
            if *kind == MemberKind::FlexibleScaleSet {
                network.entry("networkApiVersion").or_insert(FLEXIBLE_NETWORK_API.into());
                put(&mut typed, "orchestrationMode", "Flexible");
            }
        }
        MemberKind::ScaleSetVm => {
            put_pools(section(p, "networkProfileConfiguration"), configurations);
        }
        MemberKind::NetworkInterface => {
            if let Some(Value::Array(items)) = p.get_mut("ipConfigurations") {
                put_configurations(items, configurations);
            }
        }
    }
    whole(top, typed, rest)
}

fn put_pools(network: &mut Object, configurations: &[MemberConfiguration]) {
    let Some(Value::Array(cards)) = network.get_mut("networkInterfaceConfigurations") else {
        return;
    };
    if let Some(Value::Array(items)) =
        primary(cards).and_then(|card| card.pointer_mut("/properties/ipConfigurations"))
    {
        put_configurations(items, configurations);
    }
}

fn put_configurations(items: &mut [Value], configurations: &[MemberConfiguration]) {
    let mut known: Vec<&MemberConfiguration> = configurations.iter().collect();
    for item in items {
        let name = item.get("name").and_then(text);
        // Taken away once used, so that two of one name each keep their own.
        let found = known.iter().position(|c| Some(&c.name) == name.as_ref());
        let Some(configuration) = found.map(|i| known.remove(i)) else { continue };
        let Value::Object(fields) = item else { continue };
        let p = section(fields, "properties");
        if !p.contains_key(POOLS) {
            put(p, POOLS, references(&configuration.pools));
        }
    }
}

/// The object below a key, made where there is none.
fn section<'a>(fields: &'a mut Object, key: &str) -> &'a mut Object {
    let found = fields.entry(key).or_insert(Value::Null);
    if !found.is_object() {
        *found = Value::Object(Map::new());
    }
    found.as_object_mut().expect("it was made an object just above")
}
