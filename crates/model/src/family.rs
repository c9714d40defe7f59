//! Address families, exposures and protocols.

use serde::Serialize;
use std::fmt;
use std::net::IpAddr;

/// An IP address family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum Family {
    /// IPv4.
    #[serde(rename = "IPv4")]
    V4,
    /// IPv6.
    #[serde(rename = "IPv6")]
    V6,
}

impl Family {
    /// Both families, IPv4 first: the order in which parts of a load balancer are made.
    pub const ALL: [Self; 2] = [Self::V4, Self::V6];

    /// The family of an address.
    #[must_use]
    pub fn of(address: IpAddr) -> Self {
        if address.is_ipv4() { Self::V4 } else { Self::V6 }
    }

    /// The name both Kubernetes and Azure use: `IPv4` or `IPv6`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::V4 => "IPv4",
            Self::V6 => "IPv6",
        }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Whether a load balancer faces the Internet or a virtual network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum Exposure {
    /// Frontends are public IPs.
    Public,
    /// Frontends are addresses of a subnet.
    Internal,
}

impl Exposure {
    /// Both, public first.
    pub const ALL: [Self; 2] = [Self::Public, Self::Internal];

    /// The other one.
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Self::Public => Self::Internal,
            Self::Internal => Self::Public,
        }
    }
}

/// The transport protocol of a Service port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum Protocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
    /// SCTP; Azure has no rule for it, it goes as protocol `All` on internal load balancers.
    Sctp,
}

impl Protocol {
    /// All protocols, in the order in which security rules are made.
    pub const ALL: [Self; 3] = [Self::Tcp, Self::Udp, Self::Sctp];

    /// As Kubernetes writes it, upper case; also the middle of a rule's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Tcp => "TCP",
            Self::Udp => "UDP",
            Self::Sctp => "SCTP",
        }
    }
}
