//! Everything known now.

use crate::azure::{
    LoadBalancer, NatGateway, PoolMember, PrivateLinkService, PublicIp, SecurityGroup, Subnet,
};
use crate::drain::Drainer;
use crate::gateway::{GatewayServices, Locations};
use crate::id::{Group, NodeName, ResourceId, ServiceName, ServiceUid};
use crate::kubernetes::{EndpointSlice, GatedPod, Ingress, Node, Pod, Service};
use crate::ledger::Ledger;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

/// Something that has to be read before it can be planned on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub enum Fact<T> {
    /// Not read yet.
    #[default]
    Unknown,
    /// Read.
    Known(T),
    /// It cannot be read, and reading again will not help until somebody does something.
    Unreadable(Arc<str>),
}

impl<T> Fact<T> {
    /// The value, where it is known.
    pub fn known(&self) -> Option<&T> {
        match self {
            Self::Known(value) => Some(value),
            Self::Unknown | Self::Unreadable(_) => None,
        }
    }

    /// The same of another value, where it is known.
    #[must_use]
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Fact<U> {
        match self {
            Self::Unknown => Fact::Unknown,
            Self::Known(value) => Fact::Known(change(value)),
            Self::Unreadable(why) => Fact::Unreadable(why),
        }
    }

    /// The value to change, where it is known.
    pub fn known_mut(&mut self) -> Option<&mut T> {
        match self {
            Self::Known(value) => Some(value),
            Self::Unknown | Self::Unreadable(_) => None,
        }
    }
}

impl<K, V> Fact<BTreeMap<K, V>> {
    /// What is in a list or a table, where it is known.
    pub fn each(&self) -> impl Iterator<Item = &V> {
        self.known().into_iter().flat_map(BTreeMap::values)
    }
}

/// Resources of one type by id.
pub type ById<T> = BTreeMap<ResourceId, Arc<T>>;

/// One read of Azure that fills in a [`Fact`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Need {
    /// All load balancers of the load balancers' group.
    Balancers,
    /// All public IPs of a group.
    PublicIps(Group),
    /// The security group.
    SecurityGroup,
    /// One subnet.
    Subnet(ResourceId),
    /// The region's availability zones.
    Zones,
    /// All Private Link Services of a group.
    PrivateLinks(Group),
    /// All scale sets of the cluster's group.
    ScaleSets,
    /// All instances of a scale set.
    ScaleSetVms(ResourceId),
    /// All NICs of the cluster's group, with the VMs they belong to.
    NetworkInterfaces,
    /// All VMs of the cluster's group.
    VirtualMachines,
    /// All NAT gateways of the cluster's group.
    NatGateways,
    /// The services of the Service Gateway.
    GatewayServices,
    /// The address locations of the Service Gateway.
    GatewayLocations,
}

/// Labels of an object, shared.
pub type Labels = Arc<BTreeMap<Arc<str>, Arc<str>>>;

/// What Kubernetes says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kubernetes {
    /// Services that are, or were, load balancers.
    pub services: BTreeMap<ServiceUid, Arc<Service>>,
    /// Nodes.
    pub nodes: BTreeMap<NodeName, Arc<Node>>,
    /// EndpointSlices, where the layout needs them.
    pub slices: BTreeMap<ServiceName, Arc<EndpointSlice>>,
    /// Egress Pods, by namespace and name.
    pub pods: BTreeMap<ServiceName, Arc<Pod>>,
    /// Pods with our readiness gate, by namespace and name.
    pub gated_pods: BTreeMap<ServiceName, Arc<GatedPod>>,
    /// Labels of namespaces, where the layout needs them.
    pub namespaces: BTreeMap<Arc<str>, Labels>,
    /// Kinds whose first list is complete.
    pub complete: BTreeSet<Kind>,
    /// UID of the Namespace `kube-system`, which identifies the cluster for its whole life.
    /// `None` where it is not known: with manifests in place of a cluster, or without the right to
    /// read it.
    pub cluster_uid: Option<Arc<str>>,
    /// The destinations that are open in the security group on this cluster's account.
    pub ledger: Fact<Arc<Ledger>>,
}

/// A watched kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Kind {
    /// Services.
    Services,
    /// Nodes.
    Nodes,
    /// EndpointSlices.
    EndpointSlices,
    /// Pods that leave through egress gateways.
    Pods,
    /// Pods with our readiness gate.
    GatedPods,
    /// Namespaces.
    Namespaces,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 6] = [
        Self::Services,
        Self::Nodes,
        Self::EndpointSlices,
        Self::Pods,
        Self::GatedPods,
        Self::Namespaces,
    ];

    /// The kinds without which container load balancers cannot be planned.
    pub const CONTAINER: [Self; 5] =
        [Self::Services, Self::Nodes, Self::EndpointSlices, Self::Pods, Self::GatedPods];
}

