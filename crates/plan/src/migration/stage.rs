//! How far each Service is, from its status, its condition and the clock alone.
//!
//! ```text
//! Arriving -> Both -> Withdrawing -> Draining -> Gone
//! ```

use super::Sides;
use super::led::{Led, is_additional};
use crate::Refused;
use crate::ask::hold;
use crate::claim::confirm;
use crate::own::{self, pod_names};
use crate::tell::kubernetes::ip_lists;
use model::azure::Sku;
use model::kubernetes::{Backends, Ingress, MoveStage, Service, Target, Wish};
use model::report::Finding;
use model::world::Fact;
use model::{Policy, ServiceName, ServiceUid, World};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

/// How far a Service is on its way from one kind of load balancers, its former, to the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// The former load balancer serves the Service; the status has no address of the new one yet.
    Arriving,
    /// Both load balancers serve the Service, and the status has the addresses of both.
    Both,
    /// The former's address is about to leave the status.
    Withdrawing,
    /// The status has only the new addresses; the former load balancer serves open connections.
    Draining,
    /// The former load balancer serves no client any more: its resources are deleted.
    Gone,
    /// The Service is being deleted, or its owner holds it: no part of the status moves.
    Still,
}

impl Stage {
    /// Whether the former load balancer is still as the Service asks.
    pub fn keeps_former(self) -> bool {
        self != Self::Gone
    }

    /// Whether the status still tells the former's addresses.
    pub fn tells_former(self) -> bool {
        matches!(self, Self::Arriving | Self::Both | Self::Still)
    }
}

/// One Service on its way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Way {
    /// Where it is in the end.
    pub home: Backends,
    /// How far it is.
    pub stage: Stage,
    /// The addresses in its status that lead to nodes.
    pub nodes: Vec<Ingress>,
    /// Those that lead to its Pods.
    pub pods: Vec<Ingress>,
    /// Whether a list that may show whose its addresses are has not been read yet.
    pub unlisted: bool,
    /// Whether it is to lead to Pods, and only nodes can serve it.
    pub outside: bool,
}

impl Way {
    /// The addresses in its status that lead to these.
    pub fn part(&self, backends: Backends) -> &[Ingress] {
        match backends {
            Backends::Nodes => &self.nodes,
            Backends::Pods => &self.pods,
        }
    }

    /// What the Service waits for before its former address leaves the status, where its owner
    /// confirms interruptions. On container load balancers that annotation has no effect.
    pub fn unconfirmed(&self, service: &Service) -> Option<Finding> {
        if self.home != Backends::Pods {
            return None;
        }
        let to = ips(self.part(self.home));
        confirm::of_move(service, self.part(Backends::Nodes), &to)
    }

    /// Whether the Service is wanted by the load balancers of this kind.
    pub fn is_wanted(&self, backends: Backends) -> bool {
        backends == self.home || self.stage.keeps_former()
    }
}

/// The addresses in a part of a status, as a text.
pub(super) fn ips(part: &[Ingress]) -> String {
    let ips = part.iter().filter_map(|entry| entry.ip.as_deref());
    ips.collect::<Vec<_>>().join(", ")
}

/// All Services on their ways.
pub(super) struct Stages {
    /// By UID.
    pub all: BTreeMap<ServiceUid, Way>,
}

impl Stages {
    pub fn of(world: &World, sides: &Sides) -> Self {
        let services = world.kubernetes.services.values();
        let (over_nodes, outside) = (over_nodes(world), outside(world));
        // Only time that is over asks.
        let led = (!world.elapsed.is_empty()).then(|| Led::of(world));
        let way = |service: &Service| {
            let mut way = way(world, sides, (&over_nodes, led.as_ref()), service);
            way.outside = way.home == Backends::Pods && outside.contains(&service.uid);
            way
        };
        Self { all: services.map(|service| (service.uid.clone(), way(service))).collect() }
    }

    /// Services of those refused that are not to be on this kind in the end.
    pub fn kept(&self, refused: &Refused, backends: Backends) -> Refused {
        let kept = refused.iter().filter(|(uid, _)| self.all[*uid].home != backends);
        kept.map(|(uid, why)| (uid.clone(), why.clone())).collect()
    }

    /// Whether no load balancer over these has anything more to serve.
    pub fn are_over(&self, backends: Backends) -> bool {
        self.all.values().all(|way| !way.is_wanted(backends))
    }
}

