//! A cluster and a cloud, as small as planning sees them.

use crate::Planner;
use crate::own::pod_names;
pub(super) use fixture::{container_policy as policy, uid};
use model::azure::{FrontendAddress, LoadBalancer, NatGateway, PublicIp, Sku};
use model::gateway::{
    DefaultService, Direction, GatewayService, GatewayServices, Locations, LocationsUpdate,
    ServicesUpdate, UpdateAction,
};
use model::kubernetes::{
    Custody, Deletion, EndpointSlice, Gate, GateReason, GatedPod, Node, Others, Pod, PodPhase,
    Readiness, Service, ServicePort, TargetPort, Wish,
};
use model::plan::{
    Action, Change, ConditionEdit, Edit, FinalizerPurpose, KubernetesWrite, Object, Resource,
};
use model::report::Wait;
use model::world::{Fact, InFlight, Kind, Labels};
use model::{Family, Plan, Policy, Report, ResourceId, ServiceName, World};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

pub(super) fn ip(text: &str) -> IpAddr {
    text.parse().expect("tests write addresses that parse")
}

pub(super) fn service(n: u8) -> Service {
    Service {
        selector: labels_of(&[("app", "web")]),
        ports: vec![port(80, 8080)],
        ..fixture::numbered(n, &[])
    }
}

pub(super) fn port(port: u16, target: u16) -> ServicePort {
    let target_port = TargetPort::Number(target);
    ServicePort { target_port, node_port: None, ..fixture::port("", port, 0) }
}

pub(super) fn pod(n: u8, label: &str, node: u8) -> Pod {
    Pod {
        uid: format!("pod-{n}").into(),
        name: ServiceName::new("default", format!("pod-{n}")),
        revision: "1".into(),
        egress: Some(label.into()),
        deletion: Deletion::None,
        phase: PodPhase::Alive,
        finalizers: BTreeSet::new(),
        marks: BTreeSet::new(),
        claim: model::kubernetes::Claim::Needed,
        custody: Custody::Own,
        addresses: vec![pod_ip(n)],
        hosts: vec![node_ip(node)],
    }
}

/// A Pod that is ready but for our gate.
pub(super) fn gated(n: u8, labels: &[(&str, &str)]) -> GatedPod {
    GatedPod {
        uid: format!("pod-{n}").into(),
        name: ServiceName::new("default", format!("pod-{n}")),
        revision: "1".into(),
        labels: labels_of(labels),
        addresses: vec![pod_ip(n)],
        others: Others::Hold,
        gate: Gate::Shut,
        reason: "".into(),
    }
}

pub(super) fn labels_of(labels: &[(&str, &str)]) -> Labels {
    Arc::new(labels.iter().map(|(k, v)| (Arc::from(*k), Arc::from(*v))).collect())
}

fn flight(change: &Change, world: &World) -> InFlight {
    let table = world.azure.gateway_locations.known().map(AsRef::as_ref);
    let addresses = match &change.action {
        Action::UpdateLocations(update) => update.touched(table),
        _ => BTreeSet::new(),
    };
    let addresses = Arc::new(addresses);
    InFlight { attempt: 1, causes: change.causes.clone(), addresses, goes: false }
}

pub(super) fn node_ip(n: u8) -> IpAddr {
    IpAddr::from([10, 224, 0, n])
}

pub(super) fn pod_ip(n: u8) -> IpAddr {
    IpAddr::from([10, 244, 0, n])
}

/// A cluster with a Service Gateway beside it. Calls that Azure would refuse are panics.
pub(super) struct Stage {
    pub world: World,
    pub policy: Policy,
    pub planner: Planner,
    /// Azure calls that were carried out: verb and name.
    pub calls: Vec<String>,
    pub flying: Vec<Change>,
    addresses: u8,
    revision: u64,
}

