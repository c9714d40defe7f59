//! Settings for what Azure may have otherwise.

use crate::common::*;
use azure_emulator::{Options, Request, Switch};
use serde_json::{Value, json};

#[test]
fn the_caller_may_do_what_the_permissions_say() {
    let role = ["Microsoft.Network/*/read", "Microsoft.Network/publicIPAddresses/write"];
    let permissions = role.map(str::to_owned).to_vec();
    let mut cloud = Cloud::with(Options { permissions, ..Options::default() });
    let listed = cloud.get(&format!("{GROUP}/providers/Microsoft.Authorization/permissions"));
    assert_eq!(listed["value"][0]["actions"], json!(role));
    let address = cloud.pip("a");
    cloud.get(&net("loadBalancers"));
    let balancer = balancer(&address, vec![]);
    let gateway = net("serviceGateways/servicegateway");
    let denied = [
        (cloud.try_put(&lb_id(), balancer), "Microsoft.Network/loadBalancers/write"),
        (cloud.delete(&address), "Microsoft.Network/publicIPAddresses/delete"),
        (
            cloud.post(&format!("{gateway}/updateServices"), json!({})),
            "Microsoft.Network/serviceGateways/updateServices/action",
        ),
        (
            cloud.call(Request::new("GET", &compute("virtualMachineScaleSets/vmss"))),
            "Microsoft.Compute/virtualMachineScaleSets/read",
        ),
    ];
    for (answer, action) in denied {
        assert_eq!((answer.status, answer.code()), (403, Some("AuthorizationFailed")));
        let message = answer.body.unwrap()["error"]["message"].as_str().unwrap().to_lowercase();
        let wanted = format!("perform action '{action}'").to_lowercase();
        assert!(message.contains(&wanted), "{message}");
    }
}

const OTHER: &str = "W/\"other\"";

/// An internal load balancer with so many frontends, and Private Link Services before them.
fn linked(cloud: &mut Cloud, links: usize) -> Vec<u16> {
    cloud.open_to_links();
    let frontends: Vec<Value> = (0..links)
        .map(|n| {
            json!({"name": format!("f{n}"), "properties": {
                "subnet": {"id": net("virtualNetworks/vnet/subnets/nodes")}}})
        })
        .collect();
    cloud.put(
        &lb_id(),
        json!({"location": "eastus", "sku": {"name": "Standard"},
            "properties": {"frontendIPConfigurations": frontends}}),
    );
    let put = |n: usize| {
        cloud.try_put(&net(&format!("privateLinkServices/l{n}")), link(&format!("f{n}"))).status
    };
    (0..links).map(put).collect()
}

#[test]
fn private_link_services_are_counted() {
    let mut cloud = Cloud::new();
    assert_eq!(linked(&mut cloud, 9), [vec![201; 8], vec![400]].concat());
    // One that stands is written again.
    let first = net("privateLinkServices/l0");
    let body = cloud.get(&first);
    cloud.put(&first, body);
    let few = Options { private_links_of_subscription: Some(2), ..Options::default() };
    assert_eq!(linked(&mut Cloud::with(few), 3), [201, 201, 400]);
    let any = Options { private_links_of_balancer: None, ..Options::default() };
    assert_eq!(linked(&mut Cloud::with(any), 10), vec![201; 10]);
}

#[test]
fn etags_of_links_and_flexible_models_are_checked_where_a_setting_says_so() {
    for (switch, status) in [(Switch::Off, 200), (Switch::On, 412)] {
        let mut cloud = Cloud::with(Options {
            private_link_etag: switch,
            flexible_model_etag: switch,
            ..Options::default()
        });
        linked(&mut cloud, 1);
        let set = compute("virtualMachineScaleSets/flexible");
        cloud.put(
            &set,
            json!({"properties": {"orchestrationMode": "Flexible",
                "platformFaultDomainCount": 1}}),
        );
        for id in [net("privateLinkServices/l0"), set] {
            let body = cloud.get(&id);
            let put = Request::new("PUT", &id).with_body(body).with_if_match(OTHER);
            assert_eq!(cloud.call(put).status, status, "{id}");
        }
        // Everything else is checked in any case.
        let uniform = compute("virtualMachineScaleSets/vmss");
        let body = cloud.get(&uniform);
        let put = Request::new("PUT", &uniform).with_body(body).with_if_match(OTHER);
        assert_eq!(cloud.call(put).status, 412);
    }
}
