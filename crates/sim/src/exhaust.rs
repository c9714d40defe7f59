//! Small scenarios, in which a crash at every effect, the loss of every answer and every swap of
//! two answers under way at the same time are tried, one after the other; and a leader that stands
//! still before every write while another takes over.

use crate::canary::{Canary, Mutant};
use crate::check::Breach;
use crate::check::ends::{Form, difference};
use crate::judge::{self, Before};
use crate::scene::{Layout, Scene, objects};
use crate::stage::Stage;
use crate::swarm::Pace;
use crate::weather::{Script, Side, Weather};
use kube_emulator::{ObjectRef, Part, Patch};
use serde_json::{Value, json};

/// How long a scenario may take to come right.
const LIMIT_MS: u64 = 30 * 60_000;

/// What happens in a scenario, after it was at rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scenario {
    /// Two Services are created.
    Create,
    /// A port, a source range and a timeout change.
    Update,
    /// Both Services are deleted.
    Delete,
    /// A Service is created and deleted before it is done.
    CreateAndDelete,
    /// A node comes, another goes.
    Nodes,
    /// A Service goes from outside to inside.
    Exposure,
    /// The cloud config changes: the kind of pools, or what else a layout can change.
    Config,
    /// A pod moves to another node.
    PodMoves,
    /// A Service is no longer of type LoadBalancer.
    Retype,
    /// A Service moves to a public IP that was brought, and back.
    BroughtIp,
    /// Rules lead to nodes themselves; one of them goes, another is excluded.
    NodesLedTo,
}

/// Every scenario with its name.
pub const SCENARIOS: [(Scenario, &str); 11] = [
    (Scenario::Create, "create"),
    (Scenario::Update, "update"),
    (Scenario::Delete, "delete"),
    (Scenario::CreateAndDelete, "create-and-delete"),
    (Scenario::Nodes, "nodes"),
    (Scenario::Exposure, "exposure"),
    (Scenario::Config, "config"),
    (Scenario::PodMoves, "pod-moves"),
    (Scenario::Retype, "retype"),
    (Scenario::BroughtIp, "brought-ip"),
    (Scenario::NodesLedTo, "nodes-led-to"),
];

/// What the enumeration of one scenario in one layout came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Points {
    /// Crashes tried.
    pub crashes: u64,
    /// Losses tried.
    pub losses: u64,
    /// Swaps tried.
    pub swaps: u64,
    /// Points that did not end right, with what broke.
    pub wrong: Vec<String>,
}

impl Points {
    /// All points.
    #[must_use]
    pub fn all(&self) -> u64 {
        self.crashes + self.losses + self.swaps
    }
}

/// Layouts in which a scenario means something.
#[must_use]
pub fn suits(scenario: Scenario, layout: Layout) -> bool {
    match scenario {
        Scenario::PodMoves => layout == Layout::Containers,
        Scenario::Exposure | Scenario::Config => layout != Layout::Containers,
        // A Basic load balancer takes no Standard address.
        Scenario::BroughtIp => !matches!(layout, Layout::Containers | Layout::PerSet),
        // With NICs nobody knows afterwards whose address that was.
        Scenario::NodesLedTo => matches!(layout, Layout::Single | Layout::Several),
        _ => true,
    }
}

/// Tries every point of one scenario in one layout. Of its swaps at most so many: they grow with
/// the square of what is under way.
#[must_use]
pub fn enumerate(scenario: Scenario, layout: Layout, swaps: usize) -> Points {
    let mut points = Points::default();
    let fair = play(scenario, layout, Script::default());
    let Ok(want) = &fair.end else {
        let text = fair.end.err().map_or(String::new(), |breach| breach.text);
        points.wrong.push(format!("without faults: {text}"));
        return points;
    };
    let mut judge = |what: String, script: Script| {
        let end = play(scenario, layout, script).end;
        match end {
            Err(Breach { rule, text, .. }) => points.wrong.push(format!("{what}: {rule}: {text}")),
            Ok(form) if form != *want => {
                let lines = difference(&form, want).join("\n");
                points.wrong.push(format!("{what}: another end: {lines}"));
            }
            Ok(_) => {}
        }
    };
    for side in [Side::Before, Side::After] {
        for effect in fair.effects.clone() {
            let script = Script { crash: Some((effect, side)), ..Script::default() };
            judge(format!("crash {side:?} effect {effect}"), script);
        }
        for call in fair.calls.clone() {
            let script = Script { lose: Some((call, side)), ..Script::default() };
            judge(format!("answer {call} lost {side:?}"), script);
        }
    }
    let pairs: Vec<(u64, u64)> = fair.pairs.into_iter().take(swaps).collect();
    for pair in &pairs {
        let script = Script { swap: Some(*pair), ..Script::default() };
        judge(format!("answers {} and {} swapped", pair.0, pair.1), script);
    }
    points.crashes = 2 * (fair.effects.end - fair.effects.start);
    points.losses = 2 * (fair.calls.end - fair.calls.start);
    points.swaps = pairs.len() as u64;
    points
}

