//! What the other layout has left in Azure: load balancers over nodes where the cloud config asks
//! for container load balancers, and the reverse. One layout neither uses nor deletes what the
//! other made, so nothing is written while any of it stands.
//!
//! # Guarantees
//! - Only what the other layout would take for its own counts: names made from the UIDs of
//!   Services, the cluster's tags, the registrations of the cluster's Service Gateway.
//! - What carries another cluster's UID does not count, nor does a NAT gateway that a gateway
//!   service of others leads to.
//!
//! # Assumptions
//! Public IPs in a resource group that only a Service names are found by the frontends that stand
//! on them.

use super::name::{self, is_one};
use super::{Own, Whose, is_shell, pod_names, tags};
use model::azure::{FrontendAddress, LoadBalancer, PublicIp, Sku};
use model::gateway::Direction;
use model::kubernetes::{Backends, GATEWAY_FINALIZER, SERVICE_FINALIZER, Service};
use model::policy::Layout;
use model::world::Fact;
use model::{Exposure, Policy, ResourceId, ServiceUid, World};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The rule of the finding that freezes everything.
pub const RULE: &str = "OtherLayoutStands";

/// One resource, or part of one, that the other layout has left.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Leftover {
    /// What it is.
    pub kind: &'static str,
    /// Its name.
    pub name: Arc<str>,
    /// The resource, or the one that it is a part of.
    pub resource: ResourceId,
    /// The Service that it was made for, where that one is known.
    pub service: Option<ServiceUid>,
}

impl Leftover {
    /// The whole resource that it is, or is a part of.
    pub(crate) fn whole(&self) -> String {
        match self.kind {
            "rule" | "frontend" => format!("load balancer {}", self.resource.name()),
            kind => format!("{kind} {}", self.name),
        }
    }
}

/// Everything that the other layout has left, as far as Azure has been read. In the order in which
/// it can be deleted.
pub fn find(world: &World, policy: &Policy, own: &Own<'_>) -> Vec<Leftover> {
    match policy.layout {
        Layout::PerService => over_nodes(world, policy, own),
        Layout::Single | Layout::Several(_) | Layout::PerNodeSet { .. } => {
            over_pods(world, policy, own)
        }
    }
}

/// Whether finalizers say that a Service was the other layout's: then Azure is read before any
/// finalizer is written.
pub(crate) fn is_suspected(world: &World, policy: &Policy) -> bool {
    let container = policy.layout == Layout::PerService;
    // A move that is not over says so, too.
    let of_pods = |s: &Service| s.has_finalizer(GATEWAY_FINALIZER) || s.moving.is_some();
    let of_nodes =
        |s: &Service| s.has_finalizer(SERVICE_FINALIZER) && !s.has_finalizer(GATEWAY_FINALIZER);
    let mut services = world.kubernetes.services.values();
    if container { services.any(|s| of_nodes(s)) } else { services.any(|s| of_pods(s)) }
}

fn public_ips<'w>(world: &'w World, policy: &Policy) -> impl Iterator<Item = &'w Arc<PublicIp>> {
    world.azure.public_ips.get(&policy.group).into_iter().flat_map(Fact::each)
}

/// Rules and frontends on load balancers over nodes, and the public IPs of their Services.
fn over_nodes(world: &World, policy: &Policy, own: &Own<'_>) -> Vec<Leftover> {
    let mut left = Vec::new();
    let mut far = Vec::new();
    for balancer in world.azure.balancers.each().filter(|b| b.sku != Sku::Service) {
        if !own.is_another_clusters(balancer.tags.as_ref()) {
            on_balancer(policy, own, balancer, &mut left);
            far.extend(far_ips(policy, own, balancer));
        }
    }
    let marked = |ip: &&Arc<PublicIp>| {
        let named = tags::cluster(ip).is_some_and(|cluster| !cluster.is_empty());
        own.public_ip(ip) == Whose::Ours && named
    };
    let near = public_ips(world, policy).filter(marked).map(|ip| ip.id.clone());
    left.extend(near.chain(far).map(|id| Leftover {
        kind: "public IP",
        name: Arc::from(id.name()),
        service: super::base_in(id.name()).and_then(|base| own.service(base)).cloned(),
        resource: id,
    }));
    left
}

