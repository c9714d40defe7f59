//! What in Azure is ours and belongs to nothing: its Service is gone, and nobody took it away.
//!
//! The list is what planning itself would take away if it knew that those Services are gone for
//! good. So what is listed, what is deleted and in which order are one thing.
//!
//! # Guarantees
//! - Nothing is listed that planning takes for somebody else's, or that a known Service has.
//! - While resources of the other layout stand, all of them are listed, and nothing else.
//! - A public IP of a load balancer of nodes is listed only with the tags of this cluster, whatever
//!   its name; one of a container load balancer only with that load balancer or its registration.
//!
//! # Assumptions
//! All Services are listed in the World, and were before Azure was read.

use crate::forecast::forecast;
use model::azure::{PublicIp, Sku};
use model::drift::Part;
use model::ledger::Holder;
use model::plan::{Action, Change, Resource};
use model::policy::Layout;
use model::{Policy, ResourceId, World};
use plan::own::pod_names;
use plan::own::tags;
use plan::own::{self, Base, Own, Whose};
use plan_drift::parts;
use serde::Serialize;
use std::collections::BTreeSet;
use std::sync::Arc;

/// One thing that belongs to nothing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Orphan {
    /// What it is, as people call it.
    pub kind: &'static str,
    /// Its name.
    pub name: Arc<str>,
    /// The resource, or the one that it is a part of.
    pub resource: ResourceId,
}

/// What belongs to nothing, and what is known about it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Orphans {
    /// In the order in which they can be deleted.
    pub list: Vec<Orphan>,
    /// Names of Services that are gone, in the forms in which parts and tags name them.
    pub names: BTreeSet<Arc<str>>,
    /// Azure changes that are due for Services that are there.
    pub pending: usize,
    /// Why the list holds what it holds.
    pub origin: Origin,
}

/// Why something is listed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Origin {
    /// Its Service is gone.
    #[default]
    Gone,
    /// The other layout made it, whether or not its Service is there: load balancers over nodes
    /// where the cloud config asks for container load balancers, or the reverse.
    OtherLayout,
}

/// Finds what belongs to nothing.
#[must_use]
pub fn find(world: &World, policy: &Policy) -> Orphans {
    let mut world = world.clone();
    // Nothing is written here: what another process may be writing does not matter.
    world.inherited.clear();
    world.unseen.clear();
    world.in_flight.clear();
    let (left, moves) = plan::standing(&world, policy);
    if !left.is_empty() && !moves {
        // While it stands nothing else is planned.
        let list =
            left.into_iter().map(|l| Orphan { kind: l.kind, name: l.name, resource: l.resource });
        return Orphans { list: list.collect(), origin: Origin::OtherLayout, ..Orphans::default() };
    }
    let mut found = Orphans { pending: due(&world, policy), ..Orphans::default() };
    found.names = candidates(&world, policy);
    if let Some(migration) = policy.migration.as_ref().filter(|_| moves) {
        found.names.extend(candidates(&world, &migration.from));
    }
    world.abandoned.extend(found.names.iter().cloned());
    let coming = forecast(&world, policy);
    let mut addresses = addresses(&world, &coming.changes, &found.names);
    addresses.extend(recorded(&world));
    for change in &coming.changes {
        collect(&world, &found.names, &addresses, change, &mut found.list);
    }
    found
}

fn is_known(world: &World, change: &Change) -> bool {
    change.causes.iter().any(|uid| world.kubernetes.services.contains_key(uid))
}

/// Changes that are due on account of Services that are there. What has no such cause is the
/// clearing away of what is left over.
fn due(world: &World, policy: &Policy) -> usize {
    forecast(world, policy).changes.iter().filter(|change| is_known(world, change)).count()
}

/// Names that parts and tags bear, and that no Service has.
fn candidates(world: &World, policy: &Policy) -> BTreeSet<Arc<str>> {
    let services = &world.kubernetes.services;
    let mut names: BTreeSet<Arc<str>> = BTreeSet::new();
    if policy.layout == Layout::PerService {
        let registered = world.azure.gateway_services.known().into_iter().flatten();
        let registered = registered.filter(|(_, service)| !pod_names::is_foreign(service));
        names.extend(registered.map(|(name, _)| Arc::clone(name)));
        let balancers = world.azure.balancers.each().filter(|b| b.sku == Sku::Service);
        names.extend(balancers.map(|b| Arc::from(b.id.name().to_lowercase())));
        names.retain(|name| pod_names::is_uid(name));
        for uid in services.keys() {
            names.remove(&*uid.as_str().to_lowercase());
        }
        return names;
    }
    for balancer in world.azure.balancers.each().filter(|b| b.sku != Sku::Service) {
        let parts = balancer.frontends.iter().map(|f| &f.name);
        let parts = parts.chain(balancer.rules.iter().map(|r| &r.name));
        let parts = parts.chain(balancer.probes.iter().map(|p| &p.name));
        names.extend(parts.filter_map(|part| Base::of(part)).map(Arc::from));
    }
    let own = Own::new(world, policy);
    let ours = |ip: &&Arc<PublicIp>| own.public_ip(ip) == Whose::Ours && cluster(ip).is_some();
    for ip in own::public_ips(world).filter(ours) {
        names.extend(tags::users(ip).into_iter().map(|user| Arc::from(user.to_lowercase())));
    }
    // Whose a public IP without the cluster's tag is, only its Service could say.
    for ip in own::public_ips(world).filter(|ip| cluster(ip).is_none()) {
        tags::users(ip).into_iter().for_each(|user| {
            names.remove(&*user.to_lowercase());
        });
    }
    for service in services.values() {
        names.remove(Base::of_service(&service.uid).as_str());
        names.remove(&*service.name.to_string().to_lowercase());
    }
    names
}

