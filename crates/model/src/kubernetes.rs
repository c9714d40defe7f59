//! Facts from Kubernetes, as slim as planning needs them.

pub use crate::drain::{DRAIN_LABEL, Membership};
pub use crate::editors::Editors;
use crate::family::{Family, Protocol};
use crate::id::{NodeName, ServiceName, ServiceUid};
pub use crate::migration::{Backends, MIGRATION_CONDITION, Move, MoveStage};
use ipnet::IpNet;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

/// The name by which the API server knows Ballast's own writes: its User-Agent up to the slash.
pub const FIELD_MANAGER: &str = "ballast";

/// The finalizer every LoadBalancer Service carries while it has anything in Azure.
pub const SERVICE_FINALIZER: &str = "service.kubernetes.io/load-balancer-cleanup";
/// The further finalizer of Services on the container load balancer.
pub const GATEWAY_FINALIZER: &str = "servicegateway.azure.com/service-cleanup";
/// The finalizer of Pods that leave through an egress gateway.
pub const POD_FINALIZER: &str = "servicegateway.azure.com/pod-cleanup";

/// The readiness gate of ours: the type of its condition, and the label by which the Pods that have
/// it are found.
pub const READINESS_GATE: &str = "ballast.dev/load-balancer-ready";

/// The annotation of a Pod with our finalizer that names, separated by commas, every egress gateway
/// that may have something in Azure on its account. A Pod whose label is changed still tells.
pub const EGRESS_MARKS: &str = "ballast.dev/egress-gateways";

/// What a Service is to us.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Wish {
    /// `type: LoadBalancer`, not being deleted, and of a class that is ours.
    LoadBalancer,
    /// Of another type or class, or being deleted: it must have nothing (more) in Azure.
    Nothing,
}

/// `spec.externalTrafficPolicy`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum TrafficPolicy {
    /// Every node takes traffic.
    Cluster,
    /// Only nodes with an endpoint do; the health check node port says which.
    Local,
}

/// `spec.sessionAffinity`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Affinity {
    /// None: hashed over the five-tuple.
    None,
    /// By the client's address.
    ClientIp,
}

/// A target port of a Service port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum TargetPort {
    /// A number; 0 stands for "same as the port".
    Number(u16),
    /// A name, looked up in each Pod.
    Name(Arc<str>),
}

/// One entry of `spec.ports`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ServicePort {
    /// Name; empty if it has none.
    pub name: Arc<str>,
    /// Protocol.
    pub protocol: Protocol,
    /// The port clients connect to.
    pub port: u16,
    /// The port on the Pods.
    pub target_port: TargetPort,
    /// The port on the nodes; `None` when none is allocated.
    pub node_port: Option<u16>,
    /// `appProtocol` as written.
    pub app_protocol: Option<Arc<str>>,
}

/// One entry of `status.loadBalancer.ingress`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Ingress {
    /// The address, as text: what is there is carried as it came.
    pub ip: Option<Arc<str>>,
    /// A host name somebody else put there.
    pub hostname: Option<Arc<str>>,
}

/// The type of our condition on Services.
pub const SERVICE_CONDITION: &str = "ballast.dev/Programmed";

/// `status` of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Truth {
    /// It holds.
    True,
    /// It does not hold.
    False,
    /// Nobody knows; we never write it.
    Unknown,
}

impl Truth {
    /// As it is written.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

/// Our condition on a Service: whether Azure is as the Service asks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Condition {
    /// `status`.
    pub truth: Truth,
    /// `reason`: one word for programs.
    pub reason: Arc<str>,
    /// `message`: for people.
    pub message: Arc<str>,
    /// `lastTransitionTime`: since when the status is what it is; `None` is the time of writing.
    pub since: Option<Arc<str>>,
}

