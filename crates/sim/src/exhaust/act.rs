//! What is done in each scenario.

use super::edits::{
    add_gated_pod, add_pod, annotate, create, create_two, delete, exclude_node, patch, patch_node,
    start_containers,
};
use super::scenario::{Conditions, Scenario};
use super::{LIMIT_MS, Place};
use crate::fault::Fault;
use crate::scene::{self, Layout, MACHINES, Scene, objects};
use crate::stage::Stage;
use crate::swarm::Pace;
use crate::weather::{Script, Weather};
use azure_emulator::Switch;
use serde_json::{Value, json};

/// Gives egress to a Pod.
const EGRESS: &str = "kubernetes.azure.com/service-egress-gateway";

/// A stage on which a scenario can begin. Effects and calls are numbered from here.
pub(super) fn set(place: Place, script: Script) -> Stage {
    let Place { scenario, layout, conditions } = place;
    let mut scene = Scene::plain(layout, 3, 7);
    if scenario == Scenario::Drain {
        // Azure heeds the admin state of a pool's member only where every rule has a probe.
        scene.with.insert(Fault::SharedProbes);
    }
    let operation_ms = if conditions == Conditions::Slow { 20_000 } else { 50 };
    let pace = Pace { azure_ms: 10, api_ms: 2, watch_ms: 1, operation_ms };
    let processes = if conditions == Conditions::Leaders { 2 } else { 1 };
    let mut stage = Stage::new(scene, pace, Weather::Scripted(script), processes);
    let options = stage.azure.options_mut();
    match conditions {
        Conditions::Slow => {
            options.late_etag = Switch::On;
            options.late_public_ip_address = Switch::On;
        }
        Conditions::Paged => {
            options.page_size = 2;
            options.list_lag_ms = 4_000;
        }
        Conditions::Plain | Conditions::Leaders => {}
    }
    if layout == Layout::Containers {
        let app = |slot: u64| json!({"app": format!("web-{slot}")});
        (0..2).for_each(|slot| add_pod(&mut stage, slot, slot, &app(slot)));
    }
    match scenario {
        Scenario::Config if layout == Layout::Single => {
            stage.azure.seed(objects::scale_set("vmss", MACHINES));
        }
        Scenario::Egress => add_pod(&mut stage, 7, 0, &json!({EGRESS: "team-0"})),
        Scenario::Gate => add_gated_pod(&mut stage, 0),
        _ => {}
    }
    if !matches!(scenario, Scenario::Create | Scenario::CreateAndDelete) {
        create_two(&mut stage);
    }
    stage
}

/// What is done once everything is at rest.
pub(super) fn act(scenario: Scenario, stage: &mut Stage) {
    match scenario {
        Scenario::Create => create_two(stage),
        Scenario::Update => update(stage),
        Scenario::Delete => {
            delete(stage, "services", "default", "web-0");
            delete(stage, "services", "default", "web-1");
        }
        Scenario::CreateAndDelete => {
            create_two(stage);
            stage.advance(stage.now_ms + 90);
            delete(stage, "services", "default", "web-0");
        }
        Scenario::Nodes => {
            let now = stage.now_ms;
            let _ = stage.kubernetes.create(stage.scene.node(4), now);
            delete(stage, "nodes", "", "vmss000000");
        }
        Scenario::Exposure => {
            annotate(stage, "web-0", "azure-load-balancer-internal", json!("true"));
        }
        Scenario::Config => configure(stage),
        Scenario::Migration => migrate(stage),
        Scenario::Retype => retype(stage),
        Scenario::BroughtIp => {
            annotate(stage, "web-0", "azure-pip-name", json!("byo-pip"));
            stage.settle(LIMIT_MS);
            annotate(stage, "web-0", "azure-pip-name", Value::Null);
        }
        Scenario::NodesLedTo => {
            let off = "azure-disable-load-balancer-floating-ip";
            annotate(stage, "web-0", off, json!("true"));
            stage.settle(LIMIT_MS);
            delete(stage, "nodes", "", "vmss000000");
            exclude_node(stage, 2);
        }
        Scenario::PodMoves => {
            delete(stage, "pods", "default", "pod-0");
            add_pod(stage, 0, 2, &json!({"app": "web-0"}));
        }
        Scenario::Drain => drain(stage),
        Scenario::SecondFamily => second_family(stage),
        Scenario::PrivateLink => private_link(stage),
        Scenario::Egress => {
            add_pod(stage, 8, 1, &json!({EGRESS: "team-0"}));
            add_pod(stage, 9, 2, &json!({EGRESS: "team-1"}));
            stage.settle(LIMIT_MS);
            delete(stage, "pods", "default", "pod-9");
        }
        Scenario::Gate => {
            start_containers(stage, 0);
            add_gated_pod(stage, 1);
            start_containers(stage, 1);
        }
        Scenario::SharedPublic => share(stage, "azure-pip-name", "byo-pip"),
        Scenario::SharedInternal => {
            annotate(stage, "web-0", "azure-load-balancer-internal", json!("true"));
            annotate(stage, "web-1", "azure-load-balancer-internal", json!("true"));
            share(stage, "azure-load-balancer-ipv4", "10.224.9.9");
        }
    }
}

