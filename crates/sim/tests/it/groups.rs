//! Public IPs in a resource group that only a Service names.

use crate::support::container::refusing;
use crate::support::*;
use azure_emulator::Request;
use serde_json::json;

const GROUP_KEY: &str = "service.beta.kubernetes.io/azure-load-balancer-resource-group";

#[test]
fn a_service_that_goes_leaves_no_public_ip_in_the_group_it_names() {
    let mut lab = laboratory(&json!({}));
    create(&mut lab, annotated(0, json!({GROUP_KEY: "pip-rg"})));
    assert!(lab.settle(100_000));
    let there = |lab: &sim::Laboratory| {
        let all = lab.azure.resources();
        let ids = all.iter().filter_map(|r| r["id"].as_str().map(str::to_lowercase));
        ids.filter(|id| id.contains("/pip-rg/") && id.contains("/kubernetes-")).count()
    };
    assert_eq!(there(&lab), 1);
    // Its frontend has gone, its public IP has not, and the process starts anew.
    delete(&mut lab, "default", "web-0000");
    let balancer = network("loadBalancers/kubernetes");
    lab.azure.handle(Request::new("DELETE", &balancer), lab.now_ms);
    lab.restart();
    assert!(lab.settle(200_000), "{:#?}", lab.controller().report());
    assert_eq!(there(&lab), 0);
    let services: Vec<_> = lab.kubernetes.list("services", None);
    let left = services.iter().filter(|s| s["metadata"]["name"] != json!("kubernetes"));
    assert_eq!(left.count(), 0);
}

/// One Service names a resource group that may not be read. After a restart the others go as soon
/// as what the former process wrote shows.
#[test]
fn a_group_that_cannot_be_read_holds_nobody_elses_departure_up() {
    let mut lab = laboratory(&json!({}));
    lab.azure.add_fault(
        refusing(403, "AuthorizationFailed", "GET", "/secret-rg/.*publicIPAddresses$").always(),
    );
    create(&mut lab, service(0));
    create(&mut lab, annotated(1, json!({GROUP_KEY: "secret-rg"})));
    lab.pass(60_000);
    assert_eq!(addressed(&lab), (1, 1));
    lab.restart();
    lab.pass(5_000);
    delete(&mut lab, "default", "web-0000");
    lab.pass(60_000);
    let services = lab.kubernetes.list("services", None);
    assert!(services.iter().all(|s| s["metadata"]["name"] != "web-0000"), "it waits for the other");
}

/// Azure answers once that the cluster's own group is not there, to a process that has just begun
/// and knows nothing else.
#[test]
fn a_group_that_is_not_found_once_ends_nothing_that_stands_in_it() {
    let mut lab = served([service(0), service(1)]);
    delete(&mut lab, "default", "web-0000");
    let lists = ["loadBalancers", "publicIPAddresses", "privateLinkServices"];
    for list in lists {
        let once = refusing(404, "ResourceGroupNotFound", "GET", &format!("/{list}$"));
        lab.azure.add_fault(once);
    }
    lab.azure.clear_calls();
    lab.restart();
    let base = base_of(&lab, "web-0000");
    let settled = lab.settle_watched(200_000, &mut |lab| {
        let there = object(lab, "services", "default", "web-0000").is_some();
        assert!(there || !leftovers(lab).concat().contains(&base), "it went before what it had");
    });
    assert!(settled, "{:#?}", lab.controller().report());
    let refused = lab.azure.calls().iter().filter(|call| call.status == 404 && !call.is_write());
    assert!(refused.count() >= 2, "the fault befell no list");
    assert_eq!(addressed(&lab), (1, 0));
    let made = lab.azure.calls().iter().filter(|call| call.is_write() && call.status == 201);
    assert_eq!(made.count(), 0, "nothing is made anew");
}
