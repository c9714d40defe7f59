//! Facts about Azure, typed as far as planning looks into them.
//!
//! Each resource carries what we do not look into as [`Rest`]: whatever Azure or somebody else put
//! there goes back unharmed with the next PUT. Read-only fields (etags of children, provisioning
//! states, back references) are dropped when a body is read.

mod member;
mod private_link;
mod subnet;

pub use member::{Ipv6Service, MemberConfiguration, MemberKind, MemberState, PoolMember};
pub use private_link::{
    ConnectionState, PrivateEndpointConnection, PrivateLinkAddress, PrivateLinkRank,
    PrivateLinkService,
};
pub use subnet::{PrivateLinkPolicy, Subnet, WayOut};

use crate::family::{Family, Protocol};
use crate::id::{Etag, ResourceId};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

/// Fields of a resource that planning does not look into, in the order they came, held as one
/// JSON text: parsed, those of a load balancer took ten times the room of all that is planned on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rest(Option<Arc<str>>);

impl Rest {
    /// The fields.
    #[must_use]
    pub fn unpack(&self) -> RestFields {
        let fields = self.0.as_ref().and_then(|text| serde_json::from_str(text).ok());
        let (top, properties) = fields.unwrap_or_default();
        RestFields { top, properties }
    }
}

impl From<RestFields> for Rest {
    fn from(RestFields { top, properties }: RestFields) -> Self {
        if top.is_empty() && properties.is_empty() {
            return Self(None);
        }
        // Maps with texts for keys can always be written.
        Self(serde_json::to_string(&(top, properties)).ok().map(Arc::from))
    }
}

impl Serialize for Rest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.unpack().serialize(serializer)
    }
}

/// A [`Rest`] taken apart.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RestFields {
    /// Beside `properties`.
    pub top: Map<String, Value>,
    /// Below `properties`.
    pub properties: Map<String, Value>,
}

/// Tags by key; Azure compares keys ignoring case and keeps the letters of the first write.
pub type Tags = BTreeMap<Arc<str>, Arc<str>>;

/// A tag's value by its key, ignoring case.
#[must_use]
pub fn tag<'a>(tags: &'a Tags, key: &str) -> Option<&'a str> {
    tags.iter().find(|(k, _)| is_one_tag(k, key)).map(|(_, v)| &**v)
}

/// Whether two keys are one tag: Azure ignores the letter case of tag names, so no resource has two
/// in different letters (Azure Resource Manager, "Use tags to organize your Azure resources").
#[must_use]
pub fn is_one_tag(one: &str, other: &str) -> bool {
    one.eq_ignore_ascii_case(other)
        || (!one.is_ascii() && !other.is_ascii() && one.to_lowercase() == other.to_lowercase())
}

/// `properties.provisioningState`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub enum Provisioning {
    /// Succeeded, or the field is absent.
    #[default]
    Succeeded,
    /// Updating, Deleting or any state that will pass.
    Busy,
    /// Failed or Canceled: a PUT repairs it.
    Failed,
}

/// A load balancer's, public IP's or NAT gateway's SKU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Sku {
    /// Basic; also what an absent SKU means.
    Basic,
    /// Standard.
    Standard,
    /// StandardV2: public IPs and NAT gateways of the container load balancer.
    StandardV2,
    /// Service: the container load balancer.
    Service,
}

impl Sku {
    /// The word on the wire.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Basic => "Basic",
            Self::Standard => "Standard",
            Self::StandardV2 => "StandardV2",
            Self::Service => "Service",
        }
    }
}

/// `extendedLocation` of type EdgeZone: its name.
pub type EdgeZone = Arc<str>;

/// A public IP address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PublicIp {
    /// Id.
    pub id: ResourceId,
    /// ETag it was read with.
    pub etag: Option<Etag>,
    /// Region.
    pub location: Arc<str>,
    /// Edge zone.
    pub edge_zone: Option<EdgeZone>,
    /// Tags; `None` where the field is absent.
    pub tags: Option<Tags>,
    /// SKU.
    pub sku: Sku,
    /// Availability zones.
    pub zones: Vec<Arc<str>>,
    /// Family.
    pub family: Family,
    /// How the address is allocated.
    pub allocation: Allocation,
    /// The address, once there is one.
    pub address: Option<IpAddr>,
    /// IP tags: type and value.
    pub ip_tags: BTreeMap<Arc<str>, Arc<str>>,
    /// DNS label.
    pub dns_label: Option<Arc<str>>,
    /// The host name that Azure made of the label (read only).
    pub fqdn: Option<Arc<str>>,
    /// Prefix it comes from.
    pub prefix: Option<ResourceId>,
    /// The frontend or NAT gateway that uses it (read only).
    pub user: Option<ResourceId>,
    /// Provisioning state (read only).
    pub provisioning: Provisioning,
    /// The rest.
    pub rest: Rest,
}

