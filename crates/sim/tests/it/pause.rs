//! An operator pauses writes to Azure for the whole cluster: none begins, drift stays as it is, and
//! a restart changes nothing, until the pause ends.

use crate::support::*;
use control::{DriftOutcome, NoticeKind};
use model::ObstacleKind;
use serde_json::json;
use sim::Laboratory;

fn settled() -> Laboratory {
    let mut lab = served([service(0)]);
    // One quiet interval: the lists confirm what was written.
    lab.pass(INTERVAL_MS);
    assert!(lab.settle(DAY_MS));
    lab.azure.clear_calls();
    lab
}

fn rules(lab: &Laboratory) -> usize {
    let balancer = resource(lab, "loadBalancers/kubernetes");
    balancer["properties"]["loadBalancingRules"].as_array().map_or(0, Vec::len)
}

fn paths_written(lab: &Laboratory) -> Vec<String> {
    let writes = lab.azure.calls().iter().filter(|call| call.method != "GET");
    writes.map(|call| call.path.to_lowercase()).collect()
}

#[test]
fn nothing_is_written_while_writes_are_paused_and_a_restart_repairs_nothing() {
    let mut lab = settled();
    let before = rules(&lab);
    lab.pause("true");
    edit(&mut lab, "loadBalancers/kubernetes", |body| {
        body["properties"]["loadBalancingRules"] = json!([]);
    });
    create(&mut lab, service(1));
    lab.pass(3 * INTERVAL_MS);
    assert_eq!((paths_written(&lab), rules(&lab)), (Vec::new(), 0));
    let controller = lab.controller();
    assert!(controller.drift_fields() > 0);
    assert!(controller.drift().all(|record| record.outcome == DriftOutcome::Paused));
    let obstacles = controller.obstacles();
    assert_eq!(obstacles.len(), 1, "{obstacles:#?}");
    assert_eq!((obstacles[0].kind, obstacles[0].services.len()), (ObstacleKind::Paused, 2));
    assert!(obstacles[0].cause().contains("all writes to Azure are paused"));
    assert_eq!(addressed(&lab), (1, 1));
    // A new process would repair at once.
    lab.restart();
    lab.pause("true");
    lab.pass(3 * INTERVAL_MS);
    assert_eq!((paths_written(&lab), rules(&lab)), (Vec::new(), 0));
    lab.pause("false");
    assert!(lab.settle(DAY_MS), "{:#?}", lab.controller().report());
    assert_eq!((rules(&lab), addressed(&lab)), (2 * before, (2, 0)));
    assert!(lab.controller().obstacles().is_empty());
}

#[test]
fn a_pause_while_a_write_waits_for_others_wakes_nobody() {
    for after_ms in (0..8_000).step_by(500) {
        let mut lab = settled();
        create(&mut lab, service(1));
        create(&mut lab, service(2));
        lab.pass(after_ms);
        lab.pause("true");
        lab.pass(INTERVAL_MS);
        let wake_ms = lab.controller().next_wake_ms();
        let quiet = wake_ms.is_none_or(|at| at > lab.now_ms);
        assert!(quiet, "paused after {after_ms} ms: {wake_ms:?} at {}", lab.now_ms);
        lab.pause("");
        assert!(lab.settle(DAY_MS));
        assert_eq!(addressed(&lab), (3, 0));
    }
}

#[test]
fn a_pause_of_one_kind_lets_other_kinds_be_written() {
    let mut lab = settled();
    lab.pause("loadbalancers");
    create(&mut lab, service(1));
    lab.pass(INTERVAL_MS);
    let written = paths_written(&lab);
    let has = |kind: &str| written.iter().any(|path| path.contains(kind));
    assert!(has("/publicipaddresses/") && !has("/loadbalancers/"), "{written:?}");
    let said = lab.notices.iter().filter(|notice| notice.kind == NoticeKind::Planned);
    let text = "writes of loadBalancers are paused by an operator; what is under way ends";
    assert!(said.map(|notice| notice.text.as_str()).any(|said| said == text));
    lab.pause("false");
    assert!(lab.settle(DAY_MS));
    assert_eq!(addressed(&lab), (2, 0));
}
