//! How long a plan's writes take at least at Azure's published limits.

use arm::path::Contract;
use arm::{Answer, Reply};
use control::CallId;
use control::budget::limit::limits_of;
use control::budget::{Budget, Limits, Urgency};
use control::request::of_change;
use explain::forecast::Forecast;
use model::Policy;

/// The time that Azure's published limits alone keep the writes apart, from full limits on, in
/// milliseconds. Polls, reads and Azure's own work come on top.
#[must_use]
pub fn least_ms(forecast: &Forecast, policy: &Policy) -> u64 {
    let contract = Contract::for_policy(policy);
    let mut budget = Budget::new(Limits::Published);
    let mut now_ms = 0;
    for (call, step) in (0..).map(CallId).zip(&forecast.steps) {
        let request = of_change(contract, &step.change, String::new());
        while let Err(refusal) = budget.ask(&limits_of(&request), Urgency::Urgent, now_ms) {
            now_ms = refusal.ready_ms.max(now_ms + 1);
        }
        budget.take(call, &request, now_ms);
        let done = Reply { status: 200, ..Reply::default() };
        budget.answered(call, &Answer::Reply(Box::new(done)), now_ms);
    }
    now_ms
}
