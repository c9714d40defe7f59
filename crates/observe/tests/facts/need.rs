//! Where each need is read.

use crate::policy;
use arm::{Method, Target};
use model::world::Need;
use model::{Group, ResourceId};
use observe::need::request;
use serde_json::json;

#[test]
fn every_need_has_its_place() {
    let policy = policy(json!({"networkResourceSubscriptionID": "net",
        "loadBalancerResourceGroup": "lbs", "securityGroupResourceGroup": "sgs",
        "vnetResourceGroup": "nets"}));
    let set = ResourceId::new("/s/set");
    let needs = [
        Need::Balancers,
        Need::PublicIps(Group::new("Other")),
        Need::SecurityGroup,
        Need::Subnet(policy.subnet_id("apps")),
        Need::Zones,
        Need::PrivateLinks(Group::new("pls")),
        Need::ScaleSets,
        Need::ScaleSetVms(set),
        Need::NetworkInterfaces,
        Need::VirtualMachines,
        Need::NatGateways,
        Need::GatewayServices,
        Need::GatewayLocations,
    ];
    let lines: Vec<String> = needs
        .iter()
        .map(|need| {
            let request = request(need, &policy, "c");
            assert_eq!((request.method, request.correlation.as_str()), (Method::Get, "c"));
            match request.target {
                Target::Path(path) => path
                    .replace("/providers/Microsoft.", " ")
                    .replace("/subscriptions/", "")
                    .replace("resourceGroups/", "")
                    .replace("api-version=", ""),
                Target::Url(url) => panic!("{url}"),
            }
        })
        .collect();
    insta::assert_snapshot!(lines.join("\n"), @r"
    net/lbs Network/loadBalancers?2025-05-01
    net/other Network/publicIPAddresses?2025-05-01
    net/sgs Network/networkSecurityGroups/nsg?2025-05-01
    net/nets Network/virtualNetworks/vnet/subnets/apps?2025-05-01
    sub Compute?2021-04-01
    net/pls Network/privateLinkServices?2025-05-01
    sub/rg Compute/virtualMachineScaleSets?2025-04-01
    /s/set/virtualMachines?$expand=instanceView&2025-04-01
    sub/rg Network/networkInterfaces?2025-05-01
    sub/rg Compute/virtualMachines?2025-04-01
    net/rg Network/natGateways?2025-05-01
    net/rg Network/serviceGateways/servicegateway/services?2025-05-01
    net/rg Network/serviceGateways/servicegateway/addressLocations?2025-05-01
    ");
}
