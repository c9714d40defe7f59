//! A Service while it is read, and what was found on the way.

use super::Intent;
use super::findings::FindingRule;
use crate::ask::annotation::{self, CONFIGURATIONS, Truth};
use model::Policy;
use model::kubernetes::Service;
use model::report::{Finding, Severity, quoted};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Findings of one rule that a Service gets one by one; a last one counts the others.
pub(super) const LISTED: usize = 5;

/// What reading a Service gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading<T = Intent> {
    /// What it asks for; `None` if that is impossible.
    pub intent: Option<T>,
    /// What is wrong with it.
    pub findings: Vec<Finding>,
}

/// A Service while it is read.
///
/// # Guarantees
/// The work is linear in the bytes of the Service, but for logarithms; findings are at most
/// [`LISTED`] and one for each rule.
pub(super) struct Reader<'a> {
    /// The Service.
    pub service: &'a Service,
    /// Choices.
    pub policy: &'a Policy,
    /// Annotations by key without the prefix, values without blanks around them.
    pub annotations: BTreeMap<&'a str, &'a str>,
    /// Where a port number is first among its ports.
    pub ports: BTreeMap<u16, usize>,
    /// Where a port's name in lower case is first among its ports.
    pub names: BTreeMap<String, usize>,
    findings: Vec<Finding>,
    /// How many were listed, and how many more there are, by rule.
    found: BTreeMap<&'static str, (usize, usize)>,
    /// The request path of all probes that have none of their own.
    path: Option<Arc<str>>,
}

impl<'a> Reader<'a> {
    /// Takes up a Service.
    pub fn new(service: &'a Service, policy: &'a Policy) -> Self {
        let mut annotations = BTreeMap::new();
        for (key, value) in service.annotations.iter() {
            let Some(key) = annotation::short(key) else { continue };
            if key.eq_ignore_ascii_case(CONFIGURATIONS) && key != CONFIGURATIONS {
                annotations.entry(CONFIGURATIONS).or_insert(value.trim());
            } else {
                annotations.insert(key, value.trim());
            }
        }
        let (mut ports, mut names) = (BTreeMap::new(), BTreeMap::new());
        for (at, port) in service.ports.iter().enumerate() {
            ports.entry(port.port).or_insert(at);
            names.entry(port.name.to_ascii_lowercase()).or_insert(at);
        }
        let (findings, found, path) = Default::default();
        Self { service, policy, annotations, ports, names, findings, found, path }
    }

