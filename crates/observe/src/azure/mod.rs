//! Bodies from Azure enter the World.
//!
//! # Guarantees
//! A resource that is as it was keeps its place in memory. An item of a list that cannot be read
//! is left out and reported; what is held of it already stays.

mod gateway;
mod member;
mod resource;

pub use gateway::{apply_locations_update, apply_services_update};
pub use resource::{apply_resource, remove};

use crate::apply::Applied;
use arm::body::{self, BodyError};
use member::carry_over;
use model::azure::PoolMember;
use model::world::{Azure, ById, Fact, Need};
use model::{Policy, ResourceId};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a read brought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Read {
    /// Whether anything changed.
    pub applied: Applied,
    /// Items that could not be read.
    pub problems: Vec<BodyError>,
}

/// Takes all items of a list (of a single resource: that one).
pub fn apply_list(azure: &mut Azure, policy: &Policy, need: &Need, items: &[Value]) -> Read {
    let mut problems = Vec::new();
    let p = &mut problems;
    let applied = match need {
        Need::Balancers => {
            list(&mut azure.balancers, items, p, body::read_load_balancer, |r| &r.id)
        }
        Need::PublicIps(group) => {
            let fact = azure.public_ips.entry(group.clone()).or_default();
            list(fact, items, p, body::read_public_ip, |r| &r.id)
        }
        Need::PrivateLinks(group) => {
            let fact = azure.private_links.entry(group.clone()).or_default();
            list(fact, items, p, body::read_private_link_service, |r| &r.id)
        }
        Need::NatGateways => {
            list(&mut azure.nat_gateways, items, p, body::read_nat_gateway, |r| &r.id)
        }
        Need::VirtualMachines => {
            list(&mut azure.virtual_machines, items, p, body::read_virtual_machine, |r| &r.id)
        }
        Need::ScaleSets => members(&mut azure.scale_sets, items, p),
        Need::ScaleSetVms(set) => {
            members(azure.scale_set_vms.entry(set.clone()).or_default(), items, p)
        }
        Need::NetworkInterfaces => members(&mut azure.network_interfaces, items, p),
        Need::SecurityGroup => {
            single(&mut azure.security_group, items, p, body::read_security_group)
        }
        Need::Subnet(id) => {
            let fact = azure.subnets.entry(id.clone()).or_default();
            single(fact, items, p, body::read_subnet)
        }
        Need::Zones => set(&mut azure.zones, zones(items, &policy.location)),
        Need::GatewayServices => set(&mut azure.gateway_services, gateway::services(items, p)),
        Need::GatewayLocations => {
            let (locations, unread) = body::read_locations(items);
            p.extend(unread);
            set(&mut azure.gateway_locations, Arc::new(locations))
        }
    };
    Read { applied, problems }
}

/// Takes the news that what was to be read does not exist: a list is empty then, but a Service
/// Gateway without tables is one that has to be made first.
pub fn apply_missing(azure: &mut Azure, need: &Need) -> Applied {
    match need {
        Need::Balancers => set(&mut azure.balancers, ById::new()),
        Need::PublicIps(group) => {
            set(azure.public_ips.entry(group.clone()).or_default(), ById::new())
        }
        Need::PrivateLinks(group) => {
            set(azure.private_links.entry(group.clone()).or_default(), ById::new())
        }
        Need::SecurityGroup => set(&mut azure.security_group, None),
        Need::Subnet(id) => set(azure.subnets.entry(id.clone()).or_default(), None),
        Need::ScaleSets => set(&mut azure.scale_sets, ById::new()),
        Need::ScaleSetVms(id) => {
            set(azure.scale_set_vms.entry(id.clone()).or_default(), ById::new())
        }
        Need::NetworkInterfaces => set(&mut azure.network_interfaces, ById::new()),
        Need::VirtualMachines => set(&mut azure.virtual_machines, ById::new()),
        Need::NatGateways => set(&mut azure.nat_gateways, ById::new()),
        Need::Zones => apply_unreadable(azure, need, "Azure does not know the subscription"),
        Need::GatewayServices | Need::GatewayLocations => {
            apply_unreadable(azure, need, "the Service Gateway does not exist")
        }
    }
}

