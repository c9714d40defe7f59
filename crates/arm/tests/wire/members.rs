//! Scale sets, instances, NICs and VMs.

use crate::NET;
use arm::body::{read_pool_member, read_virtual_machine, write_pool_member};
use model::azure::{Ipv6Service, MemberKind, MemberState, PrivateLinkRank};
use model::{Family, ResourceId};
use serde_json::{Value, json};

fn compute(path: &str) -> String {
    format!("{}/{path}", NET.replace("Microsoft.Network", "Microsoft.Compute"))
}

fn card(pools: Value) -> Value {
    json!({"name": "nic", "properties": {"primary": true, "enableIPForwarding": true,
        "ipConfigurations": [
            {"name": "ipconfig1", "properties": {"primary": true,
                "privateIPAddressVersion": "IPv4", "subnet": {"id": "s"},
                "loadBalancerBackendAddressPools": pools}},
            {"name": "ipconfig2", "properties": {"primary": false,
                "privateIPAddressVersion": "IPv6", "subnet": {"id": "s"}}}]}})
}

fn instance(view: Value) -> Value {
    json!({"id": compute("virtualMachineScaleSets/vmss/virtualMachines/0"), "name": "vmss_0",
        "location": "eastus", "instanceId": "0", "sku": {"name": "big"}, "zones": ["1"],
        "properties": {"osProfile": {"computerName": "vmss000000"}, "instanceView": view,
            "hardwareProfile": {"vmSize": "big"}, "storageProfile": {"osDisk": {}},
            "networkProfileConfiguration": {"networkInterfaceConfigurations":
                [card(json!([{"id": "/p"}]))]}}})
}

#[test]
fn an_instance_carries_its_network_and_nothing_more() {
    let running = json!({"statuses": [{"code": "ProvisioningState/succeeded"},
        {"code": "PowerState/running"}]});
    let mut vm = read_pool_member(&instance(running)).unwrap();
    assert_eq!((vm.kind, vm.state), (MemberKind::ScaleSetVm, MemberState::Usable));
    assert_eq!(vm.host.as_deref(), Some("vmss000000"));
    assert_eq!(vm.owner, Some(ResourceId::new(compute("virtualMachineScaleSets/vmss"))));
    let families: Vec<_> =
        vm.configurations.iter().map(|c| (c.family, c.rank, c.pools.len())).collect();
    assert_eq!(
        families,
        [(Family::V4, PrivateLinkRank::Primary, 1), (Family::V6, PrivateLinkRank::Secondary, 0)]
    );
    vm.configurations[0].pools.insert(ResourceId::new("/q"));
    let mut want = card(json!([{"id": "/p"}, {"id": "/q"}]));
    want["properties"]["ipConfigurations"][1]["properties"]["loadBalancerBackendAddressPools"] =
        json!([]);
    assert_eq!(
        write_pool_member(&vm),
        json!({"id": compute("virtualMachineScaleSets/vmss/virtualMachines/0"), "name": "0",
            "location": "eastus", "properties": {"hardwareProfile": {"vmSize": "big"},
                "networkProfileConfiguration": {"networkInterfaceConfigurations": [want]}}})
    );
}

#[test]
fn an_instance_that_may_not_run_is_not_usable() {
    let power = |state: &str| json!({"statuses": [{"code": format!("PowerState/{state}")}]});
    for view in [power("deallocated"), power("Stopped"), power("unknown"), json!({}), json!(null)] {
        let vm = read_pool_member(&instance(view.clone())).unwrap();
        assert_eq!(vm.state, MemberState::Unusable, "{view}");
    }
    let mut deleting = instance(power("running"));
    deleting["properties"]["provisioningState"] = json!("Deleting");
    assert_eq!(read_pool_member(&deleting).unwrap().state, MemberState::Unusable);
}

fn scale_set(mode: &str) -> Value {
    json!({"id": compute("virtualMachineScaleSets/vmss"), "location": "eastus",
        "sku": {"name": "big", "capacity": 3}, "properties": {"orchestrationMode": mode,
            "virtualMachineProfile": {"osProfile": {"computerNamePrefix": "node"},
                "storageProfile": {}, "networkProfile": {"networkInterfaceConfigurations": [
                    {"name": "other", "properties": {"primary": false, "ipConfigurations": [
                        {"name": "ipconfig1", "properties": {
                            "loadBalancerBackendAddressPools": [{"id": "/mine"}]}}]}},
                    card(json!(null))]}}}})
}

#[test]
fn a_model_changes_in_its_primary_nic() {
    let mut set = read_pool_member(&scale_set("Uniform")).unwrap();
    assert_eq!((set.kind, set.host.as_deref()), (MemberKind::ScaleSet, Some("node")));
    set.configurations[0].pools.insert(ResourceId::new("/p"));
    let written = write_pool_member(&set);
    let profile = &written["properties"]["virtualMachineProfile"];
    let cards = &profile["networkProfile"]["networkInterfaceConfigurations"];
    let pools = |card: &Value| {
        let configuration = &card["properties"]["ipConfigurations"][0];
        configuration["properties"]["loadBalancerBackendAddressPools"].clone()
    };
    assert_eq!(pools(&cards[0]), json!([{"id": "/mine"}]));
    assert_eq!(pools(&cards[1]), json!([{"id": "/p"}]));
    let profile = written["properties"]["virtualMachineProfile"].as_object().unwrap();
    assert_eq!(profile.keys().collect::<Vec<_>>(), ["networkProfile"]);
    assert_eq!(written.get("sku"), None);
    assert_eq!(read_pool_member(&written).unwrap().configurations, set.configurations);
}

