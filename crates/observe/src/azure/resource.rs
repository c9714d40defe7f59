//! One resource at a time: answers to PUT and GET, and deletions.

use super::{set, shared};
use crate::apply::Applied;
use arm::body::{self, BodyError};
use model::azure::{MemberKind, MemberState, PoolMember};
use model::world::{Azure, ById, Fact};
use model::{Group, Policy, ResourceId};
use serde_json::Value;
use std::borrow::Cow;
use std::sync::Arc;

/// The kinds of resource that are held one by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Held {
    Balancer,
    PublicIp,
    PrivateLink,
    NatGateway,
    SecurityGroup,
    Subnet,
    ScaleSet,
    ScaleSetVm,
    NetworkInterface,
    VirtualMachine,
}

fn held(id: &ResourceId) -> Option<Held> {
    let folded = id.folded();
    let (_, kind) = folded.rsplit_once("/providers/")?;
    let segments: Vec<&str> = kind.split('/').collect();
    match segments.as_slice() {
        ["microsoft.network", "loadbalancers", _] => Some(Held::Balancer),
        ["microsoft.network", "publicipaddresses", _] => Some(Held::PublicIp),
        ["microsoft.network", "privatelinkservices", _] => Some(Held::PrivateLink),
        ["microsoft.network", "natgateways", _] => Some(Held::NatGateway),
        ["microsoft.network", "networksecuritygroups", _] => Some(Held::SecurityGroup),
        ["microsoft.network", "virtualnetworks", _, "subnets", _] => Some(Held::Subnet),
        ["microsoft.network", "networkinterfaces", _] => Some(Held::NetworkInterface),
        ["microsoft.compute", "virtualmachinescalesets", _] => Some(Held::ScaleSet),
        ["microsoft.compute", "virtualmachinescalesets", _, "virtualmachines", _] => {
            Some(Held::ScaleSetVm)
        }
        ["microsoft.compute", "virtualmachines", _] => Some(Held::VirtualMachine),
        _ => None,
    }
}

/// A body with the id that was asked for; the answer's may be absent, or written otherwise.
fn named<'v>(item: &'v Value, id: &ResourceId) -> Cow<'v, Value> {
    match item {
        Value::Object(fields) if fields.get("id").and_then(Value::as_str) != Some(id.as_str()) => {
            let mut fields = fields.clone();
            fields.insert("id".to_owned(), id.as_str().into());
            Cow::Owned(Value::Object(fields))
        }
        _ => Cow::Borrowed(item),
    }
}

/// Takes the body of one resource, which takes the place of what was held of it.
///
/// Into a list that has not been read yet nothing is put: one resource is not a list. Neither is a
/// resource that the list would not have: one of another group.
///
/// # Errors
/// The body cannot be read; what was held stays.
pub fn apply_resource(
    azure: &mut Azure,
    policy: &Policy,
    id: &ResourceId,
    item: &Value,
) -> Result<Applied, BodyError> {
    let Some(kind) = held(id) else { return Ok(Applied::Unchanged) };
    let item = named(item, id);
    let item = &*item;
    let group = id.group().unwrap_or_else(|| policy.group.clone());
    let is_in = |wanted: &Group| group == *wanted;
    Ok(match kind {
        Held::Balancer if !is_in(&policy.balancer_group) => Applied::Unchanged,
        Held::Balancer => put(&mut azure.balancers, id, body::read_load_balancer(item)?),
        Held::PublicIp => match azure.public_ips.get_mut(&group) {
            Some(fact) => put(fact, id, body::read_public_ip(item)?),
            None => Applied::Unchanged,
        },
        Held::PrivateLink => match azure.private_links.get_mut(&group) {
            Some(fact) => put(fact, id, body::read_private_link_service(item)?),
            None => Applied::Unchanged,
        },
        Held::NatGateway if !is_in(&policy.group) => Applied::Unchanged,
        Held::NatGateway => put(&mut azure.nat_gateways, id, body::read_nat_gateway(item)?),
        Held::SecurityGroup if *id != policy.security_group_id() => Applied::Unchanged,
        Held::SecurityGroup => {
            put_single(&mut azure.security_group, body::read_security_group(item)?)
        }
        Held::Subnet => {
            put_single(azure.subnets.entry(id.clone()).or_default(), body::read_subnet(item)?)
        }
        Held::ScaleSet => put_member(Some(&mut azure.scale_sets), id, item)?,
        Held::ScaleSetVm => {
            let set = id.parent();
            let fact = set.and_then(|set| azure.scale_set_vms.get_mut(&set));
            put_member(fact, id, item)?
        }
        Held::NetworkInterface => put_member(Some(&mut azure.network_interfaces), id, item)?,
        Held::VirtualMachine => {
            put(&mut azure.virtual_machines, id, body::read_virtual_machine(item)?)
        }
    })
}

fn put<T: PartialEq>(fact: &mut Fact<ById<T>>, id: &ResourceId, new: T) -> Applied {
    let Some(all) = fact.known_mut() else { return Applied::Unchanged };
    match all.get_mut(id) {
        Some(held) if **held == new => Applied::Unchanged,
        Some(held) => {
            *held = Arc::new(new);
            Applied::Changed
        }
        None => {
            all.insert(id.clone(), Arc::new(new));
            Applied::Changed
        }
    }
}

