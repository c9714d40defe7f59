//! What others change in our parts of Azure is noticed within the check interval, shown before it
//! is repaired, and with `driftPolicy: report` only shown.

use crate::support::container::*;
use crate::support::*;
use azure_emulator::{FaultKind, Switch};
use control::{DriftOutcome, NoticeKind};
use serde_json::{Value, json};
use sim::Laboratory;

/// Reads of one interval of a settled cluster: load balancers, public IPs, Private Link Services,
/// the security group.
const LISTS: usize = 4;

fn two(policy: &str) -> Laboratory {
    with_two(laboratory(&json!({"driftPolicy": policy})))
}

fn with_two(mut lab: Laboratory) -> Laboratory {
    create(&mut lab, service(0));
    create(&mut lab, service(1));
    assert!(lab.settle(DAY_MS));
    // One quiet interval: the lists confirm what was written.
    lab.pass(INTERVAL_MS);
    assert!(lab.settle(DAY_MS));
    lab.azure.clear_calls();
    lab.notices.clear();
    lab
}

fn balancer(lab: &Laboratory) -> Value {
    resource(lab, "loadBalancers/kubernetes")
}

fn names(of: &Value, collection: &str) -> Vec<String> {
    let list = of["properties"][collection].as_array().cloned().unwrap_or_default();
    list.iter().map(|item| item["name"].as_str().unwrap_or_default().to_owned()).collect()
}

fn remove_rule(lab: &mut Laboratory, rule: &str) {
    edit(lab, "loadBalancers/kubernetes", |body| {
        let rules = body["properties"]["loadBalancingRules"].as_array_mut().expect("rules");
        rules.retain(|r| r["name"] != rule);
    });
}

fn said(lab: &Laboratory) -> Vec<String> {
    let drifted = lab.notices.iter().filter(|n| n.kind == NoticeKind::Drifted);
    drifted.map(|n| n.text.clone()).collect()
}

fn events(lab: &Laboratory) -> Vec<(String, String)> {
    let events = lab.kubernetes.list("events", None);
    let drift = events.iter().filter(|e| e["reason"] == "AzureDrift");
    let text = |e: &Value, at: &str| e.pointer(at).and_then(Value::as_str).unwrap_or("").to_owned();
    drift.map(|e| (text(e, "/involvedObject/name"), text(e, "/message"))).collect()
}

#[test]
fn a_rule_deleted_by_hand_is_back_within_an_interval_and_shown_before() {
    let mut lab = two("repair");
    let rule = format!("{}-TCP-80", base_of(&lab, "web-0001"));
    remove_rule(&mut lab, &rule);
    lab.pass(INTERVAL_MS - 1_000);
    assert_eq!(lab.calls(), (0, 0), "nothing is read before the interval is over");
    lab.pass(1_000);
    assert!(names(&balancer(&lab), "loadBalancingRules").contains(&rule));
    // The write, and the load balancer read back after it.
    assert_eq!(lab.calls(), (1, LISTS + 1));
    let shown = lab.notices.iter().position(|n| n.kind == NoticeKind::Drifted).expect("shown");
    let sent = lab.notices.iter().position(|n| n.kind == NoticeKind::Sent).expect("sent");
    assert!(shown < sent, "it is shown before it is repaired");
    assert_eq!(
        said(&lab),
        [
            format!(
                "another client changed loadBalancers/kubernetes: rule {rule} is gone; \
                 it is written back (driftPolicy is repair)"
            ),
            format!("loadBalancers/kubernetes: drift repaired: rule {rule}"),
        ]
    );
    let events = events(&lab);
    assert_eq!(events.len(), 1, "{events:?}");
    assert_eq!(events[0].0, "web-0001", "the Service it concerns, and no other");
    assert!(events[0].1.contains(&rule));
    let controller = lab.controller();
    assert_eq!((controller.drift_fields(), controller.drift_noticed()), (0, 1));
    let records: Vec<_> = controller.drift().collect();
    assert_eq!(records.len(), 1);
    assert_eq!(records[0].outcome, DriftOutcome::Over);
    lab.azure.clear_calls();
    lab.pass(INTERVAL_MS);
    assert_eq!(lab.calls(), (0, LISTS), "and then all is quiet");
}