#[test]
fn a_flexible_model_names_its_network_api() {
    let set = read_pool_member(&scale_set("flexible")).unwrap();
    assert_eq!(set.kind, MemberKind::FlexibleScaleSet);
    let written = write_pool_member(&set);
    let network = &written["properties"]["virtualMachineProfile"]["networkProfile"];
    assert_eq!(network["networkApiVersion"], "2020-11-01");
    assert_eq!(read_pool_member(&written).unwrap().kind, MemberKind::FlexibleScaleSet);
}

#[test]
fn a_nic_is_written_whole() {
    let body = json!({"id": format!("{NET}/networkInterfaces/n"), "name": "n",
        "location": "eastus", "tags": {"a": "b"}, "etag": "W/\"1\"", "kind": "Regular",
        "extendedLocation": {"name": "z", "type": "EdgeZone"},
        "properties": {"provisioningState": "Succeeded", "resourceGuid": "g",
            "virtualMachine": {"id": compute("virtualMachines/vm")},
            "networkSecurityGroup": {"id": "nsg"}, "enableIPForwarding": true,
            "ipConfigurations": [{"name": "c", "id": "c", "etag": "W/\"1\"", "properties": {
                "provisioningState": "Succeeded", "privateIPAddress": "10.0.0.4",
                "loadBalancerBackendAddressPools": [{"id": "/p", "etag": "x"}]}}]}});
    let nic = read_pool_member(&body).unwrap();
    assert_eq!(nic.owner, Some(ResourceId::new(compute("virtualMachines/vm"))));
    assert_eq!(nic.configurations[0].rank, PrivateLinkRank::Primary);
    assert_eq!(
        write_pool_member(&nic),
        json!({"id": format!("{NET}/networkInterfaces/n"), "name": "n",
            "location": "eastus", "tags": {"a": "b"}, "kind": "Regular",
            "extendedLocation": {"name": "z", "type": "EdgeZone"},
            "properties": {
                "networkSecurityGroup": {"id": "nsg"}, "enableIPForwarding": true,
                "ipConfigurations": [{"name": "c", "id": "c", "properties": {
                    "privateIPAddress": "10.0.0.4",
                    "loadBalancerBackendAddressPools": [{"id": "/p"}]}}]}})
    );
}

#[test]
fn the_state_of_a_nic() {
    for (state, read) in [
        ("Succeeded", MemberState::Usable),
        ("Failed", MemberState::Failed),
        ("Canceled", MemberState::Failed),
        ("Deleting", MemberState::Unusable),
    ] {
        let body = json!({"id": format!("{NET}/networkInterfaces/n"),
            "properties": {"provisioningState": state}});
        assert_eq!(read_pool_member(&body).unwrap().state, read, "{state}");
    }
    let other = read_pool_member(&json!({"id": format!("{NET}/routeTables/n")}));
    insta::assert_snapshot!(other.unwrap_err().reason,
        @"routetables is no kind that joins pools");
}

#[test]
fn a_machine_knows_its_set_and_its_primary_nic() {
    let vm = read_virtual_machine(&json!({"id": compute("virtualMachines/vm"), "properties": {
        "osProfile": {"computerName": "Node-1"}, "availabilitySet": {"id": "/as"},
        "networkProfile": {"networkInterfaces": [
            {"id": "/n1", "properties": {"primary": false}},
            {"id": "/n2", "properties": {"primary": true}}]}}}))
    .unwrap();
    assert_eq!(vm.host.as_deref(), Some("Node-1"));
    assert_eq!(vm.set, Some(ResourceId::new("/as")));
    assert_eq!(vm.nic, Some(ResourceId::new("/n2")));
}

#[test]
fn the_image_says_whether_a_scale_set_serves_ipv6() {
    let set = |profile: Value| {
        let id = compute("virtualMachineScaleSets/vmss");
        let body = json!({"id": id, "properties": {"virtualMachineProfile": profile}});
        read_pool_member(&body).unwrap().ipv6
    };
    let image = |system: &str, reference: Value| {
        let disk = json!({"osType": system});
        json!({"storageProfile": {"osDisk": disk, "imageReference": reference}})
    };
    let gallery = "/subscriptions/2019/galleries/g/images/windows-2019-containerd/versions/1";
    let refused = [json!({"id": gallery}), json!({"sku": "2019-datacenter-core"})];
    for reference in refused {
        assert_eq!(set(image("Windows", reference.clone())), Ipv6Service::Refused);
        assert_eq!(set(image("Linux", reference)), Ipv6Service::Served);
    }
    let newer = gallery.replace("windows-2019", "windows-2022");
    assert_eq!(set(image("Windows", json!({"id": newer}))), Ipv6Service::Served);
    assert_eq!(set(json!({})), Ipv6Service::Served);
}