/// How an address is allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Allocation {
    /// It stays.
    Static,
    /// Azure chooses.
    Dynamic,
}

/// A load balancer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LoadBalancer {
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
    /// SKU.
    pub sku: Sku,
    /// `properties.scope`: `Public` on the container load balancer, absent elsewhere.
    pub scope: Option<Arc<str>>,
    /// Frontends.
    pub frontends: Vec<Frontend>,
    /// Backend pools.
    pub pools: Vec<Pool>,
    /// Load-balancing rules.
    pub rules: Vec<Rule>,
    /// Probes.
    pub probes: Vec<Probe>,
    /// Outbound rules, NAT rules and NAT pools: never ours, kept for what they refer to.
    pub foreign: Vec<ForeignRule>,
    /// Provisioning state (read only).
    pub provisioning: Provisioning,
    /// The rest.
    pub rest: Rest,
}

/// A frontend IP configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Frontend {
    /// Name.
    pub name: Arc<str>,
    /// Availability zones.
    pub zones: Vec<Arc<str>>,
    /// What it stands on.
    pub address: FrontendAddress,
    /// The rest.
    pub rest: Rest,
}

impl Frontend {
    /// The address of a subnet that it has, once Azure has chosen it.
    #[must_use]
    pub fn private(&self) -> Option<IpAddr> {
        match self.address {
            FrontendAddress::Private { address, .. } => address,
            FrontendAddress::Public(_) | FrontendAddress::Other => None,
        }
    }
}

/// What a frontend stands on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum FrontendAddress {
    /// A public IP.
    Public(ResourceId),
    /// An address of a subnet.
    Private {
        /// The subnet.
        subnet: ResourceId,
        /// Family.
        family: Family,
        /// How the address is allocated.
        allocation: Allocation,
        /// The address; `None` until Azure has chosen.
        address: Option<IpAddr>,
    },
    /// A prefix, another load balancer's frontend, or something newer: not ours.
    Other,
}

/// A backend address pool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Pool {
    /// Name.
    pub name: Arc<str>,
    /// `properties.virtualNetwork`: set where the pool holds addresses.
    pub network: Option<ResourceId>,
    /// Addresses, sorted; empty where NICs join the pool.
    pub addresses: Vec<PoolAddress>,
    /// NIC IP configurations in the pool (read only).
    pub nics: BTreeSet<ResourceId>,
    /// The rest.
    pub rest: Rest,
}

/// An address in a pool.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct PoolAddress {
    /// The address.
    pub address: IpAddr,
    /// Its name: the node's.
    pub name: Arc<str>,
    /// `properties.adminState`.
    pub admin: AdminState,
    /// A virtual network set on the address itself (an older form), which moves to the pool.
    pub network: Option<ResourceId>,
}

/// The administrative state of a pool address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum AdminState {
    /// The probe decides; also what an absent field means.
    #[default]
    None,
    /// Takes new connections whatever the probe says.
    Up,
    /// Takes no new connection.
    Down,
}

/// Protocol of a load-balancing rule on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum RuleProtocol {
    /// Tcp.
    Tcp,
    /// Udp.
    Udp,
    /// All: HA ports and SCTP.
    All,
}

/// How a rule spreads connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Distribution {
    /// Five-tuple hash.
    Default,
    /// By the client's address.
    SourceIp,
    /// By the client's address and protocol: not ours.
    SourceIpProtocol,
}

/// A load-balancing rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Rule {
    /// Name.
    pub name: Arc<str>,
    /// Protocol.
    pub protocol: RuleProtocol,
    /// Port on the frontend; 0 for all.
    pub frontend_port: u16,
    /// Port on the backends; 0 for all.
    pub backend_port: u16,
    /// Frontend.
    pub frontend: Option<ResourceId>,
    /// Pool.
    pub pool: Option<ResourceId>,
    /// Probe.
    pub probe: Option<ResourceId>,
    /// Backends see the frontend's address.
    pub floating_ip: Option<bool>,
    /// Idle timeout in minutes.
    pub idle_timeout_min: Option<u16>,
    /// Distribution; `None` where the field is absent.
    pub distribution: Option<Distribution>,
    /// Backends may not use the frontend for outbound connections.
    pub disable_outbound_snat: Option<bool>,
    /// Reset connections on idle timeout.
    pub tcp_reset: Option<bool>,
    /// The rest.
    pub rest: Rest,
}