/// How long a leader stands still: long enough for another to take over and to be done.
const PAUSE_MS: u64 = 120_000;
/// When more is asked for while it stands still.
const AGAIN_MS: u64 = 60_000;

/// What leaders that stand still came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pauses {
    /// Writes before which the leader stood still, after its look at the lease.
    pub tried: u64,
    /// Writes of theirs that reached Azure late and were refused.
    pub refused: u64,
    /// Pauses that did not end right, with what broke.
    pub wrong: Vec<String>,
}

/// Two processes. The leader stands still at each write in turn, after its look at the lease and
/// before the write is on its way. The other takes over, is asked for more and does it. Then the
/// first one's write arrives.
#[must_use]
pub fn enumerate_pauses(scenario: Scenario, layout: Layout, canary: Option<Canary>) -> Pauses {
    let mut pauses = Pauses::default();
    let fair = play_two(scenario, layout, Script::default(), None);
    let want = match fair.end {
        Ok(want) => want,
        Err(breach) => {
            pauses.wrong.push(format!("without a pause: {}: {}", breach.rule, breach.text));
            return pauses;
        }
    };
    for call in fair.writes {
        let script = Script { pause: Some((call, PAUSE_MS)), ..Script::default() };
        let played = play_two(scenario, layout, script, canary);
        pauses.tried += 1;
        pauses.refused += played.refused;
        match played.end {
            Err(Breach { rule, text, .. }) => {
                pauses.wrong.push(format!("pause at call {call}: {rule}: {text}"));
            }
            Ok(form) if form != want => {
                let lines = difference(&form, &want).join("\n");
                pauses.wrong.push(format!("pause at call {call}: another end: {lines}"));
            }
            Ok(_) => {}
        }
    }
    pauses
}

struct Played {
    end: Result<Form, Breach>,
    effects: std::ops::Range<u64>,
    calls: std::ops::Range<u64>,
    pairs: Vec<(u64, u64)>,
    refused: u64,
    writes: Vec<u64>,
}

/// Plays one scenario. Effects are numbered from the start, so that a script means the same point
/// each time.
fn play(scenario: Scenario, layout: Layout, script: Script) -> Played {
    let (scene, mut stage) = set(scenario, layout, script, 1);
    stage.settle(LIMIT_MS);
    let (effects, calls) = (stage.numbers.0 + 1, stage.numbers.1 + 1);
    stage.pairs.clear();
    act(scenario, &scene, &mut stage);
    finish(stage, effects, calls)
}

/// Plays one scenario with two processes, and asks for more while one may stand still.
fn play_two(scenario: Scenario, layout: Layout, script: Script, canary: Option<Canary>) -> Played {
    let (scene, mut stage) = set(scenario, layout, script, 2);
    stage.settle(LIMIT_MS);
    stage.mutant = canary.map(Mutant::new);
    let (effects, calls) = (stage.numbers.0 + 1, stage.numbers.1 + 1);
    stage.writes.clear();
    act(scenario, &scene, &mut stage);
    stage.advance(stage.now_ms + AGAIN_MS);
    // Without a pause everything is at rest by now.
    let writes = std::mem::take(&mut stage.writes);
    ask_for_more(scenario, &mut stage);
    stage.advance(stage.now_ms + PAUSE_MS);
    let mut played = finish(stage, effects, calls);
    played.writes = writes;
    played
}

