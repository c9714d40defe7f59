//! What seeds of the simulator found, each as small as it gets.

use crate::support::container::{
    address_of, container_laboratory, fault, refusal, service_of, uid_of, web, web_name,
};
use crate::support::*;
use azure_emulator::{Fault, FaultKind, Request};
use kube_emulator::{ObjectRef, Part, Patch};
use model::Group;
use model::report::State;
use serde_json::json;
use sim::Laboratory;
use sim::scene::{Layout, Scene, objects, over_nodes};
use sim::stage::Stage;
use sim::swarm::Pace;
use sim::weather::Weather;

const NO_FLOATING_IP: &str = "service.beta.kubernetes.io/azure-disable-load-balancer-floating-ip";

fn refused(status: u16, code: &str, path: &str) -> Fault {
    fault(refusal(status, code, None), "PUT", path).always()
}

fn canceled() -> FaultKind {
    FaultKind::OperationCanceled { code: "CanceledAndSupersededDueToAnotherOperation".to_owned() }
}

/// Lets time pass until a write to such a path was sent.
fn pass_until_written(lab: &mut Laboratory, path: &str) {
    while !lab.azure.calls().iter().any(|c| c.is_write() && c.path.contains(path)) {
        lab.pass(1_000);
    }
}

fn name_ip(lab: &mut Laboratory, name: &serde_json::Value) {
    let body = json!({"metadata": {"annotations": {PIP_NAME: name}}});
    patch(lab, "services", "default", "web-0000", body);
}

/// Three Services, and somebody's public IP that stands before theirs in the list.
fn stand() -> Laboratory {
    let mut lab = laboratory(&json!({}));
    lab.azure.options_mut().page_size = 2;
    let body = json!({"location": "eastus", "sku": {"name": "Standard"},
        "properties": {"publicIPAllocationMethod": "Static"}});
    call(&mut lab, "PUT", &network("publicIPAddresses/aaa"), Some(body));
    (0..3).for_each(|number| create(&mut lab, service(number)));
    assert!(lab.settle(DAY_MS));
    lab
}

fn known_ips(lab: &Laboratory) -> usize {
    let all = lab.controller().world().azure.public_ips.get(&Group::new("rg"));
    all.and_then(|all| all.known()).map_or(0, |all| all.len())
}

#[test]
fn what_pages_leave_out_is_read_again_before_it_counts_as_gone() {
    let mut lab = stand();
    let before = known_ips(&lab);
    // The look for drift: its first page is read, and its second one a second later.
    lab.azure_latency_ms = 1_000;
    lab.azure.clear_calls();
    let listed = |lab: &Laboratory| lab.azure.calls().iter().any(|c| c.path.contains("publicIP"));
    for _ in 0..2 * INTERVAL_MS / 100 {
        if listed(&lab) {
            break;
        }
        lab.pass(100);
    }
    assert!(listed(&lab), "the list is being read");
    call(&mut lab, "DELETE", &network("publicIPAddresses/aaa"), None);
    lab.azure.clear_calls();
    let mut least = before;
    for _ in 0..300 {
        lab.pass(100);
        least = least.min(known_ips(&lab));
    }
    assert!(lab.settle(DAY_MS));
    assert_eq!(lab.calls().0, 0, "nothing is written: {:#?}", lab.azure.calls());
    // The one that was left out was never missed; the one that is gone is, after a second look.
    assert_eq!((least, known_ips(&lab)), (before - 1, before - 1));
    let ips =
        |lab: &Laboratory| lab.controller().world().azure.public_ips[&Group::new("rg")].clone();
    let gone =
        ips(&lab).known().is_some_and(|all| all.keys().any(|id| id.as_str().ends_with("/aaa")));
    assert!(!gone, "what both reads lack is gone");
}

/// Its owner names the public IP no longer, and nothing leads there in the end.
fn leave_byo(lab: &mut Laboratory) {
    name_ip(lab, &json!(null));
    assert!(lab.settle(DAY_MS));
    assert!(!security_group(lab).contains(BYO_ADDRESS), "no record says whose rule that is");
    assert_eq!(addressed(lab), (1, 0));
}

