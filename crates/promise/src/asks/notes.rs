//! What is noted of a Service that is served: the owner learns of a value that has no effect
//! (docs/operating.md, "Findings"). Not every note is stated here.

use super::Asks;
use super::words::Words;
use crate::site::{Layout, Site};
use serde_json::Value;

/// A note: its rule, and the annotation that it is about.
pub(crate) type Note = (&'static str, &'static str);

/// Rules of which every note is stated here.
pub(crate) const WHOLE: [&str; 3] =
    ["ModeIgnored", "ConfigurationsIgnored", "DenyAllWithoutRanges"];

const MODE: &str = "azure-load-balancer-mode";
const CONFIGURATIONS: &str = "azure-load-balancer-configurations";
const DENY: &str = "azure-deny-all-except-load-balancer-source-ranges";
const INTERNAL: &str = "azure-load-balancer-internal";
const NO_RULES: &str = "azure-disable-load-balancer-nsg-rule";

/// What has to be told of a Service on load balancers over nodes.
pub(crate) fn due(service: &Value, site: &Site, asks: &Asks) -> Vec<Note> {
    let words = Words { service, site };
    let mut due = Vec::new();
    let mut note = |holds: bool, rule: &'static str, key: &'static str| {
        due.extend(holds.then_some((rule, key)));
    };
    let per_set = matches!(site.layout, Layout::PerSet { .. });
    let several = matches!(site.layout, Layout::Several(_));
    note(!per_set && words.text(MODE).is_some(), "ModeIgnored", MODE);
    note(!several && words.text(CONFIGURATIONS).is_some(), "ConfigurationsIgnored", CONFIGURATIONS);
    let open = asks.access.ranges.is_empty();
    note(open && words.flag(DENY), "DenyAllWithoutRanges", DENY);
    // What is no `true` and does not say `false` either counts as false.
    let odd = |key: &str, counts: bool| {
        let value = words.text(key).unwrap_or("false");
        !counts && !value.eq_ignore_ascii_case("false")
    };
    note(odd(INTERNAL, words.strict_flag(INTERNAL)), "InvalidBoolean", INTERNAL);
    note(odd(NO_RULES, words.flag(NO_RULES)), "InvalidBoolean", NO_RULES);
    due
}
