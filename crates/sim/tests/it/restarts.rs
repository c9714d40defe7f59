//! A new process that has read everything plans what the old one was about to do.

use kube_emulator::{ObjectRef, Part, Patch};
use serde_json::json;
use sim::exhaust::{Conditions, Place, Restarts, Scenario, enumerate_restarts};
use sim::scene::Layout;
use sim::stage::Stage;

fn tried(scenario: Scenario, layout: Layout, stride: u64, edit: fn(&mut Stage)) -> Restarts {
    let place = Place { scenario, layout, conditions: Conditions::Plain };
    enumerate_restarts(place, stride, edit)
}

fn nothing_else(_: &mut Stage) {}

#[test]
fn a_new_process_plans_what_the_old_one_was_about_to_do() {
    for (scenario, layout, stride) in [
        (Scenario::Create, Layout::Single, 1),
        (Scenario::Update, Layout::PerSet, 3),
        (Scenario::Delete, Layout::Single, 2),
        (Scenario::CreateAndDelete, Layout::Nics, 3),
        (Scenario::Nodes, Layout::Several, 3),
        (Scenario::Exposure, Layout::Single, 3),
        (Scenario::Retype, Layout::Containers, 3),
        (Scenario::PodMoves, Layout::Containers, 1),
        (Scenario::Gate, Layout::Containers, 3),
    ] {
        let restarts = tried(scenario, layout, stride, nothing_else);
        assert_eq!(restarts.wrong, Vec::<String>::new(), "{scenario:?} in {layout:?}");
        assert!(restarts.tried > 0 && restarts.planned > 0, "{scenario:?}: {restarts:?}");
    }
}

/// The API server tells of the end of an object only those who watch at that time, and the
/// finalizer that would have kept the Service was taken off by hand. The old process notes in the
/// ledger what it has seen, and a new one plans it away, too.
#[test]
fn what_the_old_process_alone_has_seen_go_a_new_one_plans_away_too() {
    let restarts = tried(Scenario::Update, Layout::Single, 1_000, |stage| {
        let (object, now_ms) = (ObjectRef::new("services", "default", "web-0"), stage.now_ms);
        let bare = Patch::Merge(json!({"metadata": {"finalizers": null}}));
        stage.kubernetes.patch(object, Part::Main, &bare, now_ms).expect("it is there");
        stage.kubernetes.delete(object, now_ms).expect("nothing holds it");
        stage.follow();
    });
    assert_eq!((restarts.tried, restarts.planned), (1, 1), "{restarts:?}");
    let alone = |line: &String| line.contains(" process plans ");
    assert!(!restarts.wrong.iter().any(alone), "{restarts:?}");
}
