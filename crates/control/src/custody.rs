//! Whether an object that shows our finalizer is certain to be there still.
//!
//! A watch may lag, and the process that could write before this one may have let the object go in
//! the meantime. An answer to a write of ours says that it is there: a write names its UID.

use crate::controller::Controller;
use model::kubernetes::{Custody, POD_FINALIZER, Pod, SERVICE_FINALIZER, Service};
use model::plan::Object;
use observe::KubernetesFact;
use std::sync::Arc;

impl Controller {
    /// What is known of an object holds for its next version; one that had our finalizer before
    /// this process ever saw it got it from another.
    pub(crate) fn keep_custody(&self, fact: &mut KubernetesFact) {
        let held = &self.world.kubernetes;
        match fact {
            KubernetesFact::Service(service) => {
                let old = held.services.get(&service.uid).map(|old| old.custody);
                service.custody = old.unwrap_or_else(|| first(is_ours(service)));
            }
            KubernetesFact::Pod(pod) => {
                let old = held.pods.get(&pod.name).filter(|old| old.uid == pod.uid);
                pod.custody = old.map_or_else(|| first(is_marked(pod)), |old| old.custody);
            }
            _ => {}
        }
    }

    /// The right to write was another process's until now.
    pub(crate) fn lose_custody(&mut self) {
        self.objects.values_mut().for_each(|lane| lane.outlived = true);
        let held = &mut self.world.kubernetes;
        for service in held.services.values_mut().filter(|service| is_ours(service)) {
            if service.custody == Custody::Own {
                let custody = Custody::Inherited;
                *service = Arc::new(Service { custody, ..Service::clone(service) });
            }
        }
        for pod in held.pods.values_mut().filter(|pod| is_marked(pod)) {
            if pod.custody == Custody::Own {
                *pod = Arc::new(Pod { custody: Custody::Inherited, ..Pod::clone(pod) });
            }
        }
    }

    /// A write to the object was answered: it is there, and nobody else can let it go.
    pub(crate) fn confirm(&mut self, object: &Object) {
        if self.objects.get(object).is_some_and(|lane| lane.outlived) {
            return;
        }
        let held = &mut self.world.kubernetes;
        match object {
            Object::Service { uid, .. } => {
                let service = held.services.get_mut(uid);
                let inherited = service.filter(|service| service.custody == Custody::Inherited);
                if let Some(service) = inherited {
                    let custody = Custody::Own;
                    *service = Arc::new(Service { custody, ..Service::clone(service) });
                }
            }
            Object::Pod { name, uid } => {
                let pod = held.pods.get_mut(name).filter(|pod| pod.uid == *uid);
                if let Some(pod) = pod.filter(|pod| pod.custody == Custody::Inherited) {
                    *pod = Arc::new(Pod { custody: Custody::Own, ..Pod::clone(pod) });
                }
            }
        }
    }
}

fn first(ours: bool) -> Custody {
    if ours { Custody::Inherited } else { Custody::Own }
}

fn is_ours(service: &Service) -> bool {
    service.has_finalizer(SERVICE_FINALIZER)
}

fn is_marked(pod: &Pod) -> bool {
    pod.finalizers.contains(POD_FINALIZER)
}
