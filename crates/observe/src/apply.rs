//! Facts from Kubernetes enter the World.

use crate::fact::KubernetesFact;
use crate::gone::{Gone, is_older};
use model::kubernetes::{
    EndpointSlice, GATEWAY_FINALIZER, GatedPod, LoadBalancerType, Node, POD_FINALIZER, Pod,
    SERVICE_FINALIZER, Service, Wish,
};
use model::world::{Kind, Kubernetes};
use model::{NodeName, ServiceName, ServiceUid};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Whether a fact changed anything that planning looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Applied {
    /// It did.
    Changed,
    /// It did not.
    Unchanged,
}

impl Applied {
    pub(crate) fn of(news: bool) -> Self {
        if news { Self::Changed } else { Self::Unchanged }
    }

    /// Changed if either did.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        if self == Self::Changed { self } else { other }
    }
}

/// What is remembered between facts and is none itself: what lists under way have named, and
/// which UID a Service's name stands for.
///
/// # Assumptions
/// One `Listing` goes with one [`Kubernetes`], both empty in the beginning.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    services: Option<BTreeSet<ServiceUid>>,
    nodes: Option<BTreeSet<NodeName>>,
    slices: Option<BTreeSet<ServiceName>>,
    pods: Option<BTreeSet<ServiceName>>,
    gated_pods: Option<BTreeSet<ServiceName>>,
    namespaces: Option<BTreeSet<Arc<str>>>,
    names: BTreeMap<ServiceName, ServiceUid>,
    left: Vec<Arc<Service>>,
    gone: Gone,
}

impl Listing {
    /// Services that are known to have gone since this was last asked, or to be none of our
    /// business any more. One that a list lacks is not among them: a list may be old.
    pub fn take_left(&mut self) -> Vec<Arc<Service>> {
        std::mem::take(&mut self.left)
    }

    /// Notes that an answer of the API server says that an object is deleted, before the fact is
    /// applied. The watch may still deliver older events of the object.
    pub fn note_gone(&mut self, held: &Kubernetes, fact: &KubernetesFact) {
        self.gone.note(held, fact);
    }

    /// Notes that a list under way names a deleted object.
    fn name(&mut self, fact: &KubernetesFact) {
        match fact {
            KubernetesFact::Service(service) => name_in(&mut self.services, &service.uid),
            KubernetesFact::Pod(pod) => name_in(&mut self.pods, &pod.name),
            KubernetesFact::GatedPod(pod) => name_in(&mut self.gated_pods, &pod.name),
            _ => {}
        }
    }

    /// The Service that has a name, of those that matter to us.
    #[must_use]
    pub fn holder(&self, name: &ServiceName) -> Option<&ServiceUid> {
        self.names.get(name)
    }
}

/// Takes one fact.
///
/// # Guarantees
/// - A fact older than the held state of the same object is ignored, and so is a fact of an object
///   whose deletion an answer has shown ([`Listing::note_gone`]).
/// - Facts of different objects may come in any order: the end is the same. So may those of one
///   object while it matters to us.
/// - A fact that differs only in its revision is `Unchanged`; the revision is kept.
pub fn apply(held: &mut Kubernetes, listing: &mut Listing, fact: KubernetesFact) -> Applied {
    listing.gone.settle(held, &fact);
    if listing.gone.has(&fact) {
        listing.name(&fact);
        return Applied::Unchanged;
    }
    match fact {
        KubernetesFact::Service(service) => apply_service(held, listing, *service),
        KubernetesFact::ServiceGone(uid) => {
            if let Some(named) = &mut listing.services {
                named.remove(&uid);
            }
            drop_service(held, listing, &uid)
        }
        KubernetesFact::Node(node) => {
            name_in(&mut listing.nodes, &node.name);
            put(&mut held.nodes, node.name.clone(), node)
        }
        KubernetesFact::NodeGone(name) => gone(&mut held.nodes, &mut listing.nodes, &name),
        KubernetesFact::Slice(slice) => {
            name_in(&mut listing.slices, &slice.name);
            put(&mut held.slices, slice.name.clone(), slice)
        }
        KubernetesFact::SliceGone(name) => gone(&mut held.slices, &mut listing.slices, &name),
        KubernetesFact::Pod(pod) => {
            name_in(&mut listing.pods, &pod.name);
            apply_pod(held, pod)
        }
        KubernetesFact::PodGone(name) => gone(&mut held.pods, &mut listing.pods, &name),
        KubernetesFact::GatedPod(pod) => {
            name_in(&mut listing.gated_pods, &pod.name);
            put(&mut held.gated_pods, pod.name.clone(), pod)
        }
        KubernetesFact::GatedPodGone(name) => {
            gone(&mut held.gated_pods, &mut listing.gated_pods, &name)
        }
        KubernetesFact::Namespace(name, labels) => {
            name_in(&mut listing.namespaces, &name);
            if held.namespaces.get(&name) == Some(&labels) {
                return Applied::Unchanged;
            }
            held.namespaces.insert(name, labels);
            Applied::Changed
        }
        KubernetesFact::NamespaceGone(name) => {
            gone(&mut held.namespaces, &mut listing.namespaces, &name)
        }
        KubernetesFact::ListBegin(kind) => begin(listing, kind),
        KubernetesFact::ListEnd(kind, revision) => end(held, listing, kind, revision.as_deref()),
    }
}

