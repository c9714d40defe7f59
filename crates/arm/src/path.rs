//! Paths and queries below the ARM endpoint, `api-version` included.

use model::kubernetes::Backends;
use model::policy::BalancerSku;
use model::{Group, Policy, ResourceId};
use std::fmt::Write as _;

/// API version of resource providers themselves.
const PROVIDERS_API: &str = "2021-04-01";

/// Service Gateways, and StandardV2 of public IPs and NAT gateways, enter with it.
const NETWORK_API: &str = "2025-05-01";

/// The first contract whose `sku.name` of load balancers takes `Service`.
const SERVICE_SKU_API: &str = "2025-09-01";

const COMPUTE_API: &str = "2025-04-01";

const BALANCERS: &str = "microsoft.network/loadbalancers";

/// Which contracts requests are made by: the oldest that have all that a cluster with load
/// balancers of one SKU needs, because clouds get new ones late.
///
/// Source: the published contracts, compared in docs/dev/azure-facts.md.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contract {
    /// Load balancers are of SKU Basic or Standard.
    Nodes,
    /// Load balancers are of SKU `Service`.
    Containers,
}

impl Contract {
    /// For load balancers of this SKU.
    #[must_use]
    pub fn of(sku: BalancerSku) -> Self {
        match sku {
            BalancerSku::Basic | BalancerSku::Standard => Self::Nodes,
            BalancerSku::Service => Self::Containers,
        }
    }

    /// For all load balancers under a policy: those that Services leave, too.
    #[must_use]
    pub fn for_policy(policy: &Policy) -> Self {
        match policy.over(Backends::Pods) {
            Some(_) => Self::Containers,
            None => Self::of(policy.sku),
        }
    }

    /// The API version of a kind of resource, such as `Microsoft.Network/loadBalancers`, and of
    /// what stands below it.
    fn version_of(self, kind: &str) -> &'static str {
        let kind = kind.to_ascii_lowercase();
        let covers = |of: &str| {
            kind.strip_prefix(of).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        match self {
            Self::Containers if covers(BALANCERS) => SERVICE_SKU_API,
            _ if covers("microsoft.compute") => COMPUTE_API,
            _ => NETWORK_API,
        }
    }

    /// A NIC of an instance is below its scale set, and Microsoft.Network's all the same.
    fn version_for(self, id: &ResourceId) -> &'static str {
        let folded = id.folded();
        if folded.contains("/networkinterfaces/") {
            return NETWORK_API;
        }
        self.version_of(folded.rsplit_once("/providers/").map_or("", |(_, kind)| kind))
    }
}

/// A kind of resource that is listed by resource group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Collection {
    /// Load balancers.
    LoadBalancers,
    /// Public IPs.
    PublicIps,
    /// Private Link Services.
    PrivateLinkServices,
    /// NAT gateways.
    NatGateways,
    /// Security groups.
    SecurityGroups,
    /// NICs.
    NetworkInterfaces,
    /// Scale sets.
    ScaleSets,
    /// Virtual machines.
    VirtualMachines,
}

impl Collection {
    /// Namespace and type, as in an id.
    #[must_use]
    pub fn kind(self) -> &'static str {
        match self {
            Self::LoadBalancers => "Microsoft.Network/loadBalancers",
            Self::PublicIps => "Microsoft.Network/publicIPAddresses",
            Self::PrivateLinkServices => "Microsoft.Network/privateLinkServices",
            Self::NatGateways => "Microsoft.Network/natGateways",
            Self::SecurityGroups => "Microsoft.Network/networkSecurityGroups",
            Self::NetworkInterfaces => "Microsoft.Network/networkInterfaces",
            Self::ScaleSets => "Microsoft.Compute/virtualMachineScaleSets",
            Self::VirtualMachines => "Microsoft.Compute/virtualMachines",
        }
    }
}

/// An action on a resource, or a list below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Action {
    /// POST on a Service Gateway: register and remove services.
    UpdateServices,
    /// POST on a Service Gateway: map addresses.
    UpdateAddressLocations,
    /// POST on a load balancer: pools of NICs become pools of addresses.
    MigrateToIpBased,
    /// GET on a Service Gateway: its services.
    Services,
    /// GET on a Service Gateway: its addresses.
    AddressLocations,
}

impl Action {
    fn segment(self) -> &'static str {
        match self {
            Self::UpdateServices => "updateServices",
            Self::UpdateAddressLocations => "updateAddressLocations",
            Self::MigrateToIpBased => "migrateToIpBased",
            Self::Services => "services",
            Self::AddressLocations => "addressLocations",
        }
    }
}

/// Of a resource, for GET, PUT and DELETE.
#[must_use]
pub fn resource_path(contract: Contract, id: &ResourceId) -> String {
    format!("{}?api-version={}", escaped(id.as_str()), contract.version_for(id))
}

/// Of all resources of a kind in a group.
#[must_use]
pub fn list_path(
    contract: Contract,
    subscription: &str,
    group: &Group,
    collection: Collection,
) -> String {
    let kind = collection.kind();
    let api = contract.version_of(kind);
    let path = format!("/subscriptions/{subscription}/resourceGroups/{group}/providers/{kind}");
    format!("{}?api-version={api}", escaped(&path))
}

/// Of all instances of a scale set, with what says whether they run.
#[must_use]
pub fn scale_set_vms_path(scale_set: &ResourceId) -> String {
    let path = escaped(scale_set.as_str());
    format!("{path}/virtualMachines?$expand=instanceView&api-version={COMPUTE_API}")
}

/// Of the compute provider, whose types say which zones a region has.
#[must_use]
pub fn zones_path(subscription: &str) -> String {
    let path = format!("/subscriptions/{subscription}/providers/Microsoft.Compute");
    format!("{}?api-version={PROVIDERS_API}", escaped(&path))
}

/// Of an action on a resource, or of a list below it.
#[must_use]
pub fn action_path(contract: Contract, id: &ResourceId, action: Action) -> String {
    let path = escaped(id.as_str());
    format!("{path}/{}?api-version={}", action.segment(), contract.version_for(id))
}

/// Names come from annotations, too: nothing in one may end the path or leave its segment.
pub(crate) fn escaped(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    for (i, segment) in path.split('/').enumerate() {
        if i > 0 {
            out.push('/');
        }
        let dots = segment == "." || segment == "..";
        for byte in segment.bytes() {
            let plain = byte.is_ascii_alphanumeric() || b"-_~()!'*,;=:@+".contains(&byte);
            if plain || (byte == b'.' && !dots) {
                out.push(char::from(byte));
            } else {
                // Writing to a String cannot fail.
                let _ = write!(out, "%{byte:02X}");
            }
        }
    }
    out
}

/// A value of a query or a form, or one segment of a path, where nothing may end it: all but the
/// unreserved characters of RFC 3986 is escaped.
#[must_use]
pub fn query_escaped(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            // Writing to a String cannot fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}
