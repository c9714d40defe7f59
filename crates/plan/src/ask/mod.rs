//! What one Service asks for, with every default filled in and every value checked: a Service and
//! the Policy become an [`Intent`] and Findings.
//!
//! This room never looks at Azure or at other Services.

pub mod annotation;
pub mod container;
pub mod findings;
pub mod hold;

mod access;
pub(crate) mod additional;
mod audit;
mod finding_rule;
mod idle_timeout;
pub(crate) mod limit;
pub(crate) mod pinned;
mod placement;
pub(crate) mod private_link;
mod probe;
pub(crate) mod public_ip;
mod read;
pub(crate) mod reader;
pub(crate) mod readings;
mod tenancy;
#[cfg(test)]
mod tests;

pub use access::{CORE_RANGES, SOURCES};
pub use read::read;
pub use reader::Reading;

use ipnet::IpNet;
use model::azure::{Distribution, ProbeProtocol};
use model::{Exposure, Family, Group, Protocol, ResourceId, ServiceName, ServiceUid};
use serde::Serialize;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

/// What a Service asks of its load balancer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Intent {
    /// UID.
    pub uid: ServiceUid,
    /// Namespace and name.
    pub name: ServiceName,
    /// Base of the names of its parts.
    pub base: Arc<str>,
    /// Public or internal.
    pub exposure: Exposure,
    /// Families, IPv4 first.
    pub families: Vec<Family>,
    /// Where it may be placed.
    pub placement: PlacementIntent,
    /// `azure-load-balancer-internal-subnet`; `None`: the default subnet.
    pub subnet: Option<Arc<str>>,
    /// Pinned addresses by family.
    pub pinned: BTreeMap<Family, IpAddr>,
    /// Public IPs (empty for internal Services).
    pub public_ips: BTreeMap<Family, PublicIpIntent>,
    /// Resource group of its public IPs.
    pub public_ip_group: Group,
    /// Other things about the public IPs.
    pub public_ip_options: PublicIpOptions,
    /// Addresses that belong to it beside its own, in the order written.
    pub additional: Vec<IpAddr>,
    /// Load-balancing rules.
    pub rules: Vec<RuleIntent>,
    /// What all rules have in common.
    pub rule_options: RuleOptions,
    /// Who may connect.
    pub access: AccessIntent,
    /// Private Link Service.
    pub private_link: Option<PrivateLinkIntent>,
    /// Whether traffic goes to all nodes or only to those with endpoints.
    pub scope: EndpointScope,
}

impl Intent {
    /// Whether the Service asks for both families.
    #[must_use]
    pub fn is_dual_stack(&self) -> bool {
        self.families.len() > 1
    }
}

/// Which load balancer a Service may be on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PlacementIntent {
    /// `azure-load-balancer-mode`.
    pub mode: PlacementMode,
    /// `azure-load-balancer-configurations`, lower-cased; empty: any.
    pub configurations: Vec<Arc<str>>,
}

/// Another spelling of `__auto__`, unless a node set has this name. The Go cloud provider's table
/// of annotations has it.
pub const AUTO: &str = "auto";

/// `azure-load-balancer-mode`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum PlacementMode {
    /// The primary set's load balancer.
    Primary,
    /// The one with the fewest rules.
    Auto,
    /// That of a named set.
    Set(Arc<str>),
}

/// Where a public IP comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum PublicIpIntent {
    /// We make it.
    Managed {
        /// From this prefix.
        prefix: Option<ResourceId>,
    },
    /// It exists under this name.
    Named(Arc<str>),
    /// It exists with the pinned address (in `Intent::pinned`).
    Pinned,
}

/// Options of public IPs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PublicIpOptions {
    /// DNS label.
    pub dns_label: DnsLabel,
    /// `azure-pip-tags`.
    pub tags: BTreeMap<Arc<str>, Arc<str>>,
    /// `azure-pip-ip-tags`; `None`: not annotated.
    pub ip_tags: Option<BTreeMap<Arc<str>, Arc<str>>>,
}

/// `azure-dns-label-name`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub enum DnsLabel {
    /// Not annotated: left alone.
    #[default]
    Untouched,
    /// Annotated as empty: removed.
    Removed,
    /// Set to this.
    Set(Arc<str>),
}

/// One load-balancing rule per family.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RuleIntent {
    /// What it carries.
    pub kind: RuleKind,
    /// Probe, if any.
    pub probe: Option<ProbeIntent>,
}

