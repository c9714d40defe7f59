//! How many calls things cost. The numbers are exact, or bounds that issue and documents promise.

use crate::support::container::{fault, refusal, refusing, writes_of};
use crate::support::*;
use serde_json::{Value, json};

fn fifty() -> sim::Laboratory {
    let mut lab = served([]);
    lab.azure.clear_calls();
    (0..50).for_each(|n| create(&mut lab, service(n)));
    lab
}

#[test]
fn fifty_public_services_created_together() {
    let mut lab = fifty();
    assert!(lab.settle(DAY_MS), "{:#?}", lab.controller().report());
    assert_eq!(addressed(&lab), (50, 0));
    let (writes, reads) = lab.calls();
    assert_eq!(writes, 52, "50 public IPs, one load balancer, one security group");
    assert!(reads <= 20, "{reads} reads");
}

#[test]
fn fifty_with_latency_are_done_in_a_few_round_trips() {
    let mut lab = fifty();
    lab.azure_latency_ms = 100;
    let start = lab.now_ms;
    assert!(lab.settle(DAY_MS));
    let took = lab.now_ms - start;
    assert!(took <= 2_000, "{took} ms of simulated time");
    assert!(lab.calls().0 <= 53, "{:?}", lab.calls());
}

#[test]
fn fifty_with_long_running_operations() {
    let mut lab = fifty();
    lab.azure_latency_ms = 100;
    lab.azure.options_mut().lro_ms = 500;
    lab.azure.options_mut().retry_after_s = 1;
    let start = lab.now_ms;
    assert!(lab.settle(DAY_MS));
    assert_eq!(addressed(&lab), (50, 0));
    let took = lab.now_ms - start;
    assert!(took <= 5_000, "{took} ms of simulated time");
    assert!(lab.calls().0 <= 53, "{:?}", lab.calls());
}

#[test]
fn one_node_more_is_one_write() {
    let mut lab = fifty();
    lab.settle(DAY_MS);
    lab.azure.clear_calls();
    create(&mut lab, node(3));
    assert!(lab.settle(DAY_MS));
    let (writes, reads) = lab.calls();
    assert_eq!(writes, 1);
    assert!(reads <= 3, "{reads} reads");
}

/// The addresses in pools, with their admin states.
fn pools(lab: &sim::Laboratory) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for balancer in lab.azure.resources_of("Microsoft.Network/loadBalancers") {
        let pools = balancer["properties"]["backendAddressPools"].as_array().cloned();
        for pool in pools.into_iter().flatten() {
            let addresses = pool["properties"]["loadBalancerBackendAddresses"].as_array().cloned();
            found.extend(addresses.into_iter().flatten().map(|address| {
                let text =
                    |key: &str| address["properties"][key].as_str().unwrap_or("None").to_owned();
                (text("ipAddress"), text("adminState"))
            }));
        }
    }
    found
}

fn delete_node(lab: &mut sim::Laboratory, index: u32) {
    let (now, name) = (lab.now_ms, format!("vmss{index:06}"));
    let object = kube_emulator::ObjectRef::new("nodes", "", &name);
    lab.kubernetes.delete(object, now).expect("the node is deleted");
}

#[test]
fn nodes_that_go_are_two_writes_and_a_restart_begins_to_count_anew() {
    let mut lab = fifty();
    lab.settle(DAY_MS);
    lab.azure.clear_calls();
    let before = pools(&lab);
    assert_eq!(before.len(), 3);
    for name in ["vmss000001", "vmss000002"] {
        let taint = json!({"spec": {"taints": [{"key": "ToBeDeletedByClusterAutoscaler"}]}});
        patch(&mut lab, "nodes", "", name, taint);
    }
    lab.pass(10_000);
    assert_eq!(lab.calls().0, 1, "both are Down by one write");
    let mut drained = before.clone();
    drained[1..].iter_mut().for_each(|(_, admin)| *admin = "Down".to_owned());
    assert_eq!(pools(&lab), drained);
    delete_node(&mut lab, 1);
    lab.pass(19_000);
    assert_eq!(pools(&lab), drained, "29 s are not over");
    lab.pass(4_000);
    assert_eq!(pools(&lab), [drained[0].clone(), drained[2].clone()]);
    assert_eq!(lab.calls().0, 2);
    // The other one has drained for longer: it leaves with its object.
    delete_node(&mut lab, 2);
    lab.pass(3_000);
    assert_eq!(pools(&lab), before[..1]);
    assert_eq!(lab.calls().0, 3);

    // Without a taint, and with a restart on the way.
    create(&mut lab, node(1));
    lab.settle(DAY_MS);
    assert_eq!(pools(&lab), before[..2]);
    delete_node(&mut lab, 1);
    lab.pass(20_000);
    assert_eq!(pools(&lab), drained[..2]);
    lab.restart();
    lab.pass(29_000);
    assert_eq!(pools(&lab), drained[..2], "its full time again");
    lab.pass(5_000);
    assert_eq!(pools(&lab), before[..1]);
    assert!(lab.settle(DAY_MS) && lab.controller().plan().is_empty());
}