impl Stage {
    pub fn new() -> Self {
        let policy = policy();
        let mut world = World::default();
        world.kubernetes.complete = Kind::CONTAINER.into_iter().collect();
        world.azure.balancers = Fact::Known(BTreeMap::new());
        world.azure.public_ips.insert(policy.group.clone(), Fact::Known(BTreeMap::new()));
        world.azure.nat_gateways = Fact::Known(BTreeMap::new());
        world.azure.gateway_locations = Fact::Known(Arc::new(Locations::new()));
        let nat_gateway = Some(policy.network_id(&policy.group, "natGateways", "default-natgw"));
        let default = GatewayService {
            direction: Direction::Outbound,
            default: DefaultService::Yes,
            nat_gateway,
            ..fixture::gateway_service("default-natgw")
        };
        let services = BTreeMap::from([(Arc::from("default-natgw"), Arc::new(default))]);
        world.azure.gateway_services = Fact::Known(services);
        let mut stage = Self {
            world,
            policy,
            planner: Planner::default(),
            calls: Vec::new(),
            flying: Vec::new(),
            addresses: 0,
            revision: 1,
        };
        for n in 1..=3 {
            stage.node(n, vec![node_ip(n)]);
        }
        stage
    }

    /// So many Services have come, and nothing is done for them yet.
    pub fn asked(services: u8) -> Self {
        let mut stage = Self::new();
        (1..=services).for_each(|n| stage.put(service(n)));
        stage
    }

    /// A Pod leaves through the gateway `team-a`.
    pub fn leaving() -> Self {
        let mut stage = Self::new();
        stage.put_pod(pod(1, "team-a", 1));
        stage.settle();
        stage
    }

    /// Service 1 stands, with these endpoints in a slice where there are any.
    pub fn serving(endpoints: &[(u8, u8)]) -> Self {
        let mut stage = Self::asked(1);
        if !endpoints.is_empty() {
            stage.slice("web-a", 1, endpoints);
        }
        stage.settle();
        stage
    }

    fn revise(&mut self) -> Arc<str> {
        self.revision += 1;
        Arc::from(self.revision.to_string())
    }

    pub fn node(&mut self, n: u8, addresses: Vec<IpAddr>) {
        let node = fixture::node(&format!("node-{n}"), addresses);
        let node = Node { revision: self.revise(), ..node };
        self.world.kubernetes.nodes.insert(node.name.clone(), Arc::new(node));
    }

    pub fn put(&mut self, mut service: Service) {
        service.revision = self.revise();
        self.world.kubernetes.services.insert(service.uid.clone(), Arc::new(service));
    }

    pub fn edit(&mut self, n: u8, edit: impl FnOnce(&mut Service)) {
        let Some(service) = self.world.kubernetes.services.get(&uid(n)) else { return };
        let mut service = Service::clone(service);
        edit(&mut service);
        if service.wish == Wish::Nothing && service.finalizers.is_empty() {
            self.world.kubernetes.services.remove(&uid(n));
        } else {
            self.put(service);
        }
    }

    /// A slice of a Service: addresses and the nodes they are on.
    pub fn slice(&mut self, name: &str, owner: u8, endpoints: &[(u8, u8)]) {
        let endpoint =
            |(pod, node): &(u8, u8)| fixture::endpoint(pod_ip(*pod), &format!("node-{node}"));
        let slice = EndpointSlice {
            revision: self.revise(),
            owner: Some(uid(owner)),
            ..fixture::slice(name, endpoints.iter().map(endpoint).collect())
        };
        self.world.kubernetes.slices.insert(slice.name.clone(), Arc::new(slice));
    }

    /// Changes a slice of the namespace `default`.
    pub fn edit_slice(&mut self, name: &str, edit: impl FnOnce(&mut EndpointSlice)) {
        let name = ServiceName::new("default", name);
        let slice = self.world.kubernetes.slices.remove(&name).expect("it was put there");
        let mut slice = EndpointSlice::clone(&slice);
        slice.revision = self.revise();
        edit(&mut slice);
        self.world.kubernetes.slices.insert(slice.name.clone(), Arc::new(slice));
    }

