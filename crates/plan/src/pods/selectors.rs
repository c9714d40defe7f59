//! Which Services select a Pod.

use model::ServiceUid;
use model::kubernetes::{GatedPod, Service, Wish};
use model::world::Labels;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Namespace, label and value.
type Pair = (Arc<str>, Arc<str>, Arc<str>);

/// Services that want a load balancer, by the first label of their selectors.
#[derive(Debug, Default)]
pub(super) struct Selectors {
    by_pair: BTreeMap<Pair, BTreeMap<ServiceUid, Labels>>,
}

impl Selectors {
    /// A Service is added, is another, or is gone.
    pub fn note(&mut self, old: Option<&Arc<Service>>, new: Option<&Arc<Service>>) {
        if let Some(old) = old
            && let Some(pair) = first(old)
            && let Some(services) = self.by_pair.get_mut(&pair)
        {
            services.remove(&old.uid);
            if services.is_empty() {
                self.by_pair.remove(&pair);
            }
        }
        if let Some(new) = new.filter(|service| service.wish == Wish::LoadBalancer)
            && let Some(pair) = first(new)
        {
            let services = self.by_pair.entry(pair).or_default();
            services.insert(new.uid.clone(), Arc::clone(&new.selector));
        }
    }

    /// The Services that select a Pod of a namespace with these labels.
    pub fn matching(&self, namespace: &Arc<str>, labels: &Labels) -> BTreeSet<ServiceUid> {
        let mut found = BTreeSet::new();
        for (key, value) in labels.iter() {
            let pair = (Arc::clone(namespace), Arc::clone(key), Arc::clone(value));
            for (uid, selector) in self.by_pair.get(&pair).into_iter().flatten() {
                if is_met(selector, labels) {
                    found.insert(uid.clone());
                }
            }
        }
        found
    }
}

/// Whether a Service selects a Pod; without a selector it selects none.
pub(crate) fn selects(service: &Service, pod: &GatedPod) -> bool {
    let same = service.name.namespace == pod.name.namespace;
    same && !service.selector.is_empty() && is_met(&service.selector, &pod.labels)
}

fn is_met(selector: &Labels, labels: &Labels) -> bool {
    selector.iter().all(|(key, value)| labels.get(key) == Some(value))
}

fn first(service: &Service) -> Option<Pair> {
    let (key, value) = service.selector.first_key_value()?;
    Some((Arc::clone(&service.name.namespace), Arc::clone(key), Arc::clone(value)))
}
