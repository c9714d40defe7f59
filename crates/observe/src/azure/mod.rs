//! Bodies from Azure enter the World.
//!
//! # Guarantees
//! A resource that is as it was keeps its place in memory. An item of a list that cannot be read
//! is left out and reported; what is held of it already stays.

mod again;
mod gateway;
mod resource;
mod share;

pub use again::Memo;
pub use gateway::{apply_locations_update, apply_services_update};
pub use resource::{apply_resource, remove};

use crate::apply::Applied;
use again::Again;
use arm::JsonItem;
use arm::body::{self, BodyError, LocationTable};
use model::azure::PoolMember;
use model::world::{Azure, ById, Fact, Need};
use model::{Policy, ResourceId};
use resource::carry_over;
use serde_json::Value;
use std::any::Any;
use std::borrow::Cow;
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
pub fn apply_list<T: JsonItem>(
    azure: &mut Azure,
    policy: &Policy,
    need: &Need,
    items: &[T],
) -> Read {
    let mut gathering = Gathering::default();
    gathering.take(azure, policy, need, items);
    gathering.finish(azure, need)
}

/// A list while its pages come. Each item is parsed, read and let go of: of a long list never more
/// than one page is held as JSON.
#[derive(Debug, Default)]
pub struct Gathering {
    before: Memo,
    now: Memo,
    found: Azure,
    table: LocationTable,
    problems: Vec<BodyError>,
}

impl Gathering {
    /// A list that was read before; what its items said then is not read again.
    #[must_use]
    pub fn again(before: Memo) -> Self {
        Self { before, ..Self::default() }
    }

    /// What is remembered of its items for the next time.
    pub fn memo(&mut self) -> Memo {
        std::mem::take(&mut self.now)
    }

    /// Takes the items of a page. What is as it is in `held` is not held twice.
    pub fn take<T: JsonItem>(&mut self, held: &Azure, policy: &Policy, need: &Need, items: &[T]) {
        let Self { before, now, found, table, problems } = self;
        let values = items.iter().map(JsonItem::json);
        let again = &mut Again { before, now, problems };
        match need {
            Need::Balancers => {
                let into = &mut found.balancers;
                let held = held.balancers.known();
                list(held, into, items, again, body::read_load_balancer, |r| &r.id);
            }
            Need::PublicIps(group) => {
                let into = found.public_ips.entry(group.clone()).or_default();
                let held = held.public_ips.get(group).and_then(Fact::known);
                list(held, into, items, again, body::read_public_ip, |r| &r.id);
            }
            Need::PrivateLinks(group) => {
                let into = found.private_links.entry(group.clone()).or_default();
                let held = held.private_links.get(group).and_then(Fact::known);
                list(held, into, items, again, body::read_private_link_service, |r| &r.id);
            }
            Need::NatGateways => {
                let into = &mut found.nat_gateways;
                let held = held.nat_gateways.known();
                list(held, into, items, again, body::read_nat_gateway, |r| &r.id);
            }
            Need::VirtualMachines => {
                let held = held.virtual_machines.known();
                let into = &mut found.virtual_machines;
                list(held, into, items, again, body::read_virtual_machine, |r| &r.id);
            }
            Need::ScaleSets => {
                members(held.scale_sets.known(), &mut found.scale_sets, items, again);
            }
            Need::ScaleSetVms(set) => {
                let into = found.scale_set_vms.entry(set.clone()).or_default();
                members(held.scale_set_vms.get(set).and_then(Fact::known), into, items, again);
            }
            Need::NetworkInterfaces => {
                members(
                    held.network_interfaces.known(),
                    &mut found.network_interfaces,
                    items,
                    again,
                );
            }
            Need::SecurityGroup => {
                let (held, into) = (&held.security_group, &mut found.security_group);
                single(held, into, items, again, body::read_security_group, |r| &r.id);
            }
            Need::Subnet(id) => {
                let into = found.subnets.entry(id.clone()).or_default();
                let held = held.subnets.get(id).unwrap_or(&Fact::Unknown);
                single(held, into, items, again, body::read_subnet, |r| &r.id);
            }
            Need::Zones => {
                let items: Vec<Cow<'_, Value>> = values.collect();
                found.zones = Fact::Known(zones(&items, &policy.location));
            }
            Need::GatewayServices => {
                let found = opened(&mut found.gateway_services);
                let held = held.gateway_services.known();
                values.for_each(|item| gateway::service(&item, held, found, again.problems));
            }
            Need::GatewayLocations => {
                let held = held.gateway_locations.known().map(AsRef::as_ref);
                values.for_each(|item| table.add(&item, held));
            }
        }
    }

