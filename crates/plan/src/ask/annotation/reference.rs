//! The annotation reference, in Markdown.

use super::{Annotation, OWN, PAUSE, PREFIX, SHARE, TABLE};
use crate::ask::findings::RULES;
use model::report::Severity;
use std::fmt::Write;

/// Titles, and the key that each stands before.
const SECTIONS: &[(&str, &str)] = &[
    ("Where the Service is placed", "azure-load-balancer-internal"),
    ("Addresses", "azure-load-balancer-ipv4"),
    ("Load-balancing rules", "azure-load-balancer-tcp-idle-timeout"),
    ("Health probes", "azure-load-balancer-health-probe-protocol"),
    ("Who may connect", "azure-allowed-service-tags"),
    ("Public IPs", "azure-pip-name"),
    ("Private Link Service", "azure-pls-create"),
    ("Holding back", PAUSE),
    ("Other namespaces", SHARE),
];

/// The annotation reference: every key, then every finding.
#[must_use]
pub fn reference() -> String {
    let mut text = format!(
        "# Annotations of a Service\n\n\
         Keys go on from `{PREFIX}`, but for those of Ballast alone, which begin with `{OWN}`; \
         `{{port}}` is a port number of the Service. What a flag counts as true is what the Go \
         cloud provider does; anything else is false, and noted unless it is empty or `false`. A \
         key that is not listed here is noted, too.\n"
    );
    for entry in TABLE {
        for (title, first) in SECTIONS {
            if *first == entry.key {
                let head = "| key | values | without it | effect | counts on | other values |";
                let line = "| --- | --- | --- | --- | --- | --- |";
                push(&mut text, &format!("\n## {title}\n\n{head}\n{line}"));
            }
        }
        push(&mut text, &row(entry));
    }
    push(&mut text, "\n## Findings\n");
    push(
        &mut text,
        "A Service that is refused, or held by its owner, gets nothing new and keeps what it has \
         until it changes. It stays on an address that it shares where the other Service moves \
         away.\n",
    );
    push(&mut text, "| finding | effect | example | text |\n| --- | --- | --- | --- |");
    for rule in RULES {
        let effect = match rule.severity {
            Severity::Note => "noted",
            Severity::Hold => "held",
            Severity::Refusal => "refused",
        };
        let (name, example, text_of) = (rule.name, rule.example, rule.text());
        push(&mut text, &format!("| {name} | {effect} | `{example}` | {text_of} |"));
    }
    text
}

fn row(entry: &Annotation) -> String {
    let Annotation { key, kind: _, values, default, since: _, effect, error, reach: _, skus: _ } =
        entry;
    let scope = entry.scope();
    format!("| `{key}` | {values} | {default} | {effect} | {scope} | {error} |")
}

fn push(text: &mut String, line: &str) {
    writeln!(text, "{line}").expect("writing to a String cannot fail");
}
