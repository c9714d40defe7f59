//! Which pods fit which Services, found by labels and never by looking at all of them.

use crate::json::at;
use crate::store::Key;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// A namespace and one label in it.
type Label = (String, String, String);

#[derive(Debug, Clone, Default)]
pub(super) struct LabelIndex {
    pods_by_label: BTreeMap<Label, BTreeSet<String>>,
    labels_of_pod: BTreeMap<Key, Vec<Label>>,
    /// Each Service stands under one label of its selector, the one with the fewest Services.
    services_by_label: BTreeMap<Label, BTreeSet<String>>,
    selectors: BTreeMap<Key, (Label, Vec<Label>)>,
    /// The Services each pod fits.
    services_of_pod: BTreeMap<Key, BTreeSet<String>>,
}

fn labels(namespace: &str, object: Option<&Value>, pointer: &str) -> Vec<Label> {
    let map = object.and_then(|object| at(object, pointer).as_object());
    map.into_iter()
        .flatten()
        .map(|(key, value)| {
            (namespace.to_string(), key.clone(), value.as_str().unwrap_or("").to_string())
        })
        .collect()
}

/// Whether a Service's selector fits a pod.
pub(super) fn selects(service: &Value, pod: &Value) -> bool {
    let wanted = labels("", Some(service), "/spec/selector");
    let labels = labels("", Some(pod), "/metadata/labels");
    !wanted.is_empty() && wanted.iter().all(|one| labels.contains(one))
}

fn withdraw(map: &mut BTreeMap<Label, BTreeSet<String>>, label: &Label, name: &str) {
    if let Some(names) = map.get_mut(label) {
        names.remove(name);
        if names.is_empty() {
            map.remove(label);
        }
    }
}

impl LabelIndex {
    /// Takes note of a pod; returns the Services it fitted or fits now.
    pub(super) fn note_pod(&mut self, key: &Key, pod: Option<&Value>) -> BTreeSet<String> {
        let new = labels(&key.0, pod, "/metadata/labels");
        let old = self.labels_of_pod.get(key);
        let mut services = self.services_of_pod.get(key).cloned().unwrap_or_default();
        if old == Some(&new) && pod.is_some() {
            return services;
        }
        for label in self.labels_of_pod.remove(key).unwrap_or_default() {
            withdraw(&mut self.pods_by_label, &label, &key.1);
        }
        for label in &new {
            self.pods_by_label.entry(label.clone()).or_default().insert(key.1.clone());
        }
        let fitting: BTreeSet<String> = new
            .iter()
            .filter_map(|label| self.services_by_label.get(label))
            .flatten()
            .filter(|name| {
                let selector = self.selectors.get(&(key.0.clone(), (*name).clone()));
                selector.is_some_and(|(_, all)| all.iter().all(|label| new.contains(label)))
            })
            .cloned()
            .collect();
        services.extend(fitting.iter().cloned());
        self.services_of_pod.remove(key);
        if !fitting.is_empty() {
            self.services_of_pod.insert(key.clone(), fitting);
        }
        if pod.is_some() {
            self.labels_of_pod.insert(key.clone(), new);
        }
        services
    }

    /// Takes note of a Service and of the pods that fit it now.
    pub(super) fn note_service(&mut self, key: &Key, service: Option<&Value>) {
        let new = labels(&key.0, service, "/spec/selector");
        let old = self.selectors.get(key).map(|(_, all)| all.as_slice()).unwrap_or_default();
        if old == new.as_slice() {
            return;
        }
        for pod in self.pods_of(key) {
            let place = (key.0.clone(), pod);
            if let Some(services) = self.services_of_pod.get_mut(&place) {
                services.remove(&key.1);
                if services.is_empty() {
                    self.services_of_pod.remove(&place);
                }
            }
        }
        if let Some((label, _)) = self.selectors.remove(key) {
            withdraw(&mut self.services_by_label, &label, &key.1);
        }
        let crowd = |label: &&Label| self.services_by_label.get(*label).map_or(0, BTreeSet::len);
        let Some(label) = new.iter().min_by_key(crowd).cloned() else { return };
        self.services_by_label.entry(label.clone()).or_default().insert(key.1.clone());
        self.selectors.insert(key.clone(), (label, new));
        for pod in self.pods_of(key) {
            let services = self.services_of_pod.entry((key.0.clone(), pod)).or_default();
            services.insert(key.1.clone());
        }
    }

    /// The pods that fit a Service.
    pub(super) fn pods_of(&self, service: &Key) -> Vec<String> {
        let Some((_, all)) = self.selectors.get(service) else { return Vec::new() };
        let crowd = |label: &&Label| self.pods_by_label.get(*label).map_or(0, BTreeSet::len);
        let Some(rarest) = all.iter().min_by_key(crowd) else { return Vec::new() };
        let fits = |pod: &&String| {
            let labels = self.labels_of_pod.get(&(service.0.clone(), (*pod).clone()));
            labels.is_some_and(|labels| all.iter().all(|label| labels.contains(label)))
        };
        let candidates = self.pods_by_label.get(rarest).into_iter().flatten();
        candidates.filter(fits).cloned().collect()
    }
}