fn cluster(ip: &PublicIp) -> Option<&str> {
    let cluster = tags::cluster(ip);
    cluster.filter(|cluster| !cluster.is_empty())
}

/// Addresses of public IPs and frontends that go.
fn addresses(world: &World, lost: &[Change], names: &BTreeSet<Arc<str>>) -> BTreeSet<String> {
    let ips = lost.iter().filter_map(|change| match &change.action {
        Action::Delete { before: Resource::PublicIp(ip) } => ip.address,
        _ => None,
    });
    let frontends =
        world.azure.balancers.each().flat_map(|b| &b.frontends).filter(|f| bears(&f.name, names));
    ips.chain(frontends.filter_map(|f| f.private())).map(|address| address.to_string()).collect()
}

/// Addresses that the ledger has on the account of Services that are all gone.
fn recorded(world: &World) -> impl Iterator<Item = String> {
    let services = &world.kubernetes.services;
    let ledger = world.kubernetes.ledger.known();
    let all = ledger.into_iter().flat_map(|ledger| &ledger.destinations);
    let is_gone = |holder: &Holder| match holder {
        Holder::Service(uid) => !services.contains_key(uid),
        Holder::Node => false,
    };
    all.filter(move |(_, holders)| holders.iter().all(is_gone)).map(|(to, _)| to.to_string())
}

fn collect(
    world: &World,
    names: &BTreeSet<Arc<str>>,
    addresses: &BTreeSet<String>,
    change: &Change,
    list: &mut Vec<Orphan>,
) {
    let resource = change.target.clone();
    let mut say = |kind: &'static str, name: Arc<str>| {
        list.push(Orphan { kind, name, resource: resource.clone() });
    };
    match &change.action {
        Action::Delete { before } if !is_known(world, change) => {
            if let Resource::LoadBalancer(balancer) = before {
                // What stands on it goes with it, and is named, too.
                let parts = parts(before);
                parts.keys().filter(|p| is_of(p, names)).for_each(|p| say(p.kind, p.name.clone()));
                say("load balancer", Arc::from(balancer.id.name()));
                return;
            }
            say(kind(before), Arc::from(before.id().name()));
        }
        Action::DeleteChild if !is_known(world, change) => {
            say("private endpoint connection", Arc::from(change.target.name()));
        }
        Action::Put { before: Some(Resource::PublicIp(ip)), after: Resource::PublicIp(after) } => {
            let kept: BTreeSet<&str> = tags::users(after).into_iter().collect();
            let gone = tags::users(ip).into_iter().filter(|u| !kept.contains(u));
            let gone = gone.filter(|user| names.contains(&*user.to_lowercase()));
            gone.for_each(|user| say("tag of a public IP", Arc::from(user)));
        }
        Action::Put {
            before: Some(Resource::SecurityGroup(group)),
            after: Resource::SecurityGroup(after),
        } => {
            for rule in &group.rules {
                let left = after.rules.iter().find(|r| r.name == rule.name);
                let goes = |to: &&Arc<str>| left.is_none_or(|l| !l.destinations.contains(*to));
                let gone = rule.destinations.iter().filter(goes);
                for to in gone.filter(|to| addresses.contains(&***to)) {
                    say("security rule", Arc::from(format!("{} to {to}", rule.name)));
                }
            }
        }
        Action::Put { before: Some(before), after } => {
            let left = parts(after);
            let parts = parts(before);
            let gone = parts.keys().filter(|p| !left.contains_key(*p) && is_of(p, names));
            gone.for_each(|part| say(part.kind, part.name.clone()));
        }
        Action::UpdateServices(update) => {
            let gone = update.delete.iter().map(|(name, _)| name);
            let known = |name: &str| {
                let mut uids = world.kubernetes.services.keys();
                uids.any(|uid| pod_names::is_of(name, uid))
            };
            gone.filter(|name| !known(name))
                .for_each(|name| say("gateway registration", Arc::clone(name)));
        }
        Action::Put { before: None, .. }
        | Action::Delete { .. }
        | Action::DeleteChild
        | Action::MigratePools { .. }
        | Action::UpdateLocations(_) => {}
    }
}

/// Whether a part is one of a Service that is gone.
fn is_of(part: &Part, names: &BTreeSet<Arc<str>>) -> bool {
    matches!(part.kind, "frontend" | "rule" | "probe") && bears(&part.name, names)
}

/// Whether a part is named after one of them.
fn bears(part: &str, names: &BTreeSet<Arc<str>>) -> bool {
    Base::of(part).is_some_and(|base| names.contains(base.as_str()))
}

fn kind(resource: &Resource) -> &'static str {
    match resource {
        Resource::PublicIp(_) => "public IP",
        Resource::LoadBalancer(_) => "load balancer",
        Resource::SecurityGroup(_) => "security group",
        Resource::Subnet(_) => "subnet",
        Resource::PrivateLinkService(_) => "Private Link Service",
        Resource::NatGateway(_) => "NAT gateway",
        Resource::PoolMember(_) => "pool member",
    }
}
