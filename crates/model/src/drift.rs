//! What others changed in our parts of Azure.

use crate::id::{ResourceId, ServiceUid};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

/// A part of a resource that is ours or somebody else's as a whole.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Part {
    /// What kind of part, as people call it: `rule`, `probe`, `tag`; empty for the resource itself.
    pub kind: &'static str,
    /// Its name; that of a pool's address is `POOL/ADDRESS`.
    pub name: Arc<str>,
}

impl Part {
    /// The resource itself.
    #[must_use]
    pub fn whole() -> Self {
        Self { kind: "", name: Arc::from("") }
    }

    /// Whether it is the resource itself.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.kind.is_empty()
    }
}

/// A field that others changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DriftedField {
    /// Its name in the World; empty where the part is one value.
    pub field: String,
    /// As we left it.
    pub ours: Value,
    /// As it is.
    pub found: Value,
}

/// How a part differs from how we left it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum Departure {
    /// It is gone.
    Gone,
    /// It was not there.
    Added,
    /// Fields of it differ.
    Changed(Vec<DriftedField>),
}

/// One part that others changed: it is not as we left it, and we still want it so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Drift {
    /// The resource.
    pub target: ResourceId,
    /// The part.
    pub part: Part,
    /// What became of it.
    pub departure: Departure,
    /// The Services it concerns.
    pub services: BTreeSet<ServiceUid>,
}

impl Drift {
    /// How many fields differ; a part that is gone or was added counts as one.
    #[must_use]
    pub fn fields(&self) -> u64 {
        match &self.departure {
            Departure::Gone | Departure::Added => 1,
            Departure::Changed(fields) => fields.len() as u64,
        }
    }

    /// Its place: resource and part.
    #[must_use]
    pub fn place(&self) -> (ResourceId, Part) {
        (self.target.clone(), self.part.clone())
    }

    /// The resource in a few words, as in `loadBalancers/kubernetes`.
    #[must_use]
    pub fn resource(&self) -> &str {
        self.target.short()
    }

    /// What happened to the part, as in `rule a-TCP-80 is gone`.
    #[must_use]
    pub fn deed(&self) -> String {
        let subject = match self.part.is_whole() {
            true => "it".to_owned(),
            false => format!("{} {}", self.part.kind, self.part.name),
        };
        match &self.departure {
            Departure::Gone => format!("{subject} is gone"),
            Departure::Added => format!("{subject} was added"),
            Departure::Changed(fields) => {
                let fields: Vec<String> = fields.iter().map(ToString::to_string).collect();
                format!("{subject}: {}", fields.join(", "))
            }
        }
    }
}

impl fmt::Display for DriftedField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let blank = if self.field.is_empty() { "" } else { " " };
        write!(f, "{}{blank}was {}, is {}", self.field, self.ours, self.found)
    }
}

impl fmt::Display for Drift {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.resource(), self.deed())
    }
}
