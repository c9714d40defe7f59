//! One namespace against another: what a tenant may write there changes nothing for its neighbours.

use crate::support::container::*;
use crate::support::{create, delete, laboratory, patch_part, resource, service};
use azure_emulator::Switch;
use kube_emulator::{ObjectRef, Part};
use serde_json::{Value, json};
use sim::Laboratory;

fn create_namespaces(lab: &mut Laboratory, names: &[&str]) {
    for name in names {
        create(lab, json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}));
    }
}

/// A slice of namespace `evil`, as its tenant writes it.
fn strange_slice(lab: &mut Laboratory, name: &str, labels: Value, owners: Value, to: Vec<Value>) {
    create(
        lab,
        json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": {"name": name, "namespace": "evil", "labels": labels,
            "ownerReferences": owners},
        "addressType": "IPv4", "endpoints": to, "ports": [{"port": 8080, "protocol": "TCP"}]}),
    );
}

fn owner(name: &str, uid: &str) -> Value {
    json!([{"apiVersion": "v1", "kind": "Service", "name": name, "uid": uid}])
}

fn label(name: &str) -> Value {
    json!({"kubernetes.io/service-name": name})
}

fn strange_web() -> Value {
    let mut service = web(9);
    service["metadata"]["namespace"] = json!("evil");
    service
}

fn strange_uid(lab: &Laboratory) -> String {
    let all = lab.kubernetes.list("services", None);
    let own = all.iter().find(|s| s["metadata"]["namespace"] == "evil").expect("it is there");
    own["metadata"]["uid"].as_str().expect("a text").to_owned()
}

/// The findings of the other namespace's Service.
fn found(lab: &Laboratory) -> Vec<&'static str> {
    let report = lab.controller().report();
    let mut services = report.services.values();
    let own = services.find(|s| &*s.name.namespace == "evil").expect("it is there");
    own.findings.iter().map(|finding| finding.rule).collect()
}

/// Two Services of `default` with Pods, and one of `evil`.
fn tenants() -> Laboratory {
    let mut lab = container_laboratory(4);
    create(&mut lab, web(0));
    create(&mut lab, web(1));
    set_slice(&mut lab, &web_name(0), 0, ready(&[(1, 0), (2, 1)]));
    set_slice(&mut lab, &web_name(1), 0, ready(&[(3, 2)]));
    create_namespaces(&mut lab, &["evil"]);
    create(&mut lab, strange_web());
    rest(&mut lab);
    lab
}

#[test]
fn slices_of_another_namespace_reach_no_service_and_no_pod() {
    let mut lab = tenants();
    let before = table(&lab);
    let (victim, own) = (uid_of(&lab, &web_name(0)), strange_uid(&lab));
    let name = web_name(9);
    // Its own address among the victim's backends, by UID and by label.
    strange_slice(&mut lab, "by-uid", json!({}), owner("web", &victim), ready(&[(66, 3)]));
    strange_slice(&mut lab, "by-label", label(&web_name(0)), json!([]), ready(&[(67, 3)]));
    // The victim's Pods among its own backends, at another node and at theirs.
    let pods = ready(&[(1, 3), (2, 1), (3, 3)]);
    strange_slice(&mut lab, "pods", label(&name), owner(&name, &own), pods);
    // Addresses that are no Pod's, and one that it says itself is another namespace's.
    let mut odd: Vec<Value> =
        ["127.0.0.1", "169.254.169.254", "168.63.129.16"].map(|a| endpoint(a, 3, true)).into();
    let mut foreign = endpoint(&pod_ip(68), 3, true);
    foreign["targetRef"] = json!({"kind": "Pod", "namespace": "default", "name": "web-0"});
    odd.push(foreign);
    strange_slice(&mut lab, "odd", label(&name), json!([]), odd);
    rest(&mut lab);
    assert_eq!(table(&lab), before);
    let rules =
        ["ServiceGatewayAddressTaken", "ServiceGatewayInvalidAddress", "ServiceGatewayForeignPod"];
    assert_eq!(found(&lab), rules);
    // A Pod is not ready for a while, and the process starts anew.
    let mut pods = ready(&[(1, 0), (2, 1)]);
    pods[0]["conditions"]["ready"] = json!(false);
    set_slice(&mut lab, &web_name(0), 0, pods);
    rest(&mut lab);
    assert_eq!(table(&lab).len(), before.len() - 1, "nobody has its address meanwhile");
    set_slice(&mut lab, &web_name(0), 0, ready(&[(1, 0), (2, 1)]));
    rest(&mut lab);
    lab.restart();
    rest(&mut lab);
    assert_eq!(table(&lab), before);
    // What the victim no longer has is free, the Service's last slice included.
    delete_slice(&mut lab, &web_name(1), 0);
    rest(&mut lab);
    assert!(table(&lab).contains_key(&(location(3), pod_ip(3))), "{:?}", table(&lab));
    delete(&mut lab, "default", &web_name(0));
    rest(&mut lab);
    assert!(table(&lab).contains_key(&(location(3), pod_ip(1))), "{:?}", table(&lab));
}

