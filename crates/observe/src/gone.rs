//! Objects that an answer has told to be gone, and Services that are none of our business any more.
//!
//! What a watch brings of such a Service again may be older than what it was let go for: of that
//! the revision is remembered.
//!
//! An answer may be newer than what a watch has brought so far: what the watch brings of such an
//! object until it tells its end, too, is older. A UID never comes back
//! (kubernetes.io/docs/concepts/overview/working-with-objects/names, "UIDs").

use crate::fact::KubernetesFact;
use model::kubernetes::Service;
use model::world::Kubernetes;
use model::{ServiceName, ServiceUid};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Objects that are gone, and whose end the watch has not told yet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Gone {
    services: BTreeSet<ServiceUid>,
    /// Revisions of Services that were let go.
    left: BTreeMap<ServiceUid, Arc<str>>,
    pods: Uids,
    gated_pods: Uids,
}

/// UIDs by the names that they stand for.
type Uids = BTreeMap<ServiceName, Arc<str>>;

impl Gone {
    /// An answer has told the end of an object, which the watch may not have.
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

    /// Whether a fact tells of an object that is gone.
    pub fn has(&self, fact: &KubernetesFact) -> bool {
        match fact {
            KubernetesFact::Service(service) => self.has_service(service),
            KubernetesFact::Pod(pod) => self.pods.get(&pod.name) == Some(&pod.uid),
            KubernetesFact::GatedPod(pod) => self.gated_pods.get(&pod.name) == Some(&pod.uid),
            _ => false,
        }
    }

    /// Whether a Service is gone, or this is older than what it was let go for.
    pub fn has_service(&self, service: &Service) -> bool {
        let left = self.left.get(&service.uid);
        self.services.contains(&service.uid)
            || left.is_some_and(|left| is_older(&service.revision, left))
    }

    /// A Service of this revision is none of our business any more.
    pub fn let_go(&mut self, service: &Service) {
        self.left.insert(service.uid.clone(), Arc::clone(&service.revision));
    }

    /// A Service is our business again.
    pub fn take_up(&mut self, uid: &ServiceUid) {
        self.left.remove(uid);
    }

    /// The end of an object is told of which nothing is held: the watch has come that far.
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

    /// A list of Services has ended, and what it does not name no watch tells of.
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

/// Whether the first revision is older; revisions that are no numbers cannot be told apart.
pub(crate) fn is_older(new: &str, held: &str) -> bool {
    match (new.parse::<u128>(), held.parse::<u128>()) {
        (Ok(new), Ok(held)) => new < held,
        _ => false,
    }
}