#[test]
fn with_report_it_is_only_shown_and_everything_else_goes_on() {
    let mut lab = two("report");
    let rule = format!("{}-TCP-80", base_of(&lab, "web-0001"));
    remove_rule(&mut lab, &rule);
    lab.pass(3 * INTERVAL_MS);
    assert_eq!(lab.calls(), (0, 3 * LISTS), "nothing is written");
    assert!(lab.controller().is_settled());
    assert_eq!(said(&lab).len(), 1, "it is shown once: {:?}", said(&lab));
    assert_eq!(events(&lab).len(), 1);
    assert_eq!(lab.controller().drift_fields(), 1);
    // Everything else goes on: another Service comes, and a node.
    lab.excuse("rule", &rule, "what somebody else took away is only shown");
    create(&mut lab, service(2));
    create(&mut lab, node(7));
    assert!(lab.settle(DAY_MS));
    assert_eq!(addressed(&lab), (3, 0));
    let now = balancer(&lab);
    assert!(!names(&now, "loadBalancingRules").contains(&rule), "the rule stays away");
    assert!(now.to_string().contains("10.224.0.11"), "the new node is in the pool");
    lab.pass(2 * INTERVAL_MS);
    assert!(!names(&balancer(&lab), "loadBalancingRules").contains(&rule));
    assert_eq!(lab.controller().drift_fields(), 1, "it is remembered over our own writes");
    // Its owner wishes something else of that rule.
    let body = json!({"metadata": {"annotations": {TIMEOUT: "10"}}});
    patch(&mut lab, "services", "default", "web-0001", body);
    assert!(lab.settle(DAY_MS));
    assert!(names(&balancer(&lab), "loadBalancingRules").contains(&rule));
    assert_eq!(lab.controller().drift_fields(), 0);
}

/// A rule names its frontend and not the address: where the owner asks for another address, a rule
/// that is gone is part of the wish, or status would tell an address that nothing leads to.
#[test]
fn with_report_a_rule_that_is_gone_is_back_once_its_frontend_has_another_address() {
    let mut lab = two("report");
    let annotate = |lab: &mut Laboratory, key: &str, value: &str| {
        let key = format!("service.beta.kubernetes.io/azure-load-balancer-{key}");
        let body = json!({"metadata": {"annotations": {key: value}}});
        patch(lab, "services", "default", "web-0001", body);
    };
    annotate(&mut lab, "internal", "true");
    assert!(lab.settle(DAY_MS));
    lab.pass(INTERVAL_MS);
    let rules = |lab: &Laboratory| {
        names(&resource(lab, "loadBalancers/kubernetes-internal"), "loadBalancingRules")
    };
    let there = rules(&lab);
    assert_eq!(there.len(), 1);
    edit(&mut lab, "loadBalancers/kubernetes-internal", |body| {
        body["properties"]["loadBalancingRules"] = json!([]);
    });
    lab.pass(INTERVAL_MS);
    assert_eq!((rules(&lab).len(), lab.controller().drift_fields()), (0, 1), "it is left so");
    annotate(&mut lab, "ipv4", "10.224.9.9");
    assert!(lab.settle(DAY_MS));
    assert_eq!((rules(&lab), lab.controller().drift_fields()), (there, 0));
    assert_eq!(address_of(&lab, "web-0001").as_deref(), Some("10.224.9.9"));
}

