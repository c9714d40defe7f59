//! Alert rules and the dashboard name only what the real binary exports.

use crate::support::{Emulators, http_text, wait_for};
use ballast::metrics::table::{AGENT_METRICS, METRICS, Metric, MetricKind, TROUBLE};
use regex::Regex;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Labels that Prometheus adds, or a rule's own.
const ADDED: [&str; 4] = ["cluster", "instance", "job", "le"];

/// Samples by name, each with its labels.
type Samples = BTreeMap<String, Vec<BTreeMap<String, String>>>;

fn samples(text: &str) -> Samples {
    let label = Regex::new(r#"([a-z_]+)="((?:[^"\\]|\\.)*)""#).unwrap();
    let mut samples = Samples::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let name = line.split(['{', ' ']).next().unwrap();
        let labels = label.captures_iter(line).map(|c| (c[1].to_owned(), c[2].to_owned()));
        samples.entry(name.to_owned()).or_default().push(labels.collect());
    }
    samples
}

fn read(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/prometheus");
    std::fs::read_to_string(folder.join(name)).unwrap()
}

/// Every `expr` below a value, and every query that a description makes.
fn expressions(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Array(all) => all.iter().for_each(|one| expressions(one, found)),
        Value::Object(all) => {
            for (key, one) in all {
                match one.as_str().filter(|_| key == "expr") {
                    Some(text) => found.push(text.to_owned()),
                    None => expressions(one, found),
                }
            }
        }
        Value::String(text) => found.extend(queries(text)),
        _ => {}
    }
}