/// A Service that is, or was, of type LoadBalancer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Service {
    /// `metadata.uid`.
    pub uid: ServiceUid,
    /// Namespace and name.
    pub name: ServiceName,
    /// `metadata.resourceVersion`.
    pub revision: Arc<str>,
    /// What it is to us.
    pub wish: Wish,
    /// Whether `spec.type` is LoadBalancer and the class is ours, being deleted or not.
    pub load_balancer_type: LoadBalancerType,
    /// Whether `metadata.deletionTimestamp` is set.
    pub deletion: Deletion,
    /// `metadata.finalizers`.
    pub finalizers: Vec<Arc<str>>,
    /// `metadata.annotations`.
    pub annotations: Arc<BTreeMap<Arc<str>, Arc<str>>>,
    /// `metadata.labels`.
    pub labels: Arc<BTreeMap<Arc<str>, Arc<str>>>,
    /// `spec.selector`; empty where it has none.
    pub selector: Arc<BTreeMap<Arc<str>, Arc<str>>>,
    /// `spec.ports`.
    pub ports: Vec<ServicePort>,
    /// `spec.ipFamilies`; never empty: IPv4 when the field is.
    pub families: Vec<Family>,
    /// `spec.sessionAffinity`.
    pub affinity: Affinity,
    /// `spec.externalTrafficPolicy`.
    pub traffic_policy: TrafficPolicy,
    /// `spec.healthCheckNodePort`.
    pub health_check_node_port: Option<u16>,
    /// `spec.loadBalancerIP`, as text.
    pub load_balancer_ip: Option<Arc<str>>,
    /// `spec.clusterIPs`, or `spec.clusterIP`; `None` and the like are left out.
    pub cluster_ips: Vec<IpAddr>,
    /// `spec.loadBalancerSourceRanges`, as text.
    pub source_ranges: Vec<Arc<str>>,
    /// `status.loadBalancer.ingress`.
    pub ingress: Vec<Ingress>,
    /// Our entry of `status.conditions`.
    pub condition: Option<Condition>,
    /// Our entry about its move to other backends.
    pub moving: Option<Move>,
    /// Who may have taken off the finalizers that it shows.
    pub custody: Custody,
    /// Who edited it last. Nothing that decides looks at it.
    pub editors: Option<Arc<Editors>>,
}

/// Who may have let an object go whose finalizer is still shown: what a watch shows may be late.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub enum Custody {
    /// Nobody but this process.
    #[default]
    Own,
    /// Another process: the object had the finalizer when this one first saw it, or was given the
    /// right to write, and no write of this one to it has been answered since.
    Inherited,
}

/// Whether an object is being deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Deletion {
    /// It lives.
    None,
    /// It has a deletion timestamp.
    Requested,
}

/// Whether `spec.type` is LoadBalancer with a class that is ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum LoadBalancerType {
    /// It is.
    Ours,
    /// It is of type LoadBalancer, with another controller's class: nothing of it is touched.
    Foreign,
    /// It is of another type.
    Other,
}

impl Service {
    /// Whether the Service carries this finalizer.
    #[must_use]
    pub fn has_finalizer(&self, finalizer: &str) -> bool {
        self.finalizers.iter().any(|f| **f == *finalizer)
    }

    /// The addresses that its status tells.
    pub fn told(&self) -> impl Iterator<Item = IpAddr> {
        self.ingress.iter().filter_map(|entry| entry.ip.as_ref()?.parse().ok())
    }

    /// An annotation's value, by the part of its key after `service.beta.kubernetes.io/`.
    #[must_use]
    pub fn annotation(&self, suffix: &str) -> Option<&str> {
        if self.annotations.is_empty() {
            return None;
        }
        let key = ["service.beta.kubernetes.io/", suffix].concat();
        self.annotations.get(key.as_str()).map(AsRef::as_ref)
    }
}