/// An object with a revision.
trait Revised: PartialEq + Clone {
    fn revision(&self) -> &Arc<str>;
    fn set_revision(&mut self, revision: Arc<str>);
}

macro_rules! revised {
    ($($kind:ty),*) => {
        $(impl Revised for $kind {
            fn revision(&self) -> &Arc<str> {
                &self.revision
            }
            fn set_revision(&mut self, revision: Arc<str>) {
                self.revision = revision;
            }
        })*
    };
}
revised!(Service, Node, EndpointSlice, Pod, GatedPod);

fn put<K: Ord, T: Revised>(held: &mut BTreeMap<K, Arc<T>>, key: K, mut new: T) -> Applied {
    let Some(old) = held.get_mut(&key) else {
        held.insert(key, Arc::new(new));
        return Applied::Changed;
    };
    if is_older(new.revision(), old.revision()) {
        return Applied::Unchanged;
    }
    let revision = Arc::clone(new.revision());
    if revision == *old.revision() && new == **old {
        return Applied::Unchanged;
    }
    new.set_revision(Arc::clone(old.revision()));
    let same = new == **old;
    if same {
        Arc::make_mut(old).set_revision(revision);
        return Applied::Unchanged;
    }
    new.set_revision(revision);
    *old = Arc::new(new);
    Applied::Changed
}

fn name_in<K: Ord + Clone>(named: &mut Option<BTreeSet<K>>, key: &K) {
    if let Some(named) = named {
        named.insert(key.clone());
    }
}

fn gone<K: Ord, T>(held: &mut BTreeMap<K, T>, named: &mut Option<BTreeSet<K>>, key: &K) -> Applied {
    if let Some(named) = named {
        named.remove(key);
    }
    Applied::of(held.remove(key).is_some())
}

/// Whether a Service has, or may have, anything in Azure, or anything of ours in its status.
#[must_use]
pub fn matters(service: &Service) -> bool {
    service.wish == Wish::LoadBalancer
        || service.load_balancer_type == LoadBalancerType::Ours
        || service.has_finalizer(SERVICE_FINALIZER)
        || service.has_finalizer(GATEWAY_FINALIZER)
        || service.condition.is_some()
}

/// Whether [`apply`] ignores a Service: what is held of it is newer, it is gone, or another Service
/// has its name by now.
#[must_use]
pub fn is_outdated(held: &Kubernetes, listing: &Listing, service: &Service) -> bool {
    let newer = |uid: &ServiceUid| {
        let held = held.services.get(uid);
        held.is_some_and(|held| is_older(&service.revision, &held.revision))
    };
    listing.gone.has_service(service)
        || newer(&service.uid)
        || listing.holder(&service.name).is_some_and(newer)
}

fn apply_service(held: &mut Kubernetes, listing: &mut Listing, service: Service) -> Applied {
    name_in(&mut listing.services, &service.uid);
    let mut applied = Applied::Unchanged;
    // Another UID under the name: one of the two Services is gone, and it is the older one.
    if let Some(other) = listing.names.get(&service.name).filter(|uid| **uid != service.uid) {
        let other = other.clone();
        let newer = held.services.get(&other);
        if newer.is_some_and(|o| is_older(&service.revision, &o.revision)) {
            return Applied::Unchanged;
        }
        applied = drop_service(held, listing, &other);
    }
    if matters(&service) {
        listing.gone.take_up(&service.uid);
        listing.names.insert(service.name.clone(), service.uid.clone());
        return applied.or(put(&mut held.services, service.uid.clone(), service));
    }
    match held.services.get(&service.uid) {
        Some(old) if !is_older(&service.revision, &old.revision) => {
            listing.gone.let_go(&service);
            applied.or(drop_service(held, listing, &service.uid))
        }
        _ => applied,
    }
}