/// Whether a part of a load balancer is named after a Service, and that is one of ours: by its UID,
/// or because the load balancer has the cluster's name.
fn is_part(policy: &Policy, own: &Own<'_>, balancer: &LoadBalancer, part: &str) -> bool {
    let named = |exposure| name::balancer(policy, exposure);
    let mut common = Exposure::ALL.map(named).into_iter();
    name::base_of(part).is_some_and(|base| {
        own.service(base).is_some() || common.any(|c| c.eq_ignore_ascii_case(balancer.id.name()))
    })
}

/// Whether a load balancer over nodes has a name that the config gives one.
pub(crate) fn is_named(policy: &Policy, found: &str) -> bool {
    let mut common = Exposure::ALL.map(|exposure| name::balancer(policy, exposure)).into_iter();
    common.any(|name| is_one(&name, found))
        || policy.over(Backends::Nodes).is_some_and(|over| name::is_balancer(over, found))
}

fn on_balancer(policy: &Policy, own: &Own<'_>, balancer: &LoadBalancer, left: &mut Vec<Leftover>) {
    let parts = balancer.rules.iter().map(|r| ("rule", &r.name));
    let parts = parts.chain(balancer.frontends.iter().map(|f| ("frontend", &f.name)));
    let is_ours = |part: &str| is_part(policy, own, balancer, part);
    let (ours, others): (Vec<_>, Vec<_>) = parts.partition(|(_, name)| is_ours(name));
    let shell = is_named(policy, balancer.id.name()) && is_shell(policy, balancer);
    let whole = (shell || !ours.is_empty()) && others.is_empty() && balancer.foreign.is_empty();
    left.extend(ours.into_iter().map(|(kind, name)| Leftover {
        kind,
        name: Arc::clone(name),
        resource: balancer.id.clone(),
        service: name::base_of(name).and_then(|base| own.service(base)).cloned(),
    }));
    if whole {
        let name = Arc::from(balancer.id.name());
        let resource = balancer.id.clone();
        left.push(Leftover { kind: "load balancer", name, resource, service: None });
    }
}

/// Public IPs made for frontends of ours in resource groups that only Services name.
fn far_ips<'a>(
    policy: &'a Policy,
    own: &'a Own<'_>,
    balancer: &'a LoadBalancer,
) -> impl Iterator<Item = ResourceId> + 'a {
    let frontends = balancer.frontends.iter();
    frontends.filter(|f| is_part(policy, own, balancer, &f.name)).filter_map(|f| {
        let FrontendAddress::Public(id) = &f.address else { return None };
        let far = !id.is_in(&policy.group);
        (far && super::base_in(id.name()).is_some()).then(|| id.clone())
    })
}