/// Protocol of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum ProbeProtocol {
    /// Tcp.
    Tcp,
    /// Http.
    Http,
    /// Https.
    Https,
}

/// A health probe.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Probe {
    /// Name.
    pub name: Arc<str>,
    /// Protocol.
    pub protocol: ProbeProtocol,
    /// Port on the backends.
    pub port: u16,
    /// Path, for Http and Https.
    pub path: Option<Arc<str>>,
    /// Seconds between two probes.
    pub interval_s: u16,
    /// How many answers in a row change a backend's health.
    pub threshold: u16,
    /// The rest.
    pub rest: Rest,
}

/// An outbound rule, inbound NAT rule or NAT pool of a load balancer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ForeignRule {
    /// `outboundRules`, `inboundNatRules` or `inboundNatPools`.
    pub collection: ForeignCollection,
    /// Frontends it uses.
    pub frontends: Vec<ResourceId>,
    /// Protocol and port range it takes on them; `None` for outbound rules.
    pub ports: Option<(RuleProtocol, u16, u16)>,
    /// The whole element as it came.
    pub body: Value,
}

/// The collections of a load balancer that are never ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum ForeignCollection {
    /// `outboundRules`.
    Outbound,
    /// `inboundNatRules`.
    NatRule,
    /// `inboundNatPools`.
    NatPool,
}

/// A network security group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SecurityGroup {
    /// Id.
    pub id: ResourceId,
    /// ETag it was read with.
    pub etag: Option<Etag>,
    /// Region.
    pub location: Arc<str>,
    /// Tags.
    pub tags: Option<Tags>,
    /// Rules, in the order they came.
    pub rules: Vec<SecurityRule>,
    /// Provisioning state (read only).
    pub provisioning: Provisioning,
    /// The rest.
    pub rest: Rest,
}

/// A security rule. Single and plural forms of prefixes and ports are one set here; the codec
/// writes one entry in the singular form and several in the plural form.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SecurityRule {
    /// Name.
    pub name: Arc<str>,
    /// Allow or Deny.
    pub access: Access,
    /// Inbound or Outbound, as written.
    pub direction: Arc<str>,
    /// Priority.
    pub priority: u16,
    /// `Tcp`, `Udp` or `*`, as written.
    pub protocol: Arc<str>,
    /// Source prefixes and tags.
    pub sources: BTreeSet<Arc<str>>,
    /// Source ports.
    pub source_ports: BTreeSet<Arc<str>>,
    /// Destination prefixes and tags.
    pub destinations: BTreeSet<Arc<str>>,
    /// Destination ports.
    pub ports: BTreeSet<Arc<str>>,
    /// The rest (application security groups, description, and for foreign rules the exact
    /// prefix and port fields as they came).
    pub rest: Rest,
}

/// What a security rule does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Access {
    /// Lets traffic in.
    Allow,
    /// Keeps it out.
    Deny,
}

/// A NAT gateway.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NatGateway {
    /// Id.
    pub id: ResourceId,
    /// ETag it was read with.
    pub etag: Option<Etag>,
    /// Region.
    pub location: Arc<str>,
    /// Tags.
    pub tags: Option<Tags>,
    /// SKU.
    pub sku: Sku,
    /// Service Gateway it belongs to.
    pub gateway: Option<ResourceId>,
    /// IPv4 public IPs.
    pub public_ips: Vec<ResourceId>,
    /// IPv6 public IPs.
    pub public_ips_v6: Vec<ResourceId>,
    /// Provisioning state (read only).
    pub provisioning: Provisioning,
    /// The rest.
    pub rest: Rest,
}

/// The wire's protocol of a Service port in a rule.
#[must_use]
pub fn rule_protocol(protocol: Protocol) -> RuleProtocol {
    match protocol {
        Protocol::Tcp => RuleProtocol::Tcp,
        Protocol::Udp => RuleProtocol::Udp,
        Protocol::Sctp => RuleProtocol::All,
    }
}
