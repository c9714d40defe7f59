//! Keeps our own newest writes when a list comes that may be older than they are.

use model::plan::Resource;
use model::world::{Azure, ById, Fact, Need};
use model::{Group, ResourceId};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// How far a list is believed about a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Belief {
    /// The list came in several pages, and pages may go by number: where something was deleted
    /// between two of them, what followed moved up and stands on neither. Azure does not say that
    /// its lists are of one moment, so what one lacks is read once more before it counts as gone.
    Paged,
    /// Written shortly before: the list may not know yet that it exists, or that it is gone.
    Recent,
    /// Being written, or written since the list was asked for: the list knows nothing.
    Written,
}

/// What is held of resources before a list is applied.
pub(crate) type Held = BTreeMap<ResourceId, (Belief, Option<Resource>)>;

/// Takes note of what is held. Before the first list of a term nothing is: what was written before
/// it was another's to change.
pub(crate) fn hold(
    azure: &Azure,
    need: &Need,
    ids: impl Iterator<Item = (ResourceId, Belief)>,
) -> Held {
    let known = azure.answered(need).known().is_some();
    ids.filter(|(id, _)| known && covers(need, id))
        .map(|(id, belief)| {
            let resource = find(azure, need, &id);
            (id, (belief, resource))
        })
        .collect()
}

/// What a list was not believed about.
#[derive(Debug, Default)]
pub(crate) struct Disbelieved {
    /// What it may have left out.
    pub left_out: BTreeSet<ResourceId>,
    /// What it shows although it is only being made: ours, already, or another's.
    pub hidden: BTreeSet<ResourceId>,
}

/// Puts back what the list cannot have known, or may have left out.
pub(crate) fn restore(azure: &mut Azure, need: &Need, held: Held) -> Disbelieved {
    let mut disbelieved = Disbelieved::default();
    for (id, (belief, resource)) in held {
        let listed = find(azure, need, &id).is_some();
        if belief == Belief::Written && listed && resource.is_none() {
            disbelieved.hidden.insert(id.clone());
        }
        if belief == Belief::Written || listed != resource.is_some() {
            put(azure, need, &id, resource);
            if belief == Belief::Paged {
                disbelieved.left_out.insert(id);
            }
        }
    }
    disbelieved
}

/// Everything that is held of what a read lists.
pub(crate) fn ids(azure: &Azure, need: &Need) -> Vec<ResourceId> {
    fn of<T>(facts: Option<&Fact<ById<T>>>) -> Vec<ResourceId> {
        let all = facts.and_then(Fact::known);
        all.into_iter().flat_map(|all| all.keys().cloned()).collect()
    }
    match need {
        Need::Balancers => of(Some(&azure.balancers)),
        Need::PublicIps(group) => of(azure.public_ips.get(group)),
        Need::PrivateLinks(group) => of(azure.private_links.get(group)),
        Need::NatGateways => of(Some(&azure.nat_gateways)),
        Need::ScaleSets => of(Some(&azure.scale_sets)),
        Need::ScaleSetVms(set) => of(azure.scale_set_vms.get(set)),
        Need::NetworkInterfaces => of(Some(&azure.network_interfaces)),
        // One resource, or a list of which nothing is taken for gone.
        Need::SecurityGroup
        | Need::Subnet(_)
        | Need::Zones
        | Need::VirtualMachines
        | Need::GatewayServices
        | Need::GatewayLocations => Vec::new(),
    }
}

/// Whether a read is about resources of this id's kind.
pub(crate) fn covers(need: &Need, id: &ResourceId) -> bool {
    let kind = |kind: &str| {
        let folded = id.folded();
        let mut segments = folded.rsplit('/');
        segments.nth(1).is_some_and(|k| k == kind)
    };
    let within = |group: &Group| id.is_in(group);
    match need {
        Need::Balancers => kind("loadbalancers"),
        Need::PublicIps(group) => kind("publicipaddresses") && within(group),
        Need::SecurityGroup => kind("networksecuritygroups"),
        Need::PrivateLinks(group) => kind("privatelinkservices") && within(group),
        Need::NatGateways => kind("natgateways"),
        Need::Subnet(subnet) => subnet == id,
        Need::ScaleSets => kind("virtualmachinescalesets"),
        Need::ScaleSetVms(set) => kind("virtualmachines") && id.parent().as_ref() == Some(set),
        Need::NetworkInterfaces => kind("networkinterfaces"),
        Need::Zones | Need::VirtualMachines | Need::GatewayServices | Need::GatewayLocations => {
            false
        }
    }
}

