//! Promises about single changes, with exact numbers of calls.

use crate::support::*;
use azure_emulator::Switch;
use serde_json::{Value, json};
use sim::Laboratory;

const LIMIT_MS: u64 = 1_000_000;
const IP_TAGS: &str = "service.beta.kubernetes.io/azure-pip-ip-tags";

fn settled(lab: &mut Laboratory) {
    assert!(lab.settle(LIMIT_MS), "{:#?}", lab.controller().report());
}

fn kinds(lab: &Laboratory) -> Vec<String> {
    // An address that was bound since it was read has another ETag: Azure refuses that write, and
    // it is made again on what is there.
    let writes = lab.azure.calls().iter().filter(|c| c.is_write() && c.status != 412);
    let kind = |path: &str| {
        let (_, rest) = path.rsplit_once("/providers/").expect("it is a resource");
        rest.split('/').nth(1).unwrap_or("").to_owned()
    };
    writes.map(|c| format!("{} {}", c.method, kind(&c.path))).collect()
}

#[test]
fn two_hundred_internal_services_created_together() {
    let mut lab = laboratory(&json!({}));
    settled(&mut lab);
    lab.azure.clear_calls();
    (0..200).for_each(|n| create(&mut lab, annotated(n, json!({INTERNAL: "true"}))));
    settled(&mut lab);
    assert_eq!(addressed(&lab), (200, 0));
    assert_eq!(kinds(&lab), ["PUT loadBalancers"]);
}

#[test]
fn one_instance_more_among_a_hundred() {
    let mut lab = laboratory(&json!({
        "loadBalancerBackendPoolConfigurationType": "nodeIPConfiguration"
    }));
    (3..100).for_each(|n| create(&mut lab, node(n)));
    lab.azure.seed(scale_set("vmss", 100));
    (0..50).for_each(|n| create(&mut lab, service(n)));
    settled(&mut lab);
    assert_eq!(addressed(&lab), (50, 0));
    lab.azure.clear_calls();
    let machine = scale_set("vmss", 101).pop().expect("the new machine");
    lab.azure.seed(vec![machine]);
    create(&mut lab, node(100));
    settled(&mut lab);
    let writes: Vec<&str> =
        lab.azure.calls().iter().filter(|c| c.is_write()).map(|c| &*c.path).collect();
    assert_eq!(writes.len(), 1, "the model has not changed: {writes:?}");
    assert!(writes[0].ends_with("/virtualMachineScaleSets/vmss/virtualMachines/100"));
}

fn address(lab: &Laboratory, name: &str) -> (Value, Value) {
    let service = object(lab, "services", "default", name).expect("it is there");
    let address = service["status"]["loadBalancer"]["ingress"][0]["ip"].clone();
    let all = lab.azure.resources();
    let ip = all.iter().find(|r| r["properties"]["ipAddress"] == address).cloned();
    (address, ip.unwrap_or_default()["properties"]["ipTags"].clone())
}

#[test]
fn ip_tags_change_with_the_address_unless_they_may_be_written() {
    for (mutation, writes) in [
        (
            false,
            &[
                "PUT networkSecurityGroups",
                "PUT loadBalancers",
                "DELETE publicIPAddresses",
                "PUT publicIPAddresses",
                "PUT loadBalancers",
                "PUT networkSecurityGroups",
            ][..],
        ),
        (true, &["PUT publicIPAddresses"][..]),
    ] {
        let mut lab = laboratory(&json!({"enableIPTagMutationForExistingPublicIP": mutation}));
        let for_life = if mutation { Switch::Off } else { Switch::On };
        lab.azure.options_mut().ip_tags_for_life = for_life;
        create(&mut lab, service(0));
        create(&mut lab, service(1));
        settled(&mut lab);
        let (before, _) = address(&lab, "web-0001");
        let (other, _) = address(&lab, "web-0000");
        lab.azure.clear_calls();
        let tags = json!({"metadata": {"annotations": {IP_TAGS: "RoutingPreference=Internet"}}});
        patch(&mut lab, "services", "default", "web-0001", tags);
        settled(&mut lab);
        assert_eq!(kinds(&lab), writes);
        let (after, tags) = address(&lab, "web-0001");
        assert_eq!(tags, json!([{"ipTagType": "RoutingPreference", "tag": "Internet"}]));
        assert_eq!(before == after, mutation);
        assert_eq!(address(&lab, "web-0000").0, other, "nobody else is touched");
        lab.azure.clear_calls();
        lab.restart();
        settled(&mut lab);
        assert_eq!(lab.calls().0, 0);
    }
}

