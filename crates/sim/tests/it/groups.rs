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
