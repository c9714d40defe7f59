//! Annotations that have no effect, and why.

use super::Source;
use super::trial::Bench;
use crate::annotation::{self, PREFIX};
use model::kubernetes::Service;
use model::report::{Finding, Severity};
use serde::Serialize;
use std::sync::Arc;

/// An annotation without effect.
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

/// Why an input that changes nothing changes nothing; only annotations are told of.
pub(super) fn why(bench: &Bench<'_>, at: usize, findings: &[Finding]) -> Option<Unused> {
    let Source::Annotation { key, value } = &bench.inputs.get(at)?.source else { return None };
    let reason = told(findings, key).unwrap_or_else(|| {
        let suffix = key.strip_prefix(PREFIX).unwrap_or(key);
        match (bench.stronger(at), annotation::find(suffix)) {
            (Some(other), _) => format!("{other} counts instead"),
            (None, Some(found)) => format!(
                "it changes nothing here; without it: {}",
                found.annotation.default.replace('`', "")
            ),
            (None, None) => "no key of ours".to_owned(),
        }
    });
    Some(Unused { key: Arc::clone(key), value: Arc::clone(value), reason })
}

/// What findings alone say.
pub(super) fn noted(service: &Service, findings: &[Finding]) -> Vec<Unused> {
    let ours = service.annotations.iter().filter(|(key, _)| key.starts_with(PREFIX));
    ours.filter_map(|(key, value)| {
        let reason = told(findings, key)?;
        Some(Unused { key: Arc::clone(key), value: Arc::clone(value), reason })
    })
    .collect()
}

fn told(findings: &[Finding], key: &str) -> Option<String> {
    let note = findings.iter().find(|f| f.severity == Severity::Note && *f.key == *key)?;
    Some(format!("{:?} is not allowed: {}", note.value, note.allowed))
}
