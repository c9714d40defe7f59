//! What a Service asks for: every annotation by the reference.

mod access;
mod addresses;
mod container;
mod link;
pub(crate) mod notes;
mod ports;
mod public_ip;
mod read;
mod words;

use ipnet::IpNet;
use std::collections::BTreeMap;
use std::net::IpAddr;

pub(crate) use read::read;

/// An IP family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Family {
    V4,
    V6,
}

impl Family {
    pub(crate) const BOTH: [Self; 2] = [Self::V4, Self::V6];

    /// As Kubernetes and Azure write it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::V4 => "IPv4",
            Self::V6 => "IPv6",
        }
    }

    /// That of an address.
    pub(crate) fn of(address: &IpAddr) -> Self {
        if address.is_ipv4() { Self::V4 } else { Self::V6 }
    }
}

/// A transport protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Protocol {
    Tcp,
    Udp,
    Sctp,
}

impl Protocol {
    /// As Kubernetes writes it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Tcp => "TCP",
            Self::Udp => "UDP",
            Self::Sctp => "SCTP",
        }
    }

    /// As rules of load balancers write it: Azure has no SCTP, all protocols stand for it.
    pub(crate) fn in_rule(self) -> &'static str {
        match self {
            Self::Tcp => "Tcp",
            Self::Udp => "Udp",
            Self::Sctp => "All",
        }
    }

    /// As security rules write it.
    pub(crate) fn in_security_rule(self) -> &'static str {
        match self {
            Self::Tcp => "Tcp",
            Self::Udp => "Udp",
            Self::Sctp => "*",
        }
    }
}

/// Protocol of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProbeProtocol {
    Tcp,
    Http,
    Https,
}

impl ProbeProtocol {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Tcp => "Tcp",
            Self::Http => "Http",
            Self::Https => "Https",
        }
    }
}

/// A probe of one port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Probe {
    pub(crate) protocol: ProbeProtocol,
    pub(crate) port: u64,
    /// Of Http and Https.
    pub(crate) path: Option<String>,
    pub(crate) seconds: u64,
    pub(crate) count: u64,
}

/// A port of a Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Port {
    pub(crate) name: String,
    pub(crate) protocol: Protocol,
    pub(crate) number: u64,
    /// 0 where there is none.
    pub(crate) node_port: u64,
    /// `targetPort`, where it is a number; the port itself where nothing is said. `None`: a name.
    pub(crate) target: Option<u64>,
    /// Without it neither rule nor probe nor opening in the security group.
    pub(crate) has_rule: bool,
    /// The probe that the port would have where neither the policy Local nor a shared probe takes
    /// its place; `None` for UDP and SCTP, and where an annotation wants none.
    pub(crate) probe: Option<Probe>,
    /// Whether an annotation wants none.
    pub(crate) no_probe: bool,
    /// Whether an annotation names the port to probe.
    pub(crate) own_probe_port: bool,
    /// Seconds between two probes on the health check node port and how many count, where the port
    /// says so.
    pub(crate) health_timing: Option<(u64, u64)>,
}

/// `azure-load-balancer-mode`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// The primary node set's load balancer.
    Primary,
    /// Any of them.
    Auto,
    /// That of this node set.
    Set(String),
}

/// Who may connect.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Access {
    /// `azure-allowed-service-tags`, each once.
    pub(crate) tags: Vec<String>,
    /// Source ranges of the Service and its annotations.
    pub(crate) ranges: Vec<IpNet>,
    /// Whether the annotation asks to deny all other sources.
    pub(crate) deny_all: bool,
    /// `azure-disable-load-balancer-nsg-rule`.
    pub(crate) no_rules: bool,
}

/// What is asked of public IPs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PublicIp {
    /// Public IPs that exist, by name.
    pub(crate) name: BTreeMap<Family, String>,
    /// Ids of prefixes.
    pub(crate) prefix: BTreeMap<Family, String>,
    /// Resource group, where it is not the cluster's.
    pub(crate) group: Option<String>,
    /// DNS label: `None` leaves it alone, an empty one takes it away.
    pub(crate) label: Option<String>,
    /// Tags, without those that must not be set.
    pub(crate) tags: BTreeMap<String, String>,
    /// IP tags by type; `None` leaves them alone.
    pub(crate) ip_tags: Option<BTreeMap<String, String>>,
}

/// A Private Link Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Link {
    pub(crate) name: Option<String>,
    pub(crate) group: Option<String>,
    /// Name of the subnet of its addresses; `None` is the frontend's.
    pub(crate) subnet: Option<String>,
    pub(crate) count: usize,
    /// Static addresses; the first one is the primary.
    pub(crate) addresses: Vec<IpAddr>,
    pub(crate) fqdns: Vec<String>,
    pub(crate) proxy_protocol: bool,
    pub(crate) visibility: Vec<String>,
    pub(crate) auto_approval: Vec<String>,
    /// Whether an `azure-pls-*` key is there beside `azure-pls-create` and that of its group.
    pub(crate) configured: bool,
}

/// What a Service asks for, where it is valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Asks {
    pub(crate) internal: bool,
    /// `azure-load-balancer-internal` is true in any letters; only the lower-case one places.
    pub(crate) internal_loosely: bool,
    /// Subnet that an annotation names.
    pub(crate) subnet: Option<String>,
    pub(crate) mode: Mode,
    /// `azure-load-balancer-configurations`, lower case.
    pub(crate) configurations: Option<Vec<String>>,
    /// Families in the order of the Service.
    pub(crate) families: Vec<Family>,
    /// Addresses that the Service wants.
    pub(crate) pinned: BTreeMap<Family, IpAddr>,
    /// `azure-additional-public-ips`.
    pub(crate) additional: Vec<IpAddr>,
    pub(crate) idle_minutes: u64,
    pub(crate) ha_ports: bool,
    pub(crate) floating: bool,
    pub(crate) tcp_reset: bool,
    /// `sessionAffinity: ClientIP`.
    pub(crate) client_ip: bool,
    /// `externalTrafficPolicy: Local`.
    pub(crate) local: bool,
    /// `healthCheckNodePort`; 0 where there is none.
    pub(crate) health_port: u64,
    /// Whether probes count on the PROXY protocol before every port.
    pub(crate) proxied: bool,
    /// Interval and count of the probe on the health check node port.
    pub(crate) health_timing: (u64, u64),
    pub(crate) ports: Vec<Port>,
    pub(crate) access: Access,
    pub(crate) public_ip: PublicIp,
    pub(crate) link: Option<Link>,
}

impl Asks {
    pub(crate) fn is_dual(&self) -> bool {
        self.families.len() == 2
    }

    /// Ports that are forwarded.
    pub(crate) fn forwarded(&self) -> impl Iterator<Item = &Port> {
        self.ports.iter().filter(|port| port.has_rule)
    }
}

/// Why a Service is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Invalid(pub(crate) String);
