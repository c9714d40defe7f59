//! The controller is killed, or an answer lost or spoilt, at every call of creating, changing,
//! draining and deleting. Each time everything comes right: no address of a Service that is gone,
//! nothing left over, and no ready Pod that stood is out of rotation for a moment.

use crate::support::container::*;
use crate::support::{addressed, create, delete, patch};
use azure_emulator::{Fault, FaultKind};
use kube_emulator::Part;
use serde_json::json;
use sim::{Laboratory, Moment, Witness};

/// What is enumerated over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Create,
    Update,
    Drain,
    Delete,
}

const PHASES: [Phase; 4] = [Phase::Create, Phase::Update, Phase::Drain, Phase::Delete];

/// Pods that stand from the beginning and never change, with the node they are on.
const STABLE: [(&str, u32); 2] = [("10.244.0.1", 0), ("10.244.0.2", 1)];

fn empty() -> Laboratory {
    let mut lab = container_laboratory(4);
    create(&mut lab, app_service(0, "stable"));
    for (n, (ip, node)) in STABLE.iter().enumerate() {
        create_pod(&mut lab, app_pod(&format!("stable-{n}"), "stable", ip, *node));
    }
    let mut out = egress_pod("stable-out", "team-s", &["10.244.0.3", "fd12::3"], 2);
    out["metadata"]["labels"]["app"] = json!("stable");
    create_pod(&mut lab, out);
    rest(&mut lab);
    let uid = uid_of(&lab, &web_name(0));
    lab.witness = Some(Witness::new(move |_, azure, _| {
        let table = table_of(azure);
        for (ip, node) in STABLE {
            let names = table.get(&(location(node), ip.to_owned()));
            let stands = names.is_some_and(|names| names.contains(&uid));
            assert!(stands, "{ip} is ready, stood, and is out of rotation");
        }
        let out = table.get(&(location(2), "10.244.0.3".to_owned()));
        assert!(out.is_some_and(|names| names.contains("team-s")), "the way out is lost");
    }));
    lab
}

fn begin(lab: &mut Laboratory, phase: Phase) {
    match phase {
        Phase::Create => {
            for n in 1..3 {
                create(lab, app_service(n, &format!("app-{n}")));
                let pod = format!("pod-{n}");
                let (ip, node) = (format!("10.244.1.{n}"), n);
                create_pod(lab, app_pod(&pod, &format!("app-{n}"), &ip, node));
            }
            create_pod(lab, egress_pod("out-1", "team-a", &["10.244.2.1", "fd12::21"], 1));
            create_pod(lab, egress_pod("out-2", "team-b", &["10.244.2.2"], 2));
        }
        Phase::Update => {
            let ports = json!({"spec": {"ports": [{"port": 443, "targetPort": 8443}]}});
            patch(lab, "services", "default", &web_name(1), ports);
            // The address of one Service's Pod goes to a Pod of the other, on another node.
            remove(lab, "pods", "default", "pod-1");
            create_pod(lab, app_pod("pod-3", "app-2", "10.244.1.1", 3));
            let label = json!({"metadata": {"labels": {EGRESS: "team-c"}}});
            merge(lab, "pods", "out-2", Part::Main, label);
            let class = json!({"spec": {"type": "ClusterIP"}});
            patch(lab, "services", "default", &web_name(2), class);
        }
        Phase::Drain => {
            let status = json!([{"type": "Ready", "status": "False"}]);
            let body = json!({"status": {"conditions": status}});
            merge(lab, "pods", "pod-3", Part::Status, body);
            let class = json!({"spec": {"type": "LoadBalancer"}});
            patch(lab, "services", "default", &web_name(2), class);
            remove(lab, "nodes", "", &node_name(3));
            remove(lab, "pods", "default", "out-1");
        }
        Phase::Delete => {
            delete(lab, "default", &web_name(1));
            delete(lab, "default", &web_name(2));
            remove(lab, "pods", "default", "out-2");
        }
    }
}

/// Everything up to a phase has come to rest.
fn before(phase: Phase) -> Laboratory {
    let mut lab = empty();
    for earlier in PHASES.into_iter().take_while(|p| *p != phase) {
        begin(&mut lab, earlier);
        rest(&mut lab);
    }
    lab
}

/// Waits for lists of another process's time to be old enough, and for everything else.
fn finish(lab: &mut Laboratory) {
    lab.pass(60_000);
    lab.azure.clear_faults();
    lab.pass(15_000);
    rest(lab);
}

/// Everything is right after a phase, stays so after a restart, and goes without a trace.
fn verify(mut lab: Laboratory, what: &str) {
    finish(&mut lab);
    check(&lab, what);
    for pod in lab.kubernetes.list("pods", None) {
        assert!(pod["metadata"]["deletionTimestamp"].is_null(), "{what}: a finalizer is stuck");
    }
    let gone = |s: &&std::sync::Arc<serde_json::Value>| {
        has_finalizer(s, GATEWAY_FINALIZER) && s["spec"]["type"] == "ClusterIP"
    };
    let services = lab.kubernetes.list("services", None);
    assert_eq!(services.iter().filter(gone).count(), 0, "{what}: a finalizer is left");
    lab.azure.clear_calls();
    lab.restart();
    rest(&mut lab);
    assert_eq!(lab.calls().0, 0, "{what}: a restart finds nothing to write");
    lab.witness = None;
    for service in lab.kubernetes.list("services", None) {
        if service["spec"]["type"] == "LoadBalancer" {
            delete(&mut lab, "default", service["metadata"]["name"].as_str().expect("a name"));
        }
    }
    for pod in lab.kubernetes.list("pods", None) {
        remove(&mut lab, "pods", "default", pod["metadata"]["name"].as_str().expect("a name"));
    }
    finish(&mut lab);
    assert_eq!(container_leftovers(&lab), Vec::<String>::new(), "{what}: nothing is left over");
    assert_eq!(addressed(&lab), (0, 0), "{what}: no Service's finalizer is stuck");
    assert_eq!(lab.kubernetes.list("pods", None).len(), 0, "{what}: no Pod's finalizer is stuck");
}