/// What Azure says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Azure {
    /// Load balancers.
    pub balancers: Fact<ById<LoadBalancer>>,
    /// Public IPs by group.
    pub public_ips: BTreeMap<Group, Fact<ById<PublicIp>>>,
    /// Groups that Services name and that do not exist: nothing can be in them.
    pub absent_groups: BTreeSet<Group>,
    /// The security group; `None` when it does not exist.
    pub security_group: Fact<Option<Arc<SecurityGroup>>>,
    /// Subnets; `None` for one that does not exist.
    pub subnets: BTreeMap<ResourceId, Fact<Option<Arc<Subnet>>>>,
    /// Availability zones of the region, in the order reported.
    pub zones: Fact<Vec<Arc<str>>>,
    /// Private Link Services by group.
    pub private_links: BTreeMap<Group, Fact<ById<PrivateLinkService>>>,
    /// Models of scale sets.
    pub scale_sets: Fact<ById<PoolMember>>,
    /// Instances by scale set.
    pub scale_set_vms: BTreeMap<ResourceId, Fact<ById<PoolMember>>>,
    /// NICs of VMs.
    pub network_interfaces: Fact<ById<PoolMember>>,
    /// Node names (VM computer names) to the NIC's owner VM, and the VM's availability set.
    pub virtual_machines: Fact<BTreeMap<ResourceId, Arc<VirtualMachine>>>,
    /// NAT gateways.
    pub nat_gateways: Fact<ById<NatGateway>>,
    /// Services of the Service Gateway by lower-case name.
    pub gateway_services: Fact<GatewayServices>,
    /// Address table of the Service Gateway.
    pub gateway_locations: Fact<Arc<Locations>>,
}

/// A VM, as far as placement looks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct VirtualMachine {
    /// Id.
    pub id: ResourceId,
    /// `osProfile.computerName`.
    pub host: Option<Arc<str>>,
    /// Its availability set or flexible scale set.
    pub set: Option<ResourceId>,
    /// Its primary NIC.
    pub nic: Option<ResourceId>,
}

/// A call that has been sent and not been answered to the end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct InFlight {
    /// How often it has been tried, this one included.
    pub attempt: u32,
    /// On whose account it is made; empty while it waits for another try.
    pub causes: BTreeSet<ServiceUid>,
    /// Addresses that it changes in the Service Gateway's table; of a load balancer's write those
    /// that are in its pools by then.
    pub addresses: Arc<BTreeSet<IpAddr>>,
    /// Whether the write deletes the resource.
    pub goes: bool,
}

/// A Service set aside: its parts in Azure stay as they are until it changes or the hold ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Hold {
    /// The resource whose write was refused.
    pub target: ResourceId,
    /// Why, in words for its owner.
    pub reason: Arc<str>,
    /// The Azure error code or the like.
    pub code: Arc<str>,
    /// When it is tried again, in milliseconds of the controller's clock; `None` while the
    /// search for the Service at fault goes on.
    pub until_ms: Option<u64>,
    /// How often it has failed.
    pub attempt: u32,
}

/// Everything known now: what a plan is made from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct World {
    /// Facts from Kubernetes.
    pub kubernetes: Kubernetes,
    /// Facts from Azure.
    pub azure: Azure,
    /// Azure calls under way, by the resource they write.
    pub in_flight: BTreeMap<ResourceId, InFlight>,
    /// Writes of statuses under way, by Service: the addresses that each sets. What is known of the
    /// Service is about to be otherwise.
    pub told: BTreeMap<ServiceUid, Vec<Ingress>>,
    /// Services set aside.
    pub holds: BTreeMap<ServiceUid, Hold>,
    /// Services that carried our finalizer when this process first saw them, and Services and
    /// egress gateways that were registered then: another process may have written for them a
    /// moment ago, which a list need not show yet. They are not let go. Empty once the barrier of
    /// the term is passed, but for those that were seen so late that it did not wait for them.
    pub inherited: BTreeSet<ServiceUid>,
    /// Services among them of which the first list of load balancers showed no rule: what they have
    /// may not be listed yet, their load balancer included. Nodes that it may have join no other
    /// load balancer, and a Service with an address in its status is left as it is. Empty once
    /// these lists were read again.
    pub unseen: BTreeSet<ServiceUid>,
    /// Names, as parts and tags bear them, of Services that went without being released, as the
    /// ledger notes them: what bears one is taken away. A name that nothing bears any more is
    /// forgotten. Where there is no ledger they are those of Services that went while this process
    /// watched: the API server tells of the end of an object only those who watch at that time.
    pub abandoned: BTreeSet<Arc<str>>,
    /// Names of Services that are gone and not in the ledger yet: nothing that bears one is removed
    /// before, and a Service that needs its address or port waits.
    pub departed: BTreeSet<Arc<str>>,
    /// What has drained for the time allowed.
    pub drained: BTreeSet<Drainer>,
    /// Services whose move to other backends has been at its stage for the time that the cloud
    /// config says: their conditions and the clock tell it.
    pub elapsed: BTreeSet<ServiceUid>,
    /// UIDs of Pods that have waited for our readiness gate for the time allowed.
    pub overdue: BTreeSet<Arc<str>>,
    /// Addresses of Pods that EndpointSlices of several namespaces list, with the namespace that
    /// has each, as the ledger notes it: it keeps it, whether its Pod is ready or not.
    pub holders: BTreeMap<IpAddr, Arc<str>>,
}

impl World {
    /// Whether everything of these kinds has been listed once.
    #[must_use]
    pub fn is_complete(&self, kinds: &[Kind]) -> bool {
        kinds.iter().all(|k| self.kubernetes.complete.contains(k))
    }
}
