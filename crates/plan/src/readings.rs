//! What reading Services gave, remembered between plans.

use crate::intent::container::{self, ContainerIntent};
use crate::intent::{self, Intent, Reading};
use model::kubernetes::Service;
use model::{Policy, ServiceUid};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What reading Services gave, while they are the same values in memory.
///
/// # Guarantees
/// A Service is read again only when it changed: what one has in its annotations costs nothing
/// when others change. No more readings are held than Services were there at the last plan.
#[derive(Debug, Default)]
pub(crate) struct Readings {
    nodes: Kept<Intent>,
    containers: Kept<ContainerIntent>,
    /// How many Services were read.
    #[cfg(test)]
    pub count: usize,
}

type Kept<T> = BTreeMap<ServiceUid, (Arc<Service>, Arc<Reading<Arc<T>>>)>;

impl Readings {
    /// What a Service asks of load balancers whose backends are nodes.
    pub fn node(&mut self, service: &Arc<Service>, policy: &Policy) -> Arc<Reading<Arc<Intent>>> {
        if let Some(reading) = held(&self.nodes, service) {
            return reading;
        }
        #[cfg(test)]
        (self.count += 1);
        keep(&mut self.nodes, service, intent::read(service, policy))
    }

    /// What a Service asks of the container load balancer.
    pub fn container(
        &mut self,
        service: &Arc<Service>,
        policy: &Policy,
    ) -> Arc<Reading<Arc<ContainerIntent>>> {
        if let Some(reading) = held(&self.containers, service) {
            return reading;
        }
        #[cfg(test)]
        (self.count += 1);
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

fn held<T>(kept: &Kept<T>, service: &Arc<Service>) -> Option<Arc<Reading<Arc<T>>>> {
    let (of, reading) = kept.get(&service.uid)?;
    Arc::ptr_eq(of, service).then(|| Arc::clone(reading))
}

fn keep<T>(kept: &mut Kept<T>, service: &Arc<Service>, read: Reading<T>) -> Arc<Reading<Arc<T>>> {
    let Reading { intent, findings } = read;
    let reading = Arc::new(Reading { intent: intent.map(Arc::new), findings });
    kept.insert(service.uid.clone(), (Arc::clone(service), Arc::clone(&reading)));
    reading
}

#[cfg(test)]
mod tests;