/// What a rule carries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum RuleKind {
    /// One port.
    Port {
        /// Protocol.
        protocol: Protocol,
        /// Service port.
        port: u16,
        /// Node port, where there is one.
        node_port: Option<u16>,
    },
    /// Everything (HA ports); named after the first port.
    AllPorts {
        /// Protocol of the first port.
        protocol: Protocol,
        /// The first port.
        port: u16,
    },
}

/// A probe.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ProbeIntent {
    /// What it is named after.
    pub name: ProbeName,
    /// Protocol.
    pub protocol: ProbeProtocol,
    /// Port on the node.
    pub port: u16,
    /// Path, for Http and Https.
    pub path: Option<Arc<str>>,
    /// Seconds between two probes.
    pub interval_s: u16,
    /// How many answers in a row change the health.
    pub threshold: u16,
}

/// What a probe is named after.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum ProbeName {
    /// Its rule: the rule's name.
    Rule,
    /// Its rule, whose name is that of the probe on the health check node port: the port of the
    /// rule has the number of the health check node port.
    Beside,
    /// The health check node port: the rule-name formula with TCP and that port.
    HealthCheck(u16),
    /// Shared by all Cluster Services of the load balancer.
    Shared,
}

/// Name of the probe all Cluster Services share in shared mode.
pub const SHARED_PROBE: &str = "cluster-service-shared-health-probe";

/// What all rules of a Service have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct RuleOptions {
    /// Idle timeout in minutes.
    pub idle_timeout_min: u16,
    /// Distribution.
    pub distribution: Distribution,
    /// Whether backends see the frontend's address.
    pub floating_ip: FloatingIp,
    /// Whether idle TCP connections are reset.
    pub tcp_reset: TcpReset,
}

/// Whether backends see the frontend's address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum FloatingIp {
    /// They do; backend port is the Service port.
    Enabled,
    /// They see their own; backend port is the node port.
    Disabled,
}

/// Whether idle TCP connections are reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum TcpReset {
    /// They are.
    Enabled,
    /// They vanish.
    Disabled,
}

/// Who may connect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AccessIntent {
    /// Whether security rules are written at all.
    pub rules: SecurityRules,
    /// Service tags, as written; with `Internet` where the Service is open to it.
    pub tags: Vec<Arc<str>>,
    /// Ranges, aggregated: sorted, contained ones dropped, adjacent ones merged.
    pub ranges: BTreeMap<Family, Vec<IpNet>>,
    /// Whether everything else is denied.
    pub deny_all: DenyAll,
    /// The ports of the Service that have a load-balancing rule.
    pub ports: Vec<AccessPort>,
}

/// A port that security rules open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct AccessPort {
    /// Protocol.
    pub protocol: Protocol,
    /// Service port.
    pub port: u16,
    /// Node port, where there is one.
    pub node_port: Option<u16>,
}

/// Whether security rules are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum SecurityRules {
    /// They are.
    Written,
    /// `azure-disable-load-balancer-nsg-rule`.
    Disabled,
}

/// Whether a deny-all rule follows the allowed ranges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum DenyAll {
    /// It does.
    Yes,
    /// It does not.
    No,
}

/// Whether traffic goes to all nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum EndpointScope {
    /// To all.
    Cluster,
    /// Only to nodes with an endpoint.
    Local,
}

/// A Private Link Service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PrivateLinkIntent {
    /// `azure-pls-name`; `None`: `pls-` and the frontend's name.
    pub name: Option<Arc<str>>,
    /// Resource group.
    pub group: Group,
    /// Subnet of its addresses.
    pub subnet: Arc<str>,
    /// How many addresses.
    pub count: u8,
    /// Static ones, the first the primary.
    pub addresses: Vec<IpAddr>,
    /// FQDNs, each once, in the order written.
    pub fqdns: Vec<Arc<str>>,
    /// Whether the PROXY protocol is used.
    pub proxy_protocol: ProxyProtocol,
    /// Subscriptions that see it.
    pub visibility: Vec<Arc<str>>,
    /// Subscriptions approved without asking.
    pub auto_approval: Vec<Arc<str>>,
    /// Whether any of the annotations beside `create` is set: such a Service owns the
    /// configuration and does not silently share another's.
    pub ownership: PrivateLinkOwnership,
}

/// Whether the PROXY protocol is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum ProxyProtocol {
    /// It is.
    Enabled,
    /// It is not.
    Disabled,
}

/// Whether a Service brings a Private Link configuration of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum PrivateLinkOwnership {
    /// It does.
    Own,
    /// It takes what is there.
    Shared,
}
