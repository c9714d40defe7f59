//! What reading Services gave, remembered between plans.

use crate::ask::container::{self, ContainerIntent};
use crate::ask::{self, Intent, Reading};
use model::kubernetes::Service;
use model::{Policy, ServiceUid};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What reading Services gave, while they ask for the same.
///
/// # Guarantees
/// A Service is read again only when what it asks for changed: what one has in its annotations
/// costs nothing when others change, or when its status is written. No more readings are held than
/// Services were there at the last plan.
///
/// # Assumptions
/// Reading a Service looks at nothing that [`asks_the_same`] leaves out.
#[derive(Debug, Default)]
pub(crate) struct Readings {
    nodes: Kept<Intent>,
    containers: Kept<ContainerIntent>,
    /// How many times a Service was read.
    pub count: u64,
}

type Kept<T> = BTreeMap<ServiceUid, (Arc<Service>, Arc<Reading<Arc<T>>>)>;

impl Readings {
    /// What a Service asks of load balancers whose backends are nodes.
    pub fn node(&mut self, service: &Arc<Service>, policy: &Policy) -> Arc<Reading<Arc<Intent>>> {
        if let Some(reading) = held(&mut self.nodes, service) {
            return reading;
        }
        self.count += 1;
        keep(&mut self.nodes, service, ask::read(service, policy))
    }

    /// What a Service asks of the container load balancer.
    pub fn container(
        &mut self,
        service: &Arc<Service>,
        policy: &Policy,
    ) -> Arc<Reading<Arc<ContainerIntent>>> {
        if let Some(reading) = held(&mut self.containers, service) {
            return reading;
        }
        self.count += 1;
        keep(&mut self.containers, service, container::read(service, policy))
    }

    /// Lets go of what is not asked for again before the Service changes.
    pub fn forget(&mut self, uid: &ServiceUid) {
        self.nodes.remove(uid);
        self.containers.remove(uid);
    }

    /// Lets go of Services that are gone.
    pub fn sweep(&mut self, services: &BTreeMap<ServiceUid, Arc<Service>>) {
        if self.nodes.len() > services.len() {
            self.nodes.retain(|uid, _| services.contains_key(uid));
        }
        if self.containers.len() > services.len() {
            self.containers.retain(|uid, _| services.contains_key(uid));
        }
    }
}

fn held<T>(kept: &mut Kept<T>, service: &Arc<Service>) -> Option<Arc<Reading<Arc<T>>>> {
    let (of, reading) = kept.get_mut(&service.uid)?;
    if !Arc::ptr_eq(of, service) {
        if !asks_the_same(of, service) {
            return None;
        }
        *of = Arc::clone(service);
    }
    Some(Arc::clone(reading))
}

/// Whether two values of a Service differ at most in what controllers write into it.
fn asks_the_same(a: &Service, b: &Service) -> bool {
    let Service {
        uid,
        name,
        revision: _,
        wish,
        load_balancer_type,
        deletion: _,
        finalizers: _,
        annotations,
        labels,
        selector,
        ports,
        families,
        affinity,
        traffic_policy,
        health_check_node_port,
        load_balancer_ip,
        cluster_ips,
        source_ranges,
        ingress: _,
        condition: _,
        custody: _,
        editors: _,
        moving: _,
    } = a;
    (uid, name, wish, load_balancer_type) == (&b.uid, &b.name, &b.wish, &b.load_balancer_type)
        && (labels, selector, ports) == (&b.labels, &b.selector, &b.ports)
        && (families, affinity, traffic_policy) == (&b.families, &b.affinity, &b.traffic_policy)
        && (health_check_node_port, load_balancer_ip)
            == (&b.health_check_node_port, &b.load_balancer_ip)
        && (cluster_ips, source_ranges) == (&b.cluster_ips, &b.source_ranges)
        && annotations == &b.annotations
}

fn keep<T>(kept: &mut Kept<T>, service: &Arc<Service>, read: Reading<T>) -> Arc<Reading<Arc<T>>> {
    let Reading { intent, findings } = read;
    let reading = Arc::new(Reading { intent: intent.map(Arc::new), findings });
    kept.insert(service.uid.clone(), (Arc::clone(service), Arc::clone(&reading)));
    reading
}

#[cfg(test)]
mod tests;
