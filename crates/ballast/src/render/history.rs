//! The history as text: one write a paragraph, with its cause, its fields and Azure's answer.

use crate::history::{DriftEntry, FieldEntry, HistoryDocument, UNKNOWN, Wanted, WriteEntry};
use crate::output::{Ink, Paint};
use crate::render::tree::scalar;
use edge::clock::utc_seconds;
use serde_json::Value;

/// Fields of a write that are printed.
const FIELDS: usize = 20;
/// Letters of a value that are printed.
const LETTERS: usize = 120;
/// Letters of a cause that are printed: the field of a Service is long.
const CAUSE: usize = 600;
/// Services and causes of a write that are printed.
const FEW: usize = 5;

/// The text of `ballast history`, oldest write first. The document has only the wanted writes.
#[must_use]
pub fn render(document: &HistoryDocument, wanted: Wanted<'_>, paint: Paint) -> String {
    let mut text = String::new();
    let mut drift = document.drift.iter().peekable();
    for write in &document.writes {
        while let Some(before) = drift.next_if(|drift| drift.noticed_ms <= write.sent_ms) {
            text.push_str(&render_drift(before, paint));
        }
        text.push_str(&render_write(write, document.now_ms, paint));
    }
    drift.for_each(|after| text.push_str(&render_drift(after, paint)));
    if text.is_empty() {
        let about = match wanted {
            Wanted::Everything => String::new(),
            Wanted::Service(name) => format!(" of Service {name}"),
            Wanted::Namespace(name) => format!(" of namespace {name}"),
        };
        text.push_str(&format!("No write to Azure and no drift{about} is remembered.\n"));
    }
    text
}

fn render_write(write: &WriteEntry, now_ms: u64, paint: Paint) -> String {
    let head = format!("{} {} {}", utc_seconds(write.sent_ms), write.method, write.resource);
    let took_ms = write.ended_ms.unwrap_or(now_ms).saturating_sub(write.sent_ms);
    let (ink, outcome) = match write.outcome.as_str() {
        "done" => (Ink::Green, format!("done in {took_ms} ms")),
        "failed" => (Ink::Red, format!("rejected by Azure after {took_ms} ms{}", answer(write))),
        UNKNOWN => {
            (Ink::Yellow, "outcome unknown: the process ended before Azure answered".to_owned())
        }
        _ => (Ink::Yellow, format!("under way for {took_ms} ms")),
    };
    let attempt = match write.attempt {
        0 | 1 => String::new(),
        n => format!(", attempt {n}"),
    };
    let gateways = write.egress_gateways.iter().map(|name| format!("egress gateway {name}"));
    let all: Vec<String> = write.services.iter().cloned().chain(gateways).collect();
    let all = few(&all, 0);
    let whom = if all.is_empty() { String::new() } else { format!(" for {all}") };
    let mut text =
        format!("{}: {}{attempt}{whom}\n", paint.ink(Ink::Bold, head), paint.ink(ink, outcome));
    let causes = write.causes.iter().take(FEW);
    for cause in causes {
        text.push_str(&format!("  because {}\n", cut_at(&cause.text, CAUSE)));
    }
    let more = write.causes.len().saturating_sub(FEW) + write.more_causes;
    if more > 0 {
        text.push_str(&format!("  and {more} more causes\n"));
    }
    for field in write.fields.iter().take(FIELDS) {
        text.push_str(&render_field(field, paint));
    }
    let more = write.fields.len().saturating_sub(FIELDS) + write.more_fields;
    if more > 0 {
        text.push_str(&paint.ink(Ink::Dim, format!("  and {more} more fields: -o json\n")));
    }
    let ids = format!("  correlation id {}, {}\n", write.correlation_id, write.id);
    text.push_str(&paint.ink(Ink::Dim, ids));
    if let Some(log) = &write.activity_log {
        text.push_str(&paint.ink(Ink::Dim, format!("  activity log: {log}\n")));
    }
    text
}

fn answer(write: &WriteEntry) -> String {
    let code = write.code.as_deref().unwrap_or("no code");
    let message = write.message.as_deref().unwrap_or_default();
    format!(" ({code}: {})", cut(message))
}

fn render_field(field: &FieldEntry, paint: Paint) -> String {
    let path = field.path.strip_prefix("properties.").unwrap_or(&field.path);
    let side = |value: &Value| match value {
        Value::Object(_) | Value::Array(_) => cut(&value.to_string()),
        value => cut(&scalar(value)),
    };
    let (ink, line) = match (&field.old, &field.new) {
        (Some(old), Some(new)) => (Ink::Yellow, format!("~ {path}: {} → {}", side(old), side(new))),
        (None, Some(new)) => (Ink::Green, format!("+ {path}: {}", side(new))),
        (Some(old), None) => (Ink::Red, format!("- {path}: {}", side(old))),
        (None, None) => (Ink::Yellow, format!("~ {path}")),
    };
    format!("  {}\n", paint.ink(ink, line))
}