#[test]
fn a_rule_to_a_brought_ip_that_is_left_before_anybody_was_told_is_not_left_over() {
    let mut lab = laboratory(&json!({}));
    lab.azure.add_fault(refused(409, "ScopeLocked", "networkSecurityGroups/nsg$"));
    create(&mut lab, annotated(0, json!({PIP_NAME: "byo-pip"})));
    lab.pass(500);
    // Its frontend stands on the IP that was brought, and no rule leads there yet. The IP that it
    // moves to takes a while; meanwhile the security group can be written again.
    lab.azure.clear_faults();
    lab.azure.options_mut().lro_ms = 30_000;
    leave_byo(&mut lab);
}

#[test]
fn a_rule_to_a_brought_ip_is_not_left_over_where_somebody_takes_its_frontend_away() {
    let mut lab = laboratory(&json!({}));
    lab.azure.options_mut().lro_ms = 5_000;
    create(&mut lab, annotated(0, json!({PIP_NAME: "byo-pip"})));
    pass_until_written(&mut lab, "loadBalancers/kubernetes");
    lab.azure.options_mut().lro_ms = 300_000;
    pass_until_written(&mut lab, "networkSecurityGroups/nsg");
    // The rule is being opened, and nobody is told of the address before that is over.
    assert!(security_group(&lab).contains(BYO_ADDRESS));
    assert_eq!(addressed(&lab), (0, 1));
    let body = json!({"location": "eastus", "sku": {"name": "Standard"}, "properties": {}});
    call(&mut lab, "PUT", &network("loadBalancers/kubernetes"), Some(body));
    lab.azure.add_fault(refused(409, "ScopeLocked", "loadBalancers/kubernetes$"));
    lab.azure.options_mut().lro_ms = 1_000;
    lab.pass(INTERVAL_MS + 1_000);
    lab.azure.clear_faults();
    leave_byo(&mut lab);
}

#[test]
fn a_load_balancer_that_somebody_deleted_is_missed_although_every_write_is_refused() {
    let mut lab = served([service(0)]);
    lab.azure.add_fault(refused(400, "InvalidRequestFormat", "loadBalancers/kubernetes$"));
    create(&mut lab, service(1));
    lab.pass(INTERVAL_MS);
    call(&mut lab, "DELETE", &network("loadBalancers/kubernetes"), None);
    lab.pass(2 * INTERVAL_MS);
    let known = lab.controller().world().azure.balancers.known().map(|all| all.len());
    assert_eq!(known, Some(0), "each read came shortly after a write that changed nothing");
}

#[test]
fn a_service_that_goes_back_while_its_move_is_under_way_is_not_programmed() {
    let mut lab = served([service(0)]);
    lab.azure.options_mut().lro_ms = 60_000;
    name_ip(&mut lab, &json!("byo-pip"));
    lab.pass(5_000);
    // The load balancer is already being moved to the other IP.
    let balancer = resource(&lab, "loadBalancers/kubernetes");
    assert!(balancer.to_string().to_lowercase().contains("byo-pip"));
    name_ip(&mut lab, &json!(null));
    lab.pass(1_000);
    let states: Vec<State> =
        lab.controller().report().services.values().map(|service| service.state).collect();
    assert_eq!(states, [State::Waiting], "what is known of the load balancer is old");
    assert!(lab.settle(DAY_MS));
    assert_eq!(addressed(&lab), (1, 0));
}

fn zones_refused(status: u16, times: u64) -> Laboratory {
    let mut lab = laboratory(&json!({}));
    let kind = refusal(status, "AuthorizationFailed", None);
    lab.azure.add_fault(fault(kind, "GET", "Microsoft.Compute$").times(times));
    create(&mut lab, service(0));
    lab
}

fn zones_of_ips(lab: &Laboratory) -> Vec<serde_json::Value> {
    let all = lab.azure.resources_of("Microsoft.Network/publicIPAddresses");
    let ours = all.iter().filter(|ip| ip["tags"]["k8s-azure-service"].is_string());
    ours.map(|ip| ip["zones"].clone()).collect()
}

