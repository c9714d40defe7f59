//! Scarce things that two Services ask for: one of them has it, the others are told.

use crate::case::Case;

/// Finds who stands where, and who cannot be served.
pub(crate) fn settle(_case: &mut Case<'_>) {}