fn render_drift(drift: &DriftEntry, paint: Paint) -> String {
    let services = few(&drift.services, 0);
    let services = if services.is_empty() { String::new() } else { format!(" for {services}") };
    let outcome = match drift.outcome.as_str() {
        "over" => "repaired, or put back",
        "repairing" => "being repaired",
        "paused" => "left as it is (writes are paused)",
        _ => "left as it is (driftPolicy is report)",
    };
    let (at, resource) = (utc_seconds(drift.noticed_ms), &drift.resource);
    let head = format!("{at} DRIFT {resource}: {}{services}; {outcome}\n", cut(&drift.what));
    let mut text = paint.ink(Ink::Yellow, head);
    let log = match &drift.activity_log {
        Some(log) => format!("  who changed it: {log}\n"),
        None => {
            format!("  who changed it: az monitor activity-log list --resource-id {}\n", drift.id)
        }
    };
    text.push_str(&paint.ink(Ink::Dim, log));
    text
}

/// The first names, and how many more there are.
fn few(names: &[String], more: usize) -> String {
    let more = names.len().saturating_sub(FEW) + more;
    let shown: Vec<&str> = names.iter().take(FEW).map(String::as_str).collect();
    let rest = if more == 0 { String::new() } else { format!(" and {more} more") };
    format!("{}{rest}", shown.join(", "))
}

fn cut(text: &str) -> String {
    cut_at(text, LETTERS)
}

fn cut_at(text: &str, letters: usize) -> String {
    match text.char_indices().nth(letters) {
        None => text.to_owned(),
        Some((at, _)) => format!("{}…", &text[..at]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::CauseEntry;
    use serde_json::json;

    #[test]
    fn a_write_for_an_egress_gateway_names_it() {
        let write = WriteEntry {
            method: "PUT".to_owned(),
            resource: "natGateways/team-a".to_owned(),
            outcome: "done".to_owned(),
            services: vec!["default/web".to_owned()],
            egress_gateways: vec!["team-a".to_owned()],
            ..WriteEntry::default()
        };
        let document = HistoryDocument { writes: vec![write], ..HistoryDocument::default() };
        let text = render(&document, Wanted::Everything, Paint::Plain);
        let line = text.lines().next().unwrap_or_default();
        assert!(line.ends_with(" for default/web, egress gateway team-a"), "{line}");
    }

    #[test]
    fn a_write_is_read_from_cause_to_answer() {
        let field = FieldEntry {
            path: "properties.rules[a].port".to_owned(),
            old: Some(json!(80)),
            new: Some(json!(443)),
        };
        let cause = CauseEntry {
            text: "default/web was edited by kubectl-edit: spec.ports: 80 → 443".to_owned(),
            ..CauseEntry::default()
        };
        let write = WriteEntry {
            sent_ms: 1_700_000_000_000,
            ended_ms: Some(1_700_000_001_200),
            method: "PUT".to_owned(),
            resource: "loadBalancers/kubernetes".to_owned(),
            id: "/subscriptions/s".to_owned(),
            correlation_id: "c-1".to_owned(),
            attempt: 3,
            outcome: "failed".to_owned(),
            code: Some("QuotaExceeded".to_owned()),
            message: Some("ask for more".to_owned()),
            services: (0..7).map(|n| format!("default/s{n}")).collect(),
            causes: vec![cause],
            fields: vec![field],
            more_fields: 2,
            ..WriteEntry::default()
        };
        let drift = DriftEntry {
            resource: "loadBalancers/kubernetes".to_owned(),
            id: "/subscriptions/s".to_owned(),
            what: "rule a is gone".to_owned(),
            outcome: "reported".to_owned(),
            noticed_ms: 1_699_999_999_000,
            ..DriftEntry::default()
        };
        let mut document =
            HistoryDocument { now_ms: 1_700_000_009_000, writes: vec![write], drift: vec![drift] };
        let text = render(&document, Wanted::Everything, Paint::Plain);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[0],
            "2023-11-14T22:13:19Z DRIFT loadBalancers/kubernetes: rule a is gone; \
            left as it is (driftPolicy is report)"
        );
        assert!(lines[1].contains("az monitor activity-log list --resource-id /subscriptions/s"));
        assert_eq!(
            lines[2],
            "2023-11-14T22:13:20Z PUT loadBalancers/kubernetes: rejected by Azure \
            after 1200 ms (QuotaExceeded: ask for more), attempt 3 for default/s0, default/s1, \
            default/s2, default/s3, default/s4 and 2 more"
        );
        assert!(lines[3].starts_with("  because default/web was edited by kubectl-edit"));
        assert_eq!(lines[4], "  ~ rules[a].port: 80 → 443");
        assert_eq!(lines[5], "  and 2 more fields: -o json");
        let other = Wanted::Service("default/other");
        document.narrow(other, 0);
        assert_eq!(
            render(&document, other, Paint::Plain),
            "No write to Azure and no drift of Service default/other is remembered.\n"
        );
    }
}
