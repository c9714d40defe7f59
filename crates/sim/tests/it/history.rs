//! Each write is remembered: what it changed, what it was caused by, and what Azure answered.

use crate::support::container::*;
use crate::support::*;
use control::history::{Cause, FieldChange};
use control::{WriteOutcome, WriteRecord};
use serde_json::{Value, json};
use sim::Laboratory;
use std::sync::Arc;

fn one() -> Laboratory {
    served([service(0)])
}

fn records(lab: &Laboratory) -> Vec<Arc<WriteRecord>> {
    lab.controller().history().cloned().collect()
}

fn since(lab: &Laboratory, before: usize) -> Vec<Arc<WriteRecord>> {
    records(lab).split_off(before)
}

fn change<'a>(record: &'a WriteRecord, end: &str) -> &'a FieldChange {
    let found = record.fields.shown.iter().find(|field| field.path.ends_with(end));
    found.unwrap_or_else(|| panic!("no {end} among {:#?}", record.fields))
}

fn set_timeout(lab: &mut Laboratory, minutes: &str) {
    let body = json!({"metadata": {"annotations": {TIMEOUT: minutes}}});
    patch(lab, "services", "default", "web-0000", body);
    assert!(lab.settle(DAY_MS));
}

#[test]
fn a_write_is_remembered_with_its_fields_its_edit_and_azures_answer() {
    let mut lab = one();
    let before = records(&lab).len();
    assert!(before >= 3, "an address, a load balancer and a security group: {before}");
    set_timeout(&mut lab, "9");
    let new = since(&lab, before);
    let [record] = new.as_slice() else { panic!("one write: {new:#?}") };
    assert_eq!((record.method, record.attempt), ("PUT", 1));
    assert!(record.target.as_str().ends_with("loadBalancers/kubernetes"), "the ARM id");
    let calls = lab.azure.calls();
    let sent = calls.iter().rfind(|call| call.is_write()).unwrap();
    assert_eq!(sent.correlation.as_deref(), Some(&*record.correlation), "as Azure got it");
    assert_eq!(record.outcome, WriteOutcome::Done);
    assert!(record.ended_ms.is_some_and(|ended| ended >= record.sent_ms));
    assert_eq!(
        record.services.iter().map(ToString::to_string).collect::<Vec<_>>(),
        ["default/web-0000"]
    );
    let timeout = change(record, "idleTimeoutInMinutes");
    assert_eq!(timeout.new.as_deref(), Some("9"), "{timeout:?}");
    let [Cause::Edit(edit)] = record.causes.shown.as_slice() else {
        panic!("{:#?}", record.causes)
    };
    assert_eq!(edit.fields.len(), 1, "{:#?}", edit.fields);
    assert_eq!(edit.fields[0].path, format!("metadata.annotations[{TIMEOUT}]"));
    assert_eq!(
        (edit.fields[0].old.as_deref(), edit.fields[0].new.as_deref()),
        (None, Some("\"9\""))
    );
    // The next edit is the cause of the next write, and the one before is not.
    let before = records(&lab).len();
    set_timeout(&mut lab, "12");
    let new = since(&lab, before);
    let causes: Vec<&Cause> = new.iter().flat_map(|record| &record.causes.shown).collect();
    let [Cause::Edit(edit)] = causes.as_slice() else { panic!("{causes:#?}") };
    assert_eq!(edit.fields[0].old.as_deref(), Some("\"9\""));
}

#[test]
fn a_write_that_azure_rejects_is_remembered_with_code_and_message() {
    let mut lab = one();
    let before = records(&lab).len();
    lab.azure.add_fault(
        refusing(409, "AnotherOperationInProgress", "PUT", "loadBalancers/kubernetes$").times(1),
    );
    set_timeout(&mut lab, "9");
    let new = since(&lab, before);
    assert_eq!(new.len(), 2, "the rejected one and the next attempt: {new:#?}");
    let WriteOutcome::Failed { status, code, message } = &new[0].outcome else {
        panic!("{new:#?}")
    };
    assert_eq!(*status, 409);
    assert!(!code.is_empty() && !message.is_empty(), "{code} {message}");
    assert_eq!((new[1].attempt, &new[1].outcome), (2, &WriteOutcome::Done));
    assert_ne!(new[0].correlation, new[1].correlation);
}

/// That what waits for such a write goes on waiting does not make each attempt the first.
#[test]
fn attempts_that_azure_turns_away_are_numbered() {
    for (status, code) in [(412, "PreconditionFailed"), (429, "TooManyRequests")] {
        let mut lab = one();
        let before = records(&lab).len();
        let turned_away = refusal(status, code, None);
        lab.azure.add_fault(fault(turned_away, "PUT", "loadBalancers/kubernetes$").times(2));
        set_timeout(&mut lab, "9");
        let new = since(&lab, before);
        let attempts: Vec<u32> = new.iter().map(|record| record.attempt).collect();
        assert_eq!(attempts, [1, 2, 3], "{code}");
    }
}

#[test]
fn nodes_and_drift_are_causes_and_what_stands_at_a_start_says_so() {
    let mut lab = one();
    let before = records(&lab).len();
    create(&mut lab, node(7));
    assert!(lab.settle(DAY_MS));
    let new = since(&lab, before);
    let named = new.iter().flat_map(|record| &record.causes.shown).any(|cause| match cause {
        Cause::Nodes { names, more } => names.len() == 1 && *more == 0,
        _ => false,
    });
    assert!(named, "{new:#?}");
    // Somebody takes the rule away.
    edit(&mut lab, "loadBalancers/kubernetes", |body| {
        body["properties"]["loadBalancingRules"] = json!([]);
    });
    let before = records(&lab).len();
    lab.pass(2 * 120_000);
    assert!(lab.settle(DAY_MS));
    let new = since(&lab, before);
    let [Cause::Drift(deed)] = new[0].causes.shown.as_slice() else { panic!("{new:#?}") };
    assert!(deed.contains("-TCP-80 is gone"), "{deed}");
    // Another process finds a Service that was edited while none ran.
    lab.restart();
    let value: Value = json!({"metadata": {"annotations": {TIMEOUT: "15"}}});
    patch(&mut lab, "services", "default", "web-0000", value);
    assert!(lab.settle(DAY_MS));
    let record = records(&lab).into_iter().next().unwrap();
    let [Cause::Standing { service, .. }] = record.causes.shown.as_slice() else {
        panic!("{record:#?}")
    };
    assert_eq!(service.to_string(), "default/web-0000");
}