#[test]
fn a_refusal_that_passes_makes_no_public_ip_without_zones() {
    for (status, times) in [(401, 1), (401, 8), (403, 1), (403, 3)] {
        let mut lab = zones_refused(status, times);
        assert!(lab.settle(DAY_MS));
        assert_eq!(zones_of_ips(&lab), [json!(["1", "2", "3"])], "{times} times {status}");
    }
}

#[test]
fn where_zones_may_not_be_read_a_service_goes_without_after_a_few_seconds() {
    let mut lab = zones_refused(403, u64::MAX);
    // 1, 2 and 4 s of waiting, beside which nothing takes long.
    lab.pass(6_900);
    assert_eq!(zones_of_ips(&lab), [json!(null); 0]);
    lab.pass(3_000);
    assert_eq!(zones_of_ips(&lab), [json!(null)]);
}

fn told(lab: &Laboratory) -> usize {
    let services = lab.kubernetes.list("services", None);
    services.iter().filter(|s| !s["status"]["loadBalancer"]["ingress"].is_null()).count()
}

#[test]
fn an_address_is_not_told_while_an_operation_that_nobody_follows_may_still_be_canceled() {
    for changed in ["loadBalancers/kubernetes$", "networkSecurityGroups/nsg$"] {
        let mut lab = served([service(0)]);
        lab.azure.add_fault(fault(canceled(), "PUT", changed));
        lab.azure.options_mut().lro_ms = 60_000;
        lab.azure.clear_calls();
        create(&mut lab, service(1));
        let kind = changed.split('/').next().unwrap_or(changed);
        pass_until_written(&mut lab, kind);
        // Whoever comes next sees what was asked for, and that it is being changed.
        lab.restart();
        lab.azure.options_mut().lro_ms = 0;
        lab.pass(30_000);
        assert_eq!(told(&lab), 1, "{changed}: what was there before is about to come back");
        assert!(lab.settle(DAY_MS));
        assert_eq!((told(&lab), addressed(&lab)), (2, (2, 0)));
    }
}

#[test]
fn a_rule_that_was_taken_away_and_comes_back_is_closed_again() {
    let mut lab = served([annotated(0, json!({PIP_NAME: "byo-pip"}))]);
    assert!(security_group(&lab).contains(BYO_ADDRESS));
    // It moves; what closes the old address is canceled in the end, which nobody awaits.
    lab.azure.add_fault(fault(canceled(), "PUT", "networkSecurityGroups/nsg$"));
    lab.azure.clear_calls();
    name_ip(&mut lab, &json!(null));
    lab.azure.options_mut().lro_ms = 0;
    let closes = |lab: &Laboratory| !security_group(lab).contains(BYO_ADDRESS);
    while !closes(&lab) {
        lab.azure.options_mut().lro_ms = 60_000;
        lab.pass(100);
    }
    lab.restart();
    lab.azure.options_mut().lro_ms = 0;
    lab.pass(30_000);
    assert!(lab.settle(DAY_MS));
    lab.pass(2 * INTERVAL_MS);
    assert!(lab.settle(DAY_MS));
    assert!(closes(&lab), "{}", security_group(&lab));
}

#[test]
fn a_gone_nodes_address_is_closed_although_azure_lost_the_pool_that_held_it() {
    let mut lab = served([annotated(0, json!({NO_FLOATING_IP: "true"}))]);
    let leads_to_gone = |lab: &Laboratory| security_group(lab).contains("\"10.224.0.4\"");
    assert!(leads_to_gone(&lab));
    lab.azure.add_fault(refused(409, "ScopeLocked", "networkSecurityGroups/nsg$"));
    remove(&mut lab, "nodes", "", "vmss000000");
    lab.pass(1_000);
    // The pool holds the address until the security group is closed, and Azure loses it.
    let loses = FaultKind::SucceedsButLosesPool;
    lab.azure.add_fault(fault(loses, "PUT", "loadBalancers/kubernetes$"));
    let body = json!({"metadata": {"annotations": {TIMEOUT: "10"}}});
    patch(&mut lab, "services", "default", "web-0000", body);
    lab.pass(30_000);
    assert!(leads_to_gone(&lab));
    lab.azure.clear_faults();
    assert!(lab.settle(DAY_MS));
    assert!(!leads_to_gone(&lab), "nobody knows any more whose address that was");
}

