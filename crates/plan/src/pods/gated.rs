//! Pods with our readiness gate, and the Services that select them.

use super::selectors::Selectors;
use super::take;
use model::kubernetes::{Gate, GatedPod, Others, Service};
use model::{ServiceName, ServiceUid};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What is remembered of gates between two plans.
#[derive(Debug, Default)]
pub(crate) struct Gates {
    pub pods: BTreeMap<ServiceName, Arc<GatedPod>>,
    /// Those of them whose gates may have to be opened or shut.
    pub open: BTreeSet<ServiceName>,
    /// Made when the first Pod with a gate is seen.
    selectors: Option<Selectors>,
}

impl Gates {
    /// Takes in Pods; gives those that changed.
    pub fn update(
        &mut self,
        current: &BTreeMap<ServiceName, Arc<GatedPod>>,
        services: &BTreeMap<ServiceUid, Arc<Service>>,
    ) -> Vec<ServiceName> {
        let moved = take(&mut self.pods, current, Arc::ptr_eq);
        for name in &moved {
            match current.get(name) {
                Some(pod) if wants_change(pod) => self.open.insert(name.clone()),
                Some(_) | None => self.open.remove(name),
            };
        }
        if !self.pods.is_empty() && self.selectors.is_none() {
            let mut selectors = Selectors::default();
            services.values().for_each(|service| selectors.note(None, Some(service)));
            self.selectors = Some(selectors);
        }
        moved
    }

    /// A Service is added, is another, or is gone.
    pub fn note(&mut self, old: Option<&Arc<Service>>, new: Option<&Arc<Service>>) {
        if let Some(selectors) = &mut self.selectors {
            selectors.note(old, new);
        }
    }

    pub fn services(&self, pod: &GatedPod) -> BTreeSet<ServiceUid> {
        let selectors = self.selectors.as_ref();
        selectors.map(|s| s.matching(&pod.name.namespace, &pod.labels)).unwrap_or_default()
    }
}

fn wants_change(pod: &GatedPod) -> bool {
    matches!((pod.others, pod.gate), (Others::Hold, Gate::Shut) | (Others::Missing, Gate::Open))
}