fn drop_service(held: &mut Kubernetes, listing: &mut Listing, uid: &ServiceUid) -> Applied {
    let Some(service) = held.services.remove(uid) else { return Applied::Unchanged };
    if listing.names.get(&service.name) == Some(uid) {
        listing.names.remove(&service.name);
    }
    listing.left.push(service);
    Applied::Changed
}

/// A Pod without egress label and without our finalizer is none of our business.
fn apply_pod(held: &mut Kubernetes, pod: Pod) -> Applied {
    if pod.egress.is_some() || pod.finalizers.contains(POD_FINALIZER) {
        return put(&mut held.pods, pod.name.clone(), pod);
    }
    match held.pods.get(&pod.name) {
        Some(old) if !is_older(&pod.revision, &old.revision) => {
            held.pods.remove(&pod.name);
            Applied::Changed
        }
        _ => Applied::Unchanged,
    }
}

fn begin(listing: &mut Listing, kind: Kind) -> Applied {
    match kind {
        Kind::Services => listing.services = Some(BTreeSet::new()),
        Kind::Nodes => listing.nodes = Some(BTreeSet::new()),
        Kind::EndpointSlices => listing.slices = Some(BTreeSet::new()),
        Kind::Pods => listing.pods = Some(BTreeSet::new()),
        Kind::GatedPods => listing.gated_pods = Some(BTreeSet::new()),
        Kind::Namespaces => listing.namespaces = Some(BTreeSet::new()),
    }
    Applied::Unchanged
}

/// What a list does not name is gone, unless it is held at a newer revision: the list is older than
/// that, as one may be that comes from a server's cache, and the watch that follows begins there.
/// An end without a beginning completes nothing.
fn end(
    held: &mut Kubernetes,
    listing: &mut Listing,
    kind: Kind,
    revision: Option<&str>,
) -> Applied {
    let kept = match kind {
        Kind::Services => match listing.services.take() {
            Some(named) => {
                listing.gone.keep_services(&named);
                let kept = keep(&mut held.services, Some(&named), revision);
                let services = &held.services;
                listing.names.retain(|_, uid| services.contains_key(uid));
                kept
            }
            None => None,
        },
        Kind::Nodes => keep(&mut held.nodes, listing.nodes.take().as_ref(), revision),
        Kind::EndpointSlices => keep(&mut held.slices, listing.slices.take().as_ref(), revision),
        Kind::Pods => listing.pods.take().map(|named| {
            listing.gone.keep_pods(&named);
            end_pods(held, &named, revision)
        }),
        Kind::GatedPods => {
            let named = listing.gated_pods.take();
            named.iter().for_each(|named| listing.gone.keep_gated_pods(named));
            keep(&mut held.gated_pods, named.as_ref(), revision)
        }
        Kind::Namespaces => listing.namespaces.take().map(|named| {
            let before = held.namespaces.len();
            held.namespaces.retain(|name, _| named.contains(name));
            Applied::of(held.namespaces.len() != before)
        }),
    };
    match kept {
        None => Applied::Unchanged,
        Some(_) if held.complete.insert(kind) => Applied::Changed,
        Some(applied) => applied,
    }
}

/// Pods are listed by their label. One with our finalizer that is not named may only have lost it:
/// its finalizer has to go before it is forgotten.
fn end_pods(
    held: &mut Kubernetes,
    named: &BTreeSet<ServiceName>,
    revision: Option<&str>,
) -> Applied {
    let mut applied = Applied::Unchanged;
    held.pods.retain(|name, pod| {
        if named.contains(name) || is_after(&pod.revision, revision) {
            return true;
        }
        let claimed = pod.finalizers.contains(POD_FINALIZER);
        if claimed && pod.egress.is_some() {
            *pod = Arc::new(Pod { egress: None, ..Pod::clone(pod) });
            applied = Applied::Changed;
        } else if !claimed {
            applied = Applied::Changed;
        }
        claimed
    });
    applied
}

fn keep<K: Ord, T: Revised>(
    held: &mut BTreeMap<K, Arc<T>>,
    named: Option<&BTreeSet<K>>,
    revision: Option<&str>,
) -> Option<Applied> {
    let named = named?;
    let before = held.len();
    held.retain(|key, value| named.contains(key) || is_after(value.revision(), revision));
    Some(Applied::of(held.len() != before))
}

/// Whether what is held is newer than a list.
fn is_after(held: &str, list: Option<&str>) -> bool {
    list.is_some_and(|list| is_older(list, held))
}
