//! Public IPs in a resource group that only a Service names.

use crate::support::*;
use azure_emulator::Request;
use serde_json::json;

#[test]
fn a_service_that_goes_leaves_no_public_ip_in_the_group_it_names() {
    let mut lab = laboratory(&json!({}));
    let mut service = service(0);
    let key = "service.beta.kubernetes.io/azure-load-balancer-resource-group";
    service["metadata"]["annotations"] = json!({key: "pip-rg"});
    create(&mut lab, service);
    assert!(lab.settle(100_000));
    let there = |lab: &sim::Laboratory| {
        let all = lab.azure.resources();
        let ids = all.iter().filter_map(|r| r["id"].as_str().map(str::to_lowercase));
        ids.filter(|id| id.contains("/pip-rg/") && id.contains("/kubernetes-")).count()
    };
    assert_eq!(there(&lab), 1);
    // Its frontend has gone, its public IP has not, and the process starts anew.
    delete(&mut lab, "default", "web-0000");
    let now = lab.now_ms;
    lab.azure.handle(Request::new("DELETE", &network("loadBalancers/kubernetes")), now);
    lab.restart();
    assert!(lab.settle(200_000), "{:#?}", lab.controller().report());
    assert_eq!(there(&lab), 0);
    let services: Vec<_> = lab.kubernetes.list("services", None);
    let left = services.iter().filter(|s| s["metadata"]["name"] != json!("kubernetes"));
    assert_eq!(left.count(), 0);
}
