//! A Private Link Service lives as long as its frontend: with an endpoint connected it survives the
//! deletion of the Service that made it, while another one shares the frontend.

use crate::support::*;
use explain::orphans::find;
use kube_emulator::ObjectRef;
use serde_json::{Value, json};
use sim::Laboratory;

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

/// Somebody's endpoint is connected to it, in this state.
fn connect(lab: &mut Laboratory, state: &str) {
    let mut link = link(lab).expect("it is made");
    let id = link["id"].as_str().expect("it has an id").to_owned();
    link["properties"]["privateEndpointConnections"] = json!([{"name": "somebody",
        "id": format!("{id}/privateEndpointConnections/somebody"), "properties": {
            "privateLinkServiceConnectionState": {"status": state}}}]);
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
        connect(&mut lab, "Approved");
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
        assert_eq!(consumed(&lab), before, "nobody has agreed yet");
        agree(&mut lab, "web-0001");
        assert!(lab.settle(DAY_MS), "{:#?}", lab.controller().report());
        assert_eq!(link(&lab), None, "it goes with the frontend");
    }
}

/// The owner agrees that private endpoints are disconnected.
fn agree(lab: &mut Laboratory, name: &str) {
    let agrees = json!({"metadata": {"annotations": {
        "ballast.dev/disconnect-private-endpoints": "true"}}});
    patch(lab, "services", "default", name, agrees);
}

fn service_named(lab: &Laboratory, name: &str) -> Option<Value> {
    lab.kubernetes
        .get(ObjectRef::new("services", "default", name))
        .ok()
        .map(|service| Value::clone(&service))
}

/// What the condition says of the Service.
fn reason(lab: &Laboratory) -> Value {
    let service = service_named(lab, "web-0000").expect("it is there");
    service["status"]["conditions"][0]["reason"].clone()
}

#[test]
fn what_others_are_connected_to_goes_when_its_owner_agrees_or_they_leave() {
    let pools = json!({"loadBalancerBackendPoolConfigurationType": "nodeIPConfiguration"});
    for (withdrawn, agrees) in [(false, true), (false, false), (true, true), (true, false)] {
        let mut lab = laboratory(&pools);
        lab.azure.seed(scale_set("vmss", 3));
        create(&mut lab, sharing(0, &[("azure-pls-create", "true")]));
        assert!(lab.settle(DAY_MS), "{:#?}", lab.controller().report());
        connect(&mut lab, "Approved");
        let before = consumed(&lab);
        if withdrawn {
            let none = json!({"metadata": {"annotations": {
                format!("{PREFIX}azure-pls-create"): null}}});
            patch(&mut lab, "services", "default", "web-0000", none);
        } else {
            delete(&mut lab, "default", "web-0000");
        }
        lab.restart();
        assert!(lab.settle(DAY_MS), "{:#?}", lab.controller().report());
        assert_eq!(consumed(&lab), before);
        assert_eq!(reason(&lab), "PrivateLinkConnected");
        if agrees {
            agree(&mut lab, "web-0000");
        } else {
            connect(&mut lab, "Disconnected");
            lab.restart();
        }
        assert!(lab.settle(DAY_MS), "{:#?}", lab.controller().report());
        assert_eq!(link(&lab), None, "{withdrawn} {agrees}");
        assert_eq!(service_named(&lab, "web-0000").is_some(), withdrawn);
    }
}

/// The Service that made it was stripped of its finalizers, so that no owner can agree any more: it
/// stays, with all that stands behind it, for an operator to decide on.
#[test]
fn a_connected_endpoint_outlives_a_service_that_was_stripped_of_its_finalizers() {
    let pools = json!({"loadBalancerBackendPoolConfigurationType": "nodeIPConfiguration"});
    for asked_before in [false, true] {
        let mut lab = laboratory(&pools);
        lab.azure.seed(scale_set("vmss", 3));
        create(&mut lab, sharing(0, &[("azure-pls-create", "true")]));
        create(&mut lab, service(1));
        assert!(lab.settle(DAY_MS), "{:#?}", lab.controller().report());
        let base = base_of(&lab, "web-0000");
        connect(&mut lab, "Approved");
        lab.restart();
        assert!(lab.settle(DAY_MS), "{:#?}", lab.controller().report());
        let before = consumed(&lab);
        if asked_before {
            delete(&mut lab, "default", "web-0000");
            assert!(lab.settle(DAY_MS), "{:#?}", lab.controller().report());
        }
        let stripped = json!({"metadata": {"finalizers": null}});
        patch(&mut lab, "services", "default", "web-0000", stripped);
        if !asked_before {
            delete(&mut lab, "default", "web-0000");
        }
        assert!(lab.settle(DAY_MS), "{:#?}", lab.controller().report());
        assert_eq!(service_named(&lab, "web-0000"), None);
        let parts = |lab: &Laboratory| {
            let all = lab.azure.resources().into_iter();
            let balancers = all.filter(|r| r["type"] == "Microsoft.Network/loadBalancers");
            balancers.filter(|r| r.to_string().contains(&base)).count()
        };
        assert_eq!((consumed(&lab), parts(&lab)), (before.clone(), 1), "{asked_before}");
        // Nor does a process take it away that never saw the Service.
        lab.restart();
        assert!(lab.settle(DAY_MS), "{:#?}", lab.controller().report());
        assert_eq!((consumed(&lab), parts(&lab)), (before, 1), "{asked_before}");
        let policy = lab.config().clone();
        let found = find(&lab.read_under(&policy), &policy);
        assert!(found.list.iter().any(|orphan| orphan.kind == "Private Link Service"));
    }
}
