//! Facts from Kubernetes come in.

use crate::controller::Controller;
use crate::effect::NoticeKind;
use model::ServiceUid;
use model::kubernetes::{Claim, Custody, POD_FINALIZER, Pod, Service, Wish};
use model::policy::{Layout, PoolKind};
use model::world::{Kind, Need};
use observe::KubernetesFact;
use observe::apply::Applied;
use std::collections::BTreeSet;
use std::sync::Arc;

impl Controller {
    /// A fact from a watch.
    pub(crate) fn learn(&mut self, mut fact: KubernetesFact, now_ms: u64) {
        if let KubernetesFact::Pod(pod) = &mut fact {
            if pod.finalizers.contains(POD_FINALIZER) {
                self.kubernetes.waived.remove(&pod.uid);
            } else if self.kubernetes.waived.contains(&pod.uid) {
                pod.claim = Claim::Waived;
            }
        }
        if let KubernetesFact::PodGone(name) = &fact
            && let Some(pod) = self.world.kubernetes.pods.get(name)
        {
            self.kubernetes.waived.remove(&pod.uid);
        }
        self.keep_custody(&mut fact);
        match &fact {
            KubernetesFact::Service(service) => self.notice_service(service, now_ms),
            KubernetesFact::ServiceGone(uid) => self.notice_gone(uid),
            KubernetesFact::Node(node) if !self.world.kubernetes.nodes.contains_key(&node.name) => {
                self.notice_node();
            }
            KubernetesFact::Pod(pod) => self.notice_pod(pod, now_ms),
            _ => {}
        }
        let begun = self.is_listing() && !matches!(fact, KubernetesFact::ListEnd(_));
        let gated = self.gate_subject(&fact);
        let stir = self.stir(&fact);
        if observe::apply::apply(&mut self.world.kubernetes, &mut self.reads.listing, fact)
            == Applied::Changed
        {
            self.planning.dirty |= !begun;
            self.follow_gates(gated, now_ms);
            self.time(stir, now_ms);
        }
    }

    /// Whether the first lists are not complete, without which nothing is planned: until one of
    /// them ends another object more is no reason to look at all of them.
    fn is_listing(&self) -> bool {
        self.policy.layout == Layout::PerService && !self.world.is_complete(&Kind::CONTAINER)
    }

    fn notice_service(&mut self, service: &Service, now_ms: u64) {
        let old = self.world.kubernetes.services.get(&service.uid).cloned();
        let changed = match &old {
            Some(old) => asks(old) != asks(service),
            None => service.wish == Wish::LoadBalancer,
        };
        let was = old.as_ref().map(|old| old.custody);
        if self.is_inherited(was, service.custody) {
            self.inherit(&service.uid, now_ms);
        }
        self.world.abandoned.remove(service.name.to_string().to_lowercase().as_str());
        if changed {
            self.forgive(&service.uid);
            self.lanes.asked_ms.insert(service.uid.clone(), now_ms);
            self.time_service(&service.uid, now_ms);
            let text = match (&old, service.wish) {
                (None, _) => format!("Service {} asks for a load balancer", service.name),
                (Some(_), Wish::LoadBalancer) => format!("Service {} was changed", service.name),
                (Some(_), Wish::Nothing) => {
                    format!("Service {} no longer wants a load balancer", service.name)
                }
            };
            let about = BTreeSet::from([service.uid.clone()]);
            self.note_name(service);
            self.name_change(&service.uid);
            self.say(now_ms, NoticeKind::Asked, &about, text, None);
        }
    }

    /// A Pod of another process's may have egress gateways that lists do not show yet.
    fn notice_pod(&mut self, pod: &Pod, now_ms: u64) {
        let old = self.world.kubernetes.pods.get(&pod.name).filter(|old| old.uid == pod.uid);
        let was = old.map(|old| old.custody);
        if self.is_inherited(was, pod.custody) {
            for name in pod.egress.iter().chain(&pod.marks) {
                self.inherit(&ServiceUid::new(name), now_ms);
            }
        }
    }

    /// A node is new: where machines are in pools themselves, its machine has to be looked up.
    fn notice_node(&mut self) {
        let nics = self.policy.pools == PoolKind::NodeNic;
        // Where nodes are divided by their sets, a VM's set stands nowhere but in Azure.
        let divided = matches!(self.policy.layout, Layout::Several(_) | Layout::PerNodeSet { .. });
        let machines = |need: &Need| match need {
            Need::ScaleSets | Need::ScaleSetVms(_) | Need::NetworkInterfaces => nics,
            Need::VirtualMachines => nics || divided,
            _ => false,
        };
        self.read_known_again(machines);
    }

    /// A Service vanished although its finalizer should have kept it: what it has is nobody's.
    fn notice_gone(&mut self, uid: &ServiceUid) {
        if let Some(service) = self.world.kubernetes.services.get(uid) {
            let name = service.name.to_string().to_lowercase();
            self.world.abandoned.insert(Arc::from(name));
            self.world.abandoned.insert(Arc::from(uid.base_name().to_lowercase()));
            self.world.abandoned.insert(Arc::from(uid.as_str().to_lowercase()));
            self.forgive(&uid.clone());
            self.lanes.asked_ms.remove(uid);
        }
    }
}

/// What of a Service its owner decides on.
fn asks(service: &Service) -> Service {
    Service {
        revision: Arc::from(""),
        finalizers: Vec::new(),
        ingress: Vec::new(),
        condition: None,
        custody: Custody::Own,
        ..service.clone()
    }
}