/// Asks for more of a scenario.
pub(super) fn ask_for_more(scenario: Scenario, stage: &mut Stage) {
    let again: &[u64] = if scenario == Scenario::Delete { &[0, 1] } else { &[2] };
    again.iter().for_each(|slot| create(stage, *slot));
    annotate(stage, "web-1", "azure-load-balancer-tcp-idle-timeout", json!("20"));
}

fn update(stage: &mut Stage) {
    let ports = json!([{"name": "http", "port": 80, "targetPort": 8080, "nodePort": 30_080},
        {"name": "more", "port": 443, "targetPort": 8443, "nodePort": 30_443}]);
    patch(stage, "web-0", json!({"spec": {"ports": ports}}));
    annotate(stage, "web-1", "azure-load-balancer-tcp-idle-timeout", json!("12"));
    if stage.scene.layout != Layout::Containers {
        let ranges = json!({"spec": {"loadBalancerSourceRanges": ["203.0.113.0/24"]}});
        patch(stage, "web-1", ranges);
    }
}

fn retype(stage: &mut Stage) {
    let ports = json!([{"name": "http", "port": 80, "targetPort": 8080, "protocol": "TCP"}]);
    let spec = json!({"type": "ClusterIP", "ports": ports, "externalTrafficPolicy": null,
        "healthCheckNodePort": null});
    patch(stage, "web-0", json!({ "spec": spec }));
}

fn configure(stage: &mut Stage) {
    let layout = stage.scene.layout;
    let changes = layout.other_pools().unwrap_or_else(|| match layout {
        Layout::PerSet => json!({"loadBalancerSku": "standard", "disableOutboundSNAT": true}),
        _ => json!({"tags": "owner=ops"}),
    });
    if !changes["loadBalancerSku"].is_null() {
        // A new SKU takes load balancers away, with all frontends.
        stage.rebuild();
    }
    let config = stage.scene.config(&changes);
    stage.reconfigure(config);
}

/// To load balancers over nodes, and back once all Services are there.
fn migrate(stage: &mut Stage) {
    for changes in [scene::over_nodes(), scene::migration()] {
        let config = stage.scene.config(&changes);
        stage.reconfigure(config);
        stage.settle(LIMIT_MS);
    }
}

fn drain(stage: &mut Stage) {
    let taint = json!([{"key": "ToBeDeletedByClusterAutoscaler", "effect": "NoSchedule",
        "value": "1"}]);
    patch_node(stage, 0, json!({"spec": {"taints": taint}}));
    stage.settle(LIMIT_MS);
    delete(stage, "nodes", "", "vmss000000");
}

fn second_family(stage: &mut Stage) {
    let families =
        |policy: &str, all: Value| json!({"spec": {"ipFamilyPolicy": policy, "ipFamilies": all}});
    patch(stage, "web-0", families("PreferDualStack", json!(["IPv4", "IPv6"])));
    stage.settle(LIMIT_MS);
    patch(stage, "web-0", families("SingleStack", json!(["IPv4"])));
}

fn private_link(stage: &mut Stage) {
    annotate(stage, "web-0", "azure-load-balancer-internal", json!("true"));
    annotate(stage, "web-0", "azure-pls-create", json!("true"));
    stage.settle(LIMIT_MS);
    annotate(stage, "web-0", "azure-pls-fqdns", json!("a.example"));
    stage.settle(LIMIT_MS);
    annotate(stage, "web-0", "azure-pls-fqdns", Value::Null);
    annotate(stage, "web-0", "azure-pls-create", Value::Null);
}

/// Both Services ask for the same address; the first one leaves it.
fn share(stage: &mut Stage, key: &str, value: &str) {
    annotate(stage, "web-0", key, json!(value));
    annotate(stage, "web-1", key, json!(value));
    stage.settle(LIMIT_MS);
    annotate(stage, "web-0", key, Value::Null);
}
