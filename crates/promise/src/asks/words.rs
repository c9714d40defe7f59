//! How values of annotations are read.

use super::Invalid;
use crate::site::{Site, Sku};
use serde_json::Value;

/// How the keys of all annotations begin.
const PREFIX: &str = "service.beta.kubernetes.io/";

/// A Service's words, and where they count.
pub(super) struct Words<'a> {
    pub(super) service: &'a Value,
    pub(super) site: &'a Site,
}

impl<'a> Words<'a> {
    /// All of them, by their keys without what these begin with.
    pub(super) fn annotations(&self) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
        let all = self.service["metadata"]["annotations"].as_object();
        let ours = all.into_iter().flatten();
        ours.filter_map(|(key, value)| Some((key.strip_prefix(PREFIX)?, value.as_str()?)))
    }

    /// The value of a key, as it stands.
    pub(super) fn whole(&self, key: &str) -> Option<&'a str> {
        self.annotations().find(|(name, _)| *name == key).map(|(_, value)| value)
    }

    /// The value of a key whose letter case does not matter, also an empty one.
    pub(super) fn in_any_case(&self, key: &str) -> Option<&'a str> {
        let found = self.annotations().find(|(name, _)| name.eq_ignore_ascii_case(key));
        found.map(|(_, value)| value.trim())
    }

    /// The value of a key without blanks around it; `None` where nothing is left.
    pub(super) fn text(&self, key: &str) -> Option<&'a str> {
        self.whole(key).map(str::trim).filter(|value| !value.is_empty())
    }

    /// `true` in any letter case.
    pub(super) fn flag(&self, key: &str) -> bool {
        self.whole(key).is_some_and(|value| value.eq_ignore_ascii_case("true"))
    }

    /// `true` in any letter case and with blanks around it.
    pub(super) fn loose_flag(&self, key: &str) -> bool {
        self.whole(key).is_some_and(|value| value.trim().eq_ignore_ascii_case("true"))
    }

    /// `true`, and not otherwise.
    pub(super) fn strict_flag(&self, key: &str) -> bool {
        self.whole(key) == Some("true")
    }

    /// The entries of a list with commas, without empty ones.
    pub(super) fn list(&self, key: &str) -> Vec<&'a str> {
        let text = self.whole(key).unwrap_or("");
        text.split(',').map(str::trim).filter(|entry| !entry.is_empty()).collect()
    }

    /// The entries of a list with blanks.
    pub(super) fn words(&self, key: &str) -> Vec<&'a str> {
        self.whole(key).unwrap_or("").split_whitespace().collect()
    }

    /// A whole number within bounds; the default where the key is absent.
    pub(super) fn number(
        &self,
        key: &str,
        (least, most): (u64, u64),
        default: u64,
    ) -> Result<u64, Invalid> {
        let Some(value) = self.whole(key) else { return Ok(default) };
        let number = value.trim().parse().ok().filter(|n| (least..=most).contains(n));
        number.ok_or_else(|| refuse(key, value))
    }

    /// Whether a Standard load balancer is asked for.
    pub(super) fn is_standard(&self) -> bool {
        self.site.sku == Sku::Standard
    }
}

/// A refusal.
pub(super) fn refuse(key: &str, value: &str) -> Invalid {
    Invalid(format!("{key}: \"{value}\""))
}

/// Whether Azure takes a text as the name of a network resource: letters, digits, `.`, `_`, `-`,
/// and neither of the last two signs in front or a dot or dash behind.
pub(super) fn is_name(name: &str) -> bool {
    let inside = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let outside = |c: char| c.is_ascii_alphanumeric() || c == '_';
    (1..=80).contains(&name.len())
        && name.chars().all(inside)
        && name.starts_with(outside)
        && name.ends_with(outside)
}

/// Whether Azure takes a text as the name of a resource group.
pub(super) fn is_group(name: &str) -> bool {
    let inside = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '(' | ')');
    (1..=90).contains(&name.chars().count()) && name.chars().all(inside) && !name.ends_with('.')
}