#[test]
fn fifty_deleted_together() {
    let mut lab = fifty();
    lab.settle(DAY_MS);
    lab.azure.clear_calls();
    (0..50).for_each(|n| delete(&mut lab, "default", &format!("web-{n:04}")));
    assert!(lab.settle(DAY_MS), "{:#?}", lab.controller().report());
    let (writes, _) = lab.calls();
    assert_eq!(writes, 52, "one security group, one load balancer, 50 public IPs");
    assert_eq!(leftovers(&lab), Vec::<String>::new());
}

/// A public IP is made before a frontend uses it, and has another ETag once one does.
#[test]
fn the_first_change_of_a_bound_public_ip_is_one_read_and_one_write() {
    let mut lab = served([]);
    create(&mut lab, service(1));
    lab.settle(DAY_MS);
    let label = |lab: &mut sim::Laboratory, label: &str| {
        lab.azure.clear_calls();
        let key = "service.beta.kubernetes.io/azure-dns-label-name";
        let body = json!({"metadata": {"annotations": {key: label}}});
        patch(lab, "services", "default", "web-0001", body);
        assert!(lab.settle(DAY_MS));
        let calls = lab.azure.calls().iter();
        calls.map(|c| format!("{} {}", c.method, c.status)).collect::<Vec<_>>()
    };
    assert_eq!(label(&mut lab, "first"), ["GET 200", "PUT 200"]);
    assert_eq!(label(&mut lab, "second"), ["PUT 200"], "its ETag is known now");
}

#[test]
fn ten_minutes_of_nothing_write_nothing() {
    let mut lab = fifty();
    lab.settle(DAY_MS);
    lab.azure.clear_calls();
    lab.pass(600_000);
    let (writes, reads) = lab.calls();
    assert_eq!(writes, 0);
    assert_eq!(reads, 5 * 4, "four lists, each every two minutes");
}

#[test]
fn a_restart_with_nothing_changed_writes_nothing() {
    let mut lab = fifty();
    lab.settle(DAY_MS);
    lab.azure.clear_calls();
    let told = lab.kubernetes.list("events", None);
    lab.restart();
    assert!(lab.settle(DAY_MS));
    assert_eq!(lab.kubernetes.list("events", None), told, "nothing new to anybody");
    let (writes, reads) = lab.calls();
    assert_eq!(writes, 0);
    assert!(reads <= 10, "{reads} reads");
    assert!(lab.controller().plan().is_empty());
}

#[test]
fn readiness_flips_call_nobody() {
    let mut lab = fifty();
    lab.settle(DAY_MS);
    lab.azure.clear_calls();
    for flip in 0..5_000u32 {
        let status = if flip % 2 == 0 { "False" } else { "True" };
        let body = json!({"metadata": {"annotations": {"flip": flip.to_string()}},
            "status": {"conditions": [{"type": "Ready", "status": status}]}});
        patch(&mut lab, "nodes", "", &format!("vmss{:06}", flip % 3), body);
        lab.turn();
    }
    assert_eq!(lab.calls(), (0, 0));
}

#[test]
fn a_refused_public_ip_holds_nobody_else_up() {
    let mut lab = fifty();
    let base = base_of(&lab, "web-0017");
    let refused = refusal(400, "PublicIPCountLimitReached", None);
    let path = format!("publicIPAddresses/kubernetes-{base}");
    lab.azure.add_fault(fault(refused, "PUT", &path).always());
    lab.pass(1_000);
    assert_eq!(addressed(&lab), (49, 1), "the others have their addresses at once");
    let events = lab.kubernetes.list("events", None);
    assert!(events.iter().any(|e| e["reason"] == "SyncLoadBalancerFailed"
        && e["message"].as_str().is_some_and(|m| m.contains("PublicIPCountLimitReached"))));
    lab.azure.clear_faults();
    assert!(lab.settle(DAY_MS));
    assert_eq!(addressed(&lab), (50, 0), "it recovers by itself");
}

