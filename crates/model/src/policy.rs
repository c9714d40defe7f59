//! The validated cloud config.

pub use crate::migration::{Chosen, KeepBoth, Migration};

use crate::Exposure;
use crate::azure::Tags;
use crate::id::{Group, ResourceId, ServiceName};
use crate::migration::Backends;
use ipnet::IpNet;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Which load balancers a cluster has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum Layout {
    /// One public and one internal load balancer.
    Single,
    /// `multipleStandardLoadBalancerConfigurations`.
    Several(Vec<LoadBalancerConfig>),
    /// One per scale set or availability set: Basic, and `enableMultipleStandardLoadBalancers`.
    PerNodeSet {
        /// Sets that share the primary set's load balancer.
        without_own: Vec<Arc<str>>,
    },
    /// One per Service: the container load balancer.
    PerService,
}

/// One element of `multipleStandardLoadBalancerConfigurations`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LoadBalancerConfig {
    /// Name of its load balancer.
    pub name: Arc<str>,
    /// Whether new Services may be placed on it.
    pub placement: Placement,
    /// The node set whose nodes belong to it.
    pub primary_set: Arc<str>,
    /// Services it takes.
    pub services: Option<Selector>,
    /// Namespaces whose Services it takes.
    pub namespaces: Option<Selector>,
    /// Further nodes it takes.
    pub nodes: Option<Selector>,
}

/// `allowServicePlacement`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Placement {
    /// New Services may come.
    Allowed,
    /// Only those stay that are there.
    Closed,
}

/// A label selector.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Selector {
    /// `matchLabels`.
    pub labels: BTreeMap<Arc<str>, Arc<str>>,
    /// `matchExpressions`.
    pub expressions: Vec<Requirement>,
}

/// One of `matchExpressions`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Requirement {
    /// Label key.
    pub key: Arc<str>,
    /// Operator.
    pub operator: Operator,
    /// Values, for In and NotIn.
    pub values: Vec<Arc<str>>,
}

/// Operator of a label requirement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Operator {
    /// The label has one of the values.
    In,
    /// It has none of them, or is absent.
    NotIn,
    /// It is there.
    Exists,
    /// It is not there.
    DoesNotExist,
}

impl Selector {
    /// Whether a set of labels is selected; an empty selector selects everything.
    #[must_use]
    pub fn matches(&self, labels: &BTreeMap<Arc<str>, Arc<str>>) -> bool {
        self.labels.iter().all(|(k, v)| labels.get(k) == Some(v))
            && self.expressions.iter().all(|e| e.matches(labels))
    }
}

impl Requirement {
    fn matches(&self, labels: &BTreeMap<Arc<str>, Arc<str>>) -> bool {
        let value = labels.get(&self.key);
        match self.operator {
            Operator::In => value.is_some_and(|v| self.values.contains(v)),
            Operator::NotIn => value.is_none_or(|v| !self.values.contains(v)),
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
        }
    }
}

/// What a load balancer's pools hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum PoolKind {
    /// NICs of nodes (`nodeIPConfiguration`).
    NodeNic,
    /// Addresses of nodes (`nodeIP`).
    NodeIp,
    /// Nothing: pods, through a Service Gateway (`podIP`).
    PodIp,
}

/// What the nodes run on (`vmType`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum VmKind {
    /// Uniform scale sets, and whatever else a node's provider id says.
    ScaleSet,
    /// Flexible scale sets.
    FlexibleScaleSet,
    /// Standalone VMs and availability sets.
    Standalone,
}

/// Load balancer SKU the config asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum BalancerSku {
    /// Basic.
    Basic,
    /// Standard.
    Standard,
    /// Service: the container load balancer.
    Service,
}

/// Whose health probes Cluster Services get.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum ClusterProbe {
    /// Each port its own, on its node port.
    NodePort,
    /// All the same, on kube-proxy.
    Shared {
        /// Port.
        port: u16,
        /// Path.
        path: Arc<str>,
    },
}

/// Who answers the health probes of nodes (`healthCheck`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum HealthCheck {
    /// The service proxy, at health check node ports and at its own health.
    Proxy,
    /// `ballast node-agent` on each node.
    Agent {
        /// `healthCheckAgentPort`.
        port: u16,
        /// `healthCheckMajorityPercent`: where more than this share of nodes has an ill proxy, they
        /// stay in rotation.
        majority_percent: u8,
    },
}

impl HealthCheck {
    /// `healthCheckAgentPort` where nothing is said.
    pub const AGENT_PORT: u16 = 10_272;
    /// `healthCheckMajorityPercent` where nothing is said.
    pub const MAJORITY_PERCENT: u8 = 50;
    /// Where an agent answers for its node, whatever the Service.
    pub const NODE_PATH: &str = "/node";

