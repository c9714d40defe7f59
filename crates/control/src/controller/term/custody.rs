//! What another process may have done with objects that show our finalizer.
//!
//! A watch may lag, and the process that could write before this one may have let the object go in
//! the meantime: an answer to a write of ours says that it is there, for a write names its UID. And
//! lists may be older than what that process wrote for it.

use crate::controller::Controller;
use crate::term::TakeoverBarrier;
use model::ServiceUid;
use model::azure::Sku;
use model::kubernetes::{Backends, Custody, POD_FINALIZER, Pod, SERVICE_FINALIZER, Service};
use model::plan::Object;
use observe::KubernetesFact;
use plan::own::Base;
use std::collections::BTreeSet;
use std::sync::Arc;

impl Controller {
    /// A Service that was another process's: it is let go only after lists that are certain to
    /// show what that process wrote.
    pub(crate) fn inherit(&mut self, uid: &ServiceUid, now_ms: u64) {
        self.world.inherited.insert(uid.clone());
        // Once the barrier is passed lists show whatever a former leader made.
        if !self.term.passed {
            self.term.unlooked.insert(uid.clone());
        }
        self.term.hear(uid, now_ms);
    }

    /// Whether an object has become another process's, or is first seen as such. A process that may
    /// not write looks at all of them once it may.
    pub(crate) fn is_inherited(&self, was: Option<Custody>, is: Custody) -> bool {
        let news = match was {
            None => true,
            Some(was) => was == Custody::Own && self.term.is_held(),
        };
        is == Custody::Inherited && news
    }

    /// The right to write was another process's until now: every Service may have been its own, and
    /// so may every egress gateway that a Pod is marked for.
    pub(crate) fn inherit_all(&mut self, now_ms: u64) {
        let held = &self.world.kubernetes;
        let marks = held.pods.values().flat_map(|pod| &pod.marks).map(ServiceUid::new);
        let before = self.world.inherited.iter().cloned();
        let services = held.services.keys().cloned();
        let uids: BTreeSet<ServiceUid> = services.chain(marks).chain(before).collect();
        self.term.begin();
        uids.iter().for_each(|uid| self.inherit(uid, now_ms));
        self.kubernetes.objects.values_mut().for_each(|lane| lane.outlived = true);
        let held = &mut self.world.kubernetes;
        held.services
            .values_mut()
            .filter(|service| service.custody == Custody::Own && is_ours(service))
            .for_each(|service| Arc::make_mut(service).custody = Custody::Inherited);
        held.pods
            .values_mut()
            .filter(|pod| pod.custody == Custody::Own && is_marked(pod))
            .for_each(|pod| Arc::make_mut(pod).custody = Custody::Inherited);
    }

    /// Services of another process of which no rule is listed, with an address in their status or
    /// without: a load balancer is there before the address. Only the first lists can make one
    /// unseen: a rule that goes later was taken away by ourselves.
    pub(crate) fn look_for_inherited(&mut self) {
        if self.term.barrier == TakeoverBarrier::Done || self.policy.over(Backends::Nodes).is_none()
        {
            self.term.unlooked.clear();
        }
        let Some(balancers) = self.world.azure.balancers.known() else { return };
        if self.term.unlooked.is_empty() && self.world.unseen.is_empty() {
            return;
        }
        let rules = balancers.values().flat_map(|balancer| &balancer.rules);
        let mut ruled: BTreeSet<Base> = rules.filter_map(|rule| Base::of(&rule.name)).collect();
        // A container load balancer is its Service's by its name.
        let containers = balancers.values().filter(|balancer| balancer.sku == Sku::Service);
        let uids = containers.map(|balancer| ServiceUid::new(balancer.id.name()));
        ruled.extend(uids.map(|uid| Base::of_service(&uid)));
        let held = &self.world.kubernetes.services;
        let unlooked = std::mem::take(&mut self.term.unlooked);
        self.world.unseen.extend(unlooked.into_iter().filter(|uid| held.contains_key(uid)));
        self.world.unseen.retain(|uid| !ruled.contains(&Base::of_service(uid)));
    }