    /// The list is complete: it takes the place of what is held.
    pub fn finish(self, azure: &mut Azure, need: &Need) -> Read {
        let Self { found, table, mut problems, .. } = self;
        let applied = match need {
            Need::Balancers => {
                let found = found.balancers.map(|found| share::balancers(found, azure));
                settle(&mut azure.balancers, found)
            }
            Need::PublicIps(group) => {
                let mut found = found.public_ips;
                let share = |found: Fact<ById<_>>| found.map(|f| share::public_ips(f, azure));
                let found = found.remove(group).map(share).unwrap_or_default();
                settle(azure.public_ips.entry(group.clone()).or_default(), found)
            }
            Need::PrivateLinks(group) => {
                settle_in(&mut azure.private_links, found.private_links, group.clone())
            }
            Need::NatGateways => settle(&mut azure.nat_gateways, found.nat_gateways),
            Need::VirtualMachines => settle(&mut azure.virtual_machines, found.virtual_machines),
            Need::ScaleSets => settle(&mut azure.scale_sets, found.scale_sets),
            Need::ScaleSetVms(set) => {
                settle_in(&mut azure.scale_set_vms, found.scale_set_vms, set.clone())
            }
            Need::NetworkInterfaces => {
                settle(&mut azure.network_interfaces, found.network_interfaces)
            }
            Need::SecurityGroup => settle(&mut azure.security_group, found.security_group),
            Need::Subnet(id) => settle_in(&mut azure.subnets, found.subnets, id.clone()),
            Need::Zones => settle(&mut azure.zones, found.zones),
            Need::GatewayServices => {
                let found = found.gateway_services.map(|found| share::services(found, azure));
                settle(&mut azure.gateway_services, found)
            }
            Need::GatewayLocations => {
                let (locations, unread) = table.finish();
                problems.extend(unread);
                set(&mut azure.gateway_locations, Arc::new(locations))
            }
        };
        Read { applied, problems }
    }
}

/// Takes the news that what was to be read does not exist: a list is empty then, but a Service
/// Gateway without tables is one that has to be made first.
pub fn apply_missing(azure: &mut Azure, need: &Need) -> Applied {
    let shelf = azure.shelf_mut(need);
    Applied::of(match need {
        Need::Zones => shelf.spoil("Azure does not know the subscription"),
        Need::GatewayServices | Need::GatewayLocations => {
            shelf.spoil("the Service Gateway does not exist")
        }
        _ => shelf.clear(),
    })
}

