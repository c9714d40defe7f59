//! What Azure's access control has to allow: one row for each kind of call that is sent, and one
//! for each reference in a body that Azure checks by itself.
//!
//! Names of permissions are Azure's:
//! <https://learn.microsoft.com/azure/role-based-access-control/permissions/networking>,
//! <https://learn.microsoft.com/azure/role-based-access-control/permissions/compute>. Those below a
//! Service Gateway stand in no public table yet; they are made by Azure's rule (a type and `read`,
//! a POST's name and `action`).
//!
//! # Guarantees
//! [`OPERATIONS`] and [`JOINS`] are compared with the calls of all simulated scenarios, in both
//! directions: a call without a row and a row without a call each fail a test.

use crate::exchange::{Body, Method, Request, Target};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt;

/// What a permission is needed for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Purpose {
    /// Any load balancer.
    Basic,
    /// Pools of NICs, and moving them to pools of addresses.
    NicPools,
    /// Private Link Services.
    PrivateLink,
    /// The container load balancer.
    Container,
    /// `ballast run --backend-health`.
    BackendHealth,
}

impl Purpose {
    /// All that the controller needs: without those that a flag turns on.
    pub const ALL: [Self; 4] = [Self::Basic, Self::NicPools, Self::PrivateLink, Self::Container];
}

/// One kind of call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Operation {
    /// The method.
    pub method: Method,
    /// Namespace and type of the path; for a POST also the action's name.
    pub kind: &'static str,
    /// What allows it.
    pub permission: &'static str,
    /// What it is for.
    pub purpose: Purpose,
}

/// A reference in the body of a write. Azure lets nobody refer to what he may not join.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Join {
    /// Type of what is written.
    pub from: &'static str,
    /// Type of what the body refers to.
    pub to: &'static str,
    /// What allows it; `None`: whoever may write may refer to it.
    pub permission: Option<&'static str>,
    /// What it is for.
    pub purpose: Purpose,
}

const LB: &str = "Microsoft.Network/loadBalancers";
const POOL: &str = "Microsoft.Network/loadBalancers/backendAddressPools";
const FRONTEND: &str = "Microsoft.Network/loadBalancers/frontendIPConfigurations";
const PIP: &str = "Microsoft.Network/publicIPAddresses";
const PREFIX: &str = "Microsoft.Network/publicIPPrefixes";
const NSG: &str = "Microsoft.Network/networkSecurityGroups";
const ASG: &str = "Microsoft.Network/applicationSecurityGroups";
const ROUTES: &str = "Microsoft.Network/routeTables";
const VNET: &str = "Microsoft.Network/virtualNetworks";
const SUBNET: &str = "Microsoft.Network/virtualNetworks/subnets";
const NAT: &str = "Microsoft.Network/natGateways";
const PLS: &str = "Microsoft.Network/privateLinkServices";
const LINK: &str = "Microsoft.Network/privateLinkServices/privateEndpointConnections";
const GATEWAY: &str = "Microsoft.Network/serviceGateways";
const NIC: &str = "Microsoft.Network/networkInterfaces";
const VM: &str = "Microsoft.Compute/virtualMachines";
const SET: &str = "Microsoft.Compute/virtualMachineScaleSets";
const INSTANCE: &str = "Microsoft.Compute/virtualMachineScaleSets/virtualMachines";

const fn call(
    method: Method,
    kind: &'static str,
    permission: &'static str,
    purpose: Purpose,
) -> Operation {
    Operation { method, kind, permission, purpose }
}

const fn join(
    from: &'static str,
    to: &'static str,
    permission: &'static str,
    purpose: Purpose,
) -> Join {
    Join { from, to, permission: Some(permission), purpose }
}

/// A reference for which Azure has no permission to ask.
const fn mention(from: &'static str, to: &'static str, purpose: Purpose) -> Join {
    Join { from, to, permission: None, purpose }
}

use Method::{Delete, Get, Post, Put};
use Purpose::{BackendHealth, Basic, Container, NicPools, PrivateLink};