fn ask_for_more(scenario: Scenario, stage: &mut Stage) {
    let again: &[u64] = if scenario == Scenario::Delete { &[0, 1] } else { &[2] };
    for slot in again {
        let now = stage.now_ms;
        let _ = stage.kubernetes.create(objects::service("default", *slot), now);
    }
    stage.follow();
    let key = "service.beta.kubernetes.io/azure-load-balancer-tcp-idle-timeout";
    patch(stage, "web-1", json!({"metadata": {"annotations": {key: "20"}}}));
}

/// A stage on which a scenario can begin. Effects and calls are numbered from here.
fn set(scenario: Scenario, layout: Layout, script: Script, processes: usize) -> (Scene, Stage) {
    let scene = Scene::plain(layout, 3, 7);
    let pace = Pace { azure_ms: 10, api_ms: 2, watch_ms: 1, operation_ms: 50 };
    let mut stage = Stage::new(scene.clone(), pace, Weather::Scripted(script), processes);
    if layout == Layout::Containers {
        for slot in 0..2 {
            add_pod(&mut stage, slot, slot);
        }
    }
    if !matches!(scenario, Scenario::Create | Scenario::CreateAndDelete) {
        create_two(&mut stage);
    }
    (scene, stage)
}

fn finish(mut stage: Stage, effects: u64, calls: u64) -> Played {
    let done = stage.settle(LIMIT_MS);
    // What a list may not show yet is waited for.
    stage.advance(stage.now_ms + 10 * 60_000);
    // The last thing that was lost may be a look for drift of just now: it is repeated.
    let rests = stage.settle(60_000);
    if !done || !rests {
        let text = stage.unsettled();
        stage.fail("L1", text);
    }
    if let Some(wrong) = stage.untrue().first() {
        let text = wrong.clone();
        stage.fail("L4", text);
    }
    if let Some(broken) = unkept(&stage).first() {
        let text = broken.clone();
        stage.fail("L1", text);
    }
    let end = match stage.breach.take() {
        Some(breach) => Err(breach),
        None => Ok(stage.form()),
    };
    Played {
        end,
        refused: stage.ledger.fenced,
        effects: effects..stage.numbers.0 + 1,
        calls: calls..stage.numbers.1 + 1,
        pairs: stage.pairs,
        writes: stage.writes,
    }
}

/// Promises that are not kept at the end of a point.
fn unkept(stage: &Stage) -> Vec<String> {
    let mut before = Before::default();
    before.look(&stage.scene.cloud());
    let scene = judge::scene(&stage.kubernetes, &stage.azure, &stage.config, &before);
    promise::judge(&scene).iter().map(ToString::to_string).collect()
}

fn create_two(stage: &mut Stage) {
    for slot in 0..2 {
        let now = stage.now_ms;
        let _ = stage.kubernetes.create(objects::service("default", slot), now);
    }
    stage.follow();
}

fn add_pod(stage: &mut Stage, slot: u64, node: u64) {
    let now = stage.now_ms;
    let name = format!("pod-{slot}");
    let labels = json!({"app": format!("web-{slot}")});
    let node = u32::try_from(node).unwrap_or(0);
    let pod = objects::pod(&name, &labels, node, &format!("10.244.0.{}", 10 + slot));
    let status = Patch::Merge(json!({"status": pod["status"]}));
    let _ = stage.kubernetes.create(pod, now);
    let object = ObjectRef::new("pods", "default", &name);
    let _ = stage.kubernetes.patch(object, Part::Status, &status, now);
    stage.follow();
}

fn patch(stage: &mut Stage, name: &str, body: Value) {
    let now = stage.now_ms;
    let object = ObjectRef::new("services", "default", name);
    let _ = stage.kubernetes.patch(object, Part::Main, &Patch::Merge(body), now);
    stage.follow();
}

fn delete(stage: &mut Stage, plural: &str, namespace: &str, name: &str) {
    let now = stage.now_ms;
    let _ = stage.kubernetes.delete(ObjectRef::new(plural, namespace, name), now);
    stage.follow();
}