#[test]
fn a_conflict_that_does_not_pass_is_told_and_backed_off() {
    for (code, most, warns) in [("InvalidResourceLocation", 2, true), ("ScopeLocked", 1, false)] {
        let mut lab = served([]);
        create(&mut lab, service(0));
        lab.azure.add_fault(refusing(409, code, "PUT", "loadBalancers/").always());
        lab.azure.clear_calls();
        lab.pass(7_000);
        let calls = lab.azure.calls();
        let puts = calls.iter().filter(|c| c.is_write() && c.path.contains("loadBalancers/"));
        let puts = puts.count();
        assert!((1..=most).contains(&puts), "{code}: {puts} PUTs in 7 s");
        let events = lab.kubernetes.list("events", None);
        let told = events.iter().any(|e| {
            e["type"] == "Warning" && e["message"].as_str().is_some_and(|m| m.contains(code))
        });
        assert!(told || !warns, "{code}: no Warning");
        lab.azure.clear_faults();
        assert!(lab.settle(DAY_MS), "{code}");
        assert_eq!(addressed(&lab), (1, 0), "{code}: it recovers by itself");
    }
}

#[test]
fn an_owner_who_edits_what_azure_refused_does_not_wait_for_the_next_try() {
    let mut lab = laboratory(&json!({}));
    create(&mut lab, service(0));
    lab.azure.add_fault(
        refusing(400, "PublicIPCountLimitReached", "PUT", "publicIPAddresses/").always(),
    );
    lab.pass(10 * 60_000);
    lab.azure.clear_faults();
    lab.azure.clear_calls();
    lab.pass(100);
    assert_eq!(lab.calls().0, 0, "the next try is far away");
    let edit = json!({"spec": {"sessionAffinity": "ClientIP"}});
    patch(&mut lab, "services", "default", "web-0000", edit);
    lab.pass(100);
    assert_eq!(addressed(&lab), (1, 0));
}

#[test]
fn what_a_service_had_that_vanished_under_a_running_controller_goes() {
    let mut lab = served((0..2).map(service));
    let base = base_of(&lab, "web-0001");
    // Somebody takes the finalizer off, and the Service is gone before anybody looks.
    vanish(&mut lab, "web-0001");
    assert!(lab.settle(DAY_MS));
    let ips = lab.azure.resources_of("Microsoft.Network/publicIPAddresses");
    assert!(!ips.iter().any(|ip| ip["name"].as_str().is_some_and(|name| name.contains(&base))));
    let balancer = &lab.azure.resources_of("Microsoft.Network/loadBalancers")[0]["properties"];
    assert_eq!(balancer["frontendIPConfigurations"].as_array().map(Vec::len), Some(1));
}

#[test]
fn what_is_being_made_for_a_service_that_vanishes_goes() {
    let mut lab = served([service(0)]);
    lab.azure.options_mut().lro_ms = 20_000;
    create(&mut lab, service(1));
    lab.pass(1_000);
    let base = base_of(&lab, "web-0001");
    assert!(lab.controller().writing().any(|(id, _)| id.name().contains(&base)));
    vanish(&mut lab, "web-0001");
    assert!(lab.settle(DAY_MS));
    let ips = lab.azure.resources_of("Microsoft.Network/publicIPAddresses");
    assert!(!ips.iter().any(|ip| ip["name"].as_str().is_some_and(|name| name.contains(&base))));
}

#[test]
fn a_service_that_is_gone_is_forgotten_when_nothing_bears_its_names() {
    let names = |lab: &sim::Laboratory| lab.controller().world().abandoned.len();
    let mut lab = served((0..3).map(service));
    delete(&mut lab, "default", "web-0001");
    assert!(lab.settle(DAY_MS));
    let calls = lab.controller().counts().kubernetes;
    lab.pass(30 * 60_000);
    let written = lab.controller().counts().kubernetes - calls;
    assert_eq!((names(&lab), written, noted(&lab)), (0, 0, Value::Null), "nothing bears them");
    // Another one's finalizer is taken off, and what it has stays as long as nothing is written.
    lab.pause("true");
    vanish(&mut lab, "web-0000");
    lab.pass(60 * 60_000);
    assert!(names(&lab) > 0);
    assert!(noted(&lab).as_str().is_some_and(|text| text.contains("default/web-0000")));
    lab.pause("false");
    assert!(lab.settle(DAY_MS));
    lab.pass(60 * 60_000);
    assert_eq!((names(&lab), noted(&lab)), (0, Value::Null));
}

