//! The World as load balancers of one kind see it: as if the others did not exist.

use super::Sides;
use super::stage::{Stages, Way};
use crate::Refused;
use crate::own::pod_names;
use model::azure::Sku;
use model::kubernetes::{Backends, Pod, Service, Wish};
use model::world::Fact;
use model::{Policy, ResourceId, ServiceUid, World};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What was shown last: what is planned on stays the same value in memory while it is the same.
#[derive(Debug, Default)]
pub(super) struct Views {
    nodes: BTreeMap<ServiceUid, Shown>,
    pods: BTreeMap<ServiceUid, Shown>,
    egress: BTreeMap<model::ServiceName, (Arc<Pod>, Arc<Pod>)>,
}

/// A Service as it is, and as it was shown.
#[derive(Debug)]
struct Shown {
    source: Arc<Service>,
    shown: Arc<Service>,
    /// Whether it was to keep what it has. Where that changes, it is another value in memory.
    kept: bool,
}

impl Views {
    /// The World as load balancers of this kind see it.
    pub fn of(
        &mut self,
        world: &World,
        sides: &Sides,
        stages: &Stages,
        (backends, kept): (Backends, &Refused),
    ) -> World {
        let mut own = world.clone();
        let is_own = |sku: Sku| (sku == Sku::Service) == (backends == Backends::Pods);
        if let Fact::Known(all) = &mut own.azure.balancers {
            all.retain(|_, balancer| is_own(balancer.sku));
        }
        own.holds.retain(|uid, hold| {
            is_of_pods(&sides.target, uid, &hold.target) == (backends == Backends::Pods)
        });
        let shown = match backends {
            Backends::Nodes => &mut self.nodes,
            Backends::Pods => &mut self.pods,
        };
        shown.retain(|uid, _| world.kubernetes.services.contains_key(uid));
        for (uid, service) in &mut own.kubernetes.services {
            *service = show(shown, service, &stages.all[uid], (backends, kept));
        }
        match backends {
            Backends::Nodes => {
                for ips in own.azure.public_ips.values_mut() {
                    if let Fact::Known(all) = ips {
                        // Public IPs of container load balancers and egress gateways.
                        all.retain(|_, ip| ip.sku != Sku::StandardV2);
                    }
                }
                let told = |uid: &ServiceUid| {
                    stages.all.get(uid).is_some_and(|way| !way.part(Backends::Nodes).is_empty())
                };
                own.unseen.retain(told);
            }
            Backends::Pods if stages.are_over(Backends::Pods) => self.end_egress(&mut own),
            Backends::Pods => {}
        }
        own
    }

    /// Egress gateways go with the last container load balancer: their Pods are shown without the
    /// label that asks for one.
    fn end_egress(&mut self, own: &mut World) {
        self.egress.retain(|name, _| own.kubernetes.pods.contains_key(name));
        for (name, pod) in &mut own.kubernetes.pods {
            if pod.egress.is_none() {
                continue;
            }
            let known = self.egress.get(name).filter(|(source, _)| Arc::ptr_eq(source, pod));
            let plain = known.map(|(_, plain)| Arc::clone(plain)).unwrap_or_else(|| {
                let plain = Arc::new(Pod { egress: None, ..Pod::clone(pod) });
                self.egress.insert(name.clone(), (Arc::clone(pod), Arc::clone(&plain)));
                plain
            });
            *pod = plain;
        }
    }
}

fn show(
    known: &mut BTreeMap<ServiceUid, Shown>,
    service: &Arc<Service>,
    way: &Way,
    (backends, kept): (Backends, &Refused),
) -> Arc<Service> {
    let kept = kept.contains_key(&service.uid);
    let wish = if way.is_wanted(backends) { service.wish } else { Wish::Nothing };
    let ingress = way.part(backends);
    let is_same = |shown: &Shown| {
        Arc::ptr_eq(&shown.source, service)
            && shown.shown.wish == wish
            && shown.shown.ingress == ingress
            && shown.kept == kept
    };
    if let Some(shown) = known.get(&service.uid).filter(|shown| is_same(shown)) {
        return Arc::clone(&shown.shown);
    }
    let own = Service { wish, ingress: ingress.to_vec(), ..Service::clone(service) };
    let shown = Shown { source: Arc::clone(service), shown: Arc::new(own), kept };
    let view = Arc::clone(&shown.shown);
    known.insert(service.uid.clone(), shown);
    view
}

/// Whether what was refused for a Service or an egress gateway is a resource of container load
/// balancers. Their public IPs are named after that Service or gateway.
fn is_of_pods(policy: &Policy, cause: &ServiceUid, id: &ResourceId) -> bool {
    let name = pod_names::of_balancer(id);
    let of = pod_names::of_service(cause);
    pod_names::is_uid(&name)
        || [pod_names::public_ip(&of), pod_names::public_ip_v6(&of)].contains(&name)
        || *id == pod_names::services_table(policy)
        || *id == pod_names::locations_table(policy)
        || id.folded().contains("/natgateways/")
}