    /// An annotation's value, also an empty one.
    pub fn raw(&self, key: &str) -> Option<&'a str> {
        self.annotations.get(key).copied()
    }

    /// An annotation's value, unless it is empty.
    pub fn text(&self, key: &str) -> Option<&'a str> {
        self.raw(key).filter(|value| !value.is_empty())
    }

    /// An annotation's value with the blanks around it.
    pub fn whole(&self, key: &str) -> Option<&'a str> {
        let key = annotation::full(key);
        self.service.annotations.get(key.as_str()).map(AsRef::as_ref)
    }

    /// Whether an annotation says true, as its entry in the table reads it.
    pub fn is_set(&self, key: &str) -> bool {
        self.is_true(key, annotation::truth(key))
    }

    /// Whether an annotation says true, read in this way.
    pub fn is_true(&self, key: &str, truth: Truth) -> bool {
        self.annotations.contains_key(key)
            && self.whole(key).is_some_and(|value| truth.is_true(value))
    }

    /// The entries of a list separated by commas, without empty ones.
    pub fn list(&self, key: &str) -> Vec<&'a str> {
        let text = self.raw(key).unwrap_or("");
        text.split(',').map(str::trim).filter(|entry| !entry.is_empty()).collect()
    }

    /// The entries of a list separated by blanks.
    pub fn words(&self, key: &str) -> Vec<&'a str> {
        self.raw(key).unwrap_or("").split_whitespace().collect()
    }

    /// The request path of all probes that have none of their own, which is the same each time:
    /// each port has a probe, and all of them share one copy.
    pub fn path_of_all(&mut self, path: &str) -> Arc<str> {
        Arc::clone(self.path.get_or_insert_with(|| Arc::from(path)))
    }

    /// Whether no more findings of a rule are listed: this one is counted.
    pub fn only_counts(&mut self, rule: &FindingRule) -> bool {
        let (listed, more) = self.found.entry(rule.name).or_default();
        let full = *listed >= LISTED;
        *more += usize::from(full);
        full
    }

    /// Notes that an annotation breaks a rule.
    pub fn find(&mut self, rule: &FindingRule, key: &str, value: &str) {
        if self.only_counts(rule) {
            return;
        }
        self.find_with(rule, &annotation::full(key), value, rule.message);
    }

    /// Notes that a field breaks a rule.
    pub fn find_field(&mut self, rule: &FindingRule, field: &str, value: &str) {
        self.find_with(rule, field, value, rule.message);
    }

    /// Notes that a key breaks a rule, with a message of its own. The same value breaks the same
    /// rule once.
    pub fn find_with(&mut self, rule: &FindingRule, key: &str, value: &str, message: &str) {
        if self.only_counts(rule) {
            return;
        }
        let value = quoted(value);
        let known = |f: &Finding| f.rule == rule.name && *f.key == *key && f.value == value;
        if self.findings.iter().any(known) {
            return;
        }
        self.found.entry(rule.name).or_default().0 += 1;
        // An empty value is shown, too: in a list such as `10.0.0.0/8,` the empty entry is wrong.
        let empty = value.is_empty() && message.starts_with("must ");
        let shown = empty && !message.contains("{value}");
        let rest = if shown { " (got {value})" } else { "" };
        self.findings.push(rule.found_with(&quoted(key), &value, &[message, rest].concat()));
    }

    /// Reads something on trial: what was read, and what was found, which does not count.
    pub fn aside<T>(&mut self, read: impl FnOnce(&mut Self) -> T) -> (T, Vec<Finding>) {
        let findings = std::mem::take(&mut self.findings);
        let found = std::mem::take(&mut self.found);
        let result = read(self);
        self.found = found;
        (result, std::mem::replace(&mut self.findings, findings))
    }

    /// One finding for all of a rule that were only counted, behind those that are listed.
    fn count_others(&mut self) {
        for (rule, (_, more)) in std::mem::take(&mut self.found) {
            let of_rule = |f: &Finding| f.rule == rule;
            let Some(last) = self.findings.iter().rposition(of_rule).filter(|_| more > 0) else {
                continue;
            };
            let finding = self.findings[last].clone();
            let mut listed = self.findings.iter().filter(|f| of_rule(f));
            let same = listed.all(|f| f.key == finding.key);
            let key = if same { finding.key } else { Arc::from("metadata.annotations") };
            let (value, message) = (Arc::from(""), Arc::from(format!("and {more} more")));
            self.findings.insert(last + 1, Finding { key, value, message, ..finding });
        }
    }

    /// Ends reading: there is an intent unless something was refused.
    pub fn finish<T>(mut self, intent: T) -> Reading<T> {
        self.count_others();
        let refused = self.findings.iter().any(|f| f.severity == Severity::Refusal);
        Reading { intent: (!refused).then_some(intent), findings: self.findings }
    }
}

/// Whether Azure takes this as the name of a network resource.
pub(super) fn is_resource_name(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    (1..=80).contains(&name.len())
        && name.chars().all(allowed)
        && name.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
        && name.ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
}

/// Whether Azure takes this as the name of a resource group.
pub(crate) fn is_group_name(name: &str) -> bool {
    let allowed = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '(' | ')');
    (1..=90).contains(&name.chars().count()) && name.chars().all(allowed) && !name.ends_with('.')
}