/// What the ledger notes of Services that went without being released.
fn noted(lab: &sim::Laboratory) -> Value {
    let ledger = kube_emulator::ObjectRef::new("configmaps", "kube-system", "ballast-ledger");
    lab.kubernetes.get(ledger).expect("it is there")["data"]["gone"].clone()
}

#[test]
fn what_a_service_had_that_vanished_goes_though_the_process_ends_first() {
    let mut lab = served((0..2).map(service));
    let base = base_of(&lab, "web-0001");
    let bears = |lab: &sim::Laboratory| {
        let all = lab.azure.resources().into_iter();
        all.filter(|resource| resource.to_string().contains(&base)).count()
    };
    lab.pause("true");
    vanish(&mut lab, "web-0001");
    lab.pass(60_000);
    assert!(bears(&lab) > 0);
    assert!(noted(&lab).as_str().is_some_and(|text| text.contains(&base)), "{}", noted(&lab));
    lab.restart();
    assert!(lab.settle(DAY_MS));
    assert_eq!((bears(&lab), addressed(&lab)), (0, (1, 0)));
}

/// A process whose watch lags would take a Service for gone that has the name of one that is.
#[test]
fn nothing_is_made_for_a_service_while_its_name_is_noted_as_gone() {
    let mut lab = served((0..2).map(service));
    lab.pause("true");
    vanish(&mut lab, "web-0001");
    lab.pass(60_000);
    let has = |lab: &sim::Laboratory| noted(lab).to_string().contains("default/web-0001");
    assert!(has(&lab));
    let away = kube_emulator::Fault::next(kube_emulator::Failure::Unavailable);
    let away = away.on_kind("configmaps").on_method(kube_emulator::Method::Patch);
    lab.kubernetes.inject(away.times(12));
    lab.azure.clear_calls();
    create(&mut lab, service(1));
    lab.pause("false");
    lab.pass(4_000);
    assert_eq!((writes_of(&lab, "PUT", "publicIPAddresses"), has(&lab)), (0, true));
    assert!(lab.settle(DAY_MS));
    assert_eq!((addressed(&lab), has(&lab)), ((2, 0), false));
}

/// Until the note is written nothing goes: a process that ended before would leave an orphan that
/// is half taken away.
#[test]
fn what_a_service_had_that_vanished_stays_until_that_is_noted() {
    let mut lab = served((0..2).map(service));
    let away = kube_emulator::Fault::next(kube_emulator::Failure::Unavailable);
    let away = away.on_kind("configmaps").on_method(kube_emulator::Method::Patch);
    lab.kubernetes.inject(away.times(12));
    lab.azure.clear_calls();
    vanish(&mut lab, "web-0001");
    let taken = |lab: &sim::Laboratory| {
        let balancers = writes_of(lab, "PUT", "loadBalancers");
        (balancers, writes_of(lab, "DELETE", "publicIPAddresses"))
    };
    lab.pass(4_000);
    assert_eq!((taken(&lab), noted(&lab)), ((0, 0), Value::Null));
    assert!(lab.settle(DAY_MS));
    assert_eq!(taken(&lab), (1, 1));
}

#[test]
fn what_azure_is_still_changing_for_a_former_process_is_looked_at_soon() {
    let mut lab = served([]);
    lab.azure.options_mut().lro_ms = 20_000;
    create(&mut lab, service(0));
    lab.pass(1_000);
    lab.restart();
    lab.azure.options_mut().lro_ms = 0;
    lab.pass(60_000);
    assert_eq!(addressed(&lab), (1, 0), "and not with the next check, two minutes later");
}

#[test]
fn a_frontend_that_fails_the_load_balancer_is_found() {
    let mut lab = fifty();
    let base = base_of(&lab, "web-0031");
    let refused = refusing(400, "InvalidRequestFormat", "PUT", "loadBalancers/kubernetes$");
    lab.azure.add_fault(refused.on_body(&format!("{base}-TCP-80")).always());
    lab.pass(1_000);
    assert_eq!(addressed(&lab), (49, 1));
    let (writes, _) = lab.calls();
    assert!(writes <= 50 + 1 + 16, "{writes} writes: the search halves");
    lab.azure.clear_faults();
    assert!(lab.settle(DAY_MS));
    assert_eq!(addressed(&lab), (50, 0));
}

/// Eight Services on a load balancer that takes five seconds to be written; Azure refuses what is
/// written for web-0003.
fn one_at_fault_of_eight() -> sim::Laboratory {
    let mut lab = served([]);
    lab.azure.options_mut().lro_ms = 5_000;
    (0..8).for_each(|n| create(&mut lab, service(n)));
    let base = base_of(&lab, "web-0003");
    let refused = refusing(400, "InvalidRequestFormat", "PUT", "loadBalancers/kubernetes$");
    lab.azure.add_fault(refused.on_body(&format!("{base}-TCP-80")).always());
    lab
}

