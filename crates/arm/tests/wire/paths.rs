//! Paths.

use crate::{NET, net};
use arm::path::{
    Action, Collection, action_path, list_path, resource_path, scale_set_vms_path, zones_path,
};
use model::{Group, ResourceId};

#[test]
fn paths_have_their_api_version() {
    let compute = ResourceId::new(
        "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Compute/virtualMachineScaleSets/v",
    );
    let gateway = ResourceId::new(net("serviceGateways/servicegateway"));
    let network = "api-version=2025-05-01";
    let group = Group::new("RG");
    let table = [
        (
            resource_path(&ResourceId::new(net("loadBalancers/l"))),
            format!("{NET}/loadBalancers/l?api-version=2025-09-01"),
        ),
        (
            resource_path(&ResourceId::new(net("loadBalancers/l/backendAddressPools/p"))),
            format!("{NET}/loadBalancers/l/backendAddressPools/p?api-version=2025-09-01"),
        ),
        (
            action_path(&ResourceId::new(net("loadBalancers/l")), Action::MigrateToIpBased),
            format!("{NET}/loadBalancers/l/migrateToIpBased?api-version=2025-09-01"),
        ),
        (
            list_path("s", &group, Collection::LoadBalancers),
            "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network/\
             loadBalancers?api-version=2025-09-01"
                .to_owned(),
        ),
        (
            resource_path(&compute.child("virtualMachines/0/networkInterfaces", "n")),
            format!("{compute}/virtualMachines/0/networkInterfaces/n?{network}"),
        ),
        (resource_path(&compute), format!("{compute}?api-version=2025-04-01")),
        (
            scale_set_vms_path(&compute),
            format!("{compute}/virtualMachines?$expand=instanceView&api-version=2025-04-01"),
        ),
        (
            list_path("s", &group, Collection::PublicIps),
            format!(
                "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network/\
                 publicIPAddresses?{network}"
            ),
        ),
        (
            list_path("s", &group, Collection::VirtualMachines),
            "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Compute/\
             virtualMachines?api-version=2025-04-01"
                .to_owned(),
        ),
        (
            zones_path("s"),
            "/subscriptions/s/providers/Microsoft.Compute?api-version=2021-04-01".to_owned(),
        ),
        (
            action_path(&gateway, Action::UpdateAddressLocations),
            format!("{gateway}/updateAddressLocations?{network}"),
        ),
        (action_path(&gateway, Action::Services), format!("{gateway}/services?{network}")),
    ];
    for (found, want) in table {
        assert_eq!(found, want);
    }
}

#[test]
fn a_name_cannot_leave_its_segment() {
    let path = |name: &str| resource_path(&ResourceId::new(format!("/a/{name}/b")));
    assert_eq!(path("x?y#z% ä"), "/a/x%3Fy%23z%25%20%C3%A4/b?api-version=2025-05-01");
    assert_eq!(path(".."), "/a/%2E%2E/b?api-version=2025-05-01");
    assert_eq!(path("v1.2_(x)-y"), "/a/v1.2_(x)-y/b?api-version=2025-05-01");
}
