//! Names of Services that anything in Azure bears.

use super::name::{base_of, folded, local_pool};
use super::{Own, base_in, pod_names, public_ips, tags};
use model::kubernetes::Service;
use model::policy::Layout;
use model::world::Fact;
use model::{Family, Policy, ServiceName, World};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The names of a Service that anything in Azure can bear: namespace and name, base name and UID;
/// lower case.
#[must_use]
pub fn of(service: &Service) -> [Arc<str>; 3] {
    let (name, uid) = (&service.name, &service.uid);
    [name.to_string(), uid.base_name(), uid.as_str().to_owned()]
        .map(|name| Arc::from(name.to_lowercase()))
}

/// Those of these names of Services, lower case, that are in the name of a resource, in that of a
/// part of one, or in a tag: base names, UIDs, and namespaces with names. The own pool of
/// a Service bears its namespace and name. The tag of another cluster's public IP does not count:
/// that cluster may have a Service of the same name. Nor does the name of a public IP that an
/// operator has taken back. Nothing is copied, because few names are looked for among many
/// resources.
#[must_use]
pub fn among(world: &World, policy: &Policy, names: &BTreeSet<Arc<str>>) -> BTreeSet<Arc<str>> {
    let mut found = BTreeSet::new();
    if names.is_empty() {
        return found;
    }
    let pools = pools_of(policy, names);
    let mut see = |text: &str| {
        let folded = text.bytes().all(|byte| byte.is_ascii() && !byte.is_ascii_uppercase());
        let name = match folded {
            true => names.get(text),
            false => names.get(text.to_lowercase().as_str()),
        };
        found.extend(name.cloned());
    };
    let own = Own::new(world, policy);
    for balancer in world.azure.balancers.each() {
        let parts = balancer.frontends.iter().map(|f| &f.name);
        let parts = parts.chain(balancer.rules.iter().map(|r| &r.name));
        let parts = parts.chain(balancer.probes.iter().map(|p| &p.name));
        parts.filter_map(|part| base_of(part)).for_each(&mut see);
        see(&pod_names::of_balancer(&balancer.id));
        let pools = balancer.pools.iter().filter_map(|pool| pools.get(&folded(&pool.name)));
        pools.for_each(|name| see(name));
    }
    for ip in public_ips(world) {
        let base = base_in(ip.id.name()).filter(|_| !tags::is_released(ip));
        base.into_iter().for_each(&mut see);
        pod_names::of_ip(&ip.id).iter().for_each(|name| see(name));
        if own.may_be_ours(ip) {
            tags::each_user(ip).for_each(&mut see);
        }
    }
    for link in world.azure.private_links.values().flat_map(Fact::each) {
        tags::owner(link).into_iter().for_each(&mut see);
        link.frontends.iter().filter_map(|id| base_of(id.name())).for_each(&mut see);
    }
    let registered = world.azure.gateway_services.known().into_iter().flatten();
    registered.for_each(|(name, _)| see(name));
    found
}

/// The own pools of Services with these names: names of pools, lower case, to names of Services.
fn pools_of<'n>(policy: &Policy, names: &'n BTreeSet<Arc<str>>) -> BTreeMap<String, &'n str> {
    if !matches!(policy.layout, Layout::Several(_)) {
        return BTreeMap::new();
    }
    let services = names.iter().filter_map(|name| Some((&**name, service_named(name)?)));
    let pools = services.flat_map(|(name, service)| {
        Family::ALL.map(|family| (folded(&local_pool(&service, family)), name))
    });
    pools.collect()
}

/// The Service whose namespace and name these are; `None` for a base name or a UID.
#[must_use]
pub fn service_named(name: &str) -> Option<ServiceName> {
    let (namespace, name) = name.split_once('/')?;
    Some(ServiceName::new(namespace, name))
}