/// A single resource is known once it has been seen.
fn put_single<T: PartialEq>(fact: &mut Fact<Option<Arc<T>>>, new: T) -> Applied {
    let new = shared(fact.known().and_then(Option::as_ref), new);
    set(fact, Some(new))
}

fn put_member(
    fact: Option<&mut Fact<ById<PoolMember>>>,
    id: &ResourceId,
    item: &Value,
) -> Result<Applied, BodyError> {
    let new = body::read_pool_member(item)?;
    let Some(fact) = fact else { return Ok(Applied::Unchanged) };
    let old = fact.known().and_then(|all| all.get(id)).map(AsRef::as_ref);
    let new = carry_over(old, new, item);
    Ok(put(fact, id, new))
}

/// The answer to a PUT of an instance has no instance view, and need not repeat its host name:
/// both are as they were.
pub(super) fn carry_over(
    old: Option<&PoolMember>,
    mut new: PoolMember,
    body: &Value,
) -> PoolMember {
    let Some(old) = old else { return new };
    let property = |key: &str| body.get("properties").and_then(|p| p.get(key));
    let told = property("osProfile").is_some()
        || property("virtualMachineProfile").and_then(|p| p.get("osProfile")).is_some();
    if !told && old.host.is_some() {
        new.host.clone_from(&old.host);
    }
    if property("virtualMachineProfile").and_then(|p| p.get("storageProfile")).is_none() {
        new.ipv6 = old.ipv6;
    }
    let state = property("provisioningState").and_then(Value::as_str).unwrap_or("Succeeded");
    let lives = !["Deleting", "Unknown"].iter().any(|s| state.eq_ignore_ascii_case(s));
    let unseen = new.kind == MemberKind::ScaleSetVm && property("instanceView").is_none();
    if unseen && lives && old.state == MemberState::Usable {
        new.state = MemberState::Usable;
    }
    if new.location.is_empty() {
        new.location = Arc::clone(&old.location);
    }
    new
}

/// Takes the news that a resource is gone.
pub fn remove(azure: &mut Azure, id: &ResourceId) -> Applied {
    let group = || id.group().unwrap_or_else(|| Group::new(""));
    match held(id) {
        None => remove_connection(azure, id),
        Some(Held::Balancer) => take(Some(&mut azure.balancers), id),
        Some(Held::PublicIp) => take(azure.public_ips.get_mut(&group()), id),
        Some(Held::PrivateLink) => take(azure.private_links.get_mut(&group()), id),
        Some(Held::NatGateway) => take(Some(&mut azure.nat_gateways), id),
        Some(Held::ScaleSet) => {
            azure.scale_set_vms.remove(id);
            take(Some(&mut azure.scale_sets), id)
        }
        Some(Held::ScaleSetVm) => {
            take(id.parent().and_then(|set| azure.scale_set_vms.get_mut(&set)), id)
        }
        Some(Held::NetworkInterface) => take(Some(&mut azure.network_interfaces), id),
        Some(Held::VirtualMachine) => take(Some(&mut azure.virtual_machines), id),
        Some(Held::SecurityGroup) => match azure.security_group.known() {
            Some(Some(held)) if held.id == *id => set(&mut azure.security_group, None),
            _ => Applied::Unchanged,
        },
        Some(Held::Subnet) => match azure.subnets.get_mut(id) {
            Some(fact) => set(fact, None),
            None => Applied::Unchanged,
        },
    }
}

/// Takes a private endpoint connection off the Private Link Service it is of: only that service's
/// body tells of it.
fn remove_connection(azure: &mut Azure, id: &ResourceId) -> Applied {
    let link = id.parent().and_then(|link| {
        let fact = azure.private_links.get_mut(&link.group()?)?;
        fact.known_mut()?.get_mut(&link)
    });
    match link {
        Some(link) if link.connections.iter().any(|c| c.id == *id) => {
            Arc::make_mut(link).connections.retain(|c| c.id != *id);
            Applied::Changed
        }
        Some(_) | None => Applied::Unchanged,
    }
}

fn take<T>(fact: Option<&mut Fact<ById<T>>>, id: &ResourceId) -> Applied {
    let gone = fact.and_then(Fact::known_mut).and_then(|all| all.remove(id));
    Applied::of(gone.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn one_connection_that_goes_leaves_the_others() {
        let id = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network\
                  /privateLinkServices/pls";
        let connection = |name: &str| {
            json!({"id": format!("{id}/privateEndpointConnections/{name}"), "name": name,
                "properties": {}})
        };
        let value = json!({"id": id, "name": "pls", "location": "eastus", "properties": {
            "privateEndpointConnections": [connection("a"), connection("b")]}});
        let link = body::read_private_link_service(&value).expect("it can be read");
        let (id, gone) = (link.id.clone(), link.connections[0].id.clone());
        let group = id.group().expect("it is in one");
        let mut azure = Azure::default();
        let all = ById::from([(id.clone(), Arc::new(link))]);
        azure.private_links.insert(group.clone(), Fact::Known(all));
        assert_eq!(remove_connection(&mut azure, &gone), Applied::Changed);
        let left = &azure.private_links[&group].known().expect("it is known")[&id].connections;
        assert_eq!(left.len(), 1);
        assert_ne!(left[0].id, gone);
    }
}
