//! Numbers in place of texts and addresses, so that what is remembered of an address is small.

use std::num::NonZeroU32;

/// A number of a source or a location. None is no number, which takes no room.
pub(super) type Number = NonZeroU32;

/// The number of the entry at an index.
pub(super) fn of(index: usize) -> Number {
    let number = u32::try_from(index).ok().and_then(|index| index.checked_add(1));
    number.and_then(Number::new).unwrap_or(Number::MAX)
}

/// The index of the entry with a number.
pub(super) fn index(number: Number) -> usize {
    number.get() as usize - 1
}