/// An address counts as one of the load balancers that a Service moves to only where Azure shows it
/// there: a list may lag, and another client may have deleted the public IP. Until then the former
/// load balancer stays.
fn way(
    world: &World,
    sides: &Sides,
    (over_nodes, led): (&BTreeSet<IpAddr>, Option<&Led>),
    service: &Service,
) -> Way {
    let home = sides.home(&service.name);
    let own = pod_names::ip_of(world, &sides.target, &service.uid).and_then(|ip| ip.address);
    let stands = home == Backends::Nodes && has_container(world, &sides.target, &service.uid);
    let leads_to_pods = |entry: &&Ingress| {
        let address = entry.ip.as_deref().and_then(|ip| ip.parse::<IpAddr>().ok());
        let of_nodes = |told| over_nodes.contains(&told) || is_additional(service, told);
        address.is_some_and(|told| own == Some(told) || (stands && !of_nodes(told)))
    };
    let (pods, nodes) = service.ingress.iter().partition::<Vec<&Ingress>, _>(leads_to_pods);
    let whole = |part: Vec<&Ingress>| part.into_iter().cloned().collect();
    let (nodes, pods) = (whole(nodes), whole(pods));
    let unlisted = is_unlisted(world, &sides.target, service);
    let way = Way { home, stage: Stage::Still, nodes, pods, unlisted, outside: false };
    let elapsed = world.elapsed.contains(&service.uid)
        && way.unconfirmed(service).is_none()
        && !led.is_some_and(|led| led.lacks(service, home, way.part(home)));
    Way { stage: stage(service, &way, elapsed), ..way }
}

fn stage(service: &Service, way: &Way, elapsed: bool) -> Stage {
    if service.wish == Wish::Nothing {
        return Stage::Still;
    }
    let moving = service.moving.as_ref().filter(|moving| moving.to == way.home);
    let moving = moving.map(|moving| moving.stage);
    let is_told = |backends| !way.part(backends).is_empty();
    let (here, there) = (is_told(way.home), is_told(way.home.other()));
    if hold::find(service).is_some() {
        return Stage::Still;
    }
    match moving {
        _ if there && !here => Stage::Arriving,
        Some(_) if !there && !here => Stage::Arriving,
        None if there => Stage::Arriving,
        Some(MoveStage::Both) if there && !elapsed => Stage::Both,
        Some(MoveStage::Both) => Stage::Withdrawing,
        // It was told again by another hand: the former goes all the same.
        Some(MoveStage::Draining) if there => Stage::Withdrawing,
        Some(MoveStage::Draining) if !elapsed => Stage::Draining,
        Some(MoveStage::Draining) | None => Stage::Gone,
    }
}

/// Whether a Service has a container load balancer, as far as can be seen.
fn has_container(world: &World, policy: &Policy, uid: &ServiceUid) -> bool {
    let name = pod_names::of_service(uid);
    let balancers = world.azure.balancers.known();
    let registered = world.azure.gateway_services.known();
    registered.is_none_or(|all| all.contains_key(&name))
        || balancers.is_none_or(|all| all.contains_key(&policy.balancer_id(&name)))
}

/// Whether a list of public IPs among which a Service's may be is still to be read.
fn is_unlisted(world: &World, policy: &Policy, service: &Service) -> bool {
    let lists = ip_lists(world, policy, service);
    lists.into_iter().any(|list| matches!(list, None | Some(Fact::Unknown)))
}

/// Services whose EndpointSlices list endpoints outside of the cluster, and none on a node of which
/// a container load balancer could know. kube-proxy leads there, the address table does not.
/// Whether an endpoint is ready has no say: that comes and goes, and a Pod that is not ready will
/// be.
fn outside(world: &World) -> BTreeSet<ServiceUid> {
    let services = &world.kubernetes.services;
    let by_name: BTreeMap<&ServiceName, &Arc<Service>> =
        services.values().map(|service| (&service.name, service)).collect();
    let (mut outside, mut within) = (BTreeSet::new(), BTreeSet::new());
    for slice in world.kubernetes.slices.values() {
        let named = || by_name.get(slice.service.as_ref()?).copied();
        let service = match &slice.owner {
            Some(uid) => services.get(uid),
            None => named(),
        };
        let Some(service) = service.filter(|service| slice.is_of(service)) else { continue };
        for endpoint in &slice.endpoints {
            if endpoint.node.is_none() {
                outside.insert(service.uid.clone());
            } else if endpoint.target == Target::Own {
                within.insert(service.uid.clone());
            }
        }
    }
    outside.difference(&within).cloned().collect()
}

/// The addresses of load balancers over nodes.
fn over_nodes(world: &World) -> BTreeSet<IpAddr> {
    let ips = own::public_ips(world).filter(|ip| ip.sku != Sku::StandardV2);
    let public = ips.filter_map(|ip| ip.address);
    let frontends = world.azure.balancers.each().flat_map(|balancer| &balancer.frontends);
    public.chain(frontends.filter_map(|f| f.private())).collect()
}
