//! Readiness gates: a rolling update does not run ahead of the gateway, and a Pod never waits for
//! ever.

use crate::support::container::{pod_of, refusal, remove, service_of};
use crate::support::{Backends, sample_laboratory};
use azure_emulator::Fault;
use control::Options;
use kube_emulator::{ObjectRef, Part, Patch};
use model::kubernetes::READINESS_GATE;
use serde_json::{Value, json};
use sim::Laboratory;
use std::collections::BTreeSet;

const HOUR_MS: u64 = 3_600_000;
const REPLICAS: usize = 50;
/// Fifty and a quarter of it, rounded up.
const SURGE: usize = 63;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Gates {
    Ours,
    None,
}

fn laboratory(backends: Backends) -> Laboratory {
    sample_laboratory(backends, 5, Options::default())
}

fn service(lab: &mut Laboratory, name: &str) {
    let object = json!({"apiVersion": "v1", "kind": "Service",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"type": "LoadBalancer", "selector": {"app": "web"},
            "ports": [{"port": 80, "targetPort": 8080}]}});
    lab.kubernetes.create(object, lab.now_ms).expect("the Service is created");
}

/// A Pod whose containers do not run yet.
fn start(lab: &mut Laboratory, number: usize, gates: Gates) -> String {
    let name = format!("web-{number}");
    let mut object = json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": {"app": "web"}},
        "spec": {"nodeName": format!("vmss{:06}", number % 5),
            "containers": [{"name": "main", "image": "web"}]}});
    if gates == Gates::Ours {
        object["metadata"]["labels"][READINESS_GATE] = json!("enabled");
        object["spec"]["readinessGates"] = json!([{"conditionType": READINESS_GATE}]);
    }
    lab.kubernetes.create(object, lab.now_ms).expect("the Pod is created");
    let address = address(number);
    let status = json!({"phase": "Running", "podIP": address, "podIPs": [{"ip": address}],
        "hostIP": format!("10.224.0.{}", 4 + number % 5)});
    write_status(lab, &name, status);
    name
}

fn address(number: usize) -> String {
    format!("10.244.{}.{}", number / 200, 2 + number % 200)
}

/// What the kubelet writes; with a gate the emulator works out Ready by itself.
fn set_containers(lab: &mut Laboratory, name: &str, status: &str) {
    let conditions = json!([{"type": "ContainersReady", "status": status}]);
    write_status(lab, name, json!({ "conditions": conditions }));
    let pod = pod_of(lab, name).expect("it is there");
    if pod["spec"]["readinessGates"].is_null() {
        let conditions = json!([{"type": "Ready", "status": status}]);
        write_status(lab, name, json!({ "conditions": conditions }));
    }
}

/// A Pod whose containers are ready.
fn start_ready(lab: &mut Laboratory, number: usize, gates: Gates) -> String {
    let name = start(lab, number, gates);
    set_containers(lab, &name, "True");
    name
}

/// Service `web` has all but its Pods.
fn serving() -> Laboratory {
    let mut lab = laboratory(Backends::Pods);
    service(&mut lab, "web");
    assert!(lab.settle(HOUR_MS));
    lab
}

fn write_status(lab: &mut Laboratory, name: &str, status: Value) {
    let object = ObjectRef::new("pods", "default", name);
    let patch = Patch::Strategic(json!({ "status": status }));
    lab.kubernetes.patch(object, Part::Status, &patch, lab.now_ms).expect("it is patched");
}

