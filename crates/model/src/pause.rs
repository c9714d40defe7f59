//! What an operator stops for the whole cluster: writes to Azure.

use crate::id::ResourceId;
use serde::Serialize;
use std::collections::BTreeSet;
use std::fmt;

/// The annotation of the Lease that stops writes. `true` stops all, a list of [`KINDS`] separated
/// by commas those of these kinds.
pub const PAUSE: &str = "ballast.dev/pause";

/// Kinds of Azure resources that are written, by their names in ids. Parts count with the whole:
/// instances with their scale set, subnets with their virtual network.
pub const KINDS: [&str; 9] = [
    "loadBalancers",
    "publicIPAddresses",
    "networkSecurityGroups",
    "privateLinkServices",
    "natGateways",
    "serviceGateways",
    "networkInterfaces",
    "virtualMachineScaleSets",
    "virtualNetworks",
];

/// Which writes to Azure an operator has stopped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum Pause {
    /// All.
    All,
    /// Those of resources of these kinds.
    Kinds(BTreeSet<&'static str>),
}

impl Pause {
    /// What an annotation's value stops; `None` for an empty value and `false`.
    ///
    /// # Guarantees
    /// A value with a word in it that names no kind stops all writes: a mistake in typing must not
    /// let through what it was to stop.
    #[must_use]
    pub fn read(value: &str) -> Option<Self> {
        let words = value.split(',').map(str::trim).filter(|word| !word.is_empty());
        let words: Vec<&str> = words.collect();
        match words.as_slice() {
            [] => return None,
            [one] if one.eq_ignore_ascii_case("false") => return None,
            _ => {}
        }
        let kind = |word: &&str| KINDS.into_iter().find(|kind| kind.eq_ignore_ascii_case(word));
        let kinds: Option<BTreeSet<&'static str>> = words.iter().map(kind).collect();
        Some(kinds.map_or(Self::All, Self::Kinds))
    }

    /// Whether writes of a resource are stopped.
    #[must_use]
    pub fn stops(&self, id: &ResourceId) -> bool {
        let Self::Kinds(kinds) = self else { return true };
        let kind = id.short().split('/').next().unwrap_or_default();
        kinds.iter().any(|stopped| stopped.eq_ignore_ascii_case(kind))
    }
}

impl fmt::Display for Pause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("all writes to Azure"),
            Self::Kinds(kinds) => {
                let kinds: Vec<&str> = kinds.iter().copied().collect();
                write!(f, "writes of {}", kinds.join(", "))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(rest: &str) -> ResourceId {
        ResourceId::new(format!("/subscriptions/s/resourceGroups/rg/providers/Microsoft.{rest}"))
    }

    #[test]
    fn a_list_of_kinds_stops_these_and_their_parts() {
        let pause = Pause::read(" publicipaddresses, virtualMachineScaleSets ").expect("it stops");
        assert_eq!(pause.to_string(), "writes of publicIPAddresses, virtualMachineScaleSets");
        assert!(pause.stops(&id("Network/publicIPAddresses/a")));
        assert!(pause.stops(&id("Compute/virtualMachineScaleSets/a/virtualMachines/0")));
        assert!(!pause.stops(&id("Network/loadBalancers/publicIPAddresses")));
        let shouted = id("Network/publicIPAddresses/a").as_str().to_uppercase();
        assert!(pause.stops(&ResourceId::new(shouted)), "Azure writes ids in either case");
    }

    #[test]
    fn what_names_no_kind_stops_everything() {
        for value in ["true", "True", "yes", "loadBalancer", "loadBalancers,publicIPs"] {
            assert_eq!(Pause::read(value), Some(Pause::All), "{value}");
        }
        assert!(Pause::All.stops(&id("Network/loadBalancers/kubernetes")));
        for value in ["", " , ", "false", "False"] {
            assert_eq!(Pause::read(value), None, "{value}");
        }
    }
}
