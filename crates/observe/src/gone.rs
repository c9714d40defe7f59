//! Objects that the World no longer holds, while a watch may still deliver older events of them.
//!
//! - The API server answered 404 to a write of the object. The answer may be newer than the watch:
//!   all events of the UID are older, until the watch delivers the deletion. The API server never
//!   uses a UID again (kubernetes.io/docs/concepts/overview/working-with-objects/names, "UIDs").
//! - A Service has stopped to matter to the controller ([`crate::apply::matters`]). Events with an
//!   older revision than that are ignored.

use crate::fact::KubernetesFact;
use model::kubernetes::Service;
use model::world::Kubernetes;
use model::{ServiceName, ServiceUid};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Objects that are deleted, or do not matter, and whose deletion the watch has not delivered yet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Gone {
    services: BTreeSet<ServiceUid>,
    /// Services that do not matter, and the revision since which they do not.
    left: BTreeMap<ServiceUid, Arc<str>>,
    pods: Uids,
    gated_pods: Uids,
}

/// UIDs by the names that they stand for.
type Uids = BTreeMap<ServiceName, Arc<str>>;

impl Gone {
    /// Notes that an answer of the API server says that an object is deleted.
    pub fn note(&mut self, held: &Kubernetes, fact: &KubernetesFact) {
        match fact {
            KubernetesFact::ServiceGone(uid) if held.services.contains_key(uid) => {
                self.services.insert(uid.clone());
            }
            KubernetesFact::PodGone(name) => {
                let pod = held.pods.get(name);
                self.pods.extend(pod.map(|pod| (name.clone(), Arc::clone(&pod.uid))));
            }
            KubernetesFact::GatedPodGone(name) => {
                let pod = held.gated_pods.get(name);
                self.gated_pods.extend(pod.map(|pod| (name.clone(), Arc::clone(&pod.uid))));
            }
            _ => {}
        }
    }

    /// Whether a fact is older than the deletion of its object, or than the end of its relevance.
    pub fn has(&self, fact: &KubernetesFact) -> bool {
        match fact {
            KubernetesFact::Service(service) => self.has_service(service),
            KubernetesFact::Pod(pod) => self.pods.get(&pod.name) == Some(&pod.uid),
            KubernetesFact::GatedPod(pod) => self.gated_pods.get(&pod.name) == Some(&pod.uid),
            _ => false,
        }
    }

    /// The same of a Service.
    pub fn has_service(&self, service: &Service) -> bool {
        let left = self.left.get(&service.uid);
        self.services.contains(&service.uid)
            || left.is_some_and(|left| is_older(&service.revision, left))
    }

    /// Notes that a Service does not matter from this revision on.
    pub fn let_go(&mut self, service: &Service) {
        self.left.insert(service.uid.clone(), Arc::clone(&service.revision));
    }

    /// Notes that a Service matters again.
    pub fn take_up(&mut self, uid: &ServiceUid) {
        self.left.remove(uid);
    }

    /// Forgets an object that the World does not hold, once the watch delivers its deletion.
    pub fn settle(&mut self, held: &Kubernetes, fact: &KubernetesFact) {
        match fact {
            KubernetesFact::ServiceGone(uid) if !held.services.contains_key(uid) => {
                self.services.remove(uid);
                self.left.remove(uid);
            }
            KubernetesFact::PodGone(name) if !held.pods.contains_key(name) => {
                self.pods.remove(name);
            }
            KubernetesFact::GatedPodGone(name) if !held.gated_pods.contains_key(name) => {
                self.gated_pods.remove(name);
            }
            _ => {}
        }
    }

    /// Forgets Services that a complete list lacks: the watch that follows it delivers no older
    /// event.
    pub fn keep_services(&mut self, named: &BTreeSet<ServiceUid>) {
        self.services.retain(|uid| named.contains(uid));
        self.left.retain(|uid, _| named.contains(uid));
    }

    /// The same of Pods.
    pub fn keep_pods(&mut self, named: &BTreeSet<ServiceName>) {
        self.pods.retain(|name, _| named.contains(name));
    }

    /// The same of Pods with a readiness gate.
    pub fn keep_gated_pods(&mut self, named: &BTreeSet<ServiceName>) {
        self.gated_pods.retain(|name, _| named.contains(name));
    }
}

/// Whether the first revision is older. Revisions that are not numbers cannot be compared.
pub(crate) fn is_older(new: &str, held: &str) -> bool {
    match (new.parse::<u128>(), held.parse::<u128>()) {
        (Ok(new), Ok(held)) => new < held,
        _ => false,
    }
}
