//! Whether a subnet has a given address to give.

use super::Refusal;
use crate::ask::{Intent, pinned};
use crate::draft::Draft;
use crate::standing::frontend;
use ipnet::IpNet;
use model::azure::Subnet;
use model::plan::{Action, Resource};
use model::report::Finding;
use model::world::Fact;
use model::{Family, ResourceId};
use std::net::IpAddr;

/// Why a resource cannot have an address of a subnet: the rest of "an address …".
pub(crate) fn obstacle(
    draft: &Draft<'_>,
    subnet: &Subnet,
    address: IpAddr,
    asker: &ResourceId,
) -> Option<String> {
    let family = Family::of(address);
    let own = |range: &&IpNet| Family::of(range.addr()) == family;
    let mut ranges = subnet.prefixes.iter().filter(own).peekable();
    // Of a subnet without a range of the family, the network's own ranges decide.
    ranges.peek()?;
    let name = subnet.id.name();
    let Some(range) = ranges.find(|range| range.contains(&address)) else {
        return Some(format!("in subnet {name}"));
    };
    if is_reserved(range, address) {
        let what = "that Azure does not reserve; it reserves the first four and the last";
        return Some(format!("in subnet {name} {what}"));
    }
    let user = user(draft, &subnet.id, address, asker)?;
    Some(format!("in subnet {name} that is free; {user} has it"))
}

/// Azure keeps the first four addresses of a range, and the last IPv4 one.
fn is_reserved(range: &IpNet, address: IpAddr) -> bool {
    let distance = match (range.network(), address) {
        (IpAddr::V4(first), IpAddr::V4(a)) => u128::from(u32::from(a) - u32::from(first)),
        (IpAddr::V6(first), IpAddr::V6(a)) => u128::from(a) - u128::from(first),
        _ => return false,
    };
    distance < 4 || (address.is_ipv4() && range.broadcast() == address)
}

/// Who has an address of a subnet already, as far as we can see.
fn user(
    draft: &Draft<'_>,
    subnet: &ResourceId,
    address: IpAddr,
    asker: &ResourceId,
) -> Option<String> {
    let mut nodes = draft.world.kubernetes.nodes.values();
    if let Some(node) = nodes.find(|node| node.addresses.contains(&address)) {
        return Some(format!("node {}", node.name));
    }
    let known = draft.world.azure.private_links.values().flat_map(Fact::each);
    let planned = draft.steps.changes.values().filter_map(|change| match &change.action {
        Action::Put { after: Resource::PrivateLinkService(link), .. } => Some(link),
        _ => None,
    });
    let mut links = known.chain(planned).filter(|link| link.id != *asker);
    let link = links
        .find(|l| l.addresses.iter().any(|a| a.subnet == *subnet && a.address == Some(address)));
    if let Some(link) = link {
        return Some(format!("Private Link Service {}", link.id.name()));
    }
    let balancers = draft.each_balancer().filter(|b| b.id != *asker);
    let mut frontends = balancers.flat_map(|b| b.frontends.iter().map(move |f| (b, f)));
    let (balancer, _) =
        frontends.find(|(_, f)| f.private() == Some(address) && frontend::is_within(f, subnet))?;
    Some(format!("a frontend of load balancer {}", balancer.id.name()))
}

/// A private address that a Service insists on and cannot have.
pub(crate) fn unusable(draft: &Draft<'_>, intent: &Intent, pinned: IpAddr, what: &str) -> Refusal {
    let key = pinned::key(draft.cases[&intent.uid].service, Family::of(pinned));
    let message = format!("must be an address {what}");
    Refusal::new(Finding::refusal("PinnedAddressUnusable", &key, &pinned.to_string(), &message))
}

/// The subnet that a Service names, or that of the cloud config, is not there.
pub(crate) fn no_subnet(draft: &Draft<'_>, intent: &Intent, subnet: &str) -> Refusal {
    let key = match intent.subnet {
        Some(_) => "service.beta.kubernetes.io/azure-load-balancer-internal-subnet",
        None => "subnetName",
    };
    let message = format!("must be a subnet of virtual network {}", draft.policy.network_name);
    Refusal::new(Finding::refusal("SubnetNotFound", key, subnet, &message))
}