/// Another client has deleted the public IP, too, and its owner's edit makes it again.
#[test]
fn with_report_something_leads_to_an_address_that_status_newly_tells() {
    let mut lab = two("report");
    let base = base_of(&lab, "web-0001");
    let (rule, ip) = (format!("{base}-TCP-80"), format!("publicIPAddresses/kubernetes-{base}"));
    edit(&mut lab, "loadBalancers/kubernetes", |body| {
        for collection in ["loadBalancingRules", "frontendIPConfigurations"] {
            let all = body["properties"][collection].as_array_mut().expect("a list");
            all.retain(|part| !part["name"].as_str().is_some_and(|n| n.starts_with(&base)));
        }
    });
    lab.pass(INTERVAL_MS);
    assert_eq!(lab.controller().drift_fields(), 2);
    call(&mut lab, "DELETE", &network(&ip), None);
    assert!(!names(&balancer(&lab), "loadBalancingRules").contains(&rule), "it is left so");
    let label = "service.beta.kubernetes.io/azure-dns-label-name";
    let body = json!({"metadata": {"annotations": {label: "web-one"}}});
    patch(&mut lab, "services", "default", "web-0001", body);
    assert!(lab.settle(DAY_MS));
    assert!(names(&balancer(&lab), "loadBalancingRules").contains(&rule));
    let told = address_of(&lab, "web-0001").expect("it is told");
    assert_eq!(resource(&lab, &ip)["properties"]["ipAddress"], told.as_str());
}

/// A security rule that another client made stays until its address is released: Azure may give the
/// address to another tenant.
#[test]
fn with_report_a_security_rule_goes_before_its_address_is_released() {
    let mut lab = two("report");
    let address = address_of(&lab, "web-0001").expect("it has one");
    let theirs = "k8s-azure-lb_allow_IPv4_00000000000000000000000000000000";
    edit(&mut lab, "networkSecurityGroups/nsg", |body| {
        let rules = body["properties"]["securityRules"].as_array_mut().expect("rules");
        let mut rule = rules[0].clone();
        rule["name"] = json!(theirs);
        rule["properties"]["priority"] = json!(700);
        rule["properties"]["destinationPortRanges"] = json!(["8443"]);
        rule["properties"]["destinationAddressPrefix"] = json!(address);
        rule["properties"]["destinationAddressPrefixes"] = json!([]);
        rules.push(rule);
    });
    lab.pass(INTERVAL_MS);
    let rules =
        |lab: &Laboratory| names(&resource(lab, "networkSecurityGroups/nsg"), "securityRules");
    assert!(rules(&lab).iter().any(|name| name == theirs), "it is left: {:?}", said(&lab));
    delete(&mut lab, "default", "web-0001");
    assert!(lab.settle(DAY_MS));
    assert!(!rules(&lab).iter().any(|name| name == theirs), "{:?}", rules(&lab));
}

/// What a write of our own has come to is ours, also where its answer was lost and its owner went
/// back to the earlier wish before any list was read.
#[test]
fn with_report_a_write_whose_answer_is_lost_is_nobody_elses() {
    let mut lab = two("report");
    let group = |lab: &Laboratory| resource(lab, "networkSecurityGroups/nsg");
    let rules = |lab: &Laboratory| group(lab)["properties"]["securityRules"].to_string();
    assert!(!rules(&lab).contains("443"));
    let lost = fault(FaultKind::AppliedThenReset, "PUT", "networkSecurityGroups");
    lab.azure.add_fault(lost);
    let ports = json!([{"name": "http", "port": 80}, {"name": "https", "port": 443}]);
    patch(&mut lab, "services", "default", "web-0001", json!({"spec": {"ports": ports}}));
    assert!(lab.settle(INTERVAL_MS / 2));
    assert!(rules(&lab).contains("443"));
    let ports = json!([{"name": "http", "port": 80}]);
    patch(&mut lab, "services", "default", "web-0001", json!({"spec": {"ports": ports}}));
    assert!(lab.settle(INTERVAL_MS / 4));
    assert!(!rules(&lab).contains("443"), "{}", rules(&lab));
    assert_eq!(said(&lab), Vec::<String>::new());
}

