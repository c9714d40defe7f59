//! Two clusters of one name in one subscription: neither touches what the other has, whatever its
//! Services name.

use crate::support::container::uid_of;
use crate::support::*;
use azure_emulator::{Azure, Options as AzureOptions, Switch};
use control::Options;
use explain::orphans::find;
use kube_emulator::{Ownership, Store, StoreOptions};
use serde_json::{Value, json};
use sim::Laboratory;
use std::collections::BTreeMap;

/// Long enough for Azure to be read again several times.
const WHILE_MS: u64 = 600_000;

/// NIC pools: Azure takes no Private Link Service before pools of addresses.
fn nics() -> Value {
    json!({"loadBalancerBackendPoolConfigurationType": "nodeIPConfiguration"})
}

/// The first cluster, in resource group `rg`.
fn first() -> Laboratory {
    let mut lab = laboratory(&nics());
    lab.azure.seed(scale_set("vmss", 3));
    lab
}

/// Another cluster with the same name and Services of the same names; its load balancers and
/// public IPs are in a resource group of its own.
fn second() -> Laboratory {
    let seed = 7;
    let ownership = Ownership::AppliedOnly;
    let mut store = Store::new(StoreOptions { seed, ownership, ..StoreOptions::default() });
    for index in 0..3 {
        store.create(node(index), 0).expect("a node is created");
    }
    let more = json!({"resourceGroup": "other", "securityGroupResourceGroup": "rg",
        "vnetResourceGroup": "rg", "loadBalancerBackendPoolConfigurationType": "nodeIP"});
    let azure = Azure::new(AzureOptions { defaults: Switch::Off, ..AzureOptions::default() });
    Laboratory::new(store, azure, policy(&more), Options::default())
}

fn with(mut service: Value, annotations: &[(&str, &str)]) -> Value {
    for (key, value) in annotations {
        service["metadata"]["annotations"][format!("{PREFIX}{key}")] = json!(value);
    }
    service
}

/// Internal, with a Private Link Service.
fn linked(index: u32) -> Value {
    with(service(index), &[("azure-load-balancer-internal", "true"), ("azure-pls-create", "true")])
}

/// What a cluster has in a resource group, but for the security group that both share.
fn has(azure: &Azure, group: &str) -> BTreeMap<String, Value> {
    let within = format!("/resourcegroups/{group}/");
    let pairs = azure.resources().into_iter().filter_map(|r| {
        let id = r["id"].as_str()?.to_lowercase();
        (id.contains(&within) && !id.contains("networksecuritygroups")).then_some((id, r))
    });
    pairs.collect()
}

/// Lets the second cluster act on the first one's estate.
fn act(first: &mut Laboratory, second: &mut Laboratory) {
    std::mem::swap(&mut first.azure, &mut second.azure);
    second.now_ms = second.now_ms.max(first.now_ms);
    second.settle(DAY_MS);
    second.pass(WHILE_MS);
    std::mem::swap(&mut first.azure, &mut second.azure);
}

/// Somebody is connected to the first cluster's Private Link Service.
fn connect(lab: &mut Laboratory) {
    let all = lab.azure.resources();
    let mut links =
        all.into_iter().filter(|r| r["type"] == "Microsoft.Network/privateLinkServices");
    let mut link = links.next().expect("there is a Private Link Service");
    let id = link["id"].as_str().expect("it has an id").to_owned();
    link["properties"]["privateEndpointConnections"] = json!([{"name": "somebody",
        "id": format!("{id}/privateEndpointConnections/somebody"), "properties": {}}]);
    lab.azure.seed(vec![link]);
}

/// Tenancy: a refused Service that names another cluster's resource group.
#[test]
fn nothing_of_another_cluster_of_the_same_name_is_touched() {
    let mut ours = first();
    create(&mut ours, service(0));
    create(&mut ours, linked(1));
    assert!(ours.settle(DAY_MS), "{:#?}", ours.controller().report());
    connect(&mut ours);
    ours.pass(WHILE_MS);
    let before = has(&ours.azure, "rg");
    let mut theirs = second();
    create(&mut theirs, service(0));
    create(&mut theirs, with(service(1), &[("azure-load-balancer-internal", "true")]));
    let ip = [("azure-load-balancer-resource-group", "rg"), ("azure-pip-name", "missing")];
    create(&mut theirs, with(service(2), &ip));
    let link = [
        ("azure-pls-resource-group", "rg"),
        ("azure-pls-create", "true"),
        ("azure-load-balancer-tcp-idle-timeout", "soon"),
    ];
    create(&mut theirs, with(service(4), &link));
    act(&mut ours, &mut theirs);
    assert_eq!(has(&ours.azure, "rg"), before);
    // Nor does it list any of it as left over.
    let policy = theirs.controller().policy().clone();
    let mut world = theirs.controller().world().clone();
    let read = (world.azure.public_ips.len(), world.azure.private_links.len());
    // A refused Service that has nothing asks for no links.
    assert_eq!(read, (2, 0), "the other's public IPs were read");
    assert_eq!(find(&world, &policy).list, []);
    // A Service that names the other's public IP is refused.
    let base = model::ServiceUid::new(uid_of(&ours, "web-0000")).base_name();
    let ip = format!("kubernetes-{base}");
    let stolen =
        with(service(3), &[("azure-load-balancer-resource-group", "rg"), ("azure-pip-name", &ip)]);
    create(&mut theirs, stolen);
    act(&mut ours, &mut theirs);
    assert_eq!(has(&ours.azure, "rg"), before);
    world = theirs.controller().world().clone();
    let (_, report) = plan::plan(&world, &policy);
    let uid = model::ServiceUid::new(uid_of(&theirs, "web-0003"));
    let rules: Vec<_> = report.services[&uid].findings.iter().map(|f| f.rule).collect();
    assert!(rules.contains(&"PublicIpForeign"), "{rules:?}");
    // The first cluster finds everything as it left it.
    let writes = ours.calls().0;
    assert!(ours.settle(DAY_MS));
    ours.pass(WHILE_MS);
    assert_eq!(ours.calls().0, writes);
}