    pub fn put_pod(&mut self, mut pod: Pod) {
        pod.revision = self.revise();
        self.world.kubernetes.pods.insert(pod.name.clone(), Arc::new(pod));
    }

    pub fn edit_pod(&mut self, n: u8, edit: impl FnOnce(&mut Pod)) {
        let name = ServiceName::new("default", format!("pod-{n}"));
        let Some(pod) = self.world.kubernetes.pods.get(&name) else { return };
        let mut pod = Pod::clone(pod);
        edit(&mut pod);
        self.put_pod(pod);
    }

    /// A slice of a Service whose Pods are not ready: Pods' numbers and their nodes'.
    pub fn unready(&mut self, name: &str, owner: u8, endpoints: &[(u8, u8)]) {
        self.slice(name, owner, endpoints);
        let slice = self.world.kubernetes.slices.get_mut(&ServiceName::new("default", name));
        let slice = Arc::make_mut(slice.expect("it was put there"));
        slice.endpoints.iter_mut().for_each(|e| e.readiness = Readiness::NotReady);
        let names = endpoints.iter().map(|(pod, _)| Arc::from(format!("pod-{pod}")));
        slice.unready = slice.endpoints.iter().map(|e| e.address).zip(names).collect();
    }

    pub fn put_gated(&mut self, mut pod: GatedPod) {
        pod.revision = self.revise();
        self.world.kubernetes.gated_pods.insert(pod.name.clone(), Arc::new(pod));
    }

    pub fn edit_gated(&mut self, name: &ServiceName, edit: impl FnOnce(&mut GatedPod)) {
        let Some(pod) = self.world.kubernetes.gated_pods.get(name) else { return };
        let mut pod = GatedPod::clone(pod);
        edit(&mut pod);
        self.put_gated(pod);
    }

    pub fn plan(&mut self) -> (Plan, Report) {
        let in_flight = |change: &Change| (change.target.clone(), flight(change, &self.world));
        self.world.in_flight = self.flying.iter().map(in_flight).collect();
        let planned = self.planner.plan(&self.world, &self.policy);
        assert_eq!(planned, crate::plan(&self.world, &self.policy), "what is remembered is wrong");
        // Holders of contested addresses are recorded at once.
        if self.world.holders != planned.1.holders {
            self.world.holders = planned.1.holders;
            return self.plan();
        }
        planned
    }

    /// Changes that could be sent: those that wait on nothing, or on company that does not come.
    pub fn ready(&mut self) -> (Vec<Change>, Vec<KubernetesWrite>) {
        let (plan, _) = self.plan();
        let soft = |w: &Wait| matches!(w, Wait::Gathering { .. });
        let free = |c: &Change| self.flying.iter().all(|f| f.target != c.target);
        let (mut ready, mut gathering) = (Vec::new(), Vec::new());
        let changes = plan.changes.into_iter().map(Arc::unwrap_or_clone);
        for change in changes.filter(|c| c.waits.iter().all(soft)) {
            if !free(&change) {
                continue;
            }
            if change.waits.is_empty() { &mut ready } else { &mut gathering }.push(change);
        }
        (if ready.is_empty() { gathering } else { ready }, plan.writes)
    }

    /// Carries out plans until there is nothing to do.
    pub fn settle(&mut self) {
        for change in std::mem::take(&mut self.flying) {
            self.apply(change);
        }
        for _ in 0..100 {
            let (changes, writes) = self.ready();
            if changes.is_empty() && writes.is_empty() {
                let (plan, _) = self.plan();
                assert_eq!(plan, Plan::default(), "planning again is not empty");
                return;
            }
            changes.into_iter().for_each(|change| self.apply(change));
            writes.iter().for_each(|write| self.write(write));
        }
        panic!("it never settles: {:#?}", self.plan());
    }