    /// Where an agent answers for a Service with `externalTrafficPolicy: Local`.
    #[must_use]
    pub fn service_path(service: &ServiceName) -> String {
        format!("/services/{}/{}", service.namespace, service.name)
    }

    /// The Service that a path is about.
    #[must_use]
    pub fn service_of(path: &str) -> Option<ServiceName> {
        let (namespace, name) = path.strip_prefix("/services/")?.split_once('/')?;
        let whole = !namespace.is_empty() && !name.is_empty() && !name.contains('/');
        whole.then(|| ServiceName::new(namespace, name))
    }

    /// The agent's port, where there is one.
    #[must_use]
    pub fn agent_port(self) -> Option<u16> {
        match self {
            Self::Proxy => None,
            Self::Agent { port, .. } => Some(port),
        }
    }
}

/// How nodes that go away leave pools of addresses (`nodeDrainSeconds`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum NodeDrain {
    /// They take new connections until they are gone, and are then taken out at once.
    Off,
    /// They take no new connections, and are taken out once they are gone, but not before so much
    /// time has passed.
    For {
        /// The time.
        seconds: u32,
    },
}

impl NodeDrain {
    /// Where nothing is said.
    pub const DEFAULT_SECONDS: u32 = 30;
}

/// Load balancers whose pools somebody else fills (`preConfiguredBackendPoolLoadBalancerTypes`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Preconfigured {
    /// None.
    None,
    /// Internal ones.
    Internal,
    /// Public ones.
    External,
    /// All.
    All,
}

impl Preconfigured {
    /// Whether somebody else fills the pools of load balancers of this exposure.
    #[must_use]
    pub fn covers(self, exposure: Exposure) -> bool {
        match self {
            Self::None => false,
            Self::All => true,
            Self::Internal => exposure == Exposure::Internal,
            Self::External => exposure == Exposure::Public,
        }
    }
}

/// What Services of one namespace may have of what others have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Tenancy {
    /// Who shares addresses across namespaces.
    pub sharing: Sharing,
    /// `allowedResourceGroups`: the resource groups that Services may name beside those of the
    /// config; `None`: any.
    pub groups: Option<Vec<Group>>,
    /// `allowedBYOPublicIPs`: the BYO public IPs that Services may name; `None`: any.
    pub public_ips: Option<Vec<ResourceId>>,
    /// `egressGatewayNamespaces`: the namespaces whose Pods may leave through an egress gateway, by
    /// the gateway's name in small letters; `*` is any. A name that is not listed is that of the
    /// namespace which used it first.
    pub egress: BTreeMap<Arc<str>, Vec<Arc<str>>>,
    /// `maximumEgressGateways`: each costs a NAT gateway.
    pub most_egress: u32,
}

/// Who shares addresses across namespaces. Who shares one already keeps it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Sharing {
    /// Those whom the annotation of the first holder's Service names.
    Consent,
    /// All (`allowSharingAcrossNamespaces`).
    All,
    /// None (`tenancy: strict`).
    None,
}

impl Tenancy {
    /// `maximumEgressGateways` where nothing is said.
    pub const MOST_EGRESS: u32 = 100;
}

impl Default for Tenancy {
    fn default() -> Self {
        Self {
            sharing: Sharing::Consent,
            groups: None,
            public_ips: None,
            egress: BTreeMap::new(),
            most_egress: Self::MOST_EGRESS,
        }
    }
}

/// What to do about changes that somebody else made to our parts of Azure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum DriftPolicy {
    /// Write them back.
    Repair,
    /// Only show them.
    Report,
}