/// Every kind of call that is sent.
pub static OPERATIONS: &[Operation] = &[
    call(Get, LB, "Microsoft.Network/loadBalancers/read", Basic),
    call(Put, LB, "Microsoft.Network/loadBalancers/write", Basic),
    call(Delete, LB, "Microsoft.Network/loadBalancers/delete", Basic),
    call(Get, PIP, "Microsoft.Network/publicIPAddresses/read", Basic),
    call(Put, PIP, "Microsoft.Network/publicIPAddresses/write", Basic),
    call(Delete, PIP, "Microsoft.Network/publicIPAddresses/delete", Basic),
    call(Get, NSG, "Microsoft.Network/networkSecurityGroups/read", Basic),
    call(Put, NSG, "Microsoft.Network/networkSecurityGroups/write", Basic),
    call(Get, SUBNET, "Microsoft.Network/virtualNetworks/subnets/read", Basic),
    // Polls of operations under way.
    call(
        Get,
        "Microsoft.Network/locations/operations",
        "Microsoft.Network/locations/operations/read",
        Basic,
    ),
    call(
        Get,
        "Microsoft.Network/locations/operationResults",
        "Microsoft.Network/locations/operationResults/read",
        Basic,
    ),
    // Which zones the region has: the compute provider says it.
    call(Get, "Microsoft.Compute", "Microsoft.Resources/subscriptions/providers/read", Basic),
    call(
        Post,
        "Microsoft.Network/loadBalancers/migrateToIpBased",
        "Microsoft.Network/loadBalancers/migrateToIpBased/action",
        NicPools,
    ),
    call(Get, NIC, "Microsoft.Network/networkInterfaces/read", NicPools),
    call(Put, NIC, "Microsoft.Network/networkInterfaces/write", NicPools),
    call(Get, VM, "Microsoft.Compute/virtualMachines/read", NicPools),
    call(Get, SET, "Microsoft.Compute/virtualMachineScaleSets/read", NicPools),
    call(Put, SET, "Microsoft.Compute/virtualMachineScaleSets/write", NicPools),
    call(Get, INSTANCE, "Microsoft.Compute/virtualMachineScaleSets/virtualMachines/read", NicPools),
    call(
        Put,
        INSTANCE,
        "Microsoft.Compute/virtualMachineScaleSets/virtualMachines/write",
        NicPools,
    ),
    call(
        Get,
        "Microsoft.Compute/locations/operations",
        "Microsoft.Compute/locations/operations/read",
        NicPools,
    ),
    call(Put, SUBNET, "Microsoft.Network/virtualNetworks/subnets/write", PrivateLink),
    call(Get, PLS, "Microsoft.Network/privateLinkServices/read", PrivateLink),
    call(Put, PLS, "Microsoft.Network/privateLinkServices/write", PrivateLink),
    call(Delete, PLS, "Microsoft.Network/privateLinkServices/delete", PrivateLink),
    call(
        Delete,
        LINK,
        "Microsoft.Network/privateLinkServices/privateEndpointConnections/delete",
        PrivateLink,
    ),
    call(Get, NAT, "Microsoft.Network/natGateways/read", Container),
    call(Put, NAT, "Microsoft.Network/natGateways/write", Container),
    call(Delete, NAT, "Microsoft.Network/natGateways/delete", Container),
    call(
        Get,
        "Microsoft.Network/serviceGateways/services",
        "Microsoft.Network/serviceGateways/services/read",
        Container,
    ),
    call(
        Get,
        "Microsoft.Network/serviceGateways/addressLocations",
        "Microsoft.Network/serviceGateways/addressLocations/read",
        Container,
    ),
    call(
        Post,
        "Microsoft.Network/serviceGateways/updateServices",
        "Microsoft.Network/serviceGateways/updateServices/action",
        Container,
    ),
    call(
        Post,
        "Microsoft.Network/serviceGateways/updateAddressLocations",
        "Microsoft.Network/serviceGateways/updateAddressLocations/action",
        Container,
    ),
];

