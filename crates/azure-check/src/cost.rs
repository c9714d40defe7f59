//! What the resources of a run cost. Prices differ by region, agreement and day: none stands here.

/// What a kind costs, and where Azure says how much.
#[must_use]
pub fn cost_of(kind: &str) -> &'static str {
    match kind {
        "virtualNetworks" | "networkSecurityGroups" | "networkInterfaces" => {
            "see Azure's price list: azure.microsoft.com/pricing/details/virtual-network"
        }
        "publicIPAddresses" => {
            "by the hour, see Azure's price list: \
             azure.microsoft.com/pricing/details/ip-addresses"
        }
        "loadBalancers" => {
            "by the hour and rule, see Azure's price list: \
             azure.microsoft.com/pricing/details/load-balancer"
        }
        "natGateways" => {
            "by the hour, see Azure's price list: \
             azure.microsoft.com/pricing/details/azure-nat-gateway"
        }
        "privateLinkServices" => {
            "see Azure's price list: azure.microsoft.com/pricing/details/private-link"
        }
        "virtualMachineScaleSets" => {
            "by the machine, and this one has none, see Azure's price list: \
             azure.microsoft.com/pricing/details/virtual-machine-scale-sets"
        }
        _ => "see Azure's price list: azure.microsoft.com/pricing",
    }
}
