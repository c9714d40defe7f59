//! Bytes from outside, as they come and damaged in every way that a list can hold: each value of
//! each document is replaced by each of other kinds, each field is left out, each document is cut
//! off everywhere, and bytes are drawn at random. `fuzz/` opens the same doors to .ci/fuzz.
//! The doors at the sockets are in `crates/ballast/tests/it/outside_bytes.rs`.
#![allow(clippy::unwrap_used, reason = "a failed unwrap in a test is a failed test")]

#[path = "../../../../fuzz/damage.rs"]
mod damage;
#[path = "../../../../fuzz/doors.rs"]
mod doors;
#[path = "../../../../fuzz/steps.rs"]
mod steps;

use damage::{after_line, corpus, damaged, whole};
use doors::Settled;
use proptest::prelude::*;
use serde_json::{Value, json};

#[test]
fn bodies_of_arm() {
    let count = damaged("arm_body", whole, doors::arm_body);
    assert!(count > 3_000, "{count}");
}

#[test]
fn answers_of_arm() {
    let count = damaged("arm_answer", |_| 2, doors::arm_answer);
    assert!(count > 100, "{count}");
}

#[test]
fn objects_of_kubernetes() {
    let count = damaged("kubernetes_object", whole, doors::kubernetes_object);
    assert!(count > 3_000, "{count}");
}

#[test]
fn cloud_configs() {
    let count = damaged("cloud_config", whole, doors::cloud_config);
    assert!(count > 700, "{count}");
}

#[test]
fn services_are_planned_whatever_stands_in_them() {
    let settled = Settled::new();
    let count = damaged("service_plan", whole, |bytes| doors::service_plan(&settled, bytes));
    assert!(count > 1_000, "{count}");
}

/// Each annotation that has a meaning, with each of the strange values that are text.
#[test]
fn annotations_with_strange_values() {
    let settled = Settled::new();
    let (_, bytes) = corpus("service_plan").swap_remove(0);
    let service: Value = serde_json::from_slice(&bytes).unwrap();
    let texts = ["", " ", ",", "=", "true", "-1", "0", "99999999999999999999", "a=b,a=c", "é\u{0}"];
    let mut count = 0;
    for line in plan::ask::annotation::reference().lines() {
        // A row of the reference begins with its key.
        let Some(key) = line.strip_prefix("| `").and_then(|l| l.split('`').next()) else {
            continue;
        };
        let key = key.replace("{port}", "80");
        for text in texts {
            for key in [key.clone(), format!("service.beta.kubernetes.io/{key}")] {
                let mut changed = service.clone();
                changed["metadata"]["annotations"][&key] = json!(text);
                doors::service_plan(&settled, changed.to_string().as_bytes());
                count += 1;
            }
        }
    }
    assert!(count > 800, "the reference was not read: {count}");
}

#[test]
fn requests_to_the_emulated_azure() {
    let count = damaged("azure_request", after_line, doors::azure_request);
    assert!(count > 2_000, "{count}");
}

#[test]
fn requests_to_the_emulated_api_server() {
    let count = damaged("kubernetes_request", after_line, doors::kubernetes_request);
    assert!(count > 300, "{count}");
}

#[test]
fn programs_of_events() {
    for (_, program) in corpus("controller_steps") {
        steps::controller_steps(&program);
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 100, failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn any_program_of_events(bytes in prop::collection::vec(any::<u8>(), 0..240)) {
        steps::controller_steps(&bytes);
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 300, failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn any_bytes_at_any_door(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        doors::arm_body(&bytes);
        doors::arm_answer(&bytes);
        doors::kubernetes_object(&bytes);
        doors::cloud_config(&bytes);
        doors::azure_request(&bytes);
        doors::kubernetes_request(&bytes);
    }

    #[test]
    fn any_text_as_cloud_config(text in "[{}\\[\\]:,\"a-z0-9 \\n&*!|>-]{0,200}") {
        doors::cloud_config(text.as_bytes());
    }

    #[test]
    fn any_path_at_the_emulators(
        path in "(/[a-zA-Z0-9%?=&.{}-]{0,12}){0,9}",
        method in "[A-Z]{3,6}",
    ) {
        let line = format!("{method} {path}\n{{}}");
        doors::azure_request(line.as_bytes());
        doors::kubernetes_request(line.as_bytes());
    }
}
