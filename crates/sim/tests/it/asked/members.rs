//! Pools that nodes join through their network interfaces.

use super::view::*;
use crate::support::{GROUP, network, scale_set};
use serde_json::{Value, json};

fn bound(more: &Value, seed: Vec<Value>) -> Stage {
    let mut config = json!({"loadBalancerBackendPoolConfigurationType": "nodeIPConfiguration"});
    for (key, value) in more.as_object().into_iter().flatten() {
        config[key] = value.clone();
    }
    stage_with(&config, seed)
}

fn set(name: &str) -> String {
    format!("{GROUP}/providers/Microsoft.Compute/virtualMachineScaleSets/{name}")
}

/// "configuration: load balancer/pool, …" of what can be in pools.
fn pools(nic: &Value) -> String {
    let configurations = nic["properties"]["ipConfigurations"].as_array().cloned();
    let lines = configurations.unwrap_or_default().into_iter().map(|configuration| {
        let pools = &configuration["properties"]["loadBalancerBackendAddressPools"];
        let mut pools: Vec<String> = pools
            .as_array()
            .into_iter()
            .flatten()
            .map(|pool| {
                let id = pool["id"].as_str().unwrap_or("").to_owned();
                let parts: Vec<&str> = id.rsplit('/').collect();
                format!("{}/{}", parts[2], parts[0])
            })
            .collect();
        pools.sort();
        format!("{}: {}", configuration["name"].as_str().unwrap_or(""), pools.join(", "))
    });
    lines.collect::<Vec<_>>().join("; ")
}

fn of_model(s: &Stage, name: &str) -> String {
    let set = s.lab.azure.resource(&set(name)).expect("the scale set");
    let profile = &set["properties"]["virtualMachineProfile"]["networkProfile"];
    pools(&profile["networkInterfaceConfigurations"][0])
}

fn of_machine(s: &Stage, name: &str, index: u32) -> String {
    let id = format!("{}/virtualMachines/{index}", set(name));
    let machine = s.lab.azure.resource(&id).expect("the machine");
    pools(
        &machine["properties"]["networkProfileConfiguration"]["networkInterfaceConfigurations"][0],
    )
}

/// [pools] Model and instances join by family: IPv4 through the primary configuration, IPv6
/// through the first of that version; public and internal load balancers side by side; all leave at
/// the end.
#[test]
fn a_scale_set_joins_by_family() {
    let mut s = bound(&json!({}), scale_set("vmss", 3));
    s.ask(web("web").dual());
    s.ask(web("in").internal().ports(&["TCP 81 30081"]));
    let all = "ipconfig1: kubernetes-internal/kubernetes, kubernetes/kubernetes; ipconfig2: \
        kubernetes/kubernetes-IPv6";
    assert_eq!(of_model(&s, "vmss"), all);
    for index in 0..3 {
        assert_eq!(of_machine(&s, "vmss", index), all);
    }
    s.delete("web");
    let inside = "ipconfig1: kubernetes-internal/kubernetes; ipconfig2: ";
    assert_eq!(of_model(&s, "vmss"), inside);
    assert_eq!(of_machine(&s, "vmss", 1), inside);
    s.delete("in");
    assert_eq!(of_model(&s, "vmss"), "ipconfig1: ; ipconfig2: ");
    assert_eq!(of_machine(&s, "vmss", 2), "ipconfig1: ; ipconfig2: ");
    is(&s.text(), "");
}

/// [pools] A stopped machine, one that Azure knows no power state of, and one without a node do not
/// join; a set that is on another load balancer is left alone.
#[test]
fn machines_that_do_not_join() {
    let mut seed = scale_set("vmss", 4);
    for resource in &mut seed {
        match resource["instanceId"].as_str() {
            Some("0") => {
                resource["properties"]["instanceView"]["statuses"][0]["code"] =
                    json!("PowerState/deallocated");
            }
            Some("1") => {
                resource["properties"]["provisioningState"] = json!("Deleting");
            }
            _ => {}
        }
    }
    let mut s = bound(&json!({}), seed);
    s.ask(web("web"));
    let none = "ipconfig1: ; ipconfig2: ";
    assert_eq!(of_machine(&s, "vmss", 0), none);
    assert_eq!(of_machine(&s, "vmss", 1), none);
    assert_eq!(of_machine(&s, "vmss", 2), "ipconfig1: kubernetes/kubernetes; ipconfig2: ");
    assert_eq!(of_machine(&s, "vmss", 3), none);
    let other = json!({"id": network("loadBalancers/other"), "location": "eastus",
        "sku": {"name": "Standard"}, "properties": {"backendAddressPools": [{"name": "p"}]}});
    let mut seed = scale_set("vmss", 3);
    let pool = json!([{"id": network("loadBalancers/other/backendAddressPools/p")}]);
    let profile = &mut seed[0]["properties"]["virtualMachineProfile"]["networkProfile"];
    profile["networkInterfaceConfigurations"][0]["properties"]["ipConfigurations"][0]["properties"]
        ["loadBalancerBackendAddressPools"] = pool;
    let mut s = bound(&json!({}), [vec![other], seed].concat());
    s.ask(web("web"));
    assert_eq!(of_model(&s, "vmss"), "ipconfig1: other/p; ipconfig2: ");
}

/// [pools] A node that is left out leaves, but never the last one.
#[test]
fn a_node_that_is_left_out_leaves() {
    let label = "node.kubernetes.io/exclude-from-external-load-balancers";
    let mut s = bound(&json!({}), scale_set("vmss", 3));
    s.ask(web("web"));
    let exclude = |s: &mut Stage, index: u32, value: Option<&str>| {
        let body = json!({"metadata": {"labels": {label: value}}});
        crate::support::patch(&mut s.lab, "nodes", "", &format!("vmss{index:06}"), body);
        s.settle();
    };
    let (within, without) =
        ("ipconfig1: kubernetes/kubernetes; ipconfig2: ", "ipconfig1: ; ipconfig2: ");
    exclude(&mut s, 0, Some("false"));
    exclude(&mut s, 1, Some("true"));
    let all = |s: &Stage| (0..3).map(|index| of_machine(s, "vmss", index)).collect::<Vec<_>>();
    assert_eq!(all(&s), [without, without, within]);
    exclude(&mut s, 2, Some("x"));
    assert_eq!(all(&s), [without, without, within]);
    exclude(&mut s, 0, None);
    assert_eq!(all(&s), [within, without, without]);
}
