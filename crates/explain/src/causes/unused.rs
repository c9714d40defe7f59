//! Annotations that have no effect, and why.

use super::Source;
use super::trial::Bench;
use model::kubernetes::Service;
use model::report::{Finding, Severity};
use plan::ask::annotation::{self, CONFIRM, CONFIRMED, DISCONNECT, PAUSE, PROTECT, RETRY, SHARE};
use serde::Serialize;
use std::sync::Arc;

/// An annotation, or a field, without effect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Unused {
    /// The whole key.
    pub key: Arc<str>,
    /// Its value.
    pub value: Arc<str>,
    /// Why it has none.
    pub reason: String,
}

/// Why an input that changes nothing changes nothing; only what the Service's owner wrote is told
/// of.
pub(super) fn why(bench: &Bench<'_>, at: usize, findings: &[Finding]) -> Option<Unused> {
    let input = bench.inputs.get(at)?;
    let (key, value) = match &input.source {
        Source::Annotation { key, value } => (Arc::clone(key), Arc::clone(value)),
        Source::ServiceField { path, value }
            if input.is_removable() && path != "metadata.labels" =>
        {
            (Arc::from(path.as_str()), Arc::from(value.as_str()))
        }
        _ => return None,
    };
    let noted = told(findings, &key);
    // For Services of other namespaces the first; for another day the others.
    let later = [SHARE, DISCONNECT, PAUSE, PROTECT, CONFIRM, CONFIRMED, RETRY];
    if noted.is_none() && later.contains(&&*key) {
        return None;
    }
    let reason = noted.unwrap_or_else(|| {
        let suffix = annotation::short(&key).unwrap_or(&key);
        match (bench.stronger(at), annotation::find(suffix)) {
            (Some(other), _) => format!("{other} counts instead"),
            (None, Some(found)) => format!(
                "it changes nothing here; without it: {}",
                found.annotation.default.replace('`', "")
            ),
            (None, None) if annotation::short(&key).is_none() => {
                "it changes nothing here".to_owned()
            }
            (None, None) => "unknown annotation".to_owned(),
        }
    });
    Some(Unused { key, value, reason })
}

/// What findings alone say.
pub(super) fn noted(service: &Service, findings: &[Finding]) -> Vec<Unused> {
    let ours = service.annotations.iter().filter(|(key, _)| annotation::short(key).is_some());
    ours.filter_map(|(key, value)| {
        let reason = told(findings, key)?;
        Some(Unused { key: Arc::clone(key), value: Arc::clone(value), reason })
    })
    .collect()
}

fn told(findings: &[Finding], key: &str) -> Option<String> {
    let note = findings.iter().find(|f| f.severity == Severity::Note && *f.key == *key)?;
    Some(note.text())
}