/// The same of a write that succeeded, where the load balancer could not be read after it and the
/// Service went before any list was read.
#[test]
fn with_report_a_write_that_could_not_be_read_back_is_nobody_elses() {
    let mut lab = two("report");
    lab.azure.add_fault(fault(FaultKind::AppliedThenReset, "GET", "loadBalancers/kubernetes$"));
    create(&mut lab, service(2));
    assert!(lab.settle(INTERVAL_MS / 2));
    let own = base_of(&lab, "web-0002");
    assert!(balancer(&lab).to_string().contains(&own));
    delete(&mut lab, "default", "web-0002");
    assert!(lab.settle(INTERVAL_MS / 4));
    assert!(!balancer(&lab).to_string().contains(&own), "{}", balancer(&lab));
    assert_eq!(said(&lab), Vec::<String>::new());
}

#[test]
fn a_probe_edited_by_hand_is_one_field() {
    for policy in ["repair", "report"] {
        let mut lab = two(policy);
        let probe = names(&balancer(&lab), "probes")[0].clone();
        edit(&mut lab, "loadBalancers/kubernetes", |body| {
            body["properties"]["probes"][0]["properties"]["intervalInSeconds"] = json!(17);
        });
        lab.pass(INTERVAL_MS);
        let now = balancer(&lab)["properties"]["probes"][0]["properties"].clone();
        let kept = now["intervalInSeconds"] == 17;
        assert_eq!(kept, policy == "report");
        assert_eq!(lab.calls().0, usize::from(policy == "repair"));
        assert!(said(&lab)[0].contains(&format!("probe {probe}: interval_s was 5, is 17")));
        assert_eq!(lab.controller().drift_noticed(), 1);
    }
}

/// Azure answers with ids in other letters than they were written in, and the rule would be planned
/// with those of the write.
#[test]
fn with_report_a_rule_is_left_whatever_the_letters_of_its_ids() {
    let mut lab = laboratory(&json!({"driftPolicy": "report"}));
    lab.azure.options_mut().shout_ids = Switch::On;
    let mut lab = with_two(lab);
    edit(&mut lab, "loadBalancers/kubernetes", |body| {
        body["properties"]["loadBalancingRules"][0]["properties"]["idleTimeoutInMinutes"] =
            json!(9);
    });
    lab.pass(2 * INTERVAL_MS);
    assert_eq!(lab.calls().0, 0, "nothing is written: {:#?}", lab.notices);
    assert_eq!((lab.controller().drift_fields(), said(&lab).len()), (1, 1));
    lab.restart();
    lab.pass(2 * INTERVAL_MS);
    assert_eq!(lab.calls().0, 0, "nothing is written: {:#?}", lab.notices);
    let rule = balancer(&lab)["properties"]["loadBalancingRules"][0]["properties"].clone();
    assert_eq!(rule["idleTimeoutInMinutes"], 9);
}

#[test]
fn an_address_taken_out_of_a_pool_and_a_tag_of_ours() {
    for policy in ["repair", "report"] {
        let mut lab = two(policy);
        edit(&mut lab, "loadBalancers/kubernetes", |body| {
            let pool = &mut body["properties"]["backendAddressPools"][0]["properties"];
            let all = pool["loadBalancerBackendAddresses"].as_array_mut().expect("addresses");
            all.retain(|a| a["properties"]["ipAddress"] != "10.224.0.5");
        });
        let ip = format!("publicIPAddresses/kubernetes-{}", base_of(&lab, "web-0000"));
        edit(&mut lab, &ip, |body| {
            body["tags"].as_object_mut().expect("tags").remove("k8s-azure-cluster-name");
        });
        lab.pass(INTERVAL_MS);
        let wrote = lab.calls().0;
        let there = balancer(&lab).to_string().contains("10.224.0.5");
        let tags = resource(&lab, &ip)["tags"].clone();
        let tagged = tags.get("k8s-azure-cluster-name").is_some();
        let texts = said(&lab).join("\n");
        assert!(texts.contains("pool address kubernetes/10.224.0.5 is gone"), "{texts}");
        assert!(texts.contains("tag k8s-azure-cluster-name is gone"), "{texts}");
        let want = if policy == "repair" { (2, true, true) } else { (0, false, false) };
        assert_eq!((wrote, there, tagged), want, "{policy}");
    }
}

