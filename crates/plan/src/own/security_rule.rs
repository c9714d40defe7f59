//! Security rules of ours, by their names and priorities.

use super::name::SECURITY_RULE;
use model::azure::SecurityRule;

/// Priorities of our rules: allow rules from below, deny rules from above.
pub(crate) const PRIORITIES: std::ops::RangeInclusive<u16> = 500..=4095;
/// The highest priority at which a rule with our prefix is still ours.
const LAST_PRIORITY: u16 = 4096;

/// Whether a rule is one that this kind of controller makes.
pub(crate) fn is_managed(rule: &SecurityRule) -> bool {
    let prefix = rule.name.get(..SECURITY_RULE.len());
    prefix.is_some_and(|p| p.eq_ignore_ascii_case(SECURITY_RULE))
        && (*PRIORITIES.start()..=LAST_PRIORITY).contains(&rule.priority)
}
