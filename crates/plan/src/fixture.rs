//! A Policy, a Service and a World for tests: one Service that has all it asks for.

use crate::ask::annotation;
use model::azure::{
    Access, AdminState, Allocation, Distribution, Frontend, FrontendAddress, LoadBalancer, Pool,
    PoolAddress, Probe, ProbeProtocol, Provisioning, PublicIp, Rest, Rule, RuleProtocol,
    SecurityGroup, SecurityRule, Sku,
};
use model::kubernetes::{
    Affinity, Deletion, Ingress, LoadBalancerType, Membership, Node, NodeRole, SERVICE_FINALIZER,
    Service, ServicePort, TargetPort, TrafficPolicy, Wish,
};
use model::policy::{
    BalancerSku, ClusterProbe, ControlPlane, DriftPolicy, IpTagChange, Layout, MigrateApi,
    NodeDrain, OutboundSnat, PoolKind, Preconfigured, VmKind,
};
use model::world::{Fact, Kind};
use model::{
    Etag, Family, Group, Holder, Ledger, NodeName, Policy, Protocol, ServiceName, ServiceUid, World,
};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

/// A cluster with one load balancer and addresses in its pools.
pub(crate) fn policy() -> Policy {
    let group = Group::new("rg");
    Policy {
        cluster: "kubernetes".into(),
        subscription: "s".into(),
        network_subscription: "s".into(),
        group: group.clone(),
        balancer_group: group.clone(),
        security_group_group: group.clone(),
        network_group: group.clone(),
        private_link_group: Group::new("links"),
        location: "eastus".into(),
        edge_zone: None,
        network_name: "vnet".into(),
        subnet_name: "nodes".into(),
        security_group_name: "nsg".into(),
        balancer_name: None,
        tags: BTreeMap::new(),
        system_tags: None,
        sku: BalancerSku::Standard,
        layout: Layout::Single,
        pools: PoolKind::NodeIp,
        vm_kind: VmKind::ScaleSet,
        primary_set: "vmss".into(),
        exclude_control_plane: ControlPlane::Excluded,
        outbound_snat: OutboundSnat::Disabled,
        maximum_rules: 250,
        preconfigured: Preconfigured::None,
        migrate_api: MigrateApi::Unused,
        ip_tag_change: IpTagChange::Recreate,
        node_drain: NodeDrain::For { seconds: 30 },
        cluster_probe: ClusterProbe::NodePort,
        drift: DriftPolicy::Repair,
        additional_addresses: None,
        tenancy: model::policy::Tenancy::default(),
    }
}

/// `default/web` with one port; annotations without their prefix.
pub(crate) fn service(annotations: &[(&str, &str)]) -> Service {
    let annotations =
        annotations.iter().map(|(k, v)| (Arc::from(annotation::full(k)), Arc::from(*v)));
    Service {
        uid: ServiceUid::new("00000001-1111-4222-8333-0123456789ab"),
        name: ServiceName::new("default", "web"),
        revision: "1".into(),
        wish: Wish::LoadBalancer,
        load_balancer_type: LoadBalancerType::Ours,
        deletion: Deletion::None,
        finalizers: Vec::new(),
        annotations: Arc::new(annotations.collect()),
        selector: Default::default(),
        labels: Arc::default(),
        ports: vec![ServicePort {
            name: "http".into(),
            protocol: Protocol::Tcp,
            port: 80,
            target_port: TargetPort::Number(8080),
            node_port: Some(30080),
            app_protocol: None,
        }],
        families: vec![Family::V4],
        affinity: Affinity::None,
        traffic_policy: TrafficPolicy::Cluster,
        health_check_node_port: None,
        load_balancer_ip: None,
        cluster_ips: Vec::new(),
        source_ranges: Vec::new(),
        ingress: Vec::new(),
        condition: None,
        custody: model::kubernetes::Custody::Own,
    }
}

/// With our finalizer.
pub(crate) fn claimed(service: Service) -> Service {
    Service { finalizers: vec![SERVICE_FINALIZER.into()], ..service }
}

/// The public IP of this name.
pub(crate) fn public_ip(name: &str, address: Option<IpAddr>) -> PublicIp {
    let tags = [("k8s-azure-service", "default/web"), ("k8s-azure-cluster-name", "kubernetes")];
    PublicIp {
        id: policy().public_ip_id(&policy().group, name),
        etag: Some(Etag::new("ip")),
        location: "eastus".into(),
        edge_zone: None,
        tags: Some(tags.map(|(k, v)| (Arc::from(k), Arc::from(v))).into()),
        sku: Sku::Standard,
        zones: Vec::new(),
        family: Family::V4,
        allocation: Allocation::Static,
        address,
        ip_tags: BTreeMap::new(),
        dns_label: None,
        prefix: None,
        user: None,
        provisioning: Provisioning::Succeeded,
        rest: Rest::default(),
    }
}

