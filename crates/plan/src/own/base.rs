//! The base name of a Service: parts of load balancers that begin with it are that Service's.

use super::name::base_of;
use model::ServiceUid;
use std::sync::Arc;

/// A base name. Letter case does not count, as it does not in Azure.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Base(String);

impl Base {
    /// The one that a part's name begins with; `None` where the part is named after no Service.
    #[must_use]
    pub fn of(part: &str) -> Option<Self> {
        base_of(part).map(|base| Self(base.to_lowercase()))
    }

    /// The one that the parts of a Service begin with.
    #[must_use]
    pub fn of_service(uid: &ServiceUid) -> Self {
        Self(uid.base_name().to_lowercase())
    }

    /// Whether it is this one, in whatever letters that is written.
    pub(crate) fn is(&self, base: &str) -> bool {
        self.0.eq_ignore_ascii_case(base)
    }

    /// In lower case.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<Base> for Arc<str> {
    fn from(base: Base) -> Self {
        Self::from(base.0)
    }
}

/// Whether a part is named after a Service, whether or not there is such a Service.
pub fn is_named_after_one(part: &str) -> bool {
    base_of(part).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_a_service_begin_with_its_base_name_in_any_letters() {
        let uid = ServiceUid::new("00000001-1111-4222-8333-0123456789ab");
        let base = Base::of_service(&uid);
        let rule = format!("{}-TCP-80", base.as_str());
        for part in [rule.clone(), rule.to_uppercase(), base.as_str().to_uppercase()] {
            assert_eq!(Base::of(&part).as_ref(), Some(&base), "{part}");
            assert!(is_named_after_one(&part) && base.is(&uid.base_name().to_uppercase()));
        }
        assert_eq!(Base::of("aksOutboundRule"), None);
        assert!(!is_named_after_one("aksOutboundRule"));
    }
}
