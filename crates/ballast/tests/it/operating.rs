//! docs/operating.md names every alert and every reason, and none that does not exist.

use control::reason::{POD_RULES, REASONS};
use model::report::Severity;
use plan::ask::findings::RULES;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

const BEGIN: &str = "<!-- reasons: made from the code; UPDATE_DOCS=1 cargo test -p ballast \
                     --test it operating -->\n";
const END: &str = "<!-- end -->\n";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn page() -> String {
    std::fs::read_to_string(root().join("docs/operating.md")).unwrap()
}

fn yaml(name: &str) -> Value {
    let text = std::fs::read_to_string(root().join("deploy/prometheus").join(name)).unwrap();
    serde_saphyr::from_str(&text).unwrap()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn rules() -> Vec<Value> {
    let rules = yaml("rules.yaml");
    list(&rules["groups"]).iter().flat_map(|group| list(&group["rules"])).cloned().collect()
}

/// What stands before the table of findings.
const FINDINGS: &str = "\
A finding is what Ballast has to say about a Service. Its name, such as `InvalidIdleTimeout`, is
called its rule. There are three kinds of findings:

- A note: the Service is programmed all the same. The Event is a Warning with the rule as its
  reason.
- A refusal: the Service keeps what it had until the cause is gone: in the Service, the cloud
  config, the cluster or Azure. The Event has the reason `SyncLoadBalancerFailed`; on container
  load balancers there is a second one with the rule as its reason.
- A hold: the owner holds the Service back by an annotation, until the owner removes it or
  confirms the change. The Event is a Warning with the rule as its reason.

A Service with several findings of one rule gets one Event for them. `ModeChanged` comes from the
admission policy (`ballast lint --admission-policy`) alone: without the policy such an edit has no
effect.

The third column is an example: the key that the message names (annotations without
`service.beta.kubernetes.io/`), and a value that you wrote or that Ballast counted or found, such
as `51 tags`. Messages may say more than the text in the table, so search for the rule: it is the
reason of the condition `ballast.dev/Programmed` where the Service has one finding, and `ballast
lint` prints it in brackets. A pinned address is one that `azure-load-balancer-ipv4`,
`azure-load-balancer-ipv6` or `spec.loadBalancerIP` asks for; `layoutMigration` and its `keepBoth`
are keys of [migrations](migrations.md).
";

fn reasons() -> String {
    let mut text = "| reason | type | about | what it means | what to do |\n\
                    | --- | --- | --- | --- | --- |\n"
        .to_owned();
    for r in REASONS {
        let (name, kind, about) = (r.name, r.kind, r.about);
        text += &format!("| `{name}` | {kind} | {about} | {} | {} |\n", r.meaning, r.action);
    }
    text += "\n### Reasons about Pods with an egress label\n\n\
             The label `kubernetes.azure.com/service-egress-gateway` names the Pod's\n\
             [egress gateway](container-load-balancer.md#egress-gateways).\n\n\
             | reason | what to do |\n| --- | --- |\n";
    for (name, action) in POD_RULES {
        text += &format!("| `{name}` | {action} |\n");
    }
    text += "\n### Findings about Services\n\n";
    text += FINDINGS;
    text +=
        "\n| rule | | example: key and value | its text, in short |\n| --- | --- | --- | --- |\n";
    let mut rules: Vec<_> = RULES.iter().collect();
    rules.sort_by_key(|rule| rule.name);
    for rule in rules {
        let severity = match rule.severity {
            Severity::Note => "note",
            Severity::Hold => "hold",
            Severity::Refusal => "refusal",
        };
        let example = rule.example.replace('|', "\\|");
        text += &format!("| `{}` | {severity} | `{example}` | {} |\n", rule.name, rule.text());
    }
    text
}

#[test]
fn every_reason_is_explained() {
    let page = page();
    let (head, rest) = page.split_once(BEGIN).unwrap();
    let (_, tail) = rest.split_once(END).unwrap();
    let made = format!("{head}{BEGIN}{}{END}{tail}", reasons());
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(root().join("docs/operating.md"), &made).unwrap();
    }
    let kept = self::page();
    let hint =
        "docs/operating.md is out of date: UPDATE_DOCS=1 cargo test -p ballast --test it operating";
    assert!(kept == made, "{hint}");
}

#[test]
fn every_alert_is_explained_and_leads_there() {
    let page = page();
    let explained: BTreeSet<&str> =
        page.lines().filter_map(|line| line.strip_prefix("### Ballast")).collect();
    let rules = rules();
    let alerts: BTreeSet<&str> = rules
        .iter()
        .map(|r| r["alert"].as_str().unwrap().strip_prefix("Ballast").unwrap())
        .collect();
    assert_eq!(explained, alerts);
    for rule in &rules {
        let anchor = format!("#{}", rule["alert"].as_str().unwrap().to_lowercase());
        let url = rule["annotations"]["runbook_url"].as_str().unwrap();
        assert!(url.ends_with(&format!("/docs/operating.md{anchor}")), "{url}");
    }
}

#[test]
fn every_alert_is_seen_to_fire_and_not_to() {
    let tests = yaml("rules_test.yaml");
    let mut seen = BTreeSet::new();
    for test in list(&tests["tests"]).iter().flat_map(|test| list(&test["alert_rule_test"])) {
        let fires = !list(&test["exp_alerts"]).is_empty();
        seen.insert((test["alertname"].as_str().unwrap().to_owned(), fires));
    }
    for rule in rules() {
        let name = rule["alert"].as_str().unwrap();
        for fires in [true, false] {
            assert!(seen.contains(&(name.to_owned(), fires)), "{name}: fires {fires}");
        }
    }
}

/// The history file that the page reads is the one that the chart writes.
#[test]
fn the_page_names_the_charts_history_file() {
    let chart = root().join("deploy/helm/ballast/templates/deployment.yaml");
    let chart = std::fs::read_to_string(chart).unwrap();
    let written = chart.lines().find_map(|line| line.trim().strip_prefix("- --history-file="));
    let page = page();
    let read = page.lines().find_map(|line| line.trim().strip_prefix("ballast history --file "));
    assert_eq!(read.and_then(|rest| rest.split_whitespace().next()), written);
    assert!(written.is_some(), "the chart writes no history file");
}
