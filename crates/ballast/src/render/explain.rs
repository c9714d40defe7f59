//! An explanation as a document, and as text.

mod rows;

use crate::output::{Ink, Paint};
use crate::render::known;
use crate::render::plan::words::{group_name, kind_name, shown_name};
use crate::render::table::lay_out;
use edge::terminal::one_line;
use explain::causes::{Absent, ExplainedResource, Explanation, Source, Standing, Target};
use model::report::{State, Wait};
use plan::ask::annotation::PREFIX;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Resources of one kind that are shown in full before the others are only counted.
const SHOWN: usize = 3;

/// What `explain -o json` prints.
#[must_use]
pub fn document(explanation: &Explanation) -> Value {
    let mut value = serde_json::to_value(explanation).unwrap_or_default();
    value["state"] = json!(explanation.state.word());
    value["waits"] = explanation.waits.iter().map(ToString::to_string).collect();
    value["assumed"] = explanation.assumed.iter().map(ToString::to_string).collect();
    known::value(&value)
}

/// The whole explanation.
#[must_use]
pub fn render(explanation: &Explanation, paint: Paint) -> String {
    let names = Names::of(explanation);
    let mut text = String::new();
    let resources = &explanation.resources;
    let mut at = 0;
    while let Some(resource) = resources.get(at) {
        let same = alike(&resources[at..]);
        let shown = if same > SHOWN { 1 } else { same };
        for resource in &resources[at..at + shown] {
            text.push_str(&render_resource(resource, explanation.state, &names, paint));
        }
        if same > shown {
            let others: Vec<String> = resources[at + shown..at + same]
                .iter()
                .take(SHOWN)
                .map(|r| name(&r.target))
                .collect();
            let more = if same - shown > SHOWN { " …" } else { "" };
            let kind = kind(&resource.target);
            text.push_str(&format!(
                "\n{} more of this kind ({kind}) likewise: {}{more}\n",
                same - shown,
                others.join(", ")
            ));
        }
        at += same;
    }
    text.push_str(&absent(&explanation.absent, &names, paint));
    text.push_str(&needed(explanation, paint));
    text.push_str(&unused(explanation, paint));
    let legend = names.legend(&text);
    format!("{}{legend}{text}", head(explanation, paint))
}

/// Long names that stand by their beginning: the base of all names, and the UID it is made from.
struct Names {
    pairs: Vec<(String, String)>,
}

impl Names {
    fn of(explanation: &Explanation) -> Self {
        let long = [explanation.uid.base_name(), explanation.uid.to_string()];
        let pair = |long: String| {
            let begin = long.get(..9)?.trim_end_matches('-').to_owned();
            Some((long, format!("{begin}…")))
        };
        Self { pairs: long.into_iter().filter_map(pair).collect() }
    }

    fn shorten(&self, text: &str) -> String {
        let replace = |text: String, (long, short): &(String, String)| text.replace(long, short);
        self.pairs.iter().fold(text.to_owned(), replace)
    }

    /// What the short ones stand for, where they are used.
    fn legend(&self, text: &str) -> String {
        let alone = |at: usize| !text[..at].ends_with(|c: char| c.is_ascii_alphanumeric());
        let used = self
            .pairs
            .iter()
            .filter(|(_, short)| text.match_indices(short.as_str()).any(|(at, _)| alone(at)));
        used.map(|(long, short)| {
            format!("  {short} below is short for {long}, which comes from metadata.uid\n")
        })
        .collect()
    }
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
    text.push_str(&format!(": {}", explanation.state.text()));
    let addresses: Vec<String> = explanation.addresses.iter().map(|a| known::text(a)).collect();
    if !addresses.is_empty() {
        text.push_str(&format!(", at {}", addresses.join(", ")));
    }
    if let Some(balancer) = &explanation.balancer {
        text.push_str(&format!(", on load balancer {balancer}"));
    }
    text.push('\n');
    if explanation.state.is_refused() {
        text.push_str("  Nothing is written for it until this is corrected; what it has stays:\n");
    }
    if explanation.state == State::Held {
        text.push_str("  Nothing is written for it while its owner holds it; what it has stays:\n");
    }
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
        text.push_str(&one_line(&format!("  waits on {wait}\n")));
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
        Target::Azure(id) if id.folded().ends_with("/addresslocations") => {
            "addresses in Service Gateway".to_owned()
        }
        Target::Azure(id) if id.folded().contains("/servicegateways/") => {
            "service of Service Gateway".to_owned()
        }
        Target::Azure(id) => kind_name(id),
        Target::Service(_) => "Service".to_owned(),
    }
}

