//! Keeps our own newest writes when a list comes that may be older than they are.

use model::plan::Resource;
use model::world::{Azure, Need};
use model::{Group, ResourceId};
use std::collections::{BTreeMap, BTreeSet};

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
    let shelf = azure.shelf(need).filter(|shelf| shelf.answered().known().is_some());
    ids.filter(|(id, _)| shelf.is_some() && covers(need, id))
        .map(|(id, belief)| {
            let resource = shelf.and_then(|shelf| shelf.get(&id));
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
        let listed = azure.shelf(need).is_some_and(|shelf| shelf.get(&id).is_some());
        if belief == Belief::Written && listed && resource.is_none() {
            disbelieved.hidden.insert(id.clone());
        }
        if belief == Belief::Written || listed != resource.is_some() {
            match resource {
                Some(resource) => azure.shelf_mut(need).put(&id, resource),
                None => {
                    observe::azure::remove(azure, &id);
                }
            }
            if belief == Belief::Paged {
                disbelieved.left_out.insert(id);
            }
        }
    }
    disbelieved
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
