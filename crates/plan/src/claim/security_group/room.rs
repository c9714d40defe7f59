//! What a security group has room for.

use crate::ask::limit::PREFIXES;
use crate::claim::Refusal;
use crate::own::name::{PRIORITIES, is_managed};
use model::azure::{Access, SecurityGroup, SecurityRule};
use model::report::Finding;
use std::collections::BTreeSet;

pub(super) use crate::ask::limit::SECURITY_RULES as RULES;

/// The priority of a rule that is opened, where the group takes it: that of the rule of its name,
/// else a free one.
pub(crate) fn priority(
    (before, after): (&SecurityGroup, &SecurityGroup),
    past: Option<&SecurityRule>,
    access: Access,
) -> Result<u16, Refusal> {
    let full = || Refusal::new(full(&after.id));
    if past.is_none() && after.rules.len() >= RULES {
        return Err(full());
    }
    if let Some(theirs) = past.filter(|rule| !is_managed(rule)) {
        return Err(Refusal::new(name_taken(theirs, &after.id)));
    }
    let free = || free_priority(&[before, after], access);
    past.map(|rule| rule.priority).or_else(free).ok_or_else(full)
}

/// What keeps a rule from taking the place of another: it makes too many prefixes of the group.
pub(crate) fn obstacle(
    group: &SecurityGroup,
    past: Option<&SecurityRule>,
    rule: &SecurityRule,
) -> Option<Refusal> {
    let crowded = past != Some(rule) && is_crowded(group, past, rule);
    crowded.then(|| Refusal::new(full(&group.id)))
}

/// Whether a rule in place of another makes too many prefixes of the group.
pub(crate) fn is_crowded(
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
fn name_taken(rule: &SecurityRule, id: &model::ResourceId) -> Finding {
    let message = format!(
        "rule {{value}} in security group {} has priority {} and is not managed by this cluster; \
         rename or delete it",
        id.name(),
        rule.priority
    );
    Finding::refusal("SecurityRuleNameTaken", "spec.ports", &rule.name, &message)
}

/// The group is full.
pub(super) fn full(id: &model::ResourceId) -> Finding {
    let message = format!(
        "security group {} has no room for another rule; it has at most {RULES} rules, {PREFIXES} \
         source and {PREFIXES} destination prefixes",
        id.name()
    );
    Finding::refusal("SecurityRuleLimit", "spec.ports", "", &message)
}

/// The lowest free priority for an allow rule, the highest for a deny rule. A priority that is
/// only freed by the same write is not taken again: the rule it replaces and the new one never
/// share a number, not even in a log. Azure numbers the rules of each direction by
/// themselves; the Go controller takes no number that a rule of either direction has, so that both
/// controllers give a rule the same one. A group has fewer rules than there are numbers.
fn free_priority(groups: &[&SecurityGroup], access: Access) -> Option<u16> {
    let rules = groups.iter().flat_map(|group| &group.rules);
    let taken: BTreeSet<u16> = rules.map(|r| r.priority).collect();
    let mut all = PRIORITIES;
    match access {
        Access::Allow => all.find(|p| !taken.contains(p)),
        Access::Deny => all.rev().find(|p| !taken.contains(p)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_of_the_other_direction_keeps_its_number_to_itself() {
        let theirs = |name: &str, priority| SecurityRule {
            direction: "Outbound".into(),
            ..fixture::security_rule(name, priority, "*")
        };
        let group = fixture::security_group(vec![theirs("first", 500), theirs("last", 4095)]);
        let free = |access| free_priority(&[&group], access);
        assert_eq!((free(Access::Allow), free(Access::Deny)), (Some(501), Some(4094)));
    }
}