#[test]
fn a_security_rule_that_somebody_narrowed() {
    for policy in ["repair", "report"] {
        let mut lab = two(policy);
        edit(&mut lab, "networkSecurityGroups/nsg", |body| {
            body["properties"]["securityRules"].as_array_mut().expect("rules").clear();
        });
        lab.pass(INTERVAL_MS);
        let group = resource(&lab, "networkSecurityGroups/nsg");
        let back = !names(&group, "securityRules").is_empty();
        assert_eq!((lab.calls().0, back), if policy == "repair" { (1, true) } else { (0, false) });
        assert_eq!(lab.controller().drift_noticed(), 1);
    }
}

#[test]
fn what_is_not_ours_and_what_somebody_wishes_is_no_drift() {
    let mut lab = two("repair");
    edit(&mut lab, "loadBalancers/kubernetes", |body| {
        body["tags"]["owner"] = json!("them");
        body["properties"]["probes"].as_array_mut().expect("probes").push(json!({
            "name": "theirs", "properties": {"protocol": "Tcp", "port": 1, "intervalInSeconds": 5,
                "numberOfProbes": 2}}));
    });
    create(&mut lab, service(2));
    create(&mut lab, node(7));
    delete(&mut lab, "default", "web-0000");
    lab.pass(2 * INTERVAL_MS);
    assert_eq!(addressed(&lab), (2, 0));
    assert_eq!(said(&lab), Vec::<String>::new());
    assert_eq!(lab.controller().drift_noticed(), 0);
    assert!(names(&balancer(&lab), "probes").contains(&"theirs".to_owned()));
}

#[test]
fn the_first_plan_of_a_process_is_a_takeover() {
    let mut lab = two("report");
    let rule = format!("{}-TCP-80", base_of(&lab, "web-0001"));
    remove_rule(&mut lab, &rule);
    lab.restart();
    assert!(lab.settle(DAY_MS));
    assert!(names(&balancer(&lab), "loadBalancingRules").contains(&rule), "it is written");
    assert_eq!(said(&lab), Vec::<String>::new(), "nobody can know that it was there");
}

fn noted(lab: &Laboratory) -> Value {
    let ledger = object(lab, "configmaps", "kube-system", "ballast-ledger");
    ledger.expect("it is there")["data"]["drift"].clone()
}

#[test]
fn with_report_what_was_left_is_left_by_the_next_process() {
    let mut lab = two("report");
    let rule = format!("{}-TCP-80", base_of(&lab, "web-0001"));
    lab.excuse("rule", &rule, "what somebody else took away is only shown");
    remove_rule(&mut lab, &rule);
    lab.pass(INTERVAL_MS);
    assert_eq!(lab.controller().drift_fields(), 1);
    assert!(noted(&lab).as_str().is_some_and(|text| text.contains(&rule)), "{}", noted(&lab));
    lab.notices.clear();
    lab.azure.clear_calls();
    lab.restart();
    lab.pass(2 * INTERVAL_MS);
    assert_eq!(lab.calls().0, 0, "nothing is written: {:#?}", lab.notices);
    assert_eq!((lab.controller().drift_fields(), said(&lab).len()), (1, 1));
    // Everything else goes on.
    create(&mut lab, service(2));
    create(&mut lab, node(7));
    assert!(lab.settle(DAY_MS));
    assert_eq!(addressed(&lab), (3, 0));
    assert!(!names(&balancer(&lab), "loadBalancingRules").contains(&rule));
    // Its owner wishes something else while no process runs.
    let body = json!({"metadata": {"annotations": {TIMEOUT: "10"}}});
    patch(&mut lab, "services", "default", "web-0001", body);
    lab.restart();
    assert!(lab.settle(DAY_MS));
    lab.pass(INTERVAL_MS);
    assert!(names(&balancer(&lab), "loadBalancingRules").contains(&rule));
    assert_eq!((lab.controller().drift_fields(), noted(&lab)), (0, Value::Null));
}

