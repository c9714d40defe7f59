//! Azure resources in words.

use model::ResourceId;

/// Type and name pairs after the provider's namespace.
fn segments(id: &ResourceId) -> Vec<&str> {
    let text = id.as_str();
    let from = id.folded().rfind("/providers/").map(|at| at + "/providers/".len());
    let rest = from.and_then(|at| text.get(at..)).unwrap_or(text);
    rest.split('/').skip(1).collect()
}

/// Whether they are those of a call on a table: its target ends with the table's name.
fn is_table(segments: &[&str]) -> bool {
    segments.len() > 2 && segments.len() % 2 == 1
}

/// What it is.
#[must_use]
pub fn kind_name(id: &ResourceId) -> String {
    let segments = segments(id);
    let from_end = if is_table(&segments) { 2 } else { 1 };
    let kind = segments.iter().rev().nth(from_end).copied().unwrap_or_default();
    let in_set = segments.len() > 2;
    match kind.to_lowercase().as_str() {
        "publicipaddresses" => "public IP",
        "loadbalancers" => "load balancer",
        "networksecuritygroups" => "security group",
        "subnets" => "subnet",
        "privatelinkservices" => "Private Link Service",
        "privateendpointconnections" => "private endpoint connection",
        "natgateways" => "NAT gateway",
        "virtualmachinescalesets" => "scale set",
        "virtualmachines" if in_set => "instance",
        "virtualmachines" => "VM",
        "networkinterfaces" => "network interface",
        "servicegateways" => "Service Gateway",
        _ => return segments.first().map_or_else(|| id.to_string(), ToString::to_string),
    }
    .to_owned()
}

/// Its name, with its parents' where it has any.
#[must_use]
pub fn shown_name(id: &ResourceId) -> String {
    let segments = segments(id);
    let mut names: Vec<&str> = segments.iter().skip(1).step_by(2).copied().collect();
    if is_table(&segments) {
        names.extend(segments.last());
    }
    names.join("/")
}

/// Its resource group.
pub fn group_name(id: &ResourceId) -> Option<String> {
    id.group().map(|group| group.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_become_words() {
        let id = |rest: &str| {
            ResourceId::new(format!("/subscriptions/s/resourceGroups/rg/providers/{rest}"))
        };
        let balancer = id("Microsoft.Network/loadBalancers/kubernetes");
        assert_eq!(kind_name(&balancer), "load balancer");
        assert_eq!(shown_name(&balancer), "kubernetes");
        assert_eq!(group_name(&balancer).as_deref(), Some("rg"));
        let vm = id("Microsoft.Compute/virtualMachineScaleSets/vmss/virtualMachines/0");
        assert_eq!((kind_name(&vm), shown_name(&vm)), ("instance".into(), "vmss/0".into()));
        let table = id("Microsoft.Network/serviceGateways/servicegateway/services");
        assert_eq!(shown_name(&table), "servicegateway/services");
        assert_eq!(kind_name(&table), "Service Gateway");
    }
}