#[test]
fn ip_tags_cut_short_come_to_the_same_end() {
    for moment in 0..10u64 {
        let mut lab = laboratory(&json!({}));
        lab.azure.options_mut().ip_tags_for_life = Switch::On;
        create(&mut lab, service(0));
        create(&mut lab, service(1));
        settled(&mut lab);
        lab.azure_latency_ms = 20;
        lab.azure.options_mut().lro_ms = 50;
        let tags = json!({"metadata": {"annotations": {IP_TAGS: "RoutingPreference=Internet"}}});
        patch(&mut lab, "services", "default", "web-0001", tags);
        lab.pass(moment * 73);
        lab.restart();
        settled(&mut lab);
        assert_eq!(addressed(&lab), (2, 0), "moment {moment}");
        let (_, tags) = address(&lab, "web-0001");
        assert_eq!(tags[0]["tag"], "Internet", "moment {moment}");
        (0..2).for_each(|n| delete(&mut lab, "default", &format!("web-{n:04}")));
        settled(&mut lab);
        assert_eq!(leftovers(&lab), Vec::<String>::new(), "moment {moment}");
    }
}

#[test]
fn a_private_link_service_goes_when_its_annotation_went_unseen() {
    let create_link = "service.beta.kubernetes.io/azure-pls-create";
    let nics = json!({"loadBalancerBackendPoolConfigurationType": "nodeIPConfiguration"});
    let mut lab = laboratory(&nics);
    create(&mut lab, annotated(0, json!({INTERNAL: "true", create_link: "true"})));
    settled(&mut lab);
    let links = |lab: &Laboratory| {
        let all = lab.azure.resources().into_iter();
        all.filter(|r| r["type"] == "Microsoft.Network/privateLinkServices").count()
    };
    assert_eq!(links(&lab), 1);
    let off = json!({"metadata": {"annotations": {create_link: null}}});
    patch(&mut lab, "services", "default", "web-0000", off);
    lab.restart();
    settled(&mut lab);
    assert_eq!(links(&lab), 0);
    assert_eq!(addressed(&lab), (1, 0));
}

#[test]
fn without_floating_ip_only_the_nodes_of_its_load_balancer_are_opened() {
    let mut lab = pool_laboratory();
    create(&mut lab, pool_node(3));
    let off = "service.beta.kubernetes.io/azure-disable-load-balancer-floating-ip";
    create(&mut lab, of_pool(annotated(0, json!({off: "true"}))));
    create(&mut lab, annotated(1, json!({})));
    settled(&mut lab);
    let group = lab.azure.resource(&network("networkSecurityGroups/nsg")).expect("it is there");
    let rules = group["properties"]["securityRules"].as_array().expect("a list").clone();
    let nodes = |rule: &&Value| {
        rule["properties"]["destinationPortRanges"][0].as_str().is_some_and(|p| p.len() == 5)
    };
    let rule = rules.iter().find(nodes).expect("a rule for node ports");
    assert_eq!(rule["properties"]["destinationAddressPrefix"], "10.224.0.7", "{rule}");
}

#[test]
fn the_set_of_a_new_vm_is_looked_up_at_once() {
    let mut lab = laboratory(&json!({"enableMultipleStandardLoadBalancers": true}));
    let compute = format!("{GROUP}/providers/Microsoft.Compute");
    let machine = |n: u32| {
        json!({"id": format!("{compute}/virtualMachines/alone{n}"), "properties": {
            "availabilitySet": {"id": format!("{compute}/availabilitySets/alone")},
            "osProfile": {"computerName": format!("alone{n}")}}})
    };
    let member = |n: u32| {
        let mut node = node(10 + n);
        node["metadata"]["name"] = json!(format!("alone{n}"));
        let id = format!("azure://{compute}/virtualMachines/alone{n}");
        node["spec"]["providerID"] = json!(id);
        node
    };
    lab.azure.seed(vec![machine(0)]);
    create(&mut lab, member(0));
    let mode = "service.beta.kubernetes.io/azure-load-balancer-mode";
    create(&mut lab, annotated(0, json!({mode: "alone"})));
    settled(&mut lab);
    let members = |lab: &Laboratory| {
        let balancer = lab.azure.resource(&network("loadBalancers/alone")).expect("it is there");
        let pool = &balancer["properties"]["backendAddressPools"][0]["properties"];
        pool["loadBalancerBackendAddresses"].as_array().map_or(0, Vec::len)
    };
    assert_eq!(members(&lab), 1);
    lab.azure.seed(vec![machine(1)]);
    create(&mut lab, member(1));
    lab.pass(1_000);
    assert_eq!(members(&lab), 2, "not only after the drift check");
}