#[test]
fn an_address_is_closed_although_a_write_that_opens_it_was_under_way_when_it_was_left() {
    let mut lab = laboratory(&json!({}));
    lab.azure.options_mut().lro_ms = 60_000;
    create(&mut lab, annotated(0, json!({PIP_NAME: "byo-pip"})));
    pass_until_written(&mut lab, "networkSecurityGroups");
    // What follows is quick; nobody knows yet what the security group has come to.
    lab.azure.options_mut().lro_ms = 0;
    leave_byo(&mut lab);
}

#[test]
fn a_gone_nodes_address_is_closed_although_a_write_that_opens_it_was_under_way() {
    let mut lab = laboratory(&json!({}));
    lab.azure.options_mut().lro_ms = 120_000;
    create(&mut lab, annotated(0, json!({NO_FLOATING_IP: "true"})));
    pass_until_written(&mut lab, "networkSecurityGroups");
    lab.azure.options_mut().lro_ms = 0;
    remove(&mut lab, "nodes", "", "vmss000000");
    // It drains, and then nothing else keeps it; the process dies, and remembers nothing.
    lab.pass(60_000);
    lab.restart();
    assert!(lab.settle(DAY_MS));
    let_drain(&mut lab);
    assert!(
        !security_group(&lab).contains("\"10.224.0.4\""),
        "nobody knows any more whose address that was"
    );
}

fn let_drain(lab: &mut Laboratory) {
    lab.pass(61_000);
    assert!(lab.settle(DAY_MS));
}

/// Who is to see that the operation is canceled.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Follower {
    /// The process that asked for it, which cannot poll it.
    Same,
    /// The next one, which knows of no operation.
    Next,
}

#[test]
fn a_service_is_not_let_go_by_a_list_that_was_asked_for_too_early() {
    let mut lab = laboratory(&json!({}));
    lab.azure.options_mut().list_lag_ms = 8_000;
    lab.azure.options_mut().lro_ms = 1_000;
    create(&mut lab, service(0));
    pass_until_written(&mut lab, "publicIPAddresses/");
    // The next process asks at once, for what lists do not show yet; the answer takes longer than
    // they lag.
    lab.restart();
    lab.azure_latency_ms = 15_000;
    delete(&mut lab, "default", "web-0000");
    assert!(lab.settle(DAY_MS));
    assert_eq!(leftovers(&lab), Vec::<String>::new());
}

#[test]
fn what_status_tells_stays_while_lists_may_not_show_it_yet() {
    let mut lab = laboratory(&json!({}));
    lab.azure.options_mut().list_lag_ms = 8_000;
    create(&mut lab, service(0));
    lab.pass(2_000);
    assert_eq!(addressed(&lab), (1, 0));
    let address = address_of(&lab, "web-0000").expect("it is told");
    lab.azure.clear_calls();
    // The next process lists neither public IP nor load balancer.
    lab.restart();
    for _ in 0..30 {
        lab.pass(500);
        assert_eq!(address_of(&lab, "web-0000"), Some(address.clone()));
        assert!(security_group(&lab).contains(&address), "it was closed");
    }
    assert!(lab.settle(DAY_MS));
    assert_eq!(lab.calls().0, 0, "nothing was to be written");
}

#[test]
fn a_service_is_not_let_go_while_what_was_taken_away_may_come_back() {
    delete_while_canceled(Follower::Same);
}

#[test]
fn nor_does_a_process_let_it_go_that_starts_meanwhile() {
    delete_while_canceled(Follower::Next);
}

