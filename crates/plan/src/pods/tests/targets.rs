//! Target ports that are names.

use super::stage::{Stage, service, uid};
use model::kubernetes::{Readiness, ServicePort, SlicePort, TargetPort};
use model::report::{State, Wait};
use std::sync::Arc;

const BALANCER: &str = "PUT 00000001-1111-4222-8333-0123456789ab";

/// A Service whose ports have these names, numbers and targets.
fn put(stage: &mut Stage, ports: &[(&str, u16, &str)]) {
    let mut web = service(1);
    let entry = |(name, port, target): &(&str, u16, &str)| ServicePort {
        name: Arc::from(*name),
        port: *port,
        target_port: match target.parse() {
            Ok(number) => TargetPort::Number(number),
            Err(_) => TargetPort::Name(Arc::from(*target)),
        },
        ..web.ports[0].clone()
    };
    web.ports = ports.iter().map(entry).collect();
    stage.put(web);
}

/// A slice with one Pod that gives the Service's ports these numbers.
fn offer(stage: &mut Stage, name: &str, pod: u8, ports: &[(&str, u16)]) {
    stage.slice(name, 1, &[(pod, 1)]);
    stage.edit_slice(name, |slice| {
        let port =
            |(name, number): &(&str, u16)| SlicePort { name: Arc::from(*name), number: *number };
        slice.ports = ports.iter().map(port).collect();
    });
}

fn ready(stage: &mut Stage, name: &str, readiness: Readiness) {
    stage.edit_slice(name, |slice| slice.endpoints[0].readiness = readiness);
}

/// Frontend and backend ports of Service 1's rules.
fn rules(stage: &Stage) -> Vec<(u16, u16)> {
    let balancers = stage.world.azure.balancers.known().expect("known");
    let balancer = balancers.values().next().expect("the only one");
    balancer.rules.iter().map(|rule| (rule.frontend_port, rule.backend_port)).collect()
}

/// Rules and values of Service 1's findings.
fn findings(stage: &mut Stage) -> Vec<String> {
    let (_, report) = stage.plan();
    let found = report.services[&uid(1)].findings.iter();
    found.map(|f| format!("{} {}", f.rule, f.value).trim_end().to_owned()).collect()
}

#[test]
fn a_name_is_the_number_that_pods_give_it() {
    let mut stage = Stage::new();
    put(&mut stage, &[("a", 80, "http"), ("b", 443, "8443"), ("c", 9000, "metrics")]);
    offer(&mut stage, "web-a", 10, &[("a", 8080), ("c", 9100)]);
    offer(&mut stage, "web-b", 11, &[("c", 9100), ("a", 8080)]);
    stage.settle();
    assert_eq!(rules(&stage), [(443, 8443), (80, 8080), (9000, 9100)]);
    assert_eq!(findings(&mut stage), Vec::<String>::new());
    assert_eq!(stage.calls.iter().filter(|call| *call == BALANCER).count(), 1, "{:?}", stage.calls);
    assert_eq!(stage.table().len(), 2);
}

#[test]
fn without_a_pod_there_is_no_rule_and_no_address_is_told() {
    let mut stage = Stage::new();
    put(&mut stage, &[("", 80, "http")]);
    stage.settle();
    assert_eq!(rules(&stage), []);
    assert_eq!(findings(&mut stage), ["TargetPortUnknown targetPort http", "NoBackends"]);
    let (_, report) = stage.plan();
    assert_eq!(report.services[&uid(1)].waits, [Wait::Pods]);
    assert_eq!(stage.world.kubernetes.services[&uid(1)].ingress, []);
    // A Pod without such a port is no answer either.
    offer(&mut stage, "web-a", 10, &[]);
    stage.settle();
    assert_eq!(findings(&mut stage), ["TargetPortUnknown targetPort http"]);
    // What is not ready yet tells the number already.
    offer(&mut stage, "web-a", 10, &[("", 8080)]);
    ready(&mut stage, "web-a", Readiness::NotReady);
    stage.settle();
    assert_eq!(rules(&stage), [(80, 8080)]);
    assert!(stage.world.kubernetes.services[&uid(1)].ingress[0].ip.is_some());
    assert_eq!(findings(&mut stage), ["NoBackends"]);
    // Nor does the rule go with the last Pod.
    stage.world.kubernetes.slices.clear();
    stage.settle();
    assert_eq!(rules(&stage), [(80, 8080)]);
    let (_, report) = stage.plan();
    assert_eq!(report.services[&uid(1)].state, State::Programmed);
}

#[test]
fn a_number_that_changes_waits_until_the_last_old_pod_is_not_ready() {
    let mut stage = Stage::new();
    put(&mut stage, &[("", 80, "http")]);
    offer(&mut stage, "old", 10, &[("", 8080)]);
    stage.settle();
    offer(&mut stage, "new", 11, &[("", 9090)]);
    ready(&mut stage, "new", Readiness::NotReady);
    stage.settle();
    assert_eq!((rules(&stage), findings(&mut stage)), (vec![(80, 8080)], Vec::new()));
    ready(&mut stage, "new", Readiness::Ready);
    stage.settle();
    assert_eq!(rules(&stage), [(80, 8080)]);
    assert_eq!(findings(&mut stage), ["TargetPortsDiffer http is 8080, 9090"]);
    ready(&mut stage, "old", Readiness::Terminating);
    stage.settle();
    assert_eq!((rules(&stage), findings(&mut stage)), (vec![(80, 9090)], Vec::new()));
}

#[test]
fn pods_that_differ_from_the_first_have_no_rule() {
    let mut stage = Stage::new();
    put(&mut stage, &[("", 80, "http")]);
    offer(&mut stage, "web-a", 10, &[("", 8080)]);
    offer(&mut stage, "web-b", 11, &[("", 9090)]);
    stage.settle();
    assert_eq!(rules(&stage), []);
    assert_eq!(findings(&mut stage), ["TargetPortsDiffer http is 8080, 9090"]);
}

#[test]
fn two_ports_never_lead_to_one_number() {
    let mut stage = Stage::new();
    put(&mut stage, &[("a", 80, "http"), ("b", 81, "8080"), ("c", 82, "web")]);
    offer(&mut stage, "web-a", 10, &[("a", 8080), ("b", 8080), ("c", 8081)]);
    stage.settle();
    assert_eq!(rules(&stage), [(81, 8080), (82, 8081)]);
    assert_eq!(findings(&mut stage), ["TargetPortShared http is 8080"]);
}

#[test]
fn slices_of_others_say_nothing() {
    let mut stage = Stage::new();
    put(&mut stage, &[("", 80, "http")]);
    offer(&mut stage, "web-a", 10, &[("", 8080)]);
    offer(&mut stage, "evil", 11, &[("", 22)]);
    let name = model::ServiceName::new("default", "evil");
    let slice = stage.world.kubernetes.slices.remove(&name).expect("put there");
    let mut slice = Arc::unwrap_or_clone(slice);
    slice.name = model::ServiceName::new("evil", "evil");
    stage.world.kubernetes.slices.insert(slice.name.clone(), Arc::new(slice));
    stage.settle();
    assert_eq!(rules(&stage), [(80, 8080)]);
}