const JOIN_PIP: &str = "Microsoft.Network/publicIPAddresses/join/action";
const JOIN_PREFIX: &str = "Microsoft.Network/publicIPPrefixes/join/action";
const JOIN_SUBNET: &str = "Microsoft.Network/virtualNetworks/subnets/join/action";
const JOIN_VNET: &str = "Microsoft.Network/virtualNetworks/joinLoadBalancer/action";
const JOIN_POOL: &str = "Microsoft.Network/loadBalancers/backendAddressPools/join/action";
const JOIN_FRONTEND: &str = "Microsoft.Network/loadBalancers/frontendIPConfigurations/join/action";
const JOIN_NSG: &str = "Microsoft.Network/networkSecurityGroups/join/action";
const JOIN_ASG: &str = "Microsoft.Network/applicationSecurityGroups/joinNetworkSecurityRule/action";
const JOIN_ROUTES: &str = "Microsoft.Network/routeTables/join/action";
const JOIN_NAT: &str = "Microsoft.Network/natGateways/join/action";

/// Every reference in what is written.
pub static JOINS: &[Join] = &[
    join(LB, PIP, JOIN_PIP, Basic),
    join(LB, SUBNET, JOIN_SUBNET, Basic),
    // Pools of addresses name their network.
    join(LB, VNET, JOIN_VNET, Basic),
    join(PIP, PREFIX, JOIN_PREFIX, Basic),
    // Rules of others go back with every write of the group they are in.
    join(NSG, ASG, JOIN_ASG, Basic),
    join(NIC, SUBNET, JOIN_SUBNET, NicPools),
    join(NIC, NSG, JOIN_NSG, NicPools),
    join(NIC, POOL, JOIN_POOL, NicPools),
    join(SET, SUBNET, JOIN_SUBNET, NicPools),
    join(SET, NSG, JOIN_NSG, NicPools),
    join(SET, POOL, JOIN_POOL, NicPools),
    join(INSTANCE, SUBNET, JOIN_SUBNET, NicPools),
    join(INSTANCE, NSG, JOIN_NSG, NicPools),
    join(INSTANCE, POOL, JOIN_POOL, NicPools),
    // A subnet goes back whole when its policies for Private Link change.
    join(SUBNET, NSG, JOIN_NSG, PrivateLink),
    join(SUBNET, ROUTES, JOIN_ROUTES, PrivateLink),
    join(SUBNET, NAT, JOIN_NAT, PrivateLink),
    join(PLS, SUBNET, JOIN_SUBNET, PrivateLink),
    join(PLS, FRONTEND, JOIN_FRONTEND, PrivateLink),
    join(NAT, PIP, JOIN_PIP, Container),
    mention(NAT, GATEWAY, Container),
    join("Microsoft.Network/serviceGateways/updateServices", POOL, JOIN_POOL, Container),
    join("Microsoft.Network/serviceGateways/updateServices", VNET, JOIN_VNET, Container),
    join("Microsoft.Network/serviceGateways/updateServices", NAT, JOIN_NAT, Container),
];

/// Calls of those that look on, which the controller itself does not make and no scenario of the
/// simulation has. The permission of Azure Monitor:
/// <https://learn.microsoft.com/azure/role-based-access-control/permissions/monitor>.
pub static OBSERVED: &[Operation] =
    &[call(Get, "Microsoft.Insights/metrics", "Microsoft.Insights/metrics/read", BackendHealth)];

/// Every kind of call, whoever makes it.
pub fn operations() -> impl Iterator<Item = &'static Operation> {
    OPERATIONS.iter().chain(OBSERVED)
}

/// Fields that Azure fills in and does not look at when they come back.
const READ_ONLY: [&str; 3] = ["ipConfiguration", "ipConfigurations", "virtualMachine"];

/// A call or a reference that no row stands for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Unlisted(String);

impl fmt::Display for Unlisted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The rows that a call needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Needed {
    /// For the call itself.
    pub operation: &'static Operation,
    /// For what its body refers to.
    pub joins: BTreeSet<&'static Join>,
}

