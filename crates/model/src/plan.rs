//! What to write, exactly.

use crate::azure::{
    LoadBalancer, MemberKind, NatGateway, PoolMember, PrivateLinkService, Provisioning, PublicIp,
    SecurityGroup, Subnet,
};
use crate::gateway::{LocationsUpdate, ServicesUpdate};
use crate::id::{Etag, ResourceId, ServiceName, ServiceUid};
use crate::kubernetes::{Backends, Condition, Gate, GateReason, Ingress, MoveStage};
use crate::ledger::{LedgerWrite, SetTags};
use crate::report::Wait;
use serde::Serialize;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Everything to write, in order: Azure's changes by resource id, then Kubernetes'.
///
/// # Guarantees
/// Each change holds the exact request; carrying it out may only wait, retry or stop. No two
/// changes of a plan have the same target.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Plan {
    /// Changes of Azure resources. Planning and those it gives the plan to share them: one that is
    /// the same value in memory as in the plan before is the same change.
    pub changes: Vec<Arc<Change>>,
    /// Changes of Kubernetes objects.
    pub writes: Vec<KubernetesWrite>,
    /// The next write of the ledger.
    pub ledger: Option<Arc<LedgerWrite>>,
    /// Tags that changes of public IPs set because annotations ask for them: the ledger has them
    /// before.
    #[serde(skip_serializing_if = "SetTags::is_empty")]
    pub tags: SetTags,
}

impl Plan {
    /// Whether there is nothing to do.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.writes.is_empty() && self.ledger.is_none()
    }
}

/// The change of a resource, among changes in the order of a plan.
#[must_use]
pub fn change_of<'c>(changes: &'c [Arc<Change>], id: &ResourceId) -> Option<&'c Arc<Change>> {
    let at = changes.binary_search_by(|change| change.target.cmp(id)).ok()?;
    changes.get(at)
}

/// One Azure write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Change {
    /// The resource that is written: one write at a time each.
    pub target: ResourceId,
    /// What is done.
    pub action: Action,
    /// ETag the plan was made on, where Azure checks it.
    pub guard: Option<Etag>,
    /// Services on whose account something changes.
    pub causes: BTreeSet<ServiceUid>,
    /// What has to happen first; nothing: it can be sent now.
    pub waits: Vec<Wait>,
}

impl Change {
    /// A write that no ETag guards.
    #[must_use]
    pub fn new(
        target: ResourceId,
        action: Action,
        causes: BTreeSet<ServiceUid>,
        waits: Vec<Wait>,
    ) -> Self {
        Self { target, action, guard: None, causes, waits }
    }

    /// PUT of a resource, guarded by the ETag that it was planned on where Azure checks that.
    #[must_use]
    pub fn put(
        before: Option<Resource>,
        after: Resource,
        causes: BTreeSet<ServiceUid>,
        waits: Vec<Wait>,
    ) -> Self {
        let guard = before.as_ref().and_then(Resource::guard);
        let target = after.id().clone();
        Self { guard, ..Self::new(target, Action::Put { before, after }, causes, waits) }
    }

    /// Whether it can be sent now: at most others are to join it.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.waits.iter().all(|wait| matches!(wait, Wait::Gathering { .. }))
    }

    /// DELETE of a resource.
    #[must_use]
    pub fn delete(before: Resource, causes: BTreeSet<ServiceUid>, waits: Vec<Wait>) -> Self {
        Self::new(before.id().clone(), Action::Delete { before }, causes, waits)
    }
}

/// What is done to a resource.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum Action {
    /// PUT of the whole resource.
    Put {
        /// As it is; `None` when it does not exist.
        before: Option<Resource>,
        /// As it is to be.
        after: Resource,
    },
    /// DELETE.
    Delete {
        /// As it is.
        before: Resource,
    },
    /// DELETE of something that only its parent knows (a private endpoint connection).
    DeleteChild,
    /// POST `migrateToIpBased` of pools.
    MigratePools {
        /// Names of pools.
        pools: Vec<Arc<str>>,
    },
    /// POST `updateServices`.
    UpdateServices(ServicesUpdate),
    /// POST `updateAddressLocations`.
    UpdateLocations(LocationsUpdate),
}

/// An Azure resource of any kind that is written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum Resource {
    /// A public IP.
    PublicIp(Arc<PublicIp>),
    /// A load balancer.
    LoadBalancer(Arc<LoadBalancer>),
    /// A security group.
    SecurityGroup(Arc<SecurityGroup>),
    /// A subnet.
    Subnet(Arc<Subnet>),
    /// A Private Link Service.
    PrivateLinkService(Arc<PrivateLinkService>),
    /// A NAT gateway.
    NatGateway(Arc<NatGateway>),
    /// A scale set, an instance or a NIC.
    PoolMember(Arc<PoolMember>),
}