/// The other namespace's Service is the older one: while the Pod is not ready nothing but the
/// ledger says whose its address is.
#[test]
fn a_restart_gives_an_address_to_no_other_namespace() {
    let mut lab = container_laboratory(4);
    create_namespaces(&mut lab, &["evil"]);
    create(&mut lab, strange_web());
    create(&mut lab, web(0));
    set_slice(&mut lab, &web_name(0), 0, ready(&[(1, 0)]));
    rest(&mut lab);
    let ledger = ObjectRef::new("configmaps", "kube-system", "ballast-ledger");
    assert!(lab.kubernetes.get(ledger).is_err(), "it is not needed");
    strange_slice(&mut lab, "taking", label(&web_name(9)), json!([]), ready(&[(1, 3)]));
    rest(&mut lab);
    let held = |lab: &Laboratory| -> Vec<String> {
        let rows = table(lab).into_keys().filter(|(_, address)| *address == pod_ip(1));
        rows.map(|(location, _)| location).collect()
    };
    assert_eq!(held(&lab), [location(0)]);
    let noted = lab.kubernetes.get(ledger).expect("it is made")["data"]["contested"].clone();
    assert_eq!(noted, json!(format!("{} default\n", pod_ip(1))));
    let mut pods = ready(&[(1, 0)]);
    pods[0]["conditions"]["ready"] = json!(false);
    set_slice(&mut lab, &web_name(0), 0, pods);
    rest(&mut lab);
    assert_eq!(held(&lab), Vec::<String>::new());
    lab.restart();
    rest(&mut lab);
    assert_eq!(held(&lab), Vec::<String>::new());
    set_slice(&mut lab, &web_name(0), 0, ready(&[(1, 0)]));
    rest(&mut lab);
    assert_eq!(held(&lab), [location(0)]);
}

/// Service number `index` of a namespace.
fn service_in(namespace: &str, index: u32) -> Value {
    let mut service = service(index);
    service["metadata"]["namespace"] = json!(namespace);
    service
}

/// How many Services of a namespace show an address, and how many do not.
fn addressed_in(lab: &Laboratory, namespace: &str) -> (usize, usize) {
    let all = lab.kubernetes.list("services", None);
    let own = all.iter().filter(|s| s["metadata"]["namespace"] == namespace);
    let (with, without): (Vec<_>, Vec<_>) =
        own.partition(|s| s["status"]["loadBalancer"]["ingress"][0]["ip"].is_string());
    (with.len(), without.len())
}

/// What Services of a namespace are refused for.
fn refusals(lab: &Laboratory, namespace: &str) -> Vec<(&'static str, String)> {
    let report = lab.controller().report();
    let own = report.services.values().filter(|s| &*s.name.namespace == namespace);
    own.flat_map(|s| &s.findings).map(|f| (f.rule, f.message.to_string())).collect()
}

/// The budget is used up by one namespace's Services: those of another come next all the same.
#[test]
fn many_services_of_one_namespace_do_not_hold_up_anothers() {
    let names = [("kubernetes", "vmss"), ("second", "other"), ("third", "another")];
    let balancers = names.map(|(name, set)| json!({"name": name, "primaryVMSet": set}));
    let mut lab = laboratory(&json!({"multipleStandardLoadBalancerConfigurations": balancers}));
    lab.azure.options_mut().throttle = Switch::On;
    lab.azure.options_mut().log_bodies = Switch::Off;
    lab.azure.options_mut().lro_ms = 1_000;
    lab.azure_latency_ms = 100;
    assert!(lab.settle(DAY_MS));
    create_namespaces(&mut lab, &["evil", "one", "two"]);
    (0..400).for_each(|n| create(&mut lab, service_in("evil", n)));
    lab.pass(2_000);
    ["one", "two"].iter().for_each(|name| {
        (400..402).for_each(|n| create(&mut lab, service_in(name, n)));
    });
    let neighbours = bases(&lab, |namespace| matches!(namespace, "one" | "two"));
    assert_eq!(neighbours.len(), 4);
    lab.azure.clear_calls();
    let is_theirs = |path: &str| neighbours.iter().any(|base| path.contains(base.as_str()));
    let order = loop {
        lab.pass(1_000);
        let puts = lab.azure.calls().iter().filter(|c| c.method == "PUT");
        let ips = puts.filter(|c| c.path.contains("/publicIPAddresses/") && c.status < 300);
        let order: Vec<bool> = ips.map(|call| is_theirs(&call.path)).collect();
        if order.len() >= 60 {
            break order;
        }
    };
    let last = order.iter().rposition(|theirs| *theirs).expect("they are among the first");
    assert_eq!(order.iter().filter(|theirs| **theirs).count(), 4, "{order:?}");
    assert!(last < 30, "{last} public IPs came first: {order:?}");
}

