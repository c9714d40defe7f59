//! What only one Service, or one namespace, can have, and who has it: seats on load balancers,
//! addresses, ports, names, room. This room never builds the body of a resource.
//!
//! Decided before anything is drafted: a Service whose claim another has is refused, and nothing is
//! planned around it. Who holds a thing follows from what stands in Azure and in status, then from
//! UIDs or names: the same facts give the same holder.

mod additional;
pub(crate) mod address;
pub(crate) mod admission;
pub(crate) mod choice;
pub(crate) mod confirm;
mod consent;
pub(crate) mod contest;
pub(crate) mod holder;
pub(crate) mod limit;
mod listeners;
pub(crate) mod other_layout;
pub(crate) mod placement;
mod pool;
pub(crate) mod private_link;
pub(crate) mod public_ip;
pub(crate) mod security_group;
pub(crate) mod share;
#[cfg(test)]
mod tests;
pub(crate) mod unread;
pub(crate) mod upgrade;

use crate::draft::Draft;
use crate::verdict::Refusal;

/// Refuses Services that claim what others have.
pub(crate) fn settle(draft: &mut Draft<'_>) {
    security_group::settle(draft);
    additional::settle(draft);
    consent::settle(draft);
    pool::settle(draft);
}
