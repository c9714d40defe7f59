//! Parts of a resource, found in its lists by their names. Letter case does not count, as it does
//! not in Azure.

use super::name::is_one;
use model::azure::{Frontend, Pool, PrivateLinkAddress, Probe, Rule, SecurityRule};

/// What has a name among its like.
pub trait Named {
    /// The name.
    fn name(&self) -> &str;
}

macro_rules! name_is_a_field {
    ($($part:ty),*) => {$(
        impl Named for $part {
            fn name(&self) -> &str {
                &self.name
            }
        }
    )*};
}

name_is_a_field!(Frontend, Pool, PrivateLinkAddress, Probe, Rule, SecurityRule);

/// Whether a part has a name.
pub(crate) fn is_called<T: Named>(part: &T, name: &str) -> bool {
    is_one(part.name(), name)
}

/// Where the part of a name is.
pub(crate) fn place<T: Named>(list: &[T], name: &str) -> Option<usize> {
    list.iter().position(|part| is_called(part, name))
}

/// The part of a name.
pub fn named<'a, T: Named>(list: &'a [T], name: &str) -> Option<&'a T> {
    list.iter().find(|part| is_called(*part, name))
}