/// What a call needs, from its method, its path (or URL) and its body.
///
/// # Errors
/// What no row stands for.
pub fn needed(method: Method, path: &str, body: Option<&Value>) -> Result<Needed, Unlisted> {
    let kind = kind_of(path);
    let same = |o: &&Operation| o.method == method && o.kind.eq_ignore_ascii_case(&kind);
    let operation = OPERATIONS
        .iter()
        .find(same)
        .ok_or_else(|| Unlisted(format!("{} of {kind}", method.name())))?;
    let mut referred = BTreeSet::new();
    if let Some(body) = body {
        references(body, &own(path).to_lowercase(), &mut referred);
    }
    let mut joins = BTreeSet::new();
    for to in referred {
        let same = |j: &&Join| j.from == operation.kind && j.to.eq_ignore_ascii_case(&to);
        let found = JOINS.iter().find(same);
        let lacking = || Unlisted(format!("{} of {kind} that refers to {to}", method.name()));
        joins.insert(found.ok_or_else(lacking)?);
    }
    Ok(Needed { operation, joins })
}

/// What a request needs.
///
/// # Errors
/// As [`needed`].
pub fn needed_by(request: &Request) -> Result<Needed, Unlisted> {
    let (Target::Path(path) | Target::Url(path)) = &request.target;
    let body = request.body.as_ref().map(Body::tree);
    needed(request.method, path, body.as_deref())
}

/// The permissions for some purposes, sorted, each once.
#[must_use]
pub fn permissions(purposes: &BTreeSet<Purpose>) -> BTreeSet<&'static str> {
    let calls = operations().filter(|o| purposes.contains(&o.purpose)).map(|o| o.permission);
    let joins = JOINS.iter().filter(|j| purposes.contains(&j.purpose));
    calls.chain(joins.filter_map(|j| j.permission)).collect()
}

/// The path of a URL, without its query.
fn own(path: &str) -> &str {
    let path = path.find("/subscriptions/").map_or(path, |at| &path[at..]);
    path.split('?').next().unwrap_or(path)
}

/// Namespace and type: every other segment behind the last `providers`.
fn kind_of(path: &str) -> String {
    let segments: Vec<&str> = own(path).split('/').filter(|s| !s.is_empty()).collect();
    let at = segments.iter().rposition(|s| s.eq_ignore_ascii_case("providers"));
    let Some([namespace, rest @ ..]) = at.and_then(|at| segments.get(at + 1..)) else {
        return segments.join("/");
    };
    let types = match rest {
        // …/locations/{region}/operations/{id}
        [first, _, what, ..] if first.eq_ignore_ascii_case("locations") => vec![*first, *what],
        _ => rest.iter().step_by(2).copied().collect(),
    };
    std::iter::once(*namespace).chain(types).collect::<Vec<_>>().join("/")
}

