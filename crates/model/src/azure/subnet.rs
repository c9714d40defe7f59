//! Subnets.

use super::{Provisioning, Rest};
use crate::id::{Etag, ResourceId};
use serde::Serialize;

/// A subnet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Subnet {
    /// Id.
    pub id: ResourceId,
    /// ETag it was read with.
    pub etag: Option<Etag>,
    /// Address prefixes.
    pub prefixes: Vec<ipnet::IpNet>,
    /// Whether `privateLinkServiceNetworkPolicies` is Disabled.
    pub private_link: PrivateLinkPolicy,
    /// How its machines reach the Internet (read only; the fields are in the rest).
    pub way_out: WayOut,
    /// Provisioning state (read only).
    pub provisioning: Provisioning,
    /// Fields that Ballast does not read, sent back as they came.
    pub rest: Rest,
}

/// `privateLinkServiceNetworkPolicies` of a subnet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum PrivateLinkPolicy {
    /// Private Link Services may not use the subnet.
    Enabled,
    /// Private Link Services may use the subnet.
    Disabled,
}

/// The outbound connectivity that a subnet gives its machines, apart from load balancers and the
/// machines' own public IPs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum WayOut {
    /// A NAT gateway, or a route table, which may lead there; also where that is not known.
    Possible,
    /// Azure's default outbound access alone.
    Default,
    /// Nothing: `defaultOutboundAccess` is false.
    Nothing,
}
