//! The same operations for callers in the same process.

use super::{Call, Run, Store};
use crate::faults::Fault;
use crate::json::text;
use crate::kinds::{self, Kind};
use crate::patch::Patch;
use crate::patch::apply::Force;
use crate::route::{Part, Target};
use crate::status::ApiError;
use crate::watch::{WatchEvent, WatchSpec};
use serde_json::{Value, json};
use std::sync::Arc;

/// Names one object: plural kind, namespace (empty for cluster kinds) and name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ObjectRef<'a> {
    /// Plural name of the kind, such as `services`.
    pub plural: &'a str,
    /// Namespace, empty for cluster kinds.
    pub namespace: &'a str,
    /// Name.
    pub name: &'a str,
}

impl<'a> ObjectRef<'a> {
    /// Names an object.
    pub fn new(plural: &'a str, namespace: &'a str, name: &'a str) -> Self {
        Self { plural, namespace, name }
    }

    fn target(&self, part: Part) -> Result<Target, ApiError> {
        let kind = kinds::by_plural(self.plural).ok_or_else(ApiError::unknown_path)?;
        let namespace = kind.is_namespaced().then_some(self.namespace);
        Ok(Target { part, ..Target::new(kind, namespace, Some(self.name)) })
    }
}

fn call(now: u64) -> Call {
    Call { manager: "in-process".to_string(), run: Run::Real, now }
}

fn kind_of(object: &Value) -> Result<&'static Kind, ApiError> {
    let (version, kind) = (text(object, "/apiVersion"), text(object, "/kind"));
    kinds::by_object(version, kind).ok_or_else(|| {
        ApiError::bad_request(format!("no kind {kind:?} in version {version:?} is served"))
    })
}

impl Store {
    /// Creates an object; kind and namespace are read from it.
    pub fn create(&mut self, object: Value, now: u64) -> Result<Arc<Value>, ApiError> {
        let kind = kind_of(&object)?;
        let said = text(&object, "/metadata/namespace").to_string();
        let namespace = if said.is_empty() { "default" } else { &said };
        let namespace = kind.is_namespaced().then_some(namespace);
        self.create_at(&Target::new(kind, namespace, None), object, &call(now))
    }

    /// One object.
    pub fn get(&self, object: ObjectRef<'_>) -> Result<Arc<Value>, ApiError> {
        self.find(&object.target(Part::Main)?)
    }

    /// All objects of a kind, in one namespace or everywhere, by namespace and name.
    pub fn list(&self, plural: &str, namespace: Option<&str>) -> Vec<Arc<Value>> {
        let Some(kind) = kinds::by_plural(plural) else { return Vec::new() };
        self.shelf(kind).within(namespace).map(|(_, object)| Arc::clone(object)).collect()
    }

    /// Replaces an object (its main part); conflicts if its `resourceVersion` is an old one.
    pub fn replace(&mut self, object: Value, now: u64) -> Result<Arc<Value>, ApiError> {
        self.replace_part(object, Part::Main, now)
    }

    /// Replaces one part of an object.
    pub fn replace_part(
        &mut self,
        object: Value,
        part: Part,
        now: u64,
    ) -> Result<Arc<Value>, ApiError> {
        let kind = kind_of(&object)?;
        let namespace = text(&object, "/metadata/namespace").to_string();
        let name = text(&object, "/metadata/name").to_string();
        let target = ObjectRef::new(kind.plural, &namespace, &name).target(part)?;
        Ok(self.replace_at(&target, object, &call(now))?.1)
    }

    /// Patches one part of an object. An applied configuration takes over fields of others.
    pub fn patch(
        &mut self,
        object: ObjectRef<'_>,
        part: Part,
        patch: &Patch,
        now: u64,
    ) -> Result<Arc<Value>, ApiError> {
        let target = object.target(part)?;
        Ok(self.patch_at(&target, patch, Force::TakeOver, &call(now))?.1)
    }

    /// Deletes an object, or marks it if it has finalizers.
    pub fn delete(&mut self, object: ObjectRef<'_>, now: u64) -> Result<Arc<Value>, ApiError> {
        let target = object.target(Part::Main)?;
        Ok(self.delete_at(&target, &json!({}), &call(now))?.0)
    }

    /// What happened to a kind after a revision, up to [`Store::revision`].
    pub fn events_since(&self, plural: &str, revision: u64) -> Result<Vec<WatchEvent>, ApiError> {
        let kind = kinds::by_plural(plural).ok_or_else(ApiError::unknown_path)?;
        self.watch_from(&WatchSpec::everything(kind), revision)
    }

    /// Forgets the history, so that watches from older revisions expire (410).
    pub fn compact(&mut self) {
        let revision = self.revision;
        for shelf in self.shelves.values_mut() {
            shelf.forget(revision);
        }
    }

    /// Makes coming requests fail.
    pub fn inject(&mut self, fault: Fault) {
        self.faults.push(fault);
    }
}
