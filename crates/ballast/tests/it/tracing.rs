//! The log of the real binary, held against the calls that the emulated Azure got.

use crate::support::{Emulators, Process};
use serde_json::Value;
use std::collections::BTreeSet;

fn text<'a>(line: &'a Value, key: &str) -> &'a str {
    line[key].as_str().unwrap_or_default()
}

/// What is logged until this Service is programmed, line by line.
fn logged(process: &mut Process, service: &str) -> Vec<Value> {
    let mut lines = Vec::new();
    loop {
        let line: Value = serde_json::from_str(&process.line_with("")).unwrap();
        let done = text(&line, "kind") == "Programmed" && text(&line, "services") == service;
        lines.push(line);
        if done {
            return lines;
        }
    }
}

#[test]
fn a_change_leads_by_ids_from_the_log_to_azures_calls() {
    let emulators = Emulators::start();
    let words = ["run", "--leader-elect=false", "--port", "0", "--log-format", "json"];
    let words = emulators.words(&words);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut process = Process::start_logging(&words);
    emulators.create_service("web");
    let lines = logged(&mut process, "default/web");
    let of = |kind: &str| lines.iter().filter(|l| text(l, "kind") == kind).collect::<Vec<_>>();

    let starts: Vec<_> = lines.iter().filter(|l| text(l, "message") == "Ballast starts").collect();
    assert_eq!(starts.len(), 1, "{lines:#?}");
    for (key, value) in [
        ("version", env!("CARGO_PKG_VERSION")),
        ("cluster", "kubernetes"),
        ("load_balancer_group", "rg"),
        ("load_balancers", "one"),
        ("sku", "standard"),
        ("pools", "nodeIP"),
        ("drift", "repair"),
        ("lease", "none"),
    ] {
        assert_eq!(text(starts[0], key), value, "{}", starts[0]);
    }
    assert_eq!(starts[0]["check_interval_s"], 120, "{}", starts[0]);

    let asked = of("Asked");
    let change = text(asked[0], "changes");
    assert_eq!(change.len(), 36, "{}", asked[0]);
    let sent: Vec<&str> = of("Sent")
        .into_iter()
        .inspect(|line| assert_eq!(text(line, "changes"), change, "{line}"))
        .map(|line| text(line, "correlation"))
        .collect();
    let calls = emulators.azure_calls();
    let writes = calls.iter().filter(|call| call["method"] != "GET");
    let got: Vec<&str> = writes.map(|call| text(call, "correlation")).collect();
    // Public IP, load balancer, security group.
    assert_eq!((sent.len(), &sent), (3, &got));
    let answered: BTreeSet<&str> =
        of("Answered").iter().map(|line| text(line, "correlation")).collect();
    assert_eq!(answered, sent.into_iter().collect());
    let programmed = of("Programmed");
    assert_eq!(text(programmed[0], "changes"), change);
    assert_eq!(process.terminate(), 0);
}