/// A Service of the second cluster has its public IP in the first one's group: it is made, marked
/// with the cluster's UID, and taken away again. The first cluster leaves it.
#[test]
fn a_public_ip_in_another_group_carries_the_uid_of_its_cluster() {
    let mut ours = first();
    create(&mut ours, service(0));
    assert!(ours.settle(DAY_MS));
    let before = has(&ours.azure, "rg");
    let mut theirs = second();
    create(&mut theirs, with(service(0), &[("azure-load-balancer-resource-group", "rg")]));
    act(&mut ours, &mut theirs);
    let now = has(&ours.azure, "rg");
    let made: Vec<&Value> =
        now.iter().filter(|(id, _)| !before.contains_key(*id)).map(|(_, r)| r).collect();
    assert_eq!(made.len(), 1, "{made:#?}");
    let uid = theirs.controller().world().kubernetes.cluster_uid.clone().expect("it is known");
    assert_ne!(Some(&uid), ours.controller().world().kubernetes.cluster_uid.as_ref());
    assert_eq!(made[0]["tags"]["ballast-cluster-uid"], json!(&*uid));
    // Both have a Service default/web-0000; the first one's group is `rg`.
    let writes = ours.calls().0;
    ours.restart();
    assert!(ours.settle(DAY_MS));
    delete(&mut ours, "default", "web-0000");
    assert!(ours.settle(DAY_MS));
    let policy = ours.controller().policy().clone();
    assert_eq!(find(ours.controller().world(), &policy).list, []);
    assert!(ours.calls().0 > writes);
    let left = has(&ours.azure, "rg");
    let id = made[0]["id"].as_str().expect("it has an id").to_lowercase();
    assert!(left.contains_key(&id) && left.len() < now.len(), "{:#?}", left.keys());
    delete(&mut theirs, "default", "web-0000");
    act(&mut ours, &mut theirs);
    assert!(!has(&ours.azure, "rg").contains_key(&id), "its own cluster takes it away");
}

/// What the Go cloud provider left has no UID: it is adopted without a write, and gets the UID with
/// the next write that is due.
#[test]
fn a_takeover_writes_no_uid_of_its_own_accord() {
    let mut lab = served([with(service(0), &[("azure-load-balancer-resource-group", "pip-rg")])]);
    let made = |lab: &Laboratory| -> Value {
        let mut all = lab.azure.resources().into_iter();
        let named = |r: &Value| r["id"].as_str().is_some_and(|id| id.contains("/kubernetes-a"));
        all.find(named).expect("the public IP is there")
    };
    let mut ip = made(&lab);
    assert!(ip["tags"]["ballast-cluster-uid"].is_string());
    ip["tags"].as_object_mut().expect("it has tags").remove("ballast-cluster-uid");
    lab.azure.seed(vec![ip]);
    lab.excuse("tags", "tag ballast-cluster-uid", "what stands without gets it with another write");
    lab.restart();
    let writes = lab.calls().0;
    assert!(lab.settle(DAY_MS));
    lab.pass(WHILE_MS);
    assert_eq!(lab.calls().0, writes);
    let key = format!("{PREFIX}azure-dns-label-name");
    patch(
        &mut lab,
        "services",
        "default",
        "web-0000",
        json!({"metadata": {"annotations": {
        key: "web"}}}),
    );
    assert!(lab.settle(DAY_MS));
    assert!(made(&lab)["tags"]["ballast-cluster-uid"].is_string());
    delete(&mut lab, "default", "web-0000");
    assert!(lab.settle(DAY_MS));
    assert_eq!(leftovers(&lab), Vec::<String>::new());
}
