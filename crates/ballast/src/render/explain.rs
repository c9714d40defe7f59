//! An explanation as a document, and as text.

mod rows;

use crate::output::{Ink, Paint};
use crate::render::known;
use crate::render::plan::words::{group_name, kind_name, shown_name};
use crate::render::table::lay_out;
use crate::status::state;
use model::report::Wait;
use plan::annotation::PREFIX;
use plan::explain::{Absent, ExplainedResource, Explanation, Source, Standing, Target};
use rows::{Row, rows};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Resources of one kind that are shown in full before the others are only counted.
const SHOWN: usize = 3;

/// What `explain -o json` prints.
#[must_use]
pub fn document(explanation: &Explanation) -> Value {
    let mut value = serde_json::to_value(explanation).unwrap_or_default();
    value["state"] = json!(state(explanation.state));
    value["waits"] = explanation.waits.iter().map(ToString::to_string).collect();
    value["assumed"] = explanation.assumed.iter().map(ToString::to_string).collect();
    known::value(&value)
}

/// The whole explanation.
#[must_use]
pub fn render(explanation: &Explanation, paint: Paint) -> String {
    let mut text = head(explanation, paint);
    let resources = &explanation.resources;
    let mut at = 0;
    while let Some(resource) = resources.get(at) {
        let same = alike(&resources[at..]);
        let shown = if same > SHOWN { 1 } else { same };
        resources[at..at + shown].iter().for_each(|r| text.push_str(&render_resource(r, paint)));
        if same > shown {
            let names: Vec<String> = resources[at + shown..at + same]
                .iter()
                .take(SHOWN)
                .map(|r| name(&r.target))
                .collect();
            let more = if same - shown > SHOWN { " …" } else { "" };
            let kind = kind(&resource.target);
            text.push_str(&format!(
                "\n{} more of this kind ({kind}) likewise: {}{more}\n",
                same - shown,
                names.join(", ")
            ));
        }
        at += same;
    }
    text.push_str(&absent(&explanation.absent, paint));
    text.push_str(&unused(explanation, paint));
    text
}

/// How many resources from the first on say the same of other names.
fn alike(resources: &[ExplainedResource]) -> usize {
    let summary = |r: &ExplainedResource| {
        let parts = r.parts.iter().flat_map(|p| p.fields.iter().map(|f| &f.sources));
        let sources: BTreeSet<&Source> =
            r.fields.iter().map(|f| &f.sources).chain(parts).flatten().collect();
        (kind(&r.target), r.standing, sources.into_iter().cloned().collect::<Vec<_>>())
    };
    let Some(first) = resources.first().map(summary) else { return 0 };
    resources.iter().take_while(|r| summary(r) == first).count()
}

fn head(explanation: &Explanation, paint: Paint) -> String {
    let mut text = paint.ink(Ink::Bold, format!("Service {}", explanation.service));
    text.push_str(&format!(": {}", state(explanation.state)));
    let addresses: Vec<String> = explanation.addresses.iter().map(|a| known::text(a)).collect();
    if !addresses.is_empty() {
        text.push_str(&format!(", at {}", addresses.join(", ")));
    }
    if let Some(balancer) = &explanation.balancer {
        text.push_str(&format!(", on load balancer {balancer}"));
    }
    text.push('\n');
    for finding in &explanation.findings {
        text.push_str(&paint.ink(Ink::Red, format!("  ! {finding}")));
        text.push('\n');
    }
    let waits = explanation.waits.iter().map(|wait| match wait {
        Wait::SetAside { until_ms: None, .. } => {
            format!("{wait} (the search for the Service at fault goes on)")
        }
        wait => wait.to_string(),
    });
    for wait in waits {
        text.push_str(&format!("  waits on {wait}\n"));
    }
    for (id, call) in &explanation.in_flight {
        let (kind, name) = (kind_name(id), shown_name(id));
        text.push_str(&format!("  under way: {kind} {name}, try {}\n", call.attempt));
    }
    for need in &explanation.assumed {
        text.push_str(&format!("  not read: {need}; below as if there were none\n"));
    }
    text
}

fn kind(target: &Target) -> String {
    match target {
        Target::Azure(id) => kind_name(id),
        Target::Service(_) => "Service".to_owned(),
    }
}

fn name(target: &Target) -> String {
    match target {
        Target::Azure(id) => shown_name(id),
        Target::Service(name) => name.to_string(),
    }
}

fn title(target: &Target) -> String {
    let group = match target {
        Target::Azure(id) => group_name(id).map(|g| format!(" in {g}")).unwrap_or_default(),
        Target::Service(_) => String::new(),
    };
    format!("{} {}{group}", kind(target), name(target))
}

fn render_resource(resource: &ExplainedResource, paint: Paint) -> String {
    let (words, ink) = match resource.standing {
        Standing::AsWanted => ("is there as wanted", Ink::Cyan),
        Standing::Created => ("would be created", Ink::Green),
        Standing::Changed => ("would be changed", Ink::Yellow),
        Standing::Deleted => ("would be deleted", Ink::Red),
    };
    let head = format!("{}: {words}", title(&resource.target));
    let mut text = format!("\n{}\n", paint.ink(ink, head));
    let mut table: Vec<Row> = Vec::new();
    if !resource.sources.is_empty() {
        table.push(Row::head("that there is one, of this name", &resource.sources));
    }
    table.extend(rows(resource));
    let cells: Vec<Vec<String>> = table.iter().flat_map(Row::lines).collect();
    for line in lay_out(&cells) {
        text.push_str(line.join("  ").trim_end());
        text.push('\n');
    }
    text
}

/// An annotation's key without what all have in common.
fn short(key: &str) -> &str {
    key.strip_prefix(PREFIX).unwrap_or(key)
}

fn absent(absent: &[Absent], paint: Paint) -> String {
    if absent.is_empty() {
        return String::new();
    }
    let mut text = format!("\n{}\n", paint.ink(Ink::Bold, "Not there:"));
    let rows: Vec<Vec<String>> = absent
        .iter()
        .map(|a| {
            let path = rows::shown_path(&a.path);
            let what = match path.is_empty() {
                true => title(&a.target),
                false => format!("{} {}: {path}", kind(&a.target), name(&a.target)),
            };
            vec![format!("  {what}"), a.source.to_string()]
        })
        .collect();
    for line in lay_out(&rows) {
        text.push_str(&format!("{}\n", line.join("  ")));
    }
    text
}

fn unused(explanation: &Explanation, paint: Paint) -> String {
    if explanation.unused.is_empty() {
        return String::new();
    }
    let mut text = format!("\n{}\n", paint.ink(Ink::Bold, "Annotations without effect:"));
    for unused in &explanation.unused {
        let (key, reason) = (short(&unused.key), &unused.reason);
        text.push_str(&format!("  {key} = {:?}\n      {reason}\n", unused.value));
    }
    text
}