/// The queries in a template: `printf "…" … | query`.
fn queries(template: &str) -> Vec<String> {
    let query = Regex::new(r#"printf\s+"((?:[^"\\]|\\.)*)"[^|}]*\|\s*query\b"#).unwrap();
    query.captures_iter(template).map(|c| c[1].replace(r#"\""#, "\"")).collect()
}

/// A sample of each of the reasons why Services are named: those series come and go with them.
fn troubles() -> Vec<BTreeMap<String, String>> {
    let reasons = TROUBLE.labels.iter().find(|label| label.name == "reason").unwrap();
    let reasons = named(reasons.values).unwrap().into_iter();
    reasons.map(|reason| BTreeMap::from([("reason".to_owned(), reason)])).collect()
}

/// What is wrong with what an expression asks for.
fn problems(expression: &str, samples: &Samples) -> Vec<String> {
    let selector = Regex::new(r"((?:ballast|process)_[a-z_]+)(\{[^}]*\})?").unwrap();
    let matcher = Regex::new(r#"([a-z_]+)(=~|!~|!=|=)"([^"]*)""#).unwrap();
    let grouping = Regex::new(r"by \(([^)]*)\)").unwrap();
    let mut wrong = Vec::new();
    let mut known: BTreeSet<&str> = ADDED.into_iter().collect();
    for found in selector.captures_iter(expression) {
        let Some(exported) = samples.get(&found[1]) else {
            wrong.push(format!("{} is not exported", &found[1]));
            continue;
        };
        let labels: BTreeSet<&str> =
            exported.iter().flat_map(BTreeMap::keys).map(String::as_str).collect();
        known.extend(&labels);
        for asked in found.get(2).iter().flat_map(|m| matcher.captures_iter(m.as_str())) {
            let (label, values) = (asked.get(1).unwrap().as_str(), &asked[3]);
            if ADDED.contains(&label) {
                continue;
            }
            for value in values.split('|') {
                let has = |sample: &BTreeMap<String, String>| {
                    sample.get(label).is_some_and(|v| v == value)
                };
                if !exported.iter().any(has) {
                    wrong.push(format!("{} has no {label}={value:?}", &found[1]));
                }
            }
        }
    }
    for labels in grouping.captures_iter(expression) {
        for label in labels[1].split(',').map(str::trim).filter(|l| !l.is_empty()) {
            if !known.contains(label) {
                wrong.push(format!("nothing has the label {label}"));
            }
        }
    }
    wrong
}

/// The metrics of a controller with a Service that is programmed and one that is refused.
fn exported() -> (String, String) {
    let emulators = Emulators::start_with(&["--data-path", "--data-path-second", "20"]);
    emulators.create_service("bad");
    let key = "service.beta.kubernetes.io/azure-load-balancer-tcp-idle-timeout";
    emulators.patch_service("bad", &json!({"metadata": {"annotations": {key: "1000"}}}));
    let (controller, pages) =
        emulators.controller_with(&["--backend-health", "--backend-health-interval", "1"]);
    wait_for("the refusal", || {
        let text = http_text(&pages, "GET", "/metrics", None).1;
        text.contains("ballast_services{state=\"refused\"} 1").then_some(())
    });
    // It comes when the controller has seen the first list: its time is measured.
    emulators.serve("web");
    let text = wait_for("the latency", || {
        let text = http_text(&pages, "GET", "/metrics", None).1;
        let measured = "ballast_programming_latency_seconds_count{kind=\"service\"} 1\n";
        let told = "ballast_services{state=\"programmed\"} 1\n";
        let probed = text.contains("ballast_service_backends{");
        (text.contains(measured) && text.contains(told) && probed).then_some(text)
    });
    let readiness = http_text(&pages, "GET", "/readyz", None).1;
    assert_eq!(http_text(&pages, "GET", "/livez", None), (200, "ok\n".to_owned()));
    assert_eq!(controller.terminate(), 0);
    (text, readiness)
}

/// The values of a label, where the table has a list of them.
fn named(text: &str) -> Option<BTreeSet<String>> {
    let word = Regex::new("`([a-z_]+)`").unwrap();
    let words: BTreeSet<String> = word.captures_iter(text).map(|c| c[1].to_owned()).collect();
    let is_list = text.starts_with('`') && !text.contains(':');
    is_list.then_some(words)
}

fn check_table(metric: &Metric, samples: &Samples) {
    for name in metric.samples() {
        let all = samples.get(&name).unwrap_or_else(|| panic!("{name} is not exported"));
        let mut labels: Vec<&str> = metric.labels.iter().map(|label| label.name).collect();
        if name.ends_with("_bucket") && metric.kind == MetricKind::Histogram {
            labels.push("le");
        }
        labels.sort_unstable();
        for sample in all {
            assert_eq!(sample.keys().map(String::as_str).collect::<Vec<_>>(), labels, "{name}");
        }
        for label in metric.labels {
            let Some(named) = named(label.values) else { continue };
            for sample in all {
                let value = &sample[label.name];
                assert!(
                    named.contains(value),
                    "{name}: {}={value} is not in the table",
                    label.name
                );
            }
        }
        let several: BTreeSet<_> = all.iter().collect();
        assert_eq!(several.len(), all.len(), "{name} has the same labels twice");
    }
}

#[test]
fn rules_and_dashboard_ask_for_what_is_exported() {
    let (text, readiness) = exported();
    assert_eq!(readiness, "ok\n");
    let samples = samples(&text);
    METRICS.iter().for_each(|metric| check_table(metric, &samples));
    let listed: BTreeSet<String> = METRICS.iter().flat_map(Metric::samples).collect();
    assert_eq!(samples.keys().cloned().collect::<BTreeSet<_>>(), listed);
    assert!(text.contains("ballast_findings{severity=\"refusal\",rule=\"InvalidIdleTimeout\"} 1"));
    let written = "ballast_azure_writes_total{resource=\"public_ip\",outcome=\"succeeded\"} 1\n";
    assert!(text.contains(written), "{text}");
    let troubled = "ballast_service_trouble{service_namespace=\"default\",service_name=\"bad\",\
                    reason=\"refused\"} 1\n";
    let unlisted = "ballast_service_trouble_unlisted 0\n";
    assert!(text.contains(troubled) && text.contains(unlisted), "{text}");
    assert!(text.contains("ballast_ready 1\n") && text.contains("ballast_leader 1\n"), "{text}");

    let rules: Value = serde_saphyr::from_str(&read("rules.yaml")).unwrap();
    let dashboard: Value = serde_json::from_str(&read("dashboard.json")).unwrap();
    // What agents on nodes export is compared with the table by a test of theirs.
    let mut samples = samples;
    let agents = AGENT_METRICS.iter().flat_map(Metric::samples);
    samples.extend(agents.map(|name| (name, vec![BTreeMap::new()])));
    samples.get_mut(TROUBLE.name).unwrap().extend(troubles());
    let mut asked = Vec::new();
    expressions(&rules, &mut asked);
    let naming = asked.iter().filter(|query| query.contains(TROUBLE.name));
    assert_eq!(naming.count(), 3, "the alerts that name Services");
    for (document, at_least) in [(rules, 10), (dashboard, 30)] {
        let mut all = Vec::new();
        expressions(&document, &mut all);
        assert!(all.len() >= at_least, "only {} expressions were found", all.len());
        for expression in all {
            let wrong = problems(&expression, &samples);
            assert!(wrong.is_empty(), "{expression}: {}", wrong.join("; "));
        }
    }
}

#[test]
fn what_is_not_exported_is_found() {
    let samples = samples("# HELP x y\nballast_up{state=\"a\"} 1\n");
    assert!(problems("sum by (state, job) (ballast_up{state=~\"a\"})", &samples).is_empty());
    for wrong in ["ballast_down", "ballast_up{state=\"b\"}", "sum by (kind) (ballast_up)"] {
        assert_eq!(problems(wrong, &samples).len(), 1, "{wrong}");
    }
    let template =
        "a {{- with printf\n\"up{job=%q, state=\\\"a\\\"}\" $labels.job | query }}b{{ end }}";
    assert_eq!(queries(template), ["up{job=%q, state=\"a\"}"]);
}