fn of<T>(facts: Option<&Fact<ById<T>>>, id: &ResourceId) -> Option<Arc<T>> {
    facts?.known()?.get(id).cloned()
}

fn find(azure: &Azure, need: &Need, id: &ResourceId) -> Option<Resource> {
    match need {
        Need::Balancers => of(Some(&azure.balancers), id).map(Resource::LoadBalancer),
        Need::PublicIps(group) => of(azure.public_ips.get(group), id).map(Resource::PublicIp),
        Need::PrivateLinks(group) => {
            of(azure.private_links.get(group), id).map(Resource::PrivateLinkService)
        }
        Need::NatGateways => of(Some(&azure.nat_gateways), id).map(Resource::NatGateway),
        Need::SecurityGroup => azure.security_group.known()?.clone().map(Resource::SecurityGroup),
        Need::Subnet(subnet) => azure.subnets.get(subnet)?.known()?.clone().map(Resource::Subnet),
        Need::ScaleSets => of(Some(&azure.scale_sets), id).map(Resource::PoolMember),
        Need::ScaleSetVms(set) => of(azure.scale_set_vms.get(set), id).map(Resource::PoolMember),
        Need::NetworkInterfaces => {
            of(Some(&azure.network_interfaces), id).map(Resource::PoolMember)
        }
        Need::Zones | Need::VirtualMachines | Need::GatewayServices | Need::GatewayLocations => {
            None
        }
    }
}

fn set<T>(facts: Option<&mut Fact<ById<T>>>, id: &ResourceId, resource: Option<Arc<T>>) {
    if let Some(all) = facts.and_then(Fact::known_mut) {
        match resource {
            Some(resource) => all.insert(id.clone(), resource),
            None => all.remove(id),
        };
    }
}

/// Puts one resource where a read of this kind would have put it, or takes it away.
fn put(azure: &mut Azure, need: &Need, id: &ResourceId, resource: Option<Resource>) {
    match (need, resource) {
        (Need::Balancers, Some(Resource::LoadBalancer(r))) => {
            set(Some(&mut azure.balancers), id, Some(r));
        }
        (Need::PublicIps(group), Some(Resource::PublicIp(r))) => {
            set(azure.public_ips.get_mut(group), id, Some(r));
        }
        (Need::PrivateLinks(group), Some(Resource::PrivateLinkService(r))) => {
            set(azure.private_links.get_mut(group), id, Some(r));
        }
        (Need::NatGateways, Some(Resource::NatGateway(r))) => {
            set(Some(&mut azure.nat_gateways), id, Some(r));
        }
        (Need::SecurityGroup, Some(Resource::SecurityGroup(r))) => {
            azure.security_group = Fact::Known(Some(r));
        }
        (Need::Subnet(subnet), Some(Resource::Subnet(r))) => {
            azure.subnets.insert(subnet.clone(), Fact::Known(Some(r)));
        }
        (Need::ScaleSets, Some(Resource::PoolMember(r))) => {
            set(Some(&mut azure.scale_sets), id, Some(r));
        }
        (Need::ScaleSetVms(owner), Some(Resource::PoolMember(r))) => {
            set(azure.scale_set_vms.get_mut(owner), id, Some(r));
        }
        (Need::NetworkInterfaces, Some(Resource::PoolMember(r))) => {
            set(Some(&mut azure.network_interfaces), id, Some(r));
        }
        (_, None) => {
            observe::azure::remove(azure, id);
        }
        (_, Some(_)) => {}
    }
}
