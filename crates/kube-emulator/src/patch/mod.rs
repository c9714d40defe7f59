//! The four kinds of patches.

pub(crate) mod apply;
pub(crate) mod fields;
mod json;
mod merge;
mod rules;
mod strategic;

use crate::kinds::Kind;
use serde_json::Value;

/// A patch and what kind it is.
#[derive(Debug, Clone, PartialEq)]
pub enum Patch {
    /// A list of JSON patch operations.
    Json(Value),
    /// A merge patch.
    Merge(Value),
    /// A strategic merge patch.
    Strategic(Value),
    /// The fields a manager applies.
    Apply(Value),
}

/// Why a patch could not be carried out.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum PatchFault {
    /// The patch itself makes no sense.
    Malformed(String),
    /// The patch does not fit the object.
    Unfit(String),
}

/// The object after a patch. Applied configurations go another way, because they need owners.
pub(crate) fn patched(kind: &Kind, live: &Value, patch: &Patch) -> Result<Value, PatchFault> {
    match patch {
        Patch::Json(operations) => json::patched(live, operations),
        Patch::Merge(body) | Patch::Apply(body) => {
            let mut object = live.clone();
            merge::merge(&mut object, body);
            Ok(object)
        }
        Patch::Strategic(body) => strategic::patched(kind.kind, live, body),
    }
}

#[cfg(test)]
mod tests;