    /// One round: everything that can be sent is carried out.
    pub fn round(&mut self) -> Vec<Change> {
        let (changes, writes) = self.ready();
        changes.iter().cloned().for_each(|change| self.apply(change));
        writes.iter().for_each(|write| self.write(write));
        changes
    }

    pub fn locations(&self) -> &Locations {
        self.world.azure.gateway_locations.known().expect("the stage knows everything")
    }

    /// The address table in words.
    pub fn table(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for (location, addresses) in self.locations() {
            for (address, services) in addresses.iter() {
                let services: Vec<&str> =
                    services.iter().map(|s| s.get(..8).unwrap_or(s)).collect();
                lines.push(format!("{location} {address} {}", services.join(",")));
            }
        }
        lines
    }

    pub fn services(&self) -> &GatewayServices {
        self.world.azure.gateway_services.known().expect("the stage knows everything")
    }

    pub fn balancers(&self) -> &BTreeMap<ResourceId, Arc<LoadBalancer>> {
        self.world.azure.balancers.known().expect("the stage knows everything")
    }

    pub fn nats(&self) -> &BTreeMap<ResourceId, Arc<NatGateway>> {
        self.world.azure.nat_gateways.known().expect("the stage knows everything")
    }

    pub fn ips(&self) -> &BTreeMap<ResourceId, Arc<PublicIp>> {
        self.world.azure.public_ips[&self.policy.group].known().expect("the stage knows everything")
    }

    fn is_used(&self, ip: &ResourceId) -> bool {
        let fronted = self.balancers().values().flat_map(|b| &b.frontends);
        fronted.into_iter().any(|f| f.address == FrontendAddress::Public(ip.clone()))
            || self
                .nats()
                .values()
                .any(|n| n.public_ips.contains(ip) || n.public_ips_v6.contains(ip))
    }

    /// Carries out one call, as strictly as Azure.
    pub fn apply(&mut self, change: Change) {
        let name = change.target.name().to_owned();
        match change.action {
            Action::Put { after, .. } => {
                self.calls.push(format!("PUT {name}"));
                self.put_resource(after);
            }
            Action::Delete { before } => {
                self.calls.push(format!("DELETE {name}"));
                self.delete(&before);
            }
            Action::UpdateServices(update) => {
                self.calls.push(format!("POST {name}"));
                self.update_services(&update);
            }
            Action::UpdateLocations(update) => {
                self.calls.push(format!("POST {name}"));
                self.update_locations(&update);
            }
            Action::DeleteChild | Action::MigratePools { .. } => panic!("not for container LBs"),
        }
    }

    fn put_resource(&mut self, resource: Resource) {
        match resource {
            Resource::PublicIp(ip) => {
                let mut ip = PublicIp::clone(&ip);
                if ip.address.is_none() {
                    self.addresses += 1;
                    ip.address = Some(match ip.family {
                        Family::V4 => IpAddr::from([20, 0, 0, self.addresses]),
                        Family::V6 => {
                            IpAddr::from([0x2603, 0, 0, 0, 0, 0, 0, self.addresses.into()])
                        }
                    });
                }
                let all = self.world.azure.public_ips.get_mut(&self.policy.group);
                let all = all.and_then(Fact::known_mut).expect("the stage knows everything");
                all.insert(ip.id.clone(), Arc::new(ip));
            }
            Resource::LoadBalancer(balancer) => {
                for frontend in &balancer.frontends {
                    let FrontendAddress::Public(ip) = &frontend.address else {
                        panic!("not public")
                    };
                    assert!(self.ips().contains_key(ip), "{} has no public IP", balancer.id);
                }
                let all = self.world.azure.balancers.known_mut().expect("known");
                all.insert(balancer.id.clone(), balancer);
            }
            Resource::NatGateway(nat) => {
                for ip in nat.public_ips.iter().chain(&nat.public_ips_v6) {
                    assert!(self.ips().contains_key(ip), "{} has no public IP", nat.id);
                }
                let all = self.world.azure.nat_gateways.known_mut().expect("known");
                all.insert(nat.id.clone(), nat);
            }
            other => panic!("{} is not for container load balancers", other.id()),
        }
    }

