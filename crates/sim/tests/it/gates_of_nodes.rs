//! Readiness gates where load balancers lead to nodes: only Pods with the gate are watched.

use model::kubernetes::READINESS_GATE;
use serde_json::json;
use sim::scene::{Layout, Scene, objects};
use sim::stage::{START_MS, Stage};
use sim::swarm::Pace;
use sim::weather::Weather;

#[test]
fn a_gate_is_written_once_however_late_the_watch_is() {
    let pace = Pace { azure_ms: 5, api_ms: 2, watch_ms: 500, operation_ms: 0 };
    let mut stage = Stage::new(Scene::plain(Layout::Single, 3, 7), pace, Weather::Fair, 1);
    let labels = json!({"app": "web-0", READINESS_GATE: "enabled"});
    let mut pod = objects::pod("gated", &labels, 0, "10.244.2.10");
    pod["spec"]["readinessGates"] = json!([{"conditionType": READINESS_GATE}]);
    pod["status"]["conditions"] = json!([{"type": "ContainersReady", "status": "True"}]);
    stage.kubernetes.create(pod.clone(), START_MS).expect("the Pod is created");
    let object = kube_emulator::ObjectRef::new("pods", "default", "gated");
    let patch = kube_emulator::Patch::Merge(json!({"status": pod["status"]}));
    stage
        .kubernetes
        .patch(object, kube_emulator::Part::Status, &patch, START_MS)
        .expect("its status is written");
    stage.advance(START_MS + 60_000);
    assert_eq!(stage.held_back(), Vec::<String>::new());
    assert_eq!(stage.tally.effects.get("PATCH pod status"), Some(&1), "{:?}", stage.tally.effects);
}