impl Resource {
    /// Its id.
    #[must_use]
    pub fn id(&self) -> &ResourceId {
        match self {
            Self::PublicIp(r) => &r.id,
            Self::LoadBalancer(r) => &r.id,
            Self::SecurityGroup(r) => &r.id,
            Self::Subnet(r) => &r.id,
            Self::PrivateLinkService(r) => &r.id,
            Self::NatGateway(r) => &r.id,
            Self::PoolMember(r) => &r.id,
        }
    }

    /// Whether Azure is still at work on it.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        let state = match self {
            Self::PublicIp(r) => r.provisioning,
            Self::LoadBalancer(r) => r.provisioning,
            Self::SecurityGroup(r) => r.provisioning,
            Self::PrivateLinkService(r) => r.provisioning,
            Self::NatGateway(r) => r.provisioning,
            Self::Subnet(r) => r.provisioning,
            Self::PoolMember(_) => return false,
        };
        state == Provisioning::Busy
    }

    /// Its ETag, where it has been read.
    #[must_use]
    pub fn etag(&self) -> Option<&Etag> {
        match self {
            Self::PublicIp(r) => r.etag.as_ref(),
            Self::LoadBalancer(r) => r.etag.as_ref(),
            Self::SecurityGroup(r) => r.etag.as_ref(),
            Self::Subnet(r) => r.etag.as_ref(),
            Self::PrivateLinkService(r) => r.etag.as_ref(),
            Self::NatGateway(r) => r.etag.as_ref(),
            Self::PoolMember(r) => r.etag.as_ref(),
        }
    }

    /// The ETag that guards a PUT of it. Azure checks none where a Private Link Service or a
    /// flexible scale set's model is written.
    fn guard(&self) -> Option<Etag> {
        match self {
            Self::PrivateLinkService(_) => None,
            Self::PoolMember(r) if r.kind == MemberKind::FlexibleScaleSet => None,
            _ => self.etag().cloned(),
        }
    }
}

/// One write of a Kubernetes object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct KubernetesWrite {
    /// Which object.
    pub object: Object,
    /// What is written.
    pub edit: Edit,
}

/// The object of a Kubernetes write.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Object {
    /// A Service.
    Service {
        /// Namespace and name.
        name: ServiceName,
        /// UID: another Service of the same name is not written.
        uid: ServiceUid,
    },
    /// A Pod.
    Pod {
        /// Namespace and name.
        name: ServiceName,
        /// UID.
        uid: Arc<str>,
    },
}

/// What is written to a Kubernetes object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum Edit {
    /// The list of finalizers becomes this one; guarded by the resource version it was made on.
    Finalizers {
        /// The whole list.
        list: Vec<Arc<str>>,
        /// `metadata.resourceVersion` it was made on.
        revision: Arc<str>,
        /// Whether ours come or go.
        purpose: FinalizerPurpose,
        /// What a Pod's annotation of egress gateways becomes, empty: it goes; `None` leaves it.
        marks: Option<BTreeSet<Arc<str>>>,
    },
    /// The status of a Service, in one write.
    Status {
        /// What `status.loadBalancer.ingress` becomes; `None` leaves it.
        ingress: Option<Vec<Ingress>>,
        /// What becomes of our condition.
        condition: ConditionEdit,
        /// What becomes of our condition about its move to other backends.
        moving: MoveEdit,
    },
    /// The condition of our readiness gate becomes this.
    Gate {
        /// Its status.
        gate: Gate,
        /// Its reason.
        reason: GateReason,
        /// Its message.
        message: Arc<str>,
    },
}

/// What becomes of our condition on a Service. Conditions of others stay as they are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum ConditionEdit {
    /// It stays as it is.
    Keep,
    /// It becomes this.
    Set(Condition),
    /// It goes.
    Remove,
}

/// What becomes of the condition about a Service's move to other backends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub enum MoveEdit {
    /// It stays as it is.
    #[default]
    Keep,
    /// It becomes this, since the time of writing.
    Set {
        /// Where the Service moves to.
        to: Backends,
        /// How far it is.
        stage: MoveStage,
    },
    /// It goes.
    Remove,
}

/// Why finalizers are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum FinalizerPurpose {
    /// Before the first Azure write.
    Claim,
    /// Nothing is left in Azure.
    Release,
    /// The Service stays, and nothing is left of its container load balancer.
    Moved,
}