/// A Node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Node {
    /// Name.
    pub name: NodeName,
    /// `metadata.resourceVersion`.
    pub revision: Arc<str>,
    /// Every `InternalIP` that parses, in the order written.
    pub addresses: Vec<IpAddr>,
    /// What else leads to the node: `spec.podCIDRs`, and each `ExternalIP` as a range of one.
    pub ranges: Vec<IpNet>,
    /// `spec.providerID`.
    pub provider_id: Option<Arc<str>>,
    /// Labels.
    pub labels: Arc<BTreeMap<Arc<str>, Arc<str>>>,
    /// Whether it takes traffic.
    pub membership: Membership,
    /// Whether it carries a control-plane role label.
    pub role: NodeRole,
}

/// What a node is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum NodeRole {
    /// Runs workloads.
    Worker,
    /// Label `node-role.kubernetes.io/control-plane` or `…/master`.
    ControlPlane,
}

impl Node {
    /// The first internal address of a family: the one in load-balancer pools.
    #[must_use]
    pub fn address(&self, family: Family) -> Option<IpAddr> {
        self.addresses.iter().copied().find(|a| Family::of(*a) == family)
    }

    /// The lexicographically smallest internal address of a family: the node's location in a
    /// Service Gateway.
    #[must_use]
    pub fn location(&self, family: Family) -> Option<IpAddr> {
        let own = self.addresses.iter().copied().filter(|a| Family::of(*a) == family);
        // Most nodes have one: nothing is made a text of then.
        own.reduce(|a, b| if b.to_string() < a.to_string() { b } else { a })
    }
}

/// Whether an endpoint takes traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Readiness {
    /// `conditions.ready` is true or absent.
    Ready,
    /// It is false, `terminating` and `serving` are true: its Pod is going and still answers.
    Terminating,
    /// It is false.
    NotReady,
}

/// One address of an EndpointSlice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Endpoint {
    /// The Pod's address.
    pub address: IpAddr,
    /// The node it runs on.
    pub node: Option<NodeName>,
    /// Whether it is ready.
    pub readiness: Readiness,
    /// Whose address it says this is.
    pub target: Target,
}

/// What the `targetRef` of an endpoint says about its address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub enum Target {
    /// It names a Pod of the slice's own namespace, another kind of object, or nothing: slices
    /// that are written by hand need not have one.
    #[default]
    Own,
    /// It names a Pod of another namespace.
    Foreign,
}

/// One entry of `ports` of an EndpointSlice that has a number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SlicePort {
    /// The name of the Service's port; empty if it has none.
    pub name: Arc<str>,
    /// Its number on the Pods.
    pub number: u16,
}

/// An EndpointSlice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EndpointSlice {
    /// Namespace and name of the slice.
    pub name: ServiceName,
    /// `metadata.resourceVersion`.
    pub revision: Arc<str>,
    /// UID of the Service that owns it, from its owner references.
    pub owner: Option<ServiceUid>,
    /// The Service's name, from label `kubernetes.io/service-name`.
    pub service: Option<ServiceName>,
    /// Numbers of the Service's ports on all of these endpoints.
    pub ports: Vec<SlicePort>,
    /// The endpoints, in the order written; addresses that are no IPs are left out.
    pub endpoints: Vec<Endpoint>,
    /// Those of them that are not ready, with the names of their Pods, in the order written.
    pub unready: Vec<(IpAddr, Arc<str>)>,
}

impl EndpointSlice {
    /// Whether the slice can be a Service's of this name: it is of the Service's namespace, and its
    /// label, where it has one, names the Service.
    #[must_use]
    pub fn suits(&self, service: &ServiceName) -> bool {
        self.name.namespace == service.namespace
            && self.service.as_ref().is_none_or(|named| named == service)
    }

    /// Whether the slice belongs to a Service: the one of its own namespace that its label names
    /// and whose UID its owner reference, where it has one, repeats. An owner reference without a
    /// label suffices within the namespace, as it does for the Go controller. A label or UID of
    /// another namespace's Service counts for nothing: whoever may write slices in one namespace
    /// has no say in another.
    #[must_use]
    pub fn is_of(&self, service: &Service) -> bool {
        let owned = self.owner.as_ref().is_none_or(|uid| *uid == service.uid);
        owned && self.suits(&service.name) && (self.owner.is_some() || self.service.is_some())
    }
}

