//! Metrics of the call budget.

use super::exposition::Exposition;
use super::table;
use control::Controller;
use control::budget::{Level, Limits};

/// What is left of Azure's limits, where that is known, and how many writes wait for each.
pub(super) fn add(exposition: &mut Exposition, controller: &Controller, now_ms: u64) {
    let levels: Vec<Level> = controller.budget().levels(now_ms).collect();
    let waiting = controller.waiting_for_budget();
    for metric in
        [&table::BUDGET_LEFT, &table::BUDGET_SHARE, &table::BUDGET_WAITING, &table::BUDGET_REFUSALS]
    {
        let figure = [table::BUDGET_LEFT.name, table::BUDGET_SHARE.name].contains(&metric.name);
        let known = |level: &&Level| !figure || level.start == Limits::Published;
        for level in levels.iter().filter(known) {
            let subscription = level.limit.subscription.to_string();
            let labels =
                [("limit", level.limit.kind.label()), ("subscription", subscription.as_str())];
            let value = match metric.name {
                name if name == table::BUDGET_LEFT.name => level.left,
                name if name == table::BUDGET_SHARE.name => level.share_percent,
                name if name == table::BUDGET_WAITING.name => {
                    waiting.get(&level.limit).map_or(0, |waiting| waiting.writes)
                }
                _ => level.throttled,
            };
            exposition.add(metric, &labels, value);
        }
    }
}
