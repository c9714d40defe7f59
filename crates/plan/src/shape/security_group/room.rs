//! What a security group has room for.

use super::PRIORITIES;
use crate::ask::limit::PREFIXES;
use model::azure::{Access, SecurityGroup, SecurityRule};
use model::report::{Finding, Severity};
use std::collections::BTreeSet;
use std::sync::Arc;

pub(super) use crate::ask::limit::SECURITY_RULES as RULES;

/// Whether a rule in place of another makes too many prefixes of the group.
pub(super) fn is_crowded(
    group: &SecurityGroup,
    past: Option<&SecurityRule>,
    rule: &SecurityRule,
) -> bool {
    let counts: [fn(&SecurityRule) -> usize; 2] =
        [|rule| rule.sources.len(), |rule| rule.destinations.len()];
    counts.iter().any(|count| {
        let had = past.map_or(0, count);
        let all: usize = group.rules.iter().map(count).sum();
        count(rule) > had && all - had + count(rule) > PREFIXES
    })
}

/// Somebody else's rule has the name of ours: neither is it changed nor ours added.
pub(super) fn name_taken(rule: &SecurityRule, id: &model::ResourceId) -> Finding {
    Finding {
        severity: Severity::Refusal,
        rule: "SecurityRuleNameTaken",
        key: Arc::from("spec.ports"),
        value: Arc::clone(&rule.name),
        message: format!(
            "rule {{value}} in security group {} has priority {} and is not managed by this \
             cluster; rename or delete it",
            id.name(),
            rule.priority
        )
        .into(),
    }
}

pub(super) fn full(id: &model::ResourceId) -> Finding {
    Finding {
        severity: Severity::Refusal,
        rule: "SecurityRuleLimit",
        key: Arc::from("spec.ports"),
        value: Arc::from(""),
        message: format!(
            "security group {} has no room for another rule; it has at most {RULES} rules, \
             {PREFIXES} source and {PREFIXES} destination prefixes",
            id.name()
        )
        .into(),
    }
}

/// The lowest free priority for an allow rule, the highest for a deny rule. A priority that is
/// only freed by the same write is not taken again: the rule it replaces and the new one never
/// share a number, not even in somebody's log.
pub(super) fn free_priority(groups: &[&SecurityGroup], access: Access) -> Option<u16> {
    let rules = groups.iter().flat_map(|group| &group.rules);
    let inbound = rules.filter(|r| r.direction.eq_ignore_ascii_case("Inbound"));
    let taken: BTreeSet<u16> = inbound.map(|r| r.priority).collect();
    let mut all = PRIORITIES;
    match access {
        Access::Allow => all.find(|p| !taken.contains(p)),
        Access::Deny => all.rev().find(|p| !taken.contains(p)),
    }
}
