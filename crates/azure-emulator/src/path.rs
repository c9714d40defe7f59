//! Resource Manager's paths.

use std::collections::BTreeMap;

/// The kinds the emulator knows more of than their id, in lower case.
pub(crate) mod kind {
    pub(crate) const LB: &str = "microsoft.network/loadbalancers";
    pub(crate) const PIP: &str = "microsoft.network/publicipaddresses";
    pub(crate) const PREFIX: &str = "microsoft.network/publicipprefixes";
    pub(crate) const NSG: &str = "microsoft.network/networksecuritygroups";
    pub(crate) const VNET: &str = "microsoft.network/virtualnetworks";
    pub(crate) const SUBNET: &str = "microsoft.network/virtualnetworks/subnets";
    pub(crate) const ROUTES: &str = "microsoft.network/routetables";
    pub(crate) const NAT: &str = "microsoft.network/natgateways";
    pub(crate) const SGW: &str = "microsoft.network/servicegateways";
    pub(crate) const PLS: &str = "microsoft.network/privatelinkservices";
    pub(crate) const NIC: &str = "microsoft.network/networkinterfaces";
    pub(crate) const VMSS: &str = "microsoft.compute/virtualmachinescalesets";
    pub(crate) const VMSS_VM: &str = "microsoft.compute/virtualmachinescalesets/virtualmachines";
    pub(crate) const VMSS_NIC: &str =
        "microsoft.compute/virtualmachinescalesets/virtualmachines/networkinterfaces";
    pub(crate) const VM: &str = "microsoft.compute/virtualmachines";
}

/// How Azure spells the segments of types.
const SPELLINGS: &[&str] = &[
    "Microsoft.Network",
    "Microsoft.Compute",
    "Microsoft.Insights",
    "metrics",
    "loadBalancers",
    "publicIPAddresses",
    "publicIPPrefixes",
    "networkSecurityGroups",
    "virtualNetworks",
    "subnets",
    "routeTables",
    "routes",
    "natGateways",
    "serviceGateways",
    "privateLinkServices",
    "privateEndpointConnections",
    "networkInterfaces",
    "virtualMachineScaleSets",
    "virtualMachines",
    "availabilitySets",
    "securityRules",
    "frontendIPConfigurations",
    "backendAddressPools",
    "loadBalancingRules",
    "probes",
    "inboundNatRules",
    "inboundNatPools",
    "outboundRules",
    "ipConfigurations",
    "services",
    "addressLocations",
];

/// The spelling of a type segment: Azure's where it is known.
pub(crate) fn spelling(segment: &str) -> &str {
    SPELLINGS.iter().find(|known| known.eq_ignore_ascii_case(segment)).copied().unwrap_or(segment)
}

/// A path below `/subscriptions/{s}`, taken apart.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Route {
    pub(crate) subscription: String,
    /// `None` outside a resource group.
    pub(crate) group: Option<String>,
    /// "" when the path ends before `/providers/{namespace}`.
    pub(crate) namespace: String,
    pub(crate) types: Vec<String>,
    pub(crate) names: Vec<String>,
    /// Keys in lower case.
    pub(crate) query: BTreeMap<String, String>,
    /// The path without query, slashes tidied.
    pub(crate) path: String,
    /// Whether the path ended with `/providers` or `/resourceGroups`.
    pub(crate) listing: Option<String>,
}

impl Route {
    /// `None` for paths outside `/subscriptions/`.
    pub(crate) fn parse(path_and_query: &str) -> Option<Route> {
        let (path, query) = path_and_query.split_once('?').unwrap_or((path_and_query, ""));
        let path = decoded(path);
        let segments: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        let mut route = Route { query: query_of(query), ..Route::default() };
        route.path = format!("/{}", segments.join("/"));
        let mut rest = segments.as_slice();
        rest = match rest {
            [first, subscription, rest @ ..] if first.eq_ignore_ascii_case("subscriptions") => {
                route.subscription = (*subscription).to_owned();
                rest
            }
            _ => return None,
        };
        if let [first, group, after @ ..] = rest
            && first.eq_ignore_ascii_case("resourcegroups")
        {
            route.group = Some((*group).to_owned());
            rest = after;
        }
        // Extension resources repeat /providers/; the last one names the type. It stands where a
        // type does: a resource may be called so.
        let is_type = |at: &usize| at.is_multiple_of(2);
        let last = rest.iter().rposition(|part| part.eq_ignore_ascii_case("providers"));
        if let (Some(first), Some(at)) = (rest.first(), last.filter(is_type))
            && first.eq_ignore_ascii_case("providers")
        {
            rest = &rest[at..];
        }
        match rest {
            [first, namespace, after @ ..] if first.eq_ignore_ascii_case("providers") => {
                route.namespace = (*namespace).to_owned();
                route.types = after.iter().step_by(2).map(|part| (*part).to_owned()).collect();
                route.names =
                    after.iter().skip(1).step_by(2).map(|part| (*part).to_owned()).collect();
            }
            [] => {}
            other => route.listing = Some(other.join("/").to_lowercase()),
        }
        Some(route)
    }