fn condition(lab: &Laboratory, name: &str, kind: &str) -> (String, String) {
    let pod = pod_of(lab, name).expect("it is there");
    let all = pod["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let found = all.into_iter().find(|c| c["type"] == kind).unwrap_or_default();
    let text = |key: &str| found[key].as_str().unwrap_or_default().to_owned();
    (text("status"), text("reason"))
}

fn gate(lab: &Laboratory, name: &str) -> (String, String) {
    condition(lab, name, READINESS_GATE)
}

fn words(status: &str, reason: &str) -> (String, String) {
    (status.to_owned(), reason.to_owned())
}

fn ip_of(lab: &Laboratory, service: &str) -> String {
    let service = service_of(lab, service).expect("it is there");
    service["status"]["loadBalancer"]["ingress"][0]["ip"].as_str().unwrap_or_default().to_owned()
}

fn backends(lab: &Laboratory, service: &str) -> BTreeSet<String> {
    let traffic = lab.azure.traffic(&ip_of(lab, service), "Tcp", 80);
    traffic.map(|t| t.backends.into_iter().collect()).unwrap_or_default()
}

/// Addresses that get traffic and belong to a Pod that runs.
fn rotation(lab: &Laboratory) -> usize {
    let pods = lab.kubernetes.list("pods", None);
    let live: BTreeSet<String> =
        pods.iter().filter_map(|p| p["status"]["podIP"].as_str().map(str::to_owned)).collect();
    backends(lab, "web").intersection(&live).count()
}

/// What a Deployment does with `maxUnavailable: 0` and `maxSurge: 25%`.
struct Rollout {
    gates: Gates,
    old: Vec<String>,
    fresh: Vec<(String, u64)>,
    number: usize,
}

impl Rollout {
    fn act(&mut self, lab: &mut Laboratory) {
        while self.fresh.len() < REPLICAS && self.old.len() + self.fresh.len() < SURGE {
            let name = start(lab, self.number, self.gates);
            // Containers take from 200 to 450 ms.
            let ready_ms = lab.now_ms + 200 + 50 * (self.number as u64 % 6);
            self.number += 1;
            self.fresh.push((name, ready_ms));
        }
        let now_ms = lab.now_ms;
        for (name, _) in self.fresh.iter().filter(|(_, at)| *at == now_ms) {
            set_containers(lab, name, "True");
        }
        let all = self.old.iter().chain(self.fresh.iter().map(|(name, _)| name));
        let mut ready = all.filter(|name| condition(lab, name, "Ready").0 == "True").count();
        while ready > REPLICAS
            && let Some(name) = self.old.pop()
        {
            let object = ObjectRef::new("pods", "default", &name);
            lab.kubernetes.delete(object, lab.now_ms).expect("the Pod is deleted");
            ready -= 1;
        }
    }

    fn is_over(&self, lab: &Laboratory) -> bool {
        self.old.is_empty()
            && self.fresh.iter().all(|(name, _)| condition(lab, name, "Ready").0 == "True")
    }
}

/// The fewest Pods in rotation while fifty are replaced.
fn fewest(gates: Gates) -> usize {
    let mut lab = laboratory(Backends::Pods);
    lab.azure_latency_ms = 2_000;
    service(&mut lab, "web");
    let old: Vec<String> = (0..REPLICAS).map(|n| start(&mut lab, n, gates)).collect();
    old.iter().for_each(|name| set_containers(&mut lab, name, "True"));
    assert!(lab.settle(HOUR_MS));
    assert_eq!(rotation(&lab), REPLICAS);
    let mut rollout = Rollout { gates, old, fresh: Vec::new(), number: REPLICAS };
    let mut fewest = REPLICAS;
    let end = lab.now_ms + HOUR_MS;
    while !rollout.is_over(&lab) {
        assert!(lab.now_ms < end, "the update never ends");
        rollout.act(&mut lab);
        lab.turn();
        fewest = fewest.min(rotation(&lab));
        lab.pass(10);
        fewest = fewest.min(rotation(&lab));
    }
    assert!(lab.settle(HOUR_MS));
    assert_eq!(rotation(&lab), REPLICAS);
    assert_eq!(backends(&lab, "web").len(), REPLICAS, "nobody else gets traffic");
    fewest
}

#[test]
fn a_rolling_update_with_gates_keeps_all_replicas_in_rotation() {
    assert_eq!(fewest(Gates::Ours), REPLICAS);
}

#[test]
fn without_gates_it_runs_ahead_of_the_load_balancer() {
    let fewest = fewest(Gates::None);
    assert!(fewest < REPLICAS, "{fewest}: the check above could not fail");
}

#[test]
fn a_gate_opens_when_the_call_is_answered_and_the_delay_is_measured() {
    let mut lab = serving();
    lab.azure_latency_ms = 2_000;
    let name = start(&mut lab, 0, Gates::Ours);
    lab.pass(5_000);
    assert_eq!(gate(&lab, &name), words("", ""), "its containers are not ready");
    assert!(backends(&lab, "web").is_empty());
    set_containers(&mut lab, &name, "True");
    lab.pass(1_999);
    assert_eq!(gate(&lab, &name), words("", ""));
    assert_eq!(lab.controller().gates().waiting(), 1);
    lab.pass(1);
    assert_eq!(gate(&lab, &name), words("True", "Programmed"));
    assert_eq!(condition(&lab, &name, "Ready").0, "True");
    assert!(lab.settle(HOUR_MS));
    let gates = lab.controller().gates();
    assert_eq!((gates.waiting(), gates.timeouts(), gates.delays().sum()), (0, 0, 2_000));
    assert_eq!(gates.delays().counts(), [0, 0, 0, 0, 1, 0, 0, 0, 0, 0]);
}

#[test]
fn an_open_gate_is_one_call_and_one_patch() {
    let mut lab = laboratory(Backends::Pods);
    service(&mut lab, "web");
    // The first Pod that is ready also ends the Service's own `NoBackends`.
    start_ready(&mut lab, 1, Gates::None);
    assert!(lab.settle(HOUR_MS));
    lab.azure.clear_calls();
    let patches = lab.controller().counts().kubernetes;
    start_ready(&mut lab, 0, Gates::Ours);
    assert!(lab.settle(HOUR_MS));
    assert_eq!(lab.calls().0, 1);
    assert_eq!(lab.controller().counts().kubernetes - patches, 1);
    lab.azure.clear_calls();
    lab.restart();
    assert!(lab.settle(HOUR_MS));
    assert_eq!((lab.calls().0, lab.controller().counts().kubernetes), (0, 0));
}

#[test]
fn a_gate_shuts_when_the_pod_is_not_ready_and_opens_again() {
    let mut lab = laboratory(Backends::Pods);
    service(&mut lab, "web");
    let name = start_ready(&mut lab, 0, Gates::Ours);
    assert!(lab.settle(HOUR_MS));
    assert_eq!(backends(&lab, "web").len(), 1);
    set_containers(&mut lab, &name, "False");
    assert!(lab.settle(HOUR_MS));
    assert_eq!(gate(&lab, &name), words("False", "PodNotReady"));
    assert!(backends(&lab, "web").is_empty());
    lab.azure_latency_ms = 2_000;
    set_containers(&mut lab, &name, "True");
    lab.turn();
    assert_eq!(condition(&lab, &name, "Ready").0, "False", "it has to get in again first");
    assert!(lab.settle(HOUR_MS));
    assert_eq!(gate(&lab, &name), words("True", "Programmed"));
}

/// Its address is still listed when it is ready again, but the call that takes it out is under way.
#[test]
fn a_gate_does_not_open_on_an_address_that_is_on_its_way_out() {
    let mut lab = laboratory(Backends::Pods);
    service(&mut lab, "web");
    let name = start_ready(&mut lab, 0, Gates::Ours);
    assert!(lab.settle(HOUR_MS));
    lab.azure_latency_ms = 2_000;
    set_containers(&mut lab, &name, "False");
    lab.pass(500);
    set_containers(&mut lab, &name, "True");
    for _ in 0..10_000 {
        if condition(&lab, &name, "Ready").0 == "True" {
            break;
        }
        lab.pass(10);
    }
    assert_eq!(backends(&lab, "web").len(), 1, "it is ready, so it is in rotation");
    assert_eq!(gate(&lab, &name), words("True", "Programmed"));
}

#[test]
fn a_gate_waits_for_every_service_and_for_no_other() {
    let mut lab = serving();
    lab.azure_latency_ms = 2_000;
    // The second one is not there yet: public IP, load balancer, registration, then addresses.
    service(&mut lab, "api");
    let name = start_ready(&mut lab, 0, Gates::Ours);
    lab.pass(4_000);
    assert_eq!(backends(&lab, "web").len(), 1);
    assert_eq!(gate(&lab, &name).0, "");
    assert!(lab.settle(HOUR_MS));
    assert_eq!(gate(&lab, &name), words("True", "Programmed"));
    assert_eq!(backends(&lab, "api").len(), 1);
    // A Service more does not take a Pod out that is in use.
    service(&mut lab, "more");
    lab.turn();
    assert_eq!(gate(&lab, &name), words("True", "Programmed"));
    assert!(lab.settle(HOUR_MS));
    assert_eq!(backends(&lab, "more").len(), 1);
}

#[test]
fn without_a_service_a_gate_opens_at_once() {
    let mut lab = laboratory(Backends::Pods);
    assert!(lab.settle(HOUR_MS));
    let name = start(&mut lab, 0, Gates::Ours);
    lab.turn();
    assert_eq!(gate(&lab, &name), words("", ""));
    set_containers(&mut lab, &name, "True");
    lab.turn();
    assert_eq!(gate(&lab, &name), words("True", "NoService"));
}

/// An internal Service cannot be had on this SKU: nobody waits for it.
#[test]
fn a_refused_service_is_not_waited_for() {
    let mut lab = laboratory(Backends::Pods);
    let object = json!({"apiVersion": "v1", "kind": "Service",
        "metadata": {"name": "web", "namespace": "default", "annotations":
            {"service.beta.kubernetes.io/azure-load-balancer-internal": "true"}},
        "spec": {"type": "LoadBalancer", "selector": {"app": "web"}, "ports": [{"port": 80}]}});
    lab.kubernetes.create(object, lab.now_ms).expect("the Service is created");
    let name = start_ready(&mut lab, 0, Gates::Ours);
    lab.pass(1_000);
    assert_eq!(gate(&lab, &name), words("True", "NoService"));
}

#[test]
fn a_service_that_goes_is_waited_for_no_longer() {
    let mut lab = serving();
    lab.azure_latency_ms = 20_000;
    let name = start_ready(&mut lab, 0, Gates::Ours);
    lab.pass(100);
    assert_eq!(gate(&lab, &name).0, "");
    remove(&mut lab, "services", "default", "web");
    lab.turn();
    assert_eq!(gate(&lab, &name), words("True", "NoService"));
}

/// Azure fails each write of the table.
fn broken(lab: &mut Laboratory) {
    let kind = refusal(500, "InternalServerError", None);
    let fault = Fault::new(kind).on_path("updateAddressLocations");
    lab.azure.add_fault(fault.expect("the path is a regular expression").always());
}

#[test]
fn a_gate_opens_when_the_time_allowed_is_over() {
    let mut lab = serving();
    broken(&mut lab);
    let name = start_ready(&mut lab, 0, Gates::Ours);
    lab.pass(59_999);
    assert_eq!(gate(&lab, &name).0, "");
    lab.pass(1);
    assert_eq!(gate(&lab, &name), words("True", "TimedOut"));
    assert_eq!(condition(&lab, &name, "Ready").0, "True");
    let gates = lab.controller().gates();
    assert_eq!((gates.timeouts(), gates.delays().sum()), (1, 0));
    assert!(backends(&lab, "web").is_empty());
}

/// The successor has watched, too: it counts from its own start, and the gateway's view is its own.
#[test]
fn a_restart_gives_the_full_time_again() {
    let mut lab = serving();
    broken(&mut lab);
    let name = start_ready(&mut lab, 0, Gates::Ours);
    lab.pass(50_000);
    lab.restart();
    lab.pass(59_000);
    assert_eq!(gate(&lab, &name).0, "");
    lab.pass(1_000);
    assert_eq!(gate(&lab, &name), words("True", "TimedOut"));
}

#[test]
fn where_backends_are_nodes_nobody_waits() {
    let mut lab = laboratory(Backends::Nodes);
    service(&mut lab, "web");
    let name = start(&mut lab, 0, Gates::Ours);
    lab.turn();
    assert_eq!(gate(&lab, &name), words("True", "NodeBackends"));
    set_containers(&mut lab, &name, "True");
    assert_eq!(condition(&lab, &name, "Ready").0, "True");
    assert!(lab.settle(HOUR_MS));
    assert!(lab.controller().plan().is_empty());
}
