//! EndpointSlices filled from pods: which pods belong to which Service, and which slice each
//! lies in. A change of one pod touches one slice of each Service that selects it.

mod endpoint;
mod index;

use crate::json::{at, items, text, texts};
use crate::kinds::{Kind, by_plural};
use crate::route::Target;
use crate::store::{Call, Key, Store};
use crate::uid::letters_for;
use endpoint::{endpoint_of, ports_for};
use index::LabelIndex;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Endpoints a slice holds at most.
const SLICE_LIMIT: usize = 100;
const SERVICE_LABEL: &str = "kubernetes.io/service-name";
const MANAGED_LABEL: &str = "endpointslice.kubernetes.io/managed-by";
const CONTROLLER: &str = "endpointslice-controller.k8s.io";

/// What has to be looked at again for a Service.
#[derive(Debug, Clone)]
enum Dirt {
    Everything,
    Pods(BTreeSet<String>),
}

/// One slice as it shall be.
#[derive(Debug, Clone)]
struct Slice {
    family: String,
    ports: Value,
    members: BTreeMap<String, Value>,
}

/// The slices of one Service.
#[derive(Debug, Clone, Default)]
struct Placement {
    slices: BTreeMap<String, Slice>,
    /// Pod and family to the slice it lies in.
    places: BTreeMap<(String, String), String>,
    /// Slices named so far, for the next name.
    named: u64,
}

/// Everything the filling knows between requests.
#[derive(Debug, Clone, Default)]
pub(crate) struct Filling {
    index: LabelIndex,
    dirty: BTreeMap<Key, Dirt>,
    placements: BTreeMap<Key, Placement>,
    /// Set while the filling itself writes, so that it does not answer to itself.
    writing: bool,
}

impl Filling {
    /// Takes note of a change.
    pub(crate) fn note(
        &mut self,
        kind: &Kind,
        key: &Key,
        before: Option<&Value>,
        after: Option<&Value>,
    ) {
        match kind.plural {
            "services" => self.note_service(key, before, after),
            "pods" => {
                for service in self.index.note_pod(key, after) {
                    self.mark_pod((key.0.clone(), service), &key.1);
                }
            }
            "endpointslices" if !self.writing => {
                if let Some(slice) = after.or(before) {
                    let label = at(slice, "/metadata/labels").get(SERVICE_LABEL);
                    let service = label.and_then(Value::as_str).unwrap_or("");
                    self.note_slice((key.0.clone(), service.to_string()), &key.1);
                }
            }
            _ => {}
        }
    }

    fn note_service(&mut self, key: &Key, before: Option<&Value>, after: Option<&Value>) {
        self.index.note_service(key, after);
        let Some(after) = after else {
            self.placements.remove(key);
            self.dirty.remove(key);
            return;
        };
        let same = before.is_some_and(|before| {
            let same = |pointer| at(before, pointer) == at(after, pointer);
            same("/spec") && same("/metadata/labels")
        });
        if !same {
            self.dirty.insert(key.clone(), Dirt::Everything);
        }
    }

    /// Somebody else changed or removed a slice made here: make it right again.
    fn note_slice(&mut self, service: Key, slice: &str) {
        let known = self.placements.get(&service);
        if known.is_some_and(|placement| placement.slices.contains_key(slice)) {
            self.dirty.insert(service, Dirt::Everything);
        }
    }

    fn mark_pod(&mut self, service: Key, pod: &str) {
        let dirt = self.dirty.entry(service).or_insert_with(|| Dirt::Pods(BTreeSet::new()));
        if let Dirt::Pods(pods) = dirt {
            pods.insert(pod.to_string());
        }
    }
}

impl Placement {
    fn leave(&mut self, pod: &str, family: &str, touched: &mut BTreeSet<String>) {
        let place = (pod.to_string(), family.to_string());
        let Some(name) = self.places.remove(&place) else { return };
        if let Some(slice) = self.slices.get_mut(&name) {
            slice.members.remove(pod);
        }
        touched.insert(name);
    }

    fn enter(
        &mut self,
        service: &Value,
        (pod, family): (&str, &str),
        (ports, endpoint): (Value, Value),
        touched: &mut BTreeSet<String>,
    ) {
        let place = (pod.to_string(), family.to_string());
        let current = self.places.get(&place).cloned();
        if let Some(slice) = current.as_ref().and_then(|name| self.slices.get_mut(name)) {
            if slice.ports == ports {
                if slice.members.get(pod) != Some(&endpoint) {
                    slice.members.insert(pod.to_string(), endpoint);
                    touched.extend(current);
                }
                return;
            }
            self.leave(pod, family, touched);
        }
        let fits = |slice: &Slice| {
            let same = slice.ports == ports && slice.members.len() < SLICE_LIMIT;
            slice.family == family && (same || slice.members.is_empty())
        };
        let found = self.slices.iter_mut().find(|(_, slice)| fits(slice));
        let name = match found {
            Some((name, slice)) => {
                slice.ports = ports;
                slice.members.insert(pod.to_string(), endpoint);
                name.clone()
            }
            None => {
                let name = self.next_name(service, family);
                let members = BTreeMap::from([(pod.to_string(), endpoint)]);
                let slice = Slice { family: family.to_string(), ports, members };
                self.slices.insert(name.clone(), slice);
                name
            }
        };
        touched.insert(name.clone());
        self.places.insert(place, name);
    }

    fn next_name(&mut self, service: &Value, family: &str) -> String {
        let (uid, name) = (text(service, "/metadata/uid"), text(service, "/metadata/name"));
        self.named += 1;
        format!("{name}-{}", letters_for(&format!("{uid}/{family}/{}", self.named)))
    }
}