/// A Pod with the egress label or the egress finalizer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Pod {
    /// `metadata.uid`.
    pub uid: Arc<str>,
    /// Namespace and name.
    pub name: ServiceName,
    /// `metadata.resourceVersion`.
    pub revision: Arc<str>,
    /// The egress label's value, lower-cased; `None` where there is no label.
    pub egress: Option<Arc<str>>,
    /// Whether it is being deleted.
    pub deletion: Deletion,
    /// Whether `status.phase` is Pending or Running.
    pub phase: PodPhase,
    /// Whether it carries our finalizer.
    pub finalizers: BTreeSet<Arc<str>>,
    /// Egress gateways that our annotation names; empty where there is none.
    pub marks: BTreeSet<Arc<str>>,
    /// Whether it is published only with our finalizer.
    pub claim: Claim,
    /// Who may have taken off the finalizers that it shows.
    pub custody: Custody,
    /// `status.podIPs`.
    pub addresses: Vec<IpAddr>,
    /// `status.hostIPs`, and after them `status.hostIP`; each address once.
    pub hosts: Vec<IpAddr>,
}

impl Pod {
    /// Whether our finalizer keeps it, and whoever looks later learns that on account of this
    /// egress gateway. One that another controller has claimed tells by its label alone.
    #[must_use]
    pub fn is_claimed_for(&self, gateway: &str) -> bool {
        self.claim == Claim::Waived
            || (self.finalizers.contains(POD_FINALIZER)
                && (self.marks.is_empty() || self.marks.contains(gateway)))
    }
}

/// Whether a Pod has to have our finalizer before it is published.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub enum Claim {
    /// It has to.
    #[default]
    Needed,
    /// Putting it on has failed several times: the Pod is not made to wait for it any longer.
    Waived,
}

/// The two phases that matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum PodPhase {
    /// Pending or Running.
    Alive,
    /// Succeeded, Failed or unknown.
    Ended,
}

/// A Pod with our readiness gate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GatedPod {
    /// `metadata.uid`.
    pub uid: Arc<str>,
    /// Namespace and name.
    pub name: ServiceName,
    /// `metadata.resourceVersion`.
    pub revision: Arc<str>,
    /// Labels.
    pub labels: Arc<BTreeMap<Arc<str>, Arc<str>>>,
    /// `status.podIPs`.
    pub addresses: Vec<IpAddr>,
    /// Whether all holds that has to besides our gate.
    pub others: Others,
    /// Our gate.
    pub gate: Gate,
    /// The reason that our gate's condition gives; empty where there is no condition.
    pub reason: Arc<str>,
}

/// What a Pod needs to be ready besides our gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Others {
    /// Its containers are ready, and every other gate holds.
    Hold,
    /// Something is missing.
    Missing,
    /// It is being deleted or has ended.
    Over,
}

/// The condition of our readiness gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Gate {
    /// It is True.
    Open,
    /// It is False or not there.
    Shut,
}

/// Why a readiness gate is opened or shut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum GateReason {
    /// The Service Gateway lists the Pod for each of its Services.
    Programmed,
    /// It does not, and the time allowed is over.
    TimedOut,
    /// No Service that has or gets a load balancer selects the Pod.
    NoService,
    /// Backends are nodes: there is nothing to wait for.
    NodeBackends,
    /// The Pod is not ready for another reason, and leaves the gateway.
    PodNotReady,
}

impl GateReason {
    /// The condition's `reason`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Programmed => "Programmed",
            Self::TimedOut => "TimedOut",
            Self::NoService => "NoService",
            Self::NodeBackends => "NodeBackends",
            Self::PodNotReady => "PodNotReady",
        }
    }
}
