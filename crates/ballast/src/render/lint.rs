//! Mistakes in manifests, for people and for SARIF readers.

use crate::lint::{INVALID_MANIFEST, Level, Lint, Mistake, UNREADABLE_MANIFEST};
use crate::output::{Ink, Paint};
use plan::ask::findings::RULES;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Folders that a line names.
const NAMED: usize = 5;

/// A line a mistake, `file:line:column: level: …` as compilers write it, and a sum.
#[must_use]
pub fn render(lint: &Lint, paint: Paint) -> String {
    let mut out = String::new();
    for mistake in &lint.mistakes {
        let place = format!("{}:{}:{}:", mistake.path.display(), mistake.line, mistake.column);
        let level = match mistake.level {
            Level::Error => paint.ink(Ink::Red, "error"),
            Level::Warning => paint.ink(Ink::Yellow, "warning"),
        };
        let place = paint.ink(Ink::Bold, place);
        let _ = writeln!(out, "{place} {level}: {} [{}]", message(mistake), mistake.rule);
    }
    if !lint.skipped.is_empty() {
        let names = lint.skipped.iter().take(NAMED).map(|path| path.display().to_string());
        let names = names.collect::<Vec<_>>().join(", ");
        let more = lint.skipped.len().saturating_sub(NAMED);
        let more = if more == 0 { String::new() } else { format!(" and {more} more") };
        let line = format!("not checked: {names}{more}; --recursive checks subdirectories, too");
        let _ = writeln!(out, "{}", paint.ink(Ink::Yellow, line));
    }
    let (errors, warnings) = (lint.count(Level::Error), lint.count(Level::Warning));
    let _ = writeln!(
        out,
        "{}: {}, {}",
        counted(lint.services, "Service"),
        counted(errors, "error"),
        counted(warnings, "warning")
    );
    out
}

fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

fn message(mistake: &Mistake) -> String {
    let Mistake { object, key, rule, message, .. } = mistake;
    match rule.as_str() {
        INVALID_MANIFEST => format!("{object} would be refused by the API server: {message}"),
        UNREADABLE_MANIFEST => format!("the file cannot be read: {message}"),
        _ => format!("{object}: {key}: {message}"),
    }
}

/// SARIF 2.1.0, as code hosts read it.
#[must_use]
pub fn sarif(lint: &Lint) -> Value {
    let mut texts: BTreeMap<&str, String> =
        RULES.iter().map(|rule| (rule.name, rule.general())).collect();
    texts.insert(INVALID_MANIFEST, "must be valid for the Kubernetes API".to_owned());
    texts.insert(UNREADABLE_MANIFEST, "must be YAML or JSON".to_owned());
    let text =
        |rule: &str| texts.get(rule).cloned().unwrap_or_else(|| "see the message".to_owned());
    let used: BTreeMap<&str, String> =
        lint.mistakes.iter().map(|m| (m.rule.as_str(), text(&m.rule))).collect();
    let rules: Vec<Value> = used
        .iter()
        .map(|(name, text)| json!({"id": name, "shortDescription": {"text": text}}))
        .collect();
    let results: Vec<Value> = lint.mistakes.iter().map(result).collect();
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "ballast",
                "version": env!("CARGO_PKG_VERSION"),
                "informationUri": env!("CARGO_PKG_REPOSITORY"),
                "rules": rules,
            }},
            "results": results,
        }],
    })
}

fn result(mistake: &Mistake) -> Value {
    let level = match mistake.level {
        Level::Error => "error",
        Level::Warning => "warning",
    };
    json!({
        "ruleId": mistake.rule,
        "level": level,
        "message": {"text": message(mistake)},
        "locations": [{"physicalLocation": {
            "artifactLocation": {"uri": mistake.path},
            "region": {"startLine": mistake.line, "startColumn": mistake.column},
        }}],
    })
}