#[test]
fn a_load_balancer_deleted_whole_comes_back_only_when_it_is_needed() {
    let mut lab = two("report");
    let id = network("loadBalancers/kubernetes");
    call(&mut lab, "DELETE", &id, None);
    lab.azure.clear_calls();
    lab.pass(INTERVAL_MS);
    assert!(lab.azure.resource(&id).is_none());
    assert_eq!(lab.calls().0, 0);
    assert_eq!(
        said(&lab),
        ["another client changed loadBalancers/kubernetes: it is gone; it is left so \
          (driftPolicy is report)"]
    );
    // A Service that comes needs the load balancer; one cannot be made in part.
    create(&mut lab, service(2));
    assert!(lab.settle(DAY_MS));
    assert_eq!(addressed(&lab), (3, 0));
    assert_eq!(names(&balancer(&lab), "loadBalancingRules").len(), 3);
    assert_eq!(lab.controller().drift_fields(), 0);
}

#[test]
fn a_location_of_the_gateway_edited_by_hand() {
    for policy in ["repair", "report"] {
        let mut lab = container_with(policy);
        let mine = table(&lab);
        write_table(&mut lab, "updateAddressLocations", entry(&location(0), &pod_ip(1), &[]));
        assert_ne!(table(&lab), mine);
        lab.azure.clear_calls();
        lab.pass(INTERVAL_MS);
        assert_eq!(table(&lab) == mine, policy == "repair");
        assert_eq!(location_posts(&lab), usize::from(policy == "repair"));
        let texts = said(&lab);
        let want = format!("gateway address {}/{} is gone", location(0), pod_ip(1));
        assert!(texts[0].contains(&want), "{texts:?}");
        assert_eq!(events(&lab)[0].0, web_name(1));
        // Another Pod comes to the same place.
        set_slice(&mut lab, &web_name(1), 0, ready(&[(1, 0), (2, 0)]));
        lab.pass(INTERVAL_MS);
        let all: Vec<String> = table(&lab).into_iter().map(|entry| format!("{entry:?}")).collect();
        assert!(all.join(" ").contains(&pod_ip(2)), "{all:?}");
        assert_eq!(all.join(" ").contains(&format!("{}\"", pod_ip(1))), policy == "repair");
    }
}

/// Azure refuses an address of a Service that is not registered: what needs the registration puts
/// it right, whatever else is left as it is.
#[test]
fn with_report_a_registration_is_made_again_once_an_address_needs_it() {
    let mut lab = container_with("report");
    let uid = uid_of(&lab, &web_name(1));
    write_table(&mut lab, "updateAddressLocations", entry(&location(0), &pod_ip(1), &[]));
    let requests = json!([{"isDelete": true, "service": {"name": uid}}]);
    let body = json!({"action": "PartialUpdate", "serviceRequests": requests});
    write_table(&mut lab, "updateServices", body);
    lab.pass(INTERVAL_MS);
    assert!(!registered(&lab).contains(&uid), "it is left so");
    lab.azure.clear_calls();
    set_slice(&mut lab, &web_name(1), 0, ready(&[(1, 0), (2, 0)]));
    lab.pass(INTERVAL_MS);
    assert!(registered(&lab).contains(&uid));
    assert!(format!("{:?}", table(&lab)).contains(&pod_ip(2)), "{:?}", table(&lab));
    let refused = lab.azure.calls().iter().find(|call| call.is_write() && call.status >= 400);
    assert!(refused.is_none(), "{refused:?}");
}

fn container_with(policy: &str) -> Laboratory {
    let mut lab = container_laboratory(2);
    let mut keys = keys();
    keys["driftPolicy"] = json!(policy);
    lab.restart_with(crate::support::policy(&keys));
    create(&mut lab, web(1));
    set_slice(&mut lab, &web_name(1), 0, ready(&[(1, 0)]));
    assert!(lab.settle(DAY_MS));
    lab.pass(INTERVAL_MS);
    lab.notices.clear();
    lab
}
