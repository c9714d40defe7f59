//! Nodes that go away, and what drains because of it.

use crate::id::ResourceId;
use serde::Serialize;
use std::fmt;
use std::net::IpAddr;

/// The label of a node that is to drain for planned work, whatever its value is.
pub const DRAIN_LABEL: &str = "ballast.dev/drain";

/// Whether a node takes load-balancer traffic, and if not, why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Membership {
    /// It does.
    Member,
    /// Label `node.kubernetes.io/exclude-from-external-load-balancers` or
    /// `kubernetes.azure.com/managed=false`, or in another resource group.
    Excluded,
    /// It is going away: deletion timestamp, taint `ToBeDeletedByClusterAutoscaler`, or
    /// [`DRAIN_LABEL`].
    Draining,
    /// It is both, as a node is that Karpenter ends. It joins no pool, and drains before it leaves
    /// those that it is in.
    Leaving,
}

impl Membership {
    /// Whether the node is to be in no pool.
    #[must_use]
    pub fn is_left_out(self) -> bool {
        matches!(self, Self::Excluded | Self::Leaving)
    }

    /// Whether the node is going away.
    #[must_use]
    pub fn is_going(self) -> bool {
        matches!(self, Self::Draining | Self::Leaving)
    }
}

/// What drains: an address in pools of addresses, or what is in pools through its network
/// interface.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Drainer {
    /// A node's address.
    Address(IpAddr),
    /// An instance of a scale set, or a network interface.
    Machine(ResourceId),
}

impl From<IpAddr> for Drainer {
    fn from(address: IpAddr) -> Self {
        Self::Address(address)
    }
}

/// The address, the network interface's name, or the scale set's with the instance's number.
impl fmt::Display for Drainer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => address.fmt(f),
            Self::Machine(id) => {
                let folded = id.folded();
                let set = folded.contains("/virtualmachinescalesets/").then(|| id.parent());
                match set.flatten() {
                    Some(set) => write!(f, "{}/{}", set.name(), id.name()),
                    None => f.write_str(id.name()),
                }
            }
        }
    }
}

impl Serialize for Drainer {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_drains_is_named_in_short() {
        let id = |tail: &str| {
            let root = "/subscriptions/s/resourceGroups/rg/providers";
            Drainer::Machine(ResourceId::new(format!("{root}/{tail}"))).to_string()
        };
        let instance = "Microsoft.Compute/virtualMachineScaleSets/vmss/virtualMachines/3";
        assert_eq!(id(instance), "vmss/3");
        assert_eq!(id("Microsoft.Network/networkInterfaces/nic-a"), "nic-a");
        assert_eq!(Drainer::from(IpAddr::from([10, 0, 0, 4])).to_string(), "10.0.0.4");
    }
}
