//! Facts from Kubernetes come in.

use crate::controller::Controller;
use crate::effect::NoticeKind;
use model::ServiceUid;
use model::kubernetes::{
    Backends, Claim, Custody, POD_FINALIZER, Pod, SERVICE_FINALIZER, Service, Wish,
};
use model::policy::{Layout, PoolKind};
use model::world::{Kind, Need};
use observe::KubernetesFact;
use observe::apply::{Applied, matters};
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
            KubernetesFact::Node(node) if !self.world.kubernetes.nodes.contains_key(&node.name) => {
                self.notice_node();
            }
            KubernetesFact::Pod(pod) => self.notice_pod(pod, now_ms),
            _ => {}
        }
        self.note_nodes(&fact);
        let begun = self.is_listing() && !matches!(fact, KubernetesFact::ListEnd(..));
        let gated = self.gate_subject(&fact);
        let stir = self.stir(&fact);
        if observe::apply::apply(&mut self.world.kubernetes, &mut self.reads.listing, fact)
            == Applied::Changed
        {
            self.planning.dirty |= !begun;
            self.follow_gates(gated, now_ms);
            self.observers.latencies.time(stir, now_ms);
        }
        for service in self.reads.listing.take_left() {
            self.notice_left(&service, now_ms);
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
        if matters(service) {
            self.retake_names(names_of(service));
        }
        if changed {
            // What stood when this process began is no edit.
            if old.is_some() || !service.has_finalizer(SERVICE_FINALIZER) {
                self.note_edit(old.as_deref(), service, now_ms);
            }
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
        let Some(policy) = self.policy.over(Backends::Nodes) else { return };
        // What the pools hold that Services leave is as Azure has it.
        let nics = policy.pools == PoolKind::NodeNic || self.policy.backends() == Backends::Pods;
        // Where nodes are divided by their sets, a VM's set stands nowhere but in Azure.
        let divided = matches!(policy.layout, Layout::Several(_) | Layout::PerNodeSet { .. });
        let machines = |need: &Need| match need {
            Need::ScaleSets | Need::ScaleSetVms(_) | Need::NetworkInterfaces => nics,
            Need::VirtualMachines => nics || divided,
            _ => false,
        };
        self.read_known_again(machines);
    }

    /// A Service is gone, or wants nothing of us any more and carries no finalizer of ours. What it
    /// had is gone before, unless somebody else took the finalizer off, or a process that led
    /// before made something late: that is nobody's. What private endpoints are connected to is an
    /// orphan, for an operator to decide on.
    fn notice_left(&mut self, service: &Service, now_ms: u64) {
        let nodes = self.policy.over(Backends::Nodes);
        match nodes.and_then(|policy| plan::bereft(&self.world, policy, service)) {
            None => self.leave_names(names_of(service), now_ms),
            Some(makers) => {
                self.retake_names(makers);
                let text = format!(
                    "Service {} is gone without having been released, and private endpoints are \
                     connected to its Private Link Service: what it has in Azure stays; \
                     `ballast orphans` lists it",
                    service.name
                );
                self.say(now_ms, NoticeKind::Refused, &BTreeSet::new(), text, None);
            }
        }
        self.forgive(&service.uid);
        self.lanes.asked_ms.remove(&service.uid);
    }
}

/// What names of a Service's are in Azure, lower case.
fn names_of(service: &Service) -> [Arc<str>; 3] {
    let (name, uid) = (&service.name, &service.uid);
    [name.to_string(), uid.base_name(), uid.as_str().to_owned()]
        .map(|name| Arc::from(name.to_lowercase()))
}

/// What of a Service its owner decides on.
fn asks(service: &Service) -> Service {
    Service {
        revision: Arc::from(""),
        finalizers: Vec::new(),
        ingress: Vec::new(),
        condition: None,
        moving: None,
        custody: Custody::Own,
        editors: None,
        ..service.clone()
    }
}

#[cfg(test)]
mod tests {
    use crate::sample::{policy, service};
    use crate::{Controller, Event, Options};
    use model::kubernetes::{LoadBalancerType, Service, Wish};
    use model::world::Kind;
    use observe::KubernetesFact as Fact;

    fn hear(controller: &mut Controller, facts: impl IntoIterator<Item = Fact>) -> Vec<String> {
        controller.step(facts.into_iter().map(Event::Kubernetes), 0);
        controller.world.abandoned.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_service_that_wants_nothing_any_more_has_left() {
        let of = |revision: &str| Service { revision: revision.into(), ..service(None) };
        let plain = |revision: &str| Service {
            wish: Wish::Nothing,
            load_balancer_type: LoadBalancerType::Other,
            finalizers: Vec::new(),
            ..of(revision)
        };
        let fact = |service: Service| [Fact::Service(Box::new(service))];
        let mut controller = Controller::new(policy(), Options::default());
        let controller = &mut controller;
        assert!(hear(controller, fact(of("2"))).is_empty());
        // What a process that led before makes late for it goes by these names.
        let uid = of("2").uid;
        let names = [uid.as_str().to_owned(), uid.base_name(), "default/web".to_owned()];
        assert_eq!(hear(controller, fact(plain("3"))), names);
        assert_eq!(hear(controller, fact(plain("4"))), names, "a change of it is no return");
        assert!(hear(controller, fact(of("6"))).is_empty(), "it is one again");
        // A list may be old: what it lacks counts for nothing.
        let list = [Fact::ListBegin(Kind::Services), Fact::ListEnd(Kind::Services, None)];
        assert!(hear(controller, list).is_empty());
        assert!(controller.world.kubernetes.services.is_empty());
    }
}