    /// What is known of an object holds for its next version; one that got our finalizer without
    /// this process' doing got it from another. A watch that lags may show that after this process
    /// was given the right to write.
    pub(crate) fn keep_custody(&mut self, fact: &mut KubernetesFact) {
        let held = &self.world.kubernetes;
        match fact {
            KubernetesFact::Service(service) => {
                let old = held.services.get(&service.uid);
                let had = old.map(|old| (is_ours(old), old.custody));
                let object =
                    Object::Service { name: service.name.clone(), uid: service.uid.clone() };
                service.custody =
                    custody(had, is_ours(service), self.term.claims.contains(&object));
                if is_ours(service) {
                    self.term.claims.remove(&object);
                }
            }
            KubernetesFact::Pod(pod) => {
                let old = held.pods.get(&pod.name).filter(|old| old.uid == pod.uid);
                let had = old.map(|old| (is_marked(old), old.custody));
                let object = Object::Pod { name: pod.name.clone(), uid: Arc::clone(&pod.uid) };
                pod.custody = custody(had, is_marked(pod), self.term.claims.contains(&object));
                if is_marked(pod) {
                    self.term.claims.remove(&object);
                }
            }
            KubernetesFact::ServiceGone(gone) => self.term.claims.retain(|object| match object {
                Object::Service { uid, .. } => uid != gone,
                Object::Pod { .. } => true,
            }),
            KubernetesFact::PodGone(gone) => self.term.claims.retain(|object| match object {
                Object::Pod { name, .. } => name != gone,
                Object::Service { .. } => true,
            }),
            _ => {}
        }
    }

    /// A write to the object was answered: it is there, and nobody else can let it go.
    pub(crate) fn confirm(&mut self, object: &Object) {
        if self.kubernetes.objects.get(object).is_some_and(|lane| lane.outlived) {
            return;
        }
        let held = &mut self.world.kubernetes;
        match object {
            Object::Service { uid, .. } => {
                let service = held.services.get_mut(uid);
                if let Some(service) = service.filter(|s| s.custody == Custody::Inherited) {
                    Arc::make_mut(service).custody = Custody::Own;
                }
            }
            Object::Pod { name, uid } => {
                let pod = held.pods.get_mut(name).filter(|pod| pod.uid == *uid);
                if let Some(pod) = pod.filter(|pod| pod.custody == Custody::Inherited) {
                    Arc::make_mut(pod).custody = Custody::Own;
                }
            }
        }
    }
}

/// Whose an object is: from whether our finalizer was on it and whose it was, whether it is on it
/// now, and whether this process asked for that.
fn custody(had: Option<(bool, Custody)>, has: bool, asked: bool) -> Custody {
    match had {
        None | Some((false, _)) if has && !asked => Custody::Inherited,
        None => Custody::Own,
        Some((_, custody)) => custody,
    }
}

fn is_ours(service: &Service) -> bool {
    service.has_finalizer(SERVICE_FINALIZER)
}

fn is_marked(pod: &Pod) -> bool {
    pod.finalizers.contains(POD_FINALIZER)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Options;
    use crate::kubernetes::objects::ObjectLane;
    use fixture::policy;
    use model::ServiceName;

    #[test]
    fn the_answer_to_a_write_of_an_earlier_term_says_nothing_of_now() {
        let mut controller = Controller::new(policy(), Options::default());
        let name = ServiceName::new("default", "web");
        let object = Object::Service { name, uid: ServiceUid::new("uid-1") };
        controller.kubernetes.objects.insert(object.clone(), ObjectLane::default());
        controller.inherit_all(0);
        assert!(controller.kubernetes.objects[&object].outlived);
    }
}
