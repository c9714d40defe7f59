//! A Private Link Service lives as long as its frontend: with an endpoint connected it survives the
//! deletion of the Service that made it, while another one shares the frontend.

use crate::support::*;
use serde_json::{Value, json};
use sim::Laboratory;

const DAY_MS: u64 = 86_400_000;
const PREFIX: &str = "service.beta.kubernetes.io/";
/// An address of the nodes' subnet that both Services ask for.
const ADDRESS: &str = "10.224.200.7";

/// An internal Service at the address.
fn sharing(index: u32, more: &[(&str, &str)]) -> Value {
    let mut service = service(index);
    let pinned = [("azure-load-balancer-internal", "true"), ("azure-load-balancer-ipv4", ADDRESS)];
    for (key, value) in pinned.iter().chain(more) {
        service["metadata"]["annotations"][format!("{PREFIX}{key}")] = json!(value);
    }
    service["spec"]["ports"][0]["port"] = json!(8_000 + index);
    service
}

fn link(lab: &Laboratory) -> Option<Value> {
    let mut all = lab.azure.resources().into_iter();
    all.find(|r| r["type"] == "Microsoft.Network/privateLinkServices")
}

/// Somebody's endpoint is connected to it.
fn connect(lab: &mut Laboratory) {
    let mut link = link(lab).expect("it is made");
    let id = link["id"].as_str().expect("it has an id").to_owned();
    link["properties"]["privateEndpointConnections"] = json!([{"name": "somebody",
        "id": format!("{id}/privateEndpointConnections/somebody"), "properties": {}}]);
    lab.azure.seed(vec![link]);
}

/// What consumers have of it.
fn consumed(lab: &Laboratory) -> [Value; 4] {
    let link = link(lab).expect("it stands");
    let inside = &link["properties"];
    [
        inside["alias"].clone(),
        inside["fqdns"].clone(),
        inside["ipConfigurations"].clone(),
        inside["privateEndpointConnections"][0]["id"].clone(),
    ]
}

#[test]
fn a_connected_endpoint_outlives_the_service_that_made_it() {
    let pools = json!({"loadBalancerBackendPoolConfigurationType": "nodeIPConfiguration"});
    for (more, killed) in [(&[][..], false), (&[("azure-pls-create", "true")][..], true)] {
        let mut lab = laboratory(&pools);
        lab.azure.seed(scale_set("vmss", 3));
        let own = [("azure-pls-create", "true"), ("azure-pls-fqdns", "a.example")];
        create(&mut lab, sharing(0, &own));
        assert!(lab.settle(DAY_MS), "{:#?}", lab.controller().report());
        create(&mut lab, sharing(1, more));
        assert!(lab.settle(DAY_MS), "{:#?}", lab.controller().report());
        connect(&mut lab);
        let before = consumed(&lab);
        lab.azure.clear_calls();
        delete(&mut lab, "default", "web-0000");
        if killed {
            lab.restart();
        }
        assert!(lab.settle(DAY_MS), "{:#?}", lab.controller().report());
        let deleted: Vec<String> = lab
            .azure
            .calls()
            .iter()
            .filter(|c| c.method == "DELETE")
            .map(|c| c.path.clone())
            .collect();
        assert_eq!(deleted, [""; 0], "nothing goes");
        assert_eq!(consumed(&lab), before, "consumers see what they saw");
        let after = link(&lab).expect("it stands");
        assert_eq!(after["tags"]["k8s-azure-owner-service"], "default/web-0001");
        delete(&mut lab, "default", "web-0001");
        assert!(lab.settle(DAY_MS), "{:#?}", lab.controller().report());
        assert_eq!(link(&lab), None, "it goes with the frontend");
    }
}