/// The validated cloud config: every choice made, every default filled in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Policy {
    /// `--cluster-name`.
    pub cluster: Arc<str>,
    /// Subscription of nodes.
    pub subscription: Arc<str>,
    /// Subscription of network resources.
    pub network_subscription: Arc<str>,
    /// The cluster's resource group.
    pub group: Group,
    /// Resource group of load balancers.
    pub balancer_group: Group,
    /// Resource group of the security group.
    pub security_group_group: Group,
    /// Resource group of the virtual network.
    pub network_group: Group,
    /// Default resource group of Private Link Services.
    pub private_link_group: Group,
    /// Region, lower case, no blanks.
    pub location: Arc<str>,
    /// Edge zone.
    pub edge_zone: Option<Arc<str>>,
    /// Virtual network.
    pub network_name: Arc<str>,
    /// Default subnet.
    pub subnet_name: Arc<str>,
    /// Security group; empty when none is configured.
    pub security_group_name: Arc<str>,
    /// `loadBalancerName`.
    pub balancer_name: Option<Arc<str>>,
    /// Tags for what we make.
    pub tags: Tags,
    /// `systemTags`: prefixes of tag keys that are never removed; `None`: nothing is removed.
    pub system_tags: Option<Vec<Arc<str>>>,
    /// SKU.
    pub sku: BalancerSku,
    /// Which load balancers there are.
    pub layout: Layout,
    /// What pools hold.
    pub pools: PoolKind,
    /// What nodes run on.
    pub vm_kind: VmKind,
    /// `primaryAvailabilitySetName` or `primaryScaleSetName`.
    pub primary_set: Arc<str>,
    /// Whether NIC pools leave out control-plane nodes.
    pub exclude_control_plane: ControlPlane,
    /// `disableOutboundSNAT`.
    pub outbound_snat: OutboundSnat,
    /// `maximumLoadBalancerRuleCount` (Basic only).
    pub maximum_rules: u32,
    /// Pools somebody else fills.
    pub preconfigured: Preconfigured,
    /// `enableMigrateToIPBasedBackendPoolAPI`.
    pub migrate_api: MigrateApi,
    /// `enableIPTagMutationForExistingPublicIP`.
    pub ip_tag_change: IpTagChange,
    /// How nodes that go away leave pools of addresses.
    pub node_drain: NodeDrain,
    /// Probes of Cluster Services.
    pub cluster_probe: ClusterProbe,
    /// Who answers the probes of nodes.
    pub health_check: HealthCheck,
    /// What to do about drift.
    pub drift: DriftPolicy,
    /// `allowedAdditionalPublicIPs`: the ranges that additional addresses of Services have to be
    /// in; `None`: any public ones.
    pub additional_addresses: Option<Vec<IpNet>>,
    /// What Services of one namespace may have of what others have.
    pub tenancy: Tenancy,
    /// How Services move here from the other kind of load balancers; `None`: they do not, and
    /// nothing is written while any stand.
    pub migration: Option<Migration>,
}

/// Whether control-plane nodes join NIC pools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum ControlPlane {
    /// They do not.
    Excluded,
    /// They do.
    Included,
}

/// What rules say about outbound SNAT.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum OutboundSnat {
    /// Allowed.
    Enabled,
    /// `disableOutboundSnat: true`.
    Disabled,
}

/// Whether pools move from NICs to addresses through Azure's own action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum MigrateApi {
    /// Through `migrateToIpBased`.
    Used,
    /// By rewriting the pool.
    Unused,
}

/// What happens to a public IP whose IP tags are no longer those asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum IpTagChange {
    /// They are written in place.
    InPlace,
    /// Another public IP takes its place.
    Recreate,
}

impl Policy {
    /// What its load balancers lead to.
    #[must_use]
    pub fn backends(&self) -> Backends {
        match self.layout {
            Layout::PerService => Backends::Pods,
            Layout::Single | Layout::Several(_) | Layout::PerNodeSet { .. } => Backends::Nodes,
        }
    }

    /// The policy of these load balancers: this one, or that of those which Services leave.
    #[must_use]
    pub fn over(&self, backends: Backends) -> Option<&Self> {
        if self.backends() == backends {
            return Some(self);
        }
        self.migration.as_ref().map(|migration| &*migration.from)
    }

    /// Id of a load balancer.
    #[must_use]
    pub fn balancer_id(&self, name: &str) -> ResourceId {
        self.network_id(&self.balancer_group, "loadBalancers", name)
    }

    /// Id of a public IP.
    #[must_use]
    pub fn public_ip_id(&self, group: &Group, name: &str) -> ResourceId {
        self.network_id(group, "publicIPAddresses", name)
    }

    /// Id of the security group.
    #[must_use]
    pub fn security_group_id(&self) -> ResourceId {
        let group = &self.security_group_group;
        self.network_id(group, "networkSecurityGroups", &self.security_group_name)
    }

    /// Id of the virtual network.
    #[must_use]
    pub fn network(&self) -> ResourceId {
        self.network_id(&self.network_group, "virtualNetworks", &self.network_name)
    }

    /// Id of one of its subnets.
    #[must_use]
    pub fn subnet_id(&self, name: &str) -> ResourceId {
        self.network().child("subnets", name)
    }

    /// Id of the Service Gateway.
    #[must_use]
    pub fn gateway_id(&self) -> ResourceId {
        self.network_id(&self.group, "serviceGateways", crate::gateway::GATEWAY_NAME)
    }

    /// Id of a network resource in the network subscription.
    #[must_use]
    pub fn network_id(&self, group: &Group, kind: &str, name: &str) -> ResourceId {
        let kind = ["Microsoft.Network/", kind].concat();
        ResourceId::of(&self.network_subscription, group, &kind, name)
    }
}
