//! Private Link Services.

use super::{EdgeZone, Provisioning, Rest, Tags};
use crate::id::{Etag, ResourceId};
use serde::Serialize;
use std::net::IpAddr;
use std::sync::Arc;

/// A Private Link Service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PrivateLinkService {
    /// Id.
    pub id: ResourceId,
    /// ETag it was read with.
    pub etag: Option<Etag>,
    /// Region.
    pub location: Arc<str>,
    /// Edge zone.
    pub edge_zone: Option<EdgeZone>,
    /// Tags.
    pub tags: Option<Tags>,
    /// Frontends it stands before.
    pub frontends: Vec<ResourceId>,
    /// Its own addresses.
    pub addresses: Vec<PrivateLinkAddress>,
    /// Whether the PROXY protocol is used.
    pub proxy_protocol: Option<bool>,
    /// FQDNs, each once, in the order written; the order says nothing.
    pub fqdns: Vec<Arc<str>>,
    /// Subscriptions that see it, the same; `*` alone for all.
    pub visibility: Vec<Arc<str>>,
    /// Subscriptions approved without asking, the same.
    pub auto_approval: Vec<Arc<str>>,
    /// Private endpoint connections (read only): deleted before the service is.
    pub connections: Vec<PrivateEndpointConnection>,
    /// Provisioning state (read only).
    pub provisioning: Provisioning,
    /// The rest.
    pub rest: Rest,
}

/// A private endpoint, somebody's in another network, as a Private Link Service knows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PrivateEndpointConnection {
    /// Id of the connection, below the Private Link Service's.
    pub id: ResourceId,
    /// Whether traffic flows through it.
    pub state: ConnectionState,
}

/// The state of a private endpoint connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum ConnectionState {
    /// `Approved`: whoever is behind the endpoint is served.
    Connected,
    /// Pending, rejected, disconnected or not told.
    Other,
}

/// An IP configuration of a Private Link Service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PrivateLinkAddress {
    /// Name.
    pub name: Arc<str>,
    /// Subnet.
    pub subnet: ResourceId,
    /// Static address; `None` for one that Azure chooses.
    pub address: Option<IpAddr>,
    /// Whether it is the primary one.
    pub rank: PrivateLinkRank,
    /// The rest.
    pub rest: Rest,
}

/// Primary or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum PrivateLinkRank {
    /// The first.
    Primary,
    /// The others.
    Secondary,
}