/// Load balancers of single Services, NAT gateways of egress, their public IPs and registrations.
fn over_pods(world: &World, policy: &Policy, own: &Own<'_>) -> Vec<Leftover> {
    let mut left = Vec::new();
    let service = |name: &str| {
        let uid = ServiceUid::new(name);
        world.kubernetes.services.contains_key(&uid).then_some(uid)
    };
    let mut names: BTreeSet<String> = BTreeSet::new();
    let made = world.azure.balancers.each().filter(|b| b.sku == Sku::Service);
    for balancer in made.filter(|b| !own.is_another_clusters(b.tags.as_ref())) {
        let name = pod_names::of_balancer(&balancer.id);
        if pod_names::is_uid(&name) {
            let resource = balancer.id.clone();
            let (text, service) = (Arc::from(&*name), service(&name));
            left.push(Leftover { kind: "load balancer", name: text, resource, service });
            names.insert(name);
        }
    }
    let others = pod_names::nats_of_others(&world.azure);
    let gateways = nat_gateways(world, policy, own, &others);
    for (name, id) in &gateways {
        let (name, resource) = (Arc::clone(name), id.clone());
        left.push(Leftover { kind: "NAT gateway", name, resource, service: None });
    }
    let registered = registered(world, policy, own);
    names.extend(registered.iter().map(|name| name.to_string()));
    names.extend(gateways.keys().map(|name| name.to_string()));
    for ip in public_ips(world, policy).filter(|ip| ip.sku == Sku::StandardV2) {
        let Some(of) = of_ip(&ip.id) else { continue };
        let known = service(&of);
        let egress = is_egress_ip(policy, ip, &of, &others);
        let is_ours = names.contains(&of) || known.is_some() || egress;
        if is_ours && !own.is_another_clusters(ip.tags.as_ref()) && !pod_names::is_reserved(&of) {
            let (name, resource) = (Arc::from(ip.id.name()), ip.id.clone());
            left.push(Leftover { kind: "public IP", name, resource, service: known });
        }
    }
    for name in registered {
        let resource = pod_names::services_table(policy);
        let service = service(&name);
        left.push(Leftover { kind: "gateway registration", name, resource, service });
    }
    left
}

/// The load balancer or egress gateway that a public IP is named after.
fn of_ip(id: &ResourceId) -> Option<String> {
    let name = id.name().to_lowercase();
    let of = name.strip_suffix("-pip-v6").or_else(|| name.strip_suffix(pod_names::PUBLIC_IP))?;
    Some(of.to_owned())
}

/// Whether a NAT gateway of its name, and not of others, stands on a public IP.
fn is_egress_ip(policy: &Policy, ip: &PublicIp, of: &str, others: &BTreeSet<&ResourceId>) -> bool {
    let nat = policy.network_id(&policy.group, "natGateways", of);
    pod_names::is_egress(of) && ip.user.as_ref() == Some(&nat) && !others.contains(&nat)
}

/// NAT gateways of the cluster's Service Gateway, by their names in lower case.
fn nat_gateways(
    world: &World,
    policy: &Policy,
    own: &Own<'_>,
    others: &BTreeSet<&ResourceId>,
) -> BTreeMap<Arc<str>, ResourceId> {
    let gateway = policy.gateway_id();
    let ours = world.azure.nat_gateways.each();
    let ours =
        ours.filter(|nat| nat.gateway.as_ref() == Some(&gateway) && !others.contains(&nat.id));
    let ours = ours.filter(|nat| !own.is_another_clusters(nat.tags.as_ref()));
    let named = ours.map(|nat| (Arc::from(nat.id.name().to_lowercase()), nat.id.clone()));
    named
        .filter(|(name, _): &(Arc<str>, _)| {
            pod_names::is_egress(name) && !pod_names::is_reserved(name)
        })
        .collect()
}

/// Registrations of ours whose load balancer or NAT gateway is not another cluster's by its tag.
fn registered(world: &World, policy: &Policy, own: &Own<'_>) -> Vec<Arc<str>> {
    let azure = &world.azure;
    let services = azure.gateway_services.known().into_iter().flatten();
    let ours = services.filter(|(name, service)| {
        let tags = match service.direction {
            Direction::Inbound => {
                let all = azure.balancers.known();
                all.and_then(|all| all.get(&policy.balancer_id(name))?.tags.as_ref())
            }
            Direction::Outbound | Direction::InboundOutbound | Direction::Unknown => {
                let nat = policy.network_id(&policy.group, "natGateways", name);
                azure.nat_gateways.known().and_then(|all| all.get(&nat)?.tags.as_ref())
            }
        };
        !pod_names::is_foreign(service) && !own.is_another_clusters(tags)
    });
    ours.map(|(name, _)| Arc::clone(name)).collect()
}