    fn delete(&mut self, resource: &Resource) {
        let id = resource.id();
        match resource {
            Resource::PublicIp(_) => {
                assert!(!self.is_used(id), "{id} is still in use");
                let all = self.world.azure.public_ips.get_mut(&self.policy.group);
                all.and_then(Fact::known_mut).expect("known").remove(id);
            }
            Resource::LoadBalancer(_) => {
                let pool = id.child("backendAddressPools", id.name());
                let attached = self.services().values().any(|s| s.pools.contains(&pool));
                assert!(!attached, "{id} is still attached");
                self.world.azure.balancers.known_mut().expect("known").remove(id);
            }
            Resource::NatGateway(_) => {
                let attached = self.services().values().any(|s| s.nat_gateway.as_ref() == Some(id));
                assert!(!attached, "{id} is still attached");
                let there = self.nats().get(id);
                assert!(there.is_none_or(|n| n.gateway.is_none()), "{id} is in the gateway");
                self.world.azure.nat_gateways.known_mut().expect("known").remove(id);
            }
            other => panic!("{} is not for container load balancers", other.id()),
        }
    }

    fn update_services(&mut self, update: &ServicesUpdate) {
        for (name, _) in &update.delete {
            let mapped = self.locations().values().flat_map(|at| at.values());
            let mapped = mapped.into_iter().any(|services| services.contains(name));
            assert!(!mapped, "{name} still has addresses");
        }
        for put in &update.put {
            for pool in &put.service.pools {
                let balancer = pool.parent().expect("a pool has a load balancer");
                assert!(self.balancers().contains_key(&balancer), "{pool} does not exist");
            }
            if let Some(nat) = &put.service.nat_gateway {
                assert!(self.nats().contains_key(nat), "{nat} does not exist");
            }
            assert_ne!(&*put.service.name, "default-natgw");
        }
        let services = self.world.azure.gateway_services.known_mut().expect("known");
        for put in &update.put {
            let service = Arc::new(put.service.clone());
            services.insert(Arc::from(put.service.name.to_lowercase()), service);
        }
        for (name, _) in &update.delete {
            services.remove(name.to_lowercase().as_str());
        }
    }

    fn update_locations(&mut self, update: &LocationsUpdate) {
        let places: BTreeSet<IpAddr> = update.locations.iter().map(|l| l.location).collect();
        assert_eq!(places.len(), update.locations.len(), "a location stands twice");
        let registered: BTreeSet<Arc<str>> = self.services().keys().cloned().collect();
        let table = self.world.azure.gateway_locations.known_mut().expect("known");
        let table = Arc::make_mut(table);
        let original = table.clone();
        for location in &update.locations {
            let at = Arc::make_mut(table.entry(location.location).or_default());
            if location.action == UpdateAction::FullUpdate || location.addresses.is_empty() {
                at.clear();
            }
            for (address, services) in &location.addresses {
                assert_eq!(Family::of(*address), Family::of(location.location));
                for service in services.iter() {
                    assert!(registered.contains(service), "{service} is not registered");
                }
                if services.is_empty() {
                    at.remove(address);
                } else {
                    // Requests may be carried out in any order: an address that was elsewhere
                    // before must not come here by the same one.
                    let elsewhere = original.iter().any(|(place, addresses)| {
                        *place != location.location && addresses.contains_key(address)
                    });
                    let new =
                        !original.get(&location.location).is_some_and(|a| a.contains_key(address));
                    assert!(!(new && elsewhere), "{address} is at two locations");
                    at.insert(*address, Arc::clone(services));
                }
            }
            if at.is_empty() {
                table.remove(&location.location);
            }
        }
    }

