//! Where addresses of the emulated network really are.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use serde::{Deserialize, Serialize};

/// Where a node or pod really is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// A loopback address.
    pub address: IpAddr,
    /// Its ports that are elsewhere.
    #[serde(default)]
    pub ports: BTreeMap<u16, u16>,
    /// Where all its other ports are; each is itself where this is missing.
    #[serde(default)]
    pub others: Option<u16>,
}

impl Host {
    fn at(&self, port: u16) -> SocketAddr {
        let port = self.ports.get(&port).copied().or(self.others).unwrap_or(port);
        SocketAddr::new(self.address, port)
    }
}

/// A host as the target of packets that keep the frontend's address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Floated {
    /// The node's address.
    pub backend: IpAddr,
    /// The frontend's address, which the packets keep.
    pub frontend: IpAddr,
    /// Where they arrive.
    pub host: Host,
}

/// Where everybody really is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Hosts {
    /// By address in the emulated network.
    pub hosts: BTreeMap<IpAddr, Host>,
    /// Where packets with a frontend's address arrive, if not with all others of the node.
    pub floating: Vec<Floated>,
    /// Where everybody else is.
    pub anybody: Option<Host>,
}

impl Hosts {
    /// What is wrong with it: nothing but loopback is reached.
    ///
    /// # Errors
    /// An address is not a loopback address.
    pub fn check(&self) -> Result<(), String> {
        let floating = self.floating.iter().map(|floated| &floated.host);
        let mut all = self.hosts.values().chain(floating).chain(&self.anybody);
        match all.find(|host| !host.address.is_loopback()) {
            None => Ok(()),
            Some(host) => Err(format!(
                "placing hosts failed: {} is not a loopback address; the data path reaches only \
                 127.0.0.0/8 and ::1",
                host.address
            )),
        }
    }

    /// Where a port of an address is; `frontend` is given for packets that keep that address.
    #[must_use]
    pub fn find(&self, backend: IpAddr, frontend: Option<IpAddr>, port: u16) -> Option<SocketAddr> {
        let floated = self
            .floating
            .iter()
            .find(|floated| floated.backend == backend && Some(floated.frontend) == frontend)
            .map(|floated| &floated.host);
        let host = floated.or_else(|| self.hosts.get(&backend)).or(self.anybody.as_ref());
        host.map(|host| host.at(port))
    }
}