impl Store {
    /// Fills the slices of one Service that needs it; says whether there was one.
    pub(crate) fn fill_slices(&mut self, call: &Call) -> bool {
        let Some((key, dirt)) = self.filling_mut().dirty.pop_first() else { return false };
        let services = by_plural("services").expect("the table has services");
        let target = Target::new(services, Some(&key.0), Some(&key.1));
        let Ok(service) = self.find(&target) else { return true };
        let selects = at(&service, "/spec/selector").as_object().is_some_and(|map| !map.is_empty());
        if !selects || text(&service, "/spec/type") == "ExternalName" {
            return true;
        }
        let mut placement = self.filling_mut().placements.remove(&key).unwrap_or_default();
        let mut touched = BTreeSet::new();
        let pods = match dirt {
            Dirt::Pods(pods) => pods,
            Dirt::Everything => {
                touched.extend(placement.slices.keys().cloned());
                let placed = placement.places.keys().map(|(pod, _)| pod.clone());
                placed.chain(self.filling_mut().index.pods_of(&key)).collect()
            }
        };
        let families = texts(&service, "/spec/ipFamilies");
        for pod in pods {
            self.place_pod(&service, &pod, &families, &mut placement, &mut touched);
        }
        self.filling_mut().writing = true;
        for name in touched {
            self.write_slice((&service, &families), &name, &mut placement, call);
        }
        let filling = self.filling_mut();
        filling.writing = false;
        if !placement.slices.is_empty() {
            filling.placements.insert(key, placement);
        }
        true
    }

    fn place_pod(
        &self,
        service: &Value,
        name: &str,
        families: &[String],
        placement: &mut Placement,
        touched: &mut BTreeSet<String>,
    ) {
        let pods = by_plural("pods").expect("the table has pods");
        let place = text(service, "/metadata/namespace");
        let pod = self.find(&Target::new(pods, Some(place), Some(name))).ok();
        let pod = pod.filter(|pod| index::selects(service, pod));
        let zone = pod.as_deref().and_then(|pod| self.zone_of(text(pod, "/spec/nodeName")));
        for family in ["IPv4", "IPv6"] {
            let wanted = families.iter().any(|one| one == family);
            let endpoint = pod
                .as_deref()
                .filter(|_| wanted)
                .and_then(|pod| endpoint_of(service, pod, family, zone.as_deref()));
            match (endpoint, pod.as_deref()) {
                (Some(endpoint), Some(pod)) => {
                    let entry = (ports_for(service, pod), endpoint);
                    placement.enter(service, (name, family), entry, touched);
                }
                _ => placement.leave(name, family, touched),
            }
        }
    }

    fn zone_of(&self, node: &str) -> Option<String> {
        let nodes = by_plural("nodes")?;
        let node = self.find(&Target::new(nodes, None, Some(node))).ok()?;
        let zone = at(&node, "/metadata/labels").get("topology.kubernetes.io/zone")?;
        zone.as_str().map(str::to_string)
    }

    /// Brings one stored slice in line with its placement. An empty slice goes, except the last
    /// one of a family, which stays as a sign that there is nobody.
    fn write_slice(
        &mut self,
        (service, families): (&Value, &[String]),
        name: &str,
        placement: &mut Placement,
        call: &Call,
    ) {
        let kind = by_plural("endpointslices").expect("the table has slices");
        let namespace = text(service, "/metadata/namespace").to_string();
        let target = Target::new(kind, Some(&namespace), Some(name));
        let Some(slice) = placement.slices.get(name) else { return };
        let twins = placement.slices.values().filter(|one| one.family == slice.family).count();
        let wanted = families.contains(&slice.family);
        let live = self.find(&target).ok();
        if slice.members.is_empty() && (twins > 1 || !wanted) {
            placement.slices.remove(name);
            if live.is_some() {
                self.commit(kind, (namespace, name.to_string()), None, None);
            }
            return;
        }
        let object = slice_object(service, name, slice);
        let Some(live) = live else {
            let stored = self.insert_quietly(&target, object, call);
            stored.expect("a filled slice has a valid name in a living namespace");
            return;
        };
        let mut next = live.as_ref().clone();
        for member in ["endpoints", "ports"] {
            next[member] = object[member].clone();
        }
        next["metadata"]["labels"] = object["metadata"]["labels"].clone();
        if next != *live {
            let generation = at(&live, "/metadata/generation").as_u64().unwrap_or(1) + 1;
            next["metadata"]["generation"] = json!(generation);
            self.commit(kind, (namespace, name.to_string()), Some(next), None);
        }
    }
}

fn slice_object(service: &Value, name: &str, slice: &Slice) -> Value {
    let service_name = text(service, "/metadata/name");
    let mut labels = at(service, "/metadata/labels").as_object().cloned().unwrap_or_default();
    labels.insert(SERVICE_LABEL.to_string(), json!(service_name));
    labels.insert(MANAGED_LABEL.to_string(), json!(CONTROLLER));
    if crate::service::is_headless(service) {
        labels.insert("service.kubernetes.io/headless".to_string(), json!(""));
    }
    let endpoints: Vec<&Value> = slice.members.values().collect();
    let ports = match items(&slice.ports, "") {
        [] => Value::Null,
        _ => slice.ports.clone(),
    };
    json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": {
            "name": name, "namespace": text(service, "/metadata/namespace"),
            "generateName": format!("{service_name}-"), "labels": labels,
            "ownerReferences": [{"apiVersion": "v1", "kind": "Service", "name": service_name,
                "uid": text(service, "/metadata/uid"), "controller": true,
                "blockOwnerDeletion": true}],
        },
        "addressType": slice.family, "endpoints": endpoints, "ports": ports,
    })
}

#[cfg(test)]
mod tests;