fn annotate(stage: &mut Stage, name: &str, key: &str, value: Value) {
    let key = format!("service.beta.kubernetes.io/{key}");
    patch(stage, name, json!({"metadata": {"annotations": {key: value}}}));
}

fn exclude_node(stage: &mut Stage, index: u32) {
    let now = stage.now_ms;
    let name = format!("vmss{index:06}");
    let object = ObjectRef::new("nodes", "", &name);
    let key = "node.kubernetes.io/exclude-from-external-load-balancers";
    let body = json!({"metadata": {"labels": {key: "true"}}});
    let _ = stage.kubernetes.patch(object, Part::Main, &Patch::Merge(body), now);
    stage.follow();
}

fn configure(scene: &Scene, stage: &mut Stage) {
    let changes = match scene.layout {
        Layout::Single => {
            json!({"loadBalancerBackendPoolConfigurationType": "nodeIPConfiguration"})
        }
        Layout::Nics => json!({"loadBalancerBackendPoolConfigurationType": "nodeIP"}),
        Layout::PerSet => json!({"loadBalancerSku": "standard",
            "disableOutboundSNAT": true}),
        Layout::Several | Layout::Containers => json!({"tags": "owner=ops"}),
    };
    if scene.layout == Layout::Single {
        stage.azure.seed(objects::scale_set("vmss", crate::scene::MACHINES));
    }
    // A new SKU takes load balancers away, with all frontends.
    stage.rebuild();
    stage.reconfigure(scene.config(&changes));
}

fn act(scenario: Scenario, scene: &Scene, stage: &mut Stage) {
    match scenario {
        Scenario::Create => create_two(stage),
        Scenario::Update => {
            let ports = json!([{"name": "http", "port": 80, "targetPort": 8080, "nodePort": 30_080},
                {"name": "more", "port": 443, "targetPort": 8443, "nodePort": 30_443}]);
            patch(stage, "web-0", json!({"spec": {"ports": ports}}));
            let key = "service.beta.kubernetes.io/azure-load-balancer-tcp-idle-timeout";
            patch(stage, "web-1", json!({"metadata": {"annotations": {key: "12"}}}));
            if scene.layout != Layout::Containers {
                let ranges = json!({"spec": {"loadBalancerSourceRanges": ["203.0.113.0/24"]}});
                patch(stage, "web-1", ranges);
            }
        }
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
            let _ = stage.kubernetes.create(scene.node(4), now);
            delete(stage, "nodes", "", &format!("vmss{:06}", 0));
        }
        Scenario::Exposure => {
            let key = "service.beta.kubernetes.io/azure-load-balancer-internal";
            patch(stage, "web-0", json!({"metadata": {"annotations": {key: "true"}}}));
        }
        Scenario::Config => configure(scene, stage),
        Scenario::Retype => {
            let ports = json!([{"name": "http", "port": 80, "targetPort": 8080,
                "protocol": "TCP"}]);
            patch(
                stage,
                "web-0",
                json!({"spec": {"type": "ClusterIP", "ports": ports,
                "externalTrafficPolicy": null, "healthCheckNodePort": null}}),
            );
        }
        Scenario::BroughtIp => {
            annotate(stage, "web-0", "azure-pip-name", json!("byo-pip"));
            stage.settle(LIMIT_MS);
            annotate(stage, "web-0", "azure-pip-name", Value::Null);
        }
        Scenario::NodesLedTo => {
            let off = "azure-disable-load-balancer-floating-ip";
            annotate(stage, "web-0", off, json!("true"));
            stage.settle(LIMIT_MS);
            delete(stage, "nodes", "", &format!("vmss{:06}", 0));
            exclude_node(stage, 2);
        }
        Scenario::PodMoves => {
            delete(stage, "pods", "default", "pod-0");
            add_pod(stage, 0, 2);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::LAYOUTS;

    #[test]
    fn every_scenario_ends_right_without_faults() {
        for (scenario, name) in SCENARIOS {
            for (layout, at) in LAYOUTS.iter().filter(|(layout, _)| suits(scenario, *layout)) {
                let end = play(scenario, *layout, Script::default()).end;
                assert!(end.is_ok(), "{name} in {at}: {:?}", end.err().map(|breach| breach.text));
            }
        }
    }
}