    pub fn write(&mut self, write: &KubernetesWrite) {
        match &write.object {
            Object::Service { uid, .. } => {
                let Some(old) = self.world.kubernetes.services.get(uid) else { return };
                let mut service = Service::clone(old);
                match &write.edit {
                    Edit::Finalizers { list, revision, purpose, .. } => {
                        if *revision != service.revision {
                            return;
                        }
                        service.finalizers.clone_from(list);
                        service.custody = Custody::Own;
                        if *purpose == FinalizerPurpose::Release {
                            self.assert_gone(&pod_names::of_service(uid));
                            self.world.kubernetes.services.remove(uid);
                            return;
                        }
                    }
                    Edit::Status { ingress, condition, .. } => {
                        service.ingress =
                            ingress.clone().unwrap_or_else(|| service.ingress.clone());
                        match condition {
                            ConditionEdit::Keep => {}
                            ConditionEdit::Set(new) => service.condition = Some(new.clone()),
                            ConditionEdit::Remove => service.condition = None,
                        }
                    }
                    Edit::Gate { .. } => panic!("a Service has no gate"),
                }
                self.put(service);
            }
            Object::Pod { name, .. } => {
                if let Edit::Gate { gate, reason, .. } = &write.edit {
                    if *reason == GateReason::Programmed {
                        self.assert_listed(name);
                    }
                    return self.edit_gated(name, |pod| {
                        pod.gate = *gate;
                        pod.reason = reason.name().into();
                    });
                }
                let Some(old) = self.world.kubernetes.pods.get(name) else { return };
                let mut pod = Pod::clone(old);
                let Edit::Finalizers { list, revision, marks, .. } = &write.edit else { return };
                if *revision != pod.revision {
                    return;
                }
                pod.finalizers = list.iter().cloned().collect();
                pod.custody = Custody::Own;
                if let Some(marks) = marks {
                    pod.marks.clone_from(marks);
                }
                if pod.deletion == Deletion::Requested && pod.finalizers.is_empty() {
                    self.world.kubernetes.pods.remove(name);
                } else {
                    self.put_pod(pod);
                }
            }
        }
    }

    /// Every Service of the Pod's namespace has its address, and no call that takes it away is
    /// under way.
    fn assert_listed(&self, name: &ServiceName) {
        let pod = &self.world.kubernetes.gated_pods[name];
        let address = &pod.addresses[0];
        let services = self.world.kubernetes.services.values();
        let own = services.filter(|s| s.name.namespace == name.namespace);
        for service in own.filter(|s| s.wish == Wish::LoadBalancer) {
            let name = pod_names::of_service(&service.uid);
            let listed = self.locations().values().filter_map(|at| at.get(address));
            assert!(
                listed.into_iter().any(|names| names.contains(&name)),
                "{name} lacks {address}"
            );
        }
        for change in &self.flying {
            let Action::UpdateLocations(update) = &change.action else { continue };
            assert!(!update.touched(Some(self.locations())).contains(address), "{address} moves");
        }
    }

    fn assert_gone(&self, name: &str) {
        assert!(!self.services().contains_key(name), "{name} is still registered");
        assert!(!self.balancers().contains_key(&self.policy.balancer_id(name)), "{name} has an LB");
        let ip = self.policy.public_ip_id(&self.policy.group, &pod_names::public_ip(name));
        let ours = self.ips().get(&ip).filter(|ip| ip.sku == Sku::StandardV2);
        assert_eq!(ours, None, "{name} has a public IP");
        let busy = self.flying.iter().any(|c| {
            let text = c.target.folded();
            (text.contains("/loadbalancers/") || text.contains("/publicipaddresses/"))
                && text.contains(name)
        });
        assert!(!busy, "{name} is being written");
    }
}
