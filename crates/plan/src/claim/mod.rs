//! What only one Service, or one namespace, can have, and who has it.
//!
//! Decided before anything is drafted: a Service whose claim another has is refused, and nothing is
//! planned around it. Who holds a thing follows from what stands in Azure and in status, then from
//! UIDs or names: the same facts give the same holder.

mod additional;
mod pool;
pub(crate) mod public_ip;
#[cfg(test)]
mod tests;

use crate::draft::Draft;
use model::report::{Finding, Severity};
use std::sync::Arc;

/// Refuses Services that claim what others have.
pub(crate) fn settle(draft: &mut Draft<'_>) {
    additional::settle(draft);
    pool::settle(draft);
}

fn refusal(rule: &'static str, key: &str, value: &str, message: String) -> Finding {
    Finding {
        severity: Severity::Refusal,
        rule,
        key: Arc::from(key),
        value: Arc::from(value),
        message: Arc::from(message),
    }
}