/// A new Service every two seconds, and a load balancer that takes five to be written: there is
/// always something to be sent. Those who were held back beside the one at fault have their turn.
#[test]
fn a_search_goes_on_while_others_come() {
    let mut lab = one_at_fault_of_eight();
    for n in 8..98 {
        create(&mut lab, service(n));
        lab.pass(2_000);
    }
    let services = lab.kubernetes.list("services", None);
    let first = services.iter().filter(|s| {
        s["metadata"]["name"].as_str().is_some_and(|name| ("web-0000".."web-0008").contains(&name))
    });
    let served = first.filter(|s| !s["status"]["loadBalancer"]["ingress"][0]["ip"].is_null());
    assert_eq!(served.count(), 7, "all but web-0003");
}

/// Owners edit those that are tried, one after the other, faster than the load balancer is written.
/// A Service that comes meanwhile does not wait for them to stop.
#[test]
fn a_search_goes_on_while_those_that_are_tried_are_edited() {
    let mut lab = one_at_fault_of_eight();
    let key = "service.beta.kubernetes.io/azure-load-balancer-tcp-idle-timeout";
    for second in 0..180 {
        let name = format!("web-{:04}", [0, 1, 2, 4, 5, 6, 7][second % 7]);
        let minutes = (4 + second % 20).to_string();
        let edit = json!({"metadata": {"annotations": {key: minutes}}});
        patch(&mut lab, "services", "default", &name, edit);
        if second == 60 {
            create(&mut lab, service(8));
        }
        lab.pass(1_000);
    }
    let services = lab.kubernetes.list("services", None);
    let last = services.iter().find(|s| s["metadata"]["name"] == "web-0008").expect("it is there");
    assert!(!last["status"]["loadBalancer"]["ingress"][0]["ip"].is_null(), "{last}");
}

#[test]
fn killed_at_any_moment_of_creating_and_deleting() {
    for moment in 0..20u64 {
        let mut lab = fifty();
        lab.azure_latency_ms = 20;
        lab.azure.options_mut().lro_ms = 50;
        lab.pass(moment * 23);
        lab.restart();
        assert!(lab.settle(DAY_MS), "creating, moment {moment}");
        assert_eq!(addressed(&lab), (50, 0), "moment {moment}");
        (0..50).for_each(|n| delete(&mut lab, "default", &format!("web-{n:04}")));
        lab.pass(moment * 17);
        lab.restart();
        assert!(lab.settle(DAY_MS), "deleting, moment {moment}");
        assert_eq!(leftovers(&lab), Vec::<String>::new(), "moment {moment}");
        assert_eq!(addressed(&lab), (0, 0), "moment {moment}");
    }
}

#[test]
fn a_service_of_another_class_is_not_touched() {
    let mut lab = laboratory(&json!({}));
    let mut other = service(1);
    other["spec"]["loadBalancerClass"] = json!("example.com/other");
    other["metadata"]["finalizers"] = json!(["service.kubernetes.io/load-balancer-cleanup"]);
    create(&mut lab, other);
    let now = lab.now_ms;
    let object = kube_emulator::ObjectRef::new("services", "default", "web-0001");
    let status = json!({"status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}});
    let status = kube_emulator::Patch::Merge(status);
    lab.kubernetes.patch(object, kube_emulator::Part::Status, &status, now).expect("status");
    assert!(lab.settle(DAY_MS));
    let object = kube_emulator::ObjectRef::new("services", "default", "web-0001");
    let service = lab.kubernetes.get(object).expect("it is there");
    assert_eq!(service["status"]["loadBalancer"]["ingress"][0]["ip"], "192.0.2.1");
    assert_eq!(service["metadata"]["finalizers"].as_array().map(Vec::len), Some(1));
    assert_eq!(lab.calls().0, 0);
}

#[test]
fn a_service_deleted_while_its_public_ip_is_made_leaves_nothing() {
    for moment in 0..12u64 {
        let mut lab = served([]);
        lab.azure_latency_ms = 30;
        lab.azure.options_mut().lro_ms = 40;
        create(&mut lab, service(1));
        lab.pass(moment * 20);
        delete(&mut lab, "default", "web-0001");
        assert!(lab.settle(DAY_MS));
        assert_eq!(leftovers(&lab), Vec::<String>::new(), "moment {moment}");
        assert_eq!(addressed(&lab), (0, 0));
    }
}
