//! Backend pools and their members.

use crate::Broken;
use crate::case::Case;

/// Judges them.
pub(crate) fn judge(_case: &Case<'_>, _broken: &mut Vec<Broken>) {}