/// Takes the news that something cannot be read until somebody does something about it.
pub fn apply_unreadable(azure: &mut Azure, need: &Need, why: &str) -> Applied {
    match need {
        Need::Balancers => spoil(&mut azure.balancers, why),
        Need::PublicIps(group) => spoil(azure.public_ips.entry(group.clone()).or_default(), why),
        Need::PrivateLinks(group) => {
            spoil(azure.private_links.entry(group.clone()).or_default(), why)
        }
        Need::SecurityGroup => spoil(&mut azure.security_group, why),
        Need::Subnet(id) => spoil(azure.subnets.entry(id.clone()).or_default(), why),
        Need::Zones => spoil(&mut azure.zones, why),
        Need::ScaleSets => spoil(&mut azure.scale_sets, why),
        Need::ScaleSetVms(id) => spoil(azure.scale_set_vms.entry(id.clone()).or_default(), why),
        Need::NetworkInterfaces => spoil(&mut azure.network_interfaces, why),
        Need::VirtualMachines => spoil(&mut azure.virtual_machines, why),
        Need::NatGateways => spoil(&mut azure.nat_gateways, why),
        Need::GatewayServices => spoil(&mut azure.gateway_services, why),
        Need::GatewayLocations => spoil(&mut azure.gateway_locations, why),
    }
}

fn set<T: PartialEq>(fact: &mut Fact<T>, value: T) -> Applied {
    if fact.known() == Some(&value) {
        return Applied::Unchanged;
    }
    *fact = Fact::Known(value);
    Applied::Changed
}

fn spoil<T>(fact: &mut Fact<T>, why: &str) -> Applied {
    if matches!(fact, Fact::Unreadable(held) if **held == *why) {
        return Applied::Unchanged;
    }
    *fact = Fact::Unreadable(Arc::from(why));
    Applied::Changed
}

/// The held one where nothing changed.
fn shared<T: PartialEq>(held: Option<&Arc<T>>, new: T) -> Arc<T> {
    match held {
        Some(held) if **held == new => Arc::clone(held),
        _ => Arc::new(new),
    }
}

fn list<T: PartialEq>(
    fact: &mut Fact<ById<T>>,
    items: &[Value],
    problems: &mut Vec<BodyError>,
    read: impl Fn(&Value) -> Result<T, BodyError>,
    id: impl Fn(&T) -> &ResourceId,
) -> Applied {
    let held = fact.known();
    let mut found = BTreeMap::new();
    for item in items {
        match read(item) {
            Ok(new) => {
                let key = id(&new).clone();
                let value = shared(held.and_then(|h| h.get(&key)), new);
                found.insert(key, value);
            }
            Err(problem) => {
                // It exists all the same: better what was known of it than nothing.
                let known = problem.id.as_ref().and_then(|id| held?.get_key_value(id));
                if let Some((id, value)) = known {
                    found.insert(id.clone(), Arc::clone(value));
                }
                problems.push(problem);
            }
        }
    }
    set(fact, found)
}

fn members(
    fact: &mut Fact<ById<PoolMember>>,
    items: &[Value],
    problems: &mut Vec<BodyError>,
) -> Applied {
    let held = fact.known().cloned().unwrap_or_default();
    let read = |item: &Value| {
        let new = body::read_pool_member(item)?;
        let old = held.get(&new.id).map(AsRef::as_ref);
        Ok(carry_over(old, new, item))
    };
    list(fact, items, problems, read, |r| &r.id)
}

fn single<T: PartialEq>(
    fact: &mut Fact<Option<Arc<T>>>,
    items: &[Value],
    problems: &mut Vec<BodyError>,
    read: impl Fn(&Value) -> Result<T, BodyError>,
) -> Applied {
    let Some(item) = items.first() else { return set(fact, None) };
    match read(item) {
        Ok(new) => {
            let held = fact.known().and_then(Option::as_ref);
            let new = shared(held, new);
            set(fact, Some(new))
        }
        Err(problem) => {
            let why = problem.to_string();
            problems.push(problem);
            if fact.known().is_some() { Applied::Unchanged } else { spoil(fact, &why) }
        }
    }
}

/// The zones that the compute provider reports for a region, in its order.
fn zones(items: &[Value], location: &str) -> Vec<Arc<str>> {
    let array = |value: Option<&'_ Value>| -> Vec<Value> {
        value.and_then(Value::as_array).cloned().unwrap_or_default()
    };
    let folded = |value: &Value| -> Option<String> {
        Some(value.as_str()?.chars().filter(|c| !c.is_whitespace()).collect::<String>())
    };
    let types = items.iter().flat_map(|item| array(item.get("resourceTypes")));
    let machines = types.filter(|t| {
        let kind = t.get("resourceType").and_then(Value::as_str);
        kind.is_some_and(|k| k.eq_ignore_ascii_case("virtualMachines"))
    });
    let mappings = machines.flat_map(|t| array(t.get("zoneMappings")));
    let mut here = mappings.filter(|m| {
        let region = m.get("location").and_then(folded);
        region.is_some_and(|r| r.eq_ignore_ascii_case(location))
    });
    let zones = here.next().map(|m| array(m.get("zones"))).unwrap_or_default();
    zones.iter().filter_map(Value::as_str).map(Arc::from).collect()
}
