//! Paths.

use crate::net;
use arm::path::{
    Action, Collection, Contract, action_path, list_path, resource_path, scale_set_vms_path,
    zones_path,
};
use model::policy::BalancerSku;
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
            resource_path(
                Contract::Containers,
                &compute.child("virtualMachines/0/networkInterfaces", "n"),
            ),
            format!("{compute}/virtualMachines/0/networkInterfaces/n?{network}"),
        ),
        (
            resource_path(Contract::Containers, &compute),
            format!("{compute}?api-version=2025-04-01"),
        ),
        (
            scale_set_vms_path(&compute),
            format!("{compute}/virtualMachines?$expand=instanceView&api-version=2025-04-01"),
        ),
        (
            list_path(Contract::Containers, "s", &group, Collection::PublicIps),
            format!(
                "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network/\
                 publicIPAddresses?{network}"
            ),
        ),
        (
            list_path(Contract::Containers, "s", &group, Collection::VirtualMachines),
            "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Compute/\
             virtualMachines?api-version=2025-04-01"
                .to_owned(),
        ),
        (
            zones_path("s"),
            "/subscriptions/s/providers/Microsoft.Compute?api-version=2021-04-01".to_owned(),
        ),
        (
            action_path(Contract::Containers, &gateway, Action::UpdateAddressLocations),
            format!("{gateway}/updateAddressLocations?{network}"),
        ),
        (
            action_path(Contract::Containers, &gateway, Action::Services),
            format!("{gateway}/services?{network}"),
        ),
    ];
    for (found, want) in table {
        assert_eq!(found, want);
    }
}

#[test]
fn a_name_cannot_leave_its_segment() {
    let path =
        |name: &str| resource_path(Contract::Containers, &ResourceId::new(format!("/a/{name}/b")));
    assert_eq!(path("x?y#z% ä"), "/a/x%3Fy%23z%25%20%C3%A4/b?api-version=2025-05-01");
    assert_eq!(path(".."), "/a/%2E%2E/b?api-version=2025-05-01");
    assert_eq!(path("v1.2_(x)-y"), "/a/v1.2_(x)-y/b?api-version=2025-05-01");
}

/// The SKU `Service` enters with a version that clouds get late: who does not need it asks for what
/// the Go controller asks for.
#[test]
fn load_balancers_are_asked_for_by_the_version_that_knows_their_sku() {
    use BalancerSku::{Basic, Service, Standard};
    for (sku, version) in [(Basic, "2025-05-01"), (Standard, "2025-05-01"), (Service, "2025-09-01")]
    {
        let contract = Contract::of(sku);
        let balancer = ResourceId::new(net("loadBalancers/l"));
        let pool = ResourceId::new(net("loadBalancers/l/backendAddressPools/p"));
        let list = list_path(contract, "s", &Group::new("RG"), Collection::LoadBalancers);
        for path in [
            resource_path(contract, &balancer),
            resource_path(contract, &pool),
            action_path(contract, &balancer, Action::MigrateToIpBased),
            list,
        ] {
            assert!(path.ends_with(&format!("?api-version={version}")), "{sku:?}: {path}");
        }
        let ip = resource_path(contract, &ResourceId::new(net("publicIPAddresses/a")));
        assert!(ip.ends_with("?api-version=2025-05-01"), "{sku:?}: {ip}");
    }
}