    /// Whether the path ends with a type and not with a name.
    pub(crate) fn is_collection(&self) -> bool {
        self.types.len() > self.names.len()
    }

    /// `namespace/type/type`, lower case, of what the path names or lists.
    pub(crate) fn kind(&self) -> String {
        format!("{}/{}", self.namespace, self.types.join("/")).to_lowercase()
    }

    /// The same in Azure's spelling.
    pub(crate) fn type_name(&self) -> String {
        let types: Vec<&str> = self.types.iter().map(|part| spelling(part)).collect();
        format!("{}/{}", spelling(&self.namespace), types.join("/"))
    }

    pub(crate) fn name(&self) -> &str {
        self.names.last().map_or("", String::as_str)
    }

    /// The path in the letters under which resources are stored.
    pub(crate) fn key(&self) -> String {
        self.path.to_lowercase()
    }
}

/// The id of the resource one level up: `…/loadBalancers/x/probes/y` -> `…/loadBalancers/x`.
pub(crate) fn parent(id: &str) -> Option<&str> {
    let (rest, _) = id.rsplit_once('/')?;
    let (rest, _) = rest.rsplit_once('/')?;
    (!rest.is_empty()).then_some(rest)
}

/// The last segment of an id.
pub(crate) fn last(id: &str) -> &str {
    id.rsplit('/').next().unwrap_or("")
}

fn query_of(query: &str) -> BTreeMap<String, String> {
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decoded(key).to_lowercase(), decoded(&value.replace('+', " ")))
        })
        .collect()
}

fn decoded(text: &str) -> String {
    if !text.contains('%') {
        return text.to_owned();
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let escaped = match after {
            [high, low, ..] if *first == b'%' => std::str::from_utf8(&[*high, *low])
                .ok()
                .and_then(|x| u8::from_str_radix(x, 16).ok()),
            _ => None,
        };
        bytes.push(escaped.unwrap_or(*first));
        rest = if escaped.is_some() { &after[2..] } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routes_are_taken_apart_without_case() {
        let route = Route::parse(
            "//Subscriptions/s/resourcegroups/RG/providers/Microsoft.Network/loadbalancers/LB\
             /backendAddressPools/p?api-version=1&%24filter=a%20eq%20'b'",
        )
        .unwrap();
        assert_eq!(route.kind(), "microsoft.network/loadbalancers/backendaddresspools");
        assert_eq!(route.type_name(), "Microsoft.Network/loadBalancers/backendAddressPools");
        assert_eq!(route.names, ["LB", "p"]);
        assert_eq!(route.query["$filter"], "a eq 'b'");
        assert!(!route.is_collection());
        assert!(Route::parse("/tenant/oauth2/token").is_none());
        let network = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network";
        let path = format!("{network}/loadBalancers/lb/providers/microsoft.insights/metrics");
        let metrics = Route::parse(&path).unwrap();
        assert_eq!(metrics.type_name(), "Microsoft.Insights/metrics");
        assert!(metrics.is_collection());
        let called = Route::parse(&format!("{network}/loadBalancers/providers")).unwrap();
        assert_eq!(called.type_name(), "Microsoft.Network/loadBalancers");
        let group = Route::parse("/subscriptions/s/resourceGroups/rg").unwrap();
        assert_eq!((group.group.as_deref(), group.namespace.as_str()), (Some("rg"), ""));
    }
}
