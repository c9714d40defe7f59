//! A Service while it is read, and what was found on the way.

use super::rules::FindingRule;
use crate::annotation::{CONFIGURATIONS, PREFIX};
use model::Policy;
use model::kubernetes::Service;
use model::report::{Finding, Severity};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A Service while it is read.
pub(super) struct Reader<'a> {
    /// The Service.
    pub service: &'a Service,
    /// Choices.
    pub policy: &'a Policy,
    /// Annotations by key without the prefix, values without blanks around them.
    pub annotations: BTreeMap<&'a str, &'a str>,
    findings: Vec<Finding>,
}

impl<'a> Reader<'a> {
    /// Takes up a Service.
    pub fn new(service: &'a Service, policy: &'a Policy) -> Self {
        let mut annotations = BTreeMap::new();
        for (key, value) in service.annotations.iter() {
            let Some(key) = key.strip_prefix(PREFIX) else { continue };
            if key.eq_ignore_ascii_case(CONFIGURATIONS) && key != CONFIGURATIONS {
                annotations.entry(CONFIGURATIONS).or_insert(value.trim());
            } else {
                annotations.insert(key, value.trim());
            }
        }
        Self { service, policy, annotations, findings: Vec::new() }
    }

    /// An annotation's value, also an empty one.
    pub fn raw(&self, key: &str) -> Option<&'a str> {
        self.annotations.get(key).copied()
    }

    /// An annotation's value, unless it is empty.
    pub fn text(&self, key: &str) -> Option<&'a str> {
        self.raw(key).filter(|value| !value.is_empty())
    }

    /// Whether an annotation says true.
    pub fn is_set(&self, key: &str) -> bool {
        self.raw(key).is_some_and(|value| value.eq_ignore_ascii_case("true"))
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

    /// Notes that an annotation breaks a rule.
    pub fn find(&mut self, rule: &FindingRule, key: &str, value: &str) {
        self.find_with(rule, &format!("{PREFIX}{key}"), value, rule.allowed);
    }

    /// Notes that a field breaks a rule.
    pub fn find_field(&mut self, rule: &FindingRule, field: &str, value: &str) {
        self.find_with(rule, field, value, rule.allowed);
    }

    /// Notes that a key breaks a rule, with words of its own for what is allowed. The same value
    /// breaks the same rule once.
    pub fn find_with(&mut self, rule: &FindingRule, key: &str, value: &str, allowed: &str) {
        let known = |f: &Finding| f.rule == rule.name && *f.key == *key && *f.value == *value;
        if self.findings.iter().any(known) {
            return;
        }
        self.findings.push(Finding {
            severity: rule.severity,
            rule: rule.name,
            key: Arc::from(key),
            value: Arc::from(value),
            allowed: Arc::from(allowed),
        });
    }

    /// Ends reading: there is an intent unless something was refused.
    pub fn finish<T>(self, intent: T) -> super::Reading<T> {
        let refused = self.findings.iter().any(|f| f.severity == Severity::Refusal);
        super::Reading { intent: (!refused).then_some(intent), findings: self.findings }
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
pub(super) fn is_group_name(name: &str) -> bool {
    let allowed = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '(' | ')');
    (1..=90).contains(&name.chars().count()) && name.chars().all(allowed) && !name.ends_with('.')
}
