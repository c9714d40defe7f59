//! What becomes of Kubernetes objects, and the time that passes for them.

use super::Path;
use model::ServiceUid;
use model::kubernetes::{Custody, Ingress, Move, Service};
use model::plan::{ConditionEdit, Edit, KubernetesWrite, MoveEdit, Object};
use std::collections::BTreeSet;
use std::sync::Arc;

impl Path {
    /// Lets time pass. Whether anything waits for it.
    pub(super) fn wait(&mut self) -> bool {
        // What waits for lists that are certain goes on once they are.
        let inherited = std::mem::take(&mut self.world.inherited);
        let unseen = std::mem::take(&mut self.world.unseen);
        self.elapse() || !inherited.is_empty() || !unseen.is_empty()
    }

    /// Services that move have been at their stages for long enough. Whether there are any.
    pub(super) fn elapse(&mut self) -> bool {
        let services = self.world.kubernetes.services.values();
        let moving = services.filter(|service| service.moving.is_some());
        let moving: BTreeSet<ServiceUid> = moving.map(|service| service.uid.clone()).collect();
        let more = moving != self.world.elapsed;
        self.world.elapsed = moving;
        more
    }

    pub(super) fn write(&mut self, write: &KubernetesWrite) {
        match &write.object {
            Object::Service { uid, .. } => self.write_service(uid, &write.edit),
            Object::Pod { name, .. } => {
                let gated = self.world.kubernetes.gated_pods.get_mut(name);
                if let (Edit::Gate { gate, .. }, Some(pod)) = (&write.edit, gated) {
                    Arc::make_mut(pod).gate = *gate;
                }
                let Some(pod) = self.world.kubernetes.pods.get_mut(name) else { return };
                if let Edit::Finalizers { list, marks, .. } = &write.edit {
                    let pod = Arc::make_mut(pod);
                    pod.finalizers = list.iter().cloned().collect::<BTreeSet<_>>();
                    pod.custody = Custody::Own;
                    if let Some(marks) = marks {
                        pod.marks.clone_from(marks);
                    }
                }
            }
        }
    }

    fn write_service(&mut self, uid: &ServiceUid, edit: &Edit) {
        let services = &mut self.world.kubernetes.services;
        let Some(service) = services.get_mut(uid) else { return };
        let service: &mut Service = Arc::make_mut(service);
        match edit {
            Edit::Finalizers { list, purpose, .. } => {
                service.finalizers.clone_from(list);
                service.custody = Custody::Own;
                if *purpose == model::plan::FinalizerPurpose::Release {
                    services.remove(uid);
                }
            }
            Edit::Status { ingress, condition, moving } => {
                show(service, ingress.as_deref(), condition);
                match *moving {
                    MoveEdit::Keep => {}
                    MoveEdit::Set { to, stage } => {
                        service.moving = Some(Move { to, stage, since: Arc::from("") });
                    }
                    MoveEdit::Remove => service.moving = None,
                }
                if *moving != MoveEdit::Keep {
                    self.world.elapsed.remove(uid);
                }
            }
            Edit::Gate { .. } => {}
        }
    }
}

fn show(service: &mut Service, ingress: Option<&[Ingress]>, condition: &ConditionEdit) {
    if let Some(list) = ingress {
        service.ingress = list.to_vec();
    }
    match condition {
        ConditionEdit::Keep => {}
        ConditionEdit::Set(condition) => service.condition = Some(condition.clone()),
        ConditionEdit::Remove => service.condition = None,
    }
}