/// Takes the news that something cannot be read until somebody does something about it. What was
/// read before is kept: writes are guarded by its ETags, and to know nothing would be to take
/// everything for gone.
pub fn apply_unreadable(azure: &mut Azure, need: &Need, why: &str) -> Applied {
    match azure.answered(need) {
        Fact::Known(()) => Applied::Unchanged,
        Fact::Unknown | Fact::Unreadable(_) => Applied::of(azure.shelf_mut(need).spoil(why)),
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

/// What was found takes the place of what is held; nothing found is an empty list.
fn settle<T: PartialEq + Default>(fact: &mut Fact<T>, found: Fact<T>) -> Applied {
    match found {
        Fact::Known(found) => set(fact, found),
        Fact::Unknown => set(fact, T::default()),
        Fact::Unreadable(_) if fact.known().is_some() => Applied::Unchanged,
        Fact::Unreadable(why) => spoil(fact, &why),
    }
}

fn settle_in<K: Ord, T: PartialEq + Default>(
    facts: &mut BTreeMap<K, Fact<T>>,
    mut found: BTreeMap<K, Fact<T>>,
    key: K,
) -> Applied {
    let found = found.remove(&key).unwrap_or_default();
    settle(facts.entry(key).or_default(), found)
}

/// The value to be filled.
fn opened<T: Default>(fact: &mut Fact<T>) -> &mut T {
    if fact.known().is_none() {
        *fact = Fact::Known(T::default());
    }
    fact.known_mut().expect("it has just been made known")
}

fn list<I: JsonItem, T: PartialEq + Any + Send + Sync>(
    held: Option<&ById<T>>,
    into: &mut Fact<ById<T>>,
    items: &[I],
    again: &mut Again<'_>,
    read: impl Fn(&Value) -> Result<T, BodyError>,
    id: impl Fn(&T) -> &ResourceId,
) {
    let found = opened(into);
    let held_as = |id: &ResourceId| held.and_then(|held| held.get(id));
    for item in items {
        let is_held = |id: &_, value: &_| held_as(id).is_some_and(|held| Arc::ptr_eq(held, value));
        if let Some((id, value)) = again.find(item, is_held) {
            found.insert(id.clone(), value);
            continue;
        }
        match read(&item.json()) {
            Ok(new) => {
                let key = id(&new).clone();
                let value = shared(held_as(&key), new);
                again.keep(item, &key, &value);
                found.insert(key, value);
            }
            Err(problem) => {
                // It exists all the same: better what was known of it than nothing.
                let known = problem.id.as_ref().and_then(|id| held?.get_key_value(id));
                if let Some((id, value)) = known {
                    found.insert(id.clone(), Arc::clone(value));
                }
                again.problems.push(problem);
            }
        }
    }
}

fn members<I: JsonItem>(
    held: Option<&ById<PoolMember>>,
    into: &mut Fact<ById<PoolMember>>,
    items: &[I],
    again: &mut Again<'_>,
) {
    let read = |item: &Value| {
        let new = body::read_pool_member(item)?;
        let old = held.and_then(|held| held.get(&new.id)).map(AsRef::as_ref);
        Ok(carry_over(old, new, item))
    };
    list(held, into, items, again, read, |r| &r.id);
}

fn single<I: JsonItem, T: PartialEq + Any + Send + Sync>(
    held: &Fact<Option<Arc<T>>>,
    into: &mut Fact<Option<Arc<T>>>,
    items: &[I],
    again: &mut Again<'_>,
    read: impl Fn(&Value) -> Result<T, BodyError>,
    id: impl Fn(&T) -> &ResourceId,
) {
    let Some(item) = items.first() else { return };
    let held = held.known().and_then(Option::as_ref);
    let is_held = |_: &_, value: &_| held.is_some_and(|held| Arc::ptr_eq(held, value));
    if let Some((_, value)) = again.find(item, is_held) {
        *into = Fact::Known(Some(value));
        return;
    }
    match read(&item.json()) {
        Ok(new) => {
            let value = shared(held, new);
            again.keep(item, id(&value), &value);
            *into = Fact::Known(Some(value));
        }
        Err(problem) => {
            *into = Fact::Unreadable(Arc::from(problem.to_string()));
            again.problems.push(problem);
        }
    }
}

/// The zones that the compute provider reports for a region, in its order.
fn zones(items: &[Cow<'_, Value>], location: &str) -> Vec<Arc<str>> {
    fn array(value: Option<&Value>) -> &[Value] {
        value.and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }
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
