//! Public IPs: that they exist, and of what kind they are.

use crate::Broken;
use crate::case::Case;

/// Judges them.
pub(crate) fn judge(_case: &Case<'_>, _broken: &mut Vec<Broken>) {}