fn delete_while_canceled(follower: Follower) {
    let mut lab = laboratory(&json!({}));
    for number in 0..2 {
        // A public IP says by itself that it is still on a load balancer.
        create(&mut lab, annotated(number, json!({INTERNAL: "true"})));
    }
    assert!(lab.settle(DAY_MS));
    let base = model::ServiceUid::new(uid_of(&lab, "web-0001")).base_name();
    // The load balancer shows what was asked for, the operation cannot be polled, and in the end
    // it is canceled.
    lab.azure.add_fault(fault(canceled(), "PUT", "loadBalancers/kubernetes-internal$"));
    let expired = refused(401, "ExpiredAuthenticationToken", "/operations/");
    lab.azure.add_fault(expired.on_method("GET"));
    lab.azure.options_mut().lro_ms = if follower == Follower::Same { 20_000 } else { 60_000 };
    lab.azure.clear_calls();
    delete(&mut lab, "default", "web-0001");
    if follower == Follower::Next {
        pass_until_written(&mut lab, "loadBalancers");
        lab.restart();
        lab.azure.options_mut().lro_ms = 0;
    }
    let exists = |lab: &Laboratory| service_of(lab, "web-0001").is_some();
    let path = format!("{}?api-version=2024-05-01", network("loadBalancers/kubernetes-internal"));
    let leads_there = |lab: &mut Laboratory| {
        let answer = lab.azure.handle(Request::new("GET", &path), lab.now_ms);
        answer.body.expect("it is there").to_string().contains(&*base)
    };
    for second in 0..120 {
        lab.pass(1_000);
        assert!(exists(&lab) || !leads_there(&mut lab), "after {second} s its rule is still there");
    }
    lab.azure.clear_faults();
    assert!(lab.settle(DAY_MS));
    assert!(!exists(&lab) && !leads_there(&mut lab));
}

#[test]
fn an_address_made_anew_is_told_once_a_container_load_balancer_leads_there() {
    let mut lab = container_laboratory(2);
    create(&mut lab, web(0));
    assert!(lab.settle(DAY_MS));
    let (name, uid) = (web_name(0), uid_of(&lab, &web_name(0)));
    let first = address_of(&lab, &name).expect("it is told");
    // Somebody deletes the public IP, and before it what stands on it.
    let balancer = network(&format!("loadBalancers/{uid}"));
    let mut body = lab.azure.resource(&balancer).expect("it stands");
    for collection in ["loadBalancingRules", "frontendIPConfigurations"] {
        body["properties"][collection] = json!([]);
    }
    call(&mut lab, "PUT", &balancer, Some(body));
    call(&mut lab, "DELETE", &network(&format!("publicIPAddresses/{uid}-pip")), None);
    lab.azure.clear_calls();
    lab.azure.options_mut().lro_ms = 30_000;
    let written = |lab: &Laboratory| {
        let mut writes = lab.azure.calls().iter().filter(|c| c.is_write() && c.status < 300);
        writes.any(|c| c.path.contains("loadBalancers"))
    };
    while !written(&lab) {
        lab.pass(1_000);
        let told = address_of(&lab, &name);
        assert!(told.is_none_or(|told| told == first), "nothing leads to the new one yet");
    }
    let told = address_of(&lab, &name);
    assert!(told.is_none_or(|told| told == first), "nor while the load balancer is being written");
    assert!(lab.settle(DAY_MS));
    assert!(address_of(&lab, &name).is_some_and(|told| told != first));
}

