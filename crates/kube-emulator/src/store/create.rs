//! Creating objects.

use super::{Call, Run, Store, is_deleted};
use crate::events;
use crate::json::{child, drop_key, text};
use crate::kinds::Kind;
use crate::names::name_faults;
use crate::patch::apply::{Writer, record_update};
use crate::route::Target;
use crate::status::ApiError;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// Members of the metadata that only the API writes.
const SERVER_OWNED: [&str; 7] = [
    "uid",
    "creationTimestamp",
    "resourceVersion",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "selfLink",
];

impl Store {
    /// Creates an object at a collection.
    pub(crate) fn create_at(
        &mut self,
        target: &Target,
        body: Value,
        call: &Call,
    ) -> Result<Arc<Value>, ApiError> {
        let mut object = checked_body(target, body)?;
        if !text(&object, "/metadata/resourceVersion").is_empty() {
            let message = "resourceVersion should not be set on objects to be created";
            return Err(ApiError::bad_request(message));
        }
        if text(&object, "/metadata/name").is_empty() {
            self.generate_name(target.kind, &mut object);
        }
        let name = text(&object, "/metadata/name").to_string();
        let target = Target { name: Some(name), ..target.clone() };
        drop_key(child(&mut object, "metadata"), "managedFields");
        self.insert(&target, object, call)
    }

    fn generate_name(&mut self, kind: &Kind, object: &mut Value) {
        let base = text(object, "/metadata/generateName").to_string();
        if base.is_empty() {
            return;
        }
        let place = text(object, "/metadata/namespace").to_string();
        let room = base.get(..base.len().min(58)).unwrap_or(&base).to_string();
        let mut name = format!("{room}{}", self.uids.ending());
        while self.shelf(kind).objects.contains_key(&(place.clone(), name.clone())) {
            name = format!("{room}{}", self.uids.ending());
        }
        object["metadata"]["name"] = json!(name);
    }

    /// Stores a new object. Its `managedFields`, if it has any, are kept (they come from an
    /// applied configuration).
    pub(super) fn insert(
        &mut self,
        target: &Target,
        object: Value,
        call: &Call,
    ) -> Result<Arc<Value>, ApiError> {
        let stored = self.insert_quietly(target, object, call)?;
        self.settle(call.now);
        Ok(stored)
    }

    /// Stores a new object without what follows from it.
    pub(crate) fn insert_quietly(
        &mut self,
        target: &Target,
        mut object: Value,
        call: &Call,
    ) -> Result<Arc<Value>, ApiError> {
        let kind = target.kind;
        let key = target.key();
        let faults = name_faults(kind, &key.1);
        if !faults.is_empty() {
            return Err(ApiError::invalid(kind, &key.1, &faults));
        }
        self.check_namespace(target)?;
        if self.shelf(kind).objects.contains_key(&key) {
            return Err(ApiError::exists(kind, &key.1));
        }
        let metadata = child(&mut object, "metadata");
        for member in SERVER_OWNED {
            drop_key(metadata, member);
        }
        super::admission::drop_empty(metadata);
        if kind.is_namespaced() {
            metadata.insert("namespace".to_string(), json!(key.0));
        } else {
            drop_key(metadata, "namespace");
        }
        metadata.insert("uid".to_string(), json!(self.uids.uid()));
        metadata.insert("creationTimestamp".to_string(), json!(call.time()));
        if super::admission::has_generation(kind) {
            metadata.insert("generation".to_string(), json!(1));
        }
        self.admit(kind, None, &mut object)?;
        self.record_new(target, &mut object, call);
        if call.run == Run::Dry {
            return Ok(Arc::new(object));
        }
        Ok(self.commit(kind, key, Some(object), None))
    }

    fn record_new(&self, target: &Target, object: &mut Value, call: &Call) {
        let applied = object.pointer("/metadata/managedFields").is_some();
        if applied || self.ownership == super::Ownership::AppliedOnly {
            return;
        }
        let writer = writer_of(target, call);
        let kind = target.kind.kind;
        let entries = record_update(kind, &writer, &[], (&Value::Null, &*object));
        child(object, "metadata").insert("managedFields".to_string(), json!(entries));
    }

    fn check_namespace(&self, target: &Target) -> Result<(), ApiError> {
        if !target.kind.is_namespaced() {
            return Ok(());
        }
        let name = target.namespace.clone().unwrap_or_default();
        let namespaces = crate::kinds::by_plural("namespaces").expect("the table has namespaces");
        let found = self.shelf(namespaces).objects.get(&(String::new(), name.clone()));
        let Some(found) = found else {
            return Err(ApiError::not_found(namespaces, &name));
        };
        if is_deleted(found) {
            let why = format!(
                "unable to create new content in namespace {name} because it is being terminated"
            );
            let cause = json!({"reason": "NamespaceTerminating",
                "message": format!("namespace {name} is being terminated"),
                "field": "metadata.namespace"});
            let object = target.name.as_deref().unwrap_or("");
            return Err(ApiError::forbidden(target.kind, object, &why, Some(cause)));
        }
        Ok(())
    }
}

pub(super) fn writer_of<'a>(target: &Target, call: &'a Call) -> Writer<'a> {
    Writer {
        manager: &call.manager,
        api_version: target.kind.api_version(),
        part: target.part,
        time: call.time(),
    }
}

/// The sent object in the stored form, with its namespace, if it belongs where it was sent.
pub(super) fn checked_body(target: &Target, body: Value) -> Result<Value, ApiError> {
    let Value::Object(sent) = body else {
        return Err(ApiError::bad_request("the object provided is unrecognized: not an object"));
    };
    let kind = target.kind;
    let (version, name) = (kind.api_version(), kind.kind);
    let word = |key: &str| sent.get(key).and_then(Value::as_str).unwrap_or("");
    let said = (word("apiVersion"), word("kind"));
    let fits = |said: &str, wanted: &str| said.is_empty() || said == wanted;
    if !fits(said.0, &version) || !fits(said.1, name) {
        return Err(ApiError::bad_request(format!(
            "the API version or kind in the data ({}, {}) does not match the expected one \
             ({version}, {name})",
            said.0, said.1
        )));
    }
    let mut whole = Map::with_capacity(sent.len() + 2);
    whole.insert("apiVersion".to_string(), Value::String(version));
    whole.insert("kind".to_string(), Value::String(name.to_string()));
    whole.extend(sent.into_iter().filter(|(key, _)| !["apiVersion", "kind"].contains(&&**key)));
    let mut whole = Value::Object(whole);
    child(&mut whole, "metadata");
    let said = text(&whole, "/metadata/namespace");
    let wanted = target.namespace.as_deref().unwrap_or("");
    if !said.is_empty() && said != wanted {
        return Err(ApiError::bad_request(
            "the namespace of the provided object does not match the namespace sent on the \
             request",
        ));
    }
    if kind.is_namespaced() {
        whole["metadata"]["namespace"] = json!(wanted);
    }
    Ok(events::inward(kind, whole))
}
