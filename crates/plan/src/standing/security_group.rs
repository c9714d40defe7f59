//! Whether the security group can have anything of ours.

use crate::draft::Draft;

/// Whether there is no Service, so that nothing is to be opened, and nothing of a known one to be
/// closed.
pub(crate) fn is_idle(draft: &Draft<'_>) -> bool {
    let recorded = draft.world.kubernetes.ledger.known();
    draft.cases.is_empty()
        && draft.world.abandoned.is_empty()
        && recorded.is_none_or(|ledger| ledger.destinations.is_empty())
}