fn name(target: &Target) -> String {
    match target {
        Target::Azure(id) if id.folded().ends_with("/addresslocations") => {
            id.as_str().rsplit('/').nth(1).unwrap_or_default().to_owned()
        }
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

fn render_resource(
    resource: &ExplainedResource,
    state: State,
    names: &Names,
    paint: Paint,
) -> String {
    let (words, ink) = match resource.standing {
        Standing::AsWanted if state.is_frozen() => ("stays as it is", Ink::Cyan),
        Standing::AsWanted => ("is there as wanted", Ink::Cyan),
        Standing::Created => ("would be created", Ink::Green),
        Standing::Changed => ("would be changed", Ink::Yellow),
        Standing::Deleted => ("would be deleted", Ink::Red),
    };
    let head = names.shorten(&format!("{}: {words}", title(&resource.target)));
    let mut text = format!("\n{}\n", paint.ink(ink, head));
    if let (Target::Azure(_), false) = (&resource.target, resource.sources.is_empty()) {
        let because = because(&resource.sources);
        text.push_str(&format!("  here, and so named, because of {because}\n"));
    }
    let rows: Vec<rows::Row> =
        rows::rows(resource).into_iter().map(|row| row.shortened(names)).collect();
    text.push_str(&rows::render(&rows, paint));
    text
}

/// What something comes from, in words; that nothing does only where nothing does.
fn because<'a>(sources: impl IntoIterator<Item = &'a Source>) -> String {
    let sources: Vec<&Source> = sources.into_iter().collect();
    let is_real = |s: &&&Source| !matches!(s, Source::Default { .. } | Source::Reference);
    let real: Vec<&&Source> = sources.iter().filter(is_real).collect();
    let shown: Vec<String> = match real.is_empty() {
        true => sources.iter().map(|s| words(s)).collect(),
        false => real.iter().map(|s| words(s)).collect(),
    };
    shown.join("; ")
}

fn words(source: &Source) -> String {
    match source {
        // It is in the first line.
        Source::ServiceField { path, .. } if path == "metadata.uid" => path.clone(),
        source => source.to_string(),
    }
}

/// An annotation's key without what all have in common.
fn short(key: &str) -> &str {
    key.strip_prefix(PREFIX).unwrap_or(key)
}

fn absent(absent: &[Absent], names: &Names, paint: Paint) -> String {
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
            vec![format!("  {}", names.shorten(&what)), format!("because of {}", a.source)]
        })
        .collect();
    for line in lay_out(&rows) {
        text.push_str(&format!("{}\n", line.join("  ")));
    }
    text
}

fn needed(explanation: &Explanation, paint: Paint) -> String {
    if explanation.needed.is_empty() {
        return String::new();
    }
    let mut text = format!("\n{}\n", paint.ink(Ink::Bold, "Needed, or the Service is refused:"));
    for needed in &explanation.needed {
        let refusal = known::text(&needed.refusal.to_string());
        text.push_str(&format!("  {}\n      without it: {refusal}\n", needed.source));
    }
    text
}

fn unused(explanation: &Explanation, paint: Paint) -> String {
    if explanation.unused.is_empty() {
        return String::new();
    }
    let mut text = format!("\n{}\n", paint.ink(Ink::Bold, "Without effect:"));
    for unused in &explanation.unused {
        let (key, reason) = (short(&unused.key), &unused.reason);
        let kind = if key == &*unused.key { "" } else { "annotation " };
        text.push_str(&format!("  {kind}{key} = {:?}\n      {reason}\n", unused.value));
    }
    text
}