/// Base names of Services of some namespaces.
fn bases(lab: &Laboratory, of: impl Fn(&str) -> bool) -> Vec<String> {
    let all = lab.kubernetes.list("services", None);
    let own = all.iter().filter(|s| of(s["metadata"]["namespace"].as_str().unwrap_or("")));
    let uids = own.filter_map(|s| s["metadata"]["uid"].as_str());
    uids.map(|uid| model::ServiceUid::new(uid).base_name()).collect()
}

/// One Service asks for nearly all source prefixes of the security group, before others come and
/// while they do.
#[test]
fn one_services_ranges_leave_room_for_others() {
    let mut lab = laboratory(&json!({}));
    create_namespaces(&mut lab, &["evil", "team"]);
    let ranges: Vec<String> = (0..3_999_u32)
        .map(|n| format!("{}/32", std::net::Ipv4Addr::from(0x0B00_0000 + 2 * n)))
        .collect();
    let mut greedy = service_in("evil", 0);
    greedy["spec"]["loadBalancerSourceRanges"] = json!(ranges);
    create(&mut lab, greedy);
    lab.is_refused("evil/web-0000", "its ranges take more than its namespace's share");
    assert!(lab.settle(DAY_MS));
    let [(_, alone)] = &refusals(&lab, "evil")[..] else { panic!("it is refused once") };
    assert!(alone.contains("less than 2000 source prefixes, evil has 0"), "{alone}");
    for n in 1..6 {
        let mut neighbour = service_in("team", n);
        let own: Vec<String> = (0..50).map(|k| format!("10.9.{n}.{}/32", 2 * k)).collect();
        neighbour["spec"]["loadBalancerSourceRanges"] = json!(own);
        create(&mut lab, neighbour);
    }
    assert!(lab.settle(DAY_MS));
    assert_eq!((addressed_in(&lab, "team"), refusals(&lab, "team")), ((5, 0), vec![]));
    let [(rule, allowed)] = &refusals(&lab, "evil")[..] else { panic!("it is refused once") };
    assert_eq!(*rule, "SecurityRuleLimit");
    assert!(allowed.contains("namespaces with most source prefixes: team 250"), "{allowed}");
}

/// An egress Pod of namespace `evil`; a forged one says itself that it is ours.
fn strange_pod(name: &str, address: &str, forged: bool) -> Value {
    let mut pod = egress_pod(name, "team-a", &[address], 2);
    pod["metadata"]["namespace"] = json!("evil");
    if forged {
        pod["metadata"]["finalizers"] = json!(["servicegateway.azure.com/pod-cleanup"]);
        pod["metadata"]["annotations"] = json!({"ballast.dev/egress-gateways": "team-a"});
    }
    pod
}

fn create_strange(lab: &mut Laboratory, pod: Value) {
    let name = pod["metadata"]["name"].as_str().expect("it has a name").to_owned();
    let status = json!({"status": pod["status"]});
    create(lab, pod);
    patch_part(lab, ObjectRef::new("pods", "evil", &name), Part::Status, status);
}

#[test]
fn no_pod_leaves_with_the_address_of_another_namespace() {
    let mut lab = container_laboratory(4);
    create_namespaces(&mut lab, &["evil"]);
    create_pod(&mut lab, egress_pod("a", "team-a", &["10.99.0.1"], 1));
    rest(&mut lab);
    let before = table(&lab);
    create_strange(&mut lab, strange_pod("0", "10.99.0.7", false));
    create_strange(&mut lab, strange_pod("1", "10.99.0.8", true));
    rest(&mut lab);
    assert_eq!(table(&lab), before);
    let pods = &lab.controller().report().pods;
    let rules: Vec<_> = pods.values().flatten().map(|finding| finding.rule).collect();
    assert_eq!(rules, ["ServiceGatewayEgressNameHeld"; 2]);
    // The holder goes, and so does what it had: its public IP is made anew for the other.
    let address = |lab: &Laboratory| {
        resource(lab, "publicIPAddresses/team-a-pip")["properties"]["ipAddress"].clone()
    };
    let old = address(&lab);
    remove(&mut lab, "pods", "default", "a");
    rest(&mut lab);
    assert_ne!(old, address(&lab));
    assert_eq!(table(&lab).len(), 2);
}