/// Types of what a body refers to, itself and its own parts left out.
fn references(value: &Value, own: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                if !(READ_ONLY.contains(&key.as_str()) && is_back_reference(value)) {
                    references(value, own, found);
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, own, found)),
        Value::String(text) => {
            let folded = text.to_lowercase();
            let is_own =
                folded.strip_prefix(own).is_some_and(|r| r.is_empty() || r.starts_with('/'));
            if folded.starts_with("/subscriptions/") && !is_own {
                found.insert(kind_of(text));
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// `{"id": …}` or a list of such: what a NIC's own `ipConfigurations` are not.
fn is_back_reference(value: &Value) -> bool {
    let bare = |v: &Value| v.as_object().is_some_and(|o| o.len() == 1 && o.contains_key("id"));
    bare(value) || value.as_array().is_some_and(|items| items.iter().all(bare))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const GROUP: &str = "/subscriptions/s/resourceGroups/rg/providers";

    fn one(method: Method, path: &str) -> &'static str {
        needed(method, path, None).unwrap().operation.permission
    }

    #[test]
    fn a_path_names_its_permission() {
        let lb = format!("{GROUP}/microsoft.network/LOADBALANCERS");
        assert_eq!(one(Get, &lb), "Microsoft.Network/loadBalancers/read");
        assert_eq!(
            one(Put, &format!("{lb}/a?api-version=1")),
            "Microsoft.Network/loadBalancers/write"
        );
        let poll =
            "https://x/subscriptions/s/providers/Microsoft.Network/locations/eu/operations/1";
        assert_eq!(one(Get, poll), "Microsoft.Network/locations/operations/read");
        let zones = "/subscriptions/s/providers/Microsoft.Compute?api-version=1";
        assert_eq!(one(Get, zones), "Microsoft.Resources/subscriptions/providers/read");
        let act = format!("{GROUP}/Microsoft.Network/serviceGateways/g/updateServices");
        assert_eq!(one(Post, &act), "Microsoft.Network/serviceGateways/updateServices/action");
    }

    #[test]
    fn what_no_row_stands_for_is_named() {
        let path = format!("{GROUP}/Microsoft.Network/routeTables/rt");
        let error = needed(Put, &path, None).unwrap_err().to_string();
        assert_eq!(error, "PUT of Microsoft.Network/routeTables");
        let path = format!("{GROUP}/Microsoft.Network/loadBalancers/lb");
        let body = json!({"gateway": {"id": format!("{GROUP}/Microsoft.Network/natGateways/n")}});
        let error = needed(Put, &path, Some(&body)).unwrap_err().to_string();
        let want = "PUT of Microsoft.Network/loadBalancers that refers to \
                    Microsoft.Network/natGateways";
        assert_eq!(error, want);
    }

    #[test]
    fn a_body_asks_for_joins_but_not_of_its_own_parts() {
        let path = format!("{GROUP}/Microsoft.Network/loadBalancers/lb");
        let body = json!({"id": path, "properties": {
            "frontendIPConfigurations": [{"properties": {"publicIPAddress":
                {"id": format!("{GROUP}/Microsoft.Network/publicIPAddresses/a")}}}],
            "loadBalancingRules": [{"properties": {"backendAddressPool":
                {"id": format!("{path}/backendAddressPools/p")}}}]}});
        let joins = needed(Put, &path, Some(&body)).unwrap().joins;
        let permissions: Vec<_> = joins.iter().filter_map(|j| j.permission).collect();
        assert_eq!(permissions, ["Microsoft.Network/publicIPAddresses/join/action"]);
    }

    #[test]
    fn rows_stand_once_and_fit_their_kind() {
        for (at, row) in OPERATIONS.iter().enumerate() {
            let same = |o: &Operation| (o.method, o.kind) == (row.method, row.kind);
            assert_eq!(OPERATIONS.iter().position(same), Some(at), "{row:?}");
            let verb = match row.method {
                Get => "read",
                Post => "action",
                Delete => "delete",
                Put | Method::Patch => "write",
            };
            assert!(row.permission.ends_with(&format!("/{verb}")), "{row:?}");
            let told = row.permission.starts_with(&format!("{}/", row.kind));
            assert!(told || row.kind == "Microsoft.Compute", "{row:?}");
        }
        for (at, row) in JOINS.iter().enumerate() {
            let same = |j: &Join| (j.from, j.to) == (row.from, row.to);
            assert_eq!(JOINS.iter().position(same), Some(at), "{row:?}");
            assert!(row.permission.is_none_or(|p| p.starts_with(row.to)), "{row:?}");
        }
    }

    #[test]
    fn a_purpose_left_out_leaves_its_permissions_out() {
        let basic = permissions(&BTreeSet::from([Basic]));
        assert!(basic.iter().all(|p| !p.contains("natGateways") && !p.contains("virtualMachine")));
        assert!(basic.contains("Microsoft.Network/publicIPAddresses/join/action"));
        assert!(basic.len() < permissions(&BTreeSet::from(Purpose::ALL)).len());
    }
}
