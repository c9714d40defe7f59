//! The ledger: what is open is known to be ours, whoever runs, and whatever was taken away by hand.

use crate::support::container::{merge, refusing, service_of, uid_of};
use crate::support::*;
use azure_emulator::Fault;
use control::NoticeKind;
use explain::orphans::find;
use kube_emulator::{Failure, Fault as ApiFault, Method, ObjectRef, Part};
use model::ledger::Holder;
use serde_json::{Value, json};
use sim::Laboratory;
use std::collections::BTreeSet;
use std::net::IpAddr;

fn ledger() -> ObjectRef<'static> {
    ObjectRef::new("configmaps", "kube-system", "ballast-ledger")
}

fn with(annotations: &[(&str, &str)]) -> Value {
    let mut service = service(0);
    for (key, value) in annotations {
        service["metadata"]["annotations"][format!("{PREFIX}{key}")] = json!(value);
    }
    service
}

fn brought() -> Value {
    with(&[("azure-pip-name", "byo-pip")])
}

fn locked() -> Fault {
    refusing(409, "ScopeLocked", "PUT", "networkSecurityGroups/nsg$").always()
}

/// Somebody deletes the load balancer.
fn take_away(lab: &mut Laboratory) {
    call(lab, "DELETE", &network("loadBalancers/kubernetes"), None);
}

/// The lines of the ledger.
fn lines(lab: &Laboratory) -> Vec<String> {
    let Ok(object) = lab.kubernetes.get(ledger()) else { return Vec::new() };
    let text = object["data"]["destinations"].as_str().expect("a text");
    text.lines().map(str::to_owned).collect()
}

/// Another client writes the lines of the ledger.
fn write(lab: &mut Laboratory, text: &str) {
    patch_part(lab, ledger(), Part::Main, json!({"data": {"destinations": text}}));
}

fn delete_ledger(lab: &mut Laboratory) {
    remove(lab, "configmaps", "kube-system", "ballast-ledger");
}

/// Whether the controller says that it made a ledger of what stood.
fn adopts(lab: &Laboratory) -> bool {
    lab.notices.iter().any(|n| n.kind == NoticeKind::Planned && n.text.contains("no ledger"))
}

#[test]
fn what_is_opened_is_in_the_ledger_first_and_leaves_it_last() {
    let mut lab = laboratory(&json!({}));
    lab.azure.options_mut().lro_ms = 5_000;
    create(&mut lab, brought());
    while !security_group(&lab).contains(BYO_ADDRESS) {
        lab.pass(10);
    }
    let uid = uid_of(&lab, "web-0000");
    assert_eq!(lines(&lab), [format!("{uid} {BYO_ADDRESS}")]);
    assert!(lab.settle(DAY_MS));
    delete(&mut lab, "default", "web-0000");
    while security_group(&lab).contains(BYO_ADDRESS) {
        assert_eq!(lines(&lab).len(), 1);
        lab.pass(10);
    }
    assert!(lab.settle(DAY_MS));
    assert_eq!(lines(&lab), Vec::<String>::new());
    assert!(!adopts(&lab), "there was nothing to adopt");
}

#[test]
fn a_rule_to_a_brought_ip_whose_frontend_somebody_took_away_closes_after_a_restart() {
    let mut lab = served([brought()]);
    assert!(security_group(&lab).contains(BYO_ADDRESS));
    // The status goes with the type, and the frontend by hand, while no process runs.
    lab.restart();
    take_away(&mut lab);
    let body = json!({"spec": {"type": "ClusterIP"}, "status": {"loadBalancer": {}}});
    merge(&mut lab, "services", "web-0000", Part::Main, body.clone());
    merge(&mut lab, "services", "web-0000", Part::Status, body);
    assert!(lab.settle(DAY_MS));
    assert!(!security_group(&lab).contains(BYO_ADDRESS), "{}", security_group(&lab));
    assert_eq!(lines(&lab), Vec::<String>::new());
}

#[test]
fn a_finalizer_stays_while_a_rule_leads_to_an_address_whose_frontend_was_taken_away() {
    let mut lab = served([brought()]);
    lab.azure.add_fault(locked());
    lab.restart();
    take_away(&mut lab);
    delete(&mut lab, "default", "web-0000");
    lab.pass(INTERVAL_MS);
    assert!(service_of(&lab, "web-0000").is_some(), "its finalizer stays");
    assert!(security_group(&lab).contains(BYO_ADDRESS));
    lab.azure.clear_faults();
    assert!(lab.settle(DAY_MS));
    assert!(service_of(&lab, "web-0000").is_none());
    assert!(!security_group(&lab).contains(BYO_ADDRESS));
}

