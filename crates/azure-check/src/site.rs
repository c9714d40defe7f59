//! Where a run makes its resources, and how it calls them.

use model::{Group, ResourceId};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// How the name of each resource of a run begins.
pub const PREFIX: &str = "ballast-check-";

/// The tag of each resource of a run; its value is the run's id.
pub const TAG: &str = "ballast-azure-check";

/// Where a run makes its resources.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Site {
    /// The subscription's id.
    pub subscription: String,
    /// The resource group, which exists.
    pub group: String,
    /// The region, such as `westeurope`.
    pub location: String,
    /// The run's id: eight hexadecimal digits.
    pub run: String,
}

impl Site {
    /// The name of a resource.
    #[must_use]
    pub fn name(&self, short: &str) -> String {
        format!("{PREFIX}{}-{short}", self.run)
    }

    /// The id of a resource; `kind` has its namespace.
    #[must_use]
    pub fn id(&self, kind: &str, short: &str) -> ResourceId {
        self.id_named(kind, &self.name(short))
    }

    /// The id of a resource by its whole name.
    #[must_use]
    pub fn id_named(&self, kind: &str, name: &str) -> ResourceId {
        ResourceId::of(&self.subscription, &Group::new(&self.group), kind, name)
    }

    /// The run's tag.
    #[must_use]
    pub fn tags(&self) -> Value {
        json!({ TAG: self.run })
    }

    /// Whether a resource is one of this run, by its name.
    #[must_use]
    pub fn is_ours(&self, id: &ResourceId) -> bool {
        id.is_in(&Group::new(&self.group)) && id.name().starts_with(&self.name(""))
    }

    /// Whether an item of a list may be recorded: other resources of the group are not the run's
    /// to show. What has no id is part of a resource of ours.
    pub(crate) fn may_show(&self, item: &Value) -> bool {
        let id = item.get("id").and_then(Value::as_str);
        id.is_none_or(|id| id.to_lowercase().contains(&format!("/{}", self.name(""))))
    }

    /// A region that this one is not.
    #[must_use]
    pub fn elsewhere(&self) -> &'static str {
        if self.location.eq_ignore_ascii_case("westeurope") { "northeurope" } else { "westeurope" }
    }
}
