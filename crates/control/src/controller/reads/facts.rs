//! Facts from Kubernetes come in.

use crate::controller::Controller;
use crate::effect::NoticeKind;
use crate::reads::left::Source;
use crate::reads::read::Read;
use model::ServiceUid;
use model::kubernetes::{
    Backends, Claim, Custody, Node, POD_FINALIZER, Pod, SERVICE_FINALIZER, Service, Wish,
};
use model::policy::{Layout, PoolKind};
use model::world::{Kind, Need};
use observe::KubernetesFact;
use observe::apply::{Applied, is_outdated, matters};
use plan::own::borne;
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
            // A list that comes late, or an event that comes twice, is no edit.
            KubernetesFact::Service(service)
                if is_outdated(&self.world.kubernetes, &self.reads.listing, service) => {}
            KubernetesFact::Service(service) => self.notice_service(service, now_ms),
            KubernetesFact::Node(node) if self.is_another_machine(node) => self.notice_node(),
            KubernetesFact::Pod(pod) => self.notice_pod(pod, now_ms),
            _ => {}
        }
        self.observers.history.causes.note_node(&fact, &self.world.kubernetes);
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
            self.notice_left(service, now_ms);
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
            self.retake(service);
            self.reads.left.take_back(&service.uid);
        }
        if changed {
            // What stood when this process began is no edit.
            if old.is_some() || !service.has_finalizer(SERVICE_FINALIZER) {
                self.observers.history.causes.edited(old.as_deref(), service, now_ms);
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
            self.look_for_named(service);
            self.say(now_ms, NoticeKind::Asked, &about, text, None);
        }
    }

    /// Reads lists that lack a resource which a Service names. It may be newer than the lists, and
    /// without this read the Service would be refused until the next drift check.
    fn look_for_named(&mut self, service: &Service) {
        let nodes = self.policy.over(Backends::Nodes);
        let nodes = nodes.filter(|_| service.wish == Wish::LoadBalancer);
        let needs = nodes.map(|policy| plan::unfound(&self.world, policy, service));
        needs.into_iter().flatten().for_each(|need| self.read_in_turn(need));
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

    /// Whether a node is new, or stands for a machine, or an interface, that it did not stand for.
    /// Addresses and a provider ID that a new node gets later do not change its machine.
    fn is_another_machine(&self, node: &Node) -> bool {
        let Some(old) = self.world.kubernetes.nodes.get(&node.name) else { return true };
        let moved = !old.addresses.is_empty() && old.addresses != node.addresses;
        moved || (old.provider_id.is_some() && old.provider_id != node.provider_id)
    }

    /// A node's machine is another one: where machines are in pools themselves, it has to be looked
    /// up.
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

    /// A Service is gone, or wants nothing of us any more and carries no finalizer of ours. Whether
    /// its resources are removed depends on a list that may have to be read first. A standby leaves
    /// that decision to the leader, which has newer lists.
    fn notice_left(&mut self, service: Arc<Service>, now_ms: u64) {
        self.forgive(&service.uid);
        self.lanes.asked_ms.remove(&service.uid);
        let leads = self.term.is_held();
        let source = if leads { Source::Seen } else { Source::Before };
        let names = borne::of(&service);
        self.reads.left.put_off(Arc::clone(&service), names, source, now_ms);
        // Only this one: Services that wait for lists are looked at when those are read.
        if leads {
            self.decide_on(&service, now_ms);
        }
    }

    /// Decides on Services that are gone, as far as the lists for that are read.
    pub(crate) fn decide_left(&mut self, now_ms: u64) {
        if !self.term.is_held() {
            return;
        }
        for service in self.reads.left.due().cloned().collect::<Vec<Arc<Service>>>() {
            self.decide_on(&service, now_ms);
        }
    }

    /// Decides on a Service that is gone, or has the list read that this takes.
    fn decide_on(&mut self, service: &Service, now_ms: u64) {
        let nodes = self.policy.over(Backends::Nodes);
        match nodes.and_then(|policy| plan::unread_links(&self.world, policy, service)) {
            None => {
                self.reads.left.take_back(&service.uid);
                self.part_with(service, now_ms);
                self.planning.dirty = true;
            }
            Some(need) if self.reads.store.get(&need).is_some_and(Read::is_awaited) => {}
            Some(need) => self.read_now(need),
        }
    }

    /// What a Service had is gone before the Service, unless another client took the finalizer off,
    /// or a process that led before made something late: that belongs to no Service, and goes. What
    /// private endpoints are connected to is an orphan, for an operator to decide on.
    fn part_with(&mut self, service: &Service, now_ms: u64) {
        let nodes = self.policy.over(Backends::Nodes);
        match nodes.and_then(|policy| plan::bereft(&self.world, policy, service)) {
            None => self.leave_names(borne::of(service), now_ms),
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
        // Another Service may have its name by now.
        let heir = self.reads.listing.holder(&service.name);
        let heir = heir.and_then(|uid| self.world.kubernetes.services.get(uid)).cloned();
        if let Some(heir) = heir {
            self.retake_names(borne::of(&heir));
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
        moving: None,
        custody: Custody::Own,
        editors: None,
        ..service.clone()
    }
}

#[cfg(test)]
mod tests {
    use crate::budget::Urgency;
    use crate::reads::read::Read;
    use crate::sample::{policy, service};
    use crate::{Controller, Event, Leadership, Options};
    use model::azure::{ConnectionState, PrivateEndpointConnection, PrivateLinkService};
    use model::kubernetes::{LoadBalancerType, Node, Service, Wish};
    use model::policy::PoolKind;
    use model::world::{Fact as Known, Kind, Need};
    use model::{Policy, ServiceUid};
    use observe::KubernetesFact as Fact;
    use std::collections::BTreeMap;
    use std::net::IpAddr;
    use std::sync::Arc;

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

    #[test]
    fn when_a_service_was_changed_is_known() {
        let mut controller = Controller::new(policy(), Options::default());
        let service = fixture::numbered(1, &[]);
        let uid = service.uid.clone();
        controller.learn(Fact::Service(Box::new(service)), 5);
        assert!(controller.lanes.is_changed_since(&uid, 4));
        assert!(!controller.lanes.is_changed_since(&uid, 5));
    }

    #[test]
    fn what_is_older_than_what_is_held_is_no_edit() {
        let mut controller = Controller::new(policy(), Options::default());
        let mut changed = |revision: &str, annotations: &[(&str, &str)], now_ms: u64| {
            let service = fixture::numbered(1, annotations);
            let uid = service.uid.clone();
            let service = Service { revision: revision.into(), ..service };
            controller.learn(Fact::Service(Box::new(service)), now_ms);
            controller.lanes.is_changed_since(&uid, 5)
        };
        let asks = [("azure-load-balancer-tcp-idle-timeout", "9")];
        assert!(!changed("6", &[], 5));
        assert!(!changed("4", &asks, 7), "an event that comes late");
        assert!(changed("8", &asks, 9));
    }

    #[test]
    fn what_a_service_names_and_lists_lack_is_looked_for_again() {
        let mut controller = Controller::new(fixture::policy(), Options::default());
        let need = Need::PublicIps(controller.policy.group.clone());
        let none = Known::Known(BTreeMap::new());
        controller.world.azure.public_ips.insert(controller.policy.group.clone(), none);
        for (annotations, looks) in [(&[][..], false), (&[("azure-pip-name", "made")][..], true)] {
            let service = fixture::numbered(1, annotations);
            hear(&mut controller, [Fact::Service(Box::new(service))]);
            let read = controller.reads.store.get(&need);
            assert_eq!(read.is_some_and(Read::is_awaited), looks);
        }
        // A tenant can ask for this read any number of times, so it comes after all others.
        controller.reads.store.clear();
        controller.look_for_named(&fixture::numbered(1, &[("azure-pip-name", "made")]));
        let read = controller.reads.store.get(&need);
        assert_eq!(read.and_then(Read::urgency), Some(Urgency::Background));
    }

    /// A VM that is stopped may be started with another network interface.
    #[test]
    fn the_machine_of_a_node_with_another_address_is_looked_up() {
        let policy = Policy { pools: PoolKind::NodeNic, ..fixture::policy() };
        let mut controller = Controller::new(policy, Options::default());
        let mut is_looked_up = |revision: &str, address: Option<u8>| {
            let read = controller.reads.store.entry(Need::NetworkInterfaces).or_default();
            *read = Read::default();
            read.end(0);
            let address = address.map(|last| IpAddr::from([10, 0, 0, last]));
            let node = fixture::node("n", Vec::from_iter(address));
            controller.learn(Fact::Node(Node { revision: revision.into(), ..node }), 0);
            controller.reads.store[&Need::NetworkInterfaces].is_awaited()
        };
        assert!(is_looked_up("1", None), "it is new");
        assert!(!is_looked_up("2", Some(4)), "that is what it was waited for");
        assert!(!is_looked_up("3", Some(4)));
        assert!(is_looked_up("4", Some(5)));
    }

    /// One private endpoint is connected to the Private Link Service of this Service.
    fn link(policy: &Policy, uid: &ServiceUid) -> PrivateLinkService {
        let link = fixture::private_link("pls");
        let balancer = policy.balancer_id("kubernetes-internal");
        let connection = link.id.child("privateEndpointConnections", "c");
        PrivateLinkService {
            frontends: vec![balancer.child("frontendIPConfigurations", &uid.base_name())],
            connections: vec![PrivateEndpointConnection {
                id: connection,
                state: ConnectionState::Connected,
            }],
            ..link
        }
    }

    fn with_link() -> Service {
        let asks = [("azure-load-balancer-internal", "true"), ("azure-pls-create", "true")];
        fixture::numbered(1, &asks)
    }

    /// A process that has just begun, without a ledger, and a Service that goes before its Private
    /// Link Services are read.
    fn undecided() -> (Controller, Service) {
        let service = with_link();
        let mut controller = Controller::new(fixture::policy(), Options::default());
        controller.world.kubernetes.ledger = Known::Known(Arc::default());
        hear(&mut controller, [Fact::Service(Box::new(service.clone()))]);
        let gone = [Fact::ServiceGone(service.uid.clone())];
        assert!(hear(&mut controller, gone).is_empty(), "it is not known");
        (controller, service)
    }

    /// They are read.
    fn read(controller: &mut Controller, all: Option<PrivateLinkService>) -> Vec<String> {
        let all = all.into_iter().map(|link| (link.id.clone(), Arc::new(link)));
        let group = controller.policy.private_link_group.clone();
        controller.world.azure.private_links.insert(group, Known::Known(all.collect()));
        controller.decide_left(1);
        controller.world.abandoned.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_a_service_had_is_taken_away_once_its_private_links_are_read() {
        for connected in [false, true] {
            let (mut controller, service) = undecided();
            let link = connected.then(|| link(&controller.policy, &service.uid));
            assert_eq!(read(&mut controller, link).is_empty(), connected);
        }
    }

    /// A private endpoint is connected after a standby has read the Private Link Services, and
    /// before it leads.
    #[test]
    fn a_standby_decides_on_no_service_that_goes() {
        for connected in [false, true] {
            let service = with_link();
            let options = Options { leadership: Leadership::Lost, ..Options::default() };
            let mut controller = Controller::new(fixture::policy(), options);
            controller.world.kubernetes.ledger = Known::Known(Arc::default());
            assert!(read(&mut controller, None).is_empty());
            hear(&mut controller, [Fact::Service(Box::new(service.clone()))]);
            assert!(hear(&mut controller, [Fact::ServiceGone(service.uid.clone())]).is_empty());
            controller.step([Event::Leadership(Leadership::Held)], 1);
            controller.world.kubernetes.ledger = Known::Known(Arc::default());
            assert!(controller.world.abandoned.is_empty() && controller.owes_names());
            let link = connected.then(|| link(&controller.policy, &service.uid));
            assert_eq!(read(&mut controller, link).is_empty(), connected);
        }
    }

    /// What the other one has bears the same name in its tags.
    #[test]
    fn a_name_that_another_service_has_by_now_is_not_left() {
        let own = |service: &Service| [service.uid.as_str().to_owned(), service.uid.base_name()];
        let heir = |service: &Service| {
            let heir = Service { uid: fixture::uid(2), ..service.clone() };
            Fact::Service(Box::new(heir))
        };
        // Its end was not heard of.
        let mut controller = Controller::new(policy(), Options::default());
        let old = service(None);
        let facts = [Fact::Service(Box::new(old.clone())), heir(&old)];
        assert_eq!(hear(&mut controller, facts), own(&old));
        // It waited for a list.
        let (mut controller, old) = undecided();
        assert!(hear(&mut controller, [heir(&old)]).is_empty());
        assert_eq!(read(&mut controller, None), own(&old));
    }
}