#[test]
fn a_node_that_goes_while_no_process_runs_is_closed() {
    let nics = json!({"loadBalancerBackendPoolConfigurationType": "nodeIPConfiguration"});
    let mut lab = laboratory(&nics);
    lab.azure.seed(scale_set("vmss", 3));
    create(&mut lab, with(&[("azure-disable-load-balancer-floating-ip", "true")]));
    assert!(lab.settle(DAY_MS), "{:#?}", lab.controller().report());
    assert!(security_group(&lab).contains("\"10.224.0.4\""));
    assert_eq!(lines(&lab), ["node 10.224.0.4 10.224.0.5 10.224.0.6"]);
    lab.restart();
    remove(&mut lab, "nodes", "", "vmss000000");
    assert!(lab.settle(DAY_MS));
    assert!(!security_group(&lab).contains("\"10.224.0.4\""));
    lab.pass(INTERVAL_MS);
    assert_eq!(lines(&lab), ["node 10.224.0.5 10.224.0.6"]);
}

#[test]
fn an_additional_address_that_no_status_told_is_closed_after_a_restart() {
    let mut lab = laboratory(&json!({}));
    let more = "20.9.9.9";
    create(&mut lab, with(&[("azure-additional-public-ips", more)]));
    while !security_group(&lab).contains(more) {
        lab.pass(1);
    }
    lab.restart();
    vanish(&mut lab, "web-0000");
    lab.excuse("nothing-else", "", "its finalizer was taken off by hand");
    assert!(lab.settle(DAY_MS));
    assert!(!security_group(&lab).contains(more), "{}", security_group(&lab));
}

#[test]
fn what_stands_at_the_first_start_is_adopted_once_and_that_is_said() {
    let mut lab = served([service(0)]);
    // As a release without a ledger, or the Go provider, leaves it; and another cluster's address.
    delete_ledger(&mut lab);
    let mut nsg = resource(&lab, "networkSecurityGroups/nsg");
    let inside = &mut nsg["properties"]["securityRules"][0]["properties"];
    let own = inside["destinationAddressPrefix"].take();
    inside["destinationAddressPrefixes"] = json!([own, "20.77.7.7"]);
    inside.as_object_mut().expect("an object").remove("destinationAddressPrefix");
    lab.azure.seed(vec![nsg]);
    lab.excuse("security", "20.77.7.7", "another cluster's");
    lab.restart();
    lab.azure.clear_calls();
    assert!(lab.settle(DAY_MS));
    assert_eq!(lab.calls().0, 0, "nothing is written to Azure");
    let uid = uid_of(&lab, "web-0000");
    assert_eq!(lines(&lab), [format!("{uid} {}", own.as_str().expect("an address"))]);
    assert!(adopts(&lab));
    lab.notices.clear();
    lab.restart();
    delete(&mut lab, "default", "web-0000");
    assert!(lab.settle(DAY_MS));
    assert!(!adopts(&lab));
    assert!(security_group(&lab).contains("20.77.7.7"), "another cluster's stays");
    assert!(!security_group(&lab).contains(own.as_str().expect("an address")));
}

#[test]
fn a_ledger_that_somebody_deletes_is_made_again_with_what_nothing_else_tells() {
    let mut lab = served([brought()]);
    lab.azure.add_fault(locked());
    take_away(&mut lab);
    let body = json!({"metadata": {"annotations": {format!("{PREFIX}azure-pip-name"): null}}});
    patch(&mut lab, "services", "default", "web-0000", body);
    lab.pass(INTERVAL_MS);
    delete_ledger(&mut lab);
    lab.pass(2 * INTERVAL_MS);
    assert!(lines(&lab).iter().any(|line| line.contains(BYO_ADDRESS)), "{:?}", lines(&lab));
    lab.restart();
    lab.azure.clear_faults();
    assert!(lab.settle(DAY_MS));
    assert!(!security_group(&lab).contains(BYO_ADDRESS));
}

#[test]
fn what_only_the_ledger_tells_of_a_service_that_vanished_is_an_orphan() {
    let mut lab = served([brought(), service(1)]);
    take_away(&mut lab);
    vanish(&mut lab, "web-0000");
    lab.restart();
    let policy = lab.config().clone();
    let found = find(&lab.read_under(&policy), &policy);
    let listed: Vec<_> = found.list.iter().map(|o| (o.kind, o.name.to_string())).collect();
    let [(kind, name)] = &listed[..] else { panic!("one is listed: {listed:?}") };
    assert_eq!(*kind, "security rule");
    assert!(name.ends_with(&format!("to {BYO_ADDRESS}")), "{name}");
    assert!(lab.settle(DAY_MS));
    assert!(!security_group(&lab).contains(BYO_ADDRESS));
    assert_eq!(find(&lab.read_under(&policy), &policy).list, []);
}

