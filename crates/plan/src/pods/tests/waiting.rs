//! What is drafted for Services that wait stands until something of theirs changes.

use super::stage::{Stage, service, uid};
use model::kubernetes::{Condition, Truth};
use model::plan::Change;
use model::{Plan, ServiceUid};
use std::collections::BTreeSet;
use std::sync::Arc;

const SERVICES: u8 = 40;

/// On whose account a plan has changes that are not the same values as in the plan before.
fn anew(before: &Plan, now: &Plan) -> BTreeSet<ServiceUid> {
    let known = |change: &&Arc<Change>| before.changes.iter().any(|b| Arc::ptr_eq(b, change));
    let new = now.changes.iter().filter(|change| !known(change));
    new.flat_map(|change| change.causes.iter().cloned()).collect()
}

fn crowd() -> Stage {
    let mut stage = Stage::new();
    (0..SERVICES).for_each(|n| stage.put(service(n)));
    stage.round();
    stage
}

#[test]
fn one_answer_makes_nobody_elses_changes_anew() {
    let mut stage = crowd();
    let (before, _) = stage.plan();
    assert_eq!(before.changes.len(), 2 * usize::from(SERVICES), "two each");
    assert_eq!(anew(&before, &stage.plan().0), BTreeSet::new());
    let ip = before.changes.iter().find(|c| c.causes.contains(&uid(7)) && c.waits.is_empty());
    stage.apply(Change::clone(ip.expect("its public IP comes first")));
    let (now, _) = stage.plan();
    assert_eq!(now.changes.len(), before.changes.len() - 1);
    assert_eq!(anew(&before, &now), BTreeSet::from([uid(7)]));
}

#[test]
fn a_write_under_way_makes_nobody_elses_changes_anew() {
    let mut stage = crowd();
    let (before, _) = stage.plan();
    let ip = before.changes.iter().find(|c| c.causes.contains(&uid(7)) && c.waits.is_empty());
    stage.flying.push(Change::clone(ip.expect("its public IP comes first")));
    assert_eq!(anew(&before, &stage.plan().0), BTreeSet::from([uid(7)]));
    stage.flying.clear();
    let (after, _) = stage.plan();
    assert_eq!(after, before, "as if it had not been sent");
}

#[test]
fn finalizers_that_wait_for_their_turn_are_remembered_in_their_order() {
    let mut stage = Stage::new();
    (0..SERVICES).for_each(|n| stage.put(service(n)));
    let (before, _) = stage.plan();
    assert_eq!(before.writes.len(), usize::from(SERVICES));
    stage.write(&before.writes[7]);
    let (now, _) = stage.plan();
    let others = before.writes.iter().enumerate().filter(|(at, _)| *at != 7);
    assert!(now.writes.iter().eq(others.map(|(_, write)| write)));
}

#[test]
fn a_condition_whose_write_waits_is_remembered() {
    let mut stage = Stage::serving(&[]);
    let failed = Condition {
        truth: Truth::False,
        reason: "AzureWriteFailed".into(),
        message: "it failed once".into(),
        since: None,
    };
    stage.edit(1, |service| service.condition = Some(failed));
    let (before, _) = stage.plan();
    assert_eq!(before.writes.len(), 1, "all is well again, and that is to be told");
    assert_eq!(stage.plan().0, before, "it was not sent: another write to the Service was");
    stage.settle();
}