/// Kills the controller at every call of a phase; gives the number of calls.
fn killed_at_every_call(phase: Phase, lro_ms: u64) -> u64 {
    let mut call = 0;
    loop {
        for moment in [Moment::Before, Moment::After] {
            let mut lab = before(phase);
            lab.azure_latency_ms = 20;
            lab.azure.options_mut().lro_ms = lro_ms;
            begin(&mut lab, phase);
            lab.crash_after(call, moment);
            lab.pass(60_000);
            if lab.awaits_crash() {
                return call;
            }
            verify(lab, &format!("{phase:?} killed {moment:?} call {call}"));
        }
        call += 1;
    }
}

#[test]
fn killed_at_every_call_of_creating() {
    let calls = killed_at_every_call(Phase::Create, 0);
    assert!((22..=60).contains(&calls), "{calls} calls");
}

#[test]
fn killed_at_every_call_of_changing() {
    let calls = killed_at_every_call(Phase::Update, 0);
    assert!((17..=60).contains(&calls), "{calls} calls");
}

#[test]
fn killed_at_every_call_of_draining() {
    let calls = killed_at_every_call(Phase::Drain, 0);
    assert!((15..=60).contains(&calls), "{calls} calls");
}

#[test]
fn killed_at_every_call_of_deleting() {
    let calls = killed_at_every_call(Phase::Delete, 0);
    assert!((17..=60).contains(&calls), "{calls} calls");
}

#[test]
fn killed_at_every_call_while_operations_run() {
    for phase in [Phase::Create, Phase::Delete] {
        let calls = killed_at_every_call(phase, 50);
        assert!(calls >= 25, "{phase:?}: {calls} calls");
    }
}

/// Kills a second time, before what the first one lost has been made good.
#[test]
fn killed_twice() {
    let mut tried = 0;
    for phase in PHASES {
        for first in [0, 7, 15, 23] {
            for second in [1, 6] {
                let mut lab = before(phase);
                lab.azure_latency_ms = 20;
                begin(&mut lab, phase);
                lab.crash_after(first, Moment::After);
                while lab.awaits_crash() && lab.sent < 10_000 {
                    let sent = lab.sent;
                    lab.pass(20);
                    if lab.sent == sent && lab.controller().is_settled() {
                        break;
                    }
                }
                lab.crash_after(second, Moment::After);
                lab.pass(60_000);
                verify(lab, &format!("{phase:?} killed after {first} and {second}"));
                tried += 1;
            }
        }
    }
    assert_eq!(tried, 4 * 4 * 2);
}

/// Whether a fault of this kind can befall a call.
fn befalls(kind: &FaultKind, method: &str) -> bool {
    match kind {
        FaultKind::GatewayErrorIn200 { .. } | FaultKind::GatewayAcceptedThenFails { .. } => {
            method == "POST"
        }
        FaultKind::OperationFails { .. } => matches!(method, "PUT" | "DELETE"),
        _ => true,
    }
}

/// Orders a fault for every so-manieth call of each phase in turn; gives how often it befell one.
fn spoilt(kind: &FaultKind, times: u64, stride: usize) -> usize {
    let mut points = 0;
    for phase in PHASES {
        for call in (0..).step_by(stride) {
            let mut lab = before(phase);
            lab.azure_latency_ms = 20;
            lab.azure.options_mut().lro_ms = 50;
            begin(&mut lab, phase);
            lab.azure.clear_calls();
            lab.azure.add_fault(Fault::new(kind.clone()).skip(call).times(times));
            lab.pass(20_000);
            let calls = lab.azure.calls().iter().filter(|c| befalls(kind, &c.method)).count();
            if calls as u64 <= call {
                break;
            }
            verify(lab, &format!("{phase:?} with {kind:?} at call {call}"));
            points += 1;
        }
    }
    points
}

fn code() -> String {
    "InternalServerError".to_owned()
}

#[test]
fn applied_then_the_connection_breaks() {
    let points = spoilt(&FaultKind::AppliedThenReset, 1, 1);
    assert!(points >= 60, "{points}");
}

#[test]
fn the_connection_breaks_before() {
    let points = spoilt(&FaultKind::ConnectionResetBefore, 1, 3);
    assert!(points >= 20, "{points}");
}

#[test]
fn a_gateway_answers_200_with_an_error() {
    let points = spoilt(&FaultKind::GatewayErrorIn200 { code: code() }, 1, 1);
    assert!(points >= 12, "{points}");
}

#[test]
fn a_gateway_accepts_and_fails_later() {
    let points = spoilt(&FaultKind::GatewayAcceptedThenFails { code: code() }, 1, 1);
    assert!(points >= 12, "{points}");
}

#[test]
fn an_operation_fails_after_it_was_accepted() {
    let points = spoilt(&FaultKind::OperationFails { code: code() }, 1, 1);
    assert!(points >= 24, "{points}");
}

#[test]
fn a_storm_of_429() {
    let points = spoilt(&refusal(429, "TooManyRequests", Some(2)), 10, 4);
    assert!(points >= 15, "{points}");
}

#[test]
fn a_storm_of_500() {
    let points = spoilt(&refusal(500, "InternalServerError", None), 4, 4);
    assert!(points >= 15, "{points}");
}

#[test]
fn no_answer_at_all() {
    let points = spoilt(&FaultKind::Hang, 1, 4);
    assert!(points >= 15, "{points}");
}