#[test]
fn a_balancer_goes_although_a_service_was_about_to_join_it_that_is_refused() {
    let several = json!({"multipleStandardLoadBalancerConfigurations": [
        {"name": "kubernetes", "primaryVMSet": "vmss"},
    ]});
    let mut lab = laboratory(&several);
    let mut web = annotated(0, json!({INTERNAL: "true"}));
    web["spec"]["externalTrafficPolicy"] = json!("Local");
    create(&mut lab, web);
    assert!(lab.settle(DAY_MS));
    let balancer = network("loadBalancers/kubernetes-internal");
    assert!(lab.azure.resource(&balancer).is_some(), "it stands");
    // Its only Service leaves. Another one comes, and its subnet is looked for once it has its
    // finalizer.
    patch(&mut lab, "services", "default", "web-0000", json!({"spec": {"type": "ClusterIP"}}));
    let mut next = service(1);
    let subnet = "service.beta.kubernetes.io/azure-load-balancer-internal-subnet";
    next["metadata"]["annotations"] = json!({INTERNAL: "true", subnet: "nothing"});
    create(&mut lab, next);
    lab.is_refused("default/web-0001", "its subnet is not there");
    assert!(lab.settle(DAY_MS));
    assert!(lab.azure.resource(&balancer).is_none(), "{:#?}", lab.azure.resource(&balancer));
}

/// What the status of the stage's first Service says.
fn ingress(stage: &Stage) -> serde_json::Value {
    let web = stage.kubernetes.get(ObjectRef::new("services", "default", "web-0"));
    web.expect("it is there")["status"]["loadBalancer"]["ingress"].clone()
}

/// A Service comes to a stage, and is served.
fn serve(stage: &mut Stage, index: u64, annotations: serde_json::Value) {
    let mut web = objects::service("default", index);
    web["metadata"]["annotations"] = annotations;
    stage.kubernetes.create(web, stage.now_ms).expect("a new Service");
    stage.follow();
    assert!(stage.settle(DAY_MS));
}

/// Edits the only Service of a stage.
fn edit_web(stage: &mut Stage, part: Part, body: serde_json::Value) {
    let web = ObjectRef::new("services", "default", "web-0");
    stage.kubernetes.patch(web, part, &Patch::Merge(body), stage.now_ms).expect("it is patched");
    stage.follow();
}

#[test]
fn an_additional_address_that_a_refused_service_keeps_is_no_untruth() {
    let more = "service.beta.kubernetes.io/azure-additional-public-ips";
    let pinned = "service.beta.kubernetes.io/azure-load-balancer-ipv4";
    let pace = Pace { azure_ms: 5, api_ms: 2, watch_ms: 5, operation_ms: 50 };
    let mut stage = Stage::new(Scene::plain(Layout::Single, 3, 7), pace, Weather::Fair, 1);
    serve(&mut stage, 0, json!({more: "20.9.9.1"}));
    // Its owner lists another one, and asks for what no Service can have.
    let asks = json!({more: "20.9.9.2", pinned: "x"});
    edit_web(&mut stage, Part::Main, json!({"metadata": {"annotations": asks}}));
    assert!(stage.settle(DAY_MS));
    let told = ingress(&stage);
    assert_eq!(told[1]["ip"], "20.9.9.1", "{told}");
    assert_eq!(stage.untrue(), Vec::<String>::new());
    // What it has never listed is not its own.
    let status = json!({"loadBalancer": {"ingress": [told[0], told[1], {"ip": "20.9.9.3"}]}});
    edit_web(&mut stage, Part::Status, json!({"status": status}));
    assert_eq!(stage.untrue(), ["default/web-0 says 20.9.9.3, and no rule leads there"]);
}

/// Azure deletes the public IP before the API server gets the status without its address, and the
/// prefix gives the new one the same.
#[test]
fn an_address_that_a_new_public_ip_gets_again_was_not_left_out_unasked() {
    let pace = Pace { azure_ms: 0, api_ms: 2, watch_ms: 0, operation_ms: 0 };
    let mut stage = Stage::new(Scene::plain(Layout::Single, 2, 7), pace, Weather::Fair, 1);
    let prefix = "service.beta.kubernetes.io/azure-pip-prefix-id";
    serve(&mut stage, 0, json!({prefix: network("publicIPPrefixes/theirs-prefix")}));
    let former = ingress(&stage);
    // A public IP with other tags is another one.
    let tags =
        json!({"service.beta.kubernetes.io/azure-pip-ip-tags": "RoutingPreference=Internet"});
    edit_web(&mut stage, Part::Main, json!({"metadata": {"annotations": tags}}));
    stage.advance(stage.now_ms + 3);
    assert!(ingress(&stage).is_null(), "{}", ingress(&stage));
    assert!(stage.settle(DAY_MS), "{:?}", stage.breach);
    assert_eq!((ingress(&stage), &stage.breach), (former, &None));
}

