//! Names of Services that anything in Azure bears.

use super::name::base_of;
use super::{base_in, pod_names, public_ips, tags};
use model::World;
use model::world::Fact;
use std::collections::BTreeSet;

/// Every name of a Service that is in the name of a resource, in that of a part of one, or in a
/// tag, whether or not there is such a Service: base names, UIDs, and namespaces with names; lower
/// case.
#[must_use]
pub fn names(world: &World) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for balancer in world.azure.balancers.each() {
        let parts = balancer.frontends.iter().map(|f| &f.name);
        let parts = parts.chain(balancer.rules.iter().map(|r| &r.name));
        let parts = parts.chain(balancer.probes.iter().map(|p| &p.name));
        names.extend(parts.filter_map(|part| base_of(part)).map(str::to_lowercase));
        names.insert(pod_names::of_balancer(&balancer.id));
    }
    for ip in public_ips(world) {
        names.extend(base_in(ip.id.name()).map(str::to_lowercase));
        names.extend(pod_names::of_ip(&ip.id));
        names.extend(tags::each_user(ip).map(str::to_lowercase));
    }
    for link in world.azure.private_links.values().flat_map(Fact::each) {
        names.extend(tags::owner(link).map(str::to_lowercase));
        let frontends = link.frontends.iter().filter_map(|id| base_of(id.name()));
        names.extend(frontends.map(str::to_lowercase));
    }
    let registered = world.azure.gateway_services.known().into_iter().flatten();
    names.extend(registered.map(|(name, _)| name.to_lowercase()));
    names
}