#[test]
fn a_ledger_that_cannot_be_read_is_told_and_nothing_is_opened_or_closed() {
    let mut lab = served([brought()]);
    let right = lines(&lab).concat();
    write(&mut lab, "everything");
    lab.restart();
    delete(&mut lab, "default", "web-0000");
    create(&mut lab, service(1));
    lab.pass(3 * INTERVAL_MS);
    let said: BTreeSet<&str> =
        lab.controller().report().findings.iter().map(|finding| finding.rule).collect();
    assert_eq!(said, BTreeSet::from(["LedgerUnreadable"]));
    assert!(security_group(&lab).contains(BYO_ADDRESS));
    assert!(service_of(&lab, "web-0000").is_some(), "its finalizer stays");
    let text = lab.kubernetes.get(ledger()).expect("it is there")["data"]["destinations"].clone();
    assert_eq!(text, "everything", "nobody writes over it");
    write(&mut lab, &right);
    lab.pass(INTERVAL_MS);
    assert!(lab.settle(DAY_MS));
    assert!(!security_group(&lab).contains(BYO_ADDRESS));
    assert_eq!(addressed(&lab), (1, 0));
}

/// Nothing in Azure says who set a tag.
#[test]
fn a_tag_of_an_annotation_is_noted_before_it_is_set_and_goes_with_it() {
    let mut lab = served([service(0)]);
    let tagged = |lab: &Laboratory| {
        let ips = lab.azure.resources_of("Microsoft.Network/publicIPAddresses");
        ips.iter().filter(|ip| ip["tags"]["team"] == "net").count()
    };
    let noted = |lab: &Laboratory| {
        lab.kubernetes.get(ledger()).expect("it is there")["data"]["tags"].is_string()
    };
    let annotate = |lab: &mut Laboratory, value: Option<&str>| {
        let body = json!({"metadata": {"annotations": {format!("{PREFIX}azure-pip-tags"): value}}});
        patch(lab, "services", "default", "web-0000", body);
    };
    let away = ApiFault::next(Failure::Unavailable).on_kind("configmaps");
    lab.kubernetes.inject(away.on_method(Method::Patch).times(3));
    annotate(&mut lab, Some("team=net"));
    lab.pass(1_000);
    assert_eq!((tagged(&lab), noted(&lab)), (0, false));
    assert!(lab.settle(DAY_MS));
    assert_eq!((tagged(&lab), noted(&lab)), (1, true));
    lab.restart();
    annotate(&mut lab, None);
    assert!(lab.settle(DAY_MS));
    assert_eq!(tagged(&lab), 0);
    lab.pass(INTERVAL_MS);
    assert!(!noted(&lab), "it is read without the tag");
}

#[test]
fn fifty_services_that_come_together_cost_one_write_of_the_ledger() {
    let mut lab = laboratory(&json!({}));
    (0..50).for_each(|index| create(&mut lab, service(index)));
    lab.azure.options_mut().lro_ms = 3_000;
    assert!(lab.settle(DAY_MS));
    // Two of each Service, for finalizer and status.
    assert_eq!(lab.controller().counts().kubernetes, 50 + 50 + 1);
    assert_eq!(lines(&lab).len(), 50);
    let writes = |lab: &Laboratory| lab.controller().counts().kubernetes;
    lab.restart();
    assert!(lab.settle(DAY_MS));
    lab.pass(10 * INTERVAL_MS);
    assert_eq!(writes(&lab), 0, "a restart writes nothing");
}

#[test]
fn a_conflict_is_read_and_written_again() {
    let mut lab = served([service(0)]);
    // Another process writes the ledger, which this one has not seen.
    let address: IpAddr = "20.88.8.8".parse().expect("an address");
    let text = format!("{}\n- {address}\n", lines(&lab).concat());
    write(&mut lab, &text);
    create(&mut lab, service(1));
    assert!(lab.settle(DAY_MS));
    assert_eq!(addressed(&lab), (2, 0));
    let ledger = lab.controller().world().kubernetes.ledger.known().expect("read");
    let holders: BTreeSet<&Holder> = ledger.destinations.values().flatten().collect();
    assert_eq!(holders.len(), 2);
    assert!(!ledger.has(address), "it is not open");
}

#[test]
fn without_the_right_to_write_it_nothing_is_opened_and_that_is_told() {
    let mut lab = served([service(0)]);
    let fails = ApiFault::next(Failure::Conflict).on_kind("configmaps").on_method(Method::Patch);
    lab.kubernetes.inject(fails.times(1_000));
    create(&mut lab, service(1));
    lab.pass(60_000);
    let obstacles = lab.controller().obstacles();
    let told = obstacles.iter().find(|o| o.operation.contains("ConfigMap")).expect("it is told");
    assert_eq!(&*told.operation, "PATCH ConfigMap kube-system/ballast-ledger");
    assert_eq!(told.services.len(), 1);
    assert_eq!(addressed(&lab), (1, 1));
    // What closes does not wait for it.
    delete(&mut lab, "default", "web-0000");
    lab.pass(60_000);
    assert!(service_of(&lab, "web-0000").is_none());
}
