//! What brings nodes into a pool of NICs.

use super::{PrivateLinkRank, Rest};
use crate::family::Family;
use crate::id::{Etag, ResourceId};
use serde::Serialize;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The part of a NIC, of a scale set's model or of one of its instances that says which pools
/// its IP configurations are in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PoolMember {
    /// Id of the NIC, scale set or instance.
    pub id: ResourceId,
    /// What it is.
    pub kind: MemberKind,
    /// ETag it was read with.
    pub etag: Option<Etag>,
    /// Region.
    pub location: Arc<str>,
    /// `computerName` of an instance or VM: the node's name. For a scale set its name prefix.
    pub host: Option<Arc<str>>,
    /// Whether it can be written now.
    pub state: MemberState,
    /// Whether its nodes serve IPv6.
    pub ipv6: Ipv6Service,
    /// The IP configurations of the primary NIC.
    pub configurations: Vec<MemberConfiguration>,
    /// The VM a NIC belongs to, or the scale set an instance is one of.
    pub owner: Option<ResourceId>,
    /// The rest: everything a PUT must carry.
    pub rest: Rest,
}

/// What kind of resource brings nodes into a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum MemberKind {
    /// The model of a uniform scale set.
    ScaleSet,
    /// The model of a flexible scale set.
    FlexibleScaleSet,
    /// An instance of a uniform scale set.
    ScaleSetVm,
    /// A NIC of a standalone, availability-set or flexible VM.
    NetworkInterface,
}

/// Whether a member can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum MemberState {
    /// It can.
    Usable,
    /// It is a NIC whose last write failed or was canceled: a PUT repairs it.
    Failed,
    /// It is being deleted, or its VM is stopped.
    Unusable,
}

/// Whether nodes serve IPv6 behind a load balancer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Ipv6Service {
    /// They do.
    Served,
    /// Windows Server 2019 does not: such a scale set joins no IPv6 pool.
    Refused,
}

/// An IP configuration of a pool member.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MemberConfiguration {
    /// Name.
    pub name: Arc<str>,
    /// Family.
    pub family: Family,
    /// Whether it is the NIC's primary one.
    pub rank: PrivateLinkRank,
    /// Pools it is in.
    pub pools: BTreeSet<ResourceId>,
}