fn node() -> Node {
    Node {
        name: NodeName::new("vmss000000"),
        revision: "1".into(),
        addresses: vec![IpAddr::from([10, 224, 0, 4])],
        ranges: Vec::new(),
        provider_id: None,
        labels: Arc::default(),
        membership: Membership::Member,
        role: NodeRole::Worker,
    }
}

/// The load balancer with everything of [`service`].
pub(crate) fn balancer() -> LoadBalancer {
    let base = service(&[]).uid.base_name();
    let id = policy().balancer_id("kubernetes");
    let name: Arc<str> = Arc::from(format!("{base}-TCP-80"));
    let ip = policy().public_ip_id(&policy().group, &format!("kubernetes-{base}"));
    LoadBalancer {
        etag: Some(Etag::new("lb")),
        location: "eastus".into(),
        edge_zone: None,
        tags: None,
        sku: Sku::Standard,
        scope: None,
        frontends: vec![Frontend {
            name: Arc::from(&*base),
            zones: Vec::new(),
            address: FrontendAddress::Public(ip),
            rest: Rest::default(),
        }],
        pools: vec![Pool {
            name: "kubernetes".into(),
            network: Some(policy().network()),
            addresses: vec![PoolAddress {
                address: IpAddr::from([10, 224, 0, 4]),
                name: "vmss000000".into(),
                admin: AdminState::None,
                network: None,
            }],
            nics: Default::default(),
            rest: Rest::default(),
        }],
        rules: vec![Rule {
            name: Arc::clone(&name),
            protocol: RuleProtocol::Tcp,
            frontend_port: 80,
            backend_port: 80,
            frontend: Some(id.child("frontendIPConfigurations", &base)),
            pool: Some(id.child("backendAddressPools", "kubernetes")),
            probe: Some(id.child("probes", &name)),
            floating_ip: Some(true),
            idle_timeout_min: Some(4),
            distribution: Some(Distribution::Default),
            disable_outbound_snat: Some(true),
            tcp_reset: Some(true),
            rest: Rest::default(),
        }],
        probes: vec![Probe {
            name,
            protocol: ProbeProtocol::Tcp,
            port: 30080,
            path: None,
            interval_s: 5,
            threshold: 2,
            rest: Rest::default(),
        }],
        foreign: Vec::new(),
        provisioning: Provisioning::Succeeded,
        rest: Rest::default(),
        id,
    }
}

/// The security group, open for [`service`].
fn security_group() -> SecurityGroup {
    let set = |text: &str| BTreeSet::from([Arc::from(text)]);
    let ports = BTreeSet::from(["80"]);
    let name = crate::own::name::allow_rule(Family::V4, "Tcp", ["Internet"].into_iter(), &ports);
    SecurityGroup {
        id: policy().security_group_id(),
        etag: Some(Etag::new("nsg")),
        location: "eastus".into(),
        tags: None,
        rules: vec![SecurityRule {
            name: Arc::from(name),
            access: Access::Allow,
            direction: "Inbound".into(),
            priority: 500,
            protocol: "Tcp".into(),
            sources: set("Internet"),
            source_ports: set("*"),
            destinations: set("20.1.2.3"),
            ports: set("80"),
            rest: Rest::default(),
        }],
        provisioning: Provisioning::Succeeded,
        rest: Rest::default(),
    }
}

/// One Service that has all it asks for.
pub(crate) fn world() -> World {
    let mut world = World::default();
    let mut web = claimed(service(&[]));
    web.ingress = vec![Ingress { ip: Some("20.1.2.3".into()), hostname: None }];
    world.kubernetes.services.insert(web.uid.clone(), Arc::new(web));
    world.kubernetes.nodes.insert(node().name, Arc::new(node()));
    world.kubernetes.complete.extend([Kind::Services, Kind::Nodes]);
    let base = service(&[]).uid.base_name();
    let ip = public_ip(&format!("kubernetes-{base}"), Some(IpAddr::from([20, 1, 2, 3])));
    let all = BTreeMap::from([(ip.id.clone(), Arc::new(ip))]);
    world.azure.public_ips.insert(policy().group, Fact::Known(all));
    let all = BTreeMap::from([(balancer().id, Arc::new(balancer()))]);
    world.azure.balancers = Fact::Known(all);
    world.azure.security_group = Fact::Known(Some(Arc::new(security_group())));
    world.azure.zones = Fact::Known(Vec::new());
    record(&mut world);
    world
}

/// Records what is open, on the Service's account.
pub(crate) fn record(world: &mut World) {
    let group = world.azure.security_group.known().cloned().flatten();
    let rules = group.iter().flat_map(|group| &group.rules);
    let open = rules.flat_map(|rule| &rule.destinations).filter_map(|d| d.parse().ok());
    let holder = Holder::Service(service(&[]).uid);
    let destinations = open.map(|address| (address, BTreeSet::from([holder.clone()]))).collect();
    let revision = Some("1".into());
    let ledger = Ledger { revision, planned_on: None, destinations };
    world.kubernetes.ledger = Fact::Known(Arc::new(ledger));
}
