//! What stands in Azure, by id.

use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Resources by their ids in lower case.
#[derive(Clone, Debug, Default)]
pub(crate) struct Estate<'a> {
    by_id: BTreeMap<String, &'a Value>,
}

/// A text; empty where there is none.
pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("")
}

/// An id in the letters in which ids are compared.
pub(crate) fn id(value: &Value) -> String {
    text(value).to_lowercase()
}

/// The last part of an id.
pub(crate) fn last(id: &str) -> &str {
    id.rsplit('/').next().unwrap_or("")
}

/// The resource group in an id.
pub(crate) fn group_of(id: &str) -> &str {
    let mut parts = id.split('/');
    parts.find(|part| part.eq_ignore_ascii_case("resourceGroups"));
    parts.next().unwrap_or("")
}

/// The items of an array; none where it is absent.
pub(crate) fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// Addresses that a Service's status tells.
pub(crate) fn told(service: &Value) -> impl Iterator<Item = &str> {
    items(&service["status"]["loadBalancer"]["ingress"]).filter_map(|entry| entry["ip"].as_str())
}

/// Whether a finalizer is on an object of Kubernetes.
pub(crate) fn has_finalizer(object: &Value, finalizer: &str) -> bool {
    items(&object["metadata"]["finalizers"]).any(|held| held == finalizer)
}

/// The parts of a resource in one of its collections (`properties.<collection>`).
pub(crate) fn parts<'v>(
    resource: &'v Value,
    collection: &str,
) -> impl Iterator<Item = &'v Value> + use<'v> {
    resource["properties"][collection].as_array().into_iter().flatten()
}

/// Whether two names mean the same to Azure.
pub(crate) fn same(one: &str, other: &str) -> bool {
    one.eq_ignore_ascii_case(other)
}

/// The part of that name.
pub(crate) fn part<'v>(resource: &'v Value, collection: &str, name: &str) -> Option<&'v Value> {
    parts(resource, collection).find(|part| same(text(&part["name"]), name))
}

impl<'a> Estate<'a> {
    pub(crate) fn read(resources: &'a [Arc<Value>]) -> Self {
        let by_id = resources.iter().map(|r| (id(&r["id"]), &**r)).collect();
        Self { by_id }
    }

    /// A resource by its id in any letters.
    pub(crate) fn get(&self, id: &str) -> Option<&'a Value> {
        self.by_id.get(&id.to_lowercase()).copied()
    }

    /// Resources of a kind, such as `Microsoft.Network/loadBalancers`, in the order of their ids.
    pub(crate) fn of(&self, kind: &str) -> impl Iterator<Item = (&str, &'a Value)> {
        let middle = format!("/providers/{}/", kind.to_lowercase());
        let fits =
            move |id: &str| id.split_once(&middle).is_some_and(|(_, rest)| !rest.contains('/'));
        self.by_id.iter().filter(move |(id, _)| fits(id)).map(|(id, value)| (&**id, *value))
    }

    pub(crate) fn balancers(&self) -> impl Iterator<Item = (&str, &'a Value)> {
        self.of("Microsoft.Network/loadBalancers")
    }

    pub(crate) fn public_ips(&self) -> impl Iterator<Item = (&str, &'a Value)> {
        self.of("Microsoft.Network/publicIPAddresses")
    }

    pub(crate) fn links(&self) -> impl Iterator<Item = (&str, &'a Value)> {
        self.of("Microsoft.Network/privateLinkServices")
    }

    /// Machines, of scale sets and single ones.
    pub(crate) fn machines(&self) -> impl Iterator<Item = (&str, &'a Value)> {
        let is_machine = |id: &str| {
            let before = id.rsplit_once('/').map_or("", |(before, _)| before);
            before.ends_with("/virtualmachines")
        };
        self.by_id.iter().filter(move |(id, _)| is_machine(id)).map(|(id, value)| (&**id, *value))
    }
}

/// Whether the last write of a resource failed.
pub(crate) fn has_failed(resource: &Value) -> bool {
    ["Failed", "Canceled"].contains(&text(&resource["properties"]["provisioningState"]))
}