/// The config is set back while the former load balancer drains.
#[test]
fn an_address_that_services_are_turned_back_to_was_not_lost_unasked() {
    let pace = Pace { azure_ms: 5, api_ms: 2, watch_ms: 5, operation_ms: 50 };
    let scene = Scene::plain(Layout::Containers, 3, 7);
    let mut stage = Stage::new(scene.clone(), pace, Weather::Fair, 1);
    serve(&mut stage, 0, json!({}));
    let former = ingress(&stage);
    stage.reconfigure(scene.config(&over_nodes()));
    // It has both addresses for three minutes; the former one is served for one more.
    stage.advance(stage.now_ms + 210_000);
    let moved = ingress(&stage);
    assert!(moved != former && moved[1].is_null(), "{former} {moved}");
    stage.reconfigure(scene.config(&json!({"tags": "owner=ops"})));
    stage.advance(stage.now_ms + 30_000);
    assert_eq!(stage.breach, None);
    assert_eq!(ingress(&stage), json!([former[0], moved[0]]));
}

/// Its owner deletes it before its first status is sent, and Azure takes it all away before the API
/// server gets that.
#[test]
fn a_status_that_was_true_when_it_was_sent_is_no_untruth() {
    let pace = Pace { azure_ms: 0, api_ms: 10, watch_ms: 5, operation_ms: 0 };
    let mut stage = Stage::new(Scene::plain(Layout::Containers, 2, 7), pace, Weather::Fair, 1);
    assert!(stage.settle(DAY_MS));
    let now = stage.now_ms;
    let web = objects::service("default", 0);
    let web = stage.kubernetes.create(web, now).expect("a new Service");
    let uid = web["metadata"]["uid"].as_str().expect("it has one").to_owned();
    stage.follow();
    let stands = |stage: &Stage| {
        let all = stage.azure.resources_of("Microsoft.Network/loadBalancers");
        all.iter().any(|balancer| balancer["name"] == *uid)
    };
    // The status waits for the answer about the finalizer, and is sent two milliseconds from now.
    stage.advance(now + 23);
    assert!(stands(&stage) && ingress(&stage).is_null());
    let web = ObjectRef::new("services", "default", "web-0");
    stage.kubernetes.delete(web, now + 23).expect("it is deleted");
    stage.follow();
    stage.advance(now + 40);
    assert_eq!(stage.breach, None);
    assert!(!stands(&stage) && !ingress(&stage).is_null(), "the status came last");
    assert!(stage.settle(DAY_MS), "{:?}", stage.breach);
}

/// On the load balancer that it comes back to, a frontend is called after it that others use.
#[test]
fn a_service_that_comes_back_keeps_its_address_beside_those_that_it_shared_another_with() {
    let pace = Pace { azure_ms: 5, api_ms: 2, watch_ms: 5, operation_ms: 50 };
    let mut stage = Stage::new(Scene::plain(Layout::PerSet, 2, 2), pace, Weather::Fair, 1);
    for index in 0..2 {
        serve(&mut stage, index, json!({PIP_NAME: "byo-pip3"}));
    }
    assert_eq!(ingress(&stage)[0]["ip"], "20.50.0.14");
    let mode = "service.beta.kubernetes.io/azure-load-balancer-mode";
    let own = json!({PIP_NAME: null, mode: "vmss2"});
    edit_web(&mut stage, Part::Main, json!({"metadata": {"annotations": own}}));
    assert!(stage.settle(DAY_MS));
    let own = ingress(&stage);
    edit_web(&mut stage, Part::Main, json!({"metadata": {"annotations": {mode: null}}}));
    assert!(stage.settle(DAY_MS), "{:?}", stage.breach);
    assert_eq!((ingress(&stage), &stage.breach), (own, &None));
}
