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
    /// The rest.
    pub rest: Rest,
}

/// `privateLinkServiceNetworkPolicies` of a subnet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum PrivateLinkPolicy {
    /// Private Link Services may not use the subnet.
    Enabled,
    /// They may.
    Disabled,
}

/// What a subnet gives its machines to reach the Internet, beside load balancers and public IPs of
/// their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum WayOut {
    /// A NAT gateway, or a route table, which may lead there; also where that is not known.
    Possible,
    /// Azure's default outbound access alone.
    Default,
    /// Nothing: `defaultOutboundAccess` is false.
    Nothing,
}
